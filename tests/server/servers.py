"""Surveys in a database, reports to them, and servers that answer over loopback."""

from __future__ import annotations

import contextlib
import itertools
import json
import secrets
import socket
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from discreet import Categorical, Numeric, Schema
from discreet.collection.announcement import Announcement
from discreet.collection.report import Report, derive_report_id
from discreet.hosting.serving import RequestLimits, make_web_server
from discreet.local import PlanOptions, make_plan
from discreet.randomness import CryptoRandom
from discreet.server import database as db
from discreet.server import surveys
from discreet.server.app import create_application
from discreet.server.database import Database
from discreet.server.running import Server, ServerSettings
from discreet.server.sealed_arrivals import WaitingArrival, load_live_keys, open_arrivals
from discreet.server.tallies import has_same_counts, load_tally, recount_reports
from discreet.survey import Group, Questionnaire

NUMBERS = itertools.count()
WAITING = {"timeout_graceful_shutdown": 5, "timeout_keep_alive": 120}
"""A busy machine may pause between two requests of one connection."""


def schema() -> Schema:
    features = [Categorical("smokes", ["no", "yes"]), Numeric("age", 0, 100, integer=True)]
    return Schema(features, "sick", ["no", "yes"])


def plan(**options: Any) -> Any:
    return make_plan(schema(), epsilon=1.0, options=PlanOptions(**options))


def questionnaire() -> Questionnaire:
    asked = Schema([Categorical("smokes", ["no", "yes"], optional=False)], "sick", ["no", "yes"])
    return Questionnaire(asked, [Group(("smokes", "sick"), theta=0.5)], title="Health")


RECORD = {"smokes": "yes", "age": 40, "sick": "no"}


def report(collection: Any, key: bytes | None = None) -> tuple[Report, bytes]:
    """One report as a device makes it, and its key."""
    random = CryptoRandom()
    question = int(collection.draw_questions(1, random)[0])
    value = collection.randomize_records(
        question, collection.encode_record(RECORD_OF[collection.kind]), random
    )
    key = key or secrets.token_bytes(16)
    made = Report(collection.digest, derive_report_id(key), question, tuple(map(int, value[0])))
    return made, key


RECORD_OF = {"plan": RECORD, "questionnaire": {"smokes": "yes", "sick": "no"}}


def waiting_in(database: Database, number: int) -> list[WaitingArrival]:
    """What waits to be settled, opened with the keys of its batches."""
    with database.read() as connection:
        keys = load_live_keys(connection, number)
        rows = connection.execute(db.arrival.select().where(db.arrival.c.survey == number)).all()
        return open_arrivals(rows, keys)


def stored_ids(database: Database, number: int) -> tuple[list[str], set[str]]:
    """Ids of all reports to a survey, settled or not; and of those that were withdrawn."""
    waiting = waiting_in(database, number)
    here = [w.arrival.row.id.hex() for w in waiting if w.live]
    gone = {w.arrival.row.id.hex() for w in waiting if not w.live}
    with database.read() as connection:
        here += [bytes(row.id).hex() for row in connection.execute(db.report.select())]
        gone |= {bytes(row.id).hex() for row in connection.execute(db.withdrawn.select())}
    return here, gone


def files_in(folder: Path) -> dict[Path, bytes]:
    """Every file below a folder with its bytes, also while others remove some of them."""
    found = {}
    for path in sorted(folder.rglob("*")):
        with contextlib.suppress(FileNotFoundError, IsADirectoryError, OSError):
            found[path] = path.read_bytes()
    return found


def fresh_postgres(server: str) -> str:
    import psycopg

    name = f"collected_{next(NUMBERS)}_{secrets.token_hex(3)}"
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}")
    head, _, query = server.partition("?")
    return f"{head.rpartition('/')[0]}/{name}?{query}".rstrip("?")


def added(database: Database, collection: Any, name: str = "health", **settings: Any) -> int:
    """A survey, stored and open; its number."""
    announcement = Announcement.make_default(collection, name, **settings)
    with database.write() as connection:
        number = surveys.create_survey(connection, collection, announcement)
        surveys.set_state(connection, number, "open")
    return number


