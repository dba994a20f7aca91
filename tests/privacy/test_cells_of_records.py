"""Claim: the cell of a record is a function of that record alone, from every source.

Noise hides one record, if one record changes every table by one in one cell. Were it to change how
other records are read, no epsilon would hold. So: any rows, any record, any place, from all
sources, through the counts and through the batches of rows that are scored.
"""

from __future__ import annotations

import csv
import itertools
import math
import sqlite3
import tempfile
from collections import UserList, deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import ibis
import numpy as np
import pandas as pd
import polars as pl
import psycopg
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from ibis.backends.duckdb import Backend as DuckDB

from discreet import Categorical, CentralNB, Numeric, Schema, SchemaError
from discreet.estimators import base
from discreet.privacy.ledger import Ledger
from discreet.randomness import SeededRandom
from discreet.schema import cells as cells_module
from discreet.schema.cells import Cells, build_cells
from discreet.tables import columns, counting, engines, frames, source
from discreet.tables.in_memory import CountRequest
from discreet.tables.queries import Queries
from discreet.tables.source import Sampling, TableSource

BIG = 2**60 + 1
"""A whole number that no double has."""
NOON = datetime(2020, 1, 1, 12, tzinfo=UTC)

SCHEMA = Schema(
    [
        Categorical("word", ["a", "A", "ü", "1", "True", BIG, 0.1]),
        Categorical("whole", [BIG, BIG + 1, 3]),
        Categorical("exact", [1, 2.5, 0.1]),
        Categorical("moment", ["2020-01-01 12:00:00+00", "2020-01-01 12:00:00.5+00"]),
        Numeric("size", 0, 10),
    ],
    "y",
    ["a", "A", "b"],
    outliers="clip",
    unseen="other",
    missing_tokens=["?"],
)
POOLS: dict[str, list[Any]] = {
    "word": ["a", "A", "á", "ü", "1", "1.0", "true", "TRUE", "", "?", "zz", "É", None],
    "whole": [BIG, BIG + 1, 3, 7, None],
    "exact": [Decimal("1.00"), Decimal("2.50"), Decimal("0.10"), Decimal("7.25"), None],
    "moment": [NOON, NOON.replace(microsecond=500_000), NOON.replace(hour=1), None],
    "size": ["2", " 7 ", "1e308", "-1e-400", "1e999", "-inf", "nan", "", "?", "4.5", None],
    "y": ["a", "A", "b"],
}
OBJECTS: list[Any] = [
    *POOLS["word"], 1, 1.0, True, False, Decimal("1"), Decimal("1.0"), Decimal("0.1"), 0.1,
    np.float32(0.1), np.float64(1), BIG, float(BIG), -0.0, math.nan, pd.NA, NOON.date(),
]  # fmt: skip
NUMBERS: list[Any] = [*POOLS["size"], 2, 2.0, True, Decimal("2.5"), BIG, np.int8(3), math.nan]

Record = dict[str, Any]
Tables = dict[str, Any]


FEW = settings(
    max_examples=3,
    phases=[Phase.generate],  # a smaller example would cost many tables more
    suppress_health_check=list(HealthCheck),
)


def drawn(pools: dict[str, list[Any]]) -> Any:
    """Rows, one more record, and its place."""
    record = st.fixed_dictionaries({name: st.sampled_from(pool) for name, pool in pools.items()})
    return st.tuples(st.lists(record, min_size=1, max_size=6), record, st.integers(0, 6))


def own_cells(schema: Schema, record: Record) -> Tables:
    """The tables of one record, from nothing but that record."""
    where = Cells.from_schema(schema, "y").encode_value(record["y"])
    tables: Tables = {"totals": np.eye(len(schema.classes), dtype=int)[where]}
    for feature in schema.features:
        cells = Cells.from_schema(schema, feature, 4)
        tables[feature.name] = np.zeros((len(schema.classes), cells.size), dtype=int)
        tables[feature.name][where, cells.encode_value(record[feature.name])] = 1
    return tables


def narrow(schema: Schema, names: list[str]) -> Schema:
    return Schema(
        [feature for feature in schema.features if feature.name in names],
        schema.target, schema.classes, outliers="clip", unseen="other", missing_tokens=["?"],
    )  # fmt: skip


def counted(schema: Schema, fitted: CentralNB) -> Tables:
    found = fitted.statistics_
    assert found is not None
    return {"totals": found.totals, **{name: t.counts for name, t in found.tables.items()}}


def make_counting_nb(schema: Schema) -> CentralNB:
    """Plain Naive Bayes on bins: its statistics are exact counts, and no row is scored."""
    return CentralNB(math.inf, selection=False, corrections=False, schema=schema, bins=4)


def of_memory(schema: Schema, X: Any, y: Any) -> list[Tables]:
    return [counted(schema, make_counting_nb(schema).fit(X, y))]


def of_source(schema: Schema, where: Any) -> list[Tables]:
    """What is counted, and what batches of rows give."""
    nb = make_counting_nb(schema)
    rows = nb.open_source(where)
    fitted = nb.fit_source(rows)
    cells = build_cells(schema, 4)
    sampling = Sampling(Fraction(1), SeededRandom(0))
    passed = rows.count_tables(cells, sampling)
    totals = np.bincount(sampling.class_codes, minlength=len(schema.classes))
    batched = {"totals": totals, **{name: t.counts for name, t in passed.items()}}
    return [counted(schema, fitted), batched]


def assert_moves_one_cell(
    tables: Callable[[list[Record]], list[Tables]],
    schema: Schema,
    case: tuple[list[Record], Record, int],
    own: Record | None = None,
) -> None:
    """One more record adds its own tables, and nothing else."""
    rows, record, place = case
    without, added = tables(rows), tables([*rows[:place], record, *rows[place:]])
    expected = own_cells(schema, record if own is None else own)
    for before, after in zip(without, added, strict=True):
        for name, table in expected.items():
            moved = np.asarray(after[name]) - np.asarray(before[name])
            assert np.array_equal(moved, table), f"{name}: {moved.tolist()}, not {table.tolist()}"


