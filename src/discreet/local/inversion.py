"""Estimate statistics from a tally: invert the channel of each question.

Estimates are unbiased, and their variances are those of the numbers of the people who sent reports:
the noise of the mechanism, which differs from oracle to oracle for sums of cells and grows or
falls with the share of a cell, and the luck of who was asked which question (docs/maths.md).
The same variances predict the precision of a collection for a number of respondents.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from discreet.arrays import Floats
from discreet.collection.tally import Tally
from discreet.errors import EstimationError
from discreet.estimation import norm_sub
from discreet.local.plan import Plan, Question
from discreet.mechanisms.frequency import FrequencyOracle
from discreet.mechanisms.mean import MeanOracle
from discreet.privacy import Guarantee
from discreet.schema import Numeric
from discreet.statistics import Moments, Statistics, Table, precision_weighted

__all__ = [
    "CellPrecision",
    "CountEstimate",
    "counts_of",
    "margin_of",
    "precision_of",
    "statistics_of",
]

LEAST_SHARE = 1e-4
"""Lower bound on the share of a class wherever it is a divisor."""


def statistics_of(tally: Tally[Plan], guarantee: Guarantee | None = None) -> Statistics:
    """Estimate unbiased statistics of all respondents.

    Parameters
    ----------
    tally : Tally
    guarantee : Guarantee, optional
        The guarantee to attach; by default that of the plan, for the number of people counted.

    Returns
    -------
    Statistics
        Variances are those of an estimate of the numbers of the people in the tally: an interval
        of 1.96 standard errors holds the true number of them about 95 times in 100.
    """
    plan, people = tally.collection, tally.people
    if people == 0:
        raise EstimationError("the tally is empty; nothing can be estimated from no reports")
    shares: list[CountEstimate] = []
    cells: dict[str, list[CountEstimate]] = {name: [] for name in plan.cells}
    means: dict[tuple[str, int], _Mean] = {}
    for question, m, sums in zip(plan.questions, tally.counted, tally.sums, strict=True):
        if m == 0:
            continue
        if isinstance(question.mechanism, FrequencyOracle):
            joint = question.mechanism.estimate(sums, int(m)) / m
            shares.append(margin_of(plan, question, joint, 0, int(m)))
            for axis, name in enumerate(question.features, start=1):
                cells[name].append(margin_of(plan, question, joint, axis, int(m)))
        else:
            found = question.mechanism.estimate(sums, int(m)).reshape(len(question.features), -1)
            for j, name in enumerate(question.features):
                means[name, question.power] = _Mean(question.mechanism, found[j] / m, int(m))
    if not shares:
        raise EstimationError("no report contains information about the classes; collect more")
    totals, variances = counts_of(shares, people)
    tables = {name: _table(plan, name, parts, people) for name, parts in cells.items()}
    moments = {
        name: _moments(
            plan,
            name,
            (means[name, 1], means[name, 2]),
            totals / people,
            _missing(tables.pop(name)) if name in tables else np.zeros(len(totals)),
            people,
        )
        for name in dict.fromkeys(name for name, _ in means)
        if (name, 1) in means and (name, 2) in means
    }
    return Statistics(
        plan.schema,
        totals,
        variances,
        tables,
        moments,
        guarantee=(guarantee or plan.promised(tally.together)).under(simulated=tally.simulated),
        projection=plan.projection,
    )


@dataclass(frozen=True)
class CountEstimate:
    """Estimated shares of a group of respondents, from one question or one wave.

    Parameters
    ----------
    shares : array
    noise : array of the same shape
        Variance of each, as an estimate of that group's own shares.
    even : float
        Variance as an estimate for all respondents if all shares were equal: known before the
        collection.
    people : float
        How many the group has.
    """

    shares: Floats
    noise: Floats
    even: float
    people: float


def margin_of(plan: Plan, question: Question, joint: Floats, axis: int, m: float) -> CountEstimate:
    """Estimate the margin of a question's cells: classes (axis 0), or classes by one feature."""
    oracle, shape = question.mechanism, plan.shape_of(question)
    assert isinstance(oracle, FrequencyOracle)
    place = np.indices(shape).reshape(len(shape), -1)
    labels = place[0] if axis == 0 else place[0] * shape[axis] + place[axis]
    kept = shape[:1] if axis == 0 else (shape[0], shape[axis])
    size = int(np.prod(kept))
    uniform = float(oracle.sum_variances(labels, np.full(joint.size, 1 / joint.size)).mean())
    return CountEstimate(
        np.asarray(np.bincount(labels, joint), np.float64).reshape(kept),
        oracle.sum_variances(labels, joint).reshape(kept) / m,
        (uniform + (1 - 1 / size) / size) / m,
        m,
    )


def counts_of(parts: Sequence[CountEstimate], people: int) -> tuple[Floats, Floats]:
    """Pool estimates from random groups to counts of all respondents, weighted by precision.

    Weights depend on public facts only, not on the estimates, so the mean is unbiased. Disjoint
    groups of m_b people out of N, weighted by w_b, miss a share f of all by chance, with variance
    f (1 - f) (N sum(w_b^2 / m_b) - 1) / (N - 1).
    """
    weights, _ = precision_weighted(list(np.eye(len(parts))), [part.even for part in parts])
    found = list(zip(weights, parts, strict=True))
    share = np.sum([w * part.shares for w, part in found], axis=0)
    noise = np.sum([w**2 * part.noise for w, part in found], axis=0)
    drawn = sum(w**2 / part.people for w, part in found)
    luck = max(people * float(drawn) - 1, 0.0) / max(people - 1, 1)
    inside = share.clip(0.0, 1.0)
    return people * share, people**2 * (noise + inside * (1 - inside) * luck)


