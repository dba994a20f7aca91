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

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.arrays import Floats
from discreet.errors import EstimationError, FormatError
from discreet.estimation.cell_support import add_pair_support, add_support
from discreet.estimation.densities import fit_gaussian_factors
from discreet.estimation.log_ratios import LogRatios
from discreet.estimation.shrinkage import scale_evidence, shrink_tables, temper_evidence
from discreet.estimation.smoothing import smooth_tables
from discreet.model import CellFactor, Factor, NaiveBayesModel, PairFactor
from discreet.statistics.scoring import Likelihood, Postprocess, Scoring, WholeSheetFit
from discreet.statistics.statistics import Statistics

__all__ = [
    "Postprocess",
    "estimate",
    "estimate_scorings",
    "load_model_statistics",
    "norm_cut",
    "norm_sub",
]

MIN_PRIOR = 1e-4
"""Floor of a class share."""
SHARE_GRID_POINTS = 400
"""Points of the grid on which the posterior mean of a class share is computed."""
TINY = 1e-9
"""Keeps divisors and logarithms away from zero."""
MIN_SMOOTHING = 1e-10
"""Smallest pseudo-count per cell."""


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
    sorted_estimates = np.sort(estimates)[::-1]
    mean_excess = (np.cumsum(sorted_estimates) - total) / np.arange(1, len(sorted_estimates) + 1)
    positive_indices = np.flatnonzero(sorted_estimates > mean_excess)
    threshold = mean_excess[positive_indices[-1]] if len(positive_indices) else mean_excess[-1]
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
    descending_order = np.argsort(-positive, kind="stable")
    running_totals = np.cumsum(positive[descending_order])
    is_retained = np.zeros(len(positive), dtype=bool)
    is_retained[
        descending_order[
            (running_totals <= total * (1 + 1e-12)) | (np.arange(len(descending_order)) == 0)
        ]
    ] = True
    return np.where(is_retained, positive, 0.0)


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
    explicit_options = {
        "postprocess": postprocess,
        "smoothing": smoothing,
        "likelihood": likelihood,
        "variance_smoothing": variance_smoothing,
        "prior": None if prior is None else tuple(np.asarray(prior, dtype=float).tolist()),
    }
    scoring_changes: dict[str, Any] = {
        option_name: value for option_name, value in explicit_options.items() if value is not None
    }
    return _build_model(
        replace(statistics, scoring=replace(statistics.scoring, **scoring_changes)), {}
    )


def estimate_scorings(statistics: Statistics, scorings: Iterable[Scoring]) -> list[NaiveBayesModel]:
    """Estimate the models of several scorings; the cells of "bayes" are shrunk once for all.

    Parameters
    ----------
    statistics : Statistics
    scorings : iterable of Scoring
        With one prior and one way of post-processing.
    """
    shrunk_cells: dict[str, Floats] = {}
    return [
        _build_model(replace(statistics, scoring=scoring), shrunk_cells) for scoring in scorings
    ]


def _build_model(statistics: Statistics, shrunk_cells: dict[str, Floats]) -> NaiveBayesModel:
    """The model of statistics and their scoring; cells that are shrunk are kept in the mapping."""
    scoring = statistics.scoring
    postprocess_method = scoring.postprocess or "none"
    if scoring.postprocess is None and not statistics.is_exact:
        # with one class there is no evidence to shrink
        postprocess_method = "bayes" if len(statistics.totals) > 1 else "norm-sub"
    factors: dict[str, Factor]
    pair_factors: list[PairFactor] = []
    temperature = 1.0
    if postprocess_method == "log-ratios":
        log_ratios = LogRatios(statistics)
        table_factors, pair_factors = log_ratios.build_factors(scoring)
        class_shares, factors = log_ratios.prior, {**table_factors}
        temperature = scoring.temperature
    else:
        used_tables = statistics.select_used_cells()
        class_shares = (
            _estimate_prior(statistics, postprocess_method)
            if scoring.prior is None
            else np.array(scoring.prior)
        )
        factors = _build_cell_factors(
            statistics, used_tables, postprocess_method, class_shares, shrunk_cells
        )
        if postprocess_method == "bayes" and statistics.likeliest is not None:
            class_shares = _interpolate_shares(
                class_shares, statistics.likeliest.shares, statistics.likeliest.weight
            )
    dense_moments = {
        feature_name: feature_moments
        for feature_name, feature_moments in statistics.moments.items()
        if feature_name not in statistics.tables
    }
    if dense_moments:
        factors.update(fit_gaussian_factors(dense_moments, statistics.schema, scoring))
    used_features = statistics.schema.names if scoring.features is None else scoring.features
    with np.errstate(divide="ignore"):
        log_prior = np.log(class_shares if scoring.prior is None else np.array(scoring.prior))
    return NaiveBayesModel(
        statistics.schema,
        log_prior,
        [
            add_support(statistics, factors[feature_name])
            for feature_name in statistics.schema.names
            if feature_name in factors and feature_name in used_features
        ],
        statistics.guarantee,
        statistics.projection,
        add_pair_support(statistics, pair_factors, class_shares),
        temperature,
    )


