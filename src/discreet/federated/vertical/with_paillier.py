"""A vertical round with Paillier: the label provider's key, ciphertexts of labels, padded sums.

Providers multiply the ciphertexts of the rows in each cell, pack the products side by side, add
noise and the opener's pad, and refresh the randomness, so that decryption shows nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from discreet.arrays import Integers
from discreet.federated.agreement.identity import Card, Identity
from discreet.federated.agreement.manifest import Manifest
from discreet.federated.crypto.masks import residues
from discreet.federated.crypto.packing import WIDTH
from discreet.federated.payload import Payload
from discreet.federated.refusals import ProtocolError
from discreet.federated.vertical.arithmetic import Way
from discreet.federated.vertical.chunks import Chunks

if TYPE_CHECKING:
    from discreet.federated.crypto.paillier import PrivateKey, PublicKey

__all__ = ["VerticalPaillier"]

STEP = 64
"""Encryptions between two progress reports."""


class VerticalPaillier(Way):
    """Residues modulo N, several counters in each."""

    def __init__(self, manifest: Manifest) -> None:
        super().__init__(manifest)
        assert manifest.paillier is not None
        self.public: PublicKey = manifest.paillier
        self.chunks = {
            name: Chunks(layout, self.public.bits) for name, layout in self.layouts.items()
        }

    @property
    def residue(self) -> int:
        """Bytes of a residue mod N."""
        return -(-self.public.bits // 8)

    @property
    def labels_size(self) -> int:
        """Bytes of the hidden labels."""
        return self.rows * self.public.width

    def tables_size(self, provider: str) -> int:
        """Bytes of a provider's hidden tables."""
        return self.chunks[provider].count * self.public.width

    def sums_size(self, provider: str) -> int:
        """Bytes of the padded sums of one provider's tables."""
        return self.chunks[provider].count * self.residue

    def check_key(self, key: PrivateKey | None) -> None:
        """Refuse another key than the manifest's."""
        if key is None or key.public.n != self.public.n:
            raise ProtocolError("wrong-manifest", "the manifest names another Paillier key")

    def hide(
        self, own: Identity, codes: NDArray[Any], key: PrivateKey | None
    ) -> Callable[[Card], Iterable[bytes]]:
        """Encrypt one label per row; all providers get the same ciphertexts."""
        from discreet.federated.crypto.paillier import Encryptor

        encryptor, hidden = Encryptor(self.public, self.rows, key), []
        for row, code in enumerate(codes.tolist()):
            hidden.append(encryptor.encrypt(1 << WIDTH * code))
            if not row % STEP:
                self.advance("encrypting labels", row, self.rows)
        payload = self.public.to_bytes(hidden)
        return lambda card: [payload]

    def read_labels(self, own: Identity, payload: Payload) -> list[Any]:
        """The ciphertexts, checked."""
        return self.public.from_bytes(payload.read(), self.rows)

    def tables(
        self, own: Identity, labels: list[Any], columns: Mapping[str, Any], noise: Integers
    ) -> Iterable[bytes]:
        """Products of labels with noise and pad, in as few ciphertexts as they fit."""
        chunks, products = self.chunks[own.name], []
        self.check_rows(chunks.layout, columns)
        for weights in self.weights(chunks.layout, columns):
            for column in weights.T:
                products.append(self.public.add(self._weighted(labels, column)))
                self.advance("multiplying labels", len(products), sum(chunks.widths))
        sums = self._packed(chunks, products)
        pads = residues(self.pair(own, self.manifest.opener, "opening"), len(sums), self.public.n)
        hidden = [
            self.public.refresh(one * self.public.embed(a + b) % self.public.modulus)
            for one, a, b in zip(sums, pads, chunks.pack(noise), strict=True)
        ]
        return [self.public.to_bytes(hidden)]

    def _weighted(self, labels: list[Any], column: Integers) -> Iterable[Any]:
        rows = np.flatnonzero(column)
        for row, weight in zip(rows.tolist(), column[rows].tolist(), strict=True):
            yield labels[row] if weight == 1 else self.public.scale(labels[row], weight)

    def _packed(self, chunks: Chunks, columns: list[Any]) -> list[Any]:
        """Columns side by side, by Horner's rule."""
        packed, start = [], 0
        for width in chunks.widths:
            whole = columns[start + width - 1]
            for column in reversed(columns[start : start + width - 1]):
                whole = self.public.scale(whole, 1 << chunks.shift) * column % self.public.modulus
            packed.append(whole)
            start += width
        return packed

    def read_tables(
        self, own: Identity, sender: Card, payload: Payload, codes: NDArray[Any]
    ) -> list[Any]:
        """The ciphertexts, checked."""
        return self.public.from_bytes(payload.read(), self.chunks[sender.name].count)

    def sums(self, tables: list[Any], key: PrivateKey | None, correction: bytes) -> bytes:
        """The padded sums, decrypted."""
        assert key is not None
        found = []
        for number, one in enumerate(tables):
            found.append(key.decrypt(one).to_bytes(self.residue, "big"))
            self.advance("decrypting sums", number + 1, len(tables))
        return b"".join(found)

    def plus(self, provider: str, sums: bytes, noise: Integers) -> bytes:
        """Sums with one more share of noise; numbers beyond N are refused."""
        shares = self.chunks[provider].pack(noise)
        return b"".join(
            ((value + share) % self.public.n).to_bytes(self.residue, "big")
            for value, share in zip(self._residues(sums), shares, strict=True)
        )

    def opened(self, own: Identity, provider: Card, sums: bytes) -> Integers:
        """For the opener: the sums without their pad, in the order of the layout."""
        chunks = self.chunks[provider.name]
        pads = residues(self.pair(own, provider, "opening"), chunks.count, self.public.n)
        padded = self._residues(sums)
        return chunks.unpack([(a - b) % self.public.n for a, b in zip(padded, pads, strict=True)])

    def _residues(self, sums: bytes) -> list[int]:
        step = self.residue
        found = [int.from_bytes(sums[i : i + step], "big") for i in range(0, len(sums), step)]
        if any(one >= self.public.n for one in found):
            raise ProtocolError("out-of-range", "a sum is not a residue modulo N")
        return found
