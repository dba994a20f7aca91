"""A ledger is never overdrawn and never refunds, whatever happens to the processes around it."""

from __future__ import annotations

import json
import math
import os
import signal
import stat
import subprocess
import sys
import time
from contextlib import nullcontext
from fractions import Fraction
from pathlib import Path

import pytest

from discreet import Categorical, Schema
from discreet.errors import FormatError, PrivacyError
from discreet.files.documents import compute_digest, encode_canonical
from discreet.privacy import ledger as ledger_module
from discreet.privacy.guarantee import Guarantee
from discreet.privacy.ledger import Ledger, LedgerState
from discreet.privacy.rounding import convert_rho_to_epsilon, convert_to_rho

CHARGE = """
import sys
from discreet.privacy.ledger import Ledger, LedgerState
from discreet.privacy.rounding import convert_rho_to_epsilon, convert_to_rho
from discreet.errors import PrivacyError
from discreet.privacy.guarantee import Guarantee
path, amount, times = sys.argv[1], float(sys.argv[2]), int(sys.argv[3])
for number in range(times):
    try:
        Ledger(path).charge(Guarantee(amount), f"training {number}")
    except PrivacyError:
        print("refused", flush=True)
    else:
        print("paid", flush=True)
"""


def spent(path):
    return sum(Fraction(repr(entry.epsilon)) for entry in Ledger(path).read().entries)


def charging(path, amount, times, *, windows=False):
    program = [str(Path(__file__).with_name("windows.py"))] if windows else ["-c"]
    return subprocess.Popen(
        [sys.executable, *program, CHARGE, str(path), str(amount), str(times)],
        stdout=subprocess.PIPE,
        text=True,
    )


def test_ten_tenths_are_one(tmp_path):
    ledger = Ledger.create(tmp_path / "budget.json", 1.0)
    for number in range(10):
        ledger.charge(Guarantee(0.1), f"training {number}")
    assert ledger.read().remaining == (0, 0)
    with pytest.raises(PrivacyError, match="nothing was paid"):
        ledger.charge(Guarantee(1e-9), "one more")


def test_who_has_a_ledger_of_an_earlier_release_reads_that_what_was_spent_remains_spent(tmp_path):
    ledger = Ledger.create(tmp_path / "budget.json", 1.0)
    body = json.loads(ledger.path.read_text())
    del body["digest"]
    ledger.path.write_text(json.dumps({**body, "version": 1}))
    with pytest.raises(FormatError, match="what was spent remains spent"):
        ledger.charge(Guarantee(0.1), "training")


def test_delta_is_a_budget_of_its_own(tmp_path):
    ledger = Ledger.create(tmp_path / "budget.json", 10.0, 1e-6)
    ledger.charge(Guarantee(1.0, 1e-6), "first")
    with pytest.raises(PrivacyError, match="are left"):
        ledger.charge(Guarantee(1.0, 1e-9), "second")
    ledger.charge(Guarantee(1.0), "third")


def concentrated(rho, delta=1e-6):
    return Guarantee(convert_rho_to_epsilon(rho, delta), delta, rho=rho)


def number_paid(ledger, guarantee, most=100):
    """How many equal guarantees a ledger pays for."""
    for number in range(most):
        try:
            ledger.charge(guarantee, f"training {number}")
        except PrivacyError:
            return number
    return most


def test_a_concentrated_ledger_pays_for_what_its_total_allows_and_no_more(tmp_path):
    ledger = Ledger.create(tmp_path / "b.json", 3.0, 1e-5, "concentrated")
    guarantee = concentrated(0.025)
    paid = number_paid(ledger, guarantee, 40)
    assert convert_rho_to_epsilon(paid * 0.025, 1e-5) <= 3.0
    assert convert_rho_to_epsilon((paid + 1) * 0.025, 1e-5) > 3.0
    added = Ledger.create(tmp_path / "a.json", 3.0, 1e-5)
    assert paid > 2 * number_paid(added, guarantee) > 0
    state = Ledger(tmp_path / "b.json").read()
    assert state.composition == "concentrated"
    assert state.spent[0] == convert_rho_to_epsilon(paid * 0.025, 1e-5) <= 3.0
    assert state.spent[1] == 1e-5  # the conversion needs all of it
    assert state.added_up[0] == pytest.approx(paid * guarantee.epsilon)
    assert min(state.remaining) >= 0


