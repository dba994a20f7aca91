"""Subjects that send reports: plans, questionnaires and the mechanisms in them.

Everything that runs is a small frozen value, so that it can be sent to another process.
"""

from __future__ import annotations

import inspect
import math
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain, islice, zip_longest
from typing import Any

import numpy as np

from discreet.audit.neighbours import Record, corner, records, values_of
from discreet.audit.subject import Pair, Subject, Walk
from discreet.audit.tables import NOISES, of_noise
from discreet.collection.protocol import Collection
from discreet.collection.respondent import MemoryStore, Respondent
from discreet.errors import PrivacyError, SchemaError
from discreet.mechanisms.frequency import ORACLES, FrequencyOracle
from discreet.mechanisms.mean import MEAN_ORACLES
from discreet.mechanisms.response import MODELS, Response
from discreet.privacy import rounded_up
from discreet.randomness import Random
from discreet.schema import Schema

__all__ = ["of_collection", "of_mechanism", "of_oracle"]

FEW = 400
"""Largest number of records, values, cells or pairs that are tried; the first ones of more."""
SHORT = 1 << 14
"""Largest number of device paths that are enumerated; above, questions are enumerated singly."""


@dataclass(frozen=True)
class Device:
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
        person = Respondent(self.collection, store, self.group, random_state=random)
        sent = [person.report(record)]
        sent += [person.report(record, again=True) for _ in range(self.collection.reports - 1)]
        return "".join(one.to_json() for one in sent)


@dataclass(frozen=True)
class AssignedDevice:
    """One person's device in a collection whose collector assigns the questions.

    Parameters
    ----------
    collection : Plan or Questionnaire
    """

    collection: Any

    def __call__(self, given: tuple[int, Record], random: Random) -> Any:
        """All reports of the person with this question and this record."""
        question, record = given
        return Device(self.collection, question)(record, random)


def shown(text: str) -> str:
    """Describe what a device sent, without the constant parts."""
    sent = re.findall(r'"question": (\d+), "value": (\[[^]]*\])', text)
    return " and ".join(f"question {question}: {value}" for question, value in sent) or text[:80]


def of_collection(collection: Collection) -> Subject:
    """Make the subject of a plan or a questionnaire: what one device sends.

    For a shuffled collection the guarantee of a single report is tested; the amplification depends
    on other people's reports (:mod:`discreet.shuffling` computes it).

    Parameters
    ----------
    collection : Plan or Questionnaire
    """
    promise = collection.guarantee
    if math.isinf(promise.epsilon):
        raise PrivacyError(
            f"this {collection.kind} promises no epsilon, so there is nothing to audit: "
            f"{'; '.join(promise.broken)}"
        )
    groups: list[int | None] = [None]
    if collection.assignment == "groups":
        groups = list(range(len(collection.questions)))
    walks = _whole_device(collection, groups) or _parts(collection)
    schema = getattr(collection, "original", collection.schema)
    single = promise.unshuffled is not None
    assigned = collection.assignment == "groups"
    every = _record_pairs(collection, schema)
    pairs = list(islice(every, FEW))
    omitted = sum(1 for _ in every)
    covered = f", {FEW} of {FEW + omitted} pairs" if omitted else ""
    return Subject(
        f"{collection.kind} {collection.digest[7:19]}" + ", a single report" * single + covered,
        promise.alone,
        0.0 if single else promise.delta,
        AssignedDevice(collection) if assigned else Device(collection),
        pairs,
        walks,
    )


def _record_pairs(collection: Any, schema: Schema) -> Iterator[Pair]:
    """Iterate over pairs: the first value of every feature against the last, and single changes.

    A device may give away a value that is neither the first nor the last, or that something is
    missing. Where questions are assigned, a value is tried with every question about it.
    """
    low, high = corner(schema, False), corner(schema, True)
    assigned = collection.assignment == "groups"
    asked = [collection.asked(question) for question in range(len(collection.questions))]

    def pair(question: int, words: str, record: Record) -> Pair:
        of_question = f" of question {question}" if assigned else ""
        inputs = [(question, one) if assigned else one for one in (low, record)]
        return Pair(f"the first value of everything{of_question}", words, *inputs)

    for question in range(len(asked) if assigned else 1):
        yield pair(question, "the last", high)
    edges = _edges(collection)
    values = [
        [(name, value) for value in reversed(values_of(schema, name, edges.get(name, ())))]
        for name in schema.names
    ]
    values.append([(schema.target, value) for value in reversed(schema.classes)])
    for name, value in filter(None, chain.from_iterable(zip_longest(*values))):
        if value != low[name]:
            about = [k for k, names in enumerate(asked) if name in names] if assigned else []
            words = f"{name} {'missing' if value is None else value}"
            for question in about or [0]:
                yield pair(question, words, {**low, name: value})


def _edges(collection: Any) -> dict[str, Any]:
    if collection.kind == "plan":
        return dict(collection.edges)
    return {name: cells.edges for name, cells in collection.cells.items() if cells.edges}


