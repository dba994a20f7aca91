"""The public description of a randomized-response survey, and what it promises.

It is public: the private questions, the personal ones that may be answered in their place, the
groups, and for each group how often the truth is sent.

>>> from discreet import Categorical, Schema
>>> schema = Schema([Categorical("smokes", ["no", "yes"], optional=False)], "sick", ["no", "yes"])
>>> survey = Questionnaire(schema, [Group(("smokes", "sick"), theta=0.5)])
>>> round(survey.guarantee.epsilon, 3)
1.609
"""

from __future__ import annotations

import copy
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, Self, get_args

import numpy as np

from discreet.arrays import Floats
from discreet.collection.protocol import DrawingDevice, PersonalSource, WholeAnswerChannel
from discreet.errors import PrivacyError, SchemaError
from discreet.files.documents import load_document
from discreet.mechanisms.laws import AnswerLaw, compute_joint_law
from discreet.mechanisms.response import Response, Unrelated
from discreet.privacy.guarantee import Charge, Guarantee
from discreet.privacy.rounding import sum_rounded_up
from discreet.privacy.shuffled_sheets import SheetBlanket
from discreet.privacy.shuffling import AnyBlanket, Blanket, Shuffle
from discreet.schema.cells import Bins, Cells
from discreet.schema.schema import Numeric, Schema, refuse_set
from discreet.survey.device import SheetRandomizer
from discreet.survey.group import Group, ResponseModel, make_channels
from discreet.survey.promise import (
    DEVICE_ASSUMPTIONS,
    UNRELATED_ASSUMPTION,
    format_respondent_sentence,
    list_void_reasons,
)

__all__ = ["Group", "PersonalLaw", "Questionnaire", "Wording"]

VERSION = 1


