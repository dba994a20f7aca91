"""Scores of artefacts that may distinguish two inputs, fitted on samples of both.

A leaf's score is the log-ratio of how often its value (or the range it falls into) was seen with
either input. Single leaves, numbers by the side of a cut (``steps``), the sums of the
best few (a Naive Bayes of the released artefact) and boosted trees are the candidates.
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
from discreet.audit.step_scores import fit_step_scores, to_finite_number

__all__ = ["Score", "make_candidates"]

MAX_DISTINCT_VALUES = 64
"""Distinct values of a leaf up to which each is scored separately; above, ranges are."""
COARSE_QUANTILES = (0.03, 0.15, 0.4, 0.6, 0.85, 0.97)
"""Where the ranges of a number end, if samples are few."""
FINE_QUANTILES = (0.005, 0.02, 0.05, 0.1, 0.2, 0.35, 0.5, 0.65, 0.8, 0.9, 0.95, 0.98, 0.995)
"""Likewise, if samples are many; short ranges at the tails, where a wrong scale shows."""
MIN_SAMPLES_FINE = 400
"""Samples of either input from which the fine quantiles are used."""
SINGLE_LEAVES = 12
"""Number of best leaves that are tried alone."""
SUM_SIZES = (2, 4, 8, 16, 64, 1 << 30)
"""Numbers of best leaves whose scores are summed."""
MAX_DISTINCT_LEAVES = 8
"""Most leaves whose scores are added up because they are hardly correlated."""
MAX_CORRELATION = 0.5
"""Correlation of two scores from which on they tell the same."""
MAX_TREE_LEAVES = 80
"""Number of best leaves that the trees use."""

Score = Callable[[Sequence[Leaves]], Floats]


@dataclass(frozen=True)
class _LeafScore:
    """The log-ratio of one leaf's values, learnt from samples."""

    name: str
    ratios: dict[Any, float]
    edges: tuple[float, ...] | None
    strength: float

    @classmethod
    def fit(
        cls, name: str, first_samples: Sequence[Leaves], second_samples: Sequence[Leaves]
    ) -> _LeafScore:
        values = [
            [artefact_leaves.get(name, "missing") for artefact_leaves in side]
            for side in (first_samples, second_samples)
        ]
        range_edges, distinct_values = None, {*values[0], *values[1]}
        if len(distinct_values) > MAX_DISTINCT_VALUES:
            finite_numbers = [
                value for side in values for value in side if isinstance(value, float)
            ]
            if len(finite_numbers) * 2 > len(first_samples) + len(second_samples):
                quantile_cuts = np.quantile(
                    finite_numbers,
                    FINE_QUANTILES if len(first_samples) > MIN_SAMPLES_FINE else COARSE_QUANTILES,
                    method="lower",
                )
                range_edges = tuple(np.unique(quantile_cuts).tolist())
        side_counts = [
            Counter(_find_range(value, range_edges) for value in side) for side in values
        ]
        # pseudo-count of one half on both sides: a single sighting is weak evidence
        ratios = {
            value: math.log((side_counts[0][value] + 0.5) / (side_counts[1][value] + 0.5))
            for value in side_counts[0] | side_counts[1]
        }
        count_pairs = [(side_counts[0][value], side_counts[1][value]) for value in ratios]
        chi_square = sum(
            (first_count - second_count) ** 2 / (first_count + second_count)
            for first_count, second_count in count_pairs
        )
        return cls(
            name,
            ratios,
            range_edges,
            chi_square - len(count_pairs) - 2 * math.sqrt(2 * len(count_pairs)),
        )

    def score(self, artefacts: Sequence[Leaves]) -> Floats:
        value_ranges = (
            _find_range(artefact_leaves.get(self.name, "missing"), self.edges)
            for artefact_leaves in artefacts
        )
        return np.array([self.ratios.get(value_range, 0.0) for value_range in value_ranges])

    def describe_event(self, threshold: float, swapped: bool) -> str:
        """Describe the values that make the event."""
        sign = -1 if swapped else 1
        event_values = sorted(
            (value for value, ratio in self.ratios.items() if sign * ratio >= threshold),
            key=lambda value: -sign * self.ratios[value],
        )
        if self.edges is None:
            shown_values = [_shorten(value) for value in event_values[:3]]
            more_text = f" or {len(event_values) - 3} more" if len(event_values) > 3 else ""
            return f"{self.name} is {' or '.join(shown_values)}{more_text}"
        range_bounds = (-math.inf, *self.edges, math.inf)
        shown_values = [
            f"[{range_bounds[value]:g}, {range_bounds[value + 1]:g})"
            for value in event_values[:3]
            if isinstance(value, int)
        ]
        return f"{self.name} is in {' or '.join(shown_values) or 'its words'}"


def _find_range(value: float | str, edges: tuple[float, ...] | None) -> Any:
    if edges is None or isinstance(value, str):
        return value
    return int(np.searchsorted(edges, value, side="right"))


def _shorten(value: Any) -> str:
    text = f"{value:g}" if isinstance(value, float) else repr(value)
    return text if len(text) <= 80 else text[:77] + "…"


def _rank_leaves(
    first_samples: Sequence[Leaves], second_samples: Sequence[Leaves]
) -> list[_LeafScore]:
    names = dict.fromkeys(
        leaf_name
        for side in (first_samples, second_samples)
        for artefact_leaves in side
        for leaf_name in artefact_leaves
    )
    leaf_scores = [_LeafScore.fit(leaf_name, first_samples, second_samples) for leaf_name in names]
    varying_scores = [leaf_score for leaf_score in leaf_scores if len(leaf_score.ratios) > 1]
    return sorted(varying_scores, key=lambda leaf_score: -leaf_score.strength)


