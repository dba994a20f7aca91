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
from discreet.statistics import (
    RatiosOfBins,
    RatiosOfCategories,
    Scoring,
    Statistics,
    Table,
)

__all__ = ["LogRatios"]

TOPS = (1, 2, 4, 8, 16, 32)
"""Sizes of the sets of best features that are candidates beside all features."""


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
        self.prior = _prior(statistics)
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

    def candidates(self) -> list[Scoring]:
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
        return found

    def evidence(self, scoring: Scoring) -> dict[str, Floats]:
        """Beta log r of the features that a scoring uses, each of shape (classes, cells)."""
        every = self._of_bins[scoring.bins] | self._of_categories[scoring.categories]
        found = {}
        for name in every if scoring.features is None else scoring.features:
            if name not in every:  # it comes as moments
                continue
            ratio = every[name]
            whole = np.zeros(self.statistics.tables[name].counts.shape)
            whole[:, : ratio.shape[1]] = ratio
            if name in self._absent:
                present, missing = self._absent[name]
                whole[:, :-1] += present
                whole[:, -1:] = missing
            found[name] = scoring.beta * whole
        return found

    def additive(self, scoring: Scoring) -> Additive:
        """The model that a scoring starts from, before any correction."""
        tables = self.statistics.tables
        bins = {name: one.cells.values if one.cells.edges else 0 for name, one in tables.items()}
        return Additive(self.prior, self.evidence(scoring), bins)

    def factors(self, scoring: Scoring) -> tuple[dict[str, CellFactor], list[PairFactor]]:
        """Factors beta log r + log P(cell): log P(cell | class) where nothing was corrected."""
        found, whole = {}, self.additive(scoring)
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


def _prior(statistics: Statistics) -> Floats:
    """Class shares, shrunk towards equal ones by twice what James and Stein do with their noise."""
    totals = np.asarray(statistics.totals, dtype=float)
    people = max(float(totals.sum()), 1.0)
    even = people / len(totals)
    away = totals - even
    noise = (len(totals) - 1) * float(statistics.variances.max())
    keep = max(0.0, 1 - 2 * noise / max(float(away @ away), 1e-9))
    kept = np.maximum(even + keep * away, 1.0)
    return np.asarray(kept / kept.sum())


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
