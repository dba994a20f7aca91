"""Modes by one block per class are those of the equations solved as a whole."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

from discreet.estimation import logistic_normal
from discreet.estimation.logistic_normal import (
    STRENGTH_GRID,
    build_table_prior,
    compute_softmax,
    find_modes,
)


def find_modes_plainly(joint, noise, people, prior, table_prior):
    """All parameters of all classes in one system: evidence, modes and precisions."""
    grid = range(len(STRENGTH_GRID))
    roots = np.array([table_prior.build_root(point) for point in grid])
    size, flat = roots.shape[-1], (len(roots), joint.size)
    z, prior = np.zeros((len(roots), size)), prior[:, None]

    def spread(z):
        return compute_softmax(np.einsum("gkdn,gn->gkd", roots, z))

    def weigh(p):
        return 1 / (noise + prior * p * (1 - prior * p) / people + 1e-12)

    def loss(p, weight, z):
        return 0.5 * (weight * (joint - prior * p) ** 2).sum(axis=(1, 2)) + 0.5 * (z**2).sum(axis=1)

    p = spread(z)
    for _ in range(logistic_normal.MAX_NEWTON_STEPS):
        expected, weight = prior * p, weigh(p)
        mean = np.einsum("gkd,gkdn->gkn", p, roots)
        slopes = (expected[..., None] * (roots - mean[:, :, None])).reshape(*flat, size)
        weighted = np.swapaxes(slopes * weight.reshape(*flat, 1), 1, 2)
        precision = weighted @ slopes + np.eye(size)
        target = (weighted @ (joint - expected).reshape(*flat, 1))[..., 0] - z
        step = np.linalg.solve(precision, target[..., None])[..., 0]
        before = loss(p, weight, z)
        for _ in range(logistic_normal.MAX_STEP_HALVINGS):
            p = spread(z + step)
            worse = loss(p, weight, z + step) > before + 1e-9
            if not worse.any():
                break
            step = np.where(worse[:, None], step / 2, step)
        z = z + step
        if np.abs(step).max() < logistic_normal.MAX_STEP_SIZE:
            break
    p = spread(z)
    evidence = 0.5 * np.log(weigh(p)).sum(axis=(1, 2)) - loss(p, weigh(p), z)
    return evidence - 0.5 * np.linalg.slogdet(precision)[1], p, z, precision


def make_table(classes, cells, noise, people):
    rng = np.random.default_rng([classes, cells])
    prior = rng.dirichlet(np.full(classes, 5.0))
    joint = prior[:, None] * rng.dirichlet(np.ones(cells), classes)
    scale = rng.uniform(0.5, 2, joint.shape) * (noise / people) ** 2
    return joint + rng.normal(size=joint.shape) * np.sqrt(scale), scale, prior


CASES = [
    (1, 8, 10.0, 1e3), (2, 9, 30.0, 1e3), (2, 9, 3000.0, 50.0), (3, 9, 5.0, 1e5),
    (5, 16, 100.0, 1e4), (2, 33, 50.0, 2e4), (2, 8, 0.01, 1e6), (12, 9, 50.0, 2e4),
]  # fmt: skip
"""Classes, cells, noise of a count, people: little and much noise, many classes, many cells."""


@pytest.mark.parametrize(("classes", "cells", "noise", "people"), CASES)
def test_modes_are_those_of_the_whole_system(classes, cells, noise, people):
    joint, scale, prior = make_table(classes, cells, noise, people)
    table_prior = build_table_prior(classes, cells, cells - 1)
    (found,) = find_modes(joint[None], scale[None], np.array([people]), prior, table_prior)
    evidence, p, z, precision = find_modes_plainly(joint, scale, people, prior, table_prior)
    np.testing.assert_allclose(found.probabilities, p, rtol=1e-9)
    np.testing.assert_allclose(found.log_evidence, evidence, rtol=1e-9)
    for point in range(len(STRENGTH_GRID)):
        mode, own_precision, _ = found.compute_law(point)
        np.testing.assert_allclose(mode, z[point], atol=1e-8)
        np.testing.assert_allclose(
            own_precision, precision[point], atol=1e-9 * np.abs(precision[point]).max()
        )


def test_tables_together_are_as_alone_up_to_their_last_step(monkeypatch):
    """Steps end for all tables at once; each is worked on for itself, however many fit at once."""
    joint, scale, prior = make_table(3, 6, 20.0, 1000.0)
    joints, table_prior = np.array([joint, joint[:, ::-1]]), build_table_prior(3, 6, 6)
    options = np.array([scale, scale]), np.full(2, 1e3), prior, table_prior
    together = find_modes(joints, *options)
    monkeypatch.setattr(logistic_normal, "MAX_BLOCK_NUMBERS", 1)
    for one, other in zip(together, find_modes(joints, *options), strict=True):
        np.testing.assert_allclose(one.probabilities, other.probabilities, rtol=1e-12)


def test_draws_have_the_mode_and_the_covariance_of_their_law():
    joint, scale, prior = make_table(2, 4, 3.0, 5000.0)
    table_prior = build_table_prior(2, 4, 4)
    (found,) = find_modes(joint[None], scale[None], np.array([5e3]), prior, table_prior)
    point, draws = 8, 20_000
    mode, precision, root = found.compute_law(point)
    drawn = np.log(found.draw(np.full(draws, point), np.random.default_rng(0)))
    contrasts = (drawn[..., 1:] - drawn[..., :1]).reshape(draws, -1)
    slopes = (root[:, 1:] - root[:, :1]).reshape(-1, root.shape[2])
    covariance = slopes @ np.linalg.inv(precision) @ slopes.T
    deviation = np.sqrt(np.diag(covariance))
    # five standard errors of a mean, and of variances and correlations
    np.testing.assert_array_less(
        np.abs(contrasts.mean(axis=0) - slopes @ mode), 5 * deviation / draws**0.5
    )
    scaled_difference = (np.cov(contrasts.T) - covariance) / np.outer(deviation, deviation)
    assert np.abs(scaled_difference).max() < 5 * (2 / draws) ** 0.5


@pytest.mark.slow
def test_memory_is_linear_in_the_classes():
    """128 classes of 9 cells: as one system they would need more than 2 GB."""
    program = """
import numpy as np, resource
from discreet.estimation.logistic_normal import build_table_prior, find_modes
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
joint = np.random.default_rng(0).dirichlet(np.ones(128 * 9)).reshape(128, 9)
noise, prior = np.full((1, 128, 9), 1e-9), np.full(128, 1 / 128)
find_modes(joint[None], noise, np.array([1e4]), prior, build_table_prior(128, 9, 8))
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) // 1024)
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert int(done.stdout) < 250
