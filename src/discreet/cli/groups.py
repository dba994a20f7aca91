"""Groups of commands: their outputs are checked first, and help comes at once."""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy
from functools import wraps
from importlib import import_module
from typing import Any

import click

from discreet.cli.files import check_outputs

__all__ = ["CheckedGroup", "LazyGroup"]


class CheckedGroup(click.Group):
    """Commands whose outputs are compared with their inputs before they begin.

    See :mod:`discreet.cli.files`.
    """

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """A command, with the check before it."""
        command = self.find(ctx, cmd_name)
        if command is None or isinstance(command, click.Group) or command.callback is None:
            return command
        checked, callback = copy(command), command.callback

        @wraps(callback)
        def run(*args: Any, **options: Any) -> Any:
            check_outputs(click.get_current_context())
            return callback(*args, **options)

        checked.callback = run
        return checked

    def find(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """A command as it was written."""
        return super().get_command(ctx, cmd_name)


class LazyGroup(CheckedGroup):
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

    def find(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
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