# in memory

MEMORY = narrow(SCHEMA, ["word", "size"])
MIXED = {"word": OBJECTS, "size": NUMBERS, "y": POOLS["y"]}
WITHOUT_DATES = {**MIXED, "word": [v for v in OBJECTS if type(v) is not type(NOON.date())]}
LABELS = Schema(
    MEMORY.features, "y", [1, "a"], outliers="clip", unseen="other", missing_tokens=["?"]
)
MIXED_LABELS = {**WITHOUT_DATES, "y": [1, 1.0, True, "1", "a"]}


KINDS_OF_ROWS: list[Callable[[Any], Any]] = [
    list, tuple, deque, cells_module.to_object_array, lambda row: pd.Series(row, dtype=object)
]  # fmt: skip


def from_lists(rows: list[Record]) -> list[Tables]:
    return of_memory(MEMORY, [[r["word"], r["size"]] for r in rows], [r["y"] for r in rows])


def from_mixed_labels(rows: list[Record]) -> list[Tables]:
    return of_memory(LABELS, [[r["word"], r["size"]] for r in rows], [r["y"] for r in rows])


def as_objects(rows: list[Record]) -> pd.DataFrame:
    return pd.DataFrame(
        {n: cells_module.to_object_array(r[n] for r in rows) for n in rows[0]}, dtype=object
    )


def from_object_array(rows: list[Record]) -> list[Tables]:
    frame = as_objects(rows)
    return of_memory(MEMORY, frame[["word", "size"]].to_numpy(object), frame["y"].to_numpy())


def from_object_frame(rows: list[Record]) -> list[Tables]:
    frame = as_objects(rows)
    return of_memory(MEMORY, frame[["word", "size"]], frame["y"])


def from_object_source(rows: list[Record]) -> list[Tables]:
    return of_source(MEMORY, as_objects(rows))


@pytest.mark.slow
@settings(max_examples=150)
@given(drawn(WITHOUT_DATES))
def test_lists(case: Any) -> None:
    assert_moves_one_cell(from_lists, MEMORY, case)


def from_rows_of_any_kind(kinds: list[Callable[[Any], Any]]) -> Callable[..., list[Tables]]:
    """Rows that are arrays, columns or queues, one after the other, in a queue and labels too."""

    def tables(rows: list[Record]) -> list[Tables]:
        every = itertools.cycle(kinds)
        X = [next(every)([r["word"], r["size"]]) for r in rows]
        y = [r["y"] for r in rows]
        found = [*of_memory(LABELS, X, y), *of_memory(LABELS, deque(X), deque(y))]
        return [*found, counted_in_memory([[*own, label] for own, label in zip(X, y, strict=True)])]

    return tables


def counted_in_memory(rows: list[Any]) -> Tables:
    """The same by ``count``, which takes rows by position."""
    X, y = [row[:-1] for row in rows], [row[-1] for row in rows]
    found = counting.count(X, LABELS, CountRequest(bins=4), y=y)
    return {"totals": found.totals, **{name: t.counts for name, t in found.tables.items()}}


@pytest.mark.slow
@settings(max_examples=60)
@given(drawn(MIXED_LABELS), st.lists(st.sampled_from(KINDS_OF_ROWS), min_size=1, max_size=3))
def test_rows_of_any_kind(case: Any, kinds: Any) -> None:
    assert_moves_one_cell(from_rows_of_any_kind(kinds), LABELS, case)


@settings(max_examples=60)
@given(drawn(MIXED_LABELS), st.sampled_from([list, tuple, deque, UserList]))
def test_columns_of_any_kind(case: Any, kind: Any) -> None:
    """Columns by name, as ``count`` takes them."""

    def from_columns(rows: list[Record]) -> list[Tables]:
        columns = {name: kind(r[name] for r in rows) for name in rows[0]}
        found = counting.count(columns, LABELS, CountRequest(bins=4))
        return [{"totals": found.totals, **{name: t.counts for name, t in found.tables.items()}}]

    assert_moves_one_cell(from_columns, LABELS, case)


@settings(max_examples=60)
@given(drawn(MIXED_LABELS))
def test_lists_of_mixed_labels(case: Any) -> None:
    assert_moves_one_cell(from_mixed_labels, LABELS, case)


@settings(max_examples=30)
@given(drawn(MIXED_LABELS))
def test_lists_of_rows_of_one_label(case: Any) -> None:
    def from_rows_of_labels(rows: list[Record]) -> list[Tables]:
        return of_memory(LABELS, [[r["word"], r["size"]] for r in rows], [[r["y"]] for r in rows])

    assert_moves_one_cell(from_rows_of_labels, LABELS, case)


@pytest.mark.slow
@settings(max_examples=60)
@given(drawn(WITHOUT_DATES))
def test_object_columns(case: Any) -> None:
    assert_moves_one_cell(from_object_array, MEMORY, case)
    assert_moves_one_cell(from_object_frame, MEMORY, case)


@pytest.mark.slow
@FEW
@given(drawn(MIXED))
def test_a_frame_of_objects_that_duckdb_counts(case: Any) -> None:
    assert_moves_one_cell(from_object_source, MEMORY, case)


def as_union(values: list[Any]) -> pa.Array:
    """Values of several types in one column of Arrow."""
    kinds: dict[type, list[Any]] = {kind: [] for kind in (str, bool, int, float, type(None))}
    places = [(list(kinds).index(type(v)), len(kinds[type(v)])) for v in values
              if kinds[type(v)].append(v) is None]  # fmt: skip
    types = pa.array([kind for kind, _ in places], pa.int8())
    offsets = pa.array([place - 1 for _, place in places], pa.int32())
    return pa.UnionArray.from_dense(types, offsets, [pa.array(part) for part in kinds.values()])


TYPED_OBJECTS = {
    "word": ["a", "A", "1", "zz", 1, 1.0, True, False, 0.1, 7, None],
    "size": ["2", 2, 2.5, True, " 7 ", math.nan, 1e300, None],
    "y": POOLS["y"],
}


