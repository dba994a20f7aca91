"""A temperature makes probabilities less sure and keeps decisions, explanations and files whole."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from discreet import CentralNB, NaiveBayesModel, estimate
from discreet.central.corrections import TEMPERATURES
from discreet.central.selection import RowSample
from discreet.central.temperature import choose_temperature
from discreet.datasets import make_mortgage
from discreet.errors import EstimationError, FormatError
from discreet.estimation.corrections import AdditiveModel
from discreet.estimation.uncertainty import estimate_agreement
from discreet.model.evaluation import score_model
from discreet.randomness import SeededRandom
from discreet.statistics.statistics import Statistics

PEOPLE = make_mortgage(3000, seed=4)


@pytest.fixture(scope="module")
def released():
    """Statistics of a training, at temperature 1."""
    nb = CentralNB(1.0, schema=PEOPLE.schema, random_state=0).fit(PEOPLE.X, PEOPLE.y)
    statistics = nb.statistics_
    return replace(statistics, scoring=replace(statistics.scoring, temperature=1.0))


def temper(statistics, temperature):
    return replace(statistics, scoring=replace(statistics.scoring, temperature=temperature))


@pytest.mark.parametrize("temperature", TEMPERATURES[1:])
def test_decisions_remain_and_probabilities_are_their_power(released, temperature):
    plain, tempered = estimate(released), estimate(temper(released, temperature))
    rows = PEOPLE.X[:500]
    assert plain.predict(rows).tolist() == tempered.predict(rows).tolist()
    power = plain.predict_proba(rows) ** temperature
    expected = power / power.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(tempered.predict_proba(rows), expected, rtol=1e-12)
    assert tempered.predict_proba(rows).max() < plain.predict_proba(rows).max()
    scores = score_model(tempered, rows, PEOPLE.y[:500])
    right = expected[np.arange(500), np.searchsorted(tempered.classes, PEOPLE.y[:500])]
    assert scores.loss == pytest.approx(-np.log(right).sum())


def test_an_explanation_adds_up_to_the_tempered_log_odds(released):
    model = estimate(temper(released, 0.5))
    row = PEOPLE.X.iloc[0].to_dict()
    explained = model.explain(row)
    probability = explained.probability
    assert explained.log_odds == pytest.approx(np.log(probability / (1 - probability)))


def test_it_travels_with_statistics_and_model(released):
    tempered = temper(released, 0.35)
    again = Statistics.from_json(tempered.to_json())
    assert again.scoring == tempered.scoring
    model = NaiveBayesModel.from_json(estimate(again).to_json())
    assert model.temperature == 0.35
    rows = PEOPLE.X[:50]
    expected = estimate(tempered).predict_log_proba(rows)
    assert model.predict_log_proba(rows).tobytes() == expected.tobytes()


def test_onnx_has_the_same_probabilities(released):
    ort = pytest.importorskip("onnxruntime")
    from discreet.model.export import to_onnx

    model, rows = estimate(temper(released, 0.5)), PEOPLE.X[:50]
    session = ort.InferenceSession(to_onnx(model))
    feed = {}
    for one in session.get_inputs():
        column = rows[one.name].to_numpy().reshape(-1, 1)
        is_text = "string" in one.type
        feed[one.name] = column.astype(str).astype(object) if is_text else column.astype(float)
    _, probabilities = session.run(None, feed)
    np.testing.assert_allclose(probabilities, model.predict_proba(rows), rtol=1e-12)


def test_how_steady_decisions_are_does_not_depend_on_it(released):
    plain, tempered = (
        estimate_agreement(one, PEOPLE.X[:100], draws=20, random_state=0)
        for one in (released, temper(released, 0.25))
    )
    assert plain.tobytes() == tempered.tobytes()


def test_with_other_cleaning_up_there_is_none(released):
    assert estimate(temper(released, 0.5)).temperature == 0.5
    assert estimate(temper(released, 0.5), "none").temperature == 1


@pytest.mark.parametrize("temperature", [0.0, -1.0, float("nan"), float("inf")])
def test_impossible_temperatures_are_refused(released, temperature):
    with pytest.raises(EstimationError, match="temperature is"):
        temper(released, temperature)
    with pytest.raises(FormatError, match="temperature is"):
        replace(estimate(released), temperature=temperature)


def choose_for(scores, codes, epsilon=Fraction(10)):
    """The temperature chosen for rows of one feature with a cell for each row."""
    cells = np.arange(len(scores))
    model = AdditiveModel(np.full(2, 0.5), {"a": scores.T}, {"a": 0})
    return choose_temperature(RowSample({"a": cells}, codes), model, epsilon, SeededRandom(0))


def test_the_temperature_that_makes_rows_likeliest_is_chosen():
    rng = np.random.default_rng(0)
    true_odds = rng.normal(0, 2, 20_000)
    codes = (rng.random(20_000) < 1 / (1 + np.exp(-true_odds))).astype(np.intp)
    for temperature in TEMPERATURES:
        half = true_odds / temperature / 2
        assert choose_for(np.column_stack([-half, half]), codes) == temperature


def test_where_nothing_is_known_temperatures_near_one_are_likelier():
    half = np.ones(10)
    scores, codes = np.column_stack([-half, half]), np.ones(10, dtype=np.intp)
    cells = np.arange(10)
    model = AdditiveModel(np.full(2, 0.5), {"a": scores.T}, {"a": 0})
    random = SeededRandom(1)
    drawn = [
        choose_temperature(RowSample({"a": cells}, codes), model, Fraction(1, 1000), random)
        for _ in range(2000)
    ]
    weights = np.square(TEMPERATURES)
    for temperature, share in zip(TEMPERATURES, weights / weights.sum(), strict=True):
        assert abs(drawn.count(temperature) / 2000 - share) < 0.05  # five standard errors
