"""Options of commands that charge a ledger."""

from __future__ import annotations

from typing import Any

import click

__all__ = ["require_budget_file"]


def require_budget_file(budget_file: str | None, **options: Any) -> None:
    """Refuse options of a ledger where no ledger is named.

    Ignoring them would run a training that the user believes to be limited.

    Parameters
    ----------
    budget_file : str, optional
    **options
        Values of other options, by parameter name; None and False mean not given.
    """
    for option_name, value in options.items():
        if budget_file is None and value is not None and value is not False:
            amount_text = "" if value is True else f" {value:g}"
            raise click.UsageError(
                f"--{option_name.replace('_', '-')}{amount_text} has no effect without a ledger; "
                "name its file with --budget-file budget.json."
            )
