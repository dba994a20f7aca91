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

from discreet.errors import FormatError, PrivacyError
from discreet.files.atomic_writing import make_private_folder, write_atomic
from discreet.files.documents import Body, dump_document, load_document, make_body_class
from discreet.files.locks import hold_lock
from discreet.privacy.guarantee import format_rounded_up

__all__ = ["FolderStore", "MemoryStore", "Store", "StoredReport"]

VERSION = 1
ALLOWANCE_FILE = "allowance.json"
ALLOWANCE_TOLERANCE = 1e-9
"""Relative tolerance, so that 0.1 + 0.2 fits into an allowance of 0.3."""


@dataclass(frozen=True)
class StoredReport:
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
    def _list_names(self) -> list[str]:
        """List the names of all stored texts."""

    @abc.abstractmethod
    def _read_text(self, file_name: str) -> str:
        """Read one text."""

    @abc.abstractmethod
    def _write_text(self, file_name: str, text: str, exclusive: bool = True) -> bool:
        """Store a text permanently; False if there is one already."""

    @abc.abstractmethod
    def _take_lock(self) -> AbstractContextManager[object]:
        """Lock the store while a collection is charged."""

    def find_question(self, collection: str, report_number: int) -> int | None:
        """Return the question drawn for a report of a collection, or None."""
        file_name = _format_file_name(collection, report_number, "question")
        return (
            self._load_drawn_question(file_name).question
            if file_name in self._list_names()
            else None
        )

    def save_question(
        self, collection: str, report_number: int, question: int, epsilon: float
    ) -> int:
        """Store the question drawn for a report, and charge the collection once.

        Parameters
        ----------
        collection : str
            Digest.
        report_number : int
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
            If answering would exceed the allowance; :meth:`set_allowance` raises it.
        """
        body = {"collection": collection, "question": question, "epsilon": epsilon}
        file_name = _format_file_name(collection, report_number, "question")
        with self._take_lock():
            question_json = dump_document("drawn-question", VERSION, body)
            self._charge_epsilon(collection, epsilon)
            if self._write_text(file_name, question_json):
                return question
            return self._load_drawn_question(file_name).question

    def _charge_epsilon(self, collection: str, epsilon: float) -> None:
        charges = self.read_charges()
        if collection in charges or not math.isfinite(epsilon):
            return
        allowed_epsilon = self.allowance
        spent_epsilon = math.fsum(charge for charge in charges.values() if charge < math.inf)
        if allowed_epsilon is None:
            self.set_allowance(epsilon)  # the first collection sets what the later ones may spend
        elif spent_epsilon + epsilon > allowed_epsilon * (1 + ALLOWANCE_TOLERANCE):
            total_epsilon = format_rounded_up(spent_epsilon + epsilon)
            raise PrivacyError(
                "this person has answered collections that together cost epsilon "
                f"{format_rounded_up(spent_epsilon)}; this one costs {format_rounded_up(epsilon)} "
                f"more, but only {format_rounded_up(allowed_epsilon)} is allowed in total. Each "
                "answer is drawn by itself, so answering many similar collections reveals the "
                f"truth. If you accept the cost, allow {total_epsilon} in total: "
                "store.set_allowance(), or --allow on the command line"
            )

    def read_charges(self) -> dict[str, float]:
        """Read the epsilon of every answered collection, by digest."""
        drawn_questions = [
            self._load_drawn_question(file_name)
            for file_name in self._list_names()
            if file_name.endswith(".question.json")
        ]
        return {
            drawn_question.collection: drawn_question.epsilon for drawn_question in drawn_questions
        }

    @property
    def allowance(self) -> float | None:
        """The total epsilon that all answers may spend; None before the first answer."""
        if ALLOWANCE_FILE not in self._list_names():
            return None
        with _convert_damage("the allowance kept on this device"):
            return load_document(
                self._read_text(ALLOWANCE_FILE), "allowance", VERSION, AllowanceBody
            ).epsilon

    def set_allowance(self, epsilon: float) -> None:
        """Set the total epsilon that all answers may spend; replaces the earlier allowance.

        Before the first answer the allowance is the epsilon of the collection answered first.
        """
        if not epsilon > 0:
            raise PrivacyError(f"the allowance is {epsilon!r}; it must be an epsilon above 0")
        allowance_json = dump_document("allowance", VERSION, {"epsilon": float(epsilon)})
        self._write_text(ALLOWANCE_FILE, allowance_json, exclusive=False)

    def load_reports(self, collection: str) -> list[StoredReport]:
        """Load the reports made for a collection, in order; a gap is an error and never redrawn."""
        name_prefix, name_suffix = _format_file_name(collection, 0, "report").split("0.", 1)
        report_count = sum(
            file_name.startswith(name_prefix) and file_name.endswith(name_suffix)
            for file_name in self._list_names()
        )
        stored_reports = []
        for report_number in range(report_count):
            with _convert_damage("a report kept on this device"):
                report_json = self._read_text(
                    _format_file_name(collection, report_number, "report")
                )
                body = load_document(report_json, "kept-report", VERSION, StoredReportBody)
            stored_reports.append(StoredReport(**dict(body)))
        return stored_reports

    def save_report(self, collection: str, report_number: int, stored_report: StoredReport) -> bool:
        """Store a report of a collection permanently; False if there is one already."""
        report_json = dump_document("kept-report", VERSION, vars(stored_report))
        return self._write_text(_format_file_name(collection, report_number, "report"), report_json)

    def _load_drawn_question(self, file_name: str) -> DrawnQuestionBody:
        with _convert_damage("a question kept on this device"):
            return load_document(
                self._read_text(file_name), "drawn-question", VERSION, DrawnQuestionBody
            )


