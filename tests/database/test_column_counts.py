"""Claim: columns are counted by cells of a public grid and by values with the same integers."""

from __future__ import annotations

import math
import sqlite3
from pathlib import Path
from typing import Any

import numpy as np
import psycopg
import pyarrow as pa
import pytest

from discreet import Schema
from discreet.central.private_bounds import LOG_GRID_EDGES, make_equal_edges
from discreet.central.private_inference import infer_private_schema
from discreet.errors import SchemaError
from discreet.tables.column_counts import ColumnCounter

pytestmark = pytest.mark.slow

NUMBERS = [0.0, -0.0, 1.0, 2.0, 4.0, math.nextafter(4, 0), -4.0, 1e300, -1e300, 5e-324, 3.5, None]
NUMBERS += [math.ldexp(1, k) for k in (-192, -32, -1, 10, 64, 191, 192)] * 3
TEXTS = ["17", " 4 ", "1e3", "?", "", "n/a", None, "Name", "name", "nan", "0x10", "-2", "17"]
ROWS = [
    {
        "x": NUMBERS[row % len(NUMBERS)],
        "t": TEXTS[row % len(TEXTS)],
        "whole": row % 7,
        "y": ("no", "yes")[row % 2],
        "who": row // 2,
    }
    for row in range(200)
]
EDGES = [LOG_GRID_EDGES, make_equal_edges(0.0, 64.0), make_equal_edges(-4.0, 4.0)]


def into_sqlite(folder: Path) -> str:
    with sqlite3.connect(folder / "rows.sqlite") as connection:
        connection.execute("CREATE TABLE rows (x REAL, t TEXT, whole INTEGER, y TEXT, who INTEGER)")
        values = [tuple(row.values()) for row in ROWS]
        connection.executemany("INSERT INTO rows VALUES (?, ?, ?, ?, ?)", values)
    return f"sqlite://{folder}/rows.sqlite#rows"


def into_postgres(url: str) -> str:
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("DROP TABLE IF EXISTS counted")
        connection.execute(
            "CREATE TABLE counted (x double precision, t text, whole integer, y text, who integer)"
        )
        for row in ROWS:
            statement = "INSERT INTO counted VALUES (%s, %s, %s, %s, %s)"
            connection.execute(statement, tuple(row.values()))
    return f"{url}#counted"


def list_counts(source: Any) -> list[Any]:
    counter = ColumnCounter.open(source, "y")
    counter = ColumnCounter(counter.rows, counter.draft, counter.source, ("?", "n/a"))
    found: list[Any] = []
    for name in ("x", "t", "whole"):
        for edges in EDGES:
            counts, texts = counter.count_cells(name, edges, is_declared=True)
            found.append((counts.tolist(), texts))
        values = {}
        for batch_values, counts in counter.iter_values(name, is_declared=True):
            for value, count in zip(batch_values, counts.tolist(), strict=True):
                key = str(value)
                values[key] = values.get(key, 0) + count
        found.append(values)
    return found


def list_expected() -> list[Any]:
    numbers = np.array([row["x"] for row in ROWS if row["x"] is not None])
    cells = np.searchsorted(LOG_GRID_EDGES, numbers, side="right")
    return np.bincount(cells, minlength=len(LOG_GRID_EDGES) + 1).tolist()


def test_sqlite_and_duckdb_count_as_numpy_does(tmp_path):
    expected = list_counts(pa.Table.from_pylist(ROWS))
    assert expected[0] == (list_expected(), 0)
    assert expected[4][1] == sum(row["t"] in ("Name", "name", "0x10") for row in ROWS)
    assert expected[7]["17"] == sum(row["t"] == "17" for row in ROWS)
    assert list_counts(into_sqlite(tmp_path)) == expected


def test_postgres_counts_as_duckdb_does(postgres):
    assert list_counts(into_postgres(postgres)) == list_counts(pa.Table.from_pylist(ROWS))


def test_a_schema_is_inferred_for_a_price_in_a_database(tmp_path, postgres):
    options = {"classes": ["no", "yes"], "columns": {"t": ["Name"], "x": "0..9 real"}}
    for url in (into_sqlite(tmp_path), into_postgres(postgres)):
        schema = infer_private_schema(url, "y", epsilon=50.0, person="who", **options).schema
        assert schema.names == ["x", "t", "whole"]
        assert (schema["whole"].lower, schema["whole"].integer) == (0, True)
        assert 5 <= schema["whole"].upper <= 8
        with pytest.raises(SchemaError, match="no feature could be inferred"):
            Schema.infer(url, "y", epsilon=1e-3, delta=1e-9, classes=["no", "yes"])
