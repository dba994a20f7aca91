"""Who may do what, what everybody sees, and what nobody does."""

from __future__ import annotations

import json
import re
import socket
import sqlite3
from pathlib import Path

import pytest
from servers import Live, added, files_in, plan, problem, report, serving

from discreet.server.access import SESSION_COOKIE, Access, format_session_cookie
from discreet.server.database import Database
from discreet.server.headers import DEFAULT_HEADERS, make_content_policy
from discreet.server.invitations import draw_qr_code, hash_code, make_link
from discreet.server.limits import RateLimiter
from discreet.server.problems import PROBLEM_TYPES, Problem
from discreet.server.running import ServerSettings

ROOT = Path(__file__).resolve().parents[2]
VIEWS = ("tally", "statistics", "model", "reports.parquet")
ACTS = ("open", "close", "settle", "invitations")


@pytest.fixture
def opened(tmp_path: Path) -> Database:
    with Database(str(tmp_path / "collected.db")) as database:
        database.migrate()
        added(database, plan(), batch=5)
        yield database  # type: ignore[misc]


@pytest.fixture
def live(opened: Database) -> Live:
    with serving(opened) as running:
        yield running  # type: ignore[misc]


@pytest.mark.slow
def test_results_need_a_viewer_and_acts_an_owner(live: Live) -> None:
    viewer = live.server.access.create_token("viewer", "reader")
    for path in VIEWS:
        assert problem(live.client.get(f"/api/v1/surveys/health/{path}")) == "unauthorized"
        answer = live.owned("GET", f"/health/{path}", "x" * 43)
        assert (answer.status_code, answer.headers["www-authenticate"]) == (401, "Bearer")
        answer = live.owned("GET", f"/health/{path}", viewer)
        assert answer.status_code == 200 or problem(answer) == "no-reports"
    for path in ACTS:
        answer = live.owned("POST", f"/health/{path}", viewer, json={"count": 1})
        assert problem(answer) == "forbidden"
    assert problem(live.owned("DELETE", "/health", viewer)) == "forbidden"
    assert live.server.access.revoke_tokens("reader") == 1
    assert problem(live.owned("GET", "/health/tally", viewer)) == "unauthorized"


def test_tokens_are_hashed_at_rest_and_expire(opened: Database, tmp_path: Path) -> None:
    access = Access(opened)
    token = access.create_token("owner", "me")
    assert access.find_grant(token, "token") is not None
    assert access.find_grant(token, "session") is None, "a token is not a session"
    opened.truncate_log()
    files = b"".join(files_in(tmp_path).values())
    assert token.encode() not in files
    old = access.create_token("owner", "old", days=-1)
    assert access.find_grant(old, "token") is None
    with pytest.raises(ValueError, match="one of viewer, owner"):
        access.create_token("admin", "me")
    assert [one["label"] for one in access.list_tokens()] == ["me", "old"]


@pytest.mark.slow
def test_the_link_of_the_desk_works_once_and_its_cookie_only_from_our_pages(live: Live) -> None:
    access = live.server.access
    once = access.create_link_token()
    session = access.exchange_link_token(once)
    with pytest.raises(Exception, match="used before"):
        access.exchange_link_token(once)
    cookie = {"Cookie": format_session_cookie(session, secure=False).partition(";")[0]}
    path = "/api/v1/surveys/health"
    assert live.client.get(f"{path}/tally", headers=cookie).status_code == 200
    for site, kind in (
        ("cross-site", "cross-site"),
        ("same-site", "cross-site"),
        (None, "cross-site"),
    ):
        headers = {**cookie, **({"Sec-Fetch-Site": site} if site else {})}
        assert problem(live.client.post(f"{path}/settle", headers=headers)) == kind
    for own in ({"Sec-Fetch-Site": "same-origin"}, {"Origin": live.base}):
        answer = live.client.post(f"{path}/settle", headers={**cookie, **own})
        assert problem(answer) == "small-batch"
    foreign = {**cookie, "Origin": "https://evil.example"}
    assert problem(live.client.post(f"{path}/settle", headers=foreign)) == "cross-site"
    assert "HttpOnly; SameSite=Strict; Secure" in format_session_cookie("x", secure=True)
    assert SESSION_COOKIE in format_session_cookie("", secure=True)
    access.end_session(session)
    assert live.client.get(f"{path}/tally", headers=cookie).status_code == 401


def test_only_the_token_of_a_link_opens_a_session_and_only_while_it_is_new(
    opened: Database,
) -> None:
    access = Access(opened)
    program = access.create_token("viewer", "program")
    old = access.create_token("owner", "desk", "once", days=-1)
    for token in (program, old):
        with pytest.raises(Problem, match="used before, or is too old"):
            access.exchange_link_token(token)
    assert access.find_grant(program, "token") is not None, "a refused token is not used up"
    assert access.exchange_link_token(access.create_link_token())


