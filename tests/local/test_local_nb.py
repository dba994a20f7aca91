"""LocalNB: every variant of the paper is reachable, the default is sound, no noise is exact."""

import math

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.utils.estimator_checks import check_estimator

from discreet import (
    Categorical,
    LocalNB,
    Numeric,
    PrivacyError,
    PrivacyWarning,
    Schema,
    SchemaError,
    estimate,
)
from discreet.datasets import make_mortgage
from discreet.local.planning import PlanOptions, make_plan
from discreet.schema.cells import encode_classes
from discreet.schema.projection import DCA, PCA
from discreet.tables.in_memory import CountRequest, count_arrays

PEOPLE = make_mortgage(6000, seed=3)
NOISE = {"check_classifiers_train": "300 respondents at epsilon 1 cannot reach 83 % accuracy"}


def accuracy(nb, people=PEOPLE, others=None):
    others = others or make_mortgage(4000, seed=4)
    return nb.fit(people.X, people.y).score(others.X, others.y)


@pytest.mark.slow
@pytest.mark.parametrize("options", [{}, {"numeric": "gaussian"}])
def test_without_noise_all_of_scikit_learns_checks_pass(options):
    check_estimator(LocalNB(epsilon=math.inf, **options))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::discreet.PrivacyWarning")
def test_with_noise_only_the_listed_checks_fail():
    check_estimator(LocalNB(epsilon=1.0), expected_failed_checks=NOISE)


def test_without_noise_it_is_the_exact_binned_classifier():
    nb = LocalNB(epsilon=math.inf, schema=PEOPLE.schema, bins=5).fit(PEOPLE.X, PEOPLE.y)
    codes = encode_classes(PEOPLE.schema, PEOPLE.y)
    columns = {name: PEOPLE.frame[name] for name in PEOPLE.schema.names}
    exact = estimate(
        count_arrays(PEOPLE.schema, columns, codes, CountRequest(bins=5, moments=None))
    )
    np.testing.assert_array_equal(nb.predict_proba(PEOPLE.X), exact.predict_proba(PEOPLE.X))
    assert not nb.guarantee_.is_private


@pytest.mark.parametrize("oracle", ["auto", "de", "sue", "oue", "she", "the", "ss", "olh", "hr"])
@pytest.mark.parametrize("plan", ["auto", "pairs", "paper"])
def test_every_oracle_and_plan_learns(oracle, plan):
    nb = LocalNB(
        epsilon=4.0, oracle=oracle, plan=plan, bins=4, schema=PEOPLE.schema, random_state=1
    )
    assert accuracy(nb) > 0.72  # majority: 0.70
    if oracle != "auto":
        assert {q.mechanism.name for q in nb.plan_.questions} == {oracle}


@pytest.mark.parametrize(
    "postprocess", ["none", "paper", "norm-sub", "norm-cut", "bayes", "log-ratios"]
)
def test_every_postprocessing_learns(postprocess):
    nb = LocalNB(5.0, postprocess=postprocess, bins=4, schema=PEOPLE.schema, random_state=2)
    assert accuracy(nb) > (0.705 if postprocess == "norm-cut" else 0.72)  # majority: 0.697


@pytest.mark.parametrize(
    "options",
    [
        {"approach": 1},
        {"approach": 2, "mechanism": "one-bit"},
        {"approach": 2, "mechanism": "duchi"},
        {"approach": 2, "mechanism": "piecewise"},
        {"approach": 3},
        {"approach": "hybrid"},
        {"approach": "hybrid", "likelihood": "truncated"},
    ],
)
def test_every_way_to_ask_for_means_finds_them(options):
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 60_000)
    X = np.column_stack([np.clip(rng.normal(0.4 * (2 * y - 1), 0.3), -1, 1) for _ in range(2)])
    schema = Schema(
        [Numeric("a", -1, 1, optional=False), Numeric("b", -1, 1, optional=False)], "y", [0, 1]
    )
    nb = LocalNB(4.0, numeric="gaussian", schema=schema, random_state=1, **options).fit(X, y)
    for j, factor in enumerate(nb.model_.factors):
        for c in (0, 1):
            assert factor.mean[c] == pytest.approx(X[y == c, j].mean(), abs=0.15)
            assert factor.variance[c] == pytest.approx(X[y == c, j].var(), abs=0.2)
    assert nb.score(X, y) > 0.9


