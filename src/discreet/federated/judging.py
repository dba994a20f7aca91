"""A second stage of horizontal rounds: holders of rows judge candidate models.

Tables of a first round say how each feature goes with the class, but not how much their evidence
says together: where features depend on each other, a model of all of them is too sure. So the
receiver publishes candidates made from the open totals, and every provider counts which of its
rows they get right. These counts are added up like any others, with shares of noise.

**What is counted.** Candidates are the first model with its evidence weighted by 1, .7, … 0, and a
few other models. Weights are counted as changes along the path: rows that a weight gets right and
the weight before did not, less rows for which it is the other way round. Scores are linear in the
weight, so a row is right on an interval of weights: along the path it changes at most twice, and of
two classes at most once, in whole numbers exactly. Any other model is counted as its difference
from the first, -1, 0 or 1 per row. One row so changes the counters by at most 1 or 2, plus 1 for
each other model, instead of 1 for each candidate (docs/maths.md, "Judged candidates").
"""

from __future__ import annotations

import math
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
from pydantic import Field

from discreet.arrays import Array, Floats, Integers
from discreet.errors import SchemaError
from discreet.estimation.candidates import choose_candidate, make_candidate, rank_features
from discreet.estimation.from_statistics import estimate
from discreet.files.documents import Body, compute_digest
from discreet.statistics.candidate import CandidateModel, CandidateModelBody
from discreet.statistics.scoring import Scoring
from discreet.statistics.statistics import Statistics

if TYPE_CHECKING:
    from discreet.federated.agreement.manifest import Manifest

__all__ = [
    "JUDGING_SHARE",
    "Judging",
    "JudgingBody",
    "compute_statistics_digest",
    "make_judging",
    "make_judging_manifest",
    "pays_to_judge",
    "split_judging_epsilon",
]

JUDGING_SHARE = 0.05
"""Share of epsilon for judging candidates: docs/experiments/federated.md, "A second stage"."""
EVIDENCE_PERCENTAGES = (100, 70, 50, 35, 25, 0)
"""Weights of the evidence of all features, in hundredths; 0 is the majority class alone."""
MAX_PERCENTAGES = 16
"""Most weights of a path."""
MAX_OTHER_MODELS = 7
"""Most models that are judged besides the first: each adds 1 to the sensitivity of all counters."""
BEST_FEATURE_COUNT = 2
"""Features of the other candidate, those that say most."""
MIN_PEOPLE_TIMES_EPSILON = 1000.0
"""Candidates are judged when people times the whole epsilon is at least this; below, noise hides a
difference of a tenth of all rows: docs/experiments/federated.md, "A second stage"."""

MIN_LEAD_DEVIATIONS = 1.5
"""Standard deviations of the noise by which a candidate must be ahead of the first model; 0 to 2
compared on eight tables: docs/experiments/federated.md, "A second stage"."""

DIGEST_PATTERN = "^sha256:[0-9a-f]{64}$"
ROUND_PATTERN = "^[0-9a-f]{64}$"
Percentage = Annotated[int, Field(strict=True, ge=0, le=100)]


