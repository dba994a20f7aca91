"""Many reports at once are counted as one after the other would be, and read as strictly."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from discreet import Categorical, Schema
from discreet.collection import report as report_module
from discreet.collection.report import Report, derive_report_id
from discreet.collection.tally import Tally
from discreet.errors import FormatError
from discreet.local import PlanOptions, make_plan

SCHEMA = Schema([Categorical("a", ["x", "y"]), Categorical("b", ["u", "v", "w"])], "c", ["n", "p"])
PLAN = make_plan(SCHEMA, 1.0, 1000, PlanOptions(oracle="de"))


def made(number: int, question: int = 0, value: tuple[int, ...] = (0,), **how: Any) -> Report:
    key = number.to_bytes(16, "big")
    return Report(
        how.get("plan", PLAN.digest), derive_report_id(key), question, value, **how.get("s", {})
    )


def delivery() -> list[Any]:
    """Good, repeated, reused, foreign, impossible and misshapen reports, mixed."""
    good = [made(i, i % len(PLAN.questions), (i % 3,)) for i in range(60)]
    return [
        *good[:20],
        good[3],
        made(5, 1, (1,)),
        made(100, plan="sha256:" + "0" * 64),
        made(101, 99),
        made(102, 0, (10**30,)),
        made(103, 0, (0, 0)),
        "{}",
        b"\xff",
        *(one.to_json() for one in good[15:]),
        made(104, s={"simulated": True}),
        made(104, s={"simulated": True}),
    ]


def test_a_piece_at_once_is_the_same_as_one_after_the_other() -> None:
    single, whole = Tally(PLAN), Tally(PLAN)
    receipts = [single.add(one) for one in delivery()]
    assert whole.add_all(delivery()) == receipts
    assert whole.to_json() == single.to_json() == Tally.from_reports(PLAN, delivery()).to_json()
    assert {one.status for one in receipts} == {"counted", "repeated", "rejected"}
    assert single.rejected.total() == 7
    assert single.repeated == 7


def changed(change: Callable[[dict[str, Any]], Any], *, sealed: bool = True) -> str:
    """A report with another content, with the digest of that content."""
    from discreet.files.documents import compute_digest, encode_canonical

    body = json.loads(made(1).to_json())
    del body["digest"]
    change(body)
    if sealed:
        body["digest"] = compute_digest(encode_canonical(body))
    return json.dumps(body)


WRONG = {
    "a digest that is not its own": changed(lambda b: b.update(digest=PLAN.digest), sealed=False),
    "no digest": changed(lambda b: None, sealed=False),
    "a newer version": changed(lambda b: b.update(version=3)),
    "a version that is true": changed(lambda b: b.update(version=True)),
    "a version with a point": changed(lambda b: b.update(version=2.0)),
    "another format": changed(lambda b: b.update(format="discreet/plan")),
    "one more key": changed(lambda b: b.update(more=1)),
    "a question that is true": changed(lambda b: b.update(question=True)),
    "a question with a point": changed(lambda b: b.update(question=0.0)),
    "a number with a point": changed(lambda b: b.update(value=[0.0])),
    "a number that is true": changed(lambda b: b.update(value=[True])),
    "a number in quotes": changed(lambda b: b.update(value=["0"])),
    "a value that is no list": changed(lambda b: b.update(value=0)),
    "an id of another form": changed(lambda b: b.update(id="A" * 32)),
    "an id with a line break": changed(lambda b: b.update(id=b["id"] + "\n")),
    "nothing": "null",
}  # fmt: skip


@pytest.mark.parametrize("case", WRONG)
def test_what_is_read_quickly_is_read_as_strictly(case: str) -> None:
    assert report_module._parse_canonical(WRONG[case]) is None
    with pytest.raises(FormatError):
        Report.from_json(WRONG[case])


@pytest.mark.parametrize(
    "report", [made(1), made(2, 3, (-5, 10**30)), made(3, 0, ()), made(4, s={"simulated": True})]
)
def test_both_ways_of_reading_give_the_same(
    report: Report, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = report.to_json()
    quick = Report.from_json(text)
    monkeypatch.setattr(report_module, "_parse_canonical", lambda _: None)
    assert quick == Report.from_json(text) == Report.from_json(text.encode()) == report
