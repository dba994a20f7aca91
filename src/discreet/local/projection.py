"""Fewer numbers before anything is randomized: PCA and DCA, learnt from a **public** sample only.

The paper learns the projection from the raw training data, which no untrusted collector has. Here
it comes from a sample that is public anyway, and so do the bounds of its components.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.arrays import Floats
from discreet.encoding import numbers_of
from discreet.errors import SchemaError
from discreet.projection import Projection
from discreet.schema import Numeric, Schema

__all__ = ["DCA", "PCA", "fit_projection"]

MARGIN = 0.1
"""Bounds of a component reach this share beyond the public sample on either side."""


@dataclass(frozen=True)
class PCA:
    """Principal components of the standardised public sample.

    Parameters
    ----------
    components : int
    """

    components: int

    def directions(self, z: Floats, classes: NDArray[Any] | None) -> Floats:
        """Directions of largest variance, one a column."""
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
        """Directions that separate the classes best, one a column."""
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
