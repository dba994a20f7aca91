"""``discreet demo``: the same question under every trust model, on a bundled population."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from discreet.cli.compare import print_comparison
from discreet.cli.files import OUTPUT_FOLDER, folder, write
from discreet.cli.output import console, example, json_option, print_json, progress
from discreet.cli.overwrite import refuse_replacement

if TYPE_CHECKING:
    from discreet.datasets import Dataset
    from discreet.model import NaiveBayesModel

__all__ = ["demo"]

FILES = ("model.json", "schema.json", "population.csv", "others.csv", "report.html")
OWN = ".demo.json"
"""Digests of the files that a demo wrote: they are simulated, so a later demo may replace them."""


@click.command(
    epilog=example(
        "discreet demo",
        "discreet demo --dataset mushroom --out mushroom --no-open",
    )
)
@click.option("--dataset", default="mortgage", show_default=True, help="See discreet datasets.")
@click.option(
    "--rows",
    type=click.IntRange(min=100),
    default=20_000,
    show_default=True,
    help="Invented people; with another dataset, the most rows to use.",
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
    help="Folder for the report, a model under epsilon 1, the schema and the people.",
)
@click.option("--open/--no-open", "opening", default=None, help="Show the report in a browser.")
@json_option
def demo(dataset: str, rows: int, seed: int, out: str, opening: bool | None, as_json: bool) -> None:
    """Train the same classifier under every trust model and compare.

    Who will miss a mortgage payment? The people are invented: they are drawn from a distribution
    that is written down in discreet.datasets. The report is one HTML file; it opens in a browser
    if the command runs in a terminal on a computer that has one.
    """
    from discreet.report.comparison import Settings, compare

    for name in FILES:
        if not _is_own(Path(out), name):
            refuse_replacement(Path(out) / name)
    people = _people(dataset, rows, seed)
    settings = Settings(
        epsilons=(0.5, 1.0, 2.0, 5.0),
        methods=("histogram", "masks", "questions", "auto"),
        seed=seed,
        most_respondents=400_000,
    )
    with progress("training", "runs") as advance:
        found = compare(people.name, people.schema, people.X, people.y, settings, advance)
    model = _model(people)
    from discreet.report.page import page_of

    command = f"discreet demo --dataset {dataset} --rows {rows} --seed {seed}"
    page = page_of(found, command=command, invented=dataset == "mortgage")
    files = _write_files({**_contents_of(people, model), "report.html": page}, folder(out))
    if as_json:
        print_json({**found.to_body(), "model": _shown(model), "files": files})
        return
    _print(people, found, model, files)
    if opening or (opening is None and _somebody_looks()):
        click.launch(files["report"])


def _people(name: str, rows: int, seed: int) -> Dataset:
    """Load or generate the rows, shuffled by the seed."""
    from dataclasses import replace

    from discreet.datasets import load, mortgage

    if name == "mortgage":
        return mortgage(rows, seed)
    data = load(name)
    frame = data.frame.sample(min(rows, len(data.frame)), random_state=seed)
    return replace(data, frame=frame.reset_index(drop=True))


def _model(people: Dataset) -> NaiveBayesModel:
    """Train the model for the next commands: 80 % of the rows, epsilon 1, unseeded noise."""
    from discreet.estimators import CentralNB

    known = len(people.y) * 4 // 5
    return CentralNB(1.0, schema=people.schema).fit(people.X[:known], people.y[:known]).model_


def _contents_of(people: Dataset, model: NaiveBayesModel) -> dict[str, str]:
    known = len(people.y) * 4 // 5
    return {
        "model.json": model.to_json(),
        "schema.json": people.schema.to_json(),
        "population.csv": people.frame[:known].to_csv(index=False, lineterminator="\n"),
        "others.csv": people.frame[known:].to_csv(index=False, lineterminator="\n"),
    }


def _write_files(contents: dict[str, str], place: Path) -> dict[str, str]:
    """Write the files of the demo and their digests, so that the next demo may replace them."""
    from discreet.documents import digest_of

    own = {name: _is_own(place, name) for name in contents}
    digests = {name: digest_of(content.encode()) for name, content in contents.items()}
    known = {name: [*_own_digests(place).get(name, []), digests[name]] for name in contents}
    write(place / OWN, json.dumps(known), free=True)  # before the files, should it be killed
    for name, content in contents.items():
        write(place / name, content, free=own[name])
    write(place / OWN, json.dumps({name: [digest] for name, digest in digests.items()}), free=True)
    return {name.split(".")[0]: str(place / name) for name in contents}


def _own_digests(place: Path) -> dict[str, list[str]]:
    """Read the digests that files had when a demo wrote them, by name."""
    try:
        known = json.loads((place / OWN).read_text("utf-8"))
        return {name: [*map(str, known[name])] for name in FILES if name in known}
    except (OSError, ValueError, TypeError):
        return {}


def _is_own(place: Path, name: str) -> bool:
    """Return whether a file was written by a demo and not changed since."""
    from discreet.documents import digest_of

    path = place / name
    if not path.is_file():
        return True
    return digest_of(path.read_bytes()) in _own_digests(place).get(name, [])


def _shown(model: NaiveBayesModel) -> dict[str, Any]:
    from discreet.cli.predict import model_body

    return model_body(model, 6)


def _print(people: Dataset, found: Any, model: NaiveBayesModel, files: dict[str, str]) -> None:
    printer = console()
    if people.name == "mortgage":
        printer.print("\nWho will miss a mortgage payment?", style="bold")
    printer.print(f"{len(people.y):,} rows of {people.title or people.name}")
    print_comparison(found)
    if people.name == "mortgage":
        from discreet.datasets import MORTGAGE_BAYES_ACCURACY

        best = 100 * MORTGAGE_BAYES_ACCURACY
        printer.print(
            f"No classifier can be right for more than {best:.1f} %: the distribution is known."
        )
    printer.print("\nWhat the curator's model knows, at epsilon 1", style="bold")
    model.show(strongest=6)
    printer.print(f"\nReport: {files['report']}", style="bold")
    printer.print("Next", style="bold")
    for step in _steps(files):
        printer.print(f"  {step}", soft_wrap=True)


def _steps(files: dict[str, str]) -> list[str]:
    from shlex import quote

    program = _program()
    model, others = quote(files["model"]), quote(files["others"])
    return [
        f"{program} predict {model} {others} --explain 0",
        f"{program} evaluate {model} {others}",
        f"{program} train {quote(files['population'])} --schema {quote(files['schema'])} "
        f"--epsilon 0.5 -o {quote(str(Path(files['model']).with_name('mine.json')))}",
    ]


def _program() -> str:
    """Return the command that runs this program: by name, or by path if it is not on PATH."""
    import shutil
    import sys
    from shlex import quote

    called = Path(sys.argv[0])
    if shutil.which("discreet") or called.name != "discreet":
        return "discreet"
    return quote(os.path.relpath(called))


def _somebody_looks() -> bool:
    """Return whether a person is at this terminal and a browser can be shown."""
    import sys

    screen = sys.platform in ("darwin", "win32") or any(
        os.environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY")
    )
    return sys.stdout.isatty() and screen and not os.environ.get("CI")
