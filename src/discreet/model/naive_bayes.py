"""The classifier: a log-prior and one factor per feature. It is independent of privacy.

    log P(c | x) = log P(c) + sum over features j of log P(x_j | c) + constant

Where it was corrected, a few pairs of features add a table of their own. Where its probabilities
would be too sure, a temperature multiplies the whole: P(c | x) becomes its power, and the decisions
remain.

Factors are tables over public cells (categories or bins) or normal densities, plain or truncated
to the public bounds, mixed freely in one model. Everything is done with logarithms.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from discreet import conveniences
from discreet.arrays import Floats
from discreet.errors import FormatError
from discreet.files.atomic_writing import error_context, read_text
from discreet.files.documents import Body, dump_document, load_document
from discreet.model.explanation import Explanation, explain_row
from discreet.model.factors import (
    CellBody,
    CellFactor,
    Factor,
    GaussianBody,
    GaussianFactor,
    PairBody,
    PairFactor,
    decode_factor,
    encode_factor,
)
from discreet.privacy.guarantee import Guarantee, GuaranteeBody
from discreet.schema.cells import Cells, get_columns, parse_numbers, refuse_infinity
from discreet.schema.projection import Projection, ProjectionBody
from discreet.schema.row_errors import row_error_context
from discreet.schema.schema import Schema, SchemaBody

__all__ = ["NaiveBayesModel", "compute_log_posterior"]

VERSION = 5
"""Version of the format of a model's JSON."""
BLOCK_ROWS = 1 << 15
"""Rows of a matrix whose columns are read at once, while they are in the processor's cache."""
CHUNK_ROWS = 4096
"""Rows that are scored at once: their intermediate values fit into the processor's cache."""


