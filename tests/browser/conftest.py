"""A browser for the tests of this folder, pages with the package's JavaScript, a server."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from programs import browser, modules, page

sys.path.append(str(Path(__file__).parents[1] / "server"))  # its servers are used here, too


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    """A browser for one file of tests: while it is open, no other event loop runs here."""
    with browser() as opened:
        yield opened


@pytest.fixture(scope="session")
def static(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return modules(tmp_path_factory.mktemp("twin"))


@pytest.fixture
def shown(chromium: Any, static: Path) -> Iterator[Any]:
    """An empty page at a secure place, which can import the modules."""
    with page(chromium, static) as opened:
        yield opened


@pytest.fixture(scope="session")
def live(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A server with a survey of every kind."""
    from sites import site

    with site(tmp_path_factory.mktemp("site")) as running:
        yield running


@pytest.fixture
def person(chromium: Any, live: Any) -> Iterator[Callable[..., Any]]:
    """Makes people, each with a browser of their own that has stored nothing yet."""
    from sites import Person

    made = []

    def new(base: str = "", **options: Any) -> Any:
        made.append(Person(chromium, base or live.base, **options))
        return made[-1]

    yield new
    for one in made:
        one.context.close()
        assert not one.problems, one.problems
