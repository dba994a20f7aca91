"""Claims: no serialised report of a frequency oracle says more than epsilon allows.

Everything here is exact. ``law`` walks through every random choice that a sampler can make, each
with its probability as a fraction, and so finds what really leaves the device; ``worst_ratio``
compares that for every two values. Known-bad twins go through the same functions and must fail.
"""

from __future__ import annotations

import itertools
import math
from collections import defaultdict
from collections.abc import Sequence
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
import pytest
from scipy import stats

from discreet.audit import enumeration
from discreet.audit.enumeration import (
    EnumeratedRandom,
    find_worst_ratio,
    is_within_epsilon,
    iter_paths,
)
from discreet.errors import PrivacyError
from discreet.mechanisms.frequency import (
    DE,
    HR,
    OLH,
    ORACLES,
    OUE,
    SHE,
    SS,
    SUE,
    THE,
    FrequencyOracle,
)
from discreet.privacy.rounding import compute_channel_epsilon
from discreet.randomness import Random, SeededRandom
from twins import TruthFirst

Law = dict[tuple[int, ...], Fraction]

ONE = 1 << 64
EPSILONS = (0.01, 0.1, 0.5, 1.0, 2.0, 5.0, 8.0)
SIZES = {DE: (2, 3, 5, 8, 40), HR: (2, 3, 5, 8, 40), SS: (2, 3, 5, 8, 12)}
FEW = (2, 3, 5)  # for reports that are 2^size


def is_private(laws: Sequence[Law], epsilon: float) -> bool:
    assert all(sum(law.values()) == 1 for law in laws)
    return is_within_epsilon(epsilon, find_worst_ratio(laws).ratio)


class Keys(EnumeratedRandom):
    """Also enumerates the sort keys of subset selection, from four values only, so that many tie.

    A second draw of keys means that a tie was found; the path ends there.
    """

    VALUES: ClassVar = np.array([0, 1, 1 << 31, (1 << 32) - 1], np.uint32)

    class TieError(Exception):
        pass

    def raw(self, count: int) -> np.ndarray[Any, np.dtype[np.uint8]]:
        if len(self.branches_taken) > 1:
            raise Keys.TieError
        drawn = [self.uniform_choice(4) for _ in range(count // 4)]
        return self.VALUES[drawn].view(np.uint8)


def law(oracle: FrequencyOracle, value: int) -> Law:
    """What leaves the device of someone with this value, by running the sampler on every path."""
    return enumeration.compute_law(
        lambda random: tuple(oracle.encode(oracle.perturb([value], random))[0].tolist())
    )


def laws(oracle: FrequencyOracle) -> list[Law]:
    return [law(oracle, value) for value in range(oracle.size)]


def channel_laws(oracle: FrequencyOracle) -> list[Law]:
    outputs = list(oracle.outputs())
    return [dict(zip(outputs, row, strict=True)) for row in oracle.channel()]


class SmallHash(OLH):
    """Local hashing with a prime so small that every key can be enumerated."""

    prime: ClassVar[int] = 5


FINITE = [DE, SUE, OUE, THE, SS, HR, SmallHash]
CASES = [
    pytest.param(
        kind, size, epsilon, marks=[pytest.mark.slow] if kind is SmallHash and epsilon == 5 else []
    )
    for kind in FINITE
    for size in SIZES.get(kind, FEW)
    for epsilon in EPSILONS
    if not (kind is SmallHash and epsilon > 5)  # 2982 hashes: more than need be enumerated
]


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "size", "epsilon"), CASES)
def test_no_serialised_report_exceeds_epsilon(
    kind: type[FrequencyOracle], size: int, epsilon: float
) -> None:
    oracle = kind(epsilon, size)
    assert is_private(channel_laws(oracle), epsilon)
    # the closed form is the enumerated loss, and what rounding gave away is nothing
    assert oracle.compute_exact_epsilon() <= epsilon
    assert oracle.compute_exact_epsilon() == pytest.approx(
        compute_channel_epsilon(oracle.channel()), abs=1e-12
    )
    if kind is not THE:
        assert oracle.compute_exact_epsilon() == pytest.approx(epsilon, abs=1e-12)


@pytest.mark.parametrize("theta", [0.0, 0.25, 0.5, 0.75, 1.0])
@pytest.mark.parametrize("epsilon", EPSILONS)
def test_thresholding_is_private_at_every_theta(theta: float, epsilon: float) -> None:
    oracle = THE(epsilon, 3, theta)
    assert is_private(channel_laws(oracle), epsilon)
    assert oracle.compute_exact_epsilon() == pytest.approx(
        compute_channel_epsilon(oracle.channel()), abs=1e-12
    )


