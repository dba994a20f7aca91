"""Accuracy of a classifier, estimated from randomized sheets alone.

A sheet on which the classifier is right may be a true one or a decoy. MRR, 3.4, for one group::

    accuracy = (share of sheets it is right on - (1 - theta) * accuracy on decoys) / theta

and for several groups the same inversion, group by group. As published, every respondent also says
whether the classifier was right on the personal part; sheet and hit of one person together have an
infinite epsilon. Here the accuracy on decoys follows from the **public** law of the personal
answers. Where these are the respondents' own and their law is not trusted, hits may be collected
from other people, who send no sheet.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any

import numpy as np

from discreet.arrays import Floats, Integers
from discreet.collection.tally import Tally
from discreet.errors import EstimationError, SchemaError
from discreet.mechanisms.response import Unrelated
from discreet.model import CellFactor, NaiveBayesModel
from discreet.model.intervals import compute_wilson_interval
from discreet.randomness import as_random
from discreet.survey.beliefs import refuse_pairs
from discreet.survey.group import list_subsets
from discreet.survey.inversion import compute_channel_variance, invert_channel
from discreet.survey.questionnaire import Questionnaire
from discreet.survey.variance import ChannelVariance, Estimate

__all__ = ["Accuracy", "estimate_sheet_accuracy"]


MAX_ENUMERATED_SHEETS = 1 << 20
"""Different sheets up to which the accuracy on decoys is exact; beyond that it is drawn."""
DRAWS_PER_PERSON = 64
"""Decoys drawn per person then; the interval includes their variance."""
INVENTED_RESPONDENTS = 256
"""Invented respondents from whom the variance is then estimated."""


@dataclass(frozen=True)
class Accuracy:
    """The estimated share of people whom a classifier predicts right.

    Parameters
    ----------
    accuracy : float
        From 0 to 1.
    unbiased : float
        Before clipping to [0, 1]; its mean is right.
    interval : (float, float)
    level : float
    observed : float
        Share of the sheets, as sent, on which the classifier is right.
    people : int
    """

    accuracy: float
    unbiased: float
    interval: tuple[float, float]
    level: float
    observed: float
    people: int


def estimate_sheet_accuracy(
    model: NaiveBayesModel,
    tally: Tally[Questionnaire],
    level: float = 0.95,
    *,
    personal_hits: tuple[int, int] | None = None,
    random_state: Any = None,
) -> Accuracy:
    """Estimate the accuracy of a model from the randomized sheets of people it never saw.

    That the model is right is a predicate over the answers, so its share is estimated like any
    other.

    Parameters
    ----------
    model : NaiveBayesModel
    tally : Tally
        Of sheets to a questionnaire with the same questions and answers.
    level : float, default 0.95
    personal_hits : (hits, people), optional
        Hits of the model on the personal answers of people who send no sheet, in place of the
        public law. One unrelated-question group only.
    random_state : None, int or Random
        Only where the sheets cannot be enumerated, so that decoys are drawn.
    """
    if not 0 < level < 1:
        raise EstimationError(f"level is {level!r}; give a number between 0 and 1")
    if tally.people == 0:
        raise EstimationError("the tally is empty; nothing can be tested on no sheets")
    for channel in tally.collection.channels:
        channel.check_estimable()
    hits = _HitPredicate(model, tally.collection)
    sheets, sheet_counts = tally.get_distinct_answers()
    hit_count = float((sheet_counts * hits(sheets)).sum())
    decoy_error = 0.0
    if personal_hits is not None:
        decoy_accuracy, decoy_error = _estimate_decoy_accuracy(
            tally.collection, personal_hits, level
        )
        estimate = _estimate_one_group(tally, hit_count, decoy_accuracy)
    elif math.prod(tally.collection.sizes) <= MAX_ENUMERATED_SHEETS:
        scores, known_variance = hits.score_all_sheets()
        estimate = _estimate_share(scores[tuple(sheets.T)], sheet_counts, known_variance)
    else:
        random = as_random(random_state)
        known_variance = hits.simulate_variance(random)
        repeated_sheets = np.repeat(sheets, sheet_counts, axis=0)
        estimate = _estimate_share(
            hits.score_with_draws(repeated_sheets, random),
            np.ones(len(repeated_sheets)),
            known_variance,
        )
    lower, upper = estimate.interval(level)
    interval = (
        max(estimate.share - math.hypot(estimate.share - lower, decoy_error), 0.0),
        min(estimate.share + math.hypot(upper - estimate.share, decoy_error), 1.0),
    )
    observed_share = hit_count / tally.people
    return Accuracy(
        estimate.share, estimate.unbiased, interval, level, observed_share, tally.people
    )


def _estimate_share(scores: Floats, sheet_counts: Any, known_variance: ChannelVariance) -> Estimate:
    """The share that these scores estimate."""
    hit_count = float((sheet_counts * scores).sum())
    extra_sum = float((sheet_counts * (scores**2 - scores)).sum())
    return Estimate(hit_count, int(sheet_counts.sum()), extra_sum, known_variance)


def _estimate_decoy_accuracy(
    questionnaire: Questionnaire, other_hits: tuple[int, int], level: float
) -> tuple[float, float]:
    """Accuracy on the personal answers of other people, and what its doubt adds to an interval."""
    channel = questionnaire.channels[0]
    if len(questionnaire.channels) > 1 or not isinstance(channel, Unrelated):
        raise SchemaError(
            "hits of other people stand in for the law of one unrelated-question group; this "
            "questionnaire has several groups, whose law must be known"
        )
    hit_count, asked_people = other_hits
    if not 0 <= hit_count <= asked_people or asked_people < 1:
        raise SchemaError(
            f"personal hits are {hit_count} of {asked_people} people; give a number from 0 to the "
            "people asked"
        )
    theta = float(channel.theta_exact)
    lower, upper = compute_wilson_interval(
        hit_count, asked_people, NormalDist().inv_cdf((1 + level) / 2)
    )
    return hit_count / asked_people, (1 - theta) * (upper - lower) / 2 / theta


def _estimate_one_group(
    tally: Tally[Questionnaire], hit_count: float, decoy_accuracy: float
) -> Estimate:
    """MRR, 3.4: the sheet of a person whom the model predicts right shows a hit with probability
    theta + (1 - theta) decoys, of another person with (1 - theta) decoys.
    """
    theta, respondents = float(tally.collection.channels[0].theta_exact), tally.people
    hit_probabilities = theta + (1 - theta) * decoy_accuracy, (1 - theta) * decoy_accuracy
    true_variance, false_variance = (p * (1 - p) / theta**2 for p in hit_probabilities)
    known_variance = ChannelVariance(
        (true_variance,) * 3, (false_variance,) * 3, true_variance - false_variance
    )
    scores = np.array([1 - hit_probabilities[1], -hit_probabilities[1]]) / theta
    return _estimate_share(scores, np.array([hit_count, respondents - hit_count]), known_variance)


class _HitPredicate:
    """Whether a model predicts the target of a sheet from its other answers: a predicate."""

    def __init__(self, model: NaiveBayesModel, questionnaire: Questionnaire) -> None:
        self.model, self.survey = model, questionnaire
        schema = questionnaire.schema
        if model.schema.target != schema.target or model.schema.classes != schema.classes:
            raise SchemaError(
                f"the model predicts {model.schema.target}, the questionnaire asks for "
                f"{schema.target}; they must have the same classes"
            )
        refuse_pairs(model)
        self.factors = []
        for factor in model.factors:
            if factor.name not in questionnaire.place:
                raise SchemaError(f"the model needs {factor.name}, which is not on the sheets")
            cells = questionnaire.cells[factor.name]
            if not isinstance(factor, CellFactor) or factor.cells.labels != cells.labels:
                raise SchemaError(f"{factor.name}: the model has other answers than the sheets")
            factor_table = np.ascontiguousarray(factor.log_probability.T)
            self.factors.append((questionnaire.place[factor.name], factor_table))

    def __call__(self, sheets: Integers) -> Floats:
        """1 where the prediction from a row is the row's own target, else 0."""
        class_scores = np.tile(self.model.log_prior, (len(sheets), 1))
        for column, factor_table in self.factors:
            class_scores += factor_table[sheets[:, column]]
        return np.asarray(np.argmax(class_scores, axis=1) == sheets[:, -1], float)

    def _compute_table(self) -> Floats:
        """Hits of every possible sheet, one axis per question."""
        all_sheets = np.indices(self.survey.sizes).reshape(len(self.survey.sizes), -1).T
        return self(all_sheets).reshape(self.survey.sizes)

    def score_all_sheets(self) -> tuple[Floats, ChannelVariance]:
        """Scores of every possible sheet, whose mean is the accuracy, and their variance."""
        names, hit_table = self.survey.names, self._compute_table()
        scores = invert_channel(self.survey, names, hit_table)
        return scores, compute_channel_variance(self.survey, names, hit_table, scores)

    def simulate_variance(self, random: Any) -> ChannelVariance:
        """The variance of drawn scores, from invented people with uniform answers."""
        true_answers = np.column_stack(
            [random.integers(size, INVENTED_RESPONDENTS) for size in self.survey.sizes]
        )
        is_hit = self(true_answers) > 0
        scores = self.score_with_draws(
            self.survey.randomize_records(0, true_answers, random), random
        )
        squared_errors = (scores - is_hit) ** 2
        true_variance, false_variance = (
            float(squared_errors[is_selected].mean())
            if is_selected.any()
            else float(squared_errors.mean())
            for is_selected in (is_hit, ~is_hit)
        )
        slope = np.cov(scores**2 - scores, scores)[0, 1] / max(float(np.var(scores)), 1e-12)
        all_groups = range(len(self.survey.channels))
        weights = [abs(self._compute_weight(subset)) for subset in list_subsets(all_groups)]
        max_variance = sum(weights) ** 2
        return ChannelVariance(
            (0.0, true_variance, max_variance), (0.0, false_variance, max_variance), slope
        )

    def score_with_draws(self, sheets: Integers, random: Any) -> Floats:
        """The same for given sheets, averages over the personal law being drawn for each person.

        The draws of different people are independent, so what they add to the variance shows in
        the scores' own.
        """
        if self.survey.has_spanning_laws:
            raise EstimationError(
                "the personal answers of several groups depend on each other, and there are too "
                "many different sheets to enumerate; test with fewer questions"
            )
        total_scores = np.zeros(len(sheets))
        for replaced_groups in list_subsets(range(len(self.survey.channels))):
            total_scores += self._compute_weight(replaced_groups) * self._average_replaced(
                sheets, replaced_groups, random
            )
        return total_scores

    def _compute_weight(self, replaced_groups: Sequence[int]) -> float:
        """Product over groups: of the inverse channel, what falls on the truth or on the decoy."""
        weight = 1.0
        for group_number, channel in enumerate(self.survey.channels):
            channel.check_estimable()
            theta = float(channel.theta_exact)
            denominator = theta if isinstance(channel, Unrelated) else 2 * theta - 1
            truth_factor = 1.0 if isinstance(channel, Unrelated) else theta
            weight *= (
                -(1 - theta) if group_number in replaced_groups else truth_factor
            ) / denominator
        return weight

    def _average_replaced(
        self, sheets: Integers, replaced_groups: Sequence[int], random: Any
    ) -> Floats:
        """Mean hits when these groups are replaced by decoys."""
        has_decoys = any(
            isinstance(self.survey.channels[group_number], Unrelated)
            for group_number in replaced_groups
        )
        hit_totals = np.zeros(len(sheets))
        draw_count = DRAWS_PER_PERSON if has_decoys else 1
        for _ in range(draw_count):
            changed_sheets = sheets.copy()
            for group_number in replaced_groups:
                channel = self.survey.channels[group_number]
                group_places = list(self.survey.places[group_number])
                if isinstance(channel, Unrelated):
                    changed_sheets[:, group_places] = channel.draw_personal(len(sheets), random)
                else:
                    changed_sheets[:, group_places] = 1 - changed_sheets[:, group_places]
            hit_totals += self(changed_sheets)
        return hit_totals / draw_count
