"""Takes the pictures of docs/pages.md: states of the pages that the tutorial does not meet.

Needs Chromium and the test extra. Run: python docs/take_pictures.py
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [
    str(ROOT / "tests"),
    str(ROOT / "tests" / "browser"),
    str(ROOT / "tests" / "server"),
]
FOLDER = ROOT / "docs" / "pictures"


def taken(page: Any, name: str, highest: int = 1100) -> None:
    """Save what a page shows, from its top."""
    size = page.evaluate("[innerWidth, document.documentElement.scrollHeight]")
    clip = {"x": 0, "y": 0, "width": size[0], "height": min(size[1], highest)}
    path = FOLDER / f"{name}.jpg"
    page.screenshot(path=path, type="jpeg", quality=50, full_page=True, clip=clip)
    print(f"{path.stat().st_size:>7,} {path.name}")


def main() -> None:
    """Take them all."""
    from servers import added
    from sites import PSEUDO, Person, collections, site

    from discreet.server.rehearsal import create_rehearsal
    from programs import browser

    FOLDER.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder, browser() as chromium, site(Path(folder)) as live:

        def person(width: int = 390, scheme: str = "light") -> Person:
            view = {"width": width, "height": 700}
            return Person(chromium, live.base, viewport=view, color_scheme=scheme)

        def spoken(tag: str, width: int, scheme: str = "light") -> Person:
            somebody = person(width, scheme)
            page = somebody.goto("spoken")
            page.locator("#language").select_option(tag)
            page.wait_for_function("(tag) => document.documentElement.lang === tag", arg=tag)
            return somebody

        taken(spoken(PSEUDO, 320).page, "start-right-to-left-320")
        taken(spoken("en", 320, "dark").page, "start-long-words-320-dark")
        somebody = spoken("de", 390, "dark")
        page = somebody.page
        somebody.press("Beginnen")
        page.locator("fieldset select").select_option(index=3)
        somebody.press("Weiter")
        page.locator("input[type=radio]").first.check()
        somebody.press("Weiter")
        taken(page, "review-german-dark")
        page.emulate_media(media="print")
        taken(page, "review-printed")

        for _ in range(40):
            somebody = person()
            page = somebody.goto("means")
            drawn = json.loads(somebody.kept())[4][0]["question"]
            if collections()["means"][0].questions[drawn].features:
                break
        somebody.press("Begin")
        page.locator("input[type=text]").fill("12345678")
        page.get_by_role("button", name="Continue").click()
        taken(page, "question-number-error")

        somebody = person()
        page = somebody.goto("lists")
        somebody.press("Try it with a harmless question")
        page.get_by_label("2", exact=True).check()
        for _ in range(7):
            page.get_by_role("button", name="Draw", exact=True).click()
        taken(page, "practice-lists")
        somebody.sent("lists")
        somebody.reviewed("sheet")
        page.locator(".budget").scroll_into_view_if_needed()
        page.screenshot(path=FOLDER / "budget.jpg", type="jpeg", quality=50)
        page.get_by_label("I allow this total").check()
        somebody.context.set_offline(True)
        somebody.press("Draw and send")
        page.get_by_text("You are offline").wait_for()
        taken(page, "sending-offline")

        somebody = person()
        somebody.goto("either")
        somebody.press("Draw with my own coin or dice")
        taken(somebody.page, "hand")
        somebody = person(1280)
        somebody.sent("sheet")
        taken(somebody.page, "receipt-1280")

        asked = collections()["sheet"][0]
        added(live.server.database, asked, "overdue", deletes="2026-01-31")
        days = {"closes": "2099-03-31", "deletes": "2099-06-30"}
        told = {"asks": "The works council", "contact": "council@example.org", **days}
        added(live.server.database, asked, "letters", entry="invited", **told)
        for name in ("means", "sheet"):
            survey = live.server.surveys.find_survey(name)
            assert survey is not None
            create_rehearsal(live.server.database, survey.collection, survey.announcement, 3000)
        for width, scheme in ((1280, "dark"), (320, "light")):
            page = person(width, scheme).page
            page.goto(f"{live.base}/desk#once={live.server.access.create_link_token()}")
            page.get_by_role("heading", name="Collections").wait_for()
            if width == 320:
                page.goto(f"{live.base}/desk/sheet-simulated")
                taken(page, "desk-320")
                page.get_by_label("smokes", exact=True).select_option("yes")
                page.get_by_label("drinks", exact=True).select_option("no")
                page.get_by_role("button", name="Predict").click()
                page.locator(".card").scroll_into_view_if_needed()
                page.locator(".card").screenshot(
                    path=FOLDER / "desk-prediction-320.jpg", type="jpeg", quality=50
                )
                continue
            page.goto(f"{live.base}/desk/direct")
            taken(page, "desk-empty-1280-dark")
            page.goto(f"{live.base}/desk/means-simulated")
            taken(page, "desk-means-1280-dark", 1650)
            page.goto(f"{live.base}/desk/overdue")
            taken(page, "desk-overdue-1280-dark", 700)
            page.goto(f"{live.base}/desk/letters")
            page.get_by_label("How many").fill("1")
            page.get_by_role("button", name="Make letters").click()
            page.locator(".letter").first.wait_for()
            page.emulate_media(media="print")
            page.set_viewport_size({"width": 700, "height": 700})
            taken(page, "letter-printed")


if __name__ == "__main__":
    main()
