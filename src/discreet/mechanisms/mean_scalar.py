"""Mean oracles for one number, whose report is one integer."""

from __future__ import annotations

import abc
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np

from discreet.arrays import Integers
from discreet.mechanisms.mean_oracle import MeanOracle
from discreet.mechanisms.oracle import Flags
from discreet.randomness import Random

__all__ = ["ScalarOracle"]


@dataclass(frozen=True)
class ScalarOracle(MeanOracle):
    """A mean oracle for one number, whose report is one integer.

    The many-dimensional ones that sample coordinates ask it to perturb what they sampled.
    """

    epsilon: float
    size: int = field(default=1, init=False, repr=False)
    resolution: int = field(default=1024, kw_only=True)

    @abc.abstractmethod
    def draw(self, levels: Integers, random: Random) -> Integers:
        """Turn grid integers, in any shape, into report integers."""

    @abc.abstractmethod
    def possible(self, numbers: Integers) -> Flags:
        """Say which integers this oracle may report."""

    @abc.abstractmethod
    def numbers(self) -> list[int]:
        """Return every integer this oracle may report."""

    @abc.abstractmethod
    def row(self, level: int) -> list[Fraction]:
        """Return the probabilities of ``numbers`` for one grid integer."""

    @abc.abstractmethod
    def signed(self, numbers: Integers) -> Integers:
        """Return what each report integer adds to the total of each unit: (units, ...)."""

    @property
    def width(self) -> int:
        return 1

    def _outputs(self) -> Integers:
        return np.array(self.numbers(), np.int64)[:, None]

    def _draw(self, levels: Integers, random: Random) -> Integers:
        return self.draw(levels, random)

    def _fault(self, reports: Integers) -> tuple[Flags, str]:
        return ~self.possible(reports), self.rule()

    @abc.abstractmethod
    def rule(self) -> str:
        """Say in words which integers are possible."""

    def _totals(self, reports: Integers) -> Integers:
        totals: Integers = self.signed(reports[:, 0]).sum(axis=1, dtype=np.int64)[:, None]
        return totals

    def _row(self, levels: Sequence[int]) -> list[Fraction]:
        return self.row(levels[0])

    def _output_count(self) -> int:
        return len(self.numbers())
