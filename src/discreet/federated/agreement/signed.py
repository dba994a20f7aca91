"""Base of the documents that all parties sign: manifests, and invitations to align rows.

Its hash is in every message and every key, so a message means nothing under another agreement.
With its signature each party states the public key that it made for this round alone.
"""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from functools import cached_property
from typing import Any, ClassVar, Literal, Self, cast

from discreet.errors import SchemaError
from discreet.federated.agreement.identity import PUBLIC_KEY_BYTES, Card, Identity
from discreet.federated.refusals import ProtocolError
from discreet.files.documents import dump_document, encode_canonical

__all__ = ["Agreement", "Role", "check_deadline", "check_distinct_cards", "compute_seconds_left"]

AGREEMENT_VERSION = 6
SIGNATURE_BYTES = 64

Role = Literal["provider", "label provider", "collector", "receiver", "owner"]
ROLE_COMMANDS: dict[Role, str] = {
    "provider": "provide",
    "label provider": "label",
    "collector": "collect",
    "receiver": "receive",
    "owner": "align",
}
"""The command that each role runs."""


class Agreement(ABC):
    """Base of the documents that parties sign; each is a frozen dataclass."""

    KIND: ClassVar[str]
    collector: Card
    round: int
    deadline: str
    signatures: Mapping[str, str]

    @property
    @abstractmethod
    def parties(self) -> Mapping[str, Card]:
        """Everyone, by name."""

    @property
    @abstractmethod
    def roles(self) -> Mapping[str, Role]:
        """Everyone's part, by name."""

    @property
    def schema_digest(self) -> str:
        """Digest of the schema, where there is one; messages name it."""
        return ""

    @abstractmethod
    def to_content(self) -> dict[str, Any]:
        """Everything that was agreed, as plain values; the signatures are not a part of it."""

    @cached_property
    def hash(self) -> bytes:
        """SHA-256 of all that was agreed; the signatures are not a part of it."""
        header = {"format": f"discreet/{self.KIND}", "version": AGREEMENT_VERSION}
        return hashlib.sha256(encode_canonical({**header, **self.to_content()})).digest()

    @property
    def _signed_bytes(self) -> bytes:
        return b"discreet/" + self.KIND.encode() + b"\0" + self.hash

    def with_signatures(self, *identities: Identity) -> Self:
        """Return a copy with further signatures."""
        signatures = dict(self.signatures)
        for identity in identities:
            if self.parties.get(identity.name) != identity.card:
                raise ProtocolError("unknown-sender", f"{identity.name} is not in this {self.KIND}")
            session_key = identity.get_session_public_key(self.hash)
            signatures[identity.name] = (
                session_key + identity.sign(self._signed_bytes + session_key)
            ).hex()
        signed_agreement: Self = replace(cast(Any, self), signatures=signatures)
        return signed_agreement

    def verify_signature(self, name: str, signature: str) -> bool:
        """Whether this is a valid signature of the party."""
        try:
            signature_bytes = bytes.fromhex(signature)
        except ValueError:
            return False
        card = self.parties.get(name)
        if card is None or len(signature_bytes) != PUBLIC_KEY_BYTES + SIGNATURE_BYTES:
            return False
        return card.verify_signature(
            signature_bytes[PUBLIC_KEY_BYTES:],
            self._signed_bytes + signature_bytes[:PUBLIC_KEY_BYTES],
        )

    def start_session(self, identity: Identity, known_cards: Iterable[Card] = ()) -> None:
        """Check that all have signed, and take over the keys they signed with."""
        self.require_known_parties(identity.card, known_cards)
        self.require_all_signatures()
        session_keys = {
            name: bytes.fromhex(self.signatures[name])[:PUBLIC_KEY_BYTES] for name in self.parties
        }
        identity.store_session_public_keys(self.hash, session_keys)

    @cached_property
    def unsigned_parties(self) -> tuple[str, ...]:
        """Parties whose signature is missing or wrong."""
        signatures = self.signatures
        return tuple(
            name
            for name in self.parties
            if not self.verify_signature(name, signatures.get(name, ""))
        )

    def require_all_signatures(self) -> None:
        """Refuse an agreement that some party has not signed."""
        if self.unsigned_parties:
            raise ProtocolError(
                "not-agreed",
                f"the {self.KIND} lacks signatures: {', '.join(self.unsigned_parties)}",
            )

    def require_known_parties(self, own_card: Card, known_cards: Iterable[Card]) -> None:
        """Refuse a roster that differs from the known cards; without any, nothing is checked.

        Parameters
        ----------
        own_card : Card
        known_cards : iterable of Card
            Cards that were checked out of band. If any is given, all other parties must be among
            them: the noise of an invented party could be known to its inventor.
        """
        cards_by_name = {card.name: card for card in known_cards}
        if not cards_by_name:
            return
        for name, card in cards_by_name.items():
            if name not in self.parties:
                raise ProtocolError(
                    "not-agreed",
                    f"{name}, whose card is given as known, is not in this {self.KIND}; leave the "
                    f"card out, or ask for a {self.KIND} with {name}",
                )
            if self.parties[name] != card:
                raise ProtocolError(
                    "not-agreed",
                    f"the {self.KIND} has other keys for {name} (fingerprint "
                    f"{self.parties[name].fingerprint}) than its known card ({card.fingerprint}); "
                    f"ask {name} which is right, and do not sign before",
                )
        for name, card in self.parties.items():
            if name not in cards_by_name and card != own_card:
                raise ProtocolError(
                    "not-agreed",
                    f"the {self.KIND} names {name} ({self.roles[name]}, fingerprint "
                    f"{card.fingerprint}), whose card is not among the known ones; compare the "
                    f"fingerprint with {name} and add --known {name}.card.json, or do not sign",
                )

    def require_role(self, own_card: Card, role: Role) -> None:
        """Refuse, before anything is signed, an identity that does not have this role.

        Parameters
        ----------
        own_card : Card
        role : str
            The part that is to be played.
        """
        agreed_card = self.parties.get(own_card.name)
        if agreed_card is None:
            raise ProtocolError(
                "unknown-sender",
                f"{own_card.name} is not in this {self.KIND}, which names "
                f"{', '.join(self.parties)}; take the identity of one of them, or ask for a "
                f"{self.KIND} with {own_card.name}",
            )
        if agreed_card != own_card:
            raise ProtocolError(
                "unknown-sender",
                f"the {self.KIND} has another key for {own_card.name} (fingerprint "
                f"{agreed_card.fingerprint}) than this identity ({own_card.fingerprint}); take the "
                f"identity that the card came from, or ask for a new {self.KIND}",
            )
        actual_role = self.roles[own_card.name]
        if actual_role != role:
            raise ProtocolError(
                "unknown-sender",
                f"{own_card.name} is not the {role} but the {actual_role} of this {self.KIND}; run "
                f"`discreet federated {ROLE_COMMANDS[actual_role]}`, or take another identity",
            )

    def to_json(self) -> str:
        """Write it with its signatures."""
        return dump_document(
            self.KIND, AGREEMENT_VERSION, {**self.to_content(), "signatures": dict(self.signatures)}
        )


def check_distinct_cards(cards_by_name: Mapping[str, Card], party_count: int) -> None:
    """Refuse two parties of one name or one key."""
    if len(cards_by_name) < party_count:
        raise SchemaError("two parties have the same name; every party needs its own")
    if len({card.signing for card in cards_by_name.values()}) < party_count:
        raise SchemaError("two parties have the same key; every party needs its own")


def check_deadline(deadline_text: str) -> None:
    """Refuse an invalid deadline."""
    try:
        moment = datetime.fromisoformat(deadline_text)
    except ValueError:
        raise SchemaError(f"deadline {deadline_text!r} is not an ISO 8601 time") from None
    if moment.tzinfo is None:
        raise SchemaError(f"deadline {deadline_text!r} has no time zone; write +00:00 for UTC")


def get_current_time() -> datetime:
    """Return the UTC time of this machine; it may jump and is not trusted by others."""
    return datetime.now(UTC)


def compute_seconds_left(agreement: Agreement) -> float | None:
    """Seconds until the deadline; None where there is none."""
    if not agreement.deadline:
        return None
    moment = datetime.fromisoformat(agreement.deadline)
    return (moment - get_current_time()).total_seconds()
