"""The bins of many numbers at once, by one multiplication and one comparison each.

The range from the first to the last edge is cut into many equal steps, and a table says for each
step which bin begins it. A number is looked up by its step and then compared with the next edge.
The step of a number may be one too low or too high, because it is rounded; so the table looks one
step further to both sides, and a step near which there are two edges or more is marked: its
numbers are searched for. The bin is that of a search among the edges, exactly, wherever they are.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.arrays import Booleans, CellCodes, Floats

__all__ = ["find_bins"]

MIN_LOOKUP_STEPS = 1 << 13
"""Least number of equal steps from the first to the last edge."""
STEPS_PER_BIN = 8
"""Least number of steps per bin, so that in most steps there is at most one edge."""
MIN_ROWS_PER_STEP = 0.25
"""With fewer numbers per step they are searched for: the table would cost more than it saves."""
CHUNK_ROWS = 1 << 15
"""Numbers that are looked up at once, in the processor's cache."""
MAX_CACHED_LOOKUPS = 256
"""Tables that are kept in the process, of at least 32 kB each."""


def find_bins(edges: Sequence[float], numbers: Floats) -> CellCodes:
    """Find the last bin whose left edge each number reaches; the first and the last are open.

    Parameters
    ----------
    edges : sequence of float
        Increasing; from the left edge of the first bin to the right edge of the last.
    numbers : array of float
        NaN comes after all edges, as when it is sorted.

    Examples
    --------
    >>> find_bins((0.0, 1.0, 2.0, 4.0), np.array([0.5, 1.0, 3.9, 4.0])).tolist()
    [0, 1, 2, 2]
    """
    lookup = None
    if len(numbers) >= MIN_ROWS_PER_STEP * _compute_step_count(len(edges)):
        lookup = _build_lookup(tuple(edges))
    if lookup is None:
        return np.searchsorted(np.asarray(edges[1:-1]), numbers, side="right").astype(np.int32)
    bins = np.empty(len(numbers), dtype=np.int32)
    for first_row in range(0, len(numbers), CHUNK_ROWS):
        rows = slice(first_row, first_row + CHUNK_ROWS)
        bins[rows] = lookup.find_chunk_bins(np.ascontiguousarray(numbers[rows]))
    return bins


def _compute_step_count(edge_count: int) -> int:
    """Number of steps, a power of two: divided by it, a number keeps all its digits."""
    return max(MIN_LOOKUP_STEPS, STEPS_PER_BIN << edge_count.bit_length())


@lru_cache(MAX_CACHED_LOOKUPS)
def _build_lookup(edges: tuple[float, ...]) -> BinLookup | None:
    """The table of these edges; None if their range is infinite, or too small to be divided."""
    edge_range, step_count = edges[-1] - edges[0], _compute_step_count(len(edges))
    if not math.isfinite(edge_range) or not math.isfinite(step_count / edge_range):
        return None
    return BinLookup(edges, step_count)


class BinLookup:
    """A table from equal steps to bins.

    Parameters
    ----------
    edges : tuple of float
    step_count : int
        A power of two.
    """

    def __init__(self, edges: tuple[float, ...], step_count: int) -> None:
        self.lower, self.step_count = edges[0], step_count
        edge_range = edges[-1] - edges[0]
        self.steps_per_unit = step_count / edge_range
        self.inner_edges: Floats = np.asarray(edges[1:-1])
        self.next_edges = np.append(self.inner_edges, np.inf)
        # a number that is put into step k is between the points k - 1 and k + 2
        steps = np.arange(step_count + 1)
        with np.errstate(over="ignore"):
            left_points = self.lower + edge_range / step_count * (steps - 1)
            right_points = self.lower + edge_range / step_count * (steps + 2)
        low_bins = np.searchsorted(self.inner_edges, left_points, side="right")
        high_bins = np.searchsorted(self.inner_edges, right_points, side="right")
        self.low_bins: NDArray[np.int32] = low_bins.astype(np.int32)
        self.is_crowded: Booleans = high_bins > low_bins + 1
        self.has_crowded_steps = bool(self.is_crowded.any())

    def find_chunk_bins(self, numbers: Floats) -> CellCodes:
        """Find the bin of each of some numbers."""
        with np.errstate(invalid="ignore", over="ignore"):
            positions = numbers - self.lower
            positions *= self.steps_per_unit
        searched_rows = None
        if not (positions.min() >= 0 and positions.max() <= self.step_count):
            # beyond the edges, or NaN
            searched_rows = np.flatnonzero(~((positions >= 0) & (positions <= self.step_count)))
            positions[searched_rows] = 0
        steps = positions.astype(np.int32)
        bins: CellCodes = np.take(self.low_bins, steps)
        bins += numbers >= np.take(self.next_edges, bins)
        if searched_rows is not None:
            bins[searched_rows] = self._search(numbers[searched_rows])
        if self.has_crowded_steps:
            crowded_rows = np.flatnonzero(np.take(self.is_crowded, steps))
            bins[crowded_rows] = self._search(numbers[crowded_rows])
        return bins

    def _search(self, numbers: Floats) -> Any:
        return np.searchsorted(self.inner_edges, numbers, side="right")
