"""What all scikit-learn estimators of discreet share: reading X and y, and predicting.

``__init__`` only stores, ``fit`` works, learned names end in ``_``, and only the public API of
scikit-learn is used.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import check_array, check_consistent_length, column_or_1d
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from discreet.arrays import Floats
from discreet.errors import SchemaError
from discreet.estimators.columns import columns_by_position
from discreet.model import GaussianFactor, NaiveBayesModel, normalised
from discreet.schema import Schema, text_of
from discreet.tables.in_memory import check_weights

__all__ = ["NaiveBayesEstimator", "read_prior", "read_weights"]


class NaiveBayesEstimator(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """What all estimators share: reading X and y, and predicting from ``model_``."""

    schema: Schema | None
    model_: NaiveBayesModel
    classes_: NDArray[Any]

    def _read_rows(self, X: Any, *, reset: bool) -> Any:
        """X as an array or a frame whose columns keep their types."""
        if hasattr(X, "columns") or hasattr(X, "column_names"):
            X = validate_data(self, X, skip_check_array=True, reset=reset)
            if len(X) == 0:
                raise ValueError(
                    f"Found array with 0 sample(s) (shape={X.shape}) while a minimum "
                    f"of 1 is required by {type(self).__name__}."
                )
            return X
        if isinstance(X, (list, tuple)) and _mixed(X):
            X = np.array(X, dtype=object)  # numpy alone would turn numbers into text
        return validate_data(self, X, reset=reset, dtype=None, ensure_all_finite="allow-nan")

    def _read_classes(self, X: Any, y: Any) -> NDArray[Any]:
        if y is None:
            raise ValueError(
                f"{type(self).__name__} requires y to be passed, but the target y is None"
            )
        y = column_or_1d(y, warn=True)
        check_consistent_length(X, y)
        check_array(y.reshape(-1, 1), dtype=None, ensure_all_finite=y.dtype.kind == "f")
        check_classification_targets(y)
        return np.asarray(y)

    def _own_classes(self, y: NDArray[Any]) -> NDArray[Any]:
        """The schema's classes in the type of y: "0" and 0 are the same class."""
        assert self.schema is not None
        if y.dtype.kind in "biuf":
            try:
                return np.array([float(text_of(c)) for c in self.schema.classes]).astype(y.dtype)
            except ValueError:
                pass
        return np.array(self.schema.classes)

    def _columns(self, X: Any) -> dict[str, Any]:
        columns = columns_by_position(X)
        if self.schema is not None and hasattr(self, "feature_names_in_"):
            named = dict(zip(self.feature_names_in_, columns, strict=True))
            lacking = [name for name in self.schema.names if name not in named]
            if lacking:
                raise SchemaError(
                    f"X lacks the column{'s' * (len(lacking) > 1)} {', '.join(lacking)}; "
                    f"it has {', '.join(map(str, named))}"
                )
            return {name: named[name] for name in self.schema.names}
        names = self.schema.names if self.schema is not None else self.names_
        if len(names) != len(columns):
            raise SchemaError(f"X has {len(columns)} columns, the schema {len(names)} features")
        return dict(zip(names, columns, strict=True))

    def predict_joint_log_proba(self, X: Any) -> Floats:
        """Joint: log P(c) + sum of log P(x_j | c), one row a record, one column a class.

        Parameters
        ----------
        X : array or data frame of shape (n_samples, n_features)
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
            return self.model_.score_matrix(X)
        return self.model_.score_columns(self._columns(X), len(X))

    def predict_log_proba(self, X: Any) -> Floats:
        """Logarithm of the class probabilities."""
        return normalised(self.predict_joint_log_proba(X))

    def predict_proba(self, X: Any) -> Floats:
        """Class probabilities, one row a record, columns as in ``classes_``."""
        return np.exp(self.predict_log_proba(X))

    def predict(self, X: Any) -> NDArray[Any]:
        """The most probable class of each record."""
        joint = self.predict_joint_log_proba(X)
        return np.asarray(self.classes_[np.argmax(joint, axis=1)])

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.categorical = True
        tags.input_tags.string = True
        return tags


def read_weights(sample_weight: Any, rows: int) -> Floats | None:
    """Sample weights as floats, one a row; None stays None."""
    if sample_weight is None:
        return None
    weights = np.asarray(sample_weight, dtype=float)
    return check_weights(np.full(rows, weights) if weights.ndim == 0 else weights, rows)


def read_prior(class_prior: Any, classes: int) -> Floats | None:
    """A class prior as probabilities, or the error that scikit-learn's users know."""
    if class_prior is None:
        return None
    prior = np.asarray(class_prior, dtype=float)
    if prior.shape != (classes,):
        raise ValueError("Number of priors must match number of classes.")
    if not np.isclose(prior.sum(), 1.0):
        raise ValueError("The sum of the priors should be 1.")
    if (prior < 0).any():
        raise ValueError("Priors must be non-negative.")
    return prior


def _guarded(factor: GaussianFactor) -> bool:
    """Whether values must be checked against bounds before they are scored."""
    feature = factor.feature
    return feature.bounded or feature.integer or not feature.optional


def _mixed(rows: Any) -> bool:
    """Whether a list of rows holds both text and numbers."""
    if len(rows) == 0 or not isinstance(rows[0], (list, tuple)):
        return False
    kinds = {isinstance(value, str) for value in rows[0]}
    return len(kinds) == 2
