"""Maximum-likelihood Naive Bayes from whole randomized sheets, by EM.

A sheet is true as a whole or drawn as a whole, and drawn ones are spread over all answers while
true ones are alike. So which sheets are probably true can be told from all of their answers
together, which the tables of one answer by class do not see. With NB the Naive Bayes law of a true
sheet and D the public law of the drawn ones, a sheet s has the likelihood

    theta NB(s) + (1 - theta) D(s)

which EM climbs: r(s) is the probability that s is true, and tables are counts of sheets weighted by
it, drawn to the feature's margin by a pseudo-counts per class. Everything is computed from sheets
that were sent, and costs no privacy.

- How large a is, and whether features depend on the class at all (a without end), is decided by
  the likelihood of sheets that were left out (four folds). Where dependence gains less than a few
  units of log-likelihood, the tables are left to their own shrinkage.
- True answers are not independent within a class. As far as the tables of this classifier lie
  farther from the unbiased ones than the channel's noise explains, it weighs less.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from discreet.arrays import Array, Floats, Integers
from discreet.collection.tally import Tally
from discreet.mechanisms.response import Unrelated
from discreet.statistics.scoring import WholeSheetFit
from discreet.statistics.statistics import Table
from discreet.survey.questionnaire import Questionnaire

__all__ = ["fit_whole_sheets"]

PSEUDO_COUNT_GRID = (1.0, 3.0, 10.0, 30.0, 100.0, np.inf)
"""Pseudo-counts per class that shrink its table to the margin; infinity: no dependence."""
MIN_LOG_LIKELIHOOD_GAIN = 6.0
"""Gain of held-out log-likelihood at which dependence on the class is believed to one half."""
FOLDS = 4
"""Folds of the cross-validation that chooses pseudo-counts; docs/maths.md, "Whole sheets"."""
MAX_FITTED_RESPONDENTS = 50_000
"""Distinct sheets up to which all are fitted; of more, so many respondents are drawn. Time."""
SELECTION_RESPONDENTS = 4_000
"""Most respondents from whom pseudo-counts are chosen; time (RESULTS.md, "Whole sheets")."""
MAX_EM_STEPS = 60
"""Steps of the EM algorithm."""
EM_TOLERANCE = 1e-3
"""Largest change of a probability below which the EM algorithm has converged."""
MIN_RESPONDENTS = 20
"""Respondents below which no dependence is fitted."""
MIN_PROBABILITY = 1e-300
"""Least probability whose logarithm is taken."""


@dataclass(frozen=True, eq=False)
class SheetSample:
    """Some sheets as places in a flat table of (class, cell).

    Parameters
    ----------
    class_codes : array of int, (sheets,)
    cell_indicators : sparse array, (sheets, classes * cells)
        One where a sheet of this class has this cell.
    sheet_counts : array of float, (sheets,)
    log_decoy : array of float, (sheets,)
        Log-probability that a drawn sheet is this one, and that a sheet is drawn.
    """

    class_codes: Integers
    cell_indicators: Any
    sheet_counts: Floats
    log_decoy: Floats

    def select_sheets(self, chosen: Integers) -> SheetSample:
        """Only the chosen sheets."""
        return SheetSample(
            self.class_codes[chosen],
            self.cell_indicators[chosen],
            self.sheet_counts[chosen],
            self.log_decoy[chosen],
        )


@dataclass(frozen=True, eq=False)
class NaiveBayesLaw:
    """A Naive Bayes law of true sheets: class shares, and P(cell | class) of all features in a row.

    Parameters
    ----------
    shares : array of shape (classes,)
    tables : array of shape (classes, cells of all features)
    """

    shares: Floats
    tables: Floats

    def compute_log_true(self, sheets: SheetSample, theta: float) -> Floats:
        """Log-probability that a sheet is true and this one."""
        log_cells = sheets.cell_indicators @ np.log(self.tables).ravel()
        return np.asarray(np.log(theta) + np.log(self.shares)[sheets.class_codes] + log_cells)


def fit_whole_sheets(
    tally: Tally[Questionnaire], totals: Floats, variances: Floats, tables: Mapping[str, Table]
) -> WholeSheetFit | None:
    """The classifier under which the sheets are most likely, and how much it may weigh.

    None where sheets are not true or drawn as a whole (several groups, or the related-question
    model), where everybody sends the truth, or where next to nothing was sent.

    Parameters
    ----------
    tally : Tally
    totals, variances : arrays of shape (classes,)
        Unbiased class totals and the variance of each.
    tables : mapping of name to Table
        Unbiased.
    """
    survey = tally.collection
    (channel, *other_channels) = survey.channels
    theta = float(channel.theta_exact)
    if (
        other_channels
        or not isinstance(channel, Unrelated)
        or not 0 < theta < 1
        or tally.people < MIN_RESPONDENTS
    ):
        return None
    if len(totals) < 2 or not tables:
        return None
    search = WholeSheetEM(survey, theta, _make_start_law(totals, variances, tables))
    law, dependence_belief = search.select_law(*tally.get_distinct_answers())
    tables_by_name = dict(
        zip(tables, np.split(law.tables, search.feature_ends[:-1], axis=1), strict=True)
    )
    # 1 where the noise of the channel explains all of the distance
    respondents = float(tally.people)
    squared_errors = [
        (table.counts - respondents * law.shares[:, None] * tables_by_name[name]) ** 2
        / table.variances
        for name, table in tables.items()
    ]
    misfit = float(
        np.concatenate([squared_error.ravel() for squared_error in squared_errors]).mean()
    )
    return WholeSheetFit(dependence_belief / max(misfit, 1.0), law.shares, tables_by_name)


def _make_start_law(
    totals: Floats, variances: Floats, tables: Mapping[str, Table]
) -> NaiveBayesLaw:
    """Make the unbiased tables positive, at least half a standard deviation per cell."""
    class_shares = np.maximum(totals, np.sqrt(variances) / 2) + 1
    feature_tables = []
    for table in tables.values():
        positive_counts = np.maximum(table.counts, np.sqrt(table.variances) / 2) + 1
        feature_tables.append(positive_counts / positive_counts.sum(axis=1, keepdims=True))
    return NaiveBayesLaw(class_shares / class_shares.sum(), np.concatenate(feature_tables, axis=1))


class WholeSheetEM:
    """Maximum-likelihood Naive Bayes law of the true sheets, by EM with chosen pseudo-counts.

    Parameters
    ----------
    survey : Questionnaire
    theta : float
    start : NaiveBayesLaw
    """

    def __init__(self, survey: Questionnaire, theta: float, start: NaiveBayesLaw) -> None:
        self.survey, self.theta, self.start = survey, theta, start
        self.sizes = np.array(survey.sizes[:-1])  # the target comes last
        self.feature_ends = np.cumsum(self.sizes)

    def select_law(
        self, sheet_rows: Integers, sheet_counts: Integers
    ) -> tuple[NaiveBayesLaw, float]:
        """Fit the law, averaged over pseudo-counts, and the belief in dependence on the class.

        Parameters
        ----------
        sheet_rows : array of int, (different sheets, questions)
        sheet_counts : array of int, (different sheets,)
        """
        selection_rows = _sample_respondents(sheet_counts, SELECTION_RESPONDENTS)
        start_laws, log_likelihoods = self._cross_validate(
            self._encode_sheets(sheet_rows[selection_rows], np.ones(len(selection_rows)))
        )
        log_likelihood_gain = log_likelihoods[:-1].max() - log_likelihoods[-1]
        grid_weights = np.exp(log_likelihoods - log_likelihoods.max())
        grid_weights = np.where(grid_weights < 0.01, 0.0, grid_weights)
        fitted_rows, fitted_counts = sheet_rows, sheet_counts
        if len(sheet_rows) > MAX_FITTED_RESPONDENTS:
            distinct_rows, fitted_counts = np.unique(
                _sample_respondents(sheet_counts, MAX_FITTED_RESPONDENTS), return_counts=True
            )
            fitted_rows = sheet_rows[distinct_rows]
        fitted_sheets = self._encode_sheets(fitted_rows, fitted_counts)
        weighted_laws = [
            (grid_weight, self.run_em(fitted_sheets, pseudo_count, law, MAX_EM_STEPS))
            for grid_weight, pseudo_count, law in zip(
                grid_weights / grid_weights.sum(), PSEUDO_COUNT_GRID, start_laws, strict=True
            )
            if grid_weight > 0
        ]
        class_shares = np.exp(
            sum(grid_weight * np.log(law.shares) for grid_weight, law in weighted_laws)
        )
        feature_tables = np.exp(
            sum(grid_weight * np.log(law.tables) for grid_weight, law in weighted_laws)
        )
        feature_totals = np.add.reduceat(feature_tables, self.feature_ends - self.sizes, axis=1)
        feature_tables = feature_tables / np.repeat(feature_totals, self.sizes, axis=1)
        dependence_belief = 1 / (
            1 + np.exp(np.clip(MIN_LOG_LIKELIHOOD_GAIN - log_likelihood_gain, -50.0, 50.0))
        )
        return NaiveBayesLaw(class_shares / class_shares.sum(), feature_tables), float(
            dependence_belief
        )

    def _cross_validate(self, sheets: SheetSample) -> tuple[list[NaiveBayesLaw], Floats]:
        """Fit a law for every pseudo-count, and its held-out log-likelihood over the folds."""
        fold_numbers = np.arange(len(sheets.sheet_counts)) % FOLDS
        fitted_laws, log_likelihoods = [], np.zeros(len(PSEUDO_COUNT_GRID))
        for grid_index, pseudo_count in enumerate(PSEUDO_COUNT_GRID):
            fitted_laws.append(self.run_em(sheets, pseudo_count, self.start, MAX_EM_STEPS))
            for fold in range(FOLDS):
                training_sheets, held_out_sheets = (
                    sheets.select_sheets(np.flatnonzero(is_selected))
                    for is_selected in (fold_numbers != fold, fold_numbers == fold)
                )
                # from the start law: the law of all sheets has seen the held-out ones
                fold_law = self.run_em(training_sheets, pseudo_count, self.start, MAX_EM_STEPS)
                log_true = fold_law.compute_log_true(held_out_sheets, self.theta)
                log_likelihoods[grid_index] += (
                    held_out_sheets.sheet_counts * np.logaddexp(log_true, held_out_sheets.log_decoy)
                ).sum()
        return fitted_laws, log_likelihoods

    def run_em(
        self, sheets: SheetSample, pseudo_count: float, law: NaiveBayesLaw, max_steps: int
    ) -> NaiveBayesLaw:
        """Run EM from a starting law with one pseudo-count."""
        class_count, cell_count = law.tables.shape
        for _ in range(max_steps):
            log_true = law.compute_log_true(sheets, self.theta)
            decoy_odds = np.exp(np.clip(sheets.log_decoy - log_true, -700.0, 700.0))
            true_weights = sheets.sheet_counts / (1 + decoy_odds)
            class_totals: Floats = np.bincount(
                sheets.class_codes, true_weights, minlength=class_count
            ).astype(float)
            class_shares = (class_totals + 1) / (class_totals.sum() + class_count)
            cell_counts = true_weights @ sheets.cell_indicators
            feature_tables = self._shrink_to_margin(
                cell_counts.reshape(class_count, cell_count), class_totals, pseudo_count
            )
            largest_change = max(
                np.abs(class_shares - law.shares).max(), np.abs(feature_tables - law.tables).max()
            )
            law = NaiveBayesLaw(class_shares, feature_tables)
            if largest_change < EM_TOLERANCE:
                break
        return law

    def _shrink_to_margin(
        self, counts: Floats, class_totals: Floats, pseudo_count: float
    ) -> Floats:
        pooled_counts = counts.sum(axis=0) + 1
        pooled_margin = pooled_counts / np.repeat(
            np.add.reduceat(pooled_counts, self.feature_ends - self.sizes), self.sizes
        )
        if np.isinf(pseudo_count):
            return np.tile(pooled_margin, (len(counts), 1))
        return np.asarray(
            (counts + pseudo_count * pooled_margin) / (class_totals[:, None] + pseudo_count)
        )

    def _encode_sheets(self, sheet_rows: Integers, sheet_counts: Array) -> SheetSample:
        from scipy.sparse import csr_array  # late: a respondent's device need not load it

        log_decoy = np.full(len(sheet_rows), np.log1p(-self.theta))
        for law in self.survey.all_laws:
            law_shape = [self.survey.sizes[place] for place in law.places]
            law_cells = np.ravel_multi_index(tuple(sheet_rows[:, list(law.places)].T), law_shape)
            law_probabilities = np.array(law.weights, float) / law.total
            log_decoy += np.log(np.maximum(law_probabilities, MIN_PROBABILITY))[law_cells]
        class_codes = sheet_rows[:, -1]
        flat_cells = (
            sheet_rows[:, :-1]
            + self.feature_ends
            - self.sizes
            + class_codes[:, None] * self.feature_ends[-1]
        )
        row_ends = np.arange(0, flat_cells.size + 1, len(self.sizes))
        matrix_shape = (len(sheet_rows), self.start.tables.size)
        cell_indicators = csr_array(
            (np.ones(flat_cells.size), flat_cells.ravel(), row_ends), shape=matrix_shape
        )
        return SheetSample(class_codes, cell_indicators, np.asarray(sheet_counts, float), log_decoy)


def _sample_respondents(sheet_counts: Integers, max_respondents: int) -> Integers:
    """Take at most ``max_respondents`` evenly; return the index of each one's distinct sheet."""
    cumulative_counts = np.cumsum(sheet_counts)
    respondent_count = int(cumulative_counts[-1])
    taken_positions = np.arange(respondent_count)
    if respondent_count > max_respondents:
        taken_positions = np.floor(
            (np.arange(max_respondents) + 0.5) * respondent_count / max_respondents
        ).astype(np.int64)
    return np.asarray(np.searchsorted(cumulative_counts, taken_positions, side="right"))