@pytest.mark.filterwarnings("ignore:rows of this table were fitted before")
def test_theta_is_the_papers_when_asked_and_the_best_otherwise():
    best = LocalNB(1.0, oracle="the", plan="paper", schema=PEOPLE.schema).fit(PEOPLE.X, PEOPLE.y)
    paper = LocalNB(1.0, oracle="the", theta=0.25, plan="paper", schema=PEOPLE.schema)
    paper.fit(PEOPLE.X, PEOPLE.y)
    assert paper.plan_.questions[0].mechanism.theta == 0.25
    assert 0.5 < best.plan_.questions[0].mechanism.theta < 1


def test_public_cut_points_and_projections_come_from_the_public_sample():
    public = make_mortgage(500, seed=9)
    cut = LocalNB(
        3.0,
        cut="frequency-of-public-sample",
        public_sample=public.X,
        bins=4,
        schema=PEOPLE.schema,
        random_state=0,
    )
    assert accuracy(cut) > 0.72
    edges = cut.plan_.edges["credit_score"]
    inside = np.quantile(public.frame["credit_score"], [0.25, 0.5, 0.75])
    np.testing.assert_allclose(edges[1:-1], inside)
    for projection in (PCA(2), DCA(1)):
        nb = LocalNB(
            4.0,
            projection=projection,
            public_sample=(public.X, public.y),
            schema=PEOPLE.schema,
            random_state=0,
        )
        assert accuracy(nb) > 0.71
        assert "component1" in nb.statistics_.schema.names
        assert "credit_score" not in nb.statistics_.schema.names
        clone(nb)


def test_dca_finds_the_direction_that_separates():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 3000)
    X = rng.normal(size=(3000, 4)) * [5, 1, 1, 1]
    X[:, 2] += 3 * y
    schema = Schema([Numeric(f"x{i}", -30, 30, optional=False) for i in range(4)], "y", [0, 1])
    nb = LocalNB(math.inf, projection=DCA(1), public_sample=(X[:500], y[:500]), schema=schema).fit(
        X, y
    )
    assert nb.score(X, y) > 0.9
    assert np.argmax(np.abs(nb.projection_.matrix[:, 0])) == 2


def test_waves_ask_more_about_what_matters():
    rng = np.random.default_rng(1)
    y = rng.integers(0, 2, 30_000)
    X = rng.integers(0, 4, (30_000, 6))
    X[:, 0] = np.where(rng.random(30_000) < 0.7, y, X[:, 0])
    schema = Schema([Categorical(f"x{i}", range(4), False) for i in range(6)], "y", [0, 1])
    nb = LocalNB(1.0, waves=3, schema=schema, random_state=0).fit(X, y)
    share = {q.features[0]: s for q, s in zip(nb.plan_.questions, nb.plan_.shares, strict=True)}
    assert share["x0"] > 1.5 * np.median(list(share.values()))
    assert nb.guarantee_.epsilon == 1.0  # everyone still sends one report
    assert nb.score(X, y) > 0.75
    assert np.sum(nb.statistics_.totals) == pytest.approx(30_000)


def test_the_promise_is_what_was_asked_for():
    real = LocalNB(1.5, schema=PEOPLE.schema).fit(PEOPLE.X, PEOPLE.y)
    assert real.guarantee_.is_private
    assert (real.guarantee_.epsilon, real.guarantee_.neighbours) == (1.5, "replace")
    seeded = LocalNB(1.5, schema=PEOPLE.schema, random_state=0).fit(PEOPLE.X, PEOPLE.y)
    assert seeded.guarantee_.simulated
    again = clone(seeded).fit(PEOPLE.X, PEOPLE.y)
    np.testing.assert_array_equal(seeded.class_count_, again.class_count_)


@pytest.mark.filterwarnings("ignore:rows of this table were fitted before")
def test_a_schema_from_the_data_is_warned_about_and_not_promised():
    with pytest.warns(PrivacyWarning, match=r"write LocalNB\(schema=...\)"):
        nb = LocalNB(1.0).fit(PEOPLE.X, PEOPLE.y)
    assert not nb.guarantee_.is_private
    assert "taken from the data" in nb.guarantee_.void[0]
    assert str(nb.guarantee_).startswith("NOT KEPT")
    with pytest.warns(PrivacyWarning):
        inferred = Schema.infer(PEOPLE.frame, PEOPLE.schema.target)
    assert not LocalNB(1.0, schema=inferred).fit(PEOPLE.X, PEOPLE.y).guarantee_.is_private


