"""``discreet datasets``, ``export`` and ``demo``."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from click.testing import Result

from discreet import NaiveBayesModel, Schema
from discreet.cli import demo
from discreet.datasets import MORTGAGE_BAYES_ACCURACY, MORTGAGE_SCHEMA, names
from discreet.errors import MissingDependencyError

Run = Callable[..., Result]
Refused = Callable[..., str]


def test_datasets_are_listed(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("DISCREET_DATA", raising=False)
    listed = json.loads(run("datasets", "list", "--json").stdout)["datasets"]
    by_name = {one["name"]: one for one in listed}
    assert set(by_name) == {*names(), "mortgage", "mortgage_table"}
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


@pytest.mark.parametrize(
    ("name", "rows"), [("balance_scale", 625), ("mortgage", 300), ("mortgage_table", 10)]
)
def test_a_dataset_is_fetched_and_fits_its_schema(name: str, rows: int, run: Run) -> None:
    result = run("datasets", "fetch", name, "-o", "new/folder", "--rows", 300, "--json")
    assert result.exit_code == 0
    body = json.loads(result.stdout)
    assert body["rows"] == len(pd.read_csv(body["data"])) == rows
    Schema.read(body["schema"])
    assert run("schema", "check", body["schema"], body["data"]).exit_code == 0


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


def test_the_demo_tells_a_newcomer_everything(run: Run) -> None:
    result = run("demo", "--rows", 500, "--out", "fresh", "--seed", 3)
    assert result.exit_code == 0
    for part in ("epsilon", "full trust", "No privacy", "log-odds", "rather than", "±"):
        assert part in result.stdout
    assert result.stderr == ""
    next_steps = [line.split() for line in result.stdout.splitlines() if "fresh/" in line]
    assert len(next_steps) == 4
    for step in next_steps:
        assert step[0] == "discreet"
        assert run(*step[1:]).exit_code == 0


def test_the_demo_for_scripts(run: Run) -> None:
    result = run("demo", "--rows", 2000, "--json", "--out", "fresh")
    body = json.loads(result.stdout)
    by_trust = {row["trust"]: row for row in body["table"]}
    assert len(by_trust) == len(demo.ROWS)
    full, none = by_trust["full trust"], by_trust["none needed"]
    assert full["epsilon"] == "inf"
    assert none["interval"][1] < full["interval"][0]
    assert full["accuracy"] < by_trust["(the truth)"]["accuracy"] + 0.02
    assert by_trust["(the truth)"]["accuracy"] == MORTGAGE_BAYES_ACCURACY
    assert Schema.read(body["files"]["schema.json"]) == MORTGAGE_SCHEMA
    evaluated = run("evaluate", "fresh/model.json", "fresh/others.csv", "--json").stdout
    assert json.loads(evaluated)["accuracy"] == full["accuracy"]


def test_the_demo_fits_into_eighty_columns(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    lines = run("demo", "--rows", 500).stdout.splitlines()
    assert max(map(len, lines)) <= 80


@pytest.mark.slow
def test_the_demo_is_the_same_again(run: Run) -> None:
    assert run("demo", "--rows", 50).stdout == run("demo", "--rows", 50).stdout
    assert run("demo", "--rows", 50).stdout != run("demo", "--rows", 50, "--seed", 1).stdout


def test_another_trust_model_is_one_more_function(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    def central(stage: demo.Stage) -> demo.Row:
        return demo.Row("one curator", "the curator", 1.0, 0.8, (0.79, 0.81), "noise is added")

    monkeypatch.setattr(demo, "ROWS", [*demo.ROWS, central])
    assert "one curator" in run("demo", "--rows", 50).stdout
