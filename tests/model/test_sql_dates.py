"""A query reads dates as the model does: the same cells on three engines, whatever the session."""

from __future__ import annotations

import datetime as dt
import random
import sqlite3
from collections.abc import Callable, Sequence
from typing import Any

import duckdb
import numpy as np
import psycopg
import pyarrow as pa
import pytest

from date_texts import HARD, WRONG, ZONED
from discreet import Date, DatePart, NaiveBayesModel, Schema
from discreet.errors import SchemaError
from discreet.model import CellFactor
from discreet.model.export import to_sql
from discreet.schema.cells import Cells
from discreet.schema.schema import Feature

FEATURES: dict[str, Feature] = {
    "day": Date("moment", "1899-12-31", "2026-12-30"),
    "month": Date("moment", "1900-02-10", "2026-12-30", by="month", optional=False),
    "year": Date("moment", "0001-01-01", "9999-12-31", by="year"),
    "weekday": DatePart("moment", by="weekday"),
    "month of year": DatePart("moment", by="month of year", optional=False),
    "hour": DatePart("moment", by="hour"),
}
BINS: dict[str, Any] = {
    "day": ["1900-01-01", "1900-03-01", "1970-01-01", "2000-02-29", "2016-02-29", "2026-12-30"],
    "month": ["1900-03-01", "1970-01-01", "2016-03-01", "2026-12-01"],
    "year": ["0002-01-01", "1582-01-01", "2000-01-01", "9999-01-01"],
}
TOKENS = ["?", "9999-12-31", "Friday", " x "]
ODD = [
    None, "", " ", *TOKENS, "? ", "Monday", "monday", "Monday ", "Sunday", "February", "03:00",
    "3:00", "9999-12-31 00:00", " 9999-12-31", "9999-12-31 23:00-00:00", "9999-12-31 23:00-00:01",
    "9999-12-31 23:59+23:59", "0001-01-01 00:30+00:00", "0001-01-01 00:30+00",
    "0001-01-01T00:30-0000", "0001-01-01 23:00+00:01", "0001-01-01 23:00+0100",
    "0001-01-01 23:00-23:59", "0001-01-02 00:00+23", "2016-03-01 00:00+00:01",
    "2016-02-29 23:59-00:01", "2015-03-01 00:00+23:59", "2015-02-28 00:01-23:59",
    "1999-12-31 23:30-01", "2000-01-01 00:30+01", "2020-01-31 20:00-0400",
    "2020-05-01 00:00:00.9+00:01", "2021-02-03 10:00Z", "2021-02-03 10:00z", "2021-02-03t10:00",
    "2021-02-03 10:00:00.", "2021-02-03Z", "2021-02-03 10:00:00.1.2", "2021-02-03 10:00.5",
    "2021-02-03 10:00:", "2021-02-03 10:00:00:00", "2021-02-03 10:00:00,5", "2021-02-03 10:00+24",
    "2021-02-03 10:00+1", "2021-02-03 10:00+09:60", "2021-02-03 10:00+9:00",
    "2021-02-03 10:00+09:", "2021-02-03 10:00+09:18:59", "2021-02-03 10:00++09",
    "2021-02-03 10:00Z+09", "2021-02-03 10:00+09Z", "2021-02-03 10:00 Z", "2021-02-03 1:00",
    "2021-02-03 ", "2021-02-03T", "\t2021-02-03\n", "\v2021-02-03 10:00\r\f", "\xa02021-02-03",
    "2021-02-03\u2003", "2021-02-03\n2021-02-04", "2021-02-03 10:00\n", "2021-04-31", "2021-02-29",
    "2000-02-30", "1900-02-29", "2021-12-31 29:00", "2021-02-03é", "12021-02-03",
    "2021-02-03 (BC)", "0044-03-15 BC", "2020-W10-1", "2021-02-031", "+2021-02-03",
    "2021-02-03 10:00:00.123456789123456789", "2021-02-03 10:00:00.1٣",
]  # fmt: skip


def draw_texts(size: int) -> list[str]:
    """Dates of every year, and around the bounds, in all the spellings that are dates."""
    chance = random.Random(7)
    texts = []
    for _ in range(size):
        day = dt.date.fromordinal(
            chance.choice(
                [
                    chance.randint(1, dt.date.max.toordinal()),
                    chance.randint(*(dt.date(year, 1, 1).toordinal() for year in (1899, 2027))),
                ]
            )
        )
        text = day.isoformat()
        if chance.random() < 0.8:
            hour, minute, second = chance.choice([0, 23, 12]), chance.choice([0, 59, 30]), 59
            text += f"{chance.choice('T ')}{hour:02}:{minute:02}"
            text += chance.choice(["", f":{second}", f":{second}.{chance.randrange(10**7)}"])
            zone_hour, zone_minute = chance.choice([0, 1, 9, 23]), chance.choice([0, 1, 30, 59])
            sign, colon = chance.choice("+-"), chance.choice([":", ""])
            text += chance.choice(
                ["", "Z", f"{sign}{zone_hour:02}", f"{sign}{zone_hour:02}{colon}{zone_minute:02}"]
            )
        texts.append(chance.choice([text, text, f" {text}", f"{text}\t\n"]))
    return texts