def _estimate_prior(statistics: Statistics, postprocess: Postprocess) -> Floats:
    class_totals = np.asarray(statistics.totals, dtype=float)
    if not np.any(statistics.variances):
        people = class_totals.sum()
        if people <= 0:
            raise EstimationError("there are no records; nothing can be learnt")
        return np.asarray(class_totals / people)
    if postprocess == "paper":
        class_totals = np.where(class_totals < 1, 1.0, class_totals)
        return np.asarray(class_totals / class_totals.sum())
    people_estimate = max(class_totals.sum(), 1.0)
    class_shares = class_totals / people_estimate
    if postprocess == "bayes":
        class_shares = _compute_expected_shares(
            class_shares, np.sqrt(statistics.variances) / people_estimate
        )
    class_shares = np.maximum(norm_sub(class_shares, 1.0), MIN_PRIOR)
    return np.asarray(class_shares / class_shares.sum())


def _compute_expected_shares(noisy_shares: Floats, share_std: Floats) -> Floats:
    """Posterior means of class shares of which all are equally likely beforehand.

    A share of K is then Beta(1, K - 1). Noise that leaves everything open gives equal shares, not
    a class that is said to be impossible.
    """
    grid_low = np.clip(noisy_shares - 8 * share_std, 0.0, 1.0)
    grid_high = np.clip(noisy_shares + 8 * share_std, 0.0, 1.0)
    grid_low = np.minimum(grid_low, 1 - share_std.clip(TINY, 1))
    grid_high = np.maximum(grid_high, share_std.clip(TINY, 1))
    share_grid = grid_low + (grid_high - grid_low) * (
        (np.arange(SHARE_GRID_POINTS)[:, None] + 0.5) / SHARE_GRID_POINTS
    )
    log_density = (len(noisy_shares) - 2) * np.log1p(-share_grid) - 0.5 * (
        (noisy_shares - share_grid) / (share_std + TINY)
    ) ** 2
    grid_weights = np.exp(log_density - log_density.max(axis=0))
    expected_shares = (grid_weights * share_grid).sum(axis=0) / grid_weights.sum(axis=0)
    return np.asarray(expected_shares / expected_shares.sum())


def _shrink_cells(
    statistics: Statistics, used_tables: Mapping[str, tuple[Floats, Floats]], class_shares: Floats
) -> dict[str, Floats]:
    """P(cell | class) by empirical Bayes, before evidence is tempered."""
    people = max(float(np.sum(statistics.totals)), 1.0)
    people_by_feature = dict.fromkeys(statistics.tables, people)
    bin_counts = {
        table_name: bin_table.cells.value_count
        for table_name, bin_table in statistics.tables.items()
        if bin_table.cells.edges
    }
    bin_tables = {name: used_tables[name] for name in bin_counts}
    category_tables = {name: table for name, table in used_tables.items() if name not in bin_counts}
    own_noise_shares = {
        name: 1 - table.cancelling_share for name, table in statistics.tables.items()
    }
    shrunk_probabilities = shrink_tables(
        category_tables, class_shares, people_by_feature, own_noise_shares
    )
    return shrunk_probabilities | smooth_tables(
        bin_tables, bin_counts, class_shares, people_by_feature, own_noise_shares
    )


