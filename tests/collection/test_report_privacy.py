"""Claims: what leaves a device, as it is written, says no more than epsilon allows.

Everything is exact: ``law`` walks a real device through every random choice it can make, each
with its probability as a fraction, and collects the very text that is sent. Devices that cheat go
through the same functions and must fail.
"""

from __future__ import annotations

import itertools
import json
import math
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import Any

import pytest

from discreet.audit import enumeration
from discreet.audit.enumeration import find_worst_ratio, is_within_epsilon
from discreet.collection.report import Report
from discreet.collection.respondent import MemoryStore, Respondent
from discreet.local.plan import Plan, Question
from discreet.local.planning import PlanOptions, make_plan
from discreet.mechanisms.frequency import DE, HR, OUE, SS, SUE, THE, FrequencyOracle
from discreet.mechanisms.mean import DuchiMany, HybridMany, OneBit
from discreet.randomness import Random
from discreet.schema.schema import Categorical, Numeric, Schema

Record = Mapping[str, Any]
Device = Callable[[Plan, Record, Random], str]
Law = dict[str, Fraction]

SCHEMA = Schema(
    [Categorical("a", ["x", "y", "z"], optional=False), Numeric("t", -1, 1, optional=False)],
    "c",
    ["no", "yes"],
)
RECORDS: list[Record] = [
    {"a": a, "t": t, "c": c}
    for a, t, c in itertools.product("xyz", (-1.0, 0.0, 1.0), ("no", "yes"))
]
"""Numbers on the grid; what lies between is a mixture of its neighbours."""


def law(device: Device, plan: Plan, record: Record) -> Law:
    """P(text that is sent | record), over all paths through the device."""
    return enumeration.compute_law(lambda random: device(plan, record, random))


def is_private(laws: Sequence[Law], epsilon: float) -> bool:
    """Whether no text is more than exp(epsilon) times likelier from one record than another."""
    return is_within_epsilon(epsilon, find_worst_ratio(laws).ratio)


def honest(plan: Plan, record: Record, random: Random) -> str:
    open_ = math.isinf(plan.epsilon)
    person = Respondent(plan, MemoryStore(), unprotected=open_, random_state=random)
    return person.report(record).to_json()


def asked_twice(plan: Plan, record: Record, random: Random) -> str:
    """The first answer was lost on the way, so the collector asks again."""
    respondent = Respondent(plan, MemoryStore(), random_state=random)
    return respondent.report(record).to_json() + respondent.report(record).to_json()


def plan_of(epsilon: float, *kinds: Any) -> Plan:
    """The class by direct encoding, and one more question a kind; weights 1, 2, 3, …"""
    questions = [Question((), DE(epsilon, 2), 1)]
    for weight, kind in enumerate(kinds, 2):
        if issubclass(kind, FrequencyOracle):
            questions.append(Question(("a",), kind(epsilon, 6), weight))
        else:
            questions.append(Question(("t",), kind(epsilon, 2, resolution=1), weight, 1))
            questions.append(Question(("t",), kind(epsilon, 2, resolution=1), 1, 2))
    return Plan(SCHEMA, epsilon, questions)


PLANS = [
    plan_of(epsilon, *kinds)
    for epsilon in (0.7, 1.0)
    for kinds in ([DE], [SS], [SUE], [OUE], [THE], [HR], [OneBit], [DuchiMany], [DE, OneBit])
]


def named(plan: Plan) -> str:
    names = "-".join(question.mechanism.name for question in plan.questions[1:])
    return f"{names}-{plan.epsilon:g}"


@pytest.mark.slow
@pytest.mark.parametrize("plan", PLANS, ids=named)
def test_the_text_that_is_sent_keeps_the_promise(plan: Plan) -> None:
    laws = [law(honest, plan, record) for record in RECORDS]
    assert is_private(laws, plan.guarantee.epsilon)
    assert not is_private(laws, plan.guarantee.epsilon * 0.9)  # and the test is tight


def expected(plan: Plan, record: Record) -> dict[tuple[int, tuple[int, ...]], Fraction]:
    """P(question, value | record): the plan's shares times the mechanisms' channels."""
    found: dict[tuple[int, tuple[int, ...]], Fraction] = defaultdict(Fraction)
    whole = plan.encode_record(record)
    checked = {"c": whole.classes[0], **{name: one[0] for name, one in whole.columns.items()}}
    weights = sum(question.weight for question in plan.questions)
    for number, question in enumerate(plan.questions):
        mechanism, share = question.mechanism, Fraction(question.weight, weights)
        if isinstance(mechanism, FrequencyOracle):
            cell = int(checked["c"])
            for name in question.features:
                cell = cell * plan.cells[name].size + int(checked[name])
            row = mechanism.channel()[cell]
        else:
            t = int(checked["t"]) if question.power == 1 else 2 * int(checked["t"]) ** 2 - 1
            vector = [0, 0]
            vector[int(checked["c"])] = t
            row = mechanism.channel()[mechanism.inputs().index(tuple(vector))]
        for value, chance in zip(mechanism.outputs(), row, strict=True):
            found[number, tuple(int(v) for v in value)] += share * chance
    return {key: chance for key, chance in found.items() if chance}


