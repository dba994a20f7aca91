"""``discreet federated``: identities, a manifest, and each party's part in a round.

The commands live in modules of their own, imported when they are run.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

import click

from discreet.cli.output import example

__all__ = ["federated"]

STEPS = {
    "identity": ("federated_setup", "Make a party's keys, and a card for the others."),
    "manifest": ("federated_setup", "Write down what the parties of a round agree on."),
    "collect": ("federated_collect", "The collector: take submissions and add them up."),
    "provide": ("federated_parties", "A provider: count, hide and send one's own table."),
    "label": ("federated_parties", "The label provider of a vertical round."),
    "receive": ("federated_parties", "The receiver: open the result and write the model."),
}
"""Name to module and one line of help, in the order of a round."""


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
