"""A folder with a model, its schema and its people, and a way to run commands on them."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from discreet import MixedNB
from discreet.cli import main
from discreet.datasets import make_mortgage

Run = Callable[..., Result]


@pytest.fixture(scope="session")
def demo_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The files that ``discreet demo`` writes, with a model that is the same every time."""
    folder = tmp_path_factory.mktemp("demo")
    people = make_mortgage(1600, seed=0)
    known, others = people.frame[:800], people.frame[800:]
    model = MixedNB(schema=people.schema).fit(people.X[:800], people.y[:800]).model_
    (folder / "model.json").write_text(model.to_json())
    (folder / "schema.json").write_text(people.schema.to_json())
    known.to_csv(folder / "population.csv", index=False)
    others.to_csv(folder / "others.csv", index=False)
    return folder


@pytest.fixture
def run(demo_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Run a command in an empty folder with copies of the demo's files."""
    for file in demo_folder.iterdir():
        shutil.copy(file, tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")

    def invoke(*arguments: object, input: str | None = None) -> Result:
        return CliRunner().invoke(main, [str(one) for one in arguments], input=input)

    return invoke


@pytest.fixture
def refused(run: Run) -> Callable[..., str]:
    """Run a command that must fail with exit code 2 and one sentence; give the sentence."""

    def invoke(*arguments: object) -> str:
        result = run(*arguments)
        assert result.exit_code == 2, (result.output, result.exception)
        assert result.stderr.startswith("discreet: ")
        assert result.stderr.count("\n") == 1
        return result.stderr

    return invoke
