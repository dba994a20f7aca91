"""Commands read dates of files and databases alike."""

from __future__ import annotations

import csv
import datetime as dt
import json
import random
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd
import psycopg
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import Result

from comparisons import assert_same_statistics
from discreet import Categorical, CentralNB, Date, DatePart, Schema, SchemaError
from discreet.schema.cells import encode_classes
from discreet.statistics.statistics import Statistics
from discreet.tables import CountRequest, count
from discreet.tables.in_memory import count_arrays

pytestmark = pytest.mark.slow

Run = Callable[..., Result]
Refused = Callable[..., str]

SCHEMA = Schema(
    [
        Date("joined", "1600-01-01", "2026-12-31", by="month"),
        DatePart("visited", by="weekday"),
        DatePart("called", by="hour"),
        Date("paid", "2015-01-01", "2026-12-31", by="year"),
        DatePart("left", by="month of year"),
        Categorical("plan", ["free", "gold"]),
    ],
    "bought",
    ["no", "yes"],
    outliers="clip",
    missing_tokens=["?"],
)
SQL_TYPES = {
    "id": "integer",
    "patient": "integer",
    "joined": "date",
    "visited": "timestamp",
    "called": "timestamp with time zone",
}
REQUEST = CountRequest(bins={"joined": 4, "paid": 5})


def make_rows(size: int = 400) -> list[dict[str, Any]]:
    """Rows with dates of every type, of which some are missing, odd or far away."""
    chance = random.Random(4)
    rows = []
    for number in range(size):
        bought = chance.random() < 0.4
        day = dt.datetime(2019, 1, 1 + 5 * bought) + dt.timedelta(days=7 * chance.randrange(200))
        moment = day + dt.timedelta(minutes=chance.randrange(600 if bought else 1440))
        far_day = dt.datetime(1600, 2, 29, 23, 59, 59)
        text = moment.isoformat(chance.choice(" T")) + chance.choice(["", "Z", "+05:45", "-0330"])
        rows.append(
            {
                "id": number,
                "patient": number // 3,
                "joined": chance.choice([moment, moment, far_day]).date(),
                "visited": chance.choice([moment, moment, moment, None, far_day]),
                "called": chance.choice([moment.replace(tzinfo=dt.UTC), None]),
                "paid": chance.choice([text, str(moment.date()), "?"]),
                "left": chance.choice([f" {text}\n", None]),
                "plan": chance.choice(["free", "gold"]),
                "bought": "yes" if bought else "no",
            }
        )
    return rows


def write_sources(
    rows: list[dict[str, Any]], url: str, types: dict[str, str] = SQL_TYPES
) -> dict[str, str]:
    """The same rows in files and databases, by address."""
    for path in ("rows.db", "rows.duckdb"):
        Path(path).unlink(missing_ok=True)
    names, marks = [*rows[0]], ", ".join("?" * len(rows[0]))
    texts = [
        ["" if cell is None else str(cell) for cell in row.values()] for row in rows
    ]  # fmt: skip
    with Path("rows.csv").open("w", newline="") as file:
        csv.writer(file).writerows([names, *texts])
    pq.write_table(pa.Table.from_pylist(rows), "rows.parquet")
    columns = ", ".join(f'"{name}" {types.get(name, "text")}' for name in names)
    shuffled = random.Random(1).sample([[*row.values()] for row in rows], len(rows))
    with sqlite3.connect("rows.db") as connection:
        connection.execute(f"CREATE TABLE visits ({columns.replace(' with time zone', '')})")
        connection.executemany(
            f"INSERT INTO visits VALUES ({marks})",
            [
                [str(cell) if isinstance(cell, dt.date) else cell for cell in row]
                for row in shuffled
            ],
        )
    with duckdb.connect("rows.duckdb") as database:
        database.execute(f"CREATE TABLE visits ({columns})")
        database.executemany(f"INSERT INTO visits VALUES ({marks})", shuffled)
    with psycopg.connect(url, autocommit=True) as server:
        server.execute("DROP TABLE IF EXISTS visits")
        server.execute(f"CREATE TABLE visits ({columns})")
        with server.cursor().copy("COPY visits FROM STDIN") as copy:
            for row in shuffled:
                copy.write_row(row)
    return {
        "csv": "rows.csv",
        "parquet": "rows.parquet",
        "sqlite": "sqlite://rows.db#visits",
        "duckdb": "duckdb://rows.duckdb#visits",
        "postgres": f"{url}#visits",
    }


