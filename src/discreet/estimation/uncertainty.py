"""Probability that the classifier without noise would make the same decision.

The classifier without noise is plain Naive Bayes of the exact counts of the same people, on the
same features and bins, one pseudo-count a cell; nothing is shrunk, toned down or corrected. Of a
model with corrections it is the same model with exact corrections, drawn in corrected_draws.py:
plain Naive Bayes decides otherwise where features depend on each other, whatever the noise.

Tables of plain Naive Bayes are drawn from their posterior law, given the noisy numbers and the
known variance of each. What the noise hides is drawn as open, not as absent:

1. class totals: normal around the noisy ones, at least zero;
2. how much the features of such a table tell about the class: a common level, and around it a
   strength for every feature. Beforehand the level is lognormal (LEVEL_MEDIAN, LEVEL_SD), and so
   is a strength around it (STRENGTH_SD); an ordered feature is smooth with the probability
   SMOOTH_SHARE. These laws are about as wide as what is found among public tables; the noisy
   tables then speak for some of them (smoothing.py has the evidence);
3. for every feature P(cell | class), normal in its log-odds given the strength;
4. the exact counts: between those expected of that many people and the noisy ones, as sampling and
   noise deserve;
5. the rows to predict add one fact. On average over people, P(class | row) is the
   share of the class; drawn tables, in which features err independently of each other, miss it. So
   every drawn classifier is shifted by a constant for each class, unless there are too few rows.
   Naive Bayes itself holds it only roughly, as it counts evidence twice: the constants are those by
   which it would hold, times a number between 0 and MAX_SHIFT_FACTOR. This takes the rows for a
   sample of the same people.

Measured on eight tables that it was not tuned on (docs/experiments/confidence.md): decisions
called .85 steady were so in .88 ± .02, those called .92 in .94 ± .01. On single tables it can be
too cautious by .25, and was too sure by .10 at worst (chess, .93 stated, .83 ± .05 true). Of
central models it is too cautious by .04 on average. Where much noise meets many features that say
the same it remains too sure: adult, local reports at epsilon 1.5, .85 stated, .66 true, and .95
stated, .88 true; car, local reports, .75 stated, .60 true.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from discreet.arrays import Floats, Integers
from discreet.errors import EstimationError
from discreet.estimation.corrected_draws import draw_corrected_models
from discreet.estimation.from_statistics import estimate
from discreet.estimation.logistic_normal import STRENGTH_GRID, TablePosterior
from discreet.estimation.smoothing import fit_posteriors
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
"""Median of the lognormal prior of the level, in log-probability. This and the next three are about
as wide as among the tables that it was tuned on: docs/experiments/confidence.md,
"How steady decisions are called, and are"."""
LEVEL_SD = 0.6
"""Standard deviation of the level's logarithm beforehand."""
STRENGTH_SD = 0.6
"""Standard deviation of a strength's logarithm around that of the level."""
SMOOTH_SHARE = 0.7
"""Prior probability that the classes' departures of an ordered feature are smooth."""
BETWEEN_CLASS_PARTS = np.array([0.0, 1 / 32, 1 / 16, 1 / 8, 1 / 4, 1 / 2, 1.0])
"""Standard deviations of a mean or a variance between the classes, as parts of its typical scale;
all equally probable beforehand."""
MIN_SD_RANGE_PART = 50
"""The typical standard deviation of a number is at least half its range divided by this."""
MAX_VARIANCE_RATIO = 25
"""The variance within a class is at least the typical one divided by this."""
MIN_SHIFT_ROWS = 50
"""With fewer rows nothing is shifted."""
MAX_SHIFT_ROWS = 1000
"""Number of rows, from the first on, that shifts are estimated from."""
MAX_SHIFT_FACTOR = 2.0
"""A shift is known up to a factor between 0 and this; 1 for all compared:
docs/experiments/confidence.md, "How steady decisions are called, and are"."""
SHIFT_STEPS = 40
"""Steps in which a shift is fitted."""
MAX_SHIFT_PER_STEP = 1.0
"""Largest change of a shift in a step, in log-probability."""
MAX_TABLE_CELLS = 256
"""Classes times cells; of larger tables, neighbouring cells share their strength."""
MAX_PEOPLE_PER_PRESENT = 100
"""A feature is taken to be present in at least one of this many people."""
MAX_HELD_SCORES = 1 << 22
"""Largest number of scores in memory at once."""
MIN_QUANTILE = 1e-6
"""Class totals are drawn between this quantile of their law and one less it."""
MAX_QUANTILE = 1 - 1e-12
"""Largest quantile of a normal law that is computed."""
MIN_TOTAL = 1e-3
"""Smallest class total that is drawn, in people."""
TINY = 1e-9
"""What keeps logarithms and divisions finite."""


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
        too sure by more than is measured in docs/experiments/confidence.md.
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
            raise EstimationError(f"draws is {draws}; give at least 1")
        noise_variances = [
            statistics.variances,
            *(noisy_table.variances for noisy_table in statistics.tables.values()),
            *(noisy_moments.variances for noisy_moments in statistics.moments.values()),
        ]
        if not all(np.isfinite(variances).all() for variances in noise_variances):
            raise EstimationError(
                "the noise of these statistics has no variance (Cauchy's), so the exact counts "
                "behind them cannot be drawn; train with another method"
            )
        rng = np.random.default_rng(as_random(random_state).words(4))  # to imagine, not to protect
        drawn_totals = _draw_totals(statistics, draws, rng)
        self.shares = drawn_totals / drawn_totals.sum(axis=1, keepdims=True)
        self._shift_factors = rng.uniform(0.0, MAX_SHIFT_FACTOR, (draws, 1))
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


