"""How far a fraction of liars moves an estimate, and how far noise does anyway.

Privacy makes this worse: what hides a person also hides a liar. A liar sends the report that
supports one value the most, instead of a randomized answer. (Run: python examples/poisoning.py)
"""

from __future__ import annotations

import numpy as np

from discreet.mechanisms.frequency import ORACLES, FrequencyOracle
from discreet.randomness import Random, SeededRandom

PEOPLE, SIZE, TARGET = 20_000, 16, 3


def forged(oracle: FrequencyOracle, random: Random) -> np.ndarray:
    """One report that supports the target as much as any report can."""
    honest = oracle.perturb(np.full(2_000, TARGET), random)
    matrix = oracle.encode(honest)
    support = [oracle.tally(oracle.decode(row[None, :])) for row in matrix[:200]]
    # a report that supports the target, and as few others as possible
    best = max(range(len(support)), key=lambda k: (support[k][TARGET], -support[k].sum()))
    return matrix[best]


def moved(oracle: FrequencyOracle, share: float, seed: int = 0) -> tuple[float, float]:
    """How far the estimated share of the target moves, and its deviation without any liar."""
    random = SeededRandom(seed)
    rng = np.random.default_rng(seed)
    values = rng.integers(0, SIZE, PEOPLE)
    sent = oracle.encode(oracle.perturb(values, random))
    liars = round(share * PEOPLE)
    honest = oracle.estimate(oracle.tally(oracle.decode(sent)), PEOPLE)[TARGET] / PEOPLE
    sent[:liars] = forged(oracle, random)
    lied = oracle.estimate(oracle.tally(oracle.decode(sent)), PEOPLE)[TARGET] / PEOPLE
    return float(lied - honest), float(np.sqrt(oracle.variance(1 / SIZE) / PEOPLE))


if __name__ == "__main__":
    print(f"{PEOPLE:,} people, {SIZE} values, true share of the target {1 / SIZE:.3f}")
    print(f"{'oracle':8}{'epsilon':>8}{'influence':>11}{'1 % lie':>10}{'5 % lie':>10}{'noise':>9}")
    for epsilon in (0.5, 1.0, 2.0, 4.0):
        for name in ("de", "oue", "ss"):
            oracle = ORACLES[name](epsilon, SIZE)
            (one, noise), (five, _) = moved(oracle, 0.01), moved(oracle, 0.05)
            print(
                f"{name:8}{epsilon:8.1f}{oracle.influence:11.1f}{one:+10.3f}{five:+10.3f}"
                f"{noise:9.3f}"
            )
