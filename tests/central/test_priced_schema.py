"""Claims: whatever a table holds, a schema for a price can be trained with, and models say so."""

from __future__ import annotations

import json
import math
import resource
import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest

from discreet import CentralNB, FederatedNB, LocalNB, MemoryLedger, NaiveBayesModel, SurveyNB
from discreet.central.private_bounds import (
    LOG_GRID_EDGES,
    cut_empty_ends,
    find_occupied_range,
    make_bounds,
    make_equal_edges,
)
from discreet.central.private_inference import infer_private_schema
from discreet.errors import FormatError, PrivacyError, SchemaError
from discreet.privacy.guarantee import Guarantee
from discreet.schema.dates import Date, DatePart
from discreet.schema.draft_files import read_draft
from discreet.schema.drafting import SchemaDraft
from discreet.schema.inference_cost import ALL_ROWS_UNIT, InferenceCost
from discreet.schema.schema import Categorical, Numeric, Schema

ROWS = 20_000
CLASSES = np.array(["no", "yes"] * (ROWS // 2), dtype=object)
PRICED = Schema(
    [Numeric("age", 16, 96)], "ill", ["no", "yes"], inference=InferenceCost(0.25, charged="2026")
)


def write(folder: Path, **columns: Any) -> Path:
    path = folder / "people.csv"
    pd.DataFrame({**columns, "ill": CLASSES[: len(next(iter(columns.values())))]}).to_csv(
        path, index=False
    )
    return path


def infer(source: Any, epsilon: float = 1.0, **options: Any) -> Any:
    return infer_private_schema(source, "ill", **{"epsilon": epsilon, "delta": 1e-6, **options})


ODD_COLUMNS = {
    "one huge": ([*np.arange(ROWS - 1) % 100, 1e300], Numeric, (0, 130)),
    "one text": ([*np.arange(ROWS - 1) % 100, "n/a"], Numeric, (0, 130)),
    "one word": ([*np.arange(ROWS - 1) % 100, "unknown"], Numeric, (0, 130)),
    "negative": (-(np.arange(ROWS) % 100), Numeric, (-130, 0)),
    "both signs": (np.arange(ROWS) % 200 - 100, Numeric, (-130, 130)),
    "constant": (np.full(ROWS, 7), Numeric, (6, 9)),
    "zero": (np.zeros(ROWS), Numeric, (0, 1)),
    "seconds": (1_600_000_000 + np.arange(ROWS) * 1000, Numeric, (1.5e9, 1.7e9)),
    "small": (np.arange(ROWS) % 100 * 1e-7, Numeric, (0, 2e-5)),
    "booleans": (np.arange(ROWS) % 2 == 0, Categorical, ("False", "True")),
    "infinite": (["inf", "-inf", "nan", "", *np.arange(ROWS - 4) % 100], Numeric, (0, 130)),
    "rare text": ([*np.where(np.arange(ROWS - 1) % 2, "a", "b"), "c"], Categorical, ("a", "b")),
}


@pytest.mark.slow
@pytest.mark.parametrize("odd", ODD_COLUMNS)
def test_odd_records_neither_show_nor_end_a_training(odd, tmp_path):
    column, kind, domain = ODD_COLUMNS[odd]
    path = write(tmp_path, age=np.arange(ROWS) % 80, odd=pd.Series(list(column), dtype=object))
    schema = infer(path).schema
    feature = schema["odd"]
    assert isinstance(feature, kind)
    if isinstance(feature, Numeric):
        low, high = domain
        assert low <= feature.lower < feature.upper <= high
    else:
        assert feature.values == domain
    if odd != "one word":  # which training names, as with any schema of numbers
        model = CentralNB(1.0, schema=schema).fit_source(path)
        assert model.guarantee_.epsilon == 2.0


@pytest.mark.slow
def test_columns_in_which_nothing_stands_out_are_left_out_with_a_reason(tmp_path):
    path = write(
        tmp_path,
        age=np.arange(ROWS) % 80,
        nothing=np.full(ROWS, ""),
        name=[f"person {i}" for i in range(ROWS)],
    )
    inference = infer(path)
    assert inference.schema.names == ["age"]
    assert "neither numbers nor text stand out" in inference.left_out["nothing"]
    assert "as in identifiers" in inference.left_out["name"]
    without_delta = infer(path, delta=0, classes=["no", "yes"])
    assert "without a delta" in without_delta.left_out["name"]
    with pytest.warns(UserWarning, match="left out of the schema: nothing: neither"):
        Schema.infer(path, "ill", epsilon=1.0, delta=1e-6)


@pytest.mark.slow
def test_a_table_without_rows_or_with_few_ends_with_a_sentence(tmp_path):
    path = write(tmp_path, age=[], name=[])
    with pytest.raises(SchemaError, match=r"ill: fewer than two classes .* was paid for"):
        infer(path)
    with pytest.raises(SchemaError, match="no feature could be inferred, and this was paid for"):
        infer(write(tmp_path, age=[30.0, 40.0]), classes=["no", "yes"], epsilon=0.01)


@pytest.mark.slow
def test_a_million_different_texts_take_no_more_memory_than_some(tmp_path):
    pd.DataFrame(
        {
            "name": [f"somebody with number {i}" for i in range(1_000_000)],
            "age": np.arange(1_000_000) % 80,
            "ill": np.resize(CLASSES, 1_000_000),
        }
    ).to_parquet(tmp_path / "people.parquet")
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    schema = infer(tmp_path / "people.parquet", delta=1e-12).schema
    assert schema.names == ["age"]
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 600_000, "in KiB"


# ---- what has to be given


def make_frame() -> pd.DataFrame:
    rows = np.arange(2_000)
    return pd.DataFrame(
        {
            "age": rows % 70 + 18.0,
            "contract": np.where(rows % 3, "month", "year"),
            "smokes": rows % 2 == 0,
            "visits": rows % 9,
            "when": pd.Timestamp("2026-01-01"),
            "ill": np.resize(CLASSES, 2_000),
        }
    )


def test_without_a_delta_everything_that_is_missing_is_named_before_anything_is_paid():
    budget = MemoryLedger(1.0)
    with pytest.raises(
        SchemaError, match=r"the values of contract and the classes of ill .*--classes no,yes"
    ):
        Schema.infer(make_frame(), "ill", epsilon=0.1, budget=budget)
    assert not budget.read().entries


@pytest.mark.slow
def test_what_is_known_costs_nothing_and_declared_types_are_public():
    with pytest.warns(UserWarning, match="when: which dates it holds is not inferred"):
        schema = Schema.infer(
            make_frame(),
            "ill",
            epsilon=1.0,
            classes=["no", "yes"],
            columns={"contract": ["month", "year", "two years"], "age": "0..120 real"},
        )
    assert schema["age"] == Numeric("age", 0, 120)
    assert schema["smokes"] == Categorical("smokes", [False, True])
    assert schema["contract"] == Categorical("contract", ["month", "year", "two years"])
    visits = schema["visits"]
    assert isinstance(visits, Numeric)
    assert visits.integer
    assert visits.upper.is_integer()
    assert CentralNB(1.0, schema=schema).fit(
        make_frame().drop(columns="ill"), make_frame()["ill"]
    ).guarantee_.epsilon == 2.0  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("convert", [pl.from_pandas, lambda frame: frame])
def test_a_draft_says_what_is_used_and_what_is_open(convert, tmp_path):
    frame = make_frame()
    draft = SchemaDraft.from_frame(frame.drop(columns=["when", "visits"]), "ill")
    path = tmp_path / "draft.yaml"
    path.write_text(draft.to_yaml().replace("contract: [FILL-IN]", "contract: [month, year]"))
    schema = infer_private_schema(
        convert(frame), epsilon=1.0, like=path, classes=["no", "yes"]
    ).schema
    assert schema.names == ["age", "contract", "smokes"]
    assert schema.target == "ill"
    assert schema["contract"].values == ("month", "year")  # type: ignore[union-attr]
    again = infer_private_schema(frame, epsilon=1.0, like=replace(schema, features=(
        Numeric("age"), *schema.features[1:]), inference=None))  # fmt: skip
    assert again.schema.names == schema.names


OPEN_DRAFT = """
format: discreet/schema
version: 2
target: {ill: [no, yes]}
features: {age: FILL-IN, contract: [month, year]}
"""


def write_likes(folder: Path) -> list[Any]:
    """Schemas and drafts whose categories or bounds came from data."""
    texts = {
        "open.yaml": OPEN_DRAFT + "inferred: true\n",
        "priced.yaml": OPEN_DRAFT + "inference: {epsilon: 1}\n",
        "whole.yaml": PRICED.to_yaml(),
    }
    for name, text in texts.items():
        (folder / name).write_text(text)
    return [PRICED, replace(PRICED, inference=None, inferred=True), *map(folder.joinpath, texts)]


def test_what_was_inferred_before_does_not_pass_for_known(tmp_path):
    paid: list[Guarantee] = []
    for like in write_likes(tmp_path):
        with pytest.raises(SchemaError, match="was inferred from data"):
            infer(make_frame(), charge=paid.append, like=like)
    assert not paid


@pytest.mark.slow
def test_twin_a_draft_that_forgets_where_it_is_from(monkeypatch, tmp_path):
    """Known bad: the categories are free, and the models of the schema do not say so."""
    monkeypatch.setattr("discreet.schema.draft_files._require_known", lambda *given: None)
    for like in write_likes(tmp_path)[2:4]:
        schema = infer(make_frame(), like=like).schema
        assert schema["contract"].values == ("month", "year")
        assert schema.inference.epsilon == 1.0, "what the categories cost is nowhere"
        assert not schema.inferred


def test_open_places_of_a_draft_in_one_line_a_column_are_read(tmp_path):
    path = tmp_path / "draft.yaml"
    path.write_text(
        "format: discreet/schema\nversion: 2\ntarget: {ill: [FILL-IN]}\nfeatures:\n"
        "  age: FILL-IN..FILL-IN whole\n  weight: FILL-IN..FILL-IN real, never missing\n"
        "  contract: [FILL-IN]\n  odd: FILL-IN\n  joined: FILL-IN..FILL-IN by month\n"
    )
    draft = read_draft(path)
    assert (draft.target, draft.classes) == ("ill", None)
    age, weight, contract, odd, joined = draft.columns
    assert (age.kind, age.integer, age.optional) == ("numeric", True, True)
    assert (weight.kind, weight.integer, weight.optional) == ("numeric", False, False)
    assert (contract.kind, odd.kind) == ("categorical", "")
    assert (joined.kind, joined.by) == ("date", "month")
    assert all(column.open_fields for column in draft.columns)


def test_a_draft_keeps_how_values_are_spelled(tmp_path):
    path = tmp_path / "draft.yaml"
    for bounds in ("FILL-IN..FILL-IN", "0..9"):
        path.write_text(
            "format: discreet/schema\nversion: 2\ntarget: {ill: [no, yes]}\n"
            f"features: {{age: {bounds} whole, code: [012, 1.10, no]}}\n"
        )
        assert read_draft(path).columns[1].values == ("012", "1.10", "no")


def test_a_value_that_is_spelled_as_the_mark_of_an_open_place_is_left_out(tmp_path):
    values = np.resize(["FILL-IN", "a", "b"], 3_000)
    schema = infer(write(tmp_path, x=values), epsilon=20.0).schema
    assert schema["x"].values == ("a", "b")
    assert Schema.from_json(schema.to_json()) == schema


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"drop": ["nobody"]}, "there is no column 'nobody'"),
        ({"drop": "age"}, "write a list of columns"),
        ({"columns": {"age": "9..3"}}, "lower 9 is not below upper 3"),
        ({"columns": {"age": "9-30"}}, "write age: 9..30"),
        ({"columns": {"ill": ["no", "yes"]}}, "there is no column .ill. besides the class"),
        ({"columns": {"contract": []}}, "values is empty"),
        ({"missing_tokens": "?"}, "write a list"),
        ({"epsilon": math.inf}, "infinite epsilon"),
        ({"epsilon": -1.0}, "epsilon is -1.0"),
        ({"delta": 1.5}, "delta is 1.5"),
        ({"rows_per_person": 2}, "needs person="),
        ({"person": "nobody"}, "the table lacks the column nobody"),
        ({"person": "ill"}, "cannot be the class as well"),
        ({"like": SchemaDraft((), "sick")}, "the draft's target is sick, not ill"),
        ({"like": SchemaDraft((), "ill")}, "no column is left"),
    ],
)
def test_wrong_requests_are_refused_before_anything_is_paid(options, words):
    paid: list[Guarantee] = []
    with pytest.raises((SchemaError, PrivacyError), match=words):
        infer(make_frame(), charge=paid.append, **options)
    assert not paid


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["pandas", "polars", "parquet", "csv", "sqlite", "like"])
def test_a_described_column_of_dates_is_used_and_another_is_left_out(kind, tmp_path):
    """A declared type of dates is public; of a CSV file dates are text, as in an identifier."""
    days = pd.Timestamp("2020-01-01") + pd.to_timedelta(np.arange(2_000), unit="D")
    frame = make_frame()[["age", "ill"]].assign(when=days, joined=days, visited=days)
    lines = {"joined": "2019-01-01..2026-12-31 by year, never missing", "visited": "by weekday"}
    options: dict[str, Any] = {"columns": lines}
    source: Any = {"polars": pl.from_pandas}.get(kind, lambda table: table)(frame)
    if kind == "parquet":
        frame.to_parquet(source := tmp_path / "t.parquet")
    elif kind == "csv":
        frame.to_csv(source := tmp_path / "t.csv", index=False)
    elif kind == "sqlite":
        with closing(sqlite3.connect(tmp_path / "t.sqlite")) as connection:
            frame.to_sql("t", connection, index=False)
        source = f"sqlite://{tmp_path}/t.sqlite#t"
    elif kind == "like":
        draft = SchemaDraft.from_frame(frame, "ill").to_yaml()
        for name, line in lines.items():
            draft = draft.replace(f"{name}: FILL-IN..FILL-IN by month", f"{name}: {line}")
        (tmp_path / "draft.yaml").write_text(draft)
        options = {"like": tmp_path / "draft.yaml"}
    inference = infer_private_schema(
        source, "ill", epsilon=1.0, delta=1e-6, classes=["no", "yes"], **options
    )
    schema, reason = inference.schema, inference.left_out["when"]
    assert schema["joined"] == Date("joined", "2019-01-01", "2026-12-31", "year", optional=False)
    assert schema["visited"] == DatePart("visited", by="weekday")
    assert "--column 'visited: 2015-01-01..2026-12-31 by month'" in reason
    assert ("as in identifiers" in reason) == (kind == "csv")
    model = CentralNB(1.0, schema=schema).fit(frame.drop(columns="ill"), frame["ill"])
    assert model.guarantee_.epsilon == 2.0
    known = replace(schema, features=(Numeric("age"), *schema.features[1:]), inference=None)
    again = infer_private_schema(frame, epsilon=1.0, like=known)
    assert again.schema["visited"] == schema["visited"]


