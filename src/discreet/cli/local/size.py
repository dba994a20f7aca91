"""``discreet local size``: how precise a collection will be, before anyone is asked."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from discreet.cli.files import read_schema
from discreet.cli.output import console, example, json_option, print_json, table

if TYPE_CHECKING:
    from discreet.local.size import Precision

__all__ = ["size"]

UNKNOWN = (
    "How good a model will be cannot be known before: that depends on how strongly the features "
    "depend on the class. Try it on invented people with 'discreet local perturb'."
)


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
@click.option("--bins", type=click.IntRange(min=1), default=8, show_default=True)
@json_option
def size(
    schema: str,
    epsilon: float,
    precision: float | None,
    respondents: int | None,
    bins: int,
    as_json: bool,
) -> None:
    """From a wanted precision to the number of respondents, or back.

    Everything follows from the variances of the mechanisms; nothing is read but the public schema.
    It says how precise the estimated tables are, not how good a model made from them will be.
    """
    from discreet.local.planning import make_plan
    from discreet.local.size import precision_of, respondents_for

    if (precision is None) == (respondents is None):
        raise click.UsageError("give --precision or --respondents, one of them")
    public = read_schema(schema)
    if respondents is None:
        assert precision is not None
        respondents = respondents_for(make_plan(public, epsilon, bins=bins), precision)
    plan = make_plan(public, epsilon, respondents, bins=bins)
    found = precision_of(plan, respondents)
    if as_json:
        parts = [vars(one) for one in found]
        print_json({"respondents": respondents, "epsilon": epsilon, "precision": parts})
    else:
        _print(respondents, epsilon, found)


def _print(respondents: int, epsilon: float, found: list[Precision]) -> None:
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
