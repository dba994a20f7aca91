"""Compare trust models on one table: cross-validated classifiers at several epsilons.

The results are computed from raw data and are not protected: for planning, by people who may read
the table.
"""

from __future__ import annotations

import json
import math
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from discreet.compare.methods import METHODS, TRUST_MODELS
from discreet.errors import EstimationError, PrivacyWarning
from discreet.model.evaluation import Scores, score_model, split_folds
from discreet.privacy.guarantee import format_rounded_up
from discreet.schema.cells import is_missing
from discreet.schema.schema import Schema, format_value

__all__ = [
    "Comparison",
    "ComparisonSettings",
    "MethodResult",
    "RespondentsNeeded",
    "compare_methods",
]

ProgressCallback = Callable[[int, int], None]


@dataclass(frozen=True)
class ComparisonSettings:
    """The methods and epsilons of a comparison, and the number of training runs."""

    epsilons: tuple[float, ...] = (0.1, 0.5, 1.0, 2.0, 5.0)
    methods: tuple[str, ...] = ("histogram", "masks", "questions", "auto")
    folds: int = 5
    repeats: int = 1
    bins: int = 8
    seed: int = 0
    most_respondents: int = 1_000_000

    @property
    def focus_epsilon(self) -> float:
        """The epsilon that summaries report: the one nearest to 1, on a log scale."""
        return min(self.epsilons, key=lambda epsilon: abs(math.log(epsilon)))


Interval = tuple[float, float]


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

    @property
    def accuracy(self) -> float:
        """Mean over the folds."""
        return float(np.mean([scores.accuracy for scores in self.fold_scores]))

    @property
    def accuracy_interval(self) -> Interval:
        """95 % interval of the accuracy of a model trained so."""
        low, high = compute_resampled_interval(
            [scores.accuracy for scores in self.fold_scores], self.fold_count
        )
        return low, min(1.0, high)

    @property
    def log_loss(self) -> float:
        """Mean over the folds."""
        return float(np.mean([scores.log_loss for scores in self.fold_scores]))

    @property
    def log_loss_interval(self) -> Interval:
        """95 % interval of the log loss of a model trained so."""
        return compute_resampled_interval(
            [scores.log_loss for scores in self.fold_scores], self.fold_count
        )

    @property
    def calibration_error(self) -> float:
        """Mean over the folds."""
        return float(np.mean([scores.calibration_error for scores in self.fold_scores]))

    @property
    def calibration_interval(self) -> Interval:
        """95 % interval of the calibration error of a model trained so."""
        return compute_resampled_interval(
            [scores.calibration_error for scores in self.fold_scores], self.fold_count
        )

    def to_body(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {
            "trust": self.trust,
            "method": self.method,
            "epsilon": self.epsilon,
            "accuracy": self.accuracy,
            "interval": list(self.accuracy_interval),
            "log_loss": self.log_loss,
            "log_loss_interval": list(self.log_loss_interval),
            "calibration_error": self.calibration_error,
            "calibration_interval": list(self.calibration_interval),
            "seconds": self.training_seconds,
            "bytes_per_person": self.bytes_per_person,
        }


@dataclass(frozen=True)
class RespondentsNeeded:
    """How many respondents a local collection would need for the accuracy of a central one."""

    epsilon: float
    target: float
    people: int
    respondents: int | None
    tried: tuple[tuple[int, float, Interval], ...]

    @property
    def sentence(self) -> str:
        """In words."""
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


ACCURACY_TOLERANCE = 0.005
"""An accuracy at most this far below another counts as matching it."""
SAMPLED_RECORDS = 40
"""Number of records whose mean size is reported as bytes per person."""
MAX_TRIAL_SPLITS = 4
"""Largest number of folds on which a number of respondents is tried."""
RESPONDENT_GROWTH = 4
"""Factor between the numbers of respondents that are tried one after the other."""
CONFIDENCE_QUANTILE = 0.975
"""Quantile of a two-sided 95 % interval."""


@dataclass(frozen=True, eq=False)
class Comparison:
    """The results, and everything needed to repeat them."""

    name: str
    schema: Schema
    row_count: int
    settings: ComparisonSettings
    results: tuple[MethodResult, ...]
    non_private: MethodResult
    respondents_needed: RespondentsNeeded | None
    skipped_methods: Mapping[str, str] = field(default_factory=dict)

    @property
    def trust_models(self) -> list[str]:
        """The trust models that were tried, from the most trust to the least."""
        return [
            trust for trust in TRUST_MODELS if any(result.trust == trust for result in self.results)
        ]

    def find_best(self, trust: str, epsilon: float) -> MethodResult:
        """The most accurate method of a trust model at an epsilon."""
        results = [
            result for result in self.results if (result.trust, result.epsilon) == (trust, epsilon)
        ]
        return max(results, key=lambda result: result.accuracy)

    @property
    def majority_class(self) -> tuple[str, float]:
        """The most frequent class, and how often it is right."""
        pooled_scores = self.non_private.fold_scores[0]
        for scores in self.non_private.fold_scores[1:]:
            pooled_scores += scores
        class_label, share = pooled_scores.majority_baseline
        return format_value(class_label), share

    @property
    def remarks(self) -> list[str]:
        """One sentence per trust model that is less accurate than the most frequent class."""
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
        return remarks

    @property
    def summary_sentence(self) -> str:
        """One sentence: the accuracy of each trust model at the focus epsilon."""
        focus_epsilon = self.settings.focus_epsilon
        accuracy_by_statement: dict[str, float] = {}  # survey and local share one statement
        for trust in self.trust_models:
            trust_statement, accuracy = (
                TRUST_MODELS[trust].trust_statement,
                self.find_best(trust, focus_epsilon).accuracy,
            )
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
            f"and always saying “{label}” for {100 * share:.0f}."
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
            else {
                **vars(self.respondents_needed),
                "sentence": self.respondents_needed.sentence,
            },
            "skipped": dict(self.skipped_methods),
        }


