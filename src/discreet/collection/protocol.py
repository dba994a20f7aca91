"""Interfaces of a collection: what devices, tallies and files use of a plan or questionnaire.

A collection asks each person one of its questions (a questionnaire has a single one, whose answer
is the whole sheet) and receives a few integers. :class:`Channel` describes these integers,
:class:`Collection` the document around them.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib import import_module
from typing import Any, ClassVar, Literal, Protocol, TypeVar

import numpy as np

from discreet.arrays import Booleans, Integers
from discreet.errors import FormatError
from discreet.files.documents import Document, parse_document
from discreet.privacy.guarantee import Guarantee
from discreet.privacy.shuffling import Shuffle
from discreet.randomness import Random
from discreet.schema.schema import Schema

__all__ = [
    "Channel",
    "Collection",
    "DrawingDevice",
    "EncodedRecords",
    "PersonalSource",
    "WholeAnswerChannel",
    "load_document_class",
    "parse_collection_json",
]

MAX_EXACT_INTEGER = 1 << 62
"""Largest absolute value in a report, and of a sum in a tally, so that int64 never wraps."""

MAX_ENUMERATED_OUTPUTS = 1 << 16
"""Distinct outputs up to which a channel states their number; None above."""

DrawingDevice = Literal["software", "hand", "either"]
PersonalSource = Literal["device", "own"]

DOCUMENT_CLASSES = {
    "plan": ("discreet.local.plan", "Plan"),
    "questionnaire": ("discreet.survey.questionnaire", "Questionnaire"),
}
"""Where the documents of each kind are defined; imported when one is read."""


class Channel(Protocol):
    """Format of the reports to one question, and of their sums."""

    @property
    def name(self) -> str:
        """Short name of the mechanism."""

    @property
    def width(self) -> int:
        """How many integers an answer has."""

    @property
    def max_magnitude(self) -> int:
        """Largest absolute value of an integer of an answer."""

    @property
    def epsilon(self) -> float:
        """Epsilon of one answer."""

    @property
    def size(self) -> int | None:
        """Number of sums of the answers; None where whole answers are counted."""

    @property
    def outputs(self) -> int | None:
        """Number of distinct answers; None if there are more than ``MAX_ENUMERATED_OUTPUTS``."""

    def find_faulty(self, matrix: Integers) -> Booleans:
        """Flag the answers (rows) that no respondent could have sent."""

    def tally(self, matrix: Integers) -> Integers:
        """Sum valid answers to ``size`` integers."""

    def is_possible(self, sums: Integers, answer_count: int) -> bool:
        """Whether this number of answers can add up to these sums."""


@dataclass(frozen=True)
class WholeAnswerChannel:
    """A question whose answers are counted whole: several named numbers, each below its size.

    A :class:`Channel` without sums, so that any predicate over the answers can be estimated later.

    Parameters
    ----------
    names : tuple of str
        What each number answers.
    sizes : tuple of int
        How many values each number has.
    width : int
        How many numbers an answer has.
    labels : tuple of tuples of str
        Labels of the values of each number; they need not differ.
    epsilon : float
        Epsilon of one answer.
    """

    names: tuple[str, ...]
    sizes: tuple[int, ...]
    width: int
    labels: tuple[tuple[str, ...], ...]
    epsilon: float

    name = "sheet"
    size = None

    @property
    def max_magnitude(self) -> int:
        """The largest value of the number that has most."""
        return max(self.sizes) - 1

    @cached_property
    def outputs(self) -> int | None:
        """How many answers differ; None above ``MAX_ENUMERATED_OUTPUTS``."""
        answer_count = math.prod(self.sizes)
        return answer_count if answer_count <= MAX_ENUMERATED_OUTPUTS else None

    def find_faulty(self, matrix: Integers) -> Booleans:
        """Flag the answers (rows) with a number that is not below its size."""
        return np.asarray(((matrix < 0) | (matrix >= np.array(self.sizes))).any(axis=1))

    def tally(self, matrix: Integers) -> Integers:
        """Nothing: answers are counted whole."""
        return np.zeros(0, np.int64)

    def is_possible(self, sums: Integers, answer_count: int) -> bool:
        """There are no sums."""
        return len(sums) == 0


class EncodedRecords(Protocol):
    """Encoded true records, one row per person: the input of the randomization."""

    def __len__(self) -> int:
        """Number of people."""

    def __getitem__(self, rows: Any) -> Any:
        """The records of some of the people."""


class Collection(Document):
    """The public document of a collection: base of ``Plan`` and ``Questionnaire``."""

    noun: ClassVar[str]
    """What respondents call a report: report or sheet."""
    command_group: ClassVar[str]
    """The group of commands about it: local or survey."""
    has_own_wording: ClassVar[bool] = False
    """Whether the document itself may word its questions."""
    has_waves: ClassVar[bool] = False
    """Whether later documents of the same collection may follow from the tallies of earlier."""

    schema: Schema
    """The public description of a record."""
    original: Schema
    """The schema of a record as people know it, before a device projects it."""
    names: tuple[str, ...]
    """The columns of a whole record: the features, then the target."""
    questions: Sequence[Channel]
    """One channel for each question."""
    shuffled: Shuffle | None
    """What is promised where an anonymiser shuffles the reports."""
    reports: int
    """How many reports one person may send."""
    assignment: Literal["draw", "groups"]
    """Whether respondents draw their question or the collector assigns it."""
    device: DrawingDevice
    """Whether a program randomizes or people themselves, by hand."""
    personal: PersonalSource = "device"
    """Whether the device draws the answers to personal questions, or they are the person's own."""
    title: str = ""
    introduction: str = ""

    @property
    @abstractmethod
    def mechanisms(self) -> Sequence[tuple[str, Any]]:
        """Every mechanism that randomizes answers, after what it randomizes."""

    @property
    def judges_models(self) -> bool:
        """Whether every report judges a candidate model by one bit."""
        return False

    @property
    def question_outcomes(self) -> int:
        """Number of equally likely outcomes of drawing a question: one, if there is only one."""
        return 1

    @property
    @abstractmethod
    def sentence(self) -> str:
        """What a respondent may rely on, in one sentence."""

    @property
    @abstractmethod
    def unshuffled_guarantee(self) -> Guarantee:
        """The guarantee of one person's reports without a shuffle."""

    @property
    def guarantee(self) -> Guarantee:
        """What a respondent is promised, over everything they may send."""
        return self.make_guarantee()

    def make_guarantee(self, respondents: int | None = None) -> Guarantee:
        """Return the guarantee after this number of people were counted in one shuffle.

        Parameters
        ----------
        respondents : int, optional
            None before anyone was asked. Only shuffled collections depend on it.
        """
        return (
            self.unshuffled_guarantee
            if self.shuffled is None
            else self.shuffled.apply_to_guarantee(self.unshuffled_guarantee, respondents)
        )

    def get_own_wording(self, name: str) -> str:
        """The words of a question in the document itself; empty if it has none."""
        return ""

    def get_asked_columns(self, question: int) -> tuple[str, ...]:
        """The columns of a record that one question is about: all, if there is only one."""
        return self.names

    def draw_questions(self, respondents: int, random: Random) -> Integers:
        """Draw the question of each respondent, independently of the records.

        Nothing is drawn if there is only one.
        """
        return np.zeros(respondents, np.int64)

    @abstractmethod
    def encode_record(
        self,
        record: Mapping[str, Any],
        question: int | None = None,
        personal: Mapping[str, Any] | None = None,
        by_hand: bool = False,
    ) -> EncodedRecords:
        """Check and encode one record; only the columns of ``question``, if given."""

    @abstractmethod
    def encode_columns(self, columns: Mapping[str, Any]) -> EncodedRecords:
        """Check and encode the columns of many records."""

    @abstractmethod
    def randomize_records(self, question: int, records: Any, random: Random) -> Integers:
        """Randomize the answers of many respondents to one question, one row per person."""


CollectionT = TypeVar("CollectionT", bound=Collection)


def load_document_class(kind: str) -> Any:
    """Load the class of the documents of a kind: ``Plan`` or ``Questionnaire``.

    Parameters
    ----------
    kind : {"plan", "questionnaire"}
    """
    module_name, class_name = DOCUMENT_CLASSES[kind]
    return getattr(import_module(module_name), class_name)


def parse_collection_json(text: str | bytes) -> Any:
    """Parse a plan or a questionnaire, by the format that the document states.

    Parameters
    ----------
    text : str or bytes
        The JSON of a plan or of a questionnaire.
    """
    stated_kind = str(parse_document(text, "collection").get("format")).removeprefix("discreet/")
    if stated_kind not in DOCUMENT_CLASSES:
        raise FormatError(f"this is not a plan or questionnaire: its format says {stated_kind!r}")
    return load_document_class(stated_kind).from_json(text)
