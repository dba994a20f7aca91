"""Turn noisy residuals of a model into changes of its score tables.

A :class:`~discreet.statistics.statistics.Correction` says for every cell how many more people of a
class there are than the model so far expects (G), and how fast that changes with the scores (H).
Both are sums over people and carry noise of a known variance s^2. The change delta is its
posterior mean under

    G = H delta + N(0, H + s^2)

averaged by evidence over laws of delta: nothing changes; the feature's evidence counts more or less
as a whole; cells change independently; neighbouring bins change together. What may well be noise
moves nothing. The statistics carry the noisy sums, so that the same steps can be taken again.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from discreet.arrays import Floats
from discreet.statistics.scoring import Correction

__all__ = ["AdditiveModel", "compute_posterior_step"]

CHANGE_STDS = (0.05, 0.1, 0.2, 0.4, 0.8, 1.6)
"""Prior standard deviations of a change of the scores that are tried."""
NO_CHANGE_LOG_WEIGHT = float(np.log(2.0))
"""Log-weight of "nothing changes" against each of the other laws."""
NEIGHBOUR_RANGE = 3.0
"""Correlation length of changes of neighbouring bins, in bins."""
MAX_STEP = 2.0
"""Largest change of a score in one step, in log-odds."""
MAX_NEIGHBOUR_CELLS = 400
"""With more cells, correlations of neighbouring bins are left out to save time."""
MIN_CURVATURE = 1e-3
"""Floor of a noisy curvature, in people, for numerical safety."""

FittedLaw = tuple[Floats, float]
"""Of a law of changes: their posterior mean, and its gain in log-likelihood over no change."""


@dataclass(frozen=True)
class AdditiveModel:
    """An additive model: class shares, a score table per feature, score tables of pairs.

    Parameters
    ----------
    prior : array of shape (classes,)
    tables : mapping of feature name to array of shape (classes, cells)
    ordered_cells : mapping of feature name to int
        How many cells of a feature, from the first on, are neighbouring bins.
    pairs : mapping
        From two feature names, each with the group of every cell, to an array of shape (classes,
        groups of the first times groups of the second).
    """

    prior: Floats
    tables: Mapping[str, Floats]
    ordered_cells: Mapping[str, int]
    pairs: Mapping[tuple[tuple[str, tuple[int, ...]], ...], Floats] = field(default_factory=dict)

    def apply_correction(self, correction: Correction) -> tuple[AdditiveModel, Floats]:
        """The model after a correction, and what it adds to each of the correction's cells."""
        pair_key = tuple(correction.groups.items())
        if len(pair_key) > 1:
            score_change = compute_posterior_step(correction, self.prior)
            pair_scores = (
                score_change + self.pairs[pair_key] if pair_key in self.pairs else score_change
            )
            return replace(self, pairs={**self.pairs, pair_key: pair_scores}), score_change
        ((name, cell_groups),) = pair_key
        used_cells = np.flatnonzero(np.array(cell_groups) >= 0)
        feature_scores = self.tables[name].copy()
        score_change = compute_posterior_step(
            correction, self.prior, feature_scores[:, used_cells], self.ordered_cells[name]
        )
        feature_scores[:, used_cells] += score_change
        return replace(self, tables={**self.tables, name: feature_scores}), score_change


def compute_posterior_step(
    correction: Correction,
    prior: Floats,
    feature_scores: Floats | None = None,
    ordered_cells: int = 0,
) -> Floats:
    """Change of the scores, of shape (classes, cells).

    Parameters
    ----------
    correction : Correction
    prior : array of shape (classes,)
        By which curvature is shared out where there are more than two classes: of row sums
        sum of p (1 - p) it gives class c the share P(c) (1 - P(c)).
    feature_scores : array of shape (classes, cells), optional
        What the feature adds to the scores so far.
    ordered_cells : int
        How many cells, from the first on, are neighbouring bins.
    """
    residuals = np.asarray(correction.residuals, dtype=np.float64)
    curvatures = split_curvatures(
        np.maximum(correction.curvatures, MIN_CURVATURE), prior, len(residuals)
    )
    residual_variance = curvatures + correction.variance
    law_changes, law_gains = [np.zeros(residuals.shape)], [NO_CHANGE_LOG_WEIGHT]
    evidence_direction = None
    if feature_scores is not None:
        evidence_direction = (
            (feature_scores[1] - feature_scores[0])[None]
            if len(residuals) == 1
            else feature_scores - feature_scores.mean(axis=0)
        )
    bin_correlations = _compute_bin_correlations(residuals.shape[1], ordered_cells)
    # of K residuals that add up to zero, K - 1 are free
    free_share = 1.0 if len(residuals) == 1 else 1 - 1 / len(residuals)
    noisy_sums = residuals, curvatures, residual_variance
    fitted_families = [_fit_independent_changes(*noisy_sums)]
    if evidence_direction is not None:
        fitted_families.append(_fit_scaled_evidence(*noisy_sums, evidence_direction))
    if bin_correlations is not None:
        fitted_families.append(_fit_smooth_changes(*noisy_sums, bin_correlations))
    for fitted_laws in zip(*fitted_families, strict=True):  # one of each family, by CHANGE_STDS
        law_changes += [law_change for law_change, _ in fitted_laws]
        law_gains += [free_share * law_gain for _, law_gain in fitted_laws]
    law_weights = np.exp(np.array(law_gains) - max(law_gains))
    mean_change = np.tensordot(law_weights / law_weights.sum(), np.array(law_changes), axes=1)
    if len(mean_change) == 1:  # of two classes one goes up by half of it, the other down
        mean_change = np.concatenate([-mean_change / 2, mean_change / 2])
    return np.asarray(np.clip(mean_change - mean_change.mean(axis=0), -MAX_STEP, MAX_STEP))


