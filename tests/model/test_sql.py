"""A model written as a SELECT predicts in DuckDB, PostgreSQL and SQLite what the model predicts."""

from __future__ import annotations

import math
import sqlite3
from collections.abc import Callable, Sequence
from typing import Any

import duckdb
import numpy as np
import psycopg
import pyarrow as pa
import pytest

from discreet import Categorical, CentralNB, Date, DatePart, NaiveBayesModel, Numeric, Schema
from discreet.datasets import make_balance_scale, make_mortgage
from discreet.errors import EstimationError, SchemaError
from discreet.estimation import estimate
from discreet.model import CellFactor, GaussianFactor
from discreet.model.export import to_sql
from discreet.model.factors import PairFactor
from discreet.model.sql_dialects import DIALECTS
from discreet.schema.cells import Cells
from discreet.schema.projection import PCA, fit_projection
from discreet.schema.schema import format_value
from discreet.tables.in_memory import count_arrays
from discreet.tables.row_batches import iter_row_batches

ODD_NAME = 'a "b"; DROP TABLE people; --\n é\\'
ODD_VALUES = ["it's", 'a "b"', "back\\slash", "', 1); --", "ü %", "x\ny", " x", "X", "x", "null"]
SQL_TYPES = {"double": "double precision", "string": "text", "int64": "bigint", "bool": "boolean"}
DIGITS = 1e-12

Rows = dict[str, list[Any]]
Run = Callable[[str, pa.Table], list[tuple[Any, ...]]]


def run_duckdb(query: str, table: pa.Table) -> list[tuple[Any, ...]]:
    with duckdb.connect() as connection:
        connection.register("people", table)
        return connection.execute(query).fetchall()


def run_sqlite(query: str, table: pa.Table) -> list[tuple[Any, ...]]:
    names = [DIALECTS["sqlite"].quote_name(name) for name in table.column_names]
    connection = sqlite3.connect(":memory:")
    declared = [
        f"{name} {'' if str(kind) == 'double' else SQL_TYPES[str(kind)]}"
        for name, kind in zip(names, table.schema.types, strict=True)
    ]
    connection.execute(f"CREATE TABLE people ({', '.join(declared)})")
    marks = ", ".join("?" * len(names))
    rows = zip(*(column.to_pylist() for column in table.columns), strict=True)
    connection.executemany(f"INSERT INTO people VALUES ({marks})", rows)
    return connection.execute(query).fetchall()


def make_postgres_runner(url: str) -> Run:
    def run(query: str, table: pa.Table) -> list[tuple[Any, ...]]:
        quote = DIALECTS["postgres"].quote_name
        declared = ", ".join(
            f"{quote(field.name)} {SQL_TYPES[str(field.type)]}" for field in table.schema
        )
        with psycopg.connect(url) as connection:
            connection.execute("DROP TABLE IF EXISTS people")
            connection.execute(f"CREATE TABLE people ({declared})")  # type: ignore[arg-type]
            with connection.cursor().copy("COPY people FROM STDIN") as copy:
                for row in zip(*(column.to_pylist() for column in table.columns), strict=True):
                    copy.write_row(row)
            return list(connection.execute(query))  # type: ignore[arg-type]

    return run


@pytest.fixture(params=["duckdb", "sqlite", "postgres"])
def engine(request: pytest.FixtureRequest) -> tuple[str, Run]:
    if request.param == "postgres":
        return request.param, make_postgres_runner(request.getfixturevalue("postgres"))
    return request.param, {"duckdb": run_duckdb, "sqlite": run_sqlite}[request.param]


@pytest.fixture(params=["duckdb", "sqlite"])
def quick_engine(request: pytest.FixtureRequest) -> tuple[str, Run]:
    return request.param, {"duckdb": run_duckdb, "sqlite": run_sqlite}[request.param]


