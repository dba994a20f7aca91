"""A schema taken from data, for convenience, with a warning that names everything taken.

Bounds, categories and classes are private facts about the rows they were read from. A schema
written by hand gives nothing away; this one may.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterable, Sequence
from datetime import date, timedelta
from typing import Any

from discreet.errors import PrivacyWarning, SchemaError
from discreet.schema.cells import is_missing
from discreet.schema.dates import Date
from discreet.schema.schema import (
    Categorical,
    Feature,
    Numeric,
    Schema,
    Value,
    format_value,
)
from discreet.tables.columns import find_fractions, read_numbers
from discreet.tables.date_expressions import INVALID_SUFFIX, add_date_columns
from discreet.tables.engines import fetch_arrow, get_source_kind, handle_read_errors, open_rows
from discreet.tables.identifiers import IDENTIFIER_REASON, TOO_MANY_VALUES_REASON, is_identifier

__all__ = ["infer_schema"]

MAX_DISTINCT_VALUES = 1000
"""A column of text with more distinct values is left out, and a class is refused."""


def infer_schema(
    table: Any,
    target: str,
    *,
    categorical: Iterable[str] = (),
    missing_tokens: Sequence[str] = (),
    warn: bool = True,
    table_name: str | None = None,
    **treatment: Any,
) -> Schema:
    """Take a schema from data, and warn about everything that was taken.

    Parameters
    ----------
    table : data frame, Arrow table, ibis table, path of a CSV or Parquet file, or URL
        Whatever :func:`~discreet.tables.open_table` opens.
    target : str
        The name of the class column.
    categorical : iterable of str
        Numeric columns to treat as categories.
    missing_tokens : sequence of str
        As in :class:`~discreet.Schema`.
    warn : bool, default True
        Whether to raise the warning; only for callers that say the same in their own words.
    table_name : str, optional
        Name of the table, for a database URL.
    **treatment
        ``missing``, ``outliers`` and ``unseen`` of the schema, handed on to it.

    Returns
    -------
    Schema
        Every feature is optional: whether values are missing is not learnt from the data.
        Identifiers are left out.

    Warns
    -----
    PrivacyWarning
        Names every bound, category list and class list that now comes from the data, and the
        columns that are left out.
    """
    if isinstance(missing_tokens, str) or isinstance(categorical, str):
        raise SchemaError("missing_tokens and categorical are lists; write ['…'] for one entry")
    is_csv, chosen_categorical = get_source_kind(table) == "csv", set(categorical)
    with handle_read_errors(table):
        wanted_columns = [target, *chosen_categorical]
        rows = open_rows(table, wanted_columns, table=table_name, keep_others=True)
        reader = _Reader(rows, tuple(missing_tokens), numbers_as_text=is_csv)
        read_features = [
            reader.read_feature(name, name in chosen_categorical)
            for name in rows.columns
            if name != target
        ]
        features = [feature for feature in read_features if feature is not None]
        classes = reader.read_values(target, "class")
    if not features:
        raise SchemaError(f"no column can be a feature; {_format_omissions(reader.left_out)}")
    schema = Schema(
        features, target, classes, missing_tokens=missing_tokens, inferred=True, **treatment
    )
    if warn:
        # two frames further up than this: Schema.infer and the convenience that it calls
        message = _describe_taken(schema)
        if reader.left_out:
            message += f". {_format_omissions(reader.left_out)}"
        warnings.warn(message, PrivacyWarning, stacklevel=4)
    return schema


def _describe_taken(schema: Schema) -> str:
    bounded_names = [feature.name for feature in schema.features if isinstance(feature, Numeric)]
    categorical_names = [
        feature.name for feature in schema.features if isinstance(feature, Categorical)
    ]
    taken_facts = [f"the bounds of {', '.join(bounded_names)}"] if bounded_names else []
    taken_facts += [f"the values of {', '.join(categorical_names)}"] if categorical_names else []
    taken_facts += [f"the classes of {schema.target}"]
    return (
        f"taken from the data: {'; '.join(taken_facts)}. They may give people away: before "
        "anything private is made of this schema, replace them by what was known without the data"
    )


def _format_omissions(left_out: dict[str, str]) -> str:
    """Say which columns are left out, and why."""
    reasons = [f"{name} ({reason})" for name, reason in left_out.items()]
    return f"left out: {', '.join(reasons)}"


class _Reader:
    """What a schema wants to know about columns, asked one at a time."""

    def __init__(self, table: Any, tokens: tuple[str, ...], numbers_as_text: bool) -> None:
        self.table, self.tokens, self.numbers_as_text = table, tokens, numbers_as_text
        self.left_out: dict[str, str] = {}

    def read_feature(self, name: str, categorical: bool) -> Feature | None:
        """The feature of a column; None where it is left out, with a reason."""
        column_type = self.table[name].type()
        is_text = not column_type.is_numeric()
        if column_type.is_date() or column_type.is_timestamp() or column_type.is_string():
            date_feature = None if categorical else self._read_date(name)
            if date_feature is not None:
                return date_feature
        if not categorical and (not is_text or (self.numbers_as_text and column_type.is_string())):
            numeric_feature = self._read_numeric(name, column_type.is_integer())
            if numeric_feature is not None or name in self.left_out:
                return numeric_feature
        if not categorical and self._leave_out_text(name):
            return None
        return Categorical(name, self.read_values(name, "value"))

    def _leave_out_text(self, name: str) -> bool:
        """Leave a column of text out, where it has too many values."""
        values = self.table.select(v=self.table[name])
        counts = fetch_arrow(values.agg(n=values.v.count(), d=values.v.nunique())).to_pylist()[0]
        if is_identifier(name, int(counts["n"]), int(counts["d"])):
            self.left_out[name] = IDENTIFIER_REASON
        elif counts["d"] > MAX_DISTINCT_VALUES:
            self.left_out[name] = TOO_MANY_VALUES_REASON.format(limit=MAX_DISTINCT_VALUES)
        return name in self.left_out

    def _read_numeric(self, name: str, is_integer: bool) -> Numeric | None:
        """Bounds of a column of numbers; None if it holds text that is not a number."""
        column_numbers, invalid_text = read_numbers(self.table, name, self.tokens)
        query_columns = {"x": column_numbers}
        if invalid_text is not None:
            query_columns["t"] = invalid_text
        rows = self.table.select(**query_columns)
        fraction_count = find_fractions(rows.x).count()
        query_aggregates = {"lower": rows.x.min(), "upper": rows.x.max(), "odd": fraction_count}
        query_aggregates |= {"rows": rows.x.count(), "distinct": rows.x.nunique()}
        if invalid_text is not None:
            query_aggregates["wrong"] = rows.t.count()
        query_result = fetch_arrow(rows.agg(**query_aggregates)).to_pylist()[0]
        if query_result.get("wrong"):
            return None
        lower, upper = query_result["lower"], query_result["upper"]
        if lower is None:
            raise _make_empty_error(name, "number")
        if lower == upper:
            upper = lower + max(1.0, math.ulp(lower))
        is_finite = math.isfinite(lower) and math.isfinite(upper)
        is_whole = is_finite and (is_integer or not query_result["odd"])
        row_counts = int(query_result["rows"]), int(query_result["distinct"])
        if is_whole and is_identifier(name, *row_counts, span=upper - lower):
            self.left_out[name] = IDENTIFIER_REASON
            return None
        return Numeric(name, lower, upper, integer=is_whole)

    def _read_date(self, name: str) -> Date | None:
        """Bounds of a column of dates; None if it holds something else, or too little."""
        rows = add_date_columns(self.table, [Date(name, date.min, date.max)], self.tokens)
        days, invalid_text = rows[name], rows[name + INVALID_SUFFIX]
        aggregates = {"lower": days.min(), "upper": days.max(), "wrong": invalid_text.count()}
        extremes = fetch_arrow(rows.agg(**aggregates)).to_pylist()[0]
        if extremes["wrong"] or extremes["lower"] is None:
            return None
        first, last = (date.min + timedelta(days=extremes[key]) for key in ("lower", "upper"))
        if first == last:
            first = min(first, date.max - timedelta(days=1))
            last = first + timedelta(days=1)
        return Date(name, first, last, by="month")

    def read_values(self, name: str, value_noun: str) -> list[Value]:
        """Sorted distinct values that are not missing; whole numbers where all are."""
        column = self.table[name]
        column_type = column.type()
        if column_type.is_floating() or column_type.is_decimal():
            column = column.cast("float64")
        elif not (column_type.is_integer() or column_type.is_boolean() or column_type.is_string()):
            column = column.cast("string")
        max_rows = MAX_DISTINCT_VALUES + len(self.tokens) + 3
        distinct_rows = fetch_arrow(self.table.select(v=column).distinct().limit(max_rows))
        values = [
            v for v in distinct_rows.column("v").to_pylist() if not is_missing(v, self.tokens)
        ]
        if not values:
            raise _make_empty_error(name, value_noun)
        if len(values) > MAX_DISTINCT_VALUES:
            raise SchemaError(
                f"{name}: more than {MAX_DISTINCT_VALUES} different values, which looks like an "
                "identifier; drop the column, or write the schema by hand"
            )
        if not column_type.is_boolean():
            values = _convert_whole_numbers(values)
        return sorted(values)


def _convert_whole_numbers(values: list[Any]) -> list[Any]:
    """Whole numbers instead of their spellings, where every spelling is the usual one."""
    try:
        whole_numbers = [int(value) for value in values]
    except ValueError:
        return values
    is_usual = [format_value(number) for number in whole_numbers] == [
        format_value(value) for value in values
    ]
    return whole_numbers if is_usual else values


def _make_empty_error(name: str, value_noun: str) -> SchemaError:
    return SchemaError(
        f"{name}: holds no {value_noun} at all; drop the column, or write the schema"
    )
