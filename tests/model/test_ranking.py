"""Areas under curves agree with those of exact scores, and their intervals cover."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import norm
from sklearn import metrics

from discreet.model.ranking import (
    compute_auc,
    compute_average_precision,
    compute_log_odds,
    count_ranks,
)


def draw_scores(rows: int, classes: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Joint scores that know something of the class, and the class."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, classes, rows)
    scores = rng.normal(0, 2, (rows, classes))
    scores[np.arange(rows), truth] += 2
    return scores, truth


@pytest.mark.parametrize("classes", [2, 3, 7])
def test_areas_are_those_of_exact_scores(classes: int) -> None:
    scores, truth = draw_scores(3000, classes)
    log_odds, ranks = compute_log_odds(scores), count_ranks(scores, truth)
    for position, class_index in enumerate([1] if classes == 2 else range(classes)):
        is_own = truth == class_index
        auc, _ = compute_auc(*ranks[position])
        exact = metrics.roc_auc_score(is_own, log_odds[:, class_index])
        assert auc == pytest.approx(exact, abs=2e-4)
        precision, _ = compute_average_precision(*ranks[position])
        exact = metrics.average_precision_score(is_own, log_odds[:, class_index])
        assert precision == pytest.approx(exact, abs=3e-3)


def test_log_odds_do_not_lose_what_is_nearly_certain() -> None:
    scores = np.array([[0.0, 500.0], [0.0, -500.0], [-np.inf, 0.0], [-np.inf, -np.inf]])
    log_odds = compute_log_odds(scores)
    np.testing.assert_allclose(log_odds[:2], [[-500, 500], [500, -500]])
    assert log_odds[2].tolist() == [-math.inf, math.inf]
    assert log_odds[3].tolist() == [0, 0]
    three = np.array([[0.0, -60.0, -61.0], [1.0, 1.0, 1.0]])
    expected = [-np.logaddexp(-60.0, -61.0), -60, -61]
    np.testing.assert_allclose(compute_log_odds(three)[0], expected)
    np.testing.assert_allclose(compute_log_odds(three)[1], np.log(1 / 2))


def test_delong_agrees_with_the_variance_over_pairs() -> None:
    rng = np.random.default_rng(3)
    own, others = rng.integers(2, 9, 40), rng.integers(0, 7, 60)
    own_counts, other_counts = (np.bincount(values, minlength=9) for values in (own, others))
    wins = (own[:, None] > others) + 0.5 * (own[:, None] == others)
    auc, (low, high) = compute_auc(other_counts, own_counts)
    assert auc == pytest.approx(wins.mean())
    variance = wins.mean(axis=1).var(ddof=1) / 40 + wins.mean(axis=0).var(ddof=1) / 60
    half_width = 1.959963984540054 * math.sqrt(variance) / (auc * (1 - auc))
    log_odds = [math.log(end / (1 - end)) for end in (low, auc, high)]
    assert log_odds[2] - log_odds[1] == pytest.approx(half_width)
    assert log_odds[1] - log_odds[0] == pytest.approx(half_width)


@pytest.mark.slow
def test_intervals_of_areas_cover() -> None:
    """1500 repetitions of 95 % have a deviation of 0.6 %; average precision is rather too wide."""
    own_rows, other_rows, shift = 60, 600, 1.2
    true_auc = norm.cdf(shift / math.sqrt(2))
    points = np.linspace(-8, 12, 100_001)
    own_above, others_above = 1 - norm.cdf(points - shift), 1 - norm.cdf(points)
    precision = own_rows * own_above / (own_rows * own_above + other_rows * others_above + 1e-300)
    true_precision = np.trapezoid(precision * norm.pdf(points - shift), points)
    rng, held = np.random.default_rng(5), np.zeros(2)
    truth = np.repeat([1, 0], [own_rows, other_rows])
    for _ in range(1500):
        evidence = rng.normal(np.where(truth, shift, 0), 1)
        ranks = count_ranks(np.column_stack([np.zeros(len(truth)), evidence]), truth)[0]
        for area, (compute, true) in enumerate(
            [(compute_auc, true_auc), (compute_average_precision, true_precision)]
        ):
            low, high = compute(*ranks)[1]
            held[area] += low <= true <= high
    coverage = held / 1500
    assert 0.92 <= coverage[0] <= 0.98
    assert 0.92 <= coverage[1] <= 1


def test_ranks_without_mistakes_or_without_rows() -> None:
    low, high = np.array([30, 0]), np.array([0, 10])
    auc, interval = compute_auc(low, high)
    assert auc == 1
    assert interval == pytest.approx((0.7225, 1.0), abs=5e-5)  # Wilson of 10
    assert compute_average_precision(low, high)[0] == 1
    assert math.isnan(compute_auc(low, np.zeros(2, int))[0])
    assert math.isnan(compute_average_precision(low, np.zeros(2, int))[0])
