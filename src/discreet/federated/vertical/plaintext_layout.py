"""Layout of one provider's class counts in Paillier plaintexts in a vertical round.

A label is the plaintext 2^(64 class), so a product of label ciphertexts holds one counter per
class. Several such columns fit into one plaintext, side by side.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from discreet.arrays import Integers
from discreet.errors import SchemaError
from discreet.federated.counters import Layout
from discreet.federated.crypto.packing import SLOT_BITS, Slots

__all__ = ["PlaintextLayout"]


@dataclass(frozen=True)
class PlaintextLayout:
    """The plaintexts of one provider.

    Parameters
    ----------
    layout : Layout
        Of the features that it holds.
    bits : int
        Of the Paillier modulus.
    """

    layout: Layout
    bits: int

    def __post_init__(self) -> None:
        class_count = len(self.layout.schema.classes)
        if class_count > self.slots.size:
            raise SchemaError(
                f"{class_count} classes do not fit a Paillier key of {self.bits} bits; "
                f"use one of {self.column_bits + 1} bits or more"
            )

    @cached_property
    def slots(self) -> Slots:
        """Three parties add to every slot: the provider, the label provider, the collector."""
        return Slots(self.bits, 3)

    @property
    def column_bits(self) -> int:
        """Bits from one column to the next."""
        return SLOT_BITS * len(self.layout.schema.classes)

    @cached_property
    def columns_per_plaintext(self) -> list[int]:
        """How many columns each plaintext holds."""
        class_count = len(self.layout.schema.classes)
        column_count, max_columns = self.layout.size // class_count, self.slots.size // class_count
        return [
            min(max_columns, column_count - start) for start in range(0, column_count, max_columns)
        ]

    @property
    def plaintext_count(self) -> int:
        """How many plaintexts there are."""
        return len(self.columns_per_plaintext)

    def pack_vector(self, noise_vector: Integers) -> list[int]:
        """Numbers in the order of the layout to plaintexts."""
        column_counts = [table.T.reshape(-1) for _, table in self.layout.split(noise_vector)]
        flat_counts, plaintexts, start = np.concatenate(column_counts), [], 0
        class_count = len(self.layout.schema.classes)
        for column_count in self.columns_per_plaintext:
            end = start + column_count * class_count
            plaintexts += self.slots.pack_counters(flat_counts[start:end])
            start = end
        return plaintexts

    def unpack_vector(self, plaintexts: list[int]) -> Integers:
        """Sums of plaintexts to sums of numbers, in the order of the layout."""
        class_count = len(self.layout.schema.classes)
        flat_counts = np.concatenate(
            [
                self.slots.unpack_counters([plaintext], column_count * class_count)
                for plaintext, column_count in zip(
                    plaintexts, self.columns_per_plaintext, strict=True
                )
            ]
        )
        flat_blocks, start = [], 0
        for block in self.layout.blocks:
            end = start + block.size * class_count
            flat_blocks.append(
                flat_counts[start:end].reshape(block.size, class_count).T.reshape(-1)
            )
            start = end
        return np.concatenate(flat_blocks)
