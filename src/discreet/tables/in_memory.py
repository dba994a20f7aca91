"""Exact statistics of columns in memory, with numpy alone.

`binned` takes plain numbers the fast way: the cell of a number is looked up in a fine public table
instead of searched for; near a cut point it is searched for after all. The result is the same,
exactly.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from discreet.arrays import Booleans, CellCodes, Floats
from discreet.encoding import Bins, Cells, Grid, cells_of, numbers_of, refuse_infinity
from discreet.errors import SchemaError
from discreet.schema import Numeric, Schema
from discreet.statistics import Moments, Order, Statistics, Table

__all__ = [
    "Binner",
    "Contents",
    "binned",
    "check_weights",
    "class_moments",
    "count_arrays",
    "table_of",
]

CHUNK = 4096
FINE = 1 << 13
"""Equal steps from bound to bound in which the cell of a number is looked up."""

CACHED = 1 << 15
"""Rows that are worked on at once, so that they stay in the processor's cache."""


@dataclass(frozen=True)
class Contents:
    """What to count besides class totals and the tables of categorical features.

    Parameters
    ----------
    bins : int or mapping, optional
        Also count numeric features by bin.
    moments : {"float", "grid", None}
        Sums of numeric features: accurate floats, exact integers on the public grid, or none.
    order : bool, default False
        Also keep per-class order statistics on the grid.
    """

    bins: Bins | None = None
    moments: Literal["float", "grid"] | None = "float"
    order: bool = False


USUAL = Contents()


def count_arrays(
    schema: Schema,
    columns: Mapping[str, Any],
    codes: CellCodes,
    contents: Contents = USUAL,
    weights: Floats | None = None,
) -> Statistics:
    """Count columns by class.

    Parameters
    ----------
    schema : Schema
    columns : mapping of feature name to column
    codes : array of int
        The class index of each row.
    contents : Contents
    weights : array of float, optional
        How much each row counts; only for statistics that promise nothing.
    """
    classes = len(schema.classes)
    weights = check_weights(weights, len(codes))
    totals = np.bincount(codes, weights, minlength=classes)
    cells = cells_of(schema, contents.bins)
    tables: dict[str, Table] = {}
    sums: dict[str, Moments] = {}
    orders: dict[str, Order] = {}
    floating: list[tuple[Numeric, Floats]] = []
    for feature in schema.features:
        column, name = columns[feature.name], feature.name
        if isinstance(feature, Numeric):
            column = numbers_of(feature, column, schema.missing_tokens, schema.outliers)
            if contents.moments == "float":
                floating.append((feature, column))
            elif contents.moments == "grid":
                sums[name] = _grid_moments(feature, column, codes, classes, weights)
            if contents.order:
                orders[name] = _order(feature, column, codes, classes)
        if name in cells:
            tables[name] = table_of(
                cells[name], cells[name].column(column), codes, classes, weights
            )
    if floating:
        numeric = [numbers for _, numbers in floating]
        sums.update(class_moments([f for f, _ in floating], numeric, codes, classes, weights))
    return Statistics(schema, totals, tables=tables, moments=sums, orders=orders)


def check_weights(weights: Any, rows: int) -> Floats | None:
    """Weights as floats, or an error that says what is wrong with them."""
    if weights is None:
        return None
    checked = np.asarray(weights, dtype=np.float64)
    if checked.shape != (rows,):
        raise SchemaError(f"weights of shape {checked.shape} do not fit {rows} rows")
    if not np.isfinite(checked).all() or (checked < 0).any():
        raise SchemaError("weights must be finite and not negative")
    return checked


def table_of(
    cells: Cells,
    cell: NDArray[Any],
    codes: NDArray[Any],
    classes: int,
    weights: Floats | None = None,
) -> Table:
    """Class-by-cell counts of rows whose cell and class are known."""
    flat = codes.astype(np.int64) * cells.size + cell
    counts = np.bincount(flat, weights, minlength=classes * cells.size)
    return Table(cells, counts.reshape(classes, cells.size))


def _grid_moments(
    feature: Numeric,
    numbers: Floats,
    codes: NDArray[Any],
    classes: int,
    weights: Floats | None,
) -> Moments:
    if weights is not None:
        raise SchemaError("sums on the grid are whole numbers; weights need moments='float'")
    grid = Grid.of(feature)
    present = ~np.isnan(numbers)
    index, where = grid.index(numbers[present]), codes[present]
    parts = [np.zeros(classes, dtype=np.int64) for _ in range(2)]
    for part, summand in zip(parts, (index, index * index), strict=True):
        np.add.at(part, where, summand)
    return Moments(
        feature,
        np.bincount(where, minlength=classes),
        parts[0],
        parts[1],
        np.bincount(codes[~present], minlength=classes),
        np.full(classes, grid.lower),
        grid.step,
    )


def _order(feature: Numeric, numbers: Floats, codes: NDArray[Any], classes: int) -> Order:
    grid = Grid.of(feature)
    present = ~np.isnan(numbers)
    levels, position = np.unique(grid.index(numbers[present]), return_inverse=True)
    flat = codes[present].astype(np.int64) * len(levels) + position
    counts = np.bincount(flat, minlength=classes * len(levels)).reshape(classes, len(levels))
    return Order(feature, grid, levels, counts)


