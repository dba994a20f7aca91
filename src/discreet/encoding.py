"""Encoding of rows as cell indices: categories, public bins, "other" and "missing", and grids.

Every feature has a fixed public list of cells. A record always falls into exactly one of them,
so that neither a zero count nor an absent value gives anything away::

    categorical   value 0 … value D-1   [other]   [missing]
    numeric       bin 0   … bin B-1               [missing]

``other`` is there when the schema says ``unseen="other"``, ``missing`` when the feature is
optional.

The cell of a value is a function of that value alone: value to text to cell. It does not depend on
the other rows; the guarantees rely on it. So no step here may let one row decide in which type, or
in which of several equal spellings, the others are read.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import date, timedelta
from functools import cached_property
from itertools import pairwise
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.arrays import CellCodes, Floats, Integers
from discreet.errors import SchemaError
from discreet.schema import Categorical, Feature, Numeric, Schema, short, text_of

__all__ = [
    "Bins",
    "Cells",
    "Grid",
    "cells_of",
    "class_codes",
    "columns_of",
    "cut_of",
    "equal_width",
    "lacks",
    "numbers_of",
    "objects_of",
    "own_answer",
    "towards_zero",
]

Bins = int | Mapping[str, int | Sequence[float]]
"""Bins of numeric features: a number of equal-width bins, or by feature name that or cut points."""

MOST_BINS = 1 << 16
"""Largest number of equal-width bins of a feature."""

GRID_LEVELS = 1 << 16
FACTOR, STEPS = 4, 5
"""The bin next to zero is cut into STEPS + 1, each FACTOR times as wide as the next."""

NOT_NUMBERS = (complex, np.complexfloating, np.datetime64, np.timedelta64, bytes, bytearray)
"""Types that are not numbers although Python or NumPy can convert them to float."""

NOT_VALUES = (list, tuple, dict, set, np.ndarray, bytes, bytearray, memoryview)
"""Types without a spelling that all sources share."""

NUMBER_TEXT = (
    r"^[\t-\r ]*[-+]?(([0-9]+\.?[0-9]*|\.[0-9]+)([eE][-+]?[0-9]+)?"
    r"|[iI][nN][fF]([iI][nN][iI][tT][yY])?|[nN][aA][nN])[\t-\r ]*$"
)
"""Pattern of numbers for every client and engine; stricter than ``float``, which reads 1_000."""
NUMBER_LENGTH = 600
"""Largest number of characters of a number."""

_NUMBER_TEXT = re.compile(NUMBER_TEXT.removesuffix("$") + r"\Z")


def is_missing(value: Any, tokens: Sequence[str] = ()) -> bool:
    """Whether a value is None, NaN, NaT, pandas' NA, the empty string, or one of the tokens."""
    if value is None:
        return True
    if isinstance(value, str):
        return value == "" or value in tokens
    try:
        return bool(value != value)  # only the not-a-numbers differ from themselves
    except (TypeError, ArithmeticError):  # pandas.NA is no truth value, a signalling NaN signals
        return True


NUMBER = "if it means missing, list it in missing_tokens; numbers are written like 1234.5"
"""Hint of errors about text in a column of numbers."""


def _outside(name: str, value: Any, lower: float, upper: float) -> SchemaError:
    return SchemaError(
        f"{name}: {value:g} is outside the public bounds [{lower:g}, {upper:g}]; "
        "widen the schema, or set its outliers to 'clip'"
    )


def _unseen(feature: Categorical, value: Any, unseen: str) -> SchemaError:
    known = feature.values
    some = ", ".join(map(str, known[:8])) + (", …" if len(known) > 8 else "")
    what, way_out = "values", "add it to the schema, or set its unseen to 'other'"
    if unseen == "class":
        what, way_out = "classes", "add it to the classes"
    return SchemaError(
        f"{feature.name}: {short(value)} is not one of the public {what} ({some}); {way_out}"
    )


