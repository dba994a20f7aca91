"""An owner in an alignment: blinds its own list of ids and those of the others."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from typing import Any

from discreet.federated.agreement.identity import Card, Identity
from discreet.federated.agreement.invitation import NO_POSITION, POSITION_BYTES, Invitation
from discreet.federated.alignment.party import (
    HASH_DOMAIN,
    AlignmentParty,
    AlignmentSecret,
    format_ids,
)
from discreet.federated.crypto.curve25519 import (
    BlindingProgress,
    blind_points,
    parse_points,
    to_point,
)
from discreet.federated.messages import Message
from discreet.federated.refusals import ProtocolError

__all__ = ["Owner"]


class Owner(AlignmentParty):
    """Holds ids; blinds its own list and those of the others.

    Parameters
    ----------
    identity : Identity
    invitation : Invitation
        Signed by everyone.
    ids : iterable
        Of one's own rows, each different.
    secret : AlignmentSecret, optional
        The same as before, for an owner that was restarted.
    known_cards : iterable of Card
        Parties whose keys were checked out of band.
    advance : callable, optional
        Told how many more points are blinded.
    """

    def __init__(
        self,
        identity: Identity,
        invitation: Invitation,
        ids: Iterable[Any],
        secret: AlignmentSecret | None = None,
        known_cards: Iterable[Card] = (),
        advance: BlindingProgress | None = None,
    ) -> None:
        super().__init__(identity, invitation, known_cards)
        if identity.name == invitation.collector.name:
            raise ProtocolError("unknown-sender", f"{identity.name} is the collector, not an owner")
        self.secret, self.advance = AlignmentSecret() if secret is None else secret, advance
        self.ring_index = invitation.find_ring_position(identity.name)
        owner_count = len(invitation.owners)
        self.next_index = (self.ring_index + 1) % owner_count
        self.passing_origins = [
            (self.ring_index - step) % owner_count for step in range(1, owner_count)
        ]
        """Indices of the owners whose lists this owner receives, in order of arrival."""
        self._sort_entries(format_ids(ids, invitation.max_list_ids))

    def _sort_entries(self, id_texts: Sequence[str]) -> None:
        """Sort entries by a keyed hash: a random order, independent of the file's order."""
        draw_bytes, hash_domain = self.secret.draw_bytes, HASH_DOMAIN + self.invitation.hash
        entries = [
            (draw_bytes(b"place " + text.encode()), row, text.encode(), hash_domain)
            for row, text in enumerate(id_texts)
        ]
        for number in range(len(id_texts), self.invitation.pad_to or 0):
            padding_label = str(number).encode()
            entries.append(
                (
                    draw_bytes(b"nobody " + padding_label),
                    -1,
                    draw_bytes(b"point " + padding_label),
                    hash_domain + b"-",
                )
            )
        entries.sort()
        self._row_order = [row for _, row, _, _ in entries]
        self._entries = [(message, hash_domain) for _, _, message, hash_domain in entries]

    @property
    def list_digest(self) -> bytes:
        """Keyed digest of the list as sent, to detect a changed table after a restart."""
        return self.secret.draw_bytes(
            b"".join(hashlib.sha256(message).digest() for message, _ in self._entries)
        )

    def _blind_points(self, points: Iterable[bytes]) -> bytes:
        return b"".join(blind_points(points, self.secret.to_private_key(), self.advance))

    def make_own_list(self) -> Message:
        """One's own list, for the next owner; send it once."""
        points = (to_point(*entry) for entry in self._entries)
        recipient = self.invitation.owners[self.next_index]
        return self._seal_message(f"list-{self.ring_index}", recipient, self._blind_points(points))

    def blind_and_forward(self, data: bytes | Message) -> Message:
        """Blind another owner's list, for the next owner or the collector; send it once."""
        message = self.inbox.read_message(data)
        if message.kind == "common":
            raise ProtocolError("wrong-kind", "this is the collector's answer, not a list")
        content = self._blind_points(parse_points(self._open_message(message)))
        self.inbox.accept_message(message)
        is_last_owner = message.kind == f"list-{self.next_index}"
        recipient = (
            self.invitation.collector if is_last_owner else self.invitation.owners[self.next_index]
        )
        return self._seal_message(message.kind, recipient, content)

    def read_common_rows(self, data: bytes | Message) -> list[int]:
        """The rows that all owners hold, in an order that all of them share."""
        message = self.inbox.read_message(data)
        if message.kind != "common":
            raise ProtocolError("wrong-kind", "this is another owner's list, not the answer")
        list_size, *positions = _parse_numbers(self._open_message(message))
        if list_size != len(self._row_order) or len(positions) != list_size:
            raise ProtocolError(
                "wrong-length",
                f"{len(self._row_order)} ids were sent, the collector had {list_size}",
            )
        positions = [position for position in positions if position != NO_POSITION]
        if len(set(positions)) < len(positions):
            raise ProtocolError("duplicate", "the collector named a position twice")
        if any(position >= list_size or self._row_order[position] < 0 for position in positions):
            raise ProtocolError("out-of-range", "the collector named a position without an id")
        self.inbox.accept_message(message)
        return [self._row_order[position] for position in positions]


def _parse_numbers(content: bytes) -> list[int]:
    return [
        int.from_bytes(content[offset : offset + POSITION_BYTES], "big")
        for offset in range(0, len(content), POSITION_BYTES)
    ]
