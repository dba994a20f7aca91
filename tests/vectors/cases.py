"""Cases: a document, a person's answers and a tape of bytes; and what Python makes of them.

``vectors/*.json`` keeps some of them with their results; the live comparison draws new ones.
"""

from __future__ import annotations

import decimal
import json
import math
import random as plain
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

import numpy as np
from tape import Tape

from discreet import Categorical, Numeric, Schema
from discreet.arrays import Bytes
from discreet.collection.respondent import MemoryStore, Respondent
from discreet.errors import DiscreetError
from discreet.local import Plan
from discreet.local.question import Question
from discreet.mechanisms.frequency import ORACLES
from discreet.mechanisms.mean import MEAN_ORACLES
from discreet.schema.cells import Cells
from discreet.schema.projection import Projection
from discreet.statistics.candidate import CandidateModel
from discreet.survey import Group, PersonalLaw, Questionnaire

OTHER = "never a public value"


@dataclass(frozen=True)
class Case:
    """One person: ``tape`` is longer than what is needed."""

    collection: Any
    answers: dict[str, Any]
    tape: bytes
    group: int | None = None
    personal: dict[str, Any] | None = None
    by_hand: bool = False
    apart: bool = False
    simulated: bool = True
    name: str = ""
    events: frozenset[str] = field(default=frozenset(), compare=False)

    def to_json(self) -> dict[str, Any]:
        """As a client in another language reads it."""
        return {
            "document": self.collection.digest,
            "answers": written(self.answers),
            "personal": None if self.personal is None else written(self.personal),
            "group": self.group,
            "by_hand": self.by_hand,
            "apart": self.apart,
            "simulated": self.simulated,
            "tape": self.tape.hex(),
        }

    @classmethod
    def from_json(cls, collection: Any, body: dict[str, Any]) -> Case:
        personal = body["personal"]
        return cls(
            collection,
            read(body["answers"]),
            bytes.fromhex(body["tape"]),
            body["group"],
            None if personal is None else read(personal),
            body["by_hand"],
            body["apart"],
            body["simulated"],
            body.get("name", ""),
        )


def written(answers: dict[str, Any]) -> dict[str, Any]:
    """JSON has no NaN and no infinity."""
    return {
        name: {"$number": {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}[str(value)]}
        if isinstance(value, float) and not math.isfinite(value)
        else value
        for name, value in answers.items()
    }


def read(answers: dict[str, Any]) -> dict[str, Any]:
    return {
        name: float(value["$number"]) if isinstance(value, dict) and "$number" in value else value
        for name, value in answers.items()
    }


def result(case: Case, source: Tape | None = None) -> dict[str, Any]:
    """What Python makes of a case: the text, the key, the question and the bytes used."""
    tape = Tape(case.tape) if source is None else source
    tape.simulated = case.simulated
    store, collection = MemoryStore(), case.collection
    try:
        person = Respondent(
            collection,
            store,
            case.group,
            by_hand=case.by_hand,
            unprotected=True,
            random_state=tape,
        )
        seen = collection.names
        if case.apart:
            seen = collection.get_asked_columns(person.draw_question())
        answers = _unclicked(collection, case.answers, seen)
        personal = None if case.personal is None else _unclicked(collection, case.personal, seen)
        make = person.answer_question if case.apart else person.report
        report = make(answers, personal)
    except (DiscreetError, IndexError):
        return {"error": True}
    (kept,) = store.load_reports(collection.digest)
    return {
        "text": report.to_json(),
        "key": kept.key,
        "question": report.question,
        "used": tape.used,
    }


def _unclicked(collection: Any, answers: dict[str, Any], seen: tuple[str, ...]) -> dict[str, Any]:
    """A choice by its number is an answer that Python knows by its value."""
    found = {}
    for name, value in answers.items():
        if isinstance(value, dict) and name in seen:
            value = _value_of(_cells(collection, name), value["cell"])
        found[name] = value
    return found


ANSWERED = {"choice": {"cell": 0}, "whole": 1, "real": 0.5, "answer": "no"}
"""Answers that fit, to which one odd answer is put."""


