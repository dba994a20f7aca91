"""What all machines of a vertical round share: shares of noise, padded sums, the order of rows."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from discreet.arrays import Integers
from discreet.federated.agreement.identity import Card, Identity
from discreet.federated.agreement.manifest import Manifest
from discreet.federated.crypto.masks import tag
from discreet.federated.crypto.packing import checked
from discreet.federated.messages import Inbox, Message
from discreet.federated.payload import Payload, in_memory
from discreet.federated.refusals import ProtocolError
from discreet.federated.release import Release
from discreet.federated.vertical.arithmetic import routes, way_of
from discreet.randomness import Random
from discreet.schema import text_of

__all__ = ["VerticalParty", "order_of"]

Keep = Callable[[Iterable[bytes]], Payload]
"""Puts the pieces of a body somewhere, for instance into a file."""


class VerticalParty:
    """A party of a vertical round, in whatever role."""

    keep: Keep = staticmethod(in_memory)
    """Where the bodies of one's own messages go."""

    def __init__(self, own: Identity, manifest: Manifest, card: Card | None, role: str) -> None:
        self.way = way_of(manifest)
        if card != own.card:
            raise ProtocolError("unknown-sender", f"{own.name} is not the {role} of this round")
        self.own, self.manifest = own, manifest
        self.label, self.rows = self.way.label, self.way.rows
        self.inbox = Inbox(manifest, own.name, routes(self.way)[own.name])

    def _send(self, kind: str, recipient: str, pieces: Iterable[bytes]) -> Message:
        return Message.create(self.own, self.manifest, kind, recipient, self.keep(pieces))

    def _share(self, provider: str, random: Random) -> Integers:
        """A share of the noise of one provider's tables."""
        return checked(self.manifest.share(self.way.layouts[provider], random), 3)

    def _pieces(self, content: bytes) -> list[tuple[Card, bytes]]:
        """All providers' sums, one piece each."""
        found, start = [], 0
        for card in self.manifest.providers:
            end = start + self.way.sums_size(card.name)
            found.append((card, content[start:end]))
            start = end
        return found

    def _with_share(self, content: bytes, random: Random) -> bytes:
        """All providers' sums with a further share of noise."""
        return b"".join(
            self.way.plus(card.name, sums, self._share(card.name, random))
            for card, sums in self._pieces(content)
        )

    def _order(self, other: Card, order: bytes, by: str) -> bytes:
        """Compute the tag by which one of two parties proves its row order; it names the prover."""
        return tag(self.way.pair(self.own, other, "order"), by.encode() + b"\0" + order)

    def _digest(self, ids: Iterable[Any] | None) -> bytes:
        """What stands for the rows and their order."""
        order, count = getattr(ids, "order", None) or order_of(() if ids is None else ids)
        if ids is not None and count != self.rows:
            raise ProtocolError("wrong-rows", f"{count} ids, but {self.rows} rows were agreed")
        return order

    def _opened(self, content: bytes) -> Release:
        """Remove the pads (opener only) and make the release."""
        found: dict[Any, Integers] = {}
        for card, sums in self._pieces(content):
            vector = self.way.opened(self.own, card, sums)
            split = self.way.layouts[card.name].split(vector)
            found |= {block: table.reshape(-1) for block, table in split}
        whole = np.concatenate([found[block] for block in self.manifest.layout.blocks])
        return Release.of(self.manifest, whole)


def order_of(ids: Iterable[Any]) -> tuple[bytes, int]:
    """A digest of ids in their order, and how many there are."""
    code, count = hashlib.sha256(), 0
    for one in ids:
        text = text_of(one).encode()
        code.update(len(text).to_bytes(4, "big") + text)
        count += 1
    return code.digest(), count
