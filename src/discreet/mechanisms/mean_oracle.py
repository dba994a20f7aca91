"""Base class of the mean oracles: the public grid, the checks, and exact probabilities.

A value t in [-1, 1] is rounded at random, without bias, to the grid {-R .. R} / R, and the grid
integer is perturbed. Everything a respondent does is integer arithmetic on uniform integers and on
thresholds over 2^64, which are rounded towards privacy: the channel is a table of fractions.
"""

from __future__ import annotations

import abc
import itertools
import math
import operator
from collections.abc import Iterable, Sequence
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from discreet.arrays import Floats, Integers
from discreet.errors import EstimationError, PrivacyError, SchemaError
from discreet.mechanisms.oracle import LARGEST_EPSILON, SMALLEST_EPSILON, Flags
from discreet.randomness import Random

__all__ = ["MeanOracle"]


MOST_LEVELS = 1 << 20
MOST_CELLS = 1 << 22  # of a channel that is written out


class MeanOracle(abc.ABC):
    """Estimates sums of numbers in [-1, 1] from reports that hide them.

    A subclass is a frozen value of ``epsilon``, ``size`` (coordinates per respondent) and
    ``resolution`` (R, a power of two: grid steps from 0 to 1).
    """

    name: ClassVar[str]
    epsilon: float
    size: int
    resolution: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", _epsilon(self.epsilon))
        object.__setattr__(self, "size", _whole("size", self.size, 1))
        resolution = _whole("resolution", self.resolution, 1)
        if resolution > MOST_LEVELS or resolution & (resolution - 1):
            raise SchemaError(
                f"resolution is {resolution}; give a power of two from 1 to {MOST_LEVELS}"
            )
        object.__setattr__(self, "resolution", resolution)

    @property
    def _budget(self) -> Fraction:
        """Epsilon as an exact fraction, at most 64: the limit of integers over 2^64."""
        return Fraction(min(self.epsilon, LARGEST_EPSILON))

    @property
    def step(self) -> Fraction:
        """Distance of two neighbours on the grid."""
        return Fraction(1, self.resolution)

    @property
    @abc.abstractmethod
    def width(self) -> int:
        """Integers in a serialised report."""

    @property
    def furthest(self) -> int:
        """No integer of a serialised report, coordinates included, goes further from 0."""
        return max(*self._largest(), self.size) + 1

    @property
    @abc.abstractmethod
    def units(self) -> tuple[Fraction, ...]:
        """What one of each kind of tallied integer is worth; most oracles have one kind."""

    @abc.abstractmethod
    def variance(self, t: float = 0.0) -> float:
        """Return the variance of one respondent's debiased number, for a coordinate at ``t``.

        It counts both the noise and the rounding to the grid.
        """

    @abc.abstractmethod
    def epsilon_exact(self) -> float:
        """Return the epsilon of the channel as implemented: at most ``epsilon``."""

    @abc.abstractmethod
    def in_words(self) -> str:
        """Say what is sent, and how near it is to the truth, for the person who sends it."""

    @property
    def influence(self) -> float:
        """How much one forged report can add to a sum in which people count from -1 to 1."""
        return max(
            float(unit) * most for unit, most in zip(self.units, self._largest(), strict=True)
        )

    @abc.abstractmethod
    def _details(self) -> dict[str, Any]:
        """What of ``parameters`` is the mechanism's own."""

    @abc.abstractmethod
    def _draw(self, levels: Integers, random: Random) -> Integers:
        """Turn grid integers (m, size) into reports (m, width)."""

    @abc.abstractmethod
    def _fault(self, reports: Integers) -> tuple[Flags, str]:
        """Say where reports are impossible, (m, ...), and the rule that they break."""

    @abc.abstractmethod
    def _totals(self, reports: Integers) -> Integers:
        """Add up valid reports by unit and coordinate: (units, size)."""

    @abc.abstractmethod
    def _largest(self) -> tuple[int, ...]:
        """Most that one report can add to a total, by unit."""

    @abc.abstractmethod
    def _row(self, levels: Sequence[int]) -> list[Fraction]:
        """Probabilities of ``outputs`` for one grid input."""

    @abc.abstractmethod
    def _outputs(self) -> Integers:
        """Write every possible report out."""

    @abc.abstractmethod
    def _output_count(self) -> int:
        """Number of possible reports."""

    def perturb(self, values: ArrayLike, random: Random) -> Integers:
        """Return one report per respondent: the integers that leave the device.

        Parameters
        ----------
        values : array of float, (m, size), or (m,) when size is 1
            Numbers in [-1, 1], one row per respondent.
        random : Random

        Returns
        -------
        array of int64, (m, width)

        Raises
        ------
        SchemaError
            When a value is missing or outside [-1, 1], or the shape is wrong.
        """
        return self._draw(self._on_grid(self._checked(values), random), random)

    def validate(self, reports: ArrayLike) -> None:
        """Raise ``SchemaError`` with the reason if some report could not have been sent."""
        self._valid(reports)

    def faulty(self, reports: ArrayLike) -> Flags:
        """Return which reports ``validate`` would refuse, to count them and go on."""
        return rows_with(self._fault(self._matrix(reports))[0])

    def tally(self, reports: ArrayLike) -> Integers:
        """Return the integers that add up: tallies of disjoint sets of reports may be added.

        Returns
        -------
        array of int64, (len(units) * size,)
            Sums for every coordinate in the first unit, then in the next.
        """
        return self._totals(self._valid(reports)).reshape(-1)

    def estimate(self, tally: ArrayLike, respondents: int) -> Floats:
        """Return unbiased estimates of the sum of each coordinate over the respondents.

        Parameters
        ----------
        tally : array of int
            As ``tally`` makes it.
        respondents : int
            How many reports were tallied; divide by it for the mean.

        Returns
        -------
        array of float64, (size,)
        """
        people = _whole("respondents", respondents, 0)
        totals = np.asarray(tally)
        if totals.dtype.kind not in "iu" or totals.shape != (len(self.units) * self.size,):
            raise EstimationError(
                f"tally is {totals.dtype} of shape {totals.shape}; {self.name} adds up "
                f"{len(self.units) * self.size} integers"
            )
        by_unit = totals.reshape(len(self.units), self.size)
        for row, largest in zip(by_unit, self._largest(), strict=True):
            if max(abs(int(row.min())), abs(int(row.max()))) > largest * people:
                raise EstimationError(
                    f"a sum in the tally exceeds what {people} reports of at most {largest} can "
                    "add up to; check the number of respondents"
                )
        worth = np.array([float(unit) for unit in self.units])
        estimates: Floats = worth @ by_unit
        return estimates

    def worst_variance(self) -> float:
        """Return the largest ``variance`` on the grid, where all of them are linear in t^2.

        Between two grid values it is at most step^2 / 4 larger.
        """
        return max(self.variance(0.0), self.variance(1.0))

    def parameters(self) -> dict[str, Any]:
        """Return what a respondent needs besides the value, for the public plan.

        Integers that may exceed 2^53 are decimal strings, as JavaScript reads JSON numbers as
        doubles; probabilities are such integers over 2^64.
        """
        return {
            "mechanism": self.name,
            "epsilon": self.epsilon,
            "size": self.size,
            "resolution": self.resolution,
            "width": self.width,
            **self._details(),
        }

    def outputs(self) -> Integers:
        """Return every possible report, one per row, in the order of the channel's columns."""
        self._writable(self._output_count() * self.width)
        return self._outputs()

    def inputs(self, levels: Iterable[int] | None = None) -> list[tuple[int, ...]]:
        """Return the grid inputs of the channel's rows: ``levels`` in every coordinate."""
        return list(itertools.product(self._levels(levels), repeat=self.size))

    def channel(self, levels: Iterable[int] | None = None) -> list[list[Fraction]]:
        """Return P(report | grid input) exactly: one row per input, one column per output.

        Parameters
        ----------
        levels : iterable of int, optional
            Grid integers each coordinate may take; all 2R + 1 of them when not given.
        """
        chosen = self._levels(levels)
        self._writable(len(chosen) ** self.size * self._output_count())
        return [self._row(point) for point in self.inputs(chosen)]

    def _writable(self, cells: int) -> None:
        if cells > MOST_CELLS:
            raise SchemaError(
                f"the channel of {self.name} is too large to write out (more than {MOST_CELLS} "
                "cells); take a smaller resolution or size, or name a few levels"
            )

    def _levels(self, levels: Iterable[int] | None) -> list[int]:
        R = self.resolution
        chosen = list(range(-R, R + 1)) if levels is None else [operator.index(i) for i in levels]
        for level in chosen:
            if abs(level) > R:
                raise SchemaError(f"level {level} is outside the grid -{R} .. {R}")
        return chosen

    def _checked(self, values: ArrayLike) -> Floats:
        """Return private numbers as (m, size), or refuse them without repeating them."""
        try:
            if isinstance(values, np.ma.MaskedArray):
                values = np.ma.filled(values.astype(np.float64), np.nan)
            numbers = np.asarray(values, dtype=np.float64)
        except (TypeError, ValueError):
            raise SchemaError(
                f"{self.name} takes an array of numbers in [-1, 1], one row per respondent; this "
                "holds something else, or rows of different lengths"
            ) from None
        if self.size == 1 and numbers.ndim == 1:
            numbers = numbers[:, None]
        if numbers.ndim != 2 or numbers.shape[1] != self.size:
            one = "one number" if self.size == 1 else f"{self.size} numbers"
            raise SchemaError(
                f"values have shape {numbers.shape}; {self.name} takes {one} per respondent, "
                f"shape (respondents, {self.size})"
            )
        wrong = np.argwhere(~(np.abs(numbers) <= 1))
        if wrong.size:
            row, column = wrong[0]
            fault = (
                "missing, and needs a public cell of its own"
                if np.isnan(numbers[row, column])
                else "outside [-1, 1]; map the public bounds there and clip"
            )
            raise SchemaError(f"respondent {row}: coordinate {column} is {fault}")
        return numbers

    def _on_grid(self, numbers: Floats, random: Random) -> Integers:
        """Round to one of the two neighbours, so that the mean stays; exact to 2^-64 of a step."""
        part, whole = np.modf(np.abs(numbers) * self.resolution)  # exact: R is a power of two
        away = random.bernoulli_each((part * 2.0**64).astype(np.uint64))
        levels: Integers = np.where(numbers < 0, -1, 1) * (whole.astype(np.int64) + away)
        return levels

    def _matrix(self, reports: ArrayLike) -> Integers:
        given = np.asarray(reports)
        if given.dtype.kind not in "iu" or given.dtype == np.uint64:
            raise SchemaError(f"reports are {given.dtype}; {self.name} reports are signed integers")
        if given.ndim != 2 or given.shape[1] != self.width:
            raise SchemaError(
                f"reports have shape {given.shape}; {self.name} takes {self.width} integers "
                f"per report, shape (reports, {self.width})"
            )
        return given.astype(np.int64, copy=False)

    def _valid(self, reports: ArrayLike) -> Integers:
        matrix = self._matrix(reports)
        wrong, rule = self._fault(matrix)
        if wrong.any():
            row = int(np.argmax(rows_with(wrong)))
            raise SchemaError(f"{self.name} report {row} is {matrix[row, :8].tolist()}; {rule}")
        return matrix


