"""A vertical round with masks: products of hidden numbers from randomness that the collector deals.

All is modulo 2^32, or modulo 2^64 where sums or noise may be larger than that. The collector and a
provider share uniform A (rows x cells) and Z (classes x cells), the collector and the label
provider uniform B (rows x classes); none of it is sent.

    collector        Z' = B^T A - Z                      to the label provider: the correction
    label provider   G = L - B                           to each provider
    provider         E = F - A,  S = G^T A + Z + noise + the opener's pad
    label provider   L^T E + S + Z' = L^T F + noise + pad

L holds the classes and F the cells, as zeros and ones. G and E are uniform to whoever gets them,
S under its pad too. The collector knows A and B, and a provider A and Z, so everything is sealed
for its recipient: whoever held G and B, or E and A, or all of A, Z, Z' and G, would read rows.
Therefore the collector must work with neither side. A provider sends a word for each row and cell;
nobody holds more than a block of rows in memory.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from discreet.arrays import Integers
from discreet.errors import SchemaError
from discreet.federated.agreement.identity import Card, Identity
from discreet.federated.agreement.manifest import Manifest
from discreet.federated.counters import Layout
from discreet.federated.crypto.masks import stream, words
from discreet.federated.crypto.sealing import seal, sealed_length, unseal
from discreet.federated.payload import Payload, Reader
from discreet.federated.vertical.arithmetic import Way

if TYPE_CHECKING:
    from discreet.federated.crypto.paillier import PrivateKey

__all__ = ["VerticalMasks"]

BLOCK = 1 << 18
"""Words that are expanded at a time."""
LARGEST = 1 << 36
"""Bytes of a provider's tables at most."""
RARE = 1000
"""Bound of a noise share in noise scales; exceeded with probability about exp(-1000)."""


