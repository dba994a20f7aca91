"""Worst-case tables for smooth-sensitivity noise.

A smooth bound S is made for the worst table within reach, so on most tables a record moves the
statistic by less than S, and a training with half of its noise still keeps its promise there. On
the tables made here it moves by nearly all of S, in both numbers of every feature at once:
all values are in the middle, as many as will be trimmed (``smooth`` trims nobody) at the upper
bound, and the record that is added at the upper bound, too.

- The mean of n values moves by (R/2) / (n + 1), their variance by (R/2)^2 n / (n + 1)^2. S is
  (R/2) / (n - 1) and (R/2)^2 / (n - 1), as soon as exp(-beta n) n is small.
- Of the trimmed means of the values and of their squares about the middle, the added record, or
  one that it pushes down, is the first beyond the gap that is kept. The gap is all of S.

Everything follows from what is public: the schema, epsilon, delta, the shares and the noise law.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from discreet.arrays import Integers
from discreet.audit.neighbours import corner
from discreet.audit.subject import Pair
from discreet.central.budget import Budget, Settings
from discreet.central.parametric import costs_of
from discreet.central.smooth import PAIRS, Spender, scales, trim_for
from discreet.schema import Numeric, Schema

__all__ = ["hardest", "moved"]

SIZES = [int(n) for n in np.geomspace(8, 2000, 80)]
ENOUGH = 0.97
"""Relative shift (of S) that is sufficient; larger tables gain little."""


def hardest(params: Mapping[str, Any]) -> list[Pair]:
    """Make the worst-case pair for a CentralNB; empty if its noise does not depend on the table.

    Parameters
    ----------
    params : mapping
        ``get_params()`` of the estimator.
    """
    schema, method = params["schema"], params.get("method")
    if method not in PAIRS:
        return []
    settings = Settings(params["allocation"], noise=params["noise"])
    budget = Budget(params["epsilon"], params["delta"] or 0.0)
    betas = {name: beta for name, (_, beta) in scales(schema, budget, settings).items()}
    if not betas:
        return []
    shared = Spender(settings.noise, budget).budget
    spread = math.sqrt(shared.noise("counts", costs_of(schema, settings, shared)[""]).variance)
    found = {n: min(moved(method, n, beta, spread) for beta in {*betas.values()}) for n in SIZES}
    size = next((n for n in SIZES if found[n] >= ENOUGH), max(SIZES, key=found.__getitem__))
    columns = {name: _codes(method, size, beta) for name, beta in betas.items()}
    alike = corner(schema, False)
    base = [
        {**alike, **{name: _value(schema, name, k[i]) for name, k in columns.items()}}
        for i in range(size)
    ]
    one = {**alike, **{name: _value(schema, name, 2) for name in betas}}
    return [Pair(f"{size} and one that moves all", f"{size}", [*base, one], base)]


def moved(method: str, size: int, beta: float, spread: float = 0.0) -> float:
    """Compute the shift by the added record, relative to the smooth bounds.

    Parameters
    ----------
    method : {"smooth", "trimmed"}
    size : int
        Records without it.
    beta : float
    spread : float
        Of the noisy count, from which the number of trimmed values comes.
    """
    base = _codes(method, size, beta)
    found = []
    for count in (size - 2 * spread, float(size), size + 2 * spread):
        one, two = (PAIRS[method](k, 2, (beta, beta), count) for k in (base, np.append(base, 2)))
        found += [
            abs(float(a.value - b.value)) / max(a.bound, b.bound)
            for a, b in zip(one, two, strict=True)
        ]
    return min(found)


def _codes(method: str, size: int, beta: float) -> Integers:
    """Value codes of one class, sorted: 1 is the middle, 2 the upper bound."""
    trim = trim_for(size, beta) if method == "trimmed" else 0
    return np.repeat(np.array([1, 2]), [size - trim, trim])


def _value(schema: Schema, name: str, code: int) -> float:
    feature = schema[name]
    assert isinstance(feature, Numeric)
    value = feature.lower + (feature.upper - feature.lower) * int(code) / 2
    return float(math.floor(value)) if feature.integer else value