@pytest.mark.slow
def test_with_no_evidence_probabilities_stay_near_the_class_shares():
    """By the median of nine collections; a twin with evidence moves them far.

    Which class is named is then a matter of chance: the shares themselves are nearly equal.
    """

    def moved(epsilon):
        found = []
        for seed in range(9):
            nb = LocalNB(epsilon, schema=PEOPLE.schema, random_state=seed)
            nb.fit(PEOPLE.X[:200], PEOPLE.y[:200])
            found.append(np.abs(nb.predict_proba(others.X) - nb.class_prior_).mean())
        return np.median(found)

    others = make_mortgage(500, seed=5)
    assert moved(0.01) < 0.1 < 0.15 < moved(5.0)


@pytest.mark.parametrize(
    ("options", "error", "says"),
    [
        ({"epsilon": 0}, PrivacyError, "at least 1e-09"),
        ({"epsilon": -1.0}, PrivacyError, "at least 1e-09"),
        ({"oracle": "rappor"}, SchemaError, "write 'auto', 'de'"),
        ({"plan": "best"}, SchemaError, "'auto', 'pairs', 'paper' or a Plan"),
        ({"numeric": "kde"}, SchemaError, "'bins' or 'gaussian'"),
        ({"numeric": "gaussian", "approach": 4}, SchemaError, "1, 2, 3 or 'hybrid'"),
        (
            {"numeric": "gaussian", "approach": 2, "mechanism": "x"},
            SchemaError,
            "'one-bit', 'duchi' or 'piecewise'",
        ),
        ({"waves": 0}, SchemaError, "at least 1"),
        ({"waves": 2, "numeric": "gaussian"}, SchemaError, "waves re-issue plans of cells"),
        ({"cut": "height"}, SchemaError, "frequency-of-public-sample"),
        ({"cut": "frequency-of-public-sample"}, SchemaError, "public_sample="),
        ({"projection": PCA(2)}, SchemaError, "public_sample="),
        (
            {"projection": PCA(9), "public_sample": PEOPLE.X},
            SchemaError,
            "9 components of 4 numeric features",
        ),
        ({"projection": DCA(1), "public_sample": PEOPLE.X}, SchemaError, "needs the classes"),
        ({"postprocess": "magic"}, SchemaError, "'bayes' or 'log-ratios'"),
        ({"oracle": "the", "theta": 3.0}, PrivacyError, "theta"),
        ({"bins": 0}, SchemaError, "from 1 to 65536"),
        ({"assignment": "chance"}, SchemaError, "'draw' or 'groups'"),
    ],
)
def test_wrong_options_are_explained(options, error, says):
    with pytest.raises(error) as raised:
        LocalNB(**{"epsilon": 1.0, "schema": PEOPLE.schema, **options}).fit(PEOPLE.X, PEOPLE.y)
    assert says in str(raised.value)


def test_a_fixed_plan_is_used_as_it_is():
    plan = make_plan(PEOPLE.schema, 2.0, 6000, PlanOptions(kind="pairs", bins=3))
    nb = LocalNB(2.0, plan=plan, schema=PEOPLE.schema, random_state=0).fit(PEOPLE.X, PEOPLE.y)
    assert nb.plan_ is plan
    other = Schema(PEOPLE.schema.features, "missed_payment", ["yes", "no"])
    with pytest.raises(SchemaError, match="another schema"):
        LocalNB(2.0, plan=plan, schema=other).fit(PEOPLE.X, PEOPLE.y)


def test_a_fixed_plan_must_say_what_the_other_parameters_say():
    """Whoever writes an epsilon gets that epsilon: a plan of another one is refused."""
    plan = make_plan(PEOPLE.schema, 5.0, 6000, PlanOptions(bins=3))
    for epsilon in (0.5, 1.0, math.inf):
        with pytest.raises(
            PrivacyError, match=r"the plan promises 5.0 in total; write epsilon=5.0"
        ):
            LocalNB(epsilon, plan=plan, schema=PEOPLE.schema).fit(PEOPLE.X, PEOPLE.y)
    several = make_plan(PEOPLE.schema, 5.0, 6000, PlanOptions(bins=3, reports=2))
    with pytest.raises(PrivacyError, match=r"promises 5\.0 in total"):  # epsilon is per person
        LocalNB(2.5, plan=several, schema=PEOPLE.schema).fit(PEOPLE.X, PEOPLE.y)
    for name, value in {"oracle": "oue", "bins": 4, "theta": 0.3, "numeric": "gaussian"}.items():
        with pytest.raises(SchemaError, match=f"{name}=.* with a finished plan"):
            LocalNB(5.0, plan=plan, **{name: value}).fit(PEOPLE.X, PEOPLE.y)
