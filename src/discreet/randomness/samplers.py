"""Exact samplers on top of uniform bytes.

What is released must be drawn *exactly* from the distribution its proof names: a floating-point
Laplace draw leaks through its low bits (Mironov 2012). So every sampler here, except ``uniform``,
is exact given uniform bytes: floating point only ever decides what it can decide beyond doubt, and
the few draws that fall within its error are settled with more random bits in exact arithmetic.

Sampling is not constant-time: how long a draw takes says a little about its value.

In what order bytes are used
----------------------------
A draw is a function of the bytes alone, so that other languages can draw the same; the whole rule,
mechanisms included, is in docs/formats.md, and tests/vectors binds it. ``n`` is the size; words
are little-endian; "again" means: in ascending order of position, after everything before.

====================== ==========================================================================
``words(n)``           8 n bytes; so ``uniform`` and ``bernoulli_each``
``integers(below, n)`` 4 n bytes up to 2^32, else 8 n; those refused again, as a draw of their own
``bernoulli_words``    per chunk of 2^18: n bytes, then 8 for each that equals the threshold's
                       first byte; none at all for 0 and 2^64
``bits``               as ``bernoulli_words`` over rows * 8 ceil(columns / 8): padding is drawn too
``subsets``            per chunk of 2^20 / min(pool, take^2) rows, step by step, each step an
                       ``integers`` over the rows; Floyd where take^2 < pool, else Fisher-Yates
``geometric``          per chunk of 2^15: 8 n bytes, then 8 at a time for each draw that its word
                       leaves open
``discrete_laplace``   two ``geometric``, one after the other
``discrete_gaussian``  batches of min(2^15, n + n // 2 + 16) of what is still wanted: Laplace
                       draws, 8 bytes each to accept them, then 8 at a time where that is open
====================== ==========================================================================
"""

from __future__ import annotations

import abc
import decimal
import math
import operator
from collections.abc import Iterator
from fractions import Fraction
from typing import ClassVar, TypeAlias

import numpy as np

from discreet.arrays import Booleans, Bytes, Floats, Integers, Words

__all__ = ["Number", "Random"]

Number: TypeAlias = int | float | Fraction
Flags: TypeAlias = Booleans

PROBABILITY_UNIT = 1 << 64  # probabilities are integers over 2^64
DRAWS_PER_CHUNK = 1 << 15  # draws worked on at a time, so that they stay in the cache
MAX_SCALE = 1 << 53  # scales beyond it could leave int64; up to it the chance is exp(-2^10)


