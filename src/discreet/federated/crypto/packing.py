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

__all__ = ["NARROW", "WIDTH", "Slots", "bound_of", "checked"]

WIDTH = 64
NARROW = 48
MOST_PARTIES = 1 << 20


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
    width: int = WIDTH

    def __post_init__(self) -> None:
        if not 1 <= self.parties <= MOST_PARTIES:
            raise PrivacyError(f"{self.parties} parties; a round has 1 to {MOST_PARTIES}")
        if self.size < 1:
            raise PrivacyError(f"a plaintext of {self.bits} bits has no room for a counter")

    @property
    def size(self) -> int:
        """Counters in one plaintext; the highest stays below N."""
        return (self.bits - 1) // self.width

    @property
    def offset(self) -> int:
        """Offset that each party adds to each counter; also the bound of its absolute value."""
        return bound_of(self.parties, self.width)

    def plaintexts(self, counters: int) -> int:
        """Return the number of plaintexts that hold this many counters."""
        return -(-counters // self.size)

    def pack(self, values: Any) -> list[int]:
        """Counters to plaintexts; one beyond the bound is refused."""
        whole = checked(values, self.parties, self.width)
        shifted = (whole.view(np.uint64) + np.uint64(self.offset)).astype("<u8")
        each = self.width // 8
        data = shifted.view(np.uint8).reshape(-1, 8)[:, :each].tobytes()
        step = each * self.size
        return [
            int.from_bytes(data[start : start + step], "little")
            for start in range(0, len(data), step)
        ]

    def unpack(self, plaintexts: list[int], counters: int) -> Integers:
        """Sums of all parties' plaintexts to sums of their counters."""
        if len(plaintexts) != self.plaintexts(counters):
            raise ProtocolError(
                "wrong-length",
                f"{counters} counters lie in {self.plaintexts(counters)} plaintexts, "
                f"not in {len(plaintexts)}",
            )
        each, parts = self.width // 8, []
        for index, plain in enumerate(plaintexts):
            held = min(self.size, counters - index * self.size)
            if plain < 0 or plain.bit_length() > self.width * held:
                raise ProtocolError(
                    "out-of-range",
                    "a sum does not fit its slots: a provider left the round or did not follow it",
                )
            parts.append(plain.to_bytes(each * held, "little"))
        sums = np.zeros((counters, 8), dtype=np.uint8)
        sums[:, :each] = np.frombuffer(b"".join(parts), dtype=np.uint8).reshape(counters, each)
        # modulo 2^64; the true sum is below 2^63 in absolute value
        shift = np.uint64(self.parties * self.offset % 2**64)
        return (sums.reshape(-1).view("<u8").astype(np.uint64) - shift).view(np.int64)


def bound_of(parties: int, width: int = WIDTH) -> int:
    """Return the bound of absolute values: the sum over all parties is at most half a slot."""
    return 1 << (width - 1 - (parties - 1).bit_length())


def checked(values: Any, parties: int, width: int = WIDTH) -> Integers:
    """Return counters as int64; refuse non-integers and values beyond the bound."""
    array = np.asarray(values)
    if array.dtype.kind not in "iu" and not all(isinstance(v, int) for v in array.tolist()):
        raise PrivacyError("counters are whole numbers")
    bound = bound_of(parties, width)
    if array.size and (int(array.max()) >= bound or int(array.min()) <= -bound):
        raise PrivacyError(
            f"a counter is beyond {bound}, the bound for {parties} parties; "
            "use fewer rows or a coarser grid"
        )
    return array.astype(np.int64)
