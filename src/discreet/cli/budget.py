"""``discreet budget``: epsilon and delta spent under every trust model, and what is left."""

from __future__ import annotations

import os
from collections.abc import Collection
from typing import TYPE_CHECKING, Any

import click

from discreet.cli.output import format_example, json_option, make_console, make_table, print_json
from discreet.errors import FormatError
from discreet.files.atomic_writing import error_context

if TYPE_CHECKING:
    from discreet.privacy.guarantee import Guarantee
    from discreet.privacy.ledger import LedgerState

__all__ = ["budget", "read_guaranteed_document"]


@click.command(
    epilog=format_example(
        "discreet budget clinic.budget.json",
        "discreet budget clinic.budget.json ~/.discreet/kept --step plan.json",
        "discreet budget *.budget.json --epsilon 0.5 --json",
    )
)
@click.argument("paths", nargs=-1, required=True, metavar="LEDGER...")
@click.option(
    "--step", help="Planned step, as the file of a plan, questionnaire, manifest or model."
)
@click.option("--epsilon", type=float, help="Planned step, given by its epsilon alone.")
@click.option("--delta", type=float, help="Delta of the step, with --epsilon.")
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
    states = {path: _read_state(path) for path in paths}
    planned_step = _resolve_step(step, epsilon, delta)
    amounts_spent = [state.spent for state in states.values()]
    total_spent = [sum(amounts) for amounts in zip(*amounts_spent, strict=True)]
    largest_spent = max(epsilon_spent for epsilon_spent, _ in amounts_spent)
    refusal_by_path = (
        {}
        if planned_step is None
        else {path: state.explain_refusal(planned_step) for path, state in states.items()}
    )
    if as_json:
        summary: dict[str, Any] = {
            "accounts": [_make_account_body(path, state) for path, state in states.items()],
            "spent_in_all": {"epsilon": total_spent[0], "delta": total_spent[1]},
            "most_in_one": largest_spent,
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
        for path, state in states.items():
            _print_account(path, state)
        _print_sum(states.values(), total_spent, largest_spent)
        if planned_step is not None:
            _print_step(planned_step, refusal_by_path, total_spent[0])
    if any(refusal_by_path.values()):
        click.get_current_context().exit(1)


def _read_state(path: str) -> LedgerState:
    from discreet.collection.store import FolderStore
    from discreet.privacy.ledger import DeviceState, Ledger

    if not os.path.isdir(path):
        return Ledger(path).read()
    with error_context(path):
        store = FolderStore(path)
        charges_by_digest = store.read_charges()
        if store.allowance is None and not charges_by_digest:
            raise FormatError("nothing was answered from this folder; it is not a device's store")
        return DeviceState.from_charges(store.allowance or 0.0, charges_by_digest)


def _resolve_step(path: str | None, epsilon: float | None, delta: float | None) -> Guarantee | None:
    from discreet.privacy.guarantee import Guarantee

    if path is not None and epsilon is not None:
        raise click.UsageError("Give --step or --epsilon, not both.")
    if delta is not None and epsilon is None:
        raise click.UsageError("--delta goes with --epsilon.")
    if epsilon is not None:
        return Guarantee(epsilon, delta or 0.0)
    return None if path is None else read_guaranteed_document(path).guarantee


def _make_account_body(path: str, state: LedgerState) -> dict[str, Any]:
    return {
        "path": path,
        "kind": state.kind,
        "total": [state.epsilon, state.delta],
        "spent": list(state.spent),
        "left": [float(amount) for amount in state.remaining],
        "composition": state.composition,
        "added_up": list(state.added_up),
        "broken": list(state.void_reasons),
        "entries": [entry.model_dump() for entry in state.entries],
    }


def _print_account(path: str, state: LedgerState) -> None:
    from discreet.privacy.guarantee import format_rounded_up

    entry_table = make_table(
        f"{path} ({state.kind})", "when", "what", "whose", ">epsilon", ">delta"
    )
    for entry in state.entries:
        void_note = f" NOT KEPT: {'; '.join(entry.void)}" if entry.void else ""
        cost_cells = format_rounded_up(entry.epsilon), f"{entry.delta:g}" if entry.delta else ""
        entry_table.add_row(
            entry.when[:16].replace("T", " "), entry.what + void_note, entry.who, *cost_cells
        )
    make_console().print(entry_table)
    amount_left, left_delta = map(float, state.remaining)
    delta_note = f", delta {left_delta:g} of {state.delta:g}" if state.delta else ""
    make_console().print(
        f"spent {format_rounded_up(state.spent[0])} of {format_rounded_up(state.epsilon)}, "
        f"left {amount_left:g}{delta_note}"
    )
    if state.composition == "concentrated":
        epsilon_sum, delta_sum = map(format_rounded_up, state.added_up)
        make_console().print(
            f"this ledger adds up rhos; by addition it would be epsilon {epsilon_sum} and delta "
            f"{delta_sum}"
        )
    for reason in state.void_reasons:
        make_console().print(f"BROKEN: the total no longer limits what was released ({reason})")


def _print_sum(
    states: Collection[LedgerState], total_spent: list[float], largest_spent: float
) -> None:
    from discreet.privacy.guarantee import format_rounded_up

    if len(states) > 1:
        delta_note = f" and delta {total_spent[1]:g}" if total_spent[1] else ""
        make_console().print(
            f"A person in all {len(states)} has spent at most epsilon "
            f"{format_rounded_up(total_spent[0])}{delta_note}; a person in one, at most "
            f"{format_rounded_up(largest_spent)}."
        )
    if len({state.kind for state in states}) > 1:
        make_console().print(
            "The epsilon of a training or a round is for adding or removing a person, that of a "
            "device for replacing a person's answers. Replacing a record in a training costs twice "
            "its epsilon."
        )


def _print_step(step: Guarantee, refusal_by_path: dict[str, str], spent_epsilon: float) -> None:
    from discreet.privacy.guarantee import format_rounded_up

    total_after = format_rounded_up(spent_epsilon + step.epsilon)
    delta_note = f" and delta {step.delta:g}" if step.delta else ""
    make_console().print(
        f"The step costs epsilon {format_rounded_up(step.epsilon)}{delta_note}: {total_after} in "
        "all afterwards."
    )
    for path, refusal in refusal_by_path.items():
        make_console().print(
            f"{path}: {'cannot pay for it: ' + refusal if refusal else 'can pay for it'}"
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
