"""The classifier: a log-prior and one factor per feature. It is independent of privacy.

    log P(c | x) = log P(c) + sum over features j of log P(x_j | c) + constant

Where it was corrected, a few pairs of features add a table of their own.

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

from discreet.arrays import Floats
from discreet.documents import Body, dump, load, read_text
from discreet.encoding import Cells, columns_of, numbers_of, refuse_infinity
from discreet.errors import FormatError, about
from discreet.model.explanation import Evidence, Explanation, show_model
from discreet.model.factors import (
    CellBody,
    CellFactor,
    Factor,
    GaussianBody,
    GaussianFactor,
    PairBody,
    PairFactor,
    factor_body,
    factor_of,
)
from discreet.privacy import Guarantee, GuaranteeBody
from discreet.projection import Projection, ProjectionBody
from discreet.schema import Schema, SchemaBody

__all__ = ["NaiveBayesModel", "normalised"]

VERSION = 3
CHUNK = 4096
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

    Attributes
    ----------
    inputs : Schema
        Of the rows that the model reads: of the original columns.
    """

    schema: Schema
    log_prior: Floats
    factors: Sequence[Factor]
    guarantee: Guarantee = field(default_factory=Guarantee.nothing)
    projection: Projection | None = None
    pairs: Sequence[PairFactor] = ()
    inputs: Schema = field(init=False, repr=False)

    def __post_init__(self) -> None:
        before = self.schema if self.projection is None else self.projection.before
        object.__setattr__(self, "inputs", before)
        object.__setattr__(self, "guarantee", self.guarantee.under(schema=self.schema))
        classes = len(self.schema.classes)
        names = [factor.name for factor in self.factors]
        if len(set(names)) < len(names):
            raise FormatError("a feature has two factors")
        if self.projection is not None and self.projection.after != self.schema:
            raise FormatError("the projection makes other features than the model's schema has")
        if self.log_prior.shape != (classes,) or not (self.log_prior <= 1e-9).all():
            raise FormatError(f"the prior does not fit {classes} classes")
        for factor in (*self.factors, *self.pairs):
            factor.check(classes)

    @property
    def classes(self) -> NDArray[Any]:
        """The classes, in the order of the columns of the predictions."""
        return np.array(self.schema.classes)

    def predict_joint_log_proba(self, rows: Any) -> Floats:
        """Joint: log P(c) + sum of log P(x_j | c), of shape (rows, classes)."""
        names = self.inputs.names
        columns = columns_of(rows, names)
        score = np.tile(self.log_prior, (len(columns[names[0]]), 1))
        if self.projection is not None:
            columns = self.projection.columns(columns)
        numbers: list[tuple[GaussianFactor, Any]] = []
        found: dict[Cells, Any] = {}  # a pair mostly has the cells of its features' own tables
        for factor in self.factors:
            if isinstance(factor, CellFactor):
                by_cell = np.ascontiguousarray(factor.log_probability.T)
                found[factor.cells] = factor.cells.column(columns[factor.name])
                score += by_cell[found[factor.cells]]
            else:
                numbers.append((factor, columns[factor.name]))
        for pair in self.pairs:
            for own in pair.cells:
                if own not in found:
                    found[own] = own.column(columns[own.feature.name])
            score += pair.by_cells[found[pair.cells[0]], found[pair.cells[1]]]
        if numbers:
            tokens, outliers = self.schema.missing_tokens, self.schema.outliers
            matrix = np.empty((len(score), len(numbers)))
            for index, (factor, column) in enumerate(numbers):
                matrix[:, index] = numbers_of(factor.feature, column, tokens, outliers)
            self._add_gaussian([factor for factor, _ in numbers], matrix, score)
        return score

    def score_matrix(self, matrix: Floats) -> Floats:
        """The same for a float array and a model whose factors are all Gaussian."""
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
        """Log-odds that each feature adds for the predicted class.

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
        joint = self.predict_joint_log_proba(columns)[0]
        if self.projection is not None:
            columns = self.projection.columns(columns)
        order = np.argsort(-joint, kind="stable")
        winner = int(order[0])
        other = int(order[1]) if len(order) > 1 else winner
        if against is not None:
            other = list(self.schema.classes).index(against)
        evidence = []
        for factor in self.factors:
            alone = NaiveBayesModel(self.schema, np.zeros(len(joint)), [factor])
            score = alone.predict_joint_log_proba(columns)[0]
            label = factor.label(columns[factor.name][0], self.schema)
            evidence.append(Evidence(factor.name, label, float(score[winner] - score[other])))
        for pair in self.pairs:
            indices = [own.column(columns[own.feature.name])[0] for own in pair.cells]
            score = pair.by_cells[indices[0], indices[1]]
            label = " & ".join(own.labels[i] for own, i in zip(pair.cells, indices, strict=True))
            odds = float(score[winner] - score[other])
            evidence.append(Evidence(" & ".join(pair.names), label, odds))
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

    def plot(self, strongest: int = 12, ax: Any = None) -> Any:
        """The strongest evidence as bars (needs ``discreet[plot]``); gives the matplotlib axes.

        Parameters
        ----------
        strongest : int, default 12
        ax : matplotlib axes, optional
        """
        from discreet.report.plots import plot_model

        return plot_model(self, strongest, ax)

    def _repr_html_(self) -> str:
        from discreet.report.notebook import model_html

        return model_html(self)

    def to_json(self) -> str:
        """Write the model as versioned JSON."""
        factors = [factor_body(factor) for factor in self.factors]
        body = {
            "schema": self.schema.to_body(),
            "log_prior": self.log_prior.tolist(),
            "factors": factors,
            "guarantee": self.guarantee.to_body(),
            "projection": None if self.projection is None else self.projection.to_body(),
            "pairs": [factor_body(pair) for pair in self.pairs],
        }
        return dump("model", VERSION, body)

    @classmethod
    def from_json(cls, text: str | bytes) -> NaiveBayesModel:
        """Read a model; what is damaged, newer or of another kind is refused."""
        body = load(text, "model", VERSION, ModelBody)
        schema = body.public.value()
        try:
            factors = [factor_of(factor, schema) for factor in body.factors]
            promise = body.guarantee.guarantee()
            projection = None if body.projection is None else body.projection.projection(schema)
            pairs = [factor_of(pair, schema) for pair in body.pairs]
            return cls(schema, np.array(body.log_prior), factors, promise, projection, pairs)
        except ValueError as error:
            raise FormatError(f"this model contradicts itself: {error}") from None

    @classmethod
    def read(cls, path: str | Path) -> NaiveBayesModel:
        """Read a model file."""
        with about(path):
            return cls.from_json(read_text(path))


def normalised(joint: Floats) -> Floats:
    """Joint log-probabilities to posterior ones, safely: the largest becomes the reference.

    Parameters
    ----------
    joint : array of float, (rows, classes)
        log P(class, row).
    """
    top = joint.max(axis=1, keepdims=True)
    if np.isneginf(top).any():  # impossible under every class: nothing is known
        joint = np.where(np.isneginf(top), 0.0, joint)
        top = joint.max(axis=1, keepdims=True)
    shifted = joint - top
    return np.asarray(shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True)))


class ModelBody(Body):
    public: SchemaBody = Field(alias="schema")
    log_prior: list[float]
    factors: list[CellBody | GaussianBody]
    guarantee: GuaranteeBody
    projection: ProjectionBody | None
    pairs: list[PairBody]
