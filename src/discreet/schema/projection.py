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
from discreet.errors import FormatError, SchemaError
from discreet.files.documents import Body
from discreet.schema.cells import parse_numbers, refuse_infinity
from discreet.schema.schema import Numeric, Schema, SchemaBody

__all__ = ["DCA", "PCA", "Projection", "ProjectionBody", "fit_projection"]

BOUNDS_MARGIN = 0.1
"""Share of the public sample's range by which bounds of a component extend on either side."""


@dataclass(frozen=True, eq=False)
class Projection:
    """All numeric features of a schema, standardised and combined linearly into components.

    component_k = sum over j of (x_j - centre_j) / scale_j * matrix[j, k], added up in the order of
    the features, so that every program computes the same number. A missing number counts as the
    centre; components are clipped to their bounds.

    Parameters
    ----------
    input_schema : Schema
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
    >>> total.transform_columns({"a": [1.0, 2.0], "b": [3.0, 4.0]})["sum"].tolist()
    [4.0, 6.0]
    """

    input_schema: Schema
    centre: Floats
    scale: Floats
    matrix: Floats
    components: tuple[Numeric, ...]

    def __post_init__(self) -> None:
        feature_count = len(self.numeric_features)
        if not feature_count:
            raise SchemaError("there is no numeric feature to project; leave the projection out")
        if self.centre.shape != (feature_count,) or self.scale.shape != (feature_count,):
            raise SchemaError(
                f"centre and scale of shapes {self.centre.shape} and {self.scale.shape} do not "
                f"fit {feature_count} numeric features"
            )
        if self.matrix.shape != (feature_count, len(self.components)) or not self.components:
            raise SchemaError(
                f"a matrix of shape {self.matrix.shape} does not make {len(self.components)} "
                f"components of {feature_count} numeric features"
            )
        arrays = (self.centre, self.scale, self.matrix)
        if not all(np.isfinite(array).all() for array in arrays) or not (self.scale > 0).all():
            raise SchemaError("a projection needs finite numbers, and scales above 0")
        for component in self.components:
            if not isinstance(component, Numeric) or not component.is_bounded or component.integer:
                raise SchemaError(
                    f"{component!r} is not a component; write Numeric(name, lower, upper)"
                )

    @cached_property
    def numeric_features(self) -> tuple[Numeric, ...]:
        """The numeric features, which are replaced, in the schema's order."""
        return tuple(
            feature for feature in self.input_schema.features if isinstance(feature, Numeric)
        )

    @cached_property
    def output_schema(self) -> Schema:
        """The schema after the projection: categorical features, then the components."""
        categorical_features = [
            feature for feature in self.input_schema.features if not isinstance(feature, Numeric)
        ]
        return replace(
            self.input_schema, features=(*categorical_features, *self.components), outliers="clip"
        )

    def transform_columns(self, columns: Mapping[str, Any]) -> dict[str, Any]:
        """Columns of ``input_schema`` as columns of ``output_schema``."""
        tokens, outliers = self.input_schema.missing_tokens, self.input_schema.outliers
        component_columns: list[Any] = [0.0] * len(self.components)
        for j, feature in enumerate(self.numeric_features):
            numbers = parse_numbers(feature, columns[feature.name], tokens, outliers)
            refuse_infinity(numbers[:, None], [feature.name])
            z = np.nan_to_num((numbers - self.centre[j]) / self.scale[j], nan=0.0)
            component_columns = [
                component_column + z * self.matrix[j, k]
                for k, component_column in enumerate(component_columns)
            ]
        replaced_names = {feature.name for feature in self.numeric_features}
        unchanged_columns = {
            name: column for name, column in columns.items() if name not in replaced_names
        }
        return unchanged_columns | {
            component.name: component_column
            for component, component_column in zip(self.components, component_columns, strict=True)
        }

    def to_body(self) -> dict[str, Any]:
        """Plain values for a JSON document."""
        return {
            "schema": self.input_schema.to_body(),
            "centre": self.centre.tolist(),
            "scale": self.scale.tolist(),
            "matrix": self.matrix.tolist(),
            "components": [
                {"name": component.name, "lower": component.lower, "upper": component.upper}
                for component in self.components
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

    def to_projection(self, output_schema: Schema | None = None) -> Projection:
        """Return the projection; raises if its output does not match the given schema."""
        components = [
            Numeric(component.name, component.lower, component.upper, optional=False)
            for component in self.components
        ]
        projection = Projection(
            self.public.to_schema(),
            np.array(self.centre, dtype=float),
            np.array(self.scale, dtype=float),
            np.array(self.matrix, dtype=float),
            tuple(components),
        )
        if output_schema is not None and projection.output_schema != output_schema:
            raise FormatError("the projection makes other features than the schema of the file")
        return projection


@dataclass(frozen=True)
class PCA:
    """Principal components of the standardised public sample.

    Parameters
    ----------
    components : int
    """

    components: int

    def compute_directions(self, z: Floats, class_labels: NDArray[Any] | None) -> Floats:
        """Compute the directions of largest variance, one per column."""
        _, _, right_vectors = np.linalg.svd(z - z.mean(axis=0), full_matrices=False)
        return np.asarray(right_vectors[: self.components].T)


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

    def compute_directions(self, z: Floats, class_labels: NDArray[Any] | None) -> Floats:
        """Compute the directions that separate the classes best, one per column."""
        from scipy.linalg import eigh

        if class_labels is None:
            raise SchemaError("DCA needs the classes of the public sample: public_sample=(X, y)")
        centre = z.mean(axis=0)
        total_scatter = (z - centre).T @ (z - centre) / len(z)
        between_scatter = np.zeros_like(total_scatter)
        for class_label in np.unique(class_labels):
            class_rows = z[class_labels == class_label]
            mean_offset = class_rows.mean(axis=0) - centre
            between_scatter += len(class_rows) / len(z) * np.outer(mean_offset, mean_offset)
        ridge_term = self.ridge * np.trace(total_scatter) / len(total_scatter)
        _, eigenvectors = eigh(
            between_scatter, total_scatter + ridge_term * np.eye(len(total_scatter))
        )
        return np.asarray(eigenvectors[:, ::-1][:, : self.components])


def fit_projection(
    kind: PCA | DCA,
    schema: Schema,
    sample: Mapping[str, Any],
    class_labels: NDArray[Any] | None = None,
) -> Projection:
    """Fit a projection on the columns of a public sample.

    Parameters
    ----------
    kind : PCA or DCA
    schema : Schema
        Its numeric features become components, others stay.
    sample : mapping of feature name to column
    class_labels : array, optional
        Of the sample; DCA needs them.

    Returns
    -------
    Projection
    """
    numeric_features = [feature for feature in schema.features if isinstance(feature, Numeric)]
    if not 1 <= kind.components <= len(numeric_features):
        raise SchemaError(
            f"{kind.components} components of {len(numeric_features)} numeric features; "
            f"ask for 1 to {len(numeric_features)}"
        )
    tokens, outliers = schema.missing_tokens, schema.outliers
    numbers = np.column_stack(
        [
            parse_numbers(feature, sample[feature.name], tokens, outliers)
            for feature in numeric_features
        ]
    )
    if len(numbers) < 2 or not np.isfinite(numbers).all():
        name = numeric_features[int(np.argmax(~np.isfinite(numbers).all(axis=0)))].name
        raise SchemaError(
            f"public_sample: {name} has missing values, or there are fewer than two rows; a "
            "projection needs complete rows, so leave out the incomplete ones"
        )
    centre, scale = numbers.mean(axis=0), numbers.std(axis=0)
    scale = np.where(scale > 0, scale, 1.0)
    z = (numbers - centre) / scale
    matrix = kind.compute_directions(z, class_labels)
    component_values = z @ matrix
    lowest, highest = component_values.min(axis=0), component_values.max(axis=0)
    bound_margin = BOUNDS_MARGIN * np.maximum(highest - lowest, 1e-6)
    components = [
        Numeric(
            f"component{component_index + 1}",
            lowest[component_index] - bound_margin[component_index],
            highest[component_index] + bound_margin[component_index],
            optional=False,
        )
        for component_index in range(component_values.shape[1])
    ]
    return Projection(schema, centre, scale, matrix, tuple(components))
