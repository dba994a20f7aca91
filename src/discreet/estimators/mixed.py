"""The classifier without a promise: mixed columns, exact counts.

>>> import numpy as np
>>> from discreet import MixedNB
>>> X = np.array([["red", 1.0], ["red", 1.5], ["blue", 4.0], ["blue", 4.5]], dtype=object)
>>> y = ["no", "no", "yes", "yes"]
>>> MixedNB().fit(X, y).predict(np.array([["red", 1.2]], dtype=object)).tolist()
['no']
"""

from __future__ import annotations

from typing import Any, Literal, Self

import numpy as np
from numpy.typing import NDArray

from discreet.encoding import class_codes
from discreet.errors import EstimationError
from discreet.estimation import estimate
from discreet.estimators.base import NaiveBayesEstimator, read_prior, read_weights
from discreet.estimators.columns import Kind, column_kinds, columns_by_position, grown, schema_of
from discreet.privacy import Guarantee
from discreet.schema import Schema
from discreet.statistics import Statistics
from discreet.tables.in_memory import count_arrays

__all__ = ["MixedNB"]


class MixedNB(NaiveBayesEstimator):
    """Naive Bayes for categorical and numeric columns together; it promises no privacy.

    The limit that every private estimator approaches, and their common base. On purely numeric
    columns it equals scikit-learn's ``GaussianNB``, on purely categorical ones ``CategoricalNB``.

    Parameters
    ----------
    alpha : float, default 1.0
        Pseudo-count of every category.
    var_smoothing : float, default 1e-9
        Share of the largest variance that is added to all variances.
    categorical_features : "from_dtype", "all", "none", or array of names, indices or a mask
        Which columns are categorical. From their types: text, booleans and pandas categories are,
        numbers are not.
    class_prior : array of shape (n_classes,), optional
        Prior to use instead of the class frequencies.
    missing : {"skip", "category"}
        Whether a missing cell is left out or is a value of its own.
    unseen : {"error", "other"}
        Whether a category that did not occur in training is refused or treated as rare.
    likelihood : {"gaussian", "truncated"}
        Density of numeric columns; truncated ones need a schema with bounds.
    schema : Schema, optional
        Public description of the columns; it then decides everything about them.

    Attributes
    ----------
    classes_ : array of shape (n_classes,)
    class_count_ : array of shape (n_classes,)
    class_prior_ : array of shape (n_classes,)
    n_features_in_ : int
    feature_names_in_ : array of str, only for data frames with text names
    statistics_ : Statistics
    model_ : NaiveBayesModel
    guarantee_ : Guarantee
    """

    def __init__(
        self,
        *,
        alpha: float = 1.0,
        var_smoothing: float = 1e-9,
        categorical_features: Any = "from_dtype",
        class_prior: Any = None,
        missing: Literal["skip", "category"] = "skip",
        unseen: Literal["error", "other"] = "error",
        likelihood: Literal["gaussian", "truncated"] = "gaussian",
        schema: Schema | None = None,
    ) -> None:
        self.alpha = alpha
        self.var_smoothing = var_smoothing
        self.categorical_features = categorical_features
        self.class_prior = class_prior
        self.missing = missing
        self.unseen = unseen
        self.likelihood = likelihood
        self.schema = schema

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn from records and their classes.

        Parameters
        ----------
        X : array or data frame of shape (n_samples, n_features)
        y : array of shape (n_samples,)
        sample_weight : array of shape (n_samples,), optional
        """
        for name in ("statistics_", "classes_", "kinds_"):
            self.__dict__.pop(name, None)
        return self._learn(X, y, None, sample_weight)

    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Self:
        """Learn from another batch of records.

        Parameters
        ----------
        X : array or data frame of shape (n_samples, n_features)
        y : array of shape (n_samples,)
        classes : array of shape (n_classes,)
            All classes that will ever occur; needed at the first call.
        sample_weight : array of shape (n_samples,), optional
        """
        first = not hasattr(self, "statistics_")
        if first and classes is None and self.schema is None:
            raise ValueError("classes must be passed on the first call to partial_fit.")
        if not first and classes is not None and not np.array_equal(self.classes_, classes):
            raise ValueError(
                f"classes={list(classes)!r} is not the same as on the last call to partial_fit, "
                f"which was {self.classes_.tolist()!r}"
            )
        return self._learn(X, y, classes, sample_weight)

    def _learn(self, X: Any, y: Any, classes: Any, sample_weight: Any) -> Self:
        first = not hasattr(self, "statistics_")
        X = self._read_rows(X, reset=first)
        y = self._read_classes(X, y)
        if first:
            self._begin(X, y, classes)
        if self.schema is None:
            unknown = np.setdiff1d(y, self.classes_)
            if unknown.size:
                raise ValueError(f"y holds classes that were not announced: {unknown.tolist()!r}")
            codes = np.searchsorted(self.classes_, y).astype(np.int32)
            columns = self._columns(X)
            schema = schema_of(columns, self.kinds_, self.classes_, self.missing, self.unseen)
        else:
            codes = class_codes(self.schema, y)
            columns, schema = self._columns(X), self.schema
        weights = read_weights(sample_weight, len(y))
        if first:
            statistics = count_arrays(schema, columns, codes, weights=weights)
        else:
            before, schema = grown(self.statistics_, schema)
            statistics = before + count_arrays(schema, columns, codes, weights=weights)
        return self._finish(statistics)

    def _begin(self, X: Any, y: NDArray[Any], classes: Any) -> None:
        if self.schema is not None:
            self.classes_ = self._own_classes(y)
            return
        self.classes_ = np.unique(y if classes is None else np.asarray(classes))
        columns = columns_by_position(X)
        names = getattr(self, "feature_names_in_", None)
        self.names_ = [f"x{i}" for i in range(len(columns))] if names is None else list(names)
        self.kinds_: list[Kind] = column_kinds(columns, self.names_, self.categorical_features)

    def _finish(self, statistics: Statistics) -> Self:
        prior = read_prior(self.class_prior, len(self.classes_))
        if np.sum(statistics.totals) <= 0:
            raise EstimationError("the weights of all records are zero; nothing can be learnt")
        self.statistics_ = statistics
        self.class_count_ = np.asarray(statistics.totals, dtype=float)
        self.model_ = estimate(
            statistics,
            "none",
            smoothing=self.alpha,
            likelihood=self.likelihood,
            variance_smoothing=self.var_smoothing,
            prior=prior,
        )
        self.class_prior_ = np.exp(self.model_.log_prior)
        self.guarantee_: Guarantee = statistics.guarantee
        return self
