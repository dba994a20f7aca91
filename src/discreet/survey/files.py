"""Questionnaires as versioned JSON documents."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from discreet.errors import PrivacyError, SchemaError
from discreet.files.documents import Body
from discreet.mechanisms.laws import reduce_weights
from discreet.mechanisms.oracle import PROBABILITY_UNIT
from discreet.privacy.shuffling import Shuffle
from discreet.schema.dates import PART_VALUES, Date, DatePart, make_date_feature
from discreet.schema.inference_cost import InferenceCostBody
from discreet.schema.schema import Categorical, Feature, Numeric, Schema, Value
from discreet.survey.group import Group, GroupBody

if TYPE_CHECKING:
    from discreet.mechanisms.response import Response
    from discreet.survey.questionnaire import PersonalLaw, Questionnaire

__all__ = [
    "QuestionnaireBody",
    "build_questionnaire",
    "make_channel_bodies",
    "make_question_body",
]

Weight = int | float | str
INTEGER_PATTERN = re.compile(r"[0-9]{1,20}")
SCHEMA_OPTIONS = ("missing", "outliers", "unseen", "missing_tokens", "inferred")


class PersonalBody(Body):
    wording: str = ""
    law: list[Weight] | None = None


class SurveyQuestionBody(Body):
    name: str
    wording: str = ""
    answers: list[Value] | None = None
    lower: float | str | None = None
    upper: float | str | None = None
    integer: bool = False
    by: str | None = None
    cuts: list[float | str] | None = None
    optional: bool = False
    personal: PersonalBody = PersonalBody()

    def to_feature(self) -> Feature:
        if self.answers is not None:
            if self.lower is not None or self.upper is not None or self.cuts is not None:
                raise SchemaError(f"{self.name}: has answers and bounds; a number has cuts instead")
            return Categorical(self.name, self.answers, self.optional)
        if self.by in PART_VALUES:
            return make_date_feature(self.name, self.by, self.lower, self.upper, self.optional)
        if self.lower is None or self.upper is None or self.cuts is None:
            raise SchemaError(
                f"{self.name}: list its answers, or for a number write lower, upper and cuts"
            )
        if self.by is not None:
            return make_date_feature(self.name, self.by, self.lower, self.upper, self.optional)
        lower, upper = float(self.lower), float(self.upper)
        return Numeric(self.name, lower, upper, self.integer, self.optional)

    def read_cuts(self) -> tuple[float, ...]:
        """The cut points as numbers; those of a date are dates, or days since its first."""
        feature = self.to_feature()
        assert isinstance(feature, Numeric)
        return tuple(feature.read_bound(cut_point) for cut_point in self.cuts or ())


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
    inference: InferenceCostBody | None = None
    channels: list[dict[str, Any]] | None = None


def make_question_body(
    questionnaire: Questionnaire, name: str, laws: dict[str, PersonalLaw]
) -> dict[str, Any]:
    """Plain values of one question.

    Parameters
    ----------
    questionnaire : Questionnaire
    name : str
    laws : dict of str to PersonalLaw
        Laws of single questions, by name.
    """
    feature = questionnaire.cells[name].feature
    wording = questionnaire.wording.get(name)
    question_body: dict[str, Any] = {"name": name, "wording": wording.private if wording else ""}
    if isinstance(feature, (Date, DatePart)):
        question_body |= {key: value for key, value in feature.to_body().items() if key != "kind"}
        if isinstance(feature, Date):
            question_body["cuts"] = list(questionnaire.cuts[name])
    elif isinstance(feature, Categorical):
        question_body["answers"] = list(feature.values)
    else:
        question_body |= {
            "lower": feature.lower,
            "upper": feature.upper,
            "integer": feature.integer,
        }
        question_body["cuts"] = list(questionnaire.cuts[name])
    question_body["optional"] = feature.optional
    law = list(laws[name].weights) if name in laws else None
    question_body["personal"] = {"wording": wording.personal if wording else "", "law": law}
    return question_body


def build_questionnaire(body: QuestionnaireBody) -> Questionnaire:
    """Build a questionnaire from its shape on disk; stated channels must be what it says."""
    questionnaire, stated_channels = _build_without_channels(body), body.channels
    if stated_channels is None or stated_channels == make_channel_bodies(questionnaire.channels):
        return questionnaire
    questionnaire = questionnaire.with_channels(
        _restore_published_channels(questionnaire, stated_channels)
    )
    if stated_channels != make_channel_bodies(questionnaire.channels):
        raise PrivacyError(
            "the channels of this questionnaire are not those of its theta and laws; a device "
            "would randomize otherwise than promised. Remove 'channels' and check again"
        )
    return questionnaire


def make_channel_bodies(channels: Sequence[Response]) -> list[dict[str, Any]]:
    """Plain values of the channels of all groups: what a device draws with."""
    return [{"model": channel.name, **channel.get_parameters()} for channel in channels]


def _restore_published_channels(
    questionnaire: Questionnaire, stated_channels: Sequence[dict[str, Any]]
) -> tuple[Response, ...]:
    """Channels whose theta is the stated one, where the shuffle decides it.

    What a shuffle allows is computed less closely by some versions than by others. Sheets that were
    sent are counted by the channels that people were shown.
    """
    channels = list(questionnaire.channels)
    for group_number, (group, channel_body) in enumerate(
        zip(questionnaire.groups, stated_channels, strict=False)
    ):
        published_threshold = str(channel_body.get("theta"))
        if group.epsilon != "shuffled" or not INTEGER_PATTERN.fullmatch(published_threshold):
            continue
        if int(published_threshold) <= channels[group_number].threshold:
            channels[group_number] = replace(
                channels[group_number], theta=Fraction(int(published_threshold), PROBABILITY_UNIT)
            )
            channels[group_number].check_estimable()
    return tuple(channels)


def _build_without_channels(body: QuestionnaireBody) -> Questionnaire:
    from discreet.survey.questionnaire import PersonalLaw, Questionnaire, Wording

    question_names = [question.name for question in body.questions]
    for question_name in question_names:
        if question_names.count(question_name) > 1:
            raise SchemaError(f"two questions are named {question_name!r}; rename one")
    target_questions = [question for question in body.questions if question.name == body.target]
    if not target_questions:
        raise SchemaError(
            f"target is {body.target!r}, which is not one of the questions: "
            f"{', '.join(question_names)}"
        )
    if target_questions[0].answers is None or target_questions[0].optional:
        raise SchemaError(f"{body.target}: the target needs a list of answers and is not optional")
    feature_questions = [question for question in body.questions if question.name != body.target]
    schema = Schema(
        [question.to_feature() for question in feature_questions],
        body.target,
        target_questions[0].answers,
        **{option_name: getattr(body, option_name) for option_name in SCHEMA_OPTIONS},
        inference=None if body.inference is None else body.inference.to_cost(),
    )
    personal_laws = [
        PersonalLaw((question.name,), reduce_weights(question.name, question.personal.law))
        for question in body.questions
        if question.personal.law is not None
    ]
    personal_laws += [
        PersonalLaw(
            tuple(joint.questions),
            reduce_weights(" + ".join(joint.questions), _flatten_law(joint.law)),
        )
        for joint in body.joint
    ]
    shuffled = body.shuffled
    questionnaire = Questionnaire(
        schema,
        [
            Group(
                tuple(group.questions),
                group.theta,
                group.epsilon,
                None if group.belief is None else (group.belief.prior, group.belief.posterior),
                group.model,
            )
            for group in body.groups
        ],
        personal_laws,
        {
            question.name: question.read_cuts()
            for question in body.questions
            if question.cuts is not None
        },
        body.personal,  # type: ignore[arg-type]
        body.device,  # type: ignore[arg-type]
        {
            question.name: Wording(question.wording, question.personal.wording)
            for question in body.questions
        },
        body.title,
        body.introduction,
        body.notes,
        None
        if shuffled is None or shuffled.epsilon is None
        else Shuffle(shuffled.epsilon, shuffled.delta, shuffled.respondents),
    )
    if shuffled is None or questionnaire.shuffled is not None:
        return questionnaire
    stated_shuffle = Shuffle.from_blanket(
        questionnaire.blanket, shuffled.delta, shuffled.respondents
    )
    return replace(questionnaire, shuffled=stated_shuffle)


def _flatten_law(law: Sequence[Any]) -> list[Any]:
    return [
        weight
        for item in law
        for weight in (_flatten_law(item) if isinstance(item, list) else [item])
    ]
