"""Claim: memory and every engine use the same rows of each person."""

from __future__ import annotations

import datetime as dt
import math
import random
import sqlite3
from pathlib import Path
from typing import Any

import polars
import psycopg
import pyarrow as pa
import pyarrow.compute
import pyarrow.parquet as pq
import pytest

from comparisons import assert_same_statistics
from discreet.errors import SchemaError
from discreet.schema.cells import encode_classes
from discreet.schema.dates import Date, DatePart
from discreet.schema.schema import Categorical, Numeric, Schema
from discreet.statistics.statistics import Statistics
from discreet.tables import CountRequest, count
from discreet.tables.contributions import ContributionBound, find_unused_name, select_person_rows
from discreet.tables.engines import open_table
from discreet.tables.person_queries import limit_person_rows
from discreet.tables.source import InMemorySource, TableSource

pytestmark = pytest.mark.slow

SCHEMA = Schema(
    [
        Categorical("zip", ["05", "5", "it's", "back\\slash", "ü %", "a|b"]),
        Categorical("level", [1, 2, 3]),
        Categorical("flag", [True, False]),
        Categorical("share", [0.1, 0.5, 2]),
        Numeric("age", 18, 99, integer=True),
        Numeric("income", -1.3, 1000.7),
        Numeric("written", 0.1, 0.9),
    ],
    "class",
    ["no", "y\\e's"],
    outliers="clip",
    unseen="other",
    missing_tokens=["?"],
)
DATE_SCHEMA = Schema(
    [
        Date("born", "1950-01-01", "2000-12-31"),
        Date("joined", "2019-01-01", "2020-12-31", by="month"),
        DatePart("visited", by="weekday"),
        DatePart("paid", by="month of year"),
        DatePart("called", by="hour"),
    ],
    "class",
    ["no", "y\\e's"],
    outliers="clip",
    missing_tokens=["?"],
)
NAMES = [*SCHEMA.names, SCHEMA.target]
TYPES = {
    "zip": pa.string(),
    "level": pa.int32(),
    "flag": pa.bool_(),
    "share": pa.float64(),
    "age": pa.int64(),
    "income": pa.float64(),
    "written": pa.string(),
    "born": pa.date32(),
    "joined": pa.string(),
    "visited": pa.timestamp("us"),
    "paid": pa.string(),
    "called": pa.timestamp("us", "UTC"),
    "class": pa.string(),
}
SQL_TYPES = {
    "string": "text",
    "double": "double precision",
    "bool": "boolean",
    "int32": "integer",
    "date32[day]": "date",
    "timestamp[us]": "timestamp",
    "timestamp[us, tz=UTC]": "timestamp with time zone",
}
REQUEST = CountRequest(bins={"age": 5, "income": [0.3, 700.1]}, moments="grid", order=True)
DATE_REQUEST = CountRequest(bins={"born": 4, "joined": ["2019-06-01", "2020-02-01"]})
BOUND = ContributionBound("person", 2, "own")
KINDS = [pa.string(), pa.int64(), pa.float64()]


def make_rows(kind: pa.DataType, size: int = 600, schema: Schema = SCHEMA) -> pa.Table:
    """Difficult values; few persons with many rows, many with few, and some rows of nobody."""
    chance = random.Random(11)
    texts = ["?", "", None, " 0.25 ", "1e-1", ".5", "nan", "+0.75", "-3", "0.30000000000000004"]
    moments = [dt.datetime(2018, 11, 1) + dt.timedelta(hours=321 * step) for step in range(60)]
    zones = ["", "Z", "+05:45", "-03"]
    draws: dict[str, Any] = {
        "zip": lambda: chance.choice([*SCHEMA["zip"].values, "?", "", None, "x"]),
        "level": lambda: chance.choice([1, 2, 3, None, 77]),
        "flag": lambda: chance.choice([True, False, None]),
        "share": lambda: chance.choice([0.1, 0.5, 2.0, None, math.nan, 0.2]),
        "age": lambda: chance.choice([None, *range(10, 110)]),
        "income": lambda: chance.choice([None, math.nan, math.inf, 0.3, chance.uniform(-1, 999)]),
        "written": lambda: chance.choice([*texts, repr(chance.random())]),
        "born": lambda: chance.choice([None, dt.date(1940 + chance.randrange(70), 2, 28)]),
        "joined": lambda: chance.choice(["?", "", None, f" {chance.choice(moments).date()}"]),
        "visited": lambda: chance.choice([None, *moments]),
        "paid": lambda: chance.choice(["?", f"{chance.choice(moments)}{chance.choice(zones)}"]),
        "called": lambda: chance.choice([None, *moments]),
        "class": lambda: chance.choice(["no", "y\\e's"]),
    }
    columns = {
        name: pa.array([draw() for _ in range(size)], type=TYPES[name])
        for name, draw in draws.items()
        if name in (*schema.names, schema.target)
    }
    numbers = [chance.choice([1, chance.randrange(20), chance.randrange(600)]) for _ in range(size)]
    ids: list[Any] = [None if chance.random() < 0.05 else number for number in numbers]
    if pa.types.is_string(kind):
        ids = [None if number is None else f"{number:03d} é|" for number in ids]
    return pa.table({**columns, "person": pa.array(ids, type=kind)})


