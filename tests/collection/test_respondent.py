"""Claims: a device sends one report, the same one however often it is asked, and nothing else."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from discreet.collection.report import Report
from discreet.collection.respondent import FolderStore, MemoryStore, Respondent
from discreet.collection.store import StoredReport
from discreet.errors import FormatError, PrivacyError, SchemaError
from discreet.local.plan import Plan
from discreet.local.planning import PlanOptions, make_plan
from discreet.schema.schema import Schema

DEVICE = """
import json, os, signal, sys, time
from pathlib import Path
from discreet.local.plan import Plan
from discreet.collection.respondent import FolderStore, Respondent

class DyingStore(FolderStore):
    def save_report(self, collection, number, kept):
        super().save_report(collection, number, kept)
        os.kill(os.getpid(), signal.SIGKILL)

folder, record, how = Path(sys.argv[1]), json.loads(sys.argv[2]), sys.argv[3]
plan = Plan.read(folder / "plan.json")
kind = DyingStore if how == "dies" else FolderStore
respondent = Respondent(plan, kind(folder / "kept"))
if how == "waits":
    print("ready", flush=True)
    while not (folder / "go").exists():
        time.sleep(0.001)
made = respondent.report(record).to_json()
if how == "imports":
    print(json.dumps(sorted(sys.modules)))
else:
    print(made, end="")
