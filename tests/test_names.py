"""Names of the package are words of the field: no filler words, no class name twice."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path

import pytest

import discreet

SOURCE = Path(discreet.__file__).parent

FILLER_WORDS = {
    "one", "other", "two", "some", "found", "made", "told", "given", "kept", "few", "many",
    "whole", "how", "which", "what", "where", "who", "way", "rest", "more", "also", "own",
    "same", "each", "both", "all", "every", "thing", "part", "parts", "known", "said",
    "asked", "here", "there", "now", "then", "before", "after", "left", "right", "away",
    "near", "far",
}  # fmt: skip
"""Words that name nothing: what a variable holds is not said by them."""
MAX_FILLER_SHARE = 0.02
"""Largest share of filler words among the variables that functions bind."""
MIN_COMPOUND_SHARE = 0.25
"""Least share of variables with names of two or more words."""
MAX_ONE_WORD_FUNCTIONS = 0.45
"""Largest share of functions, methods and properties whose name is one word."""


def read_trees(folder: Path) -> dict[str, ast.Module]:
    paths = sorted(folder.rglob("*.py"))
    return {str(path.relative_to(folder)): ast.parse(path.read_text("utf-8")) for path in paths}


def list_functions(trees: Iterable[ast.Module]) -> list[ast.FunctionDef | ast.AsyncFunctionDef]:
    return [
        node
        for tree in trees
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    ]


def list_bindings(trees: Iterable[ast.Module]) -> list[str]:
    """The variables that functions bind, once for each statement that does so."""
    return [
        node.id
        for function in list_functions(trees)
        for node in ast.walk(function)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
    ]


def list_repeated_classes(trees: dict[str, ast.Module]) -> dict[str, list[str]]:
    """Public class names that stand for something in more than one module."""
    places = defaultdict(list)
    for path, tree in trees.items():
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                places[node.name].append(path)
    return {name: paths for name, paths in places.items() if len(paths) > 1}


def compute_share(names: list[str], wanted: Iterable[bool]) -> float:
    return sum(wanted) / max(len(names), 1)


@pytest.fixture(scope="module")
def trees() -> dict[str, ast.Module]:
    return read_trees(SOURCE)


def test_few_variables_have_names_that_say_nothing(trees: dict[str, ast.Module]) -> None:
    names = list_bindings(trees.values())
    assert compute_share(names, (name in FILLER_WORDS for name in names)) <= MAX_FILLER_SHARE
    compounds = ("_" in name.strip("_") for name in names)
    assert compute_share(names, compounds) >= MIN_COMPOUND_SHARE


def test_no_class_name_stands_for_two_things(trees: dict[str, ast.Module]) -> None:
    assert list_repeated_classes(trees) == {}


def test_functions_are_named_by_more_than_one_word(trees: dict[str, ast.Module]) -> None:
    functions = list_functions(trees.values())
    names = [node.name for node in functions if not node.name.startswith("__")]
    single = ("_" not in name.strip("_") for name in names)
    assert compute_share(names, single) <= MAX_ONE_WORD_FUNCTIONS


def test_riddles_are_noticed(tmp_path: Path) -> None:
    """The known-bad twin: half of the variables are filler words, a class is there twice."""
    (tmp_path / "tally.py").write_text(
        "class Plan: ...\n\ndef made(n):\n    found = [one for one in range(n)]\n"
        "    total = sum(found)\n    return total\n"
    )
    (tmp_path / "plan.py").write_text("class Plan: ...\n\nclass _Own: ...\n")
    trees = read_trees(tmp_path)
    names = list_bindings(trees.values())
    assert sorted(names) == ["found", "one", "total"]
    share = compute_share(names, (name in FILLER_WORDS for name in names))
    assert share > MAX_FILLER_SHARE
    assert list_repeated_classes(trees) == {"Plan": ["plan.py", "tally.py"]}
    assert [node.name for node in list_functions(trees.values())] == ["made"]
