"""Compare trust models on one table: cross-validated classifiers at several epsilons.

The results are computed from raw data and are not protected: for planning, by people who may read
the table.
"""

from __future__ import annotations

import json
import math
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np

from discreet.compare.epsilon_search import AccuracySearch, search_epsilon
from discreet.compare.methods import METHODS
from discreet.compare.results import (
    ACCURACY_TOLERANCE,
    Comparison,
    ComparisonSettings,
    Interval,
    MethodResult,
    RespondentsNeeded,
    compute_resampled_interval,
)
from discreet.errors import EstimationError, PrivacyWarning, SchemaError
from discreet.model.costs import resolve_costs
from discreet.model.evaluation import Scores, score_model, split_folds
from discreet.schema.cells import format_missing_columns, is_missing
from discreet.schema.schema import Schema, format_value

__all__ = ["Comparison", "ComparisonSettings", "compare_methods", "read_labelled_rows"]

SAMPLED_RECORDS = 40
"""Number of records whose mean size is reported as bytes per person."""
MAX_TRIAL_SPLITS = 4
"""Largest number of folds on which a number of respondents is tried."""
RESPONDENT_GROWTH = 4
"""Factor between the numbers of respondents that are tried one after the other."""

ProgressCallback = Callable[[int, int], None]


def read_labelled_rows(data: str, schema: Schema) -> tuple[Any, Any]:
    """Read the features and the classes of a table.

    Parameters
    ----------
    data : str
        File or address.
    schema : Schema
    """
    from discreet.tables.engines import open_table

    data_table = open_table(data)
    required_columns = [*schema.names, schema.target]
    present_columns = list(data_table.columns)
    if missing := [name for name in required_columns if name not in present_columns]:
        raise SchemaError(f"the table {format_missing_columns(missing, present_columns)}")
    frame = data_table.select(*required_columns).to_pandas()
    return frame[list(schema.names)], frame[schema.target].to_numpy()


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
    method_epsilons = list(product(settings.methods, settings.epsilons))
    run_count = len(method_epsilons) + 3
    results: list[MethodResult] = []
    skipped_methods: dict[str, str] = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PrivacyWarning)  # the caller warns once that data are raw
        run = _ComparisonRun(schema, X, labels, settings)
        _ = run.costs  # a cost of no class is refused before anything is trained
        non_private = run.score_non_private()
        plain = run.score_plain()
        for run_number, (method, epsilon) in enumerate(method_epsilons, 2):
            if method not in skipped_methods:
                try:
                    results.append(run.score_method(method, epsilon))
                except EstimationError as error:  # a sheet of a billion cells, for instance
                    skipped_methods[method] = str(error)
            if report_progress:
                report_progress(run_number, run_count)
        results = [result for result in results if result.method not in skipped_methods]
        respondents_needed = run.estimate_respondents_needed(results, settings.focus_epsilon)
        accuracy_search = run.search_accuracy(results, non_private)
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
        plain,
        respondents_needed,
        skipped_methods,
        accuracy_search,
    )


