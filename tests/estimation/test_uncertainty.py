"""A stated 90 % is right about 90 % of the time, against the classifier without noise."""

import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

from discreet import CentralNB, EstimationError, FederatedNB, LocalNB, estimate
from discreet.cli import main
from discreet.datasets import mortgage
from discreet.estimation import uncertainty
from discreet.estimation.uncertainty import drawn_models, steadiness
from discreet.tables import count

PEOPLE, ROWS = 5000, 120


def stated_and_true(make, collections, draws=40):
    """For rows of several collections: how steady they were called, and whether they were."""
    said, was = [], []
    for seed in range(collections):
        people = mortgage(PEOPLE + ROWS, seed)
        nb = make(people.schema, seed).fit(people.X[:PEOPLE], people.y[:PEOPLE])
        noisy, rows = nb.statistics_, people.X[PEOPLE:]
        bins = {n: list(t.cells.edges[1:-1]) for n, t in noisy.tables.items() if t.cells.edges}
        exact = count(people.frame[:PEOPLE], people.schema, bins=bins, moments=None)
        used = [factor.name for factor in nb.model_.factors]
        exact = replace(exact, tables={name: exact.tables[name] for name in used})
        truth = estimate(exact).predict_joint_log_proba(rows).argmax(axis=1)
        decision = nb.model_.predict_joint_log_proba(rows).argmax(axis=1)
        said.append(steadiness(noisy, rows, draws=draws, random_state=seed))
        was.append(truth == decision)
    return np.concatenate(said), np.concatenate(was)


MAKERS = {
    "local": lambda schema, seed: LocalNB(1.5, schema=schema, random_state=seed),
    "federated": lambda schema, seed: FederatedNB(0.05, schema=schema, random_state=seed),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", MAKERS)
def test_what_is_stated_comes_true_about_as_often(name):
    """20 collections of 120 rows; rows of one collection err together, hence the margins."""
    said, was = stated_and_true(MAKERS[name], 20)
    assert said.mean() == pytest.approx(was.mean(), abs=0.06)
    near = (said > 0.82) & (said < 0.95)
    assert near.sum() > 200
    assert was[near].mean() == pytest.approx(said[near].mean(), abs=0.08)
    surest = said > 0.95
    assert was[surest].mean() > 0.92
    assert was[said < 0.7].mean() < was[surest].mean() - 0.1


@pytest.mark.slow
def test_draws_that_forget_the_noise_are_found_out(monkeypatch):
    """The known-bad twin: nothing is drawn, so that every decision looks steady."""
    monkeypatch.setattr(uncertainty._Believed, "draw", lambda self, rng, scale: self.model)
    said, was = stated_and_true(MAKERS["local"], 4, draws=2)
    assert said.mean() > was.mean() + 0.06


def test_exact_statistics_leave_no_doubt():
    people = mortgage(500, seed=1)
    nb = LocalNB(float("inf"), schema=people.schema, random_state=0).fit(people.X, people.y)
    assert (steadiness(nb.statistics_, people.X) == 1).all()


def test_densities_are_drawn_too_and_noise_without_variance_is_refused():
    people = mortgage(3000, seed=1)
    nb = CentralNB(0.3, method="moments", schema=people.schema, random_state=0)
    found = nb.fit(people.X, people.y).statistics_
    models = list(drawn_models(found, 3, 0))
    assert {f.name for f in models[0].factors} == {f.name for f in nb.model_.factors}
    age = [next(f.mean[0] for f in one.factors if f.name == "age") for one in models]
    assert len(set(age)) == 3
    steady = steadiness(found, people.X[:200], draws=20, random_state=0)
    assert 0.6 < steady.mean() < 0.98
    with pytest.raises(EstimationError, match="at least 1"):
        next(drawn_models(found, 0))
    cauchy = CentralNB(1.0, method="smooth", schema=people.schema, random_state=0)
    with pytest.raises(EstimationError, match="no variance"):
        next(drawn_models(cauchy.fit(people.X, people.y).statistics_))


def test_the_command_says_how_steady_each_decision_is(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    people = mortgage(2500, seed=1)
    people.frame[:2000].to_csv("known.csv", index=False)
    people.frame[2000:].to_csv("others.csv", index=False)
    (tmp_path / "schema.json").write_text(people.schema.to_json())

    def run(*words):
        return CliRunner().invoke(main, list(words))

    done = run("train", "known.csv", "--schema", "schema.json", "--epsilon", "0.2", "-o",
               "model.json", "--statistics", "statistics.json")  # fmt: skip
    assert done.exit_code == 0, done.output
    words = ["predict", "model.json", "others.csv", "--uncertainty", "statistics.json"]
    for name, read in (("out.csv", pd.read_csv), ("out.parquet", pd.read_parquet)):
        assert run(*words, "--proba", "-o", name).exit_code == 0
        frame = read(name)
        assert list(frame.columns) == ["prediction", "P(no)", "P(yes)", "steady"]
        assert frame["steady"].between(0.02, 0.98).all()
        sure = frame[["P(no)", "P(yes)"]].max(axis=1) > 0.95
        assert frame.loc[sure, "steady"].mean() > frame.loc[~sure, "steady"].mean()
    body = json.loads(run(*words, "--json").stdout)
    assert len(body["steady"]) == 500
    run("train", "known.csv", "--schema", "schema.json", "--epsilon", "0.3", "-o", "other.json")
    refused = run("predict", "other.json", "others.csv", "--uncertainty", "statistics.json")
    assert refused.exit_code == 2
    assert "not the statistics" in refused.stderr
