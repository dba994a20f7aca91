"""Log-ratios of one feature: log r with r = P(cell | class) / P(cell), from noisy counts.

Every estimate is shrunk towards r = 1 ("this cell says nothing about the class") by what
the known noise deserves.

======== ===========================================================================================
simple   pseudo-counts spread like the pooled margin
tree     the same, split by split down a binary tree over the bins of a numeric feature
normal   a normal density fitted to the tree
bayes    empirical Bayes: how much cells say about classes is learnt from all features together
======== ===========================================================================================

Not a duplicate of shrinkage.py: the noise model differs. Here all cells have the same noise, and a
strength is the variance of r - 1 in units of (1 - p) / p, truncated to r >= 0; there every cell has
its own noise, rows are made to add up, and positivity is soft. They share the mixture (mixture.py).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

import numpy as np

from discreet.arrays import Booleans, Floats, Indices
from discreet.estimation.mixture import mixture

__all__ = ["Noisy", "bayes", "margin", "normal", "simple", "tree"]


STRENGTHS = np.concatenate([[0.0], np.geomspace(1e-4, 1.0, 17)])
"""The grid of T: how strongly cells depend on the class, from not at all to entirely."""
EM_STEPS = 40
LEAST = 1e-9


@dataclass(frozen=True, eq=False)
class Noisy:
    """One feature's noisy counts.

    Parameters
    ----------
    counts : array of shape (classes, cells)
        The cells that the model looks at.
    deviation : float
        Standard deviation of the noise of each count.
    edges : array of shape (cells + 1,) or None
        Edges of the bins of a numeric feature.
    """

    counts: Floats
    deviation: float
    edges: Floats | None = None


def margin(one: Noisy) -> Floats:
    """P(cell), all classes together: the pooled counts, shrunk towards a flat table."""
    cells = one.counts.shape[1]
    pooled = np.maximum(one.counts.sum(axis=0), 0.0)
    extra = 1 + one.deviation * np.sqrt(len(one.counts)) / 2
    return np.asarray((pooled + extra) / (pooled.sum() + cells * extra))


def simple(one: Noisy) -> Floats:
    """Pseudo-counts lambda = J (1 + s/2) spread like the margin P.

    r = (max(y, 0) + lambda P) / ((sum + lambda) P)
    """
    share = margin(one)
    added = one.counts.shape[1] * (1 + one.deviation / 2)
    kept = np.maximum(one.counts, 0.0)
    return np.asarray(
        np.log((kept + added * share) / ((kept.sum(axis=1, keepdims=True) + added) * share))
    )


def tree(counts: Floats, deviation: Floats) -> tuple[Floats, Floats]:
    """P(bin | class) and P(bin), top down through halves of the bins, for many features at once.

    A class's split is shrunk towards the pooled split, the pooled one towards the middle.

    Parameters
    ----------
    counts : array of shape (features, classes, bins)
    deviation : array of shape (features,)
        Standard deviation of the noise of each count.

    Returns
    -------
    by_class : array of shape (features, classes, bins)
    pooled : array of shape (features, bins)
    """
    features, classes, cells = counts.shape
    below = np.concatenate([np.zeros((features, classes, 1)), counts.cumsum(axis=2)], axis=2)
    by_class, pooled = np.ones(counts.shape), np.ones((features, cells))
    for level in _levels(cells):
        left = below[:, :, level.middle] - below[:, :, level.low]
        right = below[:, :, level.high] - below[:, :, level.middle]
        noise = np.sqrt((level.high - level.low) / 2) * deviation[:, None]
        even = (level.middle - level.low) / (level.high - level.low)
        split = _split(left.sum(axis=1), right.sum(axis=1), 2 + np.sqrt(classes) * noise, even)
        own = _split(left, right, 2 + 2 * noise[:, None], split[:, None])
        for share, found in ((split, pooled), (own, by_class)):
            part = share[..., level.node]
            found[..., level.bins] *= np.where(level.first, part, 1 - part)
    return by_class, pooled


class Level(NamedTuple):
    """The halvings at one depth of the tree: ranges of bins; of every bin its range and half."""

    low: Indices
    middle: Indices
    high: Indices
    bins: Indices
    node: Indices
    first: Booleans


@cache
def _levels(cells: int) -> tuple[Level, ...]:
    found, ranges = [], [(0, cells)]
    while ranges := [(low, high) for low, high in ranges if high - low > 1]:
        low, high = np.array(ranges).T
        middle = (low + high + 1) // 2
        bins = np.concatenate([np.arange(*one) for one in ranges])
        node = np.repeat(np.arange(len(ranges)), high - low)
        found.append(Level(low, middle, high, bins, node, bins < middle[node]))
        ranges = [
            pair for a, b, c in zip(low, middle, high, strict=True) for pair in ((a, b), (b, c))
        ]
    return tuple(found)


def _split(left: Floats, right: Floats, added: Floats, towards: Floats | float) -> Floats:
    left, right = np.maximum(left, 0.0), np.maximum(right, 0.0)
    return np.asarray((left + added * towards) / (left + right + added))


def normal(by_class: Floats, pooled: Floats, one: Noisy) -> Floats:
    """Log-ratios of a normal density with each class's mean and variance."""
    assert one.edges is not None
    centres, width = (one.edges[:-1] + one.edges[1:]) / 2, np.diff(one.edges)
    mean, spread = _spread(by_class, centres, width)
    spread = np.maximum(spread, 1e-3 * _spread(pooled, centres, width)[1])
    away = centres - mean[:, None]
    density = -0.5 * (away**2 / spread[:, None] + np.log(spread)[:, None]) + np.log(width)
    top = density.max(axis=1, keepdims=True)
    whole = top + np.log(np.exp(density - top).sum(axis=1, keepdims=True))
    return np.asarray(density - whole - np.log(pooled))


