"""Noise scaled to smooth sensitivity, soundly: mean and variance of each class.

For every class and numeric feature the noise is S(x) / alpha times a draw of a heavy-tailed law,
S a beta-smooth bound on how far one record can move the statistic, adding and removing records
included. S is private: neither it nor the variance of the noise is released. The class counts and
the tables of categorical features get exact discrete noise. Statistics are exact fractions of
whole numbers on the public grid, so that rounding adds nothing to the noise.

======= ===========================================================================================
smooth  mean and variance (Zafarani and Clifton)
trimmed means of the values and of their squares about the midpoint without the m smallest and the
        m largest (Bun and Steinke 2019). m comes from the noisy class count and from beta alone:
        enough that the padding at the bounds is forgotten, exp(-beta m) n <= 1, and at most an
        eighth at each end. The variance is E[x^2] - E[x]^2
======= ===========================================================================================

With delta = 0 the law is Cauchy's. With delta it is the normal one, as in the paper's figures, and
epsilon and delta add up; a concentrated law shares rho instead.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np

from discreet.arrays import Integers
from discreet.central.budget import Budget, CentralSettings
from discreet.central.parametric import (
    ReleaseContext,
    build_statistics,
    count_present,
    make_moments,
    split_feature_costs,
    start_release,
)
from discreet.errors import PrivacyError
from discreet.randomness import Random
from discreet.schema.cells import Grid
from discreet.schema.schema import Numeric, Schema
from discreet.statistics.statistics import Moments, Statistics
from discreet.tables.source import Source

__all__ = [
    "STATISTIC_PAIRS",
    "SmoothNoiseBudget",
    "compute_noise_parameters",
    "compute_trim",
    "release_smooth",
    "release_trimmed",
]

MAX_CALIBRATED_EPSILON = 500.0
"""Largest epsilon that laws are calibrated for; the rest of a share is not used."""
OUTPUT_STEP = Fraction(1, 1024)
"""Steps of the grid, and squares of them, to which what is released is rounded."""


@dataclass(frozen=True)
class SmoothStatistic:
    """A statistic of whole numbers 0 … levels, and a smooth bound on how far a record moves it."""

    value: Fraction
    sensitivity_bound: float


class SmoothNoiseBudget:
    """A noise law and the budget it draws on.

    Parameters
    ----------
    law : AdditiveNoise or None
        Cauchy without delta and Gaussian with it, if None.
    total_budget : Budget
        The promise as a whole.
    """

    def __init__(self, law: Any, total_budget: Budget) -> None:
        from discreet.mechanisms.additive import AdditiveNoise, Cauchy, Gaussian

        if law is None:
            law = Gaussian() if total_budget.delta else Cauchy()
        if not isinstance(law, AdditiveNoise):
            raise PrivacyError(f"noise={law!r}; give a law of discreet.mechanisms.additive")
        if law.promise != "pure" and not total_budget.delta:
            raise PrivacyError(f"{law} promises nothing without a delta; give one, or use Cauchy()")
        self.law = law
        # a search for each, and few differ
        self._calibrations: dict[Fraction, tuple[float, float]] = {}
        is_concentrated = law.promise == "concentrated"
        self.budget = (
            total_budget
            if is_concentrated
            else Budget(total_budget.epsilon, total_budget.delta, basic_composition=True)
        )

    def spend(self, name: str, cost: Fraction) -> tuple[float, float]:
        """Take a share and give (alpha, beta) for it."""
        calibration = self.calibrate_share(cost)
        self.budget.spend(name, cost)
        return calibration

    def calibrate_share(self, cost: Fraction) -> tuple[float, float]:
        """What (alpha, beta) a share of the budget allows."""
        if cost not in self._calibrations:
            epsilon, delta = float(cost), 0.0
            if self.budget.concentrated:  # rho = epsilon^2 / 2
                epsilon = math.sqrt(2 * float(cost * self.budget.usable_share))
            elif self.law.promise != "pure":
                delta = self.budget.compute_delta_share(cost)
            usable_epsilon = min(epsilon * (1 - 1e-12), MAX_CALIBRATED_EPSILON)
            self._calibrations[cost] = self.law.calibrate(usable_epsilon, delta)
        return self._calibrations[cost]


StatisticPair = Callable[
    [Integers, int, tuple[float, float], float], tuple[SmoothStatistic, SmoothStatistic]
]
"""From sorted grid indices, their levels, two betas and a noisy count to what is released."""


def _compute_mean_and_variance(
    k: Integers, levels: int, betas: tuple[float, float], count: float
) -> tuple[SmoothStatistic, SmoothStatistic]:
    from discreet.central.smooth_sensitivity import (
        bound_mean_sensitivity,
        bound_variance_sensitivity,
    )

    n = len(k)
    mean, variance = Fraction(levels, 2), Fraction(0)
    if n:
        square_sum = (
            int(k @ k) if levels**2 * n < 1 << 62 else sum(int(grid_index) ** 2 for grid_index in k)
        )
        mean = Fraction(int(k.sum()), n)
        variance = Fraction(square_sum, n) - mean**2
    return (
        SmoothStatistic(mean, bound_mean_sensitivity(k, 0, levels, betas[0])),
        SmoothStatistic(variance, bound_variance_sensitivity(k, 0, levels, betas[1])),
    )


def compute_trim(count: float, beta: float) -> int:
    """Number of values to trim at each end; it depends only on what is already private.

    >>> compute_trim(1000.0, 1.0), compute_trim(1000.0, 0.01), compute_trim(-3.0, 1.0)
    (7, 125, 0)
    """
    if count < 8:
        return 0
    return min(math.ceil(math.log(count) / beta), math.floor(count / 8))


def _compute_trimmed_means(
    k: Integers, levels: int, betas: tuple[float, float], count: float
) -> tuple[SmoothStatistic, SmoothStatistic]:
    """Trimmed means of k, and of m^2 with m = 2k - L."""
    from discreet.central.smooth_sensitivity import (
        bound_trimmed_mean_sensitivity,
        compute_trimmed_mean,
    )

    trim_counts = [compute_trim(count, beta) for beta in betas]
    centred_squares = np.sort((2 * k - levels) ** 2)
    return (
        SmoothStatistic(
            compute_trimmed_mean(k, trim_counts[0], 0, levels),
            bound_trimmed_mean_sensitivity(k, trim_counts[0], 0, levels, betas[0]),
        ),
        SmoothStatistic(
            compute_trimmed_mean(centred_squares, trim_counts[1], 0, levels**2),
            bound_trimmed_mean_sensitivity(centred_squares, trim_counts[1], 0, levels**2, betas[1]),
        ),
    )


STATISTIC_PAIRS: dict[str, StatisticPair] = {
    "smooth": _compute_mean_and_variance,
    "trimmed": _compute_trimmed_means,
}


def compute_noise_parameters(
    schema: Schema, budget: Budget, settings: CentralSettings
) -> dict[str, tuple[float, float]]:
    """(alpha, beta) of every numeric feature; they do not depend on the data."""
    noise_budget = SmoothNoiseBudget(settings.noise, budget)
    return {
        name: noise_budget.calibrate_share(_compute_statistic_cost(schema, name, feature_cost))
        for name, feature_cost in split_feature_costs(schema, settings, noise_budget.budget).items()
        if name and isinstance(schema[name], Numeric)
    }


def _compute_statistic_cost(schema: Schema, name: str, cost: Fraction) -> Fraction:
    """What each of a feature's releases costs: mean, variance and, if it is asked, presence."""
    return cost / 3 if schema[name].optional and schema.missing == "category" else cost / 2


