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
from discreet.documents import Body, dump, load, read_text, replace_and_destroy
from discreet.errors import FormatError, PrivacyError
from discreet.locks import locked

__all__ = ["ShuffleMemory"]

VERSION = 1
HASH_BYTES = 12
"""Bytes of the hash of an id: ten million hashes collide with probability 1e-15."""
KEY_BYTES = 32


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
    def passing_on(self, ids: Sized[str]) -> Iterator[None]:
        """Refuse reports that were in an earlier shuffle, and remember these at the end.

        Parameters
        ----------
        ids : collection of str
            Of the reports as they came in. They are remembered, on disk, when the block has
            written the output and before anybody else can read it; not where it fails.

        Raises
        ------
        PrivacyError
            If one of them was passed on before, or if the collection is closed.
        """
        noun = self.collection.noun
        with self._locked():
            memory = self._read()
            if memory.closed:
                raise PrivacyError(
                    f"{self.path}: the shuffles of this {self.collection.kind} were closed, and it "
                    f"is not known any more whose {noun}s were passed on; nothing is shuffled"
                )
            key = bytes.fromhex(memory.key)
            used = _split(base64.b64decode(memory.used))
            fresh = {_hash_id(one, key) for one in ids}
            if overlap := len(fresh & used):
                raise PrivacyError(
                    f"{overlap:,} of these {len(fresh):,} {noun}s were in an earlier shuffle; "
                    "passed on again with others, the difference of the two outputs would show "
                    f"what those others answered. Delete the {noun}s that were passed on, and "
                    "shuffle only what came since. If nothing of the earlier shuffle ever left "
                    f"this machine, delete its output and {self.path}"
                )
            yield
            content = base64.b64encode(b"".join(sorted(fresh | used))).decode()
            self._write(memory.model_copy(update={"used": content}))

    def close(self) -> None:
        """Erase hashes and key; further shuffles of this collection are refused."""
        with self._locked():
            memory = self._read()
            self._write(memory.model_copy(update={"used": "", "key": "", "closed": True}))

    def _locked(self) -> AbstractContextManager[None]:
        return locked(self.path.with_name(f"{self.path.name}.lock"))

    def _read(self) -> MemoryBody:
        if not self.path.exists():
            key = secrets.token_hex(KEY_BYTES)
            return MemoryBody(collection=self.collection.digest, key=key, used="", closed=False)
        memory = load(read_text(self.path), "shuffle-memory", VERSION, MemoryBody)
        if memory.collection != self.collection.digest:
            raise FormatError(
                f"{self.path}: remembers the shuffles of another {self.collection.kind}; name "
                "another file: --memory on the command line"
            )
        return memory

    def _write(self, memory: MemoryBody) -> None:
        text = dump("shuffle-memory", VERSION, memory.model_dump(), indent=None)
        replace_and_destroy(self.path, text)


def _hash_id(report_id: str, key: bytes) -> bytes:
    return hashlib.blake2b(bytes.fromhex(report_id), digest_size=HASH_BYTES, key=key).digest()


def _split(hashes: bytes) -> set[bytes]:
    return {hashes[at : at + HASH_BYTES] for at in range(0, len(hashes), HASH_BYTES)}


class MemoryBody(Body):
    collection: str
    key: str
    used: str
    closed: bool
