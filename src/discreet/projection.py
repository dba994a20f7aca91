"""Projections: numeric features replaced by linear combinations of them (PCA, DCA).

A projection is public, as the schema is. It is applied when a row is encoded, and a model that was
trained on components carries it, so that it predicts from the original columns.

PCA and DCA are learnt from a **public** sample only. The paper learns the projection from the raw
training data, which no untrusted collector has. Here it comes from a sample that is public anyway,
and so do the bounds of its components.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from discreet.arrays import Floats
from discreet.documents import Body
from discreet.encoding import numbers_of, refuse_infinity
from discreet.errors import FormatError, SchemaError
from discreet.schema import Numeric, Schema, SchemaBody

__all__ = ["DCA", "PCA", "Projection", "ProjectionBody", "fit_projection"]

MARGIN = 0.1
"""Share of the public sample's range by which bounds of a component extend on either side."""


@dataclass(frozen=True, eq=False)
class Projection:
    """All numeric features of a schema, standardised and combined linearly into components.

    component_k = sum over j of (x_j - centre_j) / scale_j * matrix[j, k], added up in the order of
    the features, so that every program computes the same number. A missing number counts as the
    centre; components are clipped to their bounds.

    Parameters
    ----------
    before : Schema
        Of the original columns.
    centre, scale : arrays of shape (numeric features,)
        In the order of the schema.
    matrix : array of shape (numeric features, components)
    components : tuple of Numeric
        The features that are made, with public bounds.

    Examples
    --------
    >>> schema = Schema([Numeric("a", 0, 10), Numeric("b", 0, 10)], "y", [0, 1])
    >>> total = Projection(
    ...     schema, np.zeros(2), np.ones(2), np.ones((2, 1)), (Numeric("sum", 0, 20),)
    ... )
    >>> total.columns({"a": [1.0, 2.0], "b": [3.0, 4.0]})["sum"].tolist()
    [4.0, 6.0]
    """

    before: Schema
    centre: Floats
    scale: Floats
    matrix: Floats
    components: tuple[Numeric, ...]

    def __post_init__(self) -> None:
        size = len(self.numeric)
        if not size:
            raise SchemaError("there is no numeric feature to project; leave the projection out")
        if self.centre.shape != (size,) or self.scale.shape != (size,):
            raise SchemaError(
                f"centre and scale of shapes {self.centre.shape} and {self.scale.shape} do not "
                f"fit {size} numeric features"
            )
        if self.matrix.shape != (size, len(self.components)) or not self.components:
            raise SchemaError(
                f"a matrix of shape {self.matrix.shape} does not make {len(self.components)} "
                f"components of {size} numeric features"
            )
        arrays = (self.centre, self.scale, self.matrix)
        if not all(np.isfinite(one).all() for one in arrays) or not (self.scale > 0).all():
            raise SchemaError("a projection needs finite numbers, and scales above 0")
        for one in self.components:
            if not isinstance(one, Numeric) or not one.bounded or one.integer:
                raise SchemaError(f"{one!r} is not a component; write Numeric(name, lower, upper)")

    @cached_property
    def numeric(self) -> tuple[Numeric, ...]:
        """The numeric features, which are replaced, in the schema's order."""
        return tuple(one for one in self.before.features if isinstance(one, Numeric))

    @cached_property
    def after(self) -> Schema:
        """The schema after the projection: categorical features, then the components."""
        kept = [one for one in self.before.features if not isinstance(one, Numeric)]
        return replace(self.before, features=(*kept, *self.components), outliers="clip")

    def columns(self, columns: Mapping[str, Any]) -> dict[str, Any]:
        """Columns of ``before`` as columns of ``after``."""
        tokens, outliers = self.before.missing_tokens, self.before.outliers
        made: list[Any] = [0.0] * len(self.components)
        for j, feature in enumerate(self.numeric):
            numbers = numbers_of(feature, columns[feature.name], tokens, outliers)
            refuse_infinity(numbers[:, None], [feature.name])
            z = np.nan_to_num((numbers - self.centre[j]) / self.scale[j], nan=0.0)
            made = [part + z * self.matrix[j, k] for k, part in enumerate(made)]
        replaced = {feature.name for feature in self.numeric}
        kept = {name: one for name, one in columns.items() if name not in replaced}
        return kept | {one.name: part for one, part in zip(self.components, made, strict=True)}

    def to_body(self) -> dict[str, Any]:
        """Plain values for a JSON document."""
        return {
            "schema": self.before.to_body(),
            "centre": self.centre.tolist(),
            "scale": self.scale.tolist(),
            "matrix": self.matrix.tolist(),
            "components": [
                {"name": one.name, "lower": one.lower, "upper": one.upper}
                for one in self.components
            ],
        }


