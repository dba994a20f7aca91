"""Publishing of surveys from files: documents and their announcements are stored and opened.

What is published does not change any more: the same files may be published again, others under the
same name are refused.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from discreet.collection.announcement import Announcement
from discreet.collection.protocol import Collection, parse_collection_json
from discreet.errors import FormatError
from discreet.files.atomic_writing import error_context, read_text
from discreet.files.documents import parse_document
from discreet.files.yaml_text import convert_yaml_to_json
from discreet.privacy.guarantee import format_rounded_up

if TYPE_CHECKING:
    from discreet.server.database import Database
    from discreet.server.surveys import Survey

__all__ = [
    "convert_to_slug",
    "list_warnings",
    "make_slug",
    "publish_documents",
    "read_document",
]

WEAK_EPSILON = 5
"""Above it a warning is printed."""
SMALL_BATCH = 10
"""Reports per batch below which a warning is printed."""


def read_document(path: str) -> Any:
    """Read a plan, a questionnaire or an announcement from a JSON or YAML file."""
    with error_context(path):
        text = read_text(path)
        if Path(path).suffix.lower() in (".yaml", ".yml"):
            text = convert_yaml_to_json(text, "collection")
        if parse_document(text, "collection").get("format") == "discreet/announcement":
            return Announcement.from_json(text)
        return parse_collection_json(text)


def make_slug(path: str) -> str:
    """Make the name of a survey from that of its file."""
    return convert_to_slug(Path(path).stem) or "survey"


def convert_to_slug(title: str) -> str:
    """Convert a title to a name for addresses, empty if nothing of it can be used.

    >>> convert_to_slug("Health 2027!")
    'health-2027'
    """
    return re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-")[:64]


def publish_documents(
    database: Database,
    documents: Sequence[tuple[str, Any]],
    print_warning: Callable[[str], None],
    **default_rules: Any,
) -> list[Survey]:
    """Store and open the surveys that are not published yet; return the surveys of all documents.

    Parameters
    ----------
    database : Database
        Opened and migrated.
    documents : sequence of (path, document)
        As :func:`read_document` returns them.
    print_warning : callable
        Prints a weakness of a survey, before it is stored.
    **default_rules
        Of :meth:`~discreet.collection.announcement.Announcement.make_default`, for the documents
        without an announcement.
    """
    from discreet.server.surveys import SurveyStore, create_survey, set_state

    survey_store, survey_names = SurveyStore(database), []
    unmatched_announcements = {
        document.collection: document
        for _, document in documents
        if isinstance(document, Announcement)
    }
    announced_digests = set(unmatched_announcements)
    for path, collection in documents:
        if isinstance(collection, Announcement):
            continue
        announcement = unmatched_announcements.pop(
            collection.digest, None
        ) or Announcement.make_default(collection, make_slug(path), **default_rules)
        with error_context(path):
            announcement.check_collection(collection)
        for warning in list_warnings(collection, announcement):
            print_warning(warning)
        survey = survey_store.find_survey(announcement.name)
        if survey is None:
            with database.write() as connection:
                survey_number = create_survey(connection, collection, announcement)
                set_state(connection, survey_number, "open")
        else:
            is_announced = collection.digest in announced_digests
            _check_unchanged(path, survey, collection, announcement if is_announced else None)
        survey_names.append(announcement.name)
    if unmatched_announcements:
        raise FormatError(
            "an announcement names a plan or questionnaire that is not among the files: "
            + ", ".join(unmatched.name for unmatched in unmatched_announcements.values())
        )
    return [survey for name in survey_names if (survey := survey_store.find_survey(name))]


def _check_unchanged(
    path: str, survey: Survey, collection: Collection, announcement: Announcement | None
) -> None:
    """Refuse to publish another document, or another announcement if given, under one name."""
    if survey.collection.digest != collection.digest:
        raise FormatError(
            f"{path}: the database has a survey {survey.slug} with another "
            f"{collection.kind}; people answered that one. Give this one another name, in an "
            "announcement"
        )
    if announcement is not None and announcement.digest != survey.announcement.digest:
        raise FormatError(
            f"{path}: the survey {survey.slug} was announced in other words or under "
            "other rules; they cannot change once it is published. Use another name"
        )


def list_warnings(collection: Collection, announcement: Announcement) -> Iterator[str]:
    """List the weaknesses of a survey: no promise, a large epsilon, small batches."""
    guarantee = announcement.make_guarantee(collection)
    if not guarantee.is_private:
        yield f"{announcement.name} promises nothing: {guarantee.void_reasons[0]}"
    elif guarantee.epsilon > WEAK_EPSILON:
        yield (
            f"{announcement.name} has epsilon {format_rounded_up(guarantee.epsilon)}; "
            "above 5 a report says almost everything about its sender"
        )
    if announcement.batch < SMALL_BATCH:
        yield (
            f"{announcement.name} settles batches of {announcement.batch}; somebody "
            "who reads the disk can link so few reports to the order in which people came"
        )
