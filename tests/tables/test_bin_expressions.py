"""Every engine puts a number into the bin that a search among the edges gives."""

from __future__ import annotations

import sqlite3

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from discreet import Numeric, Schema
from discreet.schema.cells import Cells
from discreet.tables import CountRequest, count
from discreet.tables.bin_expressions import EqualWidths

FEATURES = {
    "wide": (Numeric("wide", -8, 8), 1024),
    "third": (Numeric("third", 0.1, 0.9), 7),
    "whole": (Numeric("whole", -5, 1000, integer=True), 13),
    "each": (Numeric("each", 0, 99, integer=True), 100),
    "time": (Numeric("time", 1.7e9, 1.7e9 + 60), 1000),
    "large": (Numeric("large", 0, 1e6), 16),
    "cut": (Numeric("cut", 0, 4096), [1.0, 4.0, 16.0, 1024.0, 2048.0]),
    "coarse": (Numeric("coarse", 1e16, 1e16 + 64), 8),
    "tiny": (Numeric("tiny", 0, 1e-300), 4),
    "huge": (Numeric("huge", -1e306, 1e306), 50),
    "one": (Numeric("one", 0, 1), 1),
}
BINS = {name: bins for name, (_, bins) in FEATURES.items()}
SCHEMA = Schema([feature for feature, _ in FEATURES.values()], "y", [0, 1], outliers="clip")
SAFE = {"wide", "third", "whole", "each", "time", "large"}
"""What is guessed; of the others each edge is compared."""


def numbers_around(name):
    """All edges, the floats next to them, some numbers between, beyond them, and missing ones."""
    feature, _ = FEATURES[name]
    edges = np.array(Cells.from_schema(SCHEMA, name, BINS).edges)
    rng = np.random.default_rng(0)
    between = (
        feature.lower / 2
        + feature.upper / 2
        + (feature.upper / 2 - feature.lower / 2) * (rng.uniform(-1, 1, 300))
    )
    beyond = [-np.inf, np.inf, np.nan, -1e308, 1e308, 5e-324, -5e-324, 0.0, -0.0]
    if feature.integer:
        numbers = [edges, edges - 1, edges + 1, np.floor(between), [np.nan, -9, 1e6, -1e300]]
    else:
        numbers = [
            edges,
            np.nextafter(edges, -np.inf),
            np.nextafter(edges, np.inf),
            between,
            beyond,
        ]
    return np.concatenate(numbers)


def make_rows():
    columns = {name: numbers_around(name) for name in FEATURES}
    size = max(map(len, columns.values()))
    rows = {name: np.resize(numbers, size) for name, numbers in columns.items()}
    return rows | {"y": np.arange(size) % 2}


ROWS = make_rows()


def search(name):
    """Class-by-cell counts by a search among the edges."""
    cells, feature = Cells.from_schema(SCHEMA, name, BINS), FEATURES[name][0]
    found = np.searchsorted(
        cells.edges[1:-1], ROWS[name].clip(feature.lower, feature.upper), "right"
    )
    found[np.isnan(ROWS[name])] = cells.missing_index
    counts = np.zeros((2, cells.size), dtype=int)
    np.add.at(counts, (ROWS["y"], found), 1)
    return counts


def count_as_searched(source):
    tables = count(source, SCHEMA, CountRequest(bins=BINS, moments=None)).tables
    return [name for name in FEATURES if not np.array_equal(tables[name].counts, search(name))]


def make_table():
    return pa.table({name: pa.array(own, from_pandas=True) for name, own in ROWS.items()})


def test_which_bins_are_guessed():
    cells = {name: Cells.from_schema(SCHEMA, name, BINS) for name in FEATURES}
    assert {name for name, own in cells.items() if EqualWidths.from_cells(own)} == SAFE


@pytest.mark.slow
def test_duckdb_finds_the_bins_of_a_search(tmp_path):
    pq.write_table(make_table(), tmp_path / "rows.parquet")
    assert count_as_searched(tmp_path / "rows.parquet") == []


@pytest.mark.slow
def test_text_has_the_same_bins(tmp_path):
    texts = {
        name: pa.array(["" if x != x else repr(float(x)) for x in ROWS[name]]) for name in FEATURES
    }
    pq.write_table(pa.table(texts | {"y": ROWS["y"]}), tmp_path / "rows.parquet")
    assert count_as_searched(tmp_path / "rows.parquet") == []


@pytest.mark.slow
def test_sqlite_finds_the_bins_of_a_search(tmp_path):
    make_table().to_pandas().to_sql("t", sqlite3.connect(tmp_path / "rows.db"), index=False)
    assert count_as_searched(f"sqlite://{tmp_path}/rows.db#t") == []


def test_postgres_finds_the_bins_of_a_search(postgres):
    import psycopg

    with psycopg.connect(postgres, autocommit=True) as connection:
        kinds = ", ".join(f'"{name}" double precision' for name in FEATURES)
        connection.execute('DROP TABLE IF EXISTS "bins"')
        connection.execute(f'CREATE TABLE "bins" ({kinds}, y integer)')
        with connection.cursor().copy('COPY "bins" FROM STDIN') as copy:
            for row in make_table().to_pylist():
                copy.write_row(list(row.values()))
    assert count_as_searched(f"{postgres}#bins") == []


@pytest.mark.spark
@pytest.mark.slow
def test_spark_finds_the_bins_of_a_search(spark, tmp_path):
    pq.write_table(make_table(), tmp_path / "rows.parquet")
    assert count_as_searched(spark.read.parquet(str(tmp_path / "rows.parquet"))) == []


@pytest.mark.slow
def test_twin_a_guess_that_is_not_compared(monkeypatch, tmp_path):
    """Known bad: next to an edge the rounded guess is one off."""
    monkeypatch.setattr(EqualWidths, "correct_guess", lambda self, number, bin: bin.cast("int32"))
    pq.write_table(make_table(), tmp_path / "rows.parquet")
    assert "third" in count_as_searched(tmp_path / "rows.parquet")
