"""The body of a message: bytes in memory, or in a file so that length costs no memory."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

__all__ = ["Payload", "PieceReader", "join_in_memory"]

PIECE_BYTES = 1 << 18


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
        source_size = (
            self.source.stat().st_size if isinstance(self.source, Path) else len(self.source)
        )
        return max(0, source_size - self.start)

    def get_slice(self, start: int, stop: int | None = None) -> Payload:
        """From one position to another; negative ones count from the end."""
        payload_size = self.size
        first_offset, last_offset, _ = slice(start, stop).indices(payload_size)
        return Payload(
            self.source, self.start + first_offset, self.start + max(first_offset, last_offset)
        )

    def iter_pieces(self) -> Iterator[bytes]:
        """The bytes, a piece at a time."""
        remaining_bytes = self.size
        if isinstance(self.source, bytes):
            yield self.source[self.start : self.start + remaining_bytes]
            return
        with open(self.source, "rb") as file:
            file.seek(self.start)
            while remaining_bytes > 0 and (piece := file.read(min(remaining_bytes, PIECE_BYTES))):
                remaining_bytes -= len(piece)
                yield piece

    def read(self) -> bytes:
        """All bytes at once."""
        return b"".join(self.iter_pieces())

    @property
    def digest(self) -> str:
        """SHA-256 of the bytes, in hexadecimal."""
        digest_state = hashlib.sha256()
        for piece in self.iter_pieces():
            digest_state.update(piece)
        return digest_state.hexdigest()


def join_in_memory(pieces: Iterable[bytes]) -> Payload:
    """A payload of a few pieces."""
    return Payload(b"".join(pieces))


class PieceReader:
    """Reads a given number of bytes from pieces of any length.

    Parameters
    ----------
    pieces : iterable of bytes
    """

    def __init__(self, pieces: Iterable[bytes]) -> None:
        self._pieces, self._pending_bytes = iter(pieces), bytearray()

    def read_bytes(self, count: int) -> bytes:
        """The next bytes; fewer only at the end."""
        while len(self._pending_bytes) < count and (piece := next(self._pieces, None)) is not None:
            self._pending_bytes += piece
        taken_bytes = bytes(self._pending_bytes[:count])
        del self._pending_bytes[:count]
        return taken_bytes

    def read_remainder(self) -> bytes:
        """Everything up to the end."""
        return bytes(self._pending_bytes) + b"".join(self._pieces)
