"""Noise distributions for smooth sensitivity: their scale may depend on the data.

A law here is a frozen value. With S a beta-smooth bound on the local sensitivity of f
(:mod:`discreet.central.smooth_sensitivity`), releasing f(x) + (S(x) / alpha) Z keeps the promise
``law.epsilon(alpha, beta, delta)``; ``law.calibrate(epsilon, delta)`` goes the other way. What has
to be shown of Z: it is close to exp(t) Z + s whenever |t| <= beta and |s| <= alpha min(1, exp(t)).

**What is promised of a draw.** Floating point never touches the noise: a draw is worked out to 60
decimal digits from 192 random bits for each uniform, and f(x) + (S(x) / alpha) Z is rounded, in
exact arithmetic, to the nearest integer multiple of a public ``step`` and clipped to 2^53 steps.
Rounding and clipping come after the ideal mechanism and cost nothing; that a draw has finitely
many bits moves the law of the released number by less than 2^-100 in total variation. So "pure"
is, to the letter, delta <= 2^-99. It rests on f(x) and S(x) as given: a caller who computes them
in floating point adds their rounding, relative to S(x), to alpha. Drawing takes 0.1 to 0.5
milliseconds and is not constant-time.

Counts need none of this: add ``random.discrete_laplace(compute_rational_scale(sensitivity,
epsilon), n)``, which is exact.
"""

from __future__ import annotations

import abc
import math
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction

import numpy as np
from scipy.special import log_ndtr, ndtr

from discreet.errors import PrivacyError
from discreet.mechanisms.additive_noise import AdditiveNoise, Uniforms, find_crossing
from discreet.privacy.rounding import convert_rho_to_epsilon
from discreet.randomness import Number

__all__ = [
    "AdditiveNoise",
    "ArsinhNormal",
    "Cauchy",
    "Gaussian",
    "Laplace",
    "LaplaceLogNormal",
    "StudentT",
    "UniformLogNormal",
    "compute_rational_scale",
]


@dataclass(frozen=True)
class Cauchy(AdditiveNoise):
    """Density proportional to 1 / (1 + z^2); pure.

    The largest log-ratio of two Cauchy densities is the hyperbolic distance of (location, scale)
    in the upper half-plane, cosh d = 1 + (dx^2 + ds^2) / (2 s1 s2). Hence exactly
    cosh epsilon = max(1 + alpha^2/2, cosh beta + alpha^2 exp(-beta)/2), its two ends in t being
    worst as it is convex; alpha^2 + beta^2 <= epsilon^2 is enough. Methods-central.md, section 3.
    """

    promise = "pure"

    def epsilon(self, alpha: float, beta: float, delta: float = 0.0) -> float:
        # sinh^2(epsilon/2) = (cosh epsilon - 1)/2, which loses no digits where epsilon is small
        shift_term = alpha**2 / 4
        scaling_term = math.sinh(beta / 2) ** 2 + alpha**2 * math.exp(-beta) / 4
        return 2 * math.asinh(math.sqrt(max(shift_term, scaling_term)))

    def _choose_beta(self, epsilon: float, delta: float) -> float:
        return epsilon / math.sqrt(2)

    def _draw_unit_noise(self, uniforms: Uniforms) -> Decimal:
        x, y, _ = uniforms.draw_disc()  # the tangent of a uniform angle
        return x / y


@dataclass(frozen=True)
class StudentT(AdditiveNoise):
    """Student's t with ``degrees`` of freedom, any real above 0; pure. Bun and Steinke 2019.

    Parameters
    ----------
    degrees : float, default 3
        Degrees of freedom, above 0.
    """

    degrees: float = 3.0
    promise = "pure"

    def __post_init__(self) -> None:
        _require_in_range("degrees", self.degrees, 0, 1e6)

    def epsilon(self, alpha: float, beta: float, delta: float = 0.0) -> float:
        # ln density has slope at most (d+1)/(2 sqrt d); scaling by exp(t) changes it by t at 0 and
        # by -d t far out
        d = self.degrees
        return alpha * (d + 1) / (2 * math.sqrt(d)) + max(d, 1.0) * beta

    def _draw_unit_noise(self, uniforms: Uniforms) -> Decimal:
        x, _, w = uniforms.draw_disc()  # Bailey 1994: X sqrt(d (W^(-2/d) - 1) / W), W = X^2 + Y^2
        d = Decimal(self.degrees)
        return x * (d * ((-2 * w.ln() / d).exp() - 1) / w).sqrt()


