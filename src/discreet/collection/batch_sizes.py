"""Sizes of the shuffled batches in a tally."""

from __future__ import annotations

from collections.abc import Mapping

from discreet.collection.report import ID_PATTERN

__all__ = ["BatchSizes"]

MAX_BATCHES = 4096
"""Batches that a tally counts separately; reports of further ones count as not shuffled."""


class BatchSizes:
    """Counted reports by batch mark.

    It does not matter how reports came into a tally: one by one, from Parquet files, or with
    another tally. Reports without a mark, and those of more batches than are told apart, count as
    not shuffled.

    Parameters
    ----------
    sizes : mapping of str to int, optional
        Counted reports by batch mark.
    """

    def __init__(self, sizes: Mapping[str, int] | None = None) -> None:
        self._sizes = dict(sizes or {})

    def __len__(self) -> int:
        """Number of batches that are counted separately."""
        return len(self._sizes)

    def add(self, batch_mark: str | None, report_count: int) -> None:
        """Count reports of one batch; without a mark they stay outside of all batches."""
        if batch_mark is not None and (batch_mark in self._sizes or len(self._sizes) < MAX_BATCHES):
            self._sizes[batch_mark] = self._sizes.get(batch_mark, 0) + report_count

    def merge(self, merged_sizes: BatchSizes) -> None:
        """Count what another tally counted; parts of one batch are one batch again."""
        for batch_mark, report_count in merged_sizes._sizes.items():
            self.add(batch_mark, report_count)

    def remove(self, removed_sizes: BatchSizes) -> bool:
        """Remove withdrawn reports from their batches; False if a batch has fewer."""
        for batch_mark, report_count in removed_sizes._sizes.items():
            if batch_mark in self._sizes:
                self._sizes[batch_mark] -= report_count
        is_possible = all(report_count >= 0 for report_count in self._sizes.values())
        self._sizes = {
            batch_mark: report_count
            for batch_mark, report_count in self._sizes.items()
            if report_count
        }
        return is_possible

    def get_smallest(self, report_count: int) -> int:
        """Return the size of the smallest batch, or 0 if some counted reports are in none."""
        if sum(self._sizes.values()) < report_count:
            return 0
        return min(self._sizes.values(), default=0)

    def can_hold(self, report_count: int) -> bool:
        """Whether this number of counted reports is consistent with these batches."""
        has_valid_marks = (
            all(map(ID_PATTERN.fullmatch, self._sizes)) and len(self._sizes) <= MAX_BATCHES
        )
        sizes = self._sizes.values()
        return has_valid_marks and min(sizes, default=1) >= 1 and sum(sizes) <= report_count

    def copy(self) -> BatchSizes:
        """Return an independent copy."""
        return BatchSizes(self._sizes)

    def to_body(self) -> dict[str, int]:
        """Plain values for a JSON document, in the order of the marks."""
        return dict(sorted(self._sizes.items()))
