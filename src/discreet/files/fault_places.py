"""Where in a document a fault is, in the words of its author: names instead of positions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

__all__ = ["describe_message", "describe_place", "select_faults"]

NAME_KEYS = ("name", "feature", "features", "questions", "id")
"""Keys that name an entry of a list, the first that is there."""
MAX_NAME_CHARS = 60
"""Characters of a name that a message repeats."""


def select_faults(errors: Sequence[Any], document: Any) -> list[Any]:
    """Select the errors of pydantic that are about the shape that was meant.

    Where a value may have one of several shapes, pydantic lists what is wrong with each. The shape
    with the fewest faults is the one that was meant; of several, the last.

    Parameters
    ----------
    errors : sequence of dict
        As ``ValidationError.errors()`` gives them.
    document : Any
        What was parsed.
    """
    faults_by_shape: dict[tuple[Any, ...], list[Any]] = {}
    for error in errors:
        faults_by_shape.setdefault(_find_shape(error, document), []).append(error)
    best_faults: dict[tuple[Any, ...], list[Any]] = {}
    for shape_place, faults in faults_by_shape.items():
        value_place = shape_place[:-1]
        if value_place not in best_faults or len(faults) <= len(best_faults[value_place]):
            best_faults[value_place] = faults
    return [fault for faults in best_faults.values() for fault in faults]


def _find_shape(error: Any, document: Any) -> tuple[Any, ...]:
    """The place of a value with several shapes, then the name of one; ("", None) for others."""
    location = error["loc"][:-1] if error["type"] == "missing" else error["loc"]
    for step, key in enumerate(location):
        if not _holds_key(document, key):
            return (*location[: step + 1],)
        document = document[key]
    return ("", None)


def _holds_key(document: Any, key: int | str) -> bool:
    if isinstance(document, (list, tuple)):
        return isinstance(key, int) and key < len(document)
    return isinstance(document, Mapping) and key in document


def describe_place(error: Any, document: Any) -> str:
    """Describe where an error is in a document; entries of lists by their names, if they have any.

    Parameters
    ----------
    error : dict
        One of ``ValidationError.errors()``; names of shapes in its place are left out.
    document : Any
        What was parsed.

    Examples
    --------
    >>> document = {"features": [{"name": "tenure", "kind": 3}], "cuts": [[1, "x"]]}
    >>> describe_place({"type": "literal_error", "loc": ("features", 0, "kind")}, document)
    'tenure.kind'
    >>> describe_place({"type": "int_type", "loc": ("cuts", 0, 1)}, document)
    'cuts, entry 1, entry 2'
    >>> describe_place({"type": "missing", "loc": ("features", 0, "lower")}, document)
    'tenure.lower'
    """
    place, location = "", error["loc"]
    for key in location:
        if not _holds_key(document, key):
            continue
        document = document[key]
        if isinstance(key, int):
            position = f"{place}, entry {key + 1}" if place else f"entry {key + 1}"
            place = _find_name(document) or position
        else:
            place = _join_key(place, key)
    if error["type"] == "missing":
        place = _join_key(place, str(location[-1]))
    return place or "the top"


def _join_key(place: str, key: str) -> str:
    """Add a key to a place: to a name with a dot, to a position with a comma."""
    separator = ", " if ", entry " in place else "."
    return f"{place}{separator}{key}" if place else key


def _find_name(entry: Any) -> str | None:
    """The name of an entry of a list: of what it is about, or its first text."""
    if isinstance(entry, list) and len(entry) > 1 and isinstance(entry[0], str):
        return entry[0][:MAX_NAME_CHARS] if not isinstance(entry[1], str) else None
    if not isinstance(entry, Mapping):
        return None
    for key in NAME_KEYS:
        name = entry.get(key)
        if isinstance(name, str) and name:
            return name[:MAX_NAME_CHARS]
        if isinstance(name, list) and name and all(isinstance(part, str) for part in name):
            return " & ".join(name)[:MAX_NAME_CHARS]
    return None


def describe_message(message: str) -> str:
    """Say what pydantic found in the words of the other messages.

    >>> describe_message("Input should be a valid number"), describe_message("Value error, no")
    ('it should be a valid number', 'no')
    """
    return message.removeprefix("Value error, ").replace("Input should", "it should", 1)