def from_mixed_frames(rows: list[Record]) -> list[Tables]:
    """Frames of polars and tables of Arrow that hold values of several types in one column."""
    columns = {name: [r[name] for r in rows] for name in rows[0]}
    polars = pl.DataFrame({n: pl.Series(values, dtype=pl.Object) for n, values in columns.items()})
    arrow = pa.table({"word": as_union(columns["word"]), "size": as_union(columns["size"]),
                      "y": columns["y"]})  # fmt: skip
    found = []
    for X in (polars.drop("y"), arrow.drop_columns(["y"])):
        found += of_memory(MEMORY, X, columns["y"])
    return [*found, *of_source(MEMORY, polars), *of_source(MEMORY, arrow)]


@pytest.mark.slow
@FEW
@given(drawn(TYPED_OBJECTS))
def test_mixed_columns_of_polars_and_arrow(case: Any) -> None:
    assert_moves_one_cell(from_mixed_frames, MEMORY, case)


def test_types_that_duckdb_does_not_read() -> None:
    for kind in (pa.float16(), pa.decimal256(60, 2)):
        numbers = pa.array([1.0, 7.0, None]).cast(kind)
        table = pa.table({"word": numbers, "size": numbers, "y": ["a"] * 3})
        fitted = of_memory(MEMORY, table.drop_columns(["y"]), ["a"] * 3)
        for found in [*of_source(MEMORY, table), *fitted]:
            assert found["word"][0].tolist() == [0, 0, 0, 1, 0, 0, 0, 1, 1]
            assert found["size"][0].tolist() == [1, 0, 1, 0, 1]


NUMERIC_POOLS = {
    "word": [1.0, 0.1, -0.0, 7.0, math.nan],
    "whole": [BIG, BIG + 1, 3, 7],
    "size": [0.0, 2.5, 10.0, -5.0, 1e300, math.nan],
    "y": POOLS["y"],
}
NUMERIC = narrow(SCHEMA, ["word", "whole", "size"])


@pytest.mark.slow
@settings(max_examples=40)
@given(drawn(NUMERIC_POOLS))
def test_numeric_arrays(case: Any) -> None:
    def from_arrays(rows: list[Record]) -> list[Tables]:
        kinds = {"word": np.float64, "whole": np.int64, "size": np.float64, "y": np.str_}
        frame = {n: np.array([r[n] for r in rows], dtype=kind) for n, kind in kinds.items()}
        X = pd.DataFrame({n: frame[n] for n in NUMERIC.names})
        floats = narrow(SCHEMA, ["word", "size"])
        matrix = np.column_stack([frame["word"], frame["size"]])
        return [*of_memory(NUMERIC, X, frame["y"]), *_known(floats, matrix, frame["y"], X)]

    assert_moves_one_cell(from_arrays, NUMERIC, case)


def _known(schema: Schema, matrix: Any, y: Any, X: Any) -> list[Tables]:
    """Tables of a matrix of doubles, with that of the column that none holds from the frame."""
    (tables,) = of_memory(schema, matrix, y)
    return [{**of_memory(NUMERIC, X, y)[0], **tables}]


# columns that have a type

ARROW = {
    "word": pa.string(),
    "whole": pa.int64(),
    "exact": pa.decimal128(10, 2),
    "moment": pa.timestamp("us", tz="UTC"),
    "size": pa.string(),
    "y": pa.string(),
}
TYPED = narrow(SCHEMA, ["word", "whole", "exact", "size"])
TYPED_POOLS = {name: POOLS[name] for name in (*TYPED.names, "y")}


def as_arrow(rows: list[Record]) -> pa.Table:
    names = [name for name in ARROW if name in rows[0]]
    return pa.table({n: pa.array([r[n] for r in rows], type=ARROW[n]) for n in names})


@pytest.mark.slow
@settings(max_examples=30)
@given(drawn(TYPED_POOLS))
def test_typed_columns_in_memory(case: Any) -> None:
    def from_columns(rows: list[Record]) -> list[Tables]:
        table = as_arrow(rows)
        polars = pl.from_arrow(table)
        assert isinstance(polars, pl.DataFrame)
        backed = table.to_pandas(types_mapper=pd.ArrowDtype)
        nullable = backed.assign(
            word=backed["word"].astype("category"),
            whole=pd.array([r["whole"] for r in rows], dtype="Int64"),
        )
        numbered = backed.assign(
            whole=pd.Series(pd.Categorical(pd.array([r["whole"] for r in rows], dtype="Int64")))
        )
        y = table["y"].to_pylist()
        return [
            of_memory(TYPED, rows_.drop(columns="y") if hasattr(rows_, "iloc") else rows_, y)[0]
            for rows_ in (table.drop_columns(["y"]), polars.drop("y"), backed, nullable, numbered)
        ]

    assert_moves_one_cell(from_columns, TYPED, case)


@contextmanager
def folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as name:
        yield Path(name)


@pytest.mark.slow
@FEW
@given(drawn(POOLS))
def test_arrow_and_parquet_that_duckdb_counts(case: Any) -> None:
    def from_arrow(rows: list[Record]) -> list[Tables]:
        with folder() as here:
            pq.write_table(as_arrow(rows), here / "rows.parquet")
            files = of_source(SCHEMA, str(here / "rows.parquet"))
        table = as_arrow(rows).set_column(0, "word", as_arrow(rows)["word"].dictionary_encode())
        return [*files, *of_source(SCHEMA, table), *of_source(SCHEMA, pl.from_arrow(table))]

    assert_moves_one_cell(from_arrow, SCHEMA, case)


TEXTS = {
    n: [None if v is None else str(v) for v in POOLS[n]] for n in ("word", "whole", "size", "y")
}
TEXT = narrow(SCHEMA, ["word", "whole", "size"])


