"""Base class of the frequency oracles, and how their probabilities are rounded towards privacy.

A frequency oracle hides one value out of ``size`` in a report. A report *supports* some values:
its own with probability p, any other with probability q < p. Counting the support of many reports
gives the frequencies back without bias (docs/maths.md; Wang et al. 2017).

Every probability is an integer over 2^64, rounded so that the worst likelihood ratio stays at or
below exp(epsilon). ``p_exact`` and ``q_exact`` are what the rounded coins really do: so
``estimate`` is unbiased for the channel as implemented, and ``compute_exact_epsilon()`` is its true
loss.
"""

from __future__ import annotations

import abc
import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, ClassVar, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from discreet.arrays import Booleans, Floats, Integers
from discreet.errors import PrivacyError, SchemaError
from discreet.privacy.rounding import log_to_nearest
from discreet.privacy.shuffling import Blanket
from discreet.randomness import Random

__all__ = ["FrequencyOracle"]

Flags: TypeAlias = Booleans
Reports: TypeAlias = NDArray[Any]

PROBABILITY_UNIT = 1 << 64  # probabilities are integers over 2^64
MIN_EPSILON = 1e-9  # below it p - q would drown in the rounding to 2^-64
MAX_EPSILON = 64.0  # beyond it integers over 2^64 cannot express a larger ratio
MAX_SIZE = 1 << 22  # products of two numbers of a report stay below 2^53, for JavaScript
MAX_CHANNEL_OUTPUTS = 1 << 16  # outputs that are still enumerated


