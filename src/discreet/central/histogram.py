"""The default: one release of all class-by-cell tables, and careful post-processing.

1. 4 % of the budget: class counts.
2. From their sum alone: whether there are people enough for all features, how finely numeric ones
   are cut, and whether step 5 takes place. If there are too few, 30 % chooses the best features.
3. The rest: each used feature's class-by-cell table. A record is in one cell of each.
4. Post-processing: class totals pooled over all tables.
5. With enough people, 5 to 10 % of the budget chooses between a few scorings. With more of them
   a third to two thirds correct what the model gets wrong instead (corrections.py).

Accounting: a record changes one class count by one, one cell of each table by one, and the
qualities of steps 2 and 5 by at most one in one direction. The shares add up to the whole.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np

from discreet.central.budget import Budget, CentralSettings, resolve_feature_weights, split_budget
from discreet.central.corrections import CorrectionBudget, apply_corrections
from discreet.central.selection import (
    CELL_PENALTY,
    MIN_SIGNAL_FINE_BINS,
    FeatureSelection,
    RowSample,
    compute_bin_count,
    compute_inner_edges,
    compute_subsample_share,
    count_affordable_features,
    count_correct,
    sample_exponential_mechanism,
    select_features,
)
from discreet.estimation.log_ratios import LogRatios
from discreet.randomness import Random
from discreet.schema.cells import Cells, build_cells
from discreet.schema.schema import Numeric, Schema
from discreet.statistics.scoring import Scoring
from discreet.statistics.statistics import Statistics, Table, compute_precision_weighted_mean
from discreet.tables.source import Sampling, Source

__all__ = ["compute_exact_statistics", "release_histogram"]


CLASS_COUNT_SHARE = Fraction(4, 100)
"""Share of the budget for the class counts; 2 and 10 % compared: benchmarks/RESULTS.md."""
FEATURE_SELECTION_SHARE = Fraction(30, 100)
"""Share of the budget for choosing features, all choices together; 20 and 10 % compared:
benchmarks/RESULTS.md."""
MIN_SCORING_SHARE = Fraction(5, 100)
"""Smallest share of the budget for the choice of scoring."""
MAX_EXTRA_SCORING_PERCENT = 5
"""Percentage points of the budget that may be added to that share."""
MIN_PEOPLE_TIMES_EPSILON = 30
"""Least people * epsilon of the choice of scoring; it gets the smallest share that reaches it."""
MIN_VARIANCE = 1e-6
"""Floor of a noise variance, in squared counts, for numerical safety."""


@dataclass(frozen=True)
class PeopleEstimate:
    """Private estimate of the number of people, and its standard deviation."""

    number: float
    std: float


def release_histogram(
    source: Source, total_budget: Budget, settings: CentralSettings, random: Random
) -> Statistics:
    """Release noisy class-by-cell tables and a privately chosen scoring."""
    schema = source.schema
    feature_weights = resolve_feature_weights(schema, settings.allocation, 1, 1)
    class_count, sensitivity = len(schema.classes), source.count_sensitivity
    weight_per_count = source.weight_per_count
    # start with pure DP; delta is added below if all features are used
    pure_budget = Budget(total_budget.epsilon) if total_budget.concentrated else total_budget
    class_count_noise = pure_budget.spend_on_noise(
        "class counts", pure_budget.total * CLASS_COUNT_SHARE, sensitivity
    )
    noisy_class_counts = np.asarray(
        weight_per_count * class_count_noise.add(source.count_classes(), random), dtype=np.float64
    )
    people = max(float(noisy_class_counts.sum()), 0.0) / (sensitivity * weight_per_count)
    people_std = math.sqrt(class_count * class_count_noise.variance) / sensitivity

    delta = total_budget.delta
    budget_with_delta = pure_budget.with_delta(delta) if delta else None
    # with no choice to make, all features are used, however many people there are
    may_select_features = (
        settings.selection and settings.allocation is None and len(schema.features) > 1
    )
    selected_cells = None
    if may_select_features:
        selected_cells = _select_affordable_features(
            source,
            pure_budget,
            budget_with_delta or pure_budget,
            settings,
            PeopleEstimate(people, people_std),
            random,
        )
    # the branch depends on the noisy class counts: the guarantee covers both
    if selected_cells is None and budget_with_delta is not None:
        budget = budget_with_delta
        alternative_budget = Budget(pure_budget.epsilon) if may_select_features else None
    else:
        budget = pure_budget
        alternative_budget = budget_with_delta if may_select_features else None
    reserved_cost, sample_share, correction_budget = Fraction(0), Fraction(0), None
    if settings.selection and sensitivity == 1:  # rows with weights are counted, but not scored
        scoring_shares = [MIN_SCORING_SHARE]
        if selected_cells is None:  # few features may still be better than all of them
            scoring_shares += [
                MIN_SCORING_SHARE + Fraction(extra_percent, 100)
                for extra_percent in range(1, MAX_EXTRA_SCORING_PERCENT + 1)
            ]
        for scoring_share in scoring_shares:
            if (
                people * budget.compute_selection_epsilon(budget.total * scoring_share)
                >= MIN_PEOPLE_TIMES_EPSILON
            ):
                reserved_cost = budget.total * scoring_share
                sample_share = compute_subsample_share(
                    budget.compute_selection_epsilon(reserved_cost), people
                )
                break
        if selected_cells is None and settings.corrections and settings.allocation is None:
            # a lower bound on the number of rows that are cached for scoring
            certain_people = min(max(people - people_std, 0.0), source.max_cached_rows)
            signal_to_noise = certain_people / (
                class_count * budget.compute_noise_scale(budget.total / len(feature_weights))
            )
            correction_budget = CorrectionBudget.from_signal_to_noise(
                signal_to_noise, schema, budget.total, certain_people
            )
            if correction_budget is not None:
                reserved_cost = correction_budget.total_cost
                sample_share = Fraction(min(1.0, source.max_cached_rows / max(people, 1.0)))
    if selected_cells is not None:
        feature_weights = {name: feature_weights[name] for name in selected_cells}
    table_noises = {
        name: budget.spend_on_noise(f"table of {name}", table_cost, sensitivity)
        for name, table_cost in split_budget(
            feature_weights, budget.remaining - reserved_cost
        ).items()
    }
    if selected_cells is None:
        noise_variances = {name: table_noise.variance for name, table_noise in table_noises.items()}
        cells_by_feature = _build_cells(
            schema, settings.bins, max(people - people_std, 0.0), noise_variances
        )
    else:
        cells_by_feature = selected_cells
    row_sampling = Sampling(sample_share, random)
    noisy_tables: dict[str, Table] = {}
    for name, exact_table in source.count_tables(cells_by_feature, row_sampling).items():
        noisy_counts = table_noises[name].add(exact_table.counts, random)
        count_variances = np.full(
            exact_table.counts.shape,
            weight_per_count**2 * max(table_noises[name].variance, MIN_VARIANCE),
        )
        noisy_tables[name] = Table(
            exact_table.cells, weight_per_count * noisy_counts, count_variances
        )
    # every table's rows add up to the class totals, and so do the class counts
    class_totals, total_variances = compute_precision_weighted_mean(
        [
            noisy_class_counts,
            *(noisy_table.counts.sum(axis=1) for noisy_table in noisy_tables.values()),
        ],
        [
            np.full(
                class_count, weight_per_count**2 * max(class_count_noise.variance, MIN_VARIANCE)
            ),
            *(noisy_table.variances.sum(axis=1) for noisy_table in noisy_tables.values()),
        ],
    )
    released = Statistics(
        schema, class_totals, total_variances, noisy_tables, scoring=Scoring("log-ratios")
    )
    scoring, corrections = released.scoring, released.corrections
    if reserved_cost:
        sample = RowSample(row_sampling.cell_indices, row_sampling.class_codes)
        ratios = LogRatios(released)
        candidates = ratios.build_candidates()
        if correction_budget is not None:
            scoring, corrections = apply_corrections(
                sample, ratios, candidates, budget, correction_budget, random
            )
        else:
            epsilon = budget.spend_on_selection("choice of scoring", reserved_cost)
            qualities = [
                count_correct(sample.score_rows(model), sample.class_codes)
                for model in candidates.values()
            ]
            scoring = [*candidates][sample_exponential_mechanism(qualities, epsilon, random)]
    guarantee = budget.make_guarantee(settings.assumptions, alternative_budget)
    return replace(released, guarantee=guarantee, scoring=scoring, corrections=corrections)


def _select_affordable_features(
    source: Source,
    budget: Budget,
    full_budget: Budget,
    settings: CentralSettings,
    people: PeopleEstimate,
    random: Random,
) -> dict[str, Cells] | None:
    """Select as many features as the noise allows; None if all features are used.

    ``budget`` pays for a selection and its tables, ``full_budget`` would pay for the tables of all
    features.
    """
    feature_count = len(source.schema.features)
    selection_cost, table_cost = budget.total * FEATURE_SELECTION_SHARE, budget.remaining
    if (
        source.count_sensitivity == 1
        and people.number * budget.compute_selection_epsilon(budget.total * MIN_SCORING_SHARE)
        >= MIN_PEOPLE_TIMES_EPSILON
    ):
        table_cost -= budget.total * MIN_SCORING_SHARE
    # of the Laplace law with the variance that the tables of one, two, … all features have
    noise_scales = [
        budget.compute_noise_scale((table_cost - selection_cost) / table_count)
        for table_count in range(1, feature_count)
    ]
    noise_scales.append(full_budget.compute_noise_scale(full_budget.remaining / feature_count))
    conservative_people = people.number - people.std / 2
    affordable_count = count_affordable_features(
        conservative_people, len(source.schema.classes), noise_scales
    )
    if affordable_count == feature_count:
        return None
    selection = FeatureSelection(
        affordable_count, selection_cost, CELL_PENALTY * noise_scales[affordable_count - 1]
    )
    return select_features(source, settings.bins, selection, budget, random)


def compute_exact_statistics(source: Source, settings: CentralSettings) -> Statistics:
    """Statistics without noise (infinite epsilon): an exact binned classifier, no pseudo-counts."""
    schema = source.schema
    exact_totals = source.count_classes()
    noise_scale = len(schema.features) / 8  # finer bins than at epsilon 8 would only overfit
    noise_variances = dict.fromkeys(schema.names, 2 * noise_scale**2)
    cells_by_feature = _build_cells(
        schema, settings.bins, float(exact_totals.sum()) / source.count_sensitivity, noise_variances
    )
    exact_tables = source.count_tables(cells_by_feature)
    tables = {
        feature_name: Table(exact_table.cells, source.weight_per_count * exact_table.counts)
        for feature_name, exact_table in exact_tables.items()
    }
    scoring = Scoring("none", smoothing=0.0)
    return Statistics(
        schema, source.weight_per_count * exact_totals, tables=tables, scoring=scoring
    )


def _build_cells(
    schema: Schema, requested_bins: Any, people: float, noise_variances: Mapping[str, float]
) -> dict[str, Cells]:
    """Cells of every feature; numeric features are binned as requested or by the default rule."""
    edges_by_feature: dict[str, Any] = {}
    for feature in schema.features:
        if not isinstance(feature, Numeric):
            continue
        feature_edges: Any = requested_bins if isinstance(requested_bins, int) else None
        if isinstance(requested_bins, Mapping):
            feature_edges = requested_bins.get(feature.name)
        if feature_edges is None:
            noise_scale = math.sqrt(max(noise_variances[feature.name], MIN_VARIANCE) / 2)
            signal_to_noise = people / (len(schema.classes) * noise_scale)
            feature_edges = compute_inner_edges(
                feature, compute_bin_count(signal_to_noise), signal_to_noise >= MIN_SIGNAL_FINE_BINS
            )
        edges_by_feature[feature.name] = feature_edges
    return build_cells(schema, edges_by_feature)
