"""``discreet federated collect``: the collector, a server that can be killed and restarted."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

from discreet.cli.federated.confirm import confirm, known_option, yes_option
from discreet.cli.federated.files import read_agreement, read_cards, read_identity, read_key
from discreet.cli.federated.telling import current
from discreet.cli.output import example
from discreet.errors import DiscreetError, MissingDependencyError

if TYPE_CHECKING:
    from discreet.federated.service.relay import Carrier

__all__ = ["collect"]

GRACE = 3.0
"""Seconds for which the status of an abandoned round is still served."""
LINGER = 60.0
"""Seconds for which a slow party can still learn that the round is finished."""


@click.command(
    epilog=example(
        "discreet federated collect manifest.json --identity c.identity.json --state kept",
        "discreet federated collect invitation.json --identity c.identity.json --state kept",
    )
)
@click.argument("manifest")
@click.option("--identity", required=True, help="The collector's own identity file.")
@click.option("--state", required=True, help="A folder for what was received, to start again.")
@click.option("--key", help="A Paillier key, in mode probabilities.")
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

    MANIFEST may also be an invitation; then blinded lists of ids are carried and matched.
    Killed and started again with the same --state, it goes on where it was.
    """
    try:
        from discreet.federated.agreement.invitation import Invitation
        from discreet.federated.alignment.service import Matching
        from discreet.federated.messages import CHUNK
        from discreet.federated.service.folder import Folder
        from discreet.federated.service.server import Round, application
        from discreet.serving import Patience, raise_file_limit, tls_options, web_server
    except ModuleNotFoundError as error:
        raise MissingDependencyError(str(error.name), "federated") from None

    own, agreed, secret = read_identity(identity), read_agreement(manifest), read_key(key)
    tls = tls_options(certificate, certificate_key)
    agreed.require_part(own.card, "collector")
    if not isinstance(agreed, Invitation):
        agreed.require_key(own.card, secret)
    agreed.require_known(own.card, read_cards(known))
    confirm(agreed, own.name, yes)
    _refuse_taken(host, port)
    # lock the folder before reading it: two collectors on one folder would make two results
    tell = current()
    with Folder(state, agreed).locked():
        running: Carrier[Any]
        if isinstance(agreed, Invitation):
            running = Matching(own, agreed, state)
        else:
            running = Round(own, agreed, state, secret, tell.show)
        patience = Patience(largest=CHUNK, connections=min(512, raise_file_limit() // 2))
        server = web_server(
            application(running), patience, host=host, port=port, backlog=256, **tls
        )
        watcher = threading.Thread(target=_watch, args=(running, server, tell.say), daemon=True)
        watcher.start()
        server.run()
        if running.finished or running.over:
            running.folder.finish(own)
    if not running.finished:
        raise DiscreetError(running.waiting())


def _refuse_taken(host: str, port: int) -> None:
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


def _watch(running: Carrier[Any], server: Any, say: Callable[[str], None]) -> None:
    """Print who is missing when that changes; stop when every party knows the end of the round."""
    said, ended = "", None
    while not server.should_exit:
        line = running.waiting()
        head = line.rpartition(", ")[0] or line
        if head != said:
            said = head
            say(line)
        if running.finished or running.over or running.overdue:
            ended = ended or time.monotonic()
            waited = time.monotonic() - ended
            if waited > (LINGER if running.finished else GRACE) or (
                running.finished and running.everyone_knows
            ):
                server.should_exit = True
        time.sleep(0.1)
