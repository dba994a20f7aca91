"""Claims: every report counts once, whatever file it is in; forged tallies are refused."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from discreet.collection.parquet_reports import ReportFile
from discreet.collection.parquet_tally import tally_parquet
from discreet.collection.report import Report
from discreet.collection.respondent import MemoryStore, Respondent
from discreet.collection.simulation import simulate_tally
from discreet.collection.tally import ID_SAMPLE_SIZE, Tally, find_answer_faults
from discreet.collection.text_reports import SheetCsv, read_text_reports
from discreet.errors import EstimationError, FormatError
from discreet.files.documents import dump_document
from discreet.local import estimate_statistics
from discreet.local.plan import Plan, Question
from discreet.local.planning import PlanOptions, make_plan
from discreet.mechanisms.frequency import DE, HR, OLH, OUE, SHE, SS
from discreet.mechanisms.mean import HybridMany, LaplaceMean
from discreet.randomness import SeededRandom
from discreet.schema.schema import Categorical, Numeric, Schema
from discreet.survey.questionnaire import Group, Questionnaire
from schemas import LETTER as SMALL


def sent(survey: Questionnaire, people: int, seed: int = 0) -> tuple[Any, Any]:
    """Ids and randomized sheets of some people."""
    source = SeededRandom(seed)
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, survey.sizes, (people, len(survey.sizes)))
    values = survey.randomize_records(0, truth, source)
    return source.raw(16 * people).reshape(-1, 16), values


# one id space


def test_the_same_tally_is_never_merged_twice(survey: Questionnaire, tmp_path: Path) -> None:
    for name, seed in (("a", 1), ("b", 2)):
        with ReportFile(tmp_path / f"{name}.parquet", survey) as file:
            file.write(0, *sent(survey, 50, seed))
    a, b = (tally_parquet(survey, tmp_path / f"{name}.parquet") for name in "ab")
    assert not a.seen
    both = a + b
    assert both.reports == 100
    for again in (a, Tally.from_json(a.to_json()), tally_parquet(survey, tmp_path / "a.parquet")):
        with pytest.raises(EstimationError, match="would count twice"):
            both + again
        with pytest.raises(EstimationError, match="would count twice"):
            again + a
    small = Tally.from_json(a.to_json(include_seen=False))
    with pytest.raises(EstimationError, match="would count twice"):
        Tally.from_json(both.to_json(include_seen=False)) + small


def test_tallies_without_ids_are_told_apart_by_their_content() -> None:
    plan = make_plan(SMALL, 1.0, options=PlanOptions(oracle="de"))
    records = plan.encode_columns({"a": ["x", "y"] * 50}, np.arange(100) % 2)
    one, two = (simulate_tally(plan, records, SeededRandom(seed)) for seed in (1, 2))
    both = one + two
    for again in (one, two, both):
        with pytest.raises(EstimationError, match="the same tally is in both"):
            Tally.from_json(both.to_json()) + again


@pytest.mark.slow
def test_tallies_of_large_files_that_overlap_are_noticed(
    survey: Questionnaire, tmp_path: Path
) -> None:
    """A tenth of 20,000 sheets is in both: about a hundred of the 1,024 smallest ids."""
    ids, values = sent(survey, 20_000)
    for name, rows in (
        ("a", slice(0, 11_000)),
        ("b", slice(9_000, None)),
        ("c", slice(11_000, None)),
    ):
        with ReportFile(tmp_path / f"{name}.parquet", survey) as file:
            file.write(0, ids[rows], values[rows])
    a, b, c = (tally_parquet(survey, tmp_path / f"{name}.parquet") for name in "abc")
    assert len(a.sample) == ID_SAMPLE_SIZE
    assert (a + c).reports == 20_000
    with pytest.raises(EstimationError, match="sheets are in both"):
        a + b


def test_one_by_one_and_in_bulk_the_same_delivery_has_the_same_name(
    survey: Questionnaire, tmp_path: Path
) -> None:
    ids, values = sent(survey, 3000)
    with ReportFile(tmp_path / "s.parquet", survey) as file:
        file.write(0, ids, values)
        file.write(0, ids[:2500], values[:2500])  # repeated deliveries do not change it
    bulked = tally_parquet(survey, tmp_path / "s.parquet")
    rows = zip(ids, values.tolist(), strict=True)
    single = Tally.from_reports(
        survey, [Report(survey.digest, i.tobytes().hex(), 0, tuple(v)) for i, v in rows]
    )
    assert bulked.fingerprint == single.fingerprint
    with pytest.raises(EstimationError, match="would count twice"):
        single + bulked


# withdrawing


def test_withdrawn_reports_are_subtracted_exactly(any_plan: Plan, record: Any) -> None:
    reports = [Respondent(any_plan, MemoryStore()).report(record) for _ in range(12)]
    tally = Tally.from_reports(any_plan, reports)
    left = tally.withdraw_reports(reports[:5])
    rest = Tally.from_reports(any_plan, reports[5:])
    assert left.counted.tolist() == rest.counted.tolist()
    assert [s.tolist() for s in left.sums] == [s.tolist() for s in rest.sums]
    assert tally.reports == 12  # the tally itself stays as it is
    assert left.add(reports[0]).reason.startswith("withdrawn")
    assert Tally.from_json(left.to_json()).add(reports[0]).status == "rejected"
    assert left.add(reports[7]).status == "repeated"
    for wrong in ([reports[0]], ["no report"], [reports[6], reports[6]]):
        with pytest.raises(EstimationError, match="to withdraw"):
            left.withdraw_reports(wrong)
    with pytest.raises(EstimationError):  # neither the whole nor the rest is a second delivery
        left + tally


def test_withdrawn_sheets_are_subtracted_exactly(survey: Questionnaire) -> None:
    ids, values = sent(survey, 60)
    sheets = [
        Report(survey.digest, i.tobytes().hex(), 0, tuple(v))
        for i, v in zip(ids, values.tolist(), strict=True)
    ]
    left = Tally.from_reports(survey, sheets).withdraw_reports(sheets[:20])
    rest = Tally.from_reports(survey, sheets[20:])
    assert [a.tolist() for a in left.get_distinct_answers()] == [
        a.tolist() for a in rest.get_distinct_answers()
    ]
    stranger = Report(survey.digest, "f" * 32, 0, sheets[0].value)
    with pytest.raises(EstimationError, match="not counted"):
        left.withdraw_reports([stranger])


# forged tallies

MECHANISMS = [
    DE(1.0, 4), SS(1.0, 4), OUE(1.0, 4), OLH(1.0, 4), HR(1.0, 4), SHE(1.0, 4),
]  # fmt: skip


@pytest.mark.parametrize("mechanism", MECHANISMS, ids=lambda one: one.name)
@pytest.mark.parametrize("excess", [1, 10**6])
def test_sums_beyond_their_reports_are_refused(mechanism: Any, excess: int) -> None:
    plan = Plan(SMALL, 1.0, [Question(("a",), mechanism, 1)])
    tally = simulate_tally(
        plan, plan.encode_columns({"a": ["x"] * 9}, np.array([0, 1, 0] * 3)), SeededRandom(0)
    )
    assert Tally.from_json(tally.to_json()).reports == 9
    most = 9 * mechanism.max_magnitude if mechanism.name == "she" else 9
    for sums in ([most + excess, 0, 0, 0], [-most * (mechanism.name == "she") - excess, 0, 0, 0]):
        with pytest.raises(FormatError, match="contradicts itself"):
            Tally.from_json(forged(tally, sums=[sums]))
    if mechanism.name in ("de", "ss"):  # every report supports equally many cells
        with pytest.raises(FormatError, match="contradicts itself"):
            Tally.from_json(forged(tally, sums=[[1, 0, 0, 0]]))
    with pytest.raises(FormatError, match="contradicts itself"):
        Tally.from_json(forged(tally, counted=[0]))


@pytest.mark.parametrize(
    "mechanism", [HybridMany(1.0, 2), LaplaceMean(1.0, 2, active=1)], ids=lambda one: one.name
)
def test_sums_of_numbers_beyond_their_reports_are_refused(mechanism: Any) -> None:
    schema = Schema([Numeric("t", 0, 1, optional=False)], "c", ["no", "yes"])
    plan = Plan(schema, 1.0, [Question(("t",), mechanism, 1, 1)])
    tally = simulate_tally(
        plan, plan.encode_columns({"t": [0.5] * 9}, np.array([0, 1, 0] * 3)), SeededRandom(0)
    )
    assert Tally.from_json(tally.to_json()).reports == 9
    for place, most in enumerate(mechanism._get_unit_limits()):
        sums = tally.sums[0].copy()
        sums[2 * place] = 9 * most + 1
        with pytest.raises(FormatError, match="contradicts itself"):
            Tally.from_json(forged(tally, sums=[sums.tolist()]))


def forged(tally: Tally[Any], **change: Any) -> str:
    whole = {**json.loads(tally.to_json()), **change}
    return dump_document(
        "tally", 4, {k: v for k, v in whole.items() if k not in ("format", "version", "digest")}
    )


# people and reports


def test_totals_count_people_not_reports() -> None:
    plan = make_plan(SMALL, 6.0, 300, PlanOptions(reports=3))
    tally, rng = Tally(plan), np.random.default_rng(0)
    for number in range(300):
        person = Respondent(plan, MemoryStore(), random_state=number)
        record = {"a": "xy"[rng.integers(2)], "c": ["no", "yes"][number % 3 == 0]}
        for _ in range(3):
            tally.add(person.report(record, again=True))
    assert (tally.reports, tally.people) == (900, 300)
    assert float(np.sum(estimate_statistics(tally).totals)) == pytest.approx(300)
    assert estimate_statistics(tally).totals[1] == pytest.approx(100, abs=60)


# refusals, many at once


def test_refusals_of_many_are_those_of_one_by_one(any_plan: Plan, record: Any) -> None:
    reports = [Respondent(any_plan, MemoryStore()).report(record) for _ in range(6)]
    questions = [r.question for r in reports] + [-1, 99, 10**30, 0, reports[0].question, 0]
    width = any_plan.questions[0].width
    values: list[Any] = [r.value for r in reports]
    values += [(0,), (0,), (0,), (0,) * (width + 1), (10**30,) * len(reports[0].value), ()]
    faults = find_answer_faults(any_plan, questions, values)
    assert faults[:6] == [""] * 6
    assert faults[6:9] == ["unknown question"] * 3
    assert faults[9:] == ["out of domain"] * 3
    for question, value, fault in zip(questions, values, faults, strict=True):
        receipt = Tally(any_plan).add(Report(any_plan.digest, "0" * 32, question, tuple(value)))
        assert receipt.reason.split(":")[0] == fault
    matrix = np.array([reports[0].value] * 3)
    assert find_answer_faults(any_plan, [reports[0].question] * 3, matrix) == [""] * 3


# sheets as CSV


def test_a_csv_of_sheets_names_its_questionnaire(survey: Questionnaire, tmp_path: Path) -> None:
    """Sheets drawn at theta 0.9 must not be tallied as if it were 0.3."""
    high, low = (Questionnaire.from_schema(survey.schema, theta) for theta in (0.9, 0.3))
    with SheetCsv(tmp_path / "s.csv", high) as file:
        file.write(0, *sent(high, 30))
    tallied = {
        survey.groups[0].theta: Tally.from_reports(
            survey, filter(None, read_text_reports(survey, tmp_path / "s.csv"))
        )
        for survey in (high, low)
    }
    assert tallied[0.9].reports == 30
    assert (tallied[0.3].reports, tallied[0.3].rejected) == (0, {"foreign questionnaire": 30})


def test_labels_that_coincide_do_not_mix_answers(tmp_path: Path) -> None:
    schema = Schema(
        [
            Numeric("day", 20240101, 20240131, integer=True, optional=False),
            Categorical("word", ["(missing)", "b\nc", "d"]),
        ],
        "c",
        ["no", "yes"],
    )
    survey = Questionnaire(
        schema,
        [Group(("day", "word", "c"), theta=0.5)],
        cuts={"day": (20240109, 20240116, 20240124)},
    )
    labels = survey.questions[0].labels
    assert any(len(set(some)) < len(some) for some in labels)  # so the test can fail
    ids, values = sent(survey, 200)
    with SheetCsv(tmp_path / "s.csv", survey) as file:
        file.write(0, ids, values)
    read = [r.value for r in read_text_reports(survey, tmp_path / "s.csv") if r is not None]
    assert read == [tuple(row) for row in values.tolist()]
    by_label = [[some.index(some[cell]) for some, cell in zip(labels, row, strict=True)]
                for row in values.tolist()]  # fmt: skip
    assert by_label != values.tolist()  # the known-bad twin: keyed by label


def test_a_label_that_contradicts_its_number_is_refused(
    survey: Questionnaire, tmp_path: Path
) -> None:
    path = tmp_path / "s.csv"
    with SheetCsv(path, survey) as file:
        file.write(0, *sent(survey, 1))
    header, row = path.read_text().splitlines()
    fields = row.split(",")
    for spoilt, fault in (
        ("1: no", None), ("no", None), ("-1", None), ("1.0", None), ("", None), ("٣", None),
        ("7", "out of domain"), ("1", ""), ("1: yes", ""),
    ):  # fmt: skip
        path.write_text(header + "\n" + ",".join([*fields[:2], spoilt, *fields[3:]]) + "\n")
        (found,) = read_text_reports(survey, path)
        if fault is None:
            assert found is None
        else:
            assert found is not None
            assert find_answer_faults(survey, [0], [found.value]) == [fault]


@pytest.mark.parametrize(
    "bad",
    [
        lambda row: row.replace("no", "n" * 200_000),
        lambda row: row + ',"never closed',
        lambda row: row.replace(",", ";"),
        lambda row: "\x00" * 10,
        lambda row: '"' + "x" * 140_000 + '"',
    ],
)
def test_a_bad_line_of_a_csv_is_counted_and_nothing_else_is_lost(
    survey: Questionnaire, tmp_path: Path, bad: Any
) -> None:
    path = tmp_path / "s.csv"
    with SheetCsv(path, survey) as file:
        file.write(0, *sent(survey, 3))
    header, one, two, three = path.read_text().splitlines()
    path.write_text("\n".join([header, one, bad(two), three]) + "\n")
    assert [found is None for found in read_text_reports(survey, path)] == [False, True, False]


# what no column and no memory can hold


def test_unsigned_numbers_of_64_bits_are_refused_in_a_sentence(tmp_path: Path) -> None:
    plan = make_plan(SMALL, 1.0, options=PlanOptions(oracle="de"))
    columns = {
        "id": pa.array([bytes(16)], pa.binary()),
        "collection": pa.array([plan.digest]),
        "question": pa.array([0], pa.int32()),
        "value": pa.array([[2**63 + 5]], pa.list_(pa.uint64())),
    }
    pq.write_table(pa.table(columns), tmp_path / "r.parquet")
    with pytest.raises(FormatError, match="other types"):
        tally_parquet(plan, tmp_path / "r.parquet")


@pytest.mark.slow
@pytest.mark.parametrize("name", ["long.jsonl", "long.csv"])
def test_an_endless_line_is_refused_in_bounded_memory(
    survey: Questionnaire, tmp_path: Path, name: str
) -> None:
    """200 MB without a line break; a process that may not hold them counts the next sheet."""
    path, extra = tmp_path / name, 200 << 20
    with SheetCsv(tmp_path / "good.csv", survey) as file:
        file.write(0, *sent(survey, 1))
    header, row = (tmp_path / "good.csv").read_bytes().splitlines(keepends=True)
    ids, values = sent(survey, 1)
    line = Report(survey.digest, ids[0].tobytes().hex(), 0, tuple(values[0].tolist())).to_json()
    with path.open("wb") as stream:
        if name.endswith(".csv"):
            stream.write(header)
        for _ in range(extra >> 20):
            stream.write(b"x" * (1 << 20))
        stream.write(b"\n" + (row if name.endswith(".csv") else line.encode()))
    (tmp_path / "q.json").write_text(survey.to_json())
    script = (
        "import resource, sys\n"
        "from discreet.collection.text_reports import read_text_reports\n"
        "from discreet.survey import Questionnaire\n"
        "survey = Questionnaire.read(sys.argv[1])\n"
        "before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
        "found = list(read_text_reports(survey, sys.argv[2]))\n"
        "grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before\n"
        "print([one is None for one in found], grown // 1024)\n"
    )
    command = [sys.executable, "-c", script, str(tmp_path / "q.json"), str(path)]
    run = subprocess.run(command, capture_output=True, text=True, check=True, env=dict(os.environ))
    flags, grown = run.stdout.rsplit(" ", 1)
    assert flags == "[True, False]"
    assert int(grown) < 120  # MiB: the limit of a report, a few times over


def test_who_withdraws_from_a_shuffle_leaves_a_smaller_crowd(any_plan: Plan, record: Any) -> None:
    """The stronger promise rests on the smallest batch; a batch that is empty hides nobody."""
    made = [Respondent(any_plan, MemoryStore()).report(record) for _ in range(12)]
    batches = [
        [replace(report, batch=mark * 32) for report in part]
        for part, mark in ((made[:5], "a"), (made[5:], "b"))
    ]
    both = Tally.from_reports(any_plan, batches[0]) + Tally.from_reports(any_plan, batches[1])
    assert both.smallest_shuffle_size == 5
    assert both.withdraw_reports(batches[1][:3]).smallest_shuffle_size == 4
    assert both.withdraw_reports(batches[0]).smallest_shuffle_size == 7
    with pytest.raises(EstimationError, match="was not counted in this tally"):
        both.withdraw_reports([replace(made[0], batch=None)])
    blind = Tally.from_json(both.to_json(include_seen=False))
    with pytest.raises(EstimationError, match="was not counted in this tally"):
        blind.withdraw_reports([replace(report, batch="a" * 32) for report in made[:6]])
