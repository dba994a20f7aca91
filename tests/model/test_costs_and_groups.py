"""Decisions by cost, and figures of groups of people."""

from __future__ import annotations

import math

import numpy as np
import pytest

from discreet import EstimationError, MixedNB, NaiveBayesModel, SchemaError
from discreet.datasets import Dataset, make_mortgage
from discreet.model.costs import CostScores, decide_by_cost, resolve_costs
from discreet.model.evaluation import score_model
from discreet.model.group_scores import GroupScores, score_groups


@pytest.fixture(scope="module")
def people() -> Dataset:
    return make_mortgage(3000, seed=5)


@pytest.fixture(scope="module")
def model(people: Dataset) -> NaiveBayesModel:
    return MixedNB(schema=people.schema).fit(people.X[:1500], people.y[:1500]).model_


def test_a_rule_by_cost_has_the_least_expected_cost() -> None:
    rng = np.random.default_rng(0)
    probability = rng.dirichlet(np.ones(3), 500)
    costs = (1.0, 5.0, 0.5)
    decisions = decide_by_cost(np.log(probability), costs)
    expected = np.array(
        [[sum(p[k] * costs[k] for k in range(3) if k != c) for c in range(3)] for p in probability]
    )
    np.testing.assert_array_equal(decisions, expected.argmin(axis=1))


def test_costs_are_those_of_the_rows(model: NaiveBayesModel, people: Dataset) -> None:
    costs = resolve_costs(model.schema.classes, {"yes": 5})
    assert costs == (1.0, 5.0)
    scores = score_model(model, people.X, people.y, costs).cost_scores
    assert scores is not None
    assert scores.threshold == pytest.approx(1 / 6)
    said_yes = model.predict_proba(people.X)[:, 1] >= 1 / 6
    is_yes = np.asarray(people.y) == "yes"
    row_costs = np.where(said_yes == is_yes, 0.0, np.where(is_yes, 5.0, 1.0))
    (rule, cost, (low, high)), _, (majority, majority_cost, _), (cheapest, *_) = scores.policies
    assert rule == "say 'yes' from P(yes) = 0.167 on"
    assert cost == pytest.approx(row_costs.mean())
    half_width = 1.959963984540054 * row_costs.std(ddof=1) / math.sqrt(3000)
    assert (low, high) == pytest.approx((cost - half_width, cost + half_width))
    assert (majority, cheapest) == ("always say 'no'", "always say 'yes'")
    assert majority_cost == pytest.approx(5 * is_yes.mean())
    saved, (low, high) = scores.saving
    row_savings = np.where(is_yes, 5.0, 0.0) - row_costs
    assert saved == pytest.approx(row_savings.mean())
    half_width = 1.959963984540054 * row_savings.std(ddof=1) / math.sqrt(3000)
    assert high - low == pytest.approx(2 * half_width)


def test_equal_costs_decide_like_the_model(model: NaiveBayesModel, people: Dataset) -> None:
    scores = score_model(model, people.X, people.y, (1.0, 1.0))
    np.testing.assert_array_equal(scores.cost_confusion, scores.confusion)
    halves = score_model(model, people.X[:99], people.y[:99], (1.0, 1.0))
    halves += score_model(model, people.X[99:], people.y[99:], (1.0, 1.0))
    assert halves.to_body()["costs"] == scores.to_body()["costs"]
    with pytest.raises(EstimationError, match="different costs"):
        halves + score_model(model, people.X, people.y)


def test_a_rule_that_loses_says_so() -> None:
    confusion = np.array([[0, 90], [0, 10]])
    scores = CostScores(("no", "yes"), (1.0, 5.0), confusion, confusion)
    saved, (low, high) = scores.saving
    assert saved == pytest.approx((5 * 10 - 90) / 100)
    assert low < saved < high


@pytest.mark.parametrize("costs", [{"maybe": 2.0}, {"yes": 0.0}, {"yes": -1.0}, {"yes": math.nan}])
def test_costs_of_other_classes_or_of_nothing_are_refused(costs: dict[str, float]) -> None:
    with pytest.raises(EstimationError, match="cost"):
        resolve_costs(("no", "yes"), costs)


def test_groups_are_scored_alone(model: NaiveBayesModel, people: Dataset) -> None:
    region = people.X["region"]
    scores = score_groups(model, people.X, people.y, "region", region)
    assert scores.total.rows == 3000
    assert set(scores.groups) == set(region.astype(str))
    for label, group in scores.groups.items():
        is_member = (region == label).to_numpy()
        alone = score_model(model, people.X[is_member], np.asarray(people.y)[is_member])
        assert group.to_body() == alone.to_body()
    halves = score_groups(model, people.X[:500], people.y[:500], "region", region[:500])
    halves += score_groups(model, people.X[500:], people.y[500:], "region", region[500:])
    assert halves.to_body()["groups"].keys() == scores.to_body()["groups"].keys()
    for label, group in halves.groups.items():
        np.testing.assert_array_equal(group.ranks, scores.groups[label].ranks)


def test_numbers_are_cut_by_their_bounds_and_other_columns_by_value(
    model: NaiveBayesModel, people: Dataset
) -> None:
    ages = score_groups(model, people.X, people.y, "age", people.X["age"]).groups
    assert 2 <= len(ages) <= 5
    assert all(" to " in label for label in ages)
    other = ["a", None, 3.0] * 1000
    groups = score_groups(model, people.X, people.y, "branch", other).groups
    assert {label: group.rows for label, group in groups.items()} == {
        "a": 1000, "missing": 1000, "3": 1000,
    }  # fmt: skip
    with pytest.raises(SchemaError, match="more than 50 different values"):
        score_groups(model, people.X, people.y, "id", range(3000))


def test_groups_of_numbers_are_in_the_order_of_numbers():
    groups = dict.fromkeys(["10 to 20", "b", "-1 to 0", "(missing)", "-2 to -1", "9"])
    ordered = GroupScores("age", None, groups).labels  # type: ignore[arg-type]
    assert ordered == ["-2 to -1", "-1 to 0", "9", "10 to 20", "(missing)", "b"]