@contextmanager
def own_answer() -> Iterator[None]:
    """Adapt errors to respondents: they can correct their answer, not the schema."""
    try:
        yield
    except SchemaError as error:
        raise SchemaError(f"{str(error).partition('; ')[0]}; correct the answer") from None


def _absent(name: str, unseen: str = "error") -> SchemaError:
    if unseen == "class":
        return SchemaError(f"{name}: a row has no class; remove such rows")
    return SchemaError(
        f"{name}: a value is missing although the feature is not optional; "
        "set optional to true in the schema"
    )


@dataclass(frozen=True)
class Grid:
    """Public grid of a bounded numeric feature: x is near lower + step * k, k = 0 … levels.

    The step is a power of two (or 1 for whole numbers), so that every engine computes the same k.
    """

    lower: float
    step: float
    levels: int

    @classmethod
    def of(cls, feature: Numeric) -> Grid:
        """Make the grid of a feature: whole numbers if they fit, otherwise at most 65536 steps."""
        if not feature.bounded:
            raise SchemaError(
                f"{feature.name} has no public bounds, so it has no grid; "
                "give it the lower and upper bounds that you know"
            )
        span = feature.upper - feature.lower
        mantissa, power = math.frexp(span / GRID_LEVELS)  # a logarithm would round
        step = math.ldexp(1.0, power - (mantissa == 0.5))
        if feature.integer:
            step = max(1.0, step)
        return cls(feature.lower, step, math.ceil(span / step))

    def index(self, numbers: Floats) -> Integers:
        """Return the nearest grid indices; not defined for missing values."""
        return np.floor((numbers - self.lower) / self.step + 0.5).astype(np.int64)

    def value(self, index: NDArray[Any]) -> Floats:
        """Return the numbers at the grid indices."""
        return self.lower + self.step * np.asarray(index, dtype=np.float64)