class VerticalMasks(Way):
    """Words modulo 2^32 or 2^64 under one-time masks."""

    deals = True

    def __init__(self, manifest: Manifest) -> None:
        super().__init__(manifest)
        self.width = self._width()
        self.word: Any = np.dtype(f"<u{self.width}")
        for name in self.layouts:
            if self.tables_size(name) > LARGEST:
                raise SchemaError(
                    f"with masks {name} would have to send a word for each of {self.rows} rows and "
                    f"{self._cells(name)} cells; ask for fewer cells, or use Paillier"
                )

    def _width(self) -> int:
        """Bytes of a word: four if no sum of counts and three shares of noise can need more.

        Should one nevertheless, it is reduced with its noise in it, so privacy does not depend
        on this.
        """
        largest = max(
            block.sensitivity * self.rows + 3 * RARE * math.ceil(noise.scale)
            for block, noise in self.manifest.noises.items()
        )
        return 4 if largest < 1 << 31 else 8

    @property
    def labels_size(self) -> int:
        """Bytes of the hidden labels."""
        return sealed_length(self.width * self.rows * self.manifest.layout.classes)

    def tables_size(self, provider: str) -> int:
        """Bytes of a provider's hidden tables."""
        hidden = self.width * self.rows * self._cells(provider)
        return sealed_length(hidden + self.sums_size(provider))

    def sums_size(self, provider: str) -> int:
        """Bytes of the padded sums of one provider's tables."""
        return self.width * self.layouts[provider].size

    def check_key(self, key: PrivateKey | None) -> None:
        """No key is needed."""

    def hide(
        self, own: Identity, codes: NDArray[Any], key: PrivateKey | None
    ) -> Callable[[Card], Iterable[bytes]]:
        """G = L - B, sealed for each provider."""
        return lambda card: seal(self.pair(own, card, "labels"), self._hidden(own, codes))

    def _hidden(self, own: Identity, codes: NDArray[Any]) -> Iterator[bytes]:
        classes = self.manifest.layout.classes
        dealt = stream(self.pair(own, self.manifest.collector, "dealt rows"), self.width)
        for rows in self._blocks(classes, "hiding labels"):
            count = rows.stop - rows.start
            hidden = np.zeros((count, classes), dtype=self.word)
            hidden[np.arange(count), codes[rows]] = 1
            yield (hidden - dealt(hidden.size).reshape(hidden.shape)).tobytes()

    def read_labels(self, own: Identity, payload: Payload) -> Callable[[], Iterator[bytes]]:
        """Check G completely; returns a function that yields its bytes, any number of times."""

        def content() -> Iterator[bytes]:
            return unseal(self.pair(own, self.label, "labels"), payload.pieces())

        for _ in content():
            pass
        return content

    def tables(
        self,
        own: Identity,
        labels: Callable[[], Iterator[bytes]],
        columns: Mapping[str, Any],
        noise: Integers,
    ) -> Iterable[bytes]:
        """E and S, sealed for the label provider."""
        self.check_rows(self.layouts[own.name], columns)
        key = self.pair(own, self.label, "tables")
        return seal(key, self._tables(own, labels(), columns, noise))

    def _tables(
        self, own: Identity, labels: Iterator[bytes], columns: Mapping[str, Any], noise: Integers
    ) -> Iterator[bytes]:
        layout, cells = self.layouts[own.name], self._cells(own.name)
        held = {one.feature: columns[one.feature] for one in layout.wanted}
        dealt = stream(self.pair(own, self.manifest.collector, "dealt rows"), self.width)
        product = np.zeros((layout.classes, cells), dtype=self.word)
        reader = Reader(labels)
        for rows in self._blocks(cells, "hiding tables"):
            count = rows.stop - rows.start
            part = reader.take(count * layout.classes * self.width)
            mask = dealt(count * cells).reshape(count, cells)
            product += _product(self._words(part).reshape(count, -1), mask)
            some = {name: column[rows] for name, column in held.items()}
            hidden = np.concatenate(list(self.weights(layout, some)), axis=1).astype(self.word)
            yield (hidden - mask).tobytes()
        sums = _ordered(layout, product) + noise.astype(self.word)
        for other, purpose in (
            (self.manifest.collector, "dealt sums"),
            (self.manifest.opener, "opening"),
        ):
            sums += words(self.pair(own, other, purpose), sums.size, self.width)
        yield sums.tobytes()

    def read_tables(
        self, own: Identity, sender: Card, payload: Payload, codes: NDArray[Any]
    ) -> bytes:
        """L^T E + S; as L is zeros and ones, rows of E are added up by class."""
        layout, cells = self.layouts[sender.name], self._cells(sender.name)
        product = np.zeros((layout.classes, cells), dtype=self.word)
        reader = Reader(unseal(self.pair(own, sender, "tables"), payload.pieces()))
        for rows in self._blocks(cells, f"adding up the tables of {sender.name}"):
            data = reader.take((rows.stop - rows.start) * cells * self.width)
            hidden, some = self._words(data).reshape(-1, cells), codes[rows]
            for c in range(layout.classes):
                product[c] += hidden[some == c].sum(axis=0, dtype=self.word)
        return self._bytes(_ordered(layout, product) + self._words(reader.rest()))

    def sums(self, tables: bytes, key: PrivateKey | None, correction: bytes) -> bytes:
        """L^T E + S + Z'."""
        return self._bytes(self._words(tables) + self._words(correction))

    def plus(self, provider: str, sums: bytes, noise: Integers) -> bytes:
        """Sums with one more share of noise."""
        return self._bytes(self._words(sums) + noise.astype(self.word))

    def opened(self, own: Identity, provider: Card, sums: bytes) -> Integers:
        """For the opener: the sums without their pad, in the order of the layout."""
        padded = self._words(sums)
        pad = words(self.pair(own, provider, "opening"), padded.size, self.width)
        return np.asarray((padded - pad).view(f"<i{self.width}"), dtype=np.int64)

    def correction(self, own: Identity) -> bytes:
        """Z' = B^T A - Z for each provider; needs nothing but the keys, and little memory."""
        found = []
        for card in self.manifest.providers:
            layout, cells = self.layouts[card.name], self._cells(card.name)
            of_labels = stream(self.pair(own, self.label, "dealt rows"), self.width)
            of_cells = stream(self.pair(own, card, "dealt rows"), self.width)
            product = np.zeros((layout.classes, cells), dtype=self.word)
            for rows in self._blocks(cells, f"dealing masks for {card.name}"):
                count = rows.stop - rows.start
                mask = of_cells(count * cells).reshape(count, cells)
                product += _product(of_labels(count * layout.classes).reshape(count, -1), mask)
            sums = _ordered(layout, product)
            pad = words(self.pair(own, card, "dealt sums"), sums.size, self.width)
            found.append(self._bytes(sums - pad))
        return b"".join(found)

    def _cells(self, provider: str) -> int:
        layout = self.layouts[provider]
        return layout.size // layout.classes

    def _blocks(self, cells: int, what: str = "") -> Iterator[slice]:
        """Slices of rows, each of at most about a block of words."""
        step = max(1, BLOCK // cells)
        for start in range(0, self.rows, step):
            rows = slice(start, min(start + step, self.rows))
            yield rows
            if what:
                self.advance(what, rows.stop, self.rows)

    def _words(self, data: bytes) -> Any:
        return np.frombuffer(data, dtype=self.word)

    def _bytes(self, array: Any) -> bytes:
        return bytes(array.astype(self.word).tobytes())


def _product(one: Any, two: Any) -> Any:
    """One transposed times two, modulo the size of a word."""
    return np.einsum("rc,rd->cd", one, two)


def _ordered(layout: Layout, product: Any) -> Any:
    """Sums of shape (classes, cells) in the order of the layout."""
    ends = np.cumsum([block.size for block in layout.blocks])[:-1]
    return np.concatenate([part.reshape(-1) for part in np.split(product, ends, axis=1)])
