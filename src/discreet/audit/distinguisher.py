"""Find the event that best distinguishes two inputs, and bound epsilon by it.

Scores are fitted on some samples, an event "the score is at least t" is chosen on others, and its
bound is computed on yet others.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.stats import beta, binom

from discreet.audit.artefact import Leaves
from discreet.audit.scores import Score, make_candidates

__all__ = ["DistinguishingEvent", "choose_event", "compute_detectable_loss", "compute_lower_bound"]

COMPARISON_ALPHA = 1e-3
"""Error probability at which candidate events are compared; small, because there are many."""
DETECTION_POWER = 0.9
"""Power at which a loss counts as detectable."""


@dataclass(frozen=True)
class DistinguishingEvent:
    """An event: a score of an artefact is at least a threshold.

    Parameters
    ----------
    score : callable
        Artefacts to numbers.
    threshold : float
        The event is a score of at least this.
    swapped : bool
        Whether it is the other input that makes it likelier.
    description : str
    """

    score: Score
    threshold: float
    swapped: bool
    description: str

    def count(self, artefacts: Sequence[Leaves]) -> int:
        """Count the artefacts in which the event occurs."""
        is_seen = self.score(artefacts) * (-1 if self.swapped else 1) >= self.threshold
        return int(np.count_nonzero(is_seen))


def compute_lower_bound(
    first_count: Any, second_count: Any, sample_count: int, alpha: float, delta: float = 0.0
) -> Any:
    """Lower confidence bound on epsilon, at level 1 - alpha.

    P(A | one) - delta <= exp(epsilon) P(A | other): Clopper-Pearson bounds for both sides, each
    wrong with probability alpha/2.

    Parameters
    ----------
    first_count, second_count : int or array of int
        How often the event was seen with either input.
    sample_count : int
        Of each input.
    alpha : float
    delta : float

    Examples
    --------
    >>> round(float(compute_lower_bound(1000, 0, 1000, 0.01)), 2)
    5.24
    """
    return np.maximum(
        _compute_log_ratio(first_count, second_count, sample_count, alpha, delta), 0.0
    )


def _compute_log_ratio(
    first_count: Any, second_count: Any, sample_count: int, alpha: float, delta: float
) -> Any:
    """The same bound without truncation at zero, to rank events."""
    lower_probability = _compute_lower_probability(first_count, sample_count, alpha)
    upper_probability = _compute_upper_probability(second_count, sample_count, alpha)
    return np.log(np.maximum(lower_probability - delta, 1e-300) / upper_probability)


def _compute_lower_probability(event_count: Any, sample_count: int, alpha: float) -> Any:
    k = np.asarray(event_count, float)
    with np.errstate(all="ignore"):
        return np.where(k > 0, beta.ppf(alpha / 2, k, sample_count - k + 1), 0.0)


def _compute_upper_probability(event_count: Any, sample_count: int, alpha: float) -> Any:
    k = np.asarray(event_count, float)
    with np.errstate(all="ignore"):
        return np.where(k < sample_count, beta.ppf(1 - alpha / 2, k + 1, sample_count - k), 1.0)


def compute_detectable_loss(
    sample_count: int, alpha: float, promised: float, delta: float = 0.0, noise_shares: int = 1
) -> float:
    """Compute the smallest loss that these samples show to exceed a promise, 9 times in 10.

    For a loss that is shared evenly by independent numbers with Laplace noise, and its best event,
    "each lies on the far side": of probability p = (1 + exp(-loss / parts))^-parts with one input
    and exp(-loss) p with the other. A distinguisher that has to find this event does no better.

    Parameters
    ----------
    sample_count : int
        Of each input, with which the event is confirmed.
    alpha : float
        Of the bound.
    promised, delta : float
    noise_shares : int
        Among how many numbers the loss is shared.

    Returns
    -------
    float
        Infinite if no loss would be found.

    Examples
    --------
    >>> round(compute_detectable_loss(500, 0.01, 1.0), 2)
    1.39
    >>> round(compute_detectable_loss(500, 0.01, 1.0, noise_shares=3), 2)
    1.95
    """
    counts = np.arange(sample_count + 1)
    # with s sightings of one input, how many of the other are few enough
    max_rate = (_compute_lower_probability(counts, sample_count, alpha) - delta) / math.exp(
        promised
    )
    max_other_counts = (
        np.searchsorted(
            _compute_upper_probability(counts, sample_count, alpha), max_rate, side="left"
        )
        - 1
    )

    def compute_power(loss: float) -> float:
        p = (1 + math.exp(-loss / noise_shares)) ** -noise_shares
        few_probability = np.where(
            max_other_counts >= 0,
            binom.cdf(max_other_counts, sample_count, p * math.exp(-loss)),
            0.0,
        )
        return float(binom.pmf(counts, sample_count, p) @ few_probability)

    low_loss, high_loss = promised, promised + 30.0
    if compute_power(high_loss) < DETECTION_POWER:
        return math.inf
    while high_loss - low_loss > 1e-3:
        middle_loss = (low_loss + high_loss) / 2
        low_loss, high_loss = (
            (low_loss, middle_loss)
            if compute_power(middle_loss) >= DETECTION_POWER
            else (middle_loss, high_loss)
        )
    return high_loss


def choose_event(
    fit_samples: tuple[Sequence[Leaves], Sequence[Leaves]],
    choose_samples: tuple[Sequence[Leaves], Sequence[Leaves]],
    delta: float = 0.0,
) -> DistinguishingEvent | None:
    """Choose the event with the largest bound on epsilon; None if all artefacts are equal.

    Parameters
    ----------
    fit_samples, choose_samples : pair of lists of leaves
        Artefacts of either input: scores are fitted on the first, the event chosen on the second.
        Its bound must then be computed on further ones.
    delta : float
    """
    best_choice: tuple[float, DistinguishingEvent | None] = (-math.inf, None)
    sample_count = len(choose_samples[0])
    for candidate in make_candidates(*fit_samples):
        side_scores = [candidate.score(side) for side in choose_samples]
        for swapped in (False, True):
            first_scores, second_scores = (
                np.sort(-score_array) if swapped else np.sort(score_array)
                for score_array in side_scores
            )
            if swapped:
                first_scores, second_scores = second_scores, first_scores
            thresholds = np.unique(np.concatenate([first_scores, second_scores]))
            thresholds = thresholds[np.isfinite(thresholds)]
            if len(thresholds) > 200:
                thresholds = thresholds[np.linspace(0, len(thresholds) - 1, 200).astype(int)]
            first_counts, second_counts = (
                np.count_nonzero(np.isfinite(side)) - np.searchsorted(side, thresholds, side="left")
                for side in (first_scores, second_scores)
            )
            # stricter than the stated confidence: the best of many is selected
            log_ratios = _compute_log_ratio(
                first_counts, second_counts, sample_count, COMPARISON_ALPHA, delta
            )
            # of two nearly equal events, prefer the simpler one
            if len(thresholds) and log_ratios.max() > best_choice[0] + (
                0.1 if best_choice[1] else 0.0
            ):
                threshold = float(thresholds[int(np.argmax(log_ratios))])
                description = candidate.describe_event(threshold, swapped)
                best_choice = (
                    float(log_ratios.max()),
                    DistinguishingEvent(candidate.score, threshold, swapped, description),
                )
    return best_choice[1]
