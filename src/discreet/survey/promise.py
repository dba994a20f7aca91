"""Guarantee of a questionnaire, and the same in one sentence for respondents."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from discreet.losses import total_above
from discreet.mechanisms.oracle import ONE
from discreet.mechanisms.response import Related
from discreet.privacy import INFERRED, Charge, Guarantee, odds_sentence

if TYPE_CHECKING:
    from discreet.survey.questionnaire import Questionnaire

__all__ = ["promise_of", "relied_on"]

DEVICES = {
    "software": "the respondent's device is honest and its random source good",
    "hand": "it rests on the respondent's own randomization device: the draw is fair, unseen by "
    "anyone, and followed as the instructions say",
    "either": "the program that draws is honest; where a respondent draws by hand it rests on "
    "their own randomization device: a fair draw, unseen, and followed as told",
}
OWN = (
    "there is no epsilon: the personal answers are the respondents' own, so whoever knows a "
    "person's answer to a personal question learns from a mismatch that the private ones were sent"
)
WARNER = (
    "there is no epsilon: in a related-question group of two or more, the truth is the report or "
    "its complement, and everything else is ruled out"
)
OPEN = "no protection for {}: theta is 1, so the private answers themselves are sent"
ZERO = (
    "there is no epsilon: a personal answer of probability zero proves that it is the private one"
)
UNRELATED = "the personal answers have the stated law and nothing to do with the private ones"


def promise_of(questionnaire: Questionnaire) -> Guarantee:
    """Make the guarantee: the groups' losses add up for replacing all answers of one person."""
    each = zip(questionnaire.groups, questionnaire.epsilons, strict=True)
    return Guarantee(
        total_above(questionnaire.epsilons),
        neighbours="replace",
        trust="survey",
        unit="all answers of one person",
        against="everyone, the collector included: it is the sheet itself that is randomized",
        assumptions=(
            DEVICES[questionnaire.device],
            *([UNRELATED] if questionnaire.personal == "own" else []),
            "a person sends one sheet, and the same one when it is sent again",
            "that a person took part at all is not hidden",
        ),
        charges=tuple(Charge(group.name, epsilon) for group, epsilon in each),
        void=tuple(_reasons(questionnaire)),
    ).under(schema=questionnaire.schema)


def _reasons(questionnaire: Questionnaire) -> list[str]:
    """List the reasons why there is no epsilon; empty if there is one."""
    found = []
    for group, channel in zip(questionnaire.groups, questionnaire.channels, strict=True):
        related = isinstance(channel, Related)
        if channel.threshold == ONE or (related and channel.threshold == 0):
            found.append(OPEN.format(group.name))
        elif related and channel.width > 1:
            found.append(WARNER)
        elif not related and questionnaire.personal == "own":
            found.append(OWN)
        elif math.isinf(channel.epsilon_exact()):
            found.append(ZERO)
    return list(dict.fromkeys(found))


def relied_on(questionnaire: Questionnaire) -> str:
    """What a respondent may rely on, in words; where the promise is void, why."""
    sentence = _about_the_sheet(questionnaire)
    if questionnaire.schema.inferred:
        return f"{sentence} Not covered: {INFERRED}."
    return sentence


def _about_the_sheet(questionnaire: Questionnaire) -> str:
    reasons = _reasons(questionnaire)
    total = total_above(questionnaire.epsilons)
    if not reasons:
        return odds_sentence("your sheet", total)
    if any(reason.startswith("no protection") for reason in reasons):
        return "Questions with theta = 1 are not protected: your answers are sent unchanged."
    if OWN in reasons:
        return (
            "Your sheet alone leaves open which questions you answered, but there is no epsilon: "
            "whoever knows your answers to the personal questions can tell when you answered the "
            "private ones."
        )
    return (
        "Your sheet alone leaves open whether it is true, but there is no epsilon: it rules some "
        "answers out, so someone who already knows a little about you may learn the rest."
    )
