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
from discreet.losses import exp_below, log
from discreet.mechanisms.duchi import Duchi
from discreet.mechanisms.mean_oracle import rounding
from discreet.mechanisms.mean_scalar import ScalarOracle
from discreet.mechanisms.oracle import Flags, percent
from discreet.randomness import Random
from discreet.randomness.samplers import ONE

__all__ = ["Hybrid", "Piecewise"]

Window: TypeAlias = Literal["least", "published"]


@dataclass(frozen=True)
class _Shape:
    """A piecewise channel: R grid steps, w points on either side, P(in the window) = inside."""

    R: int
    w: int
    inside: Fraction

    @classmethod
    def tight(cls, R: int, w: int, e: Fraction) -> _Shape:
        """Return the one whose points inside are exactly e times as likely as those outside."""
        return cls(R, w, e * (2 * w + 1) / (e * (2 * w + 1) + 2 * R))

    @property
    def slope(self) -> Fraction:
        """E[report] / i = P - (1-P)(2w+1) / (2R): all points outside together weigh -(2w+1) i."""
        return self.inside - (1 - self.inside) * Fraction(2 * self.w + 1, 2 * self.R)

    @property
    def spread(self) -> Fraction:
        """Variance of report / (R slope) at i = 0; at t = i / R it is t^2 (1/slope - 1) more.

        With ``low`` the probability of a point outside, E[report^2] = slope (i^2 + w(w+1)/3)
        + low M(M+1)(2M+1)/3: a uniform part on all points, and the excess in the window.
        """
        R, w, slope, M = self.R, self.w, self.slope, self.R + self.w
        low = (1 - self.inside) / (2 * R)
        square = slope * Fraction(w * (w + 1), 3) + low * Fraction(M * (M + 1) * (2 * M + 1), 3)
        return square / (R * slope) ** 2

    @property
    def worst(self) -> Fraction:
        """The variance at t = 1 or -1."""
        return self.spread + 1 / self.slope - 1


def _least(cost: Callable[[int], Fraction], last: int) -> int:
    """Return where a cost on 0 .. last that falls and then rises is least."""
    first = 0
    while first < last:
        middle = (first + last) // 2
        if cost(middle) <= cost(middle + 1):
            last = middle
        else:
            first = middle + 1
    return first


