"""Claims: what one person answers in total stays within what they allowed, whoever asks."""

from __future__ import annotations

import json
import math
import os
import stat
import threading
from collections import Counter
from contextlib import suppress
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from discreet.collection.report import derive_report_id
from discreet.collection.respondent import FolderStore, MemoryStore, Respondent
from discreet.errors import FormatError, PrivacyError, SchemaError
from discreet.local.plan import Plan, Question
from discreet.local.planning import PlanOptions, make_plan
from discreet.mechanisms.frequency import DE
from discreet.survey.questionnaire import Group, Questionnaire
from schemas import LETTER as SMALL

RECORD = {"a": "x", "c": "yes"}


def fishing(epsilon: float = 1.0, times: int = 200) -> list[Plan]:
    """Plans that differ in a weight only: a collector who wants to ask one person many times."""
    return [
        Plan(SMALL, epsilon, [Question((), DE(epsilon, 2), 1), Question(("a",), DE(1.0, 4), k)])
        for k in range(1, times + 1)
    ]


@pytest.mark.parametrize("kind", ["memory", "folder"])
def test_whoever_draws_second_answers_the_question_that_is_kept(tmp_path: Path, kind: str) -> None:
    """Two programs that begin together must not answer two questions."""
    store = MemoryStore() if kind == "memory" else FolderStore(tmp_path)
    assert store.save_question("sha256:ab", 0, 3, 1.0) == 3
    assert store.save_question("sha256:ab", 0, 5, 1.0) == 3
    assert store.find_question("sha256:ab", 0) == 3


class Forgetful(MemoryStore):
    """The known-bad twin: it keeps reports, but does not add up what they cost."""

    def _charge_epsilon(self, collection: str, epsilon: float) -> None:
        pass


def answered(store: Any, plans: list[Plan]) -> Counter[tuple[int, ...]]:
    """What a fishing collector learns: the answers to the first question."""
    sent: Counter[tuple[int, ...]] = Counter()
    for plan in plans:
        try:
            report = Respondent(plan, store).report(RECORD)
        except PrivacyError:
            continue
        sent[report.value] += report.question == 0
        sent["reports"] += 1  # type: ignore[index]
    return sent


def test_many_nearly_equal_plans_are_not_all_answered() -> None:
    plans = fishing()
    assert answered(MemoryStore(), plans)["reports"] == 1  # type: ignore[index]


def test_twin_a_store_that_does_not_add_up_answers_them_all() -> None:
    assert answered(Forgetful(), fishing())["reports"] == 200  # type: ignore[index]


def test_the_first_collection_sets_the_allowance_and_the_owner_may_raise_it(tmp_path: Path) -> None:
    plans = fishing(times=4)
    store = FolderStore(tmp_path / "kept")
    first = Respondent(plans[0], store).report(RECORD)
    assert store.allowance == 1.0
    with pytest.raises(PrivacyError, match=r"cost epsilon 1; .* costs 1 more, .* allow 2 in total"):
        Respondent(plans[1], store).report(RECORD)
    assert Respondent(plans[0], store).report(RECORD) == first  # what is answered stays
    store.set_allowance(3.0)
    later = FolderStore(tmp_path / "kept")  # another process
    for plan in plans[1:3]:
        Respondent(plan, later).report(RECORD)
    with pytest.raises(PrivacyError, match="only 3 is allowed"):
        Respondent(plans[3], later).report(RECORD)
    assert sum(later.read_charges().values()) == 3.0


def test_an_allowance_may_be_set_before_the_first_answer() -> None:
    store = MemoryStore()
    store.set_allowance(0.5)
    with pytest.raises(PrivacyError, match=r"only 0\.5 is allowed"):
        Respondent(fishing(times=1)[0], store).report(RECORD)
    with pytest.raises(PrivacyError, match="above 0"):
        store.set_allowance(0.0)


