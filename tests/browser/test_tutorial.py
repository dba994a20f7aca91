"""The tutorial, followed to the letter: its command, its links, its buttons, its words.

With ``DISCREET_PICTURES=1`` its pictures are taken again.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytestmark = [pytest.mark.browser, pytest.mark.slow]

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "tutorials" / "first-survey.md"
TAKE = os.environ.get("DISCREET_PICTURES") == "1"


@pytest.fixture
def links(tmp_path: Path) -> Iterator[dict[str, str]]:
    """What the command of the tutorial prints, while it runs."""
    (block,) = re.findall(r"^```sh\n(.*?)\n```$", PAGE.read_text("utf-8"), re.M | re.S)
    *before, last = [line.split() for line in block.splitlines()]
    assert {line[0] for line in (*before, last)} == {"discreet"}
    for _, *arguments in before:
        subprocess.run([sys.executable, "-m", "discreet", *arguments], cwd=tmp_path, check=True)
    told = [sys.executable, "-m", "discreet", *last[1:], "--port", "0"]
    with subprocess.Popen(told, cwd=tmp_path, stdout=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout is not None
            lines = [server.stdout.readline().split() for _ in range(3)]
            yield {line[0]: line[1] for line in lines}
        finally:
            server.terminate()


def picture(page: Any, name: str) -> None:
    """Take a picture; its name says how wide, and whether dark."""
    path = PAGE.parent / "pictures" / name
    if TAKE:
        words = name.removesuffix(".jpg").split("-")
        width = next((int(word) for word in words if word.isdigit()), 390)
        page.set_viewport_size({"width": width, "height": 700})
        page.emulate_media(color_scheme="dark" if "dark" in words else "light")
        top, size = page.evaluate(
            """() => {
              const place = location.hash && document.querySelector(location.hash);
              const top = place ? place.getBoundingClientRect().top + scrollY - 24 : 0;
              return [top, document.documentElement.scrollHeight - top];
            }"""
        )
        clip = {"x": 0, "y": top, "width": width, "height": min(size, 1300)}
        page.screenshot(path=path, type="jpeg", quality=60, full_page=True, clip=clip)
        page.set_viewport_size({"width": 390, "height": 700})
        page.emulate_media(color_scheme="light")
    assert path.exists()


def follow(page: Any, links: dict[str, str], line: str) -> None:
    """Do what one line of the tutorial says."""
    step = re.sub(r"^\d+\. ", "", line).rstrip(".")
    verb, _, rest = step.partition(" ")
    marked = re.findall(r"\*\*(.+?)\*\*", rest)
    if verb == "Open":
        (link,) = re.findall(r"\*(\w+)\*", rest)
        page.goto(links[link])
    elif verb == "Press":
        for label in marked:
            page.get_by_role("button", name=label, exact=True).click()
    elif verb == "Follow":
        page.get_by_role("link", name=marked[0], exact=True).click()
    elif verb == "Read":
        page.locator("main").get_by_text(marked[0]).first.wait_for()
    elif verb == "Choose" and "`" in rest:
        (value,) = re.findall(r"`(.+?)`", rest)
        page.get_by_label(marked[0], exact=True).select_option(value)
    elif verb == "Choose":
        page.get_by_label(marked[0], exact=True).check()
    elif verb == "Type":
        (value,) = re.findall(r"`(.+?)`", rest)
        page.get_by_label(marked[0], exact=True).fill(value)
    else:
        pytest.fail(f"nobody knows how to: {line}")


def test_the_tutorial_works_to_the_letter(links: dict[str, str], chromium: Any) -> None:
    context = chromium.new_context(locale="en-GB", viewport={"width": 390, "height": 700})
    context.set_default_timeout(60_000)
    page, done = context.new_page(), 0
    for line in PAGE.read_text("utf-8").splitlines():
        if re.match(r"\d+\. ", line):
            follow(page, links, line)
            done += 1
        elif found := re.match(r"!\[.+\]\(pictures/(.+)\)$", line):
            picture(page, found[1])
    context.close()
    assert done == 32


def test_every_picture_is_used_and_small() -> None:
    readme = (ROOT / "README.md").read_text("utf-8")
    for page, most in ((PAGE, 600_000), (ROOT / "docs" / "pages.md", 900_000)):
        used = set(re.findall(r"\(pictures/(.+?)\)", page.read_text("utf-8")))
        folder = (page.parent / "pictures").relative_to(ROOT)
        used |= set(re.findall(rf'src="{folder}/(.+?)"', readme))
        found = {path.name: path.stat().st_size for path in (page.parent / "pictures").iterdir()}
        assert set(found) == used
        assert sum(found.values()) < most
