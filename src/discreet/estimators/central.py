"""The classifier of a trusted curator: what leaves is noisy, and says how much it may reveal.

>>> from discreet import CentralNB, Numeric, Schema
>>> schema = Schema([Numeric("age", 18, 100, integer=True)], "retired", ["no", "yes"])
>>> X, y = [[20], [35], [50], [70], [80], [90]] * 200, ["no", "no", "no", "yes", "yes", "yes"] * 200
>>> nb = CentralNB(epsilon=1.0, schema=schema).fit(X, y)
>>> nb.predict([[20], [90]]).tolist()
['no', 'yes']
>>> nb.guarantee_.epsilon
1.0
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import NDArray

from discreet.central.settings import PUBLIC, Method, Settings, Trained
from discreet.central.source import Columns, Source
from discreet.central.table_source import TableSource
from discreet.encoding import class_codes
from discreet.errors import PrivacyWarning, SchemaError
from discreet.estimators.base import NaiveBayesEstimator, read_weights
from discreet.estimators.columns import Kind, column_kinds, columns_by_position
from discreet.estimators.inferred import bounded_schema, check_bins, warn_of_leak
from discreet.estimators.refusals import RefusedError, check_prior, largest_weight
from discreet.privacy import Guarantee
from discreet.randomness import as_random
from discreet.schema import Schema
from discreet.statistics import Statistics

__all__ = ["CentralNB"]


class CentralNB(NaiveBayesEstimator):
    """Naive Bayes with a promise to everyone in the training table (adding or removing one record).

    Parameters
    ----------
    epsilon : float, default 1.0
        The whole budget of one ``fit``. ``math.inf`` is the exact binned classifier.
    delta : float, default 0
        Above zero, Gaussian noise is used where it is less than without (many features); where it
        is not, the promise is the stronger one, with a delta of 0.
    method : {"histogram", "moments", "global", "global-published", "smooth", "trimmed"}
        How the statistics are released. ``"histogram"`` is the most accurate by far; the others
        are there to compare with. ``"global-published"`` keeps no promise, and says so.
    allocation : mapping of feature name to weight, optional
        Shares of the budget. Left out, all features are equal for ``"histogram"``, and numeric ones
        count double for the others, as published.
    bins : "auto", int or mapping of feature name to int or cut points
        How ``"histogram"`` cuts numeric features: by the private number of records, or as said.
    likelihood : {"gaussian", "truncated"}
        Density of numeric features for the methods that fit one.
    selection : bool, default True
        Whether ``"histogram"`` may spend a part of the budget on choosing: with few people 30 % on
        the best features (not where there is an ``allocation``), with many 5 % between scorings.
    noise : noise law, optional
        For ``"smooth"`` and ``"trimmed"``: one of :mod:`discreet.mechanisms.additive`.
    max_weight : float, optional
        Public bound on ``sample_weight``, which is refused without it.
    class_prior : array of shape (n_classes,), optional
        A prior that was known without the data.
    schema : Schema, optional
        What is public. Left out, it is taken from the data, with a warning and without protection.
    categorical_features, missing, unseen
        As in :class:`~discreet.MixedNB`, where there is no schema.
    random_state : None, int, numpy Generator or Random
        None draws from the cryptographic source. A seed is for simulation and ends the promise.

    Attributes
    ----------
    classes_ : array of shape (n_classes,)
    class_count_ : array of shape (n_classes,)
        Noisy.
    class_prior_ : array of shape (n_classes,)
    n_features_in_ : int
    feature_names_in_ : array of str, only for tables with text names
    schema_ : Schema
    statistics_ : Statistics
        What was released, with variances.
    model_ : NaiveBayesModel
    guarantee_ : Guarantee
    """

    def __init__(
        self,
        epsilon: float = 1.0,
        *,
        delta: float = 0.0,
        method: Method = "histogram",
        allocation: Any = None,
        bins: Any = "auto",
        likelihood: Literal["gaussian", "truncated"] = "gaussian",
        selection: bool = True,
        noise: Any = None,
        max_weight: float | None = None,
        class_prior: Any = None,
        schema: Schema | None = None,
        categorical_features: Any = "from_dtype",
        missing: Literal["skip", "category"] = "skip",
        unseen: Literal["error", "other"] = "error",
        random_state: Any = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.method = method
        self.allocation = allocation
        self.bins = bins
        self.likelihood = likelihood
        self.selection = selection
        self.noise = noise
        self.max_weight = max_weight
        self.class_prior = class_prior
        self.schema = schema
        self.categorical_features = categorical_features
        self.missing = missing
        self.unseen = unseen
        self.random_state = random_state

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn from records and their classes.

        Parameters
        ----------
        X : array or data frame of shape (n_samples, n_features)
        y : array of shape (n_samples,)
        sample_weight : array of shape (n_samples,), optional
            Needs a public ``max_weight``.
        """
        again = hasattr(self, "model_")
        X = self._read_rows(X, reset=True)
        y = self._read_classes(X, y)
        weights = read_weights(sample_weight, len(y))
        largest = largest_weight(weights, self.epsilon, self.max_weight)
        if self.schema is not None:
            self.classes_ = self._own_classes(y)
            schema, columns = self.schema, self._columns(X)
            codes = class_codes(schema, y)
            assumptions: tuple[str, ...] = () if schema.inferred else (PUBLIC,)
        else:
            kept = slice(None) if weights is None else weights > 0
            schema, columns = self._inferred(X, y, kept)
            codes = np.searchsorted(self.classes_, y[kept]).astype(np.int32)
            weights = None if weights is None else weights[kept]
            assumptions = ()
        check_prior(self.class_prior, len(self.classes_), codes, self.epsilon)
        return self._train(Columns(schema, columns, codes, weights, largest), assumptions, again)

    def open_source(
        self,
        source: Any,
        *,
        table: str | None = None,
        progress: Callable[[int, int], None] | None = None,
    ) -> TableSource:
        """Open rows that lie elsewhere and look whether the columns are there; nothing is counted.

        Parameters
        ----------
        source : path, glob, URL, data frame, Arrow, ibis or Spark table
            Holds the class column as well: whatever :func:`discreet.tables.open_table` opens.
        table : str, optional
            Name of the table, for a database URL.
        progress : callable, optional
            Called as ``progress(done, total)`` after every query.
        """
        if self.schema is None:
            raise SchemaError(
                "a table that is not in memory needs a schema; write CentralNB(schema=...), "
                "or take one from the data with Schema.infer and mind its warning"
            )
        return TableSource(source, self.schema, table=table, progress=progress)

    def fit_source(self, source: Any, **options: Any) -> Self:
        """Learn from rows that lie elsewhere; they are counted there.

        Parameters
        ----------
        source : path, glob, URL, data frame, Arrow, ibis or Spark table
            Or what :meth:`open_source` gave.
        **options
            As for :meth:`open_source`.
        """
        again = hasattr(self, "model_")
        opened = isinstance(source, TableSource)
        rows = source if opened else self.open_source(source, **options)
        self.classes_ = np.array(rows.schema.classes)
        self.n_features_in_ = len(rows.schema.features)
        self.feature_names_in_ = np.array(rows.schema.names, dtype=object)
        check_prior(self.class_prior, len(self.classes_), None, self.epsilon)
        return self._train(rows, () if rows.schema.inferred else (PUBLIC,), again)

    @property
    def partial_fit(self) -> Any:
        """Not there: every further look at the same people costs another epsilon."""
        raise RefusedError(
            "CentralNB has no partial_fit: each call would spend epsilon again on people who took "
            "part before. Fit disjoint groups apart with the same bins and selection=False and add "
            "their statistics_, or fit once"
        )

    def _train(self, source: Source, assumptions: tuple[str, ...], again: bool) -> Self:
        check_bins(self.bins, source.schema)
        from discreet.central.training import train

        private = not (isinstance(self.epsilon, (int, float)) and self.epsilon == math.inf)
        if again and private:
            warnings.warn(
                "this estimator was fitted before: if any person is in both tables, the budgets "
                f"of both fits add up for them ({self.guarantee_.epsilon:g} + {self.epsilon:g})",
                PrivacyWarning,
                stacklevel=3,
            )
        if self.class_prior is not None:
            assumptions += ("the class prior was known without the data",)
        trained: Trained = train(
            source,
            epsilon=self.epsilon,
            delta=self.delta,
            method=self.method,
            settings=Settings(
                self.allocation,
                self.bins,
                self.likelihood,
                self.selection,
                self.noise,
                assumptions,
            ),
            random=as_random(self.random_state),
        )
        self.schema_ = source.schema
        self.statistics_: Statistics = trained.statistics
        self.model_ = trained.model
        if self.class_prior is not None:
            with np.errstate(divide="ignore"):
                log_prior = np.log(np.asarray(self.class_prior, dtype=float))
            self.model_ = replace(trained.model, log_prior=log_prior)
        self.class_count_ = np.asarray(self.statistics_.totals, dtype=float)
        self.class_prior_ = np.exp(self.model_.log_prior)
        self.guarantee_: Guarantee = self.model_.guarantee
        return self

    def _inferred(self, X: Any, y: NDArray[Any], kept: Any) -> tuple[Schema, dict[str, Any]]:
        """A schema from the data itself: convenient, and not private."""
        columns = columns_by_position(X)
        names = getattr(self, "feature_names_in_", None)
        self.names_ = [f"x{i}" for i in range(len(columns))] if names is None else list(names)
        kinds: list[Kind] = column_kinds(columns, self.names_, self.categorical_features)
        self.classes_ = np.unique(y[kept])
        by_name = {n: np.asarray(c)[kept] for n, c in zip(self.names_, columns, strict=True)}
        if self.epsilon != math.inf:
            warn_of_leak("CentralNB")
        schema = bounded_schema(by_name, kinds, self.classes_, self.missing, self.unseen)
        return schema, by_name

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.non_deterministic = self.epsilon != math.inf and self.random_state is None
        return tags
