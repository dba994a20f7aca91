"""Draws of corrected classifiers: what the model would be if its corrections carried no noise.

A corrected model starts from noisy tables and moves their scores by noisy sums of residuals G and
curvatures H (corrections.py). The classifier without noise is the same start, corrected by the
exact sums. Those are drawn from their posterior law: beforehand the exact residual of a cell is
N(0, H + H^2 t^2), with t^2 from what all noisy squares exceed noise and chance by; H is normal
around the noisy one. The step of exact sums knows no noise (s^2 = 0).

Tables that no correction is about are drawn as well, their counts normal around the noisy ones.
The noise of a corrected table cancels in the first order: residuals are counted given that table,
and exact ones undo what its noise has done.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from discreet.arrays import Floats
from discreet.estimation.corrections import AdditiveModel
from discreet.estimation.log_ratios import LogRatios
from discreet.model import CellFactor, NaiveBayesModel, PairFactor
from discreet.statistics.scoring import Correction
from discreet.statistics.statistics import Statistics

__all__ = ["draw_corrected_models"]

MIN_COUNT = 1.0
"""Least pseudo-count of a class and cell, in people: a logarithm would say too much without."""
MIN_CURVATURE = 1e-3
"""Floor of a noisy curvature, in people, for numerical safety."""


def draw_corrected_models(
    statistics: Statistics, draws: int, rng: np.random.Generator
) -> NaiveBayesModel:
    """Draw classifiers with exact corrections, all in one model: class K i + c is class c of i.

    Parameters
    ----------
    statistics : Statistics
        With a scoring that applies corrections.
    draws : int
    rng : numpy Generator
    """
    scoring, log_ratios = statistics.scoring, LogRatios(statistics)
    corrections = statistics.corrections[: scoring.corrections]
    start_model = log_ratios.build_model(scoring)
    corrected_features = {name for correction in corrections for name in correction.groups}
    table_noises = {
        name: scoring.beta * _draw_log_ratio_noise(statistics, name, draws, rng)
        for name in start_model.tables
        if name not in corrected_features
    }
    drawn_models = []
    for draw_index in range(draws):
        noisy_tables = {
            table_name: start_model.tables[table_name] + table_noise[draw_index]
            for table_name, table_noise in table_noises.items()
        }
        drawn_model = replace(start_model, tables={**start_model.tables, **noisy_tables})
        for correction in corrections:
            drawn_model, _ = drawn_model.apply_correction(_draw_exact_correction(correction, rng))
        drawn_models.append(drawn_model)
    return _stack_models(statistics, log_ratios, drawn_models)


def _draw_exact_correction(noisy_correction: Correction, rng: np.random.Generator) -> Correction:
    """Exact sums that the noisy ones of a correction leave possible."""
    residuals, noise_variance = noisy_correction.residuals, noisy_correction.variance
    curvatures = np.maximum(noisy_correction.curvatures, MIN_CURVATURE)
    excess_squares = float((residuals**2 - noise_variance - curvatures).sum())
    change_variance = max(excess_squares, 0.0) / (len(residuals) * float((curvatures**2).sum()))
    signal_variances = curvatures + change_variance * curvatures**2
    signal_shares = signal_variances / (signal_variances + noise_variance)
    noise_std = np.sqrt(noise_variance)
    residual_noise = np.sqrt(signal_shares) * noise_std * rng.standard_normal(residuals.shape)
    drawn_curvatures = noisy_correction.curvatures + noise_std * rng.standard_normal(
        curvatures.shape
    )
    drawn_residuals = signal_shares * residuals + residual_noise
    return Correction(noisy_correction.groups, drawn_residuals, drawn_curvatures, 0.0)


def _draw_log_ratio_noise(
    statistics: Statistics, name: str, draws: int, rng: np.random.Generator
) -> Floats:
    """How far noise may have moved log P(cell | class), (draws, classes, cells)."""
    table = statistics.tables[name]
    noise_std = np.sqrt(table.variances)
    pseudo_counts = MIN_COUNT + noise_std / 2  # of the estimate that shrinks them
    noisy_counts = np.maximum(np.asarray(table.counts, float), 0.0)
    count_noise = noise_std * rng.standard_normal((draws, *noisy_counts.shape))
    log_changes = np.log(
        (np.maximum(noisy_counts + count_noise, 0.0) + pseudo_counts)
        / (noisy_counts + pseudo_counts)
    )
    return np.asarray(log_changes - log_changes.mean(axis=1, keepdims=True))


def _stack_models(
    statistics: Statistics, ratios: LogRatios, models: list[AdditiveModel]
) -> NaiveBayesModel:
    """Many models of K classes as one of K times as many; constants are left out of scores."""
    class_prior = np.array(statistics.scoring.prior or ratios.prior)
    with np.errstate(divide="ignore"):
        log_prior = np.tile(np.log(class_prior), len(models))
    stacked_schema = replace(statistics.schema, classes=tuple(range(len(log_prior))))
    ordered_factors, pair_factors = [], []
    for name in statistics.schema.names:
        if name in models[0].tables:
            scores = np.concatenate([model.tables[name] for model in models])
            scores = scores - max(0.0, float(scores.max()))
            ordered_factors.append(CellFactor(statistics.tables[name].cells, scores))
    for pair_key in models[0].pairs:
        (first_name, first_groups), (second_name, second_groups) = pair_key
        cells = (statistics.tables[first_name].cells, statistics.tables[second_name].cells)
        scores = np.concatenate([model.pairs[pair_key] for model in models])
        pair_factors.append(PairFactor(cells, (first_groups, second_groups), scores))
    return NaiveBayesModel(stacked_schema, log_prior, ordered_factors, pairs=pair_factors)
