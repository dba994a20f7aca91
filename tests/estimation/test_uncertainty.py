"""A stated 90 % is right about 90 % of the time, against the classifier without noise."""

import json
from dataclasses import replace
from functools import cache

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

from discreet import (
    Categorical,
    CentralNB,
    EstimationError,
    FederatedNB,
    LocalNB,
    Numeric,
    Schema,
    estimate,
)
from discreet.cli import main
from discreet.datasets import load, make_mortgage
from discreet.estimation import uncertainty
from discreet.estimation.corrected_draws import _draw_exact_correction, _draw_positive
from discreet.estimation.corrections import CHANGE_STDS, compute_posterior_step, split_curvatures
from discreet.estimation.smoothing import STRENGTH_GRID
from discreet.estimation.uncertainty import GroupedTable, PosteriorDraws, estimate_agreement
from discreet.model import compute_log_posterior
from discreet.schema.cells import Cells
from discreet.statistics.scoring import Correction
from discreet.statistics.statistics import Moments, Statistics, Table
from discreet.tables import CountRequest, count

PEOPLE, ROWS = 5000, 120


def stated_and_true(make, table, collections, draws=40):
    """For rows of several collections: how steady they were called, and whether they were."""
    said, was = [], []
    for seed in range(collections):
        people = table(seed)
        order = np.random.default_rng(seed).permutation(len(people.y))
        X, y = people.X.iloc[order].reset_index(drop=True), np.asarray(people.y)[order]
        nb = make(people.schema, seed).fit(X[:PEOPLE], y[:PEOPLE])
        noisy, rows = nb.statistics_, X[PEOPLE : PEOPLE + ROWS]
        bins = {n: list(t.cells.edges[1:-1]) for n, t in noisy.tables.items() if t.cells.edges}
        frame = X[:PEOPLE].assign(**{people.schema.target: y[:PEOPLE]})
        exact = count(frame, people.schema, CountRequest(bins=bins, moments=None))
        used = [factor.name for factor in nb.model_.factors]
        exact = replace(exact, tables={name: exact.tables[name] for name in used})
        truth = estimate(exact).predict_joint_log_proba(rows).argmax(axis=1)
        decision = nb.model_.predict_joint_log_proba(rows).argmax(axis=1)
        said.append(estimate_agreement(noisy, rows, draws=draws, random_state=seed))
        was.append(truth == decision)
    return np.concatenate(said), np.concatenate(was)


def generated(seed):
    return make_mortgage(PEOPLE + ROWS, seed)


@cache
def adult():
    return load("adult")


