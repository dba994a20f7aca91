"""What a tally estimates: unbiased, with the stated variance (false-alarm rate below 1e-5)."""

import math

import numpy as np
import pytest
from scipy.stats import chi2, norm

from discreet import Categorical, EstimationError, Guarantee, Numeric, Schema, SeededRandom
from discreet.collection.simulation import simulate
from discreet.collection.tally import Tally
from discreet.local.inversion import statistics_of
from discreet.local.planning import make_plan, question_cost
from discreet.local.size import outlook, precision_of, respondents_for
from discreet.local.waves import combined
from discreet.mechanisms.frequency import cost, oracle_of

SCHEMA = Schema(
    [Categorical("a", ["x", "y", "z"], False), Categorical("b", [0, 1]), Numeric("n", 0, 10)],
    "c",
    ["no", "yes"],
)
REPEATS = 300


def population(people=3000, seed=0):
    rng = np.random.default_rng(seed)
    c = (rng.random(people) < 0.3).astype(np.int32)
    columns = {
        "a": rng.choice(["x", "y", "z"], people, p=[0.5, 0.3, 0.2]).astype(object),
        "b": np.where(rng.random(people) < 0.1, None, (rng.random(people) < 0.2 + 0.5 * c) * 1),
        "n": np.clip(rng.normal(4 + 2 * c, 2), 0, 10),
    }
    return c, columns


def estimates(plan, c, columns, repeats=REPEATS):
    records = plan.encoded(columns, c)
    return [statistics_of(simulate(plan, records, SeededRandom(seed))) for seed in range(repeats)]


@pytest.mark.parametrize("oracle", ["de", "sue", "oue", "she", "the", "ss", "olh", "hr", "auto"])
@pytest.mark.parametrize(("epsilon", "kind"), [(1.0, "paper"), (3.0, "auto")])
def test_tables_and_totals_are_unbiased_with_the_stated_variance(oracle, epsilon, kind):
    c, columns = population()
    plan = make_plan(SCHEMA, epsilon, len(c), kind=kind, oracle=oracle, bins=3)
    found = estimates(plan, c, columns, 120)
    cells = plan.encoded(columns, c).columns
    for name in SCHEMA.names:
        truth = np.zeros(found[0].tables[name].counts.shape)
        np.add.at(truth, (c, cells[name]), 1)
        drawn = np.array([one.tables[name].counts for one in found])
        table = found[0].tables[name]
        share = truth / len(c)
        # noise of the mechanism, and the luck of who was asked
        variance = table.variances + len(c) ** 2 * share * (1 - share) / table.people
        z = (drawn.mean(axis=0) - truth) / np.sqrt(variance / len(found))
        limit = norm.isf(1e-5 / 400 / 2)
        assert np.abs(z).max() < 1.25 * limit  # the stated variance is an average over cells
        ratio = drawn.var(axis=0, ddof=1).mean() / variance.mean()
        assert 0.6 < ratio < 1.5
    totals = np.array([one.totals for one in found])
    z = (totals.mean(axis=0) - np.bincount(c)) / (totals.std(axis=0, ddof=1) / math.sqrt(120))
    assert np.abs(z).max() < 6


def test_a_biased_twin_is_found():
    """The same check rejects estimates that forget that some people were not asked."""
    c, columns = population()
    plan = make_plan(SCHEMA, 3.0, len(c), kind="paper", bins=3)
    found = estimates(plan, c, columns, 120)
    cells = plan.encoded(columns, c).columns
    truth = np.zeros(found[0].tables["a"].counts.shape)
    np.add.at(truth, (c, cells["a"]), 1)
    table = found[0].tables["a"]
    wrong = np.array([one.tables["a"].counts * plan.shares[1] for one in found])
    z = (wrong.mean(axis=0) - truth) / np.sqrt(table.variances / 120)
    assert np.abs(z).max() > 20


@pytest.mark.parametrize("approach", [1, 2, 3, "hybrid"])
def test_moments_are_unbiased(approach):
    c, columns = population()
    columns = {**columns, "b": np.where(columns["b"] == None, 0, columns["b"])}  # noqa: E711
    plan = make_plan(SCHEMA, 4.0, len(c), numeric="gaussian", approach=approach)
    found = estimates(plan, c, columns, 200)
    t = (columns["n"] - 5) / 5
    for k in (0, 1):
        totals = np.array([one.moments["n"].totals[k] for one in found])
        truth = t[c == k].sum()
        assert abs(totals.mean() - truth) < 5 * totals.std() / math.sqrt(200)
        squares = np.array([one.moments["n"].squares[k] for one in found])
        counts = np.array([one.moments["n"].counts[k] for one in found])
        implied = (t[c == k] ** 2).sum() - np.sum(c == k) / 2
        assert abs((squares - counts / 2).mean() - implied) < 5 * squares.std() / math.sqrt(200)
        stated = found[0].moments["n"].variances[1, k]
        assert 0.5 < totals.var() / stated < 2


