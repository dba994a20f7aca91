"""``discreet local``: size and plan of a collection, and the commands that surveys share."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import click

from discreet.cli.collection import (
    PLAN,
    answering,
    promise_body,
    read_collection,
    read_tally,
    simulating,
)
from discreet.cli.files import OUTPUT, write
from discreet.cli.output import console, example, json_option, print_json, print_promise, table
from discreet.cli.tally import shuffling, tallying, training
from discreet.errors import SchemaError, about

if TYPE_CHECKING:
    from discreet.local.inversion import CellPrecision
    from discreet.local.plan import Plan, Question
    from discreet.schema import Schema

__all__ = ["check", "perturb", "plan", "report", "shuffle", "size", "tally", "train"]

WAVED = {
    "bins": 8,
    "numeric": "bins",
    "theta": None,
    "assignment": "draw",
    "reports": 1,
    "projection": None,
}
"""Options that the first wave fixes for all later waves, with their defaults."""

ORACLES = ["auto", "de", "sue", "oue", "she", "the", "ss", "olh", "hr"]

UNKNOWN = (
    "The accuracy of a model cannot be known in advance: it depends on how strongly the features "
    "depend on the class. Try it on simulated people with 'discreet local perturb'."
)

report = answering(PLAN)
perturb = simulating(PLAN)
shuffle = shuffling(PLAN)
tally = tallying(PLAN)
train = training(PLAN)


@click.command(
    epilog=example(
        "discreet local plan people.schema.json --epsilon 1 -o plan.json",
        "discreet local plan people.schema.json --epsilon 0.5 --kind paper --oracle the "
        "--theta 0.25 -o plan.json",
        "discreet local plan people.schema.json --epsilon 2 --numeric gaussian --approach 2 "
        "--mechanism duchi -o plan.json",
        "discreet local plan people.schema.json --shuffled --epsilon 1 --delta 1e-8 "
        "--respondents 10000 -o plan.json",
        "discreet local plan people.schema.json --epsilon 1 --respondents 30000 "
        "--after tally1.json -o plan2.json",
    )
)
@click.argument("path", metavar="SCHEMA")
@click.option("--epsilon", type=float, required=True, help="Total per person.")
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
    "each report has the largest epsilon of its own that keeps them.",
)
@click.option("--delta", type=float, help="Delta of the shuffle; 1e-8 if left out.")
@click.option(
    "--after",
    multiple=True,
    metavar="TALLY",
    help="The tally of an earlier wave; all of them, in their order. The plan names it.",
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
    help="Bundles of features; each feature with the class; or that and the class alone.",
)
@click.option(
    "--oracle",
    type=click.Choice(ORACLES),
    default="auto",
    show_default=True,
    help="How answers are randomized.",
)
@click.option("--theta", type=float, help="Threshold of the oracle 'the'; the best if left out.")
@click.option(
    "--bins",
    type=click.IntRange(1, 1024),
    default=8,
    show_default=True,
    help="Bins of numeric features.",
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
    help="With --numeric gaussian: all features at once; one coordinate; one feature; hybrid.",
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
    help="People draw their question, or you assign it.",
)
@click.option(
    "--reports",
    type=click.IntRange(1, 1000),
    default=1,
    show_default=True,
    help="Reports a person may send; they share the epsilon.",
)
@click.option(
    "--cut",
    type=click.Choice(["width", "quantile"]),
    default="width",
    show_default=True,
    help="Bins of equal width, or of equal frequency in the public sample.",
)
@click.option("--pca", type=click.IntRange(min=1), help="Replace numbers by N components.")
@click.option("--dca", type=click.IntRange(min=1), help="The same, with discriminant components.")
@click.option(
    "--public-sample",
    "sample",
    help="Records that are public anyway, for --cut quantile, --pca and --dca; never private data.",
)
@click.option("-o", "--output", type=OUTPUT, help="The file to write instead of standard output.")
@json_option
def plan(path: str, output: str | None, as_json: bool, **chosen: Any) -> None:
    """Make the plan of a collection from a SCHEMA file.

    Prints what will be asked, by which oracle, to what share of people, and what each of them is
    promised.
    """
    from discreet.local.planning import Choices, make_plan
    from discreet.schema import Schema

    how = chosen["approach"]
    chosen["approach"] = how if how == "hybrid" else int(how)
    public = Schema.read(path)
    after = chosen.pop("after")
    chosen["shuffled"] = _delta(chosen.pop("shuffled"), chosen.pop("delta"))
    chosen = _from_sample(public, chosen)
    if after:
        made = _next(public, after, chosen)
    else:
        epsilon, respondents = chosen.pop("epsilon"), chosen.pop("respondents")
        made = make_plan(public, epsilon, respondents, Choices(**chosen))
    if as_json and output is None:
        raise click.UsageError("--json prints a summary; name the file of the plan with --output.")
    if output is None:
        click.echo(made.to_json(), nl=False)
    else:
        write(output, made.to_json())
    if as_json:
        print_json({"output": output, **_body(made)})
    else:
        _print(made, output)


def _delta(shuffled: bool, delta: float | None) -> float | None:
    if delta is not None and not shuffled:
        raise click.UsageError("--delta goes with --shuffled")
    return (1e-8 if delta is None else delta) if shuffled else None


def _next(schema: Schema, after: tuple[str, ...], chosen: dict[str, Any]) -> Plan:
    """Plan a later wave; options that all waves share are taken from the previous one."""
    from discreet.local.waves import next_plan
    from discreet.shuffling import Shuffle

    for name, default in WAVED.items():
        if chosen.get(name, default) != default:
            raise click.UsageError(
                f"--{name} was decided by the plan of the first wave; leave it out with --after"
            )
    tallies = [read_tally(PLAN, one) for one in after]
    with about(", ".join(after)):
        if tallies[-1].collection.original != schema:
            raise SchemaError("the earlier waves follow another schema than the one given")
        everyone, shuffled = chosen["everyone"] or chosen["respondents"], None
        if chosen["shuffled"] is not None:
            shuffled = Shuffle(chosen["epsilon"], chosen["shuffled"], chosen["respondents"])
        return next_plan(
            tallies,
            everyone,
            kind=chosen["kind"],
            oracle=chosen["oracle"],
            epsilon=chosen["epsilon"],
            shuffled=shuffled,
        )


def _from_sample(schema: Schema, chosen: dict[str, Any]) -> dict[str, Any]:
    """Add cut points and a projection learnt from the public sample to the options of a plan."""
    from discreet.encoding import class_codes, columns_of
    from discreet.local.planning import quantile_cuts
    from discreet.projection import DCA, PCA, fit_projection
    from discreet.tables.engines import ordered_batches

    cut, pca, dca, path = (chosen.pop(name) for name in ("cut", "pca", "dca", "sample"))
    if pca is not None and dca is not None:
        raise click.UsageError("give --pca or --dca, one of them")
    if (path is None) != (pca is None and dca is None and cut == "width"):
        raise click.UsageError(
            "--public-sample goes with --cut quantile, --pca or --dca, and they need it"
        )
    if path is None:
        return chosen
    import pyarrow as pa

    names = [*schema.names, *([schema.target] if dca is not None else [])]
    with about(path):
        columns = columns_of(pa.Table.from_batches(list(ordered_batches(path, names))), names)
        projection = None
        if pca is not None or dca is not None:
            kind = PCA(pca) if pca is not None else DCA(dca)
            classes = None if dca is None else class_codes(schema, columns[schema.target])
            projection = fit_projection(kind, schema, columns, classes)
            columns, schema = projection.columns(columns), projection.after
        if cut == "quantile":
            chosen["bins"] = quantile_cuts(schema, columns, chosen["bins"])
    return {**chosen, "projection": projection}


@click.command(
    epilog=example(
        "discreet local check plan.json",
        "discreet local check plan3.json --after tally1.json --after tally2.json",
    )
)
@click.argument("path", metavar="PLAN")
@click.option(
    "--after", multiple=True, metavar="TALLY", help="The tally of an earlier wave; all of them."
)
@json_option
def check(path: str, after: tuple[str, ...], as_json: bool) -> None:
    """Read a PLAN and check everything that it states.

    Its probabilities must be those of its epsilon, and what it promises for a shuffle is computed
    again. A plan of a later wave names the plan and the tally before it: with the tallies of all
    earlier waves, the shares of its questions are computed again, too.
    """
    from discreet.local.waves import check_shares

    made = read_collection(PLAN, path)
    if after:
        tallies = [read_tally(PLAN, one) for one in after]
        with about(path):
            check_shares(made, tallies)
    if as_json:
        print_json({**_body(made), "recomputed": bool(after)})
        return
    _print(made, path)
    printer = console()
    if after:
        printer.print("The shares follow from the earlier tallies: they were computed again.")
    elif made.wave is not None:
        printer.print("Give the tallies of the earlier waves with --after to check its shares.")


def _asked(question: Question, plan: Plan) -> str:
    named = " + ".join([plan.schema.target, *question.features])
    return {0: named, 1: f"means: {named}", 2: f"squares: {named}"}[question.power]


def _body(plan: Plan) -> dict[str, Any]:
    parts = zip(plan.questions, plan.shares.tolist(), strict=True)
    return {
        "digest": plan.digest,
        "assignment": plan.assignment,
        "reports": plan.reports,
        "questions": [
            {
                "asks": _asked(question, plan),
                "mechanism": question.mechanism.name,
                "epsilon": question.mechanism.epsilon,
                "cells": question.mechanism.size,
                "share": share,
            }
            for question, share in parts
        ],
        "shuffled": None if plan.shuffled is None else plan.shuffled.to_body(),
        "wave": None if plan.wave is None else vars(plan.wave),
        "guarantee": promise_body(plan.guarantee),
    }


def _print(plan: Plan, output: str | None) -> None:
    """Print a plan as text; on standard error if the plan itself goes to standard output."""
    from discreet.privacy import rounded_up

    printer = console(stderr=output is None)
    shown = table("", "question", "asks", "mechanism", ">epsilon", ">cells", ">share")
    for number, (question, share) in enumerate(zip(plan.questions, plan.shares, strict=True)):
        mechanism = question.mechanism
        epsilon = "none" if math.isinf(mechanism.epsilon) else rounded_up(mechanism.epsilon)
        cells, part = f"{mechanism.size:,}", f"{share:.1%}"
        shown.add_row(str(number), _asked(question, plan), mechanism.name, epsilon, cells, part)
    printer.print(shown)
    dealt = "people draw their question" if plan.assignment == "draw" else "you assign questions"
    each = "one report" if plan.reports == 1 else f"{plan.reports} reports"
    printer.print(f"{dealt}, {each} per person")
    if plan.wave is not None:
        printer.print(
            f"wave {plan.wave.number} of a collection of {plan.wave.respondents:,} people, after "
            f"the plan {plan.wave.plan} and the tally {plan.wave.tally}",
            soft_wrap=True,
        )
    printer.print("")
    print_promise(plan.guarantee, printer)
    if output is not None:
        printer.print(f"\n{output}: {plan.digest}", soft_wrap=True)


@click.command(
    epilog=example(
        "discreet local size people.schema.json --epsilon 1 --precision 0.01",
        "discreet local size people.schema.json --epsilon 1 --respondents 20000",
    )
)
@click.argument("schema")
@click.option("--epsilon", type=float, required=True, help="Per person and total.")
@click.option("--precision", type=float, help="Wanted standard error of every cell, as a share.")
@click.option("--respondents", type=click.IntRange(min=1), help="How many are expected.")
@click.option(
    "--bins",
    type=click.IntRange(1, 1024),
    default=8,
    show_default=True,
    help="Bins of numeric features.",
)
@json_option
def size(
    schema: str,
    epsilon: float,
    precision: float | None,
    respondents: int | None,
    bins: int,
    as_json: bool,
) -> None:
    """Find the number of respondents for a wanted precision, or the precision for a number.

    Everything follows from the variances of the mechanisms; nothing is read but the public schema.
    It says how precise the estimated tables are, not how good a model made from them will be.
    """
    from discreet.collection.size import respondents_for
    from discreet.local.inversion import precision_of
    from discreet.local.planning import Choices, make_plan
    from discreet.schema import Schema

    if (precision is None) == (respondents is None):
        raise click.UsageError("give --precision or --respondents, one of them")
    public, choices = Schema.read(schema), Choices(bins=bins)
    if respondents is None:
        assert precision is not None
        plan = make_plan(public, epsilon, choices=choices)
        worst = precision_of(plan, 1)[0].standard_error
        respondents = respondents_for(worst, precision)
    plan = make_plan(public, epsilon, respondents, choices)
    found = precision_of(plan, respondents)
    if as_json:
        parts = [vars(one) for one in found]
        print_json({"respondents": respondents, "epsilon": epsilon, "precision": parts})
    else:
        _print_precision(respondents, epsilon, found)


def _print_precision(respondents: int, epsilon: float, found: list[CellPrecision]) -> None:
    from discreet.privacy import rounded_up

    out = console()
    made = table(
        f"{respondents:,} respondents, epsilon = {rounded_up(epsilon)} per person in total",
        "feature",
        ">cells",
        ">asked",
        ">standard error",
    )
    for one in found:
        asked = f"{one.share * respondents:,.0f}"
        made.add_row(one.feature, str(one.cells), asked, f"{100 * one.standard_error:.2f} %")
    out.print(made)
    out.print("Standard error of a cell of the class-by-value table, as a share of the population.")
    out.print(UNKNOWN)