@dataclass(frozen=True, eq=False)
class NaiveBayesModel:
    """A trained classifier that predicts, explains itself and travels as JSON.

    Parameters
    ----------
    schema : Schema
    log_prior : array of shape (classes,)
    factors : sequence of CellFactor or GaussianFactor
        At most one per feature; the model ignores features without one.
    guarantee : Guarantee
        The promise under which it was trained; void where the schema was inferred.
    projection : Projection, optional
        What makes the columns of ``schema`` from the original ones; without one they are the same.
    pairs : sequence of PairFactor
        What pairs of features add beyond what each of them adds alone.
    temperature : float, default 1
        Power of the class probabilities; below 1 they are less sure.

    Attributes
    ----------
    inputs : Schema
        Of the rows that the model reads: of the original columns.
    """

    schema: Schema
    log_prior: Floats
    factors: Sequence[Factor]
    guarantee: Guarantee = field(default_factory=Guarantee.make_unprotected)
    projection: Projection | None = None
    pairs: Sequence[PairFactor] = ()
    temperature: float = 1.0
    inputs: Schema = field(init=False, repr=False)

    def __post_init__(self) -> None:
        input_schema = self.schema if self.projection is None else self.projection.input_schema
        object.__setattr__(self, "inputs", input_schema)
        guarantee = self.guarantee.void_if(schema=self.schema).include_schema(self.schema)
        object.__setattr__(self, "guarantee", guarantee)
        class_count = len(self.schema.classes)
        factor_names = [factor.name for factor in self.factors]
        if len(set(factor_names)) < len(factor_names):
            raise FormatError("a feature has two factors")
        if self.projection is not None and self.projection.output_schema != self.schema:
            raise FormatError("the projection makes other features than the model's schema has")
        if self.log_prior.shape != (class_count,) or not (self.log_prior <= 1e-9).all():
            raise FormatError(f"the prior does not fit {class_count} classes")
        if not 0 < self.temperature < np.inf:
            raise FormatError(f"the temperature is {self.temperature}; it must be above 0")
        for factor in (*self.factors, *self.pairs):
            factor.check_classes(class_count)

    @property
    def classes(self) -> NDArray[Any]:
        """The classes, in the order of the columns of the predictions."""
        return np.array(self.schema.classes)

    def predict_joint_log_proba(self, rows: Any) -> Floats:
        """Joint: log P(c) + sum of log P(x_j | c), times the temperature: (rows, classes)."""
        input_names = self.inputs.names
        columns = get_columns(rows, input_names)
        with row_error_context(self.inputs, columns):
            return self._score_in_blocks(columns)

    def _score_in_blocks(self, columns: Mapping[str, Any]) -> Floats:
        """The same for columns by name, a block of rows after the other where they are arrays."""
        input_names = self.inputs.names
        row_count = len(columns[input_names[0]])
        if row_count <= BLOCK_ROWS or not all(
            isinstance(column, np.ndarray) for column in columns.values()
        ):
            return self._score_columns(columns, row_count)
        log_joint = np.empty((row_count, len(self.log_prior)))
        for first_row in range(0, row_count, BLOCK_ROWS):
            block = slice(first_row, first_row + BLOCK_ROWS)
            block_columns = {name: column[block] for name, column in columns.items()}
            log_joint[block] = self._score_columns(block_columns, len(log_joint[block]))
        return log_joint

    def _score_columns(self, columns: Mapping[str, Any], row_count: int) -> Floats:
        """The same for columns by name."""
        log_joint = np.tile(self.log_prior, (row_count, 1))
        if self.projection is not None:
            columns = self.projection.transform_columns(columns)
        gaussian_columns: list[tuple[GaussianFactor, Any]] = []
        # a pair mostly has the cells of its features' own tables
        cell_indices: dict[Cells, Any] = {}
        for factor in self.factors:
            if isinstance(factor, CellFactor):
                own_indices = factor.cells.encode_column(columns[factor.name])
                cell_indices[factor.cells] = own_indices
                # take copies a row at once, where indexing copies its numbers alone
                log_joint += np.take(factor.log_probability.T, own_indices, axis=0)
            else:
                gaussian_columns.append((factor, columns[factor.name]))
        for pair in self.pairs:
            for feature_cells in pair.cells:
                if feature_cells not in cell_indices:
                    cell_indices[feature_cells] = feature_cells.encode_column(
                        columns[feature_cells.feature.name]
                    )
            log_joint += pair.score_cells(*(cell_indices[own_cells] for own_cells in pair.cells))
        if gaussian_columns:
            missing_tokens, outliers = self.schema.missing_tokens, self.schema.outliers
            number_matrix = np.empty((len(log_joint), len(gaussian_columns)))
            for column_index, (factor, column) in enumerate(gaussian_columns):
                number_matrix[:, column_index] = parse_numbers(
                    factor.feature, column, missing_tokens, outliers
                )
            self._add_gaussian([factor for factor, _ in gaussian_columns], number_matrix, log_joint)
        return self._temper(log_joint)

    def score_matrix(self, matrix: Floats) -> Floats:
        """The same for a float array and a model whose factors are all Gaussian."""
        log_joint = np.tile(self.log_prior, (len(matrix), 1))
        factors = [factor for factor in self.factors if isinstance(factor, GaussianFactor)]
        self._add_gaussian(factors, matrix, log_joint)
        return self._temper(log_joint)

    def _temper(self, scores: Floats) -> Floats:
        """Scores times the temperature, in place: the same decisions, less sure."""
        if self.temperature != 1:
            scores *= self.temperature
        return scores

    @staticmethod
    def _add_gaussian(factors: list[GaussianFactor], matrix: Floats, log_joint: Floats) -> None:
        class_means = np.array([factor.mean for factor in factors]).T
        square_weights = np.array([-0.5 / factor.variance for factor in factors]).T
        log_constants = np.array([factor.log_constant for factor in factors]).T
        missing_scores = np.array([factor.log_missing for factor in factors]).T
        square_buffer = np.empty((min(CHUNK_ROWS, len(matrix)), matrix.shape[1]))
        for first_row in range(0, len(matrix), CHUNK_ROWS):
            chunk = matrix[first_row : first_row + CHUNK_ROWS]
            chunk_squares = square_buffer[: len(chunk)]
            is_missing = None
            if not np.isfinite(chunk.sum()):
                refuse_infinity(chunk, [factor.name for factor in factors])
                is_missing = np.isnan(chunk)
            for c in range(len(class_means)):
                np.subtract(chunk, class_means[c], out=chunk_squares)
                np.multiply(chunk_squares, chunk_squares, out=chunk_squares)
                if is_missing is None or not is_missing.any():
                    log_joint[first_row : first_row + CHUNK_ROWS, c] += (
                        chunk_squares @ square_weights[c] + log_constants[c].sum()
                    )
                    continue
                with np.errstate(invalid="ignore"):
                    feature_terms = np.where(
                        is_missing,
                        missing_scores[c],
                        chunk_squares * square_weights[c] + log_constants[c],
                    )
                log_joint[first_row : first_row + CHUNK_ROWS, c] += feature_terms.sum(axis=1)

    def predict_log_proba(self, rows: Any) -> Floats:
        """Posterior log P(c | x), of shape (rows, classes)."""
        return compute_log_posterior(self.predict_joint_log_proba(rows))

    def predict_proba(self, rows: Any) -> Floats:
        """P(c | x), of shape (rows, classes)."""
        return np.exp(self.predict_log_proba(rows))

    def predict(self, rows: Any) -> NDArray[Any]:
        """The most probable class of each row."""
        return np.asarray(self.classes[np.argmax(self.predict_joint_log_proba(rows), axis=1)])

    def explain(self, row: Any, against: Any = None) -> Explanation:
        """Log-odds that each feature adds for the predicted class.

        Parameters
        ----------
        row : mapping, series, data frame of one row, or sequence
            Values by name; those of a sequence or an array in the order of ``inputs``.
        against : class label, optional
            The class to compare with; the runner-up if not given.
        """
        return explain_row(self, row, against)

    def show(self, strongest: int = 10) -> None:
        """Print the promise, the priors and the strongest evidence for people."""
        conveniences.show_model(self, strongest)

    def plot(self, strongest: int = 12, ax: Any = None) -> Any:
        """The strongest evidence as bars (needs ``discreet[plot]``); gives the matplotlib axes.

        Parameters
        ----------
        strongest : int, default 12
        ax : matplotlib axes, optional
        """
        return conveniences.plot_model(self, strongest, ax)

    def _repr_html_(self) -> str:
        return conveniences.render_html(self)

    def to_json(self) -> str:
        """Write the model as versioned JSON."""
        body = {
            "schema": self.schema.to_body(),
            "log_prior": self.log_prior.tolist(),
            "factors": [encode_factor(factor) for factor in self.factors],
            "guarantee": self.guarantee.to_body(),
            "projection": None if self.projection is None else self.projection.to_body(),
            "pairs": [encode_factor(pair) for pair in self.pairs],
            "temperature": self.temperature,
        }
        return dump_document("model", VERSION, body)

    @classmethod
    def from_json(cls, text: str | bytes) -> NaiveBayesModel:
        """Read a model; what is damaged, newer or of another kind is refused."""
        body = load_document(text, "model", VERSION, ModelBody)
        schema = body.public.to_schema()
        try:
            factors = [decode_factor(factor, schema) for factor in body.factors]
            guarantee = body.guarantee.to_guarantee()
            projection = None if body.projection is None else body.projection.to_projection(schema)
            pairs = [decode_factor(pair, schema) for pair in body.pairs]
            return cls(
                schema,
                np.array(body.log_prior),
                factors,
                guarantee,
                projection,
                pairs,
                body.temperature,
            )
        except ValueError as error:
            raise FormatError(f"this model contradicts itself: {error}") from None

    @classmethod
    def read(cls, path: str | Path) -> NaiveBayesModel:
        """Read a model file."""
        with error_context(path):
            return cls.from_json(read_text(path))


def compute_log_posterior(log_joint: Floats) -> Floats:
    """Joint log-probabilities to posterior ones, safely: the largest becomes the reference.

    Parameters
    ----------
    log_joint : array of float, (rows, classes)
        log P(class, row).
    """
    max_log_joint = log_joint.max(axis=1, keepdims=True)
    if np.isneginf(max_log_joint).any():  # impossible under every class: nothing is known
        log_joint = np.where(np.isneginf(max_log_joint), 0.0, log_joint)
        max_log_joint = log_joint.max(axis=1, keepdims=True)
    shifted_joint = log_joint - max_log_joint
    return np.asarray(shifted_joint - np.log(np.exp(shifted_joint).sum(axis=1, keepdims=True)))


class ModelBody(Body):
    public: SchemaBody = Field(alias="schema")
    log_prior: list[float]
    factors: list[CellBody | GaussianBody]
    guarantee: GuaranteeBody
    projection: ProjectionBody | None
    pairs: list[PairBody]
    temperature: float
