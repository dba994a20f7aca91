"""Privacy of a survey: the published measure (MRR), and a sound one next to it.

PSE, "privacy of a single entry", is the chance that a guess drawn from the posterior is wrong::

    PSE = sum over o, r of P(o) P(r | o) P(not o | r)        MRR, 4.1, by definition

After mining the paper subtracts REC, the "recoverability" by rules (4.2): scenario I, where the
other answer is known, and II, where only its randomized value is. REC of a proper set of rules is
1 in scenario I, so the published difference is never positive; we print it as published. The
sound figure is PSE again with a posterior that also conditions on what is known: the whole sheet,
the released model and, in scenario I, the true answer to one other question.

None of this protects against somebody who knows more than stated; the local-DP epsilon does.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from discreet.arrays import Floats
from discreet.mechanisms.response import Unrelated
from discreet.privacy.rounding import sum_rounded_up
from discreet.randomness import SeededRandom
from discreet.survey.beliefs import Attacker, Beliefs
from discreet.survey.questionnaire import Questionnaire

__all__ = [
    "PrivacyFigures",
    "PrivacyMeasure",
    "compute_posterior",
    "compute_pse",
    "compute_question_channel",
    "compute_rec_known",
    "measure_privacy",
]

MAX_ENUMERATED_SHEETS = 1 << 13
"""Different sheets up to which the sound figures are exact."""
SAMPLED_SHEETS = 4096
"""Invented sheets that they are averaged over beyond that."""


def compute_pse(prior: Floats, channel: Floats) -> float:
    """PSE before mining, of a prior over answers and a channel P(r | o) of shape (o, r)."""
    joint_law = prior[:, None] * channel
    return float((joint_law * (1 - compute_posterior(prior, channel).T)).sum())


def compute_posterior(prior: Floats, channel: Floats) -> Floats:
    """P(o | r), of shape (r, o); the prior where a report never occurs."""
    joint_law = (prior[:, None] * channel).T
    report_totals = joint_law.sum(axis=1, keepdims=True)
    return np.where(
        report_totals > 0, joint_law / np.where(report_totals > 0, report_totals, 1.0), prior
    )


def make_unrelated_channel(theta: float, law: Sequence[float]) -> Floats:
    """P(r | o) of one question: theta [r = o] + (1 - theta) P_Y(r); defined at theta = 0 too."""
    return theta * np.eye(len(law)) + (1 - theta) * np.asarray(law, float)[None, :]


def compute_question_channel(questionnaire: Questionnaire, name: str) -> Floats:
    """P(randomized answer | true answer) to one question, whatever else is on the sheet."""
    channel = questionnaire.channels[questionnaire.find_group(name)]
    theta = float(channel.theta_exact)
    if isinstance(channel, Unrelated):
        return make_unrelated_channel(theta, questionnaire.compute_personal_law([name]).tolist())
    return theta * np.eye(2) + (1 - theta) * np.eye(2)[::-1]


def compute_rec_known(precondition: Floats, confidence: Floats) -> float:
    """REC in scenario I: sum of P(a) P(a => b), for confidences of shape (a, b) as stated."""
    return float((np.asarray(precondition)[:, None] * np.asarray(confidence)).sum())


def compute_rec_unknown(sent: Floats, recovered: Floats) -> float:
    """REC in scenario II: sum of P(R2 = b | R1 = a) P(O2 = b | R2 = b).

    Parameters
    ----------
    sent : array of shape (a, b)
        Joint law of the randomized answers.
    recovered : array of shape (b,)
        P(O2 = b | R2 = b).
    """
    row_totals = sent.sum(axis=1, keepdims=True)
    confidence = np.divide(sent, row_totals, out=np.zeros_like(sent), where=row_totals > 0)
    return float((confidence * recovered).sum())


@dataclass(frozen=True)
class PrivacyFigures:
    """Privacy figures of one question, or the worst of a group.

    Parameters
    ----------
    name : str
    before : float
        PSE before mining.
    rec_known, rec_unknown : float
        The largest REC of any rule, scenarios I and II.
    sound_known, sound_unknown : float
        PSE given the whole sheet and the stated knowledge; I also given one other true answer.
    """

    name: str
    before: float
    rec_known: float
    rec_unknown: float
    sound_known: float
    sound_unknown: float

    @property
    def published_known(self) -> float:
        """PSE - REC in scenario I, as published."""
        return self.before - self.rec_known

    @property
    def published_unknown(self) -> float:
        """PSE - REC in scenario II, as published."""
        return self.before - self.rec_unknown

    def to_body(self) -> dict[str, Any]:
        """Plain values for JSON."""
        derived_figures = {
            name: getattr(self, name) for name in ("published_known", "published_unknown")
        }
        return {**vars(self), **derived_figures}


@dataclass(frozen=True, eq=False)
class PrivacyMeasure:
    """All figures of a questionnaire for stated knowledge.

    Parameters
    ----------
    questions, groups : tuple of PrivacyFigures
    epsilons : tuple of float
        Local-DP loss of each group; they add up.
    posteriors : mapping of question to array of shape (reported answer, true answer)
        P(true answer | reported answer) for the prior.
    priors : mapping of question to array
    exact : bool
        Whether the sound figures were enumerated rather than averaged over invented sheets.
    """

    questions: tuple[PrivacyFigures, ...]
    groups: tuple[PrivacyFigures, ...]
    epsilons: tuple[float, ...]
    posteriors: Mapping[str, Floats]
    priors: Mapping[str, Floats]
    exact: bool

    @property
    def epsilon(self) -> float:
        """Local-DP loss of the whole sheet."""
        return sum_rounded_up(self.epsilons)


def measure_privacy(questionnaire: Questionnaire, beliefs: Beliefs | None = None) -> PrivacyMeasure:
    """Measure the privacy of a questionnaire.

    Parameters
    ----------
    questionnaire : Questionnaire
    beliefs : Beliefs, optional
        What an attacker knows: a stated prior or the released model; uniform if not given.
    """
    beliefs = beliefs or Beliefs.from_margins(questionnaire)
    names = questionnaire.names
    channels = {name: compute_question_channel(questionnaire, name) for name in names}
    priors = {name: beliefs.compute_margin(name) for name in names}
    posteriors = {name: compute_posterior(priors[name], channels[name]) for name in names}
    sound_known, sound_unknown, is_exact = _compute_sound_pse(questionnaire, beliefs)
    entries = []
    for name in names:
        other_names = [candidate for candidate in names if candidate != name]
        recovery_rates = np.diag(posteriors[name])
        largest_rec_known, largest_rec_unknown = 0.0, 0.0
        for other_name in other_names:
            pair_law = beliefs.compute_pair(other_name, name)
            precondition = priors[other_name]
            confidence = pair_law / np.where(precondition > 0, precondition, 1.0)[:, None]
            largest_rec_known = max(largest_rec_known, compute_rec_known(precondition, confidence))
            sent_pair = _compute_sent_pair(questionnaire, other_name, name, pair_law)
            largest_rec_unknown = max(
                largest_rec_unknown, compute_rec_unknown(sent_pair, recovery_rates)
            )
        pse_before = compute_pse(priors[name], channels[name])
        entries.append(
            PrivacyFigures(
                name,
                pse_before,
                largest_rec_known,
                largest_rec_unknown,
                sound_known[name],
                sound_unknown[name],
            )
        )
    groups = [
        _combine_group(group.name, [entry for entry in entries if entry.name in group.questions])
        for group in questionnaire.groups
    ]
    return PrivacyMeasure(
        tuple(entries), tuple(groups), questionnaire.epsilons, posteriors, priors, is_exact
    )


def _combine_group(name: str, entries: Sequence[PrivacyFigures]) -> PrivacyFigures:
    """The group's figures: the smallest privacy, the largest recoverability."""
    smallest = {
        field: min(getattr(entry, field) for entry in entries)
        for field in ("before", "sound_known", "sound_unknown")
    }
    largest = {
        field: max(getattr(entry, field) for entry in entries)
        for field in ("rec_known", "rec_unknown")
    }
    return PrivacyFigures(name, **smallest, **largest)


