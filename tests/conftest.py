"""What the tests need from outside, and what happens where it is missing.

A test marked ``data`` or ``spark`` is skipped with a reason where the benchmark tables or Spark
are missing; ``REQUIRE_DATA=1`` (``REQUIRE_SPARK=1``) turns such a skip into a failure, so that
continuous integration can never skip silently. ``make quick`` leaves out tests marked ``slow``.
"""

from __future__ import annotations

import importlib.util
import os
from pathlib import Path

import pytest


def _data_missing() -> str | None:
    folder = os.environ.get("DISCREET_DATA")
    if folder is not None:
        os.environ["DISCREET_DATA"] = str(Path(folder).resolve())  # tests change their folder
    if folder is None:
        return "the benchmark tables are not here: set DISCREET_DATA to their folder"
    if not (Path(folder) / "adult.json").exists():
        return f"DISCREET_DATA={folder} holds no adult.json"
    return None


def _spark_missing() -> str | None:
    if importlib.util.find_spec("pyspark") is None:
        return "pyspark is not installed: pip install 'discreet[spark]'"
    from discreet.errors import DiscreetError
    from discreet.tables.engines import java_home

    try:
        java_home()
    except DiscreetError as error:
        return str(error)
    return None


NEEDS = {"data": _data_missing, "spark": _spark_missing}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    missing = {name: find() for name, find in NEEDS.items()}
    for item in items:
        for name, reason in missing.items():
            if reason and item.get_closest_marker(name):
                if os.environ.get(f"REQUIRE_{name.upper()}") == "1":
                    item.add_marker(pytest.mark.usefixtures("required_but_missing"))
                    item.user_properties.append(("missing", reason))
                else:
                    item.add_marker(pytest.mark.skip(reason=reason))


@pytest.fixture
def required_but_missing(request: pytest.FixtureRequest) -> None:
    reasons = [text for key, text in request.node.user_properties if key == "missing"]
    pytest.fail("required, but " + "; ".join(reasons))
