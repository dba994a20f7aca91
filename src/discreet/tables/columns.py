"""A column of any engine as its schema sees it: keys to group by, doubles, constants.

Three things keep the integers identical everywhere: constants are written as text and cast to
double (a decimal literal may be rounded twice), NaN becomes NULL before anything is compared, and
numbers are clipped to their public bounds before they become whole numbers, so that no cast can
overflow; whether they lay outside is known from their extremes.

Text is compared byte by byte, whatever the collation of its column: under another one, spellings
are merged, and one row decides how all rows of its group are spelled.
"""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable, Collection, Sequence
from functools import cache, partial, reduce
from itertools import count
from typing import Any

from discreet.errors import SchemaError
from discreet.schema.cells import MAX_NUMBER_LENGTH, NUMBER_PATTERN, Cells
from discreet.schema.schema import format_value
from discreet.tables.frames import make_unknown_text

__all__ = [
    "compare_bytewise",
    "find_fractions",
    "is_among",
    "make_double",
    "make_group_key",
    "read_numbers",
]

MAX_LIST_VALUES = 4
"""Values that DuckDB compares one by one; a list of more is a join, of 256 KiB and more."""
MAX_COMPARED_VALUES = 32
"""Values up to which comparing in short lists is quicker than a join."""

BYTEWISE_ENGINES = ("clickhouse", "datafusion", "polars", "trino")
"""Engines without collations; elsewhere text is stripped of them, or refused."""
BYTES_FUNCTIONS = {
    "duckdb": ("encode", "decode", ()),
    "pyspark": ("encode", "decode", ("UTF-8",)),
    "postgres": ("convert_to", "convert_from", ("UTF8",)),
}
"""Functions of engines from text to bytes, which have no collation, and back; the encoding."""

MIN_INFINITE_DECIMAL = str((1 << 1024) - (1 << 970))
"""From here on, decimal numbers are infinite as doubles (IEEE 754, ties to even)."""
MAX_ZERO_DECIMAL = f"{5**1075}e-1075"
"""2^-1075: up to here, decimal numbers are zero as doubles (ties to even)."""


def make_double(number: float) -> Any:
    """A constant that every engine reads as this very double."""
    import ibis

    return ibis.literal(repr(float(number))).cast("float64")


def make_group_key(column: Any, cells: Cells) -> Any:
    """A column to group by, with one key for every public cell: all spellings of a cell are folded.

    Without it, one more row with a rare spelling of a value would be one more group.
    """
    column_type, engine_name = column.type(), column.get_backend().name
    if column_type.is_boolean():
        return column
    if column_type.is_integer():
        is_signed = bool(column_type.is_signed_integer())
        public_numbers = _list_whole_numbers(cells, 1 << 63 if is_signed else 1 << 64)
        whole_key = _fold_unknown_numbers(
            column, cells, public_numbers, partial(_make_whole_literal, signed=is_signed)
        )
        # as text, because some drivers give doubles where another row has no number
        return whole_key if engine_name == "duckdb" else whole_key.cast("string")
    if column_type.is_floating() or column_type.is_decimal():
        return _make_float_key(_cast_to_doubles(column), cells)
    if column_type.is_binary() or column_type.is_nested():
        raise SchemaError(
            f"{cells.feature.name}: a column of type {column_type} has no spelling that all "
            "sources share; give it as text or numbers, such as by a view of the table"
        )
    return _make_text_key(compare_bytewise(column, cells.feature.name), cells)


def compare_bytewise(column: Any, name: str) -> Any:
    """A column as text that is compared byte by byte; of PostgreSQL's char(n), without padding.

    Parameters
    ----------
    column : ibis.Column
    name : str
        Of the column.
    """
    engine_name = column.get_backend().name
    if not column.type().is_string():
        column = column.cast("string")
    if engine_name in ("postgres", "sqlite"):
        # joined to nothing, enumerations and char(n) are text, and SQLite's text has no collation
        column = column.concat("")
    if engine_name in BYTES_FUNCTIONS:
        write, read, encoding = BYTES_FUNCTIONS[engine_name]
        to_bytes = _make_engine_function(write, "string", "binary", bool(encoding))
        to_text = _make_engine_function(read, "binary", "string", bool(encoding))
        return to_text(to_bytes(column, *encoding), *encoding)
    if engine_name in (*BYTEWISE_ENGINES, "sqlite"):
        return column
    raise SchemaError(
        f"{name}: {engine_name} compares text by collations, under which one row could decide how "
        "others are spelled; give the column as numbers, or the table as Parquet or CSV"
    )


