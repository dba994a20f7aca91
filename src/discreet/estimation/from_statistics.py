"""Statistics to a model: which cleaning-up is done is the user's choice, never hidden.

========== ========================================================================================
none       the estimates as they are; a probability below zero counts as zero
paper      estimates below one become one (Yilmaz, Al-Rubaie, Chang: LDP Naive Bayes)
norm-sub   a constant is subtracted from the positive cells so that they add up to the class total
norm-cut   the smallest cells are dropped until the rest adds up to the class total
bayes      empirical Bayes with the known noise (docs/maths.md): the default for noisy numbers
========== ========================================================================================
"""

from __future__ import annotations

from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from discreet.arrays import Floats
from discreet.errors import EstimationError
from discreet.estimation.shrinkage import shrunk, toned_down
from discreet.estimation.smoothing import smoothed
from discreet.model import CellFactor, Factor, GaussianFactor, NaiveBayesModel
from discreet.statistics import Moments, Statistics, Table

__all__ = ["Postprocess", "estimate", "norm_cut", "norm_sub"]

Postprocess = Literal["none", "paper", "norm-sub", "norm-cut", "bayes"]

LEAST_PRIOR = 1e-4
GRID = 400
TINY = 1e-9
LEAST_SMOOTHING = 1e-10


def norm_sub(estimates: Floats, total: float) -> Floats:
    """Project on {x >= 0, sum x = total} by subtracting a constant: the nearest such point.

    >>> norm_sub(np.array([5.0, 2.0, -1.0]), 6.0).tolist()
    [4.5, 1.5, 0.0]
    """
    total = max(float(total), 0.0)
    ordered = np.sort(estimates)[::-1]
    excess = (np.cumsum(ordered) - total) / np.arange(1, len(ordered) + 1)
    kept = np.flatnonzero(ordered > excess)
    threshold = excess[kept[-1]] if len(kept) else excess[-1]
    return np.asarray(np.maximum(estimates - threshold, 0.0))


def norm_cut(estimates: Floats, total: float) -> Floats:
    """Keep the largest estimates while they fit into the total; the others become zero.

    >>> norm_cut(np.array([5.0, 2.0, -1.0]), 6.0).tolist()
    [5.0, 0.0, 0.0]
    """
    positive = np.maximum(estimates, 0.0)
    order = np.argsort(-positive, kind="stable")
    running = np.cumsum(positive[order])
    kept = np.zeros(len(positive), dtype=bool)
    kept[order[(running <= total * (1 + 1e-12)) | (np.arange(len(order)) == 0)]] = True
    return np.where(kept, positive, 0.0)


def estimate(
    statistics: Statistics,
    postprocess: Postprocess | None = None,
    *,
    smoothing: float = 1.0,
    likelihood: Literal["gaussian", "truncated"] = "gaussian",
    variance_smoothing: float = 1e-9,
    prior: Floats | None = None,
) -> NaiveBayesModel:
    """Turn statistics into a model with valid probabilities.

    Parameters
    ----------
    statistics : Statistics
    postprocess : {"none", "paper", "norm-sub", "norm-cut", "bayes"}, optional
        "none" for exact statistics and "bayes" for noisy ones if not given.
    smoothing : float, default 1
        Pseudo-count added to every cell; not used by "paper" and "bayes".
    likelihood : {"gaussian", "truncated"}
        The density of numeric features that come as moments.
    variance_smoothing : float, default 1e-9
        Share of the largest variance that is added to all, as in scikit-learn.
    prior : array of shape (classes,), optional
        Class prior to use instead of the estimated one.
    """
    if postprocess is None:
        postprocess = "none" if statistics.exact else "bayes"
    if postprocess not in get_args(Postprocess):
        raise EstimationError(f"postprocess={postprocess!r}; write one of {get_args(Postprocess)}")
    if not np.isfinite(smoothing) or smoothing < 0:
        raise EstimationError(f"smoothing is {smoothing!r}; it must be a number of at least 0")
    schema = statistics.schema
    share = _prior(statistics, postprocess) if prior is None else np.asarray(prior, dtype=float)
    factors: dict[str, Factor] = {}
    factors.update(_cell_factors(statistics, postprocess, smoothing, share))
    dense = {n: m for n, m in statistics.moments.items() if n not in factors}
    factors.update(_gaussian_factors(dense, statistics, likelihood, variance_smoothing))
    with np.errstate(divide="ignore"):
        log_prior = np.log(share)
    ordered = [factors[name] for name in schema.names if name in factors]
    return NaiveBayesModel(schema, log_prior, ordered, statistics.guarantee, statistics.projection)


def _prior(statistics: Statistics, postprocess: Postprocess) -> Floats:
    totals = np.asarray(statistics.totals, dtype=float)
    if not np.any(statistics.variances):
        people = totals.sum()
        if people <= 0:
            raise EstimationError("there is not a single record; nothing can be learnt")
        return np.asarray(totals / people)
    if postprocess == "paper":
        totals = np.where(totals < 1, 1.0, totals)
        return np.asarray(totals / totals.sum())
    whole = max(totals.sum(), 1.0)
    share = totals / whole
    if postprocess == "bayes":
        share = _expected_share(share, np.sqrt(statistics.variances) / whole)
    share = np.maximum(norm_sub(share, 1.0), LEAST_PRIOR)
    return np.asarray(share / share.sum())


