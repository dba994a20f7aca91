"""The program as a whole: quick help, one sentence for a mistake, no traceback."""

from __future__ import annotations

import json
import os
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner

from discreet import DiscreetError, __version__
from discreet.cli import COMMANDS, main

HEAVY = {"sklearn", "pandas", "ibis", "duckdb", "scipy", "pyarrow", "rich", "pydantic"}


def started(*arguments: str, **how: Any) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "discreet", *arguments], capture_output=True, text=True, **how
    )


def test_help_names_every_command_and_its_first_line_is_the_commands_own() -> None:
    result = CliRunner().invoke(main, ["--help"])
    assert result.exit_code == 0
    with click.Context(main) as ctx:
        for name, (_, line) in COMMANDS.items():
            assert line in result.output
            assert main.get_command(ctx, name) is not None  # type: ignore[attr-defined]


def _every_command() -> list[list[str]]:
    with click.Context(main) as ctx:
        paths = []
        for name in COMMANDS:
            command = main.get_command(ctx, name)  # type: ignore[attr-defined]
            below = command.commands if isinstance(command, click.Group) else []
            paths += [[name], *([name, sub] for sub in below)]
        return paths


@pytest.mark.parametrize("path", _every_command(), ids=" ".join)
def test_every_help_has_an_example(path: list[str]) -> None:
    result = CliRunner().invoke(main, [*path, "--help"])
    assert result.exit_code == 0
    assert f"Example:\n    discreet {path[0]}" in result.output


def test_version() -> None:
    assert started("--version").stdout == f"discreet {__version__}\n"


@pytest.mark.parametrize(
    "code",
    [
        "import discreet",
        "from discreet.cli import main\ntry: main(['--help'])\nexcept SystemExit: pass",
        "from discreet.cli import main\ntry: main(['predict', '--help'])\nexcept SystemExit: pass",
    ],
    ids=["import", "help", "predict help"],
)
def test_nothing_heavy_is_imported_for_help(code: str) -> None:
    script = f"{code}\nimport sys\nprint(*sys.modules, file=sys.stderr)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.returncode == 0
    assert not HEAVY & set(done.stderr.split())


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "limit"), [(["-c", "import discreet"], 0.3), (["-m", "discreet", "--help"], 0.5)]
)
def test_help_takes_little_processor_time(arguments: list[str], limit: float) -> None:
    def once() -> float:
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([sys.executable, *arguments], capture_output=True, check=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime

    assert min(once() for _ in range(3)) < limit


def test_an_unknown_command_is_a_usage_error() -> None:
    result = CliRunner().invoke(main, ["nonsense"])
    assert result.exit_code == 2
    assert "No such command" in result.stderr


def test_an_error_becomes_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    @click.command()
    def broken() -> None:
        raise DiscreetError("one\n  thing   is wrong")

    monkeypatch.setattr(type(main), "get_command", lambda *_: broken)
    result = CliRunner().invoke(main, ["show"])
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr == "discreet: one thing is wrong\n"


@pytest.mark.parametrize("error", [KeyboardInterrupt(), RuntimeError("Query interrupted")])
def test_ctrl_c_is_130(error: BaseException, monkeypatch: pytest.MonkeyPatch) -> None:
    @click.command()
    def interrupted() -> None:
        raise error

    monkeypatch.setattr(type(main), "get_command", lambda *_: interrupted)
    assert CliRunner().invoke(main, ["show"]).exit_code == 130


@pytest.mark.slow
def test_a_real_ctrl_c_leaves_no_traceback_and_no_file(demo_folder: Path, tmp_path: Path) -> None:
    rows = (demo_folder / "others.csv").read_text().split("\n", 1)
    data, out = tmp_path / "long.csv", tmp_path / "out.csv"
    data.write_text(rows[0] + "\n" + rows[1] * 1500)
    command = ["predict", str(demo_folder / "model.json"), str(data), "-o", str(out)]
    process = subprocess.Popen(
        [sys.executable, "-m", "discreet", *command], stderr=subprocess.PIPE, text=True
    )

    def draft() -> list[Path]:
        return [one for one in tmp_path.glob(".*.part") if one.stat().st_size]

    deadline = time.monotonic() + 60
    while not draft() and time.monotonic() < deadline:
        assert process.poll() is None, process.stderr
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "Traceback" not in said
    assert not out.exists()
    assert not draft()


@pytest.mark.slow
def test_a_closed_pipe_is_quiet(demo_folder: Path) -> None:
    command = [sys.executable, "-m", "discreet", "predict", "--proba"]
    files = [str(demo_folder / "model.json"), str(demo_folder / "others.csv")]
    reading, writing = os.pipe()
    process = subprocess.Popen([*command, *files], stdout=writing, stderr=subprocess.PIPE)
    os.close(writing)
    os.close(reading)
    _, said = process.communicate(timeout=60)
    assert said == b""


@pytest.mark.slow
def test_a_real_run_keeps_json_alone_on_standard_output(demo_folder: Path) -> None:
    done = started("show", str(demo_folder / "model.json"), "--json")
    assert done.returncode == 0
    assert json.loads(done.stdout)["target"] == "missed_payment"
    assert done.stderr == ""


@pytest.mark.slow
def test_a_real_mistake_is_one_sentence(tmp_path: Path) -> None:
    done = started("show", str(tmp_path / "nothing.json"))
    assert done.returncode == 2
    assert done.stderr == f"discreet: {tmp_path}/nothing.json: there is no such file\n"
    assert done.stdout == ""


@pytest.mark.slow
@pytest.mark.parametrize("words", [["--help"], ["show", "{model}"], ["show", "{model}", "--json"]])
def test_a_full_disk_is_one_sentence(words: list[str], demo_folder: Path) -> None:
    given = [word.format(model=demo_folder / "model.json") for word in words]
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "discreet", *given], stdout=full, stderr=subprocess.PIPE
        )
    assert done.returncode == 2
    said = done.stderr.decode()
    assert said == "discreet: standard output cannot be written: No space left on device\n"