@dataclass(frozen=True)
class Laplace(AdditiveNoise):
    """Density exp(-|z|) / 2; approximate.

    The log-ratio to exp(t) Z + s is at most alpha + t for t >= 0 and, for t = -b,
    at most alpha - b + (exp(b) - 1) |z| with |z| exponential, so that
    delta = (1 - exp(-b)) exp(-(epsilon - alpha + b) / (exp(b) - 1)). Solved for epsilon that
    falls, then rises in b, from alpha at b = 0: b = beta is worst. Never more than the published
    alpha = epsilon/2, beta = epsilon/(2 ln(2/delta)) claims, where that holds: it fails from
    epsilon of about 10 on.
    """

    promise = "approximate"

    def epsilon(self, alpha: float, beta: float, delta: float = 0.0) -> float:
        self._check_delta(delta)
        tail_epsilon = (
            math.expm1(beta) * math.log(-math.expm1(-beta) / delta) - beta if beta else 0.0
        )
        return alpha + max(beta, tail_epsilon)

    def _draw_unit_noise(self, uniforms: Uniforms) -> Decimal:
        return uniforms.draw_exponential() - uniforms.draw_exponential()


@dataclass(frozen=True)
class Gaussian(AdditiveNoise):
    """Standard normal; approximate.

    The log-ratio to exp(t) Z + s is at most beta + that of a mere shift for t >= 0. For t = -b it
    is ((u - r)^2 - z^2)/2 - b, u = exp(b) z, |r| <= alpha: but for the -b it grows with b wherever
    it exceeds alpha^2/2. So epsilon = beta + max(alpha^2/2, e0, e1) with e0 and e1 where the
    exact delta of the shift, and of (s, t) = (alpha exp(-beta), -beta), falls to delta. The
    published alpha = epsilon/(5 sqrt(2 ln(2/delta))), beta = epsilon/(4 (1 + ln(2/delta))) has
    several times the noise.
    """

    promise = "approximate"

    def epsilon(self, alpha: float, beta: float, delta: float = 0.0) -> float:
        self._check_delta(delta)
        return beta + max(
            alpha**2 / 2,
            _compute_gaussian_epsilon(alpha, 0.0, delta),
            _compute_gaussian_epsilon(alpha, beta, delta),
        )

    def _draw_unit_noise(self, uniforms: Uniforms) -> Decimal:
        return uniforms.draw_normal()


@dataclass(frozen=True)
class _ConcentratedNoise(AdditiveNoise):
    """A law of Bun and Steinke 2019: epsilon^2/2-zCDP, epsilon adding up over shift and scale."""

    sigma: float
    promise = "concentrated"

    @abc.abstractmethod
    def _compute_cost(self, alpha: float, beta: float) -> float:
        """Return the epsilon of epsilon^2/2-zCDP."""

    def rho(self, alpha: float, beta: float) -> float:
        """Return the rho of rho-zCDP that noise of scale S / alpha promises."""
        return self._compute_cost(alpha, beta) ** 2 / 2

    def epsilon(self, alpha: float, beta: float, delta: float = 0.0) -> float:
        self._check_delta(delta)
        return (
            convert_rho_to_epsilon(self.rho(alpha, beta), delta)
            if delta
            else self._compute_cost(alpha, beta)
        )


@dataclass(frozen=True)
class LaplaceLogNormal(_ConcentratedNoise):
    """X exp(sigma Y), X Laplace and Y normal, sigma above 0; concentrated.

    Parameters
    ----------
    sigma : float, default 0.5
        Above 0, up to 10.
    """

    sigma: float = 0.5

    def __post_init__(self) -> None:
        _require_in_range("sigma", self.sigma, 0, 10)

    def _compute_cost(self, alpha: float, beta: float) -> float:
        return beta / self.sigma + math.exp(1.5 * self.sigma**2) * alpha  # Bun, Steinke 2019

    def _draw_unit_noise(self, uniforms: Uniforms) -> Decimal:
        laplace_draw = uniforms.draw_exponential() - uniforms.draw_exponential()
        return laplace_draw * (Decimal(self.sigma) * uniforms.draw_normal()).exp()


