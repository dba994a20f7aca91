"""``discreet budget``: epsilon and delta spent under every trust model, and what is left."""

from __future__ import annotations

import math
import os
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import click

from discreet.cli.output import console, example, json_option, print_json, table
from discreet.errors import FormatError, about

if TYPE_CHECKING:
    from discreet.ledger import Entry
    from discreet.privacy import Guarantee

__all__ = ["budget", "read_promising"]


@dataclass(frozen=True)
class Account:
    """One ledger or the store of one device: its total, what was spent and what is left."""

    path: str
    kind: str
    total: tuple[float, float]
    left: tuple[Fraction, Fraction]
    entries: tuple[Entry, ...]
    broken: tuple[str, ...] = ()

    @property
    def spent(self) -> tuple[float, float]:
        """Total epsilon and delta of all entries."""
        from discreet.ledger import Spending

        return Spending(*self.total, self.entries).spent

    def lacks(self, step: Guarantee) -> str:
        """Return why a step cannot be paid for; empty if it can."""
        if step.broken:
            return f"its promise is not kept ({'; '.join(step.broken)})"
        exact = Fraction(repr(step.epsilon)), Fraction(repr(step.delta))
        if exact[0] > self.left[0] or exact[1] > self.left[1]:
            return f"{float(self.left[0]):g} is left"
        return ""


@click.command(
    epilog=example(
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
    known = dict.fromkeys(os.path.realpath(path) for path in paths)
    if len(known) < len(paths):
        raise click.UsageError("The same ledger is given twice, and would count twice.")
    accounts = [_account(path) for path in paths]
    planned = _planned(step, epsilon, delta)
    whole = [sum(one.spent[k] for one in accounts) for k in (0, 1)]
    lacking = {} if planned is None else {one.path: one.lacks(planned) for one in accounts}
    if as_json:
        body: dict[str, Any] = {
            "accounts": [_body(one) for one in accounts],
            "spent_in_all": {"epsilon": whole[0], "delta": whole[1]},
            "most_in_one": max(one.spent[0] for one in accounts),
        }
        if planned is not None:
            fits = not any(lacking.values())
            body["step"] = {"epsilon": planned.epsilon, "delta": planned.delta, "fits": fits}
        print_json(body)
    else:
        for account in accounts:
            _print(account)
        _print_sum(accounts, whole)
        if planned is not None:
            _print_step(planned, accounts, lacking, whole)
    if any(lacking.values()):
        click.get_current_context().exit(1)


def _account(path: str) -> Account:
    from discreet.collection.store import FolderStore
    from discreet.ledger import Entry, Ledger

    if not os.path.isdir(path):
        found = Ledger(path).read()
        total = (found.epsilon, found.delta)
        return Account(path, "ledger", total, found.left, found.entries, found.broken)
    with about(path):
        store = FolderStore(path)
        charges = store.charges()
        if store.allowance is None and not charges:
            raise FormatError("nothing was answered from this folder; it is not a device's store")
        entries = tuple(
            Entry(when="", what=f"collection {digest[7:19]}", epsilon=cost)
            for digest, cost in charges.items()
        )
        allowed = store.allowance or 0.0
        finite = [cost for cost in charges.values() if math.isfinite(cost)]
        paid = sum((Fraction(repr(cost)) for cost in finite), Fraction(0))
        left = max(Fraction(repr(float(allowed))) - paid, Fraction(0))
        open_ = [one.what for one in entries if math.isinf(one.epsilon)]
        broken = tuple(f"{what} was answered without protection" for what in open_)
        return Account(path, "device", (allowed, 0.0), (left, Fraction(0)), entries, broken)


def _planned(path: str | None, epsilon: float | None, delta: float | None) -> Guarantee | None:
    from discreet.privacy import Guarantee

    if path is not None and epsilon is not None:
        raise click.UsageError("Give --step or --epsilon, not both.")
    if delta is not None and epsilon is None:
        raise click.UsageError("--delta goes with --epsilon.")
    if epsilon is not None:
        return Guarantee(epsilon, delta or 0.0)
    return None if path is None else read_promising(path).guarantee


def _body(account: Account) -> dict[str, Any]:
    return {
        "path": account.path,
        "kind": account.kind,
        "total": list(account.total),
        "spent": list(account.spent),
        "left": [float(one) for one in account.left],
        "broken": list(account.broken),
        "entries": [one.model_dump() for one in account.entries],
    }


def _print(account: Account) -> None:
    from discreet.privacy import rounded_up

    shown = table(f"{account.path} ({account.kind})", "when", "what", "whose", ">epsilon", ">delta")
    for one in account.entries:
        void = f" NOT KEPT: {'; '.join(one.void)}" if one.void else ""
        cost = rounded_up(one.epsilon), f"{one.delta:g}" if one.delta else ""
        shown.add_row(one.when[:16].replace("T", " "), one.what + void, one.who, *cost)
    console().print(shown)
    total, left = account.total, [float(one) for one in account.left]
    also = f", delta {left[1]:g} of {total[1]:g}" if total[1] else ""
    console().print(
        f"spent {rounded_up(account.spent[0])} of {rounded_up(total[0])}, left {left[0]:g}{also}"
    )
    for reason in account.broken:
        console().print(f"BROKEN: the total no longer limits what was released ({reason})")


def _print_sum(accounts: list[Account], whole: list[float]) -> None:
    from discreet.privacy import rounded_up

    if len(accounts) > 1:
        largest = max(one.spent[0] for one in accounts)
        delta = f" and delta {whole[1]:g}" if whole[1] else ""
        console().print(
            f"A person in all {len(accounts)} has spent at most epsilon "
            f"{rounded_up(whole[0])}{delta}; a person in one, at most {rounded_up(largest)}."
        )
    if len({one.kind for one in accounts}) > 1:
        console().print(
            "Trainings and rounds promise for adding or removing a person, devices for replacing "
            "what one answers: to replace a record in a training costs twice its epsilon."
        )


def _print_step(
    step: Guarantee, accounts: list[Account], lacking: dict[str, str], whole: list[float]
) -> None:
    from discreet.privacy import rounded_up

    after = rounded_up(whole[0] + step.epsilon)
    delta = f" and delta {step.delta:g}" if step.delta else ""
    console().print(
        f"The step costs epsilon {rounded_up(step.epsilon)}{delta}: {after} in all afterwards."
    )
    for one in accounts:
        why = lacking[one.path]
        console().print(f"{one.path}: {'cannot pay for it: ' + why if why else 'can pay for it'}")


def read_promising(path: str) -> Any:
    """Read a document that has a guarantee: a plan, questionnaire, manifest or model."""
    from discreet.collection.protocol import KINDS, collection_of
    from discreet.documents import parse, read_text
    from discreet.model import NaiveBayesModel

    with about(path):
        if path.endswith((".yaml", ".yml")):
            from discreet.survey.questionnaire import Questionnaire

            return Questionnaire.read(path)
        text = read_text(path)
        kind = str(
            parse(text, "plan, questionnaire, manifest or model").get("format")
        ).removeprefix("discreet/")
        if kind in KINDS:
            return collection_of(text)
        if kind == "manifest":
            from discreet.federated.agreement.manifest import Manifest

            return Manifest.from_json(text)
        if kind == "model":
            return NaiveBayesModel.read(path)
        raise FormatError(
            f"its format says {kind!r}; give a plan, a questionnaire, a manifest or a model"
        )