def write_table(engine: str, rows: pa.Table, url: str, folder: Path) -> Any:
    """The same rows for an engine to read."""
    if engine == "parquet":
        pq.write_table(rows, folder / "rows.parquet")
        return folder / "rows.parquet"
    if engine == "polars":
        return polars.from_arrow(rows)
    types = [SQL_TYPES.get(str(field.type), "bigint") for field in rows.schema]
    columns = ", ".join(
        f'"{name}" {kind}' for name, kind in zip(rows.column_names, types, strict=True)
    )
    values = [tuple(row.values()) for row in rows.to_pylist()]
    if engine == "sqlite":
        columns = columns.replace("double precision", "real").replace("bigint", "integer")
        columns = columns.replace(" with time zone", "")
        values = [
            tuple(str(cell) if isinstance(cell, dt.date) else cell for cell in row)
            for row in values
        ]
        with sqlite3.connect(folder / "rows.sqlite") as connection:
            connection.execute(f"CREATE TABLE t ({columns})")
            marks = ", ".join("?" * rows.num_columns)
            connection.executemany(f"INSERT INTO t VALUES ({marks})", values)
        return f"sqlite://{folder}/rows.sqlite#t"
    with psycopg.connect(url, autocommit=True) as server:
        server.execute("DROP TABLE IF EXISTS person_rows")
        server.execute(f"CREATE TABLE person_rows ({columns})")
        with server.cursor().copy("COPY person_rows FROM STDIN") as copy:
            for row in values:
                copy.write_row(row)
    return f"{url}#person_rows"


def count_in_memory(
    rows: pa.Table, schema: Schema = SCHEMA, request: CountRequest = REQUEST
) -> Statistics:
    columns = {name: rows.column(name) for name in schema.names}
    codes = encode_classes(schema, rows.column(schema.target))
    used_rows, _ = select_person_rows(rows.column("person"), columns, codes, schema, BOUND)
    return count(rows.take(used_rows), schema, request)


def count_in_engine(
    source: Any, schema: Schema = SCHEMA, request: CountRequest = REQUEST
) -> Statistics:
    names, table = [*schema.names, schema.target], open_table(source)
    rows = limit_person_rows(table, BOUND, names, schema)
    assert rows.columns == tuple(names)  # the ids are gone
    assert rows.schema() == table.select(*names).schema()  # and dates are as they are stored
    return count(rows, schema, request)


@pytest.mark.parametrize("kind", KINDS, ids=str)
@pytest.mark.parametrize("engine", ["parquet", "polars", "postgres", "sqlite"])
def test_an_engine_uses_the_rows_that_memory_uses(
    engine: str, kind: pa.DataType, postgres: str, tmp_path: Path
) -> None:
    rows = make_rows(kind)
    source = write_table(engine, rows, postgres, tmp_path)
    assert_same_statistics(count_in_memory(rows), count_in_engine(source))


@pytest.mark.parametrize("engine", ["parquet", "polars", "postgres", "sqlite"])
def test_an_engine_uses_the_rows_that_memory_uses_also_with_dates(
    engine: str, postgres: str, tmp_path: Path
) -> None:
    rows = make_rows(pa.int64(), 300, DATE_SCHEMA)
    in_memory = count_in_memory(rows, DATE_SCHEMA, DATE_REQUEST)
    source = write_table(engine, rows, postgres, tmp_path)
    assert_same_statistics(in_memory, count_in_engine(source, DATE_SCHEMA, DATE_REQUEST))