def find_refused_rows(model: NaiveBayesModel, table: pa.Table) -> np.ndarray:
    """Which rows the model refuses, by trying every distinct value of every column alone."""
    sample = {name: [None] for name in model.inputs.names}
    is_refused = np.zeros(len(table), dtype=bool)
    for factor_name in {
        name
        for factor in (*model.factors, *model.pairs)
        for name in ([factor.name] if hasattr(factor, "name") else factor.names)
    }:
        part = [one for one in model.factors if one.name == factor_name] or None
        own = NaiveBayesModel(
            model.schema,
            model.log_prior,
            part or [CellFactor(model.pairs[0].cells[0], np.zeros((len(model.log_prior), 1)))],
        )
        column = table[factor_name].to_pylist()
        verdicts: dict[Any, bool] = {}
        for row, value in enumerate(column):
            key = (type(value), repr(value))
            if key not in verdicts:
                try:
                    own.predict({**sample, factor_name: [value]})
                    verdicts[key] = False
                except SchemaError:
                    verdicts[key] = True
            is_refused[row] |= verdicts[key]
    return is_refused


def assert_same(model: NaiveBayesModel, table: pa.Table, engine: tuple[str, Run]) -> None:
    """Predictions and probabilities are the model's; NULL exactly where it refuses a row."""
    dialect, run = engine
    keyed = table.append_column("id", pa.array(range(len(table)), pa.int64()))
    query = to_sql(model, "people", dialect=dialect, keys=["id"], with_probabilities=True)
    rows = sorted(run(query, keyed))
    is_refused = (
        np.zeros(len(table), dtype=bool)
        if model.projection is not None
        else find_refused_rows(model, table)
    )
    read = table.filter(pa.array(~is_refused))
    assert len(rows) == len(table)
    assert [row[1] is None for row in rows] == is_refused.tolist()
    assert all(probability is None for row in rows if row[1] is None for probability in row[2:])
    predicted = [row[1] for row in rows if row[1] is not None]
    probabilities = np.array([row[2:] for row in rows if row[1] is not None], dtype=float)
    expected = model.predict_proba(read)
    np.testing.assert_allclose(probabilities, expected, rtol=0, atol=DIGITS)
    ranked = np.sort(expected, axis=1)
    is_tied = ranked[:, -1] - ranked[:, -2] < DIGITS if expected.shape[1] > 1 else [False]
    differs = np.array(predicted, dtype=object) != model.predict(read)
    assert not (differs & ~np.asarray(is_tied)).any()


def make_schema(**treatment: Any) -> Schema:
    return Schema(
        [
            Categorical(ODD_NAME, ODD_VALUES),
            Categorical("level", [1, 2, 3.5]),
            Categorical("flag", [True, False]),
            Numeric("x", -1.3, 1000.7),
            Numeric("label", 0, 9, integer=True),
            Numeric("prediction", 10, 20, optional=False),
            Categorical("Unused", ["a", "b"], optional=False),
        ],
        "target",
        ["it's", "no; --", "ü"],
        missing_tokens=["?", "n/a"],
        **treatment,
    )


def draw_rows(schema: Schema, size: int, seed: int, *, odd: bool) -> pa.Table:
    rng = np.random.default_rng(seed)
    edges = [-1.3, 1000.7, 0.30000000000000004, 0.3, -1.4, 1000.8, 1e300, -5e-324]

    def draw(usual: Sequence[Any], unusual: Sequence[Any]) -> list[Any]:
        pool = [*usual, *(unusual if odd else [])]
        share = np.array([20.0] * len(usual) + [1.0] * (len(pool) - len(usual)))
        return [pool[k] for k in rng.choice(len(pool), size=size, p=share / share.sum())]

    numbers = [*np.round(rng.uniform(-1.3, 1000.7, 200), 3), None]
    columns = {
        "unread": pa.array(["?"] * size),
        "prediction": pa.array(draw([*rng.uniform(10, 20, 50)], [None, 9.99, 25.0]), pa.float64()),
        ODD_NAME: pa.array(draw([*ODD_VALUES, None], ["?", "", "N/A", "NULL", "'", "x "])),
        "level": pa.array(draw([1.0, 2.0, 3.5, None], [3.0, -0.0, 1e300]), pa.float64()),
        "flag": pa.array(draw(["true", "false", "TRUE", ""], ["True ", "yes", "1", "n/a"])),
        "x": pa.array(draw(numbers, edges), pa.float64()),
        "label": pa.array(draw([*map(float, range(10)), None], [4.5, 10.0, 1e300]), pa.float64()),
        "Unused": pa.array(["neither"] * size),
    }
    return pa.table(columns)


