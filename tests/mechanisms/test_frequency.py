"""Claims: frequency oracles count a population without bias, and refuse what is not theirs.

Statistical claims state their false-alarm rate; the seeds are fixed, so a failure is a change.
"""

from __future__ import annotations

import doctest
import itertools
import json
import math
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
import pytest
from scipy import stats

from discreet.errors import PrivacyError, SchemaError
from discreet.mechanisms import frequency
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
    choose_best_oracle,
    compute_sample_size_factor,
    make_oracle,
)
from discreet.randomness import CryptoRandom, SeededRandom

NAMES = list(ORACLES)


class SmallHash(OLH):
    prime: ClassVar[int] = 5


# Without bias, exactly.


@pytest.mark.slow
@pytest.mark.parametrize("kind", [DE, SUE, OUE, THE, SS, HR, SmallHash])
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.0])
@pytest.mark.parametrize("size", [2, 3, 5])
def test_expected_support_is_p_and_q_to_the_last_digit(
    kind: type[FrequencyOracle], epsilon: float, size: int
) -> None:
    oracle = kind(epsilon, size)
    outputs = np.array(list(oracle.outputs()), np.int64)
    supports = [oracle.tally(oracle.decode(row[None])) for row in outputs]
    for value, chances in enumerate(oracle.channel()):
        for other in range(size):
            mean = sum(
                chance * int(support[other])
                for chance, support in zip(chances, supports, strict=True)
            )
            assert mean == (oracle.p_exact if other == value else oracle.q_exact)


@pytest.mark.parametrize("name", NAMES)
def test_estimate_inverts_the_expected_tally(name: str) -> None:
    oracle = ORACLES[name](1.0, 4)
    holders = np.array([10, 20, 0, 70])
    unit = oracle.steps_per_unit if isinstance(oracle, SHE) else 1
    expected = [
        float(unit * (h * oracle.p_exact + (100 - h) * oracle.q_exact)) for h in holders.tolist()
    ]
    np.testing.assert_allclose(oracle.estimate(expected, 100), holders, atol=1e-11)


def test_hash_collisions_are_counted_exactly() -> None:
    oracle = SmallHash(1.0, 4)
    keys = list(itertools.product(range(5), repeat=3))

    def hashed(a: int, b: int, c: int, v: int) -> int:
        return (a * v * v + b * v + c) % 5 % oracle.hash_count

    for u, v in ((0, 1), (1, 3), (2, 3)):
        same = sum(hashed(*key, u) == hashed(*key, v) for key in keys)
        assert oracle.collision_probability == Fraction(same, len(keys))
    assert OLH(1.0, 4).q == pytest.approx(1 / OLH(1.0, 4).hash_count, abs=1e-9)


def enumerated(
    oracle: FrequencyOracle, groups: list[int], frequencies: list[Fraction]
) -> list[Fraction]:
    """Variance of one respondent's estimate of each sum of counts, from every possible report."""
    outputs = np.array(list(oracle.outputs()), np.int64)
    supports = [oracle.tally(oracle.decode(row[None])).tolist() for row in outputs]
    gain, channel = oracle.p_exact - oracle.q_exact, oracle.channel()
    found = []
    for group in sorted(set(groups)):
        members = [v for v, label in enumerate(groups) if label == group]
        sums = [(sum(one[v] for v in members) - len(members) * oracle.q_exact) / gain
                for one in supports]  # fmt: skip
        total = Fraction(0)
        for value, part in enumerate(frequencies):
            mean = sum(c * x for c, x in zip(channel[value], sums, strict=True))
            square = sum(c * x * x for c, x in zip(channel[value], sums, strict=True))
            total += part * (square - mean * mean)
        found.append(total)
    return found


GROUPS = {
    2: [0, 1],
    3: [0, 1, 1],
    4: [0, 0, 1, 1],
    6: [0, 0, 0, 1, 1, 1],
    5: [1, 0, 0, 1, 1],
    7: [0, 1, 1, 1, 1, 0, 2],
}


