"""``discreet simulate`` and ``discreet local size``, as a user runs them."""

import json

import pytest
from click.testing import CliRunner

from discreet.cli import main
from discreet.datasets import mortgage


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("people")
    people = mortgage(1500, seed=1)
    people.frame.to_csv(place / "people.csv", index=False)
    (place / "schema.json").write_text(people.schema.to_json())
    return place


def run(folder, *words):
    parts = [
        str(folder / w) if w in ("people.csv", "schema.json", "none.csv") else w for w in words
    ]
    return CliRunner().invoke(main, parts)


@pytest.mark.slow
def test_simulate_compares_methods_with_intervals(folder):
    done = run(folder, "simulate", "people.csv", "--schema", "schema.json", "--epsilon", "1,4",
               "--methods", "auto,de", "--repeats", "2", "--json")  # fmt: skip
    assert done.exit_code == 0, done.output
    body = json.loads(done.stdout)
    assert len(body["results"]) == 4
    assert 0.6 < body["majority"] < 0.8 < body["non_private"] < 0.9
    assert all(one["half"] >= 0 for one in body["results"])
    assert "raw data" in done.stderr
    shown = run(folder, "simulate", "people.csv", "--schema", "schema.json", "--epsilon", "2",
                "--methods", "auto", "--repeats", "2")  # fmt: skip
    assert "auto" in shown.stdout
    assert "majority class" in shown.stdout


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--epsilon", "zero"], "numbers separated by commas"),
        (["--epsilon", "0"], "above 0"),
        (["--epsilon", "1", "--methods", "magic"], "unknown method"),
    ],
)
def test_simulate_refuses_nonsense(folder, words, says):
    done = run(folder, "simulate", "people.csv", "--schema", "schema.json", *words)
    assert done.exit_code == 2
    assert says in done.stderr


def test_simulate_wants_a_table(folder):
    done = run(folder, "simulate", "none.csv", "--schema", "schema.json", "--epsilon", "1")
    assert done.exit_code == 2
    assert done.stderr.splitlines()[-1].startswith("discreet: ")


def test_size_goes_from_precision_to_people_and_back(folder):
    there = run(folder, "local", "size", "schema.json", "--epsilon", "1", "--precision", "0.01",
                "--json")  # fmt: skip
    assert there.exit_code == 0, there.output
    body = json.loads(there.stdout)
    worst = max(one["standard_error"] for one in body["precision"])
    assert worst == pytest.approx(0.01, rel=0.01)
    back = run(folder, "local", "size", "schema.json", "--epsilon", "1", "--respondents",
               str(body["respondents"]), "--json")  # fmt: skip
    assert json.loads(back.stdout)["precision"] == body["precision"]
    # it promises nothing about a model: that depends on what the collection is to find out
    assert body.keys() == {"respondents", "epsilon", "precision"}
    few = run(folder, "local", "size", "schema.json", "--epsilon", "0.5", "--respondents", "100")
    assert "cannot be known before" in " ".join(few.stdout.split())
    assert "enough" not in few.stdout
    assert "comfortable" not in few.stdout


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--epsilon", "1"], "one of them"),
        (["--epsilon", "1", "--precision", "0.1", "--respondents", "5"], "one of them"),
        (["--epsilon", "-1", "--precision", "0.1"], "above 0"),
        (["--epsilon", "1", "--precision", "3"], "between 0 and 1"),
        (["--epsilon", "1", "--respondents", "0"], "x>=1"),
    ],
)
def test_size_refuses_nonsense(folder, words, says):
    done = run(folder, "local", "size", "schema.json", *words)
    assert done.exit_code == 2
    assert says in done.stderr
