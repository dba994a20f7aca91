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

from discreet.arrays import Floats, Integers
from discreet.errors import PrivacyError
from discreet.files.documents import Body
from discreet.privacy.guarantee import Guarantee, format_rounded_up
from discreet.privacy.shuffled_sheets import SheetBlanket

__all__ = [
    "AnyBlanket",
    "Blanket",
    "Shuffle",
    "ShuffleBody",
    "compute_amplified_epsilon",
    "compute_shuffled_delta",
    "is_epsilon_kept",
]

MAX_RESPONDENTS = 10**9
"""Largest number of respondents; beyond, the sums below lose digits."""
MAX_LOCAL_EPSILON = 20.0
"""Largest local epsilon that is offered, for any number of respondents."""
FLOAT_SLACK = 1e-6
"""Share of delta that is added for float rounding in the sums below."""
TAIL_SHARE = 1e-4
"""Share of delta for the tails that are not summed."""
RARE_CHANCE = 1e-12 * TAIL_SHARE
"""Probability of each tail that is not summed: that share of a delta of 1e-12."""
QUANTILE_BANDS = 16
"""Bands of the number of reports that pull the sum down; fewer are faster, the bound is looser."""
TERMS_PER_BLOCK = 32
"""Neighbouring terms that share their bands; more are faster, the bound is looser."""
MAX_TERMS = 600
"""Terms of the sum over T; if there are more they are joined, and the bound is looser."""

