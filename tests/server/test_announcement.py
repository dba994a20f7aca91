"""The words around a collection fit it, and what cannot be answered honestly is refused."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import date
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from servers import plan, questionnaire, schema

from discreet import Categorical, Schema
from discreet.collection.announcement import (
    OPEN_WITHDRAWAL_ASSUMPTION,
    Announcement,
    AnnouncementTexts,
    QuestionTexts,
    _check_browser_limits,
    make_example_yaml,
)
from discreet.errors import FormatError, PrivacyError, SchemaError
from discreet.files.yaml_text import convert_yaml_to_json
from discreet.local import PlanOptions, make_plan
from discreet.survey import Group, Questionnaire


def told(collection: Any, **changes: Any) -> Announcement:
    return Announcement.make_default(collection, "health", **changes)


def test_it_is_sealed_and_names_its_collection() -> None:
    collection = questionnaire()
    made = told(collection, asks="The union", closes="2027-03-31")
    again = Announcement.from_json(made.to_json())
    assert (again, again.digest) == (made, made.digest)
    made.check_collection(collection)
    with pytest.raises(SchemaError, match="needs an announcement of its own"):
        made.check_collection(plan())
    changed = made.to_json().replace("The union", "The boss")
    with pytest.raises(FormatError, match="changed or damaged"):
        Announcement.from_json(changed)


@pytest.mark.parametrize("make", [plan, questionnaire])
def test_the_commented_example_is_complete(make: Any) -> None:
    collection = make()
    text = make_example_yaml(collection, "health")
    assert text.count("#") > 10
    made = Announcement.from_json(convert_yaml_to_json(text, "announcement"))
    made.check_collection(collection)
    assert set(made.words["en"].questions) == set(collection.names)
    assert made.batch == 100


WRONG: dict[str, tuple[dict[str, Any], str]] = {
    "name": ({"name": "Health 1"}, "small letters, digits and hyphens"),
    "entry": ({"entry": "members"}, "entry is 'members'"),
    "withdrawal": ({"withdrawal": "later"}, "withdrawal is 'later'"),
    "batch": ({"batch": 0}, "batch is 0"),
    "day": ({"opens": "tomorrow"}, "write a day as 2027-03-31"),
    "week": ({"closes": "2027-W13-3"}, "write a day as 2027-03-31"),
    "bare": ({"closes": "20270331"}, "write a day as 2027-03-31"),
    "deletion": ({"deletes": "soon"}, "write a day as 2027-03-31"),
    "early": ({"closes": "2027-01-01", "deletes": "2027-01-01"}, "may come on 2027-01-01"),
    "at once": ({"opens": "2027-01-01", "deletes": "2026-01-01"}, "may come on 2027-01-01"),
    "order": ({"opens": "2027-02-01", "closes": "2027-01-01"}, "after it closes"),
    "tag": ({"words": {"English": AnnouncementTexts()}}, "language tag"),
    "language": ({"words": {"en": AnnouncementTexts()}, "language": "de"}, "language is 'de'"),
    "long": ({"asks": "x" * 20_001}, "20001 characters"),
}


@pytest.mark.parametrize("what", WRONG)
def test_a_wrong_setting_is_named_with_the_way_out(what: str) -> None:
    changes, message = WRONG[what]
    with pytest.raises(SchemaError, match=message):
        replace(told(questionnaire()), **changes)


def test_words_must_fit_the_questions() -> None:
    collection = questionnaire()

    def spoken(**asked: QuestionTexts) -> dict[str, Any]:
        own = {
            "en": AnnouncementTexts("Health"),
            "de": AnnouncementTexts("Gesundheit", questions=asked),
        }
        return {"words": own}

    smokes, sick = QuestionTexts("Rauchen Sie?", ("nein", "ja")), QuestionTexts("Sind Sie krank?")
    replace(told(collection), **spoken(smokes=smokes, sick=sick)).check_collection(collection)
    for asked, message in (
        ({"smokes": smokes}, "de: has no words for sick"),
        ({"smokes": QuestionTexts("?", ("nein",)), "sick": sick}, "has 1 labels; it has 2 answers"),
        ({"smokes": smokes, "sick": sick, "age": sick}, "'age', which is not asked"),
    ):
        with pytest.raises(SchemaError, match=message):
            replace(told(collection), **spoken(**asked)).check_collection(collection)


@pytest.mark.parametrize("mark", "\u202a\u202b\u202d\u202e")
def test_texts_that_are_shown_in_another_order_are_refused(mark: str) -> None:
    """“yes” would be read as “no”, or the promise after a name would be unreadable."""
    asked = {name: QuestionTexts(name) for name in schema().names}
    asked["smokes"] = QuestionTexts("Do you smoke?", ("no", f"{mark}sey"))
    collection = questionnaire()
    for changes in (
        {"words": {"en": AnnouncementTexts(questions=asked)}},
        {"asks": f"{mark}eciffo ehT"},
    ):
        with pytest.raises(SchemaError, match=f"U\\+{ord(mark):04X}"):
            replace(told(collection), **changes).check_collection(collection)
    values = Schema([Categorical("smokes", ["no", f"{mark}sey"])], "sick", ["no", "yes"])
    turned = Questionnaire(values, [Group(("smokes", "sick"), theta=0.5)])
    with pytest.raises(SchemaError, match="shows the text after it in another order"):
        told(turned).check_collection(turned)


def test_what_cannot_be_answered_honestly_is_refused_at_publication() -> None:
    names = ("smokes", "sick")
    own = replace(questionnaire(), personal="own")
    with pytest.raises(PrivacyError, match="promises nothing"):
        told(own).check_collection(own)
    told(own, unprotected=True).check_collection(own)
    groups = make_plan(schema(), 1.0, 1000, PlanOptions(assignment="groups"))
    with pytest.raises(SchemaError, match="a link carries no group"):
        told(groups).check_collection(groups)
    shuffled = make_plan(schema(), 1.0, 1000, PlanOptions(shuffled=1e-6))
    with pytest.raises(PrivacyError, match="needs an anonymiser between people"):
        told(shuffled).check_collection(shuffled)
    read = Schema([Categorical("smokes", ["no", "yes"])], "sick", ["no", "yes"], inferred=True)
    inferred = Questionnaire(read, [Group(names, theta=0.5)])
    with pytest.raises(PrivacyError):
        told(inferred, unprotected=True).check_collection(inferred)
    many = Schema([Categorical("c", [f"v{k}" for k in range(30_000)])], "sick", ["no", "yes"])
    wide = make_plan(many, 1.0, 10**6, PlanOptions(oracle="oue", kind="pairs"))
    with pytest.raises(SchemaError, match="a browser sends at most 64 kB"):
        told(wide).check_collection(wide)


def test_what_a_browser_cannot_send_or_hold_is_refused() -> None:
    def asking(width: int, largest: int) -> Any:
        channel = SimpleNamespace(width=width, mechanism=SimpleNamespace(largest=largest))
        return SimpleNamespace(questions=[SimpleNamespace(width=1), channel])

    _check_browser_limits(asking(width=2709, largest=2**53))
    with pytest.raises(SchemaError, match="question 1 makes reports of 2710 integers"):
        _check_browser_limits(asking(width=2710, largest=2**53))
    with pytest.raises(SchemaError, match=r"question 1 may report numbers beyond 2\^53"):
        _check_browser_limits(asking(width=2709, largest=2**53 + 1))


def test_an_open_withdrawal_is_one_more_assumption() -> None:
    collection = plan()
    assert OPEN_WITHDRAWAL_ASSUMPTION not in told(collection).make_guarantee(collection).assumptions
    assert (
        OPEN_WITHDRAWAL_ASSUMPTION
        in told(collection, withdrawal="open").make_guarantee(collection).assumptions
    )


def test_both_days_are_included() -> None:
    made = told(plan(), opens="2027-01-02", closes="2027-01-03")
    states = [made.get_state(date(2027, 1, day)) for day in (1, 2, 3, 4)]
    assert states == ["draft", "open", "open", "closed"]


def test_nobody_is_asked_when_everything_should_be_deleted() -> None:
    made = told(plan(), deletes="2027-01-03")
    days = [date(2027, 1, day) for day in (3, 4)]
    assert [made.get_state(day) for day in days] == ["open", "closed"]
    assert [made.is_overdue(day) for day in days] == [False, True]
    assert not told(plan()).is_overdue(date.max)
    assert made.digest != told(plan()).digest  # people are told another thing


def test_files_are_read_by_their_names(tmp_path: Path) -> None:
    collection = questionnaire()
    (tmp_path / "a.yaml").write_text(make_example_yaml(collection, "health"))
    made = Announcement.read(tmp_path / "a.yaml")
    (tmp_path / "a.json").write_text(made.to_json())
    assert Announcement.read(tmp_path / "a.json") == made
    body = json.loads(made.to_json())
    for changes, message in (
        ({"version": 9}, "update discreet"),
        ({"version": 1}, "again with"),
        ({"extra": 1}, "invalid at extra"),
    ):
        unsealed = {k: v for k, v in {**body, **changes}.items() if k != "digest"}
        with pytest.raises(FormatError, match=message):
            Announcement.from_json(json.dumps(unsealed))
