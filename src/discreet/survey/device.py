"""What a device does with a person's answers: check, encode and randomize them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from discreet.arrays import Booleans, Integers
from discreet.collection.protocol import FEW
from discreet.encoding import class_codes, own_answer
from discreet.errors import SchemaError
from discreet.mechanisms.response import Unrelated
from discreet.randomness import Random
from discreet.schema import Numeric

if TYPE_CHECKING:
    from discreet.survey.questionnaire import Questionnaire

__all__ = ["SheetChannel", "encoded", "prepared", "randomized"]


@dataclass(frozen=True)
class SheetChannel:
    """The one question of a questionnaire, whose answer is the whole sheet.

    A :class:`~discreet.collection.protocol.WholeChannel`: sheets are counted whole, so that any
    predicate over the answers can be estimated later.
    """

    names: tuple[str, ...]
    sizes: tuple[int, ...]
    labels: tuple[tuple[str, ...], ...]
    epsilon: float

    name = "sheet"
    size = None

    @property
    def width(self) -> int:
        """Numbers on a sheet."""
        return len(self.sizes)

    @property
    def furthest(self) -> int:
        """The last answer of the question that has most."""
        return max(self.sizes) - 1

    @cached_property
    def outputs(self) -> int | None:
        """How many different sheets there are; None where they are more than ``FEW``."""
        found = math.prod(self.sizes)
        return found if found <= FEW else None

    def faulty(self, matrix: Integers) -> Booleans:
        """Which sheets hold an answer that is not one of the public ones."""
        return np.asarray(((matrix < 0) | (matrix >= np.array(self.sizes))).any(axis=1))

    def tally(self, matrix: Integers) -> Integers:
        """Nothing: sheets are counted whole."""
        return np.zeros(0, np.int64)

    def possible(self, sums: Integers, answers: int) -> bool:
        """There are no sums."""
        return len(sums) == 0


def prepared(
    questionnaire: Questionnaire,
    record: Mapping[str, Any],
    personal: Mapping[str, Any] | None,
    by_hand: bool,
) -> Integers:
    """Encode checked answers as one row; the person's own personal answers follow them."""
    cells = _row(questionnaire, record)
    asked = [n for g in questionnaire.groups if g.model == "unrelated" for n in g.questions]
    if by_hand:
        if personal is not None:
            raise SchemaError("by hand the personal answers are drawn before: leave them out")
        return cells
    if questionnaire.personal == "own" and asked:
        if personal is None:
            raise SchemaError(
                "the personal answers of this survey are the respondent's own: pass personal="
            )
        return np.hstack([cells, _row(questionnaire, personal, asked)])
    if personal is not None:
        raise SchemaError("in this survey the device draws the personal answers: leave them out")
    return cells


def _row(
    questionnaire: Questionnaire, answers: Mapping[str, Any], asked: Sequence[str] | None = None
) -> Integers:
    """Answers as one row of cell numbers, or an error that names what does not fit."""
    asked = questionnaire.names if asked is None else asked
    unknown = sorted(str(name) for name in answers.keys() - set(asked))
    if unknown:
        raise SchemaError(
            f"there is an answer to {', '.join(unknown)}, which is not asked for; remove it"
        )
    row = np.zeros((1, len(questionnaire.names)), np.int64)
    for name in asked:
        cells = questionnaire.cells[name]
        if name not in answers and cells.missing is None:
            raise SchemaError(f"{name}: there is no answer; add one")
        value = answers.get(name)
        clicked = isinstance(cells.feature, Numeric) and value in cells.labels  # "1 to 3"
        if clicked and cells.labels.count(value) > 1:
            raise SchemaError(f"{name}: {value!r} names several answers; write the number itself")
        with own_answer():
            cell = cells.labels.index(value) if clicked else cells.index(value)
        row[0, questionnaire.place[name]] = cell
    return row


def encoded(questionnaire: Questionnaire, columns: Mapping[str, Any]) -> Integers:
    """Columns of true answers as cell numbers, one row per person, in the order of a sheet."""
    schema = questionnaire.schema
    codes = [questionnaire.cells[name].column(columns[name]) for name in schema.names]
    codes.append(class_codes(schema, columns[schema.target]))
    return np.column_stack(codes).astype(np.int64)


def randomized(questionnaire: Questionnaire, answers: Integers, random: Random) -> Integers:
    """Randomized sheets of many people at once: what one device does, vectorised.

    Group after group: one coin per person, then the personal answers from the law, drawn whether
    or not they are needed. Where ``answers`` has twice as many columns as there are questions, the
    second half holds the people's own personal answers, and nothing is drawn for them.
    """
    width = len(questionnaire.names)
    private, personal = answers[:, :width], answers[:, width:]
    sent = np.empty_like(private)
    for channel, places in zip(questionnaire.channels, questionnaire.places, strict=True):
        own = None
        if isinstance(channel, Unrelated) and personal.size:
            own = personal[:, places]
        sent[:, places] = channel.perturb(private[:, places], random, own)
    return sent
