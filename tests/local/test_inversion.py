"""What a tally estimates: unbiased, with the stated variance (false-alarm rate below 1e-5)."""

import math
from collections import Counter

import numpy as np
import pytest
from scipy.stats import chi2, norm

from discreet import Categorical, EstimationError, Guarantee, Numeric, Schema, SeededRandom
from discreet.collection.sample_size import compute_required_respondents
from discreet.collection.simulation import simulate_tally
from discreet.collection.tally import Tally
from discreet.local.inversion import compute_precision, estimate_statistics
from discreet.local.planning import PlanOptions, compute_question_cost, make_plan
from discreet.local.waves import combine_waves
from discreet.mechanisms.frequency import compute_sample_size_factor, make_oracle

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
    records = plan.encode_columns(columns, c)
    return [
        estimate_statistics(simulate_tally(plan, records, SeededRandom(seed)))
        for seed in range(repeats)
    ]


ORACLES = ["de", "sue", "oue", "she", "the", "ss", "olh", "hr"]


def truth_of(found, c, cells, name):
    truth = np.zeros(found.tables[name].counts.shape)
    np.add.at(truth, (c, cells[name]), 1)
    return truth


@pytest.mark.slow
@pytest.mark.parametrize("oracle", ORACLES)
@pytest.mark.parametrize(("epsilon", "kind"), [(1.0, "paper"), (3.0, "auto")])
def test_tables_and_totals_are_unbiased_with_the_stated_variance(oracle, epsilon, kind):
    """False alarms: below 1e-5 for each of the sixteen cases."""
    c, columns = population()
    plan = make_plan(SCHEMA, epsilon, len(c), PlanOptions(kind=kind, oracle=oracle, bins=3))
    found = estimates(plan, c, columns, 100)
    cells = plan.encode_columns(columns, c).columns
    limit = norm.isf(1e-5 / 60)
    low, high = chi2.ppf([1e-6, 1 - 1e-6], 99) / 99  # 0.42 and 1.87: a cell alone
    for name in (*SCHEMA.names, None):
        truth = np.bincount(c) if name is None else truth_of(found[0], c, cells, name)
        parts = [one if name is None else one.tables[name] for one in found]
        drawn = np.array([one.totals if name is None else one.counts for one in parts])
        stated = np.mean([one.variances for one in parts], axis=0)
        z = (drawn.mean(axis=0) - truth) / np.sqrt(stated / len(found))
        assert np.abs(z).max() < limit
        ratio = drawn.var(axis=0, ddof=1) / stated
        assert low < ratio.min()
        assert ratio.max() < high


def many_collections(plan, c, cells, repeats):
    """Statistics of many collections among the same people; all reports are drawn at once."""
    rng, random = np.random.default_rng(0), SeededRandom(0)
    order = rng.permuted(np.tile(np.arange(len(c)), (repeats, 1)), axis=1)
    ends = np.round(np.cumsum([0, *plan.shares]) * len(c)).astype(int)
    sums = []
    for question, start, end in zip(plan.questions, ends, ends[1:], strict=False):
        asked = order[:, start:end].ravel()
        cell = c[asked].astype(np.int64)
        for name in question.features:
            cell = cell * plan.cells[name].size + cells[name][asked]
        reports = np.split(question.mechanism.perturb(cell, random), repeats)
        sums.append([question.mechanism.tally(one) for one in reports])
    return [
        estimate_statistics(Tally(plan, np.diff(ends), list(one)))
        for one in zip(*sums, strict=True)
    ]


