"""The example and the page for makers of apps answer a real server, once."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

import pytest
from servers import RECORD, added, plan, serving

from discreet.collection.report import Report, derive_report_id
from discreet.server.database import Database
from programs import modules, node

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples" / "app" / "answer.mjs"
PAGE = ROOT / "docs" / "how-to" / "answer-from-an-app.md"

pytestmark = [pytest.mark.browser, pytest.mark.slow]


def ran(address: str, answers: dict[str, object], folder: Path) -> subprocess.CompletedProcess[str]:
    (folder / "answers.json").write_text(json.dumps(answers))
    program = node()
    assert program is not None
    files = [str(folder / "answers.json"), str(folder / "kept.json")]
    command = [program, str(EXAMPLE), address, *files]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


APP = """
const [, , folder, survey] = process.argv;
const digest = undefined, store = new Map(), truth = {truth};
const load = async (name) => store.get(name);
const save = async (name, value) => (store.set(name, value), value);
const ask = async (name, choices) => choices.find(({ value, between }) => value === truth[name]
  || (between && between[0] <= truth[name] && truth[name] <= between[1])).answer;
{steps}
const isShare = (count) => count > 0 && count <= 100;
if (!(DrawError && peopleOfHundred.every(isShare))) throw new Error("no facts");
console.log(response.status);
"""


def test_the_steps_of_the_page_for_makers_of_apps_work(tmp_path: Path) -> None:
    (steps,) = re.findall(r"^```js\n(.*?)^```$", PAGE.read_text("utf-8"), re.M | re.S)
    steps = re.sub(r"^import .* from .*$", "", steps, flags=re.M)
    imports = """
      const { collectionOf, DrawError } = await import(`${process.argv[2]}/draw.js`);
      const { countPeople, describeProtection, posteriorOf } = await import(
        `${process.argv[2]}/promise.js`);
    """
    script = tmp_path / "app.mjs"
    text = APP.replace("{truth}", json.dumps(RECORD)).replace("{steps}", imports + steps)
    script.write_text(text, encoding="utf-8")
    static = modules(tmp_path)
    with Database(f"sqlite:///{tmp_path}/collected.db") as database:
        database.migrate()
        added(database, plan(), batch=1)
        with serving(database) as live:
            address = f"{live.base}/api/v1/surveys/health"
            command = [str(node()), str(script), static.as_uri(), address]
            done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
            assert done.stdout.split() == ["201"], done.stderr


def test_an_app_answers_once_and_can_withdraw(tmp_path: Path) -> None:
    with Database(f"sqlite:///{tmp_path}/collected.db") as database:
        database.migrate()
        added(database, plan(), batch=1)
        with serving(database) as live:
            address = f"{live.base}/api/v1/surveys/health"
            refused = ran(address, {**RECORD, "age": 400, "smokes": "sometimes"}, tmp_path)
            assert refused.returncode == 1
            assert "cannot be answered so" in refused.stderr
            assert not (tmp_path / "kept.json").exists()
            first = ran(address, dict(RECORD), tmp_path)
            assert first.stdout.splitlines()[-1] == "counted", first.stderr
            kept = json.loads((tmp_path / "kept.json").read_text())
            report = Report.from_json(kept["text"])
            assert report.collection == live.collection.digest
            assert not report.simulated
            assert report.id == derive_report_id(bytes.fromhex(kept["key"]))
            again = ran(address, dict(RECORD), tmp_path)
            assert again.stdout.splitlines()[-1] == "counted before"
            assert json.loads((tmp_path / "kept.json").read_text()) == kept
            assert live.taken_back(kept["id"], bytes.fromhex(kept["key"])).status_code == 204
    assert "24 in 100 likely" in first.stdout  # 0.232, rounded towards less protection
