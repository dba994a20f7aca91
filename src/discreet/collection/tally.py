"""The collector's tally: exact integer sums of reports."""

from __future__ import annotations

import hashlib
import heapq
import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any, Generic, Literal

import numpy as np
from numpy.typing import ArrayLike

from discreet.arrays import Integers
from discreet.collection.batch_sizes import MAX_BATCHES, BatchSizes
from discreet.collection.protocol import (
    MAX_EXACT_INTEGER,
    Collection,
    CollectionT,
    parse_collection_json,
)
from discreet.collection.report import ID_PATTERN, Report
from discreet.collection.whole_answer_counts import WholeAnswerCounts
from discreet.errors import DiscreetError, EstimationError, FormatError, SchemaError
from discreet.files.atomic_writing import read_text
from discreet.files.documents import (
    Body,
    compute_digest,
    dump_document,
    encode_canonical,
    load_document,
)

__all__ = ["Receipt", "Tally", "find_answer_faults"]

VERSION = 4
REPORTS_PER_STEP = 4096
"""Reports that are checked and added up at once."""
ID_SAMPLE_SIZE = 1024
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
class Tally(Generic[CollectionT]):
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
    merged_fingerprints : set of str
        Names of the tallies that were merged into this one.
    withdrawn : set of str
        Ids of reports that were taken out again; they are not counted a second time.
    simulated : bool
        Whether a seeded source made some of the reports: then they are not protected.
    batches : BatchSizes
        How many of the counted reports came in which batch of a shuffle, by batch mark.
    """

    collection: CollectionT
    counted: Integers = None  # type: ignore[assignment]
    sums: list[Integers] = field(default_factory=list)
    rejected: Counter[str] = field(default_factory=Counter)
    repeated: int = 0
    seen: dict[str, str] = field(default_factory=dict)
    sample: set[str] = field(default_factory=set)
    merged_fingerprints: set[str] = field(default_factory=set)
    withdrawn: set[str] = field(default_factory=set)
    simulated: bool = False
    batches: BatchSizes = field(default_factory=BatchSizes)

    def __post_init__(self) -> None:
        questions = self.collection.questions
        if self.counted is None:
            self.counted = np.zeros(len(questions), dtype=np.int64)
        if not self.sums:
            self.sums = [np.zeros(question.size or 0, np.int64) for question in questions]
        self._whole_counts: dict[int, WholeAnswerCounts] = {
            question_number: WholeAnswerCounts(question)  # type: ignore[arg-type]
            for question_number, question in enumerate(questions)
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
    def smallest_shuffle_size(self) -> int:
        """Number of counted reports in the smallest batch; 0 if one report was not shuffled.

        The guarantee of a shuffled collection rests on this number.
        """
        sizes = self.batches.values()
        return 0 if sum(sizes) < self.reports else min(sizes, default=0)

    @property
    def digest(self) -> str:
        """SHA-256 of the sums of the reports, without their ids."""
        whole_answers = [
            [answer_array.tolist() for answer_array in answer_counts.get_distinct_answers()]
            for answer_counts in self._whole_counts.values()
        ]
        sum_lists = [question_sums.tolist() for question_sums in self.sums]
        content = [self.collection.digest, self.counted.tolist(), sum_lists, whole_answers]
        return compute_digest(
            encode_canonical({"format": "discreet/tally-sums", "content": content})
        )

    # ---------------------------------------------------------------- counting

    def add(self, report: Report | str | bytes) -> Receipt:
        """Count one report, or reject it with a reason."""
        return self.add_all([report])[0]

    def add_all(self, reports: Sequence[Report | str | bytes]) -> list[Receipt]:
        """Count several reports, with the result of adding them one by one: a receipt for each."""
        receipts, own_reports = [Receipt("counted")] * len(reports), []
        for report_index, given_report in enumerate(reports):
            try:
                report = (
                    given_report
                    if isinstance(given_report, Report)
                    else Report.from_json(given_report)
                )
            except DiscreetError as error:
                receipts[report_index] = self._reject_report("misshapen", str(error))
                continue
            if report.collection == self.collection.digest:
                own_reports.append((report_index, report))
            else:
                collection_kind, stated_digest = self.collection.kind, report.collection[:23]
                reason = f"it answers {stated_digest}…, not this {collection_kind}"
                receipts[report_index] = self._reject_report(f"foreign {collection_kind}", reason)
        faults = find_answer_faults(
            self.collection,
            [report.question for _, report in own_reports],
            [report.value for _, report in own_reports],
        )
        new_fingerprints: dict[str, str] = {}
        values_by_question: dict[int, list[tuple[int, ...]]] = {}
        for (report_index, report), fault in zip(own_reports, faults, strict=True):
            if refusal := self._find_refusal(report, fault, new_fingerprints):
                receipts[report_index] = refusal
                continue
            new_fingerprints[report.id] = report.fingerprint
            values_by_question.setdefault(report.question, []).append(report.value)
            self.batches.add(report.batch, 1)
            self.simulated |= report.simulated
        for question, question_values in values_by_question.items():
            self.add_values(question, question_values)
        self.seen |= new_fingerprints
        return receipts

    def _find_refusal(
        self, report: Report, fault: str, new_fingerprints: dict[str, str]
    ) -> Receipt | None:
        """Return the receipt of a report to this collection that is not counted, or None."""
        if fault == "unknown question":
            collection_kind = self.collection.kind
            return self._reject_report(
                fault, f"question {report.question} is not in the {collection_kind}"
            )
        if fault:
            channel = self.collection.questions[report.question]
            expected_shape = (
                f"a {channel.name} answer has {channel.width} integers in public ranges"
            )
            return self._reject_report(
                fault, f"{expected_shape}; no respondent could have sent this one"
            )
        counted_fingerprint = self.seen.get(report.id) or new_fingerprints.get(report.id)
        if counted_fingerprint is not None and counted_fingerprint == report.fingerprint:
            self.repeated += 1
            return Receipt("repeated", "this very report was counted before")
        if counted_fingerprint is not None:
            return self._reject_report(
                "id reused", "another report with this id was counted before"
            )
        if report.id in self.withdrawn:
            return self._reject_report("withdrawn", "its sender has withdrawn this report")
        return None

    def _reject_report(self, fault_kind: str, reason: str) -> Receipt:
        self.rejected[fault_kind] += 1
        return Receipt("rejected", f"{fault_kind}: {reason}")

    def add_values(
        self, question: int, values: ArrayLike, multiplicities: ArrayLike | None = None
    ) -> None:
        """Count serialised answers to one question that were already checked.

        Parameters
        ----------
        question : int
        values : array of int, (reports, width)
        multiplicities : array of int, optional
            How often each of the answers was sent; once if not given.
        """
        channel = self.collection.questions[question]
        matrix = np.asarray(values, dtype=np.int64).reshape(-1, channel.width)
        if not len(matrix):
            return
        multiplicity_array = (
            np.ones(len(matrix), np.int64)
            if multiplicities is None
            else np.asarray(multiplicities, np.int64)
        )
        if multiplicity_array.shape != (len(matrix),) or (multiplicity_array < 0).any():
            raise EstimationError("times must say for each answer how often it was sent")
        if question in self._whole_counts:
            if channel.find_faulty(matrix).any():
                raise SchemaError("an answer is not one of the public ones")
            self._whole_counts[question].add(matrix, multiplicity_array)
            self.add_sums(question, self.sums[question], int(multiplicity_array.sum(dtype=object)))
            return
        max_change = int(np.abs(matrix).max()) * int(multiplicity_array.sum(dtype=object))
        if max_change + int(np.abs(self.sums[question]).max()) > MAX_EXACT_INTEGER:
            raise EstimationError("the sums would go beyond 2^62 and no longer be exact")
        # binary expansion of the multiplicities: each answer is tallied once for each set bit
        for bit in range(int(multiplicity_array.max()).bit_length()):
            chosen_rows = (
                matrix if multiplicities is None else matrix[(multiplicity_array >> bit) & 1 == 1]
            )
            if len(chosen_rows):
                self.sums[question] += channel.tally(chosen_rows) << bit
        self.counted[question] += multiplicity_array.sum()

    def add_sums(self, question: int, sums: Integers, report_count: int) -> None:
        """Add sums that another process tallied for one question."""
        previous_sums = self.sums[question]
        max_sum = max(
            (
                abs(int(previous_sum)) + abs(int(added_sum))
                for previous_sum, added_sum in zip(previous_sums, sums, strict=True)
            ),
            default=0,
        )
        if max(max_sum, int(self.counted[question]) + report_count) > MAX_EXACT_INTEGER:
            raise EstimationError("the sums would go beyond 2^62 and no longer be exact")
        self.sums[question] = previous_sums + sums
        self.counted[question] += report_count

    def get_distinct_answers(self, question: int = 0) -> tuple[Integers, Integers]:
        """Return the distinct whole answers in ascending order, and how often each was sent."""
        if question not in self._whole_counts:
            raise EstimationError(f"the answers to question {question} are added up, not kept")
        return self._whole_counts[question].get_distinct_answers()

    def count_margin(self, names: Sequence[str], question: int = 0) -> Integers:
        """Count the combinations of answers to these questions; one axis per name."""
        rows, multiplicities = self.get_distinct_answers(question)
        channel = self._whole_counts[question].channel
        column_indices = [channel.names.index(name) for name in names]
        shape = tuple(channel.sizes[column_index] for column_index in column_indices)
        flat_counts = np.zeros(math.prod(shape), np.int64)
        if len(rows):
            np.add.at(
                flat_counts,
                np.ravel_multi_index(tuple(rows[:, column_indices].T), shape),
                multiplicities,
            )
        return flat_counts.reshape(shape)

    # ---------------------------------------------------------------- merging and withdrawing

    @property
    def fingerprint(self) -> str:
        """Identifies this tally: a hash of its size and of its smallest ids."""
        smallest_ids = heapq.nsmallest(ID_SAMPLE_SIZE, self.seen.keys() | self.sample)
        content = [self.collection.digest, str(self.reports), *smallest_ids]
        if not smallest_ids:  # simulated at once: there were no ids
            content += [str(sum_array.tolist()) for sum_array in (self.counted, *self.sums)]
            content += [
                str(
                    [answer_array.tolist() for answer_array in answer_counts.get_distinct_answers()]
                )
                for answer_counts in self._whole_counts.values()
            ]
        return hashlib.sha256("|".join(content).encode()).hexdigest()[:32]

    @property
    def all_fingerprints(self) -> set[str]:
        """Fingerprints of this tally and of all tallies merged into it."""
        return (
            self.merged_fingerprints | {self.fingerprint}
            if self.reports
            else set(self.merged_fingerprints)
        )

    def __add__(self, other: Tally[CollectionT]) -> Tally[CollectionT]:
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
        common_ids = (self.seen.keys() | self.sample) & (other.seen.keys() | other.sample)
        if common_ids:
            raise EstimationError(
                f"{len(common_ids)} {noun}s are in both tallies and would count twice; tally them "
                "once"
            )
        if self.all_fingerprints & other.all_fingerprints:
            raise EstimationError("the same tally is in both and would count twice; add it once")
        if self.withdrawn & other.seen.keys() or other.withdrawn & self.seen.keys():
            raise EstimationError(f"a {noun} was withdrawn from one tally and counted in the other")
        return self._merge_signed(other, 1)

    def withdraw_reports(self, reports: Iterable[Report | str | bytes]) -> Tally[CollectionT]:
        """Return the tally without the reports that their senders have withdrawn.

        Parameters
        ----------
        reports : iterable of reports
            Each must have been counted here; where all ids are kept, that is checked.
        """
        withdrawn_tally = Tally.from_reports(self.collection, reports)
        if withdrawn_tally.rejected or withdrawn_tally.repeated:
            raise EstimationError("a report to withdraw does not fit this tally, or comes twice")
        if withdrawn_tally.has_report_missing_from(self):
            raise EstimationError("a report to withdraw was not counted in this tally")
        remaining_tally = self._merge_signed(withdrawn_tally, -1)
        remaining_tally.withdrawn |= withdrawn_tally.seen.keys()
        remaining_tally.seen = {
            report_id: fingerprint
            for report_id, fingerprint in self.seen.items()
            if report_id not in withdrawn_tally.seen
        }
        remaining_tally.sample = self.sample - withdrawn_tally.seen.keys()
        if not (
            remaining_tally.batches.remove(withdrawn_tally.batches)
            and remaining_tally._is_consistent()
        ):
            raise EstimationError("a report to withdraw was not counted in this tally")
        return remaining_tally

    def has_report_missing_from(self, tally: Tally[CollectionT]) -> bool:
        """Whether this tally holds a report that the other tally does not contain."""
        if tally.reports > len(tally.seen):  # a bulk tally keeps a sample only
            return bool(self.seen.keys() & tally.withdrawn)
        return any(
            tally.seen.get(report_id) != fingerprint for report_id, fingerprint in self.seen.items()
        )

    def _merge_signed(self, other: Tally[CollectionT], sign: int) -> Tally[CollectionT]:
        merged_tally = Tally(
            self.collection,
            self.counted.copy(),
            [question_sums.copy() for question_sums in self.sums],
            self.rejected + other.rejected if sign > 0 else Counter(self.rejected),
            self.repeated + (other.repeated if sign > 0 else 0),
            self.seen | other.seen,
            self.sample | other.sample,
            self.all_fingerprints | (other.all_fingerprints if sign > 0 else set()),
            self.withdrawn | other.withdrawn,
            self.simulated or other.simulated,
            BatchSizes(self.batches),
        )
        if sign > 0:
            merged_tally.batches.merge(other.batches)
        for question, (sums, report_count) in enumerate(
            zip(other.sums, other.counted, strict=True)
        ):
            merged_tally.add_sums(question, sign * sums, sign * int(report_count))
        for question, answer_counts in self._whole_counts.items():
            merged_tally._whole_counts[question].add(*answer_counts.get_distinct_answers())
            rows, multiplicities = other._whole_counts[question].get_distinct_answers()
            merged_tally._whole_counts[question].add(rows, sign * multiplicities)
        return merged_tally

    def _is_consistent(self) -> bool:
        """Whether sums and batches are possible for the number of counted reports."""
        sizes = self.batches.values()
        has_valid_marks = (
            all(map(ID_PATTERN.fullmatch, self.batches)) and len(self.batches) <= MAX_BATCHES
        )
        if not has_valid_marks or min(sizes, default=1) < 1:
            return False
        if max(len(self.seen), sum(sizes)) > self.reports:
            return False
        for question, channel in enumerate(self.collection.questions):
            report_count = int(self.counted[question])
            if report_count < 0 or not channel.is_possible(self.sums[question], report_count):
                return False
        for question, answer_counts in self._whole_counts.items():
            _, multiplicities = answer_counts.get_distinct_answers()
            if (multiplicities <= 0).any() or multiplicities.sum() != self.counted[question]:
                return False
        return True

    # ---------------------------------------------------------------- files

    def to_json(self, *, include_seen: bool = True) -> str:
        """Write the tally with its collection as versioned JSON.

        Parameters
        ----------
        include_seen : bool, default True
            Whether to write the ids of all counted reports. Without them the file is small, and
            repetitions are only noticed within a sample of ids.
        """
        id_sample = self.sample
        if not include_seen:
            id_sample = set(heapq.nsmallest(ID_SAMPLE_SIZE, self.seen.keys() | self.sample))
        body = {
            "collection": self.collection.to_json(),
            "counted": self.counted.tolist(),
            "sums": [question_sums.tolist() for question_sums in self.sums],
            "whole": {
                str(question): [
                    answer_array.tolist() for answer_array in answer_counts.get_distinct_answers()
                ]
                for question, answer_counts in self._whole_counts.items()
            },
            "rejected": dict(sorted(self.rejected.items())),
            "repeated": self.repeated,
            "seen": self.seen if include_seen else {},
            "sample": sorted(id_sample),
            "parts": sorted(self.merged_fingerprints),
            "withdrawn": sorted(self.withdrawn),
            "simulated": self.simulated,
            "batches": dict(sorted(self.batches.items())),
        }
        return dump_document("tally", VERSION, body, indent=None)

    @classmethod
    def from_json(cls, text: str | bytes) -> Tally[Any]:
        """Read the output of :meth:`to_json`; raises if it contradicts itself."""
        body = load_document(text, "tally", VERSION, TallyBody)
        collection = parse_collection_json(body.collection)
        sum_sizes = [question.size or 0 for question in collection.questions]
        misfit = f"this tally does not fit its own {collection.kind}"
        if len(body.counted) != len(sum_sizes) or list(map(len, body.sums)) != sum_sizes:
            raise FormatError(misfit)
        if min(*body.counted, body.repeated, *body.rejected.values(), 0) < 0:
            raise FormatError("this tally holds a negative count")
        largest_number = max(
            abs(number) for numbers in (body.counted, *body.sums) for number in numbers
        )
        if largest_number > MAX_EXACT_INTEGER:
            raise FormatError("this tally holds a number beyond 2^62")
        if not all(map(ID_PATTERN.fullmatch, (*body.seen, *body.sample, *body.withdrawn))):
            raise FormatError("this tally names a report by something that is not an id")
        tally = cls(
            collection,
            np.array(body.counted, dtype=np.int64),
            [np.array(question_sums, dtype=np.int64) for question_sums in body.sums],
            Counter(body.rejected),
            body.repeated,
            body.seen,
            set(body.sample),
            set(body.parts),
            set(body.withdrawn),
            body.simulated,
            BatchSizes(body.batches),
        )
        if set(body.whole) != {str(question) for question in tally._whole_counts}:
            raise FormatError(misfit)
        for question, answer_counts in tally._whole_counts.items():
            try:
                answer_counts.add_checked_rows(*body.whole[str(question)])
            except EstimationError as error:
                raise FormatError(f"{misfit}: {error}") from None
        if not tally._is_consistent():
            raise FormatError(
                "this tally contradicts itself: its reports cannot add up to its sums; it was "
                "edited, or not made by discreet"
            )
        return tally

    @classmethod
    def read(cls, path: str | Path) -> Tally[Any]:
        """Read a tally file."""
        return cls.from_json(read_text(path))

    @classmethod
    def from_reports(
        cls, collection: CollectionT, reports: Iterable[Report | str | bytes]
    ) -> Tally[CollectionT]:
        """Tally reports in steps of bounded size."""
        tally, remaining_reports = Tally(collection), iter(reports)
        while report_piece := list(islice(remaining_reports, REPORTS_PER_STEP)):
            tally.add_all(report_piece)
        return tally


def find_answer_faults(
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
    for answer_index, question in enumerate(np.asarray(questions, dtype=object).tolist()):
        if not 0 <= question < len(collection.questions):
            faults[answer_index] = "unknown question"
        elif len(values[answer_index]) != collection.questions[question].width:
            faults[answer_index] = "out of domain"
        else:
            by_question.setdefault(int(question), []).append(answer_index)
    for question, answer_indices in by_question.items():
        channel = collection.questions[question]
        if isinstance(values, np.ndarray):
            matrix = values[answer_indices].astype(np.int64)
        else:  # Python's integers are unbounded
            bounded_values = [
                [
                    min(max(integer, -MAX_EXACT_INTEGER - 1), MAX_EXACT_INTEGER + 1)
                    for integer in values[answer_index]
                ]
                for answer_index in answer_indices
            ]
            matrix = np.array(bounded_values, dtype=np.int64)
        for answer_index, is_invalid in zip(
            answer_indices, channel.find_faulty(matrix).tolist(), strict=True
        ):
            if is_invalid:
                faults[answer_index] = "out of domain"
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
