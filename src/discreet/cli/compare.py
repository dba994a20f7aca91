"""``discreet compare`` and ``reproduce``: experiments on own tables, and those of the papers."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from discreet.cli.files import OUTPUT_FOLDER, folder, output_of, write
from discreet.cli.output import console, example, json_option, note, print_json, progress, table
from discreet.cli.overwrite import refuse_replacement
from discreet.errors import SchemaError, about

if TYPE_CHECKING:
    from discreet.report.comparison import Comparison
    from discreet.schema import Schema

__all__ = ["compare", "print_comparison", "reproduce"]

PAPER_NAMES = ("local-nb", "surveys", "mechanisms", "smooth-sensitivity", "multi-party")


@click.command(
    epilog=example(
        "discreet compare people.csv --schema people.schema.json --report trust.html",
        "discreet compare people.parquet --schema s.json --epsilon 1 --trust local --methods all",
    )
)
@click.argument("data")
@click.option("--schema", required=True, help="Public description of the table.")
@click.option(
    "--epsilon",
    default="0.1,0.5,1,2,5",
    show_default=True,
    help="Total per person; one or several, separated by commas.",
)
@click.option(
    "--trust",
    default="central,federated,survey,local",
    show_default=True,
    help="Trust models, separated by commas.",
)
@click.option(
    "--methods", help="Names separated by commas, or all; a few of each trust model if left out."
)
@click.option(
    "--folds",
    type=click.IntRange(min=2),
    default=5,
    show_default=True,
    help="Parts of the rows, each tested once.",
)
@click.option(
    "--repeats",
    type=click.IntRange(min=1),
    default=1,
    show_default=True,
    help="How often the rows are dealt into folds.",
)
@click.option(
    "--bins",
    type=click.IntRange(2, 1024),
    default=8,
    show_default=True,
    help="Bins of numeric features.",
)
@click.option(
    "--seed",
    type=click.IntRange(min=0),
    default=0,
    show_default=True,
    help="The same seed gives the same figures.",
)
@click.option("--report", type=output_of("report"), help="Also write a report: one HTML file.")
@json_option
def compare(
    data: str,
    schema: str,
    epsilon: str,
    trust: str,
    methods: str | None,
    report: str | None,
    as_json: bool,
    **settings: Any,
) -> None:
    """Compare what trusting a curator, organisations or nobody costs, on a table of your own.

    READS RAW DATA, and its output is not protected: run it only where the table may be read, and
    keep what it prints as confidential as the table. Every method is cross-validated at every
    epsilon, with 95 % intervals. Randomness is seeded, so that a run can be repeated.
    """
    from discreet.report.comparison import Settings
    from discreet.report.comparison import compare as compared
    from discreet.schema import Schema

    chosen = Settings(_numbers(epsilon), _methods(methods, trust), **settings)
    public = Schema.read(schema)
    click.echo("discreet: this reads raw data; its output is not protected", err=True)
    with about(data):
        X, y = _rows(data, public)
        with progress("comparing", "runs") as advance:
            found = compared(data, public, X, y, chosen, advance)
    if report is not None:
        from discreet.report.page import page_of

        write(report, page_of(found, command=_typed()))
    if as_json:
        print_json(found.to_body())
    else:
        print_comparison(found)
        if report is not None:
            note(f"{report}: the report, one file to open in a browser")


def _typed() -> str:
    import sys
    from shlex import join

    return join(["discreet", *sys.argv[1:]])


def _numbers(text: str) -> tuple[float, ...]:
    try:
        found = sorted({float(part) for part in text.split(",")})
    except ValueError:
        raise SchemaError(f"epsilon is {text!r}; write numbers separated by commas") from None
    if not all(0 < one < math.inf for one in found):
        raise SchemaError(f"epsilon is {text!r}; every one must be a number above 0")
    return tuple(found)


def _methods(text: str | None, trust: str) -> tuple[str, ...]:
    from discreet.report.methods import METHODS, TRUST, defaults

    trusts = tuple(part.strip() for part in trust.split(",") if part.strip())
    for one in trusts or ("",):
        if one not in TRUST:
            raise SchemaError(f"unknown trust model {one!r}; write some of {', '.join(TRUST)}")
    if text is None:
        return tuple(defaults(trusts))
    if text == "all":
        return tuple(name for name, one in METHODS.items() if one.trust in trusts)
    names = tuple(part.strip() for part in text.split(",") if part.strip())
    for name in names:
        if name not in METHODS:
            raise SchemaError(
                f"unknown method {name!r}; write all, or some of {', '.join(METHODS)}"
            )
    kept = tuple(name for name in dict.fromkeys(names) if METHODS[name].trust in trusts)
    if not kept:
        fitting = (name for name, one in METHODS.items() if one.trust in trusts)
        raise SchemaError(
            f"none of {text} belongs to the trust models {', '.join(trusts)}; write some of "
            f"{', '.join(fitting)}, or another --trust"
        )
    return kept


def _rows(data: str, schema: Schema) -> tuple[Any, Any]:
    from discreet.encoding import lacks
    from discreet.tables.engines import open_table

    opened = open_table(data)
    wanted = [*schema.names, schema.target]
    lacking = [name for name in wanted if name not in opened.columns]
    if lacking:
        raise SchemaError(f"the table {lacks(lacking, list(opened.columns))}")
    frame = opened.select(*wanted).to_pandas()
    return frame[list(schema.names)], frame[schema.target].to_numpy()


def print_comparison(found: Comparison) -> None:
    """Print the conclusion, the accuracy by epsilon, and the cost of the best methods.

    Parameters
    ----------
    found : Comparison
    """
    from discreet.report.methods import TRUST

    printer, focus = console(), found.settings.focus
    printer.print(f"\n{found.answer}\n", style="bold")
    printer.print(_by_epsilon(found))
    costs = table(
        f"best of each trust model at epsilon {focus:g}",
        "trust", "trusted", ">accuracy", ">log loss", ">calib.", ">time", ">bytes",
    )  # fmt: skip
    for cell in [*(found.best(trust, focus) for trust in found.trusts), found.exact]:
        costs.add_row(
            cell.trust, TRUST[cell.trust].short if cell.trust in TRUST else "trainer",
            _share(cell), f"{cell.log_loss:.2f} ±{_half(cell.log_loss_interval):.2f}",
            f"{100 * cell.calibration_error:.1f} ±{100 * _half(cell.calibration_interval):.1f}",
            f"{cell.seconds:.2f}",
            f"{cell.bytes_per_person:,.{0 if cell.bytes_per_person >= 10 else 1}f}",
        )  # fmt: skip
    printer.print(costs)
    label, share = found.majority
    printer.print(
        f"always “{label}”: {100 * share:.1f} %. Accuracy and calib. (mean gap between confidence "
        "and hit rate) in %, time to train in s, bytes sent by or for each person; ± is a 95 % "
        "interval."
    )
    for remark in found.remarks:
        printer.print(remark)
    for name, why in found.skipped.items():
        printer.print(f"left out: {name}, because {why}")
    if found.needed is not None:
        printer.print(f"\n{found.needed.sentence}")


def _by_epsilon(found: Comparison) -> Any:
    """Make a table of accuracy by method and epsilon; a star marks the best per trust model."""
    epsilons = found.settings.epsilons
    made = table(
        "accuracy in %, 95 % intervals, by total epsilon per person",
        "trust", "method", *(f">{e:g}" for e in epsilons),
    )  # fmt: skip
    for trust in found.trusts:
        names = dict.fromkeys(cell.method for cell in found.cells if cell.trust == trust)
        for name in names:
            cells = [cell for cell in found.cells if cell.method == name]
            best = [len(names) > 1 and found.best(trust, c.epsilon) is c for c in cells]
            shown = (_share(c) + ("★" if b else "") for c, b in zip(cells, best, strict=True))
            made.add_row(trust, name, *shown)
    return made


def _half(interval: tuple[float, float]) -> float:
    return (interval[1] - interval[0]) / 2


def _share(cell: Any) -> str:
    return f"{100 * cell.accuracy:.1f} ±{100 * _half(cell.interval):.1f}"


@click.command(
    epilog=example(
        "discreet reproduce surveys --quick",
        "discreet reproduce all --out docs/papers",
    )
)
@click.argument("paper", type=click.Choice([*PAPER_NAMES, "all"]))
@click.option("--figure", help="Only this figure.")
@click.option("--repeats", type=click.IntRange(min=2), help="Repetitions of every cell.")
@click.option("--quick", is_flag=True, help="Fewer points and repetitions: minutes, not hours.")
@click.option(
    "--out",
    type=OUTPUT_FOLDER,
    default="papers",
    show_default=True,
    help="Folder for pages and plots.",
)
@click.option("--jobs", type=click.IntRange(min=1), default=2, show_default=True, help="Processes.")
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
    from discreet.papers.reproduction import PAPERS, Run, left_out
    from discreet.papers.reproduction import reproduce as reproduced

    place, pages, absent = folder(out), {}, {}
    for name in [one for one in PAPER_NAMES if one in PAPERS] if paper == "all" else [paper]:
        _refuse_foreign(place, name)
        said = f"discreet reproduce {name}" + (" --quick" if quick else "")
        said += f" --repeats {repeats}" if repeats else ""
        run = Run(place, repeats, quick, figure, jobs, said, Path(out) / ".cache")
        if missing := left_out(name):
            absent[name] = missing
            note(missing)
        with progress(name, "cells") as advance:
            pages[name] = str(reproduced(name, run, advance))
        if not as_json:
            note(f"{pages[name]}: the page of {name}")
    if as_json:
        print_json({"pages": pages, "left_out": absent})


def _refuse_foreign(place: Path, name: str) -> None:
    """Refuse to replace a page, plots or cells that were not made by an earlier run."""
    from discreet.documents import read_text

    page = place / f"{name}.md"
    if page.is_file() and "Made by `discreet reproduce" in read_text(page):
        return
    for path in (page, *sorted((place / name).glob("*"))):
        refuse_replacement(path)
