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

from discreet.errors import DiscreetError, FormatError
from discreet.files.atomic_writing import destroy_file, sync_path, write_atomic

__all__ = ["Key", "KeyFolder", "KeyFolderError", "LostKeyError", "format_key_name"]

KEY_BYTES = 32
MARK_BYTES = 16  # of an HMAC: two of 2^40 rows are equal with a chance below 2^-48
NONCE_BYTES = 12  # of AES-GCM; random, for less than 2^32 rows per key (NIST SP 800-38D, 8.3)
KEY_FILE_HEADER = "discreet/key 1"
"""First line of the file of a key; the second one is the key in hexadecimal digits."""


class KeyFolderError(DiscreetError):
    """The key folder failed; the request is not at fault."""


class LostKeyError(KeyFolderError):
    """A key that the database needs is missing from its folder."""


def format_key_name(survey_number: int, key_number: int) -> str:
    """Format the name of a batch's key, relative to the folder."""
    return f"batches/{survey_number}-{key_number:016x}"


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
        derived_keys = HKDF(SHA256(), 2 * KEY_BYTES, salt=None, info=b"discreet/rows").derive(
            secret
        )
        self._mark_hmac = HMAC(derived_keys[:KEY_BYTES], SHA256())
        self._row_cipher = AESGCM(derived_keys[KEY_BYTES:])

    def compute_mark(self, kind: bytes, content: bytes) -> bytes:
        """Compute the pseudorandom mark by which a row is found: a MAC of its subject.

        Parameters
        ----------
        kind : bytes
            What the content is, of one length for all kinds.
        content : bytes
        """
        mac = self._mark_hmac.copy()
        mac.update(kind + content)
        return mac.finalize()[:MARK_BYTES]

    def seal(self, mark: bytes, content: bytes) -> bytes:
        """Encrypt and authenticate the content of the row with this mark (AES-GCM)."""
        nonce = os.urandom(NONCE_BYTES)
        return nonce + self._row_cipher.encrypt(nonce, content, mark)

    def open(self, mark: bytes, sealed: bytes) -> bytes:
        """Decrypt and verify the content of the row with this mark."""
        try:
            return self._row_cipher.decrypt(sealed[:NONCE_BYTES], sealed[NONCE_BYTES:], mark)
        except InvalidTag:
            raise KeyFolderError(
                "a sealed row of the database does not fit its key: it was changed, or the key is "
                "that of another database; restore both from one backup"
            ) from None


