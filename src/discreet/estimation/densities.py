"""Moments to normal densities: each class a mean and a variance, made valid."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from discreet.arrays import Floats
from discreet.errors import EstimationError
from discreet.estimation.shrinkage import soft
from discreet.model import GaussianFactor
from discreet.schema import Schema
from discreet.statistics import Moments, Scoring

__all__ = ["gaussian_factors"]

LEAST_SPREAD = 1e-3
"""The smallest deviation that noisy moments are given, as a part of the range."""


def gaussian_factors(
    moments: Mapping[str, Moments], schema: Schema, scoring: Scoring
) -> dict[str, GaussianFactor]:
    """A density for every feature that comes as moments."""
    truncated = scoring.likelihood == "truncated"
    most = max([_pooled(one) for one in moments.values()], default=0.0)
    factors = {}
    for name, one in moments.items():
        if truncated and not one.feature.bounded:
            raise EstimationError(f"{name} has no public bounds to truncate its density to")
        mean, variance = one.mean, one.variance
        if (noise := one.noise) is not None:
            one = replace(one, counts=np.maximum(one.counts, 1.0))
            mean, variance = _within_bounds(one, noise)
        if np.any(one.variances):
            mean, variance = _calmed(one, mean, variance)
        else:
            variance = np.maximum(variance, 0.0) + scoring.variance_smoothing * most
        missing = None
        if schema.missing == "category":
            present = np.maximum(np.asarray(one.counts, float), 0.0)
            absent = np.maximum(np.asarray(one.missing, float), 0.0)
            missing = (absent + 0.5) / (absent + present + 1.0)
        variance = np.maximum(variance, 1e-18)
        factors[name] = GaussianFactor(one.feature, mean, variance, truncated, missing)
    return factors


def _within_bounds(one: Moments, noise: Floats) -> tuple[Floats, Floats]:
    """Means and variances that the public bounds allow, no variance far below its noise."""
    lower, upper = one.feature.lower, one.feature.upper
    mean = np.clip(one.mean, lower, upper)
    least = (LEAST_SPREAD * (upper - lower)) ** 2
    most = np.maximum((upper - mean) * (mean - lower), least)
    return mean, np.clip(soft(one.variance, noise, 1.0), least, most)


def _calmed(moments: Moments, mean: Floats, variance: Floats) -> tuple[Floats, Floats]:
    """Class means and variances drawn to those of all classes together, as their noise deserves.

    A density is merciless to a variance that noise made tiny, so a class keeps at least a quarter
    and at most four times the common variance.
    """
    feature, step = moments.feature, moments.step
    counts = np.maximum(np.asarray(moments.counts, float), 1.0)
    share = counts / counts.sum()
    mean = np.clip(mean, feature.lower, feature.upper)
    # noise without a variance (Cauchy's) cannot be weighed: what it says is taken as it is
    known = np.where(np.isfinite(moments.variances), moments.variances, 0.0)
    noise = step**2 * known[1] / counts**2
    centre = float(share @ mean)
    between = max(float(share @ ((mean - centre) ** 2 - noise)), 0.0)
    mean = centre + between / (between + noise + 1e-300) * (mean - centre)
    span = feature.upper - feature.lower
    common = float(np.clip(share @ variance, (span / 30) ** 2, (span / 2) ** 2))
    away = variance - common
    reach = mean - moments.origin
    doubt = step**4 * known[2] / counts**2 + 4 * reach**2 * noise
    keep = np.maximum(0.0, 1 - doubt / np.maximum(away**2, 1e-300))
    return mean, np.clip(common + keep * away, common / 4, 4 * common)


def _pooled(moments: Moments) -> float:
    """Variance of the feature over all classes together."""
    counts = np.maximum(np.asarray(moments.counts, float), 0.0)
    if counts.sum() <= 0:
        return 0.0
    weight = counts / counts.sum()
    mean = moments.mean
    centre = weight @ mean
    return float(weight @ (np.maximum(moments.variance, 0.0) + (mean - centre) ** 2))
