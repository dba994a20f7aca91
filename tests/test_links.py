"""Every promise of the threat model has a test and a twin that exist; every formula its line."""

from __future__ import annotations

import ast
import re
import sys
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from discreet.mechanisms.frequency import OUE, SS

ROOT = Path(__file__).resolve().parents[1]
PROMISES = (ROOT / "docs" / "threat-model.md").read_text("utf-8")
FORMULAS = (ROOT / "docs" / "maths.md").read_text("utf-8")


@cache
def names(path: Path) -> frozenset[str]:
    """Functions, methods and classes of a file, methods as Class.name."""
    found = set()
    for node in ast.parse(path.read_text("utf-8")).body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef | ast.AsyncFunctionDef):
            found.add(node.name)
        for inner in node.body if isinstance(node, ast.ClassDef) else ():
            if isinstance(inner, ast.FunctionDef):
                found.add(f"{node.name}.{inner.name}")
    return frozenset(found)


def gone(text: str) -> list[str]:
    """Links to files, or to names in files, that do not exist."""
    links = re.findall(r"`((?:tests|src)/[\w/.]+\.py)(?:::([\w.]+))?`", text)
    return [
        f"{file}::{name}"
        for file, name in links
        if not (ROOT / file).is_file() or (name and name not in names(ROOT / file))
    ]


def rows(text: str, heading: str) -> list[list[str]]:
    table = text.split(f"## {heading}", 1)[1].split("\n## ")[0]
    lines = [line for line in table.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]


def test_every_promise_has_a_test_and_a_twin():
    table = rows(PROMISES, "Every promise, its test, and the twin that fails")
    assert {row[0] for row in table} == {"central", "local", "survey", "federated", "all"}
    assert len(table) >= 25
    for _, promise, test, twin in table:
        assert promise.endswith(".")
        assert re.fullmatch(r"`tests/[\w/]+\.py::test_\w+`", test)
        assert re.fullmatch(r"`tests/[\w/]+\.py::test_\w+`", twin)
        assert test != twin


def test_every_formula_has_its_code_and_its_test():
    table = rows(FORMULAS, "Where each formula is computed, and which test would notice")
    assert len(table) >= 20
    for _, code, test in table:
        assert re.fullmatch(r"`src/[\w/]+\.py::[\w.]+`", code)
        assert test.startswith("`tests/")


@pytest.mark.parametrize("text", [PROMISES, FORMULAS], ids=["promises", "formulas"])
def test_every_link_leads_somewhere(text):
    assert gone(text) == []


def test_a_link_to_nowhere_is_noticed():
    bad = "`tests/test_links.py::test_gone` `tests/gone.py::test_x` `src/discreet/privacy.py::Nope`"
    assert len(gone(bad)) == 3
    assert gone("`src/discreet/privacy.py::Guarantee.then`") == []


@pytest.mark.parametrize("oracle", [OUE(1.0, 16), SS(1.0, 16)], ids=lambda one: one.name)
def test_liars_move_an_estimate_by_their_influence(oracle):
    """The figures of the threat model: a share of liars times the weight of a forged report."""
    sys.path.insert(0, str(ROOT / "examples"))
    from poisoning import PEOPLE, SIZE, moved

    for share in (0.01, 0.05):
        found, noise = moved(oracle, share)
        # a liar's report takes the place of an honest one, which counts as its own share
        expected = share * (oracle.influence - 1 / SIZE)
        # the replaced honest reports are random: their noise, with six deviations
        assert abs(found - expected) < 6 * noise * np.sqrt(share) + 1 / PEOPLE
        assert found > 2 * share  # far more than their number