def _fit_trees(
    ranked: Sequence[_LeafScore], first_samples: Sequence[Leaves], second_samples: Sequence[Leaves]
) -> Score:
    from sklearn.ensemble import HistGradientBoostingClassifier

    numeric_names = {
        name
        for artefact_leaves in first_samples
        for name, value in artefact_leaves.items()
        if isinstance(value, float)
    }
    tree_names = [
        leaf_score.name
        for leaf_score in ranked[:MAX_TREE_LEAVES]
        if leaf_score.name in numeric_names
    ]

    def make_columns(artefacts: Sequence[Leaves]) -> Floats:
        number_columns = [
            [to_finite_number(artefact_leaves.get(name)) for artefact_leaves in artefacts]
            for name in tree_names
        ]
        return np.array(
            [*number_columns, *(leaf_score.score(artefacts) for leaf_score in ranked[:8])]
        ).T

    X = np.vstack([make_columns(first_samples), make_columns(second_samples)])
    y = np.repeat([1, 0], [len(first_samples), len(second_samples)])
    tree_model = HistGradientBoostingClassifier(
        max_iter=40, max_depth=3, min_samples_leaf=10, early_stopping=False, random_state=0
    ).fit(X, y)
    return lambda artefacts: np.asarray(tree_model.decision_function(make_columns(artefacts)))


@dataclass(frozen=True)
class _NumberScore:
    """The number of a leaf itself."""

    name: str

    def score(self, artefacts: Sequence[Leaves]) -> Floats:
        return np.array(
            [to_finite_number(artefact_leaves.get(self.name)) for artefact_leaves in artefacts]
        )

    def describe_event(self, threshold: float, swapped: bool) -> str:
        return f"{self.name} is at {'most' if swapped else 'least'} {abs(threshold):g}"


@dataclass(frozen=True)
class _JointScore:
    """Many leaves together."""

    score: Score
    description: str

    def describe_event(self, threshold: float, swapped: bool) -> str:
        return self.description


def make_candidates(first_samples: Sequence[Leaves], second_samples: Sequence[Leaves]) -> list[Any]:
    ranked_scores = _rank_leaves(first_samples, second_samples)
    candidate_scores: list[Any] = [*ranked_scores[:SINGLE_LEAVES]]
    candidate_scores += [
        _NumberScore(leaf_score.name)
        for leaf_score in ranked_scores[:SINGLE_LEAVES]
        if leaf_score.edges is not None
    ]
    if len(ranked_scores) < 2:
        return candidate_scores
    candidate_scores += fit_step_scores(first_samples, second_samples)
    distinct_scores = _select_distinct(ranked_scores, first_samples, second_samples)
    for leaf_count in range(2, len(distinct_scores) + 1):
        description = _describe_joint(distinct_scores[:leaf_count], "the sum of the log-ratios of")
        candidate_scores.append(
            _JointScore(_make_sum_score(distinct_scores[:leaf_count]), description)
        )
    for leaf_count in SUM_SIZES:
        summed_scores = [
            leaf_score
            for leaf_score in ranked_scores[:leaf_count]
            if leaf_score.strength > 0 or leaf_count <= 4
        ]
        candidate_scores.append(
            _JointScore(
                _make_sum_score(summed_scores),
                _describe_joint(summed_scores, "the sum of the log-ratios of"),
            )
        )
        if leaf_count >= len(ranked_scores):
            break
    description = _describe_joint(ranked_scores[:MAX_TREE_LEAVES], "a score by boosted trees over")
    return [
        *candidate_scores,
        _JointScore(_fit_trees(ranked_scores, first_samples, second_samples), description),
    ]


def _make_sum_score(leaf_scores: Sequence[_LeafScore]) -> Score:
    return lambda artefacts: np.sum(
        [leaf_score.score(artefacts) for leaf_score in leaf_scores] or [np.zeros(len(artefacts))],
        axis=0,
    )


def _select_distinct(
    ranked: Sequence[_LeafScore], first_samples: Sequence[Leaves], second_samples: Sequence[Leaves]
) -> list[_LeafScore]:
    """Select the best leaves that are not strongly correlated with better ones."""
    distinct_scores: list[_LeafScore] = []
    centred_columns: list[Floats] = []
    for leaf_score in ranked[:MAX_TREE_LEAVES]:
        side_scores = [
            leaf_score.score(side_samples) for side_samples in (first_samples, second_samples)
        ]
        # centred per side: both distinguish the inputs, which alone does not make them redundant
        centred_scores = np.concatenate(
            [score_array - score_array.mean() for score_array in side_scores]
        )
        if not centred_scores.any():
            continue
        centred_scores /= np.linalg.norm(centred_scores)
        if all(
            abs(centred_scores @ earlier_scores) < MAX_CORRELATION
            for earlier_scores in centred_columns
        ):
            distinct_scores.append(leaf_score)
            centred_columns.append(centred_scores)
        if len(distinct_scores) == MAX_DISTINCT_LEAVES:
            break
    return distinct_scores


def _describe_joint(leaf_scores: Sequence[_LeafScore], score_phrase: str) -> str:
    names = ", ".join(leaf_score.name for leaf_score in leaf_scores[:3])
    names += ", …" if len(leaf_scores) > 3 else ""
    return f"{score_phrase} {len(leaf_scores)} parts ({names}) is high"