def _expected_share(share: Floats, noise: Floats) -> Floats:
    """Posterior means of class shares of which all are equally likely beforehand.

    A share of K is then Beta(1, K - 1). Noise that leaves everything open gives equal shares, not
    a class that is said to be impossible.
    """
    low, high = np.clip(share - 8 * noise, 0.0, 1.0), np.clip(share + 8 * noise, 0.0, 1.0)
    low, high = np.minimum(low, 1 - noise.clip(TINY, 1)), np.maximum(high, noise.clip(TINY, 1))
    grid = low + (high - low) * ((np.arange(GRID)[:, None] + 0.5) / GRID)
    logs = (len(share) - 2) * np.log1p(-grid) - 0.5 * ((share - grid) / (noise + TINY)) ** 2
    weight = np.exp(logs - logs.max(axis=0))
    found = (weight * grid).sum(axis=0) / weight.sum(axis=0)
    return np.asarray(found / found.sum())


def _cell_factors(
    statistics: Statistics, postprocess: Postprocess, smoothing: float, share: Floats
) -> dict[str, Factor]:
    skip = statistics.schema.missing == "skip"
    used = {name: _kept(table, skip) for name, table in statistics.tables.items()}
    if postprocess == "bayes":
        everyone = max(float(np.sum(statistics.totals)), 1.0)
        people = {name: table.people or everyone for name, table in statistics.tables.items()}
        bins = {n: t.cells.values for n, t in statistics.tables.items() if t.cells.edges}
        numeric = {name: used[name] for name in bins}
        others = {name: table for name, table in used.items() if name not in bins}
        found = shrunk(others, share, people) | smoothed(numeric, bins, share, people)
        probability = toned_down({name: found[name] for name in used}, share)
    else:
        probability = {
            name: _conditional(counts, statistics.totals, postprocess, smoothing)
            for name, (counts, _) in used.items()
        }
    factors: dict[str, Factor] = {}
    for name, table in statistics.tables.items():
        log_probability = np.zeros(table.counts.shape)
        log_probability[:, : used[name][0].shape[1]] = np.log(probability[name])
        factors[name] = CellFactor(table.cells, log_probability)
    return factors


def _kept(table: Table, skip: bool) -> tuple[Floats, Floats]:
    """Counts and variances of the cells that the model looks at."""
    end = table.cells.missing if skip and table.cells.missing is not None else table.cells.size
    return np.asarray(table.counts[:, :end], float), np.asarray(table.variances[:, :end], float)


def _conditional(
    counts: Floats, totals: NDArray[Any], postprocess: Postprocess, smoothing: float
) -> Floats:
    """P(cell | class), of shape (classes, cells)."""
    if postprocess == "paper":
        counts = np.where(counts < 1, 1.0, counts)
        return np.asarray(counts / counts.sum(axis=1, keepdims=True))
    if postprocess in ("norm-sub", "norm-cut"):
        project = norm_sub if postprocess == "norm-sub" else norm_cut
        # where values are missing, the cells add up to less than the class total
        whole = np.minimum(np.maximum(counts.sum(axis=1), 0.0), np.maximum(totals, 0.0))
        counts = np.array([project(row, total) for row, total in zip(counts, whole, strict=True)])
    smoothed = np.maximum(counts, 0.0) + max(smoothing, LEAST_SMOOTHING)
    return np.asarray(smoothed / smoothed.sum(axis=1, keepdims=True))


def _gaussian_factors(
    moments: dict[str, Moments],
    statistics: Statistics,
    likelihood: str,
    variance_smoothing: float,
) -> dict[str, Factor]:
    if likelihood not in ("gaussian", "truncated"):
        raise EstimationError(f"likelihood={likelihood!r}; write 'gaussian' or 'truncated'")
    extra = variance_smoothing * max([_pooled(one) for one in moments.values()], default=0.0)
    factors: dict[str, Factor] = {}
    for name, one in moments.items():
        truncated = likelihood == "truncated"
        if truncated and not one.feature.bounded:
            raise EstimationError(f"{name} has no public bounds to truncate its density to")
        mean, variance = one.mean, np.maximum(one.variance, 0.0) + extra
        if np.any(one.variances):
            mean, variance = _calmed(one)
        missing = None
        if statistics.schema.missing == "category":
            present = np.maximum(np.asarray(one.counts, float), 0.0)
            absent = np.maximum(np.asarray(one.missing, float), 0.0)
            missing = (absent + 0.5) / (absent + present + 1.0)
        factors[name] = GaussianFactor(
            one.feature, mean, np.maximum(variance, 1e-18), truncated, missing
        )
    return factors


def _calmed(moments: Moments) -> tuple[Floats, Floats]:
    """Class means and variances drawn to those of all classes together, as their noise deserves.

    A density is merciless to a variance that noise made tiny, so a class keeps at least a quarter
    and at most four times the common variance.
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
    span = feature.upper - feature.lower
    common = float(np.clip(share @ moments.variance, (span / 30) ** 2, (span / 2) ** 2))
    away = moments.variance - common
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
