"""Paillier encryption: anyone with the public key can add, only the key's owner can decrypt.

    encrypt   c = (1 + N m) h^a mod N^2       h = (-x^2)^N, a short  (Damgard, Jurik, Nielsen 2010)
    add       c c' mod N^2                    reads as m + m' mod N
    decrypt   L(c^(p-1) mod p^2) / L(g^(p-1)) mod p, the same mod q, and both together

Every encrypting party draws its own x, so it need not believe anyone's. A short exponent hides m
from everyone without the key; hiding *which* ciphertexts were multiplied from the key's owner
needs :meth:`PublicKey.refresh_ciphertext`, whose randomness is uniform.
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias

from discreet.errors import FormatError, MissingDependencyError, PrivacyError
from discreet.federated.crypto.key_proof import MAX_MODULUS_BITS
from discreet.federated.refusals import ProtocolError
from discreet.files.documents import Body, dump_document, load_document

try:
    import gmpy2
except ImportError:  # pragma: no cover - the extra is missing
    raise MissingDependencyError("gmpy2", "federated") from None

__all__ = [
    "DEFAULT_KEY_BITS",
    "MIN_KEY_BITS",
    "Ciphertext",
    "Encryptor",
    "PrivateKey",
    "PublicKey",
    "generate_key",
]
__all__ += ["parse_number"]

Ciphertext: TypeAlias = gmpy2.mpz
"""A number modulo N^2."""

DEFAULT_KEY_BITS = 3072
MIN_KEY_BITS = 2048
KEY_FILE_VERSION = 1
PRIMALITY_ROUNDS = 40


def _check_bits(bits: int, allow_small: bool) -> None:
    if bits < MIN_KEY_BITS and not allow_small:
        raise PrivacyError(
            f"a Paillier key of {bits} bits can be broken; use at least {MIN_KEY_BITS}, "
            f"{DEFAULT_KEY_BITS} is the default"
        )
    if bits > MAX_MODULUS_BITS:
        raise PrivacyError(
            f"a Paillier key of {bits} bits is too long; use at most {MAX_MODULUS_BITS}, "
            f"{DEFAULT_KEY_BITS} is the default"
        )


@dataclass(frozen=True)
class PublicKey:
    """The modulus N, and all that can be done with it alone.

    Parameters
    ----------
    n : int
    allow_small : bool, default False
        Accept a key below 2048 bits: for tests only.
    """

    n: int
    allow_small: bool = False

    def __post_init__(self) -> None:
        _check_bits(self.bits, self.allow_small)  # a test on a longer number could take hours
        if self.n < 15 or self.n % 2 == 0 or gmpy2.is_prime(self.n):
            raise PrivacyError("this is not a Paillier modulus: N must be odd and composite")

    @cached_property
    def bits(self) -> int:
        """Length of N in bits."""
        return int(self.n).bit_length()

    @cached_property
    def n_squared(self) -> Ciphertext:
        """N^2."""
        return gmpy2.mpz(self.n) ** 2

    @property
    def ciphertext_bytes(self) -> int:
        """Bytes of a ciphertext on the wire."""
        return -(-2 * self.bits // 8)

    @property
    def fingerprint(self) -> str:
        """SHA-256 of N, to be compared by people."""
        return hashlib.sha256(int(self.n).to_bytes(-(-self.bits // 8), "big")).hexdigest()

    def to_json(self) -> str:
        """Write the key as a file to hand out."""
        return dump_document("paillier-public-key", KEY_FILE_VERSION, {"n": hex(self.n)})

    @classmethod
    def from_json(cls, text: str | bytes, *, allow_small: bool = False) -> PublicKey:
        """Read what :meth:`to_json` wrote."""
        body = load_document(text, "paillier-public-key", KEY_FILE_VERSION, _PublicKeyBody)
        return cls(parse_number(body.n), allow_small)

    def embed_plaintext(self, plaintext: int) -> Ciphertext:
        """(1 + N)^plain: a ciphertext without any randomness."""
        return (1 + self.n * (gmpy2.mpz(plaintext) % self.n)) % self.n_squared

    def check_ciphertext(self, ciphertext: Any) -> Ciphertext:
        """A ciphertext that others sent: in range and invertible, or refused."""
        if isinstance(ciphertext, bool) or not isinstance(ciphertext, (int, type(self.n_squared))):
            raise ProtocolError("malformed", f"a ciphertext is a number, not {ciphertext!r}")
        if not 0 < ciphertext < self.n_squared:
            raise ProtocolError("out-of-range", "a ciphertext is outside 1 … N^2 - 1")
        if gmpy2.gcd(ciphertext, self.n) != 1:
            raise ProtocolError("not-invertible", "a ciphertext has a factor in common with N")
        return gmpy2.mpz(ciphertext)

    def add(self, ciphertexts: Iterable[Ciphertext]) -> Ciphertext:
        """The ciphertext of the sum."""
        product = gmpy2.mpz(1)
        for ciphertext in ciphertexts:
            product = product * ciphertext % self.n_squared
        return product

    def scale_ciphertext(self, ciphertext: Ciphertext, factor: int) -> Ciphertext:
        """The ciphertext of ``factor`` times the content; the factor may be negative."""
        return gmpy2.powmod(ciphertext, factor, self.n_squared)

    def refresh_ciphertext(self, ciphertext: Ciphertext) -> Ciphertext:
        """The same content under uniform randomness: times r^N, r uniform in Z*_N.

        A short or even a long power of one base stays inside that base's subgroup, and the key's
        owner could see in which coset the product lay; r^N leaves no such trace.
        """
        unit = _draw_unit(self.n)
        return ciphertext * gmpy2.powmod(unit, self.n, self.n_squared) % self.n_squared

    def to_bytes(self, ciphertexts: Sequence[Ciphertext]) -> bytes:
        """Ciphertexts one after the other, each of the same length."""
        return b"".join(
            int(ciphertext).to_bytes(self.ciphertext_bytes, "big") for ciphertext in ciphertexts
        )

    def from_bytes(self, data: bytes, count: int) -> list[Ciphertext]:
        """Read and check what :meth:`to_bytes` wrote."""
        if len(data) != count * self.ciphertext_bytes:
            raise ProtocolError(
                "wrong-length",
                f"{count} ciphertexts have {count * self.ciphertext_bytes} bytes, these are "
                f"{len(data)}",
            )
        chunks = (
            data[offset : offset + self.ciphertext_bytes]
            for offset in range(0, len(data), self.ciphertext_bytes)
        )
        return [self.check_ciphertext(int.from_bytes(chunk, "big")) for chunk in chunks]


@dataclass(frozen=True, repr=False)
class PrivateKey:
    """The two primes. They decrypt everything that was encrypted for their owner.

    Parameters
    ----------
    p, q : int
        Two different primes of the same length.
    allow_small : bool, default False
        Accept a modulus below 2048 bits, which anyone can factor: for tests.
    """

    p: int
    q: int
    allow_small: bool = False

    def __post_init__(self) -> None:
        _check_bits((self.p * self.q).bit_length(), self.allow_small)
        if self.p == self.q or not all(
            gmpy2.is_prime(factor, PRIMALITY_ROUNDS) for factor in (self.p, self.q)
        ):
            raise PrivacyError("a Paillier key is made of two different primes")
        if gmpy2.gcd(self.p * self.q, (self.p - 1) * (self.q - 1)) != 1:
            raise PrivacyError("these primes do not fit together; generate a new key")

    def __repr__(self) -> str:
        return f"PrivateKey({self.public.bits} bits, {self.public.fingerprint[:16]})"

    @cached_property
    def public(self) -> PublicKey:
        """The key that others may have."""
        return PublicKey(self.p * self.q, self.allow_small)

    @cached_property
    def _crt_constants(self) -> tuple[Any, ...]:
        p, q = gmpy2.mpz(self.p), gmpy2.mpz(self.q)
        # L(g^(p-1) mod p^2) for g = 1 + N is (p-1) q mod p
        p_factor = gmpy2.invert((p - 1) * q % p, p)
        q_factor = gmpy2.invert((q - 1) * p % q, q)
        return p, q, p * p, q * q, p_factor, q_factor, gmpy2.invert(p, q)

    def decrypt(self, ciphertext: Ciphertext) -> int:
        """The content, from 0 to N - 1.

        A random summand is added first and taken away at the end, so that whoever sent the
        ciphertext does not choose which numbers are exponentiated: the time it takes says less.
        """
        p, q, p_squared, q_squared, p_factor, q_factor, p_inverse = self._crt_constants
        summand = secrets.randbelow(self.public.n)
        shifted_ciphertext = self.public.check_ciphertext(ciphertext) * self.public.embed_plaintext(
            summand
        )
        plain_p = (
            (gmpy2.powmod(shifted_ciphertext % p_squared, p - 1, p_squared) - 1) // p * p_factor % p
        )
        plain_q = (
            (gmpy2.powmod(shifted_ciphertext % q_squared, q - 1, q_squared) - 1) // q * q_factor % q
        )
        return int((plain_p + p * ((plain_q - plain_p) * p_inverse % q) - summand) % self.public.n)

    def to_json(self) -> str:
        """Write the key; guard such a file."""
        return dump_document("paillier-key", KEY_FILE_VERSION, {"p": hex(self.p), "q": hex(self.q)})

    @classmethod
    def from_json(cls, text: str | bytes, *, allow_small: bool = False) -> PrivateKey:
        """Read what :meth:`to_json` wrote."""
        body = load_document(text, "paillier-key", KEY_FILE_VERSION, _PrivateKeyBody)
        return cls(parse_number(body.p), parse_number(body.q), allow_small)


class _PrivateKeyBody(Body):
    p: str
    q: str


class _PublicKeyBody(Body):
    n: str


def parse_number(text: str) -> int:
    """A number of a key as it is written in a file, in hexadecimal and of limited length."""
    if len(text) > MAX_MODULUS_BITS // 4 + len("0x"):
        raise PrivacyError(
            f"a number of a Paillier key has {len(text)} digits; keys have at most "
            f"{MAX_MODULUS_BITS} bits"
        )
    try:
        return int(text, 16)
    except ValueError:
        raise FormatError("the numbers of this Paillier key are not hexadecimal") from None


class Encryptor:
    """Encrypts for one key, with a fixed-base table of an h of its own.

    An exponent has four times as many bits as the key has strength: 512 for 3072 bits. The key's
    owner works modulo p^2 and q^2 with an exponent of its own for each, of 5/8 the bits: together
    more than one long exponent. Finding p through repeated values modulo p takes the square root
    of 2^320 steps and as much memory, which is more than factoring N takes.

    Parameters
    ----------
    public_key : PublicKey
    expected_count : int
        Expected number of encryptions; more make a larger table of powers worthwhile.
    private_key : PrivateKey, optional
        The key's owner encrypts faster: modulo p^2 and q^2, put together at the end.
    """

    def __init__(
        self, public_key: PublicKey, expected_count: int = 64, private_key: PrivateKey | None = None
    ) -> None:
        self.key = public_key
        self.exponent_bits = (
            320 if public_key.bits <= 1024 else 448 if public_key.bits <= 2048 else 512
        )
        random_unit, powers = _draw_unit(public_key.n), [gmpy2.mpz(public_key.n)]
        if private_key is not None:
            self.exponent_bits = self.exponent_bits * 5 // 8
            # x^N and x^p are equally distributed modulo p^2, as q is prime to p - 1
            powers = [gmpy2.mpz(private_key.p), gmpy2.mpz(private_key.q)]
        self.moduli = [power**2 for power in powers]
        self._crt_inverse = gmpy2.invert(*self.moduli) if private_key is not None else None
        window_costs = {
            window_bits: -(-self.exponent_bits // window_bits)
            * ((1 << window_bits) - 1 + expected_count)
            for window_bits in range(1, 9)
        }
        self.window_bits = min(window_costs, key=lambda window_bits: window_costs[window_bits])
        self.power_tables = [
            self._build_power_table(
                gmpy2.powmod(-random_unit * random_unit, power, power**2), power**2
            )
            for power in powers
        ]

    def _build_power_table(self, base: Any, modulus: Any) -> list[list[Any]]:
        """Powers of h: row i holds those of h^(2^(window i))."""
        power_table = []
        for _ in range(-(-self.exponent_bits // self.window_bits)):
            row = [gmpy2.mpz(1)]
            for _ in range((1 << self.window_bits) - 1):
                row.append(row[-1] * base % modulus)
            power_table.append(row)
            base = row[-1] * base % modulus
        return power_table

    def encrypt(self, plaintext: int) -> Ciphertext:
        """A fresh ciphertext of ``plaintext`` mod N."""
        ciphertext = self.key.embed_plaintext(plaintext)
        residues = []
        mask = (1 << self.window_bits) - 1
        for modulus, power_table in zip(self.moduli, self.power_tables, strict=True):
            residue, exponent = ciphertext % modulus, secrets.randbits(self.exponent_bits)
            for row in power_table:
                residue = residue * row[exponent & mask] % modulus
                exponent >>= self.window_bits
            residues.append(residue)
        if len(residues) == 1:
            return residues[0]
        residue_p, residue_q = residues
        return residue_p + self.moduli[0] * (
            (residue_q - residue_p) * self._crt_inverse % self.moduli[1]
        )


def generate_key(bits: int = DEFAULT_KEY_BITS, *, allow_small: bool = False) -> PrivateKey:
    """Make a key from the operating system's randomness.

    Parameters
    ----------
    bits : int, default 3072
        At least 2048.
    allow_small : bool, default False
        For tests only.
    """
    _check_bits(bits, allow_small)
    if bits % 2 or bits < 64:
        raise PrivacyError(f"a Paillier key of {bits} bits cannot be made; use an even number")
    while True:
        p, q = _draw_prime(bits // 2), _draw_prime(bits // 2)
        # far apart, so that nobody finds them near the root of N; (p-1, q-1) share only the 2
        if abs(p - q).bit_length() >= bits // 2 - 20 and gmpy2.gcd(p - 1, q - 1) == 2:
            return PrivateKey(p, q, allow_small)


def _draw_prime(bits: int) -> int:
    """A random prime, 3 mod 4, whose two highest bits are set."""
    while True:
        candidate = secrets.randbits(bits) | 3 << (bits - 2) | 3
        if gmpy2.is_prime(candidate, PRIMALITY_ROUNDS):
            return candidate


def _draw_unit(n: int) -> Any:
    """A uniform element of Z*_N."""
    while True:
        unit = gmpy2.mpz(secrets.randbelow(n))
        if gmpy2.gcd(unit, n) == 1:
            return unit
