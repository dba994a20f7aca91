"""``discreet predict``, ``evaluate`` and ``show`` do with files what the model does with arrays."""

from __future__ import annotations

import csv
import io
import json
import math
import re
import sqlite3
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import Result

from discreet import Categorical, NaiveBayesModel, Numeric, Schema, estimate
from discreet.cli import output
from discreet.model.evaluation import score_model
from discreet.tables.in_memory import count_arrays

Run = Callable[..., Result]
Refused = Callable[..., str]


def model_and_people() -> tuple[NaiveBayesModel, pd.DataFrame]:
    return NaiveBayesModel.read("model.json"), pd.read_csv("others.csv")


def test_predictions_on_standard_output_are_those_of_the_model(run: Run) -> None:
    result = run("predict", "model.json", "others.csv", "--proba")
    assert result.exit_code == 0
    assert result.stderr == ""
    model, people = model_and_people()
    header, *rows = csv.reader(io.StringIO(result.stdout))
    assert header == ["prediction", "P(no)", "P(yes)"]
    assert [row[0] for row in rows] == model.predict(people).tolist()
    written = [[float(one) for one in row[1:]] for row in rows]
    np.testing.assert_array_equal(written, model.predict_proba(people))


def test_a_csv_file_and_a_parquet_file_hold_the_same(run: Run) -> None:
    assert run("predict", "model.json", "others.csv", "-o", "out.csv").exit_code == 0
    result = run("predict", "model.json", "others.csv", "-o", "out.parquet", "--proba", "--json")
    written = pd.read_parquet("out.parquet")
    assert pd.read_csv("out.csv")["prediction"].tolist() == written["prediction"].tolist()
    counts = written["prediction"].value_counts().to_dict()
    assert json.loads(result.stdout) == {"output": "out.parquet", "rows": 800, "predicted": counts}
    np.testing.assert_allclose(written["P(no)"] + written["P(yes)"], 1.0)


@pytest.mark.slow
def test_rows_keep_their_order_in_a_large_file(run: Run) -> None:
    model, people = model_and_people()
    many = people.sample(150_000, replace=True, random_state=1)
    table = pa.Table.from_pandas(many, preserve_index=False)
    pq.write_table(table, "many.parquet", row_group_size=9_000)
    assert run("predict", "model.json", "many.parquet", "-o", "out.csv").exit_code == 0
    assert pd.read_csv("out.csv")["prediction"].tolist() == model.predict(many).tolist()


def write_databases(people: pd.DataFrame) -> dict[str, str]:
    """The same rows in other orders, with a column more; their addresses."""
    shuffled = people.sample(frac=1.0, random_state=2)
    with sqlite3.connect("people.db") as connection:
        shuffled.to_sql("some people", connection, index=False)
    with duckdb.connect("people.duckdb") as file:
        file.register("shuffled", shuffled.iloc[:, ::-1])
        file.execute('CREATE TABLE "some people" AS FROM shuffled')
    return {"sqlite": "sqlite://people.db", "duckdb": "duckdb://people.duckdb"}


