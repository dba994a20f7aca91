"""A column of any engine as its schema sees it: keys to group by, doubles, bins, constants.

Three things keep the integers identical everywhere: constants are written as text and cast to
double (a decimal literal may be rounded twice), NaN becomes NULL before anything is compared, and
numbers are clipped to their public bounds before they become whole numbers, so that no cast can
overflow; whether they lay outside is known from their extremes.

Text is compared byte by byte, whatever the collation of its column: under another one, spellings
are merged, and one row decides how all rows of its group are spelled.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from functools import cache, partial
from itertools import count
from typing import Any

from discreet.encoding import NUMBER_LENGTH, NUMBER_TEXT, Cells
from discreet.errors import SchemaError
from discreet.schema import text_of
from discreet.tables.frames import stranger_text

__all__ = ["bin_of", "double", "key", "not_whole", "numbers"]

BYTEWISE = ("clickhouse", "datafusion", "polars", "trino")
"""Engines without collations; elsewhere text is stripped of them, or refused."""

LARGEST_DOUBLE = str((1 << 1024) - (1 << 970))
"""From here on, decimal numbers are infinite as doubles (IEEE 754, ties to even)."""
SMALLEST_DOUBLE = f"{5**1075}e-1075"
"""2^-1075: up to here, decimal numbers are zero as doubles (ties to even)."""


def double(number: float) -> Any:
    """A constant that every engine reads as this very double."""
    import ibis

    return ibis.literal(repr(float(number))).cast("float64")


def key(column: Any, cells: Cells) -> Any:
    """A column to group by, with one key for every public cell: all spellings of a cell are folded.

    Without it, one more row with a rare spelling of a value would be one more group.
    """
    kind, engine = column.type(), engine_of(column)
    if kind.is_boolean():
        return column
    if kind.is_integer():
        signed = bool(kind.is_signed_integer())
        public = _whole_texts(cells, 1 << 63 if signed else 1 << 64)
        whole = _known_only(column, cells, public, partial(_whole_literal, signed=signed))
        # as text, because some drivers give doubles where another row has no number
        return whole if engine == "duckdb" else whole.cast("string")
    if kind.is_floating() or kind.is_decimal():
        return _float_key(_doubles(column), cells)
    if kind.is_binary() or kind.is_nested():
        raise SchemaError(
            f"{cells.feature.name}: a column of type {kind} has no spelling that all sources "
            "share; give it as text or numbers, such as by a view of the table"
        )
    return _text_key(_bytewise(column, cells.feature.name), cells)


def engine_of(column: Any) -> str:
    """The name of the engine that a column is in."""
    return str(column.get_backend().name)


def _bytewise(column: Any, name: str) -> Any:
    """A column as text that is compared byte by byte; of PostgreSQL's char(n), without padding."""
    engine = engine_of(column)
    if not column.type().is_string():
        column = column.cast("string")
    if engine == "duckdb":
        return _through_bytes("decode", "encode", column)
    if engine == "pyspark":
        return _through_bytes("decode", "encode", column, "UTF-8")
    if engine == "postgres":  # joined to nothing, enumerations and char(n) are text
        return _through_bytes("convert_from", "convert_to", column.concat(""), "UTF8")
    if engine == "sqlite":  # what is joined has no collation
        return column.concat("")
    if engine in BYTEWISE:
        return column
    raise SchemaError(
        f"{name}: {engine} compares text by collations, under which one row could decide how "
        "others are spelled; give the column as numbers, or the table as Parquet or CSV"
    )


def _through_bytes(read: str, write: str, column: Any, *encoding: str) -> Any:
    """Text to bytes, which have no collation, and back."""
    to_bytes = _engine_function(write, "string", "binary", bool(encoding))
    to_text = _engine_function(read, "binary", "string", bool(encoding))
    return to_text(to_bytes(column, *encoding), *encoding)


