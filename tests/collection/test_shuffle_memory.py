"""A report goes into one shuffle only: a folder that grows is not shuffled twice."""

import json
import os
import stat
from collections import Counter
from dataclasses import replace

import pytest

from commands import run
from discreet import FormatError, PrivacyError
from discreet.collection.report import Report
from discreet.collection.shuffle import shuffle_reports
from discreet.collection.shuffle_memory import ShuffleMemory
from discreet.collection.text_reports import read_text_reports
from discreet.files.atomic_writing import write_atomic
from discreet.local import MemoryStore, PlanOptions, Respondent, make_plan
from discreet.randomness import as_random
from schemas import LETTER as SCHEMA


@pytest.fixture(scope="module")
def plan():
    return make_plan(SCHEMA, 1.0, 60, PlanOptions(shuffled=0.01))


def reports(plan, count):
    record = {"a": "x", "c": "yes"}
    return [Respondent(plan, MemoryStore()).report(record) for _ in range(count)]


@pytest.fixture
def folder(plan, tmp_path):
    """A folder with a plan and the reports of 60 people; one more comes later."""
    (tmp_path / "plan.json").write_text(plan.to_json())
    sent = reports(plan, 61)
    (tmp_path / "first.jsonl").write_text("".join(one.to_json() for one in sent[:60]))
    (tmp_path / "late").write_text(sent[60].to_json())
    return tmp_path


def contents(plan, path):
    return Counter(
        (one.question, one.value) for one in read_text_reports(plan, path) if one is not None
    )


def shuffle(capsys, folder, output, *more):
    return run(
        capsys, "local", "shuffle", folder / "plan.json", folder / "first.jsonl",
        *more, "-o", folder / output,
    )  # fmt: skip


def test_a_growing_folder_is_not_shuffled_twice(plan, folder, capsys):
    assert shuffle(capsys, folder, "monday.jsonl")[0] == 0
    with (folder / "first.jsonl").open("a") as file:
        file.write((folder / "late").read_text())
    code, _, error = shuffle(capsys, folder, "tuesday.jsonl")
    assert code != 0
    assert "60 of these 61 reports were in an earlier shuffle" in error
    assert not (folder / "tuesday.jsonl").exists()
    # twin: without the memory the difference of two outputs is the late report
    assert shuffle(capsys, folder, "tuesday.jsonl", "--memory", folder / "another")[0] == 0
    late = Report.from_json((folder / "late").read_text())
    monday, tuesday = (contents(plan, folder / f"{day}.jsonl") for day in ("monday", "tuesday"))
    assert tuesday - monday == Counter([(late.question, late.value)])


def test_the_memory_is_private_and_holds_no_id(plan, folder, capsys):
    assert shuffle(capsys, folder, "out.parquet")[0] == 0
    memory = folder / "plan.json.memory"
    assert stat.S_IMODE(memory.stat().st_mode) == 0o600
    text = memory.read_text()
    for one in read_text_reports(plan, folder / "first.jsonl"):
        assert one is not None
        assert one.id not in text
    other = ShuffleMemory(folder / "other", plan)
    with other.check_and_remember(
        [one.id for one in read_text_reports(plan, folder / "first.jsonl") if one]
    ):
        pass
    used = json.loads(text)["used"]
    assert len(used) == 60 * 16  # 12 bytes each, in base64
    assert json.loads((folder / "other").read_text())["used"] != used  # keyed


def test_later_reports_are_shuffled_by_themselves(plan, folder, capsys):
    assert shuffle(capsys, folder, "monday.jsonl")[0] == 0
    (folder / "first.jsonl").write_text("".join(one.to_json() for one in reports(plan, 60)))
    assert shuffle(capsys, folder, "tuesday.jsonl")[0] == 0
    assert shuffle(capsys, folder, "wednesday.jsonl")[0] != 0


def test_a_shuffle_that_was_not_written_is_not_remembered(plan, tmp_path):
    sent, _ = shuffle_reports(plan, reports(plan, 60), as_random(None))
    memory = ShuffleMemory(tmp_path / "memory", plan)
    ids = [one.id for one in sent]
    with pytest.raises(OSError, match="full"), memory.check_and_remember(ids):
        raise OSError("the disk is full")
    with memory.check_and_remember(ids):
        pass
    with (
        pytest.raises(PrivacyError, match="1 of these 1 reports"),
        memory.check_and_remember(ids[:1]),
    ):
        pytest.fail("a report was passed on twice")


