"""Class-by-cell counts of numeric columns in memory, as fast as they can be read.

A number's cell is looked up in a fine public table instead of searched for; where a fine cell
holds more than one cut point, it is searched for after all. The result is the same, exactly.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.encoding import Cells, numbers_of
from discreet.schema import Numeric
from discreet.statistics import Table

__all__ = ["Binner", "count_numbers"]

Floats = NDArray[np.float64]
FINE = 4096
CHUNK = 1 << 14
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
        self.first = np.searchsorted(self.inner, left, side="right")
        between = np.searchsorted(self.inner, right, side="right") - self.first
        self.next = np.append(self.inner, np.inf)[self.first]
        self.crowded = between > 1
        self.any_crowded = bool(self.crowded.any())

    def __call__(self, column: NDArray[Any]) -> NDArray[np.intp]:
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
        fine = place.astype(np.intp)
        cell = self.first[fine]
        cell += x >= self.next[fine]
        if self.any_crowded:
            again = np.flatnonzero(self.crowded[fine])
            if again.size:
                cell[again] = np.searchsorted(self.inner, x[again], side="right")
        if absent is not None and self.cells.missing is not None:
            cell[absent] = self.cells.missing
        return np.asarray(cell)


def count_numbers(
    cells: dict[str, Cells], columns: dict[str, Any], codes: NDArray[Any], classes: int
) -> dict[str, Table]:
    """Tables of numeric features, chunk by chunk."""
    binners = {name: Binner(one) for name, one in cells.items()}
    counts = {name: np.zeros(classes * one.size, dtype=np.int64) for name, one in cells.items()}
    for start in range(0, len(codes), CHUNK):
        part = slice(start, start + CHUNK)
        own = codes[part].astype(np.intp)
        for name, binner in binners.items():
            size = cells[name].size
            cell = binner(np.ascontiguousarray(columns[name][part]))
            cell += own * size
            counts[name] += np.bincount(cell, minlength=classes * size)
    return {
        name: Table(one, counts[name].reshape(classes, one.size)) for name, one in cells.items()
    }
