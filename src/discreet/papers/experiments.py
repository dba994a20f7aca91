"""What the experiments of several papers do: split the rows of a table, train, score."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from discreet.datasets import Dataset

__all__ = ["repeat_score", "score_split", "split_rows"]


def repeat_score(repeats: int, compute_score: Callable[[int], float]) -> dict[str, list[float]]:
    """Accuracy in every repetition, given its number.

    Parameters
    ----------
    repeats : int
    compute_score : callable
    """
    return {"accuracy": [compute_score(repeat) for repeat in range(repeats)]}


def split_rows(dataset: Dataset, repeat: int, row_limit: int | None = None) -> Any:
    """Indices of 80 % of the rows to learn from, and of 20 % to be tested on.

    Parameters
    ----------
    dataset : Dataset
    repeat : int
        Seed of the split.
    row_limit : int, optional
        Number of rows that are drawn first.
    """
    row_order = np.random.default_rng(repeat).permutation(len(dataset.y))[:row_limit]
    return np.split(row_order, [int(0.8 * len(row_order))])


def score_split(estimator: Any, dataset: Dataset, training_rows: Any, test_rows: Any) -> float:
    """Accuracy on the test rows of an estimator that is fitted on the training rows.

    Parameters
    ----------
    estimator : classifier
    dataset : Dataset
    training_rows, test_rows : array of int
    """
    X, y = dataset.X, dataset.y
    estimator.fit(X.iloc[training_rows], y[training_rows])
    return float(estimator.score(X.iloc[test_rows], y[test_rows]))
