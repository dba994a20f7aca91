"""The collector's side: how often each sheet came, as integers that add up in any order."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike

from discreet.arrays import Integers
from discreet.documents import Body, dump, load, read_text
from discreet.errors import DiscreetError, EstimationError, FormatError, SchemaError
from discreet.local.tally import LARGEST, Receipt
from discreet.survey.questionnaire import Questionnaire
from discreet.survey.sheet import Sheet

__all__ = ["Receipt", "Tally"]

VERSION = 1
WAITING = 1 << 16
"""Rows that may wait before equal ones are added up."""


@dataclass(eq=False)
class Tally:
    """How often each different sheet of one questionnaire was sent.

    The joint table is kept, not its margins, so that any logical expression can be estimated
    later; it has at most as many rows as there are sheets.

    Parameters
    ----------
    questionnaire : Questionnaire
    sheets : array of int, (distinct sheets, questions)
    times : array of int
        How often each was sent.
    rejected : Counter
        How many deliveries were refused, by reason.
    repeated : int
        How many deliveries were repetitions of a counted sheet.
    seen : dict
        Fingerprints of the counted sheets by id; bulk tallies leave it to their engine.
    simulated : bool
        Whether a seeded source made some of the sheets: then they promise nothing.
    """

    questionnaire: Questionnaire
    sheets: Integers = None  # type: ignore[assignment]
    times: Integers = None  # type: ignore[assignment]
    rejected: Counter[str] = field(default_factory=Counter)
    repeated: int = 0
    seen: dict[str, str] = field(default_factory=dict)
    simulated: bool = False

    def __post_init__(self) -> None:
        if self.sheets is None:
            self.sheets = np.zeros((0, len(self.questionnaire.names)), np.int64)
            self.times = np.zeros(0, np.int64)
        self._waiting: list[tuple[Integers, Integers]] = []

    @property
    def people(self) -> int:
        """Number of counted sheets."""
        self._settle()
        return int(self.times.sum())

    def add(self, sheet: Sheet | str | bytes) -> Receipt:
        """Count one sheet, or say why not; nothing else is touched."""
        try:
            if not isinstance(sheet, Sheet):
                sheet = Sheet.from_json(sheet)
        except DiscreetError as error:
            return self._reject("misshapen", str(error))
        if sheet.questionnaire != self.questionnaire.digest:
            stated = sheet.questionnaire[:23]
            return self._reject("foreign questionnaire", f"it answers {stated}…, not this one")
        sizes = self.questionnaire.sizes
        if len(sheet.answers) != len(sizes):
            return self._reject("out of domain", f"{len(sheet.answers)} answers, not {len(sizes)}")
        if any(not 0 <= a < size for a, size in zip(sheet.answers, sizes, strict=True)):
            return self._reject("out of domain", "an answer is not one of the public ones")
        known = self.seen.get(sheet.id)
        if known == sheet.fingerprint:
            self.repeated += 1
            return Receipt("repeated", "this very sheet was counted before")
        if known is not None:
            return self._reject("id reused", "another sheet with this id was counted before")
        self.add_answers([sheet.answers])
        self.seen[sheet.id] = sheet.fingerprint
        self.simulated |= sheet.simulated
        return Receipt("counted")

    def _reject(self, kind: str, reason: str) -> Receipt:
        self.rejected[kind] += 1
        return Receipt("rejected", f"{kind}: {reason}")

    def add_answers(self, answers: ArrayLike, times: ArrayLike | None = None) -> None:
        """Count sheets that were checked before.

        Parameters
        ----------
        answers : array of int, (sheets, questions)
        times : array of int, optional
            How often each was sent; once if not given.
        """
        matrix = np.asarray(answers, np.int64).reshape(-1, len(self.questionnaire.names))
        often = np.ones(len(matrix), np.int64) if times is None else np.asarray(times, np.int64)
        if often.shape != (len(matrix),) or (often < 0).any():
            raise EstimationError("times must say for each sheet how often it was sent")
        if ((matrix < 0) | (matrix >= np.array(self.questionnaire.sizes))).any():
            raise SchemaError("an answer is not one of the public ones")
        self._waiting.append((matrix, often))
        if sum(len(rows) for rows, _ in self._waiting) > WAITING:
            self._settle()

    def _settle(self) -> None:
        if not self._waiting:
            return
        rows = np.concatenate([self.sheets, *(rows for rows, _ in self._waiting)])
        often = np.concatenate([self.times, *(often for _, often in self._waiting)])
        self._waiting = []
        if int(often.sum(dtype=np.float64)) > LARGEST:
            raise EstimationError("the counts would go beyond 2^62 and no longer be exact")
        self.sheets, self.times = _merged(rows, often, self.questionnaire.sizes)

    def distinct(self) -> tuple[Integers, Integers]:
        """Different sheets in ascending order, and how often each was sent."""
        self._settle()
        return self.sheets, self.times

    def margin(self, names: Sequence[str]) -> Integers:
        """How often each combination of answers to these questions was sent, an axis a question."""
        sheets, times = self.distinct()
        places = [self.questionnaire.place[name] for name in names]
        shape = tuple(self.questionnaire.sizes[place] for place in places)
        flat = np.zeros(math.prod(shape), np.int64)
        if len(sheets):
            np.add.at(flat, np.ravel_multi_index(tuple(sheets[:, places].T), shape), times)
        return flat.reshape(shape)

    def __add__(self, other: Tally) -> Tally:
        """The tally of both collectors' sheets; the same sheet must not be in both."""
        if not isinstance(other, Tally):
            return NotImplemented
        if self.questionnaire.digest != other.questionnaire.digest:
            raise EstimationError("these tallies follow different questionnaires; do not add them")
        both = self.seen.keys() & other.seen.keys()
        if both:
            raise EstimationError(
                f"{len(both)} sheets are in both tallies and would count twice; tally them once"
            )
        whole = Tally(
            self.questionnaire,
            *self.distinct(),
            self.rejected + other.rejected,
            self.repeated + other.repeated,
            self.seen | other.seen,
            self.simulated or other.simulated,
        )
        whole.add_answers(*other.distinct())
        whole._settle()
        return whole

    def to_json(self) -> str:
        """Write the tally with its questionnaire as versioned JSON."""
        sheets, times = self.distinct()
        body = {
            "questionnaire": self.questionnaire.to_json(),
            "sheets": sheets.tolist(),
            "times": times.tolist(),
            "rejected": dict(self.rejected),
            "repeated": self.repeated,
            "seen": self.seen,
            "simulated": self.simulated,
        }
        return dump("survey-tally", VERSION, body, indent=None)

    @classmethod
    def from_json(cls, text: str | bytes) -> Tally:
        """Read what :meth:`to_json` wrote."""
        body = load(text, "survey-tally", VERSION, _TallyBody)
        tally = cls(
            Questionnaire.from_json(body.questionnaire),
            rejected=Counter(body.rejected),
            repeated=body.repeated,
            seen=body.seen,
            simulated=body.simulated,
        )
        width = len(tally.questionnaire.names)
        if len(body.times) != len(body.sheets) or any(len(row) != width for row in body.sheets):
            raise FormatError("this tally does not fit its own questionnaire")
        if min([*body.times, *body.rejected.values(), body.repeated], default=0) < 0:
            raise FormatError("this tally counts fewer than no sheets")
        if max([*body.times, *(max(row) for row in body.sheets)], default=0) > LARGEST:
            raise FormatError("this tally holds a number beyond 2^62")
        try:
            tally.add_answers(np.array(body.sheets, np.int64), body.times)
            tally._settle()
        except DiscreetError as error:
            raise FormatError(f"this tally does not fit its own questionnaire: {error}") from None
        return tally

    @classmethod
    def read(cls, path: str | Path) -> Tally:
        """Read a tally file."""
        return cls.from_json(read_text(path))

    @classmethod
    def of(cls, questionnaire: Questionnaire, sheets: Iterable[Sheet | str | bytes]) -> Tally:
        """Tally sheets one by one."""
        tally = cls(questionnaire)
        for sheet in sheets:
            tally.add(sheet)
        return tally


def _merged(rows: Integers, often: Integers, sizes: Sequence[int]) -> tuple[Integers, Integers]:
    """Equal rows added up, in ascending order."""
    if math.prod(sizes) < LARGEST:
        keys = np.zeros(len(rows), np.int64)
        for size, column in zip(sizes, rows.T, strict=True):
            keys = keys * size + column
        _, first, where = np.unique(keys, return_index=True, return_inverse=True)
        kept = rows[first]
    else:
        kept, where = np.unique(rows, axis=0, return_inverse=True)
    counts = np.zeros(len(kept), np.int64)
    np.add.at(counts, where.ravel(), often)
    present = counts > 0
    return kept[present], counts[present]


class _TallyBody(Body):
    questionnaire: str
    sheets: list[list[int]]
    times: list[int]
    rejected: dict[str, int]
    repeated: int
    seen: dict[str, str]
    simulated: bool