@pytest.mark.slow
def test_rows_of_a_database_are_predicted_with_their_keys(run: Run, refused: Refused) -> None:
    model, people = model_and_people()
    people.insert(3, "id", range(len(people)))
    people.insert(0, "unread", "?")
    people.iloc[:, ::-1].to_csv("other_order.csv", index=False)
    asked = ("--key", "id", "--keep", "age", "--keep", "id", "--proba")
    expected = run("predict", "model.json", "other_order.csv", *asked).stdout
    header, *rows = csv.reader(io.StringIO(expected))
    assert header == ["id", "age", "prediction", "P(no)", "P(yes)"]
    assert [row[2] for row in rows] == model.predict(people).tolist()
    assert [int(row[1]) for row in rows] == people["age"].tolist()
    for address in write_databases(people).values():
        named = ("predict", "model.json", address, "--table", "some people")
        predicted = [*csv.reader(io.StringIO(run(*named, *asked).stdout))][1:]
        assert [row[0] for row in predicted] == [str(k) for k in range(len(people))]
        assert [row[2:] for row in predicted] == [row[2:] for row in rows]
        first = run(*named, "--key", "id", "--explain", 7).stdout
        assert first == run("predict", "model.json", "others.csv", "--explain", 7).stdout
        assert "no order" in refused(*named)
        scores = json.loads(run("evaluate", *named[1:], "--json").stdout)
        of_file = json.loads(run("evaluate", "model.json", "others.csv", "--json").stdout)
        assert scores["confusion"] == of_file["confusion"]


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_copied_columns_keep_their_values_and_nothing_else_is_written(run: Run, kind: str) -> None:
    _, people = model_and_people()
    people["when"] = pd.date_range("2024-01-01", periods=len(people), tz="UTC")
    people["label"] = ["", None, "a, b", 'c"d', "e\nf"] * (len(people) // 5)
    people["share"] = [0.1, 1.0, math.nan, -0.0] * (len(people) // 4)
    people.to_parquet("typed.parquet", index=False)
    asked = ("--keep", "when", "--keep", "label", "--keep", "share", "-o", f"out.{kind}")
    assert run("predict", "model.json", "typed.parquet", *asked).exit_code == 0
    if kind == "parquet":
        written = pq.read_table("out.parquet")
        original = pq.read_table("typed.parquet")
        assert written.column_names == ["when", "label", "share", "prediction"]
        for name in written.column_names[:-1]:
            assert written[name].to_pylist()[:2] == original[name].to_pylist()[:2]
            types = {str(file.schema.field(name).type) for file in (written, original)}
            assert len({kind.removeprefix("large_") for kind in types}) == 1
        return
    rows = [*csv.reader(io.StringIO(Path("out.csv").read_text()))]
    assert rows[0] == ["when", "label", "share", "prediction"]
    assert rows[1][:3] == ["2024-01-01 00:00:00+00:00", "", "0.1"]
    assert [row[1] for row in rows[3:6]] == ["a, b", 'c"d', "e\nf"]
    body = json.loads(run("predict", "model.json", "typed.parquet", *asked[:6], "--json").stdout)
    assert body["columns"]["label"][:3] == ["", None, "a, b"]
    assert body["columns"]["share"][:3] == [0.1, 1.0, None]
    assert body["predictions"] == [row[3] for row in rows[1:]]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--keep", "nosuch"], "lacks the column nosuch"),
        (["--key", "nosuch"], "lacks the column nosuch"),
        (["--table", "people"], "is a file, which holds one table"),
    ],
)
def test_columns_that_cannot_be_copied_are_refused(
    options: list[str], words: str, run: Run, refused: Refused
) -> None:
    assert words in refused("predict", "model.json", "others.csv", *options)
    assert run("predict", "model.json", "others.csv", *options).stdout == ""


@pytest.mark.parametrize("name", ["prediction", "P(no)", "steady"])
def test_a_copy_does_not_hide_a_prediction(name: str, refused: Refused) -> None:
    pd.read_csv("others.csv").assign(**{name: 1}).to_csv("named.csv", index=False)
    for option in ("--keep", "--key"):
        said = refused("predict", "model.json", "named.csv", option, name)
        assert "is also the name of a column of the output" in said


def test_a_file_without_rows_gives_one_without_predictions(run: Run) -> None:
    pd.read_csv("others.csv").head(0).to_csv("none.csv", index=False)
    asked = ("predict", "model.json", "none.csv", "--keep", "income", "-o", "out.parquet")
    assert run(*asked).exit_code == 0
    assert pq.read_table("out.parquet").column_names == ["income", "prediction"]


def test_what_a_database_holds_is_read_as_where_it_is_counted(refused: Refused) -> None:
    with duckdb.connect("odd.duckdb") as file:
        file.execute("CREATE TABLE odd AS FROM 'others.csv'")
        file.execute("ALTER TABLE odd ALTER age TYPE VARCHAR")
        file.execute("UPDATE odd SET age = 'plenty'")
        file.execute("ALTER TABLE odd ADD COLUMN id INTEGER DEFAULT 1")
    said = refused("predict", "model.json", "duckdb://odd.duckdb#odd", "--key", "id")
    assert "'plenty' is not a number" in said


def test_json_predictions(run: Run) -> None:
    body = json.loads(run("predict", "model.json", "others.csv", "--json", "--proba").stdout)
    model, people = model_and_people()
    assert body["predictions"] == model.predict(people).tolist()
    np.testing.assert_allclose(body["probabilities"], model.predict_proba(people))
    assert body["rows"] == 800


def test_a_row_is_explained(run: Run) -> None:
    model, people = model_and_people()
    expected = model.explain(people.iloc[7].to_dict())
    assert run("predict", "model.json", "others.csv", "--explain", 7).stdout == f"{expected}\n"
    body = json.loads(run("predict", "model.json", "others.csv", "--explain", 7, "--json").stdout)
    assert body["row"] == 7
    assert body["predicted"] == expected.predicted
    assert body["log_odds"] == pytest.approx(expected.log_odds)


