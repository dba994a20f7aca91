"""``discreet budget``: epsilon and delta spent under every trust model, and what is left."""

from __future__ import annotations

import math
import os
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import click

from discreet.cli.output import format_example, json_option, make_console, make_table, print_json
from discreet.errors import FormatError, error_context

if TYPE_CHECKING:
    from discreet.privacy.guarantee import Guarantee
    from discreet.privacy.ledger import LedgerEntry

__all__ = ["budget", "read_guaranteed_document"]


@dataclass(frozen=True)
class BudgetAccount:
    """One ledger or the store of one device: its total, what was spent and what is left."""

    path: str
    kind: str
    total: tuple[float, float]
    left: tuple[Fraction, Fraction]
    entries: tuple[LedgerEntry, ...]
    broken_reasons: tuple[str, ...] = ()

    @property
    def spent(self) -> tuple[float, float]:
        """Total epsilon and delta of all entries."""
        from discreet.privacy.ledger import LedgerState

        return LedgerState(*self.total, self.entries).spent

    def explain_refusal(self, step_guarantee: Guarantee) -> str:
        """Return why a step cannot be paid for; empty if it can."""
        if step_guarantee.void_reasons:
            return f"its promise is not kept ({'; '.join(step_guarantee.void_reasons)})"
        exact_cost = Fraction(repr(step_guarantee.epsilon)), Fraction(repr(step_guarantee.delta))
        if exact_cost[0] > self.left[0] or exact_cost[1] > self.left[1]:
            return f"{float(self.left[0]):g} is left"
        return ""


@click.command(
    epilog=format_example(
        "discreet budget clinic.budget.json",
        "discreet budget clinic.budget.json ~/.discreet/kept --step plan.json",
        "discreet budget *.budget.json --epsilon 0.5 --json",
    )
)
@click.argument("paths", nargs=-1, required=True, metavar="LEDGER...")
@click.option("--step", help="A plan, questionnaire, manifest or model: what would it cost?")
@click.option("--epsilon", type=float, help="A planned step by its epsilon alone.")
@click.option("--delta", type=float, help="And its delta.")
@json_option
def budget(
    paths: tuple[str, ...],
    step: str | None,
    epsilon: float | None,
    delta: float | None,
    as_json: bool,
) -> None:
    """Show what LEDGERs say was spent, what is left, and what a planned step would cost.

    A LEDGER is the file of --budget-file (discreet train, discreet federated) or the folder in
    which a device keeps its reports (discreet local, discreet survey). A person in all of them
    has spent the sum; a person in one of them at most the largest. With a planned step the exit
    code is 1 if any of them cannot pay for it.
    """
    real_paths = dict.fromkeys(os.path.realpath(path) for path in paths)
    if len(real_paths) < len(paths):
        raise click.UsageError("The same ledger is given twice, and would count twice.")
    accounts = [_read_account(path) for path in paths]
    planned_step = _resolve_step(step, epsilon, delta)
    total_spent = [sum(account.spent[component] for account in accounts) for component in (0, 1)]
    refusal_by_path = (
        {}
        if planned_step is None
        else {account.path: account.explain_refusal(planned_step) for account in accounts}
    )
    if as_json:
        summary: dict[str, Any] = {
            "accounts": [_make_account_body(account) for account in accounts],
            "spent_in_all": {"epsilon": total_spent[0], "delta": total_spent[1]},
            "most_in_one": max(account.spent[0] for account in accounts),
        }
        if planned_step is not None:
            is_payable = not any(refusal_by_path.values())
            summary["step"] = {
                "epsilon": planned_step.epsilon,
                "delta": planned_step.delta,
                "fits": is_payable,
            }
        print_json(summary)
    else:
        for account in accounts:
            _print_account(account)
        _print_sum(accounts, total_spent)
        if planned_step is not None:
            _print_step(planned_step, accounts, refusal_by_path, total_spent)
    if any(refusal_by_path.values()):
        click.get_current_context().exit(1)


def _read_account(path: str) -> BudgetAccount:
    from discreet.collection.store import FolderStore
    from discreet.privacy.ledger import Ledger, LedgerEntry

    if not os.path.isdir(path):
        ledger_state = Ledger(path).read()
        total_budget = (ledger_state.epsilon, ledger_state.delta)
        return BudgetAccount(
            path,
            "ledger",
            total_budget,
            ledger_state.remaining,
            ledger_state.entries,
            ledger_state.void_reasons,
        )
    with error_context(path):
        store = FolderStore(path)
        charges_by_digest = store.read_charges()
        if store.allowance is None and not charges_by_digest:
            raise FormatError("nothing was answered from this folder; it is not a device's store")
        entries = tuple(
            LedgerEntry(when="", what=f"collection {collection_digest[7:19]}", epsilon=cost)
            for collection_digest, cost in charges_by_digest.items()
        )
        allowed_epsilon = store.allowance or 0.0
        finite_costs = [cost for cost in charges_by_digest.values() if math.isfinite(cost)]
        paid_epsilon = sum((Fraction(repr(cost)) for cost in finite_costs), Fraction(0))
        left_epsilon = max(Fraction(repr(float(allowed_epsilon))) - paid_epsilon, Fraction(0))
        unprotected_names = [entry.what for entry in entries if math.isinf(entry.epsilon)]
        broken_reasons = tuple(
            f"{collection_name} was answered without protection"
            for collection_name in unprotected_names
        )
        return BudgetAccount(
            path,
            "device",
            (allowed_epsilon, 0.0),
            (left_epsilon, Fraction(0)),
            entries,
            broken_reasons,
        )