"""


def device(folder: Path, record: dict[str, Any], how: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", DEVICE, str(folder), json.dumps(record), how]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


@pytest.fixture
def folder(tmp_path: Path, plan: Plan) -> Path:
    (tmp_path / "plan.json").write_text(plan.to_json())
    return tmp_path


def kept(folder: Path) -> list[str]:
    """The reports in a store, as they were sent."""
    files = sorted(folder.glob("*.report.json"))
    return [json.loads(file.read_text())["report"] for file in files]


# one report, kept before it leaves


def test_asking_again_gives_the_same_bytes(tmp_path: Path, any_plan: Plan, record: Any) -> None:
    first = Respondent(any_plan, FolderStore(tmp_path)).report(record).to_json()
    again = Respondent(any_plan, FolderStore(tmp_path)).report(record).to_json()
    assert again == first
    assert kept(tmp_path) == [first]


@pytest.mark.slow
def test_a_device_killed_before_it_answered_answers_the_same_later(
    folder: Path, plan: Plan, record: Any
) -> None:
    killed = device(folder, record, "dies")
    assert killed.communicate()[0] == ""
    assert killed.returncode == -signal.SIGKILL
    (text,) = kept(folder / "kept")
    retried = device(folder, record, "asks")
    assert retried.communicate()[0] == text
    assert Respondent(plan, FolderStore(folder / "kept")).report(record).to_json() == text


def test_another_record_still_gives_the_kept_report(
    tmp_path: Path, plan: Plan, record: Any
) -> None:
    respondent = Respondent(plan, FolderStore(tmp_path))
    first = respondent.report(record)
    for other in ({**record, "sick": "no"}, {**record, "colour": "blue", "age": 90}):
        assert respondent.report(other) == first


def test_the_draft_does_not_stay(tmp_path: Path, plan: Plan, record: Any) -> None:
    Respondent(plan, FolderStore(tmp_path)).report(record)
    assert {file.suffix for file in tmp_path.iterdir()} == {".json"}


@pytest.mark.slow
def test_processes_that_race_get_the_same_report(folder: Path, record: Any) -> None:
    racing = [device(folder, record, "waits") for _ in range(5)]
    for process in racing:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
    (folder / "go").touch()
    said = {process.communicate()[0] for process in racing}
    assert len(said) == 1
    assert said == set(kept(folder / "kept"))
    assert len(list((folder / "kept").glob("*.question.json"))) == 1


def test_who_loses_the_race_sends_what_the_winner_wrote(plan: Plan, record: Any) -> None:
    class Racing(MemoryStore):
        """Another process writes between our look and our write."""

        def save_report(self, collection: str, number: int, kept: StoredReport) -> bool:
            super().save_report(collection, number, StoredReport(winner.to_json(), ""))
            return super().save_report(collection, number, kept)

    winner = Respondent(plan, MemoryStore()).report(record)
    assert Respondent(plan, Racing()).report(record) == winner


@pytest.mark.parametrize(
    "damage",
    [
        lambda file: file.write_text(""),
        lambda file: file.write_bytes(b"\xff\xfe\x00"),
        lambda file: file.write_text(file.read_text()[:-30]),
        lambda file: file.write_text(file.read_text().replace('question\\": ', 'question\\": 1')),
        lambda file: (file.unlink(), file.mkdir()),
    ],
)
def test_a_damaged_report_is_not_drawn_again(
    tmp_path: Path, plan: Plan, record: Any, damage: Any
) -> None:
    Respondent(plan, FolderStore(tmp_path)).report(record)
    (file,) = tmp_path.glob("*.report.json")
    before = sorted(tmp_path.iterdir())
    damage(file)
    with pytest.raises(FormatError, match="cost privacy twice"):
        Respondent(plan, FolderStore(tmp_path)).report(record)
    assert sorted(tmp_path.iterdir()) == before


def test_a_kept_report_to_another_plan_is_not_sent(plan: Plan, schema: Schema, record: Any) -> None:
    foreign = Respondent(make_plan(schema, 2.0), MemoryStore()).report(record)
    store = MemoryStore()
    store.save_report(plan.digest, 0, StoredReport(foreign.to_json(), ""))
    with pytest.raises(FormatError, match="another plan"):
        Respondent(plan, store).report(record)


def test_a_report_that_cannot_be_kept_is_not_sent(tmp_path: Path, plan: Plan, record: Any) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(FormatError):
        Respondent(plan, FolderStore(tmp_path / "file")).report(record)
    with pytest.raises(FormatError):
        Respondent(plan, FolderStore(tmp_path / "file" / "below")).report(record)


def test_plans_have_reports_of_their_own(tmp_path: Path, schema: Schema, record: Any) -> None:
    store = FolderStore(tmp_path)
    store.set_allowance(3.0)
    plans = [make_plan(schema, epsilon) for epsilon in (1.0, 2.0)]
    made = [Respondent(plan, store).report(record) for plan in plans]
    assert [report.collection for report in made] == [plan.digest for plan in plans]


# several reports


def test_a_second_report_is_refused(tmp_path: Path, plan: Plan, record: Any) -> None:
    respondent = Respondent(plan, FolderStore(tmp_path))
    respondent.report(record)
    with pytest.raises(PrivacyError, match="already sent 1 of 1"):
        respondent.report(record, again=True)
    assert len(kept(tmp_path)) == 1


def test_a_plan_may_allow_several_reports_and_says_what_they_cost(
    tmp_path: Path, schema: Schema, record: Any
) -> None:
    plan = make_plan(schema, 1.0, options=PlanOptions(reports=2))
    respondent = Respondent(plan, FolderStore(tmp_path))
    assert respondent.guarantee.epsilon == 1.0
    assert [charge.epsilon for charge in respondent.guarantee.charges] == [0.5, 0.5]
    first = respondent.report(record)
    second = respondent.report(record, again=True)
    assert first.id != second.id
    assert respondent.report(record) == second  # a retry sends the newest
    with pytest.raises(PrivacyError, match="already sent 2 of 2"):
        respondent.report(record, again=True)


def test_a_lost_report_among_several_is_not_drawn_again(
    tmp_path: Path, schema: Schema, record: Any
) -> None:
    plan = make_plan(schema, 1.0, options=PlanOptions(reports=3))
    respondent = Respondent(plan, FolderStore(tmp_path))
    respondent.report(record)
    respondent.report(record, again=True)
    next(tmp_path.glob("*-0.report.json")).unlink()
    with pytest.raises(FormatError, match="cost privacy twice"):
        respondent.report(record)
    with pytest.raises(FormatError, match="cost privacy twice"):
        respondent.report(record, again=True)


# what a device accepts


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"sick": None}, "no sick"),
        ({"sick": "maybe"}, "sick: 'maybe' is not one of"),
        ({"colour": "pink"}, "colour: 'pink'"),
        ({"colour": None}, "colour: a value is missing"),
        ({"income": "?"}, "income: a value is missing"),
        ({"age": 120}, "age: 120 is outside"),
        ({"age": 30.5}, "age: 30.5 is not a whole number"),
        ({"income": -1}, "income: -1 is outside"),
        ({"income": "much"}, "income: 'much' is not a number"),
        ({"height": 180, "hair": "red"}, "hair, height, which is not asked for"),
    ],
)
@pytest.mark.parametrize("numeric", ["bins", "gaussian"])
def test_the_whole_record_is_checked_whatever_is_asked(
    schema: Schema, record: Any, change: dict[str, Any], message: str, numeric: Any
) -> None:
    store = MemoryStore()
    plan = make_plan(schema, 1.0, options=PlanOptions(numeric=numeric, assignment="groups"))
    for group in range(len(plan.questions)):
        with pytest.raises(SchemaError, match=message):
            Respondent(plan, store, group).report({**record, **change})
    assert store._list_names() == []


def test_the_class_cannot_be_left_out(plan: Plan, record: Any) -> None:
    del record["sick"]
    with pytest.raises(SchemaError, match="no sick"):
        Respondent(plan, MemoryStore()).report(record)


def test_an_optional_feature_can_be_left_out(any_plan: Plan, record: Any) -> None:
    del record["smokes"], record["age"]
    assert Respondent(any_plan, MemoryStore()).report(record).collection == any_plan.digest


def test_groups_are_told_and_draws_are_not(schema: Schema, record: Any) -> None:
    drawn, dealt = (
        make_plan(schema, 1.0, options=PlanOptions(assignment=how)) for how in ("draw", "groups")
    )
    with pytest.raises(SchemaError, match="leave out group"):
        Respondent(drawn, MemoryStore(), group=0)
    with pytest.raises(SchemaError, match="pass group="):
        Respondent(dealt, MemoryStore())
    with pytest.raises(SchemaError, match="group 99 is not one"):
        Respondent(dealt, MemoryStore(), group=99)
    for group in range(len(dealt.questions)):
        assert Respondent(dealt, MemoryStore(), group).report(record).question == group


def test_a_seed_ends_the_promise(plan: Plan) -> None:
    assert Respondent(plan, MemoryStore()).guarantee.is_private
    assert not Respondent(plan, MemoryStore(), random_state=1).guarantee.is_private


# what a report is


def test_a_report_holds_nothing_else(any_plan: Plan, record: Any) -> None:
    for _ in range(20):
        report = Respondent(any_plan, MemoryStore()).report(record)
        text = report.to_json()
        whole = json.loads(text)
        expected = ["format", "version", "collection", "id", "question", "value"]
        assert list(whole) == [*expected, "digest"]
        assert (whole["format"], whole["version"]) == ("discreet/report", 2)
        assert whole["collection"] == any_plan.digest
        assert len(bytes.fromhex(whole["id"])) == 16
        mechanism = any_plan.questions[whole["question"]].mechanism
        assert len(whole["value"]) == mechanism.width
        assert all(type(number) is int for number in whole["value"])
        assert text.count("\n") == 1
        assert Report.from_json(text) == report


@pytest.mark.parametrize(
    "change",
    [
        {"question": "0"},
        {"question": 0.0},
        {"question": False},
        {"value": ["1"]},
        {"value": [1.0]},
        {"value": [[1]]},
        {"value": None},
        {"id": "A" * 32},
        {"id": "a" * 31},
        {"collection": 7},
        {"age": 30},
    ],
)
def test_a_report_is_strict(change: dict[str, Any]) -> None:
    from discreet.files.documents import dump_document

    body: dict[str, Any] = {
        "collection": "sha256:0",
        "id": "a" * 32,
        "question": 0,
        "value": [1],
    }
    assert Report.from_json(dump_document("report", 2, body)).value == (1,)
    with pytest.raises(FormatError):
        Report.from_json(dump_document("report", 2, {**body, **change}))


@pytest.mark.slow
def test_a_device_imports_little(folder: Path, schema: Schema, record: Any) -> None:
    for options in ({}, {"numeric": "gaussian"}, {"oracle": "olh"}):
        shutil.rmtree(folder / "kept", ignore_errors=True)
        (folder / "plan.json").write_text(
            make_plan(schema, 1.0, options=PlanOptions(**options)).to_json()
        )
        asked = device(folder, record, "imports")
        modules = set(json.loads(asked.communicate()[0]))
        heavy = {"sklearn", "scipy", "pandas", "ibis", "duckdb", "pyarrow", "fastapi", "matplotlib"}
        collector = {"discreet.local.inversion", "discreet.local.planning"}
        collector |= {f"discreet.collection.{name}" for name in ("tally", "bulk", "files")}
        collector |= {
            "discreet.server",
            "discreet.tables",
            "discreet.tables.engines",
            "discreet.model",
        }
        assert not modules & (heavy | collector)