MAKERS = {
    "local": lambda schema, seed: LocalNB(1.5, schema=schema, random_state=seed),
    "federated": lambda schema, seed: FederatedNB(0.05, schema=schema, random_state=seed),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", MAKERS)
def test_what_is_stated_comes_true_about_as_often(name):
    """12 collections of 120 rows; rows of one collection err together, hence the margins."""
    said, was = stated_and_true(MAKERS[name], generated, 12)
    assert -0.10 < said.mean() - was.mean() < 0.04
    near = (said > 0.82) & (said < 0.95)
    assert near.sum() > 120
    assert -0.10 < said[near].mean() - was[near].mean() < 0.07
    surest = said > 0.95
    assert was[surest].mean() > 0.95
    assert was[said < 0.7].mean() < was[surest].mean() - 0.1


def around_the_shrunken(statistics, totals, rng):
    """What is drawn if what was shrunk away counts as absent."""
    model, found = estimate(statistics), {}
    share = np.exp(model.log_prior)[:, None]
    for one in model.factors:
        table, kept = statistics.tables[one.name], np.exp(one.log_probability)
        kept = kept * statistics.totals.sum() * share / kept.sum(axis=1, keepdims=True)
        away = table.counts - share * kept.sum(axis=0)
        believed = ((kept - share * kept.sum(axis=0)) * away / table.variances).sum()
        believed = np.clip(believed / (away**2 / table.variances).sum(), 0, 1)
        noise = np.sqrt(believed * table.variances)
        draws = kept + noise * rng.standard_normal((len(totals), *kept.shape))
        found[one.name] = np.maximum(draws, 0.0)
    return found


def too_sure(collections):
    """By how much decisions on adult that are called more than 80 % steady are less so."""
    make = MAKERS["local"]
    said, was = stated_and_true(make, lambda seed: adult(), collections)
    sure = said > 0.8
    assert sure.sum() > 100
    return said[sure].mean() - was[sure].mean()


@pytest.mark.data
@pytest.mark.slow
def test_evidence_that_was_shrunk_away_is_not_taken_for_absent():
    """On adult the noise hides most of the evidence, and the model decides by the class shares."""
    assert too_sure(6) < 0.16  # not zero: docs/experiments/confidence.md


@pytest.mark.data
@pytest.mark.slow
def test_draws_around_the_shrunken_estimate_are_found_out(monkeypatch):
    """The known-bad twin."""
    monkeypatch.setattr(uncertainty, "_draw_tables", around_the_shrunken)
    monkeypatch.setattr(uncertainty, "MIN_SHIFT_ROWS", 10**9)
    assert too_sure(6) > 0.2


@pytest.mark.slow
def test_draws_that_forget_the_noise_are_found_out(monkeypatch):
    """The known-bad twin: nothing is drawn, so that every decision looks steady."""

    def shrunken(statistics, totals, rng):
        model, draws = estimate(statistics), len(totals)
        counts = {one.name: PEOPLE * np.exp(one.log_probability) for one in model.factors}
        return {name: np.tile(one, (draws, 1, 1)) for name, one in counts.items()}

    monkeypatch.setattr(uncertainty, "_draw_tables", shrunken)
    monkeypatch.setattr(uncertainty, "MIN_SHIFT_ROWS", 10**9)
    said, was = stated_and_true(MAKERS["local"], generated, 4, draws=2)
    assert said.mean() > was.mean() + 0.04


def test_noise_that_hides_everything_leaves_everything_open():
    """Features that would decide every row, and noise a hundred times wider than they are."""
    schema = Schema(
        [Categorical(f"x{j}", ["a", "b"], optional=False) for j in range(6)], "y", [0, 1]
    )
    wide = np.full((2, 2), 1e10)
    tables = {
        name: Table(Cells.from_schema(schema, name), np.array([[450.0, 50.0], [50.0, 450.0]]), wide)
        for name in schema.names
    }
    noisy = Statistics(schema, np.array([510.0, 490.0]), np.full(2, 4.0), tables)
    rows = pd.DataFrame(np.random.default_rng(0).choice(["a", "b"], (80, 6)), columns=schema.names)
    assert estimate_agreement(noisy, rows, random_state=0).mean() == pytest.approx(0.5, abs=0.06)
    narrow = {name: replace(one, variances=wide / 1e9) for name, one in tables.items()}
    clear = replace(noisy, tables=narrow)
    same = pd.DataFrame([["a"] * 6, ["b"] * 6] * 30, columns=schema.names)
    assert estimate_agreement(clear, same, random_state=0).min() == pytest.approx(0.98)


def test_drawn_classifiers_keep_to_the_class_shares_on_average():
    people = make_mortgage(3000, seed=1)
    nb = LocalNB(0.5, schema=people.schema, random_state=0).fit(people.X, people.y)
    drawn = PosteriorDraws(nb.statistics_, 20, 0)
    scores = drawn._compute_scores(dict(people.X[:200].items()), slice(0, 200))
    odds = np.exp(
        compute_log_posterior(
            (scores + uncertainty._fit_shift(scores, drawn.shares)).reshape(-1, 2)
        )
    )
    np.testing.assert_allclose(odds.reshape(200, 20, 2).mean(axis=0), drawn.shares, atol=0.02)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["categories", "bins"])
