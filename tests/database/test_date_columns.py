"""A date becomes the same cell on every engine, from text, dates and points in time."""

from __future__ import annotations

import datetime as dt
import random
import sqlite3
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import psycopg
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from comparisons import assert_same_statistics
from date_texts import HARD, WRONG, ZONED
from discreet import Date, DatePart, Schema, SchemaError
from discreet.schema.cells import build_cells
from discreet.schema.dates import read_hour
from discreet.statistics.statistics import Statistics
from discreet.tables import CountRequest, count, open_table
from discreet.tables.date_expressions import INVALID_SUFFIX, add_date_columns
from discreet.tables.in_memory import count_arrays
from discreet.tables.source import InMemorySource, Sampling, TableSource

pytestmark = pytest.mark.slow

FEATURES = {
    "day": Date("day", "1899-12-31", "2026-12-30"),
    "month": Date("month", "1899-12-31", "2026-12-30", by="month"),
    "year": Date("year", "0001-01-01", "9999-12-31", by="year"),
    "weekday": DatePart("weekday", by="weekday"),
    "month of year": DatePart("month of year", by="month of year"),
    "hour": DatePart("hour", by="hour"),
}
SCHEMA = Schema(FEATURES.values(), "class", ["no", "yes"], outliers="clip", missing_tokens=["?"])
BINS = {"day": 5, "month": ["1900-01-01", "2000-02-01", "2016-03-01"], "year": 7}
REQUEST = CountRequest(bins=BINS, moments="grid", order=True)


def make_moments(size: int = 400) -> list[dt.datetime | None]:
    chance = random.Random(5)
    hard = [dt.datetime.fromisoformat(text) for text in HARD]
    span = (dt.datetime.max - dt.datetime.min) // dt.timedelta(seconds=1)
    drawn = [dt.datetime.min + dt.timedelta(seconds=chance.randrange(span)) for _ in range(size)]
    near = [dt.datetime(1890, 1, 1) + dt.timedelta(hours=chance.randrange(10**6)) for _ in drawn]
    return [*hard, *drawn, *near, None]


MOMENTS = make_moments()
CLASSES = [random.Random(6).choice(["no", "yes"]) for _ in MOMENTS]


def expect(moments: list[dt.datetime | None]) -> dict[str, list[int]]:
    """The cells by Python's own calendar."""
    cells: dict[str, list[int]] = {name: [] for name in FEATURES}
    for moment in moments:
        if moment is None:
            sizes = {"weekday": 7, "month of year": 12, "hour": 24}
            for name, size in sizes.items():
                cells[name].append(size)
            continue
        cells["weekday"].append(moment.weekday())
        cells["month of year"].append(moment.month - 1)
        cells["hour"].append(moment.hour)
    return cells


def statistics_of(columns: dict[str, Any]) -> Statistics:
    codes = np.array([["no", "yes"].index(text) for text in CLASSES[: len(columns["day"])]])
    return count_arrays(SCHEMA, columns, codes.astype(np.int32), REQUEST)


def test_parts_are_those_of_pythons_calendar() -> None:
    wanted = expect(MOMENTS)
    exact = statistics_of(dict.fromkeys(FEATURES, MOMENTS))
    for name in ("weekday", "month of year", "hour"):
        table = exact.tables[name]
        counted = np.bincount(wanted[name], minlength=table.cells.size)
        assert table.counts.sum(axis=0).tolist() == counted.tolist()
    for name, moment in (("day", dt.datetime(1950, 1, 2, 3)), ("year", dt.datetime(1, 1, 1))):
        cells = exact.tables[name].cells
        days = (moment.date() - FEATURES[name].first).days  # type: ignore[union-attr]
        assert cells.edges[cells.encode_value(moment)] <= days


def rows_of(kind: str) -> pa.Table:
    """The same rows as text, dates or points in time."""
    texts = [None if moment is None else moment.isoformat(" ") for moment in MOMENTS]
    columns: dict[str, pa.Array] = {}
    for place, name in enumerate(FEATURES):
        if kind == "text":
            styles = [lambda t: t, lambda t: t.replace(" ", "T"), lambda t: f"\t {t} \n"]
            styles.append(lambda t: f"{t}Z")
            cells = [
                "?" if text is None else styles[(row + place) % 4](text)
                for row, text in enumerate(texts)
            ]
            columns[name] = pa.array(cells)
        else:
            columns[name] = pa.array(MOMENTS, pa.timestamp("us"))
        if kind == "zoned":
            columns[name] = columns[name].cast(pa.timestamp("us", "UTC"))
    return pa.table({**columns, "class": CLASSES})


KINDS = ["text", "timestamp", "zoned"]
EXACT = statistics_of(dict.fromkeys(FEATURES, MOMENTS))


