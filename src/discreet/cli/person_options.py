"""Options of commands that read tables in which a person may have several rows."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from discreet.schema.schema import Schema
    from discreet.tables.contributions import ContributionBound

__all__ = [
    "person_column_options",
    "person_options",
    "rows_per_person_option",
    "warn_of_repeated_ids",
]


def person_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add ``--person``, ``--rows-per-person`` and ``--missing-person`` to a command."""
    return person_column_options(rows_per_person_option(None)(command))


def person_column_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add ``--person`` and ``--missing-person`` alone, where the limit is agreed elsewhere."""
    person_option = click.option(
        "--person",
        help="Column that says whose a row is, where a person may have several rows. It is read, "
        "but never learnt from or written; the promise is about all rows of a person.",
    )
    missing_option = click.option(
        "--missing-person",
        type=click.Choice(["error", "own"]),
        default="error",
        show_default=True,
        help="Whether rows without an id are refused, or each is a person of its own.",
    )
    return person_option(missing_option(command))


def rows_per_person_option(default: int | None) -> Callable[..., Any]:
    """The option ``--rows-per-person`` with a default, which is shown if there is one."""
    return click.option(
        "--rows-per-person",
        type=click.IntRange(1, 1000),
        default=default,
        show_default=default is not None,
        help="How many rows of a person are used at most; a public number, not read off the data.",
    )


def warn_of_repeated_ids(
    data: str, schema: Schema, bound: ContributionBound | None, table: str | None
) -> None:
    """Warn the curator, and nobody else, if persons seem to have several rows.

    Parameters
    ----------
    data : str
    schema : Schema
    bound : ContributionBound or None
        None takes each row for a person.
    table : str or None
        Name of the table, for a database URL.
    """
    from discreet.tables.key_columns import describe_repeated_ids, find_repeated_ids

    if bound is None and (names := find_repeated_ids(data, schema, table)):
        click.echo(f"PrivacyWarning: {describe_repeated_ids(names)}", err=True)
