"""A schema from the data itself, for estimators that are given none: convenient, not private."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.encoding import numbers_of
from discreet.errors import PrivacyWarning
from discreet.estimators.columns import Kind, schema_of
from discreet.schema import Feature, Numeric, Schema

__all__ = ["LEAKED", "bounded_schema", "warn_of_leak"]

LEAKED = "bounds, categories and classes were taken from the data and are not protected"


def bounded_schema(
    columns: Mapping[str, Any],
    kinds: Sequence[Kind],
    classes: NDArray[Any],
    missing: Any,
    unseen: Any,
) -> Schema:
    """Categories as they occur, the least and the largest number as bounds; others are clipped."""
    loose = schema_of(columns, kinds, classes, missing, unseen)
    features: list[Feature] = [
        _bounded(one, columns[one.name]) if isinstance(one, Numeric) else one
        for one in loose.features
    ]
    return Schema(features, loose.target, loose.classes, missing, "clip", unseen, inferred=True)


def warn_of_leak(estimator: str) -> None:
    """Say aloud that the promise does not cover what the schema was made of."""
    warnings.warn(
        "no schema was given: bounds, categories and classes were taken from the data and are not "
        f"protected by epsilon; write {estimator}(schema=...)",
        PrivacyWarning,
        stacklevel=4,
    )


def _bounded(feature: Numeric, column: Any) -> Numeric:
    numbers = numbers_of(feature, column)
    finite = numbers[np.isfinite(numbers)]
    if not finite.size:
        return Numeric(feature.name, 0.0, 1.0)
    lower, upper = float(finite.min()), float(finite.max())
    if not lower < upper:
        lower, upper = lower - max(1.0, abs(lower)) / 2, upper + max(1.0, abs(upper)) / 2
    return Numeric(feature.name, lower, upper)
