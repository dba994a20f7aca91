"""Evidence for classes, with the range of odds that the reports support.

The lines and their order are those of every model (:mod:`discreet.model.strongest_evidence`). Here
their ranges are shown as well, which all hold together with 95 % confidence (Bonferroni): the
strongest of many is picked. What one of them leaves open is not shown.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from discreet.model.naive_bayes import NaiveBayesModel
from discreet.model.strongest_evidence import find_strongest_evidence

__all__ = ["SupportedOdds", "find_strongest", "format_factor"]

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
    share_text : str
        Share of people whom the statement is about.
    """

    statement: str
    label: str
    odds: float
    supported_range: tuple[float, float] | None = None
    share_text: str = ""

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


def find_strongest(model: NaiveBayesModel, count: int | None = None) -> list[SupportedOdds]:
    """Find the strongest evidence for classes, first what does most for people.

    Parameters
    ----------
    model : NaiveBayesModel
    count : int, optional
        How many at most; all if not given.
    """
    return [
        SupportedOdds(
            f"{line.feature} = {line.value}",
            line.label,
            math.exp(line.log_odds),
            line.odds_range,
            line.share_text,
        )
        for line in find_strongest_evidence(model)
        if line.odds_range is not None and line.odds_range[0] > 1
    ][:count]