def test_decimal_allowances_add_up() -> None:
    store = MemoryStore()
    store.set_allowance(0.3)
    for epsilon in (0.1, 0.2):
        Respondent(make_plan(SMALL, epsilon), store).report(RECORD)
    with pytest.raises(PrivacyError):
        Respondent(make_plan(SMALL, 1e-6), store).report(RECORD)


def test_plans_and_questionnaires_share_one_account(survey: Questionnaire, answers: Any) -> None:
    store = MemoryStore()
    Respondent(make_plan(SMALL, 1.0), store).report(RECORD)
    with pytest.raises(PrivacyError, match="only 1 is allowed"):
        Respondent(survey, store).report(answers)
    store.set_allowance(1.0 + survey.guarantee.epsilon)
    Respondent(survey, store).report(answers)
    with pytest.raises(PrivacyError, match="allowed in total"):
        Respondent(make_plan(SMALL, 0.5), store).report(RECORD)


def test_several_reports_to_one_plan_are_charged_once() -> None:
    plan, store = make_plan(SMALL, 1.0, options=PlanOptions(reports=3)), MemoryStore()
    for _ in range(3):
        Respondent(plan, store).report(RECORD, again=True)
    assert list(store.read_charges().values()) == [1.0]


def test_racing_processes_do_not_exceed_the_allowance(tmp_path: Path) -> None:
    plans, got = fishing(times=8), []

    def ask(plan: Plan) -> None:
        with suppress(PrivacyError):
            got.append(Respondent(plan, FolderStore(tmp_path / "kept")).report(RECORD))

    threads = [threading.Thread(target=ask, args=(plan,)) for plan in plans]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert len(got) == 1


# without protection


def test_the_truth_is_sent_only_when_told_so(answers: Any, survey: Questionnaire) -> None:
    open_plan = make_plan(SMALL, math.inf)
    at_one = Questionnaire(SMALL, [Group(("a", "c"), theta=1)])
    for collection, record in ((open_plan, RECORD), (at_one, RECORD)):
        with pytest.raises(PrivacyError, match="promises no epsilon"):
            Respondent(collection, MemoryStore())
        sent = Respondent(collection, MemoryStore(), unprotected=True).report(record)
        assert sent.value
    assert Respondent(at_one, MemoryStore(), unprotected=True).report(RECORD).value == (0, 1)


def test_consent_to_one_open_collection_is_no_consent_to_others() -> None:
    store = MemoryStore()
    Respondent(make_plan(SMALL, math.inf), store, unprotected=True).report(RECORD)
    assert store.allowance is None
    Respondent(make_plan(SMALL, 1.0), store).report(RECORD)
    with pytest.raises(PrivacyError, match="only 1 is allowed"):
        Respondent(make_plan(SMALL, 0.5), store).report(RECORD)


# the question apart from the answer


def test_a_question_is_drawn_and_kept_before_anything_is_asked(tmp_path: Path) -> None:
    plan = make_plan(SMALL, 1.0, options=PlanOptions(kind="paper"))
    asked = set()
    for number in range(40):
        store = FolderStore(tmp_path / str(number))
        question = Respondent(plan, store).draw_question()
        assert Respondent(plan, store).draw_question() == question  # also after a restart
        asked.add(question)
        record = {name: RECORD[name] for name in plan.get_asked_columns(question)}
        report = Respondent(plan, store).answer_question(record)
        assert report.question == question
        assert Respondent(plan, store).report(RECORD) == report
        assert Respondent(plan, store).draw_question() == question
        assert Respondent(plan, store).answer_question(record) == report
    assert asked == {0, 1}
    assert plan.get_asked_columns(0) == ("c",)


