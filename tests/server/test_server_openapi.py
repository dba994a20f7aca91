"""The interface keeps what its description says: schemathesis tries it, and finds nothing."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from servers import added, plan, questionnaire, report, serving

from discreet.server.database import Database

CONFIG = """
[parameters]
"path.slug" = "health"

# what makes a report or a document valid is more than a JSON schema can say
[[operations]]
include-path = "/api/v1/surveys/{slug}/reports"
checks.positive_data_acceptance.expected-statuses = ["2xx", "410", "422"]

[[operations]]
include-path = "/api/v1/surveys/{slug}/reports/batch"
checks.positive_data_acceptance.expected-statuses = ["2xx", "422"]

[[operations]]
include-path = "/api/v1/surveys"
checks.positive_data_acceptance.expected-statuses = ["2xx", "422"]
"""
TOOL = Path(sys.executable).parent / "schemathesis"


@pytest.mark.slow
def test_schemathesis_finds_nothing(tmp_path: Path) -> None:
    import schemathesis  # takes a second, which no other test should wait for

    assert schemathesis.__version__ >= "4"
    with Database(str(tmp_path / "collected.db")) as database:
        database.migrate()
        added(database, plan(), batch=1)
        added(database, questionnaire(), "sheets", entry="invited")
        with serving(database) as live:
            for _ in range(3):
                assert live.post(report(live.collection)[0]).status_code == 201
            settled = live.owned("POST", "/health/settle", params={"anyway": "true"})
            assert settled.status_code == 200
            assert live.counted() == 3  # by this, or by the server's own first look
            config = tmp_path / "schemathesis.toml"
            config.write_text(CONFIG)
            run = subprocess.run(
                [
                    TOOL,
                    f"--config-file={config}",
                    "run",
                    f"{live.base}/openapi.json",
                    "--checks=all",
                    "--max-examples=10",
                    "--seed=1",
                    "--phases=examples,coverage,fuzzing",
                    f"--header=Authorization: Bearer {live.token}",
                    "--no-color",
                ],
                capture_output=True,
                text=True,
                cwd=tmp_path,
            )
    assert run.returncode == 0, run.stdout[-8000:] + run.stderr[-2000:]