@pytest.mark.slow
def test_what_owners_do_is_written_down_by_day(live: Live, opened: Database) -> None:
    for _ in range(3):
        live.owned("POST", "/health/invitations", json={"count": 2})
    with opened.read() as connection:
        rows = connection.exec_driver_sql("SELECT label, what, times FROM action").all()
    assert [tuple(row) for row in rows] == [("test", "invite to health", 3)]


# ---------------------------------------------------------------- invitations


@pytest.mark.slow
def test_a_code_is_used_once_and_only_its_hash_is_stored(opened: Database, tmp_path: Path) -> None:
    collection = plan()
    added(opened, collection, "closed-shop", entry="invited")
    with serving(opened) as live:
        made = live.owned("POST", "/closed-shop/invitations", json={"count": 2}).json()
        (code, other), path = made["codes"], "/api/v1/surveys/closed-shop/invitations/state"

        def state(code: str) -> str:
            return str(live.client.post(path, json={"code": code}).json()["state"])

        survey = live.server.surveys.find_survey("closed-shop")
        assert survey is not None
        digest = survey.announcement.digest.removeprefix("sha256:")
        assert made["links"][0] == f"{live.base}/s/closed-shop#c={code}&d={digest}"
        assert (state(code), state("nonsense"), state("a" * 26)) == ("unused", "unknown", "unknown")
        first, second = (report(collection)[0] for _ in range(2))
        assert problem(live.post(first, "closed-shop")) == "invitation"
        assert problem(live.post(first, "closed-shop", Invitation="a" * 26)) == "invitation"
        spaced = "-".join((code[:13].upper(), code[13:]))
        assert live.post(first, "closed-shop", Invitation=spaced).status_code == 201
        assert (state(code), state(other)) == ("spent", "unused")
        assert problem(live.post(second, "closed-shop", Invitation=code)) == "invitation"
        assert live.post(first, "closed-shop", Invitation=code).status_code == 200
        assert live.post(first, "closed-shop").status_code == 200, "a repetition needs no code"
    opened.truncate_log()
    files = b"".join(files_in(tmp_path).values())
    assert code.encode() not in files
    hashed = hash_code(2, code)
    assert hashed is not None
    assert hashed in files
    assert hash_code(1, code) != hashed, "a code belongs to one survey"


def test_a_link_is_an_image_that_a_strict_policy_shows() -> None:
    image = draw_qr_code(make_link("https://example.org", "health", "sha256:" + "0" * 64, "a" * 26))
    assert image.startswith("<svg")
    assert "style" not in image
    assert "width=" not in image


# ---------------------------------------------------------------- headers, limits, metrics


@pytest.mark.slow
def test_headers_are_on_every_answer_and_pages_elsewhere_may_send_reports(live: Live) -> None:
    reports = "/api/v1/surveys/health/reports"
    answers = {
        "page": live.client.get("/health"),
        "missing": live.client.get("/nowhere"),
        "method": live.client.put("/health"),
        "head": live.client.head("/api/v1/surveys/health"),
        "refused": live.client.post(reports, content=b"{"),
        "document": live.client.get("/api/v1/surveys/health/document"),
    }
    for what, answer in answers.items():
        lacking = set(DEFAULT_HEADERS) - set(answer.headers)
        assert not lacking, (what, lacking)
        assert "script-src 'self';" in answer.headers["content-security-policy"]
        assert "server" not in answer.headers
    assert (answers["head"].status_code, answers["head"].content) == (200, b"")
    for what in ("refused", "document"):
        assert answers[what].headers["access-control-allow-origin"] == "*"
    assert "access-control-allow-origin" not in answers["page"].headers
    allowed = live.client.options(reports, headers={"Origin": "https://other.example"})
    assert allowed.status_code == 204
    assert "invitation" in allowed.headers["access-control-allow-headers"]
    tally = live.client.options("/api/v1/surveys/health/tally")
    assert "access-control-allow-origin" not in tally.headers
    assert "'sha256-abc'" in make_content_policy(["sha256-abc"])


@pytest.mark.slow
def test_the_document_is_its_canonical_bytes(live: Live) -> None:
    import hashlib

    answer = live.client.get("/api/v1/surveys/health/document")
    digest = "sha256:" + hashlib.sha256(answer.content).hexdigest()
    assert digest == live.collection.digest
    assert answer.headers["etag"] == f'"{digest}"'
    again = {"If-None-Match": answer.headers["etag"]}
    path = "/api/v1/surveys/health/document"
    assert live.client.get(path, headers=again).status_code == 304
    told = live.client.get("/api/v1/surveys/health").json()
    assert told["announcement"]["collection"] == digest
    assert told["guarantee"]["epsilon"] == 1.0


