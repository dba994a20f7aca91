"""Questionnaires as versioned JSON documents."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from discreet.documents import Body, load
from discreet.errors import PrivacyError, SchemaError
from discreet.mechanisms.laws import LARGEST_TOTAL, rational
from discreet.mechanisms.oracle import share
from discreet.schema import Categorical, Feature, Numeric, Schema, Value
from discreet.shuffling import Shuffle
from discreet.survey.group import GroupBody

if TYPE_CHECKING:
    from discreet.mechanisms.response import Response
    from discreet.survey.questionnaire import PersonalLaw, Questionnaire

__all__ = ["body_of", "questionnaire_of"]

Weight = int | float | str
WORD = re.compile(r"[0-9]{1,20}")
OPTIONS = ("missing", "outliers", "unseen", "missing_tokens", "inferred")


class PersonalBody(Body):
    wording: str = ""
    law: list[Weight] | None = None


class SurveyQuestionBody(Body):
    name: str
    wording: str = ""
    answers: list[Value] | None = None
    lower: float | None = None
    upper: float | None = None
    integer: bool = False
    cuts: list[float] | None = None
    optional: bool = False
    personal: PersonalBody = PersonalBody()

    def feature(self) -> Feature:
        if self.answers is not None:
            if self.lower is not None or self.upper is not None or self.cuts is not None:
                raise SchemaError(f"{self.name}: has answers and bounds; a number has cuts instead")
            return Categorical(self.name, self.answers, self.optional)
        if self.lower is None or self.upper is None or self.cuts is None:
            raise SchemaError(
                f"{self.name}: list its answers, or for a number write lower, upper and cuts"
            )
        return Numeric(self.name, self.lower, self.upper, self.integer, self.optional)


class JointBody(Body):
    questions: list[str]
    law: list[Any]


class ShuffledBody(Body):
    epsilon: float | None = None
    delta: float
    respondents: int


class QuestionnaireBody(Body):
    title: str = ""
    introduction: str = ""
    notes: list[str] = []
    target: str
    personal: str = "device"
    device: str = "software"
    questions: list[SurveyQuestionBody]
    joint: list[JointBody] = []
    groups: list[GroupBody]
    shuffled: ShuffledBody | None = None
    missing: Any = "skip"
    outliers: Any = "error"
    unseen: Any = "error"
    missing_tokens: list[str] = []
    inferred: bool = False
    channels: list[dict[str, Any]] | None = None


def body_of(questionnaire: Questionnaire) -> dict[str, Any]:
    """Plain values of a questionnaire, in the canonical form of its digest."""
    schema = questionnaire.schema
    single = {law.questions[0]: law for law in questionnaire.laws if len(law.questions) == 1}
    shuffled = questionnaire.shuffled
    return {
        "title": questionnaire.title,
        "introduction": questionnaire.introduction,
        "notes": list(questionnaire.notes),
        "target": schema.target,
        "personal": questionnaire.personal,
        "device": questionnaire.device,
        "questions": [_question(questionnaire, name, single) for name in questionnaire.names],
        "joint": [
            {"questions": list(law.questions), "law": list(law.weights)}
            for law in questionnaire.laws
            if len(law.questions) > 1
        ],
        "groups": [group.to_body() for group in questionnaire.groups],
        **({} if shuffled is None else {"shuffled": shuffled.to_body()}),
        **{name: getattr(schema, name) for name in OPTIONS[:3]},
        "missing_tokens": list(schema.missing_tokens),
        "inferred": schema.inferred,
        "channels": _stated(questionnaire.channels),
    }


def _question(
    questionnaire: Questionnaire, name: str, laws: dict[str, PersonalLaw]
) -> dict[str, Any]:
    feature = questionnaire.cells[name].feature
    wording = questionnaire.wording.get(name)
    body: dict[str, Any] = {"name": name, "wording": wording.private if wording else ""}
    if isinstance(feature, Categorical):
        body["answers"] = list(feature.values)
    else:
        body |= {"lower": feature.lower, "upper": feature.upper, "integer": feature.integer}
        body["cuts"] = list(questionnaire.cuts[name])
    body["optional"] = feature.optional
    law = list(laws[name].weights) if name in laws else None
    body["personal"] = {"wording": wording.personal if wording else "", "law": law}
    return body


def questionnaire_of(text: str | bytes) -> Questionnaire:
    """Parse a questionnaire; errors name the fault and the fix."""
    from discreet.survey.questionnaire import VERSION

    body = load(text, "questionnaire", VERSION, QuestionnaireBody, sealed=False)
    made, stated = _made(body), body.channels
    if stated is not None and stated != _stated(made.channels):
        made = made.with_channels(_channels_as_published(made, stated))
    if stated is not None and stated != _stated(made.channels):
        raise PrivacyError(
            "the channels of this questionnaire are not those of its theta and laws; a device "
            "would randomize otherwise than promised. Remove 'channels' and check again"
        )
    return made


def _stated(channels: Sequence[Response]) -> list[dict[str, Any]]:
    return [{"model": channel.name, **channel.parameters()} for channel in channels]


def _channels_as_published(
    made: Questionnaire, stated: Sequence[dict[str, Any]]
) -> tuple[Response, ...]:
    """Channels whose theta is the stated one, where the shuffle decides it.

    What a shuffle allows is computed less closely by some versions than by others. Sheets that were
    sent are counted by the channels that people were shown.
    """
    channels = list(made.channels)
    for number, (group, one) in enumerate(zip(made.groups, stated, strict=False)):
        theta = str(one.get("theta"))
        if group.epsilon != "shuffled" or not WORD.fullmatch(theta):
            continue
        if int(theta) <= channels[number].threshold:
            channels[number] = replace(channels[number], theta=share(int(theta)))
            channels[number].check_estimable()
    return tuple(channels)


def _made(body: QuestionnaireBody) -> Questionnaire:
    from discreet.survey.questionnaire import PersonalLaw, Questionnaire, Wording

    names = [question.name for question in body.questions]
    for name in names:
        if names.count(name) > 1:
            raise SchemaError(f"two questions are named {name!r}; rename one")
    target = [question for question in body.questions if question.name == body.target]
    if not target:
        raise SchemaError(
            f"target is {body.target!r}, which is not one of the questions: {', '.join(names)}"
        )
    if target[0].answers is None or target[0].optional:
        raise SchemaError(f"{body.target}: the target needs a list of answers and is not optional")
    others = [question for question in body.questions if question.name != body.target]
    schema = Schema(
        [question.feature() for question in others],
        body.target,
        target[0].answers,
        **{name: getattr(body, name) for name in OPTIONS},
    )
    laws = [
        PersonalLaw((question.name,), whole_weights(question.name, question.personal.law))
        for question in body.questions
        if question.personal.law is not None
    ]
    laws += [
        PersonalLaw(tuple(one.questions), whole_weights(" + ".join(one.questions), _flat(one.law)))
        for one in body.joint
    ]
    made = Questionnaire(
        schema,
        [group.group() for group in body.groups],
        laws,
        {q.name: tuple(q.cuts) for q in body.questions if q.cuts is not None},
        body.personal,  # type: ignore[arg-type]
        body.device,  # type: ignore[arg-type]
        {q.name: Wording(q.wording, q.personal.wording) for q in body.questions},
        body.title,
        body.introduction,
        body.notes,
        _shuffle(body.shuffled),
    )
    if body.shuffled is None or made.shuffled is not None:
        return made
    stated = Shuffle.of(made.blanket, body.shuffled.delta, body.shuffled.respondents)
    return replace(made, shuffled=stated)


def _shuffle(body: ShuffledBody | None) -> Shuffle | None:
    if body is None or body.epsilon is None:
        return None
    return Shuffle(body.epsilon, body.delta, body.respondents)


def _flat(law: Sequence[Any]) -> list[Any]:
    return [w for part in law for w in (_flat(part) if isinstance(part, list) else [part])]


def whole_weights(title: str, law: Sequence[Weight]) -> tuple[int, ...]:
    """Weights or probabilities as whole numbers without a common divisor."""
    numbers = [rational(f"{title}: a weight of its personal law", weight) for weight in law]
    if not numbers or min(numbers) < 0 or sum(numbers) == 0:
        raise SchemaError(f"{title}: its personal law needs weights of 0 or more, not all zero")
    fractional = any(number.denominator > 1 for number in numbers)
    if fractional and sum(numbers) != 1:
        raise SchemaError(
            f"{title}: the probabilities of its personal law add up to {float(sum(numbers)):g}, "
            "not 1; correct them, or write whole-number weights such as [1, 2]"
        )
    common = math.lcm(*(number.denominator for number in numbers))
    whole = [int(number * common) for number in numbers]
    divisor = math.gcd(*whole)
    if sum(whole) // divisor >= LARGEST_TOTAL:
        raise SchemaError(f"{title}: its personal law needs weights beyond 2^53; round them")
    return tuple(number // divisor for number in whole)
