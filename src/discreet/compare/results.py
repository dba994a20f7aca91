"""What a comparison of trust models found: scores, intervals, and sentences about them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from discreet.compare.methods import METHODS, TRUST_MODELS
from discreet.display.charts import ChartSeries
from discreet.model.evaluation import Scores
from discreet.privacy.guarantee import format_rounded_up
from discreet.schema.schema import Schema, format_value

if TYPE_CHECKING:
    from discreet.compare.epsilon_search import AccuracySearch

__all__ = [
    "Comparison",
    "ComparisonSettings",
    "MethodResult",
    "RespondentsNeeded",
    "compute_resampled_interval",
]

ACCURACY_TOLERANCE = 0.005
"""An accuracy at most this far below another counts as matching it."""
CONFIDENCE_QUANTILE = 0.975
"""Quantile of a two-sided 95 % interval."""

Interval = tuple[float, float]


@dataclass(frozen=True)
class ComparisonSettings:
    """The methods and epsilons of a comparison, and the number of training runs.

    ``bins`` is how numeric features are cut where people or organisations report cells; "auto"
    leaves it to the default of each estimator. ``accuracy`` is one to reach: the smallest epsilon
    that does is searched for. ``cost`` is what missing a class costs: decisions by cost are scored
    as well.
    """

    epsilons: tuple[float, ...] = (0.1, 0.5, 1.0, 2.0, 5.0)
    methods: tuple[str, ...] = ("histogram", "masks", "questions", "auto")
    folds: int = 5
    repeats: int = 1
    bins: int | Literal["auto"] = "auto"
    seed: int = 0
    most_respondents: int = 1_000_000
    accuracy: float | None = None
    cost: Mapping[str, float] | None = None

    @property
    def focus_epsilon(self) -> float:
        """The epsilon that summaries report: the one nearest to 1, on a log scale."""
        return min(self.epsilons, key=lambda epsilon: abs(math.log(epsilon)))


def compute_resampled_interval(values: Sequence[float], fold_count: int) -> Interval:
    """Compute the 95 % interval of the mean score over folds.

    Student's t with the variance of resampled scores corrected for the rows that training sets
    share: s² (1/J + n_test/n_train), Nadeau and Bengio 2003. No score is below zero.

    Parameters
    ----------
    values : sequence of float
        One per training run, at least two.
    fold_count : int
        Into which the rows were dealt.

    Examples
    --------
    >>> low, high = compute_resampled_interval([0.8, 0.9], fold_count=2)
    >>> round(low, 3), round(high, 3)
    (0.0, 1.95)
    """
    from scipy.stats import t

    score_count, mean_score = len(values), float(np.mean(values))
    corrected_variance = float(np.var(values, ddof=1)) * (1 / score_count + 1 / (fold_count - 1))
    half_width = float(t.ppf(CONFIDENCE_QUANTILE, score_count - 1)) * math.sqrt(corrected_variance)
    return max(0.0, mean_score - half_width), mean_score + half_width


@dataclass(frozen=True, eq=False)
class MethodResult:
    """One method at one epsilon, with the scores of every training."""

    trust: str
    method: str
    epsilon: float
    fold_scores: tuple[Scores, ...]
    fold_count: int
    training_seconds: float
    bytes_per_person: float
    fold_areas: tuple[tuple[float, float], ...] = ()

    def __post_init__(self) -> None:
        # areas are computed once, and the large tables that they follow from are left out
        areas = tuple((scores.auc, scores.average_precision) for scores in self.fold_scores)
        object.__setattr__(self, "fold_areas", areas)
        plain_scores = tuple(
            replace(scores, ranks=np.zeros((0, 2, 0), dtype=np.int64))
            for scores in self.fold_scores
        )
        object.__setattr__(self, "fold_scores", plain_scores)

    @property
    def accuracy(self) -> float:
        """Mean over the folds."""
        return float(np.mean(self._list_scores("accuracy")))

    @property
    def accuracy_interval(self) -> Interval:
        """95 % interval of the accuracy of a model trained so."""
        low, high = self._compute_interval("accuracy")
        return low, min(1.0, high)

    @property
    def log_loss(self) -> float:
        """Mean over the folds."""
        return float(np.mean(self._list_scores("log_loss")))

    @property
    def log_loss_interval(self) -> Interval:
        """95 % interval of the log loss of a model trained so."""
        return self._compute_interval("log_loss")

    @property
    def calibration_error(self) -> float:
        """Mean over the folds."""
        return float(np.mean(self._list_scores("calibration_error")))

    @property
    def calibration_interval(self) -> Interval:
        """95 % interval of the calibration error of a model trained so."""
        return self._compute_interval("calibration_error")

    @property
    def auc(self) -> float:
        """Mean over the folds of the area under the ROC curve."""
        return self._average_areas(0)[0]

    @property
    def auc_interval(self) -> Interval:
        """95 % interval of the area under the ROC curve of a model trained so."""
        return self._average_areas(0)[1]

    @property
    def average_precision(self) -> float:
        """Mean over the folds."""
        return self._average_areas(1)[0]

    @property
    def average_precision_interval(self) -> Interval:
        """95 % interval of the average precision of a model trained so."""
        return self._average_areas(1)[1]

    @property
    def pooled_scores(self) -> Scores:
        """Scores of all test rows together, each predicted by the model of the other folds."""
        pooled_scores = self.fold_scores[0]
        for scores in self.fold_scores[1:]:
            pooled_scores += scores
        return pooled_scores

    def _average_areas(self, position: int) -> tuple[float, Interval]:
        """Mean and interval over the folds that have an area; NaN with fewer than two."""
        areas = [fold[position] for fold in self.fold_areas if not math.isnan(fold[position])]
        if len(areas) < 2:
            return math.nan, (math.nan, math.nan)
        low, high = compute_resampled_interval(areas, self.fold_count)
        return float(np.mean(areas)), (low, min(1.0, high))

    def _list_scores(self, metric: str) -> list[float]:
        return [getattr(scores, metric) for scores in self.fold_scores]

    def _compute_interval(self, metric: str) -> Interval:
        return compute_resampled_interval(self._list_scores(metric), self.fold_count)

    def to_body(self) -> dict[str, Any]:
        """Plain values for JSON."""
        pooled_scores = self.pooled_scores
        cost_scores = pooled_scores.cost_scores
        return {
            "trust": self.trust,
            "method": self.method,
            "epsilon": self.epsilon,
            "accuracy": self.accuracy,
            "interval": list(self.accuracy_interval),
            "auc": self.auc,
            "auc_interval": list(self.auc_interval),
            "average_precision": self.average_precision,
            "average_precision_interval": list(self.average_precision_interval),
            "log_loss": self.log_loss,
            "log_loss_interval": list(self.log_loss_interval),
            "calibration_error": self.calibration_error,
            "calibration_interval": list(self.calibration_interval),
            "classes": {
                entry["class"]: {
                    key: entry[key]
                    for key in (
                        "rows",
                        "precision",
                        "precision_interval",
                        "recall",
                        "recall_interval",
                    )
                }
                for entry in pooled_scores.scores_by_class
            },
            "costs": None if cost_scores is None else cost_scores.to_body(),
            "seconds": self.training_seconds,
            "bytes_per_person": self.bytes_per_person,
        }


@dataclass(frozen=True)
class RespondentsNeeded:
    """How many respondents a local collection would need for an accuracy.

    It is that of a central classifier or, with ``is_asked``, one that was asked for.
    """

    epsilon: float
    target: float
    people: int
    respondents: int | None
    tried: tuple[tuple[int, float, Interval], ...]
    is_asked: bool = False

    @property
    def sentence(self) -> str:
        """In words."""
        if self.is_asked:
            return self._asked_sentence
        sentence_start = (
            f"The central classifier has {100 * self.target:.1f} % from {self.people:,} people"
        )
        if self.respondents is None:
            most_respondents, reached_accuracy, _ = self.tried[-1]
            return (
                f"{sentence_start}; a local collection reached {100 * reached_accuracy:.1f} % with "
                f"{most_respondents:,} respondents, the most that were tried."
            )
        return (
            f"{sentence_start}; a local collection needs about {self.respondents:,} respondents to "
            f"come within {100 * ACCURACY_TOLERANCE:g} points of it, "
            f"{self.respondents / self.people:.1f} times as many."
        )

    @property
    def _asked_sentence(self) -> str:
        """In words, for an accuracy that was asked for."""
        most_respondents, reached_accuracy, (low, high) = self.tried[-1]
        reached_text = f"{100 * reached_accuracy:.1f} % ({100 * low:.1f} to {100 * high:.1f})"
        epsilon_text = format_rounded_up(self.epsilon)
        if self.respondents is None:
            return (
                f"local at epsilon {epsilon_text}: {reached_text} with {most_respondents:,} "
                f"respondents, the most that were tried; {100 * self.target:g} % was not reached."
            )
        return (
            f"local at epsilon {epsilon_text}: about {self.respondents:,} respondents for "
            f"{100 * self.target:g} %; {most_respondents:,} had {reached_text}."
        )


@dataclass(frozen=True, eq=False)
class Comparison:
    """The results, and everything needed to repeat them.

    ``non_private`` is the curator's default without noise, which its accuracy tends to as epsilon
    grows; ``plain`` is plain Naive Bayes of the same rows.
    """

    name: str
    schema: Schema
    row_count: int
    settings: ComparisonSettings
    results: tuple[MethodResult, ...]
    non_private: MethodResult
    plain: MethodResult
    respondents_needed: RespondentsNeeded | None
    skipped_methods: Mapping[str, str] = field(default_factory=dict)
    accuracy_search: AccuracySearch | None = None

    @property
    def trust_models(self) -> list[str]:
        """The trust models that were tried, from the most trust to the least."""
        return [
            trust for trust in TRUST_MODELS if any(result.trust == trust for result in self.results)
        ]

    def find_best(self, trust: str, epsilon: float) -> MethodResult:
        """The most accurate method of a trust model at an epsilon.

        What promises less, a delta besides epsilon, counts only where there is nothing else.
        """
        results = [
            result for result in self.results if (result.trust, result.epsilon) == (trust, epsilon)
        ]
        return max(results, key=lambda result: (not METHODS[result.method].delta, result.accuracy))

    def make_accuracy_series(self) -> list[ChartSeries]:
        """Accuracy against epsilon: each trust model's best method, and three references.

        These are no privacy, plain Naive Bayes and a majority.
        """
        epsilons = self.settings.epsilons
        series = []
        for trust in self.trust_models:
            best_results = [self.find_best(trust, epsilon) for epsilon in epsilons]
            low, high = zip(*(result.accuracy_interval for result in best_results), strict=True)
            accuracies = [result.accuracy for result in best_results]
            series.append(ChartSeries(trust, epsilons, accuracies, low, high))
        label, share = self.majority_class
        for name, accuracy in (
            ("no privacy", self.non_private.accuracy),
            (self.plain.method, self.plain.accuracy),
            (f"always “{label}”", share),
        ):
            end_epsilons, accuracies = [epsilons[0], epsilons[-1]], [accuracy, accuracy]
            series.append(ChartSeries(name, end_epsilons, accuracies, is_reference=True))
        return series

    @property
    def majority_class(self) -> tuple[str, float]:
        """The most frequent class, and how often it is right."""
        class_label, share = self.non_private.pooled_scores.majority_baseline
        return format_value(class_label), share

    def list_focus_results(self) -> list[MethodResult]:
        """The best method of each trust model at the focus epsilon, and the one without privacy."""
        focus_epsilon = self.settings.focus_epsilon
        best_results = [self.find_best(trust, focus_epsilon) for trust in self.trust_models]
        return [*best_results, self.non_private]

    @property
    def remarks(self) -> list[str]:
        """One sentence per trust model below the most frequent class, and on what has a delta."""
        label, share = self.majority_class
        remarks = []
        for trust in self.trust_models:
            failing_epsilons = [
                epsilon
                for epsilon in self.settings.epsilons
                if self.find_best(trust, epsilon).accuracy < share
            ]
            if failing_epsilons:
                epsilons_text = _join_texts(
                    [format_rounded_up(epsilon) for epsilon in failing_epsilons], " and "
                )
                remarks.append(
                    f"{trust}: less accurate than always saying “{label}” at epsilon "
                    f"{epsilons_text}; it needs more people, fewer questions or a larger epsilon."
                )
        for name in self.settings.methods:
            if delta := METHODS[name].delta:
                remarks.append(
                    f"{name}: promises delta {delta:g} besides epsilon, which is a weaker promise "
                    "with less noise where there are many features; it is not counted as the best "
                    "of its trust model."
                )
        return remarks

    @property
    def summary_sentence(self) -> str:
        """One sentence: the accuracy of each trust model at the focus epsilon."""
        focus_epsilon = self.settings.focus_epsilon
        accuracy_by_statement: dict[str, float] = {}  # survey and local share one statement
        for trust in self.trust_models:
            trust_statement = TRUST_MODELS[trust].trust_statement
            accuracy = self.find_best(trust, focus_epsilon).accuracy
            accuracy_by_statement[trust_statement] = max(
                accuracy_by_statement.get(trust_statement, 0.0), accuracy
            )
        clauses = [
            f"for {100 * accuracy:.0f} when {trust_statement}"
            for trust_statement, accuracy in accuracy_by_statement.items()
        ]
        clauses[0] = clauses[0].replace(" when", " of 100 people when", 1)
        label, share = self.majority_class
        return (
            f"At epsilon {format_rounded_up(focus_epsilon)} the classifier is right "
            f"{_join_texts(clauses)}; without privacy for {100 * self.non_private.accuracy:.0f}, "
            f"plain Naive Bayes for {100 * self.plain.accuracy:.0f}, and always saying “{label}” "
            f"for {100 * share:.0f}."
        )

    def to_body(self) -> dict[str, Any]:
        """Plain values for JSON."""
        label, share = self.majority_class
        return {
            "data": self.name,
            "rows": self.row_count,
            "protected": False,
            "answer": self.summary_sentence,
            "settings": {**vars(self.settings), "methods": list(self.settings.methods)},
            "majority": {"class": label, "accuracy": share},
            "non_private": self.non_private.to_body(),
            "plain": self.plain.to_body(),
            "results": [result.to_body() for result in self.results],
            "remarks": self.remarks,
            "best": {
                trust: {
                    format_rounded_up(epsilon): self.find_best(trust, epsilon).method
                    for epsilon in self.settings.epsilons
                }
                for trust in self.trust_models
            },
            "respondents": None
            if self.respondents_needed is None
            else {**vars(self.respondents_needed), "sentence": self.respondents_needed.sentence},
            "skipped": dict(self.skipped_methods),
            "accuracy_search": None
            if self.accuracy_search is None
            else self.accuracy_search.to_body(),
        }


def _join_texts(texts: Sequence[str], last_separator: str = ", and ") -> str:
    return texts[0] if len(texts) == 1 else f"{', '.join(texts[:-1])}{last_separator}{texts[-1]}"
