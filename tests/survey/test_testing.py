"""Accuracy from randomized sheets alone agrees with the true one at the stated rate."""

from dataclasses import replace

import numpy as np
import pytest

from discreet import Categorical, EstimationError, Schema, SchemaError, SurveyNB, estimate
from discreet.collection.simulation import simulate_tally
from discreet.collection.tally import Tally
from discreet.model import PairFactor
from discreet.randomness import SeededRandom
from discreet.survey import testing
from discreet.survey.questionnaire import Group, PersonalLaw, Questionnaire
from discreet.survey.testing import estimate_sheet_accuracy
from discreet.tables.in_memory import count_arrays
from schemas import make_answer_schema

SCHEMA = make_answer_schema("abd")
SURVEYS = {
    "one group": Questionnaire.from_schema(SCHEMA, 0.6),
    "skewed law": Questionnaire(
        SCHEMA, [Group(tuple("abdc"), theta=0.5)], [PersonalLaw(("a", "c"), (4, 1, 1, 4))]
    ),
    "two groups": Questionnaire.from_schema(SCHEMA, [0.7, 0.8], [["a", "c"], ["b", "d"]]),
    "related": Questionnaire.from_schema(SCHEMA, 0.8, model="related"),
    "both": Questionnaire(
        SCHEMA,
        [Group(("a", "c"), theta=0.8, model="related"), Group(("b", "d"), theta=0.7)],
    ),
}
LEVEL = 0.95


def drawn(people, rng):
    c = (rng.random(people) < 0.4).astype(int)
    rates = np.array([[0.2, 0.3, 0.5], [0.7, 0.6, 0.5]])[c]
    return np.column_stack([(rng.random((people, 3)) < rates).astype(int), c])


def model_of(truth):
    columns = {n: np.array(["n", "y"])[truth[:, k]] for k, n in enumerate("abd")}
    return estimate(count_arrays(SCHEMA, columns, truth[:, 3].astype(np.int32)))


RNG = np.random.default_rng(11)
MODEL = model_of(drawn(4000, RNG))


def true_accuracy():
    """Of the population, exactly."""
    found = 0.0
    for row in np.ndindex(2, 2, 2, 2):
        chance = 0.4 if row[3] else 0.6
        for value, rate in zip(
            row[:3], ([0.7, 0.6, 0.5] if row[3] else [0.2, 0.3, 0.5]), strict=True
        ):
            chance *= rate if value else 1 - rate
        labels = {n: np.array(["ny"[v]], dtype=object) for n, v in zip("abd", row[:3], strict=True)}
        found += chance * (MODEL.predict(labels)[0] == "ny"[row[3]])
    return found


@pytest.mark.slow
@pytest.mark.parametrize("survey", SURVEYS.values(), ids=SURVEYS)
def test_the_interval_covers_the_true_accuracy_at_its_rate(survey):
    """250 surveys of 600 people: between 90.5 and 99 % of 95 % intervals (false alarm 2e-3)."""
    truth, rng = true_accuracy(), np.random.default_rng(2)
    covered, found = 0, []
    for repeat in range(250):
        tally = simulate_tally(survey, drawn(600, rng), SeededRandom(repeat))
        one = estimate_sheet_accuracy(MODEL, tally, LEVEL)
        covered += one.interval[0] <= truth <= one.interval[1]
        found.append(one.unbiased)
    assert 0.905 < covered / 250 < 0.99
    assert abs(np.mean(found) - truth) < 5 * np.std(found) / 15.8


@pytest.mark.parametrize("survey", [SURVEYS["two groups"], SURVEYS["both"], SURVEYS["skewed law"]])
def test_where_there_are_too_many_sheets_decoys_are_drawn(survey, monkeypatch):
    tally = simulate_tally(survey, drawn(4000, np.random.default_rng(3)), SeededRandom(1))
    exact = estimate_sheet_accuracy(MODEL, tally)
    monkeypatch.setattr(testing, "MAX_ENUMERATED_SHEETS", 1)
    sampled = estimate_sheet_accuracy(MODEL, tally, random_state=0)
    assert sampled.accuracy == pytest.approx(exact.accuracy, abs=0.02)
    width = exact.interval[1] - exact.interval[0]
    assert sampled.interval[1] - sampled.interval[0] == pytest.approx(width, rel=0.2)


