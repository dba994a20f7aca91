"""Class shares under known noise: posterior means, an order that is kept, limits that are right."""

import numpy as np
import pytest
from scipy.stats import gamma, norm

from discreet.estimation.log_ratios import (
    GAMMA_SHAPES,
    GRID_HALF_WIDTH,
    MEAN_TOTAL_GRID,
    estimate_class_shares,
)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("totals", "deviation"),
    [([60, 30, 10], 30), ([180, 80], 75), ([-30, 80], 75), ([20, 5, 0, -4], 6)],
)
def test_shares_are_posterior_means(totals, deviation):
    """Drawn: laws that are equally likely, totals from them, weighed by the noise that is seen."""
    totals = np.array(totals, float)
    rng = np.random.default_rng(0)
    largest = max(totals.max(), 0) + GRID_HALF_WIDTH * deviation
    # for each law, the mean of its class totals given the noisy ones, and how likely these are
    evidence, shares = [], []
    for shape in GAMMA_SHAPES:
        for mean in largest * np.geomspace(*MEAN_TOTAL_GRID):
            drawn = gamma(shape, scale=mean / shape).rvs((20_000, len(totals)), random_state=rng)
            likely = norm(totals, deviation).pdf(drawn)
            found = (likely * drawn).mean(axis=0) / likely.mean(axis=0)
            evidence.append(likely.mean(axis=0).prod())
            shares.append(found / found.sum())
    wanted = np.average(shares, axis=0, weights=evidence)
    found = estimate_class_shares(totals, np.full(len(totals), deviation**2.0))
    np.testing.assert_allclose(found, wanted, atol=0.01)


def test_noise_never_makes_a_tie():
    """Equal shares would leave the decision to features that say nothing."""
    for deviation in (1.0, 30.0, 300.0, 3000.0):
        share = estimate_class_shares(np.array([70.0, 76.0, 17.0]), np.full(3, deviation**2))
        assert share.argmax() == 1
        assert share[1] > share[0] > share[2] > 0
        np.testing.assert_allclose(share.sum(), 1)


def test_more_noise_brings_shares_together():
    apart = [
        np.ptp(estimate_class_shares(np.array([200.0, 86.0]), np.full(2, deviation**2)))
        for deviation in (0.0, 10.0, 50.0, 200.0, 1000.0)
    ]
    assert apart == sorted(apart, reverse=True)
    assert apart[0] == pytest.approx(114 / 286)
    assert apart[-1] < 0.1


def test_many_classes_of_nearly_equal_size_are_believed_to_be_equal():
    """Ten classes show how even they are; two do not: the same noise is believed less."""
    rng = np.random.default_rng(1)
    totals = 160 + rng.normal(0, 40, 10)
    many = estimate_class_shares(totals, np.full(10, 1600.0))
    assert np.std(many) < 0.35 * np.std(totals / totals.sum())


def test_nobody_and_less_than_nobody():
    assert estimate_class_shares(np.zeros(4), np.zeros(4)).tolist() == pytest.approx([0.25] * 4)
    below = estimate_class_shares(np.array([-1e6, -1.0, 5.0]), np.full(3, 4.0))
    assert np.isfinite(np.log(below)).all()
    assert below.argmax() == 2
    # nobody of a class was seen: as rare as one person of all
    np.testing.assert_allclose(
        estimate_class_shares(np.array([1e6, 0.0]), np.full(2, 1e-6))[1], 1e-6, rtol=1e-3
    )
