"""The four walks of docs/data-flow.md, walked again: which modules run, and in which order.

A module counts when one of its functions is called; what runs only because a module is loaded (its
classes, its decorators) does not, so that it is all the same what was imported before.
"""

from __future__ import annotations

import functools
import gc
import inspect
import json
import os
import re
import shlex
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import groupby
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
from click.testing import CliRunner

import discreet
from discreet import FederatedNB
from discreet.cli import main
from discreet.datasets import mortgage

HOME = os.path.dirname(discreet.__file__) + os.sep
PAGE = Path(__file__).parents[1] / "docs" / "data-flow.md"

FUNCTIONS, CROSSINGS = 210, 39
"""The walk of a CSV row as it is drawn; the first build had 229 functions and 39 crossings.

Of these, up to 17 functions and 3 crossings correct the model, which the first build did not do.
Some ten functions and four crossings read every value by the same expressions wherever it is
counted or scored; five functions keep outputs from replacing what costs something, and documents
from being ambiguous.
"""
DRAWN = {
    ("scoring", "Correction.check"),
    ("model/factors", "PairFactor.by_cells"),
    ("model/factors", "PairFactor.check"),
    ("model/factors", "PairFactor.names"),
}
"""Visited only where the noise lets a correction or a pair of features be chosen: not counted."""
ALLOWED = 1
"""A check more or less is no reason to fail."""

ANSWERS = {
    "burnout": "yes", "sleep": "badly", "medication": "no", "alcohol": 2, "overtime": "yes",
}  # fmt: skip

Visited = dict[tuple[str, str], None]


@contextmanager
def walking(visited: Visited) -> Iterator[None]:
    """Note the functions of discreet that are called, each once, as (module, function)."""
    loading = 0

    def note(frame: FrameType, event: str, _: Any) -> None:
        nonlocal loading
        code = frame.f_code
        if event not in ("call", "return") or not code.co_filename.startswith(HOME):
            return
        if code.co_name == "<module>":
            loading += 1 if event == "call" else -1
            return
        function = code.co_flags & inspect.CO_NEWLOCALS and not code.co_name.startswith("<")
        module = code.co_filename[len(HOME) : -len(".py")]
        if event == "call" and function and not loading and module != "exports":  # it loads, too
            visited.setdefault((module, code.co_qualname), None)

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        yield
    finally:
        sys.setprofile(before)


def by_commands(*commands: str) -> Visited:
    """What commands visit; ``>`` keeps what one prints."""
    visited: Visited = {}
    for command in commands:
        words, _, kept = command.partition(" > ")
        with walking(visited):
            result = CliRunner().invoke(main, shlex.split(words))
        assert result.exit_code == 0, (command, result.output, result.exception)
        if kept:
            Path(kept).write_text(result.stdout, "utf-8")
    return visited


def csv_row() -> Visited:
    return by_commands(
        "train mortgage.csv --schema mortgage.schema.json --epsilon 1 -o model.json",
        "predict model.json mortgage.csv",
    )


def report() -> Visited:
    people = mortgage(1)
    Path("me.json").write_text(json.dumps(people.frame.to_dict("records")[0], default=str))
    return by_commands(
        "local plan mortgage.schema.json --epsilon 1 -o plan.json",
        "local report plan.json me.json --store kept > reports.jsonl",
        "local tally plan.json reports.jsonl -o tally.json",
        "local train tally.json -o local.json",
    )


def sheet() -> Visited:
    visited = by_commands("survey new -o q.yaml")
    Path("me.json").write_text(json.dumps(ANSWERS))
    rest = by_commands(
        "survey answer q.yaml me.json --store sheets > sheets.jsonl",
        "survey tally q.yaml sheets.jsonl -o tally.json",
        "survey train tally.json -o survey.json",
    )
    return visited | rest


def federated_count() -> Visited:
    people = mortgage(300)
    visited: Visited = {}
    X, y = people.X, people.y
    nb = FederatedNB(epsilon=1.0, providers=3, schema=people.schema)
    with walking(visited):
        nb.fit(X, y)
    return visited


WALKS: dict[str, Callable[[], Visited]] = {
    "A CSV row": csv_row,
    "A report": report,
    "A sheet": sheet,
    "A federated count": federated_count,
}


def drawn(title: str) -> list[str]:
    """The modules of a walk as the page lists them."""
    walk = re.search(
        rf"^### {title}\n.*?^```text\n(.*?)^```$", PAGE.read_text("utf-8"), re.M | re.S
    )
    assert walk is not None
    lines = [line for line in walk[1].splitlines() if line.startswith("    ")]
    return [name.strip() for line in lines for name in line.split("→") if name.strip()]


@pytest.fixture(scope="module")
def walks(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Visited]]:
    for one in gc.get_objects():  # what earlier tests left there would be left out of a walk
        if isinstance(one, functools._lru_cache_wrapper) and one.__module__.startswith("discreet"):
            one.cache_clear()
    before = Path.cwd()
    os.chdir(tmp_path_factory.mktemp("walks"))
    fetch = ["datasets", "fetch", "mortgage", "-o", ".", "--rows", "6000"]
    assert CliRunner().invoke(main, fetch).exit_code == 0
    yield {title: walk() for title, walk in WALKS.items()}
    os.chdir(before)


@pytest.mark.slow
@pytest.mark.parametrize("title", WALKS)
def test_every_walk_goes_as_it_is_drawn(title: str, walks: dict[str, Visited]) -> None:
    assert list(dict.fromkeys(module for module, _ in walks[title])) == drawn(title)


@pytest.mark.slow
def test_the_walk_of_a_row_does_not_grow(walks: dict[str, Visited]) -> None:
    visited = [step for step in walks["A CSV row"] if step not in DRAWN]
    rooms = [module.split("/")[0] if "/" in module else "" for module, _ in visited]
    assert len(visited) <= FUNCTIONS + ALLOWED
    assert len(list(groupby(rooms))) - 1 <= CROSSINGS + ALLOWED


def test_a_call_is_noted_once_and_loading_is_not() -> None:
    visited: Visited = {}
    with walking(visited):
        discreet.Numeric("age", 18, 100)
        discreet.Numeric("pay", 0, 9)
    assert ("schema", "Numeric.__post_init__") in visited
    assert not [name for _, name in visited if "<" in name or name == "Numeric"]