@pytest.mark.parametrize("kind", KINDS)
def test_in_memory_parquet_and_duckdb(kind: str, tmp_path: Path) -> None:
    rows = rows_of(kind)
    pq.write_table(rows, tmp_path / "rows.parquet")
    frame = pl.from_arrow(rows)
    assert isinstance(frame, pl.DataFrame)
    sources: list[Any] = [rows, frame, tmp_path / "rows.parquet"]
    if kind == "text":
        sources.append(rows.to_pandas())
        rows.to_pandas().to_csv(tmp_path / "rows.csv", index=False)
        sources.append(tmp_path / "rows.csv")
    for source in sources:
        path = str(source) if isinstance(source, Path) else source
        assert_same_statistics(count(path, SCHEMA, REQUEST), EXACT)
    for source in (rows, frame, rows.to_pydict()):
        assert_same_statistics(statistics_of({name: source[name] for name in FEATURES}), EXACT)


def test_a_session_in_another_time_zone_is_refused(tmp_path: Path) -> None:
    import ibis

    pq.write_table(rows_of("zoned"), tmp_path / "rows.parquet")
    engine = ibis.duckdb.connect()
    engine.raw_sql("SET TimeZone = 'Asia/Tokyo'")
    table = engine.read_parquet(tmp_path / "rows.parquet")
    with pytest.raises(SchemaError, match="its timezone is 'Asia/Tokyo'"):
        count(table, SCHEMA, REQUEST)


@pytest.mark.parametrize("kind", KINDS)
def test_rows_that_are_read_have_the_same_cells(kind: str) -> None:
    """The way of a choice between candidates: rows in batches."""
    from fractions import Fraction

    from discreet import CryptoRandom
    from discreet.schema.cells import build_cells

    source, cells = TableSource(rows_of(kind), SCHEMA), build_cells(SCHEMA, BINS)
    sampling = Sampling(Fraction(1), CryptoRandom())
    for name, table in source.count_tables(cells, sampling).items():
        assert table.counts.tolist() == EXACT.tables[name].counts.tolist()


@pytest.mark.parametrize("kind", ["text", "timestamp"])
def test_pandas_with_its_own_types(kind: str) -> None:
    near = [moment for moment in MOMENTS if moment is None or 1700 < moment.year < 2200]
    stamps = pd.Series(pd.to_datetime(near))
    for series in (
        stamps,
        stamps.dt.tz_localize("UTC").dt.tz_convert("America/Caracas"),
        stamps.astype("timestamp[ns][pyarrow]"),
        stamps.dt.strftime("%Y-%m-%dT%H:%M:%S").astype("string"),
        stamps.astype(object),
    ):
        frame = pd.DataFrame(dict.fromkeys(FEATURES, series)).assign(**{"class": "no"})
        codes = np.zeros(len(near), dtype=np.int32)
        exact = count_arrays(SCHEMA, dict.fromkeys(FEATURES, near), codes, REQUEST)
        assert_same_statistics(count(frame, SCHEMA, REQUEST), exact)
        columns = {name: frame[name] for name in FEATURES}
        assert_same_statistics(count_arrays(SCHEMA, columns, codes, REQUEST), exact)


def into_sqlite(path: Path, rows: pa.Table, kind: str) -> str:
    connection = sqlite3.connect(path)
    types = ", ".join(f'"{name}" {kind}' for name in FEATURES)
    connection.execute(f'CREATE TABLE rows ({types}, "class" text)')
    texts = [
        [value.isoformat(" ") if isinstance(value, dt.datetime) else value for value in row]
        for row in (list(row.values()) for row in rows.to_pylist())
    ]
    marks = ", ".join("?" * len(rows.column_names))
    connection.executemany(f"INSERT INTO rows VALUES ({marks})", texts)
    connection.commit()
    connection.close()
    return f"sqlite://{path}#rows"


@pytest.mark.parametrize(("kind", "type_"), [("text", "text"), ("timestamp", "timestamp")])
def test_sqlite(kind: str, type_: str, tmp_path: Path) -> None:
    source = into_sqlite(tmp_path / "rows.db", rows_of(kind), type_)
    assert_same_statistics(count(source, SCHEMA, REQUEST), EXACT)


@pytest.mark.parametrize(
    ("kind", "type_"),
    [("text", "text"), ("timestamp", "timestamp"), ("zoned", "timestamp with time zone")],
)
def test_postgresql(kind: str, type_: str, postgres: str) -> None:
    rows = rows_of(kind)
    types = ", ".join(f'"{name}" {type_}' for name in FEATURES)
    with psycopg.connect(postgres, autocommit=True) as connection:
        connection.execute('DROP TABLE IF EXISTS "dates"')
        connection.execute(f'CREATE TABLE "dates" ({types}, "class" text)')
        with connection.cursor().copy('COPY "dates" FROM STDIN') as copy:
            for row in rows.to_pylist():
                copy.write_row(list(row.values()))
    assert_same_statistics(count(f"{postgres}#dates", SCHEMA, REQUEST), EXACT)