@pytest.mark.slow
@pytest.mark.parametrize("kind", [DE, SUE, OUE, THE, SS, HR, SmallHash])
@pytest.mark.parametrize("epsilon", [0.3, 1.5])
def test_the_variance_of_a_sum_of_counts_is_that_of_the_channel(
    kind: type[FrequencyOracle], epsilon: float
) -> None:
    """Cells of one report are not independent, except in unary encodings."""
    for size, groups in GROUPS.items():
        if kind is SmallHash and size > 5:
            continue  # three different values need three different residues
        oracle = kind(epsilon, size)
        weights = [Fraction(1 + (3 * v * v) % 7) for v in range(size)]
        shares = [one / sum(weights) for one in weights]
        truth = enumerated(oracle, groups, shares)
        stated = oracle.compute_sum_variances(groups, [float(one) for one in shares])
        np.testing.assert_allclose(stated, [float(one) for one in truth], rtol=1e-10)
        # each value alone: the variance of a single count
        alone = oracle.compute_sum_variances(range(size), [float(one) for one in shares])
        each = [oracle.variance(float(one)) for one in shares]
        np.testing.assert_allclose(alone, each, rtol=1e-10)


def test_noisy_histograms_have_independent_counts() -> None:
    oracle = SHE(1.0, 6)
    assert oracle.compute_sum_variances([0, 0, 1, 1, 1, 2], [1 / 6] * 6).tolist() == pytest.approx(
        [2 * oracle.variance(), 3 * oracle.variance(), oracle.variance()]
    )


def test_a_linear_hash_is_a_known_bad_twin() -> None:
    """With h(v) = a v + b the hashes of three values are not independent: real over stated 1.2."""
    oracle = OLH(2.0, 16)
    rng = np.random.default_rng(0)
    people, row = 100_000, np.arange(8)

    def ratio(degree: int) -> float:
        key = rng.integers(oracle.prime, size=(degree + 1, people, 1))
        image = key[0]
        hashes = np.zeros((people, 16), np.int64)
        for v in range(16):
            image = key[0]
            for part in key[1:]:
                image = (image * v + part) % oracle.prime
            hashes[:, v] = (image % oracle.hash_count)[:, 0]
        told = np.where(
            rng.random(people) < oracle.p,
            hashes[:, 1],
            (hashes[:, 1] + rng.integers(1, oracle.hash_count, people)) % oracle.hash_count,
        )
        support = (hashes[:, row] == told[:, None]).sum(axis=1) / (oracle.p - oracle.q)
        stated = oracle.compute_sum_variances([0] * 8 + [1] * 8, np.eye(16)[1])[0]
        return float(support.var() / stated)

    assert ratio(2) == pytest.approx(1, abs=0.05)  # seven standard errors
    assert ratio(1) > 1.2


def test_direct_encoding_without_privacy_is_exact() -> None:
    values = np.array([0, 2, 2, 1])
    oracle = DE(math.inf, 3)
    reports = oracle.perturb(values, SeededRandom(0))
    assert reports.tolist() == values.tolist()
    assert oracle.estimate(oracle.tally(reports), 4).tolist() == [1, 1, 2]
    assert oracle.compute_exact_epsilon() == math.inf
    assert oracle.variance(0.5) == 0


# Without bias and with the promised variance, in simulation.


def z_scores(oracle: FrequencyOracle, sampler: FrequencyOracle, seed: int) -> np.ndarray[Any, Any]:
    """How many standard deviations the estimates of 200000 reports are off."""
    size, respondents = oracle.size, 200_000
    shares = np.arange(1, size + 1) / (size * (size + 1) / 2)
    values = np.repeat(np.arange(size), np.ceil(shares * respondents).astype(int))[:respondents]
    truth = np.bincount(values, minlength=size)
    estimate = oracle.estimate(
        oracle.tally(sampler.perturb(values, SeededRandom(seed))), respondents
    )
    spread = [math.sqrt(respondents * oracle.variance(t / respondents)) for t in truth]
    return (estimate - truth) / spread


CASES = [(name, size) for name in NAMES for size in (2, 7, 40)]


@pytest.mark.slow
@pytest.mark.parametrize(("name", "size"), CASES)
def test_estimates_are_unbiased(name: str, size: int) -> None:
    """A false alarm in fewer than 1e-5 of all runs: 6 standard deviations, 392 cells."""
    oracle = ORACLES[name](1.0, size)
    assert np.abs(z_scores(oracle, oracle, seed=size)).max() < 6


class FlippedSign(THE):
    """Yilmaz et al. print p of THE with the exponent's sign flipped."""

    @property
    def p_exact(self) -> Fraction:
        theta = self.theta or 0.0
        return Fraction(1 - math.exp(self.epsilon * (1 - theta) / 2) / 2)


