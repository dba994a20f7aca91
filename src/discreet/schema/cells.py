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
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import date, timedelta
from functools import cached_property
from itertools import pairwise
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.arrays import CellCodes, Floats, Integers
from discreet.errors import FormatError, SchemaError
from discreet.schema.bin_lookup import find_bins
from discreet.schema.dates import (
    MAX_HOUR,
    MIN_HOUR,
    Date,
    DatePart,
    compute_part,
    make_not_a_date_error,
    read_hour,
)
from discreet.schema.edge_labels import format_bin_labels
from discreet.schema.schema import (
    Categorical,
    Feature,
    Numeric,
    Schema,
    abbreviate_value,
    format_value,
)

__all__ = [
    "Bins",
    "Cells",
    "Grid",
    "apply_bounds",
    "build_cells",
    "compute_equal_width_edges",
    "compute_near_zero_cuts",
    "encode_classes",
    "format_missing_columns",
    "get_columns",
    "parse_hours",
    "parse_numbers",
    "resolve_bins",
    "respondent_error_context",
    "to_object_array",
]

Bins = int | Mapping[str, int | Sequence[float]]
"""Bins of numeric features: a number of equal-width bins, or by feature name that or cut points."""

MAX_BINS = 1 << 16
"""Largest number of equal-width bins of a feature."""

MAX_GRID_STEPS = 1 << 16
"""Most steps of a public grid; a power of two, so that each engine computes the same index."""

NEAR_ZERO_RATIO = 4
"""How many times as wide a bin near zero is as the next one towards zero."""
NEAR_ZERO_SPLITS = 5
"""Cut points in the bin next to zero; compared in docs/experiments/central.md."""

NON_NUMERIC_TYPES = (complex, np.complexfloating, np.datetime64, np.timedelta64, bytes, bytearray)
"""Types that are not numbers although Python or NumPy can convert them to float."""

NON_VALUE_TYPES = (list, tuple, dict, set, np.ndarray, bytes, bytearray, memoryview)
"""Types without a spelling that all sources share."""

NUMBER_PATTERN = (
    r"^[\t-\r ]*[-+]?(([0-9]+\.?[0-9]*|\.[0-9]+)([eE][-+]?[0-9]+)?"
    r"|[iI][nN][fF]([iI][nN][iI][tT][yY])?|[nN][aA][nN])[\t-\r ]*$"
)
"""Pattern of numbers for every client and engine; stricter than ``float``, which reads 1_000."""
MAX_NUMBER_LENGTH = 600
"""Largest number of characters of a number."""

_NUMBER_REGEX = re.compile(NUMBER_PATTERN.removesuffix("$") + r"\Z")


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


NUMBER_HINT = "if it means missing, list it in missing_tokens; numbers are written like 1234.5"
"""Hint of errors about text in a column of numbers."""


def _make_unseen_error(feature: Categorical, value: Any, unseen: str) -> SchemaError:
    listed_values = feature.values
    shown_values = ", ".join(map(str, listed_values[:8])) + (
        ", …" if len(listed_values) > 8 else ""
    )
    noun, way_out = "values", "add it to the schema, or set its unseen to 'other'"
    if unseen == "class":
        noun, way_out = "classes", "add it to the classes"
    return SchemaError(
        f"{feature.name}: {abbreviate_value(value)} is not one of the public {noun} "
        f"({shown_values}){_describe_near_value(value, listed_values)}{way_out}"
    )


def _describe_near_value(value: Any, listed_values: Sequence[Any]) -> str:
    """Say which listed value differs in case or blanks only, if any does."""
    if not isinstance(value, str):
        return "; "
    for listed_value in map(format_value, listed_values):
        if "".join(listed_value.split()).casefold() == "".join(value.split()).casefold():
            same_case = "".join(listed_value.split()) == "".join(value.split())
            same_blanks = listed_value.casefold() == value.casefold()
            difference = "blanks" if same_case else "case" if same_blanks else "case and blanks"
            return (
                f": {abbreviate_value(value)} differs from {abbreviate_value(listed_value)} only "
                f"in {difference}; write {abbreviate_value(listed_value)}, or "
            )
    return "; "


