"""Match the labels of ``fit`` to the classes of a schema, also where scikit-learn encoded them.

``VotingClassifier``, ``StackingClassifier``, ``BaggingClassifier`` and the probabilities of
``cross_val_predict`` replace labels by their numbers in sorted order, 0 to k - 1, before they fit.
An estimator with a schema accepts such numbers from scikit-learn if they are unambiguous; from
anybody else it refuses them, because nobody knows which order was meant.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.arrays import CellCodes
from discreet.errors import SchemaError
from discreet.estimators import sklearn_context
from discreet.schema.cells import encode_classes
from discreet.schema.row_errors import row_error_context
from discreet.schema.schema import Schema, format_value

__all__ = ["match_labels"]


def match_labels(schema: Schema, y: NDArray[Any]) -> tuple[NDArray[Any], CellCodes]:
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
        distinct_labels = np.unique(labels)
        class_texts = {format_value(value) for value in schema.classes}
        can_be_numbers = distinct_labels[0] >= 0 and distinct_labels[-1] < len(schema.classes)
        if can_be_numbers and not set(map(format_value, distinct_labels)) <= class_texts:
            return _decode_labels(schema, labels, distinct_labels, class_texts)
    class_labels = np.array(schema.classes)
    if y.dtype.kind in "biuf":
        with suppress(ValueError):  # "0" and 0 are the same class
            numbers = [float(format_value(class_label)) for class_label in schema.classes]
            class_labels = np.array(numbers).astype(y.dtype)
    with row_error_context(schema, {schema.target: y}):
        return class_labels, encode_classes(schema, y)


def _decode_labels(
    schema: Schema, y: NDArray[Any], distinct_labels: NDArray[Any], class_texts: set[str]
) -> tuple[NDArray[Any], CellCodes]:
    class_count = len(schema.classes)
    message_start = (
        f"{schema.target}: y holds {', '.join(map(str, distinct_labels[:5].tolist()))}"
        + ", …" * (len(distinct_labels) > 5)
    )
    if ambiguous_texts := class_texts & {str(number) for number in range(class_count)}:
        raise SchemaError(
            f"{message_start}, not all of them public classes ({_format_list(schema.classes)}); "
            "numbers of classes in sorted order are not taken either, because "
            f"{_format_list(sorted(ambiguous_texts))} would mean two things: give y as the classes "
            "are called, or name them in words"
        )
    if distinct_labels[-1] != class_count - 1:
        raise SchemaError(
            f"{message_start}, which could be the numbers of any {int(distinct_labels[-1]) + 1} of "
            f"the {class_count} public classes ({_format_list(schema.classes)}); give y as the "
            "classes are called, or folds in which every class occurs"
        )
    class_order = _sort_classes(schema)
    if class_order is None:
        raise SchemaError(
            f"{message_start}, and the order of the public classes "
            f"({_format_list(schema.classes)}) depends on whether they are numbers or text; give y "
            "as they are called"
        )
    if not sklearn_context.is_called_by_sklearn():  # a person may mean them in another order
        order_text = ", ".join(
            f"{rank} would be {schema.classes[class_index]}"
            for rank, class_index in enumerate(class_order)
        )
        raise SchemaError(
            f"{message_start}, which are not the public classes; as numbers in sorted order "
            f"{order_text}: give y as the classes are called"
        )
    class_ranks = np.empty(class_count, y.dtype)
    class_ranks[class_order] = np.arange(class_count)
    return class_ranks, np.asarray(class_order, np.int32)[y]


def _sort_classes(schema: Schema) -> list[int] | None:
    """Positions of the classes in sorted order; None where text and numbers differ in it."""
    class_labels = schema.classes
    by_text = sorted(
        range(len(class_labels)), key=lambda class_index: format_value(class_labels[class_index])
    )
    try:
        by_number = sorted(
            range(len(class_labels)),
            key=lambda class_index: float(format_value(class_labels[class_index])),
        )
    except ValueError:
        return by_text
    return by_text if by_text == by_number else None


def _format_list(values: Any) -> str:
    return ", ".join(map(format_value, values[:5])) + (", …" if len(values) > 5 else "")
