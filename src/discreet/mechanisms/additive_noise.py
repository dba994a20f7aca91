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

__all__ = ["AdditiveNoise", "Uniforms", "crossing"]

Promise = Literal["pure", "approximate", "concentrated"]

MOST_STEPS = 1 << 53  # a released number of steps is an integer that a float holds exactly
BITS = 192
DIGITS = Context(prec=60, Emin=-(10**9), Emax=10**9)
LARGEST_EPSILON = 500.0  # beyond it exp(epsilon) overflows; no privacy is left long before
SHY = 1 - 2.0**-40  # alpha is rounded down by this, so that float rounding stays on the safe side


@dataclass(frozen=True)
class AdditiveNoise(abc.ABC):
    """A noise law: what (alpha, beta) promise, which to use, and draws from it."""

    promise: ClassVar[Promise]

    @abc.abstractmethod
    def epsilon(self, alpha: float, beta: float, delta: float = 0.0) -> float:
        """Return what noise of scale S / alpha promises for a beta-smooth S.

        For a concentrated law and delta = 0 it is the epsilon of epsilon^2/2-zCDP; with a delta
        it is converted to (epsilon, delta). A pure law promises the same with any delta.
        """

    @abc.abstractmethod
    def _draw(self, uniforms: Uniforms) -> Decimal:
        """Return one draw of scale 1, inside the ``DIGITS`` context."""

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
        if not 0 < epsilon <= LARGEST_EPSILON:
            raise PrivacyError(f"epsilon is {epsilon!r}; give a number above 0, up to 500")
        self._check_delta(delta)
        beta = self._split(epsilon, delta) if beta is None else beta
        if not (0 < beta < math.inf and self.epsilon(0.0, beta, delta) < epsilon):
            raise PrivacyError(
                f"{self}: beta = {beta} leaves nothing of epsilon = {epsilon} for the noise; "
                "use a smaller beta, above 0"
            )
        alpha, _ = crossing(lambda alpha: self.epsilon(alpha, beta, delta), epsilon)
        alpha, less = alpha * SHY, 1 - SHY
        while self.epsilon(alpha, beta, delta) > epsilon:  # in floats it is not monotone in alpha
            alpha, less = alpha * (1 - less), 2 * less
        return alpha, beta

    def _split(self, epsilon: float, delta: float) -> float:
        """Return the beta that costs half of epsilon."""
        return crossing(lambda beta: self.epsilon(0.0, beta, delta), epsilon / 2)[0]

    def release(self, value: Number, scale: float, random: Random, step: Number) -> float:
        """Return ``value`` + ``scale`` Z on the public grid of integer multiples of ``step``.

        The sum is rounded, not the noise: rounding the noise alone would let the last digits of
        the value through.
        """
        if not (0 <= scale < math.inf and 0 < step < math.inf and math.isfinite(value)):
            raise PrivacyError(
                f"value {value}, scale {scale}, step {step}; give finite numbers, step above 0"
            )
        with localcontext(DIGITS):
            noise = Fraction(self._draw(Uniforms(random)))
        steps = round((Fraction(value) + Fraction(scale) * noise) / Fraction(step))
        return float(max(-MOST_STEPS, min(MOST_STEPS, steps)) * Fraction(step))

    def sample(self, scale: float, size: int, random: Random, step: Number) -> Floats:
        """Return ``size`` releases of the value 0. To release another value use ``release``."""
        return np.array([self.release(0, scale, random, step) for _ in range(size)], np.float64)

    def _check_delta(self, delta: float) -> None:
        least = "above 0" if self.promise == "approximate" else "from 0"
        if not (0 <= delta < 1) or (self.promise == "approximate" and delta == 0):
            raise PrivacyError(f"{self}: delta is {delta!r}; give a number {least} and below 1")


class Uniforms:
    """Reals to ``DIGITS``, each uniform one from ``BITS`` random bits."""

    def __init__(self, random: Random) -> None:
        self._random = random

    def centred(self) -> Decimal:
        """Uniform on (-1, 1), never 0."""
        word = int.from_bytes(self._random.raw(BITS // 8).tobytes(), "little")
        return Decimal(2 * word + 1 - (1 << BITS)) / (1 << BITS)

    def exponential(self) -> Decimal:
        return -abs(self.centred()).ln()

    def disc(self) -> tuple[Decimal, Decimal, Decimal]:
        """Uniform in the unit disc: x, y and x^2 + y^2."""
        while True:
            x, y = self.centred(), self.centred()
            w = x * x + y * y
            if w < 1:
                return x, y, w

    def normal(self) -> Decimal:
        x, _, w = self.disc()
        return x * (-2 * w.ln() / w).sqrt()  # Marsaglia's polar method


def crossing(rising: Callable[[float], float], level: float) -> tuple[float, float]:
    """Return two close numbers, where a rising function is at most and above ``level``."""
    below, above = 0.0, 1.0
    while rising(above) <= level:
        below, above = above, 2 * above
    while below < (middle := (below + above) / 2) < above:
        below, above = (middle, above) if rising(middle) <= level else (below, middle)
        if above - below < above * 2.0**-50:
            break
    return below, above
