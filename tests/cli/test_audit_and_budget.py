"""``discreet audit`` and ``discreet budget``."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result

from discreet import Categorical, Guarantee, NaiveBayesModel, Numeric, Schema
from discreet.collection.respondent import FolderStore, Respondent
from discreet.local.plan import Plan, Question
from discreet.mechanisms.frequency import DE
from discreet.privacy.ledger import Ledger
from discreet.survey.questionnaire import Questionnaire

Run = Callable[..., Result]
Refused = Callable[..., str]

SCHEMA = Schema([Numeric("a", 0, 1), Categorical("b", ["x", "y"])], "c", ["no", "yes"])
PLAN = Plan(SCHEMA, 1.0, [Question((), DE(1.0, 2), 1), Question(("b",), DE(1.0, 6), 1)])
SURVEY = Questionnaire.from_schema(
    Schema([Categorical("b", ["x", "y"], optional=False)], "c", ["no", "yes"]), 0.5
)
RECORD = {"a": 0.5, "b": "x", "c": "no"}

FOREIGN = """
from discreet.audit import make_function_subject

def count(n):
    return n

leaking = make_function_subject(count, [(1, 2)], 1.0)

def made():
    return leaking

same = make_function_subject(lambda n: n > 9, [(k, k + 1) for k in range(9)], 1.0)
most = make_function_subject(lambda n: n > 9, [(k, k + 1) for k in range(12)], 1.0)

nothing = 3

def failing(n):
    raise RuntimeError("never runs")

void = make_function_subject(failing, [(1, 2)], 1.0)

def empty():
    return make_function_subject(count, [], 1.0)

def torn():
    raise KeyError("mine")

def leaving():
    raise SystemExit(1)
