"""What stands between an acknowledged report and its loss: the disk, other servers, bad days."""

from __future__ import annotations

import errno
import json
import os
import re
import resource
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import httpx
import pytest
import sqlalchemy as sql
from server_processes import Process
from servers import (
    Live,
    added,
    fresh_postgres,
    plan,
    problem,
    questionnaire,
    report,
    serving,
    stored_ids,
)
from sqlalchemy.exc import SQLAlchemyError

from discreet.collection.announcement import Announcement
from discreet.errors import DiscreetError, FormatError
from discreet.server import database as db
from discreet.server import keys as keys_module
from discreet.server import surveys
from discreet.server.arrivals import Arrival, store_arrivals, store_batch
from discreet.server.database import Database
from discreet.server.intake import (
    ReportRow,
    iter_matrices,
    pack_integers,
    pack_matrix,
    unpack_matrix,
)
from discreet.server.keys import KeyFolder, LostKeyError, format_key_name
from discreet.server.lost_keys import check_keys, give_up_lost
from discreet.server.settling import clear_orphaned_keys, settle_arrivals
from discreet.server.tallies import create_tally, has_same_counts, load_tally, recount_reports

# ---------------------------------------------------------------- the disk

TRACED = """
import sys
from discreet.server import database
database.SQLITE_SYNCHRONOUS = {level!r}
sys.argv = ["discreet", "serve", "plan.json", "--port", "0", "--json"]
from discreet.cli import main
main()
"""


