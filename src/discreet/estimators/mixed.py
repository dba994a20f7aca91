"""Naive Bayes without privacy: mixed columns, exact counts."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar, Literal, Self

import numpy as np

from discreet.errors import EstimationError
from discreet.estimators.base import NaiveBayesEstimator, get_class_prior
from discreet.estimators.parameters import (
    CLASS_PRIOR_RULE,
    COMMON_RULES,
    LIKELIHOOD_RULE,
    ParamRule,
    make_number_rule,
)
from discreet.schema.cells import Cells
from discreet.schema.row_errors import row_error_context
from discreet.schema.schema import Categorical, Feature, Schema, format_value, to_plain_value
from discreet.statistics.scoring import Scoring
from discreet.statistics.statistics import Statistics, Table
from discreet.tables.in_memory import count_arrays

__all__ = ["MixedNB"]


class MixedNB(NaiveBayesEstimator):
    """Naive Bayes for categorical and numeric columns together; it promises no privacy.

    On purely numeric columns it equals scikit-learn's ``GaussianNB``, on purely categorical ones
    ``CategoricalNB``. It is the limit that every private estimator approaches as epsilon grows.

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
        Prior to use instead of the class frequencies. In the order of
        the schema's classes, where there is a schema.
    missing : {"skip", "category"}
        Whether a missing cell is left out or is a value of its own.
    unseen : {"error", "other"}
        Whether a category that did not occur in training is refused or treated as rare.
    likelihood : {"gaussian", "truncated"}
        Density of numeric columns; truncated ones need a schema with bounds.
    schema : Schema, path or mapping, optional
        Public description of the columns; it then decides everything about them.

    Attributes
    ----------
    classes_ : array of shape (n_classes,)
        The classes of the schema, in the type of y, sorted.
    class_count_ : array of shape (n_classes,)
        Number (or weight) of the rows of each class.
    class_prior_ : array of shape (n_classes,)
        P(class) of the model.
    n_features_in_ : int
        Number of columns of X.
    feature_names_in_ : array of str
        Names of the columns of X; only for tables with text names.
    schema_ : Schema
        As given, or as taken from the data.
    statistics_ : Statistics
        Exact counts and sums.
    model_ : NaiveBayesModel
        What predicts; can be saved as JSON without scikit-learn.
    guarantee_ : Guarantee
        Promises nothing.

    See Also
    --------
    CentralNB : The same under differential privacy, by a trusted curator.
    discreet.tables.count : Exact statistics of files and databases.

    Notes
    -----
    P(class | x) is proportional to P(class) times the product of P(x_j | class). A category has
    the probability (count + alpha) / (total + alpha * categories); a number has a normal density.
    Where there is no schema, a row of weight zero is treated as if it were not there.

    Examples
    --------
    >>> import pandas as pd
    >>> from discreet import MixedNB
    >>> X = pd.DataFrame({"colour": ["red", "red", "blue", "blue"], "size": [1.0, 1.5, 4.0, 4.5]})
    >>> nb = MixedNB().fit(X, ["no", "no", "yes", "yes"])
    >>> nb.predict(pd.DataFrame({"colour": ["red"], "size": [1.2]})).tolist()
    ['no']
    >>> nb.guarantee_.is_private
    False
    """

    _param_rules: ClassVar[Mapping[str, ParamRule]] = {
        "alpha": make_number_rule(
            "a finite number of at least 0", lambda alpha: 0 <= alpha < math.inf
        ),
        "var_smoothing": make_number_rule(
            "a finite number of at least 0", lambda share: 0 <= share < math.inf
        ),
        "class_prior": CLASS_PRIOR_RULE,
        "likelihood": LIKELIHOOD_RULE,
        **COMMON_RULES,
    }

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
        schema: Any = None,
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

        Returns
        -------
        self
        """
        self._start_fit()
        return self._learn_batch(X, y, None, sample_weight)

    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Self:
        """Learn from another batch of records.

        Parameters
        ----------
        X : array or data frame of shape (n_samples, n_features)
        y : array of shape (n_samples,)
        classes : array of shape (n_classes,)
            All classes that will ever occur; needed at the first call.
        sample_weight : array of shape (n_samples,), optional

        Returns
        -------
        self
        """
        is_first = not hasattr(self, "model_")
        if is_first and classes is None and self.schema is None:
            raise ValueError("classes must be passed on the first call to partial_fit.")
        if not is_first and classes is not None and not np.array_equal(self.classes_, classes):
            raise ValueError(
                f"classes={to_plain_value(list(classes))!r} is not the same as on the last call to "
                f"partial_fit, which was {self.classes_.tolist()!r}"
            )
        return self._learn_batch(X, y, classes, sample_weight)

    def _learn_batch(self, X: Any, y: Any, classes: Any, sample_weight: Any) -> Self:
        params = self._check_params()
        earlier_statistics: Statistics | None = getattr(self, "statistics_", None)
        if earlier_statistics is not None:
            classes = self.classes_
        earlier_schema = None if earlier_statistics is None else self.schema_
        training_rows = self._read_table(
            X, y, params, sample_weight, classes=classes, earlier_schema=earlier_schema
        )
        class_prior = get_class_prior(params, len(training_rows.classes))
        schema = training_rows.schema
        if earlier_statistics is not None:
            earlier_statistics, schema = _widen_statistics(earlier_statistics, schema)
        with row_error_context(schema, training_rows.columns):
            statistics = count_arrays(
                schema,
                training_rows.columns,
                training_rows.class_codes,
                weights=training_rows.weights,
            )
        if earlier_statistics is not None:
            statistics = earlier_statistics + statistics
        if np.sum(statistics.totals) <= 0:
            raise EstimationError(
                "sample_weight is zero for every row; give at least one row a positive weight"
            )
        scoring = Scoring(
            "none",
            smoothing=params["alpha"],
            likelihood=params["likelihood"],
            variance_smoothing=params["var_smoothing"],
            prior=None if class_prior is None else tuple(class_prior.tolist()),
        )
        class_labels = training_rows.classes
        if earlier_statistics is not None:  # scikit-learn expects them sorted
            class_labels = self.classes_[np.argsort(self._class_order)]
        return self._set_fitted(schema, class_labels, replace(statistics, scoring=scoring))


def _widen_statistics(statistics: Statistics, batch_schema: Schema) -> tuple[Statistics, Schema]:
    """Extend statistics and schema by the categories of a new batch."""
    earlier_schema = statistics.schema
    features: list[Feature] = []
    for earlier_feature, batch_feature in zip(
        earlier_schema.features, batch_schema.features, strict=True
    ):
        if isinstance(earlier_feature, Categorical) and isinstance(batch_feature, Categorical):
            known_texts = {format_value(value) for value in earlier_feature.values}
            new_values = [
                value for value in batch_feature.values if format_value(value) not in known_texts
            ]
            features.append(replace(earlier_feature, values=(*earlier_feature.values, *new_values)))
        else:
            features.append(earlier_feature)
    schema = replace(earlier_schema, features=tuple(features))
    if schema == earlier_schema:
        return statistics, earlier_schema
    tables = {}
    for name, table in statistics.tables.items():
        cells = Cells.from_schema(schema, name)
        added_count = cells.value_count - table.cells.value_count
        insert_position = table.cells.value_count
        counts = np.insert(table.counts, [insert_position] * added_count, 0, axis=1)
        tables[name] = Table(cells, counts)
    return replace(statistics, schema=schema, tables=tables), schema
