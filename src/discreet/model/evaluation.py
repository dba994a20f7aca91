"""How good a model is: a table of true against predicted classes, and what follows from it.

Scores of two groups of people add up, so that files of any size are scored in pieces and the
folds of a cross-validation are pooled.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from discreet.arrays import Floats, Indices, Integers
from discreet.errors import EstimationError
from discreet.model import NaiveBayesModel, compute_log_posterior
from discreet.model.costs import CostScores, decide_by_cost
from discreet.model.intervals import Z95, compute_wilson_interval
from discreet.model.ranking import (
    compute_auc,
    compute_average_precision,
    count_ranks,
)
from discreet.schema.cells import encode_classes
from discreet.schema.row_errors import row_error_context
from discreet.schema.schema import Value, format_value

__all__ = ["Scores", "cross_validate", "score_joint", "score_model", "split_folds"]

CALIBRATION_GROUPS = 10
"""Groups of a calibration table."""


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
    ranks : array of shape (ranked classes, 2, bins)
        Rows by log-odds of a class, others before its own: see :mod:`discreet.model.ranking`.
    costs : tuple of float, optional
        Of missing each class.
    cost_confusion : array of shape (classes, classes) or 0
        Rows by true class and by the class that is decided by cost.
    """

    classes: tuple[Value, ...]
    confusion: Integers
    loss: float
    squares: float = math.nan
    reliability: Floats = field(default_factory=lambda: np.zeros((CALIBRATION_GROUPS, 3)))
    ranks: Integers = field(default_factory=lambda: np.zeros((0, 2, 0), dtype=np.int64))
    costs: tuple[float, ...] | None = None
    cost_confusion: Integers | int = 0

    def __add__(self, other: Scores) -> Scores:
        if not isinstance(other, Scores):
            return NotImplemented
        if self.classes != other.classes:
            raise EstimationError("these scores are about different classes; they cannot be added")
        if self.costs != other.costs:
            raise EstimationError("these scores are about different costs; they cannot be added")
        return Scores(
            self.classes,
            self.confusion + other.confusion,
            self.loss + other.loss,
            self.squares + other.squares,
            self.reliability + other.reliability,
            self.ranks + other.ranks,
            self.costs,
            self.cost_confusion + other.cost_confusion,
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
    def auc(self) -> float:
        """Area under the ROC curve; with more than two classes, the mean of each against all."""
        return self._average_areas("auc")[0]

    @property
    def auc_interval(self) -> tuple[float, float]:
        """95 % interval of the area (DeLong); of a mean, at most that wide."""
        return self._average_areas("auc")[1]

    @property
    def average_precision(self) -> float:
        """Average precision of the second of two classes; of more, the mean over the classes."""
        return self._average_areas("average_precision")[0]

    @property
    def average_precision_interval(self) -> tuple[float, float]:
        """95 % interval of the average precision; of a mean, at most that wide."""
        return self._average_areas("average_precision")[1]

    @property
    def areas_by_class(self) -> list[dict[str, Any]]:
        """For each class the area under its ROC curve and its average precision, with intervals."""
        entries = []
        for class_index in range(len(self.classes)):
            if not self.ranks.size:
                other_counts = own_counts = np.zeros(1, dtype=np.int64)
            elif len(self.classes) == 2 and class_index == 0:  # the second class, upside down
                own_counts, other_counts = self.ranks[0][:, ::-1]
            else:
                other_counts, own_counts = self.ranks[class_index if len(self.ranks) > 1 else 0]
            auc, auc_interval = compute_auc(other_counts, own_counts)
            precision, precision_interval = compute_average_precision(other_counts, own_counts)
            entries.append(
                {
                    "auc": auc,
                    "auc_interval": list(auc_interval),
                    "average_precision": precision,
                    "average_precision_interval": list(precision_interval),
                }
            )
        return entries

    def _average_areas(self, name: str) -> tuple[float, tuple[float, float]]:
        """The area of the second of two classes, or the mean over all that have one.

        A mean deviates at most by the mean of the deviations, whatever the areas share.
        """
        entries = self.areas_by_class[1:] if len(self.classes) == 2 else self.areas_by_class
        known_areas = [
            (entry[name], *entry[f"{name}_interval"])
            for entry in entries
            if not math.isnan(entry[name])
        ]
        if not known_areas:
            return math.nan, (math.nan, math.nan)
        mean, low, high = np.mean(known_areas, axis=0).tolist()
        return mean, (low, high)

    @property
    def cost_scores(self) -> CostScores | None:
        """What decisions by cost would have cost; None where no costs were given."""
        if self.costs is None or isinstance(self.cost_confusion, int):
            return None
        return CostScores(self.classes, self.costs, self.confusion, self.cost_confusion)

    @property
    def scores_by_class(self) -> list[dict[str, Any]]:
        """For each class its rows, precision, recall and areas, with 95 % intervals."""
        class_counts = [np.diag(self.confusion), self.confusion.sum(axis=1)]
        class_counts.append(self.confusion.sum(axis=0))
        class_rows = zip(self.classes, *(counts.tolist() for counts in class_counts), strict=True)
        class_areas = self.areas_by_class
        return [
            {
                "class": format_value(value),
                "rows": true_rows,
                "precision": float(self.precision[class_index]),
                "precision_interval": list(compute_wilson_interval(hits, predicted_rows)),
                "recall": float(self.recall[class_index]),
                "recall_interval": list(compute_wilson_interval(hits, true_rows)),
                **class_areas[class_index],
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
            "auc": self.auc,
            "auc_interval": list(self.auc_interval),
            "average_precision": self.average_precision,
            "average_precision_interval": list(self.average_precision_interval),
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
            **({} if self.cost_scores is None else {"costs": self.cost_scores.to_body()}),
        }


def _divide_counts(part_counts: Integers, total_counts: Integers) -> Floats:
    shares = np.full(len(part_counts), np.nan)
    return np.asarray(np.divide(part_counts, total_counts, out=shares, where=total_counts > 0))


def score_model(
    model: NaiveBayesModel, rows: Any, truth: Any, costs: Sequence[float] | None = None
) -> Scores:
    """Predict rows and compare with their true classes.

    Parameters
    ----------
    model : NaiveBayesModel
    rows : data frame, Arrow table, mapping of columns or array
    truth : column of classes
    costs : sequence of float, optional
        Of missing each class: decisions by cost are scored as well.
    """
    with row_error_context(model.schema, {model.schema.target: truth}):
        true_codes = encode_classes(model.schema, truth).astype(np.int64)
    joint_scores = model.predict_joint_log_proba(rows)
    if len(joint_scores) != len(true_codes):
        raise EstimationError(f"{len(joint_scores)} rows do not fit {len(true_codes)} classes")
    return score_joint(model, joint_scores, true_codes, costs)


def score_joint(
    model: NaiveBayesModel,
    joint_scores: Floats,
    true_codes: Integers,
    costs: Sequence[float] | None = None,
) -> Scores:
    """Compare joint log-probabilities with true classes.

    Parameters
    ----------
    model : NaiveBayesModel
    joint_scores : array of float, (rows, classes)
        What the model predicted.
    true_codes : array of int
        Class index of every row.
    costs : sequence of float, optional
        Of missing each class.
    """
    decisions = np.argmax(joint_scores, axis=1)
    log_posterior = compute_log_posterior(joint_scores)
    row_losses = -log_posterior[np.arange(len(true_codes)), true_codes]
    row_confidence = np.exp(log_posterior.max(axis=1))
    confidence_group = np.minimum(
        (CALIBRATION_GROUPS * row_confidence).astype(np.intp), CALIBRATION_GROUPS - 1
    )
    is_correct = decisions == true_codes
    reliability: Floats = np.column_stack(
        [
            np.bincount(confidence_group, weights=group_weights, minlength=CALIBRATION_GROUPS)
            for group_weights in (np.ones(len(row_confidence)), row_confidence, is_correct * 1.0)
        ]
    )
    return Scores(
        model.schema.classes,
        _count_confusion(true_codes, decisions, joint_scores.shape[1]),
        float(row_losses.sum()),
        float((row_losses * row_losses).sum()),
        reliability,
        count_ranks(joint_scores, true_codes),
        None if costs is None else tuple(costs),
        0
        if costs is None
        else _count_confusion(
            true_codes, decide_by_cost(joint_scores, costs), joint_scores.shape[1]
        ),
    )


def _count_confusion(true_codes: Integers, decisions: Integers, class_count: int) -> Integers:
    """Rows by true class (down) and decided class (across)."""
    flat_confusion = np.bincount(
        true_codes * class_count + decisions, minlength=class_count * class_count
    )
    return flat_confusion.reshape(class_count, class_count).astype(np.int64)


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