def test_addresses_have_limits_and_are_forgotten() -> None:
    now = [0.0]
    limits = RateLimiter(rate=2.0, burst=3.0, clock=lambda: now[0])
    assert [limits.allow_request("192.0.2.1") for _ in range(4)] == [True, True, True, False]
    assert limits.allow_request("192.0.2.2"), "another address"
    now[0] = 0.5
    assert [limits.allow_request("192.0.2.1") for _ in range(2)] == [True, False]
    assert [limits.allow_request("2001:db8::1") for _ in range(3)] == [True] * 3
    assert not limits.allow_request("2001:db8::ffff"), "the same network of 64 bits"
    assert limits.allow_request("2001:db8:0:1::1")
    assert not any(b"192" in key for key in limits._buckets)
    assert all(RateLimiter(0, 1).allow_request(None) for _ in range(10))


@pytest.mark.slow
def test_a_flood_from_one_address_is_told_to_wait(opened: Database) -> None:
    with serving(opened, rate=1.0, burst=3.0) as live:
        made = report(live.collection)[0]
        statuses = [live.post(made).status_code for _ in range(6)]
        assert statuses[:3] == [201, 200, 200]
        assert 429 in statuses[3:]
        last = live.post(made)
        assert (problem(last), last.headers["retry-after"]) == ("too-many", "5")


@pytest.mark.slow
def test_metrics_move_at_settling_only(live: Live) -> None:
    def metrics() -> str:
        return live.client.get("/metrics").text

    before = metrics()
    sent = [report(live.collection) for _ in range(5)]
    for made, _ in sent[:4]:
        live.post(made)
        live.post(made)
    live.post(b"{}")
    live.taken_back(sent[0][0].id, sent[0][1])
    assert metrics() == before, "neither arrivals nor withdrawals nor refusals show"
    assert problem(live.owned("POST", "/health/settle")) == "small-batch"
    live.post(sent[4][0])
    live.post(report(live.collection)[0])
    assert problem(live.owned("POST", "/health/settle")) == "small-batch", "5 would be kept back"
    assert metrics() == before
    everything = live.owned("POST", "/health/settle", params={"anyway": True})
    assert everything.json() == {"settled": 5}
    after = dict(re.findall(r"^(\w+)\{[^}]*\} (\d+)$", metrics(), re.M))
    assert after == {
        "discreet_settled_total": "5",
        "discreet_repeated_total": "4",
        "discreet_withdrawn_total": "1",
        "discreet_refused_total": "1",
    }
    one = sent[1]
    live.taken_back(one[0].id, one[1])
    assert dict(re.findall(r"^(\w+)\{[^}]*\} (\d+)$", metrics(), re.M)) == after


