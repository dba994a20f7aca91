"""Mean oracles: sums of numbers in [-1, 1], estimated from randomized reports.

Each is a small frozen value that respondent, collector and accountant read alike::

    oracle = Hybrid(epsilon=1.0)
    reports = oracle.perturb(values, random)                     # integers; these leave the devices
    sums = oracle.estimate(oracle.tally(reports), len(reports))  # unbiased

Formulas, and the errors in the published listings: docs/maths.md.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from discreet.arrays import Integers
from discreet.errors import PrivacyError, SchemaError
from discreet.mechanisms.duchi import Duchi, DuchiMany
from discreet.mechanisms.mean_oracle import MeanOracle, compute_rounding_variance
from discreet.mechanisms.mean_scalar import ScalarOracle
from discreet.mechanisms.oracle import Flags
from discreet.mechanisms.piecewise import Hybrid, Piecewise
from discreet.mechanisms.sampled import HybridMany, OneBit, PiecewiseMany
from discreet.privacy.rounding import exp_rounded_up
from discreet.randomness import Random
from discreet.randomness.samplers import MAX_SCALE

__all__ = [
    "MEAN_ORACLES",
    "Duchi",
    "DuchiMany",
    "Hybrid",
    "HybridMany",
    "LaplaceMean",
    "MeanOracle",
    "OneBit",
    "Piecewise",
    "PiecewiseMany",
    "ScalarOracle",
]


@dataclass(frozen=True)
class LaplaceMean(MeanOracle):
    """All numbers of a respondent with discrete Laplace noise of scale 2 active / epsilon on each.

    Reports are cut at 45 scales beyond the grid, which cannot weaken privacy and happens to one
    report in 10^19, so that a collector can refuse larger ones.

    Parameters
    ----------
    epsilon : float
        For all coordinates together.
    size : int, default 1
        Number of coordinates.
    active : int, optional
        How many coordinates of a respondent may differ from zero; all of them if not given. A
        vector with one place per class holds its number in one of them.
    resolution : int, default 1024
        Grid steps from 0 to 1, a power of two.
    """

    name: ClassVar[str] = "laplace"

    epsilon: float
    size: int = 1
    active: int | None = None
    resolution: int = field(default=1024, kw_only=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.active is None:
            object.__setattr__(self, "active", self.size)
        active = self.active
        if isinstance(active, bool) or not isinstance(active, int) or not 1 <= active <= self.size:
            raise SchemaError(f"active is {self.active!r}; give 1 to {self.size}")
        if self.noise_scale > MAX_SCALE:
            raise PrivacyError(
                f"epsilon {self.epsilon} over {self.size} coordinates needs noise beyond 2^53 grid "
                "steps; take a larger epsilon or a smaller resolution"
            )

    @cached_property
    def noise_scale(self) -> Fraction:
        """Scale of the noise in grid steps, rounded up to a multiple of 2^-32."""
        # two inputs differ by at most 2 R active steps in L1; that over scale is at most epsilon
        exact_scale = Fraction(2 * self.resolution * self._active_count) / Fraction(self.epsilon)
        return Fraction(math.ceil(exact_scale * 2**32), 2**32)

    @cached_property
    def largest(self) -> int:
        """Reports are cut to -largest .. largest."""
        return self.resolution + math.ceil(45 * self.noise_scale)

    @property
    def _active_count(self) -> int:
        return self.active or self.size

    @property
    def width(self) -> int:
        return self.size

    @property
    def units(self) -> tuple[Fraction, ...]:
        return (self.step,)

    def variance(self, t: float = 0.0) -> float:
        # discrete Laplace: 2q / (1-q)^2, q = exp(-1/scale)
        decay_rate = 1 / float(self.noise_scale)
        noise_variance = (
            2 * math.exp(-decay_rate) / (self.resolution * math.expm1(-decay_rate)) ** 2
        )
        return noise_variance + compute_rounding_variance(t, self.resolution)

    def compute_exact_epsilon(self) -> float:
        return float(2 * self.resolution * self._active_count / self.noise_scale)

    def _list_outputs(self) -> Integers:
        report_numbers = range(-self.largest, self.largest + 1)
        return np.array(list(itertools.product(report_numbers, repeat=self.size)), np.int64)

    def _compute_row(self, levels: Sequence[int]) -> list[Fraction]:
        """As the law is not rational, with q = exp(-1/scale) rounded up at 2^-128."""
        q = Fraction(
            math.ceil(2**128 * exp_rounded_up(max(-1 / self.noise_scale, Fraction(-100)))), 2**128
        )
        factors = [q] * (self.largest + self.resolution)
        scaled_powers = list(itertools.accumulate(factors, Fraction.__mul__, initial=1 / (1 + q)))
        rows_by_coordinate = []
        for level in levels:
            number_masses = [
                scaled_powers[abs(number - level)]
                for number in range(-self.largest, self.largest + 1)
            ]
            rows_by_coordinate.append(
                [number_masses[0], *((1 - q) * p for p in number_masses[1:-1]), number_masses[-1]]
            )
        return [
            math.prod(report_cells, start=Fraction(1))
            for report_cells in itertools.product(*rows_by_coordinate)
        ]

    def _count_outputs(self) -> int:
        return int((2 * self.largest + 1) ** self.size)

    def _draw_reports(self, levels: Integers, random: Random) -> Integers:
        if levels.size and int(np.count_nonzero(levels, axis=1).max()) > self._active_count:
            raise SchemaError(f"more than {self.active} numbers of a respondent are not zero")
        noise_steps = random.discrete_laplace(self.noise_scale, levels.size).reshape(levels.shape)
        reports: Integers = np.clip(levels + noise_steps, -self.largest, self.largest)
        return reports

    def _find_faults(self, reports: Integers) -> tuple[Flags, str]:
        faulty_cells = (reports < -self.largest) | (reports > self.largest)
        return faulty_cells, f"numbers are -{self.largest} to {self.largest}"

    def _sum_reports(self, reports: Integers) -> Integers:
        step_totals: Integers = reports.sum(axis=0, dtype=np.int64)[None]
        return step_totals

    def _get_unit_limits(self) -> tuple[int, ...]:
        return (self.largest,)

    def to_plain_words(self) -> str:
        """Say what is sent, and how near it is to the truth."""
        sent_text = "your number" if self.size == 1 else f"each of {self.size} numbers"
        return (
            f"What is sent is {sent_text}, on a scale from -1 to 1, with random noise of "
            f"a standard deviation of {math.sqrt(self.variance()):.3g} added."
        )

    def _get_own_parameters(self) -> dict[str, Any]:
        scale_numerator = self.noise_scale * 2**32
        return {
            "active": self._active_count,
            "scale_2_32": str(scale_numerator),
            "largest": str(self.largest),
        }


MEAN_ORACLES: dict[str, type[MeanOracle]] = {
    oracle_class.name: oracle_class
    for oracle_class in (
        LaplaceMean, Duchi, DuchiMany, OneBit, Piecewise, PiecewiseMany, Hybrid, HybridMany,
    )
}  # fmt: skip
"""The oracles by the name that a plan gives them."""
