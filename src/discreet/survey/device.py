"""What a device does with a person's answers: check, encode and randomize them."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from discreet.arrays import Integers
from discreet.collection.protocol import Collection
from discreet.errors import SchemaError
from discreet.mechanisms.response import Response, Unrelated
from discreet.randomness import Random
from discreet.schema.cells import Cells, encode_classes, respondent_error_context
from discreet.schema.schema import Categorical, Numeric

if TYPE_CHECKING:
    from discreet.survey.group import Group

__all__ = ["SheetRandomizer"]


class SheetRandomizer(Collection):
    """Base of questionnaires: what a device does with the answers of a person."""

    groups: Sequence[Group]
    cuts: Mapping[str, tuple[float, ...]]
    place: Mapping[str, int]
    """Where each question is on a sheet."""

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
    def places(self) -> tuple[tuple[int, ...], ...]:
        """Places on a sheet of each group's questions."""
        return tuple(tuple(self.place[name] for name in group.questions) for group in self.groups)

    @property
    @abstractmethod
    def channels(self) -> Sequence[Response]:
        """The mechanism of each group."""

    def encode_record(
        self,
        record: Mapping[str, Any],
        question: int | None = None,
        personal: Mapping[str, Any] | None = None,
        by_hand: bool = False,
    ) -> Integers:
        """Check and encode answers as one row; the person's own personal answers follow them.

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
        answer_row = self._encode_row(record, self.names)
        personal_names = [
            name for group in self.groups if group.model == "unrelated" for name in group.questions
        ]
        if by_hand:
            if personal is not None:
                raise SchemaError("by hand the personal answers are drawn before: leave them out")
            return answer_row
        if self.personal == "own" and personal_names:
            if personal is None:
                raise SchemaError(
                    "the personal answers of this survey are the respondent's own: pass personal="
                )
            return np.hstack([answer_row, self._encode_row(personal, personal_names)])
        if personal is not None:
            raise SchemaError(
                "in this survey the device draws the personal answers: leave them out"
            )
        return answer_row

    def _encode_row(self, answers: Mapping[str, Any], expected_names: Sequence[str]) -> Integers:
        """Answers as one row of cell numbers, or an error that names what does not fit."""
        unknown_names = sorted(str(name) for name in answers.keys() - set(expected_names))
        if unknown_names:
            raise SchemaError(
                f"there is an answer to {', '.join(unknown_names)}, which is not asked for; remove "
                "it"
            )
        answer_row = np.zeros((1, len(self.names)), np.int64)
        for name in expected_names:
            cells = self.cells[name]
            if name not in answers and cells.missing_index is None:
                raise SchemaError(f"{name}: there is no answer; add one")
            value = answers.get(name)
            is_label = isinstance(cells.feature, Numeric) and value in cells.labels  # "1 to 3"
            if is_label and cells.labels.count(value) > 1:
                raise SchemaError(
                    f"{name}: {value!r} names several answers; write the number itself"
                )
            with respondent_error_context():
                cell_index = cells.labels.index(value) if is_label else cells.encode_value(value)
            answer_row[0, self.place[name]] = cell_index
        return answer_row

    def encode_columns(self, columns: Mapping[str, Any]) -> Integers:
        """Encode columns of true answers, one row per person, in the order of a sheet."""
        schema = self.schema
        code_columns = [self.cells[name].encode_column(columns[name]) for name in schema.names]
        code_columns.append(encode_classes(schema, columns[schema.target]))
        return np.column_stack(code_columns).astype(np.int64)

    def randomize_records(self, question: int, records: Any, random: Random) -> Integers:
        """Randomize the sheets of many people at once: what one device does, vectorised.

        Group after group: one coin per person, then the personal answers from the law, drawn
        whether or not they are needed. Where ``records`` has twice as many columns as there are
        questions, the second half holds the people's own personal answers, and nothing is drawn
        for them.
        """
        answers, question_count = np.asarray(records), len(self.names)
        private_answers, personal_answers = answers[:, :question_count], answers[:, question_count:]
        sent_answers = np.empty_like(private_answers)
        for channel, group_places in zip(self.channels, self.places, strict=True):
            own_answers = None
            if isinstance(channel, Unrelated) and personal_answers.size:
                own_answers = personal_answers[:, group_places]
            sent_answers[:, group_places] = channel.perturb(
                private_answers[:, group_places], random, own_answers
            )
        return sent_answers
