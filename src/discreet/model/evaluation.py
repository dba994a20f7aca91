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
from discreet.errors import EstimationError
from discreet.model import NaiveBayesModel, compute_log_posterior
from discreet.schema.cells import encode_classes
from discreet.schema.row_errors import row_error_context
from discreet.schema.schema import Value, format_value

__all__ = ["Scores", "compute_wilson_interval", "cross_validate", "score_model", "split_folds"]

Z95 = 1.959963984540054
"""Quantile of the standard normal for 95 % intervals."""
CALIBRATION_GROUPS = 10
"""Groups of a calibration table."""


def compute_wilson_interval(hits: int, trials: int, z: float = Z95) -> tuple[float, float]:
    """Wilson's interval of a share, 95 % by default; it stays inside [0, 1].

    (p + z²/2n ± z sqrt(p(1-p)/n + z²/4n²)) / (1 + z²/n): Wilson 1927.

    Parameters
    ----------
    hits, trials : int
    z : float
        Quantile of the standard normal; 1.96, for 95 %, by default.

    Examples
    --------
    >>> low, high = compute_wilson_interval(81, 100)
    >>> round(low, 4), round(high, 4)
    (0.7222, 0.8749)
    """
    if trials <= 0:
        return 0.0, 1.0
    hit_share, z_term = hits / trials, z * z / trials
    centre_term = hit_share + z_term / 2
    half_width = z * math.sqrt(hit_share * (1 - hit_share) / trials + z_term / (4 * trials))
    low, high = (centre_term - half_width) / (1 + z_term), (centre_term + half_width) / (1 + z_term)
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
    reliability: Floats = field(default_factory=lambda: np.zeros((CALIBRATION_GROUPS, 3)))

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
    def accuracy_interval(self) -> tuple[float, float]:
        """95 % interval of the accuracy (Wilson)."""
        return compute_wilson_interval(self.hits, self.rows)

    @property
    def majority_baseline(self) -> tuple[Value, float]:
        """The most frequent class, and the accuracy of always saying it."""
        class_totals = self.confusion.sum(axis=1)
        majority_index = int(np.argmax(class_totals))
        majority_rows = float(class_totals[majority_index])
        return self.classes[majority_index], majority_rows / self.rows if self.rows else math.nan

    @property
    def precision(self) -> Floats:
        """Share of right ones among the rows predicted as each class; NaN where there is none."""
        return _divide_counts(np.diag(self.confusion), self.confusion.sum(axis=0))

    @property
    def recall(self) -> Floats:
        """Share of the rows of each class that were predicted as that class; NaN without rows."""
        return _divide_counts(np.diag(self.confusion), self.confusion.sum(axis=1))

    @property
    def log_loss(self) -> float:
        """Mean of -log P(true class)."""
        return self.loss / self.rows if self.rows else math.nan

    @property
    def log_loss_interval(self) -> tuple[float, float]:
        """95 % interval of the log loss, by the normal approximation; NaN for a single row."""
        if self.rows < 2:
            return math.nan, math.nan
        mean_variance = max(0.0, self.squares / self.rows - self.log_loss**2) / (self.rows - 1)
        half_width = Z95 * math.sqrt(mean_variance)
        return max(0.0, self.log_loss - half_width), self.log_loss + half_width

    @property
    def calibration_error(self) -> float:
        """Mean difference of confidence and hit rate over the rows, in ten groups.

        The expected calibration error of Naeini, Cooper, Hauskrecht 2015. It is never negative, so
        of few rows it is above zero even for a perfectly calibrated model.
        """
        group_rows, confidence, group_hits = self.reliability.T
        if not group_rows.sum():
            return math.nan
        return float(np.abs(confidence - group_hits).sum() / group_rows.sum())

    @property
    def calibration_interval(self) -> tuple[float, float]:
        """95 % interval of the calibration error: hits are redrawn in each group, 2000 times."""
        group_rows, confidence, group_hits = self.reliability.T
        if not group_rows.sum():
            return math.nan, math.nan
        rng = np.random.default_rng(0)
        hit_shares = np.divide(
            group_hits, group_rows, out=np.zeros(len(group_rows)), where=group_rows > 0
        )
        drawn_hits = rng.binomial(
            group_rows.astype(np.int64), np.clip(hit_shares, 0, 1), (2000, len(group_rows))
        )
        drawn_errors = np.abs(confidence - drawn_hits).sum(axis=1) / group_rows.sum()
        low, high = np.quantile(drawn_errors, [0.025, 0.975])
        return float(low), float(high)

    @property
    def scores_by_class(self) -> list[dict[str, Any]]:
        """For each class its rows, precision and recall, with 95 % intervals (Wilson)."""
        class_counts = [np.diag(self.confusion), self.confusion.sum(axis=1)]
        class_counts.append(self.confusion.sum(axis=0))
        class_rows = zip(self.classes, *(counts.tolist() for counts in class_counts), strict=True)
        return [
            {
                "class": format_value(value),
                "rows": true_rows,
                "precision": float(self.precision[class_index]),
                "precision_interval": list(compute_wilson_interval(hits, predicted_rows)),
                "recall": float(self.recall[class_index]),
                "recall_interval": list(compute_wilson_interval(hits, true_rows)),
            }
            for class_index, (value, hits, true_rows, predicted_rows) in enumerate(class_rows)
        ]

    def to_body(self) -> dict[str, Any]:
        """Plain values for JSON."""
        majority_class, majority_share = self.majority_baseline
        class_scores = {entry.pop("class"): entry for entry in self.scores_by_class}
        return {
            "rows": self.rows,
            "accuracy": self.accuracy,
            "interval": list(self.accuracy_interval),
            "baseline": {
                "class": format_value(majority_class),
                "accuracy": majority_share,
                "interval": list(
                    compute_wilson_interval(round(majority_share * self.rows), self.rows)
                ),
            },
            "log_loss": self.log_loss,
            "log_loss_interval": list(self.log_loss_interval),
            "calibration_error": self.calibration_error,
            "calibration_interval": list(self.calibration_interval),
            "reliability": [
                {
                    "rows": int(group_rows),
                    "confidence": float(confidence_sum / group_rows),
                    "hits": float(group_hits / group_rows),
                    "interval": list(compute_wilson_interval(int(group_hits), int(group_rows))),
                }
                for group_rows, confidence_sum, group_hits in self.reliability
                if group_rows
            ],
            "classes": class_scores,
            "confusion": self.confusion.tolist(),
        }