def test_what_is_pure_is_paid_for_as_half_its_square(tmp_path):
    ledger = Ledger.create(tmp_path / "budget.json", 3.0, 1e-5, "concentrated")
    paid = number_paid(ledger, Guarantee(0.2))
    assert paid == math.floor(convert_to_rho(3.0, 1e-5) / Fraction(0.02))


def test_a_delta_without_a_rho_is_refused_by_a_ledger_that_adds_up_rhos(tmp_path):
    ledger = Ledger.create(tmp_path / "budget.json", 30.0, 1e-5, "concentrated")
    with pytest.raises(PrivacyError, match="does not hold as rho-zCDP"):
        ledger.charge(Guarantee(0.1, 1e-9), "smooth")
    assert "does not hold" in ledger.read().explain_refusal(Guarantee(0.1, 1e-9))
    assert not ledger.read().entries


def test_a_void_training_leaves_nothing_in_a_ledger_that_adds_up_rhos(tmp_path):
    ledger = Ledger.create(tmp_path / "budget.json", 3.0, 1e-5, "concentrated")
    ledger.charge(Guarantee(0.1, 1e-9, void=("a reason",)), "smooth", void=True)
    assert ledger.read().remaining == (0, 0)
    assert number_paid(ledger, concentrated(1e-4)) == 0


def test_the_rule_of_a_ledger_is_chosen_once(tmp_path):
    with pytest.raises(PrivacyError, match="needs a delta"):
        Ledger.create(tmp_path / "budget.json", 3.0, 0.0, "concentrated")
    with pytest.raises(PrivacyError, match="write one of addition, concentrated"):
        Ledger.create(tmp_path / "budget.json", 3.0, 0.0, "both")
    Ledger.create(tmp_path / "budget.json", 3.0, 1e-5, "concentrated")
    assert Ledger.create(tmp_path / "budget.json", 3.0, 1e-5).read().composition == "concentrated"
    with pytest.raises(PrivacyError, match="rule of a ledger cannot be changed"):
        Ledger.create(tmp_path / "budget.json", 3.0, 1e-5, "addition")


def test_twin_rhos_by_the_conversion_of_one_release_would_pay_for_too_much(tmp_path, monkeypatch):
    """Converted at every release's own delta, and the epsilons compared one by one."""
    monkeypatch.setattr(LedgerState, "can_afford", lambda state, new: new.epsilon <= state.epsilon)
    with pytest.raises((AssertionError, FormatError)):  # a ledger that is overdrawn is refused
        test_a_concentrated_ledger_pays_for_what_its_total_allows_and_no_more(tmp_path)


def test_a_total_is_not_changed_after_the_fact(tmp_path):
    path = tmp_path / "budget.json"
    Ledger.create(path, 1.0).charge(Guarantee(1.0), "first")
    assert Ledger.create(path, 1.0).read().remaining == (0, 0)
    with pytest.raises(PrivacyError, match="the total of a ledger cannot be changed"):
        Ledger.create(path, 2.0)


@pytest.mark.parametrize("change", ["", '{"format": "discreet/ledger"}', "edited"])
def test_a_damaged_ledger_is_refused_not_repaired(tmp_path, change):
    path = tmp_path / "budget.json"
    ledger = Ledger.create(path, 1.0)
    ledger.charge(Guarantee(0.9), "first")
    text = path.read_text()
    path.write_text(text.replace("0.9", "0.1") if change == "edited" else change)
    with pytest.raises(FormatError):
        ledger.charge(Guarantee(0.5), "second")


def test_there_must_be_a_ledger(tmp_path):
    with pytest.raises(FormatError, match="state a total first"):
        Ledger(tmp_path / "budget.json").charge(Guarantee(1.0), "first")


@pytest.mark.parametrize("amount", [0.0, float("inf")])
def test_only_positive_finite_amounts_are_charged(tmp_path, amount):
    ledger = Ledger.create(tmp_path / "budget.json", 1.0)
    with pytest.raises(PrivacyError):
        ledger.charge(Guarantee(amount), "odd")
    assert not ledger.read().entries


@pytest.mark.parametrize("total", [0.0, -1.0, float("inf"), float("nan")])
def test_only_positive_finite_totals_are_stated(tmp_path, total):
    with pytest.raises(PrivacyError, match="positive, finite"):
        Ledger.create(tmp_path / "budget.json", total)