def _compute_sent_pair(
    questionnaire: Questionnaire, first_name: str, second_name: str, pair: Floats
) -> Floats:
    """Joint law of two randomized answers for a joint law of the true ones."""
    first_group = questionnaire.find_group(first_name)
    second_group = questionnaire.find_group(second_name)
    if first_group != second_group:
        sent_law = (
            compute_question_channel(questionnaire, first_name).T
            @ pair
            @ compute_question_channel(questionnaire, second_name)
        )
        group_channels = [
            questionnaire.channels[group_number] for group_number in (first_group, second_group)
        ]
        if questionnaire.has_spanning_laws and all(
            isinstance(channel, Unrelated) for channel in group_channels
        ):
            personal_law = questionnaire.compute_personal_law([first_name, second_name])
            independent_law = np.outer(personal_law.sum(axis=1), personal_law.sum(axis=0))
            personal_weight = math.prod(
                1 - float(channel.theta_exact) for channel in group_channels
            )
            sent_law = sent_law + personal_weight * (personal_law - independent_law)
        return np.asarray(sent_law)
    channel = questionnaire.channels[first_group]
    theta = float(channel.theta_exact)
    if isinstance(channel, Unrelated):
        return theta * pair + (1 - theta) * questionnaire.compute_personal_law(
            [first_name, second_name]
        )
    return theta * pair + (1 - theta) * pair[::-1, ::-1]


