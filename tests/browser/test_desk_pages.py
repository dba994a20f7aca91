"""The desk in a browser, and the respondent's page on another host."""

from __future__ import annotations

import functools
import http.server
import io
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import zxingcpp
from axe_playwright_python.sync_playwright import Axe
from PIL import Image
from servers import Live, added, serving
from sites import Person, collections, sheets, site

from discreet.collection.announcement import Announcement
from discreet.server import access, surveys
from discreet.server import desk as desk_module
from discreet.server.bundle import Bundle
from discreet.server.database import Database
from discreet.server.desk import create_desk_router
from discreet.server.pages import create_public_router
from discreet.server.rehearsal import create_rehearsal

pytestmark = [pytest.mark.browser, pytest.mark.slow]


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Live]:
    with Database(f"sqlite:///{tmp_path_factory.mktemp('desk')}/collected.db") as database:
        database.migrate()
        added(database, sheets(), "sheet", batch=1)
        added(database, collections()["lists"][0], "lists", batch=1)
        with serving(database, [create_public_router(), create_desk_router()]) as running:
            for name in ("sheet", "lists"):
                survey = running.server.surveys.find_survey(name)
                assert survey is not None
                create_rehearsal(database, survey.collection, survey.announcement, 300)
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
        page.goto(f"{desk.base}/desk#once={desk.server.access.create_link_token()}")
        page.get_by_role("heading", name="Collections").wait_for()
        assert "once" not in page.url
        page.get_by_role("link", name="sheet", exact=True).click()
        page.get_by_text("each report is counted (settled) by itself").wait_for()
        page.get_by_label("Type sheet to confirm").first.fill("sheet")
        page.get_by_role("button", name="Settle early").click()
        page.get_by_text("1 report: too few to say anything yet").first.wait_for()
        page.get_by_role("link", name="All collections").click()
        page.get_by_role("link", name="sheet-simulated").click()
        page.get_by_label("smokes", exact=True).select_option("yes")
        page.get_by_label("drinks", exact=True).select_option("no")
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
        page.goto(f"{desk.base}/desk#once={desk.server.access.create_link_token()}")
        page.reload()  # the same document: a new fragment alone loads nothing
        page.get_by_role("heading", name="Collections").wait_for()
        for path in (
            "/desk",
            "/desk/new/collection",
            "/desk/sheet-simulated",
            "/desk/lists-simulated",
        ):
            page.goto(desk.base + path)
            for width in (320, 1280):
                page.set_viewport_size({"width": width, "height": 800})
                assert faults(page) == [], path
                wide = page.evaluate("document.documentElement.scrollWidth")
                assert wide <= width, f"{path}: {wide} pixels on {width}"


def test_the_picture_in_a_letter_leads_to_the_survey(desk: Live, chromium: Any) -> None:
    """As a phone does it: the letter as it is printed, read by another program's decoder."""
    added(desk.server.database, sheets(), "invited", entry="invited")
    with Person(chromium, desk.base) as owner:
        page = owner.page
        page.goto(f"{desk.base}/desk#once={desk.server.access.create_link_token()}")
        page.get_by_role("heading", name="Collections").wait_for()
        page.goto(f"{desk.base}/desk/invited")
        page.get_by_label("How many").fill("1")
        page.get_by_role("button", name="Make letters").click()
        page.emulate_media(media="print")
        with Image.open(io.BytesIO(page.locator(".letter").screenshot())) as letter:
            (found,) = zxingcpp.read_barcodes(letter)
        printed = page.locator(".letter code").nth(1).inner_text().replace(" ", "")
        assert f"/s/invited#c={printed}&d=" in found.text
        scanned = owner.opened()
        scanned.goto(found.text)
        scanned.get_by_role("button", name="Begin").wait_for()


def test_a_draft_says_what_it_promises_while_it_is_written(desk: Live, chromium: Any) -> None:
    with Person(chromium, desk.base) as owner:
        page = owner.page
        page.goto(f"{desk.base}/desk#once={desk.server.access.create_link_token()}")
        page.get_by_role("link", name="New collection").click()
        promise = page.locator("#promise")
        page.get_by_text("can be moved to at most").wait_for()
        before = promise.inner_text()
        page.locator("#truth").fill("99")
        page.get_by_text("This protection is weak").wait_for()
        assert promise.inner_text() != before
        page.locator("#questions").fill("one | only | no, yes")
        page.get_by_text("at least two questions").wait_for()
        owner.context.set_offline(True)
        page.locator("#truth").fill("98")
        page.get_by_text("it cannot be reached, or you are signed out").wait_for()
        owner.context.set_offline(False)
        page.locator("#truth").fill("97")
        page.get_by_text("at least two questions").wait_for()
        owner.context.clear_cookies()  # the session has ended meanwhile
        page.locator("#truth").fill("96")
        page.get_by_text("it cannot be reached, or you are signed out").wait_for()
        assert owner.problems == []


MANY = """async ([name, people]) => {
  const { DeviceStore } = await import("/static/keep.js");
  const { Survey } = await import("/static/respond.js");
  const bodies = [];
  for (let k = 0; k < people; k++) {  // each with a store of their own, as in another browser
    const store = DeviceStore.open(`person ${k}`), link = { code: "", digest: "" };
    const survey = await Survey.open(`${location.origin}/api/v1/surveys/${name}`, store, link);
    await survey.begin();
    const names = survey.collection.asked(survey.question), answers = {};
    for (const name of names) {
      const choices = survey.collection.choices(name);
      answers[name] = choices[(k + names.indexOf(name)) % choices.length].answer;
    }
    const { text } = await survey.drawReport(answers);
    await survey.sendReport(() => undefined);
    bodies.push(text);
  }
  return bodies;
}"""


