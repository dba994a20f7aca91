"""Base class of all scikit-learn estimators of discreet.

``__init__`` only stores; ``fit`` checks every parameter, reads X and y against the schema, lets
the estimator obtain statistics, and sets what was learnt; learned names end in ``_``. Only the
public API of scikit-learn is used. A subclass brings its table of parameter rules and computes its
statistics.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import check_array, check_consistent_length, column_or_1d
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from discreet.arrays import CellCodes, Floats
from discreet.encoding import lacks, objects_of
from discreet.errors import SchemaError
from discreet.estimation import estimate
from discreet.estimators.columns import (
    ColumnKind,
    column_kinds,
    columns_by_position,
    refuse_odd_types,
    schema_of,
)
from discreet.estimators.labels import labelled
from discreet.estimators.parameters import Rule
from discreet.model import GaussianFactor, NaiveBayesModel, normalised
from discreet.privacy import Guarantee
from discreet.schema import Numeric, Schema
from discreet.statistics import Statistics
from discreet.tables.in_memory import check_weights

__all__ = ["Given", "NaiveBayesEstimator", "Rows", "class_prior_of"]

Given = Mapping[str, Any]
"""All parameters of an estimator by name, checked and converted to plain Python values."""


@dataclass(frozen=True, eq=False)
class Rows:
    """The rows passed to ``fit``, read against the schema.

    Parameters
    ----------
    schema : Schema
        As given, or taken from the rows.
    classes : array of shape (n_classes,)
        The classes of the schema in the type of y.
    columns : mapping of feature name to column
    codes : array of int
        The class index of each row.
    weights : array of float, optional
    """

    schema: Schema
    classes: NDArray[Any]
    columns: Mapping[str, Any]
    codes: CellCodes
    weights: Floats | None = None


class NaiveBayesEstimator(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Reads X and y, sets the fitted attributes, and predicts from ``model_``."""

    _rules: ClassVar[Mapping[str, Rule]]
    _bounded: ClassVar[bool] = False
    """Whether numbers of an inferred schema need bounds."""

    schema: Any
    classes_: NDArray[Any]
    schema_: Schema
    statistics_: Statistics | None
    model_: NaiveBayesModel
    guarantee_: Guarantee

    def _checked(self) -> Given:
        """All parameters as plain values; raises for the first that breaks its rule."""
        return {name: rule.checked(name, getattr(self, name)) for name, rule in self._rules.items()}

    def _read(
        self,
        X: Any,
        y: Any,
        given: Given,
        sample_weight: Any = None,
        *,
        classes: Any = None,
        before: Schema | None = None,
    ) -> Rows:
        """Read X and y; without a schema, one is inferred from them.

        Parameters
        ----------
        X, y, sample_weight
            As given to ``fit``.
        given : mapping
        classes : array, optional
            All classes that will occur, where they were announced and there is no schema.
        before : Schema, optional
            Of earlier batches, which decides what is categorical.
        """
        X = self._read_rows(X, reset=before is None)
        is_list = _is_sequence(y)
        given_y = y = [_sole(label) for label in y] if is_list else y
        y = self._read_classes(X, y)
        weights = _read_weights(sample_weight, len(y))
        schema: Schema | None = given["schema"]
        if schema is not None:
            columns = self._columns(X, schema)
            # labels of a list keep their own types
            own, codes = labelled(schema, objects_of(given_y) if is_list else y)
            return Rows(schema, own, columns, codes, weights)
        parts = columns_by_position(X)
        names = list(getattr(self, "feature_names_in_", [f"x{i}" for i in range(len(parts))]))
        if before is None:
            kinds = column_kinds(parts, names, given["categorical_features"])
        else:
            kinds = [
                "numeric" if isinstance(f, Numeric) else "categorical" for f in before.features
            ]
        columns = dict(zip(names, parts, strict=True))
        if weights is not None and not weights.all():  # a weight of zero is a row that is not there
            if not weights.any():
                raise SchemaError("sample_weight is zero for every row; give a positive weight")
            kept = weights > 0
            y, weights = y[kept], weights[kept]
            columns = {name: np.asarray(column)[kept] for name, column in columns.items()}
        known = np.unique(y if classes is None else np.asarray(classes))
        unknown = np.setdiff1d(y, known)
        if unknown.size:
            raise ValueError(
                f"y has the classes {unknown.tolist()!r}, which were not announced; list all "
                "classes in the first call to partial_fit"
            )
        described = self._described(columns, kinds, known, given)
        codes = np.searchsorted(known, y).astype(np.int32)
        return Rows(described, known, columns, codes, weights)

    def _described(
        self,
        columns: Mapping[str, Any],
        kinds: list[ColumnKind],
        classes: NDArray[Any],
        given: Given,
    ) -> Schema:
        """A schema from the data itself."""
        return schema_of(columns, kinds, classes, given, bounded=self._bounded)

    def _learnt(
        self,
        schema: Schema,
        classes: NDArray[Any],
        found: Statistics | NaiveBayesModel,
    ) -> Self:
        """Set the fitted attributes: the statistics and the model that `estimate` makes of them.

        Where nobody may see statistics, the model comes alone.
        """
        self.schema_ = schema
        self._order = order = np.argsort(classes, kind="stable")
        self.classes_ = classes[order]
        self.statistics_ = None
        self.class_count_: Floats | None = None
        if isinstance(found, Statistics):
            self.statistics_ = found
            self.class_count_ = np.asarray(found.totals, dtype=float)[order]
            found = estimate(found)
        self.model_ = found
        self.guarantee_ = found.guarantee
        self.class_prior_: Floats = np.exp(found.log_prior)[order]
        return self

    @property
    def _as_in_schema(self) -> NDArray[Any]:
        """``classes_``, which is sorted as scikit-learn expects, in the order of the schema."""
        return np.asarray(self.classes_[np.argsort(self._order)])

    def _forget(self) -> None:
        """Remove fitted attributes, so that a failed fit leaves no mixture of old and new."""
        for name in [name for name in vars(self) if name.endswith("_")]:
            delattr(self, name)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "model_")

    def _read_rows(self, X: Any, *, reset: bool) -> Any:
        """X as an array or a frame whose columns keep their types."""
        if type(X).__name__ == "LazyFrame" and hasattr(X, "collect"):  # polars
            X = X.collect()
        records = isinstance(X, (list, tuple)) and any(isinstance(row, Mapping) for row in X[:1])
        if type(X) is dict or records:
            what = "list of records" if records else "dict"
            raise SchemaError(f"X is a {what}; give a data frame, such as pandas.DataFrame(X)")
        if hasattr(X, "columns") or hasattr(X, "column_names"):
            _check_unique(X)
            X = validate_data(self, X, skip_check_array=True, reset=reset)
            if len(X) == 0:
                raise ValueError(
                    f"Found array with 0 sample(s) (shape={X.shape}) while a minimum "
                    f"of 1 is required by {type(self).__name__}."
                )
            return X
        if _is_sequence(X):
            X = _read_list(X)
        if isinstance(X, np.ndarray):
            refuse_odd_types("X", X)  # without showing the rows, as scikit-learn would
        return validate_data(self, X, reset=reset, dtype=None, ensure_all_finite="allow-nan")

    def _read_classes(self, X: Any, y: Any) -> NDArray[Any]:
        if y is None:
            raise ValueError(
                f"{type(self).__name__} requires y to be passed, but the target y is None"
            )
        refuse_odd_types("y", y if hasattr(y, "dtype") else np.asarray(y))
        labels = column_or_1d(y, warn=True)
        check_consistent_length(X, labels)
        check_array(labels.reshape(-1, 1), dtype=None, ensure_all_finite=labels.dtype.kind == "f")
        check_classification_targets(labels)
        return np.asarray(labels)

    def _columns(self, X: Any, schema: Schema) -> dict[str, Any]:
        """The columns of a schema: by name where X has names, else by position."""
        columns = columns_by_position(X)
        if hasattr(self, "feature_names_in_"):
            named = dict(zip(self.feature_names_in_, columns, strict=True))
            lacking = [name for name in schema.names if name not in named]
            if lacking:
                raise SchemaError(f"X {lacks(lacking, [str(name) for name in named])}")
            return {name: _checked(name, named[name]) for name in schema.names}
        if len(schema.names) != len(columns):
            raise SchemaError(
                f"X has {len(columns)} columns without names, the schema {len(schema.names)} "
                f"features; give a data frame, or these columns in order: {', '.join(schema.names)}"
            )
        by_name = zip(schema.names, columns, strict=True)
        return {name: _checked(name, column) for name, column in by_name}

    def predict_joint_log_proba(self, X: Any) -> Floats:
        """Joint log-probability log P(c) + sum over j of log P(x_j | c).

        Parameters
        ----------
        X : array or data frame of shape (n_samples, n_features)

        Returns
        -------
        array of shape (n_samples, n_classes)
            Columns as in ``classes_``.
        """
        check_is_fitted(self)
        X = self._read_rows(X, reset=False)
        factors = self.model_.factors
        if (
            isinstance(X, np.ndarray)
            and X.dtype == np.float64
            and len(factors) == X.shape[1]
            and self.model_.projection is None
            and all(isinstance(f, GaussianFactor) and not _guarded(f) for f in factors)
        ):
            joint = self.model_.score_matrix(X)
        else:
            joint = self.model_.predict_joint_log_proba(self._columns(X, self.schema_))
        ordered = bool((np.diff(self._order) == 1).all())
        return joint if ordered else joint[:, self._order]

    def predict_log_proba(self, X: Any) -> Floats:
        """Logarithm of the class probabilities.

        Parameters
        ----------
        X : array or data frame of shape (n_samples, n_features)

        Returns
        -------
        array of shape (n_samples, n_classes)
            Columns as in ``classes_``.
        """
        return normalised(self.predict_joint_log_proba(X))

    def predict_proba(self, X: Any) -> Floats:
        """Class probabilities.

        Parameters
        ----------
        X : array or data frame of shape (n_samples, n_features)

        Returns
        -------
        array of shape (n_samples, n_classes)
            Columns as in ``classes_``.
        """
        return np.exp(self.predict_log_proba(X))

    def predict(self, X: Any) -> NDArray[Any]:
        """The most probable class of each row.

        Parameters
        ----------
        X : array or data frame of shape (n_samples, n_features)

        Returns
        -------
        array of shape (n_samples,)
        """
        joint = self.predict_joint_log_proba(X)
        return np.asarray(self.classes_[np.argmax(joint, axis=1)])

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.categorical = True
        tags.input_tags.string = True
        return tags


