"""The rows that a curator holds: exact counts of them, and batches to score.

Nothing in this module is private. What it returns must not leave the curator without noise.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from discreet.central.binning import count_numbers
from discreet.counting import count_arrays
from discreet.encoding import Bins, Cells, class_codes, columns_of
from discreet.schema import Feature, Numeric, Schema
from discreet.statistics import Statistics

__all__ = ["Columns", "Source", "TableSource", "source_of"]

Array = NDArray[Any]
Batch = tuple[Mapping[str, Any], NDArray[np.int32]]
Progress = Callable[[int, int], None]

BATCH = 65_536
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

    def batches(self) -> Iterator[Batch]:
        """Columns and class indices, some rows at a time."""
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
        tables = count_numbers(numbers, dict(self.columns), self.codes, classes)
        if rest:
            others = narrowed(self.schema, rest)
            found = count_arrays(others, self.columns, self.codes, bins=bins, moments=None)
            tables |= found.tables
        ordered = {name: tables[name] for name in self.schema.names}
        return Statistics(self.schema, self.totals(), tables=ordered)

    def batches(self) -> Iterator[Batch]:
        """All rows at once."""
        yield self.columns, self.codes


class TableSource:
    """Rows of a file, a data frame or any engine's table, opened once.

    Parameters
    ----------
    source : path, glob, URL, data frame, Arrow, ibis or Spark table
    schema : Schema
    table : str, optional
        Name of the table, for a database URL.
    progress : callable, optional
        Called as ``progress(done, total)`` after every query.
    """

    def __init__(
        self,
        source: Any,
        schema: Schema,
        *,
        table: str | None = None,
        progress: Progress | None = None,
    ) -> None:
        from discreet.engines import kind_of, open_table, parsed

        self.schema, self.source, self.progress = schema, source, progress
        self.unit, self.value = 1, 1.0
        self.file = kind_of(source) in ("csv", "parquet")
        wanted = [*schema.names, schema.target]
        with self._reading():
            rows = open_table(source, table=table)
            columns_of(dict.fromkeys(rows.columns), wanted)
            self.rows = parsed(rows, wanted) if kind_of(source) == "csv" else rows

    def _reading(self) -> AbstractContextManager[None]:
        from discreet.engines import reading

        return reading(self.source) if self.file else nullcontext()

    def totals(self) -> Array:
        """How many records each class has."""
        narrow = narrowed(self.schema, self.schema.features[:1])
        from discreet.tables import count

        with self._reading():
            return count(self.rows, narrow, moments=None).totals

    def count(
        self,
        bins: Bins | None = None,
        moments: Literal["grid"] | None = None,
        order: bool = False,
    ) -> Statistics:
        """Exact statistics, counted where the rows lie."""
        from discreet.tables import count

        with self._reading():
            return count(
                self.rows,
                self.schema,
                bins=bins,
                moments=moments,
                order=order,
                progress=self.progress,
            )

    def batches(self) -> Iterator[Batch]:
        """Arrow batches."""
        from discreet.engines import arrow_batches

        names = [*self.schema.names, self.schema.target]
        with self._reading():
            for batch in arrow_batches(self.rows.select(*names), BATCH):
                columns = {name: batch.column(name) for name in names}
                yield columns, class_codes(self.schema, columns.pop(self.schema.target))


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


def source_of(source: Any, schema: Schema, **options: Any) -> Source:
    """Rows from anywhere: a mapping of columns that includes the target, or any table."""
    if isinstance(source, Mapping):
        columns = columns_of(source, [*schema.names, schema.target])
        return Columns(schema, columns, class_codes(schema, columns[schema.target]))
    return TableSource(source, schema, **options)
