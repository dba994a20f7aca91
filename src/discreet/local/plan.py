"""The public description of a local collection: which questions, by which mechanism, to how many.

A plan carries every probability as an integer over 2^64 and a digest. Whoever holds it can check
what a report gives away; no respondent needs to compute anything with real numbers.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from discreet.documents import Body, digest_of, dump, load, read_text
from discreet.encoding import Cells
from discreet.errors import FormatError, PrivacyError, SchemaError
from discreet.mechanisms.frequency import FrequencyOracle, oracle_of
from discreet.mechanisms.mean import MEAN_ORACLES, MeanOracle
from discreet.privacy import Charge, Guarantee
from discreet.schema import Categorical, Numeric, Schema, SchemaBody

__all__ = ["Assignment", "Plan", "Question"]

Assignment = Literal["draw", "groups"]
VERSION = 1


@dataclass(frozen=True)
class Question:
    """One question of a plan.

    Parameters
    ----------
    features : tuple of str
        Which features are asked together with the class; none for the class alone.
    mechanism : FrequencyOracle or MeanOracle
        A frequency oracle reports the cell (class, value, value, …), a mean oracle the numbers
        themselves, in a vector that has one place for each feature and class.
    weight : int
        Share of the respondents who answer it, relative to the other questions.
    power : {0, 1, 2}
        0 for cells; 1 for numbers t scaled to [-1, 1], 2 for their squares 2 t^2 - 1.
    """

    features: tuple[str, ...]
    mechanism: FrequencyOracle | MeanOracle
    weight: int
    power: Literal[0, 1, 2] = 0


@dataclass(frozen=True, eq=False)
class Plan:
    """Questions for a population, each person answering as many as ``reports`` says.

    Parameters
    ----------
    schema : Schema
    epsilon : float
        Of one report. A person who sends several pays for each.
    questions : sequence of Question
    edges : mapping of feature name to bin edges
        For numeric features that are asked by cell.
    assignment : {"draw", "groups"}
        Whether respondents draw their question themselves, or the collector tells them which.
    reports : int, default 1
        How many reports one person may send.
    """

    schema: Schema
    epsilon: float
    questions: Sequence[Question]
    edges: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    assignment: Assignment = "draw"
    reports: int = 1

    def __post_init__(self) -> None:
        if not self.questions:
            raise SchemaError("a plan needs at least one question")
        if self.assignment not in get_args(Assignment):
            raise SchemaError(f"assignment={self.assignment!r}; write 'draw' or 'groups'")
        if isinstance(self.reports, bool) or self.reports < 1:
            raise PrivacyError(f"reports is {self.reports!r}; a person sends at least one")
        for number, question in enumerate(self.questions):
            if question.weight < 1:
                raise SchemaError(f"question {number} has weight {question.weight}; at least 1")
            if question.mechanism.epsilon > self.epsilon:
                raise PrivacyError(
                    f"question {number} spends {question.mechanism.epsilon:g}, "
                    f"the plan promises {self.epsilon:g}"
                )
            if question.mechanism.size != self.size_of(question):
                raise SchemaError(
                    f"question {number} has {self.size_of(question)} cells, its mechanism "
                    f"{question.mechanism.size}"
                )

    @cached_property
    def cells(self) -> dict[str, Cells]:
        """The public cells of every feature that is asked by cell."""
        found = {}
        for question in self.questions:
            for name in question.features if question.power == 0 else ():
                feature = self.schema[name]
                if isinstance(feature, Numeric) and name not in self.edges:
                    raise SchemaError(f"{name} is asked by bin, but the plan has no edges for it")
                edges = self.edges.get(name, ()) if isinstance(feature, Numeric) else ()
                found[name] = Cells(
                    feature,
                    tuple(edges),
                    self.schema.missing_tokens,
                    self.schema.unseen,
                    self.schema.outliers,
                )
        return found

    def shape_of(self, question: Question) -> tuple[int, ...]:
        """(classes, cells of the first feature, …) of a question about cells."""
        classes = len(self.schema.classes)
        return (classes, *(self.cells[name].size for name in question.features))

    def size_of(self, question: Question) -> int:
        """How many values the mechanism of a question has to tell apart."""
        if question.power == 0:
            return math.prod(self.shape_of(question))
        for name in question.features:
            feature = self.schema[name]
            if isinstance(feature, Categorical) or not feature.bounded:
                raise SchemaError(f"{name}: only a number with public bounds has a mean to ask for")
        return len(self.schema.classes) * len(question.features)

    @cached_property
    def bounds(self) -> NDArray[np.int64]:
        """Running sums of the weights: a uniform integer below the last picks a question."""
        return np.cumsum([question.weight for question in self.questions])

    @cached_property
    def shares(self) -> NDArray[np.float64]:
        """Expected share of respondents of each question."""
        weights = np.array([question.weight for question in self.questions], dtype=float)
        return np.asarray(weights / weights.sum())

    @property
    def guarantee(self) -> Guarantee:
        """What a respondent of this plan is promised, over all reports they may send."""
        spent = max(question.mechanism.epsilon for question in self.questions)
        return Guarantee(
            self.reports * spent,
            neighbours="replace",
            trust="local",
            unit="everything one person answers",
            against="everyone, the collector included: it is the report itself that is randomized",
            assumptions=(
                "the respondent's device is honest and its random source good",
                f"a person sends at most {self.reports} report{'s' * (self.reports > 1)}",
                "that a person took part at all is not hidden",
            ),
            charges=tuple(Charge(f"report {i + 1}", spent) for i in range(self.reports)),
        )

    def to_body(self) -> dict[str, Any]:
        """Plain values for a JSON document."""
        return {
            "schema": self.schema.to_body(),
            "epsilon": self.epsilon,
            "assignment": self.assignment,
            "reports": self.reports,
            "edges": {name: list(edges) for name, edges in self.edges.items()},
            "questions": [
                {
                    "features": list(question.features),
                    "power": question.power,
                    "weight": question.weight,
                    "mechanism": question.mechanism.name,
                    "size": question.mechanism.size,
                    "epsilon": question.mechanism.epsilon,
                    "theta": getattr(question.mechanism, "theta", None),
                    "parameters": question.mechanism.parameters(),
                }
                for question in self.questions
            ],
        }

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the whole plan; every report names it."""
        return digest_of({"format": "discreet/plan", "version": VERSION, **self.to_body()})

    def to_json(self) -> str:
        """Write the plan as versioned JSON."""
        return dump("plan", VERSION, self.to_body())

    @classmethod
    def from_json(cls, text: str | bytes) -> Plan:
        """Read a plan, and check that its probabilities keep what its epsilon promises."""
        body = load(text, "plan", VERSION, _PlanBody)
        try:
            return cls(
                body.public.value(),
                body.epsilon,
                [question.question() for question in body.questions],
                {name: tuple(edges) for name, edges in body.edges.items()},
                body.assignment,
                body.reports,
            )
        except (SchemaError, PrivacyError) as error:
            raise FormatError(f"this plan contradicts itself: {error}") from None

    @classmethod
    def read(cls, path: str | Path) -> Plan:
        """Read a plan file."""
        return cls.from_json(read_text(path))