def _spread(share: Floats, centres: Floats, width: Floats) -> tuple[Floats, Floats]:
    # about the mean: far from zero the difference of two squares has no digits left
    mean = share @ centres
    away = centres - mean[..., None]
    return mean, ((away**2 + width**2 / 12) * share).sum(axis=-1)


def bayes(features: Mapping[str, Noisy], prior: Floats) -> dict[str, Floats]:
    """Empirical Bayes log-ratios of several features, whose strengths share one distribution."""
    parts = {name: RatioLaw(one, prior) for name, one in features.items()}
    _, chances = mixture(
        np.array([part.log_evidence for part in parts.values()]),
        np.full(len(STRENGTHS), 1 / len(STRENGTHS)),
        prior_weight=1.0,
        steps=EM_STEPS,
    )
    return {
        name: part.posterior(chance)
        for (name, part), chance in zip(parts.items(), chances, strict=True)
    }


class RatioLaw:
    """e = y - p Y, what is left of a table when class shares p and margin Y are taken out."""

    def __init__(self, one: Noisy, prior: Floats) -> None:
        counts, s = one.counts, one.deviation
        classes = len(counts)
        self.share = margin(one)
        people = max(float(counts.sum()), 1.0)
        cell = people * self.share
        p = np.maximum(prior, LEAST)[:, None]
        self.left = counts - p * counts.sum(axis=0)
        self.expected = p * cell
        noise = s * s * (1 - 2 * p + classes * p * p)
        self.variance = noise + cell * p * (1 - p) + LEAST
        self.scale = cell**2 * p * (1 - p)  # the prior variance of e at strength 1
        # log-likelihood of the whole table under each strength
        total = STRENGTHS[:, None, None] * self.scale + self.variance
        cells = (np.log(total) + self.left**2 / total).sum(axis=(1, 2))
        self.log_evidence = np.asarray(-0.5 * ((classes - 1) / classes) * cells)

    def posterior(self, chance: Floats) -> Floats:
        """Log-ratios at the posterior mean, made positive and normalised: sum of P r is 1.

        Parameters
        ----------
        chance : array of shape (strengths,)
            How plausible each strength is for this feature.
        """
        from scipy.special import erfcx

        prior = STRENGTHS[:, None, None] * self.scale
        keep = np.tensordot(chance, prior / (prior + self.variance), axes=1)
        away = keep * self.left / self.expected
        spread = np.sqrt(keep * self.variance) / self.expected
        # the mean of a normal law that is known to be at least zero:
        # phi(z) / (1 - Phi(z)) = sqrt(2/pi) / erfcx(z / sqrt 2)
        mean, d = 1 + away, np.maximum(spread, 1e-9)
        tail = erfcx(np.clip(-mean / d, -25.0, 1e6) / np.sqrt(2))
        ratio = np.maximum(mean + d * (np.sqrt(2 / np.pi) / np.maximum(tail, 1e-300)), 0.0)
        ratio = np.maximum(ratio, 1e-4)
        return np.asarray(np.log(ratio / (ratio @ self.share)[:, None]))
