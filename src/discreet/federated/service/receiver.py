"""Program of a receiver: sign, wait for the result, open it, confirm once it is stored."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from discreet.federated import horizontal, vertical
from discreet.federated.agreement.identity import Card
from discreet.federated.refusals import ProtocolError
from discreet.federated.release import Release
from discreet.federated.service.connection import Connection
from discreet.federated.service.folder import Folder

if TYPE_CHECKING:
    from discreet.federated.crypto.paillier import PrivateKey

__all__ = ["receive"]


def receive(
    connection: Connection,
    state: str | Path,
    keep: Callable[[Release], None],
    key: PrivateKey | None = None,
    known: tuple[Card, ...] = (),
) -> Release:
    """Take part in a round as the receiver.

    Parameters
    ----------
    connection : Connection
    state : path
        A folder for the key of the round; until the end the result can be fetched again with it.
    keep : callable
        Puts the result where it belongs. Only when it returns is the collector told that the
        result has arrived: if it fails, the round can be opened again.
    key : PrivateKey, optional
        Needed in mode ``counts`` of a horizontal round with Paillier.
    known : tuple of Card
        Parties whose keys were checked out of band.
    """
    own, manifest = connection.own, connection.manifest
    manifest.require_part(own.card, "receiver")
    manifest.require_key(own.card, key)
    kept = Folder(state, manifest)
    with kept.held(own):
        before = kept.read("kept") is not None
        if before:  # all that may be missing is that the collector hears of it
            connection.leave_if_alone()
        try:
            return _receive(connection, kept, keep, key, known)
        except ProtocolError as error:
            if not before or error.reason not in ("lonely", "abandoned"):
                raise
            kept.finish(own)
            raise ProtocolError(
                "late",
                f"{own.name} has kept the result of this round before, and the collector is gone",
            ) from None


def _receive(
    connection: Connection,
    kept: Folder,
    keep: Callable[[Release], None],
    key: PrivateKey | None,
    known: tuple[Card, ...],
) -> Release:
    own, agreed = connection.own, connection.agreed(known)
    kind = "total" if agreed.mode == "counts" else "model"
    machine: horizontal.Receiver | vertical.Receiver
    if agreed.partition == "vertical":
        machine = vertical.Receiver(own, agreed)
    else:
        machine = horizontal.Receiver(own, agreed, key)
    result = connection.take(kind, agreed.collector.name, kept)
    with connection.busy("opening the result"):
        release = machine.receive(result)
        keep(release)
        kept.write("kept", b"")
    connection.confirm()
    kept.finish(own)
    return release
