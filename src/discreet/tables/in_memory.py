"""Exact statistics of columns that already lie in memory, with numpy alone.

`Counter` takes plain numbers the fast way: the cell of a number is looked up in a fine public table
instead of searched for; near a cut point it is searched for after all. The result is the same,
exactly.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from discreet.arrays import Booleans, CellCodes, Floats
from discreet.encoding import Bins, Cells, Grid, numbers_of, refuse_infinity
from discreet.errors import SchemaError
from discreet.schema import Categorical, Numeric, Schema
from discreet.statistics import Moments, Order, Statistics, Table

__all__ = ["Binner", "Counter", "check_weights", "class_moments", "count_arrays"]

CHUNK = 4096
FINE = 1 << 15
CACHED = 1 << 15
"""Rows that `Counter` works on at once, so that they stay in the processor's cache."""


def count_arrays(
    schema: Schema,
    columns: Mapping[str, Any],
    codes: CellCodes,
    *,
    weights: Floats | None = None,
    bins: Bins | None = None,
    moments: Literal["float", "grid"] | None = "float",
    order: bool = False,
) -> Statistics:
    """Count columns by class.

    Parameters
    ----------
    schema : Schema
    columns : mapping of feature name to column
    codes : array of int
        The class index of each row.
    weights : array of float, optional
        How much each row counts; only for statistics that promise nothing.
    bins : int or mapping, optional
        Also count numeric features by bin.
    moments : {"float", "grid", None}
        Sums of numeric features: accurate floats, exact integers on the public grid, or none.
    order : bool, default False
        Also keep per-class order statistics on the grid.
    """
    classes = len(schema.classes)
    weights = check_weights(weights, len(codes))
    totals = np.bincount(codes, weights, minlength=classes)
    tables: dict[str, Table] = {}
    sums: dict[str, Moments] = {}
    orders: dict[str, Order] = {}
    floating: list[tuple[Numeric, Floats]] = []
    for feature in schema.features:
        column, name = columns[feature.name], feature.name
        if isinstance(feature, Categorical):
            cells = Cells.of(schema, name)
            tables[name] = _table(cells, cells.column(column), codes, classes, weights)
            continue
        numbers = numbers_of(feature, column, schema.missing_tokens, schema.outliers)
        if bins is not None:
            cells = Cells.of(schema, name, bins)
            tables[name] = _table(cells, cells.column(numbers), codes, classes, weights)
        if moments == "float":
            floating.append((feature, numbers))
        elif moments == "grid":
            sums[name] = _grid_moments(feature, numbers, codes, classes, weights)
        if order:
            orders[name] = _order(feature, numbers, codes, classes)
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


def _table(
    cells: Cells, cell: NDArray[Any], codes: NDArray[Any], classes: int, weights: Floats | None
) -> Table:
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
    values lie far from zero and the classes far apart.
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


class Counter:
    """Class-by-cell tables of numeric features that grow with every batch of rows."""

    def __init__(self, cells: Mapping[str, Cells], classes: int) -> None:
        self.cells, self.classes = cells, classes
        self.binners = {name: Binner(one) for name, one in cells.items()}
        self.counts = {n: np.zeros(classes * c.size, dtype=np.int64) for n, c in cells.items()}

    def add(self, columns: Mapping[str, NDArray[Any]], codes: NDArray[Any]) -> None:
        """Count a batch, chunk by chunk."""
        for start in range(0, len(codes), CACHED):
            part = slice(start, start + CACHED)
            own = codes[part].astype(np.intp)
            rows = {size: own * size for size in {one.size for one in self.cells.values()}}
            for name, binner in self.binners.items():
                size = self.cells[name].size
                cell = binner(np.ascontiguousarray(columns[name][part]))
                self.counts[name] += np.bincount(rows[size] + cell, minlength=self.classes * size)

    def tables(self) -> dict[str, Table]:
        """What has been counted so far."""
        return {
            name: Table(one, self.counts[name].reshape(self.classes, one.size))
            for name, one in self.cells.items()
        }