@dataclass(frozen=True)
class Cells:
    """The public cells of one feature.

    Parameters
    ----------
    feature : Categorical or Numeric
    edges : tuple of float
        Of a numeric feature: lower bound, cut points, upper bound (of whole numbers, the one
        after it). A number belongs to the last
        bin whose left edge it reaches.
    tokens, outliers
        As in the schema.
    unseen : {"error", "other", "class"}
        As in the schema; "class" for the target, about which errors have other words.

    Attributes
    ----------
    values : int
        Number of proper cells, without other and missing.
    other, missing : int or None
        Index of the cell, if there is one; missing is always the last.
    size : int
        Number of all cells.
    spellings : mapping of str to int
        The cell of each public value of a categorical feature, as every engine spells them.
    """

    feature: Feature
    edges: tuple[float, ...] = ()
    tokens: tuple[str, ...] = ()
    unseen: str = "error"
    outliers: str = "error"
    values: int = field(init=False, repr=False, compare=False)
    other: int | None = field(init=False, repr=False, compare=False)
    missing: int | None = field(init=False, repr=False, compare=False)
    size: int = field(init=False, repr=False, compare=False)
    spellings: dict[str, int] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        public = self.feature.values if isinstance(self.feature, Categorical) else ()
        values = len(public) if isinstance(self.feature, Categorical) else len(self.edges) - 1
        other = values if public and self.unseen == "other" else None
        size = values + (other is not None) + self.feature.optional
        for name, value in (
            ("values", values),
            ("other", other),
            ("missing", size - 1 if self.feature.optional else None),
            ("size", size),
            ("spellings", {text_of(value): index for index, value in enumerate(public)}),
        ):
            object.__setattr__(self, name, value)

    @classmethod
    def of(cls, schema: Schema, which: Feature | str, bins: Bins = 8) -> Cells:
        """Build the cells of a feature, or of the target by its name.

        Parameters
        ----------
        schema : Schema
        which : Categorical, Numeric or str
            The feature or its name.
        bins : int or mapping
            Bins of a numeric feature.
        """
        tokens = schema.missing_tokens
        if which == schema.target:
            target = Categorical(schema.target, schema.classes, optional=False)
            return cls(target, (), tokens, "class")
        feature = schema[which] if isinstance(which, str) else which
        edges: tuple[float, ...] = ()
        if isinstance(feature, Numeric):
            cut = cut_of(bins, feature.name)
            if isinstance(cut, int):
                edges = equal_width(feature, cut)
            else:
                edges = (feature.lower, *map(float, cut), feature.upper + feature.integer)
                if not all(a < b for a, b in pairwise(edges)):
                    raise SchemaError(
                        f"{feature.name}: the cut points {list(edges[1:-1])} must increase "
                        f"strictly inside [{feature.lower:g}, {feature.upper:g}]"
                    )
        return cls(feature, edges, tokens, schema.unseen, schema.outliers)

    @cached_property
    def labels(self) -> tuple[str, ...]:
        """Labels of the cells for display."""
        if isinstance(self.feature, Categorical):
            proper = [text_of(value) for value in self.feature.values]
        else:
            pairs = pairwise(self.edges)
            whole = self.feature.integer
            proper = [_between(a, b - 1 if whole else b) for a, b in pairs]
        extra = ["(other)"] * (self.other is not None) + ["(missing)"] * self.feature.optional
        return tuple(proper + extra)

    def index(self, value: Any) -> int:
        """Return the cell of one value, in any of its spellings."""
        if isinstance(value, NOT_VALUES):
            raise SchemaError(
                f"{self.feature.name}: a value is of type {type(value).__name__}; give text, "
                "numbers or true/false, and each part of a list a column of its own"
            )
        if self.spellings and (isinstance(value, str) or not is_missing(value)):
            text = _text_or_none(value)
            found = None if text is None else self.spellings.get(text)
            if found is None and isinstance(value, (bool, np.bool_)):
                found = self.spellings.get(str(bool(value)), self.spellings.get(str(int(value))))
            if found is None and isinstance(value, str) and value.lower() in ("true", "false"):
                found = self.spellings.get(value.lower())
            if found is not None:
                return found
        if is_missing(value, self.tokens):
            if self.missing is None:
                raise _absent(self.feature.name, self.unseen)
            return self.missing
        if isinstance(self.feature, Numeric):
            return int(self.column(np.array([value], dtype=object))[0])
        if self.other is None:
            raise _unseen(self.feature, value, self.unseen)
        return self.other

    def column(self, values: Any) -> CellCodes:
        """Return the cell of each value of a column."""
        if isinstance(self.feature, Numeric):
            numbers = numbers_of(self.feature, values, self.tokens, self.outliers)
            codes = np.searchsorted(np.asarray(self.edges[1:-1]), numbers, side="right")
            if self.missing is not None:
                codes[np.isnan(numbers)] = self.missing
            return codes.astype(np.int32)
        return _look_up(values, self.index)


def _text_or_none(value: Any) -> str | None:
    try:
        return text_of(value)
    except ValueError:  # Python writes no whole number of more than 4300 digits
        return None


def _look_up(values: Any, index: Callable[[Any], int]) -> CellCodes:
    """Encode a column; equal values of the same type are looked up once.

    A missing value must not change the type in which others are read: libraries convert integers
    to doubles when a value is missing.
    """
    dtype = getattr(values, "dtype", None)
    if str(dtype) == "Object" and hasattr(values, "to_arrow"):  # polars, values of any types
        return _look_up_objects(objects_of(values.to_list()), index)
    if hasattr(values, "dictionary_encode"):
        return _look_up_arrow(values, index)
    if hasattr(values, "to_arrow"):  # polars
        return _look_up_arrow(values.to_arrow(), index)
    if hasattr(values, "cat") and hasattr(dtype, "categories"):  # pandas
        return _look_up_categories(values, index)
    if dtype is not None and not isinstance(dtype, np.dtype):  # other columns of pandas
        import pyarrow as pa

        try:
            return _look_up_arrow(pa.array(values, from_pandas=True), index)
        except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError):
            return _look_up_objects(np.asarray(values, dtype=object), index)
    column = _flat(values)
    if column.dtype.kind == "O":
        return _look_up_objects(column, index)
    if column.dtype.kind in "iu" and column.size:
        column = np.ascontiguousarray(column)
        low, high = int(column.min()), int(column.max())
        if high - low < 1 << 12:  # small whole numbers need no hashing
            # beyond 2^63 both wrap around, and their difference is right again
            offset = column.astype(np.int64) - column.min().astype(np.int64)
            found = np.flatnonzero(np.bincount(offset, minlength=high - low + 1))
            table = np.full(high - low + 1, -1, dtype=np.int32)
            table[found] = [index(int(value) + low) for value in found]
            return np.asarray(table[offset])
    return _look_up_distinct(column, index)


