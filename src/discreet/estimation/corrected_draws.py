"""Draws of corrected classifiers: what the model would be if its corrections carried no noise.

A corrected model starts from noisy tables and moves their scores by noisy sums of residuals G and
curvatures H (corrections.py). The classifier without noise is the same start, corrected by the
exact sums. Those are drawn from their posterior law: beforehand the exact residuals of a correction
are N(0, t^2), with t^2 what their noisy squares exceed the noise by; H is normal around the noisy
one. The step of exact sums knows no noise (s^2 = 0).

Tables that no correction is about are drawn as well, their counts normal around the noisy ones.
The noise of a corrected table cancels in the first order: residuals are counted given that table,
and exact ones undo what its noise has done.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from discreet.arrays import Floats
from discreet.estimation.corrections import Additive
from discreet.estimation.log_ratios import LogRatios
from discreet.model import CellFactor, NaiveBayesModel, PairFactor
from discreet.scoring import Correction
from discreet.statistics import Statistics

__all__ = ["draw_corrected_models"]

LEAST_COUNT = 1.0  # people per class and cell, below which a logarithm would say too much


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
    scoring, ratios = statistics.scoring, LogRatios(statistics)
    corrections = statistics.corrections[: scoring.corrections]
    start = ratios.model(scoring)
    corrected = {name for correction in corrections for name in correction.groups}
    perturbed = {
        name: scoring.beta * _log_ratio_noise(statistics, name, draws, rng)
        for name in start.tables
        if name not in corrected
    }
    models = []
    for draw in range(draws):
        tables = {n: start.tables[n] + noise[draw] for n, noise in perturbed.items()}
        model = replace(start, tables={**start.tables, **tables})
        for correction in corrections:
            model, _ = model.corrected(_draw_exact(correction, rng))
        models.append(model)
    return _stack_models(statistics, ratios, models)


def _draw_exact(noisy: Correction, rng: np.random.Generator) -> Correction:
    """Exact sums that the noisy ones of a correction leave possible."""
    signal = max(float(np.mean(noisy.residuals**2)) - noisy.variance, 0.0)
    keep = signal / (signal + noisy.variance) if noisy.variance else 1.0
    deviation = np.sqrt(noisy.variance)
    doubt = np.sqrt(keep) * deviation * rng.standard_normal(noisy.residuals.shape)
    curvatures = noisy.curvatures + deviation * rng.standard_normal(noisy.curvatures.shape)
    return Correction(noisy.groups, keep * noisy.residuals + doubt, curvatures, 0.0)


def _log_ratio_noise(
    statistics: Statistics, name: str, draws: int, rng: np.random.Generator
) -> Floats:
    """How far noise may have moved log P(cell | class), (draws, classes, cells)."""
    table = statistics.tables[name]
    counts = np.maximum(np.asarray(table.counts, float), LEAST_COUNT)
    noise = np.sqrt(table.variances) * rng.standard_normal((draws, *counts.shape))
    moved = np.log(np.maximum(counts + noise, LEAST_COUNT) / counts)
    return np.asarray(moved - moved.mean(axis=1, keepdims=True))


def _stack_models(
    statistics: Statistics, ratios: LogRatios, models: list[Additive]
) -> NaiveBayesModel:
    """Many models of K classes as one of K times as many; constants are left out of scores."""
    prior = np.array(statistics.scoring.prior or ratios.prior)
    with np.errstate(divide="ignore"):
        log_prior = np.tile(np.log(prior), len(models))
    schema = replace(statistics.schema, classes=tuple(range(len(log_prior))))
    cells: Mapping[str, CellFactor] = {
        name: CellFactor(statistics.tables[name].cells, scores - max(0.0, float(scores.max())))
        for name in models[0].tables
        for scores in [np.concatenate([model.tables[name] for model in models])]
    }
    pairs = [
        PairFactor(
            (statistics.tables[first].cells, statistics.tables[second].cells),
            (groups, others),
            np.concatenate([model.pairs[key] for model in models]),
        )
        for key in models[0].pairs
        for (first, groups), (second, others) in [key]
    ]
    factors = [cells[name] for name in statistics.schema.names if name in cells]
    return NaiveBayesModel(schema, log_prior, factors, pairs=pairs)