CERTIFICATES = httpx.create_ssl_context()
"""Read once: they are a file of 200 kB, and every client would read it."""


def client(base: str = "", timeout: float = 60) -> httpx.Client:
    """A client of a server on this machine."""
    return httpx.Client(base_url=base, timeout=timeout, verify=CERTIFICATES)


@dataclass
class Live:
    """A server that answers over loopback, with a client for its owner."""

    server: Server
    base: str
    token: str

    def __post_init__(self) -> None:
        self.client = client(self.base, 30)

    def post(self, report: Report | bytes, slug: str = "health", **headers: str) -> httpx.Response:
        content = report.to_json() if isinstance(report, Report) else report
        return self.client.post(
            f"/api/v1/surveys/{slug}/reports",
            content=content,
            headers={"Content-Type": "application/json", **headers},
        )

    def owned(
        self, method: str, path: str, token: str | None = None, **options: Any
    ) -> httpx.Response:
        headers = {"Authorization": f"Bearer {token or self.token}", **options.pop("headers", {})}
        return self.client.request(method, f"/api/v1/surveys{path}", headers=headers, **options)

    def taken_back(self, id_: str, key: bytes, slug: str = "health") -> httpx.Response:
        path = f"/api/v1/surveys/{slug}/reports/{id_}"
        return self.client.request("DELETE", path, json={"key": key.hex()})

    def counted(self, slug: str = "health") -> int:
        """How many reports the tally has, after a recount that must agree with it."""
        survey = self.server.surveys.find_survey(slug)
        assert survey is not None
        with self.server.database.read() as connection:
            stored = load_tally(connection, survey.number, survey.collection)
            assert has_same_counts(
                stored, recount_reports(connection, survey.number, survey.collection)
            )
        return stored.reports

    @property
    def collection(self) -> Any:
        survey = self.server.surveys.find_survey("health")
        assert survey is not None
        return survey.collection


@contextlib.contextmanager
def serving(database: Database, pages: Sequence[Any] = (), **settings: Any) -> Iterator[Live]:
    """Run a server in a thread, on a port of its own, with routers of pages."""
    options = {"rate": 0.0, "settle_interval": 3600.0, **settings}
    listening = socket.socket()
    listening.bind(("127.0.0.1", 0))
    base = f"http://127.0.0.1:{listening.getsockname()[1]}"
    server = Server(database, ServerSettings(base, **options))
    runner = make_web_server(
        create_application(server, pages), RequestLimits(base_seconds=20.0), **WAITING
    )
    thread = threading.Thread(target=runner.run, args=([listening],))
    thread.start()
    try:
        while not runner.started:
            assert thread.is_alive()
            time.sleep(0.01)
        live = Live(server, base, server.access.create_token("owner", "test"))
        with live.client:
            yield live
    finally:
        runner.should_exit = True
        thread.join()


def problem(answer: httpx.Response) -> str:
    """The type of a problem, after checking that it is one."""
    assert answer.headers["content-type"] == "application/problem+json", answer.text
    body = json.loads(answer.content)
    assert body["status"] == answer.status_code
    return body["type"].removeprefix("urn:discreet:problem:")


def bytes_of(database: Database) -> dict[Path, bytes]:
    """Every byte that the database has on the disk."""
    if database.is_sqlite:
        path = Path(str(database.url.database))
        return {file: content for file, content in files_in(path.parent).items()
                if file.name.startswith(path.name) and file.parent == path.parent}  # fmt: skip
    with database.read_engine.connect() as connection:
        folder = Path(connection.exec_driver_sql("SHOW data_directory").scalar_one())
        query = "SELECT oid FROM pg_database WHERE datname = current_database()"
        own = connection.exec_driver_sql(query).scalar_one()
        places = (folder / "base" / str(own), folder / "pg_wal")
        before = [files_in(place) for place in places]
        connection.exec_driver_sql("CHECKPOINT")  # pages are written, and old logs given up
    found = {Path("before") / path.name: content for one in before for path, content in one.items()}
    return found | files_in(places[0]) | files_in(places[1])
