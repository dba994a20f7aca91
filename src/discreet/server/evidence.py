"""Evidence for classes, with the range of odds that the reports support.

How much likelier an answer is in one class than in another is a ratio of four estimates, each taken
at the worse end of its interval. The intervals are so wide that all of them, of all answers and all
pairs of classes, hold together with 95 % confidence (Bonferroni): the strongest of many is picked,
and how the estimates depend on each other does not matter.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any

import numpy as np

from discreet.model.explanation import strongest_evidence
from discreet.model.naive_bayes import NaiveBayesModel
from discreet.schema import text_of
from discreet.statistics import Statistics

__all__ = ["Evidence", "factor", "range_of", "strongest"]

LARGEST = 10_000
"""Factors above this are shown as "more than"."""


@dataclass(frozen=True)
class Evidence:
    """How much more likely a statement is in one class than in the others, or in another.

    Parameters
    ----------
    what, label : str
        Such as an answer, and the class for which it speaks.
    odds : float
        Ratio of probabilities by the model.
    supported : pair of float, optional
        The smallest and largest ratio that the reports support; None if unknown.
    """

    what: str
    label: str
    odds: float
    supported: tuple[float, float] | None = None

    @property
    def least(self) -> float:
        """The smallest ratio that the reports support; 0 if unknown."""
        return self.supported[0] if self.supported else 0.0

    @property
    def range(self) -> str:
        """The supported range in words.

        >>> Evidence("smokes = yes", "ill", 422.0, (3.14, math.inf)).range
        'at least 3.1'
        >>> Evidence("smokes = yes", "ill", 8.0, (1.02, math.inf)).range
        'more than 1'
        >>> Evidence("smokes = yes", "ill", 2.0, (0.7, 5.0)).range
        'may be chance'
        """
        if self.supported is None:
            return ""
        (least, most), low = self.supported, _tenths(self.supported[0], math.floor)
        if least <= 1:
            return "may be chance"
        if most == math.inf:
            return "more than 1" if low == "1.0" else f"at least {low}"
        return f"{low} to {_tenths(most, math.ceil)}"

    def __str__(self) -> str:
        """Format the odds, limited to the supported range.

        >>> print(Evidence("smokes = yes", "ill", 4.2, (2.5, 8.4)))
        4.2 (2.5 to 8.4)
        >>> print(Evidence("smokes = yes", "ill", 422.0, (3.14, math.inf)))
        at least 3.1
        """
        if self.supported is None or self.least <= 1 or self.supported[1] == math.inf:
            return self.range
        return (
            f"{_tenths(min(max(self.odds, self.least), self.supported[1]), round)} ({self.range})"
        )


def factor(odds: float) -> str:
    """Format a ratio of probabilities in digits.

    >>> factor(4.76), factor(378.2), factor(2e6)
    ('4.8', '378', 'more than 10,000')
    """
    return _tenths(odds, round) if odds <= LARGEST else f"more than {LARGEST:,}"


def _tenths(value: float, towards: Callable[[float], int]) -> str:
    return f"{towards(10 * value) / 10:,.1f}" if value < 100 else f"{towards(value):,}"


def strongest(model: NaiveBayesModel, statistics: Statistics) -> list[Evidence]:
    """Find the strongest evidence for classes, first what is certainly more than chance."""
    made = []
    for name, value, label, odds in strongest_evidence(model, _cells(statistics)):
        supported = range_of(statistics, (name, value), label) or (0.0, math.inf)
        made.append(Evidence(f"{name} = {value}", label, math.exp(odds), supported))
    return sorted(made, key=lambda one: (-max(one.least, 1.0), -one.odds))


def _cells(statistics: Statistics) -> int:
    """Count the cells that could be evidence for a class."""
    sizes = (table.cells.size for table in statistics.tables.values())
    return len(statistics.schema.classes) * sum(sizes)


def range_of(
    statistics: Statistics, answer: tuple[str, str], label: str, against: str | None = None
) -> tuple[float, float] | None:
    """Estimate the range of the ratio of an answer's probabilities in two classes.

    Parameters
    ----------
    statistics : Statistics
    answer : pair of str
        A feature and one of its cells.
    label : str
        A class.
    against : str, optional
        The other class; all others together if not given.

    Returns
    -------
    pair of float, or None where the answer is not counted by cells
    """
    name, value = answer
    table = statistics.tables.get(name)
    if table is None or value not in table.cells.labels:
        return None
    classes = [text_of(one) for one in statistics.schema.classes]
    one = np.array([label == own for own in classes])
    other = ~one if against is None else np.array([against == own for own in classes])
    wide = NormalDist().inv_cdf(1 - 0.025 / (4 * _cells(statistics) * max(len(classes) - 1, 1)))

    def ends(counts: Any, variances: Any, pick: Any) -> tuple[float, float]:
        middle, error = float(counts[pick].sum()), wide * math.sqrt(variances[pick].sum())
        return max(middle - error, 0.0), max(middle + error, 0.0)

    v = list(table.cells.labels).index(value)
    top, rest = (ends(table.counts[:, v], table.variances[:, v], pick) for pick in (one, other))
    every, others = (ends(statistics.totals, statistics.variances, pick) for pick in (one, other))
    low = _over(top[0] * others[0], rest[1] * every[1])
    return low, max(low, _over(top[1] * others[1], rest[0] * every[0], math.inf))


def _over(top: float, bottom: float, otherwise: float = 0.0) -> float:
    return top / bottom if bottom > 0 else otherwise
