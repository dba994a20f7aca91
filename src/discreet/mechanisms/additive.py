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

Counts need none of this: add ``random.discrete_laplace(rational_scale(sensitivity, epsilon), n)``,
which is exact.
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
from discreet.losses import epsilon_of_rho
from discreet.mechanisms.additive_noise import AdditiveNoise, Uniforms, crossing
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
    "rational_scale",
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
        shifted = alpha**2 / 4
        dilated = math.sinh(beta / 2) ** 2 + alpha**2 * math.exp(-beta) / 4
        return 2 * math.asinh(math.sqrt(max(shifted, dilated)))

    def _split(self, epsilon: float, delta: float) -> float:
        return epsilon / math.sqrt(2)

    def _draw(self, uniforms: Uniforms) -> Decimal:
        x, y, _ = uniforms.disc()  # the tangent of a uniform angle
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
        _within("degrees", self.degrees, 0, 1e6)

    def epsilon(self, alpha: float, beta: float, delta: float = 0.0) -> float:
        # ln density has slope at most (d+1)/(2 sqrt d); scaling by exp(t) changes it by t at 0 and
        # by -d t far out
        d = self.degrees
        return alpha * (d + 1) / (2 * math.sqrt(d)) + max(d, 1.0) * beta

    def _draw(self, uniforms: Uniforms) -> Decimal:
        x, _, w = uniforms.disc()  # Bailey 1994: X sqrt(d (W^(-2/d) - 1) / W), W = X^2 + Y^2
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
        tail = math.expm1(beta) * math.log(-math.expm1(-beta) / delta) - beta if beta else 0.0
        return alpha + max(beta, tail)

    def _draw(self, uniforms: Uniforms) -> Decimal:
        return uniforms.exponential() - uniforms.exponential()


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
            _gaussian_epsilon(alpha, 0.0, delta),
            _gaussian_epsilon(alpha, beta, delta),
        )

    def _draw(self, uniforms: Uniforms) -> Decimal:
        return uniforms.normal()


@dataclass(frozen=True)
class _Concentrated(AdditiveNoise):
    """A law of Bun and Steinke 2019: epsilon^2/2-zCDP, epsilon adding up over shift and scale."""

    sigma: float
    promise = "concentrated"

    @abc.abstractmethod
    def _cost(self, alpha: float, beta: float) -> float:
        """Return the epsilon of epsilon^2/2-zCDP."""

    def rho(self, alpha: float, beta: float) -> float:
        """Return the rho of rho-zCDP that noise of scale S / alpha promises."""
        return self._cost(alpha, beta) ** 2 / 2

    def epsilon(self, alpha: float, beta: float, delta: float = 0.0) -> float:
        self._check_delta(delta)
        return epsilon_of_rho(self.rho(alpha, beta), delta) if delta else self._cost(alpha, beta)


@dataclass(frozen=True)
class LaplaceLogNormal(_Concentrated):
    """X exp(sigma Y), X Laplace and Y normal, sigma above 0; concentrated.

    Parameters
    ----------
    sigma : float, default 0.5
        Above 0, up to 10.
    """

    sigma: float = 0.5

    def __post_init__(self) -> None:
        _within("sigma", self.sigma, 0, 10)

    def _cost(self, alpha: float, beta: float) -> float:
        return beta / self.sigma + math.exp(1.5 * self.sigma**2) * alpha  # Bun, Steinke 2019

    def _draw(self, uniforms: Uniforms) -> Decimal:
        laplace = uniforms.exponential() - uniforms.exponential()
        return laplace * (Decimal(self.sigma) * uniforms.normal()).exp()


@dataclass(frozen=True)
class UniformLogNormal(_Concentrated):
    """X exp(sigma Y), X uniform on [-1, 1] and Y normal, sigma from sqrt(2); concentrated.

    Parameters
    ----------
    sigma : float
        From sqrt(2), the default, to 10.
    """

    sigma: float = math.sqrt(2)

    def __post_init__(self) -> None:
        _within("sigma", self.sigma, 1.414, 10)

    def _cost(self, alpha: float, beta: float) -> float:
        # beta/sigma + exp(3 sigma^2/2) sqrt(2/(pi sigma^2)) alpha: Bun, Steinke 2019
        shift = math.exp(1.5 * self.sigma**2) * math.sqrt(2 / math.pi) / self.sigma
        return beta / self.sigma + shift * alpha

    def _draw(self, uniforms: Uniforms) -> Decimal:
        return uniforms.centred() * (Decimal(self.sigma) * uniforms.normal()).exp()


@dataclass(frozen=True)
class ArsinhNormal(_Concentrated):
    """sinh(sigma Y) / sigma, Y normal; concentrated. Its condition is checked for these sigma.

    Parameters
    ----------
    sigma : float
        From 0.25 to 4; the default has the least noise for a shift.
    """

    sigma: float = 2 / math.sqrt(3)  # least noise for a shift

    def __post_init__(self) -> None:
        _within("sigma", self.sigma, 0.25, 4)

    def _cost(self, alpha: float, beta: float) -> float:
        # sqrt(beta (beta/sigma^2 + 1/sigma + 2)) + (2/(3 sigma) + sigma/2) alpha: Bun, Steinke 2019
        scaling = beta * (beta / self.sigma**2 + 1 / self.sigma + 2)
        return math.sqrt(scaling) + (2 / (3 * self.sigma) + self.sigma / 2) * alpha

    def _draw(self, uniforms: Uniforms) -> Decimal:
        sigma = Decimal(self.sigma)
        grown = (sigma * uniforms.normal()).exp()
        return (grown - 1 / grown) / (2 * sigma)


def rational_scale(sensitivity: Number, epsilon: Number, denominator: int = 1 << 32) -> Fraction:
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
    exact = Fraction(sensitivity) / Fraction(epsilon)
    return Fraction(math.ceil(exact * denominator), denominator)


def _gaussian_epsilon(alpha: float, b: float, delta: float) -> float:
    """Return the epsilon that N(0, 1) against N(alpha exp(-b), exp(-2b)) has at ``delta``."""
    # the log-ratio exceeds e below r1 and above r2, the roots of
    # (exp(2b) - 1) z^2 - 2 alpha exp(b) z + alpha^2 - 2 (b + e); here they are exp(b) times that,
    # and all in logarithms, so that no b and e are too large
    shrunk, wide = math.exp(-b), -math.expm1(-2 * b)

    def minus_delta(e: float) -> float:
        root = alpha + math.sqrt((alpha * shrunk) ** 2 + wide * 2 * (b + e))
        if root == 0:
            return 0.0
        r1 = (alpha**2 - 2 * (b + e)) / root
        r2 = root / wide if wide else math.inf
        seen = ndtr(shrunk * r1) + ndtr(-shrunk * r2)
        other = float(np.logaddexp(log_ndtr(r1 - alpha), log_ndtr(alpha - r2)))
        return float(math.exp(min(e + other, 0.0)) - seen)

    return 0.0 if minus_delta(0.0) >= -delta else crossing(minus_delta, -delta)[1]


def _within(name: str, value: float, above: float, most: float) -> None:
    if not above < value <= most:
        raise PrivacyError(f"{name} is {value!r}; give a number above {above:g}, up to {most:g}")
