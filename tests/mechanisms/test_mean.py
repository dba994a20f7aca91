"""Mean oracles are unbiased, as precise as their formulas say, and refuse what they cannot mean.

Bias and variance are computed exactly, from the channel. Checks by sampling use ``SeededRandom``
and so never change; over the seeds a correct oracle fails one of them with probability 1e-6, a few
times that where sums of 200 are taken as normal, and there are fewer than 300.
"""

from __future__ import annotations

import dataclasses
import itertools
import json
import math
from collections.abc import Iterable, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import stats

from discreet.errors import EstimationError, PrivacyError, SchemaError
from discreet.mechanisms.mean import (
    MEAN_ORACLES,
    Duchi,
    DuchiMany,
    Hybrid,
    HybridMany,
    LaplaceMean,
    MeanOracle,
    OneBit,
    Piecewise,
    PiecewiseMany,
)
from discreet.randomness import CryptoRandom, Random, SeededRandom

ALARM = 1e-6
ONE = 1 << 64
EPSILONS = (0.1, 0.5, 1.0, 2.0, 3.0, 5.0)

SMALL: list[MeanOracle] = [
    oracle
    for epsilon in EPSILONS
    for oracle in (
        Duchi(epsilon, resolution=4),
        *(DuchiMany(epsilon, n, resolution=2) for n in (1, 2, 3, 4)),
        *(OneBit(epsilon, n, resolution=2) for n in (1, 3)),
        *(Piecewise(epsilon, window, resolution=4) for window in ("least", "published")),
        *(PiecewiseMany(epsilon, n, resolution=1) for n in (2, 3)),
        *(Hybrid(epsilon, window, resolution=4) for window in ("least", "published")),
        *(HybridMany(epsilon, n, resolution=1) for n in (2, 3)),
    )
]

DEFAULT: list[MeanOracle] = [
    oracle
    for epsilon in (0.5, 2.0, 6.0)
    for oracle in (
        LaplaceMean(epsilon),
        LaplaceMean(epsilon, 3),
        Duchi(epsilon),
        DuchiMany(epsilon, 4),
        DuchiMany(epsilon, 7),
        OneBit(epsilon, 3),
        Piecewise(epsilon),
        Piecewise(epsilon, "published"),
        PiecewiseMany(epsilon, 3),
        Hybrid(epsilon),
        Hybrid(epsilon, "published"),
        HybridMany(epsilon, 3),
    )
]

Law = Iterable[tuple[Fraction, Sequence[Fraction]]]  # probabilities of debiased vectors


def debiased(oracle: MeanOracle, reports: NDArray[np.int64]) -> list[list[Fraction]]:
    """What each report contributes to the estimates, exactly."""
    vectors = []
    for report in reports:
        totals = oracle.tally(report[None]).reshape(len(oracle.units), oracle.size)
        worth = (
            unit * total.astype(object) for unit, total in zip(oracle.units, totals, strict=True)
        )
        vectors.append(list(sum(worth, np.full(oracle.size, Fraction(0), object))))
    return vectors


def mean_of(law: Law) -> list[Fraction]:
    columns = zip(*([p * x for x in vector] for p, vector in law), strict=True)
    return [sum(column, Fraction(0)) for column in columns]


def unbiased(law: Law, truth: Sequence[Fraction]) -> bool:
    return mean_of(law) == list(truth)


def agrees(counts: NDArray[np.int64], row: Sequence[Fraction]) -> bool:
    """Chi-square of drawn reports against their probabilities."""
    expected = np.array([float(p) for p in row]) * counts.sum()
    assert expected[expected > 0].min() > 5
    if counts[expected == 0].any():
        return False
    possible = expected > 0
    excess = ((counts - expected)[possible] ** 2 / expected[possible]).sum()
    return bool(stats.chi2.sf(excess, possible.sum() - 1) > ALARM)


def counted(oracle: MeanOracle, reports: NDArray[np.int64]) -> NDArray[np.int64]:
    places = {tuple(output): i for i, output in enumerate(oracle.outputs().tolist())}
    counts = np.zeros(len(places), np.int64)
    unique, times = np.unique(reports, axis=0, return_counts=True)
    for report, time in zip(unique.tolist(), times.tolist(), strict=True):
        counts[places[tuple(report)]] += time
    return counts


