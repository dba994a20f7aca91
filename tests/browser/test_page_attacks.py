"""The respondent's page against liars on the way, failing stores, other tabs and late people."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from sites import Person, bundle, site

pytestmark = [pytest.mark.browser, pytest.mark.slow]
People = Callable[..., Person]


PATIENT = """const later = setTimeout;
  window.setTimeout = (act, wait) => (wait < 1000 ? later(act, wait) : 0);"""
"""Nothing is tried again by itself."""
ONLINE = "dispatchEvent(new Event('online'))"
"""What waits to be sent is sent now."""


def rows(live: Any, name: str) -> int:
    """How many reports to a survey wait in the database of a server."""
    with sqlite3.connect(live.server.database.location) as connection:
        (found,) = connection.execute(
            "SELECT count(*) FROM arrival JOIN survey ON survey.number = arrival.survey "
            "WHERE survey.slug = ? AND arrival.live = 1",
            (name,),
        ).fetchone()
    return int(found)


# ---------------------------------------------------------------- who answers for the server

LIES: list[dict[str, Any]] = [
    {"status": 500, "body": "{"},
    {"status": 200, "body": "<h1>Welcome to our hotel</h1>", "content_type": "text/html"},
    {"status": 404, "body": "<h1>nginx</h1>", "content_type": "text/html"},
    {"status": 201, "json": {"outcome": "counted", "id": "0" * 32}},
]


def test_only_the_server_itself_counts_or_withdraws_a_report(person: People, live: Any) -> None:
    """Proxies and the pages of hotels answer, too; once the report has been stored already."""
    somebody = person()
    page = somebody.reviewed("sheet")
    met: list[str] = []

    def lie(route: Any) -> None:
        if not met:
            route.fetch()  # stored; nobody hears of it
        met.append(route.request.post_data)
        if len(met) <= len(LIES):
            route.fulfill(**LIES[len(met) - 1])
        else:
            route.continue_()

    page.route("**/reports", lie)
    before = rows(live, "sheet")
    somebody.press("Draw and send")
    counted = page.get_by_role("heading", name="Your answer was counted")
    for _ in LIES:
        page.get_by_text("sent again in").or_(counted).first.wait_for()
        page.evaluate(ONLINE)
    somebody.counted()
    assert len(met) == len(LIES) + 1, "only the last answer was believed"
    assert len(set(met)) == 1, "the same bytes every time"
    assert rows(live, "sheet") == before + 1, "counted once"
    page.route("**/reports/*", lambda route: route.fulfill(status=200, body="all is well"))
    page.get_by_role("button", name="Withdraw now").click()
    somebody.press("Withdraw now")
    page.get_by_text("sent again in").wait_for()
    assert rows(live, "sheet") == before + 1
    page.unroute("**/reports/*")
    page.reload()
    page.get_by_role("heading", name="Your answer was withdrawn").wait_for()
    assert rows(live, "sheet") == before


# ---------------------------------------------------------------- stores that fail or are cleared

FULL = """
  for (const name of ["add", "put", "getAll"]) {
    const work = IDBObjectStore.prototype[name];
    IDBObjectStore.prototype[name] = function (...given) {
      if (window.full === this.name) throw new DOMException("no room", "QuotaExceededError");
      return work.apply(this, given);
    };
  }
