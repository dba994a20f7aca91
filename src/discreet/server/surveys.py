"""Surveys of a server: created, opened, closed, deleted; read once and cached."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime
from typing import Any

import sqlalchemy as sql

from discreet.collection.announcement import Announcement
from discreet.collection.protocol import parse_collection_json
from discreet.errors import SchemaError
from discreet.files.documents import compute_digest
from discreet.server import database as db
from discreet.server import tallies
from discreet.server.database import Database, lock_survey
from discreet.server.erasure import mark_deleted
from discreet.server.intake import compute_longest_value

__all__ = [
    "SIMULATED_SUFFIX",
    "Survey",
    "SurveyStore",
    "create_survey",
    "delete_survey",
    "read_stored_state",
    "recount_surveys",
    "set_state",
    "utc_day",
]

SIMULATED_SUFFIX = "-simulated"
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

    def title(self, language_tag: str = "") -> str:
        """Return the title in a language or the announcement's own; else the name."""
        words = self.announcement.words
        page_words = words.get(language_tag) or words.get(self.announcement.language)
        return (page_words.title if page_words else "") or self.slug

    @property
    def simulated(self) -> bool:
        """Whether its respondents are simulated."""
        return self.slug.endswith(SIMULATED_SUFFIX)


def create_survey(
    connection: sql.Connection,
    collection: Any,
    announcement: Announcement,
    is_simulated: bool = False,
) -> int:
    """Store a new survey as a draft; return its number.

    Parameters
    ----------
    connection : Connection
    collection : Plan or Questionnaire
    announcement : Announcement
    is_simulated : bool, default False
        Whether its respondents are simulated; its name must then end in ``-simulated``.
    """
    announcement.check_collection(collection)
    if announcement.name.endswith(SIMULATED_SUFFIX) != is_simulated:
        raise SchemaError(
            f"name is {announcement.name!r}; names that end in {SIMULATED_SUFFIX} are kept for "
            "invented people (serve --rehearse), choose another"
        )
    row = {
        "slug": announcement.name,
        "document": collection.encode_canonical(),
        "announcement": announcement.to_json(),
        "state": "draft",
        "longest": compute_longest_value(collection),
    }
    inserted_number = connection.execute(
        sql.insert(db.survey).values(**row).returning(db.survey.c.number)
    )
    survey_number = int(inserted_number.scalar_one())
    tallies.create_tally(connection, survey_number, collection)
    return survey_number


def set_state(connection: sql.Connection, survey_number: int, state: str) -> None:
    """Set the state of a survey; arrivals are locked out meanwhile."""
    lock_survey(connection, survey_number)
    number_column = db.survey.c.number
    connection.execute(
        sql.update(db.survey).where(number_column == survey_number).values(state=state)
    )


def read_stored_state(connection: sql.Connection, survey_number: int) -> str | None:
    """Read the stored state: draft, open or closed; None if the survey was deleted."""
    survey_columns = db.survey.c
    query = sql.select(survey_columns.state).where(survey_columns.number == survey_number)
    return connection.execute(query).scalar()


def delete_survey(connection: sql.Connection, survey_number: int) -> None:
    """Delete a survey with all its rows; its keys and bytes are destroyed afterwards."""
    lock_survey(connection, survey_number)
    for table in db.SURVEY_TABLES:
        connection.execute(sql.delete(table).where(table.c.survey == survey_number))
    connection.execute(sql.delete(db.survey).where(db.survey.c.number == survey_number))
    survey_column = db.batch_key.c.survey
    connection.execute(
        sql.update(db.batch_key).where(survey_column == survey_number).values(state="spent")
    )
    mark_deleted(connection, survey_number)


class SurveyStore:
    """Cache of the surveys of a database by name; what cannot change is read once.

    Parameters
    ----------
    database : Database
    """

    def __init__(self, database: Database) -> None:
        self.database = database
        self._cached_surveys: dict[str, Survey] = {}
        self._published_numbers: set[int] = set()  # numbers; an opened survey stays published

    def get_cached(self, slug: str) -> Survey | None:
        """Get a survey from the cache."""
        return self._cached_surveys.get(slug)

    def forget_survey(self, slug: str) -> None:
        """Remove a survey from the cache."""
        self._cached_surveys.pop(slug, None)

    def find_survey(self, slug: str) -> Survey | None:
        """Find a survey by its name; None if there is none."""
        survey = self._cached_surveys.get(slug)
        if survey is None:
            query = sql.select(db.survey).where(db.survey.c.slug == slug)
            with self.database.read() as connection:
                row = connection.execute(query).one_or_none()
            if row is not None:
                survey = self._cached_surveys[slug] = _make_survey(row)
        return survey

    def read_state(self, survey: Survey, day: date | None = None) -> str | None:
        """Read the state today: draft, open or closed; None if the survey was deleted."""
        with self.database.read() as connection:
            stored = read_stored_state(connection, survey.number)
        if stored is None:
            self.forget_survey(survey.slug)
        return survey.announcement.get_state(day or utc_day()) if stored == "open" else stored

    def is_known_published(self, survey: Survey) -> bool:
        """Whether a survey is known to have been opened, without asking the database."""
        return survey.number in self._published_numbers

    def is_published(self, survey: Survey) -> bool:
        """Whether a survey was ever opened; drafts are visible to their collectors only."""
        with self.database.read() as connection:
            state = read_stored_state(connection, survey.number)
        if state is None:
            self.forget_survey(survey.slug)
        elif state != "draft":
            self._published_numbers.add(survey.number)
        return state not in (None, "draft")

    def list_open_surveys(self) -> list[Survey]:
        """List the surveys that are open today."""
        today = utc_day()
        return [
            survey
            for survey, state in self.list_surveys()
            if state == "open" and survey.announcement.get_state(today) == "open"
        ]

    def list_surveys(self) -> list[tuple[Survey, str]]:
        """List all surveys with their stored states, ordered by name."""
        with self.database.read() as connection:
            rows = connection.execute(sql.select(db.survey).order_by(db.survey.c.slug)).all()
        stored_surveys = []
        for row in rows:
            survey = self._cached_surveys.get(row.slug)
            if survey is None or survey.number != row.number:
                survey = self._cached_surveys[row.slug] = _make_survey(row)
            stored_surveys.append((survey, row.state))
        return stored_surveys


def recount_surveys(
    database: Database, report_progress: Callable[[int], None]
) -> dict[str, dict[str, Any]]:
    """Recount the reports of every survey; compare with its tally."""
    results = {}
    for surveys_done, (survey, _) in enumerate(SurveyStore(database).list_surveys(), 1):
        with database.read() as connection:
            stored_tally = tallies.load_tally(connection, survey.number, survey.collection)
            recounted_tally = tallies.recount_reports(connection, survey.number, survey.collection)
        results[survey.slug] = {
            "reports": recounted_tally.reports,
            "tally": stored_tally.reports,
            "same": tallies.has_same_counts(stored_tally, recounted_tally),
        }
        report_progress(surveys_done)
    return results


def _make_survey(row: Any) -> Survey:
    document = bytes(row.document)
    sealed_document = {**json.loads(document), "digest": compute_digest(document)}
    collection = parse_collection_json(json.dumps(sealed_document))
    if collection.digest != sealed_document["digest"]:
        raise SchemaError(f"the document of {row.slug} in the database is not what was published")
    announcement = Announcement.from_json(row.announcement)
    return Survey(row.number, row.slug, collection, announcement, document)
