"""The writing thread: it stores all waiting reports in one transaction, then answers their senders.

Waiting reports are written together (group commit), so that one sync of the disk serves many.
All other writes (settling, batches, withdrawals) run in between as jobs. A report that could not be
written is answered with a problem; its sender can safely send it again, since its id is the same.
"""

from __future__ import annotations

import asyncio
import threading
from collections import Counter, deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import date
from functools import partial
from typing import Any, TypeVar

import sqlalchemy as sql

from discreet.collection.report import Report
from discreet.server import database as db
from discreet.server.arrivals import Arrival, store_arrivals
from discreet.server.database import Database
from discreet.server.intake import ReportRow, find_faults, pack_integers
from discreet.server.surveys import Survey, utc_day

__all__ = ["Writer", "WriterBusy"]

T = TypeVar("T")

MAX_GROUP_REPORTS = 512
"""Reports of one transaction at most."""
MAX_QUEUED_REPORTS = 4096
"""Reports that may wait; further ones are refused as ``busy``."""


class WriterBusy(Exception):  # noqa: N818 - a state, reported to the sender
    """The queue of the writer is full, or the writer is stopping."""


@dataclass
class _QueuedReport:
    survey: Survey
    report: Report
    code: bytes | None
    answer: asyncio.Future[str] = field(repr=False)


@dataclass
class _Job:
    work: Callable[[], Any]
    answer: asyncio.Future[Any] = field(repr=False)


