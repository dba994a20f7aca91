"""Make a plan: which features are asked together, by which oracle, to what share of respondents.

Cost of a question over D cells: c(D), the variance of a margin relative to plain sampling
(docs/maths.md). Everything here is a function of public facts.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from numbers import Integral, Real
from typing import Any, Literal, get_args

import numpy as np

from discreet.errors import PrivacyError, SchemaError
from discreet.local.plan import Assignment, Design, Plan, Question, Wave, split_epsilon
from discreet.mechanisms.frequency import DE, FrequencyOracle, make_oracle
from discreet.mechanisms.mean import DuchiMany, HybridMany, LaplaceMean, MeanOracle, OneBit
from discreet.mechanisms.mean import PiecewiseMany as Piecewise
from discreet.mechanisms.oracle import compute_question_cost
from discreet.privacy.rounding import to_shortest_float
from discreet.privacy.shuffling import Blanket, Shuffle
from discreet.schema.cells import (
    Bins,
    Cells,
    encode_classes,
    get_columns,
    parse_numbers,
    resolve_bins,
)
from discreet.schema.dates import Date
from discreet.schema.projection import DCA, PCA, Projection, fit_projection
from discreet.schema.randomized_bins import USUAL_BIN_COUNT, choose_bins
from discreet.schema.schema import Numeric, Schema

__all__ = [
    "AutoBins",
    "PlanOptions",
    "compute_auto_bins",
    "compute_quantile_cuts",
    "compute_question_cost",
    "compute_shuffled_local_epsilon",
    "learn_from_sample",
    "make_plan",
]

MAX_CELLS_PER_QUESTION = 4096
"""Cells (classes times values) of one question up to which its features are asked together."""
WEIGHT_TOTAL = 1 << 20
"""Approximate total of the integer weights of the questions."""

MAX_CLASS_ERROR = 0.05
"""Standard error of a class share above which some respondents are asked for the class alone."""
MAX_CLASS_SHARE = 0.2
"""Largest share of respondents who are asked for the class alone because of that error."""

MeanApproach = Literal[1, 2, 3, "hybrid"]
AutoBins = Literal["auto"] | Bins
QuestionShare = tuple[Question, float]
"""A question whose weight is not yet known, and its share of the respondents."""


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
    bins : "auto", int or mapping
        How numeric features are cut; "auto" follows from the noise that respondents, epsilon,
        classes and features let expect (:func:`~discreet.schema.randomized_bins.choose_bins`).
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
    bins: AutoBins = "auto"
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
        How many are expected; only the class question and ``bins="auto"`` depend on it. Of a
        shuffled collection: the least number in the shuffle, on which the promise rests.
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
    if isinstance(respondents, Integral):
        respondents = int(respondents)
    if options.shuffled is None:
        return _make_local_plan(schema, epsilon, respondents, options)
    shuffle = Shuffle(to_shortest_float(epsilon), options.shuffled, respondents)
    if options.bins == "auto":
        local_epsilon = compute_shuffled_local_epsilon(shuffle)
        options = replace(
            options, bins=compute_auto_bins(schema, local_epsilon, respondents, options)
        )

    def make_plan_and_blanket(local_epsilon: float) -> tuple[Plan, Blanket]:
        plan = _make_local_plan(schema, local_epsilon, respondents, options)
        return plan, plan.blanket

    return replace(shuffle.find_largest_local(make_plan_and_blanket), shuffled=shuffle)


def compute_shuffled_local_epsilon(shuffle: Shuffle) -> float:
    """Compute about what a shuffled report may lose by itself, before its plan is known.

    That of randomized response; other questions may lose a little more or less.

    Parameters
    ----------
    shuffle : Shuffle
    """

    def make_blanket(local_epsilon: float) -> tuple[float, Blanket]:
        return local_epsilon, DE(local_epsilon, 2).blanket()

    return shuffle.find_largest_local(make_blanket)


def _make_local_plan(
    schema: Schema, epsilon: float, respondents: int, options: PlanOptions
) -> Plan:
    """Make a plan whose reports keep epsilon by themselves, without a shuffle."""
    if options.projection is not None:
        if options.projection.input_schema != schema:
            raise SchemaError("the projection was made for another schema")
        schema = options.projection.output_schema
    epsilon = to_shortest_float(epsilon)
    if not epsilon > 0:
        raise PrivacyError(f"epsilon is {epsilon!r}; it must be above 0")
    if not isinstance(respondents, Real) or respondents < 1:
        raise SchemaError(f"respondents is {respondents!r}; expect at least one, as a number")
    if isinstance(options.reports, bool) or options.reports < 1:
        raise PrivacyError(f"reports is {options.reports!r}; a person sends at least one")
    by_mean = tuple(
        feature
        for feature in schema.features
        if options.numeric == "gaussian" and isinstance(feature, Numeric)
    )
    bins = options.bins
    if bins == "auto":
        bins = compute_auto_bins(schema, epsilon, respondents, options)
    cells = {
        feature.name: Cells.from_schema(schema, feature.name, bins)
        for feature in schema.features
        if feature not in by_mean
    }
    report_epsilon = split_epsilon(epsilon, options.reports)
    if options.kind not in get_args(Design):
        raise SchemaError(f"plan={options.kind!r}; write 'auto', 'pairs' or 'paper'")
    by_presence = tuple(feature.name for feature in by_mean if feature.optional)
    maker = _QuestionMaker(
        len(schema.classes),
        report_epsilon,
        options,
        tuple(cells),
        by_mean,
        by_presence,
        len(cells) + 2 * bool(by_mean) + bool(by_presence),
    )
    cell_counts = {name: feature_cells.size for name, feature_cells in cells.items()}
    cell_questions = maker.make_cell_questions(cell_counts, options.focus or {})
    respondents_all_waves = options.respondents_all_waves or respondents
    class_share = maker.compute_class_share(cell_questions, respondents_all_waves)
    # a missing number is sent as the middle of its bounds, so how many are missing is asked
    cells |= {name: Cells.from_schema(schema, name, {name: 1}) for name in by_presence}
    question_shares = maker.complete_questions(cell_questions, class_share)
    return Plan(
        schema,
        epsilon,
        [
            replace(question, weight=max(1, round(share * WEIGHT_TOTAL)))
            for question, share in question_shares
        ],
        {name: feature_cells.edges for name, feature_cells in cells.items() if feature_cells.edges},
        options.assignment,
        options.reports,
        options.projection,
        wave=options.wave,
    )


def compute_auto_bins(
    schema: Schema, epsilon: float, respondents: int, options: PlanOptions = DEFAULT_OPTIONS
) -> dict[str, int | list[float]]:
    """Compute the bins that the expected noise of a cell suggests.

    As if each feature were asked with the class, of equally many people, in D = 8 classes cells:
    the standard error of an average cell, relative to it, is sqrt(c(D) D features / reports).

    Parameters
    ----------
    schema : Schema
        Of the records as they are collected; where there is a projection its output is cut.
    epsilon : float
        Total per person; of shuffled reports their own.
    respondents : int
        Expected in this wave.
    options : PlanOptions
    """
    if options.projection is not None:
        schema = options.projection.output_schema
    numeric_features = [feature for feature in schema.features if isinstance(feature, Numeric)]
    if options.numeric == "gaussian" or not numeric_features:
        return {}
    cells = len(schema.classes) * USUAL_BIN_COUNT
    oracle = make_oracle(
        options.oracle, cells, split_epsilon(epsilon, options.reports), options.theta
    )
    reports = (options.respondents_all_waves or respondents) * options.reports
    cell_variance = compute_question_cost(oracle) * cells * len(schema.features) / reports
    return choose_bins(numeric_features, math.sqrt(cell_variance))


@dataclass(frozen=True)
class _QuestionMaker:
    """Makes the questions of a plan, with their shares.

    Parameters
    ----------
    class_count : int
    epsilon : float
        Of one report.
    options : PlanOptions
    by_cell : tuple of str
        Features asked by cell.
    by_mean : tuple of Numeric
        Features asked by mean and mean square.
    by_presence : tuple of str
        Features asked by mean that may be missing: some people are asked whether they are.
    weight : int
        Of all questions but the class: one per feature by cell, mean, mean square.
    """

    class_count: int
    epsilon: float
    options: PlanOptions
    by_cell: tuple[str, ...]
    by_mean: tuple[Numeric, ...]
    by_presence: tuple[str, ...]
    weight: int

    def make_oracle(self, cells: int) -> FrequencyOracle:
        return make_oracle(self.options.oracle, cells, self.epsilon, self.options.theta)

    def make_cell_questions(
        self, cell_counts: Mapping[str, int], focus: Mapping[str, float]
    ) -> list[QuestionShare]:
        """Make the questions about cells, grouped where that pays; their shares add up to 1."""
        kind = self.options.kind
        feature_groups = [[name] for name in cell_counts]
        if kind == "auto" and math.isfinite(self.epsilon):
            feature_groups = self.group_features(cell_counts)
        oracles = [
            self.make_oracle(self.class_count * math.prod(cell_counts[name] for name in names))
            for names in feature_groups
        ]
        raw_shares = [1.0] * len(feature_groups)
        if kind == "auto":
            raw_shares = [
                math.sqrt(len(names) * compute_question_cost(oracle))
                * max(focus.get(name, 1.0) for name in names)
                for names, oracle in zip(feature_groups, oracles, strict=True)
            ]
        return [
            (Question(tuple(names), oracle, 1), raw_share / sum(raw_shares))
            for names, oracle, raw_share in zip(feature_groups, oracles, raw_shares, strict=True)
        ]

    def group_features(self, cell_counts: Mapping[str, int]) -> list[list[str]]:
        """Group features greedily while asking them together costs less than separately."""
        ungrouped = sorted(cell_counts, key=lambda name: cell_counts[name])
        feature_groups: list[list[str]] = []
        while ungrouped:
            feature_group = [ungrouped.pop(0)]
            group_cells = self.class_count * cell_counts[feature_group[0]]
            while ungrouped:
                extended_cells = group_cells * cell_counts[ungrouped[0]]
                if extended_cells > MAX_CELLS_PER_QUESTION:
                    break
                current_cost, extended_cost, separate_cost = (
                    compute_question_cost(self.make_oracle(cells))
                    for cells in (
                        group_cells,
                        extended_cells,
                        self.class_count * cell_counts[ungrouped[0]],
                    )
                )
                if not (
                    extended_cost / (len(feature_group) + 1) < current_cost / len(feature_group)
                    and extended_cost < current_cost + separate_cost
                ):
                    break
                feature_group.append(ungrouped.pop(0))
                group_cells = extended_cells
            feature_groups.append(feature_group)
        return feature_groups

    def compute_class_share(self, questions: Sequence[QuestionShare], respondents: int) -> float:
        """Share of respondents who are asked for the class alone.

        Where kind is "auto": 0 unless the prior would be too uncertain.
        """
        if self.options.kind == "paper":
            return 1 / (1 + self.weight)
        # Yilmaz et al., section III-B: a third each for the class, means and mean squares
        min_share = 1 / (1 + len(self.by_cell) + 2) if self.by_mean else 0.0
        if self.options.kind != "auto" or not questions:
            return min_share
        current_precision = sum(
            share / compute_question_cost(self.make_oracle(question.mechanism.size))
            for question, share in questions
        )
        class_precision = 1 / compute_question_cost(self.make_oracle(self.class_count))
        uniform_variance = (1 / self.class_count) * (1 - 1 / self.class_count)
        required_precision = uniform_variance / (MAX_CLASS_ERROR**2 * respondents)
        if current_precision >= required_precision or class_precision <= current_precision:
            return min_share
        needed_share = (required_precision - current_precision) / (
            class_precision - current_precision
        )
        return max(float(min(MAX_CLASS_SHARE, needed_share)), min_share)

    def complete_questions(
        self, cell_questions: Sequence[QuestionShare], class_share: float
    ) -> list[QuestionShare]:
        """Add all other questions to those about cells, with shares of all respondents."""
        presence_questions = self.make_cell_questions(dict.fromkeys(self.by_presence, 2), {})
        mean_questions = self.make_mean_questions() if self.by_mean else []
        unit_share = (1 - class_share) / max(self.weight, 1)
        question_shares = [
            (question, share * unit_share * group_weight)
            for questions, group_weight in (
                (cell_questions, len(self.by_cell)),
                (presence_questions, 1),
                (mean_questions, 1),
            )
            for question, share in questions
        ]
        if class_share > 0:
            class_question = Question((), self.make_oracle(self.class_count), 1)
            question_shares.insert(0, (class_question, class_share))
        return question_shares

    def make_mean_questions(self) -> list[QuestionShare]:
        """Make the questions about means, then about mean squares; either add up to 1."""
        feature_groups = [tuple(feature.name for feature in self.by_mean)]
        if self.options.approach == 3:
            feature_groups = [(feature.name,) for feature in self.by_mean]
        return [
            (
                Question(names, self.make_mean_oracle(len(names)), 1, power),
                1 / len(feature_groups),
            )
            for power in (1, 2)
            for names in feature_groups
        ]

    def make_mean_oracle(self, feature_count: int) -> MeanOracle:
        """Make the oracle of features whose means are asked together (Yilmaz et al., III-B)."""
        vector_size = feature_count * self.class_count
        approach, mechanism = self.options.approach, self.options.mechanism
        if approach in (1, 3):
            return LaplaceMean(self.epsilon, vector_size, active=feature_count)
        if approach == 2:
            oracle_classes = {"one-bit": OneBit, "duchi": DuchiMany, "piecewise": Piecewise}
            if mechanism not in oracle_classes:
                raise SchemaError(
                    f"mechanism={mechanism!r}; write one of {', '.join(oracle_classes)}"
                )
            return oracle_classes[mechanism](self.epsilon, vector_size)
        if approach == "hybrid":
            return HybridMany(self.epsilon, vector_size)
        raise SchemaError(f"approach={approach!r}; write 1, 2, 3 or 'hybrid'")


def learn_from_sample(
    schema: Schema,
    path: str,
    bins: AutoBins,
    cut: Literal["width", "quantile"] = "width",
    components: PCA | DCA | None = None,
) -> tuple[AutoBins, Projection | None]:
    """Learn the cut points and the projection of a plan from records that are public anyway.

    Parameters
    ----------
    schema : Schema
    path : str
        A CSV or Parquet file of public records.
    bins : "auto", int or mapping
        How numeric features are cut; 8 bins of equal frequency for "auto".
    cut : {"width", "quantile"}
        Bins of equal width, or of equal frequency in the sample.
    components : PCA or DCA, optional
        What replaces the numeric features.

    Returns
    -------
    pair of bins and Projection or None
        Options of the plan.
    """
    import pyarrow as pa

    from discreet.tables.engines import iter_ordered_batches

    names = [*schema.names, *([schema.target] if isinstance(components, DCA) else [])]
    table = pa.Table.from_batches(list(iter_ordered_batches(path, names)))
    columns, projection = get_columns(table, names), None
    if components is not None:
        classes = (
            encode_classes(schema, columns[schema.target]) if isinstance(components, DCA) else None
        )
        projection = fit_projection(components, schema, columns, classes)
        columns, schema = projection.transform_columns(columns), projection.output_schema
    if cut == "quantile":
        bins = compute_quantile_cuts(schema, columns, USUAL_BIN_COUNT if bins == "auto" else bins)
    return bins, projection


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
        if isinstance(feature, Date):
            inner_points = feature.align_cuts(inner_points)
        cuts[feature.name] = inner_points if inner_points else 1
    return cuts
