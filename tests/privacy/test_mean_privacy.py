"""No mean oracle's report tells more than epsilon: enumerated exactly, on what leaves the device.

``law`` walks through every outcome of every random draw that ``perturb`` makes for one respondent,
so its fractions are the channel of the code itself. The textbook's listings and the published even
case of Duchi's oracle go through the same test and must fail it.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from discreet.audit import enumeration
from discreet.audit.enumeration import EnumeratedRandom, find_worst_ratio, is_within_epsilon
from discreet.errors import SchemaError
from discreet.mechanisms.mean import (
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
from discreet.privacy.rounding import compute_channel_epsilon
from discreet.randomness import SeededRandom

ONE = 1 << 64
EPSILONS = (0.1, 0.5, 1.0, 2.0, 3.0, 5.0)

Channel = Sequence[Sequence[Fraction]]


def small_oracles(epsilon: float) -> list[MeanOracle]:
    """Every oracle, small enough to write its channel out."""
    scalar: list[MeanOracle] = [
        kind(epsilon, window, resolution=R)
        for kind in (Piecewise, Hybrid)
        for window in ("least", "published")
        for R in (1, 4, 16)
    ]
    many: list[MeanOracle] = [
        kind(epsilon, n, resolution=1)
        for kind in (OneBit, PiecewiseMany, HybridMany)
        for n in (1, 2, 3)
    ]
    duchi: list[MeanOracle] = [DuchiMany(epsilon, n, resolution=2) for n in (1, 2, 3, 4, 5)]
    return [Duchi(epsilon, resolution=4), *duchi, *scalar, *many]


def some_levels(oracle: MeanOracle) -> list[int]:
    """All levels, or both ends and the middle: Duchi's rows are linear in each coordinate."""
    R = oracle.resolution
    return [-R, 0, R] if oracle.size > 1 else list(range(-R, R + 1))


def private(epsilon: float, channel: Channel) -> bool:
    assert all(sum(row) == 1 for row in channel)
    return is_within_epsilon(
        epsilon, find_worst_ratio([dict(enumerate(row)) for row in channel]).ratio
    )


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", [*EPSILONS, 7.5])
def test_the_worst_ratio_is_at_most_exp_epsilon_and_no_less_than_needed(epsilon: float) -> None:
    for oracle in small_oracles(epsilon):
        channel = oracle.channel(some_levels(oracle))
        assert private(epsilon, channel), oracle
        exact = compute_channel_epsilon(channel)
        assert exact == pytest.approx(oracle.compute_exact_epsilon(), abs=1e-12), oracle
        assert exact == pytest.approx(epsilon, abs=1e-6), oracle


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_default_resolutions_spend_the_whole_epsilon(epsilon: float) -> None:
    for n in (1, 2, 7, 28):
        many = (LaplaceMean, DuchiMany, OneBit, PiecewiseMany, HybridMany)
        for oracle in (Duchi(epsilon), Piecewise(epsilon), Hybrid(epsilon), *(
            kind(epsilon, n) for kind in many
        )):  # fmt: skip
            assert epsilon - 1e-6 < oracle.compute_exact_epsilon() <= epsilon * (1 + 1e-15), oracle


