"""Columns of an in-memory X, and the schema inferred from them where none is given.

An inferred schema is not private: an estimator that uses it warns, and its guarantee is void.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from datetime import date, timedelta
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from discreet.errors import SchemaError
from discreet.schema.cells import _to_flat_array, is_missing, parse_numbers
from discreet.schema.schema import Categorical, Feature, Numeric, Schema, format_value
from discreet.tables.identifiers import is_identifier

__all__ = [
    "ColumnKind",
    "find_identifiers",
    "infer_schema",
    "list_columns",
    "refuse_unsupported_types",
    "resolve_column_kinds",
]

ColumnKind = Literal["categorical", "numeric"]


def list_columns(X: Any) -> list[Any]:
    """List the columns of an array or data frame, each with its own type."""
    if isinstance(X, np.ndarray):
        return [X[:, index] for index in range(X.shape[1])]
    if hasattr(X, "iloc"):
        return [X.iloc[:, index] for index in range(X.shape[1])]
    if hasattr(X, "get_columns"):  # polars
        return list(X.get_columns())
    return list(X.columns)  # Arrow


def resolve_column_kinds(
    columns: Sequence[Any], column_names: Sequence[str], choice: Any
) -> list[ColumnKind]:
    """Return the kind of each column: as chosen, or by its type."""
    if choice == "all":
        return ["categorical"] * len(columns)
    if choice == "none":
        return ["numeric"] * len(columns)
    if choice == "from_dtype":
        return [
            _infer_column_kind(column_name, column)
            for column_name, column in zip(column_names, columns, strict=True)
        ]
    if choice and isinstance(choice[0], bool):
        if len(choice) != len(columns):
            raise SchemaError(
                f"categorical_features is a mask of {len(choice)} entries, and X has "
                f"{len(columns)} columns; write one entry for each column"
            )
        choice = np.flatnonzero(choice).tolist()
    categorical_indices: set[int] = set()
    for name_or_index in choice:
        if isinstance(name_or_index, str) and name_or_index not in column_names:
            raise SchemaError(
                f"categorical_features names {name_or_index!r}, which is not a column of X; it has "
                f"{', '.join(column_names)}"
            )
        column_index = (
            list(column_names).index(name_or_index)
            if isinstance(name_or_index, str)
            else int(name_or_index)
        )
        if not -len(columns) <= column_index < len(columns):
            raise SchemaError(
                f"categorical_features has the index {name_or_index}, and X has {len(columns)} "
                f"columns; write an index from 0 to {len(columns) - 1}"
            )
        categorical_indices.add(column_index % len(columns))
    return [
        "categorical" if column_index in categorical_indices else "numeric"
        for column_index in range(len(columns))
    ]


def _infer_column_kind(column_name: str, column: Any) -> ColumnKind:
    dtype = getattr(column, "dtype", None)
    if dtype is not None and str(dtype).lower() in ("category", "categorical", "enum"):
        return "categorical"
    refuse_unsupported_types(column_name, column)
    values = _to_flat_array(column)
    if values.dtype.kind in "iuf":
        return "numeric"
    if values.dtype.kind == "O":
        present_values = [value for value in values if not is_missing(value)]
        if present_values and all(
            isinstance(present_value, (int, float, np.integer, np.floating))
            and not isinstance(present_value, (bool, np.bool_))
            for present_value in present_values
        ):
            return "numeric"
        for value in present_values:
            if not isinstance(value, (str, int, float, bool, np.generic)):
                raise TypeError(
                    f"{column_name}: argument must be a string or a number, not "
                    f"{type(value).__name__}"
                )
    return "categorical"


def refuse_unsupported_types(name: str, column: Any) -> None:
    """Refuse dates, complex numbers and lists; the error says what to do and shows no value.

    Parameters
    ----------
    name : str
    column : array, or column of a data frame
    """
    dtype = getattr(column, "dtype", None)
    dtype = getattr(column, "type", None) if dtype is None else dtype  # Arrow
    type_name = str(dtype).lower()
    type_code = (
        "V"
        if type_name.startswith(LIST_TYPE_PREFIXES)
        else "M"
        if type_name.startswith(TIME_TYPE_PREFIXES)
        else ""
    )
    type_code = dtype.kind if isinstance(dtype, np.dtype) else type_code
    if type_code == "O":
        values = np.asarray(column).ravel()
        odd_types = {
            value_type
            for value_type in set(map(type, values))
            if issubclass(value_type, UNSUPPORTED_TYPES)
        }
        odd_values = (
            value
            for value in values
            # nested values are never missing, and cannot be tested by comparison
            if type(value) in odd_types
            and (isinstance(value, NESTED_TYPES) or not is_missing(value))
        )
        odd_value = next(odd_values, None) if odd_types else None
        type_name = type(odd_value).__name__
        if isinstance(odd_value, (date, timedelta, np.datetime64, np.timedelta64)):
            type_code = "M"
        elif isinstance(odd_value, (complex, np.complexfloating)):
            type_code = "c"
        elif isinstance(odd_value, NESTED_TYPES):
            type_code = "V"
    if type_code == "V":
        raise SchemaError(
            f"{name}: its values are of type {type_name}; give each part a column of its own"
        )
    if type_code in ("m", "M"):
        raise SchemaError(
            f"{name}: dates ({type_name}) are not supported without a data frame and a schema that "
            "says how to read them, such as 2015-01-01..2026-12-31 by month; make numbers of "
            "durations"
        )
    if type_code == "c":
        raise SchemaError(
            f"{name}: Complex data not supported ({type_name}); make two columns of numbers, the "
            "real and the imaginary parts"
        )


NESTED_TYPES = (list, tuple, dict, set, np.ndarray)
"""Values that hold several values."""
UNSUPPORTED_TYPES = (
    date,
    timedelta,
    np.datetime64,
    np.timedelta64,
    complex,
    np.complexfloating,
    *NESTED_TYPES,
)
TIME_TYPE_PREFIXES = ("date", "time", "duration")
"""Beginnings of polars' and Arrow's names of date and time types."""
LIST_TYPE_PREFIXES = ("list", "large_list", "fixed_size_list", "struct", "map")
"""Beginnings of polars' and Arrow's names of nested types."""


def find_identifiers(columns: Mapping[str, Any], kinds: Sequence[ColumnKind]) -> list[str]:
    """Find the columns in which nearly every row has its own value, as in an identifier.

    Parameters
    ----------
    columns : mapping of name to column
    kinds : sequence of {"categorical", "numeric"}
    """
    import pandas as pd

    identifiers = []
    for (name, column), kind in zip(columns.items(), kinds, strict=True):
        span = None
        if kind == "numeric":
            numbers = parse_numbers(Numeric(name), column)
            values = numbers[np.isfinite(numbers)]
            if not values.size or (values != np.floor(values)).any():
                continue  # measured numbers
            span = float(values.max() - values.min())
        else:
            flat_column = _to_flat_array(column)
            values = flat_column[[not is_missing(value) for value in flat_column]]
        if is_identifier(name, len(values), len(pd.unique(values)), span):
            identifiers.append(name)
    return identifiers


def infer_schema(
    columns: Mapping[str, Any],
    kinds: Sequence[ColumnKind],
    classes: NDArray[Any],
    policies: Mapping[str, Any],
    *,
    is_bounded: bool,
) -> Schema:
    """Infer a schema from the columns.

    Parameters
    ----------
    columns : mapping of name to column
    kinds : sequence of {"categorical", "numeric"}
    classes : array
    policies : mapping
        ``missing`` and ``unseen``, as in :class:`~discreet.Schema`.
    is_bounded : bool
        Whether the smallest and largest number become public bounds, to which other values are
        clipped; otherwise numeric features stay unbounded.
    """
    features: list[Feature] = []
    for (name, column), kind in zip(columns.items(), kinds, strict=True):
        if kind == "categorical":
            features.append(Categorical(name, _list_categories(column)))
        else:
            features.append(_make_bounded_feature(name, column) if is_bounded else Numeric(name))
    target_name = "class"
    while target_name in columns:
        target_name += "_"
    return Schema(
        features,
        target_name,
        classes.tolist(),
        policies["missing"],
        "clip" if is_bounded else "error",
        policies["unseen"],
        inferred=True,
    )


def _make_bounded_feature(name: str, column: Any) -> Numeric:
    numbers = parse_numbers(Numeric(name), column)
    finite_numbers = numbers[np.isfinite(numbers)]
    if not finite_numbers.size:
        return Numeric(name, 0.0, 1.0)
    lower, upper = float(finite_numbers.min()), float(finite_numbers.max())
    if not lower < upper:
        lower, upper = lower - max(1.0, abs(lower)) / 2, upper + max(1.0, abs(upper)) / 2
    return Numeric(name, lower, upper)


def _list_categories(column: Any) -> list[Any]:
    """List distinct values, sorted; gaps in codes 0 … n-1 are filled, as in CategoricalNB."""
    import pandas as pd

    distinct_values = [
        value.item() if isinstance(value, np.generic) else value
        for value in pd.unique(_to_flat_array(column))
        if not is_missing(value)
    ]
    if not distinct_values:
        return ["(none)"]
    if all(
        not isinstance(category, bool)
        and (isinstance(category, int) or (isinstance(category, float) and category.is_integer()))
        for category in distinct_values
    ):
        lowest, highest = int(min(distinct_values)), int(max(distinct_values))
        if lowest >= 0 and highest < 2 * len(distinct_values):
            return list(range(highest + 1))
    return [
        sorted_category
        for _, sorted_category in sorted(
            {format_value(category): category for category in distinct_values}.items(),
            key=lambda item: _make_sort_key(item[1]),
        )
    ]


def _make_sort_key(value: Any) -> tuple[bool, float, str]:
    is_text = isinstance(value, str)
    try:
        return is_text, 0.0 if is_text else float(value), format_value(value)
    except OverflowError:  # a whole number of hundreds of digits
        return is_text, math.inf if value > 0 else -math.inf, format_value(value)