def _join_texts(texts: Sequence[str], last_separator: str = ", and ") -> str:
    return texts[0] if len(texts) == 1 else f"{', '.join(texts[:-1])}{last_separator}{texts[-1]}"


def compare_methods(
    name: str,
    schema: Schema,
    X: Any,
    y: Any,
    settings: ComparisonSettings,
    report_progress: ProgressCallback | None = None,
) -> Comparison:
    """Cross-validate every method at every epsilon on one table.

    Parameters
    ----------
    name : str
        What the table is called in the report.
    schema : Schema
    X : pandas data frame
    y : array of classes
    settings : ComparisonSettings
    report_progress : callable, optional
        Called with the number of finished and of all runs.

    Returns
    -------
    Comparison
    """
    labels = np.asarray(y)
    if len(labels) < 10 * settings.folds:
        raise EstimationError(
            f"{len(labels)} rows are too few for {settings.folds} folds; have at least "
            f"{10 * settings.folds}"
        )
    method_epsilons = [
        (method, run_epsilon) for method in settings.methods for run_epsilon in settings.epsilons
    ]
    run_count, runs_done = len(method_epsilons) + 2, 0
    results: list[MethodResult] = []
    skipped_methods: dict[str, str] = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PrivacyWarning)  # the caller warns once that data are raw
        run = _ComparisonRun(schema, X, labels, settings)
        non_private = run.score_non_private()
        for method, epsilon in method_epsilons:
            if method not in skipped_methods:
                try:
                    results.append(run.score_method(method, epsilon))
                except EstimationError as error:  # a sheet of a billion cells, for instance
                    skipped_methods[method] = str(error)
            runs_done += 1
            if report_progress:
                report_progress(runs_done, run_count)
        results = [result for result in results if result.method not in skipped_methods]
        respondents_needed = run.estimate_respondents_needed(results, settings.focus_epsilon)
    if not results:
        raise EstimationError(f"no method could be tried: {'; '.join(skipped_methods.values())}")
    if report_progress:
        report_progress(run_count, run_count)
    return Comparison(
        name,
        schema,
        len(labels),
        settings,
        tuple(results),
        non_private,
        respondents_needed,
        skipped_methods,
    )


