"""Estimates from a tally: the share of any predicate, and the Statistics of a model.

For a predicate A every sheet r gets a score h(r) with E[h(r) | true answers] = A(true answers);
their sum is unbiased for the number of people for whom A holds (docs/maths.md). h is
A with the channel of each group inverted, one group after the other.

As A is 0 or 1, sum(h^2) - sum(h) is unbiased for the variance that the randomization adds, for any
number of groups: E[h^2 | x] - A(x)^2 is the variance of one sheet.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from discreet.arrays import Floats
from discreet.collection.tally import Tally
from discreet.errors import EstimationError
from discreet.mechanisms.laws import average_over_laws
from discreet.mechanisms.response import Unrelated
from discreet.privacy.guarantee import Guarantee
from discreet.statistics.statistics import Statistics, Table
from discreet.survey.group import list_subsets
from discreet.survey.predicate import Predicate
from discreet.survey.questionnaire import Questionnaire
from discreet.survey.variance import ChannelVariance, Estimate
from discreet.survey.whole_sheet_em import fit_whole_sheets

__all__ = [
    "Estimate",
    "SharePrecision",
    "apply_channel",
    "compute_channel_variance",
    "compute_class_error",
    "compute_precision",
    "compute_score_range",
    "estimate_share",
    "estimate_statistics",
    "invert_channel",
]

MAX_HELD_SCORES = 1 << 21
"""Numbers of inverted indicators that are held at once."""
MIN_VARIANCE_SUM = 1e-300
"""Least sum of variances that is a divisor; guards against zero."""
EMPTY_TALLY_REASON = "the tally is empty; nothing can be estimated from no sheets"

GroupAxes: TypeAlias = dict[int, dict[int, int]]
"""For each group that is asked about: place in the group to axis of the function."""


def invert_channel(questionnaire: Questionnaire, names: Sequence[str], function: Floats) -> Floats:
    """Scores of the answers sent: ``function`` of the true answers with all channels inverted.

    Parameters
    ----------
    questionnaire : Questionnaire
    names : sequence of str
        Questions of the last axes of ``function``, in their order.
    function : array
        Leading axes beyond the questions are left alone.
    """
    dependent_axes, independent_axes = _map_axes(questionnaire, names, function)
    if dependent_axes:
        for group_number in dependent_axes:
            questionnaire.channels[group_number].check_estimable()
        function = _DependentGroups(questionnaire, dependent_axes).invert_channel(function)
    for group_number, group_axes in independent_axes.items():
        function = questionnaire.channels[group_number].invert_channel(function, group_axes)
    return function


def apply_channel(questionnaire: Questionnaire, names: Sequence[str], function: Floats) -> Floats:
    """Expected value of a function of the answers sent, for each of the true answers.

    Parameters are those of ``invert_channel``, which is its inverse.
    """
    dependent_axes, independent_axes = _map_axes(questionnaire, names, function)
    if dependent_axes:
        function = _DependentGroups(questionnaire, dependent_axes).apply_channel(function)
    for group_number, group_axes in independent_axes.items():
        function = questionnaire.channels[group_number].apply_channel(function, group_axes)
    return function


def _map_axes(
    questionnaire: Questionnaire, names: Sequence[str], function: Floats
) -> tuple[GroupAxes, GroupAxes]:
    """Axes of the groups whose personal answers depend on each other, and of all other groups."""
    first_axis = function.ndim - len(names)
    axes_by_group: GroupAxes = {}
    for offset, name in enumerate(names):
        group_number = questionnaire.find_group(name)
        group_position = questionnaire.groups[group_number].questions.index(name)
        axes_by_group.setdefault(group_number, {})[group_position] = first_axis + offset
    unrelated_groups = [
        group_number
        for group_number in axes_by_group
        if isinstance(questionnaire.channels[group_number], Unrelated)
    ]
    if not questionnaire.has_spanning_laws or len(unrelated_groups) < 2:
        return {}, axes_by_group
    dependent_axes = {
        group_number: axes_by_group.pop(group_number) for group_number in unrelated_groups
    }
    return dependent_axes, axes_by_group


@dataclass(frozen=True)
class _DependentGroups:
    """Groups randomized independently, whose personal answers Y depend on each other.

    With x the true answers and P(S) the probability that exactly the groups S send the truth, a
    function g of the answers sent has the expected value (MRR, 6.3, for any number of groups)

        (C g)(x) = sum over S of P(S) E_Y g(x_S, Y)

    Parameters
    ----------
    questionnaire : Questionnaire
    axes_by_group : GroupAxes
        Of these groups only.
    """

    questionnaire: Questionnaire
    axes_by_group: GroupAxes

    def apply_channel(self, function: Floats) -> Floats:
        """Return C function, summed over all sets of groups."""
        groups = tuple(self.axes_by_group)
        expected_function = np.zeros_like(function)
        for true_groups in list_subsets(groups):
            probability, average = self._average_personal(function, groups, true_groups)
            expected_function = expected_function + probability * average
        return expected_function

    def invert_channel(self, function: Floats) -> Floats:
        """Return h with C h = function."""
        return np.broadcast_to(self._solve(function, tuple(self.axes_by_group)), function.shape)

    def _solve(self, function: Floats, groups: tuple[int, ...]) -> Floats:
        """Return h with C h = g over some groups: C g, solved for its term g(x), where S is all.

        h = (g - sum over S < all of P(S) h_S) / P(all), with h_S the solution for E_Y g(x_S, Y).
        """
        solution = function.copy()
        for true_groups in list_subsets(groups)[:-1]:
            probability, average = self._average_personal(function, groups, true_groups)
            solution = solution - probability * self._solve(average, true_groups)
        return solution / math.prod(map(self._get_theta, groups))

    def _average_personal(
        self, function: Floats, groups: tuple[int, ...], true_groups: tuple[int, ...]
    ) -> tuple[float, Floats]:
        """P(S), and E_Y of a function over the groups that send no truth."""
        probability = math.prod(
            self._get_theta(group_number)
            if group_number in true_groups
            else 1 - self._get_theta(group_number)
            for group_number in groups
        )
        survey = self.questionnaire
        replaced_axes = {
            survey.places[group_number][group_position]: axis
            for group_number in groups
            if group_number not in true_groups
            for group_position, axis in self.axes_by_group[group_number].items()
        }
        average = average_over_laws(function, survey.all_laws, survey.sizes, replaced_axes)
        return probability, average

    def _get_theta(self, group_number: int) -> float:
        return float(self.questionnaire.channels[group_number].theta_exact)


def compute_channel_variance(
    questionnaire: Questionnaire, names: Sequence[str], tables: Floats, scores: Floats
) -> ChannelVariance:
    """Known variance of the scores of predicates; leading axes run over predicates."""
    question_axes = range(tables.ndim - len(names), tables.ndim)
    squares, cubes = (apply_channel(questionnaire, names, scores**power) for power in (2, 3))
    return ChannelVariance.from_moments(tables, squares, cubes, question_axes)


def estimate_share(tally: Tally[Questionnaire], predicate: Predicate | str) -> Estimate:
    """Estimate how many people a predicate holds for.

    Parameters
    ----------
    tally : Tally
    predicate : Predicate or str
        Over questions of one group or of several.
    """
    if isinstance(predicate, str):
        predicate = Predicate.parse(tally.collection, predicate)
    if tally.people == 0:
        raise EstimationError(EMPTY_TALLY_REASON)
    truth_table = np.asarray(predicate.table, float)
    scores = invert_channel(tally.collection, predicate.names, truth_table)
    known_variance = compute_channel_variance(
        tally.collection, predicate.names, truth_table, scores
    )
    sent_counts = tally.count_margin(predicate.names)
    estimated_count = float((sent_counts * scores).sum())
    extra_sum = float((sent_counts * (scores**2 - scores)).sum())
    return Estimate(estimated_count, tally.people, extra_sum, known_variance)


def estimate_statistics(
    tally: Tally[Questionnaire], guarantee: Guarantee | None = None
) -> Statistics:
    """Unbiased statistics for a model: class totals and class-by-answer tables.

    Parameters
    ----------
    tally : Tally
    guarantee : Guarantee, optional
        The promise to attach; if not given the questionnaire's, for as many as were counted.
    """
    survey = tally.collection
    if tally.people == 0:
        raise EstimationError(EMPTY_TALLY_REASON)
    target = survey.schema.target
    class_totals, total_variances = _estimate_counts(tally, (target,))
    tables = {}
    for name in survey.schema.names:
        counts, cell_variances = _estimate_counts(tally, (target, name))
        cancelling_share = 0.0
        if survey.find_group(name) != survey.find_group(target):
            # of the cells' noise only that of the answers remains in sums over the classes
            _, answer_variances = _estimate_counts(tally, (name,))
            remaining_share = float(answer_variances.sum()) / max(
                float(cell_variances.sum()), MIN_VARIANCE_SUM
            )
            cancelling_share = min(max(1.0 - remaining_share, 0.0), 1.0)
        tables[name] = Table(survey.cells[name], counts, cell_variances, cancelling_share)
    attached_guarantee = (guarantee or survey.make_guarantee(tally.smallest_shuffle_size)).void_if(
        simulated=tally.simulated
    )
    whole_sheet_fit = None
    if len(survey.groups) == 1:
        whole_sheet_fit = fit_whole_sheets(tally, class_totals, total_variances, tables)
    return Statistics(
        survey.schema,
        class_totals,
        total_variances,
        tables,
        guarantee=attached_guarantee,
        likeliest=whole_sheet_fit,
    )


def _estimate_counts(tally: Tally[Questionnaire], names: tuple[str, ...]) -> tuple[Floats, Floats]:
    """Estimated count and noise variance of every combination of answers to these questions."""
    sent_counts: Any = tally.count_margin(names)
    cell_count, respondents = sent_counts.size, tally.people
    counts, count_variances = np.empty(cell_count), np.empty(cell_count)
    chunk_size = max(1, MAX_HELD_SCORES // cell_count)
    for first_cell in range(0, cell_count, chunk_size):
        chunk_cells = np.arange(first_cell, min(first_cell + chunk_size, cell_count))
        indicator_tables = np.zeros((len(chunk_cells), cell_count))
        indicator_tables[np.arange(len(chunk_cells)), chunk_cells] = 1.0
        indicator_tables = indicator_tables.reshape(-1, *sent_counts.shape)
        scores = invert_channel(tally.collection, names, indicator_tables)
        known_variance = compute_channel_variance(tally.collection, names, indicator_tables, scores)
        scores = scores.reshape(len(chunk_cells), cell_count)
        counts[chunk_cells] = scores @ sent_counts.ravel()
        extra_sums = (scores * scores) @ sent_counts.ravel() - counts[chunk_cells]
        estimated_shares = np.clip(counts[chunk_cells] / respondents, 0, 1)
        count_variances[chunk_cells] = respondents * known_variance.estimate_noise(
            estimated_shares, counts[chunk_cells], extra_sums, respondents
        )
    return counts.reshape(sent_counts.shape), count_variances.reshape(sent_counts.shape)


@dataclass(frozen=True)
class SharePrecision:
    """Upper bound on the standard error of an estimated share.

    Parameters
    ----------
    what : str
        A question, two questions (all combinations of their answers), or a predicate.
    standard_error : float
        As a share of the people; the largest over all populations.
    respondents : int
        For which it holds; it falls with the square root of their number.
    """

    what: str
    standard_error: float
    respondents: int


def compute_precision(
    questionnaire: Questionnaire, respondents: int, predicates: Sequence[str] = ()
) -> list[SharePrecision]:
    """Compute upper bounds on the standard errors of shares, worst first.

    Without predicates: of every answer to every question, and of every combination of an answer
    with an answer to the target, which is what a model is made of.

    The score of a sheet has a variance that the channel bounds for every population
    (``survey/variance.py``), so the figures hold whatever the true answers are; most populations
    do better.

    Parameters
    ----------
    questionnaire : Questionnaire
    respondents : int
    predicates : sequence of str, optional

    Examples
    --------
    >>> from discreet import Categorical, Schema
    >>> from discreet.survey.questionnaire import Questionnaire
    >>> sick = ("sick", ["no", "yes"])
    >>> schema = Schema([Categorical("smokes", ["no", "yes"], optional=False)], *sick)
    >>> survey = Questionnaire.from_schema(schema, theta=0.5)
    >>> [(one.what, round(one.standard_error, 3)) for one in compute_precision(survey, 1000)]
    [('smokes and sick', 0.032), ('smokes', 0.032), ('sick', 0.032)]
    """
    if respondents < 1:
        raise EstimationError(f"respondents is {respondents}; expect at least one")
    named_variances = []
    if predicates:
        for text in predicates:
            parsed = Predicate.parse(questionnaire, text)
            variance = _compute_worst_variance(
                questionnaire, parsed.names, np.asarray(parsed.table, float)[None]
            )
            named_variances.append((text, variance))
    else:
        target = questionnaire.schema.target
        pairs = [(name, target) for name in questionnaire.schema.names]
        for names in [*pairs, *((name,) for name in questionnaire.names)]:
            answer_counts = [questionnaire.cells[name].size for name in names]
            indicator_tables = np.eye(math.prod(answer_counts)).reshape(-1, *answer_counts)
            named_variances.append(
                (
                    " and ".join(names),
                    _compute_worst_variance(questionnaire, names, indicator_tables),
                )
            )
    precisions = [
        SharePrecision(description, math.sqrt(score_variance / respondents), respondents)
        for description, score_variance in named_variances
    ]
    return sorted(precisions, key=lambda precision: -precision.standard_error)


def _compute_worst_variance(
    questionnaire: Questionnaire, names: Sequence[str], predicate_tables: Floats
) -> float:
    """The largest variance of one sheet's score, over the predicates and over all populations."""
    scores = invert_channel(questionnaire, names, predicate_tables)
    return float(
        np.max(
            compute_channel_variance(questionnaire, names, predicate_tables, scores).compute_worst()
        )
    )


