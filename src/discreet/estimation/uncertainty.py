"""Probability that the classifier without noise would make the same decision.

The classifier without noise is plain Naive Bayes of the exact counts of the same people, on the
same features and bins, one pseudo-count a cell; nothing is shrunk, toned down or corrected. Of a
model with corrections it is the same model with exact corrections, drawn in corrected_draws.py:
plain Naive Bayes decides otherwise where features depend on each other, whatever the noise.

Tables of plain Naive Bayes are drawn from their posterior law, given the noisy numbers and the
known variance of each. What the noise hides is drawn as open, not as absent:

1. class totals: normal around the noisy ones, at least zero;
2. how much the features of such a table tell about the class: a common level, and around it a
   strength for every feature. Beforehand both have the laws below, which are about as wide as among
   public tables; the noisy tables then speak for some of them (smoothing.py has the evidence);
3. for every feature P(cell | class), normal in its log-odds given the strength;
4. the exact counts: between those expected of that many people and the noisy ones, as sampling and
   noise deserve;
5. the rows to predict add one fact. On average over people, P(class | row) is the
   share of the class; drawn tables, in which features err independently of each other, miss it. So
   every drawn classifier is shifted by a constant for each class, unless there are too few rows.
   Naive Bayes itself holds it only roughly, as it counts evidence twice: the constants are those by
   which it would hold, times a number between 0 and 2. This takes the rows for a sample of the same
   people.

Measured on eight tables that it was not tuned on (benchmarks/RESULTS.md): decisions called .85
steady were so in .88 ± .02, those called .92 in .94 ± .01. On single tables it can be too cautious
by .25, and was too sure by .10 at worst (chess, .93 stated, .83 ± .05 true). Where
much noise meets many features that say the same it remains too sure: adult, local reports at
epsilon 1.5, .85 stated, .66 true, and .95 stated, .88 true.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from discreet.arrays import Floats
from discreet.errors import EstimationError
from discreet.estimation.corrected_draws import draw_corrected_models
from discreet.estimation.from_statistics import estimate
from discreet.estimation.smoothing import STRENGTH_GRID, TablePosterior, fit_posteriors
from discreet.model import NaiveBayesModel
from discreet.randomness import Random, as_random
from discreet.schema.cells import get_columns
from discreet.statistics.scoring import Scoring
from discreet.statistics.statistics import Moments, Statistics, Table

__all__ = ["MIN_SHIFT_ROWS", "PosteriorDraws", "estimate_agreement"]

DEFAULT_DRAWS = 200
"""Number of classifiers that are drawn."""
PRIOR_DOUBT = 0.04
"""Share of the probability that is held back, split equally for and against."""
LEVEL_GRID = np.geomspace(0.05, 6.4, 13)
"""Levels of the strengths of a table's features: standard deviations of log P(cell | class)."""
LEVEL_MEDIAN = 1.0
"""Median of the lognormal prior of the level, in log-probability."""
LEVEL_SD = 0.6
"""Standard deviation of the level's logarithm beforehand."""
STRENGTH_SD = 0.6
"""Standard deviation of a strength's logarithm around that of the level."""
SMOOTH_SHARE = 0.7
"""Prior probability that the classes' departures of an ordered feature are smooth."""
MIN_SHIFT_ROWS = 50
"""With fewer rows nothing is shifted."""
MAX_SHIFT_ROWS = 1000
"""Number of rows, from the first on, that shifts are estimated from."""
MAX_TABLE_CELLS = 256
"""Classes times cells; of larger tables, neighbouring cells share their strength."""
MAX_HELD_SCORES = 1 << 22
"""Largest number of scores in memory at once."""
TINY = 1e-9


