"""A full disk: settling goes on when there is space again, `/ready` tells, the end is orderly.

The disk is full by a real limit of the operating system on the size of files, set from outside on
the running server and lifted again.
"""

from __future__ import annotations

import resource
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import httpx
import pytest
from server_processes import Process
from servers import client, plan, report

from discreet.collection.parquet_reports import ReportFile
from discreet.server.access import Access
from discreet.server.database import Database
from discreet.server.problems import Notices

PATIENCE = 120
"""Seconds until an event that must come, on a machine however busy."""

MANY = 8_000
"""Reports that are there before; their database has some hundred pages."""

DYING = """
import os, sys
from pathlib import Path
from sqlalchemy.exc import SQLAlchemyError
from discreet.server import running
async def attempt(work, failures):
    try:
        return await work
    except SQLAlchemyError as error:
        Path(sys.argv[sys.argv.index("--database") + 1][10:]).with_name("ended").touch()
        raise error.orig
running._try_work = attempt
"""
"""Upkeep as it was: what SQLite says by itself ends it."""
TELLING = """
import sys
from contextlib import asynccontextmanager
from discreet.server.running import Server
whole = Server.run_lifespan
@asynccontextmanager
async def told(self):
    async with whole(self):
        yield
    print("all parts have ended", file=sys.stderr)
Server.run_lifespan = told
"""
"""A server that says that its parts have ended without an error."""
PROGRAM = """
import sys
from discreet.cli import main
sys.argv[0] = "discreet"
main()
"""


def eventually(event: Callable[[], Any], what: str) -> Any:
    """Wait until an event has come."""
    until = time.monotonic() + PATIENCE
    while time.monotonic() < until:
        if found := event():
            return found
        time.sleep(0.02)
    raise AssertionError(f"{what}: it never came")


