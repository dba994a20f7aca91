"""The README, followed to the letter: every command that it shows runs as it is written.

The package is copied without anything that was built, and the program is started from there, so
that a file that is missing from the repository is missed here, too. What the README says about
``make`` is looked up in the Makefile; `.ci/run` runs it. The comparison takes a minute, so that
only a part of it runs unless SOAK is set.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
README = (ROOT / "README.md").read_text("utf-8")
PAGES = [
    *sorted((ROOT / "docs/how-to").glob("*.md")),
    *sorted((ROOT / "docs/tutorials").glob("*.md")),
]

SHOWN = [
    line.split("#")[0].strip()
    for line in re.findall(r"^    (discreet .+)$", README, re.M)
]  # fmt: skip

EXTRAS = {  # what a page must name as soon as it shows this
    r"discreet (serve|letters|verify|page) ": "[server]",
    r"discreet federated ": "[federated]",
    r"discreet export ": "[export]",
    r"postgres(ql)?://\w+@host": "[postgres]",
    r"spark:": "[spark]",
    r"plot_accuracy": "[plot]",
}


def tracked() -> list[str]:
    """Files of the repository; without git, all files of the package and its examples."""
    found = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True)
    if found.returncode == 0 and found.stdout:
        return found.stdout.splitlines()
    some = [*ROOT.glob("src/**/*"), *ROOT.glob("*.*"), ROOT / "Makefile"]
    return [str(one.relative_to(ROOT)) for one in some if one.is_file()]


@pytest.fixture(scope="module")
def clone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The files of the repository and nothing else."""
    folder = tmp_path_factory.mktemp("clone")
    for name in tracked():
        if name.startswith(("src/", "README", "pyproject", "Makefile")) and (ROOT / name).exists():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, folder / name)
    return folder


@pytest.mark.slow
def test_every_command_of_the_readme_runs_as_written(clone: Path) -> None:
    assert len(SHOWN) >= 15, "the commands were found"
    env = {**os.environ, "PYTHONPATH": str(clone / "src"), "COLUMNS": "100"}
    before = {one.name for one in clone.iterdir()}
    for line in SHOWN:
        words = shlex.split(line)[1:]
        if words[0] == "reproduce":  # downloads a table; see test_reproduction.py
            words.append("--help")
        if words[0] == "compare" and "SOAK" not in os.environ:  # see test_compare_and_size.py
            words += ["--epsilon", "1", "--trust", "central,survey"]
        done = subprocess.run(
            [sys.executable, "-m", "discreet", *words],
            cwd=clone,
            env=env,
            capture_output=True,
            text=True,
            timeout=300,
        )
        assert done.returncode == 0, f"{line}\n{done.stderr}"
        assert "Traceback" not in done.stderr
    made = {one.name for one in (clone / "demo").iterdir()}
    assert {"predicted.csv", "synthetic.csv", "model.onnx", "private.json"} <= made
    assert {"trust.html", "questionnaire.yaml"} <= made
    assert {one.name for one in clone.iterdir()} - before == {"demo"}, "a clone stays tidy"


def test_the_targets_of_make_that_the_readme_names_are_there() -> None:
    named = set(re.findall(r"(?:`|^    )make (?:PYTHON=\S+ )?([a-z]+)", README, re.M))
    assert {"demo", "test", "help", "docs"} <= named
    made = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.M))
    assert named <= made


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_page_says_at_once_what_to_install(page: Path) -> None:
    text = page.read_text("utf-8")
    first = text.split("\n\n")[1]
    assert first.startswith("Needs "), "the first paragraph says what is needed"
    for shown, extra in EXTRAS.items():
        if re.search(shown, re.sub(r"^Needs .*$", "", text, count=1, flags=re.M)):
            assert extra in text, f"{page.name} shows {shown}"
