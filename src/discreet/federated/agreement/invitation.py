"""Invitation to align rows: the owners, the collector and the deadline of an alignment.

The owners are a ring, in the order of the invitation: each passes lists on to the next.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from typing import Any, ClassVar

from discreet.documents import Body, load
from discreet.errors import PrivacyError, SchemaError
from discreet.federated.agreement.identity import Card, CardBody
from discreet.federated.agreement.signed import (
    VERSION,
    Agreement,
    Role,
    check_cards,
    check_deadline,
)
from discreet.federated.crypto.curve25519 import SIZE
from discreet.federated.messages import Expected, Lengths

__all__ = ["LARGEST", "MOST", "NOBODY", "NUMBER", "Invitation"]

LARGEST = 1 << 20
"""Ids in the longest list."""
MOST = 32
"""Owners at most."""
NUMBER = 4
"""Bytes of a position."""
NOBODY = (1 << 8 * NUMBER) - 1
"""Fills an answer up to the length of the list."""


@dataclass(frozen=True)
class Invitation(Agreement):
    """The agreement to align rows.

    Parameters
    ----------
    owners : sequence of Card
        Those who hold tables, in the order of the ring.
    collector : Card
        Carries and matches blinded lists; holds no table.
    ids : str
        What the ids are and how they are spelt, for people.
    pad_to : int, optional
        Everyone's list is filled up to this length with points that stand for nobody, so that
        nobody learns how long it is.
    round : int
    nonce : str
        Makes every invitation unique.
    deadline : str
        Until when, as ISO 8601; empty for none.
    signatures : mapping of name to hexadecimal signature
        Not a part of what is hashed.
    """

    KIND: ClassVar[str] = "invitation"

    owners: tuple[Card, ...]
    collector: Card
    ids: str = ""
    pad_to: int | None = None
    round: int = 1
    nonce: str = field(default_factory=lambda: secrets.token_hex(16))
    deadline: str = ""
    signatures: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not 2 <= len(self.owners) <= MOST:
            raise PrivacyError(f"rows are aligned among 2 to {MOST} owners, not {len(self.owners)}")
        check_cards([*self.owners, self.collector])
        if self.pad_to is not None and not 1 <= self.pad_to <= LARGEST:
            raise SchemaError(f"pad_to={self.pad_to}; lists have 1 to {LARGEST} ids")
        check_deadline(self.deadline)

    @cached_property
    def parties(self) -> dict[str, Card]:
        """Everyone, by name."""
        return {card.name: card for card in (*self.owners, self.collector)}

    @cached_property
    def roles(self) -> dict[str, Role]:
        """Everyone's part, by name."""
        return {**{card.name: "owner" for card in self.owners}, self.collector.name: "collector"}

    @property
    def most(self) -> int:
        """Largest number of ids in a list."""
        return self.pad_to or LARGEST

    def place(self, name: str) -> int:
        """Return the position of an owner in the ring."""
        return [card.name for card in self.owners].index(name)

    def route(self, origin: int) -> list[tuple[Card, Card]]:
        """Return (sender, recipient) pairs of a list: round the ring, then the collector."""
        ring = [*self.owners[origin:], *self.owners[:origin], self.collector]
        return list(pairwise(ring))

    @cached_property
    def routes(self) -> dict[str, Expected]:
        """For each recipient: expected senders, message kinds and lengths."""
        found: dict[str, dict[tuple[str, str], Lengths]] = {name: {} for name in self.parties}
        least, most = self.pad_to or 1, self.most
        lists = Lengths(range(SIZE * least, SIZE * most + 1, SIZE), sealed=True)
        answers = Lengths(range(NUMBER * (1 + least), NUMBER * (1 + most) + 1, NUMBER), sealed=True)
        for origin, owner in enumerate(self.owners):
            for sender, recipient in self.route(origin):
                found[recipient.name][sender.name, f"list-{origin}"] = lists
            found[owner.name][self.collector.name, "common"] = answers
        return dict(found)

    def content(self) -> dict[str, Any]:
        """Everything that was agreed, as plain values; the signatures are not a part of it."""
        return {
            "round": self.round,
            "nonce": self.nonce,
            "deadline": self.deadline,
            "ids": self.ids,
            "pad_to": self.pad_to,
            "owners": [card.to_body() for card in self.owners],
            "collector": self.collector.to_body(),
        }

    @classmethod
    def from_json(cls, text: str | bytes) -> Invitation:
        """Read what :meth:`to_json` wrote."""
        return load(text, "invitation", VERSION, _InvitationBody).invitation()


class _InvitationBody(Body):
    round: int
    nonce: str
    deadline: str
    ids: str
    pad_to: int | None
    owners: list[CardBody]
    collector: CardBody
    signatures: dict[str, str]

    def invitation(self) -> Invitation:
        """Convert the parsed JSON to an invitation."""
        plain = ("ids", "pad_to", "round", "nonce", "deadline", "signatures")
        return Invitation(
            tuple(one.card() for one in self.owners),
            self.collector.card(),
            **{name: getattr(self, name) for name in plain},
        )
