"""The default: one release of all class-by-cell tables, and careful post-processing.

1. 2 % of the budget: class counts.
2. From their sum alone: how finely numeric features are cut, and whether step 5 takes place.
3. The rest: every feature's class-by-cell table. A record is in one cell of each.
4. Post-processing: class totals pooled over all tables, evidence shrunk by the known noise.
5. On tables that are large enough, 5 % of the budget chooses between a few scorings.

Accounting: a record changes one class count by one, one cell of each table by one, and the
qualities of step 5 by at most one in one direction. The shares add up to the whole.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.central import ratios
from discreet.central.budget import Budget, shares, weights_of
from discreet.central.resolution import cut_points
from discreet.central.selection import Scoring, choose, right
from discreet.central.settings import Settings, Trained, check_bounded
from discreet.central.source import Source
from discreet.encoding import Cells
from discreet.estimation import estimate
from discreet.model import CellFactor, NaiveBayesModel
from discreet.randomness import Random
from discreet.schema import Numeric, Schema
from discreet.statistics import Statistics, Table

__all__ = ["exact", "histogram"]

Floats = NDArray[np.float64]

FOR_COUNTS = Fraction(2, 100)
FOR_SELECTION = Fraction(5, 100)
ENOUGH = 30
"""People times epsilon from which on the selection is worth its cost."""
LEAST = 1e-6
"""Noise variance from which on it counts as none, for numerical safety."""
TOPS = (1, 2, 4, 8, 16, 32)
"""Sizes of the sets of best features that are candidates beside all features."""


def histogram(source: Source, budget: Budget, settings: Settings, random: Random) -> Trained:
    """Release noisy tables and make a model of them."""
    schema = source.schema
    check_bounded(schema)
    weights = weights_of(schema, settings.allocation, 1, 1)
    classes, unit, value = len(schema.classes), source.unit, source.value
    first = budget.noise("class counts", budget.whole * FOR_COUNTS, unit)
    counts = np.asarray(value * first.add(source.totals(), random), dtype=np.float64)
    people = max(float(counts.sum()), 0.0) / (unit * value)
    surely = max(people - math.sqrt(classes * first.variance) / unit, 0.0)

    wanted = budget.whole * FOR_SELECTION
    strength = wanted if not budget.concentrated else Fraction(math.sqrt(8 * float(wanted)))
    selecting = settings.selection and unit == 1 and people * strength >= ENOUGH
    # with delta the split is fixed in advance
    reserved = wanted if selecting or budget.concentrated else Fraction(0)
    noises = {
        name: budget.noise(f"table of {name}", cost, unit)
        for name, cost in shares(weights, budget.left - reserved).items()
    }
    bins = _bins(schema, settings.bins, surely, {n: one.variance for n, one in noises.items()})
    tables: dict[str, Table] = {}
    for name, table in source.count(bins=bins).tables.items():
        drawn = noises[name].add(table.counts, random)
        variances = np.full(table.counts.shape, value**2 * max(noises[name].variance, LEAST))
        tables[name] = Table(table.cells, value * drawn, variances)
    totals, variance = _totals(counts, value**2 * max(first.variance, LEAST), tables)
    evidence = _Evidence(schema, tables, _prior(totals, variance))
    candidates = evidence.candidates() if selecting else [evidence.default()]
    picked = candidates[0]
    if selecting:
        epsilon = budget.selection("choice of scoring", reserved)
        cells = {name: table.cells for name, table in tables.items()}
        quality = right(source, cells, candidates, people, float(epsilon), random)
        picked = candidates[choose(quality, epsilon, random)]
    promise = budget.guarantee(settings.assumptions, random.simulated)
    spread = np.full(classes, variance)
    statistics = Statistics(schema, totals, spread, tables, guarantee=promise)
    return Trained(statistics, evidence.model(picked, statistics))


def exact(source: Source, settings: Settings) -> Trained:
    """The limit of infinite epsilon: the exact binned classifier, without pseudo-counts."""
    schema = source.schema
    check_bounded(schema)
    people = float(source.totals().sum()) / source.unit
    scale = len(schema.features) / 8  # finer bins than at epsilon 8 would only overfit
    bins = _bins(schema, settings.bins, people, dict.fromkeys(schema.names, 2 * scale**2))
    found = source.count(bins=bins)
    tables = {n: Table(one.cells, source.value * one.counts) for n, one in found.tables.items()}
    statistics = Statistics(schema, source.value * found.totals, tables=tables)
    return Trained(statistics, estimate(statistics, "none", smoothing=0.0))


def _bins(
    schema: Schema, chosen: Any, people: float, variances: Mapping[str, float]
) -> dict[str, Any]:
    """Cut points of every numeric feature, as chosen or by the rule."""
    cuts: dict[str, Any] = {}
    for feature in schema.features:
        if not isinstance(feature, Numeric):
            continue
        own: Any = chosen if isinstance(chosen, int) else None
        if isinstance(chosen, Mapping):
            own = chosen.get(feature.name)
        if own is None:
            scale = math.sqrt(max(variances[feature.name], LEAST) / 2)
            own = cut_points(feature, people / (len(schema.classes) * scale))
        cuts[feature.name] = own
    return cuts


def _totals(counts: Floats, variance: float, tables: Mapping[str, Table]) -> tuple[Floats, float]:
    """Class totals: the mean of all sums that estimate them, weighted by their precision."""
    precision, weighted = 1 / variance, counts / variance
    for table in tables.values():
        own = 1 / float(table.variances[0].sum())
        precision, weighted = precision + own, weighted + own * table.counts.sum(axis=1)
    return np.asarray(weighted / precision), 1 / precision


def _prior(totals: Floats, variance: float) -> Floats:
    """Class shares, shrunk towards equal ones by twice what James and Stein do with their noise."""
    people = max(float(totals.sum()), 1.0)
    even = people / len(totals)
    away = totals - even
    keep = max(0.0, 1 - 2 * (len(totals) - 1) * variance / max(float(away @ away), 1e-9))
    kept = np.maximum(even + keep * away, 1.0)
    return np.asarray(kept / kept.sum())


class _Evidence:
    """Log-ratios of all features in every way that is a candidate."""

    def __init__(self, schema: Schema, tables: Mapping[str, Table], prior: Floats) -> None:
        self.schema, self.tables, self.prior = schema, tables, prior
        self.margins: dict[str, Floats] = {}
        numeric, categorical, self.absent = {}, {}, {}
        for name, table in tables.items():
            end = table.cells.size if table.cells.missing is None else table.cells.missing
            deviation = math.sqrt(table.variances[0, 0])
            if isinstance(table.cells.feature, Numeric):
                edges = np.asarray(table.cells.edges)
                numeric[name] = ratios.Noisy(table.counts[:, :end], deviation, edges)
                if end < table.cells.size and schema.missing == "category":
                    self.absent[name] = _absence(table, deviation)
            else:
                end = table.cells.size if schema.missing == "category" else end
                categorical[name] = ratios.Noisy(table.counts[:, :end], deviation)
        learnt = ratios.bayes(numeric, prior)
        self.smooth, self.fitted = {}, {}
        trees = _trees(numeric)
        for name, one in numeric.items():
            self.margins[name] = ratios.margin(one)
            by_class, pooled = trees[name]
            steps = np.log(by_class / pooled)
            self.smooth[name] = (ratios.simple(one) + steps + learnt[name]) / 3
            fitted = (steps + ratios.normal(by_class, pooled, one)) / 2
            self.fitted[name] = (self.smooth[name] + fitted) / 2
        self.learnt = ratios.bayes(categorical, prior)
        self.mixed = {}
        for name, one in categorical.items():
            self.margins[name] = ratios.margin(one)
            self.mixed[name] = (ratios.simple(one) + self.learnt[name]) / 2

    def default(self) -> Scoring:
        return self._scoring(self.smooth | self.mixed)

    def candidates(self) -> list[Scoring]:
        """The default, its variants with all features, and the best few features alone."""
        found = []
        for numeric in [self.smooth, self.fitted][: 2 if self.smooth else 1]:
            for categorical in [self.mixed, self.learnt][: 2 if self.mixed else 1]:
                found += [self._scoring(numeric | categorical, beta) for beta in (1.0, 0.5)]
        whole = self.smooth | self.mixed
        order = sorted(whole, key=lambda name: -self._information(name, whole[name]))
        for size in TOPS:
            if size < len(order):
                found.append(self._scoring({name: whole[name] for name in order[:size]}))
        return found

    def _information(self, name: str, ratio: Floats) -> float:
        """Mutual information of class and feature, as far as the shrunk ratios show it."""
        joint = self.prior[:, None] * np.exp(ratio) * self.margins[name]
        return float((joint * ratio).sum())

    def _scoring(self, chosen: dict[str, Floats], beta: float = 1.0) -> Scoring:
        full = {}
        for name, ratio in chosen.items():
            full[name] = np.zeros(self.tables[name].counts.shape)
            full[name][:, : ratio.shape[1]] = ratio
            if name in self.absent:
                present, missing = self.absent[name]
                full[name][:, :-1] += present
                full[name][:, -1:] = missing
        return Scoring(np.log(self.prior), full, beta)

    def model(self, picked: Scoring, statistics: Statistics) -> NaiveBayesModel:
        """A model whose factors are beta log r + log P, P(cell | class) where beta is one."""
        factors = []
        for name, ratio in picked.ratios.items():
            margin = np.ones(ratio.shape[1])
            margin[: len(self.margins[name])] = self.margins[name]
            cells: Cells = self.tables[name].cells
            score = picked.beta * ratio + np.log(margin)
            factors.append(CellFactor(cells, score - max(0.0, float(score.max()))))
        by_name = {factor.name: factor for factor in factors}
        ordered = [by_name[name] for name in self.schema.names if name in by_name]
        return NaiveBayesModel(self.schema, picked.log_prior, ordered, statistics.guarantee)


def _trees(features: Mapping[str, ratios.Noisy]) -> dict[str, tuple[Floats, Floats]]:
    """The tree of every feature; those with equally many bins are done together."""
    groups: dict[int, list[str]] = {}
    for name, one in features.items():
        groups.setdefault(one.counts.shape[1], []).append(name)
    found = {}
    for names in groups.values():
        counts = np.array([features[name].counts for name in names])
        by_class, pooled = ratios.tree(counts, np.array([features[n].deviation for n in names]))
        found.update({name: (by_class[i], pooled[i]) for i, name in enumerate(names)})
    return found


def _absence(table: Table, deviation: float) -> tuple[Floats, Floats]:
    """Log-ratios of a numeric value's being present and missing, each of shape (classes, 1)."""
    pair = np.stack([table.counts[:, :-1].sum(axis=1), table.counts[:, -1]], axis=1)
    ratio = ratios.simple(ratios.Noisy(pair, deviation * math.sqrt(table.cells.size - 1)))
    return ratio[:, :1], ratio[:, 1:]
