"""Assumptions of a questionnaire's guarantee, what voids it, and one sentence for respondents."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from discreet.mechanisms.oracle import PROBABILITY_UNIT
from discreet.mechanisms.response import Related
from discreet.privacy.guarantee import INFERRED_REASON, format_odds_sentence
from discreet.privacy.rounding import sum_rounded_up

if TYPE_CHECKING:
    from discreet.survey.questionnaire import Questionnaire

__all__ = ["format_respondent_sentence", "list_void_reasons"]

DEVICE_ASSUMPTIONS = {
    "software": "the respondent's device is honest and its random source good",
    "hand": "it rests on the respondent's own randomization device: the draw is fair, unseen by "
    "anyone, and followed as the instructions say",
    "either": "the program that draws is honest; where a respondent draws by hand it rests on "
    "their own randomization device: a fair draw, unseen, and followed as told",
}
OWN_PERSONAL_REASON = (
    "there is no epsilon: the personal answers are the respondents' own, so whoever knows a "
    "person's answer to a personal question learns from a mismatch that the private ones were sent"
)
WARNER_GROUP_REASON = (
    "there is no epsilon: in a related-question group of two or more, the truth is the report or "
    "its complement, and everything else is ruled out"
)
NO_PROTECTION_REASON = (
    "no protection for {}: theta is 1, so the private answers themselves are sent"
)
ZERO_PROBABILITY_REASON = (
    "there is no epsilon: a personal answer of probability zero proves that it is the private one"
)
UNRELATED_ASSUMPTION = (
    "the personal answers have the stated law and nothing to do with the private ones"
)


def list_void_reasons(questionnaire: Questionnaire) -> list[str]:
    """List the reasons why there is no epsilon; empty if there is one."""
    reasons = []
    for group, channel, epsilon in zip(
        questionnaire.groups, questionnaire.channels, questionnaire.epsilons, strict=True
    ):
        is_related = isinstance(channel, Related)
        if channel.threshold == PROBABILITY_UNIT or (is_related and channel.threshold == 0):
            reasons.append(NO_PROTECTION_REASON.format(group.name))
        elif is_related and channel.width > 1:
            reasons.append(WARNER_GROUP_REASON)
        elif not is_related and questionnaire.personal == "own":
            reasons.append(OWN_PERSONAL_REASON)
        elif math.isinf(epsilon):
            reasons.append(ZERO_PROBABILITY_REASON)
    return list(dict.fromkeys(reasons))


def format_respondent_sentence(questionnaire: Questionnaire) -> str:
    """What a respondent may rely on, in words; where the promise is void, why."""
    sentence = _format_sheet_sentence(questionnaire)
    if questionnaire.schema.inferred:
        return f"{sentence} Not covered: {INFERRED_REASON}."
    return sentence


def _format_sheet_sentence(questionnaire: Questionnaire) -> str:
    reasons = list_void_reasons(questionnaire)
    total_epsilon = sum_rounded_up(questionnaire.epsilons)
    if not reasons:
        return format_odds_sentence("your sheet", total_epsilon)
    if any(reason.startswith("no protection") for reason in reasons):
        return "Questions with theta = 1 are not protected: your answers are sent unchanged."
    if OWN_PERSONAL_REASON in reasons:
        return (
            "Your sheet alone leaves open which questions you answered, but there is no epsilon: "
            "anyone who knows your answers to the personal questions can tell when you answered "
            "the private ones."
        )
    return (
        "Your sheet alone leaves open whether it is true, but there is no epsilon: it rules some "
        "answers out, so someone who already knows a little about you may learn the rest."
    )
