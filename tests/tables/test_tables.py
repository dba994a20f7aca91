"""Claims: wherever rows lie, the same numbers come out; what does not fit the schema is refused."""

from __future__ import annotations

import csv
import gzip
import math
import random
from collections import Counter
from pathlib import Path
from typing import Any

import duckdb
import ibis
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from comparisons import assert_same_statistics
from discreet.errors import DiscreetError, FormatError, SchemaError
from discreet.schema.cells import Cells, Grid, is_missing
from discreet.schema.schema import Categorical, Numeric, Schema, format_value
from discreet.statistics.statistics import Statistics
from discreet.tables.counting import count, pair_features
from discreet.tables.engines import iter_arrow_batches, open_table
from discreet.tables.in_memory import CountRequest

Row = dict[str, Any]

SCHEMA = Schema(
    features=[
        Categorical("zip", ["05", "5", "07", 'a "b", c', "ü ß"]),
        Categorical("level", [1, 2, 3, 40]),
        Categorical("flag", [True, False]),
        Numeric("age", 18, 99, integer=True),
        Numeric("income", -1.3, 1000.7),
        Numeric("score", 0.1, 0.9),
    ],
    target="class",
    classes=["no", "yes, sir", "never"],
    outliers="clip",
    unseen="other",
    missing_tokens=["?"],
)
BINS = {"age": 5, "income": [0.30000000000000004, 0.5, 10.0, 700.1], "score": 7}


def some_rows(seed: int, size: int) -> list[Row]:
    """Rows with missing values, tokens, strangers, outliers, and numbers on the edges of bins."""
    chance = random.Random(seed)
    edges = [0.30000000000000004, 0.3, 0.5, 10.0, 700.1, -5.0, 2000.0, -1.3, 1000.7, math.inf]
    return [
        {
            "zip": chance.choice(["05", "5", "07", 'a "b", c', "ü ß", "?", None, "", "new", " 5"]),
            "level": chance.choice([1, 2, 3, 40, None, 7, -9]),
            "flag": chance.choice([True, False, None]),
            "age": chance.choice([None, *range(10, 120)]),
            "income": chance.choice([None, *edges, chance.uniform(-2, 1100)]),
            "score": chance.choice([None, chance.random()]),
            "class": chance.choice(["no", "no", "yes, sir"]),
        }
        for _ in range(size)
    ]


def arrow(rows: list[Row]) -> pa.Table:
    types = [pa.string(), pa.int64(), pa.bool_(), pa.int64(), pa.float64(), pa.float64()]
    names = [*SCHEMA.names, "class"]
    columns = [
        pa.array([row[name] for row in rows], type=kind)
        for name, kind in zip(names, [*types, pa.string()], strict=True)
    ]
    return pa.table(columns, names=names)


def write_csv(path: Path, rows: list[Row], delimiter: str = ",") -> Path:
    opened = gzip.open if path.suffix == ".gz" else open
    with opened(path, "wt", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, delimiter=delimiter)
        writer.writerow(rows[0])
        for row in rows:
            writer.writerow(["" if v is None else format_value(v) for v in row.values()])
    return path