def _whole_device(collection: Any, groups: Sequence[int | None]) -> list[Walk]:
    """Checks of every record and every path through the device, if these are few."""
    schema, edges = getattr(collection, "original", collection.schema), _edges(collection)
    answers = [question.outputs for question in collection.questions]
    people = list(islice(records(schema, schema.names, edges), FEW + 1))
    weights = int(collection.bounds[-1]) if collection.kind == "plan" else 1
    ways = weights * max((one or math.inf) for one in answers) ** collection.reports
    if len(people) > FEW or len(people) * ways > SHORT:
        return []
    inputs = [(_words(one), one) for one in people]
    return [
        Walk(
            "every text that leaves the device of every person" + f" of group {group}" * (k > 0),
            inputs,
            Device(collection, group),
            collection.guarantee.alone,
            shown,
        )
        for k, group in enumerate(groups)
    ]


def _parts(collection: Any) -> list[Walk]:
    """Checks of every answer to every question, for the mechanisms alone."""
    note = "of the mechanisms alone; the device around them is compared by samples"
    if collection.kind == "plan":
        return [
            replace(walk, check=f"question {number}, {question.name}: {walk.check}", note=note)
            for number, question in enumerate(collection.questions)
            for walk in of_oracle(question.mechanism).walks
        ]
    return [
        replace(walk, check=f"{group.name}: {walk.check}", note=note)
        for group, channel in zip(collection.groups, collection.channels, strict=True)
        for walk in of_oracle(channel).walks
    ]


def _words(record: Record) -> str:
    return ", ".join(f"{name} {value}" for name, value in record.items())


@dataclass(frozen=True)
class Sampler:
    """A mechanism alone: one value to its serialised report."""

    mechanism: Any

    def __call__(self, value: Any, random: Random) -> tuple[int, ...]:
        """The report's integers."""
        sent = self.mechanism.perturb([value], random)
        if isinstance(self.mechanism, FrequencyOracle):
            sent = self.mechanism.encode(sent)
        return tuple(int(one) for one in sent[0])


def of_mechanism(name: str, epsilon: float, size: int = 2, **more: Any) -> Subject:
    """Make the subject of a mechanism by its name.

    Parameters
    ----------
    name : str
        A frequency oracle, a mean oracle, a survey model, ``"discrete-laplace"`` or
        ``"discrete-gaussian"``.
    epsilon : float
    size : int
        Values, numbers or answers; ignored by mechanisms for a single number.
    **more
        Further parameters of the mechanism.
    """
    if name in NOISES:
        return of_noise(name, epsilon, **more)
    if name in MODELS:
        model: Any = MODELS[name]
        return of_oracle(model.of_epsilon(epsilon, (2,) * size, **more))
    kind: Any = {**ORACLES, **MEAN_ORACLES}.get(name)
    if kind is None:
        known = ", ".join([*ORACLES, *MEAN_ORACLES, *MODELS, *NOISES])
        raise SchemaError(f"there is no mechanism {name!r}; the known ones are {known}")
    if "size" in inspect.signature(kind).parameters:
        more = {"size": size, **more}
    return of_oracle(kind(epsilon, **more))


def of_oracle(mechanism: Any) -> Subject:
    """Make the subject of a frequency oracle, mean oracle or survey model.

    Parameters
    ----------
    mechanism : FrequencyOracle, MeanOracle or Response
    """
    if isinstance(mechanism, FrequencyOracle):
        values: list[Any] = list(range(min(mechanism.size, FEW)))
        rows: Callable[[], Any] = mechanism.channel
    elif isinstance(mechanism, Response):
        values, rows = list(islice(mechanism.outputs(), FEW)), mechanism.channel
    else:
        ends = [-1, 1] if mechanism.size > 1 else [-1, 0, 1]
        levels = [mechanism.resolution * one for one in ends]
        few = mechanism.size <= 8
        points = mechanism.inputs(levels) if few else [[one] * mechanism.size for one in levels]
        active = getattr(mechanism, "active", mechanism.size)
        points = [p for p in points if np.count_nonzero(p) <= active] or [
            [one, *[0] * (mechanism.size - 1)] for one in levels
        ]
        values = [tuple(one / mechanism.resolution for one in point) for point in points]
        rows = lambda: mechanism.channel(levels)  # noqa: E731
    epsilon = float(getattr(mechanism, "epsilon", None) or mechanism.epsilon_exact())
    if math.isinf(epsilon):
        raise PrivacyError(f"{mechanism.name} promises no epsilon, so there is nothing to audit")
    sampler = Sampler(mechanism)
    walk = Walk(
        "every report of every value", [(str(v), v) for v in values], sampler, epsilon, stated=rows
    )
    pair = Pair(str(values[0]), str(values[-1]), values[0], values[-1])
    return Subject(
        f"{mechanism.name}, epsilon {rounded_up(epsilon)}", epsilon, 0.0, sampler, [pair], [walk]
    )
