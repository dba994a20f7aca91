"""Imports go down only: the layers of ``pyproject.toml``, checked by import-linter."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import discreet

SOURCE = Path(discreet.__file__).parent
SETTINGS = Path(__file__).parents[1] / "pyproject.toml"


def lint_imports(source: Path) -> subprocess.CompletedProcess[str]:
    """Run import-linter on a package in a folder of its own."""
    program = Path(sys.executable).parent / "lint-imports"
    command = [sys.executable, program, "--config", SETTINGS, "--no-cache"]
    return subprocess.run(command, cwd=source.parent, capture_output=True, text=True, check=False)


@pytest.mark.slow
def test_imports_go_down_only() -> None:
    completed = lint_imports(SOURCE)
    assert completed.returncode == 0, completed.stdout
    assert "Imports go down KEPT" in completed.stdout


@pytest.mark.slow
@pytest.mark.parametrize(
    ("module", "line", "chain"),
    [
        (
            "schema/cells.py",
            "def load_late():\n    from discreet.tables.source import Source",
            "discreet.schema is not allowed to import discreet.tables",
        ),
        (
            "mechanisms/oracle.py",
            "import discreet.model.naive_bayes",
            "discreet.mechanisms is not allowed to import discreet.model",
        ),
        (
            "local/plan.py",
            "from discreet.survey import questionnaire",
            "discreet.local is not allowed to import discreet.survey",
        ),
    ],
    ids=["inside-a-function", "two-layers", "beside"],
)
def test_a_planted_import_upwards_is_found(
    tmp_path: Path, module: str, line: str, chain: str
) -> None:
    """The known-bad twins."""
    copy = tmp_path / "discreet"
    shutil.copytree(SOURCE, copy, ignore=shutil.ignore_patterns("__pycache__"))
    path = copy / module
    path.write_text(path.read_text("utf-8") + line + "\n", "utf-8")
    completed = lint_imports(copy)
    assert completed.returncode == 1
    assert chain in completed.stdout


@pytest.mark.slow
def test_a_folder_without_a_layer_is_found(tmp_path: Path) -> None:
    copy = tmp_path / "discreet"
    shutil.copytree(SOURCE, copy, ignore=shutil.ignore_patterns("__pycache__"))
    (copy / "helpers").mkdir()
    (copy / "helpers" / "__init__.py").write_text("")
    assert lint_imports(copy).returncode == 1


def list_drawn_layers(text: str) -> list[tuple[int, str]]:
    """Layers and folders of the tree in CONTRIBUTING.md, top to bottom."""
    return [(int(k), folder) for k, folder in re.findall(r"^ {6}([ \d]\d)  (\w+)/ ", text, re.M)]


def list_layers() -> list[tuple[int, str]]:
    contract = tomllib.loads(SETTINGS.read_text("utf-8"))["tool"]["importlinter"]["contracts"][0]
    layers = enumerate(reversed(contract["layers"]), 1)
    return [(k, folder) for k, layer in layers for folder in layer.split(" | ")]


def test_the_drawn_tree_has_all_folders_with_their_layers() -> None:
    drawn = list_drawn_layers((SETTINGS.parent / "CONTRIBUTING.md").read_text("utf-8"))
    folders = {path.parent.name for path in SOURCE.glob("*/__init__.py")}
    assert sorted(drawn) == sorted(entry for entry in list_layers() if entry[1] in folders)
    assert [k for k, _ in drawn] == sorted((k for k, _ in drawn), reverse=True)
    assert list_drawn_layers(
        "      15  cli/   prints\n       2  files/  locks\n          x.py"
    ) == [
        (15, "cli"),
        (2, "files"),
    ]
