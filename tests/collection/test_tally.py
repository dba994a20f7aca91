"""Claims: a tally is exact, does not care for order, and refuses bad reports one at a time."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from comparisons import assert_same_tally
from discreet.collection.report import Report
from discreet.collection.respondent import MemoryStore, Respondent
from discreet.collection.tally import Tally
from discreet.errors import EstimationError, FormatError
from discreet.files.documents import dump_document
from discreet.local.plan import Plan, Question
from discreet.local.planning import PlanOptions, make_plan
from discreet.mechanisms.frequency import DE, SHE
from discreet.schema.schema import Categorical, Schema
from schemas import LETTER as SCHEMA


def reports_of(plan: Plan, number: int) -> list[Report]:
    """Reports of people who differ."""
    made = []
    for i in range(number):
        record: dict[str, Any] = {plan.schema.target: plan.schema.classes[i % 2]}
        for feature in plan.schema.features:
            if isinstance(feature, Categorical):
                record[feature.name] = feature.values[i % len(feature.values)]
            else:
                record[feature.name] = feature.lower + i % 7
        made.append(Respondent(plan, MemoryStore()).report(record))
    return made


def test_each_report_is_counted_once_and_in_any_order(any_plan: Plan) -> None:
    reports = reports_of(any_plan, 40)
    tally = Tally.from_reports(any_plan, reports)
    assert tally.reports == 40
    assert_same_tally(tally, Tally.from_reports(any_plan, reversed(reports)))
    for question, respondents, sums in zip(
        any_plan.questions, tally.counted, tally.sums, strict=True
    ):
        values = [r.value for r in reports if any_plan.questions[r.question] is question]
        assert len(values) == respondents
        if values:
            matrix: Any = np.array(values)
            if question.power == 0:
                matrix = question.mechanism.decode(matrix)  # type: ignore[union-attr]
            assert question.mechanism.tally(matrix).tolist() == sums.tolist()
        assert sums.dtype == np.int64


def test_text_bytes_and_reports_count_alike(plan: Plan) -> None:
    reports = reports_of(plan, 9)
    whole = Tally.from_reports(plan, reports)
    assert_same_tally(whole, Tally.from_reports(plan, [report.to_json() for report in reports]))
    assert_same_tally(
        whole, Tally.from_reports(plan, [report.to_json().encode() for report in reports])
    )


def test_tallies_of_two_collectors_add_up(any_plan: Plan) -> None:
    reports = reports_of(any_plan, 30)
    whole = Tally.from_reports(any_plan, [*reports, "garbage"])
    one, two = (
        Tally.from_reports(any_plan, reports[:11]),
        Tally.from_reports(any_plan, [*reports[11:], "garbage"]),
    )
    assert_same_tally(one + two, whole)
    assert_same_tally(two + one, whole)
    assert_same_tally(Tally(any_plan) + whole, whole)
    assert one.reports == 11  # what was added stays as it is


def test_a_tally_comes_back_from_json_unchanged(any_plan: Plan) -> None:
    tally = Tally.from_reports(any_plan, [*reports_of(any_plan, 20), "garbage"])
    tally.simulated = True
    again = Tally.from_json(tally.to_json())
    assert_same_tally(again, tally)
    assert again.to_json() == tally.to_json()
    first = reports_of(any_plan, 1)[0]
    tally.add(first)
    assert Tally.from_json(tally.to_json()).add(first).status == "repeated"


@pytest.mark.slow
@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_order_splits_and_repetitions_do_not_matter(data: st.DataObject) -> None:
    plan = make_plan(SCHEMA, 1.0, 50, PlanOptions(kind="paper", oracle="de"))
    identity = st.integers(0, 5).map(lambda number: f"{number:032x}")
    answered = {
        # one answer an id: the same id with another answer is order-dependent, tested below
        name: Report(plan.digest, name, int(name, 16) % 2, (int(name, 16) % 2,))
        for name in (f"{number:032x}" for number in range(6))
    }
    junk = st.sampled_from(
        [
            "",
            "{",
            Report("sha256:other", "0" * 32, 0, (0,)),
            Report(plan.digest, "0" * 32, 9, (0,)),
            Report(plan.digest, "0" * 32, 0, (7,)),
        ]
    )
    stream = data.draw(st.lists(st.one_of(identity.map(answered.__getitem__), junk), max_size=25))
    shuffled = data.draw(st.permutations(stream))
    whole = Tally.from_reports(plan, stream)
    assert_same_tally(whole, Tally.from_reports(plan, shuffled))
    good = [one for one in stream if isinstance(one, Report) and one in answered.values()]
    assert whole.reports == len({one.id for one in good})
    assert whole.repeated == len(good) - whole.reports
    assert whole.rejected.total() == len(stream) - len(good)
    alone = list({one.id: one for one in good}.values())
    cut = data.draw(st.integers(0, len(alone)))
    added = Tally.from_reports(plan, alone[:cut]) + Tally.from_reports(plan, alone[cut:])
    assert [s.tolist() for s in added.sums] == [s.tolist() for s in whole.sums]


# what is refused, with a reason, and nothing else lost


def edited(report: Report, **change: Any) -> str:
    return dump_document("report", 2, {**report.to_body(), **change}, indent=None)


BAD: list[tuple[str, Callable[[Report], Any]]] = [
    ("misshapen", lambda report: ""),
    ("misshapen", lambda report: b"\xff\xfe"),
    ("misshapen", lambda report: report.to_json()[:-20]),
    ("misshapen", lambda report: report.to_json().replace('"question": ', '"question": 1')),
    ("misshapen", lambda report: '{"format":"discreet/report","version":2,"id":"\\ud800"}'),
    ("misshapen", lambda report: '{"format":"discreet/report","version":2,"value":%s}' % (
        "[" * 900 + "]" * 900)),
    ("misshapen", lambda report: report.to_json() + " " * (1 << 24)),
    ("misshapen", lambda report: edited(report, value=["1"])),
    ("misshapen", lambda report: edited(report, value=[1.5])),
    ("misshapen", lambda report: edited(report, value=[True])),
    ("misshapen", lambda report: edited(report, value=None)),
    ("misshapen", lambda report: edited(report, id="1")),
    ("misshapen", lambda report: edited(report, name="Ada")),
    ("misshapen", lambda report: dump_document("report", 3, report.to_body())),
    ("misshapen", lambda report: dump_document("model", 1, report.to_body())),
    ("foreign plan", lambda report: edited(report, collection="sha256:" + "0" * 64)),
    ("foreign plan", lambda report: edited(report, collection="")),
    ("unknown question", lambda report: edited(report, question=99)),
    ("unknown question", lambda report: edited(report, question=-1)),
    ("unknown question", lambda report: edited(report, question=10**30)),
    ("out of domain", lambda report: edited(report, value=[])),
    ("out of domain", lambda report: edited(report, value=[-1])),
    ("out of domain", lambda report: edited(report, value=[10**6])),
    ("out of domain", lambda report: edited(report, value=[0, 0])),
    ("out of domain", lambda report: edited(report, value=[10**30])),
    ("out of domain", lambda report: edited(report, value=[-(1 << 63)])),
    ("out of domain", lambda report: edited(report, value=[0] * 100_000)),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "spoil"), BAD)
def test_a_bad_report_is_refused_with_a_reason_and_nothing_is_lost(
    schema: Schema, kind: str, spoil: Callable[[Report], Any]
) -> None:
    plan = make_plan(schema, 1.0, options=PlanOptions(oracle="de"))
    reports = reports_of(plan, 5)
    tally = Tally.from_reports(plan, reports[:3])
    receipt = tally.add(spoil(reports[4]))
    assert receipt.status == "rejected"
    assert receipt.reason.startswith(f"{kind}: ")
    assert "\n" not in receipt.reason
    assert tally.rejected == {kind: 1}
    assert [tally.add(report).status for report in reports[3:]] == ["counted"] * 2
    assert tally.rejected.total() == 1
    tally.rejected.clear()
    assert_same_tally(tally, Tally.from_reports(plan, reports))


def test_the_same_report_is_acknowledged_and_counted_once(any_plan: Plan) -> None:
    reports = reports_of(any_plan, 4)
    tally = Tally.from_reports(any_plan, reports)
    before = tally.to_json()
    assert [tally.add(report.to_json()).status for report in reports] == ["repeated"] * 4
    assert tally.repeated == 4
    tally.repeated = 0
    assert tally.to_json() == before


def test_an_id_that_comes_with_other_bytes_is_refused() -> None:
    plan = make_plan(SCHEMA, 1.0, options=PlanOptions(kind="paper", oracle="de"))
    first = Report(plan.digest, "a" * 32, 0, (0,))
    tally = Tally.from_reports(plan, [first])
    for other in (
        Report(plan.digest, "a" * 32, 0, (1,)),
        Report(plan.digest, "a" * 32, 1, (0,)),
    ):
        receipt = tally.add(other)
        assert (receipt.status, receipt.reason[:9]) == ("rejected", "id reused")
    assert tally.add(first).status == "repeated"
    assert tally.reports == 1
    assert tally.rejected == {"id reused": 2}


def test_tallies_that_share_a_report_are_not_merged(plan: Plan) -> None:
    reports = reports_of(plan, 6)
    one, two = Tally.from_reports(plan, reports[:4]), Tally.from_reports(plan, reports[3:])
    with pytest.raises(EstimationError, match="1 reports are in both"):
        one + two


def test_tallies_of_different_plans_are_not_merged(plan: Plan, schema: Schema) -> None:
    with pytest.raises(EstimationError, match="different plans"):
        Tally(plan) + Tally(make_plan(schema, 2.0))
    with pytest.raises(TypeError):
        Tally(plan) + 1  # type: ignore[operator]


def test_a_simulation_stays_one_when_merged(plan: Plan) -> None:
    assert (Tally(plan) + Tally(plan, simulated=True)).simulated
    assert not (Tally(plan) + Tally(plan)).simulated


# many at once


@pytest.mark.slow
def test_answers_with_multiplicities_are_answers_repeated(any_plan: Plan) -> None:
    chance = random.Random(3)
    reports = reports_of(any_plan, 25)
    one, many = Tally(any_plan), Tally(any_plan)
    for report in reports:
        times = chance.choice([0, 1, 2, 3, 1000])
        many.add_values(report.question, [report.value], [times])
        for _ in range(times):
            one.add_values(report.question, [report.value])
    assert_same_tally(one, many)


def test_multiplicities_must_fit() -> None:
    tally = Tally(make_plan(SCHEMA, 1.0, options=PlanOptions(oracle="de")))
    for times in ([1, 2], [-1]):
        with pytest.raises(EstimationError, match="how often"):
            tally.add_values(0, [[0]], times)


def test_sums_never_wrap() -> None:
    oracle = SHE(1e-6, 4)
    tally = Tally(Plan(SCHEMA, 1.0, [Question(("a",), oracle, 1)]))
    most = [[oracle.max_magnitude] * 4]
    with pytest.raises(EstimationError, match="no longer be exact"):
        tally.add_values(0, most, [1 << 40])
    tally.add_values(0, most, [1 << 28])
    assert tally.sums[0].tolist() == [oracle.max_magnitude << 28] * 4
    second, third = (Tally(tally.collection) for _ in range(2))
    second.add_values(0, most, [(1 << 28) - 1])
    third.add_values(0, most, [(1 << 28) - 2])
    both = tally + second
    with pytest.raises(EstimationError, match="no longer be exact"):
        both + third


# tally files


def resealed(tally: Tally, **change: Any) -> str:
    whole = {**json.loads(tally.to_json()), **change}
    body = {key: whole[key] for key in whole if key not in ("format", "version", "digest")}
    return dump_document("tally", 4, body)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"counted": []}, "does not fit"),
        ({"counted": [1, 2, 3, 4]}, "does not fit"),
        ({"sums": [[1], [2]]}, "does not fit"),
        ({"counted": [-1, 0]}, "negative count"),
        ({"repeated": -1}, "negative count"),
        ({"rejected": {"misshapen": -1}}, "negative count"),
        ({"sums": [[10**40, 0], [0, 0, 0, 0]]}, "beyond 2\\^62"),
        ({"collection": "{}"}, "not a plan or questionnaire"),
        ({"surprise": 1}, "invalid at surprise"),
    ],
)
def test_a_tally_file_that_contradicts_itself_is_refused(
    change: dict[str, Any], message: str
) -> None:
    plan = Plan(SCHEMA, 1.0, [Question((), DE(1.0, 2), 1), Question(("a",), DE(1.0, 4), 1)])
    with pytest.raises(FormatError, match=message):
        Tally.from_json(resealed(Tally(plan), **change))


def test_a_damaged_tally_file_is_refused(plan: Plan) -> None:
    text = Tally(plan).to_json()
    with pytest.raises(FormatError, match="incomplete"):
        Tally.from_json(text[:-5])
    with pytest.raises(FormatError, match="changed or damaged"):
        Tally.from_json(text.replace('"repeated": 0', '"repeated": 1'))
