"""Claims: who judges a model sends one randomized bit, whatever the model is.

The collector chooses the candidates, so they are taken from the worst: models that single out one
record, and models of extreme scores. Everything is exact: a real device is walked through every
random choice, and the very text that is sent is compared. Devices that cheat must fail.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from discreet.audit import enumeration
from discreet.audit.enumeration import find_worst_ratio, is_within_epsilon
from discreet.collection.report import Report
from discreet.collection.respondent import MemoryStore, Respondent
from discreet.local.plan import Plan, Question
from discreet.mechanisms.frequency import DE
from discreet.randomness import Random
from discreet.schema.schema import Categorical, Numeric, Schema
from discreet.statistics.candidate import MAX_SCORE, CandidateModel

Record = Mapping[str, Any]
Device = Callable[[Plan, Record, Random], str]

SCHEMA = Schema(
    [Categorical("a", ["x", "y", "z"]), Numeric("t", -1, 1, optional=False)], "c", ["no", "yes"]
)
EDGES = {"t": (-1.0, 0.0, 1.0)}
RECORDS: list[Record] = [
    {"a": a, "t": t, "c": c}
    for a, t, c in itertools.product(("x", "y", "z", None), (-0.5, 0.5), ("no", "yes"))
]


def make_candidate(offsets: list[int], a: list[list[int]], t: list[list[int]]) -> CandidateModel:
    return CandidateModel(np.array(offsets), {"a": np.array(a), "t": np.array(t)})


HONEST = make_candidate([0, -700], [[0, -50, -900, 0], [-400, 0, 0, 0]], [[0, -80], [-300, 0]])
SINGLING_OUT = make_candidate(
    [MAX_SCORE // 2, -MAX_SCORE], [[0, 0, 0, 0], [MAX_SCORE, 0, 0, 0]], [[0, 0], [MAX_SCORE, 0]]
)
"""Says yes of one record only: a is x and t is below zero."""
CONSTANT = make_candidate([0, -1], [[0] * 4] * 2, [[0] * 2] * 2)
EXTREME = make_candidate(
    [0, 0],
    [[-MAX_SCORE, MAX_SCORE] * 2, [MAX_SCORE, -MAX_SCORE] * 2],
    [[MAX_SCORE, -MAX_SCORE], [-MAX_SCORE, MAX_SCORE]],
)


def make_plan(epsilon: float, *candidates: CandidateModel) -> Plan:
    questions = [
        Question(("a", "t"), DE(epsilon, 2), weight, candidate=candidate)
        for weight, candidate in enumerate(candidates, 1)
    ]
    return Plan(SCHEMA, epsilon, questions, EDGES)


PLANS = {
    "as made": make_plan(1.0, HONEST, CONSTANT),
    "singling out": make_plan(0.7, SINGLING_OUT),
    "adversarial": make_plan(1.0, SINGLING_OUT, EXTREME, HONEST),
    "large epsilon": make_plan(5.0, EXTREME, SINGLING_OUT),
}


def compute_laws(device: Device, plan: Plan) -> list[dict[str, Fraction]]:
    """P(text that is sent | record), for every record."""
    return [
        enumeration.compute_law(lambda random, record=record: device(plan, record, random))
        for record in RECORDS
    ]


def is_private(laws: Sequence[Mapping[str, Fraction]], epsilon: float) -> bool:
    return is_within_epsilon(epsilon, find_worst_ratio(laws).ratio)


def send_verdict(plan: Plan, record: Record, random: Random) -> str:
    return Respondent(plan, MemoryStore(), random_state=random).report(record).to_json()


def compute_verdict(plan: Plan, question: int, record: Record) -> int:
    """The bit itself: 1 if the candidate is right about the record."""
    bare = replace(plan.questions[question], mechanism=DE(float("inf"), 2))
    open_plan = replace(plan, epsilon=float("inf"), questions=[bare])
    encoded = open_plan.encode_record(record)
    return int(open_plan.randomize_records(0, encoded, enumeration.EnumeratedRandom(()))[0, 0])


def send_bare_bit(plan: Plan, record: Record, random: Random) -> str:
    """The bit is not randomized: it is only whether a model is right, after all."""
    question = int(plan.draw_questions(1, random)[0])
    return Report(
        plan.digest, "0" * 32, question, (compute_verdict(plan, question, record),)
    ).to_json()


def judge_two_models(plan: Plan, record: Record, random: Random) -> str:
    """Two candidates are judged, each with the whole epsilon."""
    encoded = plan.encode_record(record)
    return str([plan.randomize_records(k, encoded, random).tolist() for k in (0, 1)])


def choose_a_right_model(plan: Plan, record: Record, random: Random) -> str:
    """The candidate is not drawn: the device takes the first that is right about the record."""
    verdicts = [compute_verdict(plan, k, record) for k in range(len(plan.questions))]
    question = verdicts.index(1) if 1 in verdicts else 0
    value = plan.randomize_records(question, plan.encode_record(record), random)
    return Report(plan.digest, "0" * 32, question, (int(value[0, 0]),)).to_json()


@pytest.mark.slow
@pytest.mark.parametrize("name", PLANS)
def test_a_judge_sends_one_randomized_bit(name: str) -> None:
    plan = PLANS[name]
    laws = compute_laws(send_verdict, plan)
    assert all(sum(law.values()) == 1 for law in laws)
    assert is_private(laws, plan.guarantee.epsilon)
    assert not is_private(laws, plan.guarantee.epsilon * 0.99)  # and the test is tight


@pytest.mark.slow
@pytest.mark.parametrize("twin", [send_bare_bit, judge_two_models, choose_a_right_model])
def test_twins_that_send_more_than_one_randomized_bit_are_refused(twin: Device) -> None:
    for name in ("as made", "adversarial"):
        assert not is_private(compute_laws(twin, PLANS[name]), PLANS[name].epsilon)


def test_a_verdict_depends_on_the_record_through_one_bit_only() -> None:
    """Records about which the candidates are alike right have the same law, to the last bit."""
    plan = PLANS["adversarial"]
    laws_by_verdicts: dict[tuple[int, ...], set[tuple[tuple[str, Fraction], ...]]] = {}
    for record, law in zip(RECORDS, compute_laws(send_verdict, plan), strict=True):
        verdicts = tuple(compute_verdict(plan, k, record) for k in range(len(plan.questions)))
        laws_by_verdicts.setdefault(verdicts, set()).add(tuple(sorted(law.items())))
    assert len(laws_by_verdicts) > 2
    assert all(len(laws) == 1 for laws in laws_by_verdicts.values())
