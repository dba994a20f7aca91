"""What a party keeps on disk, so that being killed costs nothing: one file a message.

A file is whole and on the disk before anyone hears that its message was accepted or sent.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

from discreet.documents import private_folder, write_atomic
from discreet.federated.agreement.signed import Agreement
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
        self.path = private_folder(Path(path) / manifest.hash.hex()[:32])

    def write(self, name: str, content: bytes) -> None:
        """Write a file that nobody else may read, wait for the disk, and give it its name."""
        write_atomic(self.path / name, content, private=True)

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