def trace_calls(folder: Path, program: str, calls: str, *options: str, reports: int) -> list[str]:
    """System calls of a server, run as a program under strace, to which reports come in."""
    collection = plan()
    (folder / "plan.json").write_text(collection.to_json())
    log = folder / "calls"
    command = ["strace", "-f", *options, "-s", "64", "-e", f"trace={calls}", "-o", str(log)]
    process = subprocess.Popen(
        [*command, sys.executable, "-c", program], cwd=folder, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    text = ""
    while not text.endswith("}\n"):
        line = process.stdout.readline()
        assert line, "the server did not start"
        text += line
    base = json.loads(text)["collector"].partition("/desk")[0]
    try:
        for _ in range(reports):
            answer = httpx.post(
                f"{base}/api/v1/surveys/plan/reports",
                content=report(collection)[0].to_json(),
                headers={"Content-Type": "application/json"},
                timeout=60,
            )
            assert answer.status_code == 201, answer.text
    finally:
        traced_one = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text()
        os.kill(int(traced_one.split()[0]), signal.SIGTERM)
        process.communicate()
    return log.read_text().splitlines()


def calls_before_201(level: str, folder: Path) -> list[str]:
    """System calls of a server between a report that comes in and its 201."""
    calls = "read,recvfrom,recvmsg,write,sendto,sendmsg,writev,fsync,fdatasync"
    # of the second report, when nothing is new any more
    lines = trace_calls(folder, TRACED.format(level=level), calls, reports=2)
    came = [n for n, line in enumerate(lines) if '"POST /api/v1/surveys/plan/reports' in line]
    went = [n for n, line in enumerate(lines) if '"HTTP/1.1 201 Created' in line]
    assert len(came) == len(went) == 2
    between = lines[came[-1] : went[-1]]
    return re.findall(r"\b(fdatasync|fsync)\(", "\n".join(between))


@pytest.mark.slow
@pytest.mark.tools
def test_the_disk_is_synced_before_the_201(tmp_path: Path) -> None:
    assert "fdatasync" in calls_before_201("FULL", tmp_path)


@pytest.mark.slow
@pytest.mark.tools
def test_the_known_bad_twin_answers_without_a_sync(tmp_path: Path) -> None:
    """``synchronous=NORMAL``, which everybody copies: a power cut takes acknowledged reports."""
    assert calls_before_201("NORMAL", tmp_path) == []


# ---------------------------------------------------------------- keys of batches

KEYS_TRACED = """
import sys
{twin}
sys.argv = ["discreet", "serve", "plan.json", "--port", "0", "--json"]
from discreet.cli import main
main()
"""
TWIN = "import discreet.files.atomic_writing as d; d.sync_path = lambda *_: None"


def key_before_201(folder: Path, twin: str = "") -> str:
    """What happens to the first key of a batch before the report sealed under it is answered.

    Letters in order: k its file is written, s it is synced, f its folder is, g the one above and
    h the one in which all keys are; c the database is.
    """
    calls = "openat,fsync,fdatasync,link,linkat,sendto,sendmsg,write,writev"
    program = KEYS_TRACED.format(twin=twin)
    letters = ""
    for line in trace_calls(folder, program, calls, "-y", reports=1):
        if '"HTTP/1.1 201' in line:
            break
        if re.search(r"\blink(at)?\(.*/batches/", line):
            letters += "k"
        elif re.search(r"\bfsync\(\d+<[^>]*/batches/[^>]*\.part>", line):
            letters += "s"
        elif re.search(r"\bfsync\(\d+<[^>]*/batches>", line):
            letters += "f"
        elif re.search(r"\bfsync\(\d+<[^>]*/collected\.db\.keys>", line):
            letters += "g"
        elif re.search(rf"\bfsync\(\d+<{re.escape(str(folder.resolve()))}>", line):
            letters += "h"
        elif re.search(r"\bfdatasync\(\d+<[^>]*collected\.db-wal>", line):
            letters += "c"
    return letters


@pytest.mark.slow
@pytest.mark.tools
def test_a_key_is_on_the_disk_before_what_it_seals_is_acknowledged(tmp_path: Path) -> None:
    letters = key_before_201(tmp_path)
    assert re.search(r"skfgh.*c$", letters), letters


@pytest.mark.slow
@pytest.mark.tools
def test_the_known_bad_twin_does_not_sync_its_keys(tmp_path: Path) -> None:
    """A power cut would leave acknowledged reports that nobody can open."""
    letters = key_before_201(tmp_path, TWIN)
    assert "s" not in letters
    assert letters.endswith("c")


@pytest.mark.slow
def test_a_lost_key_is_refused_at_the_start_and_costs_what_was_not_settled(url: str) -> None:
    collection = plan()
    with Database(url) as database:
        database.migrate()
        number = added(database, collection, batch=5)
        sent = [report(collection)[0] for _ in range(8)]
        rows = [
            ReportRow(bytes.fromhex(one.id), one.question, pack_integers(one.value)) for one in sent
        ]
        for some in (rows[:5], rows[5:]):
            with database.write() as connection:
                store_arrivals(connection, number, False, [Arrival(row) for row in some])
            settle_arrivals(database, number, collection, 1 if some == rows[:5] else 5)
        check_keys(database)
        (key,) = database.keys.folder.rglob("*.key")
        kept = key.read_bytes()
        key.unlink()
    with Database(url) as database:
        with pytest.raises(LostKeyError, match="--give-up-lost"):
            check_keys(database)
        key.write_bytes(kept[:-9])
        with pytest.raises(LostKeyError, match="not a complete key file"):
            check_keys(database)
        key.write_bytes(kept)
        check_keys(database)
        assert give_up_lost(database) == {}, "nothing is lost"
    key.unlink()
    with Database(url) as database:
        with serving(database) as live:
            assert problem(live.post(sent[6])) == "unavailable", "it may be known already"
        assert give_up_lost(database) == {"health": 3}
        check_keys(database)
        with serving(database) as live:
            assert [live.post(one).status_code for one in sent] == [200] * 5 + [201] * 3
            live.owned("POST", "/health/close")
            assert live.counted() == 8


@pytest.mark.parametrize("begun", [False, True], ids=["no folder", "a folder"])
def test_a_moved_database_says_where_its_keys_are(begun: bool, tmp_path: Path) -> None:
    """The folder of the keys follows from the path of the file, which has changed."""
    before, after = (tmp_path / name / "c.db" for name in "ab")
    for path in (before, after):
        path.parent.mkdir()
    with Database(f"sqlite:///{before}", keys=tmp_path / "keys") as database:
        database.migrate()
        number, (made, _) = added(database, plan()), report(plan())
        with database.write() as connection:
            row = ReportRow(bytes.fromhex(made.id), made.question, pack_integers(made.value))
            store_arrivals(connection, number, False, [Arrival(row)])
        former = database.keys.folder
    before.rename(after)
    with Database(f"sqlite:///{after}", keys=tmp_path / "keys") as database:
        folder = database.keys.folder
        assert folder != former
        if begun:
            (folder / "batches").mkdir(parents=True)
        with pytest.raises(LostKeyError) as refused:
            check_keys(database)
        text = str(refused.value)
        if begun:
            assert f"Move what is in {former / 'batches'} to {folder / 'batches'};" in text
            (key,) = (former / "batches").iterdir()
            key.rename(folder / "batches" / key.name)
        else:
            assert f"Rename {former} to {folder};" in text
            former.rename(folder)
        check_keys(database)
        assert settle_arrivals(database, number, plan(), 1) == 1


def test_a_key_of_a_failed_transaction_is_taken_by_the_next_one(database: Database) -> None:
    number = added(database, plan())
    rows = [ReportRow(bytes([n]) * 16, 0, b"\0") for n in range(3)]

    def take_and_fail() -> None:
        with database.write() as connection:
            store_arrivals(connection, number, False, [Arrival(rows[0])])
            raise KeyError

    for _ in range(3):
        with pytest.raises(KeyError):
            take_and_fail()
    assert len(database.keys.list_batches()) == 1
    with database.write() as connection:
        assert store_arrivals(connection, number, False, [Arrival(rows[1])]) == ["counted"]
    assert len(database.keys.list_batches()) == 1
    assert stored_ids(database, number)[0] == [rows[1].id.hex()]
    other = KeyFolder(lambda: database.keys.folder)  # of a process that was killed
    orphan = format_key_name(number, 7)
    other.create_key(orphan, 7)
    clear_orphaned_keys(database)
    assert not other.has_key(orphan)
    assert stored_ids(database, number)[0] == [rows[1].id.hex()]


@pytest.mark.slow
def test_keys_that_fail_are_no_mistake_of_the_sender(database: Database, keys: Path) -> None:
    """A refusal would end it; and where the keys are is nobody's business."""
    added(database, plan(), batch=5)
    folder = database.keys.folder / "batches"
    with serving(database, settle_interval=0.05) as live:
        folder.parent.mkdir(parents=True, exist_ok=True)
        folder.write_text("in the way")
        one = report(live.collection)[0]
        answer = live.post(one)
        assert (problem(answer), answer.status_code) == ("unavailable", 503)
        assert folder.name not in answer.text
        assert live.client.get("/ready").status_code == 503
        folder.unlink()
        assert live.post(one).status_code == 201
        while live.client.get("/ready").status_code != 200:  # at the next look of its upkeep
            time.sleep(0.02)
        ((survey, number),) = [
            one for one in database.keys.list_batches() if one[0]
        ]  # none of a probe
        path = folder / f"{format_key_name(survey, number)}.key".rpartition("/")[2]
        database.keys.forget_batches(survey, [])
        path.write_text(f"{path.read_text().splitlines()[0]}\n{bytes(32).hex()}\n")
        answer = live.owned("POST", "/health/settle", params={"anyway": True})
        assert problem(answer) == "unavailable", "the key of another database"


@pytest.mark.slow
def test_a_server_that_has_no_room_for_a_key_is_not_ready(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its database may have room: a log that is used again, or another disk."""
    added(database, plan(), batch=5)
    with serving(database, settle_interval=0.02) as live:
        tried, write = [0], keys_module.write_atomic

        def full(*_: Any, **__: Any) -> bool:
            tried[0] += 1
            raise OSError(errno.ENOSPC, "No space left on device")

        def ready() -> bool:
            return live.client.get("/ready").status_code == 200

        monkeypatch.setattr(keys_module, "write_atomic", full)
        one = report(live.collection)[0]
        assert problem(live.post(one)) == "unavailable"
        for _ in range(1000):
            assert not ready()
            if tried[0] > 5:  # the report, and some looks
                break
            time.sleep(0.02)
        else:
            raise AssertionError("its looks do not try whether there is room")
        monkeypatch.setattr(keys_module, "write_atomic", write)
        for _ in range(1000):
            if ready():
                break
            time.sleep(0.02)
        else:
            raise AssertionError("it is not ready again")
        assert database.keys.list_batches() == [], "what was tried is gone"
        assert live.post(one).status_code == 201


def test_postgresql_confirms_what_is_on_the_disk_whatever_it_is_set_to(postgres: str) -> None:
    """A crash could bring a batch back unsettled when its key is destroyed already."""
    import psycopg

    url, settings = fresh_postgres(postgres), set()
    with psycopg.connect(url, autocommit=True) as connection:
        name = connection.info.dbname
        connection.execute(f"ALTER DATABASE {name} SET synchronous_commit = off")
    with psycopg.connect(url) as connection:
        assert connection.execute("SHOW synchronous_commit").fetchone() == ("off",)
    with Database(url) as database:
        database.migrate()
        for _ in range(2):  # the second one is given back and taken again
            with suppress(KeyError), database.write() as writing:
                settings.add(writing.exec_driver_sql("SHOW synchronous_commit").scalar())
                raise KeyError
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute(f"ALTER DATABASE {name} SET synchronous_commit = remote_apply")
        with Database(url, serving=False) as other, other.write() as writing:
            stronger = writing.exec_driver_sql("SHOW synchronous_commit").scalar()
    assert settings == {"on"}
    assert stronger == "remote_apply", "what promises more stays"


@pytest.mark.icu
def test_databases_of_two_clusters_do_not_share_keys(
    postgres: str, postgres_with_icu: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every new cluster gives its first database the same number; a start clears orphans away."""
    import psycopg

    urls, numbers = [], db.DATABASE_IDENTITY_QUERY.replace("SELECT oid", "SELECT 16384")
    monkeypatch.setattr(db, "DATABASE_IDENTITY_QUERY", numbers)
    for server in (postgres, postgres_with_icu):
        with psycopg.connect(server, autocommit=True) as connection:
            connection.execute("CREATE DATABASE surveys")
        head, _, query = server.partition("?")
        urls.append(f"{head.rpartition('/')[0]}/surveys?{query}".rstrip("?"))
    with Database(urls[0]) as first, Database(urls[1]) as second:
        first.migrate()
        second.migrate()
        number = added(first, plan())
        with first.write() as connection:
            assert store_arrivals(
                connection, number, False, [Arrival(ReportRow(bytes(16), 0, b"\0"))]
            )
        clear_orphaned_keys(second)
        assert len(first.keys.list_batches()) == 1, "the other server took it for its own orphan"
        assert second.keys.list_batches() == []


@pytest.mark.slow
def test_unsealed_arrivals_are_migrated(url: str) -> None:
    """As version 0002 stored them; their bytes of before are not in the file of SQLite any more."""
    collection = plan()
    sent = [report(collection)[0] for _ in range(12)]
    rows = sorted(
        ReportRow(bytes.fromhex(one.id), one.question, pack_integers(one.value)) for one in sent
    )
    with Database(url) as database:
        database.migrate("0002")
        mark = "?" if database.is_sqlite else "%s"
        with database.write() as connection:
            told = Announcement.make_default(collection, "health", entry="invited", batch=5)
            values = (collection.encode_canonical(), told.to_json())
            connection.exec_driver_sql(
                "INSERT INTO survey (slug, document, announcement, state) "
                f"VALUES ('health', {mark}, {mark}, 'open')",
                values,
            )
            create_tally(connection, 1, collection)
            for n, row in enumerate(rows):
                arrival = f"INSERT INTO arrival VALUES (1, {mark}, {mark}, {mark})"
                connection.exec_driver_sql(arrival, tuple(row))
                invitation = f"INSERT INTO invitation VALUES (1, {mark}, {mark})"
                connection.exec_driver_sql(invitation, (bytes([n]) * 32, n % 3))
        database.migrate()
        assert {bytes.fromhex(one) for one in stored_ids(database, 1)[0]} == {r.id for r in rows}
        with serving(database) as live:
            assert {live.post(one).status_code for one in sent} == {200}
            live.owned("POST", "/health/close")
            assert live.counted() == 12
        with database.read() as connection:
            spent = connection.execute(sql.select(db.invitation.c.spent)).scalars().all()
        assert sorted(spent) == [0] * 4 + [1] * 8


@pytest.mark.slow
def test_a_full_disk_is_a_problem_and_nothing_is_lost(tmp_path: Path) -> None:
    collection = plan()
    file, path = tmp_path / "plan.json", tmp_path / "collected.db"
    file.write_text(collection.to_json())

    def limit() -> None:  # no file may grow beyond this: the ids alone of all reports need more
        resource.setrlimit(resource.RLIMIT_FSIZE, (150_000, 150_000))

    process = Process(f"sqlite:///{path}", file, before=limit)
    url = f"http://127.0.0.1:{process.port}/api/v1/surveys/plan/reports"
    kind = {"Content-Type": "application/json"}
    acknowledged, refused = set(), []
    with httpx.Client(timeout=30) as client:
        for _ in range(10_000):  # the log may be emptied in between, the database only grows
            made = report(collection)[0]
            answer = client.post(url, content=made.to_json(), headers=kind)
            if answer.status_code == 201:
                acknowledged.add(made.id)
            else:
                refused.append(answer)
                ready = client.get(f"http://127.0.0.1:{process.port}/ready")
            if len(refused) > 3 and ready.status_code == 503:
                break  # where only the log was full, it was emptied meanwhile
    assert refused, "the disk was never full"
    assert {problem(one) for one in refused} == {"unavailable"}
    assert {one.status_code for one in refused} == {503}
    assert refused[0].headers["retry-after"] == "5"
    assert ready.status_code == 503
    process.running.terminate()
    _, said = process.running.communicate()
    assert "Traceback" not in said
    assert "the database failed" in said
    with Database(f"sqlite:///{path}") as opened:
        assert acknowledged <= set(stored_ids(opened, 1)[0])


# ---------------------------------------------------------------- other servers


def test_a_second_server_on_one_sqlite_file_is_refused(tmp_path: Path) -> None:
    with Database(str(tmp_path / "a.db")):
        with pytest.raises(FormatError, match="another discreet serve uses this database"):
            Database(str(tmp_path / "a.db"))
        Database(str(tmp_path / "a.db"), serving=False).close()  # --check and --token may
    Database(str(tmp_path / "a.db")).close()


@pytest.mark.slow
def test_two_servers_share_one_postgresql(postgres: str) -> None:
    """The same reports, sent to both at once: each is counted once, and a code is used once."""
    url = fresh_postgres(postgres)
    with Database(url) as one, Database(url) as two:
        one.migrate()
        collection = plan()
        added(one, collection, entry="invited", batch=10)
        with (
            serving(one, settle_interval=0.05) as first,
            serving(two, settle_interval=0.05) as second,
        ):
            codes = first.owned("POST", "/health/invitations", json={"count": 60}).json()["codes"]
            made = [report(collection)[0] for _ in codes]
            outcomes: list[list[int]] = [[], []]

            def send(live: Live, into: list[int], other: bool) -> None:
                for k, (text, code) in enumerate(zip(made, codes, strict=True)):
                    if other and k % 3 == 0:  # another report with the same code
                        text = report(collection)[0]
                    into.append(live.post(text, Invitation=code).status_code)

            threads = [
                threading.Thread(target=send, args=(first, outcomes[0], False)),
                threading.Thread(target=send, args=(second, outcomes[1], True)),
            ]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            for k, (a, b) in enumerate(zip(*outcomes, strict=True)):
                wanted = [201, 403] if k % 3 == 0 else [200, 201]
                assert sorted((a, b)) == wanted
            first.owned("POST", "/health/close")
            assert first.counted() == second.counted() == 60


def test_the_same_id_from_two_servers_in_one_moment(postgres: str) -> None:
    """Two transactions at once, neither of which sees the other: the key decides."""
    url = fresh_postgres(postgres)
    with Database(url) as one, Database(url) as two:
        one.migrate()
        collection = plan()
        number = added(one, collection)
        made = report(collection)[0]
        row = ReportRow(bytes.fromhex(made.id), made.question, pack_integers(made.value))
        met: list[str] = []

        def late() -> None:
            with two.write() as connection:
                met.extend(store_arrivals(connection, number, False, [Arrival(row)]))

        thread = threading.Thread(target=late)
        with one.write() as connection:
            assert store_arrivals(connection, number, False, [Arrival(row)]) == ["counted"]
            thread.start()
            time.sleep(0.2)  # it has looked, seen nothing, and waits for us at the key
        thread.join()
        assert met == ["repeated"]


# ---------------------------------------------------------------- a database that goes away


@pytest.mark.slow
def test_a_database_that_goes_away_and_comes_back(postgres: str) -> None:
    import psycopg

    url = fresh_postgres(postgres)
    name = url.partition("?")[0].rpartition("/")[2]
    collection = plan()
    with Database(url) as database, psycopg.connect(postgres, autocommit=True) as admin:
        database.migrate()
        added(database, collection, batch=1)
        with serving(database, settle_interval=0.1) as live:
            first, second = report(collection)[0], report(collection)[0]
            assert live.post(first).status_code == 201
            admin.execute(f"ALTER DATABASE {name} ALLOW_CONNECTIONS false")
            admin.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s", (name,)
            )
            gone = live.post(second)
            assert (gone.status_code, problem(gone)) == (503, "unavailable")
            assert live.client.get("/ready").status_code == 503
            assert live.client.get("/health").status_code == 200
            admin.execute(f"ALTER DATABASE {name} ALLOW_CONNECTIONS true")
            assert live.post(first).status_code == 200, "what was acknowledged is there"
            assert live.post(second).status_code == 201
            while live.client.get("/ready").status_code != 200:  # at the next look of its upkeep
                time.sleep(0.02)
            live.owned("POST", "/health/close")
            assert live.counted() == 2


# ---------------------------------------------------------------- migrations


@pytest.mark.slow
def test_any_number_of_rows_is_stored_at_once(database: Database) -> None:
    """SQLite refuses statements with more than 32,766 values, unless it is built otherwise."""
    collection, many = questionnaire(), 40_000
    number = added(database, collection)
    made = report(collection)[0]
    rows = [
        ReportRow(n.to_bytes(16, "big"), made.question, pack_integers(made.value))
        for n in range(many)
    ]
    with database.write() as connection:
        if connection.dialect.name == "sqlite":
            raw: Any = connection.connection.dbapi_connection
            raw.setlimit(sqlite3.SQLITE_LIMIT_VARIABLE_NUMBER, 32_766)
        assert store_batch(connection, number, rows) == {"counted": many}
        met = store_batch(connection, number, [*rows, ReportRow(bytes(15) + b"\1", 0, b"other")])
        assert +met == {"repeated": many, "id-reused": 1}


def test_migrations_go_up_and_down_and_keep_the_reports(url: str) -> None:
    from alembic.autogenerate import compare_metadata
    from alembic.runtime.migration import MigrationContext

    collection = questionnaire()
    with Database(url) as database:
        database.migrate()
        number = added(database, collection)
        with database.write() as connection:
            rows = []
            for _ in range(30):
                made = report(collection)[0]
                rows.append(
                    ReportRow(bytes.fromhex(made.id), made.question, pack_integers(made.value))
                )
            store_arrivals(connection, number, False, [Arrival(row) for row in rows])
        assert settle_arrivals(database, number, collection, 1) == 30
        for revision in ("0002", "0001", "head"):
            database.migrate(revision)
            with database.read() as connection:
                counted = load_tally(connection, number, collection)
                assert has_same_counts(counted, recount_reports(connection, number, collection))
                assert counted.reports == 30
        with database.read_engine.connect() as connection:
            context = MigrationContext.configure(connection)
            assert compare_metadata(context, db.metadata) == [], "tables as the program has them"
        database.migrate("base")
        with database.read_engine.connect() as connection:
            assert set(sql.inspect(connection).get_table_names()) <= {"alembic_version"}


def test_tables_of_a_newer_program_are_refused(url: str) -> None:
    with Database(url) as database:
        database.migrate()
        with database.write() as connection:
            connection.exec_driver_sql("UPDATE alembic_version SET version_num = '9999'")
        with pytest.raises(FormatError, match="a newer discreet made them"):
            database.migrate()
        with database.write() as connection:
            connection.exec_driver_sql("UPDATE alembic_version SET version_num = '0001'")
        with pytest.raises(FormatError, match="there is no version 'x'"):
            database.migrate("x")


@pytest.mark.parametrize("wrong", ["mysql://host/name", "sqlite://", "nothing://", "://"])
def test_an_address_that_is_not_a_database(wrong: str) -> None:
    with pytest.raises(FormatError, match=r"database|give a file"):
        Database(wrong)


def test_a_database_that_cannot_be_reached_is_one_sentence(tmp_path: Path) -> None:
    with (
        Database("postgresql://nobody:secret@127.0.0.1:1/none") as database,
        pytest.raises(DiscreetError, match="the database does not work") as told,
    ):
        database.migrate()
    assert "secret" not in str(told.value)
    with pytest.raises(FormatError, match="does not exist"):
        Database(str(tmp_path / "no" / "a.db"))


# ---------------------------------------------------------------- values


def test_values_are_packed_in_one_way_and_come_back() -> None:
    import numpy as np

    edges = [0, 1, -1, 127, 128, -128, -129, 32767, 32768, -32769, 2**31, -(2**31) - 1, 2**62]
    matrix = np.array([[a, b] for a in edges for b in edges], np.int64)
    values = pack_matrix(matrix)
    assert values == [pack_integers(row) for row in matrix.tolist()]
    assert {len(one) for one in values} == {2, 4, 8, 16}
    assert (unpack_matrix(values, 2) == matrix).all()
    with pytest.raises(FormatError, match="width"):
        unpack_matrix([b"abc"], 2)
    rows: Any = [(b"", 0, values[0])]
    assert [q for q, _, _ in iter_matrices(_Wide(), rows)] == [0]


class _Wide:
    class _Channel:
        width = 2

    questions = (_Channel(),)


def test_a_survey_that_was_tampered_with_is_not_served(database: Database) -> None:
    added(database, plan())
    with database.write() as connection:
        text = sql.select(db.survey.c.document)
        document = bytes(connection.execute(text).scalar_one())
        changed = document.replace(b'"epsilon":1.0', b'"epsilon":9.0')
        assert changed != document
        connection.execute(sql.update(db.survey).values(document=changed))
    with pytest.raises((DiscreetError, SQLAlchemyError)):
        surveys.SurveyStore(database).find_survey("health")
