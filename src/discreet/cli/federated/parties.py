"""``discreet federated provide``, ``label`` and ``receive``: all parties but the collector."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import click

from discreet.cli.federated.confirm import (
    confirm_agreement,
    known_option,
    require_epsilon,
    unprotected_option,
    yes_option,
)
from discreet.cli.federated.files import (
    make_ledger_charge,
    read_cards,
    read_identity,
    read_judged_statistics,
    read_key,
    read_manifest,
    refuse_unless_resumed,
)
from discreet.cli.federated.progress import get_progress_reporter
from discreet.cli.files import make_output, require_budget_file, write_file
from discreet.cli.output import format_example
from discreet.cli.person_options import person_column_options
from discreet.errors import MissingDependencyError

if TYPE_CHECKING:
    from discreet.federated.agreement.identity import Card
    from discreet.federated.agreement.signed import Role
    from discreet.federated.crypto.paillier import PrivateKey
    from discreet.federated.release import Release
    from discreet.federated.service.collector_client import RoundClient
    from discreet.tables.contributions import MissingPerson

__all__ = ["add_party_options", "label", "provide", "receive"]


def add_party_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options that every party has."""
    for option in (
        click.option("--authority", help="CA certificate of the collector's TLS certificate."),
        known_option,
        yes_option,
        click.option(
            "--collector",
            "url",
            required=True,
            help="Address of the collector, such as https://collector.example:8443.",
        ),
        click.option("--identity", required=True, help="Your own identity file."),
    ):
        command = option(command)
    return command


def _add_holder_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options of parties that hold data."""
    for option in (
        unprotected_option,
        click.option(
            "--budget-total", type=float, help="Total epsilon of the ledger, if it is new."
        ),
        click.option("--budget-file", help="Ledger to which this submission is charged."),
        click.option(
            "--id", "id_column", help="Column by which rows are aligned; for vertical rounds."
        ),
        click.option(
            "--state", required=True, help="Folder that keeps what was sent, for a restart."
        ),
    ):
        command = option(command)
    return command


@dataclass(frozen=True)
class _PartyOptions:
    """Options with which a party takes part in a round."""

    manifest: str
    identity: str
    url: str
    authority: str | None
    known: tuple[str, ...]
    yes: bool

    @contextmanager
    def open_connection(
        self, role: Role, private_key: PrivateKey | None = None, *, unprotected: bool = True
    ) -> Iterator[tuple[RoundClient, tuple[Card, ...]]]:
        """Check the role, show the manifest, ask, and connect; nothing is signed yet."""
        try:
            from discreet.federated.service.collector_client import RoundClient
        except ModuleNotFoundError as error:
            raise MissingDependencyError(str(error.name), "federated") from None

        own_identity = read_identity(self.identity)
        manifest = read_manifest(self.manifest)
        known_cards = read_cards(self.known)
        manifest.require_role(own_identity.card, role)
        manifest.require_key(own_identity.card, private_key)
        manifest.require_known_parties(own_identity.card, known_cards)
        require_epsilon(manifest, unprotected)
        confirm_agreement(manifest, own_identity.name, self.yes)
        reporter = get_progress_reporter()
        with RoundClient(
            self.url, own_identity, manifest, authority=self.authority, listener=reporter
        ) as connection:
            yield connection, known_cards


def _send_data(
    role: Literal["provider", "label provider"],
    manifest: str,
    data: str,
    *,
    state: str,
    id_column: str | None,
    budget_file: str | None,
    budget_total: float | None,
    unprotected: bool,
    key: str | None = None,
    person: str | None = None,
    missing_person: MissingPerson = "error",
    **party: Any,
) -> None:
    """Take part as a party that holds data, until the round has ended."""
    require_budget_file(budget_file, budget_total=budget_total)
    private_key = read_key(key)
    party_options = _PartyOptions(manifest, **party)
    with party_options.open_connection(role, private_key, unprotected=unprotected) as (
        connection,
        known_cards,
    ):
        from discreet.federated.service import provider

        charge_round = make_ledger_charge(budget_file, budget_total, connection.agreement)
        provider_input = provider.ProviderInput(
            data, id_column, known_cards, charge_round, person, missing_person
        )
        if role == "provider":
            provider.run_provider(connection, provider_input, state)
        else:
            provider.run_label_provider(connection, provider_input, state, private_key)


@click.command(
    epilog=format_example(
        "discreet federated provide manifest.json people.csv --identity a.identity.json \\",
        "    --collector https://collector.example:8443 --state kept --known b.card.json \\",
        "    --known c.card.json --known r.card.json",
    )
)
@click.argument("manifest")
@click.argument("data")
@person_column_options
@_add_holder_options
@add_party_options
def provide(manifest: str, data: str, **options: Any) -> None:
    """Sign MANIFEST, count DATA, add a share of noise, and send the counts hidden."""
    _send_data("provider", manifest, data, **options)
    get_progress_reporter().say("the collector has everything; this provider is done")


@click.command(
    epilog=format_example(
        "discreet federated label manifest.json labels.csv --identity l.identity.json \\",
        "    --key l.paillier.json --id patient --collector https://collector.example:8443 \\",
        "    --state kept",
    )
)
@click.argument("manifest")
@click.argument("data")
@click.option("--key", help="The Paillier key that the manifest names; masks need none.")
@_add_holder_options
@add_party_options
def label(manifest: str, data: str, **options: Any) -> None:
    """Sign MANIFEST and send the classes in DATA, hidden, to the providers of a vertical round."""
    _send_data("label provider", manifest, data, **options)
    get_progress_reporter().say("the collector has everything; the label provider is done")


@click.command(
    epilog=format_example(
        "discreet federated receive manifest.json --identity r.identity.json \\",
        "    --collector https://collector.example:8443 -o model.json",
    )
)
@click.argument("manifest")
@click.option(
    "--key",
    help="The receiver's Paillier key; needed for horizontal Paillier rounds in mode counts.",
)
@click.option(
    "--statistics",
    type=make_output("statistics", resumable=True),
    help="Also write the noisy totals; only in mode counts.",
)
@click.option(
    "--judged",
    help="The statistics of the first round; needed where candidate models are judged.",
)
@click.option(
    "-o",
    "--output",
    type=make_output("model", resumable=True),
    required=True,
    help="The model file to write.",
)
@click.option("--state", help="Folder that keeps the key of the round.  [default: IDENTITY.state]")
@add_party_options
def receive(
    manifest: str,
    state: str | None,
    key: str | None,
    statistics: str | None,
    judged: str | None,
    output: str,
    **party: Any,
) -> None:
    """Sign MANIFEST, wait for the result, open it and write the model."""
    party_options = _PartyOptions(manifest, **party)
    state_folder = state or f"{party_options.identity}.state"
    for path in (output, statistics):
        refuse_unless_resumed(path, state_folder)
    private_key = read_key(key)
    judged_statistics = read_judged_statistics(judged, manifest)
    with party_options.open_connection("receiver", private_key) as (connection, known_cards):
        from discreet.federated.service import receiver

        def write_release(release: Release) -> None:
            write_file(output, release.model.to_json())
            if statistics is not None and release.statistics is not None:
                write_file(statistics, release.statistics.to_json())

        release = receiver.run_receiver(
            connection,
            state_folder,
            write_release,
            private_key,
            known_cards,
            judged_statistics,
        )
    for feature_name in release.inconsistent:  # also with --quiet
        warning = "its totals contradict the others'; a provider may be dishonest"
        click.echo(f"{feature_name}: {warning}", err=True)
    get_progress_reporter().say(str(release.model.guarantee))
