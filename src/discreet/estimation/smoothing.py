"""Empirical Bayes for class-by-bin tables of numbers whose noise variance is known.

Neighbouring bins of a number tell nearly the same about the class, so the noise of a bin can be
measured by its neighbours. The model of a feature, after Aitchison's logistic normal laws and with
a smooth kernel as in Gaussian processes:

    log P(bin | class) = margin + strength * departure of the class - normalising constant
    margin       normal, half of its variance shared with neighbours
    departure    normal, zero over all classes; either rough (every bin its own) or smooth

Its mode is found by Gauss-Newton for a grid of strengths, rough and smooth; how plausible each of
them is is learnt from all features together (mixture.py, on Laplace's approximation of the
evidence), and the probabilities are averaged. Probabilities stay positive by construction.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

import numpy as np

from discreet.arrays import Floats
from discreet.estimation.mixture import mixture_weights, responsibilities

__all__ = ["smoothed"]


STRENGTHS = (0.0, 0.1, 0.2, 0.4, 0.8, 1.6, 3.2)
"""Standard deviations of a class's departure from the margin, in log-probability."""
SHARED = (0.0, 0.9)
"""Part of a departure's variance that neighbouring bins share: rough, smooth."""
MARGIN = 1.5
"""Standard deviation of the margin's log-probabilities."""
REACH = 0.35
"""How far bins are neighbours, as a part of the range."""
STEPS = 30
HALVINGS = 8
EM_STEPS = 30
PRIOR_WEIGHT = 4.0
TINY = 1e-12


def smoothed(
    tables: Mapping[str, tuple[Floats, Floats]],
    bins: Mapping[str, int],
    prior: Floats,
    people: Mapping[str, float],
) -> dict[str, Floats]:
    """P(bin | class) of every numeric feature.

    Parameters
    ----------
    tables : mapping of name to (counts, variances)
        Each of shape (classes, cells).
    bins : mapping of name to int
        How many of the cells are bins in order; a further one is for missing values.
    prior : array of shape (classes,)
        Valid class probabilities.
    people : mapping of name to float
        How many people each table was estimated from; sampling noise is judged by it.
    """
    groups: dict[tuple[int, int], list[str]] = {}
    for name, (counts, _) in tables.items():
        groups.setdefault((counts.shape[1], bins[name]), []).append(name)
    evidence, conditional = {}, {}
    for (cells, ordered), names in groups.items():
        whole = np.array([max(tables[n][0].sum(), 1.0) for n in names])[:, None, None]
        joint = np.array([tables[n][0] for n in names]) / whole
        noise = np.array([tables[n][1] for n in names]) / whole**2
        sample = np.array([people[n] for n in names])
        roots = _roots(len(prior), cells, ordered)
        logs, found = _modes(joint, noise, sample, np.maximum(prior, TINY), roots)
        for i, name in enumerate(names):
            evidence[name], conditional[name] = logs[i], found[i]
    weights = _plausible(evidence)
    return {name: np.tensordot(weights[name], conditional[name], axes=1) for name in tables}


@cache
def _roots(classes: int, cells: int, bins: int) -> Floats:
    """For each grid point a root of the prior covariance: standard normals to log-probabilities.

    Shape (grid, classes, cells, classes * cells).
    """
    values, vectors = np.linalg.eigh(np.eye(classes) - 1 / classes)
    apart = vectors[:, values > 0.5] * np.sqrt(classes / max(classes - 1, 1))
    margin = np.tile(MARGIN * _root(cells, bins, 0.5), (classes, 1))
    found = [
        np.concatenate([margin, np.kron(apart, strength * _root(cells, bins, shared))], axis=1)
        for strength in STRENGTHS
        for shared in SHARED[: 1 if strength == 0 else None]
    ]
    return np.array(found).reshape(len(found), classes, cells, classes * cells)


def _root(cells: int, bins: int, shared: float) -> Floats:
    """Cholesky root of a kernel over cells, of which the first ones are neighbours in order."""
    place = np.arange(bins) / bins
    kernel = np.eye(cells)
    near = np.exp(-0.5 * ((place[:, None] - place) / REACH) ** 2)
    kernel[:bins, :bins] = shared * near + (1 - shared) * np.eye(bins)
    return np.asarray(np.linalg.cholesky(kernel))


def _modes(
    joint: Floats, noise: Floats, people: Floats, prior: Floats, roots: Floats
) -> tuple[Floats, Floats]:
    """Log-evidence (features, grid) and P(cell | class) (features, grid, classes, cells)."""
    features, (grid, classes, cells, size) = len(joint), roots.shape
    joint, noise, people = joint[:, None], noise[:, None], people[:, None, None, None]
    shape, diagonal = (features, grid, classes * cells), np.arange(size)
    z = np.zeros((features, grid, size))
    conditional = _probabilities(roots, z)
    for _ in range(STEPS):
        expected = prior[:, None] * conditional
        weight = 1 / (noise + expected * (1 - expected) / people + TINY)
        centre = np.einsum("fgkd,gkdn->fgkn", conditional, roots)
        slope = (expected[..., None] * (roots - centre[:, :, :, None])).reshape(*shape, size)
        weighted = np.swapaxes(slope * weight.reshape(*shape, 1), 2, 3)
        curvature = weighted @ slope
        curvature[..., diagonal, diagonal] += 1
        ascent = (weighted @ (joint - expected).reshape(*shape, 1))[..., 0] - z
        step = np.linalg.solve(curvature, ascent[..., None])[..., 0]
        before = _loss(joint - expected, weight, z)
        for _ in range(HALVINGS):
            conditional = _probabilities(roots, z + step)
            worse = _loss(joint - prior[:, None] * conditional, weight, z + step) > before + 1e-9
            if not worse.any():
                break
            step = np.where(worse[..., None], step / 2, step)
        z = z + step
        if np.abs(step).max() < 1e-2:
            break
    conditional = _probabilities(roots, z)
    expected = prior[:, None] * conditional
    variance = noise + expected * (1 - expected) / people + TINY
    logs = -0.5 * np.log(variance).sum(axis=(2, 3)) - _loss(joint - expected, 1 / variance, z)
    return logs - 0.5 * np.linalg.slogdet(curvature)[1], np.maximum(conditional, TINY)


def _probabilities(roots: Floats, z: Floats) -> Floats:
    """P(cell | class) of standardised parameters."""
    logits = np.einsum("gkdn,fgn->fgkd", roots, z)
    odds = np.exp(logits - logits.max(axis=-1, keepdims=True))
    return np.asarray(odds / odds.sum(axis=-1, keepdims=True))


def _loss(error: Floats, weight: Floats, z: Floats) -> Floats:
    """Minus the log-density of table and parameters, up to a constant."""
    return np.asarray(0.5 * (weight * error**2).sum(axis=(2, 3)) + 0.5 * (z**2).sum(axis=-1))


def _plausible(evidence: Mapping[str, Floats]) -> dict[str, Floats]:
    """Posterior weights of the grid for every feature, with weights common to all learnt by EM."""
    if not evidence:
        return {}
    every = [
        1 if strength == 0 else 1 / len(SHARED)
        for strength in STRENGTHS
        for _ in SHARED[: 1 if strength == 0 else None]
    ]
    start = np.array(every) / sum(every)
    logs = np.array(list(evidence.values()))
    common = mixture_weights(logs, start, prior_weight=PRIOR_WEIGHT, steps=EM_STEPS)
    return dict(zip(evidence, responsibilities(logs, common), strict=True))