def _release_statistics(
    source: Source, budget: Budget, settings: CentralSettings, random: Random, *, method: str
) -> Statistics:
    """Release two numbers for each class and numeric feature, each with a smooth bound."""
    noise_budget = SmoothNoiseBudget(settings.noise, budget)
    context = start_release(source, noise_budget.budget, settings, random, order=True)
    released_moments = {
        feature.name: _release_feature(context, feature, noise_budget, random, method)
        for feature in context.numeric_features
    }
    return build_statistics(context, released_moments, noise_budget.budget, settings)


release_smooth = partial(_release_statistics, method="smooth")
release_trimmed = partial(_release_statistics, method="trimmed")


def _release_feature(
    context: ReleaseContext,
    feature: Numeric,
    noise_budget: SmoothNoiseBudget,
    random: Random,
    method: str,
) -> Moments:
    name, grid = feature.name, Grid.from_feature(feature)
    statistic_cost = _compute_statistic_cost(context.schema, name, context.feature_costs[name])
    counts_missing = feature.optional and context.schema.missing == "category"
    presence_noise = (
        noise_budget.budget.spend_on_noise(f"presence of {name}", statistic_cost)
        if counts_missing
        else None
    )
    noisy_counts, noisy_missing = count_present(context, feature, presence_noise, random)
    alpha_mean, beta_mean = noise_budget.spend(f"mean of {name}", statistic_cost)
    alpha_variance, beta_variance = noise_budget.spend(f"variance of {name}", statistic_cost)
    order_statistics, noise_law = context.exact_statistics.order_statistics[name], noise_budget.law
    noisy_mean, second_moment = np.zeros(len(noisy_counts)), np.zeros(len(noisy_counts))
    for c, noisy_count in enumerate(noisy_counts):
        first_statistic, second_statistic = STATISTIC_PAIRS[method](
            order_statistics.indices(c),
            grid.levels,
            (beta_mean, beta_variance),
            float(noisy_count),
        )
        noisy_mean[c] = noise_law.release(
            first_statistic.value,
            first_statistic.sensitivity_bound / alpha_mean,
            random,
            OUTPUT_STEP,
        )
        second_moment[c] = noise_law.release(
            second_statistic.value,
            second_statistic.sensitivity_bound / alpha_variance,
            random,
            OUTPUT_STEP,
        )
    noisy_mean = np.clip(noisy_mean - grid.levels / 2, -grid.levels / 2, grid.levels / 2)
    noisy_variance = second_moment
    if method == "trimmed":
        noisy_variance = second_moment / 4 - noisy_mean**2
    # what is public about the noise of a variance: S is at least about (R/2)^2 / n
    variance_noise = (grid.levels / 2) ** 2 / (np.maximum(noisy_counts, 1.0) * alpha_variance)
    return make_moments(
        feature, noisy_counts, noisy_missing, noisy_mean, noisy_variance, variance_noise
    )
