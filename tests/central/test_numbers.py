"""Means and variances of the methods with a density: right where there is little noise.

With an epsilon this large the noise is far below the truth, so that what is left are the method's
own mistakes.
"""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest

from discreet import CentralNB, Numeric, Schema, estimate
from discreet.central import selection
from discreet.statistics.statistics import Moments, Statistics

METHODS = ["moments", "global", "smooth", "trimmed"]
EPSILON = 1e4


def fitted(method, x, y, lower, upper, epsilon=EPSILON, **options):
    schema = Schema([Numeric("x", lower, upper)], "c", [0, 1], outliers="clip")
    nb = CentralNB(epsilon, method=method, schema=schema, random_state=0, **options)
    return nb.fit(np.asarray(x)[:, None], y)


def two_classes(first, second, n=20_000):
    """Normal values of two classes, by (mean, deviation)."""
    rng = np.random.default_rng(1)
    y = np.arange(n) % 2
    mean, deviation = np.array([first, second])[y].T
    return rng.normal(mean, deviation), y


@pytest.mark.parametrize("method", METHODS)
def test_a_small_variance_far_from_the_middle_is_found(method):
    """Not the square of the mean's distance from the middle, and no floor of the range."""
    x, y = two_classes((80, 1.0), (82, 1.0))
    factor = fitted(method, x, y, 0, 100).model_.factors[0]
    np.testing.assert_allclose(factor.mean, [80, 82], atol=0.05)
    np.testing.assert_allclose(factor.variance, 1.0, rtol=0.05)


@pytest.mark.parametrize("method", METHODS)
def test_classes_may_have_very_different_variances(method):
    x, y = two_classes((50, 0.5), (50, 10.0))
    factor = fitted(method, x, y, 0, 100).model_.factors[0]
    np.testing.assert_allclose(factor.variance, [0.25, 100.0], rtol=0.06)


@pytest.mark.parametrize("method", METHODS)
def test_equal_values_leave_the_floor_of_the_public_grid(method):
    y = np.arange(2000) % 2
    variance = fitted(method, 20.0 + 40.0 * y, y, 0, 100).model_.factors[0].variance
    step = 2.0**-9  # 100 in at most 65536 steps
    assert (variance >= (step / 6) ** 2).all()
    assert (variance < 0.01).all()


@pytest.mark.parametrize("method", METHODS)
def test_under_much_noise_no_variance_is_tiny(method):
    """The floor follows the noise: a density would be merciless otherwise."""
    x, y = two_classes((50, 1.0), (52, 1.0), n=60)
    for seed in range(10):
        schema = Schema([Numeric("x", 0, 100)], "c", [0, 1], outliers="clip")
        nb = CentralNB(0.5, method=method, schema=schema, random_state=seed).fit(x[:, None], y)
        assert (nb.model_.factors[0].variance > 1.0).all()


def test_the_floor_of_known_noise_falls_with_it():
    """A true variance of 1 on [0, 100], from sums that carry less and less noise."""
    feature = Numeric("x", 0, 100)
    schema = Schema([feature], "c", [0, 1])
    counts = np.full(2, 10_000.0)
    found = []
    for noise in (1e12, 1e8, 1e4, 1e-2):
        spread = np.repeat([[1.0], [1e-6], [noise]], 2, axis=1)
        sums = (counts, counts * 0.0, counts * 1.0)
        one = Moments(feature, *sums, counts * 0, np.full(2, 50.0), 1.0, spread)
        statistics = Statistics(schema, counts, np.ones(2), moments={"x": one})
        found.append(estimate(statistics, "none").factors[0].variance[0])
    assert found == sorted(found, reverse=True)
    assert found[-1] == pytest.approx(1.0, rel=1e-3)
    assert found[1] < 1.65  # noise of a deviation of 1, and no pull towards a floor of the range


@pytest.mark.slow
@pytest.mark.parametrize("method", ["histogram", *METHODS])
@pytest.mark.parametrize("epsilon", [1.0, EPSILON])
def test_numbers_far_from_zero_give_the_same_model(method, epsilon, tmp_path):
    """Seconds since 1970: no difference of two large squares has any digits left."""
    x, y = two_classes((20, 4.0), (40, 4.0), n=4000)
    x = np.clip(np.round(x * 2**16) / 2**16, 0, 60)
    base, row = 1.7e9, np.linspace(0, 60, 41)[:, None]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        here = fitted(method, x, y, 0, 60, epsilon)
        there = fitted(method, x + base, y, base, base + 60, epsilon)
        near, far = here.predict_proba(row), there.predict_proba(row + base)
    assert np.isfinite(far).all()
    if method != "histogram":  # whose cells may be others
        np.testing.assert_allclose(far, near, atol=1e-4)
    assert there.score(x[:, None] + base, y) > 0.98
    frame = pd.DataFrame({"x": x + base, "c": y})
    frame.to_parquet(tmp_path / "rows.parquet")
    frame.to_csv(tmp_path / "rows.csv", index=False)
    for file in ("rows.parquet", "rows.csv"):
        options = {"schema": there.schema_, "method": method, "random_state": 0}
        if method == "histogram":  # the engine throws coins of its own for the choice of scoring
            options["selection"] = False
            there = CentralNB(epsilon, **options).fit(frame[["x"]], y)
        again = CentralNB(epsilon, **options).fit_source(tmp_path / file)
        assert again.model_.to_json() == there.model_.to_json()


@pytest.mark.parametrize("candidate", range(4))
def test_every_scoring_of_numbers_far_from_zero_is_the_same(monkeypatch, candidate):
    """Among them is a normal density fitted to the bins."""
    monkeypatch.setattr(
        selection, "sample_exponential_mechanism", lambda quality, epsilon, random: candidate
    )
    x, y = two_classes((20, 4.0), (40, 4.0), n=4000)
    x, row = np.clip(x, 0, 60), np.linspace(0, 60, 41)[:, None]
    found = [
        fitted("histogram", x + base, y, base, base + 60, 5.0, bins=16).predict_proba(row + base)
        for base in (0.0, 1.7e9)
    ]
    np.testing.assert_allclose(found[1], found[0], atol=1e-4)
