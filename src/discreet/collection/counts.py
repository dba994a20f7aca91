"""Counts of distinct whole answers: a sparse joint table."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from discreet.arrays import Integers
from discreet.collection.protocol import LARGEST, WholeChannel
from discreet.errors import EstimationError

__all__ = ["WholeCounts"]

WAITING = 1 << 16
"""Pending rows above which equal rows are merged."""


class WholeCounts:
    """Distinct answers with their multiplicities.

    The joint table is kept, not its margins, so that any predicate can be estimated.
    """

    def __init__(self, channel: WholeChannel) -> None:
        self.channel = channel
        self._rows = np.zeros((0, channel.width), np.int64)
        self._times = np.zeros(0, np.int64)
        self._waiting: list[tuple[Integers, Integers]] = []

    def add(self, rows: Integers, times: Integers) -> None:
        """Add answers; negative multiplicities remove them."""
        self._waiting.append((rows, times))
        if sum(len(some) for some, _ in self._waiting) > WAITING:
            self._settle()

    def _settle(self) -> None:
        if not self._waiting:
            return
        rows = np.concatenate([self._rows, *(some for some, _ in self._waiting)])
        often = np.concatenate([self._times, *(some for _, some in self._waiting)])
        self._waiting = []
        if int(np.abs(often).sum(dtype=np.float64)) > LARGEST:
            raise EstimationError("the counts would go beyond 2^62 and no longer be exact")
        self._rows, self._times = _merged(rows, often, self.channel.sizes)

    def distinct(self) -> tuple[Integers, Integers]:
        """Return the distinct answers in ascending order, and how often each was sent."""
        self._settle()
        return self._rows, self._times

    def counts(self, answers: int) -> bool:
        """Whether the multiplicities are positive and add up to this number of answers."""
        _, times = self.distinct()
        return bool((times > 0).all()) and int(times.sum()) == answers

    def margin(self, names: Sequence[str]) -> Integers:
        """Count the combinations of answers to these questions; one axis per name."""
        rows, times = self.distinct()
        places = [self.channel.names.index(name) for name in names]
        shape = tuple(self.channel.sizes[place] for place in places)
        flat = np.zeros(math.prod(shape), np.int64)
        if len(rows):
            np.add.at(flat, np.ravel_multi_index(tuple(rows[:, places].T), shape), times)
        return flat.reshape(shape)

    def read(self, rows: list[list[int]], times: list[int]) -> None:
        """Add rows that come from a file, after checking all of them."""
        if len(rows) != len(times) or any(len(row) != self.channel.width for row in rows):
            raise EstimationError("its rows do not have the right lengths")
        if min(times, default=1) < 1 or sum(times) > LARGEST:
            raise EstimationError("a count is below 1, or the counts go beyond 2^62")
        sizes = self.channel.sizes
        if any(not 0 <= a < size for row in rows for a, size in zip(row, sizes, strict=True)):
            raise EstimationError("an answer is not one of the public ones")
        self.add(np.array(rows, np.int64).reshape(-1, len(sizes)), np.array(times, np.int64))
        if len(self.distinct()[0]) < len(rows):
            raise EstimationError("an answer is listed twice")


def _merged(rows: Integers, often: Integers, sizes: Sequence[int]) -> tuple[Integers, Integers]:
    """Merge equal rows, in ascending order."""
    if math.prod(sizes) < LARGEST:
        keys = np.zeros(len(rows), np.int64)
        for size, column in zip(sizes, rows.T, strict=True):
            keys = keys * size + column
        _, first, where = np.unique(keys, return_index=True, return_inverse=True)
        kept = rows[first]
    else:
        kept, where = np.unique(rows, axis=0, return_inverse=True)
    counts = np.zeros(len(kept), np.int64)
    np.add.at(counts, where.ravel(), often)
    present = counts != 0
    return kept[present], counts[present]
