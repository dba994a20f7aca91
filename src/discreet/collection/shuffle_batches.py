"""Sizes of the shuffled batches in a tally."""

from __future__ import annotations

from collections.abc import Mapping

from discreet.collection.report import IDENTITY

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

    def add(self, mark: str | None, reports: int) -> None:
        """Count reports of one batch; without a mark they stay outside of all batches."""
        if mark is not None and (mark in self._sizes or len(self._sizes) < MAX_BATCHES):
            self._sizes[mark] = self._sizes.get(mark, 0) + reports

    def merge(self, other: BatchSizes) -> None:
        """Count what another tally counted; parts of one batch are one batch again."""
        for mark, reports in other._sizes.items():
            self.add(mark, reports)

    def remove(self, other: BatchSizes) -> bool:
        """Remove withdrawn reports from their batches; False if a batch has fewer."""
        for mark, reports in other._sizes.items():
            if mark in self._sizes:
                self._sizes[mark] -= reports
        fits = all(reports >= 0 for reports in self._sizes.values())
        self._sizes = {mark: reports for mark, reports in self._sizes.items() if reports}
        return fits

    def smallest(self, reports: int) -> int:
        """Return the size of the smallest batch, or 0 if some counted reports are in none."""
        if sum(self._sizes.values()) < reports:
            return 0
        return min(self._sizes.values(), default=0)

    def fit(self, reports: int) -> bool:
        """Whether this number of counted reports is consistent with these batches."""
        marks = all(map(IDENTITY.fullmatch, self._sizes)) and len(self._sizes) <= MAX_BATCHES
        sizes = self._sizes.values()
        return marks and min(sizes, default=1) >= 1 and sum(sizes) <= reports

    def copy(self) -> BatchSizes:
        """Return an independent copy."""
        return BatchSizes(self._sizes)

    def to_body(self) -> dict[str, int]:
        """Plain values for a JSON document, in the order of the marks."""
        return dict(sorted(self._sizes.items()))