def class_prior_of(given: Given, classes: int) -> Floats | None:
    """The class prior; raises unless it has one probability per class."""
    prior: Floats | None = given["class_prior"]
    if prior is not None and len(prior) != classes:
        raise SchemaError(
            f"class_prior has {len(prior)} entries and must match the number of classes, "
            f"{classes}; write one probability for each class"
        )
    return prior


def _read_weights(sample_weight: Any, rows: int) -> Floats | None:
    """Sample weights as floats, one for each row; None stays None."""
    if sample_weight is None:
        return None
    try:
        weights = np.asarray(sample_weight, dtype=float)
    except (TypeError, ValueError):
        raise SchemaError("sample_weight is not numeric; give one number for each row") from None
    return check_weights(np.full(rows, weights) if weights.ndim == 0 else weights, rows)


def _check_unique(X: Any) -> None:
    """Refuse a table with two columns of the same name."""
    names = list(X.column_names if hasattr(X, "column_names") else X.columns)
    twice = sorted({str(name) for name in names if names.count(name) > 1})
    if twice:
        raise SchemaError(
            f"X has more than one column named {', '.join(twice)}; rename or drop one"
        )


def _checked(name: str, column: Any) -> Any:
    refuse_odd_types(name, column)
    return column


def _guarded(factor: GaussianFactor) -> bool:
    """Whether values must be checked against bounds before they are scored."""
    feature = factor.feature
    return feature.bounded or feature.integer or not feature.optional


