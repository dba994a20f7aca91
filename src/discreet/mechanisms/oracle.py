"""Base class of the frequency oracles, and how their probabilities are rounded towards privacy.

A frequency oracle hides one value out of ``size`` in a report. A report *supports* some values:
its own with probability p, any other with probability q < p. Counting the support of many reports
gives the frequencies back without bias (docs/maths.md; Wang et al. 2017).

Every probability is an integer over 2^64, rounded so that the worst likelihood ratio stays at or
below exp(epsilon). ``p_exact`` and ``q_exact`` are what the rounded coins really do: so
``estimate`` is unbiased for the channel as implemented, and ``epsilon_exact`` is its true loss.
"""

from __future__ import annotations

import abc
import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from discreet.arrays import Booleans, Floats, Integers
from discreet.errors import PrivacyError, SchemaError
from discreet.losses import log
from discreet.randomness import Random
from discreet.shuffling import Blanket

__all__ = ["FrequencyOracle"]

Flags: TypeAlias = Booleans
Reports: TypeAlias = NDArray[Any]

ONE = 1 << 64  # probabilities are integers over 2^64
SMALLEST_EPSILON = 1e-9  # below it p - q would drown in the rounding to 2^-64
LARGEST_EPSILON = 64.0  # beyond it integers over 2^64 cannot express a larger ratio
LARGEST_SIZE = 1 << 22  # products of two numbers of a report stay below 2^53, for JavaScript
LARGEST_CHANNEL = 1 << 16  # outputs that are still enumerated


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
    name: ClassVar[str]

    def __post_init__(self) -> None:
        if isinstance(self.epsilon, bool) or not isinstance(self.epsilon, int | float | np.number):
            raise PrivacyError(f"epsilon is {self.epsilon!r}; give a number above 0")
        object.__setattr__(self, "epsilon", float(self.epsilon))
        if not self.epsilon >= SMALLEST_EPSILON:
            raise PrivacyError(
                f"epsilon is {self.epsilon!r}; it must be at least {SMALLEST_EPSILON:g}, "
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
        if not 2 <= self.size <= LARGEST_SIZE:
            raise SchemaError(
                f"size is {self.size}; it must be in 2 .. {LARGEST_SIZE}: one value alone needs "
                "no report, and more than 2^22 leave exact JavaScript numbers"
            )

    @property
    def _budget(self) -> Fraction:
        """Epsilon as an exact fraction, at most 64: the limit of integers over 2^64."""
        return Fraction(min(self.epsilon, LARGEST_EPSILON))

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
    def p_exact(self) -> Fraction:
        """What ``p`` is in the implemented channel."""

    @property
    @abc.abstractmethod
    def q_exact(self) -> Fraction:
        """What ``q`` is in the implemented channel."""

    @property
    @abc.abstractmethod
    def width(self) -> int:
        """Integers in a serialised report."""

    @property
    def furthest(self) -> int:
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
    def _decoded(self, matrix: Integers) -> Reports:
        """Return the compact form of serialised reports that have no faults."""

    @abc.abstractmethod
    def _faults(self, matrix: Integers) -> Iterator[tuple[str, Flags]]:
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
    def _worst_ratio(self) -> Fraction:
        """Return the largest ratio of two likelihoods of one report; only for finite epsilon."""

    @abc.abstractmethod
    def in_words(self) -> str:
        """Say what is sent, and how often it holds the truth, for the person who sends it."""

    @property
    def influence(self) -> float:
        """How many respondents one forged report outweighs in the count of one value.

        (1 - q) / (p - q): a report made up to support the value, against what ``estimate``
        expects of a person who does not hold it.
        """
        return float((1 - self.q_exact) / (self.p_exact - self.q_exact))

    @abc.abstractmethod
    def parameters(self) -> dict[str, Any]:
        """Return all a respondent needs to randomize, without ever calling exp.

        Integers over 2^64 are decimal strings, because JSON numbers are doubles in JavaScript.
        """

    def decode(self, matrix: ArrayLike) -> Reports:
        """Return the compact form of serialised reports, or refuse them with a reason."""
        numbers = self._matrix(matrix)
        for rule, broken in self._faults(numbers):
            if broken.any():
                row = int(np.argmax(broken))
                shown = str(numbers[row, :8].tolist())
                raise SchemaError(f"{self.name} report {row}: {rule}; it reads {shown}")
        return self._decoded(numbers)

    def faulty(self, matrix: ArrayLike) -> Flags:
        """Return which serialised reports ``decode`` would refuse, to count them and go on."""
        numbers = self._matrix(matrix)
        refused = np.zeros(len(numbers), np.bool_)
        for _, broken in self._faults(numbers):
            refused |= broken
        return refused

    def estimate(self, tally: ArrayLike, respondents: int) -> Floats:
        """Return unbiased estimates of how many respondents hold each value.

        Parameters
        ----------
        tally : array of integers, (size,)
            Summed results of ``tally``.
        respondents : int
            How many reports were tallied.
        """
        support = np.asarray(tally, np.float64)
        gain = float(self.p_exact - self.q_exact)
        return (support - respondents * self.q) / gain  # Wang et al. 2017, eq. 2

    def variance(self, frequency: float = 0.0) -> float:
        """Return what one respondent adds to the variance of an estimated count.

        The estimated count of a value that a share ``frequency`` of m respondents holds has
        variance m * variance(frequency); the estimated share has variance(frequency) / m.
        """
        return float(self._variance(Fraction(frequency)))

    def _variance(self, frequency: Fraction) -> Fraction:
        # q(1-q)/(p-q)^2 + f (1-p-q)/(p-q) where support is a bit: Wang et al. 2017, eq. 4
        own, other, _, _ = self._covariances()
        gain = self.p_exact - self.q_exact
        return (frequency * own + (1 - frequency) * other) / gain**2

    @abc.abstractmethod
    def _covariances(self) -> tuple[Fraction, Fraction, Fraction, Fraction]:
        """Return the covariances of a report's support of two values, given the true value v.

        Of v with itself, of another value with itself, of v with another, and of two others.
        """

    def sum_variances(self, groups: ArrayLike, frequencies: ArrayLike) -> Floats:
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
        >>> oracle.sum_variances([0, 0, 1, 1], [0.25] * 4).round(2).tolist()
        [7.87, 7.87]
        """
        label = np.asarray(groups, np.int64)
        many = np.bincount(label)
        share = np.bincount(label, np.asarray(frequencies, np.float64)).clip(0.0, 1.0)
        gain = float(self.p_exact - self.q_exact) ** 2
        own, other, beside, between = (float(one) / gain for one in self._covariances())
        without = many * other + many * (many - 1) * between
        among = own + (many - 1) * (other + 2 * beside) + (many - 1) * (many - 2) * between
        return np.asarray(share * among + (1 - share) * without)  # docs/maths.md

    def blanket(self) -> Blanket:
        """Return the part of a report's law that all values share, to hide in where shuffled.

        For oracles whose reports have two likelihoods, the higher one for the values that they
        support: all but SHE and OLH, which override this. With b =
        P(supports both v and u | v), the ratio is (p - b) / (q - b).
        """
        p, q = self.p_exact, self.q_exact
        both = self._covariances()[2] + p * q
        ratio = (p - both) / (q - both)
        masses = (ratio, q - both, both / ratio, 1 - p - q + both)
        return Blanket(*(float(one) for one in masses))

    def epsilon_exact(self) -> float:
        """Return the true loss of the implemented channel: at most ``epsilon``, by rounding."""
        return math.inf if math.isinf(self.epsilon) else log(self._worst_ratio())

    def channel(self) -> list[list[Fraction]]:
        """Return P(serialised report | value): one row per value, one column per output.

        Raises
        ------
        PrivacyError
            When there are more than 2^16 outputs; ``epsilon_exact`` needs no enumeration.
        """
        outputs = list(itertools.islice(self.outputs(), LARGEST_CHANNEL + 1))
        if len(outputs) > LARGEST_CHANNEL:
            raise PrivacyError(
                f"the channel of {self.name} at size {self.size} has more than {LARGEST_CHANNEL} "
                "outputs, too many to write out; ask for epsilon_exact() or likelihood()"
            )
        return [[self.likelihood(v, report) for report in outputs] for v in range(self.size)]

    def _values(self, values: ArrayLike) -> Integers:
        """Return private values as integers, or refuse them without repeating them."""
        array = np.asarray(values)
        if array.ndim != 1 or (array.size and not np.issubdtype(array.dtype, np.integer)):
            raise SchemaError(
                f"{self.name} perturbs a flat array of integers, not {array.ndim} dimensions of "
                f"{array.dtype}"
            )
        if array.size and not (array.min() >= 0 and array.max() < self.size):
            raise SchemaError(f"a value is outside 0 .. {self.size - 1}, the public domain")
        return array.astype(np.int64, copy=False)

    def _matrix(self, matrix: ArrayLike) -> Integers:
        array = np.asarray(matrix)
        if array.ndim != 2 or array.shape[1] != self.width:
            raise SchemaError(
                f"a {self.name} report over {self.size} values has {self.width} integers; "
                f"this array has the shape {array.shape}"
            )
        if not np.issubdtype(array.dtype, np.integer):
            raise SchemaError(f"a {self.name} report is made of integers, not of {array.dtype}")
        return array.astype(np.int64, copy=False)


def percent(probability: float | Fraction) -> str:
    """Return a probability as people read it: two digits of whichever side is rarer."""
    part = 100 * float(probability)
    if part <= 0 or part >= 100:
        return f"{part:.0f} %"
    rarer = min(part, 100 - part)
    digits = max(1, 1 - math.floor(math.log10(rarer)))
    return f"{part:.{digits}f} %"


def outside(numbers: Integers, lowest: int, highest: int) -> Flags:
    """Return which rows hold a number outside lowest .. highest."""
    flags: Flags = np.any((numbers < lowest) | (numbers > highest), axis=1)
    return flags


def histogram(numbers: Reports, size: int) -> Integers:
    """Count the numbers 0 .. size - 1."""
    flat = numbers.reshape(-1)
    if flat.size and not (flat.min() >= 0 and flat.max() < size):
        raise SchemaError(f"a report lies outside 0 .. {size - 1}; decode() refuses such reports")
    return np.bincount(flat, minlength=size).astype(np.int64, copy=False)


def batches(rows: int, columns: int) -> Iterator[slice]:
    """Cut rows so that a batch of rows x columns small numbers stays in the cache."""
    step = max(1, (1 << 18) // columns)
    for start in range(0, rows, step):
        yield slice(start, min(start + step, rows))


def share(threshold: int) -> Fraction:
    """Return the probability that an integer over 2^64 stands for."""
    return Fraction(threshold, ONE)


def spread(p: Fraction, q: Fraction, size: int) -> Fraction:
    """Return the variance of a report's estimate of a value drawn with probability 1/size.

    pi (1 - pi) / (p - q)^2, pi = q + (p - q)/size: docs/maths.md. It is the variance
    at that frequency plus that of drawing the value.
    """
    supported = q + (p - q) / size
    return supported * (1 - supported) / (p - q) ** 2


def or_another(values: Integers, size: int, threshold: int, random: Random) -> Integers:
    """Return each value with probability threshold / 2^64, else a uniform other one."""
    reports = np.empty_like(values)
    for part in batches(values.size, 8):
        count = part.stop - part.start
        offset = random.integers(size - 1, count) + 1  # never zero: that would be the truth again
        offset *= ~random.bernoulli_words(threshold, count)
        offset += values[part]
        offset -= size * (offset >= size)
        reports[part] = offset
    return reports