def test_nothing_to_infer_is_said():
    with pytest.raises(SchemaError, match="nothing to infer"):
        infer(make_frame()[["smokes", "ill"]], classes=["no", "yes"])


def test_arrays_have_no_names():
    with pytest.raises(SchemaError, match="no names of columns"):
        infer(np.zeros((3, 2)))


# ---- the account


@pytest.mark.slow
def test_a_schema_is_charged_once_and_its_models_include_it(tmp_path):
    budget = MemoryLedger(3.0, 1e-5)
    path = write(tmp_path, age=np.arange(ROWS) % 80)
    schema = Schema.infer(path, "ill", epsilon=0.5, delta=1e-6, budget=budget)
    model = CentralNB(1.0, schema=schema, budget=budget).fit_source(path)
    entries = budget.read().entries
    assert [entry.epsilon for entry in entries] == [0.5, 1.0]
    assert [entry.delta for entry in entries] == [1e-6, 0.0]
    assert entries[0].what == "schema inference"
    guarantee = model.guarantee_
    assert (guarantee.epsilon, guarantee.delta) == (1.5, 1e-6)
    assert guarantee.is_private
    assert [charge.name for charge in guarantee.charges][-1] == "schema"
    assert NaiveBayesModel.from_json(model.model_.to_json()).guarantee == guarantee
    assert Schema.from_json(schema.to_json()) == schema
    assert "what was inferred for its price" in str(guarantee)


