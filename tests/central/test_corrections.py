"""Corrections from rows to a file: when they are made, what they bring, and that they travel."""

from __future__ import annotations

import itertools
import json
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest

from discreet import (
    Categorical,
    CentralNB,
    NaiveBayesModel,
    Numeric,
    Schema,
    SeededRandom,
    Statistics,
    estimate,
)
from discreet.central import corrections
from discreet.central.budget import Budget
from discreet.central.corrections import CorrectionBudget
from discreet.central.pair_qualities import CellGrouping, compute_pair_qualities
from discreet.errors import FormatError, SchemaError
from discreet.model.strongest_evidence import find_strongest_evidence

SCHEMA = Schema(
    [
        Categorical("left", ["a", "b"]),
        Categorical("right", ["a", "b"]),
        Numeric("age", 0, 80),
    ],
    "same",
    ["no", "yes"],
)


def people(rows=20_000, seed=0):
    """The class is whether two features agree, which none of them tells alone."""
    rng = np.random.default_rng(seed)
    left, right = rng.integers(0, 2, (2, rows))
    same = (left == right) ^ (rng.random(rows) < 0.1)
    table = pd.DataFrame(
        {
            "left": np.where(rng.random(rows) < 0.05, None, np.array(["a", "b"])[left]),
            "right": np.array(["a", "b"])[right],
            "age": np.clip(rng.normal(40 + 2 * same, 12, rows), 0, 80),
        }
    )
    return table, np.where(same, "yes", "no")


@pytest.fixture(scope="module")
def corrected():
    X, y = people()
    return CentralNB(2.0, schema=SCHEMA, random_state=0).fit(X, y)


def test_a_pair_is_found_that_naive_bayes_cannot_see(corrected):
    X, y = people(seed=1)
    plain = CentralNB(2.0, schema=SCHEMA, corrections=False, random_state=0).fit(*people())
    assert plain.score(X, y) < 0.6
    assert corrected.score(X, y) > 0.85
    assert {"left", "right"} in [set(pair.names) for pair in corrected.model_.pairs]
    assert not plain.model_.pairs
    assert not plain.statistics_.corrections


def test_estimating_again_gives_the_same_model_also_from_a_file(corrected):
    again = estimate(Statistics.from_json(corrected.statistics_.to_json()))
    assert again.to_json() == corrected.model_.to_json()
    assert NaiveBayesModel.from_json(again.to_json()).to_json() == corrected.model_.to_json()
    X, _ = people(500, seed=2)
    read = NaiveBayesModel.from_json(again.to_json())
    np.testing.assert_array_equal(read.predict_log_proba(X), corrected.predict_log_proba(X))


def test_older_files_are_refused_with_a_sentence(corrected):
    for text, kind in (
        (corrected.statistics_.to_json(), Statistics),
        (corrected.model_.to_json(), NaiveBayesModel),
    ):
        old = json.loads(text)
        old["version"] -= 1
        with pytest.raises(FormatError, match="version"):
            kind.from_json(json.dumps(old))


def test_a_prediction_is_explained_by_features_and_pairs(corrected):
    row = {"left": "a", "right": "b", "age": 40.0}
    told = corrected.model_.explain(row)
    assert told.predicted == "no"
    pairs = [one for one in told.evidence if " & " in one.feature]
    best = max(pairs, key=lambda one: one.log_odds)
    assert set(best.feature.split(" & ")) == {"left", "right"}
    assert set(best.value.split(" & ")) == {"a", "b"}
    joint = corrected.predict_joint_log_proba(pd.DataFrame([row]))[0]
    assert told.log_odds == pytest.approx(joint[0] - joint[1])
    assert " & " in str(told)
    assert any(" & " in line.feature for line in find_strongest_evidence(corrected.model_, 10))


def test_show_names_the_pair(corrected, capsys):
    corrected.model_.show()
    assert "&" in capsys.readouterr().out


def test_missing_values_that_are_skipped_add_nothing(corrected):
    pair = next(p for p in corrected.model_.pairs if set(p.names) == {"left", "right"})
    place = pair.names.index("left")
    assert pair.groups[place][-1] == -1
    absent = pair.scores_by_cells[-1] if place == 0 else pair.scores_by_cells[:, -1]
    assert not absent.any()


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["onnx", "skops"])
def test_other_formats_predict_the_same(corrected, kind):
    from discreet.model.export import to_onnx, to_skops

    X, _ = people(300, seed=3)
    wanted = corrected.model_.predict_proba(X)
    if kind == "skops":
        io = pytest.importorskip("skops.io")
        trusted = ["discreet.model.export.ModelClassifier"]
        loaded = io.loads(to_skops(corrected.model_), trusted=trusted)
        np.testing.assert_array_equal(loaded.predict_proba(X), wanted)
        return
    pytest.importorskip("onnx")
    from onnx.reference import ReferenceEvaluator

    feed = {
        name: X[name].fillna("").to_numpy(dtype=object).reshape(-1, 1)
        if name != "age"
        else X[name].to_numpy().reshape(-1, 1)
        for name in SCHEMA.names
    }
    _, found = ReferenceEvaluator(to_onnx(corrected.model_)).run(None, feed)
    np.testing.assert_allclose(found, wanted, atol=1e-12)


