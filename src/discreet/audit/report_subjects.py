"""Subjects that send reports: plans, questionnaires and the mechanisms in them.

Everything that runs is a small frozen value, so that it can be sent to another process.
"""

from __future__ import annotations

import inspect
import math
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import chain, islice, zip_longest
from typing import Any

import numpy as np

from discreet.audit.neighbours import (
    Record,
    iter_records,
    list_representative_values,
    make_corner_record,
)
from discreet.audit.subject import EnumerableCheck, Pair, Subject
from discreet.audit.table_subjects import NOISES, make_noise_subject
from discreet.collection.protocol import Collection
from discreet.collection.respondent import MemoryStore, Respondent
from discreet.errors import PrivacyError, SchemaError
from discreet.mechanisms.frequency import ORACLES, FrequencyOracle
from discreet.mechanisms.mean import MEAN_ORACLES
from discreet.mechanisms.response import RESPONSE_MODELS, Response
from discreet.privacy.guarantee import format_rounded_up
from discreet.randomness import Random
from discreet.schema.schema import Schema

__all__ = ["make_collection_subject", "make_mechanism_subject", "make_oracle_subject"]

MAX_TRIED = 400
"""Largest number of records, values, cells or pairs that are tried; the first ones of more."""
MAX_DEVICE_PATHS = 1 << 14
"""Largest number of device paths that are enumerated; above, questions are enumerated singly."""


@dataclass(frozen=True)
class RespondentDevice:
    """One person's device: a record to the text that leaves it.

    Parameters
    ----------
    collection : Plan or Questionnaire
    group : int, optional
        The question, where the collector assigns it.
    """

    collection: Any
    group: int | None = None

    def __call__(self, record: Record, random: Random) -> Any:
        """All reports of this person, ids and all: where choices are walked through, the 16 bytes
        behind an id are zero, so that an id differs only if it is made of something else.
        """
        store = MemoryStore()
        respondent = Respondent(self.collection, store, self.group, random_state=random)
        sent_reports = [respondent.report(record)]
        sent_reports += [
            respondent.report(record, again=True) for _ in range(self.collection.reports - 1)
        ]
        return "".join(report.to_json() for report in sent_reports)


@dataclass(frozen=True)
class AssignedDevice:
    """One person's device in a collection whose collector assigns the questions.

    Parameters
    ----------
    collection : Plan or Questionnaire
    """

    collection: Any

    def __call__(self, question_and_record: tuple[int, Record], random: Random) -> Any:
        """All reports of the person with this question and this record."""
        question, record = question_and_record
        return RespondentDevice(self.collection, question)(record, random)


def describe_report(sent_text: str) -> str:
    """Describe what a device sent, without the constant parts."""
    sent_answers = re.findall(r'"question": (\d+), "value": (\[[^]]*\])', sent_text)
    return (
        " and ".join(f"question {question}: {value}" for question, value in sent_answers)
        or sent_text[:80]
    )


def make_collection_subject(collection: Collection) -> Subject:
    """Make the subject of a plan or a questionnaire: what one device sends.

    For a shuffled collection the guarantee of a single report is tested; the amplification depends
    on other people's reports (:mod:`discreet.privacy.shuffling` computes it).

    Parameters
    ----------
    collection : Plan or Questionnaire
    """
    guarantee = collection.guarantee
    if math.isinf(guarantee.epsilon):
        raise PrivacyError(
            f"this {collection.kind} promises no epsilon, so there is nothing to audit: "
            f"{'; '.join(guarantee.void_reasons)}"
        )
    is_assigned = collection.assignment == "groups"
    is_shuffled = guarantee.unshuffled is not None
    record_pairs = _iter_record_pairs(collection, is_assigned)
    pairs = list(islice(record_pairs, MAX_TRIED))
    omitted_count = sum(1 for _ in record_pairs)
    coverage_note = f", {MAX_TRIED} of {MAX_TRIED + omitted_count} pairs" if omitted_count else ""
    return Subject(
        f"{collection.kind} {collection.digest[7:19]}"
        + ", a single report" * is_shuffled
        + coverage_note,
        guarantee.unshuffled_epsilon,
        0.0 if is_shuffled else guarantee.delta,
        AssignedDevice(collection) if is_assigned else RespondentDevice(collection),
        pairs,
        _make_device_checks(collection, is_assigned) or _make_mechanism_checks(collection),
    )


def _get_record_schema(collection: Any) -> Schema:
    schema: Schema = collection.original
    return schema


def _iter_record_pairs(collection: Any, is_assigned: bool) -> Iterator[Pair]:
    """Iterate over pairs: the first value of every feature against the last, and single changes.

    A device may give away a value that is neither the first nor the last, or that something is
    missing. Where questions are assigned, a value is tried with every question about it.
    """
    schema = _get_record_schema(collection)
    low_record, high_record = make_corner_record(schema, False), make_corner_record(schema, True)
    asked_columns = [
        collection.get_asked_columns(question) for question in range(len(collection.questions))
    ]

    def make_pair(question: int, words: str, record: Record) -> Pair:
        question_text = f" of question {question}" if is_assigned else ""
        pair_inputs = [
            (question, record_input) if is_assigned else record_input
            for record_input in (low_record, record)
        ]
        return Pair(f"the first value of everything{question_text}", words, *pair_inputs)

    for question in range(len(asked_columns) if is_assigned else 1):
        yield make_pair(question, "the last", high_record)
    bin_edges = _get_edges(collection)
    named_values = [
        [
            (name, value)
            for value in reversed(list_representative_values(schema, name, bin_edges.get(name, ())))
        ]
        for name in schema.names
    ]
    named_values.append([(schema.target, value) for value in reversed(schema.classes)])
    for name, value in filter(None, chain.from_iterable(zip_longest(*named_values))):
        if value != low_record[name]:
            asking_questions = [
                question
                for question, names in enumerate(asked_columns)
                if is_assigned and name in names
            ]
            pair_words = f"{name} {'missing' if value is None else value}"
            for question in asking_questions or [0]:
                yield make_pair(question, pair_words, {**low_record, name: value})


