"""A schema from the data itself, for estimators that are given none: convenient, not private."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.encoding import class_codes, numbers_of
from discreet.errors import PrivacyWarning, SchemaError
from discreet.estimators.base import NaiveBayesEstimator
from discreet.estimators.columns import Kind, column_kinds, columns_by_position, schema_of
from discreet.schema import Feature, Numeric, Schema

__all__ = ["LEAKED", "PrivateEstimator", "bounded_schema", "check_bins", "warn_of_leak"]

LEAKED = "bounds, categories and classes were taken from the data and are not protected"


class PrivateEstimator(NaiveBayesEstimator):
    """What estimators with a promise share: the schema is given, or taken with a warning."""

    categorical_features: Any
    missing: Any
    unseen: Any

    def _public(
        self, X: Any, y: NDArray[Any], promised: bool
    ) -> tuple[Schema, dict[str, Any], NDArray[np.int32]]:
        """Schema, columns and class codes; the schema from the data only where none is given."""
        if self.schema is not None:
            if getattr(self, "projection", None) is None:  # which makes features of its own
                check_bins(getattr(self, "bins", None), self.schema)
            self.classes_ = self._own_classes(y)
            return self.schema, self._columns(X), class_codes(self.schema, y)
        columns = columns_by_position(X)
        names = getattr(self, "feature_names_in_", None)
        self.names_ = [f"x{i}" for i in range(len(columns))] if names is None else list(names)
        kinds = column_kinds(columns, self.names_, self.categorical_features)
        self.classes_, codes = np.unique(y, return_inverse=True)
        by_name = dict(zip(self.names_, columns, strict=True))
        if promised:
            warn_of_leak(type(self).__name__)
        schema = bounded_schema(by_name, kinds, self.classes_, self.missing, self.unseen)
        return schema, by_name, codes.astype(np.int32)


def check_bins(bins: Any, schema: Schema) -> None:
    """Refuse bins of features that are not there."""
    for name in bins if isinstance(bins, Mapping) else ():
        if name not in schema.names:
            raise SchemaError(f"bins: {name!r} is not a feature of the schema")


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
