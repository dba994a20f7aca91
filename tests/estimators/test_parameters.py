"""Every parameter of every estimator has a rule, and ``fit`` applies it before it reads data."""

from __future__ import annotations

import inspect
import math

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

from discreet import (
    Categorical,
    CentralNB,
    DiscreetError,
    FederatedNB,
    LocalNB,
    MixedNB,
    Numeric,
    PrivacyError,
    Schema,
    SchemaError,
    SurveyNB,
)

ESTIMATORS = [MixedNB, CentralNB, LocalNB, SurveyNB, FederatedNB]
SCHEMA = Schema([Numeric("size", 0, 9), Categorical("flag", [0, 1])], "class", [0, 1])
X = pd.DataFrame({"size": [1.0, 8.0] * 20, "flag": [0, 1] * 20})
Y = np.array([0, 1] * 20)


class Nonsense:
    """What no parameter may be."""

    def __repr__(self):
        return "<nonsense>"


PARAMETERS = [(nb, name) for nb in ESTIMATORS for name in nb().get_params()]


@pytest.mark.parametrize(("nb", "name"), PARAMETERS, ids=lambda p: getattr(p, "__name__", p))
def test_nonsense_is_refused_by_name(nb, name):
    """No parameter can be forgotten: they are taken from ``get_params``."""
    for value in ("x", Nonsense(), math.nan, -7, np.int64(-7), object):
        with pytest.raises(DiscreetError, match=rf"{name}=.*; write ") as raised:
            nb(**{"schema": SCHEMA, name: value}).fit(X, Y)
        assert isinstance(raised.value, ValueError)


@pytest.mark.parametrize("nb", ESTIMATORS)
def test_every_parameter_has_one_rule_and_every_rule_a_parameter(nb):
    assert set(nb._param_rules) == set(nb().get_params())
    for name, rule in nb._param_rules.items():  # what is written in the signature is allowed
        rule.check_value(name, inspect.signature(nb).parameters[name].default)


@pytest.mark.parametrize("nb", ESTIMATORS)
def test_parameters_are_checked_before_any_data_is_read(nb):
    class Rows:
        def __array__(self, *_):
            raise AssertionError("the data was read")

    with pytest.raises(DiscreetError, match="missing="):
        nb(missing="x").fit(Rows(), Rows())


@pytest.mark.parametrize(
    ("nb", "options", "says"),
    [
        (CentralNB, {"bins": {"size": "x"}}, "bins="),
        (CentralNB, {"bins": {"size": [1.0, math.nan]}}, "bins="),
        (CentralNB, {"bins": 10**8}, "bins=100000000; write 'auto', a whole number from 1 to"),
        (CentralNB, {"bins": {"height": 3}}, "bins: 'height' is not a feature"),
        (CentralNB, {"bins": {"flag": 3}}, "bins: 'flag' is not a number"),
        (CentralNB, {"selection": 1}, "selection=1; write True or False"),
        (CentralNB, {"epsilon": True}, "epsilon=True"),
        (CentralNB, {"epsilon": [1]}, r"epsilon=\[1\]"),
        (CentralNB, {"epsilon": "1"}, "epsilon='1'; write a number of at least 1e-09"),
        (CentralNB, {"epsilon": 10**400}, "epsilon="),
        (CentralNB, {"epsilon": 1e-300}, "epsilon=1e-300; write a number of at least 1e-09"),
        (CentralNB, {"delta": 1}, "delta=1"),
        (CentralNB, {"max_weight": math.inf}, "max_weight=inf"),
        (CentralNB, {"schema": {"features": []}}, r"schema=.*write a Schema"),
        (
            CentralNB,
            {"schema": "schema.json"},
            r"schema='schema.json'; write a Schema.*no such file",
        ),
        (CentralNB, {"schema": ["age"]}, r"schema=\['age'\]; write a Schema, the path of one, or"),
        (CentralNB, {"budget": "no.json"}, r"budget='no.json'; write .*no such ledger"),
        (MixedNB, {"alpha": math.inf}, "alpha=inf"),
        (MixedNB, {"categorical_features": [1.5]}, "categorical_features="),
        (MixedNB, {"class_prior": [[0.5, 0.5]]}, "class_prior="),
        (LocalNB, {"approach": True}, "approach=True; write 1, 2, 3 or 'hybrid'"),
        (LocalNB, {"public_sample": [1.0, 2.0]}, "public_sample="),
        (LocalNB, {"waves": 1.0}, "waves=1.0"),
        (SurveyNB, {"theta": [0.5, "x"]}, "theta="),
        (SurveyNB, {"groups": ["size"]}, "groups="),
        (SurveyNB, {"groups": [[1.5]]}, "groups="),
        (SurveyNB, {"groups": [[7]]}, "groups name the column 7"),
        (SurveyNB, {"personal": {1: [1, 1]}}, "personal="),
        (FederatedNB, {"providers": 1}, "providers=1; write a whole number of at least 2"),
        (FederatedNB, {"key": 3}, "key=3"),
    ],
)
def test_what_is_nearly_right_is_refused_too(nb, options, says):
    with pytest.raises(DiscreetError, match=says):
        nb(**{"schema": SCHEMA, **options}).fit(X, Y)


