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
from discreet.mechanisms.oracle import MAX_EPSILON, MIN_EPSILON, Flags
from discreet.randomness import Random

__all__ = ["MeanOracle"]


MAX_RESOLUTION = 1 << 20  # grid steps from 0 to 1; sums of many stay exact in a float, below 2^53
MAX_CHANNEL_CELLS = 1 << 22  # of a channel that is written out: memory


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
        object.__setattr__(self, "epsilon", _require_epsilon(self.epsilon))
        object.__setattr__(self, "size", _require_integer("size", self.size, 1))
        resolution = _require_integer("resolution", self.resolution, 1)
        if resolution > MAX_RESOLUTION or resolution & (resolution - 1):
            raise SchemaError(
                f"resolution is {resolution}; give a power of two from 1 to {MAX_RESOLUTION}"
            )
        object.__setattr__(self, "resolution", resolution)

    @property
    def _spendable_epsilon(self) -> Fraction:
        """Epsilon as an exact fraction, at most 64: the limit of integers over 2^64."""
        return Fraction(min(self.epsilon, MAX_EPSILON))

    @property
    def step(self) -> Fraction:
        """Distance of two neighbours on the grid."""
        return Fraction(1, self.resolution)

    @property
    @abc.abstractmethod
    def width(self) -> int:
        """Integers in a serialised report."""

    @property
    def max_magnitude(self) -> int:
        """No integer of a serialised report, coordinates included, goes further from 0."""
        return max(*self._get_unit_limits(), self.size) + 1

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
    def compute_exact_epsilon(self) -> float:
        """Return the epsilon of the channel as implemented: at most ``epsilon``."""

    @abc.abstractmethod
    def to_plain_words(self) -> str:
        """Say what is sent, and how near it is to the truth, for the person who sends it."""

    @property
    def influence(self) -> float:
        """How much one forged report can add to a sum in which people count from -1 to 1."""
        return max(
            float(unit) * unit_limit
            for unit, unit_limit in zip(self.units, self._get_unit_limits(), strict=True)
        )

    @abc.abstractmethod
    def _get_own_parameters(self) -> dict[str, Any]:
        """What of ``get_parameters`` is the mechanism's own."""

    @abc.abstractmethod
    def _draw_reports(self, levels: Integers, random: Random) -> Integers:
        """Turn grid integers (m, size) into reports (m, width)."""

    @abc.abstractmethod
    def _find_faults(self, reports: Integers) -> tuple[Flags, str]:
        """Say where reports are impossible, (m, ...), and the rule that they break."""

    @abc.abstractmethod
    def _sum_reports(self, reports: Integers) -> Integers:
        """Add up valid reports by unit and coordinate: (units, size)."""

    @abc.abstractmethod
    def _get_unit_limits(self) -> tuple[int, ...]:
        """Most that one report can add to a total, by unit."""

    @abc.abstractmethod
    def _compute_row(self, levels: Sequence[int]) -> list[Fraction]:
        """Probabilities of ``outputs`` for one grid input."""

    @abc.abstractmethod
    def _list_outputs(self) -> Integers:
        """Write every possible report out."""

    @abc.abstractmethod
    def _count_outputs(self) -> int:
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
        return self._draw_reports(
            self._round_to_grid(self._require_numbers(values), random), random
        )

    def validate(self, reports: ArrayLike) -> None:
        """Raise ``SchemaError`` with the reason if some report could not have been sent."""
        self._require_valid(reports)

    def find_faulty(self, reports: ArrayLike) -> Flags:
        """Return which reports ``validate`` would refuse, to count them and go on."""
        return find_rows_with(self._find_faults(self._require_matrix(reports))[0])

    def tally(self, reports: ArrayLike) -> Integers:
        """Return the integers that add up: tallies of disjoint sets of reports may be added.

        Returns
        -------
        array of int64, (len(units) * size,)
            Sums for every coordinate in the first unit, then in the next.
        """
        return self._sum_reports(self._require_valid(reports)).reshape(-1)

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
        respondent_count = _require_integer("respondents", respondents, 0)
        tally_integers = np.asarray(tally)
        if tally_integers.dtype.kind not in "iu" or tally_integers.shape != (
            len(self.units) * self.size,
        ):
            raise EstimationError(
                f"tally is {tally_integers.dtype} of shape {tally_integers.shape}; {self.name} "
                f"adds up {len(self.units) * self.size} integers"
            )
        totals_by_unit = tally_integers.reshape(len(self.units), self.size)
        for unit_totals, unit_limit in zip(totals_by_unit, self._get_unit_limits(), strict=True):
            if (
                max(abs(int(unit_totals.min())), abs(int(unit_totals.max())))
                > unit_limit * respondent_count
            ):
                raise EstimationError(
                    f"a sum in the tally exceeds what {respondent_count} reports of at most "
                    f"{unit_limit} can add up to; check the number of respondents"
                )
        unit_values = np.array([float(unit) for unit in self.units])
        estimates: Floats = unit_values @ totals_by_unit
        return estimates

    def compute_worst_variance(self) -> float:
        """Return the largest ``variance`` on the grid, where all of them are linear in t^2.

        Between two grid values it is at most step^2 / 4 larger.
        """
        return max(self.variance(0.0), self.variance(1.0))

    def get_parameters(self) -> dict[str, Any]:
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
            **self._get_own_parameters(),
        }

    def outputs(self) -> Integers:
        """Return every possible report, one per row, in the order of the channel's columns."""
        self._require_writable(self._count_outputs() * self.width)
        return self._list_outputs()

    def inputs(self, levels: Iterable[int] | None = None) -> list[tuple[int, ...]]:
        """Return the grid inputs of the channel's rows: ``levels`` in every coordinate."""
        return list(itertools.product(self._require_levels(levels), repeat=self.size))

    def channel(self, levels: Iterable[int] | None = None) -> list[list[Fraction]]:
        """Return P(report | grid input) exactly: one row per input, one column per output.

        Parameters
        ----------
        levels : iterable of int, optional
            Grid integers each coordinate may take; all 2R + 1 of them when not given.
        """
        chosen_levels = self._require_levels(levels)
        self._require_writable(len(chosen_levels) ** self.size * self._count_outputs())
        return [self._compute_row(grid_input) for grid_input in self.inputs(chosen_levels)]

    def _require_writable(self, cells: int) -> None:
        if cells > MAX_CHANNEL_CELLS:
            raise SchemaError(
                f"the channel of {self.name} is too large to write out (more than "
                f"{MAX_CHANNEL_CELLS} cells); take a smaller resolution or size, or name a few "
                "levels"
            )

    def _require_levels(self, levels: Iterable[int] | None) -> list[int]:
        R = self.resolution
        chosen_levels = (
            list(range(-R, R + 1)) if levels is None else [operator.index(i) for i in levels]
        )
        for level in chosen_levels:
            if abs(level) > R:
                raise SchemaError(f"level {level} is outside the grid -{R} .. {R}")
        return chosen_levels

    def _require_numbers(self, values: ArrayLike) -> Floats:
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
            expected_numbers = "one number" if self.size == 1 else f"{self.size} numbers"
            raise SchemaError(
                f"values have shape {numbers.shape}; {self.name} takes {expected_numbers} per "
                f"respondent, shape (respondents, {self.size})"
            )
        invalid_positions = np.argwhere(~(np.abs(numbers) <= 1))
        if invalid_positions.size:
            row, column = invalid_positions[0]
            fault_text = (
                "missing, and needs a public cell of its own"
                if np.isnan(numbers[row, column])
                else "outside [-1, 1]; map the public bounds there and clip"
            )
            raise SchemaError(f"respondent {row}: coordinate {column} is {fault_text}")
        return numbers

    def _round_to_grid(self, numbers: Floats, random: Random) -> Integers:
        """Round to one of the two neighbours, so that the mean stays; exact to 2^-64 of a step."""
        step_fractions, whole_steps = np.modf(
            np.abs(numbers) * self.resolution
        )  # exact: R is a power of two
        rounds_away = random.bernoulli_each((step_fractions * 2.0**64).astype(np.uint64))
        grid_levels: Integers = np.where(numbers < 0, -1, 1) * (
            whole_steps.astype(np.int64) + rounds_away
        )
        return grid_levels

    def _require_matrix(self, reports: ArrayLike) -> Integers:
        report_array = np.asarray(reports)
        if report_array.dtype.kind not in "iu" or report_array.dtype == np.uint64:
            raise SchemaError(
                f"reports are {report_array.dtype}; {self.name} reports are signed integers"
            )
        if report_array.ndim != 2 or report_array.shape[1] != self.width:
            raise SchemaError(
                f"reports have shape {report_array.shape}; {self.name} takes {self.width} integers "
                f"per report, shape (reports, {self.width})"
            )
        return report_array.astype(np.int64, copy=False)

    def _require_valid(self, reports: ArrayLike) -> Integers:
        report_matrix = self._require_matrix(reports)
        faulty_cells, broken_rule = self._find_faults(report_matrix)
        if faulty_cells.any():
            row = int(np.argmax(find_rows_with(faulty_cells)))
            raise SchemaError(
                f"{self.name} report {row} is {report_matrix[row, :8].tolist()}; {broken_rule}"
            )
        return report_matrix


