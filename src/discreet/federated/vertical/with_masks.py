"""A vertical round with masks: products of hidden numbers from randomness that the collector deals.

All is modulo 2^64. The collector and a provider share uniform A (rows x cells) and Z (classes x
cells), the collector and the label provider uniform B (rows x classes); none of it is sent.

    collector        Z' = B^T A - Z                      to the label provider: the correction
    label provider   G = L - B                           to each provider
    provider         E = F - A,  S = G^T A + Z + noise + the opener's pad
    label provider   L^T E + S + Z' = L^T F + noise + pad

L holds the classes and F the cells, as zeros and ones. G and E are uniform to whoever gets them,
S under its pad too. The collector knows A and B, and a provider A and Z, so everything is sealed
for its recipient: whoever held G and B, or E and A, or all of A, Z, Z' and G, would read rows.
Therefore the collector must work with neither side. A provider sends a word for each row and cell.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from discreet.arrays import Integers, Words
from discreet.errors import SchemaError
from discreet.federated.agreement.identity import Card, Identity
from discreet.federated.agreement.manifest import Manifest
from discreet.federated.counters import Layout
from discreet.federated.crypto.masks import SEAL, sealed, stream, unsealed, words
from discreet.federated.service.folder import LARGEST
from discreet.federated.vertical.arithmetic import Way

if TYPE_CHECKING:
    from discreet.federated.crypto.paillier import PrivateKey

__all__ = ["VerticalMasks"]

BLOCK = 1 << 20
"""Words that are expanded at a time."""


class VerticalMasks(Way):
    """Words modulo 2^64 under one-time masks."""

    deals = True

    def __init__(self, manifest: Manifest) -> None:
        super().__init__(manifest)
        for name in self.layouts:
            if self.tables_size(name) > LARGEST:
                raise SchemaError(
                    f"with masks {name} would have to send a word for each of {self.rows} rows and "
                    f"{self._cells(name)} cells; ask for fewer cells, or use Paillier"
                )

    @property
    def labels_size(self) -> int:
        """Bytes of the hidden labels."""
        return 8 * self.rows * self.manifest.layout.classes + SEAL

    def tables_size(self, provider: str) -> int:
        """Bytes of a provider's hidden tables."""
        return 8 * self.rows * self._cells(provider) + self.sums_size(provider) + SEAL

    def sums_size(self, provider: str) -> int:
        """Bytes of the padded sums of one provider's tables."""
        return 8 * self.layouts[provider].size

    def check_key(self, key: PrivateKey | None) -> None:
        """No key is needed."""

    def hide(self, own: Identity, codes: NDArray[Any], key: PrivateKey | None) -> Iterable[bytes]:
        """G = L - B, sealed for each provider."""
        classes = self.manifest.layout.classes
        hidden = np.zeros((self.rows, classes), dtype=np.uint64)
        hidden[np.arange(self.rows), codes] = 1
        dealt = stream(self.pair(own, self.manifest.collector, "dealt rows"))
        hidden -= dealt(hidden.size).reshape(hidden.shape)
        for card in self.manifest.providers:
            yield sealed(self.pair(own, card, "labels"), _bytes(hidden))

    def read_labels(self, own: Identity, payload: bytes) -> Words:
        """G, as an array of shape (rows, classes)."""
        content = unsealed(self.pair(own, self.label, "labels"), payload)
        return _words(content).reshape(self.rows, -1)

    def tables(
        self, own: Identity, labels: Words, columns: Mapping[str, Any], noise: Integers
    ) -> bytes:
        """E and S, sealed for the label provider."""
        layout = self.layouts[own.name]
        hidden = np.concatenate(list(self.weights(layout, columns)), axis=1).view(np.uint64)
        dealt = stream(self.pair(own, self.manifest.collector, "dealt rows"))
        product = np.zeros((layout.classes, hidden.shape[1]), dtype=np.uint64)
        for rows in self._blocks(hidden.shape[1]):
            mask = dealt(hidden[rows].size).reshape(hidden[rows].shape)
            product += _product(labels[rows], mask)
            hidden[rows] -= mask
        sums = _ordered(layout, product) + noise.view(np.uint64)
        for other, purpose in (
            (self.manifest.collector, "dealt sums"),
            (self.manifest.opener, "opening"),
        ):
            sums += words(self.pair(own, other, purpose), sums.size)
        return sealed(self.pair(own, self.label, "tables"), _bytes(hidden) + _bytes(sums))

    def read_tables(self, own: Identity, sender: Card, payload: bytes) -> tuple[Layout, bytes]:
        """E and S, as bytes."""
        content = unsealed(self.pair(own, sender, "tables"), payload)
        return self.layouts[sender.name], content

    def sums(
        self,
        tables: tuple[Layout, bytes],
        codes: NDArray[Any],
        key: PrivateKey | None,
        correction: bytes,
    ) -> bytes:
        """L^T E + S + Z'; as L is zeros and ones, rows of E are added up by class."""
        layout, content = tables
        padded, whole = content[-8 * layout.size :], _words(content[: -8 * layout.size])
        hidden = whole.reshape(self.rows, -1)
        product = np.stack(
            [hidden[codes == c].sum(axis=0, dtype=np.uint64) for c in range(layout.classes)]
        )
        return _bytes(_ordered(layout, product) + _words(padded) + _words(correction))

    def plus(self, provider: str, sums: bytes, noise: Integers) -> bytes:
        """Sums with one more share of noise."""
        return _bytes(_words(sums) + noise.view(np.uint64))

    def opened(self, own: Identity, provider: Card, sums: bytes) -> Integers:
        """For the opener: the sums without their pad, in the order of the layout."""
        padded = _words(sums)
        return (padded - words(self.pair(own, provider, "opening"), padded.size)).view(np.int64)

    def correction(self, own: Identity) -> bytes:
        """Z' = B^T A - Z for each provider; needs nothing but the keys, and little memory."""
        found = []
        for card in self.manifest.providers:
            layout, cells = self.layouts[card.name], self._cells(card.name)
            of_labels = stream(self.pair(own, self.label, "dealt rows"))
            of_cells = stream(self.pair(own, card, "dealt rows"))
            product = np.zeros((layout.classes, cells), dtype=np.uint64)
            for rows in self._blocks(cells):
                count = rows.stop - rows.start
                mask = of_cells(count * cells).reshape(count, cells)
                product += _product(of_labels(count * layout.classes).reshape(count, -1), mask)
            sums = _ordered(layout, product)
            found.append(_bytes(sums - words(self.pair(own, card, "dealt sums"), sums.size)))
        return b"".join(found)

    def _cells(self, provider: str) -> int:
        layout = self.layouts[provider]
        return layout.size // layout.classes

    def _blocks(self, cells: int) -> Iterator[slice]:
        """Slices of rows, each of at most about a block of words."""
        step = max(1, BLOCK // cells)
        for start in range(0, self.rows, step):
            yield slice(start, min(start + step, self.rows))


def _product(one: Words, two: Words) -> Words:
    """One transposed times two, modulo 2^64."""
    return np.asarray(np.einsum("rc,rd->cd", one, two), dtype=np.uint64)


def _ordered(layout: Layout, product: Words) -> Words:
    """Sums of shape (classes, cells) in the order of the layout."""
    ends = np.cumsum([block.size for block in layout.blocks])[:-1]
    return np.concatenate([part.reshape(-1) for part in np.split(product, ends, axis=1)])


def _bytes(array: Words) -> bytes:
    return array.astype("<u8").tobytes()


def _words(data: bytes) -> Words:
    return np.frombuffer(data, dtype="<u8").astype(np.uint64)