@pytest.mark.parametrize("name", ORACLES)
@pytest.mark.parametrize("size", [2, 17, 4096])
@pytest.mark.parametrize("epsilon", [1e-9, 1e-3, 1.0, 20.0, 64.0, 700.0])
def test_the_closed_form_stays_below_epsilon_at_the_extremes(
    name: str, size: int, epsilon: float
) -> None:
    oracle = ORACLES[name](epsilon, size)
    assert 0 < oracle.compute_exact_epsilon() <= epsilon
    assert oracle.p_exact > oracle.q_exact


SAMPLED = [
    (DE, 1.0, 2),
    (DE, 1.0, 5),
    (DE, math.inf, 3),
    (SUE, 1.0, 3),
    (OUE, 0.5, 3),
    (THE, 2.0, 3),
    (HR, 1.0, 3),
    (HR, 1.0, 4),
    (SS, 2.0, 2),
    (SS, 1.0, 5),  # sets of one
    (SS, 0.1, 5),  # sets of two
    (SmallHash, 0.5, 4),
    (SmallHash, 1.0, 3),
]


@pytest.mark.parametrize(("kind", "epsilon", "size"), SAMPLED)
def test_the_sampler_is_the_channel(kind: type[FrequencyOracle], epsilon: float, size: int) -> None:
    oracle = kind(epsilon, size)
    for value, promised in enumerate(channel_laws(oracle)):
        assert law(oracle, value) == {report: c for report, c in promised.items() if c}


@pytest.mark.slow
@pytest.mark.parametrize(("epsilon", "size"), [(0.5, 4), (0.1, 6)])
def test_subsets_chosen_by_keys_are_uniform_whatever_ties(epsilon: float, size: int) -> None:
    """Given whether the truth is in, every set that allows is as likely; ties end a path."""
    oracle = SS(epsilon, size)
    assert oracle.subset_size**2 >= size  # this is the way with keys
    found: dict[bool, Law] = {True: defaultdict(Fraction), False: defaultdict(Fraction)}

    def send(random: EnumeratedRandom) -> None:
        try:
            sent = oracle.perturb([1], random)
        except Keys.TieError:
            return
        found[bool(random.branches_taken[0][0])][tuple(sent[0].tolist())] += random.probability

    assert sum(choices.probability for _, choices in iter_paths(send, Keys)) == 1
    for member, sets in found.items():
        allowed = [s for s in oracle.outputs() if (1 in s) == member]
        assert sorted(sets) == allowed
        assert len(set(sets.values())) == 1


class Coarse(SeededRandom):
    """Keys of three bits, so that most rows tie and are drawn again; sound coins."""

    coins: ClassVar[Random] = SeededRandom(7)

    def raw(self, count: int) -> np.ndarray[Any, np.dtype[np.uint8]]:
        keys = super().raw(count).view(np.uint32) & np.uint32(0xE0000000)
        return keys.view(np.uint8)

    def bernoulli_words(self, threshold: int, size: int) -> np.ndarray[Any, np.dtype[np.bool_]]:
        return self.coins.bernoulli_words(threshold, size)


@pytest.mark.slow
@pytest.mark.parametrize("random", [SeededRandom(5), Coarse(6)], ids=["fine", "coarse"])
def test_subset_reports_follow_the_channel_also_after_ties(random: Random) -> None:
    """Chi-square, false-alarm rate 1e-6 each: 120000 reports over 20 sets."""
    oracle, rows = SS(0.1, 6), 120_000
    sent = oracle.encode(oracle.perturb(np.full(rows, 2), random))
    outputs = {report: i for i, report in enumerate(oracle.outputs())}
    counts = np.bincount([outputs[tuple(r)] for r in sent.tolist()], minlength=len(outputs))
    expected = [float(c) * rows for c in oracle.channel()[2]]
    assert stats.chisquare(counts, expected).pvalue > 1e-6


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_summed_histograms_lose_at_most_epsilon_on_the_grid(epsilon: float) -> None:
    """P(x) ~ exp(-|x|/scale): the log-ratio is rational, and largest outside of 0 .. unit."""
    oracle = SHE(epsilon, 3)
    around = (-200, -1, 0, 1, 31, 63, 64, 65, 200)
    losses = [oracle.compute_log_ratio((x, y, 5), 0, 1) for x in around for y in around]
    assert max(losses) <= Fraction(epsilon)
    assert max(losses) == -min(losses)
    assert float(max(losses)) == oracle.compute_exact_epsilon()
    assert oracle.compute_exact_epsilon() == pytest.approx(epsilon, rel=1e-4)


