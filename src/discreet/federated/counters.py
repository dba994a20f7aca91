"""Layout of the counters that a round adds up: one long vector of integers.

A record changes one entry of each block, by at most the block's sensitivity. Entries exist for
every class and every cell of the public domain, whether or not anything falls into them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from discreet.arrays import Floats, Integers
from discreet.encoding import Bins, Cells, Grid, numbers_of
from discreet.errors import SchemaError
from discreet.schema import Numeric, Schema
from discreet.statistics import Moments, Statistics, Table, precision_weighted

if TYPE_CHECKING:
    from discreet.tables.in_memory import Contents

__all__ = ["LEAST", "Block", "Coded", "Layout", "Wanted", "wanted_of"]

Kind = Literal["cells", "moments"]
Part = Literal["classes", "cells", "presence", "sum", "squares"]

LEAST = 1e-6
"""Smallest positive noise variance; smaller ones are raised to it for numerical safety."""


@dataclass(frozen=True, eq=False)
class Coded:
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

    def __getitem__(self, rows: Any) -> Coded:
        return Coded(self.values, self.codes[rows])


@dataclass(frozen=True)
class Wanted:
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
    kind: Kind = "cells"
    edges: tuple[float, ...] = ()
    weight: int = 1


@dataclass(frozen=True)
class Block:
    """One table of numbers, of shape (classes, size)."""

    feature: str
    part: Part
    size: int
    sensitivity: int


def wanted_of(
    schema: Schema, bins: Bins = 8, moments: Iterable[str] = (), weights: Any = None
) -> tuple[Wanted, ...]:
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
    named = set(moments)
    if unknown := named - set(schema.names):
        raise SchemaError(f"there is no feature {', '.join(sorted(unknown))}")
    found = []
    for name in schema.names:
        weight = 1 if weights is None else weights.get(name, 1)
        if name in named:
            found.append(Wanted(name, "moments", (), weight))
        else:
            found.append(Wanted(name, "cells", Cells.of(schema, name, bins).edges, weight))
    return tuple(found)


@dataclass(frozen=True)
class Layout:
    """The blocks of a round, one after the other.

    Parameters
    ----------
    schema : Schema
    wanted : sequence of Wanted
    margin : bool
        Whether the class counts have a block of their own; else they are derived.
    """

    schema: Schema
    wanted: tuple[Wanted, ...]
    margin: bool = False

    def __post_init__(self) -> None:
        names = [one.feature for one in self.wanted]
        if not names or len(set(names)) < len(names):
            raise SchemaError("a round asks about at least one feature, and about each once")
        for one in self.wanted:
            feature = self.schema[one.feature]
            if one.weight < 1 or isinstance(one.weight, bool):
                raise SchemaError(f"{one.feature}: a weight is a whole number of at least 1")
            if one.kind == "moments" and not isinstance(feature, Numeric):
                raise SchemaError(f"{one.feature} is not numeric, so it has no moments")
            if isinstance(feature, Numeric) and not feature.bounded:
                raise SchemaError(
                    f"{one.feature} has no public bounds; write Numeric({one.feature!r}, lower, "
                    "upper) with bounds you know"
                )
            if one.kind == "cells" and self.cells(one).edges != one.edges:
                raise SchemaError(f"{one.feature}: the bins do not lie on the public bounds")

    @property
    def classes(self) -> int:
        """Number of classes."""
        return len(self.schema.classes)

    def cells(self, one: Wanted) -> Cells:
        """The cells of what is wanted."""
        bins = {one.feature: one.edges[1:-1]}
        return Cells.of(self.schema, one.feature, bins)

    def blocks_of(self, one: Wanted) -> list[Block]:
        """The blocks of one feature."""
        if one.kind == "cells":
            return [Block(one.feature, "cells", self.cells(one).size, 1)]
        levels = self._grid(one.feature).levels
        optional = self.schema[one.feature].optional
        return [
            Block(one.feature, "presence", 1 + optional, 1),
            Block(one.feature, "sum", 1, levels),
            Block(one.feature, "squares", 1, levels**2),
        ]

    @cached_property
    def blocks(self) -> list[Block]:
        """All blocks, in order."""
        margin = [Block(self.schema.target, "classes", 1, 1)] if self.margin else []
        return margin + [block for one in self.wanted for block in self.blocks_of(one)]

    @property
    def size(self) -> int:
        """Number of counters."""
        return self.classes * sum(block.size for block in self.blocks)

    def only(self, features: Sequence[str]) -> Layout:
        """The part of some features, without the margin."""
        return Layout(self.schema, tuple(w for w in self.wanted if w.feature in features))

    def split(self, vector: NDArray[Any]) -> list[tuple[Block, NDArray[Any]]]:
        """The blocks with their numbers, each of shape (classes, size)."""
        found, start = [], 0
        for block in self.blocks:
            end = start + self.classes * block.size
            found.append((block, vector[start:end].reshape(self.classes, block.size)))
            start = end
        return found

    def vector(self, columns: Mapping[str, Any], codes: NDArray[Any]) -> Integers:
        """Count rows exactly; the result must stay with the holder of the rows."""
        from discreet.tables.in_memory import count_arrays

        return self.vector_of(count_arrays(self.schema, columns, codes, self.contents))

    @property
    def contents(self) -> Contents:
        """What has to be counted of a table: bins, and sums where a feature has moments."""
        from discreet.tables.in_memory import Contents

        sums = any(one.kind == "moments" for one in self.wanted)
        bins = {one.feature: one.edges[1:-1] for one in self.wanted if one.edges}
        return Contents(bins, "grid" if sums else None)

    def vector_of(self, exact: Statistics) -> Integers:
        """Exact statistics, with moments on the grid, as the vector of this layout."""
        if exact.schema.digest != self.schema.digest or not exact.exact:
            raise SchemaError("these statistics follow another schema, or are not exact")
        parts = [np.asarray(exact.totals)] if self.margin else []
        for one in self.wanted:
            if one.kind == "cells":
                parts.append(exact.tables[one.feature].counts.reshape(-1))
                continue
            sums, levels = exact.moments[one.feature], self._grid(one.feature).levels
            presence = [sums.counts, sums.missing][: 1 + self.schema[one.feature].optional]
            parts.append(np.stack(presence, axis=1).reshape(-1))
            # m = 2k - L lies in [-L, L] and 2 m^2 - L^2 in [-L^2, L^2]: central/moments.py
            n, k, kk = (np.asarray(a, np.int64) for a in (sums.counts, sums.totals, sums.squares))
            parts.append(2 * k - n * levels)
            parts.append(8 * kk - 8 * levels * k + n * levels**2)
        return np.concatenate(parts).astype(np.int64)

    def rows(self, one: Wanted, column: Any) -> list[tuple[Block, Integers]]:
        """Return what each row adds to each block of a feature, of shape (rows, size)."""
        if isinstance(column, Coded):
            return [(block, own[column.codes]) for block, own in self.rows(one, column.values)]
        blocks = self.blocks_of(one)
        if one.kind == "cells":
            cell = self.cells(one).column(column)
            return [(blocks[0], np.eye(blocks[0].size, dtype=np.int64)[cell])]
        feature = self.schema[one.feature]
        assert isinstance(feature, Numeric)
        grid = self._grid(one.feature)
        numbers = numbers_of(feature, column, self.schema.missing_tokens, self.schema.outliers)
        absent = np.isnan(numbers)
        m = 2 * grid.index(np.where(absent, grid.lower, numbers)) - grid.levels
        presence = np.stack([~absent, absent], axis=1)[:, : blocks[0].size].astype(np.int64)
        first, second = np.where(absent, 0, m), np.where(absent, 0, 2 * m * m - grid.levels**2)
        return list(zip(blocks, (presence, first[:, None], second[:, None]), strict=True))

    def _grid(self, name: str) -> Grid:
        feature = self.schema[name]
        assert isinstance(feature, Numeric)
        return Grid.of(feature)

    def statistics(self, vector: Integers, variances: Mapping[Block, float]) -> Statistics:
        """Convert noised totals to statistics; class totals are pooled, weighted by precision."""
        tables: dict[str, Table] = {}
        moments: dict[str, Moments] = {}
        found = dict(self.split(vector.astype(np.float64)))
        spread = {b: max(v, LEAST) if v else 0.0 for b, v in variances.items()}
        for one in self.wanted:
            blocks = self.blocks_of(one)
            if one.kind == "cells":
                block, counts = blocks[0], found[blocks[0]]
                noise = np.full(counts.shape, spread[block])
                tables[one.feature] = Table(self.cells(one), counts, noise)
            else:
                moments[one.feature] = self._moments(one, blocks, found, spread)
        known = [block for block in found if knows_totals(block)]
        totals, noise = precision_weighted(
            [found[block].sum(axis=1) for block in known],
            [block.size * spread[block] for block in known],
        )
        return Statistics(self.schema, totals, noise, tables, moments)

    def _moments(
        self,
        one: Wanted,
        blocks: list[Block],
        found: Mapping[Block, Floats],
        spread: Mapping[Block, float],
    ) -> Moments:
        """Back to sums of k and k^2, with the noisy count in the place of n."""
        feature, grid = self.schema[one.feature], self._grid(one.feature)
        assert isinstance(feature, Numeric)
        presence, first, second = (found[block] for block in blocks)
        of_count, of_sum, of_square = (spread[block] for block in blocks)
        counts, levels = presence[:, 0], grid.levels
        missing = presence[:, 1] if presence.shape[1] > 1 else np.zeros(self.classes)
        totals = (first[:, 0] + counts * levels) / 2
        squares = (second[:, 0] + 8 * levels * totals - counts * levels**2) / 8
        of_totals = (of_sum + levels**2 * of_count) / 4
        of_squares = (of_square + 16 * levels**2 * of_sum + 9 * levels**4 * of_count) / 64
        noise = np.repeat([[of_count], [of_totals], [of_squares]], self.classes, axis=1)
        origin = np.full(self.classes, grid.lower)
        return Moments(feature, counts, totals, squares, missing, origin, grid.step, noise)


def knows_totals(block: Block) -> bool:
    """Whether a block's rows add up to the class totals."""
    return block.part in ("classes", "cells", "presence")
