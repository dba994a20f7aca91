"""Make neighbouring tables and different records from a public schema."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from discreet.audit.subject import Pair
from discreet.schema import Categorical, Numeric, Schema

__all__ = ["Record", "added", "columns_of", "corner", "missing", "records", "replaced", "values_of"]

Record = dict[str, Any]
Rows = Sequence[Record]


def values_of(schema: Schema, name: str, edges: Sequence[float] = ()) -> list[Any]:
    """List representative values of a feature: its categories, or one number per bin."""
    feature = schema[name]
    if isinstance(feature, Categorical):
        found: list[Any] = list(feature.values)
    else:
        middle = (feature.lower + feature.upper) / 2
        found = [*(edges[:-1] or (feature.lower, middle)), feature.upper]
        if feature.integer:
            found = [min(math.ceil(one), math.floor(feature.upper)) for one in found]
    return [*dict.fromkeys(found), *([None] if feature.optional else [])]


def corner(schema: Schema, last: bool) -> Record:
    """Make the record with the first value of every feature, or with the last."""
    record: Record = {}
    for feature in schema.features:
        kept = [one for one in values_of(schema, feature.name) if one is not None]
        record[feature.name] = kept[-1 if last else 0]
    return {**record, schema.target: schema.classes[-1 if last else 0]}


def missing(schema: Schema) -> Record:
    """Make a record of the last class with all optional values missing."""
    gone = {feature.name: None for feature in schema.features if feature.optional}
    return {**corner(schema, True), **gone}


def records(
    schema: Schema, names: Iterable[str], edges: Mapping[str, Sequence[float]]
) -> Iterable[Record]:
    """Iterate over all records that differ in the named features and the class only."""
    varied = list(dict.fromkeys(names))
    values = [values_of(schema, name, edges.get(name, ())) for name in varied]
    for combination in itertools.product(*values, schema.classes):
        yield {
            **corner(schema, False),
            **dict(zip((*varied, schema.target), combination, strict=True)),
        }


def added(schema: Schema, rows: int) -> list[Pair]:
    """Make pairs of tables that differ by one record, in ways that often reveal defects."""
    low, high = corner(schema, False), corner(schema, True)
    mixed = [low, high] * (rows // 2 + 1)
    lonely = [low] * rows
    found = [
        Pair(f"{rows} alike and one unlike", f"{rows} alike", [*lonely, high], lonely),
        Pair("one of each and one more", "one of each", [*mixed[:2], high], mixed[:2]),
    ]
    if any(feature.optional for feature in schema.features):
        base = mixed[:rows]
        found.append(Pair(f"{rows} and one with gaps", f"{rows}", [*base, missing(schema)], base))
    return found


def replaced(schema: Schema, rows: int) -> list[Pair]:
    """Make pairs of tables of the same size that differ in one record."""
    low, high = corner(schema, False), corner(schema, True)
    lonely = [low] * rows
    return [Pair(f"{rows} alike", "all but one alike", lonely, [*lonely[1:], high])]


def columns_of(schema: Schema, rows: Rows) -> tuple[dict[str, Any], np.ndarray[Any, Any]]:
    """Convert rows to columns of the features, and the classes."""
    columns: dict[str, Any] = {}
    for feature in schema.features:
        values = [row[feature.name] for row in rows]
        if isinstance(feature, Numeric):
            columns[feature.name] = np.array(
                [math.nan if one is None else one for one in values], float
            )
        else:
            columns[feature.name] = np.array(values, dtype=object)
    return columns, np.array([row[schema.target] for row in rows], dtype=object)