def odd_case(survey: Questionnaire, name: str, answer: Any) -> Case:
    """A person one of whose answers is spelt oddly; the survey sends the truth."""
    return Case(survey, {**ANSWERED, name: answer}, b"\x55" * 64)


def cell_in(made: dict[str, Any], survey: Questionnaire, name: str) -> int | None:
    """The cell of an answer in what a client made of it; None where it refused it."""
    if "error" in made:
        return None
    cell: int = json.loads(made["text"])["value"][survey.place[name]]
    return cell


def _cells(collection: Any, name: str) -> Cells:
    schema = collection.schema
    if name == schema.target:
        return Cells(Categorical(schema.target, schema.classes, optional=False))
    asked_by_number = name not in collection.cells or name in getattr(
        collection, "mean_features", ()
    )
    if isinstance(schema[name], Numeric) and asked_by_number:
        raise IndexError(name)
    return collection.cells.get(name) or Cells.from_schema(schema, name)


def _value_of(cells: Cells, cell: int) -> Any:
    if not 0 <= cell < cells.size:
        raise IndexError(cell)
    if cell == cells.missing_index:
        return None
    if cell == cells.other_index:
        return OTHER
    if isinstance(cells.feature, Categorical):
        return cells.feature.values[cell]
    return cells.edges[cell]


