"""Points: the published vectors of RFC 9380, commuting blinds, and the twin that leaks a bit."""

from __future__ import annotations

import hashlib
import secrets

import pytest
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from scipy import stats

from discreet.federated.crypto import curve25519
from discreet.federated.crypto.curve25519 import (
    POINT_BYTES,
    blind_points,
    is_on_curve,
    parse_points,
    to_point,
)
from discreet.federated.refusals import ProtocolError

P, A = 2**255 - 19, 486662
FALSE_ALARM = 1e-6
VECTORS = [  # RFC 9380, appendix J.4.2: message, u[0], Q.x, P.x
    (
        b"",
        "608d892b641f0328523802a6603427c26e55e6f27e71a91a478148d45b5093cd",
        "51125222da5e763d97f3c10fcc92ea6860b9ccbbd2eb1285728f566721c1e65b",
        "1bb913f0c9daefa0b3375378ffa534bda5526c97391952a7789eb976edfe4d08",
    ),
    (
        b"abc",
        "46f5b22494bfeaa7f232cc8d054be68561af50230234d7d1d63d1d9abeca8da5",
        "7d56d1e08cb0ccb92baf069c18c49bb5a0dcd927eff8dcf75ca921ef7f3e6eeb",
        "7c22950b7d900fa866334262fcaea47a441a578df43b894b4625c9b450f9a026",
    ),
    (
        b"abcdef0123456789",
        "235fe40c443766ce7e18111c33862d66c3b33267efa50d50f9e8e5d252a40aaa",
        "3fbe66b9c9883d79e8407150e7c2a1c8680bee496c62fabe4619a72b3cabe90f",
        "31ad08a8b0deeb2a4d8b0206ca25f567ab4e042746f792f4b7973f3ae2096c52",
    ),
]


def doubled(u):
    """The coordinate of 2 P from that of P, on a Montgomery curve."""
    over = pow(u * u - 1, 2, P)
    return over * pow(4 * u * (u * u + A * u + 1), -1, P) % P


@pytest.mark.parametrize(("message", "element", "mapped", "cleared"), VECTORS)
def test_the_vectors_of_rfc_9380(message, element, mapped, cleared):
    domain = b"QUUX-V01-CS02-with-" + curve25519.HASH_SUITE
    found = curve25519.hash_to_element(message, domain)
    assert found == int(element, 16)
    u = curve25519.elligator(found)
    assert u == int(mapped, 16)
    assert to_point(message, domain) == u.to_bytes(POINT_BYTES, "little")
    for _ in range(3):  # the cofactor is eight
        u = doubled(u)
    assert u == int(cleared, 16)


def test_every_element_maps_to_the_curve_and_domains_differ():
    for element in (0, 1, P - 1, *(secrets.randbelow(P) for _ in range(200))):
        u = curve25519.elligator(element)
        assert pow(u * (u * (u + A) + 1), (P - 1) // 2, P) in (0, 1)
    assert to_point(b"x", b"one") != to_point(b"x", b"two")
    with pytest.raises(ValueError, match="255"):
        to_point(b"x", bytes(256))


def test_blinding_commutes_and_keeps_the_order():
    one, two = X25519PrivateKey.generate(), X25519PrivateKey.generate()
    some, told = [to_point(str(i).encode(), b"d") for i in range(600)], []
    there = blind_points(blind_points(some, one, told.append), two)
    assert there == blind_points(blind_points(some, two), one)
    assert told == [256, 256, 88]
    assert parse_points(b"".join(there)) == there


@pytest.mark.parametrize("u", sorted(curve25519.SMALL_ORDER_COORDINATES))
def test_small_orders_are_refused_and_are_those(u):
    point = u.to_bytes(POINT_BYTES, "little")
    with pytest.raises(ProtocolError, match="small order"):
        parse_points(point)
    with pytest.raises(ProtocolError, match="small order"):
        blind_points([point], X25519PrivateKey.generate())


def twist():
    return next(u for u in range(2, 100) if not is_on_curve(u)).to_bytes(POINT_BYTES, "little")


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "wrong-length"),
        (to_point(b"x", b"d")[:-1], "wrong-length"),
        ((P + 9).to_bytes(POINT_BYTES, "little"), "out-of-range"),
        (b"\xff" * POINT_BYTES, "out-of-range"),
        (twist(), "out-of-range"),
        (2 * to_point(b"x", b"d"), "duplicate"),
    ],
    ids=["nothing", "truncated", "not-canonical", "high-bit", "twist", "twice"],
)
def test_what_is_no_list_of_points_is_refused(data, reason):
    with pytest.raises(ProtocolError) as refused:
        parse_points(data)
    assert refused.value.reason == reason


# ---------------------------------------------------------------- the twin that leaks a bit


def hash_as_coordinate(message, domain):
    """Known to be bad: half of all hashes lie on the twist, and stay there."""
    whole = hashlib.sha512(domain + message).digest()
    return (int.from_bytes(whole, "big") % P).to_bytes(POINT_BYTES, "little")


def bit(point):
    return is_on_curve(int.from_bytes(point, "little"))


def guesses_right(to_point, trials):
    """How often an attacker tells which of two ids was blinded, from the Legendre symbol alone."""
    right = 0
    for trial in range(trials):
        pair = [to_point(f"{trial} {one}".encode(), b"d") for one in (0, 1)]
        truth = secrets.randbelow(2)
        seen = pair[truth]
        for _ in range(2):  # by however many owners
            seen = X25519PrivateKey.generate().exchange(X25519PublicKey.from_public_bytes(seen))
        fitting = [one for one in (0, 1) if bit(pair[one]) == bit(seen)]
        right += secrets.choice(fitting) == truth
    return right


@pytest.mark.slow
def test_the_legendre_symbol_tells_ids_apart_on_the_twin_and_not_on_ours():
    trials = 1000
    chance = stats.binom(trials, 0.5)
    # three in four on the twin: certain for half of the pairs, a coin for the others
    assert guesses_right(hash_as_coordinate, trials) > chance.isf(FALSE_ALARM)
    ours = guesses_right(to_point, trials)
    assert chance.ppf(FALSE_ALARM / 2) <= ours <= chance.isf(FALSE_ALARM / 2)
    assert all(bit(to_point(str(i).encode(), b"d")) for i in range(trials))
