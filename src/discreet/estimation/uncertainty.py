"""How far a decision can be trusted: would the classifier without noise decide the same?

Statistics come with the variance of every number, so the exact numbers behind them can be drawn:
around what the model takes for the truth, as far away as its noise leaves open. A decision that the
drawn classifiers share is steady; one that they flip is a matter of chance.

How wide the draws are follows from how much the model believes its numbers. With m the counts that
the model stands for, y the noisy ones and f those of a feature that says nothing of the class, the
share of (y - f) that was kept is l = sum (m - f)(y - f)/V / sum (y - f)^2/V, and the posterior
variance of normal noise on a normal truth is l V. Because l is itself an estimate, each draw has a
common scale from a Student distribution of four degrees of freedom, and two draws in fifty are set
aside for what this leaves out. Checked by simulation: tests/estimation/test_uncertainty.py.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from discreet.arrays import Floats
from discreet.errors import EstimationError
from discreet.estimation.from_statistics import estimate
from discreet.model import CellFactor, GaussianFactor, NaiveBayesModel
from discreet.randomness import Random, as_random
from discreet.statistics import Scoring, Statistics, Table

__all__ = ["drawn_models", "steadiness"]

DRAWS = 200
ASIDE = 0.04
"""Share of the belief that is kept back, equally for and against."""


def steadiness(
    statistics: Statistics,
    rows: Any,
    *,
    draws: int = DRAWS,
    random_state: int | Random | None = None,
) -> Floats:
    """For each row, how probably the classifier without noise would decide the same.

    Parameters
    ----------
    statistics : Statistics
        Noisy numbers with their variances; what the model was made of.
    rows : data frame, Arrow table, mapping of columns or array
    draws : int, default 200
        Classifiers that are drawn.
    random_state : None, int or Random
        For the draws, which reveal nothing that was not released.

    Returns
    -------
    array of float, (rows,)
        Between 0.02 and 0.98 where there is noise; 1 where there is none.

    Examples
    --------
    >>> from discreet import LocalNB
    >>> from discreet.datasets import mortgage
    >>> people = mortgage(4000)
    >>> nb = LocalNB(2.0, schema=people.schema, random_state=0).fit(people.X, people.y)
    >>> steady = steadiness(nb.statistics_, people.X[:100], draws=50, random_state=0)
    >>> bool(0.5 < steady.mean() < 1)
    True
    """
    model = estimate(statistics)
    decision = model.predict_joint_log_proba(rows).argmax(axis=1)
    if statistics.exact:
        return np.ones(len(decision))
    same = np.zeros(len(decision))
    for drawn in drawn_models(statistics, draws, random_state):
        same += drawn.predict_joint_log_proba(rows).argmax(axis=1) == decision
    return np.asarray(ASIDE / 2 + (1 - ASIDE) * same / draws)


def drawn_models(
    statistics: Statistics, draws: int = DRAWS, random_state: int | Random | None = None
) -> Iterator[NaiveBayesModel]:
    """Classifiers of exact numbers that the noisy ones leave possible.

    Parameters
    ----------
    statistics : Statistics
    draws : int, default 200
    random_state : None, int or Random
    """
    if draws < 1:
        raise EstimationError(f"{draws} draws say nothing; write at least 1")
    spreads = [one.variances for one in statistics.tables.values()]
    spreads += [one.variances for one in statistics.moments.values()]
    if not all(np.isfinite(one).all() for one in [statistics.variances, *spreads]):
        raise EstimationError(
            "the noise of these statistics has no variance (Cauchy's), so what lies behind them "
            "cannot be drawn; train with another method"
        )
    seed = as_random(random_state).words(4)
    rng = np.random.default_rng(seed)  # to imagine, not to protect
    believed = _Believed(statistics)
    for _ in range(draws):
        yield believed.draw(rng, 1 / np.sqrt(rng.gamma(2.0) / 2.0))


class _Believed:
    """What the model takes for the truth, and how far the truth may lie from it."""

    def __init__(self, statistics: Statistics) -> None:
        self.statistics, model = statistics, estimate(statistics)
        self.model = model
        share = np.exp(model.log_prior)
        self.totals = share * max(float(np.sum(statistics.totals)), 1.0)
        self.counts: dict[str, Floats] = {}
        self.spread: dict[str, Floats] = {}
        self.densities = [one for one in model.factors if isinstance(one, GaussianFactor)]
        for factor in model.factors:
            if isinstance(factor, CellFactor):
                self._believe(factor, share)

    def _believe(self, factor: CellFactor, share: Floats) -> None:
        table, schema = self.statistics.tables[factor.name], self.statistics.schema
        skipped = schema.missing == "skip" and table.cells.missing is not None
        end = table.cells.size - skipped
        noisy = np.array(table.counts, dtype=float)
        kept = np.exp(factor.log_probability[:, :end])
        kept /= kept.sum(axis=1, keepdims=True)
        whole = np.maximum(self.totals - np.maximum(noisy[:, end:], 0.0).sum(axis=1), 1.0)
        found = noisy.copy()
        found[:, :end] = whole[:, None] * kept
        variance = np.array(table.variances, dtype=float)
        silent = share[:, None] * found[:, :end].sum(axis=0)
        weight = 1 / np.maximum(variance[:, :end], 1e-12)
        away = noisy[:, :end] - silent
        believed = float((weight * (found[:, :end] - silent) * away).sum())
        believed = min(max(believed / max(float((weight * away**2).sum()), 1e-12), 0.0), 1.0)
        self.counts[factor.name] = found
        self.spread[factor.name] = np.sqrt(believed * variance)

    def draw(self, rng: np.random.Generator, scale: float) -> NaiveBayesModel:
        """One classifier."""
        given = self.statistics
        tables = {
            name: Table(
                given.tables[name].cells,
                counts + scale * self.spread[name] * rng.standard_normal(counts.shape),
            )
            for name, counts in self.counts.items()
        }
        noise = scale * np.sqrt(given.variances) * rng.standard_normal(len(self.totals))
        exact = Statistics(
            given.schema,
            np.maximum(self.totals + noise, 1.0),
            tables=tables,
            projection=given.projection,
            scoring=Scoring("norm-sub"),
        )
        model = estimate(exact)
        densities = [self._density(one, rng, scale) for one in self.densities]
        return NaiveBayesModel(
            model.schema,
            model.log_prior,
            [*model.factors, *densities],
            given.guarantee,
            given.projection,
        )

    def _density(
        self, one: GaussianFactor, rng: np.random.Generator, scale: float
    ) -> GaussianFactor:
        moments = self.statistics.moments[one.name]
        counts = np.maximum(np.asarray(moments.counts, float), 1.0)
        of_mean = moments.step * np.sqrt(moments.variances[1]) / counts
        of_square = moments.step**2 * np.sqrt(moments.variances[2]) / counts
        mean = one.mean + scale * of_mean * rng.standard_normal(len(counts))
        mean = np.clip(mean, one.feature.lower, one.feature.upper)
        variance = one.variance + scale * of_square * rng.standard_normal(len(counts))
        return GaussianFactor(
            one.feature, mean, np.maximum(variance, one.variance / 10), one.truncated, one.missing
        )
