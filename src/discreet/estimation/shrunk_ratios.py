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
from functools import cache, cached_property
from typing import NamedTuple

import numpy as np

from discreet.arrays import Booleans, Floats, Indices
from discreet.estimation.mixture import fit_mixture

__all__ = [
    "NoisyCounts",
    "estimate_bayes_ratios",
    "estimate_normal_ratios",
    "estimate_simple_ratios",
    "estimate_tree_shares",
]


RATIO_STRENGTHS = np.concatenate([[0.0], np.geomspace(1e-4, 1.0, 17)])
"""The grid of T: how strongly cells depend on the class, from not at all to entirely."""
EM_STEPS = 40
"""EM steps that learn the weights of the grid."""
MIN_POSITIVE = 1e-9
"""Floor of a class share, and added to variances, for numerical safety."""


@dataclass(frozen=True, eq=False)
class NoisyCounts:
    """One feature's noisy counts.

    Parameters
    ----------
    counts : array of shape (classes, cells)
        The cells that the model looks at.
    noise_std : float
        Standard deviation of the noise of each count.
    edges : array of shape (cells + 1,) or None
        Edges of the bins of a numeric feature.
    """

    counts: Floats
    noise_std: float
    edges: Floats | None = None

    @cached_property
    def margin(self) -> Floats:
        """P(cell), all classes together: the pooled counts, shrunk towards a flat table."""
        class_count, cell_count = self.counts.shape
        pooled_counts = np.maximum(self.counts.sum(axis=0), 0.0)
        pseudo_count = 1 + self.noise_std * np.sqrt(class_count) / 2
        return np.asarray(
            (pooled_counts + pseudo_count) / (pooled_counts.sum() + cell_count * pseudo_count)
        )


def estimate_simple_ratios(noisy_counts: NoisyCounts) -> Floats:
    """Pseudo-counts lambda = J (1 + s/2) spread like the margin P.

    r = (max(y, 0) + lambda P) / ((sum + lambda) P)
    """
    margin_shares = noisy_counts.margin
    pseudo_total = noisy_counts.counts.shape[1] * (1 + noisy_counts.noise_std / 2)
    positive_counts = np.maximum(noisy_counts.counts, 0.0)
    expected_counts = (positive_counts.sum(axis=1, keepdims=True) + pseudo_total) * margin_shares
    return np.asarray(np.log((positive_counts + pseudo_total * margin_shares) / expected_counts))


def estimate_tree_shares(counts: Floats, noise_std: Floats) -> tuple[Floats, Floats]:
    """P(bin | class) and P(bin), top down through halves of the bins, for many features at once.

    A class's split is shrunk towards the pooled split, the pooled one towards the middle.

    Parameters
    ----------
    counts : array of shape (features, classes, bins)
    noise_std : array of shape (features,)
        Standard deviation of the noise of each count.

    Returns
    -------
    by_class : array of shape (features, classes, bins)
    pooled : array of shape (features, bins)
    """
    feature_count, class_count, bin_count = counts.shape
    cumulative_counts = np.concatenate(
        [np.zeros((feature_count, class_count, 1)), counts.cumsum(axis=2)], axis=2
    )
    by_class, pooled = np.ones(counts.shape), np.ones((feature_count, bin_count))
    for tree_level in _build_tree_levels(bin_count):
        middle_counts = cumulative_counts[:, :, tree_level.middle]
        left_counts = middle_counts - cumulative_counts[:, :, tree_level.low]
        right_counts = cumulative_counts[:, :, tree_level.high] - middle_counts
        range_noise_std = np.sqrt((tree_level.high - tree_level.low) / 2) * noise_std[:, None]
        even_split = (tree_level.middle - tree_level.low) / (tree_level.high - tree_level.low)
        pooled_counts = left_counts.sum(axis=1), right_counts.sum(axis=1)
        pooled_pseudo_total = 2 + np.sqrt(class_count) * range_noise_std
        pooled_split = _shrink_split(*pooled_counts, pooled_pseudo_total, even_split)
        class_split = _shrink_split(
            left_counts, right_counts, 2 + 2 * range_noise_std[:, None], pooled_split[:, None]
        )
        for split_share, tree_shares in ((pooled_split, pooled), (class_split, by_class)):
            bin_split = split_share[..., tree_level.range_index]
            tree_shares[..., tree_level.bins] *= np.where(
                tree_level.in_lower_half, bin_split, 1 - bin_split
            )
    return by_class, pooled


class TreeLevel(NamedTuple):
    """The halvings at one depth of the tree: ranges of bins; of every bin its range and half."""

    low: Indices
    middle: Indices
    high: Indices
    bins: Indices
    range_index: Indices
    in_lower_half: Booleans


@cache
def _build_tree_levels(bin_count: int) -> tuple[TreeLevel, ...]:
    tree_levels, bin_ranges = [], [(0, bin_count)]
    while bin_ranges := [(low, high) for low, high in bin_ranges if high - low > 1]:
        lows, highs = np.array(bin_ranges).T
        middles = (lows + highs + 1) // 2
        bins = np.concatenate([np.arange(*bin_range) for bin_range in bin_ranges])
        range_index = np.repeat(np.arange(len(bin_ranges)), highs - lows)
        in_lower_half = bins < middles[range_index]
        tree_levels.append(TreeLevel(lows, middles, highs, bins, range_index, in_lower_half))
        bin_ranges = [
            half_range
            for low, middle, high in zip(lows, middles, highs, strict=True)
            for half_range in ((low, middle), (middle, high))
        ]
    return tuple(tree_levels)