def test_classes_and_values_of_any_kind_are_written_with_care(run: Run) -> None:
    schema = Schema([Categorical("a, b", ['x"y', "[/red]", "ü,"]), Numeric("n", 0, 9)], "t", [0, 1])
    columns = {
        "a, b": np.array(['x"y', "[/red]", "ü,", ""] * 5, dtype=object),
        "n": np.array([1.0, 2.0, 7.0, np.nan] * 5),
    }
    codes = np.array([0, 0, 1, 1] * 5, dtype=np.int32)
    model = estimate(count_arrays(schema, columns, codes))
    Path("odd.json").write_text(model.to_json())
    frame = pd.DataFrame({**columns, "t": codes})
    frame.to_csv("odd.csv", index=False)
    assert run("predict", "odd.json", "odd.csv", "-o", "out.parquet").exit_code == 0
    predicted = pd.read_parquet("out.parquet")["prediction"]
    assert predicted.tolist() == model.predict(columns).tolist()
    assert predicted.dtype == np.int64
    assert run("evaluate", "odd.json", "odd.csv").exit_code == 0
    rows = list(csv.reader(io.StringIO(run("predict", "odd.json", "odd.csv").stdout)))
    assert [row[0] for row in rows[1:]] == [str(one) for one in predicted]


def test_evaluation_for_scripts_and_for_people(run: Run) -> None:
    model, people = model_and_people()
    expected = score_model(model, people, people["missed_payment"])
    body = json.loads(run("evaluate", "model.json", "others.csv", "--json").stdout)
    assert body["accuracy"] == expected.accuracy
    assert body["interval"] == list(expected.accuracy_interval)
    assert body["log_loss"] == pytest.approx(expected.log_loss)
    assert body["confusion"] == expected.confusion.tolist()
    assert body["baseline"]["class"] == "no"
    text = run("evaluate", "model.json", "others.csv").stdout
    for part in (f"{expected.accuracy:.4f}", "always 'no'", "precision", "recall", "predicted"):
        assert part in text
    assert "\x1b" not in text


def test_costs_and_groups_fit_a_terminal(run: Run) -> None:
    words = ["evaluate", "model.json", "others.csv", "--cost", "yes=5", "--by", "employment"]
    text = run(*words).stdout
    for part in ("AUC", "average precision", "P(yes) = 0.167", "always say 'no'", "by employment"):
        assert part in text
    table_lines = [line for line in text.splitlines() if line[0] in "┏┃┡│└"]
    assert max(map(len, table_lines)) <= 80
    assert "employment: employed" not in text  # rows as lines, where a table is too wide
    body = json.loads(run(*words, "--json").stdout)
    assert body["costs"]["threshold"] == pytest.approx(1 / 6)
    assert body["by"] == "employment"
    assert sum(group["rows"] for group in body["groups"].values()) == body["rows"] == 800
    assert body["auc_interval"][0] < body["auc"] < body["auc_interval"][1]
    assert run(*words, "--epsilon", "0.2").exit_code == 2
    for wrong in ("maybe=5", "yes=0", "yes"):
        assert run("evaluate", "model.json", "others.csv", "--cost", wrong).exit_code == 2
    assert "lacks the column" in run("evaluate", "model.json", "others.csv", "--by", "x").stderr


def test_a_model_is_shown(run: Run) -> None:
    text = run("show", "model.json", "--strongest", 3).stdout
    assert "No privacy" in text
    body = json.loads(run("show", "model.json", "--strongest", 3, "--json").stdout)
    assert len(body["strongest"]) == 3
    assert body["guarantee"]["epsilon"] == "inf"
    assert body["schema_digest"] == NaiveBayesModel.read("model.json").schema.digest
    assert sum(body["prior"].values()) == pytest.approx(1.0)