def test_summed_histograms_add_exactly_the_promised_noise() -> None:
    class Noise(EnumeratedRandom):
        def discrete_laplace(self, scale: Any, size: int) -> np.ndarray[Any, Any]:
            assert scale == oracle.noise_scale
            return np.arange(size)

    oracle = SHE(1.0, 3)
    assert oracle.perturb([1, 0], Noise([])).tolist() == [[0, 1 + 64, 2], [3 + 64, 4, 5]]


# Known-bad twins: the same functions must refuse them.


class FirstReplaced(SS):
    """The truth always replaces the first of an ordered set: sorted, but not uniform."""

    def _draw_small_sets(self, true: Any, random: Random) -> Any:
        member = random.bernoulli_words(self.threshold, len(true))
        sets = random.subsets(self.size - 1, self.subset_size, true.size)
        sets += sets >= true[:, None]
        sets[:, 0] = np.where(member, true, sets[:, 0])
        return np.sort(sets, axis=1)


class OffsetFromZero(DE):
    """After deciding to lie, tells the truth once in ``size`` times."""

    def perturb(self, values: Any, random: Random) -> Any:
        offset = random.integers(self.size, len(values))
        offset *= ~random.bernoulli_words(self.threshold, len(values))
        return ((np.asarray(values) + offset) % self.size).astype(np.int32)


class RoundedUp(DE):
    """The nearest multiple of 2^-64 above, instead of below."""

    @property
    def threshold(self) -> int:  # type: ignore[override]
        return DE(self.epsilon, self.size).threshold + 1


class EpsilonPerBit(SUE):
    """Spends epsilon on every bit; two bits differ between two values."""

    @property
    def threshold(self) -> int:  # type: ignore[override]
        return int(ONE * math.exp(self.epsilon) / (math.exp(self.epsilon) + 1))


class KeptNoise(SHE):
    """Noise for one changed number, where two change."""

    @property
    def noise_scale(self) -> Fraction:  # type: ignore[override]
        return Fraction(self.steps_per_unit) / Fraction(self.epsilon)


@pytest.mark.parametrize(
    ("twin", "epsilon", "size"),
    [
        (TruthFirst, 0.1, 5),
        (FirstReplaced, 0.1, 5),
        (OffsetFromZero, 1.0, 4),
        (RoundedUp, 1.0, 4),
        (EpsilonPerBit, 1.0, 3),
    ],
)
def test_known_bad_twins_are_refused(
    twin: type[FrequencyOracle], epsilon: float, size: int
) -> None:
    sound = twin.__mro__[1](epsilon, size)
    assert is_private(laws(sound), epsilon)
    assert not is_private(laws(twin(epsilon, size)), epsilon)


def test_noise_for_one_number_where_two_change_is_refused() -> None:
    loss = KeptNoise(1.0, 3).compute_log_ratio((200, -200, 0), 0, 1)
    assert loss > 1


def test_all_reports_at_epsilon_each_cost_their_sum() -> None:
    """The published protocol: n + 1 = 3 questions, all answered by everyone at epsilon each."""
    epsilon, each = 0.5, laws(DE(0.5, 3))
    people = list(itertools.product(range(3), repeat=3))

    def joint(answers: tuple[int, ...]) -> Law:
        reports = itertools.product(*(each[answer].items() for answer in answers))
        return {
            tuple(itertools.chain(*(sent for sent, _ in parts))): math.prod(
                (chance for _, chance in parts), start=Fraction(1)
            )
            for parts in reports
        }

    everything = [joint(person) for person in people]
    assert not is_private(everything, epsilon)
    assert not is_private(everything, 2 * epsilon)
    assert is_private(everything, 3 * epsilon)
    assert is_private([each[person[0]] for person in people], epsilon)  # one report is fine


def test_channels_too_large_to_write_out_say_so() -> None:
    for oracle in (OLH(1.0, 4), OUE(1.0, 17), SS(0.1, 30)):
        with pytest.raises(PrivacyError, match="too many to write out"):
            oracle.channel()
    with pytest.raises(PrivacyError, match="log_ratio"):
        SHE(1.0, 4).channel()
    with pytest.raises(PrivacyError, match="log_ratio"):
        SHE(1.0, 4).likelihood(0, (0, 0, 0, 0))
