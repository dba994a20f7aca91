"""What a public sample gives to a plan: components and cut points that devices apply themselves."""

import json

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

from discreet import Categorical, FormatError, LocalNB, Numeric, Schema, SchemaError
from discreet.cli import main
from discreet.collection.simulation import simulate_tally
from discreet.estimation import estimate
from discreet.local.inversion import estimate_statistics
from discreet.local.plan import Plan
from discreet.local.planning import PlanOptions, make_plan
from discreet.model import NaiveBayesModel
from discreet.randomness import SeededRandom
from discreet.schema.projection import DCA, PCA, fit_projection

SCHEMA = Schema(
    [Numeric("a", 0, 100), Categorical("k", ["x", "y"]), Numeric("b", 0, 50), Numeric("c", -5, 5)],
    "y",
    [0, 1],
)


def people(count, seed=0):
    rng = np.random.default_rng(seed)
    y = (rng.random(count) < 0.4).astype(int)
    one = rng.normal(size=count) + 2.5 * y
    return pd.DataFrame(
        {
            "a": (40 + 10 * one + rng.normal(0, 3, count)).clip(0, 100),
            "k": rng.choice(["x", "y"], count),
            "b": (20 + 5 * one + rng.normal(0, 2, count)).clip(0, 50),
            "c": rng.normal(0, 1, count).clip(-5, 5),
            "y": y,
        }
    )


def projection(kind=PCA(2)):  # noqa: B008
    sample = people(300, seed=9)
    columns = {name: sample[name].to_numpy() for name in SCHEMA.names}
    return fit_projection(kind, SCHEMA, columns, sample["y"].to_numpy())


def test_a_plan_carries_its_projection_and_its_digest_depends_on_it():
    plan = make_plan(SCHEMA, 3.0, options=PlanOptions(projection=projection()))
    assert plan.schema.names == ["k", "component1", "component2"]
    again = Plan.from_json(plan.to_json())
    assert again.digest == plan.digest
    assert again.projection.matrix.tolist() == plan.projection.matrix.tolist()
    body = json.loads(plan.to_json())
    body["projection"]["matrix"][0][0] += 0.001
    with pytest.raises(FormatError):
        Plan.from_json(json.dumps(body))
    other = make_plan(SCHEMA, 3.0, options=PlanOptions(projection=projection(PCA(1))))
    assert other.digest != plan.digest


def test_a_device_takes_the_original_record_and_does_what_the_simulation_does():
    plan = make_plan(SCHEMA, 3.0, options=PlanOptions(projection=projection()))
    assert plan.names == ("a", "k", "b", "c", "y")
    frame = people(20)
    many = plan.encode_columns({name: frame[name].to_numpy() for name in plan.names})
    for row in range(20):
        one = plan.encode_record(frame.iloc[row].to_dict())
        assert one.classes[0] == many.classes[row]
        for name in plan.schema.names:
            assert one.columns[name][0] == many.columns[name][row]
    with pytest.raises(SchemaError, match="component1"):
        plan.encode_record({**frame.iloc[0].to_dict(), "component1": 0.0})


def test_a_question_about_a_component_asks_for_all_numbers():
    plan = make_plan(SCHEMA, 1.0, options=PlanOptions(kind="pairs", projection=projection()))
    asked = {q.features: plan.get_asked_columns(i) for i, q in enumerate(plan.questions)}
    assert asked["component1",] == ("a", "b", "c", "y")
    assert asked["k",] == ("k", "y")


@pytest.mark.parametrize("kind", [PCA(1), DCA(1)])
def test_a_saved_model_of_components_takes_the_original_columns(kind):
    plan = make_plan(SCHEMA, 4.0, 4000, PlanOptions(projection=projection(kind)))
    frame = people(4000)
    codes = plan.encode_columns({name: frame[name].to_numpy() for name in plan.names})
    model = estimate(estimate_statistics(simulate_tally(plan, codes, SeededRandom(0))))
    again = NaiveBayesModel.from_json(model.to_json())
    test = people(1000, seed=5)
    right = np.mean(again.predict(test[list(SCHEMA.names)]) == test["y"].to_numpy())
    assert right > 0.8  # always naming the larger class: 0.6


