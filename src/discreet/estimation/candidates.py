"""Candidate models of one Statistics, to be judged by rows where those are.

Independence and noise make a model too sure, and noisy tables do not show by how much. Holders of
rows can tell: each counts how many of its rows every candidate model gets right, and the noisy sum
of these counts chooses. Candidates are the default, the same with its evidence toned down, and the
best few features alone.

They travel as whole numbers (``discreet.statistics.candidate``), so that all judges of a row decide
the same.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from discreet.arrays import Array, Integers
from discreet.errors import EstimationError
from discreet.estimation.from_statistics import estimate, estimate_scorings
from discreet.model import CellFactor, NaiveBayesModel
from discreet.statistics.candidate import CandidateModel
from discreet.statistics.scoring import Scoring
from discreet.statistics.statistics import Statistics

__all__ = [
    "MAX_CANDIDATES",
    "choose_candidate",
    "count_correct_rows",
    "list_candidate_scorings",
    "make_candidate",
    "rank_features",
]

MAX_CANDIDATES = 8
"""Most candidates: each of them adds noise to the counts of all."""
EVIDENCE_WEIGHTS = (0.5, 0.25)
"""Weights of the evidence of all features, besides the default's."""
FEATURE_SET_SIZES = (1, 2, 4, 8, 16, 32)
"""Sizes of the sets of best features that are candidates."""
MIN_EXCESS_DEVIATIONS = 2.0
"""Standard deviations by which a candidate must be ahead of the default: docs/experiments/
federated.md, "A second stage"."""


def make_candidate(model: NaiveBayesModel) -> CandidateModel:
    """Make the candidate of a model whose features all come as cells.

    Parameters
    ----------
    model : NaiveBayesModel
    """
    cell_factors = [factor for factor in model.factors if isinstance(factor, CellFactor)]
    if model.pairs or len(cell_factors) < len(model.factors):
        raise EstimationError(
            "only models of cells can be candidates; count numeric features by bins, and "
            "correct no pairs"
        )
    return CandidateModel.from_log_scores(
        model.log_prior, {factor.name: factor.log_probability for factor in cell_factors}
    )


def list_candidate_scorings(
    statistics: Statistics,
    limit: int = MAX_CANDIDATES,
    *,
    evidence_weights: Sequence[float] = EVIDENCE_WEIGHTS,
    feature_set_sizes: Sequence[int] = FEATURE_SET_SIZES,
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
    evidence_weights : sequence of float
        Weights of the evidence of all features, besides the default's.
    feature_set_sizes : sequence of int
        Sizes of the sets of best features, in ascending order.

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
        replace(default_scoring, beta=default_scoring.beta * weight) for weight in evidence_weights
    ]
    possible_scorings += [
        replace(default_scoring, features=ranked_features[:set_size])
        for set_size in feature_set_sizes
        if set_size < len(ranked_features)
    ]
    candidate_scorings: dict[str, Scoring] = {}
    possible_models = estimate_scorings(statistics, possible_scorings)
    for scoring, model in zip(possible_scorings, possible_models, strict=True):
        decision_key = str(make_candidate(model).to_body())
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
