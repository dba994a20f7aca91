"""Noise scaled to smooth sensitivity (Zafarani and Clifton), soundly: mean and variance.

For every class and numeric feature the noise is S(x) / alpha times a draw of a heavy-tailed law,
S a beta-smooth bound on how far one record can move the statistic, adding and removing records
included. S is private: neither it nor the variance of the noise is released. The class counts and
the tables of categorical features get exact discrete noise.

With delta = 0 the law is Cauchy's. With delta it is the normal one, as in the paper's figures, and
epsilon and delta add up; a concentrated law shares rho instead.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np

from discreet.arrays import Floats
from discreet.central.budget import Budget
from discreet.central.parametric import Parts, begin, described, finish, present
from discreet.central.settings import Settings
from discreet.central.source import Source
from discreet.encoding import Grid
from discreet.errors import PrivacyError
from discreet.randomness import Random
from discreet.schema import Numeric
from discreet.statistics import Moments, Statistics

__all__ = ["Spender", "smooth"]

LARGEST = 500.0
"""The laws are not calibrated beyond this epsilon; what is left of a share is given away."""

Pair = tuple[tuple[Fraction, float], tuple[Fraction, float]]


class Spender:
    """A noise law and the budget it draws on.

    Parameters
    ----------
    law : AdditiveNoise or None
        Cauchy without delta and Gaussian with it, if None.
    asked : Budget
        The promise as a whole.
    """

    def __init__(self, law: Any, asked: Budget) -> None:
        from discreet.mechanisms.additive import AdditiveNoise, Cauchy, Gaussian

        if law is None:
            law = Gaussian() if asked.delta else Cauchy()
        if not isinstance(law, AdditiveNoise):
            raise PrivacyError(f"noise={law!r}; give a law of discreet.mechanisms.additive")
        if law.promise != "pure" and not asked.delta:
            raise PrivacyError(f"{law} promises nothing without a delta; give one, or use Cauchy()")
        self.law = law
        concentrated = law.promise == "concentrated"
        self.budget = asked if concentrated else Budget(asked.epsilon, asked.delta, basic=True)

    def spend(self, name: str, cost: Fraction) -> tuple[float, float]:
        """Take a share and give (alpha, beta) for it."""
        self.budget.spend(name, cost)
        if self.budget.concentrated:  # rho = epsilon^2 / 2
            return self.law.calibrate(min(math.sqrt(2 * float(cost)) * (1 - 1e-12), LARGEST))
        below = min(float(cost) * (1 - 1e-12), LARGEST)
        delta = 0.0 if self.law.promise == "pure" else self.budget.delta_of(cost)
        return self.law.calibrate(below, delta)


def smooth(source: Source, budget: Budget, settings: Settings, random: Random) -> Statistics:
    """Release means and variances with noise scaled to their smooth sensitivity."""
    from discreet.central.smooth_sensitivity import smooth_mean, smooth_variance

    spender = Spender(settings.noise, budget)

    def pair(x: Floats, grid: Grid, of_mean: float, of_variance: float, count: float) -> Pair:
        lower, upper = grid.lower, grid.lower + grid.step * grid.levels
        middle, flat = Fraction(lower) / 2 + Fraction(upper) / 2, Fraction(0)
        mean, variance = exact_moments(x, grid) if len(x) else (middle, flat)
        return (
            (mean, smooth_mean(x, lower, upper, of_mean)),
            (variance, smooth_variance(x, lower, upper, of_variance)),
        )

    return run(source, spender, settings, random, pair)


def exact_moments(x: Floats, grid: Grid) -> tuple[Fraction, Fraction]:
    """Mean and variance of values on the grid, without rounding."""
    k = grid.index(x)
    n, total = len(k), int(k.sum())
    square = int(k @ k) if grid.levels**2 * n < 1 << 62 else sum(int(one) ** 2 for one in k)
    step = Fraction(grid.step)
    mean = Fraction(grid.lower) + step * Fraction(total, n)
    return mean, step * step * (Fraction(square, n) - Fraction(total, n) ** 2)


def run(
    source: Source,
    spender: Spender,
    settings: Settings,
    random: Random,
    pair: Callable[[Floats, Grid, float, float, float], Pair],
) -> Statistics:
    """Release two numbers a class and numeric feature, each with a smooth bound beside it."""
    budget = spender.budget
    parts = begin(source, budget, settings, random, order=True)
    released = {
        feature.name: _released(parts, feature, spender, random, pair) for feature in parts.numeric
    }
    return finish(parts, released, budget, settings, random)


def _released(
    parts: Parts,
    feature: Numeric,
    spender: Spender,
    random: Random,
    pair: Callable[[Floats, Grid, float, float, float], Pair],
) -> Moments:
    name, grid, cost = feature.name, Grid.of(feature), parts.costs[feature.name]
    category = feature.optional and parts.schema.missing == "category"
    number = spender.budget.noise(f"presence of {name}", cost / 3) if category else None
    share = cost / 3 if category else cost / 2
    counts, missing = present(parts, feature, number, random)
    alpha_mean, beta_mean = spender.spend(f"mean of {name}", share)
    alpha_variance, beta_variance = spender.spend(f"variance of {name}", share)
    order, law = parts.exact.orders[name], spender.law
    mean, variance = np.zeros(len(counts)), np.zeros(len(counts))
    for c, count in enumerate(counts):
        first, second = pair(order.values(c), grid, beta_mean, beta_variance, float(count))
        mean[c] = law.release(first[0], first[1] / alpha_mean, random, grid.step)
        fine = grid.step * grid.step
        variance[c] = law.release(second[0], second[1] / alpha_variance, random, fine)
    # how much noise there is depends on the data and is not said: infinity stands for it
    spread = np.full((3, len(counts)), math.inf)
    # what is public about the noise of a variance: S is at least about (R/2)^2 / n
    widest = (feature.upper - feature.lower) ** 2 / 4
    noise = widest / (np.maximum(counts, 1.0) * alpha_variance)
    return described(feature, counts, missing, mean, variance, spread, noise)
