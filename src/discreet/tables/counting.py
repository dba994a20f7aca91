"""Count the rows of files, data frames and databases in place.

Arrays are counted with numpy (:mod:`discreet.tables.in_memory`). Everything else is an ibis table
(:mod:`discreet.tables.engines`) and goes through the few queries below, the same on DuckDB,
PostgreSQL, Spark and any other engine of ibis, with identical integers on each:

1. ``GROUP BY class``: totals, the checks of all numbers, and sums on the public grid;
2. sums about the class means, when floats are asked for;
3. ``GROUP BY class, a, b`` over pairs of features, rolled up here through the schema's own cells;
4. ``GROUP BY class, k`` for each numeric feature whose order statistics are asked for.

All spellings of a value are folded inside the query, so that a table that fits the schema has at
most one group for every combination of public cells. No query fetches more groups than that, plus
one: a column full of junk ends in the error about its first unknown value, not in exhausted
memory, and a result that would be cut is an error, never a smaller count.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Any

import numpy as np

from discreet.arrays import Array
from discreet.encoding import Cells, Grid, cells_of, class_codes, columns_of
from discreet.errors import SchemaError
from discreet.schema import Numeric, Schema
from discreet.statistics import Moments, Order, Statistics, Table
from discreet.tables.engines import fetched, kind_of, open_rows, open_table, reading
from discreet.tables.frames import arrow_table
from discreet.tables.in_memory import USUAL, Contents, count_arrays
from discreet.tables.queries import Queries, check_numbers

__all__ = ["count", "open_table"]

Progress = Callable[[int, int], None]

LARGEST_PAIR = 10_000
"""Two features are counted in one query while they have at most this many cells together."""


def count(
    source: Any,
    schema: Schema,
    contents: Contents = USUAL,
    *,
    y: Any = None,
    weights: Any = None,
    progress: Progress | None = None,
) -> Statistics:
    """Exact sufficient statistics of a table. They promise nothing: guard them like the table.

    Parameters
    ----------
    source : array, data frame, Arrow table, ibis table, Spark data frame, path, glob or URL
        See :func:`open_table`. Columns are found by name, those of an array by position.
    schema : Schema
        Every value is held against it.
    contents : Contents
        What to count besides classes and categories: bins, sums, order statistics.
    y : array, optional
        The classes, where the source does not hold them itself.
    weights : array or str, optional
        How much each row counts: an array beside arrays, else the name of a column.
    progress : callable, optional
        Called as ``progress(done, total)`` after every query.

    Returns
    -------
    Statistics
    """
    kind = kind_of(source)
    if kind == "arrays" or (y is not None and kind == "frame"):
        return _count_arrays(source, schema, contents, y, weights)
    if y is not None:
        raise SchemaError(f"the classes are read from the column {schema.target}; leave y out")
    if not (weights is None or isinstance(weights, str)):
        raise SchemaError("the weights of a table are one of its columns; give its name")
    if weights is not None and contents.moments == "grid":
        raise SchemaError("sums on the grid are whole numbers; weights need moments='float'")
    wanted = [*schema.names, schema.target, *([weights] if weights else [])]
    with reading(source):
        table = open_rows(read_objects(source, schema, wanted), wanted)
        queries = Queries(table, schema, weights, cells_of(schema, contents.bins))
        return Counting(queries, progress).run(contents.moments, contents.order)


def _count_arrays(
    source: Any, schema: Schema, contents: Contents, y: Any, weights: Any
) -> Statistics:
    if isinstance(weights, str):
        raise SchemaError("the weights of an array are an array with one number per row")
    if y is not None:
        columns, codes = columns_of(source, schema.names), class_codes(schema, y)
    elif isinstance(source, np.ndarray):
        raise SchemaError("an array does not hold the classes; give them as y")
    else:
        columns = columns_of(source, [*schema.names, schema.target])
        codes = class_codes(schema, columns[schema.target])
    for name in schema.names:
        if len(columns[name]) != len(codes):
            raise SchemaError(f"{name} has {len(columns[name])} rows, the classes {len(codes)}")
    return count_arrays(schema, columns, codes, contents, weights)


def read_objects(source: Any, schema: Schema, wanted: list[str]) -> Any:
    """The columns wanted of a frame, objects value by value; other sources as they are."""
    if kind_of(source) != "frame":
        return source
    if not hasattr(source, "iloc"):
        return arrow_table(source, schema)
    names = [str(name) for name in source.columns]
    columns_of(dict.fromkeys(names), wanted)
    narrow = source.iloc[:, [names.index(name) for name in dict.fromkeys(wanted)]]
    return arrow_table(narrow, schema)


def pairs(sizes: dict[str, int], largest: int = LARGEST_PAIR) -> list[tuple[str, ...]]:
    """Which features to count together: the largest with the smallest, while that stays small."""
    waiting = sorted(sizes, key=lambda name: sizes[name])
    groups: list[tuple[str, ...]] = []
    while waiting:
        big = waiting.pop()
        if waiting and sizes[big] * sizes[waiting[0]] <= largest:
            groups.append((waiting.pop(0), big))
        else:
            groups.append((big,))
    return groups


@dataclass
class Counting:
    """The queries of one table, and what they add up to.

    Parameters
    ----------
    rows : Queries
    progress : callable, optional
        Called as ``progress(done, total)`` after every query.
    """

    rows: Queries
    progress: Progress | None = None
    done: int = field(default=0, init=False)
    total: int = field(default=1, init=False)

    def run(self, moments: str | None = None, order: bool = False) -> Statistics:
        """Exact statistics; parameters as those of :class:`Contents`."""
        numeric, cells = self.rows.numeric, self.rows.cells
        groups = pairs({name: one.size for name, one in cells.items()})
        ordered = numeric if order else []
        floats = bool(moments == "float" and numeric)
        self.total = 1 + floats + len(groups) + len(ordered)
        totals, sums = self.by_class(numeric, moments)
        found = dict(pair for group in groups for pair in self._tables(group))
        tables = {name: found[name] for name in cells}
        orders = {feature.name: self._order(feature) for feature in ordered}
        return Statistics(self.rows.schema, totals, tables=tables, moments=sums, orders=orders)

    def _fetch(
        self, query: Any, most: int, cells: Sequence[Cells] = ()
    ) -> tuple[Array, Any, list[Array]]:
        """Run a query whose first column is the class, followed by the columns ``a0``, ``a1`` ...

        Gives class indices, all columns, and the indices of cells for ``a0``, ``a1`` ...
        """
        most *= self.rows.most_keys(self.rows.schema.target)
        result = fetched(query.limit(most + 1))
        self.done += 1
        if self.progress is not None:
            self.progress(self.done, self.total)
        where = self.rows.target.column(result.column("y"))
        found = []
        for i, one in enumerate(cells):  # a query gives the bin of a number, else the value
            column = result.column(f"a{i}")
            found.append(column.to_numpy() if one.edges else one.column(column))
        if result.num_rows > most:  # a sum over some of the groups would not be the count
            raise SchemaError(
                f"the table has more than {most} groups of classes and values, more than the "
                "schema allows, although each of them fits it; this should never happen, and "
                "nothing was counted: please report it with the types of the columns"
            )
        return where, result, found

    def by_class(
        self, numeric: Sequence[Numeric] = (), moments: str | None = None
    ) -> tuple[Array, dict[str, Moments]]:
        """Totals and, of all numeric features or none, moments: one query or, for floats, two.

        The values of the features that are named are checked; no others are looked at.
        """
        where, result, _ = self._fetch(self.rows.by_class(moments, numeric), 1)
        check_numbers(self.rows, numeric, result)
        totals = self._added(result, "n", where)
        if moments is None or not numeric:
            return totals, {}
        names = [feature.name for feature in numeric]
        weighted = self.rows.weights is not None
        kind = np.float64 if moments == "float" else None
        counts = self._each(where, result, "n" if weighted else "p")
        missing = self._each(where, result, "m") if weighted else totals - counts
        sums = self._each(where, result, "s", kind)
        if moments == "grid":
            grids = [Grid.of(feature) for feature in numeric]
            origins = np.array([np.full(len(totals), grid.lower) for grid in grids])
            steps = [grid.step for grid in grids]
        else:
            counts, missing = counts.astype(np.float64), missing.astype(np.float64)
            origins = np.divide(sums, counts, out=np.zeros_like(counts), where=counts > 0)
            steps = [1.0] * len(names)
            keys = dict(zip(result.column("y").to_pylist(), where.tolist(), strict=True))
            about = self.rows.about(keys, dict(zip(names, origins, strict=True)))
            where, result, _ = self._fetch(about, 1)
            sums = self._each(where, result, "s", kind)
        squares = self._each(where, result, "q", kind)
        return totals, {
            feature.name: Moments(
                feature, counts[j], sums[j], squares[j], missing[j], origins[j], steps[j]
            )
            for j, feature in enumerate(numeric)
        }

    def _each(self, where: Array, result: Any, letter: str, kind: Any = None) -> Array:
        """One number a numeric feature and class."""
        numeric = range(len(self.rows.numeric))
        return np.array([self._added(result, f"{letter}{j}", where, kind=kind) for j in numeric])

    def _added(
        self, result: Any, name: str, *places: Array, width: int | None = None, kind: Any = None
    ) -> Array:
        """A column added up by class and, where there is a width, by cell; zero where no row is.

        Exactly: drivers give integers as int64, Decimal or hugeint.
        """
        kind = kind or (np.int64 if self.rows.weights is None else np.float64)
        cast = int if kind is np.int64 else float
        numbers = [cast(value or 0) for value in result.column(name).to_pylist()]
        classes = self.rows.target.size
        out = np.zeros(classes if width is None else (classes, width), dtype=kind)
        np.add.at(out, places, np.array(numbers, dtype=kind))
        return out

    def _tables(self, group: tuple[str, ...]) -> Iterator[tuple[str, Table]]:
        most = prod(self.rows.most_keys(name) for name in group)
        cells = [self.rows.cells[name] for name in group]
        where, result, found = self._fetch(self.rows.by_cells(group), most, cells)
        for name, one, cell in zip(group, cells, found, strict=True):
            yield name, Table(one, self._added(result, "n", where, cell, width=one.size))

    def _order(self, feature: Numeric) -> Order:
        grid = Grid.of(feature)
        where, result, _ = self._fetch(self.rows.by_level(feature.name), grid.levels + 1)
        found = np.array([int(level) for level in result.column("k").to_pylist()], dtype=np.int64)
        levels, position = np.unique(found, return_inverse=True)
        counts = self._added(result, "n", where, position, width=len(levels), kind=np.int64)
        return Order(feature, grid, levels, counts)
