"""A vertical round with Paillier: the label provider's key, ciphertexts of labels, padded sums.

Providers multiply the ciphertexts of the rows in each cell, pack the products side by side, add
noise and the opener's pad, and refresh the randomness, so that decryption shows nothing.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from discreet.arrays import Integers
from discreet.federated.agreement.identity import Card, Identity
from discreet.federated.agreement.manifest import Manifest
from discreet.federated.crypto.masks import expand_residues
from discreet.federated.crypto.packing import SLOT_BITS
from discreet.federated.payload import Payload
from discreet.federated.refusals import ProtocolError
from discreet.federated.vertical.plaintext_layout import PlaintextLayout
from discreet.federated.vertical.protocol import (
    ClassCodes,
    Columns,
    LabelHider,
    TableHider,
    TableSummer,
    VerticalProtocol,
)

if TYPE_CHECKING:
    from discreet.federated.crypto.paillier import Ciphertext, PrivateKey, PublicKey

__all__ = ["VerticalPaillier"]

PROGRESS_STEP = 64
"""Encryptions between two progress reports."""


class VerticalPaillier(VerticalProtocol):
    """Residues modulo N, several counters in each."""

    def __init__(self, manifest: Manifest) -> None:
        super().__init__(manifest)
        assert manifest.paillier is not None
        self.public: PublicKey = manifest.paillier
        self.plaintext_layouts = {
            name: PlaintextLayout(layout, self.public.bits) for name, layout in self.layouts.items()
        }

    @property
    def residue_bytes(self) -> int:
        """Bytes of a residue mod N."""
        return -(-self.public.bits // 8)

    @property
    def labels_size(self) -> int:
        """Bytes of the hidden labels."""
        return self.row_count * self.public.ciphertext_bytes

    def compute_tables_size(self, provider: str) -> int:
        """Bytes of a provider's hidden tables."""
        return self.plaintext_layouts[provider].plaintext_count * self.public.ciphertext_bytes

    def compute_sums_size(self, provider: str) -> int:
        """Bytes of the padded sums of one provider's tables."""
        return self.plaintext_layouts[provider].plaintext_count * self.residue_bytes

    def check_key(self, private_key: PrivateKey | None) -> None:
        """Refuse another key than the manifest's."""
        if private_key is None or private_key.public.n != self.public.n:
            raise ProtocolError("wrong-manifest", "the manifest names another Paillier key")

    def make_label_hider(
        self, identity: Identity, class_codes: ClassCodes, private_key: PrivateKey | None
    ) -> LabelHider:
        """Encrypt one label per row; all providers get the same ciphertexts."""
        from discreet.federated.crypto.paillier import Encryptor

        encryptor, ciphertexts = Encryptor(self.public, self.row_count, private_key), []
        for row_index, class_code in enumerate(class_codes.tolist()):
            ciphertexts.append(encryptor.encrypt(1 << SLOT_BITS * class_code))
            if not row_index % PROGRESS_STEP:
                self.report_progress("encrypting labels", row_index, self.row_count)
        label_bytes = self.public.to_bytes(ciphertexts)
        return lambda card: [label_bytes]

    def make_table_hider(self, identity: Identity, payload: Payload) -> TableHider:
        """Check the ciphertexts; what is returned gives products with noise and pad."""
        hidden_labels = self.public.from_bytes(payload.read(), self.row_count)
        return partial(self._hide_tables, identity, hidden_labels)

    def _hide_tables(
        self,
        identity: Identity,
        hidden_labels: list[Ciphertext],
        columns: Columns,
        noise_share: Integers,
    ) -> Iterable[bytes]:
        """Products of labels with noise and pad, in as few ciphertexts as they fit."""
        plaintext_layout, column_products = self.plaintext_layouts[identity.name], []
        self.check_row_count(plaintext_layout.layout, columns)
        for row_weights in self.iter_row_weights(plaintext_layout.layout, columns):
            for column_weights in row_weights.T:
                column_products.append(
                    self.public.add(self._iter_weighted_labels(hidden_labels, column_weights))
                )
                self.report_progress(
                    "multiplying labels",
                    len(column_products),
                    sum(plaintext_layout.columns_per_plaintext),
                )
        packed_sums = self._pack_columns(plaintext_layout, column_products)
        pad_residues = expand_residues(
            self.derive_pair_key(identity, self.manifest.opener, "opening"),
            len(packed_sums),
            self.public.n,
        )
        padded_ciphertexts = [
            self.public.refresh_ciphertext(
                ciphertext
                * self.public.embed_plaintext(pad_residue + noise_plaintext)
                % self.public.n_squared
            )
            for ciphertext, pad_residue, noise_plaintext in zip(
                packed_sums, pad_residues, plaintext_layout.pack_vector(noise_share), strict=True
            )
        ]
        return [self.public.to_bytes(padded_ciphertexts)]

    def _iter_weighted_labels(
        self, hidden_labels: list[Ciphertext], column_weights: Integers
    ) -> Iterable[Ciphertext]:
        row_indices = np.flatnonzero(column_weights)
        for row_index, weight in zip(
            row_indices.tolist(), column_weights[row_indices].tolist(), strict=True
        ):
            yield (
                hidden_labels[row_index]
                if weight == 1
                else self.public.scale_ciphertext(hidden_labels[row_index], weight)
            )

    def _pack_columns(
        self, plaintext_layout: PlaintextLayout, columns: list[Ciphertext]
    ) -> list[Ciphertext]:
        """Columns side by side, by Horner's rule."""
        packed_columns, start = [], 0
        for column_count in plaintext_layout.columns_per_plaintext:
            packed_column = columns[start + column_count - 1]
            for column in reversed(columns[start : start + column_count - 1]):
                packed_column = (
                    self.public.scale_ciphertext(packed_column, 1 << plaintext_layout.column_bits)
                    * column
                    % self.public.n_squared
                )
            packed_columns.append(packed_column)
            start += column_count
        return packed_columns

    def make_table_summer(
        self, identity: Identity, sender: Card, payload: Payload, class_codes: ClassCodes
    ) -> TableSummer:
        """Check the ciphertexts; what is returned decrypts the padded sums."""
        hidden_tables = self.public.from_bytes(
            payload.read(), self.plaintext_layouts[sender.name].plaintext_count
        )
        return lambda private_key, correction: self._decrypt_sums(hidden_tables, private_key)

    def _decrypt_sums(
        self, hidden_tables: list[Ciphertext], private_key: PrivateKey | None
    ) -> bytes:
        assert private_key is not None
        residue_pieces = []
        for ciphertext_index, ciphertext in enumerate(hidden_tables):
            residue_pieces.append(
                private_key.decrypt(ciphertext).to_bytes(self.residue_bytes, "big")
            )
            self.report_progress("decrypting sums", ciphertext_index + 1, len(hidden_tables))
        return b"".join(residue_pieces)

    def add_noise_share(self, provider: str, padded_sums: bytes, noise_share: Integers) -> bytes:
        """Sums with one more share of noise; numbers beyond N are refused."""
        share_plaintexts = self.plaintext_layouts[provider].pack_vector(noise_share)
        return b"".join(
            ((padded_residue + share_plaintext) % self.public.n).to_bytes(self.residue_bytes, "big")
            for padded_residue, share_plaintext in zip(
                self._parse_residues(padded_sums), share_plaintexts, strict=True
            )
        )

    def open_sums(self, identity: Identity, provider: Card, padded_sums: bytes) -> Integers:
        """For the opener: the sums without their pad, in the order of the layout."""
        plaintext_layout = self.plaintext_layouts[provider.name]
        pad_residues = expand_residues(
            self.derive_pair_key(identity, provider, "opening"),
            plaintext_layout.plaintext_count,
            self.public.n,
        )
        padded_residues = self._parse_residues(padded_sums)
        return plaintext_layout.unpack_vector(
            [
                (padded_residue - pad_residue) % self.public.n
                for padded_residue, pad_residue in zip(padded_residues, pad_residues, strict=True)
            ]
        )

    def _parse_residues(self, padded_sums: bytes) -> list[int]:
        residue_size = self.residue_bytes
        residues = [
            int.from_bytes(padded_sums[offset : offset + residue_size], "big")
            for offset in range(0, len(padded_sums), residue_size)
        ]
        if any(residue >= self.public.n for residue in residues):
            raise ProtocolError("out-of-range", "a sum is not a residue modulo N")
        return residues
