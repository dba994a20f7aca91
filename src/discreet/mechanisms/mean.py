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
from discreet.losses import exp_above
from discreet.mechanisms.duchi import Duchi, DuchiMany
from discreet.mechanisms.mean_oracle import MeanOracle, rounding
from discreet.mechanisms.mean_scalar import ScalarOracle
from discreet.mechanisms.oracle import Flags
from discreet.mechanisms.piecewise import Hybrid, Piecewise
from discreet.mechanisms.sampled import HybridMany, OneBit, PiecewiseMany
from discreet.randomness import Random
from discreet.randomness.samplers import WIDEST

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
        if self.scale > WIDEST:
            raise PrivacyError(
                f"epsilon {self.epsilon} over {self.size} coordinates needs noise beyond 2^53 grid "
                "steps; take a larger epsilon or a smaller resolution"
            )

    @cached_property
    def scale(self) -> Fraction:
        """Scale of the noise in grid steps, rounded up to a multiple of 2^-32."""
        # two inputs differ by at most 2 R active steps in L1; that over scale is at most epsilon
        steps = Fraction(2 * self.resolution * self._active) / Fraction(self.epsilon)
        return Fraction(math.ceil(steps * 2**32), 2**32)

    @cached_property
    def largest(self) -> int:
        """Reports are cut to -largest .. largest."""
        return self.resolution + math.ceil(45 * self.scale)

    @property
    def _active(self) -> int:
        return self.active or self.size

    @property
    def width(self) -> int:
        return self.size

    @property
    def units(self) -> tuple[Fraction, ...]:
        return (self.step,)

    def variance(self, t: float = 0.0) -> float:
        # discrete Laplace: 2q / (1-q)^2, q = exp(-1/scale)
        decay = 1 / float(self.scale)
        noise = 2 * math.exp(-decay) / (self.resolution * math.expm1(-decay)) ** 2
        return noise + rounding(t, self.resolution)

    def epsilon_exact(self) -> float:
        return float(2 * self.resolution * self._active / self.scale)

    def _outputs(self) -> Integers:
        numbers = range(-self.largest, self.largest + 1)
        return np.array(list(itertools.product(numbers, repeat=self.size)), np.int64)

    def _row(self, levels: Sequence[int]) -> list[Fraction]:
        """As the law is not rational, with q = exp(-1/scale) rounded up at 2^-128."""
        q = Fraction(math.ceil(2**128 * exp_above(max(-1 / self.scale, Fraction(-100)))), 2**128)
        powers = list(itertools.accumulate([q] * (self.largest + self.resolution), Fraction.__mul__,
                                           initial=1 / (1 + q)))  # fmt: skip
        rows = []
        for level in levels:
            row = [powers[abs(o - level)] for o in range(-self.largest, self.largest + 1)]
            rows.append([row[0], *((1 - q) * p for p in row[1:-1]), row[-1]])
        return [math.prod(cells, start=Fraction(1)) for cells in itertools.product(*rows)]

    def _output_count(self) -> int:
        return int((2 * self.largest + 1) ** self.size)

    def _draw(self, levels: Integers, random: Random) -> Integers:
        if levels.size and int(np.count_nonzero(levels, axis=1).max()) > self._active:
            raise SchemaError(f"more than {self.active} numbers of a respondent are not zero")
        noise = random.discrete_laplace(self.scale, levels.size).reshape(levels.shape)
        reports: Integers = np.clip(levels + noise, -self.largest, self.largest)
        return reports

    def _fault(self, reports: Integers) -> tuple[Flags, str]:
        wrong = (reports < -self.largest) | (reports > self.largest)
        return wrong, f"numbers are -{self.largest} to {self.largest}"

    def _totals(self, reports: Integers) -> Integers:
        totals: Integers = reports.sum(axis=0, dtype=np.int64)[None]
        return totals

    def _largest(self) -> tuple[int, ...]:
        return (self.largest,)

    def in_words(self) -> str:
        """Say what is sent, and how near it is to the truth."""
        sent = "your number" if self.size == 1 else f"each of {self.size} numbers"
        return (
            f"What is sent is {sent}, on a scale from -1 to 1, with random noise of "
            f"a standard deviation of {math.sqrt(self.variance()):.3g} added."
        )

    def _details(self) -> dict[str, Any]:
        scaled = self.scale * 2**32
        return {
            "active": self._active,
            "scale_2_32": str(scaled),
            "largest": str(self.largest),
        }


MEAN_ORACLES: dict[str, type[MeanOracle]] = {
    oracle.name: oracle
    for oracle in (
        LaplaceMean, Duchi, DuchiMany, OneBit, Piecewise, PiecewiseMany, Hybrid, HybridMany,
    )
}  # fmt: skip
"""The oracles by the name that a plan gives them."""
