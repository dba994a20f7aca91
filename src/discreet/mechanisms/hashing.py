"""Oracles for large domains, whose report is a short code: local hashing and Hadamard response.

A report has four integers (OLH) or one (HR), whatever the number of values.
Formulas: docs/maths.md.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from discreet.arrays import Floats, Integers
from discreet.losses import exp_below
from discreet.mechanisms.oracle import (
    ONE,
    Flags,
    FrequencyOracle,
    Reports,
    batches,
    histogram,
    or_another,
    outside,
    percent,
    share,
)
from discreet.randomness import Random
from discreet.shuffling import Blanket

__all__ = ["HR", "OLH"]


@dataclass(frozen=True)
class HR(FrequencyOracle):
    """Hadamard response (Acharya, Sun, Zhang 2019, high privacy): an index where a row is +1.

    Value v supports the indices i below ``order`` where row v + 1 of the Sylvester matrix,
    (-1)^popcount(i & (v + 1)), is +1. A compact report is one int32. See ``FrequencyOracle``.
    """

    name: ClassVar[str] = "hr"

    @property
    def order(self) -> int:
        """The matrix's order: the smallest power of two above ``size``."""
        return 1 << self.size.bit_length()

    @cached_property
    def threshold(self) -> int:
        """P(the index supports the value) over 2^64: exp(eps) / (exp(eps) + 1)."""
        e = exp_below(self._budget)
        return math.floor(ONE * e / (e + 1))

    @property
    def p_exact(self) -> Fraction:
        """P(the index supports the value)."""
        return share(self.threshold)

    @property
    def q_exact(self) -> Fraction:
        """One half, whatever p is: rows are orthogonal, so half of either kind is +1 elsewhere."""
        return Fraction(1, 2)

    def _covariances(self) -> tuple[Fraction, Fraction, Fraction, Fraction]:
        """Return the covariances but for pairs u, t with (u + 1) ^ (t + 1) = v + 1.

        The product of two rows of the matrix is the row of the exclusive or of their numbers, and
        only row v + 1 has a mean. ``sum_variances`` counts such pairs.
        """
        p = self.p_exact
        return p * (1 - p), Fraction(1, 4), Fraction(0), Fraction(0)

    def sum_variances(self, groups: ArrayLike, frequencies: ArrayLike) -> Floats:
        label, frequency = np.asarray(groups, np.int64), np.asarray(frequencies, np.float64)
        variances = super().sum_variances(label, frequency)
        held = np.zeros(self.order)
        held[1 : self.size + 1] = frequency
        held = _walsh(held)
        for group in np.flatnonzero(np.bincount(label) > 1):
            rows = np.zeros(self.order)
            rows[1 : self.size + 1] = label == group
            # sum over pairs u, t of the group of the share of the value at (u + 1) ^ (t + 1)
            met = float(_walsh(rows) ** 2 @ held) / self.order
            variances[group] += max(met, 0.0) / float(2 * self.p_exact - 1)
        return variances

    @property
    def width(self) -> int:
        """One index."""
        return 1

    @property
    def furthest(self) -> int:
        """The last index."""
        return self.order - 1

    def perturb(self, values: ArrayLike, random: Random) -> Reports:
        """Return one index per respondent."""
        rows = self._values(values) + 1
        index = random.integers(self.order, rows.size)
        wrong = _odd(index & rows) == random.bernoulli_words(self.threshold, rows.size)
        index ^= (rows & -rows) * wrong  # flipping a bit of the row pairs its +1 with its -1
        return index.astype(np.int32)

    def encode(self, reports: Reports) -> Integers:
        """Return the indices as a column."""
        return reports.astype(np.int64)[:, None]

    def _decoded(self, matrix: Integers) -> Reports:
        return matrix[:, 0].astype(np.int32)

    def _faults(self, matrix: Integers) -> Iterator[tuple[str, Flags]]:
        yield f"the index lies outside 0 .. {self.order - 1}", outside(matrix, 0, self.order - 1)

    def tally(self, reports: Reports) -> Integers:
        """Count the supporting indices of every value, with a fast Walsh-Hadamard transform."""
        # row r: reports with +1 minus reports with -1; row 0: all
        signed = _walsh(histogram(reports, self.order))
        support: Integers = (signed[0] + signed[1 : self.size + 1]) // 2
        return support

    def outputs(self) -> Iterator[tuple[int, ...]]:
        """Yield the indices."""
        return ((index,) for index in range(self.order))

    def likelihood(self, value: int, report: Sequence[int]) -> Fraction:
        """Return p or 1 - p, spread over half of the indices."""
        supports = (report[0] & value + 1).bit_count() % 2 == 0
        return (self.p_exact if supports else 1 - self.p_exact) / (self.order // 2)

    def _worst_ratio(self) -> Fraction:
        return self.p_exact / (1 - self.p_exact)

    def in_words(self) -> str:
        """Say what is sent, and how often it holds the truth."""
        return (
            f"What is sent is a number that stands for about half of the {self.size} answers: for "
            f"the true one with a chance of {percent(self.p)}, for each other one with a chance of "
            f"{percent(self.q)}."
        )

    def parameters(self) -> dict[str, Any]:
        """Return the size, the matrix's order and the coin of support."""
        return {"size": self.size, "order": self.order, "p": str(self.threshold)}


def _walsh(numbers: Any) -> Any:
    """Return the fast Walsh-Hadamard transform of an array whose length is a power of two."""
    half, order = 1, len(numbers)
    while half < order:
        pairs = numbers.reshape(-1, 2, half)
        numbers = np.stack((pairs[:, 0] + pairs[:, 1], pairs[:, 0] - pairs[:, 1]), axis=1)
        half *= 2
    return numbers.reshape(-1)


def _odd(numbers: Integers) -> Flags:
    """Return whether each number below 2^32 has an odd count of ones."""
    folded = numbers ^ numbers >> 16
    for shift in (8, 4, 2, 1):
        folded ^= folded >> shift
    return (folded & 1).astype(np.bool_)


@dataclass(frozen=True)
class OLH(FrequencyOracle):
    """Optimal local hashing (Wang et al. 2017, section 4.4): direct encoding of a private hash.

    h(v) = (((a v + b) v + c) mod P) mod g with P = 2^31 - 1 prime; the key, a, b and c in
    0 .. P - 1, is drawn without looking at the value and sent along. The hashes of any three values
    are independent, so that the variance of a sum of counts does not depend on which values are
    added up; with h(v) = a v + b it does, by up to two fifths. A compact and a serialised report is
    (a, b, c, y), int64. All products stay below 2^53. See ``FrequencyOracle``.
    """

    name: ClassVar[str] = "olh"
    prime: ClassVar[int] = (1 << 31) - 1

    @cached_property
    def hashes(self) -> int:
        """The hashes g = round(exp(eps)) + 1, at most 2^16."""
        return min(round(exp_below(self._budget)) + 1, 1 << 16)

    @cached_property
    def threshold(self) -> int:
        """P(the true hash) over 2^64: p = exp(eps) / (exp(eps) + g - 1)."""
        e = exp_below(self._budget)
        return math.floor(ONE * e / (e + self.hashes - 1))

    @property
    def collision(self) -> Fraction:
        """P(h(u) = h(v)) for u and v different: just above 1/g."""
        return self._alike(2)

    def _alike(self, values: int) -> Fraction:
        """P(2 or 3 different values have the same hash).

        Before they are taken mod g their images are independent and uniform below P; P mod g of
        the g classes hold one number more than the others.
        """
        few, larger = divmod(self.prime, self.hashes)
        ways = larger * (few + 1) ** values + (self.hashes - larger) * few**values
        return Fraction(ways, self.prime**values)

    @property
    def p_exact(self) -> Fraction:
        """P(the true hash)."""
        return share(self.threshold)

    @property
    def q_exact(self) -> Fraction:
        """P(the hash of a certain other value): 1/g but for about 1 in 2^31, exact here."""
        p, same = self.p_exact, self.collision
        return same * p + (1 - same) * (1 - p) / (self.hashes - 1)

    def _covariances(self) -> tuple[Fraction, Fraction, Fraction, Fraction]:
        p, q, same, three = self.p_exact, self.q_exact, self.collision, self._alike(3)
        # two others have the reported hash: that of the truth, or one that is not
        pair = p * three + (1 - p) * (same - three) / (self.hashes - 1)
        return p * (1 - p), q * (1 - q), p * same - p * q, pair - q * q

    @property
    def width(self) -> int:
        """The key's three integers and the hash."""
        return 4

    @property
    def furthest(self) -> int:
        """The largest integer of a key; hashes are smaller."""
        return (1 << 31) - 2

    def perturb(self, values: ArrayLike, random: Random) -> Reports:
        """Return (a, b, c, y) for each respondent."""
        true = self._values(values)
        reports = np.empty((true.size, 4), np.int64)
        a, b, c = (random.integers(self.prime, true.size) for _ in range(3))
        hashed = ((a * true + b) % self.prime * true + c) % self.prime % self.hashes
        reports[:, 0], reports[:, 1], reports[:, 2] = a, b, c
        reports[:, 3] = or_another(hashed, self.hashes, self.threshold, random)
        return reports

    def encode(self, reports: Reports) -> Integers:
        """Return the reports as they are."""
        return reports.astype(np.int64)

    def _decoded(self, matrix: Integers) -> Reports:
        return matrix.copy()

    def _faults(self, matrix: Integers) -> Iterator[tuple[str, Flags]]:
        top = self.prime - 1
        yield f"the key lies outside 0 .. {top}", outside(matrix[:, :3], 0, top)
        top = self.hashes - 1
        yield f"the hash lies outside 0 .. {top}", outside(matrix[:, 3:], 0, top)

    def tally(self, reports: Reports) -> Integers:
        """Count, for every value, the reports whose hash function maps it to their hash."""
        support = np.zeros(self.size, np.int64)
        prime, g = np.uint32(self.prime), np.uint32(self.hashes)
        for part in batches(len(reports), 16):
            a, slope, image, y = reports[part].T.astype(np.uint32, order="C")
            wrapped, quotient = np.empty_like(y), np.empty_like(y)

            def add(total: Any, more: Any, wrapped: Any = wrapped) -> None:
                """Add modulo P, in place."""
                total += more
                np.subtract(total, prime, out=wrapped)  # beyond 2^31 where total < P: it wraps
                np.minimum(total, wrapped, out=total)

            add(slope, a)  # h(v + 1) - h(v) = a (2 v + 1) + b before mod g: a + b, then 2 a more
            add(a, a.copy())
            for value in range(self.size):
                np.floor_divide(image, g, out=quotient)
                quotient *= g
                quotient += y
                support[value] += np.count_nonzero(quotient == image)
                add(image, slope)
                add(slope, a)
        return support

    def outputs(self) -> Iterator[tuple[int, ...]]:
        """Yield every key with every hash."""
        below, codes = range(self.prime), range(self.hashes)
        return ((a, b, c, y) for a in below for b in below for c in below for y in codes)

    def likelihood(self, value: int, report: Sequence[int]) -> Fraction:
        """Return p or (1 - p)/(g - 1), spread over the keys."""
        a, b, c, y = report
        true = ((a * value + b) * value + c) % self.prime % self.hashes == y
        chance = self.p_exact if true else (1 - self.p_exact) / (self.hashes - 1)
        return chance / self.prime**3

    def blanket(self) -> Blanket:
        """Return the blanket of any mechanism with this epsilon: collisions are not uniform."""
        return Blanket.of_epsilon(self.epsilon)

    def _worst_ratio(self) -> Fraction:
        return self.p_exact * (self.hashes - 1) / (1 - self.p_exact)

    def in_words(self) -> str:
        """Say what is sent, and how often it holds the truth."""
        return (
            f"What is sent is a random way to sort the {self.size} answers into {self.hashes} "
            f"groups, and one of these groups. It holds the true answer with a chance of "
            f"{percent(self.p)}, each other one with a chance of {percent(self.q)}."
        )

    def parameters(self) -> dict[str, Any]:
        """Return the size, the hashes, the prime and the coin of truth."""
        return {
            "size": self.size,
            "hashes": self.hashes,
            "prime": self.prime,
            "p": str(self.threshold),
        }
