"""How many rows of a column are in each cell of a public grid, or have each value.

The counts are exact, and only ever leave with noise (central/private_inference.py). In which cell a
row is follows from its value alone. Of a column with more values than fit into memory, the engine
hands over some at a time.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from discreet.arrays import Integers
from discreet.errors import SchemaError
from discreet.schema.cells import Cells, is_missing
from discreet.schema.drafting import ColumnDraft, SchemaDraft
from discreet.schema.schema import Numeric, format_value
from discreet.tables.bin_expressions import add_bin_columns
from discreet.tables.columns import compare_bytewise, read_numbers
from discreet.tables.contributions import ContributionBound
from discreet.tables.engines import (
    fetch_arrow,
    get_source_kind,
    handle_read_errors,
    hold_rows,
    iter_arrow_batches,
    open_rows,
)
from discreet.tables.person_queries import limit_person_rows

__all__ = ["ColumnCounter"]

USUAL_MISSING_TOKENS = ("?", "NA", "N/A", "n/a", "#N/A", "null", "NULL")
"""Spellings of missing in CSV files, where the caller lists none; public, whatever the file has."""
ROWS_PER_BATCH = 131_072
"""Rows, or distinct values, that are in memory at once."""


@dataclass(frozen=True)
class ColumnCounter:
    """The rows of a table, and exact counts of single columns.

    Parameters
    ----------
    rows : ibis.Table
    draft : SchemaDraft
        Its columns by their declared types.
    source : Any
        What was opened.
    tokens : tuple of str
        Spellings of missing, in columns of text.
    """

    rows: Any
    draft: SchemaDraft
    source: Any
    tokens: tuple[str, ...] = ()

    @classmethod
    def open(
        cls,
        source: Any,
        target: str = "",
        *,
        table: str | None = None,
        bound: ContributionBound | None = None,
        tokens: Sequence[str] | None = None,
    ) -> ColumnCounter:
        """Open a table; its columns are known by their names and declared types.

        Parameters
        ----------
        source : path, glob, URL, data frame, Arrow, ibis or Spark table
        target : str, optional
            The class column.
        table : str, optional
            Name of the table, for a database URL.
        bound : ContributionBound, optional
            How many rows of each person are used; without it, each row is a person.
        tokens : sequence of str, optional
            Spellings of missing, of ids as well; for a CSV file, the usual ones by default.
        """
        source_kind = get_source_kind(source)
        if tokens is None:
            tokens = USUAL_MISSING_TOKENS if source_kind == "csv" else ()
        if source_kind == "arrays":
            raise SchemaError("an array has no names of columns; give a data frame or a file")
        person = None if bound is None else bound.person
        wanted_columns = [name for name in (target, person) if name]
        with handle_read_errors(source):
            rows = open_rows(source, wanted_columns, table=table, keep_others=True)
        if source_kind == "frame":
            draft = SchemaDraft.from_frame(source)
        else:
            column_types = rows.schema().items()
            draft = SchemaDraft(
                tuple(
                    ColumnDraft(name)
                    if source_kind == "csv"
                    else ColumnDraft.from_type(name, column_type)
                    for name, column_type in column_types
                )
            )
        if bound is not None:
            if target == person:
                raise SchemaError(f"{person}: says whose a row is, and cannot be the class as well")
            columns = tuple(column for column in draft.columns if column.name != person)
            draft = replace(draft, columns=columns)
            with handle_read_errors(source):
                names = [column.name for column in columns]
                rows = hold_rows(limit_person_rows(rows, bound, names, tokens=tokens))
        return cls(rows, draft.with_target(target), source, tuple(tokens))

    def count_cells(
        self, name: str, edges: Sequence[float], *, is_declared: bool
    ) -> tuple[Integers, int]:
        """Count the numbers of a column by the cells of a grid, and text that is not a number.

        Missing values are not counted.

        Parameters
        ----------
        name : str
        edges : sequence of float
            Increasing; the first and the last cell are open.
        is_declared : bool
            Whether the type of the column is declared, and not that of its values.

        Returns
        -------
        array of shape (edges + 1,)
            A number is in the cell of the last edge that it reaches.
        int
            Rows with other text.
        """
        import ibis

        with handle_read_errors(self.source):
            rows = self._select_column(name, is_declared)
            numbers, invalid_text = read_numbers(rows, "v", self.tokens)
            is_text = ibis.literal(False) if invalid_text is None else invalid_text.notnull()
            numbers_and_texts = rows.select(x=numbers, t=is_text)
            if rows.get_backend().name == "duckdb":
                return self._count_in_memory(numbers_and_texts, edges)
            cells = Cells(Numeric(name), (-math.inf, *edges, math.inf))
            binned_rows = add_bin_columns(numbers_and_texts, {"k": ("x", cells)})
            query = binned_rows.group_by("k", "t").agg(n=binned_rows.count())
            groups = fetch_arrow(query).to_pylist()
        counts, text_count = np.zeros(len(edges) + 1, dtype=np.int64), 0
        for group in groups:
            if group["t"]:
                text_count += int(group["n"])
            elif int(group["k"]) != cells.missing_index:
                counts[int(group["k"])] += int(group["n"])
        return counts, text_count

    def _count_in_memory(
        self, numbers_and_texts: Any, edges: Sequence[float]
    ) -> tuple[Integers, int]:
        """The same of an engine that hands numbers over faster than it could cut them itself."""
        counts, text_count = np.zeros(len(edges) + 1, dtype=np.int64), 0
        for batch in iter_arrow_batches(numbers_and_texts, ROWS_PER_BATCH, self.source):
            numbers = batch.column("x").drop_null().to_numpy(zero_copy_only=False)
            cell_numbers = np.searchsorted(edges, numbers, side="right")
            counts += np.bincount(cell_numbers, minlength=len(counts))
            text_count += batch.column("t").true_count
        return counts, text_count

    def iter_values(self, name: str, *, is_declared: bool) -> Iterator[tuple[list[Any], Integers]]:
        """Iterate over the distinct values of a column with their counts, some at a time.

        Missing values are left out.

        Parameters
        ----------
        name : str
        is_declared : bool
            As for :meth:`count_cells`.
        """
        with handle_read_errors(self.source):
            rows = self._select_column(name, is_declared)
            column = rows.v
            if column.type().is_floating() or column.type().is_decimal():
                column = column.cast("float64")
            elif not (column.type().is_integer() or column.type().is_boolean()):
                column = compare_bytewise(column, name)
            values = rows.select(v=column)
            query = values.group_by("v").agg(n=values.count())
        for batch in iter_arrow_batches(query, ROWS_PER_BATCH, self.source):
            value_counts = [
                (value, int(count))
                for value, count in zip(
                    batch.column("v").to_pylist(), batch.column("n").to_pylist(), strict=True
                )
                if not is_missing(value, self.tokens)
            ]
            values_in_batch = [
                value if isinstance(value, (bool, int)) else format_value(value)
                for value, _ in value_counts
            ]
            yield values_in_batch, np.array([count for _, count in value_counts], dtype=np.int64)

    def _select_column(self, name: str, is_declared: bool) -> Any:
        """A column as v; where its type is that of its values, one of text or numbers."""
        column = self.rows[name]
        if not (is_declared or column.type().is_numeric() or column.type().is_string()):
            column = column.cast("string")
        return self.rows.select(v=column)
