"""The report of a comparison as people see it: on a desk, on a phone, on paper."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from discreet.compare.comparison import ComparisonSettings, compare_methods
from discreet.compare.page import render_page
from discreet.datasets import make_mortgage

pytestmark = pytest.mark.browser

METHODS = ("histogram", "masks", "questions", "auto")


@pytest.fixture(scope="module")
def report(chromium: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    people = make_mortgage(600, seed=1)
    settings = ComparisonSettings((0.5, 5.0), METHODS, folds=3, most_respondents=2000)
    found = compare_methods("mortgage", people.schema, people.X, people.y, settings)
    file = tmp_path_factory.mktemp("report") / "report.html"
    file.write_text(render_page(found, command="discreet demo", is_invented=True), "utf-8")
    page = chromium.new_page()
    page.goto(file.as_uri())
    yield page
    page.close()


@pytest.mark.parametrize(
    ("width", "media", "whole"),
    [(1280, "screen", True), (375, "screen", False), (718, "print", True)],
    ids=["desk", "phone", "A4"],
)
def test_nothing_of_the_report_is_cut_off(report: Any, width: int, media: str, whole: bool) -> None:
    """On a phone the wide table scrolls by itself; on a desk and on paper all of it is seen."""
    report.set_viewport_size({"width": width, "height": 900})
    report.emulate_media(media=media)
    assert report.evaluate("document.documentElement.scrollWidth") <= width
    if whole:
        wide = "[...document.querySelectorAll('.wide')]"
        assert report.evaluate(f"{wide}.every(one => one.scrollWidth <= one.clientWidth + 1)")


def test_every_figure_of_the_report_has_its_interval(report: Any) -> None:
    cells = report.eval_on_selector_all(
        ".wide table.plain tbody tr", "rows => rows.map(r => [...r.cells].map(c => c.innerText))"
    )
    for row in cells:
        scores = row[1:2] if len(row) == 2 else row[3:6]
        assert all(" to " in score for score in scores), row
