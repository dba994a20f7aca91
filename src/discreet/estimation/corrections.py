"""Turn noisy residuals of a model into changes of its score tables.

A :class:`~discreet.statistics.Correction` says for every cell how many more people of a class there
are than the model so far expects (G), and how fast that changes with the scores (H). Both are sums
over people and carry noise of a known variance s^2. The change delta is its posterior mean under

    G = H delta + N(0, H + s^2)

averaged by evidence over laws of delta: nothing changes; the feature's evidence counts more or less
as a whole; cells change independently; neighbouring bins change together. What may well be noise
moves nothing. The statistics carry the noisy sums, so that the same steps can be taken again.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from discreet.arrays import Floats
from discreet.scoring import Correction

__all__ = ["Additive", "step"]

DEVIATIONS = (0.05, 0.1, 0.2, 0.4, 0.8, 1.6)
"""Prior standard deviations of a change of the scores that are tried."""
NOTHING = float(np.log(2.0))
"""Log-weight of "nothing changes" against each of the other laws."""
REACH = 3.0
"""Correlation length of changes of neighbouring bins, in bins."""
MOST = 2.0
"""Largest change of a score in one step, in log-odds."""
MOST_CELLS = 400
"""With more cells, correlations of neighbouring bins are left out to save time."""
LEAST = 1e-3


@dataclass(frozen=True)
class Additive:
    """An additive model: class shares, a score table per feature, score tables of pairs.

    Parameters
    ----------
    prior : array of shape (classes,)
    tables : mapping of feature name to array of shape (classes, cells)
    ordered : mapping of feature name to int
        How many cells of a feature, from the first on, are neighbouring bins.
    pairs : mapping
        From two feature names, each with the group of every cell, to an array of shape (classes,
        groups of the first times groups of the second).
    """

    prior: Floats
    tables: Mapping[str, Floats]
    ordered: Mapping[str, int]
    pairs: Mapping[tuple[tuple[str, tuple[int, ...]], ...], Floats] = field(default_factory=dict)

    def corrected(self, one: Correction) -> tuple[Additive, Floats]:
        """The model after a correction, and what it adds to each of the correction's cells."""
        key = tuple(one.groups.items())
        if len(key) > 1:
            move = step(one, self.prior)
            whole = move + self.pairs[key] if key in self.pairs else move
            return replace(self, pairs={**self.pairs, key: whole}), move
        ((name, groups),) = key
        looked = np.flatnonzero(np.array(groups) >= 0)
        table = self.tables[name].copy()
        move = step(one, self.prior, table[:, looked], self.ordered[name])
        table[:, looked] += move
        return replace(self, tables={**self.tables, name: table}), move


def step(one: Correction, prior: Floats, own: Floats | None = None, ordered: int = 0) -> Floats:
    """Change of the scores, of shape (classes, cells).

    Parameters
    ----------
    one : Correction
    prior : array of shape (classes,)
        By which curvature is shared out where there are more than two classes: of row sums
        sum of p (1 - p) it gives class c the share P(c) (1 - P(c)).
    own : array of shape (classes, cells), optional
        What the feature adds to the scores so far.
    ordered : int
        How many cells, from the first on, are neighbouring bins.
    """
    left = np.asarray(one.residuals, dtype=np.float64)
    curved = np.tile(np.maximum(one.curvatures, LEAST), (len(left), 1)).astype(np.float64)
    if len(left) > 1:
        share = prior * (1 - prior)
        curved *= 4 * (share / share.sum())[:, None]  # the sums are of a quarter
    spread = curved + one.variance
    moves, gains = [np.zeros(left.shape)], [NOTHING]
    direction = None
    if own is not None:
        direction = (own[1] - own[0])[None] if len(left) == 1 else own - own.mean(axis=0)
    near = _neighbours(left.shape[1], ordered)
    # of K residuals that add up to zero, K - 1 are free
    freedom = 1.0 if len(left) == 1 else 1 - 1 / len(left)
    for deviation in DEVIATIONS:
        laws = [_apart(left, curved, spread, deviation)]
        if direction is not None:
            laws.append(_along(left, curved, spread, deviation * direction))
        if near is not None:
            laws.append(_together(left, curved, spread, deviation**2 * near))
        moves += [move for move, _ in laws]
        gains += [freedom * gain for _, gain in laws]
    weight = np.exp(np.array(gains) - max(gains))
    mean = np.tensordot(weight / weight.sum(), np.array(moves), axes=1)
    if len(mean) == 1:  # of two classes one goes up by half of it, the other down
        mean = np.concatenate([-mean / 2, mean / 2])
    return np.asarray(np.clip(mean - mean.mean(axis=0), -MOST, MOST))


def _apart(left: Floats, curved: Floats, spread: Floats, deviation: float) -> tuple[Floats, float]:
    """Every cell changes for itself: posterior mean, and gain in log-likelihood over no change."""
    prior = (curved * deviation) ** 2
    gain = -0.5 * (np.log1p(prior / spread) - left**2 * prior / (spread * (spread + prior))).sum()
    return left * curved * deviation**2 / (spread + prior), float(gain)


def _along(left: Floats, curved: Floats, spread: Floats, direction: Floats) -> tuple[Floats, float]:
    """One standard normal number times a direction: the feature counts more or less."""
    slope = curved * direction
    certain, pull = float((slope**2 / spread).sum()), float((slope * left / spread).sum())
    gain = 0.5 * (pull**2 / (1 + certain) - np.log1p(certain))
    return pull / (1 + certain) * direction, float(gain)


def _neighbours(cells: int, ordered: int) -> Floats | None:
    """Correlations of changes: near bins resemble each other, other cells are independent."""
    if ordered < 3 or cells > MOST_CELLS:
        return None
    place = np.arange(cells, dtype=np.float64)
    near = np.exp(-np.abs(place[:, None] - place) / REACH)
    near[ordered:], near[:, ordered:] = 0.0, 0.0
    np.fill_diagonal(near, 1.0)
    return np.asarray(near)


def _together(
    left: Floats, curved: Floats, spread: Floats, covariance: Floats
) -> tuple[Floats, float]:
    """Changes with such a covariance, independent between classes."""
    moves, gain = np.empty(left.shape), 0.0
    for c, (g, h, v) in enumerate(zip(left, curved, spread, strict=True)):
        factor = np.linalg.cholesky(h[:, None] * covariance * h + np.diag(v))
        half = np.linalg.solve(factor, g)
        gain -= float(np.log(np.diag(factor)).sum() - 0.5 * np.log(v).sum())
        gain -= 0.5 * float(half @ half - (g**2 / v).sum())
        moves[c] = covariance @ (h * np.linalg.solve(factor.T, half))
    return moves, gain
