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

__all__ = ["ChannelVariance", "Estimate", "score_interval"]

TYPICAL = 4
"""Weight of the variance at uniform answers, in sheets, next to the sheets that were sent."""
STEPS = 50
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
    def of(
        cls, tables: Floats, squares: Floats, cubes: Floats, axes: Sequence[int]
    ) -> ChannelVariance:
        """From E[h^2 | x] and E[h^3 | x] for all answers x, which lie along ``axes``.

        The slope is the regression of h^2 - h on h for uniform answers. Where h has two values it
        is exact: then the interval is Wilson's.
        """
        places = tuple(axes)
        holds = np.asarray(tables, bool)
        added = np.maximum(squares - holds, 0.0)
        one, two, three = (m.mean(places) for m in (holds.astype(float), squares, cubes))
        covariance, variance = three - two - (two - one) * one, two - one**2
        slope = np.divide(covariance, variance, out=np.zeros_like(variance), where=variance > 1e-12)
        return cls(_range(added, holds, places), _range(added, ~holds, places), slope)

    def at(self, share: Any, which: int) -> Any:
        """The least (0), mean (1) or largest (2) variance if the predicate holds for a share."""
        return share * self.true[which] + (1 - share) * self.false[which]

    def noise(self, share: Any, count: Any, extra: Any, people: int) -> Any:
        """Variance of one sheet if the predicate holds for ``share`` of the people.

        Parameters
        ----------
        share : float or array
        count, extra : float or array
            Sums of h and of h^2 - h over the sheets.
        people : int
        """
        seen = extra / people - self.slope * (count / people - share)
        whole = (people * seen + TYPICAL * self.at(share, 1)) / (people + TYPICAL)
        return np.minimum(np.maximum(whole, self.at(share, 0)), self.at(share, 2))

    def worst(self) -> Any:
        """The largest variance of a score over all populations, sampling of people included.

        The maximum over s of s v1 + (1 - s) v0 + s (1 - s), at s = (1 + v1 - v0) / 2.
        """
        share = np.clip((1 + self.true[2] - self.false[2]) / 2, 0.0, 1.0)
        return self.at(share, 2) + share * (1 - share)


def _range(added: Floats, chosen: Any, places: tuple[int, ...]) -> tuple[Any, Any, Any]:
    """Least, mean and most over the chosen answers; zero where there are none."""
    some = chosen.any(places)
    least = np.where(some, np.where(chosen, added, np.inf).min(places), 0.0)
    mean = np.where(chosen, added, 0.0).sum(places) / np.maximum(chosen.sum(places), 1)
    most = np.where(chosen, added, 0.0).max(places)
    return least, mean, most


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
    def noise(self) -> float:
        """Variance of ``count`` that the randomization adds, for these respondents."""
        noise = self.channel.noise(self.share, self.count, self.extra, self.people)
        return self.people * float(noise)

    @property
    def variance(self) -> float:
        """Variance of ``count`` for people drawn from a population: noise and sampling together."""
        return self.noise + self.people * self.share * (1 - self.share)

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
        low, high = score_interval(self, level, population)
        return float(low), float(high)


def score_interval(found: Any, level: float, population: bool = True) -> tuple[Any, Any]:
    """Ends of the intervals of an Estimate, or of one whose count and extra are arrays."""
    z = NormalDist().inv_cdf((1 + level) / 2)
    people, centre = found.people, np.clip(found.count / found.people, 0.0, 1.0)

    def inside(share: Any) -> Any:
        spread = found.channel.noise(share, found.count, found.extra, people)
        if population:
            spread = spread + share * (1 - share)
        return people * (centre - share) ** 2 <= z * z * spread

    ends = []
    for end in (0.0, 1.0):
        within, beyond = centre, np.full_like(centre, end)
        whole = inside(beyond)
        for _ in range(STEPS):
            middle = (within + beyond) / 2
            good = inside(middle)
            within, beyond = np.where(good, middle, within), np.where(good, beyond, middle)
        ends.append(np.where(whole, end, within))
    return ends[0], ends[1]