def _fit_shift(scores: Floats, shares: Floats) -> Floats:
    """Constants by which the mean of P(class | row) becomes the class's share."""
    class_shift = np.zeros(shares.shape)
    for _ in range(SHIFT_STEPS):
        shifted_scores = scores + class_shift
        odds = np.exp(shifted_scores - shifted_scores.max(axis=2, keepdims=True))
        mean_probability = (odds / odds.sum(axis=2, keepdims=True)).mean(axis=0)
        log_ratio = np.log(shares + TINY) - np.log(mean_probability + TINY)
        class_shift += np.clip(log_ratio, -MAX_SHIFT_PER_STEP, MAX_SHIFT_PER_STEP)
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
        MIN_QUANTILE, 1 - MIN_QUANTILE, (draws, class_count)
    )
    drawn_noise = total_std * ndtri(np.minimum(drawn_quantile, MAX_QUANTILE))
    return np.asarray(np.maximum(noisy_totals + drawn_noise, MIN_TOTAL))


def _build_drawn_model(
    statistics: Statistics, drawn_totals: Floats, rng: np.random.Generator
) -> NaiveBayesModel:
    """The drawn classifiers as one model, each class of each a class of its own."""
    stacked_schema = replace(statistics.schema, classes=tuple(range(drawn_totals.size)))
    projection = statistics.projection
    if projection is not None:
        input_schema = replace(projection.input_schema, classes=stacked_schema.classes)
        projection = replace(projection, input_schema=input_schema)
    scoring = statistics.scoring
    plain_scoring = Scoring("none", likelihood=scoring.likelihood, features=scoring.features)
    drawn_tables = _draw_tables(statistics, drawn_totals, rng)
    drawn_moments = {
        name: _draw_moments(noisy_moments, drawn_totals, rng)
        for name, noisy_moments in statistics.moments.items()
        if name not in statistics.tables
    }
    tables = {
        name: Table(statistics.tables[name].cells, counts.reshape(drawn_totals.size, -1))
        for name, counts in drawn_tables.items()
    }
    drawn_statistics = Statistics(
        stacked_schema,
        drawn_totals.ravel(),
        tables=tables,
        moments=drawn_moments,
        projection=projection,
        scoring=plain_scoring,
    )
    return estimate(drawn_statistics)


@dataclass(frozen=True, eq=False)
class GroupedTable:
    """A noisy table in shares of the people who have the feature, cells in groups where many.

    Parameters
    ----------
    cell_groups : array of int
        The group of every cell, but for one of missing values that are skipped.
    shares, variances : array of shape (classes, groups)
    bin_count : int
        How many of the groups are bins in order.
    """

    cell_groups: Integers
    shares: Floats
    variances: Floats
    bin_count: int

    @classmethod
    def from_table(cls, table: Table, people: float, skips_missing: bool) -> GroupedTable:
        """Group the cells of a table that was estimated from so many people."""
        cells, is_ordered = table.cells, bool(table.cells.edges)
        has_skipped_cell = skips_missing and cells.missing_index is not None
        cell_count = cells.missing_index if has_skipped_cell else cells.size
        counts, variances = (
            np.asarray(numbers, float) for numbers in (table.counts, table.between_class_variances)
        )
        missing_people = max(float(counts[:, cell_count:].sum()), 0.0)
        people_present = max(people - missing_people, people / MAX_PEOPLE_PER_PRESENT)
        cell_groups = _group_cells(counts[:, :cell_count], is_ordered)
        group_matrix = np.eye(cell_groups.max() + 1)[cell_groups]
        return cls(
            cell_groups,
            counts[:, :cell_count] @ group_matrix / people_present,
            variances[:, :cell_count] @ group_matrix / people_present**2,
            int(group_matrix[: cells.value_count].any(axis=0).sum()) if is_ordered else 0,
        )


