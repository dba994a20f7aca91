"""Corrections: tables that count what the model so far gets wrong (docs/maths.md, "Corrections").

Where there are people enough, independence is what limits a Naive Bayes model, not the noise. Then
a part of the budget pays for

1. the start: which of the usual scorings, and how far it is toned down, describes the rows best;
2. features, those that say most first: for every cell the sum of residuals (class minus expected
   class) and of curvatures of the model so far, with noise. They change the feature's table;
3. a few pairs of features, chosen by how wrong the model is in their cells: the same for a pair;
4. the last choice: which of the models made on the way, or of the usual ones with all or few
   features, classifies most rows right.

Accounting: rows are looked at through three numbers. A row's residuals and curvature are whole
numbers whose absolute values add up to at most 1024, so one more record changes a table of their
sums by at most 1024 in all, and the sum of their absolute values in cells by at most 1024, up *or
down*: pairs are drawn with exp(epsilon q / 2). The qualities of the start (at most 1024 a row) and
of the last choice (1) can only rise. All shares are charged; all of them see the same rows, and who
is among those is decided by one coin a row, which is charged as if it had always shown heads. Where
a person has up to k rows, all of these sums move by up to k times as much, and noise and choices
are for that (`Influence`).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from itertools import combinations

import numpy as np

from discreet.arrays import Floats, Integers
from discreet.central.budget import Budget, IntegerNoise
from discreet.central.pair_qualities import CellGrouping, compute_pair_qualities
from discreet.central.selection import (
    RowSample,
    compute_subsample_share,
    count_correct,
    sample_exponential_mechanism,
    weigh_rows,
)
from discreet.estimation.corrections import AdditiveModel
from discreet.estimation.log_ratios import LogRatios
from discreet.privacy.accountant import ChoiceStep, ReleaseStep
from discreet.randomness import Random
from discreet.schema.schema import Schema
from discreet.statistics.scoring import Correction, Scoring
from discreet.tables.contributions import Influence

__all__ = [
    "MAX_PAIRS",
    "CorrectionBudget",
    "apply_corrections",
    "compute_residuals",
    "compute_truncated_log_likelihood",
    "compute_truncated_log_probability",
    "max_rows",
    "sum_rows",
]

CellGroups = Mapping[str, tuple[int, ...]]
"""What a correction is about: features, and the group of each of their cells."""

RESIDUAL_STEPS = 1024
"""Residuals are counted in whole multiples of 1 / 1024: the L1 sensitivity of their tables."""
MIN_SIGNAL_TWO_CLASSES = 100.0
"""Two classes are corrected when people / (classes * noise scale) is at least this; tuned on chess,
mushroom and generated tables: docs/experiments/central.md, "Corrections: before and after"."""
MIN_SIGNAL_MANY_CLASSES = 150.0
"""The same with more than two classes, where residuals are divided by up to 2.25."""
SHARE_STEPS = 1000
"""Shares of the budget are whole multiples of 1 / 1000, so that costs are short fractions."""
START_SHARE = 0.03
"""Share of the budget for the choice of the start: docs/maths.md, "Corrections"."""
MAX_FEATURE_SHARE = 0.35
"""Largest share of the budget for all features: docs/maths.md, "Corrections"."""
FEATURE_SHARE_PER_DECADE = 0.2
"""Share for features that each factor of ten in signal_to_noise adds: docs/maths.md,
"Corrections"."""
ZERO_SHARE_SIGNAL = 30
"""The signal_to_noise at which that share would be zero; corrections begin well above it."""
MAX_PAIR_SHARE = 0.28
"""Largest share of the budget for all pairs: docs/maths.md, "Corrections"."""
PAIR_TO_FEATURE_SHARE = 0.9
"""Share for all pairs as a multiple of the share for all features, below that limit."""
FINAL_SHARE = 0.04
"""Share of the budget for the last choice, of the scoring: docs/maths.md, "Corrections"."""
TEMPERATURES = (1.0, 0.7, 0.5, 0.35, 0.25)
"""Factors of the evidence among which the start is chosen: docs/maths.md, "Start"."""
MAX_LOG_LOSS = 4.0
"""The log-loss of a row is truncated here, in nats, so that its quality lies between 0 and 1."""
MIN_CORRECTED_FEATURES = 6
"""Fewest features that are corrected, where there are as many: docs/maths.md, "Which features"."""
FEATURES_PER_SIGNAL = 0.15
"""Corrected features per signal_to_noise * feature_share: docs/maths.md, "Which features"."""
SIGNAL_PER_PAIR = 45.0
"""signal_to_noise * pair_share that each corrected pair needs: docs/maths.md, "Pairs"."""
MAX_PAIRS = 6
"""Most pairs that are corrected: docs/maths.md, "Pairs"."""
PAIR_CANDIDATE_FEATURES = 10
"""Number of best features whose pairs are candidates."""
GROUPS_PER_PAIR_FEATURE = 6
"""Largest number of cell groups of each feature of a pair."""
PAIR_TABLE_SHARE = Fraction(8, 10)
"""Part of the cost of a pair that pays for its table; the rest pays for choosing the pair."""
TWO_SIDED_FACTOR = 2
"""Sensitivity factor of a quality that one record may raise or lower (McSherry, Talwar 2007)."""
MAX_PAIR_RESIDUALS = 200_000
"""Rows times classes of the subsample on which pairs are scored."""
CHUNK_ROWS = 8192
"""Rows whose residuals are computed at once, in the processor's cache."""


