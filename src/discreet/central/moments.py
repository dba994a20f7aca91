"""Noisy counts, sums and sums of squares of each class; mean and variance are arithmetic on them.

On the public grid a value is k = 0 … L. With m = 2k - L, in [-L, L], one record moves the sum of m
by at most L, and the sum of its squares by at most L^2: whole numbers, however far the bounds are
from zero. Three ways to release them:

================ ==================================================================================
moments          the sum of 2 m^2 - L^2, in [-L^2, L^2], instead of m^2: centring halves the noise
global           the sum of m^2, divided by the released count: the paper's baseline (Vaidya,
                 Shafiq, Basu, Hong 2013), made sound
global-published the baseline as printed: noise of scale R/((n+1) epsilon') on the mean and
                 R/(sqrt(n+1) epsilon') on the deviation, with the exact class size n in the scale.
                 The scale is itself private, so the promise does not hold; it is here to be
                 compared with, and its Guarantee promises nothing
================ ==================================================================================
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import partial

import numpy as np

from discreet.arrays import Integers
from discreet.central.budget import Budget, Settings
from discreet.central.parametric import Parts, about_the_middle, begin, described, finish, present
from discreet.encoding import Grid
from discreet.randomness import Random
from discreet.schema import Numeric
from discreet.statistics import Moments, Statistics
from discreet.tables.source import Source

__all__ = ["centred_sums", "moments", "published", "sound"]


def centred_sums(one: Moments, levels: int) -> tuple[Integers, Integers]:
    """Sums of m and of 2 m^2 - L^2, with m = 2k - L, exactly."""
    n, k, kk = ([int(value) for value in part] for part in (one.counts, one.totals, one.squares))
    first = [2 * b - a * levels for a, b in zip(n, k, strict=True)]
    second = [8 * c - 8 * levels * b + a * levels**2 for a, b, c in zip(n, k, kk, strict=True)]
    return np.array(first, dtype=np.int64), np.array(second, dtype=np.int64)


def _run(
    source: Source, budget: Budget, settings: Settings, random: Random, *, centred: bool
) -> Statistics:
    parts = begin(source, budget, settings, random)
    released = {
        feature.name: _released(parts, feature, budget, random, centred)
        for feature in parts.numeric
    }
    return finish(parts, released, budget, settings)


moments = partial(_run, centred=True)
sound = partial(_run, centred=False)


def _released(
    parts: Parts, feature: Numeric, budget: Budget, random: Random, centred: bool
) -> Moments:
    name, cost, levels = feature.name, parts.costs[feature.name], Grid.of(feature).levels
    number = budget.noise(f"presence of {name}", cost / 3) if feature.optional else None
    share = cost / 3 if feature.optional else cost / 2
    counts, missing = present(parts, feature, number, random)
    of_sum = budget.noise(f"sum of {name}", share, levels)
    of_square = budget.noise(f"squares of {name}", share, levels**2)
    one = parts.exact.moments[name]
    first, second = centred_sums(one, levels)
    if not centred:
        second = (second + one.counts.astype(np.int64) * levels**2) // 2  # the sum of m^2
    first, second = of_sum.add(first, random), of_square.add(second, random)
    of_count = (number or parts.noise).variance
    if centred:  # the noisy count replaces the exact one
        squares = (second + counts * levels**2) / 8
        of_squares = (of_square.variance + levels**4 * of_count) / 64
    else:
        squares, of_squares = second / 4, of_square.variance / 16
    # about the middle, a value is m / 2 steps
    variances = [[of_count], [of_sum.variance / 4], [of_squares]]
    spread = np.repeat(variances, len(counts), axis=1) + 1e-6
    return about_the_middle(feature, (counts, first / 2, squares), missing, spread)


def published(source: Source, budget: Budget, settings: Settings, random: Random) -> Statistics:
    """Scale the noise by the exact class sizes, as printed. This promises nothing."""
    parts = begin(source, budget, settings, random)
    released = {
        feature.name: _published(parts, feature, budget, random) for feature in parts.numeric
    }
    return finish(parts, released, budget, settings)


def _published(parts: Parts, feature: Numeric, budget: Budget, random: Random) -> Moments:
    from discreet.mechanisms.additive import Laplace

    name, grid = feature.name, Grid.of(feature)
    share = parts.costs[name] / 2
    if budget.concentrated:
        share = Fraction(math.sqrt(2 * float(share)))
    one, span = parts.exact.moments[name], (feature.upper - feature.lower) / grid.step
    present = np.maximum(one.counts, 1)
    mean = np.where(one.counts > 0, one.totals / present, grid.levels / 2) - grid.levels / 2
    deviation = np.sqrt(np.maximum(one.variance, 0.0)) / grid.step
    law, scale, n = Laplace(), span / float(share), one.counts + 1.0
    noisy_mean = [law.release(m, scale / size, random, 1) for m, size in zip(mean, n, strict=True)]
    noisy_deviation = [
        law.release(s, scale / math.sqrt(size), random, 1)
        for s, size in zip(deviation, n, strict=True)
    ]
    variance = np.maximum(np.array(noisy_deviation), 0.0) ** 2
    none = np.zeros(len(n))
    return described(feature, parts.totals, none, np.array(noisy_mean), variance, none)
