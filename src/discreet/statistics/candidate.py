"""A model as whole numbers, which every machine adds up exactly alike.

A candidate travels as whole numbers (1/1024 of log-odds, rounded once by its maker), which NumPy,
Python and JavaScript add up exactly alike, so that all judges of a row decide the same. Devices of
respondents and holders of rows load this module, not what makes candidates.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
from pydantic import Field

from discreet.arrays import Array, Floats, Integers
from discreet.errors import EstimationError
from discreet.files.documents import Body

__all__ = ["CandidateModel", "CandidateModelBody"]

SCORE_STEPS = 1024
"""Scores are whole multiples of 1 / 1024 of a unit of log-odds."""
MAX_SCORE = 1 << 20
"""Largest absolute value of a whole score: log-odds of 1024, beyond any probability of a float."""
MAX_SCORED_FEATURES = 1 << 16
"""Most features of a candidate: 2^16 scores of 2^20 and an offset add up to less than 2^53."""
MAX_SCORED_CELLS = 1 << 12
"""Most cells of a feature of a candidate, and most classes."""

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
    def from_log_scores(cls, log_prior: Floats, log_scores: Mapping[str, Floats]) -> CandidateModel:
        """Round the log-scores of a model: log-odds to the likeliest class, in whole 1/1024.

        Parameters
        ----------
        log_prior : array of shape (classes,)
        log_scores : mapping of feature name to array of shape (classes, cells)
        """
        return cls(
            _round_scores(np.asarray(log_prior)[:, None])[:, 0],
            {name: _round_scores(feature_scores) for name, feature_scores in log_scores.items()},
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

    def score_rows(self, cell_indices: Mapping[str, Array]) -> Integers:
        """The whole scores of every row, of shape (rows, classes).

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
        return row_scores

    def predict(self, cell_indices: Mapping[str, Array]) -> Integers:
        """The index of the class with the largest score of every row; of equal ones the first.

        Parameters
        ----------
        cell_indices : mapping of feature name to array of int, (rows,)
            Of all features of the candidate, and of any others.
        """
        return np.asarray(self.score_rows(cell_indices).argmax(axis=1), dtype=np.int64)

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
