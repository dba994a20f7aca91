"""Words of the pages: complete in every language, and all that the pages ask for is there."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from discreet.server import bundle
from discreet.server.bundle import Bundle

BUNDLE = Bundle()
HERE = Path(bundle.__file__).parent
ENGLISH = BUNDLE.words["en"]


def texts(words: object) -> list[str]:
    return list(words.values()) if isinstance(words, dict) else [str(words)]


@pytest.mark.parametrize("tag", BUNDLE.words)
def test_a_language_is_complete_and_puts_in_the_same_values(tag: str) -> None:
    words = BUNDLE.words[tag]
    assert words.keys() == ENGLISH.keys()
    for key, english in ENGLISH.items():
        own = words[key]
        assert isinstance(own, dict) == isinstance(english, dict), key
        values = {tuple(sorted(set(re.findall(r"\{(\w+)\}", one)))) for one in texts(own)}
        wanted = {tuple(sorted(set(re.findall(r"\{(\w+)\}", one)))) for one in texts(english)}
        assert values == wanted, key
        assert all(one.strip() for one in texts(own)), key


def test_the_guide_names_the_button_that_sends_a_refused_message_again() -> None:
    guide = (Path(__file__).parents[2] / "docs/how-to/serve-a-survey.md").read_text("utf-8")
    (told,) = (line for line in guide.splitlines() if "a clock that is wrong for a while" in line)
    assert f"presses “{ENGLISH['sending.again']}”" in told
    assert "does not send it again by itself" in told


def asked() -> tuple[set[str], set[str]]:
    """Keys that the sources name, and the beginnings of those that they put together."""
    keys, starts = set(), set()
    sources = [*HERE.glob("static/*.js"), *HERE.glob("templates/*.html"), HERE / "pages.py"]
    for path in sources:
        text = path.read_text(encoding="utf-8")
        keys |= set(re.findall(r"""["'`]([a-z]+(?:\.[a-z-]+)+)["'`]""", text))
        keys |= set(re.findall(r"""say\(["']([a-z.-]+)["']""", text))
        starts |= set(re.findall(r"`([a-z]+\.)\$\{", text))
        starts |= set(re.findall(r'(?:say|self)\("([a-z.]+\.)" \+', text))
    return {key for key in keys if not re.search(r"\.(js|html|css|json)?$", key)}, starts


def test_every_text_that_is_asked_for_is_there_and_none_is_left_over() -> None:
    keys, starts = asked()
    known = {key for key in keys if key.partition(".")[0] in {k.partition(".")[0] for k in ENGLISH}}
    assert known - ENGLISH.keys() == set()
    unused = {
        key
        for key in ENGLISH.keys() - known
        if not any(key.startswith(start) for start in starts) and key not in ("direction",)
    }
    assert unused - {"noscript", "loading"} == set()


def test_the_digest_changes_with_every_file() -> None:
    seen = {BUNDLE.digest}
    for name in BUNDLE.files:
        changed = dict(BUNDLE.files)
        if name.endswith(".json"):
            changed[name] = json.dumps({**json.loads(changed[name]), "next": "Other"}).encode()
        else:
            changed[name] += b" "
        seen.add(Bundle(changed).digest)
    assert len(seen) == len(BUNDLE.files) + 1


def test_the_page_is_the_same_wherever_it_is_rendered() -> None:
    assert BUNDLE.render_page() == Bundle().render_page()
    abroad = BUNDLE.render_page("https://survey.example.org", "health")
    assert 'content="https://survey.example.org"' in abroad
    assert "connect-src &#39;self&#39; https://survey.example.org" in abroad