class UniformLie(DE):
    """Estimates as if a lie could be the truth."""

    @property
    def q_exact(self) -> Fraction:
        return (1 - self.p_exact) / self.size


@pytest.mark.parametrize(
    ("twin", "sound"),
    [
        (FlippedSign(1.0, 7, 0.25), THE(1.0, 7, 0.25)),
        (FlippedSign(1.0, 7), THE(1.0, 7)),
        (UniformLie(1.0, 7), DE(1.0, 7)),
    ],
)
def test_biased_twins_are_refused(twin: FrequencyOracle, sound: FrequencyOracle) -> None:
    assert np.abs(z_scores(sound, sound, seed=1)).max() < 6
    assert not np.abs(z_scores(twin, sound, seed=1)).max() < 6


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("epsilon", [0.5, 2.0])
def test_variance_is_what_the_formula_says(name: str, epsilon: float) -> None:
    """Chi-square of 500 estimates from 400 respondents each, 1e-7 a cell and side, 96 checks."""
    oracle, runs, respondents = ORACLES[name](epsilon, 6), 500, 400
    truth = np.array([200, 100, 60, 30, 10, 0])
    values = np.tile(np.repeat(np.arange(6), truth), runs)
    reports = oracle.perturb(values, SeededRandom(3))
    estimates = [oracle.estimate(oracle.tally(run), respondents) for run in np.split(reports, runs)]
    promised = np.array([respondents * oracle.variance(t / respondents) for t in truth])
    ratio = np.var(estimates, axis=0, ddof=1) / promised
    low, high = stats.chi2.ppf([1e-7, 1 - 1e-7], runs - 1) / (runs - 1)
    assert ((low < ratio) & (ratio < high)).all()


def test_published_variances_are_met() -> None:
    """Wang et al. 2017, table 1, for rare values."""
    e = math.exp(1)
    assert DE(1.0, 30).variance() == pytest.approx((30 - 2 + e) / (e - 1) ** 2)
    assert OUE(1.0, 30).variance() == pytest.approx(4 * e / (e - 1) ** 2)
    root = math.exp(0.5)
    assert SUE(1.0, 30).variance() == pytest.approx(root / (root - 1) ** 2)
    assert SHE(1.0, 30).variance() == pytest.approx(8, rel=1e-4)


def test_thresholding_picks_the_theta_of_least_variance() -> None:
    for epsilon in (0.1, 1.0, 4.0):
        best = THE(epsilon, 5)
        assert best.theta is not None
        assert 0.5 < best.theta < 1
        for step in (-1, 1):
            assert best.variance() <= THE(epsilon, 5, best.theta + step / 1024).variance()
        assert best.variance() < THE(epsilon, 5, 0.25).variance()


# The serialised report.


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("size", [2, 8, 9, 16, 17, 40])
def test_reports_survive_serialisation(name: str, size: int) -> None:
    oracle = ORACLES[name](0.7, size)
    reports = oracle.perturb(np.arange(500) % size, SeededRandom(size))
    matrix = oracle.encode(reports)
    assert matrix.dtype == np.int64
    assert matrix.shape == (500, oracle.width)
    back = oracle.decode(matrix)
    assert back.dtype == reports.dtype
    np.testing.assert_array_equal(back, reports)
    assert not oracle.find_faulty(matrix).any()


@pytest.mark.parametrize("name", NAMES)
def test_no_respondent_is_no_report(name: str) -> None:
    oracle = ORACLES[name](1.0, 5)
    reports = oracle.perturb(np.array([], np.int64), SeededRandom(0))
    assert oracle.encode(reports).shape == (0, oracle.width)
    assert oracle.tally(oracle.decode(oracle.encode(reports))).tolist() == [0] * 5


@pytest.mark.parametrize("name", NAMES)
def test_the_cryptographic_source_serves_every_oracle(name: str) -> None:
    oracle = ORACLES[name](1.0, 20)
    assert not oracle.find_faulty(oracle.encode(oracle.perturb([3] * 100, CryptoRandom()))).any()


