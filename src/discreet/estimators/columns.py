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

from discreet.encoding import _flat, is_missing, numbers_of
from discreet.errors import SchemaError
from discreet.schema import Categorical, Feature, Numeric, Schema, text_of

__all__ = ["ColumnKind", "column_kinds", "columns_by_position", "refuse_odd_types", "schema_of"]

ColumnKind = Literal["categorical", "numeric"]


def columns_by_position(X: Any) -> list[Any]:
    """List the columns of an array or data frame, each with its own type."""
    if isinstance(X, np.ndarray):
        return [X[:, index] for index in range(X.shape[1])]
    if hasattr(X, "iloc"):
        return [X.iloc[:, index] for index in range(X.shape[1])]
    if hasattr(X, "get_columns"):  # polars
        return list(X.get_columns())
    return list(X.columns)  # Arrow


def column_kinds(columns: Sequence[Any], names: Sequence[str], choice: Any) -> list[ColumnKind]:
    """Return the kind of each column: as chosen, or by its type."""
    if choice == "all":
        return ["categorical"] * len(columns)
    if choice == "none":
        return ["numeric"] * len(columns)
    if choice == "from_dtype":
        return [_kind(name, column) for name, column in zip(names, columns, strict=True)]
    if choice and isinstance(choice[0], bool):
        if len(choice) != len(columns):
            raise SchemaError(
                f"categorical_features is a mask of {len(choice)} entries, and X has "
                f"{len(columns)} columns; write one entry for each column"
            )
        choice = np.flatnonzero(choice).tolist()
    chosen: set[int] = set()
    for one in choice:
        if isinstance(one, str) and one not in names:
            raise SchemaError(
                f"categorical_features names {one!r}, which is not a column of X; it has "
                f"{', '.join(names)}"
            )
        index = list(names).index(one) if isinstance(one, str) else int(one)
        if not -len(columns) <= index < len(columns):
            raise SchemaError(
                f"categorical_features has the index {one}, and X has {len(columns)} columns; "
                f"write an index from 0 to {len(columns) - 1}"
            )
        chosen.add(index % len(columns))
    return ["categorical" if index in chosen else "numeric" for index in range(len(columns))]


def _kind(name: str, column: Any) -> ColumnKind:
    dtype = getattr(column, "dtype", None)
    if dtype is not None and str(dtype).lower() in ("category", "categorical", "enum"):
        return "categorical"
    refuse_odd_types(name, column)
    values = _flat(column)
    if values.dtype.kind in "iuf":
        return "numeric"
    if values.dtype.kind == "O":
        present = [value for value in values if not is_missing(value)]
        if present and all(
            isinstance(v, (int, float, np.integer, np.floating))
            and not isinstance(v, (bool, np.bool_))
            for v in present
        ):
            return "numeric"
        for value in present:
            if not isinstance(value, (str, int, float, bool, np.generic)):
                raise TypeError(
                    f"{name}: argument must be a string or a number, not {type(value).__name__}"
                )
    return "categorical"


def refuse_odd_types(name: str, column: Any) -> None:
    """Refuse dates, complex numbers and lists; the error says what to do and shows no value.

    Parameters
    ----------
    name : str
    column : array, or column of a data frame
    """
    dtype = getattr(column, "dtype", None)
    dtype = getattr(column, "type", None) if dtype is None else dtype  # Arrow
    found = str(dtype).lower()
    kind = "V" if found.startswith(LISTS) else "M" if found.startswith(TIMES) else ""
    kind = dtype.kind if isinstance(dtype, np.dtype) else kind
    if kind == "O":
        values = np.asarray(column).ravel()
        odd = {kind for kind in set(map(type, values)) if issubclass(kind, ODD)}
        some = (value for value in values if type(value) in odd and not _absent(value))
        first = next(some, None) if odd else None
        found = type(first).__name__
        if isinstance(first, (date, timedelta, np.datetime64, np.timedelta64)):
            kind = "M"
        elif isinstance(first, (complex, np.complexfloating)):
            kind = "c"
        elif isinstance(first, NESTED):
            kind = "V"
    if kind == "V":
        raise SchemaError(
            f"{name}: its values are of type {found}; give each part a column of its own"
        )
    if kind in ("m", "M"):
        raise SchemaError(
            f"{name}: dates and durations ({found}) are not supported; turn them into numbers, "
            "such as days since a day that is public, or into text, such as the month"
        )
    if kind == "c":
        raise SchemaError(
            f"{name}: Complex data not supported ({found}); make two columns of numbers, the real "
            "and the imaginary parts"
        )