def _divide_counts(part_counts: Integers, total_counts: Integers) -> Floats:
    shares = np.full(len(part_counts), np.nan)
    return np.asarray(np.divide(part_counts, total_counts, out=shares, where=total_counts > 0))


def score_model(model: NaiveBayesModel, rows: Any, truth: Any) -> Scores:
    """Predict rows and compare with their true classes.

    Parameters
    ----------
    model : NaiveBayesModel
    rows : data frame, Arrow table, mapping of columns or array
    truth : column of classes
    """
    with row_error_context(model.schema, {model.schema.target: truth}):
        true_codes = encode_classes(model.schema, truth)
    log_joint = model.predict_joint_log_proba(rows)
    if len(log_joint) != len(true_codes):
        raise EstimationError(f"{len(log_joint)} rows do not fit {len(true_codes)} classes")
    class_count = len(model.schema.classes)
    flat_confusion = np.bincount(
        true_codes * class_count + np.argmax(log_joint, axis=1), minlength=class_count * class_count
    )
    log_posterior = compute_log_posterior(log_joint)
    row_losses = -log_posterior[np.arange(len(true_codes)), true_codes]
    row_confidence = np.exp(log_posterior.max(axis=1))
    confidence_group = np.minimum(
        (CALIBRATION_GROUPS * row_confidence).astype(np.intp), CALIBRATION_GROUPS - 1
    )
    is_correct = np.argmax(log_joint, axis=1) == true_codes
    reliability: Floats = np.column_stack(
        [
            np.bincount(confidence_group, weights=group_weights, minlength=CALIBRATION_GROUPS)
            for group_weights in (np.ones(len(row_confidence)), row_confidence, is_correct * 1.0)
        ]
    )
    return Scores(
        model.schema.classes,
        flat_confusion.reshape(class_count, class_count).astype(np.int64),
        float(row_losses.sum()),
        float((row_losses * row_losses).sum()),
        reliability,
    )


def split_folds(truth: Any, count: int, seed: int = 0) -> Iterator[tuple[Indices, Indices]]:
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
    row_order = np.random.Generator(np.random.PCG64(seed)).permutation(len(labels))
    label_texts = np.array([format_value(value) for value in labels[row_order]])
    dealt_rows = row_order[np.argsort(label_texts, kind="stable")]
    row_folds = np.empty(len(labels), dtype=np.intp)
    row_folds[dealt_rows] = np.arange(len(labels)) % count
    for fold_index in range(count):
        yield np.flatnonzero(row_folds != fold_index), np.flatnonzero(row_folds == fold_index)


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
    take_rows = rows.iloc.__getitem__ if hasattr(rows, "iloc") else rows.__getitem__
    pooled_scores: Scores | None = None
    for train_rows, test_rows in split_folds(labels, count, seed):
        fold_scores = score_model(
            fit(take_rows(train_rows), labels[train_rows]), take_rows(test_rows), labels[test_rows]
        )
        pooled_scores = fold_scores if pooled_scores is None else pooled_scores + fold_scores
    assert pooled_scores is not None
    return pooled_scores