def make_model(schema: Schema, *, density: str | None = None, seed: int = 3) -> NaiveBayesModel:
    """A model with a pair, a temperature and tables or densities, but without one feature."""
    rng = np.random.default_rng(seed)
    cuts = {"x": [0.30000000000000004, 0.5, 10.1, 700.1], "label": 5, "prediction": 3}
    class_count = len(schema.classes)

    def draw_table(cells: Cells) -> np.ndarray:
        table = np.log(rng.dirichlet(np.ones(cells.size), class_count))
        if cells.missing_index is not None and schema.missing == "skip":
            table[:, cells.missing_index] = 0.0
        return table

    factors: list[Any] = []
    for feature in schema.features[:-1]:
        if isinstance(feature, Numeric) and density:
            middle, missing = rng.uniform(0, 20, class_count), rng.uniform(0.1, 0.2, class_count)
            is_category = feature.optional and schema.missing == "category"
            factors.append(
                GaussianFactor(
                    feature, middle, middle**2 + 3, density == "truncated",
                    missing if is_category else None,
                )
            )  # fmt: skip
        else:
            cells = Cells.from_schema(schema, feature, cuts)
            factors.append(CellFactor(cells, draw_table(cells)))
    first, second = Cells.from_schema(schema, "level"), Cells.from_schema(schema, "x", {"x": [9.5]})
    groups = ((0, 1, 0, *[-1] * (first.size - 3)), (1, 0, *[-1] * (second.size - 2)))
    pair = PairFactor((first, second), groups, rng.normal(size=(class_count, 4)))
    prior = np.log(rng.dirichlet(np.ones(class_count)))
    return NaiveBayesModel(schema, prior, factors, pairs=[pair], temperature=0.7)


@pytest.mark.parametrize("missing", ["skip", "category"])
@pytest.mark.parametrize(("outliers", "unseen"), [("error", "other"), ("clip", "error")])
@pytest.mark.parametrize("density", [None, "gaussian", "truncated"])
def test_predictions_are_those_of_the_model(
    quick_engine: tuple[str, Run], missing: str, outliers: str, unseen: str, density: str | None
) -> None:
    schema = make_schema(missing=missing, outliers=outliers, unseen=unseen)
    assert_same(
        make_model(schema, density=density), draw_rows(schema, 400, 5, odd=True), quick_engine
    )


@pytest.mark.slow
@pytest.mark.parametrize("density", [None, "gaussian"])
def test_a_hundred_thousand_rows_are_predicted_where_they_are(
    engine: tuple[str, Run], density: str | None
) -> None:
    schema = make_schema(missing="category", outliers="error", unseen="other")
    assert_same(
        make_model(schema, density=density), draw_rows(schema, 100_000, 6, odd=True), engine
    )


def draw_visits(size: int) -> tuple[Schema, pa.Table, list[str]]:
    """Rows of two dates, on which a class depends together, and a number."""
    rng = np.random.default_rng(4)
    schema = Schema(
        [
            Date("joined", "2015-01-01", "2024-12-31", by="month"),
            DatePart("visit", by="weekday"),
            Numeric("age", 0, 99, integer=True),
        ],
        "t", ["n", "p"], outliers="clip", missing="category", missing_tokens=["never"],
    )  # fmt: skip
    joined, visit = rng.integers(0, 3900, size), rng.integers(0, 7, size)
    chance = np.where((joined > 1800) ^ (visit > 3), 0.9, 0.1)
    first_day, monday = np.datetime64("2014-12-01"), np.datetime64("2024-01-01T13:30")
    table = pa.table(
        {
            "visit": pa.array(np.datetime_as_string(monday + visit * np.timedelta64(1, "D"))),
            "age": pa.array(rng.integers(0, 100, size)),
            "joined": pa.array(np.datetime_as_string(first_day + joined)),
        }
    )
    odd_rows = {"visit": "never", "age": 40, "joined": " 2020-03-01T00:10+00:30\n"}
    table = pa.concat_tables([table, pa.Table.from_pylist([odd_rows, {}], table.schema)])
    labels = np.where(rng.random(size + 2) < [*chance, 0.5, 0.5], "p", "n")
    return schema, table, labels.tolist()


@pytest.mark.slow
def test_dates_are_corrected_with_what_they_do_together(engine: tuple[str, Run]) -> None:
    schema, table, labels = draw_visits(5000)
    model = CentralNB(epsilon=20.0, schema=schema).fit(table, labels).model_
    assert {"joined", "visit"} <= {name for pair in model.pairs for name in pair.names}
    assert_same(model, table, engine)