@pytest.mark.slow
@FEW
@given(drawn(TEXTS))
def test_csv(case: Any) -> None:
    def from_csv(rows: list[Record]) -> list[Tables]:
        with folder() as here:
            pd.DataFrame(rows).to_csv(here / "rows.csv", index=False)
            return of_source(TEXT, str(here / "rows.csv"))

    assert_moves_one_cell(from_csv, TEXT, case)


FOLDERS = ["2020-1-5", "2020-01-05", "01", "1", "1.0", "true", "NULL", "a%20b", "zz", ""]
"""What engines read as dates, numbers or nothing, where all folders together let them."""


def in_folders(here: Path, rows: list[Record], kind: str) -> str:
    """Every record in a file of its own, in a folder named after a column, or a plain one."""
    for number, record in enumerate(rows):
        columns = {name: record[name] for name in ARROW if name in record}
        place = here / (record["folder"] or "plain")
        place.mkdir(exist_ok=True)
        if kind == "csv":
            pd.DataFrame([columns]).to_csv(place / f"{number}.csv", index=False)
        else:
            pq.write_table(as_arrow([columns]), place / f"{number}.parquet")
    return f"{here}/*/*.{kind}"


@pytest.mark.slow
@settings(max_examples=8, phases=[Phase.generate], suppress_health_check=list(HealthCheck))
@given(
    drawn({**{n: [v for v in TEXTS[n] if v] for n in ("word", "size", "y")},
           "folder": [None, *(f"word={name}" for name in FOLDERS)]}),
    st.sampled_from(["csv", "parquet"]),
)  # fmt: skip
def test_names_of_folders_are_no_columns(case: Any, kind: str) -> None:
    def from_folders(rows: list[Record]) -> list[Tables]:
        with folder() as here:
            return of_source(MEMORY, in_folders(here, rows, kind))

    assert_moves_one_cell(from_folders, MEMORY, case)


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_a_column_that_is_in_names_of_folders_alone_is_refused(tmp_path: Path, kind: str) -> None:
    schema = narrow(SCHEMA, ["word"])
    source = in_folders(tmp_path, [{"y": "a", "folder": "word=a"}], kind)
    hint = r"lacks the column word; it has y; names of folders \(word=…\) are not columns"
    with pytest.raises(SchemaError, match=hint):
        counting.count(source, schema)
    with pytest.raises(SchemaError, match=hint):
        engines.iter_ordered_batches(source, ["word"])


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_twin_names_of_folders_are_a_column(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    """As it was: all names together decide whether they are dates."""
    schema = Schema([Categorical("word", ["2020-01-05", "b"])], "y", ["a"], unseen="other")
    options = engines._make_csv_options

    def with_folders(files: list[str], typed: bool) -> dict[str, Any]:
        return {n: v for n, v in options(files, typed).items() if n != "hive_partitioning"}

    monkeypatch.setattr(engines, "_make_csv_options", with_folders)
    monkeypatch.setattr(engines, "open_parquet", lambda engine, names: engine.read_parquet(names))
    monkeypatch.setattr(engines, "_refuse_differing_parts", lambda engine, source, names: None)

    def from_folders(rows: list[Record]) -> list[Tables]:
        with tempfile.TemporaryDirectory(dir=tmp_path) as name:
            found = [{"y": r["y"], "folder": f"word={r['word']}"} for r in rows]
            return of_source(schema, in_folders(Path(name), found, kind))

    rows = [row(word="2020-1-5")] * 2
    assert from_folders(rows)[0]["word"][0].tolist()[:2] == [2, 0]
    with pytest.raises(MISREAD):
        assert_moves_one_cell(from_folders, schema, (rows, row(word="zz"), 2))


DIFFICULT = ["a", " a", "a ", 'q"q', '"', '""', "b\nc", "\r\n", "a,b", "a;b", "'", "\\", "#a",
             "\\N", "NULL", "NA", "null", "\ufeffa", "\u2028", "\x1f", "-", "", "?",
             "a\tb"]  # fmt: skip


@pytest.mark.slow
@settings(max_examples=15, suppress_health_check=list(HealthCheck))
@given(
    drawn({**TEXTS, "word": DIFFICULT, "whole": DIFFICULT}),
    st.sampled_from([",", ";", "\t"]),
    st.sampled_from(["\n", "\r\n"]),
)
def test_csv_with_texts_that_look_like_csv(case: Any, delimiter: str, line: str) -> None:
    schema = Schema(
        [Categorical("word", DIFFICULT[:10]), Categorical("whole", DIFFICULT[5:20]),
         Numeric("size", 0, 10)],
        "y", SCHEMA.classes, outliers="clip", unseen="other", missing_tokens=["?"],
    )  # fmt: skip

    def from_csv(rows: list[Record]) -> list[Tables]:
        with folder() as here:
            with open(here / "rows.csv", "w", newline="", encoding="utf-8") as file:
                writer = csv.writer(file, delimiter=delimiter, lineterminator=line)
                writer.writerow(TEXTS)
                writer.writerows([row[name] for name in TEXTS] for row in rows)
            return of_source(schema, str(here / "rows.csv"))

    assert_moves_one_cell(from_csv, schema, case)


DUCKDB = (
    "word VARCHAR COLLATE {}, whole BIGINT, exact DECIMAL(10, 2), moment TIMESTAMPTZ, "
    "size VARCHAR COLLATE {}, y VARCHAR COLLATE {}"
)


def in_duckdb(rows: list[Record], collation: str = "NOCASE") -> Any:
    engine = ibis.duckdb.connect()
    engine.con.execute(f"CREATE TABLE people ({DUCKDB.replace('{}', collation)})")
    engine.con.executemany(
        "INSERT INTO people VALUES (?, ?, ?, ?, ?, ?)", [[r[n] for n in POOLS] for r in rows]
    )
    return engine.table("people")


@pytest.mark.slow
@pytest.mark.parametrize("collation", ["NOCASE", "NOACCENT"])
@FEW
@given(case=drawn(POOLS))
def test_duckdb_with_collations(collation: str, case: Any) -> None:
    def from_duckdb(rows: list[Record]) -> list[Tables]:
        return of_source(SCHEMA, in_duckdb(rows, collation))

    assert_moves_one_cell(from_duckdb, SCHEMA, case)


SQLITE = narrow(SCHEMA, ["word", "whole", "exact", "size"])
SQLITE_POOLS = {
    **{name: POOLS[name] for name in (*SQLITE.names, "y")},
    "exact": [1.0, 2.5, 0.1, 7.25, None],
}


def in_sqlite(path: Path, rows: list[Record]) -> str:
    with sqlite3.connect(path) as connection:
        connection.execute(
            "CREATE TABLE people (word TEXT COLLATE NOCASE, whole INTEGER, exact REAL, "
            "size TEXT COLLATE NOCASE, y TEXT COLLATE NOCASE)"
        )
        many = [[r[n] for n in SQLITE_POOLS] for r in rows]
        connection.executemany("INSERT INTO people VALUES (?, ?, ?, ?, ?)", many)
    connection.close()
    return f"sqlite://{path}#people"


def from_sqlite(rows: list[Record]) -> list[Tables]:
    with folder() as here:
        return of_source(SQLITE, in_sqlite(here / "people.sqlite", rows))


@pytest.mark.slow
@FEW
@given(drawn(SQLITE_POOLS))
def test_sqlite_with_collations(case: Any) -> None:
    assert_moves_one_cell(from_sqlite, SQLITE, case)


POSTGRES = "word {}, whole bigint, exact numeric, moment timestamptz, size text {}, y text {}"


def in_postgres(url: str, rows: list[Record], word: str = "char(4)", collation: str = "") -> str:
    kinds = POSTGRES.format(f"{word} {collation}", collation, collation)
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("DROP TABLE IF EXISTS cells")
        connection.execute(f"CREATE TABLE cells ({kinds})")
        many = [[r[n] for n in POOLS] for r in rows]
        connection.cursor().executemany("INSERT INTO cells VALUES (%s, %s, %s, %s, %s, %s)", many)
    return f"{url}#cells"


@FEW
@given(case=drawn(POOLS))
@pytest.mark.parametrize("word", ["char(4)", "varchar(9)"])
def test_postgres(postgres: str, word: str, case: Any) -> None:
    def from_postgres(rows: list[Record]) -> list[Tables]:
        return of_source(SCHEMA, in_postgres(postgres, rows, word))

    assert_moves_one_cell(from_postgres, SCHEMA, case)


@pytest.fixture(scope="module")
def without_case(postgres_with_icu: str) -> str:
    """A collation under which a and A are equal."""
    with psycopg.connect(postgres_with_icu, autocommit=True) as connection:
        connection.execute(
            "CREATE COLLATION without_case (provider = icu, locale = 'und-u-ks-level2', "
            "deterministic = false)"
        )
    return 'COLLATE "without_case"'


@pytest.mark.icu
@FEW
@given(case=drawn(POOLS))
def test_postgres_with_a_nondeterministic_collation(
    postgres_with_icu: str, without_case: str, case: Any
) -> None:
    def from_postgres(rows: list[Record]) -> list[Tables]:
        return of_source(SCHEMA, in_postgres(postgres_with_icu, rows, "text", without_case))

    assert_moves_one_cell(from_postgres, SCHEMA, case)


@pytest.mark.icu
@pytest.mark.parametrize("name", ["word", "y"])
def test_twin_postgres_groups_by_a_collation(
    postgres_with_icu: str, without_case: str, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    case = ([row(**{name: "A"})] * 2, row(**{name: "a"}), 0)
    schema = narrow(SCHEMA, ["word", "whole"])

    def from_postgres(rows: list[Record]) -> list[Tables]:
        return of_source(schema, in_postgres(postgres_with_icu, rows, "text", without_case))

    assert_moves_one_cell(from_postgres, schema, case)
    collated(monkeypatch)
    with pytest.raises(MISREAD):
        assert_moves_one_cell(from_postgres, schema, case)


def test_postgres_compares_text_as_bytes(postgres: str) -> None:
    """No collation survives bytes, also on a server without ICU, where none can be tried."""
    record = {name: pool[0] for name, pool in POOLS.items()}
    table = TableSource(in_postgres(postgres, [record], "text"), SCHEMA).rows
    queries = Queries(table, SCHEMA, None, build_cells(SCHEMA, 4))
    for query in (
        queries.make_class_query(None),
        queries.make_row_query(SCHEMA.names),
    ):
        sql = ibis.to_sql(query, dialect="postgres")
        for name in ("word", "size", "y"):
            assert sql.count(f'"t0"."{name}"') == sql.count(f'CONVERT_TO("t0"."{name}" || ')


@pytest.mark.spark
@FEW
@given(case=drawn({name: POOLS[name] for name in SQLITE_POOLS}))
def test_spark(spark: Any, case: Any) -> None:
    kinds = "word string, whole bigint, exact decimal(10,2), size string, y string"

    def from_spark(rows: list[Record]) -> list[Tables]:
        many = [[r[name] for name in SQLITE_POOLS] for r in rows]
        return of_source(SQLITE, spark.createDataFrame(many, kinds))

    assert_moves_one_cell(from_spark, SQLITE, case)


def from_parts_of_spark(rows: list[Record]) -> list[Tables]:
    with folder() as here:
        in_folders(here, rows, "parquet")
        return of_source(MEMORY, f"spark:{here}")


@pytest.mark.spark
def test_names_of_folders_are_no_columns_on_spark(spark: Any) -> None:
    assert_moves_one_cell(from_parts_of_spark, MEMORY, ([LONE[0]] * 2, LONE[1], 2))
    assert_moves_one_cell(from_parts_of_spark, MEMORY, ([LONE[1]] * 2, LONE[0], 2))


@pytest.mark.spark
def test_twin_spark_reads_names_of_folders(spark: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """As it was: where a folder has such a name, files in other folders are left out."""
    monkeypatch.setattr(type(spark.read), "option", lambda reader, key, value: reader)
    with pytest.raises(MISREAD):
        assert_moves_one_cell(from_parts_of_spark, MEMORY, ([LONE[0]] * 2, LONE[1], 2))


@pytest.mark.slow
@FEW
@given(drawn(TEXTS))
def test_polars_as_an_engine(case: Any) -> None:
    """Its casts read no number with spaces around it."""

    def from_polars(rows: list[Record]) -> list[Tables]:
        frame = pl.DataFrame(rows, schema=dict.fromkeys(rows[0], pl.String))
        return of_source(TEXT, ibis.polars.connect().create_table("rows", frame))

    assert_moves_one_cell(from_polars, TEXT, case)
    rows, record, place = case
    assert_moves_one_cell(from_polars, TEXT, (rows, {**record, "size": " 7 "}, place))


# what must be refused

PLAIN = {"word": "a", "whole": 3, "exact": None, "moment": None, "size": "2", "y": "a"}


def row(**other: Any) -> Record:
    return {**PLAIN, **other}


LONE = [{n: row(folder=name)[n] for n in ("word", "size", "y", "folder")}
        for name in (".", "word=zz")]  # fmt: skip
"""A record in no folder, and one in a folder that is named after a column."""

MISREAD = (AssertionError, SchemaError, TypeError, ValueError)
"""Another cell moved, or a record that is fine was refused because of another."""


def test_twin_one_type_for_a_list(monkeypatch: pytest.MonkeyPatch) -> None:
    """NumPy gives all values of a list the type of the widest: numbers become text."""
    case = ([row(word=math.nan, size=2.0)] * 2, row(word="x", size=2.0), 2)
    assert_moves_one_cell(from_lists, MEMORY, case)
    monkeypatch.setattr(base, "_read_list", np.asarray)
    with pytest.raises(MISREAD):
        assert_moves_one_cell(from_lists, MEMORY, case)


@pytest.mark.parametrize("as_row", [np.array, deque, list])
def test_twin_one_type_for_rows_that_are_no_lists(
    monkeypatch: pytest.MonkeyPatch, as_row: Callable[[Any], Any]
) -> None:
    """Rows of numbers, and one of text: as it was, the numbers became text."""

    def from_rows(rows: list[Record]) -> list[Tables]:
        return of_memory(MEMORY, deque(as_row([r["word"], r["size"]]) for r in rows),
                         deque(r["y"] for r in rows))  # fmt: skip

    case = ([row(word=1.0, size=2.0)] * 2, row(word="x", size="2.0"), 1)
    assert_moves_one_cell(from_rows, MEMORY, case)
    monkeypatch.setattr(base, "_is_sequence", lambda values: isinstance(values, (list, tuple)))
    monkeypatch.setattr(base, "_is_row", base._is_sequence)
    with pytest.raises(MISREAD):
        assert_moves_one_cell(from_rows, MEMORY, case)


def test_rows_of_numbers_of_one_type_keep_it() -> None:
    rows = [np.array([1, 2], dtype=np.int8)] * 3
    assert base._read_list(rows).dtype == np.int8
    assert base._read_list([*rows, np.array([1, 2.5])]).tolist() == [[1, 2]] * 3 + [[1, 2.5]]


def test_whole_numbers_without_a_sign(tmp_path: Path) -> None:
    """Also of columns that go beyond 2^63 every public value is a cell of its own."""
    most = 2**63 + 5
    schema = Schema([Categorical("whole", [3, most])], "y", ["a"], unseen="other")
    for low, expected in ((3, [[1, 1, 1, 0]]), (most, [[0, 2, 1, 0]])):
        whole = pa.array([low, most, most + 1], pa.uint64())
        table, X = pa.table({"whole": whole, "y": ["a"] * 3}), whole.to_numpy().reshape(-1, 1)
        pq.write_table(table, tmp_path / f"{low}.parquet")
        held = ibis.duckdb.connect().read_parquet(tmp_path / f"{low}.parquet")
        found = [*of_source(schema, table), *of_source(schema, held)]
        found += [*of_memory(schema, table.drop_columns(["y"]), ["a"] * 3)]
        found += [*of_memory(schema, X, ["a"] * 3)]
        assert [one["whole"].tolist() for one in found] == [expected] * 6


def test_twin_one_type_for_labels(monkeypatch: pytest.MonkeyPatch) -> None:
    case = ([row(y=1.0), row(y=1)], row(y="a"), 0)
    assert_moves_one_cell(from_mixed_labels, LABELS, case)
    monkeypatch.setattr(base, "to_object_array", np.asarray)
    with pytest.raises(MISREAD):
        assert_moves_one_cell(from_mixed_labels, LABELS, case)


@pytest.mark.parametrize(
    ("first", "second"),
    [(Decimal("1.0"), Decimal("1")), (True, 1), (1, True), (1.0, True)],
)
def test_twin_equal_objects_are_one(
    monkeypatch: pytest.MonkeyPatch, first: Any, second: Any
) -> None:
    """The first spelling decides for all that are equal to it."""
    case = ([row(word=second)], row(word=first), 0)
    assert_moves_one_cell(from_object_array, MEMORY, case)
    if isinstance(first, Decimal):  # as it was: with its zeros
        monkeypatch.setattr(cells_module, "format_value", str)
        assert_moves_one_cell(from_object_array, MEMORY, case)
    monkeypatch.setattr(cells_module, "_encode_objects", cells_module._encode_distinct)
    with pytest.raises(MISREAD):
        assert_moves_one_cell(from_object_array, MEMORY, case)


@pytest.mark.slow
def test_twin_one_type_for_a_column_of_a_frame(monkeypatch: pytest.MonkeyPatch) -> None:
    case = ([row(word=True), row(word=True)], row(word="x"), 1)
    assert_moves_one_cell(from_object_source, MEMORY, case)
    monkeypatch.setattr(frames, "_has_objects", lambda column: False)
    with pytest.raises(MISREAD):
        assert_moves_one_cell(from_object_source, MEMORY, case)


@pytest.mark.slow
def test_twin_one_type_for_a_column_of_polars(monkeypatch: pytest.MonkeyPatch) -> None:
    """The type that fits all rows: text, as soon as there is one."""

    def from_polars(rows: list[Record]) -> list[Tables]:
        return of_source(MEMORY, pl.DataFrame(
            {n: pl.Series([r[n] for r in rows], dtype=pl.Object) for n in ("word", "size", "y")}
        ))  # fmt: skip

    case = ([row(word=1.0), row(word=1.0)], row(word="x"), 1)
    assert_moves_one_cell(from_polars, MEMORY, case)
    monkeypatch.setattr(frames, "_find_mixed_columns", lambda frame: {})
    monkeypatch.setattr(pl.DataFrame, "to_arrow", lambda frame: pa.table({
        c.name: pl.Series(c.to_list(), strict=False).to_arrow() for c in frame.get_columns()
    }))  # fmt: skip
    with pytest.raises(MISREAD):
        assert_moves_one_cell(from_polars, MEMORY, case)


def test_twin_a_missing_number_makes_doubles(monkeypatch: pytest.MonkeyPatch) -> None:
    schema = narrow(SCHEMA, ["whole"])

    def from_polars(rows: list[Record]) -> list[Tables]:
        return of_memory(schema, pl.from_arrow(as_arrow(rows)).select("whole"), ["a"] * len(rows))

    case = ([row(whole=BIG), row(whole=BIG + 1)], row(whole=None), 1)
    assert_moves_one_cell(from_polars, schema, case)
    monkeypatch.setattr(
        cells_module,
        "_encode_arrow",
        lambda column, index: index.__self__.encode_column(column.to_pandas()),
    )
    with pytest.raises(MISREAD):
        assert_moves_one_cell(from_polars, schema, case)


def collated(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(columns, "compare_bytewise", lambda column, name: column)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["word", "y"])
def test_twin_groups_by_a_collation(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """Spellings are merged, and one of them names the group."""
    rows = [row(**{name: "A"}), row(**{name: "A"})]
    case = (rows, row(**{name: "a"}), 0)

    def from_duckdb(rows: list[Record]) -> list[Tables]:
        return of_source(SCHEMA, in_duckdb(rows))

    assert_moves_one_cell(from_duckdb, SCHEMA, case)
    collated(monkeypatch)
    with pytest.raises(MISREAD):
        assert_moves_one_cell(from_duckdb, SCHEMA, case)


@pytest.mark.slow
def test_twin_sqlite_compares_by_a_collation(monkeypatch: pytest.MonkeyPatch) -> None:
    """Strangers that are equal to a public value are groups of their own: more than may be."""
    schema = narrow(SCHEMA, ["word"])

    def from_words(rows: list[Record]) -> list[Tables]:
        with folder() as here:
            return of_source(schema, in_sqlite(here / "people.sqlite", rows))

    words = {"".join(letters) for letters in itertools.product("tT", "rR", "uU", "eE")} - {"True"}
    rows = [row(word=word, y=y) for word in sorted(words) for y in ("a", "A")]
    case = (rows, row(word="tRuE"), 0)
    assert_moves_one_cell(from_words, schema, case)
    collated(monkeypatch)
    with pytest.raises(MISREAD):
        assert_moves_one_cell(from_words, schema, case)


@pytest.mark.slow
def test_twin_a_driver_gives_doubles(monkeypatch: pytest.MonkeyPatch) -> None:
    """SQLite's driver would give doubles where another row has no number."""
    case = ([row(whole=BIG), row(whole=BIG + 1)], row(whole=None), 0)
    assert_moves_one_cell(from_sqlite, SQLITE, case)
    monkeypatch.setattr(
        columns,
        "make_group_key",
        lambda column, cells, key=columns.make_group_key: key(column, cells),
    )

    def key_of_doubles(column: Any, cells: Cells) -> Any:
        if column.type().is_integer() and column.get_backend().name == "sqlite":
            whole_numbers = columns._list_whole_numbers(cells)
            return columns._fold_unknown_numbers(column, cells, whole_numbers, lambda whole: whole)
        return columns.make_group_key(column, cells)

    for module in ("queries", "date_expressions"):
        monkeypatch.setattr(f"discreet.tables.{module}.make_group_key", key_of_doubles)
    with pytest.raises(MISREAD):
        assert_moves_one_cell(from_sqlite, SQLITE, case)


@pytest.mark.slow
def test_twin_batches_take_another_road(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows as the engine hands them over: decimals and times are spelled otherwise."""
    rows = [row(exact=Decimal("2.50"), moment=NOON)]

    def from_duckdb(rows: list[Record]) -> list[Tables]:
        return of_source(SCHEMA, in_duckdb(rows))

    case = (rows, row(size="1_0"), 1)
    with pytest.raises(SchemaError, match="'1_0' is not a number"):
        assert_moves_one_cell(from_duckdb, SCHEMA, case)
    case = (rows, row(exact=Decimal("2.50"), size=" 7 "), 1)
    assert_moves_one_cell(from_duckdb, SCHEMA, case)
    each_row = Queries.make_row_query

    def raw(self: Queries, names: Any, unchanged: Any = ()) -> Any:
        return each_row(self, names, names)

    monkeypatch.setattr(source.Queries, "make_row_query", raw)
    monkeypatch.setattr(cells_module, "format_value", str)
    with pytest.raises(MISREAD):
        assert_moves_one_cell(from_duckdb, SCHEMA, case)


def test_engines_that_are_not_known_to_compare_bytes_are_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(DuckDB, "name", "mysql")
    with pytest.raises(SchemaError, match=r"(word|y): mysql compares text by collations"):
        counting.count(as_arrow([row()]), narrow(SCHEMA, ["word"]))
    monkeypatch.setattr(DuckDB, "name", "trino")
    assert counting.count(as_arrow([row()]), narrow(SCHEMA, ["word"])).totals.tolist() == [1, 0, 0]


def test_a_default_collation_is_refused() -> None:
    table = in_duckdb([row()])
    table.get_backend().con.execute("SET default_collation = 'nocase'")
    with pytest.raises(SchemaError, match="duckdb: its default_collation is 'nocase'"):
        counting.count(table, SCHEMA)


def test_columns_of_bytes_and_lists_are_refused_before_they_are_paid(tmp_path: Path) -> None:
    ledger = tmp_path / "budget.json"
    Ledger.create(ledger, 5.0)
    for kind, value in ((pa.binary(), b"a"), (pa.list_(pa.string()), ["a"])):
        table = pa.table({"word": pa.array([value] * 9, kind), "y": ["a"] * 9})
        nb = CentralNB(1.0, schema=narrow(SCHEMA, ["word"]), budget=ledger)
        with pytest.raises(SchemaError, match=r"word: a value is of type (bytes|list)"):
            nb.fit_source(table)
    assert Ledger(ledger).read().spent == (0.0, 0.0)


def test_a_column_of_several_types_of_sqlite_is_refused(tmp_path: Path) -> None:
    rows = [{n: row()[n] for n in SQLITE_POOLS}, {n: row(whole="x")[n] for n in SQLITE_POOLS}]
    with pytest.raises(SchemaError, match=r"whole: a column of type int64 .* SQLite .* as text"):
        counting.count(in_sqlite(tmp_path / "people.sqlite", rows), SQLITE)


def test_a_boolean_of_sqlite_that_is_a_number_is_refused(tmp_path: Path) -> None:
    schema = Schema([Categorical("flag", [True, False])], "y", ["a"])
    for last in (None, 2):
        path = tmp_path / f"{last}.sqlite"
        with sqlite3.connect(path) as connection:
            connection.execute("CREATE TABLE people (flag BOOLEAN, y TEXT)")
            many = [(0, "a"), (1, "a"), (last, "a")]
            connection.executemany("INSERT INTO people VALUES (?, ?)", many)
        connection.close()
        if last is None:
            found = counting.count(f"sqlite://{path}#people", schema)
            assert found.tables["flag"].counts.tolist() == [[1, 1, 1]]
            continue
        with pytest.raises(SchemaError, match=r"flag: a column of type boolean .* SQLite .* as 2"):
            counting.count(f"sqlite://{path}#people", schema)


def test_money_of_postgres_is_a_number(postgres: str) -> None:
    schema = Schema([Categorical("word", [1.5, 2]), Numeric("size", 0, 10)], "y", ["a"])
    with psycopg.connect(postgres, autocommit=True) as connection:
        connection.execute("DROP TABLE IF EXISTS paid")
        connection.execute("CREATE TABLE paid (word money, size money, y text)")
        connection.execute("INSERT INTO paid VALUES (1.5, 9, 'a'), (NULL, NULL, 'a')")
    for found in of_source(schema, f"{postgres}#paid"):
        assert found["word"].tolist() == [[1, 0, 1]]
        assert found["size"].tolist() == [[0, 0, 0, 1, 1]]


def test_settings_that_spell_time_otherwise_are_refused(postgres: str) -> None:
    moment = narrow(SCHEMA, ["moment"])
    table = in_duckdb([row(moment=NOON)])
    assert counting.count(table, moment).tables["moment"].counts[0, 0] == 1
    table.get_backend().con.execute("SET TimeZone = 'Asia/Tokyo'")
    with pytest.raises(SchemaError, match=r"duckdb: its timezone is 'Asia/Tokyo', .* otherwise"):
        counting.count(table, moment)
    assert counting.count(table, narrow(SCHEMA, ["word"])).totals.tolist() == [1, 0, 0]
    url = in_postgres(postgres, [row(moment=NOON)])
    assert counting.count(url, moment).tables["moment"].counts[0, 0] == 1
    with psycopg.connect(postgres, autocommit=True) as connection:
        connection.execute("ALTER ROLE CURRENT_USER SET datestyle = 'SQL, DMY'")
        try:
            with pytest.raises(SchemaError, match="postgres: its datestyle is 'SQL, DMY'"):
                counting.count(url, moment)
        finally:
            connection.execute("ALTER ROLE CURRENT_USER RESET datestyle")


def test_parts_of_different_types_are_refused(tmp_path: Path) -> None:
    """One row would make the first part text, and with it "01" of another part no longer 1."""
    schema = narrow(SCHEMA, ["word"])
    part = pa.table({"word": ["01"], "other": [1], "y": ["a"]})
    pq.write_table(part, tmp_path / "b.parquet")
    first = pa.table({"word": [1], "other": ["x"], "y": ["a"]})
    pq.write_table(first, tmp_path / "a.parquet")
    with pytest.raises(SchemaError, match=r"b.parquet: its column word has the type VARCHAR, and"):
        counting.count(str(tmp_path / "*.parquet"), schema)
    # columns that are not read may differ
    pq.write_table(first.set_column(0, "word", pa.array(["1"])), tmp_path / "a.parquet")
    found = counting.count(str(tmp_path / "*.parquet"), schema)
    assert found.tables["word"].counts[0].tolist() == [0, 0, 0, 1, 0, 0, 0, 1, 0]


def test_twin_the_first_part_decides_about_the_types(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    schema = narrow(SCHEMA, ["word"])
    monkeypatch.setattr(engines, "_refuse_differing_parts", lambda engine, source, names: None)

    def from_parts(rows: list[Record]) -> list[Tables]:
        """All rows but the last in the first part; types as pandas infers them."""
        pq.write_table(pa.table({"word": ["01"], "y": ["a"]}), tmp_path / "b.parquet")
        first = pd.DataFrame({n: [r[n] for r in rows] for n in ("word", "y")})
        if any(isinstance(r["word"], str) for r in rows):
            first["word"] = first["word"].astype(str)
        first.to_parquet(tmp_path / "a.parquet")
        return of_source(schema, str(tmp_path / "*.parquet"))

    with pytest.raises(MISREAD):
        assert_moves_one_cell(from_parts, schema, ([row(word=1)], row(word="x"), 0))