def _window(value: str) -> None:
    if value not in ("least", "published"):
        raise SchemaError(f'window is {value!r}; write "least" or "published"')


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
            _window(self.window)
        elif not 0 <= self.window <= self.resolution:
            raise SchemaError(f"window is {self.window}; give 0 to resolution = {self.resolution}")

    @cached_property
    def half(self) -> int:
        """Points of the window on either side of its middle, w."""
        if isinstance(self.window, int):
            return self.window
        if self.window == "published":
            # continuous: (C-1)/(C+1) = exp(-eps/2) = (2w+1) / (2R); floor is the nearest w
            return math.floor(self.resolution / exp_below(self._budget / 2))
        e, R = exp_below(self._budget), self.resolution
        return _least(lambda w: _Shape.tight(R, w, e).worst, R)

    @cached_property
    def inside(self) -> int:
        """P(report in the window), over 2^64; floor: towards privacy."""
        shape = _Shape.tight(self.resolution, self.half, exp_below(self._budget))
        return math.floor(shape.inside * ONE)

    @property
    def largest(self) -> int:
        """M: reports are -M .. M."""
        return self.resolution + self.half

    @cached_property
    def _shape(self) -> _Shape:
        return _Shape(self.resolution, self.half, Fraction(self.inside, ONE))

    @cached_property
    def units(self) -> tuple[Fraction, ...]:
        return (1 / (self.resolution * self._shape.slope),)

    def variance(self, t: float = 0.0) -> float:
        slope, added = float(self._shape.slope), rounding(t, self.resolution)
        return float(self._shape.spread) + (t**2 + added) / slope - t**2

    @cached_property
    def _points(self) -> tuple[Fraction, Fraction]:
        """Probability of a point inside, and of one outside."""
        inside = self._shape.inside
        return inside / (2 * self.half + 1), (1 - inside) / (2 * self.resolution)

    def epsilon_exact(self) -> float:
        high, low = self._points
        return log(high / low)

    def numbers(self) -> list[int]:
        return list(range(-self.largest, self.largest + 1))

    def row(self, level: int) -> list[Fraction]:
        high, low = self._points
        return [high if abs(number - level) <= self.half else low for number in self.numbers()]

    def draw(self, levels: Integers, random: Random) -> Integers:
        shape, size, first = levels.shape, levels.size, levels - self.half
        inside = random.bernoulli_words(self.inside, size).reshape(shape)
        near = first + random.integers(2 * self.half + 1, size).reshape(shape)
        far = random.integers(2 * self.resolution, size).reshape(shape) - self.largest
        far += np.where(far >= first, 2 * self.half + 1, 0)  # skip the window
        return np.where(inside, near, far)

    def possible(self, numbers: Integers) -> Flags:
        return (numbers >= -self.largest) & (numbers <= self.largest)

    def rule(self) -> str:
        return f"numbers are -{self.largest} to {self.largest}"

    def signed(self, numbers: Integers) -> Integers:
        return numbers[None]

    def _largest(self) -> tuple[int, ...]:
        return (self.largest,)

    def in_words(self) -> str:
        """Say what is sent, and how often it is near the truth."""
        inside, R = Fraction(self.inside, ONE), self.resolution
        return (
            f"What is sent is a number from {-self.largest / R:.3g} to {self.largest / R:.3g}, on "
            f"a scale where yours lies from -1 to 1: within {(self.half + 0.5) / R:.2g} of yours "
            f"with a chance of {percent(inside)}, anywhere else otherwise."
        )

    def _details(self) -> dict[str, Any]:
        return {"inside": str(self.inside), "half": self.half, "largest": self.largest}


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
        _window(self.window)

    @cached_property
    def duchi(self) -> Duchi:
        return Duchi(self.epsilon, resolution=self.resolution)

    @cached_property
    def _mixture(self) -> tuple[int, Fraction]:
        """Window (w) and share of Piecewise.

        Duchi's variance is U^2 - t^2, Piecewise's t^2 (1/slope - 1) + V: with a share of slope t
        drops out (the published share is the published window's slope) and the variance is
        slope V + (1 - slope) U^2.
        """
        e, R = exp_below(self._budget), self.resolution
        duchi = ((e + 1) / (e - 1)) ** 2

        def cost(w: int) -> Fraction:
            shape = _Shape.tight(R, w, e)
            return shape.slope * shape.spread + (1 - shape.slope) * duchi

        if self.window == "published":
            w = Piecewise(self.epsilon, "published", resolution=R).half
            share = 1 - 1 / exp_below(self._budget / 2)
            return w, share if self.epsilon > 0.61 else Fraction(0)
        w = _least(cost, R)
        return w, _Shape.tight(R, w, e).slope if cost(w) < duchi else Fraction(0)

    @cached_property
    def piecewise(self) -> Piecewise:
        return Piecewise(self.epsilon, self._mixture[0], resolution=self.resolution)

    @cached_property
    def share(self) -> int:
        """P(Piecewise), over 2^64; it does not depend on the value."""
        return round(self._mixture[1] * ONE)

    @property
    def sign(self) -> int:
        """M + 1: the number that stands for Duchi's plus."""
        return self.piecewise.largest + 1

    @property
    def units(self) -> tuple[Fraction, ...]:
        return self.piecewise.units + self.duchi.units

    def variance(self, t: float = 0.0) -> float:
        share = self.share / ONE  # both parts are unbiased, so the variances mix
        return share * self.piecewise.variance(t) + (1 - share) * self.duchi.variance(t)

    def epsilon_exact(self) -> float:
        duchi = self.duchi.epsilon_exact()
        return max(duchi, self.piecewise.epsilon_exact()) if self.share else duchi

    def numbers(self) -> list[int]:
        between = self.piecewise.numbers() if self.share else []
        return [-self.sign, *between, self.sign]

    def row(self, level: int) -> list[Fraction]:
        share = Fraction(self.share, ONE)
        between = [share * p for p in self.piecewise.row(level)] if self.share else []
        minus, plus = self.duchi.row(level)
        return [(1 - share) * minus, *between, (1 - share) * plus]

    def draw(self, levels: Integers, random: Random) -> Integers:
        first = random.bernoulli_words(self.share, levels.size).reshape(levels.shape)
        near = self.piecewise.draw(levels, random)
        plus = self.duchi.draw(levels, random)
        return np.where(first, near, (2 * plus - 1) * self.sign)

    def possible(self, numbers: Integers) -> Flags:
        if self.share:
            return (numbers >= -self.sign) & (numbers <= self.sign)
        return np.isin(numbers, (-self.sign, self.sign))

    def rule(self) -> str:
        most = self.sign
        return f"numbers are -{most} to {most}" if self.share else f"numbers are -{most} or {most}"

    def signed(self, numbers: Integers) -> Integers:
        duchi = (numbers == self.sign).astype(np.int64) - (numbers == -self.sign)
        return np.stack([np.where(duchi == 0, numbers, 0), duchi])

    def _largest(self) -> tuple[int, ...]:
        return (self.piecewise.largest, 1)

    def in_words(self) -> str:
        """Say what is sent, and how often it is near the truth."""
        share = Fraction(self.share, ONE)
        if not self.share:
            return self.duchi.in_words()
        return (
            f"One of two ways is drawn. With a chance of {percent(share)}: "
            f"{self.piecewise.in_words()} With a chance of {percent(1 - share)}: "
            f"{self.duchi.in_words()}"
        )

    def _details(self) -> dict[str, Any]:
        return {
            "share": str(self.share),
            "sign": self.sign,
            "piecewise": self.piecewise.parameters(),
            "duchi": self.duchi.parameters(),
        }
