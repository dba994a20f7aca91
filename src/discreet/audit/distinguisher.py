"""Which event tells two inputs apart best: fitted on some samples, chosen on others.

Every leaf of the artefacts gives a score, the log-ratio of how often its value (or the range it
falls into) was seen with either input. Single leaves, the sums of the best few (a Naive Bayes of
the released artefact) and boosted trees compete; the event is "the score is at least t".
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.stats import beta

from discreet.arrays import Floats
from discreet.audit.artefact import Leaves

__all__ = ["Event", "best_event", "lower_bound"]

FEW = 64
"""Different values of a leaf up to which each counts by itself; beyond, ranges do."""
COARSE = (0.03, 0.15, 0.4, 0.6, 0.85, 0.97)
FINE = (0.005, 0.02, 0.05, 0.1, 0.2, 0.35, 0.5, 0.65, 0.8, 0.9, 0.95, 0.98, 0.995)
"""Where the ranges of a number end, for few and for many samples; short ones at the tails, where a
wrong scale shows."""
MANY = 400
SINGLE = 12
"""Leaves that are tried alone."""
SUMS = (2, 4, 8, 16, 64, 1 << 30)
"""How many of the best leaves are added up."""
TREES = 80
"""Leaves that trees look at."""

Score = Callable[[Sequence[Leaves]], Floats]


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


@dataclass(frozen=True)
class _Leaf:
    """The log-ratio of one leaf's values, learnt from samples."""

    name: str
    ratios: dict[Any, float]
    edges: tuple[float, ...] | None
    strength: float

    @classmethod
    def learnt(cls, name: str, one: Sequence[Leaves], other: Sequence[Leaves]) -> _Leaf:
        values = [[leaf.get(name, "missing") for leaf in side] for side in (one, other)]
        edges, different = None, {*values[0], *values[1]}
        if len(different) > FEW:
            numbers = [v for side in values for v in side if isinstance(v, float)]
            if len(numbers) * 2 > len(one) + len(other):
                cuts = np.quantile(numbers, FINE if len(one) > MANY else COARSE, method="lower")
                edges = tuple(np.unique(cuts).tolist())
        counts = [Counter(_range(v, edges) for v in side) for side in values]
        # half a sighting more on both sides: what was seen once says little
        ratios = {
            v: math.log((counts[0][v] + 0.5) / (counts[1][v] + 0.5)) for v in counts[0] | counts[1]
        }
        pairs = [(counts[0][v], counts[1][v]) for v in ratios]
        chi = sum((a - b) ** 2 / (a + b) for a, b in pairs)
        return cls(name, ratios, edges, chi - len(pairs) - 2 * math.sqrt(2 * len(pairs)))

    def score(self, artefacts: Sequence[Leaves]) -> Floats:
        found = (_range(one.get(self.name, "missing"), self.edges) for one in artefacts)
        return np.array([self.ratios.get(v, 0.0) for v in found])

    def words(self, threshold: float, swapped: bool) -> str:
        """The values that make the event."""
        sign = -1 if swapped else 1
        held = sorted(
            (v for v, ratio in self.ratios.items() if sign * ratio >= threshold),
            key=lambda v: -sign * self.ratios[v],
        )
        if self.edges is None:
            shown = [_short(v) for v in held[:3]]
            more = f" or {len(held) - 3} more" if len(held) > 3 else ""
            return f"{self.name} is {' or '.join(shown)}{more}"
        bounds = (-math.inf, *self.edges, math.inf)
        shown = [f"[{bounds[v]:g}, {bounds[v + 1]:g})" for v in held[:3] if isinstance(v, int)]
        return f"{self.name} lies in {' or '.join(shown) or 'its words'}"


def _range(value: float | str, edges: tuple[float, ...] | None) -> Any:
    if edges is None or isinstance(value, str):
        return value
    return int(np.searchsorted(edges, value, side="right"))


def _short(value: Any) -> str:
    text = f"{value:g}" if isinstance(value, float) else repr(value)
    return text if len(text) <= 80 else text[:77] + "…"


def _ranked(one: Sequence[Leaves], other: Sequence[Leaves]) -> list[_Leaf]:
    names = dict.fromkeys(name for side in (one, other) for leaf in side for name in leaf)
    found = [_Leaf.learnt(name, one, other) for name in names]
    telling = [leaf for leaf in found if len(leaf.ratios) > 1]
    return sorted(telling, key=lambda leaf: -leaf.strength)


def _trees(ranked: Sequence[_Leaf], one: Sequence[Leaves], other: Sequence[Leaves]) -> Score:
    from sklearn.ensemble import HistGradientBoostingClassifier

    numeric = {name for leaf in one for name, value in leaf.items() if isinstance(value, float)}
    names = [leaf.name for leaf in ranked[:TREES] if leaf.name in numeric]

    def columns(artefacts: Sequence[Leaves]) -> Floats:
        raw = [[_numeric(leaf.get(name)) for leaf in artefacts] for name in names]
        return np.array([*raw, *(leaf.score(artefacts) for leaf in ranked[:8])]).T

    X = np.vstack([columns(one), columns(other)])
    y = np.repeat([1, 0], [len(one), len(other)])
    trees = HistGradientBoostingClassifier(
        max_iter=40, max_depth=3, min_samples_leaf=10, early_stopping=False, random_state=0
    ).fit(X, y)
    return lambda artefacts: np.asarray(trees.decision_function(columns(artefacts)))


def _numeric(value: float | str | None) -> float:
    return max(-1e300, min(1e300, value)) if isinstance(value, float) else math.nan


@dataclass(frozen=True)
class _Raw:
    """The number of a leaf itself."""

    name: str

    def score(self, artefacts: Sequence[Leaves]) -> Floats:
        return np.array([_numeric(one.get(self.name)) for one in artefacts])

    def words(self, threshold: float, swapped: bool) -> str:
        return f"{self.name} is at {'most' if swapped else 'least'} {abs(threshold):g}"


@dataclass(frozen=True)
class _Joint:
    """Many leaves together."""

    score: Score
    what: str

    def words(self, threshold: float, swapped: bool) -> str:
        return self.what


def _candidates(one: Sequence[Leaves], other: Sequence[Leaves]) -> list[Any]:
    ranked = _ranked(one, other)
    found: list[Any] = [*ranked[:SINGLE]]
    found += [_Raw(leaf.name) for leaf in ranked[:SINGLE] if leaf.edges is not None]
    if len(ranked) < 2:
        return found
    for many in SUMS:
        some = [leaf for leaf in ranked[:many] if leaf.strength > 0 or many <= 4]
        found.append(_Joint(_sum_of(some), _joint_words(some, "the sum of the log-ratios of")))
        if many >= len(ranked):
            break
    words = _joint_words(ranked[:TREES], "a score by boosted trees over")
    return [*found, _Joint(_trees(ranked, one, other), words)]


def _sum_of(some: Sequence[_Leaf]) -> Score:
    return lambda artefacts: np.sum(
        [leaf.score(artefacts) for leaf in some] or [np.zeros(len(artefacts))], axis=0
    )


def _joint_words(some: Sequence[_Leaf], how: str) -> str:
    names = ", ".join(leaf.name for leaf in some[:3])
    return f"{how} {len(some)} parts ({names}{', …' if len(some) > 3 else ''}) is high"


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
    for candidate in _candidates(*fit):
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