def class_moments(
    features: list[Numeric],
    columns: list[Floats],
    codes: NDArray[Any],
    classes: int,
    weights: Floats | None = None,
) -> dict[str, Moments]:
    """Sums about the class means of several columns at once, in two passes over cached chunks.

    The second pass subtracts the means of the first, so that no digits are lost even where the
    values are far from zero and the classes far apart.
    """
    rows, shape = len(codes), (classes, len(features))
    counts, missing, first, totals, squares = (np.zeros(shape) for _ in range(5))
    buffer = np.empty((min(CHUNK, rows), len(features)))

    def chunks() -> Iterator[tuple[Floats, NDArray[Any], Floats, Booleans | None]]:
        for start in range(0, rows, CHUNK):
            part = slice(start, start + CHUNK)
            values = buffer[: len(codes[part])]
            for j, column in enumerate(columns):
                values[:, j] = column[part]
            member = (codes[part, None] == np.arange(classes)).astype(np.float64)
            if weights is not None:
                member *= weights[part, None]
            absent = None
            if not np.isfinite(values.sum()):
                refuse_infinity(values, [feature.name for feature in features])
                absent = np.isnan(values)
                values[absent] = 0.0
            yield values, codes[part], member.T, absent

    for values, _, member, absent in chunks():
        first += member @ values
        counts += member.sum(axis=1)[:, None]
        if absent is not None:
            missing += member @ absent
    counts -= missing
    mean = np.divide(first, counts, out=np.zeros(shape), where=counts > 0)
    for values, where, member, absent in chunks():
        values -= mean[where]
        if absent is not None:
            values[absent] = 0.0
        totals += member @ values
        np.multiply(values, values, out=values)
        squares += member @ values
    return {
        feature.name: Moments(
            feature, counts[:, j], totals[:, j], squares[:, j], missing[:, j], mean[:, j]
        )
        for j, feature in enumerate(features)
    }


class Binner:
    """The cells of a bounded numeric feature, for many numbers."""

    def __init__(self, cells: Cells) -> None:
        assert isinstance(cells.feature, Numeric)
        self.cells, self.feature = cells, cells.feature
        self.inner = np.asarray(cells.edges[1:-1])
        self.lower = self.feature.lower
        span = self.feature.upper - self.lower
        self.scale = FINE / span
        # rounding may place a number one fine cell too low or too high: look that far around it
        left = self.lower + span * (np.arange(FINE + 1) - 1) / FINE
        right = self.lower + span * (np.arange(FINE + 1) + 2) / FINE
        low = np.searchsorted(self.inner, left, side="right")
        high = np.searchsorted(self.inner, right, side="right")
        small = np.int16 if cells.size <= np.iinfo(np.int16).max else np.int32
        self.cell: NDArray[Any] = np.where(low == high, low, -1).astype(small)

    def __call__(self, column: NDArray[Any]) -> NDArray[Any]:
        """Cell of each number; NaN is missing."""
        x, absent = column, None
        inside = column.dtype == np.float64 and not self.feature.integer
        # comparisons with NaN are false, so that a missing value goes the careful way too
        if not (inside and x.min() >= self.lower and x.max() <= self.feature.upper):
            x = numbers_of(self.feature, column, self.cells.tokens, self.cells.outliers)
            absent = np.isnan(x) if np.isnan(x.sum()) else None
        if absent is not None:
            x = np.where(absent, self.lower, x)
        place = x - self.lower
        place *= self.scale
        cell: NDArray[Any] = self.cell[place.astype(np.int32)]
        near = np.flatnonzero(cell < 0)
        if near.size:
            cell[near] = np.searchsorted(self.inner, x[near], side="right")
        if absent is not None and self.cells.missing is not None:
            cell[absent] = self.cells.missing
        return np.asarray(cell)

    def column(self, column: NDArray[Any]) -> NDArray[Any]:
        """The same for a whole column, chunk by chunk."""
        parts = (column[start : start + CACHED] for start in range(0, len(column), CACHED))
        return np.concatenate([self(np.ascontiguousarray(part)) for part in parts])


def binned(
    cells: Mapping[str, Cells],
    batches: Iterable[tuple[Mapping[str, NDArray[Any]], NDArray[Any]]],
    classes: int,
) -> dict[str, Table]:
    """Class-by-cell tables of numeric features, over batches of columns and class indices."""
    binners = {name: Binner(one) for name, one in cells.items()}
    counts = {n: np.zeros(classes * one.size, dtype=np.int64) for n, one in cells.items()}
    for columns, codes in batches:
        for start in range(0, len(codes), CACHED):
            part = slice(start, start + CACHED)
            own = codes[part].astype(np.intp)
            rows = {size: own * size for size in {one.size for one in cells.values()}}
            for name, binner in binners.items():
                size = cells[name].size
                cell = binner(np.ascontiguousarray(columns[name][part]))
                counts[name] += np.bincount(rows[size] + cell, minlength=classes * size)
    return {n: Table(one, counts[n].reshape(classes, one.size)) for n, one in cells.items()}
