"""What all machines of a vertical round share: packed shares of noise, padded sums, row order."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from discreet.federated.chunks import Chunks
from discreet.federated.identity import Card, Identity
from discreet.federated.manifest import Manifest
from discreet.federated.masks import pair_key, residues, tag
from discreet.federated.messages import Message
from discreet.federated.refusals import ProtocolError
from discreet.federated.release import Release
from discreet.federated.slots import checked
from discreet.randomness import Random
from discreet.schema import text_of

if TYPE_CHECKING:
    from discreet.federated.paillier import PublicKey

__all__ = ["TAG", "VerticalParty"]

Integers = NDArray[np.int64]
TAG = 32
"""Bytes of the proof that two parties hold the same rows."""


class VerticalParty:
    """A party of a vertical round, in whatever role."""

    def __init__(self, own: Identity, manifest: Manifest, card: Card | None, role: str) -> None:
        if manifest.partition != "vertical":
            raise ProtocolError("wrong-manifest", "this is a horizontal round")
        if card != own.card:
            raise ProtocolError("unknown-sender", f"{own.name} is not the {role} of this round")
        assert manifest.paillier is not None
        assert manifest.label is not None
        assert manifest.rows is not None
        self.own, self.manifest = own, manifest
        self.public: PublicKey = manifest.paillier
        self.label, self.rows = manifest.label, manifest.rows
        self.chunks = {
            card.name: Chunks(manifest.layout.only(manifest.columns[card.name]), self.public.bits)
            for card in manifest.providers
        }

    @property
    def residue(self) -> int:
        """Bytes of a residue mod N."""
        return -(-self.public.bits // 8)

    def _send(self, kind: str, recipient: str, payload: bytes) -> Message:
        return Message.create(self.own, self.manifest, kind, recipient, payload)

    def _share(self, provider: str, random: Random) -> list[int]:
        """A share of the noise of one provider's tables, packed."""
        chunks = self.chunks[provider]
        drawn = self.manifest.share(chunks.layout, random)
        return chunks.pack(checked(drawn, 3))

    def _with_share(self, residues_of: list[list[int]], random: Random) -> bytes:
        """All providers' sums with a further share of noise, as bytes."""
        parts = []
        for card, own in zip(self.manifest.providers, residues_of, strict=True):
            shares = self._share(card.name, random)
            for value, share in zip(own, shares, strict=True):
                parts.append(((value + share) % self.public.n).to_bytes(self.residue, "big"))
        return b"".join(parts)

    def _residues(self, payload: bytes) -> list[list[int]]:
        """What :meth:`_with_share` wrote, one list a provider."""
        parts = [
            int.from_bytes(payload[i : i + self.residue], "big")
            for i in range(0, len(payload), self.residue)
        ]
        if any(part >= self.public.n for part in parts):
            raise ProtocolError("out-of-range", "a sum is not a residue modulo N")
        counts = [self.chunks[card.name].count for card in self.manifest.providers]
        ends = np.cumsum(counts).tolist()
        return [parts[end - count : end] for count, end in zip(counts, ends, strict=True)]

    @property
    def _sums(self) -> range:
        length = self.residue * sum(chunks.count for chunks in self.chunks.values())
        return range(length, length + 1)

    def _order(self, other: Card, ids: Iterable[Any] | None) -> bytes:
        """A proof for one other party that one's rows are these, in this order."""
        texts = [text_of(one).encode() for one in ids] if ids is not None else []
        if ids is not None and len(texts) != self.rows:
            raise ProtocolError("wrong-rows", f"{len(texts)} ids, but {self.rows} rows were agreed")
        whole = hashlib.sha256(b"".join(len(t).to_bytes(4, "big") + t for t in texts)).digest()
        return tag(pair_key(self.own, other, self.manifest.hash, "order"), whole)

    def _opened(self, sums: list[list[int]]) -> Release:
        """For the opener: take the pads away and unpack."""
        found: dict[Any, Integers] = {}
        for card, padded in zip(self.manifest.providers, sums, strict=True):
            chunks = self.chunks[card.name]
            key = pair_key(self.own, card, self.manifest.hash, "opening")
            pads = residues(key, chunks.count, self.public.n)
            plain = [(a - b) % self.public.n for a, b in zip(padded, pads, strict=True)]
            found |= {b: t.reshape(-1) for b, t in chunks.layout.split(chunks.unpack(plain))}
        vector = np.concatenate([found[block] for block in self.manifest.layout.blocks])
        return Release.of(self.manifest, vector)
