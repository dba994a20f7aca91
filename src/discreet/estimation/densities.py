"""Moments to normal densities: each class a mean and a variance, made valid."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from discreet.arrays import Floats
from discreet.errors import EstimationError
from discreet.estimation.shrinkage import soft_positive_part
from discreet.model import GaussianFactor
from discreet.schema.cells import Grid
from discreet.schema.schema import Schema
from discreet.statistics.scoring import Scoring
from discreet.statistics.statistics import Moments

__all__ = ["fit_gaussian_factors"]


def fit_gaussian_factors(
    moments: Mapping[str, Moments], schema: Schema, scoring: Scoring
) -> dict[str, GaussianFactor]:
    """A density for every feature that comes as moments."""
    is_truncated = scoring.likelihood == "truncated"
    max_pooled_variance = max(
        [_compute_pooled_variance(feature_moments) for feature_moments in moments.values()],
        default=0.0,
    )
    factors = {}
    for name, feature_moments in moments.items():
        if is_truncated and not feature_moments.feature.is_bounded:
            raise EstimationError(f"{name} has no public bounds to truncate its density to")
        if np.any(feature_moments.variances):
            mean, variance = _shrink_moments(feature_moments)
        else:
            mean, variance = feature_moments.mean, np.maximum(feature_moments.variance, 0.0)
            variance = variance + scoring.variance_smoothing * max_pooled_variance
        missing_probability = None
        if schema.missing == "category":
            present_counts = np.maximum(np.asarray(feature_moments.counts, float), 0.0)
            missing_counts = np.maximum(np.asarray(feature_moments.missing, float), 0.0)
            missing_probability = (missing_counts + 0.5) / (missing_counts + present_counts + 1.0)
        variance = np.maximum(variance, 1e-18)
        if not (np.isfinite(mean).all() and np.isfinite(variance).all()):
            raise EstimationError(
                f"{name}: its numbers are so large that their squares leave floating point; divide "
                "the column by a power of ten"
            )
        factors[name] = GaussianFactor(
            feature_moments.feature, mean, variance, is_truncated, missing_probability
        )
    return factors


def _shrink_moments(moments: Moments) -> tuple[Floats, Floats]:
    """Class means and variances drawn to those of all classes together, as their noise deserves.

    A variance that noise has made too small would dominate the score: every class keeps at least
    the noise of its variance or, where that is less, a quarter of the common one. With little
    noise only the public grid is a floor.
    """
    feature, grid_step = moments.feature, moments.step
    class_counts = np.maximum(np.asarray(moments.counts, float), 1.0)
    class_shares = class_counts / class_counts.sum()
    class_means = np.clip(moments.mean, feature.lower, feature.upper)
    # noise without a variance (Cauchy's) cannot be weighed: what it says is taken as it is
    known_variances = np.where(np.isfinite(moments.variances), moments.variances, 0.0)
    mean_noise = grid_step**2 * known_variances[1] / class_counts**2
    pooled_mean = float(class_shares @ class_means)
    between_variance = max(
        float(class_shares @ ((class_means - pooled_mean) ** 2 - mean_noise)), 0.0
    )
    class_means = pooled_mean + between_variance / (between_variance + mean_noise + 1e-300) * (
        class_means - pooled_mean
    )
    if moments.noise is not None:
        variance_noise = np.asarray(moments.noise, float) ** 2
    else:
        square_noise = grid_step**4 * known_variances[2] / class_counts**2
        variance_noise = square_noise + 4 * (class_means - moments.origin) ** 2 * mean_noise
    variance_std = np.sqrt(variance_noise)
    # three standard deviations fill at least half a step of the public grid
    min_variance = (Grid.from_feature(feature).step / 6) ** 2 if feature.is_bounded else 1e-18
    max_variance = ((feature.upper - feature.lower) / 2) ** 2
    class_variances = np.minimum(
        soft_positive_part(moments.variance, variance_std, 1.0), max_variance
    )
    # the common variance is noisy too, as its classes are together
    common_noise = np.sqrt(class_shares**2 @ variance_noise)
    common_floor = np.clip(common_noise, min_variance, max(max_variance / 225, min_variance))
    common_variance = float(
        np.clip(class_shares @ class_variances, common_floor, max(max_variance, common_floor))
    )
    variance_offset = class_variances - common_variance
    is_clear = variance_offset**2 > variance_noise
    signal_share = np.where(
        is_clear, 1 - variance_noise / np.where(is_clear, variance_offset**2, 1.0), 0.0
    )
    lower_limit = np.maximum(np.minimum(variance_std, common_variance / 4), min_variance)
    upper_limit = np.maximum(4 * common_variance, class_variances - 2 * variance_std)
    upper_limit = np.clip(upper_limit, lower_limit, max(max_variance, min_variance))
    return class_means, np.clip(
        common_variance + signal_share * variance_offset, lower_limit, upper_limit
    )


def _compute_pooled_variance(moments: Moments) -> float:
    """Variance of the feature over all classes together."""
    class_counts = np.maximum(np.asarray(moments.counts, float), 0.0)
    if class_counts.sum() <= 0:
        return 0.0
    class_weights = class_counts / class_counts.sum()
    class_means = moments.mean
    pooled_mean = class_weights @ class_means
    return float(
        class_weights @ (np.maximum(moments.variance, 0.0) + (class_means - pooled_mean) ** 2)
    )
