"""Columns of an in-memory X: their kinds, and the schema that MixedNB makes of them.

Nothing here is private, and nothing here may be used by a private estimator without a warning.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from discreet.encoding import Cells, _flat, is_missing
from discreet.errors import SchemaError
from discreet.schema import Categorical, Feature, Numeric, Schema, text_of
from discreet.statistics import Statistics, Table

__all__ = ["Kind", "column_kinds", "columns_by_position", "grown", "schema_of"]

Kind = Literal["categorical", "numeric"]


def columns_by_position(X: Any) -> list[Any]:
    """The columns of an array or of any data frame, each with its own type."""
    if isinstance(X, np.ndarray):
        return [X[:, index] for index in range(X.shape[1])]
    if hasattr(X, "iloc"):
        return [X.iloc[:, index] for index in range(X.shape[1])]
    if hasattr(X, "get_columns"):  # polars
        return list(X.get_columns())
    return list(X.columns)  # Arrow


def column_kinds(columns: Sequence[Any], names: Sequence[str], choice: Any) -> list[Kind]:
    """Which columns are categorical: as chosen, or by their types."""
    if isinstance(choice, str):
        if choice == "all":
            return ["categorical"] * len(columns)
        if choice == "none":
            return ["numeric"] * len(columns)
        if choice == "from_dtype":
            return [_kind(column) for column in columns]
        raise SchemaError(
            f"categorical_features={choice!r}; write 'from_dtype', 'all', 'none', or a list of "
            "names, indices or true/false"
        )
    chosen = np.asarray(choice if choice is not None else [])
    mask = np.zeros(len(columns), dtype=bool)
    if chosen.dtype == bool:
        if chosen.shape != mask.shape:
            raise SchemaError(f"the mask has {chosen.size} entries for {len(columns)} columns")
        mask = chosen
    else:
        for one in chosen.tolist():
            if isinstance(one, str) and one not in names:
                raise SchemaError(f"categorical_features names {one!r}; X has {', '.join(names)}")
            index = list(names).index(one) if isinstance(one, str) else int(one)
            if not -len(columns) <= index < len(columns):
                raise SchemaError(f"categorical_features has index {one}, X {len(columns)} columns")
            mask[index] = True
    return ["categorical" if flag else "numeric" for flag in mask]


def _kind(column: Any) -> Kind:
    dtype = getattr(column, "dtype", None)
    if dtype is not None and str(dtype).lower() in ("category", "categorical", "enum"):
        return "categorical"
    values = _flat(column)
    if values.dtype.kind in "iufc":
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
                raise TypeError(f"argument must be a string or a number, not {value!r}")
    return "categorical"


def schema_of(
    columns: Mapping[str, Any],
    kinds: Sequence[Kind],
    classes: NDArray[Any],
    missing: Any,
    unseen: Any,
) -> Schema:
    """The schema that the columns themselves suggest; numeric features stay unbounded."""
    features: list[Feature] = []
    for (name, column), kind in zip(columns.items(), kinds, strict=True):
        features.append(
            Categorical(name, _domain(column)) if kind == "categorical" else Numeric(name)
        )
    target = "class"
    while target in columns:
        target += "_"
    return Schema(features, target, classes.tolist(), missing=missing, unseen=unseen, inferred=True)


def _domain(column: Any) -> list[Any]:
    """Distinct values, sorted; dense codes 0 … n-1 are completed, as CategoricalNB does."""
    import pandas as pd

    distinct = [
        value.item() if isinstance(value, np.generic) else value
        for value in pd.unique(pd.Series(_flat(column)))
        if not is_missing(value)
    ]
    if not distinct:
        return ["(none)"]
    if all(
        isinstance(v, (int, float)) and not isinstance(v, bool) and v == int(v) for v in distinct
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
    return text, 0.0 if text else float(value), text_of(value)


def grown(statistics: Statistics, batch: Schema) -> tuple[Statistics, Schema]:
    """Statistics and schema widened by the categories that a new batch brings."""
    before = statistics.schema
    features: list[Feature] = []
    for old, new in zip(before.features, batch.features, strict=True):
        if isinstance(old, Categorical) and isinstance(new, Categorical):
            known = {text_of(value) for value in old.values}
            extra = [value for value in new.values if text_of(value) not in known]
            features.append(
                replace(old)
                if not extra
                else Categorical(old.name, [*old.values, *extra], old.optional)
            )
        else:
            features.append(old)
    schema = Schema(
        features,
        before.target,
        before.classes,
        before.missing,
        before.outliers,
        before.unseen,
        before.missing_tokens,
        before.inferred,
    )
    if schema == before:
        return statistics, before
    tables = {}
    for name, table in statistics.tables.items():
        cells = Cells.of(schema, name)
        added = cells.values - table.cells.values
        position = table.cells.values
        counts = np.insert(table.counts, [position] * added, 0, axis=1)
        tables[name] = Table(cells, counts)
    return replace(statistics, schema=schema, tables=tables), schema