# Unbiased


@pytest.mark.parametrize("oracle", SMALL, ids=repr)
def test_the_mean_of_a_debiased_report_is_exactly_the_value(oracle: MeanOracle) -> None:
    R = oracle.resolution
    levels = [-R, 0, R] if oracle.size > 1 else list(range(-R, R + 1))
    vectors = debiased(oracle, oracle.outputs())
    for point, row in zip(oracle.inputs(levels), oracle.channel(levels), strict=True):
        assert unbiased(zip(row, vectors, strict=True), [Fraction(i, R) for i in point])


def test_estimates_are_the_debiased_sums() -> None:
    for oracle in SMALL[:14]:
        reports = oracle.outputs()
        expected = np.array(debiased(oracle, reports), np.float64).sum(axis=0)
        estimate = oracle.estimate(oracle.tally(reports), len(reports))
        np.testing.assert_allclose(estimate, expected, rtol=1e-12, atol=1e-12)


def test_laplace_is_unbiased_but_for_its_cut_ends() -> None:
    oracle = LaplaceMean(5.0, resolution=1)
    vectors = debiased(oracle, oracle.outputs())
    for point, row in zip(oracle.inputs(), oracle.channel(), strict=True):
        (mean,) = mean_of(zip(row, vectors, strict=True))
        assert abs(mean - point[0]) < Fraction(1, 10**19)


def test_piecewise_with_equal_tails_is_biased() -> None:
    oracle = Piecewise(1.0, "published", resolution=8)
    M, w, inside = oracle.largest, oracle.half_width, Fraction(oracle.inside_threshold, ONE)
    vectors = debiased(oracle, oracle.outputs())
    for level in (-7, -3, 3, 7):  # listing 5.4: each tail with probability 1/2
        row = [
            inside / (2 * w + 1) if abs(o - level) <= w
            else (1 - inside) / 2 / (level - w + M if o < level else M - level - w)
            for o in range(-M, M + 1)
        ]  # fmt: skip
        assert sum(row) == 1
        assert not unbiased(zip(row, vectors, strict=True), [Fraction(level, 8)])


def test_coordinates_drawn_with_replacement_and_overwritten_are_biased() -> None:
    oracle = PiecewiseMany(5.0, 3, resolution=1)
    n, k = oracle.size, oracle.sampled_count
    assert k == 2
    numbers, row, unit = (
        oracle.scalar_oracle.list_numbers(),
        oracle.scalar_oracle.compute_row(1),
        oracle.units[0],
    )
    law: list[tuple[Fraction, list[Fraction]]] = []
    for drawn in itertools.product(range(n), repeat=k):  # listing 5.5, every value 1
        for values in itertools.product(zip(numbers, row, strict=True), repeat=k):
            vector = [Fraction(0)] * n
            for j, (number, _) in zip(drawn, values, strict=True):
                vector[j] = unit * number
            law.append((math.prod((p for _, p in values), start=Fraction(1, n**k)), vector))
    assert not unbiased(law, [Fraction(1)] * n)
    assert mean_of(law)[0] == Fraction(n, k) * (1 - (1 - Fraction(1, n)) ** k)  # 5/6: towards 0


@given(st.lists(st.floats(-1, 1), min_size=1, max_size=5), st.sampled_from([1, 64, 1024]))
def test_rounding_to_the_grid_keeps_the_mean(values: list[float], resolution: int) -> None:
    class Thresholds(SeededRandom):
        seen: Any = None

        def bernoulli_each(self, thresholds: NDArray[np.uint64]) -> NDArray[np.bool_]:
            self.seen = thresholds
            return np.zeros(thresholds.shape, np.bool_)

    random = Thresholds(0)
    oracle = Piecewise(1.0, resolution=resolution)
    levels = oracle._round_to_grid(np.array(values)[:, None], random)
    for value, level, away in zip(values, levels[:, 0], random.seen[:, 0], strict=True):
        mean = abs(int(level)) + Fraction(int(away), ONE)
        assert 0 <= abs(Fraction(value)) * resolution - mean < Fraction(1, ONE)
        assert value * level >= 0