@contextmanager
def respondent_error_context() -> Iterator[None]:
    """Adapt errors to respondents: they can correct their answer, not the schema."""
    try:
        yield
    except SchemaError as error:
        raise SchemaError(f"{str(error).partition('; ')[0]}; correct the answer") from None


def _make_missing_error(name: str, unseen: str = "error") -> SchemaError:
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
    def from_feature(cls, feature: Numeric) -> Grid:
        """Make the grid of a feature: whole numbers if they fit, otherwise at most 65536 steps."""
        if not feature.is_bounded:
            raise SchemaError(
                f"{feature.name} has no public bounds, so it has no grid; "
                "give it the lower and upper bounds that you know"
            )
        bound_range = feature.upper - feature.lower
        mantissa, exponent = math.frexp(bound_range / MAX_GRID_STEPS)  # a logarithm would round
        step = math.ldexp(1.0, exponent - (mantissa == 0.5))
        if feature.integer:
            step = max(1.0, step)
        return cls(feature.lower, step, math.ceil(bound_range / step))

    def to_indices(self, values: Floats) -> Integers:
        """Return the nearest grid indices; not defined for missing values."""
        return np.floor((values - self.lower) / self.step + 0.5).astype(np.int64)


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
    value_count : int
        Number of proper cells, without other and missing.
    other_index, missing_index : int or None
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
    value_count: int = field(init=False, repr=False, compare=False)
    other_index: int | None = field(init=False, repr=False, compare=False)
    missing_index: int | None = field(init=False, repr=False, compare=False)
    size: int = field(init=False, repr=False, compare=False)
    spellings: dict[str, int] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        public_values = self.feature.values if isinstance(self.feature, Categorical) else ()
        value_count = (
            len(public_values) if isinstance(self.feature, Categorical) else len(self.edges) - 1
        )
        # what is not a date is always refused
        has_other = public_values and not isinstance(self.feature, DatePart)
        other_index = value_count if has_other and self.unseen == "other" else None
        cell_count = value_count + (other_index is not None) + self.feature.optional
        spellings = {format_value(value): cell for cell, value in enumerate(public_values)}
        for field_name, field_value in (
            ("value_count", value_count),
            ("other_index", other_index),
            ("missing_index", cell_count - 1 if self.feature.optional else None),
            ("size", cell_count),
            ("spellings", spellings),
        ):
            object.__setattr__(self, field_name, field_value)

    @classmethod
    def from_schema(cls, schema: Schema, feature_or_name: Feature | str, bins: Bins = 8) -> Cells:
        """Build the cells of a feature, or of the target by its name.

        Parameters
        ----------
        schema : Schema
        feature_or_name : Categorical, Numeric or str
            The feature or its name.
        bins : int or mapping
            Bins of a numeric feature.
        """
        tokens = schema.missing_tokens
        if feature_or_name == schema.target:
            target_feature = Categorical(schema.target, schema.classes, optional=False)
            return cls(target_feature, (), tokens, "class")
        feature = schema[feature_or_name] if isinstance(feature_or_name, str) else feature_or_name
        edges: tuple[float, ...] = ()
        if isinstance(feature, Numeric):
            feature_bins = resolve_bins(bins, feature.name)
            if isinstance(feature_bins, int):
                edges = compute_equal_width_edges(feature, feature_bins)
            else:
                cut_points = map(feature.read_bound, feature_bins)
                edges = (feature.lower, *cut_points, feature.upper + feature.integer)
                if not all(left_edge < right_edge for left_edge, right_edge in pairwise(edges)):
                    raise SchemaError(
                        f"{feature.name}: the cut points {list(edges[1:-1])} must increase "
                        f"strictly inside {_format_bounds(feature)}"
                    )
                if isinstance(feature, Date) and feature.align_cuts(edges[1:-1]) != [*edges[1:-1]]:
                    raise SchemaError(
                        f"{feature.name}: a cut point does not begin a {feature.by}; cut where one "
                        "begins, or cut the feature by day"
                    )
        return cls(feature, edges, tokens, schema.unseen, schema.outliers)

    @classmethod
    def from_edges(cls, schema: Schema, name: str, edges: list[float]) -> Cells:
        """Load the cells of a feature from the edges in a file; a categorical one has none."""
        feature = schema[name]
        if isinstance(feature, Categorical):
            return cls.from_schema(schema, feature)
        if len(edges) < 2 or not all(left < right for left, right in pairwise(edges)):
            raise FormatError(f"{name}: the edges of its bins do not increase")
        return cls(feature, tuple(edges), schema.missing_tokens, schema.unseen, schema.outliers)

    @cached_property
    def labels(self) -> tuple[str, ...]:
        """Labels of the cells for display."""
        if isinstance(self.feature, Categorical):
            value_labels = [format_value(value) for value in self.feature.values]
        else:
            value_labels = [
                self.feature.format_bin(low, high) for low, high in pairwise(self.edges)
            ]
        extra_labels = ["(other)"] * (self.other_index is not None) + [
            "(missing)"
        ] * self.feature.optional
        return tuple(value_labels + extra_labels)

    @cached_property
    def rounded_labels(self) -> tuple[str, ...]:
        """The labels with edges of bins as a person would write them; no answer is read by them."""
        if not isinstance(self.feature, Numeric) or isinstance(self.feature, Date):
            return self.labels
        bin_labels = format_bin_labels(self.edges, self.feature.integer)
        return (*bin_labels, *self.labels[len(bin_labels) :])

    def encode_value(self, value: Any) -> int:
        """Return the cell of one value, in any of its spellings."""
        if isinstance(value, NON_VALUE_TYPES):
            raise SchemaError(
                f"{self.feature.name}: a value is of type {type(value).__name__}; give text, "
                "numbers or true/false, and each part of a list a column of its own"
            )
        if isinstance(self.feature, (Numeric, DatePart)):
            return int(self.encode_column(np.array([value], dtype=object))[0])
        cell: int | None = None
        if isinstance(value, str) or not is_missing(value):
            with suppress(ValueError):  # Python writes no whole number of more than 4300 digits
                cell = self.spellings.get(format_value(value))
            if cell is None and isinstance(value, (bool, np.bool_)):
                cell = self.spellings.get(str(bool(value)), self.spellings.get(str(int(value))))
            if cell is None and isinstance(value, str) and value.lower() in ("true", "false"):
                cell = self.spellings.get(value.lower())
        if cell is None:
            is_absent = is_missing(value, self.tokens)
            cell = self.missing_index if is_absent else self.other_index
            if cell is None and is_absent:
                raise _make_missing_error(self.feature.name, self.unseen)
            if cell is None:
                raise _make_unseen_error(self.feature, value, self.unseen)
        return cell

    def encode_column(self, values: Any) -> CellCodes:
        """Return the cell of each value of a column; equal ones of a type are looked up once.

        A missing value must not change the type in which others are read: libraries convert
        integers to doubles when a value is missing.
        """
        if isinstance(self.feature, Numeric):
            return self.encode_numbers(
                parse_numbers(self.feature, values, self.tokens, self.outliers)
            )
        if isinstance(self.feature, DatePart):
            hours = parse_hours(self.feature, values, self.tokens)
            is_absent = np.isnan(hours)
            part_cells = compute_part(self.feature.by, np.where(is_absent, 0.0, hours))
            return np.where(is_absent, self.missing_index or 0, part_cells).astype(np.int32)
        dtype = getattr(values, "dtype", None)
        if str(dtype) == "Object" and hasattr(values, "to_arrow"):  # polars, values of any types
            return _encode_objects(to_object_array(values.to_list()), self.encode_value)
        if hasattr(values, "dictionary_encode"):
            return _encode_arrow(values, self.encode_value)
        if hasattr(values, "to_arrow"):  # polars
            return _encode_arrow(values.to_arrow(), self.encode_value)
        if hasattr(values, "cat") and hasattr(dtype, "categories"):  # pandas
            return _encode_categories(values, self.encode_value)
        if dtype is not None and not isinstance(dtype, np.dtype):  # other columns of pandas
            import pyarrow as pa

            try:
                return _encode_arrow(pa.array(values, from_pandas=True), self.encode_value)
            except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError):
                return _encode_objects(np.asarray(values, dtype=object), self.encode_value)
        column = _to_flat_array(values)
        encode_plain = _encode_objects if column.dtype.kind == "O" else _encode_distinct
        return encode_plain(column, self.encode_value)

    def encode_numbers(self, numbers: Floats) -> CellCodes:
        """Return the cell of each number that :func:`parse_numbers` gave.

        Parameters
        ----------
        numbers : array of float
            NaN where the value is missing.
        """
        cell_indices = find_bins(self.edges, numbers)
        if self.missing_index is not None:
            cell_indices[np.isnan(numbers)] = self.missing_index
        return cell_indices