def test_very_large_tables_are_drawn_in_groups_of_cells(kind):
    values = list(range(400))
    feature = Categorical("x", values) if kind == "categories" else Numeric("x", 0, 400)
    schema = Schema([feature], "y", [0, 1])
    cells = Cells.from_schema(schema, "x", bins=400)
    rng = np.random.default_rng(0)
    exact = np.zeros((2, cells.size))
    exact[:, :400] = rng.poisson(20 * np.exp(np.outer([-1, 1], np.linspace(-1, 1, 400))))
    table = Table(cells, exact + rng.normal(0, 3, exact.shape), np.full(exact.shape, 9.0))
    noisy = Statistics(schema, exact.sum(axis=1), np.full(2, 9.0), {"x": table})
    found = PosteriorDraws(noisy, 30, 0).model.factors[0].log_probability[:, :400]
    wanted = estimate(Statistics(schema, exact.sum(axis=1), tables={"x": Table(cells, exact)}))
    wanted = wanted.factors[0].log_probability[:, :400]
    assert np.abs(found.reshape(30, 2, 400).mean(axis=0) - wanted).mean() < 0.25  # of noise: .13


def test_exact_statistics_leave_no_doubt():
    people = make_mortgage(500, seed=1)
    nb = LocalNB(float("inf"), schema=people.schema, random_state=0).fit(people.X, people.y)
    assert (estimate_agreement(nb.statistics_, people.X) == 1).all()


def test_densities_are_drawn_too_and_noise_without_variance_is_refused():
    people = make_mortgage(3000, seed=1)
    nb = CentralNB(0.3, method="moments", schema=people.schema, random_state=0)
    found = nb.fit(people.X, people.y).statistics_
    model = PosteriorDraws(found, 3, 0).model
    assert {f.name for f in model.factors} == {f.name for f in nb.model_.factors}
    age = next(f.mean for f in model.factors if f.name == "age")
    assert len(set(age)) == 6
    steady = estimate_agreement(found, people.X[:200], draws=20, random_state=0)
    assert 0.6 < steady.mean() < 0.98
    with pytest.raises(EstimationError, match="at least 1"):
        PosteriorDraws(found, 0)
    cauchy = CentralNB(1.0, method="smooth", schema=people.schema, random_state=0)
    with pytest.raises(EstimationError, match="no variance"):
        PosteriorDraws(cauchy.fit(people.X, people.y).statistics_)


