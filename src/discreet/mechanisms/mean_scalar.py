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
    width = 1

    @abc.abstractmethod
    def draw_numbers(self, levels: Integers, random: Random) -> Integers:
        """Turn grid integers, in any shape, into report integers."""

    @abc.abstractmethod
    def is_possible(self, numbers: Integers) -> Flags:
        """Say which integers this oracle may report."""

    @abc.abstractmethod
    def list_numbers(self) -> list[int]:
        """Return every integer this oracle may report."""

    @abc.abstractmethod
    def compute_row(self, level: int) -> list[Fraction]:
        """Return the probabilities of ``list_numbers`` for one grid integer."""

    @abc.abstractmethod
    def compute_contributions(self, numbers: Integers) -> Integers:
        """Return what each report integer adds to the total of each unit: (units, ...)."""

    def _list_outputs(self) -> Integers:
        return np.array(self.list_numbers(), np.int64)[:, None]

    def _draw_reports(self, levels: Integers, random: Random) -> Integers:
        return self.draw_numbers(levels, random)

    def _find_faults(self, reports: Integers) -> tuple[Flags, str]:
        return ~self.is_possible(reports), self.format_rule()

    @abc.abstractmethod
    def format_rule(self) -> str:
        """Say in words which integers are possible."""

    def _sum_reports(self, reports: Integers) -> Integers:
        unit_totals: Integers = self.compute_contributions(reports[:, 0]).sum(
            axis=1, dtype=np.int64
        )[:, None]
        return unit_totals

    def _compute_row(self, levels: Sequence[int]) -> list[Fraction]:
        return self.compute_row(levels[0])

    def _count_outputs(self) -> int:
        return len(self.list_numbers())
