"""Empirical Bayes for class-by-cell tables of categories whose noise variance is known.

How strongly features depend on the class is learnt from all features together (a mixture over a
grid of strengths, mixture.py); each cell is then shrunk towards "no dependence" by as much as
its noise deserves. With no evidence at all, the model predicts the majority class.

Shrinking probabilities shrinks the log-odds of rare cells most, log(0.6 / 0.01) much more than
log(0.4 / 0.99). Where most features turn out to be strong, their noise averages out in the sum and
that bias is what is left; so log-probabilities are mixed with those of the plain counts, by how
many of the features are strong.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from discreet.arrays import Floats
from discreet.estimation.mixture import fit_mixture, pool_log_linearly

__all__ = ["scale_evidence", "shrink_tables", "soft_positive_part", "temper_evidence"]


CATEGORY_STRENGTHS = np.array([0.0, 0.05, 0.1, 0.2, 0.4, 0.8])
"""Grid of the strength t of a feature's departures from independence: docs/maths.md."""
EM_STEPS = 30
"""EM steps that learn the weights of the grid."""
PRIOR_FEATURES = 12.0
"""Features that the prior of the grid's weights is worth."""
STRONG_STRENGTH_COUNT = 2
"""Number of strengths, the largest ones, that count as strong."""
MIN_STRONG_SHARE = 0.4
"""Beyond this share of strong features, plain counts weigh in."""
FREE_ENTROPY_SHARE = 0.5
"""Share of the class's entropy that features may claim together before they are toned down."""
MIN_EVIDENCE_WEIGHT = 0.7
"""Smallest factor by which log-odds are toned down."""
PSEUDO_PEOPLE = 1.0
"""People who are added to every cell of every class: few people say little about rare cells."""
TINY = 1e-12


def soft_positive_part(x: Floats, s: Floats, kappa: Floats | float) -> Floats:
    """Soft positivity: x far above the noise s, small and positive far below zero."""
    return np.asarray((x + np.sqrt(x * x + 4 * kappa * s * s)) / 2)


def shrink_tables(
    tables: Mapping[str, tuple[Floats, Floats]],
    prior: Floats,
    people_by_feature: Mapping[str, float],
    own_noise_shares: Mapping[str, float],
) -> dict[str, Floats]:
    """P(cell | class) of every feature, shrunk as its noise deserves.

    Parameters
    ----------
    tables : mapping of name to (counts, variances)
        Each of shape (classes, cells).
    prior : array of shape (classes,)
        Valid class probabilities.
    people_by_feature : mapping of name to float
        How many people each table was estimated from; sampling noise is judged by it.
    own_noise_shares : mapping of name to float
        Which part of the noise of each table is every class's own; plain counts count as far.
    """
    interactions = {
        table_name: Interaction(*table, prior, people_by_feature[table_name])
        for table_name, table in tables.items()
    }
    log_evidence = {
        name: interaction.log_evidence
        for name, interaction in interactions.items()
        if interaction.cell_count > 1
    }
    _, strength_weights = fit_mixture(
        np.array(list(log_evidence.values())),
        np.full(len(CATEGORY_STRENGTHS), 1 / len(CATEGORY_STRENGTHS)),
        prior_weight=PRIOR_FEATURES,
        steps=EM_STEPS,
    )
    count_weight = 0.0  # the part of the plain counts
    if len(strength_weights):
        strong_share = strength_weights[:, -STRONG_STRENGTH_COUNT:].sum(axis=1).mean()
        count_weight = float(
            np.sqrt(max(strong_share - MIN_STRONG_SHARE, 0.0) / (1 - MIN_STRONG_SHARE))
        )
    conditional = {
        name: np.ones((len(prior), 1)) for name in interactions
    }  # of one cell there is no doubt
    for name, feature_weights in zip(log_evidence, strength_weights, strict=True):
        class_people = people_by_feature[name] * np.maximum(prior, TINY)[:, None]
        shrunk_counts = (
            class_people * interactions[name].compute_posterior(feature_weights) + PSEUDO_PEOPLE
        )
        conditional[name] = pool_log_linearly(
            shrunk_counts, tables[name][0], count_weight * own_noise_shares[name]
        )
    return conditional


def temper_evidence(conditional: Mapping[str, Floats], prior: Floats) -> dict[str, Floats]:
    """Temper the log-odds where features together claim more information than the class has.

    Features cannot together tell more about the class than its entropy H. Where they claim more
    than H/2 (and more than the strongest alone), many of them say the same thing, and all log-odds
    are multiplied by b = sqrt(allowed / claimed), at least 0.7: P(v | c) becomes
    P(v) (P(v | c) / P(v))^b. Its sum over v is then at most one; only ratios of classes matter.

    Parameters
    ----------
    conditional : mapping of name to array of shape (classes, cells)
        P(cell | class).
    prior : array of shape (classes,)
    """
    p = np.maximum(prior, TINY)
    cell_margins = {name: p @ cell_probability for name, cell_probability in conditional.items()}
    feature_information = [
        float((p[:, None] * cell_probability * np.log(cell_probability / cell_margins[name])).sum())
        for name, cell_probability in conditional.items()
    ]
    class_entropy = -float((p * np.log(p)).sum())
    allowed_information = max([FREE_ENTROPY_SHARE * class_entropy, *feature_information])
    claimed_information = sum(feature_information)
    if claimed_information <= allowed_information:
        return dict(conditional)
    b = max(np.sqrt(allowed_information / claimed_information), MIN_EVIDENCE_WEIGHT)
    return scale_evidence(conditional, prior, float(b))