class Writer:
    """Writes to one database, from one thread.

    Parameters
    ----------
    database : Database
    loop : event loop
        In which waiting senders are answered.
    get_today : callable, optional
        The day in UTC.

    Attributes
    ----------
    event_counts : dict of survey number to Counter
        Repetitions and refusals since the last settling.
    arrived_counts : dict of survey number to int
        Reports stored since the last settling, as far as this process knows.
    has_failed : bool
        Whether the last group of reports could not be stored, nor anything since.
    """

    def __init__(
        self,
        database: Database,
        loop: asyncio.AbstractEventLoop,
        get_today: Callable[[], date] = utc_day,
    ) -> None:
        self.database, self.loop, self.get_today = database, loop, get_today
        self.event_counts: dict[int, Counter[str]] = {}
        self.arrived_counts: Counter[int] = Counter()
        self.has_failed = False
        self._queued_reports: deque[_QueuedReport] = deque()
        self._jobs: deque[_Job] = deque()
        self._wake_condition, self._stopping = threading.Condition(), False
        self._thread = threading.Thread(target=self._run_loop, name="writer", daemon=True)
        self._thread.start()

    # ---------------------------------------------------------------- from the event loop

    def send_report(
        self, survey: Survey, report: Report, code: bytes | None
    ) -> asyncio.Future[str]:
        """Queue a report; the future is its outcome, once that is on the disk."""
        if len(self._queued_reports) >= MAX_QUEUED_REPORTS or self._stopping:
            raise WriterBusy
        answer: asyncio.Future[str] = self.loop.create_future()
        with self._wake_condition:
            self._queued_reports.append(_QueuedReport(survey, report, code, answer))
            self._wake_condition.notify()
        return answer

    def run_job(self, work: Callable[[], T]) -> asyncio.Future[T]:
        """Run another write between two groups of reports."""
        answer: asyncio.Future[T] = self.loop.create_future()
        with self._wake_condition:
            if self._stopping:
                raise WriterBusy
            self._jobs.append(_Job(work, answer))
            self._wake_condition.notify()
        return answer

    def count_refusal(self, survey: Survey, kind: str) -> None:
        """Count a refused report; the count is published at the next settling."""
        with self._wake_condition:
            self.event_counts.setdefault(survey.number, Counter())[kind] += 1

    def take_event_counts(self, survey_number: int) -> Counter[str]:
        """Return and clear the repetitions and refusals since the last settling."""
        with self._wake_condition:
            return self.event_counts.pop(survey_number, Counter())

    def put_back_counts(
        self, survey_number: int, event_counts: Counter[str], arrived_count: int
    ) -> None:
        """Restore counts after a failed settling, for the next one."""
        with self._wake_condition:
            self.event_counts[survey_number] = (
                self.event_counts.get(survey_number, Counter()) + event_counts
            )
            self.arrived_counts[survey_number] += arrived_count

    def check_writable(self) -> None:
        """Check that reports can be stored again, by a write that changes nothing (as a job)."""
        with self.database.write() as connection:
            connection.execute(sql.update(db.survey).values(state=db.survey.c.state))
        # a full disk may have room in the log, and none for a new key
        self.database.keys.check_writable()
        self.has_failed = False

    def stop(self) -> None:
        """Write what waits, then end the thread."""
        with self._wake_condition:
            self._stopping = True
            self._wake_condition.notify()
        self._thread.join()

    # ---------------------------------------------------------------- the thread

    def _run_loop(self) -> None:
        while True:
            with self._wake_condition:
                while not (self._queued_reports or self._jobs or self._stopping):
                    self._wake_condition.wait()
                if self._stopping and not (self._queued_reports or self._jobs):
                    return
                job = self._jobs.popleft() if self._jobs else None
                group = [
                    self._queued_reports.popleft()
                    for _ in range(min(len(self._queued_reports), MAX_GROUP_REPORTS))
                ]
            if group:
                outcomes, error = _try_work(partial(self._write_group, group))
                self.has_failed = error is not None
                self._send_answers(
                    [
                        (queued_report.answer, outcome, error)
                        for queued_report, outcome in zip(
                            group, outcomes or [None] * len(group), strict=True
                        )
                    ]
                )
            if job is not None:
                self._send_answers([(job.answer, *_try_work(job.work))])

    def _write_group(self, group: Sequence[_QueuedReport]) -> list[str]:
        """Write reports to any number of surveys in one transaction; return their outcomes."""
        outcomes = [""] * len(group)
        indices_by_survey: dict[int, list[int]] = {}
        for report_index, queued_report in enumerate(group):
            indices_by_survey.setdefault(queued_report.survey.number, []).append(report_index)
        for survey_number, report_indices in indices_by_survey.items():
            collection = group[report_indices[0]].survey.collection
            reports = [group[report_index].report for report_index in report_indices]
            for report_index, fault in zip(
                report_indices, find_faults(collection, reports), strict=True
            ):
                outcomes[report_index] = fault
            indices_by_survey[survey_number] = [
                report_index for report_index in report_indices if not outcomes[report_index]
            ]
        if not all(outcomes):
            with self.database.write() as connection:
                for _, valid_indices in sorted(indices_by_survey.items()):
                    if valid_indices:
                        valid_reports = [group[report_index] for report_index in valid_indices]
                        stored_outcomes = self._store_reports(connection, valid_reports)
                        for report_index, outcome in zip(
                            valid_indices, stored_outcomes, strict=True
                        ):
                            outcomes[report_index] = outcome
        for queued_report, outcome in zip(group, outcomes, strict=True):
            if outcome == "counted":
                self.arrived_counts[queued_report.survey.number] += 1
            else:
                self.count_refusal(queued_report.survey, outcome)
        return outcomes

    def _store_reports(
        self, connection: sql.Connection, queued_reports: Sequence[_QueuedReport]
    ) -> Sequence[str]:
        """Store valid reports to one survey; return their outcomes."""
        survey = queued_reports[0].survey
        arrivals = [
            Arrival(
                ReportRow(
                    bytes.fromhex(queued.report.id),
                    queued.report.question,
                    pack_integers(queued.report.value),
                ),
                queued.code,
            )
            for queued in queued_reports
        ]
        state_by_date = survey.announcement.get_state(self.get_today())
        return store_arrivals(connection, survey.number, survey.invited, arrivals, state_by_date)

    def _send_answers(self, answers: Sequence[tuple[asyncio.Future[Any], Any, Any]]) -> None:
        def set_results() -> None:
            for future, outcome, error in answers:
                if future.done():  # its sender has disconnected
                    continue
                if error is None:
                    future.set_result(outcome)
                else:
                    future.set_exception(error)

        try:
            self.loop.call_soon_threadsafe(set_results)
        except RuntimeError:  # the loop has ended: no sender waits any more
            return


def _try_work(work: Callable[[], Any]) -> tuple[Any, BaseException | None]:
    try:
        return work(), None
    except Exception as error:
        return None, error