class Disk:
    """A server on a disk of its own, which can be full, and its owner's client."""

    def __init__(self, folder: Path, *more: str, before: str = "") -> None:
        self.collection, self.path = plan(), folder / "collected.db"
        (folder / "plan.json").write_text(self.collection.to_json())
        url = f"sqlite:///{self.path}"
        self.process = Process(url, folder / "plan.json", *more, program=before + PROGRAM)
        with Database(url, serving=False) as database:
            self.token = Access(database).create_token("owner", "test")
        self.client = client(f"http://127.0.0.1:{self.process.port}")
        self.sent: list[Any] = []
        self.acknowledged = 0

    def filled(self, many: int, folder: Path) -> None:
        """Send many reports as a batch, until all of them are settled and the log is empty."""
        made = [report(self.collection)[0] for _ in range(many)]
        with ReportFile(folder / "batch.parquet", self.collection) as file:
            file.add_reports(made)
        content = (folder / "batch.parquet").read_bytes()
        kind = {"Content-Type": "application/vnd.apache.parquet"}
        answer = self.owned("POST", "/reports/batch", content=content, headers=kind)
        assert answer.json()["counted"] == many
        self.sent += [one.to_json() for one in made]
        self.acknowledged += many
        assert self.owned("POST", "/settle", params={"anyway": True}).status_code == 200
        log = self.path.with_name(f"{self.path.name}-wal")
        eventually(lambda: self.settled() == many and log.stat().st_size == 0, "settling")

    def full(self) -> None:
        """No file is written beyond a fifth of the size of the database: its log has some room.

        Settled reports are beyond that; what their arrivals left free may not be.
        """
        limit = (self.path.stat().st_size // 5, resource.RLIM_INFINITY)
        resource.prlimit(self.process.running.pid, resource.RLIMIT_FSIZE, limit)

    def space(self) -> None:
        """Files may grow again."""
        unlimited = (resource.RLIM_INFINITY, resource.RLIM_INFINITY)
        resource.prlimit(self.process.running.pid, resource.RLIMIT_FSIZE, unlimited)

    def ready(self) -> int:
        return self.client.get("/ready").status_code

    def post(self, text: str) -> int:
        kind = {"Content-Type": "application/json"}
        return self.client.post(
            "/api/v1/surveys/plan/reports", content=text, headers=kind
        ).status_code

    def send(self) -> None:
        """Send a report; on a full disk it may be refused."""
        self.sent.append(report(self.collection)[0].to_json())
        answer = self.post(self.sent[-1])
        assert answer in (201, 503)
        self.acknowledged += answer == 201

    def settled(self) -> int:
        lines = self.client.get("/metrics").text.splitlines()
        (count,) = (one.split()[-1] for one in lines if one.startswith("discreet_settled_total{"))
        return int(count)

    def owned(self, method: str, path: str, **options: Any) -> httpx.Response:
        headers = {"Authorization": f"Bearer {self.token}", **options.pop("headers", {})}
        return self.client.request(
            method, f"/api/v1/surveys/plan{path}", headers=headers, **options
        )

    def stop(self) -> str:
        """End the server as its service manager does; what it wrote for the operator."""
        self.process.running.send_signal(signal.SIGTERM)
        _, log = self.process.running.communicate()
        return log


@contextmanager
def disk(folder: Path, *more: str, before: str = "") -> Iterator[Disk]:
    made = Disk(folder, *more, before=before)
    try:
        yield made
    finally:
        made.client.close()
        made.process.running.kill()
        made.process.running.communicate()


def full_while_reports_come(server: Disk) -> None:
    """The disk is full, reports come, and settling has failed."""
    server.full()
    before = server.acknowledged
    for _ in range(40):
        server.send()
    assert server.acknowledged > before, "reports were acknowledged on the full disk"


@pytest.mark.slow
def test_settling_survives_a_full_disk_and_ready_tells(tmp_path: Path) -> None:
    with disk(tmp_path) as server:
        server.filled(MANY, tmp_path)
        assert server.ready() == 200
        full_while_reports_come(server)
        eventually(lambda: server.ready() == 503, "a server that is not ready")
        server.space()
        eventually(lambda: server.ready() == 200, "a server that is ready again")
        for text in server.sent[MANY:]:  # whoever was refused tries again
            assert server.post(text) in (200, 201)
        for _ in range(100):
            server.send()
        # 10 to 19 of them are kept back, until it is closed
        eventually(lambda: server.settled() >= len(server.sent) - 19, "settling")
        assert server.owned("POST", "/close").status_code == 200
        assert server.settled() == len(server.sent)
        log = server.stop()
    assert server.process.running.returncode == -signal.SIGTERM
    assert "Traceback" not in log
    lines = [line for line in log.splitlines() if "cannot settle" in line]
    assert lines
    assert len(lines) == len(set(lines)), "a line a day for each reason"
    assert "settling works again" in log


@pytest.mark.slow
def test_a_server_on_a_full_disk_ends_orderly_and_counts_everything_later(tmp_path: Path) -> None:
    with disk(tmp_path, before=TELLING) as server:
        server.filled(MANY, tmp_path)
        full_while_reports_come(server)
        eventually(lambda: server.ready() == 503, "a server that is not ready")
        log = server.stop()
    assert server.process.running.returncode == -signal.SIGTERM
    assert "Traceback" not in log
    assert "all parts have ended" in log
    with disk(tmp_path) as again:
        for text in server.sent[MANY:]:
            assert again.post(text) in (200, 201)
        assert again.owned("POST", "/close").status_code == 200
        assert again.settled() == len(server.sent)


@pytest.mark.slow
def test_twin_an_upkeep_that_ends_settles_nothing_more(tmp_path: Path) -> None:
    """What the tests above refuse: nobody is told, and nothing more is counted."""
    with disk(tmp_path, before=TELLING + DYING) as server:
        server.filled(MANY, tmp_path)
        full_while_reports_come(server)
        eventually(lambda: upkeep_ended(server), "the end of the upkeep")
        server.space()
        before = server.settled()
        for _ in range(100):
            server.send()
        assert server.ready() == 200
        assert server.settled() == before
        log = server.stop()
    assert "all parts have ended" in log  # whatever became of its upkeep


def upkeep_ended(server: Disk) -> bool:
    return (server.path.parent / "ended").exists()


def test_a_line_for_the_operator_that_cannot_be_written_is_no_error(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    notices = Notices()
    with open("/dev/full", "w", buffering=1) as full:
        monkeypatch.setattr(sys, "stderr", full)
        notices.print_once("the disk is full")
        with pytest.raises(OSError, match="No space left"):
            print("as anybody else finds", file=full, flush=True)
        monkeypatch.undo()
        with suppress(OSError):
            full.close()
    for _ in range(2):  # now it can be written, and is: once
        notices.print_once("the disk is full")
    assert capsys.readouterr().err == "discreet: the disk is full\n"
