"""Count the rows of files, data frames and databases in place.

Arrays are counted with numpy (:mod:`discreet.tables.in_memory`). Everything else is an ibis table
(:mod:`discreet.tables.engines`) and goes through the few queries below, the same on DuckDB,
PostgreSQL, Spark and any other engine of ibis, with identical integers on each:

1. ``GROUP BY class``: totals, the checks of all numbers, and sums on the public grid;
2. sums about the class means, when floats are asked for;
3. ``GROUP BY class, a, b`` over pairs of features, rolled up here through the schema's own cells;
4. ``GROUP BY class, k`` for each numeric feature whose order statistics are asked for.

All spellings of a value are folded inside the query, so that a table that fits the schema has at
most one group for every combination of public cells. No query fetches more groups than that, plus
one: a column full of junk ends in the error about its first unknown value, not in exhausted
memory, and a result that would be cut is an error, never a smaller count.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Any

import numpy as np

from discreet.arrays import Array
from discreet.errors import SchemaError
from discreet.schema.cells import Cells, Grid, build_cells, encode_classes, get_columns
from discreet.schema.schema import Numeric, Schema
from discreet.statistics.statistics import Moments, OrderStatistics, Statistics, Table
from discreet.tables.engines import (
    fetch_arrow,
    get_source_kind,
    handle_read_errors,
    open_rows,
    open_table,
)
from discreet.tables.frames import convert_to_arrow
from discreet.tables.in_memory import DEFAULT_REQUEST, CountRequest, count_arrays
from discreet.tables.queries import Queries, check_numbers

__all__ = ["count", "open_table"]

Progress = Callable[[int, int], None]

MAX_PAIR_CELLS = 10_000
"""Two features are counted in one query while they have at most this many cells together."""


def count(
    source: Any,
    schema: Schema,
    request: CountRequest = DEFAULT_REQUEST,
    *,
    y: Any = None,
    weights: Any = None,
    progress: Progress | None = None,
) -> Statistics:
    """Exact sufficient statistics of a table. They promise nothing: guard them like the table.

    Parameters
    ----------
    source : array, data frame, Arrow table, ibis table, Spark data frame, path, glob or URL
        See :func:`open_table`. Columns are found by name, those of an array by position.
    schema : Schema
        Every value is held against it.
    request : CountRequest
        What to count besides classes and categories: bins, sums, order statistics.
    y : array, optional
        The classes, where the source does not hold them itself.
    weights : array or str, optional
        How much each row counts: an array beside arrays, else the name of a column.
    progress : callable, optional
        Called as ``progress(done, total)`` after every query.

    Returns
    -------
    Statistics
    """
    source_kind = get_source_kind(source)
    if source_kind == "arrays" or (y is not None and source_kind == "frame"):
        return _count_arrays(source, schema, request, y, weights)
    if y is not None:
        raise SchemaError(f"the classes are read from the column {schema.target}; leave y out")
    if not (weights is None or isinstance(weights, str)):
        raise SchemaError("the weights of a table are one of its columns; give its name")
    if weights is not None and request.moments == "grid":
        raise SchemaError("sums on the grid are whole numbers; weights need moments='float'")
    wanted_columns = [*schema.names, schema.target, *([weights] if weights else [])]
    with handle_read_errors(source):
        table = open_rows(read_objects(source, schema, wanted_columns), wanted_columns)
        queries = Queries(table, schema, weights, build_cells(schema, request.bins))
        return TableCounter(queries, progress).run_queries(request.moments, request.order)


def _count_arrays(
    source: Any, schema: Schema, request: CountRequest, y: Any, weights: Any
) -> Statistics:
    if isinstance(weights, str):
        raise SchemaError("the weights of an array are an array with one number per row")
    if y is not None:
        columns, row_codes = get_columns(source, schema.names), encode_classes(schema, y)
    elif isinstance(source, np.ndarray):
        raise SchemaError("an array does not hold the classes; give them as y")
    else:
        columns = get_columns(source, [*schema.names, schema.target])
        row_codes = encode_classes(schema, columns[schema.target])
    for name in schema.names:
        if len(columns[name]) != len(row_codes):
            raise SchemaError(f"{name} has {len(columns[name])} rows, the classes {len(row_codes)}")
    return count_arrays(schema, columns, row_codes, request, weights)


def read_objects(source: Any, schema: Schema, wanted_columns: list[str]) -> Any:
    """The columns wanted of a frame, objects value by value; other sources as they are."""
    if get_source_kind(source) != "frame":
        return source
    if not hasattr(source, "iloc"):
        return convert_to_arrow(source, schema)
    frame_columns = [str(name) for name in source.columns]
    get_columns(dict.fromkeys(frame_columns), wanted_columns)
    wanted_frame = source.iloc[
        :, [frame_columns.index(name) for name in dict.fromkeys(wanted_columns)]
    ]
    return convert_to_arrow(wanted_frame, schema)


def pair_features(
    cell_counts: dict[str, int], max_cells: int = MAX_PAIR_CELLS
) -> list[tuple[str, ...]]:
    """Which features to count together: the largest with the smallest, while that stays small."""
    waiting_names = sorted(cell_counts, key=lambda name: cell_counts[name])
    feature_groups: list[tuple[str, ...]] = []
    while waiting_names:
        largest_name = waiting_names.pop()
        if waiting_names and cell_counts[largest_name] * cell_counts[waiting_names[0]] <= max_cells:
            feature_groups.append((waiting_names.pop(0), largest_name))
        else:
            feature_groups.append((largest_name,))
    return feature_groups


@dataclass
class TableCounter:
    """The queries of one table, and what they add up to.

    Parameters
    ----------
    queries : Queries
    progress : callable, optional
        Called as ``progress(done, total)`` after every query.
    """

    queries: Queries
    progress: Progress | None = None
    done_queries: int = field(default=0, init=False)
    total_queries: int = field(default=1, init=False)

    def run_queries(self, moments: str | None = None, order: bool = False) -> Statistics:
        """Exact statistics; parameters as those of :class:`CountRequest`."""
        numeric, cells = self.queries.numeric_features, self.queries.cells
        feature_groups = pair_features(
            {name: feature_cells.size for name, feature_cells in cells.items()}
        )
        ordered_features = numeric if order else []
        needs_mean_query = bool(moments == "float" and numeric)
        self.total_queries = 1 + needs_mean_query + len(feature_groups) + len(ordered_features)
        class_totals, feature_moments = self.count_by_class(moments)
        counted_tables = dict(
            table_entry
            for feature_group in feature_groups
            for table_entry in self._count_tables(feature_group)
        )
        tables = {name: counted_tables[name] for name in cells}
        order_statistics = {
            feature.name: self._count_order(feature) for feature in ordered_features
        }
        return Statistics(
            self.queries.schema,
            class_totals,
            tables=tables,
            moments=feature_moments,
            order_statistics=order_statistics,
        )

    def _fetch_groups(
        self, query: Any, max_groups: int, cells: Sequence[Cells] = ()
    ) -> tuple[Array, Any, list[Array]]:
        """Run a query whose first column is the class, followed by the columns ``a0``, ``a1`` ...

        Gives class indices, all columns, and the indices of cells for ``a0``, ``a1`` ...
        """
        max_groups *= self.queries.max_keys[self.queries.schema.target]
        result = fetch_arrow(query.limit(max_groups + 1))
        self.done_queries += 1
        if self.progress is not None:
            self.progress(self.done_queries, self.total_queries)
        class_indices = self.queries.class_cells.encode_column(result.column("y"))
        cell_indices = []
        for position, feature_cells in enumerate(cells):
            column = result.column(f"a{position}")  # of a number its bin, else the value
            cell_indices.append(
                column.to_numpy() if feature_cells.edges else feature_cells.encode_column(column)
            )
        if result.num_rows > max_groups:  # a sum over some of the groups would not be the count
            raise SchemaError(
                f"the table has more than {max_groups} groups of classes and values, more than the "
                "schema allows, although each of them fits it; this should never happen, and "
                "nothing was counted: please report it with the types of the columns"
            )
        return class_indices, result, cell_indices

    def count_classes(self) -> Array:
        """Totals of the classes; no other column is looked at."""
        rows = self.queries.make_row_query(())
        class_query = rows.group_by("y").agg(n=self.queries.sum_rows(rows))
        class_indices, result, _ = self._fetch_groups(class_query, 1)
        return self._sum_column(result, "n", class_indices)

    def count_by_class(self, moments: str | None) -> tuple[Array, dict[str, Moments]]:
        """Totals and moments of numeric features: one query or, for floats, two."""
        numeric = self.queries.numeric_features
        class_indices, result, _ = self._fetch_groups(self.queries.make_class_query(moments), 1)
        check_numbers(self.queries, result)
        class_totals = self._sum_column(result, "n", class_indices)
        if moments is None or not numeric:
            return class_totals, {}
        feature_names = [feature.name for feature in numeric]
        has_weights = self.queries.weights is not None
        number_type = np.float64 if moments == "float" else None
        present_counts = self._sum_features(class_indices, result, "n" if has_weights else "p")
        missing_counts = (
            self._sum_features(class_indices, result, "m")
            if has_weights
            else class_totals - present_counts
        )
        value_sums = self._sum_features(class_indices, result, "s", number_type)
        if moments == "grid":
            grids = [Grid.from_feature(feature) for feature in numeric]
            origins = np.array([np.full(len(class_totals), grid.lower) for grid in grids])
            grid_steps = [grid.step for grid in grids]
        else:
            present_counts = present_counts.astype(np.float64)
            missing_counts = missing_counts.astype(np.float64)
            zeros, has_values = np.zeros_like(present_counts), present_counts > 0
            origins = np.divide(value_sums, present_counts, out=zeros, where=has_values)
            grid_steps = [1.0] * len(feature_names)
            class_keys = dict(
                zip(result.column("y").to_pylist(), class_indices.tolist(), strict=True)
            )
            centred_query = self.queries.make_centred_query(
                class_keys, dict(zip(feature_names, origins, strict=True))
            )
            class_indices, result, _ = self._fetch_groups(centred_query, 1)
            value_sums = self._sum_features(class_indices, result, "s", number_type)
        square_sums = self._sum_features(class_indices, result, "q", number_type)
        return class_totals, {
            feature.name: Moments(
                feature,
                present_counts[j],
                value_sums[j],
                square_sums[j],
                missing_counts[j],
                origins[j],
                grid_steps[j],
            )
            for j, feature in enumerate(numeric)
        }

    def _sum_features(
        self, class_indices: Array, result: Any, column_prefix: str, number_type: Any = None
    ) -> Array:
        """One number a numeric feature and class."""
        column_names = [f"{column_prefix}{j}" for j in range(len(self.queries.numeric_features))]
        return np.array(
            [
                self._sum_column(result, column_name, class_indices, number_type=number_type)
                for column_name in column_names
            ]
        )

    def _sum_column(
        self,
        result: Any,
        column_name: str,
        *places: Array,
        width: int | None = None,
        number_type: Any = None,
    ) -> Array:
        """A column added up by class and, where there is a width, by cell; zero where no row is.

        Exactly: drivers give integers as int64, Decimal or hugeint.
        """
        number_type = number_type or (np.int64 if self.queries.weights is None else np.float64)
        to_number = int if number_type is np.int64 else float
        column_numbers = [to_number(value or 0) for value in result.column(column_name).to_pylist()]
        class_count = self.queries.class_cells.size
        group_sums = np.zeros(
            class_count if width is None else (class_count, width), dtype=number_type
        )
        np.add.at(group_sums, places, np.array(column_numbers, dtype=number_type))
        return group_sums

    def _count_tables(self, feature_group: tuple[str, ...]) -> Iterator[tuple[str, Table]]:
        max_groups = prod(self.queries.max_keys[name] for name in feature_group)
        group_cells = [self.queries.cells[name] for name in feature_group]
        class_indices, result, cell_indices = self._fetch_groups(
            self.queries.make_cell_query(feature_group), max_groups, group_cells
        )
        for name, cells, row_cells in zip(feature_group, group_cells, cell_indices, strict=True):
            counts = self._sum_column(result, "n", class_indices, row_cells, width=cells.size)
            yield name, Table(cells, counts)

    def _count_order(self, feature: Numeric) -> OrderStatistics:
        grid = Grid.from_feature(feature)
        class_indices, result, _ = self._fetch_groups(
            self.queries.make_level_query(feature.name), grid.levels + 1
        )
        grid_indices = np.array([int(level) for level in result.column("k").to_pylist()], np.int64)
        used_levels, level_positions = np.unique(grid_indices, return_inverse=True)
        width, places = len(used_levels), (class_indices, level_positions)
        level_counts = self._sum_column(result, "n", *places, width=width, number_type=np.int64)
        return OrderStatistics(feature, grid, used_levels, level_counts)