@dataclass(frozen=True)
class UniformLogNormal(_ConcentratedNoise):
    """X exp(sigma Y), X uniform on [-1, 1] and Y normal, sigma from sqrt(2); concentrated.

    Parameters
    ----------
    sigma : float
        From sqrt(2), the default, to 10.
    """

    sigma: float = math.sqrt(2)

    def __post_init__(self) -> None:
        _require_in_range("sigma", self.sigma, 1.414, 10)

    def _compute_cost(self, alpha: float, beta: float) -> float:
        # beta/sigma + exp(3 sigma^2/2) sqrt(2/(pi sigma^2)) alpha: Bun, Steinke 2019
        shift_factor = math.exp(1.5 * self.sigma**2) * math.sqrt(2 / math.pi) / self.sigma
        return beta / self.sigma + shift_factor * alpha

    def _draw_unit_noise(self, uniforms: Uniforms) -> Decimal:
        return uniforms.draw_centred() * (Decimal(self.sigma) * uniforms.draw_normal()).exp()


@dataclass(frozen=True)
class ArsinhNormal(_ConcentratedNoise):
    """sinh(sigma Y) / sigma, Y normal; concentrated. Its condition is checked for these sigma.

    Parameters
    ----------
    sigma : float
        From 0.25 to 4; the default has the least noise for a shift.
    """

    sigma: float = 2 / math.sqrt(3)  # least noise for a shift

    def __post_init__(self) -> None:
        _require_in_range("sigma", self.sigma, 0.25, 4)

    def _compute_cost(self, alpha: float, beta: float) -> float:
        # sqrt(beta (beta/sigma^2 + 1/sigma + 2)) + (2/(3 sigma) + sigma/2) alpha: Bun, Steinke 2019
        scaling_term = beta * (beta / self.sigma**2 + 1 / self.sigma + 2)
        return math.sqrt(scaling_term) + (2 / (3 * self.sigma) + self.sigma / 2) * alpha

    def _draw_unit_noise(self, uniforms: Uniforms) -> Decimal:
        sigma = Decimal(self.sigma)
        log_normal_draw = (sigma * uniforms.draw_normal()).exp()
        return (log_normal_draw - 1 / log_normal_draw) / (2 * sigma)


def compute_rational_scale(
    sensitivity: Number, epsilon: Number, denominator: int = 1 << 32
) -> Fraction:
    """Return sensitivity / epsilon rounded up to a multiple of 1 / ``denominator``.

    For exact discrete noise on integers; rounded up, it promises epsilon or a little less.

    Parameters
    ----------
    sensitivity : number
        How far one person can move the number.
    epsilon : number
    denominator : int, default 2^32
    """
    if not (0 < sensitivity < math.inf and 0 < epsilon < math.inf):
        raise PrivacyError(
            f"sensitivity {sensitivity}, epsilon {epsilon}; give finite numbers above 0"
        )
    exact_scale = Fraction(sensitivity) / Fraction(epsilon)
    return Fraction(math.ceil(exact_scale * denominator), denominator)


def _compute_gaussian_epsilon(alpha: float, b: float, delta: float) -> float:
    """Return the epsilon that N(0, 1) against N(alpha exp(-b), exp(-2b)) has at ``delta``."""
    # the log-ratio exceeds e below r1 and above r2, the roots of
    # (exp(2b) - 1) z^2 - 2 alpha exp(b) z + alpha^2 - 2 (b + e); here they are exp(b) times that,
    # and all in logarithms, so that no b and e are too large
    scale_ratio, variance_gap = math.exp(-b), -math.expm1(-2 * b)

    def compute_minus_delta(e: float) -> float:
        larger_root = alpha + math.sqrt((alpha * scale_ratio) ** 2 + variance_gap * 2 * (b + e))
        if larger_root == 0:
            return 0.0
        lower_root = (alpha**2 - 2 * (b + e)) / larger_root
        upper_root = larger_root / variance_gap if variance_gap else math.inf
        own_tail = ndtr(scale_ratio * lower_root) + ndtr(-scale_ratio * upper_root)
        log_other_tail = float(
            np.logaddexp(log_ndtr(lower_root - alpha), log_ndtr(alpha - upper_root))
        )
        return float(math.exp(min(e + log_other_tail, 0.0)) - own_tail)

    return (
        0.0 if compute_minus_delta(0.0) >= -delta else find_crossing(compute_minus_delta, -delta)[1]
    )


def _require_in_range(name: str, value: float, lower_limit: float, upper_limit: float) -> None:
    if not lower_limit < value <= upper_limit:
        raise PrivacyError(
            f"{name} is {value!r}; give a number above {lower_limit:g}, up to {upper_limit:g}"
        )
