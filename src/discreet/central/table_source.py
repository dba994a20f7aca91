"""Rows of files, databases and Spark, counted where they lie.

Nothing in this module is private. What it returns must not leave the curator without noise.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from fractions import Fraction
from typing import Any, Literal

from discreet.arrays import Array
from discreet.central.binning import Counter
from discreet.central.source import Batch, narrowed
from discreet.encoding import Bins, Cells, class_codes, columns_of
from discreet.randomness import Random
from discreet.schema import Numeric, Schema
from discreet.statistics import Statistics, Table

__all__ = ["TableSource"]

Progress = Callable[[int, int], None]

BATCH = 65_536


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
        from discreet.tables.engines import kind_of, open_table, parsed

        self.schema, self.source, self.progress = schema, source, progress
        self.unit, self.value = 1, 1.0
        self.file = kind_of(source) in ("csv", "parquet")
        wanted = [*schema.names, schema.target]
        with self._reading():
            rows = open_table(source, table=table)
            columns_of(dict.fromkeys(rows.columns), wanted)
            self.rows = parsed(rows, wanted) if kind_of(source) == "csv" else rows

    def _reading(self) -> AbstractContextManager[None]:
        from discreet.tables.engines import reading

        return reading(self.source) if self.file else nullcontext()

    def totals(self) -> Array:
        """How many records each class has."""
        narrow = narrowed(self.schema, self.schema.features[:1])
        from discreet.tables import count

        with self._reading():
            return count(self.rows, narrow, moments=None).totals

    def count(
        self,
        bins: Bins | None = None,
        moments: Literal["grid"] | None = None,
        order: bool = False,
    ) -> Statistics:
        """Exact statistics, counted where the rows lie."""
        from discreet.tables import count

        streamed = self._streamed(bins) if moments is None and not order else {}
        rest = [feature for feature in self.schema.features if feature.name not in streamed]
        with self._reading():
            tables = self._binned(streamed) if streamed else {}
            if not rest:  # everyone is in one cell of any table
                totals = next(iter(tables.values())).counts.sum(axis=1)
                return Statistics(self.schema, totals, tables=tables)
            others, progress = narrowed(self.schema, rest), self.progress
            found = count(
                self.rows, others, bins=bins, moments=moments, order=order, progress=progress
            )
        tables = {**found.tables, **tables}
        ordered = {name: tables[name] for name in self.schema.names if name in tables}
        return Statistics(
            self.schema, found.totals, tables=ordered, moments=found.moments, orders=found.orders
        )

    def _streamed(self, bins: Bins | None) -> dict[str, Cells]:
        """Numbers that the embedded engine hands over faster than it could cut them itself."""
        if bins is None or self.rows.get_backend().name != "duckdb":
            return {}
        kinds = self.rows.schema()
        return {
            feature.name: Cells.of(self.schema, feature.name, bins)
            for feature in self.schema.features
            if isinstance(feature, Numeric)
            and (kinds[feature.name].is_floating() or kinds[feature.name].is_integer())
        }

    def _binned(self, cells: dict[str, Cells]) -> dict[str, Table]:
        from discreet.tables.engines import arrow_batches

        counter = Counter(cells, len(self.schema.classes))
        wanted = self.rows.select(*cells, self.schema.target)
        for done, batch in enumerate(arrow_batches(wanted, 2 * BATCH)):
            columns = {n: batch.column(n).to_numpy(zero_copy_only=False) for n in cells}
            counter.add(columns, class_codes(self.schema, batch.column(self.schema.target)))
            if self.progress is not None:
                self.progress(done, done + 1)
        return counter.tables()

    def batches(self, share: Fraction, random: Random) -> Iterator[Batch]:
        """Arrow batches; the engine throws the coins, which need not be secret."""
        import ibis

        from discreet.tables.engines import arrow_batches

        names = [*self.schema.names, self.schema.target]
        rows = self.rows.select(*names)
        if share < 1:
            rows = rows.filter(ibis.random() < float(share))
        with self._reading():
            for batch in arrow_batches(rows, BATCH):
                columns = {name: batch.column(name) for name in names}
                yield columns, class_codes(self.schema, columns.pop(self.schema.target))
