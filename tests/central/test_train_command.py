"""``discreet train``: what it writes, what it says and what it refuses."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

from discreet import Categorical, CentralNB, NaiveBayesModel, Numeric, Schema
from discreet.central import histogram, training
from discreet.cli import main
from discreet.errors import PrivacyError
from discreet.mechanisms.additive import AdditiveNoise
from discreet.privacy.ledger import Ledger
from discreet.randomness import CryptoRandom

SCHEMA = Schema(
    [Numeric("age", 18, 90, integer=True), Categorical("job", ["a", "b", "c"])],
    "paid",
    ["no", "yes"],
)


@pytest.fixture
def folder(tmp_path):
    rng = np.random.default_rng(0)
    y = rng.random(3000) < 0.4
    frame = pd.DataFrame(
        {
            "age": np.clip(rng.normal(35 + 20 * y, 8), 18, 90).astype(int),
            "job": np.where(y, rng.choice(list("abc"), 3000, p=[0.7, 0.2, 0.1]), "c"),
            "paid": np.where(y, "yes", "no"),
        }
    )
    frame.to_csv(tmp_path / "data.csv", index=False)
    frame.iloc[:1500].to_parquet(tmp_path / "part1.parquet")
    frame.iloc[1500:].to_parquet(tmp_path / "part2.parquet")
    (tmp_path / "schema.json").write_text(SCHEMA.to_json())
    return tmp_path


def run(folder, *words, data="data.csv", epsilon="1"):
    given = ["train", str(folder / data), "--schema", str(folder / "schema.json")]
    given += ["--epsilon", epsilon, "-o", str(folder / "model.json"), *words]
    return CliRunner().invoke(main, given)


@pytest.mark.slow
def test_choices_can_be_turned_off(folder):
    for words, chosen in (((), True), (("--no-corrections",), True), (("--no-selection",), False)):
        assert run(folder, "--statistics", str(folder / "s.json"), "--force", *words).exit_code == 0
        charges = NaiveBayesModel.read(folder / "model.json").guarantee.charges
        assert any("choice" in charge.name for charge in charges) == chosen


@pytest.mark.slow
@pytest.mark.parametrize("data", ["data.csv", "part*.parquet"])
@pytest.mark.parametrize("method", ["histogram", "moments", "smooth"])
def test_trains_from_files(folder, data, method):
    result = run(folder, "--method", method, data=data)
    assert result.exit_code == 0, result.output
    assert "epsilon = 1 per person in total" in result.output
    model = NaiveBayesModel.read(folder / "model.json")
    assert model.guarantee.is_private
    assert model.guarantee.epsilon == 1.0
    if method == "histogram":
        frame = pd.read_csv(folder / "data.csv")
        assert np.mean(model.predict(frame) == frame["paid"]) > 0.9


def test_json_lists_what_everything_cost(folder):
    result = run(folder, "--json", "--allocation", "age=3,job=1", "--delta", "1e-6")
    body = json.loads(result.stdout)
    costs = {name: cost for name, cost, _ in body["guarantee"]["charges"]}
    assert costs["table of age"] == pytest.approx(3 * costs["table of job"])
    assert sum(costs.values()) <= 1.0
    # for two features noise without delta is less: what is promised is more than was asked
    assert body["guarantee"]["delta"] == 0.0


@pytest.mark.slow
def test_a_ledger_is_charged_until_it_is_empty(folder):
    ledger = ["--budget-file", str(folder / "budget.json")]
    assert run(folder, *ledger).exit_code == 2  # no total was stated
    assert run(folder, *ledger, "--budget-total", "1.5").exit_code == 0
    (folder / "model.json").unlink()
    refused = run(folder, *ledger)
    assert refused.exit_code == 2
    assert "0.5 and 0 of 1.5 and 0 are left" in refused.output
    assert not (folder / "model.json").exists()
    assert run(folder, *ledger, epsilon="0.5").exit_code == 0


def test_a_table_that_does_not_fit_costs_nothing(folder):
    frame = pd.read_csv(folder / "data.csv")
    frame.loc[2999, "age"] = 17
    frame.to_csv(folder / "data.csv", index=False)
    ledger = ["--budget-file", str(folder / "budget.json"), "--budget-total", "1"]
    result = run(folder, *ledger)
    assert result.exit_code == 2
    assert "outside the public bounds" in result.output
    assert not (folder / "budget.json").exists()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--allocation", "height=2"], "no feature 'height'"),
        (["--allocation", "age"], "invalid share"),
        (["--delta", "2"], "delta is 2.0"),
        (["--method", "best"], "'best' is not one of"),
    ],
)
def test_refused_with_a_sentence(folder, words, said):
    result = run(folder, *words)
    assert result.exit_code == 2
    assert said in result.output


@pytest.mark.slow
@pytest.mark.parametrize("what", ["published", "infinite", "inferred"])
def test_a_ledger_refuses_what_keeps_no_promise_unless_it_may_be_broken(folder, what):
    ledger = ["--budget-file", str(folder / "budget.json"), "--budget-total", "9"]
    words = ["--method", "global-published"] if what == "published" else []
    epsilon = "inf" if what == "infinite" else "1"
    if what == "inferred":
        public = Schema(SCHEMA.features, SCHEMA.target, SCHEMA.classes, inferred=True)
        (folder / "schema.json").write_text(public.to_json())
    result = run(folder, *ledger, *words, epsilon=epsilon)
    assert result.exit_code == 2
    assert "a void guarantee cannot be charged" in result.output
    assert not (folder / "model.json").exists()
    assert Ledger(folder / "budget.json").read().entries == ()
    result = run(folder, *ledger, *words, "--void", epsilon=epsilon)
    assert result.exit_code == 0, result.output
    assert "BROKEN" in result.output
    assert Ledger(folder / "budget.json").read().void_reasons
    assert not NaiveBayesModel.read(folder / "model.json").guarantee.is_private
    told = json.loads(run(folder, "--json", "--force", epsilon="inf").stdout)
    assert "budget" not in told


def test_a_training_is_paid_before_the_first_noise_is_drawn(folder, monkeypatch):
    """Every draw finds its charge on the disk, and a crash while drawing is not refunded."""
    seen = []

    def draws(self, count):
        seen.append(len(Ledger(folder / "budget.json").read().entries))
        raise RuntimeError("the power fails")

    monkeypatch.setattr(CryptoRandom, "raw", draws)
    ledger = ["--budget-file", str(folder / "budget.json"), "--budget-total", "9"]
    result = run(folder, *ledger)
    assert isinstance(result.exception, RuntimeError)
    assert seen == [1]
    assert [e.epsilon for e in Ledger(folder / "budget.json").read().entries] == [1.0]


@pytest.mark.slow
def test_the_password_of_a_database_reaches_no_file(folder, monkeypatch):
    from discreet.tables import source

    opened, local = source.TableSource, str(folder / "data.csv")
    monkeypatch.setattr(source, "TableSource", lambda _, schema, **o: opened(local, schema, **o))
    monkeypatch.setattr("discreet.cli.train.warn_of_repeated_ids", lambda *_: None)
    url = "postgres://ann:hunter2@db.example/people"
    given = ["train", url, "--schema", str(folder / "schema.json"), "--epsilon", "1"]
    given += ["--budget-file", str(folder / "budget.json"), "--budget-total", "2"]
    result = CliRunner().invoke(main, [*given, "-o", str(folder / "model.json")])
    assert result.exit_code == 0, result.output
    assert "hunter2" not in result.output
    for file in folder.iterdir():
        assert b"hunter2" not in file.read_bytes()
    assert "db.example/people" in (folder / "budget.json").read_text()


def test_what_cannot_be_calibrated_is_refused_before_anything_is_paid(folder, monkeypatch):
    """A scale that does not exist depends on no data: it is looked for before the ledger."""

    def impossible(self, epsilon, delta=0.0):
        raise PrivacyError("there is no such scale")

    ledger = ["--budget-file", str(folder / "ledger.json"), "--budget-total", "5"]
    for method in ("smooth", "trimmed"):
        with monkeypatch.context() as patch:
            patch.setattr(AdditiveNoise, "calibrate", impossible)
            result = run(folder, "--method", method, *ledger)
        assert result.exit_code != 0
        assert "there is no such scale" in result.output
        assert not (folder / "ledger.json").exists()


def test_a_very_large_epsilon_with_delta_has_a_scale(folder):
    """Exp(300) is beyond what differences of probabilities can be computed with."""
    result = run(folder, "--method", "smooth", "--delta", "1e-6", epsilon="900")
    assert result.exit_code == 0, result.output


def roads(folder):
    """The ways from a table to a trained model; each gives its promise."""
    data = folder / "data.csv"

    def from_the_command_line():
        result = run(folder)
        if result.exit_code != 0:
            raise PrivacyError(result.output)
        return NaiveBayesModel.read(folder / "model.json").guarantee

    frame = pd.read_csv(data)
    X, y = frame[["age", "job"]], frame["paid"]
    return {
        "discreet train": from_the_command_line,
        "fit_source": lambda: CentralNB(schema=SCHEMA).fit_source(data).guarantee_,
        "fit": lambda: CentralNB(schema=SCHEMA).fit(X, y).guarantee_,
    }


@pytest.mark.slow
@pytest.mark.parametrize("road", ["discreet train", "fit_source", "fit"])
@pytest.mark.parametrize("dearer", [{"epsilon": 1.5}, {"delta": 1e-6}], ids=["epsilon", "delta"])
def test_no_road_releases_more_than_was_paid(folder, monkeypatch, road, dearer):
    """A training that promises more than was planned, and hence paid for, is held back."""
    true = histogram.release_histogram
    assert roads(folder)[road]().epsilon == 1.0
    (folder / "model.json").unlink(missing_ok=True)

    def dear(*asked):
        released = true(*asked)
        return replace(released, guarantee=replace(released.guarantee, **dearer))

    monkeypatch.setattr(histogram, "release_histogram", dear)
    with pytest.raises(PrivacyError, match="more than was paid for"):
        roads(folder)[road]()
    assert not (folder / "model.json").exists()


@pytest.mark.parametrize("road", ["discreet train", "fit_source", "fit"])
def test_twin_a_road_without_the_check_releases_it(folder, monkeypatch, road):
    true = histogram.release_histogram

    def dear(*asked):
        released = true(*asked)
        return replace(released, guarantee=replace(released.guarantee, epsilon=1.5))

    monkeypatch.setattr(histogram, "release_histogram", dear)
    monkeypatch.setattr(training, "require_paid", lambda *given: None)
    monkeypatch.setattr("discreet.estimators.private.require_paid", lambda _, paid, name: paid)
    assert roads(folder)[road]().epsilon == 1.5


def test_both_roads_state_the_account_of_the_ledger(folder):
    path = folder / "budget.json"
    assert run(folder, "--budget-file", str(path), "--budget-total", "5").exit_code == 0
    first = NaiveBayesModel.read(folder / "model.json").guarantee
    second = CentralNB(schema=SCHEMA, budget=path).fit_source(folder / "data.csv").guarantee_
    assert str(first.account) == "1 release costs epsilon 1, of 5 (budget.json)"
    assert str(second.account) == "2 releases cost epsilon 2 together, of 5 (budget.json)"


def test_a_total_without_a_ledger_trains_nothing(folder):
    """Ignored, it would let every training pass."""
    result = run(folder, "--budget-total", "1")
    assert result.exit_code == 2
    assert "--budget-total 1 has no effect without a ledger" in result.output
    assert not (folder / "model.json").exists()


@pytest.mark.parametrize("command", ["provide", "label"])
def test_a_total_without_a_ledger_joins_no_round(folder, command):
    """Refused before the manifest is read or the collector is asked."""
    words = ["federated", command, "nowhere.json", "nothing.csv", "--identity", "none.json"]
    words += ["--collector", "https://127.0.0.1:9", "--state", str(folder / "kept")]
    result = CliRunner().invoke(main, [*words, "--budget-total", "1"])
    assert result.exit_code == 2
    assert "--budget-total 1 has no effect without a ledger" in result.output
