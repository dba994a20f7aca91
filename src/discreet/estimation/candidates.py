"""Candidate models of one Statistics, to be judged by rows where those are.

Independence and noise make a model too sure, and noisy tables do not show by how much. Holders of
rows can tell: each counts how many of its rows every candidate model gets right, and the noisy sum
of these counts chooses. Candidates are the default, the same with its evidence toned down, and the
best few features alone.

A candidate travels as whole numbers (1/1024 of log-odds, rounded once by its maker), which NumPy,
Python and JavaScript add up exactly alike, so that all judges of a row decide the same.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any

import numpy as np
from pydantic import Field

from discreet.arrays import Array, Floats, Integers
from discreet.errors import EstimationError
from discreet.estimation.from_statistics import estimate
from discreet.files.documents import Body
from discreet.model import CellFactor, NaiveBayesModel
from discreet.statistics.scoring import Scoring
from discreet.statistics.statistics import Statistics

__all__ = [
    "MAX_CANDIDATES",
    "CandidateModel",
    "CandidateModelBody",
    "choose_candidate",
    "count_correct_rows",
    "list_candidate_scorings",
    "rank_features",
]

SCORE_STEPS = 1024
"""Scores are whole multiples of 1 / 1024 of a unit of log-odds."""
MAX_SCORE = 1 << 20
"""Largest absolute value of a whole score: log-odds of 1024, beyond any probability of a float."""
MAX_SCORED_FEATURES = 1 << 16
"""Most features of a candidate: 2^16 scores of 2^20 and an offset add up to less than 2^53."""
MAX_SCORED_CELLS = 1 << 12
"""Most cells of a feature of a candidate, and most classes."""
MAX_CANDIDATES = 8
"""Most candidates: each of them adds noise to the counts of all."""
EVIDENCE_WEIGHTS = (0.5, 0.25)
"""Weights of the evidence of all features, besides the default's."""
FEATURE_SET_SIZES = (1, 2, 4, 8, 16, 32)
"""Sizes of the sets of best features that are candidates."""
MIN_EXCESS_DEVIATIONS = 2.0
"""Standard deviations by which a candidate must be ahead of the default: docs/experiments/
federated.md, "A second stage"."""

WholeScore = Annotated[int, Field(strict=True, ge=-MAX_SCORE, le=MAX_SCORE)]
ClassScores = Annotated[list[WholeScore], Field(min_length=1, max_length=MAX_SCORED_CELLS)]
ScoreTable = Annotated[list[ClassScores], Field(min_length=1, max_length=MAX_SCORED_CELLS)]


