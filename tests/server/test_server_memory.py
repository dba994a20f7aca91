"""Nobody fills the memory: no route reads more than it has reason to."""

from __future__ import annotations

import asyncio
import re
import socket
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest
from server_processes import process
from servers import Live, added, client, plan, problem, serving

from discreet.hosting.body_limit import ANONYMOUS_BODY_BYTES, BodyLimit
from discreet.server.app import create_application
from discreet.server.database import Database
from discreet.server.desk import create_desk_router
from discreet.server.pages import create_public_router

PIECE = 1 << 16
IDENTITY = "0" * 32
ENDLESS = 64 * PIECE


def flooded(app: Any, method: str, path: str) -> tuple[int, int]:
    """Bytes that an application takes of an endless body without a token, and its status."""
    taken, status = 0, 0
    scope = {
        "type": "http",
        "method": method,
        "path": path,
        "raw_path": path.encode(),
        "query_string": b"",
        "headers": [
            (b"content-type", b"application/json"),
            (b"host", b"x"),
            (b"sec-fetch-site", b"same-origin"),
            (b"transfer-encoding", b"chunked"),
        ],
        "client": ("127.0.0.1", 1),
        "server": ("127.0.0.1", 2),
        "scheme": "http",
        "http_version": "1.1",
        "root_path": "",
        "asgi": {"version": "3.0"},
    }

    async def receive() -> dict[str, Any]:
        nonlocal taken
        taken += PIECE
        return {"type": "http.request", "body": b" " * PIECE, "more_body": taken < ENDLESS}

    async def send(message: Any) -> None:
        nonlocal status
        status = message.get("status", status)

    asyncio.run(app(scope, receive, send))
    return taken, status


@pytest.fixture
def live(tmp_path: Path) -> Iterator[Live]:
    with Database(f"sqlite:///{tmp_path}/collected.db") as database:
        database.migrate()
        added(database, plan())
        with serving(database) as running:
            yield running


def routes(live: Live) -> Iterator[tuple[str, str]]:
    """Every method of every path of a server."""
    app = create_application(live.server, [create_public_router(), create_desk_router()]).app
    for route in app.routes:
        pages = getattr(route, "original_router", None)
        for inner in pages.routes if pages is not None else [route]:
            path = inner.path.replace("{slug}", "health").replace("{id:identity}", IDENTITY)
            for name in ("{name:path}", "{name}"):
                path = path.replace(name, "close")
            assert "{" not in path
            for method in sorted(inner.methods - {"HEAD"}):
                yield method, path


@pytest.mark.slow
def test_no_route_takes_a_long_body_from_somebody_unknown(live: Live) -> None:
    app = create_application(live.server, [create_public_router(), create_desk_router()])
    tried = set(routes(live))
    assert ("POST", "/api/v1/surveys") in tried
    assert ("DELETE", f"/api/v1/surveys/health/reports/{IDENTITY}") in tried
    assert ("POST", "/desk/enter") in tried
    assert len(tried) > 30
    for method, path in sorted(tried):
        taken, status = flooded(app, method, path)
        assert taken <= ANONYMOUS_BODY_BYTES + PIECE, (method, path)
        if taken > ANONYMOUS_BODY_BYTES:
            assert status == 413, (method, path)


@pytest.mark.slow
def test_the_known_bad_twin_reads_everything(live: Live, monkeypatch: pytest.MonkeyPatch) -> None:
    """The framework alone: a body is read whole before anything else is looked at."""
    built = BodyLimit.__init__

    def boundless(self: BodyLimit, app: Any, make_refusal: Any) -> None:
        built(self, app, make_refusal, 1 << 60)

    monkeypatch.setattr(BodyLimit, "__init__", boundless)
    app = create_application(live.server, [create_public_router(), create_desk_router()])
    path = "/api/v1/surveys/health"
    for method, address in (
        ("POST", f"{path}/invitations/state"),
        ("DELETE", f"{path}/reports/{IDENTITY}"),
    ):
        assert flooded(app, method, address)[0] >= ENDLESS
    # those who show no token are not read at all, whatever the limit is
    for address in ("/api/v1/surveys", f"{path}/predict", f"{path}/reports/batch"):
        assert flooded(app, "POST", address) == (0, 401)


def test_the_collector_of_a_round_takes_no_long_body_from_somebody_unknown() -> None:
    """The other server of the package, where every request is signed."""
    from discreet.federated.refusals import ProtocolError
    from discreet.federated.service.server import create_application as collector

    running = Mock()
    running.authenticate_request.side_effect = ProtocolError("unknown-sender", "nobody signed this")
    app = collector(running)
    tried = [(m, route.path) for route in app.routes for m in sorted(route.methods - {"HEAD"})]  # type: ignore[attr-defined]
    assert ("POST", "/messages") in tried
    for method, path in tried:
        taken, status = flooded(app, method, re.sub(r"{\w+}", "a", path))
        assert taken <= ANONYMOUS_BODY_BYTES + PIECE, (method, path)
        assert status in (409, 413), (method, path)

    @app.post("/careless")
    async def careless(body: dict[str, str]) -> None:
        """A route that leaves its body to the framework."""

    assert flooded(app, "POST", "/careless") == (2 * PIECE, 413)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("size", "status"), [(ANONYMOUS_BODY_BYTES, 200), (ANONYMOUS_BODY_BYTES + 1, 413)]
)
def test_the_limit_is_exact_also_where_the_last_piece_is_too_much(
    size: int, status: int, live: Live
) -> None:
    content = b'{"code": "x"}'.ljust(size)
    pieces = iter([content[:60_000], content[60_000:]])  # in chunks: no length is announced
    answer = live.client.post(
        "/api/v1/surveys/health/invitations/state",
        content=pieces,
        headers={"Content-Type": "application/json"},
    )
    assert answer.status_code == status, answer.text