def _get_edges(collection: Any) -> dict[str, Any]:
    return {name: cells.edges for name, cells in collection.cells.items() if cells.edges}


def _make_device_checks(collection: Any, is_assigned: bool) -> list[EnumerableCheck]:
    """Checks of every record and every path through the device, if these are few."""
    record_schema = _get_record_schema(collection)
    bin_edges = _get_edges(collection)
    all_records = list(
        islice(iter_records(record_schema, record_schema.names, bin_edges), MAX_TRIED + 1)
    )
    max_outputs = max(question.outputs or math.inf for question in collection.questions)
    path_count = collection.question_outcomes * max_outputs**collection.reports
    if len(all_records) > MAX_TRIED or len(all_records) * path_count > MAX_DEVICE_PATHS:
        return []
    inputs = [
        (", ".join(f"{name} {value}" for name, value in record.items()), record)
        for record in all_records
    ]
    groups = range(len(collection.questions)) if is_assigned else [None]
    return [
        EnumerableCheck(
            "every text that leaves the device of every person"
            + f" of group {group}" * (group_number > 0),
            inputs,
            RespondentDevice(collection, group),
            collection.guarantee.unshuffled_epsilon,
            describe_report,
        )
        for group_number, group in enumerate(groups)
    ]


def _make_mechanism_checks(collection: Any) -> list[EnumerableCheck]:
    """Checks of every answer to every question, for the mechanisms alone."""
    note = "of the mechanisms alone; the device around them is compared by samples"
    return [
        replace(walk, check=f"{name}: {walk.check}", note=note)
        for name, mechanism in collection.mechanisms
        for walk in make_oracle_subject(mechanism).checks
    ]


@dataclass(frozen=True)
class MechanismSampler:
    """A mechanism alone: one value to its serialised report."""

    mechanism: Any

    def __call__(self, value: Any, random: Random) -> tuple[int, ...]:
        """The report's integers."""
        report = self.mechanism.perturb([value], random)
        if isinstance(self.mechanism, FrequencyOracle):
            report = self.mechanism.encode(report)
        return tuple(int(integer) for integer in report[0])


def make_mechanism_subject(name: str, epsilon: float, size: int = 2, **parameters: Any) -> Subject:
    """Make the subject of a mechanism by its name.

    Parameters
    ----------
    name : str
        A frequency oracle, a mean oracle, a survey model, ``"discrete-laplace"`` or
        ``"discrete-gaussian"``.
    epsilon : float
    size : int
        Values, numbers or answers; ignored by mechanisms for a single number.
    **parameters
        Further parameters of the mechanism.
    """
    if name in NOISES:
        return make_noise_subject(name, epsilon, **parameters)
    if name in RESPONSE_MODELS:
        model_class: Any = RESPONSE_MODELS[name]
        return make_oracle_subject(model_class.from_epsilon(epsilon, (2,) * size, **parameters))
    mechanism_class: Any = {**ORACLES, **MEAN_ORACLES}.get(name)
    if mechanism_class is None:
        known_names = ", ".join([*ORACLES, *MEAN_ORACLES, *RESPONSE_MODELS, *NOISES])
        raise SchemaError(f"there is no mechanism {name!r}; the known ones are {known_names}")
    if "size" in inspect.signature(mechanism_class).parameters:
        parameters = {"size": size, **parameters}
    return make_oracle_subject(mechanism_class(epsilon, **parameters))


def make_oracle_subject(mechanism: Any) -> Subject:
    """Make the subject of a frequency oracle, mean oracle or survey model.

    Parameters
    ----------
    mechanism : FrequencyOracle, MeanOracle or Response
    """
    if isinstance(mechanism, FrequencyOracle):
        values: list[Any] = list(range(min(mechanism.size, MAX_TRIED)))
        channel_rows: Callable[[], Any] = mechanism.channel
    elif isinstance(mechanism, Response):
        values, channel_rows = list(islice(mechanism.outputs(), MAX_TRIED)), mechanism.channel
    else:
        end_units = [-1, 1] if mechanism.size > 1 else [-1, 0, 1]
        end_levels = [mechanism.resolution * unit for unit in end_units]
        is_small = mechanism.size <= 8
        input_points = (
            mechanism.inputs(end_levels)
            if is_small
            else [[level] * mechanism.size for level in end_levels]
        )
        active_count = getattr(mechanism, "active", mechanism.size)
        input_points = [
            point for point in input_points if np.count_nonzero(point) <= active_count
        ] or [[level, *[0] * (mechanism.size - 1)] for level in end_levels]
        values = [
            tuple(coordinate / mechanism.resolution for coordinate in point)
            for point in input_points
        ]
        channel_rows = lambda: mechanism.channel(end_levels)  # noqa: E731
    epsilon = float(getattr(mechanism, "epsilon", None) or mechanism.compute_exact_epsilon())
    if math.isinf(epsilon):
        raise PrivacyError(f"{mechanism.name} promises no epsilon, so there is nothing to audit")
    sampler = MechanismSampler(mechanism)
    check = EnumerableCheck(
        "every report of every value",
        [(str(value), value) for value in values],
        sampler,
        epsilon,
        stated_channel=channel_rows,
    )
    pair = Pair(str(values[0]), str(values[-1]), values[0], values[-1])
    return Subject(
        f"{mechanism.name}, epsilon {format_rounded_up(epsilon)}",
        epsilon,
        0.0,
        sampler,
        [pair],
        [check],
    )