def _shrink_split(
    left_counts: Floats, right_counts: Floats, pseudo_total: Floats, target_split: Floats | float
) -> Floats:
    left_counts, right_counts = np.maximum(left_counts, 0.0), np.maximum(right_counts, 0.0)
    return np.asarray(
        (left_counts + pseudo_total * target_split) / (left_counts + right_counts + pseudo_total)
    )


def estimate_normal_ratios(by_class: Floats, pooled: Floats, noisy_counts: NoisyCounts) -> Floats:
    """Log-ratios of a normal density with each class's mean and variance."""
    assert noisy_counts.edges is not None
    bin_centres = (noisy_counts.edges[:-1] + noisy_counts.edges[1:]) / 2
    bin_widths = np.diff(noisy_counts.edges)
    class_means, class_variances = _compute_mean_and_variance(by_class, bin_centres, bin_widths)
    class_variances = np.maximum(
        class_variances, 1e-3 * _compute_mean_and_variance(pooled, bin_centres, bin_widths)[1]
    )
    centre_offset = bin_centres - class_means[:, None]
    log_density = -0.5 * (
        centre_offset**2 / class_variances[:, None] + np.log(class_variances)[:, None]
    ) + np.log(bin_widths)
    max_log_density = log_density.max(axis=1, keepdims=True)
    log_total = max_log_density + np.log(
        np.exp(log_density - max_log_density).sum(axis=1, keepdims=True)
    )
    return np.asarray(log_density - log_total - np.log(pooled))


def _compute_mean_and_variance(
    bin_shares: Floats, bin_centres: Floats, bin_widths: Floats
) -> tuple[Floats, Floats]:
    # about the mean: far from zero the difference of two squares has no digits left
    mean_value = bin_shares @ bin_centres
    centre_offset = bin_centres - mean_value[..., None]
    return mean_value, ((centre_offset**2 + bin_widths**2 / 12) * bin_shares).sum(axis=-1)


def estimate_bayes_ratios(features: Mapping[str, NoisyCounts], prior: Floats) -> dict[str, Floats]:
    """Empirical Bayes log-ratios of several features, whose strengths share one distribution."""
    ratio_laws = {name: RatioLaw(noisy_counts, prior) for name, noisy_counts in features.items()}
    _, strength_weights = fit_mixture(
        np.array([ratio_law.log_evidence for ratio_law in ratio_laws.values()]),
        np.full(len(RATIO_STRENGTHS), 1 / len(RATIO_STRENGTHS)),
        prior_weight=1.0,
        steps=EM_STEPS,
    )
    return {
        name: ratio_law.compute_log_ratios(feature_weights)
        for (name, ratio_law), feature_weights in zip(
            ratio_laws.items(), strength_weights, strict=True
        )
    }


class RatioLaw:
    """e = y - p Y, what is left of a table when class shares p and margin Y are taken out."""

    def __init__(self, noisy_counts: NoisyCounts, prior: Floats) -> None:
        counts, s = noisy_counts.counts, noisy_counts.noise_std
        class_count = len(counts)
        self.margin = noisy_counts.margin
        people = max(float(counts.sum()), 1.0)
        expected_cells = people * self.margin
        p = np.maximum(prior, MIN_POSITIVE)[:, None]
        self.residual = counts - p * counts.sum(axis=0)
        self.expected = p * expected_cells
        noise_variance = s * s * (1 - 2 * p + class_count * p * p)
        self.variance = noise_variance + expected_cells * p * (1 - p) + MIN_POSITIVE
        # the prior variance of e at strength 1
        self.unit_variance = expected_cells**2 * p * (1 - p)
        # log-likelihood of the whole table under each strength
        total_variance = RATIO_STRENGTHS[:, None, None] * self.unit_variance + self.variance
        cell_log_density = np.log(total_variance) + self.residual**2 / total_variance
        table_log_density = cell_log_density.sum(axis=(1, 2))
        self.log_evidence = np.asarray(-0.5 * ((class_count - 1) / class_count) * table_log_density)

    def compute_log_ratios(self, strength_weights: Floats) -> Floats:
        """Log-ratios at the posterior mean, made positive and normalised: sum of P r is 1.

        Parameters
        ----------
        strength_weights : array of shape (strengths,)
            How plausible each strength is for this feature.
        """
        from scipy.special import erfcx

        prior_variance = RATIO_STRENGTHS[:, None, None] * self.unit_variance
        signal_share = np.tensordot(
            strength_weights, prior_variance / (prior_variance + self.variance), axes=1
        )
        ratio_offset = signal_share * self.residual / self.expected
        ratio_std = np.sqrt(signal_share * self.variance) / self.expected
        # the mean of a normal law that is known to be at least zero:
        # phi(z) / (1 - Phi(z)) = sqrt(2/pi) / erfcx(z / sqrt 2)
        mean_ratio, d = 1 + ratio_offset, np.maximum(ratio_std, 1e-9)
        scaled_tail = erfcx(np.clip(-mean_ratio / d, -25.0, 1e6) / np.sqrt(2))
        positive_ratio = np.maximum(
            mean_ratio + d * (np.sqrt(2 / np.pi) / np.maximum(scaled_tail, 1e-300)), 0.0
        )
        positive_ratio = np.maximum(positive_ratio, 1e-4)
        return np.asarray(np.log(positive_ratio / (positive_ratio @ self.margin)[:, None]))
