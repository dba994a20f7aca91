"""Columns that look like ids and repeat: a table in which persons may have several rows.

A promise for one row is less than was meant for a person with several. So the curator is warned,
where a column that the schema does not use is called like an id and has a value twice. That is
read from the rows, like every error about them: it is said to the curator alone, and nothing that
is released or written depends on it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from discreet.schema.cells import _to_flat_array, is_missing
from discreet.schema.schema import Schema
from discreet.tables.engines import fetch_arrow, handle_read_errors, open_table

__all__ = [
    "describe_repeated_ids",
    "find_repeated_ids",
    "find_repeated_ids_in_memory",
    "list_id_names",
]

MAX_EXAMINED_ROWS = 100_000
"""Rows in which a repeated id is looked for: a table of visits repeats some long before."""
ID_WORDS = (
    "account|child|citizen|client|customer|donor|employee|household|member|participant|passenger|"
    "patient|person|pupil|respondent|student|subject|user"
)
"""Words for persons, and what stands for them, by which columns of ids are called."""
ID_PATTERN = re.compile(
    rf"(?i)(?:.*[_\W])?(?:id|uuid|{ID_WORDS})(?:[_\W]?(?:id|no|nr|num|number|key|code|uuid))?"
)
CAMEL_CASE_PATTERN = re.compile(r".*[a-z](?:Id|ID)")


def list_id_names(names: Iterable[str], schema: Schema) -> list[str]:
    """Columns that are called like an id and are not in the schema.

    Parameters
    ----------
    names : iterable of str
    schema : Schema

    Examples
    --------
    >>> from discreet import Numeric
    >>> schema = Schema([Numeric("user", 0, 1)], "y", [0, 1])
    >>> list_id_names(["patient_id", "visitId", "id", "user", "valid", "Customer No", "y"], schema)
    ['patient_id', 'visitId', 'id', 'Customer No']
    """
    schema_names = {*schema.names, schema.target}
    return [
        name
        for name in names
        if name not in schema_names
        and (ID_PATTERN.fullmatch(name) or CAMEL_CASE_PATTERN.fullmatch(name))
    ]


def find_repeated_ids(source: Any, schema: Schema, table: str | None = None) -> list[str]:
    """Columns of a table that are called like an id, are not in the schema, and have a value twice.

    Parameters
    ----------
    source : path, glob, URL, data frame, Arrow, ibis or Spark table
        Its first rows are looked at.
    schema : Schema
    table : str, optional
        Name of the table, for a database URL.
    """
    with handle_read_errors(source):
        rows = open_table(source, table=table)
        id_names = list_id_names(map(str, rows.columns), schema)
        return [name for name in id_names if _has_repetition(rows, name)]


def find_repeated_ids_in_memory(columns: Mapping[str, Any], schema: Schema) -> list[str]:
    """The same for columns in memory.

    Parameters
    ----------
    columns : mapping of name to column
    schema : Schema
    """
    repeated_names = []
    for name in list_id_names(columns, schema):
        values = _to_flat_array(columns[name])[:MAX_EXAMINED_ROWS].tolist()
        present_values = [value for value in values if not is_missing(value)]
        if len(set(map(str, present_values))) < len(present_values):
            repeated_names.append(name)
    return repeated_names


def _has_repetition(rows: Any, name: str) -> bool:
    ids = rows.select(id=rows[name]).limit(MAX_EXAMINED_ROWS)
    counts = fetch_arrow(ids.agg(present=ids.id.count(), distinct=ids.id.nunique())).to_pylist()[0]
    return bool(counts["present"] > counts["distinct"])


def describe_repeated_ids(names: Sequence[str]) -> str:
    """The warning about such columns."""
    verb = "repeats" if len(names) == 1 else "repeat"
    return (
        f"{', '.join(names)} {verb} and looks like an id: if that is whose a row is, some persons "
        "have several rows, and epsilon protects each row only; name the column as person, with "
        "rows_per_person, to protect all rows of a person"
    )
