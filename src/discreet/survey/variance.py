"""Variance of an estimated share: from the public channel and from sampling respondents.

Every sheet has a score h whose mean over sheets is the share (``survey/inversion.py``). A person
with true answers x contributes the variance E[h^2 | x] - A(x): known for every x, since the channel
is public. So a share has a variance even where the sample shows none, as when an answer was never
sent or there is a single sheet (docs/maths.md).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any

import numpy as np

from discreet.arrays import Floats
from discreet.errors import EstimationError

__all__ = ["ChannelVariance", "Estimate", "compute_score_interval"]

PRIOR_SHEETS = 4
"""Weight of the variance at uniform answers, in sheets, next to the sheets that were sent."""
BISECTION_STEPS = 50
"""Bisections of [0, 1] for each end of an interval."""


@dataclass(frozen=True, eq=False)
class ChannelVariance:
    """Variance that the randomization adds to the score of one sheet, by the true answers.

    Numbers, or arrays with an entry per predicate.

    Parameters
    ----------
    true, false : (least, mean, most)
        Over all answers for which the predicate holds, and for which it does not.
    slope : float
        By how much a sample that overestimates the share overestimates this variance.
    """

    true: tuple[Any, Any, Any]
    false: tuple[Any, Any, Any]
    slope: Any

    @classmethod
    def from_moments(
        cls, tables: Floats, squares: Floats, cubes: Floats, axes: Sequence[int]
    ) -> ChannelVariance:
        """From E[h^2 | x] and E[h^3 | x] for all answers x, which lie along ``axes``.

        The slope is the regression of h^2 - h on h for uniform answers. Where h has two values it
        is exact: then the interval is Wilson's.
        """
        question_axes = tuple(axes)
        is_true = np.asarray(tables, bool)
        added_variances = np.maximum(squares - is_true, 0.0)
        mean_truth, mean_square, mean_cube = (
            moment.mean(question_axes) for moment in (is_true.astype(float), squares, cubes)
        )
        score_covariance = mean_cube - mean_square - (mean_square - mean_truth) * mean_truth
        score_variance = mean_square - mean_truth**2
        slope = np.divide(
            score_covariance,
            score_variance,
            out=np.zeros_like(score_variance),
            where=score_variance > 1e-12,
        )
        ranges = []  # least, mean and most over the chosen answers; zero where there are none
        for is_chosen in (is_true, ~is_true):
            chosen_or_infinite = np.where(is_chosen, added_variances, np.inf)
            chosen_variances = np.where(is_chosen, added_variances, 0.0)
            minimum = np.where(
                is_chosen.any(question_axes), chosen_or_infinite.min(question_axes), 0.0
            )
            mean = chosen_variances.sum(question_axes) / np.maximum(is_chosen.sum(question_axes), 1)
            ranges.append((minimum, mean, chosen_variances.max(question_axes)))
        return cls(ranges[0], ranges[1], slope)

    def compute_at_share(self, share: Any, bound_index: int) -> Any:
        """The least (0), mean (1) or largest (2) variance if the predicate holds for a share."""
        return share * self.true[bound_index] + (1 - share) * self.false[bound_index]

    def estimate_noise(self, share: Any, count: Any, extra: Any, people: int) -> Any:
        """Variance of one sheet if the predicate holds for ``share`` of the people.

        Parameters
        ----------
        share : float or array
        count, extra : float or array
            Sums of h and of h^2 - h over the sheets.
        people : int
        """
        observed_variance = extra / people - self.slope * (count / people - share)
        pooled_variance = (
            people * observed_variance + PRIOR_SHEETS * self.compute_at_share(share, 1)
        ) / (people + PRIOR_SHEETS)
        return np.minimum(
            np.maximum(pooled_variance, self.compute_at_share(share, 0)),
            self.compute_at_share(share, 2),
        )

    def compute_worst(self) -> Any:
        """The largest variance of a score over all populations, sampling of people included.

        The maximum over s of s v1 + (1 - s) v0 + s (1 - s), at s = (1 + v1 - v0) / 2.
        """
        worst_share = np.clip((1 + self.true[2] - self.false[2]) / 2, 0.0, 1.0)
        return self.compute_at_share(worst_share, 2) + worst_share * (1 - worst_share)


@dataclass(frozen=True, eq=False)
class Estimate:
    """For how many people a predicate holds.

    Parameters
    ----------
    count : float
        Unbiased; it may lie below 0 or above the number of people.
    people : int
    extra : float
        Sum of h^2 - h over the sheets: unbiased for the variance that the randomization adds.
    channel : ChannelVariance
    """

    count: float
    people: int
    extra: float
    channel: ChannelVariance

    @property
    def unbiased(self) -> float:
        """Unbiased share: averages of it are right, but it may lie outside [0, 1]."""
        return self.count / self.people

    @property
    def share(self) -> float:
        """Estimated share of the people, from 0 to 1."""
        return min(max(self.unbiased, 0.0), 1.0)

    @property
    def noise_variance(self) -> float:
        """Variance of ``count`` that the randomization adds, for these respondents."""
        sheet_variance = self.channel.estimate_noise(
            self.share, self.count, self.extra, self.people
        )
        return self.people * float(sheet_variance)

    @property
    def variance(self) -> float:
        """Variance of ``count`` for people drawn from a population: noise and sampling together."""
        return self.noise_variance + self.people * self.share * (1 - self.share)

    def interval(self, level: float = 0.95, population: bool = True) -> tuple[float, float]:
        """Interval of the share, inside [0, 1].

        All shares s with ``|share - s| <= z sqrt(variance(s) / people)``, the variance being the
        one that people with a share s have.

        Parameters
        ----------
        level : float, default 0.95
        population : bool, default True
            For the population that the people were drawn from, or for these people.
        """
        if not 0 < level < 1:
            raise EstimationError(f"level is {level!r}; give a number between 0 and 1")
        lower, upper = compute_score_interval(self, level, population)
        return float(lower), float(upper)


def compute_score_interval(estimate: Any, level: float, population: bool = True) -> tuple[Any, Any]:
    """Ends of the intervals of an Estimate, or of one whose count and extra are arrays."""
    z = NormalDist().inv_cdf((1 + level) / 2)
    respondents = estimate.people
    clipped_share = np.clip(estimate.count / respondents, 0.0, 1.0)

    def is_inside(share: Any) -> Any:
        score_variance = estimate.channel.estimate_noise(
            share, estimate.count, estimate.extra, respondents
        )
        if population:
            score_variance = score_variance + share * (1 - share)
        return respondents * (clipped_share - share) ** 2 <= z * z * score_variance

    interval_ends = []
    for range_end in (0.0, 1.0):
        inner, outer = clipped_share, np.full_like(clipped_share, range_end)
        reaches_end = is_inside(outer)
        for _ in range(BISECTION_STEPS):
            middle = (inner + outer) / 2
            is_accepted = is_inside(middle)
            inner = np.where(is_accepted, middle, inner)
            outer = np.where(is_accepted, outer, middle)
        interval_ends.append(np.where(reaches_end, range_end, inner))
    return interval_ends[0], interval_ends[1]
