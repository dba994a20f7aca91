"""Estimate statistics from a tally: invert the channel of each question.

Estimates are unbiased, and their variances are those of the numbers of the people who sent reports:
the noise of the mechanism, which differs from oracle to oracle for sums of cells and grows or
falls with the share of a cell, and the luck of who was asked which question (docs/maths.md).
The same variances predict the precision of a collection for a number of respondents.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from discreet.arrays import Floats, Integers
from discreet.collection.tally import Tally
from discreet.errors import EstimationError
from discreet.estimation import norm_sub
from discreet.local.plan import Plan, Question
from discreet.mechanisms.frequency import FrequencyOracle
from discreet.mechanisms.mean import MeanOracle
from discreet.privacy.guarantee import Guarantee
from discreet.schema.schema import Numeric
from discreet.statistics.statistics import (
    Moments,
    Statistics,
    Table,
    compute_precision_weighted_mean,
)

__all__ = [
    "CellPrecision",
    "CountEstimate",
    "compute_class_error",
    "compute_precision",
    "compute_score_range",
    "estimate_margin",
    "estimate_statistics",
    "pool_counts",
]

MIN_CLASS_SHARE = 1e-4
"""Lower bound on the share of a class wherever it is a divisor."""


def estimate_statistics(tally: Tally[Plan], guarantee: Guarantee | None = None) -> Statistics:
    """Estimate unbiased statistics of all respondents.

    Parameters
    ----------
    tally : Tally
    guarantee : Guarantee, optional
        The guarantee to attach; by default that of the plan, for the number of people counted.

    Returns
    -------
    Statistics
        Variances are those of an estimate of the numbers of the people in the tally: an interval
        of 1.96 standard errors holds the true number of them about 95 times in 100.
    """
    plan, respondents = tally.collection, tally.people
    _require_features(tally)
    class_estimates: list[CountEstimate] = []
    cell_estimates: dict[str, list[CountEstimate]] = {name: [] for name in plan.cells}
    mean_estimates: dict[tuple[str, int], _MeanEstimate] = {}
    for question, report_count, sums in zip(plan.questions, tally.counted, tally.sums, strict=True):
        if report_count == 0:
            continue
        if isinstance(question.mechanism, FrequencyOracle):
            joint_shares = question.mechanism.estimate(sums, int(report_count)) / report_count
            class_estimates.append(
                estimate_margin(plan, question, joint_shares, 0, int(report_count))
            )
            for axis, name in enumerate(question.features, start=1):
                cell_estimates[name].append(
                    estimate_margin(plan, question, joint_shares, axis, int(report_count))
                )
        else:
            mean_estimates |= _estimate_means(question, question.mechanism, sums, int(report_count))
    if not class_estimates:
        raise EstimationError("no report contains information about the classes; collect more")
    class_totals, total_variances = pool_counts(class_estimates, respondents)
    tables: dict[str, Table] = {}
    for name, estimates in cell_estimates.items():
        table_shape = (len(class_totals), plan.cells[name].size)
        if estimates:
            counts, variances = pool_counts(estimates, respondents)
        else:  # nobody was asked: everything is possible
            counts = np.full(table_shape, respondents / math.prod(table_shape))
            variances = np.full(table_shape, float(respondents) ** 2)
        tables[name] = Table(plan.cells[name], counts, variances)
    moments = {}
    if mean_estimates:
        moments = _make_moments(
            plan, mean_estimates, class_totals / respondents, tables, respondents
        )
    return Statistics(
        plan.schema,
        class_totals,
        total_variances,
        tables,
        moments,
        guarantee=(guarantee or plan.make_guarantee(tally.smallest_shuffle_size)).void_if(
            simulated=tally.simulated
        ),
        projection=plan.projection,
    )


def _require_features(tally: Tally[Plan]) -> None:
    if tally.people == 0:
        raise EstimationError("the tally is empty; nothing can be estimated from no reports")
    if tally.collection.judges_models:
        raise EstimationError(
            "the reports of this plan only say which candidate model is right; give its tally "
            "last, after those of the earlier waves"
        )


@dataclass(frozen=True)
class CountEstimate:
    """Estimated shares of a group of respondents, from one question or one wave.

    Parameters
    ----------
    shares : array
    noise_variances : array of the same shape
        Variance of each, as an estimate of that group's own shares.
    uniform_variance : float
        Variance as an estimate for all respondents if all shares were equal: known before the
        collection.
    respondents : float
        How many the group has.
    """

    shares: Floats
    noise_variances: Floats
    uniform_variance: float
    respondents: float


def estimate_margin(
    plan: Plan, question: Question, joint_shares: Floats, axis: int, report_count: float
) -> CountEstimate:
    """Estimate the margin of a question's cells: classes (axis 0), or classes by one feature."""
    oracle, table_shape = question.mechanism, plan.get_table_shape(question)
    assert isinstance(oracle, FrequencyOracle)
    cell_coordinates = np.indices(table_shape).reshape(len(table_shape), -1)
    margin_labels = (
        cell_coordinates[0]
        if axis == 0
        else cell_coordinates[0] * table_shape[axis] + cell_coordinates[axis]
    )
    margin_shape = table_shape[:1] if axis == 0 else (table_shape[0], table_shape[axis])
    margin_size = int(np.prod(margin_shape))
    uniform = float(
        oracle.compute_sum_variances(
            margin_labels, np.full(joint_shares.size, 1 / joint_shares.size)
        ).mean()
    )
    return CountEstimate(
        np.asarray(np.bincount(margin_labels, joint_shares), np.float64).reshape(margin_shape),
        oracle.compute_sum_variances(margin_labels, joint_shares).reshape(margin_shape)
        / report_count,
        (uniform + (1 - 1 / margin_size) / margin_size) / report_count,
        report_count,
    )