def estimate_agreement(
    statistics: Statistics,
    rows: Any,
    *,
    draws: int = DEFAULT_DRAWS,
    random_state: int | Random | None = None,
) -> Floats:
    """For each row, how probably the classifier without noise would decide the same.

    That classifier is plain Naive Bayes of the exact counts, on the same features and bins; for a
    model with corrections, the same model with corrections that carry no noise.

    Parameters
    ----------
    statistics : Statistics
        Noisy numbers with their variances; what the model was made of.
    rows : data frame, Arrow table, mapping of columns or array
        A sample of the same people, at least 50; of fewer rows less is known and the answer may be
        too sure by more than is measured in benchmarks/RESULTS.md.
    draws : int, default 200
        Classifiers that are drawn.
    random_state : None, int or Random
        For the draws, which reveal nothing that was not released.

    Returns
    -------
    array of float, (rows,)
        Between 0.02 and 0.98 where there is noise; 1 where there is none. In simulations .85 came
        true in .88 of the cases over eight tables; with much noise it can be too sure by .2
        (adult, local reports at epsilon 1.5).

    Examples
    --------
    >>> from discreet import LocalNB
    >>> from discreet.datasets import make_mortgage
    >>> people = make_mortgage(4000)
    >>> nb = LocalNB(2.0, schema=people.schema, random_state=0).fit(people.X, people.y)
    >>> steady = estimate_agreement(nb.statistics_, people.X[:100], draws=50, random_state=0)
    >>> bool(0.5 < steady.mean() < 1)
    True
    """
    decisions = estimate(statistics).predict_joint_log_proba(rows).argmax(axis=1)
    if statistics.is_exact:
        return np.ones(len(decisions))
    return PosteriorDraws(statistics, draws, random_state).estimate_agreement(rows, decisions)


