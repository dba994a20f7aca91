"""Claim: DuckDB, a real PostgreSQL and a real Spark give identical integers for the same rows."""

from __future__ import annotations

import csv
import io
import math
import random
import sys
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import psycopg
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from comparisons import assert_same_statistics
from discreet.errors import DiscreetError, SchemaError
from discreet.schema.schema import Categorical, Numeric, Schema, format_value
from discreet.statistics.statistics import Statistics
from discreet.tables import CountRequest, columns, count
from discreet.tables.engines import find_java_home, open_table
from discreet.tables.inference import infer_schema

pytestmark = pytest.mark.slow

SCHEMA = Schema(
    [
        Categorical("zip", ["05", "5", "it's", "back\\slash", "ü %"]),
        Categorical("level", [1, 2, 3]),
        Categorical("flag", [True, False]),
        Categorical("share", [0.1, 0.5, 2]),
        Numeric("age", 18, 99, integer=True),
        Numeric("income", -1.3, 1000.7),
        Numeric("written", 0.1, 0.9),
        Categorical("switch", [True, False]),
        Numeric("when", 1.7e9, 1.7e9 + 60),
    ],
    "class",
    ["no", "y\\e's", "never"],
    outliers="clip",
    unseen="other",
    missing_tokens=["?"],
)
BINS = {"age": 5, "income": [0.30000000000000004, 0.5, 10.0, 700.1], "written": 6}
TYPES = {
    "zip": pa.string(),
    "level": pa.int32(),
    "flag": pa.bool_(),
    "share": pa.float64(),
    "age": pa.int64(),
    "income": pa.float64(),
    "written": pa.string(),
    "switch": pa.string(),
    "when": pa.float64(),
    "class": pa.string(),
    "w": pa.float64(),
}
SQL = {
    pa.string(): "text",
    pa.int32(): "integer",
    pa.int64(): "bigint",
    pa.bool_(): "boolean",
    pa.float64(): "double precision",
}


def made(seed: int = 11, size: int = 900) -> pa.Table:
    chance = random.Random(seed)
    edges = [0.30000000000000004, 0.3, 0.5, 700.1, -1.3, 1000.7, -5.0, math.inf, -math.inf]
    texts = ["?", "", None, " 0.25 ", "1e-1", ".5", "nan", "+0.75", "-3", "0.30000000000000004"]
    draws: dict[str, Any] = {
        "zip": lambda: chance.choice(["05", "5", "it's", "back\\slash", "ü %", "?", "", None, "x"]),
        "level": lambda: chance.choice([1, 2, 3, None, 77]),
        "flag": lambda: chance.choice([True, False, None]),
        "share": lambda: chance.choice([0.1, 0.5, 2.0, None, math.nan, 0.2]),
        "age": lambda: chance.choice([None, *range(10, 110)]),
        "income": lambda: chance.choice(
            [None, math.nan, chance.choice(edges), chance.uniform(-1, 999)]
        ),
        "written": lambda: chance.choice([*texts, repr(chance.random())]),
        "switch": lambda: chance.choice(["True", "tRUE", "false", "FaLsE", "?", "", None, "x"]),
        "when": lambda: chance.choice([None, 1.7e9 + chance.uniform(0, 60)]),
        "class": lambda: chance.choice(["no", "y\\e's"]),
        "w": lambda: chance.choice([0.0, 0.5, 1.25]),
    }
    columns = {name: [draw() for _ in range(size)] for name, draw in draws.items()}
    return pa.table({name: pa.array(columns[name], type=kind) for name, kind in TYPES.items()})


ROWS = made()


def into_postgres(url: str, name: str, rows: pa.Table) -> str:
    columns = ", ".join(f'"{field.name}" {SQL[field.type]}' for field in rows.schema)
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(f'DROP TABLE IF EXISTS "{name}"')
        connection.execute(f'CREATE TABLE "{name}" ({columns})')
        with connection.cursor().copy(f'COPY "{name}" FROM STDIN') as copy:
            for row in rows.to_pylist():
                copy.write_row(list(row.values()))
    return f"{url}#{name}"


def identical(one: Statistics, two: Statistics) -> None:
    assert one.totals.dtype == np.int64
    assert list(one.tables) == list(SCHEMA.names)
    assert all(moments.totals.dtype == np.int64 for moments in one.moments.values())
    assert_same_statistics(one, two)


def exactly(source: Any) -> Statistics:
    return count(source, SCHEMA, CountRequest(bins=BINS, moments="grid", order=True))


