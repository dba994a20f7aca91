"""The body of a message: bytes in memory, or in a file so that length costs no memory."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

__all__ = ["Payload", "Reader", "in_memory"]

PIECE = 1 << 18


@dataclass(frozen=True)
class Payload:
    """Bytes in memory or in a file, which can be read repeatedly.

    Parameters
    ----------
    source : bytes or path
    start : int, default 0
    stop : int, optional
        Where it ends; without it at the end of the source.
    """

    source: bytes | Path
    start: int = 0
    stop: int | None = None

    @property
    def size(self) -> int:
        """How many bytes."""
        if self.stop is not None:
            return self.stop - self.start
        whole = self.source.stat().st_size if isinstance(self.source, Path) else len(self.source)
        return max(0, whole - self.start)

    def part(self, start: int, stop: int | None = None) -> Payload:
        """From one position to another; negative ones count from the end."""
        size = self.size
        first, last, _ = slice(start, stop).indices(size)
        return Payload(self.source, self.start + first, self.start + max(first, last))

    def pieces(self) -> Iterator[bytes]:
        """The bytes, a piece at a time."""
        left = self.size
        if isinstance(self.source, bytes):
            yield self.source[self.start : self.start + left]
            return
        with open(self.source, "rb") as file:
            file.seek(self.start)
            while left > 0 and (piece := file.read(min(left, PIECE))):
                left -= len(piece)
                yield piece

    def read(self) -> bytes:
        """All bytes at once."""
        return b"".join(self.pieces())

    @property
    def digest(self) -> str:
        """SHA-256 of the bytes, in hexadecimal."""
        code = hashlib.sha256()
        for piece in self.pieces():
            code.update(piece)
        return code.hexdigest()


def in_memory(pieces: Iterable[bytes]) -> Payload:
    """A payload of a few pieces."""
    return Payload(b"".join(pieces))


class Reader:
    """Reads a given number of bytes from pieces of any length.

    Parameters
    ----------
    pieces : iterable of bytes
    """

    def __init__(self, pieces: Iterable[bytes]) -> None:
        self._pieces, self._held = iter(pieces), bytearray()

    def take(self, count: int) -> bytes:
        """The next bytes; fewer only at the end."""
        while len(self._held) < count and (piece := next(self._pieces, None)) is not None:
            self._held += piece
        taken = bytes(self._held[:count])
        del self._held[:count]
        return taken

    def rest(self) -> bytes:
        """Everything up to the end."""
        return bytes(self._held) + b"".join(self._pieces)