@pytest.mark.parametrize("method", ["density", "components"])
def test_days_are_numbers(quick_engine: tuple[str, Run], method: str) -> None:
    schema, table, _ = draw_visits(200)
    rng, projection = np.random.default_rng(1), None
    if method == "components":
        sample = {name: table[name].to_pylist()[:100] for name in ("joined", "age")}
        projection = fit_projection(PCA(2), schema, sample)
        schema = projection.output_schema
    factors: list[Any] = [
        GaussianFactor(
            feature, np.array([900.0, 2000.0]), np.array([1e5, 1e6]), True, np.full(2, 0.1)
        )
        if feature.name == "joined"
        else CellFactor(cells, np.log(rng.dirichlet(np.ones(cells.size), 2)))
        for feature in schema.features
        for cells in (Cells.from_schema(schema, feature),)
    ]
    model = NaiveBayesModel(schema, np.log([0.4, 0.6]), factors, projection=projection)
    assert_same(model, table, quick_engine)


@pytest.mark.parametrize("density", [False, True])
def test_components_are_computed_in_the_query(quick_engine: tuple[str, Run], density: bool) -> None:
    rng = np.random.default_rng(2)
    schema = Schema(
        [Numeric("a", 0, 10), Numeric("b", 0, 1e6), Categorical("c", ["x", "y"])],
        "t", [0, 1], outliers="clip",
    )  # fmt: skip
    sample = {"a": rng.uniform(0, 10, 50), "b": rng.uniform(0, 1e6, 50)}
    projection = fit_projection(PCA(2), schema, sample)
    made = projection.output_schema
    factors: list[Any] = [
        CellFactor(cells, np.log(rng.dirichlet(np.ones(cells.size), 2)))
        for cells in (Cells.from_schema(made, feature, 6) for feature in made.features)
    ]
    if density:
        scale = np.array([1.5, 0.7])
        factors[1:] = [GaussianFactor(one, scale - 1, scale) for one in made.features[1:]]
    model = NaiveBayesModel(made, np.log([0.4, 0.6]), factors, projection=projection)
    table = pa.table(
        {
            "c": pa.array(["x", "y", None] * 100),
            "b": pa.array([*rng.uniform(-1e5, 2e6, 299), None], pa.float64()),
            "a": pa.array([None, *rng.uniform(-1, 11, 299)], pa.float64()),
        }
    )
    assert_same(model, table, quick_engine)


def test_what_is_impossible_stays_impossible(quick_engine: tuple[str, Run]) -> None:
    schema = Schema([Categorical("a", ["x", "y"]), Categorical("b", ["x", "y"])], "t", ["n", "p"])
    impossible = np.log([[1.0, 1e-300], [0.5, 0.5]])
    impossible[0, 1] = -math.inf
    factors = [
        CellFactor(Cells.from_schema(schema, name), np.hstack([table, np.zeros((2, 1))]))
        for name, table in (("a", impossible), ("b", impossible[::-1]))
    ]
    model = NaiveBayesModel(schema, np.log([0.5, 0.5]), factors, temperature=0.3)
    table = pa.table({"a": ["x", "x", "y", "y"], "b": ["x", "y", "x", "y"]})
    assert_same(model, table, quick_engine)


@pytest.mark.parametrize("class_count", [1, 2, 60])
def test_there_may_be_many_classes(quick_engine: tuple[str, Run], class_count: int) -> None:
    schema = Schema([Categorical("a", ["x", "y"], optional=False)], "t", range(class_count))
    cells, rng = Cells.from_schema(schema, "a"), np.random.default_rng(1)
    factor = CellFactor(cells, np.log(rng.dirichlet(np.ones(2), class_count)))
    prior = np.log(np.full(class_count, 1 / class_count))
    assert_same(
        NaiveBayesModel(schema, prior, [factor]), pa.table({"a": ["x", "y", None]}), quick_engine
    )