X = np.random.default_rng(0).integers(16, 96, (300, 1))
Y = np.where(X[:, 0] > 50, "yes", "no")
ESTIMATORS = {
    "central": (CentralNB(1.0), 1.25),
    "central with delta": (CentralNB(1.0, delta=1e-6), 1.25),
    "local": (LocalNB(1.0), 1.5),
    "survey": (SurveyNB(), None),
    "federated": (FederatedNB(1.0), 1.25),
    "federated, probabilities": (FederatedNB(1.0, mode="probabilities"), 1.25),
    "federated, columns": (FederatedNB(1.0, partition="vertical"), 1.5),
}


def check_inclusion(way: str) -> None:
    estimator, total = ESTIMATORS[way]
    budget = MemoryLedger(9.0, 1e-5)
    alone = estimator.set_params(schema=replace(PRICED, inference=None), budget=None).fit(X, Y)
    fitted = estimator.set_params(schema=PRICED, budget=budget)
    alone_epsilon = alone.guarantee_.epsilon
    fitted.fit(X, Y)
    replaces = fitted.guarantee_.neighbours == "replace"
    expected = alone_epsilon + (0.5 if replaces else 0.25) if total is None else total
    assert fitted.guarantee_.epsilon == pytest.approx(expected)
    assert fitted.model_.guarantee.epsilon == fitted.guarantee_.epsilon
    assert fitted.guarantee_.is_private
    (entry,) = budget.read().entries
    assert entry.epsilon == pytest.approx(alone_epsilon), "the schema was charged before"


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("way", ESTIMATORS)
def test_every_way_to_a_model_includes_what_its_schema_cost(way):
    check_inclusion(way)