def resealed(path, edit):
    """Edit a ledger and give it a digest that fits again, as someone with an editor can."""
    whole = json.loads(path.read_text())
    del whole["digest"]
    edit(whole)
    path.write_text(json.dumps({**whole, "digest": compute_digest(encode_canonical(whole))}))


@pytest.mark.parametrize(
    "edit",
    [
        lambda whole: whole["entries"].append({**whole["entries"][0], "epsilon": -5.0}),
        lambda whole: whole["entries"].append({**whole["entries"][0], "delta": -1e-6}),
        lambda whole: whole["entries"].append({**whole["entries"][0], "epsilon": "inf"}),
        lambda whole: whole["entries"].append({**whole["entries"][0], "epsilon": "-inf"}),
        lambda whole: whole["entries"].append({**whole["entries"][0], "epsilon": 50.0}),
        lambda whole: whole.update(epsilon="inf"),
        lambda whole: whole.update(epsilon=-1.0),
        lambda whole: whole.update(delta=2.0),
    ],
)
def test_a_resealed_ledger_cannot_gain_anything(tmp_path, edit):
    path = tmp_path / "budget.json"
    ledger = Ledger.create(path, 1.0)
    ledger.charge(Guarantee(0.5), "first")
    resealed(path, lambda whole: None)
    assert ledger.read().remaining[0] == Fraction(1, 2)  # the test's own seal is right
    resealed(path, edit)
    with pytest.raises(FormatError, match="tampered"):
        ledger.charge(Guarantee(0.25), "second")


VOID = [
    Guarantee(0.5).void_if(simulated=True),
    Guarantee(0.5).void_if(schema=Schema([Categorical("a", [1, 2])], "c", [0, 1], inferred=True)),
    Guarantee(0.5).void_if(published_reason="it scales its noise by private numbers"),
    Guarantee.make_unprotected(),
]


@pytest.mark.parametrize("promise", VOID, ids=["seed", "inferred", "published", "nothing"])
def test_a_void_promise_is_refused_unless_the_ledger_is_to_be_broken(tmp_path, promise):
    ledger = Ledger.create(tmp_path / "budget.json", 1.0)
    with pytest.raises(PrivacyError, match="a void guarantee cannot be charged"):
        ledger.charge(promise, "void")
    assert ledger.read().entries == ()
    ledger.charge(promise, "void", void=True)
    state = Ledger(tmp_path / "budget.json").read()
    assert state.void_reasons == promise.void_reasons != ()
    assert state.remaining[0] == (0 if math.isinf(promise.epsilon) else Fraction(1, 2))


def test_a_broken_ledger_stays_broken_and_an_exhausted_one_pays_nothing(tmp_path):
    ledger = Ledger.create(tmp_path / "budget.json", 1.0)
    ledger.charge(VOID[0], "void", void=True)
    assert ledger.charge(Guarantee(0.25), "kept").void_reasons
    ledger.charge(VOID[3], "everything", void=True)
    for void in (False, True):
        with pytest.raises(PrivacyError, match="nothing was paid"):
            ledger.charge(Guarantee(0.01), "more", void=void)


def test_asking_for_void_changes_nothing_about_a_promise_that_is_kept(tmp_path):
    ledger = Ledger.create(tmp_path / "budget.json", 1.0)
    assert ledger.charge(Guarantee(0.5), "kept", void=True).void_reasons == ()


@pytest.mark.parametrize(
    ("source", "kept"),
    [
        ("postgres://ann:hunter2@db.example:5432/people", "postgres://db.example:5432/people"),
        ("postgres://ann:hunter2@x@db.example/people#t", "postgres://db.example/people"),
        ("postgres://ann:hun/ter2@db.example/people", "postgres://db.example/people"),
        ("postgres://db.example/people?user=a&password=hunter2", "postgres://db.example/people"),
        ("duckdb://md:x?motherduck_token=hunter2", "duckdb://md:x"),
        ("host=db password = hunter2 dbname=people", "host=db password=… dbname=people"),
        ("data/people.csv", "data/people.csv"),
    ],
)
def test_no_password_is_kept(tmp_path, source, kept):
    path = tmp_path / "budget.json"
    ledger = Ledger.create(path, 1.0)
    assert ledger.charge(Guarantee(0.5), "training", data_source=source).entries[-1].who == kept
    assert "hunter2" not in path.read_text()