class Random(abc.ABC):
    """Exact samplers on top of a source of uniform bytes.

    A subclass provides ``raw`` and says whether it is ``simulated``.

    Attributes
    ----------
    simulated : bool
        Whether the bytes can be foreseen, so that nothing drawn from them keeps a promise.
    margin : float
        How far floating point is distrusted by ``geometric`` and what builds on it. Any value from
        2^-43 up gives the same exact distributions; a larger one sends more draws the slow way.
    """

    simulated: ClassVar[bool]
    margin: float = 2.0**-42

    @abc.abstractmethod
    def raw(self, count: int) -> Bytes:
        """Return ``count`` uniform bytes in an array of the caller's own."""

    def words(self, count: int) -> Words:
        """Return ``count`` uniform 64-bit words."""
        # the order of bytes is part of the format: little-endian on every machine
        return (
            self.raw(8 * _require_count("count", count)).view("<u8").astype(np.uint64, copy=False)
        )

    def uniform(self, size: int) -> Floats:
        """Return multiples of 2^-53 in [0, 1), to simulate or choose; never as released noise."""
        return (self.words(size) >> np.uint64(11)).astype(np.float64) * 2.0**-53

    def integers(self, below: int, size: int) -> Integers:
        """Return integers exactly uniform on 0 .. below - 1, for ``below`` up to 2^63."""
        below, size = operator.index(below), _require_count("size", size)
        if not 1 <= below <= 1 << 63:
            raise ValueError(f"below is {below}; give an integer from 1 to 2**63")
        if below <= 1 << 32:  # Lemire 2019: the high half of a product, its low half tells the bias
            numbers = self.raw(4 * size).view("<u4").astype(np.uint64)
            numbers *= np.uint64(below)
            is_refused = numbers.astype(np.uint32) < np.uint32((1 << 32) % below)
            numbers >>= np.uint64(32)
        else:
            numbers = self.words(size) >> np.uint64(64 - (below - 1).bit_length())
            is_refused = numbers >= np.uint64(below)
        values, refused_positions = numbers.view(np.int64), np.flatnonzero(is_refused)
        if refused_positions.size:
            values[refused_positions] = self.integers(below, refused_positions.size)
        return values

    def bernoulli(self, probability: Number, size: int) -> Flags:
        """Return flags that are True with a probability rounded to the nearest multiple of 2^-64.

        The rounding moves it by at most 2^-65; 0, 1 and every multiple of 2^-64 are exact.
        """
        if not 0 <= probability <= 1:
            raise ValueError(f"probability is {probability}; give a number from 0 to 1")
        return self.bernoulli_words(round(Fraction(probability) * PROBABILITY_UNIT), size)

    def bernoulli_words(self, threshold: int, size: int) -> Flags:
        """Return flags that are True with probability exactly ``threshold / 2**64``.

        One byte per draw decides all but 1 in 256; those use the other 56 bits.
        """
        threshold, size = operator.index(threshold), _require_count("size", size)
        if not 0 <= threshold <= PROBABILITY_UNIT:
            raise ValueError(f"threshold is {threshold}; give an integer from 0 to 2**64")
        if threshold in (0, PROBABILITY_UNIT):
            return np.full(size, threshold == PROBABILITY_UNIT)
        first_byte, low_bits = threshold >> 56, threshold & ((1 << 56) - 1)
        flags = np.empty(size, np.bool_)
        for start in range(0, size, 8 * DRAWS_PER_CHUNK):
            chunk_flags = flags[start : start + 8 * DRAWS_PER_CHUNK]
            drawn_bytes = self.raw(chunk_flags.size)
            np.less(drawn_bytes, np.uint8(first_byte), out=chunk_flags)
            if low_bits:
                tie_positions = np.flatnonzero(drawn_bytes == np.uint8(first_byte))
                tie_bits = self.words(tie_positions.size) >> np.uint64(8)
                chunk_flags[tie_positions] = tie_bits < np.uint64(low_bits)
        return flags

    def bernoulli_each(self, thresholds: Words) -> Flags:
        """Return one flag per element ``t``, True with probability exactly ``t / 2**64``.

        Certainty is 2^64 and no uint64: set those flags yourself.
        """
        if thresholds.dtype != np.uint64:
            raise ValueError(f"thresholds are {thresholds.dtype}; give uint64 integers over 2^64")
        return self.words(thresholds.size).reshape(thresholds.shape) < thresholds

    def bits(self, threshold: int, rows: int, columns: int) -> Bytes:
        """Return a bit-packed matrix of independent bits, each 1 with ``threshold / 2**64``.

        Its shape is (rows, ceil(columns / 8)), laid out as ``np.packbits(..., bitorder="little")``
        does, padding bits zero.
        """
        rows, columns = _require_count("rows", rows), _require_count("columns", columns)
        row_bytes = -(-columns // 8)
        packed_bits = np.empty(rows * row_bytes, np.uint8)
        for start in range(0, packed_bits.size, DRAWS_PER_CHUNK):
            chunk_bytes = packed_bits[start : start + DRAWS_PER_CHUNK]
            flags = self.bernoulli_words(threshold, 8 * chunk_bytes.size)
            chunk_bytes[:] = np.packbits(flags, bitorder="little")
        bit_matrix = packed_bits.reshape(rows, row_bytes)
        if columns % 8:
            bit_matrix[:, -1] &= np.uint8((1 << columns % 8) - 1)
        return bit_matrix

    def subsets(self, pool: int, take: int, rows: int) -> Integers:
        """Return ``rows`` independent uniform subsets of ``take`` of the values 0 .. pool - 1.

        As sets they are exactly uniform; the order within a row carries no promise.
        """
        pool, take = _require_count("pool", pool), _require_count("take", take)
        rows = _require_count("rows", rows)
        if take > pool:
            raise ValueError(f"take is {take} of a pool of {pool}; take at most the pool")
        chosen_values = np.empty((rows, take), np.int64)
        draw_chunk = self._draw_subsets_floyd if take * take < pool else self._draw_subsets_shuffled
        rows_per_chunk = max(1, 32 * DRAWS_PER_CHUNK // max(1, min(pool, take * take)))
        for start in range(0, rows, rows_per_chunk):
            chunk_values = chosen_values[start : start + rows_per_chunk]
            chunk_values[:] = draw_chunk(pool, take, len(chunk_values))
        return chosen_values

    def _draw_subsets_floyd(self, pool: int, take: int, rows: int) -> Integers:
        """Floyd's method (Bentley 1987): small subsets of a large pool."""
        chosen_values = np.empty((take, rows), np.int64)
        for step, last_value in enumerate(range(pool - take, pool)):
            drawn_value = self.integers(last_value + 1, rows)
            drawn_value[(chosen_values[:step] == drawn_value).any(axis=0)] = last_value
            chosen_values[step] = drawn_value
        return chosen_values.T

    def _draw_subsets_shuffled(self, pool: int, take: int, rows: int) -> Integers:
        """Fisher-Yates, stopped after ``take`` steps."""
        value_order = np.tile(np.arange(pool), (rows, 1))
        row_index = np.arange(rows)
        for step in range(take):
            swap_column = self.integers(pool - step, rows) + step
            value_order[row_index, swap_column], value_order[:, step] = (
                value_order[:, step],
                value_order[row_index, swap_column],
            )
        return value_order[:, :take]

    def geometric(self, scale: Number, size: int) -> Integers:
        """Return integers X >= 0 with P(X >= k) = exp(-k / scale), exactly.

        Parameters
        ----------
        scale : int, float or Fraction
            From 0 (all zeros) to 2^53; a float is taken as the rational it is. The slow way takes
            a share of about scale * 2^-41 of the draws, so from 2^40 on most of them.
        size : int
            How many.

        Raises
        ------
        OverflowError
            When a draw leaves int64: chance below exp(-1000).
        """
        if not 0 <= scale <= MAX_SCALE:
            raise ValueError(f"scale is {scale}; give a number from 0 to 2**53")
        exact_scale = Fraction(scale)
        values = np.zeros(_require_count("size", size), np.int64)
        if exact_scale:
            for start in range(0, values.size, DRAWS_PER_CHUNK):
                chunk_values = values[start : start + DRAWS_PER_CHUNK]
                words = self.words(chunk_values.size)
                chunk_values[:] = self._convert_to_geometric(words, exact_scale)
        return values

    def _convert_to_geometric(self, words: Words, scale: Fraction) -> Integers:
        """Return floor(-scale * ln U) for the uniform reals U whose first 64 bits are ``words``.

        For a word of at least 2^44, -ln U < 14 and U is known to 2^-44 of itself; conversion adds
        2^-53, the logarithm 2^-50 * 14 (4 ulp; numpy's stay within), both products 2^-51 * 14.
        Together below scale * 2^-43, half the default margin: any further from an integer is sure.
        """
        with np.errstate(divide="ignore", invalid="ignore"):
            log_values = np.log(words * 2.0**-64)
            log_values *= -float(scale)
            floor_values = np.floor(log_values)
            values: Integers = floor_values.astype(np.int64)
            log_values -= floor_values
            log_values -= 0.5
            np.abs(log_values, out=log_values)
            is_decided = log_values < 0.5 - max(1.0, float(scale)) * self.margin
        is_decided &= words >= np.uint64(1 << 44)
        for position in np.flatnonzero(~is_decided):
            for low_bound, high_bound in self._iter_log_bounds(int(words[position])):
                if high_bound is not None and math.floor(low_bound * scale) == math.floor(
                    high_bound * scale
                ):
                    values[position] = math.floor(low_bound * scale)
                    break
        return values

    def _iter_log_bounds(self, word: int) -> Iterator[tuple[Fraction, Fraction | None]]:
        """Yield ever closer bounds on -ln U for a uniform real U with first 64 bits ``word``.

        The upper one is None, for infinity, while all bits are zero.
        """
        bits = 64
        while True:
            context = decimal.Context(prec=bits // 3 + 20)
            # each logarithm is below `bits` and rounded correctly to `prec` digits
            rounding_slack = Fraction(2 * bits, 10 ** (context.prec - 1))
            log_unit, log_upper = (
                Fraction(context.ln(decimal.Decimal(number))) for number in (1 << bits, word + 1)
            )
            high_bound = None
            if word:
                high_bound = log_unit - Fraction(context.ln(decimal.Decimal(word))) + rounding_slack
            yield max(log_unit - log_upper - rounding_slack, Fraction(0)), high_bound
            word, bits = word << 64 | int(self.words(1)[0]), bits + 64

    def discrete_laplace(self, scale: Number, size: int) -> Integers:
        """Return integers x with probability proportional to exp(-|x| / scale), exactly.

        Drawn as the difference of two ``geometric`` draws, whose limits apply.
        """
        values = self.geometric(scale, size)
        values -= self.geometric(scale, size)
        return values

    def discrete_gaussian(self, variance: Number, size: int) -> Integers:
        """Return integers x with probability proportional to exp(-x^2 / (2 variance)), exactly.

        ``variance`` is the parameter sigma^2, from 0 (all zeros) to 2^53; a float is taken as the
        rational it is. Rejection from the discrete Laplace: Canonne, Kamath and Steinke 2020,
        algorithm 3.
        """
        if not 0 <= variance <= MAX_SCALE:
            raise ValueError(f"variance is {variance}; give a number from 0 to 2**53")
        exact_variance = Fraction(variance)
        values = np.zeros(_require_count("size", size), np.int64)
        if not exact_variance:
            return values
        laplace_scale, filled_count = math.isqrt(math.floor(exact_variance)) + 1, 0
        while filled_count < values.size:
            wanted_count = values.size - filled_count
            batch_size = min(DRAWS_PER_CHUNK, wanted_count + wanted_count // 2 + 16)
            laplace_draws = self.discrete_laplace(laplace_scale, batch_size)
            words = self.words(batch_size)
            accepted = self._accept_draws(words, laplace_draws, exact_variance, laplace_scale)
            laplace_draws = laplace_draws[accepted][:wanted_count]
            values[filled_count : filled_count + laplace_draws.size] = laplace_draws
            filled_count += laplace_draws.size
        return values

    def _accept_draws(
        self, words: Words, laplace_draws: Integers, variance: Fraction, scale: int
    ) -> Flags:
        """Say whether U < exp(-gamma), gamma = (|drawn| - variance / scale)^2 / (2 variance).

        Rounding moves gamma by less than 2^-50 (gamma + sqrt(gamma)), as sqrt(variance) < scale,
        hence exp(-gamma) by less than 2^-49; with its own 4 ulp and U's 2^-53 still below 2^-47.
        """
        float_variance = float(variance)
        with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
            gap = np.abs(laplace_draws) - float_variance / scale
            gap *= gap
            gap /= -2 * float_variance
            gap = np.exp(gap, out=gap) - words * 2.0**-64
            is_decided = np.abs(gap) > self.margin
        accepted: Flags = gap > 0
        for position in np.flatnonzero(~is_decided):
            gamma = (abs(int(laplace_draws[position])) - variance / scale) ** 2 / (2 * variance)
            for low_bound, high_bound in self._iter_log_bounds(int(words[position])):
                if gamma < low_bound or (high_bound is not None and gamma > high_bound):
                    accepted[position] = gamma < low_bound
                    break
        return accepted


def _require_count(name: str, value: int) -> int:
    count = operator.index(value)
    if count < 0:
        raise ValueError(f"{name} is {count}; ask for zero or more")
    return count