@pytest.mark.filterwarnings("ignore:rows of this table were fitted before")
@pytest.mark.parametrize("kind", [np.float32, np.float64, np.int64, int])
def test_numpy_scalars_are_numbers(kind):
    """A grid of parameters made by numpy works, and the promise is a plain number."""
    one, two = kind(1), np.int64(2)
    fitted = [
        MixedNB(alpha=one, schema=SCHEMA),
        CentralNB(one, delta=np.float32(0), bins=two, max_weight=one, schema=SCHEMA),
        CentralNB(one, bins={"size": two}, allocation={"size": one}, schema=SCHEMA),
        LocalNB(one, bins=two, waves=np.int32(1), approach=np.int8(2), schema=SCHEMA),
        SurveyNB(np.float32(0.5), bins=two, schema=SCHEMA, random_state=np.uint8(3)),
        FederatedNB(one, providers=two, tolerated=np.int16(1), bins=two, schema=SCHEMA),
    ]
    for nb in fitted:
        promise = clone(nb).fit(X, Y).guarantee_
        assert type(promise.epsilon) is float
        assert promise.to_body()["epsilon"] == pytest.approx(promise.epsilon) or isinstance(
            nb, MixedNB
        )


@pytest.mark.filterwarnings("ignore:rows of this table were fitted before")
@pytest.mark.parametrize("method", ["histogram", "moments", "global", "smooth", "trimmed"])
def test_the_smallest_epsilon_gives_noise_or_a_sentence(method):
    nb = CentralNB(1e-9, method=method, schema=SCHEMA)
    if method in ("moments", "global"):  # sums of squares on a grid of 65536 steps
        with pytest.raises(PrivacyError, match="epsilon is too small here"):
            nb.fit(X, Y)
    else:
        assert nb.fit(X, Y).guarantee_.epsilon == 1e-9
    assert CentralNB(1e-4, method=method, schema=SCHEMA).fit(X, Y).guarantee_.is_private


HUGE = np.array([[10**400, 0]] * 40, dtype=object)  # an old pandas takes no such column
DAYS = pd.date_range("2020-01-01", periods=40)
DATES = r"dates \(.*\) are not supported without a data frame and a schema that says how to read"