"""


@pytest.mark.parametrize(("full", "moment"), [("question", 0), ("report", 1), ("report", 2)])
def test_a_full_disk_is_said_and_nothing_leaves(full: str, moment: int, person: People) -> None:
    """When the question is kept, when the sum is looked up, when the report is kept."""
    somebody = person()
    page = somebody.page
    page.add_init_script(FULL + (f"window.full = {full!r};" if moment == 0 else ""))
    somebody.goto("lists")
    if moment:
        somebody.press("Begin")
        page.locator("input[type=radio]").first.check()
        while page.locator(".progress").inner_text() != "Question 2 of 2":
            somebody.press("Continue")
        page.locator("input[type=radio]").first.check()
        if moment == 1:
            page.evaluate(f"window.full = {full!r}")
        somebody.press("Continue")
        if moment == 2:
            page.evaluate(f"window.full = {full!r}")
            somebody.press("Draw and send")
    page.get_by_text("This browser stores nothing for this page").wait_for()
    page.get_by_text("Nothing was sent.", exact=True).wait_for()
    assert somebody.bodies() == []


def cleared(somebody: Person, live: Any, other: bool) -> int:
    """How many reports are stored of somebody who clears the store before a report has arrived."""
    before = rows(live, "sheet")
    somebody.page.add_init_script(PATIENT)
    first = somebody.reviewed("sheet")
    first.route("**/reports", lambda route: route.abort())
    somebody.press("Draw and send")
    first.get_by_role("button", name="Try again now").wait_for()
    first.evaluate(
        """() => new Promise((ok) => {
             indexedDB.deleteDatabase("discreet").onsuccess = ok;
           })"""
    )
    if other:
        second = somebody.reviewed("sheet", 1, somebody.opened())
        somebody.press("Draw and send", second)
        somebody.counted(second)
    first.unroute("**/reports")
    first.evaluate(ONLINE)
    somebody.counted(first)
    first.reload()
    somebody.counted(first)
    return rows(live, "sheet") - before


@pytest.mark.parametrize("other", [False, True])
def test_who_clears_the_store_sends_one_report(other: bool, person: People, live: Any) -> None:
    """Its message is kept again; or that of another tab is sent, if it has drawn meanwhile."""
    assert cleared(person(), live, other) == 1


def test_a_page_that_sends_from_memory_is_found(chromium: Any, tmp_path: Path) -> None:
    """The twin: what was drawn is sent, whatever the store says now."""
    careless = {
        "respond.js": (
            "await this.store.restoreReport(lastKnown).catch(() => lastKnown)",
            "lastKnown",
        )
    }
    with site(tmp_path, bundle(careless), "sheet") as live, Person(chromium, live.base) as somebody:
        assert cleared(somebody, live, other=True) == 2


# ---------------------------------------------------------------- ways around a screen


def test_no_way_leads_around_a_stop(person: People) -> None:
    """Neither another language nor the browser's buttons."""
    somebody = person()
    page = somebody.goto("spoken")
    somebody.press("Begin")

    def closed(route: Any) -> None:
        route.fulfill(json={**route.fetch().json(), "state": "closed"})

    page.route("**/api/v1/surveys/spoken", closed)
    page.reload()
    page.get_by_text("The survey is closed.").wait_for()
    page.go_back()
    page.wait_for_timeout(100)
    assert page.locator("main .warning").inner_text() == "The survey is closed."
    page.locator("#language").select_option("de")
    page.get_by_text("Die Umfrage ist geschlossen.").wait_for()
    assert page.get_by_role("button").count() == 0


def test_nobody_sends_half_a_sheet(person: People) -> None:
    """Answers do not come back with the page; the browser's button leads to its last question."""
    somebody = person()
    page = somebody.reviewed("sheet")
    page.goto(f"{somebody.base}/s/sheet/about")
    page.go_back()
    page.get_by_role("button", name="Begin").wait_for()
    page.go_back()
    page.locator("form").wait_for()
    asked = 0
    while page.locator("form").count():
        assert page.locator("input:checked").count() == 0
        asked += 1
        page.locator("input[type=radio]").first.check()
        somebody.press("Continue")
    assert asked == 3
    assert page.locator("h1").inner_text() == "Before you send"


# ---------------------------------------------------------------- codes, and late people


def test_one_code_in_two_browsers_at_once(person: People, live: Any) -> None:
    (code,) = live.owned("POST", "/invited/invitations", json={"count": 1}).json()["codes"]
    before = rows(live, "invited")
    people = [person(), person()]
    for one in people:
        one.reviewed(f"invited#c={code}")
    for one in people:
        one.page.get_by_role("button", name="Draw and send").click()
    for one in people:
        one.page.get_by_role("heading", name="Your answer was").wait_for()
    said = sorted(one.page.locator("h1").inner_text() for one in people)
    assert said == ["Your answer was counted", "Your answer was not counted"]
    assert rows(live, "invited") == before + 1


def test_who_comes_after_the_close(chromium: Any, tmp_path: Path) -> None:
    """One sends, one withdraws; both opened the page before. Then a third opens it."""
    with site(tmp_path, None, "sheet") as live:
        early, late, never = (Person(chromium, live.base) for _ in range(3))
        with early, late, never:
            early.sent("sheet")
            late.reviewed("sheet")
            live.owned("POST", "/sheet/close")
            late.press("Draw and send")
            late.page.get_by_text("closed before your message arrived").wait_for()
            early.page.get_by_role("button", name="Withdraw now").click()
            early.press("Withdraw now")
            early.page.get_by_text("It could not be withdrawn; it is still counted.").wait_for()
            early.page.reload()
            early.counted()
            early.page.get_by_text("The survey is closed, so it can no longer be").wait_for()
            assert early.page.get_by_role("button", name="Withdraw now").count() == 0
            never.goto("sheet").get_by_text("The survey is closed.").wait_for()
        assert live.owned("GET", "/sheet/tally").json()["counted"] == [1]