@cache
def _engine_function(name: str, argument: str, result: str, encoded: bool) -> Any:
    """A function that the engine has, of one argument and perhaps an encoding."""
    import ibis

    def plain(content: Any) -> Any:
        """Is the engine's."""

    def with_encoding(content: Any, encoding: Any) -> Any:
        """Is the engine's."""

    kinds = (argument, "string") if encoded else (argument,)
    function = with_encoding if encoded else plain
    return ibis.udf.scalar.builtin(function, name=name, signature=(kinds, result))


def _doubles(column: Any) -> Any:
    """Numbers of any type as doubles."""
    if column.type().is_decimal() and engine_of(column) == "postgres":
        return _doubles_of_decimals(column)
    return column.cast("float64")


def _doubles_of_decimals(number: Any) -> Any:
    """PostgreSQL's exact numbers as doubles; it refuses to cast what becomes infinite or zero."""
    import ibis

    number = number.cast("decimal")  # money is not compared with numbers
    most, least = (ibis.literal(text).cast("decimal") for text in (LARGEST_DOUBLE, SMALLEST_DOUBLE))
    # its numbers may be NaN, which is above all others
    return ibis.cases(
        (number == ibis.literal("NaN").cast("decimal"), ibis.null("float64")),
        (number >= most, double(math.inf)),
        (number <= -most, double(-math.inf)),
        (number.abs() <= least, double(0.0)),
        else_=number.cast("float64"),
    )


def absent_number(column: Any) -> Any:
    """Whether a double is NaN; SQLite has NULL in its place."""
    import ibis

    return ibis.literal(False) if engine_of(column) == "sqlite" else column.isnan()


def _text_key(column: Any, cells: Cells) -> Any:
    import ibis

    texts = set(cells.spellings)
    truths = sorted(texts & {"true", "false"})
    folds = []
    if truths:
        small = column.lower()
        spelled = small.isin(truths)
        if exact_ones := sorted(text for text in texts if text != text.lower() in truths):
            spelled &= ~column.isin(exact_ones)
        folds.append((spelled, small))
    if missing := sorted({"", *cells.tokens} - texts):
        folds.append((column.isin(missing), ibis.null("string")))
    if cells.other is not None:
        stranger = ibis.literal(stranger_text(cells))
        folds.append((column.notnull() & ~column.isin(sorted(texts)), stranger))
    return ibis.cases(*folds, else_=column) if folds else column


def _float_key(column: Any, cells: Cells) -> Any:
    import ibis

    missing, zero = (
        absent_number(column),
        double(0.0),
    )  # -0.0 is another group than 0.0 on some engines
    column = ibis.cases((missing, ibis.null("float64")), (column == zero, zero), else_=column)
    numbers = [number for text in cells.spellings if (number := _float_or_none(text)) is not None]
    return _known_only(column, cells, numbers, double)


def _known_only(column: Any, cells: Cells, known: list[Any], literal: Callable[[Any], Any]) -> Any:
    """Numbers as they are, or all that are not public as one that is not public either."""
    import ibis

    if cells.other is None:
        return column
    stranger = literal(next(number for number in count() if number not in known))
    if not known:
        return column.isnull().ifelse(ibis.null(column.type()), stranger)
    kept = column.isnull() | column.isin([literal(number) for number in known])
    return kept.ifelse(column, stranger)


def _whole_texts(cells: Cells, below: int = 1 << 63) -> list[int]:
    """Public values that a whole number can spell."""
    whole = [int(text) for text in cells.spellings if re.fullmatch(r"0|-?[1-9]\d{0,19}", text)]
    return [number for number in whole if (below - (1 << 64)) <= number < below]


def _whole_literal(whole: int, *, signed: bool) -> Any:
    """A constant of a type that holds it and all numbers of its column."""
    import ibis

    return ibis.literal(whole, "int64" if signed else "uint64")


def _float_or_none(text: str) -> float | None:
    try:
        number = float(text)
    except ValueError:
        return None
    return number if math.isfinite(number) and text_of(number) == text else None