def pool_counts(estimates: Sequence[CountEstimate], respondents: int) -> tuple[Floats, Floats]:
    """Pool estimates from random groups to counts of all respondents, weighted by precision.

    Weights depend on public facts only, not on the estimates, so the mean is unbiased. Disjoint
    groups of m_b people out of N, weighted by w_b, miss a share f of all by chance, with variance
    f (1 - f) (N sum(w_b^2 / m_b) - 1) / (N - 1).
    """
    weights, _ = compute_precision_weighted_mean(
        list(np.eye(len(estimates))), [estimate.uniform_variance for estimate in estimates]
    )
    weighted_estimates = list(zip(weights, estimates, strict=True))
    pooled_shares = np.sum(
        [weight * estimate.shares for weight, estimate in weighted_estimates], axis=0
    )
    noise_variances = np.sum(
        [weight**2 * estimate.noise_variances for weight, estimate in weighted_estimates], axis=0
    )
    sampling_factor = sum(
        weight**2 / estimate.respondents for weight, estimate in weighted_estimates
    )
    sampling_variance = max(respondents * float(sampling_factor) - 1, 0.0) / max(respondents - 1, 1)
    clipped_shares = pooled_shares.clip(0.0, 1.0)
    return respondents * pooled_shares, respondents**2 * (
        noise_variances + clipped_shares * (1 - clipped_shares) * sampling_variance
    )


@dataclass(frozen=True)
class _MeanEstimate:
    """P(c) E[value | c] by class, as one question about means estimates it."""

    mechanism: MeanOracle
    class_means: Floats
    respondents: int

    def compute_variances(self, mean_squares: Floats, respondents: int) -> Floats:
        """Variances of the means, where P(c) E[value^2 | c] is ``mean_squares``.

        The variance of a mechanism is linear in the square of its input.
        """
        min_variance, max_variance = self.mechanism.variance(0.0), self.mechanism.variance(1.0)
        noise_variances = min_variance + (max_variance - min_variance) * mean_squares
        sampling_variances = (
            np.maximum(mean_squares - self.class_means**2, 0.0)
            * (respondents - self.respondents)
            / max(respondents - 1, 1)
        )
        return np.asarray((noise_variances + sampling_variances) / self.respondents)


