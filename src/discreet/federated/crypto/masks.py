"""Pairwise pads that cancel in the sum over all providers.

Two parties agree on K = HKDF(X25519, salt = hash of the manifest), with keys that each made for
this round and signed, and expand it with ChaCha20, so every pair has fresh pads for every round
and every position. Provider k adds the pads it shares
with later providers and subtracts those it shares with earlier ones: all together they are zero,
modulo 2^64 for masked counters, modulo N for plaintexts. As tau = 1 + N a mod N^2, a pad a is a
blinding factor tau on a ciphertext, and the product of all blinding factors is one.

A further pad is shared with the party that opens the result, so that the sum of all messages
still looks uniform to everyone else, the collector included.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.hmac import HMAC
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from discreet.arrays import Words
from discreet.federated.agreement.identity import Card, Identity

__all__ = ["EXCESS", "Pads", "pair_key", "residues", "stream", "tag", "words"]

EXCESS = 128
"""Bits of a pad beyond those of N: reduced mod N it is within 2^-128 of uniform."""


def pair_key(own: Identity, other: Card, manifest: bytes, purpose: str) -> bytes:
    """Derive the 32-byte key of two parties for one purpose in one round.

    Parameters
    ----------
    own : Identity
    other : Card
    manifest : bytes
        Its hash, which salts the key.
    purpose : str
        Keys for different purposes have nothing to do with each other.
    """
    pair = " ".join(sorted((own.name, other.name)))
    info = f"discreet/federated/1 {purpose} {pair}".encode()
    derive = HKDF(algorithm=SHA256(), length=32, salt=manifest, info=info)
    return derive.derive(own.secret_with(other, manifest))


def _stream(key: bytes) -> Callable[[int], bytes]:
    # the nonce may be constant: a key serves one purpose in one round, once
    cipher = Cipher(algorithms.ChaCha20(key, bytes(16)), mode=None).encryptor()
    return lambda count: cipher.update(bytes(count))


def stream(key: bytes, width: int = 8) -> Callable[[int], Any]:
    """A function that returns the next ``count`` uniform little-endian words of ``width`` bytes."""
    drawn = _stream(key)
    return lambda count: np.frombuffer(drawn(width * count), dtype=f"<u{width}")


def words(key: bytes, count: int, width: int = 8) -> Any:
    """The pad of masked counters: uniform words, of 64 bits unless told otherwise."""
    return stream(key, width)(count)


def residues(key: bytes, count: int, n: int) -> list[int]:
    """The pad of plaintexts: residues mod N, each from |N| + 128 bits."""
    each = -(-(int(n).bit_length() + EXCESS) // 8)
    data = _stream(key)(each * count)
    return [int.from_bytes(data[i * each : (i + 1) * each], "little") % n for i in range(count)]


class Pads:
    """One provider's pads in one round; the keys are agreed when it is made.

    Parameters
    ----------
    own : Identity
    providers : sequence of Card
        In the order of the manifest, this one included.
    opener : Card or None
        The party that opens the result, where a pad hides it from all others.
    manifest : bytes
        Its hash.
    """

    def __init__(
        self, own: Identity, providers: Sequence[Card], opener: Card | None, manifest: bytes
    ) -> None:
        place = [card.name for card in providers].index(own.name)
        self.later = [pair_key(own, card, manifest, "pads") for card in providers[place + 1 :]]
        self.earlier = [pair_key(own, card, manifest, "pads") for card in providers[:place]]
        self.opening = [pair_key(own, opener, manifest, "opening")] if opener else []

    def words(self, count: int) -> Words:
        """The sum of all pads modulo 2^64."""
        total = np.zeros(count, dtype=np.uint64)
        for key in self.later + self.opening:
            total += words(key, count)
        for key in self.earlier:
            total -= words(key, count)
        return total

    def residues(self, count: int, n: int) -> list[int]:
        """The sum of all pads modulo N."""
        total = [0] * count
        for sign, keys in ((1, self.later + self.opening), (-1, self.earlier)):
            for key in keys:
                pad = residues(key, count, n)
                total = [a + sign * b for a, b in zip(total, pad, strict=True)]
        return [one % n for one in total]


def tag(key: bytes, content: bytes) -> bytes:
    """Compute a MAC by which parties of a pair key compare their content."""
    code = HMAC(key, SHA256())
    code.update(content)
    return code.finalize()
