"""Privacy amplification by shuffling: the guarantee of reports that are stripped of their origin.

An anonymiser strips origin, order and times; what is left is a bag of reports, in which each person
hides among the others. How well follows from the **blanket**: the part of a report's law that is
the same for everyone, whatever they answer (Balle, Bell, Gascón, Nissim 2019, lemma 5.3). Of all
ways to split a report's law into parts to hide among, it is the best one (Su, Cheng, Wang 2025).
Where the law of the reports is not known, any two-sided epsilon has the blanket of Feldman,
McMillan, Talwar 2021 (theorem 3.1, "clones"). Derivations: docs/maths.md.

Every figure here is an upper bound: what is left out of a sum is added to delta.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, TypeAlias, TypeVar

import numpy as np

from discreet.documents import Body
from discreet.errors import PrivacyError
from discreet.privacy import Guarantee, rounded_up
from discreet.shuffled_sheets import SheetBlanket

__all__ = ["AnyBlanket", "Blanket", "Shuffle", "ShuffleBody", "amplified", "delta_of", "is_kept"]

MOST = 10**9
"""Largest number of respondents; beyond, the sums below lose digits."""
LARGEST_LOCAL = 20.0
"""Largest local epsilon that is offered, for any number of respondents."""
SLACK = 1e-6
"""Share of delta that is added for float rounding in the sums below."""
LEFT_OUT = 1e-4
"""Share of delta for the tails that are not summed."""
BANDS, BLOCK, TERMS = 16, 32, 600
"""Resolution of the sums; coarser ones are faster, and their bound on delta is looser."""

ANONYMOUS = (
    "an anonymiser, who works with nobody else, strips origin, order and times before anyone "
    "sees a report"
)
T = TypeVar("T")


@dataclass(frozen=True)
class Blanket:
    """The part of a report's law that all answers share, seen by two people's answers x and x'.

    Each report has at most two likelihoods, a low one and one that is ``ratio`` times as high for
    the answers that it supports. The blanket is the low one; these are its masses.

    Parameters
    ----------
    ratio : float
        exp(epsilon) of a report by itself.
    one : float
        Mass of the reports that support x and not x'; those that support x' alone have the same.
    both, neither : float
        Mass of the reports that do not distinguish x from x'.
    scale : float, default 1
        Factor by which a person's own report is more likely than these masses.
    """

    ratio: float
    one: float
    both: float = 0.0
    neither: float = 0.0
    scale: float = 1.0

    @classmethod
    def of_epsilon(cls, epsilon: float) -> Blanket:
        """Make the blanket that every law with this local epsilon has at least.

        R(x) >= exp(-epsilon) (R(x0) + R(x1)) / 2, and R(x0), R(x1) are mixtures e : 1 and 1 : e of
        two laws whose sum is theirs (Feldman, McMillan, Talwar 2021, lemma 3.2 and theorem 3.1).
        """
        e = math.exp(epsilon)
        return cls(e, 1 / (2 * e), scale=2 * e / (e + 1))

    @classmethod
    def mixed(cls, parts: Sequence[tuple[float, Blanket]]) -> Blanket:
        """Make the blanket of people who draw one of several kinds of report by these shares."""
        ratio = max(one.ratio for _, one in parts)
        if any(one.scale != 1 or one.ratio < ratio * (1 - 1e-9) for _, one in parts):
            return cls.of_epsilon(math.log(ratio))
        masses = np.array([[share * m for m in (b.one, b.both, b.neither)] for share, b in parts])
        return cls(ratio, *masses.sum(axis=0).tolist())


AnyBlanket: TypeAlias = Blanket | SheetBlanket
"""Of reports with two likelihoods, or of sheets with several groups or uneven made-up answers."""


def is_kept(blanket: AnyBlanket, people: int, epsilon: float, delta: float) -> bool:
    """Whether shuffled reports satisfy (epsilon, delta), by the blanket's bound or that of clones.

    Parameters
    ----------
    blanket : Blanket or SheetBlanket
    people : int
        Whose reports are in one shuffle.
    epsilon, delta : float
        Of the shuffled reports.

    Returns
    -------
    bool
        The blanket is the better decomposition, but its delta is computed from above; so the bound
        that uses only the local epsilon may be lower.
    """
    if delta_of(blanket, people, epsilon) <= delta:
        return True
    return delta_of(Blanket.of_epsilon(math.log(blanket.ratio)), people, epsilon) <= delta


def delta_of(blanket: AnyBlanket, people: int, epsilon: float) -> float:
    """Compute the delta at which the shuffled reports of this many people satisfy an epsilon.

    delta = E[(sum of l over the reports)^+] / n, where each of n people adds l = (r - exp(epsilon)
    r') / low with the probability that the blanket has there: docs/maths.md.

    Parameters
    ----------
    blanket : Blanket or SheetBlanket
    people : int
        Whose reports are in one shuffle.
    epsilon : float
        Of the shuffled reports.

    Returns
    -------
    float
        An upper bound.
    """
    if isinstance(blanket, SheetBlanket):
        return blanket.delta(people, epsilon)
    from scipy.stats import binom

    n, e, scale = people, math.exp(epsilon), blanket.scale
    up, down = scale * (blanket.ratio - e), scale * (1 - e * blanket.ratio)
    if up <= 0:
        return 0.0  # the reports by themselves keep epsilon
    told = 2 * blanket.one
    # T reports tell x and x' apart; what is outside these T, at most (T / n) up each, is added
    rare = 1e-12 * LEFT_OUT
    low, high = max(int(binom.ppf(rare, n, told)), 0), int(binom.isf(rare, n, told)) + 1
    left_out = up * float(binom.cdf(low - 1, n, told) + binom.sf(high, n, told))
    total = np.unique(np.linspace(low, high, min(high - low + 1, TERMS)).astype(np.int64))
    if len(total) < high - low + 1:  # many: as many as at the lower end of each stretch
        chance = np.diff(np.append(binom.cdf(total - 1, n, told), binom.cdf(high, n, told)))
        most = np.append(total[1:] - 1, high)
    else:
        chance, most = binom.pmf(total, n, told), total
    # the others pull the sum down: counted as few as they are in each of some bands
    edges, weights = _bands(binom, n - most, blanket.neither / (1 - told))
    fewest = _fewest(binom, rare, n - most, blanket.both / (1 - told))
    left_out += up * rare * told
    found = 0.0
    for edge, weight in zip(edges, weights, strict=True):
        pull = (e - 1) * (edge + blanket.ratio * fewest)
        found += float((chance * weight) @ _excess(binom, total, most, up, down, pull))
    return found / n * (1 + SLACK) + left_out


def _bands(binom: Any, trials: Any, share: float) -> tuple[list[Any], list[Any]]:
    """Fewest of ``trials`` in each band of their quantiles, and the band's probability."""
    if share <= 0:
        return [np.zeros(len(trials))], [np.ones(len(trials))]
    # the trials fall from term to term: of some neighbours the last has the fewest
    last = np.minimum(np.arange(BLOCK, len(trials) + BLOCK, BLOCK), len(trials)) - 1
    some, back = trials[last], np.arange(len(trials)) // BLOCK
    edges, below = [np.zeros(len(some))], [np.zeros(len(some))]
    for tail in np.geomspace(1e-16, 0.5, BANDS - 1):
        edge = _fewest(binom, float(tail), some, share)
        edges.append(edge)
        below.append(np.where(edge > 0, binom.cdf(edge - 1, some, share), 0.0))
    below.append(np.ones(len(some)))
    weights = [np.maximum(after - before, 0.0) for before, after in pairwise(below)]
    return [one[back] for one in edges], [one[back] for one in weights]


def _fewest(binom: Any, tail: float, trials: Any, share: float) -> Any:
    """Find the number of successes that is undercut with a probability of at most ``tail``."""
    if share <= 0:
        return np.zeros(len(trials))
    return np.where(trials > 0, np.maximum(binom.ppf(tail, np.maximum(trials, 1), share), 0.0), 0.0)


def _excess(binom: Any, least: Any, most: Any, up: float, down: float, pull: Any) -> Any:
    """E[(up k + down (T - k) - pull)^+] for k ~ Bin(T, 1/2), at most, with T from least to most."""
    wide = up - down
    missing = pull - down * least  # k must exceed this over ``wide``
    first = np.floor(missing / wide) + 1
    reached = binom.sf(first - 1, most, 0.5)
    mean = most / 2 * binom.sf(first - 2, np.maximum(most - 1, 0), 0.5)  # E[k; k >= first]
    return np.maximum(wide * mean - missing * reached, 0.0)


def amplified(epsilon: float, n: int, delta: float, blanket: AnyBlanket | None = None) -> float:
    """Compute the epsilon of shuffled reports at a delta; the local one if nothing is gained.

    Parameters
    ----------
    epsilon : float
        Of each report by itself.
    n : int
        Honest reports in one shuffle, one per person.
    delta : float
    blanket : Blanket, optional
        Of the reports, where more is known of their law than epsilon.

    Examples
    --------
    >>> round(amplified(2.0, 10_000, 1e-6), 2)
    0.16
    """
    if not epsilon > 0 or not 0 < delta < 1 or not 1 <= n <= MOST:
        raise PrivacyError(
            f"epsilon={epsilon!r}, n={n!r}, delta={delta!r}: epsilon must be above 0, "
            f"delta inside (0, 1) and n from 1 to {MOST:,}"
        )
    if math.isinf(epsilon) or epsilon > LARGEST_LOCAL:
        return epsilon
    known = blanket or Blanket.of_epsilon(epsilon)
    low, high = 0.0, epsilon
    while high - low > 1e-4 * high:
        middle = (low + high) / 2
        low, high = (low, middle) if is_kept(known, n, middle, delta) else (middle, high)
    return high


@dataclass(frozen=True)
class Shuffle:
    """What a collection promises to those whose reports are shuffled.

    Parameters
    ----------
    epsilon, delta : float
        Against everyone who sees only the shuffled reports.
    respondents : int
        The least number of honest reports in one shuffle.
    """

    epsilon: float
    delta: float
    respondents: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", float(self.epsilon))
        object.__setattr__(self, "delta", float(self.delta))
        if not 0 < self.epsilon < math.inf:
            raise PrivacyError(
                f"shuffled: epsilon is {self.epsilon!r}; give a finite number above 0"
            )
        if not 0 < self.delta < 1:
            raise PrivacyError(
                f"shuffled: delta is {self.delta!r}; give a number between 0 and 1, such as 1e-8: "
                "shuffled reports keep no epsilon without one"
            )
        whole = isinstance(self.respondents, int) and not isinstance(self.respondents, bool)
        if not whole or not 2 <= self.respondents <= MOST:
            raise PrivacyError(
                f"shuffled: respondents is {self.respondents!r}; expect 2 to {MOST:,}, and no more "
                "than will certainly take part"
            )

    @classmethod
    def of(cls, blanket: AnyBlanket, delta: float, respondents: int) -> Shuffle:
        """Compute the promise of shuffling this many reports."""
        cls(1.0, delta, respondents)  # checks both
        found = amplified(math.log(blanket.ratio), respondents, delta, blanket)
        return cls(float(rounded_up(found, 4)), delta, respondents)

    def kept(self, blanket: AnyBlanket) -> bool:
        """Whether the shuffled reports satisfy the promise."""
        return is_kept(blanket, self.respondents, self.epsilon, self.delta)

    def check(self, blanket: AnyBlanket) -> None:
        """Raise if the reports reveal more than the promise allows."""
        if not self.kept(blanket):
            local = math.log(blanket.ratio)
            found = amplified(local, self.respondents, self.delta, blanket)
            raise PrivacyError(
                f"shuffled: reports of epsilon {rounded_up(local, 4)} each, shuffled among "
                f"{self.respondents:,}, have an epsilon of {rounded_up(found, 4)}, not "
                f"{rounded_up(self.epsilon)}; let each reveal less, or expect more respondents"
            )

    def best(self, made: Callable[[float], tuple[T, AnyBlanket]]) -> T:
        """Find the plan with the largest local epsilon that the shuffle allows.

        Parameters
        ----------
        made : callable
            From a local epsilon to, for example, a plan and the blanket of its reports.
        """
        low, high = self.epsilon, LARGEST_LOCAL
        found, _ = made(low)
        while high - low > 0.005:
            middle = math.floor(500 * (low + high)) / 1000
            if not low < middle < high:
                break
            one, blanket = made(middle)
            if self.kept(blanket):
                low, found = middle, one
            else:
                high = middle
        return found

    def promise(self, local: Guarantee, people: int | None = None) -> Guarantee:
        """Return the guarantee with shuffling; the local one if too few people took part.

        Parameters
        ----------
        local : Guarantee
            Of the reports by themselves.
        people : int, optional
            How many were counted in the smallest batch, 0 where some were not shuffled; None
            before anyone was.
        """
        if people is not None and people < self.respondents:
            few = (
                f"nothing of a shuffle: the smallest batch has {people:,} counted reports, and the "
                f"stronger promise needs {self.respondents:,} in each"
            )
            if not people:
                few = "nothing of a shuffle: reports without a batch mark were counted"
            return replace(local, assumptions=(*local.assumptions, few))
        return replace(
            local,
            epsilon=min(self.epsilon, local.epsilon),
            delta=self.delta,
            against="everyone who sees only the shuffled reports",
            unshuffled=local.epsilon,
            assumptions=(
                *local.assumptions,
                ANONYMOUS,
                f"at least {self.respondents:,} honest reports are in one shuffle, one per person",
            ),
            charges=tuple(
                replace(one, epsilon=min(self.epsilon, one.epsilon), delta=self.delta)
                for one in local.charges
            ),
        )

    def to_body(self) -> dict[str, Any]:
        """Plain values for a JSON document."""
        return {"epsilon": self.epsilon, "delta": self.delta, "respondents": self.respondents}


class ShuffleBody(Body):
    """Shape of a Shuffle inside a plan or questionnaire."""

    epsilon: float
    delta: float
    respondents: int

    def shuffle(self) -> Shuffle:
        """The value this shape stands for."""
        return Shuffle(self.epsilon, self.delta, self.respondents)
