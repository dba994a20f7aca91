"""Options of commands that charge a ledger, and the charge itself."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from discreet.cli.files import require_budget_file
from discreet.cli.output import print_note

if TYPE_CHECKING:
    from discreet.privacy.guarantee import Account, Guarantee
    from discreet.privacy.ledger import Composition, LedgerState

__all__ = ["LedgerCharge", "ledger_options"]


def ledger_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add ``--budget-file`` and the options that state the total of a new ledger."""
    options = [
        click.option("--budget-file", help="Ledger of this data, to which the release is charged."),
        click.option("--budget-total", type=float, help="Total epsilon of the ledger, if new."),
        click.option("--budget-total-delta", type=float, help="Total delta of the ledger, if new."),
        click.option(
            "--budget-composition",
            type=click.Choice(["addition", "concentrated"]),
            help="What a new ledger adds up: epsilons and deltas (addition, the default), or rhos "
            "(concentrated), which needs a total delta.",
        ),
    ]
    for option in reversed(options):
        command = option(command)
    return command


@dataclass
class LedgerCharge:
    """Charges one release to the ledger that the command line names, if it names one.

    Parameters
    ----------
    budget_file : str or None
    budget_total, budget_total_delta : float or None
        Of a ledger that is new.
    budget_composition : str or None
        What a new ledger adds up.
    purpose : str
        What is paid for.
    data_source : str
        Whose data.
    void : bool, default False
        Charge a void guarantee as well, and mark the ledger as broken.
    """

    budget_file: str | None
    budget_total: float | None
    budget_total_delta: float | None
    budget_composition: Composition | None
    purpose: str
    data_source: str
    void: bool = False
    state: LedgerState | None = None

    def __post_init__(self) -> None:
        require_budget_file(
            self.budget_file,
            budget_total=self.budget_total,
            budget_total_delta=self.budget_total_delta,
            budget_composition=self.budget_composition,
            void=self.void,
        )
        if self.budget_total is None and self.budget_composition is not None:
            raise click.UsageError("--budget-composition is for a new ledger; give --budget-total.")
        if self.budget_total is None and self.budget_total_delta is not None:
            raise click.UsageError(
                f"--budget-total-delta {self.budget_total_delta:g} is for a new ledger; give "
                "--budget-total as well."
            )

    def __call__(self, guarantee: Guarantee) -> Account | None:
        """Charge a guarantee, or raise; returns the account of the ledger."""
        from discreet.privacy.ledger import Ledger

        if self.budget_file is None:
            return None
        ledger = Ledger(self.budget_file)
        if self.budget_total is not None:
            ledger = Ledger.create(
                self.budget_file,
                self.budget_total,
                self.budget_total_delta or 0.0,
                self.budget_composition,
            )
        self.state = ledger.charge(
            guarantee, self.purpose, data_source=self.data_source, void=self.void
        )
        return self.state.make_account(ledger.path.name)

    def to_body(self) -> dict[str, Any]:
        """Plain values for JSON: what is left; empty without a ledger."""
        if self.state is None:
            return {}
        left_epsilon, left_delta = map(float, self.state.remaining)
        broken_reasons = list(self.state.void_reasons)
        return {
            "budget": {"left": left_epsilon, "left_delta": left_delta, "broken": broken_reasons}
        }

    def print_remaining(self) -> None:
        """Print what is left, and a warning if the ledger is broken."""
        if self.state is None:
            return
        print_note(f"{self.budget_file}: {float(self.state.remaining[0]):g} left")
        for reason in self.state.void_reasons:
            click.echo(
                f"{self.budget_file}: BROKEN: the total no longer limits what was released "
                f"({reason})",
                err=True,
            )
