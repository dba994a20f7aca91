"""Waves: later respondents are asked more about what turned out to matter.

Each person still sends one report; only the public plan of the next wave depends on what the
earlier ones said, which is public by then.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

import numpy as np

from discreet.arrays import Array, Floats
from discreet.errors import EstimationError
from discreet.local.inversion import CountEstimate, counts_of
from discreet.model import CellFactor, NaiveBayesModel
from discreet.statistics import Statistics, Table

__all__ = ["combined", "focus_of"]


def focus_of(model: NaiveBayesModel) -> dict[str, float]:
    """Weights for the next wave: by the root of what each feature tells about the class."""
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
    """Statistics of all waves together, each number weighted by its precision.

    Each wave is taken for a random part of the population: who is asked later is not decided by
    what was answered before.

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
