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

from discreet.encoding import Bins, Cells, cut_of, numbers_of
from discreet.errors import PrivacyError, SchemaError
from discreet.local.plan import Assignment, Design, Plan, Question, Wave, share_of
from discreet.losses import as_written
from discreet.mechanisms.frequency import FrequencyOracle, oracle_of
from discreet.mechanisms.mean import DuchiMany, HybridMany, LaplaceMean, MeanOracle, OneBit
from discreet.mechanisms.mean import PiecewiseMany as Piecewise
from discreet.projection import Projection
from discreet.schema import Categorical, Numeric, Schema
from discreet.shuffling import Blanket, Shuffle

__all__ = ["Choices", "make_plan", "quantile_cuts", "question_cost"]

MOST_CELLS = 4096
WEIGHTS = 1 << 20
"""Approximate total of the integer weights of the questions."""

Approach = Literal[1, 2, 3, "hybrid"]


@dataclass(frozen=True)
class Choices:
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
        largest local epsilon that keeps the promise (:mod:`discreet.shuffling`).
    wave : Wave, optional
        What a later wave follows from: see :func:`~discreet.local.waves.next_plan`.
    everyone : int, optional
        Expected respondents of all waves together, if this plan is one of several waves; sets the
        share of the class question.
    """

    kind: Design = "auto"
    oracle: str = "auto"
    theta: float | None = None
    bins: Bins = 8
    numeric: Literal["bins", "gaussian"] = "bins"
    approach: Approach = "hybrid"
    mechanism: Literal["one-bit", "duchi", "piecewise"] = "one-bit"
    assignment: Assignment = "draw"
    reports: int = 1
    focus: Mapping[str, float] | None = None
    projection: Projection | None = None
    shuffled: float | None = None
    wave: Wave | None = None
    everyone: int | None = None


USUAL = Choices()


def make_plan(
    schema: Schema, epsilon: float, respondents: int = 10_000, choices: Choices = USUAL
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
    choices : Choices
        Everything else.

    Examples
    --------
    >>> from discreet import Numeric
    >>> schema = Schema([Numeric("age", 18, 100)], "retired", ["no", "yes"])
    >>> plan = make_plan(schema, 1.0, choices=Choices(bins=4, oracle="oue"))
    >>> [(question.features, question.mechanism.size) for question in plan.questions]
    [(('age',), 10)]
    """
    epsilon = as_written(epsilon)
    if isinstance(respondents, Integral):
        respondents = int(respondents)
    if choices.shuffled is not None:
        promise = Shuffle(epsilon, choices.shuffled, respondents)
        unshuffled = replace(choices, shuffled=None)

        def made(local: float) -> tuple[Plan, Blanket]:
            plan = make_plan(schema, local, respondents, unshuffled)
            return plan, plan.blanket

        return replace(promise.best(made), shuffled=promise)
    kind, projection, reports = choices.kind, choices.projection, choices.reports
    if projection is not None:
        if projection.before != schema:
            raise SchemaError("the projection was made for another schema")
        schema = projection.after
    if not epsilon > 0:
        raise PrivacyError(f"epsilon is {epsilon!r}; it must be above 0")
    if not isinstance(respondents, Real) or respondents < 1:
        raise SchemaError(f"respondents is {respondents!r}; expect at least one, as a number")
    if isinstance(reports, bool) or reports < 1:
        raise PrivacyError(f"reports is {reports!r}; a person sends at least one")
    each = share_of(epsilon, reports)
    gaussian = (
        [f for f in schema.features if isinstance(f, Numeric)]
        if choices.numeric == "gaussian"
        else []
    )
    by_cell = [f.name for f in schema.features if f not in gaussian]
    cells = {name: Cells.of(schema, name, choices.bins) for name in by_cell}
    if kind not in ("auto", "pairs", "paper"):
        raise SchemaError(f"plan={kind!r}; write 'auto', 'pairs' or 'paper'")
    classes = len(schema.classes)
    sizes = {name: one.size for name, one in cells.items()}
    oracles = _Oracles(choices.oracle, each, choices.theta)
    questions = _cell_questions(sizes, classes, oracles, kind, choices.focus or {})
    everyone = choices.everyone or respondents
    class_share = _class_share(questions, classes, oracles, kind, everyone)
    presence = {f.name: 2 for f in gaussian if f.optional}
    parts = (len(by_cell), 2 if gaussian else 0, 1 if presence else 0)
    if kind == "paper":
        class_share = 1 / (1 + sum(parts))
    elif gaussian:
        # Yilmaz et al., section III-B: a third each for the class, the means and the mean squares
        class_share = max(class_share, 1 / (1 + len(by_cell) + 2))
    scale = (1 - class_share) / max(sum(parts), 1)
    weighted = [(q, share * scale * parts[0]) for q, share in questions]
    if presence:
        # a missing number is sent as the middle of its bounds, so how many are missing is asked
        cells |= {name: Cells.of(schema, name, {name: 1}) for name in presence}
        questions = _cell_questions(presence, classes, oracles, kind, {})
        weighted += [(q, share * scale) for q, share in questions]
    for power in (1, 2) if gaussian else ():
        weighted += [
            (Question(names, one, 1, power), share * scale)
            for names, one, share in _mean_questions(gaussian, classes, each, choices)
        ]
    if class_share > 0:
        alone = Question((), oracles.of(classes), 1)
        weighted.insert(0, (alone, class_share))
    return Plan(
        schema,
        epsilon,
        [
            Question(q.features, q.mechanism, max(1, round(share * WEIGHTS)), q.power)
            for q, share in weighted
        ],
        {name: one.edges for name, one in cells.items() if one.edges},
        choices.assignment,
        reports,
        projection,
        wave=choices.wave,
    )


