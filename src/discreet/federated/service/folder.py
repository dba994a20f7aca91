"""State folder of a party: messages and keys of a round on disk, so that it can be restarted.

The body is on the disk first, then the header: a message without its header is not there. Both
are, before anyone hears that the message was accepted or sent. A body that is still on its way
grows in a file of its own and goes on growing after a restart.

The key that was made for the round is here too until the round has ended, sealed under the party's
identity, which is kept elsewhere: a copy of the folder alone opens nothing, however the party died.
At the end key and bodies are deleted (which does not overwrite what an SSD or a backup may still
hold). A digest of counts is as good as the counts, which can be guessed: what recognises the data
of a round after a restart is a code under the key of the round, and is deleted with it.
"""

from __future__ import annotations

import hmac
import os
import re
import secrets
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path

from discreet.documents import move_atomic, private_folder, replacing, sync_folder, write_atomic
from discreet.errors import FormatError
from discreet.federated.agreement.identity import Identity
from discreet.federated.agreement.signed import Agreement
from discreet.federated.crypto.sealing import sealed, unsealed
from discreet.federated.messages import Message
from discreet.federated.payload import Payload
from discreet.federated.refusals import ProtocolError
from discreet.locks import locked

__all__ = ["Folder"]

BODIES = (".body", ".part", ".draft")
"""Endings of files that are deleted when the round has ended."""
SECRETS = ("session", "secret", "data", "digest")
"""Deleted first: the party's key for this round, what blinds ids in an alignment, and the codes of
data and ids under these keys."""
UNSEALED_BYTES = 32
"""Of the key of a round as earlier versions kept it: in clear, beside a digest of the data."""
NAME_DIGITS = 32
"""Hexadecimal digits of an agreement's hash that name the folder of its round."""


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
        self.path = private_folder(Path(path) / manifest.hash.hex()[:NAME_DIGITS])
        self._session = b""
        """The party's key for this round, once it has joined."""

    @contextmanager
    def held(self, own: Identity) -> Iterator[None]:
        """Hold the folder and take part with its key, which a round that is abandoned deletes."""
        with self.locked():
            self.join(own)
            try:
                yield
            except ProtocolError as error:
                if error.reason == "abandoned":  # nobody will open anything of it
                    self.finish(own)
                raise

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
            self._erase(own)  # should it have been killed in between
            raise ProtocolError(
                "late", f"{own.name} has finished this round; its key for it is deleted"
            )
        self._tidy_finished_rounds()
        try:
            kept = self.read_secret(own, "session")
        except FormatError:
            if len(self.read("session") or b"") == UNSEALED_BYTES:
                self.finish(own)  # it cannot go on, and would leave what confirms a guess
            raise
        if kept is None:
            self.write_secret(own, "session", own.session(self.manifest.hash))
        else:
            own.resume(self.manifest.hash, kept)
        self._session = own.session(self.manifest.hash)

    def _tidy_finished_rounds(self) -> None:
        """Delete what earlier versions left of rounds that have ended: a digest without a key."""
        for folder in self.path.parent.iterdir():
            if re.fullmatch(f"[0-9a-f]{{{NAME_DIGITS}}}", folder.name) and (
                (folder / "party").is_file() and (folder / "finished").is_file()
            ):
                for name in SECRETS:
                    (folder / name).unlink(missing_ok=True)

    def finish(self, own: Identity) -> None:
        """Delete the party's key for this round, with which alone it could open what was sent."""
        try:
            self.write("finished", b"")
        except FormatError:  # a full disk; without the bodies there is room
            self._erase(own)
            self.write("finished", b"")
        self._erase(own)

    def _erase(self, own: Identity) -> None:
        for name in SECRETS:
            self.delete(name)
        self._session = b""
        own.forget(self.manifest.hash)
        for path in list(self.path.iterdir()):
            if path.suffix in BODIES:
                path.unlink(missing_ok=True)
        with suppress(OSError):  # the round has ended all the same
            sync_folder(self.path)

    def same(self, *contents: object) -> None:
        """Refuse data that differ from those of the first start.

        What is written is a code under the party's key for this round: without the key, which is
        deleted at the end, nobody can tell whether a guess of the data is right.
        """
        if not self._session:
            raise ProtocolError("out-of-order", f"{self.path} has no key of this round")
        content = b"discreet/data\0" + "\0".join(map(str, contents)).encode()
        code, before = hmac.digest(self._session, content, "sha256"), self.read("data")
        if before is None:
            self.write("data", code)
        elif not hmac.compare_digest(before, code):
            raise ProtocolError(
                "wrong-rows",
                "the data are not those that this round was begun with; take the table as it was, "
                "or agree on a new round",
            )

    @property
    def delivered(self) -> bool:
        """Whether everything that this party has to send was accepted."""
        return self.read("delivered") is not None

    def deliver(self) -> None:
        """Note that everything was accepted: after a restart only the end is waited for."""
        self.write("delivered", b"")
        self.delete("data")

    def made(self, name: str) -> bool:
        """Whether :meth:`once` has made a message of this name."""
        return (self.path / f"{name}.sent").exists()

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

    def write_secret(self, own: Identity, name: str, content: bytes) -> None:
        """Write a secret of this round, sealed under the party's identity.

        Parameters
        ----------
        own : Identity
        name : str
            Of the file.
        content : bytes
        """
        key = own.derive_storage_key(self.manifest.hash, name)
        self.write(name, sealed(key, content))

    def read_secret(self, own: Identity, name: str) -> bytes | None:
        """Read what :meth:`write_secret` wrote; None where there is none."""
        content = self.read(name)
        if content is None:
            return None
        try:
            return unsealed(own.derive_storage_key(self.manifest.hash, name), content)
        except ProtocolError:
            raise FormatError(
                f"{self.path / name}: the kept key of this round is damaged, or was written by "
                "another version; agree on a new round"
            ) from None

    # messages

    def messages(self, ending: str) -> Iterator[Message]:
        """All messages whose headers have an ending, in the order of their names."""
        for path in sorted(self.path.glob(f"*{ending}")):
            if not path.name.startswith("."):
                yield self._message(path)

    def _message(self, header: Path) -> Message:
        return Message.from_header(header.read_bytes(), Payload(header.with_suffix(".body")))

    def spool(self, pieces: Iterable[bytes]) -> Payload:
        """Put the pieces of a body into a file, which gets its name when its message is kept."""
        path = self.path / f"{secrets.token_hex(8)}.draft"
        with replacing(path, private=True) as beside, open(beside, "wb") as file:
            file.writelines(pieces)
        return Payload(path)

    def keep(self, name: str, ending: str, message: Message) -> Message:
        """Keep a message whole; gives it as it lies on the disk."""
        body, source = self.path / f"{name}.body", message.body.source
        if isinstance(source, Path):
            move_atomic(source, body)
        else:
            self.write(body.name, source)
        self.write(f"{name}{ending}", message.header)
        return self._message(self.path / f"{name}{ending}")

    def drop(self, name: str, ending: str) -> None:
        """Forget a message, the header first."""
        self.delete(f"{name}{ending}")
        self.delete(f"{name}.body")

    def once(self, name: str, make: Callable[[], Message]) -> Message:
        """Load a message or create it once; new noise under old pads would leak."""
        if self.made(name):
            return self._message(self.path / f"{name}.sent")
        for draft in self.path.glob("*.draft"):  # of a start that was killed; never sent
            draft.unlink()
        return self.keep(name, ".sent", make())

    # bodies that are still on their way

    def growing(self, name: str, message: Message) -> Growing:
        """The body of a message as far as it has come; one with another digest starts again."""
        path = self.path / f"{name} {message.digest[:32]}.part"
        for other in self.path.glob(f"{name} *.part"):
            if other != path:
                other.unlink(missing_ok=True)
        return Growing(path, message)


