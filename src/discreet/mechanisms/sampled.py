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
from discreet.mechanisms.mean_oracle import MeanOracle, require_in_range
from discreet.mechanisms.mean_scalar import ScalarOracle
from discreet.mechanisms.oracle import Flags
from discreet.mechanisms.piecewise import Hybrid, Piecewise, Window, _require_window
from discreet.randomness import Random

__all__ = ["HybridMany", "OneBit", "PiecewiseMany"]


@dataclass(frozen=True)
class _SampledOracle(MeanOracle):
    """A scalar oracle on k coordinates drawn without replacement."""

    epsilon: float
    size: int
    resolution: int = field(default=1024, kw_only=True)

    @property
    def sampled_count(self) -> int:
        """k, the number of coordinates in a report (Wang et al. 2019, algorithm 4)."""
        return max(1, min(self.size, math.floor(Fraction(self.epsilon) / Fraction("2.5"))))

    @property
    @abc.abstractmethod
    def scalar_oracle(self) -> ScalarOracle:
        """The oracle that perturbs one sampled coordinate, with its share of epsilon."""

    @property
    def _coordinate_epsilon(self) -> float:
        """The largest float whose k-fold does not exceed epsilon."""
        equal_share = self.epsilon / self.sampled_count
        return (
            equal_share
            if Fraction(equal_share) * self.sampled_count <= self.epsilon
            else math.nextafter(equal_share, 0)
        )

    @property
    def width(self) -> int:
        return 2 * self.sampled_count

    @cached_property
    def units(self) -> tuple[Fraction, ...]:
        return tuple(
            unit * Fraction(self.size, self.sampled_count) for unit in self.scalar_oracle.units
        )

    def variance(self, t: float = 0.0) -> float:
        # E[square] is n/k times that of one coordinate: (n/k)^2 with probability k/n
        mean_square = self.scalar_oracle.variance(t) + require_in_range(t) ** 2
        return self.size / self.sampled_count * mean_square - t**2

    def compute_exact_epsilon(self) -> float:
        return self.sampled_count * self.scalar_oracle.compute_exact_epsilon()

    def _list_outputs(self) -> Integers:
        reports = [
            list(itertools.chain.from_iterable(zip(coordinates, numbers, strict=True)))
            for coordinates in itertools.combinations(range(self.size), self.sampled_count)
            for numbers in itertools.product(
                self.scalar_oracle.list_numbers(), repeat=self.sampled_count
            )
        ]
        return np.array(reports, np.int64)

    def _compute_row(self, levels: Sequence[int]) -> list[Fraction]:
        coordinate_rows = [self.scalar_oracle.compute_row(level) for level in levels]
        subset_count = math.comb(self.size, self.sampled_count)
        return [
            math.prod(probabilities, start=Fraction(1, subset_count))
            for coordinates in itertools.combinations(range(self.size), self.sampled_count)
            for probabilities in itertools.product(
                *(coordinate_rows[coordinate] for coordinate in coordinates)
            )
        ]

    def _count_outputs(self) -> int:
        number_combinations: int = len(self.scalar_oracle.list_numbers()) ** self.sampled_count
        return math.comb(self.size, self.sampled_count) * number_combinations

    def _draw_reports(self, levels: Integers, random: Random) -> Integers:
        coordinates = np.sort(random.subsets(self.size, self.sampled_count, len(levels)), axis=1)
        reports = np.empty((len(levels), self.width), np.int64)
        reports[:, 0::2] = coordinates
        reports[:, 1::2] = self.scalar_oracle.draw_numbers(
            np.take_along_axis(levels, coordinates, axis=1), random
        )
        return reports

    def _find_faults(self, reports: Integers) -> tuple[Flags, str]:
        coordinates, numbers = reports[:, 0::2], reports[:, 1::2]
        faulty_cells = (
            (coordinates < 0)
            | (coordinates >= self.size)
            | ~self.scalar_oracle.is_possible(numbers)
        )
        faulty_cells[:, 1:] |= coordinates[:, 1:] <= coordinates[:, :-1]
        return faulty_cells, (
            f"it holds {self.sampled_count} times a coordinate, 0 to {self.size - 1} in ascending "
            f"order, and its number, where {self.scalar_oracle.format_rule()}"
        )

    def _sum_reports(self, reports: Integers) -> Integers:
        contributions = self.scalar_oracle.compute_contributions(reports[:, 1::2])
        unit_totals = np.zeros((len(contributions), self.size), np.int64)
        for unit_total, unit_numbers in zip(unit_totals, contributions, strict=True):
            np.add.at(unit_total, reports[:, 0::2], unit_numbers)
        return unit_totals

    def _get_unit_limits(self) -> tuple[int, ...]:
        return self.scalar_oracle._get_unit_limits()

    def to_plain_words(self) -> str:
        """Say what is sent, and how near it is to the truth."""
        if self.sampled_count == self.size:
            sampling_text = f"All {self.size} numbers are sent, each in the same way."
        elif self.sampled_count == 1:
            sampling_text = (
                f"One of {self.size} numbers is drawn, and nothing is sent about the others."
            )
        else:
            sampling_text = (
                f"{self.sampled_count} of {self.size} numbers are drawn, and only they are sent."
            )
        return f"{sampling_text} {self.scalar_oracle.to_plain_words()}"

    def _get_own_parameters(self) -> dict[str, Any]:
        return {"sampled": self.sampled_count, "each": self.scalar_oracle.get_parameters()}


@dataclass(frozen=True)
class OneBit(_SampledOracle):
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
    def sampled_count(self) -> int:
        return 1

    @cached_property
    def scalar_oracle(self) -> Duchi:
        return Duchi(self.epsilon, resolution=self.resolution)


@dataclass(frozen=True)
class _WindowedOracle(_SampledOracle):
    """A scalar oracle with a window on the sampled coordinates."""

    window: Window = "least"

    def __post_init__(self) -> None:
        super().__post_init__()
        _require_window(self.window)


@dataclass(frozen=True)
class PiecewiseMany(_WindowedOracle):
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
    def scalar_oracle(self) -> Piecewise:
        return Piecewise(self._coordinate_epsilon, self.window, resolution=self.resolution)


@dataclass(frozen=True)
class HybridMany(_WindowedOracle):
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
    def scalar_oracle(self) -> Hybrid:
        return Hybrid(self._coordinate_epsilon, self.window, resolution=self.resolution)