def by_hand(rows: list[Row], schema: Schema, bins: Any) -> Statistics:
    """One row at a time, with nothing but a Counter and whole numbers of any size."""
    from discreet.statistics.statistics import Moments, OrderStatistics, Table

    labels = [format_value(label) for label in schema.classes]
    codes = [labels.index(format_value(row[schema.target])) for row in rows]
    classes = range(len(labels))
    tables, sums, orders = {}, {}, {}
    for feature in schema.features:
        cells = Cells.from_schema(schema, feature.name, bins)
        values = [row[feature.name] for row in rows]
        seen = Counter((c, cells.encode_value(v)) for c, v in zip(codes, values, strict=True))
        table = np.array([[seen[c, cell] for cell in range(cells.size)] for c in classes])
        tables[feature.name] = Table(cells, table)
        if isinstance(feature, Categorical):
            continue
        grid = Grid.from_feature(feature)
        found: list[list[int]] = [[] for _ in classes]
        missing = [0] * len(labels)
        for c, value in zip(codes, values, strict=True):
            if is_missing(value, schema.missing_tokens):
                missing[c] += 1
            else:
                inside = min(max(float(value), feature.lower), feature.upper)
                found[c].append(math.floor((inside - grid.lower) / grid.step + 0.5))
        levels = sorted(set().union(*map(set, found)))
        counters = [Counter(ks) for ks in found]
        order = np.array([[counter[k] for k in levels] for counter in counters], dtype=np.int64)
        orders[feature.name] = OrderStatistics(
            feature, grid, np.array(levels, dtype=np.int64), order.reshape(len(labels), -1)
        )
        sums[feature.name] = Moments(
            feature,
            np.array([len(ks) for ks in found]),
            np.array([sum(ks) for ks in found]),
            np.array([sum(k * k for k in ks) for ks in found]),
            np.array(missing),
            np.full(len(labels), grid.lower),
            grid.step,
        )
    totals = np.array([codes.count(c) for c in classes])
    return Statistics(schema, totals, tables=tables, moments=sums, order_statistics=orders)


ROWS = some_rows(1, 700)


def source_of(kind: str, rows: list[Row], folder: Path) -> Any:
    table = arrow(rows)
    third = len(rows) // 3
    parts = [rows[:third], rows[third:]]
    if kind == "records":
        return rows
    if kind == "pandas":
        return table.to_pandas()
    if kind == "pandas with categories":
        return table.to_pandas().astype({"zip": "category", "class": "category"})
    if kind == "pandas of objects":
        return pd.DataFrame(rows, dtype=object)
    if kind == "polars":
        return pl.from_arrow(table)
    if kind == "lazy polars":
        return pl.from_arrow(table).lazy()
    if kind == "arrow":
        return table
    if kind == "arrow with dictionaries":
        return table.set_column(0, "zip", table["zip"].dictionary_encode())
    if kind == "ibis":
        return ibis.memtable(table)
    if kind == "csv":
        return write_csv(folder / "rows.csv", rows)
    if kind == "csv with semicolons":
        return str(write_csv(folder / "rows.csv", rows, ";"))
    if kind == "csv.gz":
        return write_csv(folder / "rows.csv.gz", rows)
    if kind == "glob of csv":
        for index, part in enumerate(parts):
            write_csv(folder / f"part-{index}.csv", part)
        return str(folder / "part-*.csv")
    if kind == "parquet":
        pq.write_table(table, folder / "rows[1].parquet")
        return folder / "rows[1].parquet"
    assert kind == "glob of parquet"
    for index, part in enumerate(parts):
        pq.write_table(arrow(part), folder / f"part-{index}.parquet")
    return str(folder / "part-*.parquet")


KINDS = [
    *("records", "pandas", "pandas with categories", "pandas of objects", "polars"),
    *("lazy polars", "arrow", "arrow with dictionaries", "ibis", "csv", "csv with semicolons"),
    *("csv.gz", "glob of csv", "parquet", "glob of parquet"),
]


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_every_source_gives_the_numbers_that_counting_by_hand_gives(
    kind: str, tmp_path: Path
) -> None:
    source = source_of(kind, ROWS, tmp_path)
    counted = count(source, SCHEMA, CountRequest(bins=BINS, moments="grid", order=True))
    assert_same_statistics(counted, by_hand(ROWS, SCHEMA, BINS))
    assert counted.is_exact
    assert math.isinf(counted.guarantee.epsilon)


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_float_moments_are_those_of_the_arrays(kind: str, tmp_path: Path) -> None:
    finite = [row for row in ROWS if row["income"] is None or math.isfinite(row["income"])]
    source = source_of(kind, finite, tmp_path)
    frame = pd.DataFrame(finite, dtype=object)
    arrays = count(frame[[*SCHEMA.names]].to_numpy(), SCHEMA, y=frame["class"].to_numpy())
    assert_same_statistics(count(source, SCHEMA), arrays)


