"""Scoring by log-ratios: log prior + beta times the sum over features of log r, r = P(v|c) / P(v).

For tables whose cells all carry the same known noise, as a curator releases them. Each feature's
log-ratios are estimated in several ways (shrunk_ratios.py) and averaged; which average, which
features and which beta serve best may be chosen privately among :meth:`LogRatios.build_candidates`.
The choice travels in the statistics.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import product
from typing import get_args

import numpy as np

from discreet.arrays import Floats
from discreet.estimation.corrections import AdditiveModel
from discreet.estimation.shrunk_ratios import (
    NoisyCounts,
    estimate_bayes_ratios,
    estimate_normal_ratios,
    estimate_simple_ratios,
    estimate_tree_shares,
)
from discreet.model import CellFactor, PairFactor
from discreet.schema.schema import Numeric
from discreet.statistics.scoring import BinRatios, CategoryRatios, Correction, Scoring
from discreet.statistics.statistics import Statistics, Table

__all__ = ["LogRatios", "estimate_class_shares"]

FEATURE_SET_SIZES = (1, 2, 4, 8, 16, 32)
"""Sizes of the sets of best features that are candidates besides all features."""

GAMMA_SHAPES = np.array([1.0, 4.0, 16.0, 64.0])
"""Shapes of the Gamma law of class totals: with one of them, shares are Dirichlet beforehand."""
MEAN_TOTAL_GRID = (1e-2, 1.0, 16)
"""Means of a class total, as parts of the largest that the noise allows: from, to, how many."""
TOTAL_GRID_POINTS = 128
"""Points of the grid of class totals: docs/maths.md, "Class shares of log-ratios"."""
GRID_HALF_WIDTH = 8.0
"""Standard deviations of the noise that are looked at on either side."""
FLOOR_PEOPLE_PER_CLASS = 100
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
    ranked_features : list of str
        The features, those that say most about the class first.
    """

    def __init__(self, statistics: Statistics) -> None:
        self.statistics = statistics
        self.prior = estimate_class_shares(statistics.totals, statistics.variances)
        counts_missing = statistics.schema.missing == "category"
        bin_tables, category_tables, self._absence_ratios = {}, {}, {}
        for name, table in statistics.tables.items():
            cell_count = (
                table.cells.size if table.cells.missing_index is None else table.cells.missing_index
            )
            noise_std = math.sqrt(table.variances.max())
            if isinstance(table.cells.feature, Numeric):
                bin_edges = np.asarray(table.cells.edges)
                bin_tables[name] = NoisyCounts(table.counts[:, :cell_count], noise_std, bin_edges)
                if cell_count < table.cells.size and counts_missing:
                    self._absence_ratios[name] = _estimate_absence_ratios(table, noise_std)
            else:
                cell_count = table.cells.size if counts_missing else cell_count
                category_tables[name] = NoisyCounts(table.counts[:, :cell_count], noise_std)
        self._margins = {
            table_name: noisy_table.margin
            for table_name, noisy_table in (bin_tables | category_tables).items()
        }
        self._bin_ratios = _estimate_bin_ratios(bin_tables, self.prior)
        bayes_ratios = estimate_bayes_ratios(category_tables, self.prior)
        average_ratios = {
            table_name: (estimate_simple_ratios(noisy_table) + bayes_ratios[table_name]) / 2
            for table_name, noisy_table in category_tables.items()
        }
        self._category_ratios = {"average": average_ratios, "learnt": bayes_ratios}
        # by mutual information of class and feature, as far as the shrunk ratios show it
        negative_information = {
            name: -float(
                (self.prior[:, None] * np.exp(log_ratio) * self._margins[name] * log_ratio).sum()
            )
            for name, log_ratio in (self._bin_ratios["average"] | average_ratios).items()
        }
        self.ranked_features = sorted(negative_information, key=negative_information.__getitem__)

    def build_candidates(self) -> dict[Scoring, AdditiveModel]:
        """The default, its variants with all features, and the best few features alone."""
        default_scoring = self.statistics.scoring
        bin_choices = get_args(BinRatios)[: 2 if self._bin_ratios["average"] else 1]
        category_choices = get_args(CategoryRatios)[: 2 if self._category_ratios["average"] else 1]
        candidate_scorings = [
            replace(default_scoring, bins=bin_choice, categories=category_choice, beta=beta)
            for bin_choice, category_choice, beta in product(
                bin_choices, category_choices, (1.0, 0.5)
            )
        ]
        for set_size in FEATURE_SET_SIZES:
            if set_size < len(self.ranked_features):
                candidate_scorings.append(
                    replace(default_scoring, features=tuple(self.ranked_features[:set_size]))
                )
        return {scoring: self.build_model(scoring) for scoring in candidate_scorings}

    def build_model(self, scoring: Scoring) -> AdditiveModel:
        """Prior and beta log r of the features that a scoring uses, before any correction."""
        all_ratios = self._bin_ratios[scoring.bins] | self._category_ratios[scoring.categories]
        score_tables, ordered_cells = {}, {}
        for name in all_ratios if scoring.features is None else scoring.features:
            if name not in all_ratios:  # it comes as moments
                continue
            log_ratio, cells = all_ratios[name], self.statistics.tables[name].cells
            padded_ratio = np.zeros((len(self.prior), cells.size))
            padded_ratio[:, : log_ratio.shape[1]] = log_ratio
            if name in self._absence_ratios:
                present_ratio, missing_ratio = self._absence_ratios[name]
                padded_ratio[:, :-1] += present_ratio
                padded_ratio[:, -1:] = missing_ratio
            score_tables[name] = scoring.beta * padded_ratio
            ordered_cells[name] = cells.value_count if cells.edges else 0
        return AdditiveModel(self.prior, score_tables, ordered_cells)

    def build_corrected_model(
        self, scoring: Scoring, corrections: Sequence[Correction]
    ) -> AdditiveModel:
        """The same model after the corrections that the scoring applies."""
        corrected_model = self.build_model(scoring)
        for correction in corrections[: scoring.corrections]:
            corrected_model, _ = corrected_model.apply_correction(correction)
        return corrected_model

    def build_factors(self, scoring: Scoring) -> tuple[dict[str, CellFactor], list[PairFactor]]:
        """Factors beta log r + log P(cell): log P(cell | class) where nothing was corrected."""
        cell_factors = {}
        corrected_model = self.build_corrected_model(scoring, self.statistics.corrections)
        for name, score_table in corrected_model.tables.items():
            cell_shares = np.ones(score_table.shape[1])
            cell_shares[: len(self._margins[name])] = self._margins[name]
            log_scores = score_table + np.log(cell_shares)
            cells = self.statistics.tables[name].cells
            cell_factors[name] = CellFactor(cells, log_scores - max(0.0, float(log_scores.max())))
        tables, pair_factors = self.statistics.tables, []
        for pair_key, pair_scores in corrected_model.pairs.items():
            (first_name, first_groups), (second_name, second_groups) = pair_key
            pair_cells = (tables[first_name].cells, tables[second_name].cells)
            pair_factors.append(PairFactor(pair_cells, (first_groups, second_groups), pair_scores))
        return cell_factors, pair_factors


