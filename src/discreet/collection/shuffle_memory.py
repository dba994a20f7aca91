"""Memory of an anonymiser: which reports were already shuffled."""

from __future__ import annotations

import base64
import hashlib
import secrets
from collections.abc import Collection as Sized
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

from discreet.collection.protocol import Collection
from discreet.errors import FormatError, PrivacyError
from discreet.files.atomic_writing import read_text, replace_and_destroy
from discreet.files.documents import Body, dump_document, load_document
from discreet.files.locks import hold_lock

__all__ = ["ShuffleMemory"]

VERSION = 1
HASH_BYTES = 12
"""Bytes of the hash of an id: ten million hashes collide with probability 1e-15."""
KEY_BYTES = 32
"""Bytes of the key of the hash, BLAKE2b."""


class ShuffleMemory:
    """The ids that went into the shuffles of one collection, as keyed hashes in a private file.

    Anyone with the output of a shuffle and that of the same reports with a few more can subtract
    them; the difference is the reports of the late senders. So a report goes into
    one shuffle only. The hashes reveal nothing without the key, which is in the same file; only
    its owner can read it. When the collection ends, :meth:`close` erases both. The file of an
    earlier state is overwritten before it is removed.

    Parameters
    ----------
    path : path
    collection : Plan or Questionnaire
    """

    def __init__(self, path: str | Path, collection: Collection) -> None:
        self.path, self.collection = Path(path), collection

    @contextmanager
    def check_and_remember(self, report_ids: Sized[str]) -> Iterator[None]:
        """Refuse reports that were in an earlier shuffle, and remember these at the end.

        Parameters
        ----------
        report_ids : collection of str
            Of the reports as they came in. They are remembered, on disk, when the block has
            written the output and before anybody else can read it; not where it fails.

        Raises
        ------
        PrivacyError
            If one of them was passed on before, or if the collection is closed.
        """
        noun = self.collection.noun
        with self._take_lock():
            memory = self._load_memory()
            if memory.closed:
                raise PrivacyError(
                    f"{self.path}: the shuffles of this {self.collection.kind} were closed, and it "
                    f"is no longer known whose {noun}s were passed on; nothing is shuffled"
                )
            hash_key = bytes.fromhex(memory.key)
            used_bytes = base64.b64decode(memory.used)
            used_hashes = {
                used_bytes[start : start + HASH_BYTES]
                for start in range(0, len(used_bytes), HASH_BYTES)
            }
            new_hashes = {_hash_id(report_id, hash_key) for report_id in report_ids}
            if repeated_count := len(new_hashes & used_hashes):
                raise PrivacyError(
                    f"{repeated_count:,} of these {len(new_hashes):,} {noun}s were in an earlier "
                    "shuffle; passed on again with others, the difference of the two outputs "
                    f"would show what those others answered. Delete the {noun}s that were passed "
                    "on, and shuffle only what came since. If nothing of the earlier shuffle "
                    f"ever left this machine, delete its output and {self.path}"
                )
            yield
            encoded_hashes = base64.b64encode(b"".join(sorted(new_hashes | used_hashes))).decode()
            self._save_memory(memory.model_copy(update={"used": encoded_hashes}))

    def close(self) -> None:
        """Erase hashes and key; further shuffles of this collection are refused."""
        with self._take_lock():
            memory = self._load_memory()
            self._save_memory(memory.model_copy(update={"used": "", "key": "", "closed": True}))

    def _take_lock(self) -> AbstractContextManager[None]:
        return hold_lock(self.path.with_name(f"{self.path.name}.lock"))

    def _load_memory(self) -> ShuffleMemoryBody:
        if not self.path.exists():
            hash_key = secrets.token_hex(KEY_BYTES)
            return ShuffleMemoryBody(
                collection=self.collection.digest, key=hash_key, used="", closed=False
            )
        memory = load_document(read_text(self.path), "shuffle-memory", VERSION, ShuffleMemoryBody)
        if memory.collection != self.collection.digest:
            raise FormatError(
                f"{self.path}: remembers the shuffles of another {self.collection.kind}; name "
                "another file: --memory on the command line"
            )
        return memory

    def _save_memory(self, memory: ShuffleMemoryBody) -> None:
        text = dump_document("shuffle-memory", VERSION, memory.model_dump(), indent=None)
        replace_and_destroy(self.path, text)


def _hash_id(report_id: str, hash_key: bytes) -> bytes:
    return hashlib.blake2b(bytes.fromhex(report_id), digest_size=HASH_BYTES, key=hash_key).digest()


class ShuffleMemoryBody(Body):
    collection: str
    key: str
    used: str
    closed: bool
