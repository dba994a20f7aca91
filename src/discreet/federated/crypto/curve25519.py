"""Map ids to points of Curve25519 and blind them; scalars commute.

    X25519(a, X25519(b, P)) = X25519(b, X25519(a, P))

An id becomes a point with Elligator 2, suite curve25519_XMD:SHA-512_ELL2_NU_ of RFC 9380. A hash
taken as a coordinate would not do: it lies on the curve or on its twist, no multiplication ever
changes which, and so one bit of every id would show through. Scalars of X25519 are multiples of
eight, so blinding clears the cofactor.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable
from typing import Any

from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey

from discreet.errors import MissingDependencyError
from discreet.federated.refusals import ProtocolError

try:
    import gmpy2
except ImportError:  # pragma: no cover - the extra is missing
    raise MissingDependencyError("gmpy2", "federated") from None

__all__ = [
    "HASH_SUITE",
    "POINT_BYTES",
    "BlindingProgress",
    "blind_points",
    "parse_points",
    "to_point",
]

BlindingProgress = Callable[[int], None]
"""Called with the number of points blinded since the last call."""
POINT_BYTES = 32
"""Bytes of a point: its u-coordinate, little-endian."""
HASH_SUITE = b"curve25519_XMD:SHA-512_ELL2_NU_"
PROGRESS_STEP = 256

_P = 2**255 - 19
_A = 486662
_SHA512_BLOCK_BYTES = 128
_ELEMENT_HASH_BYTES = 48  # of a field element with 128 bits of security
_ORDER_EIGHT_FIRST = 325606250916557431795983626356110631294008115727848805560023387167927233504
_ORDER_EIGHT_SECOND = 39382357235489614581723060781553021112529911719440698176882885853963445705823
SMALL_ORDER_COORDINATES = frozenset((0, 1, _P - 1, _ORDER_EIGHT_FIRST, _ORDER_EIGHT_SECOND))
"""Coordinates of the points whose order divides eight, on the curve or on its twist."""


def hash_to_element(message: bytes, domain: bytes) -> int:
    """A message to an element of the field: hash_to_field of RFC 9380 with expand_message_xmd."""
    if not 0 < len(domain) < 256:
        raise ValueError("a domain has 1 to 255 bytes")
    domain_suffix = domain + bytes([len(domain)])
    first_hash = hashlib.sha512(
        bytes(_SHA512_BLOCK_BYTES)
        + message
        + _ELEMENT_HASH_BYTES.to_bytes(2, "big")
        + b"\0"
        + domain_suffix
    )
    uniform_bytes = hashlib.sha512(first_hash.digest() + b"\1" + domain_suffix).digest()
    return int.from_bytes(uniform_bytes[:_ELEMENT_HASH_BYTES], "big") % _P


def elligator(element: int) -> int:
    """An element of the field to the coordinate of a point: Elligator 2 with Z = 2."""
    u = -_A * gmpy2.invert(1 + 2 * element * element, _P) % _P
    return int(u) if is_on_curve(u) else int((-u - _A) % _P)


def is_on_curve(u: Any) -> bool:
    """Whether a coordinate belongs to the curve; otherwise it belongs to the twist."""
    return bool(gmpy2.jacobi(u * (u * (u + _A) + 1) % _P, _P) >= 0)


def to_point(message: bytes, domain: bytes) -> bytes:
    """A message to a point that nobody knows a logarithm of.

    Parameters
    ----------
    message : bytes
    domain : bytes
        Points of different domains have nothing to do with each other.
    """
    return elligator(hash_to_element(message, domain)).to_bytes(POINT_BYTES, "little")


def blind_points(
    points: Iterable[bytes], scalar: X25519PrivateKey, advance: BlindingProgress | None = None
) -> list[bytes]:
    """Multiply all points by a scalar, in the same order.

    Parameters
    ----------
    points : iterable of bytes
    scalar : X25519PrivateKey
    advance : callable, optional
        Told now and then how many more are done.
    """
    blinded_points: list[bytes] = []
    try:
        for point in points:
            blinded_points.append(scalar.exchange(X25519PublicKey.from_public_bytes(point)))
            if advance is not None and len(blinded_points) % PROGRESS_STEP == 0:
                advance(PROGRESS_STEP)
    except ValueError:
        raise ProtocolError("out-of-range", "a point of small order cannot be blinded") from None
    if advance is not None:
        advance(len(blinded_points) % PROGRESS_STEP)
    return blinded_points


def parse_points(data: bytes) -> list[bytes]:
    """Parse a list of points; refuse invalid, repeated and small-order points."""
    if not data or len(data) % POINT_BYTES:
        raise ProtocolError("wrong-length", f"{len(data)} bytes are not a list of points")
    points = [data[offset : offset + POINT_BYTES] for offset in range(0, len(data), POINT_BYTES)]
    for point in points:
        u = int.from_bytes(point, "little")
        if u >= _P:
            raise ProtocolError("out-of-range", "a point is not written in the one proper way")
        if u in SMALL_ORDER_COORDINATES:
            raise ProtocolError("out-of-range", "a point has a small order: it would blind nothing")
        if not is_on_curve(u):
            raise ProtocolError("out-of-range", "a point is not on the curve but on its twist")
    if len(set(points)) < len(points):
        raise ProtocolError("duplicate", "a point occurs twice in a list; ids are unique")
    return points