def find_rows_with(cell_flags: Flags) -> Flags:
    """Say which rows hold a True."""
    row_flags: Flags = np.logical_or.reduce(cell_flags, axis=1)
    return row_flags


def require_in_range(t: float) -> float:
    """Check the value at which a variance is asked for."""
    if not -1 <= t <= 1:
        raise SchemaError(f"t is {t}; values are in [-1, 1]")
    return float(t)


def compute_rounding_variance(t: float, resolution: int) -> float:
    """Return the variance that rounding ``t`` to the grid adds to it."""
    step_fraction = math.modf(abs(require_in_range(t)) * resolution)[0]
    return step_fraction * (1 - step_fraction) / resolution**2


def _require_epsilon(epsilon: float) -> float:
    if isinstance(epsilon, bool) or not isinstance(epsilon, int | float | np.number):
        raise PrivacyError(f"epsilon is {epsilon!r}; give a number above 0")
    value = float(epsilon)
    if value == math.inf:
        raise PrivacyError("epsilon is infinite: nothing would be hidden; use exact sums instead")
    if not value >= MIN_EPSILON:
        raise PrivacyError(f"epsilon is {value}; give a number of at least {MIN_EPSILON}")
    return value


def _require_integer(name: str, value: int, minimum: int) -> int:
    try:
        number = operator.index(value)
    except TypeError:
        raise SchemaError(f"{name} is {value!r}; give an integer of at least {minimum}") from None
    if number < minimum:
        raise SchemaError(f"{name} is {number}; give an integer of at least {minimum}")
    return number