def _estimate_means(
    question: Question, mechanism: MeanOracle, sums: Integers, report_count: int
) -> dict[tuple[str, int], _MeanEstimate]:
    """Estimate the means that a question asks for, by feature and power."""
    feature_sums = mechanism.estimate(sums, report_count).reshape(len(question.features), -1)
    return {
        (name, question.power): _MeanEstimate(mechanism, class_sums / report_count, report_count)
        for name, class_sums in zip(question.features, feature_sums, strict=True)
    }


def _estimate_missing_shares(table: Table) -> Floats:
    """Estimate P(missing | class), shrunk towards the share in all classes together.

    James-Stein factors with the known noise: no shrinkage where the noise is far below the
    differences, and a share of 0 where next to nothing is missing.
    """
    present_counts, missing_counts = np.asarray(table.counts, float).T
    noise_variances = np.asarray(table.variances, float)
    people_total = max(float(present_counts.sum() + missing_counts.sum()), 1.0)
    common_share = float(missing_counts.sum()) / people_total
    share_variance = float(noise_variances.sum()) / 2 / people_total**2
    common_share *= (
        max(0.0, 1 - share_variance / max(common_share**2, 1e-300)) if common_share > 0 else 0.0
    )
    class_counts = np.maximum(present_counts + missing_counts, MIN_CLASS_SHARE * people_total)
    missing_shares = missing_counts / class_counts
    share_errors = (
        noise_variances[:, 1] * (1 - missing_shares) ** 2
        + noise_variances[:, 0] * missing_shares**2
    ) / class_counts**2
    share_deviations = missing_shares - common_share
    shrinkage = max(
        0.0, 1 - float(share_errors.sum()) / max(float(share_deviations @ share_deviations), 1e-300)
    )
    return np.asarray((common_share + shrinkage * share_deviations).clip(0.0, 1 - MIN_CLASS_SHARE))


def _make_moments(
    plan: Plan,
    mean_estimates: Mapping[tuple[str, int], _MeanEstimate],
    class_shares: Floats,
    tables: dict[str, Table],
    respondents: int,
) -> dict[str, Moments]:
    """Make the moments of all features asked by mean and mean square.

    What ``tables`` say about their missing numbers is taken out of them.
    """
    return {
        name: _convert_means(
            plan,
            name,
            (mean_estimates[name, 1], mean_estimates[name, 2]),
            class_shares,
            _estimate_missing_shares(tables.pop(name))
            if name in tables
            else np.zeros(len(class_shares)),
            respondents,
        )
        for name in dict.fromkeys(name for name, _ in mean_estimates)
        if (name, 1) in mean_estimates and (name, 2) in mean_estimates
    }


def _convert_means(
    plan: Plan,
    name: str,
    mean_estimates: tuple[_MeanEstimate, _MeanEstimate],
    class_shares: Floats,
    missing_shares: Floats,
    respondents: int,
) -> Moments:
    """Convert P(c) E[t | c] and P(c) E[2 t^2 - 1 | c] to sums about the middle of the bounds.

    A missing number is sent as the middle, t = 0, which adds nothing to either sum; counts are of
    those whose number is there.
    """
    feature = plan.schema[name]
    assert isinstance(feature, Numeric)
    mean_estimate, square_estimate = mean_estimates
    valid_shares = np.maximum(norm_sub(class_shares, 1.0), MIN_CLASS_SHARE)
    valid_shares = valid_shares / valid_shares.sum()
    mean_squares = (square_estimate.class_means + valid_shares) / 2
    range_middle = (feature.upper + feature.lower) / 2
    half_range = (feature.upper - feature.lower) / 2
    zero_variances = np.zeros(len(class_shares))
    sum_variances = [
        zero_variances,
        mean_estimate.compute_variances(mean_squares.clip(0.0, valid_shares), respondents),
        square_estimate.compute_variances(valid_shares, respondents)
        / 4,  # (2 t^2 - 1)^2 is at most one
    ]
    return Moments(
        feature,
        respondents * valid_shares * (1 - missing_shares),
        respondents * mean_estimate.class_means,
        respondents * mean_squares,
        respondents * valid_shares * missing_shares,
        np.full(len(class_shares), range_middle),
        half_range,
        respondents**2 * np.array(sum_variances),
    )


