"""How well scores rank rows: areas under curves, from counts in fine bins that add up.

Log-odds are counted in bins on a public scale, fine enough that areas agree with those of exact
scores to three digits and more, so that tables of any size are ranked in pieces.
"""

from __future__ import annotations

import math

import numpy as np

from discreet.arrays import Floats, Integers
from discreet.model.intervals import Z95, compute_wilson_interval

__all__ = [
    "compute_auc",
    "compute_average_precision",
    "compute_log_odds",
    "count_ranked_classes",
    "count_ranks",
]

RANK_BINS = 4096
"""Bins of log-odds; areas of 7 tables were within .0002 of exact ones, average precision within
.001: docs/experiments/central.md, "Areas under curves, counted"."""
MAX_RANKED_LOG_ODDS = 1000.0
"""Log-odds beyond this share the outer bins."""

Interval = tuple[float, float]


def count_ranked_classes(class_count: int) -> int:
    """Number of classes that are ranked against all others; of two classes the second is enough.

    Parameters
    ----------
    class_count : int
    """
    return class_count if class_count > 2 else 1


def compute_log_odds(joint_scores: Floats) -> Floats:
    """Log-odds of each class against all others: log P - log(1 - P), of shape (rows, classes).

    Parameters
    ----------
    joint_scores : array of float, (rows, classes)
    """
    best = joint_scores.max(axis=1, keepdims=True)
    is_impossible = np.isneginf(best)  # under every class: nothing is known
    centred_scores = np.where(is_impossible, 0.0, joint_scores - np.where(is_impossible, 0.0, best))
    is_best = np.arange(joint_scores.shape[1]) == np.argmax(centred_scores, axis=1)[:, None]
    # next to the likeliest class, which has a weight of 1, the others lose no digits
    weights = np.exp(centred_scores)
    other_weights = np.where(is_best, 1.0, weights.sum(axis=1, keepdims=True) - weights)
    log_odds = centred_scores - np.log(other_weights)
    other_scores = np.where(is_best, -np.inf, centred_scores)
    runner_up = np.maximum(other_scores.max(axis=1, keepdims=True), -1e300)
    with np.errstate(divide="ignore"):  # where no other class is possible, the odds are infinite
        other_totals = np.log(np.exp(other_scores - runner_up).sum(axis=1)) + runner_up[:, 0]
    return np.where(is_best, -other_totals[:, None], log_odds)


def count_ranks(joint_scores: Floats, true_codes: Integers) -> Integers:
    """Count rows by bin of log-odds: of shape (ranked classes, 2, bins), others before own rows.

    Parameters
    ----------
    joint_scores : array of float, (rows, classes)
    true_codes : array of int
        Class index of every row.
    """
    class_count = joint_scores.shape[1]
    log_odds = compute_log_odds(joint_scores)
    # bins are fine around even odds and wide where nearly all are sure
    scale = math.asinh(MAX_RANKED_LOG_ODDS)
    positions = np.arcsinh(np.clip(log_odds, -MAX_RANKED_LOG_ODDS, MAX_RANKED_LOG_ODDS)) / scale
    bins = np.minimum(((positions + 1) * (RANK_BINS / 2)).astype(np.intp), RANK_BINS - 1)
    ranked_classes = [1] if class_count == 2 else range(class_count)
    return np.array(
        [
            np.bincount(
                bins[:, class_index] + RANK_BINS * (true_codes == class_index),
                minlength=2 * RANK_BINS,
            ).reshape(2, RANK_BINS)
            for class_index in ranked_classes
        ],
        dtype=np.int64,
    )


def compute_auc(other_counts: Integers, own_counts: Integers) -> tuple[float, Interval]:
    """Area under the ROC curve and its 95 % interval; NaN without rows of both kinds.

    The variance is DeLong's (DeLong, DeLong, Clarke-Pearson 1988), the interval on the scale of
    log-odds. Where every own row is above every other one, it is Wilson's for the smaller of both
    numbers.

    Parameters
    ----------
    other_counts, own_counts : array of int
        Rows by bin, from the lowest score to the highest.
    """
    other_rows, own_rows = int(other_counts.sum()), int(own_counts.sum())
    if not other_rows or not own_rows:
        return math.nan, (math.nan, math.nan)
    others_below = (np.cumsum(other_counts) - other_counts / 2) / other_rows
    own_above = 1 - (np.cumsum(own_counts) - own_counts / 2) / own_rows
    auc = float(own_counts @ others_below) / own_rows
    variance = float(own_counts @ (others_below - auc) ** 2) / (own_rows * max(1, own_rows - 1))
    variance += float(other_counts @ (own_above - auc) ** 2) / (other_rows * max(1, other_rows - 1))
    if not 0 < auc < 1 or variance == 0:
        smaller_count = min(other_rows, own_rows)
        return auc, compute_wilson_interval(round(auc * smaller_count), smaller_count)
    return auc, _make_logit_interval(auc, math.sqrt(variance))


def compute_average_precision(
    other_counts: Integers, own_counts: Integers
) -> tuple[float, Interval]:
    """Mean precision over the own rows, from the highest score down, and its 95 % interval.

    The interval is the binomial one on the scale of log-odds (Boyd, Eng, Page 2013), which is
    rather too wide where nearly all of the highest scores are right.

    Parameters
    ----------
    other_counts, own_counts : array of int
        Rows by bin, from the lowest score to the highest.
    """
    own_rows = int(own_counts.sum())
    if not own_rows:
        return math.nan, (math.nan, math.nan)
    own_from_top, others_from_top = (
        np.cumsum(counts[::-1])[::-1] for counts in (own_counts, other_counts)
    )
    precision = own_from_top / np.maximum(own_from_top + others_from_top, 1)
    average_precision = float(own_counts @ precision) / own_rows
    if average_precision >= 1:
        return 1.0, compute_wilson_interval(own_rows, own_rows)
    deviation = math.sqrt(average_precision * (1 - average_precision) / own_rows)
    return average_precision, _make_logit_interval(average_precision, deviation)


def _make_logit_interval(share: float, deviation: float) -> Interval:
    """A 95 % interval that is symmetric in log-odds, so that it stays inside (0, 1)."""
    log_odds = math.log(share / (1 - share))
    half_width = Z95 * deviation / (share * (1 - share))
    low, high = (1 / (1 + math.exp(-min(700.0, max(-700.0, log_odds + sign * half_width))))
                 for sign in (-1, 1))  # fmt: skip
    return low, high