@dataclass(frozen=True, eq=False)
class CandidateModel:
    """A model as whole numbers, whose decisions are the same on every machine.

    Parameters
    ----------
    offsets : array of int, (classes,)
        What every row adds to the score of each class.
    tables : mapping of feature name to array of int, (classes, cells)
        What each cell adds.

    Examples
    --------
    >>> candidate = CandidateModel(np.array([0, -5]), {"sky": np.array([[0, 0], [-9, 5]])})
    >>> candidate.predict({"sky": np.array([0, 1])}).tolist()  # the first class on a tie
    [0, 0]
    """

    offsets: Integers
    tables: Mapping[str, Integers]

    def __post_init__(self) -> None:
        class_count = len(self.offsets)
        if len(self.tables) > MAX_SCORED_FEATURES:
            raise EstimationError(f"a candidate has more than {MAX_SCORED_FEATURES} features")
        if self.offsets.shape != (class_count,) or not 1 <= class_count <= MAX_SCORED_CELLS:
            raise EstimationError(f"a candidate needs an offset for each class: {self.offsets!r}")
        for name, table in self.tables.items():
            if table.ndim != 2 or len(table) != class_count:
                raise EstimationError(f"{name}: a table of scores needs a row for each class")
            if not 1 <= table.shape[1] <= MAX_SCORED_CELLS:
                raise EstimationError(f"{name}: a table has 1 to {MAX_SCORED_CELLS} cells")
        for array in (self.offsets, *self.tables.values()):
            if array.dtype.kind != "i" or np.abs(array).max() > MAX_SCORE:
                raise EstimationError(
                    f"scores of candidates are whole numbers from {-MAX_SCORE} to {MAX_SCORE}"
                )

    @classmethod
    def from_model(cls, model: NaiveBayesModel) -> CandidateModel:
        """Round the scores of a model whose features all come as cells.

        Parameters
        ----------
        model : NaiveBayesModel
        """
        if model.pairs or not all(isinstance(factor, CellFactor) for factor in model.factors):
            raise EstimationError(
                "only models of cells can be candidates; count numeric features by bins, and "
                "correct no pairs"
            )
        return cls(
            _round_scores(np.asarray(model.log_prior)[:, None])[:, 0],
            {
                factor.name: _round_scores(factor.log_probability)
                for factor in model.factors
                if isinstance(factor, CellFactor)
            },
        )

    def check_cells(self, class_count: int, cell_counts: Mapping[str, int]) -> None:
        """Raise if the candidate does not fit what is counted.

        Parameters
        ----------
        class_count : int
        cell_counts : mapping of feature name to int
            Cells of each feature that a judge of rows knows.
        """
        if len(self.offsets) != class_count:
            raise EstimationError(f"a candidate has {len(self.offsets)} of {class_count} classes")
        for name, table in self.tables.items():
            if cell_counts.get(name) != table.shape[1]:
                raise EstimationError(
                    f"{name}: a candidate has {table.shape[1]} cells, and the feature has "
                    f"{cell_counts.get(name, 'none')}"
                )

    def predict(self, cell_indices: Mapping[str, Array]) -> Integers:
        """The index of the class with the largest score of every row; of equal ones the first.

        Parameters
        ----------
        cell_indices : mapping of feature name to array of int, (rows,)
            Of all features of the candidate, and of any others.
        """
        row_counts = {len(feature_indices) for feature_indices in cell_indices.values()}
        if len(row_counts) != 1:
            raise EstimationError("rows are judged by columns of equally many cells")
        row_scores = np.tile(self.offsets, (row_counts.pop(), 1))
        for name, table in self.tables.items():
            row_scores += np.ascontiguousarray(table.T)[cell_indices[name]]
        return np.asarray(row_scores.argmax(axis=1), dtype=np.int64)

    def to_body(self) -> dict[str, Any]:
        """Plain values for a JSON document."""
        return {
            "offsets": self.offsets.tolist(),
            "tables": {name: table.tolist() for name, table in self.tables.items()},
        }


class CandidateModelBody(Body):
    """Shape of a CandidateModel inside other documents: whole numbers of bounded size."""

    offsets: ClassScores
    tables: Annotated[dict[str, ScoreTable], Field(max_length=MAX_SCORED_FEATURES)]

    def to_candidate(self) -> CandidateModel:
        """The value this shape stands for."""
        for name, table in self.tables.items():
            if len({len(class_scores) for class_scores in table}) != 1:
                raise EstimationError(f"{name}: the classes of a candidate have other cells")
        return CandidateModel(
            np.array(self.offsets, dtype=np.int64),
            {name: np.array(table, dtype=np.int64) for name, table in self.tables.items()},
        )


def _round_scores(log_scores: Floats) -> Integers:
    """Log-odds to the likeliest class of each column, in whole 1/1024: from -2^20 to 0."""
    best_scores = log_scores.max(axis=0)
    is_possible = np.isfinite(best_scores)  # what no class can have says nothing about the class
    log_odds = np.where(is_possible, log_scores, 0.0) - np.where(is_possible, best_scores, 0.0)
    return np.asarray(np.rint(np.maximum(SCORE_STEPS * log_odds, -MAX_SCORE)), dtype=np.int64)