def estimate_class_shares(totals: Floats, variances: Floats) -> Floats:
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
    >>> estimate_class_shares(np.array([60.0, 30.0, 10.0]), np.zeros(3)).round(3).tolist()
    [0.6, 0.3, 0.1]
    >>> estimate_class_shares(np.array([60.0, 30.0, 10.0]), np.full(3, 900.0)).round(2).tolist()
    [0.38, 0.32, 0.3]
    """
    from scipy.special import gammaln  # late: a command that does not estimate need not load it

    totals = np.asarray(totals, dtype=float)
    total_std = np.maximum(np.sqrt(variances), 1e-9 * max(float(np.abs(totals).max()), 1.0))
    grid_low = np.maximum(totals - GRID_HALF_WIDTH * total_std, 0.0)
    grid_high = np.maximum(totals + GRID_HALF_WIDTH * total_std, GRID_HALF_WIDTH * total_std)
    total_grid = grid_low + (grid_high - grid_low) * (
        (np.arange(TOTAL_GRID_POINTS)[:, None] + 0.5) / TOTAL_GRID_POINTS
    )
    # every mean total that the noise does not exclude, and every evenness
    mean_totals = max(float(grid_high.max()), 1.0) * np.geomspace(*MEAN_TOTAL_GRID)
    gamma_shape, mean_total = (
        mesh.reshape(-1, 1, 1) for mesh in np.meshgrid(GAMMA_SHAPES, mean_totals)
    )
    log_density = (
        (gamma_shape - 1) * np.log(total_grid)
        - gamma_shape * total_grid / mean_total
        + gamma_shape * np.log(gamma_shape / mean_total)
    )
    log_density = (
        log_density - gammaln(gamma_shape) - 0.5 * ((total_grid - totals) / total_std) ** 2
    )
    max_log_density = log_density.max(axis=1, keepdims=True)
    grid_weights = np.exp(log_density - max_log_density)
    grid_mass = grid_weights.sum(axis=1)
    # the grids differ between classes, but are the same for every law
    log_evidence = (np.log(grid_mass) + max_log_density[:, 0]).sum(axis=1)
    law_weights = np.exp(log_evidence - log_evidence.max())
    expected_totals = (grid_weights * total_grid).sum(axis=1) / grid_mass
    shares_by_law = expected_totals / expected_totals.sum(axis=1, keepdims=True)
    min_share = 1 / max(float(totals.sum()), FLOOR_PEOPLE_PER_CLASS * len(totals))
    mean_shares = np.maximum(law_weights @ shares_by_law / law_weights.sum(), min_share)
    return np.asarray(mean_shares / mean_shares.sum())


def _estimate_bin_ratios(
    numeric: Mapping[str, NoisyCounts], prior: Floats
) -> dict[str, dict[str, Floats]]:
    """Ratios of numeric features: the mean of three estimates, and that with a normal density."""
    bayes_ratios = estimate_bayes_ratios(numeric, prior)
    names_by_width: dict[int, list[str]] = {}
    for name, noisy_table in numeric.items():  # features with equally many bins are done together
        names_by_width.setdefault(noisy_table.counts.shape[1], []).append(name)
    average_ratios, fitted_ratios = {}, {}
    for names in names_by_width.values():
        stacked_counts = np.array([numeric[name].counts for name in names])
        tree_shares = estimate_tree_shares(
            stacked_counts, np.array([numeric[name].noise_std for name in names])
        )
        for name, class_bin_shares, pooled_shares in zip(names, *tree_shares, strict=True):
            tree_ratio = np.log(class_bin_shares / pooled_shares)
            average_ratios[name] = (
                estimate_simple_ratios(numeric[name]) + tree_ratio + bayes_ratios[name]
            ) / 3
            density_ratio = (
                tree_ratio + estimate_normal_ratios(class_bin_shares, pooled_shares, numeric[name])
            ) / 2
            fitted_ratios[name] = (average_ratios[name] + density_ratio) / 2
    return {
        "average": {name: average_ratios[name] for name in numeric},
        "fitted": {name: fitted_ratios[name] for name in numeric},
    }


def _estimate_absence_ratios(table: Table, noise_std: float) -> tuple[Floats, Floats]:
    """Log-ratios of a numeric value's being present and missing, each of shape (classes, 1)."""
    presence_counts = np.stack([table.counts[:, :-1].sum(axis=1), table.counts[:, -1]], axis=1)
    presence_ratio = estimate_simple_ratios(
        NoisyCounts(presence_counts, noise_std * math.sqrt(table.cells.size - 1))
    )
    return presence_ratio[:, :1], presence_ratio[:, 1:]