"""


def test_a_mechanism_by_name(run: Run) -> None:
    result = run("audit", "de", "--epsilon", 1, "--size", 3)
    assert result.exit_code == 0
    assert "every report of every value: promised 1.00; exactly 1" in result.stdout


def test_a_plan_and_a_questionnaire_by_file(run: Run) -> None:
    Path("plan.json").write_text(PLAN.to_json())
    Path("survey.json").write_text(SURVEY.to_json())
    for name in ("plan.json", "survey.json"):
        found = json.loads(run("audit", name, "--json").stdout)
        assert not found["broken"]
        assert [one["way"] for one in found["checks"]] == ["exact"]


@pytest.mark.slow
def test_a_configuration_of_central(run: Run) -> None:
    Path("s.json").write_text(SCHEMA.to_json())
    asked = ("--schema", "s.json", "--epsilon", 1, "--samples", 40, "--processes", 1)
    found = json.loads(run("audit", "central", *asked, "--method", "moments", "--json").stdout)
    assert found["subject"] == "CentralNB, epsilon 1"
    assert {one["way"] for one in found["checks"]} == {"statistical"}


@pytest.mark.slow
def test_a_broken_promise_is_exit_code_1_and_says_where(run: Run) -> None:
    Path("foreign.py").write_text(FOREIGN)
    for name in ("leaking", "made"):
        result = run("audit", f"foreign.py:{name}", "--samples", 200, "--processes", 1)
        assert result.exit_code == 1
        assert "BROKEN: at least" in " ".join(result.stdout.split())


@pytest.mark.slow
def test_of_many_pairs_without_an_event_only_the_worst_is_printed(run: Run) -> None:
    Path("foreign.py").write_text(FOREIGN)
    asked = ("--samples", 100, "--seconds", 600, "--processes", 1)
    sound = run("audit", "foreign.py:same", *asked)
    assert sound.exit_code == 0
    assert len(sound.stdout.splitlines()) == 2
    assert "and 8 more pairs with no larger bound; --json prints all" in sound.stdout
    broken = run("audit", "foreign.py:most", *asked)
    assert broken.exit_code == 1
    assert broken.stdout.count("BROKEN") == 1
    assert "and 10 more pairs" in broken.stdout
    found = json.loads(run("audit", "foreign.py:most", *asked, "--json").stdout)
    assert len(found["checks"]) == 12


@pytest.mark.slow
def test_samples_are_drawn_besides_enumerating_where_asked(run: Run) -> None:
    asked = ("--epsilon", 1, "--samples", 100, "--processes", 1, "--statistical", "--json")
    found = json.loads(run("audit", "de", *asked).stdout)
    assert [one["way"] for one in found["checks"]] == ["exact", "statistical"]


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("audit", "de"), "give its --epsilon"),
        (("audit", "nothing.json"), "there is no such file"),
        (("audit", "nothing", "--epsilon", "1"), "there is no mechanism 'nothing'"),
        (("audit", "model.json"), "a model is one draw"),
        (("audit", "foreign.py:nothing"), "is not a discreet.audit.Subject"),
        (("audit", "foreign.py:count"), "is not a discreet.audit.Subject"),
        (("audit", "foreign.py:gone"), "has no 'gone'; write a name"),
        (("audit", "gone.py:x"), "there is no such file"),
        (("audit", "gone_module:x"), "No module named"),
        (("audit", "de", "--epsilon", "1", "--confidence", "1"), "between 0 and 1"),
        (("audit", "de", "--epsilon", "1", "--paths", "-1"), "no negative number of paths"),
        (("audit", "foreign.py:torn"), "KeyError: 'mine'"),
        (("audit", "foreign.py:leaving"), "SystemExit: 1"),
        (("audit", "foreign.py:empty"), "at least one pair"),
        (("audit", "unreadable.py:x"), "SyntaxError"),
        (
            ("audit", "central", "--epsilon", "1", "--schema", "schema.json", "--delta", "2"),
            "delta",
        ),
        (("budget", "gone.json"), "there is no such ledger"),
        (("budget", "empty"), "nothing was answered from this folder"),
        (
            ("budget", "ledger.json", "--step", "foreign.py"),
            "not a plan, questionnaire, manifest",
        ),
        (("budget", "ledger.json", "--step", "schema.json"), "its format says 'schema'"),
    ],
)
def test_what_cannot_be_done_is_one_sentence(refused: Refused, words, sentence) -> None:
    Path("foreign.py").write_text(FOREIGN)
    Path("unreadable.py").write_text("def x(:")
    Path("empty").mkdir()
    Path("schema.json").write_text(SCHEMA.to_json())
    Ledger.create("ledger.json", 1.0)
    assert sentence in refused(*words)


@pytest.mark.parametrize(
    "words",
    [
        ("plan.json", "--epsilon", "0.5"),
        ("plan.json", "--schema", "s.json"),
        ("foreign.py:leaking", "--epsilon", "9"),
        ("de", "--epsilon", "1", "--delta", "0.1"),
        ("de", "--epsilon", "1", "--method", "moments"),
        ("central", "--epsilon", "1", "--schema", "s.json", "--size", "3"),
    ],
)
def test_what_would_be_ignored_is_refused(run: Run, words) -> None:
    """A plan is not audited against an epsilon that its reader states beside it."""
    Path("plan.json").write_text(PLAN.to_json())
    Path("s.json").write_text(SCHEMA.to_json())
    Path("foreign.py").write_text(FOREIGN)
    result = run("audit", *words)
    assert result.exit_code == 2
    assert "does not go with" in result.stderr


def test_what_never_runs_is_not_checked_and_not_passed(run: Run) -> None:
    """A method that does not exist fails the same way on every table: that is no proof."""
    Path("foreign.py").write_text(FOREIGN)
    Path("s.json").write_text(SCHEMA.to_json())
    central = ("central", "--epsilon", 1, "--schema", "s.json", "--method", "nothing")
    for words, error in ((("foreign.py:void",), "never runs"), (central, "method")):
        result = run("audit", *words, "--samples", 40, "--processes", 1)
        assert result.exit_code == 2
        said = " ".join(result.stdout.split())
        assert "not checked: every run ended with" in said
        assert error in said


# ------------------------------------------------------------------------------------ budget


def device(epsilon: float = 3.0) -> None:
    store = FolderStore("device")
    store.set_allowance(epsilon)
    Respondent(PLAN, store).report(RECORD)
    Respondent(SURVEY, store).report({"b": "x", "c": "no"})


def test_one_view_over_ledgers_and_devices(run: Run) -> None:
    ledger = Ledger.create("ledger.json", 2.0, 1e-5)
    ledger.charge(Guarantee(0.5, 1e-6), "training by histogram", data_source="people.csv")
    ledger.charge(Guarantee(0.25), "federated round 1")
    device()
    found = json.loads(run("budget", "ledger.json", "device", "--json").stdout)
    sheet = SURVEY.guarantee.epsilon
    one, two = found["accounts"]
    assert (one["kind"], one["spent"], one["left"]) == ("ledger", [0.75, 1e-6], [1.25, 9e-6])
    assert two["kind"] == "device"
    assert two["spent"][0] == pytest.approx(1.0 + sheet)
    assert two["left"][0] == pytest.approx(2.0 - sheet)
    assert found["spent_in_all"]["epsilon"] == pytest.approx(1.75 + sheet)
    assert found["most_in_one"] == pytest.approx(1.0 + sheet)
    shown = " ".join(run("budget", "ledger.json", "device").stdout.split())
    assert "spent 0.75 of 2, left 1.25" in shown
    assert "A person in all 2 has spent at most epsilon" in shown
    assert "costs twice its epsilon" in shown


def test_a_planned_step_is_compared_with_what_is_left(run: Run) -> None:
    Ledger.create("small.json", 0.5)
    Ledger.create("large.json", 5.0)
    Path("plan.json").write_text(PLAN.to_json())
    model = NaiveBayesModel.read("model.json")
    assert run("budget", "large.json", "--step", "plan.json").exit_code == 0
    assert run("budget", "small.json", "--epsilon", 0.5).exit_code == 0
    result = run("budget", "large.json", "small.json", "--step", "plan.json")
    assert result.exit_code == 1
    assert "large.json: can pay for it" in result.stdout
    assert "small.json: cannot pay for it: 0.5 is left" in result.stdout
    body = json.loads(run("budget", "small.json", "--step", "plan.json", "--json").stdout)
    assert body["step"] == {"epsilon": 1.0, "delta": 0.0, "fits": False}
    result = run("budget", "large.json", "--step", "model.json")
    assert (result.exit_code == 0) == model.guarantee.is_private
    assert run("budget", "large.json", "--step", "plan.json", "--epsilon", 1).exit_code == 2


def test_a_step_never_fits_where_the_ledger_would_refuse_it(run: Run) -> None:
    """The same decision as Ledger.charge, to the last decimal."""
    ledger = Ledger.create("ledger.json", 0.3)
    for spent in (0.1, 0.1):
        ledger.charge(Guarantee(spent), "step")
    assert run("budget", "ledger.json", "--epsilon", 0.1).exit_code == 0
    assert run("budget", "ledger.json", "--epsilon", 0.1000000001).exit_code == 1
    ledger.charge(Guarantee(0.1), "last")


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("a.json", "./a.json"), "given twice"),
        (("a.json", "b.json"), "given twice"),
        (("a.json", "--delta", "1e-6"), "--delta goes with --epsilon"),
        (("a.json", "--step", "plan.json", "--delta", "0.5"), "--delta goes with --epsilon"),
    ],
)
def test_nothing_counts_twice_and_nothing_is_ignored(run: Run, words, sentence) -> None:
    Ledger.create("a.json", 1.0)
    Path("b.json").symlink_to("a.json")
    Path("plan.json").write_text(PLAN.to_json())
    result = run("budget", *words)
    assert result.exit_code == 2
    assert sentence in result.stderr


def test_a_broken_ledger_and_an_unprotected_answer_are_said(run: Run) -> None:
    ledger = Ledger.create("ledger.json", 2.0)
    ledger.charge(Guarantee(math.inf), "exact", void=True)
    open_plan = Plan(SCHEMA, math.inf, [Question((), DE(math.inf, 2), 1)])
    store = FolderStore("device")
    Respondent(open_plan, store, unprotected=True).report(RECORD)
    shown = run("budget", "ledger.json", "device").stdout
    assert shown.count("BROKEN: the total no longer limits what was released") == 2
    found = json.loads(run("budget", "ledger.json", "device", "--json").stdout)
    assert found["spent_in_all"]["epsilon"] == "inf"
    assert found["accounts"][0]["left"] == [0.0, 0.0]
