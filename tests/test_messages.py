"""Messages say things as their readers do: a table of (input, message)."""

from __future__ import annotations

import copy
import json
import pickle
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from discreet import (
    Categorical,
    CentralNB,
    DiscreetError,
    FederatedNB,
    FormatError,
    LocalNB,
    MixedNB,
    NaiveBayesModel,
    Numeric,
    Schema,
    SurveyNB,
)
from discreet.errors import RowError
from discreet.files.documents import dump_document
from discreet.local import make_plan
from discreet.local.plan import Plan
from discreet.model.evaluation import score_model
from discreet.statistics.statistics import Statistics
from discreet.survey import Group
from discreet.survey.questionnaire import Questionnaire
from discreet.tables import count

SCHEMA = Schema(
    [Numeric("age", 0, 120, integer=True, optional=False), Categorical("town", ["Oslo", "Rome"])],
    "ill",
    ["no", "yes"],
)
ROWS = 40
X = pd.DataFrame({"age": np.arange(ROWS) + 20, "town": ["Oslo", "Rome"] * (ROWS // 2)})
Y = np.array(["no", "yes", "yes", "no"] * (ROWS // 4), dtype=object)


def changed(column: str, value: Any, row: int = 7) -> pd.DataFrame:
    frame = X.astype(object)
    frame.loc[row, column] = value
    return frame


def with_class(value: Any, row: int = 7) -> np.ndarray:
    labels = Y.copy()
    labels[row] = value
    return labels


def refusal(call: Callable[..., Any], *arguments: Any) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with pytest.raises(DiscreetError) as caught:
            call(*arguments)
    return caught.value


ESTIMATORS: dict[str, Callable[[], Any]] = {
    "curator": lambda: CentralNB(1.0, schema=SCHEMA),
    "without noise": lambda: MixedNB(schema=SCHEMA),
    "local": lambda: LocalNB(1.0, schema=SCHEMA),
    "survey": lambda: SurveyNB(0.5, schema=SCHEMA),
    "federated": lambda: FederatedNB(1.0, schema=SCHEMA),
}
VALUES = {
    ("age", 140): "age: 140 is outside the public bounds [0, 120]; widen the schema, or set its "
    "outliers to 'clip' (row 7; the first is 0)",
    ("age", "thirty"): "age: 'thirty' is not a number; if it means missing, list it in "
    "missing_tokens; numbers are written like 1234.5 (row 7; the first is 0)",
    ("age", 30.5): "age: 30.5 is not a whole number although its integer is true; round it, or set "
    "integer to false (in one line: 0..72 real) (row 7; the first is 0)",
    ("age", None): "age: a value is missing although the feature is not optional; set optional to "
    "true in the schema (row 7; the first is 0)",
    ("town", "Paris"): "town: 'Paris' is not one of the public values (Oslo, Rome); add it to the "
    "schema, or set its unseen to 'other' (row 7; the first is 0)",
    ("town", "oslo"): "town: 'oslo' is not one of the public values (Oslo, Rome): 'oslo' differs "
    "from 'Oslo' only in case; write 'Oslo', or add it to the schema, or set its unseen to 'other' "
    "(row 7; the first is 0)",
    ("town", np.int64(3)): "town: 3 is not one of the public values (Oslo, Rome); add it to the "
    "schema, or set its unseen to 'other' (row 7; the first is 0)",
}
CLASSES = {
    "maybe": "ill: 'maybe' is not one of the public classes (no, yes); add it to the classes",
    "Yes": "ill: 'Yes' is not one of the public classes (no, yes): 'Yes' differs from 'yes' only "
    "in case; write 'yes', or add it to the classes",
    "yes ": "ill: 'yes ' is not one of the public classes (no, yes): 'yes ' differs from 'yes' "
    "only in blanks; write 'yes', or add it to the classes",
    " NO": "ill: ' NO' is not one of the public classes (no, yes): ' NO' differs from 'no' only in "
    "case and blanks; write 'no', or add it to the classes",
    np.str_("perhaps"): "ill: 'perhaps' is not one of the public classes (no, yes); add it to the "
    "classes",
    "": "ill: a row has no class; remove such rows",
    np.nan: "y contains NaN: 1 of 40 rows has no class; remove such rows",
    None: "y contains NaN: 1 of 40 rows has no class; remove such rows",
}


@pytest.mark.slow
@pytest.mark.parametrize("trust", ESTIMATORS)
def test_a_value_that_does_not_fit_is_named_with_its_row(trust: str) -> None:
    for (column, value), message in VALUES.items():
        error = refusal(ESTIMATORS[trust]().fit, changed(column, value), Y)
        assert str(error) == message
        assert isinstance(error, RowError)
        assert error.row == 7
    for label, message in CLASSES.items():
        error = refusal(ESTIMATORS[trust]().fit, X, with_class(label))
        assert str(error) == f"{message} (row 7; the first is 0)"


def test_the_first_row_is_named_wherever_others_are_wrong() -> None:
    frame = changed("town", "Paris", 30)
    frame.loc[12, "age"], frame.loc[13, "age"] = 500, -500
    error = refusal(MixedNB(schema=SCHEMA).fit, frame, Y)
    assert str(error).startswith("age: 500 is outside")
    assert str(error).endswith("(row 12; the first is 0)")
    again = pickle.loads(pickle.dumps(error))  # as from a worker process
    assert (str(again), again.row) == (str(error), 12)


@pytest.fixture(scope="module")
def model() -> NaiveBayesModel:
    return MixedNB(schema=SCHEMA).fit(X, Y).model_


@pytest.mark.slow
def test_predictions_and_scores_name_the_row(model: NaiveBayesModel) -> None:
    pl = pytest.importorskip("polars")
    for rows in (changed("town", "Paris", 9), pl.from_pandas(X.assign(town="Paris"))):
        row = 9 if isinstance(rows, pd.DataFrame) else 0
        assert str(refusal(model.predict, rows)).endswith(f"(row {row}; the first is 0)")
    arrays = {name: np.tile(X[name].to_numpy(), 2000) for name in X}  # more than a block
    arrays["age"][70_001] = 999
    assert refusal(model.predict, arrays).row == 70_001
    error = refusal(score_model, model, X, with_class("maybe", 3))
    assert str(error).endswith("add it to the classes (row 3; the first is 0)")
    one = refusal(model.explain, {"age": 140, "town": "Oslo"})
    assert "row" not in str(one)


@pytest.mark.slow
def test_rows_of_files_are_named(
    tmp_path: Path, model: NaiveBayesModel, capsys: pytest.CaptureFixture[str]
) -> None:
    from commands import run

    SCHEMA_FILE, MODEL = tmp_path / "schema.json", tmp_path / "model.json"
    SCHEMA_FILE.write_text(SCHEMA.to_json())
    MODEL.write_text(model.to_json())
    people = pd.concat([X.assign(ill=Y)] * 100, ignore_index=True)
    people.loc[3210, "town"] = "Paris"
    people.to_csv(tmp_path / "people.csv", index=False)
    people.to_parquet(tmp_path / "people.parquet")
    for name in ("people.csv", "people.parquet"):
        file = tmp_path / name
        for words in (
            ["train", file, "--schema", SCHEMA_FILE, "--epsilon", 1, "-o", tmp_path / "o.json"],
            ["predict", MODEL, file, "-o", tmp_path / "o.csv"],
            ["evaluate", MODEL, file],
        ):
            code, _, err = run(capsys, *words)
            assert code == 2
            assert "town: 'Paris' is not one of the public values" in err
            assert err.rstrip().endswith("(row 3210; the first is 0)"), words
        assert refusal(count, str(file), SCHEMA).row == 3210
    assert refusal(count, people, SCHEMA).row == 3210
    (tmp_path / "ragged.csv").write_text("age,town,ill\n30,Oslo,no\n30\n")
    code, _, err = run(capsys, "train", tmp_path / "ragged.csv", "--schema", SCHEMA_FILE,
                       "--epsilon", 1, "-o", tmp_path / "o.json")  # fmt: skip
    assert "line 3 has 1 value, but the first line names 3 columns; add what is missing" in err


ARGUMENTS: list[tuple[Callable[[], Any], str]] = [
    (lambda: CentralNB(1.0, schema=SCHEMA).fit_source(["a.csv", "b.csv"]), "a list of 2 files is "
     "given; write one pattern that matches them, such as 'part-*.csv', or put them in one file"),
    (lambda: Schema.infer(["a/x.csv", "a/y.csv"], "ill"), "such as 'a/part-*.csv'"),
    (lambda: CentralNB(1.0, schema=SCHEMA).fit(["a.csv", "b.csv"], Y), "X is the name of a file, "
     "or a list of names; read it first"),
    (lambda: CentralNB(1.0, schema=SCHEMA).fit("a.csv", Y), "X is the name of a file"),
    (lambda: CentralNB(1.0, schema=SCHEMA).fit_source(3), "rows cannot be read from a value of "
     "type int; give an array"),
    (lambda: MixedNB(schema=SCHEMA).fit(X, Y, sample_weight=[1.0] * 39 + [-2.0]), "a weight is -2; "
     "give each row a finite number of at least 0, and rows that shall not count a weight of 0 "
     "(row 39; the first is 0)"),
    (lambda: MixedNB().fit(X, with_class(np.int64(3))), "y holds text and other values, such as "
     "'no' and 3; write all classes as text (row 7; the first is 0)"),
    (lambda: CentralNB(1.0, schema=SCHEMA, allocation={"age": np.int64(-2)}).fit(X, Y),
     "allocation={'age': -2}; write"),
    (lambda: CentralNB(np.float64(-2), schema=SCHEMA).fit(X, Y), "epsilon=-2.0; write"),
    (lambda: Numeric(np.int64(3), 0, 1), "a numeric feature is named 3; write a name"),
    (lambda: Categorical("a", [np.int64(1), np.int64(1)]), "a: 1 is listed twice in values"),
    (lambda: Categorical("a", [np.datetime64("2020-01-01")]), "a: '2020-01-01' cannot be one of"),
    (lambda: Schema([Numeric("a", 0, 1)], "y", np.array([1, 1])), "y: 1 is listed twice in"),
    (lambda: Schema([Numeric("a", 0, 1)], "y", "ab", outliers="clp"), "y: classes is 'ab'; write"),
]  # fmt: skip


@pytest.mark.parametrize("case", range(len(ARGUMENTS)))
def test_arguments_are_said_as_people_write_them(case: int) -> None:
    call, message = ARGUMENTS[case]
    text = str(refusal(call))
    assert message in text
    assert "np." not in text


def test_an_array_of_one_dimension_is_refused_without_its_values() -> None:
    with pytest.raises(ValueError, match="Expected 2D array, got 1D array of 40 values") as caught:
        MixedNB().fit(X["age"].to_numpy(), Y)
    assert "20" not in str(caught.value)


def make_documents() -> dict[str, tuple[Callable[[str], Any], dict[str, Any]]]:
    """A document of each kind, and what reads it."""
    fitted = CentralNB(1.0, schema=SCHEMA, random_state=0).fit(X, Y)
    plan = make_plan(SCHEMA, 1.0, 1000)
    groups = [Group(["age"], theta=0.5), Group(["town"], theta=0.5), Group(["ill"], theta=0.5)]
    questionnaire = Questionnaire(Schema(
        [Categorical("age", ["young", "old"]), SCHEMA["town"]], "ill", ["no", "yes"]
    ), groups)  # fmt: skip
    return {
        "model": (NaiveBayesModel.from_json, json.loads(MixedNB(schema=Schema(
            [SCHEMA["town"]], "ill", ["no", "yes"])).fit(X[["town"]], Y).model_.to_json())),
        "statistics": (Statistics.from_json, json.loads(fitted.statistics_.to_json())),
        "plan": (Plan.from_json, json.loads(plan.to_json())),
        "questionnaire": (Questionnaire.from_json, json.loads(questionnaire.to_json())),
        "schema": (Schema.from_json, json.loads(SCHEMA.to_json())),
    }  # fmt: skip


PLACES: list[tuple[str, tuple[Any, ...], str]] = [
    ("model", ("factors", 0, "log_probability", 1, 0), "town.log_probability, entry 2, entry 1: "
     "it should be a valid number"),
    ("model", ("factors", 0, "kind"), "town.kind: it should be"),
    ("model", ("schema", "features", 0, "optional"), "town.optional: it should be a valid boolean"),
    ("statistics", ("totals", 0), "totals, entry 1: it should be"),
    ("statistics", ("tables", "age", "counts", 0, 1), "tables.age.counts, entry 1, entry 2: it"),
    ("statistics", ("guarantee", "charges", 0, 1), "class counts, entry 2: it should be"),
    ("plan", ("questions", 0, "weight"), "weight: it should be a valid"),
    ("questionnaire", ("questions", 0, "name"), "questions, entry 1, name: it should be"),
    ("questionnaire", ("questions", 1, "optional"), "town.optional: it should be a valid boolean"),
    ("schema", ("features", 1, "optional"), "town.optional: it should be a valid boolean"),
]  # fmt: skip


@pytest.mark.parametrize("case", range(len(PLACES)))
def test_places_in_documents_are_named(case: int) -> None:
    kind, path, message = PLACES[case]
    read, document = make_documents()[kind]
    damaged = copy.deepcopy(document)
    part = damaged
    for key in path[:-1]:
        part = part[key]
    part[path[-1]] = {}
    version = damaged.pop("version")
    damaged.pop("format")
    damaged.pop("digest", None)
    with pytest.raises(FormatError) as caught:
        read(dump_document(document["format"].removeprefix("discreet/"), version, damaged))
    assert message in str(caught.value)
    assert " is invalid at " in str(caught.value)


def test_kinds_of_documents_have_articles_and_numbers() -> None:
    from discreet.collection.announcement import Announcement

    schema = SCHEMA.to_json()
    for read, text, message in (
        (Statistics.from_json, schema, "this is not a discreet statistics file: its format says"),
        (Statistics.from_json, "[1]", "this is not a statistics file: it holds a list"),
        (Statistics.from_json, "a,b", "this is not a statistics file: it does not begin with"),
        (Statistics.from_json, '{"format": "discreet/statistics", "version": 1}', "this statistics "
         "file has version 1, this program reads version"),
        (Schema.from_json, '{"format": null}', "this is not a discreet schema: it has no format"),
        (Announcement.from_json, "[1]", "this is not an announcement: it holds a list"),
    ):  # fmt: skip
        assert message in str(refusal(read, text))
