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

import numpy as np

from discreet.arrays import Floats
from discreet.estimation.logistic_normal import (
    SHARED_VARIANCE_PARTS,
    STRENGTH_GRID,
    TablePosterior,
    build_table_prior,
    find_modes,
)
from discreet.estimation.mixture import fit_mixture, pool_log_linearly

__all__ = ["fit_posteriors", "smooth_tables"]


EM_STEPS = 30
"""EM steps that learn the weights of the grid."""
PRIOR_FEATURES = 4.0
"""Features that the prior of the grid's weights is worth; 12 compared:
docs/experiments/local.md."""
MAX_COUNT_WEIGHT = 0.15
"""Weight of the plain counts' log-probability, less where their noise is wider than all people;
.08, .15 and .3 compared: docs/experiments/local.md, "Numbers: a part of the plain counts"."""
TINY = 1e-12


def smooth_tables(
    tables: Mapping[str, tuple[Floats, Floats]],
    bin_counts: Mapping[str, int],
    prior: Floats,
    people_by_feature: Mapping[str, float],
    own_noise_shares: Mapping[str, float],
) -> dict[str, Floats]:
    """P(bin | class) of every numeric feature.

    Parameters
    ----------
    tables : mapping of name to (counts, variances)
        Each of shape (classes, cells).
    bin_counts : mapping of name to int
        How many of the cells are bins in order; a further one is for missing values.
    prior : array of shape (classes,)
        Valid class probabilities.
    people_by_feature : mapping of name to float
        How many people each table was estimated from; sampling noise is judged by it.
    own_noise_shares : mapping of name to float
        Which part of the noise of each table is every class's own. What only moves people from
        class to class does not average out, and plain counts are left out as far.
    """
    log_evidence, grid_probabilities, share_tables = {}, {}, {}
    for name, (counts, variances) in tables.items():
        table_total = max(float(counts.sum()), 1.0)
        share_tables[name] = counts / table_total, variances / table_total**2
    for name, posterior in fit_posteriors(share_tables, bin_counts, prior, people_by_feature):
        log_evidence[name] = posterior.log_evidence
        grid_probabilities[name] = np.maximum(posterior.probabilities, TINY)
    start_weights = np.where(STRENGTH_GRID[:, 0] == 0, 1.0, 1 / len(SHARED_VARIANCE_PARTS))
    _, grid_weights = fit_mixture(
        np.array(list(log_evidence.values())),
        start_weights / start_weights.sum(),
        prior_weight=PRIOR_FEATURES,
        steps=EM_STEPS,
    )
    mean_probabilities = {
        name: np.tensordot(feature_weights, grid_probabilities[name], axes=1)
        for name, feature_weights in zip(log_evidence, grid_weights, strict=True)
    }
    pooled_tables = {}
    for name, (counts, variances) in tables.items():
        # noise wider than the number of people carries no evidence
        known_share = min(1.0, people_by_feature[name] ** 2 / max(float(variances.mean()), TINY))
        pooled_tables[name] = pool_log_linearly(
            mean_probabilities[name],
            counts,
            MAX_COUNT_WEIGHT * known_share * own_noise_shares[name],
        )
    return pooled_tables


def fit_posteriors(
    tables: Mapping[str, tuple[Floats, Floats]],
    bin_counts: Mapping[str, int],
    prior: Floats,
    people_by_feature: Mapping[str, float],
) -> Iterator[tuple[str, TablePosterior]]:
    """Each feature with what its table leaves possible.

    Parameters are those of ``smooth_tables``, with shares of all people in place of counts.
    """
    names_by_shape: dict[tuple[int, int], list[str]] = {}
    for name, (shares, _) in tables.items():
        names_by_shape.setdefault((shares.shape[1], bin_counts[name]), []).append(name)
    for (cell_count, ordered_cells), names in names_by_shape.items():
        joint_shares, noise_variances = (np.array([tables[n][i] for n in names]) for i in (0, 1))
        people_estimates = np.array([people_by_feature[n] for n in names])
        table_prior = build_table_prior(len(prior), cell_count, ordered_cells)
        table_posteriors = find_modes(
            joint_shares, noise_variances, people_estimates, np.maximum(prior, TINY), table_prior
        )
        yield from zip(names, table_posteriors, strict=True)