class _QuestionBody(Body):
    features: list[str]
    power: Literal[0, 1, 2]
    weight: int
    mechanism: str
    size: int
    epsilon: float
    theta: float | None
    parameters: dict[str, Any]

    def question(self) -> Question:
        mechanism: FrequencyOracle | MeanOracle
        if self.power == 0:
            mechanism = oracle_of(
                self.mechanism, self.size, self.epsilon, self.theta, self.parameters
            )
        else:
            mechanism = mean_oracle_of(self.mechanism, self.parameters)
        return Question(tuple(self.features), mechanism, self.weight, self.power)


class _PlanBody(Body):
    public: SchemaBody = Field(alias="schema")
    epsilon: float
    assignment: Assignment
    reports: int
    edges: dict[str, list[float]]
    questions: list[_QuestionBody]


def mean_oracle_of(name: str, parameters: Mapping[str, Any]) -> MeanOracle:
    """The mean oracle that a plan names; its probabilities must be those of its epsilon."""
    if name not in MEAN_ORACLES:
        raise SchemaError(f"mechanism is {name!r}; write one of {', '.join(MEAN_ORACLES)}")
    kind = MEAN_ORACLES[name]
    known = inspect.signature(kind).parameters
    given = {key: value for key, value in parameters.items() if key in known}
    mechanism = kind(**given)
    if mechanism.parameters() != dict(parameters):
        raise PrivacyError(f"the parameters of {name} are not those of its epsilon and size")
    return mechanism
