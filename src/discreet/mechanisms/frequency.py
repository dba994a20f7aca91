"""Frequency oracles: randomize one value per respondent, estimate how often each value occurs.

DE and SS, whose reports are values, are here; SUE, OUE, THE and SHE in ``unary``, HR and OLH in
``hashing``, what all promise in ``oracle``. Formulas: docs/maths.md.

    >>> from discreet.randomness import as_random
    >>> oracle = choose_best_oracle(size=12, epsilon=1.0)
    >>> oracle.name, round(oracle.p, 4), round(oracle.q, 4)
    ('ss', 0.4754, 0.2295)
    >>> reports = oracle.perturb([3, 3, 7], as_random(0))
    >>> oracle.estimate(oracle.tally(reports), respondents=3).shape
    (12,)
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from discreet.arrays import Integers
from discreet.errors import PrivacyError, SchemaError
from discreet.mechanisms.hashing import HR, OLH
from discreet.mechanisms.oracle import (
    PROBABILITY_UNIT,
    Flags,
    FrequencyOracle,
    Reports,
    compute_uniform_variance,
    count_values,
    find_outside,
    format_percent,
    keep_or_replace,
    split_into_batches,
)
from discreet.mechanisms.unary import OUE, SHE, SUE, THE, UnaryOracle
from discreet.privacy.rounding import exp_rounded_down
from discreet.randomness import Random

__all__ = [
    "DE",
    "HR",
    "OLH",
    "ORACLES",
    "OUE",
    "SHE",
    "SS",
    "SUE",
    "THE",
    "FrequencyOracle",
    "UnaryOracle",
    "choose_best_oracle",
    "compute_sample_size_factor",
    "make_oracle",
]


@dataclass(frozen=True)
class DE(FrequencyOracle):
    """Direct encoding, also k-ary or generalized randomized response: the value or another one.

    A compact report is one int32. The best oracle up to a size of about 3 exp(epsilon) + 2. See
    ``FrequencyOracle``.
    """

    name: ClassVar[str] = "de"
    width = 1

    @cached_property
    def threshold(self) -> int:
        """P(truth) over 2^64: p = exp(eps) / (exp(eps) + size - 1)."""
        if math.isinf(self.epsilon):
            return PROBABILITY_UNIT
        exp_epsilon = exp_rounded_down(self._spendable_epsilon)
        return math.floor(PROBABILITY_UNIT * exp_epsilon / (exp_epsilon + self.size - 1))

    @property
    def q_exact(self) -> Fraction:
        """P(a certain other value)."""
        return (1 - self.p_exact) / (self.size - 1)

    def _compute_covariances(self) -> tuple[Fraction, Fraction, Fraction, Fraction]:
        p, q = self.p_exact, self.q_exact  # exactly one value is supported
        return p * (1 - p), q * (1 - q), -p * q, -q * q

    def perturb(self, values: ArrayLike, random: Random) -> Reports:
        """Return one value per respondent."""
        return keep_or_replace(
            self._require_values(values), self.size, self.threshold, random
        ).astype(np.int32)

    def encode(self, reports: Reports) -> Integers:
        """Return the values as a column."""
        return reports.astype(np.int64)[:, None]

    def _decode_valid(self, matrix: Integers) -> Reports:
        return matrix[:, 0].astype(np.int32)

    def _find_faults(self, matrix: Integers) -> Iterator[tuple[str, Flags]]:
        yield f"the value is outside 0 .. {self.size - 1}", find_outside(matrix, 0, self.size - 1)

    def tally(self, reports: Reports) -> Integers:
        """Count the values."""
        return count_values(reports, self.size)

    def outputs(self) -> Iterator[tuple[int, ...]]:
        """Yield the values."""
        return ((value,) for value in range(self.size))

    def likelihood(self, value: int, report: Sequence[int]) -> Fraction:
        """Return p for the value itself, q for another."""
        return self.p_exact if report[0] == value else self.q_exact

    def _compute_worst_ratio(self) -> Fraction:
        return self.p_exact / self.q_exact

    def to_plain_words(self) -> str:
        """Say what is sent, and how often it holds the truth."""
        return (
            f"What is sent is one of the {self.size} answers: the true one with a chance of "
            f"{format_percent(self.p)}, each other one with a chance of {format_percent(self.q)}."
        )

    def get_parameters(self) -> dict[str, Any]:
        """Return the size and the coin of truth."""
        return {"size": self.size, "p": str(self.threshold)}


@dataclass(frozen=True)
class SS(FrequencyOracle):
    """Subset selection (Ye, Barg 2018; Wang et al. 2016): a set that more often holds the value.

    A compact report is a row of ``width`` values (int32) in ascending order: a set has no
    order, and one that kept the true value first would give it away. See ``FrequencyOracle``.
    """

    name: ClassVar[str] = "ss"

    @cached_property
    def width(self) -> int:
        """The set's size w: floor or ceiling of size / (exp(eps) + 1), whichever costs less."""
        ideal_size = self.size / (exp_rounded_down(self._spendable_epsilon) + 1)
        variances = {
            w: compute_uniform_variance(*self._compute_probabilities(w), self.size)
            for w in (max(1, math.floor(ideal_size)), max(1, math.ceil(ideal_size)))
        }
        return min(variances, key=variances.__getitem__)

    def _compute_probabilities(self, w: int) -> tuple[Fraction, Fraction]:
        """Compute p and q of sets of w values: p = w exp(eps) / (w exp(eps) + size - w)."""
        exp_epsilon = exp_rounded_down(self._spendable_epsilon)
        p = Fraction(
            math.floor(PROBABILITY_UNIT * w * exp_epsilon / (w * exp_epsilon + self.size - w)),
            PROBABILITY_UNIT,
        )
        # another value is one of the w - 1 besides the truth, or one of w if the truth is left out
        return p, (p * (w - 1) + (1 - p) * w) / (self.size - 1)

    @property
    def subset_size(self) -> int:
        """The set's size."""
        return self.width

    @cached_property
    def threshold(self) -> int:
        """P(the value is in the set) over 2^64."""
        return int(self._compute_probabilities(self.width)[0] * PROBABILITY_UNIT)

    @cached_property
    def q_exact(self) -> Fraction:
        """P(a certain other value is in the set)."""
        return self._compute_probabilities(self.width)[1]

    def _compute_covariances(self) -> tuple[Fraction, Fraction, Fraction, Fraction]:
        p, q, w, other_count = self.p_exact, self.q_exact, self.width, self.size - 1
        both_in_set = p * Fraction(
            w - 1, other_count
        )  # the truth and a certain other value are in the set
        two_others_in_set = Fraction(0)
        if other_count > 1:  # two certain other values are
            two_others_in_set = (p * (w - 1) * (w - 2) + (1 - p) * w * (w - 1)) / (
                other_count * (other_count - 1)
            )
        return p * (1 - p), q * (1 - q), both_in_set - p * q, two_others_in_set - q * q

    def perturb(self, values: ArrayLike, random: Random) -> Reports:
        """Return one set per respondent, as an ascending row."""
        true_values = self._require_values(values)
        reports = np.empty((true_values.size, self.width), np.int32)
        if self.width**2 < self.size:
            for batch in split_into_batches(true_values.size, 4 * self.width):
                reports[batch] = self._draw_small_sets(true_values[batch], random)
            return reports
        for batch in split_into_batches(true_values.size, self.size):
            holds_truth = random.bernoulli_words(self.threshold, batch.stop - batch.start)
            reports[batch] = self._draw_large_sets(true_values[batch], holds_truth, random)
        return reports

    def _draw_small_sets(self, true_values: Integers, random: Random) -> Integers:
        """Draw w of the other values; the truth, if a member, replaces a random one."""
        holds_truth = random.bernoulli_words(self.threshold, true_values.size)
        sets = random.subsets(self.size - 1, self.width, true_values.size)
        sets += sets >= true_values[:, None]  # the others were numbered without the truth
        row_indices = np.arange(true_values.size)
        truth_positions = random.integers(self.width, true_values.size)
        sets[row_indices, truth_positions] = np.where(
            holds_truth, true_values, sets[row_indices, truth_positions]
        )
        sets.sort(axis=1)
        return sets

    def _draw_large_sets(
        self, true_values: Integers, holds_truth: Flags, random: Random
    ) -> Integers:
        """Take the w smallest random keys; that of the truth is made the least or largest.

        The others' keys are independent and alike, so each set of others is as likely as any other,
        also given that no two keys tie at the edge; where they do, all keys of the row are drawn
        again for the same ``holds_truth``.
        """
        w, row_indices = self.width, np.arange(true_values.size)
        random_keys = (
            random.raw(4 * true_values.size * self.size)
            .view("<u4")
            .reshape(true_values.size, self.size)
        )
        random_keys[row_indices, true_values] = np.where(holds_truth, 0, 0xFFFFFFFF)
        is_member = random_keys <= np.partition(random_keys, w - 1, axis=1)[:, w - 1 : w]
        tied_rows = np.empty(0, np.int64)
        if np.count_nonzero(is_member) > true_values.size * w:  # no row holds fewer than w
            tied_rows = np.flatnonzero(np.count_nonzero(is_member, axis=1) > w)
            is_member[tied_rows] = np.arange(self.size) < w  # placeholders, drawn again below
        sets = (
            np.flatnonzero(is_member).reshape(true_values.size, w)
            - (row_indices * self.size)[:, None]
        )
        if tied_rows.size:
            sets[tied_rows] = self._draw_large_sets(
                true_values[tied_rows], holds_truth[tied_rows], random
            )
        return sets

    def encode(self, reports: Reports) -> Integers:
        """Return the sets, ascending; sorted again should they not be."""
        sorted_sets = reports.astype(np.int64)
        if (reports[:, 1:] < reports[:, :-1]).any():
            sorted_sets.sort(axis=1)
        return sorted_sets

    def _decode_valid(self, matrix: Integers) -> Reports:
        return matrix.astype(np.int32)

    def _find_faults(self, matrix: Integers) -> Iterator[tuple[str, Flags]]:
        yield f"a member is outside 0 .. {self.size - 1}", find_outside(matrix, 0, self.size - 1)
        descending_rows: Flags = np.any(np.diff(matrix, axis=1) < 0, axis=1)
        yield "the members are not in ascending order", descending_rows
        repeated_rows: Flags = np.any(np.diff(matrix, axis=1) == 0, axis=1)
        yield "a member is repeated", repeated_rows

    def tally(self, reports: Reports) -> Integers:
        """Count the sets that hold each value."""
        return count_values(reports, self.size)

    def outputs(self) -> Iterator[tuple[int, ...]]:
        """Yield the sets, ascending."""
        return itertools.combinations(range(self.size), self.width)

    def likelihood(self, value: int, report: Sequence[int]) -> Fraction:
        """Return p or 1 - p, spread over the sets with or without the value."""
        w, other_count = self.width, self.size - 1
        if list(report) != sorted(set(report)):
            return Fraction(0)
        if value in report:
            return self.p_exact / math.comb(other_count, w - 1)
        return (1 - self.p_exact) / math.comb(other_count, w)

    def _compute_worst_ratio(self) -> Fraction:
        p, w = self.p_exact, self.width
        return p * (self.size - w) / ((1 - p) * w)

    def to_plain_words(self) -> str:
        """Say what is sent, and how often it holds the truth."""
        return (
            f"What is sent is a set of {self.width} of the {self.size} answers. It holds "
            f"the true one with a chance of {format_percent(self.p)}, each other one with a "
            f"chance of {format_percent(self.q)}."
        )

    def get_parameters(self) -> dict[str, Any]:
        """Return the size, the set's size and the coin of membership."""
        return {"size": self.size, "subset": self.width, "p": str(self.threshold)}