@pytest.mark.parametrize(
    ("options", "fitted"),
    [
        ({"corrections": False}, {}),
        ({"selection": False}, {}),
        ({"allocation": {"age": 2.0}}, {}),
        ({"max_weight": 2.0}, {"sample_weight": np.ones(20_000)}),
        ({"epsilon": 0.005}, {}),
    ],
    ids=["corrections", "selection", "allocation", "weights", "few people"],
)
def test_corrections_are_left_out(options, fitted):
    epsilon = options.pop("epsilon", 2.0)
    nb = CentralNB(epsilon, schema=SCHEMA, random_state=0, **options).fit(*people(), **fitted)
    assert not nb.statistics_.corrections
    assert not [one for one in nb.guarantee_.charges if "residuals" in one.name]


@pytest.mark.parametrize("wrong", ["yes", 1.5, None])
def test_the_parameter_is_true_or_false(wrong):
    with pytest.raises(SchemaError, match="corrections="):
        CentralNB(corrections=wrong, schema=SCHEMA).fit(*people(10))


@pytest.mark.slow
def test_with_a_delta_corrections_carry_gaussian_noise():
    """Many features, so that Gaussian noise is less."""
    rng = np.random.default_rng(0)
    names = [f"x{i}" for i in range(60)]
    schema = Schema([Categorical(n, ["0", "1"], optional=False) for n in names], "y", [0, 1])
    y = rng.integers(0, 2, 30_000)
    bits = (rng.random((30_000, 60)) < 0.5 + 0.05 * y[:, None]).astype(int)
    y = np.where(bits[:, 0] == bits[:, 1], y, 1 - y)
    X = pd.DataFrame(bits.astype(str), columns=names)
    nb = CentralNB(1.0, delta=1e-6, schema=schema, random_state=0).fit(X, y)
    assert (nb.guarantee_.epsilon, nb.guarantee_.delta) == (1.0, 1e-6)
    assert sum(charge.epsilon for charge in nb.guarantee_.charges) <= 1.0
    assert [charge for charge in nb.guarantee_.charges if "residuals" in charge.name]
    assert estimate(nb.statistics_).to_json() == nb.model_.to_json()


@pytest.mark.slow
def test_many_classes_and_both_ways_of_missing_values():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 12, 20_000)
    X = pd.DataFrame(
        {
            "a": np.where(rng.random(20_000) < 0.1, np.nan, y + rng.normal(0, 2, 20_000)),
            "b": rng.permuted(y) % 5 + 0.0,
            "c": np.array(list("wxyz"))[(y + rng.integers(0, 2, 20_000)) % 4],
        }
    )
    features = [Numeric("a", -8, 20), Numeric("b", 0, 5), Categorical("c", list("wxyz"))]
    for missing in ("skip", "category"):
        schema = Schema(features, "y", list(range(12)), missing=missing, outliers="clip")
        nb = CentralNB(2.0, schema=schema, random_state=0).fit(X, y)
        assert [charge for charge in nb.guarantee_.charges if "residuals" in charge.name]
        assert estimate(nb.statistics_).to_json() == nb.model_.to_json()
        assert nb.score(X, y) > 0.3


def test_statistics_of_two_groups_add_up_without_their_corrections(corrected):
    total = corrected.statistics_ + corrected.statistics_
    assert not total.corrections
    assert total.scoring.corrections == 0
    assert estimate(total).predict(people(10)[0]).shape == (10,)


@pytest.mark.slow
def test_from_a_file_corrections_see_a_coin_sample(tmp_path, monkeypatch):
    import discreet.tables.source as source_module

    X, y = people(30_000)
    path = tmp_path / "people.parquet"
    X.assign(same=y).to_parquet(path)
    monkeypatch.setattr(source_module, "MAX_CACHED_ROWS_REMOTE", 5_000)
    passed, kept = [], []
    real = source_module.Sampling.sample_while_reading

    def passing(self, batches, cells, *weights):
        for columns, codes in real(self, batches, cells, *weights):
            passed.append(len(codes))
            yield columns, codes
        kept.append((float(self.share), len(self.class_codes)))

    monkeypatch.setattr(source_module.Sampling, "sample_while_reading", passing)
    nb = CentralNB(5.0, schema=SCHEMA, random_state=0).fit_source(path)
    ((share, looked_at),) = kept
    assert share == pytest.approx(5_000 / 30_000, rel=0.05)
    assert sum(passed) == 30_000
    assert 4_000 < looked_at < 6_000
    assert nb.score(*people(seed=1)) > 0.8


