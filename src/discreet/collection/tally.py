"""The collector's tally: exact integer sums of reports."""

from __future__ import annotations

import hashlib
import heapq
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any, Generic, Literal

import numpy as np
from numpy.typing import ArrayLike

from discreet.arrays import Integers
from discreet.collection.counts import WholeCounts
from discreet.collection.protocol import LARGEST, C, Collection, collection_of
from discreet.collection.report import IDENTITY, Report
from discreet.collection.shuffle_batches import BatchSizes
from discreet.documents import Body, canonical, digest_of, dump, load, read_text
from discreet.errors import DiscreetError, EstimationError, FormatError, SchemaError

__all__ = ["Receipt", "Tally", "refusals"]

VERSION = 4
PIECE = 4096
"""Reports that are checked and added up at once."""
SAMPLED = 1024
"""Number of ids, the smallest ones, that identify a tally where not all ids are kept."""


@dataclass(frozen=True)
class Receipt:
    """Outcome for a report: counted, repeated, or rejected with a reason.

    Parameters
    ----------
    status : {"counted", "repeated", "rejected"}
    reason : str
        Why a report was rejected; empty otherwise.
    """

    status: Literal["counted", "repeated", "rejected"]
    reason: str = ""


@dataclass(eq=False)
class Tally(Generic[C]):
    """Exact sums of the reports to one collection.

    Parameters
    ----------
    collection : Plan or Questionnaire
    counted : array of int
        How many reports to each question were counted.
    sums : list of arrays of int
        Sums of the answers to each question; empty where whole answers are counted.
    rejected : Counter
        How many reports were refused, by reason.
    repeated : int
        How many deliveries were repetitions of a counted report.
    seen : dict
        Fingerprints of the counted reports by id; bulk tallies leave it to their engine.
    sample : set of str
        Where not all ids are kept: the smallest ones, to notice reports that come twice.
    parts : set of str
        Names of the tallies that were merged into this one.
    withdrawn : set of str
        Ids of reports that were taken out again; they are not counted a second time.
    simulated : bool
        Whether a seeded source made some of the reports: then they are not protected.
    batches : BatchSizes
        How many of the counted reports came in which batch of a shuffle, by batch mark.
    """

    collection: C
    counted: Integers = None  # type: ignore[assignment]
    sums: list[Integers] = field(default_factory=list)
    rejected: Counter[str] = field(default_factory=Counter)
    repeated: int = 0
    seen: dict[str, str] = field(default_factory=dict)
    sample: set[str] = field(default_factory=set)
    parts: set[str] = field(default_factory=set)
    withdrawn: set[str] = field(default_factory=set)
    simulated: bool = False
    batches: BatchSizes = field(default_factory=BatchSizes)

    def __post_init__(self) -> None:
        questions = self.collection.questions
        if self.counted is None:
            self.counted = np.zeros(len(questions), dtype=np.int64)
        if not self.sums:
            self.sums = [np.zeros(question.size or 0, np.int64) for question in questions]
        self._whole: dict[int, WholeCounts] = {
            number: WholeCounts(question)  # type: ignore[arg-type]
            for number, question in enumerate(questions)
            if question.size is None
        }

    @property
    def reports(self) -> int:
        """Number of counted reports."""
        return int(self.counted.sum())

    @property
    def people(self) -> int:
        """Number of people, if each sent all the reports that the collection allows."""
        return -(-self.reports // self.collection.reports)

    @property
    def together(self) -> int:
        """Number of counted reports in the smallest batch; 0 if one report was not shuffled.

        The guarantee of a shuffled collection rests on this number.
        """
        return self.batches.smallest(self.reports)

    @property
    def digest(self) -> str:
        """SHA-256 of the sums of the reports, without their ids."""
        whole = [[a.tolist() for a in one.distinct()] for one in self._whole.values()]
        sums = [one.tolist() for one in self.sums]
        content = [self.collection.digest, self.counted.tolist(), sums, whole]
        return digest_of(canonical({"format": "discreet/tally-sums", "content": content}))

    # ---------------------------------------------------------------- counting

    def add(self, report: Report | str | bytes) -> Receipt:
        """Count one report, or reject it with a reason."""
        return self.add_all([report])[0]

    def add_all(self, reports: Sequence[Report | str | bytes]) -> list[Receipt]:
        """Count several reports, with the result of adding them one by one: a receipt for each."""
        receipts, own = [Receipt("counted")] * len(reports), []
        for row, one in enumerate(reports):
            try:
                report = one if isinstance(one, Report) else Report.from_json(one)
            except DiscreetError as error:
                receipts[row] = self._reject("misshapen", str(error))
                continue
            if report.collection == self.collection.digest:
                own.append((row, report))
            else:
                kind, named = self.collection.kind, report.collection[:23]
                reason = f"it answers {named}…, not this {kind}"
                receipts[row] = self._reject(f"foreign {kind}", reason)
        faults = refusals(
            self.collection,
            [report.question for _, report in own],
            [report.value for _, report in own],
        )
        fresh: dict[str, str] = {}
        values: dict[int, list[tuple[int, ...]]] = {}
        for (row, report), fault in zip(own, faults, strict=True):
            if found := self._not_counted(report, fault, fresh):
                receipts[row] = found
                continue
            fresh[report.id] = report.fingerprint
            values.setdefault(report.question, []).append(report.value)
            self.batches.add(report.batch, 1)
            self.simulated |= report.simulated
        for question, some in values.items():
            self.add_values(question, some)
        self.seen |= fresh
        return receipts

    def _not_counted(self, report: Report, fault: str, fresh: dict[str, str]) -> Receipt | None:
        """Return the receipt of a report to this collection that is not counted, or None."""
        if fault == "unknown question":
            kind = self.collection.kind
            return self._reject(fault, f"question {report.question} is not in the {kind}")
        if fault:
            channel = self.collection.questions[report.question]
            wanted = f"a {channel.name} answer has {channel.width} integers in public ranges"
            return self._reject(fault, f"{wanted}; no respondent could have sent this one")
        known = self.seen.get(report.id) or fresh.get(report.id)
        if known is not None and known == report.fingerprint:
            self.repeated += 1
            return Receipt("repeated", "this very report was counted before")
        if known is not None:
            return self._reject("id reused", "another report with this id was counted before")
        if report.id in self.withdrawn:
            return self._reject("withdrawn", "its sender has withdrawn this report")
        return None

    def _reject(self, kind: str, reason: str) -> Receipt:
        self.rejected[kind] += 1
        return Receipt("rejected", f"{kind}: {reason}")

    def add_values(self, question: int, values: ArrayLike, times: ArrayLike | None = None) -> None:
        """Count serialised answers to one question that were already checked.

        Parameters
        ----------
        question : int
        values : array of int, (reports, width)
        times : array of int, optional
            How often each of the answers was sent; once if not given.
        """
        channel = self.collection.questions[question]
        matrix = np.asarray(values, dtype=np.int64).reshape(-1, channel.width)
        if not len(matrix):
            return
        often = np.ones(len(matrix), np.int64) if times is None else np.asarray(times, np.int64)
        if often.shape != (len(matrix),) or (often < 0).any():
            raise EstimationError("times must say for each answer how often it was sent")
        if question in self._whole:
            if channel.faulty(matrix).any():
                raise SchemaError("an answer is not one of the public ones")
            self._whole[question].add(matrix, often)
            self.add_sums(question, self.sums[question], int(often.sum(dtype=object)))
            return
        most = int(np.abs(matrix).max()) * int(often.sum(dtype=object))
        if most + int(np.abs(self.sums[question]).max()) > LARGEST:
            raise EstimationError("the sums would go beyond 2^62 and no longer be exact")
        # binary expansion of the multiplicities: each answer is tallied once for each set bit
        for bit in range(int(often.max()).bit_length()):
            chosen = matrix if times is None else matrix[(often >> bit) & 1 == 1]
            if len(chosen):
                self.sums[question] += channel.tally(chosen) << bit
        self.counted[question] += often.sum()

    def add_sums(self, question: int, sums: Integers, reports: int) -> None:
        """Add sums that another process tallied for one question."""
        before = self.sums[question]
        most = max(
            (abs(int(a)) + abs(int(b)) for a, b in zip(before, sums, strict=True)), default=0
        )
        if max(most, int(self.counted[question]) + reports) > LARGEST:
            raise EstimationError("the sums would go beyond 2^62 and no longer be exact")
        self.sums[question] = before + sums
        self.counted[question] += reports

    def distinct(self, question: int = 0) -> tuple[Integers, Integers]:
        """Return the distinct whole answers in ascending order, and how often each was sent."""
        return self._counts_of(question).distinct()

    def margin(self, names: Sequence[str], question: int = 0) -> Integers:
        """Count the combinations of answers to these questions; one axis per name."""
        return self._counts_of(question).margin(names)

    def _counts_of(self, question: int) -> WholeCounts:
        if question not in self._whole:
            raise EstimationError(f"the answers to question {question} are added up, not kept")
        return self._whole[question]

    # ---------------------------------------------------------------- merging and withdrawing

    @property
    def name(self) -> str:
        """Identifies this tally: a hash of its size and of its smallest ids."""
        known = heapq.nsmallest(SAMPLED, self.seen.keys() | self.sample)
        content = [self.collection.digest, str(self.reports), *known]
        if not known:  # simulated at once: there were no ids
            content += [str(one.tolist()) for one in (self.counted, *self.sums)]
            content += [str([a.tolist() for a in one.distinct()]) for one in self._whole.values()]
        return hashlib.sha256("|".join(content).encode()).hexdigest()[:32]

    @property
    def names(self) -> set[str]:
        """Fingerprints of this tally and of all tallies merged into it."""
        return self.parts | {self.name} if self.reports else set(self.parts)

    def __add__(self, other: Tally[C]) -> Tally[C]:
        """Merge two tallies; the same report must not be in both.

        That is checked for every id that both tallies know: all of those added one by one, and the
        smallest ones of what an engine tallied in bulk. The same tally is never added twice.
        """
        if not isinstance(other, Tally):
            return NotImplemented
        noun = self.collection.noun
        if self.collection.digest != other.collection.digest:
            raise EstimationError(
                f"these tallies follow different {self.collection.kind}s; they cannot be added"
            )
        both = (self.seen.keys() | self.sample) & (other.seen.keys() | other.sample)
        if both:
            raise EstimationError(
                f"{len(both)} {noun}s are in both tallies and would count twice; tally them once"
            )
        if self.names & other.names:
            raise EstimationError("the same tally is in both and would count twice; add it once")
        if self.withdrawn & other.seen.keys() or other.withdrawn & self.seen.keys():
            raise EstimationError(f"a {noun} was withdrawn from one tally and counted in the other")
        return self._joined(other, 1)

    def without(self, reports: Iterable[Report | str | bytes]) -> Tally[C]:
        """Return the tally without the reports that their senders have withdrawn.

        Parameters
        ----------
        reports : iterable of reports
            Each must have been counted here; where all ids are kept, that is checked.
        """
        gone = Tally.of(self.collection, reports)
        if gone.rejected or gone.repeated:
            raise EstimationError("a report to withdraw does not fit this tally, or comes twice")
        if gone.withdrawn_from(self):
            raise EstimationError("a report to withdraw was not counted in this tally")
        left = self._joined(gone, -1)
        left.withdrawn |= gone.seen.keys()
        left.seen = {id_: print_ for id_, print_ in self.seen.items() if id_ not in gone.seen}
        left.sample = self.sample - gone.seen.keys()
        if not (left.batches.remove(gone.batches) and left._consistent()):
            raise EstimationError("a report to withdraw was not counted in this tally")
        return left

    def withdrawn_from(self, tally: Tally[C]) -> bool:
        """Whether this tally holds a report that the other tally does not contain."""
        if tally.reports > len(tally.seen):  # a bulk tally keeps a sample only
            return bool(self.seen.keys() & tally.withdrawn)
        return any(tally.seen.get(id_) != one for id_, one in self.seen.items())

    def _joined(self, other: Tally[C], sign: int) -> Tally[C]:
        made = Tally(
            self.collection,
            self.counted.copy(),
            [one.copy() for one in self.sums],
            self.rejected + other.rejected if sign > 0 else Counter(self.rejected),
            self.repeated + (other.repeated if sign > 0 else 0),
            self.seen | other.seen,
            self.sample | other.sample,
            self.names | (other.names if sign > 0 else set()),
            self.withdrawn | other.withdrawn,
            self.simulated or other.simulated,
            self.batches.copy(),
        )
        if sign > 0:
            made.batches.merge(other.batches)
        for question, (sums, reports) in enumerate(zip(other.sums, other.counted, strict=True)):
            made.add_sums(question, sign * sums, sign * int(reports))
        for question, counts in self._whole.items():
            made._whole[question].add(*counts.distinct())
            rows, times = other._whole[question].distinct()
            made._whole[question].add(rows, sign * times)
        return made

    def _consistent(self) -> bool:
        """Whether the sums are possible for the number of counted reports."""
        for number, channel in enumerate(self.collection.questions):
            reports = int(self.counted[number])
            if reports < 0 or not channel.possible(self.sums[number], reports):
                return False
            if number in self._whole and not self._whole[number].counts(reports):
                return False
        return len(self.seen) <= self.reports and self.batches.fit(self.reports)

    # ---------------------------------------------------------------- files

    def to_json(self, *, seen: bool = True) -> str:
        """Write the tally with its collection as versioned JSON.

        Parameters
        ----------
        seen : bool, default True
            Whether to write the ids of all counted reports. Without them the file is small, and
            repetitions are only noticed within a sample of ids.
        """
        sampled = self.sample
        if not seen:
            sampled = set(heapq.nsmallest(SAMPLED, self.seen.keys() | self.sample))
        whole = {str(number): counts.distinct() for number, counts in self._whole.items()}
        body = {
            "collection": self.collection.to_json(),
            "counted": self.counted.tolist(),
            "sums": [one.tolist() for one in self.sums],
            "whole": {
                str(n): [rows.tolist(), often.tolist()] for n, (rows, often) in whole.items()
            },
            "rejected": dict(sorted(self.rejected.items())),
            "repeated": self.repeated,
            "seen": self.seen if seen else {},
            "sample": sorted(sampled),
            "parts": sorted(self.parts),
            "withdrawn": sorted(self.withdrawn),
            "simulated": self.simulated,
            "batches": self.batches.to_body(),
        }
        return dump("tally", VERSION, body, indent=None)

    @classmethod
    def from_json(cls, text: str | bytes) -> Tally[Any]:
        """Read the output of :meth:`to_json`; raises if it contradicts itself."""
        body = load(text, "tally", VERSION, TallyBody)
        collection = collection_of(body.collection)
        widths = [question.size or 0 for question in collection.questions]
        if len(body.counted) != len(widths) or list(map(len, body.sums)) != widths:
            raise FormatError(f"this tally does not fit its own {collection.kind}")
        if min(*body.counted, body.repeated, *body.rejected.values(), 0) < 0:
            raise FormatError("this tally holds a negative count")
        largest = max(abs(number) for numbers in (body.counted, *body.sums) for number in numbers)
        if largest > LARGEST:
            raise FormatError("this tally holds a number beyond 2^62")
        if not all(map(IDENTITY.fullmatch, (*body.seen, *body.sample, *body.withdrawn))):
            raise FormatError("this tally names a report by something that is not an id")
        tally = cls(
            collection,
            np.array(body.counted, dtype=np.int64),
            [np.array(one, dtype=np.int64) for one in body.sums],
            Counter(body.rejected),
            body.repeated,
            body.seen,
            set(body.sample),
            set(body.parts),
            set(body.withdrawn),
            body.simulated,
            BatchSizes(body.batches),
        )
        tally._read_whole(body.whole)
        if not tally._consistent():
            raise FormatError(
                "this tally contradicts itself: its reports cannot add up to its sums; it was "
                "edited, or not made by discreet"
            )
        return tally

    def _read_whole(self, stated: dict[str, tuple[list[list[int]], list[int]]]) -> None:
        if set(stated) != {str(number) for number in self._whole}:
            raise FormatError(f"this tally does not fit its own {self.collection.kind}")
        for number, counts in self._whole.items():
            try:
                counts.read(*stated[str(number)])
            except EstimationError as error:
                kind = self.collection.kind
                raise FormatError(f"this tally does not fit its own {kind}: {error}") from None

    @classmethod
    def read(cls, path: str | Path) -> Tally[Any]:
        """Read a tally file."""
        return cls.from_json(read_text(path))

    @classmethod
    def of(cls, collection: C, reports: Iterable[Report | str | bytes]) -> Tally[C]:
        """Tally reports in steps of bounded size."""
        tally, left = Tally(collection), iter(reports)
        while some := list(islice(left, PIECE)):
            tally.add_all(some)
        return tally


def refusals(
    collection: Collection, questions: ArrayLike, values: Sequence[Sequence[int]] | Integers
) -> list[str]:
    """Return the fault of each answer, or an empty string where it is valid.

    Parameters
    ----------
    collection : Plan or Questionnaire
    questions : array of int
        Which question each answer is to.
    values : array of int, (answers, width), or sequence of sequences
        Sequences where the questions differ in width.
    """
    faults = [""] * len(values)
    by_question: dict[int, list[int]] = {}
    for row, question in enumerate(np.asarray(questions, dtype=object).tolist()):
        if not 0 <= question < len(collection.questions):
            faults[row] = "unknown question"
        elif len(values[row]) != collection.questions[question].width:
            faults[row] = "out of domain"
        else:
            by_question.setdefault(int(question), []).append(row)
    for question, rows in by_question.items():
        channel = collection.questions[question]
        if isinstance(values, np.ndarray):
            matrix = values[rows].astype(np.int64)
        else:  # Python's integers are unbounded
            held = [[min(max(n, -LARGEST - 1), LARGEST + 1) for n in values[row]] for row in rows]
            matrix = np.array(held, dtype=np.int64)
        for row, wrong in zip(rows, channel.faulty(matrix).tolist(), strict=True):
            if wrong:
                faults[row] = "out of domain"
    return faults


class TallyBody(Body):
    collection: str
    counted: list[int]
    sums: list[list[int]]
    whole: dict[str, tuple[list[list[int]], list[int]]]
    rejected: dict[str, int]
    repeated: int
    seen: dict[str, str]
    sample: list[str]
    parts: list[str]
    withdrawn: list[str]
    simulated: bool
    batches: dict[str, int]
