"""Make neighbouring tables and different records from a public schema."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from discreet.audit.subject import Pair
from discreet.schema.schema import Categorical, Numeric, Schema

__all__ = [
    "Record",
    "convert_to_columns",
    "iter_records",
    "list_representative_values",
    "make_add_pairs",
    "make_corner_record",
    "make_missing_record",
    "make_replace_pairs",
]

Record = dict[str, Any]
RecordRows = Sequence[Record]


def list_representative_values(schema: Schema, name: str, edges: Sequence[float] = ()) -> list[Any]:
    """List representative values of a feature: its categories, or one number per bin."""
    feature = schema[name]
    if isinstance(feature, Categorical):
        representatives: list[Any] = list(feature.values)
    else:
        range_middle = (feature.lower + feature.upper) / 2
        representatives = [*(edges[:-1] or (feature.lower, range_middle)), feature.upper]
        if feature.integer:
            representatives = [
                min(math.ceil(bin_edge), math.floor(feature.upper)) for bin_edge in representatives
            ]
        representatives = [feature.restore_value(number) for number in representatives]
    return [*dict.fromkeys(representatives), *([None] if feature.optional else [])]


def make_corner_record(schema: Schema, use_last: bool) -> Record:
    """Make the record with the first value of every feature, or with the last."""
    record: Record = {}
    for feature in schema.features:
        present_values = [
            value for value in list_representative_values(schema, feature.name) if value is not None
        ]
        record[feature.name] = present_values[-1 if use_last else 0]
    return {**record, schema.target: schema.classes[-1 if use_last else 0]}


def make_missing_record(schema: Schema) -> Record:
    """Make a record of the last class with all optional values missing."""
    missing_values = {feature.name: None for feature in schema.features if feature.optional}
    return {**make_corner_record(schema, True), **missing_values}


def iter_records(
    schema: Schema, names: Iterable[str], edges: Mapping[str, Sequence[float]]
) -> Iterable[Record]:
    """Iterate over all records that differ in the named features and the class only."""
    varied_names = list(dict.fromkeys(names))
    values = [
        list_representative_values(schema, name, edges.get(name, ())) for name in varied_names
    ]
    for combination in itertools.product(*values, schema.classes):
        yield {
            **make_corner_record(schema, False),
            **dict(zip((*varied_names, schema.target), combination, strict=True)),
        }


def make_add_pairs(schema: Schema, row_count: int) -> list[Pair]:
    """Make pairs of tables that differ by one record, in ways that often reveal defects."""
    low_record, high_record = make_corner_record(schema, False), make_corner_record(schema, True)
    mixed_rows = [low_record, high_record] * (row_count // 2 + 1)
    equal_rows = [low_record] * row_count
    pairs = [
        Pair(
            f"{row_count} alike and one unlike",
            f"{row_count} alike",
            [*equal_rows, high_record],
            equal_rows,
        ),
        Pair(
            "one of each and one more",
            "one of each",
            [*mixed_rows[:2], high_record],
            mixed_rows[:2],
        ),
    ]
    if any(feature.optional for feature in schema.features):
        base_rows = mixed_rows[:row_count]
        pairs.append(
            Pair(
                f"{row_count} and one with gaps",
                f"{row_count}",
                [*base_rows, make_missing_record(schema)],
                base_rows,
            )
        )
    return pairs


def make_replace_pairs(schema: Schema, row_count: int) -> list[Pair]:
    """Make pairs of tables of the same size that differ in one record."""
    low_record, high_record = make_corner_record(schema, False), make_corner_record(schema, True)
    equal_rows = [low_record] * row_count
    return [
        Pair(f"{row_count} alike", "all but one alike", equal_rows, [*equal_rows[1:], high_record])
    ]


def convert_to_columns(
    schema: Schema, rows: RecordRows
) -> tuple[dict[str, Any], np.ndarray[Any, Any]]:
    """Convert rows to columns of the features, and the classes."""
    columns: dict[str, Any] = {}
    for feature in schema.features:
        values = [row[feature.name] for row in rows]
        if isinstance(feature, Numeric):
            columns[feature.name] = np.array(
                [math.nan if value is None else value for value in values], float
            )
        else:
            columns[feature.name] = np.array(values, dtype=object)
    return columns, np.array([row[schema.target] for row in rows], dtype=object)
