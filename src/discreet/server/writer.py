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
from typing import Any, TypeVar

import sqlalchemy as sql

from discreet.collection.report import Report
from discreet.server import database as db
from discreet.server.arrivals import Arrival, take
from discreet.server.database import Database
from discreet.server.intake import Row, faults, packed
from discreet.server.surveys import Survey, utc_day

__all__ = ["Busy", "Writer"]

T = TypeVar("T")

GROUP = 512
"""Reports of one transaction at most."""
QUEUE = 4096
"""Reports that may wait; further ones are refused as ``busy``."""


class Busy(Exception):  # noqa: N818 - a state, reported to the sender
    """The queue of the writer is full, or the writer is stopping."""


@dataclass
class _Sent:
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
    today : callable, optional
        The day in UTC.

    Attributes
    ----------
    seen : dict of survey number to Counter
        Repetitions and refusals since the last settling.
    arrived : dict of survey number to int
        Reports stored since the last settling, as far as this process knows.
    failed : bool
        Whether the last group of reports could not be stored, nor anything since.
    """

    def __init__(
        self,
        database: Database,
        loop: asyncio.AbstractEventLoop,
        today: Callable[[], date] = utc_day,
    ) -> None:
        self.database, self.loop, self.today = database, loop, today
        self.seen: dict[int, Counter[str]] = {}
        self.arrived: Counter[int] = Counter()
        self.failed = False
        self._sent: deque[_Sent] = deque()
        self._jobs: deque[_Job] = deque()
        self._wake, self._stopping = threading.Condition(), False
        self._thread = threading.Thread(target=self._run, name="writer", daemon=True)
        self._thread.start()

    # ---------------------------------------------------------------- from the event loop

    def send(self, survey: Survey, report: Report, code: bytes | None) -> asyncio.Future[str]:
        """Queue a report; the future is its outcome, once that is on the disk."""
        if len(self._sent) >= QUEUE or self._stopping:
            raise Busy
        answer: asyncio.Future[str] = self.loop.create_future()
        with self._wake:
            self._sent.append(_Sent(survey, report, code, answer))
            self._wake.notify()
        return answer

    def run(self, work: Callable[[], T]) -> asyncio.Future[T]:
        """Run another write between two groups of reports."""
        answer: asyncio.Future[T] = self.loop.create_future()
        with self._wake:
            if self._stopping:
                raise Busy
            self._jobs.append(_Job(work, answer))
            self._wake.notify()
        return answer

    def refused(self, survey: Survey, kind: str) -> None:
        """Count a refused report; the count is published at the next settling."""
        with self._wake:
            self.seen.setdefault(survey.number, Counter())[kind] += 1

    def take_seen(self, number: int) -> Counter[str]:
        """Return and clear the repetitions and refusals since the last settling."""
        with self._wake:
            return self.seen.pop(number, Counter())

    def put_back(self, number: int, seen: Counter[str], arrived: int) -> None:
        """Restore counts after a failed settling, for the next one."""
        with self._wake:
            self.seen[number] = self.seen.get(number, Counter()) + seen
            self.arrived[number] += arrived

    def probe(self) -> None:
        """Check that reports can be stored again, by a write that changes nothing (as a job)."""
        with self.database.write() as connection:
            connection.execute(sql.update(db.survey).values(state=db.survey.c.state))
        self.database.keys.probe()  # a full disk may have room in the log, and none for a new key
        self.failed = False

    def stop(self) -> None:
        """Write what waits, then end the thread."""
        with self._wake:
            self._stopping = True
            self._wake.notify()
        self._thread.join()

    # ---------------------------------------------------------------- the thread

    def _run(self) -> None:
        while True:
            with self._wake:
                while not (self._sent or self._jobs or self._stopping):
                    self._wake.wait()
                if self._stopping and not (self._sent or self._jobs):
                    return
                job = self._jobs.popleft() if self._jobs else None
                group = [self._sent.popleft() for _ in range(min(len(self._sent), GROUP))]
            if group:
                self._answer([(one.answer, *made) for one, made in self._pairs(group)])
            if job is not None:
                self._answer([(job.answer, *_result(job.work))])

    def _pairs(self, group: Sequence[_Sent]) -> list[tuple[_Sent, tuple[Any, Any]]]:
        made, error = _result(lambda: self._write(group))
        self.failed = error is not None
        if error is not None:
            return [(one, (None, error)) for one in group]
        return [(one, (outcome, None)) for one, outcome in zip(group, made, strict=True)]

    def _write(self, group: Sequence[_Sent]) -> list[str]:
        """Write reports to any number of surveys in one transaction."""
        outcomes = [""] * len(group)
        by_survey: dict[int, list[int]] = {}
        for place, one in enumerate(group):
            by_survey.setdefault(one.survey.number, []).append(place)
        valid: dict[int, list[int]] = {}
        for number, places in by_survey.items():
            collection = group[places[0]].survey.collection
            found = faults(collection, [group[place].report for place in places])
            for place, fault in zip(places, found, strict=True):
                outcomes[place] = fault
            valid[number] = [p for p, fault in zip(places, found, strict=True) if not fault]
        if any(valid.values()):
            with self.database.write() as connection:
                for number, places in sorted(valid.items()):
                    if not places:
                        continue
                    arrivals = [_arrival(group[place]) for place in places]
                    survey = group[places[0]].survey
                    by_date = survey.announcement.on(self.today())
                    taken = take(connection, number, survey.invited, arrivals, by_date)
                    for place, met in zip(places, taken, strict=True):
                        outcomes[place] = met
        for one, outcome in zip(group, outcomes, strict=True):
            if outcome == "counted":
                self.arrived[one.survey.number] += 1
            else:
                self.refused(one.survey, outcome)
        return outcomes

    def _answer(self, answers: Sequence[tuple[asyncio.Future[Any], Any, Any]]) -> None:
        def tell() -> None:
            for future, made, error in answers:
                if future.done():  # its sender has disconnected
                    continue
                if error is None:
                    future.set_result(made)
                else:
                    future.set_exception(error)

        try:
            self.loop.call_soon_threadsafe(tell)
        except RuntimeError:  # the loop has ended: no sender waits any more
            return


def _arrival(one: _Sent) -> Arrival:
    report = one.report
    return Arrival(Row(bytes.fromhex(report.id), report.question, packed(report.value)), one.code)


def _result(work: Callable[[], Any]) -> tuple[Any, BaseException | None]:
    try:
        return work(), None
    except Exception as error:
        return None, error