# Drawn as stated


@pytest.mark.slow
@pytest.mark.parametrize("oracle", [o for o in SMALL if o.epsilon in (0.5, 3.0)], ids=repr)
def test_many_draws_agree_with_the_channel(oracle: MeanOracle) -> None:
    R = oracle.resolution
    point = [R, -R, 0, R][: oracle.size] if oracle.size > 1 else [R - 1]
    row = oracle._compute_row(point)
    values = np.tile(np.array(point) / R, (100_000, 1))
    assert agrees(counted(oracle, oracle.perturb(values, SeededRandom(1))), row)


def test_many_draws_of_laplace_agree_with_its_law() -> None:
    oracle = LaplaceMean(3.0, resolution=4)
    reports = oracle.perturb(np.full(100_000, 0.5), SeededRandom(1))
    counts, row = counted(oracle, reports), oracle.channel([2])[0]
    kept = slice(oracle.largest - 15, oracle.largest + 20)  # the tails as one cell
    pooled = [*row[kept], 1 - sum(row[kept], Fraction(0))]
    assert agrees(np.append(counts[kept], counts.sum() - counts[kept].sum()), pooled)


def test_draws_with_equal_tails_do_not_agree() -> None:
    oracle = Piecewise(1.0, resolution=4)
    reports = oracle.perturb(np.full(100_000, 0.75), SeededRandom(1))
    outside = np.abs(reports[:, 0] - 3) > oracle.half_width
    right = SeededRandom(2).bernoulli(0.5, len(reports)) & outside
    reports[right] = oracle.largest  # its right tail has one point
    assert not agrees(counted(oracle, reports), oracle.channel([3])[0])


def test_every_source_of_randomness_serves() -> None:
    for random in (SeededRandom(3), CryptoRandom()):
        for oracle in DEFAULT:
            reports = oracle.perturb(np.zeros((7, oracle.size)), random)
            assert reports.dtype == np.int64
            assert reports.shape == (7, oracle.width)
            oracle.validate(reports)


# Variance


@pytest.mark.parametrize("oracle", SMALL, ids=repr)
def test_variances_are_those_of_the_channel(oracle: MeanOracle) -> None:
    vectors = debiased(oracle, oracle.outputs())
    for level in (0, 1, oracle.resolution):
        point = [level, *[0] * (oracle.size - 1)]
        square = sum(
            p * vector[0] ** 2
            for p, vector in zip(oracle._compute_row(point), vectors, strict=True)
        )
        t = Fraction(level, oracle.resolution)
        assert oracle.variance(float(t)) == pytest.approx(float(square - t**2), rel=1e-10)


@pytest.mark.parametrize(
    "oracle",
    [
        Duchi(1.0, resolution=2),
        Piecewise(2.0, resolution=2),
        Hybrid(2.0, resolution=2),
        LaplaceMean(6.0, resolution=2),
    ],
    ids=repr,
)
def test_variances_count_the_rounding(oracle: MeanOracle) -> None:
    vectors = debiased(oracle, oracle.outputs())
    low, high = oracle.channel([0, 1])
    for share in (Fraction(1, 4), Fraction(1, 2)):  # t between the levels 0 and 1
        row = [(1 - share) * a + share * b for a, b in zip(low, high, strict=True)]
        square = sum(p * vector[0] ** 2 for p, vector in zip(row, vectors, strict=True))
        assert oracle.variance(float(share / 2)) == pytest.approx(float(square - (share / 2) ** 2))