def _encode_distinct(column: NDArray[Any], encode_value: Callable[[Any], int]) -> CellCodes:
    """Encode values of which equal ones share a spelling."""
    if column.dtype.kind in "iu" and column.size:
        column = np.ascontiguousarray(column)
        lowest, highest = int(column.min()), int(column.max())
        if highest - lowest < 1 << 12:  # small whole numbers need no hashing
            # beyond 2^63 both wrap around, and their difference is right again
            offsets = column.astype(np.int64) - column.min().astype(np.int64)
            present_offsets = np.flatnonzero(np.bincount(offsets, minlength=highest - lowest + 1))
            cell_by_offset = np.full(highest - lowest + 1, -1, dtype=np.int32)
            cell_by_offset[present_offsets] = [
                encode_value(int(value) + lowest) for value in present_offsets
            ]
            return np.asarray(cell_by_offset[offsets])
    import pandas as pd

    positions, distinct_values = pd.factorize(column, use_na_sentinel=True)
    has_missing = bool((positions < 0).any())
    cell_by_position = [encode_value(value) for value in distinct_values] + [
        encode_value(None) if has_missing else -1
    ]
    return np.asarray(np.array(cell_by_position, dtype=np.int32)[positions])


def _encode_objects(column: NDArray[Any], encode_value: Callable[[Any], int]) -> CellCodes:
    """Encode values of mixed types: 1, True and Decimal("1.0") are equal, but not the same."""
    value_types = set(map(type, column)) - {str, np.str_, type(None)}
    if not value_types or value_types in ({int}, {float}, {bool}):
        return _encode_distinct(column, encode_value)
    cell_by_spelling: dict[tuple[type, str | None], int] = {}
    cell_indices = np.empty(len(column), dtype=np.int32)
    for row, value in enumerate(column):
        try:
            value_text: str | None = format_value(value)
        except ValueError:  # Python writes no whole number of more than 4300 digits
            value_text = None
        spelling = type(value), value_text
        if (cell := cell_by_spelling.get(spelling)) is None:
            cell = cell_by_spelling[spelling] = encode_value(value)
        cell_indices[row] = cell
    return cell_indices


