"""Wrong arguments in Python: each error names the argument, its value and the way out."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest

from discreet import (
    Categorical,
    CentralNB,
    DiscreetError,
    FederatedNB,
    Guarantee,
    LocalNB,
    Numeric,
    PrivacyWarning,
    Schema,
    SurveyNB,
)
from discreet.collection.respondent import MemoryStore, Respondent
from discreet.collection.tally import Tally
from discreet.local import make_plan

SCHEMA = Schema([Numeric("a", 0, 10), Categorical("b", ["x", "y"])], "c", ["n", "p"])
X = pd.DataFrame({"a": [1.0, 2, 3, 4] * 5, "b": ["x", "y"] * 10})
Y = ["n", "p"] * 10
PLAN = make_plan(SCHEMA, 1.0, 1000)

EPSILONS = (0, -1, math.nan, "abc", "1", None, True, 1e-300, [1], 1 + 2j, 10**400)
DELTAS = (-1, 1, 2, math.nan, "x")


def fit(rows: Any = X, classes: Any = Y, weights: Any = None, **options: Any) -> Callable[[], Any]:
    given = {"epsilon": 1.0, "schema": SCHEMA, **options}
    more = {} if weights is None else {"sample_weight": weights}
    return lambda: CentralNB(**given).fit(rows, classes, **more)


def respond(record: Any) -> Callable[[], Any]:
    return lambda: Respondent(PLAN, MemoryStore()).report(record)


CASES: dict[str, tuple[Callable[[], Any], str]] = {
    **{
        f"epsilon {value!r:.20}": (fit(epsilon=value), "epsilon=.*; write a number of at least")
        for value in EPSILONS
    },
    **{
        f"delta {value!r}": (fit(delta=value), "delta=.*; write a number from 0 to below 1")
        for value in DELTAS
    },
    "method": (fit(method="best"), "method='best'; write 'histogram', "),
    "schema of no kind": (fit(schema=3), "schema=3; write a Schema"),
    "negative bins": (fit(bins=-1), "bins=-1; write 'auto', a whole number from 1 to 65536"),
    "bins of text": (fit(bins="x"), "bins='x'; write 'auto'"),
    "bins of nobody": (fit(bins={"q": 3}), "'q' is not a feature .*; the numeric features are a"),
    "random_state": (fit(random_state="x"), "random_state='x'; write None"),
    "columns": (fit(np.ones((20, 1))), "1 columns without names, the schema 2 features; give a"),
    "infinity": (fit(X.assign(a=math.inf)), r"a: inf is outside .* \[0, 10\]; widen the schema"),
    "out of bounds": (fit(X.assign(a=99)), r"a: 99 is outside .*; widen the schema, or set"),
    "huge": (fit(X.assign(a=[10**400] * 20)), "a: a whole number is too large.*; remove the row"),
    "complex": (fit(X.assign(a=1j)), "a: Complex data not supported .*; make two columns"),
    "text": (fit(X.assign(a="z")), "a: 'z' is not a number; if it means missing, list it"),
    "records": (fit(X.to_dict("records")), r"X is a list of records; give .*DataFrame\(X\)$"),
    "other names": (fit(X.rename(columns=str.upper)), "X lacks .*: rename 'A' to 'a', 'B' to 'b'"),
    "same names": (fit(pd.concat([X, X], axis=1)), "more than one column named a, b; rename"),
    "negative weights": (
        fit(weights=[-1] * 20, max_weight=2),
        "a weight is -1; give each row a finite number of at least 0",
    ),
    "heavy weights": (fit(weights=[3] * 20, max_weight=2), "weight of 3 is above max_weight=2; "),
    "weights without a bound": (fit(weights=[1] * 20), "max_weight"),
    "no values": (lambda: Categorical("a", []), "a: values is empty; list every value"),
    "a value twice": (lambda: Categorical("a", ["x", "x"]), "'x' is listed twice in values; remov"),
    "values of text": (lambda: Categorical("a", "xy"), "values is 'xy'; write a list"),
    "NaN as a value": (lambda: Categorical("a", [math.nan]), "nan cannot be one of the values; us"),
    "bounds swapped": (lambda: Numeric("a", 3, 1), "lower 3 is not below upper 1; swap them"),
    "bounds of text": (lambda: Numeric("a", "0", "1"), "lower is '0'; write a number you know"),
    "one bound": (fit(schema=Schema([Numeric("a", 0)], "c", ["n", "p"])), "a has no public bounds"),
    "no features": (lambda: Schema([], "c", ["a", "b"]), "features is empty; a classifier needs"),
    "target as feature": (
        lambda: Schema([Numeric("c", 0, 1)], "c", ["a", "b"]),
        "'c' is the target and also a feature; remove the feature",
    ),
    "outliers": (
        lambda: Schema([Numeric("a", 0, 1)], "c", ["a", "b"], outliers="clp"),  # type: ignore[arg-type]
        "outliers='clp'; write 'error' or 'clip'",
    ),
    "target to infer": (lambda: Schema.infer(X, "nope"), "lacks the column nope; it has a, b"),
    "file of a schema": (lambda: Schema.read("none.json"), "none.json: there is no such file"),
    "source without schema": (
        lambda: CentralNB(epsilon=1).fit_source("x.csv"),
        "needs a schema; write CentralNB",
    ),
    "no source": (
        lambda: CentralNB(epsilon=1, schema=SCHEMA).fit_source(None),
        "rows cannot be read from a value of type NoneType; give an array, a data frame",
    ),
    "source in memory": (
        lambda: CentralNB(epsilon=1, schema=SCHEMA).fit_source({"a": [1]}),
        "arrays are counted in memory; only tables",
    ),
    "plan epsilon": (lambda: make_plan(SCHEMA, math.nan), "epsilon is nan; it must be above 0"),
    "nobody planned": (lambda: make_plan(SCHEMA, 1.0, 0), "respondents is 0; expect at least one"),
    "planned by a word": (
        lambda: make_plan(SCHEMA, 1.0, "many"),  # type: ignore[arg-type]
        "respondents is 'many'; expect at least one, as a number",
    ),
    "record without class": (respond({"a": 1, "b": "x"}), "the record has no c"),
    "record with an unseen value": (respond({"a": 1, "b": "z", "c": "n"}), "b: .*'z'.* not one of"),
    "record that is a list": (
        respond([1, "x", "n"]),
        "a record is a mapping of names to values, not a list; write",
    ),
    "epsilon of a promise": (
        lambda: Guarantee(-1),
        "epsilon is -1.0; it must be a number",
    ),
    "LocalNB": (lambda: LocalNB(epsilon=0, schema=SCHEMA).fit(X, Y), "epsilon=0; write a number"),
    "SurveyNB": (lambda: SurveyNB(theta=2, schema=SCHEMA).fit(X, Y), "theta=2; write a number"),
    "FederatedNB": (
        lambda: FederatedNB(epsilon=1, schema=SCHEMA, providers=1).fit(X, Y),
        "providers=1; write a whole number of at least 2",
    ),
}


@pytest.mark.parametrize("case", CASES, ids=list(CASES))
def test_a_wrong_argument_is_refused_with_the_way_out(case: str) -> None:
    call, said = CASES[case]
    with pytest.raises(DiscreetError, match=said) as caught:
        call()
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("epsilon", [1, 1e300, math.inf, np.float32(1), np.int64(1)], ids=repr)
def test_numbers_of_any_type_are_numbers(epsilon: Any) -> None:
    assert CentralNB(epsilon=epsilon, schema=SCHEMA).fit(X, Y).guarantee_.epsilon == float(epsilon)


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: CentralNB(epsilon=1, schema=SCHEMA).predict(X), "is not fitted yet"),
        (fit(X[:0], []), "minimum of 1 is required"),
        (fit(X, Y[:3]), "inconsistent numbers of samples"),
        (fit(np.arange(20), Y), "Expected 2D array"),
        (fit(X, np.array([Y, Y]).T), "y should be a 1d array"),
        (fit(X[["a"]], np.linspace(0.1, 0.9, 20), schema=None), "Unknown label type: continuous"),
    ],
    ids=["predict before fit", "no rows", "lengths", "one dimension", "classes 2d", "continuous"],
)
def test_what_scikit_learn_refuses_is_refused_in_its_words(call: Any, said: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PrivacyWarning)
        with pytest.raises(ValueError, match=said):
            call()


@pytest.mark.parametrize("report", [b"\x00\xff garbage", "{}", "null", "[" * 10_000, ""])
def test_garbage_is_rejected_and_the_tally_goes_on(report: str | bytes) -> None:
    tally = Tally(PLAN)
    assert tally.add(report).status == "rejected"
    assert tally.reports == 0
    assert tally.rejected.total() == 1


def test_one_row_is_enough_to_fit() -> None:
    assert len(CentralNB(epsilon=1, schema=SCHEMA).fit(X[:1], Y[:1]).predict(X)) == 20
