"""Authenticated encryption of streams for one reader, segment by segment.

A fresh key is derived for every message (HKDF of the pair's key under a random salt, which goes
before), and each segment of a mebibyte is closed with ChaCha20-Poly1305 under a nonce that counts
segments and marks the last one: segments cannot be changed, exchanged, left out or cut off. This
is the construction STREAM (Hoang, Reyhanitabar, Rogaway and Vizár 2015).
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Iterator
from itertools import chain

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from discreet.federated.refusals import ProtocolError

__all__ = [
    "compute_content_length",
    "compute_sealed_length",
    "seal",
    "seal_bytes",
    "unseal",
    "unseal_bytes",
]

SALT_BYTES = 16
TAG_BYTES = 16
SEGMENT_BYTES = 1 << 20
"""Bytes of content in a segment; only the last may have fewer."""


def compute_sealed_length(content_size: int) -> int:
    """Return the size of a sealed message with this many bytes of content."""
    return SALT_BYTES + content_size + TAG_BYTES * max(1, -(-content_size // SEGMENT_BYTES))


def compute_content_length(sealed_size: int) -> int:
    """Return the content size of a sealed message of this size; -1 if no message has it."""
    content_size = (
        sealed_size
        - SALT_BYTES
        - TAG_BYTES * max(1, -(-(sealed_size - SALT_BYTES) // (SEGMENT_BYTES + TAG_BYTES)))
    )
    return (
        content_size
        if content_size >= 0 and compute_sealed_length(content_size) == sealed_size
        else -1
    )


def _make_cipher(key: bytes, salt: bytes) -> ChaCha20Poly1305:
    key_derivation = HKDF(algorithm=SHA256(), length=32, salt=salt, info=b"discreet/sealed/2")
    return ChaCha20Poly1305(key_derivation.derive(key))


def _make_nonce(segment_index: int, is_last: bool) -> bytes:
    return segment_index.to_bytes(11, "big") + bytes([is_last])


def _split_segments(pieces: Iterable[bytes], size: int) -> Iterator[tuple[int, bytes, bool]]:
    """Segments of one size with their number; the last is marked, and may be shorter or empty."""
    segment_index, pending_bytes = 0, bytearray()
    for piece in pieces:
        pending_bytes += piece
        while len(pending_bytes) > size:  # more must follow, so this is not the last
            yield segment_index, bytes(pending_bytes[:size]), False
            del pending_bytes[:size]
            segment_index += 1
    yield segment_index, bytes(pending_bytes), True


def seal(key: bytes, pieces: Iterable[bytes]) -> Iterator[bytes]:
    """Encrypt for the other party of a pair key, piece by piece.

    Parameters
    ----------
    key : bytes
        Of the pair, for one purpose in one round.
    pieces : iterable of bytes
    """
    salt = secrets.token_bytes(SALT_BYTES)
    cipher = _make_cipher(key, salt)
    yield salt
    for segment_index, segment, is_last in _split_segments(pieces, SEGMENT_BYTES):
        yield cipher.encrypt(_make_nonce(segment_index, is_last), segment, None)


def unseal(key: bytes, pieces: Iterable[bytes]) -> Iterator[bytes]:
    """Open what :func:`seal` closed; every segment is checked before it is given out.

    That nothing is missing is known only at the end: do not act on a part.

    Parameters
    ----------
    key : bytes
    pieces : iterable of bytes
    """
    following_pieces, head_bytes = iter(pieces), b""
    for piece in following_pieces:
        head_bytes += piece
        if len(head_bytes) >= SALT_BYTES:
            break
    cipher = _make_cipher(key, head_bytes[:SALT_BYTES])
    sealed_pieces = chain([head_bytes[SALT_BYTES:]], following_pieces)
    try:
        for segment_index, segment, is_last in _split_segments(
            sealed_pieces, SEGMENT_BYTES + TAG_BYTES
        ):
            yield cipher.decrypt(_make_nonce(segment_index, is_last), segment, None)
    except (InvalidTag, ValueError):
        raise ProtocolError(
            "malformed", "a sealed message cannot be opened: it was changed, or meant for others"
        ) from None


def seal_bytes(key: bytes, content: bytes) -> bytes:
    """Seal a short content at once."""
    return b"".join(seal(key, [content]))


def unseal_bytes(key: bytes, content: bytes) -> bytes:
    """Open what :func:`seal_bytes` closed."""
    return b"".join(unseal(key, [content]))
