"""The paper's baseline (Vaidya, Shafiq, Basu, Hong 2013), sound and as published.

**Sound**: the class count n' is released first; then the sum about the midpoint, which one record
moves by at most R/2, and the sum of squares about it, at most R^2/4. Divided by n' they are mean
and second moment; the variance is what is left, and its root is taken afterwards.

**As published**: noise of scale R/((n+1) epsilon') on the mean and R/(sqrt(n+1) epsilon') on the
deviation, with the exact class size n in the scale. The scale is itself private, so the promise
does not hold; it is here to be compared with, and its Guarantee promises nothing.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

from discreet.central.budget import Budget
from discreet.central.moments import centred_sums
from discreet.central.parametric import Parts, begin, described, finish, present
from discreet.central.settings import Settings
from discreet.central.source import Source
from discreet.encoding import Grid
from discreet.randomness import Random
from discreet.schema import Numeric
from discreet.statistics import Moments, Statistics

__all__ = ["published", "sound"]


def sound(source: Source, budget: Budget, settings: Settings, random: Random) -> Statistics:
    """Release counts first and then sums, each with its global sensitivity."""
    parts = begin(source, budget, settings, random)
    released = {feature.name: _sound(parts, feature, budget, random) for feature in parts.numeric}
    return finish(parts, released, budget, settings, random)


def _sound(parts: Parts, feature: Numeric, budget: Budget, random: Random) -> Moments:
    name, grid, cost = feature.name, Grid.of(feature), parts.costs[feature.name]
    levels = grid.levels
    number = budget.noise(f"presence of {name}", cost / 3) if feature.optional else None
    share = cost / 3 if feature.optional else cost / 2
    counts, missing = present(parts, feature, number, random)
    of_sum = budget.noise(f"mean of {name}", share, levels)
    of_square = budget.noise(f"variance of {name}", share, levels**2)
    one = parts.exact.moments[name]
    first, second = centred_sums(one, levels)
    square = (second + one.counts.astype(np.int64) * levels**2) // 2  # the sum of m^2
    first = of_sum.add(first, random)
    square = of_square.add(square, random)
    n = np.maximum(counts, 1.0)
    mean, second_moment = first / n, square / n
    variance = (second_moment - mean**2) * (grid.step / 2) ** 2
    mean = grid.lower + grid.step * (mean + levels) / 2
    spread = np.repeat(
        [[(number or parts.noise).variance], [of_sum.variance / 4], [of_square.variance / 16]],
        len(n),
        axis=1,
    )
    noise = np.sqrt(of_square.variance) / n * (grid.step / 2) ** 2
    return described(feature, counts, missing, mean, variance, spread + 1e-6, noise)


def published(source: Source, budget: Budget, settings: Settings, random: Random) -> Statistics:
    """Scale the noise by the exact class sizes, as printed. This promises nothing."""
    parts = begin(source, budget, settings, random)
    released = {
        feature.name: _published(parts, feature, budget, random) for feature in parts.numeric
    }
    return finish(parts, released, budget, settings, random)


def _published(parts: Parts, feature: Numeric, budget: Budget, random: Random) -> Moments:
    from discreet.mechanisms.additive import Laplace

    name, grid = feature.name, Grid.of(feature)
    share = parts.costs[name] / 2
    if budget.concentrated:
        share = Fraction(math.sqrt(2 * float(share)))
    one, span = parts.exact.moments[name], feature.upper - feature.lower
    n = one.counts.astype(float) + 1
    mean, deviation = one.mean, np.sqrt(np.maximum(one.variance, 0.0))
    law, scale = Laplace(), span / float(share)
    noisy_mean = [
        law.release(m, scale / size, random, grid.step) for m, size in zip(mean, n, strict=True)
    ]
    noisy_deviation = [
        law.release(s, scale / math.sqrt(size), random, grid.step)
        for s, size in zip(deviation, n, strict=True)
    ]
    variance = np.maximum(np.array(noisy_deviation), 0.0) ** 2
    spread = np.full((3, len(n)), math.inf)
    none = np.zeros(len(n))
    return described(feature, parts.totals, none, np.array(noisy_mean), variance, spread, none)
