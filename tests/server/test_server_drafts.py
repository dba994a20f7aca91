"""What outsiders learn of a server: nothing of drafts, nothing from its log, no address of theirs.

And a clock that is wrong for a while ends nothing for good.
"""

from __future__ import annotations

import resource
import socket
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import httpx
import pytest
from server_processes import process
from servers import Live, added, client, plan, problem, questionnaire, report, serving

from discreet.collection.announcement import Announcement
from discreet.server import problems, running, surveys
from discreet.server.access import format_session_cookie
from discreet.server.database import Database
from discreet.server.desk import create_desk_router
from discreet.server.pages import create_public_router

SECRET = "layoffs-in-spring"


def drafted(database: Database, name: str = SECRET) -> None:
    made = questionnaire()
    with database.write() as connection:
        surveys.create_survey(connection, made, Announcement.make_default(made, name))


@pytest.fixture
def office(tmp_path: Path) -> Iterator[Live]:
    """A server with pages, an open survey, and a draft."""
    with Database(f"sqlite:///{tmp_path}/collected.db") as database:
        database.migrate()
        added(database, plan())
        drafted(database)
        with serving(database, [create_public_router(), create_desk_router()]) as live:
            yield live


def asked(live: Live, slug: str) -> dict[str, httpx.Response]:
    """Everything that an outsider may ask about a name."""
    made, key = report(questionnaire())
    path = f"/api/v1/surveys/{slug}"
    ask = live.client.request
    return {
        "announcement": ask("GET", path),
        "document": ask("GET", f"{path}/document"),
        "state": ask("POST", f"{path}/invitations/state", json={"code": "x"}),
        "report": live.post(made, slug),
        "misshapen": live.post(b"{}", slug),
        "withdrawal": live.taken_back(made.id, key, slug),
        "page": ask("GET", f"/s/{slug}"),
        "about": ask("GET", f"/s/{slug}/about"),
        "list": ask("GET", "/"),
        "listed": ask("GET", "/api/v1/surveys"),
        "metrics": ask("GET", "/metrics"),
        "desk": ask("GET", f"/desk/{slug}/preview"),
    }


def given_away(live: Live, slug: str) -> set[str]:
    """Which answers differ from those about a survey that does not exist."""
    missing, found = asked(live, "no-such-survey"), asked(live, slug)
    return {
        name
        for name, answer in found.items()
        if (answer.status_code, answer.text, dict(answer.headers))
        != (missing[name].status_code, missing[name].text, dict(missing[name].headers))
    }


@pytest.mark.slow
def test_a_draft_is_like_a_survey_that_does_not_exist(office: Live) -> None:
    assert given_away(office, SECRET) == set()
    for name, answer in asked(office, "health").items():
        assert SECRET not in answer.text, name