def test_ties_go_to_the_first_class(quick_engine: tuple[str, Run]) -> None:
    table = make_balance_scale()
    columns = {name: table.frame[name].to_numpy(dtype=object) for name in table.schema.names}
    codes = np.array(["LBR".index(label) for label in table.y], dtype=np.int32)
    model = estimate(count_arrays(table.schema, columns, codes))
    rows = pa.table({name: [str(value) for value in column] for name, column in columns.items()})
    dialect, run = quick_engine
    query = to_sql(model, "people", dialect=dialect, keys=[*columns])
    predicted = {row[:-1]: row[-1] for row in run(query, rows)}
    expected = zip(*rows.to_pydict().values(), model.predict(columns), strict=True)
    assert all(predicted[row[:-1]] == row[-1] for row in expected)


TYPED_COLUMNS = {
    "integer": "1, 2, 0, 10, NULL",
    "bigint": "1, 2, 0, 10, NULL",
    "double precision": "1.0, 2.5, -0.0, 1e10, 0.1, NULL",
    "numeric(20, 3)": "1.000, 2.500, 0.000, 0.100, NULL",
    "text": "'1', '1.0', '2.5', ' 1', 'true', 'True', '0.10', '?', '', NULL",
}
TRUTHS = "TRUE, FALSE, NULL"


@pytest.mark.slow
@pytest.mark.parametrize("kind", [*TYPED_COLUMNS, "boolean", "character(5)", "real"])
@pytest.mark.parametrize(
    "values",
    [[1, 2.5, 0, 0.1], ["1", "1.0", "true"], [True, False], ["True", "0"], ["x", "true", "True"]],
    ids=str,
)
def test_values_are_spelled_as_discreet_spells_them(
    kind: str, values: list[Any], postgres: str, tmp_path: Any
) -> None:
    """Of a column of any type, DuckDB and PostgreSQL say what discreet reads from it."""
    schema = Schema(
        [Categorical("a", values)], "t", range(8), unseen="other", missing="category",
        missing_tokens=["?"],
    )  # fmt: skip
    cells = Cells.from_schema(schema, "a")
    scores = np.full((8, cells.size), math.log(0.01))
    scores[np.arange(cells.size), np.arange(cells.size)] = 0.0  # the prediction says the cell
    model = NaiveBayesModel(schema, np.log(np.full(8, 1 / 8)), [CellFactor(cells, scores)])
    listed = {"boolean": TRUTHS, "character(5)": "'1', '2.5', 'true', NULL"}.get(
        kind, TYPED_COLUMNS.get(kind, "1.0, 2.5, 0.0, NULL")
    )
    rows = ", ".join(f"({k}, CAST({one} AS {kind}))" for k, one in enumerate(listed.split(", ")))
    create = f"CREATE TABLE typed AS SELECT * FROM (VALUES {rows}) AS listed (id, a)"
    with psycopg.connect(postgres, autocommit=True) as server:
        server.execute("DROP TABLE IF EXISTS typed")
        server.execute(create)  # type: ignore[arg-type]
        query = to_sql(model, "typed", dialect="postgres", keys=["id"])
        in_postgres = server.execute(query).fetchall()  # type: ignore[arg-type]
    with duckdb.connect(tmp_path / "typed.duckdb") as file:
        file.execute(create)
        in_duckdb = file.execute(to_sql(model, "typed", dialect="duckdb", keys=["id"])).fetchall()
    for address, predicted in (
        (f"duckdb://{tmp_path}/typed.duckdb#typed", in_duckdb),
        (f"{postgres}#typed", in_postgres),
    ):
        expected: list[tuple[Any, Any]] = []
        for batch, copies in iter_row_batches(address, schema, copies=["id"], keys=["id"]):
            predictions = model.predict(batch).tolist()
            expected += zip(copies["id"].to_pylist(), predictions, strict=True)
        assert sorted(predicted) == expected, address


@pytest.mark.parametrize(
    "written",
    ["12", " 12 ", "+1.5e1", ".5", "5.", "-3", "0x1F", "1_000", "1e5", "1e400", "inf", "-INF",
     "nan", "NaN", "?", "", "twelve", "1,5", "9" * 300, "٣"],
)  # fmt: skip
def test_numbers_in_text_are_numbers_or_refused(written: str) -> None:
    schema = Schema([Numeric("n", -5, 20)], "t", ["n", "p"], missing_tokens=["?"], outliers="clip")
    cells = Cells.from_schema(schema, "n", 25)
    rng = np.random.default_rng(0)
    model = NaiveBayesModel(
        schema, np.log([0.5, 0.5]), [CellFactor(cells, np.log(rng.dirichlet(np.ones(26), 2)))]
    )
    for dialect, run in (("duckdb", run_duckdb), ("sqlite", run_sqlite)):
        query = to_sql(model, "people", dialect=dialect, with_probabilities=True)
        ((label, *probabilities),) = run(query, pa.table({"n": [written]}))
        try:
            expected = model.predict_proba({"n": [written]})[0]
        except SchemaError:
            assert label is None
            continue
        if label is None:  # of text, a query refuses more: it is never wrong
            assert dialect == "sqlite" or len(written) > 200 or written == "1e400"
        else:
            np.testing.assert_allclose(probabilities, expected, atol=DIGITS)


