"""Rows to predict, from files and databases: the columns of a schema, and copies of others.

Values of a database are read as they are where rows are counted (:mod:`discreet.tables.queries`),
so that a model predicts from what it was trained on.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Any

from discreet.errors import SchemaError
from discreet.schema.cells import Cells
from discreet.schema.dates import Date, DatePart
from discreet.schema.schema import Numeric, Schema
from discreet.tables.columns import make_group_key, read_numbers
from discreet.tables.contributions import ContributionBound
from discreet.tables.date_expressions import select_dates
from discreet.tables.engines import (
    get_source_kind,
    iter_arrow_batches,
    iter_ordered_batches,
    open_rows,
)
from discreet.tables.person_queries import open_person_rows
from discreet.tables.queries import make_not_a_number_error

__all__ = ["iter_row_batches", "require_source_kind"]

BATCH_ROWS = 65_536
"""Rows that are held in memory at once."""


def require_source_kind(source: str, table: str | None, keys: Sequence[str]) -> None:
    """Refuse the name of a table for a file, and a database without keys.

    Parameters
    ----------
    source : path, glob or URL
    table : str or None
    keys : sequence of str
    """
    is_file = get_source_kind(source) in ("csv", "parquet")
    if is_file and table is not None:
        raise SchemaError(f"{source}: is a file, which holds one table; leave out --table")
    if not is_file and not keys:
        raise SchemaError(
            f"{source}: rows of a database have no order, so a prediction is written with a column "
            "that says whose it is: name it with --key, such as --key id"
        )


def iter_row_batches(
    source: str,
    schema: Schema,
    *,
    with_target: bool = False,
    copies: Sequence[str] = (),
    table: str | None = None,
    keys: Sequence[str] = (),
    bound: ContributionBound | None = None,
) -> Iterator[tuple[Any, Any]]:
    """The columns of a schema, found by name, and copies of some columns as they are stored.

    What cannot be read is refused at once, the first batch included.

    Parameters
    ----------
    source : path, glob or URL
    schema : Schema
        Of the columns that a model reads.
    with_target : bool, default False
        Also read the class.
    copies : sequence of str
        Further columns, or the same once more.
    table : str, optional
        Name of the table, for a database URL.
    keys : sequence of str
        Columns by which the rows of a database are ordered; a file has an order of its own.
    bound : ContributionBound, optional
        How many rows of each person are used; then no further column can be copied.

    Returns
    -------
    iterator of (rows, copies)
        Arrow batches of the same rows; the first also holds copies that the schema does not name.
    """
    batches = _iter_batches(source, schema, with_target, copies, table, keys, bound)
    first_batch = next(batches, None)
    return chain([] if first_batch is None else [first_batch], batches)


def _iter_batches(
    source: str,
    schema: Schema,
    with_target: bool,
    copies: Sequence[str],
    table: str | None,
    keys: Sequence[str],
    bound: ContributionBound | None,
) -> Iterator[tuple[Any, Any]]:
    names = [*schema.names, *([schema.target] if with_target else [])]
    copied_names = list(dict.fromkeys(copies))
    all_names = list(dict.fromkeys([*names, *copied_names]))
    if bound is None and get_source_kind(source) in ("csv", "parquet"):
        for batch in iter_ordered_batches(source, all_names):
            yield batch, batch.select(copied_names)
        return
    opened = (
        open_rows(source, [*all_names, *keys], table=table)
        if bound is None
        else open_person_rows(source, bound, schema, table=table)
    )
    columns, text_columns = _read_columns(opened, schema, names)
    columns |= {f"copy{k}": opened[name] for k, name in enumerate(copied_names)}
    ordered = opened.order_by([opened[key] for key in keys]) if keys else opened
    for batch in iter_arrow_batches(ordered.select(**columns), BATCH_ROWS, source):
        for text_column, name in text_columns.items():
            for text in batch.column(text_column).drop_null().slice(0, 1).to_pylist():
                raise make_not_a_number_error(schema[name], text)
        column_by_name = {name: batch.column(f"value{k}") for k, name in enumerate(names)}
        copy_by_name = {name: batch.column(f"copy{k}") for k, name in enumerate(copied_names)}
        yield _make_batch({**copy_by_name, **column_by_name}), _make_batch(copy_by_name)


def _make_batch(columns: dict[str, Any]) -> Any:
    import pyarrow as pa

    return pa.RecordBatch.from_arrays([*columns.values()], names=[*columns])


def _read_columns(
    opened: Any, schema: Schema, names: Sequence[str]
) -> tuple[dict[str, Any], dict[str, str]]:
    """Columns as rows are counted by them, and which columns hold text that is not a number."""
    columns, text_columns = {}, {}
    for k, name in enumerate(names):
        feature = None if name == schema.target else schema[name]
        if isinstance(feature, (Date, DatePart)):  # a model reads these as they are
            columns[f"value{k}"] = select_dates(opened, name)
        elif isinstance(feature, Numeric):
            columns[f"value{k}"], invalid_text = read_numbers(opened, name, schema.missing_tokens)
            if invalid_text is not None:
                columns[f"text{k}"] = invalid_text
                text_columns[f"text{k}"] = name
        else:
            columns[f"value{k}"] = make_group_key(opened[name], Cells.from_schema(schema, name))
    return columns, text_columns