@dataclass(frozen=True)
class CorrectionBudget:
    """The budget of each correction step; it depends only on what is already private.

    Parameters
    ----------
    start_cost, feature_cost, pair_cost, final_cost, total_cost : Fraction
        Of the steps above, and all together.
    feature_count, pair_count : int
        Of features and of pairs.
    people : float
        How many rows there are about, by what is already private.
    """

    start_cost: Fraction
    feature_cost: Fraction
    pair_cost: Fraction
    final_cost: Fraction
    total_cost: Fraction
    feature_count: int
    pair_count: int
    people: float

    @classmethod
    def from_signal_to_noise(
        cls, signal_to_noise: float, schema: Schema, budget_total: Fraction, people: float
    ) -> CorrectionBudget | None:
        """The correction budget for this signal-to-noise ratio, or None if it is too low.

        >>> from discreet import Numeric
        >>> schema = Schema([Numeric(f"x{i}", 0, 1) for i in range(20)], "y", [0, 1])
        >>> plan = CorrectionBudget.from_signal_to_noise(300.0, schema, Fraction(1), 10_000)
        >>> float(plan.feature_cost), float(plan.pair_cost), plan.feature_count, plan.pair_count
        (0.2, 0.18, 9, 1)
        """
        schema_feature_count = len(schema.features)
        min_signal = MIN_SIGNAL_TWO_CLASSES if len(schema.classes) == 2 else MIN_SIGNAL_MANY_CLASSES
        if not signal_to_noise >= min_signal or schema_feature_count < 2 or len(schema.classes) < 2:
            return None
        decades = math.log10(signal_to_noise / ZERO_SHARE_SIGNAL)
        feature_share = min(MAX_FEATURE_SHARE, FEATURE_SHARE_PER_DECADE * decades)
        pair_share = min(MAX_PAIR_SHARE, PAIR_TO_FEATURE_SHARE * feature_share)
        feature_limit = max(
            MIN_CORRECTED_FEATURES, FEATURES_PER_SIGNAL * signal_to_noise * feature_share
        )
        pair_limit = max(signal_to_noise * pair_share / SIGNAL_PER_PAIR, 1)
        start_cost, feature_cost, pair_cost, final_cost = (
            budget_total * Fraction(round(SHARE_STEPS * step_share), SHARE_STEPS)
            for step_share in (START_SHARE, feature_share, pair_share, FINAL_SHARE)
        )
        return cls(
            start_cost,
            feature_cost,
            pair_cost,
            final_cost,
            total_cost=start_cost + feature_cost + pair_cost + final_cost,
            feature_count=round(min(schema_feature_count, feature_limit)),
            pair_count=math.floor(min(pair_limit, MAX_PAIRS)),
            people=people,
        )

    def list_steps(
        self, class_count: int, feature_count: int, budget: Budget, influence: Influence
    ) -> list[ReleaseStep]:
        """Every step of the corrections of a model with this many features, in their order.

        Parameters
        ----------
        class_count : int
        feature_count : int
        budget : Budget
        influence : Influence
        """
        change = _compute_table_change(class_count, influence)
        corrected_count = min(self.feature_count, feature_count)
        feature_step = budget.plan_noise(self.feature_cost / corrected_count, *change)
        choice_cost, table_cost = self.split_pair_cost(feature_count)
        pair_steps: list[ReleaseStep] = [ChoiceStep(choice_cost)] if choice_cost else []
        pair_steps.append(budget.plan_noise(table_cost, *change))
        return [
            ChoiceStep(self.start_cost),
            *[feature_step] * corrected_count,
            *pair_steps * self.pair_count,
            ChoiceStep(self.final_cost),
        ]

    def split_pair_cost(self, feature_count: int) -> tuple[Fraction, Fraction]:
        """What the choice of a pair costs, and its table; of two features there is one pair."""
        pair_cost = self.pair_cost / self.pair_count
        table_cost = PAIR_TABLE_SHARE * pair_cost if feature_count > 2 else pair_cost
        return pair_cost - table_cost, table_cost