@pytest.mark.parametrize(
    ("oracle", "report", "reason"),
    [
        (DE(1.0, 3), [3], "outside 0 .. 2"),
        (DE(1.0, 3), [-1], "outside 0 .. 2"),
        (OUE(1.0, 17), [65536, 0], "outside 0 .. 65535"),
        (OUE(1.0, 17), [5, 2], "beyond the 17 values"),
        (SUE(1.0, 4), [16], "beyond the 4 values"),
        (SS(0.1, 5), [1, 5], "outside 0 .. 4"),
        (SS(0.1, 5), [2, 1], "ascending"),
        (SS(0.1, 5), [2, 2], "repeated"),
        (HR(1.0, 4), [8], "outside 0 .. 7"),
        (OLH(1.0, 4), [-1, 5, 5, 0], "key is outside"),
        (OLH(1.0, 4), [5, 5, 2**31 - 1, 0], "key is outside"),
        (OLH(1.0, 4), [5, 5, 5, 4], "hash is outside 0 .. 3"),
        (SHE(1.0, 2), [0, 10**9], "outside -8256 .. 8256"),
    ],
)
def test_corrupted_reports_are_refused_with_a_reason(
    oracle: FrequencyOracle, report: list[int], reason: str
) -> None:
    good = oracle.encode(oracle.perturb([0, 1], SeededRandom(0)))
    matrix = np.vstack([good, [report], good])
    with pytest.raises(SchemaError, match=f"{oracle.name} report 2: .*{reason}"):
        oracle.decode(matrix)
    assert oracle.find_faulty(matrix).tolist() == [False, False, True, False, False]


@pytest.mark.parametrize("name", NAMES)
def test_wrong_shapes_and_types_are_refused(name: str) -> None:
    oracle = ORACLES[name](1.0, 5)
    for shape in ((3, oracle.width + 1), (oracle.width,)):
        with pytest.raises(SchemaError, match="shape"):
            oracle.decode(np.zeros(shape, np.int64))
    with pytest.raises(SchemaError, match="float64"):
        oracle.decode(np.zeros((3, oracle.width)))


def test_a_serialised_subset_is_sorted_whatever_it_is_made_from() -> None:
    assert SS(0.1, 5).encode(np.array([[3, 1]])).tolist() == [[1, 3]]


# The tally.


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("size", [2, 9, 33])
def test_tallies_of_batches_add_up(name: str, size: int) -> None:
    oracle = ORACLES[name](1.0, size)
    reports = oracle.perturb(np.arange(3000) % size, SeededRandom(1))
    whole = oracle.tally(reports)
    parts = sum(oracle.tally(part) for part in np.array_split(reports, 4))
    assert whole.dtype == np.int64
    np.testing.assert_array_equal(whole, parts)


@pytest.mark.parametrize("size", [3, 4, 20])
def test_unary_tally_is_the_sum_of_the_bits(size: int) -> None:
    oracle = OUE(1.0, size)
    reports = oracle.perturb(np.arange(1000) % size, SeededRandom(2))
    bits = np.unpackbits(reports, axis=1, bitorder="little")
    np.testing.assert_array_equal(oracle.tally(reports), bits.sum(axis=0)[:size])
    assert not bits[:, size:].any()


@pytest.mark.parametrize("size", [2, 3, 4, 21])
def test_hadamard_tally_is_the_naive_one(size: int) -> None:
    oracle = HR(1.0, size)
    reports = oracle.perturb(np.arange(500) % size, SeededRandom(2))
    naive = [sum((i & v + 1).bit_count() % 2 == 0 for i in reports.tolist()) for v in range(size)]
    assert oracle.tally(reports).tolist() == naive
    assert oracle.matrix_order > size


def test_hashing_tally_is_the_naive_one() -> None:
    oracle = OLH(2.0, 50)
    reports = oracle.perturb(np.arange(400) % 50, SeededRandom(2))
    top = oracle.prime - 1
    reports[0] = top, top, top, 0  # the largest key
    naive = [
        sum((a * v * v + b * v + c) % oracle.prime % oracle.hash_count == y
            for a, b, c, y in reports.tolist())
        for v in range(50)
    ]  # fmt: skip
    assert oracle.tally(reports).tolist() == naive


def test_javascript_numbers_hold_every_product() -> None:
    largest = OLH(1.0, 1 << 22)
    assert (largest.prime - 1) * (largest.size - 1) + largest.prime - 1 < 1 << 53


# What is asked wrongly.


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("epsilon", [0, -1, 1e-10, math.nan, -math.inf, "1", None, True])
def test_a_wrong_epsilon_is_refused(name: str, epsilon: Any) -> None:
    with pytest.raises(PrivacyError, match="epsilon is"):
        ORACLES[name](epsilon, 4)