def _build_cell_factors(
    statistics: Statistics,
    used_tables: Mapping[str, tuple[Floats, Floats]],
    postprocess: Postprocess,
    class_shares: Floats,
    shrunk_cells: dict[str, Floats],
) -> dict[str, Factor]:
    if postprocess == "bayes":
        if not shrunk_cells:
            shrunk_cells.update(_shrink_cells(statistics, used_tables, class_shares))
        used_features = statistics.scoring.features
        probabilities = temper_evidence(
            {
                name: shrunk_cells[name]
                for name in used_tables
                if used_features is None or name in used_features
            },
            class_shares,
        )
        if statistics.likeliest is not None:
            probabilities = _mix_with_whole_sheet_fit(
                statistics.likeliest, class_shares, probabilities
            )
    else:
        probabilities = {
            name: _estimate_conditional(
                counts, statistics.totals, postprocess, statistics.scoring.smoothing
            )
            for name, (counts, _) in used_tables.items()
        }
    if statistics.scoring.beta != 1:
        probabilities = scale_evidence(probabilities, class_shares, statistics.scoring.beta)
    factors: dict[str, Factor] = {}
    for name, cell_probability in probabilities.items():
        table = statistics.tables[name]
        log_probability = np.zeros(table.counts.shape)
        log_probability[:, : cell_probability.shape[1]] = np.log(cell_probability)
        factors[name] = CellFactor(table.cells, log_probability)
    return factors


def _mix_with_whole_sheet_fit(
    sheet_fit: WholeSheetFit, class_shares: Floats, tables: Mapping[str, Floats]
) -> dict[str, Floats]:
    """P(cell | class) between the tables' own and the likeliest: people are mixed, not odds."""
    mixed_tables = {}
    for name, table_probability in tables.items():
        sheet_joint = sheet_fit.tables[name][:, : table_probability.shape[1]]
        sheet_joint = (
            sheet_fit.shares[:, None] * sheet_joint / sheet_joint.sum(axis=1, keepdims=True)
        )
        mixed_joint = _interpolate_shares(
            class_shares[:, None] * table_probability, sheet_joint, sheet_fit.weight
        )
        mixed_tables[name] = mixed_joint / mixed_joint.sum(axis=1, keepdims=True)
    return mixed_tables


def _interpolate_shares(table_shares: Floats, sheet_shares: Floats, weight: float) -> Floats:
    return np.asarray((1 - weight) * table_shares + weight * sheet_shares)


def _estimate_conditional(
    counts: Floats, totals: NDArray[Any], postprocess: Postprocess, smoothing: float
) -> Floats:
    """P(cell | class), of shape (classes, cells)."""
    if postprocess == "paper":
        counts = np.where(counts < 1, 1.0, counts)
        return np.asarray(counts / counts.sum(axis=1, keepdims=True))
    if postprocess in ("norm-sub", "norm-cut"):
        project_counts = norm_sub if postprocess == "norm-sub" else norm_cut
        # where values are missing, the cells add up to less than the class total
        row_totals = np.minimum(np.maximum(counts.sum(axis=1), 0.0), np.maximum(totals, 0.0))
        counts = np.array(
            [
                project_counts(class_counts, row_total)
                for class_counts, row_total in zip(counts, row_totals, strict=True)
            ]
        )
    smoothed_counts = np.maximum(counts, 0.0) + max(smoothing, MIN_SMOOTHING)
    return np.asarray(smoothed_counts / smoothed_counts.sum(axis=1, keepdims=True))


def load_model_statistics(text: str, model: NaiveBayesModel) -> Statistics:
    """Load statistics, and refuse those that a model was not made of.

    Parameters
    ----------
    text : str
        The statistics as JSON.
    model : NaiveBayesModel
    """
    statistics = Statistics.from_json(text)
    if estimate(statistics).to_json() != model.to_json():
        raise FormatError("these are not the statistics that the model was made of")
    return statistics
