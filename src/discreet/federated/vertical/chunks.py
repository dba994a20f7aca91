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
from discreet.federated.crypto.packing import WIDTH, Slots

__all__ = ["Chunks"]


@dataclass(frozen=True)
class Chunks:
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
        if self.layout.classes > self.slots.size:
            raise SchemaError(
                f"{self.layout.classes} classes do not fit a Paillier key of {self.bits} bits; "
                f"use one of {WIDTH * self.layout.classes + 1} bits or more"
            )

    @cached_property
    def slots(self) -> Slots:
        """Three parties add to every slot: the provider, the label provider, the collector."""
        return Slots(self.bits, 3)

    @property
    def shift(self) -> int:
        """Bits from one column to the next."""
        return WIDTH * self.layout.classes

    @cached_property
    def widths(self) -> list[int]:
        """How many columns each plaintext holds."""
        columns = self.layout.size // self.layout.classes
        most = self.slots.size // self.layout.classes
        return [min(most, columns - start) for start in range(0, columns, most)]

    @property
    def count(self) -> int:
        """How many plaintexts there are."""
        return len(self.widths)

    def pack(self, vector: Integers) -> list[int]:
        """Numbers in the order of the layout to plaintexts."""
        columns = [table.T.reshape(-1) for _, table in self.layout.split(vector)]
        flat, plains, start = np.concatenate(columns), [], 0
        for width in self.widths:
            end = start + width * self.layout.classes
            plains += self.slots.pack(flat[start:end])
            start = end
        return plains

    def unpack(self, plains: list[int]) -> Integers:
        """Sums of plaintexts to sums of numbers, in the order of the layout."""
        classes = self.layout.classes
        flat = np.concatenate(
            [
                self.slots.unpack([plain], width * classes)
                for plain, width in zip(plains, self.widths, strict=True)
            ]
        )
        parts, start = [], 0
        for block in self.layout.blocks:
            end = start + block.size * classes
            parts.append(flat[start:end].reshape(block.size, classes).T.reshape(-1))
            start = end
        return np.concatenate(parts)