def _encode_categories(column: Any, encode_value: Callable[[Any], int]) -> CellCodes:
    """Encode a pandas categorical column; it may list categories that no row has."""
    positions = column.cat.codes.to_numpy()
    categories = to_object_array(column.cat.categories)
    cell_by_position = np.full(len(categories) + 1, -1, dtype=np.int32)
    for position in np.unique(positions):
        cell_by_position[position] = encode_value(None if position < 0 else categories[position])
    return np.asarray(cell_by_position[positions])


def _encode_arrow(column: Any, encode_value: Callable[[Any], int]) -> CellCodes:
    """Encode an Arrow array without converting its texts to objects."""
    import pyarrow as pa

    if isinstance(column, pa.ChunkedArray):
        column = pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([])
    if pa.types.is_dictionary(column.type):  # it may list values that no row has
        column = column.dictionary_decode()
    try:
        encoded_column = column.dictionary_encode(null_encoding="encode")
    except pa.ArrowNotImplementedError:  # such as unions, whose values have several types
        return _encode_objects(to_object_array(column.to_pylist()), encode_value)
    cell_by_code = np.array(
        [encode_value(value) for value in encoded_column.dictionary.to_pylist()], dtype=np.int32
    )
    if not len(encoded_column):
        return cell_by_code
    return np.asarray(cell_by_code[encoded_column.indices.to_numpy(zero_copy_only=False)])