def spoil() -> None:
    """Files that are wrong in every way that files are wrong."""
    Path("empty.csv").touch()
    Path("empty.json").touch()
    Path("empty.parquet").touch()
    junk = bytes(np.random.default_rng(0).integers(0, 256, 3000, dtype=np.uint8))
    for name in ("junk.csv", "junk.json", "junk.parquet", "junk.csv.gz"):
        Path(name).write_bytes(junk)
    text = Path("model.json").read_text()
    Path("cut.json").write_text(text[: len(text) // 2])
    Path("changed.json").write_text(text.replace("0.", "1.", 1))
    Path("newer.json").write_text(re.sub(r'"version": [0-9]+', '"version": 99', text))
    Path("folder").mkdir()
    Path("folder.csv").mkdir()
    lines = Path("others.csv").read_text().split("\n")
    Path("no_rows.csv").write_text(lines[0] + "\n")
    Path("ragged.csv").write_text("\n".join([lines[0], lines[1], "1,2"]) + "\n")
    Path("other_columns.csv").write_text("a,b\n1,2\n")
    Path("unknown_class.csv").write_text(lines[0] + "\n" + lines[1].rsplit(",", 1)[0] + ",maybe\n")


@pytest.mark.parametrize(
    "model", ["none.json", "folder", "empty.json", "junk.json", "cut.json", "changed.json",
              "newer.json", "schema.json", "others.csv"]
)  # fmt: skip
def test_a_bad_model_file_is_refused(model: str, refused: Refused) -> None:
    spoil()
    for command in (["show"], ["predict"], ["evaluate"]):
        data = [] if command == ["show"] else ["others.csv"]
        assert refused(*command, model, *data).startswith(f"discreet: {model}: ")


@pytest.mark.slow
@pytest.mark.parametrize(
    "data", ["none.csv", "folder", "folder.csv", "empty.csv", "empty.parquet", "junk.csv",
             "junk.parquet", "junk.csv.gz", "ragged.csv", "other_columns.csv", "model.json",
             "none*.csv"]
)  # fmt: skip
def test_a_bad_data_file_is_refused(data: str, refused: Refused) -> None:
    spoil()
    for command in ("predict", "evaluate"):
        assert refused(command, "model.json", data).startswith(f"discreet: {data}: ")
    refused("predict", "model.json", data, "-o", "out.csv")
    assert not Path("out.csv").exists()


@pytest.mark.parametrize(
    ("data", "message"),
    [("unknown_class.csv", "missed_payment: 'maybe'"), ("no_rows.csv", "no rows")],
)
def test_rows_that_cannot_be_evaluated(data: str, message: str, refused: Refused) -> None:
    spoil()
    assert message in refused("evaluate", "model.json", data, "--json")


def test_no_rows_give_no_predictions(run: Run) -> None:
    spoil()
    assert run("predict", "model.json", "no_rows.csv").stdout == "prediction\n"


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("nowhere/out.csv", "does not exist"),
        ("folder.csv", "is a folder"),
        ("out.txt", "ends in .csv or .parquet"),
        ("out", "ends in .csv or .parquet"),
    ],
)
def test_an_output_that_cannot_be_written(path: str, message: str, refused: Refused) -> None:
    spoil()
    assert message in refused("predict", "model.json", "others.csv", "-o", path)


def test_there_is_no_such_row(refused: Refused) -> None:
    said = refused("predict", "model.json", "others.csv", "--explain", 800)
    assert "no row 800; it has 800 rows" in said


@pytest.mark.parametrize("option", [["--proba"], ["-o", "out.csv"]])
def test_explaining_excludes_writing(option: list[str], run: Run) -> None:
    result = run("predict", "model.json", "others.csv", "--explain", 0, *option)
    assert result.exit_code == 2
    assert "leave out" in result.stderr


def test_a_file_stays_as_it_was_when_rows_turn_out_bad(refused: Refused) -> None:
    Path("out.csv").write_text("precious\n")
    lines = Path("others.csv").read_text().splitlines()
    Path("late.csv").write_text("\n".join([*lines, lines[-1].replace(lines[-1][:2], "999", 1)]))
    assert "999" in refused("predict", "model.json", "late.csv", "-o", "out.csv", "--force")
    assert Path("out.csv").read_text() == "precious\n"
    assert not list(Path().glob(".*part"))


def test_a_bar_appears_only_on_a_terminal_and_after_a_while(monkeypatch: Any) -> None:
    drawn: list[int] = []

    def draw(reporter: output.ProgressReporter) -> None:
        drawn.append(reporter.done)

    monkeypatch.setattr(output.ProgressReporter, "_draw_bar", draw)
    monkeypatch.setattr(output, "TICK_SECONDS", 1000.0)
    with output.show_progress("work") as advance:
        advance(1)
    assert drawn == []  # no terminal
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    with output.show_progress("work") as advance:
        advance(2)
    assert drawn == []  # too early
    monkeypatch.setattr(output, "SILENCE_SECONDS", -1.0)
    with output.show_progress("work", hidden=True) as advance:
        advance(3)
    assert drawn == []  # told to be quiet
    with output.show_progress("work") as advance:
        advance(4)
    assert drawn == [4]


def test_a_bar_appears_while_one_call_blocks(monkeypatch: Any) -> None:
    """Of a query that takes long nothing is known before it ends."""
    drawn = threading.Event()
    monkeypatch.setattr(output.ProgressReporter, "_draw_bar", lambda reporter: drawn.set())
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    monkeypatch.setattr(output, "SILENCE_SECONDS", -1.0)
    with output.show_progress("work"):
        assert drawn.wait(60)


def test_the_bar_draws_and_vanishes(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    monkeypatch.setattr(output, "SILENCE_SECONDS", -1.0)
    with output.show_progress("counting") as advance:
        advance(10, 100)
        advance(20)
    assert capsys.readouterr().out == ""
