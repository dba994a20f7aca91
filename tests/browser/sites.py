"""A server with surveys of every kind, and a person who answers them in a real browser."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from servers import Live, serving

from discreet import Categorical, Numeric, Schema
from discreet.collection.announcement import Announcement, AnnouncementTexts, QuestionTexts
from discreet.local import Plan, PlanOptions, Question, make_plan
from discreet.mechanisms.frequency import DE
from discreet.server import surveys
from discreet.server.bundle import Bundle
from discreet.server.database import Database
from discreet.server.desk import create_desk_router
from discreet.server.pages import create_public_router
from discreet.statistics.candidate import CandidateModel
from discreet.survey import Group, Questionnaire

PSEUDO = "ar-XB"
"""A language for tests, written from right to left: English, longer and in brackets."""
SENTINEL = "424242.75"
"""A number that somebody answers and that must never be seen again."""


def pseudo(text: Any) -> Any:
    """A text as long as the longest translation, with the same places for values."""
    if isinstance(text, dict):
        return {name: pseudo(part) for name, part in text.items()}
    parts = re.split(r"(\{\w+\})", text)
    return "[" + "".join(p if p.startswith("{") else p.replace("e", "éé") for p in parts) + " ··]"


def bundle(changes: Mapping[str, tuple[str, str]] | None = None) -> Bundle:
    """The package's files, the pseudo-language beside them, and one text replaced in some."""
    files = dict(Bundle().files)
    words = {key: pseudo(text) for key, text in json.loads(files["words/en.json"]).items()}
    files[f"words/{PSEUDO}.json"] = json.dumps({**words, "direction": "rtl"}).encode()
    for name, (old, new) in (changes or {}).items():
        text = files[name].decode()
        assert text.count(old) == 1, f"{name} holds {old!r} {text.count(old)} times"
        files[name] = text.replace(old, new).encode()
    return Bundle(files)


def habits(*optional: str) -> Schema:
    def feature(name: str) -> Categorical:
        return Categorical(name, ["no", "yes"], optional=name in optional)

    return Schema([feature("smokes"), feature("drinks")], "sick", ["no", "yes"])


def numbers() -> Schema:
    return Schema([Numeric("income", 0, 1e6, optional=False)], "sick", ["no", "yes"])


BOTH = Group(("smokes", "sick"), theta=0.4), Group(("drinks",), theta=0.5)


def sheets(schema: Schema | None = None, **options: Any) -> Questionnaire:
    groups = options.pop("groups", BOTH)
    return Questionnaire(schema or habits(), list(groups), title="Habits", **options)


def judging() -> Plan:
    """A wave in which people judge two models: smokers are sick; those who drink are not."""
    names = ("smokes", "drinks")
    questions = []
    for scores in (([[0, -9], [-9, 0]], [[0, 0], [0, 0]]), ([[0, 0], [0, 0]], [[-9, 0], [0, -9]])):
        tables = {name: np.array(one) for name, one in zip(names, scores, strict=True)}
        candidate = CandidateModel(np.array([0, 0]), tables)
        questions.append(Question(names, DE(1.0, 2), 1, candidate=candidate))
    return Plan(habits(), 1.0, questions)


def collections() -> dict[str, tuple[Any, dict[str, Any]]]:
    """Every kind of collection by its name, with settings of its announcement."""
    warner = [Group((one,), theta=0.75, model="related") for one in ("smokes", "drinks", "sick")]
    return {
        "lists": (
            make_plan(
                habits("smokes"), epsilon=1.0, options=PlanOptions(kind="pairs", oracle="ss")
            ),
            {},
        ),
        "direct": (
            make_plan(habits(), epsilon=3.0, options=PlanOptions(kind="pairs", oracle="de")),
            {},
        ),
        "bits": (
            make_plan(habits(), epsilon=1.0, options=PlanOptions(kind="pairs", oracle="oue")),
            {},
        ),
        "means": (make_plan(numbers(), epsilon=1.0, options=PlanOptions(numeric="gaussian")), {}),
        "judging": (judging(), {}),
        "sheet": (sheets(), {}),
        "either": (sheets(device="either"), {}),
        "warner": (sheets(groups=warner), {"withdrawal": "open"}),
        "own": (sheets(personal="own", device="either"), {"unprotected": True}),
        "hand": (sheets(device="hand"), {}),
        "invited": (sheets(), {"entry": "invited"}),
        "settled": (sheets(), {"withdrawal": "none"}),
    }


LONG = "Arbeitsunfähigkeitsbescheinigungsvordruckausgabestellenverzeichnis " * 3
TAGS = ("en", "de", PSEUDO)


