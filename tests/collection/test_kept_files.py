"""What a device keeps is its owner's alone; a folder that cannot be read is not drawn over."""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path

import pytest
from click.testing import CliRunner

from discreet import Categorical, Schema
from discreet.cli import main
from discreet.local.planning import make_plan
from discreet.survey.questionnaire import Questionnaire

SCHEMA = Schema([Categorical("colour", ["red", "blue"], optional=False)], "sick", ["no", "yes"])
RECORD = json.dumps({"colour": "red", "sick": "no"})


def answered(kind: str, folder: Path) -> tuple[int, str]:
    """Answer a collection by the command line, with a store in folders that do not exist yet."""
    made = (
        make_plan(SCHEMA, 1.0, 100) if kind == "report" else Questionnaire.from_schema(SCHEMA, 0.5)
    )
    (folder / "asked.json").write_text(made.to_json())
    (folder / "record.json").write_text(RECORD)
    words = ["local", "report"] if kind == "report" else ["survey", "answer"]
    words += [str(folder / "asked.json"), str(folder / "record.json")]
    done = CliRunner().invoke(main, [*words, "--store", str(folder / "mine" / "kept")])
    return done.exit_code, done.output


@pytest.mark.parametrize("kind", ["report", "sheet"])
def test_a_store_is_readable_by_its_owner_alone(kind: str, tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        code, said = answered(kind, tmp_path)
    finally:
        os.umask(before)
    assert code == 0, said
    kept = list((tmp_path / "mine" / "kept").iterdir())
    assert kept
    assert {stat.S_IMODE(file.stat().st_mode) for file in kept} == {0o600}
    for folder in (tmp_path / "mine", tmp_path / "mine" / "kept"):
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700


@pytest.mark.parametrize("kind", ["report", "sheet"])
def test_a_store_that_cannot_be_listed_is_one_sentence_and_nothing_is_drawn(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert answered(kind, tmp_path)[0] == 0
    kept = {file.name: file.read_bytes() for file in (tmp_path / "mine" / "kept").iterdir()}
    listed = os.listdir

    def refused(path: str | Path = ".") -> list[str]:
        if Path(path).name == "kept":
            raise PermissionError(13, "Permission denied", str(path))
        return listed(path)

    with monkeypatch.context() as patch:
        patch.setattr(os, "listdir", refused)
        code, said = answered(kind, tmp_path)
    assert code == 2
    assert "Permission denied" in said
    assert said.count("\n") == 1
    found = {file.name: file.read_bytes() for file in (tmp_path / "mine" / "kept").iterdir()}
    assert found == kept
