"""The four walks of docs/data-flow.md, walked again: the page is true, and no walk grows."""

from __future__ import annotations

import pytest

import discreet
from walks import (
    PAGE,
    WALKS,
    Visited,
    count_steps,
    draw_block,
    find_block,
    list_modules,
    read_stations,
    walk_all,
    walking,
)

LIMITS = {
    "A CSV row": (276, 77),
    "A report": (282, 76),
    "A sheet": (285, 73),
    "A federated count": (260, 51),
}
"""Functions and crossings between folders of each walk; of a report the most of its draws."""
ALLOWED = 1
"""A check more or less is no reason to fail."""


@pytest.fixture(scope="module")
def walks(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Visited]:
    return walk_all(tmp_path_factory.mktemp("walks"))


@pytest.mark.slow
@pytest.mark.parametrize("title", WALKS)
def test_every_walk_goes_as_it_is_drawn(title: str, walks: dict[str, Visited]) -> None:
    """If not, ``python tests/walks.py`` writes the page again."""
    start, end = find_block(title, PAGE.read_text("utf-8"))
    stations = read_stations(PAGE.read_text("utf-8")[start:end])
    assert list_modules(walks[title]) == [name for _, names in stations for name in names]


@pytest.mark.slow
@pytest.mark.parametrize("title", WALKS)
def test_no_walk_grows(title: str, walks: dict[str, Visited]) -> None:
    functions, crossings = count_steps(walks[title])
    most_functions, most_crossings = LIMITS[title]
    assert functions <= most_functions + ALLOWED
    assert crossings <= most_crossings + ALLOWED


def test_a_call_is_noted_once_and_loading_is_not() -> None:
    visited: Visited = {}
    with walking(visited):
        discreet.Numeric("age", 18, 100)
        discreet.Numeric("pay", 0, 9)
    assert ("schema/schema", "Numeric.__post_init__") in visited
    assert not [name for _, name in visited if "<" in name or name == "Numeric"]


def test_a_sentence_stays_above_the_first_of_its_modules_that_is_left() -> None:
    block = "It is read.\n    files → schema\nIt is\ncounted.\n    tables → central → noise\n"
    assert read_stations(block)[1] == ("It is counted.", ["tables", "central", "noise"])
    assert draw_block(block, ["files", "central", "schema", "noise"]) == (
        "It is read.\n    files\nIt is counted.\n    central → schema → noise\n"
    )