@pytest.mark.slow
def test_the_command_says_how_steady_each_decision_is(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    people = make_mortgage(2500, seed=1)
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
        surest = frame[["P(no)", "P(yes)"]].max(axis=1).sort_values().index
        steady = frame["steady"]  # at this epsilon no row may be sure, but some are surer
        assert steady[surest[-100:]].mean() >= steady[surest[:100]].mean()
    body = json.loads(run(*words, "--json").stdout)
    assert len(body["steady"]) == 500
    run("train", "known.csv", "--schema", "schema.json", "--epsilon", "0.3", "-o", "other.json")
    refused = run("predict", "other.json", "others.csv", "--uncertainty", "statistics.json")
    assert refused.exit_code == 2
    assert "not the statistics" in refused.stderr
    people.frame[:20].to_csv("few.csv", index=False)
    few = run("predict", "model.json", "few.csv", "--uncertainty", "statistics.json")
    assert few.exit_code == 0
    assert "20 rows are too few" in few.stderr


XOR = Schema(
    [Categorical(name, [0, 1], optional=False) for name in "ab"]
    + [Categorical("c", [0, 1, 2], optional=False)],
    "y",
    [0, 1],
)


def xor_people(n, flipped, seed):
    """Neither a nor b says anything about the class, both together nearly all."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame({"a": rng.integers(0, 2, n), "b": rng.integers(0, 2, n)})
    frame["c"] = rng.integers(0, 3, n)
    frame["y"] = frame["a"] ^ frame["b"] ^ (rng.random(n) < flipped).astype(int)
    return frame


def stated_for_xor(n=20_000, flipped=0.05, seed=0):
    """Mean steadiness of a corrected model, and how well it decides."""
    people, others = xor_people(n, flipped, seed), xor_people(400, flipped, seed + 1)
    features = ["a", "b", "c"]
    nb = CentralNB(1.0, schema=XOR, random_state=seed).fit(people[features], people["y"])
    assert nb.statistics_.scoring.corrections > 0
    steady = estimate_agreement(nb.statistics_, others[features], draws=60, random_state=0)
    return float(steady.mean()), float((nb.predict(others[features]) == others["y"]).mean())


def test_decisions_of_a_corrected_model_are_compared_with_corrected_ones():
    """Plain Naive Bayes knows nothing of XOR; decisions of many people's corrections are steady."""
    for seed in range(3):
        steady, accuracy = stated_for_xor(seed=seed)
        assert accuracy > 0.9
        assert steady > 0.95


def test_twin_corrected_decisions_compared_with_plain_ones(monkeypatch):
    """As it was: the draws are of plain Naive Bayes, which tosses a coin here."""

    def plain(statistics, draws, rng):
        return uncertainty._build_drawn_model(
            statistics, uncertainty._draw_totals(statistics, draws, rng), rng
        )

    monkeypatch.setattr(uncertainty, "draw_corrected_models", plain)
    steady, accuracy = stated_for_xor()
    assert accuracy > 0.9
    assert steady < 0.7


def weak_xor(seed):
    """A pair that says little beside the noise: decisions of ten trainings, and what is stated."""
    rows = pd.DataFrame([(a, b, c) for a in (0, 1) for b in (0, 1) for c in (0, 1, 2)])
    rows.columns = ["a", "b", "c"]
    people = xor_people(2_000, 0.47, seed)
    features = ["a", "b", "c"]
    decisions, stated = [], []
    for draw in range(40):
        nb = CentralNB(1.0, schema=XOR, random_state=draw).fit(people[features], people["y"])
        if nb.statistics_.scoring.corrections:
            decisions.append(nb.predict(rows))
            stated.append(estimate_agreement(nb.statistics_, rows, draws=40, random_state=0))
    return np.array(decisions), np.array(stated)


@pytest.mark.slow
def test_noise_in_corrections_makes_decisions_unsteady():
    """Where trainings on the same people disagree, that is stated."""
    decisions, stated = weak_xor(5)
    assert len(decisions) > 5
    usual = decisions.mean(axis=0) > 0.5
    agreed = (decisions == usual).mean()
    assert stated.mean() < 0.95
    assert abs(stated.mean() - agreed) < 0.2
    assert (stated > 0.97).mean() < 0.55  # without doubt about the residuals: .73


@pytest.mark.slow
def test_the_command_draws_corrections_too(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    xor_people(20_000, 0.05, 0).to_csv("known.csv", index=False)
    xor_people(300, 0.05, 1).to_csv("others.csv", index=False)
    (tmp_path / "schema.json").write_text(XOR.to_json())
    words = ["train", "known.csv", "--schema", "schema.json", "--epsilon", "1"]
    words += ["-o", "model.json", "--statistics", "statistics.json"]
    assert CliRunner().invoke(main, words).exit_code == 0
    words = ["predict", "model.json", "others.csv", "--uncertainty", "statistics.json"]
    assert CliRunner().invoke(main, [*words, "-o", "out.csv"]).exit_code == 0
    found, others = pd.read_csv("out.csv"), pd.read_csv("others.csv")
    assert (found["prediction"] == others["y"]).mean() > 0.85
    assert found["steady"].mean() > 0.95


# ---- exact corrections, drawn


CELLS = {"x": tuple(range(30))}


def measure_spread(draw, prior, noise_std, worlds=120, draws=10):
    """Variance of drawn changes of the scores, by the squared error of their mean.

    In each world exact sums are as the step assumes: changes of a size among CHANGE_STDS, or none.
    """
    rng, variances, errors = np.random.default_rng(0), [], []
    residual_count = 1 if len(prior) == 2 else len(prior)
    for _ in range(worlds):
        change_std = rng.choice((0.0, 0.0, *CHANGE_STDS))
        curvatures = rng.exponential(20, 30)
        variance = split_curvatures(curvatures, prior, residual_count)
        variance = variance + (change_std * variance) ** 2
        residuals = np.sqrt(variance) * rng.standard_normal(variance.shape)
        exact = compute_posterior_step(Correction(CELLS, residuals, curvatures, 0.0), prior)
        noisy = Correction(
            CELLS,
            residuals + noise_std * rng.standard_normal(residuals.shape),
            curvatures + noise_std * rng.standard_normal(30),
            noise_std**2,
        )
        drawn = [compute_posterior_step(draw(noisy, prior, rng), prior) for _ in range(draws)]
        variances.append(np.var(drawn, axis=0, ddof=1).mean() * (1 + 1 / draws))
        errors.append(((np.mean(drawn, axis=0) - exact) ** 2).mean())
    return np.mean(variances) / np.mean(errors)


def draw_independently(noisy, prior, rng):
    """As it was: a curvature of any sign, and a residual that knows nothing of it."""
    residuals, noise_std = noisy.residuals, np.sqrt(noisy.variance)
    curvatures = np.maximum(noisy.curvatures, 1e-3)
    excess = max(float((residuals**2 - noisy.variance - curvatures).sum()), 0.0)
    change_variance = excess / (len(residuals) * float((curvatures**2).sum()))
    signal = curvatures + change_variance * curvatures**2
    share = signal / (signal + noisy.variance)
    drawn = share * residuals + np.sqrt(share) * noise_std * rng.standard_normal(residuals.shape)
    curvatures = noisy.curvatures + noise_std * rng.standard_normal(30)
    return Correction(noisy.groups, drawn, curvatures, 0.0)


@pytest.mark.slow
@pytest.mark.parametrize("prior", [(0.5, 0.5), (0.7, 0.2, 0.07, 0.03)])
@pytest.mark.parametrize("noise_std", [10.0, 30.0])
def test_drawn_corrections_are_as_far_apart_as_exact_ones_are_from_them(prior, noise_std):
    """Neither too sure nor too cautious under the law of the step; 0.8 to 1.1 were measured."""
    prior = np.array(prior)
    assert 0.5 < measure_spread(_draw_exact_correction, prior, noise_std) < 1.5
    assert measure_spread(draw_independently, prior, noise_std) > 1.6  # the known-bad twin


def find_largest_residual(draw):
    """In standard deviations of chance, of cells whose curvature is noise."""
    rng = np.random.default_rng(0)
    noisy = Correction(CELLS, np.zeros((1, 30)), np.full(30, 5.0), 30.0**2)
    drawn = [draw(noisy, np.array([0.5, 0.5]), rng) for _ in range(50)]
    return max(
        (np.abs(one.residuals) / np.sqrt(np.maximum(one.curvatures, 1e-3))).max() for one in drawn
    )


def test_a_drawn_residual_belongs_to_the_people_of_the_drawn_curvature():
    assert find_largest_residual(_draw_exact_correction) < 30
    assert find_largest_residual(draw_independently) > 100  # the known-bad twin


def test_drawn_curvatures_are_positive_and_on_average_as_large_as_the_noisy_ones():
    rng = np.random.default_rng(0)
    exact = rng.exponential(20, 20_000)
    drawn = _draw_positive(exact + 30 * rng.standard_normal(20_000), 30.0**2, rng)
    assert drawn.min() > 0
    assert drawn.mean() == pytest.approx(20, rel=0.1)  # without a law of theirs beforehand: 38


# ---- the laws of the draws, one by one


def make_three_cells(kind):
    """Values a and b, or two bins, and a cell of missing values with a fifth of the people."""
    feature = Categorical("x", ["a", "b"]) if kind == "categories" else Numeric("x", 0, 2)
    cells = Cells.from_schema(Schema([feature], "y", [0, 1]), "x", {"x": [1.0]})
    counts = np.array([[30.0, 10.0, 10.0], [20.0, 20.0, 10.0]])
    return Table(cells, counts, np.full((2, 3), 16.0))


def test_shares_of_a_table_are_of_those_who_have_the_feature():
    table = make_three_cells("categories")
    grouped = GroupedTable.from_table(table, 100.0, skips_missing=True)
    np.testing.assert_allclose(
        grouped.shares[:, grouped.cell_groups], [[3 / 8, 1 / 8], [1 / 4] * 2]
    )
    np.testing.assert_allclose(grouped.variances, 16 / 80**2)
    absent = replace(table, counts=table.counts * [0, 0, 5])  # noise says that nobody has it
    least = GroupedTable.from_table(absent, 100.0, skips_missing=True)
    np.testing.assert_allclose(
        least.variances, 16 / (100 / uncertainty.MAX_PEOPLE_PER_PRESENT) ** 2
    )


@pytest.mark.parametrize(("kind", "bins"), [("categories", 0), ("bins", 2)])
def test_missing_values_that_are_not_skipped_are_a_cell_without_neighbours(kind, bins):
    grouped = GroupedTable.from_table(make_three_cells(kind), 100.0, skips_missing=False)
    expected = [[0.3, 0.1, 0.1], [0.2, 0.2, 0.1]]
    np.testing.assert_allclose(grouped.shares[:, grouped.cell_groups], expected)
    assert grouped.bin_count == bins


def test_strengths_beforehand_lie_around_their_level_and_are_mostly_smooth():
    prior = uncertainty._compute_strength_prior()
    assert prior.shape == (len(uncertainty.LEVEL_GRID), len(STRENGTH_GRID))
    np.testing.assert_allclose(prior.sum(axis=1), 1.0)
    strengths, shared_parts = STRENGTH_GRID.T
    at_level = prior[np.abs(np.log(uncertainty.LEVEL_GRID / 0.8)).argmin()]
    assert strengths[at_level.argmax()] == 0.8
    smooth = at_level[(strengths > 0) & (shared_parts > 0)].sum()
    rough = at_level[(strengths > 0) & (shared_parts == 0)].sum()
    assert smooth / (smooth + rough) == pytest.approx(uncertainty.SMOOTH_SHARE)


def draw_variances(noise_of_means, noise_of_squares, means):
    """Variances of two classes of 100 people, 4 and 9 by their noisy moments, on a grid of 1."""
    counts, sums = np.full(2, 100.0), np.zeros(2)
    squares = counts * np.array([4.0, 9.0])
    noises = np.array([[0.0, 0.0], [noise_of_means] * 2, [noise_of_squares] * 2])
    moments = Moments(Numeric("x", -50, 50), counts, sums, squares, sums, sums, variances=noises)
    rng = np.random.default_rng(0)
    return uncertainty._draw_class_variances(
        moments, counts, np.tile(means, (2000, 1)), np.sqrt(noises[1]) / counts, 50.0, rng
    )


def test_a_drawn_variance_is_open_by_the_noise_of_squares_and_of_the_mean():
    np.testing.assert_allclose(
        draw_variances(0.0, 1e-9, [0.0, 0.0]).mean(axis=0), [4, 9], rtol=0.01
    )
    of_squares = draw_variances(0.0, 100.0**2, [0.0, 0.0])
    of_means = draw_variances(100.0, 0.0, [5.0, 5.0])  # 2 * 5 * deviation 0.1 = 1, as above
    np.testing.assert_allclose(of_means, of_squares)
    assert 0.5 < of_squares.std(axis=0).min() < 1.2
    wide = draw_variances(0.0, 1e12, [0.0, 0.0])
    assert wide.min() == pytest.approx(6.5 / uncertainty.MAX_VARIANCE_RATIO)
    assert wide.max() <= 50.0**2