@pytest.mark.slow
@given(st.floats(1e-9, 1e6), st.sampled_from([1, 2, 64, 1024, 1 << 20]))
def test_rounding_never_exceeds_any_epsilon(epsilon: float, resolution: int) -> None:
    duchi = Duchi(epsilon, resolution=resolution)
    plus = Fraction(ONE // 2 + resolution * duchi.slope, ONE)
    many = DuchiMany(epsilon, 3, resolution=resolution)
    piecewise = Piecewise(epsilon, resolution=resolution)
    inside = Fraction(piecewise.inside_threshold, ONE)
    high, low = inside / (2 * piecewise.half_width + 1), (1 - inside) / (2 * resolution)
    for ratio in (
        plus / (1 - plus),
        Fraction(many.agreement_threshold, ONE - many.agreement_threshold),
        high / low,
    ):
        assert ratio > 1
        assert is_within_epsilon(min(epsilon, 200.0), ratio)


def test_a_split_epsilon_adds_up_to_no_more() -> None:
    for epsilon in np.linspace(5, 60, 301).tolist():
        oracle = PiecewiseMany(epsilon, 20)
        assert Fraction(oracle.scalar_oracle.epsilon) * oracle.sampled_count <= Fraction(epsilon)


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("size", [1, 2, 5])
def test_laplace_noise_is_as_wide_as_the_largest_change(epsilon: float, size: int) -> None:
    oracle = LaplaceMean(epsilon, size)
    # P(o | a) / P(o | b) <= exp(|a - b| / scale) <= exp(2 R size / scale): triangle inequality
    loss = 2 * oracle.resolution * oracle.size / oracle.noise_scale
    assert Fraction(epsilon) * (1 - Fraction(1, 10**9)) < loss <= Fraction(epsilon)


@pytest.mark.slow
@pytest.mark.parametrize(("epsilon", "size"), [(0.5, 1), (1.0, 1), (2.0, 1), (5.0, 1), (60.0, 2)])
def test_laplace_written_out_with_its_cut_ends(epsilon: float, size: int) -> None:
    channel = LaplaceMean(epsilon, size, resolution=1).channel()
    assert private(epsilon, channel)
    assert compute_channel_epsilon(channel) == pytest.approx(epsilon, abs=1e-6)


@pytest.mark.parametrize("epsilon", [20.0, 60.0])
def test_laplace_with_one_active_number_keeps_its_promise_for_such_vectors_only(
    epsilon: float,
) -> None:
    oracle = LaplaceMean(epsilon, 2, active=1, resolution=1)
    rows = dict(zip(oracle.inputs(), oracle.channel(), strict=True))
    allowed = [row for levels, row in rows.items() if np.count_nonzero(levels) <= 1]
    assert private(epsilon, allowed)
    assert compute_channel_epsilon(allowed) == pytest.approx(epsilon, abs=1e-6)
    # the known-bad twin: a device that also answers for vectors with two numbers in them
    assert not private(epsilon, list(rows.values()))
    with pytest.raises(SchemaError, match="more than 1 numbers"):
        oracle.perturb([[1.0, -1.0]], SeededRandom(0))


@pytest.mark.parametrize("active", [0, 3, 1.5, True])
def test_active_numbers_must_be_some_of_them(active: Any) -> None:
    with pytest.raises(SchemaError, match="active is"):
        LaplaceMean(1.0, 2, active=active)


# The channel of the code itself


class Every(EnumeratedRandom):
    """A set has no order, and an oracle must not rely on one."""

    def subsets(self, pool: int, take: int, rows: int) -> NDArray[np.int64]:
        return super().subsets(pool, take, rows)[:, ::-1]


def law(oracle: MeanOracle, values: Sequence[float]) -> dict[tuple[int, ...], Fraction]:
    """P(serialised report) for one respondent, by trying every outcome of every draw."""
    return enumeration.compute_law(
        lambda random: tuple(oracle.perturb([values], random)[0].tolist()), Every
    )


TREES: list[MeanOracle] = [
    Duchi(1.0, resolution=2),
    DuchiMany(1.0, 1, resolution=2),
    DuchiMany(1.0, 2, resolution=2),
    DuchiMany(1.0, 3, resolution=1),
    OneBit(1.0, 2, resolution=2),
    Piecewise(1.0, resolution=4),
    Piecewise(3.0, "published", resolution=4),
    PiecewiseMany(1.0, 2, resolution=2),
    PiecewiseMany(5.0, 3, resolution=1),
    Hybrid(0.3, resolution=1),
    Hybrid(2.0, resolution=1),
    HybridMany(1.0, 2, resolution=1),
]


@pytest.mark.slow
@pytest.mark.parametrize("oracle", TREES, ids=repr)
def test_the_code_draws_exactly_the_channel_it_states(oracle: MeanOracle) -> None:
    R = oracle.resolution
    levels = [-R, R] if oracle.size > 1 else [-R, -1, 0, 1, R]
    outputs = [tuple(report) for report in oracle.outputs().tolist()]
    for point, row in zip(oracle.inputs(levels), oracle.channel(levels), strict=True):
        drawn = law(oracle, [i / R for i in point])
        assert drawn == {report: p for report, p in zip(outputs, row, strict=True) if p}


def test_between_grid_values_the_law_is_a_mixture_with_the_right_mean() -> None:
    oracle = Piecewise(1.0, resolution=2)
    at = {i: law(oracle, [i / 2]) for i in (-2, -1, 0, 1)}
    for value, below, above in ((0.3, 0, 1), (-0.3, -1, 0), (-0.9, -2, -1)):
        share = Fraction(value) * 2 - below  # of the grid value above
        for report, p in law(oracle, [value]).items():
            mixed = (1 - share) * at[below][report] + share * at[above][report]
            assert abs(p - mixed) <= Fraction(1, ONE)


# Known-bad twins


def piecewise_with_equal_tails(oracle: Piecewise, levels: Sequence[int]) -> Channel:
    """Listing 5.4: left or right tail with probability 1/2 each; an empty tail is its end point."""
    M, w = oracle.largest, oracle.half_width
    inside = Fraction(oracle.inside_threshold, ONE)
    rows = []
    for level in levels:
        row = [Fraction(0)] * (2 * M + 1)
        window = range(level - w, level + w + 1)
        left = range(-M, level - w) or range(-M, -M + 1)
        right = range(level + w + 1, M + 1) or range(M, M + 1)
        for points, mass in ((window, inside), (left, (1 - inside) / 2), (right, (1 - inside) / 2)):
            for o in points:
                row[o + M] += mass / len(points)
        rows.append(row)
    return rows


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", EPSILONS)
def test_piecewise_with_equal_tails_is_rejected_and_worse_the_finer_the_grid(
    epsilon: float,
) -> None:
    real = []
    for R in (4, 16, 64, 256):
        oracle = Piecewise(epsilon, "published", resolution=R)
        levels = [-R, 1 - R, 0, R]
        twin = piecewise_with_equal_tails(oracle, levels)
        assert private(epsilon, oracle.channel(levels))
        assert not private(epsilon, twin)
        real.append(compute_channel_epsilon(twin))
    assert real == sorted(real)
    # one point next to the end gets a whole tail: ln(2R) and more, without bound
    assert real[-1] > math.log(2 * 256)


def duchi_with_ties(d: int, e: float, *, both: bool) -> Channel:
    """Listing 5.3 (ties in T- only), or as published (ties in T+ and in T-), d even."""
    truth = Fraction(e) / (Fraction(e) + 1)
    corners = list(itertools.product((-1, 1), repeat=d))

    def agreement(one: tuple[int, ...], other: tuple[int, ...]) -> int:
        return sum(a * b for a, b in zip(one, other, strict=True))

    rows: list[list[Fraction]] = []
    for v in corners:
        above = [u for u in corners if agreement(u, v) > 0 or (both and agreement(u, v) == 0)]
        below = [u for u in corners if agreement(u, v) <= 0]
        high, low = truth / len(above), (1 - truth) / len(below)
        rows.append([high * (u in above) + low * (u in below) for u in corners])
    return rows


@pytest.mark.parametrize("d", [2, 4])
def test_duchi_with_ties_is_rejected_in_even_dimensions(d: int) -> None:
    """The twin: ties as a textbook listing puts them."""
    one_sided = duchi_with_ties(d, math.e, both=False)
    two_sided = duchi_with_ties(d, math.e, both=True)
    assert not private(1.0, one_sided)
    assert not private(1.0, two_sided)
    assert compute_channel_epsilon(one_sided) == pytest.approx({2: 2.0986, 4: 1.7885}[d], abs=1e-4)
    assert compute_channel_epsilon(two_sided) == pytest.approx(math.log(1 + math.e))  # 1.3133
    ours = DuchiMany(1.0, d, resolution=1)
    assert private(1.0, ours.channel([-1, 1]))
    published = (2 ** (d - 1) + math.comb(d, d // 2) / 2) / math.comb(d - 1, d // 2)
    bound = (math.e + 1) / (math.e - 1)
    assert float(ours.units[0]) < published * bound  # and less noise: 2 for 3, 2.67 for 3.67


def test_one_epsilon_for_each_sampled_coordinate_is_rejected() -> None:
    oracle = PiecewiseMany(5.0, 2, resolution=1)
    row: Any = Piecewise(5.0, resolution=1).compute_row
    spent_twice = [
        [a * b for a, b in itertools.product(row(i), row(j))] for i, j in oracle.inputs()
    ]
    assert not private(5.0, spent_twice)
    assert private(5.0, oracle.channel())