@pytest.mark.slow
@pytest.mark.parametrize("oracle", ORACLES)
def test_intervals_of_95_percent_cover_93_to_97(oracle):
    """Class totals, and the heaviest and the middle cell of both tables, in 2000 collections.

    A true coverage of .95 leaves these limits with a chance of 4e-5 in each of 48 checks.
    """
    c, columns = population(2400)
    schema = Schema(SCHEMA.features[:2], "c", SCHEMA.classes)
    plan = make_plan(schema, 2.0, len(c), PlanOptions(kind="paper", oracle=oracle))
    cells = plan.encode_columns(columns, c).columns
    found = many_collections(plan, c, cells, 2000)
    for name in (*schema.names, None):
        truth = np.bincount(c) if name is None else truth_of(found[0], c, cells, name)
        parts = [one if name is None else one.tables[name] for one in found]
        drawn = np.array([one.totals if name is None else one.counts for one in parts])
        error = np.sqrt([one.variances for one in parts])
        covered = (np.abs(drawn - truth) <= 1.96 * error).mean(axis=0).ravel()
        order = np.argsort(truth.ravel())
        for cell in (order[-1], order[len(order) // 2]):
            assert 0.93 < covered[cell] < 0.97, (name, cell, covered)


SMALL = Schema([Categorical("f", [0, 1], False)], "y", [0, 1])
FEW = np.array([0, 1, 1]), {"f": np.array([0, 0, 1])}


@pytest.mark.slow
@pytest.mark.parametrize("oracle", ["de", "ss", "oue", "sue", "the", "hr"])
def test_stated_variances_are_those_of_every_possible_collection(oracle):
    """Three people, two questions: all ways to ask them times all reports they can send.

    Told the truth in place of what was found, the variances stated for class totals and cells are
    exactly those of the estimates over all outcomes: noise, luck of who was asked, and weights.
    """
    plan = make_plan(SMALL, 1.0, 3, PlanOptions(kind="paper", oracle=oracle))
    c, columns = FEW
    cell = [c, 2 * c + columns["f"]]
    channels, supports = [], []
    for question in plan.questions:
        reports = np.array(list(question.mechanism.outputs()), np.int64)
        channels.append(np.array(question.mechanism.channel(), float))
        supports.append([question.mechanism.tally(question.mechanism.decode(r[None]))
                         for r in reports])  # fmt: skip
    chance = Counter()
    for alone in range(3):  # who is asked for the class alone
        pair = [i for i in range(3) if i != alone]
        for i, one in enumerate(channels[0][cell[0][alone]]):
            for j, two in enumerate(channels[1][cell[1][pair[0]]]):
                for k, three in enumerate(channels[1][cell[1][pair[1]]]):
                    sums = tuple(supports[0][i]), tuple(supports[1][j] + supports[1][k])
                    chance[sums] += one * two * three / 3
    weight = np.array(list(chance.values()))
    assert weight.sum() == pytest.approx(1)

    def statistics(sums):
        tally = Tally(plan, np.array([1, 2]), [np.array(one) for one in sums])
        return estimate_statistics(tally)

    outcomes = [statistics(sums) for sums in chance]
    expected = [
        m * (q.mechanism.q + (q.mechanism.p - q.mechanism.q) * np.bincount(v, minlength=size) / 3)
        for q, m, v, size in zip(plan.questions, (1, 2), cell, (2, 4), strict=True)
    ]
    stated = statistics(expected)
    for truth, name in ((np.bincount(c), None), (np.array([[1, 0], [1, 1]]), "f")):
        parts = [one if name is None else one.tables[name] for one in outcomes]
        drawn = np.array([one.totals if name is None else one.counts for one in parts])
        mean = np.tensordot(weight, drawn, axes=1)
        spread = np.tensordot(weight, (drawn - truth) ** 2, axes=1)
        np.testing.assert_allclose(mean, truth, atol=1e-9)
        variances = stated.variances if name is None else stated.tables[name].variances
        np.testing.assert_allclose(variances, spread, rtol=1e-9)


def test_everyone_asked_without_noise_is_exact():
    schema = Schema([Categorical("f", [0, 1], False)], "y", [0, 1])
    plan = make_plan(schema, math.inf, 3, PlanOptions(kind="pairs", oracle="de"))
    tally = simulate_tally(plan, plan.encode_columns(FEW[1], FEW[0]), SeededRandom(0))
    found = estimate_statistics(tally)
    assert found.is_exact
    assert found.totals.tolist() == [1, 2]
    # everyone tells their class, with or without the feature, but not everyone the feature
    plan = make_plan(schema, math.inf, 3, PlanOptions(kind="paper", oracle="de"))
    people = np.tile(FEW[0], 100), {"f": np.tile(FEW[1]["f"], 100)}
    found = estimate_statistics(
        simulate_tally(plan, plan.encode_columns(people[1], people[0]), SeededRandom(0))
    )
    assert found.totals == pytest.approx([100, 200])
    assert found.variances == pytest.approx([0, 0], abs=1e-6)
    assert found.tables["f"].variances[1].min() > 1


@pytest.mark.slow
def test_a_biased_twin_is_found():
    """The same check rejects estimates that forget that some people were not asked."""
    c, columns = population()
    plan = make_plan(SCHEMA, 3.0, len(c), PlanOptions(kind="paper", bins=3))
    found = estimates(plan, c, columns, 120)
    cells = plan.encode_columns(columns, c).columns
    truth = np.zeros(found[0].tables["a"].counts.shape)
    np.add.at(truth, (c, cells["a"]), 1)
    table = found[0].tables["a"]
    wrong = np.array([one.tables["a"].counts * plan.shares[1] for one in found])
    z = (wrong.mean(axis=0) - truth) / np.sqrt(table.variances / 120)
    assert np.abs(z).max() > 20


@pytest.mark.slow
@pytest.mark.parametrize("approach", [1, 2, 3, "hybrid"])
def test_moments_are_unbiased(approach):
    c, columns = population()
    columns = {**columns, "b": np.where(columns["b"] == None, 0, columns["b"])}  # noqa: E711
    plan = make_plan(SCHEMA, 4.0, len(c), PlanOptions(numeric="gaussian", approach=approach))
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


def with_missing(missing, people=20_000):
    """Two numbers, far from the middle of their bounds, missing more often in the rarer class."""
    features = [Numeric("far", 0, 100), Numeric("near", 0, 100)]
    schema = Schema(features, "y", [0, 1], missing=missing)
    rng = np.random.default_rng(0)
    y = (rng.random(people) < 0.3).astype(np.int32)
    X = np.column_stack([rng.normal(75 + 10 * y, 7), rng.normal(60 - 10 * y, 9)]).clip(0, 100)
    X[rng.random(X.shape) < np.where(y == 1, 0.5, 0.1)[:, None]] = np.nan
    return schema, X, y


def test_means_of_numbers_that_may_be_missing_are_unbiased():
    """Sums divided by all of a class, present or not, would say 62 in place of 75 and 85."""
    schema, X, y = with_missing("skip", 6000)
    plan = make_plan(schema, 6.0, len(y), PlanOptions(numeric="gaussian"))
    records = plan.encode_columns({"far": X[:, 0], "near": X[:, 1]}, y)
    moments = [
        estimate_statistics(simulate_tally(plan, records, SeededRandom(seed))).moments
        for seed in range(60)
    ]
    for j, name in enumerate(schema.names):
        for k in (0, 1):
            truth = np.nanmean(X[y == k, j])
            means = np.array([one[name].mean[k] for one in moments])
            # a ratio has a bias of the order of its variance, far below a standard deviation
            error = means.std(ddof=1)
            assert abs(means.mean() - truth) < 5 * error / math.sqrt(60) + 0.2 * error
            absent = np.mean([one[name].missing[k] for one in moments]) / np.sum(y == k)
            assert absent == pytest.approx(np.isnan(X[y == k, j]).mean(), abs=0.04)


@pytest.mark.parametrize("missing", ["skip", "category"])
def test_a_gaussian_model_of_numbers_that_may_be_missing_is_near_the_exact_one(missing):
    from discreet import LocalNB, MixedNB

    schema, X, y = with_missing(missing)
    exact = MixedNB(schema=schema).fit(X, y).score(X, y)
    nb = LocalNB(6.0, numeric="gaussian", schema=schema, random_state=0).fit(X, y)
    assert exact > 0.75
    assert nb.score(X, y) > exact - 0.05


def test_a_number_that_is_always_there_is_not_asked_for_its_presence():
    schema = Schema([Numeric("x", 0, 1, optional=False)], "y", [0, 1])
    plan = make_plan(schema, 1.0, options=PlanOptions(numeric="gaussian"))
    assert [question.power for question in plan.questions] == [0, 1, 2]
    assert not plan.cells
    assert plan.mean_features == {"x"}


def test_question_cost_is_the_designs_formula():
    for epsilon in (0.5, 1.0, 3.0):
        for size in (4, 16, 60):
            assert compute_question_cost(make_oracle("ss", size, epsilon)) == pytest.approx(
                compute_sample_size_factor(size, epsilon), rel=1e-9
            )


def test_an_empty_or_one_sided_tally_is_an_error():
    plan = make_plan(SCHEMA, 1.0, 100, PlanOptions(bins=3))
    with pytest.raises(EstimationError, match="empty"):
        estimate_statistics(Tally(plan))


def test_a_question_nobody_answered_teaches_nothing():
    c, columns = population(40)
    plan = make_plan(SCHEMA, 1.0, 40, PlanOptions(kind="pairs", bins=3))
    tally = simulate_tally(plan, plan.encode_columns(columns, c), SeededRandom(0))
    tally.counted[1] = 0
    tally.sums[1][:] = 0
    statistics = estimate_statistics(tally)
    assert np.ptp(statistics.tables["b"].counts) == 0


def wave(plan, c, columns, seed):
    tally = simulate_tally(plan, plan.encode_columns(columns, c), SeededRandom(seed))
    return estimate_statistics(tally, Guarantee(2.0, neighbours="replace", trust="local"))


def test_waves_combine_by_precision():
    c, columns = population(4000)
    plan = make_plan(SCHEMA, 2.0, 2000, PlanOptions(bins=3))
    half = slice(None, None, 2), slice(1, None, 2)
    parts = [wave(plan, c[s], {n: x[s] for n, x in columns.items()}, i) for i, s in enumerate(half)]
    both = combine_waves(parts, [2000, 2000])
    assert np.sum(both.totals) == pytest.approx(4000)
    assert both.tables["a"].variances[0, 0] == pytest.approx(
        parts[0].tables["a"].variances[0, 0] + parts[1].tables["a"].variances[0, 0], rel=0.05
    )
    assert both.guarantee.epsilon == 2.0


def test_every_wave_counts_for_the_class_totals():
    """A wave of one class and a wave of the other, equally precise, make halves."""
    _, columns = population(4000)
    plan = make_plan(SCHEMA, 4.0, 4000, PlanOptions(bins=3))
    parts = [wave(plan, np.full(4000, k), columns, k) for k in (0, 1)]
    both = combine_waves(parts, [4000, 4000])
    assert both.totals == pytest.approx([4000, 4000], abs=600)
    assert both.variances == pytest.approx(parts[0].variances + parts[1].variances, rel=0.2)
    # a wave of a tenth of the people has a tenth of the say
    few = wave(plan, np.full(400, 1), {n: x[:400] for n, x in columns.items()}, 2)
    both = combine_waves([parts[0], few], [4000, 400])
    assert 50 < both.totals[1] < 800


@pytest.mark.slow
@pytest.mark.parametrize("oracle", ["ss", "oue"])
def test_waves_state_the_variance_of_their_sum(oracle):
    """Two waves of random halves with plans of different precision: 150 collections.

    False alarms: 1e-6 for each number.
    """
    c, columns = population(2000)
    plans = [make_plan(SCHEMA, e, 1000, PlanOptions(bins=3, oracle=oracle)) for e in (1.0, 3.0)]
    rng, found = np.random.default_rng(0), []
    for repeat in range(150):
        order = rng.permutation(2000)
        rows = order[:600], order[600:]
        parts = [wave(plan, c[r], {n: x[r] for n, x in columns.items()}, 2 * repeat + i)
                 for i, (plan, r) in enumerate(zip(plans, rows, strict=True))]  # fmt: skip
        found.append(combine_waves(parts, [600, 1400]))
    totals = np.array([one.totals for one in found])
    stated = np.mean([one.variances for one in found], axis=0)
    low, high = chi2.ppf([1e-6, 1 - 1e-6], 149) / 149
    assert (low < totals.var(axis=0, ddof=1) / stated).all()
    assert (totals.var(axis=0, ddof=1) / stated < high).all()
    assert np.abs(totals.mean(axis=0) - np.bincount(c)).max() < 5 * math.sqrt(stated.max() / 150)


@pytest.mark.slow
@pytest.mark.parametrize("oracle", ["auto", "oue", "hr"])
def test_precision_before_collecting_is_what_simulation_finds(oracle):
    """People drawn anew each time: the standard error is that for a larger population.

    Class totals too. False alarms: 1e-6 for each number.
    """
    plan = make_plan(SCHEMA, 1.0, 3000, PlanOptions(bins=3, oracle=oracle))
    found = []
    for seed in range(100):
        c, columns = population(3000, seed)
        found.append(
            estimate_statistics(
                simulate_tally(plan, plan.encode_columns(columns, c), SeededRandom(seed))
            )
        )
    low, high = chi2.ppf([1e-6, 1 - 1e-6], 99) / 99
    for one in compute_precision(plan, 3000):
        parts = [s.totals if one.feature == "c" else s.tables[one.feature].counts for s in found]
        spread = math.sqrt((np.array(parts) / 3000).var(axis=0, ddof=1).mean())
        assert one.standard_error * math.sqrt(low) < spread
        assert spread < one.standard_error * math.sqrt(high)
    need = compute_required_respondents(compute_precision(plan, 1)[0].standard_error, 0.01)
    worst = compute_precision(plan, need)[0].standard_error
    assert worst <= 0.01 < compute_precision(plan, int(0.9 * need))[0].standard_error


@pytest.mark.parametrize("optional", [False, True])
@pytest.mark.parametrize("named", ["ab", "a", ""])
def test_the_papers_plan_asks_everything_equally_often(named, optional):
    """Also where all features are numbers: then the class, the means and the mean squares."""
    categories = [Categorical(name, ["n", "y"], optional=False) for name in named]
    numbers = [Numeric(name, 0, 1, optional=optional) for name in ("x", "z")]
    plan = make_plan(
        Schema([*categories, *numbers], "c", ["n", "y"]),
        1.0,
        options=PlanOptions(kind="paper", numeric="gaussian"),
    )
    by_kind = {}
    for question, share in zip(plan.questions, plan.shares, strict=True):
        presence = optional and set(question.features) <= {"x", "z"} and bool(question.features)
        what = question.power or ("presence" if presence else question.features)
        by_kind[what] = by_kind.get(what, 0.0) + share
    assert len(by_kind) == 1 + len(named) + 2 + optional
    assert list(by_kind.values()) == pytest.approx([1 / len(by_kind)] * len(by_kind), abs=1e-5)