class KeyFolder:
    """The folder of the keys of one database.

    Parameters
    ----------
    find_folder : callable
        Returns the folder, when it is first needed.

    Attributes
    ----------
    spare_numbers : dict of survey number to key number
        The last key created for each survey; the database holds whether its transaction was
        committed.
    """

    def __init__(self, find_folder: Callable[[], Path]) -> None:
        self._find_folder = find_folder
        self._loaded_keys: dict[str, Key] = {}
        self.spare_numbers: dict[int, int] = {}

    @cached_property
    def folder(self) -> Path:
        """Folder that holds the keys."""
        return self._find_folder()

    def _make_path(self, key_name: str) -> Path:
        return self.folder / f"{key_name}.key"

    def draw_number(self) -> int:
        """Draw a random number by which rows refer to a key."""
        return secrets.randbits(62)

    def create_key(self, key_name: str, key_number: int) -> Key:
        """Create a key; it is on the disk when this returns."""
        secret = secrets.token_bytes(KEY_BYTES)
        file_text = f"{KEY_FILE_HEADER}\n{secret.hex()}\n"
        key_path = self._make_path(key_name)
        try:
            missing = [parent for parent in self.folder.parents if not parent.exists()]
            if not write_atomic(key_path, file_text, private=True, exclusive=True):
                raise FormatError(f"{key_path}: there is a key of this name already")
            # folders are names in folders, too
            for folder in (key_path.parent, self.folder, *missing):
                with suppress(PermissionError):  # it may be written to and not read
                    sync_path(folder.parent)
        except FormatError as error:
            raise KeyFolderError(str(error)) from None
        except OSError as error:
            raise KeyFolderError(f"{key_path}: cannot be written: {error.strerror}") from None
        self._loaded_keys[key_name] = Key(key_number, secret)
        return self._loaded_keys[key_name]

    def check_writable(self) -> None:
        """Check that there is room for a key: create one and destroy it."""
        key_name = format_key_name(0, self.draw_number())  # no survey has the number 0
        self.create_key(key_name, 0)
        self.destroy_key(key_name)

    def load_key(self, key_name: str, key_number: int) -> Key:
        """Load a key that was created before."""
        if key_name not in self._loaded_keys:
            self._loaded_keys[key_name] = Key(key_number, self._read_secret(key_name))
        return self._loaded_keys[key_name]

    def _read_secret(self, key_name: str) -> bytes:
        key_path = self._make_path(key_name)
        try:
            file_header, _, hex_digits = key_path.read_text(encoding="ascii").partition("\n")
        except FileNotFoundError:
            raise LostKeyError(
                f"{key_path}: this key is not here, and the database has rows sealed under it. "
                + self._format_remedy(key_path)
            ) from None
        except (OSError, ValueError) as error:
            raise LostKeyError(f"{key_path}: this key cannot be read: {error}") from None
        if file_header != KEY_FILE_HEADER or not re.fullmatch(
            rf"[0-9a-f]{{{2 * KEY_BYTES}}}\n", hex_digits
        ):
            raise LostKeyError(f"{key_path}: is not a complete key file; restore it from a backup")
        return bytes.fromhex(hex_digits)

    def _format_remedy(self, key_path: Path) -> str:
        """Format what to do about a missing key; the folder of a moved database may hold it."""
        for former_path in sorted(self.folder.parent.glob(f"*/batches/{key_path.name}")):
            former_folder = former_path.parent.parent
            instruction = f"Rename {former_folder} to {self.folder}"
            if self.folder.exists():
                instruction = f"Move what is in {former_path.parent} to {key_path.parent}"
            return (
                f"It is in {former_path.parent}, where it was before the database moved. "
                f"{instruction}; if another database still uses {former_folder}, give these rows "
                "up with --give-up-lost"
            )
        return (
            "Restore it, name the right folder with --keys, or give these rows up with "
            "--give-up-lost"
        )

    def has_key(self, key_name: str) -> bool:
        """Whether the file of a key is in the folder."""
        return self._make_path(key_name).is_file()

    def read_age(self, key_name: str) -> float:
        """Read the age of a key in seconds: since its creation, or as it was set."""
        try:
            return time.time() - self._make_path(key_name).stat().st_mtime
        except OSError:  # lost, which :meth:`load_key` says
            return 0.0

    def set_age(self, key_name: str, seconds: float) -> None:
        """Set the age of a key, in seconds, as the modification time of its file."""
        key_time = time.time() - seconds
        try:
            os.utime(self._make_path(key_name), (key_time, key_time))
        except FileNotFoundError:
            return
        except OSError as error:
            raise KeyFolderError(
                f"{self._make_path(key_name)}: cannot be changed: {error.strerror}"
            ) from None

    def forget_batches(self, survey_number: int, live_names: Iterable[str]) -> None:
        """Remove the batch keys of a survey from memory, except those that are live."""
        name_prefix = format_key_name(survey_number, 0)[:-16]
        for key_name in set(self._loaded_keys).difference(live_names):
            if key_name.startswith(name_prefix):
                self._loaded_keys.pop(key_name, None)

    def list_batches(self) -> list[tuple[int, int]]:
        """List (survey number, key number) of every batch key in the folder."""
        batch_numbers = []
        with suppress(FileNotFoundError):
            for key_path in (self.folder / "batches").iterdir():
                if match := re.fullmatch(r"(\d+)-([0-9a-f]{16})\.key", key_path.name):
                    batch_numbers.append((int(match[1]), int(match[2], 16)))
        return sorted(batch_numbers)

    def destroy_key(self, key_name: str) -> None:
        """Overwrite a key and remove it; do nothing if it is already gone."""
        self._loaded_keys.pop(key_name, None)
        destroy_file(self._make_path(key_name))
