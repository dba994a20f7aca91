"""Models for programs that do not have discreet: ONNX graphs, and skops files for scikit-learn.

Both predict what the model itself predicts. A file cannot raise an error, though: where the model
refuses a value (a category that is not public, a number outside its bounds, a missing value that
may not be missing), the ONNX graph leaves that feature out of the decision; where components are
made of the numbers, it takes the number as missing.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, Self

from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin

from discreet.arrays import Floats
from discreet.errors import EstimationError, MissingDependencyError
from discreet.model import NaiveBayesModel
from discreet.model.onnx_graph import Graph
from discreet.model.sql_dialects import SqlDialect
from discreet.model.sql_query import SqlQuery
from discreet.schema.dates import refuse_dates

__all__ = ["ModelClassifier", "to_onnx", "to_skops", "to_sql"]


def to_onnx(model: NaiveBayesModel) -> bytes:
    """Write a model as an ONNX graph that computes in double precision.

    Inputs are named after the model's original columns and have shape (rows, 1): text for
    categorical features (numbers and truth values in the schema's spelling; ``""`` is missing),
    double for numeric ones (NaN is missing). Outputs are ``label`` and ``probabilities`` of shape
    (rows, classes).

    Parameters
    ----------
    model : NaiveBayesModel

    Returns
    -------
    bytes
        The file's content.
    """
    try:
        import onnx
    except ImportError:
        raise MissingDependencyError("onnx", "export") from None
    if not model.factors:
        raise EstimationError("this model has no features; there is nothing to export")
    refuse_dates(model.inputs, "ONNX")
    content: bytes = Graph(onnx, model).build().SerializeToString()
    return content


def to_skops(model: NaiveBayesModel) -> bytes:
    """Write a model as a skops file of a :class:`ModelClassifier`.

    ``skops.io.load(path, trusted=["discreet.model.export.ModelClassifier"])`` reads it; no other
    type has to be trusted, since the classifier's only state is the model's JSON text.

    Parameters
    ----------
    model : NaiveBayesModel
    """
    try:
        import skops.io
    except ImportError:
        raise MissingDependencyError("skops", "export") from None
    content: bytes = skops.io.dumps(ModelClassifier(model.to_json()))
    return content


def to_sql(
    model: NaiveBayesModel,
    table: str,
    *,
    dialect: SqlDialect,
    keys: Sequence[str] = (),
    with_probabilities: bool = False,
) -> str:
    """Write a model as a plain SELECT that predicts the rows of a table where they are.

    The result has the columns of ``keys``, ``prediction`` and, if wanted, ``P(class)`` of every
    class. Columns are read by name, whatever their order and types; a row with a value that the
    model refuses has NULL as its prediction.

    Parameters
    ----------
    model : NaiveBayesModel
    table : str
        Name of the table or view, such as ``"visits"`` or ``"clinic.visits"``.
    dialect : {"duckdb", "postgres", "sqlite"}
    keys : sequence of str
        Columns that are copied to the result, to know which row a prediction is of.
    with_probabilities : bool, default False
        SQLite computes them with its mathematical functions, which most builds have.

    Returns
    -------
    str
        One query, without a semicolon, so that a view can be made of it.

    Examples
    --------
    >>> from discreet import CentralNB, Numeric, Schema
    >>> schema = Schema([Numeric("age", 0, 100)], "sick", ["no", "yes"])
    >>> fitted = CentralNB(epsilon=1.0, schema=schema).fit([[20], [70]], ["no", "yes"])
    >>> query = to_sql(fitted.model_, "people", dialect="postgres", keys=["id"])
    >>> query.splitlines()[-4:]
    ['SELECT', '  k0 AS "id",', '  prediction AS "prediction"', 'FROM discreet_decisions']
    """
    return SqlQuery(model, table, dialect, keys, with_probabilities=with_probabilities).build()


class ModelClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A trained model as a scikit-learn classifier, frozen: fitting it changes nothing.

    Parameters
    ----------
    document : str
        The model as JSON, :meth:`~discreet.NaiveBayesModel.to_json`.
    """

    def __init__(self, document: str) -> None:
        self.document = document

    @property
    def model_(self) -> NaiveBayesModel:
        """The model itself."""
        return _load_model(self.document)

    @property
    def classes_(self) -> NDArray[Any]:
        """The classes, in the order of the columns of the probabilities."""
        return self.model_.classes

    def fit(self, X: Any = None, y: Any = None) -> Self:
        """Do nothing; the model is trained already."""
        return self

    def predict(self, X: Any) -> NDArray[Any]:
        """The most probable class of each row."""
        return self.model_.predict(X)

    def predict_proba(self, X: Any) -> Floats:
        """Class probabilities, one row per record."""
        return self.model_.predict_proba(X)

    def predict_log_proba(self, X: Any) -> Floats:
        """Logarithm of the class probabilities."""
        return self.model_.predict_log_proba(X)

    def predict_joint_log_proba(self, X: Any) -> Floats:
        """Joint log-probabilities, not normalised."""
        return self.model_.predict_joint_log_proba(X)

    def __sklearn_is_fitted__(self) -> bool:
        return True


@lru_cache(maxsize=8)
def _load_model(document: str) -> NaiveBayesModel:
    return NaiveBayesModel.from_json(document)
