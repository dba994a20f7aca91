"""Sources of random bytes.

``CryptoRandom`` is the default everywhere; ``SeededRandom`` repeats itself and is for simulation.
Both share the exact samplers of :mod:`discreet.randomness.samplers`.
"""

from __future__ import annotations

import operator
import os
import threading
import weakref
from typing import ClassVar

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, CipherContext, algorithms, modes

from discreet.arrays import Bytes, Words
from discreet.randomness.samplers import Number, Random, _require_count

__all__ = ["CryptoRandom", "Number", "Random", "SeededRandom", "as_random"]


class CryptoRandom(Random):
    """The source for everything that is released: AES-256-CTR keyed by the operating system.

    A key serves ``rekey_after`` bytes and is then dropped. Threads may share one source. A forked
    process never repeats its parent, and a copied or unpickled source has a key of its own.
    """

    simulated = False
    rekey_after: int = 64 << 20

    _zeros: ClassVar[memoryview] = memoryview(bytes(1 << 16))
    _live_sources: ClassVar[weakref.WeakSet[CryptoRandom]] = weakref.WeakSet()

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._drop_key()
        CryptoRandom._live_sources.add(self)

    def _drop_key(self) -> None:
        """Drop key and buffer, so that the next draw begins with a new key."""
        self._process_id = os.getpid()
        self._cipher: CipherContext | None = None
        self._key_bytes_left = 0  # bytes this key may still give
        self._buffer, self._used_bytes = np.empty(0, np.uint8), 0

    def __reduce__(self) -> tuple[type[CryptoRandom], tuple[()]]:
        return type(self), ()

    def raw(self, count: int) -> Bytes:
        """Return ``count`` uniform bytes; small requests come from a buffer."""
        count = _require_count("count", count)
        with self._lock:
            if self._process_id != os.getpid():  # a fork that Python did not see
                self._drop_key()
            if count > 1 << 12:
                return self._keystream(count)
            if self._used_bytes + count > self._buffer.size:
                self._buffer, self._used_bytes = self._keystream(1 << 14), 0
            buffer_slice = self._buffer[self._used_bytes : self._used_bytes + count]
            self._used_bytes += count  # first, so that an interrupt can only lose bytes
            drawn_bytes = buffer_slice.copy()
            buffer_slice[:] = 0
            return drawn_bytes

    def _keystream(self, count: int) -> Bytes:
        key_stream, filled_bytes = np.empty(count, np.uint8), 0
        while filled_bytes < count:
            if self._cipher is None or self._key_bytes_left == 0:
                cipher_key = algorithms.AES(os.urandom(32))
                self._cipher = Cipher(cipher_key, modes.CTR(bytes(16))).encryptor()
                self._key_bytes_left = self.rekey_after
            chunk_bytes = min(count - filled_bytes, self._key_bytes_left, len(self._zeros))
            self._cipher.update_into(
                self._zeros[:chunk_bytes],
                key_stream[filled_bytes : filled_bytes + chunk_bytes].data,
            )
            filled_bytes += chunk_bytes
            self._key_bytes_left -= chunk_bytes
        return key_stream


def _drop_all_keys() -> None:
    for source in list(CryptoRandom._live_sources):
        source._lock = threading.Lock()  # another thread of the parent may have held the old one
        source._drop_key()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_drop_all_keys)


class SeededRandom(Random):
    """A source that repeats itself, for simulation only: NumPy's PCG64.

    Parameters
    ----------
    seed : int
        Zero or more; equal seeds give equal draws.
    """

    simulated = True

    def __init__(self, seed: int) -> None:
        if seed < 0:
            raise ValueError(f"seed is {seed}; give an integer of zero or more")
        self._generator = np.random.PCG64(operator.index(seed))

    def raw(self, count: int) -> Bytes:
        """Return ``count`` bytes, from whole words."""
        count = _require_count("count", count)
        drawn_words: Words = self._generator.random_raw(-(-count // 8))
        return drawn_words.astype("<u8", copy=False).view(np.uint8)[:count]


def as_random(
    random_state: int | np.random.Generator | np.random.RandomState | Random | None = None,
) -> Random:
    """Return the source that ``random_state`` stands for.

    Parameters
    ----------
    random_state : None, int, numpy Generator or RandomState, or Random
        None is the cryptographic source. An integer is a seed; a NumPy generator gives one, and
        moves on. Both are for simulation and end every promise. A ``Random`` is itself.
    """
    if isinstance(random_state, Random):
        return random_state
    if random_state is None:
        return CryptoRandom()
    if isinstance(random_state, np.random.Generator | np.random.RandomState):
        return SeededRandom(int.from_bytes(random_state.bytes(16), "little"))
    if isinstance(random_state, int | np.integer) and not isinstance(random_state, bool):
        return SeededRandom(int(random_state))
    raise TypeError(
        f"random_state is {random_state!r}; give None for cryptographic randomness, or, to "
        "simulate, an integer seed, a numpy Generator or a discreet Random"
    )
