"""Counts of distinct whole answers: a sparse joint table."""

from __future__ import annotations

import math

import numpy as np

from discreet.arrays import Integers
from discreet.collection.protocol import MAX_EXACT_INTEGER, WholeAnswerChannel
from discreet.errors import EstimationError

__all__ = ["WholeAnswerCounts"]

MAX_PENDING_ROWS = 1 << 16
"""Pending rows above which equal rows are merged."""


class WholeAnswerCounts:
    """Distinct answers with their multiplicities.

    The joint table is kept, not its margins, so that any predicate can be estimated.
    """

    def __init__(self, channel: WholeAnswerChannel) -> None:
        self.channel = channel
        self._rows = np.zeros((0, len(channel.sizes)), np.int64)
        self._multiplicities = np.zeros(0, np.int64)
        self._pending: list[tuple[Integers, Integers]] = []

    def add(self, rows: Integers, multiplicities: Integers) -> None:
        """Add answers; negative multiplicities remove them."""
        self._pending.append((rows, multiplicities))
        if sum(len(pending_rows) for pending_rows, _ in self._pending) > MAX_PENDING_ROWS:
            self.get_distinct_answers()

    def get_distinct_answers(self) -> tuple[Integers, Integers]:
        """Return the distinct answers in ascending order, and how often each was sent."""
        if not self._pending:
            return self._rows, self._multiplicities
        rows = np.concatenate([self._rows, *(pending_rows for pending_rows, _ in self._pending)])
        multiplicities = np.concatenate(
            [self._multiplicities, *(pending_times for _, pending_times in self._pending)]
        )
        self._pending = []
        if int(np.abs(multiplicities).sum(dtype=np.float64)) > MAX_EXACT_INTEGER:
            raise EstimationError("the counts would go beyond 2^62 and no longer be exact")
        if math.prod(self.channel.sizes) < MAX_EXACT_INTEGER:
            row_keys = np.zeros(len(rows), np.int64)
            for size, column in zip(self.channel.sizes, rows.T, strict=True):
                row_keys = row_keys * size + column
            _, first_rows, group_indices = np.unique(
                row_keys, return_index=True, return_inverse=True
            )
            distinct_rows = rows[first_rows]
        else:
            distinct_rows, group_indices = np.unique(rows, axis=0, return_inverse=True)
        counts = np.zeros(len(distinct_rows), np.int64)
        np.add.at(counts, group_indices.ravel(), multiplicities)
        is_present = counts != 0
        self._rows, self._multiplicities = distinct_rows[is_present], counts[is_present]
        return self._rows, self._multiplicities

    def add_checked_rows(self, rows: list[list[int]], multiplicities: list[int]) -> None:
        """Add rows that come from a file, after checking all of them."""
        if len(rows) != len(multiplicities) or any(len(row) != self.channel.width for row in rows):
            raise EstimationError("its rows do not have the right lengths")
        if min(multiplicities, default=1) < 1 or sum(multiplicities) > MAX_EXACT_INTEGER:
            raise EstimationError("a count is below 1, or the counts go beyond 2^62")
        sizes = self.channel.sizes
        if any(
            not 0 <= answer < size for row in rows for answer, size in zip(row, sizes, strict=True)
        ):
            raise EstimationError("an answer is not one of the public ones")
        self.add(
            np.array(rows, np.int64).reshape(-1, len(sizes)), np.array(multiplicities, np.int64)
        )
        if len(self.get_distinct_answers()[0]) < len(rows):
            raise EstimationError("an answer is listed twice")
