"""Exact statistics of columns in memory, with numpy alone."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from discreet.arrays import Booleans, CellCodes, Floats
from discreet.errors import RowError, SchemaError
from discreet.schema.cells import Bins, Cells, Grid, build_cells, parse_numbers, refuse_infinity
from discreet.schema.schema import Numeric, Schema
from discreet.statistics.statistics import Moments, OrderStatistics, Statistics, Table

__all__ = [
    "CountRequest",
    "check_weights",
    "compute_class_moments",
    "count_arrays",
    "count_bins",
    "count_table",
]

CHUNK_ROWS = 4096
"""Rows whose moments are summed at once, in the processor's cache."""
CACHED_ROWS = 1 << 15
"""Rows that are worked on at once, so that they stay in the processor's cache."""


@dataclass(frozen=True)
class CountRequest:
    """What to count besides class totals and the tables of categorical features.

    Parameters
    ----------
    bins : int or mapping, optional
        Also count numeric features by bin.
    moments : {"float", "grid", None}
        Sums of numeric features: accurate floats, exact integers on the public grid, or none.
    order : bool, default False
        Also keep per-class order statistics on the grid.
    """

    bins: Bins | None = None
    moments: Literal["float", "grid"] | None = "float"
    order: bool = False


DEFAULT_REQUEST = CountRequest()


def count_arrays(
    schema: Schema,
    columns: Mapping[str, Any],
    class_codes: CellCodes,
    request: CountRequest = DEFAULT_REQUEST,
    weights: Floats | None = None,
) -> Statistics:
    """Count columns by class.

    Parameters
    ----------
    schema : Schema
    columns : mapping of feature name to column
    class_codes : array of int
        The class index of each row.
    request : CountRequest
    weights : array of float, optional
        How much each row counts; only for statistics that promise nothing.
    """
    class_count = len(schema.classes)
    weights = check_weights(weights, len(class_codes))
    class_totals = np.bincount(class_codes, weights, minlength=class_count)
    cells_by_feature = build_cells(schema, request.bins)
    tables: dict[str, Table] = {}
    moments_by_feature: dict[str, Moments] = {}
    order_statistics: dict[str, OrderStatistics] = {}
    float_columns: list[tuple[Numeric, Floats]] = []
    for feature in schema.features:
        column, name = columns[feature.name], feature.name
        if isinstance(feature, Numeric):
            column = parse_numbers(feature, column, schema.missing_tokens, schema.outliers)
            if request.moments == "float":
                float_columns.append((feature, column))
            elif request.moments == "grid":
                moments_by_feature[name] = _compute_grid_moments(
                    feature, column, class_codes, class_count, weights
                )
            if request.order:
                order_statistics[name] = _compute_order_statistics(
                    feature, column, class_codes, class_count
                )
        if (cells := cells_by_feature.get(name)) is not None:
            is_parsed = isinstance(feature, Numeric)
            row_cells = cells.encode_numbers(column) if is_parsed else cells.encode_column(column)
            tables[name] = count_table(cells, row_cells, class_codes, class_count, weights)
    if float_columns:
        float_features = [feature for feature, _ in float_columns]
        number_arrays = [numbers for _, numbers in float_columns]
        moments_by_feature |= compute_class_moments(
            float_features, number_arrays, class_codes, class_count, weights
        )
    return Statistics(
        schema,
        class_totals,
        tables=tables,
        moments=moments_by_feature,
        order_statistics=order_statistics,
    )


def check_weights(weights: Any, row_count: int) -> Floats | None:
    """Weights as floats, or an error that says what is wrong with them."""
    if weights is None:
        return None
    float_weights = np.asarray(weights, dtype=np.float64)
    if float_weights.shape != (row_count,):
        raise SchemaError(f"weights of shape {float_weights.shape} do not fit {row_count} rows")
    if not np.isfinite(float_weights).all() or (float_weights < 0).any():
        is_wrong = ~np.isfinite(float_weights) | (float_weights < 0)
        first_row = int(np.argmax(is_wrong))
        raise RowError(
            f"a weight is {float_weights[first_row]:g}; give each row a finite number of at least "
            "0, and rows that shall not count a weight of 0",
            first_row,
        )
    return float_weights


def count_table(
    cells: Cells,
    cell_indices: NDArray[Any],
    class_codes: NDArray[Any],
    class_count: int,
    weights: Floats | None = None,
) -> Table:
    """Class-by-cell counts of rows whose cell and class are known."""
    flat_indices = class_codes.astype(np.int64) * cells.size + cell_indices
    counts = np.bincount(flat_indices, weights, minlength=class_count * cells.size)
    return Table(cells, counts.reshape(class_count, cells.size))