def numbers(table: Any, name: str, tokens: Sequence[str]) -> tuple[Any, Any]:
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

    column, wrong = table[name], None
    kind = column.type()
    nothing = ibis.null("float64")
    if kind.is_string():
        text = _bytewise(column, name)
        missing = text.isnull() | text.isin(["", *tokens])
        written = text.re_search(NUMBER_TEXT) & (text.length() <= NUMBER_LENGTH)
        wrong = (missing | written).ifelse(ibis.null("string"), text)
        column = _parse((written & ~missing).ifelse(text, ibis.null("string")))
    elif kind.is_boolean():
        column = column.cast("int32").cast("float64")
    elif kind.is_numeric():
        column = _doubles(column)
    else:
        raise SchemaError(f"{name}: a column of type {kind} does not hold numbers")
    if kind.is_string() or kind.is_floating():
        column = absent_number(column).ifelse(nothing, column)
    return column, wrong


def _parse(text: Any) -> Any:
    """Doubles of text that is a number."""
    import ibis

    if engine_of(text) == "sqlite":  # it reads "inf" as 0, and rounds the last digit
        return _python_function()(text)
    small = text.lower()
    nothing, negative = ibis.null("string"), small.contains("-")
    named = small.contains("n")  # inf and nan
    digits = named.ifelse(nothing, text)
    if engine_of(text) == "postgres":
        number = _parse_postgres(digits)
    else:  # around a number, not every engine reads spaces
        spaces = engine_of(text) not in ("duckdb", "pyspark")
        number = (digits.strip() if spaces else digits).try_cast("float64")
    infinite = negative.ifelse(double(-math.inf), double(math.inf))
    return ibis.cases(
        (small.contains("inf"), infinite), (named, ibis.null("float64")), else_=number
    )


def _parse_postgres(digits: Any) -> Any:
    """The same for digits on PostgreSQL, which casts no text that becomes infinite or zero."""
    import ibis

    zero = digits.re_search(r"^[^1-9]*([eE]|$)")
    far = digits.re_search(r"[eE][-+]?0*[1-9]\d{3,}")  # beyond all doubles, in 600 characters
    below = digits.re_search(r"[eE]-")
    infinite = digits.re_search(r"^\s*-").ifelse(double(-math.inf), double(math.inf))
    near = (zero | far).ifelse(ibis.null("string"), digits)
    return ibis.cases(
        (zero | (far & below), double(0.0)),
        (far, infinite),
        else_=_doubles_of_decimals(near.cast("decimal")),
    )


@cache
def _python_function() -> Any:
    import ibis

    def discreet_number(text: str) -> float:
        """A number as Python reads it."""
        return float(text)

    return ibis.udf.scalar.python(discreet_number, signature=(("string",), "float64"))


def not_whole(number: Any) -> Any:
    """The number where it has a fraction, else NULL."""
    import ibis

    # beyond 2^53 all doubles are whole, and some do not fit the integer that floor gives
    near = ibis.cases((number.abs() < double(2.0**53), number), else_=double(0.0))
    return (near != near.floor().cast("float64")).ifelse(number, ibis.null("float64"))


def bin_of(number: Any, inner: Sequence[float], missing: int) -> Any:
    """The number of inner edges that a number reaches, in log2 as many comparisons.

    Parameters
    ----------
    number : ibis column
    inner : sequence of float
        Increasing.
    missing : int
        What stands for NULL.
    """
    import ibis

    codes = [ibis.literal(code, "int32") for code in range(len(inner) + 1)]
    while inner:  # the edge between two neighbours separates them; then between two pairs, …
        joined = [
            ibis.ifelse(number < double(edge), below, above)
            for edge, below, above in zip(inner[::2], codes[::2], codes[1::2], strict=False)
        ]
        codes, inner = joined + codes[2 * len(joined) :], inner[1::2]
    return number.isnull().ifelse(ibis.literal(missing, "int32"), codes[0])
