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
from collections.abc import Callable
from fractions import Fraction
from functools import partial

import numpy as np

from discreet.arrays import Integers
from discreet.central.budget import Budget, CentralSettings
from discreet.central.parametric import (
    ReleaseContext,
    build_centred_moments,
    build_statistics,
    count_present,
    make_moments,
    split_feature_costs,
    start_release,
)
from discreet.privacy.accountant import ReleaseStep
from discreet.randomness import Random
from discreet.schema.cells import Grid
from discreet.schema.schema import Numeric, Schema
from discreet.statistics.statistics import Moments, Statistics
from discreet.tables.source import Source

__all__ = ["compute_centred_sums", "release_global", "release_global_published", "release_moments"]


def compute_centred_sums(exact_moments: Moments, levels: int) -> tuple[Integers, Integers]:
    """Sums of m and of 2 m^2 - L^2, with m = 2k - L, exactly."""
    class_sizes, index_sums, index_square_sums = (
        [int(value) for value in class_values]
        for class_values in (exact_moments.counts, exact_moments.totals, exact_moments.squares)
    )
    linear_sums = [
        2 * index_sum - class_size * levels
        for class_size, index_sum in zip(class_sizes, index_sums, strict=True)
    ]
    quadratic_sums = [
        8 * square_sum - 8 * levels * index_sum + class_size * levels**2
        for class_size, index_sum, square_sum in zip(
            class_sizes, index_sums, index_square_sums, strict=True
        )
    ]
    return np.array(linear_sums, dtype=np.int64), np.array(quadratic_sums, dtype=np.int64)


def _list_steps(schema: Schema, budget: Budget, settings: CentralSettings) -> list[ReleaseStep]:
    """All noise of a release, in its order."""
    feature_costs = split_feature_costs(schema, settings, budget)
    categorical = [f for f in schema.features if not isinstance(f, Numeric)]
    counted_costs = [feature_costs[""], *(feature_costs[feature.name] for feature in categorical)]
    steps = [budget.plan_noise(cost) for cost in counted_costs]
    for feature in schema.features:
        if isinstance(feature, Numeric):
            levels, statistic_cost = _get_levels_and_cost(feature, feature_costs[feature.name])
            presence = [1] if feature.optional else []
            steps += [
                budget.plan_noise(statistic_cost, sensitivity)
                for sensitivity in (*presence, levels, levels**2)
            ]
    return [*steps]


def _get_levels_and_cost(feature: Numeric, cost: Fraction) -> tuple[int, Fraction]:
    """Levels of the grid, and what each of two or, with presence, three statistics costs."""
    return Grid.from_feature(feature).levels, cost / 3 if feature.optional else cost / 2


def _release_feature(
    context: ReleaseContext, feature: Numeric, budget: Budget, random: Random, *, centred: bool
) -> Moments:
    name = feature.name
    levels, statistic_cost = _get_levels_and_cost(feature, context.feature_costs[name])
    presence_noise = (
        budget.spend_on_noise(f"presence of {name}", statistic_cost) if feature.optional else None
    )
    noisy_counts, noisy_missing = count_present(context, feature, presence_noise, random)
    sum_noise = budget.spend_on_noise(f"sum of {name}", statistic_cost, levels)
    square_noise = budget.spend_on_noise(f"squares of {name}", statistic_cost, levels**2)
    exact_moments = context.exact_statistics.moments[name]
    linear_sums, quadratic_sums = compute_centred_sums(exact_moments, levels)
    if not centred:
        # the sum of m^2
        quadratic_sums = (quadratic_sums + exact_moments.counts.astype(np.int64) * levels**2) // 2
    noisy_linear_sums = sum_noise.add(linear_sums, random)
    noisy_quadratic_sums = square_noise.add(quadratic_sums, random)
    count_variance = (presence_noise or context.class_count_noise).variance
    if centred:  # the noisy count replaces the exact one
        square_sums = (noisy_quadratic_sums + noisy_counts * levels**2) / 8
        square_variance = (square_noise.variance + levels**4 * count_variance) / 64
    else:
        square_sums, square_variance = noisy_quadratic_sums / 4, square_noise.variance / 16
    # about the middle, a value is m / 2 steps
    sum_variances = [[count_variance], [sum_noise.variance / 4], [square_variance]]
    moment_variances = np.repeat(sum_variances, len(noisy_counts), axis=1) + 1e-6
    return build_centred_moments(
        feature,
        (noisy_counts, noisy_linear_sums / 2, square_sums),
        noisy_missing,
        moment_variances,
    )


def _release_feature_published(
    context: ReleaseContext, feature: Numeric, budget: Budget, random: Random
) -> Moments:
    """Scale the noise by the exact class sizes, as printed. This promises nothing."""
    from discreet.mechanisms.additive import Laplace

    name, grid = feature.name, Grid.from_feature(feature)
    statistic_cost = context.feature_costs[name] / 2
    if budget.concentrated:
        statistic_cost = Fraction(math.sqrt(2 * float(statistic_cost * budget.usable_share)))
    exact_moments = context.exact_statistics.moments[name]
    range_steps = (feature.upper - feature.lower) / grid.step
    exact_counts = np.maximum(exact_moments.counts, 1)
    exact_mean = (
        np.where(exact_moments.counts > 0, exact_moments.totals / exact_counts, grid.levels / 2)
        - grid.levels / 2
    )
    exact_deviation = np.sqrt(np.maximum(exact_moments.variance, 0.0)) / grid.step
    noise_law, noise_scale = Laplace(), range_steps / float(statistic_cost)
    padded_sizes = exact_moments.counts + 1.0
    noisy_mean = [
        noise_law.release(class_mean, noise_scale / class_size, random, 1)
        for class_mean, class_size in zip(exact_mean, padded_sizes, strict=True)
    ]
    noisy_deviation = [
        noise_law.release(class_deviation, noise_scale / math.sqrt(class_size), random, 1)
        for class_deviation, class_size in zip(exact_deviation, padded_sizes, strict=True)
    ]
    noisy_variance = np.maximum(np.array(noisy_deviation), 0.0) ** 2
    zero_counts = np.zeros(len(padded_sizes))
    return make_moments(
        feature,
        context.noisy_totals,
        zero_counts,
        np.array(noisy_mean),
        noisy_variance,
        zero_counts,
    )


def _release_statistics(
    source: Source,
    budget: Budget,
    settings: CentralSettings,
    random: Random,
    *,
    release_feature: Callable[[ReleaseContext, Numeric, Budget, Random], Moments],
) -> Statistics:
    if release_feature is not _release_feature_published:
        budget.calibrate(_list_steps(source.schema, budget, settings))
    context = start_release(source, budget, settings, random)
    released_moments = {
        feature.name: release_feature(context, feature, budget, random)
        for feature in context.numeric_features
    }
    return build_statistics(context, released_moments, budget, settings)


release_moments = partial(
    _release_statistics, release_feature=partial(_release_feature, centred=True)
)
release_global = partial(
    _release_statistics, release_feature=partial(_release_feature, centred=False)
)
release_global_published = partial(_release_statistics, release_feature=_release_feature_published)
