"""A receiver as a program: signs, waits for the result, opens it, and says that it has it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from discreet.federated import horizontal, vertical
from discreet.federated.agreement.identity import Card
from discreet.federated.messages import Message
from discreet.federated.release import Release
from discreet.federated.service.connection import Connection

if TYPE_CHECKING:
    from discreet.federated.crypto.paillier import PrivateKey

__all__ = ["receive"]


def receive(
    connection: Connection, key: PrivateKey | None = None, known: tuple[Card, ...] = ()
) -> Release:
    """Take part in a round as the receiver.

    Parameters
    ----------
    connection : Connection
    key : PrivateKey, optional
        Needed in mode ``counts`` of a horizontal round with Paillier.
    known : tuple of Card
        Parties whose keys were checked out of band.
    """
    agreed, own = connection.agreed(known), connection.own
    kind = "total" if agreed.mode == "counts" else "model"
    machine: horizontal.Receiver | vertical.Receiver
    if agreed.partition == "vertical":
        machine = vertical.Receiver(own, agreed)
    else:
        machine = horizontal.Receiver(own, agreed, key)
    release = machine.receive(connection.take(kind, agreed.collector.name))
    connection.send(Message.create(own, agreed, "received", agreed.collector.name, b""))
    return release
