"""Claim: memory and every engine use the same rows of each person."""

from __future__ import annotations

import random
import sqlite3
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from comparisons import assert_same_statistics
from database.test_engines import BINS, ROWS, SCHEMA, into_postgres
from discreet.statistics.statistics import Statistics
from discreet.tables import CountRequest, count
from discreet.tables.contributions import ContributionBound, select_person_rows
from discreet.tables.engines import open_table
from discreet.tables.person_queries import limit_person_rows
from discreet.tables.source import TableSource

pytestmark = pytest.mark.slow

NAMES = [*SCHEMA.names, SCHEMA.target]
BOUND = ContributionBound("person", 2, "own")
REQUEST = CountRequest(bins=BINS, moments="grid", order=True)


def draw_ids(kind: pa.DataType, size: int = ROWS.num_rows) -> pa.Array:
    """Few persons with many rows, many with few, and some rows of nobody."""
    chance = random.Random(5)
    numbers = [chance.choice([1, chance.randrange(20), chance.randrange(600)]) for _ in range(size)]
    ids: list[Any] = [None if chance.random() < 0.05 else number for number in numbers]
    if pa.types.is_string(kind):
        ids = [None if number is None else f"{number:03d} é|" for number in ids]
    return pa.array(ids, type=kind)


def make_rows(kind: pa.DataType) -> pa.Table:
    return ROWS.select(NAMES).append_column("person", draw_ids(kind))


def count_in_memory(rows: pa.Table, bound: ContributionBound = BOUND) -> Statistics:
    columns = {name: rows.column(name) for name in SCHEMA.names}
    used_rows, _ = select_person_rows(
        rows.column(bound.person), columns, rows.column(SCHEMA.target), SCHEMA, bound
    )
    return count(rows.take(used_rows), SCHEMA, REQUEST)


def count_in_engine(source: Any, bound: ContributionBound = BOUND) -> Statistics:
    rows = limit_person_rows(open_table(source), bound, NAMES, SCHEMA)
    return count(rows, SCHEMA, REQUEST)


@pytest.mark.parametrize("kind", [pa.string(), pa.int64(), pa.float64()], ids=str)
@pytest.mark.parametrize("engine", ["duckdb", "parquet", "postgres", "sqlite", "polars"])
def test_an_engine_uses_the_rows_that_memory_uses(
    engine: str, kind: pa.DataType, postgres: str, tmp_path: Path
) -> None:
    rows = make_rows(kind)
    source: Any = rows
    if engine == "parquet":
        source = tmp_path / "rows.parquet"
        pq.write_table(rows, source)
    elif engine == "postgres":
        source = into_postgres(postgres, "person_rows", rows)
    elif engine == "sqlite":
        source = write_sqlite(tmp_path / "rows.sqlite", rows)
    elif engine == "polars":
        source = __import__("polars").from_arrow(rows)
    assert_same_statistics(count_in_memory(rows), count_in_engine(source))


@pytest.mark.spark
def test_spark_uses_the_rows_that_memory_uses(spark: Any, tmp_path: Path) -> None:
    rows = make_rows(pa.string())
    pq.write_table(rows, tmp_path / "rows.parquet")
    frame = spark.read.parquet(str(tmp_path / "rows.parquet"))
    assert_same_statistics(count_in_memory(rows), count_in_engine(frame))


def write_sqlite(path: Path, rows: pa.Table) -> str:
    types = {"string": "text", "double": "real", "bool": "boolean"}
    columns = ", ".join(
        f'"{field.name}" {types.get(str(field.type), "integer")}' for field in rows.schema
    )
    with sqlite3.connect(path) as connection:
        connection.execute(f"CREATE TABLE t ({columns})")
        marks = ", ".join("?" * rows.num_columns)
        connection.executemany(
            f"INSERT INTO t VALUES ({marks})", [tuple(row.values()) for row in rows.to_pylist()]
        )
    return f"sqlite://{path}#t"


def test_a_source_counts_those_rows(tmp_path: Path) -> None:
    rows = make_rows(pa.int64())
    expected = count_in_memory(rows)
    for bound_source in (rows, rows.to_pandas()):
        source = TableSource(bound_source, SCHEMA, bound=BOUND)
        assert "person" not in source.rows.columns
        assert_same_statistics(expected, source_statistics(source))


def source_statistics(source: TableSource) -> Statistics:
    return count(source.rows, SCHEMA, REQUEST)
