"""The smallest epsilon that reaches an accuracy is found, or a sentence says why there is none."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest

from discreet.compare.epsilon_search import EpsilonNeeded, search_epsilon
from discreet.compare.results import MethodResult
from discreet.model.evaluation import Scores


def make_result(epsilon: float, accuracy: float, spread: float = 0.0) -> MethodResult:
    """A result of four folds of 10,000 rows around an accuracy."""
    import numpy as np

    folds = []
    for sign in (-1, -1, 1, 1):
        hits = round(10_000 * (accuracy + sign * spread))
        folds.append(Scores(("no", "yes"), np.array([[hits, 10_000 - hits], [0, 0]]), 1.0))
    trust = "none" if math.isinf(epsilon) else "central"
    return MethodResult(trust, "histogram", epsilon, tuple(folds), 4, 1.0, 1.0)


def search(
    curve: Callable[[float], float], target: float, epsilons: tuple[float, ...] = (0.5, 1.0, 2.0),
    spread: float = 0.0,
) -> tuple[EpsilonNeeded, list[float]]:  # fmt: skip
    """Search on a known curve; also give the epsilons that were tried besides."""
    more: list[float] = []

    def score(method: str, epsilon: float) -> MethodResult:
        assert method == "histogram"
        more.append(epsilon)
        return make_result(epsilon, curve(epsilon), spread)

    results = [make_result(epsilon, curve(epsilon), spread) for epsilon in epsilons]
    limit = make_result(math.inf, curve(math.inf))
    return search_epsilon(results, target, limit, score), more


def saturate(epsilon: float) -> float:
    """60 % without data, 90 % in the limit; 80 % at ln 3 = 1.0986."""
    return 0.6 + 0.3 * (1 - math.exp(-epsilon))


def test_the_epsilon_is_narrowed_down_between_those_that_were_asked_for() -> None:
    needed, more = search(saturate, 0.8)
    assert needed.epsilon == 1.2
    assert needed.epsilon in more
    assert [epsilon for epsilon, *_ in needed.tried] == sorted({0.5, 1.0, 2.0, *more})
    assert "epsilon 1.2 reached 80 %" in needed.sentence


def test_it_is_looked_for_beyond_both_ends() -> None:
    needed, more = search(saturate, 0.89)  # at ln 30 = 3.4
    assert needed.epsilon is not None
    assert 3.4 <= needed.epsilon <= 3.7
    assert 4.0 in more
    needed, more = search(saturate, 0.65)  # at 0.18
    assert needed.epsilon is not None
    assert 0.18 <= needed.epsilon <= 0.2
    assert min(more) == pytest.approx(0.13)
    needed, _ = search(saturate, 0.3)
    assert needed.epsilon == min(needed.tried)[0] == 0.033
    assert "the smallest that was tried" in needed.sentence


def test_above_the_limit_nothing_more_is_tried() -> None:
    needed, more = search(saturate, 0.95)
    assert needed.epsilon is None
    assert more == []
    assert "no epsilon up to 2 reached 95 %" in needed.sentence
    assert "without privacy it is 90.0 %" in needed.sentence
    assert "no epsilon is expected to reach it" in needed.sentence


def test_below_the_limit_but_out_of_reach() -> None:
    needed, more = search(lambda e: 0.9 if math.isinf(e) else 0.7, 0.8)
    assert needed.epsilon is None
    assert max(more) == 32
    assert "expected" not in needed.sentence


def test_the_range_is_that_of_the_intervals() -> None:
    sure, _ = search(saturate, 0.8)
    assert sure.interval == (1.2, 1.2)  # intervals without a width
    needed, _ = search(saturate, 0.8, (0.25, 0.5, 1.0, 2.0, 4.0), spread=0.02)
    low, high = needed.interval
    assert low is not None
    assert high is not None
    assert low < 1.1 < high
    for epsilon, _, (lower_end, upper_end) in needed.tried:
        assert (upper_end >= 0.8) == (epsilon >= low)
        assert (lower_end >= 0.8) == (epsilon >= high)
    uncertain, _ = search(saturate, 0.8, spread=0.2)
    assert uncertain.interval[1] is None
    assert "none that was tried is safe" in uncertain.sentence


def test_what_promises_less_counts_only_where_there_is_nothing_else() -> None:
    weaker = make_result(0.5, 0.85)
    weaker = MethodResult("central", "histogram-delta", 0.5, weaker.fold_scores, 4, 1.0, 1.0)
    results = [make_result(0.5, 0.7), weaker, make_result(1.0, 0.85)]
    needed = search_epsilon(
        results, 0.8, make_result(math.inf, 0.9), lambda _, epsilon: make_result(epsilon, 0.7)
    )
    assert (needed.epsilon, needed.method) == (1.0, "histogram")
