"""Claims: whatever fails, and whenever, nothing acknowledged is lost and nothing is paid twice.

A child process does the work and dies at the k-th time it touches the disk, for every k: before a
file is opened, synced, linked or renamed. Then the next process finds either everything or
nothing, and goes on. Full disks are real limits of the operating system; clocks are set.
"""

from __future__ import annotations

import datetime as clock
import json
import os
import resource
import signal
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import pytest
from deaths import dying

from discreet import Categorical, Guarantee, Numeric, Schema
from discreet.collection.report import Report
from discreet.collection.respondent import FolderStore, Respondent
from discreet.errors import DiscreetError, FormatError, PrivacyError
from discreet.local.planning import make_plan
from discreet.privacy import ledger as ledger_module
from discreet.privacy.ledger import Ledger

SCHEMA = Schema(
    [Numeric("a", 0, 1), Categorical("b", ["x", "y"], optional=False)], "c", ["no", "yes"]
)
PLAN = make_plan(SCHEMA, 1.0)
RECORD = {"a": 0.5, "b": "x", "c": "no"}
MOST = 60


def child(work, k=0):
    """Run work in a forked process that dies at the k-th touch; gives what it acknowledged."""
    reading, writing = os.pipe()
    process = os.fork()
    if process == 0:
        os.close(reading)
        status = 1
        try:
            if k:
                dying(k)
            said = work()
            os.write(writing, said.encode())
            status = 0
        finally:
            os._exit(status)
    os.close(writing)
    with open(reading, "rb") as said:
        acknowledged = said.read().decode()
    _, status = os.waitpid(process, 0)
    return acknowledged, os.waitstatus_to_exitcode(status)


def every_death(work):
    """Die at the first touch, at the second, … until the work is done; then once more alive."""
    for k in range(1, MOST):
        acknowledged, status = child(work, k)
        yield k, acknowledged, status
        if status == 0:
            return
    raise AssertionError("the work never ended")


@pytest.mark.slow
def test_a_charge_is_on_the_disk_whole_before_it_is_acknowledged(tmp_path):
    path = tmp_path / "ledger.json"
    Ledger.create(path, 100.0)

    def charge():
        return repr(len(Ledger(path).charge(Guarantee(1.0), "training").entries))

    deaths, before = 0, 0
    for _, acknowledged, status in every_death(charge):
        entries = len(Ledger(path).read().entries)
        deaths += status == 9
        if acknowledged:
            assert entries == int(acknowledged)
        assert before <= entries <= before + 1  # all of it or nothing, never twice
        before = entries
    assert deaths >= 4  # open, sync, rename, sync of the folder


def drafts_after(path):
    """Drafts beside a ledger after one more charge, when earlier ones died at every touch."""
    Ledger.create(path, 100.0)

    def charge():
        return repr(len(Ledger(path).charge(Guarantee(1.0), "training").entries))

    left = 0
    for *_, status in every_death(charge):
        if status == 9:
            left += len(list(path.parent.glob(".*.part")))
    assert left > 0  # killed writers do leave them
    Ledger(path).charge(Guarantee(1.0), "alive")
    return sorted(path.parent.iterdir())


@pytest.mark.slow
def test_killed_writers_leave_nothing_beside_the_ledger(tmp_path):
    path = tmp_path / "ledger.json"
    assert drafts_after(path) == [path, Path(f"{path}.lock")]


@pytest.mark.slow
def test_twin_a_ledger_that_does_not_tidy_up_leaves_drafts(tmp_path, monkeypatch):
    monkeypatch.setattr(ledger_module, "remove_drafts", lambda path: None)
    assert len(drafts_after(tmp_path / "ledger.json")) > 2


@pytest.mark.slow
def test_a_round_is_paid_once_however_often_its_party_dies(tmp_path):
    path = tmp_path / "ledger.json"
    Ledger.create(path, 1.0)

    def charge():
        Ledger(path).charge(Guarantee(1.0), "round 1", once=True)
        return "paid"

    assert [status for *_, status in every_death(charge)][-1] == 0
    assert len(Ledger(path).read().entries) == 1


def test_twin_a_round_that_is_not_recognised_is_paid_again(tmp_path):
    path = tmp_path / "ledger.json"
    Ledger.create(path, 2.0)
    for _ in range(2):
        child(lambda: str(Ledger(path).charge(Guarantee(1.0), "round 1")))
    assert len(Ledger(path).read().entries) == 2


@pytest.mark.slow
def test_a_report_that_left_is_the_report_that_is_sent_again(tmp_path):
    store = tmp_path / "device"

    def answer():
        return Respondent(PLAN, FolderStore(store)).report(RECORD).to_json()

    deaths, sent = 0, ""
    for _, acknowledged, status in every_death(answer):
        deaths += status == 9
        kept = FolderStore(store).load_reports(PLAN.digest)
        assert len(kept) <= 1
        if kept:
            sent = sent or kept[0].report
            assert kept[0].report == sent  # drawn once, whatever died
        if acknowledged:
            assert acknowledged == sent
    assert deaths >= 6
    assert FolderStore(store).read_charges() == {PLAN.digest: 1.0}
    assert Report.from_json(sent) == Respondent(PLAN, FolderStore(store)).report(RECORD)