def compute_class_error(questionnaire: Questionnaire, respondents: int) -> float:
    """Compute an upper bound on the standard error of the class shares."""
    target = questionnaire.schema.target
    if respondents < 1:
        raise EstimationError(f"respondents is {respondents}; expect at least one")
    indicator_table = np.eye(1, questionnaire.cells[target].size)
    worst_variance = _compute_worst_variance(questionnaire, (target,), indicator_table)
    return math.sqrt(worst_variance / respondents)


def compute_score_range(questionnaire: Questionnaire, feature_name: str) -> tuple[Floats, Floats]:
    """Compute the least and most that one sheet can count for each cell of a feature.

    Parameters
    ----------
    questionnaire : Questionnaire
    feature_name : str
        A feature or the target.

    Returns
    -------
    pair of arrays
        Classes by answers, or classes for the target.
    """
    target = questionnaire.schema.target
    names = [target] if feature_name == target else [target, feature_name]
    table_shape = tuple(questionnaire.cells[name].size for name in names)
    unit_tables = np.eye(math.prod(table_shape)).reshape(-1, *table_shape)
    scores = invert_channel(questionnaire, names, unit_tables).reshape(len(unit_tables), -1)
    return scores.min(axis=1).reshape(table_shape), scores.max(axis=1).reshape(table_shape)
