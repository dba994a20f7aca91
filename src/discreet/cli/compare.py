"""``discreet compare`` and ``reproduce``: experiments on own tables, and those of the papers."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from discreet.cli.files import OUTPUT_FOLDER, make_folder, make_output, write_file
from discreet.cli.output import (
    format_example,
    json_option,
    make_console,
    make_table,
    print_json,
    print_note,
    show_progress,
)
from discreet.cli.overwrite import refuse_replacement
from discreet.cli.parameter_types import BinCountType, NamedNumbersType
from discreet.errors import SchemaError
from discreet.files.atomic_writing import error_context

if TYPE_CHECKING:
    from discreet.compare.results import Comparison

__all__ = ["compare", "print_comparison", "reproduce"]

PAPER_NAMES = ("local-nb", "surveys", "mechanisms", "smooth-sensitivity", "multi-party")


@click.command(
    epilog=format_example(
        "discreet compare people.csv --schema people.schema.json --report trust.html",
        "discreet compare people.parquet --schema s.json --epsilon 1 --trust local --methods all",
        "discreet compare people.csv --schema people.schema.json --accuracy 0.78",
    )
)
@click.argument("data")
@click.option("--schema", required=True, help="Schema file: the public description of the table.")
@click.option(
    "--epsilon",
    default="0.1,0.5,1,2,5",
    show_default=True,
    help="Epsilon per person, in total; separate several by commas.",
)
@click.option(
    "--trust",
    default="central,federated,survey,local",
    show_default=True,
    help="Trust models, separated by commas.",
)
@click.option(
    "--methods",
    help="Names of methods separated by commas, or all; a few of each trust model if left out.",
)
@click.option(
    "--folds",
    type=click.IntRange(min=2),
    default=5,
    show_default=True,
    help="Number of parts of the rows, each tested once.",
)
@click.option(
    "--repeats",
    type=click.IntRange(min=1),
    default=1,
    show_default=True,
    help="Number of times that the rows are divided into folds.",
)
@click.option(
    "--bins",
    type=BinCountType(2, 1024),
    metavar="auto|NUMBER",
    default="auto",
    show_default=True,
    help="Number of bins of each numeric feature; auto: the default of each trust model.",
)
@click.option(
    "--seed",
    type=click.IntRange(min=0),
    default=0,
    show_default=True,
    help="The same seed gives the same figures.",
)
@click.option(
    "--accuracy",
    type=click.FloatRange(0, 1, min_open=True, max_open=True),
    help="Also search the smallest epsilon, and the respondents, that reach this accuracy.",
)
@click.option(
    "--cost",
    type=NamedNumbersType("yes=5", "cost"),
    help="What missing a class costs, 1 where not said: also show decisions by cost.",
)
@click.option("--report", type=make_output("report"), help="Also write a report: one HTML file.")
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
    """Compare the accuracy of trusting a curator, organisations or nobody, on a table of your own.

    READS RAW DATA, and its output is not protected: run it only where the table may be read, and
    keep what it prints as confidential as the table. Every method is cross-validated at every
    epsilon, with 95 % intervals. Randomness is seeded, so that a run can be repeated. The method
    histogram-delta shows what a delta of 1e-6 besides epsilon would gain (discreet train --delta).
    """
    from discreet.compare.comparison import ComparisonSettings, read_labelled_rows
    from discreet.compare.comparison import compare_methods as run_comparison
    from discreet.compare.methods import select_methods
    from discreet.schema.schema import Schema

    comparison_settings = ComparisonSettings(
        _parse_epsilons(epsilon), select_methods(methods, trust), **settings
    )
    public_schema = Schema.read(schema)
    click.echo("discreet: this reads raw data; its output is not protected", err=True)
    with error_context(data):
        X, y = read_labelled_rows(data, public_schema)
        with show_progress("comparing", "runs") as report_progress:
            comparison = run_comparison(
                data, public_schema, X, y, comparison_settings, report_progress
            )
    if report is not None:
        from discreet.compare.page import render_page

        write_file(report, render_page(comparison, command=_get_command_line()))
    if as_json:
        print_json(comparison.to_body())
    else:
        print_comparison(comparison)
        if report is not None:
            print_note(f"{report}: the report, one file to open in a browser")


def _get_command_line() -> str:
    import sys
    from shlex import join

    return join(["discreet", *sys.argv[1:]])


def _parse_epsilons(text: str) -> tuple[float, ...]:
    try:
        epsilons = sorted({float(epsilon_text) for epsilon_text in text.split(",")})
    except ValueError:
        raise SchemaError(f"epsilon is {text!r}; write numbers separated by commas") from None
    if not all(0 < epsilon < math.inf for epsilon in epsilons):
        raise SchemaError(f"epsilon is {text!r}; every one must be a number above 0")
    return tuple(epsilons)


def print_comparison(comparison: Comparison) -> None:
    """Print the conclusion, the accuracy by epsilon, and the cost of the best methods.

    Parameters
    ----------
    comparison : Comparison
    """
    from discreet.compare.methods import TRUST_MODELS
    from discreet.privacy.guarantee import format_rounded_up

    printer, focus_epsilon = make_console(), comparison.settings.focus_epsilon
    printer.print(f"\n{comparison.summary_sentence}\n", style="bold")
    printer.print(_make_epsilon_table(comparison))
    cost_table = make_table(
        f"best of each trust model at epsilon {format_rounded_up(focus_epsilon)}",
        "trust", "trusted", ">accuracy", ">log loss", ">calib.", ">time", ">bytes",
    )  # fmt: skip
    for cell in [
        *(
            comparison.find_best(trust_model, focus_epsilon)
            for trust_model in comparison.trust_models
        ),
        comparison.non_private,
        comparison.plain,
    ]:
        log_loss_margin = _compute_half_width(cell.log_loss_interval)
        calibration_margin = 100 * _compute_half_width(cell.calibration_interval)
        byte_digits = 0 if cell.bytes_per_person >= 10 else 1
        cost_table.add_row(
            cell.trust if cell is not comparison.plain else "plain NB",
            TRUST_MODELS[cell.trust].short_name if cell.trust in TRUST_MODELS else "trainer",
            _format_accuracy(cell),
            f"{cell.log_loss:.2f} ±{log_loss_margin:.2f}",
            f"{100 * cell.calibration_error:.1f} ±{calibration_margin:.1f}",
            f"{cell.training_seconds:.2f}",
            f"{cell.bytes_per_person:,.{byte_digits}f}",
        )
    printer.print(cost_table)
    printer.print(_make_ranking_table(comparison))
    if comparison.settings.cost is not None:
        printer.print(_make_cost_table(comparison))
    majority_class, majority_share = comparison.majority_class
    printer.print(
        f"always “{majority_class}”: {100 * majority_share:.1f} %; none: the central classifier "
        "without noise; plain NB: plain Naive Bayes. Accuracy and calib. (mean gap "
        "between confidence and hit rate) in %, time to train in s, bytes sent by or for each "
        "person; ± is a 95 % interval."
    )
    for remark in comparison.remarks:
        printer.print(remark)
    for method_name, skip_reason in comparison.skipped_methods.items():
        printer.print(f"left out: {method_name}, because {skip_reason}")
    if comparison.respondents_needed is not None:
        printer.print(f"\n{comparison.respondents_needed.sentence}")
    if comparison.accuracy_search is not None:
        printer.print("\n" + "\n".join(comparison.accuracy_search.sentences))


def _make_ranking_table(comparison: Comparison) -> Any:
    """Make a table of the areas under curves of the best method of each trust model."""
    from discreet.privacy.guarantee import format_rounded_up
    from discreet.schema.schema import format_value

    focus_epsilon, classes = comparison.settings.focus_epsilon, comparison.schema.classes
    ranked = f"of “{format_value(classes[1])}”" if len(classes) == 2 else "mean over the classes"
    ranking_table = make_table(
        f"ranking at epsilon {format_rounded_up(focus_epsilon)} in %, {ranked}: AUC (50 is chance) "
        "and average precision",
        "trust", ">AUC", ">av. precision",
    )  # fmt: skip
    for result in comparison.list_focus_results():
        ranking_table.add_row(
            result.trust,
            f"{100 * result.auc:.1f} ±{100 * _compute_half_width(result.auc_interval):.1f}",
            f"{100 * result.average_precision:.1f} "
            f"±{100 * _compute_half_width(result.average_precision_interval):.1f}",
        )
    return ranking_table


def _make_cost_table(comparison: Comparison) -> Any:
    """Make a table of what decisions by cost, others and constant ones cost on average."""
    from discreet.privacy.guarantee import format_rounded_up

    cost_table: Any = None
    for result in comparison.list_focus_results():
        cost_scores = result.pooled_scores.cost_scores
        assert cost_scores is not None
        by_cost, by_probability, *constants = cost_scores.policies
        if cost_table is None:
            prices = ", ".join(
                f"{name} {cost:g}" for name, cost in cost_scores.to_body()["missing"].items()
            )
            cost_table = make_table(
                f"mean cost of 100 rows at epsilon "
                f"{format_rounded_up(comparison.settings.focus_epsilon)}, where missing costs: "
                f"{prices}",
                "trust", f">{cost_scores.rule}", ">say the most probable class",
            )  # fmt: skip
        cost_table.add_row(
            result.trust,
            *(
                f"{100 * cost:.1f} ±{100 * _compute_half_width(interval):.1f}"
                for _, cost, interval in (by_cost, by_probability)
            ),
        )
    for decision, cost, interval in constants:
        half_width = 100 * _compute_half_width(interval)
        cost_table.add_row(decision, f"{100 * cost:.1f} ±{half_width:.1f}", "")
    return cost_table


def _make_epsilon_table(comparison: Comparison) -> Any:
    """Make a table of accuracy by method and epsilon; a star marks the best per trust model."""
    from discreet.privacy.guarantee import format_rounded_up

    epsilons = comparison.settings.epsilons
    method_count = len({result.method for result in comparison.results})
    has_choice = method_count > len(comparison.trust_models)
    accuracy_table = make_table(
        "accuracy in %, 95 % intervals, by total epsilon per person"
        + ("; ★ best of its trust model" if has_choice else ""),
        "trust", "method", *(f">{format_rounded_up(epsilon)}" for epsilon in epsilons),
    )  # fmt: skip
    for trust_model in comparison.trust_models:
        method_names = dict.fromkeys(
            cell.method for cell in comparison.results if cell.trust == trust_model
        )
        for method_name in method_names:
            method_cells = [cell for cell in comparison.results if cell.method == method_name]
            best_flags = [
                len(method_names) > 1
                and comparison.find_best(trust_model, method_cell.epsilon) is method_cell
                for method_cell in method_cells
            ]
            cell_texts = (
                _format_accuracy(method_cell) + ("★" if is_best else "")
                for method_cell, is_best in zip(method_cells, best_flags, strict=True)
            )
            accuracy_table.add_row(trust_model, method_name, *cell_texts)
    return accuracy_table


def _compute_half_width(interval: tuple[float, float]) -> float:
    return (interval[1] - interval[0]) / 2


def _format_accuracy(cell: Any) -> str:
    return f"{100 * cell.accuracy:.1f} ±{100 * _compute_half_width(cell.accuracy_interval):.1f}"


@click.command(
    epilog=format_example(
        "discreet reproduce surveys --quick", "discreet reproduce all --out docs/papers"
    )
)
@click.argument("paper", type=click.Choice([*PAPER_NAMES, "all"]))
@click.option("--figure", help="Recompute only this figure.")
@click.option("--repeats", type=click.IntRange(min=2), help="Number of repetitions of every cell.")
@click.option("--quick", is_flag=True, help="Fewer points and repetitions: minutes, not hours.")
@click.option(
    "--out",
    type=OUTPUT_FOLDER,
    default="papers",
    show_default=True,
    help="Folder for pages and plots.",
)
@click.option(
    "--jobs", type=click.IntRange(min=1), default=2, show_default=True, help="Number of processes."
)
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
    """Recompute the experiments of a paper, and judge its claims.

    Writes a page with a verdict on every claim, plots (SVG and PNG; needs discreet[plot]) and a CSV
    file of every cell. Finished cells are kept under OUT/.cache, by digest of code and parameters,
    so an interrupted run continues where it ended. Needs the benchmark tables (DISCREET_DATA).
    """
    from discreet.papers.reproduction import PAPERS, ReproductionOptions, describe_left_out
    from discreet.papers.reproduction import reproduce_paper as run_experiments

    out_folder, page_paths, omission_notes = make_folder(out), {}, {}
    for paper_name in (
        [known_paper for known_paper in PAPER_NAMES if known_paper in PAPERS]
        if paper == "all"
        else [paper]
    ):
        _refuse_foreign(out_folder, paper_name)
        command_line = f"discreet reproduce {paper_name}" + (" --quick" if quick else "")
        command_line += f" --repeats {repeats}" if repeats else ""
        reproduction_run = ReproductionOptions(
            out_folder, repeats, quick, figure, jobs, command_line, Path(out) / ".cache"
        )
        if omission_note := describe_left_out(paper_name):
            omission_notes[paper_name] = omission_note
            print_note(omission_note)
        with show_progress(paper_name, "cells") as report_progress:
            page_path = run_experiments(paper_name, reproduction_run, report_progress)
        page_paths[paper_name] = str(page_path)
        if not as_json:
            print_note(f"{page_paths[paper_name]}: the page of {paper_name}")
    if as_json:
        print_json({"pages": page_paths, "left_out": omission_notes})


def _refuse_foreign(out_folder: Path, paper_name: str) -> None:
    """Refuse to replace a page, plots or cells that were not made by an earlier run."""
    from discreet.files.atomic_writing import read_text

    page_path = out_folder / f"{paper_name}.md"
    if page_path.is_file() and "Made by `discreet reproduce" in read_text(page_path):
        return
    for path in (page_path, *sorted((out_folder / paper_name).glob("*"))):
        refuse_replacement(path)
