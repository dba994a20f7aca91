"""The four walks of docs/data-flow.md: which modules run, and in which order.

A module counts when one of its functions is called; what runs only because a module is loaded (its
classes, its decorators) does not, so that it is all the same what was imported before.

``python tests/walks.py`` walks again and writes the lists of modules into the page; the sentences
stay with the modules that they stand above.
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
import tempfile
import textwrap
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import groupby
from pathlib import Path
from types import FrameType
from typing import Any

from click.testing import CliRunner

import discreet
from discreet import FederatedNB
from discreet.cli import main
from discreet.datasets import make_mortgage

HOME = os.path.dirname(discreet.__file__) + os.sep
PAGE = Path(__file__).parents[1] / "docs" / "data-flow.md"

DRAWN_BY_NOISE = {
    ("statistics/scoring", "Correction.check_tables"),
    ("model/factors", "PairFactor.score_cells"),
    ("model/factors", "PairFactor.check_classes"),
    ("model/factors", "PairFactor.names"),
}
"""Visited only where the noise lets a correction or a pair of features be chosen: not counted."""

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
    people = make_mortgage(1)
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
        "survey tally q.yaml sheets.jsonl -o counted.json",
        "survey train counted.json -o survey.json",
    )
    return visited | rest


def federated_count() -> Visited:
    people = make_mortgage(300)
    visited: Visited = {}
    X, y = people.X, people.y
    nb = FederatedNB(epsilon=1.0, providers=3, judge="never", schema=people.schema)
    with walking(visited):
        nb.fit(X, y)
    return visited


WALKS: dict[str, Callable[[], Visited]] = {
    "A CSV row": csv_row,
    "A report": report,
    "A sheet": sheet,
    "A federated count": federated_count,
}


def walk_all(folder: Path) -> dict[str, Visited]:
    """Walk all four in a folder of their own."""
    for item in gc.get_objects():  # what ran earlier left there would be left out of a walk
        if isinstance(item, functools._lru_cache_wrapper) and item.__module__.startswith(
            "discreet"
        ):
            item.cache_clear()
    before = Path.cwd()
    os.chdir(folder)
    try:
        fetch = ["datasets", "fetch", "mortgage", "-o", ".", "--rows", "6000"]
        assert CliRunner().invoke(main, fetch).exit_code == 0
        return {title: walk() for title, walk in WALKS.items()}
    finally:
        os.chdir(before)


def list_modules(visited: Visited) -> list[str]:
    """The modules of a walk in the order of their first call."""
    return list(dict.fromkeys(module for module, _ in visited))


def count_steps(visited: Visited) -> tuple[int, int]:
    """Functions of a walk, and how often it goes from one folder to another."""
    steps = [step for step in visited if step not in DRAWN_BY_NOISE]
    folders = [module.split("/")[0] if "/" in module else "" for module, _ in steps]
    return len(steps), len(list(groupby(folders))) - 1


def find_block(title: str, text: str) -> tuple[int, int]:
    """Where the list of a walk begins and ends on the page."""
    block = re.search(rf"^### {title}\n.*?^```text\n(.*?)^```$", text, re.M | re.S)
    assert block is not None, f"the page has no walk {title!r}"
    return block.span(1)


def read_stations(block: str) -> list[tuple[str, list[str]]]:
    """Pairs of a sentence of the page and the modules below it."""
    stations: list[tuple[str, list[str]]] = []
    for line in block.splitlines():
        if not line.startswith("    "):
            if stations and not stations[-1][1]:
                stations[-1] = (f"{stations[-1][0]} {line}", [])
            else:
                stations.append((line, []))
        else:
            stations[-1][1].extend(name.strip() for name in line.split("→") if name.strip())
    return stations


def draw_block(block: str, modules: list[str]) -> str:
    """The block of a walk with these modules: each sentence above the first of its own."""
    sentences = {}
    for sentence, names in read_stations(block):
        if first := next((name for name in names if name in modules), None):
            sentences[first] = sentence
    lines: list[str] = []
    station: list[str] = []

    def close_station() -> None:
        if station:
            names = " → ".join(station)
            indent = "    "
            lines.extend(textwrap.wrap(names, 100, initial_indent=indent, subsequent_indent=indent))
            station.clear()

    for module in modules:
        if module in sentences:
            close_station()
            lines.extend(textwrap.wrap(sentences[module], 100))
        station.append(module)
    close_station()
    return "\n".join(lines) + "\n"


def main_program() -> None:
    """Write the page again and print the figures of all walks."""
    with tempfile.TemporaryDirectory() as folder:
        walks = walk_all(Path(folder))
    text = PAGE.read_text("utf-8")
    for title, visited in walks.items():
        start, end = find_block(title, text)
        text = text[:start] + draw_block(text[start:end], list_modules(visited)) + text[end:]
        functions, crossings = count_steps(visited)
        print(f"{title}: {functions} functions, {crossings} crossings")
    PAGE.write_text(text, "utf-8")


if __name__ == "__main__":
    main_program()
