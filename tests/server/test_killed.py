"""Servers killed at random points under load: nothing acknowledged is lost, nothing counted twice.

Each round starts ``discreet serve`` as a process, sends reports over several connections (some of
them twice, some withdrawn), kills the server with SIGKILL at a random moment, and checks after the
next start: every acknowledged report is there exactly once, none was invented, and every tally is
what its reports add up to. 10 rounds run by default, half of them on each database; ``make soak``
runs hundreds (DISCREET_ROUNDS).
"""

from __future__ import annotations

import http.client
import json
import os
import random
import threading
import time
from pathlib import Path
from typing import Any

import httpx
import pytest
from server_processes import Process, process
from servers import added, client, files_in, fresh_postgres, plan, report, stored_ids

from discreet.server.access import Access
from discreet.server.arrivals import Arrival, store_arrivals
from discreet.server.database import Database
from discreet.server.intake import ReportRow, pack_integers
from discreet.server.settling import settle_arrivals
from discreet.server.surveys import SurveyStore
from discreet.server.tallies import has_same_counts, load_tally, recount_reports

ROUNDS = int(os.environ.get("DISCREET_ROUNDS", "10"))
SENDERS = 4


def sent(
    port: int, texts: list[tuple[str, str, str]], acknowledged: set[str], gone: set[str]
) -> None:
    """Send reports one after the other until the server is gone; remember what it confirmed."""
    draw = random.Random()
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
    path, kind = "/api/v1/surveys/plan/reports", {"Content-Type": "application/json"}
    try:
        for id_, text, key in texts:
            for _ in range(1 + (draw.random() < 0.2)):
                connection.request("POST", path, text, kind)
                answer = connection.getresponse()
                answer.read()
                assert answer.status in (200, 201), answer.status
                acknowledged.add(id_)
            if draw.random() < 0.1:
                gone.add(id_)  # whether or not the answer comes, it may be gone from now on
                connection.request("DELETE", f"{path}/{id_}", json.dumps({"key": key}), kind)
                answer = connection.getresponse()
                answer.read()
                assert answer.status == 204
                gone.add("!" + id_)
    except (OSError, http.client.HTTPException):
        return
    finally:
        connection.close()


EXPORTING = """
import os, signal, tempfile
from discreet.server import api
write_export = api.write_export
def write_and_die(*arguments):
    write_export(*arguments)
    arguments[-1].flush()
    os.kill(os.getpid(), signal.SIGKILL)
api.write_export = write_and_die
"""
NAMED = """
tempfile.TemporaryFile = lambda: tempfile.NamedTemporaryFile(delete=False)
"""
"""The obvious way: a file that is deleted when it has been sent."""


def files_of_an_export(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, patch: str = ""
) -> list[Path]:
    """Parquet files that are left of a server which was killed before it sent one."""
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setenv("TMPDIR", str(temporary))
    made = [report(plan())[0] for _ in range(50)]
    rows = [
        ReportRow(bytes.fromhex(one.id), one.question, pack_integers(one.value)) for one in made
    ]
    with Database(f"sqlite:///{tmp_path}/collected.db") as database:
        database.migrate()
        number = added(database, plan(), "plan")
        with database.write() as connection:
            store_arrivals(connection, number, False, [Arrival(row) for row in rows])
        assert settle_arrivals(database, number, plan(), 1) == len(rows)
        token = Access(database).create_token("viewer", "test")
    with process(tmp_path, EXPORTING + patch) as (base, running, _), client(base) as asking:
        with pytest.raises(httpx.TransportError):
            asking.get(
                "/api/v1/surveys/plan/reports.parquet", headers={"Authorization": f"Bearer {token}"}
            )
        running.wait(60)
    return [path for path, content in files_in(tmp_path).items() if content[:4] == b"PAR1"]


@pytest.mark.slow
def test_a_server_that_is_killed_during_an_export_leaves_no_file_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert files_of_an_export(tmp_path, monkeypatch) == []


@pytest.mark.slow
def test_twin_a_file_with_a_name_is_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert len(files_of_an_export(tmp_path, monkeypatch, NAMED)) == 1


def check(url: str, known: set[str], acknowledged: set[str], gone: set[str]) -> None:
    with Database(url, serving=False) as database:
        ((survey, _),) = SurveyStore(database).list_surveys()
        with database.read() as connection:
            stored = load_tally(connection, survey.number, survey.collection)
            assert has_same_counts(
                stored, recount_reports(connection, survey.number, survey.collection)
            )
        here, withdrawn = stored_ids(database, survey.number)
    assert len(here) == len(set(here)), "a report is stored twice"
    assert set(here) <= known, "a report was invented"
    confirmed = {id_[1:] for id_ in gone if id_.startswith("!")}
    assert confirmed <= withdrawn
    assert withdrawn <= gone
    assert not withdrawn & set(here)
    assert acknowledged - gone <= set(here), "an acknowledged report is lost"


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
def test_killed_at_random_points_nothing_is_lost_and_nothing_doubled(
    kind: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    url = f"sqlite:///{tmp_path}/collected.db"
    if kind == "postgresql":
        url = fresh_postgres(request.getfixturevalue("postgres"))
    collection: Any = plan()
    file = tmp_path / "plan.json"
    file.write_text(collection.to_json())
    known: set[str] = set()
    acknowledged: set[str] = set()
    gone: set[str] = set()
    for _ in range(max(1, ROUNDS // 2)):
        made = [report(collection) for _ in range(300)]
        texts = [(one.id, one.to_json(), key.hex()) for one, key in made]
        known |= {id_ for id_, _, _ in texts}
        process = Process(url, file)
        threads = [
            threading.Thread(
                target=sent, args=(process.port, texts[k::SENDERS], acknowledged, gone)
            )
            for k in range(SENDERS)
        ]
        for thread in threads:
            thread.start()
        enough, begun = len(acknowledged) + random.randint(1, 80), time.monotonic()
        while len(acknowledged) < enough and time.monotonic() < begun + 60:
            time.sleep(0.002)
        assert len(acknowledged) >= enough, "the load was too small to say anything"
        time.sleep(random.uniform(0, 0.02))
        process.kill()
        for thread in threads:
            thread.join()
        check(url, known, acknowledged, gone)
