"""Base class of all scikit-learn estimators of discreet.

``__init__`` only stores; ``fit`` checks every parameter, reads X and y against the schema, lets
the estimator obtain statistics, and sets what was learnt; learned names end in ``_``. Only the
public API of scikit-learn is used. A subclass brings its table of parameter rules and computes its
statistics.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import check_array, check_consistent_length, column_or_1d
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from discreet.arrays import CellCodes, Floats
from discreet.display.notebook import render_promise_line
from discreet.errors import RowError, SchemaError
from discreet.estimation import estimate
from discreet.estimators.columns import (
    ColumnKind,
    find_identifiers,
    infer_schema,
    list_columns,
    refuse_unsupported_types,
    resolve_column_kinds,
)
from discreet.estimators.labels import match_labels
from discreet.estimators.parameters import ParamRule
from discreet.estimators.sklearn_context import warn_user
from discreet.model import GaussianFactor, NaiveBayesModel, compute_log_posterior
from discreet.model.explanation import Explanation
from discreet.privacy.guarantee import Guarantee
from discreet.schema.cells import format_missing_columns, to_object_array
from discreet.schema.dates import Date, DatePart
from discreet.schema.schema import Numeric, Schema, abbreviate_value
from discreet.statistics.statistics import Statistics
from discreet.tables.identifiers import IDENTIFIER_REASON
from discreet.tables.in_memory import check_weights

__all__ = ["CheckedParams", "NaiveBayesEstimator", "TrainingRows", "get_class_prior"]

CheckedParams = Mapping[str, Any]
"""All parameters of an estimator by name, checked and converted to plain Python values."""


@dataclass(frozen=True, eq=False)
class TrainingRows:
    """The rows passed to ``fit``, read against the schema.

    Parameters
    ----------
    schema : Schema
        As given, or taken from the rows.
    classes : array of shape (n_classes,)
        The classes of the schema in the type of y.
    columns : mapping of feature name to column
    class_codes : array of int
        The class index of each row.
    weights : array of float, optional
    persons : column, optional
        Whose each row is, if a person may have several.
    """

    schema: Schema
    classes: NDArray[Any]
    columns: Mapping[str, Any]
    class_codes: CellCodes
    weights: Floats | None = None
    persons: Any = None


class NaiveBayesEstimator(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Reads X and y, sets the fitted attributes, and predicts from ``model_``."""

    _param_rules: ClassVar[Mapping[str, ParamRule]]
    _needs_bounds: ClassVar[bool] = False
    """Whether numbers of an inferred schema need bounds."""

    schema: Any
    classes_: NDArray[Any]
    schema_: Schema
    statistics_: Statistics | None
    model_: NaiveBayesModel
    guarantee_: Guarantee

    def _check_params(self) -> CheckedParams:
        """All parameters as plain values; raises for the first that breaks its rule."""
        return {
            param_name: rule.check_value(param_name, getattr(self, param_name))
            for param_name, rule in self._param_rules.items()
        }

    def _start_fit(self) -> CheckedParams:
        """Check the parameters and remove fitted attributes, so that old and new never mix."""
        params = self._check_params()
        for attribute_name in list(vars(self)):
            if attribute_name.endswith("_"):
                delattr(self, attribute_name)
        return params

    def _read_table(
        self,
        X: Any,
        y: Any,
        params: CheckedParams,
        sample_weight: Any = None,
        *,
        classes: Any = None,
        earlier_schema: Schema | None = None,
    ) -> TrainingRows:
        """Read X and y; without a schema, one is inferred from them.

        Parameters
        ----------
        X, y, sample_weight
            As given to ``fit``.
        params : mapping
        classes : array, optional
            All classes that will occur, where they were announced and there is no schema.
        earlier_schema : Schema, optional
            Of earlier batches, which decides what is categorical.
        """
        if params["schema"] is None:
            _refuse_target_among_features(X, y)
        else:
            is_first = earlier_schema is None or not hasattr(self, "feature_names_in_")
            wanted_names = params["schema"].names if is_first else list(self.feature_names_in_)
            X = _select_by_name(X, wanted_names, in_frame_order=is_first)
        X = self._read_rows(X, reset=earlier_schema is None)
        is_list = _is_sequence(y)
        raw_labels = y = [_unwrap_label(label) for label in y] if is_list else y
        if y is None:
            raise ValueError(
                f"{type(self).__name__} requires y to be passed, but the target y is None"
            )
        refuse_unsupported_types("y", y if hasattr(y, "dtype") else np.asarray(y))
        y = np.asarray(column_or_1d(y, warn=True))
        check_consistent_length(X, y)
        _refuse_missing_classes(y)
        check_array(y.reshape(-1, 1), dtype=None, ensure_all_finite=y.dtype.kind == "f")
        if params["schema"] is None or y.dtype.kind != "O":  # else each is held against the schema
            _refuse_mixed_classes(y)
            check_classification_targets(y)
        weights = None if sample_weight is None else _read_weights(sample_weight, len(y))
        schema: Schema | None = params["schema"]
        if schema is None:
            return self._infer_table(X, y, weights, params, classes, earlier_schema)
        columns = self._get_columns(X, schema)
        # labels of a list keep their own types
        class_labels, class_codes = match_labels(
            schema, to_object_array(raw_labels) if is_list else y
        )
        return TrainingRows(schema, class_labels, columns, class_codes, weights)

    def _infer_table(
        self,
        X: Any,
        y: NDArray[Any],
        weights: Floats | None,
        params: CheckedParams,
        classes: Any,
        earlier_schema: Schema | None,
    ) -> TrainingRows:
        """The rows with a schema that is inferred from them."""
        listed_columns = list_columns(X)
        column_names = list(
            getattr(self, "feature_names_in_", [f"x{i}" for i in range(len(listed_columns))])
        )
        if earlier_schema is None:
            kinds = resolve_column_kinds(
                listed_columns, column_names, params["categorical_features"]
            )
        else:
            kinds = [
                "numeric" if isinstance(feature, Numeric) else "categorical"
                for feature in earlier_schema.features
            ]
        columns = dict(zip(column_names, listed_columns, strict=True))
        if hasattr(self, "feature_names_in_") and earlier_schema is None and classes is None:
            columns, kinds = self._leave_out_identifiers(columns, kinds)
        if weights is not None and not weights.all():  # a weight of zero is a row that is not there
            if not weights.any():
                raise SchemaError("sample_weight is zero for every row; give a positive weight")
            has_weight = weights > 0
            y, weights = y[has_weight], weights[has_weight]
            columns = {
                column_name: np.asarray(column)[has_weight]
                for column_name, column in columns.items()
            }
        known_classes = np.unique(y if classes is None else np.asarray(classes))
        unknown_classes = np.setdiff1d(y, known_classes)
        if unknown_classes.size:
            raise ValueError(
                f"y has the classes {unknown_classes.tolist()!r}, which were not announced; list "
                "all classes in the first call to partial_fit"
            )
        inferred_schema = self._infer_schema(columns, kinds, known_classes, params)
        class_codes = np.searchsorted(known_classes, y).astype(np.int32)
        return TrainingRows(inferred_schema, known_classes, columns, class_codes, weights)

    def _leave_out_identifiers(
        self, columns: dict[str, Any], kinds: list[ColumnKind]
    ) -> tuple[dict[str, Any], list[ColumnKind]]:
        """Leave out columns with names that look like identifiers, and say so."""
        identifiers = find_identifiers(columns, kinds)
        if not identifiers or len(identifiers) == len(columns):
            return columns, kinds
        warn_user(
            f"left out: {', '.join(identifiers)} ({IDENTIFIER_REASON}); drop such columns, or "
            f"write {type(self).__name__}(schema=...) with all that is to be used",
            UserWarning,
        )
        used_kinds = {
            name: kind for name, kind in zip(columns, kinds, strict=True) if name not in identifiers
        }
        return {name: columns[name] for name in used_kinds}, list(used_kinds.values())

    def _infer_schema(
        self,
        columns: Mapping[str, Any],
        kinds: list[ColumnKind],
        classes: NDArray[Any],
        params: CheckedParams,
    ) -> Schema:
        """A schema from the data itself."""
        return infer_schema(columns, kinds, classes, params, is_bounded=self._needs_bounds)

    def _set_fitted(
        self,
        schema: Schema,
        classes: NDArray[Any],
        release: Statistics | NaiveBayesModel,
    ) -> Self:
        """Set the fitted attributes: the statistics and the model that `estimate` makes of them.

        Where nobody may see statistics, the model comes alone.
        """
        self.schema_ = schema
        self._class_order = class_order = np.argsort(classes, kind="stable")
        self.classes_ = classes[class_order]
        self.statistics_ = None
        self.class_count_: Floats | None = None
        if isinstance(release, Statistics):
            self.statistics_ = release
            self.class_count_ = np.asarray(release.totals, dtype=float)[class_order]
            release = estimate(release)
        self.model_ = release
        self.guarantee_ = release.guarantee
        self.class_prior_: Floats = np.exp(release.log_prior)[class_order]
        return self

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "model_")

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, str]:
        """What notebooks show: scikit-learn's box, once fitted with its promise in one line."""
        bundle: dict[str, str] = super()._repr_mimebundle_(**kwargs)
        if "text/html" in bundle and hasattr(self, "guarantee_"):
            bundle["text/html"] += render_promise_line(self.guarantee_)
        return bundle

    @property
    def _repr_html_(self) -> Callable[[], str]:
        """For programs that read no mime bundles; there is none where no diagram is wanted."""
        _ = super()._repr_html_
        return lambda: self._repr_mimebundle_()["text/html"]

    def _read_rows(self, X: Any, *, reset: bool) -> Any:
        """X as an array or a frame whose columns keep their types."""
        if type(X).__name__ == "LazyFrame" and hasattr(X, "collect"):  # polars
            X = X.collect()
        is_records = isinstance(X, (list, tuple)) and any(isinstance(row, Mapping) for row in X[:1])
        if type(X) is dict or is_records:
            container_name = "list of records" if is_records else "dict"
            raise SchemaError(
                f"X is a {container_name}; give a data frame, such as pandas.DataFrame(X)"
            )
        if hasattr(X, "columns") or hasattr(X, "column_names"):
            column_names = list(X.column_names if hasattr(X, "column_names") else X.columns)
            repeated_names = {str(name) for name in column_names if column_names.count(name) > 1}
            if repeated_names:
                raise SchemaError(
                    f"X has more than one column named {', '.join(sorted(repeated_names))}; "
                    "rename or drop one"
                )
            X = validate_data(self, X, skip_check_array=True, reset=reset)
            if len(X) == 0:
                raise ValueError(
                    f"Found array with 0 sample(s) (shape={X.shape}) while a minimum "
                    f"of 1 is required by {type(self).__name__}."
                )
            return X
        if isinstance(X, (str, os.PathLike)) or (
            _is_sequence(X) and len(X) and all(isinstance(row, (str, os.PathLike)) for row in X)
        ):
            raise SchemaError(
                "X is the name of a file, or a list of names; read it first, such as "
                "pandas.read_csv(name), or use fit_source(name), which CentralNB has"
            )
        if _is_sequence(X):
            X = _read_list(X)
        if isinstance(X, np.ndarray):
            refuse_unsupported_types("X", X)  # without showing the rows, as scikit-learn would
            if X.ndim == 1:
                raise ValueError(
                    f"Expected 2D array, got 1D array of {len(X)} values instead. Reshape your "
                    "data: X.reshape(-1, 1) if it is one feature, X.reshape(1, -1) if it is one row"
                )
        return validate_data(self, X, reset=reset, dtype=None, ensure_all_finite="allow-nan")

    def _get_columns(self, X: Any, schema: Schema) -> dict[str, Any]:
        """The columns of a schema: by name where X has names, else by position."""
        listed_columns = list_columns(X)
        column_names = getattr(self, "feature_names_in_", schema.names)
        if len(column_names) != len(listed_columns):
            raise SchemaError(
                f"X has {len(listed_columns)} columns without names, the schema "
                f"{len(schema.names)} features; give a data frame, or these columns in order: "
                f"{', '.join(schema.names)}"
            )
        column_by_name = dict(zip(column_names, listed_columns, strict=True))
        missing_names = [name for name in schema.names if name not in column_by_name]
        if missing_names:
            given_names = [str(name) for name in column_by_name]
            raise SchemaError(f"X {format_missing_columns(missing_names, given_names)}")
        columns = {name: column_by_name[name] for name in schema.names}
        for name, column in columns.items():
            if not isinstance(schema[name], (Date, DatePart)):
                refuse_unsupported_types(name, column)
        return columns

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
        fitted_names = getattr(self, "feature_names_in_", None)
        if fitted_names is not None and not self.schema_.inferred:
            X = _select_by_name(X, list(fitted_names))
        X = self._read_rows(X, reset=False)
        factors = self.model_.factors
        if (
            isinstance(X, np.ndarray)
            and X.dtype == np.float64
            and len(factors) == X.shape[1]
            and self.model_.projection is None
            and all(
                isinstance(factor, GaussianFactor) and not _needs_bound_check(factor)
                for factor in factors
            )
        ):
            joint_scores = self.model_.score_matrix(X)
        else:
            joint_scores = self.model_.predict_joint_log_proba(self._get_columns(X, self.schema_))
        is_ordered = bool((np.diff(self._class_order) == 1).all())
        return joint_scores if is_ordered else joint_scores[:, self._class_order]

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
        return compute_log_posterior(self.predict_joint_log_proba(X))

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
        joint_scores = self.predict_joint_log_proba(X)
        return np.asarray(self.classes_[np.argmax(joint_scores, axis=1)])

    def explain(self, row: Any, against: Any = None) -> Explanation:
        """Explain the decision for one row by what each feature adds.

        Parameters
        ----------
        row : data frame of one row, series, mapping or sequence
            Values by name; those of a sequence or an array in the order of the features.
        against : class label, optional
            The class to compare with; the runner-up if not given.
        """
        check_is_fitted(self)
        return self.model_.explain(row, against)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.categorical = True
        tags.input_tags.string = True
        return tags


