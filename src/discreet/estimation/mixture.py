"""EM for a mixture over a grid: how common each grid point is, learnt from all features together.

EM shared by shrinkage (categories), smoothing (bins) and log-ratios. In each of them every feature
has a likelihood at each point of a public grid of strengths, and all features share the weights of
the points. What a strength means, and what is estimated at a point, differs between them.
"""

from __future__ import annotations

import numpy as np

from discreet.arrays import Floats

__all__ = ["fit_mixture", "pool_log_linearly"]


def fit_mixture(
    log_evidence: Floats, start: Floats, *, prior_weight: float, steps: int
) -> tuple[Floats, Floats]:
    """Weights of the grid points, by EM with a Dirichlet prior around the starting weights.

    w_g = (sum over features of P(g | feature) + prior_weight start_g) / normalising constant

    Parameters
    ----------
    log_evidence : array of shape (features, grid)
        Log-likelihood of each feature at each grid point.
    start : array of shape (grid,)
        Positive, adding up to one; the answer where there are no features.
    prior_weight : float
        How many features the prior is worth.
    steps : int

    Returns
    -------
    weights : array of shape (grid,)
    chances : array of shape (features, grid)
        P(grid point | feature), by these weights.

    Examples
    --------
    >>> evidence = np.log([[0.9, 0.1], [0.8, 0.2], [0.9, 0.1]])
    >>> start = np.array([0.5, 0.5])
    >>> weights, chances = fit_mixture(evidence, start, prior_weight=1.0, steps=50)
    >>> weights.round(2), chances[1].round(2)
    (array([0.86, 0.14]), array([0.96, 0.04]))
    """
    weights, chances = start, np.empty((0, len(start)))
    for step in range(steps + 1 if len(log_evidence) else 0):
        if step:
            expected_counts = chances.sum(axis=0) + prior_weight * start
            weights = expected_counts / expected_counts.sum()
        log_joint = log_evidence + np.log(weights)
        odds = np.exp(log_joint - log_joint.max(axis=1, keepdims=True))
        chances = odds / odds.sum(axis=1, keepdims=True)
    return weights, chances


def pool_log_linearly(shrunk_estimate: Floats, counts: Floats, count_weight: float) -> Floats:
    """P(cell | class), log-linear between a shrunken estimate and the plain counts.

    Parameters
    ----------
    shrunk_estimate : array of shape (classes, cells)
        Positive; need not add up to one.
    counts : array of shape (classes, cells)
        Noisy; those below one count as one, as published.
    count_weight : float
        The weight of the counts.

    Examples
    --------
    >>> pool_log_linearly(np.array([[0.5, 0.5]]), np.array([[-3.0, 9.0]]), 0.5).round(2)
    array([[0.25, 0.75]])
    """
    log_pool = (1 - count_weight) * np.log(shrunk_estimate) + count_weight * np.log(
        np.maximum(counts, 1.0)
    )
    pooled_odds = np.exp(log_pool - log_pool.max(axis=1, keepdims=True))
    return np.asarray(pooled_odds / pooled_odds.sum(axis=1, keepdims=True))
