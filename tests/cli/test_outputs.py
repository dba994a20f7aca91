"""No command replaces what it reads: found from the tree of commands, so that none is forgotten."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from discreet.cli import files, main
from discreet.cli.files import OUTPUT, OUTPUT_FOLDER
from discreet.errors import FormatError

KEPT = "what must not be lost\n"


def commands(
    group: click.Group = main, path: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        if isinstance(command, click.Group):
            yield from commands(command, (*path, name))
        else:
            yield (*path, name), command


def takes_text(param: click.Parameter) -> bool:
    return isinstance(param.type, click.types.StringParamType)


CASES = [
    pytest.param(
        path, output.name, other.name, id=f"{' '.join(path)}: {output.name} = {other.name}"
    )
    for path, command in commands()
    for output in command.params
    if output.type is OUTPUT
    for other in command.params
    if takes_text(other)
]


def words_of(path: tuple[str, ...], given: dict[str, str]) -> list[str]:
    """An invocation with everything that is required, and with what is given by name."""
    command = dict(commands())[path]
    words: list[str] = list(path)
    for param in command.params:
        value = given.get(param.name or "")
        if value is None and not param.required:
            continue
        if value is None and isinstance(param.type, click.Choice):
            value = str(param.type.choices[0])
        elif value is None:
            value = f"some-{param.name}.csv" if takes_text(param) or param.type is OUTPUT else "1"
        words += [value] if isinstance(param, click.Argument) else [param.opts[0], value]
    return words


def test_every_output_is_declared() -> None:
    """An option that is spelt like an output has the type of one."""
    found = [
        (path, param.name)
        for path, command in commands()
        for param in command.params
        if {"-o", "--output", "--out"} & set(param.opts)
        and param.type not in (OUTPUT, OUTPUT_FOLDER)
    ]
    assert found == []
    assert len(CASES) > 40


@pytest.mark.parametrize(("path", "output", "other"), CASES)
def test_an_output_that_is_an_input_is_refused_however_it_is_spelt(
    path: tuple[str, ...],
    output: str,
    other: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    kept = tmp_path / "kept.csv"
    kept.write_text(KEPT)
    os.symlink(kept, tmp_path / "symbolic.csv")
    os.link(kept, tmp_path / "hard.csv")
    (tmp_path / "folder").mkdir()
    spellings = ["kept.csv", str(kept), "folder/../kept.csv", "symbolic.csv", "hard.csv"]
    for spelling in spellings:
        result = CliRunner().invoke(main, words_of(path, {output: spelling, other: "kept.csv"}))
        assert result.exit_code == 2, result.output
        assert "an output never replaces an input" in result.output
    result = CliRunner().invoke(main, words_of(path, {output: "new.json", other: "new.json"}))
    assert "an output never replaces an input" in result.output  # neither exists yet
    assert kept.read_text() == KEPT
    assert not (tmp_path / "new.json").exists()


@pytest.mark.parametrize(
    "data", ["*.csv", "**/kept.csv", "spark:kept.csv", "duckdb://kept.csv#table", "k[e]pt.csv"]
)
def test_patterns_and_addresses_name_files_too(
    data: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("kept.csv").write_text(KEPT)
    result = CliRunner().invoke(main, words_of(("train",), {"data": data, "output": "kept.csv"}))
    assert "an output never replaces an input" in result.output
    assert Path("kept.csv").read_text() == KEPT


def test_the_lock_of_a_ledger_is_no_place_for_a_model(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    given = {"budget_file": "ledger.json", "output": "ledger.json.lock"}
    result = CliRunner().invoke(main, words_of(("train",), given))
    assert "is the file of --budget-file" in result.output


def test_two_outputs_are_two_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    given = {"output": "both.json", "statistics": "./both.json"}
    result = CliRunner().invoke(main, words_of(("federated", "receive"), given))
    assert result.exit_code == 2
    assert "choose two files" in result.output


@pytest.mark.parametrize(
    ("output", "says"),
    [("nowhere/model.json", "does not exist; make it first"), ("folder", "is a folder")],
)
def test_where_nothing_can_be_written_nothing_is_paid(
    output: str, says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("folder").mkdir()
    ledger = {"budget_file": "ledger.json", "budget_total": "1", "output": output}
    result = CliRunner().invoke(main, words_of(("train",), ledger))
    assert result.exit_code == 2
    assert says in result.output
    assert not Path("ledger.json").exists()


def test_a_command_that_forgets_to_declare_its_output_cannot_write_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)

    @click.command()
    @click.argument("data")
    @click.option("--result")
    def careless(data: str, result: str) -> None:
        files.write(result, "gone")

    Path("kept.csv").write_text(KEPT)
    for result in ("kept.csv", "new.csv"):
        with pytest.raises(FormatError, match="never replaces an input"):
            careless.main(["kept.csv", "--result", result], standalone_mode=False)
    assert Path("kept.csv").read_text() == KEPT


@pytest.mark.slow
def test_devices_and_pipes_are_written_to_all_the_same(demo_folder: Path) -> None:
    model = str(demo_folder / "model.json")
    data = str(demo_folder / "others.csv")
    assert CliRunner().invoke(main, ["predict", model, data]).exit_code == 0
    done = CliRunner().invoke(
        main, ["schema", "infer", data, "--target", "missed_payment", "-o", "/dev/null"]
    )
    assert done.exit_code == 0, done.output
