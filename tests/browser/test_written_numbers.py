"""Numbers as people write them: what can be read in two ways is asked, never guessed."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from servers import serving
from sites import PSEUDO, Person, bundle

from discreet import Numeric, Schema
from discreet.collection.announcement import Announcement, AnnouncementTexts, QuestionTexts
from discreet.local import PlanOptions, make_plan
from discreet.server import surveys
from discreet.server.bundle import Bundle
from discreet.server.database import Database
from discreet.server.pages import create_public_router
from programs import evaluated, modules

pytestmark = pytest.mark.browser

READ = """
  const { readNumber } = await import(new URL("numbers.js", given.static));
  return given.cases.map(([written, lower, upper, integer, clips]) => readNumber(written, { lower, upper, integer, clips }));
"""  # noqa: E501
RENT = (0, 10_000)


def read(static: Path, *cases: tuple[Any, ...]) -> list[Any]:
    """What is read from a text, within bounds and as a whole number or not."""
    filled = [(*case, *(*RENT, False, False)[len(case) - 1 :]) for case in cases]
    given = {"cases": filled, "static": (static / "draw.js").as_uri()}
    return [one.get("text", one.get("question")) for one in evaluated(static, READ, given)]


def test_three_digits_behind_a_separator_are_asked_about(static: Path) -> None:
    """Thousands in one country are a fraction in the next; both are rents."""
    texts = ["3,500", "3.500", "+3,500", "٣,٥٠٠", "３，５００", " 9.999 "]
    asked = [["3500", "3.5"]] * 2 + [["+3500", "+3.5"]] + [["3500", "3.5"]] * 2
    assert read(static, *((text,) for text in texts)) == [*asked, ["9999", "9.9990"]]
    assert read(static, ("-3,512", -5000, 0), ("3,512", None, None)) == [
        ["-3512", "-3.5120"],
        ["3512", "3.5120"],
    ]


def test_the_known_bad_twin_takes_every_comma_for_a_point(tmp_path: Path) -> None:
    """As the page did before: 3,500 became 3.5 under a hint that read 10,000."""
    old = "if (leadingDigits) return chooseReading"
    changed = modules(tmp_path, [("numbers.js", old, "if (false) return chooseReading")])
    assert read(changed, ("3,500",)) == ["3.500"]


def test_where_numbers_are_clipped_one_beyond_the_bounds_is_an_answer_as_well(static: Path) -> None:
    """12,500 within 0 to 10,000 is 10,000 then, or 12.5; the twin refuses what is too large."""
    found = read(static, ("12,500", *RENT, False, True), ("12,500", *RENT, False, False))
    assert found == [["12500", "12.5"], "12.500"]
    alike = [("12.500", 0, 10, False), ("-12,500", 0, 10, False), ("12,500", *RENT, True)]
    assert read(static, *((*case, True) for case in alike)) == ["12500", "-12500", "12500"]


@pytest.mark.slow
@pytest.mark.parametrize("whole", [False, True])
def test_what_is_suggested_is_accepted(whole: bool, static: Path) -> None:
    texts = ["3,500", "3.512", "1.001", "9,990", "7.000", "-1,234", "-2.000"]
    asked = read(static, *((text, -9999, 9999, whole) for text in texts))
    for text, suggested in zip(texts, asked, strict=True):
        if isinstance(suggested, str):  # not whole as a fraction: there is nothing to ask
            assert whole
            assert float(suggested) == float(text.replace(",", "").replace(".", ""))
            continue
        spellings = [*suggested, *(one.replace(".", ",") for one in suggested)]
        again = read(static, *((one, -9999, 9999, whole) for one in spellings))
        values = [float(text.replace(mark, new)) for mark, new in ((",", ""), (",", "."))]
        if "." in text:
            values = [float(text.replace(".", "")), float(text)]
        assert [float(one) for one in again] == values * 2


@pytest.mark.slow
@pytest.mark.parametrize(
    ("case", "meant"),
    [
        (("0.125",), "0.125"),  # thousands do not begin with a zero
        (("0,125",), "0.125"),
        ((".125",), ".125"),
        (("3,5",), "3.5"),
        (("3,50",), "3.50"),
        (("3.5000",), "3.5000"),
        (("1234,500",), "1234.500"),
        (("3,500", 0, 10), "3.500"),  # only one of the two is possible
        (("3.500", 100, 10_000), "3500"),
        (("3.500", 0, 10_000, True), "3500"),  # three and a half is not a whole number
        (("3,500", 0, 100, True), "3500"),  # and is refused as too large
        (("12.500", 0, 10), "12500"),  # so are both of these
        (("1 000",), "1000"),
        (("1\u00a0000",), "1000"),
        (("1\u202f000,5",), "1000.5"),
        (("1'000",), "1000"),
        (("1’000.25",), "1000.25"),
        (("1,234.5",), "1234.5"),
        (("1.234,5",), "1234.5"),
        (("1,234,567", 0, 1e7), "1234567"),
        (("1.234.567", 0, 1e7), "1234567"),
        (("12,34,567", 0, 1e7), "1234567"),
        (("1,50,000", 0, 1e7), "150000"),
        (("٣٥٠٠",), "3500"),
        (("۳۵۰۰",), "3500"),
        (("٣٫٥٠٠",), "3.500"),
        (("٣٬٥٠٠",), "3500"),
        (("३५००",), "3500"),
        (("３５００",), "3500"),
        (("\u22125", -10, 0), "-5"),
        (("1e3",), "1e3"),
        (("42",), "42"),
    ],
)
def test_what_has_one_meaning_is_understood(case: Any, meant: str, static: Path) -> None:
    assert read(static, case) == [meant]


@pytest.mark.slow
@pytest.mark.parametrize(
    "text", ["1 00", "1,00", "12,3456,7", "1'00", "1 000'000", "3,500,", "1,2,3", "0,125,000", "x"]
)
def test_what_is_not_a_number_stays_what_it_is(text: str, static: Path) -> None:
    found = read(static, (text,))
    assert found == [text.replace(",", ".") if text == "1,00" else text]


# ---------------------------------------------------------------- on the page


def rents(slug: str = "rents") -> tuple[Any, Announcement]:
    outliers: Any = "clip" if slug == "clipped" else "error"
    features = [Numeric("rent", *RENT, optional=False)]
    schema = Schema(features, "sick", ["no", "yes"], outliers=outliers)
    plan = make_plan(schema, epsilon=1.0, options=PlanOptions(numeric="gaussian"))
    asked = {"rent": QuestionTexts("How much?"), "sick": QuestionTexts("Sick?")}
    words = {
        tag: AnnouncementTexts(f"Rents {tag}", questions=asked) for tag in ("en", "de", PSEUDO)
    }
    return plan, Announcement(plan.digest, slug, "Office", "o@example.org", words, "en")


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with Database(f"sqlite:///{tmp_path_factory.mktemp('rents')}/collected.db") as database:
        database.migrate()
        with database.write() as connection:
            for slug in ("rents", "clipped"):
                number = surveys.create_survey(connection, *rents(slug))
                surveys.set_state(connection, number, "open")
        with serving(database, [create_public_router(bundle())]) as live:
            yield live.base


def asked_for_a_rent(chromium: Any, base: str, locale: str, slug: str = "rents") -> Person:
    """Somebody who drew a question about the number; two of three people do."""
    for _ in range(40):
        somebody = Person(chromium, base, locale=locale)
        somebody.goto(slug)
        drawn = json.loads(somebody.kept())[4][0]["question"]
        if rents(slug)[0].questions[drawn].features:
            somebody.page.locator("button.primary").click()
            somebody.page.locator("input[type=text]").wait_for()
            return somebody
        somebody.context.close()
    raise AssertionError("forty people drew the class alone: chance 3 ** -40")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("locale", "hint", "written", "asked"),
    [
        ("en-GB", "A number from 0 to 10000", "3,500", "Did you mean 3500 or 3.5?"),
        ("en-IN", "A number from 0 to 10000", "3,500", "Did you mean 3500 or 3.5?"),
        ("de-DE", "Eine Zahl von 0 bis 10000", "3.500", "Meinen Sie 3500 oder 3,5?"),
        ("de-CH", "Eine Zahl von 0 bis 10000", "3.500", "Meinen Sie 3500 oder 3.5?"),
        (PSEUDO, "A numbéér from 0 to 10000", "3,500", "Did you mééan 3500 or 3"),
    ],
)
def test_a_rent_of_3500_is_not_taken_for_one_of_3_and_a_half(
    locale: str, hint: str, written: str, asked: str, chromium: Any, base: str
) -> None:
    with asked_for_a_rent(chromium, base, locale) as somebody:
        page, field = somebody.page, somebody.page.locator("input[type=text]")
        shown = page.locator(".hint").inner_text()
        assert hint in _in_ascii(shown)
        for mark in ",.'’\u00a0\u202f٬":
            assert mark not in shown.replace("··", "")
        field.fill(written)
        page.locator("button[type=submit]").click()
        problem = page.locator(".problem")
        assert asked in problem.inner_text()
        assert written in problem.inner_text()
        assert field.get_attribute("aria-invalid") == "true"
        field.fill("3500")
        page.locator("button[type=submit]").click()
        page.locator("input[type=radio]").first.wait_for()  # the next question
        page.go_back()
        assert field.input_value() == "3500"
        assert not somebody.problems


@pytest.mark.slow
def test_the_page_asks_also_where_one_reading_would_be_clipped(chromium: Any, base: str) -> None:
    for slug, asked in (("clipped", True), ("rents", False)):
        with asked_for_a_rent(chromium, base, "en-GB", slug) as somebody:
            somebody.page.locator("input[type=text]").fill("12,500")
            somebody.page.locator("button[type=submit]").click()
            if asked:
                problem = somebody.page.locator(".problem").inner_text()
                assert "Did you mean 12500 or 12.5?" in problem
            else:
                somebody.page.locator("input[type=radio]").first.wait_for()


def _in_ascii(text: str) -> str:
    return "".join(str(int(letter)) if letter.isdecimal() else letter for letter in text)


def test_no_catalogue_writes_a_number_with_separators() -> None:
    """Numbers in sentences of the page come from the document, and are written by one function."""
    for tag, words in Bundle().words.items():
        for key, text in words.items():
            texts = text.values() if isinstance(text, dict) else [text]
            for sentence in texts:
                assert not any(
                    before.isdigit() and mark in ",.'" and after.isdigit()
                    for before, mark, after in zip(
                        sentence, sentence[1:], sentence[2:], strict=False
                    )
                ), (tag, key)
