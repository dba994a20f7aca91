"""Prior knowledge of an attacker who reads sheets, and the posterior after reading one.

Knowledge has the shape of a Naive Bayes model: a law of the target, and for each question a law of
its answers given the target. A stated prior is the special case of independent answers.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from discreet.arrays import Floats, Integers
from discreet.errors import EstimationError, SchemaError
from discreet.mechanisms.response import Unrelated
from discreet.model import CellFactor, NaiveBayesModel
from discreet.survey.group import list_subsets
from discreet.survey.questionnaire import Questionnaire

__all__ = ["Attacker", "Beliefs"]

MAX_BLOCK_GROUPS = 10
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
    def from_margins(
        cls, questionnaire: Questionnaire, margins: Mapping[str, Sequence[float]] | None = None
    ) -> Beliefs:
        """Independent answers with these probabilities; uniform where nothing is stated."""
        margins = dict(margins or {})
        laws_by_name = {}
        for name in questionnaire.names:
            labels = questionnaire.cells[name].labels
            answer_count = len(labels)
            laws_by_name[name] = np.full(answer_count, 1 / answer_count)
            if name in margins:
                laws_by_name[name] = _parse_probabilities(name, labels, margins.pop(name))
        if margins:
            raise SchemaError(
                f"the prior names {min(map(str, margins))!r}, which is not a question; the "
                f"questions are {', '.join(questionnaire.names)}"
            )
        target_law = laws_by_name.pop(questionnaire.schema.target)
        conditional_laws = {
            name: np.tile(law, (len(target_law), 1)) for name, law in laws_by_name.items()
        }
        return cls(questionnaire, target_law, conditional_laws)

    @classmethod
    def from_model(cls, questionnaire: Questionnaire, model: NaiveBayesModel) -> Beliefs:
        """Take a released model's probabilities; answers that it ignores are impossible."""
        if model.schema.digest != questionnaire.schema.digest:
            raise SchemaError("the model was trained for other questions than these")
        refuse_pairs(model)
        laws_by_name = {}
        for name in questionnaire.schema.names:
            answer_count = questionnaire.cells[name].size
            laws_by_name[name] = np.full((len(model.log_prior), answer_count), 1 / answer_count)
        for factor in model.factors:
            answer_count = questionnaire.cells[factor.name].size
            if not isinstance(factor, CellFactor) or factor.cells.size != answer_count:
                raise SchemaError(f"{factor.name}: the model has other answers than the question")
            answer_law = np.exp(factor.log_probability)
            if model.schema.missing == "skip" and factor.cells.missing_index is not None:
                answer_law[:, factor.cells.missing_index] = 0.0
            laws_by_name[factor.name] = answer_law / answer_law.sum(axis=1, keepdims=True)
        return cls(questionnaire, np.exp(model.log_prior), laws_by_name)

    def compute_margin(self, name: str) -> Floats:
        """P(answer to a question)."""
        if name == self.questionnaire.schema.target:
            return self.prior
        return np.asarray(self.prior @ self.conditional[name])

    def get_conditional(self, name: str) -> Floats:
        """P(answer | target), the target's own being the identity."""
        if name == self.questionnaire.schema.target:
            return np.eye(len(self.prior))
        return self.conditional[name]

    def compute_pair(self, first_name: str, second_name: str) -> Floats:
        """P(answers to two questions), of shape (answers of one, answers of two)."""
        return np.asarray(
            (self.prior[:, None] * self.get_conditional(first_name)).T
            @ self.get_conditional(second_name)
        )

    def draw_answers(self, sheet_count: int, random: Any) -> Integers:
        """True answers of invented people who follow these beliefs; ``random`` is numpy's."""
        survey = self.questionnaire
        class_codes = random.choice(len(self.prior), sheet_count, p=self.prior / self.prior.sum())
        answers = np.empty((sheet_count, len(survey.names)), np.int64)
        answers[:, -1] = class_codes
        for name, law in self.conditional.items():
            cumulative = np.cumsum(law, axis=1)[class_codes]
            uniform_draws = random.random(sheet_count)[:, None] * cumulative[:, -1:]
            answers[:, survey.place[name]] = (cumulative <= uniform_draws).sum(axis=1)
        return answers