@pytest.mark.slow
def test_twin_a_draft_that_is_served_is_found(
    office: Live, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As it was: a draft is refused when somebody answers it, and is there for everybody."""
    monkeypatch.setattr(surveys.SurveyStore, "is_published", lambda *_: True)
    found = given_away(office, SECRET)
    assert found >= {"announcement", "document", "state", "report", "misshapen", "page", "about"}


@pytest.mark.slow
def test_its_collector_sees_a_draft_and_nobody_keeps_it_for_them(office: Live) -> None:
    path = f"/{SECRET}"
    shown = office.owned("GET", path)
    assert shown.json()["state"] == "draft"
    document = office.owned("GET", f"{path}/document")
    assert document.content == questionnaire().encode_canonical()
    assert document.headers["cache-control"] == "no-store"
    token = office.server.access.create_token("viewer", "desk", "session", 1)
    headers = {"Cookie": format_session_cookie(token, secure=False).partition(";")[0]}
    about = office.client.get(f"/s/{SECRET}/about", headers=headers)
    assert about.status_code == 200
    page = office.client.get(f"/desk/{SECRET}/preview", headers=headers)
    assert page.status_code == 200
    assert page.text == office.client.get("/s/health").text  # the same bytes as respondents get
    assert "sha256-" in page.headers["content-security-policy"]
    assert f"/desk/{SECRET}/preview" in office.client.get(f"/desk/{SECRET}", headers=headers).text
    assert problem(office.owned("GET", path, token="x" * 43)) == "not-found"
    office.owned("POST", f"{path}/open")
    opened = office.client.get(f"/api/v1/surveys/{SECRET}/document")
    assert opened.headers["cache-control"].startswith("public")


# ---------------------------------------------------------------- a wrong clock


@pytest.mark.slow
def test_a_clock_that_jumps_ahead_closes_nothing_for_good(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, collection = surveys.utc_day(), plan()
    with Database(f"sqlite:///{tmp_path}/collected.db") as database:
        database.migrate()
        last_day = (real + timedelta(30)).isoformat()
        number = added(database, collection, closes=last_day, batch=5)
        with serving(database, settle_interval=0.05) as live:
            assert live.post(report(collection)[0]).status_code == 201
            later = lambda: real + timedelta(365)  # noqa: E731
            for module in (running, surveys):
                monkeypatch.setattr(module, "utc_day", later)
            live.server.writer.get_today = later
            assert problem(live.post(report(collection)[0])) == "closed"
            while not live.counted():  # what waited is settled, as after a real last day
                continue
            assert problem(live.owned("POST", "/health/invitations", json={"count": 1})) == "state"
            for module in (running, surveys):
                monkeypatch.setattr(module, "utc_day", lambda: real)
            live.server.writer.get_today = lambda: real
            assert live.post(report(collection)[0]).status_code == 201
            assert live.client.get("/api/v1/surveys/health").json()["state"] == "open"
        with database.read() as connection:
            assert surveys.read_stored_state(connection, number) == "open"
        with database.write() as connection:  # the twin: stored as closed, as it was before
            surveys.set_state(connection, number, "closed")
        with serving(database) as live:
            assert problem(live.post(report(collection)[0])) == "closed"
            assert problem(live.owned("POST", "/health/open")) == "state"


# ---------------------------------------------------------------- addresses


@pytest.mark.slow
@pytest.mark.parametrize(
    ("path", "to"),
    [
        ("/s/health/", "/s/health"),
        ("/s/health//", "/s/health"),
        ("/s/health/about/?lang=de", "/s/health/about?lang=de"),
        ("/desk/", "/desk"),
        ("/api/v1/surveys/health/", "/api/v1/surveys/health"),
    ],
)
def test_a_slash_at_the_end_leads_on_without_naming_a_host(
    path: str, to: str, office: Live
) -> None:
    answer = office.client.get(path, headers={"Host": "evil.example"})
    assert (answer.status_code, answer.headers["location"]) == (307, to)
    assert "evil" not in str(answer.headers) + answer.text


@pytest.mark.slow
@pytest.mark.parametrize("path", ["//evil.example/", "//evil.example/s/health/", "/nothing/", "//"])
def test_other_paths_lead_nowhere(path: str, office: Live) -> None:
    asked = f"GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
    assert spoken(office.base, asked.encode()).startswith(b"HTTP/1.1 404")


def spoken(base: str, content: bytes) -> bytes:
    """What a server answers to bytes, until it closes."""
    host, _, port = base.removeprefix("http://").partition(":")
    with socket.create_connection((host, int(port)), timeout=60) as line:
        line.sendall(content)
        found = b""
        while piece := line.recv(1 << 16):
            found += piece
        return found


# ---------------------------------------------------------------- the log


BROKEN = (
    b"POST /api/v1/surveys/plan/reports HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
    b"Content-Length: 1000\r\n\r\n{",
    b"POST /api/v1/surveys/plan/invitations/state HTTP/1.1\r\nHost: x\r\n"
    b"Content-Type: application/json\r\nContent-Length: 1000\r\n\r\n{",
    b"GET / HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
    b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: eA==\r\n\r\n",
    b"this is not HTTP\r\n\r\n",
)


def logged(folder: Path, patch: str = "") -> tuple[list[str], list[str]]:
    """Lines of a real process: of people who leave and odd requests, then with a full disk."""
    with process(folder, patch) as (base, running, log):
        host, _, port = base.removeprefix("http://").partition(":")
        for content in BROKEN * 3:
            with socket.create_connection((host, int(port))) as line:
                line.sendall(content)
                line.shutdown(socket.SHUT_WR)
                while line.recv(1 << 16):
                    if content.startswith(b"GET"):
                        break
        collection = plan()
        with client(base) as asking:
            path = "/api/v1/surveys/plan/reports"
            headers = {"Content-Type": "application/json"}

            def send() -> int:
                content = report(collection)[0].to_json()
                return asking.post(path, content=content, headers=headers).status_code

            assert send() == 201
            before = log.read_text().splitlines()
            database = max(folder.glob("*.db*"), key=lambda one: one.stat().st_size)
            size = database.stat().st_size
            resource.prlimit(running.pid, resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))
            failed = 0
            while failed < 20:
                failed += send() == 503
    return before, log.read_text().splitlines()[len(before) :]


@pytest.mark.slow
def test_the_log_of_a_server_is_not_a_list_of_visits(tmp_path: Path) -> None:
    visits, full = logged(tmp_path)
    assert visits == []
    assert full  # the operator hears of it
    assert not any("Traceback" in line for line in full)
    assert len(full) == len(set(full)) <= 5, full


TALKATIVE = """
import discreet.hosting.body_limit, discreet.hosting.serving
import discreet.server.problems as problems, sys, uvicorn
problems.Notices.print_once = lambda self, line: print(line, file=sys.stderr, flush=True)
configured = uvicorn.Config.__init__
def warn(self, *arguments, **named):
    configured(self, *arguments, **{**named, "log_level": "warning"})
uvicorn.Config.__init__ = warn
async def bare(self, scope, receive, send):
    await self.app(scope, receive, send)
discreet.hosting.body_limit.BodyLimit.__call__ = bare
"""


@pytest.mark.slow
def test_twin_a_server_that_says_everything_lists_visits(tmp_path: Path) -> None:
    visits, full = logged(tmp_path, TALKATIVE)
    assert sum("ClientDisconnect" in line for line in visits) >= 3
    assert sum("WebSocket" in line for line in visits) >= 3
    assert len(full) >= 20


def test_a_line_for_the_operator_comes_once_per_day(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    notices = problems.Notices()
    for _ in range(50):
        notices.print_once("the disk is full")
        notices.print_once("the database failed")
    said = capsys.readouterr().err.splitlines()
    assert said == ["discreet: the disk is full", "discreet: the database failed"]
    for number in range(1000):
        notices.print_once(f"another reason {number}")
    assert len(capsys.readouterr().err.splitlines()) == problems.MAX_DAILY_NOTICES - 2
    monkeypatch.setattr(notices, "_day", surveys.utc_day() - timedelta(1))
    notices.print_once("the disk is full")
    assert capsys.readouterr().err == "discreet: the disk is full\n"