@cache
def _make_engine_function(name: str, argument: str, result: str, encoded: bool) -> Any:
    """A function that the engine has, of one argument and perhaps an encoding."""
    import ibis

    def without_encoding(content: Any) -> Any:
        """Is the engine's."""

    def with_encoding(content: Any, encoding: Any) -> Any:
        """Is the engine's."""

    argument_types = (argument, "string") if encoded else (argument,)
    signature_function = with_encoding if encoded else without_encoding
    return ibis.udf.scalar.builtin(
        signature_function, name=name, signature=(argument_types, result)
    )


def _cast_to_doubles(column: Any) -> Any:
    """Numbers of any type as doubles."""
    if column.type().is_decimal() and column.get_backend().name == "postgres":
        return _cast_decimals_to_doubles(column)
    return column.cast("float64")


def _cast_decimals_to_doubles(number: Any) -> Any:
    """PostgreSQL's exact numbers as doubles; it refuses to cast what becomes infinite or zero."""
    import ibis

    number = number.cast("decimal")  # money is not compared with numbers
    infinite_bound, zero_bound = (
        ibis.literal(bound_text).cast("decimal")
        for bound_text in (MIN_INFINITE_DECIMAL, MAX_ZERO_DECIMAL)
    )
    # its numbers may be NaN, which is above all others
    return ibis.cases(
        (number == ibis.literal("NaN").cast("decimal"), ibis.null("float64")),
        (number >= infinite_bound, make_double(math.inf)),
        (number <= -infinite_bound, make_double(-math.inf)),
        (number.abs() <= zero_bound, make_double(0.0)),
        else_=number.cast("float64"),
    )


def is_absent_number(column: Any) -> Any:
    """Whether a double is NaN; SQLite has NULL in its place."""
    import ibis

    return ibis.literal(False) if column.get_backend().name == "sqlite" else column.isnan()


def _make_text_key(column: Any, cells: Cells) -> Any:
    import ibis

    public_texts = set(cells.spellings)
    truth_texts = sorted(public_texts & {"true", "false"})
    key_folds = []
    if truth_texts:
        lower_text = column.lower()
        is_truth_value = is_among(lower_text, truth_texts)
        if exact_texts := sorted(
            text for text in public_texts if text != text.lower() in truth_texts
        ):
            is_truth_value &= ~is_among(column, exact_texts)
        key_folds.append((is_truth_value, lower_text))
    if missing_texts := sorted({"", *cells.tokens} - public_texts):
        key_folds.append((is_among(column, missing_texts), ibis.null("string")))
    if cells.other_index is not None:
        unknown_text = ibis.literal(make_unknown_text(cells))
        key_folds.append((column.notnull() & ~is_among(column, sorted(public_texts)), unknown_text))
    return ibis.cases(*key_folds, else_=column) if key_folds else column


def _make_float_key(column: Any, cells: Cells) -> Any:
    import ibis

    zero_literal = make_double(0.0)  # -0.0 is another group than 0.0 on some engines
    column = ibis.cases(
        (is_absent_number(column), ibis.null("float64")),
        (column == zero_literal, zero_literal),
        else_=column,
    )
    public_numbers = [
        number for text in cells.spellings if (number := _parse_float(text)) is not None
    ]
    return _fold_unknown_numbers(column, cells, public_numbers, make_double)


def _fold_unknown_numbers(
    column: Any, cells: Cells, public_numbers: list[Any], literal: Callable[[Any], Any]
) -> Any:
    """Numbers as they are, or all that are not public as one that is not public either."""
    import ibis

    if cells.other_index is None:
        return column
    unknown_number = literal(next(number for number in count() if number not in public_numbers))
    if not public_numbers:
        return column.isnull().ifelse(ibis.null(column.type()), unknown_number)
    is_public = column.isnull() | column.isin([literal(number) for number in public_numbers])
    return is_public.ifelse(column, unknown_number)


def _list_whole_numbers(cells: Cells, below: int = 1 << 63) -> list[int]:
    """Public values that a whole number can spell."""
    whole_numbers = [
        int(text) for text in cells.spellings if re.fullmatch(r"0|-?[1-9]\d{0,19}", text)
    ]
    return [number for number in whole_numbers if (below - (1 << 64)) <= number < below]


def _make_whole_literal(whole: int, *, signed: bool) -> Any:
    """A constant of a type that holds it and all numbers of its column."""
    import ibis

    return ibis.literal(whole, "int64" if signed else "uint64")


def _parse_float(text: str) -> float | None:
    try:
        number = float(text)
    except ValueError:
        return None
    return number if math.isfinite(number) and format_value(number) == text else None