def close(one: Statistics, two: Statistics) -> None:
    for name, table in one.tables.items():
        np.testing.assert_allclose(table.counts, two.tables[name].counts, rtol=1e-12)
    for name, moments in one.moments.items():
        np.testing.assert_allclose(moments.counts, two.moments[name].counts, rtol=1e-12)
        np.testing.assert_allclose(moments.mean, two.moments[name].mean, rtol=1e-12)
        np.testing.assert_allclose(moments.variance, two.moments[name].variance, rtol=1e-12)


def test_duckdb_gives_the_integers_of_the_arrays() -> None:
    identical(exactly(ROWS), exactly({name: ROWS[name].to_pylist() for name in TYPES}))


def test_postgres_gives_the_integers_of_duckdb(postgres: str) -> None:
    identical(exactly(into_postgres(postgres, "some rows", ROWS)), exactly(ROWS))


def test_postgres_gives_the_floats_of_duckdb(postgres: str) -> None:
    url = into_postgres(postgres, "floats", ROWS)
    close(count(url, SCHEMA), count(ROWS, SCHEMA))
    close(
        count(url, SCHEMA, CountRequest(bins=3), weights="w"),
        count(ROWS, SCHEMA, CountRequest(bins=3), weights="w"),
    )


def test_sums_beyond_the_integers_of_a_double_are_exact_on_postgres(postgres: str) -> None:
    # 3 million squares of about 2^32 pass 2^53; the odd ones out must not be rounded away
    with psycopg.connect(postgres, autocommit=True) as connection:
        connection.execute("DROP TABLE IF EXISTS big")
        connection.execute(
            "CREATE TABLE big AS SELECT 65535 - (i % 2) AS x, 0 AS y "
            "FROM generate_series(1, 3000001) AS s(i)"
        )
    schema = Schema([Numeric("x", 0, 65535, integer=True)], "y", [0])
    moments = count(f"{postgres}#big", schema, CountRequest(moments="grid")).moments["x"]
    expected = 1_500_001 * 65534**2 + 1_500_000 * 65535**2
    assert expected > 2**53
    assert int(moments.squares[0]) == expected
    column = np.where(np.arange(1, 3_000_002) % 2, 65534, 65535)
    rows = pa.table({"x": column, "y": np.zeros(len(column), dtype=int)})
    assert (
        int(count(rows, schema, CountRequest(moments="grid")).moments["x"].squares[0]) == expected
    )


@pytest.mark.parametrize(
    ("bad", "words"),
    [
        ({"written": "three"}, "written: 'three' is not a number"),
        ({"written": "1_000"}, "written: '1_000' is not a number"),
        ({"written": "1e999"}, "written: inf is outside the public bounds"),
        ({"age": 900}, "age: 900 is outside the public bounds [18, 99]"),
        ({"income": math.inf}, "income: inf is outside the public bounds"),
        ({"zip": "nowhere"}, "zip: 'nowhere' is not one of the public values"),
        ({"class": None}, "class: a row has no class"),
        ({"class": "perhaps"}, "class: 'perhaps' is not one of the public classes"),
    ],
)
def test_postgres_refuses_what_does_not_fit(postgres: str, bad: dict[str, Any], words: str) -> None:
    good = {"zip": "05", "level": 1, "flag": True, "share": 0.5, "age": 30, "income": 1.5}
    good |= {"written": "0.5", "switch": "TRUE", "when": 1.7e9, "class": "no", "w": 1.0}
    rows = [good, {**good, **bad}]
    table = pa.table({n: pa.array([row[n] for row in rows], type=t) for n, t in TYPES.items()})
    strict = Schema(SCHEMA.features, "class", SCHEMA.classes)
    with pytest.raises(SchemaError) as caught:
        count(into_postgres(postgres, "bad", table), strict)
    assert words in str(caught.value)


BELOW_SMALLEST = "2.470328229206232720882843964341106861825299013071623822127928412503377536e-324"
ABOVE_SMALLEST = BELOW_SMALLEST.replace("536e", "537e")
"""Decimal numbers on both sides of 2^-1075, half of the smallest double."""


def test_the_decimal_limits_of_doubles_are_exact() -> None:
    least, most = Fraction(columns.MAX_ZERO_DECIMAL), Fraction(columns.MIN_INFINITE_DECIMAL)
    assert Fraction(BELOW_SMALLEST) < least == Fraction(1, 2**1075) < Fraction(ABOVE_SMALLEST)
    assert float(columns.MAX_ZERO_DECIMAL) == float(BELOW_SMALLEST) == 0
    assert float(ABOVE_SMALLEST) == math.ulp(0.0)
    assert math.isinf(float(columns.MIN_INFINITE_DECIMAL))
    assert float(str(most - 1)) == sys.float_info.max