class PosteriorDraws:
    """Classifiers of exact numbers that the noisy ones leave possible.

    Parameters
    ----------
    statistics : Statistics
    draws : int, default 200
    random_state : None, int or Random

    Attributes
    ----------
    model : NaiveBayesModel
        All of them in one: its class ``K i + c`` is class c of the classifier i, of K classes.
    shares : array of shape (draws, classes)
        The class shares of each.
    """

    def __init__(
        self,
        statistics: Statistics,
        draws: int = DEFAULT_DRAWS,
        random_state: int | Random | None = None,
    ) -> None:
        if draws < 1:
            raise EstimationError(f"{draws} draws say nothing; write at least 1")
        noise_variances = [noisy_table.variances for noisy_table in statistics.tables.values()]
        noise_variances += [
            noisy_moments.variances for noisy_moments in statistics.moments.values()
        ]
        if not all(
            np.isfinite(variance_array).all()
            for variance_array in [statistics.variances, *noise_variances]
        ):
            raise EstimationError(
                "the noise of these statistics has no variance (Cauchy's), so what lies behind "
                "them cannot be drawn; train with another method"
            )
        rng = np.random.default_rng(as_random(random_state).words(4))  # to imagine, not to protect
        drawn_totals = _draw_totals(statistics, draws, rng)
        self.shares = drawn_totals / drawn_totals.sum(axis=1, keepdims=True)
        self._shift_factors = rng.uniform(0.0, 2.0, (draws, 1))
        self._class_shift: Floats | None = None
        if statistics.scoring.corrections:
            self.model = draw_corrected_models(statistics, draws, rng)
            self._class_shift = np.zeros(1)  # corrected models keep to the class shares
        else:
            self.model = _build_drawn_model(statistics, drawn_totals, rng)

    def estimate_agreement(self, rows: Any, decisions: Any) -> Floats:
        """For each row the probability that the classifier without noise decides so.

        Parameters
        ----------
        rows : data frame, Arrow table, mapping of columns or array
            Those of the first call are the sample of people by which the classifiers are shifted.
        decisions : array of int, (rows,)
        """
        row_columns = get_columns(rows, self.model.inputs.names)
        row_count, agreement_shares = len(decisions), np.zeros(len(decisions))
        if self._class_shift is None:
            self._class_shift = np.zeros(1)
            if row_count >= MIN_SHIFT_ROWS:
                sample_scores = self._compute_scores(row_columns, slice(0, MAX_SHIFT_ROWS))
                self._class_shift = self._shift_factors * _fit_shift(sample_scores, self.shares)
        chunk_rows = max(MAX_HELD_SCORES // self.shares.size, 1)
        for first_row in range(0, row_count, chunk_rows):
            row_slice = slice(first_row, first_row + chunk_rows)
            shifted_scores = self._compute_scores(row_columns, row_slice) + self._class_shift
            agreement_shares[row_slice] = (
                shifted_scores.argmax(axis=2) == decisions[row_slice, None]
            ).mean(axis=1)
        return np.asarray(PRIOR_DOUBT / 2 + (1 - PRIOR_DOUBT) * agreement_shares)

    def _compute_scores(self, columns: Mapping[str, Any], row_slice: slice) -> Floats:
        """Of shape (rows, draws, classes)."""
        chunk_columns = {name: column[row_slice] for name, column in columns.items()}
        return self.model.predict_joint_log_proba(chunk_columns).reshape(-1, *self.shares.shape)


def _fit_shift(scores: Floats, shares: Floats, steps: int = 40) -> Floats:
    """Constants by which the mean of P(class | row) becomes the class's share."""
    class_shift = np.zeros(shares.shape)
    for _ in range(steps):
        shifted_scores = scores + class_shift
        odds = np.exp(shifted_scores - shifted_scores.max(axis=2, keepdims=True))
        mean_probability = (odds / odds.sum(axis=2, keepdims=True)).mean(axis=0)
        class_shift += np.clip(np.log(shares + TINY) - np.log(mean_probability + TINY), -1.0, 1.0)
    return class_shift


def _draw_totals(statistics: Statistics, draws: int, rng: np.random.Generator) -> Floats:
    """Class totals, (draws, classes): normal around the noisy ones, at least zero."""
    from scipy.special import ndtr, ndtri

    people = max(float(np.sum(statistics.totals)), 1.0)
    if statistics.scoring.prior is not None:
        return np.tile(people * np.array(statistics.scoring.prior), (draws, 1))
    noisy_totals, total_variances = (
        np.asarray(numbers, float) for numbers in (statistics.totals, statistics.variances)
    )
    class_count = len(noisy_totals)
    table_sums = [float(noisy_table.counts.sum()) for noisy_table in statistics.tables.values()]
    if class_count > 1 and np.allclose(table_sums, people, rtol=1e-9):
        # everybody was counted, so errors add up to zero: as shares, those of independent errors
        # of K / (K - 1) times the variance
        total_variances = total_variances * class_count / (class_count - 1)
    total_std = np.sqrt(total_variances)
    negative_mass = ndtr(-noisy_totals / np.maximum(total_std, TINY))
    drawn_quantile = negative_mass + (1 - negative_mass) * rng.uniform(
        1e-6, 1 - 1e-6, (draws, class_count)
    )
    return np.asarray(
        np.maximum(noisy_totals + total_std * ndtri(np.minimum(drawn_quantile, 1 - 1e-12)), 1e-3)
    )


def _build_drawn_model(
    statistics: Statistics, drawn_totals: Floats, rng: np.random.Generator
) -> NaiveBayesModel:
    """The drawn classifiers as one model, each class of each a class of its own."""
    stacked_schema = replace(statistics.schema, classes=tuple(range(drawn_totals.size)))
    projection = statistics.projection
    if projection is not None:
        projection = replace(
            projection,
            input_schema=replace(projection.input_schema, classes=stacked_schema.classes),
        )
    scoring = statistics.scoring
    plain_scoring = Scoring("none", likelihood=scoring.likelihood, features=scoring.features)
    drawn_tables = _draw_tables(statistics, drawn_totals, rng)
    drawn_moments = {
        name: _draw_moments(noisy_moments, drawn_totals, rng)
        for name, noisy_moments in statistics.moments.items()
        if name not in statistics.tables
    }
    return estimate(
        Statistics(
            stacked_schema,
            drawn_totals.ravel(),
            tables={
                name: Table(statistics.tables[name].cells, counts.reshape(drawn_totals.size, -1))
                for name, counts in drawn_tables.items()
            },
            moments=drawn_moments,
            projection=projection,
            scoring=plain_scoring,
        )
    )


def _draw_tables(
    statistics: Statistics, drawn_totals: Floats, rng: np.random.Generator
) -> dict[str, Floats]:
    """Exact counts of every feature, (draws, classes, cells)."""
    class_prior = np.exp(estimate(statistics).log_prior)
    people = max(float(np.sum(statistics.totals)), 1.0)
    skips_missing, used_features = statistics.schema.missing == "skip", statistics.scoring.features
    share_tables: dict[str, tuple[Floats, Floats]] = {}
    bin_counts, groups_by_feature = {}, {}
    for name, table in statistics.tables.items():
        if used_features is not None and name not in used_features:
            continue
        cells = table.cells
        cell_count = (
            cells.missing_index if skips_missing and cells.missing_index is not None else cells.size
        )
        counts, variances = (
            np.asarray(numbers, float) for numbers in (table.counts, table.between_class_variances)
        )
        people_present = max(people - max(float(counts[:, cell_count:].sum()), 0.0), people / 100)
        groups_by_feature[name] = _group_cells(
            counts[:, :cell_count], bool(cells.edges), len(class_prior)
        )
        group_matrix = np.eye(groups_by_feature[name].max() + 1)[groups_by_feature[name]]
        share_tables[name] = (
            counts[:, :cell_count] @ group_matrix / people_present,
            variances[:, :cell_count] @ group_matrix / people_present**2,
        )
        bin_counts[name] = (
            int(group_matrix[: cells.value_count].any(axis=0).sum()) if cells.edges else 0
        )
    people_by_feature = dict.fromkeys(share_tables, people)
    table_posteriors = dict(
        fit_posteriors(share_tables, bin_counts, class_prior, people_by_feature)
    )
    return {
        name: _draw_counts(
            statistics.tables[name], groups_by_feature[name], probability, drawn_totals, rng
        )
        for name, probability in _draw_probabilities(
            table_posteriors, len(drawn_totals), rng
        ).items()
    }


def _group_cells(counts: Floats, is_ordered: bool, class_count: int) -> Any:
    """The group of every cell: its own, or with its neighbours where there are too many cells."""
    cell_count = counts.shape[1]
    cell_order = (
        np.arange(cell_count) if is_ordered else np.argsort(counts.sum(axis=0), kind="stable")
    )
    cell_groups = np.empty(cell_count, dtype=np.int64)
    cell_groups[cell_order] = (
        np.arange(cell_count)
        * min(max(MAX_TABLE_CELLS // class_count, 2), cell_count)
        // cell_count
    )
    return cell_groups


def _draw_probabilities(
    table_posteriors: Mapping[str, TablePosterior], draws: int, rng: np.random.Generator
) -> dict[str, Floats]:
    """P(group of cells | class) of every feature, with levels and strengths drawn."""
    if not table_posteriors:
        return {}
    grid_strengths, grid_shared_parts = STRENGTH_GRID.T
    log_distance = np.log(np.maximum(grid_strengths, LEVEL_GRID[0])) - np.log(LEVEL_GRID)[:, None]
    grid_weights = np.exp(-0.5 * (log_distance / STRENGTH_SD) ** 2)
    grid_weights *= np.where(
        grid_strengths == 0, 1.0, np.where(grid_shared_parts > 0, SMOOTH_SHARE, 1 - SMOOTH_SHARE)
    )
    log_joint = np.log(grid_weights / grid_weights.sum(axis=1, keepdims=True))[:, None]
    log_joint = log_joint + np.array(
        [posterior.log_evidence for posterior in table_posteriors.values()]
    )
    max_log_joint = log_joint.max(axis=2, keepdims=True)
    joint_odds = np.exp(log_joint - max_log_joint)
    log_level = -0.5 * (np.log(LEVEL_GRID / LEVEL_MEDIAN) / LEVEL_SD) ** 2
    log_level = log_level + (np.log(joint_odds.sum(axis=2)) + max_log_joint[:, :, 0]).sum(axis=1)
    level_weights = np.exp(log_level - log_level.max())
    drawn_levels = rng.choice(len(LEVEL_GRID), size=draws, p=level_weights / level_weights.sum())
    cumulative_weights = (joint_odds / joint_odds.sum(axis=2, keepdims=True)).cumsum(axis=2)
    drawn_probabilities = {}
    for feature_index, (name, posterior) in enumerate(table_posteriors.items()):
        grid_points = (
            cumulative_weights[drawn_levels, feature_index] > rng.random((draws, 1)) * (1 - TINY)
        ).argmax(axis=1)
        drawn_probabilities[name] = posterior.draw(grid_points, rng)
    return drawn_probabilities


def _draw_counts(
    table: Table,
    cell_groups: Any,
    probability: Floats,
    drawn_totals: Floats,
    rng: np.random.Generator,
) -> Floats:
    """Exact counts: between expected and noisy ones, as sampling and noise deserve."""
    cell_count = len(cell_groups)
    noisy_counts, count_variances = (
        np.asarray(numbers, float)[:, :cell_count]
        for numbers in (table.counts, table.between_class_variances)
    )
    cell_sizes = (
        np.maximum(noisy_counts.sum(axis=0), 0.0) + np.sqrt(count_variances.sum(axis=0)) + 1
    )
    cell_shares = (
        cell_sizes / np.bincount(cell_groups, cell_sizes)[cell_groups]
    )  # of a cell in its group
    expected_counts = drawn_totals[:, :, None] * probability[:, :, cell_groups] * cell_shares
    sampling_variance = expected_counts + TINY
    signal_share = sampling_variance / (sampling_variance + count_variances)
    drawn_noise = np.sqrt(signal_share * count_variances) * rng.standard_normal(
        expected_counts.shape
    )
    drawn_counts = np.zeros((*drawn_totals.shape, table.cells.size))
    drawn_counts[:, :, :cell_count] = np.maximum(
        expected_counts + signal_share * (noisy_counts - expected_counts) + drawn_noise, 0.0
    )
    return drawn_counts


def _draw_moments(
    noisy_moments: Moments, drawn_totals: Floats, rng: np.random.Generator
) -> Moments:
    """Exact moments of a number, each class of each draw a class of its own."""
    feature, draw_count = noisy_moments.feature, len(drawn_totals)
    class_counts, missing_counts = (
        np.maximum(np.asarray(numbers, float), 0.0)
        for numbers in (noisy_moments.counts, noisy_moments.missing)
    )
    positive_counts = np.maximum(class_counts, 1.0)
    half_range = (
        (feature.upper - feature.lower) / 2
        if feature.is_bounded
        else float(np.ptp(noisy_moments.mean)) + 1
    )
    class_shares = positive_counts / positive_counts.sum()
    mean_std = noisy_moments.step * np.sqrt(noisy_moments.variances[1]) / positive_counts
    class_means = np.clip(noisy_moments.mean, feature.lower, feature.upper)
    class_means = _draw_class_values(
        class_means, mean_std, class_shares, half_range, draw_count, rng
    )
    class_means = np.clip(class_means, feature.lower, feature.upper)
    variance_noise = noisy_moments.step**4 * noisy_moments.variances[2] / positive_counts**2
    variance_noise = (
        variance_noise + 4 * (class_means.mean(axis=0) - noisy_moments.origin) ** 2 * mean_std**2
    )
    if noisy_moments.noise is not None:
        variance_noise = np.asarray(noisy_moments.noise, float) ** 2
    typical_variance = max(
        float(class_shares @ np.maximum(noisy_moments.variance, 0.0)), (half_range / 50) ** 2
    )
    class_variances = _draw_class_values(
        noisy_moments.variance,
        np.sqrt(variance_noise),
        class_shares,
        typical_variance,
        draw_count,
        rng,
    )
    class_variances = np.clip(
        class_variances, typical_variance / 25, max(half_range**2, typical_variance / 25)
    )
    present_counts = drawn_totals * (
        positive_counts / np.maximum(positive_counts + missing_counts, 1.0)
    )
    mean_steps = (class_means - noisy_moments.origin) / noisy_moments.step
    return Moments(
        feature,
        present_counts.ravel(),
        (present_counts * mean_steps).ravel(),
        (present_counts * (class_variances / noisy_moments.step**2 + mean_steps**2)).ravel(),
        (drawn_totals - present_counts).ravel(),
        np.tile(noisy_moments.origin, draw_count),
        noisy_moments.step,
    )


def _draw_class_values(
    noisy_values: Floats,
    value_std: Floats,
    class_shares: Floats,
    typical_scale: float,
    draw_count: int,
    rng: np.random.Generator,
) -> Floats:
    """Numbers of the classes, (draws, classes), when how far they lie apart is open as well."""
    between_std = typical_scale * np.array([0.0, 1 / 32, 1 / 16, 1 / 8, 1 / 4, 1 / 2, 1.0])[:, None]
    total_variance = between_std**2 + value_std**2 + (TINY * typical_scale) ** 2
    common_centre = (noisy_values / total_variance).sum(axis=1) / (1 / total_variance).sum(axis=1)
    log_evidence = -0.5 * (
        np.log(total_variance) + (noisy_values - common_centre[:, None]) ** 2 / total_variance
    ).sum(axis=1)
    log_evidence = log_evidence - 0.5 * np.log((1 / total_variance).sum(axis=1))
    law_weights = np.exp(log_evidence - log_evidence.max())
    drawn_laws = rng.choice(len(between_std), size=draw_count, p=law_weights / law_weights.sum())
    drawn_centres = common_centre[drawn_laws] + rng.standard_normal(draw_count) / np.sqrt(
        (1 / total_variance[drawn_laws]).sum(axis=1)
    )
    signal_share = between_std[drawn_laws] ** 2 / total_variance[drawn_laws]
    drawn_values = drawn_centres[:, None] + signal_share * (noisy_values - drawn_centres[:, None])
    return np.asarray(
        drawn_values
        + np.sqrt(signal_share) * value_std * rng.standard_normal((draw_count, len(class_shares)))
    )