def _select_by_name(X: Any, names: Sequence[str], *, in_frame_order: bool = False) -> Any:
    """Some columns of a frame, whatever others it has; anything without names as it is.

    Only where a schema was given: of an inferred one, scikit-learn's rule holds, that a frame has
    the columns of the first one in their order.
    """
    if type(X).__name__ == "LazyFrame" and hasattr(X, "collect"):  # polars
        X = X.collect()
    present_names = list(getattr(X, "column_names", getattr(X, "columns", ())))
    if not present_names or not all(isinstance(name, str) for name in present_names):
        return X
    if missing_names := [name for name in names if name not in present_names]:
        raise SchemaError(f"X {format_missing_columns(missing_names, present_names)}")
    wanted_names = [name for name in present_names if name in names] if in_frame_order else [*names]
    if len({*wanted_names}) < len(wanted_names) or wanted_names == present_names:
        return X  # a name that occurs twice is refused where rows are read
    return X.select(wanted_names) if hasattr(X, "select") else X[wanted_names]


def get_class_prior(params: CheckedParams, class_count: int) -> Floats | None:
    """The class prior; raises unless it has one probability per class."""
    class_prior: Floats | None = params["class_prior"]
    if class_prior is not None and len(class_prior) != class_count:
        raise SchemaError(
            f"class_prior has {len(class_prior)} entries and must match the number of classes, "
            f"{class_count}; write one probability for each class"
        )
    return class_prior


