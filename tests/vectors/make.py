"""Write the vectors: ``python tests/vectors/make.py``.

A file of a mechanism holds cases with their results: a document, answers, a tape of bytes, and the
exact text, key and number of bytes that they give. Most tapes are drawn so that rare things happen;
which did is in ``events``. ``plans``, ``judging`` (plans that judge models) and ``questionnaires``
hold whole documents, ``answers`` the cells of odd spellings, ``labels`` numbers as people read
them, ``documents`` every document.

The order of bytes is part of the format: vectors change only with a new version of it.
"""

from __future__ import annotations

import json
import random as plain
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

import cases as given
from cases import Case, Growing, plan_of, result

from discreet import Categorical, Numeric, Schema
from discreet.arrays import Booleans, Bytes, Integers
from discreet.errors import DiscreetError
from discreet.local import Plan
from discreet.mechanisms.frequency import ORACLES
from discreet.mechanisms.mean import MEAN_ORACLES
from discreet.survey import Group, PersonalLaw, Questionnaire

HERE = Path(__file__).parent
ENOUGH = 42

POINTS: list[Any] = [
    -1, 1, -0.0, 0, 1e-300, -1e-300, 5e-324, 0.5, 1 / 3, -0.7, 1 - 2**-53, 2**-10, None, 0.25,
]  # fmt: skip
"""Numbers in [-1, 1] where clients go wrong; None is missing."""


class Recording(Growing):
    """A tape that notes which rare things happened while it was read."""

    def __init__(self, collection: Any, chance: plain.Random, odd: float = 0.7) -> None:
        super().__init__(collection, chance, odd)
        self.events: set[str] = set()
        self._inside, self._reads = False, 0
        self._drawn: list[int] = []

    def raw(self, count: int) -> Bytes:
        self._reads += count == self.keys
        if self._reads > 1:
            self.events.add("keys drawn again")
        return super().raw(count)

    keys = -1
    """How many bytes the keys of subset selection take at once."""

    def integers(self, below: int, size: int) -> Integers:
        if self._inside:
            self.events.add("refused")
            return super().integers(below, size)
        self._inside, before = True, len(self.events)
        drawn = super().integers(below, size)
        self._inside = False
        self._drawn.append(int(drawn[0]) if size else 0)
        if size > 1 and len(self.events) > before:
            self.events.add("refused in a batch")
        return drawn

    def bernoulli_words(self, threshold: int, size: int) -> Booleans:
        before = self.used
        flags = super().bernoulli_words(threshold, size)
        if self.used - before > size:
            self.events.add("tie")
            if size > 1:
                self.events.add("tie in a batch")
        return flags

    def _draw_subsets_floyd(self, pool: int, take: int, rows: int) -> Integers:
        self._drawn = []
        chosen = super()._draw_subsets_floyd(pool, take, rows)
        self.events.add("Floyd")
        if chosen[0].tolist() != self._drawn:
            self.events.add("Floyd took the last")
        return chosen

    def _draw_subsets_shuffled(self, pool: int, take: int, rows: int) -> Integers:
        self.events.add("shuffle")
        return super()._draw_subsets_shuffled(pool, take, rows)

    def _iter_log_bounds(self, word: int) -> Iterator[tuple[Fraction, Fraction | None]]:
        if word == 0:
            self.events.add("word of zeros")
        for further, bounds in enumerate(super()._iter_log_bounds(word)):
            if further == 1:
                self.events.add("further word")
            elif further == 2:
                self.events.add("two further words")
            yield bounds


WANTED: dict[str, set[str]] = {
    "de": {"refused", "tie"},
    "ss": {"refused", "tie", "Floyd", "Floyd took the last", "shuffle", "keys drawn again"},
    "sue": {"tie in a batch"}, "oue": {"tie in a batch"}, "the": {"tie in a batch"},
    "she": {"word of zeros", "further word"},
    "hr": {"tie"},
    "olh": {"refused", "tie"},
    "laplace": {"word of zeros", "further word"},
    "duchi": set(),
    "duchi-many": {"tie"},
    "piecewise": {"refused", "tie"},
    "hybrid": {"refused", "tie"},
    "one-bit": {"refused"},
    "piecewise-many": {"refused in a batch", "tie in a batch", "Floyd", "shuffle"},
    "hybrid-many": {"refused in a batch", "tie in a batch", "Floyd", "shuffle"},
    "unrelated": {"refused", "tie"},
    "related": {"tie"},
}  # fmt: skip
"""What must happen at least once among the vectors of each mechanism."""

CELLS = [
    (2, 1.0), (3, 0.05), (8, 1.0), (9, 3.0), (16, 0.5), (17, 2.0), (40, 1e-9), (7, 40.0), (5, 64.0),
    (300, 4.0),
]  # fmt: skip
NUMBERS = [(1, 1.0), (2, 0.1), (3, 5.0), (8, 1.0), (9, 20.0), (16, 3.0), (17, 1.0), (6, 40.0)]


