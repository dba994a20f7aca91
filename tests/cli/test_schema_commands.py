"""``discreet schema infer``, ``check`` and ``show``."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import re
import select
import subprocess
import sys
import termios
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest
from click.testing import Result

from discreet import Categorical, Numeric, Schema
from discreet.datasets import MORTGAGE_SCHEMA

Run = Callable[..., Result]
Refused = Callable[..., str]


def test_inference_writes_a_schema_and_says_what_it_took(run: Run) -> None:
    result = run("schema", "infer", "others.csv", "--target", "missed_payment")
    assert result.exit_code == 0
    Path("short.yaml").write_text(result.stdout)
    schema = Schema.read("short.yaml")
    assert schema.names == MORTGAGE_SCHEMA.names
    assert "\n  loan_to_value: 0.163..1.357\n" in result.stdout
    assert result.stderr.startswith("PrivacyWarning: ")
    for name in (*schema.names, "missed_payment"):
        assert name in result.stderr


@pytest.mark.slow
def test_inference_with_choices(run: Run) -> None:
    frame = pd.read_csv("others.csv")
    frame["income"] = frame["income"].replace("low", "?")
    frame.to_csv("marked.csv", index=False)
    options = ["--categorical", "age, credit_score", "--missing-token", "?", "-o", "made.json"]
    result = run("schema", "infer", "marked.csv", "--target", "missed_payment", *options)
    assert result.exit_code == 0
    assert result.stdout == ""
    schema = Schema.read("made.json")
    assert not isinstance(schema["age"], Numeric)
    assert not isinstance(schema["credit_score"], Numeric)
    assert isinstance(schema["years_at_address"], Numeric)
    assert schema.missing_tokens == ("?",)
    assert "?" not in schema["income"].values  # type: ignore[union-attr]
    assert run("schema", "check", "made.json", "marked.csv").exit_code == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["others.csv", "--target", "nothing"], "lacks the column nothing"),
        (["none.csv", "--target", "a"], "none.csv: there is no such file"),
        (["others.csv", "--target", "missed_payment", "--categorical", "nothing"], "nothing"),
        (["others.csv", "--target", "missed_payment", "-o", "nowhere/s.json"], "does not exist"),
    ],
)
def test_inference_that_cannot_be(arguments: list[str], message: str, run: Run) -> None:
    result = run("schema", "infer", *arguments)
    assert result.exit_code == 2
    sentence = result.stderr[result.stderr.index("discreet: ") :]
    assert message in sentence
    assert sentence.count("\n") == 1


@pytest.mark.slow
def test_a_table_that_fits_is_counted(run: Run) -> None:
    result = run("schema", "check", "schema.json", "others.csv")
    assert result.exit_code == 0
    assert "fits, 800 rows" in result.stdout
    body = json.loads(run("schema", "check", "schema.json", "others.csv", "--json").stdout)
    truth = pd.read_csv("others.csv")["missed_payment"].value_counts().to_dict()
    assert body["by_class"] == truth
    assert body["fits"] is True
    assert body["digest"] == MORTGAGE_SCHEMA.digest


def test_a_schema_is_checked_alone(run: Run) -> None:
    body = json.loads(run("schema", "check", "schema.json", "--json").stdout)
    assert body["features"] == 8
    assert "data" not in body


@pytest.mark.slow
def test_everything_that_does_not_fit_is_named(run: Run, refused: Refused) -> None:
    frame = pd.read_csv("others.csv")
    frame.loc[3, "age"] = 140
    frame.loc[5, "income"] = "rich"
    frame.loc[5, "region"] = "moon"
    frame.to_csv("bad.csv", index=False)
    said = refused("schema", "check", "schema.json", "bad.csv")
    for part in ("bad.csv does not fit schema.json", "age: 140", "'rich'", "'moon'", "(3)"):
        assert part in said
    assert "(4)" not in said
    result = run("schema", "check", "schema.json", "bad.csv", "--json")
    assert result.exit_code == 2
    body = json.loads(result.stdout)
    assert body["fits"] is False
    assert len(body["problems"]) == 3


@pytest.mark.parametrize("path", ["none.json", "model.json", "others.csv", "empty.json", "."])
def test_a_bad_schema_file_is_refused(path: str, refused: Refused) -> None:
    Path("empty.json").touch()
    for command in ("show", "check"):
        assert refused("schema", command, path).startswith(f"discreet: {path}: ")


def test_a_mistake_in_a_schema_names_file_and_field(refused: Refused) -> None:
    whole = json.loads(Path("schema.json").read_text())
    whole["features"][0]["lower"] = 200
    Path("wrong.json").write_text(json.dumps(whole))
    assert "wrong.json: age: lower 200" in refused("schema", "check", "wrong.json")


def test_a_schema_is_shown(run: Run) -> None:
    text = run("schema", "show", "schema.json").stdout
    for part in ("loan_to_value", "0 to 1.5", "whole number", "low, medium, high", "digest"):
        assert part in text
    assert MORTGAGE_SCHEMA.digest in text
    body = json.loads(run("schema", "show", "schema.json", "--json").stdout)
    assert body["digest"] == MORTGAGE_SCHEMA.digest
    assert len(body["features"]) == 8


def test_a_schema_is_begun_from_the_header_and_checked_once_it_is_finished(
    run: Run, refused: Refused
) -> None:
    result = run("schema", "new", "others.csv", "--target", "missed_payment", "-o", "new.yaml")
    assert result.exit_code == 0
    assert "then: discreet schema check new.yaml" in result.stderr
    said = refused("schema", "check", "new.yaml")
    assert "this schema is not finished; fill in: classes, age: kind, income: kind" in said
    other = Path("new.yaml").read_text()
    Path("headed.csv").write_text(Path("others.csv").read_text().splitlines()[0] + "\n")
    again = run("schema", "new", "headed.csv", "--target", "missed_payment").stdout
    assert again == other.replace("others.csv", "headed.csv")  # rows change nothing
    assert "exists already" in refused("schema", "new", "others.csv", "-o", "new.yaml")
    assert Path("new.yaml").read_text() == other


def test_what_is_open_is_asked_for_on_a_terminal(run: Run) -> None:
    Path("few.csv").write_text("age,colour,note,ill\n1,red,x,no\n")
    answers = [
        "sick",  # no such column
        "ill",
        "no, yes",
        "w",  # age
        "one",  # no bounds
        "9 3",  # nor these
        "0 120",
        "n",
        "c",  # colour
        "red, red",
        "red, blue",
        "",
        "s",  # note
    ]
    words = ("schema", "new", "few.csv", "--prompt", "-o", "few.yaml")
    result = run(*words, input="\n".join(answers) + "\n")
    assert result.exit_code == 0, result.stderr
    for said in ("no column 'sick'", "two values are needed", "not below upper", "listed twice"):
        assert said in result.stderr
    schema = Schema.read("few.yaml")
    assert schema == Schema(
        [
            Numeric("age", 0, 120, integer=True, optional=False),
            Categorical("colour", ["red", "blue"]),
        ],
        "ill",
        ["no", "yes"],
    )
    assert run("schema", "check", "few.yaml", "few.csv").exit_code == 0


def test_empty_answers_leave_places_open(run: Run) -> None:
    Path("few.csv").write_text("age,ill\n1,no\n")
    result = run("schema", "new", "few.csv", "--prompt", input="\n" * 9)
    assert result.stdout.count(": FILL-IN\n") == 2
    assert "target: {FILL-IN: [FILL-IN]}" in result.stdout


FEW = "age,colour,note,ill\n1,red,x,no\n"
INTERRUPTED_AFTER = {  # answers before Ctrl-C, and what is written all the same
    (): {"target: {FILL-IN: [FILL-IN]}", "  ill: FILL-IN\n"},
    ("ill",): {"target: {ill: [FILL-IN]}"},
    ("ill", "no, yes"): {"target: {ill: [no, yes]}", "  age: FILL-IN\n"},
    ("ill", "no, yes", "w"): {"  age: FILL-IN..FILL-IN whole\n"},
    ("ill", "no, yes", "w", "0 120"): {"  age: 0..120\n", "  colour: FILL-IN\n"},
    ("ill", "no, yes", "s", "c", "red, blue"): {"  colour: [red, blue]\n", "  note: FILL-IN\n"},
}


@pytest.mark.parametrize("output", [True, False])
@pytest.mark.parametrize("answers", INTERRUPTED_AFTER, ids=len)
def test_what_was_answered_before_the_end_is_kept(
    answers: tuple[str, ...], output: bool, run: Run
) -> None:
    Path("few.csv").write_text(FEW)
    words = ["schema", "new", "few.csv", "--prompt"] + ["-o", "few.yaml"] * output
    result = run(*words, input="".join(f"{answer}\n" for answer in answers))
    assert result.exit_code == 1, result.output
    assert "what was answered is kept" in result.stderr
    text = Path("few.yaml").read_text() if output else result.stdout
    plain = re.sub(r"  #.*", "", text)
    assert all(part in plain for part in INTERRUPTED_AFTER[answers]), text
    assert ("  age: " in plain) == ("s" not in answers)
    assert f"schema check {'few.yaml' if output else 'FILE'}" in result.stderr


@pytest.mark.slow
def test_ctrl_c_at_a_question_ends_with_130(tmp_path: Path) -> None:
    """The real program on a real terminal."""
    (tmp_path / "few.csv").write_text(FEW)
    terminal, child = pty.openpty()
    words = [sys.executable, "-m", "discreet", "schema", "new", "few.csv", "-o", "few.yaml"]
    process = subprocess.Popen(
        words, cwd=tmp_path, stdin=child, stdout=child, stderr=child, start_new_session=True,
        preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
    )  # fmt: skip
    os.close(child)

    def read_until(end: bytes) -> None:
        seen = b""
        while end not in seen:
            seen += os.read(terminal, 1 << 10)

    read_until(b"holds the classes: ")
    os.write(terminal, b"ill\n")
    read_until(b"with commas: ")
    output = b""
    while b"schema check few.yaml" not in output:
        os.write(terminal, b"\x03")  # a signal just before the program waits does not wake it
        while b"schema check few.yaml" not in output and select.select([terminal], [], [], 5)[0]:
            output += os.read(terminal, 1 << 10)
    assert process.wait() == 130
    os.close(terminal)
    assert "target: {ill: " in (tmp_path / "few.yaml").read_text()


@pytest.mark.slow
def test_a_schema_for_a_price_is_charged_and_says_so(run: Run) -> None:
    frame = pd.concat([pd.read_csv("others.csv")] * 20)
    frame["id"] = range(len(frame))
    frame.to_csv("many.csv", index=False)
    ledger = ["--budget-file", "b.json", "--budget-total", "3", "--budget-total-delta", "1e-5"]
    known = ["--classes", "no,yes", "--column", "age: 18..100 real", "--drop", "id"]
    known += ["--column", "region: [north, east, south, west]"]
    words = ["schema", "infer", "many.csv", "--target", "missed_payment", "--epsilon", "1"]
    result = run(*words, "--delta", "1e-6", *known, *ledger, "-o", "priced.json")
    assert result.exit_code == 0
    assert "epsilon = 1, delta = 1e-06 per person" in result.stderr
    assert "b.json: 2 left" in result.stderr
    schema = Schema.read("priced.json")
    assert schema["age"] == Numeric("age", 18, 100)
    assert schema["region"] == Categorical("region", ["north", "east", "south", "west"])
    assert schema.classes == ("no", "yes")
    assert not schema.inferred
    assert "for epsilon 1 and delta 1e-06" in run("schema", "show", "priced.json").stdout.replace(
        "\n", " "
    )
    trained = run(
        *("train", "many.csv", "--schema", "priced.json", "--epsilon", "1"),
        *("--budget-file", "b.json", "-o", "priced-model.json"),
    )
    assert trained.exit_code == 0
    assert "epsilon = 2, delta = 1e-06" in trained.stdout
    assert re.search(r"^  1 +schema$", trained.stdout, re.M)
    again = run(*words, "--like", "priced.json")
    assert "was inferred from data for a price" in again.stderr


def test_a_schema_for_a_price_as_json(run: Run) -> None:
    words = ["schema", "infer", "others.csv", "--target", "missed_payment", "--epsilon", "9"]
    body = json.loads(run(*words, "--delta", "1e-3", "--classes", "no,yes", "--json").stdout)
    assert body["schema"]["inference"]["epsilon"] == body["guarantee"]["epsilon"] == 9
    assert body["guarantee"]["delta"] == 1e-3
    assert set(body["left_out"]) | {one["name"] for one in body["schema"]["features"]} == set(
        MORTGAGE_SCHEMA.names
    )
    free = json.loads(run(*words[:5], "--json").stdout)
    assert free["guarantee"] is None
    assert "taken from the data" in free["warnings"][0]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--epsilon", "1"], "without a delta, the classes of missed_payment cannot be inferred"),
        (["--delta", "1e-6"], "--delta goes with --epsilon"),
        (["--budget-file", "b.json"], "--budget-file goes with --epsilon"),
        (["--epsilon", "1", "--categorical", "age"], "--categorical goes without --epsilon"),
        (["--epsilon", "1", "--budget-total", "3"], "has no effect without a ledger"),
        (["--epsilon", "1", "--column", "age"], "write 'age: 0..110'"),
        (["--epsilon", "1", "--column", "age: 0-99"], "write age: 0..99"),
        (["--epsilon", "1", "--column", "ages: 0..99"], "there is no column 'ages'"),
        (["--epsilon", "1", "--column", "age: by week"], "write one of day, month, year, weekday"),
        (["--epsilon", "1", "--rows-per-person", "3"], "needs person="),
    ],
)
def test_a_price_that_cannot_be(arguments: list[str], message: str, run: Run) -> None:
    result = run("schema", "infer", "others.csv", "--target", "missed_payment", *arguments)
    assert result.exit_code == 2
    assert message in " ".join(result.stderr.split())


@pytest.mark.slow
def test_inference_reads_a_table_of_a_database_and_leaves_out_identifiers(run: Run) -> None:
    import sqlite3

    frame = pd.read_csv("others.csv")
    frame["customer_id"] = range(len(frame))
    with sqlite3.connect("people.sqlite") as connection:
        frame.to_sql("people", connection, index=False)
    words = ["--table", "people", "--target", "missed_payment"]
    result = run("schema", "infer", "sqlite://people.sqlite", *words)
    assert Schema.from_yaml(result.stdout).names == MORTGAGE_SCHEMA.names
    assert "left out: customer_id (nearly every row has a value of its own" in result.stderr