def test_a_frame_and_its_classes_apart_are_counted_in_memory() -> None:
    frame = arrow(ROWS).to_pandas()
    apart = count(
        frame.drop(columns="class"),
        SCHEMA,
        CountRequest(moments="grid", bins=BINS),
        y=frame["class"],
    )
    assert_same_statistics(apart, count(frame, SCHEMA, CountRequest(moments="grid", bins=BINS)))


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["pandas", "csv", "parquet"])
def test_weights_are_summed_instead_of_rows(kind: str, tmp_path: Path) -> None:
    chance = random.Random(5)
    rows = [{**row, "w": chance.choice([0.0, 0.5, 2.0])} for row in ROWS]
    rows = [row for row in rows if row["income"] is None or math.isfinite(row["income"])]
    frame = arrow(rows).append_column("w", pa.array([row["w"] for row in rows]))
    source: Any = frame.to_pandas()
    if kind == "csv":
        source = write_csv(tmp_path / "w.csv", rows)
    elif kind == "parquet":
        source = tmp_path / "w.parquet"
        pq.write_table(frame, source)
    weighted = count(source, SCHEMA, CountRequest(bins=BINS), weights="w")
    plain = frame.drop_columns(["w", "class"]).to_pandas()
    labels, numbers = frame["class"].to_pandas(), frame["w"].to_numpy()
    assert_same_statistics(
        weighted, count(plain, SCHEMA, CountRequest(bins=BINS), y=labels, weights=numbers)
    )


def test_values_far_from_zero_and_classes_far_apart_lose_no_digits() -> None:
    chance = np.random.default_rng(3)
    labels = np.repeat(["a", "b"], 5000)
    numbers = np.where(labels == "a", 1e9, -1e9) + chance.normal(size=10_000)
    schema = Schema([Numeric("x")], "y", ["a", "b"])
    frame = pd.DataFrame({"x": numbers, "y": labels})
    moments = count(frame, schema).moments["x"]
    for index, label in enumerate("ab"):
        mine = numbers[labels == label]
        assert moments.mean[index] == pytest.approx(mine.mean(), rel=1e-15)
        assert moments.variance[index] == pytest.approx(mine.var(), rel=1e-9)


@pytest.mark.slow
def test_no_rows_are_all_zeros(tmp_path: Path) -> None:
    (tmp_path / "none.csv").write_text(",".join([*SCHEMA.names, "class"]) + "\n")
    for source in (arrow([]), arrow([]).to_pandas(), tmp_path / "none.csv"):
        for moments in ("float", "grid"):
            nothing = count(source, SCHEMA, CountRequest(bins=BINS, moments=moments, order=True))
            assert not nothing.totals.any()
            assert not any(table.counts.any() for table in nothing.tables.values())
            assert all(table.counts.shape[1] > 0 for table in nothing.tables.values())


def test_a_line_that_starts_with_a_hash_is_a_row(tmp_path: Path) -> None:
    path = tmp_path / "hash.csv"
    path.write_text("c,y\n" + "a,no\n" * 50 + "#a,no\n" * 3)
    schema = Schema([Categorical("c", ["a", "#a"])], "y", ["no"])
    assert count(path, schema).tables["c"].counts.tolist() == [[50, 3, 0]]


def test_quotes_line_breaks_and_a_byte_order_mark_in_csv(tmp_path: Path) -> None:
    path = tmp_path / "odd.csv"
    path.write_bytes('\ufeffc,"y"\r\n"two\nlines",no\r\n" x ",no\r\n"say ""hi""",no\r\n'.encode())
    schema = Schema([Categorical("c", ["two\nlines", " x ", 'say "hi"'])], "y", ["no"])
    assert count(path, schema).tables["c"].counts.tolist() == [[1, 1, 1, 0]]


def test_missing_as_category_and_features_that_are_not_optional_have_their_cells() -> None:
    schema = Schema(
        [Categorical("c", ["a", "b"], optional=False), Numeric("n", 0, 4, optional=False)],
        "y",
        [0, 1],
        missing="category",
    )
    table = pa.table({"c": ["a", "b", "b"], "n": [0, 2, 4], "y": [0, 1, 1]})
    counted = count(table, schema, CountRequest(bins=2, moments="grid"))
    assert counted.tables["c"].counts.tolist() == [[1, 0], [0, 2]]
    assert counted.tables["n"].counts.tolist() == [[1, 0], [0, 2]]


