"""Moments to normal densities: each class a mean and a variance, made valid."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from discreet.arrays import Floats
from discreet.encoding import Grid
from discreet.errors import EstimationError
from discreet.estimation.shrinkage import soft
from discreet.model import GaussianFactor
from discreet.schema import Numeric, Schema
from discreet.scoring import Scoring
from discreet.statistics import Moments

__all__ = ["gaussian_factors"]


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
        if np.any(one.variances):
            mean, variance = _calmed(one)
        else:
            mean, variance = one.mean, np.maximum(one.variance, 0.0)
            variance = variance + scoring.variance_smoothing * most
        missing = None
        if schema.missing == "category":
            present = np.maximum(np.asarray(one.counts, float), 0.0)
            absent = np.maximum(np.asarray(one.missing, float), 0.0)
            missing = (absent + 0.5) / (absent + present + 1.0)
        variance = np.maximum(variance, 1e-18)
        if not (np.isfinite(mean).all() and np.isfinite(variance).all()):
            raise EstimationError(
                f"{name}: its numbers are so large that their squares leave floating point; divide "
                "the column by a power of ten"
            )
        factors[name] = GaussianFactor(one.feature, mean, variance, truncated, missing)
    return factors


def _calmed(moments: Moments) -> tuple[Floats, Floats]:
    """Class means and variances drawn to those of all classes together, as their noise deserves.

    A variance that noise has made too small would dominate the score: every class keeps at least
    the noise of its variance or, where that is less, a quarter of the common one. With little
    noise only the public grid is a floor.
    """
    feature, step = moments.feature, moments.step
    counts = np.maximum(np.asarray(moments.counts, float), 1.0)
    share = counts / counts.sum()
    mean = np.clip(moments.mean, feature.lower, feature.upper)
    # noise without a variance (Cauchy's) cannot be weighed: what it says is taken as it is
    known = np.where(np.isfinite(moments.variances), moments.variances, 0.0)
    noise = step**2 * known[1] / counts**2
    centre = float(share @ mean)
    between = max(float(share @ ((mean - centre) ** 2 - noise)), 0.0)
    mean = centre + between / (between + noise + 1e-300) * (mean - centre)
    if moments.noise is not None:
        doubt = np.asarray(moments.noise, float) ** 2
    else:
        doubt = step**4 * known[2] / counts**2 + 4 * (mean - moments.origin) ** 2 * noise
    deviation = np.sqrt(doubt)
    least, most = _least_variance(feature), ((feature.upper - feature.lower) / 2) ** 2
    variance = np.minimum(soft(moments.variance, deviation, 1.0), most)
    # the common variance is noisy too, as its classes are together
    floor = np.clip(np.sqrt(share**2 @ doubt), least, max(most / 225, least))
    common = float(np.clip(share @ variance, floor, max(most, floor)))
    away = variance - common
    clear = away**2 > doubt
    keep = np.where(clear, 1 - doubt / np.where(clear, away**2, 1.0), 0.0)
    lowest = np.maximum(np.minimum(deviation, common / 4), least)
    highest = np.clip(np.maximum(4 * common, variance - 2 * deviation), lowest, max(most, least))
    return mean, np.clip(common + keep * away, lowest, highest)


def _least_variance(feature: Numeric) -> float:
    """Least variance: three standard deviations fill half a step of the public grid."""
    return (Grid.of(feature).step / 6) ** 2 if feature.bounded else 1e-18


def _pooled(moments: Moments) -> float:
    """Variance of the feature over all classes together."""
    counts = np.maximum(np.asarray(moments.counts, float), 0.0)
    if counts.sum() <= 0:
        return 0.0
    weight = counts / counts.sum()
    mean = moments.mean
    centre = weight @ mean
    return float(weight @ (np.maximum(moments.variance, 0.0) + (mean - centre) ** 2))
