"""Databases of both kinds, and a server over each."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from servers import Live, added, fresh_postgres, plan, serving

from discreet.server.database import Database


@pytest.fixture(autouse=True)
def keys(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where databases of PostgreSQL have their keys, also in programs that a test starts."""
    monkeypatch.setenv("DISCREET_KEYS", str(tmp_path / "keys"))
    return tmp_path / "keys"


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.slow)])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """An empty database of each kind."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/collected.db"
    return fresh_postgres(request.getfixturevalue("postgres"))


@pytest.fixture
def database(url: str) -> Iterator[Database]:
    with Database(url) as opened:
        opened.migrate()
        yield opened


@pytest.fixture
def live(database: Database) -> Iterator[Live]:
    """A server with an open plan named ``health``."""
    added(database, plan(), batch=5)
    with serving(database) as running:
        yield running
