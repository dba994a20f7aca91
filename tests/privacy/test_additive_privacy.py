"""Each noise law keeps the promise of its (alpha, beta), worked out from its density.

f(x) + (S(x)/alpha) Z against the same of a neighbour is, up to location and scale, Z against
exp(t) Z + s with |t| <= beta and |s| <= alpha min(1, exp(t)). Over many such pairs, both ways
round, the tests compute the worst log-ratio (pure), the hockey-stick divergence (approximate) or
Renyi divergences of many orders (concentrated). Twins with too little noise, the published
calibrations among them, must be rejected by the same computation.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from fractions import Fraction
from functools import lru_cache

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import special, stats
from scipy.interpolate import CubicSpline

from discreet.errors import PrivacyError
from discreet.mechanisms.additive import (
    AdditiveNoise,
    ArsinhNormal,
    Cauchy,
    Gaussian,
    Laplace,
    LaplaceLogNormal,
    StudentT,
    UniformLogNormal,
    compute_rational_scale,
)
from discreet.privacy.rounding import convert_rho_to_epsilon
from discreet.randomness import CryptoRandom, Random, SeededRandom

Values = NDArray[np.float64]
Density = Callable[[Values], Values]

EPSILONS = (0.1, 1.0, 3.0)
ORDERS = np.array([1.01, 1.1, 1.5, 2.0, 3.0, 5.0, 10.0, 20.0])
SLACK = 1e-6


# ---- densities, written independently of the package


@lru_cache
def laplace_log_normal(sigma: float) -> Density:
    """Log-density by quadrature over Y, as a spline in ln |z|."""
    v = np.linspace(-25, 75 * sigma + 10, 2500)
    y = np.arange(-13, v[-1] / sigma + 13, 0.05)
    rows = [special.logsumexp(-np.exp(a - sigma * y) - sigma * y - y * y / 2) for a in v]
    spline = CubicSpline(v, np.array(rows) + math.log(0.05 / 2 / math.sqrt(2 * math.pi)))
    return lambda z: spline(np.clip(np.log(np.abs(z)), v[0], v[-1]))


def log_density(law: AdditiveNoise) -> Density:
    if isinstance(law, Cauchy):
        return stats.cauchy.logpdf
    if isinstance(law, StudentT):
        return stats.t(law.degrees).logpdf
    if isinstance(law, Laplace):
        return stats.laplace.logpdf
    if isinstance(law, Gaussian):
        return stats.norm.logpdf
    sigma = law.sigma
    if isinstance(law, LaplaceLogNormal):
        return laplace_log_normal(sigma)
    if isinstance(law, UniformLogNormal):
        # integral of exp(-sigma y)/2 over exp(sigma y) > |z|
        return lambda z: (
            sigma**2 / 2 - math.log(2) + special.log_ndtr(-(np.log(np.abs(z)) / sigma + sigma))
        )
    return lambda z: (
        stats.norm.logpdf(np.arcsinh(sigma * z) / sigma) - np.log(np.hypot(1, sigma * z))
    )


def pairs(alpha: float, beta: float) -> Iterator[tuple[float, float]]:
    for t in np.linspace(-beta, beta, 5):
        for share in (0.0, 0.6, 1.0):
            shift = share * alpha * min(1.0, math.exp(t))
            if shift or t:
                yield shift, float(t)


def logs(density: Density, s: float, t: float, v: Values) -> tuple[Values, Values, Values]:
    """Points on both sides of 0 and of s, dense near both, and both log-densities there."""
    far = np.exp(v)
    z = np.unique(np.concatenate([-far, far, s - far, s + far]))
    z = z[(z != 0) & (z != s)]
    return z, density(z), density((z - s) * math.exp(-t)) - t


def log_weights(z: Values) -> Values:
    h = np.diff(z)
    return np.log(np.concatenate([h[:1], h[1:] + h[:-1], h[-1:]]) / 2)


# ---- what (alpha, beta) really give, as a share of what is promised


def worst_ratio(law: AdditiveNoise, alpha: float, beta: float, epsilon: float) -> float:
    """Pure: the worst log-ratio over epsilon."""
    density, worst = log_density(law), 0.0
    for s, t in pairs(alpha, beta):
        _, p, q = logs(density, s, t, np.linspace(-25, 45, 4000))
        worst = max(worst, float(np.max(np.abs(p - q))))
    return worst / epsilon


def worst_delta(
    law: AdditiveNoise, alpha: float, beta: float, epsilon: float, delta: float
) -> float:
    """Approximate: the largest integral of (p - exp(epsilon) q)+ over delta."""
    density, worst = log_density(law), 0.0
    for s, t in pairs(alpha, beta):
        z, p, q = logs(density, s, t, np.linspace(-12, math.log(60), 6000))
        weights = np.exp(log_weights(z))
        for a, b in ((p, q), (q, p)):
            excess = np.exp(a) * np.maximum(0.0, -np.expm1(np.minimum(epsilon + b - a, 0.0)))
            worst = max(worst, float(np.sum(excess * weights)))
    return worst / delta


def worst_renyi(law: AdditiveNoise, alpha: float, beta: float, epsilon: float) -> float:
    """Concentrated: the largest D_a / (a epsilon^2 / 2)."""
    density, worst, sigma = log_density(law), 0.0, law.sigma
    v = np.linspace(-16, sigma * (ORDERS[-1] * epsilon + 10) + 4, 6000)
    for s, t in pairs(alpha, beta):
        z, p, q = logs(density, s, t, v)
        weights = log_weights(z)
        p, q = p - special.logsumexp(p + weights), q - special.logsumexp(q + weights)
        for (a, b), order in ((pair, order) for pair in ((p, q), (q, p)) for order in ORDERS):
            moment = special.logsumexp(order * a + (1 - order) * b + weights)
            worst = max(worst, float(moment) / (order - 1) / (order * epsilon**2 / 2))
    return worst


PURE = [Cauchy(), StudentT(1.0), StudentT(3.0), StudentT(10.0), StudentT(0.5)]
APPROXIMATE = [Laplace(), Gaussian()]
CONCENTRATED = [
    *(LaplaceLogNormal(sigma) for sigma in (0.25, 0.5, 1.0)),
    *(UniformLogNormal(sigma) for sigma in (math.sqrt(2), 2.0)),
    *(ArsinhNormal(sigma) for sigma in (0.3, 2 / math.sqrt(3), 4.0)),
]
LAWS = [*PURE, *APPROXIMATE, *CONCENTRATED]


def splits(law: AdditiveNoise, epsilon: float, delta: float = 0.0) -> list[tuple[float, float]]:
    """The default (alpha, beta), and one with little spent on beta."""
    alpha, beta = law.calibrate(epsilon, delta)
    return [(alpha, beta), law.calibrate(epsilon, delta, beta=beta / 20)]


@pytest.mark.slow
@pytest.mark.parametrize("law", PURE, ids=repr)
@pytest.mark.parametrize("epsilon", EPSILONS)
def test_pure_laws_keep_the_ratio(law: AdditiveNoise, epsilon: float) -> None:
    half, little = splits(law, epsilon)
    for alpha, beta in (half, little):
        assert worst_ratio(law, alpha, beta, epsilon) <= 1 + SLACK
    less = 1.5 if isinstance(law, Cauchy) else 3  # the twins: less noise, or S less smooth
    assert worst_ratio(law, less * little[0], little[1], epsilon) > 1.2
    assert worst_ratio(law, half[0], 2.5 * half[1], epsilon) > 1.2


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_the_cauchy_calibration_is_exact(epsilon: float) -> None:
    for alpha, beta in splits(Cauchy(), epsilon):
        assert worst_ratio(Cauchy(), alpha, beta, epsilon) == pytest.approx(1, abs=1e-4)
        assert alpha**2 + beta**2 >= epsilon**2 * (
            1 - SLACK
        )  # never more noise than the simple one


def test_the_papers_cauchy_scale_is_rejected_unless_beta_makes_room() -> None:
    epsilon = 1.0  # lines 13 and 16 of the paper: scale sqrt(2) s / epsilon'
    alpha = epsilon / math.sqrt(2)
    assert worst_ratio(Cauchy(), alpha, epsilon / math.sqrt(2), epsilon) <= 1
    assert worst_ratio(Cauchy(), alpha, epsilon, epsilon) > 1.05


@pytest.mark.slow
@pytest.mark.parametrize("law", APPROXIMATE, ids=repr)
@pytest.mark.parametrize("delta", [1e-2, 1e-4, 1e-8])
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 6.0, 20.0])
def test_approximate_laws_keep_delta(law: AdditiveNoise, delta: float, epsilon: float) -> None:
    half, little = splits(law, epsilon, delta)
    for alpha, beta in (half, little):
        assert worst_delta(law, alpha, beta, epsilon, delta) <= 1 + 1e-3
    assert worst_delta(law, 1.5 * little[0], little[1], epsilon, delta) > 2  # the twins
    assert worst_delta(law, half[0], 3 * half[1], epsilon, delta) > 2


def published(law: AdditiveNoise, epsilon: float, delta: float) -> tuple[float, float]:
    """Nissim, Raskhodnikova and Smith 2007."""
    far = math.log(2 / delta)
    if isinstance(law, Laplace):
        return epsilon / 2, epsilon / (2 * far)
    return epsilon / (5 * math.sqrt(2 * far)), epsilon / (4 * (1 + far))


@pytest.mark.parametrize("law", APPROXIMATE, ids=repr)
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 5.0])
def test_the_published_calibrations_hold_with_more_noise(
    law: AdditiveNoise, epsilon: float
) -> None:
    alpha, beta = published(law, epsilon, 1e-6)
    assert worst_delta(law, alpha, beta, epsilon, 1e-6) <= 1
    assert law.epsilon(alpha, beta, 1e-6) <= epsilon
    ours = law.calibrate(epsilon, 1e-6)
    assert ours[0] >= alpha * (1 - SLACK)
    assert ours[1] >= beta


def test_the_published_laplace_calibration_fails_at_a_large_epsilon() -> None:
    alpha, beta = published(Laplace(), 20.0, 1e-6)
    assert worst_delta(Laplace(), alpha, beta, 20.0, 1e-6) > 3
    assert Laplace().epsilon(alpha, beta, 1e-6) > 20


@pytest.mark.slow
@pytest.mark.parametrize("law", CONCENTRATED, ids=repr)
@pytest.mark.parametrize("epsilon", EPSILONS)
def test_concentrated_laws_keep_every_renyi_divergence(law: AdditiveNoise, epsilon: float) -> None:
    for alpha, beta in splits(law, epsilon):
        assert worst_renyi(law, alpha, beta, epsilon) <= 1 + 1e-3


@pytest.mark.slow
@pytest.mark.parametrize(
    ("law", "more_shift", "more_scale"),
    [
        (LaplaceLogNormal(0.25), 1.5, 1.0),
        (LaplaceLogNormal(0.5), 2.0, 1.0),
        (LaplaceLogNormal(1.0), 1.0, 2.3),
        (UniformLogNormal(), 1.0, 2.3),  # its bound on the shift is loose
        (ArsinhNormal(), 2.0, 1.0),
        (ArsinhNormal(0.5), 2.0, 1.0),
    ],
    ids=repr,
)
def test_concentrated_twins_with_less_noise_are_rejected(
    law: AdditiveNoise, more_shift: float, more_scale: float
) -> None:
    default, little = splits(law, 1.0)
    alpha, beta = default if more_scale > 1 else little
    assert worst_renyi(law, more_shift * alpha, more_scale * beta, 1.0) > 1.01


# ---- calibration


@pytest.mark.slow
@given(
    st.sampled_from(LAWS),
    st.floats(1e-3, 50),
    st.sampled_from([1e-9, 1e-6, 1e-2]),
    st.floats(0.01, 0.99),
)
def test_calibration_never_promises_more_than_asked(
    law: AdditiveNoise, epsilon: float, delta: float, share: float
) -> None:
    delta = 0.0 if law.promise == "pure" else delta
    alpha, beta = law.calibrate(epsilon, delta)
    assert epsilon * (1 - 1e-9) <= law.epsilon(alpha, beta, delta) <= epsilon
    other, _ = law.calibrate(epsilon, delta, beta=share * beta)
    assert other >= alpha  # a smaller beta never needs more noise per S


@pytest.mark.slow
@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("epsilon", [1e-9, 1e-3, 300.0, 500.0])
def test_very_small_and_very_large_promises_have_a_scale(
    law: AdditiveNoise, epsilon: float
) -> None:
    """Nothing overflows where exp(epsilon) is far from one."""
    for delta in (0.0,) if law.promise == "pure" else (1e-300, 1e-6, 0.5):
        alpha, beta = law.calibrate(epsilon, delta)
        assert 0 < alpha < math.inf
        assert epsilon * (1 - 1e-3) <= law.epsilon(alpha, beta, delta) <= epsilon


@pytest.mark.parametrize("epsilon", [30.0, 300.0])
def test_a_large_gaussian_promise_is_that_of_its_densities(epsilon: float) -> None:
    """P(log-ratio > epsilon) - exp(epsilon) Q(the same) is at most delta, on many quantiles."""
    alpha, beta = Gaussian().calibrate(epsilon, 1e-2)
    z = stats.norm.ppf((np.arange(1_000_000) + 0.5) / 1_000_000)
    for grown, moved in ((1.0, alpha), (math.exp(-beta), alpha * math.exp(-beta))):
        # Z against the neighbour's moved + grown Z
        ratio = math.log(grown) - z**2 / 2 + ((z - moved) / grown) ** 2 / 2
        lost = np.clip(1 - np.exp(np.minimum(epsilon - ratio, 0.0)), 0.0, None)
        assert lost.mean() <= 1e-2 * 1.001


def test_concentrated_promises_convert_like_every_other() -> None:
    law = LaplaceLogNormal(0.5)
    alpha, beta = law.calibrate(0.7)
    rho = law.rho(alpha, beta)
    assert rho == pytest.approx(0.7**2 / 2)
    converted = convert_rho_to_epsilon(rho, 1e-6)
    assert law.epsilon(alpha, beta, 1e-6) == pytest.approx(converted)
    assert converted < rho + 2 * math.sqrt(rho * math.log(1e6))
    again = law.calibrate(converted, 1e-6, beta=beta)
    assert again[0] == pytest.approx(alpha, rel=1e-6)


def test_every_law_says_what_it_promises() -> None:
    assert {law.promise for law in PURE} == {"pure"}
    assert {law.promise for law in APPROXIMATE} == {"approximate"}
    assert {law.promise for law in CONCENTRATED} == {"concentrated"}
    assert Cauchy() == Cauchy()
    assert hash(StudentT(3.0)) == hash(StudentT(3.0))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: Cauchy().calibrate(0.0), "epsilon is 0.0"),
        (lambda: Cauchy().calibrate(math.inf), "epsilon is inf"),
        (lambda: Cauchy().calibrate(1.0, beta=1.0), "leaves no part of"),
        (lambda: Cauchy().calibrate(1.0, beta=0.0), "above 0"),
        (lambda: Laplace().calibrate(1.0), "delta is 0.0"),
        (lambda: Gaussian().epsilon(0.1, 0.1), "delta is 0.0"),
        (lambda: Cauchy().calibrate(1.0, 1.0), "delta is 1.0"),
        (lambda: StudentT(0.0), "degrees is 0.0"),
        (lambda: UniformLogNormal(1.0), "sigma is 1.0"),
        (lambda: ArsinhNormal(9.0), "sigma is 9.0"),
        (lambda: LaplaceLogNormal(-1.0), "sigma is -1.0"),
        (lambda: Cauchy().sample(-1.0, 1, SeededRandom(0), 1), "scale -1.0"),
        (lambda: Cauchy().sample(1.0, 1, SeededRandom(0), 0), "step 0"),
        (lambda: Cauchy().release(math.nan, 1.0, SeededRandom(0), 1), "value nan"),
        (lambda: compute_rational_scale(1, 0), "epsilon 0"),
    ],
)
def test_what_cannot_be_kept_is_refused(call: Callable[[], object], message: str) -> None:
    with pytest.raises(PrivacyError, match=message):
        call()


# ---- draws


class Scripted(Random):
    """Hands out the given 192-bit words."""

    simulated = True

    def __init__(self, *words: int) -> None:
        self.words_left = list(words)

    def raw(self, count: int) -> NDArray[np.uint8]:
        return np.frombuffer(self.words_left.pop(0).to_bytes(count, "little"), np.uint8)


def cdf(law: AdditiveNoise) -> Callable[[Values], Values]:
    density = log_density(law)
    v = np.linspace(-18, 18, 40_001)
    z = np.concatenate([-np.exp(v)[::-1], np.exp(v)])
    p = np.exp(density(z))
    mass = np.concatenate([[0.0], np.cumsum(np.diff(z) * (p[1:] + p[:-1]) / 2)])
    return lambda x: np.interp(x, z, mass / mass[-1])


@pytest.mark.slow
@pytest.mark.parametrize("law", [*LAWS[::2], Gaussian()], ids=repr)
def test_draws_follow_the_law(law: AdditiveNoise) -> None:
    drawn = law.sample(2.0, 1500, SeededRandom(7), Fraction(1, 1 << 30)) / 2
    assert stats.kstest(drawn, cdf(law)).pvalue > 1e-4
    assert stats.kstest(drawn * 2, cdf(law)).pvalue < 1e-4  # the twin


def test_a_release_is_rounded_exactly_and_only_once() -> None:
    # words w stand for (2 w + 1 - 2^192) / 2^192: a quarter, and a half (to 2^-192)
    quarter, half = (5 << 189), (3 << 190)
    ratio = Fraction(2 * quarter + 1 - (1 << 192), 2 * half + 1 - (1 << 192))
    value, scale, step = 0.1, 0.3, Fraction(1, 1000)
    steps = round((Fraction(value) + Fraction(scale) * ratio) / step)
    assert Cauchy().release(value, scale, Scripted(quarter, half), step) == float(steps * step)
    assert Cauchy().release(0.2500001, 0.0, Scripted(quarter, half), 0.25) == 0.25


def test_every_draw_lies_on_the_public_grid_within_its_ends() -> None:
    drawn = Cauchy().sample(50.0, 400, CryptoRandom(), 0.25)
    assert np.all(drawn * 4 == np.round(drawn * 4))
    far = Cauchy().sample(1e60, 50, SeededRandom(1), 0.5)
    assert np.max(np.abs(far)) == 2.0**52  # 2^53 steps


@given(st.fractions(Fraction(1, 100), 1000), st.floats(1e-3, 100))
def test_rational_scale_is_never_too_small(sensitivity: Fraction, epsilon: float) -> None:
    scale = compute_rational_scale(sensitivity, epsilon)
    assert 0 <= scale - sensitivity / Fraction(epsilon) < Fraction(1, 1 << 32)
    assert (1 << 32) % scale.denominator == 0
    assert sensitivity / scale <= Fraction(epsilon)
