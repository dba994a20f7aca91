"""The default: one release of all class-by-cell tables, and careful post-processing.

1. 4 % of the budget: class counts.
2. From their sum alone: whether there are people enough for all features, how finely numeric ones
   are cut, and whether step 5 takes place. If there are too few, 30 % chooses the best features.
3. The rest: each used feature's class-by-cell table. A record is in one cell of each.
4. Post-processing: class totals pooled over all tables.
5. With enough people, 5 to 15 % of the budget chooses between a few scorings. With more of them
   a third to two thirds correct what the model gets wrong instead (corrections.py).
6. With enough people, 3 % chooses how sure the probabilities may be (temperature.py).

Accounting: a record changes one class count by one, one cell of each table by one, and the
qualities of steps 2, 5 and 6 by at most one in one direction. The shares add up to the whole. Where
a person has up to k records, all of that is k times as much, and so are noise and the steps of the
choices (`Influence`); plans see records divided by k, as many as one record per person would need.

With a delta, steps 2 to 6 have Laplace noise or Gaussian noise, whichever is less. How many steps
there are, and what each may cost, follows from the class counts alone, before the second step: so
the accountant knows all of them, and whatever the class counts were, they keep what is left.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

import numpy as np

from discreet.arrays import Floats
from discreet.central.budget import (
    Budget,
    CentralSettings,
    IntegerNoise,
    resolve_feature_weights,
    split_budget,
)
from discreet.central.corrections import CorrectionBudget, apply_corrections
from discreet.central.selection import (
    CELL_PENALTY,
    FeatureSelection,
    RowSample,
    compute_subsample_share,
    count_affordable_features,
    count_correct,
    sample_exponential_mechanism,
    select_features,
)
from discreet.central.temperature import TemperatureBudget, choose_temperature
from discreet.estimation.log_ratios import LogRatios
from discreet.privacy.accountant import ChoiceStep, NoiseStep, ReleaseStep
from discreet.randomness import Random
from discreet.schema.binning import MANY_CLASSES, compute_noise_edges
from discreet.schema.cells import Cells, build_cells
from discreet.schema.schema import Numeric, Schema
from discreet.statistics.scoring import Correction, Scoring
from discreet.statistics.statistics import Statistics, Table, compute_precision_weighted_mean
from discreet.tables.contributions import Influence
from discreet.tables.source import Sampling, Source

__all__ = ["compute_exact_statistics", "release_histogram"]


CLASS_COUNT_SHARE = Fraction(4, 100)
"""Share of the budget for the class counts; 2 and 10 % compared: docs/experiments/central.md."""
FEATURE_SELECTION_SHARE = Fraction(30, 100)
"""Share of the budget for choosing features, all choices together; 20 and 10 % compared:
docs/experiments/central.md."""
MIN_SCORING_SHARE = Fraction(5, 100)
"""Smallest share of the budget for the choice of scoring."""
MAX_EXTRA_SCORING_PERCENT = 10
"""Percentage points of the budget that may be added to that share; 5 and 10 compared:
docs/experiments/central.md, "Accuracy that falls"."""
SUFFICIENT_PEOPLE_TIMES_EPSILON = 60
"""People * epsilon that suffice for the choice of scoring: it gets the smallest share that reaches
them; 30 and 60 compared as above."""
MIN_PEOPLE_TIMES_EPSILON = 45
"""Least people * epsilon of the choice of scoring at its largest share; with fewer, none is made:
300 people at epsilon 1."""
MIN_PEOPLE_TIMES_EPSILON_PER_CLASS = 7.5
"""With many classes the choice gets the smallest share, and only where people * epsilon is at least
this times classes; 7.5 and 15 compared: docs/experiments/central.md, "Many classes"."""
MIN_VARIANCE = 1e-6
"""Floor of a noise variance, in squared counts, for numerical safety."""
EXACT_BINNING_EPSILON = 8
"""Without noise, bins are as fine as at this epsilon; finer ones would only overfit."""


@dataclass(frozen=True, eq=False)
class NoisyClassCounts:
    """Released class counts, and the number of people that follows from them.

    Parameters
    ----------
    counts, variances : array of shape (classes,)
        In units of weight, as the tables are.
    people, people_std : float
        Estimated number of people, at least zero, and the standard deviation of its noise.
    cautious_people : float
        That number less one standard deviation, at least zero.
    """

    counts: Floats
    variances: Floats
    people: float
    people_std: float
    cautious_people: float


@dataclass(frozen=True)
class ScoringPlan:
    """What is kept back from the tables in order to choose a scoring, or to correct the model.

    Parameters
    ----------
    scoring_cost : Fraction
        Part of the budget for the scoring, or for all corrections; 0 if nothing is chosen.
    row_share : Fraction
        Share of the rows that candidate models are scored on.
    correction_budget : CorrectionBudget, optional
        What each correction costs, if there are people enough.
    temperature_budget : TemperatureBudget
        What the choice of a temperature costs.
    """

    scoring_cost: Fraction = Fraction(0)
    row_share: Fraction = Fraction(0)
    correction_budget: CorrectionBudget | None = None
    temperature_budget: TemperatureBudget = field(default_factory=TemperatureBudget)

    @property
    def total_cost(self) -> Fraction:
        """All that is kept back."""
        return self.scoring_cost + self.temperature_budget.cost

    def list_steps(
        self, class_count: int, feature_count: int, budget: Budget, influence: Influence
    ) -> list[ReleaseStep]:
        """Every step that is paid from what is kept back, in their order.

        Parameters
        ----------
        class_count : int
        feature_count : int
            Of the model.
        budget : Budget
        influence : Influence
        """
        steps: list[ReleaseStep] = [ChoiceStep(self.scoring_cost)] if self.scoring_cost else []
        if self.correction_budget is not None:
            steps = self.correction_budget.list_steps(class_count, feature_count, budget, influence)
        temperature_cost = self.temperature_budget.cost
        return [*steps, ChoiceStep(temperature_cost)] if temperature_cost else steps


@dataclass(frozen=True)
class ReleasePlan:
    """What follows the class counts, and what each of it costs.

    Parameters
    ----------
    budget : Budget
        Pays for it.
    selection : FeatureSelection or None
        How features are selected; None if all are used.
    table_costs : tuple of Fraction
        In the order of the features.
    scoring : ScoringPlan
    steps : tuple of ReleaseStep
        All of it, in the order of release.
    """

    budget: Budget
    selection: FeatureSelection | None
    table_costs: tuple[Fraction, ...]
    scoring: ScoringPlan
    steps: tuple[ReleaseStep, ...]

    def compute_mean_share(self, *, is_public: bool) -> Fraction:
        """Mean share of the budget of a noisy table.

        Parameters
        ----------
        is_public : bool
            Whether to leave out the cost of a scoring, which follows from noisy class counts.
        """
        if is_public:
            return (1 - CLASS_COUNT_SHARE) / len(self.table_costs)
        noise_costs = [Fraction(step.rho) for step in self.steps if isinstance(step, NoiseStep)]
        return sum(noise_costs, Fraction(0)) / len(noise_costs) / self.budget.total


def release_histogram(
    source: Source, total_budget: Budget, settings: CentralSettings, random: Random
) -> Statistics:
    """Release noisy class-by-cell tables and a privately chosen scoring."""
    schema = source.schema
    # 1. class counts, under pure DP: delta is added below
    pure_budget = Budget(total_budget.epsilon) if total_budget.concentrated else total_budget
    class_counts = _release_class_counts(source, pure_budget, random)
    # 2. a few features where there are few people; with no choice to make, all of them
    may_select = settings.selection and settings.allocation is None and len(schema.features) > 1
    budgets = [pure_budget]
    if total_budget.delta:
        budgets.append(pure_budget.with_delta(total_budget.delta))
    plan = _plan_release(source, budgets, settings, class_counts, may_select)
    budget = plan.budget
    # which of both pays depends on the noisy class counts: the guarantee covers both
    alternative_budget = next((other for other in budgets if other is not budget), None)
    budget.calibrate(plan.steps)
    selected_cells = None
    if plan.selection is not None:
        selected_cells = select_features(source, settings.bins, plan.selection, budget, random)
    # 3. tables share all but what is kept back for step 5
    feature_names = schema.names if selected_cells is None else [*selected_cells]
    table_noises = {
        name: budget.spend_on_noise(
            f"table of {name}", table_cost, source.count_sensitivity, source.influence.rows
        )
        for name, table_cost in zip(feature_names, plan.table_costs, strict=True)
    }
    row_sampling = Sampling(plan.scoring.row_share, random)
    tables = _release_tables(
        source, settings.bins, selected_cells, table_noises, class_counts, row_sampling, random
    )
    # 4. post-processing, free of charge: every table's rows add up to the class totals, and so do
    # the class counts; their mean, weighted by 1 / variance, is the one with the least variance
    class_totals, total_variances = compute_precision_weighted_mean(
        [class_counts.counts, *(table.counts.sum(axis=1) for table in tables.values())],
        [class_counts.variances, *(table.variances.sum(axis=1) for table in tables.values())],
    )
    released = Statistics(
        schema, class_totals, total_variances, tables, scoring=Scoring("log-ratios")
    )
    # 5. the choice of scoring, or corrections
    scoring, corrections = released.scoring, released.corrections
    if plan.scoring.scoring_cost:
        sample = RowSample(
            row_sampling.cell_indices,
            row_sampling.class_codes,
            weights=row_sampling.weights,
            influence=source.influence,
        )
        scoring, corrections = _choose_scoring(released, sample, budget, plan.scoring, random)
    guarantee = budget.make_guarantee(
        settings.assumptions, alternative_budget if may_select else None
    )
    return replace(released, guarantee=guarantee, scoring=scoring, corrections=corrections)


def _release_class_counts(source: Source, budget: Budget, random: Random) -> NoisyClassCounts:
    """Release the class counts, from which all else is planned."""
    sensitivity, weight_per_count = source.count_sensitivity, source.weight_per_count
    noise = budget.spend_on_noise("class counts", budget.total * CLASS_COUNT_SHARE, sensitivity)
    counts = np.asarray(
        weight_per_count * noise.add(source.count_classes(), random), dtype=np.float64
    )
    variances = np.full(len(counts), weight_per_count**2 * max(noise.variance, MIN_VARIANCE))
    people = max(float(counts.sum()), 0.0) / (sensitivity * weight_per_count)
    people_std = math.sqrt(len(counts) * noise.variance) / sensitivity
    return NoisyClassCounts(counts, variances, people, people_std, max(people - people_std, 0.0))


def _plan_release(
    source: Source,
    budgets: Sequence[Budget],
    settings: CentralSettings,
    class_counts: NoisyClassCounts,
    may_select: bool,
) -> ReleasePlan:
    """Plan what follows the class counts, paid by the budget that has the least noise for it.

    ``budgets`` is the pure one and, if there is a delta, the one with it.
    """
    feature_count = len(source.schema.features)
    noise_scales: list[float] = []
    if may_select:
        noise_scales = _compute_noise_scales(source, budgets, class_counts)
        feature_count = count_affordable_features(
            class_counts.people - class_counts.people_std / 2,
            len(source.schema.classes),
            noise_scales,
        )
    plans = [
        _plan_release_with(source, budget, settings, class_counts, noise_scales[:feature_count])
        for budget in budgets
    ]
    if len(plans) == 1:
        return plans[0]
    # with the delta, shares are smaller and more: the plan with it says how large they are;
    # what is promised must not depend on noise unless the guarantee covers both budgets
    mean_share = plans[-1].compute_mean_share(is_public=not may_select)
    return min(
        plans, key=lambda plan: plan.budget.compute_noise_scale(mean_share * plan.budget.total)
    )


def _compute_noise_scales(
    source: Source, budgets: Sequence[Budget], class_counts: NoisyClassCounts
) -> list[float]:
    """Scale of the Laplace law with the variance that the tables of 1, 2, … all features have."""
    feature_count, people = len(source.schema.features), class_counts.people
    scales_by_budget = []
    for budget in budgets:
        table_cost = budget.remaining - budget.total * FEATURE_SELECTION_SHARE
        if source.is_scored:
            scoring_cost = _compute_scoring_cost(budget, people, len(source.schema.classes))
            table_cost -= scoring_cost
            if scoring_cost:
                table_cost -= TemperatureBudget.from_people(budget, people).cost
        table_costs = [table_cost / table_count for table_count in range(1, feature_count)]
        table_costs.append(budget.remaining / feature_count)
        scales_by_budget.append([budget.compute_noise_scale(cost) for cost in table_costs])
    return [min(scales) for scales in zip(*scales_by_budget, strict=True)]


def _plan_release_with(
    source: Source,
    budget: Budget,
    settings: CentralSettings,
    class_counts: NoisyClassCounts,
    noise_scales: Sequence[float],
) -> ReleasePlan:
    """Plan with one budget; ``noise_scales`` has as many entries as features are to be used."""
    schema, selection = source.schema, None
    feature_weights = resolve_feature_weights(schema, settings.allocation, 1, 1)
    table_cost, steps = budget.remaining, list[ReleaseStep]()
    if noise_scales and len(noise_scales) < len(feature_weights):
        selection_cost = budget.total * FEATURE_SELECTION_SHARE
        selection = FeatureSelection(
            len(noise_scales), selection_cost, CELL_PENALTY * noise_scales[-1]
        )
        feature_weights = dict.fromkeys([*feature_weights][: len(noise_scales)], 1)
        table_cost -= selection_cost
        steps = [ChoiceStep(selection_cost / len(noise_scales))] * len(noise_scales)
    scoring = _plan_scoring(source, budget, settings, class_counts, selection is None)
    table_costs = (*split_budget(feature_weights, table_cost - scoring.total_cost).values(),)
    influence = source.influence
    steps += [
        budget.plan_noise(cost, influence.count_sensitivity, influence.rows) for cost in table_costs
    ]
    steps += scoring.list_steps(len(schema.classes), len(table_costs), budget, influence)
    return ReleasePlan(budget, selection, table_costs, scoring, tuple(steps))


def _plan_scoring(
    source: Source,
    budget: Budget,
    settings: CentralSettings,
    class_counts: NoisyClassCounts,
    all_features: bool,
) -> ScoringPlan:
    """Keep back the cost of corrections or, with fewer people, of the choice of scoring."""
    schema, people = source.schema, class_counts.people
    # rows with weights of their own are counted, but not scored
    if not settings.selection or not source.is_scored:
        return ScoringPlan()
    if all_features and settings.corrections and settings.allocation is None:
        # people who are rows of the sample, too
        max_cached_people = source.max_cached_rows / source.influence.rows
        sampled_people = min(class_counts.cautious_people, max_cached_people)
        noise_scale = budget.compute_noise_scale(budget.total / len(schema.features))
        correction_budget = CorrectionBudget.from_signal_to_noise(
            sampled_people / (len(schema.classes) * noise_scale),
            schema,
            budget.total,
            sampled_people,
        )
        if correction_budget is not None:
            row_share = Fraction(min(1.0, max_cached_people / max(people, 1.0)))
            return ScoringPlan(
                correction_budget.total_cost,
                row_share,
                correction_budget,
                TemperatureBudget.from_people(budget, sampled_people),
            )
    scoring_cost = _compute_scoring_cost(budget, people, len(schema.classes))
    if not scoring_cost:
        return ScoringPlan()
    row_share = compute_subsample_share(budget.compute_selection_epsilon(scoring_cost), people)
    temperature_budget = TemperatureBudget.from_people(budget, people * float(row_share))
    return ScoringPlan(scoring_cost, row_share, temperature_budget=temperature_budget)


def _compute_scoring_cost(budget: Budget, people: float, class_count: int) -> Fraction:
    """What the choice of scoring costs, by what is already private; 0 with too few people."""
    if class_count >= MANY_CLASSES:  # the tables need the budget more
        cost = budget.total * MIN_SCORING_SHARE
        people_times_epsilon = people * budget.compute_selection_epsilon(cost)
        is_enough = people_times_epsilon >= MIN_PEOPLE_TIMES_EPSILON_PER_CLASS * class_count
        return cost if is_enough else Fraction(0)
    cost, people_times_epsilon = Fraction(0), 0.0
    for extra_percent in range(MAX_EXTRA_SCORING_PERCENT + 1):
        cost = budget.total * (MIN_SCORING_SHARE + Fraction(extra_percent, 100))
        people_times_epsilon = people * budget.compute_selection_epsilon(cost)
        if people_times_epsilon >= SUFFICIENT_PEOPLE_TIMES_EPSILON:
            return cost
    return cost if people_times_epsilon >= MIN_PEOPLE_TIMES_EPSILON else Fraction(0)


def _release_tables(
    source: Source,
    requested_bins: Any,
    selected_cells: Mapping[str, Cells] | None,
    table_noises: Mapping[str, IntegerNoise],
    class_counts: NoisyClassCounts,
    row_sampling: Sampling,
    random: Random,
) -> dict[str, Table]:
    """Release the table of every used feature; ``row_sampling`` caches rows for the scoring."""
    cells_by_feature = selected_cells
    if cells_by_feature is None:
        # in units of what one person changes, as the people are
        noise_variances = {
            name: noise.variance / source.count_sensitivity**2
            for name, noise in table_noises.items()
        }
        cells_by_feature = _build_cells(
            source.schema, requested_bins, class_counts.cautious_people, noise_variances
        )
    weight_per_count = source.weight_per_count
    noisy_tables: dict[str, Table] = {}
    for name, exact_table in source.count_tables(cells_by_feature, row_sampling).items():
        noise, shape = table_noises[name], exact_table.counts.shape
        noisy_tables[name] = Table(
            exact_table.cells,
            weight_per_count * noise.add(exact_table.counts, random),
            np.full(shape, weight_per_count**2 * max(noise.variance, MIN_VARIANCE)),
        )
    return noisy_tables


def _choose_scoring(
    released: Statistics, sample: RowSample, budget: Budget, plan: ScoringPlan, random: Random
) -> tuple[Scoring, tuple[Correction, ...]]:
    """Correct the model as planned, or choose the scoring that classifies most rows right.

    Then choose its temperature, if that is planned.
    """
    ratios = LogRatios(released)
    candidates = ratios.build_candidates()
    corrections: tuple[Correction, ...] = ()
    if plan.correction_budget is not None:
        scoring, corrections = apply_corrections(
            sample, ratios, candidates, budget, plan.correction_budget, random
        )
    else:
        epsilon = budget.spend_on_selection("choice of scoring", plan.scoring_cost)
        qualities = [
            count_correct(sample.score_rows(model), sample.class_codes, sample.weights)
            for model in candidates.values()
        ]
        epsilon /= sample.influence.count_sensitivity
        scoring = [*candidates][sample_exponential_mechanism(qualities, epsilon, random)]
    if plan.temperature_budget.cost:
        temperature = choose_temperature(
            sample.draw_subsample(plan.temperature_budget.row_share, random),
            ratios.build_corrected_model(scoring, corrections),
            budget.spend_on_selection("choice of temperature", plan.temperature_budget.cost),
            random,
        )
        scoring = replace(scoring, temperature=temperature)
    return scoring, corrections


def compute_exact_statistics(source: Source, settings: CentralSettings) -> Statistics:
    """Statistics without noise (infinite epsilon): an exact binned classifier, no pseudo-counts."""
    schema = source.schema
    exact_totals = source.count_classes()
    noise_scale = len(schema.features) / EXACT_BINNING_EPSILON
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
            feature_edges = compute_noise_edges(feature, signal_to_noise, len(schema.classes))
        edges_by_feature[feature.name] = feature_edges
    return build_cells(schema, edges_by_feature)
