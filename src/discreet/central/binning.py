"""Class-by-cell counts of numeric columns in memory, as fast as they can be read.

A number's cell is looked up in a fine public table instead of searched for; near a cut point it
is searched for after all. The result is the same, exactly.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.encoding import Cells, numbers_of
from discreet.schema import Numeric
from discreet.statistics import Table

__all__ = ["Binner", "Counter"]

FINE = 1 << 15
CHUNK = 1 << 15
"""Rows worked on at once, so that they stay in the processor's cache."""


class Binner:
    """The cells of a bounded numeric feature, for many numbers."""

    def __init__(self, cells: Cells) -> None:
        assert isinstance(cells.feature, Numeric)
        self.cells, self.feature = cells, cells.feature
        self.inner = np.asarray(cells.edges[1:-1])
        self.lower = self.feature.lower
        span = self.feature.upper - self.lower
        self.scale = FINE / span
        # rounding may place a number one fine cell too low or too high: look that far around it
        left = self.lower + span * (np.arange(FINE + 1) - 1) / FINE
        right = self.lower + span * (np.arange(FINE + 1) + 2) / FINE
        low = np.searchsorted(self.inner, left, side="right")
        high = np.searchsorted(self.inner, right, side="right")
        small = np.int16 if cells.size <= np.iinfo(np.int16).max else np.int32
        self.cell: NDArray[Any] = np.where(low == high, low, -1).astype(small)

    def __call__(self, column: NDArray[Any]) -> NDArray[Any]:
        """Cell of each number; NaN is missing."""
        x, absent = column, None
        inside = column.dtype == np.float64 and not self.feature.integer
        # comparisons with NaN are false, so that a missing value goes the careful way too
        if not (inside and x.min() >= self.lower and x.max() <= self.feature.upper):
            x = numbers_of(self.feature, column, self.cells.tokens, self.cells.outliers)
            absent = np.isnan(x) if np.isnan(x.sum()) else None
        if absent is not None:
            x = np.where(absent, self.lower, x)
        place = x - self.lower
        place *= self.scale
        cell: NDArray[Any] = self.cell[place.astype(np.int32)]
        near = np.flatnonzero(cell < 0)
        if near.size:
            cell[near] = np.searchsorted(self.inner, x[near], side="right")
        if absent is not None and self.cells.missing is not None:
            cell[absent] = self.cells.missing
        return np.asarray(cell)


class Counter:
    """Class-by-cell tables of numeric features that grow with every batch of rows."""

    def __init__(self, cells: Mapping[str, Cells], classes: int) -> None:
        self.cells, self.classes = cells, classes
        self.binners = {name: Binner(one) for name, one in cells.items()}
        self.counts = {n: np.zeros(classes * c.size, dtype=np.int64) for n, c in cells.items()}

    def add(self, columns: Mapping[str, NDArray[Any]], codes: NDArray[Any]) -> None:
        """Count a batch, chunk by chunk."""
        for start in range(0, len(codes), CHUNK):
            part = slice(start, start + CHUNK)
            own = codes[part].astype(np.intp)
            rows = {size: own * size for size in {one.size for one in self.cells.values()}}
            for name, binner in self.binners.items():
                size = self.cells[name].size
                cell = binner(np.ascontiguousarray(columns[name][part]))
                self.counts[name] += np.bincount(rows[size] + cell, minlength=self.classes * size)

    def tables(self) -> dict[str, Table]:
        """What has been counted so far."""
        return {
            name: Table(one, self.counts[name].reshape(self.classes, one.size))
            for name, one in self.cells.items()
        }
