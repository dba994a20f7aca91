"""The desk in a browser, and the respondent's page on another host."""

from __future__ import annotations

import functools
import http.server
import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from servers import Live, added, serving
from sites import Person, collections, sheets

from discreet.server.bundle import Bundle
from discreet.server.database import Database
from discreet.server.desk import desk_pages
from discreet.server.pages import public_pages
from discreet.server.rehearsal import rehearse

pytestmark = [pytest.mark.browser, pytest.mark.slow]


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Live]:
    with Database(f"sqlite:///{tmp_path_factory.mktemp('desk')}/collected.db") as database:
        database.migrate()
        added(database, sheets(), "sheet", batch=1)
        added(database, collections()["lists"][0], "lists", batch=1)
        with serving(database, [public_pages(), desk_pages()]) as running:
            for name in ("sheet", "lists"):
                survey = running.server.surveys.find(name)
                assert survey is not None
                rehearse(database, survey.collection, survey.announcement, 300)
            yield running


def faults(page: Any) -> list[str]:
    found = Axe().run(page).response["violations"]
    return [f"{one['id']}: {one['nodes'][0]['html'][:200]}" for one in found]


def test_answer_open_the_desk_train_predict(desk: Live, chromium: Any) -> None:
    """What a newcomer does, by nothing but what the screen says."""
    with Person(chromium, desk.base) as somebody:
        somebody.sent("sheet")
        owner = Person(chromium, desk.base)
        page = owner.page
        page.goto(f"{desk.base}/desk#once={desk.server.access.once()}")
        page.get_by_role("heading", name="Collections").wait_for()
        assert "once" not in page.url
        page.get_by_role("link", name="sheet", exact=True).click()
        page.get_by_text("1 of the 1 reports").wait_for()
        page.get_by_label("Type sheet to confirm").first.fill("sheet")
        page.get_by_role("button", name="Settle early").click()
        page.get_by_text("1 reports").first.wait_for()
        page.get_by_role("link", name="All collections").click()
        page.get_by_role("link", name="sheet-simulated").click()
        page.get_by_label("smokes").select_option("yes")
        page.get_by_label("drinks").select_option("no")
        page.get_by_role("button", name="Predict").click()
        page.get_by_text("rather than").wait_for()
        with page.expect_download() as download:
            page.get_by_role("link", name="Model").click()
        model = json.loads(Path(download.value.path()).read_text())
        assert model["format"] == "discreet/model"
        assert owner.problems == []
        hosts = {one.url.split("/")[2] for one in owner.requests}
        assert hosts == {desk.base.split("/")[2]}
        owner.context.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_desk_is_accessible(scheme: str, desk: Live, chromium: Any) -> None:
    with Person(chromium, desk.base, color_scheme=scheme) as owner:
        page = owner.page
        page.goto(f"{desk.base}/desk")
        assert faults(page) == []
        page.goto(f"{desk.base}/desk#once={desk.server.access.once()}")
        page.reload()  # the same document: a new fragment alone loads nothing
        page.get_by_role("heading", name="Collections").wait_for()
        for path in ("/desk", "/desk/new", "/desk/sheet-simulated", "/desk/lists-simulated"):
            page.goto(desk.base + path)
            for width in (320, 1280):
                page.set_viewport_size({"width": width, "height": 800})
                assert faults(page) == [], path
                wide = page.evaluate("document.documentElement.scrollWidth")
                assert wide <= width, f"{path}: {wide} pixels on {width}"


def test_a_draft_says_what_it_promises_while_it_is_written(desk: Live, chromium: Any) -> None:
    with Person(chromium, desk.base) as owner:
        page = owner.page
        page.goto(f"{desk.base}/desk#once={desk.server.access.once()}")
        page.get_by_role("link", name="New collection").click()
        promise = page.locator("#promise")
        page.get_by_text("can be moved to at most").wait_for()
        before = promise.inner_text()
        page.locator("#truth").fill("99")
        page.get_by_text("This protection is weak").wait_for()
        assert promise.inner_text() != before
        page.locator("#questions").fill("one | only | no, yes")
        page.get_by_text("at least two questions").wait_for()


@pytest.fixture
def elsewhere(desk: Live, tmp_path: Path) -> Iterator[str]:
    """The page of a survey on the host of somebody else."""
    Bundle().write(tmp_path, desk.base, "sheet")

    class Quiet(http.server.SimpleHTTPRequestHandler):
        extensions_map = {
            **http.server.SimpleHTTPRequestHandler.extensions_map,
            ".js": "text/javascript",
        }

        def log_message(self, *_: Any) -> None:
            pass

    handler = functools.partial(Quiet, directory=str(tmp_path))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as host:
        threading.Thread(target=host.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{host.server_address[1]}"
        host.shutdown()


def test_the_page_on_another_host_sends_only_the_report_here(
    elsewhere: str, desk: Live, chromium: Any
) -> None:
    from click.testing import CliRunner

    from discreet.cli import main

    checked = CliRunner().invoke(main, ["verify", f"{elsewhere}/index.html"])
    assert checked.exit_code == 0, checked.output
    with Person(chromium, elsewhere) as somebody:
        page = somebody.page
        page.goto(f"{elsewhere}/index.html")
        page.locator("h1").wait_for()
        somebody.press("Begin")
        somebody.answer()
        somebody.press("Draw and send")
        somebody.counted()
        assert somebody.problems == []
        here = [one.url for one in somebody.requests if one.url.startswith(desk.base)]
        survey = f"{desk.base}/api/v1/surveys/sheet"
        assert set(here) == {survey, f"{survey}/document", f"{survey}/reports"}
        (body,) = somebody.bodies()
        assert somebody.requests[-1].url.startswith(desk.base)
        page.get_by_role("button", name="Withdraw now").click()
        somebody.press("Withdraw now")
        page.get_by_role("heading", name="Your answer was withdrawn").wait_for()
        assert json.loads(body)["id"]
