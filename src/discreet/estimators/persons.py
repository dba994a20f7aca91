"""The column that says whose a row is: taken out of X, and never learnt from."""

from __future__ import annotations

from typing import Any

from discreet.errors import SchemaError
from discreet.schema.cells import format_missing_columns

__all__ = ["drop_column", "split_persons"]


def split_persons(X: Any, person: str | None, persons: Any) -> tuple[Any, Any]:
    """X without the column of ids, and the ids.

    Parameters
    ----------
    X : array or data frame
    person : str or None
        The column of ids.
    persons : array or None
        The ids, where they are not a column of X.
    """
    if person is None:
        return X, persons
    if persons is not None:
        raise SchemaError(
            f"persons and person={person!r} both say whose a row is; give the ids as a column of X "
            "that person names, or as persons=..."
        )
    if type(X).__name__ == "LazyFrame" and hasattr(X, "collect"):  # polars
        X = X.collect()
    column_names = _list_names(X)
    if column_names is None:
        raise SchemaError(
            f"person={person!r} names a column, and X has no names; give a data frame, or the ids "
            "as fit(X, y, persons=...)"
        )
    if person not in column_names:
        raise SchemaError(f"X {format_missing_columns([person], column_names)}")
    return drop_column(X, person), X[person]


def drop_column(X: Any, name: str | None) -> Any:
    """X without a column, where it has one of this name."""
    if name is None or name not in (_list_names(X) or ()):
        return X
    if hasattr(X, "iloc"):
        return X.drop(columns=[name])
    return X.drop(name) if hasattr(X, "get_columns") else X.drop_columns([name])


def _list_names(X: Any) -> list[str] | None:
    """Names of the columns of a frame; None of what has none."""
    if hasattr(X, "collect_schema"):
        return list(X.collect_schema().names())
    if not (hasattr(X, "columns") or hasattr(X, "column_names")):
        return None
    return [str(name) for name in (X.column_names if hasattr(X, "column_names") else X.columns)]
