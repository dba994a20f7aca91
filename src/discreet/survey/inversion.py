"""Tally to estimates: any logical expression over the answers, and the Statistics of a model.

For an expression A every sheet r gets a score h(r) with E[h(r) | true answers] = A(true answers);
their sum is unbiased for the number of people for whom A holds (docs/maths.md). h is
A with the channel of each group inverted, one group after the other.

As A is 0 or 1, sum(h^2) - sum(h) is unbiased for the variance that the randomization adds, for any
number of groups: E[h^2 | x] - A(x)^2 is the variance of one sheet.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any

import numpy as np

from discreet.arrays import Floats
from discreet.errors import EstimationError
from discreet.mechanisms.laws import expectation
from discreet.mechanisms.response import Unrelated
from discreet.privacy import Guarantee
from discreet.statistics import Statistics, Table
from discreet.survey.predicate import Predicate
from discreet.survey.questionnaire import Questionnaire
from discreet.survey.tally import Tally

__all__ = ["Estimate", "estimate_share", "statistics_of", "unmixed"]

CHUNK = 1 << 21
"""Numbers of inverted indicators that are held at once."""


@dataclass(frozen=True)
class Estimate:
    """How many people an expression holds for.

    Parameters
    ----------
    count : float
        Unbiased; it may lie below 0 or above the number of people.
    people : int
    noise : float
        Variance of ``count`` that the randomization adds, for these very people.
    variance : float
        Variance of ``count`` for people drawn from a population: noise and sampling together.
    """

    count: float
    people: int
    noise: float
    variance: float

    @property
    def share(self) -> float:
        """Estimated share of the people."""
        return self.count / self.people

    def interval(self, level: float = 0.95, population: bool = True) -> tuple[float, float]:
        """Interval of the share by the normal law, for the population or for these people."""
        z = NormalDist().inv_cdf((1 + level) / 2)
        spread = self.variance if population else self.noise
        half = z * math.sqrt(max(spread, 0.0)) / self.people
        return self.share - half, self.share + half


def unmixed(questionnaire: Questionnaire, names: Sequence[str], function: Floats) -> Floats:
    """Scores of the answers sent: ``function`` of the true answers with all channels inverted.

    Parameters
    ----------
    questionnaire : Questionnaire
    names : sequence of str
        Questions of the last axes of ``function``, in their order.
    function : array
        Leading axes beyond the questions are left alone.
    """
    first = function.ndim - len(names)
    axes: dict[int, dict[int, int]] = {}
    for k, name in enumerate(names):
        number = questionnaire.group_of(name)
        inside = questionnaire.groups[number].questions.index(name)
        axes.setdefault(number, {})[inside] = first + k
    drawn = [n for n in axes if isinstance(questionnaire.channels[n], Unrelated)]
    if questionnaire.spanning and len(drawn) > 1:
        for number in drawn:
            questionnaire.channels[number].check_estimable()
        function = _together(questionnaire, names, function, {n: axes.pop(n) for n in drawn})
    for number, places in axes.items():
        function = questionnaire.channels[number].unmixed(function, places)
    return function


def _together(
    questionnaire: Questionnaire,
    names: Sequence[str],
    function: Floats,
    axes: Mapping[int, Mapping[int, int]],
) -> Floats:
    """Invert several groups whose personal answers depend on each other.

    E[g(sent)] = sum over the sets S of groups that sent the truth of P(S) E_Y g(x_S, Y): solved for
    E g(x), the terms of smaller S by the same formula (MRR, 6.3, for any number of groups).
    """
    first = function.ndim - len(names)
    theta = {n: float(questionnaire.channels[n].theta_exact) for n in axes}

    def solved(g: Floats, active: tuple[int, ...]) -> Floats:
        if not active:
            return g
        found = g.copy()
        for size in range(len(active)):
            for kept in itertools.combinations(active, size):
                lost = [n for n in active if n not in kept]
                places = [axis for n in lost for axis in axes[n].values()]
                law = questionnaire.law([names[axis - first] for axis in places])
                weight = math.prod(theta[n] if n in kept else 1 - theta[n] for n in active)
                found = found - weight * solved(expectation(g, law, places), kept)
        return found / math.prod(theta[n] for n in active)

    return np.broadcast_to(solved(function, tuple(axes)), function.shape)


def estimate_share(tally: Tally, expression: Predicate | str) -> Estimate:
    """Estimate how many people a logical expression holds for.

    Parameters
    ----------
    tally : Tally
    predicate : Predicate or str
        Over questions of one group or of several.
    """
    if isinstance(expression, str):
        expression = Predicate.parse(tally.questionnaire, expression)
    people = _people(tally)
    table = np.asarray(expression.table, float)
    scores = unmixed(tally.questionnaire, expression.names, table)
    sent = tally.margin(expression.names)
    count, squares = float((sent * scores).sum()), float((sent * scores**2).sum())
    sampled = (squares - count**2 / people) * people / max(people - 1, 1)
    return Estimate(count, people, max(squares - count, 0.0), max(sampled, 0.0))


def statistics_of(tally: Tally, guarantee: Guarantee | None = None) -> Statistics:
    """Unbiased statistics for a model: class totals and class-by-answer tables.

    Parameters
    ----------
    tally : Tally
    guarantee : Guarantee, optional
        The promise to attach; the questionnaire's own if not given.
    """
    survey = tally.questionnaire
    _people(tally)
    target = survey.schema.target
    totals, variances = _counted(tally, (target,))
    tables = {}
    for name in survey.schema.names:
        counts, noise = _counted(tally, (target, name))
        tables[name] = Table(survey.cells[name], counts, noise)
    promise = (guarantee or survey.guarantee).under(simulated=tally.simulated)
    return Statistics(survey.schema, totals, variances, tables, guarantee=promise)


def _counted(tally: Tally, names: tuple[str, ...]) -> tuple[Floats, Floats]:
    """Estimated count and noise variance of every combination of answers to these questions."""
    sent: Any = tally.margin(names)
    cells = sent.size
    counts, noise = np.empty(cells), np.empty(cells)
    step = max(1, CHUNK // cells)
    for start in range(0, cells, step):
        some = np.arange(start, min(start + step, cells))
        indicators = np.zeros((len(some), cells))
        indicators[np.arange(len(some)), some] = 1.0
        scores = unmixed(tally.questionnaire, names, indicators.reshape(-1, *sent.shape))
        scores = scores.reshape(len(some), cells)
        counts[some] = scores @ sent.ravel()
        noise[some] = (scores * scores) @ sent.ravel() - counts[some]
    # for some tables the estimate is negative by chance; where theta is 1 it is exactly zero
    exact = all(channel.theta_exact == 1 for channel in tally.questionnaire.channels)
    least = 0.0 if exact else 1e-9
    return counts.reshape(sent.shape), np.maximum(noise, least).reshape(sent.shape)


def _people(tally: Tally) -> int:
    if tally.people == 0:
        raise EstimationError("the tally is empty; nothing can be estimated from no sheets")
    return tally.people