def _parse_probabilities(name: str, labels: Sequence[str], stated_law: Any) -> Floats:
    """Parse stated probabilities, or raise an error that names the fault."""
    stated_numbers = (
        list(stated_law) if isinstance(stated_law, Sequence | np.ndarray) else [stated_law]
    )
    number_types = (float, int, np.number)
    valid_numbers = [
        number
        for number in stated_numbers
        if isinstance(number, number_types) and not isinstance(number, bool)
    ]
    is_valid = len(valid_numbers) == len(stated_numbers) == len(labels) and all(
        0 <= number <= 1 for number in valid_numbers
    )
    if not is_valid or abs(math.fsum(valid_numbers) - 1) > 1e-9:
        shown_numbers = ", ".join(map(repr, stated_numbers[:8])) + (
            ", …" if len(stated_numbers) > 8 else ""
        )
        raise SchemaError(
            f"{name}: its prior is [{shown_numbers[:200]}]; give {len(labels)} probabilities that "
            f"add up to 1, for {', '.join(labels)}"
        )
    return np.array(valid_numbers, float)


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
        self.blocks = find_blocks(self.survey)
        self.terms = [self._compute_terms(block) for block in self.blocks]
        self.block_factors = [
            np.sum([term_factor for _, term_factor in block_terms], axis=0)
            for block_terms in self.terms
        ]
        self.other_block_factors = []  # P(target) times all blocks but one
        for block_number in range(len(self.blocks)):
            other_factors = [
                block_factor
                for index, block_factor in enumerate(self.block_factors)
                if index != block_number
            ]
            unit_factor = np.ones_like(self.block_factors[0])
            self.other_block_factors.append(
                np.prod([unit_factor, *other_factors], axis=0) * beliefs.prior
            )
        self.joint_probabilities = self.other_block_factors[0] * self.block_factors[0]
        self.sheet_probabilities = self.joint_probabilities.sum(axis=1)

    def _compute_terms(self, block: Sequence[int]) -> list[tuple[frozenset[int], Floats]]:
        """P(this block's part of the sheet, and exactly these groups are true | target)."""
        terms = []
        for true_groups in map(frozenset, list_subsets(block)):
            sheet_factor = np.ones((len(self.sheets), len(self.beliefs.prior)))
            for group_number in block:
                sheet_factor *= self._compute_group_factor(
                    group_number, group_number in true_groups
                )
            sheet_factor *= self._compute_personal_factor(
                [n for n in block if n not in true_groups]
            )[:, None]
            terms.append((true_groups, sheet_factor))
        return terms

    def _compute_group_factor(self, group_number: int, is_true: bool) -> Floats:
        """P(a group is true or not, and its true answers are those that this implies | target)."""
        channel = self.survey.channels[group_number]
        theta = float(channel.theta_exact)
        group_factor = np.full(
            (len(self.sheets), len(self.beliefs.prior)), theta if is_true else 1 - theta
        )
        is_related = not isinstance(channel, Unrelated)
        for place in self.survey.places[group_number]:
            answer_law = self.beliefs.get_conditional(self.survey.names[place])
            sent_answers = self.sheets[:, place]
            if is_true:
                group_factor *= answer_law[:, sent_answers].T
            elif is_related:
                group_factor *= answer_law[:, 1 - sent_answers].T
        return group_factor

    def _compute_personal_factor(self, group_numbers: Sequence[int]) -> Floats:
        """P(the personal answers are what was sent) of unrelated-question groups, together."""
        probability = np.ones(len(self.sheets))
        unrelated_groups = [
            n for n in group_numbers if isinstance(self.survey.channels[n], Unrelated)
        ]
        group_places = {place: place for n in unrelated_groups for place in self.survey.places[n]}
        for law in self.survey.all_laws:
            projected_law = law.project_onto(group_places, self.survey.sizes)
            if projected_law is not None:
                answer_counts = [self.survey.sizes[place] for place in projected_law.places]
                cell_indices = np.ravel_multi_index(
                    tuple(self.sheets[:, list(projected_law.places)].T), answer_counts
                )
                probability *= (np.array(projected_law.weights, float) / projected_law.total)[
                    cell_indices
                ]
        return probability

    def _compute_answer_laws(self, name: str, is_true: bool) -> Floats:
        """P(answer | target, whether its group is true), of shape (sheets or 1, K or 1, D)."""
        answer_law = self.beliefs.get_conditional(name)
        sent_answers = self.sheets[:, self.survey.place[name]]
        if is_true:
            return np.asarray(np.eye(answer_law.shape[1])[sent_answers][:, None, :])
        if isinstance(self.survey.channels[self.survey.find_group(name)], Unrelated):
            return answer_law[None]
        return np.asarray(np.eye(answer_law.shape[1])[1 - sent_answers][:, None, :])

    def _find_block(self, name: str) -> tuple[int, int]:
        """Numbers of the block and of the group of a question."""
        group_number = self.survey.find_group(name)
        return next(
            block_number for block_number, block in enumerate(self.blocks) if group_number in block
        ), group_number

    def _compute_block_joint(self, name: str) -> Floats:
        """P(its block's part of the sheet, answer | target), of shape (sheets, K, D)."""
        block_number, group_number = self._find_block(name)
        joint_terms = (
            term_factor[:, :, None] * self._compute_answer_laws(name, group_number in true_groups)
            for true_groups, term_factor in self.terms[block_number]
        )
        return np.asarray(sum(joint_terms))

    def compute_answer_joint(self, name: str) -> Floats:
        """P(sheet, answer to a question), of shape (sheets, answers)."""
        block_number, _ = self._find_block(name)
        return np.asarray(
            (
                self.other_block_factors[block_number][:, :, None] * self._compute_block_joint(name)
            ).sum(axis=1)
        )

    def compute_pair_joint(self, first_name: str, second_name: str) -> Floats:
        """P(sheet, answers to two questions), of shape (sheets, answers of one, of two)."""
        (first_block, first_group), (second_block, second_group) = (
            self._find_block(first_name),
            self._find_block(second_name),
        )
        if first_block == second_block:
            target_weight = self.other_block_factors[first_block]
            joint_terms = (
                _sum_outer_products(
                    target_weight * term_factor,
                    self._compute_answer_laws(first_name, first_group in true_groups),
                    self._compute_answer_laws(second_name, second_group in true_groups),
                )
                for true_groups, term_factor in self.terms[first_block]
            )
            return np.asarray(sum(joint_terms))
        with np.errstate(divide="ignore", invalid="ignore"):
            first_factor = self.block_factors[first_block]
            target_weight = np.where(
                first_factor > 0, self.other_block_factors[second_block] / first_factor, 0.0
            )
        return _sum_outer_products(
            target_weight,
            self._compute_block_joint(first_name),
            self._compute_block_joint(second_name),
        )