def _table(plan: Plan, name: str, parts: Sequence[CountEstimate], people: int) -> Table:
    cells, classes = plan.cells[name], len(plan.schema.classes)
    if parts:
        return Table(cells, *counts_of(parts, people))
    shape = (classes, cells.size)  # nobody was asked: everything is possible
    even = np.full(shape, people / (classes * cells.size))
    return Table(cells, even, np.full(shape, float(people) ** 2))


@dataclass(frozen=True)
class _Mean:
    """P(c) E[value | c] by class, as one question about means estimates it."""

    mechanism: MeanOracle
    found: Floats
    people: int

    def variances(self, squares: Floats, people: int) -> Floats:
        """Variances of the means, where P(c) E[value^2 | c] is ``mean_squares``.

        The variance of a mechanism is linear in the square of its input.
        """
        least, most = self.mechanism.variance(0.0), self.mechanism.variance(1.0)
        noise = least + (most - least) * squares
        luck = (
            np.maximum(squares - self.found**2, 0.0) * (people - self.people) / max(people - 1, 1)
        )
        return np.asarray((noise + luck) / self.people)


def _missing(table: Table) -> Floats:
    """Estimate P(missing | class), shrunk towards the share in all classes together.

    James-Stein factors with the known noise: no shrinkage where the noise is far below the
    differences, and a share of 0 where next to nothing is missing.
    """
    present, missing = np.asarray(table.counts, float).T
    noise = np.asarray(table.variances, float)
    whole = max(float(present.sum() + missing.sum()), 1.0)
    common = float(missing.sum()) / whole
    doubt = float(noise.sum()) / 2 / whole**2
    common *= max(0.0, 1 - doubt / max(common**2, 1e-300)) if common > 0 else 0.0
    counts = np.maximum(present + missing, LEAST_SHARE * whole)
    found = missing / counts
    error = (noise[:, 1] * (1 - found) ** 2 + noise[:, 0] * found**2) / counts**2
    away = found - common
    keep = max(0.0, 1 - float(error.sum()) / max(float(away @ away), 1e-300))
    return np.asarray((common + keep * away).clip(0.0, 1 - LEAST_SHARE))


def _moments(
    plan: Plan,
    name: str,
    means: tuple[_Mean, _Mean],
    share: Floats,
    missing: Floats,
    people: int,
) -> Moments:
    """Convert P(c) E[t | c] and P(c) E[2 t^2 - 1 | c] to sums about the middle of the bounds.

    A missing number is sent as the middle, t = 0, which adds nothing to either sum; counts are of
    those whose number is there.
    """
    feature = plan.schema[name]
    assert isinstance(feature, Numeric)
    first, second = means
    valid = np.maximum(norm_sub(share, 1.0), LEAST_SHARE)
    valid = valid / valid.sum()
    squares = (second.found + valid) / 2
    middle, half = (feature.upper + feature.lower) / 2, (feature.upper - feature.lower) / 2
    zeros = np.zeros(len(share))
    noise = [
        zeros,
        first.variances(squares.clip(0.0, valid), people),
        second.variances(valid, people) / 4,  # (2 t^2 - 1)^2 is at most one
    ]
    return Moments(
        feature,
        people * valid * (1 - missing),
        people * first.found,
        people * squares,
        people * valid * missing,
        np.full(len(share), middle),
        half,
        people**2 * np.array(noise),
    )


@dataclass(frozen=True)
class CellPrecision:
    """Standard error of a cell of a feature's class-by-value table, as a share of the population.

    Attributes
    ----------
    feature : str
        The target stands for the class totals.
    cells : int
    share : float
        Of the respondents who are asked about it.
    standard_error : float
        Of a cell of average size, as an estimate for a larger population.
    """

    feature: str
    cells: int
    share: float
    standard_error: float


def precision_of(plan: Plan, respondents: int) -> list[CellPrecision]:
    """Compute the expected precision of class totals and features asked by cell, worst first.

    From the variances of the mechanisms and the plan's shares alone (docs/maths.md). How good a
    model will be is not known before: that depends on how strongly the features depend on the
    class, which is what the collection is to find out.

    Parameters
    ----------
    plan : Plan
    respondents : int
    """
    if respondents < 1:
        raise EstimationError(f"respondents is {respondents}; expect at least one")
    precision: dict[str, float] = {}
    asked: dict[str, float] = {}
    for question, share in zip(plan.questions, plan.shares, strict=True):
        if not isinstance(question.mechanism, FrequencyOracle):
            continue
        even = np.full(question.mechanism.size, 1 / question.mechanism.size)
        for axis, name in enumerate((plan.schema.target, *question.features)):
            error = margin_of(plan, question, even, axis, float(share)).even / respondents
            precision[name] = precision.get(name, 0.0) + 1 / error
            asked[name] = asked.get(name, 0.0) + float(share)
    classes = len(plan.schema.classes)
    found = [
        CellPrecision(
            name,
            classes * plan.cells[name].size if name in plan.cells else classes,
            asked[name],
            math.sqrt(1 / one),
        )
        for name, one in precision.items()
    ]
    return sorted(found, key=lambda one: -one.standard_error)