@dataclass(frozen=True, eq=False)
class Judging:
    """Candidate models of a first round, and how rows are counted that they get right.

    Parameters
    ----------
    first_round : str
        Hash of the manifest of the first round, in hexadecimal.
    statistics_digest : str
        Digest of the statistics that the candidates are made from.
    percentages : tuple of int
        Weights of the first model's evidence, in hundredths, from 100 downwards.
    models : tuple of CandidateModel
        The first, whose evidence is weighted, and any others.
    """

    first_round: str
    statistics_digest: str
    percentages: tuple[int, ...]
    models: tuple[CandidateModel, ...]

    def __post_init__(self) -> None:
        descending = sorted({*self.percentages}, reverse=True)
        if (
            list(self.percentages) != descending
            or not 2 <= len(self.percentages) <= MAX_PERCENTAGES
            or (self.percentages[0], self.percentages[-1] >= 0) != (100, True)
        ):
            raise SchemaError(
                f"percentages={self.percentages}; write 2 to {MAX_PERCENTAGES} whole numbers that "
                "fall from 100"
            )
        if not 1 <= len(self.models) <= 1 + MAX_OTHER_MODELS:
            raise SchemaError(
                f"{len(self.models)} candidate models; write 1 to {1 + MAX_OTHER_MODELS}"
            )
        if len(self.models[0].offsets) < 2:
            raise SchemaError("candidate models need two classes to decide between")

    @property
    def counter_count(self) -> int:
        """Number of counters: steps of the path, and other models."""
        return len(self.percentages) - 1 + len(self.models) - 1

    @property
    def sensitivity(self) -> int:
        """Sum of the absolute changes of all counters by one row, at most."""
        path_changes = 1 if len(self.models[0].offsets) == 2 else 2
        return min(path_changes, len(self.percentages) - 1) + len(self.models) - 1

    def check_cells(self, class_count: int, cell_counts: Mapping[str, int]) -> None:
        """Raise if the models do not fit what the round reads of a row."""
        for model in self.models:
            model.check_cells(class_count, cell_counts)

    def count_rows(self, cell_indices: Mapping[str, Array], class_codes: Array) -> Integers:
        """Count exactly; the result must stay with the holder of the rows.

        Parameters
        ----------
        cell_indices : mapping of feature name to array of int, (rows,)
        class_codes : array of int, (rows,)
        """
        first_model, class_codes = self.models[0], np.asarray(class_codes)
        evidence = first_model.score_rows(cell_indices) - first_model.offsets
        # whole numbers below 2^53: 100 (2^16 features + 1) 2^20
        correct_by_weight = [
            (100 * first_model.offsets + percentage * evidence).argmax(axis=1) == class_codes
            for percentage in self.percentages
        ]
        correct_counts = np.array([np.count_nonzero(correct) for correct in correct_by_weight])
        other_counts = np.array(
            [
                np.count_nonzero(model.predict(cell_indices) == class_codes)
                for model in self.models[1:]
            ],
            dtype=np.int64,
        )
        return np.concatenate([np.diff(correct_counts), other_counts - correct_counts[0]]).astype(
            np.int64
        )

    def sum_excess(self, counters: Array, variance: float) -> tuple[Floats, Floats]:
        """How many more rows each candidate gets right than the first, and the noise variances.

        Parameters
        ----------
        counters : array of int, (counter_count,)
            With noise.
        variance : float
            Of the noise of each.
        """
        step_count = len(self.percentages) - 1
        steps, others = counters[:step_count], counters[step_count:]
        step_variances = variance * np.arange(1, step_count + 1)
        return (
            np.concatenate([[0.0], np.cumsum(steps), others]),
            np.concatenate([[0.0], step_variances, np.full(len(others), variance)]),
        )

    def choose_scoring(self, statistics: Statistics, counters: Array, variance: float) -> Scoring:
        """Choose how the statistics of the first round are scored.

        Parameters
        ----------
        statistics : Statistics
            Those of which the candidates were made.
        counters, variance
            As for :meth:`sum_excess`.
        """
        first_scoring = statistics.scoring
        scorings = [
            replace(first_scoring, beta=first_scoring.beta * percentage / 100)
            for percentage in self.percentages
        ]
        scorings += [replace(first_scoring, features=tuple(m.tables)) for m in self.models[1:]]
        excess_counts, excess_variances = self.sum_excess(counters, variance)
        return scorings[choose_candidate(excess_counts, excess_variances, MIN_LEAD_DEVIATIONS)]

    @cached_property
    def features(self) -> tuple[str, ...]:
        """All features that a model reads."""
        return tuple(dict.fromkeys(name for model in self.models for name in model.tables))

    def to_body(self) -> dict[str, Any]:
        """Plain values for a JSON document."""
        return {
            "first_round": self.first_round,
            "statistics": self.statistics_digest,
            "percentages": list(self.percentages),
            "models": [model.to_body() for model in self.models],
            "sensitivity": self.sensitivity,
        }