def to_object_array(values: Any) -> NDArray[Any]:
    """Return values as an array of objects, without the common type that NumPy would give them.

    >>> to_object_array([True, 1, "1"]).tolist()
    [True, 1, '1']
    """
    listed_values = list(values)
    object_array = np.empty(len(listed_values), dtype=object)
    for position, value in enumerate(listed_values):
        object_array[position] = value
    return object_array


def _to_flat_array(values: Any) -> Any:
    """Return a column as a one-dimensional NumPy array."""
    if hasattr(values, "to_numpy"):  # pandas, polars, Arrow
        try:
            return values.to_numpy()
        except NotImplementedError:  # unions of Arrow
            return to_object_array(values.to_pylist())
        except ValueError:  # an Arrow array that must be copied
            return values.to_numpy(zero_copy_only=False)
    is_single = isinstance(values, (str, bytes, Mapping)) or hasattr(values, "__array__")
    if hasattr(values, "__len__") and hasattr(values, "__getitem__") and not is_single:
        return to_object_array(values)  # lists, queues and ranges have no type in common
    array = np.asarray(values)
    return array.astype(object) if array.dtype.kind in "US" else array


def build_cells(schema: Schema, bins: Bins | None = None) -> dict[str, Cells]:
    """Build the cells of every feature; of numeric ones only if bins are given."""
    return {
        feature.name: Cells.from_schema(schema, feature, 8 if bins is None else bins)
        for feature in schema.features
        if bins is not None or isinstance(feature, Categorical)
    }


def encode_classes(schema: Schema, values: Any) -> CellCodes:
    """Encode the class column as class indices; a missing or unknown class is an error."""
    return Cells.from_schema(schema, schema.target).encode_column(values)


def parse_numbers(
    feature: Numeric, values: Any, tokens: Sequence[str] = (), outliers: str = "error"
) -> Floats:
    """Parse a column to float64 inside the public bounds, with NaN for missing values."""
    if isinstance(feature, Date):
        days = feature.count_days(parse_hours(feature, values, tokens))
        return apply_bounds(feature, days, outliers)
    column = _to_flat_array(values)
    numbers: Floats | None = None
    if column.dtype.kind in "biuf" or set(map(type, column)) <= {float, int, type(None)}:
        with suppress(OverflowError):  # of a whole number that is too large
            # in one piece, because a column of a matrix is slow to read
            numbers = np.ascontiguousarray(column, dtype=np.float64)
    if numbers is None:
        numbers = np.array(
            [_parse_number(feature, value, tokens) for value in column], dtype=np.float64
        )
    return apply_bounds(feature, numbers, outliers)


def _format_bounds(feature: Numeric) -> str:
    return f"[{feature.format_bound(feature.lower)}, {feature.format_bound(feature.upper)}]"


def apply_bounds(feature: Numeric, numbers: Floats, outliers: str) -> Floats:
    """Refuse numbers that do not fit a feature, or move them to its nearer bound.

    Parameters
    ----------
    feature : Numeric
    numbers : array of float
        NaN where the value is missing; of a date, days since its first.
    outliers : {"error", "clip"}
    """
    present_numbers = numbers
    if feature.optional and not feature.integer and np.isinf([feature.lower, feature.upper]).all():
        return numbers  # nothing to check here; infinity is refused where the numbers are used
    with np.errstate(over="ignore", invalid="ignore"):
        is_finite = bool(np.isfinite(numbers.sum()))
    if not is_finite and (is_absent := np.isnan(numbers)).any():
        if not feature.optional:
            raise _make_missing_error(feature.name)
        present_numbers = numbers[~is_absent]
    if not present_numbers.size:
        return numbers
    lowest, highest = present_numbers.min(), present_numbers.max()
    if lowest < feature.lower or highest > feature.upper:
        if outliers == "error":
            outside_value = lowest if lowest < feature.lower else highest
            raise SchemaError(
                f"{feature.name}: {feature.format_bound(outside_value)} is outside the public "
                f"bounds {_format_bounds(feature)}; widen the schema, or set its outliers to 'clip'"
            )
        numbers = np.clip(numbers, feature.lower, feature.upper)
    if (
        feature.integer
        and (fractional := present_numbers[present_numbers != np.floor(present_numbers)]).size
    ):
        raise SchemaError(
            f"{feature.name}: {fractional[0]:g} is not a whole number although its integer is "
            "true; round it, or set integer to false (in one line: 0..72 real)"
        )
    return numbers