def _look_up_distinct(column: NDArray[Any], index: Callable[[Any], int]) -> CellCodes:
    """Encode values of which equal ones share a spelling."""
    import pandas as pd

    positions, distinct = pd.factorize(column, use_na_sentinel=True)
    absent = bool((positions < 0).any())
    table = [index(value) for value in distinct] + [index(None) if absent else -1]
    return np.asarray(np.array(table, dtype=np.int32)[positions])


def _look_up_objects(column: NDArray[Any], index: Callable[[Any], int]) -> CellCodes:
    """Encode values of mixed types: 1, True and Decimal("1.0") are equal, but not the same."""
    kinds = set(map(type, column)) - {str, np.str_, type(None)}
    if not kinds or kinds in ({int}, {float}, {bool}):
        return _look_up_distinct(column, index)
    known: dict[tuple[type, str | None], int] = {}
    codes = np.empty(len(column), dtype=np.int32)
    for row, value in enumerate(column):
        spelling = type(value), _text_or_none(value)
        if (cell := known.get(spelling)) is None:
            cell = known[spelling] = index(value)
        codes[row] = cell
    return codes


def _look_up_categories(column: Any, index: Callable[[Any], int]) -> CellCodes:
    """Encode a pandas categorical column; it may list categories that no row has."""
    positions = column.cat.codes.to_numpy()
    categories = objects_of(column.cat.categories)
    table = np.full(len(categories) + 1, -1, dtype=np.int32)
    for position in np.unique(positions):
        table[position] = index(None if position < 0 else categories[position])
    return np.asarray(table[positions])


def _look_up_arrow(column: Any, index: Callable[[Any], int]) -> CellCodes:
    """Encode an Arrow array without converting its texts to objects."""
    import pyarrow as pa

    if isinstance(column, pa.ChunkedArray):
        column = pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([])
    if pa.types.is_dictionary(column.type):  # it may list values that no row has
        column = column.dictionary_decode()
    try:
        encoded = column.dictionary_encode(null_encoding="encode")
    except pa.ArrowNotImplementedError:  # such as unions, whose values have several types
        return _look_up_objects(objects_of(column.to_pylist()), index)
    found = np.array([index(value) for value in encoded.dictionary.to_pylist()], dtype=np.int32)
    return found[encoded.indices.to_numpy(zero_copy_only=False)] if len(encoded) else found


def objects_of(values: Any) -> NDArray[Any]:
    """Return values as an array of objects, without the common type that NumPy would give them.

    >>> objects_of([True, 1, "1"]).tolist()
    [True, 1, '1']
    """
    column = list(values)
    array = np.empty(len(column), dtype=object)
    for row, value in enumerate(column):
        array[row] = value
    return array


def _flat(values: Any) -> Any:
    """Return a column as a one-dimensional NumPy array."""
    if hasattr(values, "to_numpy"):  # pandas, polars, Arrow
        try:
            return values.to_numpy()
        except NotImplementedError:  # unions of Arrow
            return objects_of(values.to_pylist())
        except ValueError:  # an Arrow array that must be copied
            return values.to_numpy(zero_copy_only=False)
    single = isinstance(values, (str, bytes, Mapping)) or hasattr(values, "__array__")
    if hasattr(values, "__len__") and hasattr(values, "__getitem__") and not single:
        return objects_of(values)  # lists, queues and ranges have no type in common
    array = np.asarray(values)
    return array.astype(object) if array.dtype.kind in "US" else array


