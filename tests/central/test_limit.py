"""Infinity is what a large epsilon tends to: the same steps, without noise."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest

from discreet import Categorical, CentralNB, MixedNB, Numeric, Schema, SeededRandom, estimate
from discreet.central import histogram, noiseless
from discreet.central.budget import Budget, CentralSettings
from discreet.central.noiseless import NoiselessBudget
from discreet.central.selection import sample_exponential_mechanism
from discreet.datasets import load, make_mortgage
from discreet.privacy.guarantee import Guarantee
from discreet.tables import source as source_module
from discreet.tables.source import InMemorySource

LARGE = 1e6
"""Noise of a scale of about 1e-4 at most."""
SCHEMA = Schema(
    [Categorical("left", ["a", "b"]), Categorical("right", ["a", "b"]), Numeric("age", 0, 80)],
    "same",
    ["no", "yes"],
)


def draw_people(rows: int, seed: int) -> tuple[pd.DataFrame, np.ndarray]:
    """The class is whether two features agree, which neither of them tells alone."""
    rng = np.random.default_rng(seed)
    left, right = rng.integers(0, 2, (2, rows))
    same = (left == right) ^ (rng.random(rows) < 0.1)
    columns = {"left": np.array(["a", "b"])[left], "right": np.array(["a", "b"])[right]}
    columns["age"] = np.clip(rng.normal(40 + 4 * same, 12, rows), 0, 80)
    return pd.DataFrame(columns), np.where(same, "yes", "no")


def fit(epsilon: float, X, y, schema: Schema = SCHEMA, **options) -> CentralNB:
    return CentralNB(epsilon, schema=schema, random_state=0, **options).fit(X, y)


def list_steps(nb: CentralNB, correction_count: int) -> list[object]:
    """The bins, the scoring, and the cells of the first corrections."""
    statistics = nb.statistics_
    cells = {name: table.cells for name, table in statistics.tables.items()}
    groups = [dict(correction.groups) for correction in statistics.corrections[:correction_count]]
    return [cells, replace(statistics.scoring, corrections=correction_count), groups]


@pytest.mark.slow
@pytest.mark.parametrize("corrections", [True, False])
@pytest.mark.parametrize("seed", range(3))
def test_infinity_takes_the_steps_of_a_very_large_epsilon(seed, corrections):
    X, y = draw_people(3000, seed)
    near, limit = (fit(epsilon, X, y, corrections=corrections) for epsilon in (LARGE, math.inf))
    # of equally good models infinity takes the first, and a large epsilon any
    counts = [len(nb.statistics_.corrections) for nb in (near, limit)]
    assert list_steps(near, min(counts)) == list_steps(limit, min(counts))
    assert counts[1] <= counts[0]
    assert bool(limit.statistics_.corrections) == corrections
    assert limit.statistics_.scoring.postprocess == "log-ratios"
    for name, table in limit.statistics_.tables.items():
        np.testing.assert_allclose(near.statistics_.tables[name].counts, table.counts, atol=1)
    others, _ = draw_people(500, 100 + seed)
    assert np.mean(near.predict(others) == limit.predict(others)) > 0.97
    if counts[0] == counts[1]:
        probabilities = near.predict_proba(others), limit.predict_proba(others)
        np.testing.assert_allclose(*probabilities, atol=0.01)


def test_infinity_is_above_plain_naive_bayes_where_corrections_pay():
    X, y = draw_people(3000, 0)
    others, truth = draw_people(3000, 1)
    plain = MixedNB(schema=SCHEMA).fit(X, y).score(others, truth)
    assert fit(math.inf, X, y).score(others, truth) > 0.85 > 0.7 > plain
    bare = fit(math.inf, X, y, selection=False, corrections=False)
    assert bare.score(others, truth) < 0.7
    assert bare.statistics_.scoring.postprocess == "none"


def test_infinity_is_exact_promises_nothing_and_is_the_same_without_a_seed():
    people = make_mortgage(1500, missing=0.05)
    once, again = (
        CentralNB(math.inf, schema=people.schema).fit(people.X, people.y) for _ in range(2)
    )
    assert once.model_.to_json() == again.model_.to_json()
    assert once.statistics_.is_exact
    assert once.guarantee_ == Guarantee.make_unprotected()
    assert once.statistics_.totals.tolist() == [
        np.count_nonzero(people.y == label) for label in people.schema.classes
    ]
    assert estimate(once.statistics_).to_json() == once.model_.to_json()


def test_more_rows_than_are_cached_are_sampled_and_the_same_again(monkeypatch):
    monkeypatch.setattr(source_module, "MAX_CACHED_ROWS", 1000)
    X, y = draw_people(3000, 0)
    for corrections in (True, False):
        models = [
            CentralNB(math.inf, schema=SCHEMA, corrections=corrections).fit(X, y).model_.to_json()
            for _ in range(2)
        ]
        assert models[0] == models[1]
    settings = CentralSettings(corrections=False)
    plan = histogram._plan_scoring(
        InMemorySource(SCHEMA, X, (y == "yes").astype(np.int32)),
        NoiselessBudget(),
        settings,
        histogram.NoisyClassCounts(np.full(2, 1500.0), np.zeros(2), 3000.0, 0.0, 3000.0),
        True,
    )
    assert plan.row_share == Fraction(1 / 3)


def test_weights_are_counted_as_they_are_and_not_scored():
    X, y = draw_people(400, 0)
    weights = np.random.default_rng(0).uniform(0.1, 2.5, len(y))
    nb = CentralNB(math.inf, schema=SCHEMA).fit(X, y, sample_weight=weights)
    expected = [weights[y == label].sum() for label in SCHEMA.classes]
    np.testing.assert_allclose(nb.statistics_.totals, expected)
    assert not nb.statistics_.corrections
    with_bound = CentralNB(math.inf, schema=SCHEMA, max_weight=4.0).fit(X, y, sample_weight=weights)
    np.testing.assert_allclose(with_bound.statistics_.totals, expected, rtol=0.01)


def test_a_noiseless_budget_takes_the_best_and_leaves_numbers_alone():
    budget, random = NoiselessBudget(), SeededRandom(0)
    noise = budget.spend_on_noise("counts", budget.total / 2, 1024)
    counts = np.array([[1.5, 0.0], [2.0, -3.0]])
    assert noise.add(counts, random) is counts
    assert noise.variance == noise.min_variance == 0
    epsilon = budget.spend_on_selection("choice", budget.total / 4)
    assert sample_exponential_mechanism([1, 4, 4, 2], epsilon, random) == 1
    assert budget.remaining == budget.total / 4
    assert not budget.make_guarantee(()).is_private
    assert Budget(1.0).spend_on_noise("counts", Fraction(1, 2)).min_variance > 0


def test_no_plan_changes_beyond_the_planned_epsilon(monkeypatch):
    X, y = draw_people(300, 0)
    planned = fit(math.inf, X, y).model_.to_json()
    monkeypatch.setattr(noiseless, "PLANNED_EPSILON", 2.0**60)
    assert fit(math.inf, X, y).model_.to_json() == planned


@pytest.mark.data
@pytest.mark.slow
@pytest.mark.parametrize("name", ["australian", "car", "diabetes", "glass", "spect"])
def test_a_large_epsilon_comes_close_to_infinity_on_benchmark_tables(name):
    data = load(name)
    X, y = data.X, data.y
    tested = np.random.default_rng(0).random(len(y)) < 0.3
    scores = {
        epsilon: fit(epsilon, X[~tested], y[~tested], data.schema).score(X[tested], y[tested])
        for epsilon in (1000.0, LARGE, math.inf)
    }
    assert scores[LARGE] == pytest.approx(scores[math.inf], abs=0.03)
    assert scores[1000.0] == pytest.approx(scores[math.inf], abs=0.06)
    plain = MixedNB(schema=data.schema).fit(X[~tested], y[~tested]).score(X[tested], y[tested])
    assert scores[math.inf] > plain - 0.03
