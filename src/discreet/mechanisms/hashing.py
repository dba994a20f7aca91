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
from discreet.mechanisms.oracle import (
    PROBABILITY_UNIT,
    Flags,
    FrequencyOracle,
    Reports,
    count_values,
    find_outside,
    format_percent,
    keep_or_replace,
    split_into_batches,
)
from discreet.privacy.rounding import exp_rounded_down
from discreet.privacy.shuffling import Blanket
from discreet.randomness import Random

__all__ = ["HR", "OLH"]


@dataclass(frozen=True)
class HR(FrequencyOracle):
    """Hadamard response (Acharya, Sun, Zhang 2019, high privacy): an index where a row is +1.

    Value v supports the indices i below ``matrix_order`` where row v + 1 of the Sylvester matrix,
    (-1)^popcount(i & (v + 1)), is +1. A compact report is one int32. See ``FrequencyOracle``.
    """

    name: ClassVar[str] = "hr"
    width = 1

    @property
    def matrix_order(self) -> int:
        """The matrix's order: the smallest power of two above ``size``."""
        return 1 << self.size.bit_length()

    @cached_property
    def threshold(self) -> int:
        """P(the index supports the value) over 2^64: exp(eps) / (exp(eps) + 1)."""
        exp_epsilon = exp_rounded_down(self._spendable_epsilon)
        return math.floor(PROBABILITY_UNIT * exp_epsilon / (exp_epsilon + 1))

    @property
    def q_exact(self) -> Fraction:
        """One half, whatever p is: rows are orthogonal, so half of either kind is +1 elsewhere."""
        return Fraction(1, 2)

    def _compute_covariances(self) -> tuple[Fraction, Fraction, Fraction, Fraction]:
        """Return the covariances but for pairs u, t with (u + 1) ^ (t + 1) = v + 1.

        The product of two rows of the matrix is the row of the exclusive or of their numbers, and
        only row v + 1 has a mean. ``compute_sum_variances`` counts such pairs.
        """
        p = self.p_exact
        return p * (1 - p), Fraction(1, 4), Fraction(0), Fraction(0)

    def compute_sum_variances(self, groups: ArrayLike, frequencies: ArrayLike) -> Floats:
        group_labels = np.asarray(groups, np.int64)
        value_shares = np.asarray(frequencies, np.float64)
        variances = super().compute_sum_variances(group_labels, value_shares)
        share_spectrum = np.zeros(self.matrix_order)
        share_spectrum[1 : self.size + 1] = value_shares
        share_spectrum = _transform_walsh_hadamard(share_spectrum)
        for group in np.flatnonzero(np.bincount(group_labels) > 1):
            group_indicator = np.zeros(self.matrix_order)
            group_indicator[1 : self.size + 1] = group_labels == group
            # sum over pairs u, t of the group of the share of the value at (u + 1) ^ (t + 1)
            pair_share = (
                float(_transform_walsh_hadamard(group_indicator) ** 2 @ share_spectrum)
                / self.matrix_order
            )
            variances[group] += max(pair_share, 0.0) / float(2 * self.p_exact - 1)
        return variances

    @property
    def max_magnitude(self) -> int:
        """The last index."""
        return self.matrix_order - 1

    def perturb(self, values: ArrayLike, random: Random) -> Reports:
        """Return one index per respondent."""
        matrix_rows = self._require_values(values) + 1
        indices = random.integers(self.matrix_order, matrix_rows.size)
        needs_flip = _has_odd_parity(indices & matrix_rows) == random.bernoulli_words(
            self.threshold, matrix_rows.size
        )
        indices ^= (
            matrix_rows & -matrix_rows
        ) * needs_flip  # flipping a bit of the row pairs its +1 with its -1
        return indices.astype(np.int32)

    def encode(self, reports: Reports) -> Integers:
        """Return the indices as a column."""
        return reports.astype(np.int64)[:, None]

    def _decode_valid(self, matrix: Integers) -> Reports:
        return matrix[:, 0].astype(np.int32)

    def _find_faults(self, matrix: Integers) -> Iterator[tuple[str, Flags]]:
        yield (
            f"the index is outside 0 .. {self.matrix_order - 1}",
            find_outside(matrix, 0, self.matrix_order - 1),
        )

    def tally(self, reports: Reports) -> Integers:
        """Count the supporting indices of every value, with a fast Walsh-Hadamard transform."""
        # row r: reports with +1 minus reports with -1; row 0: all
        signed_counts = _transform_walsh_hadamard(count_values(reports, self.matrix_order))
        support_counts: Integers = (signed_counts[0] + signed_counts[1 : self.size + 1]) // 2
        return support_counts

    def outputs(self) -> Iterator[tuple[int, ...]]:
        """Yield the indices."""
        return ((index,) for index in range(self.matrix_order))

    def likelihood(self, value: int, report: Sequence[int]) -> Fraction:
        """Return p or 1 - p, spread over half of the indices."""
        is_supported = (report[0] & value + 1).bit_count() % 2 == 0
        return (self.p_exact if is_supported else 1 - self.p_exact) / (self.matrix_order // 2)

    def _compute_worst_ratio(self) -> Fraction:
        return self.p_exact / (1 - self.p_exact)

    def to_plain_words(self) -> str:
        """Say what is sent, and how often it holds the truth."""
        return (
            f"What is sent is a number that stands for about half of the {self.size} answers: for "
            f"the true one with a chance of {format_percent(self.p)}, for each other one with a "
            f"chance of {format_percent(self.q)}."
        )

    def get_parameters(self) -> dict[str, Any]:
        """Return the size, the matrix's order and the coin of support."""
        return {"size": self.size, "order": self.matrix_order, "p": str(self.threshold)}


def _transform_walsh_hadamard(transformed: Any) -> Any:
    """Return the fast Walsh-Hadamard transform of an array whose length is a power of two."""
    half_length, full_length = 1, len(transformed)
    while half_length < full_length:
        paired_values = transformed.reshape(-1, 2, half_length)
        transformed = np.stack(
            (paired_values[:, 0] + paired_values[:, 1], paired_values[:, 0] - paired_values[:, 1]),
            axis=1,
        )
        half_length *= 2
    return transformed.reshape(-1)


def _has_odd_parity(numbers: Integers) -> Flags:
    """Return whether each number below 2^32 has an odd count of ones."""
    folded_bits = numbers ^ numbers >> 16
    for shift in (8, 4, 2, 1):
        folded_bits ^= folded_bits >> shift
    return (folded_bits & 1).astype(np.bool_)


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
    width = 4
    max_magnitude = (1 << 31) - 2
    """The largest integer of a key; hashes are smaller."""

    @cached_property
    def hash_count(self) -> int:
        """The hashes g = round(exp(eps)) + 1, at most 2^16."""
        return min(round(exp_rounded_down(self._spendable_epsilon)) + 1, 1 << 16)

    @cached_property
    def threshold(self) -> int:
        """P(the true hash) over 2^64: p = exp(eps) / (exp(eps) + g - 1)."""
        exp_epsilon = exp_rounded_down(self._spendable_epsilon)
        return math.floor(PROBABILITY_UNIT * exp_epsilon / (exp_epsilon + self.hash_count - 1))

    @property
    def collision_probability(self) -> Fraction:
        """P(h(u) = h(v)) for u and v different: just above 1/g."""
        return self._compute_collision(2)

    def _compute_collision(self, value_count: int) -> Fraction:
        """P(2 or 3 different values have the same hash).

        Before they are taken mod g their images are independent and uniform below P; P mod g of
        the g classes hold one number more than the others.
        """
        residues_per_hash, larger_hashes = divmod(self.prime, self.hash_count)
        colliding_tuples = (
            larger_hashes * (residues_per_hash + 1) ** value_count
            + (self.hash_count - larger_hashes) * residues_per_hash**value_count
        )
        return Fraction(colliding_tuples, self.prime**value_count)

    @property
    def q_exact(self) -> Fraction:
        """P(the hash of a certain other value): 1/g but for about 1 in 2^31, exact here."""
        p, two_collide = self.p_exact, self.collision_probability
        return two_collide * p + (1 - two_collide) * (1 - p) / (self.hash_count - 1)

    def _compute_covariances(self) -> tuple[Fraction, Fraction, Fraction, Fraction]:
        p = self.p_exact
        q = self.q_exact
        two_collide = self.collision_probability
        three_collide = self._compute_collision(3)
        # two others have the reported hash: that of the truth, or one that is not
        two_others_supported = p * three_collide + (1 - p) * (two_collide - three_collide) / (
            self.hash_count - 1
        )
        return p * (1 - p), q * (1 - q), p * two_collide - p * q, two_others_supported - q * q

    def perturb(self, values: ArrayLike, random: Random) -> Reports:
        """Return (a, b, c, y) for each respondent."""
        true_values = self._require_values(values)
        reports = np.empty((true_values.size, 4), np.int64)
        a, b, c = (random.integers(self.prime, true_values.size) for _ in range(3))
        true_hashes = (
            ((a * true_values + b) % self.prime * true_values + c) % self.prime % self.hash_count
        )
        reports[:, 0], reports[:, 1], reports[:, 2] = a, b, c
        reports[:, 3] = keep_or_replace(true_hashes, self.hash_count, self.threshold, random)
        return reports

    def encode(self, reports: Reports) -> Integers:
        """Return the reports as they are."""
        return reports.astype(np.int64)

    def _decode_valid(self, matrix: Integers) -> Reports:
        return matrix.copy()

    def _find_faults(self, matrix: Integers) -> Iterator[tuple[str, Flags]]:
        largest_integer = self.prime - 1
        yield (
            f"the key is outside 0 .. {largest_integer}",
            find_outside(matrix[:, :3], 0, largest_integer),
        )
        largest_integer = self.hash_count - 1
        yield (
            f"the hash is outside 0 .. {largest_integer}",
            find_outside(matrix[:, 3:], 0, largest_integer),
        )

    def tally(self, reports: Reports) -> Integers:
        """Count, for every value, the reports whose hash function maps it to their hash."""
        support_counts = np.zeros(self.size, np.int64)
        prime, g = np.uint32(self.prime), np.uint32(self.hash_count)
        for batch in split_into_batches(len(reports), 16):
            a, increments, images, y = reports[batch].T.astype(np.uint32, order="C")
            wrapped_sums, quotients = np.empty_like(y), np.empty_like(y)

            def add_modulo_prime(
                total: Any, increment: Any, wrapped_sums: Any = wrapped_sums
            ) -> None:
                """Add modulo P, in place."""
                total += increment
                np.subtract(total, prime, out=wrapped_sums)  # beyond 2^31 where total < P: it wraps
                np.minimum(total, wrapped_sums, out=total)

            add_modulo_prime(
                increments, a
            )  # h(v + 1) - h(v) = a (2 v + 1) + b before mod g: a + b, then 2 a more
            add_modulo_prime(a, a.copy())
            for value in range(self.size):
                np.floor_divide(images, g, out=quotients)
                quotients *= g
                quotients += y
                support_counts[value] += np.count_nonzero(quotients == images)
                add_modulo_prime(images, increments)
                add_modulo_prime(increments, a)
        return support_counts

    def outputs(self) -> Iterator[tuple[int, ...]]:
        """Yield every key with every hash."""
        residues, hash_codes = range(self.prime), range(self.hash_count)
        return (
            (a, b, c, y) for a in residues for b in residues for c in residues for y in hash_codes
        )

    def likelihood(self, value: int, report: Sequence[int]) -> Fraction:
        """Return p or (1 - p)/(g - 1), spread over the keys."""
        a, b, c, y = report
        is_true_hash = ((a * value + b) * value + c) % self.prime % self.hash_count == y
        report_probability = (
            self.p_exact if is_true_hash else (1 - self.p_exact) / (self.hash_count - 1)
        )
        return report_probability / self.prime**3

    def blanket(self) -> Blanket:
        """Return the blanket of any mechanism with this epsilon: collisions are not uniform."""
        return Blanket.from_epsilon(self.epsilon)

    def _compute_worst_ratio(self) -> Fraction:
        return self.p_exact * (self.hash_count - 1) / (1 - self.p_exact)

    def to_plain_words(self) -> str:
        """Say what is sent, and how often it holds the truth."""
        return (
            f"What is sent is a random way to sort the {self.size} answers into {self.hash_count} "
            f"groups, and one of these groups. It holds the true answer with a chance of "
            f"{format_percent(self.p)}, each other one with a chance of {format_percent(self.q)}."
        )

    def get_parameters(self) -> dict[str, Any]:
        """Return the size, the hashes, the prime and the coin of truth."""
        return {
            "size": self.size,
            "hashes": self.hash_count,
            "prime": self.prime,
            "p": str(self.threshold),
        }
