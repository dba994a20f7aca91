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
from typing import Any

import numpy as np

from discreet.arrays import Integers
from discreet.central.budget import Budget, Settings
from discreet.central.parametric import Parts, begin, costs_of, described, finish, present
from discreet.encoding import Grid
from discreet.errors import PrivacyError
from discreet.randomness import Random
from discreet.schema import Numeric, Schema
from discreet.statistics import Moments, Statistics
from discreet.tables.source import Source

__all__ = ["PAIRS", "Spender", "scales", "smooth", "trim_for", "trimmed"]

LARGEST = 500.0
"""Largest epsilon that laws are calibrated for; the rest of a share is not used."""
FINE = Fraction(1, 1024)
"""Steps of the grid, and squares of them, to which what is released is rounded."""


@dataclass(frozen=True)
class Spread:
    """A statistic of whole numbers 0 … levels, and a smooth bound on how far a record moves it."""

    value: Fraction
    bound: float


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
        self._found: dict[Fraction, tuple[float, float]] = {}  # a search for each, and few differ
        concentrated = law.promise == "concentrated"
        self.budget = asked if concentrated else Budget(asked.epsilon, asked.delta, basic=True)

    def spend(self, name: str, cost: Fraction) -> tuple[float, float]:
        """Take a share and give (alpha, beta) for it."""
        found = self.calibrated(cost)
        self.budget.spend(name, cost)
        return found

    def calibrated(self, cost: Fraction) -> tuple[float, float]:
        """What (alpha, beta) a share of the budget allows."""
        if cost not in self._found:
            self._found[cost] = self._calibrated(cost)
        return self._found[cost]

    def _calibrated(self, cost: Fraction) -> tuple[float, float]:
        if self.budget.concentrated:  # rho = epsilon^2 / 2
            return self.law.calibrate(min(math.sqrt(2 * float(cost)) * (1 - 1e-12), LARGEST))
        below = min(float(cost) * (1 - 1e-12), LARGEST)
        delta = 0.0 if self.law.promise == "pure" else self.budget.delta_of(cost)
        return self.law.calibrate(below, delta)


Pair = Callable[[Integers, int, tuple[float, float], float], tuple[Spread, Spread]]
"""From sorted grid indices, their levels, two betas and a noisy count to what is released."""


def smooth(source: Source, budget: Budget, settings: Settings, random: Random) -> Statistics:
    """Release means and variances with noise scaled to their smooth sensitivity."""
    return _run(source, Spender(settings.noise, budget), settings, random, PAIRS["smooth"])


def trimmed(source: Source, budget: Budget, settings: Settings, random: Random) -> Statistics:
    """Release trimmed means of values and squares."""
    return _run(source, Spender(settings.noise, budget), settings, random, PAIRS["trimmed"])


def _mean_and_variance(
    k: Integers, levels: int, betas: tuple[float, float], count: float
) -> tuple[Spread, Spread]:
    from discreet.central.smooth_sensitivity import smooth_mean, smooth_variance

    n = len(k)
    mean, variance = Fraction(levels, 2), Fraction(0)
    if n:
        square = int(k @ k) if levels**2 * n < 1 << 62 else sum(int(one) ** 2 for one in k)
        mean = Fraction(int(k.sum()), n)
        variance = Fraction(square, n) - mean**2
    return (
        Spread(mean, smooth_mean(k, 0, levels, betas[0])),
        Spread(variance, smooth_variance(k, 0, levels, betas[1])),
    )


def trim_for(count: float, beta: float) -> int:
    """Number of values to trim at each end; it depends only on what is already private.

    >>> trim_for(1000.0, 1.0), trim_for(1000.0, 0.01), trim_for(-3.0, 1.0)
    (7, 125, 0)
    """
    if count < 8:
        return 0
    return min(math.ceil(math.log(count) / beta), math.floor(count / 8))


def _trimmed_means(
    k: Integers, levels: int, betas: tuple[float, float], count: float
) -> tuple[Spread, Spread]:
    """Trimmed means of k, and of m^2 with m = 2k - L."""
    from discreet.central.smooth_sensitivity import smooth_trimmed_mean, trimmed_mean

    trims = [trim_for(count, beta) for beta in betas]
    squares = np.sort((2 * k - levels) ** 2)
    return (
        Spread(
            trimmed_mean(k, trims[0], 0, levels),
            smooth_trimmed_mean(k, trims[0], 0, levels, betas[0]),
        ),
        Spread(
            trimmed_mean(squares, trims[1], 0, levels**2),
            smooth_trimmed_mean(squares, trims[1], 0, levels**2, betas[1]),
        ),
    )


PAIRS: dict[str, Pair] = {"smooth": _mean_and_variance, "trimmed": _trimmed_means}


def scales(schema: Schema, budget: Budget, settings: Settings) -> dict[str, tuple[float, float]]:
    """(alpha, beta) of every numeric feature; they do not depend on the data."""
    spender = Spender(settings.noise, budget)
    return {
        name: spender.calibrated(_share(schema, name, cost))
        for name, cost in costs_of(schema, settings, spender.budget).items()
        if name and isinstance(schema[name], Numeric)
    }


def _share(schema: Schema, name: str, cost: Fraction) -> Fraction:
    """What each of a feature's releases costs: mean, variance and, if it is asked, presence."""
    return cost / 3 if schema[name].optional and schema.missing == "category" else cost / 2


def _run(
    source: Source, spender: Spender, settings: Settings, random: Random, pair: Pair
) -> Statistics:
    """Release two numbers for each class and numeric feature, each with a smooth bound."""
    parts = begin(source, spender.budget, settings, random, order=True)
    released = {
        feature.name: _released(parts, feature, spender, random, pair) for feature in parts.numeric
    }
    return finish(parts, released, spender.budget, settings)


def _released(
    parts: Parts, feature: Numeric, spender: Spender, random: Random, pair: Pair
) -> Moments:
    name, cost, grid = feature.name, parts.costs[feature.name], Grid.of(feature)
    share = _share(parts.schema, name, cost)
    category = feature.optional and parts.schema.missing == "category"
    number = spender.budget.noise(f"presence of {name}", share) if category else None
    counts, missing = present(parts, feature, number, random)
    alpha_mean, beta_mean = spender.spend(f"mean of {name}", share)
    alpha_variance, beta_variance = spender.spend(f"variance of {name}", share)
    betas, order, law = (beta_mean, beta_variance), parts.exact.orders[name], spender.law
    mean, second = np.zeros(len(counts)), np.zeros(len(counts))
    for c, count in enumerate(counts):
        one, two = pair(order.indices(c), grid.levels, betas, float(count))
        mean[c] = law.release(one.value, one.bound / alpha_mean, random, FINE)
        second[c] = law.release(two.value, two.bound / alpha_variance, random, FINE)
    mean = np.clip(mean - grid.levels / 2, -grid.levels / 2, grid.levels / 2)
    variance = second if pair is _mean_and_variance else second / 4 - mean**2
    # what is public about the noise of a variance: S is at least about (R/2)^2 / n
    noise = (grid.levels / 2) ** 2 / (np.maximum(counts, 1.0) * alpha_variance)
    return described(feature, counts, missing, mean, variance, noise)