def refuse_infinity(numbers: Floats, names: Sequence[str]) -> None:
    """Raise if a column of an unbounded feature holds infinity."""
    for name, number_column in zip(names, numbers.T, strict=True):
        if np.isinf(number_column).any():
            raise SchemaError(
                f"{name}: infinity is not allowed without bounds; give the feature bounds and "
                "set outliers to 'clip', or make the value missing"
            )


def _parse_number(feature: Numeric, value: Any, tokens: Sequence[str]) -> float:
    if is_missing(value, tokens):
        return math.nan
    is_foreign = isinstance(value, str) and (
        len(value) > MAX_NUMBER_LENGTH or _NUMBER_REGEX.match(value) is None
    )
    try:
        if not is_foreign and not isinstance(value, NON_NUMERIC_TYPES):
            return float(value)
    except OverflowError:
        raise SchemaError(
            f"{feature.name}: a whole number is too large, beyond 1e308; remove the row, or make "
            "the value missing"
        ) from None
    except (TypeError, ValueError):
        pass
    way_out = NUMBER_HINT
    if isinstance(value, (date, timedelta, np.datetime64, np.timedelta64)):
        way_out = "make the feature a date, such as 2015-01-01..2026-12-31 by month"
    raise SchemaError(f"{feature.name}: {abbreviate_value(value)} is not a number; {way_out}")


def parse_hours(feature: Date | DatePart, values: Any, tokens: Sequence[str] = ()) -> Floats:
    """Parse a column of dates to hours since 1970, with NaN for missing values.

    Parameters
    ----------
    feature : Date or DatePart
    values : column
        Of dates, points in time, or their text.
    tokens : sequence of str
        Spellings of missing.
    """
    column = _to_flat_array(values)
    if column.dtype.kind == "M":
        is_absent = np.isnat(column)
        hours: Floats = column.astype("datetime64[h]").astype(np.float64)
        hours[is_absent] = np.nan
        is_beyond = (hours < MIN_HOUR) | (hours > MAX_HOUR)
        if is_beyond.any():
            raise make_not_a_date_error(feature.name, str(column[is_beyond][0]))
    else:
        hour_by_text: dict[str, float] = {}
        hours = np.array(
            [
                hour_by_text[value]
                if isinstance(value, str) and value in hour_by_text
                else _parse_hour(feature, value, tokens, hour_by_text)
                for value in column
            ],
            dtype=np.float64,
        )
    if not feature.optional and np.isnan(hours).any():
        raise _make_missing_error(feature.name)
    return hours


def _parse_hour(
    feature: Date | DatePart, value: Any, tokens: Sequence[str], hour_by_text: dict[str, float]
) -> float:
    """The hour of a value; of text it is remembered."""
    if is_missing(value, tokens):
        hour: float | None = math.nan
    else:
        hour = read_hour(value)
        if hour is None and isinstance(value, str) and isinstance(feature, DatePart):
            hour = feature.read_name(value)
    if hour is None:
        raise make_not_a_date_error(feature.name, value)
    if isinstance(value, str):
        hour_by_text[value] = hour
    return hour


def resolve_bins(bins: Bins, name: str) -> int | Sequence[float]:
    """Return the bins of one feature: their number, or the cut points."""
    feature_bins = bins.get(name, 8) if isinstance(bins, Mapping) else bins
    return (
        int(feature_bins)
        if isinstance(feature_bins, Integral) and not isinstance(feature_bins, bool)
        else feature_bins
    )


