"""Storage of a device: drawn questions, reports, and the epsilon spent.

A question is stored when it is drawn and a report before it is sent; neither is drawn again.
Every collection is charged with its epsilon, plans and questionnaires alike, and what one person
answers in total stays within what its owner allowed.
"""

from __future__ import annotations

import abc
import math
import os
import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path

from discreet.documents import Body, dump, load, private_folder, write_atomic
from discreet.errors import FormatError, PrivacyError
from discreet.locks import locked
from discreet.privacy import rounded_up

__all__ = ["FolderStore", "Kept", "MemoryStore", "Store"]

VERSION = 1
ALLOWANCE = "allowance.json"
TOLERANCE = 1e-9
"""Relative tolerance, so that 0.1 + 0.2 fits into an allowance of 0.3."""


@dataclass(frozen=True)
class Kept:
    """A report as it was stored before it was sent.

    Parameters
    ----------
    report : str
        The text, byte for byte as it is sent.
    key : str
        32 hexadecimal digits whose hash is the report's id; it stays on the device.
    """

    report: str
    key: str


class Store(abc.ABC):
    """One person's memory of the collections they answered."""

    @abc.abstractmethod
    def _names(self) -> list[str]:
        """List the names of all stored texts."""

    @abc.abstractmethod
    def _read(self, name: str) -> str:
        """Read one text."""

    @abc.abstractmethod
    def _write(self, name: str, text: str, exclusive: bool = True) -> bool:
        """Store a text permanently; False if there is one already."""

    @abc.abstractmethod
    def _locked(self) -> AbstractContextManager[object]:
        """Lock the store while a collection is charged."""

    def question(self, collection: str, number: int) -> int | None:
        """Return the question drawn for a report of a collection, or None."""
        name = _file(collection, number, "question")
        return self._drawn(name).question if name in self._names() else None

    def draw(self, collection: str, number: int, question: int, epsilon: float) -> int:
        """Store the question drawn for a report, and charge the collection once.

        Parameters
        ----------
        collection : str
            Digest.
        number : int
            How many reports this person has sent to it before.
        question : int
        epsilon : float
            Total epsilon of all reports of one person to this collection. An infinite one is not
            added up: the respondent has agreed to answer without protection.

        Returns
        -------
        int
            The question that is kept: another one, if another process was first.

        Raises
        ------
        PrivacyError
            If answering would exceed the allowance; :meth:`allow` raises it.
        """
        with self._locked():
            self._charge(collection, epsilon)
            body = {"collection": collection, "question": question, "epsilon": epsilon}
            name = _file(collection, number, "question")
            if self._write(name, dump("drawn-question", VERSION, body)):
                return question
            return self._drawn(name).question

    def _charge(self, collection: str, epsilon: float) -> None:
        charges = self.charges()
        if collection in charges or not math.isfinite(epsilon):
            return
        allowed, spent = self.allowance, math.fsum(c for c in charges.values() if c < math.inf)
        if allowed is None:
            self.allow(epsilon)  # the first collection sets what the later ones may spend
        elif spent + epsilon > allowed * (1 + TOLERANCE):
            total = rounded_up(spent + epsilon)
            raise PrivacyError(
                f"this person has answered collections that together cost epsilon "
                f"{rounded_up(spent)}; this one costs {rounded_up(epsilon)} more, but only "
                f"{allowed:g} is allowed in total. Each answer is drawn by itself, so answering "
                "many similar collections reveals the truth. If you accept the cost, allow "
                f"{total} in total: store.set_allowance(), or --allow on the command line"
            )

    def charges(self) -> dict[str, float]:
        """Read the epsilon of every answered collection, by digest."""
        drawn = [self._drawn(name) for name in self._names() if name.endswith(".question.json")]
        return {one.collection: one.epsilon for one in drawn}

    @property
    def allowance(self) -> float | None:
        """The total epsilon that all answers may spend; None before the first answer."""
        if ALLOWANCE not in self._names():
            return None
        with _damaged("the allowance kept on this device"):
            return load(self._read(ALLOWANCE), "allowance", VERSION, AllowanceBody).epsilon

    def allow(self, epsilon: float) -> None:
        """Set the total epsilon that all answers may spend; replaces the earlier allowance.

        Before the first answer the allowance is the epsilon of the collection answered first.
        """
        if not epsilon > 0:
            raise PrivacyError(f"the allowance is {epsilon!r}; it must be an epsilon above 0")
        text = dump("allowance", VERSION, {"epsilon": float(epsilon)})
        self._write(ALLOWANCE, text, exclusive=False)

    def reports(self, collection: str) -> list[Kept]:
        """Load the reports made for a collection, in order; a gap is an error and never redrawn."""
        begin, end = _file(collection, 0, "report").split("0.", 1)
        count = sum(n.startswith(begin) and n.endswith(end) for n in self._names())
        found = []
        for number in range(count):
            with _damaged("a report kept on this device"):
                text = self._read(_file(collection, number, "report"))
                body = load(text, "kept-report", VERSION, KeptBody)
            found.append(Kept(body.report, body.key))
        return found

    def keep(self, collection: str, number: int, kept: Kept) -> bool:
        """Store a report of a collection permanently; False if there is one already."""
        text = dump("kept-report", VERSION, vars(kept))
        return self._write(_file(collection, number, "report"), text)

    def _drawn(self, name: str) -> DrawnBody:
        with _damaged("a question kept on this device"):
            return load(self._read(name), "drawn-question", VERSION, DrawnBody)


class MemoryStore(Store):
    """Store in memory, lost when the process ends; for simulation and tests."""

    def __init__(self) -> None:
        self._texts: dict[str, str] = {}
        self._lock = threading.RLock()

    def _names(self) -> list[str]:
        return list(self._texts)

    def _read(self, name: str) -> str:
        return self._texts[name]

    def _write(self, name: str, text: str, exclusive: bool = True) -> bool:
        with self._lock:
            if exclusive and name in self._texts:
                return False
            self._texts[name] = text
            return True

    def _locked(self) -> AbstractContextManager[object]:
        return self._lock


class FolderStore(Store):
    """Stores texts in files that only their owner can read, synced to disk first.

    Parameters
    ----------
    folder : path
        One folder per person. Two processes that race for the same report both get the one that
        was written first.
    """

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)

    def _names(self) -> list[str]:
        try:
            return os.listdir(self.folder)
        except FileNotFoundError:
            return []
        except OSError as error:
            raise FormatError(
                f"{self.folder}: the folder of kept reports cannot be read: {error.strerror}; "
                "nothing is drawn, because that could cost privacy twice"
            ) from None

    def _read(self, name: str) -> str:
        try:
            return (self.folder / name).read_bytes().decode(errors="replace")
        except OSError as error:
            raise FormatError(f"{self.folder / name}: cannot be read: {error.strerror}") from None

    def _write(self, name: str, text: str, exclusive: bool = True) -> bool:
        return write_atomic(self.folder / name, text, private=True, exclusive=exclusive)

    def _locked(self) -> AbstractContextManager[object]:
        return locked(private_folder(self.folder))


@contextmanager
def _damaged(what: str) -> Iterator[None]:
    try:
        yield
    except FormatError as error:
        raise FormatError(
            f"{what} is damaged ({error}); it is not drawn again, because that would cost privacy "
            "twice"
        ) from None


def _file(collection: str, number: int, what: str) -> str:
    return f"{collection.removeprefix('sha256:')[:32]}-{number}.{what}.json"


class DrawnBody(Body):
    collection: str
    question: int
    epsilon: float


class KeptBody(Body):
    report: str
    key: str


class AllowanceBody(Body):
    epsilon: float
