"""``discreet datasets``, ``export`` and ``demo``."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import pytest
from click.testing import Result

from discreet import Guarantee, NaiveBayesModel, Schema
from discreet.cli import demo
from discreet.datasets import MORTGAGE_BAYES_ACCURACY, MORTGAGE_SCHEMA, list_names
from discreet.errors import MissingDependencyError

Run = Callable[..., Result]
Refused = Callable[..., str]


def test_datasets_are_listed(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("DISCREET_DATA", raising=False)
    listed = json.loads(run("datasets", "list", "--json").stdout)["datasets"]
    by_name = {one["name"]: one for one in listed}
    assert set(by_name) == {*list_names(), "mortgage", "mortgage_table", "visits"}
    assert by_name["mortgage"]["categorical"] == by_name["mortgage"]["numeric"] == 4
    assert by_name["adult"]["source"].startswith("OpenML")
    assert by_name["balance_scale"]["source"] == "generated"
    text = run("datasets", "list").stdout
    assert "breast_cancer_wisconsin" in text
    assert "48,842" in text


@pytest.mark.data
def test_datasets_of_the_folder_are_listed_with_their_kinds(run: Run) -> None:
    listed = json.loads(run("datasets", "list", "--json").stdout)["datasets"]
    adult = next(one for one in listed if one["name"] == "adult")
    assert adult["categorical"] + adult["numeric"] == adult["features"] == 14


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "rows"),
    [("balance_scale", 625), ("mortgage", 300), ("mortgage_table", 10), ("visits", 679)],
)
def test_a_dataset_is_fetched_and_fits_its_schema(name: str, rows: int, run: Run) -> None:
    result = run("datasets", "fetch", name, "-o", "new/folder", "--rows", 300, "--json")
    assert result.exit_code == 0
    body = json.loads(result.stdout)
    assert body["rows"] == len(pd.read_csv(body["data"])) == rows
    Schema.read(body["schema"])
    assert run("schema", "check", body["schema"], body["data"]).exit_code == 0


def test_a_dataset_is_fetched_into_a_folder_of_its_name(run: Run) -> None:
    for _ in range(2):
        result = run("datasets", "fetch", "balance_scale", "-o", "balance_scale")
        assert result.exit_code == 0, result.output
    assert {path.name for path in Path("balance_scale").iterdir()} == {
        "balance_scale.csv",
        "balance_scale.schema.json",
    }


@pytest.mark.parametrize(
    ("arguments", "message"),
    [(["adlt"], "did you mean adult"), (["mortgage", "-o", "model.json"], "folder")],
)
def test_a_dataset_that_cannot_be_fetched(
    arguments: list[str], message: str, refused: Refused
) -> None:
    assert message in refused("datasets", "fetch", *arguments)


def test_an_exported_graph_predicts_the_same(run: Run) -> None:
    onnxruntime = pytest.importorskip("onnxruntime")
    result = run("export", "model.json", "--to", "onnx", "-o", "model.onnx", "--json")
    assert json.loads(result.stdout)["bytes"] == Path("model.onnx").stat().st_size
    session = onnxruntime.InferenceSession("model.onnx", providers=["CPUExecutionProvider"])
    people = pd.read_csv("others.csv")
    feed = {
        one.name: people[[one.name]].to_numpy(float if "double" in one.type else object)
        for one in session.get_inputs()
    }
    label, probabilities = session.run(None, feed)
    model = NaiveBayesModel.read("model.json")
    assert label.tolist() == model.predict(people).tolist()
    np.testing.assert_allclose(probabilities, model.predict_proba(people), rtol=0, atol=1e-9)


def test_an_exported_estimator_predicts_the_same(run: Run) -> None:
    skops = pytest.importorskip("skops.io")
    assert run("export", "model.json", "--to", "skops", "-o", "model.skops").exit_code == 0
    loaded = skops.load("model.skops", trusted=["discreet.model.export.ModelClassifier"])
    people = pd.read_csv("others.csv")
    assert (
        loaded.predict(people).tolist()
        == NaiveBayesModel.read("model.json").predict(people).tolist()
    )


def test_an_exported_query_predicts_the_same(run: Run) -> None:
    asked = ("export", "model.json", "--to", "sql", "--dialect", "duckdb", "--table", "others.csv")
    result = run(*asked, "--key", "missed_payment", "--proba", "-o", "predict.sql", "--json")
    assert json.loads(result.stdout)["bytes"] == Path("predict.sql").stat().st_size
    people = pd.read_csv("others.csv")
    with duckdb.connect() as connection:
        connection.execute("CREATE SCHEMA others")
        connection.execute("CREATE TABLE others.csv AS FROM people")
        rows = connection.execute(Path("predict.sql").read_text()).fetchall()
    model = NaiveBayesModel.read("model.json")
    expected = sorted(zip(people["missed_payment"], model.predict(people), strict=True))
    assert sorted(row[:2] for row in rows) == expected


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--to", "sql", "--table", "t"], "--to sql needs --dialect and --table"),
        (["--to", "sql", "--dialect", "sqlite"], "--to sql needs --dialect and --table"),
        (["--to", "onnx", "--key", "id"], "belong to --to sql"),
        (["--to", "sql", "--dialect", "sqlite", "--table", "t", "--key", "prediction"], "result"),
    ],
)
def test_options_of_queries_are_held_to_queries(options: list[str], words: str, run: Run) -> None:
    result = run("export", "model.json", *options, "-o", "out.sql")
    assert result.exit_code == 2
    assert words in result.stderr
    assert not Path("out.sql").exists()


def test_a_void_promise_is_said_where_a_model_is_exported(run: Run) -> None:
    model = NaiveBayesModel.read("model.json")
    void = Guarantee(1.0).void_if(simulated=True)
    Path("void.json").write_text(replace(model, guarantee=void).to_json())
    for name, warned in (("void.json", True), ("model.json", False)):
        result = run("export", name, "--to", "skops", "-o", f"{name}.skops")
        assert result.exit_code == 0
        assert ("is not kept: a seeded source" in result.stderr) is warned


def test_a_missing_extra_is_one_sentence(refused: Refused, monkeypatch: pytest.MonkeyPatch) -> None:
    def lacking(model: Any) -> bytes:
        raise MissingDependencyError("onnx", "export")

    monkeypatch.setattr("discreet.model.export.to_onnx", lacking)
    said = refused("export", "model.json", "--to", "onnx", "-o", "model.onnx")
    assert "pip install 'discreet[export]'" in said
    assert not Path("model.onnx").exists()


def test_an_export_that_cannot_be_written(refused: Refused) -> None:
    said = refused("export", "model.json", "--to", "skops", "-o", "nowhere/model.skops")
    assert "does not exist" in said


@pytest.mark.slow
def test_the_demo_tells_a_newcomer_everything(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    result = run("demo", "--rows", 1000, "--out", "fresh", "--seed", 3)
    assert result.exit_code == 0, result.output
    for part in ("At epsilon 1", "nobody", "the curator", "log-odds", "±", "Report: fresh/"):
        assert part in result.stdout
    shown, next_steps = result.stdout.split("\nNext\n")
    assert max(map(len, shown.splitlines())) <= 80
    steps = [line.split() for line in next_steps.splitlines()]
    assert len(steps) == 3
    for step in steps:
        assert step[0] == "discreet"
        assert run(*step[1:]).exit_code == 0
    promise = NaiveBayesModel.read("fresh/model.json").guarantee
    assert promise.epsilon == 1
    assert not promise.void


@pytest.mark.filterwarnings("ignore:rows of this table were fitted before")
@pytest.mark.slow
def test_the_demo_for_scripts_is_the_same_again(run: Run) -> None:
    words = ("demo", "--rows", 1000, "--json", "--out", "fresh")
    one, two = (json.loads(run(*words).stdout) for _ in range(2))
    assert {cell["trust"] for cell in one["results"]} == {"central", "federated", "survey", "local"}
    assert [c["accuracy"] for c in one["results"]] == [c["accuracy"] for c in two["results"]]
    assert one["majority"]["accuracy"] < one["non_private"]["interval"][0]
    assert one["non_private"]["accuracy"] < MORTGAGE_BAYES_ACCURACY + 0.02
    assert Schema.read(one["files"]["schema"]) == MORTGAGE_SCHEMA


@pytest.mark.slow
def test_the_demo_takes_other_tables(run: Run) -> None:
    result = run("demo", "--dataset", "balance_scale", "--out", "fresh")
    assert result.exit_code == 0, result.output
    assert "always" in result.stdout
    assert "invented" not in Path("fresh/report.html").read_text()
    assert "no benchmark table" in run("demo", "--dataset", "nothing").stderr


@pytest.mark.parametrize(
    ("environment", "terminal", "opened"),
    [({"DISPLAY": ":0"}, True, True), ({"DISPLAY": ":0"}, False, False), ({}, True, False),
     ({"DISPLAY": ":0", "CI": "1"}, True, False)],
)  # fmt: skip
def test_the_report_opens_only_where_somebody_looks(
    environment: dict[str, str], terminal: bool, opened: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("DISPLAY", "WAYLAND_DISPLAY", "CI"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr("sys.platform", "linux")
    monkeypatch.setattr("sys.stdout.isatty", lambda: terminal, raising=False)
    assert demo._has_viewer() is opened