def oracles(name: str, chance: plain.Random) -> Iterator[Case]:
    """People who answer the one question of a plan, about one of ``size`` values."""
    plans = [plan_of(name, epsilon, size) for size, epsilon in CELLS]
    if name == "ss":  # sets small enough for Floyd's method inside the shuffled pool, and for it
        plans += [
            plan_of(name, epsilon, size) for size, epsilon in ((10, 1.0), (50, 2.0), (9, 1.2))
        ]
    yield from _rounds(plans, lambda plan: {"answer": chance.randrange(len(plan.schema.classes))})


def means(name: str, chance: plain.Random) -> Iterator[Case]:
    """People who answer the one question of a plan, about numbers."""
    plans = []
    if name in ("duchi", "piecewise", "hybrid"):
        for epsilon in (0.05, 0.5, 1.0, 3.0, 8.0, 40.0):
            plans += [plan_of(name, epsilon, 1, power=power) for power in (1, 2)]
        plans += [plan_of(name, 1.0, 1, resolution=r) for r in (1, 1 << 20)]
    else:
        for size, epsilon in NUMBERS:
            classes = 2 if size % 2 == 0 else 1
            plans.append(plan_of(name, epsilon, size, classes, power=1 + size % 2))
        plans.append(plan_of(name, 30.0, 300, 3, resolution=1))
    if name.startswith(("piecewise", "hybrid")):
        sizes = (1,) if "many" not in name else (6,)
        plans += [plan_of(name, 2.0, *sizes, window="published")]

    def answers(plan: Plan) -> dict[str, Any]:
        numbers = {n: chance.choice([*POINTS, chance.uniform(-1, 1)]) for n in plan.schema.names}
        return {**numbers, "answer": chance.choice(plan.schema.classes)}

    yield from _rounds(plans, answers)


def sheets(name: str, chance: plain.Random) -> Iterator[Case]:
    """People who answer a questionnaire whose groups all have one model."""
    two = [Categorical(f"q{k}", ["no", "yes"], optional=False) for k in range(3)]
    more = [Categorical("q3", ["a", "b", "c"]), Numeric("q4", 0, 9, True, False)]
    schema = Schema([*two, *([] if name == "related" else more)], "answer", ["no", "yes"])
    cuts = {} if name == "related" else {"q4": (3.0, 7.0)}
    surveys = []
    for theta in ("0.5" if name == "unrelated" else "0.6", "1/3", "0.999", 0.125, "1e-9", 1):
        names = [*schema.names, schema.target]
        for count in (1, 2, len(names)):
            parts = [names[k : k + count] for k in range(0, len(names), count)]
            groups = [Group(tuple(part), theta=theta, model=name) for part in parts]  # type: ignore[arg-type]
            laws = [PersonalLaw(("q1",), (1, 2)), PersonalLaw(("answer",), (2**40, 3))]
            if count == len(names) and name == "unrelated":
                laws = [PersonalLaw(("answer", "q3", "q0"), (5, 0, 3, *range(13)))]
            surveys.append(Questionnaire(schema, groups, laws if name == "unrelated" else (), cuts))

    def answers(survey: Questionnaire) -> dict[str, Any]:
        return {
            name: {"cell": chance.randrange(size)}
            for name, size in zip(survey.names, survey.sizes, strict=True)
        }

    yield from _rounds(surveys, answers)


def _rounds(collections: list[Any], answers: Callable[[Any], dict[str, Any]]) -> Iterator[Case]:
    while True:
        for collection in collections:
            yield Case(collection, answers(collection), b"")


def recorded(case: Case, chance: plain.Random, odd: float = 0.7) -> tuple[Case, dict[str, Any]]:
    """The case with a tape of what it needs and a little more, and what Python makes of it."""
    tape = Recording(case.collection, chance, odd)
    question = case.collection.questions[0]
    if question.name == "ss":
        tape.keys = 4 * question.mechanism.size
    made = result(case, tape)
    script = bytes(tape.script[: tape.used]) + chance.randbytes(8)
    return replace(case, tape=script, events=frozenset(tape.events)), made


def chosen(name: str, make: Callable[..., Iterator[Case]], chance: plain.Random) -> list[Any]:
    """Vectors of one mechanism: a plain round, then cases in which something rare happens."""
    found: list[tuple[Case, dict[str, Any]]] = []
    seen: dict[str, int] = {}
    wide = 0
    for number, case in enumerate(make(name, chance)):
        case = replace(case, simulated=number % 2 == 0, apart=number % 3 == 0)
        case, made = recorded(case, chance, 0.0 if number < 12 else 1.0)
        fresh = any(seen.get(event, 0) < 4 for event in case.events)
        wide += len(case.tape) > 600
        too_long = len(case.tape) > (600 if wide > 2 else 3000)
        usual = not fresh and (number % 4 or len(found) >= ENOUGH)
        if number >= 12 and (too_long or usual):
            continue
        found.append((case, made))
        for event in case.events:
            seen[event] = seen.get(event, 0) + 1
        if len(found) >= ENOUGH and WANTED[name] <= set(seen):
            return [vector(f"{name} {k}", *one) for k, one in enumerate(found)]
        assert number < 5000, f"{name}: no {WANTED[name] - set(seen)} in {number} cases"
    raise AssertionError