def test_columns_without_a_type_and_collations_change_nothing_in_sqlite() -> None:
    schema = Schema([Categorical("a", ["x", "X"]), Numeric("n", 0, 9)], "t", [0, 1], unseen="other")
    model = make_two_cell_model(schema)
    connection = sqlite3.connect(":memory:")
    connection.execute("CREATE TABLE people (id INTEGER, a TEXT COLLATE NOCASE, n)")
    rows = [(0, "x", 1), (1, "X", 2.5), (2, "x ", "3"), (3, b"x", b"3"), (4, None, None)]
    connection.executemany("INSERT INTO people VALUES (?, ?, ?)", rows)
    query = to_sql(model, "people", dialect="sqlite", keys=["id"], with_probabilities=True)
    found = connection.execute(query).fetchall()
    expected = model.predict_proba({"a": ["x", "X", "other", None], "n": [1.0, 2.5, 3.0, None]})
    readable = [found[k][2:] for k in (0, 1, 2, 4)]
    np.testing.assert_allclose(readable, expected, atol=DIGITS)
    assert found[3][1] is None  # bytes are not a number


def make_two_cell_model(schema: Schema) -> NaiveBayesModel:
    rng, factors = np.random.default_rng(8), []
    for feature in schema.features:
        cells = Cells.from_schema(schema, feature)
        factors.append(CellFactor(cells, np.log(rng.dirichlet(np.ones(cells.size), 2))))
    return NaiveBayesModel(schema, np.log([0.3, 0.7]), factors)


NAMES = [
    'people"; DROP TABLE people; --',
    "'; --",
    "two words",
    "ü",
    "sélect",
    'a"b',
    "discreet_inputs",
]


@pytest.mark.parametrize("name", NAMES)
def test_no_name_ends_the_query(name: str) -> None:
    schema = Schema([Categorical(name, [name, "x"])], f"t{name}", [name, "no"])
    model = make_two_cell_model(schema)
    model = NaiveBayesModel(
        schema, model.log_prior, model.factors,
        model.guarantee.void_if(preparation_reason="first line\nDROP TABLE people;\r\u2028x"),
    )  # fmt: skip
    expected = model.predict({name: [name, "x"]}).tolist()
    for dialect, connection in (
        ("sqlite", sqlite3.connect(":memory:")), ("duckdb", duckdb.connect()),
    ):  # fmt: skip
        quoted = DIALECTS[dialect].quote_name(name)
        connection.execute(f"CREATE TABLE {quoted} ({quoted} TEXT, rank INTEGER)")
        connection.execute(f"INSERT INTO {quoted} VALUES (?, 0), ('x', 1)", (name,))
        query = to_sql(model, quoted if '"' in name else name, dialect=dialect, keys=["rank"])
        rows = connection.execute(f"SELECT * FROM (\n{query}) ORDER BY 1").fetchall()
        assert [row[1] for row in rows] == expected


def test_a_backslash_ends_no_text_whatever_the_setting(postgres: str) -> None:
    schema = Schema([Categorical("a", ["\\", "\\'; --", "x"])], "t", ["\\'", "no"])
    model = make_two_cell_model(schema)
    table = pa.table({"a": ["\\", "\\'; --", "x"]})
    make_postgres_runner(postgres)("SELECT 1", table)
    with psycopg.connect(postgres) as server:
        query = to_sql(model, "people", dialect="postgres", keys=["a"])
        for setting in ("on", "off"):
            server.execute(f"SET standard_conforming_strings = {setting}")
            server.execute("SET escape_string_warning = off")
            rows = dict(server.execute(query).fetchall())  # type: ignore[arg-type]
            assert [rows[one] for one in table["a"].to_pylist()] == model.predict(table).tolist()


