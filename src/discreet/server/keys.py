"""Keys outside the database: sealed rows can be read only while their key exists.

Deleted rows stay in the pages, indexes, log, replicas and backups of a database. So
arrivals are sealed under a key of their batch, which is destroyed when they are settled. Keys are
small files in a folder of their own: written to disk before anything that depends on them is
acknowledged, overwritten and removed when they are no longer needed.

    FOLDER/batches/SURVEY-NUMBER.key    live for one batch; not part of any backup
"""

from __future__ import annotations

import os
import re
import secrets
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import cached_property
from pathlib import Path

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.hmac import HMAC
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from discreet.documents import destroy_file, private_folder, sync_folder, write_atomic
from discreet.errors import DiscreetError, FormatError

__all__ = ["Key", "Keys", "KeysError", "LostKeyError", "batch_key_name"]

KEY_BYTES = 32
MARK_BYTES = 16  # of an HMAC: two of 2^40 rows are equal with a chance below 2^-48
NONCE_BYTES = 12  # of AES-GCM; random, for less than 2^32 rows per key (NIST SP 800-38D, 8.3)
FORMAT = "discreet/key 1"
"""First line of the file of a key; the second one is the key in hexadecimal digits."""


class KeysError(DiscreetError):
    """The key folder failed; the request is not at fault."""


class LostKeyError(KeysError):
    """A key that the database needs is missing from its folder."""


def batch_key_name(survey: int, number: int) -> str:
    """Format the name of a batch's key, relative to the folder."""
    return f"batches/{survey}-{number:016x}"


class Key:
    """A key for marks, by which rows are found, and for sealing their content.

    Parameters
    ----------
    number : int
        The number by which rows refer to it.
    secret : bytes
    """

    def __init__(self, number: int, secret: bytes) -> None:
        self.number = number
        derived = HKDF(SHA256(), 2 * KEY_BYTES, salt=None, info=b"discreet/rows").derive(secret)
        self._marks = HMAC(derived[:KEY_BYTES], SHA256())
        self._seals = AESGCM(derived[KEY_BYTES:])

    def mark(self, kind: bytes, content: bytes) -> bytes:
        """Compute the pseudorandom mark by which a row is found: a MAC of its subject.

        Parameters
        ----------
        kind : bytes
            What the content is, of one length for all kinds.
        content : bytes
        """
        mac = self._marks.copy()
        mac.update(kind + content)
        return mac.finalize()[:MARK_BYTES]

    def seal(self, mark: bytes, content: bytes) -> bytes:
        """Encrypt and authenticate the content of the row with this mark (AES-GCM)."""
        nonce = os.urandom(NONCE_BYTES)
        return nonce + self._seals.encrypt(nonce, content, mark)

    def open(self, mark: bytes, sealed: bytes) -> bytes:
        """Decrypt and verify the content of the row with this mark."""
        try:
            return self._seals.decrypt(sealed[:NONCE_BYTES], sealed[NONCE_BYTES:], mark)
        except InvalidTag:
            raise KeysError(
                "a sealed row of the database does not fit its key: it was changed, or the key is "
                "that of another database; restore both from one backup"
            ) from None