EVERY_DAY = [(dt.date(1999, 1, 1) + dt.timedelta(k)).isoformat() for k in range(800)]
EVERY_MONTH = [f"{year:04}-{month:02}-01" for year in range(1, 10_000, 7) for month in (1, 3, 12)]
TEXTS = [*HARD, *ZONED, *WRONG, *ODD, *draw_texts(1500), *EVERY_DAY, *EVERY_MONTH]

Load = Callable[[Sequence[Any], str], Callable[[str], list[tuple[Any, ...]]]]


def load_sqlite(values: Sequence[Any], kind: str) -> Callable[[str], list[tuple[Any, ...]]]:
    connection = sqlite3.connect(":memory:")
    connection.execute(f"CREATE TABLE people (id INTEGER, moment {kind})")
    connection.executemany("INSERT INTO people VALUES (?, ?)", enumerate(values))
    return lambda query: connection.execute(query).fetchall()


def load_duckdb(values: Sequence[Any], kind: str) -> Callable[[str], list[tuple[Any, ...]]]:
    connection = duckdb.connect()
    connection.execute("SET TimeZone = 'UTC'")
    connection.register("texts", pa.table({"id": range(len(values)), "a": pa.array(values)}))
    connection.execute(f"CREATE TABLE people AS SELECT id, CAST(a AS {kind}) AS moment FROM texts")
    connection.execute("SET TimeZone = 'Asia/Tokyo'")
    return lambda query: connection.execute(query).fetchall()


def make_postgres_loader(url: str, style: str = "German, DMY", zone: str = "Asia/Tokyo") -> Load:
    def load(values: Sequence[Any], kind: str) -> Callable[[str], list[tuple[Any, ...]]]:
        server = psycopg.connect(url, autocommit=True)
        server.execute("SET TimeZone = 'UTC'")
        server.execute("DROP TABLE IF EXISTS people")
        server.execute(f"CREATE TABLE people (id bigint, moment {kind})")  # type: ignore[arg-type]
        with server.cursor().copy("COPY people FROM STDIN") as copy:
            for row in enumerate(values):
                copy.write_row(row)
        server.execute(f"SET DateStyle = '{style}'")  # type: ignore[arg-type]
        server.execute(f"SET TimeZone = '{zone}'")  # type: ignore[arg-type]
        return lambda query: server.execute(query).fetchall()  # type: ignore[arg-type]

    return load


@pytest.fixture(params=["duckdb", "sqlite", "postgres"])
def engine(request: pytest.FixtureRequest) -> tuple[str, Load]:
    if request.param == "postgres":
        return request.param, make_postgres_loader(request.getfixturevalue("postgres"))
    return request.param, {"duckdb": load_duckdb, "sqlite": load_sqlite}[request.param]


def make_model(by: str, outliers: str = "clip") -> NaiveBayesModel:
    """A model of one feature, whose probabilities say which cell a row has."""
    schema = Schema([FEATURES[by]], "t", ["n", "p"], outliers=outliers, missing_tokens=TOKENS)
    cells = Cells.from_schema(schema, "moment", {"moment": BINS[by]} if by in BINS else 8)
    share = (np.arange(cells.size) + 1) / (cells.size + 2)
    return NaiveBayesModel(
        schema, np.log([0.5, 0.5]), [CellFactor(cells, np.log([share, 1 - share]))]
    )


def read_cells(model: NaiveBayesModel, rows: list[tuple[Any, ...]]) -> list[int | None]:
    """The cells that a query took, in the order of the rows; None where it refused one."""
    size = model.factors[0].cells.size  # type: ignore[union-attr]
    return [None if p is None else round(p * (size + 2)) - 1 for _, _, p, _ in sorted(rows)]


def encode_values(model: NaiveBayesModel, values: Sequence[Any]) -> list[int | None]:
    """The cells that ``predict`` takes; None where it refuses a value."""
    cells = model.factors[0].cells  # type: ignore[union-attr]
    expected: list[int | None] = []
    for value in values:
        try:
            expected.append(cells.encode_value(value))
        except SchemaError:
            expected.append(None)
    return expected


