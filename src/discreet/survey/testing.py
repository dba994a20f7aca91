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

import itertools
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
from discreet.model.evaluation import wilson
from discreet.randomness import as_random
from discreet.survey.beliefs import refuse_pairs
from discreet.survey.inversion import channel_variance, unmixed
from discreet.survey.questionnaire import Questionnaire
from discreet.survey.variance import ChannelVariance, Estimate

__all__ = ["Accuracy", "accuracy_on_sheets"]


ENUMERATED = 1 << 20
"""Different sheets up to which the accuracy on decoys is exact; beyond that it is drawn."""
DRAWS = 64
"""Decoys drawn per person then; the interval includes their variance."""
INVENTED = 256
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


def accuracy_on_sheets(
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
    hits = _Hits(model, tally.collection)
    sheets, times = tally.distinct()
    right = float((times * hits(sheets)).sum())
    error = 0.0
    if personal_hits is not None:
        decoys, error = _decoys_of(tally.collection, personal_hits, level)
        found = _one_group(tally, right, decoys)
    elif math.prod(tally.collection.sizes) <= ENUMERATED:
        scores, known = hits.enumerated()
        found = _estimate(scores[tuple(sheets.T)], times, known)
    else:
        random = as_random(random_state)
        known = hits.invented(random)
        every = np.repeat(sheets, times, axis=0)
        found = _estimate(hits.drawn(every, random), np.ones(len(every)), known)
    low, high = found.interval(level)
    interval = (
        max(found.share - math.hypot(found.share - low, error), 0.0),
        min(found.share + math.hypot(high - found.share, error), 1.0),
    )
    observed = right / tally.people
    return Accuracy(found.share, found.unbiased, interval, level, observed, tally.people)


def _estimate(scores: Floats, times: Any, known: ChannelVariance) -> Estimate:
    """The share that these scores estimate."""
    count, extra = float((times * scores).sum()), float((times * (scores**2 - scores)).sum())
    return Estimate(count, int(times.sum()), extra, known)


def _decoys_of(
    questionnaire: Questionnaire, others: tuple[int, int], level: float
) -> tuple[float, float]:
    """Accuracy on the personal answers of other people, and what its doubt adds to an interval."""
    channel = questionnaire.channels[0]
    if len(questionnaire.channels) > 1 or not isinstance(channel, Unrelated):
        raise SchemaError(
            "hits of other people stand in for the law of one unrelated-question group; this "
            "questionnaire has several groups, whose law must be known"
        )
    right, asked = others
    if not 0 <= right <= asked or asked < 1:
        raise SchemaError(
            f"personal hits are {right} of {asked} people; give a number from 0 to the people asked"
        )
    theta = float(channel.theta_exact)
    low, high = wilson(right, asked, NormalDist().inv_cdf((1 + level) / 2))
    return right / asked, (1 - theta) * (high - low) / 2 / theta


def _one_group(tally: Tally[Questionnaire], right: float, decoys: float) -> Estimate:
    """MRR, 3.4: the sheet of a person whom the model predicts right shows a hit with probability
    theta + (1 - theta) decoys, of another person with (1 - theta) decoys.
    """
    theta, people = float(tally.collection.channels[0].theta_exact), tally.people
    chances = theta + (1 - theta) * decoys, (1 - theta) * decoys
    true, false = (p * (1 - p) / theta**2 for p in chances)
    known = ChannelVariance((true,) * 3, (false,) * 3, true - false)
    scores = np.array([1 - chances[1], -chances[1]]) / theta
    return _estimate(scores, np.array([right, people - right]), known)


class _Hits:
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
            table = np.ascontiguousarray(factor.log_probability.T)
            self.factors.append((questionnaire.place[factor.name], table))

    def __call__(self, sheets: Integers) -> Floats:
        """1 where the prediction from a row is the row's own target, else 0."""
        score = np.tile(self.model.log_prior, (len(sheets), 1))
        for place, table in self.factors:
            score += table[sheets[:, place]]
        return np.asarray(np.argmax(score, axis=1) == sheets[:, -1], float)

    def _table(self) -> Floats:
        """Hits of every possible sheet, one axis per question."""
        every = np.indices(self.survey.sizes).reshape(len(self.survey.sizes), -1).T
        return self(every).reshape(self.survey.sizes)

    def enumerated(self) -> tuple[Floats, ChannelVariance]:
        """Scores of every possible sheet, whose mean is the accuracy, and their variance."""
        names, table = self.survey.names, self._table()
        scores = unmixed(self.survey, names, table)
        return scores, channel_variance(self.survey, names, table, scores)

    def invented(self, random: Any) -> ChannelVariance:
        """The variance of drawn scores, from invented people with uniform answers."""
        truth = np.column_stack([random.integers(size, INVENTED) for size in self.survey.sizes])
        holds = self(truth) > 0
        scores = self.drawn(self.survey.randomized(0, truth, random), random)
        added = (scores - holds) ** 2
        true, false = (
            float(added[some].mean()) if some.any() else float(added.mean())
            for some in (holds, ~holds)
        )
        slope = np.cov(scores**2 - scores, scores)[0, 1] / max(float(np.var(scores)), 1e-12)
        most = sum(abs(self._weight(lost)) for lost in self._subsets()) ** 2
        return ChannelVariance((0.0, true, most), (0.0, false, most), slope)

    def drawn(self, sheets: Integers, random: Any) -> Floats:
        """The same for given sheets, averages over the personal law being drawn for each person.

        The draws of different people are independent, so what they add to the variance shows in
        the scores' own.
        """
        if self.survey.spanning:
            raise EstimationError(
                "the personal answers of several groups depend on each other, and there are too "
                "many different sheets to enumerate; test with fewer questions"
            )
        total = np.zeros(len(sheets))
        for lost in self._subsets():
            total += self._weight(lost) * self._replaced(sheets, lost, random)
        return total

    def _subsets(self) -> list[tuple[int, ...]]:
        """Which groups may be replaced."""
        numbers = range(len(self.survey.channels))
        sizes = range(len(numbers) + 1)
        return [lost for size in sizes for lost in itertools.combinations(numbers, size)]

    def _weight(self, lost: Sequence[int]) -> float:
        """Product over groups: of the inverse channel, what falls on the truth or on the decoy."""
        weight = 1.0
        for number, channel in enumerate(self.survey.channels):
            channel.check_estimable()
            theta = float(channel.theta_exact)
            whole = theta if isinstance(channel, Unrelated) else 2 * theta - 1
            kept = 1.0 if isinstance(channel, Unrelated) else theta
            weight *= (-(1 - theta) if number in lost else kept) / whole
        return weight

    def _replaced(self, sheets: Integers, lost: Sequence[int], random: Any) -> Floats:
        """Mean hits when these groups are replaced by decoys."""
        decoys = any(isinstance(self.survey.channels[number], Unrelated) for number in lost)
        hits = np.zeros(len(sheets))
        rounds = DRAWS if decoys else 1
        for _ in range(rounds):
            changed = sheets.copy()
            for number in lost:
                channel, places = self.survey.channels[number], list(self.survey.places[number])
                if isinstance(channel, Unrelated):
                    changed[:, places] = channel.draw(len(sheets), random)
                else:
                    changed[:, places] = 1 - changed[:, places]
            hits += self(changed)
        return hits / rounds