@dataclass(frozen=True)
class _ComparisonRun:
    """The rows, dealt into folds."""

    schema: Schema
    X: Any
    y: Any
    settings: ComparisonSettings

    @property
    def costs(self) -> tuple[float, ...] | None:
        """Of missing each class, if that was asked for."""
        cost = self.settings.cost
        return None if cost is None else resolve_costs(self.schema.classes, cost)

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
            fold_scores.append(
                score_model(estimator.model_, self.X.iloc[test], self.y[test], self.costs)
            )
        return tuple(fold_scores), total_seconds / len(fold_scores), estimator

    def score_method(self, method_name: str, epsilon: float) -> MethodResult:
        method, bins = METHODS[method_name], self.settings.bins
        fold_scores, seconds, last_estimator = self._fit_folds(
            lambda seed: method.make_estimator(self.schema, epsilon, bins, seed)
        )
        return MethodResult(
            method.trust,
            method_name,
            epsilon,
            fold_scores,
            self.settings.folds,
            seconds,
            self._compute_sent_bytes(method.trust, last_estimator),
        )

    def score_non_private(self) -> MethodResult:
        """Score the curator's classifier without noise: what its accuracy tends to."""
        from discreet.estimators import CentralNB

        return self._score_exact("non-private", CentralNB(math.inf, schema=self.schema))

    def score_plain(self) -> MethodResult:
        """Score plain Naive Bayes of all records."""
        from discreet.estimators import MixedNB

        return self._score_exact("plain Naive Bayes", MixedNB(schema=self.schema))

    def _score_exact(self, name: str, estimator: Any) -> MethodResult:
        """Score a classifier that sees all records, and draws nothing."""
        fold_scores, seconds, _ = self._fit_folds(lambda seed: estimator)
        bytes_per_person, fold_count = self._compute_record_bytes(), self.settings.folds
        return MethodResult(
            "none", name, math.inf, fold_scores, fold_count, seconds, bytes_per_person
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

    def search_accuracy(
        self, results: Sequence[MethodResult], non_private: MethodResult
    ) -> AccuracySearch | None:
        """Search what reaches the accuracy that was asked for; None if none was."""
        target_accuracy = self.settings.accuracy
        if target_accuracy is None:
            return None
        needed_epsilons = [
            search_epsilon(
                [result for result in results if result.trust == trust],
                target_accuracy,
                non_private,
                self.score_method,
            )
            for trust in dict.fromkeys(result.trust for result in results)
        ]
        respondents = self.estimate_respondents_needed(
            results, self.settings.focus_epsilon, target_accuracy
        )
        class_values, class_counts = np.unique(
            [format_value(label) for label in self.y], return_counts=True
        )
        majority_index = int(np.argmax(class_counts))
        return AccuracySearch(
            target_accuracy,
            len(self.make_splits()[0][1]),
            (str(class_values[majority_index]), class_counts[majority_index] / len(self.y)),
            tuple(needed_epsilons),
            respondents,
        )

    def estimate_respondents_needed(
        self,
        results: Sequence[MethodResult],
        epsilon: float,
        asked_accuracy: float | None = None,
    ) -> RespondentsNeeded | None:
        """Find how many respondents (rows drawn with replacement) match an accuracy.

        That of the central classifier at this epsilon, unless another is asked for.
        """
        epsilon_results = [result for result in results if result.epsilon == epsilon]
        central_accuracies = [
            result.accuracy for result in epsilon_results if result.trust == "central"
        ]
        local_results = [result for result in epsilon_results if result.trust == "local"]
        if not local_results or (asked_accuracy is None and not central_accuracies):
            return None
        target_accuracy = max(central_accuracies) if asked_accuracy is None else asked_accuracy
        best_local = max(local_results, key=lambda result: result.accuracy)
        splits = self.make_splits()[:MAX_TRIAL_SPLITS]
        training_people = len(splits[0][1])
        trials = [(training_people, best_local.accuracy, best_local.accuracy_interval)]
        tolerance = ACCURACY_TOLERANCE if asked_accuracy is None else 0.0
        sufficient_accuracy = target_accuracy - tolerance
        while (
            trials[-1][1] < sufficient_accuracy
            and RESPONDENT_GROWTH * trials[-1][0] <= self.settings.most_respondents
        ):
            respondent_count = RESPONDENT_GROWTH * trials[-1][0]
            accuracies = [
                self._score_respondents(best_local, respondent_count, *split) for split in splits
            ]
            interval = compute_resampled_interval(accuracies, self.settings.folds)
            trials.append((respondent_count, float(np.mean(accuracies)), interval))
        return RespondentsNeeded(
            epsilon,
            target_accuracy,
            training_people,
            _find_crossing(trials, sufficient_accuracy),
            tuple(trials),
            asked_accuracy is not None,
        )

    def _score_respondents(
        self, local_result: MethodResult, respondent_count: int, seed: int, train: Any, test: Any
    ) -> float:
        """Accuracy of a local method trained on rows that are drawn with replacement."""
        row_indices = np.random.default_rng(seed).choice(train, respondent_count)
        nb = METHODS[local_result.method].make_estimator(
            self.schema, local_result.epsilon, self.settings.bins, seed
        )
        nb.fit(self.X.iloc[row_indices], self.y[row_indices])
        return score_model(nb.model_, self.X.iloc[test], self.y[test]).accuracy


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
