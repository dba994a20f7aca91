"""Layout of the counters that a round adds up: one long vector of integers.

A record changes one entry of each block, by at most the block's sensitivity. Entries exist for
every class and every cell of the public domain, whether or not anything falls into them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from discreet.arrays import Array, Floats, Integers
from discreet.errors import SchemaError
from discreet.schema.binning import compute_noise_edges
from discreet.schema.cells import Bins, Cells, Grid, parse_numbers
from discreet.schema.schema import Numeric, Schema
from discreet.statistics.statistics import (
    Moments,
    Statistics,
    Table,
    compute_precision_weighted_mean,
)

if TYPE_CHECKING:
    from discreet.federated.judging import Judging
    from discreet.tables.in_memory import CountRequest

__all__ = [
    "CLASS_TOTAL_PARTS",
    "MIN_NOISE_VARIANCE",
    "PEOPLE_PER_PROVIDER",
    "Block",
    "Column",
    "DictionaryColumn",
    "FeatureRequest",
    "Layout",
    "compute_default_bins",
    "make_feature_requests",
]

RequestKind = Literal["cells", "moments"]
BlockPart = Literal["classes", "cells", "presence", "sum", "squares", "judged"]

CLASS_TOTAL_PARTS: tuple[BlockPart, ...] = ("classes", "cells", "presence")
"""Blocks whose rows add up to the class totals."""
MIN_NOISE_VARIANCE = 1e-6
"""Smallest positive noise variance; smaller ones are raised to it for numerical safety."""
PEOPLE_PER_PROVIDER = 1000
"""People expected of each provider unless something else is agreed; cuts for 3,000 people were
within .01 of the best ones from 500 to 20,000: docs/experiments/federated.md, "Finer cuts"."""


@dataclass(frozen=True, eq=False)
class DictionaryColumn:
    """A long column as its distinct values, and which of them each row has.

    Parameters
    ----------
    values : array
    codes : array of int
    """

    values: NDArray[Any]
    codes: NDArray[Any]

    def __len__(self) -> int:
        return len(self.codes)

    def __getitem__(self, rows: Any) -> DictionaryColumn:
        return DictionaryColumn(self.values, self.codes[rows])


Column: TypeAlias = Array | DictionaryColumn
"""A column of a table in memory."""


@dataclass(frozen=True)
class FeatureRequest:
    """The statistics that a round requests of one feature.

    Parameters
    ----------
    feature : str
    kind : {"cells", "moments"}
        Counts by class and cell, or sums and sums of squares on the public grid.
    edges : tuple of float
        Of the bins of a numeric feature that is counted by cell.
    weight : int
        Its share of the budget, relative to the weights of the others.
    """

    feature: str
    kind: RequestKind = "cells"
    edges: tuple[float, ...] = ()
    weight: int = 1


@dataclass(frozen=True)
class Block:
    """One table of numbers, of shape (classes, size); of judged candidates, of shape (1, size)."""

    feature: str
    part: BlockPart
    size: int
    sensitivity: int


def compute_default_bins(
    schema: Schema,
    epsilon: float,
    people: int,
    *,
    partition: Literal["horizontal", "vertical"] = "horizontal",
) -> dict[str, list[float]]:
    """Compute the cuts of numeric features by public numbers alone: more for less noise.

    Parameters
    ----------
    schema : Schema
    epsilon : float
        Of all tables together; they share it equally.
    people : int
        How many are expected in all tables together, as the parties say beforehand. It must not be
        a count of the rows that the guarantee protects.
    partition : {"horizontal", "vertical"}
        In a vertical round a replaced record counts twice.

    Examples
    --------
    >>> schema = Schema([Numeric("age", 20, 100)], "retired", ["no", "yes"])
    >>> bins = compute_default_bins(schema, 1.0, 3000)
    >>> len(bins["age"]) + 1
    32
    """
    changed_records = 2 if partition == "vertical" else 1
    noise_scale = max(changed_records * len(schema.features) / epsilon, 1.0)
    signal_to_noise = people / (len(schema.classes) * noise_scale)
    return {
        feature.name: compute_noise_edges(feature, signal_to_noise, len(schema.classes))
        for feature in schema.features
        if isinstance(feature, Numeric) and feature.is_bounded
    }


def make_feature_requests(
    schema: Schema, bins: Bins = 8, moments: Iterable[str] = (), weights: Any = None
) -> tuple[FeatureRequest, ...]:
    """Make the requests for a model: cells of all features, moments of those that are named.

    Parameters
    ----------
    schema : Schema
    bins : int or mapping
        How numeric features are cut.
    moments : iterable of str
        Numeric features that are asked for sums instead of bins.
    weights : mapping of feature name to int, optional
    """
    moment_features = set(moments)
    if unknown_features := moment_features - set(schema.names):
        raise SchemaError(f"there is no feature {', '.join(sorted(unknown_features))}")
    requests = []
    for name in schema.names:
        weight = 1 if weights is None else weights.get(name, 1)
        if name in moment_features:
            requests.append(FeatureRequest(name, "moments", (), weight))
        else:
            requests.append(
                FeatureRequest(name, "cells", Cells.from_schema(schema, name, bins).edges, weight)
            )
    return tuple(requests)


@dataclass(frozen=True)
class Layout:
    """The blocks of a round, one after the other.

    Parameters
    ----------
    schema : Schema
    requests : sequence of FeatureRequest
    margin : bool
        Whether the class counts have a block of their own; else they are derived.
    judging : Judging, optional
        Candidate models: then rows are counted that they get right, and nothing else. The requests
        say into which cells a row is read.
    """

    schema: Schema
    requests: tuple[FeatureRequest, ...]
    margin: bool = False
    judging: Judging | None = None

    def __post_init__(self) -> None:
        feature_names = [request.feature for request in self.requests]
        if not feature_names or len(set(feature_names)) < len(feature_names):
            raise SchemaError("a round asks about at least one feature, and about each once")
        for request in self.requests:
            feature = self.schema[request.feature]
            if request.weight < 1 or isinstance(request.weight, bool):
                raise SchemaError(f"{request.feature}: a weight is a whole number of at least 1")
            if request.kind == "moments" and not isinstance(feature, Numeric):
                raise SchemaError(f"{request.feature} is not numeric, so it has no moments")
            if isinstance(feature, Numeric) and not feature.is_bounded:
                raise SchemaError(
                    f"{request.feature} has no public bounds; write Numeric({request.feature!r}, "
                    "lower, upper) with bounds you know"
                )
            if request.kind == "cells" and self.make_cells(request).edges != request.edges:
                raise SchemaError(f"{request.feature}: the bins do not end at the public bounds")
        if self.judging is not None:
            if self.margin or any(request.kind != "cells" for request in self.requests):
                raise SchemaError("candidate models are judged by cells alone; sum no feature")
            cell_counts = {
                request.feature: self.make_cells(request).size for request in self.requests
            }
            self.judging.check_cells(len(self.schema.classes), cell_counts)

    def make_cells(self, request: FeatureRequest) -> Cells:
        """The cells of what is wanted."""
        bins = {request.feature: request.edges[1:-1]}
        return Cells.from_schema(self.schema, request.feature, bins)

    def list_blocks(self, request: FeatureRequest) -> list[Block]:
        """The blocks of one feature; of candidates there is a single block for all."""
        if self.judging is not None:
            return []
        if request.kind == "cells":
            return [Block(request.feature, "cells", self.make_cells(request).size, 1)]
        levels = self._make_grid(request.feature).levels
        is_optional = self.schema[request.feature].optional
        return [
            Block(request.feature, "presence", 1 + is_optional, 1),
            Block(request.feature, "sum", 1, levels),
            Block(request.feature, "squares", 1, levels**2),
        ]

    @cached_property
    def blocks(self) -> list[Block]:
        """All blocks, in order."""
        if self.judging is not None:
            judged_size, sensitivity = self.judging.counter_count, self.judging.sensitivity
            return [Block(self.schema.target, "judged", judged_size, sensitivity)]
        margin_blocks = [Block(self.schema.target, "classes", 1, 1)] if self.margin else []
        return margin_blocks + [
            block for request in self.requests for block in self.list_blocks(request)
        ]

    @property
    def rows_per_block(self) -> int:
        """Number of rows of every block: the classes, or one where candidates are judged."""
        return len(self.schema.classes) if self.judging is None else 1

    @property
    def size(self) -> int:
        """Number of counters."""
        return self.rows_per_block * sum(block.size for block in self.blocks)

    def select_features(self, feature_names: Sequence[str]) -> Layout:
        """The part of some features, without the margin."""
        return Layout(
            self.schema,
            tuple(request for request in self.requests if request.feature in feature_names),
        )

    def split(self, vector: NDArray[Any]) -> list[tuple[Block, NDArray[Any]]]:
        """The blocks with their numbers, each of shape (rows_per_block, size)."""
        block_tables, start, class_count = [], 0, self.rows_per_block
        for block in self.blocks:
            end = start + class_count * block.size
            block_tables.append((block, vector[start:end].reshape(class_count, block.size)))
            start = end
        return block_tables

    def count_rows(self, columns: Mapping[str, Any], class_codes: NDArray[Any]) -> Integers:
        """Count rows exactly; the result must stay with the holder of the rows."""
        if self.judging is not None:
            cell_indices = {
                request.feature: self.make_cells(request).encode_column(columns[request.feature])
                for request in self.requests
            }
            return self.judging.count_rows(cell_indices, class_codes)
        from discreet.tables.in_memory import count_arrays

        return self.encode_statistics(
            count_arrays(self.schema, columns, class_codes, self.count_request)
        )

    @property
    def count_request(self) -> CountRequest:
        """What has to be counted of a table: bins, and sums where a feature has moments."""
        from discreet.tables.in_memory import CountRequest

        has_moments = any(request.kind == "moments" for request in self.requests)
        bins = {request.feature: request.edges[1:-1] for request in self.requests if request.edges}
        return CountRequest(bins, "grid" if has_moments else None)

    def encode_statistics(self, exact_statistics: Statistics) -> Integers:
        """Exact statistics, with moments on the grid, as the vector of this layout."""
        if exact_statistics.schema.digest != self.schema.digest or not exact_statistics.is_exact:
            raise SchemaError("these statistics follow another schema, or are not exact")
        flat_blocks = [np.asarray(exact_statistics.totals)] if self.margin else []
        for request in self.requests:
            if request.kind == "cells":
                flat_blocks.append(exact_statistics.tables[request.feature].counts.reshape(-1))
                continue
            moment_sums = exact_statistics.moments[request.feature]
            levels = self._make_grid(request.feature).levels
            presence_counts = [moment_sums.counts, moment_sums.missing][
                : 1 + self.schema[request.feature].optional
            ]
            flat_blocks.append(np.stack(presence_counts, axis=1).reshape(-1))
            # m = 2k - L lies in [-L, L] and 2 m^2 - L^2 in [-L^2, L^2]: central/moments.py
            n, k, kk = (
                np.asarray(array, np.int64)
                for array in (moment_sums.counts, moment_sums.totals, moment_sums.squares)
            )
            flat_blocks.append(2 * k - n * levels)
            flat_blocks.append(8 * kk - 8 * levels * k + n * levels**2)
        return np.concatenate(flat_blocks).astype(np.int64)

    def encode_rows(self, request: FeatureRequest, column: Any) -> list[tuple[Block, Integers]]:
        """Return what each row adds to each block of a feature, of shape (rows, size)."""
        if isinstance(column, DictionaryColumn):
            return [
                (block, row_values[column.codes])
                for block, row_values in self.encode_rows(request, column.values)
            ]
        blocks = self.list_blocks(request)
        if request.kind == "cells":
            cell_indices = self.make_cells(request).encode_column(column)
            return [(blocks[0], np.eye(blocks[0].size, dtype=np.int64)[cell_indices])]
        feature = self.schema[request.feature]
        assert isinstance(feature, Numeric)
        grid = self._make_grid(request.feature)
        numbers = parse_numbers(feature, column, self.schema.missing_tokens, self.schema.outliers)
        is_absent = np.isnan(numbers)
        m = 2 * grid.to_indices(np.where(is_absent, grid.lower, numbers)) - grid.levels
        presence_flags = np.stack([~is_absent, is_absent], axis=1)[:, : blocks[0].size].astype(
            np.int64
        )
        centred_values = np.where(is_absent, 0, m)
        centred_squares = np.where(is_absent, 0, 2 * m * m - grid.levels**2)
        return list(
            zip(
                blocks,
                (presence_flags, centred_values[:, None], centred_squares[:, None]),
                strict=True,
            )
        )

    def _make_grid(self, feature_name: str) -> Grid:
        feature = self.schema[feature_name]
        assert isinstance(feature, Numeric)
        return Grid.from_feature(feature)

    def decode_statistics(
        self, noised_totals: Integers, variances: Mapping[Block, float]
    ) -> Statistics:
        """Convert noised totals to statistics; class totals are pooled, weighted by precision."""
        tables: dict[str, Table] = {}
        moments: dict[str, Moments] = {}
        block_tables = dict(self.split(noised_totals.astype(np.float64)))
        block_variances = {
            block: max(variance, MIN_NOISE_VARIANCE) if variance else 0.0
            for block, variance in variances.items()
        }
        for request in self.requests:
            blocks = self.list_blocks(request)
            if request.kind == "cells":
                block, counts = blocks[0], block_tables[blocks[0]]
                cell_variances = np.full(counts.shape, block_variances[block])
                tables[request.feature] = Table(self.make_cells(request), counts, cell_variances)
            else:
                moments[request.feature] = self._decode_moments(
                    request, blocks, block_tables, block_variances
                )
        total_blocks = [block for block in block_tables if block.part in CLASS_TOTAL_PARTS]
        class_totals, total_variances = compute_precision_weighted_mean(
            [block_tables[block].sum(axis=1) for block in total_blocks],
            [block.size * block_variances[block] for block in total_blocks],
        )
        return Statistics(self.schema, class_totals, total_variances, tables, moments)

    def _decode_moments(
        self,
        request: FeatureRequest,
        blocks: list[Block],
        block_tables: Mapping[Block, Floats],
        block_variances: Mapping[Block, float],
    ) -> Moments:
        """Back to sums of k and k^2, with the noisy count in the place of n."""
        feature, grid = self.schema[request.feature], self._make_grid(request.feature)
        assert isinstance(feature, Numeric)
        presence_counts, centred_sums, centred_squares = (block_tables[block] for block in blocks)
        count_variance, sum_variance, square_variance = (block_variances[block] for block in blocks)
        counts, levels, class_count = presence_counts[:, 0], grid.levels, len(presence_counts)
        missing_counts = (
            presence_counts[:, 1] if presence_counts.shape[1] > 1 else np.zeros(class_count)
        )
        totals = (centred_sums[:, 0] + counts * levels) / 2
        squares = (centred_squares[:, 0] + 8 * levels * totals - counts * levels**2) / 8
        totals_variance = (sum_variance + levels**2 * count_variance) / 4
        squares_variance = (
            square_variance + 16 * levels**2 * sum_variance + 9 * levels**4 * count_variance
        ) / 64
        moment_variances = np.repeat(
            [[count_variance], [totals_variance], [squares_variance]], class_count, axis=1
        )
        origins = np.full(class_count, grid.lower)
        return Moments(
            feature, counts, totals, squares, missing_counts, origins, grid.step, moment_variances
        )
