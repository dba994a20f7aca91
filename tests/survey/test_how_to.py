"""The commands of docs/how-to/run-a-survey.md work as they are printed, one after the other."""

import subprocess
import sys
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "run-a-survey.md"


@pytest.mark.slow
def test_the_page_can_be_followed_literally(tmp_path):
    text = PAGE.read_text("utf-8").split("```")[0]
    lines = [line.strip() for line in text.splitlines() if line.startswith("    ")]
    assert sum(line.startswith("discreet survey ") for line in lines) >= 10
    script = "\n".join([f'discreet() {{ "{sys.executable}" -m discreet "$@"; }}', *lines])
    done = subprocess.run(
        ["bash", "-e", "-c", script], cwd=tmp_path, capture_output=True, text=True, timeout=600
    )
    assert done.returncode == 0, done.stderr
    for words in ("respondents, epsilon 2.995", "share", "unbiased", "accuracy"):
        assert words in done.stdout, words
    assert (tmp_path / "model.json").exists()
