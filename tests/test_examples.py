"""What the documentation shows must run: every example script, every Python block for a newcomer.

A fenced block marked ``python`` in the README or in docs/how-to is run, the blocks of a page one
after the other; one marked ``py`` needs something that is not here (a server, say) and is only
compiled.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
SCRIPTS = sorted((ROOT / "examples").glob("*.py"))
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs" / "how-to").glob("*.md"))]


def blocks(page: Path, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", page.read_text("utf-8"), re.M | re.S)


def run(*arguments: str, folder: Path) -> str:
    done = subprocess.run(
        [sys.executable, *arguments], cwd=folder, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.slow
@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_every_example_runs_from_anywhere(script, tmp_path):
    assert run(str(script), folder=tmp_path)
    assert not list(tmp_path.iterdir())  # and leaves nothing behind


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.stem)
def test_the_python_of_every_page_runs(page, tmp_path):
    for block in blocks(page, "py"):
        compile(block, str(page), "exec")
    shown = "\n".join(blocks(page, "python"))
    if shown:
        run("-c", shown, folder=tmp_path)


@pytest.mark.slow
def test_the_readme_shows_the_guarantee_that_its_example_prints(tmp_path):
    page = ROOT / "README.md"
    assert run("-c", blocks(page, "python")[0], folder=tmp_path) == blocks(page, "text")[0]


@pytest.mark.parametrize("page", [*PAGES, *sorted((ROOT / "docs").glob("*.md"))], ids=str)
def test_links_between_pages_lead_somewhere(page):
    for target in re.findall(r"\]\(([^)#]+)[^)]*\)", page.read_text("utf-8")):
        if "://" not in target:
            assert (page.parent / target).exists(), target