@pytest.mark.slow
def test_nothing_about_who_sent_is_stored_or_logged(
    opened: Database, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    agent, address = "Mozilla/5.0 (traceable)", "203.0.113.77"
    headers = {"User-Agent": agent, "X-Forwarded-For": address, "Referer": "https://a.example/"}
    with serving(opened) as live:
        for made in (report(live.collection)[0] for _ in range(6)):
            assert live.post(made, **headers).status_code == 201
        live.post(b"{", **headers)
        live.post(b"x" * 70_000, **headers)
        with socket.create_connection(("127.0.0.1", int(live.base.rpartition(":")[2]))) as raw:
            raw.sendall(b"NONSENSE\r\n\r\n")
            raw.recv(1000)
        live.owned("POST", "/health/settle", params={"anyway": True})
    files = b"".join(files_in(tmp_path).values())
    out, err = capfd.readouterr()
    for text in (agent, address, "a.example", "127.0.0.1"):
        assert text.encode() not in files
        assert text not in out + err


@pytest.mark.slow
def test_slow_and_silent_senders_are_refused(live: Live, monkeypatch: pytest.MonkeyPatch) -> None:
    from discreet.hosting.serving import RequestLimits
    from discreet.server import reports

    monkeypatch.setattr(reports, "REPORT_PATIENCE", RequestLimits(base_seconds=0.2))
    head = (
        b"POST /api/v1/surveys/health/reports HTTP/1.1\r\nHost: x\r\n"
        b"Content-Type: application/json\r\nContent-Length: 500\r\n\r\n{"
    )
    with socket.create_connection(("127.0.0.1", int(live.base.rpartition(":")[2]))) as raw:
        raw.sendall(head)
        answer = b""
        while b"urn:discreet:problem:slow" not in answer:
            piece = raw.recv(10_000)
            assert piece, answer
            answer += piece
    assert answer.startswith(b"HTTP/1.1 408")
    assert live.post(report(live.collection)[0]).status_code == 201, "others are served"


@pytest.mark.slow
def test_health_security_and_unknown_paths(opened: Database) -> None:
    with serving(opened, contact="mailto:security@example.org") as live:
        assert live.client.get("/health").text == "alive\n"
        assert live.client.get("/ready").text == "ready\n"
        text = live.client.get("/.well-known/security.txt").text
        assert re.fullmatch(r"Contact: mailto:\S+\nExpires: \d{4}-\d\d-\d\dT00:00:00Z\n", text)
        assert problem(live.client.get("/api/v1/surveys/UPPER")) == "invalid"
        allowed = live.client.patch("/api/v1/surveys")
        assert (problem(allowed), allowed.headers["allow"]) == ("method", "GET, POST")


@pytest.mark.slow
def test_an_error_of_ours_is_a_problem_without_a_traceback(
    live: Live, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> None:
        raise RuntimeError("a secret of somebody")

    monkeypatch.setattr(live.server.surveys, "list_surveys", broken)
    answer = live.client.get("/api/v1/surveys")
    assert (answer.status_code, problem(answer)) == (500, "internal")
    out, err = capfd.readouterr()
    assert "secret" not in answer.text + out + err
    assert "internal error RuntimeError at" in err


# ---------------------------------------------------------------- surveys by the interface


@pytest.mark.slow
def test_surveys_are_made_opened_and_deleted_with_everything(live: Live, opened: Database) -> None:
    collection = plan(oracle="de")
    body = {"document": collection.to_json(), "name": "second"}
    made = live.owned("POST", "", json=body)
    assert (made.status_code, made.json()["state"]) == (201, "draft")
    assert problem(live.owned("POST", "", json=body)) == "exists"
    sent, _ = report(collection)
    assert problem(live.post(sent, "second")) == "not-found"  # a draft is its collector's alone
    assert live.owned("POST", "/second/open").json()["state"] == "open"
    assert live.post(sent, "second").status_code == 201
    live.owned("POST", "/second/invitations", json={"count": 3})
    live.owned("POST", "/second/close")
    assert live.counted("second") == 1
    assert problem(live.owned("DELETE", "/second")) == "state"
    assert live.owned("DELETE", "/second", params={"confirm": "second"}).status_code == 204
    assert problem(live.post(sent, "second")) == "not-found"
    assert live.owned("GET", "/second/tally").status_code == 404
    path = Path(str(opened.url.database))
    with sqlite3.connect(path) as raw:
        for table in ("arrival", "report", "withdrawn", "invitation", "tally", "sheet", "refusal"):
            query = f"SELECT count(*) FROM {table} WHERE survey = 2"
            assert raw.execute(query).fetchone() == (0,)
    assert bytes.fromhex(sent.id) not in path.read_bytes(), "deleted is overwritten"
    for wrong in ("{", json.dumps({"format": "discreet/schema"})):
        assert problem(live.owned("POST", "", json={"document": wrong})) == "invalid"


@pytest.mark.slow
def test_statistics_model_and_predictions_are_those_of_the_program(live: Live) -> None:
    from discreet.collection.tally import Tally
    from discreet.estimation import estimate
    from discreet.local.inversion import estimate_statistics

    made = [report(live.collection)[0] for _ in range(40)]
    for one in made:
        live.post(one)
    assert problem(live.owned("GET", "/health/model")) == "no-reports"
    live.owned("POST", "/health/settle", params={"anyway": True})
    ours = estimate_statistics(Tally.from_reports(live.collection, made))
    assert live.owned("GET", "/health/statistics").text == ours.to_json()
    assert live.owned("GET", "/health/model").text == estimate(ours).to_json()
    rows = [{"smokes": "yes", "age": 30}, {"smokes": None, "age": 80}]
    found = live.owned("POST", "/health/predict", json={"rows": rows}).json()
    assert found["classes"] == ["no", "yes"]
    assert found["probabilities"] == estimate(ours).predict_proba(rows).tolist()
    outside = {"rows": [{"smokes": "maybe", "age": 30}]}
    assert problem(live.owned("POST", "/health/predict", json=outside)) == "invalid"


def test_settings_are_checked_and_every_problem_is_in_the_guide() -> None:
    for wrong in ({"base_url": "survey.example.org"}, {"base_url": "https://x/"}, {"rate": -1.0}):
        with pytest.raises(ValueError, match=r"https://|rate"):
            ServerSettings(**wrong)  # type: ignore[arg-type]
    guide = (ROOT / "docs" / "how-to" / "serve-a-survey.md").read_text("utf-8")
    listed = dict(re.findall(r"^\| `([a-z-]+)` \| (\d{3}) \|", guide, re.M))
    assert listed == {kind: str(status) for kind, (status, _) in PROBLEM_TYPES.items()}
