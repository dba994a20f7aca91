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

from discreet.model.explanation import find_strongest_evidence
from discreet.model.naive_bayes import NaiveBayesModel
from discreet.schema.schema import format_value
from discreet.statistics.statistics import Statistics

__all__ = ["SupportedOdds", "estimate_odds_range", "find_strongest", "format_factor"]

MAX_SHOWN_FACTOR = 10_000
"""Factors above this are shown as "more than"."""


@dataclass(frozen=True)
class SupportedOdds:
    """How much more likely a statement is in one class than in the others, or in another.

    Parameters
    ----------
    statement, label : str
        Such as an answer, and the class for which it speaks.
    odds : float
        Ratio of probabilities by the model.
    supported_range : pair of float, optional
        The smallest and largest ratio that the reports support; None if unknown.
    """

    statement: str
    label: str
    odds: float
    supported_range: tuple[float, float] | None = None

    @property
    def least_supported(self) -> float:
        """The smallest ratio that the reports support; 0 if unknown."""
        return self.supported_range[0] if self.supported_range else 0.0

    @property
    def range(self) -> str:
        """The supported range in words.

        >>> SupportedOdds("smokes = yes", "ill", 422.0, (3.14, math.inf)).range
        'at least 3.1'
        >>> SupportedOdds("smokes = yes", "ill", 8.0, (1.02, math.inf)).range
        'more than 1'
        >>> SupportedOdds("smokes = yes", "ill", 2.0, (0.7, 5.0)).range
        'may be chance'
        """
        if self.supported_range is None:
            return ""
        least, most = self.supported_range
        low_text = _format_tenths(least, math.floor)
        if least <= 1:
            return "may be chance"
        if most == math.inf:
            return "more than 1" if low_text == "1.0" else f"at least {low_text}"
        return f"{low_text} to {_format_tenths(most, math.ceil)}"

    def __str__(self) -> str:
        """Format the odds, limited to the supported range.

        >>> print(SupportedOdds("smokes = yes", "ill", 4.2, (2.5, 8.4)))
        4.2 (2.5 to 8.4)
        >>> print(SupportedOdds("smokes = yes", "ill", 422.0, (3.14, math.inf)))
        at least 3.1
        """
        if (
            self.supported_range is None
            or self.least_supported <= 1
            or self.supported_range[1] == math.inf
        ):
            return self.range
        supported_odds = min(max(self.odds, self.least_supported), self.supported_range[1])
        return f"{_format_tenths(supported_odds, round)} ({self.range})"


def format_factor(odds: float) -> str:
    """Format a ratio of probabilities in digits.

    >>> format_factor(4.76), format_factor(378.2), format_factor(2e6)
    ('4.8', '378', 'more than 10,000')
    """
    return (
        _format_tenths(odds, round)
        if odds <= MAX_SHOWN_FACTOR
        else f"more than {MAX_SHOWN_FACTOR:,}"
    )


def _format_tenths(value: float, round_towards: Callable[[float], int]) -> str:
    return f"{round_towards(10 * value) / 10:,.1f}" if value < 100 else f"{round_towards(value):,}"


def find_strongest(model: NaiveBayesModel, statistics: Statistics) -> list[SupportedOdds]:
    """Find the strongest evidence for classes, first what is certainly more than chance."""
    evidence = [
        SupportedOdds(
            f"{feature_name} = {cell_label}",
            class_label,
            math.exp(log_odds),
            estimate_odds_range(statistics, (feature_name, cell_label), class_label)
            or (0.0, math.inf),
        )
        for feature_name, cell_label, class_label, log_odds in find_strongest_evidence(
            model, _count_cells(statistics)
        )
    ]
    return sorted(evidence, key=lambda entry: (-max(entry.least_supported, 1.0), -entry.odds))


def _count_cells(statistics: Statistics) -> int:
    """Count the cells that could be evidence for a class."""
    table_sizes = (table.cells.size for table in statistics.tables.values())
    return len(statistics.schema.classes) * sum(table_sizes)


def estimate_odds_range(
    statistics: Statistics,
    answer: tuple[str, str],
    class_label: str,
    other_label: str | None = None,
) -> tuple[float, float] | None:
    """Estimate the range of the ratio of an answer's probabilities in two classes.

    Parameters
    ----------
    statistics : Statistics
    answer : pair of str
        A feature and one of its cells.
    class_label : str
        A class.
    other_label : str, optional
        The other class; all others together if not given.

    Returns
    -------
    pair of float, or None where the answer is not counted by cells
    """
    feature_name, cell_label = answer
    table = statistics.tables.get(feature_name)
    if table is None or cell_label not in table.cells.labels:
        return None
    class_labels = np.array([format_value(label) for label in statistics.schema.classes])
    in_class = class_labels == class_label
    in_others = ~in_class if other_label is None else class_labels == other_label
    normal_quantile = NormalDist().inv_cdf(
        1 - 0.025 / (4 * _count_cells(statistics) * max(len(class_labels) - 1, 1))
    )

    def compute_bounds(counts: Any, variances: Any, class_mask: Any) -> tuple[float, float]:
        count_sum = float(counts[class_mask].sum())
        margin = normal_quantile * math.sqrt(variances[class_mask].sum())
        return max(count_sum - margin, 0.0), max(count_sum + margin, 0.0)

    cell_index = list(table.cells.labels).index(cell_label)
    class_counts, other_counts = (
        compute_bounds(table.counts[:, cell_index], table.variances[:, cell_index], class_mask)
        for class_mask in (in_class, in_others)
    )
    class_totals, other_totals = (
        compute_bounds(statistics.totals, statistics.variances, class_mask)
        for class_mask in (in_class, in_others)
    )
    low_ratio = _divide(class_counts[0] * other_totals[0], other_counts[1] * class_totals[1])
    high_ratio = _divide(
        class_counts[1] * other_totals[1], other_counts[0] * class_totals[0], math.inf
    )
    return low_ratio, max(low_ratio, high_ratio)


def _divide(numerator: float, denominator: float, default: float = 0.0) -> float:
    return numerator / denominator if denominator > 0 else default
