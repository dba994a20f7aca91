"""Empirical Bayes for class-by-bin tables of numbers whose noise variance is known.

Neighbouring bins of a number carry nearly the same information about the class, so the noise of a
bin can be measured by its neighbours. The model of a feature, after Aitchison's logistic normal
laws and with a smooth kernel as in Gaussian processes:

    log P(bin | class) = margin + strength * departure of the class - normalising constant
    margin       normal, half of its variance shared with neighbours
    departure    normal, zero over all classes; either rough (every bin its own) or smooth

Its mode is found by Gauss-Newton for a grid of strengths, rough and smooth; how plausible each of
them is is learnt from all features together (mixture.py, on Laplace's approximation of the
evidence), and the probabilities are averaged. Probabilities stay positive by construction.

What looks like noise in every feature may still add up over many: a part of the log-probabilities
is that of the plain counts, which are not shrunk and whose errors average out.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache

import numpy as np

from discreet.arrays import Floats, Integers
from discreet.estimation.mixture import mixed, mixture

__all__ = ["Posterior", "posteriors", "smoothed"]


STRENGTHS = (0.0, 0.1, 0.2, 0.4, 0.8, 1.6, 3.2)
"""Standard deviations of a class's departure from the margin, in log-probability."""
SHARED = (0.0, 0.9)
"""Part of a departure's variance that neighbouring bins share: rough, smooth."""
GRID = np.array([(s, part) for s in STRENGTHS for part in SHARED[: 1 if s == 0 else None]])
"""The points of the grid: strength and shared part."""
MARGIN = 1.5
"""Standard deviation of the margin's log-probabilities."""
REACH = 0.35
"""How far bins are neighbours, as a part of the range."""
STEPS = 30
HALVINGS = 8
EM_STEPS = 30
PRIOR_WEIGHT = 4.0
PLAIN = 0.15
"""The part of the plain counts, less where their noise is wider than all people."""
TINY = 1e-12


def smoothed(
    tables: Mapping[str, tuple[Floats, Floats]],
    bins: Mapping[str, int],
    prior: Floats,
    people: Mapping[str, float],
    alone: Mapping[str, float],
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
    alone : mapping of name to float
        Which part of the noise of each table is every class's own. What only moves people from
        class to class does not average out, and plain counts are left out as far.
    """
    evidence, conditional, parts = {}, {}, {}
    for name, (counts, variances) in tables.items():
        whole = max(float(counts.sum()), 1.0)
        parts[name] = counts / whole, variances / whole**2
    for name, one in posteriors(parts, bins, prior, people):
        evidence[name] = one.log_evidence
        conditional[name] = np.maximum(_probabilities(one.roots, one.modes[None])[0], TINY)
    averages = {
        name: np.tensordot(weights, conditional[name], axes=1)
        for name, weights in _plausible(evidence).items()
    }
    found = {}
    for name, (counts, variances) in tables.items():
        # noise wider than the number of people carries no evidence
        known = min(1.0, people[name] ** 2 / max(float(variances.mean()), TINY))
        found[name] = mixed(averages[name], counts, PLAIN * known * alone[name])
    return found


@dataclass(frozen=True, eq=False)
class Posterior:
    """What a noisy table leaves possible, at each strength: normal laws of standardised parameters.

    Parameters
    ----------
    log_evidence : array of shape (grid,)
    modes : array of shape (grid, parameters)
    precisions : array of shape (grid, parameters, parameters)
    roots : array of shape (grid, classes, cells, parameters)
        From parameters to log-probabilities.
    """

    log_evidence: Floats
    modes: Floats
    precisions: Floats
    roots: Floats

    def draw(self, at: Integers, rng: np.random.Generator) -> Floats:
        """P(cell | class), drawn once for each given grid point: (draws, classes, cells)."""
        found = np.empty((len(at), *self.roots.shape[1:3]))
        for point in np.unique(at):
            here = np.flatnonzero(at == point)
            root = np.linalg.cholesky(self.precisions[point])
            z = rng.standard_normal((len(root), len(here)))
            z = self.modes[point] + np.linalg.solve(root.T, z).T
            found[here] = _probabilities(self.roots[point][None], z[:, None])[:, 0]
        return found


def posteriors(
    tables: Mapping[str, tuple[Floats, Floats]],
    bins: Mapping[str, int],
    prior: Floats,
    people: Mapping[str, float],
) -> Iterator[tuple[str, Posterior]]:
    """Each feature with what its table leaves possible.

    Parameters are those of ``smoothed``, with shares of all people in place of counts.
    """
    groups: dict[tuple[int, int], list[str]] = {}
    for name, (shares, _) in tables.items():
        groups.setdefault((shares.shape[1], bins[name]), []).append(name)
    for (cells, ordered), names in groups.items():
        joint, noise = (np.array([tables[n][i] for n in names]) for i in (0, 1))
        sample = np.array([people[n] for n in names])
        roots = _roots(len(prior), cells, ordered)
        parts = _modes(joint, noise, sample, np.maximum(prior, TINY), roots)
        for name, logs, modes, precisions in zip(names, *parts, strict=True):
            yield name, Posterior(logs, modes, precisions, roots)


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
        for strength, shared in GRID
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
) -> tuple[Floats, Floats, Floats]:
    """Log-evidence (features, grid), modes (…, size) and precisions (…, size, size)."""
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
    return logs - 0.5 * np.linalg.slogdet(curvature)[1], z, curvature


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
    every = np.where(GRID[:, 0] == 0, 1.0, 1 / len(SHARED))
    start = every / every.sum()
    logs = np.array(list(evidence.values()))
    _, chances = mixture(logs, start, prior_weight=PRIOR_WEIGHT, steps=EM_STEPS)
    return dict(zip(evidence, chances, strict=True))
