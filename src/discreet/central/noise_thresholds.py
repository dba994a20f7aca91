"""Thresholds that noise alone seldom reaches, computed exactly or rounded up."""

from __future__ import annotations

import math
from fractions import Fraction

from discreet.central.budget import IntegerNoise
from discreet.privacy.rounding import exp_rounded_down, exp_rounded_up

__all__ = ["bound_tail_chance", "find_noise_threshold"]

TAIL_MARGIN = 1e-9
"""Relative margin of a normal tail in floats, whose error is some thousand times smaller."""


def bound_tail_chance(noise: IntegerNoise, level: int) -> Fraction:
    """Bound the chance that a draw of noise is at least this level; never too small.

    Laplace: exactly q^level / (1 + q) with q = exp(-1 / scale), rounded up. Gaussian: at most the
    normal tail from level - 1 on, because each term of the sum is at most the integral over the
    unit before it, and the normaliser is at least that of the normal law (Canonne, Kamath, Steinke
    2020, proposition 25).

    Parameters
    ----------
    noise : IntegerNoise
        Without rounding.
    level : int
        At least 1.
    """
    if not noise.gaussian:
        decay = exp_rounded_up(Fraction(-level) / noise.parameter)
        return decay / (1 + exp_rounded_down(-1 / noise.parameter))
    deviation = math.sqrt(noise.parameter) * (1 + TAIL_MARGIN)
    tail = math.erfc((level - 1) / deviation / math.sqrt(2)) / 2
    return Fraction(max(tail * (1 + TAIL_MARGIN), 1e-300))


def find_noise_threshold(noise: IntegerNoise, chance: Fraction) -> int:
    """Find the least level that a draw of noise reaches with at most this chance.

    Parameters
    ----------
    noise : IntegerNoise
    chance : Fraction
        Above 0.

    Examples
    --------
    >>> find_noise_threshold(IntegerNoise(Fraction(10)), Fraction(1, 10**6))
    132
    """
    high = 1
    while bound_tail_chance(noise, high) > chance:
        high *= 2
    low = high // 2
    while high - low > 1:  # low exceeds the chance, or is 0
        middle = (low + high) // 2
        low, high = (middle, high) if bound_tail_chance(noise, middle) > chance else (low, middle)
    return high
