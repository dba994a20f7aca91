"""Statistics to a model: which cleaning-up is done is the user's choice, never hidden.

========== ========================================================================================
none       the estimates as they are; a probability below zero counts as zero
paper      estimates below one become one (Yilmaz, Al-Rubaie, Chang: LDP Naive Bayes)
norm-sub   a constant is subtracted from the positive cells so that they add up to the class total
norm-cut   the smallest cells are dropped until the rest adds up to the class total
bayes      empirical Bayes with the known noise (docs/maths.md): the default for noisy numbers
log-ratios the curator's: averages of several shrunk log-ratios, some of them chosen privately
========== ========================================================================================
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.arrays import Floats
from discreet.errors import EstimationError
from discreet.estimation.densities import gaussian_factors
from discreet.estimation.log_ratios import LogRatios
from discreet.estimation.shrinkage import shrunk, toned_down
from discreet.estimation.smoothing import smoothed
from discreet.model import CellFactor, Factor, NaiveBayesModel, PairFactor
from discreet.scoring import Likeliest, Likelihood, Postprocess
from discreet.statistics import Statistics, Table

__all__ = ["Postprocess", "estimate", "norm_cut", "norm_sub"]

LEAST_PRIOR = 1e-4
GRID = 400
TINY = 1e-9
LEAST_SMOOTHING = 1e-10


def norm_sub(estimates: Floats, total: float) -> Floats:
    """Project on {x >= 0, sum x = total} by subtracting a constant: the nearest such point.

    Parameters
    ----------
    estimates : array of float
    total : float
        What they shall add up to.

    Examples
    --------
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

    Parameters
    ----------
    estimates : array of float
    total : float
        What they shall add up to at most.

    Examples
    --------
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
    smoothing: float | None = None,
    likelihood: Likelihood | None = None,
    variance_smoothing: float | None = None,
    prior: Floats | None = None,
) -> NaiveBayesModel:
    """Turn statistics into a model with valid probabilities: the one way to do so.

    Parameters
    ----------
    statistics : Statistics
        Their ``scoring`` says how, where the other arguments are left out; so
        ``estimate(nb.statistics_)`` is ``nb.model_`` for every estimator.
    postprocess : {"none", "paper", "norm-sub", "norm-cut", "bayes", "log-ratios"}, optional
        Where the statistics do not say either: "none" for exact ones and "bayes" for noisy ones.
    smoothing : float, optional
        Pseudo-count added to every cell; not used by "paper", "bayes" and "log-ratios".
    likelihood : {"gaussian", "truncated"}, optional
        The density of numeric features that come as moments.
    variance_smoothing : float, optional
        Share of the largest variance that is added to all, as in scikit-learn.
    prior : array of shape (classes,), optional
        Class prior to use instead of the estimated one.

    Returns
    -------
    NaiveBayesModel

    Examples
    --------
    >>> from discreet import Categorical, Schema
    >>> from discreet.tables.in_memory import count_arrays
    >>> schema = Schema([Categorical("sky", ["clear", "grey"])], "rain", ["no", "yes"])
    >>> counts = count_arrays(
    ...     schema, {"sky": ["clear", "clear", "grey", "grey"]}, np.array([0, 0, 0, 1])
    ... )
    >>> np.exp(estimate(counts).log_prior).round(2).tolist()
    [0.75, 0.25]
    >>> np.exp(estimate(counts, smoothing=0.0).factors[0].log_probability[1, :2]).round(2).tolist()
    [0.0, 1.0]
    """
    given = {
        "postprocess": postprocess,
        "smoothing": smoothing,
        "likelihood": likelihood,
        "variance_smoothing": variance_smoothing,
        "prior": None if prior is None else tuple(np.asarray(prior, dtype=float).tolist()),
    }
    changes: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
    statistics = replace(statistics, scoring=replace(statistics.scoring, **changes))
    scoring = statistics.scoring
    how = scoring.postprocess or _deserved(statistics)
    factors: dict[str, Factor]
    pairs: list[PairFactor] = []
    if how == "log-ratios":
        ratios = LogRatios(statistics)
        tabled, pairs = ratios.factors(scoring)
        share, factors = ratios.prior, {**tabled}
    else:
        share = _prior(statistics, how) if scoring.prior is None else np.array(scoring.prior)
        factors = _cell_factors(statistics, how, scoring.smoothing, share)
        if how == "bayes" and statistics.likeliest is not None:
            share = _between(share, statistics.likeliest.shares, statistics.likeliest.weight)
    dense = {n: m for n, m in statistics.moments.items() if n not in statistics.tables}
    if dense:
        factors.update(gaussian_factors(dense, statistics.schema, scoring))
    used = statistics.schema.names if scoring.features is None else scoring.features
    with np.errstate(divide="ignore"):
        log_prior = np.log(share if scoring.prior is None else np.array(scoring.prior))
    return NaiveBayesModel(
        statistics.schema,
        log_prior,
        [factors[n] for n in statistics.schema.names if n in factors and n in used],
        statistics.guarantee,
        statistics.projection,
        pairs,
    )


def _deserved(statistics: Statistics) -> Postprocess:
    if statistics.exact:
        return "none"
    # with one class there is no evidence to shrink
    return "bayes" if len(statistics.totals) > 1 else "norm-sub"


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
        people = dict.fromkeys(statistics.tables, everyone)
        bins = {n: t.cells.values for n, t in statistics.tables.items() if t.cells.edges}
        numeric = {name: used[name] for name in bins}
        others = {name: table for name, table in used.items() if name not in bins}
        alone = {name: 1 - table.opposed for name, table in statistics.tables.items()}
        found = shrunk(others, share, people, alone)
        found |= smoothed(numeric, bins, share, people, alone)
        probability = toned_down({name: found[name] for name in used}, share)
        if statistics.likeliest is not None:
            probability = _beside(statistics.likeliest, share, probability)
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


def _beside(whole: Likeliest, share: Floats, tables: Mapping[str, Floats]) -> dict[str, Floats]:
    """P(cell | class) between the tables' own and the likeliest: people are mixed, not odds."""
    found = {}
    for name, own in tables.items():
        likely = whole.tables[name][:, : own.shape[1]]
        likely = whole.shares[:, None] * likely / likely.sum(axis=1, keepdims=True)
        both = _between(share[:, None] * own, likely, whole.weight)
        found[name] = both / both.sum(axis=1, keepdims=True)
    return found


def _between(own: Floats, likely: Floats, weight: float) -> Floats:
    return np.asarray((1 - weight) * own + weight * likely)


def _kept(table: Table, skip: bool) -> tuple[Floats, Floats]:
    """Counts, and variances for comparing classes, of the cells that the model looks at."""
    end = table.cells.missing if skip and table.cells.missing is not None else table.cells.size
    return np.asarray(table.counts[:, :end], float), np.asarray(table.between[:, :end], float)


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
