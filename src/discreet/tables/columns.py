"""A column of any engine as its schema sees it: keys to group by, doubles, bins, constants.

Three things keep the integers identical everywhere: constants are written as text and cast to
double (a decimal literal may be rounded twice), NaN becomes NULL before anything is compared, and
numbers are clipped to their public bounds before they become whole numbers, so that no cast can
overflow; whether they lay outside is known from their extremes.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import Any

from discreet.encoding import Cells
from discreet.errors import SchemaError

__all__ = ["Numbers", "bin_of", "exact", "folded", "key", "not_whole"]

NUMBER = (
    r"^\s*[-+]?((\d+\.?\d*|\.\d+)([eE][-+]?[012]?\d?\d)?"
    r"|[iI][nN][fF]([iI][nN][iI][tT][yY])?|[nN][aA][nN])\s*$"
)
"""What PostgreSQL, which has no TRY_CAST, may cast."""


def exact(number: float) -> Any:
    """A constant that every engine reads as this very double."""
    import ibis

    return ibis.literal(repr(float(number))).cast("float64")


def key(column: Any) -> Any:
    """A column to group by: text, whole numbers, doubles or booleans."""
    kind = column.type()
    if kind.is_string() or kind.is_integer() or kind.is_boolean():
        return column
    return column.cast("float64" if kind.is_floating() or kind.is_decimal() else "string")


def folded(column: Any, cells: Cells) -> Any:
    """The same, with all values that are not public turned into one that is not public either."""
    import ibis

    kind = column.type()
    texts = list(cells._index)
    kept = column.isnull()
    if kind.is_string():
        known: list[Any] = ["", *cells.tokens, *texts]
        stranger: Any = "(other)" + "'" * max(map(len, known))
    elif kind.is_integer():
        known = [int(text) for text in texts if re.fullmatch(r"-?\d{1,18}", text)]
        stranger = max(known, default=0) + 1
    elif kind.is_floating():
        numbers = [_float_or_none(text) for text in texts]
        finite = [number for number in numbers if number is not None]
        known = [exact(number) for number in finite]
        kept |= column.isnan()
        stranger = exact(2.0 * max(map(abs, finite), default=0.0) + 1.0)
    else:
        return column
    if known:
        kept |= column.isin(known)
    return ibis.ifelse(kept, column, stranger)


def _float_or_none(text: str) -> float | None:
    try:
        number = float(text)
    except ValueError:
        return None
    return number if math.isfinite(number) else None


class Numbers:
    """Columns of any type as doubles, with NULL for whatever means missing.

    Parameters
    ----------
    table : ibis.Table
    tokens : sequence of str
        Spellings of missing, in columns of text.
    """

    def __init__(self, table: Any, tokens: Sequence[str]) -> None:
        self.table, self.missing = table, ["", *tokens]
        self._guarded = table.get_backend().name == "postgres"

    def of(self, name: str) -> tuple[Any, Any]:
        """The numbers of a column and, of a column of text, the text that is no number."""
        import ibis

        column, wrong = self.table[name], None
        kind = column.type()
        nothing = ibis.null("float64")
        if kind.is_string():
            missing = column.isnull() | column.isin(self.missing)
            number = self._cast(column)
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

    def _cast(self, text: Any) -> Any:
        import ibis

        if self._guarded:
            return text.re_search(NUMBER).ifelse(text, ibis.null("string")).cast("float64")
        return text.try_cast("float64")


def not_whole(number: Any) -> Any:
    """The number where it has a fraction, else NULL."""
    import ibis

    # beyond 2^53 all doubles are whole, and some do not fit the integer that floor gives
    near = ibis.cases((number.abs() < exact(2.0**53), number), else_=exact(0.0))
    return (near != near.floor().cast("float64")).ifelse(number, ibis.null("float64"))


def bin_of(number: Any, inner: Sequence[float]) -> Any:
    """The number of inner edges that a number reaches, in log2 as many comparisons."""
    import ibis

    def among(low: int, high: int) -> Any:
        if low == high:
            return ibis.literal(low, "int32")
        middle = (low + high) // 2
        return ibis.ifelse(
            number < exact(inner[middle]), among(low, middle), among(middle + 1, high)
        )

    return number.isnull().ifelse(ibis.null("int32"), among(0, len(inner)))
