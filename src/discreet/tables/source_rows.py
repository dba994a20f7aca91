"""Errors about values of a file or a frame name the row, counted from 0."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from discreet.errors import DiscreetError, RowError, SchemaError
from discreet.schema.cells import get_columns
from discreet.schema.row_errors import find_row_error
from discreet.schema.schema import Schema
from discreet.tables.engines import get_source_kind, iter_ordered_batches

__all__ = ["source_row_context"]


@contextmanager
def source_row_context(source: Any, schema: Schema) -> Iterator[None]:
    """Name the first row that does not fit the schema in errors that are raised in this block.

    A file is read again for it, in its order; the rows of a database have none.

    Parameters
    ----------
    source : Any
        As for :func:`discreet.tables.open_table`.
    schema : Schema
    """
    try:
        yield
    except RowError:
        raise
    except SchemaError:
        row_error = _find_in_source(source, schema)
        if row_error is None:
            raise
        raise row_error from None


def _find_in_source(source: Any, schema: Schema) -> RowError | None:
    column_names, rows_before = [*schema.names, schema.target], 0
    try:
        source_kind = get_source_kind(source)
        if source_kind == "frame":
            return find_row_error(schema, get_columns(source, column_names))
        if source_kind not in ("csv", "parquet"):
            return None
        for batch in iter_ordered_batches(os.fspath(source), column_names):
            row_error = find_row_error(schema, get_columns(batch, column_names))
            if row_error is not None:
                return row_error.add_rows_before(rows_before)
            rows_before += batch.num_rows
    except DiscreetError:  # such as a missing column: not about a row
        pass
    return None