def test_progress_ends_at_its_total() -> None:
    seen: list[tuple[int, int]] = []
    count(
        arrow(ROWS),
        SCHEMA,
        CountRequest(bins=BINS, moments="float", order=False),
        progress=_log(seen),
    )
    assert [done for done, _ in seen] == list(range(1, len(seen) + 1))
    assert seen[-1][0] == seen[-1][1]


def _log(seen: list[tuple[int, int]]) -> Any:
    return lambda done, total: seen.append((done, total))


def test_pairs_cover_every_feature_once_and_stay_small() -> None:
    sizes = {f"f{i}": size for i, size in enumerate([2, 3, 500, 4000, 90, 12, 9000])}
    groups = pair_features(sizes)
    assert sorted(name for group in groups for name in group) == sorted(sizes)
    assert all(len(group) == 1 or math.prod(sizes[n] for n in group) <= 10_000 for group in groups)
    assert len(groups) < len(sizes)


def test_a_column_of_junk_ends_in_an_error_or_in_other() -> None:
    junk = pa.table({"c": [f"id{i}" for i in range(200_000)], "y": ["no"] * 200_000})
    strict = Schema([Categorical("c", ["a"])], "y", ["no"])
    with pytest.raises(SchemaError, match=r"c: 'id\d+' is not one of the public values"):
        count(junk, strict)
    lenient = Schema([Categorical("c", ["a"])], "y", ["no"], unseen="other")
    assert count(junk, lenient).tables["c"].counts.tolist() == [[0, 200_000, 0]]


@pytest.mark.parametrize(
    "values", [[1, 5, 9, None], [0.5, 1.0, 9.25, math.nan], [True, False, None, True]]
)
def test_other_is_the_same_for_every_type(values: list[Any]) -> None:
    schema = Schema([Categorical("c", [1, 0.5])], "y", [0], unseen="other")
    table = pa.table({"c": values, "y": [0] * 4})
    rows = [{"c": value, "y": 0} for value in values]
    assert_same_statistics(count(table, schema), count(rows, schema))


cell = st.sampled_from(["a", "b", "?", "", None, "Z", "ü'\\\"%"])
number = st.one_of(st.none(), st.floats(-3, 3), st.sampled_from([-1.0, 0.1, 0.2, 0.3, 2.0]))
small_rows = st.lists(
    st.fixed_dictionaries({"a": cell, "b": cell, "x": number, "y": st.sampled_from(["n\\'", "p"])}),
    max_size=12,
)


@pytest.mark.slow
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(rows=small_rows)
def test_small_tables_are_counted_as_by_hand(rows: list[Row]) -> None:
    schema = Schema(
        [
            Categorical("a", ["a", "b", "ü'\\\"%"]),
            Categorical("b", ["b", "a"]),
            Numeric("x", -1.0, 2.0),
        ],
        "y",
        ["n\\'", "p"],
        outliers="clip",
        unseen="other",
        missing_tokens=["?"],
    )
    types = {"a": pa.string(), "b": pa.string(), "x": pa.float64(), "y": pa.string()}
    table = pa.table({n: pa.array([r[n] for r in rows], type=t) for n, t in types.items()})
    bins = {"x": [0.1, 0.2, 0.30000000000000004]}
    assert_same_statistics(
        count(table, schema, CountRequest(bins=bins, moments="grid", order=True)),
        by_hand(rows, schema, bins),
    )
    assert_same_statistics(count(table, schema), count(rows or {n: [] for n in types}, schema))


