"""Who loads what when the program really runs; tests/test_package.py reads the same from source."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from discreet import Categorical, Numeric, Schema
from imports import find_roles, inside

pytestmark = pytest.mark.slow

TRUST_MODELS = [f"discreet.{one}" for one in ("local", "survey", "federated", "collection")]
SCHEMA = Schema(
    [Categorical("smokes", ["no", "yes"], optional=False), Numeric("age", 0, 100)],
    "sick",
    ["no", "yes"],
)
RECORD = {"smokes": "no", "age": 40, "sick": "no"}


def loaded_by(script, folder):
    """The modules in memory after a script has run in another process."""
    ending = "\nimport json, sys\njson.dump(sorted(sys.modules), open('modules.json', 'w'))"
    run = [sys.executable, "-c", script + ending]
    done = subprocess.run(run, cwd=folder, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return set(json.loads((folder / "modules.json").read_text())), done.stdout


def command(*arguments):
    return f"from discreet.cli import main\nmain({arguments!r}, standalone_mode=False)"


def run_by(role, modules):
    """Modules of the package that another party runs."""
    shared = {module for module in modules if inside(module, TRUST_MODELS)}
    return {module for module in shared if set(find_roles(module)) - {role, "anyone"}}


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "schema.json").write_text(SCHEMA.to_json())
    (tmp_path / "me.json").write_text(json.dumps(RECORD))
    rows = [f"{'yes' if k % 3 else 'no'},{k % 90},{'yes' if k % 2 else 'no'}" for k in range(200)]
    (tmp_path / "table.csv").write_text("\n".join(["smokes,age,sick", *rows]) + "\n")
    return tmp_path


def test_training_centrally_loads_no_other_trust_model(folder: Path):
    train = command(
        "train", "table.csv", "--schema", "schema.json", "--epsilon", "1", "-o", "model.json"
    )
    modules, _ = loaded_by(train, folder)
    assert "discreet.central.training" in modules
    assert not {m for m in modules if inside(m, TRUST_MODELS)}
    (folder / "model.json").unlink()
    twin, _ = loaded_by(train + "\nfrom discreet import LocalNB", folder)
    assert {m for m in twin if inside(m, TRUST_MODELS)}


def test_a_device_loads_no_collector_and_a_collector_no_device(folder: Path):
    loaded_by(command("local", "plan", "schema.json", "--epsilon", "1", "-o", "plan.json"), folder)
    answer = command("local", "report", "plan.json", "me.json", "--store", "kept")
    modules, report = loaded_by(answer, folder)
    assert {"discreet.local.plan"} <= modules
    assert run_by("respondent", modules) == set()
    (folder / "reports.jsonl").write_text(report)
    tally = command("local", "tally", "plan.json", "reports.jsonl", "-o", "tally.json")
    modules, _ = loaded_by(tally, folder)
    assert run_by("respondent", modules)  # the twin: this is what a device must not load
    assert run_by("collector", modules) == set()