def list_candidate_scorings(
    statistics: Statistics, limit: int = MAX_CANDIDATES
) -> tuple[Scoring, ...]:
    """List scorings whose models are worth judging, the default of the statistics first.

    All features with their evidence toned down, and the best 1, 2, 4, … features alone. The list
    is a function of the statistics, and no two of its models have the same scores.

    Parameters
    ----------
    statistics : Statistics
        With tables of cells.
    limit : int, default 8
        Length of the list at most; the largest sets of features are left out first.

    Examples
    --------
    >>> from discreet import Categorical, Schema
    >>> from discreet.tables.in_memory import count_arrays
    >>> schema = Schema([Categorical("sky", ["clear", "grey"])], "rain", ["no", "yes"])
    >>> counts = count_arrays(
    ...     schema, {"sky": ["clear", "clear", "grey", "grey"]}, np.array([0, 0, 0, 1])
    ... )
    >>> [scoring.beta for scoring in list_candidate_scorings(counts)]
    [1.0, 0.5, 0.25]
    """
    default_scoring = statistics.scoring
    default_model = estimate(statistics)
    ranked_features = rank_features(default_model)
    possible_scorings = [default_scoring]
    possible_scorings += [
        replace(default_scoring, beta=default_scoring.beta * weight) for weight in EVIDENCE_WEIGHTS
    ]
    possible_scorings += [
        replace(default_scoring, features=ranked_features[:set_size])
        for set_size in FEATURE_SET_SIZES
        if set_size < len(ranked_features)
    ]
    candidate_scorings: dict[str, Scoring] = {}
    for scoring in possible_scorings:
        model = estimate(replace(statistics, scoring=scoring))
        decision_key = str(CandidateModel.from_model(model).to_body())
        candidate_scorings.setdefault(decision_key, scoring)
    return tuple(candidate_scorings.values())[:limit]


def rank_features(model: NaiveBayesModel) -> tuple[str, ...]:
    """The features of a model, those that say most about the class first.

    By the mutual information of class and feature, sum of P(c) P(v | c) log(P(v | c) / P(v)).

    Parameters
    ----------
    model : NaiveBayesModel
        Of cells.
    """
    prior = np.exp(model.log_prior)[:, None]
    information: dict[str, float] = {}
    for factor in model.factors:
        if not isinstance(factor, CellFactor):
            continue
        joint = prior * np.exp(factor.log_probability)
        margin = joint.sum(axis=0)
        with np.errstate(divide="ignore", invalid="ignore"):
            terms = np.where(joint > 0, joint * np.log(joint / (prior * margin)), 0.0)
        information[factor.name] = float(terms.sum())
    return tuple(sorted(information, key=lambda name: -information[name]))


def count_correct_rows(
    candidates: Sequence[CandidateModel], cell_indices: Mapping[str, Array], class_codes: Array
) -> Integers:
    """Count the rows that each candidate gets right: exact, and private to the holder of the rows.

    One row changes each count by 0 or 1.

    Parameters
    ----------
    candidates : sequence of CandidateModel
    cell_indices : mapping of feature name to array of int, (rows,)
    class_codes : array of int, (rows,)
    """
    return np.array(
        [
            np.count_nonzero(candidate.predict(cell_indices) == class_codes)
            for candidate in candidates
        ],
        dtype=np.int64,
    )


def choose_candidate(
    excess_counts: Array, excess_variances: Array, deviations: float = MIN_EXCESS_DEVIATIONS
) -> int:
    """Choose the candidate that is furthest ahead of the default, if that is hardly noise.

    The default (index 0) stays unless another is ahead by some standard deviations of its noise.

    Parameters
    ----------
    excess_counts : array of shape (candidates,)
        Noisy: how many more rows each gets right than the default, whose own excess is 0.
    excess_variances : array of shape (candidates,)
        Of these numbers.
    deviations : float
        How many standard deviations.

    Examples
    --------
    >>> choose_candidate(np.array([0, 30, 12]), np.array([0, 400, 4]))
    2
    """
    lead = np.asarray(excess_counts, float) - deviations * np.sqrt(
        np.asarray(excess_variances, float)
    )
    lead[0] = 0.0
    return int(lead.argmax())
