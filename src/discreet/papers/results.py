"""Results of the cells of a paper, and how its statements are judged by them.

Differences are paired by repetition and have an interval. It is clear if the interval
leaves out zero, small if the whole interval is within ``CLOSE``, and otherwise undecided, so that
no verdict hangs on a seed.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from discreet.papers.drawing import Line

__all__ = ["CLOSE", "Cell", "Gap", "Results", "Statement", "every", "listed", "verdict"]

CLOSE = 0.02
"""Largest difference in accuracy (two points) that all pages call close, alike or the same."""

Values = Mapping[str, Sequence[float]]


@dataclass(frozen=True)
class Cell:
    """One number of a figure: which figure, and the parameters, in a fixed order."""

    figure: str
    parameters: tuple[tuple[str, Any], ...]

    @classmethod
    def of(cls, figure: str, **parameters: Any) -> Cell:
        """A cell with named parameters."""
        return cls(figure, tuple(parameters.items()))

    def __getitem__(self, name: str) -> Any:
        return dict(self.parameters)[name]


@dataclass(frozen=True)
class Statement:
    """A claim of the paper, what was measured, and the verdict."""

    said: str
    measured: str
    verdict: str
    because: str = ""


@dataclass(frozen=True)
class Gap:
    """A mean difference with its interval by Student's t distribution."""

    mean: float
    error: float
    low: float
    high: float

    @classmethod
    def of(cls, one: Sequence[float], other: Sequence[float] | float, comparisons: int = 1) -> Gap:
        """Subtract second from first, paired by repetition: same split, same seed.

        Parameters
        ----------
        one, other : sequence of float
            Cut to the shorter.
        comparisons : int
            Number of intervals that hold simultaneously with 95 % confidence (Bonferroni).
        """
        from scipy.stats import t

        many = [other] * len(one) if isinstance(other, float) else other
        size = min(len(one), len(many))
        apart = np.asarray(one[:size]) - np.asarray(many[:size])
        mean, error = float(np.mean(apart)), standard_error(list(apart))
        wide = float(t.ppf(1 - 0.025 / comparisons, max(len(apart) - 1, 1))) * error
        return cls(mean, error, mean - wide, mean + wide)

    def above(self, limit: float = 0.0) -> bool | None:
        """Whether it is above a limit; None if the interval leaves that open."""
        return True if self.low > limit else False if self.high <= limit else None

    def within(self, limit: float = CLOSE) -> bool | None:
        """Whether its absolute value is at most a limit; None if the interval leaves that open."""
        if -limit <= self.low and self.high <= limit:
            return True
        return False if self.low > limit or self.high < -limit else None

    def __str__(self) -> str:
        return f"{100 * self.mean:+.1f} ± {100 * self.error:.1f}"


def verdict(cases: Mapping[str, bool | None], where: str = "on") -> str:
    """Whether a statement holds in all cases, in some, or in none.

    Parameters
    ----------
    cases : mapping
        None where the figures leave it open.
    where : str
        Preposition before the names of cases.
    """
    found = {one: [k for k, held in cases.items() if held is one] for one in (True, False, None)}
    if len(found[True]) == len(cases):
        return "holds"
    if len(found[None]) == len(cases):
        return "undecided"
    left = f"undecided {where} {', '.join(found[None])}" if found[None] else ""
    if not found[False]:
        told = f"holds, but {left}"
    else:
        told = f"holds only {where} {', '.join(found[True])}" if found[True] else "does not hold"
        told += f" ({left})" if left else ""
    return told.replace("  ", " ")


def every(cases: Iterable[bool | None]) -> bool | None:
    """Whether all hold; None if some are open and none fails."""
    found = set(cases)
    return False if False in found else None if None in found else True


def listed(values: Mapping[Any, float]) -> str:
    """Format values as percentages after their names."""
    return ", ".join(f"{name} {100 * value:.1f}" for name, value in values.items())


@dataclass(frozen=True)
class Results:
    """The values of the cells that were computed."""

    values: Mapping[Cell, Values]

    def __contains__(self, cell: Cell) -> bool:
        return (cell.figure, frozenset(cell.parameters)) in self._found

    @cached_property
    def _found(self) -> dict[tuple[str, frozenset[tuple[str, Any]]], Values]:
        return {(c.figure, frozenset(c.parameters)): v for c, v in self.values.items()}

    def among(self, figure: str, name: str) -> list[Any]:
        """What a parameter is in the cells of a figure, in their order."""
        cells = [dict(c.parameters) for c in self.values if c.figure == figure]
        return list(dict.fromkeys(c[name] for c in cells if name in c))

    def series(self, figure: str, metric: str = "accuracy", **parameters: Any) -> Sequence[float]:
        """The values of one cell; none if it was not computed."""
        return self._found.get((figure, frozenset(parameters.items())), {}).get(metric, ())

    def mean(self, figure: str, metric: str = "accuracy", **parameters: Any) -> float:
        """Their mean; NaN if the cell was not computed."""
        found = self.series(figure, metric, **parameters)
        return float(np.mean(found)) if len(found) else math.nan

    def error(self, figure: str, metric: str = "accuracy", **parameters: Any) -> float:
        """Standard error of the mean."""
        return standard_error(self.series(figure, metric, **parameters))

    def over(
        self, figure: str, along: str, at: Sequence[Any], metric: str = "accuracy", **about: Any
    ) -> list[float]:
        """The mean of every repetition over the values of a parameter."""
        rows = [self.series(figure, metric, **about, **{along: value}) for value in at]
        size = min(map(len, rows))
        return [float(one) for one in np.mean([row[:size] for row in rows], axis=0)]

    def line(
        self,
        label: str,
        figure: str,
        along: str,
        at: Sequence[Any],
        metric: str = "accuracy",
        **about: Any,
    ) -> Line:
        """Means along a parameter, with standard errors where there are any."""
        cells = [about | {along: value} for value in at]
        errors = [self.error(figure, metric, **one) for one in cells]
        means = [self.mean(figure, metric, **one) for one in cells]
        return Line(label, at, means, () if all(map(math.isnan, errors)) else errors)


def standard_error(values: Sequence[float]) -> float:
    """Standard error of the mean; NaN of fewer than two values."""
    return float(np.std(values, ddof=1) / math.sqrt(len(values))) if len(values) > 1 else math.nan
