"""Bins by the noise that public numbers let expect, and by nothing else."""

import numpy as np
import pandas as pd
import pytest

from discreet import LocalNB, Numeric, Schema
from discreet.errors import SchemaError
from discreet.local import PlanOptions, make_plan
from discreet.local.planning import compute_auto_bins
from discreet.schema.randomized_bins import choose_bins

SCHEMA = Schema(
    [
        Numeric("amount", 0, 4096, optional=False),
        Numeric("age", 18, 98, integer=True, optional=False),
        Numeric("change", -64, 64, optional=False),
    ],
    "late",
    ["no", "yes"],
)
FINE = {
    "amount": [2.0, 32.0, *(512.0 * k for k in range(1, 8))],
    "age": [18.0 + np.ceil(k * 81 / 8) for k in range(1, 8)],
    "change": [-48, -32, -16, -1, -1 / 16, 0, 1 / 16, 1, 16, 32, 48],
}


def cuts(plan):
    return {name: list(edges[1:-1]) for name, edges in plan.edges.items()}


def test_little_noise_gives_eight_bins_that_are_finer_near_zero():
    assert choose_bins(SCHEMA.features, 1.0) == FINE
    assert choose_bins(SCHEMA.features, 1.1) == dict.fromkeys(SCHEMA.names, 8)
    assert choose_bins(SCHEMA.features, 2.0) == dict.fromkeys(SCHEMA.names, 8)
    assert choose_bins(SCHEMA.features, 2.1) == dict.fromkeys(SCHEMA.names, 6)
    with pytest.raises(SchemaError, match="no public bounds"):
        choose_bins([Numeric("open")], 0.0)


def test_bins_follow_from_respondents_epsilon_classes_and_features():
    assert cuts(make_plan(SCHEMA, 1.0, 10_000)) == FINE
    few = make_plan(SCHEMA, 1.0, 300)
    assert few.edges == make_plan(SCHEMA, 1.0, 300, PlanOptions(bins=6)).edges
    assert cuts(make_plan(SCHEMA, 5.0, 300)) == FINE
    assert cuts(make_plan(SCHEMA, 1.0, 300, PlanOptions(respondents_all_waves=9000))) == FINE
    shuffled = make_plan(SCHEMA, 1.0, 900, PlanOptions(shuffled=1e-6))
    assert make_plan(SCHEMA, 1.0, 900).edges != shuffled.edges
    assert cuts(shuffled) == FINE  # the reports' own epsilon is larger
    coarser = Schema(SCHEMA.features, "late", list("abcdefghijklmnopqrst"))
    assert make_plan(coarser, 1.0, 10_000).edges["age"] == few.edges["age"]
    explicit = make_plan(SCHEMA, 1.0, 300, PlanOptions(bins=3))
    assert {len(edges) for edges in explicit.edges.values()} == {4}


def test_numbers_that_are_not_cut_need_no_bins():
    assert compute_auto_bins(SCHEMA, 1.0, 300, PlanOptions(numeric="gaussian")) == {}
    assert make_plan(SCHEMA, 1.0, 300, PlanOptions(numeric="gaussian")).edges == {}


def test_an_estimator_keeps_its_bins_over_all_waves():
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"amount": rng.uniform(0, 4096, 900), "age": 30, "change": 0.0})
    y = np.where(rng.random(900) < 0.5, "no", "yes")
    nb = LocalNB(1.0, schema=SCHEMA, waves=4, random_state=0).fit(X, y)
    assert nb.plan_.edges == make_plan(SCHEMA, 1.0, 900).edges
    exact = LocalNB(float("inf"), schema=SCHEMA).fit(X, y)
    assert list(exact.statistics_.tables["amount"].cells.edges[1:-1]) == FINE["amount"]