def test_a_column_that_is_not_there_is_an_error_also_in_sqlite() -> None:
    """SQLite takes names in quotes that it does not know as text, unless a table is before them."""
    model = make_two_cell_model(Schema([Categorical("lost", ["lost", "x"])], "t", [0, 1]))
    connection = sqlite3.connect(":memory:")
    connection.execute("CREATE TABLE people (id INTEGER)")
    connection.execute("INSERT INTO people VALUES (1)")
    with pytest.raises(sqlite3.OperationalError, match="no such column"):
        connection.execute(to_sql(model, "people", dialect="sqlite"))
    twin = to_sql(model, "people", dialect="sqlite").replace('source_rows."lost"', '"lost"')
    assert connection.execute(twin).fetchall() != []


def test_labels_are_whole_numbers_where_all_are() -> None:
    rows = pa.table({"a": ["x"]})
    for classes, kind in (([3, 4], int), ([True, False], str), ([0.5, 1], str), (["3", 4.5], str)):
        model = make_two_cell_model(Schema([Categorical("a", ["x", "y"])], "t", classes))
        for dialect, run in (("duckdb", run_duckdb), ("sqlite", run_sqlite)):
            ((label,),) = run(to_sql(model, "people", dialect=dialect), rows)
            assert type(label) is kind


def test_a_view_can_be_made_of_the_query() -> None:
    model = make_two_cell_model(Schema([Numeric("n", 0, 9)], "t", ["no", "yes"]))
    with duckdb.connect() as connection:
        connection.execute("CREATE TABLE people AS SELECT 3 AS n")
        query = to_sql(model, "people", dialect="duckdb", keys=["n"], with_probabilities=True)
        connection.execute(f"CREATE VIEW predicted AS {query}")
        described = connection.execute("SELECT * FROM predicted").description
        assert [column[0] for column in described] == ["n", "prediction", "P(no)", "P(yes)"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"dialect": "oracle"}, "dialect='oracle'; write one of duckdb, postgres, sqlite"),
        ({"table": " "}, "the name of the table is empty"),
        ({"table": "a\0b"}, "holds a character that SQL has no literal for"),
        ({"keys": ["prediction"]}, "'prediction' is a column of the result"),
        ({"keys": ["P(0)"], "with_probabilities": True}, r"'P\(0\)' is a column of the result"),
    ],
)
def test_what_cannot_be_written_is_refused(arguments: dict[str, Any], words: str) -> None:
    model = make_two_cell_model(Schema([Numeric("n", 0, 9)], "t", [0, 1]))
    asked = {"table": "people", "dialect": "duckdb", **arguments}
    with pytest.raises(EstimationError, match=words):
        to_sql(model, asked.pop("table"), **asked)


def test_a_model_without_features_is_refused() -> None:
    schema = Schema([Numeric("n", 0, 9)], "t", [0, 1])
    with pytest.raises(EstimationError, match="no features"):
        to_sql(NaiveBayesModel(schema, np.log([0.5, 0.5]), []), "people", dialect="sqlite")


def test_every_digit_of_an_edge_is_kept_in_sqlite() -> None:
    """Its numbers may be off by one digit, which would move rows to the next bin."""
    dialect = DIALECTS["sqlite"]
    rng = np.random.default_rng(0)
    numbers = [0.1, 1 / 3, 2.5, -7.0, 1e300, 5e-324, *rng.uniform(-1e3, 1e3, 200)]
    connection = sqlite3.connect(":memory:")
    for number in numbers:
        ((read,),) = connection.execute(f"SELECT {dialect.write_edge(number)}")
        assert read == number


@pytest.mark.slow
def test_a_trained_model_predicts_the_same(engine: tuple[str, Run]) -> None:
    """One with corrections, from the statistics of a curator."""
    people = make_mortgage(20_000)
    model = CentralNB(epsilon=5.0, schema=people.schema).fit(people.X, people.y).model_
    assert model.pairs or model.temperature != 1
    columns = {
        name: pa.array(people.X[name], pa.float64())
        if isinstance(model.inputs[name], Numeric)
        else pa.array(map(format_value, people.X[name]), pa.string())
        for name in model.inputs.names
    }
    assert_same(model, pa.table(columns), engine)