@pytest.mark.slow
def test_twin_a_store_that_forgets_sends_two_reports(tmp_path):
    """What the test above refuses: a new folder for every start."""
    reports = set()
    for k in range(12):
        one, _ = child(
            lambda k=k: Respondent(PLAN, FolderStore(tmp_path / str(k))).report(RECORD).to_json()
        )
        reports.add(one)
    assert len(reports) > 1


@contextmanager
def full_disk():
    """Files may not grow beyond a few bytes: writing fails as on a full disk.

    Not a fixture: pytest writes its log before a fixture ends.
    """
    old = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (16, old[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, old)
        signal.signal(signal.SIGXFSZ, handler)


def test_a_full_disk_refuses_the_charge_and_keeps_the_ledger(tmp_path):
    path = tmp_path / "ledger.json"
    Ledger.create(path, 3.0).charge(Guarantee(1.0), "before")
    content = path.read_bytes()
    with full_disk(), pytest.raises(FormatError, match="cannot be written"):
        Ledger(path).charge(Guarantee(1.0), "during")
    assert path.read_bytes() == content
    assert sorted(one.name for one in tmp_path.iterdir()) == ["ledger.json", "ledger.json.lock"]


def test_a_full_disk_sends_no_report_that_was_not_kept(tmp_path):
    with full_disk(), pytest.raises(DiscreetError, match="cannot be written"):
        Respondent(PLAN, FolderStore(tmp_path / "device")).report(RECORD)
    assert FolderStore(tmp_path / "device").load_reports(PLAN.digest) == []


@pytest.mark.parametrize("days", [-20_000, 0, 20_000])
def test_a_clock_that_jumps_changes_no_sum(tmp_path, monkeypatch, days):
    class Jumping(clock.datetime):
        @classmethod
        def now(cls, tz=None):
            return clock.datetime(2030, 1, 1, tzinfo=tz) + clock.timedelta(days=days)

    ledger = Ledger.create(tmp_path / "ledger.json", 1.0)
    ledger.charge(Guarantee(0.5), "first")
    monkeypatch.setattr(ledger_module, "datetime", Jumping)
    assert float(ledger.charge(Guarantee(0.25), "second").remaining[0]) == 0.25
    assert [one.what for one in ledger.read().entries] == ["first", "second"]
    with pytest.raises(PrivacyError, match="are left"):
        ledger.charge(Guarantee(0.5), "third")


TRAIN = """
import os, sys
sys.path.insert(0, {here!r})
from deaths import dying
from discreet.cli import main
dying({k})
main(["train", "people.csv", "--schema", "s.json", "--epsilon", "1", "--budget-file", "l.json",
      "-o", "model.json"])
"""


LATE = """
import atexit
from discreet.privacy.ledger import Ledger
real = Ledger.charge
def charge(self, *given, **how):
    atexit.register(real, self, *given, **how)
    return self.read()
Ledger.charge = charge
"""
"""A program that pays when it has finished."""


def trainings(folder, before=""):
    """Trainings that die at some point: (exit code, whether a model shows, charges so far)."""
    (folder / "s.json").write_text(SCHEMA.to_json())
    rows = "".join(f"{i % 10 / 10},{'xy'[i % 2]},{'no' if i % 3 else 'yes'}\n" for i in range(60))
    (folder / "people.csv").write_text("a,b,c\n" + rows)
    Ledger.create(folder / "l.json", 100.0)
    model = folder / "model.json"
    for k in (2, 5, 6, 7, 8, 10, 1000):
        model.unlink(missing_ok=True)
        script = before + TRAIN.format(here=str(Path(__file__).parent), k=k)
        done = subprocess.run(
            [sys.executable, "-c", script], cwd=folder, capture_output=True, text=True
        )
        if model.exists():
            json.loads(model.read_text())  # it is whole
        yield done.returncode, model.exists(), len(Ledger(folder / "l.json").read().entries)


@pytest.mark.slow
def test_a_training_that_dies_has_paid_before_it_shows_anything(tmp_path):
    paid = died_paid = 0
    for code, shows, now in trainings(tmp_path):
        assert paid <= now <= paid + 1
        assert not shows or now == paid + 1  # what can be seen was paid for
        died_paid += code == 9 and now == paid + 1
        paid = now
    assert (code, shows) == (0, True)
    assert died_paid  # some died after paying and before showing: never refunded


@pytest.mark.slow
def test_twin_a_training_that_pays_at_its_end_shows_what_nobody_paid_for(tmp_path):
    shown = paid = 0
    for _, shows, now in trainings(tmp_path, LATE):
        shown, paid = shown + shows, now
    assert shown > paid