@pytest.mark.slow
@pytest.mark.parametrize("oracle", DEFAULT, ids=repr)
def test_simulated_estimates_scatter_as_the_formula_says(oracle: MeanOracle) -> None:
    m, blocks = 200_000, 1000
    truth = np.array([0.37, -0.9, 0.0, 1.0, -1.0, 0.5, -0.2])[: oracle.size]
    reports = oracle.perturb(np.tile(truth, (m, 1)), SeededRandom(4))
    sums = np.array([
        oracle.estimate(oracle.tally(part), len(part)) for part in np.split(reports, blocks)
    ])  # fmt: skip
    per_block = m // blocks
    for j, t in enumerate(truth):
        variance = oracle.variance(t) * per_block
        z = (sums[:, j].mean() - per_block * t) / math.sqrt(variance / blocks)
        assert 2 * stats.norm.sf(abs(z)) > ALARM
        if variance > 1e-12:
            # sums of 200 are nearly normal: their scatter is chi-square
            scatter = ((sums[:, j] - per_block * t) ** 2).sum() / variance
            tail = min(stats.chi2.sf(scatter, blocks), stats.chi2.cdf(scatter, blocks))
            assert 2 * tail > ALARM


def published_piecewise(epsilon: float, t: float) -> float:
    root = math.exp(epsilon / 2)
    return t**2 / (root - 1) + (root + 3) / (3 * (root - 1) ** 2)


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("t", [0.0, 0.5, 1.0])
def test_the_published_variances_are_reached(epsilon: float, t: float) -> None:
    bound = (math.exp(epsilon) + 1) / (math.exp(epsilon) - 1)
    piecewise, duchi = published_piecewise(epsilon, t), bound**2 - t**2
    share = 1 - math.exp(-epsilon / 2) if epsilon > 0.61 else 0.0
    hybrid = share * piecewise + (1 - share) * duchi
    assert Piecewise(epsilon, "published").variance(t) == pytest.approx(piecewise, rel=0.01)
    assert Hybrid(epsilon, "published").variance(t) == pytest.approx(hybrid, rel=0.01)
    assert Duchi(epsilon).variance(t) == pytest.approx(duchi, rel=1e-9)
    assert OneBit(epsilon, 5).variance(t) == pytest.approx(5 * bound**2 - t**2, rel=1e-9)
    corner = 8 / 3 * bound  # C_5 = 2^4 / binom(4, 2), for 5 coordinates and for 4
    assert DuchiMany(epsilon, 5).variance(t) == pytest.approx(corner**2 - t**2, rel=1e-9)
    assert DuchiMany(epsilon, 4).variance(t) == pytest.approx(corner**2 - t**2, rel=1e-9)
    assert LaplaceMean(epsilon, 3).variance(t) == pytest.approx(8 * 9 / epsilon**2, rel=1e-4)


def test_a_finer_grid_comes_closer_to_the_published_piecewise() -> None:
    gaps = [
        abs(Piecewise(5.0, "published", resolution=R).variance(1.0) / published_piecewise(5, 1) - 1)
        for R in (64, 1024, 16384)
    ]
    assert gaps == sorted(gaps, reverse=True)
    assert gaps[-1] < 1e-3


@pytest.mark.parametrize("epsilon", [*EPSILONS, 8.0, 20.0])
def test_the_least_window_is_the_best_of_all(epsilon: float) -> None:
    R = 32
    worst = [Piecewise(epsilon, w, resolution=R).compute_worst_variance() for w in range(R + 1)]
    least = Piecewise(epsilon, resolution=R)
    assert least.compute_worst_variance() == pytest.approx(min(worst), rel=1e-9)
    assert (
        least.compute_worst_variance()
        <= Piecewise(epsilon, "published", resolution=R).compute_worst_variance()
    )


@pytest.mark.parametrize("epsilon", [*EPSILONS, 0.61, 0.7, 1.29, 8.0])
def test_hybrid_has_the_least_worst_case_of_all(epsilon: float) -> None:
    hybrid = Hybrid(epsilon).compute_worst_variance() * (1 - 1e-9)
    for other in (LaplaceMean, Duchi, Piecewise):
        assert hybrid <= other(epsilon).compute_worst_variance()
    assert hybrid <= Hybrid(epsilon, "published").compute_worst_variance()
    assert hybrid <= Piecewise(epsilon, "published").compute_worst_variance()


def test_hybrid_is_duchi_where_that_is_best() -> None:
    assert Hybrid(0.3).piecewise_threshold == Hybrid(0.61, "published").piecewise_threshold == 0
    assert Hybrid(0.3).compute_worst_variance() == Duchi(0.3).compute_worst_variance()
    assert Hybrid(2.0, "published").piecewise_threshold / ONE == pytest.approx(
        1 - math.exp(-1), abs=1e-15
    )


