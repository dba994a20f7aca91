"""Numbers in noisy bins: neighbours help, and noise alone says nothing."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize

from discreet.estimation import logistic_normal, smoothing
from discreet.estimation.logistic_normal import (
    STRENGTH_GRID,
    build_table_prior,
    compute_softmax,
    find_modes,
)
from discreet.estimation.shrinkage import shrink_tables
from discreet.estimation.smoothing import smooth_tables

PRIOR = np.array([0.6, 0.4])
BINS = 8


def hills(shift=1.5):
    """P(bin | class): two overlapping hills."""
    places = np.arange(BINS)
    found = np.exp(-0.5 * ((places - np.array([[3.5 - shift], [3.5 + shift]])) / 1.5) ** 2)
    return found / found.sum(axis=1, keepdims=True)


def noisy(conditional, noise, seed, people=1000, features=6):
    random = np.random.default_rng(seed)
    joint = PRIOR[:, None] * conditional
    tables = {}
    for i in range(features):
        counts = people * joint + random.normal(0, noise, joint.shape)
        tables[f"x{i}"] = counts, np.full(joint.shape, noise**2)
    return tables


def fit(tables, people=1e9, bins=BINS):
    every = dict.fromkeys(tables, people)
    return smooth_tables(
        tables, dict.fromkeys(tables, bins), PRIOR, every, dict.fromkeys(tables, 1.0)
    )


def log_odds(conditional):
    return np.log(conditional[0] / conditional[1])


def error(found, truth):
    weight = PRIOR @ truth
    return np.mean([weight @ (log_odds(one) - log_odds(truth)) ** 2 for one in found.values()])


def test_without_noise_the_shares_come_back():
    truth = hills(1.0)
    found = fit({"x": (1000 * PRIOR[:, None] * truth, np.full(truth.shape, 1e-6))})["x"]
    np.testing.assert_allclose(found, truth, atol=1e-3)


def test_everything_is_a_probability_even_where_noise_swamps():
    found = fit(noisy(hills(), 3000.0, 0), people=50.0)
    for one in found.values():
        assert (one > 0).all()
        np.testing.assert_allclose(one.sum(axis=1), 1.0)


def test_noise_alone_says_nothing_about_the_class():
    flat = np.full((2, BINS), 1 / BINS)
    worst = [
        np.abs(log_odds(one)).max()
        for seed in range(5)
        for one in fit(noisy(flat, 10.0, seed, features=30)).values()
    ]
    assert np.median(worst) < 0.2
    unshrunk = [np.abs(log_odds(np.maximum(t, 1))).max() for t, _ in noisy(flat, 10.0, 0).values()]
    assert np.median(unshrunk) > 0.4


def test_neighbours_lessen_the_error_where_bins_lie_in_order(monkeypatch):
    truth, seeds = hills(), range(8)
    ours = np.mean([error(fit(noisy(truth, 20.0, seed)), truth) for seed in seeds])
    people = dict.fromkeys(noisy(truth, 1.0, 0), 1e9)
    alone = dict.fromkeys(people, 1.0)
    plain = np.mean(
        [error(shrink_tables(noisy(truth, 20.0, s), PRIOR, people, alone), truth) for s in seeds]
    )
    for module in (smoothing, logistic_normal):
        monkeypatch.setattr(module, "STRENGTH_GRID", STRENGTH_GRID * [1, 0])
    build_table_prior.cache_clear()
    rough = np.mean([error(fit(noisy(truth, 20.0, seed)), truth) for seed in seeds])
    build_table_prior.cache_clear()
    assert ours < 0.8 * plain
    assert ours < 0.75 * rough


def test_where_neighbours_differ_the_table_is_believed():
    zigzag = np.array([[0.2, 0.05] * 4, [0.05, 0.2] * 4])
    found = fit(noisy(zigzag, 5.0, 1))
    assert error(found, zigzag) < 0.1


def test_the_cell_of_missing_values_is_nobodys_neighbour():
    prior = build_table_prior(2, BINS + 1, BINS)
    margin, smoothest = (
        (root := prior.build_root(point)[0]) @ root.T for point in (0, len(STRENGTH_GRID) - 1)
    )
    kernel = (smoothest - margin) / logistic_normal.BIN_STRENGTHS[-1] ** 2
    np.testing.assert_allclose(kernel[BINS], np.eye(BINS + 1)[BINS], atol=1e-12)
    assert kernel[0, 1] > 0.8


def test_the_mode_is_the_one_a_general_optimiser_finds():
    tables = noisy(hills(), 30.0, 3, features=1)
    counts, variances = tables["x0"]
    joint, noise = counts / counts.sum(), variances / counts.sum() ** 2
    table_prior = build_table_prior(2, BINS, BINS)
    (found,) = find_modes(joint[None], noise[None], np.array([1e12]), PRIOR, table_prior)
    for grid in (0, 6, len(STRENGTH_GRID) - 1):
        root = table_prior.build_root(grid)

        def loss(z, root=root):
            expected = PRIOR[:, None] * compute_softmax(root @ z)
            return float(0.5 * ((joint - expected) ** 2 / noise).sum() + 0.5 * (z**2).sum())

        best = minimize(loss, np.zeros(root.shape[-1]), method="BFGS", options={"gtol": 1e-6})
        wanted = compute_softmax(root @ best.x)
        np.testing.assert_allclose(found.probabilities[grid], wanted, atol=2e-3)


def test_strong_features_are_recognised_together():
    """One feature's noise cannot tell its strength; many of them can."""
    strong, weak = noisy(hills(2.0), 60.0, 5, features=20), noisy(hills(0.1), 60.0, 5, features=20)
    spread = [
        np.mean([np.abs(log_odds(one)).mean() for one in fit(t).values()]) for t in (strong, weak)
    ]
    assert spread[0] > 3 * spread[1]


@pytest.mark.parametrize("classes", [1, 2, 5])
def test_any_number_of_classes(classes):
    counts = np.random.default_rng(0).poisson(20, (classes, BINS)).astype(float)
    prior = np.full(classes, 1 / classes)
    table = {"x": (counts, np.ones_like(counts))}
    found = smooth_tables(table, {"x": BINS}, prior, {"x": 500.0}, {"x": 1.0})["x"]
    assert found.shape == (classes, BINS)
    np.testing.assert_allclose(found.sum(axis=1), 1.0)
