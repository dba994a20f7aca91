"""A browser for the tests of this folder, and pages with the package's JavaScript."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from programs import browser, modules, page


@pytest.fixture(scope="session")
def chromium() -> Iterator[Any]:
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
