"""Claims: an engine tallies Parquet to the same integers as adding reports one by one."""

from __future__ import annotations

import os
import random
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from comparisons import assert_same_tally
from discreet.collection import parquet_tally
from discreet.collection.answer_batches import AnswerBatch
from discreet.collection.batch_sizes import MAX_BATCHES
from discreet.collection.parquet_reports import (
    BATCH_COLUMN,
    REPORT_COLUMNS,
    ReportFile,
    read_reports,
)
from discreet.collection.parquet_tally import tally_parquet
from discreet.collection.report import Report
from discreet.collection.simulation import iter_simulated_answers
from discreet.collection.tally import Tally
from discreet.datasets import make_mortgage
from discreet.errors import FormatError, SchemaError
from discreet.local.plan import Plan
from discreet.local.planning import PlanOptions, make_plan
from discreet.randomness import SeededRandom
from discreet.schema.cells import encode_classes
from discreet.schema.schema import Schema

Row = tuple[bytes | None, str | None, int | None, list[int | None] | None]

SHAPE = pa.schema(
    {
        "id": pa.binary(),
        "collection": pa.string(),
        "question": pa.int32(),
        "value": pa.list_(pa.int64()),
    }
)


def rows_of(plan: Plan, people: int = 300, seed: int = 1) -> list[Row]:
    """Honest reports to a plan of the mortgage population."""
    data, source = make_mortgage(people), SeededRandom(seed)
    classes = encode_classes(data.schema, data.y)
    rows: list[Row] = []
    for question, _, values in iter_simulated_answers(
        plan, plan.encode_columns(data.X, classes), source
    ):
        for value in values.tolist():
            rows.append((source.raw(16).tobytes(), plan.digest, question, value))
    return rows


def spoiled(plan: Plan, rows: list[Row], seed: int = 2) -> list[Row]:
    """The same with repetitions, reused ids, foreign plans and junk, in random order."""
    chance = random.Random(seed)

    def some(number: int) -> list[Row]:
        return chance.sample(rows, number)

    more = [*rows, *some(40), *some(10), *some(10)]
    for id_, digest, question, value in some(30):
        other = rows[chance.randrange(len(rows))]
        more.append((id_, digest, other[2], other[3]))  # often another answer with the same id
        assert question is not None
        assert value is not None
        more.append((id_, digest, question, [(1 << 62) - 1] * len(value)))
    for id_, digest, question, value in some(20):
        assert value is not None
        more += [
            (id_, "sha256:other", question, value),
            (id_, digest, 99, value),
            (id_, digest, -1, value),
            (id_, digest, question, [*value, 0]),
            (id_, digest, question, []),
            (os.urandom(16), digest, question, [-5 - (1 << 62)] * len(value)),
            (os.urandom(16), digest, question, [-(1 << 63)] * len(value)),
            (os.urandom(15), digest, question, value),
            (None, digest, question, value),
            (id_, None, question, value),
            (id_, digest, None, value),
            (id_, digest, question, None),
            (id_, digest, question, [None] * len(value)),
        ]
    chance.shuffle(more)
    return more


def one_by_one(plan: Plan, rows: list[Row]) -> Tally:
    """What :meth:`Tally.add` makes of them, the smallest answer of an id first."""

    def order(row: Row) -> tuple[Any, ...]:
        return (row[2] or 0, [number or 0 for number in row[3] or []])

    tally = Tally(plan)
    for id_, digest, question, value in sorted(rows, key=order):
        broken = id_ is None or digest is None or question is None or value is None
        if broken or len(id_ or b"") != 16 or None in (value or []):
            tally.add("not even JSON")
            continue
        assert digest is not None
        tally.add(Report(digest, (id_ or b"").hex(), question or 0, tuple(value or [])))  # type: ignore[arg-type]
    return tally


def table_of(rows: list[Row]) -> pa.Table:
    return pa.table(list(zip(*rows, strict=True)) or [[]] * 4, schema=SHAPE)


def written(path: Path, rows: list[Row]) -> Path:
    pq.write_table(table_of(rows), path, row_group_size=97)
    return path


@pytest.fixture(
    params=[
        *({"oracle": name} for name in ("auto", "sue", "she", "the", "olh", "hr")),
        *({"numeric": "gaussian", "approach": how} for how in (1, 2, 3, "hybrid")),
    ],
    ids=lambda kind: "-".join(map(str, kind.values())),
)
def mortgage_plan(request: pytest.FixtureRequest) -> Plan:
    return make_plan(make_mortgage(1).schema, 1.0, 300, PlanOptions(kind="paper", **request.param))