STRICT = Schema(
    [
        Categorical("c", ["a", "b"], optional=False),
        Numeric("n", 0, 10, integer=True, optional=False),
    ],
    "y",
    ["no", "yes"],
    missing_tokens=["?"],
)
GOOD = {"c": "a", "n": "3", "y": "no"}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("bad", "words"),
    [
        ({"c": "z"}, "c: 'z' is not one of the public values (a, b)"),
        ({"c": "?"}, "c: a value is missing although the feature is not optional"),
        ({"c": ""}, "c: a value is missing although the feature is not optional"),
        ({"n": "11"}, "n: 11 is outside the public bounds [0, 10]"),
        ({"n": "-2"}, "n: -2 is outside the public bounds [0, 10]"),
        ({"n": "inf"}, "n: inf is outside the public bounds [0, 10]"),
        ({"n": "1e300"}, "n: 1e+300 is outside the public bounds [0, 10]"),
        ({"n": "2.5"}, "n: 2.5 is not a whole number although its integer is true"),
        ({"n": "three"}, "n: 'three' is not a number; if it means missing, list it in"),
        ({"n": "?"}, "n: a value is missing although the feature is not optional"),
        ({"n": "nan"}, "n: a value is missing although the feature is not optional"),
        ({"y": "maybe"}, "y: 'maybe' is not one of the public classes (no, yes)"),
        ({"y": ""}, "y: a row has no class; remove such rows"),
        ({"y": "?"}, "y: a row has no class; remove such rows"),
    ],
)
@pytest.mark.parametrize("moments", ["float", "grid", None])
def test_what_does_not_fit_the_schema_is_refused(
    bad: Row, words: str, moments: Any, tmp_path: Path
) -> None:
    rows = [GOOD] * 5 + [{**GOOD, **bad}] + [GOOD] * 5
    with pytest.raises(SchemaError) as engine:
        count(write_csv(tmp_path / "bad.csv", rows), STRICT, CountRequest(moments=moments))
    assert words in str(engine.value)
    with pytest.raises(SchemaError) as memory:
        count(rows, STRICT, CountRequest(moments=moments))
    assert str(memory.value) == str(engine.value)


def test_a_missing_column_is_named_with_those_there_are(tmp_path: Path) -> None:
    path = write_csv(tmp_path / "few.csv", [{"c": "a", "z": "1"}])
    for source in (path, pd.DataFrame({"c": ["a"], "z": [1]}), pa.table({"c": ["a"], "z": [1]})):
        with pytest.raises(SchemaError, match="the table lacks the columns n, y; it has c, z"):
            count(source, STRICT)


def _corrupt(folder: Path) -> dict[str, tuple[Any, str]]:
    (folder / "empty.csv").write_text("")
    (folder / "ragged.csv").write_text("c,n,y\na,1,no\na,1\n")
    (folder / "long.csv").write_text("c,n,y\na,1,no\na,1,no,4\n")
    (folder / "latin.csv").write_bytes("c,n,y\na,1,no\n\xfc,1,no\n".encode("latin-1"))
    (folder / "twice.csv").write_text("c,c,y\na,1,no\n")
    (folder / "torn.csv.gz").write_bytes(gzip.compress(b"c,n,y\n" + b"a,1,no\n" * 9999)[:60])
    (folder / "plain.csv.gz").write_text("c,n,y\na,1,no\n")
    (folder / "torn.parquet").write_bytes(b"PAR1 and no more")
    (folder / "book.xlsx").write_bytes(b"PK")
    (folder / "a-1.csv").write_text("c,n,y\na,1,no\n")
    (folder / "a-2.csv").write_text("c,y,n\na,no,1\n")
    return {
        "nothing": (folder / "none.csv", "there is no such file"),
        "no match": (str(folder / "none-*.parquet"), "no file matches this pattern"),
        "folder": (folder, "is a folder; write which files you mean"),
        "empty": (folder / "empty.csv", "is empty; a CSV file starts with the names"),
        "ragged": (folder / "ragged.csv", "has 2 values"),
        "long": (folder / "long.csv", "line "),
        "latin": (folder / "latin.csv", "not text in UTF-8"),
        "twice": (folder / "twice.csv", "must name every column once, 'c' does not"),
        "torn gzip": (folder / "torn.csv.gz", "cannot be read: "),
        "no gzip": (folder / "plain.csv.gz", "cannot be read: "),
        "torn parquet": (folder / "torn.parquet", "cannot be read: "),
        "foreign": (folder / "book.xlsx", "save it as CSV"),
        "order of columns": (str(folder / "a-*.csv"), "its columns are not those of"),
    }