def split_curvatures(curvatures: Floats, prior: Floats, residual_count: int) -> Floats:
    """Curvature of each residual of a cell, of shape (1 or classes, cells).

    Parameters
    ----------
    curvatures : array of shape (cells,)
    prior : array of shape (classes,)
    residual_count : int
        1 of two classes, else the number of classes: sums of a quarter of sum of p (1 - p).
    """
    class_curvatures = np.tile(np.asarray(curvatures, dtype=np.float64), (residual_count, 1))
    if residual_count > 1:
        class_weights = prior * (1 - prior)
        class_curvatures *= 4 * (class_weights / class_weights.sum())[:, None]
    return class_curvatures


def _fit_independent_changes(
    residuals: Floats, curvatures: Floats, residual_variance: Floats
) -> list[FittedLaw]:
    """Every cell changes for itself."""
    change_stds = np.array(CHANGE_STDS)[:, None, None]
    prior_variance = (curvatures * change_stds) ** 2
    total_variance = residual_variance + prior_variance
    fit_gain = residuals**2 * prior_variance / (residual_variance * total_variance)
    cell_gains = np.log1p(prior_variance / residual_variance) - fit_gain
    law_gains = -0.5 * cell_gains.reshape(len(CHANGE_STDS), -1).sum(axis=1)
    law_changes = residuals * curvatures * change_stds**2 / total_variance
    return [*zip(law_changes, law_gains.tolist(), strict=True)]


def _fit_scaled_evidence(
    residuals: Floats, curvatures: Floats, residual_variance: Floats, evidence_direction: Floats
) -> list[FittedLaw]:
    """One standard normal number times a direction: the feature counts more or less."""
    directions = np.array(CHANGE_STDS)[:, None, None] * evidence_direction
    residual_slopes = curvatures * directions
    flat_shape = len(CHANGE_STDS), -1
    slope_precisions = (residual_slopes**2 / residual_variance).reshape(flat_shape).sum(axis=1)
    weighted_residuals = (
        (residual_slopes * residuals / residual_variance).reshape(flat_shape).sum(axis=1)
    )
    law_gains = 0.5 * (weighted_residuals**2 / (1 + slope_precisions) - np.log1p(slope_precisions))
    law_changes = (weighted_residuals / (1 + slope_precisions))[:, None, None] * directions
    return [*zip(law_changes, law_gains.tolist(), strict=True)]


def _compute_bin_correlations(cell_count: int, ordered_cells: int) -> Floats | None:
    """Correlations of changes: near bins resemble each other, other cells are independent."""
    if ordered_cells < 3 or cell_count > MAX_NEIGHBOUR_CELLS:
        return None
    cell_positions = np.arange(cell_count, dtype=np.float64)
    bin_correlations = np.exp(-np.abs(cell_positions[:, None] - cell_positions) / NEIGHBOUR_RANGE)
    bin_correlations[ordered_cells:], bin_correlations[:, ordered_cells:] = 0.0, 0.0
    np.fill_diagonal(bin_correlations, 1.0)
    return np.asarray(bin_correlations)


def _fit_smooth_changes(
    residuals: Floats, curvatures: Floats, residual_variance: Floats, bin_correlations: Floats
) -> list[FittedLaw]:
    """Changes that are correlated between neighbouring bins, independent between classes."""
    covariances = np.array(CHANGE_STDS)[:, None, None] ** 2 * bin_correlations
    law_changes, law_gains = (
        np.empty((len(covariances), *residuals.shape)),
        [0.0] * len(covariances),
    )
    for c, (g, h, v) in enumerate(zip(residuals, curvatures, residual_variance, strict=True)):
        cholesky_factors = np.linalg.cholesky(h[:, None] * covariances * h + np.diag(v))
        whitened_residuals = np.linalg.solve(cholesky_factors, g[None, :, None])
        slopes = np.linalg.solve(np.swapaxes(cholesky_factors, 1, 2), whitened_residuals)
        log_variance, plain_fit = 0.5 * np.log(v).sum(), (g**2 / v).sum()
        for law, (factor, whitened, slope) in enumerate(
            zip(cholesky_factors, whitened_residuals[..., 0], slopes[..., 0], strict=True)
        ):
            law_gains[law] -= float(np.log(np.diag(factor)).sum() - log_variance)
            law_gains[law] -= 0.5 * float(whitened @ whitened - plain_fit)
            law_changes[law, c] = covariances[law] @ (h * slope)
    return [*zip(law_changes, law_gains, strict=True)]