@pytest.mark.parametrize("name", [name for name in NAMES if name != "de"])
def test_only_direct_encoding_goes_without_privacy(name: str) -> None:
    with pytest.raises(PrivacyError, match="use de"):
        ORACLES[name](math.inf, 4)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("size", [1, 0, -3, (1 << 22) + 1, 2.0, "4", True])
def test_a_wrong_size_is_refused(name: str, size: Any) -> None:
    with pytest.raises(SchemaError, match="size is"):
        ORACLES[name](1.0, size)


@pytest.mark.parametrize("theta", [-0.1, 1.1, math.nan, "0.5", True])
def test_a_wrong_theta_is_refused(theta: Any) -> None:
    with pytest.raises(PrivacyError, match="theta is"):
        THE(1.0, 4, theta)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("values", [[4], [-1], [0.5], [[1]], ["a"], 3])
def test_a_wrong_value_is_refused_and_not_repeated(name: str, values: Any) -> None:
    with pytest.raises(SchemaError):
        ORACLES[name](1.0, 4).perturb(values, SeededRandom(0))


def test_reports_of_a_larger_domain_are_not_tallied() -> None:
    with pytest.raises(SchemaError, match=r"outside 0 \.\. 3"):
        DE(1.0, 4).tally(np.array([1, 4], np.int32))


# Plans.


@pytest.mark.parametrize("name", NAMES)
def test_parameters_travel_as_json_and_rebuild_the_oracle(name: str) -> None:
    oracle = make_oracle(name, 9, 1.0)
    carried = json.loads(json.dumps(oracle.get_parameters()))
    assert make_oracle(name, 9, 1.0, parameters=carried) == oracle
    assert all(not isinstance(n, int) or n < 1 << 53 for n in carried.values())
    with pytest.raises(PrivacyError, match="parameters"):
        make_oracle(name, 9, 1.1, parameters=carried)


def test_theta_belongs_to_thresholding() -> None:
    assert make_oracle("the", 9, 1.0, theta=0.25) == THE(1.0, 9, 0.25)
    with pytest.raises(PrivacyError, match="theta"):
        make_oracle("de", 9, 1.0, theta=0.25)


def test_unknown_oracles_are_refused() -> None:
    with pytest.raises(SchemaError, match="auto or one of de, sue"):
        make_oracle("rappor", 9, 1.0)


@pytest.mark.parametrize("epsilon", [0.1, 0.5, 1.0, 2.0, 4.0])
@pytest.mark.parametrize("size", [2, 3, 8, 20, 100])
def test_auto_has_the_least_variance(size: int, epsilon: float) -> None:
    chosen = make_oracle("auto", size, epsilon)
    assert chosen == choose_best_oracle(size, epsilon)
    for kind in (DE, OUE, SS):
        assert chosen.variance(1 / size) <= kind(epsilon, size).variance(1 / size) * (1 + 1e-12)


def test_auto_is_direct_where_sets_hold_one_value_and_without_privacy() -> None:
    assert choose_best_oracle(3, 1.0) == DE(1.0, 3)
    assert choose_best_oracle(30, math.inf) == DE(math.inf, 30)
    assert choose_best_oracle(30, 1.0) == SS(1.0, 30)


def test_cost_is_that_of_section_6() -> None:
    """c(D) with the cheaper of both subset sizes, in plain floats."""
    for size, epsilon in ((2, 1.0), (6, 0.5), (12, 1.0), (100, 2.0), (37, 0.25)):
        e, costs = math.exp(epsilon), []
        for w in (math.floor(size / (e + 1)), math.ceil(size / (e + 1))):
            if w >= 1:
                p = w * e / (w * e + size - w)
                q = (w * e * (w - 1) + (size - w) * w) / ((size - 1) * (w * e + size - w))
                pi = q + (p - q) / size
                costs.append(pi * (1 - pi) / (p - q) ** 2 / (1 / size * (1 - 1 / size)))
        assert compute_sample_size_factor(size, epsilon) == pytest.approx(min(costs), rel=1e-12)
    assert compute_sample_size_factor(12, math.inf) == 1


def test_oracles_are_values() -> None:
    assert OUE(1.0, 4) == OUE(1, 4)
    assert len({OUE(1.0, 4), OUE(1.0, 4), SUE(1.0, 4)}) == 2
    with pytest.raises(AttributeError):
        OUE(1.0, 4).epsilon = 2.0  # type: ignore[misc]


def test_the_examples_run() -> None:
    assert doctest.testmod(frequency).failed == 0
    assert doctest.testmod(frequency).attempted > 0
