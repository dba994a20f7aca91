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
from typing import Any, ClassVar, Literal, Self, get_args

import numpy as np

from discreet.arrays import Floats, Integers
from discreet.collection.protocol import CollectionDocument, DrawingDevice
from discreet.errors import PrivacyError, SchemaError
from discreet.mechanisms.laws import AnswerLaw, compute_joint_law
from discreet.mechanisms.response import Response, Unrelated
from discreet.privacy.guarantee import Guarantee
from discreet.privacy.rounding import sum_rounded_up
from discreet.privacy.shuffled_sheets import SheetBlanket
from discreet.privacy.shuffling import AnyBlanket, Blanket, Shuffle
from discreet.randomness import Random
from discreet.schema.cells import Bins, Cells
from discreet.schema.schema import Categorical, Numeric, Schema, refuse_set
from discreet.survey import device as devices
from discreet.survey.group import Group, ResponseModel, make_channels
from discreet.survey.promise import format_respondent_sentence, make_guarantee

__all__ = ["Group", "PersonalLaw", "Questionnaire", "Wording"]

VERSION = 1
PersonalSource = Literal["device", "own"]


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
class Questionnaire(CollectionDocument):
    """Private questions in groups, each group randomized by itself.

    A :class:`~discreet.collection.protocol.Collection` with a single question, whose answer is the
    whole sheet.

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

    kind: ClassVar[str] = "questionnaire"
    version: ClassVar[int] = VERSION
    noun: ClassVar[str] = "sheet"
    reports: ClassVar[int] = 1
    has_waves: ClassVar[bool] = False
    assignment: ClassVar[Literal["draw"]] = "draw"

    def __post_init__(self) -> None:
        refuse_set("a questionnaire", "groups", self.groups)
        refuse_set("a questionnaire", "laws", self.laws)
        refuse_set("a questionnaire", "notes", self.notes)
        object.__setattr__(self, "groups", tuple(self.groups))
        object.__setattr__(self, "laws", tuple(self.laws))
        object.__setattr__(self, "notes", tuple(self.notes))
        cuts = {name: tuple(map(float, cut_points)) for name, cut_points in self.cuts.items()}
        object.__setattr__(self, "cuts", cuts)
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
    def names(self) -> tuple[str, ...]:
        """All questions in the order of a sheet: the features, then the target."""
        return (*self.schema.names, self.schema.target)

    @cached_property
    def place(self) -> dict[str, int]:
        """Where each question is on a sheet."""
        return {name: position for position, name in enumerate(self.names)}

    @cached_property
    def cells(self) -> dict[str, Cells]:
        """The public answers of every question."""
        schema = self.schema
        cells_by_name = {}
        for feature in schema.features:
            if isinstance(feature, Numeric) and feature.name not in self.cuts:
                raise SchemaError(
                    f"{feature.name} is a number; write its cuts, so that it has few answers"
                )
            cells_by_name[feature.name] = Cells.from_schema(schema, feature.name, dict(self.cuts))
        target = Categorical(schema.target, schema.classes, optional=False)
        cells_by_name[schema.target] = Cells(target, (), schema.missing_tokens)
        return cells_by_name

    @cached_property
    def sizes(self) -> tuple[int, ...]:
        """Number of answers of each question."""
        return tuple(self.cells[name].size for name in self.names)

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
    def places(self) -> tuple[tuple[int, ...], ...]:
        """Places on a sheet of each group's questions."""
        return tuple(tuple(self.place[name] for name in group.questions) for group in self.groups)

    @cached_property
    def channels(self) -> tuple[Response, ...]:
        """The mechanism of each group."""
        shuffled_groups = [group for group in self.groups if group.epsilon == "shuffled"]
        if not shuffled_groups:
            return self._make_channels(self.groups)
        if self.shuffled is None:
            raise PrivacyError(
                f"group {shuffled_groups[0].name}: epsilon is 'shuffled', but nothing says how "
                "the sheets are shuffled; write shuffled: with epsilon, delta and respondents"
            )

        def make_candidate(local_epsilon: float) -> tuple[tuple[Response, ...], AnyBlanket]:
            fixed_groups = [group for group in self.groups if group not in shuffled_groups]
            fixed_epsilon = sum(
                channel.compute_exact_epsilon() for channel in self._make_channels(fixed_groups)
            )
            if not fixed_epsilon < local_epsilon:
                raise PrivacyError(
                    "shuffled: the groups with a theta of their own leave nothing to the others"
                )
            group_epsilon = (
                math.floor(1e6 * (local_epsilon - fixed_epsilon) / len(shuffled_groups)) / 1e6
            )
            channels = self._make_channels(
                [
                    replace(group, epsilon=group_epsilon) if group in shuffled_groups else group
                    for group in self.groups
                ]
            )
            return channels, self._compute_blanket(channels)

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

    def _make_channels(self, groups: Sequence[Group]) -> tuple[Response, ...]:
        sizes, laws = [], []
        for group in groups:
            group_places = tuple(self.place[name] for name in group.questions)
            index_by_place = {place: index for index, place in enumerate(group_places)}
            group_laws = [law.project_onto(index_by_place, self.sizes) for law in self.all_laws]
            sizes.append([self.sizes[place] for place in group_places])
            laws.append([law for law in group_laws if law is not None])
        return make_channels(groups, sizes, laws, self.personal == "own")

    @cached_property
    def blanket(self) -> AnyBlanket:
        """The blanket of a sheet: the part of its distribution that all answers share."""
        return self._compute_blanket(self.channels)

    def _compute_blanket(self, channels: Sequence[Response]) -> AnyBlanket:
        epsilon = sum(self._compute_channel_epsilon(channel) for channel in channels)
        if math.isinf(epsilon):
            raise PrivacyError(
                "shuffled: these sheets have no epsilon by themselves, so nothing can be promised "
                "of them shuffled either; 'discreet survey check' says why"
            )
        (first_channel, *other_channels) = channels
        if (
            other_channels
            or not isinstance(first_channel, Unrelated)
            or not first_channel.is_uniform
        ):
            return self._compute_sheet_blanket(channels) or Blanket.from_epsilon(epsilon)
        personal_share = float(1 - first_channel.theta_exact)
        cell_count = math.prod(first_channel.sizes)  # direct encoding
        return Blanket(
            math.exp(epsilon),
            personal_share / cell_count,
            0.0,
            personal_share * (1 - 2 / cell_count),
        )

    def _compute_sheet_blanket(self, channels: Sequence[Response]) -> SheetBlanket | None:
        """The exact blanket of sheets whose groups are made up independently; None otherwise."""
        group_masses = []
        for channel in channels:
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
        return tuple(self._compute_channel_epsilon(channel) for channel in self.channels)

    def _compute_channel_epsilon(self, channel: Response) -> float:
        is_known = self.personal == "own" and isinstance(channel, Unrelated)
        return math.inf if is_known else channel.compute_exact_epsilon()

    @cached_property
    def questions(self) -> tuple[devices.SheetChannel]:
        """The one question of this collection: the whole sheet."""
        labels = tuple(self.cells[name].labels for name in self.names)
        return (
            devices.SheetChannel(self.names, self.sizes, labels, sum_rounded_up(self.epsilons)),
        )

    @property
    def question_outcomes(self) -> int:
        """One: nobody draws a question, because a sheet is answered whole."""
        return 1

    @property
    def mechanisms(self) -> list[tuple[str, Any]]:
        """The channel of every group of questions, after the name of the group."""
        return [
            (group.name, channel) for group, channel in zip(self.groups, self.channels, strict=True)
        ]

    def get_asked_columns(self, question: int) -> tuple[str, ...]:
        """All questions: a sheet is answered whole."""
        return self.names

    def draw_questions(self, people: int, random: Random) -> Integers:
        """There is one question; nothing is drawn."""
        return np.zeros(people, np.int64)

    def encode_record(
        self,
        record: Mapping[str, Any],
        question: int | None = None,
        personal: Mapping[str, Any] | None = None,
        by_hand: bool = False,
    ) -> Integers:
        """One person's checked answers as a device randomizes them.

        Parameters
        ----------
        record : mapping of question to answer
            The true answers to all private questions; by hand, what was ticked in the end.
        question : int, optional
            There is only question 0, the whole sheet.
        personal : mapping of question to answer, optional
            The answers to the paired personal questions, where they are the person's own.
        by_hand : bool, default False
        """
        return devices.encode_record(self, record, personal, by_hand)

    def encode_columns(self, columns: Mapping[str, Any]) -> Integers:
        """Columns of true answers as numbers, one row per person, in the order of a sheet."""
        return devices.encode_columns(self, columns)

    def randomize_records(self, question: int, codes: Any, random: Random) -> Integers:
        """Randomized sheets of many people, one row per person."""
        return devices.randomize_records(self, np.asarray(codes), random)

    @cached_property
    def unshuffled_guarantee(self) -> Guarantee:
        """What the whole sheet promises by itself."""
        return make_guarantee(self)

    @property
    def sentence(self) -> str:
        """What a respondent may rely on, in one sentence."""
        return format_respondent_sentence(self)

    def to_body(self) -> dict[str, Any]:
        """Plain values for a JSON document."""
        from discreet.survey.files import make_questionnaire_body

        return make_questionnaire_body(self)

    @classmethod
    def from_json(cls, text: str | bytes) -> Questionnaire:
        """Read a questionnaire, hand-written or not; stated channels must be what it says."""
        from discreet.survey.files import parse_questionnaire

        return parse_questionnaire(text)

    @classmethod
    def from_yaml(cls, text: str) -> Questionnaire:
        """Read the same from YAML. yes and no stay words, not true and false."""
        from discreet.files.yaml_text import convert_yaml_to_json
        from discreet.survey.files import parse_questionnaire

        return parse_questionnaire(convert_yaml_to_json(text, "questionnaire"))

    @classmethod
    def read(cls, path: str | Path) -> Questionnaire:
        """Read a questionnaire file, YAML if its name says so."""
        from discreet.files.atomic_writing import read_text

        text = read_text(path)
        is_yaml = Path(path).suffix.lower() in (".yaml", ".yml")
        return cls.from_yaml(text) if is_yaml else cls.from_json(text)


def _format_list(names: Sequence[str]) -> str:
    return ", ".join(map(str, names))
