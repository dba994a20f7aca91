"""What docs/maths.md derives is what the code computes: by integration, simulation, enumeration."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from discreet.estimation.shrinkage import CATEGORY_STRENGTHS, Interaction, soft_positive_part
from discreet.local.inversion import CountEstimate, pool_counts


def table(rng, noise):
    counts = np.array([[300.0, 200.0, 100.0], [120.0, 120.0, 160.0]])
    return counts + rng.normal(0, noise, counts.shape), np.full(counts.shape, noise**2)


@pytest.mark.parametrize("strength", [1, 3, 5])
def test_the_kept_part_of_an_interaction_is_the_posterior_mean(strength):
    """Normal prior times normal noise, integrated on a fine grid cell by cell."""
    counts, variances = table(np.random.default_rng(1), 20.0)
    part = Interaction(counts, variances, np.array([0.6, 0.4]), 1000.0)
    weights = np.full(len(CATEGORY_STRENGTHS), 1e-300)
    weights[strength] = 1.0
    before = CATEGORY_STRENGTHS[strength] ** 2 * part.unit_variance
    mean, spread = np.empty_like(part.residual), np.empty_like(part.residual)
    for place in np.ndindex(part.residual.shape):
        width = np.sqrt(min(before[place], part.variance[place]))
        centre = part.residual[place] if part.variance[place] < before[place] else 0.0
        x = centre + width * np.linspace(-12, 12, 20_001)
        logs = -0.5 * (
            x**2 / before[place] + (part.residual[place] - x) ** 2 / part.variance[place]
        )
        mass = np.exp(logs - logs.max())
        mass /= mass.sum()
        mean[place] = mass @ x
        spread[place] = np.sqrt(mass @ (x - mean[place]) ** 2)
    s = spread / part.expected_joint
    expected = part.margin * soft_positive_part(
        1 + mean / part.expected_joint, s, np.minimum(1.0, s * s) / 4
    )
    expected /= expected.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(part.compute_posterior(weights), expected, rtol=1e-6)


def test_the_variance_of_an_interaction_is_that_of_simulated_tables():
    """Unequal classes and unequal noise; rows that depend on nothing but margin and class."""
    rng, prior = np.random.default_rng(2), np.array([0.7, 0.2, 0.1])
    truth = 1e6 * prior[:, None] * np.array([0.5, 0.3, 0.15, 0.05])
    noise = rng.uniform(50, 150, truth.shape)
    parts = [Interaction(rng.normal(truth, noise), noise**2, prior, 1e15) for _ in range(4000)]
    found = np.var([part.residual for part in parts], axis=0)
    stated = np.mean([part.variance for part in parts], axis=0)
    np.testing.assert_allclose(found, stated, rtol=0.12)
    # known-bad twin: as if a cell had no part in the margin that is subtracted
    alone = noise**2 / 1e12
    assert np.abs(alone / found - 1).max() > 0.5


def test_soft_positivity_solves_its_equation_and_keeps_order():
    x, s, kappa = np.linspace(-9, 9, 400), np.full(400, 0.7), 0.5
    z = soft_positive_part(x, s, kappa)
    np.testing.assert_allclose(z, x + kappa * s**2 / z, atol=1e-9)
    assert (z > 0).all()
    assert (np.diff(z) > 0).all()


def test_disjoint_groups_have_the_stated_sampling_variance():
    """All ways to ask two of five people one question and another one the other."""
    held, sizes = np.array([1, 1, 0, 0, 0]), (2, 1)
    weights = np.array(sizes) / sum(sizes)
    shares = []
    for order in itertools.permutations(range(5)):
        first, second = held[list(order[:2])], held[list(order[2:3])]
        shares.append(weights @ [first.mean(), second.mean()])
    assert np.mean(shares) == pytest.approx(held.mean())
    parts = [CountEstimate(np.array([held.mean()]), np.zeros(1), 1 / m, m) for m in sizes]
    counts, variances = pool_counts(parts, 5)
    assert counts[0] == pytest.approx(held.sum())
    assert variances[0] == pytest.approx(25 * np.var(shares))
    # known-bad twin: groups as if they were drawn independently of each other
    share = held.mean() * (1 - held.mean())
    apart = sum(w**2 * share * (5 - m) / m / 4 for w, m in zip(weights, sizes, strict=True))
    assert abs(25 * apart - variances[0]) > 0.1
