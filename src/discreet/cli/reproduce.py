"""``discreet reproduce``: the papers' experiments on this package's own estimators."""

from __future__ import annotations

from pathlib import Path

import click

from discreet.cli.files import OUTPUT_FOLDER, folder
from discreet.cli.output import example, json_option, print_json, progress

__all__ = ["reproduce"]

NAMES = ("local-nb", "surveys", "mechanisms", "smooth-sensitivity", "multi-party")


@click.command(
    epilog=example(
        "discreet reproduce surveys --quick",
        "discreet reproduce all --out docs/papers",
    )
)
@click.argument("paper", type=click.Choice([*NAMES, "all"]))
@click.option("--figure", help="Only this figure.")
@click.option("--repeats", type=click.IntRange(min=2), help="Repetitions of every cell.")
@click.option("--quick", is_flag=True, help="Fewer points and repetitions: minutes, not hours.")
@click.option("--out", type=OUTPUT_FOLDER, default="papers", show_default=True)
@click.option("--jobs", type=click.IntRange(min=1), default=2, show_default=True)
@json_option
def reproduce(
    paper: str,
    figure: str | None,
    repeats: int | None,
    quick: bool,
    out: str,
    jobs: int,
    as_json: bool,
) -> None:
    """Recompute the experiments of a paper, and judge what it states.

    Writes a page with a verdict for every statement, plots (SVG and PNG; needs discreet[plot]) and
    a CSV file of every cell. Finished cells are kept under OUT/.cache, by digest of code and
    parameters, so a run that was interrupted goes on where it ended. Needs the benchmark tables
    (DISCREET_DATA).
    """
    from discreet.papers.reproduction import PAPERS, Run
    from discreet.papers.reproduction import reproduce as reproduced

    place, pages = folder(out), {}
    for name in [one for one in NAMES if one in PAPERS] if paper == "all" else [paper]:
        said = f"discreet reproduce {name}" + (" --quick" if quick else "")
        said += f" --repeats {repeats}" if repeats else ""
        run = Run(place, repeats, quick, figure, jobs, said, Path(out) / ".cache")
        with progress(name, "cells") as advance:
            pages[name] = str(reproduced(name, run, advance))
        if not as_json:
            click.echo(f"{pages[name]}: the page of {name}", err=True)
    if as_json:
        print_json({"pages": pages})
