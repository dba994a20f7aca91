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
from discreet.estimation.mixture import mixed, mixture

__all__ = ["shrunk", "soft", "toned_down"]


STRENGTHS = np.array([0.0, 0.05, 0.1, 0.2, 0.4, 0.8])
EM_STEPS = 30
PRIOR_WEIGHT = 12.0
STRONG, FROM = 2, 0.4
"""The two largest strengths are strong; beyond this share of strong features counts weigh in."""
OVERLAP, LEAST_TONE = 0.5, 0.7
"""Share of the class's entropy that features may claim together before they are toned down, and
the factor by which they are at most."""
PSEUDO = 1.0
"""People who are added to every cell of every class: few people say little about rare cells."""
TINY = 1e-12


def soft(x: Floats, s: Floats, kappa: Floats | float) -> Floats:
    """Soft positivity: x far above the noise s, small and positive far below zero."""
    return np.asarray((x + np.sqrt(x * x + 4 * kappa * s * s)) / 2)


def shrunk(
    tables: Mapping[str, tuple[Floats, Floats]],
    prior: Floats,
    people: Mapping[str, float],
    alone: Mapping[str, float],
) -> dict[str, Floats]:
    """P(cell | class) of every feature, shrunk as its noise deserves.

    Parameters
    ----------
    tables : mapping of name to (counts, variances)
        Each of shape (classes, cells).
    prior : array of shape (classes,)
        Valid class probabilities.
    people : mapping of name to float
        How many people each table was estimated from; sampling noise is judged by it.
    alone : mapping of name to float
        Which part of the noise of each table is every class's own; plain counts count as far.
    """
    parts = {n: Interaction(*table, prior, people[n]) for n, table in tables.items()}
    open_ones = {name: part.log_evidence() for name, part in parts.items() if part.cells > 1}
    _, chances = mixture(
        np.array(list(open_ones.values())),
        np.full(len(STRENGTHS), 1 / len(STRENGTHS)),
        prior_weight=PRIOR_WEIGHT,
        steps=EM_STEPS,
    )
    plain = 0.0  # the part of the plain counts
    if len(chances):
        strong = chances[:, -STRONG:].sum(axis=1).mean()
        plain = float(np.sqrt(max(strong - FROM, 0.0) / (1 - FROM)))
    found = {name: np.ones((len(prior), 1)) for name in parts}  # of one cell there is no doubt
    for name, chance in zip(open_ones, chances, strict=True):
        of_class = people[name] * np.maximum(prior, TINY)[:, None]
        shrunken = of_class * parts[name].posterior(chance) + PSEUDO
        found[name] = mixed(shrunken, tables[name][0], plain * alone[name])
    return found


def toned_down(conditional: Mapping[str, Floats], prior: Floats) -> dict[str, Floats]:
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
    margins = {name: p @ one for name, one in conditional.items()}
    claims = [
        float((p[:, None] * one * np.log(one / margins[name])).sum())
        for name, one in conditional.items()
    ]
    entropy = -float((p * np.log(p)).sum())
    allowed, claimed = max([OVERLAP * entropy, *claims]), sum(claims)
    if claimed <= allowed:
        return dict(conditional)
    b = max(np.sqrt(allowed / claimed), LEAST_TONE)
    return {
        name: margins[name] * np.power(one / margins[name], b) for name, one in conditional.items()
    }


class Interaction:
    """One feature: its margin, and what is left of the table when margin and prior are removed."""

    def __init__(self, counts: Floats, variances: Floats, prior: Floats, people: float) -> None:
        self.cells = counts.shape[1]
        whole = counts.sum()
        if whole < 1:
            whole = people
        joint, noise = counts / whole, variances / whole**2
        p = np.maximum(prior, TINY)[:, None]
        observed = joint.sum(axis=0)
        self.margin = _margin(observed, noise.sum(axis=0))
        self.expected = p * self.margin
        spread = noise + self.expected * (1 - self.expected) / people + TINY**2
        # J - p Y with the observed margin Y: the margin's own error drops out. Its variance is
        # that of J_c - p_c (J_1 + … + J_K): S_c (1 - 2 p_c) + p_c^2 (S_1 + … + S_K)
        left = joint - p * observed
        variance = spread * (1 - 2 * p) + p**2 * spread.sum(axis=0)
        # a class's row sums to zero: what is left of its sum is noise, shared out by variance
        share = variance / variance.sum(axis=1, keepdims=True)
        self.left = left - share * left.sum(axis=1, keepdims=True)
        self.variance = np.maximum(variance * (1 - share), TINY**2)
        # the size of an interaction of strength one: I_c = p_c M (u_c - p_1 u_1 - … - p_K u_K) for
        # departures u of equal size, alike for both classes when there are two
        own = p**2 * ((1 - p) ** 2 + (p**2).sum() - p**2)
        self.scale = np.maximum(self.margin * (1 - self.margin) * own, TINY**2)

    def log_evidence(self) -> Floats:
        """Log-likelihood of the table under each strength.

        The cells of an interaction are not independent: K d of them have (K - 1)(d - 1) degrees of
        freedom, and the evidence is counted accordingly.
        """
        total = STRENGTHS[:, None, None] ** 2 * self.scale + self.variance
        cells = -0.5 * (np.log(total) + self.left**2 / total)
        classes = len(self.left)
        freedom = (classes - 1) * (self.cells - 1) / (classes * self.cells)
        return np.asarray(cells.sum(axis=(1, 2)) * freedom)

    def posterior(self, chance: Floats) -> Floats:
        """P(cell | class), averaged over the strengths by how plausible each is."""
        prior = STRENGTHS[:, None, None] ** 2 * self.scale
        keep = np.tensordot(chance, prior / (prior + self.variance), axes=1)
        ratio = keep * self.left / self.expected
        s = np.sqrt(keep * self.variance) / self.expected
        conditional = self.margin * soft(1 + ratio, s, np.minimum(1.0, s * s) / 4)
        conditional = np.maximum(conditional, TINY)
        return np.asarray(conditional / conditional.sum(axis=1, keepdims=True))


def _margin(observed: Floats, noise: Floats) -> Floats:
    """Row sums shrunk to uniform (James and Stein, with the known noise), made positive."""
    cells = len(observed)
    uniform = 1 / cells
    away = observed - uniform
    keep = max(0.0, 1 - noise.sum() / max(float(away @ away), TINY)) if cells > 1 else 0.0
    margin = soft(uniform + keep * away, np.sqrt(keep * noise), 1.0)
    margin = np.maximum(margin, TINY)
    return np.asarray(margin / margin.sum())
