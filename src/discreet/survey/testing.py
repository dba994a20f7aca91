"""The accuracy of a classifier on people whose records are randomized, from their sheets alone.

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
from discreet.errors import EstimationError, SchemaError
from discreet.mechanisms.response import Unrelated
from discreet.model import CellFactor, NaiveBayesModel
from discreet.model.evaluation import wilson
from discreet.randomness import as_random
from discreet.survey.inversion import unmixed
from discreet.survey.questionnaire import Questionnaire
from discreet.survey.tally import Tally

__all__ = ["Accuracy", "accuracy_on_sheets"]


ENUMERATED = 1 << 20
"""Different sheets up to which the accuracy on decoys is exact; beyond that it is drawn."""
DRAWS = 64
"""Decoys that are drawn for each person then; what they add is in the interval."""


@dataclass(frozen=True)
class Accuracy:
    """An unbiased estimate of the share of people whom a classifier predicts right.

    Parameters
    ----------
    accuracy : float
        It may lie outside [0, 1]; the interval does not.
    interval : (float, float)
    level : float
    observed : float
        Share of the sheets, as sent, on which the classifier is right.
    people : int
    """

    accuracy: float
    interval: tuple[float, float]
    level: float
    observed: float
    people: int


def accuracy_on_sheets(
    model: NaiveBayesModel,
    tally: Tally,
    level: float = 0.95,
    *,
    personal_hits: tuple[int, int] | None = None,
    random_state: Any = None,
) -> Accuracy:
    """Estimate the accuracy of a model from the randomized sheets of people it never saw.

    Parameters
    ----------
    model : NaiveBayesModel
    tally : Tally
        Of sheets to a questionnaire with the same questions and answers.
    level : float, default 0.95
    personal_hits : (hits, people), optional
        On how many of so many people's personal answers the model was right, in place of the
        public law; of people who send no sheet. One unrelated-question group only.
    random_state : None, int or Random
        Only where there are so many different sheets that decoys have to be drawn.
    """
    if not 0 < level < 1:
        raise EstimationError(f"level is {level!r}; give a number between 0 and 1")
    if tally.people == 0:
        raise EstimationError("the tally is empty; nothing can be tested on no sheets")
    hits = _Hits(model, tally.questionnaire)
    sheets, times = tally.distinct()
    right = hits(sheets)
    z = NormalDist().inv_cdf((1 + level) / 2)
    count, people = int((times * right).sum()), tally.people
    single = tally.questionnaire.channels[0]
    if len(tally.questionnaire.channels) == 1 and isinstance(single, Unrelated):
        single.check_estimable()
        theta = float(single.theta_exact)
        if personal_hits is not None or math.prod(tally.questionnaire.sizes) <= ENUMERATED:
            return _one_group(hits, theta, count, people, z, level, personal_hits)
    if personal_hits is not None:
        raise SchemaError(
            "hits of other people stand in for the law of one unrelated-question group; this "
            "questionnaire has several groups, whose law must be known"
        )
    if math.prod(tally.questionnaire.sizes) <= ENUMERATED:
        scores = hits.enumerated()[tuple(sheets.T)]
    else:
        sheets, times = np.repeat(sheets, times, axis=0), np.ones(people, np.int64)
        scores = hits.drawn(sheets, as_random(random_state))
    mean = float((times * scores).sum()) / people
    spread = float((times * (scores - mean) ** 2).sum()) / max(people - 1, 1) / people
    half = z * math.sqrt(spread)
    return Accuracy(mean, _within(mean - half, mean + half), level, count / people, people)


def _one_group(
    hits: _Hits,
    theta: float,
    count: int,
    people: int,
    z: float,
    level: float,
    others: tuple[int, int] | None,
) -> Accuracy:
    """Wilson's interval of the share that is observed, carried over to the accuracy."""
    error = 0.0
    if others is None:
        decoys = hits.on_decoys()
    else:
        right, asked = others
        if not 0 <= right <= asked or asked < 1:
            raise SchemaError(f"{right} hits of {asked} people make no sense")
        decoys = right / asked
        low, high = wilson(right, asked, z)
        error = (1 - theta) * (high - low) / 2 / theta
    accuracy = (count / people - (1 - theta) * decoys) / theta
    low, high = ((p - (1 - theta) * decoys) / theta for p in wilson(count, people, z))
    low = accuracy - math.hypot(accuracy - low, error)
    high = accuracy + math.hypot(high - accuracy, error)
    return Accuracy(accuracy, _within(low, high), level, count / people, people)


def _within(low: float, high: float) -> tuple[float, float]:
    """An interval of a share: what lies outside [0, 1] is impossible."""
    return min(max(low, 0.0), 1.0), min(max(high, 0.0), 1.0)


class _Hits:
    """Whether a model predicts the target of a sheet from its other answers."""

    def __init__(self, model: NaiveBayesModel, questionnaire: Questionnaire) -> None:
        self.model, self.survey = model, questionnaire
        schema = questionnaire.schema
        if model.schema.target != schema.target or model.schema.classes != schema.classes:
            raise SchemaError(
                f"the model predicts {model.schema.target}, the questionnaire asks for "
                f"{schema.target}; they must have the same classes"
            )
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
        """Hits of every possible sheet, an axis a question."""
        every = np.indices(self.survey.sizes).reshape(len(self.survey.sizes), -1).T
        return self(every).reshape(self.survey.sizes)

    def on_decoys(self) -> float:
        """Accuracy on personal answers, by their public law."""
        return float((self._table() * self.survey.law(self.survey.names)).sum())

    def enumerated(self) -> Floats:
        """Scores of every possible sheet whose mean is the accuracy."""
        return unmixed(self.survey, self.survey.names, self._table())

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
        numbers = range(len(self.survey.channels))
        for size in range(len(self.survey.channels) + 1):
            for lost in itertools.combinations(numbers, size):
                total += self._weight(lost) * self._replaced(sheets, lost, random)
        return total

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
