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

from discreet.arrays import Array, CellCodes, Floats, Indices
from discreet.errors import FormatError, PrivacyError
from discreet.randomness import Random
from discreet.schema.cells import Cells, build_cells
from discreet.schema.dates import Date, make_moments
from discreet.schema.schema import Feature, Numeric, Schema
from discreet.statistics.statistics import Statistics, Table
from discreet.tables.contributions import (
    WEIGHT_STEPS,
    ContributionBound,
    Influence,
    compute_person_weights,
    find_unused_name,
    select_person_rows,
    take_rows,
)
from discreet.tables.counting import Progress, TableCounter, read_objects
from discreet.tables.engines import (
    get_source_kind,
    handle_read_errors,
    iter_arrow_batches,
    open_rows,
)
from discreet.tables.in_memory import (
    CountRequest,
    check_weights,
    count_arrays,
    count_bins,
    count_table,
)
from discreet.tables.key_columns import find_repeated_ids
from discreet.tables.person_queries import open_person_rows
from discreet.tables.queries import Queries, make_not_a_number_error

__all__ = ["InMemorySource", "Sampling", "Source", "TableSource"]

Batch = tuple[dict[str, Any], CellCodes]

BATCH_ROWS = 65_536
"""Rows that are read at once."""
MAX_CACHED_ROWS = 300_000
"""Most rows of a table in memory that are cached for scoring; times:
docs/experiments/central.md."""
MAX_CACHED_ROWS_REMOTE = 100_000
"""Most rows of any other table that are cached for scoring."""


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
    class_codes : array of int
        Class indices of what was kept, once all rows have passed.
    cell_indices : dict of feature name to array of int
        Cell indices of it.
    weights : array of float or None
        What each row counts, if not all count one.
    """

    share: Fraction
    random: Random
    class_codes: Indices = field(init=False)
    cell_indices: dict[str, Array] = field(init=False)
    weights: Floats | None = field(init=False, default=None)

    def sample_while_reading(
        self,
        batches: Iterable[Batch],
        cells_by_feature: Mapping[str, Cells],
        weight_name: str | None = None,
    ) -> Iterator[Batch]:
        """Pass all batches on, and sample their rows while they are read."""
        sampled_classes: list[Array] = [np.empty(0, dtype=np.intp)]
        sampled_weights: list[Array] = [np.empty(0)]
        sampled_cells: dict[str, list[Array]] = {
            name: [np.empty(0, dtype=np.int16)] for name in cells_by_feature
        }
        for columns, class_codes in batches:
            yield columns, class_codes
            sampled_rows = None
            if self.share < 1:
                sampled_rows = np.flatnonzero(self.random.bernoulli(self.share, len(class_codes)))
            sampled_classes.append(
                class_codes if sampled_rows is None else class_codes[sampled_rows]
            )
            if weight_name is not None:
                weights = np.asarray(columns[weight_name], dtype=np.float64)
                sampled_weights.append(weights if sampled_rows is None else weights[sampled_rows])
            for name, feature_cells in cells_by_feature.items():
                column = columns[name]
                if sampled_rows is not None:
                    column = take_rows(column, sampled_rows)
                feature_indices = feature_cells.encode_column(column)
                index_type = np.int16 if feature_cells.size < 1 << 15 else np.int32
                sampled_cells[name].append(feature_indices.astype(index_type, copy=False))
        self.class_codes = np.concatenate(sampled_classes)
        if weight_name is not None:
            self.weights = np.concatenate(sampled_weights)
        self.cell_indices = {
            name: np.concatenate(cell_chunks) for name, cell_chunks in sampled_cells.items()
        }


class Source(ABC):
    """Rows that can be counted and, batch by batch, scored.

    One person moves counts by ``influence``: by one row, unless rows carry weights or a ``bound``
    lets a person have several. Up to ``max_cached_rows`` rows are cached for scoring, unless
    ``is_scored`` is false; of more, a random share is. Columns in ``plain_columns`` hold nothing
    but numbers, which are counted in a faster way. Batches have the weights of their rows in the
    column ``weight_name``, if there is one.
    """

    schema: Schema
    bound: ContributionBound | None = None
    influence: Influence = Influence()
    weight_name: str | None = None
    is_scored: bool = True
    max_cached_rows: int
    plain_columns: Collection[str] = ()

    @property
    def count_sensitivity(self) -> int:
        """By how much one person changes counts at most."""
        return self.influence.count_sensitivity

    @property
    def weight_per_count(self) -> float:
        """For how many people, or rows, a count of one stands."""
        return self.influence.weight_per_count

    @abstractmethod
    def count_classes(self) -> Array:
        """How many records each class has."""

    @abstractmethod
    def count_statistics(
        self, moments: Literal["grid"] | None = None, order: bool = False
    ) -> Statistics:
        """Exact statistics, without bins; every value is held against the schema."""

    @abstractmethod
    def iter_batches(self, names: Sequence[str]) -> Iterator[Batch]:
        """Some columns, the plain ones as arrays, and class indices; some rows at a time."""

    @abstractmethod
    def _count_tables(self, cells: Mapping[str, Cells]) -> Mapping[str, Table]:
        """Class-by-cell tables of columns that are not plain."""

    def count_tables(
        self, cells_by_feature: Mapping[str, Cells], sampling: Sampling | None = None
    ) -> dict[str, Table]:
        """Exact class-by-cell tables.

        Parameters
        ----------
        cells_by_feature : mapping of feature name to Cells
            Of the features wanted.
        sampling : Sampling, optional
            All rows pass it on the way.
        """
        class_count = len(self.schema.classes)
        plain_cells = {
            name: feature_cells
            for name, feature_cells in cells_by_feature.items()
            if name in self.plain_columns
        }
        batches: Iterable[Batch] = self.iter_batches(list(plain_cells)) if plain_cells else ()
        if sampling is not None and sampling.share:
            batches = sampling.sample_while_reading(
                self.iter_batches(list(cells_by_feature)), cells_by_feature, self.weight_name
            )
            if sampling.share == 1:  # everyone's cells are at hand then
                deque(batches, maxlen=0)
                class_codes, sampled_cells = sampling.class_codes, sampling.cell_indices
                return {
                    table_name: count_table(
                        feature_cells,
                        sampled_cells[table_name],
                        class_codes,
                        class_count,
                        sampling.weights,
                    )
                    for table_name, feature_cells in cells_by_feature.items()
                }
        counted_tables = count_bins(plain_cells, batches, class_count)
        if other_cells := {
            name: feature_cells
            for name, feature_cells in cells_by_feature.items()
            if name not in plain_cells
        }:
            counted_tables |= self._count_tables(other_cells)
        return {name: counted_tables[name] for name in cells_by_feature}


class InMemorySource(Source):
    """Columns in memory.

    Parameters
    ----------
    schema : Schema
    columns : mapping of feature name to column
    class_codes : array of int
        Class index of each row.
    weights : array of float, optional
        At least zero; taken as they are where ``max_weight`` is None.
    max_weight : float, optional
        The public bound on the weights, which are rounded to multiples of ``max_weight / 1024``.
    bound : ContributionBound, optional
        How many rows of each person are used; without it, each row is a person.
    persons : column, optional
        Whose each row is, where there is a bound.
    """

    def __init__(
        self,
        schema: Schema,
        columns: Mapping[str, Any],
        class_codes: CellCodes,
        weights: Array | None = None,
        max_weight: float | None = None,
        *,
        bound: ContributionBound | None = None,
        persons: Any = None,
    ) -> None:
        if bound is not None:
            if weights is not None:
                raise PrivacyError(
                    "weights and several rows per person do not go together: how far one person "
                    "could move a count is bounded for one of them at a time; leave one out"
                )
            self.bound, self.influence = bound, bound.influence
            used_rows, person_codes = select_person_rows(
                persons, columns, class_codes, schema, bound
            )
            columns = {name: take_rows(columns[name], used_rows) for name in schema.names}
            class_codes = class_codes[used_rows]
            if bound.is_weighted:
                weights = compute_person_weights(person_codes)
                self.weight_name = _find_weight_name(schema)
        self.schema, self.class_codes, self.max_cached_rows = schema, class_codes, MAX_CACHED_ROWS
        self.columns = {}
        for name in schema.names:
            dtype = getattr(columns[name], "dtype", None)
            is_number = isinstance(dtype, np.dtype) and dtype.kind in "iuf"  # also of data frames
            self.columns[name] = np.asarray(columns[name]) if is_number else columns[name]
        self.weights = check_weights(weights, len(class_codes))
        if weights is None:  # the fast way counts whole people
            self.plain_columns = {
                feature.name
                for feature in schema.features
                if _is_number(feature) and _is_plain_array(self.columns[feature.name])
            }
        elif bound is None:
            self.is_scored = False
            if max_weight is not None:
                self.influence = Influence(WEIGHT_STEPS, 1, max_weight / WEIGHT_STEPS)
                self.weights = np.rint(
                    np.asarray(weights, dtype=np.float64) / self.weight_per_count
                )

    def count_classes(self) -> Array:
        """How many records each class has."""
        return np.bincount(self.class_codes, self.weights, minlength=len(self.schema.classes))

    def count_statistics(
        self, moments: Literal["grid"] | None = None, order: bool = False
    ) -> Statistics:
        """Exact statistics, without bins; every value is held against the schema."""
        request = CountRequest(moments=moments, order=order)
        return count_arrays(self.schema, self.columns, self.class_codes, request, self.weights)

    def iter_batches(self, names: Sequence[str]) -> Iterator[Batch]:
        """All rows at once."""
        batch_columns = {name: self.columns[name] for name in names}
        if self.weight_name is not None:
            batch_columns[self.weight_name] = self.weights
        yield batch_columns, self.class_codes

    def _count_tables(self, cells_by_feature: Mapping[str, Cells]) -> dict[str, Table]:
        class_codes, class_count, weights = self.class_codes, len(self.schema.classes), self.weights
        tables = {}
        for name, cells in cells_by_feature.items():
            row_cells = cells.encode_column(self.columns[name])
            tables[name] = count_table(cells, row_cells, class_codes, class_count, weights)
        return tables


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
    bound : ContributionBound, optional
        How many rows of each person are used; without it, each row is a person.
    """

    def __init__(
        self,
        source: Any,
        schema: Schema,
        *,
        table: str | None = None,
        progress: Progress | None = None,
        bound: ContributionBound | None = None,
    ) -> None:
        self.schema, self.source, self.progress, self.bound = schema, source, progress, bound
        self.table_name = table
        self.max_cached_rows = MAX_CACHED_ROWS_REMOTE
        wanted_columns = [*schema.names, schema.target]
        id_columns = [] if bound is None else [bound.person]
        is_frame = get_source_kind(source) == "frame"
        opened_source = (
            read_objects(source, schema, wanted_columns + id_columns) if is_frame else source
        )
        if bound is None:
            self.rows = open_rows(opened_source, wanted_columns, table=table)
        else:
            self.influence = bound.influence
            self.weight_name = _find_weight_name(schema) if bound.is_weighted else None
            self.rows = open_person_rows(
                opened_source, bound, schema, table=table, weight_name=self.weight_name
            )
        self.class_cells = Cells.from_schema(schema, schema.target)
        if self.rows.get_backend().name == "duckdb" and self.weight_name is None:
            # it hands such numbers over faster than it could cut them itself
            column_types = self.rows.schema()
            numeric_names = [feature.name for feature in schema.features if _is_number(feature)]
            self.plain_columns = {
                column_name
                for column_name in numeric_names
                if column_types[column_name].is_floating() or column_types[column_name].is_integer()
            }

    def count_classes(self) -> Array:
        """How many records each class has; a table without rows is refused."""
        with handle_read_errors(self.source):
            queries = Queries(self.rows, self.schema, self.weight_name, {})
            class_totals = TableCounter(queries).count_classes()
        if not class_totals.any():
            raise self._make_empty_error()
        return class_totals

    def count_statistics(
        self, moments: Literal["grid"] | None = None, order: bool = False
    ) -> Statistics:
        """Exact statistics, without bins; a table without rows is refused."""
        with handle_read_errors(self.source):
            queries = Queries(self.rows, self.schema, self.weight_name, build_cells(self.schema))
            statistics = TableCounter(queries, self.progress).run_queries(moments, order)
        if not statistics.totals.any():
            raise self._make_empty_error()
        return statistics

    def _count_tables(self, cells_by_feature: Mapping[str, Cells]) -> Mapping[str, Table]:
        features = tuple(cells.feature for cells in cells_by_feature.values())
        counted_schema = replace(self.schema, features=features)
        with handle_read_errors(self.source):
            queries = Queries(self.rows, counted_schema, self.weight_name, cells_by_feature)
            return TableCounter(queries, self.progress).run_queries().tables

    def _make_empty_error(self) -> FormatError:
        """The error for a table without rows."""
        has_name = isinstance(self.source, str) and "://" not in self.source
        source_name = self.source if has_name else "the table"
        return FormatError(f"{source_name}: has no rows; give a table with one row per person")

    def find_repeated_ids(self) -> list[str]:
        """Columns that look like ids of persons of whom the table has several rows."""
        return find_repeated_ids(self.source, self.schema, self.table_name)

    def iter_batches(self, names: Sequence[str]) -> Iterator[Batch]:
        """Arrow batches of all rows, in the keys and numbers that the counts are made of."""
        queries = Queries(self.rows, self.schema, self.weight_name, build_cells(self.schema))
        with handle_read_errors(self.source):
            row_query = queries.make_row_query(names, self.plain_columns)
        for batch_index, batch in enumerate(
            iter_arrow_batches(row_query, 2 * BATCH_ROWS, self.source)
        ):
            columns: dict[str, Any] = {}
            if self.weight_name is not None:
                columns[self.weight_name] = batch.column("w")
            for position, name in enumerate(names):
                column = columns[name] = batch.column(f"a{position}")
                if name in self.plain_columns:
                    columns[name] = np.asarray(column)
                    continue
                if f"t{position}" in batch.schema.names:
                    for invalid_text in (
                        batch.column(f"t{position}").drop_null().slice(0, 1).to_pylist()
                    ):
                        raise make_not_a_number_error(self.schema[name], invalid_text)
                feature = self.schema[name]
                if isinstance(feature, Date):
                    days = column.to_numpy(zero_copy_only=False)
                    columns[name] = make_moments(feature.first_hour + 24 * days)
            yield columns, self.class_cells.encode_column(batch.column("y"))
            if self.progress is not None:
                self.progress(batch_index, batch_index + 1)


def _find_weight_name(schema: Schema) -> str:
    """A name for the column of weights that no feature has, in any case of its letters."""
    return find_unused_name("person_weight", [*schema.names, schema.target])


def _is_number(feature: Feature) -> bool:
    """Whether the values of a feature are numbers as they are stored; dates become numbers."""
    return isinstance(feature, Numeric) and not isinstance(feature, Date)


def _is_plain_array(column: Any) -> bool:
    return isinstance(column, np.ndarray) and column.dtype.kind in "iuf"