def _read_weights(sample_weight: Any, row_count: int) -> Floats | None:
    """Sample weights as floats, one for each row."""
    try:
        weights = np.asarray(sample_weight, dtype=float)
    except (TypeError, ValueError):
        raise SchemaError("sample_weight is not numeric; give one number for each row") from None
    return check_weights(np.full(row_count, weights) if weights.ndim == 0 else weights, row_count)


def _needs_bound_check(factor: GaussianFactor) -> bool:
    """Whether values must be checked against bounds before they are scored."""
    feature = factor.feature
    return feature.is_bounded or feature.integer or not feature.optional


def _refuse_target_among_features(X: Any, y: Any) -> None:
    """Refuse a frame that still holds the column y: a schema inferred from it would be a leak."""
    name = getattr(y, "name", None)
    if name is None or name not in list(getattr(X, "columns", ())):
        return
    if np.array_equal(np.asarray(X[name], dtype=object), np.asarray(y, dtype=object)):
        raise SchemaError(
            f"X holds the column {name!r}, which is y itself: a model of it would be right without "
            "knowing anything; drop the column, or give a schema that lists the features"
        )


def _refuse_missing_classes(y: NDArray[Any]) -> None:
    """Refuse rows without a class; the message says which is the first."""
    if y.dtype.kind not in ("f", "O"):
        return
    import pandas as pd

    is_absent = np.asarray(pd.isna(y))
    if is_absent.any():
        count = int(is_absent.sum())
        raise RowError(
            f"y contains NaN: {count:,} of {len(y):,} rows {'has' if count == 1 else 'have'} no "
            "class; remove such rows",
            int(np.argmax(is_absent)),
        )