@pytest.mark.filterwarnings("ignore")
def test_twin_a_guarantee_that_forgets_its_schema_is_noticed(monkeypatch):
    monkeypatch.setattr(Guarantee, "include_schema", lambda self, schema: self)
    with pytest.raises(AssertionError):
        check_inclusion("central")


def test_a_price_is_included_once_and_never_left_out():
    guarantee = Guarantee(1.0)
    included = guarantee.include_schema(PRICED)
    assert included.include_schema(PRICED) == included
    assert included.epsilon == 1.25
    dearer = replace(PRICED, inference=InferenceCost(0.5))
    assert included.include_schema(dearer).epsilon == 1.75, "another price is another promise"
    parallel = included.compose_parallel(Guarantee(1.2))
    assert parallel.include_schema(PRICED).epsilon >= 1.45
    assert included.compose_sequential(Guarantee(1.0)).include_schema(PRICED).epsilon == 2.25
    assert Guarantee.make_unprotected().include_schema(PRICED).epsilon == math.inf
    local = Guarantee(1.0, neighbours="replace", trust="local").include_schema(PRICED)
    assert (local.epsilon, local.trust) == (1.5, "central")


def test_a_schema_of_other_people_is_assumed_to_be_so():
    others = replace(PRICED, inference=InferenceCost(0.25, same_people=False))
    guarantee = Guarantee(1.0).include_schema(others)
    assert guarantee.epsilon == 1.0
    assert "nobody here was in the table from which the schema was inferred" in str(guarantee)
    assert guarantee.include_schema(others) == guarantee


