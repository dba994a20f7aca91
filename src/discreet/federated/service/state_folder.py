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

from discreet.errors import FormatError
from discreet.federated.agreement.identity import Identity
from discreet.federated.agreement.signed import Agreement
from discreet.federated.crypto.sealing import seal_bytes, unseal_bytes
from discreet.federated.messages import Message
from discreet.federated.payload import Payload
from discreet.federated.refusals import ProtocolError
from discreet.files.atomic_writing import (
    atomic_replacement,
    make_private_folder,
    move_atomic,
    sync_path,
    write_atomic,
)
from discreet.files.locks import hold_lock

__all__ = ["StateFolder"]

BODY_SUFFIXES = (".body", ".part", ".draft")
"""Endings of files that are deleted when the round has ended."""
SECRET_FILES = ("session", "secret", "data", "digest")
"""Deleted first: the party's key for this round, what blinds ids in an alignment, and the codes of
data and ids under these keys."""
UNSEALED_BYTES = 32
"""Of the key of a round as earlier versions kept it: in clear, beside a digest of the data."""
FOLDER_NAME_DIGITS = 32
"""Hexadecimal digits of an agreement's hash that name the folder of its round."""


class StateFolder:
    """The files of one party in one round.

    Parameters
    ----------
    path : path
        Made if it does not exist; each round has a folder of its own inside.
    agreement : Agreement
    """

    def __init__(self, path: str | Path, agreement: Agreement) -> None:
        self.agreement = agreement
        self.path = make_private_folder(Path(path) / agreement.hash.hex()[:FOLDER_NAME_DIGITS])
        self._session_key = b""
        """The party's key for this round, once it has joined."""

    @contextmanager
    def hold_session(self, identity: Identity) -> Iterator[None]:
        """Hold the folder and take part with its key, which a round that is abandoned deletes."""
        with self.lock_folder():
            self.join_round(identity)
            try:
                yield
            except ProtocolError as error:
                if error.reason == "abandoned":  # nobody will open anything of it
                    self.finish_round(identity)
                raise

    def lock_folder(self) -> AbstractContextManager[None]:
        """Hold the folder alone: two processes would send two noises under the same pads."""
        return hold_lock(
            self.path / "lock",
            "another process of this party is in the same round; wait for it, or stop it first",
        )

    def join_round(self, identity: Identity) -> None:
        """Make the party's key for this round, or take up the one it was begun with."""
        stored_fingerprint = self.read("party")
        if stored_fingerprint is None:
            self.write("party", identity.card.fingerprint.encode())
        elif stored_fingerprint.decode() != identity.card.fingerprint:
            raise ProtocolError(
                "unknown-sender", f"{self.path} belongs to another party than {identity.name}"
            )
        if self.read("finished") is not None:
            self._erase_secrets(identity)  # should it have been killed in between
            raise ProtocolError(
                "late", f"{identity.name} has finished this round; its key for the round is deleted"
            )
        self._tidy_finished_rounds()
        try:
            session_key = self.read_secret(identity, "session")
        except FormatError:
            if len(self.read("session") or b"") == UNSEALED_BYTES:
                self.finish_round(
                    identity
                )  # it cannot go on, and would leave what confirms a guess
            raise
        if session_key is None:
            self.write_secret(
                identity, "session", identity.get_session_private_key(self.agreement.hash)
            )
        else:
            identity.resume_session(self.agreement.hash, session_key)
        self._session_key = identity.get_session_private_key(self.agreement.hash)

    def _tidy_finished_rounds(self) -> None:
        """Delete what earlier versions left of rounds that have ended: a digest without a key."""
        for folder in self.path.parent.iterdir():
            if re.fullmatch(f"[0-9a-f]{{{FOLDER_NAME_DIGITS}}}", folder.name) and (
                (folder / "party").is_file() and (folder / "finished").is_file()
            ):
                for name in SECRET_FILES:
                    (folder / name).unlink(missing_ok=True)

    def finish_round(self, identity: Identity) -> None:
        """Delete the party's key for this round, with which alone it could open what was sent."""
        try:
            self.write("finished", b"")
        except FormatError:  # a full disk; without the bodies there is room
            self._erase_secrets(identity)
            self.write("finished", b"")
        self._erase_secrets(identity)

    def _erase_secrets(self, identity: Identity) -> None:
        for name in SECRET_FILES:
            self.delete(name)
        self._session_key = b""
        identity.delete_session(self.agreement.hash)
        for path in list(self.path.iterdir()):
            if path.suffix in BODY_SUFFIXES:
                path.unlink(missing_ok=True)
        with suppress(OSError):  # the round has ended all the same
            sync_path(self.path)

    def require_same_data(self, *contents: object) -> None:
        """Refuse data that differ from those of the first start.

        What is written is a code under the party's key for this round: without the key, which is
        deleted at the end, nobody can tell whether a guess of the data is right.
        """
        if not self._session_key:
            raise ProtocolError("out-of-order", f"{self.path} has no key of this round")
        data_bytes = b"discreet/data\0" + "\0".join(map(str, contents)).encode()
        data_code = hmac.digest(self._session_key, data_bytes, "sha256")
        stored_code = self.read("data")
        if stored_code is None:
            self.write("data", data_code)
        elif not hmac.compare_digest(stored_code, data_code):
            raise ProtocolError(
                "wrong-rows",
                "the data are not those that this round was begun with; take the table as it was, "
                "or agree on a new round",
            )

    @property
    def is_delivered(self) -> bool:
        """Whether everything that this party has to send was accepted."""
        return self.read("delivered") is not None

    def mark_delivered(self) -> None:
        """Note that everything was accepted: after a restart only the end is waited for."""
        self.write("delivered", b"")
        self.delete("data")

    def has_sent_message(self, name: str) -> bool:
        """Whether :meth:`load_or_create` has made a message of this name."""
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

    def write_secret(self, identity: Identity, file_name: str, content: bytes) -> None:
        """Write a secret of this round, sealed under the party's identity.

        Parameters
        ----------
        identity : Identity
        file_name : str
            Of the file.
        content : bytes
        """
        storage_key = identity.derive_storage_key(self.agreement.hash, file_name)
        self.write(file_name, seal_bytes(storage_key, content))

    def read_secret(self, identity: Identity, file_name: str) -> bytes | None:
        """Read what :meth:`write_secret` wrote; None where there is none."""
        sealed_secret = self.read(file_name)
        if sealed_secret is None:
            return None
        try:
            return unseal_bytes(
                identity.derive_storage_key(self.agreement.hash, file_name), sealed_secret
            )
        except ProtocolError:
            raise FormatError(
                f"{self.path / file_name}: the kept key of this round is damaged, or was written "
                "by another version; agree on a new round"
            ) from None

    # messages

    def iter_messages(self, suffix: str) -> Iterator[Message]:
        """All messages whose headers have an ending, in the order of their names."""
        for path in sorted(self.path.glob(f"*{suffix}")):
            if not path.name.startswith("."):
                yield self._read_message(path)

    def _read_message(self, header_path: Path) -> Message:
        return Message.from_header(
            header_path.read_bytes(), Payload(header_path.with_suffix(".body"))
        )

    def spool_body(self, pieces: Iterable[bytes]) -> Payload:
        """Put the pieces of a body into a file, which gets its name when its message is kept."""
        draft_path = self.path / f"{secrets.token_hex(8)}.draft"
        with (
            atomic_replacement(draft_path, private=True) as temporary_path,
            open(temporary_path, "wb") as file,
        ):
            file.writelines(pieces)
        return Payload(draft_path)

    def keep_message(self, name: str, suffix: str, message: Message) -> Message:
        """Keep a message whole; gives it as it lies on the disk."""
        body_path, source = self.path / f"{name}.body", message.body.source
        if isinstance(source, Path):
            move_atomic(source, body_path)
        else:
            self.write(body_path.name, source)
        self.write(f"{name}{suffix}", message.header)
        return self._read_message(self.path / f"{name}{suffix}")

    def drop(self, name: str, suffix: str) -> None:
        """Forget a message, the header first."""
        self.delete(f"{name}{suffix}")
        self.delete(f"{name}.body")

    def load_or_create(self, name: str, make_message: Callable[[], Message]) -> Message:
        """Load a message or create it once; new noise under old pads would leak."""
        if self.has_sent_message(name):
            return self._read_message(self.path / f"{name}.sent")
        for draft_path in self.path.glob("*.draft"):  # of a start that was killed; never sent
            draft_path.unlink()
        return self.keep_message(name, ".sent", make_message())

    # bodies that are still on their way

    def open_partial_body(self, name: str, message: Message) -> PartialBody:
        """The body of a message as far as it has come; one with another digest starts again."""
        part_path = self.path / f"{name} {message.digest[:32]}.part"
        for old_path in self.path.glob(f"{name} *.part"):
            if old_path != part_path:
                old_path.unlink(missing_ok=True)
        return PartialBody(part_path, message)


class PartialBody:
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

    def add_chunk(self, offset: int, data: bytes) -> int:
        """Put a chunk in its place; one that would leave a gap or overflow is refused."""
        if offset > self.size:
            return self.size
        if offset + len(data) > self.message.size:
            raise ProtocolError(
                "oversized", f"this {self.message.kind} has {self.message.size} bytes, not more"
            )
        try:
            file_descriptor = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
            with open(file_descriptor, "wb") as stream:
                stream.seek(offset)
                stream.write(data)
        except OSError as error:
            raise FormatError(f"{self.path}: cannot be written: {error.strerror}") from None
        return self.size

    def read_complete_message(self) -> Message:
        """The message with its whole body, checked; a damaged one is dropped."""
        complete_message = self.message.with_body(Payload(self.path))
        if self.message.size == 0:
            self.path.touch(0o600)
        try:
            complete_message.check_body()
        except ProtocolError:
            self.path.unlink(missing_ok=True)
            raise
        return complete_message
