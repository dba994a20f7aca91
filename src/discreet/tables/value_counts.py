"""How many rows of a column are in each cell of a public grid, or have each value.

The counts are exact, and only ever leave with noise (central/private_inference.py). In which cell a
row is follows from its value alone. Of a column with more values than fit into memory, the engine
hands over some at a time.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from discreet.arrays import Integers
from discreet.schema.cells import Cells, is_missing
from discreet.schema.schema import Numeric, format_value
from discreet.tables.bin_expressions import add_bin_columns
from discreet.tables.columns import _compare_bytewise, read_numbers
from discreet.tables.engines import fetch_arrow, iter_arrow_batches

__all__ = ["count_grid_cells", "iter_value_counts"]

VALUES_PER_BATCH = 65_536
"""Distinct values that are in memory at once."""


def count_grid_cells(
    rows: Any, name: str, edges: Sequence[float], tokens: Sequence[str]
) -> tuple[Integers, int]:
    """Count the numbers of a column by the cells of a grid, and text that is not a number.

    Missing values are not counted.

    Parameters
    ----------
    rows : ibis.Table
    name : str
        Of a column of numbers, truth values or text.
    edges : sequence of float
        Increasing; the first and the last cell are open.
    tokens : sequence of str
        Spellings of missing.

    Returns
    -------
    array of shape (edges + 1,)
        A number is in the cell of the last edge that it reaches.
    int
        Rows with other text.
    """
    import ibis

    numbers, invalid_text = read_numbers(rows, name, tokens)
    is_text = ibis.literal(False) if invalid_text is None else invalid_text.notnull()
    cells = Cells(Numeric(name), (-math.inf, *edges, math.inf))
    binned_rows = add_bin_columns(rows.select(x=numbers, t=is_text), {"k": ("x", cells)})
    result = fetch_arrow(binned_rows.group_by("k", "t").agg(n=binned_rows.count()))
    counts, text_count = np.zeros(len(edges) + 1, dtype=np.int64), 0
    for group in result.to_pylist():
        if group["t"]:
            text_count += int(group["n"])
        elif int(group["k"]) != cells.missing_index:
            counts[int(group["k"])] += int(group["n"])
    return counts, text_count


def iter_value_counts(
    rows: Any, name: str, tokens: Sequence[str], source: Any = None
) -> Iterator[tuple[list[Any], Integers]]:
    """Iterate over the distinct values of a column with their numbers of rows, some at a time.

    Parameters
    ----------
    rows : ibis.Table
    name : str
    tokens : sequence of str
        Spellings of missing, which is left out.
    source : path, optional
        Of what an error says that it cannot be read.
    """
    column = rows[name]
    column_type = column.type()
    if column_type.is_floating() or column_type.is_decimal():
        column = column.cast("float64")
    elif not (column_type.is_integer() or column_type.is_boolean()):
        column = _compare_bytewise(column, name)
    values = rows.select(v=column)
    query = values.group_by("v").agg(n=values.count())
    for batch in iter_arrow_batches(query, VALUES_PER_BATCH, source):
        value_counts = [
            (value, int(count))
            for value, count in zip(
                batch.column("v").to_pylist(), batch.column("n").to_pylist(), strict=True
            )
            if not is_missing(value, tokens)
        ]
        texts = [
            value if isinstance(value, (bool, int)) else format_value(value)
            for value, _ in value_counts
        ]
        yield texts, np.array([count for _, count in value_counts], dtype=np.int64)
