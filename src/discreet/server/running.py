"""A running server: its parts, and its background work: settling, also after the last day."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

import sqlalchemy as sql
from sqlalchemy.exc import SQLAlchemyError
from starlette.concurrency import run_in_threadpool

from discreet.errors import DiscreetError, FormatError
from discreet.server import surveys
from discreet.server.access import Access, Grant
from discreet.server.analysis import Analyses
from discreet.server.database import Database
from discreet.server.erasure import erase_deleted, is_pending
from discreet.server.limits import RateLimiter
from discreet.server.problems import (
    NOTICES,
    Problem,
    format_reason,
    make_internal_problem,
    make_missing_problem,
)
from discreet.server.settling import SettledPiece, clear_orphaned_keys, settle_piece
from discreet.server.surveys import Survey, SurveyStore, utc_day
from discreet.server.writer import Writer, WriterBusy

__all__ = ["Server", "ServerSettings"]

T = TypeVar("T")


@dataclass(frozen=True)
class ServerSettings:
    """Settings of a server.

    Parameters
    ----------
    base_url : str
        The public address of the server, such as ``https://survey.example.org``.
    rate, burst : float
        Requests per second and at once from one address
        (:class:`~discreet.server.limits.RateLimiter`).
    settle_interval : float
        Seconds between two rounds of upkeep, which settle where enough reports wait.
    contact : str
        For ``/.well-known/security.txt``: an address such as ``mailto:security@example.org``.
    """

    base_url: str = "http://127.0.0.1:8000"
    rate: float = 30.0
    burst: float = 600.0
    settle_interval: float = 5.0
    contact: str = ""

    def __post_init__(self) -> None:
        if not self.base_url.startswith(("http://", "https://")) or self.base_url.endswith("/"):
            raise FormatError(
                f"the address is {self.base_url!r}; write it as https://survey.example.org, "
                "without a slash at the end"
            )
        if not (self.rate >= 0 and self.burst >= 1 and self.settle_interval > 0):
            raise FormatError("rate is at least 0, burst at least 1, settle_interval above 0")

    @property
    def is_secure(self) -> bool:
        """Whether the server is reached by https."""
        return self.base_url.startswith("https://")


class Server:
    """The parts of a server; ``request.app.state.server`` in every route.

    Parameters
    ----------
    database : Database
        Opened and migrated.
    settings : ServerSettings

    Attributes
    ----------
    surveys : SurveyStore
    access : Access
    analyses : Analyses
    request_limiter, guess_limiter : RateLimiter
        Of requests, and of guessed codes and tokens.
    writer : Writer
        While the server runs.
    failure_reason : str
        Why the last round of upkeep could not settle everything; empty if it could.
    """

    writer: Writer

    def __init__(self, database: Database, settings: ServerSettings) -> None:
        self.database, self.settings = database, settings
        self.surveys, self.access = SurveyStore(database), Access(database)
        self.analyses = Analyses(database)
        self.request_limiter = RateLimiter(settings.rate, settings.burst)
        self.failure_reason = ""
        self._needs_cleanup = self._start_cleaned = False
        # surveys of which nothing is left to settle, and whether as closed ones
        self._settled_surveys: set[tuple[int, bool]] = set()
        self.guess_limiter = RateLimiter(min(settings.rate, 1.0), 30.0)

    @asynccontextmanager
    async def run_lifespan(self) -> AsyncIterator[None]:
        """Run writer and upkeep; waiting reports are written before this returns."""
        self.writer = Writer(self.database, asyncio.get_running_loop())
        with suppress(
            SQLAlchemyError, DiscreetError, OSError
        ):  # upkeep tries again, and says why not
            await self._clean_at_start()
        upkeep_task = asyncio.create_task(self._run_upkeep())
        try:
            yield
        finally:
            upkeep_task.cancel()
            await asyncio.wait([upkeep_task])
            await run_in_threadpool(self.writer.stop)
            with suppress(SQLAlchemyError):
                await run_in_threadpool(self.database.truncate_log)

    # ---------------------------------------------------------------- for routes

    async def find_survey(self, slug: str) -> Survey:
        """Find a survey by its name; refuse with ``not-found``."""
        survey = self.surveys.get_cached(slug) or await run_in_threadpool(
            self.surveys.find_survey, slug
        )
        if survey is None:
            raise make_missing_problem()
        return survey

    async def run_in_writer(self, work: Callable[[], T]) -> T:
        """Run work that writes in the writer's thread; return its result."""
        try:
            return await self.writer.run_job(work)
        except WriterBusy:
            raise Problem("busy", "the server is stopping") from None

    async def run_transaction(self, work: Callable[[sql.Connection], T]) -> T:
        """Run work in the writer's thread, in one transaction; return its result."""

        def write() -> T:
            with self.database.write() as connection:
                return work(connection)

        return await self.run_in_writer(write)

    async def run_recorded(
        self, grant: Grant, action: str, work: Callable[[sql.Connection], T]
    ) -> T:
        """Run an action of a collector in one transaction, and count it as done by them."""

        def run_and_record(connection: sql.Connection) -> T:
            result = work(connection)
            self.access.record_action(connection, grant, action)
            return result

        return await self.run_transaction(run_and_record)

    # ---------------------------------------------------------------- settling

    async def settle_survey(self, survey: Survey, min_batch: int | None = None) -> int:
        """Settle what waits now, if enough waits; return the number of settled reports."""
        piece, total = SettledPiece(0, is_last=False), 0
        batch_size = survey.announcement.batch if min_batch is None else min_batch
        survey_number = survey.number
        try:
            while not piece.is_last:
                piece = await self.run_in_writer(
                    partial(self._settle_batch, survey, batch_size, not total)
                )
                total += piece.settled
                self._needs_cleanup |= piece.settled > 0
            if total:
                await self.clean_up()
        except BaseException:
            self._settled_surveys -= {(survey_number, False), (survey_number, True)}
            raise
        return total

    async def clean_up(self, tables: Sequence[Any] = ()) -> None:
        """Remove deleted rows and the log; if they are in use, at the next upkeep."""
        self._needs_cleanup = True
        await run_in_threadpool(self.database.run_cleanup, tables)
        self._needs_cleanup = not await self.run_in_writer(self.database.truncate_log)

    async def erase_surveys(self) -> None:
        """Erase deleted surveys from the files; if not possible now, at the next upkeep."""
        if not await run_in_threadpool(is_pending, self.database):
            return
        if self.database.is_sqlite:
            await self.run_in_writer(lambda: erase_deleted(self.database))
        else:  # whose other tables are written meanwhile
            await run_in_threadpool(erase_deleted, self.database)

    async def _clean_at_start(self) -> None:
        """Clean up at the start what a killed process has left."""
        await self.run_in_writer(lambda: clear_orphaned_keys(self.database))
        await self.clean_up()
        await self.erase_surveys()
        self._start_cleaned = True

    def _settle_batch(self, survey: Survey, min_batch: int, is_first: bool) -> SettledPiece:
        survey_number = survey.number
        event_counts = self.writer.take_event_counts(survey_number)
        arrived_count = self.writer.arrived_counts.pop(survey_number, 0)
        is_settled = False
        try:
            collection = survey.collection
            piece = settle_piece(
                self.database, survey_number, collection, min_batch, event_counts, is_first=is_first
            )
            is_settled = piece.settled > 0
            return piece
        finally:
            if not is_settled:
                self.writer.put_back_counts(survey_number, event_counts, arrived_count)

    async def close_survey(self, survey: Survey, record_action: Callable[[Any], None]) -> None:
        """Close a survey and settle all waiting reports, however few."""

        def close_and_record(connection: sql.Connection) -> None:
            surveys.set_state(connection, survey.number, "closed")
            record_action(connection)

        await self.run_transaction(close_and_record)
        await self.settle_survey(survey, 1)

    async def _run_upkeep(self) -> None:
        """Settle what waits, repeatedly; failures are retried and never end the loop."""
        while True:
            failures: list[str] = []
            if not self._start_cleaned:
                await _try_work(self._clean_at_start(), failures)
            stored_surveys = await _try_work(run_in_threadpool(self.surveys.list_surveys), failures)
            for survey, state in stored_surveys or ():
                await _try_work(self._settle_waiting(survey, state), failures)
            if self._needs_cleanup:
                await _try_work(self.clean_up(), failures)
            await _try_work(self.erase_surveys(), failures)
            if self.writer.has_failed:
                await _try_work(self.run_in_writer(self.writer.check_writable), failures)
            earlier_failure = self.failure_reason
            self.failure_reason = "; ".join(dict.fromkeys(failures))
            if earlier_failure and not self.failure_reason:  # also where the log's disk was full
                NOTICES.print_once(f"settling works again; it had failed: {earlier_failure}")
            if self.failure_reason:
                NOTICES.print_once(f"cannot settle: {self.failure_reason}")
            await asyncio.sleep(self.settings.settle_interval)

    async def _settle_waiting(self, survey: Survey, state: str) -> None:
        """Settle a survey where reports may wait; all of them, however few, once it is closed.

        A survey past its last day is not stored as closed: the dates are checked again every time,
        since a clock that jumped ahead would otherwise close it permanently.
        """
        has_ended = state == "open" and survey.announcement.get_state(utc_day()) == "closed"
        is_closed = has_ended or state == "closed"
        was_settled = (survey.number, is_closed) in self._settled_surveys
        is_idle = was_settled and not self.writer.arrived_counts[survey.number]
        if is_idle and not await run_in_threadpool(self._has_waiting, survey.number):
            return
        await self.settle_survey(survey, 1 if is_closed else None)
        self._settled_surveys.add((survey.number, is_closed))

    def _has_waiting(self, survey_number: int) -> bool:
        """Whether reports of a survey wait: it has a batch key."""
        return any(survey == survey_number for survey, _ in self.database.keys.list_batches())


async def _try_work(work: Awaitable[T], failures: list[str]) -> T | None:
    """Return the result of some work; if it fails, add the reason to ``failures``."""
    try:
        return await work
    except SQLAlchemyError as error:
        failures.append(format_reason(error))
    except (DiscreetError, OSError) as error:
        failures.append(str(error))
    except Exception as error:
        make_internal_problem(error)  # prints the place
        failures.append(f"internal error {type(error).__name__}")
    return None
