"""Every promise of the threat model has a test and a twin that exist; every formula its line."""

from __future__ import annotations

import ast
import re
import sys
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from audit.catalogue import DEFECTS, SOUND
from discreet.mechanisms.frequency import OUE, SS

ROOT = Path(__file__).resolve().parents[1]
PROMISES = (ROOT / "docs" / "threat-model.md").read_text("utf-8")
LINK = r"`(tests/[\w/]+\.py)::(test_\w+)(?:\[[^]`]+\])?`"
CASES = {entry.name for entry in (*DEFECTS, *SOUND)}
"""What tests of the catalogue are called."""
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
    links = re.findall(r"`((?:tests|src)/[\w/.]+\.py)(?:::([\w.]+)(\[[^]`]+\])?)?`", text)
    return [
        f"{file}::{name}{case}"
        for file, name, case in links
        if not (ROOT / file).is_file()
        or (name and name not in names(ROOT / file))
        or (case and case[1:-1] not in CASES)
    ]


def rows(text: str, heading: str) -> list[list[str]]:
    table = text.split(f"## {heading}", 1)[1].split("\n## ")[0]
    lines = [line for line in table.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]


@pytest.mark.slow
def test_every_promise_has_a_test_and_a_twin():
    table = rows(PROMISES, "Every promise, its test, and the twin that fails")
    assert {row[0] for row in table} == {"central", "local", "survey", "web", "federated", "all"}
    assert len(table) >= 25
    for _, promise, test, twin in table:
        assert promise.endswith(".")
        assert re.fullmatch(LINK, test)
        assert re.fullmatch(LINK, twin)
        assert test != twin
    twins = [re.fullmatch(LINK, row[3]) for row in table]
    assert [one[0] for one in twins if not is_twin(ROOT / one[1], one[2])] == []


def is_twin(path: Path, name: str) -> bool:
    """A twin says that it is one, in its name or its docstring, and asserts something."""
    for node in ast.parse(path.read_text("utf-8")).body:
        if isinstance(node, ast.FunctionDef) and node.name == name:
            said = f"{name} {ast.get_docstring(node) or ''}"
            checks = any(isinstance(one, ast.Assert) for one in ast.walk(node))
            waits = re.search(r"pytest\.raises|expect\(|wait_for", ast.unparse(node))
            return "twin" in said and (checks or waits is not None)
    return False


def test_not_every_test_is_a_twin():
    here = Path(__file__)
    assert not is_twin(here, "test_every_link_leads_somewhere")
    assert is_twin(
        ROOT / "tests/test_ledger.py", "test_twin_without_its_lock_a_ledger_is_overdrawn"
    )


def test_every_formula_has_its_code_and_its_test():
    table = rows(FORMULAS, "Where each formula is computed, and which test would notice")
    assert len(table) >= 20
    for _, code, test in table:
        assert re.fullmatch(r"`src/[\w/]+\.py::[\w.]+`", code)
        assert test.startswith("`tests/")


def underived(text: str) -> set[str]:
    """Modules that the page speaks of and for which it names no line and no test."""
    said, table = text.split("## Where each formula is computed")
    named = {one for one in re.findall(r"`((?:\w+/)*\w+\.py)`", said) if "tests/" not in one}
    return named - set(re.findall(r"`src/discreet/([\w/]+\.py)::", table))


def test_every_module_of_the_page_has_a_line_in_the_table():
    assert underived(FORMULAS) == set()
    without = FORMULAS.replace("src/discreet/estimation/smoothing.py::", "src/discreet/x.py::")
    assert underived(without) == {"estimation/smoothing.py"}  # it can fail


@pytest.mark.parametrize("text", [PROMISES, FORMULAS], ids=["promises", "formulas"])
def test_every_link_leads_somewhere(text):
    assert gone(text) == []


def test_a_link_to_nowhere_is_noticed():
    bad = "`tests/test_links.py::test_gone` `tests/gone.py::test_x` "
    bad += "`src/discreet/privacy/guarantee.py::Nope`"
    assert len(gone(bad)) == 3
    assert gone("`src/discreet/privacy/guarantee.py::Guarantee.compose_sequential`") == []


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
