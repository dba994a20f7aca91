"""From released tables to models: the log-ratios of all features in every way of scoring.

Post-processing of released numbers only.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from discreet.arrays import Floats
from discreet.central import ratios
from discreet.central.selection import Scoring
from discreet.encoding import Cells
from discreet.model import CellFactor, NaiveBayesModel
from discreet.schema import Numeric, Schema
from discreet.statistics import Statistics, Table

__all__ = ["Evidence"]


TOPS = (1, 2, 4, 8, 16, 32)
"""Sizes of the sets of best features that are candidates beside all features."""


class Evidence:
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
        """All features, the mean of several estimates, no toning down."""
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
