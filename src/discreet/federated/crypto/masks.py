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

__all__ = [
    "EXCESS_BITS",
    "Pads",
    "compute_tag",
    "derive_pair_key",
    "expand_residues",
    "expand_words",
    "make_word_stream",
]

EXCESS_BITS = 128
"""Bits of a pad beyond those of N: reduced mod N it is within 2^-128 of uniform."""


def derive_pair_key(identity: Identity, peer: Card, agreement_hash: bytes, purpose: str) -> bytes:
    """Derive the 32-byte key of two parties for one purpose in one round.

    Parameters
    ----------
    identity : Identity
    peer : Card
    agreement_hash : bytes
        Its hash, which salts the key.
    purpose : str
        Keys for different purposes have nothing to do with each other.
    """
    pair = " ".join(sorted((identity.name, peer.name)))
    derivation_info = f"discreet/federated/1 {purpose} {pair}".encode()
    key_derivation = HKDF(algorithm=SHA256(), length=32, salt=agreement_hash, info=derivation_info)
    return key_derivation.derive(identity.compute_shared_secret(peer, agreement_hash))


def make_word_stream(key: bytes, word_bytes: int = 8) -> Callable[[int], Any]:
    """Make a function that returns the next uniform little-endian words of ``word_bytes`` bytes."""
    # the nonce may be constant: a key serves one purpose in one round, once
    cipher = Cipher(algorithms.ChaCha20(key, bytes(16)), mode=None).encryptor()
    return lambda count: np.frombuffer(
        cipher.update(bytes(word_bytes * count)), dtype=f"<u{word_bytes}"
    )


def expand_words(key: bytes, word_count: int, word_bytes: int = 8) -> Any:
    """The pad of masked counters: uniform words, of 64 bits unless told otherwise."""
    return make_word_stream(key, word_bytes)(word_count)


def expand_residues(key: bytes, residue_count: int, n: int) -> list[int]:
    """The pad of plaintexts: residues mod N, each from |N| + 128 bits."""
    residue_bytes = -(-(int(n).bit_length() + EXCESS_BITS) // 8)
    keystream_bytes = expand_words(key, residue_bytes * residue_count, 1).tobytes()
    return [
        int.from_bytes(
            keystream_bytes[index * residue_bytes : (index + 1) * residue_bytes], "little"
        )
        % n
        for index in range(residue_count)
    ]


class Pads:
    """One provider's pads in one round; the keys are agreed when it is made.

    Parameters
    ----------
    identity : Identity
    providers : sequence of Card
        In the order of the manifest, this one included.
    opener : Card or None
        The party that opens the result, where a pad hides it from all others.
    agreement_hash : bytes
        Its hash.
    """

    def __init__(
        self,
        identity: Identity,
        providers: Sequence[Card],
        opener: Card | None,
        agreement_hash: bytes,
    ) -> None:
        own_index = [card.name for card in providers].index(identity.name)
        self.later_keys = [
            derive_pair_key(identity, card, agreement_hash, "pads")
            for card in providers[own_index + 1 :]
        ]
        self.earlier_keys = [
            derive_pair_key(identity, card, agreement_hash, "pads")
            for card in providers[:own_index]
        ]
        self.opening_keys = (
            [derive_pair_key(identity, opener, agreement_hash, "opening")] if opener else []
        )

    def sum_words(self, word_count: int) -> Words:
        """The sum of all pads modulo 2^64."""
        total = np.zeros(word_count, dtype=np.uint64)
        for key in self.later_keys + self.opening_keys:
            total += expand_words(key, word_count)
        for key in self.earlier_keys:
            total -= expand_words(key, word_count)
        return total

    def sum_residues(self, residue_count: int, n: int) -> list[int]:
        """The sum of all pads modulo N."""
        totals = [0] * residue_count
        for sign, keys in ((1, self.later_keys + self.opening_keys), (-1, self.earlier_keys)):
            for key in keys:
                pad = expand_residues(key, residue_count, n)
                totals = [
                    total + sign * pad_residue
                    for total, pad_residue in zip(totals, pad, strict=True)
                ]
        return [total % n for total in totals]


def compute_tag(key: bytes, content: bytes) -> bytes:
    """Compute a MAC by which parties of a pair key compare their content."""
    tag_code = HMAC(key, SHA256())
    tag_code.update(content)
    return tag_code.finalize()
