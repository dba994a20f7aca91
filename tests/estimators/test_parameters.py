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
    assert set(nb._rules) == set(nb().get_params())
    for name, rule in nb._rules.items():  # what is written in the signature is allowed
        rule.checked(name, inspect.signature(nb).parameters[name].default)


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
        (CentralNB, {"schema": "schema.json"}, r"schema='schema.json'; write a Schema"),
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


@pytest.mark.parametrize("method", ["histogram", "moments", "global", "smooth", "trimmed"])
def test_the_smallest_epsilon_gives_noise_or_a_sentence(method):
    nb = CentralNB(1e-9, method=method, schema=SCHEMA)
    if method in ("moments", "global"):  # sums of squares on a grid of 65536 steps
        with pytest.raises(PrivacyError, match="epsilon is too small here"):
            nb.fit(X, Y)
    else:
        assert nb.fit(X, Y).guarantee_.epsilon == 1e-9
    assert CentralNB(1e-4, method=method, schema=SCHEMA).fit(X, Y).guarantee_.private
