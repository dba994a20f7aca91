"""Which event tells two inputs apart best, and what it proves about epsilon.

Scores are fitted on some samples, an event "the score is at least t" is chosen on others, and its
bound is computed on yet others.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.stats import beta

from discreet.audit.artefact import Leaves
from discreet.audit.scores import Score, candidates

__all__ = ["Event", "best_event", "lower_bound"]


@dataclass(frozen=True)
class Event:
    """Something that may be seen in an artefact.

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
        """In how many artefacts it is seen."""
        seen = self.score(artefacts) * (-1 if self.swapped else 1) >= self.threshold
        return int(np.count_nonzero(seen))


def lower_bound(seen: Any, other: Any, samples: int, alpha: float, delta: float = 0.0) -> Any:
    """What epsilon is at least, with probability 1 - alpha over the samples.

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
    k, m = np.asarray(seen, float), np.asarray(other, float)
    with np.errstate(all="ignore"):
        low = np.where(k > 0, beta.ppf(alpha / 2, k, samples - k + 1), 0.0)
        high = np.where(m < samples, beta.ppf(1 - alpha / 2, m + 1, samples - m), 1.0)
        return np.maximum(np.log(np.maximum(low - delta, 1e-300) / high), 0.0)


def best_event(
    fit: tuple[Sequence[Leaves], Sequence[Leaves]],
    choose: tuple[Sequence[Leaves], Sequence[Leaves]],
    alpha: float,
    delta: float = 0.0,
) -> Event | None:
    """The event that promises the largest bound on epsilon; None if all artefacts are the same.

    Parameters
    ----------
    fit, choose : pair of lists of leaves
        Artefacts of either input: scores are fitted on the first, the event chosen on the second.
        Its bound must then be computed on further ones.
    alpha : float
        Of the bound to come.
    delta : float
    """
    best: tuple[float, Event | None] = (-1.0, None)
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
            # twice as many samples will confirm it
            bounds = lower_bound(2 * seen, 2 * other, 2 * samples, alpha, delta)
            # of two that tell nearly the same, the one that is easier to say comes first
            if len(steps) and bounds.max() > best[0] + (0.1 if best[1] else 0.0):
                t = float(steps[int(np.argmax(bounds))])
                words = candidate.words(t, swapped)
                best = float(bounds.max()), Event(candidate.score, t, swapped, words)
    return best[1]
