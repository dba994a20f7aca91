"""What the documentation shows must run: every example script, every Python block for a newcomer.

A fenced block marked ``python`` in docs/how-to is run, the blocks of a page one after the other;
one marked ``py`` needs something that is not here (a server, say) and is only compiled. The README
is followed in tests/test_readme.py.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
SCRIPTS = sorted((ROOT / "examples").glob("*.py"))
PAGES = sorted((ROOT / "docs" / "how-to").glob("*.md"))


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


DOCUMENTS = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").glob("*.md")), *PAGES]
for folder in ("papers", "experiments", "decisions", "tutorials"):
    DOCUMENTS += sorted((ROOT / "docs" / folder).glob("*.md"))


def anchors(page: Path) -> set[str]:
    """What a site generator makes of the headings of a page."""
    text = re.sub(r"^```.*?^```$", "", page.read_text("utf-8"), flags=re.M | re.S)
    headings = re.findall(r"^#+ (.+)$", text, re.M)
    plain = [re.sub(r"[^\w\s-]", "", heading.lower()).strip() for heading in headings]
    return {re.sub(r"\s+", "-", heading) for heading in plain}


def broken_links(page: Path, text: str) -> list[str]:
    """Links of a page to files or headings that are not there."""
    broken = []
    for target, anchor in re.findall(r"\]\(([^)#\s]*)#?([^)\s]*)\)", text):
        if "://" in target or target.startswith("reference/"):  # reference/: `make docs` writes it
            continue
        path = page.parent / target if target else page
        if not path.exists() or (anchor and anchor not in anchors(path)):
            broken.append(f"{target}#{anchor}" if anchor else target)
    return broken


@pytest.mark.parametrize("page", DOCUMENTS, ids=lambda path: path.name)
def test_links_between_pages_lead_somewhere(page):
    assert broken_links(page, page.read_text("utf-8")) == []


def test_a_link_to_a_missing_page_or_heading_is_noticed():
    twin = "[a](nowhere.md) [b](#no-such-heading) [c](docs/maths.md#nor-this) [d](docs/maths.md)"
    expected = ["nowhere.md", "#no-such-heading", "docs/maths.md#nor-this"]
    assert broken_links(ROOT / "README.md", twin) == expected
