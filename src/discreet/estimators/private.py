"""What the estimators with a promise share: one look at the data, and a warning for every leak."""

from __future__ import annotations

import math
import warnings
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from discreet.errors import PrivacyWarning, RefusedError, SchemaError
from discreet.estimators.base import Given, NaiveBayesEstimator, Rows
from discreet.estimators.columns import ColumnKind, schema_of
from discreet.model import NaiveBayesModel
from discreet.privacy import Guarantee, rounded_up
from discreet.schema import Numeric, Schema
from discreet.statistics import Statistics

__all__ = ["PrivateEstimator", "check_bins", "kept", "two_classes"]


class PrivateEstimator(NaiveBayesEstimator, ABC):
    """An estimator that promises something to the people in the data."""

    _once: ClassVar[str]
    """Why there is no ``partial_fit``, and what to do instead."""

    random_state: Any

    def fit(self, X: Any, y: Any) -> Self:
        """Learn from records and their classes, one row per person.

        Parameters
        ----------
        X : array or data frame of shape (n_samples, n_features)
        y : array of shape (n_samples,)

        Returns
        -------
        self
        """
        return self._fit(X, y)

    def _fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        given, earlier = self._begin()
        rows = self._read(X, y, given, sample_weight)
        if given["schema"] is None and not self._exact:
            warnings.warn(
                "no schema was given: bounds, categories and classes were taken from the data and "
                f"are not protected by epsilon; write {type(self).__name__}(schema=...)",
                PrivacyWarning,
                stacklevel=3,
            )
        return self._end(rows.schema, rows.classes, self._train(rows, given), earlier)

    def _begin(self) -> tuple[Given, Guarantee | None]:
        """Check the parameters and forget the earlier fit, but for its promise."""
        given = self._checked()
        earlier: Guarantee | None = getattr(self, "guarantee_", None)
        self._forget()
        return given, earlier

    def _end(
        self,
        schema: Schema,
        classes: NDArray[Any],
        found: Statistics | NaiveBayesModel,
        earlier: Guarantee | None,
    ) -> Self:
        if earlier is not None and earlier.private and found.guarantee.private:
            warnings.warn(
                "this estimator was fitted before: if any person is in both tables, the budgets "
                f"of both fits add up for them ({rounded_up(earlier.epsilon)} + "
                f"{rounded_up(found.guarantee.epsilon)})",
                PrivacyWarning,
                stacklevel=4,
            )
        return self._learnt(schema, classes, found)

    @abstractmethod
    def _train(self, rows: Rows, given: Given) -> Statistics | NaiveBayesModel:
        """How this trust model obtains its statistics; only a model where nobody sees them."""

    @property
    def _exact(self) -> bool:
        """Whether the parameters ask for no noise at all; safe for unchecked parameters."""
        epsilon = getattr(self, "epsilon", None)
        return isinstance(epsilon, (float, np.floating)) and bool(epsilon == math.inf)

    @property
    def partial_fit(self) -> Any:
        """Refused: every further look at the same people costs another epsilon."""
        raise RefusedError(f"{type(self).__name__} has no partial_fit: {self._once}")

    def _described(
        self,
        columns: Mapping[str, Any],
        kinds: list[ColumnKind],
        classes: NDArray[Any],
        given: Given,
    ) -> Schema:
        return schema_of(columns, kinds, classes, given, bounded=True)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.non_deterministic = not self._exact and self.random_state is None
        return tags


def kept(promise: Guarantee, rests: str) -> Guarantee:
    """The promise of a fit that plays all parties: what it rests on comes first."""
    if math.isinf(promise.epsilon):
        return promise
    return replace(promise, assumptions=(rests, *promise.assumptions))


def two_classes(schema: Schema) -> None:
    """Refuse a collection in which there is nothing to ask."""
    if len(schema.classes) < 2:
        raise SchemaError(
            f"{schema.target} has only one class, so there is nothing to ask anyone; name all "
            "classes in the schema"
        )


def check_bins(given: Given, schema: Schema) -> None:
    """Refuse bins of features that are not there, or are not numbers."""
    bins = given.get("bins")
    numeric = [feature.name for feature in schema.features if isinstance(feature, Numeric)]
    for name in bins if isinstance(bins, Mapping) else ():
        if name not in numeric:
            what = "not a number" if name in schema.names else "not a feature of the schema"
            raise SchemaError(
                f"bins: {name!r} is {what}; the numeric features are {', '.join(numeric) or 'none'}"
            )
