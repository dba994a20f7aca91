"""The documentation as a site: every page is reached, every link leads somewhere, and a reader's
browser asks nobody else for anything.

The site is built as ``make docs`` builds it, where its generator is installed; links between pages
are then followed in the built HTML.
"""

from __future__ import annotations

import importlib.util
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import pytest

ROOT = Path(__file__).resolve().parents[1]
WRITTEN = ("reference/",)
"""Folders of docs/ that `make docs` writes."""
LOADED = {"script": "src", "img": "src", "source": "src", "iframe": "src", "video": "src"}


def pages_in(nav: Any) -> Iterator[str]:
    """The pages that the navigation leads to."""
    if isinstance(nav, str):
        yield nav
    for one in nav if isinstance(nav, list) else nav.values() if isinstance(nav, dict) else ():
        yield from pages_in(one)


NAV = list(pages_in(tomllib.loads((ROOT / "zensical.toml").read_text())["project"]["nav"]))


def test_every_page_is_in_the_navigation_once() -> None:
    assert len(NAV) == len(set(NAV))
    docs = ROOT / "docs"
    pages = {str(one.relative_to(docs)) for one in docs.rglob("*.md")}
    mine = {page for page in pages if not page.startswith(WRITTEN)}
    assert mine == {page for page in NAV if not page.startswith("reference/")}
    assert sum(page.startswith("tutorials/") for page in NAV) == 3


class Page(HTMLParser):
    """Links, headings and what a browser would load."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.names: set[str] = set()
        self.loads: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note what matters."""
        given = {key: value or "" for key, value in attrs}
        self.names |= {given[key] for key in ("id", "name") if key in given}
        if tag == "a" and "href" in given:
            self.links.append(given["href"])
        if tag in LOADED and LOADED[tag] in given:
            self.loads.append(given[LOADED[tag]])
        if tag == "link" and given.get("rel") not in ("canonical", "next", "prev", "alternate"):
            self.loads.append(given.get("href", ""))


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site, built from a copy."""
    if importlib.util.find_spec("zensical") is None:
        pytest.skip("zensical is not installed: make docs")
    folder = tmp_path_factory.mktemp("docs")
    shutil.copytree(ROOT / "docs", folder / "docs")
    shutil.copytree(ROOT / "src", folder / "src")
    shutil.copy(ROOT / "zensical.toml", folder)
    for words in (["docs/generate_reference.py"], ["-m", "zensical", "build", "--clean"]):
        done = subprocess.run(
            [sys.executable, *words], cwd=folder, capture_output=True, text=True, timeout=300
        )
        assert done.returncode == 0, done.stderr
    return folder / "site"


def external(address: str) -> bool:
    return bool(urlsplit(address).netloc)


@pytest.mark.slow
def test_links_lead_somewhere_and_nothing_is_fetched_from_elsewhere(site: Path) -> None:
    pages = {one: Page(one.read_text("utf-8")) for one in site.rglob("*.html")}
    assert len(pages) > 40
    wrong = []
    for path, page in pages.items():
        if path.name == "404.html":  # its links are from the top of a site
            continue
        wrong += [f"{path}: loads {one}" for one in page.loads if external(one)]
        for link in page.links:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            target = path if not parts.path else (path.parent / unquote(parts.path)).resolve()
            target = target / "index.html" if target.is_dir() else target
            if not target.exists():
                wrong.append(f"{path}: {link} leads nowhere")
            elif parts.fragment and target in pages:
                known = pages[target].names
                if unquote(parts.fragment) not in known and parts.fragment != "__skip":
                    wrong.append(f"{path}: {link} has no such heading")
    assert not wrong, "\n".join(wrong[:20])
    for one in site.rglob("*.css"):
        text = one.read_text("utf-8")
        assert not re.search(r"(url\(|@import\s+)['\"]?(https?:)?//", text), one
