"""The page without JavaScript, without a secure place, changed on its way; by keyboard; for all."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest
from axe_playwright_python.sync_playwright import Axe
from sites import PSEUDO, Person, bundle, site

from discreet.server.bundle import Bundle

pytestmark = [pytest.mark.browser, pytest.mark.slow]
People = Callable[..., Person]


def test_without_javascript_it_says_why_and_sends_nothing(person: People, live: Any) -> None:
    somebody = person(java_script_enabled=False)
    somebody.page.goto(f"{live.base}/s/sheet")
    assert "This page needs JavaScript" in somebody.page.inner_text("main")
    assert "Diese Seite braucht JavaScript" in somebody.page.inner_text("main")
    assert "The survey is loading" not in somebody.page.inner_text("main")
    assert somebody.page.locator("form, button, input").count() == 0
    assert {one.method for one in somebody.requests} == {"GET"}
    somebody.page.goto(f"{live.base}/s/sheet/about")
    assert "What this server can see" in somebody.page.inner_text("main")


def test_at_an_insecure_place_nothing_is_drawn(person: People, live: Any) -> None:
    somebody = person()

    def pass_on(route: Any) -> None:
        found = httpx.get(route.request.url.replace("http://survey.example", live.base))
        headers = {k: v for k, v in found.headers.items() if k != "content-encoding"}
        route.fulfill(status=found.status_code, body=found.content, headers=headers)

    somebody.context.route("http://survey.example/**", pass_on)
    somebody.page.goto("http://survey.example/s/sheet")
    somebody.page.get_by_text("The connection to this page is not secure").wait_for()
    assert not [one.url for one in somebody.requests if "/api/" in one.url]
    assert somebody.page.locator("form, input").count() == 0


def test_without_a_store_nothing_is_drawn(person: People) -> None:
    somebody = person()
    broken = "IDBFactory.prototype.open = () => { throw new DOMException('no', 'SecurityError'); }"
    somebody.page.add_init_script(broken)
    somebody.goto("sheet")
    somebody.page.get_by_text("This browser stores nothing for this page").wait_for()
    assert somebody.page.locator("form").count() == 0


def changed_on_its_way(somebody: Person, checked: bool) -> None:
    """One byte of an imported module is another; without the hashes in the page, if not checked."""
    source = Bundle().files["random.js"].decode()
    body = source.replace("65536", "65537", 1)
    assert body != source
    kind = "text/javascript"
    somebody.context.route(
        "**/random.js", lambda route: route.fulfill(body=body, content_type=kind)
    )
    if not checked:

        def bare(route: Any) -> None:
            answer = route.fetch()
            text = answer.text().replace("integrity", "data-was")
            headers = {
                k: v
                for k, v in answer.headers.items()
                if k not in ("content-security-policy", "integrity-policy")
            }
            route.fulfill(status=200, headers=headers, body=text)

        somebody.context.route("**/s/sheet", bare)
    somebody.page.goto(f"{somebody.base}/s/sheet")


def test_one_changed_byte_of_an_imported_module_stops_the_page(person: People) -> None:
    somebody = person()
    changed_on_its_way(somebody, checked=True)
    somebody.page.wait_for_timeout(2000)
    assert somebody.page.locator("h1, form, button").count() == 0
    assert "Nothing has been sent" in somebody.page.inner_text("main")
    assert not [one for one in somebody.requests if "/api/" in one.url]


def test_a_page_without_hashes_would_run_the_changed_module(person: People) -> None:
    """The twin: the same change goes unnoticed where nothing compares."""
    somebody = person()
    changed_on_its_way(somebody, checked=False)
    somebody.page.get_by_role("button", name="Begin").wait_for()


INJECTED = """<script>document.documentElement.dataset.hacked = "script"</script>
<img src="/nothing" onerror="document.documentElement.dataset.hacked = 'image'">
<script type="module">document.documentElement.dataset.hacked = "module"</script>
<style>h1 { display: none }</style></main>"""


def hacked(somebody: Person, strict: bool) -> str | None:
    """What markup that was put into the page could do."""

    def inject(route: Any) -> None:
        answer = route.fetch()
        headers = dict(answer.headers)
        if not strict:
            headers.pop("content-security-policy")
            headers.pop("integrity-policy")
        text = answer.text().replace("</main>", INJECTED)
        route.fulfill(status=200, headers=headers, body=text)

    somebody.context.route("**/s/sheet", inject)
    somebody.page.goto(f"{somebody.base}/s/sheet")
    somebody.page.get_by_role("button", name="Begin").wait_for(state="attached")
    found: str | None = somebody.page.locator("html").get_attribute("data-hacked")
    return found


def test_injected_markup_does_nothing(person: People) -> None:
    somebody = person()
    assert hacked(somebody, strict=True) is None
    assert somebody.page.locator("h1").is_visible()


def test_without_the_policy_injected_markup_would_run(person: People) -> None:
    """The twin of the test above."""
    assert hacked(person(), strict=False) is not None


def test_words_of_the_collector_are_text(person: People) -> None:
    somebody = person()
    somebody.goto("spoken")
    assert "<img src=x onerror=alert(1)> & <b>not bold</b>" in somebody.page.inner_text("main")
    assert somebody.page.locator("main img, main b").count() == 0
    assert not [one for one in somebody.requests if one.url.endswith("/x")]


def test_assigning_markup_is_refused_by_the_browser(chromium: Any, tmp_path: Path) -> None:
    """Trusted Types: a line in our own code that writes markup fails."""
    careless = {
        "page.js": (
            "await openSurvey();",
            "document.body.innerHTML = '<i>';\nawait openSurvey();",
        )
    }
    with site(tmp_path, bundle(careless), "sheet") as live:
        somebody = Person(chromium, live.base)
        somebody.page.goto(f"{live.base}/s/sheet")
        somebody.page.wait_for_timeout(1500)
        somebody.context.close()
    assert any("TrustedHTML" in one for one in somebody.problems)


def test_a_run_by_keyboard_alone(person: People) -> None:
    somebody = person()
    page = somebody.goto("lists")
    keys = page.keyboard

    def tab_to(label: str) -> None:
        for _ in range(30):
            keys.press("Tab")
            focused = page.evaluate("document.activeElement.innerText || ''")
            if focused == label:
                return
        pytest.fail(f"no way to {label} by the Tab key")

    def entered() -> None:
        before = page.locator("h1").element_handle()
        keys.press("Enter")
        page.wait_for_function("(old) => !old.isConnected", arg=before)
        assert page.evaluate("document.activeElement.tagName") == "H1"  # read out first

    tab_to("Begin")
    entered()
    keys.press("Tab")
    keys.press("Tab")
    keys.press("Enter")  # nothing chosen yet
    assert page.locator("[role=alert]").first.inner_text() == "Please choose an answer."
    while page.locator("form").count():
        assert page.locator("input:checked").count() == 0  # nothing is chosen for anybody
        page.evaluate("document.querySelector('h1').focus()")
        keys.press("Tab")
        keys.press("Space")
        keys.press("ArrowDown")
        assert page.locator("input").nth(1).is_checked()
        entered()
    tab_to("Draw and send")
    keys.press("Enter")
    somebody.counted()


def test_back_and_forward_keep_what_was_chosen(person: People) -> None:
    somebody = person()
    page = somebody.goto("sheet")
    somebody.press("Begin")
    first = page.locator("h1").inner_text()
    page.locator("input[type=radio]").nth(1).check()
    somebody.press("Continue")
    somebody.press("Back")
    assert page.locator("h1").inner_text() == first
    assert page.locator("input[type=radio]").nth(1).is_checked()
    page.go_forward()
    page.wait_for_function("(old) => document.querySelector('h1').innerText !== old", arg=first)
    page.reload()  # answers are in memory only
    page.get_by_role("button", name="Begin").wait_for()
    somebody.press("Begin")
    assert page.locator("input:checked").count() == 0


def faults(page: Any) -> list[str]:
    found = Axe().run(page).response["violations"]
    return [f"{one['id']}: {one['nodes'][0]['html'][:200]}" for one in found]


OUTSIDE = """() => [...document.querySelectorAll("body *")].filter((element) => {
  const { left, right, width } = element.getBoundingClientRect();
  return width && element.namespaceURI.endsWith("xhtml") && (left < -1 || right > innerWidth + 1);
}).map((element) => element.outerHTML.slice(0, 100))"""
"""What is cut off at either side: from right to left, the page does not scroll there."""

LOOKS = {
    "phone, light": {"viewport": {"width": 320, "height": 640}, "color_scheme": "light"},
    "phone, dark": {"viewport": {"width": 320, "height": 640}, "color_scheme": "dark"},
    "desk, light": {"viewport": {"width": 1280, "height": 900}, "color_scheme": "light"},
}


@pytest.mark.parametrize("language", ["en", "de", PSEUDO])
@pytest.mark.parametrize("look", LOOKS)
def test_every_screen_is_accessible(look: str, language: str, person: People) -> None:
    """Axe finds nothing, and nothing is wider than the screen."""
    somebody = person(**LOOKS[look])
    page = somebody.goto("spoken")
    page.locator("#language").select_option(language)
    page.wait_for_function("(tag) => document.documentElement.lang === tag", arg=language)
    assert page.evaluate("document.documentElement.dir") == ("rtl" if language == PSEUDO else "ltr")

    def fine(where: str) -> None:
        assert faults(page) == [], where
        assert page.evaluate(OUTSIDE) == [], where

    def on(which: str) -> None:
        before = page.locator("h1").element_handle()
        page.locator(which).first.click()
        page.wait_for_function("(old) => !old.isConnected", arg=before)

    fine("start")
    on("main .buttons button.primary")
    page.locator("form button.primary").click()
    fine("error")
    while page.locator("form").count():
        if page.locator("fieldset select").count():
            page.locator("fieldset select").select_option(index=3)
        else:
            page.locator("input[type=radio]").nth(1).check()
        on("form button.primary")
    page.locator("summary").first.click()
    fine("review")
    page.locator("main .buttons button.primary").click()
    page.locator(".pair").wait_for()
    fine("receipt")
    page.locator(".pair button").first.click()
    page.locator(".sent dl, .sent pre").first.wait_for()
    fine("looked")
    if language == "en":
        page.goto(f"{somebody.base}/s/spoken/about")
        fine("about")
