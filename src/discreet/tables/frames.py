"""Data frames as Arrow tables, which DuckDB reads where they are.

A column of objects has no type that all its values share. It becomes text or numbers value by
value, as the schema reads them: if the types of all values decided together, one row would decide
how the others are read.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.schema.cells import (
    Cells,
    is_missing,
    parse_hours,
    parse_numbers,
    to_object_array,
)
from discreet.schema.dates import Date, DatePart, make_moments
from discreet.schema.schema import Numeric, Schema, format_value

__all__ = ["convert_to_arrow", "make_unknown_text"]


def convert_to_arrow(frame: Any, schema: Schema | None = None) -> Any:
    """A data frame as an Arrow table.

    Parameters
    ----------
    frame : pandas or polars frame, Arrow table
    schema : Schema, optional
        How objects are read, and refused. Without one, objects of several types become text.
    """
    import pyarrow as pa

    library = type(frame).__module__.split(".")[0]
    if library == "polars" and hasattr(frame, "collect"):
        frame = frame.collect()
    if isinstance(frame, pa.RecordBatch):
        frame = pa.Table.from_batches([frame])
    schema_columns = () if schema is None else (*schema.names, schema.target)
    if library != "pandas":
        object_columns = _find_mixed_columns(frame)
        table = frame.drop(list(object_columns)) if object_columns else frame
        table = table.to_arrow() if library == "polars" else table
        for name, column_values in object_columns.items():
            if schema is None or name in schema_columns:
                arrow_values = (
                    _convert_to_text(column_values)
                    if schema is None
                    else _read_objects(column_values, schema, name)
                )
                table = table.append_column(name, arrow_values)
        return table
    column_names = [str(name) for name in frame.columns]
    frame_columns = [frame.iloc[:, column_index] for column_index in range(frame.shape[1])]
    return pa.table(
        [
            _read_objects(column, schema, name)
            if schema is not None and name in schema_columns and _has_objects(column)
            else _convert_column(column)
            for name, column in zip(column_names, frame_columns, strict=True)
        ],
        names=column_names,
    )


def _find_mixed_columns(frame: Any) -> dict[str, NDArray[Any]]:
    """Columns of a polars or Arrow table that DuckDB cannot read, value by value."""
    import pyarrow as pa

    if hasattr(frame, "get_columns"):
        mixed_columns = [column for column in frame.get_columns() if str(column.dtype) == "Object"]
        return {column.name: to_object_array(column.to_list()) for column in mixed_columns}
    return {
        field.name: to_object_array(frame.column(position).to_pylist())
        for position, field in enumerate(frame.schema)
        if pa.types.is_union(field.type)
        or pa.types.is_float16(field.type)
        or pa.types.is_decimal256(field.type)
    }


def _has_objects(column: Any) -> bool:
    categories = getattr(column.dtype, "categories", None)
    return bool((column if categories is None else categories).dtype == object)


def _read_objects(column: Any, schema: Schema, name: str) -> Any:
    """Objects as the public text of their cells, or as numbers."""
    import pyarrow as pa

    feature = None if name == schema.target else schema[name]
    if isinstance(feature, (Date, DatePart)):
        moments = make_moments(parse_hours(feature, column, schema.missing_tokens))
        return pa.array(moments.astype("datetime64[s]"), from_pandas=True)
    if isinstance(feature, Numeric):
        numbers = parse_numbers(feature, column, schema.missing_tokens, schema.outliers)
        return pa.array(numbers, from_pandas=True)
    cells = Cells.from_schema(schema, name)
    cell_texts: list[str | None] = [*cells.spellings]
    cell_texts += [make_unknown_text(cells)] * (cells.other_index is not None) + [None]
    return pa.array(
        np.array(cell_texts, dtype=object)[cells.encode_column(column)], type=pa.string()
    )


def make_unknown_text(cells: Cells) -> str:
    """A text that is longer than all public ones, and so none of them."""
    return "(other)" + "'" * max(map(len, [*cells.spellings, *cells.tokens]), default=0)


def _convert_column(series: Any) -> Any:
    import pyarrow as pa

    try:
        column = pa.array(series, from_pandas=True)
    except (pa.ArrowInvalid, pa.ArrowTypeError):
        column = _convert_to_text(series)
    return column.dictionary_decode() if pa.types.is_dictionary(column.type) else column


def _convert_to_text(values: Any) -> Any:
    import pyarrow as pa

    value_texts = [None if is_missing(value) else format_value(value) for value in values]
    return pa.array(value_texts, type=pa.string())