def rows_with(flags: Flags) -> Flags:
    """Say which rows hold a True."""
    rows: Flags = np.logical_or.reduce(flags, axis=1)
    return rows


def within(t: float) -> float:
    """Check the value at which a variance is asked for."""
    if not -1 <= t <= 1:
        raise SchemaError(f"t is {t}; values lie in [-1, 1]")
    return float(t)


def rounding(t: float, resolution: int) -> float:
    """Return the variance that rounding ``t`` to the grid adds to it."""
    part = math.modf(abs(within(t)) * resolution)[0]
    return part * (1 - part) / resolution**2


def _epsilon(epsilon: float) -> float:
    if isinstance(epsilon, bool) or not isinstance(epsilon, int | float | np.number):
        raise PrivacyError(f"epsilon is {epsilon!r}; give a number above 0")
    value = float(epsilon)
    if value == math.inf:
        raise PrivacyError("epsilon is infinite: nothing would be hidden; use exact sums instead")
    if not value >= SMALLEST_EPSILON:
        raise PrivacyError(f"epsilon is {value}; give a number of at least {SMALLEST_EPSILON}")
    return value


def _whole(name: str, value: int, least: int) -> int:
    try:
        number = operator.index(value)
    except TypeError:
        raise SchemaError(f"{name} is {value!r}; give an integer of at least {least}") from None
    if number < least:
        raise SchemaError(f"{name} is {number}; give an integer of at least {least}")
    return number
