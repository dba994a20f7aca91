"""The stated precision holds for every population, and some population needs it."""

import math

import numpy as np
import pytest

from discreet import EstimationError
from discreet.collection.sample_size import compute_required_respondents
from discreet.survey.inversion import compute_channel_variance, compute_precision, invert_channel
from discreet.survey.predicate import Predicate
from discreet.survey.questionnaire import Group, PersonalLaw, Questionnaire
from schemas import THREE_AND_TWO as SCHEMA

SURVEYS = {
    "one group": Questionnaire.from_schema(SCHEMA, 0.4),
    "skewed": Questionnaire(
        SCHEMA, [Group(tuple("abc"), theta=0.7)], [PersonalLaw(("b",), (9, 1))]
    ),
    "two groups": Questionnaire.from_schema(SCHEMA, [0.4, 0.7], [["a", "c"], ["b"]]),
    "both models": Questionnaire(
        SCHEMA, [Group(("a",), theta=0.6), Group(("b", "c"), theta=0.8, model="related")]
    ),
    "open": Questionnaire.from_schema(SCHEMA, 1),
}
PEOPLE, REPEATS = 500, 4000


def scores_of(survey, predicate, sheet_law):
    """P(sheet | truth), whether the predicate holds, and the score of every sheet."""
    law = np.array([sheet_law(survey, truth).ravel() for truth in np.ndindex(*survey.sizes)])
    table = np.asarray(predicate.table, float)
    scores = invert_channel(survey, predicate.names, table)
    rows = np.array(list(np.ndindex(*survey.sizes)))
    places = tuple(rows[:, survey.place[name]] for name in predicate.names)
    return law, table[places] > 0, scores[places]


def simulated(population, law, score, rng):
    """Standard error over many surveys of the share that is estimated."""
    drawn = rng.multinomial(PEOPLE, population @ law, size=REPEATS)
    return np.std(drawn @ score / PEOPLE)


@pytest.mark.slow
@pytest.mark.parametrize("survey", SURVEYS.values(), ids=SURVEYS)
@pytest.mark.parametrize("text", ["a = r", "a = r and c = y", "b = x or c = y"])
def test_no_population_is_less_precise_and_the_worst_is_as_stated(survey, text, sheet_law):
    """4000 surveys: the standard error of a standard error is 1.1 %, 5 % is left for chance."""
    (stated,) = compute_precision(survey, PEOPLE, [text])
    predicate = Predicate.parse(survey, text)
    law, holds, score = scores_of(survey, predicate, sheet_law)
    rng = np.random.default_rng(0)
    for concentration in (0.1, 1.0):
        for _ in range(5):
            population = rng.dirichlet(np.full(len(law), concentration))
            assert simulated(population, law, score, rng) < 1.05 * stated.standard_error
    added = law @ score**2 - holds  # the worst: only the two least favourable truths
    one = int(np.argmax(np.where(holds, added, -1)))
    other = int(np.argmax(np.where(holds, -1, added)))
    share = np.clip((1 + added[one] - added[other]) / 2, 0, 1)
    population = np.zeros(len(law))
    population[[one, other]] = share, 1 - share
    assert simulated(population, law, score, rng) == pytest.approx(stated.standard_error, rel=0.05)


def test_without_predicates_every_cell_a_model_needs_is_covered():
    survey = SURVEYS["two groups"]
    found = {one.what: one.standard_error for one in compute_precision(survey, 1000)}
    assert set(found) == {"a", "b", "c", "a and c", "b and c"}
    for name in "ab":
        worst = max(
            compute_precision(survey, 1000, [f"{name} = {label} and c = {other}"])[0].standard_error
            for label in survey.cells[name].labels
            for other in "ny"
        )
        assert found[f"{name} and c"] == pytest.approx(worst)
    assert list(found.values()) == sorted(found.values(), reverse=True)


def test_the_number_of_respondents_is_the_smallest_that_is_precise_enough():
    survey = SURVEYS["one group"]
    people = compute_required_respondents(compute_precision(survey, 1)[0].standard_error, 0.01)
    assert compute_precision(survey, people)[0].standard_error <= 0.01
    assert compute_precision(survey, people - 1)[0].standard_error > 0.01
    assert compute_required_respondents(0.5, 0.01) == 2500  # counting the truth: 1/4 per person
    assert compute_precision(SURVEYS["open"], 2500, ["c = y"])[0].standard_error == pytest.approx(
        0.01
    )
    for wanted in (0, 1, -0.1, math.nan, math.inf):
        with pytest.raises(EstimationError, match="between 0 and 1"):
            compute_required_respondents(0.5, wanted)
    with pytest.raises(EstimationError, match="more than"):
        compute_required_respondents(0.5, 1e-300)
    with pytest.raises(EstimationError, match="respondents is 0"):
        compute_precision(survey, 0)


def test_the_variance_of_the_scores_alone_would_promise_too_much():
    """The known-bad twin: leaving out that people themselves are a sample."""
    survey, predicate = SURVEYS["one group"], "c = y"
    one = Predicate.parse(survey, predicate)
    table = np.asarray(one.table, float)
    known = compute_channel_variance(
        survey, one.names, table, invert_channel(survey, one.names, table)
    )
    (stated,) = compute_precision(survey, 1, [predicate])
    assert max(known.true[2], known.false[2]) < 0.95 * stated.standard_error**2
