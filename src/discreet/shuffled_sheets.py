"""Shuffling of sheets with several groups, or with made-up answers of unequal probability.

Their blanket is known exactly: in each group it is the law of the made-up answers. The likelihood
ratio of a sheet is a product over the groups, so a sum over many sheets has too many terms for
:mod:`discreet.shuffling`; here it is convolved by FFT. Derivation: docs/maths.md.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from itertools import product

import numpy as np

from discreet.arrays import Floats

__all__ = ["SheetBlanket"]

CELLS_PER_SD = 30
"""Cells of the grid per standard deviation of a term: rounding adds 1e-4 of the variance."""
TAIL_EXPONENT = 45.0
"""Sums outside the grid have a probability of at most exp(-45), under the tilted law."""
MAX_CELLS = 1 << 23
"""Largest grid; if more cells were needed, a coarser grid gives a looser bound on delta."""
MAX_PAIRS = 27
"""Largest number of pairs of people that are tried; beyond, one bound covers all."""
MAX_TERMS = 3**10
"""Different terms that a sheet may add; with more, nothing is computed and delta is 1."""
FLOAT_SLACK = 1e-5
"""Share of delta that is added for float rounding in a power of a Fourier transform."""


Cells = tuple[tuple[float, float, float], ...]
"""Of one group: (chance of made-up answers, what x and what x' make them more likely by)."""


@dataclass(frozen=True)
class SheetBlanket:
    """The blanket of a sheet: the made-up answers of all groups.

    Parameters
    ----------
    groups : tuple of (float, float, float)
        For each group theta, the probability of the truth, and the probabilities of the least and
        of the second least likely combination of made-up answers.
    """

    groups: tuple[tuple[float, float, float], ...]

    @property
    def ratio(self) -> float:
        """exp(epsilon) of a sheet by itself."""
        return math.prod(1 + theta / (1 - theta) / least for theta, least, _ in self.groups)

    def delta(self, people: int, epsilon: float) -> float:
        """Compute the delta at which the shuffled sheets of this many people satisfy an epsilon.

        Parameters
        ----------
        people : int
        epsilon : float

        Returns
        -------
        float
            An upper bound, for the worst pair of people; 1 where groups that differ from each
            other are too many to convolve.
        """
        pairs = self._pairs()
        if max(map(_most_terms, pairs)) > MAX_TERMS:
            return 1.0
        return max(self._delta(pair, people, epsilon) for pair in pairs)

    def _pairs(self) -> list[tuple[Cells, ...]]:
        """Pairs of people of which one is the worst: in each group they gave the rarest answers.

        Rarer ones say more (docs/maths.md). Which of both has the rarest, and whether both have it,
        matters only where it is rarer than the second.
        """
        options: list[list[Cells]] = []
        for theta, least, second in self.groups:
            gain = theta / (1 - theta)

            def differ(x: float, y: float, gain: float = gain) -> Cells:
                return ((x, 1 + gain / x, 1), (y, 1, 1 + gain / y), (1 - x - y, 1, 1))

            both: Cells = ((least, 1 + gain / least, 1 + gain / least), (1 - least, 1, 1))
            if second <= least:
                options.append([differ(least, least)])
            else:
                options.append([differ(least, second), differ(second, least), both])
        if math.prod(map(len, options)) > MAX_PAIRS:  # as if the second were as rare: above all
            bounds = tuple((theta, least, least) for theta, least, _ in self.groups)
            return SheetBlanket(bounds)._pairs()
        pairs = list(product(*options))
        return [pair for pair in pairs if any(len(cells) == 3 for cells in pair)]

    def _delta(self, pair: tuple[Cells, ...], people: int, epsilon: float) -> float:
        values, chances = self._term(pair, epsilon)
        if values.max() <= 0:
            return 0.0
        tilt = _saddle_point(values, chances)
        weights, _ = _tilted(values, chances, tilt)
        step = math.sqrt(float(weights @ values**2)) / CELLS_PER_SD
        step = max(step, 4 * _half_width(values, weights, people) / MAX_CELLS)
        places, chances = _on_grid(values, chances, step)
        weights, log_sum = _tilted(places * step, chances, tilt)
        half = _half_width(places * step, weights, people)
        cells = 2 ** math.ceil(math.log2(2 * half / step + 4))
        law = np.zeros(cells)
        np.add.at(law, places.astype(np.int64) % cells, weights)
        sums = np.fft.irfft(np.fft.rfft(law) ** people, cells)[1 : cells // 2]
        totals = np.arange(1, cells // 2) * step
        excess = float(sums.clip(0.0) @ (totals * np.exp(-tilt * totals)))
        outside = math.exp(-TAIL_EXPONENT) / (math.e * tilt)  # s exp(-tilt s) is at most that
        bound = math.log((excess + outside) * (1 + FLOAT_SLACK)) + people * log_sum
        return math.exp(min(bound - math.log(people), 0.0))

    def _term(self, pair: tuple[Cells, ...], epsilon: float) -> tuple[Floats, Floats]:
        """What one sheet adds, (R(x) - exp(epsilon) R(x')) / blanket, and with what chance."""
        hidden = math.prod(1 - theta for theta, _, _ in self.groups)
        likelier, chances = np.ones((2, 1)), np.ones(1)
        for cells in sorted(pair):  # groups that are alike follow each other: equal terms are one
            chance, *factors = np.array(cells).T
            both = [np.outer(*one).ravel() for one in zip(likelier, factors, strict=True)]
            likelier, place = np.unique(both, axis=1, return_inverse=True)
            weights = np.outer(chances, chance).ravel()
            chances = np.zeros(likelier.shape[1])
            np.add.at(chances, place.ravel(), weights)
        own, other = likelier
        values = own - math.exp(epsilon) * other
        return np.append(0.0, values), np.append(1 - hidden, hidden * chances)


def _most_terms(pair: tuple[Cells, ...]) -> int:
    """Different terms at most: of groups that are alike, it matters how many are in which cell."""
    alike = Counter(pair).values()
    return math.prod((groups + 1) * (groups + 2) // 2 for groups in alike)


def _tilted(values: Floats, chances: Floats, tilt: float) -> tuple[Floats, float]:
    """The law in proportion to chance * exp(tilt * value), and the log of what it adds up to."""
    largest = float((tilt * values).max())
    weights = chances * np.exp(tilt * values - largest)
    total = float(weights.sum())
    return weights / total, largest + math.log(total)


def _saddle_point(values: Floats, chances: Floats) -> float:
    """The tilt under which a term has a mean of 0: the tail of the sum is then in its middle."""

    def slope(tilt: float) -> float:
        return float(_tilted(values, chances, tilt)[0] @ values)

    low, high = 0.0, 1 / float(values.max())
    while slope(high) < 0:
        low, high = high, 2 * high
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if slope(middle) < 0 else (low, middle)
    return high


def _half_width(values: Floats, weights: Floats, people: int) -> float:
    """Compute how far from 0 a sum can be, except with probability exp(-45) (Bernstein)."""
    mean = float(weights @ values)
    reach = float(np.abs(values - mean).max())
    variance = people * float(weights @ (values - mean) ** 2)
    half = TAIL_EXPONENT * reach / 3
    half += math.sqrt(half**2 + 2 * TAIL_EXPONENT * variance)
    return min(half, people * reach) + people * abs(mean)


def _on_grid(values: Floats, chances: Floats, step: float) -> tuple[Floats, Floats]:
    """The law on multiples of ``step``: each value is split between its two neighbours.

    The mean stays, and sums grow in convex order: the mean of their positive part is bounded from
    above.
    """
    below = np.floor(values / step)
    upper = values / step - below
    return np.append(below, below + 1), np.append(chances * (1 - upper), chances * upper)