def test_the_estimator_runs_the_same_plan():
    frame, sample = people(2000), people(300, seed=9)
    X, y = frame[list(SCHEMA.names)], frame["y"].to_numpy()
    public = sample[list(SCHEMA.names)], sample["y"].to_numpy()
    nb = LocalNB(4.0, schema=SCHEMA, projection=PCA(1), public_sample=public, random_state=0)
    nb.fit(X, y)
    assert nb.plan_.projection is not None
    fixed = LocalNB(4.0, schema=SCHEMA, plan=nb.plan_, random_state=0).fit(X, y)
    assert fixed.model_.to_json() == nb.model_.to_json()
    assert nb.score(X, y) > 0.8


def test_a_public_sample_with_missing_values_is_refused_in_words():
    sample = people(50)
    sample.loc[3, "b"] = np.nan
    columns = {name: sample[name].to_numpy() for name in SCHEMA.names}
    with pytest.raises(SchemaError, match="public_sample: b has missing values"):
        fit_projection(PCA(1), SCHEMA, columns)


def run(*words):
    done = CliRunner().invoke(main, [str(word) for word in words], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done


@pytest.mark.slow
def test_the_command_line_goes_from_a_public_sample_to_a_model_of_two_waves(tmp_path):
    (tmp_path / "schema.json").write_text(SCHEMA.to_json())
    people(200, seed=9).to_csv(tmp_path / "public.csv", index=False)
    for wave in (1, 2):
        people(1500, seed=wave).to_csv(tmp_path / f"people{wave}.csv", index=False)
        plan, reports = tmp_path / f"plan{wave}.json", tmp_path / f"reports{wave}.parquet"
        options = ("--dca", 1, "--cut", "quantile", "--bins", 4)
        run("local", "plan", tmp_path / "schema.json", "--epsilon", 2 + wave, *options,
            "--public-sample", tmp_path / "public.csv", "-o", plan)  # fmt: skip
        made = Plan.read(plan)
        assert made.projection is not None
        widths = np.diff(made.edges["component1"])
        assert len(widths) == 4
        assert widths.max() > 1.5 * widths.min()  # not of equal width
        run("local", "perturb", plan, tmp_path / f"people{wave}.csv", "-o", reports)
        run("local", "tally", plan, reports, "-o", tmp_path / f"tally{wave}.json")
    tallies = tmp_path / "tally1.json", tmp_path / "tally2.json"
    done = run("local", "train", *tallies, "-o", tmp_path / "model.json", "--json")
    assert json.loads(done.stdout)["people"] == 3000
    assert json.loads(done.stdout)["guarantee"]["epsilon"] == 4
    people(500, seed=7).to_csv(tmp_path / "test.csv", index=False)
    done = run("evaluate", tmp_path / "model.json", tmp_path / "test.csv", "--json")
    assert json.loads(done.stdout)["accuracy"] > 0.75
    twice = CliRunner().invoke(
        main, ["local", "train", str(tallies[0]), str(tallies[0]), "-o", str(tmp_path / "m.json")]
    )
    assert twice.exit_code != 0
    assert "same plan" in twice.output


def test_a_public_sample_is_read_only_where_something_is_learnt_from_it(tmp_path):
    (tmp_path / "schema.json").write_text(SCHEMA.to_json())
    words = ["local", "plan", str(tmp_path / "schema.json"), "--epsilon", "1"]
    for more in (["--pca", "1"], ["--public-sample", "x.csv"], ["--cut", "quantile"]):
        done = CliRunner().invoke(main, [*words, *more])
        assert done.exit_code == 2
        assert "--public-sample goes with" in " ".join(done.output.split())
