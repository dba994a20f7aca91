"""How many respondents are enough, before anything is collected: from the variance formulas.

A cell of the estimated class-by-value table of a question with cost c, asked to a share s of N
people, has standard error sqrt(c u (1 - u) / (s N)), u = 1 / cells (docs/maths.md).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from discreet.collection.size import respondents_for as respondents_of
from discreet.errors import EstimationError
from discreet.local.plan import Plan
from discreet.local.planning import question_cost
from discreet.mechanisms.frequency import FrequencyOracle

__all__ = ["Outlook", "Precision", "outlook", "precision_of", "respondents_for"]

TYPICAL = 0.2
"""Strength of dependence of a typical feature: the middle of what the benchmark tables show."""

ENOUGH, HOPELESS = 3.5, 1.5
"""Reach from which models beat the majority class, and below which they hardly do. Found by
simulating five kinds of population at six sizes; theory alone would be content with 1."""


@dataclass(frozen=True)
class Precision:
    """Standard error of a cell of a feature's table, as a share of the population."""

    feature: str
    cells: int
    share: float
    standard_error: float


def precision_of(plan: Plan, respondents: int) -> list[Precision]:
    """What can be expected of each feature, worst first."""
    if respondents < 1:
        raise EstimationError(f"respondents is {respondents}; expect at least one")
    classes = len(plan.schema.classes)
    found = []
    for question, share in zip(plan.questions, plan.shares, strict=True):
        if not isinstance(question.mechanism, FrequencyOracle):
            continue
        cost = question_cost(question.mechanism)
        for name in question.features or (plan.schema.target,):
            cells = classes * plan.cells[name].size if name in plan.cells else classes
            u = 1 / cells
            error = math.sqrt(cost * u * (1 - u) / (share * respondents))
            found.append(Precision(name, cells, float(share), error))
    return sorted(found, key=lambda one: -one.standard_error)


def respondents_for(plan: Plan, standard_error: float) -> int:
    """How many people make every cell at least as precise as wanted."""
    return respondents_of(precision_of(plan, 1)[0].standard_error, standard_error)


@dataclass(frozen=True)
class Outlook:
    """Whether a model can be expected to do better than always naming the majority class.

    Attributes
    ----------
    verdict : {"enough", "borderline", "not enough"}
    reach : float
        Spread of the log-odds that the model can be expected to recover, twice, against what is
        needed to overrule the prior.
    respondents : int or None
        About how many would be enough; None if features of that strength never are.
    """

    verdict: str
    reach: float
    respondents: int | None


def outlook(
    plan: Plan, respondents: int, majority: float = 0.7, strength: float = TYPICAL
) -> Outlook:
    """Judge a plan by the share of the majority class and a typical strength of the features.

    Parameters
    ----------
    plan : Plan
    respondents : int
    majority : float, default 0.7
        Expected share of the most frequent class.
    strength : float, default 0.2
        How strongly a feature depends on the class: 0.1 weak, 0.2 typical, 0.4 strong.
    """
    if not 1 / len(plan.schema.classes) <= majority < 1:
        raise EstimationError(
            f"majority is {majority!r}; it lies between 1/{len(plan.schema.classes)} and 1"
        )
    reach = _reach(plan, respondents, majority, strength)
    verdict = "enough" if reach >= ENOUGH else "borderline" if reach >= HOPELESS else "not enough"
    low, high = 1, 1
    while _reach(plan, high, majority, strength) < ENOUGH:
        low, high = high, high * 2
        if high > 10**12:
            return Outlook(verdict, reach, None)
    while high - low > max(1, low // 100):
        middle = (low + high) // 2
        if _reach(plan, middle, majority, strength) < ENOUGH:
            low = middle
        else:
            high = middle
    return Outlook(verdict, reach, high)


def _reach(plan: Plan, respondents: int, majority: float, strength: float) -> float:
    """Twice the standard deviation of the recoverable log-odds, over the prior's log-odds.

    A feature of strength t over d cells gives the log-odds a variance of t^2 (d - 1) / (2 p (1 -
    p)), of which a share signal / (signal + noise) survives the shrinkage.
    """
    p = majority
    spread = 0.0
    for one in precision_of(plan, respondents):
        if one.feature == plan.schema.target:
            continue
        d = one.cells // len(plan.schema.classes)
        u = 1 / d
        signal = strength**2 * u * (1 - u) * p * (1 - p) / 2
        noise = one.standard_error**2 * (1 - 2 * p + 2 * p * p)
        spread += signal / (signal + noise) * strength**2 * (d - 1) / (2 * p * (1 - p))
    needed = max(math.log(p / (1 - p)), 0.05)
    return 2 * math.sqrt(spread) / needed
