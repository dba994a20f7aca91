"""The program in a shell: completion, colours, silence, and what goes where."""

from __future__ import annotations

import os
import pty
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from discreet.cli import main

Run = Callable[..., Result]
COLOUR = re.compile(r"\x1b\[[0-9;]*\b(3[0-7]|4[0-7]|9[0-7])[0-9;]*m")
SHELLS = {"bash": "complete ", "zsh": "compdef ", "fish": "complete "}


def completed(*words: str, folder: Path | None = None) -> list[str]:
    """What a shell is told about the last word."""
    env = {
        **os.environ,
        "_DISCREET_COMPLETE": "bash_complete",
        "COMP_WORDS": " ".join(["discreet", *words]),
        "COMP_CWORD": str(len(words)),
    }
    code = "from discreet.cli import main; main(prog_name='discreet')"
    done = subprocess.run(
        [sys.executable, "-c", code], env=env, cwd=folder, capture_output=True, text=True
    )
    assert done.stderr == ""
    return done.stdout.split()


@pytest.mark.parametrize("shell", SHELLS)
def test_the_scripts_of_the_documentation_are_produced(shell: str) -> None:
    if shell == "bash" and shutil.which("bash") is None:
        pytest.skip("bash is not installed")
    page = (Path(__file__).parents[2] / "docs/how-to/use-the-shell.md").read_text()
    asked = f"_DISCREET_COMPLETE={shell}_source"
    assert asked in page, "the documentation says how"
    code = "from discreet.cli import main; main(prog_name='discreet')"
    env = {**os.environ, "_DISCREET_COMPLETE": f"{shell}_source"}
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True)
    assert SHELLS[shell] in done.stdout
    assert "_DISCREET_COMPLETE=" in done.stdout


def test_a_script_is_one_that_bash_reads() -> None:
    if (bash := shutil.which("bash")) is None:
        pytest.skip("bash is not installed")
    code = "from discreet.cli import main; main(prog_name='discreet')"
    env = {**os.environ, "_DISCREET_COMPLETE": "bash_source"}
    script = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True)
    assert subprocess.run([bash, "-n"], input=script.stdout, text=True).returncode == 0


@pytest.mark.slow
def test_words_go_on_as_commands_options_choices_and_files() -> None:
    assert "plain,train" in completed("tra")
    assert completed("survey", "ta") == ["plain,tally"]
    assert "plain,--epsilon" in completed("train", "people.csv", "--eps")
    assert "plain,smooth" in completed("train", "--method", "sm")
    assert completed("train", "peo") == ["file,peo"]
    assert completed("train", "people.csv", "-o", "mo") == ["file,mo"]


QUIET = [
    (  # of this method the charges that are printed follow from no noise
        *("train", "population.csv", "--schema", "schema.json", "--epsilon", "1"),
        *("--method", "moments", "-o", "made.json"),
    ),
    ("sample", "model.json", "-n", "5", "-o", "made.csv"),
    ("predict", "model.json", "others.csv", "-o", "made.csv"),
    ("survey", "new", "-o", "made.yaml"),
]


@pytest.mark.slow
@pytest.mark.parametrize("words", QUIET, ids=lambda words: words[0])
@pytest.mark.parametrize("before", [True, False], ids=["before", "after"])
def test_quiet_leaves_the_result_alone(words: tuple[str, ...], before: bool, run: Run) -> None:
    spoken = run(*words)
    assert spoken.exit_code == 0
    assert spoken.stderr
    for made in Path.cwd().glob("made.*"):  # what was paid for, or may be edited, is not replaced
        made.unlink()
    silent = run("--quiet", *words) if before else run(*words, "--quiet")
    assert silent.exit_code == 0
    assert silent.stderr == ""
    assert silent.stdout == spoken.stdout
    assert list(Path.cwd().glob("made.*"))


def test_quiet_keeps_errors_and_warnings_about_privacy(run: Run) -> None:
    wrong = run("--quiet", "predict", "model.json", "nosuch.csv")
    assert wrong.exit_code == 2
    assert "nosuch.csv: there is no such file" in wrong.stderr
    learnt = run("--quiet", "schema", "infer", "others.csv", "--target", "missed_payment")
    assert learnt.exit_code == 0
    assert "PrivacyWarning: taken from the data" in learnt.stderr


def at_a_terminal(folder: Path, *words: str, **env: str) -> str:
    """What a command writes to a terminal."""
    plain = {name: value for name, value in os.environ.items() if name != "NO_COLOR"}
    master, slave = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "discreet", *words],
        cwd=folder,
        stdin=slave,
        stdout=slave,
        stderr=slave,
        env={**plain, "TERM": "xterm-256color", "COLUMNS": "80", **env},
    )
    os.close(slave)
    pieces = []
    try:
        while piece := os.read(master, 65536):
            pieces.append(piece)
    except OSError:  # how Linux tells that the other end is closed
        pass
    assert process.wait() == 0
    return b"".join(pieces).decode()


@pytest.mark.slow
def test_no_color_is_respected(demo_folder: Path) -> None:
    words = ("schema", "infer", "others.csv", "--target", "missed_payment")
    assert COLOUR.search(at_a_terminal(demo_folder, *words)), "a terminal shows colours"
    assert not COLOUR.search(at_a_terminal(demo_folder, *words, NO_COLOR="1"))
    assert "\x1b" not in at_a_terminal(demo_folder, *words, TERM="dumb")


def test_without_a_terminal_there_are_no_codes(run: Run) -> None:
    assert "\x1b" not in run("show", "model.json").output


def test_help_of_every_command_knows_quiet() -> None:
    assert "--quiet" in CliRunner().invoke(main, ["--help"]).output
    assert "--quiet" in CliRunner().invoke(main, ["survey", "tally", "--help"]).output
