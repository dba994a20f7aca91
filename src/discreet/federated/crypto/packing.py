"""Pack many signed counters into one plaintext: slots of w bits with an offset.

Each of s parties adds 2^(w - 1 - ceil(log2 s)) to every counter, so all are positive, and the sum
of s of them stays below 2^w: no slot ever reaches into the next. With w = 64 the same bound keeps
sums of counters modulo 2^64 unambiguous, as masks need it; counts alone fit into 48 bits.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from discreet.arrays import Integers
from discreet.errors import PrivacyError
from discreet.federated.refusals import ProtocolError

__all__ = ["NARROW_SLOT_BITS", "SLOT_BITS", "Slots", "check_counters", "compute_counter_bound"]

SLOT_BITS = 64
NARROW_SLOT_BITS = 48
MAX_PARTIES = 1 << 20
"""Parties that a round has at most."""


@dataclass(frozen=True)
class Slots:
    """How counters of several parties lie in plaintexts.

    Parameters
    ----------
    bits : int
        Of the Paillier modulus.
    parties : int
        How many numbers are added in each slot.
    width : int, default 64
        Bits of a slot, a multiple of 8.
    """

    bits: int
    parties: int
    width: int = SLOT_BITS

    def __post_init__(self) -> None:
        if not 1 <= self.parties <= MAX_PARTIES:
            raise PrivacyError(f"{self.parties} parties; a round has 1 to {MAX_PARTIES}")
        if self.size < 1:
            raise PrivacyError(f"a plaintext of {self.bits} bits has no room for a counter")

    @property
    def size(self) -> int:
        """Counters in one plaintext; the highest stays below N."""
        return (self.bits - 1) // self.width

    @property
    def offset(self) -> int:
        """Offset that each party adds to each counter; also the bound of its absolute value."""
        return compute_counter_bound(self.parties, self.width)

    def count_plaintexts(self, counter_count: int) -> int:
        """Return the number of plaintexts that hold this many counters."""
        return -(-counter_count // self.size)

    def pack_counters(self, values: Any) -> list[int]:
        """Counters to plaintexts; one beyond the bound is refused."""
        counters = check_counters(values, self.parties, self.width)
        shifted_counters = (counters.view(np.uint64) + np.uint64(self.offset)).astype("<u8")
        slot_bytes = self.width // 8
        packed_bytes = shifted_counters.view(np.uint8).reshape(-1, 8)[:, :slot_bytes].tobytes()
        plaintext_bytes = slot_bytes * self.size
        return [
            int.from_bytes(packed_bytes[start : start + plaintext_bytes], "little")
            for start in range(0, len(packed_bytes), plaintext_bytes)
        ]

    def unpack_counters(self, plaintexts: list[int], counter_count: int) -> Integers:
        """Sums of all parties' plaintexts to sums of their counters."""
        if len(plaintexts) != self.count_plaintexts(counter_count):
            raise ProtocolError(
                "wrong-length",
                f"{counter_count} counters need {self.count_plaintexts(counter_count)} plaintexts, "
                f"not {len(plaintexts)}",
            )
        slot_bytes, slot_parts = self.width // 8, []
        for plaintext_index, plaintext in enumerate(plaintexts):
            counters_held = min(self.size, counter_count - plaintext_index * self.size)
            if plaintext < 0 or plaintext.bit_length() > self.width * counters_held:
                raise ProtocolError(
                    "out-of-range",
                    "a sum does not fit its slots: a provider left the round or did not follow it",
                )
            slot_parts.append(plaintext.to_bytes(slot_bytes * counters_held, "little"))
        sum_bytes = np.zeros((counter_count, 8), dtype=np.uint8)
        sum_bytes[:, :slot_bytes] = np.frombuffer(b"".join(slot_parts), dtype=np.uint8).reshape(
            counter_count, slot_bytes
        )
        # modulo 2^64; the true sum is below 2^63 in absolute value
        total_shift = np.uint64(self.parties * self.offset % 2**64)
        return (sum_bytes.reshape(-1).view("<u8").astype(np.uint64) - total_shift).view(np.int64)


def compute_counter_bound(party_count: int, slot_bits: int = SLOT_BITS) -> int:
    """Return the bound of absolute values: the sum over all parties is at most half a slot."""
    return 1 << (slot_bits - 1 - (party_count - 1).bit_length())


def check_counters(values: Any, party_count: int, slot_bits: int = SLOT_BITS) -> Integers:
    """Return counters as int64; refuse non-integers and values beyond the bound."""
    counters = np.asarray(values)
    if counters.dtype.kind not in "iu" and not all(
        isinstance(value, int) for value in counters.tolist()
    ):
        raise PrivacyError("counters are whole numbers")
    bound = compute_counter_bound(party_count, slot_bits)
    if counters.size and (int(counters.max()) >= bound or int(counters.min()) <= -bound):
        raise PrivacyError(
            f"a counter is beyond {bound}, the bound for {party_count} parties; "
            "use fewer rows or a coarser grid"
        )
    return counters.astype(np.int64)
