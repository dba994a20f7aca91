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
from discreet.losses import total_above
from discreet.mechanisms.response import Unrelated
from discreet.randomness import SeededRandom
from discreet.survey.beliefs import Attacker, Beliefs
from discreet.survey.questionnaire import Questionnaire

__all__ = ["Measure", "Privacy", "channel_of", "measure", "posterior", "pse", "rec_known"]

ENUMERATED = 1 << 13
"""Different sheets up to which the sound figures are exact."""
SAMPLED = 4096
"""Invented sheets that they are averaged over beyond that."""


def pse(prior: Floats, channel: Floats) -> float:
    """PSE before mining, of a prior over answers and a channel P(r | o) of shape (o, r)."""
    joint = prior[:, None] * channel
    return float((joint * (1 - posterior(prior, channel).T)).sum())


def posterior(prior: Floats, channel: Floats) -> Floats:
    """P(o | r), of shape (r, o); the prior where a report never occurs."""
    joint = (prior[:, None] * channel).T
    whole = joint.sum(axis=1, keepdims=True)
    return np.where(whole > 0, joint / np.where(whole > 0, whole, 1.0), prior)


def unrelated_channel(theta: float, law: Sequence[float]) -> Floats:
    """P(r | o) of one question: theta [r = o] + (1 - theta) P_Y(r); defined at theta = 0 too."""
    return theta * np.eye(len(law)) + (1 - theta) * np.asarray(law, float)[None, :]


def channel_of(questionnaire: Questionnaire, name: str) -> Floats:
    """P(randomized answer | true answer) to one question, whatever else is on the sheet."""
    channel = questionnaire.channels[questionnaire.group_of(name)]
    theta = float(channel.theta_exact)
    if isinstance(channel, Unrelated):
        return unrelated_channel(theta, questionnaire.law([name]).tolist())
    return theta * np.eye(2) + (1 - theta) * np.eye(2)[::-1]


def rec_known(precondition: Floats, confidence: Floats) -> float:
    """REC in scenario I: sum of P(a) P(a => b), for confidences of shape (a, b) as stated."""
    return float((np.asarray(precondition)[:, None] * np.asarray(confidence)).sum())


def rec_unknown(sent: Floats, recovered: Floats) -> float:
    """REC in scenario II: sum of P(R2 = b | R1 = a) P(O2 = b | R2 = b).

    Parameters
    ----------
    sent : array of shape (a, b)
        Joint law of the randomized answers.
    recovered : array of shape (b,)
        P(O2 = b | R2 = b).
    """
    whole = sent.sum(axis=1, keepdims=True)
    confidence = np.divide(sent, whole, out=np.zeros_like(sent), where=whole > 0)
    return float((confidence * recovered).sum())


@dataclass(frozen=True)
class Privacy:
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
        derived = {n: getattr(self, n) for n in ("published_known", "published_unknown")}
        return {**vars(self), **derived}


@dataclass(frozen=True, eq=False)
class Measure:
    """All figures of a questionnaire for stated knowledge.

    Parameters
    ----------
    questions, groups : tuple of Privacy
    epsilons : tuple of float
        Local-DP loss of each group; they add up.
    posteriors : mapping of question to array of shape (reported answer, true answer)
        P(true answer | reported answer) for the prior.
    priors : mapping of question to array
    exact : bool
        Whether the sound figures were enumerated rather than averaged over invented sheets.
    """

    questions: tuple[Privacy, ...]
    groups: tuple[Privacy, ...]
    epsilons: tuple[float, ...]
    posteriors: Mapping[str, Floats]
    priors: Mapping[str, Floats]
    exact: bool

    @property
    def epsilon(self) -> float:
        """Local-DP loss of the whole sheet."""
        return total_above(self.epsilons)


