"""One local Spark session for all tests here."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from discreet.tables.engines import spark_session


@pytest.fixture(scope="session")
def spark() -> Iterator[Any]:
    session = spark_session(
        {"spark.master": "local[2]", "spark.sql.shuffle.partitions": "4", "spark.log.level": "OFF"}
    )
    yield session
    session.stop()
