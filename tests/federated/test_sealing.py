"""Sealed streams: segments cannot be changed, exchanged, repeated, left out or cut off."""

from __future__ import annotations

import pytest
from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from discreet.federated.crypto import sealing
from discreet.federated.crypto.sealing import (
    SALT_BYTES,
    TAG_BYTES,
    compute_sealed_length,
    seal_bytes,
    unseal_bytes,
)
from discreet.federated.refusals import ProtocolError

KEY = bytes(range(32))
SIZE = 16
"""Bytes of content in a segment, here."""
CONTENT = b"first segment 16" + b"first segment 16" + b"third segment 16" + b"the last"


@pytest.fixture(autouse=True)
def short(monkeypatch):
    monkeypatch.setattr(sealing, "SEGMENT_BYTES", SIZE)


def segments(closed):
    """The salt, and the segments with their tags."""
    body = closed[SALT_BYTES:]
    return closed[:SALT_BYTES], [
        body[i : i + SIZE + TAG_BYTES] for i in range(0, len(body), SIZE + TAG_BYTES)
    ]


def cut_off(parts):
    return parts[:-1]


def repeated(parts):
    return [parts[0], *parts]


def exchanged(parts):
    return [parts[0], parts[2], parts[1], *parts[3:]]


def left_out(parts):
    return parts[1:]


def nothing(parts):
    return []


TAMPERED = pytest.mark.parametrize("tamper", [cut_off, repeated, exchanged, left_out, nothing])


def tampered(tamper):
    salt, parts = segments(seal_bytes(KEY, CONTENT))
    return salt + b"".join(tamper(parts))


def test_what_was_sealed_opens_whatever_its_length():
    for length in (0, 1, SIZE - 1, SIZE, SIZE + 1, 4 * SIZE, 4 * SIZE + 3):
        content = bytes(length)
        closed = seal_bytes(KEY, content)
        assert len(closed) == compute_sealed_length(length)
        assert unseal_bytes(KEY, closed) == content


@TAMPERED
def test_whole_segments_cannot_be_moved_or_cut_off(tamper):
    with pytest.raises(ProtocolError, match="cannot be opened"):
        unseal_bytes(KEY, tampered(tamper))


@pytest.mark.parametrize(
    ("nonce", "tamper"),
    [
        (lambda number, last: number.to_bytes(11, "big") + b"\0", cut_off),
        (lambda number, last: bytes(11) + bytes([last]), exchanged),
        (lambda number, last: bytes(11) + bytes([last]), repeated),
        (lambda number, last: bytes(11) + bytes([last]), left_out),
    ],
    ids=["no mark of the last", "constant: exchanged", "constant: repeated", "constant: left out"],
)
def test_twins_with_another_nonce_open_what_was_tampered_with(nonce, tamper, monkeypatch):
    monkeypatch.setattr(sealing, "_make_nonce", nonce)
    assert unseal_bytes(KEY, tampered(tamper)) != CONTENT


def test_every_segment_has_a_nonce_of_its_own():
    """Two under one nonce would show the difference of their contents."""
    _, parts = segments(seal_bytes(KEY, CONTENT))
    assert len({part[:8] for part in parts}) == len(parts)  # the first two contents are equal
    used = {sealing._make_nonce(number, last) for number in range(1000) for last in (False, True)}
    assert len(used) == 2000


def test_the_bytes_are_those_of_stream():
    """An implementation of its own: number in eleven bytes, then whether it is the last."""
    salt, parts = segments(seal_bytes(KEY, CONTENT))
    derive = HKDF(algorithm=SHA256(), length=32, salt=salt, info=b"discreet/sealed/2")
    cipher, opened = ChaCha20Poly1305(derive.derive(KEY)), b""
    for number, part in enumerate(parts):
        nonce = bytes(10) + bytes([number, number == len(parts) - 1])
        opened += cipher.decrypt(nonce, part, None)
    assert opened == CONTENT