ORACLES: dict[str, type[FrequencyOracle]] = {
    oracle_class.name: oracle_class for oracle_class in (DE, SUE, OUE, SHE, THE, SS, OLH, HR)
}


@lru_cache(maxsize=4096)
def compute_sample_size_factor(size: int, epsilon: float) -> float:
    """Return how many times more respondents a table of ``size`` cells needs because of privacy.

    With subset selection: c = pi (1 - pi) / (p - q)^2 / ((1/D)(1 - 1/D)), pi = q + (p - q)/D for D
    cells. A margin with frequency f then has variance c f (1 - f) / m. One at an infinite epsilon.

    Parameters
    ----------
    size : int
        How many cells the table has.
    epsilon : float
    """
    oracle = DE(epsilon, size) if math.isinf(epsilon) else SS(epsilon, size)
    uniform_share = Fraction(1, oracle.size)
    return float(
        compute_uniform_variance(oracle.p_exact, oracle.q_exact, oracle.size)
        / (uniform_share * (1 - uniform_share))
    )


@lru_cache(maxsize=4096)
def choose_best_oracle(size: int, epsilon: float) -> FrequencyOracle:
    """Return the one of DE, OUE and SS with the least variance when all values are as frequent.

    Ties go to the simpler report: SS with sets of one is DE. At an infinite epsilon it is DE.

    Parameters
    ----------
    size : int
        Number of values.
    epsilon : float
    """
    if math.isinf(epsilon):
        return DE(epsilon, size)
    candidates: list[FrequencyOracle] = [DE(epsilon, size), OUE(epsilon, size), SS(epsilon, size)]
    return min(
        candidates,
        key=lambda oracle: compute_uniform_variance(oracle.p_exact, oracle.q_exact, oracle.size),
    )