# ---- the steps of the corrections, one by one


def test_shares_of_features_and_pairs_grow_with_the_signal_up_to_their_limits():
    def shares(signal):
        plan = CorrectionBudget.from_signal_to_noise(signal, SCHEMA, Fraction(2), 1000.0)
        costs = plan.start_cost, plan.feature_cost, plan.pair_cost, plan.final_cost
        return [float(cost / 2) for cost in costs]

    assert shares(100.0) == [0.03, 0.105, 0.094, 0.04]  # 0.2 log10(100 / 30), 0.9 of it
    assert shares(300.0) == [0.03, 0.2, 0.18, 0.04]
    assert shares(1e6) == [0.03, 0.35, 0.28, 0.04]


class Ranking:
    """As much of the log-ratios as the order of the steps follows from."""

    def __init__(self, *ranked_features):
        self.ranked_features = list(ranked_features)


def list_steps(monkeypatch, *ranked_features):
    """Tables of residuals in their order with their costs, and what else was charged."""
    plan = CorrectionBudget(
        Fraction(0), Fraction(3), Fraction(5), Fraction(0), Fraction(8), 3, 2, 100.0
    )
    monkeypatch.setattr(corrections, "_group_cells", lambda ratios, name: (0, 1))
    monkeypatch.setattr(corrections, "_choose_pair", lambda *given: {"pair": given[2]})
    state = corrections.CorrectionState(None, Ranking(*ranked_features), None, None)
    budget = Budget(20.0)
    steps = list(corrections._iter_correction_tables(state, budget, plan, SeededRandom(0)))
    return [(next(iter(groups.items())), cost) for groups, cost in steps], budget.charges


def test_features_come_first_by_rank_and_a_fifth_of_a_pair_chooses_it(monkeypatch):
    steps, charges = list_steps(monkeypatch, "d", "b", "c", "a")
    assert steps[:3] == [((name, (0, 1)), 1) for name in "dbc"]
    assert steps[3:] == [(("pair", Fraction(1, 2)), 2)] * 2  # at epsilon 1/2, the table at 2
    assert charges == [(f"choice of pair {k} of 2", Fraction(1, 2)) for k in (1, 2)]


def test_of_two_features_the_pair_is_not_chosen_and_its_table_gets_all(monkeypatch):
    steps, charges = list_steps(monkeypatch, "d", "b")
    assert [cost for _, cost in steps] == [Fraction(3, 2)] * 2 + [Fraction(5, 2)] * 2
    assert charges == []


def compute_quality(residuals, groupings, price):
    """The same in plain words, one pair and one cell at a time."""
    qualities = []
    for first, second in itertools.combinations(groupings, 2):
        wrong = 0
        for g, h in np.ndindex(first.group_count, second.group_count):
            in_cell = (first.indices == g) & (second.indices == h)
            wrong += int(np.abs(residuals[in_cell].sum(axis=0)).sum())
        qualities.append(wrong - round(price * first.group_count * second.group_count))
    return qualities


def test_the_quality_of_a_pair_is_what_is_wrong_in_its_cells_less_the_noise():
    residuals = np.array([[3.0], [4.0], [-5.0], [-6.0], [100.0]])
    # the last row is in no group of the first feature
    pair = [
        CellGrouping(np.array([0, 0, 0, 1, 2]), 2),
        CellGrouping(np.array([0, 0, 1, 1, 0]), 3),
    ]
    wrong = (3 + 4) + 5 + 6
    assert compute_pair_qualities(residuals, pair, 0.0) == [wrong]
    assert compute_pair_qualities(residuals, pair, 0.5) == [wrong - 0.5 * 2 * 3]
    both = np.concatenate([residuals, -residuals], axis=1)
    assert compute_pair_qualities(both, pair, 0.0) == [2 * wrong]


@pytest.mark.parametrize("features", [2, 3, 4, 5, 10])
@pytest.mark.parametrize("columns", [1, 3])
def test_qualities_of_all_pairs_are_those_of_each_pair_alone(features, columns):
    rng = np.random.default_rng(features)
    group_counts = rng.integers(1, 7, features)
    groupings = [CellGrouping(rng.integers(0, n + 1, 200), int(n)) for n in group_counts]
    residuals = rng.integers(-1024, 1025, (200, columns)).astype(float)
    expected = compute_quality(residuals, groupings, 7.25)
    assert compute_pair_qualities(residuals, groupings, 7.25) == expected
