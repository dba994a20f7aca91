"""A column of any engine as its schema sees it: keys to group by, doubles, bins, constants.

Three things keep the integers identical everywhere: constants are written as text and cast to
double (a decimal literal may be rounded twice), NaN becomes NULL before anything is compared, and
numbers are clipped to their public bounds before they become whole numbers, so that no cast can
overflow; whether they lay outside is known from their extremes.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from typing import Any

from discreet.encoding import Cells
from discreet.errors import SchemaError
from discreet.schema import text_of

__all__ = ["bin_of", "double", "key", "not_whole", "numbers"]

NUMBER = (
    r"^\s*[-+]?((\d+\.?\d*|\.\d+)([eE][-+]?[012]?\d?\d)?"
    r"|[iI][nN][fF]([iI][nN][iI][tT][yY])?|[nN][aA][nN])\s*$"
)
"""What PostgreSQL, which has no TRY_CAST, may cast."""


def double(number: float) -> Any:
    """A constant that every engine reads as this very double."""
    import ibis

    return ibis.literal(repr(float(number))).cast("float64")


def key(column: Any, cells: Cells) -> Any:
    """A column to group by, with one key for every public cell: all spellings of a cell are folded.

    Without it, one more row with a rare spelling of a value would be one more group.
    """
    kind = column.type()
    if kind.is_boolean():
        return column
    if kind.is_integer():
        return _known_only(column, cells, _whole_texts(cells), lambda whole: whole)
    if kind.is_floating() or kind.is_decimal():
        return _float_key(column.cast("float64"), cells)
    return _text_key(column if kind.is_string() else column.cast("string"), cells)


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
        stranger = "(other)" + "'" * max(map(len, [*texts, *cells.tokens]), default=0)
        folds.append((column.notnull() & ~column.isin(sorted(texts)), ibis.literal(stranger)))
    return ibis.cases(*folds, else_=column) if folds else column


def _float_key(column: Any, cells: Cells) -> Any:
    import ibis

    missing, zero = column.isnan(), double(0.0)  # -0.0 is another group than 0.0 on some engines
    column = ibis.cases((missing, ibis.null("float64")), (column == zero, zero), else_=column)
    numbers = [number for text in cells.spellings if (number := _float_or_none(text)) is not None]
    return _known_only(column, cells, numbers, double)


def _known_only(column: Any, cells: Cells, known: list[Any], literal: Callable[[Any], Any]) -> Any:
    """Numbers as they are, or all that are not public as one that is not public either."""
    import ibis

    if cells.other is None:
        return column
    stranger = literal(2 * max(map(abs, known), default=0) + 1)
    if not known:
        return column.isnull().ifelse(ibis.null(column.type()), stranger)
    kept = column.isnull() | column.isin([literal(number) for number in known])
    return kept.ifelse(column, stranger)


def _whole_texts(cells: Cells) -> list[int]:
    """Public values that a whole number can spell."""
    return [int(text) for text in cells.spellings if re.fullmatch(r"0|-?[1-9]\d{0,17}", text)]


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
        missing = column.isnull() | column.isin(["", *tokens])
        if table.get_backend().name == "postgres":  # it has no TRY_CAST
            guarded = column.re_search(NUMBER).ifelse(column, ibis.null("string"))
            number = guarded.cast("float64")
        else:
            number = column.try_cast("float64")
        # for ibis on Spark NaN is null, so it is asked for by name
        fine = missing | number.notnull() | number.isnan()
        wrong = fine.ifelse(ibis.null("string"), column)
        column = missing.ifelse(nothing, number)
    elif kind.is_boolean():
        column = column.cast("int32").cast("float64")
    elif kind.is_numeric():
        column = column.cast("float64")
    else:
        raise SchemaError(f"{name}: a column of type {kind} does not hold numbers")
    if kind.is_string() or kind.is_floating():
        column = column.isnan().ifelse(nothing, column)
    return column, wrong


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
    while inner:  # the edge between two neighbours tells them apart; then between two pairs, …
        joined = [
            ibis.ifelse(number < double(edge), below, above)
            for edge, below, above in zip(inner[::2], codes[::2], codes[1::2], strict=False)
        ]
        codes, inner = joined + codes[2 * len(joined) :], inner[1::2]
    return number.isnull().ifelse(ibis.literal(missing, "int32"), codes[0])
