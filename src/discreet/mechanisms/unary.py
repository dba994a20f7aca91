"""A report with a number for every value: unary encodings (bits) and histogram encodings.

SUE, OUE and THE send bits, each flipped on its own: 1 with probability p at the true value and q
elsewhere. SHE sends noisy numbers. All are Wang et al. 2017 (section 4) and docs/maths.md,
section 1.
"""

from __future__ import annotations

import abc
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from discreet.arrays import Floats, Integers
from discreet.errors import PrivacyError
from discreet.losses import exp_above, exp_below
from discreet.mechanisms.oracle import (
    ONE,
    Flags,
    FrequencyOracle,
    Reports,
    batches,
    outside,
    percent,
    share,
)
from discreet.randomness import Random
from discreet.shuffling import Blanket

__all__ = ["OUE", "SHE", "SUE", "THE", "UnaryOracle"]

BITS_OF_BYTES = np.unpackbits(np.arange(256, dtype=np.uint8)[:, None], axis=1, bitorder="little")


@dataclass(frozen=True)
class UnaryOracle(FrequencyOracle):
    """``size`` independent bits, one per value.

    A compact report is a row of ceil(size / 8) bytes (uint8), value v the bit v % 8 of byte v // 8,
    padding zero. Serialised it is ceil(size / 16) words of 16 bits, low values first.
    """

    @cached_property
    def thresholds(self) -> tuple[int, int]:
        """P(bit is 1) over 2^64, at the true value and elsewhere."""
        return self._thresholds()

    @abc.abstractmethod
    def _thresholds(self) -> tuple[int, int]:
        """Compute ``thresholds``, rounding towards privacy."""

    @property
    def p_exact(self) -> Fraction:
        """P(bit is 1) at the true value."""
        return share(self.thresholds[0])

    @property
    def q_exact(self) -> Fraction:
        """P(bit is 1) elsewhere."""
        return share(self.thresholds[1])

    def _covariances(self) -> tuple[Fraction, Fraction, Fraction, Fraction]:
        p, q = self.p_exact, self.q_exact  # the bits are independent
        return p * (1 - p), q * (1 - q), Fraction(0), Fraction(0)

    @property
    def width(self) -> int:
        """Words of 16 bits."""
        return -(-self.size // 16)

    @property
    def furthest(self) -> int:
        """The largest word."""
        return (1 << 16) - 1

    def perturb(self, values: ArrayLike, random: Random) -> Reports:
        """Return bit-packed rows: every bit drawn with q, then the true one again with p."""
        true = self._values(values)
        one, zero = self.thresholds
        packed = random.bits(zero, true.size, self.size)
        row_bytes = packed.shape[1]
        flat = packed.reshape(-1)
        for part in batches(true.size, 8):
            value = true[part]
            byte = np.arange(part.start, part.stop) * row_bytes + (value >> 3)
            bit = np.left_shift(1, value & 7).astype(np.uint8)
            kept = flat[byte] & ~bit
            flat[byte] = kept | bit * random.bernoulli_words(one, value.size)
        return packed

    def encode(self, reports: Reports) -> Integers:
        """Return the words of 16 bits."""
        padded = np.zeros((len(reports), 2 * self.width), np.uint8)
        padded[:, : reports.shape[1]] = reports
        return padded.view("<u2").astype(np.int64)

    def _decoded(self, matrix: Integers) -> Reports:
        packed = matrix.astype("<u2").view(np.uint8)
        return np.ascontiguousarray(packed[:, : -(-self.size // 8)])

    def _faults(self, matrix: Integers) -> Iterator[tuple[str, Flags]]:
        yield "a word lies outside 0 .. 65535", outside(matrix, 0, 65535)
        used = self.size - 16 * (self.width - 1)
        yield f"a bit beyond the {self.size} values is set", matrix[:, -1] >= 1 << used

    def tally(self, reports: Reports) -> Integers:
        """Count the ones of every value: a histogram of each column of bytes, then of its bits."""
        counts = np.zeros((reports.shape[1], 256), np.int64)
        for part in batches(len(reports), reports.shape[1]):
            batch = reports[part].T.astype(np.intp, order="C")
            for column, numbers in enumerate(batch):
                counts[column] += np.bincount(numbers, minlength=256)
        return (counts @ BITS_OF_BYTES.astype(np.int64)).reshape(-1)[: self.size]

    def outputs(self) -> Iterator[tuple[int, ...]]:
        """Yield every pattern of bits."""
        for pattern in range(1 << self.size):
            yield tuple(pattern >> 16 * word & 0xFFFF for word in range(self.width))

    def likelihood(self, value: int, report: Sequence[int]) -> Fraction:
        """Return the product of the bits' probabilities."""
        one, zero = self.thresholds
        pattern = sum(word << 16 * place for place, word in enumerate(report))
        true = pattern >> value & 1
        ones = pattern.bit_count() - true
        zeros = self.size - 1 - ones
        numerator = (one if true else ONE - one) * zero**ones * (ONE - zero) ** zeros
        return Fraction(numerator, ONE**self.size)

    def _worst_ratio(self) -> Fraction:
        p, q = self.p_exact, self.q_exact
        return p * (1 - q) / (q * (1 - p))  # the bits of both values differ: Wang et al., sect. 4.2

    def in_words(self) -> str:
        """Say what is sent, and how often it holds the truth."""
        return (
            f"What is sent is a yes or a no for each of the {self.size} answers: yes with a chance "
            f"of {percent(self.p)} at the true one, with a chance of {percent(self.q)} at each "
            "other one."
        )

    def parameters(self) -> dict[str, Any]:
        """Return the size and both coins."""
        one, zero = self.thresholds
        return {"size": self.size, "p": str(one), "q": str(zero)}


@dataclass(frozen=True)
class SUE(UnaryOracle):
    """Symmetric unary encoding (basic RAPPOR): every bit flips with the same probability.

    See ``FrequencyOracle`` and ``UnaryOracle``.
    """

    name: ClassVar[str] = "sue"

    def _thresholds(self) -> tuple[int, int]:
        """Return p = exp(eps/2) / (exp(eps/2) + 1), q = 1 - p."""
        root = exp_below(self._budget / 2)
        truth = math.floor(ONE * root / (root + 1))
        return truth, ONE - truth


@dataclass(frozen=True)
class OUE(UnaryOracle):
    """Optimal unary encoding: the least variance of rare values among unary encodings.

    See ``FrequencyOracle`` and ``UnaryOracle``.
    """

    name: ClassVar[str] = "oue"

    def _thresholds(self) -> tuple[int, int]:
        """Return p = 1/2, q = 1 / (exp(eps) + 1)."""
        return ONE // 2, math.ceil(ONE / (exp_below(self._budget) + 1))


@dataclass(frozen=True)
class THE(UnaryOracle):
    """Thresholding histogram encoding: whether each noisy number of SHE exceeds theta.

    The bits are drawn directly with the probabilities that Laplace noise would give them; so no
    noise is drawn and the channel is exact. See ``FrequencyOracle`` and ``UnaryOracle``.

    Parameters
    ----------
    epsilon, size
        As in ``FrequencyOracle``.
    theta : float or None
        The threshold, in [0, 1]; Yilmaz et al. use 0.25. None picks the one of least variance, a
        multiple of 1/1024 in (1/2, 1).
    """

    theta: float | None = None
    name: ClassVar[str] = "the"

    def __post_init__(self) -> None:
        super().__post_init__()
        theta = _best_theta(self.epsilon) if self.theta is None else self.theta
        numeric = isinstance(theta, int | float | np.number) and not isinstance(theta, bool)
        if not numeric or not 0 <= theta <= 1:
            raise PrivacyError(
                f"theta is {theta!r}; it must lie in [0, 1], or be None for the one of least "
                "variance"
            )
        object.__setattr__(self, "theta", float(theta))

    def _thresholds(self) -> tuple[int, int]:
        """Return p = 1 - exp(eps (theta - 1) / 2) / 2, q = exp(-eps theta / 2) / 2.

        Laplace(2/eps) around 1 and around 0 exceeds theta with these; Yilmaz et al. have p with the
        exponent's sign flipped. The ratio p(1-q) / (q(1-p)) only falls as p falls and q rises.
        """
        theta = Fraction(self.theta or 0.0)
        miss = exp_above(self._budget * (theta - 1) / 2) / 2
        stray = exp_above(-self._budget * theta / 2) / 2
        return ONE - math.ceil(ONE * miss), math.ceil(ONE * stray)

    def parameters(self) -> dict[str, Any]:
        """Return the size, both coins and theta, which explains them."""
        return {**super().parameters(), "theta": self.theta}


def _best_theta(epsilon: float) -> float:
    """Return the multiple of 1/1024 in (1/2, 1) of least variance q(1-q)/(p-q)^2."""
    theta = np.arange(513, 1024) / 1024
    budget = min(epsilon, 64.0)
    # expm1 keeps p - q exact to the last digits when epsilon is tiny
    stray = np.exp(-budget * theta / 2) / 2
    gain = -np.expm1(budget * (theta - 1) / 2) / 2 - np.expm1(-budget * theta / 2) / 2
    return float(theta[np.argmin(stray * (1 - stray) / gain**2)])


@dataclass(frozen=True)
class SHE(FrequencyOracle):
    """Summation with histogram encoding: discrete Laplace noise on every number of the histogram.

    The public grid has 64 steps to one; noise has scale 2/epsilon. Compact and serialised reports
    are ``size`` grid integers (int32 where they fit, else int64). A number further out than
    64 + 64 * scale grid steps is cut there, which happens with a chance below exp(-63). See
    ``FrequencyOracle``; the tally sums grid integers instead of counting, p is 1 and q is 0.
    """

    name: ClassVar[str] = "she"
    unit: ClassVar[int] = 64

    @cached_property
    def scale(self) -> Fraction:
        """The noise's scale in grid steps: 2 unit / eps, rounded up to a multiple of 2^-16."""
        exact = 2 * self.unit / self._budget
        return Fraction(math.ceil(exact * (1 << 16)), 1 << 16)

    @property
    def furthest(self) -> int:
        """The largest grid integer that is sent, in either direction."""
        return self.unit + math.ceil(64 * self.scale)

    @property
    def p_exact(self) -> Fraction:
        """The mean of the number at the true value."""
        return Fraction(1)

    @property
    def q_exact(self) -> Fraction:
        """The mean of any other number."""
        return Fraction(0)

    @property
    def width(self) -> int:
        """One grid integer per value."""
        return self.size

    def perturb(self, values: ArrayLike, random: Random) -> Reports:
        """Return rows of grid integers."""
        true = self._values(values)
        reports = np.empty((true.size, self.size), self._kind)
        for part in batches(true.size, self.size):
            value = true[part]
            noisy = random.discrete_laplace(self.scale, value.size * self.size)
            noisy[np.arange(value.size) * self.size + value] += self.unit
            np.clip(noisy, -self.furthest, self.furthest, out=noisy)
            reports[part] = noisy.reshape(-1, self.size)
        return reports

    @property
    def _kind(self) -> type[np.int32 | np.int64]:
        return np.int32 if self.furthest < 1 << 31 else np.int64

    def encode(self, reports: Reports) -> Integers:
        """Return the grid integers."""
        return reports.astype(np.int64)

    def _decoded(self, matrix: Integers) -> Reports:
        return matrix.astype(self._kind)

    def _faults(self, matrix: Integers) -> Iterator[tuple[str, Flags]]:
        end = self.furthest
        yield f"a number lies outside -{end} .. {end}", outside(matrix, -end, end)

    def tally(self, reports: Reports) -> Integers:
        """Sum the grid integers of every value."""
        sums: Integers = reports.sum(axis=0, dtype=np.int64)
        return sums

    def estimate(self, tally: ArrayLike, respondents: int) -> Floats:
        """Return the sums in units of one: the noise has mean zero."""
        return np.asarray(tally, np.float64) / self.unit

    def _covariances(self) -> tuple[Fraction, Fraction, Fraction, Fraction]:
        # discrete Laplace: 2t/(1-t)^2, t = exp(-1/scale), in grid steps; 8/eps^2 when step -> 0
        t = exp_below(-1 / self.scale)
        noise = 2 * t / (1 - t) ** 2 / self.unit**2
        return noise, noise, Fraction(0), Fraction(0)

    def outputs(self) -> Iterator[tuple[int, ...]]:
        """Refuse: there are too many reports to enumerate."""
        raise PrivacyError(
            "she sends integers of a wide range, too many reports to write out; log_ratio() "
            "compares two values on any report exactly"
        )

    def likelihood(self, value: int, report: Sequence[int]) -> Fraction:
        """Refuse: the probabilities are irrational."""
        raise PrivacyError("the likelihoods of she are irrational; log_ratio() is exact")

    def log_ratio(self, report: Sequence[int], one: int, other: int) -> Fraction:
        """Return ln of P(report | one) / P(report | other), a rational number.

        P(x) is proportional to exp(-|x|/scale), so only the two values' numbers count.
        """
        distance = abs(report[one]) - abs(report[one] - self.unit)
        distance += abs(report[other] - self.unit) - abs(report[other])
        return distance / self.scale

    def _worst_ratio(self) -> Fraction:
        raise PrivacyError("the worst ratio of she is not a fraction; use epsilon_exact()")

    def blanket(self) -> Blanket:
        """Return the blanket of any mechanism with this epsilon: likelihoods are many."""
        return Blanket.of_epsilon(self.epsilon)

    def epsilon_exact(self) -> float:
        """Return 2 unit / scale: both numbers move by one unit."""
        return float(2 * self.unit / self.scale)

    def in_words(self) -> str:
        """Say what is sent, and how far it lies from the truth."""
        return (
            f"What is sent is a number for each of the {self.size} answers: 1 at the true one, 0 "
            "at each other one, with random noise of a standard deviation of "
            f"{math.sqrt(self.variance()):.3g} added to all of them."
        )

    @property
    def influence(self) -> float:
        """How many respondents one forged report outweighs: the largest number that is sent."""
        return self.furthest / self.unit

    def parameters(self) -> dict[str, Any]:
        """Return the size, the grid and the noise's scale in grid steps times 2^16."""
        return {
            "size": self.size,
            "unit": self.unit,
            "scale": str(self.scale * (1 << 16)),
            "furthest": self.furthest,
        }
