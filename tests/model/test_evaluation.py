"""Scores are what scikit-learn says they are, and those of two groups add up."""

from __future__ import annotations

import math
from collections import Counter

import numpy as np
import pytest
from sklearn import metrics

from discreet import EstimationError, MixedNB, NaiveBayesModel, SchemaError
from discreet.datasets import Dataset, make_balance_scale, make_mortgage
from discreet.model.evaluation import (
    Scores,
    cross_validate,
    score_model,
    split_folds,
)
from discreet.model.intervals import compute_wilson_interval


@pytest.fixture(scope="module")
def people() -> Dataset:
    return make_mortgage(3000, seed=5)


@pytest.fixture(scope="module")
def model(people: Dataset) -> NaiveBayesModel:
    return MixedNB(schema=people.schema).fit(people.X[:1500], people.y[:1500]).model_


def test_scores_agree_with_scikit_learn(model: NaiveBayesModel, people: Dataset) -> None:
    scores = score_model(model, people.frame, people.y)
    predicted = model.predict(people.X)
    classes = ["no", "yes"]
    assert scores.rows == 3000
    assert scores.accuracy == metrics.accuracy_score(people.y, predicted)
    table = metrics.confusion_matrix(people.y, predicted, labels=classes)
    np.testing.assert_array_equal(scores.confusion, table)
    precision, recall, _, _ = metrics.precision_recall_fscore_support(
        people.y, predicted, labels=classes
    )
    np.testing.assert_allclose(scores.precision, precision)
    np.testing.assert_allclose(scores.recall, recall)
    loss = metrics.log_loss(people.y, model.predict_proba(people.X), labels=classes)
    assert scores.log_loss == pytest.approx(loss)
    assert scores.majority_baseline == ("no", np.mean(people.y == "no"))


def test_scores_of_two_halves_add_up_to_the_whole(model: NaiveBayesModel, people: Dataset) -> None:
    whole = score_model(model, people.frame, people.y)
    halves = score_model(model, people.frame[:999], people.y[:999])
    halves += score_model(model, people.frame[999:], people.y[999:])
    np.testing.assert_array_equal(halves.confusion, whole.confusion)
    assert halves.log_loss == pytest.approx(whole.log_loss)


def test_scores_of_other_classes_do_not_add_up(model: NaiveBayesModel, people: Dataset) -> None:
    scores = score_model(model, people.frame, people.y)
    with pytest.raises(EstimationError, match="different classes"):
        scores + Scores(("a", "b"), scores.confusion, 0.0)


def test_an_unknown_class_is_refused(model: NaiveBayesModel, people: Dataset) -> None:
    with pytest.raises(SchemaError, match="maybe"):
        score_model(model, people.frame[:1], ["maybe"])


def test_rows_and_classes_must_be_equally_many(model: NaiveBayesModel, people: Dataset) -> None:
    with pytest.raises(EstimationError, match="3000 rows"):
        score_model(model, people.frame, ["no"])


def test_a_class_that_never_occurs_has_no_recall() -> None:
    scores = Scores(("a", "b"), np.array([[3, 0], [0, 0]]), 1.0)
    assert scores.recall[0] == 1.0
    assert math.isnan(scores.recall[1])
    assert math.isnan(scores.precision[1])


@pytest.mark.parametrize(
    ("hits", "trials", "low", "high"),
    [(81, 100, 0.7222, 0.8749), (0, 10, 0.0, 0.2775), (10, 10, 0.7225, 1.0), (0, 0, 0.0, 1.0)],
)
def test_wilson_interval(hits: int, trials: int, low: float, high: float) -> None:
    assert compute_wilson_interval(hits, trials) == pytest.approx((low, high), abs=5e-5)


def test_wilson_agrees_with_scipy() -> None:
    from scipy.stats import binomtest

    for hits, trials in ((1, 7), (500, 999), (9, 10_000)):
        exact = binomtest(hits, trials).proportion_ci(method="wilson")
        assert compute_wilson_interval(hits, trials) == pytest.approx((exact.low, exact.high))


def test_folds_cover_every_row_once_and_spread_the_classes() -> None:
    y = make_balance_scale().y
    tested = Counter(int(row) for _, test in split_folds(y, 5, seed=1) for row in test)
    assert tested == Counter(range(len(y)))
    for train, test in split_folds(y, 5, seed=1):
        assert not set(train) & set(test)
        assert len(train) + len(test) == len(y)
        for label in "LBR":
            assert abs((y[test] == label).sum() - (y == label).sum() / 5) <= 1


@pytest.mark.parametrize("count", [0, 1, 626])
def test_a_silly_number_of_folds_is_refused(count: int) -> None:
    with pytest.raises(EstimationError, match="folds"):
        next(split_folds(make_balance_scale().y, count))


def test_cross_validation_tests_on_rows_it_did_not_learn_from() -> None:
    table = make_balance_scale()
    sizes = []

    def fit(rows: object, truth: object) -> NaiveBayesModel:
        sizes.append(len(truth))  # type: ignore[arg-type]
        return MixedNB(schema=table.schema).fit(rows, truth).model_

    scores = cross_validate(fit, table.X, table.y, count=5, seed=3)
    assert scores.rows == 625
    assert sizes == [500] * 5
    assert 0.85 < scores.accuracy < 0.95
    again = cross_validate(fit, table.X.to_numpy(), table.y, count=5, seed=3)
    np.testing.assert_array_equal(scores.confusion, again.confusion)


def test_intervals_and_calibration_are_those_of_the_rows(
    model: NaiveBayesModel, people: Dataset
) -> None:
    scores = score_model(model, people.frame, people.y)
    sure = model.predict_proba(people.X).max(axis=1)
    right = model.predict(people.X) == people.y
    loss = -np.log(model.predict_proba(people.X)[np.arange(3000), (people.y == "yes").astype(int)])
    half = 1.96 * loss.std(ddof=1) / math.sqrt(3000)
    low, high = scores.log_loss_interval
    assert (low, high) == pytest.approx((loss.mean() - half, loss.mean() + half), rel=1e-3)
    tenth = np.minimum((10 * sure).astype(int), 9)
    gaps = [abs(sure[tenth == t].sum() - right[tenth == t].sum()) for t in range(10)]
    assert scores.calibration_error == pytest.approx(sum(gaps) / 3000)
    low, high = scores.calibration_interval
    assert low <= scores.calibration_error <= high
    body = scores.to_body()
    assert sum(one["rows"] for one in body["reliability"]) == 3000
    for one in body["classes"].values():
        for key in ("precision", "recall"):
            low, high = one[f"{key}_interval"]
            assert low <= one[key] <= high
    halves = score_model(model, people.frame[:999], people.y[:999])
    halves += score_model(model, people.frame[999:], people.y[999:])
    np.testing.assert_allclose(halves.reliability, scores.reliability)
    assert halves.log_loss_interval == pytest.approx(scores.log_loss_interval)
