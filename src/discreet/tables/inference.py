"""A schema taken from data, for convenience, with a warning that names everything taken.

Bounds, categories and classes are private facts about the rows they were read from. A schema
written by hand gives nothing away; this one may.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterable, Sequence
from typing import Any

from discreet.encoding import is_missing
from discreet.errors import PrivacyWarning, SchemaError
from discreet.schema import (
    Categorical,
    Feature,
    Numeric,
    Schema,
    Value,
    text_of,
)
from discreet.tables.columns import not_whole, numbers
from discreet.tables.engines import fetched, kind_of, open_rows, reading

__all__ = ["infer_schema"]

MOST_VALUES = 1000
"""A column with more distinct values looks like an identifier, and is refused."""


def infer_schema(
    table: Any,
    target: str,
    *,
    categorical: Iterable[str] = (),
    missing_tokens: Sequence[str] = (),
    warn: bool = True,
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
    **treatment
        ``missing``, ``outliers`` and ``unseen`` of the schema, handed on to it.

    Returns
    -------
    Schema
        Every feature is optional: whether values are missing is not learnt from the data.

    Warns
    -----
    PrivacyWarning
        Names every bound, category list and class list that now comes from the data.
    """
    if isinstance(missing_tokens, str) or isinstance(categorical, str):
        raise SchemaError("missing_tokens and categorical are lists; write ['…'] for one entry")
    text, chosen = kind_of(table) == "csv", set(categorical)
    with reading(table):
        rows = open_rows(table, [target, *chosen], others=True)
        reader = _Reader(rows, tuple(missing_tokens), numbers_as_text=text)
        features = [reader.feature(name, name in chosen) for name in rows.columns if name != target]
        classes = reader.values(target, "class")
    schema = Schema(
        features, target, classes, missing_tokens=missing_tokens, inferred=True, **treatment
    )
    if warn:
        warnings.warn(_taken(schema), PrivacyWarning, stacklevel=3)
    return schema


def _taken(schema: Schema) -> str:
    bounds = [feature.name for feature in schema.features if isinstance(feature, Numeric)]
    values = [feature.name for feature in schema.features if isinstance(feature, Categorical)]
    taken = [f"the bounds of {', '.join(bounds)}"] if bounds else []
    taken += [f"the values of {', '.join(values)}"] if values else []
    taken += [f"the classes of {schema.target}"]
    return (
        f"taken from the data: {'; '.join(taken)}. They may give people away: before anything "
        "private is made of this schema, replace them by what was known without the data"
    )


class _Reader:
    """What a schema wants to know about columns, asked one at a time."""

    def __init__(self, table: Any, tokens: tuple[str, ...], numbers_as_text: bool) -> None:
        self.table, self.tokens, self.numbers_as_text = table, tokens, numbers_as_text

    def feature(self, name: str, categorical: bool) -> Feature:
        kind = self.table[name].type()
        text = not kind.is_numeric()
        if not categorical and (not text or (self.numbers_as_text and kind.is_string())):
            found = self._numeric(name, kind.is_integer())
            if found is not None:
                return found
        return Categorical(name, self.values(name, "value"))

    def _numeric(self, name: str, whole: bool) -> Numeric | None:
        """Bounds of a column of numbers; None if it holds text that is not a number."""
        x, wrong = numbers(self.table, name, self.tokens)
        columns = {"x": x} if wrong is None else {"x": x, "t": wrong}
        rows = self.table.select(**columns)
        odd = not_whole(rows.x).count()
        wanted = {"lower": rows.x.min(), "upper": rows.x.max(), "odd": odd}
        if wrong is not None:
            wanted["wrong"] = rows.t.count()
        found = fetched(rows.agg(**wanted)).to_pylist()[0]
        if found.get("wrong"):
            return None
        lower, upper = found["lower"], found["upper"]
        if lower is None:
            raise _empty(name, "number")
        if lower == upper:
            upper = lower + max(1.0, math.ulp(lower))
        finite = math.isfinite(lower) and math.isfinite(upper)
        return Numeric(name, lower, upper, integer=finite and (whole or not found["odd"]))

    def values(self, name: str, what: str) -> list[Value]:
        """Sorted distinct values that are not missing; whole numbers where all are."""
        column = self.table[name]
        kind = column.type()
        if kind.is_floating() or kind.is_decimal():
            column = column.cast("float64")
        elif not (kind.is_integer() or kind.is_boolean() or kind.is_string()):
            column = column.cast("string")
        most = MOST_VALUES + len(self.tokens) + 3
        distinct = fetched(self.table.select(v=column).distinct().limit(most))
        values = [v for v in distinct.column("v").to_pylist() if not is_missing(v, self.tokens)]
        if not values:
            raise _empty(name, what)
        if len(values) > MOST_VALUES:
            raise SchemaError(
                f"{name}: more than {MOST_VALUES} different values, which looks like an "
                "identifier; drop the column, or write the schema by hand"
            )
        if not kind.is_boolean():
            values = _whole_numbers(values)
        return sorted(values)


def _whole_numbers(values: list[Any]) -> list[Any]:
    """Whole numbers instead of their spellings, where every spelling is the usual one."""
    try:
        whole = [int(value) for value in values]
    except ValueError:
        return values
    usual = [text_of(one) for one in whole] == [text_of(value) for value in values]
    return whole if usual else values


def _empty(name: str, what: str) -> SchemaError:
    return SchemaError(f"{name}: holds no {what} at all; drop the column, or write the schema")
