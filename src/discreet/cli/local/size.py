"""``discreet local size``: how many respondents are enough, before anyone is asked."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from discreet.cli.files import read_schema
from discreet.cli.output import console, example, json_option, print_json, table

if TYPE_CHECKING:
    from discreet.local.size import Outlook, Precision

__all__ = ["size"]


@click.command(
    epilog=example(
        "discreet local size people.schema.json --epsilon 1 --precision 0.01",
        "discreet local size people.schema.json --epsilon 1 --respondents 20000 --majority 0.8",
    )
)
@click.argument("schema")
@click.option("--epsilon", type=float, required=True, help="Per person and total.")
@click.option("--precision", type=float, help="Wanted standard error of every cell, as a share.")
@click.option("--respondents", type=click.IntRange(min=1), help="How many are expected.")
@click.option(
    "--majority",
    type=float,
    default=0.7,
    show_default=True,
    help="Expected share of the most frequent class.",
)
@click.option(
    "--strength",
    type=float,
    default=0.2,
    show_default=True,
    help="How strongly features depend on the class: 0.1 weak, 0.2 typical, 0.4 strong.",
)
@click.option("--bins", type=click.IntRange(min=1), default=8, show_default=True)
@json_option
def size(
    schema: str,
    epsilon: float,
    precision: float | None,
    respondents: int | None,
    majority: float,
    strength: float,
    bins: int,
    as_json: bool,
) -> None:
    """From a wanted precision to the number of respondents, or back.

    Also says whether the expected number of respondents is enough to do better than always naming
    the majority class. Everything follows from the variances of the mechanisms; nothing is read
    but the public schema.
    """
    from discreet.local.planning import make_plan
    from discreet.local.size import outlook, precision_of, respondents_for

    if (precision is None) == (respondents is None):
        raise click.UsageError("give --precision or --respondents, one of them")
    public = read_schema(schema)
    if respondents is None:
        assert precision is not None
        respondents = respondents_for(make_plan(public, epsilon, bins=bins), precision)
    plan = make_plan(public, epsilon, respondents, bins=bins)
    found = precision_of(plan, respondents)
    view = outlook(plan, respondents, majority, strength)
    if as_json:
        print_json(
            {
                "respondents": respondents,
                "epsilon": epsilon,
                "precision": [vars(one) for one in found],
                "outlook": vars(view),
                "assumed": {"majority": majority, "strength": strength},
            }
        )
    else:
        _print(respondents, epsilon, found, view, majority)


def _print(
    respondents: int, epsilon: float, found: list[Precision], view: Outlook, majority: float
) -> None:
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
    beats = {
        "enough": "should be enough to beat",
        "borderline": "may or may not beat",
        "not enough": "will hardly beat",
    }[view.verdict]
    comfortable = (
        "no number of respondents would be comfortable with features so weak"
        if view.respondents is None
        else f"about {view.respondents:,} would be comfortable"
    )
    out.print(
        f"{respondents:,} respondents {beats} always naming the majority class, if that class has "
        f"{majority:.0%}; {comfortable}."
    )
