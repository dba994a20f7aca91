"""What a noisy table of scores says about a model, with intervals that know the noise.

The table counts rows by true class, predicted class and how sure the model was, in groups of a
public grid. Each row is in one cell, so that accuracy, precision, recall, calibration and AUC all
follow from one release. Every interval covers the noise and the sampling of the rows
(docs/maths.md, "A private figure").
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from discreet.arrays import Floats, Integers
from discreet.model.intervals import Z95, solve_score_interval
from discreet.privacy.guarantee import Guarantee, format_rounded_up
from discreet.schema.schema import Value, format_value

__all__ = ["NoisyScores"]

MIN_RANKED_GROUPS = 3
"""Fewest confidence groups from which an area under the curve is computed."""

Interval = tuple[float, float]


@dataclass(frozen=True, eq=False)
class NoisyScores:
    """Noisy counts of scored rows, and what follows from them.

    Parameters
    ----------
    classes : tuple
    counts : array of int, (classes, classes, groups)
        Rows by true class, predicted class and confidence group, with noise: some are negative.
    edges : tuple of float
        Confidence at which the next group begins; one fewer than groups.
    noise_variance : float
        Of each count.
    own_guarantee : Guarantee
        What is promised to the people whose rows were scored, for these figures alone.
    with_model : Guarantee
        The promise to a person who is also among those of whom the model was made.
    same_people : bool, default False
        Whether all of them are.
    rows_per_person : int, default 1
        Most rows of one person; the rows of a person may be alike, which widens intervals.
    """

    classes: tuple[Value, ...]
    counts: Integers
    edges: tuple[float, ...]
    noise_variance: float
    own_guarantee: Guarantee
    with_model: Guarantee
    same_people: bool = False
    rows_per_person: int = 1

    @property
    def rows(self) -> int:
        """Number of rows, with noise; at least zero."""
        return max(0, int(self.counts.sum()))

    @property
    def rows_interval(self) -> Interval:
        """95 % interval of the number of rows in the table."""
        noisy_rows = float(self.counts.sum())
        half_width = Z95 * math.sqrt(self.noise_variance * self.counts.size)
        return max(0.0, noisy_rows - half_width), max(0.0, noisy_rows + half_width)

    @property
    def confusion(self) -> Integers:
        """Noisy rows by true class (down) and predicted class (across)."""
        return np.asarray(self.counts.sum(axis=2))

    @property
    def accuracy(self) -> float:
        """Share of rows that were predicted correctly."""
        return self._compute_share(self._correct_cells)[0]

    @property
    def accuracy_interval(self) -> Interval:
        """95 % interval of the accuracy, among the people of whom these are a sample."""
        return self._compute_share(self._correct_cells)[1]

    @property
    def majority_baseline(self) -> tuple[Value, float, Interval]:
        """The class that is most frequent in the noisy table, its share, and the interval."""
        majority_index = int(np.argmax(self.counts.sum(axis=(1, 2))))
        share, interval = self._compute_share(self._select_cells(true=majority_index))
        return self.classes[majority_index], share, interval

    @property
    def scores_by_class(self) -> list[dict[str, Any]]:
        """For each class its noisy rows, precision, recall and AUC, with 95 % intervals."""
        entries = []
        for class_index, value in enumerate(self.classes):
            true_cells = self._select_cells(true=class_index)
            predicted_cells = self._select_cells(predicted=class_index)
            hit_cells = true_cells & predicted_cells
            precision, precision_interval = self._compute_share(hit_cells, predicted_cells)
            recall, recall_interval = self._compute_share(hit_cells, true_cells)
            auc, auc_interval = self.compute_auc(class_index)
            entries.append(
                {
                    "class": format_value(value),
                    "rows": max(0, int(self.counts[true_cells].sum())),
                    "precision": precision,
                    "precision_interval": list(precision_interval),
                    "recall": recall,
                    "recall_interval": list(recall_interval),
                    "auc": auc,
                    "auc_interval": list(auc_interval),
                }
            )
        return entries

    @property
    def reliability(self) -> list[dict[str, Any]]:
        """For each confidence group its noisy rows, and the share that is right."""
        group_ends = [1 / len(self.classes), *self.edges, 1.0]
        entries = []
        for group, (low, high) in enumerate(pairwise(group_ends)):
            group_cells = self._select_cells(group=group)
            share, interval = self._compute_share(self._correct_cells & group_cells, group_cells)
            entries.append(
                {
                    "confidence": [low, high],
                    "rows": max(0, int(self.counts[group_cells].sum())),
                    "hits": share,
                    "interval": list(interval),
                }
            )
        return entries

    def compute_auc(self, class_index: int) -> tuple[float, Interval]:
        """Area under the ROC curve of a class against all others, and its 95 % interval.

        Of the probability in groups, rows of a group counting half: with more than two classes, a
        row that is predicted as another class is ranked by how sure that prediction was. NaN where
        there are too few groups or too few rows.

        Parameters
        ----------
        class_index : int
        """
        if self.counts.shape[2] < MIN_RANKED_GROUPS or len(self.classes) < 2:
            return math.nan, (math.nan, math.nan)
        other_classes = np.arange(len(self.classes)) != class_index
        own_counts = self._rank_cells(self.counts[class_index], class_index)
        other_counts = self._rank_cells(self.counts[other_classes].sum(axis=0), class_index)
        rank_noise = self._rank_cells(
            np.full(self.counts.shape[1:], self.noise_variance), class_index
        )
        # what a pair of rows adds to the area: 1, 1/2 in the same group, or 0
        ranks = np.arange(len(own_counts))
        pair_gains = np.heaviside(ranks[:, None] - ranks[None, :], 0.5)
        own_variances = rank_noise + self.rows_per_person * own_counts
        other_variances = np.sum(other_classes) * rank_noise + self.rows_per_person * other_counts
        part = float(own_counts @ pair_gains @ other_counts)
        whole = float(own_counts.sum() * other_counts.sum())
        if own_counts.sum() <= 0 or other_counts.sum() <= 0:
            return math.nan, (0.0, 1.0)
        # the variance of part - t whole at three t gives its polynomial
        at_zero, at_half, at_one = (
            _estimate_pair_variance(
                pair_gains - share, own_counts, other_counts, own_variances, other_variances
            )
            for share in (0.0, 0.5, 1.0)
        )
        curvature = 2 * (at_one + at_zero - 2 * at_half)
        variance = (at_zero, at_one - at_zero - curvature, curvature)
        return min(1.0, max(0.0, part / whole)), solve_score_interval(part, whole, variance)

    @property
    def guarantee(self) -> Guarantee:
        """What is promised to the people who were scored; with the model's cost if it is theirs."""
        return self.with_model if self.same_people else self.own_guarantee

    @property
    def promise(self) -> str:
        """The promise in words, and what it adds up to with the model's."""
        if self.same_people:
            return self.guarantee.describe()
        lines = [self.guarantee.describe(is_total=False)]
        if self.with_model.is_private:
            delta_text = (
                f", delta = {format_rounded_up(self.with_model.delta)}"
                if self.with_model.delta
                else ""
            )
            is_same_unit = self.with_model.unit == self.own_guarantee.unit
            lines.append(
                "  For a person who is in the model's data as well, both add up: epsilon = "
                f"{format_rounded_up(self.with_model.epsilon)}{delta_text}"
                + ("." if is_same_unit else f" ({self.with_model.unit}).")
            )
        else:
            lines.append(
                "  For a person who is in the model's data as well this promises nothing, because "
                f"the model does not: {'; '.join(self.with_model.void_reasons)}."
            )
        return "\n".join(lines)

    def __str__(self) -> str:
        """Format the accuracy, next to that of the most frequent class, and the promise."""
        low, high = self.accuracy_interval
        majority_class, share, (share_low, share_high) = self.majority_baseline
        return (
            f"accuracy {self.accuracy:.3f} ({low:.3f} to {high:.3f}); always "
            f"{format_value(majority_class)!r} {share:.3f} ({share_low:.3f} to {share_high:.3f})\n"
            f"{self.promise}"
        )

    def to_body(self) -> dict[str, Any]:
        """Plain values for JSON."""
        majority_class, majority_share, majority_interval = self.majority_baseline
        return {
            "rows": self.rows,
            "rows_interval": list(self.rows_interval),
            "accuracy": self.accuracy,
            "interval": list(self.accuracy_interval),
            "baseline": {
                "class": format_value(majority_class),
                "accuracy": majority_share,
                "interval": list(majority_interval),
            },
            "reliability": self.reliability,
            "classes": {entry.pop("class"): entry for entry in self.scores_by_class},
            "confusion": self.confusion.tolist(),
            "edges": list(self.edges),
            "counts": self.counts.tolist(),
            "noise_variance": self.noise_variance,
            "rows_per_person": self.rows_per_person,
            "guarantee": self.guarantee.to_body(),
            "same_people": self.same_people,
            "with_model": self.with_model.to_body(),
            "promise": self.promise,
        }

    @property
    def _correct_cells(self) -> Any:
        cells = np.zeros(self.counts.shape, dtype=np.bool_)
        class_indices = np.arange(len(self.classes))
        cells[class_indices, class_indices] = True
        return cells

    def _select_cells(
        self, true: int | None = None, predicted: int | None = None, group: int | None = None
    ) -> Any:
        """Mark the cells of a true class, a predicted class or a confidence group."""
        cells = np.zeros(self.counts.shape, dtype=np.bool_)
        cells[
            tuple(slice(None) if index is None else index for index in (true, predicted, group))
        ] = True
        return cells

    def _compute_share(self, part_cells: Any, whole_cells: Any = None) -> tuple[float, Interval]:
        """The share of some cells in others that contain them, and its 95 % interval."""
        if whole_cells is None:
            whole_cells = np.ones(self.counts.shape, dtype=np.bool_)
        part, whole = float(self.counts[part_cells].sum()), float(self.counts[whole_cells].sum())
        if whole <= 0:
            return math.nan, (0.0, 1.0)
        part_noise = self.noise_variance * float(part_cells.sum())
        remainder_noise = self.noise_variance * float((whole_cells & ~part_cells).sum())
        # (1-t)^2 part_noise + t^2 remainder_noise + whole t (1-t), as a polynomial in t
        sampling_variance = self.rows_per_person * whole
        variance = (
            part_noise,
            sampling_variance - 2 * part_noise,
            part_noise + remainder_noise - sampling_variance,
        )
        share = min(1.0, max(0.0, part / whole))
        return share, solve_score_interval(part, whole, variance)

    @staticmethod
    def _rank_cells(cell_values: Any, class_index: int) -> Floats:
        """Sum (predicted, groups) values by rank: the surest of another class comes first."""
        is_own = np.arange(len(cell_values)) == class_index
        other_values = cell_values[~is_own].sum(axis=0)
        return np.concatenate([other_values[::-1], cell_values[class_index]]).astype(np.float64)


def _estimate_pair_variance(
    pair_values: Floats,
    own_counts: Floats,
    other_counts: Floats,
    own_variances: Floats,
    other_variances: Floats,
) -> float:
    """Variance of p'Aq for independent noisy counts p and q, estimated without bias.

    With variances V and W of the counts it is q'A'VAq + p'AWA'p + tr(AWA'V); of noisy counts the
    first two terms are each too large by the third.
    """
    own_effects, other_effects = pair_values @ other_counts, own_counts @ pair_values
    excess = own_variances @ (pair_values**2) @ other_variances
    return float(own_variances @ own_effects**2 + other_variances @ other_effects**2 - excess)