@dataclass(frozen=True)
class PersonalLaw:
    """Public distribution of the personal answers to one question, or of several together.

    Parameters
    ----------
    questions : tuple of str
    weights : tuple of int
        One per answer in the order of the cells; for several questions the last varies fastest.
        Divided by what they have in common, as in a file: otherwise (2, 2) and (1, 1), the same
        law, would draw differently from the same bytes.
    """

    questions: tuple[str, ...]
    weights: tuple[int, ...]

    def __post_init__(self) -> None:
        refuse_set("a personal law", "questions", self.questions)
        refuse_set("a personal law", "weights", self.weights)
        if all(isinstance(weight, int) for weight in self.weights):
            common = max(1, math.gcd(*self.weights))
            object.__setattr__(self, "weights", tuple(weight // common for weight in self.weights))


@dataclass(frozen=True)
class Wording:
    """What a respondent reads: the private question, and the personal one paired with it."""

    private: str = ""
    personal: str = ""


@dataclass(frozen=True, eq=False)
class Questionnaire(SheetRandomizer):
    """Private questions in groups, each group randomized by itself.

    A collection with a single question, whose answer is the whole sheet.

    Parameters
    ----------
    schema : Schema
        The features are the private questions, the target is the question to be predicted.
    groups : sequence of Group
        Every question, the target included, is in exactly one.
    laws : sequence of PersonalLaw
        Of the personal answers; questions that are not mentioned have uniform ones.
    cuts : mapping of name to cut points
        How the answers of numeric questions are grouped into cells.
    personal : {"device", "own"}
        Whether the device draws the personal answers from the public law (a finite epsilon), or
        respondents give their own true ones (no epsilon).
    device : {"software", "hand", "either"}
        Whether a program draws, or the respondents themselves, with dice or cards.
    wording : mapping of name to Wording
    title, introduction : str
    notes : sequence of str
        For the authors; not shown to respondents.
    shuffled : Shuffle, optional
        What is promised beyond the sheet's own epsilon where an anonymiser shuffles the sheets.

    Attributes
    ----------
    original : Schema
        The schema itself: nothing is projected.
    names : tuple of str
        All questions in the order of a sheet: the features, then the target.
    place : mapping of name to int
        Where each question is on a sheet.
    """

    schema: Schema
    groups: Sequence[Group]
    laws: Sequence[PersonalLaw] = ()
    cuts: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    personal: PersonalSource = "device"
    device: DrawingDevice = "software"
    wording: Mapping[str, Wording] = field(default_factory=dict)
    title: str = ""
    introduction: str = ""
    notes: Sequence[str] = ()
    shuffled: Shuffle | None = None
    original: Schema = field(init=False, repr=False)
    names: tuple[str, ...] = field(init=False, repr=False)
    place: Mapping[str, int] = field(init=False, repr=False)

    kind: ClassVar[str] = "questionnaire"
    version: ClassVar[int] = VERSION
    noun: ClassVar[str] = "sheet"
    command_group: ClassVar[str] = "survey"
    has_own_wording: ClassVar[bool] = True
    reports = 1
    assignment = "draw"

    def __post_init__(self) -> None:
        refuse_set("a questionnaire", "groups", self.groups)
        refuse_set("a questionnaire", "laws", self.laws)
        refuse_set("a questionnaire", "notes", self.notes)
        object.__setattr__(self, "groups", tuple(self.groups))
        object.__setattr__(self, "laws", tuple(self.laws))
        object.__setattr__(self, "notes", tuple(self.notes))
        cuts = {name: tuple(map(float, cut_points)) for name, cut_points in self.cuts.items()}
        object.__setattr__(self, "cuts", cuts)
        object.__setattr__(self, "original", self.schema)
        object.__setattr__(self, "names", (*self.schema.names, self.schema.target))
        place = {name: position for position, name in enumerate(self.names)}
        object.__setattr__(self, "place", place)
        for name, value, allowed_values in (
            ("personal", self.personal, PersonalSource),
            ("device", self.device, DrawingDevice),
        ):
            if value not in get_args(allowed_values):
                raise SchemaError(
                    f"{name} is {value!r}; write {' or '.join(get_args(allowed_values))}"
                )
        self._check_names()
        self._check_laws()
        _ = self.channels  # every group must be estimable
        if self.shuffled is not None:
            self.shuffled.require_kept_by(self.blanket)

    def _check_names(self) -> None:
        grouped_names = [name for group in self.groups for name in group.questions]
        for name in grouped_names:
            if name not in self.names:
                raise SchemaError(
                    f"a group names {name!r}; the questions are {_format_list(self.names)}"
                )
            if grouped_names.count(name) > 1:
                raise SchemaError(f"{name} is in two groups, or twice in one; keep one")
        missing_names = [name for name in self.names if name not in grouped_names]
        if missing_names:
            raise SchemaError(
                f"{_format_list(missing_names)}: in no group; put every question into one"
            )
        for field_name, names in (("cuts", self.cuts), ("wording", self.wording)):
            for name in names:
                if name not in self.names:
                    raise SchemaError(
                        f"there is {field_name} for {name!r}, which is not a question"
                    )

    def _check_laws(self) -> None:
        mentioned_names: set[str] = set()
        for law in self.laws:
            law_title = " + ".join(law.questions)
            for name in law.questions:
                if name not in self.names:
                    raise SchemaError(f"a personal law names {name!r}, which is not a question")
                if name in mentioned_names:
                    raise SchemaError(f"{name} has two personal laws; keep one")
                mentioned_names.add(name)
            cell_count = math.prod(self.sizes[self.place[name]] for name in law.questions)
            if len(law.weights) != cell_count:
                raise SchemaError(
                    f"{law_title}: its personal law has {len(law.weights)} weights, the answers "
                    f"need {cell_count}: {_format_list(self.cells[law.questions[-1]].labels)}"
                )
            is_inside_group = any(
                set(law.questions) <= set(group.questions) for group in self.groups
            )
            if self.personal == "device" and not is_inside_group:
                raise SchemaError(
                    f"{law_title}: their personal answers are drawn together but they are in "
                    "different groups, which the device randomizes independently; split the law "
                    "or join the groups"
                )

    @classmethod
    def from_schema(
        cls,
        schema: Schema,
        theta: Any = 0.5,
        groups: Sequence[Sequence[str]] | None = None,
        model: ResponseModel = "unrelated",
        bins: Bins = 8,
        laws: Sequence[PersonalLaw] = (),
    ) -> Self:
        """A questionnaire for a schema.

        Parameters
        ----------
        schema : Schema
        theta : number, or one number per group
        groups : sequence of sequences of names, optional
            All questions in one group if not given.
        model, laws
            As in ``Group`` and ``Questionnaire``.
        bins : int or mapping
            How numeric features are cut, as everywhere.
        """
        for unordered in (groups, *(groups or ())):
            refuse_set("a questionnaire", "groups", unordered)
        group_questions = (
            [(*schema.names, schema.target)] if groups is None else [*map(tuple, groups)]
        )
        has_several_thetas = isinstance(theta, (Sequence, np.ndarray)) and not isinstance(
            theta, str
        )
        group_thetas = list(theta) if has_several_thetas else [theta] * len(group_questions)
        if len(group_thetas) != len(group_questions):
            raise SchemaError(
                f"{len(group_thetas)} thetas for {len(group_questions)} groups; give one for each"
            )
        cuts = {
            feature.name: Cells.from_schema(schema, feature.name, bins).edges[1:-1]
            for feature in schema.features
            if isinstance(feature, Numeric)
        }
        stated_groups = [
            Group(questions, theta=group_theta, model=model)
            for questions, group_theta in zip(group_questions, group_thetas, strict=True)
        ]
        return cls(schema, stated_groups, laws, cuts)

    @cached_property
    def all_laws(self) -> tuple[AnswerLaw, ...]:
        """Laws of the personal answers by their places on a sheet; they cover it exactly once."""
        stated_laws = [
            AnswerLaw(tuple(self.place[name] for name in law.questions), law.weights)
            for law in self.laws
        ]
        stated_places = {place for law in stated_laws for place in law.places}
        uniform_laws = [
            AnswerLaw((place,), (1,) * size)
            for place, size in enumerate(self.sizes)
            if place not in stated_places
        ]
        return tuple(sorted([*stated_laws, *uniform_laws], key=lambda law: law.places))

    @cached_property
    def channels(self) -> tuple[Response, ...]:
        """The mechanism of each group."""
        shuffled_groups = [group for group in self.groups if group.epsilon == "shuffled"]
        if not shuffled_groups:
            return make_channels(self, self.groups)
        if self.shuffled is None:
            raise PrivacyError(
                f"group {shuffled_groups[0].name}: epsilon is 'shuffled', but nothing says how "
                "the sheets are shuffled; write shuffled: with epsilon, delta and respondents"
            )

        def make_candidate(local_epsilon: float) -> tuple[tuple[Response, ...], AnyBlanket]:
            fixed_groups = [group for group in self.groups if group not in shuffled_groups]
            fixed_epsilon = sum(
                channel.compute_exact_epsilon() for channel in make_channels(self, fixed_groups)
            )
            if not fixed_epsilon < local_epsilon:
                raise PrivacyError(
                    "shuffled: the groups with a theta of their own leave nothing to the others"
                )
            group_epsilon = (
                math.floor(1e6 * (local_epsilon - fixed_epsilon) / len(shuffled_groups)) / 1e6
            )
            channels = make_channels(
                self,
                [
                    replace(group, epsilon=group_epsilon) if group in shuffled_groups else group
                    for group in self.groups
                ],
            )
            candidate = copy.copy(self)  # nothing that follows from channels is known yet
            vars(candidate)["channels"] = channels
            return channels, candidate.blanket

        return self.shuffled.find_largest_local(make_candidate)

    def with_channels(self, channels: Sequence[Response]) -> Self:
        """The same with other channels, which must keep what the shuffle promises.

        Parameters
        ----------
        channels : sequence of Response
            One for each group.
        """
        changed = copy.copy(self)
        vars(changed).clear()
        vars(changed).update(
            {
                dataclass_field.name: getattr(self, dataclass_field.name)
                for dataclass_field in fields(self)
            }
        )
        vars(changed)["channels"] = tuple(channels)
        if changed.shuffled is not None:
            changed.shuffled.require_kept_by(changed.blanket)
        return changed

    @cached_property
    def blanket(self) -> AnyBlanket:
        """The blanket of a sheet: the part of its distribution that all answers share."""
        epsilon = sum(self.epsilons)
        if math.isinf(epsilon):
            raise PrivacyError(
                "shuffled: these sheets have no epsilon by themselves, so nothing can be promised "
                "of them shuffled either; 'discreet survey check' says why"
            )
        (first_channel, *other_channels) = self.channels
        if (
            other_channels
            or not isinstance(first_channel, Unrelated)
            or not first_channel.is_uniform
        ):
            return self._compute_sheet_blanket() or Blanket.from_epsilon(epsilon)
        personal_share = float(1 - first_channel.theta_exact)
        cell_count = math.prod(first_channel.sizes)  # direct encoding
        return Blanket(
            math.exp(epsilon),
            personal_share / cell_count,
            0.0,
            personal_share * (1 - 2 / cell_count),
        )

    def _compute_sheet_blanket(self) -> SheetBlanket | None:
        """The exact blanket of sheets whose groups are made up independently; None otherwise."""
        group_masses = []
        for channel in self.channels:
            if self.has_spanning_laws or not isinstance(channel, Unrelated):
                return None
            min_probability, second_probability = channel.two_min_probabilities
            if min_probability == 1:  # one answer only: every sheet is the same
                continue
            group_masses.append(
                (float(channel.theta_exact), float(min_probability), float(second_probability))
            )
        return SheetBlanket(tuple(group_masses)) if group_masses else None

    @cached_property
    def has_spanning_laws(self) -> bool:
        """Whether personal answers of different groups depend on each other."""
        return any(
            not any(set(law.places) <= set(places) for places in self.places)
            for law in self.all_laws
        )

    def compute_personal_law(self, names: Sequence[str]) -> Floats:
        """P(personal answers to these questions), one axis per question."""
        return compute_joint_law(self.all_laws, self.sizes, [self.place[name] for name in names])

    def find_group(self, name: str) -> int:
        """Number of the group that a question is in."""
        if name not in self.place:
            raise SchemaError(
                f"there is no question {name!r}; there are {_format_list(self.names)}"
            )
        return next(
            group_number
            for group_number, group in enumerate(self.groups)
            if name in group.questions
        )

    @cached_property
    def epsilons(self) -> tuple[float, ...]:
        """Local-DP loss of each group; infinite where the personal answers are people's own."""
        return tuple(
            math.inf
            if self.personal == "own" and isinstance(channel, Unrelated)
            else channel.compute_exact_epsilon()
            for channel in self.channels
        )

    @cached_property
    def questions(self) -> tuple[WholeAnswerChannel]:  # type: ignore[override]  # made when asked
        """The one question of this collection: the whole sheet."""
        total_epsilon = sum_rounded_up(self.epsilons)
        labels = tuple(self.cells[name].labels for name in self.names)
        return (WholeAnswerChannel(self.names, self.sizes, len(self.names), labels, total_epsilon),)

    @property
    def mechanisms(self) -> list[tuple[str, Any]]:
        """The channel of every group of questions, after the name of the group."""
        return [
            (group.name, channel) for group, channel in zip(self.groups, self.channels, strict=True)
        ]

    def get_own_wording(self, name: str) -> str:
        """The private question as it is worded here; empty if it is not."""
        wording = self.wording.get(name)
        return wording.private if wording else ""

    @cached_property
    def unshuffled_guarantee(self) -> Guarantee:
        """What the whole sheet promises by itself.

        The losses of the groups add up for replacing all answers of one person.
        """
        void_reasons = list_void_reasons(self)
        group_losses = zip(self.groups, self.epsilons, strict=True)
        return Guarantee(
            sum_rounded_up(self.epsilons),
            neighbours="replace",
            trust="survey",
            unit="all answers of one person",
            against="everyone, the collector included: it is the sheet itself that is randomized",
            assumptions=(
                DEVICE_ASSUMPTIONS[self.device],
                *([UNRELATED_ASSUMPTION] if self.personal == "own" else []),
                "a person sends one sheet, and the same one when it is sent again",
                "that a person took part at all is not hidden",
            ),
            charges=tuple(Charge(group.name, epsilon) for group, epsilon in group_losses),
            void=tuple(void_reasons),
        ).void_if(schema=self.schema)

    @property
    def sentence(self) -> str:
        """What a respondent may rely on, in one sentence."""
        return format_respondent_sentence(self)

    def to_body(self) -> dict[str, Any]:
        """Plain values for a JSON document, in the canonical form of its digest."""
        from discreet.survey.files import SCHEMA_OPTIONS, make_channel_bodies, make_question_body

        schema = self.schema
        laws_by_question = {law.questions[0]: law for law in self.laws if len(law.questions) == 1}
        shuffled = self.shuffled
        return {
            "title": self.title,
            "introduction": self.introduction,
            "notes": list(self.notes),
            "target": schema.target,
            "personal": self.personal,
            "device": self.device,
            "questions": [make_question_body(self, name, laws_by_question) for name in self.names],
            "joint": [
                {"questions": list(law.questions), "law": list(law.weights)}
                for law in self.laws
                if len(law.questions) > 1
            ],
            "groups": [group.to_body() for group in self.groups],
            **({} if shuffled is None else {"shuffled": shuffled.to_body()}),
            **{name: getattr(schema, name) for name in SCHEMA_OPTIONS[:3]},
            "missing_tokens": list(schema.missing_tokens),
            "inferred": schema.inferred,
            **({} if schema.inference is None else {"inference": schema.inference.to_body()}),
            "channels": make_channel_bodies(self.channels),
        }

    @classmethod
    def from_json(cls, text: str | bytes) -> Questionnaire:
        """Read a questionnaire, hand-written or not; stated channels must be what it says."""
        from discreet.survey.files import QuestionnaireBody, build_questionnaire

        return build_questionnaire(
            load_document(text, "questionnaire", VERSION, QuestionnaireBody, sealed=False)
        )

    @classmethod
    def from_yaml(cls, text: str) -> Questionnaire:
        """Read the same from YAML. yes and no stay words, not true and false."""
        from discreet.files.yaml_text import convert_yaml_to_json

        return cls.from_json(convert_yaml_to_json(text, "questionnaire"))

    @classmethod
    def read(cls, path: str | Path) -> Questionnaire:
        """Read a questionnaire file, YAML if its name says so."""
        from discreet.files.atomic_writing import read_text

        text = read_text(path)
        is_yaml = Path(path).suffix.lower() in (".yaml", ".yml")
        return cls.from_yaml(text) if is_yaml else cls.from_json(text)


def _format_list(names: Sequence[str]) -> str:
    return ", ".join(map(str, names))
