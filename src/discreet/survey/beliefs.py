"""What somebody who reads a sheet may know beforehand, and what the sheet adds to it.

Knowledge has the shape of a Naive Bayes model: a law of the target, and for each question a law of
its answers given the target. A stated prior is the special case in which the target tells nothing.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from discreet.arrays import Floats, Integers
from discreet.errors import SchemaError
from discreet.mechanisms.response import Unrelated
from discreet.model import CellFactor, NaiveBayesModel
from discreet.survey.questionnaire import Questionnaire

__all__ = ["Attacker", "Beliefs"]


@dataclass(frozen=True, eq=False)
class Beliefs:
    """P(target) and P(answer | target).

    Parameters
    ----------
    questionnaire : Questionnaire
    prior : array of shape (classes,)
    conditional : mapping of question to array of shape (classes, answers)
        Of every question but the target.
    """

    questionnaire: Questionnaire
    prior: Floats
    conditional: Mapping[str, Floats]

    @classmethod
    def stated(
        cls, questionnaire: Questionnaire, margins: Mapping[str, Sequence[float]] | None = None
    ) -> Beliefs:
        """Independent answers with these probabilities; uniform where nothing is stated."""
        margins = dict(margins or {})
        found = {}
        for name in questionnaire.names:
            labels = questionnaire.cells[name].labels
            size = len(labels)
            found[name] = np.full(size, 1 / size)
            if name in margins:
                found[name] = _probabilities(name, labels, margins.pop(name))
        if margins:
            raise SchemaError(
                f"the prior names {min(map(str, margins))!r}, which is not a question; the "
                f"questions are {', '.join(questionnaire.names)}"
            )
        target = found.pop(questionnaire.schema.target)
        same = {name: np.tile(law, (len(target), 1)) for name, law in found.items()}
        return cls(questionnaire, target, same)

    @classmethod
    def of_model(cls, questionnaire: Questionnaire, model: NaiveBayesModel) -> Beliefs:
        """What a released model says; answers that it ignores count as impossible."""
        if model.schema.digest != questionnaire.schema.digest:
            raise SchemaError("the model was trained for other questions than these")
        found = {}
        for name in questionnaire.schema.names:
            size = questionnaire.cells[name].size
            found[name] = np.full((len(model.log_prior), size), 1 / size)
        for factor in model.factors:
            size = questionnaire.cells[factor.name].size
            if not isinstance(factor, CellFactor) or factor.cells.size != size:
                raise SchemaError(f"{factor.name}: the model has other answers than the question")
            law = np.exp(factor.log_probability)
            if model.schema.missing == "skip" and factor.cells.missing is not None:
                law[:, factor.cells.missing] = 0.0
            found[factor.name] = law / law.sum(axis=1, keepdims=True)
        return cls(questionnaire, np.exp(model.log_prior), found)

    def margin(self, name: str) -> Floats:
        """P(answer to a question)."""
        if name == self.questionnaire.schema.target:
            return self.prior
        return np.asarray(self.prior @ self.conditional[name])

    def given_class(self, name: str) -> Floats:
        """P(answer | target), the target's own being the identity."""
        if name == self.questionnaire.schema.target:
            return np.eye(len(self.prior))
        return self.conditional[name]

    def pair(self, one: str, two: str) -> Floats:
        """P(answers to two questions), of shape (answers of one, answers of two)."""
        return np.asarray((self.prior[:, None] * self.given_class(one)).T @ self.given_class(two))

    def draw(self, sheets: int, random: Any) -> Integers:
        """True answers of invented people who follow these beliefs; ``random`` is numpy's."""
        survey = self.questionnaire
        classes = random.choice(len(self.prior), sheets, p=self.prior / self.prior.sum())
        answers = np.empty((sheets, len(survey.names)), np.int64)
        answers[:, -1] = classes
        for name, law in self.conditional.items():
            below = np.cumsum(law, axis=1)[classes]
            drawn = random.random(sheets)[:, None] * below[:, -1:]
            answers[:, survey.place[name]] = (below <= drawn).sum(axis=1)
        return answers


def _probabilities(name: str, labels: Sequence[str], stated: Any) -> Floats:
    """A law as somebody wrote it down, or an error that says what is wrong with it."""
    numbers = list(stated) if isinstance(stated, Sequence | np.ndarray) else [stated]
    plain = (float, int, np.number)
    kept = [one for one in numbers if isinstance(one, plain) and not isinstance(one, bool)]
    within = len(kept) == len(numbers) == len(labels) and all(0 <= one <= 1 for one in kept)
    if not within or abs(math.fsum(kept) - 1) > 1e-9:
        shown = ", ".join(map(repr, numbers[:8])) + (", …" if len(numbers) > 8 else "")
        raise SchemaError(
            f"{name}: its prior is [{shown[:200]}]; give {len(labels)} probabilities that add up "
            f"to 1, for {', '.join(labels)}"
        )
    return np.array(kept, float)