def measure(questionnaire: Questionnaire, beliefs: Beliefs | None = None) -> Measure:
    """Measure the privacy of a questionnaire.

    Parameters
    ----------
    questionnaire : Questionnaire
    beliefs : Beliefs, optional
        What an attacker knows: a stated prior or the released model; uniform if not given.
    """
    beliefs = beliefs or Beliefs.stated(questionnaire)
    names = questionnaire.names
    channels = {name: channel_of(questionnaire, name) for name in names}
    priors = {name: beliefs.margin(name) for name in names}
    posteriors = {name: posterior(priors[name], channels[name]) for name in names}
    known, unknown, exact = _sound(questionnaire, beliefs)
    entries = []
    for name in names:
        others = [one for one in names if one != name]
        recovered = np.diag(posteriors[name])
        first, second = 0.0, 0.0
        for other in others:
            pair = beliefs.pair(other, name)
            precondition = priors[other]
            confidence = pair / np.where(precondition > 0, precondition, 1.0)[:, None]
            first = max(first, rec_known(precondition, confidence))
            sent = _sent(questionnaire, other, name, pair)
            second = max(second, rec_unknown(sent, recovered))
        before = pse(priors[name], channels[name])
        entries.append(Privacy(name, before, first, second, known[name], unknown[name]))
    groups = [
        _smallest(group.name, [one for one in entries if one.name in group.questions])
        for group in questionnaire.groups
    ]
    return Measure(tuple(entries), tuple(groups), questionnaire.epsilons, posteriors, priors, exact)


def _smallest(name: str, entries: Sequence[Privacy]) -> Privacy:
    """The group's figures: the smallest privacy, the largest recoverability."""
    least = {k: min(getattr(e, k) for e in entries) for k in ("before", "sound_known")}
    least["sound_unknown"] = min(entry.sound_unknown for entry in entries)
    worst = {k: max(getattr(e, k) for e in entries) for k in ("rec_known", "rec_unknown")}
    return Privacy(name, **least, **worst)


def _sent(questionnaire: Questionnaire, one: str, two: str, pair: Floats) -> Floats:
    """Joint law of two randomized answers for a joint law of the true ones."""
    first, second = questionnaire.group_of(one), questionnaire.group_of(two)
    if first != second:
        found = channel_of(questionnaire, one).T @ pair @ channel_of(questionnaire, two)
        both = [questionnaire.channels[number] for number in (first, second)]
        if questionnaire.spanning and all(isinstance(channel, Unrelated) for channel in both):
            personal = questionnaire.law([one, two])
            apart = np.outer(personal.sum(axis=1), personal.sum(axis=0))
            weight = math.prod(1 - float(channel.theta_exact) for channel in both)
            found = found + weight * (personal - apart)
        return np.asarray(found)
    channel = questionnaire.channels[first]
    theta = float(channel.theta_exact)
    if isinstance(channel, Unrelated):
        return theta * pair + (1 - theta) * questionnaire.law([one, two])
    return theta * pair + (1 - theta) * pair[::-1, ::-1]


def _sound(
    questionnaire: Questionnaire, beliefs: Beliefs
) -> tuple[dict[str, float], dict[str, float], bool]:
    """PSE given the whole sheet, with and without one other true answer (the worst of them)."""
    exact = math.prod(questionnaire.sizes) <= ENUMERATED
    if exact:
        sheets = np.array(list(itertools.product(*map(range, questionnaire.sizes))), np.int64)
    else:
        random = np.random.default_rng(0)
        truth = beliefs.draw(SAMPLED, random)
        source = SeededRandom(0)
        personal = Unrelated(questionnaire.sizes, 0, questionnaire.all_laws).draw(SAMPLED, source)
        sheets = questionnaire.randomized(0, np.hstack([truth, personal]), source)
    attacker = Attacker(beliefs, sheets)
    with np.errstate(divide="ignore"):
        # enumerated sheets count by their probability, invented ones equally
        weight = np.ones(len(sheets)) if exact else 1 / (attacker.chance * len(sheets))
    unknown, known = {}, {}
    for name in questionnaire.names:
        seen = attacker.answer(name)
        unknown[name] = 1 - float((weight * _squares(seen)).sum())
        others = [one for one in questionnaire.names if one != name]
        pairs = (_squares(attacker.answers(one, name)).sum(axis=1) for one in others)
        kept = [float((weight * right).sum()) for right in pairs]
        known[name] = 1 - max(kept, default=1 - unknown[name])
    return known, unknown, exact


def _squares(joint: Floats) -> Floats:
    """Sum over answers of P(answer, seen)^2 / P(seen): P(a guess from the posterior is right)."""
    whole = joint.sum(axis=-1)
    squares = (joint**2).sum(axis=-1)
    return np.asarray(np.divide(squares, whole, out=np.zeros_like(squares), where=whole > 0))
