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
from discreet.mechanisms.mean_oracle import MeanOracle, require_in_range
from discreet.mechanisms.mean_scalar import ScalarOracle
from discreet.mechanisms.oracle import Flags, format_percent
from discreet.privacy.rounding import exp_rounded_down, log_to_nearest
from discreet.randomness import Random
from discreet.randomness.samplers import PROBABILITY_UNIT

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
    >>> round(float(oracle.units[0]), 3), round(oracle.compute_worst_variance(), 3)
    (2.164, 4.683)
    """

    name: ClassVar[str] = "duchi"

    @cached_property
    def slope(self) -> int:
        """What one grid step adds to the threshold of plus, over 2^64."""
        exp_epsilon = exp_rounded_down(self._spendable_epsilon)
        # P(+) = 1/2 + t (e-1) / (2 (e+1)), t = level / R; floor: towards privacy
        return math.floor(
            Fraction(PROBABILITY_UNIT // 2, self.resolution) * (exp_epsilon - 1) / (exp_epsilon + 1)
        )

    @cached_property
    def units(self) -> tuple[Fraction, ...]:
        return (Fraction(PROBABILITY_UNIT // 2, self.resolution * self.slope),)  # (e+1) / (e-1)

    def variance(self, t: float = 0.0) -> float:
        return float(self.units[0]) ** 2 - require_in_range(t) ** 2

    def compute_exact_epsilon(self) -> float:
        largest_threshold = PROBABILITY_UNIT // 2 + self.resolution * self.slope
        return log_to_nearest(Fraction(largest_threshold, PROBABILITY_UNIT - largest_threshold))

    def list_numbers(self) -> list[int]:
        return [0, 1]

    def compute_row(self, level: int) -> list[Fraction]:
        plus_probability = Fraction(PROBABILITY_UNIT // 2 + level * self.slope, PROBABILITY_UNIT)
        return [1 - plus_probability, plus_probability]

    def draw_numbers(self, levels: Integers, random: Random) -> Integers:
        # 2^63 + level * slope, modulo 2^64 as unsigned words compute
        thresholds = np.uint64(PROBABILITY_UNIT // 2) + levels.astype(np.uint64) * np.uint64(
            self.slope
        )
        return random.bernoulli_each(thresholds).astype(np.int64)

    def is_possible(self, numbers: Integers) -> Flags:
        return np.isin(numbers, (0, 1))

    def format_rule(self) -> str:
        return "a sign is 0 or 1"

    def compute_contributions(self, numbers: Integers) -> Integers:
        return (2 * numbers - 1)[None]

    def _get_unit_limits(self) -> tuple[int, ...]:
        return (1,)

    def to_plain_words(self) -> str:
        """Say what is sent, and how often it follows the truth."""
        largest_probability = self.compute_row(self.resolution)[1]
        return (
            "What is sent is a plus or a minus: plus with a chance of "
            f"{format_percent(largest_probability)} at the upper bound, 50 % in the middle and "
            f"{format_percent(1 - largest_probability)} at the lower bound."
        )

    def _get_own_parameters(self) -> dict[str, Any]:
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
    def sign_count(self) -> int:
        """Number of signs drawn: odd, so that a majority exists."""
        return self.size | 1

    @cached_property
    def agreement_threshold(self) -> int:
        """P(the corner agrees with most signs), over 2^64."""
        exp_epsilon = exp_rounded_down(self._spendable_epsilon)
        return math.floor(PROBABILITY_UNIT * exp_epsilon / (exp_epsilon + 1))

    @cached_property
    def units(self) -> tuple[Fraction, ...]:
        d = self.sign_count
        # B = C_d (e+1) / (e-1), C_d = 2^(d-1) / binom(d-1, (d-1)/2); e/(e+1) - 1/(e+1) as rounded
        return (
            Fraction(2 ** (d - 1), math.comb(d - 1, d // 2))
            * PROBABILITY_UNIT
            / (2 * self.agreement_threshold - PROBABILITY_UNIT),
        )

    def variance(self, t: float = 0.0) -> float:
        return float(self.units[0]) ** 2 - require_in_range(t) ** 2

    def compute_exact_epsilon(self) -> float:
        return log_to_nearest(
            Fraction(self.agreement_threshold, PROBABILITY_UNIT - self.agreement_threshold)
        )

    def _list_outputs(self) -> Integers:
        return np.array(list(product((0, 1), repeat=self.size)), np.int64)

    def _compute_row(self, levels: Sequence[int]) -> list[Fraction]:
        R, n = self.resolution, self.size
        # of the 2^(n-1) corners on either side; a tie (n even) is decided by the dropped sign
        corner_weights = [2 * (PROBABILITY_UNIT - self.agreement_threshold)] * (n + 1)
        corner_weights[n // 2 + 1 :] = [2 * self.agreement_threshold] * (n - n // 2)
        if n % 2 == 0:
            corner_weights[n // 2] = PROBABILITY_UNIT
        corners = list(product((0, 1), repeat=n))
        sign_likelihoods = [
            math.prod(
                R + level if sign else R - level for level, sign in zip(levels, signs, strict=True)
            )
            for signs in corners
        ]
        common_denominator = (2 * R) ** n * PROBABILITY_UNIT * 2**n
        return [
            Fraction(
                sum(
                    sign_likelihood * corner_weights[sum(map(int.__eq__, corner, signs))]
                    for sign_likelihood, signs in zip(sign_likelihoods, corners, strict=True)
                    if sign_likelihood
                ),
                common_denominator,
            )
            for corner in corners
        ]

    def _draw_reports(self, levels: Integers, random: Random) -> Integers:
        respondents, R = len(levels), self.resolution
        # P(sign is plus) = 1/2 + t/2
        is_plus = random.integers(2 * R, levels.size).reshape(levels.shape) < R + levels
        # d odd: of an agreement pattern and its negative, one agrees with most signs. A uniform
        # pattern, negated when it is not the wanted one, is therefore uniform on its side.
        agreement_pattern = random.bernoulli_words(
            PROBABILITY_UNIT // 2, respondents * self.sign_count
        ).reshape(respondents, self.sign_count)
        wants_majority = random.bernoulli_words(self.agreement_threshold, respondents)
        needs_negation = (2 * agreement_pattern.sum(axis=1) > self.sign_count) != wants_majority
        agrees_with_sign = agreement_pattern[:, : self.size] ^ needs_negation[:, None]
        reports: Integers = (is_plus == agrees_with_sign).astype(np.int64)
        return reports

    def _find_faults(self, reports: Integers) -> tuple[Flags, str]:
        return ~np.isin(reports, (0, 1)), "signs are 0 or 1"

    def _sum_reports(self, reports: Integers) -> Integers:
        sign_totals: Integers = 2 * reports.sum(axis=0, dtype=np.int64) - len(reports)
        return sign_totals[None]

    def _get_unit_limits(self) -> tuple[int, ...]:
        return (1,)

    def _count_outputs(self) -> int:
        return 1 << self.size

    def to_plain_words(self) -> str:
        """Say what is sent, and how often it follows the truth."""
        agreement_probability = Fraction(self.agreement_threshold, PROBABILITY_UNIT)
        return (
            f"What is sent is a plus or a minus for each of {self.size} numbers. Each number is "
            "first rounded to a plus or a minus at random; what is sent agrees with most of these "
            f"with a chance of {format_percent(agreement_probability)}, and disagrees with most of "
            "them otherwise."
        )

    def _get_own_parameters(self) -> dict[str, Any]:
        return {"agree": str(self.agreement_threshold), "signs": self.sign_count}