def test_a_schema_by_rows_is_refused_where_all_rows_of_a_person_are_promised():
    guarantee = Guarantee(1.0, unit=f"{ALL_ROWS_UNIT}, of which at most 3 are used")
    with pytest.raises(PrivacyError, match="infer it again with person="):
        guarantee.include_schema(PRICED)
    by_person = replace(PRICED, inference=InferenceCost(0.25, unit=ALL_ROWS_UNIT))
    assert guarantee.include_schema(by_person).unit == guarantee.unit


def test_what_does_not_go_together_is_refused_before_it_is_paid():
    budget, frame = MemoryLedger(9.0), pd.DataFrame({"age": X[:, 0], "id": np.arange(300) // 2})
    for options in ({}, {"person_weighting": False}, {"delta": 1e-6}):
        nb = CentralNB(1.0, schema=PRICED, person="id", rows_per_person=3, budget=budget, **options)
        with pytest.raises(PrivacyError, match="infer it again with person="):
            nb.fit(frame, Y)
    assert not budget.read().entries
    assert Guarantee(1e300).include_schema(PRICED).epsilon == 1e300


def test_a_schema_by_persons_is_for_whole_records_too():
    by_person = replace(PRICED, inference=InferenceCost(0.25, unit=ALL_ROWS_UNIT))
    assert Guarantee(1.0).include_schema(by_person).unit == Guarantee(1.0).unit
    local = Guarantee(1.0, unit="everything that one person answers", trust="local")
    assert local.include_schema(by_person).unit == f"{local.unit}; {ALL_ROWS_UNIT}"


@pytest.mark.slow
def test_a_seed_ends_the_promise_of_the_schema_and_of_its_models():
    frame = make_frame()[["age", "ill"]]
    inference = infer(frame, random_state=3)
    assert not inference.guarantee.is_private
    assert inference.schema.inference.simulated
    nb = CentralNB(1.0, schema=inference.schema).fit(frame[["age"]], frame["ill"])
    assert not nb.guarantee_.is_private
    with pytest.raises(PrivacyError, match="void"):
        CentralNB(1.0, schema=inference.schema, budget=MemoryLedger(9.0)).fit(
            frame[["age"]], frame["ill"]
        )
    with pytest.raises(PrivacyError, match="void"):
        Schema.infer(frame, "ill", epsilon=1.0, delta=1e-6, random_state=3, budget=MemoryLedger(9))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"epsilon": -1.0}, "inference: epsilon -1.0"),
        ({"rho": -1.0}, "rho is -1.0"),
        ({"x": 1}, "x"),
    ],
)
def test_a_wrong_price_in_a_file_is_refused(change, words):
    body = json.loads(PRICED.to_json())
    body["inference"] |= change
    with pytest.raises((SchemaError, FormatError), match=words):
        Schema.from_json(json.dumps(body))


