"""What a party keeps on disk, so that being killed costs nothing: one file a message.

A file is whole and on the disk before anyone hears that its message was accepted or sent.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

from discreet.errors import FormatError
from discreet.federated.agreement import Agreement
from discreet.federated.messages import Message

__all__ = ["Folder"]

LARGEST = 1 << 30


class Folder:
    """The files of one party in one round.

    Parameters
    ----------
    path : path
        Made if it does not exist; each round has a folder of its own inside.
    manifest : Agreement
    """

    def __init__(self, path: str | Path, manifest: Agreement) -> None:
        self.path = Path(path) / manifest.hash.hex()[:32]
        try:
            self.path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise FormatError(f"{path}: cannot be made a folder: {error.strerror}") from None

    def write(self, name: str, content: bytes) -> None:
        """Write a file that nobody else may read, wait for the disk, and give it its name."""
        beside = self.path / f".{name}.part"
        try:
            with open(beside, "wb", opener=_private) as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            beside.replace(self.path / name)
            folder = os.open(self.path, os.O_RDONLY)
            try:
                os.fsync(folder)
            finally:
                os.close(folder)
        except OSError as error:
            raise FormatError(f"{self.path / name}: cannot be written: {error.strerror}") from None

    def read(self, name: str) -> bytes | None:
        """A file's content; None where there is none."""
        try:
            return (self.path / name).read_bytes()
        except FileNotFoundError:
            return None

    def files(self, ending: str) -> Iterator[bytes]:
        """The contents of all files with an ending, oldest name first."""
        for path in sorted(self.path.glob(f"*{ending}")):
            if not path.name.startswith("."):
                yield path.read_bytes()

    def once(self, name: str, make: Callable[[], Message]) -> Message:
        """A message that is made once and sent again as it is: new noise under old pads leaks."""
        kept = self.read(f"{name}.sent")
        if kept is not None:
            return Message.from_json(kept, LARGEST)
        message = make()
        self.write(f"{name}.sent", message.to_json())
        return message


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)
