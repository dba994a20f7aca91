"""``discreet federated provide``, ``label`` and ``receive``: all parties but the collector."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from discreet.cli.federated.confirm import (
    confirm,
    known_option,
    require_epsilon,
    unprotected_option,
    yes_option,
)
from discreet.cli.federated.files import (
    ledger_of,
    read_cards,
    read_identity,
    read_key,
    read_manifest,
    refuse_unless_resumed,
)
from discreet.cli.federated.telling import current
from discreet.cli.files import output_of, write
from discreet.cli.ledgers import require_budget_file
from discreet.cli.output import example
from discreet.errors import MissingDependencyError

if TYPE_CHECKING:
    from discreet.federated.agreement.identity import Card
    from discreet.federated.agreement.signed import Role
    from discreet.federated.crypto.paillier import PrivateKey
    from discreet.federated.release import Release
    from discreet.federated.service.connection import Connection

__all__ = ["label", "party", "provide", "receive"]


def party(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options that every party has."""
    for option in (
        click.option("--authority", help="CA certificate of the collector's TLS certificate."),
        known_option,
        yes_option,
        click.option("--collector", "url", required=True, help="The collector's address."),
        click.option("--identity", required=True, help="Your own identity file."),
    ):
        command = option(command)
    return command


def _holder(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options of parties that hold data."""
    for option in (
        unprotected_option,
        click.option(
            "--budget-total", type=float, help="Total epsilon with which to make a new ledger."
        ),
        click.option("--budget-file", help="A ledger that this submission is charged to."),
        click.option("--id", "id_column", help="The column that rows are aligned by; vertical."),
        click.option("--state", required=True, help="A folder for what was sent."),
    ):
        command = option(command)
    return command


@dataclass(frozen=True)
class _Part:
    """Options with which a party takes part in a round."""

    manifest: str
    identity: str
    url: str
    authority: str | None
    known: tuple[str, ...]
    yes: bool

    @contextmanager
    def begun(
        self, role: Role, key: PrivateKey | None = None, *, unprotected: bool = True
    ) -> Iterator[tuple[Connection, tuple[Card, ...]]]:
        """Check the role, show the manifest, ask, and connect; nothing is signed yet."""
        try:
            from discreet.federated.service.connection import Connection
        except ModuleNotFoundError as error:
            raise MissingDependencyError(str(error.name), "federated") from None

        own, agreed = read_identity(self.identity), read_manifest(self.manifest)
        cards = read_cards(self.known)
        agreed.require_part(own.card, role)
        agreed.require_key(own.card, key)
        agreed.require_known(own.card, cards)
        require_epsilon(agreed, unprotected)
        confirm(agreed, own.name, self.yes)
        tell, authority = current(), self.authority
        with Connection(self.url, own, agreed, authority=authority, tell=tell) as connection:
            yield connection, cards


@click.command(
    epilog=example(
        "discreet federated provide manifest.json people.csv --identity a.identity.json \\",
        "    --collector https://collector.example:8443 --state kept --known b.card.json \\",
        "    --known c.card.json --known r.card.json",
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
    yes: bool,
    state: str,
    id_column: str | None,
    budget_file: str | None,
    budget_total: float | None,
    unprotected: bool,
) -> None:
    """Sign MANIFEST, count DATA, add a share of noise, and send the counts hidden."""
    require_budget_file(budget_file, budget_total=budget_total)
    part = _Part(manifest, identity, url, authority, known, yes)
    with part.begun("provider", unprotected=unprotected) as (connection, cards):
        from discreet.federated.service import provider

        charge = ledger_of(budget_file, budget_total, connection.manifest)
        provider.provide(connection, provider.Holding(data, id_column, cards, charge), state)
    current().say("the collector has everything; this provider is done")


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
    yes: bool,
    state: str,
    id_column: str | None,
    budget_file: str | None,
    budget_total: float | None,
    unprotected: bool,
) -> None:
    """Sign MANIFEST and send the classes in DATA, hidden, to the providers of a vertical round."""
    require_budget_file(budget_file, budget_total=budget_total)
    part, secret = _Part(manifest, identity, url, authority, known, yes), read_key(key)
    with part.begun("label provider", secret, unprotected=unprotected) as (connection, cards):
        from discreet.federated.service import provider

        charge = ledger_of(budget_file, budget_total, connection.manifest)
        provider.label(connection, provider.Holding(data, id_column, cards, charge), state, secret)
    current().say("the collector has everything; the label provider is done")


@click.command(
    epilog=example(
        "discreet federated receive manifest.json --identity r.identity.json \\",
        "    --collector https://collector.example:8443 -o model.json",
    )
)
@click.argument("manifest")
@click.option("--key", help="A Paillier key, in mode counts of a horizontal round.")
@click.option(
    "--statistics",
    type=output_of("statistics", resumable=True),
    help="Also write the noised totals; mode counts.",
)
@click.option(
    "-o",
    "--output",
    type=output_of("model", resumable=True),
    required=True,
    help="The model file to write.",
)
@click.option("--state", help="A folder for the key of the round.  [default: IDENTITY.state]")
@party
def receive(
    manifest: str,
    state: str | None,
    identity: str,
    url: str,
    known: tuple[str, ...],
    authority: str | None,
    yes: bool,
    key: str | None,
    statistics: str | None,
    output: str,
) -> None:
    """Sign MANIFEST, wait for the result, open it and write the model."""
    folder = state or f"{identity}.state"
    for path in (output, statistics):
        refuse_unless_resumed(path, folder)
    part, secret = _Part(manifest, identity, url, authority, known, yes), read_key(key)
    with part.begun("receiver", secret) as (connection, cards):
        from discreet.federated.service import receiver

        def keep(release: Release) -> None:
            write(output, release.model.to_json())
            if statistics is not None and release.statistics is not None:
                write(statistics, release.statistics.to_json())

        release = receiver.receive(connection, folder, keep, secret, cards)
    for name in release.inconsistent:  # also with --quiet
        line = f"{name}: its totals contradict the others'; a provider may not be honest"
        click.echo(line, err=True)
    current().say(str(release.model.guarantee))