def test_question_cost_is_the_designs_formula():
    for epsilon in (0.5, 1.0, 3.0):
        for size in (4, 16, 60):
            assert question_cost(oracle_of("ss", size, epsilon)) == pytest.approx(
                cost(size, epsilon), rel=1e-9
            )


def test_an_empty_or_one_sided_tally_is_an_error():
    plan = make_plan(SCHEMA, 1.0, 100, bins=3)
    with pytest.raises(EstimationError, match="empty"):
        statistics_of(Tally(plan))


def test_a_question_nobody_answered_teaches_nothing():
    c, columns = population(40)
    plan = make_plan(SCHEMA, 1.0, 40, kind="pairs", bins=3)
    tally = simulate(plan, plan.encoded(columns, c), SeededRandom(0))
    tally.counted[1] = 0
    tally.sums[1][:] = 0
    statistics = statistics_of(tally)
    assert np.ptp(statistics.tables["b"].counts) == 0


def test_waves_combine_by_precision():
    c, columns = population(4000)
    plan = make_plan(SCHEMA, 2.0, 2000, bins=3)
    half = slice(None, None, 2), slice(1, None, 2)
    parts = [
        statistics_of(
            simulate(plan, plan.encoded(columns, c)[s], SeededRandom(i)),
            Guarantee(2.0, neighbours="replace", trust="local"),
        )
        for i, s in enumerate(half)
    ]  # fmt: skip
    both = combined(parts)
    assert np.sum(both.totals) == pytest.approx(4000)
    assert both.tables["a"].variances[0, 0] == pytest.approx(
        4 * parts[0].tables["a"].variances[0, 0] / 2, rel=0.05
    )
    assert both.guarantee.epsilon == 2.0


def test_precision_before_collecting_is_what_simulation_finds():
    plan = make_plan(SCHEMA, 1.0, 5000, bins=3)
    c, columns = population(5000)
    found = estimates(plan, c, columns, 200)
    for one in precision_of(plan, 5000):
        if one.feature == "c":
            continue
        drawn = np.array([s.tables[one.feature].counts / 5000 for s in found])
        spread = math.sqrt(drawn.var(axis=0, ddof=1).mean())
        low, high = chi2.ppf([1e-6, 1 - 1e-6], 199) / 199
        assert one.standard_error * math.sqrt(low) * 0.9 < spread
        assert spread < one.standard_error * math.sqrt(high) * 1.1
    need = respondents_for(plan, 0.01)
    worst = precision_of(plan, need)[0].standard_error
    assert worst <= 0.01 < precision_of(plan, int(0.9 * need))[0].standard_error


def test_the_outlook_tells_hopeless_from_promising():
    schema = Schema([Categorical(f"f{i}", range(4), False) for i in range(8)], "y", [0, 1])
    few, many = make_plan(schema, 0.5, 200), make_plan(schema, 2.0, 200_000)
    assert outlook(few, 200, majority=0.8).verdict == "not enough"
    assert outlook(many, 200_000, majority=0.6).verdict == "enough"
    needed = outlook(few, 200, majority=0.7).respondents
    assert outlook(few, needed, majority=0.7).verdict == "enough"
    assert outlook(few, 200, majority=0.99, strength=0.01).respondents is None
    with pytest.raises(EstimationError, match="between 1/2 and 1"):
        outlook(few, 200, majority=0.2)


@pytest.mark.parametrize("seed", [0, 1])
def test_the_outlook_agrees_with_simulation(seed):
    """A population whose features have the assumed strength: enough beats, not enough does not."""
    from discreet import LocalNB

    rng = np.random.default_rng(seed)
    d, features, strength, majority = 4, 10, 0.2, 0.65
    schema = Schema([Categorical(f"f{i}", range(d), False) for i in range(features)], "y", [0, 1])
    margin, p = 1 / d, 1 - majority
    sd = strength * math.sqrt(margin * (1 - margin) * p * (1 - p) / 2)

    def table():
        left = rng.normal(0, sd, d)
        left -= left.mean()
        joint = np.array([(1 - p) * margin - left, p * margin + left]).clip(1e-3)
        return joint / joint.sum(axis=1, keepdims=True)

    law = [table() for _ in range(features)]

    def draw(people):
        y = (rng.random(people) < p).astype(int)
        X = np.zeros((people, features), dtype=int)
        for j in range(features):
            for k in (0, 1):
                X[y == k, j] = rng.choice(d, np.sum(y == k), p=law[j][k])
        return X, y

    test_X, test_y = draw(20_000)
    base = max(np.mean(test_y), 1 - np.mean(test_y))
    for people in (300, 60_000):
        plan = make_plan(schema, 2.0, people)
        verdict = outlook(plan, people, majority, strength).verdict
        X, y = draw(people)
        gain = LocalNB(2.0, schema=schema, random_state=seed).fit(X, y).score(test_X, test_y) - base
        if people == 60_000:
            assert verdict == "enough"
            assert gain > 0.02
        else:
            assert verdict != "enough"
            assert gain < 0.02
