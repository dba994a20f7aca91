"""A date becomes the same cell in the browser's JavaScript as in Python."""

from __future__ import annotations

import random
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from date_texts import HARD, WRONG, ZONED
from discreet import Date, DatePart, Schema, SchemaError
from discreet.local import make_plan
from discreet.schema.cells import Cells, parse_numbers
from discreet.schema.dates import PART_VALUES, read_hour
from discreet.survey import Questionnaire
from programs import evaluated, modules

pytestmark = pytest.mark.browser

HOURS = """
  const { readHour } = await import(new URL("dates.js", given.static));
  return given.texts.map(readHour);
"""
CELLS = """
  const { Cells, parseNumber } = await import(new URL("cells.js", given.static));
  const cells = new Cells(given.feature, given.rules, given.cuts);
  const attempt = (read) => { try { return read(); } catch (error) { return error.reason; } };
  return { labels: cells.choices.map((choice) => choice.label), size: cells.size,
    cells: given.answers.map((answer) => attempt(() => cells.encodeAnswer(answer))),
    numbers: given.answers.map((answer) => attempt(() => parseNumber(given.feature, given.rules, answer))) };
"""  # noqa: E501
RULES = {"missing_tokens": ["?"], "unseen": "other", "outliers": "clip"}


def make_texts() -> list[str]:
    chance = random.Random(3)
    days = (date.max - date.min).days
    drawn = [str(date.min + timedelta(days=chance.randrange(days))) for _ in range(300)]
    drawn += [
        f"{day}T{chance.randrange(25):02}:{chance.randrange(61):02}"
        f"{chance.choice(['', 'Z', '+05:30', '-11', '+0100', '-00:59'])}"
        for day in drawn
    ]
    return [*HARD, *ZONED, *WRONG, " 2019-03-04\t", "2019-03-04\n", *drawn]


TEXTS = make_texts()


def read_in_javascript(static: Path) -> Any:
    return evaluated(static, HOURS, {"texts": TEXTS, "static": (static / "draw.js").as_uri()})


def test_which_text_is_a_date_and_which_hour_it_is(static: Path) -> None:
    assert read_in_javascript(static) == [read_hour(text) for text in TEXTS]


@pytest.mark.parametrize(
    ("good", "bad"),
    [
        ("SPILL_PATTERN.test(answer)", "false"),
        ("- offset;", "+ offset;"),
        ("Math.floor(minutes / 60)", "Math.trunc(minutes / 60)"),
        ("/^[\\t-\\r ]*(([0-9]{3}[1-9]|", "/^[\\t-\\r ]*((0000|[0-9]{3}[1-9]|"),
    ],
)
def test_known_bad_twins_read_other_hours(tmp_path: Path, good: str, bad: str) -> None:
    changed = modules(tmp_path, [("dates.js", good, bad)])
    assert read_in_javascript(changed) != [read_hour(text) for text in TEXTS]


@pytest.mark.parametrize(
    "feature",
    [
        Date("d", "2015-03-31", "2026-12-30", by="month", optional=False),
        Date("d", "1969-06-01", "2000-02-29"),
        Date("d", "0001-01-01", "9999-12-31", by="year"),
        *(DatePart("d", by=part) for part in PART_VALUES),  # type: ignore[arg-type]
    ],
    ids=repr,
)
def test_cells_labels_and_numbers_are_the_same(feature: Date | DatePart, static: Path) -> None:
    schema = Schema([feature], "c", ["n", "y"], "skip", "clip", "other", ["?"])
    cells = Cells.from_schema(schema, feature, 5)
    answers = [*TEXTS, "", "?", None, 5, 1614729600.0, True, "Monday", "March", "07:00"]
    given = {
        "feature": {"name": "d", **feature.to_body(), "optional": feature.optional},
        "rules": RULES,
        "cuts": list(cells.edges[1:-1]),
        "answers": answers,
        "static": (static / "draw.js").as_uri(),
    }
    said = evaluated(static, CELLS, given)

    def attempt(read: Any) -> Any:
        try:
            return read()
        except SchemaError as error:
            return "date" if "is not a date" in str(error) else "missing"

    assert said["labels"] == list(cells.labels)
    assert said["size"] == cells.size
    assert said["cells"] == [attempt(lambda v=v: cells.encode_value(v)) for v in answers]
    if isinstance(feature, Date):
        numbers = [
            attempt(
                lambda v=v: float(
                    parse_numbers(feature, np.array([v], dtype=object), ["?"], "clip")[0]
                )
            )
            for v in answers
        ]
        shown = [None if number != number else number for number in numbers]
        assert said["numbers"] == shown


def test_plans_and_questionnaires_with_dates_are_answered(static: Path) -> None:
    schema = Schema(
        [
            Date("joined", "2015-01-01", "2026-12-31", by="month"),
            DatePart("visit", by="weekday", optional=False),
        ],
        "c",
        ["no", "yes"],
    )
    record = {"joined": "2019-03-04", "visit": "2024-02-29T23:00:00", "c": "yes"}
    plan = make_plan(schema, 1.0, 1000)
    survey = Questionnaire.from_schema(schema, bins={"joined": ["2019-03-01", "2020-01-01"]})
    assert Questionnaire.from_json(survey.to_json()).digest == survey.digest
    assert type(plan).from_json(plan.to_json()).digest == plan.digest
    script = """
      const collection = await draw.collectionOf(new TextEncoder().encode(given.text), {});
      await collection.report(given.record);
      return collection.choices("joined").map((choice) => choice.label);
    """
    for collection in (plan, survey):
        collection.encode_record(record)
        text = collection.encode_canonical().decode()
        labels = evaluated(static, script, {"text": text, "record": record})
        assert labels == list(collection.cells["joined"].labels)
    assert survey.cells["joined"].labels[1] == "2019-03 to 2019-12"
