"""``discreet federated collect``: the collector, a server that can be killed and restarted."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

from discreet.cli.federated.confirm import confirm_agreement, known_option, yes_option
from discreet.cli.federated.files import read_agreement, read_cards, read_identity, read_key
from discreet.cli.federated.progress import get_progress_reporter
from discreet.cli.output import format_example
from discreet.errors import DiscreetError, MissingDependencyError

if TYPE_CHECKING:
    from discreet.federated.service.collector_session import CollectorSession

__all__ = ["collect"]

ABANDONED_GRACE_SECONDS = 3.0
"""Seconds for which the status of an abandoned round is still served."""
FINISHED_LINGER_SECONDS = 60.0
"""Seconds for which a slow party can still learn that the round is finished."""


@click.command(
    epilog=format_example(
        "discreet federated collect manifest.json --identity c.identity.json --state kept",
        "discreet federated collect invitation.json --identity c.identity.json --state kept",
    )
)
@click.argument("manifest")
@click.option("--identity", required=True, help="The collector's own identity file.")
@click.option("--state", required=True, help="Folder that keeps what was received, for a restart.")
@click.option(
    "--key", help="The collector's Paillier key; needed for Paillier rounds in mode probabilities."
)
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=8443,
    show_default=True,
    help="Port to listen on.",
)
@click.option("--certificate", help="TLS certificate (PEM file).")
@click.option("--certificate-key", help="Private key of the TLS certificate (PEM file).")
@known_option
@yes_option
def collect(
    manifest: str,
    identity: str,
    state: str,
    key: str | None,
    host: str,
    port: int,
    certificate: str | None,
    certificate_key: str | None,
    known: tuple[str, ...],
    yes: bool,
) -> None:
    """Take signatures and submissions of the round in MANIFEST until the receiver has the result.

    MANIFEST may also be an invitation; then blinded lists of ids are carried and matched. If it is
    stopped and started again with the same --state, it continues where it was.
    """
    try:
        from discreet.federated.agreement.invitation import Invitation
        from discreet.federated.alignment.collector_session import AlignmentSession
        from discreet.federated.messages import CHUNK_BYTES
        from discreet.federated.service.server import RoundSession, create_application
        from discreet.federated.service.state_folder import StateFolder
        from discreet.hosting.serving import (
            RequestLimits,
            make_tls_options,
            make_web_server,
            raise_file_limit,
        )
    except ModuleNotFoundError as error:
        raise MissingDependencyError(str(error.name), "federated") from None

    own_identity = read_identity(identity)
    agreement = read_agreement(manifest)
    private_key = read_key(key)
    tls_settings = make_tls_options(certificate, certificate_key)
    agreement.require_role(own_identity.card, "collector")
    if not isinstance(agreement, Invitation):
        agreement.require_key(own_identity.card, private_key)
    agreement.require_known_parties(own_identity.card, read_cards(known))
    confirm_agreement(agreement, own_identity.name, yes)
    _require_free_address(host, port)
    # lock the folder before reading it: two collectors on one folder would make two results
    reporter = get_progress_reporter()
    with StateFolder(state, agreement).lock_folder():
        collector_session: CollectorSession[Any]
        if isinstance(agreement, Invitation):
            collector_session = AlignmentSession(own_identity, agreement, state)
        else:
            collector_session = RoundSession(
                own_identity, agreement, state, private_key, reporter.show
            )
        server_limits = RequestLimits(
            max_counted_bytes=CHUNK_BYTES, max_connections=min(512, raise_file_limit() // 2)
        )
        server = make_web_server(
            create_application(collector_session),
            server_limits,
            host=host,
            port=port,
            backlog=256,
            **tls_settings,
        )
        watch_thread = threading.Thread(
            target=_watch_round, args=(collector_session, server, reporter.say), daemon=True
        )
        watch_thread.start()
        server.run()
        if collector_session.is_result_confirmed or collector_session.is_over:
            collector_session.folder.finish_round(own_identity)
    if not collector_session.is_result_confirmed:
        raise DiscreetError(collector_session.format_status_line())


def _require_free_address(host: str, port: int) -> None:
    """Refuse an address that cannot be listened on, before anything is signed."""
    import socket

    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        with socket.socket(family) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind((host, port))
    except OSError as error:
        raise DiscreetError(
            f"the collector cannot listen on {host} port {port} ({error.strerror}); stop what "
            "listens there, or choose another --host or --port and tell the others"
        ) from None


def _watch_round(
    collector_session: CollectorSession[Any], server: Any, say_line: Callable[[str], None]
) -> None:
    """Print who is missing when that changes; stop when every party knows the end of the round."""
    last_head, ended_at = "", None
    while not server.should_exit:
        waiting_line = collector_session.format_status_line()
        line_head = waiting_line.rpartition(", ")[0] or waiting_line
        if line_head != last_head:
            last_head = line_head
            say_line(waiting_line)
        if (
            collector_session.is_result_confirmed
            or collector_session.is_over
            or collector_session.is_overdue
        ):
            ended_at = ended_at or time.monotonic()
            waited_seconds = time.monotonic() - ended_at
            if waited_seconds > (
                FINISHED_LINGER_SECONDS
                if collector_session.is_result_confirmed
                else ABANDONED_GRACE_SECONDS
            ) or (collector_session.is_result_confirmed and collector_session.is_known_to_all):
                server.should_exit = True
        time.sleep(0.1)