@pytest.mark.parametrize(("name", "command"), [("lists", "local"), ("sheet", "survey")])
def test_the_page_and_the_command_line_make_the_same_model(
    name: str, command: str, chromium: Any, tmp_path: Path
) -> None:
    """Reports that the page draws and sends: through its server, and as files."""
    from click.testing import CliRunner

    from discreet.cli import main

    with site(tmp_path, None, name) as live, Person(chromium, live.base) as somebody:
        somebody.sent(name)  # by hand, and the others by the modules of the same page
        bodies = somebody.bodies() + somebody.page.evaluate(MANY, [name, 40])
        assert len(set(bodies)) == 41
        settled = live.owned("POST", f"/{name}/settle", params={"anyway": "true"})
        assert settled.json() == {"settled": 41}
        served = live.owned("GET", f"/{name}/model").text
        (tmp_path / "reports.jsonl").write_text("".join(bodies), encoding="utf-8")
        owner = somebody.page
        owner.goto(f"{live.base}/desk#once={live.server.access.create_link_token()}")
        owner.get_by_role("link", name=name, exact=True).click()
        with owner.expect_download() as download:
            owner.get_by_role(
                "link", name={"local": "Plan", "survey": "Questionnaire"}[command]
            ).click()
        download.value.save_as(tmp_path / "document.json")
    files = {one: str(tmp_path / one) for one in ("document.json", "reports.jsonl", "t", "m")}
    steps = (
        ["tally", files["document.json"], files["reports.jsonl"], "-o", files["t"]],
        ["train", files["t"], "-o", files["m"]],
    )
    for step in steps:
        done = CliRunner().invoke(main, [command, *step])
        assert done.exit_code == 0, done.output
    assert Path(files["m"]).read_text(encoding="utf-8") == served


EVIL = """<!doctype html><title>A prize</title>
<form method="post" action="{desk}/desk/sheet/do/close"><input name="confirm" value="sheet">
<button>Take it</button></form>"""


def closed_from_elsewhere(desk: Live, chromium: Any, folder: Path) -> bool:
    """Whether a page on another port, to which browsers give the cookie, can close a survey."""
    (folder / "index.html").write_text(EVIL.replace("{desk}", desk.base))
    survey = desk.server.surveys.find_survey("sheet")
    assert survey is not None
    assert desk.server.surveys.read_state(survey) == "open"
    with hosted(folder) as evil, Person(chromium, desk.base) as owner:
        owner.page.goto(f"{desk.base}/desk#once={desk.server.access.create_link_token()}")
        owner.page.get_by_role("heading", name="Collections").wait_for()
        owner.page.goto(evil)
        with owner.page.expect_response("**/do/close") as answer:
            owner.page.get_by_role("button", name="Take it").click()
        assert "discreet-desk" in answer.value.request.all_headers().get("cookie", "")
    return desk.server.surveys.read_state(survey) == "closed"


def test_a_page_of_another_site_cannot_act_at_the_desk(chromium: Any, tmp_path: Path) -> None:
    with site(tmp_path, None, "sheet") as live:
        assert not closed_from_elsewhere(live, chromium, tmp_path)


def test_without_the_refusal_it_could(
    chromium: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The twin: the cookie goes along, because ports do not make another site."""
    for module in (access, desk_module):
        monkeypatch.setattr(module, "is_same_origin", lambda _: True)
    with site(tmp_path, None, "sheet") as live:
        assert closed_from_elsewhere(live, chromium, tmp_path)


@pytest.fixture
def elsewhere(desk: Live, tmp_path: Path) -> Iterator[str]:
    """The page of a survey on the host of somebody else."""
    Bundle().write_files(tmp_path, desk.base, "sheet")
    with hosted(tmp_path) as base:
        yield base


@contextmanager
def hosted(folder: Path) -> Iterator[str]:
    """A folder on a web server of its own."""

    class Quiet(http.server.SimpleHTTPRequestHandler):
        extensions_map = {
            **http.server.SimpleHTTPRequestHandler.extensions_map,
            ".js": "text/javascript",
        }

        def log_message(self, *_: Any) -> None:
            pass

    handler = functools.partial(Quiet, directory=str(folder))
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


def test_a_collector_looks_at_a_draft_as_respondents_will(desk: Live, chromium: Any) -> None:
    """To the last screen; nothing is kept in the browser, nothing leaves it, others see nothing."""
    for name, collection in (("unborn", sheets()), ("unborn-plan", collections()["lists"][0])):
        with desk.server.database.write() as connection:
            told = Announcement.make_default(collection, name, entry="invited")
            surveys.create_survey(connection, collection, told)
        with Person(chromium, desk.base) as owner, Person(chromium, desk.base) as stranger:
            stranger.goto(name)
            assert "There is no survey at this address" in stranger.page.content()
            page = owner.page
            page.goto(f"{desk.base}/desk#once={desk.server.access.create_link_token()}")
            page.get_by_role("link", name=name, exact=True).click()
            page.get_by_role("link", name="look at it as respondents will").click()
            page.get_by_role("button", name="Begin").wait_for()
            assert "This is a preview" in page.content()
            owner.press("Begin")
            owner.answer()
            asked = len(owner.requests)
            owner.press("Draw and send")
            page.get_by_role("heading", name="End of the preview").wait_for()
            assert not faults(page)
            assert [one.url for one in owner.requests[asked:]] == []
            stores = json.loads(owner.kept())
            assert [part for part in stores if isinstance(part, list) and part] == []
            owner.press("Begin")
            assert page.get_by_role("button", name="Begin").count() == 1
            assert not owner.problems + stranger.problems
