"""Draws of corrected classifiers: what the model would be if its corrections carried no noise.

A corrected model starts from noisy tables and moves their scores by noisy sums of residuals G and
curvatures H (corrections.py). The classifier without noise is the same start, corrected by the
exact sums. Those are drawn from their posterior law. H is positive, a sum of q (1 - q): beforehand
exponential with the mean of all noisy ones, then normal around the noisy one. Given H, the exact
residual of the cell is N(0, H + H^2 t^2) beforehand, t one of CHANGE_STDS or 0, as the step itself
assumes; t is drawn as the noisy residuals speak for it. Drawn one without the other, a residual of
many people meets a curvature of few: a change of the scores that exact sums never make. The step of
exact sums knows no noise (s^2 = 0).

Tables that no correction is about are drawn as well, their counts normal around the noisy ones.
The noise of a corrected table cancels in the first order: residuals are counted given that table,
and exact ones undo what its noise has done.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from discreet.arrays import Floats
from discreet.estimation.corrections import (
    CHANGE_STDS,
    NO_CHANGE_LOG_WEIGHT,
    AdditiveModel,
    split_curvatures,
)
from discreet.estimation.log_ratios import LogRatios
from discreet.model import CellFactor, NaiveBayesModel, PairFactor
from discreet.statistics.scoring import Correction
from discreet.statistics.statistics import Statistics

__all__ = ["draw_corrected_models"]

MIN_COUNT = 1.0
"""Least pseudo-count of a class and cell, in people: a logarithm would say too much without."""
MIN_CURVATURE = 1e-3
"""Floor of a curvature, in people, for numerical safety."""
MIN_MASS = 1e-300
"""Smallest probability that a normal draw is positive, for numerical safety."""


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
            drawn_correction = _draw_exact_correction(correction, log_ratios.prior, rng)
            drawn_model, _ = drawn_model.apply_correction(drawn_correction)
        drawn_models.append(drawn_model)
    return _stack_models(statistics, log_ratios, drawn_models)


def _draw_exact_correction(
    noisy_correction: Correction, prior: Floats, rng: np.random.Generator
) -> Correction:
    """Exact sums that the noisy ones of a correction leave possible."""
    residuals, noise_variance = noisy_correction.residuals, noisy_correction.variance
    drawn_curvatures = _draw_positive(noisy_correction.curvatures, noise_variance, rng)
    curvatures = split_curvatures(drawn_curvatures, prior, len(residuals))
    change_variance = _draw_change_variance(residuals, curvatures, noise_variance, rng)
    signal_variances = curvatures + change_variance * curvatures**2
    signal_shares = signal_variances / (signal_variances + noise_variance)
    residual_std = np.sqrt(signal_shares * noise_variance)
    drawn_residuals = signal_shares * residuals + residual_std * rng.standard_normal(
        residuals.shape
    )
    return Correction(noisy_correction.groups, drawn_residuals, drawn_curvatures, 0.0)


def _draw_change_variance(
    residuals: Floats, curvatures: Floats, noise_variance: float, rng: np.random.Generator
) -> float:
    """t^2, the prior variance of a change of the scores, from its posterior law."""
    change_variances = np.square((0.0, *CHANGE_STDS))
    total_variances = curvatures + noise_variance + change_variances[:, None, None] * curvatures**2
    log_likelihoods = -0.5 * (np.log(total_variances) + residuals**2 / total_variances)
    # of K residuals that add up to zero, K - 1 are free
    free_share = 1.0 if len(residuals) == 1 else 1 - 1 / len(residuals)
    log_weights = free_share * log_likelihoods.sum(axis=(1, 2))
    log_weights[0] += NO_CHANGE_LOG_WEIGHT
    weights = np.exp(log_weights - log_weights.max())
    return float(rng.choice(change_variances, p=weights / weights.sum()))


def _draw_positive(noisy_sums: Floats, noise_variance: float, rng: np.random.Generator) -> Floats:
    """Exact positive sums: beforehand exponential with their common mean, of normal noise."""
    from scipy.special import ndtr, ndtri

    noise_std = max(np.sqrt(noise_variance), MIN_CURVATURE)
    mean_sum = max(float(noisy_sums.mean()), noise_std / np.sqrt(len(noisy_sums)))
    centres = noisy_sums - noise_std**2 / mean_sum
    positive_mass = np.maximum(ndtr(centres / noise_std), MIN_MASS)
    drawn_noise = -noise_std * ndtri(positive_mass * (1 - rng.random(noisy_sums.shape)))
    return np.asarray(np.maximum(centres + drawn_noise, MIN_CURVATURE))


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