ANONYMISER_ASSUMPTION = (
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
    single_mass : float
        Mass of the reports that support x and not x'; those that support x' alone have the same.
    both_mass, neither_mass : float
        Mass of the reports that do not distinguish x from x'.
    scale : float, default 1
        Factor by which a person's own report is more likely than these masses.
    """

    ratio: float
    single_mass: float
    both_mass: float = 0.0
    neither_mass: float = 0.0
    scale: float = 1.0

    @classmethod
    def from_epsilon(cls, epsilon: float) -> Blanket:
        """Make the blanket that every law with this local epsilon has at least.

        R(x) >= exp(-epsilon) (R(x0) + R(x1)) / 2, and R(x0), R(x1) are mixtures e : 1 and 1 : e of
        two laws whose sum is theirs (Feldman, McMillan, Talwar 2021, lemma 3.2 and theorem 3.1).
        """
        exp_epsilon = math.exp(epsilon)
        return cls(exp_epsilon, 1 / (2 * exp_epsilon), scale=2 * exp_epsilon / (exp_epsilon + 1))

    @classmethod
    def from_mixture(cls, parts: Sequence[tuple[float, Blanket]]) -> Blanket:
        """Make the blanket of people who draw one of several kinds of report by these shares."""
        max_ratio = max(blanket.ratio for _, blanket in parts)
        if any(
            blanket.scale != 1 or blanket.ratio < max_ratio * (1 - 1e-9) for _, blanket in parts
        ):
            return cls.from_epsilon(math.log(max_ratio))
        weighted_masses = [
            share * np.array([blanket.single_mass, blanket.both_mass, blanket.neither_mass])
            for share, blanket in parts
        ]
        return cls(max_ratio, *np.array(weighted_masses).sum(axis=0).tolist())


AnyBlanket: TypeAlias = Blanket | SheetBlanket
"""Of reports with two likelihoods, or of sheets with several groups or uneven made-up answers."""


def is_epsilon_kept(blanket: AnyBlanket, people: int, epsilon: float, delta: float) -> bool:
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
    if compute_shuffled_delta(blanket, people, epsilon) <= delta:
        return True
    clones = Blanket.from_epsilon(math.log(blanket.ratio))
    return compute_shuffled_delta(clones, people, epsilon) <= delta


def compute_shuffled_delta(blanket: AnyBlanket, people: int, epsilon: float) -> float:
    """Compute the delta at which the shuffled reports of this many people satisfy an epsilon.

    delta = E[(sum of l over the reports)^+] / n, where each of n people adds l = (r - exp(epsilon)
    r') / low with the probability that the blanket has there (Balle, Bell, Gascón, Nissim 2019,
    lemma 5.3; docs/maths.md). The sum runs over T, how many reports tell x and x' apart; given T,
    those that support x are Bin(T, 1/2), and those that tell nothing apart only pull it down.

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
        return blanket.compute_delta(people, epsilon)
    from scipy.stats import binom

    exp_epsilon = math.exp(epsilon)
    # l of a report that supports x alone, and of one that supports x' alone
    high_gain = blanket.scale * (blanket.ratio - exp_epsilon)
    low_gain = blanket.scale * (1 - exp_epsilon * blanket.ratio)
    if high_gain <= 0:
        return 0.0  # the reports by themselves keep epsilon
    telling_share = 2 * blanket.single_mass
    telling = _split_telling_counts(binom, people, telling_share)
    # the others pull the sum down: counted as few as they are in each of some bands
    max_others = people - telling.max_counts
    min_neither_by_band, band_chances = _split_into_bands(
        binom, max_others, blanket.neither_mass / (1 - telling_share)
    )
    min_both = _find_lower_quantile(
        binom, RARE_CHANCE, max_others, blanket.both_mass / (1 - telling_share)
    )
    excess_total = 0.0
    for min_neither, band_chance in zip(min_neither_by_band, band_chances, strict=True):
        downward_pull = (exp_epsilon - 1) * (min_neither + blanket.ratio * min_both)
        excess_total += float(
            (telling.chances * band_chance)
            @ _compute_excess(binom, telling, high_gain, low_gain, downward_pull)
        )
    # what is left out adds at most T high gains: n where T is in no block, E[T] where fewer than
    # min_both reports support both
    left_out_delta = high_gain * telling.left_out_chance + high_gain * RARE_CHANCE * telling_share
    return excess_total / people * (1 + FLOAT_SLACK) + left_out_delta


@dataclass(frozen=True, eq=False)
class _TellingCounts:
    """Blocks of T, the number of reports that tell x and x' apart.

    Parameters
    ----------
    min_counts, max_counts : arrays of int, (blocks,)
        Least and largest T in each block.
    chances : array, (blocks,)
        Probability that T is in the block.
    left_out_chance : float
        Probability that T is in no block.
    """

    min_counts: Integers
    max_counts: Integers
    chances: Floats
    left_out_chance: float


def _split_telling_counts(binom: Any, people: int, telling_share: float) -> _TellingCounts:
    """Split T ~ Bin(n, telling share) into blocks: single values, or stretches if too many."""
    min_telling = max(int(binom.ppf(RARE_CHANCE, people, telling_share)), 0)
    max_telling = int(binom.isf(RARE_CHANCE, people, telling_share)) + 1
    left_out_chance = float(
        binom.cdf(min_telling - 1, people, telling_share)
        + binom.sf(max_telling, people, telling_share)
    )
    value_count = max_telling - min_telling + 1
    min_counts = np.unique(
        np.linspace(min_telling, max_telling, min(value_count, MAX_TERMS)).astype(np.int64)
    )
    if len(min_counts) == value_count:
        chances = binom.pmf(min_counts, people, telling_share)
        return _TellingCounts(min_counts, min_counts, chances, left_out_chance)
    max_counts = np.append(min_counts[1:] - 1, max_telling)
    block_ends = np.append(min_counts - 1, max_telling)
    chances = np.diff(binom.cdf(block_ends, people, telling_share))
    return _TellingCounts(min_counts, max_counts, chances, left_out_chance)


def _split_into_bands(
    binom: Any, trials: Integers, success_share: float
) -> tuple[list[Floats], list[Floats]]:
    """Split N ~ Bin(trials, share) at its quantiles: for each band the least N, and its chance.

    E[f(N)] <= sum over bands of P(band) f(least N of the band), for an f that falls with N.
    """
    if success_share <= 0:
        return [np.zeros(len(trials))], [np.ones(len(trials))]
    # the trials fall from term to term: the last of a block has the fewest, and stands for all
    block_index = np.arange(len(trials)) // TERMS_PER_BLOCK
    block_ends = np.minimum((np.unique(block_index) + 1) * TERMS_PER_BLOCK, len(trials)) - 1
    block_trials = trials[block_ends]
    band_minima, cumulative_chances = [np.zeros(len(block_trials))], [np.zeros(len(block_trials))]
    for tail_chance in np.geomspace(1e-16, 0.5, QUANTILE_BANDS - 1):
        band_minimum = _find_lower_quantile(binom, float(tail_chance), block_trials, success_share)
        band_minima.append(band_minimum)
        cumulative_chances.append(
            np.where(
                band_minimum > 0, binom.cdf(band_minimum - 1, block_trials, success_share), 0.0
            )
        )
    cumulative_chances.append(np.ones(len(block_trials)))
    band_chances = [
        np.maximum(upper_chance - lower_chance, 0.0)
        for lower_chance, upper_chance in pairwise(cumulative_chances)
    ]
    return [minimum[block_index] for minimum in band_minima], [
        chance[block_index] for chance in band_chances
    ]


def _find_lower_quantile(
    binom: Any, tail_chance: float, trials: Integers, success_share: float
) -> Floats:
    """Find the number of successes that is undercut with probability ``tail_chance`` at most."""
    if success_share <= 0:
        return np.zeros(len(trials))
    quantiles = binom.ppf(tail_chance, np.maximum(trials, 1), success_share)
    return np.where(trials > 0, np.maximum(quantiles, 0.0), 0.0)


def _compute_excess(
    binom: Any, telling: _TellingCounts, high_gain: float, low_gain: float, downward_pull: Floats
) -> Floats:
    """Bound E[(high_gain k + low_gain (T - k) - pull)^+] for k ~ Bin(T, 1/2), in each block of T.

    low_gain < 0, so low_gain T counts at the least T and k, which grows with T, at the largest:
    with c = pull - low_gain min T and d = high_gain - low_gain, E[(d k - c)^+] is
    d E[k; k >= k0] - c P(k >= k0), k0 = floor(c / d) + 1, E[k; k >= k0] = T/2 P(Bin(T-1, 1/2) >=
    k0 - 1).
    """
    gain_difference = high_gain - low_gain
    required_sum = downward_pull - low_gain * telling.min_counts
    first_count = np.floor(required_sum / gain_difference) + 1
    reach_chance = binom.sf(first_count - 1, telling.max_counts, 0.5)
    smaller_chance = binom.sf(first_count - 2, np.maximum(telling.max_counts - 1, 0), 0.5)
    partial_mean = telling.max_counts / 2 * smaller_chance
    return np.asarray(np.maximum(gain_difference * partial_mean - required_sum * reach_chance, 0.0))


def compute_amplified_epsilon(
    epsilon: float, respondents: int, delta: float, blanket: AnyBlanket | None = None
) -> float:
    """Compute the epsilon of shuffled reports at a delta; the local one if nothing is gained.

    Parameters
    ----------
    epsilon : float
        Of each report by itself.
    respondents : int
        Honest reports in one shuffle, one per person.
    delta : float
    blanket : Blanket, optional
        Of the reports, where more is known of their law than epsilon.

    Examples
    --------
    >>> round(compute_amplified_epsilon(2.0, 10_000, 1e-6), 2)
    0.16
    """
    if not epsilon > 0 or not 0 < delta < 1 or not 1 <= respondents <= MAX_RESPONDENTS:
        raise PrivacyError(
            f"epsilon={epsilon!r}, n={respondents!r}, delta={delta!r}: epsilon must be above 0, "
            f"delta inside (0, 1) and n from 1 to {MAX_RESPONDENTS:,}"
        )
    if math.isinf(epsilon) or epsilon > MAX_LOCAL_EPSILON:
        return epsilon
    known_blanket = blanket or Blanket.from_epsilon(epsilon)
    low_epsilon, high_epsilon = 0.0, epsilon
    while high_epsilon - low_epsilon > 1e-4 * high_epsilon:
        middle_epsilon = (low_epsilon + high_epsilon) / 2
        if is_epsilon_kept(known_blanket, respondents, middle_epsilon, delta):
            high_epsilon = middle_epsilon
        else:
            low_epsilon = middle_epsilon
    return high_epsilon


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
        is_integer = isinstance(self.respondents, int) and not isinstance(self.respondents, bool)
        if not is_integer or not 2 <= self.respondents <= MAX_RESPONDENTS:
            raise PrivacyError(
                f"shuffled: respondents is {self.respondents!r}; expect 2 to {MAX_RESPONDENTS:,}, "
                "and no more than will certainly take part"
            )

    @classmethod
    def from_blanket(cls, blanket: AnyBlanket, delta: float, respondents: int) -> Shuffle:
        """Compute the promise of shuffling this many reports."""
        cls(1.0, delta, respondents)  # checks both
        amplified_epsilon = compute_amplified_epsilon(
            math.log(blanket.ratio), respondents, delta, blanket
        )
        return cls(float(format_rounded_up(amplified_epsilon, 4)), delta, respondents)

    def is_kept_by(self, blanket: AnyBlanket) -> bool:
        """Whether the shuffled reports satisfy the promise."""
        return is_epsilon_kept(blanket, self.respondents, self.epsilon, self.delta)

    def require_kept_by(self, blanket: AnyBlanket) -> None:
        """Raise if the reports reveal more than the promise allows."""
        if not self.is_kept_by(blanket):
            local_epsilon = math.log(blanket.ratio)
            amplified_epsilon = compute_amplified_epsilon(
                local_epsilon, self.respondents, self.delta, blanket
            )
            raise PrivacyError(
                f"shuffled: reports of epsilon {format_rounded_up(local_epsilon, 4)} each, "
                f"shuffled among {self.respondents:,}, have an epsilon of "
                f"{format_rounded_up(amplified_epsilon, 4)}, not "
                f"{format_rounded_up(self.epsilon)}; let each reveal less, or expect more "
                "respondents"
            )

    def find_largest_local(self, make_plan: Callable[[float], tuple[T, AnyBlanket]]) -> T:
        """Find the plan with the largest local epsilon that the shuffle allows.

        Parameters
        ----------
        make_plan : callable
            From a local epsilon to, for example, a plan and the blanket of its reports.
        """
        low_epsilon, high_epsilon = self.epsilon, MAX_LOCAL_EPSILON
        best_plan, _ = make_plan(low_epsilon)
        while high_epsilon - low_epsilon > 0.005:
            middle_epsilon = math.floor(500 * (low_epsilon + high_epsilon)) / 1000
            if not low_epsilon < middle_epsilon < high_epsilon:
                break
            plan, blanket = make_plan(middle_epsilon)
            if self.is_kept_by(blanket):
                low_epsilon, best_plan = middle_epsilon, plan
            else:
                high_epsilon = middle_epsilon
        return best_plan

    def apply_to_guarantee(
        self, local_guarantee: Guarantee, people: int | None = None
    ) -> Guarantee:
        """Return the guarantee with shuffling; the local one if too few people took part.

        Parameters
        ----------
        local_guarantee : Guarantee
            Of the reports by themselves.
        people : int, optional
            How many were counted in the smallest batch, 0 where some were not shuffled; None
            before anyone was.
        """
        if people is not None and people < self.respondents:
            shortfall = (
                f"nothing of a shuffle: the smallest batch has {people:,} counted reports, and the "
                f"stronger promise needs {self.respondents:,} in each"
            )
            if not people:
                shortfall = "nothing of a shuffle: reports without a batch mark were counted"
            return replace(local_guarantee, assumptions=(*local_guarantee.assumptions, shortfall))
        return replace(
            local_guarantee,
            epsilon=min(self.epsilon, local_guarantee.epsilon),
            delta=self.delta,
            against="everyone who sees only the shuffled reports",
            unshuffled=local_guarantee.epsilon,
            assumptions=(
                *local_guarantee.assumptions,
                ANONYMISER_ASSUMPTION,
                f"at least {self.respondents:,} honest reports are in one shuffle, one per person",
            ),
            charges=tuple(
                replace(charge, epsilon=min(self.epsilon, charge.epsilon), delta=self.delta)
                for charge in local_guarantee.charges
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

    def to_shuffle(self) -> Shuffle:
        """The value this shape stands for."""
        return Shuffle(self.epsilon, self.delta, self.respondents)
