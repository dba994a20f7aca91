"""Many respondents at once, each randomizing alone and sending one report: honest simulation.

What happens here is what happens on a device, vectorised; it reads raw data and therefore only
runs where raw data are anyway.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.arrays import Integers
from discreet.encoding import numbers_of
from discreet.local.plan import Plan
from discreet.local.respondent import perturbed
from discreet.local.tally import Tally
from discreet.randomness import Random
from discreet.schema import Numeric

__all__ = ["answers", "encoded", "questions_for", "simulate"]


def encoded(plan: Plan, columns: Mapping[str, Any]) -> dict[str, NDArray[Any]]:
    """Columns as the questions of a plan see them: cell indices, or numbers."""
    found: dict[str, NDArray[Any]] = {}
    for question in plan.questions:
        for name in question.features:
            feature = plan.schema[name]
            if name in found:
                continue
            if question.power == 0:
                found[name] = plan.cells[name].column(columns[name]).astype(np.int64)
            elif isinstance(feature, Numeric):
                tokens, outliers = plan.schema.missing_tokens, plan.schema.outliers
                found[name] = numbers_of(feature, columns[name], tokens, outliers)
    return found


def questions_for(plan: Plan, people: int, random: Random) -> Integers:
    """Which question each person answers: drawn by each, or dealt out in exact shares."""
    if plan.assignment == "draw":
        draws = random.integers(int(plan.bounds[-1]), people)
        return np.searchsorted(plan.bounds, draws, side="right")
    exact = np.cumsum(plan.shares) * people
    ends = np.round(exact).astype(np.int64)
    dealt = np.searchsorted(ends, np.arange(people), side="right")
    order = np.argsort(random.words(people), kind="stable")
    return dealt[order]


def answers(
    plan: Plan,
    classes: NDArray[Any],
    columns: Mapping[str, NDArray[Any]],
    random: Random,
) -> Iterator[tuple[int, Integers, Integers]]:
    """One answer from every record, question by question: (question, rows, serialised answers).

    Parameters
    ----------
    plan : Plan
    classes : array of int
        Class index of each record.
    columns : mapping of name to array
        As :func:`encoded` makes them.
    random : Random
    """
    asked = questions_for(plan, len(classes), random)
    order = np.argsort(asked, kind="stable")
    ends = np.searchsorted(asked[order], np.arange(len(plan.questions) + 1))
    for number, question in enumerate(plan.questions):
        rows = order[ends[number] : ends[number + 1]]
        if len(rows):
            part = {name: columns[name][rows] for name in question.features}
            codes = classes[rows].astype(np.int64)
            yield number, rows, perturbed(plan, question, codes, part, random)


def simulate(
    plan: Plan,
    classes: NDArray[Any],
    columns: Mapping[str, NDArray[Any]],
    random: Random,
) -> Tally:
    """Tally of one report from every record; the parameters are those of :func:`answers`."""
    tally = Tally(plan, simulated=random.simulated)
    for number, _, values in answers(plan, classes, columns, random):
        tally.add_values(number, values)
    return tally