@pytest.mark.parametrize(
    "case",
    [
        *("nothing", "no match", "folder", "empty", "ragged", "long", "latin", "twice"),
        *("torn gzip", "no gzip", "torn parquet", "foreign", "order of columns"),
    ],
)
def test_a_file_that_cannot_be_read_gets_one_sentence(case: str, tmp_path: Path) -> None:
    source, words = _corrupt(tmp_path)[case]
    with pytest.raises(FormatError) as caught:
        count(source, STRICT)
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)
    assert "a,1" not in str(caught.value), "an error does not print private rows"


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"y": ["no"]}, "the classes are read from the column y; leave y out"),
        ({"weights": np.ones(1)}, "the weights of a table are one of its columns; give its name"),
        (
            {"weights": "w", "request": CountRequest(moments="grid")},
            "weights need moments='float'",
        ),
        ({"weights": "w"}, "w: weights must be finite and not negative"),
        ({"weights": "v"}, "v: weights must be finite and not negative"),
    ],
)
def test_odd_requests_are_refused(options: dict[str, Any], words: str) -> None:
    table = ibis.memtable(pa.table({"c": ["a"], "n": [1], "y": ["no"], "w": [-1.0], "v": [None]}))
    table = table.mutate(v=table.v.cast("float64"))
    with pytest.raises(SchemaError, match=words):
        count(table, STRICT, **options)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: count(np.zeros((2, 2)), STRICT), "an array does not hold the classes"),
        (lambda: count(np.zeros((2, 2)), STRICT, y=["no"] * 2, weights="w"), "one number per row"),
        (lambda: count(np.zeros((2, 3)), STRICT, y=["no"] * 2), "does not fit the 2 features"),
        (lambda: count([["a", 1]] * 2, STRICT, y=["no"]), "c has 2 rows, the classes 1"),
        (lambda: count(object(), STRICT), "rows cannot be read from a value of type object"),
        (lambda: count("postgres://nobody@127.0.0.1:1/x", STRICT), "which table?"),
        (lambda: open_table("postgres://nobody@127.0.0.1:1/x#t"), "the database cannot be reached"),
        (
            lambda: count(
                pa.table({"x": [1.0, math.inf], "y": [1, 1]}), Schema([Numeric("x")], "y", [1])
            ),
            "x: infinity is not allowed without bounds",
        ),
    ],
)
def test_sources_that_make_no_sense_are_refused(call: Any, words: str) -> None:
    with pytest.raises(DiscreetError) as caught:
        call()
    assert words in str(caught.value)


def test_a_duckdb_file_is_a_database(tmp_path: Path) -> None:
    rows = arrow(ROWS)
    with duckdb.connect(tmp_path / "rows.db") as engine:
        engine.register("rows", rows)
        engine.execute("CREATE TABLE people AS FROM rows")
    url = f"duckdb://{tmp_path / 'rows.db'}"
    expected = by_hand(ROWS, SCHEMA, BINS)
    assert_same_statistics(
        count(f"{url}#people", SCHEMA, CountRequest(bins=BINS, moments="grid", order=True)),
        expected,
    )
    with pytest.raises(SchemaError, match="there is no table 'nobody'; there are: people"):
        open_table(url, table="nobody")


def test_csv_is_text_unless_types_are_asked_for(tmp_path: Path) -> None:
    path = tmp_path / "typed.csv"
    path.write_text("zip,n\n5,1.5\n7,2\n")
    assert {str(kind) for kind in open_table(path).schema().types} == {"string"}
    assert {str(kind) for kind in open_table(path, typed=True).schema().types} == {
        "int64",
        "float64",
    }


def test_arrow_batches_hold_all_rows_and_no_more_than_asked() -> None:
    batches = list(iter_arrow_batches(open_table(arrow(ROWS)).select("age"), 100))
    assert sum(batch.num_rows for batch in batches) == len(ROWS)