def test_how_many_coordinates_are_sampled() -> None:
    sampled = [
        PiecewiseMany(epsilon, 3).sampled_count for epsilon in (0.1, 2.5, 4.9, 5.0, 7.5, 100.0)
    ]
    assert sampled == [1, 1, 1, 2, 3, 3]
    assert OneBit(100.0, 3).sampled_count == 1


# Tallies


def test_tallies_add_up_in_any_order() -> None:
    for oracle in DEFAULT:
        reports = oracle.perturb(np.zeros((50, oracle.size)), SeededRandom(5))
        whole = oracle.tally(reports)
        assert whole.dtype == np.int64
        assert (oracle.tally(reports[:20]) + oracle.tally(reports[20:]) == whole).all()
        assert (oracle.tally(reports[::-1]) == whole).all()
        nothing = oracle.tally(np.empty((0, oracle.width), np.int64))
        assert nothing.shape == whole.shape
        assert (oracle.estimate(nothing, 0) == 0).all()


def test_a_wrong_tally_is_refused() -> None:
    oracle = HybridMany(1.0, 3)
    tally = oracle.tally(oracle.perturb(np.zeros((50, 3)), SeededRandom(6)))
    with pytest.raises(EstimationError, match="adds up 6 integers"):
        oracle.estimate(tally[:3], 50)
    with pytest.raises(EstimationError, match="integers"):
        oracle.estimate(tally * 1.0, 50)
    with pytest.raises(EstimationError, match="number of respondents"):
        oracle.estimate(tally, 0)
    with pytest.raises(SchemaError, match="respondents is -1"):
        oracle.estimate(tally, -1)


# What is refused


@pytest.mark.parametrize("kind", MEAN_ORACLES.values())
def test_a_wrong_epsilon_is_a_clear_error(kind: Any) -> None:
    size = () if kind in (Duchi, Piecewise, Hybrid) else (2,)
    with pytest.raises(PrivacyError, match="use exact sums"):
        kind(math.inf, *size)
    for wrong in (0, -1.0, math.nan, 1e-12, "1", None, True):
        with pytest.raises(PrivacyError, match="epsilon is"):
            kind(wrong, *size)
    for wrong_grid in (0, 3, -4, 1 << 21, 2.0):
        with pytest.raises(SchemaError, match="resolution is"):
            kind(1.0, *size, resolution=wrong_grid)


@pytest.mark.parametrize("kind", [LaplaceMean, DuchiMany, OneBit, PiecewiseMany, HybridMany])
def test_a_wrong_size_is_a_clear_error(kind: Any) -> None:
    for wrong in (0, -1, 2.5, None):
        with pytest.raises(SchemaError, match="size is"):
            kind(1.0, wrong)


def test_other_wrong_parameters_are_clear_errors() -> None:
    for kind in (Piecewise, Hybrid, lambda e, w: PiecewiseMany(e, 2, w)):
        with pytest.raises(SchemaError, match="window is 'wide'"):
            kind(1.0, "wide")
    with pytest.raises(SchemaError, match="window is 2000"):
        Piecewise(1.0, 2000)
    with pytest.raises(PrivacyError, match="needs noise beyond"):
        LaplaceMean(1e-9, 10_000)
    with pytest.raises(SchemaError, match="values are in"):
        Piecewise(1.0).variance(1.5)
    with pytest.raises(SchemaError, match="cells"):
        PiecewiseMany(1.0, 3).channel()
    with pytest.raises(SchemaError, match="cells"):
        DuchiMany(1.0, 5000).outputs()
    with pytest.raises(SchemaError, match="too large to write out"):
        LaplaceMean(1.0, 2).outputs()
    with pytest.raises(SchemaError, match="level 5"):
        Duchi(1.0, resolution=4).channel([5])
    with pytest.raises(dataclasses.FrozenInstanceError):
        Duchi(1.0).epsilon = 2.0  # type: ignore[misc]