def compare_cells(
    dialect: str, run: Any, values: Sequence[Any], outliers: str, shown: Sequence[Any] = ()
) -> None:
    for by in FEATURES:
        model = make_model(by, outliers)
        query = to_sql(model, "people", dialect=dialect, keys=["id"], with_probabilities=True)  # type: ignore[arg-type]
        taken, expected = read_cells(model, run(query)), encode_values(model, values)
        differing = [(shown or values)[k] for k in range(len(values)) if taken[k] != expected[k]]
        assert not differing, (by, differing[:20])
        assert len({*expected}) > 1


@pytest.mark.slow
@pytest.mark.parametrize("outliers", ["error", "clip"])
def test_text_is_read_as_the_model_reads_it(engine: tuple[str, Load], outliers: str) -> None:
    dialect, load = engine
    compare_cells(dialect, load(TEXTS, "text"), TEXTS, outliers)


MOMENTS = [
    *(dt.datetime.fromisoformat(text) for text in HARD), None, dt.datetime(1850, 1, 1),
    dt.datetime(1850, 1, 1, 23, 59, 30), dt.datetime(1887, 12, 31, 14, 40, 59),
    dt.datetime(1887, 12, 31, 23, 30), dt.datetime(2016, 2, 29, 15),
    dt.datetime(2016, 2, 29, 14, 59, 59), dt.datetime(9999, 12, 31, 15),
    dt.datetime(1, 1, 1, 0, 0, 1), dt.datetime(2026, 12, 30, 23, 59, 59),
    *(dt.datetime.fromisoformat(text.strip()[:10]) for text in draw_texts(200)),
]  # fmt: skip
BEYOND = ["infinity", "-infinity"]
TYPES = {
    "postgres": ["date", "timestamp", "timestamp with time zone", "text"],
    "duckdb": [
        "date", "timestamp", "timestamp_s", "timestamp_ms", "timestamp with time zone", "text",
    ],
    "sqlite": ["date", "timestamp", ""],
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("outliers", ["error", "clip"])
def test_types_are_read_in_any_session(engine: tuple[str, Load], outliers: str) -> None:
    """Dates and times, in a session whose text of them is German and whose zone is Japan's."""
    dialect, load = engine
    for kind in TYPES[dialect]:
        digits = "seconds" if "_" in kind else "auto"  # DuckDB rounds a fraction to what it stores
        texts: list[Any] = [moment and moment.isoformat(" ", digits) for moment in MOMENTS]
        values: list[Any] = texts
        if dialect != "sqlite" and kind != "text":
            values = [
                moment and (moment.date() if kind == "date" else moment) for moment in MOMENTS
            ]
            beyond = ["10000-01-01", *BEYOND] if "_" not in kind else ["10000-01-01"]
            beyond += ["0044-03-15 BC"] if dialect == "postgres" else ["0044-03-15 (BC)"]
            texts, values = [*texts, *beyond], [*values, *beyond]
        compare_cells(dialect, load(texts, kind), values, outliers, texts)


def test_duckdb_counts_nanoseconds() -> None:
    moments = [moment for moment in MOMENTS if moment and 1700 < moment.year < 2200]
    texts = [f"{moment.isoformat(' ', 'seconds')}.999999999" for moment in moments]
    compare_cells("duckdb", load_duckdb(texts, "timestamp_ns"), moments, "clip")


@pytest.mark.slow
@pytest.mark.parametrize("style", ["ISO, MDY", "SQL, DMY", "Postgres, MDY"])
@pytest.mark.parametrize("zone", ["UTC", "America/Caracas", "Asia/Kathmandu", "<old>-12:34"])
def test_postgres_in_other_sessions(style: str, zone: str, postgres: str) -> None:
    load = make_postgres_loader(postgres, style, zone)
    texts = [moment and moment.isoformat(" ") for moment in MOMENTS]
    compare_cells("postgres", load(texts, "timestamp with time zone"), MOMENTS, "clip")


@pytest.mark.slow
def test_what_holds_no_dates_is_refused(engine: tuple[str, Load]) -> None:
    dialect, load = engine
    kinds = {
        "duckdb": ["integer", "double", "boolean", "blob", "time"],
        "postgres": ["integer", "double precision", "boolean", "bytea", "time", "jsonb"],
        "sqlite": [""],
    }[dialect]
    values = {
        "boolean": ["true"], "blob": ["2021-02-03"], "bytea": ["2021-02-03"], "time": ["10:00:00"],
        "jsonb": ['"2021-02-03"'], "": [20210203, 2.5, b"2021-02-03", "2021-02-03\0 10:00"],
    }  # fmt: skip
    for kind in kinds:
        run = load(values.get(kind, ["20210203"]), kind)
        for by in FEATURES:
            query = to_sql(make_model(by), "people", dialect=dialect, keys=["id"])  # type: ignore[arg-type]
            assert all(label is None for _, label in run(query)), (kind, by)
