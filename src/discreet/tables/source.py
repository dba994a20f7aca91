"""The rows that a curator holds: exact counts of them, and batches to score.

`Columns` holds rows in memory; `TableSource` those of files, databases and Spark, counted where
they lie.

Nothing in this module is private. What it returns must not leave the curator without noise.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from fractions import Fraction
from typing import Any, Literal, Protocol

import numpy as np

from discreet.arrays import Array, CellCodes
from discreet.encoding import Bins, Cells
from discreet.randomness import Random
from discreet.schema import Numeric, Schema
from discreet.statistics import Statistics, Table
from discreet.tables.in_memory import Counter, count_arrays

__all__ = ["Columns", "Source", "TableSource"]

Batch = tuple[Mapping[str, Any], CellCodes]

Progress = Callable[[int, int], None]

WEIGHT_STEPS = 1024
BATCH = 65_536


class Source(Protocol):
    """Rows that can be counted and, batch by batch, scored.

    One record changes a count by at most ``unit``, each of which stands for ``value`` people: 1
    and 1, unless records carry weights.
    """

    schema: Schema
    unit: int
    value: float

    def totals(self) -> Array:
        """How many records each class has."""
        ...

    def count(
        self,
        bins: Bins | None = None,
        moments: Literal["grid"] | None = None,
        order: bool = False,
    ) -> Statistics:
        """Exact statistics."""
        ...

    def batches(self, share: Fraction, random: Random) -> Iterator[Batch]:
        """Columns and class indices of a random share of the rows, some at a time.

        Every row is in it by a coin of its own, independent of all data.
        """
        ...


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
        self.schema, self.codes = schema, codes
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
    ) -> Statistics:
        """Exact statistics."""
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

    def batches(self, share: Fraction, random: Random) -> Iterator[Batch]:
        """All sampled rows at once."""
        if share == 1:
            yield self.columns, self.codes
            return
        rows = np.flatnonzero(random.bernoulli(share, len(self.codes)))
        columns = {name: np.asarray(column)[rows] for name, column in self.columns.items()}
        yield columns, self.codes[rows]


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
        self.unit, self.value = 1, 1.0
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
            tables = self._binned(streamed) if streamed else {}
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

    def _binned(self, cells: dict[str, Cells]) -> dict[str, Table]:
        from discreet.tables.engines import arrow_batches

        counter = Counter(cells, len(self.schema.classes))
        wanted = self.rows.select(*cells, self.schema.target)
        for done, batch in enumerate(arrow_batches(wanted, 2 * BATCH)):
            columns = {n: batch.column(n).to_numpy(zero_copy_only=False) for n in cells}
            counter.add(columns, self.classes.column(batch.column(self.schema.target)))
            if self.progress is not None:
                self.progress(done, done + 1)
        return counter.tables()

    def batches(self, share: Fraction, random: Random) -> Iterator[Batch]:
        """Arrow batches; the engine throws the coins, which need not be secret."""
        import ibis

        from discreet.tables.engines import arrow_batches, reading

        names = [*self.schema.names, self.schema.target]
        rows = self.rows.select(*names)
        if share < 1:
            rows = rows.filter(ibis.random() < float(share))
        with reading(self.source):
            for batch in arrow_batches(rows, BATCH):
                columns = {name: batch.column(name) for name in names}
                yield columns, self.classes.column(columns.pop(self.schema.target))


def _array(column: Any) -> Any:
    """Numbers of a data frame as an array; other columns as they are."""
    dtype = getattr(column, "dtype", None)
    return np.asarray(column) if isinstance(dtype, np.dtype) and dtype.kind in "iuf" else column


def _plain(column: Any) -> bool:
    return isinstance(column, np.ndarray) and column.dtype.kind in "iuf"
