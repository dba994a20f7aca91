"""Tally to Statistics: the channel of each question inverted, scaled to the whole population.

The estimates are unbiased; their variances follow from the mechanism alone. A margin of g cells
of a question with cost c and m respondents has variance c (1/g)(1 - 1/g) / m, of which (1/g)(1 -
1/g) / m is the luck of who was asked (docs/maths.md).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from discreet.arrays import Floats
from discreet.collection.tally import Tally
from discreet.errors import EstimationError
from discreet.estimation import norm_sub
from discreet.local.plan import Plan, Question
from discreet.local.planning import question_cost
from discreet.mechanisms.frequency import FrequencyOracle
from discreet.privacy import Guarantee
from discreet.schema import Numeric
from discreet.statistics import Moments, Statistics, Table

__all__ = ["statistics_of"]


def statistics_of(tally: Tally[Plan], guarantee: Guarantee | None = None) -> Statistics:
    """Unbiased statistics of everyone, from one report each.

    Parameters
    ----------
    tally : Tally
    guarantee : Guarantee, optional
        The promise to attach; the plan's own if not given.
    """
    plan, people = tally.collection, tally.people
    if people == 0:
        raise EstimationError("the tally is empty; nothing can be estimated from no reports")
    classes = len(plan.schema.classes)
    margins: list[tuple[Floats, float]] = []
    tables: dict[str, Table] = {}
    means: dict[tuple[str, int], tuple[Floats, float, int]] = {}
    for question, m, sums in zip(plan.questions, tally.counted, tally.sums, strict=True):
        if m == 0:
            continue
        if isinstance(question.mechanism, FrequencyOracle):
            joint = question.mechanism.estimate(sums, int(m)).reshape(plan.shape_of(question)) / m
            cost = question_cost(question.mechanism)
            margins.append((joint.reshape(classes, -1).sum(axis=1), m / cost))
            for axis, name in enumerate(question.features, start=1):
                table = _table(plan, question, joint, axis, cost, int(m), people)
                tables[name] = table if name not in tables else _pooled(tables[name], table)
        else:
            estimate = question.mechanism.estimate(sums, int(m)).reshape(-1, classes) / m
            for j, name in enumerate(question.features):
                spread = question.mechanism.variance(0.0)
                means[name, question.power] = (estimate[j], spread, int(m))
    if not margins:
        raise EstimationError("no report tells anything about the classes; collect more")
    weight = sum(w for _, w in margins)
    share = sum(w * margin for margin, w in margins) / weight
    noise = (1 / classes) * (1 - 1 / classes) / weight
    for name in plan.cells:
        if name not in tables:  # nobody was asked: everything is possible
            tables[name] = _unknown(plan, name, people)
    return Statistics(
        plan.schema,
        np.asarray(share) * people,
        np.full(classes, 0.0 if _exact(plan) else noise * people**2),
        tables,
        _moments(plan, means, np.asarray(share), people),
        guarantee=(guarantee or plan.guarantee).under(simulated=tally.simulated),
    )


def _exact(plan: Plan) -> bool:
    """Without noise, and everyone asked about everything, nothing is left to chance."""
    return bool(np.isinf(plan.epsilon)) and len(plan.questions) == 1


def _table(
    plan: Plan, question: Question, joint: Floats, axis: int, cost: float, m: int, people: int
) -> Table:
    cells = plan.cells[question.features[axis - 1]]
    others = tuple(a for a in range(1, joint.ndim) if a != axis)
    counts = joint.sum(axis=others) if others else joint
    u = 1 / counts.size
    noise = (cost - 1) * u * (1 - u) / m
    return Table(cells, counts * people, np.full(counts.shape, noise * people**2), float(m))


def _pooled(one: Table, two: Table) -> Table:
    """Two independent estimates of the same table, weighted by their precision."""
    a, b = (1 / max(float(t.variances.mean()), 1e-12) for t in (one, two))
    counts = (a * one.counts + b * two.counts) / (a + b)
    variances = (a**2 * one.variances + b**2 * two.variances) / (a + b) ** 2
    return Table(one.cells, counts, variances, _sample(one) + _sample(two))


def _sample(table: Table) -> float:
    return table.people or 0.0


def _unknown(plan: Plan, name: str, people: int) -> Table:
    cells = plan.cells[name]
    shape = (len(plan.schema.classes), cells.size)
    even = np.full(shape, people / (shape[0] * shape[1]))
    return Table(cells, even, np.full(shape, float(people) ** 2), 1.0)


def _moments(
    plan: Plan, means: dict[Any, tuple[Floats, float, int]], share: Floats, people: int
) -> dict[str, Moments]:
    """P(c) E[t | c] and P(c) E[2 t^2 - 1 | c] to sums about the middle of the bounds."""
    found: dict[str, Moments] = {}
    valid = np.maximum(norm_sub(share, 1.0), 1e-4)
    counts = people * valid / valid.sum()
    zeros = np.zeros(len(share))
    for name in dict.fromkeys(name for name, _ in means):
        feature = plan.schema[name]
        assert isinstance(feature, Numeric)
        if (name, 1) not in means or (name, 2) not in means:
            continue
        (first, spread1, m1), (second, spread2, m2) = means[name, 1], means[name, 2]
        middle, half = (feature.upper + feature.lower) / 2, (feature.upper - feature.lower) / 2
        found[name] = Moments(
            feature,
            counts,
            people * first,
            (people * second + counts) / 2,
            zeros,
            np.full(len(share), middle),
            half,
            np.array(
                [
                    zeros,
                    np.full(len(share), people**2 * spread1 / m1),
                    np.full(len(share), people**2 * spread2 / m2 / 4),
                ]
            ),
        )
    return found
