"""No command replaces what it reads: found from the tree of commands, so that none is forgotten."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import click
import pandas as pd
import pytest
from click.testing import CliRunner, Result

from discreet import Categorical, Schema
from discreet.cli import compare, files, main, overwrite
from discreet.cli.files import NEW_FOLDER, Output
from discreet.collection import tally as tally_module
from discreet.collection.parquet_reports import ReportFile
from discreet.errors import FormatError
from discreet.files.documents import dump_document
from discreet.local import MemoryStore, Respondent, Tally, make_plan

Run = Callable[..., Result]

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


def is_file(param: click.Parameter) -> bool:
    return isinstance(param.type, Output) and param.type.name == "file"


CASES = [
    pytest.param(
        path, output.name, other.name, id=f"{' '.join(path)}: {output.name} = {other.name}"
    )
    for path, command in commands()
    for output in command.params
    if is_file(output)
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
            value = f"some-{param.name}.csv" if takes_text(param) or is_file(param) else "1"
        words += [value] if isinstance(param, click.Argument) else [param.opts[0], value]
    return words


def test_every_output_is_declared() -> None:
    """An option that is spelt like an output has the type of one."""
    found = [
        (path, param.name)
        for path, command in commands()
        for param in command.params
        if {"-o", "--output", "--out"} & set(param.opts) and not isinstance(param.type, Output)
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
        files.write_file(result, "gone")

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


WRITERS = [
    pytest.param(path, param.name, id=f"{' '.join(path)}: {param.name}")
    for path, command in commands()
    for param in command.params
    if is_file(param)
]
LEDGER = dump_document("ledger", 2, {"epsilon": 1.0, "delta": 0.0, "entries": []})


def said(path: tuple[str, ...], given: dict[str, str], *more: str) -> str:
    result = CliRunner().invoke(main, [*words_of(path, given), *more])
    assert result.exit_code != 0, result.output
    return " ".join(result.output.split())


def test_every_command_that_writes_has_force() -> None:
    assert len(WRITERS) > 20
    for path, command in commands():
        kinds = [param.type for param in command.params if isinstance(param.type, Output)]
        forced = any("--force" in param.opts for param in command.params)
        assert forced == any(kind is not NEW_FOLDER for kind in kinds), path


@pytest.mark.parametrize(("path", "output"), WRITERS)
def test_no_command_replaces_somebody_elses_file_or_a_ledger(
    path: tuple[str, ...], output: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before it does anything: none of its inputs exists here."""
    monkeypatch.chdir(tmp_path)
    for name in ("kept.csv", "kept.parquet", "kept.json"):
        Path(name).write_text(KEPT)
        message = said(path, {output: name})
        assert f"{name}: exists already; choose another name, or replace it with --force" in message
        assert Path(name).read_text() == KEPT
        forced = CliRunner().invoke(main, [*words_of(path, {output: name}), "--force"])
        assert "exists already" not in forced.output
        if forced.exit_code != 0:  # survey new needs no input
            assert Path(name).read_text() == KEPT
    Path("ledger.json").write_text(LEDGER)
    Path("ledger.json.lock").touch()
    Path("damaged.json").write_text(LEDGER.replace("1", "{")[:-9])
    Path("sorted.json").write_text(json.dumps({"a": "x" * 2**20, **json.loads(LEDGER)}))
    Path("escaped.json").write_text(LEDGER.replace("/", "\\/").replace("format", "f\\u006frmat"))
    names = ("ledger.json", "ledger.json.lock", "damaged.json", "sorted.json", "escaped.json")
    for name in names:
        for more in ([], ["--force"]):
            assert "which no command replaces" in said(path, {output: name}, *more)


def test_a_ledger_is_not_replaced_by_files_in_a_folder_either(run: Run) -> None:
    Path("mortgage.csv").write_text(LEDGER)
    for more in ([], ["--force"]):
        result = run("datasets", "fetch", "mortgage", "--rows", 10, *more)
        assert result.exit_code == 2
        assert "which no command replaces" in result.stderr
    assert Path("mortgage.csv").read_text() == LEDGER


def train(run: Run, *more: str) -> Result:
    given = ["--schema", "schema.json", "-o", "m.json", "--statistics", "st.json"]
    return run("train", "population.csv", "--epsilon", "1", *given, *more)