def _resolve_step(path: str | None, epsilon: float | None, delta: float | None) -> Guarantee | None:
    from discreet.privacy.guarantee import Guarantee

    if path is not None and epsilon is not None:
        raise click.UsageError("Give --step or --epsilon, not both.")
    if delta is not None and epsilon is None:
        raise click.UsageError("--delta goes with --epsilon.")
    if epsilon is not None:
        return Guarantee(epsilon, delta or 0.0)
    return None if path is None else read_guaranteed_document(path).guarantee


def _make_account_body(account: BudgetAccount) -> dict[str, Any]:
    return {
        "path": account.path,
        "kind": account.kind,
        "total": list(account.total),
        "spent": list(account.spent),
        "left": [float(amount) for amount in account.left],
        "broken": list(account.broken_reasons),
        "entries": [entry.model_dump() for entry in account.entries],
    }


def _print_account(account: BudgetAccount) -> None:
    from discreet.privacy.guarantee import format_rounded_up

    entry_table = make_table(
        f"{account.path} ({account.kind})", "when", "what", "whose", ">epsilon", ">delta"
    )
    for entry in account.entries:
        void_note = f" NOT KEPT: {'; '.join(entry.void)}" if entry.void else ""
        cost_cells = format_rounded_up(entry.epsilon), f"{entry.delta:g}" if entry.delta else ""
        entry_table.add_row(
            entry.when[:16].replace("T", " "), entry.what + void_note, entry.who, *cost_cells
        )
    make_console().print(entry_table)
    total_budget, left_budget = account.total, [float(amount) for amount in account.left]
    delta_note = f", delta {left_budget[1]:g} of {total_budget[1]:g}" if total_budget[1] else ""
    make_console().print(
        f"spent {format_rounded_up(account.spent[0])} of {format_rounded_up(total_budget[0])}, "
        f"left {left_budget[0]:g}{delta_note}"
    )
    for reason in account.broken_reasons:
        make_console().print(f"BROKEN: the total no longer limits what was released ({reason})")


def _print_sum(accounts: list[BudgetAccount], total_spent: list[float]) -> None:
    from discreet.privacy.guarantee import format_rounded_up

    if len(accounts) > 1:
        largest_spent = max(account.spent[0] for account in accounts)
        delta_note = f" and delta {total_spent[1]:g}" if total_spent[1] else ""
        make_console().print(
            f"A person in all {len(accounts)} has spent at most epsilon "
            f"{format_rounded_up(total_spent[0])}{delta_note}; a person in one, at most "
            f"{format_rounded_up(largest_spent)}."
        )
    if len({account.kind for account in accounts}) > 1:
        make_console().print(
            "Trainings and rounds promise for adding or removing a person, devices for replacing "
            "what one answers: to replace a record in a training costs twice its epsilon."
        )


def _print_step(
    step: Guarantee,
    accounts: list[BudgetAccount],
    refusal_by_path: dict[str, str],
    total_spent: list[float],
) -> None:
    from discreet.privacy.guarantee import format_rounded_up

    total_after = format_rounded_up(total_spent[0] + step.epsilon)
    delta_note = f" and delta {step.delta:g}" if step.delta else ""
    make_console().print(
        f"The step costs epsilon {format_rounded_up(step.epsilon)}{delta_note}: {total_after} in "
        "all afterwards."
    )
    for account in accounts:
        refusal = refusal_by_path[account.path]
        make_console().print(
            f"{account.path}: {'cannot pay for it: ' + refusal if refusal else 'can pay for it'}"
        )


def read_guaranteed_document(path: str) -> Any:
    """Read a document that has a guarantee: a plan, questionnaire, manifest or model."""
    from discreet.collection.protocol import DOCUMENT_CLASSES, parse_collection_json
    from discreet.files.atomic_writing import read_text
    from discreet.files.documents import parse_document
    from discreet.model import NaiveBayesModel

    with error_context(path):
        if path.endswith((".yaml", ".yml")):
            from discreet.survey.questionnaire import Questionnaire

            return Questionnaire.read(path)
        text = read_text(path)
        document_kind = str(
            parse_document(text, "plan, questionnaire, manifest or model").get("format")
        ).removeprefix("discreet/")
        if document_kind in DOCUMENT_CLASSES:
            return parse_collection_json(text)
        if document_kind == "manifest":
            from discreet.federated.agreement.manifest import Manifest

            return Manifest.from_json(text)
        if document_kind == "model":
            return NaiveBayesModel.read(path)
        raise FormatError(
            f"its format says {document_kind!r}; give a plan, a questionnaire, a manifest or a "
            "model"
        )