def scale_evidence(
    conditional: Mapping[str, Floats], prior: Floats, beta: float
) -> dict[str, Floats]:
    """Multiply the log-odds of every cell by beta: P(v | c) becomes P(v) (P(v | c) / P(v))^beta.

    For beta up to 1 the sum over v is at most one by Jensen's inequality; beyond, all classes are
    divided by their largest sum, which leaves the log-odds as they are.

    Parameters
    ----------
    conditional : mapping of name to array of shape (classes, cells)
        P(cell | class), above zero.
    prior : array of shape (classes,)
    beta : float
        At least 0.
    """
    p = np.maximum(prior, TINY) / np.maximum(prior, TINY).sum()
    scaled_tables = {}
    for name, cell_probability in conditional.items():
        margin = p @ cell_probability
        scaled_table = margin * np.power(cell_probability / margin, beta)
        scaled_tables[name] = scaled_table / max(1.0, float(scaled_table.sum(axis=1).max()))
    return scaled_tables


class Interaction:
    """One feature: its margin, and what is left of the table when margin and prior are removed."""

    def __init__(self, counts: Floats, variances: Floats, prior: Floats, people: float) -> None:
        self.cell_count = counts.shape[1]
        table_total = counts.sum()
        if table_total < 1:
            table_total = people
        joint_shares, noise_variance = counts / table_total, variances / table_total**2
        p = np.maximum(prior, TINY)[:, None]
        observed_margin = joint_shares.sum(axis=0)
        self.margin = _shrink_margin(observed_margin, noise_variance.sum(axis=0))
        self.expected_joint = p * self.margin
        joint_variance = (
            noise_variance + self.expected_joint * (1 - self.expected_joint) / people + TINY**2
        )
        # J - p Y with the observed margin Y: the margin's own error drops out. Its variance is
        # that of J_c - p_c (J_1 + … + J_K): S_c (1 - 2 p_c) + p_c^2 (S_1 + … + S_K)
        raw_residual = joint_shares - p * observed_margin
        residual_variance = joint_variance * (1 - 2 * p) + p**2 * joint_variance.sum(axis=0)
        # a class's row sums to zero: what is left of its sum is noise, shared out by variance
        variance_shares = residual_variance / residual_variance.sum(axis=1, keepdims=True)
        self.residual = raw_residual - variance_shares * raw_residual.sum(axis=1, keepdims=True)
        self.variance = np.maximum(residual_variance * (1 - variance_shares), TINY**2)
        # the size of an interaction of strength one: I_c = p_c M (u_c - p_1 u_1 - … - p_K u_K) for
        # departures u of equal size, alike for both classes when there are two
        strength_scale = p**2 * ((1 - p) ** 2 + (p**2).sum() - p**2)
        self.unit_variance = np.maximum(self.margin * (1 - self.margin) * strength_scale, TINY**2)
        # log-likelihood of the table under each strength; its K d cells are not independent, they
        # have (K - 1)(d - 1) degrees of freedom, and the evidence is counted accordingly
        total_variance = CATEGORY_STRENGTHS[:, None, None] ** 2 * self.unit_variance + self.variance
        cell_log_density = -0.5 * (np.log(total_variance) + self.residual**2 / total_variance)
        free_share = (len(p) - 1) * (self.cell_count - 1) / (len(p) * self.cell_count)
        self.log_evidence = np.asarray(cell_log_density.sum(axis=(1, 2)) * free_share)

    def compute_posterior(self, strength_weights: Floats) -> Floats:
        """P(cell | class), averaged over the strengths by how plausible each is."""
        prior_variance = CATEGORY_STRENGTHS[:, None, None] ** 2 * self.unit_variance
        signal_share = np.tensordot(
            strength_weights, prior_variance / (prior_variance + self.variance), axes=1
        )
        relative_residual = signal_share * self.residual / self.expected_joint
        s = np.sqrt(signal_share * self.variance) / self.expected_joint
        conditional = self.margin * soft_positive_part(
            1 + relative_residual, s, np.minimum(1.0, s * s) / 4
        )
        conditional = np.maximum(conditional, TINY)
        return np.asarray(conditional / conditional.sum(axis=1, keepdims=True))


def _shrink_margin(observed_margin: Floats, noise_variance: Floats) -> Floats:
    """Row sums shrunk to uniform (James and Stein, with the known noise), made positive."""
    cell_count = len(observed_margin)
    uniform_share = 1 / cell_count
    margin_offset = observed_margin - uniform_share
    signal_share = (
        max(0.0, 1 - noise_variance.sum() / max(float(margin_offset @ margin_offset), TINY))
        if cell_count > 1
        else 0.0
    )
    margin = soft_positive_part(
        uniform_share + signal_share * margin_offset, np.sqrt(signal_share * noise_variance), 1.0
    )
    margin = np.maximum(margin, TINY)
    return np.asarray(margin / margin.sum())