def test_a_file_that_the_system_refuses_is_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    @click.command()
    def refused() -> None:
        raise PermissionError(13, "Permission denied", "kept/reports")

    monkeypatch.setattr(type(main), "get_command", lambda *_: refused)
    result = CliRunner().invoke(main, ["show"])
    assert result.exit_code == 2
    assert result.stderr == "discreet: kept/reports: Permission denied\n"


@pytest.mark.parametrize("epsilon", ["1e-300", "5e-324", "0", "-1", "nan"])
@pytest.mark.parametrize("method", ["histogram", "moments", "global", "smooth", "trimmed"])
def test_an_epsilon_that_no_noise_fits_is_one_sentence_and_costs_nothing(
    epsilon: str, method: str, demo_folder: Path, tmp_path: Path
) -> None:
    given = ["train", str(demo_folder / "population.csv"), "--method", method]
    given += ["--schema", str(demo_folder / "schema.json"), f"--epsilon={epsilon}"]
    given += ["--budget-file", str(tmp_path / "ledger.json"), "--budget-total", "1"]
    result = CliRunner().invoke(main, [*given, "-o", str(tmp_path / "model.json")])
    assert result.exit_code == 2, result.output
    assert result.stderr.startswith("discreet: epsilon")
    assert result.stderr.count("\n") == 1
    assert not list(tmp_path.iterdir())


def test_no_sentence_repeats_a_password(demo_folder: Path) -> None:
    """Drivers and our own errors name the source; its password is not part of the name."""
    for url in ("postgres://ann:hunter2@db.example/people", "postgres://ann:hun@ter2/@db/people"):
        result = CliRunner().invoke(main, ["predict", str(demo_folder / "model.json"), url])
        assert result.exit_code == 2
        assert "postgres://…@db" in result.stderr
        assert "hun" not in result.stderr


@pytest.mark.parametrize("path", _every_command(), ids=" ".join)
def test_every_option_says_what_it_is_for(path: list[str]) -> None:
    with click.Context(main) as ctx:
        command: click.Command = main
        for name in path:
            assert isinstance(command, click.Group)
            found = command.get_command(ctx, name)
            assert found is not None
            command = found
    options = [one for one in command.params if isinstance(one, click.Option) and not one.hidden]
    assert not [one.opts[-1] for one in options if not one.help]