@pytest.mark.slow
def test_an_engine_counts_like_one_by_one(mortgage_plan: Plan, tmp_path: Path) -> None:
    rows = rows_of(mortgage_plan)
    bulked = tally_parquet(mortgage_plan, written(tmp_path / "r.parquet", rows))
    assert bulked.reports == 300
    assert not bulked.rejected
    assert_same_tally(bulked, one_by_one(mortgage_plan, rows), by_id=False)


@pytest.mark.slow
@pytest.mark.parametrize("batch", [None, 7])
def test_bad_reports_are_counted_by_their_fault_like_one_by_one(
    mortgage_plan: Plan, tmp_path: Path, batch: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    if batch:  # so that an id that recurs crosses from one batch to the next
        batches = parquet_tally.read_batches

        def small(table: Any, rows: int) -> Any:
            for one in batches(table, rows):
                yield from pa.Table.from_batches([one]).to_batches(max_chunksize=batch)

        monkeypatch.setattr(parquet_tally, "read_batches", small)
    rows = spoiled(mortgage_plan, rows_of(mortgage_plan))
    bulked = tally_parquet(mortgage_plan, written(tmp_path / "r.parquet", rows))
    expected = one_by_one(mortgage_plan, rows)
    assert_same_tally(bulked, expected, by_id=False)
    assert set(expected.rejected) == {
        "misshapen", "foreign plan", "unknown question", "out of domain", "id reused",
    }  # fmt: skip
    assert bulked.reports + bulked.repeated + bulked.rejected.total() == len(rows)


def with_marks(rows: list[Row], seed: int = 3) -> list[tuple[Row, bytes | None]]:
    """The same rows, some of three batches, some of none, and a few with half a mark."""
    chance = random.Random(seed)
    marks = [None, b"a" * 16, b"b" * 16, b"c" * 16, b"half"]
    return [(row, chance.choices(marks, [4, 4, 4, 4, 1])[0]) for row in rows]


def marked_table(rows: list[tuple[Row, bytes | None]]) -> pa.Table:
    marks = pa.array([mark for _, mark in rows], pa.binary())
    return table_of([row for row, _ in rows]).append_column(BATCH_COLUMN, marks)


def marked_one_by_one(plan: Plan, rows: list[tuple[Row, bytes | None]]) -> Tally[Plan]:
    """What :meth:`Tally.add` makes of them, the smallest (answer, mark) of an id first."""

    def order(sent: tuple[Row, bytes | None]) -> tuple[Any, ...]:
        row, mark = sent
        return (row[2] or 0, [number or 0 for number in row[3] or []], mark or b"")

    tally = Tally(plan)
    for (id_, digest, question, value), mark in sorted(rows, key=order):
        broken = id_ is None or digest is None or question is None or value is None
        if broken or len(id_ or b"") != 16 or None in (value or []) or mark == b"half":
            tally.add("not even JSON")
            continue
        batch = None if mark is None else mark.hex()
        answer = tuple(number for number in value or [] if number is not None)
        tally.add(Report(str(digest), (id_ or b"").hex(), question or 0, answer, batch=batch))
    return tally


@pytest.mark.slow
@pytest.mark.parametrize("piece", [None, 7])
def test_batches_of_a_shuffle_are_counted_like_one_by_one(
    mortgage_plan: Plan, tmp_path: Path, piece: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Twin: batches counted before answers are looked at would be larger than what counts."""
    if piece:
        batches = parquet_tally.read_batches

        def small(table: Any, rows: int) -> Any:
            for one in batches(table, rows):
                yield from pa.Table.from_batches([one]).to_batches(max_chunksize=piece)

        monkeypatch.setattr(parquet_tally, "read_batches", small)
    rows = with_marks(spoiled(mortgage_plan, rows_of(mortgage_plan)))
    pq.write_table(marked_table(rows), tmp_path / "r.parquet")
    expected = marked_one_by_one(mortgage_plan, rows)
    counted = sum(expected.batches.values())
    assert len(expected.batches) == 3
    assert 0 < counted < expected.reports
    assert expected.smallest_shuffle_size == 0
    assert_same_tally(tally_parquet(mortgage_plan, tmp_path / "r.parquet"), expected, by_id=False)


@pytest.mark.slow
def test_files_with_and_without_batch_marks_are_tallied_together(
    plan: Plan, tmp_path: Path
) -> None:
    """Whichever comes first; twin: the columns of the first file for all would lose the marks."""
    value = (0,) * plan.questions[0].width
    reports = [
        Report(plan.digest, f"{number:032x}", 0, value, batch="ab" * 16 if number < 4 else None)
        for number in range(6)
    ]
    with ReportFile(tmp_path / "marked.parquet", plan) as file:
        file.add_reports(reports[:4])
    rows: list[Row] = [(bytes.fromhex(one.id), plan.digest, 0, list(value)) for one in reports[4:]]
    written(tmp_path / "older.parquet", rows)
    assert list(read_reports(tmp_path / "marked.parquet")) == reports[:4]
    assert list(read_reports(tmp_path / "older.parquet")) == reports[4:]
    for names in (("marked", "older"), ("older", "marked")):
        tally = tally_parquet(plan, [tmp_path / f"{name}.parquet" for name in names])
        assert (tally.reports, tally.batches, tally.smallest_shuffle_size) == (
            6,
            {"ab" * 16: 4},
            0,
        )
    assert tally_parquet(plan, tmp_path / "marked.parquet").smallest_shuffle_size == 4
    wrong = table_of(rows).append_column(BATCH_COLUMN, pa.array(["a", "b"]))
    pq.write_table(wrong, tmp_path / "wrong.parquet")
    with pytest.raises(FormatError, match=r"of shuffled reports, batch \(16 bytes\)"):
        tally_parquet(plan, tmp_path / "wrong.parquet")


def test_a_file_in_which_every_report_has_another_mark_is_counted_in_one_pass(plan: Plan) -> None:
    """As anyone can write it. Twin: a pass for every mark takes a hundred times as long."""
    number = 1 << 17
    value = [0] * plan.questions[0].width
    marks = np.arange(2 * number, dtype=np.uint64).view("V16").tolist()
    batch = pa.record_batch(
        {
            "question": pa.array(np.zeros(number, np.int32)),
            "value": pa.array([value] * number, pa.list_(pa.int64())),
            BATCH_COLUMN: pa.array(marks, pa.binary()),
        }
    )
    answers = AnswerBatch(plan.questions, batch)
    begun = time.process_time()  # of this process: it does not matter what else runs
    sizes = answers.count_batch_sizes()
    assert time.process_time() - begun < 3
    assert len(sizes) == MAX_BATCHES
    assert sum(sizes.values()) < number


@pytest.mark.slow
def test_everything_delivered_twice_counts_once(mortgage_plan: Plan, tmp_path: Path) -> None:
    rows = rows_of(mortgage_plan)
    for name in ("a", "b"):
        written(tmp_path / f"{name}.parquet", rows)
    once = tally_parquet(mortgage_plan, tmp_path / "a.parquet")
    for source in (
        tmp_path / "*.parquet",
        str(tmp_path / "*.parquet"),
        [tmp_path / "a.parquet", tmp_path / "b.parquet"],
        [tmp_path / "a.parquet", tmp_path / "a.parquet"],
    ):
        both = tally_parquet(mortgage_plan, source)
        assert both.repeated == both.reports == 300
        assert [part.tolist() for part in both.sums] == [part.tolist() for part in once.sums]


@pytest.mark.slow
def test_tables_in_memory_are_tallied_too(mortgage_plan: Plan) -> None:
    import ibis

    rows = spoiled(mortgage_plan, rows_of(mortgage_plan, 100))
    expected = one_by_one(mortgage_plan, rows)
    assert_same_tally(tally_parquet(mortgage_plan, table_of(rows)), expected, by_id=False)
    engine = ibis.duckdb.connect()
    engine.con.register("reports", table_of(rows))
    assert_same_tally(tally_parquet(mortgage_plan, engine.table("reports")), expected, by_id=False)


@pytest.mark.slow
def test_no_reports_are_an_empty_tally(mortgage_plan: Plan, tmp_path: Path) -> None:
    assert tally_parquet(mortgage_plan, written(tmp_path / "r.parquet", [])).reports == 0
    foreign: list[Row] = [(bytes(16), "sha256:other", 0, [0])]
    tally = tally_parquet(mortgage_plan, written(tmp_path / "r.parquet", foreign))
    assert (tally.reports, tally.rejected) == (0, {"foreign plan": 1})


@pytest.mark.slow
def test_progress_reaches_the_end(mortgage_plan: Plan, tmp_path: Path) -> None:
    rows = spoiled(mortgage_plan, rows_of(mortgage_plan, 50 + 1))
    said: list[tuple[int, int]] = []
    path = written(tmp_path / "r.parquet", rows)
    tally_parquet(mortgage_plan, path, progress=lambda *both: said.append(both))
    assert said[-1] == (len(rows), len(rows))
    assert [done for done, _ in said] == sorted(done for done, _ in said)


# the files


def test_reports_written_are_reports_read(plan: Plan, schema: Schema, tmp_path: Path) -> None:
    path = tmp_path / "r.parquet"
    ids = np.frombuffer(os.urandom(160), np.uint8).reshape(10, 16)
    width = plan.questions[1].mechanism.width
    values = np.zeros((10, width), np.int64) + np.arange(width)
    with ReportFile(path, plan) as file:
        file.write(1, ids, values)
    assert pq.read_schema(path).names == [*REPORT_COLUMNS, BATCH_COLUMN]
    assert pq.read_schema(path).field("id").type == pa.binary(16)
    reports = list(read_reports(path))
    assert [report.id for report in reports] == [one.tobytes().hex() for one in ids]
    assert {(r.collection, r.question, r.value) for r in reports} == {
        (plan.digest, 1, tuple(range(width)))
    }
    assert_same_tally(tally_parquet(plan, path), Tally.from_reports(plan, reports), by_id=False)


def test_a_file_grows_piece_by_piece_and_may_mix_questions(plan: Plan, tmp_path: Path) -> None:
    path = tmp_path / "r.parquet"
    ids = np.frombuffer(os.urandom(64), np.uint8).reshape(4, 16)
    with ReportFile(path, plan) as file:
        file.write([0, 1], ids[:2], [[0], [0, 1, 2]])
        file.write(0, ids[2:], np.zeros((2, 1), np.int64))
        with pytest.raises(SchemaError, match="ids have the shape"):
            file.write(0, ids, np.zeros((2, 1), np.int64))
    assert [report.question for report in read_reports(path)] == [0, 1, 0, 0]


@pytest.mark.slow
def test_a_simulated_file_makes_a_simulated_tally(plan: Plan, tmp_path: Path) -> None:
    ids = np.frombuffer(os.urandom(16), np.uint8).reshape(1, 16)
    value = np.zeros((1, plan.questions[0].mechanism.width), np.int64)
    for name in ("honest", "simulated"):
        path = tmp_path / f"{name}.parquet"
        with ReportFile(path, plan, name == "simulated") as file:
            file.write(0, ids, value)
    assert not tally_parquet(plan, tmp_path / "honest.parquet").simulated
    assert tally_parquet(plan, tmp_path / "simulated.parquet").simulated
    assert tally_parquet(plan, tmp_path / "*.parquet").simulated


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda path: path.write_bytes(b"PAR1 and no more"), "cannot be read|not a Parquet"),
        (lambda path: pq.write_table(pa.table({"id": [1]}), path), "have the columns"),
        (
            lambda path: pq.write_table(
                pa.table({"id": ["a"], "collection": ["b"], "question": [0], "value": [[1]]}), path
            ),
            "other types",
        ),
        (lambda path: None, "no such file"),
    ],
)
def test_what_is_no_file_of_reports_is_refused(
    plan: Plan, tmp_path: Path, make: Any, message: str
) -> None:
    path = tmp_path / "r.parquet"
    make(path)
    with pytest.raises(FormatError, match=message):
        tally_parquet(plan, path)


def test_a_truncated_file_is_refused_whole(plan: Plan, tmp_path: Path) -> None:
    good, bad = tmp_path / "good.parquet", tmp_path / "bad.parquet"
    written(good, [(bytes(16), plan.digest, 0, [0])])
    bad.write_bytes(good.read_bytes()[:-30])
    with pytest.raises(FormatError, match=r"bad\.parquet"):
        tally_parquet(plan, [good, bad])
    with pytest.raises(FormatError, match=r"bad\.parquet"):
        list(read_reports(bad))


def test_a_file_that_cannot_be_written_is_said_so(plan: Plan, tmp_path: Path) -> None:
    with pytest.raises(FormatError, match="cannot be written"):
        ReportFile(tmp_path / "no" / "folder.parquet", plan)


def test_reports_to_other_plans_and_with_huge_numbers_can_be_kept_for_the_tally(
    plan: Plan, tmp_path: Path
) -> None:
    reports = [
        Report(plan.digest, "1" * 32, 0, (0,) * plan.questions[0].mechanism.width),
        Report("sha256:other", "2" * 32, 0, (0,)),
        Report(plan.digest, "3" * 32, 10**20, (0,)),
        Report(plan.digest, "4" * 32, -(10**20), (0,)),
        Report(plan.digest, "5" * 32, 0, (10**30,) * plan.questions[0].mechanism.width),
        Report(plan.digest, "6" * 32, 0, (-(10**30),) * plan.questions[0].mechanism.width),
    ]
    with ReportFile(tmp_path / "r.parquet", plan) as file:
        file.add_reports(reports)
        file.add_reports([])
    assert_same_tally(
        tally_parquet(plan, tmp_path / "r.parquet"), Tally.from_reports(plan, reports), by_id=False
    )