def question_cost(oracle: FrequencyOracle) -> float:
    """Compute c(D): variance of a margin of the estimated table relative to plain sampling."""
    if math.isinf(oracle.epsilon):
        return 1.0
    share = 1 / oracle.size
    return (oracle.variance(share) + share * (1 - share)) / (share * (1 - share))


@dataclass(frozen=True)
class _Oracles:
    """Makes the oracle of a question about cells, and computes its cost."""

    name: str
    epsilon: float
    theta: float | None

    def of(self, cells: int) -> FrequencyOracle:
        return oracle_of(self.name, cells, self.epsilon, self.theta)

    def cost(self, cells: int) -> float:
        return question_cost(self.of(cells))


def _bundles(sizes: Mapping[str, int], classes: int, oracles: _Oracles) -> list[list[str]]:
    """Group features greedily while asking them together costs less than asking them separately."""
    waiting = sorted(sizes, key=lambda name: sizes[name])
    bundles: list[list[str]] = []
    while waiting:
        bundle = [waiting.pop(0)]
        cells = classes * sizes[bundle[0]]
        while waiting:
            wider = cells * sizes[waiting[0]]
            if wider > MOST_CELLS:
                break
            now, then = oracles.cost(cells), oracles.cost(wider)
            alone = oracles.cost(classes * sizes[waiting[0]])
            if not (then / (len(bundle) + 1) < now / len(bundle) and then < now + alone):
                break
            bundle.append(waiting.pop(0))
            cells = wider
        bundles.append(bundle)
    return bundles


def _cell_questions(
    sizes: Mapping[str, int],
    classes: int,
    oracles: _Oracles,
    kind: Design,
    focus: Mapping[str, float],
) -> list[tuple[Question, float]]:
    """Make the questions about cells, grouped where that lowers the variance, with their shares."""
    bundles = [[name] for name in sizes]
    if kind == "auto" and math.isfinite(oracles.epsilon):
        bundles = _bundles(sizes, classes, oracles)
    widths = [classes * math.prod(sizes[name] for name in bundle) for bundle in bundles]
    raw = [1.0] * len(bundles)
    if kind == "auto":
        raw = [
            math.sqrt(len(bundle) * oracles.cost(width)) * max(focus.get(n, 1.0) for n in bundle)
            for bundle, width in zip(bundles, widths, strict=True)
        ]
    return [
        (Question(tuple(bundle), oracles.of(width), 1), one / sum(raw))
        for bundle, width, one in zip(bundles, widths, raw, strict=True)
    ]


def _class_share(
    questions: Sequence[tuple[Question, float]],
    classes: int,
    oracles: _Oracles,
    kind: Design,
    respondents: int,
) -> float:
    """Share of respondents asked for the class alone: 0 unless the prior would be too uncertain."""
    if kind != "auto" or not questions:
        return 0.0
    have = sum(share / oracles.cost(one.mechanism.size) for one, share in questions)
    gain = 1 / oracles.cost(classes)
    need = (1 / classes) * (1 - 1 / classes) / (0.05**2 * respondents)
    if have >= need or gain <= have:
        return 0.0
    return float(min(0.2, (need - have) / (gain - have)))


def _mean_questions(
    features: Sequence[Numeric | Categorical],
    classes: int,
    epsilon: float,
    choices: Choices,
) -> list[tuple[tuple[str, ...], MeanOracle, float]]:
    """Make the questions about means: (features, mechanism, share) (Yilmaz et al., III-B)."""
    names = tuple(feature.name for feature in features)
    whole = len(names) * classes
    approach, mechanism = choices.approach, choices.mechanism
    if approach == 1:
        return [(names, LaplaceMean(epsilon, whole, active=len(names)), 1.0)]
    if approach == 2:
        kinds = {"one-bit": OneBit, "duchi": DuchiMany, "piecewise": Piecewise}
        if mechanism not in kinds:
            raise SchemaError(f"mechanism={mechanism!r}; write one of {', '.join(kinds)}")
        return [(names, kinds[mechanism](epsilon, whole), 1.0)]
    if approach == 3:
        share = 1 / len(names)
        return [((name,), LaplaceMean(epsilon, classes, active=1), share) for name in names]
    if approach == "hybrid":
        return [(names, HybridMany(epsilon, whole), 1.0)]
    raise SchemaError(f"approach={approach!r}; write 1, 2, 3 or 'hybrid'")


def quantile_cuts(schema: Schema, sample: Mapping[str, Any], bins: Bins) -> Bins:
    """Compute cut points of every numeric feature from the quantiles of a public sample."""
    cuts: dict[str, int | list[float]] = {}
    for feature in schema.features:
        if not isinstance(feature, Numeric):
            continue
        wanted = cut_of(bins, feature.name)
        if not isinstance(wanted, int):
            cuts[feature.name] = list(wanted)
            continue
        numbers = numbers_of(feature, sample[feature.name], schema.missing_tokens, schema.outliers)
        present = numbers[~np.isnan(numbers)]
        if not present.size:
            raise SchemaError(f"{feature.name}: the public sample has no values to cut by")
        points = np.unique(np.quantile(present, np.arange(1, wanted) / wanted))
        inside = [float(x) for x in points if feature.lower < x < feature.upper]
        cuts[feature.name] = inside if inside else 1
    return cuts
