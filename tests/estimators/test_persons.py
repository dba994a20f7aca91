"""CentralNB where a person may have several rows: whose they are, and what is never learnt."""

from __future__ import annotations

import math
import pickle
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.base import clone
from sklearn.model_selection import GroupKFold, cross_val_score

from discreet import Categorical, CentralNB, Numeric, PrivacyWarning, Schema
from discreet.errors import PrivacyError, SchemaError

SCHEMA = Schema([Numeric("a", -4, 4), Categorical("b", ["x", "z"])], "y", ["no", "yes"])
PERSON = {"schema": SCHEMA, "person": "patient_id", "rows_per_person": 3}


def make_visits(rows=900, persons=150):
    rng = np.random.default_rng(0)
    y = np.array(SCHEMA.classes, dtype=object)[rng.integers(0, 2, rows)]
    frame = pd.DataFrame(
        {
            "patient_id": [f"secret-{person}" for person in rng.integers(0, persons, rows)],
            "a": np.clip(rng.normal(size=rows) + (y == "yes"), -4, 4),
            "b": rng.choice(["x", "z"], rows),
        }
    )
    return frame, y


@pytest.fixture(autouse=True)
def repeated_fits_are_meant():
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "rows of this table were fitted", PrivacyWarning)
        yield


@pytest.mark.parametrize(
    "convert", [lambda X: X, pl.from_pandas, pa.Table.from_pandas, pl.LazyFrame]
)
def test_the_column_of_ids_is_not_a_feature(convert):
    X, y = make_visits()
    nb = CentralNB(5.0, **PERSON).fit(convert(X), y)
    # older versions of scikit-learn know no names of polars
    assert list(getattr(nb, "feature_names_in_", ["a", "b"])) == ["a", "b"]
    assert nb.n_features_in_ == 2
    with_ids, without = nb.predict(X), nb.predict(X.drop(columns="patient_id"))
    assert with_ids.tolist() == without.tolist()
    assert "at most 3 are used" in str(nb.guarantee_)


@pytest.mark.parametrize("weighting", [False, True])
def test_every_way_to_give_the_rows_uses_the_same_ones(weighting):
    X, y = make_visits()
    options = {"schema": SCHEMA, "rows_per_person": 3, "person_weighting": weighting}
    exact = CentralNB(math.inf, person="patient_id", **options)
    counts = exact.fit(X, y).class_count_.tolist()
    assert exact.fit_source(X.assign(y=y)).class_count_.tolist() == counts
    assert exact.fit(pa.Table.from_pandas(X), y).class_count_.tolist() == counts
    array = X[["a", "b"]].to_numpy(dtype=object)
    plain = CentralNB(math.inf, **options)
    assert plain.fit(array, y, persons=X["patient_id"]).class_count_.tolist() == counts
    shuffled = np.random.default_rng(1).permutation(len(y))
    assert exact.fit(X.iloc[shuffled], y[shuffled]).class_count_.tolist() == counts
    per_person = X.groupby("patient_id").size()
    if not weighting:
        assert sum(counts) == np.minimum(per_person, 3).sum()
    assert sum(counts) <= (len(per_person) if weighting else 3 * len(per_person))


def test_searches_and_clones_take_frames_with_ids():
    X, y = make_visits()
    nb = CentralNB(20.0, **PERSON)
    scores = cross_val_score(clone(nb), X, y, cv=GroupKFold(3), groups=X["patient_id"])
    assert scores.min() > 0.55


