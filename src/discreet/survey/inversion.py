"""Estimates from a tally: the share of any predicate, and the Statistics of a model.

For a predicate A every sheet r gets a score h(r) with E[h(r) | true answers] = A(true answers);
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
from typing import Any

import numpy as np

from discreet.arrays import Floats
from discreet.collection.tally import Tally
from discreet.errors import EstimationError
from discreet.mechanisms.laws import expectation
from discreet.mechanisms.response import Unrelated
from discreet.privacy import Guarantee
from discreet.statistics import Statistics, Table
from discreet.survey.predicate import Predicate
from discreet.survey.questionnaire import Questionnaire
from discreet.survey.variance import ChannelVariance, Estimate
from discreet.survey.whole import likeliest

__all__ = [
    "Estimate",
    "SharePrecision",
    "channel_variance",
    "estimate_share",
    "mixed",
    "precision_of",
    "statistics_of",
    "unmixed",
]

CHUNK = 1 << 21
"""Numbers of inverted indicators that are held at once."""
TINY = 1e-300


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
    axes = _axes(questionnaire, names, function)
    drawn = [n for n in axes if isinstance(questionnaire.channels[n], Unrelated)]
    if questionnaire.spanning and len(drawn) > 1:
        for number in drawn:
            questionnaire.channels[number].check_estimable()
        function = _together(questionnaire, names, function, {n: axes.pop(n) for n in drawn})
    for number, places in axes.items():
        function = questionnaire.channels[number].unmixed(function, places)
    return function


def mixed(questionnaire: Questionnaire, names: Sequence[str], function: Floats) -> Floats:
    """Expected value of a function of the answers sent, for each of the true answers.

    Parameters are those of ``unmixed``, which is its inverse.
    """
    axes = _axes(questionnaire, names, function)
    drawn = [n for n in axes if isinstance(questionnaire.channels[n], Unrelated)]
    if questionnaire.spanning and len(drawn) > 1:
        first = function.ndim - len(names)
        some = {n: axes.pop(n) for n in drawn}
        found = np.zeros_like(function)
        for size in range(len(drawn) + 1):
            for kept in itertools.combinations(drawn, size):
                places = [axis for n in drawn if n not in kept for axis in some[n].values()]
                law = questionnaire.law([names[axis - first] for axis in places])
                chance = math.prod(
                    theta if n in kept else 1 - theta
                    for n in drawn
                    for theta in [float(questionnaire.channels[n].theta_exact)]
                )
                found = found + chance * expectation(function, law, places)
        function = found
    for number, places_of in axes.items():
        function = questionnaire.channels[number].mixed(function, places_of)
    return function


def _axes(
    questionnaire: Questionnaire, names: Sequence[str], function: Floats
) -> dict[int, dict[int, int]]:
    """For each group that is asked about: place in the group to axis of the function."""
    first = function.ndim - len(names)
    axes: dict[int, dict[int, int]] = {}
    for k, name in enumerate(names):
        number = questionnaire.group_of(name)
        inside = questionnaire.groups[number].questions.index(name)
        axes.setdefault(number, {})[inside] = first + k
    return axes


def channel_variance(
    questionnaire: Questionnaire, names: Sequence[str], tables: Floats, scores: Floats
) -> ChannelVariance:
    """Known variance of the scores of predicates; leading axes run over predicates."""
    axes = range(tables.ndim - len(names), tables.ndim)
    squares, cubes = (mixed(questionnaire, names, scores**power) for power in (2, 3))
    return ChannelVariance.of(tables, squares, cubes, axes)


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


def estimate_share(tally: Tally[Questionnaire], predicate: Predicate | str) -> Estimate:
    """Estimate how many people a predicate holds for.

    Parameters
    ----------
    tally : Tally
    predicate : Predicate or str
        Over questions of one group or of several.
    """
    if isinstance(predicate, str):
        predicate = Predicate.parse(tally.collection, predicate)
    people = _people(tally)
    table = np.asarray(predicate.table, float)
    scores = unmixed(tally.collection, predicate.names, table)
    channel = channel_variance(tally.collection, predicate.names, table, scores)
    sent = tally.margin(predicate.names)
    count, extra = float((sent * scores).sum()), float((sent * (scores**2 - scores)).sum())
    return Estimate(count, people, extra, channel)


def statistics_of(tally: Tally[Questionnaire], guarantee: Guarantee | None = None) -> Statistics:
    """Unbiased statistics for a model: class totals and class-by-answer tables.

    Parameters
    ----------
    tally : Tally
    guarantee : Guarantee, optional
        The promise to attach; if not given the questionnaire's, for as many as were counted.
    """
    survey = tally.collection
    _people(tally)
    target = survey.schema.target
    totals, variances = _counted(tally, (target,))
    tables = {}
    for name in survey.schema.names:
        counts, noise = _counted(tally, (target, name))
        opposed = 0.0
        if survey.group_of(name) != survey.group_of(target):
            # of the cells' noise only that of the answers remains in sums over the classes
            _, of_answers = _counted(tally, (name,))
            left = float(of_answers.sum()) / max(float(noise.sum()), TINY)
            opposed = min(max(1.0 - left, 0.0), 1.0)
        tables[name] = Table(survey.cells[name], counts, noise, opposed)
    promise = (guarantee or survey.promised(tally.together)).under(simulated=tally.simulated)
    whole = likeliest(tally, totals, variances, tables)
    return Statistics(survey.schema, totals, variances, tables, guarantee=promise, likeliest=whole)


def _counted(tally: Tally[Questionnaire], names: tuple[str, ...]) -> tuple[Floats, Floats]:
    """Estimated count and noise variance of every combination of answers to these questions."""
    sent: Any = tally.margin(names)
    cells, people = sent.size, tally.people
    counts, noise = np.empty(cells), np.empty(cells)
    step = max(1, CHUNK // cells)
    for start in range(0, cells, step):
        some = np.arange(start, min(start + step, cells))
        tables = np.zeros((len(some), cells))
        tables[np.arange(len(some)), some] = 1.0
        tables = tables.reshape(-1, *sent.shape)
        scores = unmixed(tally.collection, names, tables)
        channel = channel_variance(tally.collection, names, tables, scores)
        scores = scores.reshape(len(some), cells)
        counts[some] = scores @ sent.ravel()
        extra = (scores * scores) @ sent.ravel() - counts[some]
        share = np.clip(counts[some] / people, 0, 1)
        noise[some] = people * channel.noise(share, counts[some], extra, people)
    return counts.reshape(sent.shape), noise.reshape(sent.shape)


def _people(tally: Tally[Questionnaire]) -> int:
    if tally.people == 0:
        raise EstimationError("the tally is empty; nothing can be estimated from no sheets")
    return tally.people


@dataclass(frozen=True)
class SharePrecision:
    """Upper bound on the standard error of an estimated share.

    Parameters
    ----------
    what : str
        A question, two questions (all combinations of their answers), or a predicate.
    standard_error : float
        As a share of the people; the largest over all populations.
    respondents : int
        For which it holds; it falls with the square root of their number.
    """

    what: str
    standard_error: float
    respondents: int


def precision_of(
    questionnaire: Questionnaire, respondents: int, predicates: Sequence[str] = ()
) -> list[SharePrecision]:
    """Compute upper bounds on the standard errors of shares, worst first.

    Without predicates: of every answer to every question, and of every combination of an answer
    with an answer to the target, which is what a model is made of.

    The score of a sheet has a variance that the channel bounds for every population
    (``survey/variance.py``), so the figures hold whatever the true answers are; most populations
    do better.

    Parameters
    ----------
    questionnaire : Questionnaire
    respondents : int
    predicates : sequence of str, optional

    Examples
    --------
    >>> from discreet import Categorical, Schema
    >>> from discreet.survey.questionnaire import Questionnaire
    >>> sick = ("sick", ["no", "yes"])
    >>> schema = Schema([Categorical("smokes", ["no", "yes"], optional=False)], *sick)
    >>> survey = Questionnaire.of(schema, theta=0.5)
    >>> [(one.what, round(one.standard_error, 3)) for one in precision_of(survey, 1000)]
    [('smokes and sick', 0.032), ('smokes', 0.032), ('sick', 0.032)]
    """
    if respondents < 1:
        raise EstimationError(f"respondents is {respondents}; expect at least one")
    found = []
    if predicates:
        for text in predicates:
            one = Predicate.parse(questionnaire, text)
            variance = _worst(questionnaire, one.names, np.asarray(one.table, float)[None])
            found.append((text, variance))
    else:
        target = questionnaire.schema.target
        pairs = [(name, target) for name in questionnaire.schema.names]
        for names in [*pairs, *((name,) for name in questionnaire.names)]:
            sizes = [questionnaire.cells[name].size for name in names]
            every = np.eye(math.prod(sizes)).reshape(-1, *sizes)
            found.append((" and ".join(names), _worst(questionnaire, names, every)))
    made = [SharePrecision(what, math.sqrt(v / respondents), respondents) for what, v in found]
    return sorted(made, key=lambda one: -one.standard_error)


def _worst(questionnaire: Questionnaire, names: Sequence[str], tables: Floats) -> float:
    """The largest variance of one sheet's score, over the predicates and over all populations."""
    scores = unmixed(questionnaire, names, tables)
    return float(np.max(channel_variance(questionnaire, names, tables, scores).worst()))
