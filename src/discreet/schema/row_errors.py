"""Errors about values name the row: the first one that does not fit, counted from 0.

Reading a table stops at some value that does not fit. Only then are its columns searched for the
first row that has one, by halves, so nothing that fits is slower for it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from discreet.errors import RowError, SchemaError
from discreet.schema.cells import Cells, parse_numbers
from discreet.schema.schema import Numeric, Schema

__all__ = ["find_row_error", "row_error_context", "row_offset_context"]


@contextmanager
def row_error_context(schema: Schema, columns: Mapping[str, Any]) -> Iterator[None]:
    """Name the first row that does not fit the schema in errors that are raised in this block.

    Parameters
    ----------
    schema : Schema
    columns : mapping of feature name to column
        The columns that are read in the block; of a single row nothing is named.
    """
    try:
        yield
    except RowError:
        raise
    except SchemaError:
        row_count = max((_count_values(column) for column in columns.values()), default=0)
        row_error = find_row_error(schema, columns) if row_count > 1 else None
        if row_error is None:
            raise
        raise row_error from None


@contextmanager
def row_offset_context(rows_before: int) -> Iterator[None]:
    """Count the rows of errors in this block from the beginning of the table.

    Parameters
    ----------
    rows_before : int
        Rows of the table before those that are read in the block.
    """
    try:
        yield
    except RowError as error:
        raise error.add_rows_before(rows_before) from None


def find_row_error(schema: Schema, columns: Mapping[str, Any]) -> RowError | None:
    """Find the first row with a value that does not fit.

    Parameters
    ----------
    schema : Schema
    columns : mapping of name to column
        Features and the target; other columns are not looked at.
    """
    row_error: RowError | None = None
    for name, column in columns.items():
        if name != schema.target and name not in schema.names:
            continue
        # only a row before the one that is known is of interest
        row_limit = _count_values(column) if row_error is None else row_error.row
        row_error = _find_in_column(_make_reader(schema, name), column, row_limit or 0) or row_error
    return row_error


def _make_reader(schema: Schema, name: str) -> Callable[[Any], Any]:
    if name != schema.target and isinstance(feature := schema[name], Numeric):
        return lambda values: parse_numbers(feature, values, schema.missing_tokens, schema.outliers)
    return Cells.from_schema(schema, schema.target if name == schema.target else name).encode_column


def _find_in_column(
    read_values: Callable[[Any], Any], column: Any, row_limit: int
) -> RowError | None:
    first_row, end_row = 0, row_limit
    error = _try_to_read(read_values, _slice_column(column, first_row, end_row))
    if error is None:
        return None
    while end_row - first_row > 1:  # the first value that does not fit is among these rows
        middle_row = (first_row + end_row) // 2
        if _try_to_read(read_values, _slice_column(column, first_row, middle_row)) is None:
            first_row = middle_row
        else:
            end_row = middle_row
    error = _try_to_read(read_values, _slice_column(column, first_row, end_row)) or error
    return RowError(str(error), first_row)


def _try_to_read(read_values: Callable[[Any], Any], values: Any) -> SchemaError | None:
    try:
        read_values(values)
    except SchemaError as error:
        return error
    return None


def _count_values(column: Any) -> int:
    return len(column) if hasattr(column, "__len__") else 0


def _slice_column(column: Any, first_row: int, end_row: int) -> Any:
    if hasattr(column, "iloc"):
        return column.iloc[first_row:end_row]
    return column[first_row:end_row]
