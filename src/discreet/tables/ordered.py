"""The rows of a file in the order of the file, piece by piece."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from discreet.encoding import columns_of
from discreet.errors import SchemaError
from discreet.tables.engines import kind_of, open_table, reading

__all__ = ["batches"]

BATCH = 65_536
"""Rows that are held in memory at once."""


def batches(source: str, names: Sequence[str] | None = None) -> Iterator[Any]:
    """The columns of a CSV or Parquet file as Arrow batches, in the order of the file.

    Parameters
    ----------
    source : str
        Path or glob.
    names : sequence of str, optional
        The columns wanted; others are not read. All of them, if not given.
    """
    if kind_of(source) not in ("csv", "parquet"):
        raise SchemaError(f"{source}: only files have an order of rows; give a CSV or Parquet file")
    table = open_table(source)
    names = table.columns if names is None else names
    try:
        columns_of(dict.fromkeys(table.columns), names)
    except SchemaError as error:
        raise SchemaError(f"{source}: {error}") from None
    engine = table.get_backend()
    with reading(source):
        # counting does not care which row comes first, but here the first row is row 0
        engine.raw_sql("SET preserve_insertion_order = true")
        rows = engine.con.sql(engine.compile(table.select(*names)))
        # not ibis' own to_pyarrow_batches: DuckDB 2 has renamed the method that it calls
        stream = getattr(rows, "to_arrow_reader", None) or rows.fetch_record_batch
        return _pieces(source, stream(BATCH), engine)


def _pieces(source: str, reader: Any, engine: Any) -> Iterator[Any]:
    """Batch after batch; the engine is held because it closes when nobody holds it."""
    while True:
        with reading(source):
            batch = next(reader, None)
        if batch is None:
            return
        yield batch
