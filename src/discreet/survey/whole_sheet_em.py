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
"""Most respondents from whom pseudo-counts are chosen; time: docs/experiments/surveys.md,
"Whole sheets"."""
MAX_EM_STEPS = 60
"""Steps of the EM algorithm."""
EM_TOLERANCE = 1e-3
"""Largest change of a probability below which the EM algorithm has converged."""
MIN_RESPONDENTS = 20
"""Respondents below which no dependence is fitted."""
MIN_RELATIVE_WEIGHT = 0.01
"""Weight, as a share of the largest one, below which the law of a pseudo-count is not fitted."""
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

    None in the related-question model, where everybody sends the truth, or where next to nothing
    was sent.

    Parameters
    ----------
    tally : Tally
        Of a questionnaire with one group: each sheet is true or drawn as a whole.
    totals, variances : arrays of shape (classes,)
        Unbiased class totals and the variance of each.
    tables : mapping of name to Table
        Unbiased.
    """
    survey = tally.collection
    (channel,) = survey.channels
    theta = float(channel.theta_exact)
    if (
        not isinstance(channel, Unrelated)
        or not 0 < theta < 1
        or tally.people < MIN_RESPONDENTS
        or len(totals) < 2
        or not tables
    ):
        return None
    em = WholeSheetEM(theta, np.array(survey.sizes[:-1]))  # the target comes last
    sheet_rows, sheet_counts = tally.get_distinct_answers()
    selection_rows = _sample_respondents(sheet_counts, SELECTION_RESPONDENTS)
    selection = PseudoCountSelection.cross_validate(
        em,
        encode_sheets(survey, theta, sheet_rows[selection_rows], np.ones(len(selection_rows))),
        _make_start_law(totals, variances, tables),
    )
    law = selection.fit_averaged_law(
        em, encode_sheets(survey, theta, *_thin_sheets(sheet_rows, sheet_counts))
    )
    tables_by_name = dict(
        zip(tables, np.split(law.tables, np.cumsum(em.feature_sizes)[:-1], axis=1), strict=True)
    )
    misfit = _compute_misfit(float(tally.people) * law.shares[:, None], tables_by_name, tables)
    weight = selection.compute_dependence_belief() / max(misfit, 1.0)
    return WholeSheetFit(weight, law.shares, tables_by_name)


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


def _compute_misfit(
    class_totals: Floats, fitted_tables: Mapping[str, Floats], tables: Mapping[str, Table]
) -> float:
    """Mean over cells of (u - n NB)^2 / V: about 1 where the channel's noise explains it all.

    docs/maths.md, "Whole sheets"; u is the unbiased table and V its variance.
    """
    squared_errors = [
        (table.counts - class_totals * fitted_tables[name]) ** 2 / table.variances
        for name, table in tables.items()
    ]
    return float(np.concatenate([squared_error.ravel() for squared_error in squared_errors]).mean())


class WholeSheetEM:
    """EM for the Naive Bayes law of the true sheets (Dempster, Laird, Rubin 1977).

    Parameters
    ----------
    theta : float
        Probability that a sheet is true.
    feature_sizes : array of int, (features,)
        Cells of each feature.
    """

    def __init__(self, theta: float, feature_sizes: Integers) -> None:
        self.theta, self.feature_sizes = theta, feature_sizes

    def run_em(
        self,
        sheets: SheetSample,
        pseudo_count: float,
        law: NaiveBayesLaw,
        max_steps: int = MAX_EM_STEPS,
    ) -> NaiveBayesLaw:
        """Run EM from a starting law with one pseudo-count."""
        for _ in range(max_steps):
            previous_law, law = law, self._make_step(sheets, pseudo_count, law)
            largest_change = max(
                np.abs(law.shares - previous_law.shares).max(),
                np.abs(law.tables - previous_law.tables).max(),
            )
            if largest_change < EM_TOLERANCE:
                break
        return law

    def _make_step(
        self, sheets: SheetSample, pseudo_count: float, law: NaiveBayesLaw
    ) -> NaiveBayesLaw:
        """Make the law of all sheets weighted by r(s) = theta NB / (theta NB + (1 - theta) D)."""
        class_count, cell_count = law.tables.shape
        log_true = law.compute_log_true(sheets, self.theta)
        decoy_odds = np.exp(np.clip(sheets.log_decoy - log_true, -700.0, 700.0))
        true_weights = sheets.sheet_counts / (1 + decoy_odds)
        class_totals: Floats = np.bincount(
            sheets.class_codes, true_weights, minlength=class_count
        ).astype(float)
        class_shares = (class_totals + 1) / (class_totals.sum() + class_count)
        cell_counts = (true_weights @ sheets.cell_indicators).reshape(class_count, cell_count)
        return NaiveBayesLaw(
            class_shares, self._shrink_to_margin(cell_counts, class_totals, pseudo_count)
        )

    def _shrink_to_margin(
        self, counts: Floats, class_totals: Floats, pseudo_count: float
    ) -> Floats:
        """Return (counts + a M) / (class totals + a), with M the margin of all classes."""
        pooled_margin = self.normalize_features(counts.sum(axis=0) + 1)
        if np.isinf(pseudo_count):
            return np.tile(pooled_margin, (len(counts), 1))
        return np.asarray(
            (counts + pseudo_count * pooled_margin) / (class_totals[:, None] + pseudo_count)
        )

    def normalize_features(self, cells: Floats) -> Floats:
        """Divide the cells of each feature (last axis) by their sum."""
        first_cells = np.cumsum(self.feature_sizes) - self.feature_sizes
        feature_totals = np.add.reduceat(cells, first_cells, axis=-1)
        return np.asarray(cells / np.repeat(feature_totals, self.feature_sizes, axis=-1))

    def compute_log_likelihood(self, sheets: SheetSample, law: NaiveBayesLaw) -> float:
        """Log of theta NB(s) + (1 - theta) D(s), added up over the sheets."""
        log_true = law.compute_log_true(sheets, self.theta)
        return float((sheets.sheet_counts * np.logaddexp(log_true, sheets.log_decoy)).sum())


@dataclass(frozen=True, eq=False)
class PseudoCountSelection:
    """How well each pseudo-count of the grid predicts sheets that were left out.

    Parameters
    ----------
    laws : list of NaiveBayesLaw
        Fitted to all sheets of the selection with each pseudo-count.
    log_likelihoods : array, (pseudo-counts,)
        Of the sheets left out; the last pseudo-count means no dependence on the class.
    """

    laws: list[NaiveBayesLaw]
    log_likelihoods: Floats

    @classmethod
    def cross_validate(
        cls, em: WholeSheetEM, sheets: SheetSample, start: NaiveBayesLaw
    ) -> PseudoCountSelection:
        """Fit all sheets with every pseudo-count, and each fold by the sheets outside of it."""
        fold_numbers = np.arange(len(sheets.sheet_counts)) % FOLDS
        laws, log_likelihoods = [], np.zeros(len(PSEUDO_COUNT_GRID))
        for grid_index, pseudo_count in enumerate(PSEUDO_COUNT_GRID):
            laws.append(em.run_em(sheets, pseudo_count, start))
            for fold in range(FOLDS):
                training_sheets, held_out_sheets = (
                    sheets.select_sheets(np.flatnonzero(is_selected))
                    for is_selected in (fold_numbers != fold, fold_numbers == fold)
                )
                # from the start law: the law of all sheets has seen the held-out ones
                fold_law = em.run_em(training_sheets, pseudo_count, start)
                log_likelihoods[grid_index] += em.compute_log_likelihood(held_out_sheets, fold_law)
        return cls(laws, log_likelihoods)

    def compute_weights(self) -> Floats:
        """Weights of the pseudo-counts: exp(l), 0 below a hundredth of the largest, sum 1."""
        weights = np.exp(self.log_likelihoods - self.log_likelihoods.max())
        weights = np.where(weights < MIN_RELATIVE_WEIGHT, 0.0, weights)
        return np.asarray(weights / weights.sum())

    def compute_dependence_belief(self) -> float:
        """1 / (1 + exp(6 - g)) with g = max l - l(infinity); docs/maths.md, "Whole sheets"."""
        gain = self.log_likelihoods[:-1].max() - self.log_likelihoods[-1]
        return float(1 / (1 + np.exp(np.clip(MIN_LOG_LIKELIHOOD_GAIN - gain, -50.0, 50.0))))

    def fit_averaged_law(self, em: WholeSheetEM, sheets: SheetSample) -> NaiveBayesLaw:
        """Fit the sheets with every pseudo-count that weighs, and average log-probabilities."""
        weighted_laws = [
            (weight, em.run_em(sheets, pseudo_count, law))
            for weight, pseudo_count, law in zip(
                self.compute_weights(), PSEUDO_COUNT_GRID, self.laws, strict=True
            )
            if weight > 0
        ]
        shares = np.exp(sum(weight * np.log(law.shares) for weight, law in weighted_laws))
        tables = np.exp(sum(weight * np.log(law.tables) for weight, law in weighted_laws))
        return NaiveBayesLaw(shares / shares.sum(), em.normalize_features(tables))


def encode_sheets(
    survey: Questionnaire, theta: float, sheet_rows: Integers, sheet_counts: Array
) -> SheetSample:
    """Encode sheets as places of (class, cell), with the log-probability of each as a decoy.

    Parameters
    ----------
    survey : Questionnaire
    theta : float
    sheet_rows : array of int, (sheets, questions)
        The target comes last.
    sheet_counts : array, (sheets,)
    """
    from scipy.sparse import csr_array  # late: a respondent's device need not load it

    log_decoy = np.full(len(sheet_rows), np.log1p(-theta))
    for law in survey.all_laws:
        law_shape = [survey.sizes[place] for place in law.places]
        law_cells = np.ravel_multi_index(tuple(sheet_rows[:, list(law.places)].T), law_shape)
        law_probabilities = np.array(law.weights, float) / law.total
        log_decoy += np.log(np.maximum(law_probabilities, MIN_PROBABILITY))[law_cells]
    *feature_sizes, class_count = survey.sizes
    first_cells = np.cumsum([0, *feature_sizes])
    class_codes = sheet_rows[:, -1]
    flat_cells = sheet_rows[:, :-1] + first_cells[:-1] + class_codes[:, None] * first_cells[-1]
    row_ends = np.arange(0, flat_cells.size + 1, len(feature_sizes))
    matrix_shape = (len(sheet_rows), class_count * int(first_cells[-1]))
    cell_indicators = csr_array(
        (np.ones(flat_cells.size), flat_cells.ravel(), row_ends), shape=matrix_shape
    )
    return SheetSample(class_codes, cell_indicators, np.asarray(sheet_counts, float), log_decoy)


def _thin_sheets(sheet_rows: Integers, sheet_counts: Integers) -> tuple[Integers, Integers]:
    """Distinct sheets to fit and their counts: all of them, or those of a sample."""
    if len(sheet_rows) <= MAX_FITTED_RESPONDENTS:
        return sheet_rows, sheet_counts
    taken_rows, taken_counts = np.unique(
        _sample_respondents(sheet_counts, MAX_FITTED_RESPONDENTS), return_counts=True
    )
    return sheet_rows[taken_rows], taken_counts


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
