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
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

import numpy as np

from discreet.arrays import Array, Integers
from discreet.errors import SchemaError
from discreet.federated.agreement.identity import Card, Identity
from discreet.federated.agreement.manifest import Manifest
from discreet.federated.counters import Layout
from discreet.federated.crypto.masks import expand_words, make_word_stream
from discreet.federated.crypto.sealing import compute_sealed_length, seal, unseal
from discreet.federated.payload import Payload, PieceReader
from discreet.federated.vertical.protocol import (
    ClassCodes,
    Columns,
    LabelHider,
    TableHider,
    TableSummer,
    VerticalProtocol,
)

if TYPE_CHECKING:
    from discreet.federated.crypto.paillier import PrivateKey

__all__ = ["VerticalMasks"]

BLOCK_WORDS = 1 << 18
"""Words that are expanded at a time."""
MAX_TABLES_BYTES = 1 << 36
"""Bytes of a provider's tables at most."""
MAX_NOISE_SCALES = 1000
"""Bound of a noise share in noise scales; exceeded with probability about exp(-1000)."""


class VerticalMasks(VerticalProtocol):
    """Words modulo 2^32 or 2^64 under one-time masks."""

    needs_correction = True

    def __init__(self, manifest: Manifest) -> None:
        super().__init__(manifest)
        self.word_bytes = self._compute_word_bytes()
        self.word_type = np.dtype(f"<u{self.word_bytes}")
        for name in self.layouts:
            if self.compute_tables_size(name) > MAX_TABLES_BYTES:
                raise SchemaError(
                    f"with masks {name} would have to send a word for each of {self.row_count} "
                    f"rows and {self._count_cells(name)} cells; ask for fewer cells, or use "
                    "Paillier"
                )

    def _compute_word_bytes(self) -> int:
        """Bytes of a word: four if no sum of counts and three shares of noise can need more.

        Should one nevertheless, it is reduced with its noise in it, so privacy does not depend
        on this.
        """
        largest_sum = max(
            block.sensitivity * self.row_count + 3 * MAX_NOISE_SCALES * math.ceil(noise.scale)
            for block, noise in self.manifest.block_noises.items()
        )
        return 4 if largest_sum < 1 << 31 else 8

    @property
    def labels_size(self) -> int:
        """Bytes of the hidden labels."""
        return compute_sealed_length(self.word_bytes * self.row_count * self.class_count)

    def compute_tables_size(self, provider: str) -> int:
        """Bytes of a provider's hidden tables."""
        hidden_bytes = self.word_bytes * self.row_count * self._count_cells(provider)
        return compute_sealed_length(hidden_bytes + self.compute_sums_size(provider))

    def compute_sums_size(self, provider: str) -> int:
        """Bytes of the padded sums of one provider's tables."""
        return self.word_bytes * self.layouts[provider].size

    def check_key(self, private_key: PrivateKey | None) -> None:
        """No key is needed."""

    def make_label_hider(
        self, identity: Identity, class_codes: ClassCodes, private_key: PrivateKey | None
    ) -> LabelHider:
        """G = L - B, sealed for each provider."""
        return lambda card: seal(
            self.derive_pair_key(identity, card, "labels"),
            self._iter_hidden_labels(identity, class_codes),
        )

    def _iter_hidden_labels(self, identity: Identity, class_codes: ClassCodes) -> Iterator[bytes]:
        draw_mask_words = make_word_stream(
            self.derive_pair_key(identity, self.manifest.collector, "dealt rows"), self.word_bytes
        )
        for row_block in self._iter_row_blocks(self.class_count, "hiding labels"):
            row_count = row_block.stop - row_block.start
            label_words = np.zeros((row_count, self.class_count), dtype=self.word_type)
            label_words[np.arange(row_count), class_codes[row_block]] = 1
            yield (
                label_words - draw_mask_words(label_words.size).reshape(label_words.shape)
            ).tobytes()

    def make_table_hider(self, identity: Identity, payload: Payload) -> TableHider:
        """Check G completely; what is returned gives E and S, sealed for the label provider."""

        def iter_content() -> Iterator[bytes]:
            return unseal(
                self.derive_pair_key(identity, self.label_provider, "labels"), payload.iter_pieces()
            )

        def hide_tables(columns: Columns, noise_share: Integers) -> Iterable[bytes]:
            self.check_row_count(self.layouts[identity.name], columns)
            return seal(
                self.derive_pair_key(identity, self.label_provider, "tables"),
                self._iter_hidden_tables(identity, iter_content(), columns, noise_share),
            )

        for _ in iter_content():
            pass
        return hide_tables

    def _iter_hidden_tables(
        self,
        identity: Identity,
        hidden_labels: Iterator[bytes],
        columns: Columns,
        noise_share: Integers,
    ) -> Iterator[bytes]:
        layout, cell_count = self.layouts[identity.name], self._count_cells(identity.name)
        own_columns = {request.feature: columns[request.feature] for request in layout.requests}
        draw_mask_words = make_word_stream(
            self.derive_pair_key(identity, self.manifest.collector, "dealt rows"), self.word_bytes
        )
        label_product = np.zeros((self.class_count, cell_count), dtype=self.word_type)
        reader = PieceReader(hidden_labels)
        for row_block in self._iter_row_blocks(cell_count, "hiding tables"):
            row_count = row_block.stop - row_block.start
            label_bytes = reader.read_bytes(row_count * self.class_count * self.word_bytes)
            cell_mask = draw_mask_words(row_count * cell_count).reshape(row_count, cell_count)
            label_product += _multiply_transposed(
                self._to_words(label_bytes).reshape(row_count, -1), cell_mask
            )
            block_columns = {name: column[row_block] for name, column in own_columns.items()}
            cell_words = np.concatenate(
                list(self.iter_row_weights(layout, block_columns)), axis=1
            ).astype(self.word_type)
            yield (cell_words - cell_mask).tobytes()
        padded_sums = _to_layout_order(layout, label_product) + noise_share.astype(self.word_type)
        for peer, purpose in (
            (self.manifest.collector, "dealt sums"),
            (self.manifest.opener, "opening"),
        ):
            padded_sums += expand_words(
                self.derive_pair_key(identity, peer, purpose), padded_sums.size, self.word_bytes
            )
        yield padded_sums.tobytes()

    def make_table_summer(
        self, identity: Identity, sender: Card, payload: Payload, class_codes: ClassCodes
    ) -> TableSummer:
        """L^T E + S; as L is zeros and ones, rows of E are added up by class. Z' comes later."""
        layout, cell_count = self.layouts[sender.name], self._count_cells(sender.name)
        class_sums = np.zeros((self.class_count, cell_count), dtype=self.word_type)
        reader = PieceReader(
            unseal(self.derive_pair_key(identity, sender, "tables"), payload.iter_pieces())
        )
        for row_block in self._iter_row_blocks(
            cell_count, f"adding up the tables of {sender.name}"
        ):
            block_bytes = reader.read_bytes(
                (row_block.stop - row_block.start) * cell_count * self.word_bytes
            )
            hidden_rows = self._to_words(block_bytes).reshape(-1, cell_count)
            block_codes = class_codes[row_block]
            for class_index in range(self.class_count):
                class_sums[class_index] += hidden_rows[block_codes == class_index].sum(
                    axis=0, dtype=self.word_type
                )
        padded_sums = _to_layout_order(layout, class_sums) + self._to_words(reader.read_remainder())
        return lambda private_key, correction: self._to_bytes(
            padded_sums + self._to_words(correction)
        )

    def add_noise_share(self, provider: str, padded_sums: bytes, noise_share: Integers) -> bytes:
        """Sums with one more share of noise."""
        return self._to_bytes(self._to_words(padded_sums) + noise_share.astype(self.word_type))

    def open_sums(self, identity: Identity, provider: Card, padded_sums: bytes) -> Integers:
        """For the opener: the sums without their pad, in the order of the layout."""
        padded_words = self._to_words(padded_sums)
        pad_words = expand_words(
            self.derive_pair_key(identity, provider, "opening"), padded_words.size, self.word_bytes
        )
        return np.asarray((padded_words - pad_words).view(f"<i{self.word_bytes}"), dtype=np.int64)

    def compute_correction(self, identity: Identity) -> bytes:
        """Z' = B^T A - Z for each provider; needs nothing but the keys, and little memory."""
        corrections = []
        for card in self.manifest.providers:
            layout, cell_count = self.layouts[card.name], self._count_cells(card.name)
            draw_label_mask = make_word_stream(
                self.derive_pair_key(identity, self.label_provider, "dealt rows"), self.word_bytes
            )
            draw_cell_mask = make_word_stream(
                self.derive_pair_key(identity, card, "dealt rows"), self.word_bytes
            )
            mask_product = np.zeros((self.class_count, cell_count), dtype=self.word_type)
            for row_block in self._iter_row_blocks(cell_count, f"dealing masks for {card.name}"):
                row_count = row_block.stop - row_block.start
                cell_mask = draw_cell_mask(row_count * cell_count).reshape(row_count, cell_count)
                mask_product += _multiply_transposed(
                    draw_label_mask(row_count * self.class_count).reshape(row_count, -1), cell_mask
                )
            mask_sums = _to_layout_order(layout, mask_product)
            pad_words = expand_words(
                self.derive_pair_key(identity, card, "dealt sums"), mask_sums.size, self.word_bytes
            )
            corrections.append(self._to_bytes(mask_sums - pad_words))
        return b"".join(corrections)

    def _count_cells(self, provider: str) -> int:
        layout = self.layouts[provider]
        return layout.size // self.class_count

    def _iter_row_blocks(self, row_words: int, step_name: str = "") -> Iterator[slice]:
        """Slices of rows, each of at most about a block of words."""
        block_rows = max(1, BLOCK_WORDS // row_words)
        for start in range(0, self.row_count, block_rows):
            row_block = slice(start, min(start + block_rows, self.row_count))
            yield row_block
            if step_name:
                self.report_progress(step_name, row_block.stop, self.row_count)

    def _to_words(self, data: bytes) -> Array:
        return np.frombuffer(data, dtype=self.word_type)

    def _to_bytes(self, array: Array) -> bytes:
        return bytes(array.astype(self.word_type).tobytes())


def _multiply_transposed(left: Array, right: Array) -> Array:
    """One transposed times two, modulo the size of a word."""
    return np.asarray(np.einsum("rc,rd->cd", left, right))


def _to_layout_order(layout: Layout, cell_sums: Array) -> Array:
    """Sums of shape (classes, cells) in the order of the layout."""
    block_ends = np.cumsum([block.size for block in layout.blocks])[:-1]
    return np.concatenate(
        [block_sums.reshape(-1) for block_sums in np.split(cell_sums, block_ends, axis=1)]
    )