def test_only_what_was_asked_is_looked_at() -> None:
    plan = make_plan(SMALL, 1.0, options=PlanOptions(kind="paper", assignment="groups"))
    person = Respondent(plan, MemoryStore(), group=0)
    with pytest.raises(PrivacyError, match="draw_question"):
        person.answer_question({"c": "yes"})
    assert person.draw_question() == 0
    with pytest.raises(SchemaError, match="'maybe' is not one of"):
        person.answer_question({"c": "maybe"})
    assert person.answer_question({"c": "yes", "a": "never looked at"}).question == 0
    other = Respondent(plan, MemoryStore(), group=1)
    other.draw_question()
    with pytest.raises(SchemaError, match="a: a value is missing"):
        other.answer_question({"c": "yes"})


def test_drawing_the_question_costs_what_answering_costs() -> None:
    """Otherwise a collector could draw questions for nothing until one suits."""
    one, two = fishing(times=2)
    store = MemoryStore()
    Respondent(one, store).draw_question()
    with pytest.raises(PrivacyError, match="allowed in total"):
        Respondent(two, store).draw_question()


def test_the_question_drawn_apart_follows_the_plan() -> None:
    plan = make_plan(SMALL, 1.0, options=PlanOptions(kind="paper"))
    share = Fraction(plan.questions[0].weight, sum(q.weight for q in plan.questions))
    drawn = Counter(Respondent(plan, MemoryStore()).draw_question() for _ in range(2000))
    deviation = math.sqrt(2000 * float(share * (1 - share)))
    assert abs(drawn[0] - 2000 * float(share)) < 6 * deviation  # a false alarm in 1e9


# what is kept, and who can read it


def test_the_id_commits_to_a_key_that_stays_on_the_device(tmp_path: Path) -> None:
    plan = make_plan(SMALL, 1.0)
    reports = []
    for number in range(3):
        folder = tmp_path / str(number)
        report = Respondent(plan, FolderStore(folder)).report(RECORD)
        (kept,) = FolderStore(folder).load_reports(plan.digest)
        assert derive_report_id(bytes.fromhex(kept.key)) == report.id
        assert kept.key not in report.to_json()
        reports.append(report.id)
    assert len(set(reports)) == 3
    with pytest.raises(FormatError, match="16 bytes"):
        derive_report_id(b"short")


def test_stores_are_for_their_owner_alone(tmp_path: Path) -> None:
    before = os.umask(0o022)
    try:
        store = FolderStore(tmp_path / "deep" / "kept")
        store.set_allowance(2.0)
        Respondent(make_plan(SMALL, 1.0), store).report(RECORD)
    finally:
        os.umask(before)
    for folder in (store.folder, store.folder.parent):
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    files = list(store.folder.iterdir())
    assert len(files) == 3
    assert {stat.S_IMODE(file.stat().st_mode) for file in files} == {0o600}


def test_a_folder_that_cannot_be_read_is_one_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not a traceback, and above all no fresh draw as if nothing had been sent."""
    plan, store = make_plan(SMALL, 1.0), FolderStore(tmp_path)
    Respondent(plan, store).report(RECORD)

    def closed(path: Any) -> list[str]:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("discreet.collection.store.os.listdir", closed)
    with pytest.raises(FormatError, match=r"cannot be read: Permission denied; nothing is drawn"):
        Respondent(plan, store).report(RECORD)
    (tmp_path / "file").write_text("")
    monkeypatch.undo()
    with pytest.raises(FormatError, match="cannot be read: Not a directory"):
        Respondent(plan, FolderStore(tmp_path / "file")).report(RECORD)


@pytest.mark.parametrize("name", ["allowance.json", "*.question.json"])
def test_a_damaged_account_is_not_a_fresh_one(tmp_path: Path, name: str) -> None:
    one, two = fishing(times=2)
    Respondent(one, FolderStore(tmp_path)).report(RECORD)
    (file,) = tmp_path.glob(name)
    whole = json.loads(file.read_text())
    file.write_text(json.dumps({**whole, "epsilon": 1e-9}))  # the digest notices
    with pytest.raises(FormatError, match="damaged"):
        Respondent(two, FolderStore(tmp_path)).report(RECORD)
