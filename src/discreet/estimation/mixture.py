"""EM for a mixture over a grid: how common each grid point is, learnt from all features together.

The only EM of the house. Every empirical Bayes here (shrinkage of categories, smoothing of bins,
log-ratios) has the same upper half: each feature has a likelihood at each point of a public grid of
strengths, and the weights of the points are shared by all features. What a strength means, and what
is done at a point, differs; that is the lower half, and stays with each of them.
"""

from __future__ import annotations

import numpy as np

from discreet.arrays import Floats

__all__ = ["mixture_weights", "responsibilities"]


def mixture_weights(
    log_evidence: Floats, start: Floats, *, prior_weight: float, steps: int
) -> Floats:
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
    array of shape (grid,)

    Examples
    --------
    >>> evidence = np.log([[0.9, 0.1], [0.8, 0.2], [0.9, 0.1]])
    >>> mixture_weights(evidence, np.array([0.5, 0.5]), prior_weight=1.0, steps=50).round(2)
    array([0.86, 0.14])
    """
    weights = start
    if not len(log_evidence):
        return weights
    for _ in range(steps):
        counts = responsibilities(log_evidence, weights).sum(axis=0) + prior_weight * start
        weights = counts / counts.sum()
    return weights


def responsibilities(log_evidence: Floats, weights: Floats) -> Floats:
    """P(grid point | feature), of shape (features, grid)."""
    logs = log_evidence + np.log(weights)
    odds = np.exp(logs - logs.max(axis=-1, keepdims=True))
    return np.asarray(odds / odds.sum(axis=-1, keepdims=True))
