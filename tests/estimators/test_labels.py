"""Labels of a schema, also where scikit-learn replaces them by their numbers."""

from __future__ import annotations

import math
import warnings
from collections import deque

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.ensemble import StackingClassifier, VotingClassifier
from sklearn.metrics import log_loss
from sklearn.model_selection import cross_val_predict, cross_val_score
from sklearn.preprocessing import LabelEncoder

from discreet import (
    CentralNB,
    FederatedNB,
    LocalNB,
    MixedNB,
    Numeric,
    Schema,
    SchemaError,
    SurveyNB,
)

NAMES = np.array(["low", "mid", "top"])
CODES = np.arange(300) % 3
X = np.random.default_rng(1).normal(3 * CODES[:, None], 0.5, (300, 1))
Y = NAMES[CODES]


def schema(*classes) -> Schema:
    return Schema([Numeric("x", -5, 12)], "class", classes)


ORDERS = [("low", "mid", "top"), ("top", "low", "mid")]
ESTIMATORS = [
    MixedNB(),
    CentralNB(50.0, selection=False, bins=8),
    LocalNB(50.0),
    SurveyNB(0.99),
    FederatedNB(50.0),
]


@pytest.mark.slow
@pytest.mark.parametrize("order", ORDERS, ids=",".join)
@pytest.mark.parametrize("nb", ESTIMATORS, ids=lambda one: type(one).__name__)
def test_votes_and_probabilities_work_with_a_schema_in_any_order(nb, order):
    nb = nb.set_params(schema=schema(*order))
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*were fitted before")
        chances = cross_val_predict(nb, X, Y, cv=2, method="predict_proba")
        for voting in ("soft", "hard"):
            both = VotingClassifier([("a", nb), ("b", nb)], voting=voting).fit(X, Y)
            assert both.score(X, Y) > 0.9
            assert both.predict(X[:3]).tolist() == Y[:3].tolist()
    assert np.mean(NAMES[chances.argmax(axis=1)] == Y) > 0.9  # columns in sorted order


def test_classes_are_sorted_so_that_scores_of_scikit_learn_are_right():
    nb = MixedNB(schema=schema("top", "low", "mid"), class_prior=[0.5, 0.3, 0.2]).fit(X, Y)
    assert nb.classes_.tolist() == ["low", "mid", "top"]
    np.testing.assert_allclose(nb.class_prior_, [0.3, 0.2, 0.5])  # the prior is in schema order
    assert nb.class_count_.tolist() == [100.0] * 3
    assert log_loss(Y, nb.predict_proba(X)) < 0.1
    assert cross_val_score(nb, X, Y, scoring="neg_log_loss", cv=3).min() > -0.1
    known = nb.model_.predict_proba(X)  # the model keeps the order of the schema
    np.testing.assert_allclose(nb.predict_proba(X), known[:, [1, 2, 0]])
    nb = MixedNB(schema=schema("top", "low", "mid"))
    for part in (slice(0, 150), slice(150, None)):
        nb.partial_fit(X[part], Y[part])
    assert nb.score(X, Y) > 0.95


def test_numbers_of_classes_are_taken_from_scikit_learn_alone():
    """Who writes 0 and 1 for "stay" and "churn" means them in this order, not in the sorted one."""
    nb = MixedNB(schema=schema("top", "low", "mid"))
    says = r"0 would be low, 1 would be mid, 2 would be top: give y as the classes are called"
    with pytest.raises(SchemaError, match=says):
        nb.fit(X, LabelEncoder().fit_transform(Y))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        StackingClassifier([("a", nb)], cv=2).fit(X, Y)


@pytest.mark.parametrize(
    ("classes", "y", "says"),
    [
        (("low", "mid", "top"), CODES % 2, "any 2 of the 3 public classes"),
        (("low", "mid", "top"), CODES + 1, "1 is not one of the public classes|3 is not one"),
        (("low", "mid", "top"), CODES - 1, "-1 is not one of the public classes"),
        ((1, 2, 3), CODES, "1, 2 would mean two things"),
        (("9", "10", "11"), CODES, "depends on whether they are numbers or text"),
        (("low", "mid", "top"), CODES + 0.5, "Unknown label type|is not one of the public"),
    ],
)
def test_numbers_that_could_mean_two_things_are_refused(classes, y, says):
    with pytest.raises((SchemaError, ValueError), match=says):
        MixedNB(schema=schema(*classes)).fit(X, y)


def test_a_missing_class_in_the_middle_leaves_no_doubt(monkeypatch):
    kept = CODES != 1
    monkeypatch.setattr("discreet.estimators.sklearn_context.is_called_by_sklearn", lambda: True)
    nb = MixedNB(schema=schema("low", "mid", "top")).fit(X[kept], CODES[kept])
    assert nb.model_.predict(X[:1]).tolist() == ["low"]
    assert nb.class_count_.tolist() == [100.0, 0.0, 100.0]


def test_classes_that_are_the_numbers_stay_what_they_are():
    nb = MixedNB(schema=schema(2, 0, 1)).fit(X, CODES)
    assert nb.classes_.tolist() == [0, 1, 2]
    assert nb.score(X, CODES) > 0.95
    assert nb.model_.predict(X[:3]).tolist() == [0, 1, 2]


@pytest.mark.parametrize("est", [MixedNB(), CentralNB(math.inf), LocalNB(math.inf)])
def test_a_list_of_rows_of_one_label_is_read_as_a_column_is(est):
    """Each label by itself, whatever kind of row the first one is."""
    mixed = Schema([Numeric("x", -5, 12)], "class", [0, "mid", "top"])
    labels = [0 if code == 0 else str(NAMES[code]) for code in CODES]
    kinds = [list, tuple, deque, np.array, lambda row: pd.Series(row, index=[7])]
    for classes, y in ((schema(*ORDERS[1]), Y.tolist()), (mixed, labels)):
        expected = clone(est).set_params(schema=classes).fit(X, y).class_count_
        for kind in kinds:
            rows = [[y[0]], *(kind([label]) for label in y[1:-1]), [y[-1]]]
            found = clone(est).set_params(schema=classes).fit(X, rows).class_count_
            np.testing.assert_array_equal(found, expected)
    with pytest.raises(ValueError, match="1d array"):
        clone(est).set_params(schema=schema(*ORDERS[0])).fit(X, [["low", "mid"]] * 300)


def test_a_frame_that_still_holds_y_is_refused_where_no_schema_says_what_is_a_feature():
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame({"x": X[:, 0], "class": Y})
    with pytest.raises(SchemaError, match="X holds the column 'class', which is y itself"):
        MixedNB().fit(frame, frame["class"])
    MixedNB().fit(frame, frame["class"].rename("other"))  # its name says nothing
    MixedNB().fit(frame[["x"]], frame["class"])
    beside = pd.DataFrame({"x": X[:, 0], "class": np.roll(Y, 1)})
    MixedNB().fit(beside, frame["class"])  # another column of that name
