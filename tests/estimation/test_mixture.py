"""The one EM: it climbs to the top of the penalised likelihood, and learns what features share."""

import numpy as np
import pytest
from scipy.optimize import minimize

from discreet.estimation.mixture import fit_mixture


def penalised(evidence, weights, start, prior_weight):
    """Log-likelihood of the mixture with the Dirichlet prior around the start."""
    likelihood = np.log((np.exp(evidence) * weights).sum(axis=1)).sum()
    return likelihood + prior_weight * (start * np.log(weights)).sum()


@pytest.mark.parametrize("prior_weight", [0.5, 4.0])
def test_em_finds_the_maximum_and_never_descends(prior_weight):
    rng = np.random.default_rng(0)
    evidence, start = rng.normal(0, 1.5, (12, 4)), np.array([0.4, 0.3, 0.2, 0.1])
    path = [
        penalised(
            evidence,
            fit_mixture(evidence, start, prior_weight=prior_weight, steps=steps)[0],
            start,
            prior_weight,
        )
        for steps in (0, 1, 2, 5, 20, 400)
    ]
    assert np.all(np.diff(path) > -1e-9)
    found, _ = fit_mixture(evidence, start, prior_weight=prior_weight, steps=400)

    def loss(z):
        weights = np.exp(z) / np.exp(z).sum()
        return -penalised(evidence, weights, start, prior_weight)

    best = minimize(loss, np.zeros(4)).x
    np.testing.assert_allclose(found, np.exp(best) / np.exp(best).sum(), atol=1e-3)


def test_weights_shared_by_many_features_decide_about_a_doubtful_one():
    sure, doubtful = np.log([0.01, 0.99]), np.log([0.5, 0.5])
    evidence, start = np.array([sure] * 30 + [doubtful]), np.array([0.5, 0.5])
    _, chances = fit_mixture(evidence, start, prior_weight=1.0, steps=30)
    assert chances[-1, 1] > 0.95
    alone, _ = fit_mixture(evidence[-1:], start, prior_weight=1.0, steps=30)
    np.testing.assert_allclose(alone, start)


def test_without_features_the_start_is_the_answer():
    start = np.array([0.7, 0.3])
    weights, chances = fit_mixture(np.empty((0, 2)), start, prior_weight=1.0, steps=5)
    assert weights is start
    assert chances.shape == (0, 2)


def test_evidence_far_apart_does_not_overflow():
    far = np.array([[-1e5, 0.0], [1e5, 0.0]])
    _, found = fit_mixture(far, np.array([0.5, 0.5]), prior_weight=1.0, steps=3)
    assert found.tolist() == [[0.0, 1.0], [1.0, 0.0]]
