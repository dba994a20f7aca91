"""Where a device keeps its reports: written once, before they leave, and never drawn again."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Protocol

from discreet.documents import write_atomic
from discreet.errors import FormatError

__all__ = ["FolderStore", "MemoryStore", "Store"]


class Store(Protocol):
    """Where a device keeps the reports it made."""

    def read(self, plan: str) -> list[str]:
        """Reports made for a plan, in order."""

    def write(self, plan: str, number: int, report: str) -> bool:
        """Keep report ``number`` of a plan for good; False if there is one already."""


class MemoryStore:
    """Forgets when the process ends; for simulation and tests."""

    def __init__(self) -> None:
        self._reports: dict[str, list[str]] = {}
        self._lock = threading.Lock()

    def read(self, plan: str) -> list[str]:
        """Reports made for a plan, in order."""
        return list(self._reports.get(plan, []))

    def write(self, plan: str, number: int, report: str) -> bool:
        """Keep a report; False if there is one already."""
        with self._lock:
            kept = self._reports.setdefault(plan, [])
            if number != len(kept):
                return False
            kept.append(report)
            return True


class FolderStore:
    """Keeps each report in a file of its own, on disk before it is handed out.

    Parameters
    ----------
    folder : path
        One folder a person. Two processes that race for the same report both get the one that
        was written first.
    """

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)

    def _file(self, plan: str, number: int) -> Path:
        return self.folder / f"{plan.removeprefix('sha256:')[:32]}-{number}.json"

    def read(self, plan: str) -> list[str]:
        """Reports made for a plan, in order; damaged ones as they are, nothing is left out."""
        name = self._file(plan, 0).name.removesuffix("0.json")
        found: list[str] = []
        try:
            files = list(self.folder.glob(f"{name}*.json"))
            for number in range(len(files)):  # a gap is an error, not a chance to draw again
                found.append(self._file(plan, number).read_bytes().decode(errors="replace"))
        except OSError as error:
            raise FormatError(
                f"{self.folder}: a kept report cannot be read: {error.strerror}; none is drawn "
                "again, because that would cost privacy twice"
            ) from None
        return found

    def write(self, plan: str, number: int, report: str) -> bool:
        """Keep a report; False if there is one already."""
        try:
            return write_atomic(self._file(plan, number), report, private=True, exclusive=True)
        except FormatError as error:
            raise FormatError(f"the report cannot be kept, so none was made: {error}") from None
