"""``discreet federated provide``, ``label`` and ``receive``: the parties that hold something."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

from discreet.cli.federated.files import (
    ledger_of,
    read_cards,
    read_identity,
    read_key,
    read_manifest,
)
from discreet.cli.files import OUTPUT, write
from discreet.cli.output import console, example
from discreet.errors import MissingDependencyError

if TYPE_CHECKING:
    from discreet.federated.release import Release
    from discreet.federated.service.connection import Connection

__all__ = ["label", "party", "provide", "receive"]


def party(command: Callable[..., Any]) -> Callable[..., Any]:
    """Options that every party has."""
    for option in (
        click.option("--authority", help="For TLS: the certificate that the collector's is under."),
        click.option("--known", multiple=True, help="A card whose fingerprint you have checked."),
        click.option("--collector", "url", required=True, help="The collector's address."),
        click.option("--identity", required=True, help="One's own identity file."),
    ):
        command = option(command)
    return command


def _holder(command: Callable[..., Any]) -> Callable[..., Any]:
    """Options of those who hold data."""
    for option in (
        click.option(
            "--budget-total", type=float, help="Total epsilon with which to make a new ledger."
        ),
        click.option("--budget-file", help="A ledger that this submission is charged to."),
        click.option("--id", "id_column", help="The column that rows are aligned by; vertical."),
        click.option("--state", required=True, help="A folder for what was sent."),
    ):
        command = option(command)
    return command


def _connected(url: str, identity: str, manifest: str, authority: str | None) -> Connection:
    try:
        from discreet.federated.service.connection import Connection
    except ModuleNotFoundError as error:
        raise MissingDependencyError(str(error.name), "federated") from None

    def say(line: str) -> None:
        print(line, file=sys.stderr, flush=True)

    own, agreed = read_identity(identity), read_manifest(manifest)
    return Connection(url, own, agreed, authority=authority, say=say)


@click.command(
    epilog=example(
        "discreet federated provide manifest.json people.csv --identity a.identity.json \\",
        "    --collector https://collector.example:8443 --state kept",
    )
)
@click.argument("manifest")
@click.argument("data")
@_holder
@party
def provide(
    manifest: str,
    data: str,
    identity: str,
    url: str,
    known: tuple[str, ...],
    authority: str | None,
    state: str,
    id_column: str | None,
    budget_file: str | None,
    budget_total: float | None,
) -> None:
    """Sign MANIFEST, count DATA, add a share of noise, and send the counts hidden."""
    with _connected(url, identity, manifest, authority) as connection:
        from discreet.federated.service import provider

        charge, cards = ledger_of(budget_file, budget_total), read_cards(known)
        provider.provide(connection, data, state, id_column=id_column, known=cards, charge=charge)
    console(stderr=True).print("the collector has everything; this provider is done")


@click.command(
    epilog=example(
        "discreet federated label manifest.json labels.csv --identity l.identity.json \\",
        "    --key l.paillier.json --id patient --collector https://collector.example:8443 \\",
        "    --state kept",
    )
)
@click.argument("manifest")
@click.argument("data")
@click.option("--key", help="The Paillier key that the manifest names; masks need none.")
@_holder
@party
def label(
    manifest: str,
    data: str,
    key: str | None,
    identity: str,
    url: str,
    known: tuple[str, ...],
    authority: str | None,
    state: str,
    id_column: str | None,
    budget_file: str | None,
    budget_total: float | None,
) -> None:
    """Sign MANIFEST and send the classes in DATA, hidden, to the providers of a vertical round."""
    with _connected(url, identity, manifest, authority) as connection:
        from discreet.federated.service import provider

        secret, charge, cards = (
            read_key(key),
            ledger_of(budget_file, budget_total),
            read_cards(known),
        )
        provider.label(
            connection, data, state, secret, id_column=id_column, known=cards, charge=charge
        )
    console(stderr=True).print("the collector has everything; the label provider is done")


@click.command(
    epilog=example(
        "discreet federated receive manifest.json --identity r.identity.json \\",
        "    --collector https://collector.example:8443 -o model.json",
    )
)
@click.argument("manifest")
@click.option("--key", help="A Paillier key, in mode counts of a horizontal round.")
@click.option("--statistics", type=OUTPUT, help="Also write the noised totals; mode counts.")
@click.option("-o", "--output", type=OUTPUT, required=True, help="The model file to write.")
@click.option("--state", help="A folder for the key of the round.  [default: IDENTITY.state]")
@party
def receive(
    manifest: str,
    state: str | None,
    identity: str,
    url: str,
    known: tuple[str, ...],
    authority: str | None,
    key: str | None,
    statistics: str | None,
    output: str,
) -> None:
    """Sign MANIFEST, wait for the result, open it and write the model."""
    with _connected(url, identity, manifest, authority) as connection:
        from discreet.federated.service import receiver

        def keep(release: Release) -> None:
            write(output, release.model.to_json())
            if statistics is not None and release.statistics is not None:
                write(statistics, release.statistics.to_json())

        folder = state or f"{identity}.state"
        release = receiver.receive(connection, folder, keep, read_key(key), read_cards(known))
    printer = console(stderr=True)
    for name in release.inconsistent:
        printer.print(f"{name}: its totals contradict the others'; a provider may not be honest")
    printer.print(str(release.model.guarantee), soft_wrap=True)
