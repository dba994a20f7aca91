"""Authenticated encryption of streams for one reader, segment by segment.

A fresh key is derived for every message (HKDF of the pair's key under a random salt, which goes
before), and each segment of a mebibyte is closed with ChaCha20-Poly1305 under a nonce that counts
segments and marks the last one: segments cannot be changed, exchanged, left out or cut off. This
is the construction STREAM (Hoang, Reyhanitabar, Rogaway and Vizár 2015).
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Iterator

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from discreet.federated.refusals import ProtocolError

__all__ = ["content_length", "in_parts", "seal", "sealed", "sealed_length", "unseal", "unsealed"]

SALT = 16
TAG = 16
SEGMENT = 1 << 20
"""Bytes of content in a segment; only the last may have fewer."""


def sealed_length(content: int) -> int:
    """Return the size of a sealed message with this many bytes of content."""
    return SALT + content + TAG * max(1, -(-content // SEGMENT))


def content_length(length: int) -> int:
    """Return the content size of a sealed message of this size; -1 if no message has it."""
    content = length - SALT - TAG * max(1, -(-(length - SALT) // (SEGMENT + TAG)))
    return content if content >= 0 and sealed_length(content) == length else -1


def in_parts(pieces: Iterable[bytes], size: int) -> Iterator[bytes]:
    """Split bytes into parts of one size; the last may be shorter, and is given even if empty."""
    held = bytearray()
    for piece in pieces:
        held += piece
        while len(held) > size:  # more must follow, so this is not the last
            yield bytes(held[:size])
            del held[:size]
    yield bytes(held)


def _cipher(key: bytes, salt: bytes) -> ChaCha20Poly1305:
    derive = HKDF(algorithm=SHA256(), length=32, salt=salt, info=b"discreet/sealed/2")
    return ChaCha20Poly1305(derive.derive(key))


def _nonce(number: int, last: bool) -> bytes:
    return number.to_bytes(11, "big") + bytes([last])


def _with_last(parts: Iterator[bytes]) -> Iterator[tuple[int, bytes, bool]]:
    """Parts with their number, and whether each is the last."""
    part, number = next(parts), 0
    for following in parts:
        yield number, part, False
        part, number = following, number + 1
    yield number, part, True


def seal(key: bytes, pieces: Iterable[bytes]) -> Iterator[bytes]:
    """Encrypt for the other party of a pair key, piece by piece.

    Parameters
    ----------
    key : bytes
        Of the pair, for one purpose in one round.
    pieces : iterable of bytes
    """
    salt = secrets.token_bytes(SALT)
    cipher = _cipher(key, salt)
    yield salt
    for number, part, last in _with_last(in_parts(pieces, SEGMENT)):
        yield cipher.encrypt(_nonce(number, last), part, None)


def unseal(key: bytes, pieces: Iterable[bytes]) -> Iterator[bytes]:
    """Open what :func:`seal` closed; every segment is checked before it is given out.

    That nothing is missing is known only at the end: do not act on a part.

    Parameters
    ----------
    key : bytes
    pieces : iterable of bytes
    """
    salt, rest = _split(iter(pieces))
    cipher = _cipher(key, salt)
    try:
        for number, part, last in _with_last(in_parts(rest, SEGMENT + TAG)):
            yield cipher.decrypt(_nonce(number, last), part, None)
    except (InvalidTag, ValueError):
        raise ProtocolError(
            "malformed", "a sealed message does not open: it was changed, or meant for others"
        ) from None


def _split(pieces: Iterator[bytes]) -> tuple[bytes, Iterator[bytes]]:
    """The salt, and what follows."""
    head = b""
    for piece in pieces:
        head += piece
        if len(head) >= SALT:
            break

    def rest() -> Iterator[bytes]:
        yield head[SALT:]
        yield from pieces

    return head[:SALT], rest()


def sealed(key: bytes, content: bytes) -> bytes:
    """Seal a short content at once."""
    return b"".join(seal(key, [content]))


def unsealed(key: bytes, content: bytes) -> bytes:
    """Open what :func:`sealed` closed."""
    return b"".join(unseal(key, [content]))
