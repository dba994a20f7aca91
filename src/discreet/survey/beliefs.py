"""Prior knowledge of an attacker who reads sheets, and the posterior after reading one.

Knowledge has the shape of a Naive Bayes model: a law of the target, and for each question a law of
its answers given the target. A stated prior is the special case of independent answers.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from discreet.arrays import Floats, Integers
from discreet.errors import EstimationError, SchemaError
from discreet.mechanisms.response import Unrelated
from discreet.model import CellFactor, NaiveBayesModel
from discreet.survey.questionnaire import Questionnaire

__all__ = ["Attacker", "Beliefs"]

LARGEST_BLOCK = 10
"""Groups whose personal answers may depend on each other: 2^10 subsets of them are enumerated."""


def refuse_pairs(model: NaiveBayesModel) -> None:
    """Refuse a model with tables of pairs: its answers are not independent within a class."""
    if model.pairs:
        raise SchemaError(
            "the model has tables of pairs of features, whose answers are not independent "
            "within a class; train one with corrections=False"
        )


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
        """Take a released model's probabilities; answers that it ignores are impossible."""
        if model.schema.digest != questionnaire.schema.digest:
            raise SchemaError("the model was trained for other questions than these")
        refuse_pairs(model)
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
    """Parse stated probabilities, or raise an error that names the fault."""
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
    """The posterior of an attacker with these beliefs who reads whole sheets.

    Groups whose personal answers depend on each other form a block; nearly always a block is one
    group. Given the target the blocks are independent, and in each some of the groups are true and
    the others are not: so the joint law of a sheet and of any answer is a product of sums, one per
    block, with a term for each set of groups that are true.

    Parameters
    ----------
    beliefs : Beliefs
    sheets : array of int, (sheets, questions)
    """

    def __init__(self, beliefs: Beliefs, sheets: Integers) -> None:
        self.beliefs, self.sheets = beliefs, sheets
        self.survey = beliefs.questionnaire
        self.blocks = blocks_of(self.survey)
        self.terms = [self._terms(block) for block in self.blocks]
        self.each = [np.sum([part for _, part in terms], axis=0) for terms in self.terms]
        self.without = []  # P(target) times all blocks but one
        for number in range(len(self.blocks)):
            others = [one for k, one in enumerate(self.each) if k != number]
            ones = np.ones_like(self.each[0])
            self.without.append(np.prod([ones, *others], axis=0) * beliefs.prior)
        self.joint = self.without[0] * self.each[0]
        self.chance = self.joint.sum(axis=1)

    def _terms(self, block: Sequence[int]) -> list[tuple[frozenset[int], Floats]]:
        """P(this block's part of the sheet, and exactly these groups are true | target)."""
        found = []
        for size in range(len(block) + 1):
            for true in map(frozenset, itertools.combinations(block, size)):
                part = np.ones((len(self.sheets), len(self.beliefs.prior)))
                for number in block:
                    part *= self._group(number, number in true)
                part *= self._personal([n for n in block if n not in true])[:, None]
                found.append((true, part))
        return found

    def _group(self, number: int, true: bool) -> Floats:
        """P(a group is true or not, and its true answers are those that this implies | target)."""
        channel = self.survey.channels[number]
        theta = float(channel.theta_exact)
        part = np.full((len(self.sheets), len(self.beliefs.prior)), theta if true else 1 - theta)
        related = not isinstance(channel, Unrelated)
        for place in self.survey.places[number]:
            law = self.beliefs.given_class(self.survey.names[place])
            sent = self.sheets[:, place]
            if true:
                part *= law[:, sent].T
            elif related:
                part *= law[:, 1 - sent].T
        return part

    def _personal(self, numbers: Sequence[int]) -> Floats:
        """P(the personal answers are what was sent) of unrelated-question groups, together."""
        chance = np.ones(len(self.sheets))
        drawn = [n for n in numbers if isinstance(self.survey.channels[n], Unrelated)]
        places = {place: place for n in drawn for place in self.survey.places[n]}
        for law in self.survey.all_laws:
            part = law.onto(places, self.survey.sizes)
            if part is not None:
                sizes = [self.survey.sizes[place] for place in part.places]
                cell = np.ravel_multi_index(tuple(self.sheets[:, list(part.places)].T), sizes)
                chance *= (np.array(part.weights, float) / part.total)[cell]
        return chance

    def _answers(self, name: str, true: bool) -> Floats:
        """P(answer | target, whether its group is true), of shape (sheets or 1, K or 1, D)."""
        law = self.beliefs.given_class(name)
        sent = self.sheets[:, self.survey.place[name]]
        if true:
            return np.asarray(np.eye(law.shape[1])[sent][:, None, :])
        if isinstance(self.survey.channels[self.survey.group_of(name)], Unrelated):
            return law[None]
        return np.asarray(np.eye(law.shape[1])[1 - sent][:, None, :])

    def _block_of(self, name: str) -> tuple[int, int]:
        """Numbers of the block and of the group of a question."""
        number = self.survey.group_of(name)
        return next(k for k, block in enumerate(self.blocks) if number in block), number

    def _mixed(self, name: str) -> Floats:
        """P(its block's part of the sheet, answer | target), of shape (sheets, K, D)."""
        block, number = self._block_of(name)
        parts = (
            part[:, :, None] * self._answers(name, number in true)
            for true, part in self.terms[block]
        )
        return np.asarray(sum(parts))

    def answer(self, name: str) -> Floats:
        """P(sheet, answer to a question), of shape (sheets, answers)."""
        block, _ = self._block_of(name)
        return np.asarray((self.without[block][:, :, None] * self._mixed(name)).sum(axis=1))

    def answers(self, one: str, two: str) -> Floats:
        """P(sheet, answers to two questions), of shape (sheets, answers of one, of two)."""
        (first, group1), (second, group2) = self._block_of(one), self._block_of(two)
        if first == second:
            weight = self.without[first]
            parts = (
                _outer(
                    weight * part,
                    self._answers(one, group1 in true),
                    self._answers(two, group2 in true),
                )
                for true, part in self.terms[first]
            )
            return np.asarray(sum(parts))
        with np.errstate(divide="ignore", invalid="ignore"):
            each = self.each[first]
            weight = np.where(each > 0, self.without[second] / each, 0.0)
        return _outer(weight, self._mixed(one), self._mixed(two))


def blocks_of(questionnaire: Questionnaire) -> list[tuple[int, ...]]:
    """Groups, joined where the law of their personal answers joins them."""
    blocks = [{number} for number in range(len(questionnaire.groups))]
    for law in questionnaire.all_laws:
        joined = {n for n, some in enumerate(questionnaire.places) if set(some) & set(law.places)}
        touched = [block for block in blocks if block & joined]
        blocks = [block for block in blocks if not block & joined]
        blocks.append(set().union(*touched))
    largest = max(map(len, blocks))
    if largest > LARGEST_BLOCK:
        raise EstimationError(
            f"the personal answers of {largest} groups depend on each other, which is too much to "
            f"compute with: at most {LARGEST_BLOCK}; join groups or split the law"
        )
    return [tuple(sorted(block)) for block in blocks]


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