def cells_of(schema: Schema, bins: Bins | None = None) -> dict[str, Cells]:
    """Build the cells of every feature; of numeric ones only if bins are given."""
    return {
        feature.name: Cells.of(schema, feature, 8 if bins is None else bins)
        for feature in schema.features
        if bins is not None or isinstance(feature, Categorical)
    }


def class_codes(schema: Schema, values: Any) -> CellCodes:
    """Encode the class column as class indices; a missing or unknown class is an error."""
    return Cells.of(schema, schema.target).column(values)


def numbers_of(
    feature: Numeric, values: Any, tokens: Sequence[str] = (), outliers: str = "error"
) -> Floats:
    """Parse a column to float64 inside the public bounds, with NaN for missing values."""
    column = _flat(values)
    if column.dtype.kind in "biuf":
        numbers: Floats = column.astype(np.float64, copy=False)
    elif (doubles := _as_doubles(column)) is not None:
        numbers = doubles
    else:
        numbers = np.array([_number(feature, value, tokens) for value in column], dtype=np.float64)
    present = numbers
    if feature.optional and not feature.integer and np.isinf([feature.lower, feature.upper]).all():
        return numbers  # nothing to check here; infinity is refused where the numbers are used
    with np.errstate(invalid="ignore"):
        finite = bool(np.isfinite(numbers.sum()))
    if not finite and (absent := np.isnan(numbers)).any():
        if not feature.optional:
            raise _absent(feature.name)
        present = numbers[~absent]
    if not present.size:
        return numbers
    low, high = present.min(), present.max()
    if low < feature.lower or high > feature.upper:
        if outliers == "error":
            worst = low if low < feature.lower else high
            raise _outside(feature.name, worst, feature.lower, feature.upper)
        numbers = np.clip(numbers, feature.lower, feature.upper)
    if feature.integer and (odd := present[present != np.floor(present)]).size:
        raise SchemaError(
            f"{feature.name}: {odd[0]:g} is not a whole number although its integer is true; "
            "round it, or set integer to false"
        )
    return numbers


def _as_doubles(column: NDArray[Any]) -> Floats | None:
    """Convert objects that are all int, float or None to doubles; None if they are not."""
    if not set(map(type, column)) <= {float, int, type(None)}:
        return None
    try:
        doubles: Floats = column.astype(np.float64)
    except OverflowError:
        return None
    return doubles


def refuse_infinity(numbers: Floats, names: Sequence[str]) -> None:
    """Raise if a column of an unbounded feature holds infinity."""
    for name, column in zip(names, numbers.T, strict=True):
        if np.isinf(column).any():
            raise SchemaError(
                f"{name}: infinity is not allowed without bounds; give the feature bounds and "
                "set outliers to 'clip', or make the value missing"
            )


def _number(feature: Numeric, value: Any, tokens: Sequence[str]) -> float:
    if is_missing(value, tokens):
        return math.nan
    foreign = isinstance(value, str) and (
        len(value) > NUMBER_LENGTH or _NUMBER_TEXT.match(value) is None
    )
    try:
        if not foreign and not isinstance(value, NOT_NUMBERS):
            return float(value)
    except OverflowError:
        raise SchemaError(
            f"{feature.name}: a whole number is too large, beyond 1e308; remove the row, or make "
            "the value missing"
        ) from None
    except (TypeError, ValueError):
        pass
    way_out = NUMBER
    if isinstance(value, (date, timedelta, np.datetime64, np.timedelta64)):
        way_out = "turn dates into numbers, such as days since a day that is public"
    raise SchemaError(f"{feature.name}: {short(value)} is not a number; {way_out}")


def cut_of(bins: Bins, name: str) -> int | Sequence[float]:
    """Return the bins of one feature: their number, or the cut points."""
    own = bins.get(name, 8) if isinstance(bins, Mapping) else bins
    return int(own) if isinstance(own, Integral) and not isinstance(own, bool) else own