@dataclass(frozen=True)
class FrequencyOracle(abc.ABC):
    """One value out of ``size``, reported under epsilon-local differential privacy.

    Parameters
    ----------
    epsilon : float
        The loss of one report, from 1e-9 up. Only direct encoding takes ``math.inf``, which
        protects nothing: the report is the value.
    size : int
        How many values there are, from 2 to 2^22. Values are the integers 0 .. size - 1.

    Attributes
    ----------
    name : str
        The oracle's short name, as in a plan.
    """

    epsilon: float
    size: int
    # an exact fraction, at most 64: the limit of integers over 2^64
    _spendable_epsilon: Fraction = field(init=False, repr=False, compare=False)
    name: ClassVar[str]

    def __post_init__(self) -> None:
        if isinstance(self.epsilon, bool) or not isinstance(self.epsilon, int | float | np.number):
            raise PrivacyError(f"epsilon is {self.epsilon!r}; give a number above 0")
        object.__setattr__(self, "epsilon", float(self.epsilon))
        if not self.epsilon >= MIN_EPSILON:
            raise PrivacyError(
                f"epsilon is {self.epsilon!r}; it must be at least {MIN_EPSILON:g}, "
                "below which a report says nothing"
            )
        if math.isinf(self.epsilon) and self.name != "de":
            raise PrivacyError(
                f"epsilon is infinite, but {self.name} always adds noise; use de, "
                "which is exact then"
            )
        if isinstance(self.size, bool) or not isinstance(self.size, int | np.integer):
            raise SchemaError(f"size is {self.size!r}; give the number of values, an integer")
        object.__setattr__(self, "size", int(self.size))
        if not 2 <= self.size <= MAX_SIZE:
            raise SchemaError(
                f"size is {self.size}; it must be in 2 .. {MAX_SIZE}: one value alone needs "
                "no report, and more than 2^22 leave exact JavaScript numbers"
            )
        spendable_epsilon = Fraction(min(self.epsilon, MAX_EPSILON))
        object.__setattr__(self, "_spendable_epsilon", spendable_epsilon)

    @property
    def p(self) -> float:
        """P(report supports v | value v)."""
        return float(self.p_exact)

    @property
    def q(self) -> float:
        """P(report supports u | value v), u and v different."""
        return float(self.q_exact)

    @property
    @abc.abstractmethod
    def threshold(self) -> int:
        """P(report supports v | value v) over 2^64, rounded towards privacy."""

    @property
    def p_exact(self) -> Fraction:
        """What ``p`` is in the implemented channel."""
        return Fraction(self.threshold, PROBABILITY_UNIT)

    @property
    @abc.abstractmethod
    def q_exact(self) -> Fraction:
        """What ``q`` is in the implemented channel."""

    @property
    @abc.abstractmethod
    def width(self) -> int:
        """Integers in a serialised report."""

    @property
    def max_magnitude(self) -> int:
        """The largest integer of a serialised report, in either direction."""
        return self.size - 1

    @abc.abstractmethod
    def perturb(self, values: ArrayLike, random: Random) -> Reports:
        """Return one report for each value, in the oracle's compact form.

        Parameters
        ----------
        values : array of integers
            One value per respondent, each in 0 .. size - 1.
        random : Random
            The cryptographic source, unless this is a simulation.
        """

    @abc.abstractmethod
    def encode(self, reports: Reports) -> Integers:
        """Return what leaves the device: (reports, ``width``) small integers."""

    @abc.abstractmethod
    def _decode_valid(self, matrix: Integers) -> Reports:
        """Return the compact form of serialised reports that have no faults."""

    @abc.abstractmethod
    def _find_faults(self, matrix: Integers) -> Iterator[tuple[str, Flags]]:
        """Yield rules of the serialised form, each with the rows that break it."""

    @abc.abstractmethod
    def tally(self, reports: Reports) -> Integers:
        """Return how many reports support each value: exact, and additive over batches."""

    @abc.abstractmethod
    def outputs(self) -> Iterator[tuple[int, ...]]:
        """Yield every report that can leave a device, serialised."""

    @abc.abstractmethod
    def likelihood(self, value: int, report: Sequence[int]) -> Fraction:
        """Return P(serialised report | value), exactly."""

    @abc.abstractmethod
    def _compute_worst_ratio(self) -> Fraction:
        """Return the largest ratio of two likelihoods of one report; only for finite epsilon."""

    @abc.abstractmethod
    def to_plain_words(self) -> str:
        """Say what is sent, and how often it holds the truth, for the person who sends it."""

    @property
    def influence(self) -> float:
        """How many respondents one forged report outweighs in the count of one value.

        (1 - q) / (p - q): a report made up to support the value, against what ``estimate``
        expects of a person who does not hold it.
        """
        return float((1 - self.q_exact) / (self.p_exact - self.q_exact))

    @abc.abstractmethod
    def get_parameters(self) -> dict[str, Any]:
        """Return all a respondent needs to randomize, without ever calling exp.

        Integers over 2^64 are decimal strings, because JSON numbers are doubles in JavaScript.
        """

    def decode(self, matrix: ArrayLike) -> Reports:
        """Return the compact form of serialised reports, or refuse them with a reason."""
        report_rows = self._require_matrix(matrix)
        for rule, faulty_rows in self._find_faults(report_rows):
            if faulty_rows.any():
                row = int(np.argmax(faulty_rows))
                shown_row = str(report_rows[row, :8].tolist())
                raise SchemaError(f"{self.name} report {row}: {rule}; it reads {shown_row}")
        return self._decode_valid(report_rows)

    def find_faulty(self, matrix: ArrayLike) -> Flags:
        """Return which serialised reports ``decode`` would refuse, to count them and go on."""
        report_rows = self._require_matrix(matrix)
        refused_rows = np.zeros(len(report_rows), np.bool_)
        for _, faulty_rows in self._find_faults(report_rows):
            refused_rows |= faulty_rows
        return refused_rows

    def estimate(self, tally: ArrayLike, respondents: int) -> Floats:
        """Return unbiased estimates of how many respondents hold each value.

        Parameters
        ----------
        tally : array of integers, (size,)
            Summed results of ``tally``.
        respondents : int
            How many reports were tallied.
        """
        support_counts = np.asarray(tally, np.float64)
        p_minus_q = float(self.p_exact - self.q_exact)
        # Wang et al. 2017, eq. 2
        return (support_counts - respondents * float(self.q_exact)) / p_minus_q

    def variance(self, frequency: float = 0.0) -> float:
        """Return what one respondent adds to the variance of an estimated count.

        The estimated count of a value that a share ``frequency`` of m respondents holds has
        variance m * variance(frequency); the estimated share has variance(frequency) / m.
        """
        # q(1-q)/(p-q)^2 + f (1-p-q)/(p-q) where support is a bit: Wang et al. 2017, eq. 4
        own_variance, other_variance, _, _ = self._compute_covariances()
        share, p_minus_q = Fraction(frequency), self.p_exact - self.q_exact
        return float((share * own_variance + (1 - share) * other_variance) / p_minus_q**2)

    @abc.abstractmethod
    def _compute_covariances(self) -> tuple[Fraction, Fraction, Fraction, Fraction]:
        """Return the covariances of a report's support of two values, given the true value v.

        Of v with itself, of another value with itself, of v with another, and of two others.
        """

    def compute_sum_variances(self, groups: ArrayLike, frequencies: ArrayLike) -> Floats:
        """Return what one respondent adds to the variance of sums of estimated counts.

        Parameters
        ----------
        groups : array of integers, (size,)
            For every value the number of the sum that it belongs to.
        frequencies : array of float, (size,)
            The share of respondents who hold each value, or an estimate of it.

        Returns
        -------
        array of float
            One number for each sum: m respondents give a sum of estimated counts this variance
            times m. Shares of a sum outside [0, 1] count as 0 or 1.

        Examples
        --------
        >>> from discreet.mechanisms.frequency import OUE
        >>> oracle = OUE(epsilon=1.0, size=4)
        >>> oracle.compute_sum_variances([0, 0, 1, 1], [0.25] * 4).round(2).tolist()
        [7.87, 7.87]
        """
        group_labels = np.asarray(groups, np.int64)
        group_sizes = np.bincount(group_labels)
        group_shares = np.bincount(group_labels, np.asarray(frequencies, np.float64)).clip(0.0, 1.0)
        squared_p_minus_q = float(self.p_exact - self.q_exact) ** 2
        own_variance, other_variance, own_other_covariance, two_others_covariance = (
            float(covariance) / squared_p_minus_q for covariance in self._compute_covariances()
        )
        variance_outside = (
            group_sizes * other_variance + group_sizes * (group_sizes - 1) * two_others_covariance
        )
        variance_inside = (
            own_variance
            + (group_sizes - 1) * (other_variance + 2 * own_other_covariance)
            + (group_sizes - 1) * (group_sizes - 2) * two_others_covariance
        )
        return np.asarray(
            group_shares * variance_inside + (1 - group_shares) * variance_outside
        )  # docs/maths.md

    def blanket(self) -> Blanket:
        """Return the part of a report's law that all values share, to hide in where shuffled.

        For oracles whose reports have two likelihoods, the higher one for the values that they
        support: all but SHE and OLH, which override this. With b =
        P(supports both v and u | v), the ratio is (p - b) / (q - b).
        """
        p, q = self.p_exact, self.q_exact
        both_supported = self._compute_covariances()[2] + p * q
        ratio = (p - both_supported) / (q - both_supported)
        blanket_masses = (
            ratio,
            q - both_supported,
            both_supported / ratio,
            1 - p - q + both_supported,
        )
        return Blanket(*(float(mass) for mass in blanket_masses))

    def compute_exact_epsilon(self) -> float:
        """Return the true loss of the implemented channel: at most ``epsilon``, by rounding."""
        return math.inf if math.isinf(self.epsilon) else log_to_nearest(self._compute_worst_ratio())

    def channel(self) -> list[list[Fraction]]:
        """Return P(serialised report | value): one row per value, one column per output.

        Raises
        ------
        PrivacyError
            When there are more than 2^16 outputs; ``compute_exact_epsilon`` needs no enumeration.
        """
        all_reports = list(itertools.islice(self.outputs(), MAX_CHANNEL_OUTPUTS + 1))
        if len(all_reports) > MAX_CHANNEL_OUTPUTS:
            raise PrivacyError(
                f"the channel of {self.name} at size {self.size} has more than "
                f"{MAX_CHANNEL_OUTPUTS} outputs, too many to write out; ask for "
                "compute_exact_epsilon() or likelihood()"
            )
        return [
            [self.likelihood(value, report) for report in all_reports] for value in range(self.size)
        ]

    def _require_values(self, values: ArrayLike) -> Integers:
        """Return private values as integers, or refuse them without repeating them."""
        value_array = np.asarray(values)
        if value_array.ndim != 1 or (
            value_array.size and not np.issubdtype(value_array.dtype, np.integer)
        ):
            raise SchemaError(
                f"{self.name} perturbs a flat array of integers, not {value_array.ndim} "
                f"dimensions of {value_array.dtype}"
            )
        if value_array.size and not (value_array.min() >= 0 and value_array.max() < self.size):
            raise SchemaError(f"a value is outside 0 .. {self.size - 1}, the public domain")
        return value_array.astype(np.int64, copy=False)

    def _require_matrix(self, matrix: ArrayLike) -> Integers:
        report_array = np.asarray(matrix)
        if report_array.ndim != 2 or report_array.shape[1] != self.width:
            raise SchemaError(
                f"a {self.name} report over {self.size} values has {self.width} integers; "
                f"this array has the shape {report_array.shape}"
            )
        if not np.issubdtype(report_array.dtype, np.integer):
            raise SchemaError(
                f"a {self.name} report is made of integers, not of {report_array.dtype}"
            )
        return report_array.astype(np.int64, copy=False)


