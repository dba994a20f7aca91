"""The smallest epsilon with which a trust model reaches an accuracy, by search.

Reads raw data: accuracies are cross-validated, so an epsilon that is chosen by them is itself a
result about the table, which no promise covers.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from discreet.compare.methods import METHODS
from discreet.compare.results import Interval, MethodResult, RespondentsNeeded
from discreet.privacy.guarantee import format_rounded_up

__all__ = [
    "RAW_SEARCH_WARNING",
    "AccuracySearch",
    "EpsilonNeeded",
    "round_epsilon",
    "search_epsilon",
]

RAW_SEARCH_WARNING = (
    "This search has read raw data: no promise covers an epsilon that is chosen by it. Choose by "
    "other data, or keep the figures as confidential as the table."
)
REFINEMENT_STEPS = 3
"""Epsilons that are tried between one that fails and one that reaches the accuracy."""
MAX_EXTENSIONS = 4
"""Epsilons that are tried beyond either end of the given ones, each twice as far."""
EXTENSION_FACTOR = 2.0
"""Factor between them."""

ScoreMethod = Callable[[str, float], MethodResult]
"""Cross-validates a method at an epsilon."""


@dataclass(frozen=True)
class EpsilonNeeded:
    """The smallest epsilon that reached an accuracy under a trust model.

    Parameters
    ----------
    trust, method : str
        Trust model, and its method that was refined.
    target : float
        The accuracy.
    epsilon : float or None
        None if none that was tried reached it.
    interval : pair of float or None
        The smallest epsilon that the intervals do not rule out, and the smallest that they show to
        reach the accuracy; None where there is none.
    tried : tuple of (epsilon, accuracy, interval)
        In rising order.
    limit : float
        Accuracy without privacy.
    limit_interval : pair of float
    """

    trust: str
    method: str
    target: float
    epsilon: float | None
    interval: tuple[float | None, float | None]
    tried: tuple[tuple[float, float, Interval], ...]
    limit: float
    limit_interval: Interval

    @property
    def sentence(self) -> str:
        """In words."""
        target_text = f"{100 * self.target:g} %"
        low, high = self.interval
        if self.epsilon is None:
            best_epsilon, best_accuracy, best_interval = max(self.tried, key=lambda trial: trial[1])
            limit_text = (
                f"; without privacy it is {100 * self.limit:.1f} % "
                f"({100 * self.limit_interval[0]:.1f} to {100 * self.limit_interval[1]:.1f})"
            )
            beyond_text = (
                ", so that no epsilon is expected to reach it" if self.target > self.limit else ""
            )
            return (
                f"{self.trust}: no epsilon up to {format_rounded_up(self.tried[-1][0], 2)} reached "
                f"{target_text}; the best was {100 * best_accuracy:.1f} % "
                f"({100 * best_interval[0]:.1f} to {100 * best_interval[1]:.1f}) at "
                f"{format_rounded_up(best_epsilon, 2)}{limit_text}{beyond_text}."
            )
        reached_accuracy = {trial[0]: trial[1] for trial in self.tried}[self.epsilon]
        floor_text = ", the smallest that was tried," if self.epsilon == self.tried[0][0] else ""
        low_text = (
            f"it may be as small as {format_rounded_up(low, 2)}"
            if low is not None and low < self.epsilon
            else ("it may be smaller" if low == self.tried[0][0] else "nothing smaller will do")
        )
        high_text = (
            f"is safe from {format_rounded_up(high, 2)} on"
            if high is not None
            else "none that was tried is safe"
        )
        return (
            f"{self.trust}: epsilon {format_rounded_up(self.epsilon, 2)}{floor_text} reached "
            f"{target_text} ({self.method}: {100 * reached_accuracy:.1f} %). By 95 % intervals "
            f"{low_text}, and {high_text}."
        )

    def to_body(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {**vars(self), "sentence": self.sentence}


@dataclass(frozen=True)
class AccuracySearch:
    """What reaches an accuracy that was asked for.

    Parameters
    ----------
    target : float
        The accuracy.
    people : int
        From how many each classifier learnt.
    majority : pair of str and float
        The most frequent class, and how often it is right.
    epsilons : tuple of EpsilonNeeded
        Of each trust model.
    respondents : RespondentsNeeded or None
        Of a local collection at one epsilon.
    """

    target: float
    people: int
    majority: tuple[str, float]
    epsilons: tuple[EpsilonNeeded, ...]
    respondents: RespondentsNeeded | None

    @property
    def sentences(self) -> list[str]:
        """What was asked, one per trust model, one about respondents, and what was read."""
        sentences = [
            f"What reaches {100 * self.target:g} % with {self.people:,} people to learn from:"
        ]
        label, share = self.majority
        if share >= self.target:
            sentences.append(
                f"Always saying “{label}” is right for {100 * share:.1f} %, without a classifier."
            )
        sentences += [needed.sentence for needed in self.epsilons]
        sentences += [] if self.respondents is None else [self.respondents.sentence]
        return [*sentences, RAW_SEARCH_WARNING]

    def to_body(self) -> dict[str, Any]:
        """Plain values for JSON."""
        respondents = self.respondents
        return {
            "target": self.target,
            "people": self.people,
            "sentences": self.sentences,
            "epsilons": [needed.to_body() for needed in self.epsilons],
            "respondents": None
            if respondents is None
            else {**vars(respondents), "sentence": respondents.sentence},
        }


def search_epsilon(
    results: Sequence[MethodResult],
    target: float,
    non_private: MethodResult,
    score_method: ScoreMethod,
) -> EpsilonNeeded:
    """Find the smallest epsilon with which a trust model reaches an accuracy.

    The given epsilons come first, then others beyond them, and in the end some between the last
    that fails and the first that reaches it.

    Parameters
    ----------
    results : sequence of MethodResult
        Of one trust model, at several epsilons.
    target : float
        The accuracy.
    non_private : MethodResult
        What is reached without noise.
    score_method : callable
        Tries another epsilon.
    """
    trials = _EpsilonTrials(results, target, score_method)
    if trials.first is None and target <= non_private.accuracy:
        trials.extend_upwards()
    if trials.first is not None:
        trials.extend_downwards()
        trials.refine()
    first, best_results = trials.first, trials.best_results
    tried = tuple(
        (epsilon, result.accuracy, result.accuracy_interval)
        for epsilon, result in sorted(best_results.items())
    )
    return EpsilonNeeded(
        results[0].trust,
        best_results[max(best_results) if first is None else first].method,
        target,
        first,
        _find_range(tried, target),
        tried,
        non_private.accuracy,
        non_private.accuracy_interval,
    )


class _EpsilonTrials:
    """The most accurate method of a trust model by epsilon; a weaker promise counts last."""

    def __init__(
        self, results: Sequence[MethodResult], target: float, score_method: ScoreMethod
    ) -> None:
        self.target, self.score_method = target, score_method
        self.best_results = {
            epsilon: max(
                (result for result in results if result.epsilon == epsilon),
                key=lambda result: (not METHODS[result.method].delta, result.accuracy),
            )
            for epsilon in {result.epsilon for result in results}
        }

    @property
    def first(self) -> float | None:
        """The smallest epsilon that reached the target."""
        return min(
            (e for e, result in self.best_results.items() if result.accuracy >= self.target),
            default=None,
        )

    def try_epsilon(self, epsilon: float, method: str) -> bool:
        """Try another epsilon; return whether it reaches the target."""
        result = self.best_results[epsilon] = self.score_method(method, epsilon)
        return result.accuracy >= self.target

    def extend_upwards(self) -> None:
        """Try larger epsilons until the target is reached."""
        for _ in range(MAX_EXTENSIONS):
            largest = max(self.best_results)
            larger = round_epsilon(EXTENSION_FACTOR * largest)
            if self.try_epsilon(larger, self.best_results[largest].method):
                return

    def extend_downwards(self) -> None:
        """Try smaller epsilons while even the smallest reaches the target."""
        for _ in range(MAX_EXTENSIONS):
            smallest = min(self.best_results)
            if self.first != smallest:
                return
            smaller = round_epsilon(smallest / EXTENSION_FACTOR)
            self.try_epsilon(smaller, self.best_results[smallest].method)

    def refine(self) -> None:
        """Try epsilons between the last that fails and the first that reaches the target."""
        for _ in range(REFINEMENT_STEPS):
            first = self.first
            below = max(
                (e for e in self.best_results if first is not None and e < first), default=0
            )
            if first is None or not below:
                return
            middle = round_epsilon(math.sqrt(below * first))
            if middle in self.best_results:
                return
            self.try_epsilon(middle, self.best_results[first].method)


def _find_range(
    tried: Sequence[tuple[float, float, Interval]], target: float
) -> tuple[float | None, float | None]:
    """The smallest epsilon that may reach the target, and the smallest from which all surely do."""
    possible = [epsilon for epsilon, _, (_, high) in tried if high >= target]
    certain: float | None = None
    for epsilon, _, (low, _) in reversed(tried):
        if low < target:
            break
        certain = epsilon
    return min(possible, default=None), certain


def round_epsilon(epsilon: float) -> float:
    """Round up to two significant digits, as a person would write it.

    Parameters
    ----------
    epsilon : float
    """
    return float(format_rounded_up(epsilon, 2))
