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
from discreet.collection.protocol import CollectionDocument, Device
from discreet.encoding import Bins, Cells
from discreet.errors import PrivacyError, SchemaError
from discreet.losses import total_above
from discreet.mechanisms.laws import Law, joint_law
from discreet.mechanisms.response import Response, Unrelated
from discreet.privacy import Guarantee
from discreet.randomness import Random
from discreet.schema import Categorical, Numeric, Schema, refuse_set
from discreet.shuffled_sheets import SheetBlanket
from discreet.shuffling import AnyBlanket, Blanket, Shuffle
from discreet.survey import device as devices
from discreet.survey.group import Group, Model, channels_of
from discreet.survey.promise import promise_of, relied_on

__all__ = ["Group", "PersonalLaw", "Questionnaire", "Wording"]

VERSION = 1
Personal = Literal["device", "own"]


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
    personal: Personal = "device"
    device: Device = "software"
    wording: Mapping[str, Wording] = field(default_factory=dict)
    title: str = ""
    introduction: str = ""
    notes: Sequence[str] = ()
    shuffled: Shuffle | None = None

    kind: ClassVar[str] = "questionnaire"
    version: ClassVar[int] = VERSION
    noun: ClassVar[str] = "sheet"
    reports: ClassVar[int] = 1
    assignment: ClassVar[Literal["draw"]] = "draw"

    def __post_init__(self) -> None:
        refuse_set("a questionnaire", "groups", self.groups)
        refuse_set("a questionnaire", "laws", self.laws)
        refuse_set("a questionnaire", "notes", self.notes)
        object.__setattr__(self, "groups", tuple(self.groups))
        object.__setattr__(self, "laws", tuple(self.laws))
        object.__setattr__(self, "notes", tuple(self.notes))
        cuts = {name: tuple(map(float, some)) for name, some in self.cuts.items()}
        object.__setattr__(self, "cuts", cuts)
        for name, value, kinds in (
            ("personal", self.personal, Personal),
            ("device", self.device, Device),
        ):
            if value not in get_args(kinds):
                raise SchemaError(f"{name} is {value!r}; write {' or '.join(get_args(kinds))}")
        self._check_names()
        self._check_laws()
        _ = self.channels  # every group must be estimable
        if self.shuffled is not None:
            self.shuffled.check(self.blanket)

    def _check_names(self) -> None:
        asked = [name for group in self.groups for name in group.questions]
        for name in asked:
            if name not in self.names:
                raise SchemaError(f"a group names {name!r}; the questions are {_list(self.names)}")
            if asked.count(name) > 1:
                raise SchemaError(f"{name} is in two groups, or twice in one; keep one")
        lacking = [name for name in self.names if name not in asked]
        if lacking:
            raise SchemaError(f"{_list(lacking)}: in no group; put every question into one")
        for what, names in (("cuts", self.cuts), ("wording", self.wording)):
            for name in names:
                if name not in self.names:
                    raise SchemaError(f"there is {what} for {name!r}, which is not a question")

    def _check_laws(self) -> None:
        mentioned: set[str] = set()
        for law in self.laws:
            title = " + ".join(law.questions)
            for name in law.questions:
                if name not in self.names:
                    raise SchemaError(f"a personal law names {name!r}, which is not a question")
                if name in mentioned:
                    raise SchemaError(f"{name} has two personal laws; keep one")
                mentioned.add(name)
            cells = math.prod(self.sizes[self.place[name]] for name in law.questions)
            if len(law.weights) != cells:
                raise SchemaError(
                    f"{title}: its personal law has {len(law.weights)} weights, the answers need "
                    f"{cells}: {_list(self.cells[law.questions[-1]].labels)}"
                )
            inside = any(set(law.questions) <= set(group.questions) for group in self.groups)
            if self.personal == "device" and not inside:
                raise SchemaError(
                    f"{title}: their personal answers are drawn together but they are in different "
                    "groups, which the device randomizes independently; split the law or join the "
                    "groups"
                )

    @classmethod
    def of(
        cls,
        schema: Schema,
        theta: Any = 0.5,
        groups: Sequence[Sequence[str]] | None = None,
        model: Model = "unrelated",
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
        members = [(*schema.names, schema.target)] if groups is None else [*map(tuple, groups)]
        several = isinstance(theta, (Sequence, np.ndarray)) and not isinstance(theta, str)
        thetas = list(theta) if several else [theta] * len(members)
        if len(thetas) != len(members):
            raise SchemaError(f"{len(thetas)} thetas for {len(members)} groups; give one for each")
        cuts = {
            feature.name: Cells.of(schema, feature.name, bins).edges[1:-1]
            for feature in schema.features
            if isinstance(feature, Numeric)
        }
        made = [Group(m, theta=t, model=model) for m, t in zip(members, thetas, strict=True)]
        return cls(schema, made, laws, cuts)

    @cached_property
    def names(self) -> tuple[str, ...]:
        """All questions in the order of a sheet: the features, then the target."""
        return (*self.schema.names, self.schema.target)

    @cached_property
    def place(self) -> dict[str, int]:
        """Where each question is on a sheet."""
        return {name: k for k, name in enumerate(self.names)}

    @cached_property
    def cells(self) -> dict[str, Cells]:
        """The public answers of every question."""
        schema = self.schema
        found = {}
        for feature in schema.features:
            if isinstance(feature, Numeric) and feature.name not in self.cuts:
                raise SchemaError(
                    f"{feature.name} is a number; write its cuts, so that it has few answers"
                )
            found[feature.name] = Cells.of(schema, feature.name, dict(self.cuts))
        target = Categorical(schema.target, schema.classes, optional=False)
        found[schema.target] = Cells(target, (), schema.missing_tokens)
        return found

    @cached_property
    def sizes(self) -> tuple[int, ...]:
        """Number of answers of each question."""
        return tuple(self.cells[name].size for name in self.names)

    @cached_property
    def all_laws(self) -> tuple[Law, ...]:
        """Laws of the personal answers by their places on a sheet; they cover it exactly once."""
        made = [Law(tuple(self.place[n] for n in law.questions), law.weights) for law in self.laws]
        stated = {place for law in made for place in law.places}
        even = [Law((k,), (1,) * size) for k, size in enumerate(self.sizes) if k not in stated]
        return tuple(sorted([*made, *even], key=lambda law: law.places))

    @cached_property
    def places(self) -> tuple[tuple[int, ...], ...]:
        """Places on a sheet of each group's questions."""
        return tuple(tuple(self.place[n] for n in group.questions) for group in self.groups)

    @cached_property
    def channels(self) -> tuple[Response, ...]:
        """The mechanism of each group."""
        waiting = [group for group in self.groups if group.epsilon == "shuffled"]
        if not waiting:
            return self._channels(self.groups)
        if self.shuffled is None:
            raise PrivacyError(
                f"group {waiting[0].name}: epsilon is 'shuffled', but nothing says how the sheets "
                "are shuffled; write shuffled: with epsilon, delta and respondents"
            )

        def made(local: float) -> tuple[tuple[Response, ...], AnyBlanket]:
            others = [group for group in self.groups if group not in waiting]
            fixed = sum(one.epsilon_exact() for one in self._channels(others))
            if not fixed < local:
                raise PrivacyError(
                    "shuffled: the groups with a theta of their own leave nothing to the others"
                )
            each = math.floor(1e6 * (local - fixed) / len(waiting)) / 1e6
            channels = self._channels(
                [replace(one, epsilon=each) if one in waiting else one for one in self.groups]
            )
            return channels, self._blanket(channels)

        return self.shuffled.best(made)

    def with_channels(self, channels: Sequence[Response]) -> Self:
        """The same with other channels, which must keep what the shuffle promises.

        Parameters
        ----------
        channels : sequence of Response
            One for each group.
        """
        made = copy.copy(self)
        vars(made).clear()
        vars(made).update({one.name: getattr(self, one.name) for one in fields(self)})
        vars(made)["channels"] = tuple(channels)
        if made.shuffled is not None:
            made.shuffled.check(made.blanket)
        return made

    def _channels(self, groups: Sequence[Group]) -> tuple[Response, ...]:
        sizes, laws = [], []
        for group in groups:
            places = tuple(self.place[name] for name in group.questions)
            inside = {place: k for k, place in enumerate(places)}
            some = [law.onto(inside, self.sizes) for law in self.all_laws]
            sizes.append([self.sizes[place] for place in places])
            laws.append([law for law in some if law is not None])
        return channels_of(groups, sizes, laws, self.personal == "own")

    @cached_property
    def blanket(self) -> AnyBlanket:
        """The blanket of a sheet: the part of its distribution that all answers share."""
        return self._blanket(self.channels)

    def _blanket(self, channels: Sequence[Response]) -> AnyBlanket:
        epsilon = sum(self._epsilon(channel) for channel in channels)
        if math.isinf(epsilon):
            raise PrivacyError(
                "shuffled: these sheets have no epsilon by themselves, so nothing can be promised "
                "of them shuffled either; 'discreet survey check' says why"
            )
        (first, *others) = channels
        if others or not isinstance(first, Unrelated) or not first.even:
            return self._sheet_blanket(channels) or Blanket.of_epsilon(epsilon)
        sent, cells = float(1 - first.theta_exact), math.prod(first.sizes)  # direct encoding
        return Blanket(math.exp(epsilon), sent / cells, 0.0, sent * (1 - 2 / cells))

    def _sheet_blanket(self, channels: Sequence[Response]) -> SheetBlanket | None:
        """The exact blanket of sheets whose groups are made up independently; None otherwise."""
        groups = []
        for channel in channels:
            if self.spanning or not isinstance(channel, Unrelated):
                return None
            least, second = channel.two_least
            if least == 1:  # one answer only: every sheet is the same
                continue
            groups.append((float(channel.theta_exact), float(least), float(second)))
        return SheetBlanket(tuple(groups)) if groups else None

    @cached_property
    def spanning(self) -> bool:
        """Whether personal answers of different groups depend on each other."""
        return any(
            not any(set(law.places) <= set(places) for places in self.places)
            for law in self.all_laws
        )

    def law(self, names: Sequence[str]) -> Floats:
        """P(personal answers to these questions), one axis per question."""
        return joint_law(self.all_laws, self.sizes, [self.place[name] for name in names])

    def group_of(self, name: str) -> int:
        """Number of the group that a question is in."""
        if name not in self.place:
            raise SchemaError(f"there is no question {name!r}; there are {_list(self.names)}")
        return next(k for k, group in enumerate(self.groups) if name in group.questions)

    @cached_property
    def epsilons(self) -> tuple[float, ...]:
        """Local-DP loss of each group; infinite where the personal answers are people's own."""
        return tuple(self._epsilon(channel) for channel in self.channels)

    def _epsilon(self, channel: Response) -> float:
        known = self.personal == "own" and isinstance(channel, Unrelated)
        return math.inf if known else channel.epsilon_exact()

    @cached_property
    def questions(self) -> tuple[devices.SheetChannel]:
        """The one question of this collection: the whole sheet."""
        labels = tuple(self.cells[name].labels for name in self.names)
        return (devices.SheetChannel(self.names, self.sizes, labels, total_above(self.epsilons)),)

    def asked(self, question: int) -> tuple[str, ...]:
        """All questions: a sheet is answered whole."""
        return self.names

    def draw(self, people: int, random: Random) -> Integers:
        """There is one question; nothing is drawn."""
        return np.zeros(people, np.int64)

    def prepared(
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
        return devices.prepared(self, record, personal, by_hand)

    def encoded(self, columns: Mapping[str, Any]) -> Integers:
        """Columns of true answers as numbers, one row per person, in the order of a sheet."""
        return devices.encoded(self, columns)

    def randomized(self, question: int, codes: Any, random: Random) -> Integers:
        """Randomized sheets of many people, one row per person."""
        return devices.randomized(self, np.asarray(codes), random)

    @cached_property
    def alone(self) -> Guarantee:
        """What the whole sheet promises by itself."""
        return promise_of(self)

    @property
    def sentence(self) -> str:
        """What a respondent may rely on, in one sentence."""
        return relied_on(self)

    def to_body(self) -> dict[str, Any]:
        """Plain values for a JSON document."""
        from discreet.survey.files import body_of

        return body_of(self)

    @classmethod
    def from_json(cls, text: str | bytes) -> Questionnaire:
        """Read a questionnaire, hand-written or not; stated channels must be what it says."""
        from discreet.survey.files import questionnaire_of

        return questionnaire_of(text)

    @classmethod
    def from_yaml(cls, text: str) -> Questionnaire:
        """Read the same from YAML. yes and no stay words, not true and false."""
        from discreet.documents import json_of_yaml
        from discreet.survey.files import questionnaire_of

        return questionnaire_of(json_of_yaml(text, "questionnaire"))

    @classmethod
    def read(cls, path: str | Path) -> Questionnaire:
        """Read a questionnaire file, YAML if its name says so."""
        from discreet.documents import read_text

        text = read_text(path)
        yaml = Path(path).suffix.lower() in (".yaml", ".yml")
        return cls.from_yaml(text) if yaml else cls.from_json(text)


def _list(names: Sequence[str]) -> str:
    return ", ".join(map(str, names))