def spoken() -> tuple[Any, Announcement]:
    """A plan with words in three languages, long ones, and forty answers to one question."""
    town = Categorical("town", [f"Town number {k} upon the river" for k in range(40)])
    plan = make_plan(
        Schema([town], "sick", ["no", "yes"]),
        epsilon=1.0,
        options=PlanOptions(kind="pairs", oracle="ss"),
    )
    words = {
        tag: AnnouncementTexts(
            f"{tag}: {LONG}",
            "<img src=x onerror=alert(1)> & <b>not bold</b>\n\nA second paragraph.",
            "For nothing but this test.",
            "Many thanks.",
            {
                "town": QuestionTexts("Where do you live?", (), "As far as you remember."),
                "sick": QuestionTexts(
                    f"Are you ill, {tag}?", ("not at all", "a little, or " + LONG)
                ),
            },
        )
        for tag in TAGS
    }
    days = {"closes": "2099-12-31", "deletes": "2100-01-31"}
    announced = Announcement(
        plan.digest, "spoken", "The office", "office@example.org", words, "en", **days
    )
    return plan, announced


@contextmanager
def site(folder: Path, made: Bundle | None = None, *only: str) -> Iterator[Live]:
    """A server with all surveys, or only some, and the pages of a bundle."""
    with Database(f"sqlite:///{folder}/collected.db") as database:
        database.migrate()
        announced = [
            (collection, Announcement.make_default(collection, name, batch=2, **settings))
            for name, (collection, settings) in collections().items()
            if not only or name in only
        ]
        if not only:
            announced.append(spoken())
        with database.write() as connection:
            for collection, announcement in announced:
                number = surveys.create_survey(connection, collection, announcement)
                surveys.set_state(connection, number, "open")
        with serving(
            database, [create_public_router(made or bundle()), create_desk_router()]
        ) as live:
            yield live


class Person:
    """Somebody at a browser; remembers every request that leaves it.

    Parameters
    ----------
    browser : Browser
        Of Playwright.
    base : str
    **options
        Of the browser's context.
    """

    def __init__(self, browser: Any, base: str, **options: Any) -> None:
        self.base = base
        self.context = browser.new_context(**{"locale": "en-GB", **options})
        self.context.set_default_timeout(60_000)
        self.requests: list[Any] = []
        self.context.on("request", lambda one: self.requests.append(one))
        self.problems: list[str] = []
        self.page = self.opened()

    def opened(self) -> Any:
        page = self.context.new_page()
        page.on("pageerror", lambda error: self.problems.append(str(error)))
        return page

    def goto(self, name: str, page: Any = None) -> Any:
        page = page or self.page
        page.goto(f"{self.base}/s/{name}")
        page.locator("h1").wait_for()
        return page

    def press(self, label: str, page: Any = None) -> None:
        """Press a button and wait for another screen."""
        page = page or self.page
        before = page.locator("h1").element_handle()
        page.get_by_role("button", name=label, exact=True).click()
        page.wait_for_function("(old) => !old.isConnected", arg=before)

    def answer(self, which: int = 0, page: Any = None) -> None:
        """Answer all screens of questions: the same place in each list, the sentinel as number."""
        page = page or self.page
        while page.locator("form").count():
            for fieldset in page.locator("fieldset").all():
                if fieldset.locator("input[type=radio]").count():
                    fieldset.locator("input[type=radio]").nth(which).check()
                elif fieldset.locator("select").count():
                    fieldset.locator("select").select_option(index=1 + which)
                else:
                    fieldset.locator("input[type=text]").fill(SENTINEL)
            self.press("Continue", page)

    def reviewed(self, name: str, which: int = 0, page: Any = None, begin: str = "Begin") -> Any:
        """Answer a survey as far as the last screen before sending."""
        page = self.goto(name, page)
        self.press(begin, page)
        self.answer(which, page)
        return page

    def sent(self, name: str, which: int = 0) -> None:
        """Answer a survey to its end."""
        self.reviewed(name, which)
        self.press("Draw and send")
        self.counted()

    def counted(self, page: Any = None) -> None:
        (page or self.page).get_by_role("heading", name="Your answer was counted").wait_for()

    def bodies(self) -> list[str]:
        """Every body that was sent as a report, in order."""
        return [
            one.post_data
            for one in self.requests
            if one.method == "POST" and one.url.endswith("/reports")
        ]

    def kept(self) -> str:
        """Everything that this browser stores, as one text."""
        return str(
            self.page.evaluate(
                """async () => {
                  const contents = [{...localStorage}, {...sessionStorage}, document.cookie];
                  contents.push(history.state);
                  for (const { name } of await indexedDB.databases()) {
                    const opening = indexedDB.open(name);
                    const db = await new Promise((resolve) => {
                      opening.onsuccess = () => resolve(opening.result);
                    });
                    for (const store of db.objectStoreNames) {
                      const reading = db.transaction(store).objectStore(store).getAll();
                      contents.push(await new Promise((resolve) => {
                        reading.onsuccess = () => resolve(reading.result);
                      }));
                    }
                    db.close();
                  }
                  return JSON.stringify(contents);
                }"""
            )
        )

    def __enter__(self) -> Person:
        return self

    def __exit__(self, *_: object) -> None:
        self.context.close()
