"""Step scores for numbers with added noise: whether each is above or below one cut.

Numbers of an artefact often share their noise: a total and a mean, a count and what is computed
from it. So each number is first residualised on the earlier ones of its part of the artefact (least
squares); where numbers are sums of independent draws, single draws remain. The log-ratio of two
shifted Laplace distributions is nearly a step, so one cut per number is nearly optimal and needs
few samples to fit.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from discreet.arrays import Floats
from discreet.audit.artefact import DERIVED, Leaves

__all__ = ["Steps", "numeric", "steps"]

MOST = 48
"""Largest number of numbers used from one part of the artefact."""
CUTS = np.linspace(0.04, 0.96, 24)
DEPENDENT = 1e-7
"""Residual spread (relative) below which a number is a function of the earlier ones."""


def numeric(value: float | str | None) -> float:
    """Convert a leaf to a finite number; strings become NaN."""
    return max(-1e300, min(1e300, value)) if isinstance(value, float) else math.nan


@dataclass(frozen=True, eq=False)
class _Rests:
    """Numbers residualised on the earlier ones."""

    names: tuple[str, ...]
    middle: Floats
    scale: Floats
    kept: tuple[int, ...]
    weights: tuple[Floats, ...]

    @classmethod
    def learnt(cls, names: Sequence[str], one: Sequence[Leaves], other: Sequence[Leaves]) -> _Rests:
        sides = [_columns(names, side) for side in (one, other)]
        # centred per side, so that the difference between the sides is not explained away
        apart = np.vstack([side - side.mean(axis=0) for side in sides])
        scale = np.where(apart.std(axis=0) > 0, apart.std(axis=0), 1.0)
        apart /= scale
        kept: list[int] = []
        weights: list[Floats] = []
        for place in range(len(names)):
            mine, earlier = apart[:, place], apart[:, kept]
            told = np.linalg.lstsq(earlier, mine, rcond=None)[0] if kept else np.zeros(0)
            if np.std(mine - earlier @ told) > DEPENDENT:
                kept.append(place)
                weights.append(told)
        middle = np.vstack(sides).mean(axis=0)
        return cls(tuple(names), middle, scale, tuple(kept), tuple(weights))

    def of(self, artefacts: Sequence[Leaves]) -> Floats:
        X = (_columns(self.names, artefacts) - self.middle) / self.scale
        found = [
            X[:, place] - X[:, self.kept[:number]] @ told
            for number, (place, told) in enumerate(zip(self.kept, self.weights, strict=True))
        ]
        return np.array(found).T.reshape(len(artefacts), len(self.kept))


@dataclass(frozen=True)
class _Step:
    """One number on either side of a cut, and the log-ratio of each side."""

    place: int
    cut: float
    above: float
    below: float
    strength: float

    @classmethod
    def learnt(cls, place: int, one: Floats, other: Floats) -> _Step | None:
        n = len(one)
        cuts = np.unique(np.quantile(np.concatenate([one, other]), CUTS, method="lower"))[1:]
        if not len(cuts):
            return None
        p, q = ((side[:, None] >= cuts).sum(axis=0) for side in (one, other))
        with np.errstate(all="ignore"):
            chi = np.nan_to_num((p - q) ** 2 / (p + q) + (p - q) ** 2 / (2 * n - p - q))
        best = int(np.argmax(chi))
        a, b = int(p[best]), int(q[best])
        above, below = (math.log((x + 0.5) / (y + 0.5)) for x, y in ((a, b), (n - a, n - b)))
        return cls(place, float(cuts[best]), above, below, float(chi[best]))


@dataclass(frozen=True, eq=False)
class Steps:
    """Sum of the best steps of one part of an artefact.

    Parameters
    ----------
    rests : _Rests
    few : sequence of _Step
    """

    rests: _Rests
    few: Sequence[_Step]

    def score(self, artefacts: Sequence[Leaves]) -> Floats:
        """The sum, for every artefact."""
        columns = self.rests.of(artefacts)
        found = [
            np.where(columns[:, one.place] >= one.cut, one.above, one.below) for one in self.few
        ]
        return np.asarray(np.sum(found, axis=0), dtype=float)

    def words(self, threshold: float, swapped: bool) -> str:
        """Describe which numbers are on which side of their cuts."""
        sign = -1 if swapped else 1
        names = [self.rests.names[self.rests.kept[one.place]] for one in self.few]
        sides = ["high" if sign * (one.above - one.below) > 0 else "low" for one in self.few]
        shown = ", ".join(f"{name} {side}" for name, side in zip(names, sides, strict=True))
        return f"most of {shown}" if len(names) > 1 else f"{names[0]} is {sides[0]}"


def steps(one: Sequence[Leaves], other: Sequence[Leaves]) -> list[Steps]:
    """Fit scores for each part of the artefacts: of its best number, best two, and so on.

    Parameters
    ----------
    one, other : sequence of leaves
        Artefacts of either input.
    """
    found = []
    for names in _parts(one, other):
        rests = _Rests.learnt(names, one, other)
        columns = rests.of(one), rests.of(other)
        made: list[Any] = [
            _Step.learnt(k, *(side[:, k] for side in columns)) for k in range(len(rests.kept))
        ]
        ranked = sorted(filter(None, made), key=lambda step: -step.strength)
        found += [Steps(rests, ranked[:many]) for many in range(1, min(len(ranked), 8) + 1)]
    return found


def _parts(one: Sequence[Leaves], other: Sequence[Leaves]) -> list[list[str]]:
    """Group the names of numbers that every artefact has by their document or attribute."""
    parts: dict[str, list[str]] = defaultdict(list)
    for name, value in one[0].items():
        words = name.split(".")
        deep = 1 if name.startswith("[") else 2  # one of several documents, or an attribute
        part = parts[".".join(words[: min(deep, len(words) - 1)])]
        if not isinstance(value, float) or name.endswith(DERIVED) or len(part) >= MOST:
            continue
        values = [leaf.get(name) for side in (one, other) for leaf in side]
        if all(isinstance(v, float) and abs(v) < 1e300 for v in values) and len({*values}) > 1:
            part.append(name)
    return [names for names in parts.values() if names]


def _columns(names: Sequence[str], artefacts: Sequence[Leaves]) -> Floats:
    found = np.array([[numeric(one.get(name)) for name in names] for one in artefacts])
    whole: Floats = np.nan_to_num(found.reshape(len(artefacts), len(names)))
    return whole
