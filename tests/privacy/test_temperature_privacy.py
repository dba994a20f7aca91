"""The choice of a temperature keeps its promise, exactly: what a row moves, and what is charged.

The transcripts of test_central_privacy.py, without corrections and with so many people that a
temperature is chosen.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from central_transcripts import EPSILON, RECORDS, SCHEMA, cost, scores_of, transcript_of, worst
from scipy.special import log_softmax

from discreet.central import temperature as temperature_module
from discreet.central.budget import Budget
from discreet.central.corrections import RESIDUAL_STEPS, TEMPERATURES
from discreet.central.temperature import TemperatureBudget, compute_temperature_gains

OPTIONS = {"first": (4_000, 4_000), "corrections": False}
NAME = "choice of temperature"
BASES = [[], RECORDS[:1], RECORDS[3:9], RECORDS[:5] * 3]


def untruncated_gains(scores, codes):
    """Known bad: log-probabilities as they are, of which a row may move any amount."""
    rows = np.arange(len(codes))
    log_probability = np.stack(
        [log_softmax(t * scores, axis=1)[rows, codes] for t in TEMPERATURES], axis=1
    )
    gains = log_probability - log_probability.min(axis=1, keepdims=True)
    return np.floor(RESIDUAL_STEPS * gains / temperature_module.MAX_LOG_GAIN).astype(np.int64)


def largest_gain(classes, function):
    scores = scores_of(classes)
    gains = [function(scores, np.full(len(scores), code)) for code in range(classes)]
    assert min(int(one.min()) for one in gains) == 0
    return max(int(one.max()) for one in gains)


@pytest.mark.parametrize("classes", [2, 3, 5])
def test_a_row_raises_the_quality_of_a_temperature_by_at_most_one(classes):
    assert RESIDUAL_STEPS / 2 < largest_gain(classes, compute_temperature_gains) <= RESIDUAL_STEPS
    assert largest_gain(classes, untruncated_gains) > RESIDUAL_STEPS


def test_of_two_classes_no_gain_is_cut():
    """MAX_LOG_GAIN is the largest that truncated log-probabilities of two classes allow."""
    scores = np.column_stack([np.zeros(4001), np.linspace(-8, 8, 4001)])
    gains = compute_temperature_gains(scores, np.zeros(4001, dtype=int))
    assert 0.99 * RESIDUAL_STEPS < gains.max() < RESIDUAL_STEPS


def test_of_very_many_classes_larger_gains_are_cut():
    scores = np.zeros((101, 100))
    scores[:, 0] = np.linspace(0, 10, 101)
    gains = compute_temperature_gains(scores, np.zeros(101, dtype=int))
    assert gains.max() == RESIDUAL_STEPS


def excess_of_choice(monkeypatch, bases=BASES, **options):
    """The largest cost of the choice as a multiple of what was charged for it."""
    largest = 0.0
    for base in bases:
        given, _, trained = transcript_of(monkeypatch, base, "histogram", **OPTIONS, **options)
        charges = {one.name: one.epsilon for one in trained.model.guarantee.charges}
        for record in RECORDS:
            more, *_ = transcript_of(
                monkeypatch, [*base, record], "histogram", **OPTIONS, **options
            )
            paid = Fraction(charges[NAME])
            largest = max(largest, float(cost(given[-1:], more[-1:]) / paid))
    return largest


@pytest.mark.slow
@pytest.mark.parametrize("missing", ["skip", "category"])
def test_a_temperature_costs_at_most_its_charge(monkeypatch, missing):
    schema = replace(SCHEMA, missing=missing)
    assert 0 < excess_of_choice(monkeypatch, schema=schema) <= 1 + 1e-9
    found = worst(monkeypatch, "histogram", BASES, schema=schema, **OPTIONS)
    assert Fraction(EPSILON) / 3 < found <= Fraction(EPSILON)


def sure(scores, codes, gains=compute_temperature_gains):
    """The same of scores that are so far apart that truncation matters."""
    return gains(40 * scores, codes)


@pytest.mark.slow
def test_of_sure_models_a_temperature_costs_at_most_its_charge(monkeypatch):
    monkeypatch.setattr(temperature_module, "compute_temperature_gains", sure)
    assert 0.6 < excess_of_choice(monkeypatch) <= 1 + 1e-9


@pytest.mark.slow
def test_twin_a_quality_that_is_not_truncated(monkeypatch):
    monkeypatch.setattr(
        temperature_module,
        "compute_temperature_gains",
        lambda scores, codes: sure(scores, codes, untruncated_gains),
    )
    assert excess_of_choice(monkeypatch) > 1


@pytest.mark.slow
def test_twin_a_choice_that_nobody_charges(monkeypatch):
    """Its cost is then above the whole, and no charge has its name."""
    true = Budget.spend_on_selection

    def free(budget, name, cost):
        return budget.total / 2 if name == NAME else true(budget, name, cost)

    monkeypatch.setattr(Budget, "spend_on_selection", free)
    with pytest.raises(KeyError, match=NAME):
        excess_of_choice(monkeypatch, BASES[:1])


def test_whether_a_temperature_is_chosen_follows_from_noisy_people_alone():
    pure, concentrated = Budget(1.0), Budget(1.0, 1e-6)
    assert TemperatureBudget.from_people(pure, 999).cost == 0
    assert TemperatureBudget.from_people(pure, 1001).cost == Fraction(3, 100)
    many = TemperatureBudget.from_people(pure, 1e6)
    assert many.row_share == Fraction(1000 / 0.03 / 1e6)
    assert TemperatureBudget.from_people(pure, float("nan")).cost == 0
    cost = TemperatureBudget.from_people(concentrated, 1e6).cost
    assert cost == concentrated.total * Fraction(3, 100)
