"""What the machines of an alignment share: the spelling of ids, a secret, sealed messages."""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

from discreet.errors import SchemaError
from discreet.federated.agreement.identity import Card, Identity
from discreet.federated.agreement.invitation import MAX_LIST_IDS, Invitation
from discreet.federated.crypto.curve25519 import HASH_SUITE
from discreet.federated.crypto.masks import derive_pair_key
from discreet.federated.crypto.sealing import seal_bytes, unseal_bytes
from discreet.federated.messages import Inbox, Message
from discreet.federated.refusals import ProtocolError
from discreet.schema.cells import is_missing
from discreet.schema.schema import format_value

__all__ = ["HASH_DOMAIN", "AlignmentParty", "AlignmentSecret", "format_ids"]

HASH_DOMAIN = b"discreet/alignment/1-" + HASH_SUITE + b"-"
"""Before the hash of the invitation: points of two invitations have nothing in common."""


def format_ids(ids: Iterable[Any], max_ids: int = MAX_LIST_IDS) -> list[str]:
    """Format ids as all owners spell them; refuse empty and repeated ids.

    Parameters
    ----------
    ids : iterable
    max_ids : int
        How many there may be.
    """
    id_texts: list[str] = []
    for row, id_value in enumerate(ids):
        id_texts.append("" if is_missing(id_value) else format_value(id_value))
        if not id_texts[-1].strip():
            raise SchemaError(f"row {row} has an empty id; every row needs its own")
    if len(set(id_texts)) < len(id_texts):
        raise SchemaError("an id occurs twice; every row needs its own")
    if not 1 <= len(id_texts) <= max_ids:
        raise SchemaError(f"{len(id_texts)} ids; a list has 1 to {max_ids}")
    return id_texts


@dataclass(frozen=True, repr=False)
class AlignmentSecret:
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

    def to_private_key(self) -> X25519PrivateKey:
        """Return the scalar as an X25519 private key."""
        return X25519PrivateKey.from_private_bytes(self.scalar)

    def draw_bytes(self, label: bytes) -> bytes:
        """Derive pseudorandom bytes for a label (HMAC-SHA256 with the key)."""
        return hmac.digest(self.key, label, "sha256")


class AlignmentParty:
    """What owners and collector share."""

    def __init__(
        self, identity: Identity, invitation: Invitation, known_cards: Iterable[Card] = ()
    ) -> None:
        if invitation.parties.get(identity.name) != identity.card:
            raise ProtocolError(
                "unknown-sender", f"{identity.name} takes no part in this alignment"
            )
        invitation.start_session(identity, known_cards)
        self.identity, self.invitation = identity, invitation
        self.inbox = Inbox(invitation, identity.name, invitation.routes[identity.name])

    def _seal_message(self, kind: str, recipient: Card, content: bytes) -> Message:
        shared_key = derive_pair_key(self.identity, recipient, self.invitation.hash, kind)
        return Message.create(
            self.identity, self.invitation, kind, recipient.name, seal_bytes(shared_key, content)
        )

    def _open_message(self, message: Message) -> bytes:
        sender_card = self.invitation.parties[message.sender]
        shared_key = derive_pair_key(self.identity, sender_card, self.invitation.hash, message.kind)
        return unseal_bytes(shared_key, message.body.read())
