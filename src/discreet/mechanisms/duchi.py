"""Duchi's mean oracles: a sign for one number, a corner of the cube for many.

Duchi, Jordan and Wainwright 2018; with the even case repaired (docs/maths.md).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from itertools import product
from typing import Any, ClassVar

import numpy as np

from discreet.arrays import Integers
from discreet.losses import exp_below, log
from discreet.mechanisms.mean_oracle import MeanOracle, within
from discreet.mechanisms.mean_scalar import ScalarOracle
from discreet.mechanisms.oracle import Flags, percent
from discreet.randomness import Random
from discreet.randomness.samplers import ONE

__all__ = ["Duchi", "DuchiMany"]


@dataclass(frozen=True)
class Duchi(ScalarOracle):
    """One number as one sign: 1 (plus) or 0 (minus), plus being likelier for larger numbers.

    Parameters
    ----------
    epsilon : float
    resolution : int, default 1024
        Grid steps from 0 to 1, a power of two.

    Examples
    --------
    >>> oracle = Duchi(1.0)
    >>> round(float(oracle.units[0]), 3), round(oracle.worst_variance(), 3)
    (2.164, 4.683)
    """

    name: ClassVar[str] = "duchi"

    @cached_property
    def slope(self) -> int:
        """What one grid step adds to the threshold of plus, over 2^64."""
        e = exp_below(self._budget)
        # P(+) = 1/2 + t (e-1) / (2 (e+1)), t = level / R; floor: towards privacy
        return math.floor(Fraction(ONE // 2, self.resolution) * (e - 1) / (e + 1))

    @cached_property
    def units(self) -> tuple[Fraction, ...]:
        return (Fraction(ONE // 2, self.resolution * self.slope),)  # (e+1) / (e-1)

    def variance(self, t: float = 0.0) -> float:
        return float(self.units[0]) ** 2 - within(t) ** 2

    def epsilon_exact(self) -> float:
        most = ONE // 2 + self.resolution * self.slope
        return log(Fraction(most, ONE - most))

    def numbers(self) -> list[int]:
        return [0, 1]

    def row(self, level: int) -> list[Fraction]:
        plus = Fraction(ONE // 2 + level * self.slope, ONE)
        return [1 - plus, plus]

    def draw(self, levels: Integers, random: Random) -> Integers:
        # 2^63 + level * slope, modulo 2^64 as unsigned words compute
        thresholds = np.uint64(ONE // 2) + levels.astype(np.uint64) * np.uint64(self.slope)
        return random.bernoulli_each(thresholds).astype(np.int64)

    def possible(self, numbers: Integers) -> Flags:
        return np.isin(numbers, (0, 1))

    def rule(self) -> str:
        return "a sign is 0 or 1"

    def signed(self, numbers: Integers) -> Integers:
        return (2 * numbers - 1)[None]

    def _largest(self) -> tuple[int, ...]:
        return (1,)

    def in_words(self) -> str:
        """Say what is sent, and how often it follows the truth."""
        most = self.row(self.resolution)[1]
        return (
            f"What is sent is a plus or a minus: plus with a chance of {percent(most)} at the "
            f"upper bound, 50 % in the middle and {percent(1 - most)} at the lower bound."
        )

    def _details(self) -> dict[str, Any]:
        return {"slope": str(self.slope)}  # threshold of plus: 2^63 + level * slope


@dataclass(frozen=True)
class DuchiMany(MeanOracle):
    """All numbers of a respondent as one corner of the cube, one sign (0 or 1) per coordinate.

    Each number becomes a random sign with that mean; the report is a corner drawn uniformly from
    those that agree with most of these signs (probability e / (e+1)) or from the others. With an
    even number of coordinates one more, always 0, takes part and is dropped, so that there are no
    ties: as published, ties cost a claimed epsilon of 1 really 1.31 (listing 5.3: up to 2.1).

    Parameters
    ----------
    epsilon : float
        For all coordinates together.
    size : int
        Number of coordinates.
    resolution : int, default 1024
        Grid steps from 0 to 1, a power of two.
    """

    name: ClassVar[str] = "duchi-many"

    epsilon: float
    size: int
    resolution: int = field(default=1024, kw_only=True)

    @property
    def width(self) -> int:
        return self.size

    @property
    def signs(self) -> int:
        """Number of signs drawn: odd, so that a majority exists."""
        return self.size | 1

    @cached_property
    def agree(self) -> int:
        """P(the corner agrees with most signs), over 2^64."""
        e = exp_below(self._budget)
        return math.floor(ONE * e / (e + 1))

    @cached_property
    def units(self) -> tuple[Fraction, ...]:
        d = self.signs
        # B = C_d (e+1) / (e-1), C_d = 2^(d-1) / binom(d-1, (d-1)/2); e/(e+1) - 1/(e+1) as rounded
        return (Fraction(2 ** (d - 1), math.comb(d - 1, d // 2)) * ONE / (2 * self.agree - ONE),)

    def variance(self, t: float = 0.0) -> float:
        return float(self.units[0]) ** 2 - within(t) ** 2

    def epsilon_exact(self) -> float:
        return log(Fraction(self.agree, ONE - self.agree))

    def _outputs(self) -> Integers:
        return np.array(list(product((0, 1), repeat=self.size)), np.int64)

    def _row(self, levels: Sequence[int]) -> list[Fraction]:
        R, n = self.resolution, self.size
        # of the 2^(n-1) corners on either side; a tie (n even) is decided by the dropped sign
        weight = [2 * (ONE - self.agree)] * (n + 1)
        weight[n // 2 + 1 :] = [2 * self.agree] * (n - n // 2)
        if n % 2 == 0:
            weight[n // 2] = ONE
        corners = list(product((0, 1), repeat=n))
        likelihood = [
            math.prod(R + i if v else R - i for i, v in zip(levels, signs, strict=True))
            for signs in corners
        ]
        whole = (2 * R) ** n * ONE * 2**n
        return [
            Fraction(
                sum(
                    likely * weight[sum(map(int.__eq__, corner, signs))]
                    for likely, signs in zip(likelihood, corners, strict=True)
                    if likely
                ),
                whole,
            )
            for corner in corners
        ]

    def _draw(self, levels: Integers, random: Random) -> Integers:
        people, R = len(levels), self.resolution
        # P(sign is plus) = 1/2 + t/2
        plus = random.integers(2 * R, levels.size).reshape(levels.shape) < R + levels
        # d odd: of an agreement pattern and its negative, one agrees with most signs. A uniform
        # pattern, negated when it is not the wanted one, is therefore uniform on its side.
        pattern = random.bernoulli_words(ONE // 2, people * self.signs).reshape(people, self.signs)
        wanted = random.bernoulli_words(self.agree, people)
        negate = (2 * pattern.sum(axis=1) > self.signs) != wanted
        agrees = pattern[:, : self.size] ^ negate[:, None]
        reports: Integers = (plus == agrees).astype(np.int64)
        return reports

    def _fault(self, reports: Integers) -> tuple[Flags, str]:
        return ~np.isin(reports, (0, 1)), "signs are 0 or 1"

    def _totals(self, reports: Integers) -> Integers:
        totals: Integers = 2 * reports.sum(axis=0, dtype=np.int64) - len(reports)
        return totals[None]

    def _largest(self) -> tuple[int, ...]:
        return (1,)

    def _output_count(self) -> int:
        return 1 << self.size

    def in_words(self) -> str:
        """Say what is sent, and how often it follows the truth."""
        agree = Fraction(self.agree, ONE)
        return (
            f"What is sent is a plus or a minus for each of {self.size} numbers. Each number is "
            "first rounded to a plus or a minus at random; what is sent agrees with most of these "
            f"with a chance of {percent(agree)}, and disagrees with most of them otherwise."
        )

    def _details(self) -> dict[str, Any]:
        return {"agree": str(self.agree), "signs": self.signs}
