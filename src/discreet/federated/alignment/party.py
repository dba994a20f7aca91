"""What the machines of an alignment share: the spelling of ids, a secret, sealed messages."""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

from discreet.encoding import is_missing
from discreet.errors import SchemaError
from discreet.federated.agreement.identity import Card, Identity
from discreet.federated.agreement.invitation import LARGEST, Invitation
from discreet.federated.crypto.curve25519 import SUITE
from discreet.federated.crypto.masks import pair_key
from discreet.federated.crypto.sealing import sealed, unsealed
from discreet.federated.messages import Inbox, Message
from discreet.federated.refusals import ProtocolError
from discreet.schema import text_of

__all__ = ["DOMAIN", "AlignmentParty", "Secret", "texts_of"]

DOMAIN = b"discreet/alignment/1-" + SUITE + b"-"
"""Before the hash of the invitation: points of two invitations have nothing in common."""


def texts_of(ids: Iterable[Any], most: int = LARGEST) -> list[str]:
    """Format ids as all owners spell them; refuse empty and repeated ids.

    Parameters
    ----------
    ids : iterable
    most : int
        How many there may be.
    """
    texts: list[str] = []
    for row, one in enumerate(ids):
        texts.append("" if is_missing(one) else text_of(one))
        if not texts[-1].strip():
            raise SchemaError(f"row {row} has an empty id; every row needs its own")
    if len(set(texts)) < len(texts):
        raise SchemaError("an id occurs twice; every row needs its own")
    if not 1 <= len(texts) <= most:
        raise SchemaError(f"{len(texts)} ids; a list has 1 to {most}")
    return texts


@dataclass(frozen=True, repr=False)
class Secret:
    """Secrets that an owner keeps while an alignment runs; deleted when it has ended.

    Parameters
    ----------
    scalar : bytes
        Blinds lists.
    key : bytes
        Gives a list its random order, and draws the points that stand for nobody.
    """

    scalar: bytes = field(
        default_factory=lambda: X25519PrivateKey.generate().private_bytes_raw(),
    )
    key: bytes = field(default_factory=lambda: secrets.token_bytes(32))

    def private(self) -> X25519PrivateKey:
        """Return the scalar as an X25519 private key."""
        return X25519PrivateKey.from_private_bytes(self.scalar)

    def draw(self, what: bytes) -> bytes:
        """Derive pseudorandom bytes for a label (HMAC-SHA256 with the key)."""
        return hmac.digest(self.key, what, "sha256")


class AlignmentParty:
    """What owners and collector share."""

    def __init__(self, own: Identity, invitation: Invitation, known: Iterable[Card] = ()) -> None:
        if invitation.parties.get(own.name) != own.card:
            raise ProtocolError("unknown-sender", f"{own.name} takes no part in this alignment")
        invitation.enter(own, known)
        self.own, self.invitation = own, invitation
        self.inbox = Inbox(invitation, own.name, invitation.routes[own.name])

    def _sealed(self, kind: str, other: Card, content: bytes) -> Message:
        key = pair_key(self.own, other, self.invitation.hash, kind)
        return Message.create(self.own, self.invitation, kind, other.name, sealed(key, content))

    def _opened(self, message: Message) -> bytes:
        other = self.invitation.parties[message.sender]
        key = pair_key(self.own, other, self.invitation.hash, message.kind)
        return unsealed(key, message.payload)