def is_among(column: Any, values: Collection[Any]) -> Any:
    """Whether a column is one of some values, compared in short lists.

    DuckDB makes a join of every longer list, and each takes memory for as long as the query runs.

    Parameters
    ----------
    column : ibis.Column
    values : collection
        Not empty.
    """
    listed_values = list(values)
    if len(listed_values) > MAX_COMPARED_VALUES:
        return column.isin(listed_values)
    return reduce(
        operator.or_,
        (
            column.isin(listed_values[start : start + MAX_LIST_VALUES])
            for start in range(0, len(listed_values), MAX_LIST_VALUES)
        ),
    )


def read_numbers(table: Any, name: str, tokens: Sequence[str]) -> tuple[Any, Any]:
    """A column of any type as doubles and, of a column of text, the text that is not a number.

    Parameters
    ----------
    table : ibis.Table
    name : str
        Of the column.
    tokens : sequence of str
        Spellings of missing, in columns of text. Whatever means missing becomes NULL.
    """
    import ibis

    column, invalid_text = table[name], None
    column_type = column.type()
    if column_type.is_string():
        bytewise_text = compare_bytewise(column, name)
        is_missing = bytewise_text.isnull() | is_among(bytewise_text, ["", *tokens])
        is_number = bytewise_text.re_search(NUMBER_PATTERN) & (
            bytewise_text.length() <= MAX_NUMBER_LENGTH
        )
        invalid_text = (is_missing | is_number).ifelse(ibis.null("string"), bytewise_text)
        column = _parse_numbers(
            (is_number & ~is_missing).ifelse(bytewise_text, ibis.null("string"))
        )
    elif column_type.is_boolean():
        column = column.cast("int32").cast("float64")
    elif column_type.is_numeric():
        column = _cast_to_doubles(column)
    else:
        raise SchemaError(f"{name}: a column of type {column_type} does not hold numbers")
    if column_type.is_floating():  # text that says NaN is NULL already
        column = is_absent_number(column).ifelse(ibis.null("float64"), column)
    return column, invalid_text


def _parse_numbers(text: Any) -> Any:
    """Doubles of text that is a number."""
    import ibis

    if text.get_backend().name == "sqlite":  # it reads "inf" as 0, and rounds the last digit
        return _make_python_parser()(text)
    lower_text = text.lower()
    null_text, is_negative = ibis.null("string"), lower_text.contains("-")
    is_named_number = lower_text.contains("n")  # inf and nan
    digit_text = is_named_number.ifelse(null_text, text)
    if text.get_backend().name == "postgres":
        number = _parse_postgres(digit_text)
    else:  # around a number, not every engine reads spaces
        strips_spaces = text.get_backend().name not in ("duckdb", "pyspark")
        number = (digit_text.strip() if strips_spaces else digit_text).try_cast("float64")
    infinite_number = is_negative.ifelse(make_double(-math.inf), make_double(math.inf))
    return ibis.cases(
        (lower_text.contains("inf"), infinite_number),
        (is_named_number, ibis.null("float64")),
        else_=number,
    )


def _parse_postgres(digits: Any) -> Any:
    """The same for digits on PostgreSQL, which casts no text that becomes infinite or zero."""
    import ibis

    is_zero = digits.re_search(r"^[^1-9]*([eE]|$)")
    is_extreme = digits.re_search(
        r"[eE][-+]?0*[1-9]\d{3,}"
    )  # beyond all doubles, in 600 characters
    is_small = digits.re_search(r"[eE]-")
    infinite_number = digits.re_search(r"^\s*-").ifelse(
        make_double(-math.inf), make_double(math.inf)
    )
    ordinary_digits = (is_zero | is_extreme).ifelse(ibis.null("string"), digits)
    return ibis.cases(
        (is_zero | (is_extreme & is_small), make_double(0.0)),
        (is_extreme, infinite_number),
        else_=_cast_decimals_to_doubles(ordinary_digits.cast("decimal")),
    )


@cache
def _make_python_parser() -> Any:
    import ibis

    def discreet_number(text: str) -> float:
        """A number as Python reads it."""
        return float(text)

    return ibis.udf.scalar.python(discreet_number, signature=(("string",), "float64"))


def find_fractions(number: Any) -> Any:
    """The number where it has a fraction, else NULL."""
    import ibis

    # beyond 2^53 all doubles are whole, and some do not fit the integer that floor gives
    exact_number = ibis.cases((number.abs() < make_double(2.0**53), number), else_=make_double(0.0))
    return (exact_number != exact_number.floor().cast("float64")).ifelse(
        number, ibis.null("float64")
    )
