"""Few people: a few features, chosen privately, tell more than all of them under more noise.

Of d tables each carries d times the noise of one, and a prediction adds d of them up. So its noise
grows like d^(3/2), and below a certain number of people all features together say nothing, where
the best one alone may say nearly all.

Candidates are features, numeric ones cut in several ways. The quality of a candidate is the number
of rows that the best rule on its cells gets right: the sum over cells of the largest class count,
less a public price for every cell. One more record adds 0 or 1 to each quality, never less, so
choosing with probability proportional to exp(epsilon q) costs epsilon.

Nothing that this module counts may leave without noise.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any

import numpy as np

from discreet.central.budget import Budget
from discreet.central.resolution import cuttings
from discreet.central.selection import choose
from discreet.central.source import Source
from discreet.encoding import Cells
from discreet.randomness import Random
from discreet.schema import Numeric
from discreet.statistics import Table

__all__ = ["affordable", "chosen", "merged", "quality"]

CLEAR = 2.0
"""People a class and unit of noise, over sqrt(d), from which on all d features are used."""
EACH = 60.0
"""People a unit of noise that every feature should have where only some are used."""
PRICE = 0.15
"""What a cell must bring in, in people a unit of noise."""


def affordable(people: float, classes: int, features: int, scale: Callable[[int], float]) -> int:
    """How many features to release tables of, from what is already private.

    Parameters
    ----------
    people : float
        A private estimate.
    classes, features : int
    scale : callable
        Laplace scale of the noise of each table if there are so many.

    >>> [affordable(n, 2, 16, lambda k: k / 0.5) for n in (20, 150, 300, 600)]
    [1, 1, 2, 16]
    """
    if people >= CLEAR * classes * math.sqrt(features) * scale(features):
        return features
    few = 1
    while few + 1 < features and people >= EACH * scale(few + 1):
        few += 1
    return few


def chosen(
    source: Source,
    bins: Any,
    number: int,
    cost: Fraction,
    price: float,
    budget: Budget,
    random: Random,
) -> dict[str, Table]:
    """Exact tables of the best features, one after the other by the exponential mechanism.

    Parameters
    ----------
    source : Source
    bins : "auto", int or mapping
        How the user wants numeric features cut; "auto" leaves it to the choice.
    number : int
        Of features.
    cost : Fraction
        Of all choices together.
    price : float
        Of a cell, in people.
    budget : Budget
    random : Random
    """
    candidates = _candidates(source, bins)
    tables: dict[str, Table] = {}
    for index in range(number):
        epsilon = budget.selection(f"choice of feature {index + 1} of {number}", cost / number)
        values = [quality(table, price * source.unit) for table in candidates]
        best = candidates[choose(values, epsilon / source.unit, random)]
        name = best.cells.feature.name
        tables[name] = best
        candidates = [table for table in candidates if table.cells.feature.name != name]
    return {name: tables[name] for name in source.schema.names if name in tables}


def quality(table: Table, price: float) -> int:
    """Rows that the best rule on the cells gets right, less the price of the cells."""
    return int(table.counts.max(axis=0).sum()) - round(price * table.cells.size)


def _candidates(source: Source, bins: Any) -> list[Table]:
    """All features in all their cuttings, from one count on the finest cells."""
    schema = source.schema
    ways: dict[str, list[Any]] = {}
    for feature in schema.features:
        if isinstance(feature, Numeric):
            own = bins.get(feature.name) if isinstance(bins, Mapping) else bins
            ways[feature.name] = cuttings(feature) if own is None or own == "auto" else [own]
    cells = {n: [Cells.of(schema, n, {n: way}) for way in some] for n, some in ways.items()}
    finest = {
        name: sorted({point for one in some for point in one.edges[1:-1]})
        for name, some in cells.items()
    }
    counted = source.count(bins=finest).tables
    return [
        merged(table, one)
        for name, table in counted.items()
        for one in cells.get(name, [table.cells])
    ]


def merged(table: Table, cells: Cells) -> Table:
    """The same counts on coarser cells."""
    if cells == table.cells:
        return table
    starts = np.searchsorted(table.cells.edges[:-1], cells.edges[:-1])
    proper = np.add.reduceat(table.counts[:, : table.cells.values], starts, axis=1)
    return Table(cells, np.concatenate([proper, table.counts[:, table.cells.values :]], axis=1))