def compute_equal_width_edges(feature: Numeric, bin_count: int) -> tuple[float, ...]:
    """Compute edges of equal-width bins on the public bounds; integers get integer edges."""
    if isinstance(bin_count, bool) or not 1 <= bin_count <= MAX_BINS:
        raise SchemaError(
            f"{feature.name}: {bin_count!r} bins; write a whole number from 1 to {MAX_BINS}"
        )
    if not feature.is_bounded:
        raise SchemaError(
            f"{feature.name} has no public bounds to cut into bins; "
            "give it the lower and upper bounds that you know"
        )
    if isinstance(feature, Date):
        return feature.compute_edges(bin_count)
    bound_range = feature.upper - feature.lower
    if feature.integer:
        # values lower … upper, each a bin of its own
        bin_count = min(bin_count, int(bound_range) + 1)
        inner_edges = [
            feature.lower + math.ceil(bin_number * (bound_range + 1) / bin_count)
            for bin_number in range(1, bin_count)
        ]
    else:
        inner_edges = [
            feature.lower + bin_number * bound_range / bin_count
            for bin_number in range(1, bin_count)
        ]
    # a whole number's bin ends before the next one
    return (feature.lower, *inner_edges, feature.upper + feature.integer)


def compute_near_zero_cuts(feature: Numeric, bin_width: float) -> list[float]:
    """Compute cut points that approach zero in geometric steps, starting at a bin width.

    >>> compute_near_zero_cuts(Numeric("income", 0, 4096), 1024)
    [256.0, 64.0, 16.0, 4.0, 1.0]
    >>> compute_near_zero_cuts(Numeric("length", 8, 72), 8)
    []
    """
    cut_points: list[float] = []
    if isinstance(feature, Date):  # its zero is the first day, where nothing crowds
        return cut_points
    for sign in (1, -1):
        near_bound = feature.lower if sign > 0 else -feature.upper
        far_bound = feature.upper if sign > 0 else -feature.lower
        if far_bound <= 0:
            continue
        first_width = bin_width + max(near_bound, 0.0)
        for split in range(1, NEAR_ZERO_SPLITS + 1):
            cut_size = first_width / NEAR_ZERO_RATIO**split
            cut_size = float(math.ceil(cut_size)) if feature.integer else cut_size
            if max(near_bound, 0.0) < cut_size < far_bound:
                cut_points.append(sign * cut_size)
    return cut_points


def format_missing_columns(missing_names: Sequence[str], present_names: Sequence[str]) -> str:
    """Format which columns are missing and present, with suggestions for misspelt names."""
    name_by_folded = {name.strip().casefold(): name for name in present_names}
    likely_names = [(name, name_by_folded.get(name.strip().casefold())) for name in missing_names]
    rename_hints = ", ".join(
        f"{present_name!r} to {name!r}" for name, present_name in likely_names if present_name
    )
    return (
        f"lacks the column{'s' * (len(missing_names) > 1)} {', '.join(missing_names)}; "
        f"it has {', '.join(present_names[:20])}{', …' * (len(present_names) > 20)}"
        + (f"; names must be the same to the letter: rename {rename_hints}" if rename_hints else "")
    )


def get_columns(rows: Any, names: Iterable[str]) -> dict[str, Any]:
    """Return columns by name; those of arrays by position.

    Parameters
    ----------
    rows : data frame, Arrow table, mapping of columns, list of records, or 2-d array
    names : iterable of str
        The columns to return.
    """
    wanted_names = list(names)
    if isinstance(rows, (list, tuple)) and rows and isinstance(rows[0], Mapping):
        rows = {
            name: np.array([row.get(name) for row in rows], dtype=object) for name in wanted_names
        }
    if hasattr(rows, "columns") or hasattr(rows, "column_names") or isinstance(rows, Mapping):
        present_names = (
            rows.keys()
            if isinstance(rows, Mapping)
            else (rows.column_names if hasattr(rows, "column_names") else rows.columns)
        )
        present_names = [str(name) for name in present_names]
        missing_names = [name for name in wanted_names if name not in present_names]
        if missing_names:
            raise SchemaError(f"the table {format_missing_columns(missing_names, present_names)}")
        return {name: rows[name] for name in wanted_names}
    array = rows if isinstance(rows, np.ndarray) else np.asarray(rows, dtype=object)
    if array.ndim != 2 or array.shape[1] != len(wanted_names):
        raise SchemaError(
            f"an array of shape {array.shape} does not fit the {len(wanted_names)} features of the "
            "schema; give one row per record, columns in the schema's order"
        )
    return {name: array[:, index] for index, name in enumerate(wanted_names)}
