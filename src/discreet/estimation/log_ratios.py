"""Scoring by log-ratios: log prior + beta times the sum over features of log r, r = P(v|c) / P(v).

For tables whose cells all carry the same known noise, as a curator releases them. Each feature's
log-ratios are estimated in several ways (shrunk_ratios.py) and averaged; which average, which
features and which beta serve best may be chosen privately among :meth:`LogRatios.candidates`. The
choice travels in the statistics.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from itertools import product
from typing import get_args

import numpy as np

from discreet.arrays import Floats
from discreet.estimation.corrections import Additive
from discreet.estimation.shrunk_ratios import Noisy, bayes, margin, normal, simple, tree
from discreet.model import CellFactor, PairFactor
from discreet.schema import Numeric
from discreet.scoring import RatiosOfBins, RatiosOfCategories, Scoring
from discreet.statistics import Statistics, Table

__all__ = ["LogRatios", "class_shares"]

TOPS = (1, 2, 4, 8, 16, 32)
"""Sizes of the sets of best features that are candidates besides all features."""

EVENNESS = np.array([1.0, 4.0, 16.0, 64.0])
"""Shapes of the Gamma law of class totals: with one of them, shares are Dirichlet beforehand."""
MEANS = (1e-2, 1.0, 16)
"""Means of a class total, as parts of the largest that the noise allows: from, to, how many."""
GRID = 128
WIDTH = 8.0
"""Standard deviations of the noise that are looked at on either side."""
FEWEST = 100
"""Floor of a class share: 1 / max(people, this times classes)."""


class LogRatios:
    """Log-ratios of all features in every way that is a candidate.

    Parameters
    ----------
    statistics : Statistics
        Tables, class totals and their variances.

    Attributes
    ----------
    prior : array of shape (classes,)
        Class shares.
    order : list of str
        The features, those that say most about the class first.
    """

    def __init__(self, statistics: Statistics) -> None:
        self.statistics = statistics
        self.prior = class_shares(statistics.totals, statistics.variances)
        category = statistics.schema.missing == "category"
        numeric, categorical, self._absent = {}, {}, {}
        for name, table in statistics.tables.items():
            end = table.cells.size if table.cells.missing is None else table.cells.missing
            deviation = math.sqrt(table.variances.max())
            if isinstance(table.cells.feature, Numeric):
                edges = np.asarray(table.cells.edges)
                numeric[name] = Noisy(table.counts[:, :end], deviation, edges)
                if end < table.cells.size and category:
                    self._absent[name] = _absence(table, deviation)
            else:
                end = table.cells.size if category else end
                categorical[name] = Noisy(table.counts[:, :end], deviation)
        self._margins = {n: margin(one) for n, one in (numeric | categorical).items()}
        self._of_bins = _bins(numeric, self.prior)
        learnt = bayes(categorical, self.prior)
        average = {n: (simple(one) + learnt[n]) / 2 for n, one in categorical.items()}
        self._of_categories = {"average": average, "learnt": learnt}
        # by mutual information of class and feature, as far as the shrunk ratios show it
        told = {
            name: -float((self.prior[:, None] * np.exp(ratio) * self._margins[name] * ratio).sum())
            for name, ratio in (self._of_bins["average"] | average).items()
        }
        self.order = sorted(told, key=told.__getitem__)

    def candidates(self) -> dict[Scoring, Additive]:
        """The default, its variants with all features, and the best few features alone."""
        default = self.statistics.scoring
        bins = get_args(RatiosOfBins)[: 2 if self._of_bins["average"] else 1]
        kinds = get_args(RatiosOfCategories)[: 2 if self._of_categories["average"] else 1]
        found = [
            replace(default, bins=way, categories=kind, beta=beta)
            for way, kind, beta in product(bins, kinds, (1.0, 0.5))
        ]
        for size in TOPS:
            if size < len(self.order):
                found.append(replace(default, features=tuple(self.order[:size])))
        return {scoring: self.model(scoring) for scoring in found}

    def model(self, scoring: Scoring) -> Additive:
        """Prior and beta log r of the features that a scoring uses, before any correction."""
        every = self._of_bins[scoring.bins] | self._of_categories[scoring.categories]
        found, ordered = {}, {}
        for name in every if scoring.features is None else scoring.features:
            if name not in every:  # it comes as moments
                continue
            ratio, cells = every[name], self.statistics.tables[name].cells
            whole = np.zeros((len(self.prior), cells.size))
            whole[:, : ratio.shape[1]] = ratio
            if name in self._absent:
                present, missing = self._absent[name]
                whole[:, :-1] += present
                whole[:, -1:] = missing
            found[name] = scoring.beta * whole
            ordered[name] = cells.values if cells.edges else 0
        return Additive(self.prior, found, ordered)

    def factors(self, scoring: Scoring) -> tuple[dict[str, CellFactor], list[PairFactor]]:
        """Factors beta log r + log P(cell): log P(cell | class) where nothing was corrected."""
        found, whole = {}, self.model(scoring)
        for one in self.statistics.corrections[: scoring.corrections]:
            whole, _ = whole.corrected(one)
        for name, evidence in whole.tables.items():
            share = np.ones(evidence.shape[1])
            share[: len(self._margins[name])] = self._margins[name]
            score = evidence + np.log(share)
            cells = self.statistics.tables[name].cells
            found[name] = CellFactor(cells, score - max(0.0, float(score.max())))
        tables = self.statistics.tables
        pairs = [
            PairFactor((tables[a].cells, tables[b].cells), (one, two), table)
            for ((a, one), (b, two)), table in whole.pairs.items()
        ]
        return found, pairs


def class_shares(totals: Floats, variances: Floats) -> Floats:
    """Posterior means of the class shares, when totals carry normal noise of known variance.

    Beforehand the totals are independent Gamma variables of one common law: its mean (the number
    of people) and its shape (how even the classes are) are open and averaged by their evidence.
    Little noise leaves the totals as they are; noise that leaves everything open gives nearly
    equal shares, but never a tie: where features say nothing, the largest noisy total decides.

    Parameters
    ----------
    totals : array of shape (classes,)
        May be negative.
    variances : array of shape (classes,)

    Returns
    -------
    array of shape (classes,)

    Examples
    --------
    >>> class_shares(np.array([60.0, 30.0, 10.0]), np.zeros(3)).round(3).tolist()
    [0.6, 0.3, 0.1]
    >>> class_shares(np.array([60.0, 30.0, 10.0]), np.full(3, 900.0)).round(2).tolist()
    [0.38, 0.32, 0.3]
    """
    from scipy.special import gammaln  # late: a command that does not estimate need not load it

    totals = np.asarray(totals, dtype=float)
    noise = np.maximum(np.sqrt(variances), 1e-9 * max(float(np.abs(totals).max()), 1.0))
    low = np.maximum(totals - WIDTH * noise, 0.0)
    high = np.maximum(totals + WIDTH * noise, WIDTH * noise)
    grid = low + (high - low) * ((np.arange(GRID)[:, None] + 0.5) / GRID)
    # every mean total that the noise does not exclude, and every evenness
    means = max(float(high.max()), 1.0) * np.geomspace(*MEANS)
    shape, mean = (one.reshape(-1, 1, 1) for one in np.meshgrid(EVENNESS, means))
    logs = (shape - 1) * np.log(grid) - shape * grid / mean + shape * np.log(shape / mean)
    logs = logs - gammaln(shape) - 0.5 * ((grid - totals) / noise) ** 2
    top = logs.max(axis=1, keepdims=True)
    weight = np.exp(logs - top)
    mass = weight.sum(axis=1)
    # the grids differ between classes, but are the same for every law
    evidence = (np.log(mass) + top[:, 0]).sum(axis=1)
    chance = np.exp(evidence - evidence.max())
    found = (weight * grid).sum(axis=1) / mass
    shares = found / found.sum(axis=1, keepdims=True)
    least = 1 / max(float(totals.sum()), FEWEST * len(totals))
    share = np.maximum(chance @ shares / chance.sum(), least)
    return np.asarray(share / share.sum())


def _bins(numeric: Mapping[str, Noisy], prior: Floats) -> dict[str, dict[str, Floats]]:
    """Ratios of numeric features: the mean of three estimates, and that with a normal density."""
    learnt = bayes(numeric, prior)
    groups: dict[int, list[str]] = {}
    for name, one in numeric.items():  # features with equally many bins are done together
        groups.setdefault(one.counts.shape[1], []).append(name)
    average, fitted = {}, {}
    for names in groups.values():
        counts = np.array([numeric[name].counts for name in names])
        trees = tree(counts, np.array([numeric[name].deviation for name in names]))
        for name, by_class, pooled in zip(names, *trees, strict=True):
            steps = np.log(by_class / pooled)
            average[name] = (simple(numeric[name]) + steps + learnt[name]) / 3
            dense = (steps + normal(by_class, pooled, numeric[name])) / 2
            fitted[name] = (average[name] + dense) / 2
    return {
        "average": {name: average[name] for name in numeric},
        "fitted": {name: fitted[name] for name in numeric},
    }


def _absence(table: Table, deviation: float) -> tuple[Floats, Floats]:
    """Log-ratios of a numeric value's being present and missing, each of shape (classes, 1)."""
    pair = np.stack([table.counts[:, :-1].sum(axis=1), table.counts[:, -1]], axis=1)
    ratio = simple(Noisy(pair, deviation * math.sqrt(table.cells.size - 1)))
    return ratio[:, :1], ratio[:, 1:]
