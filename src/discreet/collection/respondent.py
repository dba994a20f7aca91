"""The respondent's device: randomizes one record into one report, once.

The report is stored before it is sent. Asking again returns the same report: repeated draws would
let the collector average the noise away.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from discreet.collection.protocol import Collection, EncodedRecords
from discreet.collection.report import Report, derive_report_id
from discreet.collection.store import FolderStore, MemoryStore, Store, StoredReport
from discreet.errors import FormatError, PrivacyError, SchemaError
from discreet.files.documents import RepeatedKeyError, parse_json
from discreet.privacy.guarantee import Guarantee
from discreet.randomness import Random, as_random

__all__ = ["FolderStore", "MemoryStore", "Respondent", "Store", "read_record"]


class Respondent:
    """One person's side of a collection.

    Parameters
    ----------
    collection : Plan or Questionnaire
    store : Store
        Where the report is stored before it is sent, and where the spent epsilon is added up.
    group : int, optional
        The question assigned by the collector, in a plan with ``assignment="groups"``.
    by_hand : bool, default False
        Whether the person drew with their own device (dice, cards, a paper form) and now enters
        what they ended up answering: then nothing is drawn here. For questionnaires.
    unprotected : bool, default False
        Answer although the collection promises no epsilon.
    random_state : None, int or Random
        None is the cryptographic source; anything else is simulation.

    Examples
    --------
    >>> from discreet import Categorical, Schema
    >>> from discreet.local import make_plan
    >>> schema = Schema([Categorical("smokes", ["no", "yes"])], "sick", ["no", "yes"])
    >>> person = Respondent(make_plan(schema, epsilon=1.0), MemoryStore())
    >>> first = person.report({"smokes": "yes", "sick": "no"})
    >>> person.report({"smokes": "yes", "sick": "no"}) == first
    True
    """

    def __init__(
        self,
        collection: Collection,
        store: Store,
        group: int | None = None,
        *,
        by_hand: bool = False,
        unprotected: bool = False,
        random_state: int | Random | None = None,
    ) -> None:
        kind, guarantee = collection.kind, collection.guarantee
        self.collection, self.store, self.group = collection, store, group
        self._epsilon, self._digest = collection.unshuffled_guarantee.epsilon, collection.digest
        self.by_hand, self._random = by_hand, as_random(random_state)
        if collection.assignment == "groups" and group is None:
            raise SchemaError("this plan assigns questions: pass group=, the number you were given")
        if collection.assignment == "draw" and group is not None:
            raise SchemaError("in this plan respondents draw their question: leave out group=")
        if group is not None and not 0 <= group < len(collection.questions):
            raise SchemaError(
                f"group {group} is not one of the {len(collection.questions)} questions"
            )
        if by_hand and collection.device == "software":
            raise SchemaError(
                f"this {kind} is drawn by software; only a questionnaire that says device: hand or "
                "device: either allows respondents to draw by hand"
            )
        if not by_hand and collection.device == "hand":
            raise SchemaError(f"respondents of this {kind} draw by hand: pass by_hand=True")
        if math.isinf(guarantee.epsilon) and not unprotected:
            raise PrivacyError(
                f"this {kind} promises no epsilon: what is sent may be the truth itself, or prove "
                "it. If you accept that, say so: unprotected=True, or --unprotected on the command "
                "line"
            )

    @property
    def guarantee(self) -> Guarantee:
        """The guarantee of this person."""
        return self.collection.guarantee.void_if(simulated=self._random.simulated)

    def report(
        self,
        record: Mapping[str, Any],
        personal: Mapping[str, Any] | None = None,
        *,
        again: bool = False,
    ) -> Report:
        """Make the report of this person, or return the stored one.

        Parameters
        ----------
        record : mapping
            Features and class; for a questionnaire the answers to all private questions. All of it
            is checked against the schema before anything is drawn.
        personal : mapping, optional
            The answers to the paired personal questions, where they are the person's own.
        again : bool, default False
            Make a further report, where the plan allows several per person.
        """
        if not isinstance(record, Mapping):
            raise SchemaError(
                f"a record is a mapping of names to values, not a {type(record).__name__}; write "
                "{'name': value, …}"
            )
        stored_report, report_number = self._find_report(again)
        if stored_report is not None:
            return stored_report
        encoded_record = self.collection.encode_record(record, None, personal, self.by_hand)
        return self._make_report(report_number, self._get_question(report_number), encoded_record)

    def draw_question(self, *, again: bool = False) -> int:
        """Draw and store the question that this person answers next, without any record.

        With it, a person needs to be asked only for ``collection.get_asked_columns(question)``. The
        question is the same on every call; after it was answered, it is the answered one.
        """
        stored_report, report_number = self._find_report(again)
        return (
            self._get_question(report_number) if stored_report is None else stored_report.question
        )

    def answer_question(
        self, record: Mapping[str, Any], personal: Mapping[str, Any] | None = None
    ) -> Report:
        """Make the report to the drawn question; only the columns of that question are read.

        The parameters are those of :meth:`report`.
        """
        stored_reports = self.store.load_reports(self._digest)
        question = self.store.find_question(self._digest, len(stored_reports))
        if question is None:
            if stored_reports:
                return self._read_stored_report(stored_reports[-1])
            raise PrivacyError("no question was drawn yet: call draw_question() first")
        encoded_record = self.collection.encode_record(record, question, personal, self.by_hand)
        return self._make_report(len(stored_reports), question, encoded_record)

    def _find_report(self, again: bool) -> tuple[Report | None, int]:
        """Return the stored report; or None and the number of the next one, if it is allowed."""
        stored_reports = self.store.load_reports(self._digest)
        sent_count = len(stored_reports)
        if stored_reports and not again:
            return self._read_stored_report(stored_reports[-1]), sent_count
        if sent_count >= self.collection.reports:
            raise PrivacyError(
                f"this person has already sent {sent_count} of {self.collection.reports} reports; "
                f"another one would cost more privacy than the {self.collection.kind} promises"
            )
        return None, sent_count

    def _get_question(self, report_number: int) -> int:
        stored_question = self.store.find_question(self._digest, report_number)
        if stored_question is not None:
            return stored_question
        question = self.group
        if question is None:
            question = int(self.collection.draw_questions(1, self._random)[0])
        return self.store.save_question(self._digest, report_number, question, self._epsilon)

    def _make_report(
        self, report_number: int, question: int, encoded_record: EncodedRecords
    ) -> Report:
        randomized: Any = encoded_record
        if not self.by_hand:
            randomized = self.collection.randomize_records(question, encoded_record, self._random)
        report_key = self._random.raw(16).tobytes()
        integers = tuple(int(integer) for integer in randomized[0])
        report = Report(
            self._digest, derive_report_id(report_key), question, integers, self._random.simulated
        )
        if self.store.save_report(
            self._digest, report_number, StoredReport(report.to_json(), report_key.hex())
        ):
            return report
        return self._read_stored_report(self.store.load_reports(self._digest)[report_number])

    def _read_stored_report(self, stored_report: StoredReport) -> Report:
        try:
            report = Report.from_json(stored_report.report)
            if report.collection != self._digest:
                raise FormatError(f"it answers another {self.collection.kind}")
        except FormatError as error:
            raise FormatError(
                f"the {self.collection.noun} kept on this device is damaged ({error}); it is not "
                "drawn again, because that would cost privacy twice"
            ) from None
        return report


def read_record(path: str) -> dict[str, Any]:
    """Read the record of one person; errors do not quote its content.

    Parameters
    ----------
    path : str
        A file with one JSON object, or ``"-"`` for standard input.
    """
    try:
        text = sys.stdin.read() if path == "-" else Path(path).read_text(encoding="utf-8")
    except FileNotFoundError:
        raise FormatError(f"{path}: there is no such file") from None
    except (OSError, UnicodeDecodeError) as error:
        raise FormatError(f"{path}: cannot be read as text: {type(error).__name__}") from None
    try:
        record = parse_json(text)
    except RepeatedKeyError:
        raise FormatError(f"{path}: this record has a key twice; remove one of them") from None
    except (ValueError, RecursionError):
        record = None
    if not isinstance(record, dict):
        raise FormatError(f'{path}: a record is one JSON object: {{"feature": value, …}}')
    return record