class Growing:
    """A body that comes in chunks, each at its place; what is there is never asked for again.

    Parameters
    ----------
    path : path
    message : Message
        Whose body it is to become.
    """

    def __init__(self, path: Path, message: Message) -> None:
        self.path, self.message = path, message

    @property
    def size(self) -> int:
        """How many bytes are here, without a gap."""
        try:
            return min(self.path.stat().st_size, self.message.size)
        except FileNotFoundError:
            return 0

    def add(self, offset: int, data: bytes) -> int:
        """Put a chunk in its place; one that would leave a gap or overflow is refused."""
        if offset > self.size:
            return self.size
        if offset + len(data) > self.message.size:
            raise ProtocolError(
                "oversized", f"this {self.message.kind} has {self.message.size} bytes, not more"
            )
        try:
            file = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
            with open(file, "wb") as stream:
                stream.seek(offset)
                stream.write(data)
        except OSError as error:
            raise FormatError(f"{self.path}: cannot be written: {error.strerror}") from None
        return self.size

    def whole(self) -> Message:
        """The message with its whole body, checked; a damaged one is dropped."""
        whole = self.message.with_body(Payload(self.path))
        if self.message.size == 0:
            self.path.touch(0o600)
        try:
            whole.check_body()
        except ProtocolError:
            self.path.unlink(missing_ok=True)
            raise
        return whole
