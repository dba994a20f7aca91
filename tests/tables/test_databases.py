"""Claim: files of databases are only read, and what cannot be read is refused before it is paid."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from pathlib import Path

import duckdb
import pytest

from discreet import Categorical, CentralNB, FormatError, Numeric, Schema, SchemaError
from discreet.privacy.ledger import Ledger
from discreet.tables import CountRequest, count

SCHEMA = Schema([Numeric("size", 0, 10), Categorical("word", ["a", "b"])], "y", ["no", "yes"])
ROWS = [("1.5", "a", "no"), (" 7 ", "b", "yes"), ("1e-400", "a", "yes")]


def in_duckdb(path: Path) -> str:
    with duckdb.connect(path) as connection:
        connection.execute("CREATE TABLE people (size VARCHAR, word VARCHAR, y VARCHAR)")
        connection.executemany("INSERT INTO people VALUES (?, ?, ?)", ROWS)
    return f"duckdb://{path}#people"


def in_sqlite(path: Path, rows: list[tuple[str, str, str]] = ROWS) -> str:
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE people (size TEXT, word TEXT, y TEXT)")
    connection.executemany("INSERT INTO people VALUES (?, ?, ?)", rows)
    connection.commit()
    connection.close()
    return f"sqlite://{path}#people"


@pytest.mark.parametrize("kind", ["duckdb", "sqlite"])
def test_an_address_with_a_mistake_creates_no_database(tmp_path: Path, kind: str) -> None:
    with pytest.raises(FormatError, match=f"{kind}: there is no file .*people.db"):
        count(f"{kind}://{tmp_path}/people.db#people", SCHEMA)
    with pytest.raises(FormatError, match=f"{kind}: there is no file"):
        count(f"{kind}://#people", SCHEMA)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
@pytest.mark.parametrize("write", [in_duckdb, in_sqlite])
def test_a_file_is_counted_while_another_process_reads_it(tmp_path: Path, write: object) -> None:
    assert callable(write)
    url = write(tmp_path / "people.db")
    opens = {
        in_duckdb: "import duckdb; c = duckdb.connect(sys.argv[1], read_only=True)",
        in_sqlite: "import sqlite3; c = sqlite3.connect(sys.argv[1]); c.execute('BEGIN')",
    }[write]
    reads = "c.execute('SELECT * FROM people').fetchall(); print('open', flush=True); input()"
    reader = subprocess.Popen(
        [sys.executable, "-c", f"import sys; {opens}; {reads}", str(tmp_path / "people.db")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert reader.stdout is not None
        assert reader.stdout.readline() == "open\n"
        before = (tmp_path / "people.db").read_bytes()
        assert count(url, SCHEMA).totals.tolist() == [1, 2]
        assert (tmp_path / "people.db").read_bytes() == before
    finally:
        reader.communicate("\n")


def test_a_file_is_opened_for_reading_only(tmp_path: Path) -> None:
    from discreet.tables import open_table

    for write in (in_duckdb, in_sqlite):
        path = tmp_path / f"{write.__name__}.db"
        engine = open_table(write(path) if write is in_sqlite else f"{write(path)}").get_backend()
        with pytest.raises((duckdb.Error, sqlite3.Error), match=r"read-?only"):
            engine.con.execute("CREATE TABLE more (x INTEGER)")


def test_numbers_in_text_of_sqlite_are_those_of_duckdb(tmp_path: Path) -> None:
    wanted = CountRequest(bins=4, moments="grid", order=True)
    here = count(in_sqlite(tmp_path / "people.sqlite"), SCHEMA, wanted)
    there = count(in_duckdb(tmp_path / "people.duckdb"), SCHEMA, wanted)
    assert here.tables["size"].counts.tolist() == there.tables["size"].counts.tolist()
    assert here.moments["size"].totals.tolist() == there.moments["size"].totals.tolist()
    assert (
        here.order_statistics["size"].grid_indices.tolist()
        == there.order_statistics["size"].grid_indices.tolist()
    )
    rows = [*ROWS, ("1_000", "a", "no")]
    with pytest.raises(SchemaError, match="size: '1_000' is not a number"):
        count(in_sqlite(tmp_path / "bad.sqlite", rows), SCHEMA)


@pytest.mark.parametrize("size", ["1_000", "three", "0x10"])
def test_a_number_that_is_none_costs_nothing(tmp_path: Path, size: str) -> None:
    """It passed the count of DuckDB, was paid for, and was then refused."""
    lines = ["size,word,y", *(f"{5},a,no" for _ in range(50)), f"{size},b,yes"]
    (tmp_path / "people.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    ledger = Ledger.create(tmp_path / "budget.json", 5.0)
    nb = CentralNB(1.0, schema=SCHEMA, budget=tmp_path / "budget.json")
    with pytest.raises(SchemaError, match=f"size: '{size}' is not a number"):
        nb.fit_source(str(tmp_path / "people.csv"))
    assert ledger.read().spent == (0.0, 0.0)