class Keys:
    """The folder of the keys of one database.

    Parameters
    ----------
    find_folder : callable
        Returns the folder, when it is first needed.

    Attributes
    ----------
    spares : dict of survey number to key number
        The last key created for each survey; the database holds whether its transaction was
        committed.
    """

    def __init__(self, find_folder: Callable[[], Path]) -> None:
        self._find_folder = find_folder
        self._loaded: dict[str, Key] = {}
        self.spares: dict[int, int] = {}

    @cached_property
    def folder(self) -> Path:
        """Folder that holds the keys."""
        return self._find_folder()

    def _path(self, name: str) -> Path:
        return self.folder / f"{name}.key"

    def draw_number(self) -> int:
        """Draw a random number by which rows refer to a key."""
        return secrets.randbits(62)

    def create(self, name: str, number: int) -> Key:
        """Create a key; it is on the disk when this returns."""
        secret = secrets.token_bytes(KEY_BYTES)
        text = f"{FORMAT}\n{secret.hex()}\n"
        path = self._path(name)
        try:
            missing = [one for one in self.folder.parents if not one.exists()]
            if not write_atomic(path, text, private=True, exclusive=True):
                raise FormatError(f"{path}: there is a key of this name already")
            for one in (path.parent, self.folder, *missing):  # folders are names in folders, too
                with suppress(PermissionError):  # it may be written to and not read
                    sync_folder(one.parent)
        except FormatError as error:
            raise KeysError(str(error)) from None
        except OSError as error:
            raise KeysError(f"{path}: cannot be written: {error.strerror}") from None
        self._loaded[name] = Key(number, secret)
        return self._loaded[name]

    def probe(self) -> None:
        """Check that there is room for a key: create one and destroy it."""
        name = batch_key_name(0, self.draw_number())  # no survey has the number 0
        self.create(name, 0)
        self.destroy(name)

    def load(self, name: str, number: int) -> Key:
        """Load a key that was created before."""
        if name not in self._loaded:
            self._loaded[name] = Key(number, self._read(name))
        return self._loaded[name]

    def _read(self, name: str) -> bytes:
        path = self._path(name)
        try:
            head, _, digits = path.read_text(encoding="ascii").partition("\n")
        except FileNotFoundError:
            raise LostKeyError(
                f"{path}: this key is not here, and the database has rows sealed under it. "
                + self._way_out(path)
            ) from None
        except (OSError, ValueError) as error:
            raise LostKeyError(f"{path}: this key cannot be read: {error}") from None
        if head != FORMAT or not re.fullmatch(rf"[0-9a-f]{{{2 * KEY_BYTES}}}\n", digits):
            raise LostKeyError(f"{path}: is not a complete key file; restore it from a backup")
        return bytes.fromhex(digits)

    def _way_out(self, path: Path) -> str:
        """Format what to do about a missing key; the folder of a moved database may hold it."""
        for former in sorted(self.folder.parent.glob(f"*/batches/{path.name}")):
            folder = former.parent.parent
            rename = f"Rename {folder} to {self.folder}"
            if self.folder.exists():
                rename = f"Move what is in {former.parent} to {path.parent}"
            return (
                f"It is in {former.parent}, where it was before the database moved. {rename}; if "
                f"another database still uses {folder}, give these rows up with --give-up-lost"
            )
        return (
            "Restore it, name the right folder with --keys, or give these rows up with "
            "--give-up-lost"
        )

    def exists(self, name: str) -> bool:
        """Whether the file of a key is in the folder."""
        return self._path(name).is_file()

    def read_age(self, name: str) -> float:
        """Read the age of a key in seconds: since its creation, or as it was set."""
        try:
            return time.time() - self._path(name).stat().st_mtime
        except OSError:  # lost, which :meth:`load` says
            return 0.0

    def set_age(self, name: str, seconds: float) -> None:
        """Set the age of a key, in seconds, as the modification time of its file."""
        then = time.time() - seconds
        try:
            os.utime(self._path(name), (then, then))
        except FileNotFoundError:
            return
        except OSError as error:
            raise KeysError(f"{self._path(name)}: cannot be changed: {error.strerror}") from None

    def forget_batches(self, survey: int, live: Iterable[str]) -> None:
        """Remove the batch keys of a survey from memory, except those that are live."""
        prefix, kept = batch_key_name(survey, 0)[:-16], set(live)
        for name in [name for name in self._loaded if name.startswith(prefix)]:
            if name not in kept:
                self._loaded.pop(name, None)

    def batches(self) -> list[tuple[int, int]]:
        """List (survey number, key number) of every batch key in the folder."""
        found = []
        with suppress(FileNotFoundError):
            for path in (self.folder / "batches").iterdir():
                if match := re.fullmatch(r"(\d+)-([0-9a-f]{16})\.key", path.name):
                    found.append((int(match[1]), int(match[2], 16)))
        return sorted(found)

    def destroy(self, name: str) -> None:
        """Overwrite a key and remove it; do nothing if it is already gone."""
        self._loaded.pop(name, None)
        destroy_file(self._path(name))

    def make_folder(self) -> Path:
        """Create the folder, readable by its owner only, and return it."""
        return private_folder(self.folder)