def format_percent(probability: float | Fraction) -> str:
    """Return a probability as people read it: two digits of whichever side is rarer."""
    percentage = 100 * float(probability)
    if percentage <= 0 or percentage >= 100:
        return f"{percentage:.0f} %"
    rarer_side = min(percentage, 100 - percentage)
    digit_count = max(1, 1 - math.floor(math.log10(rarer_side)))
    return f"{percentage:.{digit_count}f} %"


def find_outside(numbers: Integers, lowest: int, highest: int) -> Flags:
    """Return which rows hold a number outside lowest .. highest."""
    outside_rows: Flags = np.any((numbers < lowest) | (numbers > highest), axis=1)
    return outside_rows


def count_values(numbers: Reports, size: int) -> Integers:
    """Count the numbers 0 .. size - 1."""
    flat_numbers = numbers.reshape(-1)
    if flat_numbers.size and not (flat_numbers.min() >= 0 and flat_numbers.max() < size):
        raise SchemaError(f"a report is outside 0 .. {size - 1}; decode() refuses such reports")
    return np.bincount(flat_numbers, minlength=size).astype(np.int64, copy=False)


def split_into_batches(rows: int, columns: int) -> Iterator[slice]:
    """Cut rows so that a batch of rows x columns small numbers stays in the cache."""
    batch_rows = max(1, (1 << 18) // columns)
    for first_row in range(0, rows, batch_rows):
        yield slice(first_row, min(first_row + batch_rows, rows))


def compute_question_cost(oracle: FrequencyOracle) -> float:
    """Compute c(D): variance of a margin of the estimated table relative to plain sampling."""
    if math.isinf(oracle.epsilon):
        return 1.0
    cell_share = 1 / oracle.size
    return (oracle.variance(cell_share) + cell_share * (1 - cell_share)) / (
        cell_share * (1 - cell_share)
    )


def compute_uniform_variance(p: Fraction, q: Fraction, size: int) -> Fraction:
    """Return the variance of a report's estimate of a value drawn with probability 1/size.

    pi (1 - pi) / (p - q)^2, pi = q + (p - q)/size: docs/maths.md. It is the variance
    at that frequency plus that of drawing the value.
    """
    support_probability = q + (p - q) / size
    return support_probability * (1 - support_probability) / (p - q) ** 2


def keep_or_replace(values: Integers, size: int, threshold: int, random: Random) -> Integers:
    """Return each value with probability threshold / 2^64, else a uniform other one."""
    reports = np.empty_like(values)
    for batch in split_into_batches(values.size, 8):
        batch_size = batch.stop - batch.start
        offsets = (
            random.integers(size - 1, batch_size) + 1
        )  # never zero: that would be the truth again
        offsets *= ~random.bernoulli_words(threshold, batch_size)
        offsets += values[batch]
        offsets -= size * (offsets >= size)
        reports[batch] = offsets
    return reports
