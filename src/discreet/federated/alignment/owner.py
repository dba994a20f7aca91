"""An owner in an alignment: blinds its own list of ids and those of the others."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from typing import Any

from discreet.federated.agreement.identity import Card, Identity
from discreet.federated.agreement.invitation import NOBODY, NUMBER, Invitation
from discreet.federated.alignment.party import DOMAIN, AlignmentParty, Secret, texts_of
from discreet.federated.crypto.curve25519 import Advance, blinded, points_of, to_point
from discreet.federated.messages import Message
from discreet.federated.refusals import ProtocolError

__all__ = ["Owner"]


class Owner(AlignmentParty):
    """Holds ids; blinds its own list and those of the others.

    Parameters
    ----------
    own : Identity
    invitation : Invitation
        Signed by everyone.
    ids : iterable
        Of one's own rows, each different.
    secret : Secret, optional
        The same as before, for an owner that was restarted.
    known : iterable of Card
        Parties whose keys were checked out of band.
    advance : callable, optional
        Told how many more points are blinded.
    """

    def __init__(
        self,
        own: Identity,
        invitation: Invitation,
        ids: Iterable[Any],
        secret: Secret | None = None,
        known: Iterable[Card] = (),
        advance: Advance | None = None,
    ) -> None:
        super().__init__(own, invitation, known)
        if own.name == invitation.collector.name:
            raise ProtocolError("unknown-sender", f"{own.name} is the collector, not an owner")
        self.secret, self.advance = Secret() if secret is None else secret, advance
        self.place, count = invitation.place(own.name), len(invitation.owners)
        self.next = (self.place + 1) % count
        self.others = [(self.place - step) % count for step in range(1, count)]
        """Indices of the owners whose lists this owner receives, in order of arrival."""
        self._arrange(texts_of(ids, invitation.most))

    def _arrange(self, texts: Sequence[str]) -> None:
        """Sort entries by a keyed hash: a random order, independent of the file's order."""
        draw, domain = self.secret.draw, DOMAIN + self.invitation.hash
        entries = [
            (draw(b"place " + text.encode()), row, text.encode(), domain)
            for row, text in enumerate(texts)
        ]
        for number in range(len(texts), self.invitation.pad_to or 0):
            label = str(number).encode()
            entries.append((draw(b"nobody " + label), -1, draw(b"point " + label), domain + b"-"))
        entries.sort()
        self._rows = [row for _, row, _, _ in entries]
        self._entries = [(message, domain) for _, _, message, domain in entries]

    @property
    def digest(self) -> bytes:
        """Keyed digest of the list as sent, to detect a changed table after a restart."""
        return self.secret.draw(b"".join(hashlib.sha256(m).digest() for m, _ in self._entries))

    def _blinded(self, points: Iterable[bytes]) -> bytes:
        return b"".join(blinded(points, self.secret.private(), self.advance))

    def own_list(self) -> Message:
        """One's own list, for the next owner; send it once."""
        points = (to_point(*entry) for entry in self._entries)
        recipient = self.invitation.owners[self.next]
        return self._sealed(f"list-{self.place}", recipient, self._blinded(points))

    def pass_on(self, data: bytes | Message) -> Message:
        """Blind another owner's list, for the next owner or the collector; send it once."""
        message = self.inbox.read(data)
        if message.kind == "common":
            raise ProtocolError("wrong-kind", "this is the collector's answer, not a list")
        content = self._blinded(points_of(self._opened(message)))
        self.inbox.keep(message)
        last = message.kind == f"list-{self.next}"
        recipient = self.invitation.collector if last else self.invitation.owners[self.next]
        return self._sealed(message.kind, recipient, content)

    def common(self, data: bytes | Message) -> list[int]:
        """The rows that all owners hold, in an order that all of them share."""
        message = self.inbox.read(data)
        if message.kind != "common":
            raise ProtocolError("wrong-kind", "this is another owner's list, not the answer")
        size, *places = _numbers(self._opened(message))
        if size != len(self._rows) or len(places) != size:
            raise ProtocolError(
                "wrong-length", f"{len(self._rows)} ids were sent, the collector had {size}"
            )
        places = [place for place in places if place != NOBODY]
        if len(set(places)) < len(places):
            raise ProtocolError("duplicate", "the collector named a position twice")
        if any(place >= size or self._rows[place] < 0 for place in places):
            raise ProtocolError("out-of-range", "the collector named a position without an id")
        self.inbox.keep(message)
        return [self._rows[place] for place in places]


def _numbers(content: bytes) -> list[int]:
    return [int.from_bytes(content[i : i + NUMBER], "big") for i in range(0, len(content), NUMBER)]
