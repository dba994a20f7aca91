"""A running server: its parts, and what it does by itself: settling, closing on its last day."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Any, TypeVar

from sqlalchemy.exc import SQLAlchemyError
from starlette.concurrency import run_in_threadpool

from discreet.server import surveys as acts
from discreet.server.access import Access
from discreet.server.analysis import Analyses
from discreet.server.database import Database
from discreet.server.limits import Limits
from discreet.server.problems import Problem, reason_of
from discreet.server.settings import Settings
from discreet.server.settle import reseal, settle_piece
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
        Of requests, and of codes that are tried.
    writer : Writer
        While the server runs.
    """

    writer: Writer

    def __init__(self, database: Database, settings: Settings) -> None:
        self.database, self.settings = database, settings
        self.surveys, self.access = Surveys(database), Access(database)
        self.analyses = Analyses(database)
        self.limits = Limits(settings.rate, settings.burst)
        self._untidy = False
        self.guesses = Limits(min(settings.rate, 1.0), 30.0)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """From the start to the end: what waits is written before this returns."""
        self.writer = Writer(self.database, asyncio.get_running_loop())
        upkeep = asyncio.create_task(self._upkeep())
        try:
            yield
        finally:
            upkeep.cancel()
            with suppress(asyncio.CancelledError):
                await upkeep
            await run_in_threadpool(self.writer.stop)
            with suppress(SQLAlchemyError):
                await run_in_threadpool(self.database.tidy)

    # ---------------------------------------------------------------- for routes

    async def survey(self, slug: str) -> Survey:
        """A survey by its name, or a problem."""
        found = self.surveys.known(slug) or await run_in_threadpool(self.surveys.find, slug)
        if found is None:
            raise Problem("not-found", "there is no survey of this name here")
        return found

    async def write(self, work: Callable[[], T]) -> T:
        """Do something that writes, in the thread that writes."""
        try:
            return await self.writer.run(work)
        except Busy:
            raise Problem("busy", "the server is stopping") from None

    # ---------------------------------------------------------------- settling

    async def settle(self, survey: Survey, least: int | None = None) -> int:
        """Settle what waits, if it is at least so many; how many reports were settled."""
        number, total = survey.number, 0
        smallest = survey.announcement.batch if least is None else least
        while moved := await self.write(lambda: self._piece(survey, smallest)):
            total += moved
        if total:
            while await self.write(lambda: reseal(self.database, number)):
                continue
            await self.tidy()
        return total

    async def tidy(self, tables: Sequence[Any] = ()) -> None:
        """Remove what is left over; if somebody reads it just now, at the next look."""
        await run_in_threadpool(self.database.sweep, tables)
        self._untidy = not await self.write(self.database.tidy)

    def _piece(self, survey: Survey, least: int) -> int:
        number = survey.number
        seen = self.writer.take_seen(number)
        arrived = self.writer.arrived.pop(number, 0)
        done = False
        try:
            moved = settle_piece(self.database, number, survey.collection, least, seen)
            done = moved > 0
            return moved
        finally:
            if not done:
                self.writer.put_back(number, seen, arrived)

    async def close(self, survey: Survey, note: Callable[[Any], None]) -> None:
        """Close a survey and settle all that is left, however little it is."""

        def work() -> None:
            with self.database.write() as connection:
                acts.set_state(connection, survey.number, "closed")
                note(connection)

        await self.write(work)
        await self.settle(survey, 1)

    async def _upkeep(self) -> None:
        """Settle what waits, again and again; whatever fails is tried again."""
        first, failing = True, ""
        while True:
            try:
                await self._look(first)
                if self._untidy:
                    await self.tidy()
                first, failing = False, ""
            except (SQLAlchemyError, Problem, Busy) as error:
                reason = reason_of(error) if isinstance(error, SQLAlchemyError) else str(error)
                if reason != failing:
                    print(f"discreet: cannot settle: {reason}", file=sys.stderr, flush=True)
                failing = reason
            await asyncio.sleep(self.settings.settle_every)

    async def _look(self, first: bool) -> None:
        today = utc_day()
        for survey, state in await run_in_threadpool(self.surveys.all):
            if state == "open" and survey.announcement.on(today) == "closed":
                await self.close(survey, lambda _: None)
            elif state == "closed" and (first or self.writer.arrived[survey.number]):
                await self.settle(survey, 1)
            elif first or self.writer.arrived[survey.number]:
                await self.settle(survey)
