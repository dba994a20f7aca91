"""What all machines of a vertical round share: shares of noise, padded sums, the order of rows."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from discreet.arrays import Integers
from discreet.federated.agreement.identity import Card, Identity
from discreet.federated.agreement.manifest import Manifest
from discreet.federated.crypto.masks import compute_tag
from discreet.federated.crypto.packing import check_counters
from discreet.federated.messages import Inbox, Message
from discreet.federated.payload import Payload, join_in_memory
from discreet.federated.refusals import ProtocolError
from discreet.federated.release import Release
from discreet.federated.vertical.protocol import list_routes, make_protocol
from discreet.randomness import Random
from discreet.schema.schema import format_value

__all__ = ["VerticalParty", "digest_ids"]

BodyStore = Callable[[Iterable[bytes]], Payload]
"""Puts the pieces of a body somewhere, for instance into a file."""


class VerticalParty:
    """A party of a vertical round, in whatever role."""

    store_body: BodyStore = staticmethod(join_in_memory)
    """Where the bodies of one's own messages go."""

    def __init__(
        self, identity: Identity, manifest: Manifest, card: Card | None, role: str
    ) -> None:
        self.protocol = make_protocol(manifest)
        if card != identity.card:
            raise ProtocolError(
                "unknown-sender", f"{identity.name} is not the {role} of this round"
            )
        self.identity, self.manifest = identity, manifest
        self.label_provider, self.row_count = self.protocol.label_provider, self.protocol.row_count
        self.inbox = Inbox(manifest, identity.name, list_routes(self.protocol)[identity.name])

    def _make_message(self, kind: str, recipient: str, pieces: Iterable[bytes]) -> Message:
        return Message.create(
            self.identity, self.manifest, kind, recipient, self.store_body(pieces)
        )

    def _draw_noise_share(self, provider: str, random: Random) -> Integers:
        """A share of the noise of one provider's tables."""
        return check_counters(
            self.manifest.draw_noise_share(self.protocol.layouts[provider], random), 3
        )

    def _split_sums(self, sums_bytes: bytes) -> list[tuple[Card, bytes]]:
        """All providers' sums, one piece each."""
        provider_sums, start = [], 0
        for card in self.manifest.providers:
            end = start + self.protocol.compute_sums_size(card.name)
            provider_sums.append((card, sums_bytes[start:end]))
            start = end
        return provider_sums

    def _add_noise_shares(self, sums_bytes: bytes, random: Random) -> bytes:
        """All providers' sums with a further share of noise."""
        return b"".join(
            self.protocol.add_noise_share(
                card.name, padded_sums, self._draw_noise_share(card.name, random)
            )
            for card, padded_sums in self._split_sums(sums_bytes)
        )

    def _compute_order_tag(self, peer: Card, row_digest: bytes, prover_name: str) -> bytes:
        """Compute the tag by which one of two parties proves its row order; it names the prover."""
        return compute_tag(
            self.protocol.derive_pair_key(self.identity, peer, "order"),
            prover_name.encode() + b"\0" + row_digest,
        )

    def _compute_row_digest(self, ids: Iterable[Any] | None) -> bytes:
        """What stands for the rows and their order."""
        row_digest, id_count = getattr(ids, "order", None) or digest_ids(() if ids is None else ids)
        if ids is not None and id_count != self.row_count:
            raise ProtocolError(
                "wrong-rows", f"{id_count} ids, but {self.row_count} rows were agreed"
            )
        return row_digest

    def _open_totals(self, sums_bytes: bytes) -> Release:
        """Remove the pads (opener only) and make the release."""
        block_totals: dict[Any, Integers] = {}
        for card, padded_sums in self._split_sums(sums_bytes):
            provider_totals = self.protocol.open_sums(self.identity, card, padded_sums)
            block_tables = self.protocol.layouts[card.name].split(provider_totals)
            block_totals |= {block: table.reshape(-1) for block, table in block_tables}
        noised_totals = np.concatenate(
            [block_totals[block] for block in self.manifest.layout.blocks]
        )
        return Release.from_totals(self.manifest, noised_totals)


def digest_ids(ids: Iterable[Any]) -> tuple[bytes, int]:
    """A digest of ids in their order, and how many there are."""
    digest_state, id_count = hashlib.sha256(), 0
    for id_value in ids:
        id_bytes = format_value(id_value).encode()
        digest_state.update(len(id_bytes).to_bytes(4, "big") + id_bytes)
        id_count += 1
    return digest_state.digest(), id_count