@pytest.mark.parametrize(
    ("options", "fit", "match"),
    [
        ({"person": "patient_id"}, {}, "needs rows_per_person; write how many"),
        ({"rows_per_person": 3}, {}, "rows_per_person=3 needs person; write the column"),
        ({"person": "nobody", "rows_per_person": 3}, {}, "X lacks the column nobody"),
        ({"person": "a", "rows_per_person": 3}, {}, "a: is a feature of the schema"),
        ({"person": 3, "rows_per_person": 3}, {}, "person=3; write the name of the column"),
        ({"person": "patient_id", "rows_per_person": 0}, {}, "rows_per_person=0"),
        ({"person": "patient_id", "rows_per_person": 3}, {"persons": [1] * 900}, "both say whose"),
        (
            {"person": "patient_id", "rows_per_person": 3, "max_weight": 2},
            {"sample_weight": np.ones(900)},
            "weights and several rows per person do not go together",
        ),
        (
            {"person": "patient_id", "rows_per_person": 3, "method": "smooth"},
            {},
            "use method='histogram', or rows_per_person=1",
        ),
    ],
)
def test_what_does_not_fit_together_is_refused_with_a_way_out(options, fit, match):
    X, y = make_visits()
    with pytest.raises((SchemaError, PrivacyError), match=match):
        CentralNB(1.0, schema=SCHEMA, **options).fit(X, y, **fit)


def test_arrays_have_no_column_of_ids():
    X, y = make_visits()
    with pytest.raises(SchemaError, match=r"give a data frame, or the ids as fit\(X, y, persons"):
        CentralNB(1.0, **PERSON).fit(X[["a", "b"]].to_numpy(dtype=object), y)


def test_a_source_that_was_opened_otherwise_is_refused():
    X, y = make_visits()
    source = CentralNB(1.0, schema=SCHEMA).open_source(X.assign(y=y))
    with pytest.raises(PrivacyError, match="open it again with open_source"):
        CentralNB(1.0, **PERSON).fit_source(source)


def test_ids_are_in_nothing_that_is_left():
    X, y = make_visits()
    nb = CentralNB(1.0, **PERSON).fit(X, y)
    left = pickle.dumps(nb) + nb.model_.to_json().encode() + nb.statistics_.to_json().encode()
    assert b"secret-" not in left


def test_persons_are_recognised_though_their_rows_are_others():
    X, y = make_visits()
    half = len(y) // 2
    CentralNB(1.0, **PERSON).fit(X[:half], y[:half])
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        CentralNB(1.0, **PERSON).fit(X[half:], y[half:])
    assert any("rows of this table were fitted before" in str(one.message) for one in caught)


# A table whose ids repeat although no person was named.


def told_of_ids(action):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        action()
    return [str(one.message) for one in caught if "looks like an id" in str(one.message)]


def test_repeated_ids_are_warned_about_once():
    X, y = make_visits()
    nb = CentralNB(1.0, schema=SCHEMA)
    for action in (lambda: nb.fit(X, y), lambda: nb.fit_source(X.assign(y=y))):
        (message,) = told_of_ids(action)
        assert message.startswith("patient_id repeats")
        assert "rows_per_person" in message
    assert "patient_id" not in nb.model_.to_json() + nb.statistics_.to_json()


def test_ids_that_do_not_repeat_or_were_named_are_not_warned_about():
    X, y = make_visits()
    unique = X.assign(patient_id=np.arange(len(y)))
    quiet = [
        lambda: CentralNB(1.0, schema=SCHEMA).fit(unique, y),
        lambda: CentralNB(1.0, schema=SCHEMA).fit_source(unique.assign(y=y)),
        lambda: CentralNB(1.0, **PERSON).fit(X, y),
        lambda: CentralNB(math.inf, schema=SCHEMA).fit(X, y),
        lambda: CentralNB(1.0, schema=SCHEMA).fit(X.rename(columns={"patient_id": "valid"}), y),
    ]
    assert [told_of_ids(action) for action in quiet] == [[]] * len(quiet)


def test_what_is_released_does_not_depend_on_the_warning():
    """Models of the same rows with repeated and with unique ids are the same, noise included."""
    X, y = make_visits()
    models = []
    for ids in (X["patient_id"], np.arange(len(y))):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            nb = CentralNB(1.0, schema=SCHEMA, random_state=3).fit(X.assign(patient_id=ids), y)
        models.append(nb.model_.to_json())
    assert models[0] == models[1]
