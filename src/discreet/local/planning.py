"""Make a plan: which features are asked together, by which oracle, to what share of respondents.

Cost of a question over D cells: c(D), the variance of a margin relative to plain sampling
(docs/maths.md). Everything here is a function of public facts.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from numbers import Integral, Real
from typing import Any, Literal

import numpy as np

from discreet.errors import PrivacyError, SchemaError
from discreet.local.plan import Assignment, Design, Plan, Question, Wave, split_epsilon
from discreet.mechanisms.frequency import FrequencyOracle, make_oracle
from discreet.mechanisms.mean import DuchiMany, HybridMany, LaplaceMean, MeanOracle, OneBit
from discreet.mechanisms.mean import PiecewiseMany as Piecewise
from discreet.privacy.rounding import to_shortest_float
from discreet.privacy.shuffling import Blanket, Shuffle
from discreet.schema.cells import Bins, Cells, parse_numbers, resolve_bins
from discreet.schema.projection import Projection
from discreet.schema.schema import Categorical, Numeric, Schema

__all__ = ["PlanOptions", "compute_quantile_cuts", "compute_question_cost", "make_plan"]

MAX_CELLS_PER_QUESTION = 4096
"""Cells (classes times values) of one question up to which its features are asked together."""
WEIGHT_TOTAL = 1 << 20
"""Approximate total of the integer weights of the questions."""

MeanApproach = Literal[1, 2, 3, "hybrid"]


@dataclass(frozen=True)
class PlanOptions:
    """Options of a plan, besides schema, epsilon and number of respondents.

    Parameters
    ----------
    kind : {"auto", "pairs", "paper"}
        "auto" asks several features at once where that pays and a class question where the prior
        would be too uncertain; "pairs" asks each feature with the class; "paper" is "pairs" and
        the class alone, all equally often (Yilmaz, Al-Rubaie, Chang).
    oracle : str, default "auto"
        Frequency oracle of all questions, or the best for each.
    theta : float, optional
        Threshold of the oracle "the".
    bins : int or mapping, default 8
        How numeric features are cut.
    numeric : {"bins", "gaussian"}
        Whether numeric features are asked by bin or by mean and mean square. Of numbers that may
        be missing, some people are asked whether they are.
    approach : {1, 2, 3, "hybrid"}
        How means are asked: all features at once with Laplace noise; one coordinate of all; one
        feature a respondent with Laplace noise; or one coordinate with the hybrid mechanism.
    mechanism : {"one-bit", "duchi", "piecewise"}
        For approach 2.
    assignment : {"draw", "groups"}
    reports : int, default 1
    focus : mapping of feature name to float, optional
        Extra weight of features, for a later wave.
    projection : Projection, optional
        From ``fit_projection``: replaces the numeric features of ``schema`` by components. Devices
        apply it to a record, and a model takes the original columns.
    shuffled : float, optional
        The delta of a collection whose reports an anonymiser shuffles. Each report then has the
        largest local epsilon that keeps the promise (:mod:`discreet.privacy.shuffling`).
    wave : Wave, optional
        What a later wave follows from: see :func:`~discreet.local.waves.next_plan`.
    respondents_all_waves : int, optional
        Expected respondents of all waves together, if this plan is one of several waves; sets the
        share of the class question.
    """

    kind: Design = "auto"
    oracle: str = "auto"
    theta: float | None = None
    bins: Bins = 8
    numeric: Literal["bins", "gaussian"] = "bins"
    approach: MeanApproach = "hybrid"
    mechanism: Literal["one-bit", "duchi", "piecewise"] = "one-bit"
    assignment: Assignment = "draw"
    reports: int = 1
    focus: Mapping[str, float] | None = None
    projection: Projection | None = None
    shuffled: float | None = None
    wave: Wave | None = None
    respondents_all_waves: int | None = None


DEFAULT_OPTIONS = PlanOptions()


def make_plan(
    schema: Schema,
    epsilon: float,
    respondents: int = 10_000,
    options: PlanOptions = DEFAULT_OPTIONS,
) -> Plan:
    """Make a plan for a schema.

    Parameters
    ----------
    schema : Schema
    epsilon : float
        Total per person; divided among the reports if a person sends several. Of a shuffled
        collection: against everyone who sees only the shuffled reports.
    respondents : int, default 10000
        How many are expected; only the class question depends on it. Of a shuffled collection:
        the least number in the shuffle, on which the promise rests.
    options : PlanOptions
        Everything else.

    Examples
    --------
    >>> from discreet import Numeric
    >>> schema = Schema([Numeric("age", 18, 100)], "retired", ["no", "yes"])
    >>> plan = make_plan(schema, 1.0, options=PlanOptions(bins=4, oracle="oue"))
    >>> [(question.features, question.mechanism.size) for question in plan.questions]
    [(('age',), 10)]
    """
    epsilon = to_shortest_float(epsilon)
    if isinstance(respondents, Integral):
        respondents = int(respondents)
    if options.shuffled is not None:
        shuffle = Shuffle(epsilon, options.shuffled, respondents)
        unshuffled_options = replace(options, shuffled=None)

        def make_local_plan(local_epsilon: float) -> tuple[Plan, Blanket]:
            plan = make_plan(schema, local_epsilon, respondents, unshuffled_options)
            return plan, plan.blanket

        return replace(shuffle.find_largest_local(make_local_plan), shuffled=shuffle)
    kind, projection, reports = options.kind, options.projection, options.reports
    if projection is not None:
        if projection.input_schema != schema:
            raise SchemaError("the projection was made for another schema")
        schema = projection.output_schema
    if not epsilon > 0:
        raise PrivacyError(f"epsilon is {epsilon!r}; it must be above 0")
    if not isinstance(respondents, Real) or respondents < 1:
        raise SchemaError(f"respondents is {respondents!r}; expect at least one, as a number")
    if isinstance(reports, bool) or reports < 1:
        raise PrivacyError(f"reports is {reports!r}; a person sends at least one")
    report_epsilon = split_epsilon(epsilon, reports)
    mean_features = (
        [feature for feature in schema.features if isinstance(feature, Numeric)]
        if options.numeric == "gaussian"
        else []
    )
    cell_features = [feature.name for feature in schema.features if feature not in mean_features]
    cells_by_feature = {
        name: Cells.from_schema(schema, name, options.bins) for name in cell_features
    }
    if kind not in ("auto", "pairs", "paper"):
        raise SchemaError(f"plan={kind!r}; write 'auto', 'pairs' or 'paper'")
    class_count = len(schema.classes)
    cell_counts = {name: feature_cells.size for name, feature_cells in cells_by_feature.items()}
    oracle_factory = _OracleFactory(options.oracle, report_epsilon, options.theta)
    question_shares = _make_cell_questions(
        cell_counts, class_count, oracle_factory, kind, options.focus or {}
    )
    respondents_all_waves = options.respondents_all_waves or respondents
    class_share = _compute_class_share(
        question_shares, class_count, oracle_factory, kind, respondents_all_waves
    )
    presence_cell_counts = {feature.name: 2 for feature in mean_features if feature.optional}
    group_weights = (
        len(cell_features),
        2 if mean_features else 0,
        1 if presence_cell_counts else 0,
    )
    if kind == "paper":
        class_share = 1 / (1 + sum(group_weights))
    elif mean_features:
        # Yilmaz et al., section III-B: a third each for the class, the means and the mean squares
        class_share = max(class_share, 1 / (1 + len(cell_features) + 2))
    weight_scale = (1 - class_share) / max(sum(group_weights), 1)
    weighted_questions = [
        (question, share * weight_scale * group_weights[0]) for question, share in question_shares
    ]
    if presence_cell_counts:
        # a missing number is sent as the middle of its bounds, so how many are missing is asked
        cells_by_feature |= {
            name: Cells.from_schema(schema, name, {name: 1}) for name in presence_cell_counts
        }
        question_shares = _make_cell_questions(
            presence_cell_counts, class_count, oracle_factory, kind, {}
        )
        weighted_questions += [
            (question, share * weight_scale) for question, share in question_shares
        ]
    for power in (1, 2) if mean_features else ():
        weighted_questions += [
            (Question(feature_names, mechanism, 1, power), share * weight_scale)
            for feature_names, mechanism, share in _make_mean_questions(
                mean_features, class_count, report_epsilon, options
            )
        ]
    if class_share > 0:
        class_question = Question((), oracle_factory.make_oracle(class_count), 1)
        weighted_questions.insert(0, (class_question, class_share))
    return Plan(
        schema,
        epsilon,
        [
            Question(
                question.features,
                question.mechanism,
                max(1, round(share * WEIGHT_TOTAL)),
                question.power,
            )
            for question, share in weighted_questions
        ],
        {
            name: feature_cells.edges
            for name, feature_cells in cells_by_feature.items()
            if feature_cells.edges
        },
        options.assignment,
        reports,
        projection,
        wave=options.wave,
    )


def compute_question_cost(oracle: FrequencyOracle) -> float:
    """Compute c(D): variance of a margin of the estimated table relative to plain sampling."""
    if math.isinf(oracle.epsilon):
        return 1.0
    cell_share = 1 / oracle.size
    return (oracle.variance(cell_share) + cell_share * (1 - cell_share)) / (
        cell_share * (1 - cell_share)
    )


@dataclass(frozen=True)
class _OracleFactory:
    """Makes the oracle of a question about cells, and computes its cost."""

    name: str
    epsilon: float
    theta: float | None

    def make_oracle(self, cells: int) -> FrequencyOracle:
        return make_oracle(self.name, cells, self.epsilon, self.theta)

    def compute_cost(self, cells: int) -> float:
        return compute_question_cost(self.make_oracle(cells))


def _group_features(
    cell_counts: Mapping[str, int], class_count: int, oracle_factory: _OracleFactory
) -> list[list[str]]:
    """Group features greedily while asking them together costs less than asking them separately."""
    ungrouped = sorted(cell_counts, key=lambda name: cell_counts[name])
    feature_groups: list[list[str]] = []
    while ungrouped:
        feature_group = [ungrouped.pop(0)]
        group_cells = class_count * cell_counts[feature_group[0]]
        while ungrouped:
            extended_cells = group_cells * cell_counts[ungrouped[0]]
            if extended_cells > MAX_CELLS_PER_QUESTION:
                break
            current_cost = oracle_factory.compute_cost(group_cells)
            extended_cost = oracle_factory.compute_cost(extended_cells)
            separate_cost = oracle_factory.compute_cost(class_count * cell_counts[ungrouped[0]])
            if not (
                extended_cost / (len(feature_group) + 1) < current_cost / len(feature_group)
                and extended_cost < current_cost + separate_cost
            ):
                break
            feature_group.append(ungrouped.pop(0))
            group_cells = extended_cells
        feature_groups.append(feature_group)
    return feature_groups


def _make_cell_questions(
    cell_counts: Mapping[str, int],
    class_count: int,
    oracle_factory: _OracleFactory,
    kind: Design,
    focus: Mapping[str, float],
) -> list[tuple[Question, float]]:
    """Make the questions about cells, grouped where that lowers the variance, with their shares."""
    feature_groups = [[name] for name in cell_counts]
    if kind == "auto" and math.isfinite(oracle_factory.epsilon):
        feature_groups = _group_features(cell_counts, class_count, oracle_factory)
    group_cells = [
        class_count * math.prod(cell_counts[name] for name in feature_group)
        for feature_group in feature_groups
    ]
    raw_shares = [1.0] * len(feature_groups)
    if kind == "auto":
        raw_shares = [
            math.sqrt(len(feature_group) * oracle_factory.compute_cost(cell_count))
            * max(focus.get(feature_name, 1.0) for feature_name in feature_group)
            for feature_group, cell_count in zip(feature_groups, group_cells, strict=True)
        ]
    return [
        (
            Question(tuple(feature_group), oracle_factory.make_oracle(cell_count), 1),
            raw_share / sum(raw_shares),
        )
        for feature_group, cell_count, raw_share in zip(
            feature_groups, group_cells, raw_shares, strict=True
        )
    ]


def _compute_class_share(
    questions: Sequence[tuple[Question, float]],
    class_count: int,
    oracle_factory: _OracleFactory,
    kind: Design,
    respondents: int,
) -> float:
    """Share of respondents asked for the class alone: 0 unless the prior would be too uncertain."""
    if kind != "auto" or not questions:
        return 0.0
    current_precision = sum(
        share / oracle_factory.compute_cost(question.mechanism.size)
        for question, share in questions
    )
    class_precision = 1 / oracle_factory.compute_cost(class_count)
    required_precision = (1 / class_count) * (1 - 1 / class_count) / (0.05**2 * respondents)
    if current_precision >= required_precision or class_precision <= current_precision:
        return 0.0
    return float(
        min(0.2, (required_precision - current_precision) / (class_precision - current_precision))
    )


def _make_mean_questions(
    features: Sequence[Numeric | Categorical],
    class_count: int,
    epsilon: float,
    options: PlanOptions,
) -> list[tuple[tuple[str, ...], MeanOracle, float]]:
    """Make the questions about means: (features, mechanism, share) (Yilmaz et al., III-B)."""
    names = tuple(feature.name for feature in features)
    vector_size = len(names) * class_count
    approach, mechanism = options.approach, options.mechanism
    if approach == 1:
        return [(names, LaplaceMean(epsilon, vector_size, active=len(names)), 1.0)]
    if approach == 2:
        oracle_classes = {"one-bit": OneBit, "duchi": DuchiMany, "piecewise": Piecewise}
        if mechanism not in oracle_classes:
            raise SchemaError(f"mechanism={mechanism!r}; write one of {', '.join(oracle_classes)}")
        return [(names, oracle_classes[mechanism](epsilon, vector_size), 1.0)]
    if approach == 3:
        share = 1 / len(names)
        return [((name,), LaplaceMean(epsilon, class_count, active=1), share) for name in names]
    if approach == "hybrid":
        return [(names, HybridMany(epsilon, vector_size), 1.0)]
    raise SchemaError(f"approach={approach!r}; write 1, 2, 3 or 'hybrid'")


def compute_quantile_cuts(schema: Schema, sample: Mapping[str, Any], bins: Bins) -> Bins:
    """Compute cut points of every numeric feature from the quantiles of a public sample."""
    cuts: dict[str, int | list[float]] = {}
    for feature in schema.features:
        if not isinstance(feature, Numeric):
            continue
        requested_cuts = resolve_bins(bins, feature.name)
        if not isinstance(requested_cuts, int):
            cuts[feature.name] = list(requested_cuts)
            continue
        numbers = parse_numbers(
            feature, sample[feature.name], schema.missing_tokens, schema.outliers
        )
        present_numbers = numbers[~np.isnan(numbers)]
        if not present_numbers.size:
            raise SchemaError(f"{feature.name}: the public sample has no values to cut by")
        quantile_points = np.unique(
            np.quantile(present_numbers, np.arange(1, requested_cuts) / requested_cuts)
        )
        inner_points = [
            float(point) for point in quantile_points if feature.lower < point < feature.upper
        ]
        cuts[feature.name] = inner_points if inner_points else 1
    return cuts
