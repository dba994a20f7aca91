"""Schemas that several test modules share."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from discreet import Categorical, Numeric, Schema


def make_answer_schema(
    names: Iterable[str],
    values: Sequence[Any] = ("n", "y"),
    target: str = "c",
    classes: Sequence[Any] = ("n", "y"),
) -> Schema:
    """Features with the same values, which everyone has."""
    features = [Categorical(name, values, optional=False) for name in names]
    return Schema(features, target, classes)


LETTER = make_answer_schema("a", ["x", "y"], classes=["no", "yes"])
BITS = make_answer_schema("ab")
THREE_AND_TWO = Schema(
    [
        Categorical("a", ["p", "q", "r"], optional=False),
        Categorical("b", ["x", "y"], optional=False),
    ],
    "c",
    ["n", "y"],
)
FAR_FROM_ZERO = Schema(
    [Numeric("a", 100, 101), Categorical("b", ["x", "y"])], "class", ["no", "yes"], outliers="clip"
)
"""A small interval far from zero: what is scaled by the largest value shows there."""
SIZES = Schema(
    [Numeric("size", -5, 8), Categorical("colour", ["red", "blue", "green"]), Numeric("n", 0, 9)],
    "class",
    [0, 1],
    outliers="clip",
)
"""Of the people in ``populations.make_sizes``."""
