"""Data frames as Arrow tables, which DuckDB reads where they are.

A column of objects has no type that all its values share. It becomes text or numbers value by
value, as the schema reads them: if the types of all values decided together, one row would decide
how the others are read.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.encoding import Cells, is_missing, numbers_of, objects_of
from discreet.schema import Numeric, Schema, text_of

__all__ = ["arrow_table", "stranger_text"]


def arrow_table(frame: Any, schema: Schema | None = None) -> Any:
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
    known = () if schema is None else (*schema.names, schema.target)
    if library != "pandas":
        objects = _mixed_columns(frame)
        table = frame.to_arrow() if not objects and library == "polars" else frame
        if not objects:
            return table
        table = frame.drop(list(objects))
        table = table.to_arrow() if library == "polars" else table
        for name, values in objects.items():
            if schema is None or name in known:
                read = _as_text(values) if schema is None else _read_objects(values, schema, name)
                table = table.append_column(name, read)
        return table
    names = [str(name) for name in frame.columns]
    columns = [frame.iloc[:, index] for index in range(frame.shape[1])]
    return pa.table(
        [
            _read_objects(column, schema, name)
            if schema is not None and name in known and _holds_objects(column)
            else _arrow_column(column)
            for name, column in zip(names, columns, strict=True)
        ],
        names=names,
    )


def _mixed_columns(frame: Any) -> dict[str, NDArray[Any]]:
    """Columns of a polars or Arrow table that DuckDB cannot read, value by value."""
    import pyarrow as pa

    if hasattr(frame, "get_columns"):
        mixed = [column for column in frame.get_columns() if str(column.dtype) == "Object"]
        return {column.name: objects_of(column.to_list()) for column in mixed}
    return {
        field.name: objects_of(frame.column(position).to_pylist())
        for position, field in enumerate(frame.schema)
        if pa.types.is_union(field.type)
        or pa.types.is_float16(field.type)
        or pa.types.is_decimal256(field.type)
    }


def _holds_objects(column: Any) -> bool:
    categories = getattr(column.dtype, "categories", None)
    return bool((column if categories is None else categories).dtype == object)


def _read_objects(column: Any, schema: Schema, name: str) -> Any:
    """Objects as the public text of their cells, or as numbers."""
    import pyarrow as pa

    feature = None if name == schema.target else schema[name]
    if isinstance(feature, Numeric):
        numbers = numbers_of(feature, column, schema.missing_tokens, schema.outliers)
        return pa.array(numbers, from_pandas=True)
    cells = Cells.of(schema, name)
    texts: list[str | None] = [*cells.spellings]
    texts += [stranger_text(cells)] * (cells.other is not None) + [None]
    return pa.array(np.array(texts, dtype=object)[cells.column(column)], type=pa.string())


def stranger_text(cells: Cells) -> str:
    """A text that is longer than all public ones, and so none of them."""
    return "(other)" + "'" * max(map(len, [*cells.spellings, *cells.tokens]), default=0)


def _arrow_column(series: Any) -> Any:
    import pyarrow as pa

    try:
        column = pa.array(series, from_pandas=True)
    except (pa.ArrowInvalid, pa.ArrowTypeError):
        column = _as_text(series)
    return column.dictionary_decode() if pa.types.is_dictionary(column.type) else column


def _as_text(values: Any) -> Any:
    import pyarrow as pa

    texts = [None if is_missing(value) else text_of(value) for value in values]
    return pa.array(texts, type=pa.string())