class ComponentBody(Body):
    name: str
    lower: float
    upper: float


class ProjectionBody(Body):
    """The shape of a projection on disk."""

    public: SchemaBody = Field(alias="schema")
    centre: list[float]
    scale: list[float]
    matrix: list[list[float]]
    components: list[ComponentBody]

    def projection(self, after: Schema | None = None) -> Projection:
        """Return the projection; raises if its output does not match the given schema."""
        made = [Numeric(c.name, c.lower, c.upper, optional=False) for c in self.components]
        found = Projection(
            self.public.value(),
            np.array(self.centre, dtype=float),
            np.array(self.scale, dtype=float),
            np.array(self.matrix, dtype=float),
            tuple(made),
        )
        if after is not None and found.after != after:
            raise FormatError("the projection makes other features than the schema of the file")
        return found


@dataclass(frozen=True)
class PCA:
    """Principal components of the standardised public sample.

    Parameters
    ----------
    components : int
    """

    components: int

    def directions(self, z: Floats, classes: NDArray[Any] | None) -> Floats:
        """Compute the directions of largest variance, one per column."""
        _, _, rows = np.linalg.svd(z - z.mean(axis=0), full_matrices=False)
        return np.asarray(rows[: self.components].T)


@dataclass(frozen=True)
class DCA:
    """Discriminant components: between-class scatter against total scatter with a ridge.

    Parameters
    ----------
    components : int
        At most one less than there are classes is useful.
    ridge : float, default 0.01
        Added to the total scatter, relative to its mean diagonal.
    """

    components: int
    ridge: float = 0.01

    def directions(self, z: Floats, classes: NDArray[Any] | None) -> Floats:
        """Compute the directions that separate the classes best, one per column."""
        from scipy.linalg import eigh

        if classes is None:
            raise SchemaError("DCA needs the classes of the public sample: public_sample=(X, y)")
        centre = z.mean(axis=0)
        total = (z - centre).T @ (z - centre) / len(z)
        between = np.zeros_like(total)
        for c in np.unique(classes):
            part = z[classes == c]
            away = part.mean(axis=0) - centre
            between += len(part) / len(z) * np.outer(away, away)
        ridge = self.ridge * np.trace(total) / len(total)
        _, vectors = eigh(between, total + ridge * np.eye(len(total)))
        return np.asarray(vectors[:, ::-1][:, : self.components])


def fit_projection(
    kind: PCA | DCA,
    schema: Schema,
    sample: Mapping[str, Any],
    classes: NDArray[Any] | None = None,
) -> Projection:
    """Fit a projection on the columns of a public sample.

    Parameters
    ----------
    kind : PCA or DCA
    schema : Schema
        Its numeric features become components, others stay.
    sample : mapping of feature name to column
    classes : array, optional
        Of the sample; DCA needs them.

    Returns
    -------
    Projection
    """
    numeric = [f for f in schema.features if isinstance(f, Numeric)]
    if not 1 <= kind.components <= len(numeric):
        raise SchemaError(
            f"{kind.components} components of {len(numeric)} numeric features; "
            f"ask for 1 to {len(numeric)}"
        )
    tokens, outliers = schema.missing_tokens, schema.outliers
    numbers = np.column_stack([numbers_of(f, sample[f.name], tokens, outliers) for f in numeric])
    if len(numbers) < 2 or not np.isfinite(numbers).all():
        name = numeric[int(np.argmax(~np.isfinite(numbers).all(axis=0)))].name
        raise SchemaError(
            f"public_sample: {name} has missing values, or there are fewer than two rows; a "
            "projection needs complete rows, so leave out the incomplete ones"
        )
    centre, scale = numbers.mean(axis=0), numbers.std(axis=0)
    scale = np.where(scale > 0, scale, 1.0)
    z = (numbers - centre) / scale
    matrix = kind.directions(z, classes)
    made = z @ matrix
    low, high = made.min(axis=0), made.max(axis=0)
    room = MARGIN * np.maximum(high - low, 1e-6)
    components = [
        Numeric(f"component{i + 1}", low[i] - room[i], high[i] + room[i], optional=False)
        for i in range(made.shape[1])
    ]
    return Projection(schema, centre, scale, matrix, tuple(components))
