"""``discreet local``: plan, report, perturb, tally, train; each step a file.

The commands live in modules of their own, imported when they are run; a further one is a line in
``STEPS``.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

import click

from discreet.cli.output import example

__all__ = ["local"]

STEPS = {
    "size": ("local_size", "How many respondents are enough, or how precise so many are."),
    "plan": ("local_plan", "Decide what is asked, by which mechanism, of how many."),
    "report": ("local_device", "One person's device: turn a record into a randomized report."),
    "perturb": ("local_reports", "Simulate many devices on a table of raw data."),
    "tally": ("local_reports", "Add up reports."),
    "train": ("local_train", "Turn a tally into a model."),
}
"""Name to module and one line of help, in the order of a collection."""


class Steps(click.Group):
    """The group of all steps; it knows their names without importing them."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Names of the steps."""
        return list(STEPS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import the module of one step."""
        if cmd_name not in STEPS:
            return None
        module: Any = import_module(f"discreet.cli.{STEPS[cmd_name][0]}")
        command: click.Command = getattr(module, cmd_name)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the steps from the table above."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, line) for name, (_, line) in STEPS.items()])


@click.command(
    cls=Steps,
    epilog=example(
        "discreet local plan people.schema.json --epsilon 1 -o plan.json",
        "discreet local report plan.json me.json --store kept > report.json",
        "discreet local tally plan.json reports.jsonl -o tally.json",
        "discreet local train tally.json -o model.json",
    ),
)
def local() -> None:
    """Nobody is trusted: each person randomizes, the collector learns only the population."""