def test_of_drawn_scores_too_the_noise_is_freed_of_the_share():
    """What is left of h^2 - h does not go along with h; with no slope or the other sign it does.

    With a skewed law; where personal answers are uniform, so is a hit by chance, and the slope 0.
    """
    survey = SURVEYS["skewed law"]
    hits, random = testing._HitPredicate(MODEL, survey), SeededRandom(3)
    slope = hits.simulate_variance(random).slope
    assert slope == pytest.approx(hits.score_all_sheets()[1].slope, abs=0.02)
    truth = random.integers(2, 4 * 40_000).reshape(-1, 4)
    scores = hits.score_with_draws(survey.randomize_records(0, truth, random), random)

    def drift(slope):
        return abs(np.cov(scores**2 - scores - slope * scores, scores)[0, 1] / np.var(scores))

    assert drift(slope) < 0.02
    assert min(drift(0.0), drift(-slope)) > 0.5


def test_at_theta_one_it_is_the_plain_accuracy():
    people = drawn(500, np.random.default_rng(4))
    tally = simulate_tally(Questionnaire.from_schema(SCHEMA, 1), people, SeededRandom(0))
    labels = {n: np.array(["n", "y"], dtype=object)[people[:, k]] for k, n in enumerate("abd")}
    plain = np.mean(MODEL.predict(labels) == np.array(["n", "y"])[people[:, 3]])
    found = estimate_sheet_accuracy(MODEL, tally)
    assert found.accuracy == pytest.approx(plain)
    assert found.observed == pytest.approx(plain)


def test_hits_of_people_without_a_sheet_stand_in_for_the_law():
    """Own personal answers whose law is unknown: the hits come from others."""
    survey = SURVEYS["one group"]
    tally = simulate_tally(survey, drawn(3000, np.random.default_rng(5)), SeededRandom(2))
    by_law = estimate_sheet_accuracy(MODEL, tally)
    on_decoys = (
        testing._HitPredicate(MODEL, survey)._compute_table()
        * survey.compute_personal_law(survey.names)
    ).sum()
    decoys = round(2000 * on_decoys)
    by_hits = estimate_sheet_accuracy(MODEL, tally, personal_hits=(decoys, 2000))
    assert by_hits.accuracy == pytest.approx(by_law.accuracy, abs=1e-3)
    assert by_hits.interval[0] < by_law.interval[0] < by_law.interval[1] < by_hits.interval[1]
    several = Tally(SURVEYS["two groups"])
    several.add_values(0, *tally.get_distinct_answers())
    with pytest.raises(SchemaError, match="several groups"):
        estimate_sheet_accuracy(MODEL, several, personal_hits=(1, 2))
    with pytest.raises(SchemaError, match="3 of 2 people"):
        estimate_sheet_accuracy(MODEL, tally, personal_hits=(3, 2))


def test_what_cannot_be_tested_is_refused():
    tally = simulate_tally(SURVEYS["one group"], drawn(10, RNG), SeededRandom(0))
    with pytest.raises(EstimationError, match="empty"):
        estimate_sheet_accuracy(MODEL, Tally(SURVEYS["one group"]))
    with pytest.raises(EstimationError, match="level"):
        estimate_sheet_accuracy(MODEL, tally, 1.0)
    other = Schema([Categorical("a", ["n", "y"], optional=False)], "z", ["n", "y"])
    nb = SurveyNB(0.5, schema=other, random_state=0).fit([["n"], ["y"]], ["n", "y"])
    with pytest.raises(SchemaError, match="predicts z"):
        estimate_sheet_accuracy(nb.model_, tally)
    cells = tuple(factor.cells for factor in MODEL.factors[:2])
    pair = PairFactor(cells, ((0, 1), (0, 1)), np.zeros((2, 4)))
    with pytest.raises(SchemaError, match="pairs of features"):
        estimate_sheet_accuracy(replace(MODEL, pairs=[pair]), tally)
