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
from discreet.mechanisms.oracle import (
    PROBABILITY_UNIT,
    Flags,
    FrequencyOracle,
    Reports,
    find_outside,
    format_percent,
    split_into_batches,
)
from discreet.privacy.rounding import exp_rounded_down, exp_rounded_up
from discreet.privacy.shuffling import Blanket
from discreet.randomness import Random

__all__ = ["OUE", "SHE", "SUE", "THE", "UnaryOracle"]

BITS_BY_BYTE = np.unpackbits(np.arange(256, dtype=np.uint8)[:, None], axis=1, bitorder="little")
"""The eight bits of each of the 256 bytes, the least significant one first."""


@dataclass(frozen=True)
class UnaryOracle(FrequencyOracle):
    """``size`` independent bits, one per value.

    A compact report is a row of ceil(size / 8) bytes (uint8), value v the bit v % 8 of byte v // 8,
    padding zero. Serialised it is ceil(size / 16) words of 16 bits, low values first.
    """

    max_magnitude = (1 << 16) - 1
    """The largest word."""

    @property
    @abc.abstractmethod
    def other_threshold(self) -> int:
        """P(bit is 1) over 2^64 elsewhere than at the true value, rounded towards privacy."""

    @property
    def q_exact(self) -> Fraction:
        """P(bit is 1) elsewhere."""
        return Fraction(self.other_threshold, PROBABILITY_UNIT)

    def _compute_covariances(self) -> tuple[Fraction, Fraction, Fraction, Fraction]:
        p, q = self.p_exact, self.q_exact  # the bits are independent
        return p * (1 - p), q * (1 - q), Fraction(0), Fraction(0)

    @property
    def width(self) -> int:
        """Words of 16 bits."""
        return -(-self.size // 16)

    def perturb(self, values: ArrayLike, random: Random) -> Reports:
        """Return bit-packed rows: every bit drawn with q, then the true one again with p."""
        true_values = self._require_values(values)
        packed_bits = random.bits(self.other_threshold, true_values.size, self.size)
        row_bytes = packed_bits.shape[1]
        flat_bytes = packed_bits.reshape(-1)
        for batch in split_into_batches(true_values.size, 8):
            batch_values = true_values[batch]
            byte_indices = np.arange(batch.start, batch.stop) * row_bytes + (batch_values >> 3)
            true_bits = np.left_shift(1, batch_values & 7).astype(np.uint8)
            other_bits = flat_bytes[byte_indices] & ~true_bits
            flat_bytes[byte_indices] = other_bits | true_bits * random.bernoulli_words(
                self.threshold, batch_values.size
            )
        return packed_bits

    def encode(self, reports: Reports) -> Integers:
        """Return the words of 16 bits."""
        padded_bytes = np.zeros((len(reports), 2 * self.width), np.uint8)
        padded_bytes[:, : reports.shape[1]] = reports
        return padded_bytes.view("<u2").astype(np.int64)

    def _decode_valid(self, matrix: Integers) -> Reports:
        packed_bytes = matrix.astype("<u2").view(np.uint8)
        return np.ascontiguousarray(packed_bytes[:, : -(-self.size // 8)])

    def _find_faults(self, matrix: Integers) -> Iterator[tuple[str, Flags]]:
        yield "a word is outside 0 .. 65535", find_outside(matrix, 0, 65535)
        used_bits = self.size - 16 * (self.width - 1)
        yield f"a bit beyond the {self.size} values is set", matrix[:, -1] >= 1 << used_bits

    def tally(self, reports: Reports) -> Integers:
        """Count the ones of every value: a histogram of each column of bytes, then of its bits."""
        byte_counts = np.zeros((reports.shape[1], 256), np.int64)
        for batch in split_into_batches(len(reports), reports.shape[1]):
            byte_columns = reports[batch].T.astype(np.intp, order="C")
            for column, byte_values in enumerate(byte_columns):
                byte_counts[column] += np.bincount(byte_values, minlength=256)
        return (byte_counts @ BITS_BY_BYTE.astype(np.int64)).reshape(-1)[: self.size]

    def outputs(self) -> Iterator[tuple[int, ...]]:
        """Yield every pattern of bits."""
        for pattern in range(1 << self.size):
            yield tuple(pattern >> 16 * word & 0xFFFF for word in range(self.width))

    def likelihood(self, value: int, report: Sequence[int]) -> Fraction:
        """Return the product of the bits' probabilities."""
        pattern = sum(word << 16 * place for place, word in enumerate(report))
        true_bit = pattern >> value & 1
        other_ones = pattern.bit_count() - true_bit
        other_zeros = self.size - 1 - other_ones
        numerator = (
            (self.threshold if true_bit else PROBABILITY_UNIT - self.threshold)
            * self.other_threshold**other_ones
            * (PROBABILITY_UNIT - self.other_threshold) ** other_zeros
        )
        return Fraction(numerator, PROBABILITY_UNIT**self.size)

    def _compute_worst_ratio(self) -> Fraction:
        p, q = self.p_exact, self.q_exact
        return p * (1 - q) / (q * (1 - p))  # the bits of both values differ: Wang et al., sect. 4.2

    def to_plain_words(self) -> str:
        """Say what is sent, and how often it holds the truth."""
        return (
            f"What is sent is a yes or a no for each of the {self.size} answers: yes with a "
            f"chance of {format_percent(self.p)} at the true one, with a chance of "
            f"{format_percent(self.q)} at each other one."
        )

    def get_parameters(self) -> dict[str, Any]:
        """Return the size and both coins."""
        coins = {"p": str(self.threshold), "q": str(self.other_threshold)}
        return {"size": self.size, **coins}


@dataclass(frozen=True)
class SUE(UnaryOracle):
    """Symmetric unary encoding (basic RAPPOR): every bit flips with the same probability.

    See ``FrequencyOracle`` and ``UnaryOracle``.
    """

    name: ClassVar[str] = "sue"

    @cached_property
    def threshold(self) -> int:
        """P(bit is 1) at the true value, over 2^64: exp(eps/2) / (exp(eps/2) + 1)."""
        exp_half_epsilon = exp_rounded_down(self._spendable_epsilon / 2)
        return math.floor(PROBABILITY_UNIT * exp_half_epsilon / (exp_half_epsilon + 1))

    @property
    def other_threshold(self) -> int:
        """P(bit is 1) elsewhere, over 2^64: 1 - p."""
        return PROBABILITY_UNIT - self.threshold


@dataclass(frozen=True)
class OUE(UnaryOracle):
    """Optimal unary encoding: the least variance of rare values among unary encodings.

    See ``FrequencyOracle`` and ``UnaryOracle``.
    """

    name: ClassVar[str] = "oue"
    threshold = PROBABILITY_UNIT // 2
    """p = 1/2."""

    @cached_property
    def other_threshold(self) -> int:
        """P(bit is 1) elsewhere, over 2^64: 1 / (exp(eps) + 1)."""
        return math.ceil(PROBABILITY_UNIT / (exp_rounded_down(self._spendable_epsilon) + 1))


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
        theta = _find_best_theta(self.epsilon) if self.theta is None else self.theta
        is_number = isinstance(theta, int | float | np.number) and not isinstance(theta, bool)
        if not is_number or not 0 <= theta <= 1:
            raise PrivacyError(
                f"theta is {theta!r}; it must be in [0, 1], or be None for the one of least "
                "variance"
            )
        object.__setattr__(self, "theta", float(theta))

    @cached_property
    def threshold(self) -> int:
        """P(bit is 1) at the true value, over 2^64: 1 - exp(eps (theta - 1) / 2) / 2.

        Laplace(2/eps) around 1 exceeds theta with it; Yilmaz et al. have the exponent's sign
        flipped. The ratio p(1-q) / (q(1-p)) only falls as p falls and q rises.
        """
        theta = Fraction(self.theta or 0.0)
        miss_probability = exp_rounded_up(self._spendable_epsilon * (theta - 1) / 2) / 2
        return PROBABILITY_UNIT - math.ceil(PROBABILITY_UNIT * miss_probability)

    @cached_property
    def other_threshold(self) -> int:
        """P(Laplace(2/eps) around 0 exceeds theta), over 2^64: exp(-eps theta / 2) / 2."""
        theta = Fraction(self.theta or 0.0)
        stray_probability = exp_rounded_up(-self._spendable_epsilon * theta / 2) / 2
        return math.ceil(PROBABILITY_UNIT * stray_probability)

    def get_parameters(self) -> dict[str, Any]:
        """Return the size, both coins and theta, which explains them."""
        return {**super().get_parameters(), "theta": self.theta}


def _find_best_theta(epsilon: float) -> float:
    """Return the multiple of 1/1024 in (1/2, 1) of least variance q(1-q)/(p-q)^2."""
    theta_grid = np.arange(513, 1024) / 1024
    capped_epsilon = min(epsilon, 64.0)
    # expm1 keeps p - q exact to the last digits when epsilon is tiny
    stray_probability = np.exp(-capped_epsilon * theta_grid / 2) / 2
    p_minus_q = (
        -np.expm1(capped_epsilon * (theta_grid - 1) / 2) / 2
        - np.expm1(-capped_epsilon * theta_grid / 2) / 2
    )
    return float(theta_grid[np.argmin(stray_probability * (1 - stray_probability) / p_minus_q**2)])


@dataclass(frozen=True)
class SHE(FrequencyOracle):
    """Summation with histogram encoding: discrete Laplace noise on every number of the histogram.

    The public grid has 64 steps to one; noise has scale 2/epsilon. Compact and serialised reports
    are ``size`` grid integers (int32 where they fit, else int64). A number further out than
    64 + 64 * scale grid steps is cut there, which happens with a chance below exp(-63). See
    ``FrequencyOracle``; the tally sums grid integers instead of counting, p is 1 and q is 0.
    """

    name: ClassVar[str] = "she"
    steps_per_unit: ClassVar[int] = 64
    threshold = PROBABILITY_UNIT
    """p = 1: the mean of the number at the true value."""
    q_exact = Fraction(0)
    """The mean of any other number."""

    @cached_property
    def noise_scale(self) -> Fraction:
        """The noise's scale in grid steps: 2 unit / eps, rounded up to a multiple of 2^-16."""
        exact_scale = 2 * self.steps_per_unit / self._spendable_epsilon
        return Fraction(math.ceil(exact_scale * (1 << 16)), 1 << 16)

    @property
    def max_magnitude(self) -> int:
        """The largest grid integer that is sent, in either direction."""
        return self.steps_per_unit + math.ceil(64 * self.noise_scale)

    @property
    def width(self) -> int:
        """One grid integer per value."""
        return self.size

    def perturb(self, values: ArrayLike, random: Random) -> Reports:
        """Return rows of grid integers."""
        true_values = self._require_values(values)
        reports = np.empty((true_values.size, self.size), self._integer_type)
        for batch in split_into_batches(true_values.size, self.size):
            batch_values = true_values[batch]
            noisy_steps = random.discrete_laplace(self.noise_scale, batch_values.size * self.size)
            noisy_steps[np.arange(batch_values.size) * self.size + batch_values] += (
                self.steps_per_unit
            )
            np.clip(noisy_steps, -self.max_magnitude, self.max_magnitude, out=noisy_steps)
            reports[batch] = noisy_steps.reshape(-1, self.size)
        return reports

    @property
    def _integer_type(self) -> type[np.int32 | np.int64]:
        return np.int32 if self.max_magnitude < 1 << 31 else np.int64

    def encode(self, reports: Reports) -> Integers:
        """Return the grid integers."""
        return reports.astype(np.int64)

    def _decode_valid(self, matrix: Integers) -> Reports:
        return matrix.astype(self._integer_type)

    def _find_faults(self, matrix: Integers) -> Iterator[tuple[str, Flags]]:
        largest_step = self.max_magnitude
        yield (
            f"a number is outside -{largest_step} .. {largest_step}",
            find_outside(matrix, -largest_step, largest_step),
        )

    def tally(self, reports: Reports) -> Integers:
        """Sum the grid integers of every value."""
        step_sums: Integers = reports.sum(axis=0, dtype=np.int64)
        return step_sums

    def estimate(self, tally: ArrayLike, respondents: int) -> Floats:
        """Return the sums in units of one: the noise has mean zero."""
        return np.asarray(tally, np.float64) / self.steps_per_unit

    def _compute_covariances(self) -> tuple[Fraction, Fraction, Fraction, Fraction]:
        # discrete Laplace: 2t/(1-t)^2, t = exp(-1/scale), in grid steps; 8/eps^2 when step -> 0
        t = exp_rounded_down(-1 / self.noise_scale)
        noise_variance = 2 * t / (1 - t) ** 2 / self.steps_per_unit**2
        return noise_variance, noise_variance, Fraction(0), Fraction(0)

    def outputs(self) -> Iterator[tuple[int, ...]]:
        """Refuse: there are too many reports to enumerate."""
        raise PrivacyError(
            "she sends integers of a wide range, too many reports to write out; "
            "compute_log_ratio() compares two values on any report exactly"
        )

    def likelihood(self, value: int, report: Sequence[int]) -> Fraction:
        """Refuse: the probabilities are irrational."""
        raise PrivacyError("the likelihoods of she are irrational; compute_log_ratio() is exact")

    def compute_log_ratio(
        self, report: Sequence[int], first_value: int, second_value: int
    ) -> Fraction:
        """Return ln of P(report | one) / P(report | other), a rational number.

        P(x) is proportional to exp(-|x|/scale), so only the two values' numbers count.
        """
        distance = abs(report[first_value]) - abs(report[first_value] - self.steps_per_unit)
        distance += abs(report[second_value] - self.steps_per_unit) - abs(report[second_value])
        return distance / self.noise_scale

    def _compute_worst_ratio(self) -> Fraction:
        raise PrivacyError("the worst ratio of she is not a fraction; use compute_exact_epsilon()")

    def blanket(self) -> Blanket:
        """Return the blanket of any mechanism with this epsilon: likelihoods are many."""
        return Blanket.from_epsilon(self.epsilon)

    def compute_exact_epsilon(self) -> float:
        """Return 2 unit / scale: both numbers move by one unit."""
        return float(2 * self.steps_per_unit / self.noise_scale)

    def to_plain_words(self) -> str:
        """Say what is sent, and how far it lies from the truth."""
        return (
            f"What is sent is a number for each of the {self.size} answers: 1 at the true one, 0 "
            "at each other one, with random noise of a standard deviation of "
            f"{math.sqrt(self.variance()):.3g} added to all of them."
        )

    @property
    def influence(self) -> float:
        """How many respondents one forged report outweighs: the largest number that is sent."""
        return self.max_magnitude / self.steps_per_unit

    def get_parameters(self) -> dict[str, Any]:
        """Return the size, the grid and the noise's scale in grid steps times 2^16."""
        return {
            "size": self.size,
            "unit": self.steps_per_unit,
            "scale": str(self.noise_scale * (1 << 16)),
            "furthest": self.max_magnitude,
        }
