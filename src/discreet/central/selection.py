"""Choosing between scorings by the exponential mechanism, drawn exactly.

Every candidate is a model made of the released tables. Its quality is the number of training
rows that it classifies right. One more record changes every quality by 0 or +1, all in the same
direction, so choosing i with probability proportional to exp(epsilon q_i) costs epsilon (the
usual factor of two is for qualities that may move in both directions).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction

import numpy as np

from discreet.arrays import Floats
from discreet.central.source import Source
from discreet.estimation.log_ratios import LogRatios
from discreet.randomness import Random

__all__ = ["choose", "right"]


PLENTY = 1000
"""Rows times epsilon that are enough to tell candidates apart."""
FEWEST = 10_000
"""Rows that are scored in any case, if there are so many."""


def choose(quality: Sequence[int], epsilon: Fraction, random: Random) -> int:
    """Index i with probability proportional to exp(epsilon * quality[i]), exactly.

    A uniform candidate is kept with probability exp(-epsilon * shortfall), the chance that a
    geometric draw of scale 1 / (epsilon * shortfall) is not zero.
    """
    best = max(quality)
    while True:
        index = int(random.integers(len(quality), 1)[0])
        cost = epsilon * (best - int(quality[index]))
        if cost == 0 or random.geometric(1 / cost, 1)[0] >= 1:
            return index


def right(
    source: Source,
    ratios: LogRatios,
    candidates: Sequence[Mapping[str, Floats]],
    people: float,
    epsilon: float,
    random: Random,
) -> list[int]:
    """How many rows of a random sample each candidate's evidence classifies right.

    Every row is in the sample by a coin of its own, so that a record still changes each number
    by 0 or 1 only; the coin's bias comes from private estimates and from the budget.
    """
    share = Fraction(min(1.0, max(FEWEST, PLENTY / epsilon) / max(people, 1.0)))
    log_prior = np.log(ratios.prior)
    cells = {name: table.cells for name, table in ratios.statistics.tables.items()}
    found = np.zeros(len(candidates), dtype=np.int64)
    for columns, codes in source.batches(share, random):
        index = {name: one.column(columns[name]) for name, one in cells.items()}
        for i, one in enumerate(candidates):
            score = np.tile(log_prior, (len(codes), 1))
            for name, ratio in one.items():
                score += ratio.T[index[name]]
            found[i] += np.count_nonzero(score.argmax(axis=1) == codes)
    return [int(number) for number in found]
