"""The classifier: a log-prior and one factor a feature. It knows nothing of privacy.

    log P(c | x) = log P(c) + sum over features j of log P(x_j | c) + constant

Factors are tables over public cells (categories or bins) or normal densities, plain or truncated
to the public bounds, mixed freely in one model. Everything is done with logarithms.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from discreet.arrays import Floats
from discreet.documents import Body, dump, load, read_text
from discreet.encoding import Cells, columns_of, numbers_of, refuse_infinity
from discreet.errors import FormatError
from discreet.model.explanation import Evidence, Explanation, show_model
from discreet.privacy import Guarantee, GuaranteeBody
from discreet.projection import Projection, ProjectionBody
from discreet.schema import Numeric, Schema, SchemaBody
from discreet.statistics import cells_from

__all__ = ["CellFactor", "Factor", "GaussianFactor", "NaiveBayesModel"]

VERSION = 2
CHUNK = 4096
"""Rows that are scored at once: their intermediate values fit into the processor's cache."""


@dataclass(frozen=True, eq=False)
class CellFactor:
    """log P(cell | class), of shape (classes, cells); zero for a cell that is to be ignored."""

    cells: Cells
    log_probability: Floats

    @property
    def name(self) -> str:
        """Name of the feature."""
        return self.cells.feature.name

    def score(self, column: Any) -> Floats:
        """What each row's cell adds to each class, of shape (rows, classes)."""
        return np.ascontiguousarray(self.log_probability.T)[self.cells.column(column)]

    def label(self, value: Any, schema: Schema) -> str:
        """The cell of a value, in words."""
        return self.cells.labels[self.cells.index(value)]


@dataclass(frozen=True, eq=False)
class GaussianFactor:
    """A normal density for each class.

    Parameters
    ----------
    feature : Numeric
    mean, variance : arrays of shape (classes,)
    truncated : bool
        Whether the density is confined to the public bounds: divided by Phi(b) - Phi(a), the
        distribution function at the standardised bounds.
    missing : array of shape (classes,) or None
        P(missing | class) where missing is a value of its own; None where it is skipped.
    """

    feature: Numeric
    mean: Floats
    variance: Floats
    truncated: bool = False
    missing: Floats | None = None

    @property
    def name(self) -> str:
        """Name of the feature."""
        return self.feature.name

    @cached_property
    def constant(self) -> Floats:
        """All of the log-density but the square, for each class."""
        constant = -0.5 * np.log(2 * np.pi * self.variance)
        if self.truncated:
            deviation = np.sqrt(self.variance)
            low = (self.feature.lower - self.mean) / deviation
            high = (self.feature.upper - self.mean) / deviation
            constant = constant - _log_ndtr_between(low, high)
        if self.missing is not None:
            constant = constant + _log(1 - self.missing)
        return np.asarray(constant)

    @cached_property
    def log_missing(self) -> Floats:
        """What a missing value adds to each class."""
        if self.missing is None:
            return np.zeros(len(self.mean))
        return _log(self.missing)

    def label(self, value: Any, schema: Schema) -> str:
        """The value, in words."""
        column = np.array([value], dtype=object)
        tokens, outliers = schema.missing_tokens, schema.outliers
        number = float(numbers_of(self.feature, column, tokens, outliers)[0])
        return "(missing)" if np.isnan(number) else f"{number:g}"


Factor = CellFactor | GaussianFactor


def _log(probability: Floats) -> Floats:
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(probability))


def _log_ndtr_between(low: Floats, high: Floats) -> Floats:
    """log(Phi(high) - Phi(low)), also far in a tail, where both round to the same number."""
    from scipy.special import log_ndtr

    flip = low > 0  # work in the left tail, where log_ndtr is accurate
    low, high = np.where(flip, -high, low), np.where(flip, -low, high)
    a, b = log_ndtr(low), log_ndtr(high)
    return np.asarray(b + np.log1p(-np.exp(np.minimum(a - b, -1e-300))))


