"""What all parties sign before they start: a manifest, or an invitation to align rows.

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
from typing import Any, ClassVar, Self, cast

from discreet.documents import canonical_document, dump
from discreet.errors import SchemaError
from discreet.federated.agreement.identity import KEY, Card, Identity
from discreet.federated.refusals import ProtocolError

__all__ = ["Agreement", "check_cards", "check_deadline", "seconds_left"]

VERSION = 2
SIGNATURE = 64


class Agreement(ABC):
    """Base of the documents that parties sign; each is a frozen dataclass."""

    KIND: ClassVar[str]
    round: int
    deadline: str
    signatures: Mapping[str, str]

    @property
    @abstractmethod
    def parties(self) -> Mapping[str, Card]:
        """Everyone, by name."""

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
        """The same with further signatures."""
        signatures = dict(self.signatures)
        for one in identities:
            if self.parties.get(one.name) != one.card:
                raise ProtocolError("unknown-sender", f"{one.name} is not in this {self.KIND}")
            public = one.join(self.hash)
            signatures[one.name] = (public + one.sign(self._signed + public)).hex()
        made: Self = replace(cast(Any, self), signatures=signatures)
        return made

    def accepts(self, name: str, signature: str) -> bool:
        """Whether this is a party's signature."""
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
        self.require_agreed(known)
        own.meet(self.hash, self.sessions)

    @cached_property
    def unsigned(self) -> tuple[str, ...]:
        """Parties whose signature is missing or wrong."""
        given = self.signatures
        return tuple(n for n in self.parties if not self.accepts(n, given.get(n, "")))

    def require_agreed(self, known: Iterable[Card] = ()) -> None:
        """Refuse what someone has not signed, or with other keys than those one knows."""
        if self.unsigned:
            raise ProtocolError(
                "not-agreed", f"the {self.KIND} lacks signatures: {', '.join(self.unsigned)}"
            )
        for card in known:
            if card.name in self.parties and self.parties[card.name] != card:
                raise ProtocolError(
                    "not-agreed",
                    f"the {self.KIND} has other keys for {card.name} than those known",
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
    """Refuse a deadline that is no moment."""
    try:
        moment = datetime.fromisoformat(text) if text else None
    except ValueError:
        raise SchemaError(f"deadline {text!r} is no ISO 8601 time") from None
    if moment is not None and moment.tzinfo is None:
        raise SchemaError(f"deadline {text!r} has no time zone; write +00:00 for UTC")


def seconds_left(agreement: Agreement) -> float | None:
    """Seconds until the deadline; None where there is none."""
    if not agreement.deadline:
        return None
    moment = datetime.fromisoformat(agreement.deadline)
    return (moment - datetime.now(UTC)).total_seconds()


def _bytes(text: str) -> bytes:
    try:
        return bytes.fromhex(text)
    except ValueError:
        return b""
