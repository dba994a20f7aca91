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

from discreet.documents import canonical_document, dump
from discreet.errors import SchemaError
from discreet.federated.agreement.identity import KEY, Card, Identity
from discreet.federated.refusals import ProtocolError

__all__ = ["Agreement", "Role", "check_cards", "check_deadline", "seconds_left"]

VERSION = 4
SIGNATURE = 64

Role = Literal["provider", "label provider", "collector", "receiver", "owner"]
COMMANDS: dict[Role, str] = {
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
    def about(self) -> str:
        """Digest of the schema, where there is one; messages name it."""
        return ""

    @abstractmethod
    def content(self) -> dict[str, Any]:
        """Everything that was agreed, as plain values; the signatures are not a part of it."""

    @cached_property
    def hash(self) -> bytes:
        """SHA-256 of all that was agreed; the signatures are not a part of it."""
        return hashlib.sha256(canonical_document(self.KIND, VERSION, self.content())).digest()

    @property
    def _signed(self) -> bytes:
        return b"discreet/" + self.KIND.encode() + b"\0" + self.hash

    def signed_by(self, *identities: Identity) -> Self:
        """Return a copy with further signatures."""
        signatures = dict(self.signatures)
        for one in identities:
            if self.parties.get(one.name) != one.card:
                raise ProtocolError("unknown-sender", f"{one.name} is not in this {self.KIND}")
            public = one.join(self.hash)
            signatures[one.name] = (public + one.sign(self._signed + public)).hex()
        made: Self = replace(cast(Any, self), signatures=signatures)
        return made

    def accepts(self, name: str, signature: str) -> bool:
        """Whether this is a valid signature of the party."""
        card, content = self.parties.get(name), _bytes(signature)
        if card is None or len(content) != KEY + SIGNATURE:
            return False
        return card.verify(content[KEY:], self._signed + content[:KEY])

    @property
    def sessions(self) -> dict[str, bytes]:
        """The public key that each party signed for this round."""
        return {name: _bytes(text)[:KEY] for name, text in self.signatures.items()}

    def enter(self, own: Identity, known: Iterable[Card] = ()) -> None:
        """Check that all have signed, and take over the keys they signed with."""
        self.require_known(own.card, known)
        self.require_agreed()
        own.meet(self.hash, self.sessions)

    @cached_property
    def unsigned(self) -> tuple[str, ...]:
        """Parties whose signature is missing or wrong."""
        given = self.signatures
        return tuple(n for n in self.parties if not self.accepts(n, given.get(n, "")))

    def require_agreed(self) -> None:
        """Refuse an agreement that some party has not signed."""
        if self.unsigned:
            raise ProtocolError(
                "not-agreed", f"the {self.KIND} lacks signatures: {', '.join(self.unsigned)}"
            )

    def require_known(self, own: Card, known: Iterable[Card]) -> None:
        """Refuse a roster that differs from the known cards; without any, nothing is checked.

        Parameters
        ----------
        own : Card
        known : iterable of Card
            Cards that were checked out of band. If any is given, all other parties must be among
            them: the noise of an invented party could be known to its inventor.
        """
        cards = {card.name: card for card in known}
        if not cards:
            return
        for name, card in cards.items():
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
            if name not in cards and card != own:
                raise ProtocolError(
                    "not-agreed",
                    f"the {self.KIND} names {name} ({self.roles[name]}, fingerprint "
                    f"{card.fingerprint}), whose card is not among the known ones; compare the "
                    f"fingerprint with {name} and add --known {name}.card.json, or do not sign",
                )

    def require_part(self, own: Card, role: Role) -> None:
        """Refuse, before anything is signed, an identity that does not have this role.

        Parameters
        ----------
        own : Card
        role : str
            The part that is to be played.
        """
        agreed = self.parties.get(own.name)
        if agreed is None:
            raise ProtocolError(
                "unknown-sender",
                f"{own.name} is not in this {self.KIND}, which names {', '.join(self.parties)}; "
                f"take the identity of one of them, or ask for a {self.KIND} with {own.name}",
            )
        if agreed != own:
            raise ProtocolError(
                "unknown-sender",
                f"the {self.KIND} has another key for {own.name} (fingerprint "
                f"{agreed.fingerprint}) than this identity ({own.fingerprint}); take the identity "
                f"that the card came from, or ask for a new {self.KIND}",
            )
        actual = self.roles[own.name]
        if actual != role:
            raise ProtocolError(
                "unknown-sender",
                f"{own.name} is not the {role} but the {actual} of this {self.KIND}; run "
                f"`discreet federated {COMMANDS[actual]}`, or take another identity",
            )

    def to_json(self) -> str:
        """Write it with its signatures."""
        return dump(self.KIND, VERSION, {**self.content(), "signatures": dict(self.signatures)})


def check_cards(cards: list[Card]) -> None:
    """Refuse two parties of one name or one key."""
    if len({card.name for card in cards}) < len(cards):
        raise SchemaError("two parties have the same name; every party needs its own")
    if len({card.signing for card in cards}) < len(cards):
        raise SchemaError("two parties have the same key; every party needs its own")


def check_deadline(text: str) -> None:
    """Refuse an invalid deadline."""
    try:
        moment = datetime.fromisoformat(text) if text else None
    except ValueError:
        raise SchemaError(f"deadline {text!r} is not an ISO 8601 time") from None
    if moment is not None and moment.tzinfo is None:
        raise SchemaError(f"deadline {text!r} has no time zone; write +00:00 for UTC")


def now() -> datetime:
    """Return the UTC time of this machine; it may jump and is not trusted by others."""
    return datetime.now(UTC)


def seconds_left(agreement: Agreement) -> float | None:
    """Seconds until the deadline; None where there is none."""
    if not agreement.deadline:
        return None
    moment = datetime.fromisoformat(agreement.deadline)
    return (moment - now()).total_seconds()


def _bytes(text: str) -> bytes:
    try:
        return bytes.fromhex(text)
    except ValueError:
        return b""