@pytest.mark.slow
@pytest.mark.parametrize("damaged", [False, True])
def test_a_model_that_was_paid_for_is_replaced_with_force_only(damaged: bool, run: Run) -> None:
    paid = ["--budget-file", "budget.json", "--budget-total", "9"]
    assert train(run, *paid).exit_code == 0
    if damaged:
        Path("m.json").write_text(Path("m.json").read_text()[:-100])
    before = {name: Path(name).read_text() for name in ("m.json", "st.json", "budget.json")}
    refused = train(run, *paid)
    assert refused.exit_code == 2
    epsilon = "" if damaged else " and cost privacy budget (epsilon 1)"
    assert f"m.json: exists already{epsilon}; choose another name" in refused.stderr
    assert {name: Path(name).read_text() for name in before} == before  # nothing was paid
    assert train(run, *paid, "--force").exit_code == 0
    assert all(Path(name).read_text() != text for name, text in before.items())


@pytest.mark.slow
def test_twin_models_that_all_count_as_free_are_lost(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(overwrite, "_read_stated_epsilon", lambda path: math.inf)
    assert train(run).exit_code == 0
    before = Path("m.json").read_text()
    assert train(run).exit_code == 0
    assert Path("m.json").read_text() != before


@pytest.mark.slow
def test_what_costs_nothing_to_make_again_is_replaced_by_its_kind(run: Run) -> None:
    unpaid = ["train", "population.csv", "--schema", "schema.json", "--epsilon", "inf"]
    lines = [
        [*unpaid, "-o", "exact.json", "--statistics", "exact-statistics.json"],
        ["predict", "model.json", "others.csv", "-o", "p.csv"],
        ["predict", "model.json", "others.csv", "--proba", "-o", "p.csv"],
        ["predict", "model.json", "others.csv", "--proba", "-o", "p.parquet"],
        ["sample", "model.json", "-n", "9", "-o", "s.parquet"],
    ]
    for line in lines:
        for _ in range(2):
            result = run(*line)
            assert result.exit_code == 0, result.output
    table = Path("others.csv").read_text()
    pd.read_csv("others.csv").to_parquet("others.parquet")
    Path("mine.csv").write_text("prediction,age\nrain,3\n")
    for line in [
        ["sample", "model.json", "-n", "9", "-o", "others.csv"],
        ["sample", "model.json", "-n", "9", "-o", "others.parquet"],
        ["sample", "model.json", "-n", "9", "-o", "p.parquet"],
        ["predict", "model.json", "population.csv", "-o", "others.csv"],
        ["predict", "model.json", "population.csv", "-o", "others.parquet"],
        ["predict", "model.json", "population.csv", "-o", "s.parquet"],
        ["predict", "model.json", "population.csv", "-o", "mine.csv"],
        [*unpaid, "-o", "exact-statistics.json"],
        [*unpaid, "-o", "schema.json", "--statistics", "exact.json"],
    ]:
        result = run(*line)
        assert result.exit_code == 2, line
        assert "exists already" in result.stderr or "replaces an input" in result.stderr
    assert Path("others.csv").read_text() == table


@pytest.mark.slow
def test_a_tally_is_replaced_by_one_that_counts_the_same_reports(run: Run) -> None:
    """Reports may be gone when they are tallied."""
    schema = Schema([Categorical("a", [0, 1], optional=False)], "y", [0, 1])
    for name, epsilon in (("plan", 2.0), ("other", 3.0)):
        plan = make_plan(schema, epsilon, 40)
        Path(f"{name}.json").write_text(plan.to_json())
        record = {"a": 0, "y": 1}
        reports = [Respondent(plan, MemoryStore()).report(record) for _ in range(40)]
        for part, some in {"all": reports, "most": reports[:-1], "early": reports[:20]}.items():
            lines = "".join(one.to_json() for one in some)
            Path(f"{name}-{part}.jsonl").write_text(lines)
            with ReportFile(f"{name}-{part}.parquet", plan) as file:
                file.add_reports(some)

    def tally(name: str, part: str, *more: str) -> Result:
        return run("local", "tally", f"{name}.json", f"{name}-{part}", "-o", "t.json", *more)

    for kind in ("jsonl", "parquet"):
        for part in ("early", "most", "most", "all"):  # more and more of them
            done = tally("plan", f"{part}.{kind}")
            assert done.exit_code == 0, done.output
        for name, part in (("plan", "most"), ("plan", "early"), ("other", "all")):
            before = Path("t.json").read_text()
            refused = tally(name, f"{part}.{kind}")
            assert refused.exit_code == 2
            assert "may count reports that the new tally does not" in refused.stderr
            assert Path("t.json").read_text() == before
            (beside,) = Path().glob("t-*.json")  # nor is the new one lost
            assert str(beside) in refused.stderr
            beside.unlink()
        assert tally("other", f"early.{kind}", "--force").exit_code == 0
        Path("t.json").unlink()


def test_which_tallies_count_all_that_another_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where not all ids are in the files, there must at least be as many reports."""
    monkeypatch.setattr(tally_module, "ID_SAMPLE_SIZE", 4)
    schema = Schema([Categorical("a", [0, 1], optional=False)], "y", [0, 1])
    plan = make_plan(schema, 2.0, 40)
    record = {"a": 0, "y": 1}
    reports = [Respondent(plan, MemoryStore()).report(record) for _ in range(40)]
    reports.sort(key=lambda report: report.id)
    new, old = tmp_path / "new.json", tmp_path / "old.json"

    def counts_all(some: list[Any], earlier: list[Any], seen: bool) -> bool:
        new.write_text(Tally.from_reports(plan, some).to_json(include_seen=seen))
        old.write_text(Tally.from_reports(plan, earlier).to_json(include_seen=seen))
        return overwrite._has_all_reports(new, old)

    for seen in (True, False):
        assert counts_all(reports, reports, seen)
        assert counts_all(reports, reports[:-1], seen)
        assert not counts_all(reports[:-1], reports, seen)
        assert not counts_all(reports[1:], reports[:1], seen)
    old.write_text("{")
    assert not overwrite._has_all_reports(new, old)


def test_twin_any_tally_replaces_any(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(overwrite, "_has_all_reports", lambda new, old: True)
    with pytest.raises(AssertionError):
        test_a_tally_is_replaced_by_one_that_counts_the_same_reports(run)


def test_what_appears_while_a_command_works_is_not_replaced(tmp_path: Path) -> None:
    path = tmp_path / "out.json"

    def write_late() -> None:
        with files.open_replacement(path) as draft:
            draft.write_text("new")
            path.write_text(KEPT)

    with pytest.raises(FormatError, match="exists already"):
        write_late()
    assert path.read_text() == KEPT
    assert list(tmp_path.iterdir()) == [path]
    files.write_file(path, KEPT)  # the same content replaces nothing


def test_two_trainings_to_one_file_both_keep_what_was_paid(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The other one ends while this one counts. Twins: the draft is removed, or takes its place."""
    from discreet.central import training

    released, nested = training.train, False

    def late(*args: object, **options: object) -> object:
        nonlocal nested
        nested, inner = True, nested
        if not inner:
            assert train(run).exit_code == 0
        return released(*args, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(training, "train", late)
    result = train(run)
    assert result.exit_code == 2
    assert "m.json: exists already and cost privacy budget" in result.stderr
    (beside,) = Path().glob("m-*.json")
    assert f"the new result is in {beside}" in result.stderr
    models = [json.loads(path.read_text()) for path in (Path("m.json"), beside)]
    assert [model["guarantee"]["epsilon"] for model in models] == [1.0, 1.0]
    assert models[0] != models[1]
    assert not list(Path().glob(".*.part"))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:rows of this table were fitted before")
def test_a_demo_replaces_its_own_files_only(run: Run) -> None:
    words = ["demo", "--rows", "300", "--no-open"]
    for _ in range(2):
        result = run(*words)
        assert result.exit_code == 0, result.output
    assert run("train", "population.csv", "--schema", "schema.json", "--epsilon", "2",
               "-o", "demo/model.json", "--force").exit_code == 0  # fmt: skip
    mine = Path("demo/model.json").read_text()
    result = run(*words)
    assert result.exit_code == 2
    assert "demo/model.json: exists already and cost privacy budget (epsilon 2)" in result.stderr
    assert Path("demo/model.json").read_text() == mine
    assert run(*words, "--force").exit_code == 0
    assert Path("demo/model.json").read_text() != mine


def test_a_page_of_a_paper_replaces_its_own_only(tmp_path: Path) -> None:
    (tmp_path / "surveys.md").write_text("my notes")
    with pytest.raises(FormatError, match="exists already"):
        compare._refuse_foreign(tmp_path, "surveys")
    (tmp_path / "surveys.md").write_text("Made by `discreet reproduce surveys`: …")
    compare._refuse_foreign(tmp_path, "surveys")
    (tmp_path / "mechanisms").mkdir()
    (tmp_path / "mechanisms" / "cells.csv").write_text("mine")
    with pytest.raises(FormatError, match=r"cells.csv: exists already"):
        compare._refuse_foreign(tmp_path, "mechanisms")