def _refuse_mixed_classes(y: NDArray[Any]) -> None:
    """Refuse text among numbers, which have no order: it would decide which class is the first."""
    if y.dtype.kind != "O":
        return
    is_text = [isinstance(label, str) for label in y]
    if any(is_text) and not all(is_text):
        row = is_text.index(not is_text[0])
        raise RowError(
            f"y holds text and other values, such as {abbreviate_value(y[0])} and "
            f"{abbreviate_value(y[row])}; write all classes as text",
            row,
        )


def _is_sequence(values: Any) -> bool:
    """Whether the values are a plain sequence, which NumPy would convert to one common type."""
    return not (hasattr(values, "dtype") or hasattr(values, "__array__")) and _is_row(values)


def _is_row(values: Any) -> bool:
    """Whether this is a one-dimensional sequence: a list, an array, a column."""
    is_ordered = hasattr(values, "__len__") and hasattr(values, "__getitem__")
    is_single = isinstance(values, (str, bytes, Mapping)) or getattr(values, "ndim", 1) != 1
    return is_ordered and not is_single


def _unwrap_label(label: Any) -> Any:
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
    row_widths = {len(row) for row in rows}
    if len(row_widths) > 1:
        raise ValueError(
            f"X has rows of {' and '.join(map(str, sorted(row_widths)[:2]))} values; an "
            "inhomogeneous shape is not a table: give every row a value for each column, None "
            "where it is missing"
        )
    row_dtypes = {getattr(row, "dtype", None) for row in rows}
    if len(row_dtypes) == 1 and getattr(row_dtypes.pop(), "kind", "V") in "biuf":
        return np.asarray(rows)
    values = to_object_array(value for row in rows for value in row)
    value_types = set(map(type, values))
    if value_types == {float} or (
        value_types == {int} and all(-(1 << 63) <= v < 1 << 63 for v in values)
    ):
        values = values.astype(np.float64 if value_types == {float} else np.int64)
    return values.reshape(len(rows), row_widths.pop())
