"""A ledger is never overdrawn and never refunds, whatever happens to the processes around it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from fractions import Fraction

import pytest

from discreet.errors import FormatError, PrivacyError
from discreet.ledger import Ledger

CHARGE = """
import sys
from discreet.ledger import Ledger
from discreet.errors import PrivacyError
path, amount, times = sys.argv[1], float(sys.argv[2]), int(sys.argv[3])
for number in range(times):
    try:
        Ledger(path).charge(f"training {number}", amount)
    except PrivacyError:
        print("refused", flush=True)
    else:
        print("paid", flush=True)
"""


def spent(path):
    return sum(Fraction(repr(entry.epsilon)) for entry in Ledger(path).read().entries)


def charging(path, amount, times):
    return subprocess.Popen(
        [sys.executable, "-c", CHARGE, str(path), str(amount), str(times)],
        stdout=subprocess.PIPE,
        text=True,
    )


def test_ten_tenths_are_one(tmp_path):
    ledger = Ledger.create(tmp_path / "budget.json", 1.0)
    for number in range(10):
        ledger.charge(f"training {number}", 0.1)
    assert ledger.read().left == (0, 0)
    with pytest.raises(PrivacyError, match="nothing was trained"):
        ledger.charge("one more", 1e-9)


def test_delta_is_a_budget_of_its_own(tmp_path):
    ledger = Ledger.create(tmp_path / "budget.json", 10.0, 1e-6)
    ledger.charge("first", 1.0, 1e-6)
    with pytest.raises(PrivacyError, match="are left"):
        ledger.charge("second", 1.0, 1e-9)
    ledger.charge("third", 1.0)


def test_a_total_is_not_changed_after_the_fact(tmp_path):
    path = tmp_path / "budget.json"
    Ledger.create(path, 1.0).charge("first", 1.0)
    assert Ledger.create(path, 1.0).read().left == (0, 0)
    with pytest.raises(PrivacyError, match="not changed after the fact"):
        Ledger.create(path, 2.0)


@pytest.mark.parametrize("change", ["", '{"format": "discreet/budget"}', "edited"])
def test_a_damaged_ledger_is_refused_not_repaired(tmp_path, change):
    path = tmp_path / "budget.json"
    ledger = Ledger.create(path, 1.0)
    ledger.charge("first", 0.9)
    text = path.read_text()
    path.write_text(text.replace("0.9", "0.1") if change == "edited" else change)
    with pytest.raises(FormatError):
        ledger.charge("second", 0.5)


def test_there_must_be_a_ledger(tmp_path):
    with pytest.raises(FormatError, match="state a total first"):
        Ledger(tmp_path / "budget.json").charge("first", 1.0)


@pytest.mark.parametrize("amount", [0.0, -1.0, float("inf"), float("nan")])
def test_only_positive_amounts_are_charged(tmp_path, amount):
    ledger = Ledger.create(tmp_path / "budget.json", 1.0)
    with pytest.raises(PrivacyError):
        ledger.charge("odd", amount)


def test_concurrent_processes_never_overdraw(tmp_path):
    path = tmp_path / "budget.json"
    Ledger.create(path, 1.0)
    processes = [charging(path, 0.07, 6) for _ in range(4)]
    answers = " ".join(process.communicate(timeout=60)[0] for process in processes).split()
    assert answers.count("paid") == 14  # 14 * 0.07 <= 1 < 15 * 0.07
    assert answers.count("refused") == 10
    assert spent(path) == Fraction("0.98")


def test_a_killed_process_never_refunds(tmp_path):
    """Whatever a process was told to be paid is in the ledger after kill -9, and it is whole."""
    path = tmp_path / "budget.json"
    Ledger.create(path, 1000.0)
    paid = 0
    for wait in (0.0, 0.003, 0.011):
        process = charging(path, 0.5, 100_000)
        assert process.stdout is not None
        paid += process.stdout.readline().count("paid")
        time.sleep(wait)
        os.kill(process.pid, signal.SIGKILL)
        paid += process.communicate()[0].count("paid")
        assert spent(path) >= Fraction(paid, 2)
        assert spent(path) <= Fraction(paid + 3, 2)  # a kill between disk and answer, at most one
    Ledger(path).charge("after the kills", 0.5)  # the lock was given back


def test_a_half_written_file_is_left_behind_harmlessly(tmp_path):
    path = tmp_path / "budget.json"
    ledger = Ledger.create(path, 1.0)
    ledger.charge("first", 0.25)
    (tmp_path / ".budget.json.part").write_text('{"format": "discr')
    assert ledger.charge("second", 0.25).left[0] == Fraction(1, 2)
