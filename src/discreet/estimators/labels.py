"""Match the labels of ``fit`` to the classes of a schema, also where scikit-learn encoded them.

``VotingClassifier``, ``StackingClassifier``, ``BaggingClassifier`` and the probabilities of
``cross_val_predict`` replace labels by their numbers in sorted order, 0 to k - 1, before they fit.
An estimator with a schema accepts such numbers if they are unambiguous.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.arrays import CellCodes
from discreet.encoding import class_codes
from discreet.errors import SchemaError
from discreet.estimators import surroundings
from discreet.schema import Schema, text_of

__all__ = ["labelled"]


def labelled(schema: Schema, y: NDArray[Any]) -> tuple[NDArray[Any], CellCodes]:
    """The classes of the schema in the type of y, and the class index of each row.

    Parameters
    ----------
    schema : Schema
    y : array
        Labels, or their numbers in sorted order. If y holds objects, which have no common type, the
        classes are returned as in the schema.
    """
    labels = y
    if y.dtype.kind == "O" and set(map(type, y)) == {int}:
        labels = np.asarray(y.tolist())
    if labels.dtype.kind in "iu" and labels.size:
        found = np.unique(labels)
        known = {text_of(value) for value in schema.classes}
        if not {text_of(value) for value in found} <= known and _numbers(found, schema):
            return _decoded(schema, labels, found, known)
    return _own_classes(schema, y), class_codes(schema, y)


def _numbers(found: NDArray[Any], schema: Schema) -> bool:
    """Whether labels could be numbers of the classes."""
    return bool(found[0] >= 0 and found[-1] < len(schema.classes))


def _decoded(
    schema: Schema, y: NDArray[Any], found: NDArray[Any], known: set[str]
) -> tuple[NDArray[Any], CellCodes]:
    count = len(schema.classes)
    what = f"{schema.target}: y holds {', '.join(map(str, found[:5].tolist()))}" + ", …" * (
        len(found) > 5
    )
    if both := known & {str(number) for number in range(count)}:
        raise SchemaError(
            f"{what}, not all of them public classes ({_list(schema.classes)}); numbers of classes "
            f"in sorted order are not taken either, because {_list(sorted(both))} would mean two "
            "things: give y as the classes are called, or name them in words"
        )
    if found[-1] != count - 1:
        raise SchemaError(
            f"{what}, which could be the numbers of any {int(found[-1]) + 1} of the {count} public "
            f"classes ({_list(schema.classes)}); give y as the classes are called, or folds in "
            "which every class occurs"
        )
    order = _sorted(schema)
    if order is None:
        raise SchemaError(
            f"{what}, and the order of the public classes ({_list(schema.classes)}) depends on "
            "whether they are numbers or text; give y as they are called"
        )
    if not surroundings.inside():
        told = ", ".join(f"{i} is {schema.classes[at]}" for i, at in enumerate(order))
        surroundings.warn(f"{what}: taken for the classes in sorted order ({told})", UserWarning)
    ranks = np.empty(count, y.dtype)
    ranks[order] = np.arange(count)
    return ranks, np.asarray(order, np.int32)[y]


def _sorted(schema: Schema) -> list[int] | None:
    """Positions of the classes in sorted order; None where text and numbers differ in it."""
    values = schema.classes
    by_text = sorted(range(len(values)), key=lambda at: text_of(values[at]))
    try:
        by_number = sorted(range(len(values)), key=lambda at: float(text_of(values[at])))
    except ValueError:
        return by_text
    return by_text if by_text == by_number else None


def _own_classes(schema: Schema, y: NDArray[Any]) -> NDArray[Any]:
    """The schema's classes in the type of y: "0" and 0 are the same class."""
    if y.dtype.kind in "biuf":
        try:
            return np.array([float(text_of(c)) for c in schema.classes]).astype(y.dtype)
        except ValueError:
            pass
    return np.array(schema.classes)


def _list(values: Any) -> str:
    return ", ".join(map(text_of, values[:5])) + (", …" if len(values) > 5 else "")