def _count_residuals(class_count: int) -> int:
    """Residuals of a row: of two classes one, else one per class."""
    return 1 if class_count == 2 else class_count


def _compute_table_change(class_count: int, influence: Influence) -> tuple[int, int]:
    """How far one person moves a table of residuals, and how many of its numbers."""
    coordinates = _count_residuals(class_count) + 1  # the curvature is one more
    return RESIDUAL_STEPS * influence.count_sensitivity, coordinates * influence.rows


def compute_residuals(scores: Floats, class_codes: Integers) -> tuple[Floats, Floats]:
    """Residuals, of shape (rows, 1 or classes), and curvatures of rows, in whole 1/1024.

    Two classes: y - q and q (1 - q), together 1 - P(y)^2. More: onehot - p and a quarter of
    sum of p (1 - p), the row divided by what they add up to where that is more than one. They are
    rounded towards zero, so that the absolute values of a row add up to at most 1024. They are to
    the last bit a function of that row alone, whatever other rows there are.
    """
    row_count, class_count = scores.shape
    row_residuals = np.empty((row_count, 1 if class_count == 2 else class_count))
    row_curvatures = np.empty(row_count)
    for first_row in range(0, row_count, CHUNK_ROWS):
        rows = slice(first_row, first_row + CHUNK_ROWS)
        row_residuals[rows], row_curvatures[rows] = _compute_chunk_residuals(
            scores[rows], class_codes[rows]
        )
    return row_residuals, row_curvatures


def _compute_chunk_residuals(scores: Floats, class_codes: Integers) -> tuple[Floats, Floats]:
    """Residuals and curvatures of rows that fit into the processor's cache together."""
    scores = np.ascontiguousarray(scores)  # exp may be computed otherwise where there are gaps
    row_residuals: Floats
    row_curvatures: Floats
    if scores.shape[1] == 2:
        with np.errstate(over="ignore"):
            q: Floats = np.exp(scores[:, 0] - scores[:, 1])
        q += 1
        np.divide(1, q, out=q)
        row_residuals = np.asarray(class_codes - q)[:, None]
        row_curvatures = q * (1 - q)
    else:
        row_residuals = np.exp(scores - max_rows(scores)[:, None])
        row_residuals /= -sum_rows(row_residuals)[:, None]
        row_curvatures = (1 - sum_rows(row_residuals * row_residuals)) / 4
        row_residuals[np.arange(len(class_codes)), class_codes] += 1
        row_curvatures = np.maximum(row_curvatures, 0.0)
        row_totals = np.maximum(sum_rows(np.abs(row_residuals)) + row_curvatures, 1.0)
        row_residuals /= row_totals[:, None]
        row_curvatures /= row_totals
    for row_values in (row_residuals, row_curvatures):
        row_values *= RESIDUAL_STEPS
        np.trunc(row_values, out=row_values)
    return row_residuals, row_curvatures


