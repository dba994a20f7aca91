"""Sizes of the shuffled batches in a tally."""

from __future__ import annotations

from collections.abc import Mapping

__all__ = ["BatchSizes"]

MAX_BATCHES = 4096
"""Batches that a tally counts separately; reports of further ones count as not shuffled."""


class BatchSizes(dict[str, int]):
    """Counted reports by batch mark.

    It does not matter how reports came into a tally: one by one, from Parquet files, or with
    another tally. Reports without a mark, and those of more batches than are told apart, count as
    not shuffled.
    """

    def add(self, batch_mark: str | None, report_count: int) -> None:
        """Count reports of one batch; without a mark they stay outside of all batches."""
        if batch_mark is not None and (batch_mark in self or len(self) < MAX_BATCHES):
            self[batch_mark] = self.get(batch_mark, 0) + report_count

    def merge(self, merged_sizes: Mapping[str, int]) -> None:
        """Count what another tally counted; parts of one batch are one batch again."""
        for batch_mark, report_count in merged_sizes.items():
            self.add(batch_mark, report_count)

    def remove(self, removed_sizes: Mapping[str, int]) -> bool:
        """Remove withdrawn reports from their batches; False if a batch has fewer."""
        for batch_mark in self.keys() & removed_sizes.keys():
            self[batch_mark] -= removed_sizes[batch_mark]
        for batch_mark in [mark for mark, report_count in self.items() if not report_count]:
            del self[batch_mark]
        return min(self.values(), default=0) >= 0
