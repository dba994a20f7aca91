"""Markup in every text that anybody may write: on every page it stays text."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from servers import Live, serving
from sites import Person, bundle

from discreet import Categorical, Schema
from discreet.collection.announcement import Announcement, AnnouncementTexts, QuestionTexts
from discreet.local import PlanOptions, make_plan
from discreet.server import surveys
from discreet.server.bundle import load_templates
from discreet.server.database import Database
from discreet.server.desk import create_desk_router
from discreet.server.pages import create_public_router
from discreet.survey import Group, Questionnaire
from discreet.survey.questionnaire import Wording

pytestmark = [pytest.mark.browser, pytest.mark.slow]

FOREIGN = "img, iframe, object, base, svg svg, main script, main style, [onerror], b, i, u"


def nasty(what: str) -> str:
    """A text that ends whatever it is put into, and adds elements of its own."""
    return (
        f"\"'>{what}</title></textarea></option></code><b>{what}</b><img src=/x onerror=alert(1)>"
    )


def announced(collection: Any, name: str) -> Announcement:
    asked = {
        one: QuestionTexts(
            nasty("wording"), tuple(nasty(f"label {k}") for k in range(2)), nasty("hint")
        )
        for one in collection.names
    }
    words = AnnouncementTexts(
        nasty("title"), nasty("introduction"), nasty("purpose"), nasty("thanks"), asked
    )
    told = Announcement.make_default(
        collection, name, batch=1, asks=nasty("asks"), contact=nasty("us")
    )
    return replace(told, words={"en": words, "de": words})


def collections() -> dict[str, Any]:
    def values(what: str) -> list[str]:
        return [nasty(f"{what} {k}") for k in range(2)]

    asked = Categorical(nasty("feature"), values("value"), optional=False)
    schema = Schema([asked], nasty("target"), values("class"))
    names = (asked.name, schema.target)
    wording = {name: Wording(nasty("private"), nasty("personal")) for name in names}
    sheet = Questionnaire(
        schema,
        [Group(names, theta=0.5)],
        wording=wording,
        title=nasty("own title"),
        introduction=nasty("own introduction"),
        device="either",
    )
    return {"sheet": sheet, "plan": make_plan(schema, 1.0, options=PlanOptions(kind="pairs"))}


@pytest.fixture
def hostile(tmp_path: Path) -> Iterator[Live]:
    with Database(f"sqlite:///{tmp_path}/collected.db") as database:
        database.migrate()
        with database.write() as connection:
            for name, collection in collections().items():
                plain = Announcement.make_default(collection, f"{name}-plain", batch=1)
                letters = replace(announced(collection, f"{name}-invited"), entry="invited")
                for told in (announced(collection, name), plain, letters):
                    number = surveys.create_survey(connection, collection, told)
                    surveys.set_state(connection, number, "open")
        with serving(database, [create_public_router(bundle()), create_desk_router()]) as live:
            yield live


def answered(hostile: Live, chromium: Any) -> list[str]:
    """Every screen of a respondent, in both languages; what is not text on them."""
    found = []
    hand = "Draw with my own coin or dice"
    ways = (("sheet", "Begin"), ("sheet", hand), ("sheet-plain", hand), ("plan", "Begin"))
    for name, begin in ways:
        with Person(chromium, hostile.base) as somebody:
            page = somebody.goto(name)
            found += foreign(page, name)
            somebody.press(begin)
            while page.locator("form").count():
                found += foreign(page, name)
                for one in page.locator("fieldset").all():
                    one.locator("input").first.check()
                somebody.press("Continue")
            found += foreign(page, name)
            somebody.press("Draw and send" if begin == "Begin" else "Send")
            somebody.counted()
            page.get_by_role("button", name="Look at it").click()
            page.get_by_text("This was sent").wait_for()
            found += foreign(page, name)
            for path in ("/", f"/s/{name}/about", f"/s/{name}/about?lang=de"):
                page.goto(hostile.base + path)
                found += foreign(page, path)
    return found


def managed(hostile: Live, chromium: Any) -> list[str]:
    """Every page of a collector; what is not text on them."""
    found = []
    with Person(chromium, hostile.base) as owner:
        page = owner.page
        page.goto(f"{hostile.base}/desk#once={hostile.server.access.create_link_token()}")
        page.get_by_role("heading", name="Collections").wait_for()
        for name in ("sheet", "plan"):
            page.goto(f"{hostile.base}/desk/{name}")
            found += foreign(page, name)
            page.get_by_role("button", name="Try it with simulated people").click()
            page.get_by_role("heading", name=f"{name}-simulated").wait_for()
            found += foreign(page, f"{name}-simulated")
            page.locator("form select").first.select_option(index=1)
            page.get_by_role("button", name="Predict").click()
            page.get_by_text("rather than").wait_for()
            found += foreign(page, "prediction")
            page.goto(f"{hostile.base}/desk/{name}-invited")
            page.get_by_role("button", name="Make letters").click()
            page.locator(".letter").first.wait_for()
            found += foreign(page, "letters")
        page.goto(f"{hostile.base}/desk")
        found += foreign(page, "desk")
        page.goto(f"{hostile.base}/desk/new/collection")
        for field in ("title", "name", "asks", "contact", "introduction", "questions", "truth"):
            page.locator(f"#{field}").fill(nasty(field))
        page.get_by_text("write it as name | wording | answer, answer").wait_for()
        found += foreign(page, "promise")
        page.get_by_role("button", name="Make it").click()
        page.locator(".problem").wait_for()
        found += foreign(page, "refused form")
        assert page.locator("#title").input_value() == nasty("title")
    return found


def foreign(page: Any, where: str) -> list[str]:
    """Elements and requests that only somebody's text can have made."""
    made = page.locator(FOREIGN).evaluate_all(
        "nodes => nodes.map(node => node.outerHTML.slice(0, 80))"
    )
    return [f"{where}: {one}" for one in made]


def test_markup_of_a_collector_is_text_for_respondents(hostile: Live, chromium: Any) -> None:
    assert answered(hostile, chromium) == []


def test_markup_in_collections_is_text_at_the_desk(hostile: Live, chromium: Any) -> None:
    assert managed(hostile, chromium) == []


def test_pages_that_do_not_escape_are_found(
    hostile: Live, chromium: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The twin: the same templates, without escaping."""
    made = load_templates()
    monkeypatch.setattr(made, "autoescape", False)
    made.cache.clear()
    try:
        with Person(chromium, hostile.base) as owner:
            page = owner.page
            page.goto(f"{hostile.base}/desk#once={hostile.server.access.create_link_token()}")
            page.locator(".card").first.wait_for()
            for path in ("/desk", "/desk/sheet", "/s/sheet/about", "/"):
                page.goto(hostile.base + path)
                assert foreign(page, path), path
    finally:
        made.cache.clear()