class Attacker:
    """Somebody with these beliefs who reads whole sheets.

    Given the target the groups are independent, and each is either true or not: so the joint law
    of a sheet and of any answer is a product of two-term sums, one a group.

    Parameters
    ----------
    beliefs : Beliefs
    sheets : array of int, (sheets, questions)
    """

    def __init__(self, beliefs: Beliefs, sheets: Integers) -> None:
        self.beliefs, self.sheets = beliefs, sheets
        self.survey = beliefs.questionnaire
        parts = [self._parts(number) for number in range(len(self.survey.groups))]
        self.true = [true for true, _ in parts]
        self.other = [other for _, other in parts]
        each = [true + other for true, other in parts]
        self.without = []  # P(target) times all groups but one
        for number in range(len(each)):
            others = [one for k, one in enumerate(each) if k != number]
            self.without.append(np.prod([np.ones_like(each[0]), *others], axis=0) * beliefs.prior)
        self.joint = self.without[0] * each[0]
        self.chance = self.joint.sum(axis=1)

    def _parts(self, number: int) -> tuple[Floats, Floats]:
        """P(this group's part of the sheet, and it is true | target); the same, and it is not."""
        channel, places = self.survey.channels[number], self.survey.places[number]
        theta = float(channel.theta_exact)
        classes = len(self.beliefs.prior)
        true = np.full((len(self.sheets), classes), theta)
        other = np.full((len(self.sheets), classes), 1 - theta)
        if isinstance(channel, Unrelated):
            for personal in channel.laws:
                cell = np.zeros(len(self.sheets), np.int64)
                for place in personal.places:
                    cell = cell * channel.sizes[place] + self.sheets[:, places[place]]
                other *= (np.array(personal.weights, float) / personal.total)[cell][:, None]
        for place in places:
            law = self.beliefs.given_class(self.survey.names[place])
            true *= law[:, self.sheets[:, place]].T
            if not isinstance(channel, Unrelated):
                other *= law[:, 1 - self.sheets[:, place]].T
        return true, other

    def _answers(self, name: str) -> tuple[Floats, Floats]:
        """P(answer | target, the group is true) as a point, and if it is not; (sheets, K, D)."""
        place = self.survey.place[name]
        law = self.beliefs.given_class(name)
        sent = self.sheets[:, place]
        size = law.shape[1]
        point = np.eye(size)[sent][:, None, :]
        if isinstance(self.survey.channels[self.survey.group_of(name)], Unrelated):
            return point, law[None]
        return point, np.eye(size)[1 - sent][:, None, :]

    def answer(self, name: str) -> Floats:
        """P(sheet, answer to a question), of shape (sheets, answers)."""
        return np.asarray(self._with_class(name).sum(axis=1))

    def _with_class(self, name: str) -> Floats:
        """P(sheet, target, answer), of shape (sheets, K, D)."""
        number = self.survey.group_of(name)
        point, law = self._answers(name)
        mixed = self.true[number][:, :, None] * point + self.other[number][:, :, None] * law
        return np.asarray(self.without[number][:, :, None] * mixed)

    def answers(self, one: str, two: str) -> Floats:
        """P(sheet, answers to two questions), of shape (sheets, answers of one, of two)."""
        first, second = self.survey.group_of(one), self.survey.group_of(two)
        point1, law1 = self._answers(one)
        point2, law2 = self._answers(two)
        if first == second:
            weight = self.without[first]
            both = [(self.true[first], point1, point2), (self.other[first], law1, law2)]
            return np.asarray(sum(_outer(weight * part, left, right) for part, left, right in both))
        mixed1 = self.true[first][:, :, None] * point1 + self.other[first][:, :, None] * law1
        mixed2 = self.true[second][:, :, None] * point2 + self.other[second][:, :, None] * law2
        each = self.true[first] + self.other[first]
        with np.errstate(divide="ignore", invalid="ignore"):
            weight = np.where(each > 0, self.without[second] / each, 0.0)
        return _outer(weight, mixed1, mixed2)


def _outer(weight: Floats, left: Floats, right: Floats) -> Floats:
    """Sum over the target of weight * left * right, of shape (sheets, D, D')."""
    shape = weight.shape[0]
    left = np.broadcast_to(left, (shape, *left.shape[1:]))
    right = np.broadcast_to(right, (shape, *right.shape[1:]))
    if left.shape[1] == 1:
        left = np.broadcast_to(left, (shape, weight.shape[1], left.shape[2]))
    if right.shape[1] == 1:
        right = np.broadcast_to(right, (shape, weight.shape[1], right.shape[2]))
    return np.asarray(np.matmul((weight[:, :, None] * left).transpose(0, 2, 1), right))