def find_blocks(questionnaire: Questionnaire) -> list[tuple[int, ...]]:
    """Groups, joined where the law of their personal answers joins them."""
    blocks = [{group_number} for group_number in range(len(questionnaire.groups))]
    for law in questionnaire.all_laws:
        joined_groups = {
            group_number
            for group_number, group_places in enumerate(questionnaire.places)
            if set(group_places) & set(law.places)
        }
        touched_blocks = [block for block in blocks if block & joined_groups]
        blocks = [block for block in blocks if not block & joined_groups]
        blocks.append(set().union(*touched_blocks))
    largest_block = max(map(len, blocks))
    if largest_block > MAX_BLOCK_GROUPS:
        raise EstimationError(
            f"the personal answers of {largest_block} groups depend on each other, which is too "
            f"much to compute with: at most {MAX_BLOCK_GROUPS}; join groups or split the law"
        )
    return [tuple(sorted(block)) for block in blocks]


def _sum_outer_products(target_weight: Floats, first_law: Floats, second_law: Floats) -> Floats:
    """Sum over the target of weight * left * right, of shape (sheets, D, D')."""
    first_law, second_law = (
        np.broadcast_to(law, (*target_weight.shape, law.shape[2]))
        for law in (first_law, second_law)
    )
    return np.asarray(
        np.matmul((target_weight[:, :, None] * first_law).transpose(0, 2, 1), second_law)
    )
