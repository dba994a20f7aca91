"""Scores of artefacts that may distinguish two inputs, fitted on samples of both.

A leaf's score is the log-ratio of how often its value (or the range it falls into) was seen with
either input. Single leaves, numbers by the side of a cut (``steps``), the sums of the best few (a
Naive Bayes of the released artefact) and boosted trees are the candidates.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from discreet.arrays import Floats
from discreet.audit.artefact import Leaves
from discreet.audit.steps import numeric, steps

__all__ = ["Score", "candidates"]

FEW = 64
"""Distinct values of a leaf up to which each is scored separately; above, ranges are."""
COARSE = (0.03, 0.15, 0.4, 0.6, 0.85, 0.97)
FINE = (0.005, 0.02, 0.05, 0.1, 0.2, 0.35, 0.5, 0.65, 0.8, 0.9, 0.95, 0.98, 0.995)
"""Where the ranges of a number end, for few and for many samples; short ones at the tails, where a
wrong scale shows."""
MANY = 400
SINGLE = 12
"""Number of best leaves that are tried alone."""
SUMS = (2, 4, 8, 16, 64, 1 << 30)
"""Numbers of best leaves whose scores are summed."""
DISTINCT, ALIKE = 8, 0.5
"""Leaves that are added up although they hardly tell the same, and from which correlation on they
do."""
TREES = 80
"""Number of best leaves that the trees use."""

Score = Callable[[Sequence[Leaves]], Floats]


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
        # pseudo-count of one half on both sides: a single sighting is weak evidence
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
        """Describe the values that make the event."""
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

    numbers = {name for leaf in one for name, value in leaf.items() if isinstance(value, float)}
    names = [leaf.name for leaf in ranked[:TREES] if leaf.name in numbers]

    def columns(artefacts: Sequence[Leaves]) -> Floats:
        raw = [[numeric(leaf.get(name)) for leaf in artefacts] for name in names]
        return np.array([*raw, *(leaf.score(artefacts) for leaf in ranked[:8])]).T

    X = np.vstack([columns(one), columns(other)])
    y = np.repeat([1, 0], [len(one), len(other)])
    trees = HistGradientBoostingClassifier(
        max_iter=40, max_depth=3, min_samples_leaf=10, early_stopping=False, random_state=0
    ).fit(X, y)
    return lambda artefacts: np.asarray(trees.decision_function(columns(artefacts)))


@dataclass(frozen=True)
class _Raw:
    """The number of a leaf itself."""

    name: str

    def score(self, artefacts: Sequence[Leaves]) -> Floats:
        return np.array([numeric(one.get(self.name)) for one in artefacts])

    def words(self, threshold: float, swapped: bool) -> str:
        return f"{self.name} is at {'most' if swapped else 'least'} {abs(threshold):g}"


@dataclass(frozen=True)
class _Joint:
    """Many leaves together."""

    score: Score
    what: str

    def words(self, threshold: float, swapped: bool) -> str:
        return self.what


def candidates(one: Sequence[Leaves], other: Sequence[Leaves]) -> list[Any]:
    ranked = _ranked(one, other)
    found: list[Any] = [*ranked[:SINGLE]]
    found += [_Raw(leaf.name) for leaf in ranked[:SINGLE] if leaf.edges is not None]
    if len(ranked) < 2:
        return found
    found += steps(one, other)
    apart = _distinct(ranked, one, other)
    for many in range(2, len(apart) + 1):
        words = _joint_words(apart[:many], "the sum of the log-ratios of")
        found.append(_Joint(_sum_of(apart[:many]), words))
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


def _distinct(
    ranked: Sequence[_Leaf], one: Sequence[Leaves], other: Sequence[Leaves]
) -> list[_Leaf]:
    """Select the best leaves that are not strongly correlated with better ones."""
    kept: list[_Leaf] = []
    said: list[Floats] = []
    for leaf in ranked[:TREES]:
        sides = [leaf.score(side) for side in (one, other)]
        # centred per side: both distinguish the inputs, which alone does not make them redundant
        mine = np.concatenate([side - side.mean() for side in sides])
        if not mine.any():
            continue
        mine /= np.linalg.norm(mine)
        if all(abs(mine @ earlier) < ALIKE for earlier in said):
            kept.append(leaf)
            said.append(mine)
        if len(kept) == DISTINCT:
            break
    return kept


def _joint_words(some: Sequence[_Leaf], how: str) -> str:
    names = ", ".join(leaf.name for leaf in some[:3])
    return f"{how} {len(some)} parts ({names}{', …' if len(some) > 3 else ''}) is high"
