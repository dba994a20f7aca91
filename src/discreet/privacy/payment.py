"""Which entry of a ledger paid for a guarantee."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from discreet.errors import FormatError
from discreet.privacy.guarantee import Guarantee, format_rounded_up
from discreet.privacy.ledger import LedgerEntry, LedgerState

__all__ = ["LedgerPayment", "find_payment"]


@dataclass(frozen=True)
class LedgerPayment:
    """What a ledger says about a model: its entry, and the state of the account.

    Parameters
    ----------
    entry : LedgerEntry
    state : LedgerState
        As the ledger is now, with later entries.
    is_named : bool
        Whether the model names the ledger; otherwise its cost was the only one that fits.
    """

    entry: LedgerEntry
    state: LedgerState
    is_named: bool

    def to_body(self) -> dict[str, Any]:
        """Plain values for JSON, without whose data it was."""
        return {
            "when": self.entry.when,
            "what": self.entry.what,
            "epsilon": self.entry.epsilon,
            "delta": self.entry.delta,
            "named_by_model": self.is_named,
            "releases": len(self.state.entries),
            "spent": list(self.state.spent),
            "total": [self.state.epsilon, self.state.delta],
            "left": [float(amount) for amount in self.state.remaining],
            "broken": list(self.state.void_reasons),
        }


def find_payment(guarantee: Guarantee, state: LedgerState) -> LedgerPayment:
    """Find the entry of a ledger by which a guarantee was paid for.

    A model that was trained with a ledger says how much had been spent by then, and in how many
    releases: its entry is the last of those. A central model that does not was charged to none. For
    other models, whose parties have ledgers of their own, it is the only entry of their cost.

    Parameters
    ----------
    guarantee : Guarantee
    state : LedgerState

    Raises
    ------
    FormatError
        If the ledger is not the one from which it was paid.
    """
    account = guarantee.account
    if account is not None:
        entries = state.entries[: account.releases]
        state_then = LedgerState(state.epsilon, state.delta, entries, state.composition)
        is_same = (
            len(entries) == account.releases
            and state_then.make_account(account.where) == account
            and entries[-1].epsilon <= guarantee.epsilon
        )
        if is_same:
            return LedgerPayment(entries[-1], state, is_named=True)
        raise FormatError(
            "this is not the ledger that the model was paid from: its entries are not those that "
            f"the model names ({account}); give that ledger"
        )
    if guarantee.trust == "central":
        raise FormatError(
            "the model names no ledger, so it was not charged to this one; leave the ledger out, "
            "and train with --budget-file (budget=) where a ledger is kept"
        )
    costs = (guarantee.epsilon, guarantee.delta)
    entries = tuple(entry for entry in state.entries if (entry.epsilon, entry.delta) == costs)
    if len(entries) != 1:
        raise FormatError(
            f"{len(entries) or 'none'} of its {len(state.entries)} entries cost"
            f"{'s' * (not entries)} epsilon {format_rounded_up(guarantee.epsilon)}, and the model "
            "does not say which one paid for it; leave the ledger out"
        )
    return LedgerPayment(entries[0], state, is_named=False)
