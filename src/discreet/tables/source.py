"""The rows that a curator holds: exact counts of them, and batches to score.

`InMemorySource` holds rows in memory; `TableSource` counts the rows of files, databases and Spark
in place.

Nothing here adds noise. Results are exact and must not leave the curator.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any, Literal

import numpy as np

from discreet.arrays import Array, CellCodes, Indices
from discreet.encoding import Cells, cells_of
from discreet.errors import FormatError
from discreet.randomness import Random
from discreet.schema import Numeric, Schema
from discreet.statistics import Statistics, Table
from discreet.tables.counting import Counting, Progress, read_objects
from discreet.tables.engines import arrow_batches, kind_of, open_rows, reading
from discreet.tables.in_memory import (
    Binner,
    Contents,
    binned,
    check_weights,
    count_arrays,
    table_of,
)
from discreet.tables.queries import Queries, not_a_number

__all__ = ["Columns", "Sampling", "Source", "TableSource"]

Batch = tuple[dict[str, Any], CellCodes]

WEIGHT_STEPS = 1024
BATCH = 65_536
AT_HAND, AT_HAND_ELSEWHERE = 300_000, 100_000
"""Largest number of rows that are cached for scoring: of a table in memory, and of any other."""


@dataclass
class Sampling:
    """Samples a random share of the rows that are read, each row independently of its values.

    Parameters
    ----------
    share : Fraction
        How often a coin shows heads; 0 to 1.
    random : Random

    Attributes
    ----------
    codes : array of int
        Class indices of what was kept, once all rows have passed.
    cells : dict of feature name to array of int
        Cell indices of it.
    """

    share: Fraction
    random: Random
    codes: Indices = field(init=False)
    cells: dict[str, Array] = field(init=False)

    def passing(self, batches: Iterable[Batch], cells: Mapping[str, Cells]) -> Iterator[Batch]:
        """Pass all batches on, and sample their rows while they are read."""
        classes: list[Array] = [np.empty(0, dtype=np.intp)]
        kept: dict[str, list[Array]] = {name: [np.empty(0, dtype=np.int16)] for name in cells}
        for columns, codes in batches:
            yield columns, codes
            rows = None
            if self.share < 1:
                rows = np.flatnonzero(self.random.bernoulli(self.share, len(codes)))
            classes.append(codes if rows is None else codes[rows])
            for name, one in cells.items():
                column = columns[name]
                if rows is not None:  # Arrow's arrays and pandas' series know how to take rows
                    own = isinstance(column, np.ndarray) or not hasattr(column, "take")
                    column = np.asarray(column)[rows] if own else column.take(rows)
                fast = isinstance(one.feature, Numeric) and len(column) > BATCH and _plain(column)
                found = Binner(one).column(column) if fast else one.column(column)
                small = np.int16 if one.size < 1 << 15 else np.int32
                kept[name].append(found.astype(small, copy=False))
        self.codes = np.concatenate(classes)
        self.cells = {name: np.concatenate(parts) for name, parts in kept.items()}


class Source(ABC):
    """Rows that can be counted and, batch by batch, scored.

    One record changes a count by at most ``count_sensitivity``, and a count of one stands for
    ``weight_per_count``: both 1, unless records carry weights. Up to ``max_cached_rows`` rows are
    cached for scoring; of more, a random share is. Columns in ``plain_columns`` hold nothing but
    numbers, which are counted in a faster way.
    """

    schema: Schema
    unit: int = 1
    value: float = 1.0
    at_hand: int
    plain: Collection[str] = ()

    @abstractmethod
    def totals(self) -> Array:
        """How many records each class has."""

    @abstractmethod
    def count(self, moments: Literal["grid"] | None = None, order: bool = False) -> Statistics:
        """Exact statistics, without bins; every value is held against the schema."""

    @abstractmethod
    def batches(self, names: Sequence[str]) -> Iterator[Batch]:
        """Some columns, the plain ones as arrays, and class indices; some rows at a time."""

    @abstractmethod
    def _tables(self, cells: Mapping[str, Cells]) -> Mapping[str, Table]:
        """Class-by-cell tables of columns that are not plain."""

    def tables(
        self, cells: Mapping[str, Cells], sampling: Sampling | None = None
    ) -> dict[str, Table]:
        """Exact class-by-cell tables.

        Parameters
        ----------
        cells : mapping of feature name to Cells
            Of the features wanted.
        sampling : Sampling, optional
            All rows pass it on the way.
        """
        classes = len(self.schema.classes)
        plain = {name: one for name, one in cells.items() if name in self.plain}
        batches: Iterable[Batch] = self.batches(list(plain)) if plain else ()
        if sampling is not None and sampling.share:
            batches = sampling.passing(self.batches(list(cells)), cells)
            if sampling.share == 1:  # everyone's cells are at hand then
                deque(batches, maxlen=0)
                codes, kept = sampling.codes, sampling.cells
                return {n: table_of(one, kept[n], codes, classes) for n, one in cells.items()}
        found = binned(plain, batches, classes)
        if others := {name: one for name, one in cells.items() if name not in plain}:
            found |= self._tables(others)
        return {name: found[name] for name in cells}


class Columns(Source):
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
        codes: CellCodes,
        weights: Array | None = None,
        largest: float | None = None,
    ) -> None:
        self.schema, self.codes, self.at_hand = schema, codes, AT_HAND
        self.columns = {name: _array(columns[name]) for name in schema.names}
        self.weights = check_weights(weights, len(codes))
        if weights is None:  # the fast way counts whole people
            numeric = [f.name for f in schema.features if isinstance(f, Numeric)]
            self.plain = {name for name in numeric if _plain(self.columns[name])}
        elif largest is not None:
            self.unit, self.value = WEIGHT_STEPS, largest / WEIGHT_STEPS
            self.weights = np.rint(np.asarray(weights, dtype=np.float64) / self.value)

    def totals(self) -> Array:
        """How many records each class has."""
        return np.bincount(self.codes, self.weights, minlength=len(self.schema.classes))

    def count(self, moments: Literal["grid"] | None = None, order: bool = False) -> Statistics:
        """Exact statistics, without bins; every value is held against the schema."""
        contents = Contents(moments=moments, order=order)
        return count_arrays(self.schema, self.columns, self.codes, contents, self.weights)

    def batches(self, names: Sequence[str]) -> Iterator[Batch]:
        """All rows at once."""
        yield {name: self.columns[name] for name in names}, self.codes

    def _tables(self, cells: Mapping[str, Cells]) -> dict[str, Table]:
        codes, classes, weights = self.codes, len(self.schema.classes), self.weights
        return {
            name: table_of(one, one.column(self.columns[name]), codes, classes, weights)
            for name, one in cells.items()
        }


class TableSource(Source):
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
        self.schema, self.source, self.progress = schema, source, progress
        self.at_hand = AT_HAND_ELSEWHERE
        wanted = [*schema.names, schema.target]
        frame = kind_of(source) == "frame"
        opened = read_objects(source, schema, wanted) if frame else source
        self.rows = open_rows(opened, wanted, table=table)
        self.classes = Cells.of(schema, schema.target)
        if self.rows.get_backend().name == "duckdb":
            # it hands such numbers over faster than it could cut them itself
            kinds = self.rows.schema()
            numeric = [f.name for f in schema.features if isinstance(f, Numeric)]
            self.plain = {n for n in numeric if kinds[n].is_floating() or kinds[n].is_integer()}

    def totals(self) -> Array:
        """How many records each class has; a table without rows is refused."""
        with reading(self.source):
            found, _ = Counting(Queries(self.rows, self.schema, None, {})).by_class()
        if not found.any():
            raise self._empty()
        return found

    def count(self, moments: Literal["grid"] | None = None, order: bool = False) -> Statistics:
        """Exact statistics, without bins; a table without rows is refused."""
        with reading(self.source):
            queries = Queries(self.rows, self.schema, None, cells_of(self.schema))
            found = Counting(queries, self.progress).run(moments, order)
        if not found.totals.any():
            raise self._empty()
        return found

    def _tables(self, cells: Mapping[str, Cells]) -> Mapping[str, Table]:
        others = replace(self.schema, features=tuple(one.feature for one in cells.values()))
        with reading(self.source):
            return Counting(Queries(self.rows, others, None, cells), self.progress).run().tables

    def _empty(self) -> FormatError:
        """The error for a table without rows."""
        named = isinstance(self.source, str) and "://" not in self.source
        name = self.source if named else "the table"
        return FormatError(f"{name}: has no rows; give a table with one row per person")

    def batches(self, names: Sequence[str]) -> Iterator[Batch]:
        """Arrow batches of all rows, in the keys and numbers that the counts are made of."""
        queries = Queries(self.rows, self.schema, None, cells_of(self.schema))
        with reading(self.source):
            each_row = queries.each_row(names, self.plain)
        for done, batch in enumerate(arrow_batches(each_row, 2 * BATCH, self.source)):
            columns: dict[str, Any] = {}
            for position, name in enumerate(names):
                column = columns[name] = batch.column(f"a{position}")
                if name in self.plain:
                    columns[name] = np.asarray(column)
                elif f"t{position}" in batch.schema.names:
                    for text in batch.column(f"t{position}").drop_null().slice(0, 1).to_pylist():
                        raise not_a_number(name, text)
            yield columns, self.classes.column(batch.column("y"))
            if self.progress is not None:
                self.progress(done, done + 1)


def _array(column: Any) -> Any:
    """Numbers of a data frame as an array; other columns as they are."""
    dtype = getattr(column, "dtype", None)
    return np.asarray(column) if isinstance(dtype, np.dtype) and dtype.kind in "iuf" else column


def _plain(column: Any) -> bool:
    return isinstance(column, np.ndarray) and column.dtype.kind in "iuf"