def _draw_tables(
    statistics: Statistics, drawn_totals: Floats, rng: np.random.Generator
) -> dict[str, Floats]:
    """Exact counts of every feature, (draws, classes, cells)."""
    class_prior = np.exp(estimate(statistics).log_prior)
    people = max(float(np.sum(statistics.totals)), 1.0)
    skips_missing, used_features = statistics.schema.missing == "skip", statistics.scoring.features
    grouped_tables = {
        name: GroupedTable.from_table(table, people, skips_missing)
        for name, table in statistics.tables.items()
        if used_features is None or name in used_features
    }
    table_posteriors = dict(
        fit_posteriors(
            {name: (grouped.shares, grouped.variances) for name, grouped in grouped_tables.items()},
            {name: grouped.bin_count for name, grouped in grouped_tables.items()},
            class_prior,
            dict.fromkeys(grouped_tables, people),
        )
    )
    drawn_probabilities = _draw_probabilities(table_posteriors, len(drawn_totals), rng)
    drawn_tables = {}
    for name, probability in drawn_probabilities.items():
        table, cell_groups = statistics.tables[name], grouped_tables[name].cell_groups
        drawn_tables[name] = _draw_counts(table, cell_groups, probability, drawn_totals, rng)
    return drawn_tables


def _group_cells(counts: Floats, is_ordered: bool) -> Integers:
    """The group of every cell: its own, or with its neighbours where there are too many cells."""
    class_count, cell_count = counts.shape
    max_groups = max(MAX_TABLE_CELLS // class_count, 2)
    cell_order = (
        np.arange(cell_count) if is_ordered else np.argsort(counts.sum(axis=0), kind="stable")
    )
    cell_groups = np.empty(cell_count, dtype=np.int64)
    cell_groups[cell_order] = np.arange(cell_count) * min(max_groups, cell_count) // cell_count
    return cell_groups


def _compute_strength_prior() -> Floats:
    """P(strength, smooth or rough | level) beforehand, of shape (levels, grid)."""
    grid_strengths, grid_shared_parts = STRENGTH_GRID.T
    log_distance = np.log(np.maximum(grid_strengths, LEVEL_GRID[0])) - np.log(LEVEL_GRID)[:, None]
    grid_weights = np.exp(-0.5 * (log_distance / STRENGTH_SD) ** 2)
    grid_weights *= np.where(
        grid_strengths == 0, 1.0, np.where(grid_shared_parts > 0, SMOOTH_SHARE, 1 - SMOOTH_SHARE)
    )
    return np.asarray(grid_weights / grid_weights.sum(axis=1, keepdims=True))


def _draw_probabilities(
    table_posteriors: Mapping[str, TablePosterior], draws: int, rng: np.random.Generator
) -> dict[str, Floats]:
    """P(group of cells | class) of every feature, with levels and strengths drawn."""
    if not table_posteriors:
        return {}
    # of shape (levels, features, grid)
    log_joint = np.log(_compute_strength_prior())[:, None] + np.array(
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
    cell_groups: Integers,
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
    # of a cell in its group
    cell_shares = cell_sizes / np.bincount(cell_groups, cell_sizes)[cell_groups]
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
    half_range = (feature.upper - feature.lower) / 2
    if not feature.is_bounded:
        half_range = float(np.ptp(noisy_moments.mean)) + 1
    mean_std = noisy_moments.step * np.sqrt(noisy_moments.variances[1]) / positive_counts
    noisy_means = np.clip(noisy_moments.mean, feature.lower, feature.upper)
    drawn_means = _draw_class_values(noisy_means, mean_std, half_range, draw_count, rng)
    class_means = np.clip(drawn_means, feature.lower, feature.upper)
    class_variances = _draw_class_variances(
        noisy_moments, positive_counts, class_means, mean_std, half_range, rng
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


def _draw_class_variances(
    noisy_moments: Moments,
    positive_counts: Floats,
    class_means: Floats,
    mean_std: Floats,
    half_range: float,
    rng: np.random.Generator,
) -> Floats:
    """Variances of a number within the classes, (draws, classes), neither tiny nor past its range.

    A variance is the mean square less the squared mean: the noise of both is in it.
    """
    square_noise = noisy_moments.step**4 * noisy_moments.variances[2] / positive_counts**2
    variance_noise = (
        square_noise + 4 * (class_means.mean(axis=0) - noisy_moments.origin) ** 2 * mean_std**2
    )
    if noisy_moments.noise is not None:
        variance_noise = np.asarray(noisy_moments.noise, float) ** 2
    class_shares = positive_counts / positive_counts.sum()
    typical_variance = max(
        float(class_shares @ np.maximum(noisy_moments.variance, 0.0)),
        (half_range / MIN_SD_RANGE_PART) ** 2,
    )
    class_variances = _draw_class_values(
        noisy_moments.variance, np.sqrt(variance_noise), typical_variance, len(class_means), rng
    )
    min_variance = typical_variance / MAX_VARIANCE_RATIO
    return np.asarray(np.clip(class_variances, min_variance, max(half_range**2, min_variance)))


def _draw_class_values(
    noisy_values: Floats,
    value_std: Floats,
    typical_scale: float,
    draw_count: int,
    rng: np.random.Generator,
) -> Floats:
    """Numbers of the classes, (draws, classes), when how far they lie apart is open as well."""
    between_std = typical_scale * BETWEEN_CLASS_PARTS[:, None]
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
        + np.sqrt(signal_share) * value_std * rng.standard_normal((draw_count, len(noisy_values)))
    )
