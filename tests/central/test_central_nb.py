"""CentralNB as a scikit-learn estimator: what it accepts, refuses, warns about and promises."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest

from discreet import (
    Categorical,
    CentralNB,
    LocalNB,
    MixedNB,
    NaiveBayesModel,
    Numeric,
    Schema,
    Statistics,
)
from discreet.central.budget import Budget
from discreet.central.smooth import SmoothNoiseBudget
from discreet.errors import PrivacyError, SchemaError
from discreet.mechanisms.additive import Cauchy, Gaussian, LaplaceLogNormal, StudentT
from discreet.privacy.ledger import MemoryLedger
from discreet.schema.cells import Cells
from estimator_checks import list_failed_checks
from populations import make_sizes
from schemas import SIZES as SCHEMA

METHODS = ["histogram", "moments", "global", "smooth", "trimmed"]


WEIGHTS = "sample_weight is refused without a public max_weight: one person could count any amount"
EXCEPTED = {
    "check_sample_weights_pandas_series": WEIGHTS,
    "check_sample_weights_not_an_array": WEIGHTS,
    "check_sample_weights_list": WEIGHTS,
    "check_sample_weights_shape": WEIGHTS,
    "check_sample_weights_not_overwritten": WEIGHTS,
    "check_sample_weight_equivalence_on_dense_data": WEIGHTS,
    "check_classifiers_one_label_sample_weights": WEIGHTS,
}


@pytest.mark.slow
def test_passes_all_estimator_checks_at_infinity():
    assert list_failed_checks(CentralNB(math.inf)) == set()


@pytest.mark.slow
def test_passes_the_estimator_checks_with_a_promise_but_for_weights():
    assert list_failed_checks(CentralNB(epsilon=5.0, random_state=0)) <= EXCEPTED.keys()


def test_infinity_without_choices_and_corrections_equals_mixed_nb_on_the_bins():
    X, y = make_sizes(800)
    nb = CentralNB(math.inf, selection=False, corrections=False, schema=SCHEMA).fit(X, y)
    binned = {}
    for name, table in nb.statistics_.tables.items():
        binned[name] = table.cells.encode_column(X[name]).astype(object)
        if table.cells.missing_index is not None:
            binned[name] = np.where(binned[name] == table.cells.missing_index, None, binned[name])
    domains = [
        Categorical(name, range(table.cells.value_count))
        for name, table in nb.statistics_.tables.items()
    ]
    same = MixedNB(alpha=0.0, schema=Schema(domains, "class", [0, 1]))
    same.fit(pd.DataFrame(binned), y)
    np.testing.assert_allclose(
        nb.predict_log_proba(X), same.predict_log_proba(pd.DataFrame(binned)), atol=1e-9
    )
    assert not nb.guarantee_.is_private


@pytest.mark.parametrize("method", METHODS)
def test_every_method_learns_mixed_columns_with_missing_values(method):
    X, y = make_sizes()
    for missing in ("skip", "category"):
        schema = Schema(SCHEMA.features, "class", [0, 1], missing, "clip")
        nb = CentralNB(20.0, method=method, schema=schema, random_state=1).fit(X, y)
        assert nb.score(X, y) > 0.8
        assert NaiveBayesModel.from_json(nb.model_.to_json()).guarantee == nb.guarantee_
        assert Statistics.from_json(nb.statistics_.to_json()).guarantee == nb.guarantee_


@pytest.mark.parametrize("method", METHODS)
def test_a_larger_epsilon_comes_close_to_no_noise(method):
    X, y = make_sizes()
    near = CentralNB(1e4, method=method, schema=SCHEMA, random_state=0).fit(X, y)
    limit = CentralNB(math.inf, method=method, schema=SCHEMA).fit(X, y)
    assert near.score(X, y) == pytest.approx(limit.score(X, y), abs=0.03)


@pytest.mark.parametrize("law", [Cauchy(), StudentT(4), Gaussian(), LaplaceLogNormal(0.5)])
def test_smooth_noise_of_every_kind(law):
    X, y = make_sizes()
    pure = isinstance(law, Cauchy | StudentT)
    delta = 0.0 if pure else 1e-5
    nb = CentralNB(30.0, delta=delta, method="smooth", noise=law, schema=SCHEMA, random_state=0)
    nb.fit(X, y)
    assert nb.score(X, y) > 0.6
    assert (nb.guarantee_.rho is not None) == isinstance(law, LaplaceLogNormal)
    assert sum(c.delta for c in nb.guarantee_.charges) <= delta
    if not pure:
        with pytest.raises(PrivacyError, match="without a delta"):
            CentralNB(1.0, method="smooth", noise=law, schema=SCHEMA).fit(X, y)


def test_a_scale_is_searched_once_for_a_share_and_anew_for_another(monkeypatch):
    searched, real = [], Gaussian.calibrate

    def calibrate(law, epsilon, delta=0.0, **more):
        searched.append((epsilon, delta))
        return real(law, epsilon, delta, **more)

    monkeypatch.setattr(Gaussian, "calibrate", calibrate)
    spender = SmoothNoiseBudget(Gaussian(), Budget(1.0, 1e-6, basic_composition=True))
    shares = [Fraction(1, 10), Fraction(1, 5), Fraction(1, 10)]
    found = [spender.spend(f"mean {k}", share) for k, share in enumerate(shares)]
    assert len(searched) == 2
    assert found[0] == found[2]
    below = float(shares[1]) * (1 - 1e-12)
    assert found[1] == real(Gaussian(), below, spender.budget.compute_delta_share(shares[1]))
    assert spender.budget.remaining == 1 - sum(shares)  # each was paid


@pytest.mark.filterwarnings("ignore:rows of this table were fitted before")
def test_delta_helps_where_there_are_many_features_and_is_not_used_where_there_are_few():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 500)
    for count, helps in ((3, False), (40, True)):
        X = rng.integers(0, 2, (500, count)).astype(object)
        features = [Categorical(f"x{i}", [0, 1], optional=False) for i in range(count)]
        schema = Schema(features, "class", [0, 1])
        pure = CentralNB(1.0, schema=schema, selection=False).fit(X, y)
        loose = CentralNB(1.0, delta=1e-6, schema=schema, selection=False).fit(X, y)
        variance = [nb.statistics_.tables["x0"].variances[0, 0] for nb in (pure, loose)]
        assert (variance[1] < 0.9 * variance[0]) == helps
        assert (loose.guarantee_.delta == 1e-6) == helps
        assert (loose.guarantee_.rho is not None) == helps


@pytest.mark.filterwarnings("ignore:rows of this table were fitted before")
def test_a_ledger_of_rhos_pays_for_more_trainings_and_is_charged_what_they_hold_as():
    rng = np.random.default_rng(0)
    X, y = rng.integers(0, 2, (100, 12)).astype(object), rng.integers(0, 2, 100)
    features = [Categorical(f"x{i}", [0, 1], optional=False) for i in range(12)]
    options = {"delta": 1e-6, "schema": Schema(features, "class", [0, 1]), "selection": False}
    paid = []
    for ledger in (MemoryLedger(3.0, 1e-5), MemoryLedger(3.0, 1e-5, "concentrated")):
        for fit_count in range(20):
            try:
                nb = CentralNB(1.0, budget=ledger, **options).fit(X, y)
            except PrivacyError:
                paid.append(fit_count)
                break
            assert ledger.read().entries[-1].rho == nb.guarantee_.rho
    assert paid == [3, 7]


def test_a_ledger_of_rhos_pays_for_noise_that_needs_no_delta():
    """With eight features, an allocation and delta 1e-6, Laplace noise is less."""
    rng = np.random.default_rng(0)
    X, y = rng.integers(0, 2, (100, 8)).astype(object), rng.integers(0, 2, 100)
    schema = Schema(
        [Categorical(f"x{i}", [0, 1], optional=False) for i in range(8)], "class", [0, 1]
    )
    ledger = MemoryLedger(10.0, 1e-5, "concentrated")
    nb = CentralNB(1.0, delta=1e-6, schema=schema, allocation={"x0": 1}, budget=ledger).fit(X, y)
    assert nb.guarantee_.delta == 0
    assert ledger.read().entries[-1].rho == pytest.approx(0.5)


@pytest.mark.filterwarnings("ignore:rows of this table were fitted before")
def test_a_seed_ends_the_promise_and_the_cryptographic_source_keeps_it():
    X, y = make_sizes(300)
    seeded = [CentralNB(1.0, schema=SCHEMA, random_state=3).fit(X, y) for _ in range(2)]
    assert seeded[0].model_.to_json() == seeded[1].model_.to_json()
    assert seeded[0].guarantee_.simulated
    assert not seeded[0].guarantee_.is_private
    free = [CentralNB(1.0, schema=SCHEMA).fit(X, y) for _ in range(2)]
    assert free[0].model_.to_json() != free[1].model_.to_json()
    assert free[0].guarantee_.is_private


def test_weights_need_a_public_bound_and_then_scale_the_noise():
    X, y = make_sizes(2000)
    weight = np.linspace(0, 3, len(y))
    with pytest.raises(PrivacyError, match="public max_weight"):
        CentralNB(1.0, schema=SCHEMA).fit(X, y, sample_weight=weight)
    with pytest.raises(PrivacyError, match="above max_weight"):
        CentralNB(1.0, schema=SCHEMA, max_weight=2.0).fit(X, y, sample_weight=weight)
    with pytest.raises(PrivacyError, match="only method='histogram'"):
        CentralNB(1.0, schema=SCHEMA, max_weight=3.0, method="smooth").fit(X, y, weight)
    options = {"schema": SCHEMA, "random_state": 0, "selection": False, "bins": 8}
    heavy = CentralNB(10.0, max_weight=30.0, **options).fit(X, y, sample_weight=weight)
    light = CentralNB(10.0, max_weight=3.0, **options).fit(X, y, sample_weight=weight)
    ratio = heavy.statistics_.variances / light.statistics_.variances
    np.testing.assert_allclose(ratio, 100.0, rtol=1e-3)  # ten times the noise
    assert light.class_count_.sum() == pytest.approx(weight.sum(), rel=0.02)
    assert light.score(X, y) > 0.8


def test_partial_fit_is_refused_with_the_reason():
    nb = CentralNB()
    assert not hasattr(nb, "partial_fit")
    with pytest.raises(PrivacyError, match="spend epsilon again"):
        nb.partial_fit  # noqa: B018


def refused_by_its_frequencies(y, prior):
    """The known-bad twin: a look at exact class frequencies that decides whether a fit runs."""
    return np.abs(np.bincount(y, minlength=2) / len(y) - prior).max() < 0.5 / len(y)


@pytest.mark.filterwarnings("ignore:rows of this table were fitted before")
def test_a_class_prior_is_public_and_never_compared_with_the_data():
    """One person more or less must not decide whether a fit is refused: no noise covers that."""
    X, y = make_sizes(500)
    y[:] = np.arange(500) % 2
    prior = [0.5, 0.5]  # honest, and also what these classes happen to be
    paths = []
    for X_, y_ in ((X, y), (X.iloc[1:], y[1:]), (X.iloc[2:], y[2:])):
        nb = CentralNB(1.0, schema=SCHEMA, class_prior=prior).fit(X_, y_)
        paths.append(refused_by_its_frequencies(y_, prior))
        assert "the class prior was known without the data" in nb.guarantee_.assumptions
        np.testing.assert_allclose(nb.class_prior_, 0.5)
    assert paths == [True, False, True]  # the twin tells neighbouring tables apart


@pytest.mark.parametrize("prior", [[1.0], [0.5, 0.6], [1.5, -0.5], [0.2, 0.3, 0.5]])
def test_class_priors_must_be_probabilities_of_the_classes(prior):
    with pytest.raises(SchemaError, match=r"class_prior.*one probability for each class"):
        CentralNB(1.0, schema=SCHEMA, class_prior=prior).fit(*make_sizes(50))


def test_bounds_must_be_known():
    loose = Schema([Numeric("x")], "class", [0, 1])
    for method in METHODS:
        with pytest.raises(SchemaError, match="no public bounds"):
            CentralNB(1.0, schema=loose, method=method).fit([[1.0], [2.0]], [0, 1])


@pytest.mark.parametrize("epsilon", [0, -1, math.nan, "1", None, True])
def test_epsilon_must_be_a_positive_number(epsilon):
    with pytest.raises(PrivacyError, match="epsilon"):
        CentralNB(epsilon, schema=SCHEMA).fit(*make_sizes(50))


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"method": "best"}, "method='best'"),
        ({"allocation": {"height": 1}}, "no feature 'height'"),
        ({"allocation": {"size": 0}}, "to positive numbers"),
        ({"allocation": [1, 2]}, "allocation="),
        ({"delta": 1.5}, "delta=1.5"),
    ],
)
def test_wrong_options_are_refused(options, said):
    with pytest.raises((PrivacyError, SchemaError), match=said):
        CentralNB(1.0, schema=SCHEMA, **options).fit(*make_sizes(50))


@pytest.mark.filterwarnings("ignore:rows of this table were fitted before")
def test_bins_are_chosen_or_given():
    X, y = make_sizes()
    nb = CentralNB(1.0, schema=SCHEMA, bins={"size": [0.0, 1.0]}).fit(X, y)
    assert nb.statistics_.tables["size"].cells.edges == (-5.0, 0.0, 1.0, 8.0)
    assert nb.statistics_.tables["n"].cells.value_count > 8  # the rule, finer near zero
    whole = CentralNB(1.0, schema=SCHEMA, bins=5).fit(X, y)
    assert whole.statistics_.tables["size"].cells == Cells.from_schema(SCHEMA, "size", 5)


@pytest.mark.slow
@pytest.mark.parametrize("method", ["histogram", "moments", "trimmed"])
def test_files_and_arrays_give_the_same_model(tmp_path, method):
    X, y = make_sizes(1500)
    X["n"] = X["n"].fillna(3.0)
    frame = X.assign(**{"class": y})
    frame.to_parquet(tmp_path / "rows.parquet")
    frame.to_csv(tmp_path / "rows.csv", index=False)
    options = {"method": method, "schema": SCHEMA, "random_state": 5, "selection": False}
    here = CentralNB(2.0, **options).fit(X, y)
    for source in (tmp_path / "rows.parquet", str(tmp_path / "rows.csv"), frame):
        there = CentralNB(2.0, **options).fit_source(source)
        assert there.model_.to_json() == here.model_.to_json()
    np.testing.assert_array_equal(there.predict(X), here.predict(X))
    with pytest.raises(SchemaError, match="needs a schema"):
        CentralNB(2.0).fit_source(frame)


def test_the_choice_of_scoring_also_works_on_streamed_rows(tmp_path):
    X, y = make_sizes(3000)
    X.assign(**{"class": y}).to_parquet(tmp_path / "rows.parquet")
    nb = CentralNB(5.0, schema=SCHEMA, random_state=0).fit_source(tmp_path / "rows.parquet")
    assert "choice of scoring" in [charge.name for charge in nb.guarantee_.charges]
    assert nb.score(X, y) > 0.85


@pytest.mark.parametrize("estimator", [CentralNB, LocalNB])
def test_bins_of_a_feature_that_is_not_there_are_refused(estimator):
    schema = Schema([Numeric("age", 0, 100)], "y", [0, 1])
    estimator(1.0, schema=schema, bins={"age": 4}).fit([[20.0], [40.0]], [0, 1])
    with pytest.raises(SchemaError, match="'agee' is not a feature"):
        estimator(1.0, schema=schema, bins={"agee": 4}).fit([[20.0], [40.0]], [0, 1])


@pytest.mark.filterwarnings("ignore:invalid value:RuntimeWarning")  # of a sum in scikit-learn
@pytest.mark.parametrize("method", ["histogram", "moments", "global", "smooth", "trimmed"])
@pytest.mark.parametrize(
    ("bounds", "says"),
    [
        ((0.0, 5e-324), "too close together"),
        ((0.0, 1e-320), "too close together"),
        ((-1e-310, 1e-310), "too close together"),
        ((0.0, 1e-308), "too close together"),
        ((1.0, 1.0 + 2**-50), "too close together"),
        ((0.0, 1.7e308), "too far apart"),
        ((-1.7e308, 1.7e308), "too far apart"),
    ],
)
def test_bounds_that_floats_cannot_cut_are_refused_unpaid(bounds, says, method):
    schema = Schema([Numeric("a", *bounds)], "c", [0, 1])
    budget = MemoryLedger(9.0)
    nb = CentralNB(schema=schema, method=method, budget=budget)
    with pytest.raises(SchemaError, match=f"a: the public bounds .* are {says}.*another unit"):
        nb.fit(np.array([[bounds[0]], [bounds[1]]] * 20), [0, 1] * 20)
    assert budget.read().entries == ()


@pytest.mark.filterwarnings("ignore:rows of this table were fitted before")
@pytest.mark.parametrize("bounds", [(0.0, 1e-59), (-1e59, 1e59), (1.7e9, 1.7e9 + 1)])
@pytest.mark.parametrize("method", ["histogram", "moments", "global", "smooth", "trimmed"])
def test_small_and_large_bounds_are_trained_with(bounds, method):
    schema = Schema([Numeric("a", *bounds), Numeric("b", *bounds)], "c", [0, 1])
    for people in (20, 4000):
        X = np.tile([[bounds[0]], [bounds[1]]], (people // 2, 2))
        nb = CentralNB(20.0, schema=schema, method=method).fit(X, [0, 1] * (people // 2))
        assert np.isfinite(nb.predict_proba(X[:2])).all()


@pytest.mark.parametrize("bound", [5e-324, 1e-320, 1e300, 1.7e308])
def test_a_largest_weight_that_floats_cannot_square_is_refused(bound):
    schema = Schema([Numeric("a", 0, 1)], "c", [0, 1])
    nb = CentralNB(schema=schema, max_weight=bound)
    with pytest.raises(PrivacyError, match=r"max_weight.*a number from 1e-100 to 1e100"):
        nb.fit([[0.5]] * 20, [0, 1] * 10, sample_weight=[min(bound, 1.0)] * 20)


@pytest.mark.parametrize("bound", [1e-100, 1e100])
@pytest.mark.parametrize("epsilon", [0.01, 100.0])
def test_small_and_large_weights_are_trained_with(bound, epsilon):
    schema = Schema([Numeric("a", 0, 1)], "c", [0, 1])
    nb = CentralNB(epsilon, schema=schema, max_weight=bound)
    nb.fit([[0.2], [0.8]] * 20, [0, 1] * 20, sample_weight=[bound] * 40)
    assert np.isfinite(nb.predict_proba([[0.5]])).all()