def sum_rows(numbers: Floats) -> Floats:
    """Sum of each row, from the first number to the last.

    NumPy's own sum adds in an order that depends on the memory layout of the rows.
    """
    row_totals = numbers[:, 0].copy()
    for column in numbers.T[1:]:
        row_totals += column
    return row_totals


def max_rows(numbers: Floats) -> Floats:
    """Largest number of each row; column by column, which is faster where they are few."""
    row_maxima = numbers[:, 0].copy()
    for column in numbers.T[1:]:
        np.maximum(row_maxima, column, out=row_maxima)
    return row_maxima


def compute_truncated_log_likelihood(
    scores: Floats, class_codes: Integers, weights: Floats | None = None
) -> int:
    """Sum over rows of 1 + max(log P(class), -4) / 4, from 0 to 1 a row, in 1/1024."""
    log_probability = compute_truncated_log_probability(scores, class_codes)
    row_likelihood = np.clip(1 + log_probability / MAX_LOG_LOSS, 0.0, 1.0)
    return int(weigh_rows(np.floor(RESIDUAL_STEPS * row_likelihood), weights).sum())


def compute_truncated_log_probability(scores: Floats, class_codes: Integers) -> Floats:
    """max(log P(class), -4) of every row: to the last bit a function of that row alone."""
    scores = np.ascontiguousarray(scores)
    centred_scores = scores - max_rows(scores)[:, None]
    own_positions = np.arange(len(class_codes)) * scores.shape[1] + class_codes
    log_probability = np.take(centred_scores, own_positions) - np.log(
        sum_rows(np.exp(centred_scores))
    )
    return np.asarray(np.maximum(log_probability, -MAX_LOG_LOSS))