@pytest.mark.parametrize("oracle", DEFAULT[:12], ids=repr)
def test_wrong_values_are_refused_without_repeating_them(oracle: MeanOracle) -> None:
    random = SeededRandom(7)
    good = np.zeros((3, oracle.size))
    for wrong, reason in ((1.0625, "outside"), (-math.inf, "outside"), (math.nan, "missing")):
        values = good.copy()
        values[2, -1] = wrong
        with pytest.raises(SchemaError, match=f"respondent 2: coordinate .* {reason}") as caught:
            oracle.perturb(values, random)
        assert "1.06" not in str(caught.value)
    hidden = np.ma.masked_array(good, mask=good == 0)
    for missing in (hidden, [[None] * oracle.size]):
        with pytest.raises(SchemaError, match="missing"):
            oracle.perturb(missing, random)
    for shape in ((), (3, oracle.size + 1), (3, oracle.size, 1)):
        with pytest.raises(SchemaError, match="shape"):
            oracle.perturb(np.zeros(shape), random)
    with pytest.raises(SchemaError, match="array of numbers"):
        oracle.perturb([["high"] * oracle.size], random)


def test_one_number_may_come_as_a_flat_array() -> None:
    for oracle in (LaplaceMean(1.0), Duchi(1.0), Hybrid(1.0), OneBit(1.0, 1)):
        assert oracle.perturb([0.5, -0.5], SeededRandom(8)).shape == (2, oracle.width)
        assert oracle.perturb(np.empty(0), SeededRandom(8)).shape == (0, oracle.width)
    with pytest.raises(SchemaError, match="takes 3 numbers per respondent"):
        DuchiMany(1.0, 3).perturb([0.5, -0.5, 0.0], SeededRandom(8))


@pytest.mark.parametrize(
    ("oracle", "report"),
    [
        (Duchi(1.0), [2]),
        (Duchi(1.0), [-1]),
        (DuchiMany(1.0, 3), [0, 1, 2]),
        (LaplaceMean(1.0), [LaplaceMean(1.0).largest + 1]),
        (LaplaceMean(1.0, 2), [0, -LaplaceMean(1.0, 2).largest - 1]),
        (Piecewise(1.0), [Piecewise(1.0).largest + 1]),
        (Piecewise(1.0), [-(2**63)]),
        (Hybrid(1.0), [Hybrid(1.0).sign_number + 1]),
        (Hybrid(0.3), [0]),  # Duchi alone there
        (OneBit(1.0, 3), [3, 1]),
        (OneBit(1.0, 3), [-1, 1]),
        (OneBit(1.0, 3), [0, 2]),
        (PiecewiseMany(5.0, 3), [1, 0, 1, 0]),  # repeated
        (PiecewiseMany(5.0, 3), [2, 0, 1, 0]),  # unsorted
        (HybridMany(5.0, 3), [0, 0, 1, 10**6]),
    ],
    ids=repr,
)
def test_impossible_reports_are_refused_and_named(oracle: MeanOracle, report: list[int]) -> None:
    good = oracle.perturb(np.zeros((2, oracle.size)), SeededRandom(9))
    reports = np.vstack([good, [report]])
    with pytest.raises(SchemaError, match=f"{oracle.name} report 2 is"):
        oracle.validate(reports)
    with pytest.raises(SchemaError, match=f"{oracle.name} report 2 is"):
        oracle.tally(reports)
    assert oracle.find_faulty(reports).tolist() == [False, False, True]


def test_reports_of_another_shape_or_kind_are_refused() -> None:
    oracle = OneBit(1.0, 3)
    for wrong in (np.zeros((2, 3), int), np.zeros(2, int), [[0]]):
        with pytest.raises(SchemaError, match="takes 2 integers per report"):
            oracle.validate(wrong)
    for wrong in ([[0.0, 1.0]], [[True, True]], [["0", "1"]], [[2**63, 1]], [[2**70, 1]]):
        with pytest.raises(SchemaError, match="signed integers"):
            oracle.validate(wrong)
    oracle.validate([[2, 1], [0, 0]])


# The plan's parameters


