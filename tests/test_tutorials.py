"""The tutorials on the command line, followed to the letter: every command, in its order.

The one in the browser is followed by tests/browser/test_tutorial.py.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType

import pandas as pd
import psycopg
import pytest
from click.testing import CliRunner

from discreet import Schema
from discreet.cli import main
from discreet.datasets import VISITS_SCHEMA

TUTORIALS = Path(__file__).resolve().parents[1] / "docs" / "tutorials"


def parts(page: str) -> list[tuple[str, str]]:
    """The blocks of a page: (language, content)."""
    text = (TUTORIALS / f"{page}.md").read_text("utf-8")
    return re.findall(r"^```(\w+)\n(.*?)^```$", text, re.M | re.S)


def follow(
    page: str,
    files: dict[str, str],
    programs: Mapping[str, Callable[[list[str]], str]] = MappingProxyType({}),
) -> dict[str, str]:
    """Do what a page says, where one stands; give what each command printed."""
    said: dict[str, str] = {}
    for language, content in parts(page):
        if language in files:
            Path(files[language]).write_text(content)
            continue
        assert language == "sh", language
        for line in content.splitlines():
            program, *words = shlex.split(line)
            if program in programs:
                said[line] = programs[program](words)
                continue
            result = CliRunner().invoke(main, words)
            assert result.exit_code == 0, (line, result.output, result.exception)
            if line in said:
                assert result.stdout == said[line], "the same command prints the same"
            said[line] = result.stdout
    return said


def load_visits(url: str) -> None:
    """What the page leaves to the reader: the other patients' visits as a table of a database."""
    with psycopg.connect(url, autocommit=True) as server:
        server.execute("DROP TABLE IF EXISTS visits")
        server.execute(
            "CREATE TABLE visits (visit_id integer, patient_id text, visited timestamp, "
            "age integer, sex text, insurance text, distance_km double precision, department text, "
            "waiting_days integer, reminded text, missed_before integer, missed text)"
        )
        with server.cursor().copy("COPY visits FROM STDIN WITH (FORMAT csv, HEADER)") as copy:
            copy.write(Path("others/visits.csv").read_text())


@pytest.mark.slow
def test_a_table_at_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, postgres: str) -> None:
    monkeypatch.chdir(tmp_path)
    queried: list[tuple[object, ...]] = []

    def psql(words: list[str]) -> str:
        assert words[0] == "-f"
        load_visits(postgres)
        with psycopg.connect(postgres) as server:
            queried.extend(server.execute(Path(words[1]).read_text()).fetchall())
        return ""

    said = follow("a-table-at-work", {}, {"psql": psql})
    assert len(said) <= 10, "commands"
    trained = next(text for line, text in said.items() if line.startswith("discreet train"))
    assert "changes the probability of any outcome by at most a factor of 3.33" in trained
    assert "all rows of one person" in trained
    assert re.search(r"^  0.2 +schema$", trained, re.M)
    schema = Schema.read("work/visits.yaml")
    assert set(schema.names) == set(VISITS_SCHEMA.names), "as somebody who knows the clinic would"
    again = shlex.split(next(line for line in said if line.startswith("discreet train")))[1:]
    kept = CliRunner().invoke(main, again)
    assert "exists already and cost privacy budget" in kept.stderr, (
        "nothing is lost, as the page says"
    )
    overdrawn = CliRunner().invoke(main, [*again, "--force"])
    assert overdrawn.exit_code == 2, "the ledger refuses it, as the page says"
    figures = next(text for line, text in said.items() if line.startswith("discreet evaluate"))
    auc = float(re.search(r"AUC +│ +([0-9.]+)", figures)[1])  # type: ignore[index]
    assert auc > 0.6
    predict = ["predict", "work/model.json", "others/visits.csv", "--keep", "visit_id", "--json"]
    body = json.loads(CliRunner().invoke(main, predict).stdout)
    visits = pd.read_csv("others/visits.csv").visit_id
    assert dict(zip(visits, body["predictions"], strict=True)) == {
        visit: prediction for visit, prediction, *_ in queried
    }
    assert not [path for path in Path().rglob("*") if holds_an_id(path)], "only the tables name ids"


def holds_an_id(path: Path) -> bool:
    is_table = path.suffix == ".csv"
    return (
        path.is_file()
        and not is_table
        and re.search(rb"\bP1[0-9]{5}\b", path.read_bytes()) is not None
    )


@pytest.mark.slow
def test_devices(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    said = follow("devices", {"json": "devices/me.json"})
    report = next(text for line, text in said.items() if line.startswith("discreet local report"))
    assert report.count("\n") == 1, "one line leaves the device"
    assert "44" not in re.sub(r"[0-9a-f]{32,}", "", report), "the record stays there"
    counted = next(text for line, text in said.items() if line.startswith("discreet local tally"))
    assert re.search(r"rejected +0\b", counted)
