"""``discreet local``: plan, report, perturb, tally, train; each step a file.

Each command has a module that is imported when it runs; to add a command, add a line to
``COMMANDS``.
"""

from __future__ import annotations

import click

from discreet.cli import CommandGroup
from discreet.cli.output import format_example

__all__ = ["local"]

COMMANDS = {
    "size": ("local.plan", "How many respondents give which precision."),
    "plan": ("local.plan", "Decide what is asked, by which mechanism, of how many."),
    "check": ("local.plan", "Check a plan; compute the shares of a later wave again."),
    "report": ("local.plan", "One person's device: turn a record into a randomized report."),
    "perturb": ("local.plan", "Simulate many devices on a table of raw data."),
    "shuffle": ("local.plan", "The anonymiser: strip ids and order from reports."),
    "tally": ("local.plan", "Add up reports."),
    "train": ("local.plan", "Turn a tally into a model."),
}
"""Name to module and one line of help, in the order of a collection."""


@click.command(
    cls=CommandGroup,
    commands_by_name=COMMANDS,
    epilog=format_example(
        "discreet local plan people.schema.json --epsilon 1 -o plan.json",
        "discreet local report plan.json me.json --store kept > report.json",
        "discreet local tally plan.json reports.jsonl -o tally.json",
        "discreet local train tally.json -o model.json",
    ),
)
def local() -> None:
    """Nobody is trusted: each person randomizes, the collector learns only the population."""
