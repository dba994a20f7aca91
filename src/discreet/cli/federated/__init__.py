"""``discreet federated``: identities, a manifest, and each party's part in a round.

The commands live in modules of their own, imported when they are run.
"""

from __future__ import annotations

from typing import Any

import click

from discreet.cli import CommandGroup
from discreet.cli.federated.progress import start_progress_reporter
from discreet.cli.output import format_example

__all__ = ["federated"]

COMMANDS = {
    "rehearse": ("federated.rehearse", "Try a whole round out on this machine."),
    "identity": ("federated.setup", "Make a party's keys, and a card for the others."),
    "manifest": ("federated.setup", "Write down what the parties of a round agree on."),
    "judge": ("federated.setup", "Write down a second round that judges candidate models."),
    "show": ("federated.show", "Print a card, a manifest or an invitation in words."),
    "invite": ("federated.align", "Write down who aligns rows before a vertical round."),
    "align": ("federated.align", "An owner: keep the rows whose ids all owners have."),
    "collect": ("federated.collect", "The collector: carry messages, add up or match."),
    "provide": (
        "federated.parties",
        "A provider: count its own table, and send the counts hidden.",
    ),
    "label": ("federated.parties", "The label provider of a vertical round."),
    "receive": ("federated.parties", "The receiver: open the result and write the model."),
}
"""Name to module and one line of help, in the order of a round."""


class ProgressCommandGroup(CommandGroup):
    """Commands that report progress from their start."""

    def invoke(self, ctx: click.Context) -> Any:
        """Run a command."""
        with start_progress_reporter() as ctx.obj:
            return super().invoke(ctx)


@click.command(
    cls=ProgressCommandGroup,
    commands_by_name=COMMANDS,
    epilog=format_example(
        "discreet federated identity hospital-a",
        "discreet federated manifest s.json --provider a.card.json --provider b.card.json \\",
        "    --collector c.card.json --receiver r.card.json --epsilon 1 -o manifest.json",
        "discreet federated collect manifest.json --identity c.identity.json --state kept",
        "discreet federated provide manifest.json people.csv --identity a.identity.json \\",
        "    --collector https://collector.example:8443 --state kept",
        "discreet federated receive manifest.json --identity r.identity.json \\",
        "    --collector https://collector.example:8443 -o model.json",
    ),
)
def federated() -> None:
    """Several data owners train one model; nobody hands over a table."""
