"""The tutorials on the command line, followed to the letter: every command, in its order.

The one in the browser is followed by tests/browser/test_tutorial.py.
"""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
from click.testing import CliRunner

from discreet.cli import main

TUTORIALS = Path(__file__).resolve().parents[1] / "docs" / "tutorials"


def parts(page: str) -> list[tuple[str, str]]:
    """The blocks of a page: (language, content)."""
    text = (TUTORIALS / f"{page}.md").read_text("utf-8")
    return re.findall(r"^```(\w+)\n(.*?)^```$", text, re.M | re.S)


def follow(page: str, files: dict[str, str]) -> dict[str, str]:
    """Do what a page says, where one stands; give what each command printed."""
    said: dict[str, str] = {}
    for language, content in parts(page):
        if language in files:
            Path(files[language]).write_text(content)
            continue
        assert language == "sh", language
        for line in content.splitlines():
            result = CliRunner().invoke(main, shlex.split(line)[1:])
            assert result.exit_code == 0, (line, result.output, result.exception)
            if line in said:
                assert result.stdout == said[line], "the same command prints the same"
            said[line] = result.stdout
    return said


@pytest.mark.slow
def test_a_table_at_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    said = follow("a-table-at-work", {})
    trained = next(text for line, text in said.items() if line.startswith("discreet train"))
    assert "changes the probability of any outcome by at most a factor of 2.72" in trained
    again = next(line for line in said if line.startswith("discreet train"))
    words = shlex.split(again)[1:]
    kept = CliRunner().invoke(main, words)
    assert "exists already and cost privacy budget" in kept.stderr, (
        "nothing is lost, as the page says"
    )
    assert CliRunner().invoke(main, [*words, "--force"]).exit_code == 0, "one more is possible"
    third = CliRunner().invoke(main, [*words, "--force"])
    assert third.exit_code == 2, "a third is refused, as the page says"
    assert {"population.csv", "others.csv", "schema.json", "model.json", "report.html"} <= {
        one.name for one in Path("work").iterdir()
    }
    assert "baseline" in said["discreet evaluate work/mine.json work/others.csv"]


@pytest.mark.slow
def test_devices(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    said = follow("devices", {"json": "devices/me.json"})
    report = next(text for line, text in said.items() if line.startswith("discreet local report"))
    assert report.count("\n") == 1, "one line leaves the device"
    assert "44" not in re.sub(r"[0-9a-f]{32,}", "", report), "the record stays there"
    counted = next(text for line, text in said.items() if line.startswith("discreet local tally"))
    assert re.search(r"rejected +0\b", counted)
