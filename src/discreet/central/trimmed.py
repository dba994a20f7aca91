"""Trimmed means (Bun and Steinke 2019) of the values and of their squares about the midpoint.

The m smallest and the m largest values are left out, and the noise is scaled to the smooth
sensitivity of what remains. m comes from the noisy class count and from beta alone: enough that
the padding at the bounds is forgotten, exp(-beta m) n <= 1, and at most an eighth at each end.
The variance is E[x^2] - E[x]^2, as in the paper's comparison.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

from discreet.arrays import Floats
from discreet.central.budget import Budget
from discreet.central.settings import Settings
from discreet.central.smooth import Pair, Spender, run
from discreet.central.source import Source
from discreet.encoding import Grid
from discreet.randomness import Random
from discreet.statistics import Statistics

__all__ = ["trim_for", "trimmed"]


def trim_for(count: float, beta: float) -> int:
    """How many values to leave out at each end, from what is already private.

    >>> trim_for(1000.0, 1.0), trim_for(1000.0, 0.01), trim_for(-3.0, 1.0)
    (7, 125, 0)
    """
    if count < 8:
        return 0
    return min(math.ceil(math.log(count) / beta), math.floor(count / 8))


def trimmed(source: Source, budget: Budget, settings: Settings, random: Random) -> Statistics:
    """Release trimmed means of values and squares."""
    return run(source, Spender(settings.noise, budget), settings, random, _pair)


def _pair(x: Floats, grid: Grid, of_mean: float, of_square: float, count: float) -> Pair:
    from discreet.central.smooth_sensitivity import smooth_trimmed_mean, trimmed_mean

    lower, upper = grid.lower, grid.lower + grid.step * grid.levels
    middle, most = (lower + upper) / 2, ((upper - lower) / 2) ** 2
    trim = trim_for(count, of_mean)
    mean = trimmed_mean(x, trim, lower, upper)
    bound = smooth_trimmed_mean(x, trim, lower, upper, of_mean)
    squares = np.minimum((x - middle) ** 2, most)
    trim = trim_for(count, of_square)
    square = trimmed_mean(squares, trim, 0.0, most)
    wide = smooth_trimmed_mean(squares, trim, 0.0, most, of_square)
    return (Fraction(mean), bound), (Fraction(square), wide)