@dataclass(frozen=True, eq=False)
class NaiveBayesModel:
    """A trained classifier that predicts, explains itself and travels as JSON.

    Parameters
    ----------
    schema : Schema
    log_prior : array of shape (classes,)
    factors : sequence of CellFactor or GaussianFactor
        At most one a feature; features without one do not matter to the model.
    guarantee : Guarantee
        The promise under which it was trained; void where the schema was inferred.
    projection : Projection, optional
        What makes the columns of ``schema`` from the original ones; without one they are the same.
    """

    schema: Schema
    log_prior: Floats
    factors: Sequence[Factor]
    guarantee: Guarantee = field(default_factory=Guarantee.nothing)
    projection: Projection | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "guarantee", self.guarantee.under(schema=self.schema))
        classes = len(self.schema.classes)
        names = [factor.name for factor in self.factors]
        if len(set(names)) < len(names):
            raise FormatError("a feature has two factors")
        if self.projection is not None and self.projection.after != self.schema:
            raise FormatError("the projection makes other features than the model's schema has")
        if self.log_prior.shape != (classes,) or not (self.log_prior <= 1e-9).all():
            raise FormatError(f"the prior does not fit {classes} classes")
        for factor in self.factors:
            if isinstance(factor, CellFactor):
                if factor.log_probability.shape != (classes, factor.cells.size):
                    raise FormatError(f"{factor.name}: the factor does not fit its cells")
                if not (factor.log_probability <= 1e-9).all():
                    raise FormatError(f"{factor.name}: a probability is above one or no number")
                continue
            arrays = [factor.mean, factor.variance]
            arrays += [] if factor.missing is None else [factor.missing]
            if any(a.shape != (classes,) or not np.isfinite(a).all() for a in arrays):
                raise FormatError(f"{factor.name}: the density does not fit {classes} classes")
            if not (factor.variance > 0).all():
                raise FormatError(f"{factor.name}: a variance is not positive")

    @property
    def classes(self) -> NDArray[Any]:
        """The classes, in the order of the columns of the predictions."""
        return np.array(self.schema.classes)

    @property
    def inputs(self) -> Schema:
        """The schema of the rows that the model reads: of the original columns."""
        return self.schema if self.projection is None else self.projection.before

    def predict_joint_log_proba(self, rows: Any) -> Floats:
        """Joint: log P(c) + sum of log P(x_j | c), of shape (rows, classes)."""
        names = self.inputs.names
        columns = columns_of(rows, names)
        return self.score_columns(columns, len(columns[names[0]]))

    def score_columns(self, columns: Mapping[str, Any], rows: int) -> Floats:
        """As :meth:`predict_joint_log_proba`, for so many rows as columns by name."""
        if self.projection is not None:
            columns = self.projection.columns(columns)
        return self._scored(columns, rows)

    def _scored(self, columns: Mapping[str, Any], rows: int) -> Floats:
        """The score of columns as the model's own schema has them."""
        score = np.tile(self.log_prior, (rows, 1))
        numbers: list[tuple[GaussianFactor, Any]] = []
        for factor in self.factors:
            if isinstance(factor, CellFactor):
                score += factor.score(columns[factor.name])
            else:
                numbers.append((factor, columns[factor.name]))
        if numbers:
            tokens, outliers = self.schema.missing_tokens, self.schema.outliers
            matrix = np.empty((rows, len(numbers)))
            for index, (factor, column) in enumerate(numbers):
                matrix[:, index] = numbers_of(factor.feature, column, tokens, outliers)
            self._add_gaussian([factor for factor, _ in numbers], matrix, score)
        return score

    def score_matrix(self, matrix: Floats) -> Floats:
        """As :meth:`score_columns` for a float array and a model whose factors are all Gaussian."""
        score = np.tile(self.log_prior, (len(matrix), 1))
        self._add_gaussian(
            [f for f in self.factors if isinstance(f, GaussianFactor)], matrix, score
        )
        return score

    @staticmethod
    def _add_gaussian(factors: list[GaussianFactor], matrix: Floats, score: Floats) -> None:
        mean = np.array([factor.mean for factor in factors]).T
        weight = np.array([-0.5 / factor.variance for factor in factors]).T
        constant = np.array([factor.constant for factor in factors]).T
        absent = np.array([factor.log_missing for factor in factors]).T
        square = np.empty((min(CHUNK, len(matrix)), matrix.shape[1]))
        for start in range(0, len(matrix), CHUNK):
            chunk = matrix[start : start + CHUNK]
            part = square[: len(chunk)]
            missing = None
            if not np.isfinite(chunk.sum()):
                refuse_infinity(chunk, [factor.name for factor in factors])
                missing = np.isnan(chunk)
            for c in range(len(mean)):
                np.subtract(chunk, mean[c], out=part)
                np.multiply(part, part, out=part)
                if missing is None or not missing.any():
                    score[start : start + CHUNK, c] += part @ weight[c] + constant[c].sum()
                    continue
                with np.errstate(invalid="ignore"):
                    terms = np.where(missing, absent[c], part * weight[c] + constant[c])
                score[start : start + CHUNK, c] += terms.sum(axis=1)

    def predict_log_proba(self, rows: Any) -> Floats:
        """Posterior log P(c | x), of shape (rows, classes)."""
        return normalised(self.predict_joint_log_proba(rows))

    def predict_proba(self, rows: Any) -> Floats:
        """P(c | x), of shape (rows, classes)."""
        return np.exp(self.predict_log_proba(rows))

    def predict(self, rows: Any) -> NDArray[Any]:
        """The most probable class of each row."""
        return np.asarray(self.classes[np.argmax(self.predict_joint_log_proba(rows), axis=1)])

    def explain(self, row: Any, against: Any = None) -> Explanation:
        """Which features speak for the predicted class, and how loudly.

        Parameters
        ----------
        row : mapping of column name to value, or sequence in the order of ``inputs``
        against : class label, optional
            The class to compare with; the runner-up if not given.
        """
        names = self.inputs.names
        if not isinstance(row, Mapping):
            row = dict(zip(names, row, strict=True))
        columns = {name: np.array([row.get(name)], dtype=object) for name in names}
        if self.projection is not None:
            columns = self.projection.columns(columns)
        joint = self._scored(columns, 1)[0]
        order = np.argsort(-joint, kind="stable")
        winner = int(order[0])
        other = int(order[1]) if len(order) > 1 else winner
        if against is not None:
            other = list(self.schema.classes).index(against)
        evidence = []
        for factor in self.factors:
            alone = NaiveBayesModel(self.schema, np.zeros(len(joint)), [factor])
            score = alone._scored(columns, 1)[0]
            label = factor.label(columns[factor.name][0], self.schema)
            evidence.append(Evidence(factor.name, label, float(score[winner] - score[other])))
        evidence.sort(key=lambda one: -abs(one.log_odds))
        return Explanation(
            str(self.schema.classes[winner]),
            str(self.schema.classes[other]),
            float(np.exp(normalised(joint[None])[0, winner])),
            float(self.log_prior[winner] - self.log_prior[other]),
            tuple(evidence),
        )

    def show(self, strongest: int = 10) -> None:
        """Print the promise, the priors and the strongest evidence for people."""
        show_model(self, strongest)

    def to_json(self) -> str:
        """Write the model as versioned JSON."""
        body = {
            "schema": self.schema.to_body(),
            "log_prior": self.log_prior.tolist(),
            "factors": [_factor_body(factor) for factor in self.factors],
            "guarantee": self.guarantee.to_body(),
            "projection": None if self.projection is None else self.projection.to_body(),
        }
        return dump("model", VERSION, body)

    @classmethod
    def from_json(cls, text: str | bytes) -> NaiveBayesModel:
        """Read a model; what is damaged, newer or of another kind is refused."""
        body = load(text, "model", VERSION, _ModelBody)
        schema = body.public.value()
        try:
            factors = [factor.factor(schema) for factor in body.factors]
            promise = body.guarantee.guarantee()
            projection = None if body.projection is None else body.projection.projection(schema)
            return cls(schema, np.array(body.log_prior), factors, promise, projection)
        except ValueError as error:
            raise FormatError(f"this model contradicts itself: {error}") from None

    @classmethod
    def read(cls, path: str | Path) -> NaiveBayesModel:
        """Read a model file."""
        return cls.from_json(read_text(path))


