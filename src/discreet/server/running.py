"""A running server: its parts, and its background work: settling, also after the last day."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from functools import partial
from typing import Any, TypeVar

from sqlalchemy.exc import SQLAlchemyError
from starlette.concurrency import run_in_threadpool

from discreet.errors import DiscreetError
from discreet.server import surveys as acts
from discreet.server.access import Access
from discreet.server.analysis import Analyses
from discreet.server.database import Database
from discreet.server.erasure import erase_deleted, is_pending
from discreet.server.limits import Limits
from discreet.server.problems import NOTICES, Problem, internal, reason_of
from discreet.server.settings import Settings
from discreet.server.settle import Piece, clear_left_keys, settle_piece
from discreet.server.surveys import Survey, Surveys, utc_day
from discreet.server.writer import Busy, Writer

__all__ = ["Server"]

T = TypeVar("T")


class Server:
    """The parts of a server; ``request.app.state.server`` in every route.

    Parameters
    ----------
    database : Database
        Opened and migrated.
    settings : Settings

    Attributes
    ----------
    surveys : Surveys
    access : Access
    analyses : Analyses
    limits, guesses : Limits
        Of requests, and of guessed codes and tokens.
    writer : Writer
        While the server runs.
    failing : str
        Why the last round of upkeep could not settle everything; empty if it could.
    """

    writer: Writer

    def __init__(self, database: Database, settings: Settings) -> None:
        self.database, self.settings = database, settings
        self.surveys, self.access = Surveys(database), Access(database)
        self.analyses = Analyses(database)
        self.limits = Limits(settings.rate, settings.burst)
        self.failing = ""
        self._untidy = self._cleaned = False
        self._settled: set[tuple[int, bool]] = set()  # and whether as closed: nothing is left
        self.guesses = Limits(min(settings.rate, 1.0), 30.0)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Run writer and upkeep; waiting reports are written before this returns."""
        self.writer = Writer(self.database, asyncio.get_running_loop())
        with suppress(
            SQLAlchemyError, DiscreetError, OSError
        ):  # upkeep tries again, and says why not
            await self._clean()
        upkeep = asyncio.create_task(self._upkeep())
        try:
            yield
        finally:
            upkeep.cancel()
            await asyncio.wait([upkeep])
            await run_in_threadpool(self.writer.stop)
            with suppress(SQLAlchemyError):
                await run_in_threadpool(self.database.tidy)

    # ---------------------------------------------------------------- for routes

    async def survey(self, slug: str) -> Survey:
        """Find a survey by its name; refuse with ``not-found``."""
        found = self.surveys.known(slug) or await run_in_threadpool(self.surveys.find, slug)
        if found is None:
            raise Problem("not-found", "there is no survey of this name here")
        return found

    async def write(self, work: Callable[[], T]) -> T:
        """Run work that writes in the writer's thread; return its result."""
        try:
            return await self.writer.run(work)
        except Busy:
            raise Problem("busy", "the server is stopping") from None

    # ---------------------------------------------------------------- settling

    async def settle(self, survey: Survey, least: int | None = None) -> int:
        """Settle what waits now, if enough waits; return the number of settled reports."""
        piece, total = Piece(0, last=False), 0
        smallest = survey.announcement.batch if least is None else least
        number = survey.number
        try:
            while not piece.last:
                piece = await self.write(partial(self._piece, survey, smallest, not total))
                total += piece.settled
                self._untidy |= piece.settled > 0
            if total:
                await self.tidy()
        except BaseException:
            self._settled -= {(number, False), (number, True)}
            raise
        return total

    async def tidy(self, tables: Sequence[Any] = ()) -> None:
        """Remove deleted rows and the log; if they are in use, at the next upkeep."""
        self._untidy = True
        await run_in_threadpool(self.database.sweep, tables)
        self._untidy = not await self.write(self.database.tidy)

    async def erase(self) -> None:
        """Erase deleted surveys from the files; if not possible now, at the next upkeep."""
        if not await run_in_threadpool(is_pending, self.database):
            return
        if self.database.sqlite:
            await self.write(lambda: erase_deleted(self.database))
        else:  # whose other tables are written meanwhile
            await run_in_threadpool(erase_deleted, self.database)

    async def _clean(self) -> None:
        """Clean up at the start what a killed process has left."""
        await self.write(lambda: clear_left_keys(self.database))
        await self.tidy()
        await self.erase()
        self._cleaned = True

    def _piece(self, survey: Survey, least: int, begins: bool) -> Piece:
        number = survey.number
        seen = self.writer.take_seen(number)
        arrived = self.writer.arrived.pop(number, 0)
        done = False
        try:
            collection = survey.collection
            piece = settle_piece(self.database, number, collection, least, seen, begins=begins)
            done = piece.settled > 0
            return piece
        finally:
            if not done:
                self.writer.put_back(number, seen, arrived)

    async def close(self, survey: Survey, note: Callable[[Any], None]) -> None:
        """Close a survey and settle all waiting reports, however few."""

        def work() -> None:
            with self.database.write() as connection:
                acts.set_state(connection, survey.number, "closed")
                note(connection)

        await self.write(work)
        await self.settle(survey, 1)

    async def _upkeep(self) -> None:
        """Settle what waits, repeatedly; failures are retried and never end the loop."""
        while True:
            failures: list[str] = []
            if not self._cleaned:
                await _attempt(self._clean(), failures)
            found = await _attempt(run_in_threadpool(self.surveys.all), failures)
            for survey, state in found or ():
                await _attempt(self._settle_waiting(survey, state), failures)
            if self._untidy:
                await _attempt(self.tidy(), failures)
            await _attempt(self.erase(), failures)
            if self.writer.failed:
                await _attempt(self.write(self.writer.probe), failures)
            before, self.failing = self.failing, "; ".join(dict.fromkeys(failures))
            if before and not self.failing:  # also where the disk of the log was full
                NOTICES.print(f"settling works again; it had failed: {before}")
            if self.failing:
                NOTICES.print(f"cannot settle: {self.failing}")
            await asyncio.sleep(self.settings.settle_every)

    async def _settle_waiting(self, survey: Survey, state: str) -> None:
        """Settle a survey where reports may wait; all of them, however few, once it is closed.

        A survey past its last day is not stored as closed: the dates are checked again every time,
        since a clock that jumped ahead would otherwise close it permanently.
        """
        ended = state == "open" and survey.announcement.on(utc_day()) == "closed"
        closed = ended or state == "closed"
        idle = (survey.number, closed) in self._settled and not self.writer.arrived[survey.number]
        if idle and not await run_in_threadpool(self._waits, survey.number):
            return
        await self.settle(survey, 1 if closed else None)
        self._settled.add((survey.number, closed))

    def _waits(self, number: int) -> bool:
        """Whether reports of a survey wait: it has a batch key."""
        return any(survey == number for survey, _ in self.database.keys.batches())


async def _attempt(work: Awaitable[T], failures: list[str]) -> T | None:
    """Return the result of some work; if it fails, add the reason to ``failures``."""
    try:
        return await work
    except SQLAlchemyError as error:
        failures.append(reason_of(error))
    except (DiscreetError, OSError) as error:
        failures.append(str(error))
    except Exception as error:
        internal(error)  # prints the place
        failures.append(f"internal error {type(error).__name__}")
    return None
