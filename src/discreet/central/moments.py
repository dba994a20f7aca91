"""Noisy count, centred sum and centred sum of squares of each class; the rest is arithmetic.

On the public grid a value is k = 0 … L. With m = 2k - L, in [-L, L], one record moves the sum of m
by at most L and the sum of 2 m^2 - L^2, in [-L^2, L^2], by at most L^2: whole numbers, however far
the bounds are from zero. Half the centred square's range is what centring saves.
"""

from __future__ import annotations

import numpy as np

from discreet.arrays import Integers
from discreet.central.budget import Budget
from discreet.central.parametric import Parts, begin, finish, present
from discreet.central.settings import Settings
from discreet.central.source import Source
from discreet.encoding import Grid
from discreet.randomness import Random
from discreet.schema import Numeric
from discreet.statistics import Moments, Statistics

__all__ = ["centred_sums", "moments"]


def centred_sums(one: Moments, levels: int) -> tuple[Integers, Integers]:
    """Sums of m and of 2 m^2 - L^2, with m = 2k - L, exactly."""
    n, k, kk = ([int(value) for value in part] for part in (one.counts, one.totals, one.squares))
    first = [2 * b - a * levels for a, b in zip(n, k, strict=True)]
    second = [8 * c - 8 * levels * b + a * levels**2 for a, b, c in zip(n, k, kk, strict=True)]
    return np.array(first, dtype=np.int64), np.array(second, dtype=np.int64)


def moments(source: Source, budget: Budget, settings: Settings, random: Random) -> Statistics:
    """Release sums."""
    parts = begin(source, budget, settings, random)
    released = {
        feature.name: _released(parts, feature, budget, random) for feature in parts.numeric
    }
    return finish(parts, released, budget, settings, random)


def _released(parts: Parts, feature: Numeric, budget: Budget, random: Random) -> Moments:
    name, grid, cost = feature.name, Grid.of(feature), parts.costs[feature.name]
    levels = grid.levels
    number = budget.noise(f"presence of {name}", cost / 3) if feature.optional else None
    share = cost / 3 if feature.optional else cost / 2
    counts, missing = present(parts, feature, number, random)
    of_sum = budget.noise(f"sum of {name}", share, levels)
    of_square = budget.noise(f"squares of {name}", share, levels**2)
    first, second = centred_sums(parts.exact.moments[name], levels)
    first = of_sum.add(first, random)
    second = of_square.add(second, random)
    # back to sums of k and k^2, with the noisy count in the place of n
    totals = (first + counts * levels) / 2
    squares = (second + 8 * levels * totals - counts * levels**2) / 8
    of_count = (number or parts.noise).variance
    of_totals = (of_sum.variance + levels**2 * of_count) / 4
    of_squares = (of_square.variance + 16 * levels**2 * of_sum.variance) / 64 + (
        9 * levels**4 * of_count / 64
    )
    spread = np.repeat([[of_count], [of_totals], [of_squares]], len(counts), axis=1)
    origin = np.full(len(counts), grid.lower)
    # the mean of m^2 is (second / n + L^2) / 2, and a value is step / 2 times m
    noise = np.sqrt(of_square.variance) / (2 * np.maximum(counts, 1.0)) * (grid.step / 2) ** 2
    return Moments(
        feature, counts, totals, squares, missing, origin, grid.step, spread + 1e-6, noise
    )
