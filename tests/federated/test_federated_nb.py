"""FederatedNB as a scikit-learn estimator: the real protocol behind ``fit``."""

from __future__ import annotations

import math

import numpy as np
import pytest
from sklearn.base import clone

from discreet import FederatedNB, MixedNB, NaiveBayesModel, Schema
from discreet.errors import PrivacyError, PrivacyWarning, SchemaError
from estimator_checks import list_failed_checks
from populations import make_sizes
from schemas import SIZES as SCHEMA


@pytest.mark.slow
@pytest.mark.parametrize("numeric", ["bins", "moments"])
def test_passes_all_estimator_checks_without_noise(numeric):
    assert list_failed_checks(FederatedNB(math.inf, numeric=numeric)) == set()


@pytest.mark.slow
def test_passes_all_estimator_checks_with_noise():
    assert list_failed_checks(FederatedNB(epsilon=5.0, random_state=0)) == set()


def ways(key):
    upright = {"partition": "vertical", "aggregation": "paillier", "key": key}
    return [
        {},
        {"mode": "probabilities"},
        {"aggregation": "paillier", "key": key},
        {"aggregation": "paillier", "key": key, "mode": "probabilities"},
        {"numeric": "moments", "providers": 5},
        {"providers": "rows"},
        {**upright, "providers": 2},
        {**upright, "mode": "probabilities", "numeric": "moments"},
        {"partition": "vertical", "numeric": "moments"},
        {"partition": "vertical", "aggregation": "masks", "mode": "probabilities"},
    ]


@pytest.mark.slow
@pytest.mark.parametrize("way", range(10))
def test_without_noise_every_way_gives_the_model_of_the_whole_table(way, small_key):
    """However the table is dealt out, the counts add up to those of the whole table."""
    X, y = make_sizes(120)
    options = {"bins": 8, **ways(small_key)[way]}
    numeric = options.get("numeric", "bins")
    whole = FederatedNB(math.inf, providers=2, bins=8, schema=SCHEMA, numeric=numeric).fit(X, y)
    nb = FederatedNB(math.inf, schema=SCHEMA, **options).fit(X, y)
    close = 1e-3 if options.get("mode") == "probabilities" else 1e-9
    np.testing.assert_allclose(nb.predict_proba(X), whole.predict_proba(X), atol=close)
    assert (nb.statistics_ is None) == (nb.class_count_ is None) == ("mode" in options)
    assert not nb.guarantee_.is_private


def test_without_noise_categories_give_what_mixed_nb_gives():
    X, y = make_sizes(300)
    schema = Schema([SCHEMA["colour"]], "class", [0, 1])
    ours = FederatedNB(math.inf, schema=schema).fit(X[["colour"]], y)
    same = MixedNB(schema=schema).fit(X[["colour"]], y)
    np.testing.assert_allclose(
        ours.predict_proba(X[["colour"]]), same.predict_proba(X[["colour"]]), atol=1e-9
    )


@pytest.mark.slow
def test_hundreds_of_people_each_a_provider():
    X, y = make_sizes(200)
    nb = FederatedNB(2.0, providers="rows", schema=SCHEMA, random_state=1).fit(X, y)
    assert len(nb.manifest_.providers) == 200
    variance = next(iter(nb.manifest_.block_noises.values())).variance
    alone = FederatedNB(2.0, providers=2, schema=SCHEMA, random_state=1).fit(X, y)
    assert variance < 0.51 * next(iter(alone.manifest_.block_noises.values())).variance


def test_learns_under_a_promise_that_says_what_it_rests_on():
    X, y = make_sizes(3000)
    nb = FederatedNB(1.0, schema=SCHEMA).fit(X, y)
    assert nb.score(X, y) > 0.8
    assert nb.inconsistent_ == ()
    assert nb.guarantee_.epsilon == 1.0
    assert nb.guarantee_.is_private
    assert "simulated in one process" in str(nb.guarantee_)
    again = NaiveBayesModel.from_json(nb.model_.to_json())
    assert again.guarantee == nb.guarantee_
    assert clone(nb).get_params() == nb.get_params()


@pytest.mark.parametrize("mode", ["counts", "probabilities"])
def test_vertical_masks_learn_and_say_who_must_not_work_together(mode):
    X, y = make_sizes(3000)
    nb = FederatedNB(2.0, partition="vertical", mode=mode, schema=SCHEMA).fit(X, y)
    assert nb.score(X, y) > 0.8
    assert nb.guarantee_.is_private
    assert nb.manifest_.paillier is None
    assert "deals the masks" in str(nb.guarantee_)


def test_a_seed_repeats_itself_and_ends_the_promise():
    X, y = make_sizes(300)
    one, two = (FederatedNB(1.0, schema=SCHEMA, random_state=3).fit(X, y) for _ in range(2))
    np.testing.assert_array_equal(one.predict_proba(X), two.predict_proba(X))
    assert one.guarantee_.simulated
    assert not one.guarantee_.is_private


def test_without_a_schema_it_warns_of_the_leak():
    X, y = make_sizes(200)
    with pytest.warns(PrivacyWarning, match="FederatedNB"):
        nb = FederatedNB(1.0).fit(X, y)
    assert "NOT KEPT" in str(nb.guarantee_)


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"epsilon": 0}, "epsilon"),
        ({"epsilon": -1.0}, "epsilon"),
        ({"providers": 0}, "providers"),
        ({"providers": 1}, "at least 2"),
        ({"providers": "people"}, "providers"),
        ({"numeric": "floats"}, "numeric"),
        ({"partition": "diagonal"}, "partition"),
        ({"partition": "vertical", "providers": "rows"}, "columns"),
        ({"partition": "vertical", "aggregation": "sums"}, "aggregation"),
        ({"tolerated": 3}, "missing or colluding"),
        ({"mode": "open"}, "mode"),
    ],
)
def test_what_cannot_be_run_is_refused(options, match):
    X, y = make_sizes(50)
    with pytest.raises((PrivacyError, SchemaError), match=match):
        FederatedNB(schema=SCHEMA, **options).fit(X, y)


def test_a_key_that_no_aggregation_uses_is_refused(small_key):
    with pytest.raises(SchemaError, match="key is a Paillier key, which masks do not use"):
        FederatedNB(key=small_key, schema=SCHEMA).fit(*make_sizes(50))
