"""A group of commands that knows their names without importing them, so that help comes at once."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any

import click

__all__ = ["LazyGroup"]


class LazyGroup(click.Group):
    """Commands by name, each in a module of :mod:`discreet.cli` that is imported when it is run.

    Parameters
    ----------
    steps : mapping of name to (module, line of help)
        In the order in which they are listed.
    """

    def __init__(self, *args: Any, steps: Mapping[str, tuple[str, str]], **options: Any) -> None:
        super().__init__(*args, **options)
        self.steps = steps

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Names of the commands."""
        return list(self.steps)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import the module of one command."""
        if cmd_name not in self.steps:
            return None
        module: Any = import_module(f"discreet.cli.{self.steps[cmd_name][0]}")
        command: click.Command = getattr(module, cmd_name)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands with their lines."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, line) for name, (_, line) in self.steps.items()])