@pytest.mark.spark
def test_spark_uses_the_rows_that_memory_uses(spark: Any, tmp_path: Path) -> None:
    rows = make_rows(pa.string())
    frame = spark.read.parquet(str(write_table("parquet", rows, "", tmp_path)))
    assert_same_statistics(count_in_memory(rows), count_in_engine(frame))


@pytest.mark.parametrize("engine", ["parquet", "postgres"])
def test_twin_an_engine_without_the_window(engine: str, postgres: str, tmp_path: Path) -> None:
    rows = make_rows(pa.int64())
    unlimited = open_table(write_table(engine, rows, postgres, tmp_path)).select(*NAMES)
    with pytest.raises(AssertionError):
        assert_same_statistics(count_in_memory(rows), count(unlimited, SCHEMA, REQUEST))


@pytest.mark.parametrize("weighting", [False, True])
@pytest.mark.parametrize("engine", ["parquet", "polars", "postgres", "sqlite"])
def test_a_source_counts_what_memory_counts(
    engine: str, weighting: bool, postgres: str, tmp_path: Path
) -> None:
    rows = make_rows(pa.int64())
    bound = ContributionBound("person", 3, "own", weighting)
    source = TableSource(write_table(engine, rows, postgres, tmp_path), SCHEMA, bound=bound)
    columns = {name: rows.column(name) for name in SCHEMA.names}
    codes = encode_classes(SCHEMA, rows.column(SCHEMA.target))
    memory = InMemorySource(SCHEMA, columns, codes, bound=bound, persons=rows.column("person"))
    assert source.influence == memory.influence
    expected, counted = memory.count_statistics(), source.count_statistics()
    assert counted.totals.tolist() == expected.totals.tolist()
    assert source.count_classes().tolist() == expected.totals.tolist()
    for name, table in expected.tables.items():
        assert counted.tables[name].counts.tolist() == table.counts.tolist()
    batches = [columns["zip"] for columns, _ in source.iter_batches(["zip"])]
    assert sum(map(len, batches)) == len(memory.class_codes)


@pytest.mark.parametrize("engine", ["parquet", "postgres", "sqlite"])
def test_rows_without_an_id_are_refused_unless_each_is_a_person(
    engine: str, postgres: str, tmp_path: Path
) -> None:
    rows = make_rows(pa.float64())
    source = write_table(engine, rows, postgres, tmp_path)
    with pytest.raises(SchemaError, match="person: the id of a person is missing"):
        TableSource(source, SCHEMA, bound=ContributionBound("person", 2))
    missing = rows.filter(rows.column("person").is_null())
    bound = ContributionBound("person", 1, "own")
    persons = len(set(rows.column("person").drop_null().to_pylist()))
    kept = TableSource(source, SCHEMA, bound=bound).count_classes().sum()
    assert kept == persons + missing.num_rows


def test_without_a_schema_the_rows_follow_from_the_persons_own(tmp_path: Path) -> None:
    """Dropping all other persons changes no row; engines may choose differently."""
    rows = make_rows(pa.int64())
    limited = limit_person_rows(open_table(rows), BOUND, [*NAMES, "person"]).to_pyarrow()
    for person in (1, 3, 7):
        own = rows.filter(pa.compute.equal(rows.column("person"), person))
        alone = limit_person_rows(open_table(own), BOUND, [*NAMES, "person"]).to_pyarrow()
        among = limited.filter(pa.compute.equal(limited.column("person"), person))
        assert sorted(map(str, alone.to_pylist())) == sorted(map(str, among.to_pylist()))
        assert alone.num_rows == min(2, own.num_rows)


def test_a_helping_column_takes_no_name_of_the_table() -> None:
    """DuckDB does not tell the cases of names apart."""
    assert find_unused_name("Visit (stored)", ["visit (stored)", "a"]) == "Visit (stored)_"
    assert find_unused_name("row_text0", ["ROW_TEXT0", "row_text0_"]) == "row_text0__"