@pytest.mark.parametrize("kind", ["text", "numeric"])
def test_postgres_reads_numbers_beside_half_of_the_smallest_double(
    postgres: str, kind: str
) -> None:
    smallest = math.ulp(0.0)
    texts = [BELOW_SMALLEST, f"-{BELOW_SMALLEST}", ABOVE_SMALLEST, f"-{ABOVE_SMALLEST}", "0"]
    texts += [f"{5**1075}e-1075"] if kind == "numeric" else []  # text is shorter
    with psycopg.connect(postgres, autocommit=True) as connection:
        connection.execute("DROP TABLE IF EXISTS tiny")
        connection.execute(f"CREATE TABLE tiny (x {kind}, y text)")
        for text in texts:
            connection.execute("INSERT INTO tiny VALUES (%s, 'a')", [text])
    schema = Schema([Numeric("x", -1, 1)], "y", ["a"])
    contents = CountRequest(bins={"x": [0.0, smallest]}, moments="grid")  # no squares of doubles
    counts = count(f"{postgres}#tiny", schema, contents).tables["x"]
    expected = [sum(float(text) < 0 for text in texts), sum(float(text) == 0 for text in texts), 1]
    assert counts.counts[0].tolist()[:3] == expected == [1, len(texts) - 2, 1]


def test_a_schema_is_inferred_from_postgres_as_from_duckdb(postgres: str) -> None:
    rows = ROWS.filter(pa.compute.is_finite(ROWS["income"]).fill_null(True)).drop_columns(["w"])
    url = into_postgres(postgres, "inferred", rows)
    assert infer_schema(url, "class", warn=False) == infer_schema(rows, "class", warn=False)


def test_a_table_that_is_not_there_is_named(postgres: str) -> None:
    into_postgres(postgres, "here", ROWS.slice(0, 1))
    with pytest.raises(SchemaError, match=r"there is no table 'nowhere'; there are: .*here"):
        open_table(postgres, table="nowhere")


def as_csv(rows: pa.Table) -> str:
    text = io.StringIO()
    writer = csv.writer(text)
    writer.writerow(rows.column_names)
    for row in rows.to_pylist():
        writer.writerow(["" if v is None else format_value(v) for v in row.values()])
    return text.getvalue()


@pytest.mark.spark
def test_spark_gives_the_integers_of_duckdb(spark: Any, tmp_path: Path) -> None:
    pq.write_table(ROWS, tmp_path / "rows.parquet")
    expected = exactly(ROWS)
    identical(exactly(spark.read.parquet(str(tmp_path / "rows.parquet"))), expected)
    identical(exactly(f"spark:{tmp_path}/*.parquet"), expected)
    (tmp_path / "rows.csv").write_text(as_csv(ROWS), encoding="utf-8")
    identical(exactly(f"spark:{tmp_path}/rows.csv"), exactly(tmp_path / "rows.csv"))


@pytest.mark.spark
def test_spark_gives_the_floats_of_duckdb(spark: Any, tmp_path: Path) -> None:
    pq.write_table(ROWS, tmp_path / "rows.parquet")
    frame = spark.read.parquet(str(tmp_path / "rows.parquet"))
    close(count(frame, SCHEMA, weights="w"), count(ROWS, SCHEMA, weights="w"))


@pytest.mark.spark
def test_spark_refuses_what_does_not_fit(spark: Any) -> None:
    frame = spark.createDataFrame([("three", "no"), ("0.5", "no")], ["written", "class"])
    schema = Schema([SCHEMA["written"]], "class", ["no"])
    with pytest.raises(SchemaError, match="written: 'three' is not a number"):
        count(frame, schema)


def test_java_is_that_of_the_system_or_said_to_be_missing(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "java").write_text("#!/bin/sh\n")
    (tmp_path / "bin" / "java").chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    assert find_java_home() == str(tmp_path)
    monkeypatch.delenv("JAVA_HOME")
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    assert find_java_home() == str(tmp_path)
    monkeypatch.setenv("PATH", "")
    outcome: str | DiscreetError
    try:
        outcome = find_java_home()
    except DiscreetError as error:
        outcome = error
    assert "Java" in str(outcome) or Path(str(outcome), "bin", "java").exists()
