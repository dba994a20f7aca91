"""Surveys are published from files once; what differs later is refused, what is weak is said."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from servers import plan, questionnaire, schema

from discreet.collection.announcement import Announcement
from discreet.errors import FormatError
from discreet.local import make_plan
from discreet.server.database import Database
from discreet.server.publishing import (
    list_warnings,
    make_slug,
    publish_documents,
    read_document,
)
from discreet.server.surveys import SurveyStore


def publish(database: Database, *documents: tuple[str, Any], **rules: Any) -> list[str]:
    warnings: list[str] = []
    surveys = publish_documents(database, documents, warnings.append, **rules)
    return [survey.slug for survey in surveys] + warnings


def test_documents_and_announcements_are_read_from_json_and_yaml(tmp_path: Path) -> None:
    collection = questionnaire()
    announcement = Announcement.make_default(collection, "health")
    for document in (collection, announcement, plan()):
        path = tmp_path / "document.json"
        path.write_text(document.to_json())
        read = read_document(str(path))
        assert (type(read), read.digest) == (type(document), document.digest)
    words = tmp_path / "words.yaml"
    words.write_text(f"format: discreet/announcement\ncollection: {collection.digest}\nname: x\n")
    with pytest.raises(FormatError, match=r"^\S+words.yaml: "):
        read_document(str(words))  # there is no version
    assert [make_slug(name) for name in ("a/My Survey!.yaml", "…")] == ["my-survey", "survey"]


def test_what_is_published_is_open_and_stays(database: Database) -> None:
    collection, other = plan(), plan(oracle="de")
    announcement = Announcement.make_default(collection, "health", batch=50)
    documents = [("words", announcement), ("first.json", collection), ("second.json", other)]
    for _ in range(2):  # the second time, nothing is new
        assert publish(database, *documents, batch=70) == ["health", "second"]
    stored = SurveyStore(database).list_surveys()
    assert [(survey.slug, survey.announcement.batch, state) for survey, state in stored] == [
        ("health", 50, "open"),
        ("second", 70, "open"),
    ]
    assert publish(database, ("second.json", other), batch=80) == ["second"], "as it was announced"
    with pytest.raises(FormatError, match=r"second.json: .* people answered that one"):
        publish(database, ("second.json", questionnaire()))
    changed = Announcement.make_default(collection, "health", batch=51)
    with pytest.raises(FormatError, match="under other rules"):
        publish(database, ("words", changed), ("first.json", collection))
    with pytest.raises(FormatError, match="not among the files: health"):
        publish(database, ("words", announcement), ("second.json", other))


def test_weak_surveys_are_published_with_a_warning(database: Database) -> None:
    name, warning = publish(database, ("small.json", plan()), batch=9)
    assert (name, "settles batches of 9" in warning) == ("small", True)

    loose = make_plan(schema(), epsilon=5.5)
    (warning,) = list_warnings(loose, Announcement.make_default(loose, "loose", batch=10))
    assert "has epsilon 5.5; above 5" in warning
    assert list(list_warnings(plan(), Announcement.make_default(plan(), "fine", batch=10))) == []