def vector(name: str, case: Case, made: dict[str, Any]) -> dict[str, Any]:
    body = {"name": name, **case.to_json(), **made}
    if case.events:
        body["events"] = sorted(case.events)
    return body


def documents_at_random(chance: plain.Random, kind: Callable[..., Any], count: int) -> list[Any]:
    """Whole documents, answered and refused."""
    found: list[Any] = []
    while len(found) < count:
        try:
            collection = kind(chance)
        except DiscreetError:
            continue
        for _ in range(3):
            case, made = recorded(given.random_case(collection, chance), chance)
            if len(case.tape) < 1500:
                KNOWN[collection.digest] = collection
                found.append(vector(f"{collection.kind} {len(found)}", case, made))
    return found


KNOWN: dict[str, Any] = {}


def odd_answers() -> dict[str, list[Any]]:
    """Every odd spelling, to every kind of question: [name, answer, cell or null]."""
    found: dict[str, list[Any]] = {}
    for number, values in enumerate(given.VALUES):
        features = [
            Categorical("choice", values, optional=number % 2 == 0),
            Numeric("whole", -3, 77, integer=True, optional=number % 2 == 1),
            Numeric("real", 0.1, 123456.75, optional=True),
        ]
        schema = Schema(
            features,
            "answer",
            ["no", "yes"],
            outliers=["error", "clip"][number % 2],  # type: ignore[arg-type]
            unseen=["error", "other"][number // 2 % 2],  # type: ignore[arg-type]
            missing_tokens=[[], ["?"], ["NA", "0"]][number % 3],
        )
        cuts = {"whole": (0.0, 1.0, 40.0), "real": (0.5, 1234.565)}
        groups = [Group((name,), theta=1) for name in (*schema.names, "answer")]
        survey = Questionnaire(schema, groups, (), cuts)
        KNOWN[survey.digest] = survey
        found[survey.digest] = [
            [
                name,
                given.written({"answer": odd})["answer"],
                given.cell_in(result(given.odd_case(survey, name, odd)), survey, name),
            ]
            for name in schema.names
            for odd in given.ODD
        ]
    return found


LABELS = [
    0.0, -0.0, 1.0, 18.0, 99.0, 0.1, 1 / 3, 123456.75, 1234565.0, 1234575.0, 1e5, 999999.5, 1e6,
    999998.5, 1e-4, 1e-5, 1.5e-5, 2.5, -7.25, 1e100, -1e-100, 5e-324, 1.7976931348623157e308,
    100000.5, 0.0001234565,
]  # fmt: skip


def labels(chance: plain.Random) -> list[Any]:
    """Bounds of bins as people read them."""
    numbers = [*LABELS, *(chance.uniform(-1, 1) * 10 ** chance.randint(-12, 12) for _ in range(60))]
    return [[number, f"{number:g}"] for number in numbers]


def main() -> None:
    made: dict[str, list[Any]] = {}
    for names, make in (
        (ORACLES, oracles),
        (MEAN_ORACLES, means),
        (("unrelated", "related"), sheets),
    ):
        for name in names:
            chance = plain.Random(f"discreet {name}")

            def noted(name: str, chance: plain.Random, make: Any = make) -> Iterator[Case]:
                for case in make(name, chance):
                    KNOWN[case.collection.digest] = case.collection
                    yield case

            made[name] = chosen(name, noted, chance)
    chance = plain.Random("discreet documents")
    made["plans"] = documents_at_random(chance, given.random_plan, 120)
    made["questionnaires"] = documents_at_random(chance, given.random_questionnaire, 90)
    of_judges = plain.Random("discreet judging")
    made["judging"] = documents_at_random(of_judges, given.random_judging_plan, 90)
    answers = odd_answers()
    used = {one["document"] for some in made.values() for one in some} | answers.keys()
    known = {
        digest: one.encode_canonical().decode()
        for digest, one in sorted(KNOWN.items())
        if digest in used
    }
    write("documents", known)
    for name, some in made.items():
        write(name, some)
    write("answers", answers)
    write("labels", labels(chance))


def write(name: str, some: Any) -> None:
    if isinstance(some, dict):
        lines = [f"{json.dumps(key)}: {json.dumps(one)}" for key, one in some.items()]
        text = "{\n" + ",\n".join(lines) + "\n}\n"
    else:
        text = "[\n" + ",\n".join(json.dumps(one) for one in some) + "\n]\n"
    (HERE / f"{name}.json").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