@pytest.mark.spark
@pytest.mark.parametrize("kind", ["text", "zoned"])
def test_spark(kind: str, spark: Any, tmp_path: Path) -> None:
    pq.write_table(rows_of(kind), tmp_path / "rows.parquet")
    frame = spark.read.parquet(str(tmp_path / "rows.parquet"))
    schema = replace(SCHEMA, features=tuple(FEATURES[name] for name in ("month", "hour")))
    counted = count(frame, schema, CountRequest(bins=BINS, moments=None))
    for name, table in counted.tables.items():
        assert table.counts.tolist() == EXACT.tables[name].counts.tolist()


TEXTS = [*HARD, *ZONED, *WRONG, " 2019-03-04\t", "2019-03-04T05:06\n"]
ANY_DAY = Date("d", "1970-01-01", "9999-12-31")


def check_texts(table: Any) -> None:
    """Every text alone: its day, or that it is not a date."""
    rows = add_date_columns(table.mutate(t=table.d), [ANY_DAY], ["?"])
    read = rows.select("t", n=rows.d, w=rows["d" + INVALID_SUFFIX]).to_pyarrow()
    assert read.num_rows == len(TEXTS)
    for row in read.to_pylist():
        hour = read_hour(row["t"])
        days = None if hour is None else hour // 24
        assert (row["n"], row["w"]) == (days, row["t"] if hour is None else None), row


def test_which_text_is_a_date_in_duckdb_and_sqlite(tmp_path: Path) -> None:
    for source in (pa.table({"d": TEXTS}), into_file(tmp_path / "rows.db", "d", TEXTS)):
        check_texts(open_table(source))


def test_which_text_is_a_date_in_postgresql(postgres: str) -> None:
    with psycopg.connect(postgres, autocommit=True) as connection:
        connection.execute('DROP TABLE IF EXISTS "texts"')
        connection.execute('CREATE TABLE "texts" (d text)')
        with connection.cursor() as cursor:
            cursor.executemany('INSERT INTO "texts" VALUES (%s)', [[text] for text in TEXTS])
    check_texts(open_table(f"{postgres}#texts"))


@pytest.mark.spark
def test_which_text_is_a_date_in_spark(spark: Any) -> None:
    check_texts(open_table(spark.createDataFrame([[text] for text in TEXTS], ["d"])))


@pytest.mark.parametrize("wrong", ["2021-02-30", "04.03.2019", "1614729600", 1614729600, True])
@pytest.mark.parametrize("name", ["month", "weekday"])
def test_one_malformed_date_is_an_error_that_shows_it(
    name: str, wrong: Any, tmp_path: Path
) -> None:
    schema = Schema([FEATURES[name]], "class", ["no", "yes"], "skip", "clip", "other")
    values = [*HARD, wrong, *HARD] if isinstance(wrong, str) else [wrong, None, wrong]
    columns = {name: values, "class": ["no"] * len(values)}
    sources: list[Any] = [columns, pd.DataFrame(columns), pl.DataFrame(columns), pa.table(columns)]
    if isinstance(wrong, str):
        sources.append(into_file(tmp_path / "rows.db", name, values))
    for source in sources:
        with pytest.raises(SchemaError) as raised:
            count(source, schema)
        sentence = str(raised.value)
        assert sentence.startswith(f"{name}: ")
        assert "is not a date; dates are written like 2019-03-04" in sentence
        assert str(wrong).lower() in sentence.lower()


def into_file(path: Path, name: str, values: list[Any]) -> str:
    connection = sqlite3.connect(path)
    connection.execute(f'CREATE TABLE rows ("{name}" text, "class" text)')
    connection.executemany("INSERT INTO rows VALUES (?, 'no')", [[value] for value in values])
    connection.commit()
    connection.close()
    return f"sqlite://{path}#rows"


def test_whole_numbers_are_no_days_in_memory_either() -> None:
    """Numbers are counted in a faster way, which dates must not take."""
    schema = Schema([Date("d", "2020-01-01", "2020-12-31")], "y", ["a", "b"])
    source = InMemorySource(schema, {"d": np.arange(9)}, np.zeros(9, dtype=np.intp))
    with pytest.raises(SchemaError, match="0 is not a date"):
        source.count_tables(build_cells(schema, {"d": 4}))
