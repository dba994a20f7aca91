"""A row is explained in whatever form it comes, by name where it has names."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from discreet import MixedNB, SchemaError
from discreet.datasets import make_mortgage


@pytest.fixture(scope="module")
def people():
    return make_mortgage(400, seed=1)


@pytest.fixture(scope="module")
def fitted(people):
    return MixedNB(schema=people.schema).fit(people.X, people.y)


@pytest.mark.slow
def test_every_form_of_a_row_is_explained_alike(people, fitted):
    polars = pytest.importorskip("polars")
    row = people.X.iloc[[5]]
    expected = fitted.model_.explain(row.iloc[0].to_dict())
    backwards = row[row.columns[::-1]].assign(extra=1)
    forms = {
        "frame": row,
        "frame in another order": backwards,
        "series": row.iloc[0],
        "series in another order": backwards.iloc[0],
        "list": row.iloc[0].tolist(),
        "array": row.iloc[0].to_numpy(),
        "array of one row": row.to_numpy(),
        "series without names": pd.Series(row.iloc[0].tolist()),
        "Arrow": pa.Table.from_pandas(row),
        "polars": polars.from_pandas(row),
        "polars row": polars.from_pandas(row).row(0, named=True),
    }
    for form in forms.values():
        assert fitted.model_.explain(form) == expected
        assert fitted.explain(form) == expected


def test_an_estimator_explains_against_a_class_in_any_spelling():
    X = np.random.default_rng(0).normal(size=(100, 2))
    fitted = MixedNB().fit(X, X[:, 0] > 0)
    assert fitted.explain(X[0], against=False) == fitted.explain(X[:1], against="false")
    with pytest.raises(SchemaError, match="against: 'maybe' is not one of the classes"):
        fitted.explain(X[0], against="maybe")


def test_an_estimator_explains_only_after_fit(people):
    with pytest.raises(ValueError, match="not fitted yet"):
        MixedNB(schema=people.schema).explain(people.X.iloc[0])


def test_what_is_not_one_row_is_refused(people, fitted):
    row = people.X.iloc[0]
    for form, message in (
        (people.X.iloc[:3], r"a table of 3 rows .*; give one row, such as frame.iloc\[\[0\]\]"),
        (people.X.iloc[:0], "a table of 0 rows"),
        (row.drop("age"), "the row lacks the column age; it has income"),
        (people.X.iloc[[0]].drop(columns="age"), "lacks the column age"),
        (row.tolist()[:2], "a row of 2 values does not fit the 8 features; give these in order"),
        ("abc", "'abc' is to be explained; give a row"),
        (None, "None is to be explained; give a row"),
        (5, "5 is to be explained; give a row"),
    ):
        with pytest.raises(SchemaError, match=message):
            fitted.explain(form)