@dataclass(frozen=True)
class _ComparisonRun:
    """The rows, dealt into folds."""

    schema: Schema
    X: Any
    y: Any
    settings: ComparisonSettings

    def make_splits(self) -> list[tuple[int, Any, Any]]:
        settings = self.settings
        return [
            (settings.seed + repeat, train, test)
            for repeat in range(settings.repeats)
            for train, test in split_folds(self.y, settings.folds, settings.seed + repeat)
        ]

    def _fit_folds(
        self, make_estimator: Callable[[int], Any]
    ) -> tuple[tuple[Scores, ...], float, Any]:
        fold_scores, total_seconds, estimator = [], 0.0, None
        for fold_number, (seed, train, test) in enumerate(self.make_splits()):
            estimator = make_estimator(1000 * seed + fold_number)
            start_time = time.perf_counter()
            estimator.fit(self.X.iloc[train], self.y[train])
            total_seconds += time.perf_counter() - start_time
            fold_scores.append(score_model(estimator.model_, self.X.iloc[test], self.y[test]))
        return tuple(fold_scores), total_seconds / len(fold_scores), estimator

    def score_method(self, method_name: str, epsilon: float) -> MethodResult:
        method, bins = METHODS[method_name], self.settings.bins
        fold_scores, seconds, last_estimator = self._fit_folds(
            lambda seed: method.make_estimator(self.schema, epsilon, bins, seed)
        )
        bytes_per_person = self._compute_sent_bytes(method.trust, last_estimator)
        return MethodResult(
            method.trust,
            method_name,
            epsilon,
            fold_scores,
            self.settings.folds,
            seconds,
            bytes_per_person,
        )

    def score_non_private(self) -> MethodResult:
        """Score the classifier without noise, which sees all records."""
        from discreet.estimators import MixedNB

        fold_scores, seconds, _ = self._fit_folds(lambda seed: MixedNB(schema=self.schema))
        bytes_per_person, fold_count = self._compute_record_bytes(), self.settings.folds
        return MethodResult(
            "none", "non-private", math.inf, fold_scores, fold_count, seconds, bytes_per_person
        )

    def _sample_records(self, count: int = SAMPLED_RECORDS) -> list[dict[str, Any]]:
        sample_rows = self.X.iloc[:count].copy()
        sample_rows[self.schema.target] = self.y[:count]
        tokens = self.schema.missing_tokens
        return [
            {key: None if is_missing(value, tokens) else value for key, value in row.items()}
            for row in sample_rows.to_dict("records")
        ]

    def _compute_record_bytes(self) -> float:
        record_texts = [
            json.dumps(row, default=str, ensure_ascii=False) for row in self._sample_records()
        ]
        return float(np.mean([len(text.encode()) for text in record_texts]))

    def _compute_sent_bytes(self, trust: str, estimator: Any) -> float:
        """Bytes sent per person: the plain record, a report, or a share of the hidden counts."""
        if trust == "central":
            return self._compute_record_bytes()
        if trust == "federated":
            manifest = estimator.manifest_
            return float(8 * manifest.layout.size * len(manifest.providers) / len(self.y))
        from discreet.collection.respondent import MemoryStore, Respondent
        from discreet.randomness import SeededRandom

        collection = estimator.plan_ if trust == "local" else estimator.questionnaire_
        random, report_sizes = SeededRandom(self.settings.seed), []
        for row in self._sample_records():
            has_groups = collection.assignment == "groups"
            group_index = int(collection.draw_questions(1, random)[0]) if has_groups else None
            respondent = Respondent(collection, MemoryStore(), group_index, random_state=random)
            report_sizes.append(len(respondent.report(row).to_json().encode()))
        return float(np.mean(report_sizes))

    def estimate_respondents_needed(
        self, results: Sequence[MethodResult], epsilon: float
    ) -> RespondentsNeeded | None:
        """Find how many respondents (rows drawn with replacement) match the central accuracy."""
        epsilon_results = [result for result in results if result.epsilon == epsilon]
        central_accuracies = [
            result.accuracy for result in epsilon_results if result.trust == "central"
        ]
        local_results = [result for result in epsilon_results if result.trust == "local"]
        if not central_accuracies or not local_results:
            return None
        target_accuracy, best_local = (
            max(central_accuracies),
            max(local_results, key=lambda result: result.accuracy),
        )
        splits = self.make_splits()[:MAX_TRIAL_SPLITS]
        training_people = len(splits[0][1])
        trials = [(training_people, best_local.accuracy, best_local.accuracy_interval)]
        while (
            trials[-1][1] < target_accuracy - ACCURACY_TOLERANCE
            and RESPONDENT_GROWTH * trials[-1][0] <= self.settings.most_respondents
        ):
            respondent_count = RESPONDENT_GROWTH * trials[-1][0]
            accuracies = []
            for seed, train, test in splits:
                row_indices = np.random.default_rng(seed).choice(train, respondent_count)
                nb = METHODS[best_local.method].make_estimator(
                    self.schema, epsilon, self.settings.bins, seed
                )
                nb.fit(self.X.iloc[row_indices], self.y[row_indices])
                accuracies.append(score_model(nb.model_, self.X.iloc[test], self.y[test]).accuracy)
            trials.append(
                (
                    respondent_count,
                    float(np.mean(accuracies)),
                    compute_resampled_interval(accuracies, self.settings.folds),
                )
            )
        return RespondentsNeeded(
            epsilon,
            target_accuracy,
            training_people,
            _find_crossing(trials, target_accuracy - ACCURACY_TOLERANCE),
            tuple(trials),
        )


def _find_crossing(
    trials: Sequence[tuple[int, float, Interval]], target_accuracy: float
) -> int | None:
    """Respondents that reach the target: linear in log(respondents), two digits."""
    last_respondents, last_accuracy, _ = trials[-1]
    if last_accuracy < target_accuracy:
        return None
    if len(trials) == 1:
        return last_respondents
    previous_respondents, previous_accuracy, _ = trials[-2]
    log_share = (target_accuracy - previous_accuracy) / (last_accuracy - previous_accuracy)
    crossing_respondents = (
        previous_respondents * (last_respondents / previous_respondents) ** log_share
    )
    rounding_unit = 10 ** (len(str(int(crossing_respondents))) - 2)
    return int(math.ceil(crossing_respondents / rounding_unit) * rounding_unit)
