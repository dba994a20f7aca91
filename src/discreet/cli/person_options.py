"""Options of commands that read tables in which a person may have several rows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

__all__ = ["person_options"]


def person_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add ``--person``, ``--rows-per-person`` and ``--missing-person`` to a command."""
    options = [
        click.option(
            "--person",
            help="Column that says whose a row is, where a person may have several rows. It is "
            "read, but never learnt from or written; the promise is about all rows of a person.",
        ),
        click.option(
            "--rows-per-person",
            type=click.IntRange(1, 1000),
            help="How many rows of a person are used at most; noise is that much larger.",
        ),
        click.option(
            "--missing-person",
            type=click.Choice(["error", "own"]),
            default="error",
            show_default=True,
            help="Whether rows without an id are refused, or each is a person of its own.",
        ),
    ]
    for option in reversed(options):
        command = option(command)
    return command
