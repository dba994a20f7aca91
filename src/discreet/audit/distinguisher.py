"""Find the event that best distinguishes two inputs, and bound epsilon by it.

Scores are fitted on some samples, an event "the score is at least t" is chosen on others, and its
bound is computed on yet others.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.stats import beta, binom

from discreet.audit.artefact import Leaves
from discreet.audit.scores import Score, candidates

__all__ = ["Event", "best_event", "detectable", "lower_bound"]

SURE = 1e-3
"""Error probability at which candidate events are compared; small, because there are many."""
OFTEN = 0.9
"""Power at which a loss counts as detectable."""


@dataclass(frozen=True)
class Event:
    """An event: a score of an artefact is at least a threshold.

    Parameters
    ----------
    score : callable
        Artefacts to numbers.
    threshold : float
        The event is a score of at least this.
    swapped : bool
        Whether it is the other input that makes it likelier.
    words : str
    """

    score: Score
    threshold: float
    swapped: bool
    words: str

    def count(self, artefacts: Sequence[Leaves]) -> int:
        """Count the artefacts in which the event occurs."""
        seen = self.score(artefacts) * (-1 if self.swapped else 1) >= self.threshold
        return int(np.count_nonzero(seen))


def lower_bound(seen: Any, other: Any, samples: int, alpha: float, delta: float = 0.0) -> Any:
    """Lower confidence bound on epsilon, at level 1 - alpha.

    P(A | one) - delta <= exp(epsilon) P(A | other): Clopper-Pearson bounds for both sides, each
    wrong with probability alpha/2.

    Parameters
    ----------
    seen, other : int or array of int
        How often the event was seen with either input.
    samples : int
        Of each input.
    alpha : float
    delta : float

    Examples
    --------
    >>> round(float(lower_bound(1000, 0, 1000, 0.01)), 2)
    5.24
    """
    return np.maximum(_log_ratio(seen, other, samples, alpha, delta), 0.0)


def _log_ratio(seen: Any, other: Any, samples: int, alpha: float, delta: float) -> Any:
    """The same bound without truncation at zero, to rank events."""
    low, high = _least(seen, samples, alpha), _most(other, samples, alpha)
    return np.log(np.maximum(low - delta, 1e-300) / high)


def _least(seen: Any, samples: int, alpha: float) -> Any:
    k = np.asarray(seen, float)
    with np.errstate(all="ignore"):
        return np.where(k > 0, beta.ppf(alpha / 2, k, samples - k + 1), 0.0)


def _most(seen: Any, samples: int, alpha: float) -> Any:
    k = np.asarray(seen, float)
    with np.errstate(all="ignore"):
        return np.where(k < samples, beta.ppf(1 - alpha / 2, k + 1, samples - k), 1.0)


def detectable(
    samples: int, alpha: float, promised: float, delta: float = 0.0, parts: int = 1
) -> float:
    """Compute the smallest loss that these samples show to exceed a promise, 9 times in 10.

    For a loss that is shared evenly by independent numbers with Laplace noise, and its best event,
    "each lies on the far side": of probability p = (1 + exp(-loss / parts))^-parts with one input
    and exp(-loss) p with the other. A distinguisher that has to find this event does no better.

    Parameters
    ----------
    samples : int
        Of each input, with which the event is confirmed.
    alpha : float
        Of the bound.
    promised, delta : float
    parts : int
        Among how many numbers the loss is shared.

    Returns
    -------
    float
        Infinite if no loss would be found.

    Examples
    --------
    >>> round(detectable(500, 0.01, 1.0), 2), round(detectable(500, 0.01, 1.0, parts=3), 2)
    (1.39, 1.95)
    """
    counts = np.arange(samples + 1)
    # with s sightings of one input, how many of the other are few enough
    limit = (_least(counts, samples, alpha) - delta) / math.exp(promised)
    enough = np.searchsorted(_most(counts, samples, alpha), limit, side="left") - 1

    def found(loss: float) -> float:
        p = (1 + math.exp(-loss / parts)) ** -parts
        few = np.where(enough >= 0, binom.cdf(enough, samples, p * math.exp(-loss)), 0.0)
        return float(binom.pmf(counts, samples, p) @ few)

    low, high = promised, promised + 30.0
    if found(high) < OFTEN:
        return math.inf
    while high - low > 1e-3:
        middle = (low + high) / 2
        low, high = (low, middle) if found(middle) >= OFTEN else (middle, high)
    return high


def best_event(
    fit: tuple[Sequence[Leaves], Sequence[Leaves]],
    choose: tuple[Sequence[Leaves], Sequence[Leaves]],
    delta: float = 0.0,
) -> Event | None:
    """Choose the event with the largest bound on epsilon; None if all artefacts are equal.

    Parameters
    ----------
    fit, choose : pair of lists of leaves
        Artefacts of either input: scores are fitted on the first, the event chosen on the second.
        Its bound must then be computed on further ones.
    delta : float
    """
    best: tuple[float, Event | None] = (-math.inf, None)
    samples = len(choose[0])
    for candidate in candidates(*fit):
        scores = [candidate.score(side) for side in choose]
        for swapped in (False, True):
            mine, theirs = (np.sort(-s) if swapped else np.sort(s) for s in scores)
            if swapped:
                mine, theirs = theirs, mine
            steps = np.unique(np.concatenate([mine, theirs]))
            steps = steps[np.isfinite(steps)]
            if len(steps) > 200:
                steps = steps[np.linspace(0, len(steps) - 1, 200).astype(int)]
            seen, other = (
                np.count_nonzero(np.isfinite(side)) - np.searchsorted(side, steps, side="left")
                for side in (mine, theirs)
            )
            # stricter than the stated confidence: the best of many is selected
            bounds = _log_ratio(seen, other, samples, SURE, delta)
            # of two nearly equal events, prefer the simpler one
            if len(steps) and bounds.max() > best[0] + (0.1 if best[1] else 0.0):
                t = float(steps[int(np.argmax(bounds))])
                words = candidate.words(t, swapped)
                best = float(bounds.max()), Event(candidate.score, t, swapped, words)
    return best[1]