class MemoryStore(Store):
    """Store in memory, lost when the process ends; for simulation and tests."""

    def __init__(self) -> None:
        self._texts: dict[str, str] = {}
        self._lock = threading.RLock()

    def _list_names(self) -> list[str]:
        return list(self._texts)

    def _read_text(self, file_name: str) -> str:
        return self._texts[file_name]

    def _write_text(self, file_name: str, text: str, exclusive: bool = True) -> bool:
        with self._lock:
            if exclusive and file_name in self._texts:
                return False
            self._texts[file_name] = text
            return True

    def _take_lock(self) -> AbstractContextManager[object]:
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

    def _list_names(self) -> list[str]:
        try:
            return os.listdir(self.folder)
        except FileNotFoundError:
            return []
        except OSError as error:
            raise FormatError(
                f"{self.folder}: the folder of kept reports cannot be read: {error.strerror}; "
                "nothing is drawn, because that could cost privacy twice"
            ) from None

    def _read_text(self, file_name: str) -> str:
        try:
            return (self.folder / file_name).read_bytes().decode(errors="replace")
        except OSError as error:
            raise FormatError(
                f"{self.folder / file_name}: cannot be read: {error.strerror}"
            ) from None

    def _write_text(self, file_name: str, text: str, exclusive: bool = True) -> bool:
        return write_atomic(self.folder / file_name, text, private=True, exclusive=exclusive)

    def _take_lock(self) -> AbstractContextManager[object]:
        return hold_lock(make_private_folder(self.folder))


@contextmanager
def _convert_damage(file_description: str) -> Iterator[None]:
    try:
        yield
    except FormatError as error:
        raise FormatError(
            f"{file_description} is damaged ({error}); it is not drawn again, because that would "
            "cost privacy twice"
        ) from None


def _format_file_name(collection: str, report_number: int, file_kind: str) -> str:
    return f"{collection.removeprefix('sha256:')[:32]}-{report_number}.{file_kind}.json"


class DrawnQuestionBody(Body):
    collection: str
    question: int
    epsilon: float


StoredReportBody = make_body_class(StoredReport)


class AllowanceBody(Body):
    epsilon: float
