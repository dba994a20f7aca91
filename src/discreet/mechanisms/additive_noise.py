"""Base class of additive noise: calibration, and draws with 60 decimal digits.

The laws themselves, and what is promised of a draw: :mod:`discreet.mechanisms.additive`.
"""

from __future__ import annotations

import abc
import math
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Context, Decimal, localcontext
from fractions import Fraction
from typing import ClassVar, Literal

import numpy as np

from discreet.arrays import Floats
from discreet.errors import PrivacyError
from discreet.randomness import Number, Random

__all__ = ["AdditiveNoise", "Uniforms", "find_crossing"]

PromiseKind = Literal["pure", "approximate", "concentrated"]

MAX_STEPS = 1 << 53  # a released number of steps is an integer that a float holds exactly
UNIFORM_BITS = 192  # random bits of one uniform number: total variation 2^-100, see ``additive``
DECIMAL_CONTEXT = Context(prec=60, Emin=-(10**9), Emax=10**9)  # 60 digits: more than the 192 bits
MAX_CALIBRATED_EPSILON = 500.0  # beyond it exp(epsilon) overflows; no privacy is left long before
ALPHA_ROUNDING_FACTOR = 1 - 2.0**-40  # alpha is rounded down by it: floats stay on the safe side


@dataclass(frozen=True)
class AdditiveNoise(abc.ABC):
    """A noise law: what (alpha, beta) promise, which to use, and draws from it."""

    promise: ClassVar[PromiseKind]

    @abc.abstractmethod
    def epsilon(self, alpha: float, beta: float, delta: float = 0.0) -> float:
        """Return what noise of scale S / alpha promises for a beta-smooth S.

        For a concentrated law and delta = 0 it is the epsilon of epsilon^2/2-zCDP; with a delta
        it is converted to (epsilon, delta). A pure law promises the same with any delta.
        """

    @abc.abstractmethod
    def _draw_unit_noise(self, uniforms: Uniforms) -> Decimal:
        """Return one draw of scale 1, inside the ``DECIMAL_CONTEXT`` context."""

    def calibrate(
        self, epsilon: float, delta: float = 0.0, *, beta: float | None = None
    ) -> tuple[float, float]:
        """Return (alpha, beta) that promise ``epsilon``: noise of scale S_beta(x) / alpha.

        alpha is the largest there is for ``beta``. A larger beta makes S smaller and alpha smaller
        too; by default about half of epsilon is spent on each. beta must not depend on the data.

        Raises
        ------
        PrivacyError
            When epsilon is not above 0, delta does not suit the law, or beta alone costs epsilon.
        """
        if not 0 < epsilon <= MAX_CALIBRATED_EPSILON:
            raise PrivacyError(f"epsilon is {epsilon!r}; give a number above 0, up to 500")
        self._check_delta(delta)
        beta = self._choose_beta(epsilon, delta) if beta is None else beta
        if not (0 < beta < math.inf and self.epsilon(0.0, beta, delta) < epsilon):
            raise PrivacyError(
                f"{self}: beta = {beta} leaves no part of epsilon = {epsilon} for the noise; "
                "use a smaller beta, above 0"
            )
        alpha, _ = find_crossing(lambda alpha: self.epsilon(alpha, beta, delta), epsilon)
        alpha, reduction = alpha * ALPHA_ROUNDING_FACTOR, 1 - ALPHA_ROUNDING_FACTOR
        while self.epsilon(alpha, beta, delta) > epsilon:  # in floats it is not monotone in alpha
            alpha, reduction = alpha * (1 - reduction), 2 * reduction
        return alpha, beta

    def _choose_beta(self, epsilon: float, delta: float) -> float:
        """Return the beta that costs half of epsilon."""
        return find_crossing(lambda beta: self.epsilon(0.0, beta, delta), epsilon / 2)[0]

    def release(self, value: Number, scale: float, random: Random, step: Number) -> float:
        """Return ``value`` + ``scale`` Z on the public grid of integer multiples of ``step``.

        The sum is rounded, not the noise: rounding the noise alone would let the last digits of
        the value through.
        """
        if not (0 <= scale < math.inf and 0 < step < math.inf and math.isfinite(value)):
            raise PrivacyError(
                f"value {value}, scale {scale}, step {step}; give finite numbers, step above 0"
            )
        with localcontext(DECIMAL_CONTEXT):
            noise_draw = Fraction(self._draw_unit_noise(Uniforms(random)))
        step_count = round((Fraction(value) + Fraction(scale) * noise_draw) / Fraction(step))
        return float(max(-MAX_STEPS, min(MAX_STEPS, step_count)) * Fraction(step))

    def sample(self, scale: float, size: int, random: Random, step: Number) -> Floats:
        """Return ``size`` releases of the value 0. To release another value use ``release``."""
        return np.array([self.release(0, scale, random, step) for _ in range(size)], np.float64)

    def _check_delta(self, delta: float) -> None:
        lower_limit = "above 0" if self.promise == "approximate" else "from 0"
        if not (0 <= delta < 1) or (self.promise == "approximate" and delta == 0):
            raise PrivacyError(
                f"{self}: delta is {delta!r}; give a number {lower_limit} and below 1"
            )


class Uniforms:
    """Reals to ``DECIMAL_CONTEXT``, each uniform one from ``UNIFORM_BITS`` random bits."""

    def __init__(self, random: Random) -> None:
        self._random = random

    def draw_centred(self) -> Decimal:
        """Uniform on (-1, 1), never 0."""
        random_word = int.from_bytes(self._random.raw(UNIFORM_BITS // 8).tobytes(), "little")
        return Decimal(2 * random_word + 1 - (1 << UNIFORM_BITS)) / (1 << UNIFORM_BITS)

    def draw_exponential(self) -> Decimal:
        return -abs(self.draw_centred()).ln()

    def draw_disc(self) -> tuple[Decimal, Decimal, Decimal]:
        """Uniform in the unit disc: x, y and x^2 + y^2."""
        while True:
            x, y = self.draw_centred(), self.draw_centred()
            w = x * x + y * y
            if w < 1:
                return x, y, w

    def draw_normal(self) -> Decimal:
        x, _, w = self.draw_disc()
        return x * (-2 * w.ln() / w).sqrt()  # Marsaglia's polar method


def find_crossing(
    compute_increasing: Callable[[float], float], level: float
) -> tuple[float, float]:
    """Return two close numbers, where a rising function is at most and above ``level``."""
    lower, upper = 0.0, 1.0
    while compute_increasing(upper) <= level:
        lower, upper = upper, 2 * upper
    while lower < (middle := (lower + upper) / 2) < upper:
        lower, upper = (middle, upper) if compute_increasing(middle) <= level else (lower, middle)
        if upper - lower < upper * 2.0**-50:
            break
    return lower, upper
