"""What a collection is: what devices, tallies and files need to know of a plan or questionnaire.

A collection asks each person one of its questions (a questionnaire has a single one, whose answer
is the whole sheet) and receives a few integers. :class:`Channel` describes these integers,
:class:`Collection` the document around them.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any, Literal, Protocol, TypeVar

from discreet.arrays import Booleans, Integers
from discreet.documents import Document, parse
from discreet.errors import FormatError
from discreet.privacy import Guarantee
from discreet.randomness import Random
from discreet.schema import Schema
from discreet.shuffling import Shuffle

__all__ = [
    "Channel",
    "Codes",
    "Collection",
    "CollectionDocument",
    "Device",
    "WholeChannel",
    "collection_of",
]

LARGEST = 1 << 62
"""Neither a number in a report nor a sum in a tally goes beyond this, so that none can wrap."""

FEW = 1 << 16
"""Different answers are counted up to this many; beyond, a channel says that there are many."""

Device = Literal["software", "hand", "either"]

KINDS = {
    "plan": ("discreet.local.plan", "Plan"),
    "questionnaire": ("discreet.survey.questionnaire", "Questionnaire"),
}
"""Where the documents of each kind are defined; imported when one is read."""


class Channel(Protocol):
    """What the reports to one question look like and what they add up to."""

    @property
    def name(self) -> str:
        """Short name of the mechanism."""

    @property
    def width(self) -> int:
        """How many integers an answer has."""

    @property
    def furthest(self) -> int:
        """No integer of an answer goes further from 0."""

    @property
    def epsilon(self) -> float:
        """Loss of one answer."""

    @property
    def size(self) -> int | None:
        """How many integers the answers add up to; None where whole answers are counted."""

    @property
    def outputs(self) -> int | None:
        """How many different answers there are; None where they are more than ``FEW``."""

    def faulty(self, matrix: Integers) -> Booleans:
        """Which answers, one per row, no respondent could have sent."""

    def tally(self, matrix: Integers) -> Integers:
        """What valid answers add up to: ``size`` integers."""

    def possible(self, sums: Integers, answers: int) -> bool:
        """Whether so many answers can add up to these sums."""


class WholeChannel(Channel, Protocol):
    """A question whose answers are counted whole: several named numbers, each below its size."""

    @property
    def names(self) -> tuple[str, ...]:
        """What each number answers."""

    @property
    def sizes(self) -> tuple[int, ...]:
        """How many values each number has."""

    @property
    def labels(self) -> tuple[tuple[str, ...], ...]:
        """The values of each number in words; they need not differ."""


class Codes(Protocol):
    """True records as numbers, one row per person: what a device randomizes."""

    def __len__(self) -> int:
        """Number of people."""

    def __getitem__(self, rows: Any) -> Any:
        """The records of some of the people."""


class Collection(Protocol):
    """The public document that reports answer: a ``Plan`` or a ``Questionnaire``."""

    @property
    def kind(self) -> str:
        """``"plan"`` or ``"questionnaire"``."""

    @property
    def noun(self) -> str:
        """What people call its reports: report or sheet."""

    @property
    def digest(self) -> str:
        """SHA-256 of the document; every report names it."""

    @property
    def schema(self) -> Schema:
        """The public description of a record."""

    @property
    def guarantee(self) -> Guarantee:
        """What one person is promised, over all reports they may send."""

    def promised(self, people: int | None = None) -> Guarantee:
        """The same after so many people were counted in one shuffle; None before."""

    @property
    def shuffled(self) -> Shuffle | None:
        """What is promised where an anonymiser shuffles the reports."""

    @property
    def sentence(self) -> str:
        """What a respondent may rely on, in one sentence."""

    @property
    def questions(self) -> Sequence[Channel]:
        """One channel for each question."""

    @property
    def reports(self) -> int:
        """How many reports one person may send."""

    @property
    def assignment(self) -> Literal["draw", "groups"]:
        """Whether people draw their question or are told which one to answer."""

    @property
    def device(self) -> Device:
        """Whether a program randomizes or people themselves, by hand."""

    @property
    def names(self) -> tuple[str, ...]:
        """The columns of a whole record: the features, then the target."""

    def asked(self, question: int) -> tuple[str, ...]:
        """The columns of a record that one question is about."""

    def draw(self, people: int, random: Random) -> Integers:
        """Which question each of some people answers, drawn without looking at a record."""

    def prepared(
        self,
        record: Mapping[str, Any],
        question: int | None = None,
        personal: Mapping[str, Any] | None = None,
        by_hand: bool = False,
    ) -> Codes:
        """One checked record as a device randomizes it; only what one question asks, if given."""

    def encoded(self, columns: Mapping[str, Any]) -> Codes:
        """Columns of many records, checked and as a device randomizes them."""

    def randomized(self, question: int, codes: Codes, random: Random) -> Integers:
        """Randomized answers of many people to one question, one row per person."""

    def to_json(self) -> str:
        """The document as it is published."""

    def canonical(self) -> bytes:
        """The bytes whose SHA-256 is the digest."""


C = TypeVar("C", bound=Collection)


class CollectionDocument(Document):
    """What plans and questionnaires have in common: a promise, which a shuffle may strengthen."""

    shuffled: Shuffle | None

    @property
    @abstractmethod
    def alone(self) -> Guarantee:
        """What one person's reports promise by themselves, however they travel."""

    @property
    def guarantee(self) -> Guarantee:
        """What a respondent is promised, over everything they may send."""
        return self.promised()

    def promised(self, people: int | None = None) -> Guarantee:
        """What is promised after the reports of so many people in one shuffle were counted.

        Parameters
        ----------
        people : int, optional
            None before anyone was asked. Only shuffled collections depend on it.
        """
        return self.alone if self.shuffled is None else self.shuffled.promise(self.alone, people)


def collection_of(text: str | bytes) -> Any:
    """Read a plan or a questionnaire, whichever it is.

    Parameters
    ----------
    text : str or bytes
        The JSON of a plan or of a questionnaire.
    """
    stated = str(parse(text, "collection").get("format")).removeprefix("discreet/")
    if stated not in KINDS:
        raise FormatError(f"this is not a plan or questionnaire: its format says {stated!r}")
    module, name = KINDS[stated]
    return getattr(import_module(module), name).from_json(text)