def row_from(plan: dict[str, Any], levels: Sequence[int]) -> dict[tuple[int, ...], Fraction]:
    """The channel as another implementation would have it, from the plan's parameters alone."""
    name, R = plan["mechanism"], plan["resolution"]
    if name == "duchi":
        plus = Fraction(2**63 + levels[0] * int(plan["slope"]), ONE)
        return {(0,): 1 - plus, (1,): plus}
    if name == "piecewise":
        inside, w, M = Fraction(int(plan["inside"]), ONE), plan["half"], plan["largest"]
        return {
            (o,): inside / (2 * w + 1) if abs(o - levels[0]) <= w else (1 - inside) / (2 * R)
            for o in range(-M, M + 1)
        }
    if name == "hybrid":
        share, sign = Fraction(int(plan["share"]), ONE), plan["sign"]
        row = {o: share * p for o, p in row_from(plan["piecewise"], levels).items() if share}
        for (plus,), p in row_from(plan["duchi"], levels).items():
            row[(sign if plus else -sign,)] = (1 - share) * p
        return row
    if name == "duchi-many":
        return corner_row(plan, levels)
    k, n = plan["sampled"], plan["size"]
    sampled: dict[tuple[int, ...], Fraction] = {}
    for chosen in itertools.combinations(range(n), k):
        rows = [row_from(plan["each"], [levels[j]]).items() for j in chosen]
        for parts in itertools.product(*rows):
            report = tuple(x for j, (o, _) in zip(chosen, parts, strict=True) for x in (j, *o))
            sampled[report] = math.prod((p for _, p in parts), start=Fraction(1, math.comb(n, k)))
    return sampled


def corner_row(plan: dict[str, Any], levels: Sequence[int]) -> dict[tuple[int, ...], Fraction]:
    """Duchi's corners by their definition: uniform on either side of the drawn signs."""
    d, n, R = plan["signs"], plan["size"], plan["resolution"]
    agree = Fraction(int(plan["agree"]), ONE)
    row: dict[tuple[int, ...], Fraction] = {}
    for signs in itertools.product((0, 1), repeat=d):
        level = [*levels, 0][:d]
        likely = math.prod(
            Fraction(R + i if v else R - i, 2 * R) for i, v in zip(level, signs, strict=True)
        )
        for corner in itertools.product((0, 1), repeat=d):
            same = sum(a == b for a, b in zip(corner, signs, strict=True))
            p = likely * (agree if 2 * same > d else 1 - agree) / 2 ** (d - 1)
            row[corner[:n]] = row.get(corner[:n], Fraction(0)) + p
    return row


@pytest.mark.parametrize("oracle", [o for o in SMALL if o.epsilon in (0.5, 5.0)], ids=repr)
def test_the_parameters_are_all_a_respondent_needs(oracle: MeanOracle) -> None:
    plan = json.loads(json.dumps(oracle.get_parameters()))
    point = [oracle.resolution, -1, 0, 1][: oracle.size]
    outputs = [tuple(report) for report in oracle.outputs().tolist()]
    assert row_from(plan, point) == dict(zip(outputs, oracle._compute_row(point), strict=True))


def numbers_in(value: Any) -> list[Any]:
    if isinstance(value, dict):
        return [number for item in value.values() for number in numbers_in(item)]
    return [value] if isinstance(value, int | float) else []


def test_parameters_hold_no_number_that_javascript_would_round() -> None:
    for oracle in [*DEFAULT, LaplaceMean(1e-9), Piecewise(1e6)]:
        assert max(map(abs, numbers_in(oracle.get_parameters()))) < 2**53
        assert oracle.get_parameters()["mechanism"] == oracle.name
        assert MEAN_ORACLES[oracle.name] is type(oracle)


def test_a_laplace_scale_is_told_exactly() -> None:
    oracle = LaplaceMean(0.3, 3)
    assert Fraction(int(oracle.get_parameters()["scale_2_32"]), 2**32) == oracle.noise_scale


def test_a_simulating_source_repeats_itself() -> None:
    def draw(oracle: MeanOracle, random: Random) -> list[list[int]]:
        return oracle.perturb(np.full((20, oracle.size), 0.3), random).tolist()  # type: ignore[no-any-return]

    for oracle in DEFAULT:
        assert draw(oracle, SeededRandom(10)) == draw(oracle, SeededRandom(10))
