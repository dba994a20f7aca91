"""Frequency oracles: randomize one value per respondent, estimate how often each value occurs.

DE and SS, whose reports are values, are here; SUE, OUE, THE and SHE in ``unary``, HR and OLH in
``hashing``, what all promise in ``oracle``. Formulas: docs/maths.md.

    >>> from discreet.randomness import as_random
    >>> oracle = best_oracle(size=12, epsilon=1.0)
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
from discreet.losses import exp_below
from discreet.mechanisms.hashing import HR, OLH
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
    spread,
)
from discreet.mechanisms.unary import OUE, SHE, SUE, THE, UnaryOracle
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
    "best_oracle",
    "cost",
    "oracle_of",
]


@dataclass(frozen=True)
class DE(FrequencyOracle):
    """Direct encoding, also k-ary or generalized randomized response: the value or another one.

    A compact report is one int32. The best oracle up to a size of about 3 exp(epsilon) + 2. See
    ``FrequencyOracle``.
    """

    name: ClassVar[str] = "de"

    @cached_property
    def threshold(self) -> int:
        """P(truth) over 2^64: p = exp(eps) / (exp(eps) + size - 1)."""
        if math.isinf(self.epsilon):
            return ONE
        e = exp_below(self._budget)
        return math.floor(ONE * e / (e + self.size - 1))

    @property
    def p_exact(self) -> Fraction:
        """P(truth)."""
        return share(self.threshold)

    @property
    def q_exact(self) -> Fraction:
        """P(a certain other value)."""
        return (1 - self.p_exact) / (self.size - 1)

    def _covariances(self) -> tuple[Fraction, Fraction, Fraction, Fraction]:
        p, q = self.p_exact, self.q_exact  # exactly one value is supported
        return p * (1 - p), q * (1 - q), -p * q, -q * q

    @property
    def width(self) -> int:
        """One value."""
        return 1

    def perturb(self, values: ArrayLike, random: Random) -> Reports:
        """Return one value per respondent."""
        return or_another(self._values(values), self.size, self.threshold, random).astype(np.int32)

    def encode(self, reports: Reports) -> Integers:
        """Return the values as a column."""
        return reports.astype(np.int64)[:, None]

    def _decoded(self, matrix: Integers) -> Reports:
        return matrix[:, 0].astype(np.int32)

    def _faults(self, matrix: Integers) -> Iterator[tuple[str, Flags]]:
        yield f"the value lies outside 0 .. {self.size - 1}", outside(matrix, 0, self.size - 1)

    def tally(self, reports: Reports) -> Integers:
        """Count the values."""
        return histogram(reports, self.size)

    def outputs(self) -> Iterator[tuple[int, ...]]:
        """Yield the values."""
        return ((value,) for value in range(self.size))

    def likelihood(self, value: int, report: Sequence[int]) -> Fraction:
        """Return p for the value itself, q for another."""
        return self.p_exact if report[0] == value else self.q_exact

    def _worst_ratio(self) -> Fraction:
        return self.p_exact / self.q_exact

    def in_words(self) -> str:
        """Say what is sent, and how often it holds the truth."""
        return (
            f"What is sent is one of the {self.size} answers: the true one with a chance of "
            f"{percent(self.p)}, each other one with a chance of {percent(self.q)}."
        )

    def parameters(self) -> dict[str, Any]:
        """Return the size and the coin of truth."""
        return {"size": self.size, "p": str(self.threshold)}


@dataclass(frozen=True)
class SS(FrequencyOracle):
    """Subset selection (Ye, Barg 2018; Wang et al. 2016): a set that more often holds the value.

    A compact report is a row of ``subset`` values (int32) in ascending order: a set has no order,
    and one that kept the true value first would give it away. See ``FrequencyOracle``.
    """

    name: ClassVar[str] = "ss"

    @cached_property
    def subset(self) -> int:
        """The set's size w: floor or ceiling of size / (exp(eps) + 1), whichever costs less."""
        ideal = self.size / (exp_below(self._budget) + 1)
        sizes = max(1, math.floor(ideal)), max(1, math.ceil(ideal))
        return min(sizes, key=lambda w: spread(*self._chances(share(self._coin(w)), w), self.size))

    def _coin(self, w: int) -> int:
        e = exp_below(self._budget)
        return math.floor(ONE * w * e / (w * e + self.size - w))

    def _chances(self, p: Fraction, w: int) -> tuple[Fraction, Fraction]:
        # another value is one of the w - 1 besides the truth, or one of w if the truth is left out
        return p, (p * (w - 1) + (1 - p) * w) / (self.size - 1)

    @cached_property
    def threshold(self) -> int:
        """P(the value is in the set) over 2^64: w exp(eps) / (w exp(eps) + size - w)."""
        return self._coin(self.subset)

    @property
    def p_exact(self) -> Fraction:
        """P(the value is in the set)."""
        return share(self.threshold)

    @property
    def q_exact(self) -> Fraction:
        """P(a certain other value is in the set)."""
        return self._chances(self.p_exact, self.subset)[1]

    def _covariances(self) -> tuple[Fraction, Fraction, Fraction, Fraction]:
        p, q, w, others = self.p_exact, self.q_exact, self.subset, self.size - 1
        both = p * Fraction(w - 1, others)  # the truth and a certain other value are in the set
        pair = Fraction(0)
        if others > 1:  # two certain other values are
            pair = (p * (w - 1) * (w - 2) + (1 - p) * w * (w - 1)) / (others * (others - 1))
        return p * (1 - p), q * (1 - q), both - p * q, pair - q * q

    @property
    def width(self) -> int:
        """The set's size."""
        return self.subset

    def perturb(self, values: ArrayLike, random: Random) -> Reports:
        """Return one set per respondent, as an ascending row."""
        true = self._values(values)
        reports = np.empty((true.size, self.subset), np.int32)
        few = self.subset**2 < self.size
        draw = self._few if few else self._many
        for part in batches(true.size, 4 * self.subset if few else self.size):
            member = random.bernoulli_words(self.threshold, part.stop - part.start)
            reports[part] = draw(true[part], member, random)
        return reports

    def _few(self, true: Integers, member: Flags, random: Random) -> Integers:
        """Draw w of the other values; the truth, if a member, replaces a random one."""
        sets = random.subsets(self.size - 1, self.subset, true.size)
        sets += sets >= true[:, None]  # the others were numbered without the truth
        rows, place = np.arange(true.size), random.integers(self.subset, true.size)
        sets[rows, place] = np.where(member, true, sets[rows, place])
        sets.sort(axis=1)
        return sets

    def _many(self, true: Integers, member: Flags, random: Random) -> Integers:
        """Take the w smallest random keys; that of the truth is made the least or largest.

        The others' keys are independent and alike, so each set of others is as likely as any other,
        also given that no two keys tie at the edge; where they do, all keys of the row are drawn
        again for the same ``member``.
        """
        w, rows = self.subset, np.arange(true.size)
        keys = random.raw(4 * true.size * self.size).view("<u4").reshape(true.size, self.size)
        keys[rows, true] = np.where(member, 0, 0xFFFFFFFF)
        chosen = keys <= np.partition(keys, w - 1, axis=1)[:, w - 1 : w]
        tied = np.empty(0, np.int64)
        if np.count_nonzero(chosen) > true.size * w:  # no row holds fewer than w
            tied = np.flatnonzero(np.count_nonzero(chosen, axis=1) > w)
            chosen[tied] = np.arange(self.size) < w  # placeholders, drawn again below
        sets = np.flatnonzero(chosen).reshape(true.size, w) - (rows * self.size)[:, None]
        if tied.size:
            sets[tied] = self._many(true[tied], member[tied], random)
        return sets

    def encode(self, reports: Reports) -> Integers:
        """Return the sets, ascending; sorted again should they not be."""
        sets = reports.astype(np.int64)
        if (reports[:, 1:] < reports[:, :-1]).any():
            sets.sort(axis=1)
        return sets

    def _decoded(self, matrix: Integers) -> Reports:
        return matrix.astype(np.int32)

    def _faults(self, matrix: Integers) -> Iterator[tuple[str, Flags]]:
        yield f"a member lies outside 0 .. {self.size - 1}", outside(matrix, 0, self.size - 1)
        falling: Flags = np.any(np.diff(matrix, axis=1) < 0, axis=1)
        yield "the members are not in ascending order", falling
        repeated: Flags = np.any(np.diff(matrix, axis=1) == 0, axis=1)
        yield "a member is repeated", repeated

    def tally(self, reports: Reports) -> Integers:
        """Count the sets that hold each value."""
        return histogram(reports, self.size)

    def outputs(self) -> Iterator[tuple[int, ...]]:
        """Yield the sets, ascending."""
        return itertools.combinations(range(self.size), self.subset)

    def likelihood(self, value: int, report: Sequence[int]) -> Fraction:
        """Return p or 1 - p, spread over the sets with or without the value."""
        w, others = self.subset, self.size - 1
        if list(report) != sorted(set(report)):
            return Fraction(0)
        if value in report:
            return self.p_exact / math.comb(others, w - 1)
        return (1 - self.p_exact) / math.comb(others, w)

    def _worst_ratio(self) -> Fraction:
        p, w = self.p_exact, self.subset
        return p * (self.size - w) / ((1 - p) * w)

    def in_words(self) -> str:
        """Say what is sent, and how often it holds the truth."""
        return (
            f"What is sent is a set of {self.subset} of the {self.size} answers. It holds the true "
            f"one with a chance of {percent(self.p)}, each other one with a chance of "
            f"{percent(self.q)}."
        )

    def parameters(self) -> dict[str, Any]:
        """Return the size, the set's size and the coin of membership."""
        return {"size": self.size, "subset": self.subset, "p": str(self.threshold)}