@dataclass(frozen=True)
class CellPrecision:
    """Standard error of a cell of a feature's class-by-value table, as a share of the population.

    Attributes
    ----------
    feature : str
        The target stands for the class totals.
    cells : int
    share : float
        Of the respondents who are asked about it.
    standard_error : float
        Of a cell of average size, as an estimate for a larger population.
    """

    feature: str
    cells: int
    share: float
    standard_error: float


def compute_precision(plan: Plan, respondents: int) -> list[CellPrecision]:
    """Compute the expected precision of class totals and features asked by cell, worst first.

    From the variances of the mechanisms and the plan's shares alone (docs/maths.md). How good a
    model will be is not known before: that depends on how strongly the features depend on the
    class, which is what the collection is to find out.

    Parameters
    ----------
    plan : Plan
    respondents : int
    """
    if respondents < 1:
        raise EstimationError(f"respondents is {respondents}; expect at least one")
    inverse_variances: dict[str, float] = {}
    asked_shares: dict[str, float] = {}
    for question, question_share in zip(plan.questions, plan.shares, strict=True):
        if not isinstance(question.mechanism, FrequencyOracle) or plan.judges_models:
            continue
        uniform_shares = np.full(question.mechanism.size, 1 / question.mechanism.size)
        for axis, name in enumerate((plan.schema.target, *question.features)):
            margin_variance = (
                estimate_margin(
                    plan, question, uniform_shares, axis, float(question_share)
                ).uniform_variance
                / respondents
            )
            inverse_variances[name] = inverse_variances.get(name, 0.0) + 1 / margin_variance
            asked_shares[name] = asked_shares.get(name, 0.0) + float(question_share)
    class_count = len(plan.schema.classes)
    cell_precisions = [
        CellPrecision(
            name,
            class_count * plan.cells[name].size if name in plan.cells else class_count,
            asked_shares[name],
            math.sqrt(1 / inverse_variance),
        )
        for name, inverse_variance in inverse_variances.items()
    ]
    return sorted(cell_precisions, key=lambda cell_precision: -cell_precision.standard_error)


def compute_class_error(plan: Plan, respondents: int) -> float:
    """Compute the expected standard error of the class shares; 0 if nothing is asked by cell."""
    errors = {cell.feature: cell.standard_error for cell in compute_precision(plan, respondents)}
    return errors.get(plan.schema.target, 0.0)


def compute_score_range(plan: Plan, feature_name: str) -> tuple[Floats, Floats]:
    """Compute the least and most that one report can count for each cell of a feature.

    Parameters
    ----------
    plan : Plan
    feature_name : str
        A feature that is asked by cell, or the target.

    Returns
    -------
    pair of arrays
        Classes by values, or classes for the target; all cells are alike. A report whose score
        is not bounded (of noise, for example) counts as one that is not randomized: 0 to 1.
    """
    class_count, target = len(plan.schema.classes), plan.schema.target
    is_target = feature_name == target
    table_shape = (class_count,) if is_target else (class_count, plan.cells[feature_name].size)
    min_score, max_score = 0.0, 1.0
    for question, share in zip(plan.questions, plan.shares, strict=True):
        oracle: Any = question.mechanism
        if hasattr(oracle, "q_exact") and (is_target or feature_name in question.features):
            p, q = float(oracle.p_exact), float(oracle.q_exact)
            # cells of the question in one of ours
            joined_cells = oracle.size // math.prod(table_shape)
            default_size = 1 if oracle.name == "de" else joined_cells
            reported_cells = min(joined_cells, getattr(oracle, "subset_size", default_size))
            # a liar may also choose the question
            min_score = min(min_score, -joined_cells * q / (p - q) / float(share))
            max_score = max(max_score, (reported_cells - joined_cells * q) / (p - q) / float(share))
    return np.full(table_shape, min_score), np.full(table_shape, max_score)