def _compute_sound_pse(
    questionnaire: Questionnaire, beliefs: Beliefs
) -> tuple[dict[str, float], dict[str, float], bool]:
    """PSE given the whole sheet, with and without one other true answer (the worst of them)."""
    is_exact = math.prod(questionnaire.sizes) <= MAX_ENUMERATED_SHEETS
    if is_exact:
        sheets = np.array(list(itertools.product(*map(range, questionnaire.sizes))), np.int64)
    else:
        random = np.random.default_rng(0)
        true_answers = beliefs.draw_answers(SAMPLED_SHEETS, random)
        seeded_source = SeededRandom(0)
        personal_answers = Unrelated(questionnaire.sizes, 0, questionnaire.all_laws).draw_personal(
            SAMPLED_SHEETS, seeded_source
        )
        sheets = questionnaire.randomize_records(
            0, np.hstack([true_answers, personal_answers]), seeded_source
        )
    attacker = Attacker(beliefs, sheets)
    with np.errstate(divide="ignore"):
        # enumerated sheets count by their probability, invented ones equally
        sheet_weights = (
            np.ones(len(sheets)) if is_exact else 1 / (attacker.sheet_probabilities * len(sheets))
        )
    sound_unknown, sound_known = {}, {}
    for name in questionnaire.names:
        answer_joint = attacker.compute_answer_joint(name)
        sound_unknown[name] = 1 - float(
            (sheet_weights * _sum_posterior_squares(answer_joint)).sum()
        )
        other_names = [other_name for other_name in questionnaire.names if other_name != name]
        pair_squares = (
            _sum_posterior_squares(attacker.compute_pair_joint(other_name, name)).sum(axis=1)
            for other_name in other_names
        )
        guess_rates = [
            float((sheet_weights * guess_squares).sum()) for guess_squares in pair_squares
        ]
        sound_known[name] = 1 - max(guess_rates, default=1 - sound_unknown[name])
    return sound_known, sound_unknown, is_exact


def _sum_posterior_squares(joint_law: Floats) -> Floats:
    """Sum over answers of P(answer, seen)^2 / P(seen): P(a guess from the posterior is right)."""
    sheet_totals = joint_law.sum(axis=-1)
    square_sums = (joint_law**2).sum(axis=-1)
    return np.asarray(
        np.divide(square_sums, sheet_totals, out=np.zeros_like(square_sums), where=sheet_totals > 0)
    )
