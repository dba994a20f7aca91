"""What a party keeps on disk, so that being killed costs nothing: one file per message.

A file is whole and on the disk before anyone hears that its message was accepted or sent. The key
that was made for the round lies here too until the round has ended; then it is deleted (which
does not overwrite what an SSD or a backup may still hold).
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path

from discreet.documents import locked, private_folder, write_atomic
from discreet.federated.agreement.identity import Identity
from discreet.federated.agreement.signed import Agreement
from discreet.federated.messages import Message
from discreet.federated.refusals import ProtocolError

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
        self.manifest = manifest
        self.path = private_folder(Path(path) / manifest.hash.hex()[:32])

    def locked(self) -> AbstractContextManager[None]:
        """Hold the folder alone: two processes would send two noises under the same pads."""
        return locked(
            self.path / "lock",
            "another process of this party is in the same round; wait for it, or stop it first",
        )

    def join(self, own: Identity) -> None:
        """Make the party's key for this round, or take up the one it was begun with."""
        who = self.read("party")
        if who is None:
            self.write("party", own.card.fingerprint.encode())
        elif who.decode() != own.card.fingerprint:
            raise ProtocolError(
                "unknown-sender", f"{self.path} belongs to another party than {own.name}"
            )
        if self.read("finished") is not None:
            raise ProtocolError(
                "late", f"{own.name} has finished this round; its key for it is erased"
            )
        kept = self.read("session")
        if kept is None:
            self.write("session", own.session(self.manifest.hash))
        else:
            own.resume(self.manifest.hash, kept)

    def finish(self, own: Identity) -> None:
        """Erase the party's key for this round: from now on nobody can open what was sent."""
        self.write("finished", b"")
        self.delete("session")
        own.forget(self.manifest.hash)

    def same(self, *contents: object) -> None:
        """Refuse other data than what the round was begun with."""
        digest = hashlib.sha256("\0".join(map(str, contents)).encode()).digest()
        before = self.read("data")
        if before is None:
            self.write("data", digest)
        elif before != digest:
            raise ProtocolError(
                "wrong-rows",
                "the data are not those that this round was begun with; take the table as it was, "
                "or agree on a new round",
            )

    def delete(self, name: str) -> None:
        """Remove a file, if it is there."""
        (self.path / name).unlink(missing_ok=True)

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