def plan_of(
    name: str, epsilon: float, size: int, classes: int = 1, power: int = 1, **options: Any
) -> Plan:
    """A plan with one question: the class alone of an oracle, ``size`` numbers of a mean."""
    if name in ORACLES:
        schema = Schema([Categorical("unused", ["a"])], "answer", list(range(size)))
        return Plan(schema, epsilon, [Question((), ORACLES[name](epsilon, size, **options), 1)])
    features = [Numeric(f"t{j}", -1, 1) for j in range(size // classes)]
    schema = Schema(features, "answer", list(range(classes)))
    if name in ("duchi", "piecewise", "hybrid"):
        oracle = MEAN_ORACLES[name](epsilon, **options)
    else:
        most = {"active": len(features)} if name == "laplace" else {}
        oracle = MEAN_ORACLES[name](epsilon, size, **most, **options)
    return Plan(schema, epsilon, [Question(tuple(f.name for f in features), oracle, 1, power)])


def special_bytes(collection: Any) -> list[int]:
    """First bytes of the coins of a document: what ties with them."""
    found: list[int] = []

    def look(value: Any) -> None:
        if isinstance(value, dict):
            for one in value.values():
                look(one)
        elif isinstance(value, list):
            for one in value:
                look(one)
        elif isinstance(value, str) and value.isdigit() and len(value) > 10:
            found.append(int(value) >> 56 & 0xFF)

    look(collection.to_body())
    return found or [0x80]


def special_words(collection: Any, chance: plain.Random) -> list[int]:
    """Words that leave open what the geometric draws of a plan are."""
    found = [0, 0xFFFFFFFFFFFFFFFF]
    for question in getattr(collection, "questions", ()):
        scale = getattr(getattr(question, "mechanism", None), "noise_scale", None)
        if scale is not None:
            reach = max(1, math.floor(40 * scale))
            found += [edge(chance.randint(1, reach), scale) for _ in range(3)]
    return found


def edge(k: int, scale: Fraction, bits: int = 64) -> int:
    """The first bits of exp(-k / scale): where floor(-scale ln U) changes from k to k - 1."""
    precise = decimal.Context(prec=120)
    top, bottom = decimal.Decimal(-k * scale.denominator), decimal.Decimal(scale.numerator)
    exponent = precise.divide(top, bottom)
    return math.floor(Fraction(precise.exp(exponent)) * (1 << bits))


class Growing(Tape):
    """A tape that is written while it is read, full of ties, refusals and open words."""

    def __init__(self, collection: Any, chance: plain.Random, odd: float = 0.7) -> None:
        super().__init__(b"")
        self.script = bytearray()  # type: ignore[assignment]
        self.chance, self.odd = chance, chance.random() < odd
        coins = special_bytes(collection)
        self.common = [0, 0, 1, 0xFF, *coins, *coins]
        self.open = special_words(collection, chance)

    def raw(self, count: int) -> Bytes:
        end = self.used + count
        while len(self.script) < end:
            self.script += self._piece(end - len(self.script))
        drawn = np.frombuffer(bytes(self.script[self.used : end]), np.uint8).copy()
        self.used = end
        return drawn

    def _piece(self, wanted: int) -> bytes:
        """Bytes of one kind; whole words where the wanted bytes are words."""
        pick = self.chance.random() if self.odd else 1.0
        if pick < 0.2:
            return bytes([self.chance.choice(self.common)]) * self.chance.choice([1, 2, 4, 8, 32])
        if pick < 0.45:
            return self.chance.choice(self.open).to_bytes(8, "little")
        return self.chance.randbytes(8 * self.chance.randint(1, 8))


VALUES: list[list[Any]] = [
    ["no", "yes"],
    [True, False],
    [0, 1, 2],
    [0.5, 1.5, -2.25e-7, 1e-4, 123456.75],
    ["True", "False", "1"],
    ["true", "false"],
    ["1", "0", ""],
    ["ä", "日本", "😀", 'a\\"b', "?"],
    [-1, 10, 1000000],
]
"""Lists of public values, with spellings that languages tell apart."""

ODD: list[Any] = [
    None, "", "?", "NA", "yes", "no", "True", "TRUE", "false", True, False, 0, 1, 1.0, "1", "1.0",
    -0.0, 0.5, "0.5", ".5", "5.", " 7 ", "1e1", "+3", "-1", "1e-4", "x", "1_0", "12,5", 1e-7, 2, 3,
    7.5, 40, 98, 99, 1e300, -1e300, 1e-300, math.nan, math.inf, -math.inf, "inf", "-Infinity",
    "nan", "0x10", "１", 123456.75, -2.25e-7, "(missing)", "\x1f5\t", "1 to 3", "0",
    {"cell": 0}, {"cell": 1}, {"cell": 3}, {"cell": 99}, {"cell": -1},
]  # fmt: skip


def feature_of(name: str, chance: plain.Random) -> Categorical | Numeric:
    optional = chance.random() < 0.6
    if chance.random() < 0.5:
        return Categorical(name, chance.choice(VALUES), optional)
    if chance.random() < 0.5:
        low = chance.choice([0, 0, -3, 18, 1000000])
        return Numeric(name, low, low + chance.choice([1, 7, 80, 2000000]), True, optional)
    low = chance.choice([0.0, -1.0, 0.1, -1e6, 1e-5, 1234565.5, chance.uniform(-9, 9)])
    return Numeric(
        name, low, low + chance.choice([1.0, 0.3, 2e6, chance.uniform(0.1, 9)]), False, optional
    )


def schema_of(chance: plain.Random, most: int = 4) -> Schema:
    features = [feature_of(f"f{k}", chance) for k in range(chance.randint(1, most))]
    classes = [*chance.choice(VALUES), "?"] if chance.random() < 0.1 else chance.choice(VALUES)
    if len(set(map(str, classes))) < len(classes):
        classes = ["no", "yes"]
    return Schema(
        features,
        "answer",
        classes,
        outliers=chance.choice(["error", "clip"]),
        unseen=chance.choice(["error", "other"]),
        missing_tokens=chance.choice([[], ["?"], ["NA", "x", "0"]]),
    )


def _edges(schema: Schema, name: str, chance: plain.Random) -> tuple[float, ...]:
    feature = schema[name]
    assert isinstance(feature, Numeric)
    if feature.integer or chance.random() < 0.5:
        return Cells.from_schema(schema, name, chance.randint(1, 6)).edges
    span = feature.upper - feature.lower
    cuts = sorted({feature.lower + span * chance.uniform(0.01, 0.99) for _ in range(3)})
    return Cells.from_schema(schema, name, {name: cuts}).edges


def random_plan(chance: plain.Random) -> Plan:
    """Several questions by any mechanism about any features."""
    schema = schema_of(chance)
    projection = None
    numeric = [f for f in schema.features if isinstance(f, Numeric)]
    if numeric and chance.random() < 0.15:
        count = chance.randint(1, 2)
        projection = Projection(
            schema,
            np.array([chance.uniform(-3, 9) for _ in numeric]),
            np.array([chance.uniform(0.1, 9) for _ in numeric]),
            np.array([[chance.uniform(-1, 1) for _ in range(count)] for _ in numeric]),
            tuple(
                Numeric(f"c{k}", -1.5, chance.uniform(0, 3), optional=False) for k in range(count)
            ),
        )
        schema = projection.output_schema
    epsilon = chance.choice([0.05, 0.5, 1.0, 1.0, 2.5, 5.0, 20.0, chance.uniform(0.1, 8)])
    numeric = [f for f in schema.features if isinstance(f, Numeric)]
    averaged = {f.name for f in numeric if chance.random() < 0.4}
    edges: dict[str, tuple[float, ...]] = {}
    questions = []
    for _ in range(chance.randint(1, 4)):
        weight = chance.choice([1, 1, 3, 1000, 2**31, 2**40])
        if averaged and chance.random() < 0.5:
            names = tuple(chance.sample(sorted(averaged), chance.randint(1, len(averaged))))
            questions.append(_mean_question(names, schema, epsilon, weight, chance))
            continue
        names = tuple(
            f.name
            for f in chance.sample(schema.features, chance.randint(0, min(2, len(schema.features))))
        )
        size = len(schema.classes)
        for name in names:
            if isinstance(schema[name], Numeric):
                one = (schema[name].lower, Cells.from_schema(schema, name, 1).edges[-1])
                edges.setdefault(name, one if name in averaged else _edges(schema, name, chance))
            size *= Cells.from_schema(schema, name, {name: edges.get(name, ())[1:-1]}).size
        if size < 2:
            names, size = (), len(schema.classes)
        oracle = ORACLES[chance.choice(sorted(ORACLES))](epsilon, size)
        questions.append(Question(names, oracle, weight))
    used = {name for question in questions for name in question.features if not question.power}
    asked = {name for question in questions for name in question.features if question.power}
    kept = {name: some for name, some in edges.items() if name in used}
    if any(len(some) > 2 for name, some in kept.items() if name in asked):
        return random_plan(chance)
    assignment = chance.choice(["draw", "draw", "groups"])
    return Plan(schema, epsilon, questions, kept, assignment, projection=projection)


def _mean_question(
    names: tuple[str, ...], schema: Schema, epsilon: float, weight: int, chance: plain.Random
) -> Question:
    size = len(names) * len(schema.classes)
    kinds = ["laplace", "duchi-many", "one-bit", "piecewise-many", "hybrid-many"]
    if size == 1:
        kinds += ["duchi", "piecewise", "hybrid"]
    name, resolution = chance.choice(kinds), chance.choice([1, 16, 1024, 1024])
    arguments: dict[str, Any] = {"resolution": resolution}
    if name == "laplace":
        arguments["active"] = len(names)
    if name.startswith(("piecewise", "hybrid")):
        arguments["window"] = chance.choice(["least", "published"])
    sizes = () if name in ("duchi", "piecewise", "hybrid") else (size,)
    return Question(
        names, MEAN_ORACLES[name](epsilon, *sizes, **arguments), weight, chance.choice([1, 2])
    )


def random_judging_plan(chance: plain.Random) -> Plan:
    """Several models, with equal scores more often than not, that people judge."""
    plan = random_plan(chance)
    schema, class_count = plan.schema, len(plan.schema.classes)
    cuts = {
        f.name: _edges(schema, f.name, chance) for f in schema.features if isinstance(f, Numeric)
    }
    questions = []
    for _ in range(chance.randint(1, 4)):
        features = chance.sample(schema.features, chance.randint(0, len(schema.features)))
        scores = chance.choice([[0, 1], [-3, 0, 3, 5], [-(2**20), 2**20, 0], range(-999, 1)])
        sizes = {
            f.name: Cells.from_schema(schema, f.name, {f.name: cuts.get(f.name, ())[1:-1]}).size
            for f in features
        }
        candidate = CandidateModel(
            np.array(chance.choices(scores, k=class_count)),
            {
                name: np.array([chance.choices(scores, k=size) for _ in range(class_count)])
                for name, size in sizes.items()
            },
        )
        oracle = ORACLES[chance.choice(["de", "de", "de", *ORACLES])](plan.epsilon, 2)
        weight = chance.choice([1, 1, 1000])
        questions.append(Question(tuple(sizes), oracle, weight, candidate=candidate))
    asked = {name for question in questions for name in question.features}
    edges = {name: some for name, some in cuts.items() if name in asked}
    return replace(plan, questions=questions, edges=edges)


def random_questionnaire(chance: plain.Random) -> Questionnaire:
    """Private questions in groups of either model."""
    schema = schema_of(chance, 5)
    cuts = {
        f.name: _edges(schema, f.name, chance)[1:-1]
        for f in schema.features
        if isinstance(f, Numeric)
    }
    names = [*schema.names, schema.target]
    plainly = Questionnaire.from_schema(schema, bins=cuts)
    two = {n for n in names if plainly.sizes[plainly.place[n]] == 2}
    chance.shuffle(names)
    groups, laws = [], []
    while names:
        take = names[: chance.randint(1, 3)]
        names = names[len(take) :]
        theta = chance.choice(["0.5", 0.7, "1/3", 1, 0.01, 0.999, chance.random() or 0.5])
        model = "related" if set(take) <= two and chance.random() < 0.5 else "unrelated"
        if model == "related" and theta in ("0.5", 0.5):
            theta = 0.8
        groups.append(Group(tuple(take), theta=theta, model=model))
        if model == "unrelated" and chance.random() < 0.7:
            members = tuple(chance.sample(take, chance.randint(1, len(take))))
            cells = math.prod(plainly.sizes[plainly.place[n]] for n in members)
            weights = [chance.choice([0, 1, 2, 5, 2**33]) for _ in range(cells)]
            if sum(weights):
                laws.append(PersonalLaw(members, tuple(weights)))
    return Questionnaire(
        schema,
        groups,
        laws,
        cuts,
        chance.choice(["device", "device", "own"]),
        chance.choice(["software", "either", "hand"]),
    )


def random_answers(collection: Any, names: list[str], chance: plain.Random) -> dict[str, Any]:
    """Mostly answers that fit; some that do not, and some that are missing."""
    answers: dict[str, Any] = {}
    schema = collection.schema if collection.kind == "questionnaire" else collection.original
    for name in names:
        if chance.random() < 0.08:
            answers[name] = chance.choice(ODD)
            continue
        if name == schema.target:
            answers[name] = chance.choice(schema.classes)
            continue
        feature = schema[name]
        if feature.optional and chance.random() < 0.2:
            if chance.random() < 0.5:
                answers[name] = None
        elif isinstance(feature, Categorical):
            answers[name] = chance.choice(feature.values)
        elif feature.integer:
            answers[name] = chance.randint(int(feature.lower), int(feature.upper))
        else:
            numbers = [feature.lower, feature.upper, chance.uniform(feature.lower, feature.upper)]
            answers[name] = chance.choice([*numbers, str(numbers[2])])
    if chance.random() < 0.01:
        answers["unasked"] = 1
    return answers


def random_case(collection: Any, chance: plain.Random) -> Case:
    """One person who answers a document; the tape is yet to be written."""
    group, personal, names = None, None, list(collection.names)
    apart = chance.random() < 0.5
    if collection.kind == "plan" and (collection.assignment == "groups") != (
        chance.random() < 0.02
    ):
        group = chance.randrange(len(collection.questions))
        if apart and chance.random() < 0.8:
            names = list(collection.get_asked_columns(group))
    by_hand = chance.random() < {"either": 0.5, "hand": 0.95}.get(collection.device, 0.02)
    if collection.kind == "questionnaire" and collection.personal == "own" and not by_hand:
        asked = [n for g in collection.groups if g.model == "unrelated" for n in g.questions]
        if asked and chance.random() < 0.97:
            personal = random_answers(collection, asked, chance)
            personal = {name: one for name, one in personal.items() if name in asked}
    return Case(
        collection,
        random_answers(collection, names, chance),
        b"",
        group,
        personal,
        by_hand,
        apart,
        chance.random() < 0.5,
    )


def agree(made: dict[str, Any], twin: dict[str, Any]) -> bool:
    """Both refuse, or both give the same text, key, question and number of bytes."""
    if "error" in made:
        return len(twin.get("error", "never refused: so long that it is no reason")) < 20
    return made == twin
