"""The rows that a curator holds: exact counts of them, and batches to score.

`Columns` holds rows in memory; `TableSource` those of files, databases and Spark, counted where
they lie.

Nothing in this module is private. What it returns must not leave the curator without noise.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any, Literal, Protocol

import numpy as np

from discreet.arrays import Array, CellCodes
from discreet.encoding import Bins, Cells
from discreet.randomness import Random
from discreet.schema import Numeric, Schema
from discreet.statistics import Statistics, Table
from discreet.tables.in_memory import Binner, Counter, count_arrays

__all__ = ["Columns", "Sampling", "Source", "TableSource"]

Batch = tuple[dict[str, Any], CellCodes]

Progress = Callable[[int, int], None]

WEIGHT_STEPS = 1024
BATCH = 65_536
AT_HAND, AT_HAND_ELSEWHERE = 300_000, 100_000
"""Rows that are kept to be looked at again and again, of a table in memory and of another."""


class Source(Protocol):
    """Rows that can be counted and, batch by batch, scored.

    One record changes a count by at most ``unit``, each of which stands for ``value`` people: 1
    and 1, unless records carry weights. ``at_hand`` is how many rows may be kept to be looked at
    again and again; of more, a random share is.
    """

    schema: Schema
    unit: int
    value: float
    at_hand: int

    def totals(self) -> Array:
        """How many records each class has."""
        ...

    def count(
        self,
        bins: Bins | None = None,
        moments: Literal["grid"] | None = None,
        order: bool = False,
        sampling: Sampling | None = None,
    ) -> Statistics:
        """Exact statistics; all rows pass the sampling on the way, if there is one."""
        ...

    def batches(self) -> Iterator[Batch]:
        """Columns and class indices of all rows, some at a time."""
        ...


class Sampling:
    """Keeps a random share of all rows that pass: each by a coin of its own, whatever it holds.

    Parameters
    ----------
    share : Fraction
        How often a coin shows heads; 0 to 1.
    random : Random

    Attributes
    ----------
    codes : list of arrays
        Class indices of what was kept, batch by batch.
    cells : dict of feature name to list of arrays
        Cell indices of it.
    """

    def __init__(self, share: Fraction, random: Random) -> None:
        self.share, self.random = share, random
        self.codes: list[Any] = [np.empty(0, dtype=np.int32)]
        self.cells: dict[str, list[Any]] = {}

    def add(self, columns: Mapping[str, Any], codes: Array, cells: Mapping[str, Cells]) -> None:
        """Throw the coins of some rows."""
        if self.share == 0:
            return
        rows = None
        if self.share < 1:
            rows = np.flatnonzero(self.random.bernoulli(self.share, len(codes)))
            codes = codes[rows]
        self.codes.append(codes)
        for name, one in cells.items():
            column = columns[name]
            if rows is not None:  # Arrow's arrays and pandas' series know how to take rows
                own = isinstance(column, np.ndarray) or not hasattr(column, "take")
                column = np.asarray(column)[rows] if own else column.take(rows)
            small = np.int16 if one.size < 1 << 15 else np.int32
            found = cells_of(one, column).astype(small, copy=False)
            self.cells.setdefault(name, []).append(found)


class Columns:
    """Columns in memory.

    Parameters
    ----------
    schema : Schema
    columns : mapping of feature name to column
    codes : array of int
        Class index of each row.
    weights : array of float, optional
        At least zero; taken as they are where ``largest`` is None.
    largest : float, optional
        The public bound on the weights, which are rounded to multiples of ``largest / 1024``.
    """

    def __init__(
        self,
        schema: Schema,
        columns: Mapping[str, Any],
        codes: CellCodes,
        weights: Array | None = None,
        largest: float | None = None,
    ) -> None:
        self.schema, self.codes, self.at_hand = schema, codes, AT_HAND
        self.columns = {name: _array(columns[name]) for name in schema.names}
        self.weights, self.unit, self.value = weights, 1, 1.0
        if weights is not None and largest is not None:
            self.unit, self.value = WEIGHT_STEPS, largest / WEIGHT_STEPS
            self.weights = np.rint(np.asarray(weights, dtype=np.float64) / self.value)

    def totals(self) -> Array:
        """How many records each class has."""
        return np.bincount(self.codes, self.weights, minlength=len(self.schema.classes))

    def count(
        self,
        bins: Bins | None = None,
        moments: Literal["grid"] | None = None,
        order: bool = False,
        sampling: Sampling | None = None,
    ) -> Statistics:
        """Exact statistics."""
        if sampling is not None:
            cells = {f.name: Cells.of(self.schema, f, bins or 8) for f in self.schema.features}
            sampling.add(self.columns, self.codes, cells)
        if bins is not None and moments is None and not order and self.weights is None:
            return self._counted(bins)
        return count_arrays(
            self.schema,
            self.columns,
            self.codes,
            weights=self.weights,
            bins=bins,
            moments=moments,
            order=order,
        )

    def _counted(self, bins: Bins) -> Statistics:
        """The same tables, with plain numbers taken the fast way."""
        numbers = {
            feature.name: Cells.of(self.schema, feature, bins)
            for feature in self.schema.features
            if isinstance(feature, Numeric) and _plain(self.columns[feature.name])
        }
        rest = [feature for feature in self.schema.features if feature.name not in numbers]
        classes = len(self.schema.classes)
        counter = Counter(numbers, classes)
        counter.add(self.columns, self.codes)
        tables = counter.tables()
        if rest:
            others = replace(self.schema, features=tuple(rest))
            found = count_arrays(others, self.columns, self.codes, bins=bins, moments=None)
            tables |= found.tables
        ordered = {name: tables[name] for name in self.schema.names}
        return Statistics(self.schema, self.totals(), tables=ordered)

    def batches(self) -> Iterator[Batch]:
        """All rows at once."""
        yield self.columns, self.codes


class TableSource:
    """Rows of a file, a data frame or any engine's table, opened once.

    Parameters
    ----------
    source : path, glob, URL, data frame, Arrow, ibis or Spark table
    schema : Schema
    table : str, optional
        Name of the table, for a database URL.
    progress : callable, optional
        Called as ``progress(done, total)`` after every query.
    """

    def __init__(
        self,
        source: Any,
        schema: Schema,
        *,
        table: str | None = None,
        progress: Progress | None = None,
    ) -> None:
        from discreet.tables.engines import open_rows

        self.schema, self.source, self.progress = schema, source, progress
        self.unit, self.value, self.at_hand = 1, 1.0, AT_HAND_ELSEWHERE
        self.rows = open_rows(source, [*schema.names, schema.target], table=table)
        self.classes = Cells.of(schema, schema.target)

    def totals(self) -> Array:
        """How many records each class has."""
        from discreet.tables.counting import Counting
        from discreet.tables.engines import reading
        from discreet.tables.queries import Queries

        with reading(self.source):
            return Counting(Queries(self.rows, self.schema, None, None)).totals()

    def count(
        self,
        bins: Bins | None = None,
        moments: Literal["grid"] | None = None,
        order: bool = False,
        sampling: Sampling | None = None,
    ) -> Statistics:
        """Exact statistics, counted where the rows lie."""
        from discreet.tables.counting import Counting
        from discreet.tables.engines import reading
        from discreet.tables.queries import Queries

        streamed = {}
        embedded = self.rows.get_backend().name == "duckdb"
        if embedded and bins is not None and moments is None and not order:
            # such numbers are handed over faster than the engine could cut them itself
            kinds = self.rows.schema()
            streamed = {
                feature.name: Cells.of(self.schema, feature, bins)
                for feature in self.schema.features
                if isinstance(feature, Numeric)
                and (kinds[feature.name].is_floating() or kinds[feature.name].is_integer())
            }
        rest = [feature for feature in self.schema.features if feature.name not in streamed]
        with reading(self.source):
            tables = self._binned(streamed, bins, sampling) if streamed else {}
            if sampling is not None and not streamed:
                cells = {f.name: Cells.of(self.schema, f, bins or 8) for f in self.schema.features}
                for columns, codes in self.batches():
                    sampling.add(columns, codes, cells)
            if not rest:  # everyone is in one cell of any table
                totals = next(iter(tables.values())).counts.sum(axis=1)
                return Statistics(self.schema, totals, tables=tables)
            others = replace(self.schema, features=tuple(rest))
            counting = Counting(Queries(self.rows, others, None, bins), self.progress)
            found = counting.run(moments, order)
        tables = {**found.tables, **tables}
        ordered = {name: tables[name] for name in self.schema.names if name in tables}
        return Statistics(
            self.schema, found.totals, tables=ordered, moments=found.moments, orders=found.orders
        )

    def _binned(
        self, cells: dict[str, Cells], bins: Bins | None, sampling: Sampling | None
    ) -> dict[str, Table]:
        """Tables of plain numbers; where there is a sampling, all columns pass it in one go."""
        counter = Counter(cells, len(self.schema.classes))
        every = cells
        if sampling is not None and sampling.share:
            every = {f.name: Cells.of(self.schema, f, bins or 8) for f in self.schema.features}
        for columns, codes in self.batches(list(every)):
            numbers = {n: columns[n].to_numpy(zero_copy_only=False) for n in cells}
            counter.add(numbers, codes)
            if sampling is not None:
                sampling.add(columns | numbers, codes, every)
        return counter.tables()

    def batches(self, names: Sequence[str] | None = None) -> Iterator[Batch]:
        """Arrow batches of all rows; only some columns, if they are named."""
        from discreet.tables.engines import arrow_batches, reading

        wanted = [*(self.schema.names if names is None else names), self.schema.target]
        with reading(self.source):
            for done, batch in enumerate(arrow_batches(self.rows.select(*wanted), 2 * BATCH)):
                columns = {name: batch.column(name) for name in wanted}
                yield columns, self.classes.column(columns.pop(self.schema.target))
                if self.progress is not None:
                    self.progress(done, done + 1)


def _array(column: Any) -> Any:
    """Numbers of a data frame as an array; other columns as they are."""
    dtype = getattr(column, "dtype", None)
    return np.asarray(column) if isinstance(dtype, np.dtype) and dtype.kind in "iuf" else column


def cells_of(cells: Cells, column: Any) -> Array:
    """The cell of every value of a column, plain numbers the fast way."""
    if isinstance(cells.feature, Numeric) and len(column) > BATCH and _plain(column):
        parts = (column[start : start + BATCH] for start in range(0, len(column), BATCH))
        binner = Binner(cells)
        return np.concatenate([binner(np.ascontiguousarray(part)) for part in parts])
    return cells.column(column)


def _plain(column: Any) -> bool:
    return isinstance(column, np.ndarray) and column.dtype.kind in "iuf"