def normalised(joint: Floats) -> Floats:
    """Joint log-probabilities to posterior ones, safely: the largest becomes the reference."""
    top = joint.max(axis=1, keepdims=True)
    if np.isneginf(top).any():  # impossible under every class: nothing is known
        joint = np.where(np.isneginf(top), 0.0, joint)
        top = joint.max(axis=1, keepdims=True)
    shifted = joint - top
    return np.asarray(shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True)))


def _factor_body(factor: Factor) -> dict[str, Any]:
    if isinstance(factor, CellFactor):
        return {
            "kind": "cells",
            "feature": factor.name,
            "edges": list(factor.cells.edges),
            "log_probability": factor.log_probability.tolist(),
        }
    return {
        "kind": "gaussian",
        "feature": factor.name,
        "mean": factor.mean.tolist(),
        "variance": factor.variance.tolist(),
        "truncated": factor.truncated,
        "missing": None if factor.missing is None else factor.missing.tolist(),
    }


class _CellBody(Body):
    kind: Literal["cells"]
    feature: str
    edges: list[float]
    log_probability: list[list[float]]

    def factor(self, schema: Schema) -> Factor:
        cells = cells_from(schema, self.feature, self.edges)
        return CellFactor(cells, np.array(self.log_probability, dtype=float))


class _GaussianBody(Body):
    kind: Literal["gaussian"]
    feature: str
    mean: list[float]
    variance: list[float]
    truncated: bool
    missing: list[float] | None

    def factor(self, schema: Schema) -> Factor:
        feature = schema[self.feature]
        if not isinstance(feature, Numeric):
            raise FormatError(f"{self.feature} is not numeric, so it has no density")
        missing = None if self.missing is None else np.array(self.missing)
        mean, variance = np.array(self.mean), np.array(self.variance)
        return GaussianFactor(feature, mean, variance, self.truncated, missing)


class _ModelBody(Body):
    public: SchemaBody = Field(alias="schema")
    log_prior: list[float]
    factors: list[_CellBody | _GaussianBody]
    guarantee: GuaranteeBody
    projection: ProjectionBody | None
