"""The piecewise mean oracle on a grid, and its mixture with Duchi's.

Wang, Xiao, Yang, Zhao, Hui, Shin, Shin and Yu 2019, section III-B. The reports are the
integers -M .. M. For grid integer i the window i-w .. i+w has the larger probability, each of its
2w+1 points exp(epsilon) times that of a point outside. As M = R + w, the window reaches both ends
and 2R points are always outside, so that the mean of a report is exactly proportional to i.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar, Literal, TypeAlias

import numpy as np

from discreet.arrays import Integers
from discreet.errors import SchemaError
from discreet.mechanisms.duchi import Duchi
from discreet.mechanisms.mean_oracle import compute_rounding_variance
from discreet.mechanisms.mean_scalar import ScalarOracle
from discreet.mechanisms.oracle import Flags, format_percent
from discreet.privacy.rounding import exp_rounded_down, log_to_nearest
from discreet.randomness import Random
from discreet.randomness.samplers import PROBABILITY_UNIT

__all__ = ["Hybrid", "Piecewise"]

Window: TypeAlias = Literal["least", "published"]


@dataclass(frozen=True)
class _ChannelShape:
    """A piecewise channel: R grid steps, w points on either side, P(in the window) = inside."""

    R: int
    w: int
    inside_probability: Fraction

    @classmethod
    def with_ratio(cls, R: int, w: int, ratio: Fraction) -> _ChannelShape:
        """Return the one whose points inside are exactly e times as likely as those outside."""
        return cls(R, w, ratio * (2 * w + 1) / (ratio * (2 * w + 1) + 2 * R))

    @property
    def slope(self) -> Fraction:
        """E[report] / i = P - (1-P)(2w+1) / (2R): all points outside together weigh -(2w+1) i."""
        return self.inside_probability - (1 - self.inside_probability) * Fraction(
            2 * self.w + 1, 2 * self.R
        )

    @property
    def variance_at_zero(self) -> Fraction:
        """Variance of report / (R slope) at i = 0; at t = i / R it is t^2 (1/slope - 1) more.

        With ``low`` the probability of a point outside, E[report^2] = slope (i^2 + w(w+1)/3)
        + low M(M+1)(2M+1)/3: a uniform part on all points, and the excess in the window.
        """
        R, w, slope, M = self.R, self.w, self.slope, self.R + self.w
        outside_probability = (1 - self.inside_probability) / (2 * R)
        mean_square = slope * Fraction(w * (w + 1), 3) + outside_probability * Fraction(
            M * (M + 1) * (2 * M + 1), 3
        )
        return mean_square / (R * slope) ** 2

    @property
    def worst_variance(self) -> Fraction:
        """The variance at t = 1 or -1."""
        return self.variance_at_zero + 1 / self.slope - 1


def _find_minimum(compute_cost: Callable[[int], Fraction], highest: int) -> int:
    """Return where a cost on 0 .. last that falls and then rises is least."""
    lowest = 0
    while lowest < highest:
        middle = (lowest + highest) // 2
        if compute_cost(middle) <= compute_cost(middle + 1):
            highest = middle
        else:
            lowest = middle + 1
    return lowest


def _require_window(window: str) -> None:
    if window not in ("least", "published"):
        raise SchemaError(f'window is {window!r}; write "least" or "published"')


@dataclass(frozen=True)
class Piecewise(ScalarOracle):
    """One number, reported as an integer that is likely to be near it.

    Parameters
    ----------
    epsilon : float
    window : {"least", "published"} or int, default "least"
        How wide "near" is. ``"least"`` has the least worst-case variance (at epsilon 3, 22 % below
        the published one); ``"published"`` is the window of the paper, exp(-epsilon/2) of the
        points outside. An integer w means 2w+1 points.
    resolution : int, default 1024
        Grid steps from 0 to 1, a power of two.
    """

    name: ClassVar[str] = "piecewise"

    window: Window | int = "least"

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(self.window, int):
            _require_window(self.window)
        elif not 0 <= self.window <= self.resolution:
            raise SchemaError(f"window is {self.window}; give 0 to resolution = {self.resolution}")

    @cached_property
    def half_width(self) -> int:
        """Points of the window on either side of its middle, w."""
        if isinstance(self.window, int):
            return self.window
        if self.window == "published":
            # continuous: (C-1)/(C+1) = exp(-eps/2) = (2w+1) / (2R); floor is the nearest w
            return math.floor(self.resolution / exp_rounded_down(self._spendable_epsilon / 2))
        exp_epsilon, R = exp_rounded_down(self._spendable_epsilon), self.resolution
        return _find_minimum(
            lambda w: _ChannelShape.with_ratio(R, w, exp_epsilon).worst_variance, R
        )

    @cached_property
    def inside_threshold(self) -> int:
        """P(report in the window), over 2^64; floor: towards privacy."""
        shape = _ChannelShape.with_ratio(
            self.resolution, self.half_width, exp_rounded_down(self._spendable_epsilon)
        )
        return math.floor(shape.inside_probability * PROBABILITY_UNIT)

    @property
    def largest(self) -> int:
        """M: reports are -M .. M."""
        return self.resolution + self.half_width

    @cached_property
    def _shape(self) -> _ChannelShape:
        return _ChannelShape(
            self.resolution, self.half_width, Fraction(self.inside_threshold, PROBABILITY_UNIT)
        )

    @cached_property
    def units(self) -> tuple[Fraction, ...]:
        return (1 / (self.resolution * self._shape.slope),)

    def variance(self, t: float = 0.0) -> float:
        slope = float(self._shape.slope)
        rounding_variance = compute_rounding_variance(t, self.resolution)
        return float(self._shape.variance_at_zero) + (t**2 + rounding_variance) / slope - t**2

    @cached_property
    def _point_probabilities(self) -> tuple[Fraction, Fraction]:
        """Probability of a point inside, and of one outside."""
        window_probability = self._shape.inside_probability
        return window_probability / (2 * self.half_width + 1), (1 - window_probability) / (
            2 * self.resolution
        )

    def compute_exact_epsilon(self) -> float:
        inside_point, outside_point = self._point_probabilities
        return log_to_nearest(inside_point / outside_point)

    def list_numbers(self) -> list[int]:
        return list(range(-self.largest, self.largest + 1))

    def compute_row(self, level: int) -> list[Fraction]:
        inside_point, outside_point = self._point_probabilities
        return [
            inside_point if abs(number - level) <= self.half_width else outside_point
            for number in self.list_numbers()
        ]

    def draw_numbers(self, levels: Integers, random: Random) -> Integers:
        level_shape, level_count, window_start = levels.shape, levels.size, levels - self.half_width
        is_inside = random.bernoulli_words(self.inside_threshold, level_count).reshape(level_shape)
        inside_numbers = window_start + random.integers(
            2 * self.half_width + 1, level_count
        ).reshape(level_shape)
        outside_numbers = (
            random.integers(2 * self.resolution, level_count).reshape(level_shape) - self.largest
        )
        outside_numbers += np.where(
            outside_numbers >= window_start, 2 * self.half_width + 1, 0
        )  # skip the window
        return np.where(is_inside, inside_numbers, outside_numbers)

    def is_possible(self, numbers: Integers) -> Flags:
        return (numbers >= -self.largest) & (numbers <= self.largest)

    def format_rule(self) -> str:
        return f"numbers are -{self.largest} to {self.largest}"

    def compute_contributions(self, numbers: Integers) -> Integers:
        return numbers[None]

    def _get_unit_limits(self) -> tuple[int, ...]:
        return (self.largest,)

    def to_plain_words(self) -> str:
        """Say what is sent, and how often it is near the truth."""
        window_probability, R = Fraction(self.inside_threshold, PROBABILITY_UNIT), self.resolution
        return (
            f"What is sent is a number from {-self.largest / R:.3g} to {self.largest / R:.3g}, on "
            f"a scale where yours lies from -1 to 1: within {(self.half_width + 0.5) / R:.2g} of "
            f"yours with a chance of {format_percent(window_probability)}, anywhere else "
            "otherwise."
        )

    def _get_own_parameters(self) -> dict[str, Any]:
        return {
            "inside": str(self.inside_threshold),
            "half": self.half_width,
            "largest": self.largest,
        }


@dataclass(frozen=True)
class Hybrid(ScalarOracle):
    """One number by ``Piecewise`` or by ``Duchi``, drawn at random: the least worst-case variance.

    A report within -M .. M is Piecewise's; -(M+1) and M+1 are Duchi's minus and plus.

    Parameters
    ----------
    epsilon : float
    window : {"least", "published"}, default "least"
        ``"published"``: Piecewise's published window, drawn with probability 1 - exp(-epsilon/2)
        where epsilon > 0.61, never below. ``"least"``: window and probability of the least
        worst-case variance (at epsilon 3, 16 % below the published one).
    resolution : int, default 1024
        Grid steps from 0 to 1, a power of two.
    """

    name: ClassVar[str] = "hybrid"

    window: Window = "least"

    def __post_init__(self) -> None:
        super().__post_init__()
        _require_window(self.window)

    @cached_property
    def duchi(self) -> Duchi:
        return Duchi(self.epsilon, resolution=self.resolution)

    @cached_property
    def _window_and_share(self) -> tuple[int, Fraction]:
        """Window (w) and share of Piecewise.

        Duchi's variance is U^2 - t^2, Piecewise's t^2 (1/slope - 1) + V: with a share of slope t
        drops out (the published share is the published window's slope) and the variance is
        slope V + (1 - slope) U^2.
        """
        exp_epsilon, R = exp_rounded_down(self._spendable_epsilon), self.resolution
        duchi_variance = ((exp_epsilon + 1) / (exp_epsilon - 1)) ** 2

        def compute_cost(w: int) -> Fraction:
            shape = _ChannelShape.with_ratio(R, w, exp_epsilon)
            return shape.slope * shape.variance_at_zero + (1 - shape.slope) * duchi_variance

        if self.window == "published":
            w = Piecewise(self.epsilon, "published", resolution=R).half_width
            published_share = 1 - 1 / exp_rounded_down(self._spendable_epsilon / 2)
            return w, published_share if self.epsilon > 0.61 else Fraction(0)
        w = _find_minimum(compute_cost, R)
        return w, _ChannelShape.with_ratio(R, w, exp_epsilon).slope if compute_cost(
            w
        ) < duchi_variance else Fraction(0)

    @cached_property
    def piecewise(self) -> Piecewise:
        return Piecewise(self.epsilon, self._window_and_share[0], resolution=self.resolution)

    @cached_property
    def piecewise_threshold(self) -> int:
        """P(Piecewise), over 2^64; it does not depend on the value."""
        return round(self._window_and_share[1] * PROBABILITY_UNIT)

    @property
    def sign_number(self) -> int:
        """M + 1: the number that stands for Duchi's plus."""
        return self.piecewise.largest + 1

    @property
    def units(self) -> tuple[Fraction, ...]:
        return self.piecewise.units + self.duchi.units

    def variance(self, t: float = 0.0) -> float:
        piecewise_share = (
            self.piecewise_threshold / PROBABILITY_UNIT
        )  # both parts are unbiased, so the variances mix
        return piecewise_share * self.piecewise.variance(t) + (
            1 - piecewise_share
        ) * self.duchi.variance(t)

    def compute_exact_epsilon(self) -> float:
        duchi_epsilon = self.duchi.compute_exact_epsilon()
        return (
            max(duchi_epsilon, self.piecewise.compute_exact_epsilon())
            if self.piecewise_threshold
            else duchi_epsilon
        )

    def list_numbers(self) -> list[int]:
        piecewise_numbers = self.piecewise.list_numbers() if self.piecewise_threshold else []
        return [-self.sign_number, *piecewise_numbers, self.sign_number]

    def compute_row(self, level: int) -> list[Fraction]:
        piecewise_share = Fraction(self.piecewise_threshold, PROBABILITY_UNIT)
        piecewise_row = (
            [piecewise_share * p for p in self.piecewise.compute_row(level)]
            if self.piecewise_threshold
            else []
        )
        minus_probability, plus_probability = self.duchi.compute_row(level)
        return [
            (1 - piecewise_share) * minus_probability,
            *piecewise_row,
            (1 - piecewise_share) * plus_probability,
        ]

    def draw_numbers(self, levels: Integers, random: Random) -> Integers:
        uses_piecewise = random.bernoulli_words(self.piecewise_threshold, levels.size).reshape(
            levels.shape
        )
        piecewise_numbers = self.piecewise.draw_numbers(levels, random)
        duchi_bits = self.duchi.draw_numbers(levels, random)
        return np.where(uses_piecewise, piecewise_numbers, (2 * duchi_bits - 1) * self.sign_number)

    def is_possible(self, numbers: Integers) -> Flags:
        if self.piecewise_threshold:
            return (numbers >= -self.sign_number) & (numbers <= self.sign_number)
        return np.isin(numbers, (-self.sign_number, self.sign_number))

    def format_rule(self) -> str:
        largest_number = self.sign_number
        return (
            f"numbers are -{largest_number} to {largest_number}"
            if self.piecewise_threshold
            else f"numbers are -{largest_number} or {largest_number}"
        )

    def compute_contributions(self, numbers: Integers) -> Integers:
        duchi_signs = (numbers == self.sign_number).astype(np.int64) - (
            numbers == -self.sign_number
        )
        return np.stack([np.where(duchi_signs == 0, numbers, 0), duchi_signs])

    def _get_unit_limits(self) -> tuple[int, ...]:
        return (self.piecewise.largest, 1)

    def to_plain_words(self) -> str:
        """Say what is sent, and how often it is near the truth."""
        piecewise_share = Fraction(self.piecewise_threshold, PROBABILITY_UNIT)
        if not self.piecewise_threshold:
            return self.duchi.to_plain_words()
        return (
            f"One of two ways is drawn. With a chance of {format_percent(piecewise_share)}: "
            f"{self.piecewise.to_plain_words()} With a chance of "
            f"{format_percent(1 - piecewise_share)}: {self.duchi.to_plain_words()}"
        )

    def _get_own_parameters(self) -> dict[str, Any]:
        return {
            "share": str(self.piecewise_threshold),
            "sign": self.sign_number,
            "piecewise": self.piecewise.get_parameters(),
            "duchi": self.duchi.get_parameters(),
        }
