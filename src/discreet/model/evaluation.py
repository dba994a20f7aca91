"""How good a model is: a table of true against predicted classes, and what follows from it.

Scores of two groups of people add up, so that files of any size are scored in pieces and the
folds of a cross-validation are pooled.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from discreet.arrays import Floats, Indices, Integers
from discreet.encoding import class_codes
from discreet.errors import EstimationError
from discreet.model import NaiveBayesModel, normalised
from discreet.schema import Value, text_of

__all__ = ["Scores", "cross_validate", "folds", "score", "wilson"]

Z95 = 1.959963984540054
"""Quantile of the standard normal for 95 % intervals."""
TENTHS = 10
"""Groups of a calibration table."""


def wilson(hits: int, trials: int, z: float = Z95) -> tuple[float, float]:
    """Wilson's interval of a share, 95 % by default; it stays inside [0, 1].

    (p + z²/2n ± z sqrt(p(1-p)/n + z²/4n²)) / (1 + z²/n): Wilson 1927.

    Parameters
    ----------
    hits, trials : int
    z : float
        Quantile of the standard normal; 1.96, for 95 %, by default.

    Examples
    --------
    >>> low, high = wilson(81, 100)
    >>> round(low, 4), round(high, 4)
    (0.7222, 0.8749)
    """
    if trials <= 0:
        return 0.0, 1.0
    share, spread = hits / trials, z * z / trials
    middle = share + spread / 2
    half = z * math.sqrt(share * (1 - share) / trials + spread / (4 * trials))
    low, high = (middle - half) / (1 + spread), (middle + half) / (1 + spread)
    # at the ends the formula is exact, its rounding is not
    return (0.0 if hits == 0 else low), (1.0 if hits == trials else high)


@dataclass(frozen=True, eq=False)
class Scores:
    """What came of predicting rows whose class is known.

    Parameters
    ----------
    classes : tuple
    confusion : array of shape (classes, classes)
        Rows by true class (down) and predicted class (across).
    loss, squares : float
        Sums of -log P(true class) over the rows, and of its square.
    reliability : array of shape (10, 3)
        By how probable the model called its prediction, in tenths: rows, sum of that probability,
        right predictions.
    """

    classes: tuple[Value, ...]
    confusion: Integers
    loss: float
    squares: float = math.nan
    reliability: Floats = field(default_factory=lambda: np.zeros((TENTHS, 3)))

    def __add__(self, other: Scores) -> Scores:
        if not isinstance(other, Scores):
            return NotImplemented
        if self.classes != other.classes:
            raise EstimationError("these scores are about different classes; they cannot be added")
        return Scores(
            self.classes,
            self.confusion + other.confusion,
            self.loss + other.loss,
            self.squares + other.squares,
            self.reliability + other.reliability,
        )

    @property
    def rows(self) -> int:
        """How many rows were predicted."""
        return int(self.confusion.sum())

    @property
    def hits(self) -> int:
        """How many of them rightly."""
        return int(np.trace(self.confusion))

    @property
    def accuracy(self) -> float:
        """Share of rows that were predicted correctly."""
        return self.hits / self.rows if self.rows else math.nan

    @property
    def interval(self) -> tuple[float, float]:
        """95 % interval of the accuracy (Wilson)."""
        return wilson(self.hits, self.rows)

    @property
    def majority(self) -> tuple[Value, float]:
        """The most frequent class, and the accuracy of always saying it."""
        totals = self.confusion.sum(axis=1)
        best = int(np.argmax(totals))
        return self.classes[best], float(totals[best]) / self.rows if self.rows else math.nan

    @property
    def precision(self) -> Floats:
        """Share of right ones among the rows predicted as each class; NaN where there is none."""
        return _ratio(np.diag(self.confusion), self.confusion.sum(axis=0))

    @property
    def recall(self) -> Floats:
        """Share of the rows of each class that were predicted as that class; NaN without rows."""
        return _ratio(np.diag(self.confusion), self.confusion.sum(axis=1))

    @property
    def log_loss(self) -> float:
        """Mean of -log P(true class)."""
        return self.loss / self.rows if self.rows else math.nan

    @property
    def log_loss_interval(self) -> tuple[float, float]:
        """95 % interval of the log loss, by the normal approximation; NaN for a single row."""
        if self.rows < 2:
            return math.nan, math.nan
        spread = max(0.0, self.squares / self.rows - self.log_loss**2) / (self.rows - 1)
        half = Z95 * math.sqrt(spread)
        return max(0.0, self.log_loss - half), self.log_loss + half

    @property
    def calibration_error(self) -> float:
        """Mean difference of confidence and hit rate over the rows, in ten groups.

        The expected calibration error of Naeini, Cooper, Hauskrecht 2015. It is never negative, so
        of few rows it is above zero even for a perfectly calibrated model.
        """
        rows, confidence, hits = self.reliability.T
        return float(np.abs(confidence - hits).sum() / rows.sum()) if rows.sum() else math.nan

    @property
    def calibration_interval(self) -> tuple[float, float]:
        """95 % interval of the calibration error: hits are redrawn in each group, 2000 times."""
        rows, confidence, hits = self.reliability.T
        if not rows.sum():
            return math.nan, math.nan
        rng = np.random.default_rng(0)
        share = np.divide(hits, rows, out=np.zeros(len(rows)), where=rows > 0)
        drawn = rng.binomial(rows.astype(np.int64), np.clip(share, 0, 1), (2000, len(rows)))
        errors = np.abs(confidence - drawn).sum(axis=1) / rows.sum()
        low, high = np.quantile(errors, [0.025, 0.975])
        return float(low), float(high)

    @property
    def by_class(self) -> list[dict[str, Any]]:
        """For each class its rows, precision and recall, with 95 % intervals (Wilson)."""
        right, true = np.diag(self.confusion), self.confusion.sum(axis=1)
        said = self.confusion.sum(axis=0)
        return [
            {
                "class": text_of(value),
                "rows": int(true[k]),
                "precision": float(self.precision[k]),
                "precision_interval": list(wilson(int(right[k]), int(said[k]))),
                "recall": float(self.recall[k]),
                "recall_interval": list(wilson(int(right[k]), int(true[k]))),
            }
            for k, value in enumerate(self.classes)
        ]

    def to_body(self) -> dict[str, Any]:
        """Plain values for JSON."""
        label, share = self.majority
        by_class = {one.pop("class"): one for one in self.by_class}
        return {
            "rows": self.rows,
            "accuracy": self.accuracy,
            "interval": list(self.interval),
            "baseline": {
                "class": text_of(label),
                "accuracy": share,
                "interval": list(wilson(round(share * self.rows), self.rows)),
            },
            "log_loss": self.log_loss,
            "log_loss_interval": list(self.log_loss_interval),
            "calibration_error": self.calibration_error,
            "calibration_interval": list(self.calibration_interval),
            "reliability": [
                {
                    "rows": int(rows),
                    "confidence": float(sure / rows),
                    "hits": float(hits / rows),
                    "interval": list(wilson(int(hits), int(rows))),
                }
                for rows, sure, hits in self.reliability
                if rows
            ],
            "classes": by_class,
            "confusion": self.confusion.tolist(),
        }


def _ratio(part: Integers, whole: Integers) -> Floats:
    return np.asarray(np.divide(part, whole, out=np.full(len(part), np.nan), where=whole > 0))


def score(model: NaiveBayesModel, rows: Any, truth: Any) -> Scores:
    """Predict rows and compare with their true classes.

    Parameters
    ----------
    model : NaiveBayesModel
    rows : data frame, Arrow table, mapping of columns or array
    truth : column of classes
    """
    codes = class_codes(model.schema, truth)
    joint = model.predict_joint_log_proba(rows)
    if len(joint) != len(codes):
        raise EstimationError(f"{len(joint)} rows do not fit {len(codes)} classes")
    size = len(model.schema.classes)
    flat = np.bincount(codes * size + np.argmax(joint, axis=1), minlength=size * size)
    posterior = normalised(joint)
    loss = -posterior[np.arange(len(codes)), codes]
    sure = np.exp(posterior.max(axis=1))
    tenth = np.minimum((TENTHS * sure).astype(np.intp), TENTHS - 1)
    right = np.argmax(joint, axis=1) == codes
    reliability: Floats = np.column_stack(
        [
            np.bincount(tenth, weights=w, minlength=TENTHS)
            for w in (np.ones(len(sure)), sure, right * 1.0)
        ]
    )
    return Scores(
        model.schema.classes,
        flat.reshape(size, size).astype(np.int64),
        float(loss.sum()),
        float((loss * loss).sum()),
        reliability,
    )


def folds(truth: Any, count: int, seed: int = 0) -> Iterator[tuple[Indices, Indices]]:
    """Train and test indices, each class spread evenly over the folds.

    Parameters
    ----------
    truth : column of classes
    count : int
        Number of folds, at least 2.
    seed : int
        The same seed gives the same folds.
    """
    labels = np.asarray(truth)
    if not 2 <= count <= len(labels):
        raise EstimationError(f"{count} folds of {len(labels)} rows; write 2 to {len(labels)}")
    order = np.random.Generator(np.random.PCG64(seed)).permutation(len(labels))
    words = np.array([text_of(value) for value in labels[order]])
    dealt = order[np.argsort(words, kind="stable")]
    fold = np.empty(len(labels), dtype=np.intp)
    fold[dealt] = np.arange(len(labels)) % count
    for one in range(count):
        yield np.flatnonzero(fold != one), np.flatnonzero(fold == one)


def cross_validate(
    fit: Callable[[Any, Any], NaiveBayesModel],
    rows: Any,
    truth: Any,
    *,
    count: int = 10,
    seed: int = 0,
) -> Scores:
    """Pooled scores of models that each learnt from the other folds.

    Parameters
    ----------
    fit : callable
        Takes rows and their classes, returns a model.
    rows : pandas data frame or 2-d array
    truth : array of classes
    count : int, default 10
        Number of folds.
    seed : int
    """
    labels = np.asarray(truth)
    take = rows.iloc.__getitem__ if hasattr(rows, "iloc") else rows.__getitem__
    pooled: Scores | None = None
    for train, test in folds(labels, count, seed):
        part = score(fit(take(train), labels[train]), take(test), labels[test])
        pooled = part if pooled is None else pooled + part
    assert pooled is not None
    return pooled
