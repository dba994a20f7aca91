"""How precise so many respondents make a collection, before anyone is asked.

From the variances of the mechanisms and the plan's shares alone (docs/maths.md). How good a model
will be is not known before: that depends on how strongly the features depend on the class, which
is what the collection is to find out.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from discreet.errors import EstimationError
from discreet.local.inversion import margin_of
from discreet.local.plan import Plan
from discreet.mechanisms.frequency import FrequencyOracle

__all__ = ["CellPrecision", "precision_of"]


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
    """What can be expected of the class totals and of each feature asked by cell, worst first.

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
