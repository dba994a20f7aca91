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
is among those is decided by one coin a row, which is charged as if it had always shown heads.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import combinations

import numpy as np

from discreet.arrays import Floats, Integers
from discreet.central.budget import Budget, IntegerNoise
from discreet.central.selection import (
    RowSample,
    compute_subsample_share,
    count_correct,
    sample_exponential_mechanism,
)
from discreet.estimation.corrections import AdditiveModel
from discreet.estimation.log_ratios import LogRatios
from discreet.randomness import Random
from discreet.schema.schema import Schema
from discreet.statistics.scoring import Correction, Scoring

__all__ = [
    "CorrectionBudget",
    "apply_corrections",
    "compute_residuals",
    "compute_truncated_log_likelihood",
    "compute_truncated_log_probability",
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


def compute_residuals(scores: Floats, class_codes: Integers) -> tuple[Floats, Floats]:
    """Residuals, of shape (rows, 1 or classes), and curvatures of rows, in whole 1/1024.

    Two classes: y - q and q (1 - q), together 1 - P(y)^2. More: onehot - p and a quarter of
    sum of p (1 - p), the row divided by what they add up to where that is more than one. They are
    rounded towards zero, so that the absolute values of a row add up to at most 1024. They are to
    the last bit a function of that row alone, whatever other rows there are.
    """
    scores = np.ascontiguousarray(scores)  # exp may be computed otherwise where there are gaps
    if scores.shape[1] == 2:
        with np.errstate(over="ignore"):
            q = 1 / (1 + np.exp(scores[:, 0] - scores[:, 1]))
        row_residuals, row_curvatures = (class_codes - q)[:, None], q * (1 - q)
    else:
        row_residuals = np.exp(scores - scores.max(axis=1, keepdims=True))
        row_residuals /= -sum_rows(row_residuals)[:, None]
        row_curvatures = (1 - sum_rows(row_residuals * row_residuals)) / 4
        row_residuals[np.arange(len(class_codes)), class_codes] += 1
        row_curvatures = np.maximum(row_curvatures, 0.0)
        row_totals = np.maximum(sum_rows(np.abs(row_residuals)) + row_curvatures, 1.0)
        row_residuals /= row_totals[:, None]
        row_curvatures = row_curvatures / row_totals
    return np.trunc(RESIDUAL_STEPS * row_residuals), np.trunc(RESIDUAL_STEPS * row_curvatures)


def sum_rows(numbers: Floats) -> Floats:
    """Sum of each row, from the first number to the last.

    NumPy's own sum adds in an order that depends on the memory layout of the rows.
    """
    row_totals = numbers[:, 0].copy()
    for column in numbers.T[1:]:
        row_totals += column
    return row_totals


def compute_truncated_log_likelihood(scores: Floats, class_codes: Integers) -> int:
    """Sum over rows of 1 + max(log P(class), -4) / 4, from 0 to 1 a row, in 1/1024."""
    log_probability = compute_truncated_log_probability(scores, class_codes)
    row_likelihood = np.clip(1 + log_probability / MAX_LOG_LOSS, 0.0, 1.0)
    return int(np.floor(RESIDUAL_STEPS * row_likelihood).sum())


def compute_truncated_log_probability(scores: Floats, class_codes: Integers) -> Floats:
    """max(log P(class), -4) of every row: to the last bit a function of that row alone."""
    scores = np.ascontiguousarray(scores)
    centred_scores = scores - scores.max(axis=1, keepdims=True)
    log_probability = centred_scores[np.arange(len(class_codes)), class_codes] - np.log(
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
    start_scoring = _choose_start(subsample, usual_models, start_epsilon, random)
    start_model = ratios.build_model(start_scoring)
    state = CorrectionState(sample, ratios, start_model, sample.score_rows(start_model))
    candidate_scorings = [*usual_models, start_scoring]
    qualities = [
        count_correct(subsample.score_rows(candidate_model), subsample.class_codes)
        for candidate_model in (*usual_models.values(), start_model)
    ]
    feature_count = min(correction_budget.feature_count, len(ratios.ranked_features))
    for groups, table_cost in _iter_correction_tables(state, budget, correction_budget, random):
        noise = budget.spend_on_noise(
            f"residuals of {' and '.join(groups)}", table_cost, RESIDUAL_STEPS
        )
        state.add_correction(groups, noise, random)
        correction_count = len(state.corrections)
        if (
            correction_count in (feature_count // 4, feature_count // 2)
            or correction_count >= feature_count
        ):
            candidate_scorings.append(replace(start_scoring, corrections=correction_count))
            qualities.append(
                count_correct(state.row_scores[subsample.row_indices], subsample.class_codes)
            )
    epsilon = budget.spend_on_selection("choice of scoring", final_cost)
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

    def add_correction(self, groups: CellGroups, noise: IntegerNoise, random: Random) -> None:
        """Release noisy residuals of some cells, and correct the model with them."""
        row_residuals, row_curvatures = compute_residuals(self.row_scores, self.sample.class_codes)
        cell_indices, cell_count = self.sample.find_group_indices(groups)
        # whole numbers below 2^53, which floating point adds up exactly; what is in no cell is last
        cell_sums = [
            np.bincount(cell_indices, row_values, minlength=cell_count + 1)[:cell_count]
            for row_values in (*row_residuals.T, row_curvatures)
        ]
        noisy_sums = noise.add(np.array(cell_sums), random) / RESIDUAL_STEPS
        correction = Correction(
            groups, noisy_sums[:-1], noisy_sums[-1], noise.variance / RESIDUAL_STEPS**2
        )
        self.model, score_change = self.model.apply_correction(correction)
        self.corrections += (correction,)
        no_change = np.zeros((1, len(score_change)))
        self.row_scores += np.concatenate([score_change.T, no_change])[cell_indices]


def _choose_start(
    subsample: RowSample,
    usual_models: Mapping[Scoring, AdditiveModel],
    epsilon: Fraction,
    random: Random,
) -> Scoring:
    """Choose the scoring of all features, and its temperature, by truncated log-likelihood."""
    start_scorings, qualities = [], []
    for scoring, model in usual_models.items():
        if scoring.features is not None or scoring.beta != 1:
            continue
        log_prior = np.log(model.prior)
        log_evidence = subsample.score_rows(model) - log_prior
        for beta in TEMPERATURES:
            start_scorings.append(replace(scoring, beta=beta))
            qualities.append(
                compute_truncated_log_likelihood(
                    log_prior + beta * log_evidence, subsample.class_codes
                )
            )
    return start_scorings[sample_exponential_mechanism(qualities, epsilon / RESIDUAL_STEPS, random)]


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
    pair_cost = correction_budget.pair_cost / pair_count
    has_choice = len(ratios.ranked_features) > 2  # of two features there is one pair
    table_cost = PAIR_TABLE_SHARE * pair_cost if has_choice else pair_cost
    for pair_number in range(1, pair_count + 1):
        epsilon = Fraction(0)
        if has_choice:
            charge_name = f"choice of pair {pair_number} of {pair_count}"
            epsilon = budget.spend_on_selection(charge_name, pair_cost - table_cost)
        noise_scale = budget.compute_noise_scale(table_cost)
        yield (
            _choose_pair(state, correction_budget.people, epsilon, noise_scale, random),
            table_cost,
        )


def _choose_pair(
    state: CorrectionState, people: float, epsilon: Fraction, noise_scale: float, random: Random
) -> CellGroups:
    """Choose the pair with the largest absolute residuals, by the exponential mechanism."""
    ratios, class_count = state.ratios, len(state.ratios.prior)
    groups_by_feature = {
        feature_name: _group_cells(ratios, feature_name, GROUPS_PER_PAIR_FEATURE)
        for feature_name in ratios.ranked_features[:PAIR_CANDIDATE_FEATURES]
    }
    candidate_pairs = list(combinations(groups_by_feature, 2))
    chosen_index = 0
    if len(candidate_pairs) > 1:
        subsample = state.sample.draw_subsample(
            Fraction(min(1.0, MAX_PAIR_RESIDUALS / max(class_count * people, 1.0))), random
        )
        row_residuals, _ = compute_residuals(
            state.row_scores[subsample.row_indices], subsample.class_codes
        )
        indices_by_feature = {
            feature_name: subsample.find_group_indices({feature_name: cell_groups})
            for feature_name, cell_groups in groups_by_feature.items()
        }
        qualities = [
            _compute_pair_quality(
                row_residuals,
                indices_by_feature[first_name],
                indices_by_feature[second_name],
                noise_scale,
            )
            for first_name, second_name in candidate_pairs
        ]
        chosen_index = sample_exponential_mechanism(
            qualities, epsilon / (TWO_SIDED_FACTOR * RESIDUAL_STEPS), random
        )
    return {name: groups_by_feature[name] for name in candidate_pairs[chosen_index]}


def _compute_pair_quality(
    row_residuals: Floats,
    first_grouping: tuple[Integers, int],
    second_grouping: tuple[Integers, int],
    noise_scale: float,
) -> int:
    """How wrong the model is in the cells of a pair, less a price for every noisy number.

    The sum over cells and classes of the absolute sum of residuals, in 1/1024. A grouping is
    the group of every record, after the last where it is ignored, and the number of groups.
    """
    first_indices, first_group_count = first_grouping
    second_indices, second_group_count = second_grouping
    # what is ignored has the last group of each
    padded_shape = first_group_count + 1, second_group_count + 1
    pair_indices = first_indices * padded_shape[1] + second_indices
    absolute_error = 0
    for class_residuals in row_residuals.T:
        padded_sums = np.bincount(pair_indices, class_residuals, minlength=math.prod(padded_shape))
        cell_sums = padded_sums.reshape(padded_shape)[:first_group_count, :second_group_count]
        absolute_error += int(np.abs(cell_sums).sum())
    price: float = RESIDUAL_STEPS * noise_scale * row_residuals.shape[1]
    return absolute_error - round(price * first_group_count * second_group_count)


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