ORACLES: dict[str, type[FrequencyOracle]] = {
    kind.name: kind for kind in (DE, SUE, OUE, SHE, THE, SS, OLH, HR)
}


@lru_cache(maxsize=4096)
def cost(size: int, epsilon: float) -> float:
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
    even = Fraction(1, oracle.size)
    return float(spread(oracle.p_exact, oracle.q_exact, oracle.size) / (even * (1 - even)))


@lru_cache(maxsize=4096)
def best_oracle(size: int, epsilon: float) -> FrequencyOracle:
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
    return min(candidates, key=lambda oracle: spread(oracle.p_exact, oracle.q_exact, oracle.size))


def oracle_of(
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
        One of ``ORACLES``, or "auto" for ``best_oracle``.
    size, epsilon
        As in ``FrequencyOracle``.
    theta : float, optional
        Only for "the".
    parameters : mapping, optional
        The probabilities in the plan. They must follow from size and epsilon: a plan that promises
        one epsilon and randomizes with another is refused.
    """
    if name == "auto":
        oracle = best_oracle(size, epsilon)
    elif name == "the":
        oracle = THE(epsilon, size, theta)
    elif name in ORACLES:
        oracle = ORACLES[name](epsilon, size)
    else:
        raise SchemaError(f"oracle is {name!r}; write auto or one of {', '.join(ORACLES)}")
    if theta is not None and name != "the":
        raise PrivacyError(f"theta is {theta!r}, but {name} has no theta; leave it out")
    if parameters is not None and dict(parameters) != oracle.parameters():
        raise PrivacyError(
            f"the parameters of {oracle.name} are not those of size {size}, epsilon {epsilon!r}: "
            f"expected {oracle.parameters()}, got {dict(parameters)}"
        )
    return oracle
