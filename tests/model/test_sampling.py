"""Synthetic records have the distributions that the model states, and carry its promise."""

import io

import numpy as np
import pandas as pd
import pyarrow.parquet
import pytest
from click.testing import CliRunner
from scipy import stats

from discreet import Categorical, CentralNB, EstimationError, LocalNB, MixedNB, Numeric, Schema
from discreet.cli import main
from discreet.datasets import make_mortgage
from discreet.model import CellFactor, GaussianFactor
from discreet.model.sampling import sample_records


@pytest.fixture(scope="module")
def people():
    return make_mortgage(4000, seed=2)


@pytest.fixture(scope="module")
def models(people):
    made = [
        MixedNB(schema=people.schema, likelihood="truncated"),
        CentralNB(2.0, schema=people.schema, random_state=0),
    ]
    return [nb.fit(people.X, people.y).model_ for nb in made]


@pytest.mark.slow
def test_records_follow_the_model(models):
    """Each cell by a binomial test, each density by Kolmogorov and Smirnov; 1e-6 for each."""
    for model in models:
        columns = sample_records(model, 20_000, random_state=1)
        target = columns.pop(model.schema.target)
        assert list(columns) == [factor.name for factor in model.factors]
        for c, label in enumerate(model.schema.classes):
            mine = target == label
            prior = np.exp(model.log_prior[c])
            assert stats.binomtest(int(mine.sum()), 20_000, prior).pvalue > 1e-6
            for factor in model.factors:
                column = columns[factor.name][mine]
                if isinstance(factor, CellFactor):
                    check_cells(factor, column, c)
                else:
                    check_density(factor, column, c)


def check_cells(factor, column, c):
    skipped = (factor.log_probability == 0).all(axis=0)
    law = np.where(skipped, 0, np.exp(factor.log_probability[c]))
    law = law / law.sum()
    found = np.bincount(factor.cells.encode_column(column), minlength=factor.cells.size)
    for count, share in zip(found, law, strict=True):
        assert stats.binomtest(int(count), len(column), min(share, 1.0)).pvalue > 1e-6


def check_density(factor, column, c):
    mean, deviation = factor.mean[c], np.sqrt(factor.variance[c])
    feature = factor.feature
    ends = [(edge - mean) / deviation for edge in (feature.lower, feature.upper)]
    law = stats.truncnorm(*ends, mean, deviation)
    numbers = np.array([one for one in column if one is not None], dtype=float)
    if feature.integer:  # the mean survives rounding
        assert abs(numbers.mean() - law.mean()) < 5 * law.std() / np.sqrt(len(numbers)) + 0.05
    else:
        assert stats.kstest(numbers, law.cdf).pvalue > 1e-6


def test_records_fit_the_schema_and_the_seed_repeats_them(models, people):
    for model in models:
        one, two = (pd.DataFrame(sample_records(model, 500, random_state=3)) for _ in range(2))
        pd.testing.assert_frame_equal(one, two)
        full = people.X[:500].reset_index(drop=True).assign(**{n: one[n] for n in one})
        model.predict(full[list(model.inputs.names)])  # a value outside the schema is refused
        assert not one.equals(pd.DataFrame(sample_records(model, 500)))


def test_a_model_that_keeps_missing_values_draws_them():
    schema = Schema([Numeric("x", 0, 9, integer=True), Categorical("a", ["p", "q"])], "c",
                    [0, 1], missing="category")  # fmt: skip
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 3000)
    x = np.where(rng.random(3000) < 0.3, None, rng.integers(0, 10, 3000).astype(object))
    a = np.where(rng.random(3000) < 0.2, None, np.where(y == 1, "p", "q"))
    X = pd.DataFrame({"x": x, "a": a})
    for nb in (MixedNB(schema=schema), LocalNB(8.0, schema=schema, bins=5, random_state=0)):
        columns = sample_records(nb.fit(X, y).model_, 5000, random_state=0)
        for name, share in (("x", 0.3), ("a", 0.2)):
            absent = np.mean([value is None for value in columns[name]])
            assert absent == pytest.approx(share, abs=0.05)


def test_nonsense_is_refused(models):
    with pytest.raises(EstimationError, match="at least 0"):
        sample_records(models[0], -1)
    assert len(sample_records(models[0], 0)["income"]) == 0


def test_the_command_prints_the_promise_beside_the_records(models, tmp_path):
    (tmp_path / "model.json").write_text(models[1].to_json())

    def run(*words):
        done = CliRunner().invoke(main, ["sample", str(tmp_path / "model.json"), *words])
        assert done.exit_code == 0, done.output
        assert "epsilon = 2" in done.stderr
        return done.stdout

    text = run("-n", "40", "--seed", "1")
    frame = pd.read_csv(io.StringIO(text))
    assert text == frame.to_csv(index=False, lineterminator="\n")
    run("-n", "40", "--seed", "1", "-o", str(tmp_path / "s.csv"))
    assert (tmp_path / "s.csv").read_text() == text
    assert len(frame) == 40
    assert list(frame.columns) == list(sample_records(models[1], 1))
    run("-n", "40", "--seed", "1", "-o", str(tmp_path / "s.parquet"))
    table = pyarrow.parquet.read_table(tmp_path / "s.parquet")
    assert b"epsilon = 2" in table.schema.metadata[b"discreet.promise"]
    assert table.num_rows == 40
    assert [str(v) for v in table["income"].to_pylist()] == list(frame["income"])
    refused = CliRunner().invoke(
        main, ["sample", str(tmp_path / "model.json"), "-o", str(tmp_path / "s.txt")]
    )
    assert refused.exit_code == 2
    assert ".csv or .parquet" in refused.stderr
    assert isinstance(models[0].factors[0], GaussianFactor)


@pytest.mark.slow
@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_records_are_read_by_pandas_and_by_other_commands(suffix, tmp_path):
    """Values of any kind, missing ones, commas and number signs at the begin of a line."""
    schema = Schema(
        [
            Categorical("# first", ["#1", "a, b", 'say "x"']),
            Categorical("flag", [True, False]),
            Categorical("mixed", [1, 2.5, "x"]),
            Categorical("half", [0.5, 1.0]),
            Numeric("n", 0, 9, integer=True),
            Numeric("f", -1e22, 1e22),
        ],
        "t",
        [True, False],
    )
    rng = np.random.default_rng(0)
    columns = {
        feature.name: rng.choice(np.array([*feature.values, None], dtype=object), 500)
        for feature in schema.features
        if isinstance(feature, Categorical)
    }
    columns["n"] = rng.integers(0, 10, 500)
    columns["f"] = np.where(rng.random(500) < 0.5, 1e21, -3.25)
    y = rng.random(500) < 0.5
    nb = CentralNB(9.0, schema=schema, selection=False, random_state=0)
    model = nb.fit(pd.DataFrame(columns), y).model_
    (tmp_path / "model.json").write_text(model.to_json())
    public = Schema(
        [schema[name] for name in sample_records(model, 1) if name != "t"], "t", schema.classes
    )
    (tmp_path / "schema.json").write_text(public.to_json())
    output = str(tmp_path / f"records.{suffix}")
    lines = [
        ["sample", str(tmp_path / "model.json"), "-n", "300", "-o", output],
        ["schema", "check", str(tmp_path / "schema.json"), output],
        ["evaluate", str(tmp_path / "model.json"), output],
    ]
    for line in lines:
        done = CliRunner().invoke(main, line)
        assert done.exit_code == 0, done.output
    frame = pd.read_csv(output) if suffix == "csv" else pd.read_parquet(output)
    assert list(frame.columns) == list(sample_records(model, 1))
    assert len(frame) == 300
