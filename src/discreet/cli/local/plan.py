"""``discreet local``: size and plan of a collection, and the commands that surveys share."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import click

from discreet.cli.collection import (
    PLAN,
    make_answer_command,
    make_guarantee_body,
    make_simulate_command,
    read_collection,
)
from discreet.cli.files import OUTPUT, write_file
from discreet.cli.output import (
    format_example,
    json_option,
    make_console,
    make_table,
    print_guarantee,
    print_json,
)
from discreet.cli.tally import make_shuffle_command, make_tally_command, make_train_command
from discreet.files.atomic_writing import error_context

if TYPE_CHECKING:
    from discreet.local.inversion import CellPrecision
    from discreet.local.plan import Plan, Question
    from discreet.local.planning import PlanOptions
    from discreet.schema.schema import Schema

__all__ = ["check", "perturb", "plan", "report", "shuffle", "size", "tally", "train"]

FIXED_BY_FIRST_WAVE = ("bins", "numeric", "theta", "assignment", "reports", "projection")
"""Options that the first wave fixes for all later waves."""

DEFAULT_DELTA = 1e-8
"""Delta of a shuffle, if none is given."""

ORACLES = ["auto", "de", "sue", "oue", "she", "the", "ss", "olh", "hr"]

MODEL_QUALITY_NOTE = (
    "The accuracy of a model cannot be known in advance: it depends on how strongly the features "
    "depend on the class. Try it on simulated people with 'discreet local perturb'."
)

report = make_answer_command(
    PLAN,
    click.option(
        "--group", type=click.IntRange(min=0), help="Number of the question that you were assigned."
    ),
    click.option(
        "--again", is_flag=True, help="Make a further report, if the plan allows several."
    ),
)
perturb = make_simulate_command(PLAN)
shuffle = make_shuffle_command(PLAN)
tally = make_tally_command(PLAN)
train = make_train_command(PLAN)


@click.command(
    epilog=format_example(
        "discreet local plan people.schema.json --epsilon 1 -o plan.json",
        "discreet local plan people.schema.json --epsilon 0.5 --kind paper --oracle the "
        "--theta 0.25 -o plan.json",
        "discreet local plan people.schema.json --epsilon 2 --numeric gaussian --approach 2 "
        "--mechanism duchi -o plan.json",
        "discreet local plan people.schema.json --shuffled --epsilon 1 --delta 1e-8 "
        "--respondents 10000 -o plan.json",
        "discreet local plan people.schema.json --epsilon 1 --respondents 30000 "
        "--after tally1.json -o plan2.json",
        "discreet local plan people.schema.json --epsilon 1 --respondents 30000 "
        "--after tally1.json --judge -o plan2.json",
    )
)
@click.argument("path", metavar="SCHEMA")
@click.option("--epsilon", type=float, required=True, help="Epsilon per person, in total.")
@click.option(
    "--respondents",
    type=click.IntRange(min=1),
    default=10_000,
    show_default=True,
    help="How many people are expected, in all waves together; with --shuffled the least number "
    "in the shuffle, on which the promise rests.",
)
@click.option(
    "--shuffled",
    is_flag=True,
    help="An anonymiser shuffles the reports: epsilon and delta hold for what it passes on, and "
    "each report gets the largest epsilon of its own that allows this.",
)
@click.option("--delta", type=float, help="Delta of the shuffle; 1e-8 if left out.")
@click.option(
    "--after",
    multiple=True,
    metavar="TALLY",
    help="Tally of an earlier wave; give those of all earlier waves, in order. The plan names it.",
)
@click.option(
    "--judge",
    is_flag=True,
    help="With --after: people judge candidate models made from the earlier tallies, each by one "
    "randomized bit. It pays for a fifth of at least 75,000 people at epsilon 1, of 20,000 at 4.",
)
@click.option(
    "--everyone",
    type=click.IntRange(min=1),
    help="With shuffled waves: how many people are expected in all of them together.",
)
@click.option(
    "--kind",
    type=click.Choice(["auto", "pairs", "paper"]),
    default="auto",
    show_default=True,
    help="What the questions are about. auto: bundles of features where that is more precise; "
    "pairs: each feature with the class; paper: pairs, and the class alone.",
)
@click.option(
    "--oracle",
    type=click.Choice(ORACLES),
    default="auto",
    show_default=True,
    help="How answers are randomized.",
)
@click.option(
    "--theta", type=float, help="Threshold of the oracle 'the'; the best one if left out."
)
@click.option(
    "--bins",
    type=click.IntRange(1, 1024),
    help="Number of bins of each numeric feature; if left out, by the expected noise.",
)
@click.option(
    "--numeric",
    type=click.Choice(["bins", "gaussian"]),
    default="bins",
    show_default=True,
    help="Ask numbers by bin, or for their means and squares.",
)
@click.option(
    "--approach",
    type=click.Choice(["1", "2", "3", "hybrid"]),
    default="hybrid",
    show_default=True,
    help="With --numeric gaussian, what a person is asked. 1: all features; 2: one coordinate; 3: "
    "one feature; hybrid: one coordinate, by the hybrid mechanism.",
)
@click.option(
    "--mechanism",
    type=click.Choice(["one-bit", "duchi", "piecewise"]),
    default="one-bit",
    show_default=True,
    help="Mechanism of --approach 2.",
)
@click.option(
    "--assignment",
    type=click.Choice(["draw", "groups"]),
    default="draw",
    show_default=True,
    help="Whether people draw their question or you assign it.",
)
@click.option(
    "--reports",
    type=click.IntRange(1, 1000),
    default=1,
    show_default=True,
    help="Number of reports that a person may send; they share the epsilon.",
)
@click.option(
    "--cut",
    type=click.Choice(["width", "quantile"]),
    default="width",
    show_default=True,
    help="Bins of equal width, or of equal frequency in the public sample.",
)
@click.option(
    "--pca",
    type=click.IntRange(min=1),
    help="Replace the numeric features by this many principal components.",
)
@click.option(
    "--dca", type=click.IntRange(min=1), help="The same, with discriminant components (DCA)."
)
@click.option(
    "--public-sample",
    "sample",
    help="Table of records that are public anyway, for --cut quantile, --pca and --dca; never "
    "private data.",
)
@click.option("-o", "--output", type=OUTPUT, help="The file to write instead of standard output.")
@json_option
def plan(path: str, output: str | None, as_json: bool, **chosen: Any) -> None:
    """Make the plan of a collection from a SCHEMA file.

    Prints what will be asked, by which oracle, to what share of people, and what each of them is
    promised.
    """
    from discreet.local.planning import make_plan

    tally_paths, judge = chosen.pop("after"), chosen.pop("judge")
    epsilon, respondents = chosen.pop("epsilon"), chosen.pop("respondents")
    schema, options = _make_options(path, chosen)
    if judge and (not tally_paths or (options.kind, options.oracle) != ("auto", "auto")):
        raise click.UsageError(
            "--judge goes with --after, without --kind and --oracle: models follow from earlier "
            "tallies and are judged by randomized response"
        )
    if tally_paths:
        from discreet.collection.ingest import read_tally
        from discreet.local.waves import make_next_plan

        _refuse_fixed_options(options)
        tallies = [read_tally(PLAN.kind, tally_path) for tally_path in tally_paths]
        with error_context(", ".join(tally_paths)):
            new_plan = make_next_plan(schema, tallies, epsilon, respondents, options, judge=judge)
    else:
        new_plan = make_plan(schema, epsilon, respondents, options)
    if as_json and output is None:
        raise click.UsageError("--json prints a summary; name the file of the plan with --output.")
    if output is None:
        click.echo(new_plan.to_json(), nl=False)
    else:
        write_file(output, new_plan.to_json())
    if as_json:
        print_json({"output": output, **_make_plan_body(new_plan)})
    else:
        _print_plan(new_plan, None if output is None else f"{output}: {new_plan.digest}")


def _make_options(path: str, chosen: dict[str, Any]) -> tuple[Schema, PlanOptions]:
    """Read the schema and make the options of a plan, learning from the public sample if given."""
    from discreet.local.planning import PlanOptions, learn_from_sample
    from discreet.schema.projection import DCA, PCA
    from discreet.schema.schema import Schema

    schema = Schema.read(path)
    cut, pca, dca, sample_path = (chosen.pop(name) for name in ("cut", "pca", "dca", "sample"))
    approach, delta = chosen.pop("approach"), chosen.pop("delta")
    if delta is not None and not chosen["shuffled"]:
        raise click.UsageError("--delta goes with --shuffled")
    shuffle_delta = DEFAULT_DELTA if delta is None else delta
    chosen["shuffled"] = shuffle_delta if chosen["shuffled"] else None
    chosen["approach"] = approach if approach == "hybrid" else int(approach)
    chosen["respondents_all_waves"] = chosen.pop("everyone")
    chosen["bins"] = chosen["bins"] or "auto"
    if pca is not None and dca is not None:
        raise click.UsageError("give --pca or --dca, one of them")
    if (sample_path is None) != (pca is None and dca is None and cut == "width"):
        raise click.UsageError(
            "--public-sample goes with --cut quantile, --pca or --dca, and they need it"
        )
    if sample_path is not None:
        components = DCA(dca) if dca is not None else None if pca is None else PCA(pca)
        with error_context(sample_path):
            chosen["bins"], chosen["projection"] = learn_from_sample(
                schema, sample_path, chosen["bins"], cut, components
            )
    return schema, PlanOptions(**chosen)


def _refuse_fixed_options(options: PlanOptions) -> None:
    from discreet.local.planning import DEFAULT_OPTIONS

    for name in FIXED_BY_FIRST_WAVE:
        if getattr(options, name) != getattr(DEFAULT_OPTIONS, name):
            raise click.UsageError(
                f"--{name} was decided by the plan of the first wave; leave it out with --after"
            )


@click.command(
    epilog=format_example(
        "discreet local check plan.json",
        "discreet local check plan3.json --after tally1.json --after tally2.json",
    )
)
@click.argument("path", metavar="PLAN")
@click.option(
    "--after",
    multiple=True,
    metavar="TALLY",
    help="Tally of an earlier wave; give those of all earlier waves.",
)
@json_option
def check(path: str, after: tuple[str, ...], as_json: bool) -> None:
    """Read a PLAN and check everything that it states.

    Its probabilities must be those of its epsilon, and what it promises for a shuffle is computed
    again. A plan of a later wave names the plan and the tally before it: with the tallies of all
    earlier waves, the shares of its questions are computed again, too.
    """
    from discreet.collection.ingest import read_tally
    from discreet.local.waves import check_shares

    checked_plan = read_collection(PLAN, path)
    if after:
        tallies = [read_tally(PLAN.kind, tally_path) for tally_path in after]
        with error_context(path):
            check_shares(checked_plan, tallies)
    if as_json:
        print_json({**_make_plan_body(checked_plan), "recomputed": bool(after)})
        return
    _print_plan(checked_plan, f"{path}: {checked_plan.digest}")
    printer = make_console()
    if after:
        printer.print("The shares follow from the earlier tallies: they were computed again.")
    elif checked_plan.wave is not None:
        printer.print("Give the tallies of the earlier waves with --after to check its shares.")


def _format_question(question: Question, plan: Plan) -> str:
    if question.candidate is not None:
        return f"judge: {plan.schema.target} by {len(question.features)} features"
    feature_text = " + ".join([plan.schema.target, *question.features])
    return {0: feature_text, 1: f"means: {feature_text}", 2: f"squares: {feature_text}"}[
        question.power
    ]


def _make_plan_body(plan: Plan) -> dict[str, Any]:
    question_shares = zip(plan.questions, plan.shares.tolist(), strict=True)
    return {
        "digest": plan.digest,
        "assignment": plan.assignment,
        "reports": plan.reports,
        "questions": [
            {
                "asks": _format_question(question, plan),
                "mechanism": question.mechanism.name,
                "epsilon": question.mechanism.epsilon,
                "cells": question.mechanism.size,
                "share": share,
            }
            for question, share in question_shares
        ],
        "shuffled": None if plan.shuffled is None else plan.shuffled.to_body(),
        "wave": None if plan.wave is None else vars(plan.wave),
        "guarantee": make_guarantee_body(plan.guarantee),
    }


def _print_plan(plan: Plan, source: str | None) -> None:
    """Print a plan as text; on standard error if the plan itself goes to standard output.

    ``source`` is the file of the plan with its digest, None for standard output.
    """
    from discreet.privacy.guarantee import format_rounded_up

    shares, guarantee_text = plan.shares, str(plan.guarantee)
    table_rows = []
    for question, share in zip(plan.questions, shares, strict=True):
        epsilon = question.mechanism.epsilon
        epsilon_text = "none" if math.isinf(epsilon) else format_rounded_up(epsilon)
        table_rows.append(
            (
                _format_question(question, plan),
                question.mechanism.name,
                epsilon_text,
                f"{question.mechanism.size:,}",
                f"{share:.1%}",
            )
        )
    printer = make_console(stderr=source is None)
    question_table = make_table("", "question", "asks", "mechanism", ">epsilon", ">cells", ">share")
    for question_number, table_row in enumerate(table_rows):
        question_table.add_row(str(question_number), *table_row)
    printer.print(question_table)
    assignment_text = (
        "people draw their question" if plan.assignment == "draw" else "you assign questions"
    )
    reports_text = "one report" if plan.reports == 1 else f"{plan.reports} reports"
    printer.print(f"{assignment_text}, {reports_text} per person")
    if plan.wave is not None:
        printer.print(
            f"wave {plan.wave.number} of a collection of {plan.wave.respondents:,} people, after "
            f"the plan {plan.wave.plan} and the tally {plan.wave.tally}",
            soft_wrap=True,
        )
    printer.print("")
    print_guarantee(guarantee_text, printer)
    if source is not None:
        printer.print(f"\n{source}", soft_wrap=True)


@click.command(
    epilog=format_example(
        "discreet local size people.schema.json --epsilon 1 --precision 0.01",
        "discreet local size people.schema.json --epsilon 1 --respondents 20000",
    )
)
@click.argument("schema")
@click.option("--epsilon", type=float, required=True, help="Epsilon per person, in total.")
@click.option(
    "--precision", type=float, help="Wanted standard error of every cell, as a share such as 0.01."
)
@click.option("--respondents", type=click.IntRange(min=1), help="Number of people expected.")
@click.option(
    "--bins",
    type=click.IntRange(1, 1024),
    help="Bins of each numeric feature; if left out, by the expected noise.",
)
@json_option
def size(
    schema: str,
    epsilon: float,
    precision: float | None,
    respondents: int | None,
    bins: int | None,
    as_json: bool,
) -> None:
    """Find the number of respondents for a wanted precision, or the precision for a number.

    The figures follow from the variances of the mechanisms; only the public schema is read. They
    say how precise the estimated tables are, not how good a model made from them will be.
    """
    from discreet.collection.sample_size import compute_required_respondents
    from discreet.local.inversion import compute_precision
    from discreet.local.planning import PlanOptions, make_plan
    from discreet.schema.schema import Schema

    if (precision is None) == (respondents is None):
        raise click.UsageError("give --precision or --respondents, one of them")
    public_schema, plan_options = Schema.read(schema), PlanOptions(bins=bins or "auto")
    if respondents is None:
        assert precision is not None
        collection_plan = make_plan(public_schema, epsilon, options=plan_options)
        plan_options = PlanOptions(bins=collection_plan.bins)
        worst_error = compute_precision(collection_plan, 1)[0].standard_error
        respondents = compute_required_respondents(worst_error, precision)
    collection_plan = make_plan(public_schema, epsilon, respondents, plan_options)
    cell_precisions = compute_precision(collection_plan, respondents)
    if as_json:
        precision_bodies = [vars(cell_precision) for cell_precision in cell_precisions]
        print_json({"respondents": respondents, "epsilon": epsilon, "precision": precision_bodies})
    else:
        _print_precision(respondents, epsilon, cell_precisions)


def _print_precision(
    respondents: int, epsilon: float, cell_precisions: list[CellPrecision]
) -> None:
    from discreet.privacy.guarantee import format_rounded_up

    printer = make_console()
    precision_table = make_table(
        f"{respondents:,} respondents, epsilon = {format_rounded_up(epsilon)} per person in total",
        "feature",
        ">cells",
        ">asked",
        ">standard error",
    )
    for cell_precision in cell_precisions:
        asked_text = f"{cell_precision.share * respondents:,.0f}"
        precision_table.add_row(
            cell_precision.feature,
            str(cell_precision.cells),
            asked_text,
            f"{100 * cell_precision.standard_error:.2f} %",
        )
    printer.print(precision_table)
    printer.print(
        "Standard error of a cell of the class-by-value table, as a share of the population."
    )
    printer.print(MODEL_QUALITY_NOTE)
