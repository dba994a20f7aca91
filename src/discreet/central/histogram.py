"""The default: one release of all class-by-cell tables, and careful post-processing.

1. 4 % of the budget: class counts.
2. From their sum alone: whether there are people enough for all features, how finely numeric ones
   are cut, and whether step 5 takes place. If there are too few, 30 % chooses the best features.
3. The rest: each used feature's class-by-cell table. A record is in one cell of each.
4. Post-processing: class totals pooled over all tables.
5. With enough people, 5 to 10 % of the budget chooses between a few scorings. With more of them
   a third to two thirds correct what the model gets wrong instead (corrections.py).

Accounting: a record changes one class count by one, one cell of each table by one, and the
qualities of steps 2 and 5 by at most one in one direction. The shares add up to the whole.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np

from discreet.central.budget import Budget, Settings, shares, weights_of
from discreet.central.choice import (
    FINER_FROM,
    PRICE,
    Few,
    Sample,
    affordable,
    best_few,
    bins_for,
    choose,
    cut_points,
    enough,
    right,
)
from discreet.central.corrections import Plan, corrected
from discreet.encoding import Cells, cells_of
from discreet.estimation.log_ratios import LogRatios
from discreet.randomness import Random
from discreet.schema import Numeric, Schema
from discreet.scoring import Scoring
from discreet.statistics import Statistics, Table, precision_weighted
from discreet.tables.source import Sampling, Source

__all__ = ["exact", "histogram"]


FOR_COUNTS = Fraction(4, 100)
FOR_FEATURES = Fraction(30, 100)
FOR_SELECTION, MORE = Fraction(5, 100), 5
"""Smallest share of the choice of scoring, and the percent points that may be added to it."""
ENOUGH = 30
"""Least people * epsilon of the choice of scoring; it gets the smallest share that reaches it."""
LEAST = 1e-6
"""Floor of a noise variance, in squared counts, for numerical safety."""


def histogram(source: Source, budget: Budget, settings: Settings, random: Random) -> Statistics:
    """Release noisy class-by-cell tables and a privately chosen scoring."""
    schema = source.schema
    weights = weights_of(schema, settings.allocation, 1, 1)
    classes, unit, value = len(schema.classes), source.unit, source.value
    delta = budget.delta
    if budget.concentrated:  # start with pure DP; delta is added below if all features are used
        budget = Budget(budget.epsilon)
    first = budget.noise("class counts", budget.whole * FOR_COUNTS, unit)
    counts = np.asarray(value * first.add(source.totals(), random), dtype=np.float64)
    people = max(float(counts.sum()), 0.0) / (unit * value)
    doubt = math.sqrt(classes * first.variance) / unit

    loose = budget.loosened(delta) if delta else None
    # with no choice to make, all features are used, however many people there are
    open_choice = settings.selection and settings.allocation is None and len(schema.features) > 1
    few = None
    if open_choice:
        few = _few(source, (budget, loose or budget), settings, (people, doubt), random)
    # the branch depends on the noisy class counts: the guarantee covers both
    instead = loose if open_choice else None
    if few is None and loose is not None:
        budget, instead = loose, instead and Budget(budget.epsilon)
    reserved, share, plan = Fraction(0), Fraction(0), None
    if settings.selection and unit == 1:  # rows with weights are counted, but not scored
        parts = [FOR_SELECTION]
        if few is None:  # few features may still be better than all of them
            parts += [FOR_SELECTION + Fraction(k, 100) for k in range(1, MORE + 1)]
        for part in parts:
            if people * budget.strength(budget.whole * part) >= ENOUGH:
                reserved = budget.whole * part
                share = enough(budget.strength(reserved), people)
                break
        if few is None and settings.corrections and settings.allocation is None:
            # a lower bound on the number of rows that are cached for scoring
            sure = min(max(people - doubt, 0.0), source.at_hand)
            u = sure / (classes * budget.scale(budget.whole / len(weights)))
            plan = Plan.of(u, schema, budget.whole, sure)
            if plan is not None:
                reserved = plan.whole
                share = Fraction(min(1.0, source.at_hand / max(people, 1.0)))
    if few is not None:
        weights = {name: weights[name] for name in few}
    noises = {
        name: budget.noise(f"table of {name}", cost, unit)
        for name, cost in shares(weights, budget.left - reserved).items()
    }
    if few is None:
        variances = {name: one.variance for name, one in noises.items()}
        cells = _cells(schema, settings.bins, max(people - doubt, 0.0), variances)
    else:
        cells = few
    sampling = Sampling(share, random)
    tables: dict[str, Table] = {}
    for name, table in source.tables(cells, sampling).items():
        drawn = noises[name].add(table.counts, random)
        spread = np.full(table.counts.shape, value**2 * max(noises[name].variance, LEAST))
        tables[name] = Table(table.cells, value * drawn, spread)
    # every table's rows add up to the class totals, and so do the class counts
    totals, noise = precision_weighted(
        [counts, *(table.counts.sum(axis=1) for table in tables.values())],
        [
            np.full(classes, value**2 * max(first.variance, LEAST)),
            *(table.variances.sum(axis=1) for table in tables.values()),
        ],
    )
    released = Statistics(schema, totals, noise, tables, scoring=Scoring("log-ratios"))
    scoring, corrections = released.scoring, released.corrections
    if reserved:
        rows, ratios = Sample(sampling.cells, sampling.codes), LogRatios(released)
        candidates = ratios.candidates()
        if plan is not None:
            scoring, corrections = corrected(rows, ratios, candidates, budget, plan, random)
        else:
            epsilon = budget.selection("choice of scoring", reserved)
            quality = [right(rows.scores(model), rows.codes) for model in candidates.values()]
            scoring = [*candidates][choose(quality, epsilon, random)]
    promise = budget.guarantee(settings.assumptions, instead)
    return replace(released, guarantee=promise, scoring=scoring, corrections=corrections)


def _few(
    source: Source,
    budgets: tuple[Budget, Budget],
    settings: Settings,
    people: tuple[float, float],
    random: Random,
) -> dict[str, Cells] | None:
    """Select as many features as the noise allows; None if all features are used.

    ``budgets`` are what pays for a few features, and what would pay for all; ``people`` their
    number and its standard deviation.
    """
    (budget, everything), features = budgets, len(source.schema.features)
    cost, rest = budget.whole * FOR_FEATURES, budget.left
    if source.unit == 1 and people[0] * budget.strength(budget.whole * FOR_SELECTION) >= ENOUGH:
        rest -= budget.whole * FOR_SELECTION
    # of the Laplace law with the variance that the tables of one, two, … all features have
    scales = [budget.scale((rest - cost) / number) for number in range(1, features)]
    scales.append(everything.scale(everything.left / features))
    surely = people[0] - people[1] / 2
    number = affordable(surely, len(source.schema.classes), scales)
    if number == features:
        return None
    few = Few(number, cost, PRICE * scales[number - 1])
    return best_few(source, settings.bins, few, budget, random)


def exact(source: Source, settings: Settings) -> Statistics:
    """Statistics without noise (infinite epsilon): an exact binned classifier, no pseudo-counts."""
    schema = source.schema
    totals = source.totals()
    scale = len(schema.features) / 8  # finer bins than at epsilon 8 would only overfit
    variances = dict.fromkeys(schema.names, 2 * scale**2)
    cells = _cells(schema, settings.bins, float(totals.sum()) / source.unit, variances)
    found = source.tables(cells)
    tables = {n: Table(one.cells, source.value * one.counts) for n, one in found.items()}
    scoring = Scoring("none", smoothing=0.0)
    return Statistics(schema, source.value * totals, tables=tables, scoring=scoring)


def _cells(
    schema: Schema, chosen: Any, people: float, variances: Mapping[str, float]
) -> dict[str, Cells]:
    """Cells of every feature; numeric features are binned as requested or by the default rule."""
    cuts: dict[str, Any] = {}
    for feature in schema.features:
        if not isinstance(feature, Numeric):
            continue
        own: Any = chosen if isinstance(chosen, int) else None
        if isinstance(chosen, Mapping):
            own = chosen.get(feature.name)
        if own is None:
            scale = math.sqrt(max(variances[feature.name], LEAST) / 2)
            u = people / (len(schema.classes) * scale)
            own = cut_points(feature, bins_for(u), u >= FINER_FROM)
        cuts[feature.name] = own
    return cells_of(schema, cuts)
