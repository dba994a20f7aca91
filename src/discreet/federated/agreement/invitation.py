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

from discreet.errors import PrivacyError, SchemaError
from discreet.federated.agreement.identity import Card, CardBody
from discreet.federated.agreement.signed import (
    AGREEMENT_VERSION,
    Agreement,
    Role,
    check_deadline,
    check_distinct_cards,
)
from discreet.federated.crypto.curve25519 import POINT_BYTES
from discreet.federated.messages import BodyLengths, ExpectedMessages
from discreet.files.documents import Body, load_document

__all__ = ["MAX_LIST_IDS", "MAX_OWNERS", "NO_POSITION", "POSITION_BYTES", "Invitation"]

MAX_LIST_IDS = 1 << 20
"""Ids in the longest list."""
MAX_OWNERS = 32
"""Owners at most."""
POSITION_BYTES = 4
"""Bytes of a position."""
NO_POSITION = (1 << 8 * POSITION_BYTES) - 1
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
        if not 2 <= len(self.owners) <= MAX_OWNERS:
            raise PrivacyError(
                f"rows are aligned among 2 to {MAX_OWNERS} owners, not {len(self.owners)}"
            )
        check_distinct_cards(self.parties, len(self.owners) + 1)
        if self.pad_to is not None and not 1 <= self.pad_to <= MAX_LIST_IDS:
            raise SchemaError(f"pad_to={self.pad_to}; lists have 1 to {MAX_LIST_IDS} ids")
        if self.deadline:
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
    def max_list_ids(self) -> int:
        """Largest number of ids in a list."""
        return self.pad_to or MAX_LIST_IDS

    def find_ring_position(self, name: str) -> int:
        """Return the position of an owner in the ring."""
        return [card.name for card in self.owners].index(name)

    def route(self, origin_index: int) -> list[tuple[Card, Card]]:
        """Return (sender, recipient) pairs of a list: round the ring, then the collector."""
        ring = [*self.owners[origin_index:], *self.owners[:origin_index], self.collector]
        return list(pairwise(ring))

    @cached_property
    def routes(self) -> dict[str, ExpectedMessages]:
        """For each recipient: expected senders, message kinds and lengths."""
        expected_messages: dict[str, dict[tuple[str, str], BodyLengths]] = {
            name: {} for name in self.parties
        }
        min_ids, max_ids = self.pad_to or 1, self.max_list_ids
        list_lengths = BodyLengths(
            range(POINT_BYTES * min_ids, POINT_BYTES * max_ids + 1, POINT_BYTES), is_sealed=True
        )
        answer_lengths = BodyLengths(
            range(
                POSITION_BYTES * (1 + min_ids), POSITION_BYTES * (1 + max_ids) + 1, POSITION_BYTES
            ),
            is_sealed=True,
        )
        for origin_index, owner in enumerate(self.owners):
            for sender, recipient in self.route(origin_index):
                expected_messages[recipient.name][sender.name, f"list-{origin_index}"] = (
                    list_lengths
                )
            expected_messages[owner.name][self.collector.name, "common"] = answer_lengths
        return dict(expected_messages)

    def to_content(self) -> dict[str, Any]:
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
        return load_document(text, "invitation", AGREEMENT_VERSION, _InvitationBody).to_invitation()


class _InvitationBody(Body):
    round: int
    nonce: str
    deadline: str
    ids: str
    pad_to: int | None
    owners: list[CardBody]
    collector: CardBody
    signatures: dict[str, str]

    def to_invitation(self) -> Invitation:
        """Convert the parsed JSON to an invitation."""
        plain_fields = ("ids", "pad_to", "round", "nonce", "deadline", "signatures")
        return Invitation(
            tuple(card_body.to_card() for card_body in self.owners),
            self.collector.to_card(),
            **{name: getattr(self, name) for name in plain_fields},
        )
