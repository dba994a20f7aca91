"""Surveys of a server: created, opened, closed, deleted; read once and cached."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import UTC, date, datetime
from typing import Any

import sqlalchemy as sql

from discreet.announcement import Announcement
from discreet.collection.protocol import collection_of
from discreet.documents import digest_of
from discreet.errors import SchemaError
from discreet.server import database as db
from discreet.server import tallies
from discreet.server.database import Database, exclusive
from discreet.server.erasure import mark_deleted
from discreet.server.intake import longest_value

__all__ = [
    "SIMULATED",
    "Survey",
    "Surveys",
    "create",
    "delete",
    "set_state",
    "stored_state",
    "utc_day",
]

SIMULATED = "-simulated"
"""Suffix of the names of simulated collections, reserved for them."""


def utc_day() -> date:
    """Get the current day in UTC; the server uses no more exact time."""
    return datetime.now(UTC).date()


@dataclass(frozen=True, eq=False)
class Survey:
    """A collection on this server, with its announcement.

    Parameters
    ----------
    number : int
        In the database; never used again.
    slug : str
        In the address.
    collection : Plan or Questionnaire
    announcement : Announcement
    document : bytes
        The canonical bytes; their SHA-256 is the digest.
    """

    number: int
    slug: str
    collection: Any
    announcement: Announcement
    document: bytes

    @property
    def invited(self) -> bool:
        """Whether every report needs an invitation."""
        return self.announcement.entry == "invited"

    def title(self, tag: str = "") -> str:
        """Return the title in a language or the announcement's own; else the name."""
        words = self.announcement.words
        own = words.get(tag) or words.get(self.announcement.language)
        return (own.title if own else "") or self.slug

    @property
    def simulated(self) -> bool:
        """Whether its respondents are simulated."""
        return self.slug.endswith(SIMULATED)


def create(
    connection: sql.Connection, collection: Any, announcement: Announcement, invented: bool = False
) -> int:
    """Store a new survey as a draft; return its number.

    Parameters
    ----------
    connection : Connection
    collection : Plan or Questionnaire
    announcement : Announcement
    invented : bool, default False
        Whether its respondents are simulated; its name must then end in ``-simulated``.
    """
    announcement.check(collection)
    if announcement.name.endswith(SIMULATED) != invented:
        raise SchemaError(
            f"name is {announcement.name!r}; names that end in {SIMULATED} are kept for invented "
            "people (serve --rehearse), choose another"
        )
    row = {
        "slug": announcement.name,
        "document": collection.canonical(),
        "announcement": announcement.to_json(),
        "state": "draft",
        "longest": longest_value(collection),
    }
    made = connection.execute(sql.insert(db.survey).values(**row).returning(db.survey.c.number))
    number = int(made.scalar_one())
    tallies.start(connection, number, collection)
    return number


def set_state(connection: sql.Connection, number: int, state: str) -> None:
    """Set the state of a survey; arrivals are locked out meanwhile."""
    exclusive(connection, number)
    here = db.survey.c.number
    connection.execute(sql.update(db.survey).where(here == number).values(state=state))


def stored_state(connection: sql.Connection, number: int) -> str | None:
    """Read the stored state: draft, open or closed; None if the survey was deleted."""
    here = db.survey.c
    found: str | None = connection.execute(
        sql.select(here.state).where(here.number == number)
    ).scalar()
    return found


def delete(connection: sql.Connection, number: int) -> None:
    """Delete a survey with all its rows; its keys and bytes are destroyed afterwards."""
    exclusive(connection, number)
    for table in db.OF_A_SURVEY:
        connection.execute(sql.delete(table).where(table.c.survey == number))
    connection.execute(sql.delete(db.survey).where(db.survey.c.number == number))
    here = db.batch_key.c.survey
    connection.execute(sql.update(db.batch_key).where(here == number).values(state="spent"))
    mark_deleted(connection, number)


class Surveys:
    """Cache of the surveys of a database by name; what cannot change is read once.

    Parameters
    ----------
    database : Database
    """

    def __init__(self, database: Database) -> None:
        self.database = database
        self._known: dict[str, Survey] = {}
        self._published: set[int] = set()  # numbers; an opened survey stays published

    def known(self, slug: str) -> Survey | None:
        """Get a survey from the cache."""
        return self._known.get(slug)

    def forget(self, slug: str) -> None:
        """Remove a survey from the cache."""
        self._known.pop(slug, None)

    def find(self, slug: str) -> Survey | None:
        """Find a survey by its name; None if there is none."""
        survey = self._known.get(slug)
        return survey or self._read(slug)

    def _read(self, slug: str) -> Survey | None:
        with self.database.read() as connection:
            row = connection.execute(
                sql.select(db.survey).where(db.survey.c.slug == slug)
            ).one_or_none()
        if row is None:
            return None
        survey = _survey(row)
        self._known[slug] = survey
        return survey

    def state(self, survey: Survey, day: date | None = None) -> str | None:
        """Read the state today: draft, open or closed; None if the survey was deleted."""
        with self.database.read() as connection:
            stored = stored_state(connection, survey.number)
        if stored is None:
            self.forget(survey.slug)
        return survey.announcement.on(day or utc_day()) if stored == "open" else stored

    def known_as_published(self, survey: Survey) -> bool:
        """Whether a survey is known to have been opened, without asking the database."""
        return survey.number in self._published

    def published(self, survey: Survey) -> bool:
        """Whether a survey was ever opened; drafts are visible to their collectors only."""
        with self.database.read() as connection:
            state = stored_state(connection, survey.number)
        if state is None:
            self.forget(survey.slug)
        elif state != "draft":
            self._published.add(survey.number)
        return state not in (None, "draft")

    def all(self) -> list[tuple[Survey, str]]:
        """List all surveys with their stored states, ordered by name."""
        with self.database.read() as connection:
            rows = connection.execute(sql.select(db.survey).order_by(db.survey.c.slug)).all()
        found = []
        for row in rows:
            survey = self._known.get(row.slug)
            if survey is None or survey.number != row.number:
                survey = self._known[row.slug] = _survey(row)
            found.append((survey, row.state))
        return found


def _survey(row: Any) -> Survey:
    document = bytes(row.document)
    sealed = {**json.loads(document), "digest": digest_of(document)}
    collection = collection_of(json.dumps(sealed))
    if collection.digest != sealed["digest"]:
        raise SchemaError(f"the document of {row.slug} in the database is not what was published")
    announcement = Announcement.from_json(row.announcement)
    return Survey(row.number, row.slug, collection, announcement, document)
