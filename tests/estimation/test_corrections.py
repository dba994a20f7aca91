"""What a model gets wrong becomes a change of its tables, and nothing but that."""

from __future__ import annotations

import numpy as np
import pytest

from discreet.errors import EstimationError
from discreet.estimation.corrections import MAX_STEP, compute_posterior_step
from discreet.statistics.scoring import Correction

EVEN = np.array([0.5, 0.5])


def correction(residuals, curvatures, variance=1.0):
    residuals = np.atleast_2d(np.array(residuals, dtype=float))
    return Correction(
        {"a": tuple(range(residuals.shape[1]))}, residuals, np.array(curvatures, float), variance
    )


def test_a_clear_residual_moves_the_scores_by_residual_over_curvature():
    move = compute_posterior_step(correction([300.0, -300.0, 0.0], [1000.0] * 3), EVEN)
    assert (move[1] - move[0])[:2] == pytest.approx([0.3, -0.3], abs=0.03)
    assert move.sum(axis=0) == pytest.approx([0, 0, 0])


def test_what_may_be_noise_moves_next_to_nothing():
    """Fifty tables of noise: an eighth of what residual over curvature would say."""
    rng = np.random.default_rng(0)
    noises = rng.laplace(0, 400 / np.sqrt(2), (50, 20))
    moves = [
        compute_posterior_step(correction(one, [1000.0] * 20, variance=400.0**2), EVEN)
        for one in noises
    ]
    moved = np.mean([np.abs(move[1] - move[0]).mean() for move in moves])
    assert moved < 0.125 * np.abs(noises / 1000).mean()
    loud = [compute_posterior_step(correction(one, [1000.0] * 20), EVEN) for one in noises]
    assert np.mean([np.abs(move[1] - move[0]).mean() for move in loud]) > 5 * moved


def test_no_step_is_longer_than_two():
    move = compute_posterior_step(correction([5000.0, -5000.0], [10.0, 10.0]), EVEN)
    assert np.abs(move).max() <= MAX_STEP


def test_evidence_that_counts_too_much_is_turned_down_as_a_whole():
    """Residuals along the feature's own evidence, each of them lost in noise, together clear."""
    own = np.linspace(-2, 2, 30)
    evidence = np.stack([-own / 2, own / 2])
    rng = np.random.default_rng(1)
    found = -0.4 * 100 * own + rng.normal(0, 60, 30)
    wanted = -0.4 * own
    with_own = compute_posterior_step(correction(found, [100.0] * 30, 60.0**2), EVEN, evidence)
    alone = compute_posterior_step(correction(found, [100.0] * 30, 60.0**2), EVEN)
    far = [np.abs(move[1] - move[0] - wanted).mean() for move in (with_own, alone)]
    assert far[0] < 0.5 * far[1]


def test_neighbouring_bins_support_each_other():
    wave = 0.5 * np.sin(np.arange(40) / 40 * 6.3)
    rng = np.random.default_rng(2)
    found = 100 * wave + rng.normal(0, 60, 40)
    smooth = compute_posterior_step(correction(found, [100.0] * 40, 60.0**2), EVEN, None, 40)
    rough = compute_posterior_step(correction(found, [100.0] * 40, 60.0**2), EVEN)
    far = [np.abs(move[1] - move[0] - wave).mean() for move in (smooth, rough)]
    assert far[0] < 0.8 * far[1]


def test_of_many_classes_the_one_that_is_missed_gains():
    prior = np.array([0.6, 0.3, 0.1])
    residuals = np.array([[-200.0, 0.0], [0.0, 0.0], [200.0, 0.0]])
    move = compute_posterior_step(correction(residuals, [200.0, 200.0]), prior)
    assert move[2, 0] > 0.3 > -0.3 > move[0, 0]
    assert np.abs(move[:, 1]).max() < 0.05
    assert move.sum(axis=0) == pytest.approx([0, 0])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"groups": {"nobody": (0, 1)}}, "without tables"),
        ({"groups": {"age": (0, 2, 1)}}, "do not fit its cells"),
        ({"residuals": np.zeros((3, 2))}, "does not fit"),
        ({"variance": -1.0}, "NaN or infinite number"),
        ({"residuals": np.array([[np.nan, 0.0]])}, "NaN or infinite number"),
    ],
)
def test_a_correction_that_does_not_fit_is_refused(change, message):
    from dataclasses import replace

    from discreet import Numeric, Schema, Statistics
    from discreet.schema.cells import Cells
    from discreet.statistics.statistics import Table

    schema = Schema([Numeric("age", 0, 10, optional=False)], "sick", ["no", "yes"])
    tables = {"age": Table(Cells.from_schema(schema, "age", 2), np.ones((2, 2)))}
    good = Correction({"age": (0, 1)}, np.zeros((1, 2)), np.ones(2), 1.0)
    Statistics(schema, np.ones(2), tables=tables, corrections=[good])
    with pytest.raises(EstimationError, match=message):
        Statistics(schema, np.ones(2), tables=tables, corrections=[replace(good, **change)])
