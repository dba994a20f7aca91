"""estimate is the only way from Statistics to a model, and what was chosen travels in them."""

import json
import math
from dataclasses import replace

import numpy as np
import pytest

from discreet import (
    Categorical,
    CentralNB,
    FederatedNB,
    LocalNB,
    MixedNB,
    Numeric,
    Schema,
    Statistics,
    SurveyNB,
    estimate,
)
from discreet.datasets import make_mortgage
from discreet.errors import EstimationError, FormatError
from discreet.schema.projection import PCA
from discreet.statistics.scoring import Scoring

PEOPLE = make_mortgage(1500, missing=0.05)
MISSING = replace(PEOPLE.schema, missing="category")
FEW = make_mortgage(400)

CENTRAL = [
    {"method": method, **more}
    for method in ("histogram", "moments", "global", "global-published", "smooth", "trimmed")
    for more in (
        {"epsilon": 1.0},
        {"epsilon": 0.05, "schema": MISSING},
        {"epsilon": 20.0, "delta": 1e-6},
        {"epsilon": math.inf, "likelihood": "truncated"},
        {"epsilon": 3.0, "class_prior": True},
    )
] + [{"method": "histogram", "epsilon": 30.0, "allocation": {"age": 3}}]


def same_model(nb):
    """Whether estimate makes the estimator's model, also of statistics that were in a file."""
    made = nb.model_.to_json()
    travelled = Statistics.from_json(nb.statistics_.to_json())
    return estimate(nb.statistics_).to_json() == made == estimate(travelled).to_json()


@pytest.mark.slow
@pytest.mark.parametrize("options", CENTRAL, ids=str)
def test_central_statistics_make_the_central_model(options):
    options = {"schema": PEOPLE.schema, **options}
    if options.get("class_prior"):
        classes = len(PEOPLE.schema.classes)
        options["class_prior"] = np.arange(1, classes + 1) / np.arange(1, classes + 1).sum()
    nb = CentralNB(random_state=3, **options).fit(PEOPLE.X, PEOPLE.y)
    assert same_model(nb)


@pytest.mark.slow
def test_a_privately_chosen_scoring_travels():
    """Twin: with the choice removed from the statistics, the model is another one."""
    chosen = []
    for seed in range(12):
        nb = CentralNB(epsilon=2.0, schema=PEOPLE.schema, random_state=seed)
        nb.fit(PEOPLE.X, PEOPLE.y)
        assert same_model(nb)
        if nb.statistics_.scoring != Scoring("log-ratios"):
            chosen.append(nb.statistics_.scoring)
            forgotten = replace(nb.statistics_, scoring=Scoring("log-ratios"))
            assert estimate(forgotten).to_json() != nb.model_.to_json()
    assert len(set(chosen)) >= 2, (
        "the mechanism chose something else than the default at least once"
    )


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"postprocess": "norm-sub"},
        {"postprocess": "paper", "bins": 4},
        {"numeric": "gaussian", "likelihood": "truncated"},
        {"epsilon": math.inf},
        {"waves": 2},
        {"projection": PCA(2), "public_sample": True},
    ],
    ids=str,
)
def test_local_statistics_make_the_local_model(options):
    schema = FEW.schema
    if options.get("public_sample"):
        options = {**options, "public_sample": (FEW.X[:200], FEW.y[:200])}
    nb = LocalNB(**{"epsilon": 2.0, "schema": schema, "random_state": 0, **options})
    assert same_model(nb.fit(FEW.X, FEW.y))


@pytest.mark.parametrize("postprocess", [None, "none", "norm-cut", "bayes", "log-ratios"])
def test_survey_statistics_make_the_survey_model(postprocess):
    nb = SurveyNB(0.8, groups="each", schema=FEW.schema, bins=3, postprocess=postprocess)
    assert same_model(nb.set_params(random_state=0).fit(FEW.X, FEW.y))


@pytest.mark.parametrize("numeric", ["bins", "moments"])
@pytest.mark.parametrize("epsilon", [1.0, math.inf])
def test_federated_statistics_make_the_federated_model(numeric, epsilon):
    nb = FederatedNB(epsilon, numeric=numeric, schema=FEW.schema, random_state=0)
    assert same_model(nb.fit(FEW.X, FEW.y))


def test_a_federated_model_of_one_class_is_made_on_the_same_road():
    schema = Schema([Numeric("x", 0, 1), Categorical("z", ["a", "b"])], "y", ["only"])
    rows = np.array([[0.5, "a"]] * 40, dtype=object)
    nb = FederatedNB(1.0, schema=schema, random_state=0).fit(rows, ["only"] * 40)
    assert same_model(nb)
    assert all(np.isfinite(factor.log_probability).all() for factor in nb.model_.factors)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"alpha": 0.25, "var_smoothing": 1e-3, "class_prior": [0.2, 0.8]},
        {"schema": FEW.schema, "likelihood": "truncated"},
        {"missing": "category"},
    ],
    ids=str,
)
def test_exact_statistics_make_the_exact_model(options):
    nb = MixedNB(**options).fit(FEW.X, FEW.y)
    assert same_model(nb)
    half = MixedNB(**options)
    for rows in (slice(150), slice(150, None)):
        half.partial_fit(FEW.X[rows], FEW.y[rows], classes=nb.classes_)
    assert same_model(half)


def test_what_estimate_is_told_replaces_what_travels():
    nb = MixedNB(alpha=5.0, schema=FEW.schema).fit(FEW.X, FEW.y)
    told = estimate(nb.statistics_, smoothing=0.5, prior=[0.5, 0.5])
    assert told.to_json() != nb.model_.to_json()
    other = MixedNB(alpha=0.5, class_prior=[0.5, 0.5], schema=FEW.schema).fit(FEW.X, FEW.y)
    assert told.to_json() == other.model_.to_json()


def test_log_ratios_stand_beside_densities_of_the_features_that_come_as_moments():
    nb = CentralNB(5.0, method="moments", schema=PEOPLE.schema, random_state=0)
    found = nb.fit(PEOPLE.X, PEOPLE.y).statistics_
    names = (next(iter(found.tables)), next(iter(found.moments)))
    chosen = replace(found, scoring=Scoring("log-ratios", features=names))
    assert {factor.name for factor in estimate(chosen).factors} == set(names)
    everything = estimate(found, "log-ratios")
    assert {factor.name for factor in everything.factors} == set(PEOPLE.schema.names)


def test_groups_that_chose_differently_are_added_without_a_choice():
    one = MixedNB(schema=FEW.schema).fit(FEW.X, FEW.y).statistics_
    two = replace(one, scoring=replace(one.scoring, smoothing=3.0))
    assert (one + one).scoring == one.scoring
    assert (one + two).scoring == Scoring()


def test_older_statistics_and_wrong_choices_are_refused():
    statistics = MixedNB(schema=FEW.schema).fit(FEW.X, FEW.y).statistics_
    body = json.loads(statistics.to_json())
    with pytest.raises(FormatError, match="make the statistics file again with this release"):
        Statistics.from_json(json.dumps(body | {"version": 1}))
    for change in ({"postprocess": "best"}, {"bins": "x"}, {"beta": -1.0}, {"smoothing": math.nan}):
        with pytest.raises(EstimationError, match=next(iter(change))):
            replace(statistics.scoring, **change)
    for change in ({"features": ("height",)}, {"prior": (1.0,)}):
        with pytest.raises(EstimationError):
            replace(statistics, scoring=replace(statistics.scoring, **change))