@pytest.mark.slow
@pytest.mark.parametrize("plan", PLANS, ids=named)
def test_what_is_sent_follows_the_public_channel(plan: Plan) -> None:
    for record in RECORDS[::5]:
        sent = {
            Report.from_json(text): chance for text, chance in law(honest, plan, record).items()
        }
        by_content = {(r.question, r.value): chance for r, chance in sent.items()}
        assert by_content == expected(plan, record)


def test_every_record_keeps_the_promise_of_a_larger_plan() -> None:
    """Shares times channels, where walking through the device would take too long."""
    plan = Plan(
        SCHEMA,
        1.0,
        [
            Question((), SUE(1.0, 2), 5),
            Question(("a",), OUE(1.0, 6), 3),
            Question(("t",), HybridMany(1.0, 2, resolution=2), 2, 1),
            Question(("t",), DuchiMany(0.5, 2, resolution=2), 7, 2),
        ],
    )
    laws = [{str(key): p for key, p in expected(plan, record).items()} for record in RECORDS]
    assert is_private(laws, plan.guarantee.epsilon)


def question_law(texts: Law) -> dict[int, Fraction]:
    found: dict[int, Fraction] = defaultdict(Fraction)
    for text, chance in texts.items():
        found[json.loads(text)["question"]] += chance
    return dict(found)


def test_the_question_is_drawn_without_looking_at_the_record() -> None:
    plan = plan_of(1.0, DE, OneBit)
    weights = [question.weight for question in plan.questions]
    shares = {number: Fraction(weight, sum(weights)) for number, weight in enumerate(weights)}
    for record in RECORDS:
        assert question_law(law(honest, plan, record)) == shares


def test_asking_twice_tells_nothing_more() -> None:
    plan = plan_of(1.0, DE)
    assert is_private([law(asked_twice, plan, record) for record in RECORDS], 1.0)


@pytest.mark.slow
def test_two_reports_cost_what_the_plan_says() -> None:
    def sends_both(plan: Plan, record: Record, random: Random) -> str:
        respondent = Respondent(plan, MemoryStore(), random_state=random)
        first = respondent.report(record).to_json()
        return first + respondent.report(record, again=True).to_json()

    once = make_plan(
        SCHEMA, 1.0, options=PlanOptions(oracle="de", numeric="gaussian", approach=2, reports=2)
    )
    alone = [Question(q.features, q.mechanism, 1, q.power) for q in once.questions[:2]]
    plan = Plan(SCHEMA, once.epsilon, alone, reports=2)
    laws = [law(sends_both, plan, record) for record in RECORDS]
    assert plan.guarantee.epsilon == 1.0
    assert is_private(laws, 1.0)
    assert not is_private(laws, 0.9)


# devices that cheat, and must fail the same test


def only_who_has_something_to_say(plan: Plan, record: Record, random: Random) -> str:
    """The question depends on the record: people with an x answer about a, others do not."""

    class Choosy(Respondent):
        def report(self, record: Mapping[str, Any], *_: Any, **__: Any) -> Report:
            self.group = 1 if record["a"] == "x" else 0
            return super().report(record)

    return Choosy(plan, MemoryStore(), random_state=random).report(record).to_json()


def answers_everything(plan: Plan, record: Record, random: Random) -> str:
    """All n + 1 questions, each with the whole epsilon, as in the published experiments."""
    grouped = Plan(plan.schema, plan.epsilon, plan.questions, plan.edges, "groups")
    reports = [
        Respondent(grouped, MemoryStore(), group, random_state=random).report(record)
        for group in range(len(plan.questions))
    ]
    return "".join(report.to_json() for report in reports)


def draws_again(plan: Plan, record: Record, random: Random) -> str:
    """Nothing is kept, so a retry is a second report."""
    sent = [Respondent(plan, MemoryStore(), random_state=random).report(record) for _ in range(2)]
    return "".join(report.to_json() for report in sent)


@pytest.mark.slow
@pytest.mark.parametrize("twin", [only_who_has_something_to_say, answers_everything, draws_again])
def test_a_device_that_cheats_is_found_out(twin: Device) -> None:
    """The twins of the test above."""
    plan = plan_of(1.0, DE)
    assert not is_private([law(twin, plan, record) for record in RECORDS], plan.guarantee.epsilon)


def test_answering_everything_really_costs_the_sum() -> None:
    plan = plan_of(1.0, DE)
    laws = [law(answers_everything, plan, record) for record in RECORDS]
    assert not is_private(laws, 1.9)
    assert is_private(laws, len(plan.questions) * 1.0)


def test_an_answer_without_noise_is_found_out() -> None:
    plan = Plan(SCHEMA, math.inf, [Question((), DE(math.inf, 2), 1)])
    assert not is_private([law(honest, plan, record) for record in RECORDS], 60.0)