@pytest.mark.slow
def test_people_with_several_rows_count_once(tmp_path):
    visits = np.repeat(np.arange(4_000), 5)
    path = write(tmp_path, who=visits, age=visits % 80 + 10.0)
    schema = infer(path, person="who").schema
    assert schema.names == ["age"]
    assert schema.inference.unit == ALL_ROWS_UNIT
    assert "who" not in schema.to_json()


# ---- bounds


def test_the_first_grid_covers_all_doubles_and_is_the_same_for_every_table():
    edges = np.array(LOG_GRID_EDGES)
    assert (np.diff(edges) > 0).all()
    assert 0.0 in edges
    assert len(edges) < 300
    assert (edges == -edges[::-1]).all()
    assert all(math.frexp(edge)[0] in (0, 0.5, -0.5) for edge in edges)


@pytest.mark.parametrize("gaussian", [False, True])
def test_without_anybody_no_range_is_found_but_once_in_a_hundred(gaussian):
    from fractions import Fraction

    from discreet import CryptoRandom
    from discreet.central.budget import IntegerNoise

    noise, random = IntegerNoise(Fraction(50 if not gaussian else 5000), gaussian), CryptoRandom()
    empty = np.zeros(len(LOG_GRID_EDGES) + 1, dtype=np.int64)
    found = sum(
        find_occupied_range(noise.add(empty, random), LOG_GRID_EDGES, noise) is not None
        for _ in range(200)
    )
    assert found <= 12, "2 are expected; 13 come with a chance below 1e-6"


def test_ends_are_cut_where_the_noise_allows_it():
    from fractions import Fraction

    from discreet.central.budget import IntegerNoise

    edges = make_equal_edges(0.0, 64.0)
    counts = np.zeros(66, dtype=np.int64)
    counts[1 + 16 : 1 + 33] = 1_000
    exact, noisy = IntegerNoise(Fraction(0)), IntegerNoise(Fraction(100))
    assert cut_empty_ends(counts, edges, exact) == (16.0, 33.0)
    assert cut_empty_ends(counts, edges, noisy) < (16.0, 33.0)
    assert cut_empty_ends(counts * 0, edges, noisy) == (0.0, 64.0)


@pytest.mark.parametrize(
    ("bounds", "integer", "expected"),
    [
        ((17.75, 91.625), True, (17, 91)),
        ((17.75, 92.0), True, (17, 91)),
        ((0.0, 1.484375), False, (0, 1.49)),
        ((-3.0, 1e6), False, (-10_000, 1_000_000)),
        ((0.0, math.ldexp(1, -192)), False, (0, 1)),
        ((5.0, 5.5), True, (5, 6)),
    ],
)
def test_bounds_are_rounded_to_what_a_person_would_write(bounds, integer, expected):
    assert make_bounds(*bounds, integer) == expected