@pytest.mark.skipif(os.name == "nt", reason="these bits mean nothing on Windows")
def test_only_its_owner_reads_a_ledger(tmp_path):
    before = os.umask(0)
    try:
        path = tmp_path / "new" / "budget.json"
        ledger = Ledger.create(path, 1.0)
        path.chmod(0o644)  # as an earlier program left it
        ledger.charge(Guarantee(0.5), "training")
    finally:
        os.umask(before)
    for file in (path, path.with_name("budget.json.lock")):
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


@pytest.mark.slow
@pytest.mark.parametrize("windows", [False, True], ids=["fcntl", "msvcrt"])
def test_concurrent_processes_never_overdraw(tmp_path, windows):
    if windows and os.name == "nt":
        pytest.skip("the other case is the real one here")
    path = tmp_path / "budget.json"
    Ledger.create(path, 1.0)
    processes = [charging(path, 0.07, 6, windows=windows) for _ in range(4)]
    answers = " ".join(process.communicate(timeout=60)[0] for process in processes).split()
    assert answers.count("paid") == 14  # 14 * 0.07 <= 1 < 15 * 0.07
    assert answers.count("refused") == 10
    assert spent(path) == Fraction("0.98")


def test_twin_without_its_lock_a_ledger_is_overdrawn(tmp_path, monkeypatch):
    """A second charge between the reading and the writing of the first: both are paid."""
    path = tmp_path / "budget.json"
    ledger, write, paid = Ledger.create(path, 1.0), ledger_module.write_atomic, []

    def late(*given, **how):
        monkeypatch.setattr(ledger_module, "write_atomic", write)
        paid.append(Ledger(path).charge(Guarantee(0.7), "second"))
        return write(*given, **how)

    monkeypatch.setattr(Ledger, "_hold_lock", lambda self: nullcontext())
    monkeypatch.setattr(ledger_module, "write_atomic", late)
    paid.append(ledger.charge(Guarantee(0.7), "first"))
    assert len(paid) == 2  # 1.4 of 1.0
    assert spent(path) == Fraction("0.7")  # and one of them is forgotten


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="kill -9 is for POSIX")
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
    Ledger(path).charge(Guarantee(0.5), "after the kills")  # the lock was given back


def test_drafts_of_killed_writers_are_removed_with_the_next_charge(tmp_path):
    """Of this ledger alone, and only under its lock: others in the folder may be at work."""
    path = tmp_path / "budget.json"
    ledger = Ledger.create(path, 1.0)
    ledger.charge(Guarantee(0.25), "first")
    stale = tmp_path / ".budget.json.0123456789abcdef.part"
    stale.write_text('{"format": "discr')
    others = [
        ".0123456789abcdef.part",
        ".budget.json.lock.0123456789abcdef.part",
        ".other.json.0123456789abcdef.part",
        ".budgetxjson.0123456789abcdef.part",
        ".budget.json.mine.part",
    ]
    for name in others:
        (tmp_path / name).write_text("somebody else's")
    (tmp_path / ".budget.json.00000000deadbeef.part").mkdir()
    assert ledger.charge(Guarantee(0.25), "second").remaining[0] == Fraction(1, 2)
    assert not stale.exists()
    assert all((tmp_path / name).exists() for name in others)
    assert (tmp_path / ".budget.json.00000000deadbeef.part").is_dir()


def test_a_ledger_with_the_longest_name_is_charged(tmp_path):
    ledger = Ledger.create(tmp_path / ("b" * 245 + ".json"), 1.0)  # and .lock
    ledger.charge(Guarantee(0.25), "first")
    assert len(ledger.read().entries) == 1


def test_a_federated_round_whose_promise_is_void_is_not_charged(tmp_path):
    from discreet.cli.federated.files import make_ledger_charge
    from discreet.federated.agreement.identity import Identity
    from discreet.federated.agreement.manifest import Manifest
    from discreet.federated.counters import make_feature_requests

    cards = [Identity.generate(name).card for name in "abcd"]

    def manifest(inferred):
        public = Schema([Categorical("a", [1, 2])], "c", [0, 1], inferred=inferred)
        wanted = make_feature_requests(public, 4, [])
        return Manifest(public, wanted, 1.0, tuple(cards[:2]), *cards[2:], aggregation="masks")

    charge = make_ledger_charge(str(tmp_path / "budget.json"), 3.0)
    charge(manifest(False))
    with pytest.raises(PrivacyError, match="a void guarantee cannot be charged"):
        charge(manifest(True))
    assert len(Ledger(tmp_path / "budget.json").read().entries) == 1