NESTED = (list, tuple, dict, set, np.ndarray)
ODD = (date, timedelta, np.datetime64, np.timedelta64, complex, np.complexfloating, *NESTED)
TIMES = ("date", "time", "duration")
LISTS = ("list", "large_list", "fixed_size_list", "struct", "map")
"""Prefixes of the type names of polars and Arrow."""


def _absent(value: Any) -> bool:
    """Whether a value is missing; nested values never are, and cannot be tested by comparison."""
    return not isinstance(value, NESTED) and is_missing(value)


def schema_of(
    columns: Mapping[str, Any],
    kinds: Sequence[ColumnKind],
    classes: NDArray[Any],
    policies: Mapping[str, Any],
    *,
    bounded: bool,
) -> Schema:
    """Infer a schema from the columns.

    Parameters
    ----------
    columns : mapping of name to column
    kinds : sequence of {"categorical", "numeric"}
    classes : array
    policies : mapping
        ``missing`` and ``unseen``, as in :class:`~discreet.Schema`.
    bounded : bool
        Whether the smallest and largest number become public bounds, to which other values are
        clipped; otherwise numeric features stay unbounded.
    """
    features: list[Feature] = []
    for (name, column), kind in zip(columns.items(), kinds, strict=True):
        if kind == "categorical":
            features.append(Categorical(name, _domain(column)))
        else:
            features.append(_with_bounds(name, column) if bounded else Numeric(name))
    target = "class"
    while target in columns:
        target += "_"
    return Schema(
        features,
        target,
        classes.tolist(),
        policies["missing"],
        "clip" if bounded else "error",
        policies["unseen"],
        inferred=True,
    )


def _with_bounds(name: str, column: Any) -> Numeric:
    numbers = numbers_of(Numeric(name), column)
    finite = numbers[np.isfinite(numbers)]
    if not finite.size:
        return Numeric(name, 0.0, 1.0)
    lower, upper = float(finite.min()), float(finite.max())
    if not lower < upper:
        lower, upper = lower - max(1.0, abs(lower)) / 2, upper + max(1.0, abs(upper)) / 2
    return Numeric(name, lower, upper)


def _domain(column: Any) -> list[Any]:
    """List distinct values, sorted; gaps in codes 0 … n-1 are filled, as in CategoricalNB."""
    import pandas as pd

    distinct = [
        value.item() if isinstance(value, np.generic) else value
        for value in pd.unique(_flat(column))
        if not is_missing(value)
    ]
    if not distinct:
        return ["(none)"]
    if all(
        not isinstance(v, bool)
        and (isinstance(v, int) or (isinstance(v, float) and v.is_integer()))
        for v in distinct
    ):
        low, high = int(min(distinct)), int(max(distinct))
        if low >= 0 and high < 2 * len(distinct):
            return list(range(high + 1))
    return [
        by_text
        for _, by_text in sorted(
            {text_of(v): v for v in distinct}.items(), key=lambda item: _order(item[1])
        )
    ]


def _order(value: Any) -> tuple[bool, float, str]:
    text = isinstance(value, str)
    try:
        return text, 0.0 if text else float(value), text_of(value)
    except OverflowError:  # a whole number of hundreds of digits
        return text, math.inf if value > 0 else -math.inf, text_of(value)