def _is_sequence(values: Any) -> bool:
    """Whether the values are a plain sequence, which NumPy would convert to one common type."""
    return _is_row(values) and not (hasattr(values, "dtype") or hasattr(values, "__array__"))


def _is_row(values: Any) -> bool:
    """Whether this is a one-dimensional sequence: a list, an array, a column."""
    ordered = hasattr(values, "__len__") and hasattr(values, "__getitem__")
    single = isinstance(values, (str, bytes, Mapping)) or getattr(values, "ndim", 1) != 1
    return ordered and not single


def _sole(label: Any) -> Any:
    """The label of a one-element sequence; any other label unchanged."""
    if isinstance(label, (str, int, float)) or not _is_row(label) or len(label) != 1:
        return label
    return next(iter(label))


def _read_list(rows: Any) -> NDArray[Any]:
    """Convert a list of rows to an array without changing any value's type.

    Numbers of one type keep that type, which changes none of them; else they are objects.
    """
    if len(rows) == 0 or not all(map(_is_row, rows)):
        return np.asarray(rows)
    widths = {len(row) for row in rows}
    if len(widths) > 1:
        raise ValueError(
            f"X has rows of {' and '.join(map(str, sorted(widths)[:2]))} values; an inhomogeneous "
            "shape is not a table: give every row a value for each column, None where it is missing"
        )
    types = {getattr(row, "dtype", None) for row in rows}
    if len(types) == 1 and getattr(types.pop(), "kind", "V") in "biuf":
        return np.asarray(rows)
    values = objects_of(value for row in rows for value in row)
    kinds = set(map(type, values))
    if kinds == {float} or (kinds == {int} and all(-(1 << 63) <= v < 1 << 63 for v in values)):
        values = values.astype(np.float64 if kinds == {float} else np.int64)
    return values.reshape(len(rows), widths.pop())
