"""``discreet train --person``: several rows per person from files, and what is said about it."""

from __future__ import annotations

import json
import sqlite3

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

from discreet import (
    Categorical,
    NaiveBayesModel,
    Numeric,
    PrivacyWarning,
    Schema,
    score_privately,
)
from discreet.cli import main

SCHEMA = Schema([Numeric("a", -4, 4), Categorical("b", ["x", "z"])], "y", ["no", "yes"])


@pytest.fixture
def folder(tmp_path):
    rng = np.random.default_rng(0)
    y = rng.choice(["no", "yes"], 900)
    frame = pd.DataFrame(
        {
            "patient_id": [f"secret-{person}" for person in rng.integers(0, 150, 900)],
            "a": np.clip(rng.normal(size=900) + (y == "yes"), -4, 4),
            "b": rng.choice(["x", "z"], 900),
            "y": y,
        }
    )
    frame.to_csv(tmp_path / "visits.csv", index=False)
    frame.to_parquet(tmp_path / "visits.parquet")
    with sqlite3.connect(tmp_path / "visits.sqlite") as connection:
        frame.to_sql("visits", connection, index=False)
    (tmp_path / "schema.json").write_text(SCHEMA.to_json())
    return tmp_path


def run(folder, *words, data="visits.csv"):
    source = data.format(folder) if "://" in data else str(folder / data)
    given = ["train", source, "--schema", str(folder / "schema.json"), "--epsilon", "1"]
    return CliRunner().invoke(main, [*given, "-o", str(folder / "model.json"), *words])


PERSON = ("--person", "patient_id", "--rows-per-person", "3")


@pytest.mark.slow
@pytest.mark.parametrize(
    "data", ["visits.csv", "visits.parquet", "sqlite://{}/visits.sqlite#visits"]
)
def test_all_rows_of_a_person_are_promised_from_every_source(folder, data):
    budget = ("--budget-file", str(folder / "ledger.json"), "--budget-total", "2")
    statistics = ("--statistics", str(folder / "statistics.json"))
    result = run(folder, *PERSON, *budget, *statistics, data=data)
    assert result.exit_code == 0, result.output
    assert "all rows of one person (of which at most 3 are used" in result.output
    guarantee = NaiveBayesModel.read(folder / "model.json").guarantee
    assert guarantee.is_private
    assert "at most 3 are used" in guarantee.unit
    for file in ("model.json", "statistics.json", "ledger.json"):
        written = (folder / file).read_text()
        assert "secret-" not in written
        assert "patient_id" not in written
    assert "secret-" not in result.output


def test_a_table_whose_ids_repeat_is_warned_about_once(folder):
    result = run(folder)
    assert result.exit_code == 0, result.output
    assert result.stderr.count("PrivacyWarning: patient_id repeats and looks like an id") == 1
    assert "patient_id" not in (folder / "model.json").read_text()
    (folder / "model.json").unlink()
    result = run(folder, *PERSON, "--json")
    assert "looks like an id" not in result.stderr
    assert "patient_id" not in json.dumps(json.loads(result.stdout))


def test_private_figures_of_a_table_whose_ids_repeat_are_warned_about(folder):
    assert run(folder, *PERSON).exit_code == 0
    words = ["evaluate", str(folder / "model.json"), str(folder / "visits.csv"), "--epsilon", "1"]
    warning = "PrivacyWarning: patient_id repeats and looks like an id"
    assert CliRunner().invoke(main, words).stderr.count(warning) == 1
    result = CliRunner().invoke(main, [*words, *PERSON])
    assert result.exit_code == 0, result.output
    assert "looks like an id" not in result.stderr
    # exact figures promise nothing
    assert "looks like an id" not in CliRunner().invoke(main, words[:3]).stderr
    model, frame = NaiveBayesModel.read(folder / "model.json"), pd.read_csv(folder / "visits.csv")
    with pytest.warns(PrivacyWarning, match="patient_id repeats and looks like an id"):
        score_privately(model, frame, frame["y"], 1.0)


@pytest.mark.parametrize(
    ("words", "match"),
    [
        (("--person", "patient_id"), "needs rows_per_person; write how many"),
        (("--rows-per-person", "3"), "rows_per_person=3 needs person; write the column"),
        (("--person", "b", "--rows-per-person", "3"), "b: is a feature of the schema"),
        (("--person", "y", "--rows-per-person", "3"), "y: is the class of the schema"),
        (("--person", "id", "--rows-per-person", "3"), "lacks the column id"),
        ((*PERSON, "--method", "trimmed"), "use method='histogram'"),
        (("--person", "patient_id", "--rows-per-person", "0"), "must be from 1 to 1000"),
    ],
)
def test_what_does_not_fit_is_refused_before_anything_is_paid(folder, words, match):
    ledger = folder / "ledger.json"
    result = run(folder, *words, "--budget-file", str(ledger), "--budget-total", "2")
    assert result.exit_code == 2
    assert match in result.output
    assert not ledger.exists()
    assert not (folder / "model.json").exists()