@pytest.mark.slow
def test_a_collector_may_send_more_and_hears_what_is_too_long(live: Live) -> None:
    rows = [{"smokes": "yes", "age": 40}] * 5000
    assert len(str(rows)) > 2 * ANONYMOUS_BODY_BYTES
    assert problem(live.owned("POST", "/health/predict", json={"rows": rows})) == "no-reports"
    headers = {"Content-Type": "application/json"}
    long = live.owned("POST", "/health/predict", content=b" " * (17 << 20), headers=headers)
    assert (long.status_code, problem(long)) == (413, "oversized")
    assert "16777216 bytes" in long.json()["detail"]
    assert long.headers["content-security-policy"]
    short = live.owned("POST", "/health/predict", content=b"{}", headers=headers)
    assert (problem(short), short.json()["detail"]) == ("invalid", "body.rows: Field required")
    other = live.owned("POST", "", content=b"{}", headers={"Content-Type": "text/plain"})
    assert problem(other) == "media-type"


@pytest.mark.slow
@pytest.mark.parametrize("path", ["invitations/state", f"reports/{IDENTITY}", "reports"])
def test_who_announces_too_much_is_refused_before_it_comes(path: str, live: Live) -> None:
    method = "DELETE" if path.endswith("0") else "POST"
    host, _, port = live.base.removeprefix("http://").partition(":")
    with socket.create_connection((host, int(port)), timeout=60) as line:
        line.sendall(
            f"{method} /api/v1/surveys/health/{path} HTTP/1.1\r\nHost: x\r\nExpect: 100-continue"
            "\r\nContent-Type: application/json\r\nContent-Length: 600000000\r\n\r\n".encode()
        )
        assert line.recv(1 << 16).startswith(b"HTTP/1.1 413 ")  # and not 100


# ---------------------------------------------------------------- a real process

FLOOD = 600_000_000
"""Bytes, in chunks."""


def high_water(pid: int) -> int:
    """Most bytes that a process has held in memory."""
    status = Path(f"/proc/{pid}/status").read_text()
    (line,) = (line for line in status.splitlines() if line.startswith("VmHWM"))
    return int(line.split()[1]) * 1024


def flood(base: str, method: str, path: str) -> bytes:
    """Send a body in chunks until the server closes or all is sent; what it answered."""
    host, _, port = base.removeprefix("http://").partition(":")
    chunk = b"100000\r\n" + b" " * (1 << 20) + b"\r\n"
    with socket.create_connection((host, int(port)), timeout=60) as line:
        head = "Host: x\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
        try:
            line.sendall(f"{method} {path} HTTP/1.1\r\n{head}".encode())
            for _ in range(FLOOD // (1 << 20)):
                line.sendall(chunk)
        except OSError:
            pass
        return line.recv(1 << 16)


AHEAD = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n" * 5000
"""Requests that are sent without waiting for answers."""


def send_ahead(base: str, times: int = 40) -> None:
    """Send requests on one connection and read nothing, until it is closed or nothing is taken."""
    host, _, port = base.removeprefix("http://").partition(":")
    with socket.create_connection((host, int(port)), timeout=5) as line, suppress(OSError):
        for _ in range(times):
            line.sendall(AHEAD)


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs /proc")
def test_requests_sent_ahead_leave_the_memory_of_a_server_as_it_is(tmp_path: Path) -> None:
    with process(tmp_path) as (base, running, _):
        with client(base) as asking:
            assert asking.get("/s/plan").status_code == 200
        before = high_water(running.pid)
        send_ahead(base)
        assert high_water(running.pid) - before < 32 << 20
        with client(base) as asking:
            assert asking.get("/s/plan").status_code == 200


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs /proc")
def test_600_megabytes_leave_the_memory_of_a_server_as_it_is(tmp_path: Path) -> None:
    with process(tmp_path) as (base, running, _):
        with client(base) as asking:
            assert asking.get("/s/plan").status_code == 200
        before = high_water(running.pid)
        path = "/api/v1/surveys/plan"
        for method, address, status in (
            ("POST", f"{path}/invitations/state", b"413"),
            ("DELETE", f"{path}/reports/{IDENTITY}", b"413"),
            ("POST", f"{path}/predict", b"401"),
            ("POST", "/api/v1/surveys", b"401"),
        ):
            assert flood(base, method, address).startswith(b"HTTP/1.1 " + status)
            assert high_water(running.pid) - before < 32 << 20, address