def apply_corrections(
    sample: RowSample,
    ratios: LogRatios,
    usual_models: Mapping[Scoring, AdditiveModel],
    budget: Budget,
    correction_budget: CorrectionBudget,
    random: Random,
) -> tuple[Scoring, tuple[Correction, ...]]:
    """Correct the model privately; return the chosen scoring and the corrections it applies.

    Parameters
    ----------
    sample : RowSample
        The rows that are looked at.
    ratios : LogRatios
        Of the tables that were released.
    usual_models : mapping of Scoring to AdditiveModel
        Its candidates.
    budget : Budget
    correction_budget : CorrectionBudget
        What each step may cost.
    random : Random
    """
    final_cost, people = correction_budget.final_cost, correction_budget.people
    subsample = sample.draw_subsample(
        compute_subsample_share(budget.compute_selection_epsilon(final_cost), people), random
    )
    start_epsilon = budget.spend_on_selection("choice of start", correction_budget.start_cost)
    usual_scores = {
        scoring: subsample.score_rows(usual_model) for scoring, usual_model in usual_models.items()
    }
    start_scoring = _choose_start(usual_scores, ratios.prior, subsample, start_epsilon, random)
    start_model = ratios.build_model(start_scoring)
    state = CorrectionState(sample, ratios, start_model, sample.score_rows(start_model))
    candidate_scorings = [*usual_models, start_scoring]
    qualities = [
        count_correct(candidate_scores, subsample.class_codes, subsample.weights)
        for candidate_scores in (
            *usual_scores.values(),
            subsample.take_own_rows(state.row_scores),
        )
    ]
    feature_count = min(correction_budget.feature_count, len(ratios.ranked_features))
    for groups, table_cost in _iter_correction_tables(state, budget, correction_budget, random):
        noise = budget.spend_on_noise(
            f"residuals of {' and '.join(groups)}",
            table_cost,
            *_compute_table_change(len(ratios.prior), sample.influence),
        )
        state.add_correction(groups, noise, random)
        correction_count = len(state.corrections)
        if (
            correction_count in (feature_count // 4, feature_count // 2)
            or correction_count >= feature_count
        ):
            candidate_scorings.append(replace(start_scoring, corrections=correction_count))
            own_scores = subsample.take_own_rows(state.row_scores)
            qualities.append(count_correct(own_scores, subsample.class_codes, subsample.weights))
    epsilon = budget.spend_on_selection("choice of scoring", final_cost)
    epsilon /= sample.influence.count_sensitivity
    chosen_scoring = candidate_scorings[sample_exponential_mechanism(qualities, epsilon, random)]
    return chosen_scoring, state.corrections[: chosen_scoring.corrections]


@dataclass
class CorrectionState:
    """A model while it is corrected: its scores of every row, and the corrections so far."""

    sample: RowSample
    ratios: LogRatios
    model: AdditiveModel
    row_scores: Floats
    corrections: tuple[Correction, ...] = ()
    _residuals: tuple[Floats, Floats] | None = None

    @cached_property
    def pair_groups(self) -> dict[str, tuple[int, ...]]:
        """The groups of cells of each feature that may be in a pair."""
        return {
            feature_name: _group_cells(self.ratios, feature_name, GROUPS_PER_PAIR_FEATURE)
            for feature_name in self.ratios.ranked_features[:PAIR_CANDIDATE_FEATURES]
        }

    @cached_property
    def pair_groupings(self) -> list[CellGrouping]:
        """Where every row is among these groups."""
        groupings = []
        for feature_name, cell_groups in self.pair_groups.items():
            group_indices, group_count = self.sample.find_group_indices({feature_name: cell_groups})
            groupings.append(CellGrouping(group_indices.astype(np.int8), group_count))
        return groupings

    @property
    def residuals(self) -> tuple[Floats, Floats]:
        """Residuals and curvatures of every row, by the corrections so far."""
        if self._residuals is None:
            self._residuals = compute_residuals(self.row_scores, self.sample.class_codes)
        return self._residuals

    def add_correction(self, groups: CellGroups, noise: IntegerNoise, random: Random) -> None:
        """Release noisy residuals of some cells, and correct the model with them."""
        row_residuals, row_curvatures = (
            weigh_rows(row_values, self.sample.weights) for row_values in self.residuals
        )
        cell_indices, cell_count = self.sample.find_group_indices(groups)
        # whole numbers below 2^53, which floating point adds up exactly; what is in no cell is last
        cell_sums = [
            np.bincount(cell_indices, row_values, minlength=cell_count + 1)[:cell_count]
            for row_values in (*row_residuals.T, row_curvatures)
        ]
        steps_per_count = RESIDUAL_STEPS / self.sample.influence.weight_per_count
        noisy_sums = noise.add(np.array(cell_sums), random) / steps_per_count
        correction = Correction(
            groups, noisy_sums[:-1], noisy_sums[-1], noise.variance / steps_per_count**2
        )
        self.model, score_change = self.model.apply_correction(correction)
        self.corrections += (correction,)
        no_change = np.zeros((1, len(score_change)))
        self.row_scores += np.take(
            np.concatenate([score_change.T, no_change]), cell_indices, axis=0
        )
        self._residuals = None


def _choose_start(
    usual_scores: Mapping[Scoring, Floats],
    prior: Floats,
    sample: RowSample,
    epsilon: Fraction,
    random: Random,
) -> Scoring:
    """Choose the scoring of all features, and its temperature, by truncated log-likelihood."""
    start_scorings, qualities, log_prior = [], [], np.log(prior)
    for scoring, row_scores in usual_scores.items():
        if scoring.features is not None or scoring.beta != 1:
            continue
        log_evidence = row_scores - log_prior
        for beta in TEMPERATURES:
            start_scorings.append(replace(scoring, beta=beta))
            toned_scores = log_prior + beta * log_evidence
            qualities.append(
                compute_truncated_log_likelihood(toned_scores, sample.class_codes, sample.weights)
            )
    step_epsilon = epsilon / (RESIDUAL_STEPS * sample.influence.count_sensitivity)
    return start_scorings[sample_exponential_mechanism(qualities, step_epsilon, random)]


def _iter_correction_tables(
    state: CorrectionState, budget: Budget, correction_budget: CorrectionBudget, random: Random
) -> Iterator[tuple[CellGroups, Fraction]]:
    """Cells of the next table of residuals, and its cost: features by rank, then chosen pairs.

    A pair is chosen when it is asked for, by what the model gets wrong by then.
    """
    ratios, pair_count = state.ratios, correction_budget.pair_count
    ranked_features = ratios.ranked_features[: correction_budget.feature_count]
    for feature_name in ranked_features:
        groups = {feature_name: _group_cells(ratios, feature_name)}
        yield groups, correction_budget.feature_cost / len(ranked_features)
    choice_cost, table_cost = correction_budget.split_pair_cost(len(ratios.ranked_features))
    for pair_number in range(1, pair_count + 1):
        epsilon = Fraction(0)
        if choice_cost:
            charge_name = f"choice of pair {pair_number} of {pair_count}"
            epsilon = budget.spend_on_selection(charge_name, choice_cost)
        noise_scale = budget.compute_noise_scale(table_cost)
        yield (
            _choose_pair(state, correction_budget.people, epsilon, noise_scale, random),
            table_cost,
        )


def _choose_pair(
    state: CorrectionState, people: float, epsilon: Fraction, noise_scale: float, random: Random
) -> CellGroups:
    """Choose the pair with the largest absolute residuals, by the exponential mechanism."""
    class_count = len(state.ratios.prior)
    groups_by_feature = state.pair_groups
    candidate_pairs = list(combinations(groups_by_feature, 2))
    chosen_index = 0
    if len(candidate_pairs) > 1:
        subsample = state.sample.draw_subsample(
            Fraction(min(1.0, MAX_PAIR_RESIDUALS / max(class_count * people, 1.0))), random
        )
        # a row's residuals follow from that row alone, whatever other rows there are
        row_residuals = weigh_rows(subsample.take_own_rows(state.residuals[0]), subsample.weights)
        groupings = [
            CellGrouping(subsample.take_own_rows(grouping.indices), grouping.group_count)
            for grouping in state.pair_groupings
        ]
        steps = RESIDUAL_STEPS * subsample.influence.count_sensitivity
        price = steps * noise_scale * row_residuals.shape[1]
        qualities = compute_pair_qualities(row_residuals, groupings, price)
        chosen_index = sample_exponential_mechanism(
            qualities, epsilon / (TWO_SIDED_FACTOR * steps), random
        )
    return {name: groups_by_feature[name] for name in candidate_pairs[chosen_index]}


def _group_cells(ratios: LogRatios, name: str, max_groups: float = math.inf) -> tuple[int, ...]:
    """The group of every cell, -1 for the one that the model ignores: each alone, if not too many.

    Else they are in groups of about equally many people, as the noisy table has them: bins joined
    with their neighbours, categories with those of like evidence.
    """
    table = ratios.statistics.tables[name]
    has_skipped_cell = (
        table.cells.missing_index is not None and ratios.statistics.schema.missing == "skip"
    )
    cell_groups = (*range(table.cells.size - has_skipped_cell), *([-1] * has_skipped_cell))
    if max(cell_groups) < max_groups:
        return cell_groups
    used_cells = np.flatnonzero(np.array(cell_groups) >= 0)
    cell_order = np.arange(len(used_cells))
    if not table.cells.edges:
        class_evidence = ratios.build_model(ratios.statistics.scoring).tables[name]
        cell_order = np.argsort(
            class_evidence[int(np.argmax(ratios.prior)), used_cells], kind="stable"
        )
    cell_people = np.maximum(table.counts.sum(axis=0), 0.0)[used_cells][cell_order] + 1.0
    cell_midpoints = (cell_people.cumsum() - cell_people / 2) / cell_people.sum()
    _, sorted_groups = np.unique((max_groups * cell_midpoints).astype(int), return_inverse=True)
    merged_groups = np.full(len(cell_groups), -1)
    merged_groups[used_cells[cell_order]] = sorted_groups
    return tuple(int(group_index) for group_index in merged_groups)
