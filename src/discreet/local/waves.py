"""Waves: later respondents are asked more about what turned out to matter.

Each person still sends one report; only the public plan of the next wave depends on the earlier
reports, whose tallies are public by then. A plan names the inputs of its shares, so that anyone
with the earlier tallies can recompute it.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np

from discreet.arrays import Array, Floats
from discreet.collection.tally import Tally
from discreet.errors import EstimationError
from discreet.estimation import estimate
from discreet.local.inversion import CountEstimate, counts_of, statistics_of
from discreet.local.plan import Design, Plan, Wave
from discreet.local.planning import Choices, make_plan
from discreet.model import CellFactor, NaiveBayesModel
from discreet.schema import Numeric
from discreet.shuffling import Shuffle
from discreet.statistics import Statistics, Table

__all__ = ["check_shares", "combined", "focus_of", "next_plan"]


def next_plan(
    tallies: Sequence[Tally[Plan]],
    respondents: int,
    *,
    kind: Design = "auto",
    oracle: str = "auto",
    epsilon: float | None = None,
    shuffled: Shuffle | None = None,
) -> Plan:
    """Make the plan of the next wave, which asks more about the features that mattered before.

    Parameters
    ----------
    tallies : sequence of Tally
        Of all earlier waves, in their order.
    respondents : int
        Expected in all waves together.
    kind : {"auto", "pairs", "paper"}
    oracle : str, default "auto"
        As in :func:`~discreet.local.planning.make_plan`.
    epsilon : float, optional
        That of the wave before, if not given.
    shuffled : Shuffle, optional
        What is promised to this wave, where its reports are shuffled; instead of ``epsilon``.

    Returns
    -------
    Plan
        For the same schema, bins, projection and assignment as the wave before.
    """
    focus = _focus_after(tallies)
    last = tallies[-1]
    before = last.collection
    number = 2 if before.wave is None else before.wave.number + 1
    wave = Wave(number, respondents, before.digest, last.digest, kind, oracle)
    if shuffled is not None:
        return _planned(before, wave, shuffled.epsilon, focus, shuffled)
    return _planned(before, wave, before.epsilon if epsilon is None else epsilon, focus)


def check_shares(plan: Plan, tallies: Sequence[Tally[Plan]]) -> None:
    """Recompute the plan of a later wave from the earlier tallies, and compare.

    Parameters
    ----------
    plan : Plan
    tallies : sequence of Tally
        Of all earlier waves, in any order: each plan names the one before it.

    Raises
    ------
    EstimationError
        If a tally is missing or another one, or if the shares do not follow from them.
    """
    if plan.wave is None:
        raise EstimationError("this plan follows no earlier wave, so there is nothing to recompute")
    ordered: list[Tally[Plan]] = []
    wave: Wave | None = plan.wave
    known = {(one.collection.digest, one.digest): one for one in tallies}
    while wave is not None:
        found = known.get((wave.plan, wave.tally))
        if found is None:
            raise EstimationError(
                f"wave {wave.number} follows the tally {wave.tally[:23]}… of the plan "
                f"{wave.plan[:23]}…, which is not among the given ones"
            )
        ordered.insert(0, found)
        wave = found.collection.wave
    made = _planned(ordered[-1].collection, plan.wave, plan.epsilon, _focus_after(ordered))
    if made.digest != replace(plan, shuffled=None).digest:
        raise EstimationError(
            "the shares of this plan do not follow from its wave, its number of respondents and "
            "the earlier tallies; it was made in another way than it says"
        )


def _focus_after(tallies: Sequence[Tally[Plan]]) -> dict[str, float]:
    if not tallies:
        raise EstimationError("a later wave follows the tallies of the earlier ones; give them")
    if any(one.collection.averaged for one in tallies):
        raise EstimationError("waves re-issue plans of cells; ask numbers by bin")
    for before, after in pairwise(tallies):
        wave = after.collection.wave
        if wave is None or (wave.plan, wave.tally) != (before.collection.digest, before.digest):
            raise EstimationError(
                "these tallies are not those of one wave after the other: each plan must name the "
                "plan and the tally before it; give all earlier waves in their order"
            )
    if tallies[0].collection.wave is not None:
        raise EstimationError("the first tally is of a later wave; give those before it, too")
    found = [statistics_of(one) for one in tallies]
    return focus_of(estimate(combined(found, [one.people for one in tallies]), "bayes"))


def _planned(
    before: Plan,
    wave: Wave,
    epsilon: float,
    focus: dict[str, float],
    shuffled: Shuffle | None = None,
) -> Plan:
    bins = {
        name: list(cells.edges[1:-1]) or 1
        for name, cells in before.cells.items()
        if isinstance(before.schema[name], Numeric)
    }
    thetas = {getattr(one.mechanism, "theta", None) for one in before.questions} - {None}
    return make_plan(
        before.original,
        epsilon,
        wave.respondents if shuffled is None else shuffled.respondents,
        Choices(
            kind=wave.kind,
            oracle=wave.oracle,
            theta=thetas.pop() if wave.oracle == "the" and thetas else None,
            bins=bins,
            assignment=before.assignment,
            reports=before.reports,
            focus=focus,
            projection=before.projection,
            shuffled=None if shuffled is None else shuffled.delta,
            wave=wave,
            everyone=wave.respondents,
        ),
    )


def focus_of(model: NaiveBayesModel) -> dict[str, float]:
    """Compute weights for the next wave: root of the mutual information of feature and class."""
    prior = np.exp(model.log_prior)[:, None]
    told: dict[str, float] = {}
    for factor in model.factors:
        if isinstance(factor, CellFactor):
            p = np.exp(factor.log_probability)
            p = p / p.sum(axis=1, keepdims=True)
            margin = (prior * p).sum(axis=0)
            told[factor.name] = float((prior * p * np.log(p / margin)).sum())
    mean = sum(told.values()) / max(len(told), 1)
    if mean <= 0:
        return {}
    return {name: float(np.clip(np.sqrt(one / mean), 0.5, 2.0)) for name, one in told.items()}


def combined(waves: Sequence[Statistics], people: Sequence[int]) -> Statistics:
    """Combine the statistics of all waves, weighted by precision.

    Each wave is assumed to be a random part of the population: who is asked later does not depend
    on earlier answers.

    Parameters
    ----------
    waves : sequence of Statistics
    people : sequence of int
        How many sent a report in each wave.
    """
    if not waves:
        raise EstimationError("there are no waves to combine")
    if len({one.schema.digest for one in waves}) > 1:
        raise EstimationError("these waves follow different schemas")
    if any(one.moments for one in waves):
        raise EstimationError("waves that ask for means cannot be combined; ask by bin")
    if len({json.dumps(one.projection and one.projection.to_body()) for one in waves}) > 1:
        raise EstimationError("these waves follow different projections")
    if any(t.cells != waves[0].tables[n].cells for one in waves for n, t in one.tables.items()):
        raise EstimationError("these waves cut a number into different bins")
    everyone = sum(people)

    def pooled(counts: Sequence[Array], noise: Sequence[Array]) -> tuple[Floats, Floats]:
        parts = [
            CountEstimate(
                c / n, v / n**2, float(v.mean()) / n**2 + (1 - 1 / c.size) / c.size / n, n
            )
            for c, v, n in zip(counts, noise, people, strict=True)
        ]
        return counts_of(parts, everyone)

    totals, variances = pooled([one.totals for one in waves], [one.variances for one in waves])
    tables: dict[str, Table] = {}
    for name in waves[0].tables:
        parts = [one.tables[name] for one in waves]
        found = pooled([one.counts for one in parts], [one.variances for one in parts])
        tables[name] = Table(parts[0].cells, *found)
    guarantee = waves[0].guarantee
    for one in waves[1:]:
        guarantee = guarantee.beside(one.guarantee)
    return Statistics(
        waves[0].schema,
        totals,
        variances,
        tables,
        guarantee=guarantee,
        projection=waves[0].projection,
    )
