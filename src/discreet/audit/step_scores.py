"""Step scores for numbers with added noise: whether each is above or below one cut.

Numbers of an artefact often share their noise: a total and a mean, a count and what is computed
from it. So each number is first residualised on the earlier ones of its part of the artefact (least
squares); where numbers are sums of independent draws, single draws remain. The log-ratio of two
shifted Laplace distributions is nearly a step, so one cut per number is nearly optimal and needs
few samples to fit.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from discreet.arrays import Floats
from discreet.audit.artefact import DERIVED_SUFFIXES, Leaves

__all__ = ["StepScore", "fit_step_scores", "to_finite_number"]

MAX_NUMBERS_PER_PART = 48
"""Largest number of numbers used from one part of the artefact."""
CUT_QUANTILES = np.linspace(0.04, 0.96, 24)
"""Quantiles of a number at which it may be cut in two."""
MIN_RESIDUAL_SPREAD = 1e-7
"""Residual spread (relative) below which a number is a function of the earlier ones."""


def to_finite_number(value: float | str | None) -> float:
    """Convert a leaf to a finite number; strings become NaN."""
    return max(-1e300, min(1e300, value)) if isinstance(value, float) else math.nan


@dataclass(frozen=True, eq=False)
class _Residuals:
    """Numbers residualised on the earlier ones."""

    names: tuple[str, ...]
    means: Floats
    spreads: Floats
    kept_columns: tuple[int, ...]
    weights: tuple[Floats, ...]

    @classmethod
    def fit(
        cls, names: Sequence[str], first_samples: Sequence[Leaves], second_samples: Sequence[Leaves]
    ) -> _Residuals:
        side_matrices = [
            _make_matrix(names, side_samples) for side_samples in (first_samples, second_samples)
        ]
        # centred per side, so that the difference between the sides is not explained away
        centred_matrix = np.vstack(
            [side_matrix - side_matrix.mean(axis=0) for side_matrix in side_matrices]
        )
        spreads = np.where(centred_matrix.std(axis=0) > 0, centred_matrix.std(axis=0), 1.0)
        centred_matrix /= spreads
        kept_columns: list[int] = []
        weights: list[Floats] = []
        for column in range(len(names)):
            column_values = centred_matrix[:, column]
            earlier_values = centred_matrix[:, kept_columns]
            coefficients = (
                np.linalg.lstsq(earlier_values, column_values, rcond=None)[0]
                if kept_columns
                else np.zeros(0)
            )
            if np.std(column_values - earlier_values @ coefficients) > MIN_RESIDUAL_SPREAD:
                kept_columns.append(column)
                weights.append(coefficients)
        means = np.vstack(side_matrices).mean(axis=0)
        return cls(tuple(names), means, spreads, tuple(kept_columns), tuple(weights))

    def compute_residuals(self, artefacts: Sequence[Leaves]) -> Floats:
        X = (_make_matrix(self.names, artefacts) - self.means) / self.spreads
        residual_columns = [
            X[:, column] - X[:, self.kept_columns[:earlier_count]] @ coefficients
            for earlier_count, (column, coefficients) in enumerate(
                zip(self.kept_columns, self.weights, strict=True)
            )
        ]
        return np.array(residual_columns).T.reshape(len(artefacts), len(self.kept_columns))


@dataclass(frozen=True)
class _CutStep:
    """One number on either side of a cut, and the log-ratio of each side."""

    column: int
    cut: float
    log_ratio_above: float
    log_ratio_below: float
    strength: float

    @classmethod
    def fit(cls, column: int, first_values: Floats, second_values: Floats) -> _CutStep | None:
        sample_count = len(first_values)
        candidate_cuts = np.unique(
            np.quantile(
                np.concatenate([first_values, second_values]), CUT_QUANTILES, method="lower"
            )
        )[1:]
        if not len(candidate_cuts):
            return None
        first_counts, second_counts = (
            (side_values[:, None] >= candidate_cuts).sum(axis=0)
            for side_values in (first_values, second_values)
        )
        with np.errstate(all="ignore"):
            chi_square = np.nan_to_num(
                (first_counts - second_counts) ** 2 / (first_counts + second_counts)
                + (first_counts - second_counts) ** 2
                / (2 * sample_count - first_counts - second_counts)
            )
        best_index = int(np.argmax(chi_square))
        first_above, second_above = int(first_counts[best_index]), int(second_counts[best_index])
        log_ratio_above, log_ratio_below = (
            math.log((first_count + 0.5) / (second_count + 0.5))
            for first_count, second_count in (
                (first_above, second_above),
                (sample_count - first_above, sample_count - second_above),
            )
        )
        return cls(
            column,
            float(candidate_cuts[best_index]),
            log_ratio_above,
            log_ratio_below,
            float(chi_square[best_index]),
        )


@dataclass(frozen=True, eq=False)
class StepScore:
    """Sum of the best steps of one part of an artefact.

    Parameters
    ----------
    residuals : _Residuals
    top_steps : sequence of _CutStep
    """

    residuals: _Residuals
    top_steps: Sequence[_CutStep]

    def score(self, artefacts: Sequence[Leaves]) -> Floats:
        """The sum, for every artefact."""
        residual_columns = self.residuals.compute_residuals(artefacts)
        step_scores = [
            np.where(
                residual_columns[:, step.column] >= step.cut,
                step.log_ratio_above,
                step.log_ratio_below,
            )
            for step in self.top_steps
        ]
        return np.asarray(np.sum(step_scores, axis=0), dtype=float)

    def describe_event(self, threshold: float, swapped: bool) -> str:
        """Describe which numbers are on which side of their cuts."""
        sign = -1 if swapped else 1
        names = [
            self.residuals.names[self.residuals.kept_columns[step.column]]
            for step in self.top_steps
        ]
        side_words = [
            "high" if sign * (step.log_ratio_above - step.log_ratio_below) > 0 else "low"
            for step in self.top_steps
        ]
        step_texts = ", ".join(
            f"{name} {side_word}" for name, side_word in zip(names, side_words, strict=True)
        )
        return f"most of {step_texts}" if len(names) > 1 else f"{names[0]} is {side_words[0]}"


def fit_step_scores(
    first_samples: Sequence[Leaves], second_samples: Sequence[Leaves]
) -> list[StepScore]:
    """Fit scores for each part of the artefacts: of its best number, best two, and so on.

    Parameters
    ----------
    first_samples, second_samples : sequence of leaves
        Artefacts of either input.
    """
    step_scores = []
    for part_names in _group_number_names(first_samples, second_samples):
        residuals = _Residuals.fit(part_names, first_samples, second_samples)
        residual_sides = (
            residuals.compute_residuals(first_samples),
            residuals.compute_residuals(second_samples),
        )
        fitted_steps: list[Any] = [
            _CutStep.fit(column, *(side_columns[:, column] for side_columns in residual_sides))
            for column in range(len(residuals.kept_columns))
        ]
        ranked_steps = sorted(filter(None, fitted_steps), key=lambda step: -step.strength)
        step_scores += [
            StepScore(residuals, ranked_steps[:step_count])
            for step_count in range(1, min(len(ranked_steps), 8) + 1)
        ]
    return step_scores


def _group_number_names(
    first_samples: Sequence[Leaves], second_samples: Sequence[Leaves]
) -> list[list[str]]:
    """Group the names of numbers that every artefact has by their document or attribute."""
    names_by_part: dict[str, list[str]] = defaultdict(list)
    for name, value in first_samples[0].items():
        path_words = name.split(".")
        path_depth = 1 if name.startswith("[") else 2  # one of several documents, or an attribute
        part_names = names_by_part[".".join(path_words[: min(path_depth, len(path_words) - 1)])]
        if (
            not isinstance(value, float)
            or name.endswith(DERIVED_SUFFIXES)
            or len(part_names) >= MAX_NUMBERS_PER_PART
        ):
            continue
        values = [
            artefact_leaves.get(name)
            for side_samples in (first_samples, second_samples)
            for artefact_leaves in side_samples
        ]
        if (
            all(isinstance(value, float) and abs(value) < 1e300 for value in values)
            and len({*values}) > 1
        ):
            part_names.append(name)
    return [part_names for part_names in names_by_part.values() if part_names]


def _make_matrix(names: Sequence[str], artefacts: Sequence[Leaves]) -> Floats:
    number_rows = np.array(
        [
            [to_finite_number(artefact_leaves.get(name)) for name in names]
            for artefact_leaves in artefacts
        ]
    )
    number_matrix: Floats = np.nan_to_num(number_rows.reshape(len(artefacts), len(names)))
    return number_matrix
