"""Mean oracles for many numbers that report on a few sampled coordinates.

k of the n coordinates, without replacement, each perturbed with epsilon / k and scaled by n / k.
The report is k pairs (coordinate, number), sorted by coordinate.
"""

from __future__ import annotations

import abc
import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from discreet.arrays import Integers
from discreet.mechanisms.duchi import Duchi
from discreet.mechanisms.mean_oracle import MeanOracle, within
from discreet.mechanisms.mean_scalar import ScalarOracle
from discreet.mechanisms.oracle import Flags
from discreet.mechanisms.piecewise import Hybrid, Piecewise, Window, _window
from discreet.randomness import Random

__all__ = ["HybridMany", "OneBit", "PiecewiseMany"]


@dataclass(frozen=True)
class _Sampled(MeanOracle):
    """A scalar oracle on k coordinates drawn without replacement."""

    epsilon: float
    size: int
    resolution: int = field(default=1024, kw_only=True)

    @property
    def sampled(self) -> int:
        """k, the number of coordinates in a report (Wang et al. 2019, algorithm 4)."""
        return max(1, min(self.size, math.floor(Fraction(self.epsilon) / Fraction("2.5"))))

    @property
    @abc.abstractmethod
    def each(self) -> ScalarOracle:
        """The oracle that perturbs one sampled coordinate, with its share of epsilon."""

    @property
    def _share(self) -> float:
        """The largest float whose k-fold does not exceed epsilon."""
        part = self.epsilon / self.sampled
        return part if Fraction(part) * self.sampled <= self.epsilon else math.nextafter(part, 0)

    @property
    def width(self) -> int:
        return 2 * self.sampled

    @cached_property
    def units(self) -> tuple[Fraction, ...]:
        return tuple(unit * Fraction(self.size, self.sampled) for unit in self.each.units)

    def variance(self, t: float = 0.0) -> float:
        # E[square] is n/k times that of one coordinate: (n/k)^2 with probability k/n
        square = self.each.variance(t) + within(t) ** 2
        return self.size / self.sampled * square - t**2

    def epsilon_exact(self) -> float:
        return self.sampled * self.each.epsilon_exact()

    def _outputs(self) -> Integers:
        reports = [
            list(itertools.chain.from_iterable(zip(chosen, numbers, strict=True)))
            for chosen in itertools.combinations(range(self.size), self.sampled)
            for numbers in itertools.product(self.each.numbers(), repeat=self.sampled)
        ]
        return np.array(reports, np.int64)

    def _row(self, levels: Sequence[int]) -> list[Fraction]:
        rows = [self.each.row(level) for level in levels]
        subsets = math.comb(self.size, self.sampled)
        return [
            math.prod(probabilities, start=Fraction(1, subsets))
            for chosen in itertools.combinations(range(self.size), self.sampled)
            for probabilities in itertools.product(*(rows[j] for j in chosen))
        ]

    def _output_count(self) -> int:
        numbers: int = len(self.each.numbers()) ** self.sampled
        return math.comb(self.size, self.sampled) * numbers

    def _draw(self, levels: Integers, random: Random) -> Integers:
        chosen = np.sort(random.subsets(self.size, self.sampled, len(levels)), axis=1)
        reports = np.empty((len(levels), self.width), np.int64)
        reports[:, 0::2] = chosen
        reports[:, 1::2] = self.each.draw(np.take_along_axis(levels, chosen, axis=1), random)
        return reports

    def _fault(self, reports: Integers) -> tuple[Flags, str]:
        chosen, numbers = reports[:, 0::2], reports[:, 1::2]
        wrong = (chosen < 0) | (chosen >= self.size) | ~self.each.possible(numbers)
        wrong[:, 1:] |= chosen[:, 1:] <= chosen[:, :-1]
        return wrong, (
            f"it holds {self.sampled} times a coordinate, 0 to {self.size - 1} in ascending "
            f"order, and its number, where {self.each.rule()}"
        )

    def _totals(self, reports: Integers) -> Integers:
        signed = self.each.signed(reports[:, 1::2])
        totals = np.zeros((len(signed), self.size), np.int64)
        for total, numbers in zip(totals, signed, strict=True):
            np.add.at(total, reports[:, 0::2], numbers)
        return totals

    def _largest(self) -> tuple[int, ...]:
        return self.each._largest()

    def in_words(self) -> str:
        """Say what is sent, and how near it is to the truth."""
        if self.sampled == self.size:
            drawn = f"All {self.size} numbers are sent, each in the same way."
        elif self.sampled == 1:
            drawn = f"One of {self.size} numbers is drawn, and nothing is sent about the others."
        else:
            drawn = f"{self.sampled} of {self.size} numbers are drawn, and only they are sent."
        return f"{drawn} {self.each.in_words()}"

    def _details(self) -> dict[str, Any]:
        return {"sampled": self.sampled, "each": self.each.parameters()}


@dataclass(frozen=True)
class OneBit(_Sampled):
    """One coordinate, drawn uniformly, by ``Duchi`` (Yilmaz et al., III-B, approach 2).

    Parameters
    ----------
    epsilon : float
        For all coordinates together.
    size : int
        Number of coordinates.
    resolution : int, default 1024
        Grid steps from 0 to 1, a power of two.
    """

    name: ClassVar[str] = "one-bit"

    @property
    def sampled(self) -> int:
        return 1

    @cached_property
    def each(self) -> Duchi:
        return Duchi(self.epsilon, resolution=self.resolution)


@dataclass(frozen=True)
class _Windowed(_Sampled):
    """A scalar oracle with a window on the sampled coordinates."""

    window: Window = "least"

    def __post_init__(self) -> None:
        super().__post_init__()
        _window(self.window)


@dataclass(frozen=True)
class PiecewiseMany(_Windowed):
    """A few coordinates, max(1, min(size, floor(epsilon / 2.5))), each by ``Piecewise``.

    Parameters
    ----------
    epsilon : float
        For all coordinates together.
    size : int
        Number of coordinates.
    window : {"least", "published"}, default "least"
        As for ``Piecewise``.
    resolution : int, default 1024
        Grid steps from 0 to 1, a power of two.
    """

    name: ClassVar[str] = "piecewise-many"

    @cached_property
    def each(self) -> Piecewise:
        return Piecewise(self._share, self.window, resolution=self.resolution)


@dataclass(frozen=True)
class HybridMany(_Windowed):
    """A few coordinates, sampled as for ``PiecewiseMany``, each by ``Hybrid``.

    Parameters
    ----------
    epsilon : float
        For all coordinates together.
    size : int
        Number of coordinates.
    window : {"least", "published"}, default "least"
        As for ``Hybrid``.
    resolution : int, default 1024
        Grid steps from 0 to 1, a power of two.
    """

    name: ClassVar[str] = "hybrid-many"

    @cached_property
    def each(self) -> Hybrid:
        return Hybrid(self._share, self.window, resolution=self.resolution)
