"""Waves: later respondents are asked more about what turned out to matter.

Each person still sends one report; only the public plan of the next wave depends on what the
earlier ones said, which is public by then.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from discreet.errors import EstimationError
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


def combined(waves: Sequence[Statistics]) -> Statistics:
    """Statistics of all waves together, each number weighted by its precision."""
    if not waves:
        raise EstimationError("there are no waves to combine")
    if len({one.schema.digest for one in waves}) > 1:
        raise EstimationError("these waves follow different schemas")
    people = [float(np.sum(one.totals)) for one in waves]
    everyone = sum(people)
    scale = [everyone / one for one in people]
    totals, variances = _weighted(
        [k * w.totals for k, w in zip(scale, waves, strict=True)],
        [k**2 * w.variances for k, w in zip(scale, waves, strict=True)],
    )
    tables: dict[str, Table] = {}
    for name in waves[0].tables:
        parts = [one.tables[name] for one in waves]
        counts, noise = _weighted(
            [k * t.counts for k, t in zip(scale, parts, strict=True)],
            [k**2 * t.variances for k, t in zip(scale, parts, strict=True)],
        )
        asked = sum(t.people or p for t, p in zip(parts, people, strict=True))
        tables[name] = Table(parts[0].cells, counts, noise, asked)
    guarantee = waves[0].guarantee
    for one in waves[1:]:
        guarantee = guarantee.beside(one.guarantee)
    return Statistics(waves[0].schema, totals, variances, tables, guarantee=guarantee)


def _weighted(
    estimates: Sequence[np.ndarray], variances: Sequence[np.ndarray]
) -> tuple[np.ndarray, np.ndarray]:
    precision = [1 / max(float(np.mean(one)), 1e-9) for one in variances]
    weight = [one / sum(precision) for one in precision]
    total = sum(w * e for w, e in zip(weight, estimates, strict=True))
    noise = sum(w**2 * v for w, v in zip(weight, variances, strict=True))
    return np.asarray(total), np.asarray(noise)
