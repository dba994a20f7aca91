"""The rows that a curator holds: exact counts of them, and batches to score.

Rows in memory are here, those of files and databases in :mod:`discreet.central.table_source`.

Nothing in this module is private. What it returns must not leave the curator without noise.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from discreet.arrays import Array
from discreet.central.binning import Counter
from discreet.encoding import Bins, Cells
from discreet.randomness import Random
from discreet.schema import Feature, Numeric, Schema
from discreet.statistics import Statistics
from discreet.tables.in_memory import count_arrays

__all__ = ["Columns", "Source", "narrowed"]

Batch = tuple[Mapping[str, Any], NDArray[np.int32]]

WEIGHT_STEPS = 1024


class Source(Protocol):
    """Rows that can be counted and, batch by batch, scored.

    One record changes a count by at most ``unit``, each of which stands for ``value`` people: 1
    and 1, unless records carry weights.
    """

    schema: Schema
    unit: int
    value: float

    def totals(self) -> Array:
        """How many records each class has."""
        ...

    def count(
        self,
        bins: Bins | None = None,
        moments: Literal["grid"] | None = None,
        order: bool = False,
    ) -> Statistics:
        """Exact statistics."""
        ...

    def batches(self, share: Fraction, random: Random) -> Iterator[Batch]:
        """Columns and class indices of a random share of the rows, some at a time.

        Every row is in it by a coin of its own, independent of all data.
        """
        ...


class Columns:
    """Columns in memory.

    Parameters
    ----------
    schema : Schema
    columns : mapping of feature name to column
    codes : array of int
        Class index of each row.
    weights : array of float, optional
        At least zero; taken as they are where ``largest`` is None.
    largest : float, optional
        The public bound on the weights, which are rounded to multiples of ``largest / 1024``.
    """

    def __init__(
        self,
        schema: Schema,
        columns: Mapping[str, Any],
        codes: NDArray[np.int32],
        weights: Array | None = None,
        largest: float | None = None,
    ) -> None:
        self.schema, self.codes = schema, codes
        self.columns = {name: _array(columns[name]) for name in schema.names}
        self.weights, self.unit, self.value = weights, 1, 1.0
        if weights is not None and largest is not None:
            self.unit, self.value = WEIGHT_STEPS, largest / WEIGHT_STEPS
            self.weights = np.rint(np.asarray(weights, dtype=np.float64) / self.value)

    def totals(self) -> Array:
        """How many records each class has."""
        return np.bincount(self.codes, self.weights, minlength=len(self.schema.classes))

    def count(
        self,
        bins: Bins | None = None,
        moments: Literal["grid"] | None = None,
        order: bool = False,
    ) -> Statistics:
        """Exact statistics."""
        if bins is not None and moments is None and not order and self.weights is None:
            return self._counted(bins)
        return count_arrays(
            self.schema,
            self.columns,
            self.codes,
            weights=self.weights,
            bins=bins,
            moments=moments,
            order=order,
        )

    def _counted(self, bins: Bins) -> Statistics:
        """The same tables, with plain numbers taken the fast way."""
        numbers = {
            feature.name: Cells.of(self.schema, feature.name, bins)
            for feature in self.schema.features
            if isinstance(feature, Numeric) and _plain(self.columns[feature.name])
        }
        rest = [feature for feature in self.schema.features if feature.name not in numbers]
        classes = len(self.schema.classes)
        counter = Counter(numbers, classes)
        counter.add(self.columns, self.codes)
        tables = counter.tables()
        if rest:
            others = narrowed(self.schema, rest)
            found = count_arrays(others, self.columns, self.codes, bins=bins, moments=None)
            tables |= found.tables
        ordered = {name: tables[name] for name in self.schema.names}
        return Statistics(self.schema, self.totals(), tables=ordered)

    def batches(self, share: Fraction, random: Random) -> Iterator[Batch]:
        """All sampled rows at once."""
        if share == 1:
            yield self.columns, self.codes
            return
        rows = np.flatnonzero(random.bernoulli(share, len(self.codes)))
        columns = {name: np.asarray(column)[rows] for name, column in self.columns.items()}
        yield columns, self.codes[rows]


def narrowed(schema: Schema, features: Sequence[Feature]) -> Schema:
    """The same schema with some of its features."""
    return Schema(
        features,
        schema.target,
        schema.classes,
        schema.missing,
        schema.outliers,
        schema.unseen,
        schema.missing_tokens,
    )


def _array(column: Any) -> Any:
    """Numbers of a data frame as an array; other columns as they are."""
    dtype = getattr(column, "dtype", None)
    return np.asarray(column) if isinstance(dtype, np.dtype) and dtype.kind in "iuf" else column


def _plain(column: Any) -> bool:
    return isinstance(column, np.ndarray) and column.dtype.kind in "iuf"