@pytest.mark.parametrize("schema", [SCHEMA, None], ids=["schema", "no schema"])
@pytest.mark.parametrize(
    ("rows", "y", "says"),
    [
        (X.assign(size=DAYS), Y, rf"size: {DATES}"),
        (X.assign(flag=DAYS.tz_localize("UTC")), Y, rf"flag: {DATES}"),
        (X.assign(size=DAYS - DAYS[0]), Y, rf"size: {DATES}"),
        (X.assign(size=[None, *(day.date() for day in DAYS[1:])]), Y, rf"size: {DATES}"),
        (np.array([[day, day] for day in DAYS.to_numpy()]), Y, DATES),
        (X, DAYS.to_numpy(), rf"y: {DATES}"),
        (X.assign(size=1j), Y, "size: Complex data not supported .*make two columns"),
        (X.to_numpy() + 0j, Y, "X: Complex data not supported .*make two columns"),
        (X, Y + 0j, "y: Complex data not supported .*make two columns"),
        (X, list(Y + 0j), "y: Complex data not supported"),
        (
            HUGE,
            Y,
            "(size|x0): a whole number is too large, beyond 1e308",
        ),
        (X.assign(flag=[[0]] * 40), Y, "flag: its values are of type list; give each part"),
        ({"size": [1.0], "flag": [0]}, Y, r"X is a dict; give a data frame"),
    ],
)
def test_what_is_no_number_and_no_category_is_refused_with_the_fix(schema, rows, y, says):
    for nb in (MixedNB(schema=schema), CentralNB(schema=schema)):
        with pytest.raises(SchemaError, match=says) as raised:
            nb.fit(rows, y)
        assert len(str(raised.value)) < 300  # and no table in the message


def test_frames_of_polars_and_arrow_hold_no_dates_either():
    import polars as pl
    import pyarrow as pa

    dated = X.assign(size=DAYS)
    nested = pl.from_pandas(X).with_columns(flag=pl.concat_list("flag", "flag"))
    for rows, says in [
        (pl.from_pandas(dated), DATES),
        (pa.Table.from_pandas(dated), DATES),
        (nested, "values are of type list"),
        (nested.to_arrow(), "values are of type"),
    ]:
        with pytest.raises(SchemaError, match=says):
            MixedNB(schema=SCHEMA).fit(rows, Y)


def test_a_lazy_frame_is_collected():
    import polars as pl

    lazy = pl.from_pandas(X).lazy()
    nb = MixedNB(schema=SCHEMA).fit(lazy, Y)
    assert nb.predict(lazy).tolist() == MixedNB(schema=SCHEMA).fit(X, Y).predict(X).tolist()


def test_numpy_scalars_are_numbers_outside_of_estimators_too():
    from discreet.local.planning import PlanOptions, make_plan
    from discreet.mechanisms.frequency import OUE
    from discreet.survey import Questionnaire

    plan = make_plan(SCHEMA, np.float32(0.1), np.int64(1000), PlanOptions(bins=np.int8(4)))
    assert plan.to_json() == make_plan(SCHEMA, 0.1, 1000, PlanOptions(bins=4)).to_json()
    assert repr(OUE(np.float32(1), np.int64(4))) == repr(OUE(1.0, 4))
    assert Numeric("x", np.float32(0), np.int64(3)) == Numeric("x", 0.0, 3.0)
    survey = Questionnaire.from_schema(SCHEMA, np.float32(0.5), None, "unrelated", np.int64(3))
    assert (
        survey.to_json() == Questionnaire.from_schema(SCHEMA, 0.5, None, "unrelated", 3).to_json()
    )


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:rows of this table were fitted before")
def test_a_schema_may_be_a_path_or_a_mapping(tmp_path):
    path = tmp_path / "schema.json"
    path.write_text(SCHEMA.to_json())
    mapping = {
        "features": [
            {"name": "size", "kind": "numeric", "lower": np.int64(0), "upper": np.float32(9)},
            {"name": "flag", "kind": "categorical", "values": range(2)},
        ],
        "target": "class",
        "classes": np.array([0, 1]),
    }
    for given in (path, str(path), mapping, SCHEMA.to_body()):
        for nb in ESTIMATORS:
            fitted = clone(nb(schema=given)).fit(X, Y)
            assert fitted.schema_ == SCHEMA
            assert fitted.get_params()["schema"] is not None
    with pytest.raises(SchemaError, match=r"schema=.*a schema holds names, numbers and lists"):
        MixedNB(schema={**mapping, "classes": {0, 1}, "features": object}).fit(X, Y)
