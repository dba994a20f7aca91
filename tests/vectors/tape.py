"""A source that plays given bytes and counts them."""

from __future__ import annotations

import numpy as np

from discreet.arrays import Bytes
from discreet.randomness import Random


class Tape(Random):
    """Hands out the bytes of a tape in their order; fails when they are used up.

    Parameters
    ----------
    script : bytes or str
        The bytes, or their hexadecimal form (spaces allowed).

    Attributes
    ----------
    used : int
        Bytes handed out so far.
    """

    simulated = True

    def __init__(self, script: bytes | str) -> None:
        self.script = bytes.fromhex(script) if isinstance(script, str) else script
        self.used = 0

    def raw(self, count: int) -> Bytes:
        end = self.used + count
        assert end <= len(self.script), "asked for more bytes than the tape has"
        drawn = np.frombuffer(self.script[self.used : end], np.uint8).copy()
        self.used = end
        return drawn