def make_oracle(
    name: str,
    size: int,
    epsilon: float,
    theta: float | None = None,
    parameters: Mapping[str, Any] | None = None,
) -> FrequencyOracle:
    """Make the oracle that a plan names.

    Parameters
    ----------
    name : str
        One of ``ORACLES``, or "auto" for ``choose_best_oracle``.
    size, epsilon
        As in ``FrequencyOracle``.
    theta : float, optional
        Only for "the".
    parameters : mapping, optional
        The probabilities in the plan. They must follow from size and epsilon: a plan that promises
        one epsilon and randomizes with another is refused.
    """
    if name == "auto":
        oracle = choose_best_oracle(size, epsilon)
    elif name == "the":
        oracle = THE(epsilon, size, theta)
    elif name in ORACLES:
        oracle = ORACLES[name](epsilon, size)
    else:
        raise SchemaError(f"oracle is {name!r}; write auto or one of {', '.join(ORACLES)}")
    if theta is not None and name != "the":
        raise PrivacyError(f"theta is {theta!r}, but {name} has no theta; leave it out")
    if parameters is not None and dict(parameters) != oracle.get_parameters():
        raise PrivacyError(
            f"the parameters of {oracle.name} are not those of size {size}, epsilon {epsilon!r}: "
            f"expected {oracle.get_parameters()}, got {dict(parameters)}"
        )
    return oracle