def test_a_link_to_the_plan_has_no_memory_of_its_own(plan, folder, capsys):
    """Twin: a copy has one. So a copy, like a second anonymiser, can pass on a report twice."""
    assert shuffle(capsys, folder, "monday.jsonl")[0] == 0
    (folder / "elsewhere").mkdir()
    link, copy = folder / "elsewhere" / "link.json", folder / "copy.json"
    link.symlink_to(folder / "plan.json")
    copy.write_text(plan.to_json())
    words = [folder / "first.jsonl", "-o", folder / "tuesday.jsonl"]
    code, _, error = run(capsys, "local", "shuffle", link, *words)
    assert code == 2
    assert "60 of these 60 reports were in an earlier shuffle" in error
    assert run(capsys, "local", "shuffle", copy, *words)[0] == 0


def test_no_earlier_state_stays_on_the_disk(plan, tmp_path):
    """Known-bad twin: the file of a state that another one is renamed over keeps its bytes."""
    memory, states = ShuffleMemory(tmp_path / "memory", plan), []

    def witness():  # a second name, by which the bytes can be read later
        states.append(tmp_path / f"state-{len(states)}")
        os.link(memory.path, states[-1])

    for one in reports(plan, 3):
        with memory.check_and_remember([one.id]):
            pass
        witness()
    key = json.loads(memory.path.read_text())["key"].encode()
    write_atomic(memory.path, memory.path.read_text(), private=True)  # the twin
    witness()
    memory.close()
    assert [key in path.read_bytes() for path in states] == [False, False, True, False]


@pytest.mark.parametrize("end", ["before the new state", "after it", "while it was drafted"])
def test_what_a_killed_shuffle_left_of_the_memory_is_erased(plan, tmp_path, end):
    memory = ShuffleMemory(tmp_path / "memory", plan)
    first, second, third = (one.id for one in reports(plan, 3))
    with memory.check_and_remember([first]):
        pass
    key = json.loads(memory.path.read_text())["key"].encode()
    if end == "while it was drafted":
        (tmp_path / f".memory.{'0' * 16}.part").write_bytes(memory.path.read_bytes())
    else:
        os.link(memory.path, tmp_path / "memory.previous")
    if end == "after it":
        write_atomic(memory.path, memory.path.read_text(), private=True)
    with memory.check_and_remember([second]):
        pass
    with (
        pytest.raises(PrivacyError, match="2 of these 3"),
        memory.check_and_remember([first, second, third]),
    ):
        pytest.fail("what was remembered before is known")
    memory.close()
    assert {path.name for path in tmp_path.iterdir()} == {"memory", "memory.lock"}
    assert all(key not in path.read_bytes() for path in tmp_path.iterdir())


def test_closing_erases_hashes_and_key_and_ends_shuffling(plan, folder, capsys):
    assert shuffle(capsys, folder, "out.jsonl")[0] == 0
    memory = folder / "plan.json.memory"
    before = json.loads(memory.read_text())
    assert run(capsys, "local", "shuffle", folder / "plan.json", "--close")[0] == 0
    after = memory.read_text()
    assert before["key"] not in after
    assert before["used"][:16] not in after
    (folder / "first.jsonl").write_text("".join(one.to_json() for one in reports(plan, 60)))
    code, _, error = shuffle(capsys, folder, "again.jsonl")
    assert code != 0
    assert "the shuffles of this plan were closed" in error
    assert not (folder / "again.jsonl").exists()


def test_the_last_shuffle_may_close_at_once(plan, folder, capsys):
    assert shuffle(capsys, folder, "out.jsonl", "--close")[0] == 0
    assert json.loads((folder / "plan.json.memory").read_text())["closed"] is True
    code, _, error = run(capsys, "local", "shuffle", folder / "plan.json")
    assert code == 2
    assert "Name the reports of one shuffle" in error


def test_the_memory_of_another_plan_is_refused(plan, tmp_path):
    with ShuffleMemory(tmp_path / "memory", plan).check_and_remember(["0" * 32]):
        pass
    other = make_plan(replace(SCHEMA, target="d"), 1.0, 60, PlanOptions(shuffled=0.01))
    memory = ShuffleMemory(tmp_path / "memory", other)
    with pytest.raises(FormatError, match="another plan"), memory.check_and_remember(["1" * 32]):
        pytest.fail("the memory of another plan was used")