def equal_width(feature: Numeric, bins: int) -> tuple[float, ...]:
    """Compute edges of equal-width bins on the public bounds; integers get integer edges."""
    if isinstance(bins, bool) or not 1 <= bins <= MOST_BINS:
        raise SchemaError(
            f"{feature.name}: {bins!r} bins; write a whole number from 1 to {MOST_BINS}"
        )
    if not feature.bounded:
        raise SchemaError(
            f"{feature.name} has no public bounds to cut into bins; "
            "give it the lower and upper bounds that you know"
        )
    span = feature.upper - feature.lower
    if feature.integer:
        bins = min(bins, int(span) + 1)  # values lower … upper, each a bin of its own
        inner = [feature.lower + math.ceil(i * (span + 1) / bins) for i in range(1, bins)]
    else:
        inner = [feature.lower + i * span / bins for i in range(1, bins)]
    # a whole number's bin ends before the next one
    return (feature.lower, *inner, feature.upper + feature.integer)


def towards_zero(feature: Numeric, width: float) -> list[float]:
    """Compute cut points that approach zero in geometric steps, starting at a bin width.

    >>> towards_zero(Numeric("income", 0, 4096), 1024)
    [256.0, 64.0, 16.0, 4.0, 1.0]
    >>> towards_zero(Numeric("length", 8, 72), 8)
    []
    """
    points: list[float] = []
    for sign in (1, -1):
        near = feature.lower if sign > 0 else -feature.upper
        far = feature.upper if sign > 0 else -feature.lower
        if far <= 0:
            continue
        start = width + max(near, 0.0)
        for step in range(1, STEPS + 1):
            size = start / FACTOR**step
            size = float(math.ceil(size)) if feature.integer else size
            if max(near, 0.0) < size < far:
                points.append(sign * size)
    return points


def _between(low: float, high: float) -> str:
    return f"{low:g}" if low == high else f"{low:g} to {high:g}"


def lacks(lacking: Sequence[str], have: Sequence[str]) -> str:
    """Format which columns are missing and present, with suggestions for misspelt names."""
    folded = {name.strip().casefold(): name for name in have}
    meant = [(name, folded.get(name.strip().casefold())) for name in lacking]
    renamed = ", ".join(f"{found!r} to {name!r}" for name, found in meant if found)
    return (
        f"lacks the column{'s' * (len(lacking) > 1)} {', '.join(lacking)}; "
        f"it has {', '.join(have[:20])}{', …' * (len(have) > 20)}"
        + (f"; names must be the same to the letter: rename {renamed}" if renamed else "")
    )


def columns_of(rows: Any, names: Iterable[str]) -> dict[str, Any]:
    """Return columns by name; those of arrays by position.

    Parameters
    ----------
    rows : data frame, Arrow table, mapping of columns, list of records, or 2-d array
    names : iterable of str
        The columns to return.
    """
    wanted = list(names)
    if isinstance(rows, (list, tuple)) and rows and isinstance(rows[0], Mapping):
        rows = {name: np.array([row.get(name) for row in rows], dtype=object) for name in wanted}
    if hasattr(rows, "columns") or hasattr(rows, "column_names") or isinstance(rows, Mapping):
        have = (
            rows.keys()
            if isinstance(rows, Mapping)
            else (rows.column_names if hasattr(rows, "column_names") else rows.columns)
        )
        have = [str(name) for name in have]
        lacking = [name for name in wanted if name not in have]
        if lacking:
            raise SchemaError(f"the table {lacks(lacking, have)}")
        return {name: rows[name] for name in wanted}
    array = rows if isinstance(rows, np.ndarray) else np.asarray(rows, dtype=object)
    if array.ndim != 2 or array.shape[1] != len(wanted):
        raise SchemaError(
            f"an array of shape {array.shape} does not fit the {len(wanted)} features of the "
            "schema; give one row per record, columns in the schema's order"
        )
    return {name: array[:, index] for index, name in enumerate(wanted)}
