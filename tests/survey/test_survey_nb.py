"""SurveyNB: without randomization it is the exact classifier, with it the promise is printed."""

import math

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.utils.estimator_checks import check_estimator

from discreet import (
    Categorical,
    EstimationError,
    MixedNB,
    PrivacyError,
    PrivacyWarning,
    Schema,
    SchemaError,
    SurveyNB,
    estimate,
)
from discreet.datasets import make_mortgage
from discreet.privacy.guarantee import INFERRED_REASON
from discreet.schema.cells import encode_classes
from discreet.tables.in_memory import CountRequest, count_arrays
from schemas import make_answer_schema

PEOPLE = make_mortgage(6000, seed=3)
NOISE = {"check_classifiers_train": "300 respondents at theta 0.3 cannot reach 83 % accuracy"}


def yes_no(people=4000, seed=0):
    """Four yes/no questions that depend on a yes/no class."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, people)
    X = (rng.random((people, 4)) < np.where(y[:, None] == 1, 0.75, 0.3)).astype(int)
    frame = pd.DataFrame(np.where(X == 1, "yes", "no"), columns=list("abcd"))
    return frame, np.where(y == 1, "sick", "well")


SCHEMA = make_answer_schema("abcd", ["no", "yes"], "state", ["sick", "well"])


@pytest.mark.slow
@pytest.mark.parametrize(
    "options", [{}, {"groups": "each"}, {"missing": "category"}, {"unseen": "other"}]
)
def test_at_theta_one_all_of_scikit_learns_checks_pass(options):
    check_estimator(SurveyNB(theta=1.0, **options))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::discreet.PrivacyWarning")
def test_with_noise_only_the_listed_checks_fail():
    check_estimator(SurveyNB(theta=0.3), expected_failed_checks=NOISE)


def test_it_takes_no_sample_weight():
    frame, y = yes_no(50)
    with pytest.raises(TypeError, match="sample_weight"):
        SurveyNB(1.0).fit(frame, y, sample_weight=np.ones(50))


@pytest.mark.parametrize("model", ["unrelated", "related"])
@pytest.mark.parametrize(
    "groups", [None, "each", [["a", "b"], ["c", "d", "state"]], [[0, 1], [2, 3]]]
)
def test_at_theta_one_it_is_the_exact_classifier(model, groups):
    frame, y = yes_no()
    nb = SurveyNB(1, model=model, groups=groups, schema=SCHEMA).fit(frame, y)
    exact = MixedNB(schema=SCHEMA).fit(frame, y)
    np.testing.assert_array_equal(nb.predict_proba(frame), exact.predict_proba(frame))
    np.testing.assert_array_equal(nb.class_count_, exact.class_count_)
    assert math.isinf(nb.guarantee_.epsilon)
    assert "theta is 1" in str(nb.guarantee_)


def test_at_theta_one_numbers_are_counted_by_bin_exactly():
    nb = SurveyNB(1, schema=PEOPLE.schema, bins=5).fit(PEOPLE.X, PEOPLE.y)
    columns = {name: PEOPLE.frame[name] for name in PEOPLE.schema.names}
    codes = encode_classes(PEOPLE.schema, PEOPLE.y)
    exact = estimate(
        count_arrays(PEOPLE.schema, columns, codes, CountRequest(bins=5, moments=None))
    )
    np.testing.assert_array_equal(nb.predict_proba(PEOPLE.X), exact.predict_proba(PEOPLE.X))


@pytest.mark.slow
@pytest.mark.parametrize(
    "options",
    [
        {"theta": 0.5},
        {"theta": 0.6, "groups": [["a", "b"], ["c", "d"]]},
        {"theta": [0.5, 0.8], "groups": [["a", "b"], ["c", "d"]]},
        {"theta": 0.8, "groups": "each"},
        {"theta": 0.75, "model": "related"},
        {"theta": 0.25, "model": "related"},
        {"theta": 0.85, "model": "related", "groups": "each"},
        {"theta": 0.5, "personal": {"a": [3, 1], "state": [0.9, 0.1]}},
    ],
)
@pytest.mark.parametrize("postprocess", [None, "none", "paper", "norm-sub"])
def test_every_variant_learns(options, postprocess):
    frame, y = yes_no(20_000)
    nb = SurveyNB(**options, postprocess=postprocess, schema=SCHEMA, random_state=1).fit(frame, y)
    others, truth = yes_no(4000, seed=1)
    exact = MixedNB(schema=SCHEMA).fit(frame, y).score(others, truth)
    assert nb.score(others, truth) > exact - 0.03


def test_the_promise_is_that_of_the_questionnaire():
    frame, y = yes_no()
    nb = SurveyNB(0.5, groups="each", schema=SCHEMA).fit(frame, y)
    assert nb.guarantee_.epsilon == pytest.approx(5 * math.log(3))  # (1/2 + 1/4) / (1/4), 5 times
    assert nb.guarantee_.is_private
    assert nb.guarantee_.trust == "survey"
    seeded = clone(nb).set_params(random_state=0).fit(frame, y)
    assert seeded.guarantee_.simulated
    assert not seeded.guarantee_.is_private


def test_a_schema_from_the_data_is_said_aloud():
    frame, y = yes_no()
    with pytest.warns(PrivacyWarning, match="SurveyNB"):
        nb = SurveyNB(0.5, random_state=0).fit(frame, y)
    assert nb.guarantee_.void == (INFERRED_REASON,)


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"theta": 0}, EstimationError, "theta is 0"),
        ({"theta": 0.5, "model": "related"}, EstimationError, "theta is 1/2"),
        ({"theta": 1.5}, PrivacyError, "probability"),
        ({"theta": "much"}, PrivacyError, "write a number"),
        ({"theta": [0.5, 0.5]}, SchemaError, "2 thetas for 1 groups"),
        ({"groups": [["a"]]}, SchemaError, "in no group"),
        ({"groups": [["a", "b", "c", "d", "e"]]}, SchemaError, "'e'"),
        ({"groups": "all"}, SchemaError, "each"),
        ({"groups": {("a", "b"), ("c", "d", "state")}}, SchemaError, "lists of names"),
        ({"groups": [{"a", "b"}, ["c", "d", "state"]]}, SchemaError, "lists of names"),
        ({"personal": "own"}, SchemaError, "uniform"),
        ({"personal": {"a": [0.5, 0.6]}}, SchemaError, "add up to 1.1"),
        ({"personal": {"a": [1, 1, 1]}}, SchemaError, "3 weights"),
    ],
)
def test_what_makes_no_sense_is_refused_with_the_way_out(options, error, words):
    frame, y = yes_no(100)
    with pytest.raises(error, match=words):
        SurveyNB(**options, schema=SCHEMA, random_state=0).fit(frame, y)


def test_warner_needs_yes_no_answers():
    schema = Schema([Categorical("a", ["x", "y", "z"], optional=False)], "c", [0, 1])
    with pytest.raises(SchemaError, match="exactly two"):
        SurveyNB(0.7, model="related", schema=schema).fit([["x"], ["y"]], [0, 1])