@pytest.fixture
def sources(run: Run, postgres: str) -> dict[str, str]:
    """Where the rows are, and a model of them."""
    addresses = write_sources(make_rows(), postgres)
    Path("dates.yaml").write_text(SCHEMA.to_yaml())
    words = ("train", "rows.csv", "--schema", "dates.yaml", "--no-selection")
    assert run(*words, "--epsilon", "5", "-o", "dates.json").exit_code == 0
    return addresses


def test_files_and_databases_with_dates_give_the_same_predictions(
    run: Run, sources: dict[str, str]
) -> None:
    asked = ("--key", "id", "--proba")
    expected = run("predict", "dates.json", "rows.csv", *asked)
    assert expected.exit_code == 0
    expected_scores = json.loads(run("evaluate", "dates.json", "rows.csv", "--json").stdout)
    assert expected_scores["accuracy"] > 0.7
    for address in sources.values():
        assert run("predict", "dates.json", address, *asked).stdout == expected.stdout
        scores = json.loads(run("evaluate", "dates.json", address, "--json").stdout)
        assert scores["confusion"] == expected_scores["confusion"]


def test_a_date_in_sqlite_is_the_text_that_it_stores(
    run: Run, refused: Refused, sources: dict[str, str]
) -> None:
    """Its columns have no type: a column of points in time holds any text, zones included."""
    expected = run("predict", "dates.json", "rows.csv", "--key", "id").stdout
    with sqlite3.connect("rows.db") as connection:
        connection.execute(
            "UPDATE visits SET visited = replace(visited, ' ', 'T') || '.123456789+00:00'"
        )
    asked = ("predict", "dates.json", sources["sqlite"], "--key", "id")
    assert run(*asked).stdout == expected
    persons = ("--epsilon", "1", "--person", "patient", "--rows-per-person", "2")
    assert run("evaluate", *asked[1:3], *persons).exit_code == 0
    with sqlite3.connect("rows.db") as connection:
        connection.execute("UPDATE visits SET visited = 'soon' WHERE id = 5")
    assert "visited: 'soon' is not a date" in refused(*asked)


def test_what_reads_dates_and_rows_of_persons_reads_them_everywhere(
    run: Run, sources: dict[str, str]
) -> None:
    persons = ("--person", "patient", "--rows-per-person", "2")
    for address in sources.values():
        assert "fits, 400 rows" in run("schema", "check", "dates.yaml", address).stdout
        scored = run("evaluate", "dates.json", address, "--epsilon", "9", *persons, "--json")
        scores = json.loads(scored.stdout)
        assert abs(scores["rows"] - 267) < 40  # 2 of each 3; the noise is a tenth of that
        nb = CentralNB(3.0, schema=SCHEMA, person="patient", rows_per_person=2).fit_source(address)
        assert "at most 2" in nb.guarantee_.unit
        assert nb.statistics_ is not None


def test_synthetic_dates_are_read_back_by_their_schema(
    run: Run, sources: dict[str, str], postgres: str
) -> None:
    """A sample of a part of dates is its name, which every engine reads as a date."""
    assert sources
    assert run("sample", "dates.json", "-n", "300", "-o", "sample.csv").exit_code == 0
    rows = [*csv.DictReader(Path("sample.csv").read_text().splitlines())]
    assert {row["visited"] for row in rows} & {"Tuesday", "Sunday"}
    in_memory = count_rows(pa.Table.from_pylist(rows).to_pandas())
    for address in (*write_sources(rows, postgres, types={}).values(), "sample.csv"):
        assert_same_statistics(count(address, SCHEMA, REQUEST), in_memory)
    assert "'Tuesdays' is not a date" in str(refuse_name("Tuesdays"))


def count_rows(frame: pd.DataFrame) -> Statistics:
    """The same in memory."""
    codes = encode_classes(SCHEMA, frame["bought"])
    return count_arrays(SCHEMA, {name: frame[name] for name in SCHEMA.names}, codes, REQUEST)


def refuse_name(name: str) -> SchemaError:
    """The error about a name that is no cell's."""
    schema = Schema([DatePart("visited", by="weekday")], "bought", ["no", "yes"])
    with pytest.raises(SchemaError) as raised:
        count(pd.DataFrame({"visited": [name], "bought": ["no"]}), schema)
    return raised.value


def test_evidence_of_dates_is_written_as_dates(run: Run, sources: dict[str, str]) -> None:
    assert sources
    explained = run("predict", "dates.json", "rows.csv", "--explain", 3).stdout
    assert "visited = Tuesday" in explained
    assert "left = May" in explained
    assert "joined = 1" in explained or "joined = 2" in explained
    shown = run("show", "dates.json").stdout
    assert "Sunday" in shown
    assert " 0 to " not in explained + shown
    grouped = run("evaluate", "dates.json", "rows.csv", "--by", "joined").stdout
    assert "1600-01 to 1706-" in grouped