class JudgingBody(Body):
    """Shape of a Judging inside a manifest."""

    first_round: Annotated[str, Field(pattern=ROUND_PATTERN)]
    statistics: Annotated[str, Field(pattern=DIGEST_PATTERN)]
    percentages: Annotated[list[Percentage], Field(max_length=MAX_PERCENTAGES)]
    models: Annotated[list[CandidateModelBody], Field(max_length=1 + MAX_OTHER_MODELS)]
    sensitivity: int

    def to_judging(self) -> Judging:
        """The value this shape stands for; its sensitivity is computed, and compared."""
        judging = Judging(
            self.first_round,
            self.statistics,
            tuple(self.percentages),
            tuple(model_body.to_candidate() for model_body in self.models),
        )
        if judging.sensitivity != self.sensitivity:
            raise SchemaError(
                f"this manifest states the sensitivity {self.sensitivity}, but its candidates have "
                f"{judging.sensitivity}; do not sign it"
            )
        return judging


def compute_statistics_digest(statistics: Statistics) -> str:
    """Digest of noised statistics, by which a round of judging names them."""
    return compute_digest(statistics.to_json().encode())


def make_judging(first_round: str, statistics: Statistics) -> Judging:
    """Make the candidates of the released statistics of a round.

    Parameters
    ----------
    first_round : str
        Hash of its manifest, in hexadecimal.
    statistics : Statistics
    """
    model = estimate(statistics)
    models = [make_candidate(model)]
    if len(model.factors) > BEST_FEATURE_COUNT:
        best_features = rank_features(model)[:BEST_FEATURE_COUNT]
        scoring = replace(statistics.scoring, features=best_features)
        models.append(make_candidate(estimate(replace(statistics, scoring=scoring))))
    return Judging(
        first_round, compute_statistics_digest(statistics), EVIDENCE_PERCENTAGES, tuple(models)
    )


def make_judging_manifest(
    first_manifest: Manifest,
    statistics: Statistics,
    epsilon: float,
    deadline: str = "",
) -> Manifest:
    """Make the unsigned manifest of a round that judges models of another, by the same parties.

    Parameters
    ----------
    first_manifest : Manifest
    statistics : Statistics
        What its receiver got.
    epsilon : float
        Of judging alone.
    deadline : str
        As in a manifest.
    """
    if first_manifest.judging is not None:
        raise SchemaError("this manifest judges models itself; give that of the first round")
    if first_manifest.schema_digest != statistics.schema.digest:
        raise SchemaError("these statistics follow another schema than the manifest")
    judging = make_judging(first_manifest.hash.hex(), statistics)
    return replace(
        first_manifest,
        requests=tuple(
            request for request in first_manifest.requests if request.feature in judging.features
        ),
        epsilon=epsilon,
        margin=0,
        round=first_manifest.round + 1,
        nonce=secrets.token_hex(16),
        deadline=deadline,
        judging=judging,
        signatures={},
    )


def split_judging_epsilon(epsilon: float) -> tuple[float, float]:
    """Split epsilon into that of the tables and that of judging, which add up to it exactly.

    Parameters
    ----------
    epsilon : float

    Examples
    --------
    >>> counting_epsilon, judging_epsilon = split_judging_epsilon(1.0)
    >>> counting_epsilon, counting_epsilon + judging_epsilon
    (0.95, 1.0)
    """
    if math.isinf(epsilon):
        return epsilon, epsilon
    counting_epsilon = epsilon * (1 - JUDGING_SHARE)
    return counting_epsilon, epsilon - counting_epsilon  # exact: Sterbenz 1974


def pays_to_judge(people: float, epsilon: float) -> bool:
    """Whether the noise of judging leaves room for a choice, by public numbers alone.

    Parameters
    ----------
    people : float
        As many as are expected, or as the released totals of the first round say.
    epsilon : float
        Of both rounds together.

    Examples
    --------
    >>> pays_to_judge(3000, 1.0), pays_to_judge(500, 1.0)
    (True, False)
    """
    return not math.isinf(epsilon) and people * epsilon >= MIN_PEOPLE_TIMES_EPSILON
