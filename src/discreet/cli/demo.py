"""``discreet demo``: the same question under every trust model, on a bundled population."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from discreet.cli.compare import print_comparison
from discreet.cli.files import OUTPUT_FOLDER, make_folder, write_file
from discreet.cli.output import format_example, json_option, make_console, print_json, show_progress
from discreet.cli.overwrite import refuse_replacement

if TYPE_CHECKING:
    from discreet.datasets import Dataset
    from discreet.model import NaiveBayesModel

__all__ = ["demo"]

DEMO_FILES = ("model.json", "schema.json", "population.csv", "others.csv", "report.html")
DIGESTS_FILE = ".demo.json"
"""Digests of the files that a demo wrote: they are simulated, so a later demo may replace them."""


@click.command(
    epilog=format_example(
        "discreet demo", "discreet demo --dataset mushroom --out mushroom --no-open"
    )
)
@click.option(
    "--dataset",
    default="mortgage",
    show_default=True,
    help="Table to use; 'discreet datasets list' lists them.",
)
@click.option(
    "--rows",
    type=click.IntRange(min=100),
    default=20_000,
    show_default=True,
    help="Number of invented people; with another dataset, the largest number of rows to use.",
)
@click.option(
    "--seed",
    type=click.IntRange(min=0),
    default=0,
    show_default=True,
    help="The same seed gives the same people.",
)
@click.option(
    "--out",
    type=OUTPUT_FOLDER,
    default="demo",
    show_default=True,
    help="Folder for the report, a model with epsilon 1, the schema and the people.",
)
@click.option(
    "--open/--no-open", "opening", default=None, help="Show the report in a browser, or not."
)
@json_option
def demo(dataset: str, rows: int, seed: int, out: str, opening: bool | None, as_json: bool) -> None:
    """Train the same classifier under every trust model and compare.

    Who will miss a mortgage payment? The people are invented: they are drawn from a distribution
    that is written down in discreet.datasets. The report is one HTML file; it opens in a browser
    if the command runs in a terminal on a computer that has one.
    """
    from discreet.cli.predict import make_model_body
    from discreet.compare.demonstration import (
        compare_people,
        load_people,
        make_data_files,
        train_curator_model,
    )
    from discreet.compare.page import render_page

    for file_name in DEMO_FILES:
        if not _is_own(Path(out), file_name):
            refuse_replacement(Path(out) / file_name)
    people = load_people(dataset, rows, seed)
    with show_progress("training", "runs") as report_progress:
        comparison = compare_people(people, seed, report_progress)
    model = train_curator_model(people)
    command_line = f"discreet demo --dataset {dataset} --rows {rows} --seed {seed}"
    report_html = render_page(comparison, command=command_line, is_invented=dataset == "mortgage")
    written_files = _write_files(
        {**make_data_files(people, model), "report.html": report_html}, make_folder(out)
    )
    if as_json:
        model_body = make_model_body(model, 6)
        print_json({**comparison.to_body(), "model": model_body, "files": written_files})
        return
    _print_demo(people, comparison, model, written_files)
    if opening or (opening is None and _has_viewer()):
        click.launch(written_files["report"])


def _write_files(contents: dict[str, str], out_folder: Path) -> dict[str, str]:
    """Write the files of the demo and their digests, so that the next demo may replace them."""
    from discreet.files.documents import compute_digest

    is_own_file = {file_name: _is_own(out_folder, file_name) for file_name in contents}
    new_digests = {
        file_name: compute_digest(content.encode()) for file_name, content in contents.items()
    }
    digests_by_name = {
        file_name: [*_read_own_digests(out_folder).get(file_name, []), new_digests[file_name]]
        for file_name in contents
    }
    write_file(
        out_folder / DIGESTS_FILE, json.dumps(digests_by_name), free_to_replace=True
    )  # before the files, should it be killed
    for file_name, content in contents.items():
        write_file(out_folder / file_name, content, free_to_replace=is_own_file[file_name])
    write_file(
        out_folder / DIGESTS_FILE,
        json.dumps({file_name: [new_digest] for file_name, new_digest in new_digests.items()}),
        free_to_replace=True,
    )
    return {file_name.split(".")[0]: str(out_folder / file_name) for file_name in contents}


def _read_own_digests(out_folder: Path) -> dict[str, list[str]]:
    """Read the digests that files had when a demo wrote them, by name."""
    try:
        stored_digests = json.loads((out_folder / DIGESTS_FILE).read_text("utf-8"))
        return {
            file_name: [*map(str, stored_digests[file_name])]
            for file_name in DEMO_FILES
            if file_name in stored_digests
        }
    except (OSError, ValueError, TypeError):
        return {}


def _is_own(out_folder: Path, file_name: str) -> bool:
    """Return whether a file was written by a demo and not changed since."""
    from discreet.files.documents import compute_digest

    path = out_folder / file_name
    if not path.is_file():
        return True
    return compute_digest(path.read_bytes()) in _read_own_digests(out_folder).get(file_name, [])


def _print_demo(
    people: Dataset, comparison: Any, model: NaiveBayesModel, files: dict[str, str]
) -> None:
    printer = make_console()
    if people.name == "mortgage":
        printer.print("\nWho will miss a mortgage payment?", style="bold")
    printer.print(f"{len(people.y):,} rows of {people.title or people.name}")
    print_comparison(comparison)
    if people.name == "mortgage":
        from discreet.datasets import MORTGAGE_BAYES_ACCURACY

        best_percent = 100 * MORTGAGE_BAYES_ACCURACY
        printer.print(
            f"No classifier can be right for more than {best_percent:.1f} %: the distribution is "
            "known."
        )
    printer.print("\nWhat the curator's model knows, at epsilon 1", style="bold")
    model.show(strongest=6)
    printer.print(f"\nReport: {files['report']}", style="bold")
    printer.print("Next", style="bold")
    for next_step in _list_next_steps(files):
        printer.print(f"  {next_step}", soft_wrap=True)


def _list_next_steps(files: dict[str, str]) -> list[str]:
    from shlex import quote

    program = _find_program()
    model_path, others_path = quote(files["model"]), quote(files["others"])
    return [
        f"{program} predict {model_path} {others_path} --explain 0",
        f"{program} evaluate {model_path} {others_path}",
        f"{program} train {quote(files['population'])} --schema {quote(files['schema'])} "
        f"--epsilon 0.5 -o {quote(str(Path(files['model']).with_name('mine.json')))}",
    ]


def _find_program() -> str:
    """Return the command that runs this program: by name, or by path if it is not on PATH."""
    import shutil
    import sys
    from shlex import quote

    called_path = Path(sys.argv[0])
    if shutil.which("discreet") or called_path.name != "discreet":
        return "discreet"
    return quote(os.path.relpath(called_path))


def _has_viewer() -> bool:
    """Return whether a person is at this terminal and a browser can be shown."""
    import sys

    has_screen = sys.platform in ("darwin", "win32") or any(
        os.environ.get(variable_name) for variable_name in ("DISPLAY", "WAYLAND_DISPLAY")
    )
    return sys.stdout.isatty() and has_screen and not os.environ.get("CI")