def _compute_grid_moments(
    feature: Numeric,
    numbers: Floats,
    class_codes: NDArray[Any],
    class_count: int,
    weights: Floats | None,
) -> Moments:
    if weights is not None:
        raise SchemaError("sums on the grid are whole numbers; weights need moments='float'")
    grid = Grid.from_feature(feature)
    is_present = ~np.isnan(numbers)
    grid_indices, present_codes = grid.to_indices(numbers[is_present]), class_codes[is_present]
    value_sums, square_sums = np.zeros((2, class_count), dtype=np.int64)
    np.add.at(value_sums, present_codes, grid_indices)
    np.add.at(square_sums, present_codes, grid_indices * grid_indices)
    present_counts = np.bincount(present_codes, minlength=class_count)
    missing_counts = np.bincount(class_codes[~is_present], minlength=class_count)
    origins = np.full(class_count, grid.lower)
    return Moments(
        feature, present_counts, value_sums, square_sums, missing_counts, origins, grid.step
    )


def _compute_order_statistics(
    feature: Numeric, numbers: Floats, class_codes: NDArray[Any], class_count: int
) -> OrderStatistics:
    grid = Grid.from_feature(feature)
    is_present = ~np.isnan(numbers)
    used_levels, level_positions = np.unique(
        grid.to_indices(numbers[is_present]), return_inverse=True
    )
    flat_indices = class_codes[is_present].astype(np.int64) * len(used_levels) + level_positions
    level_counts = np.bincount(flat_indices, minlength=class_count * len(used_levels)).reshape(
        class_count, len(used_levels)
    )
    return OrderStatistics(feature, grid, used_levels, level_counts)


def compute_class_moments(
    features: list[Numeric],
    columns: list[Floats],
    class_codes: NDArray[Any],
    class_count: int,
    weights: Floats | None = None,
) -> dict[str, Moments]:
    """Sums about the class means of several columns at once, in two passes over cached chunks.

    The second pass subtracts the means of the first, so that no digits are lost even where the
    values are far from zero and the classes far apart.
    """
    row_count, sums_shape = len(class_codes), (class_count, len(features))
    present_counts, missing_counts, raw_sums, centred_sums, square_sums = (
        np.zeros(sums_shape) for _ in range(5)
    )
    chunk_buffer = np.empty((min(CHUNK_ROWS, row_count), len(features)))

    def iter_chunks() -> Iterator[tuple[Floats, NDArray[Any], Floats, Booleans | None]]:
        for first_row in range(0, row_count, CHUNK_ROWS):
            row_slice = slice(first_row, first_row + CHUNK_ROWS)
            chunk_values = chunk_buffer[: len(class_codes[row_slice])]
            for column_index, column in enumerate(columns):
                chunk_values[:, column_index] = column[row_slice]
            class_members = (class_codes[row_slice, None] == np.arange(class_count)).astype(
                np.float64
            )
            if weights is not None:
                class_members *= weights[row_slice, None]
            is_absent = None
            with np.errstate(over="ignore", invalid="ignore"):
                is_finite = bool(np.isfinite(chunk_values.sum()))
            if not is_finite:
                refuse_infinity(chunk_values, [feature.name for feature in features])
                is_absent = np.isnan(chunk_values)
                chunk_values[is_absent] = 0.0
            yield chunk_values, class_codes[row_slice], class_members.T, is_absent

    for chunk_values, _, class_members, is_absent in iter_chunks():
        raw_sums += class_members @ chunk_values
        present_counts += class_members.sum(axis=1)[:, None]
        if is_absent is not None:
            missing_counts += class_members @ is_absent
    present_counts -= missing_counts
    class_means = np.divide(
        raw_sums, present_counts, out=np.zeros(sums_shape), where=present_counts > 0
    )
    for chunk_values, chunk_codes, class_members, is_absent in iter_chunks():
        chunk_values -= class_means[chunk_codes]
        if is_absent is not None:
            chunk_values[is_absent] = 0.0
        centred_sums += class_members @ chunk_values
        np.multiply(chunk_values, chunk_values, out=chunk_values)
        square_sums += class_members @ chunk_values
    return {
        feature.name: Moments(
            feature,
            present_counts[:, j],
            centred_sums[:, j],
            square_sums[:, j],
            missing_counts[:, j],
            class_means[:, j],
        )
        for j, feature in enumerate(features)
    }


def count_bins(
    cells: Mapping[str, Cells],
    batches: Iterable[tuple[Mapping[str, NDArray[Any]], NDArray[Any]]],
    class_count: int,
) -> dict[str, Table]:
    """Class-by-cell tables of numeric features, over batches of columns and class indices."""
    flat_counts = {
        table_name: np.zeros(class_count * feature_cells.size, dtype=np.int64)
        for table_name, feature_cells in cells.items()
    }
    for columns, class_codes in batches:
        for first_row in range(0, len(class_codes), CACHED_ROWS):
            row_slice = slice(first_row, first_row + CACHED_ROWS)
            chunk_codes = class_codes[row_slice].astype(np.intp)
            row_offsets = {
                cell_count: chunk_codes * cell_count
                for cell_count in {feature_cells.size for feature_cells in cells.values()}
            }
            for name, feature_cells in cells.items():
                cell_count = feature_cells.size
                cell_indices = feature_cells.encode_column(columns[name][row_slice])
                flat_counts[name] += np.bincount(
                    row_offsets[cell_count] + cell_indices, minlength=class_count * cell_count
                )
    return {
        table_name: Table(
            feature_cells, flat_counts[table_name].reshape(class_count, feature_cells.size)
        )
        for table_name, feature_cells in cells.items()
    }
