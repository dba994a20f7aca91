"""Who is who: an Ed25519 key to sign with and an X25519 key to agree on secrets with.

An identity stays with its owner. What others get is its card: a name and two public keys. Cards
are exchanged out of band, by people who can check each other's fingerprints.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from functools import cached_property

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey

from discreet.documents import Body, dump, load
from discreet.errors import FormatError
from discreet.federated.refusals import ProtocolError

__all__ = ["Card", "CardBody", "Identity"]

VERSION = 1
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


def check_name(name: str) -> str:
    """A party's name, or a sentence about what names look like."""
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise FormatError(
            f"{name!r} is no name for a party; use up to 64 letters, digits, dots, dashes and "
            "underscores, such as hospital-b"
        )
    return name


class CardBody(Body):
    """Shape of a card, alone in a file or inside a manifest."""

    name: str
    signing: str
    agreement: str

    def card(self) -> Card:
        """The value this shape stands for."""
        try:
            keys = bytes.fromhex(self.signing), bytes.fromhex(self.agreement)
        except ValueError:
            raise FormatError(f"the keys of {self.name!r} are not hexadecimal") from None
        return Card(self.name, *keys)


@dataclass(frozen=True)
class Card:
    """A party as others know it.

    Parameters
    ----------
    name : str
    signing, agreement : bytes
        Public keys of 32 bytes, Ed25519 and X25519.
    """

    name: str
    signing: bytes
    agreement: bytes

    def __post_init__(self) -> None:
        check_name(self.name)
        if len(self.signing) != 32 or len(self.agreement) != 32:
            raise FormatError(f"{self.name}: a public key has 32 bytes")

    @property
    def fingerprint(self) -> str:
        """SHA-256 over both keys, for people to compare."""
        return hashlib.sha256(self.signing + self.agreement).hexdigest()

    def verify(self, signature: bytes, signed: bytes) -> bool:
        """Whether this party signed it."""
        try:
            Ed25519PublicKey.from_public_bytes(self.signing).verify(signature, signed)
        except (InvalidSignature, ValueError):
            return False
        return True

    def to_body(self) -> dict[str, str]:
        """Plain values for a JSON document."""
        keys = {"signing": self.signing.hex(), "agreement": self.agreement.hex()}
        return {"name": self.name, **keys}

    def to_json(self) -> str:
        """Write the card as a file to hand out."""
        return dump("party", VERSION, self.to_body())

    @classmethod
    def from_json(cls, text: str | bytes) -> Card:
        """Read what :meth:`to_json` wrote."""
        return load(text, "party", VERSION, CardBody).card()


@dataclass(frozen=True, eq=False, repr=False)
class Identity:
    """A party's own two secret keys."""

    name: str
    signing: Ed25519PrivateKey
    agreement: X25519PrivateKey

    @classmethod
    def generate(cls, name: str) -> Identity:
        """Fresh keys from the operating system's randomness."""
        return cls(check_name(name), Ed25519PrivateKey.generate(), X25519PrivateKey.generate())

    def __repr__(self) -> str:
        return f"Identity({self.name!r}, {self.card.fingerprint[:16]})"

    @cached_property
    def card(self) -> Card:
        """What others may know."""
        return Card(
            self.name,
            self.signing.public_key().public_bytes_raw(),
            self.agreement.public_key().public_bytes_raw(),
        )

    def sign(self, message: bytes) -> bytes:
        """Sign; 64 bytes."""
        return self.signing.sign(message)

    def secret_with(self, other: Card) -> bytes:
        """What only these two parties can compute."""
        try:
            return self.agreement.exchange(X25519PublicKey.from_public_bytes(other.agreement))
        except ValueError:
            raise ProtocolError(
                "malformed", f"the agreement key of {other.name} is not a proper one"
            ) from None

    def to_json(self) -> str:
        """Write both secret keys; guard such a file."""
        body = {
            "name": self.name,
            "signing": self.signing.private_bytes_raw().hex(),
            "agreement": self.agreement.private_bytes_raw().hex(),
        }
        return dump("identity", VERSION, body)

    @classmethod
    def from_json(cls, text: str | bytes) -> Identity:
        """Read what :meth:`to_json` wrote."""
        body = load(text, "identity", VERSION, CardBody)
        try:
            return cls(
                check_name(body.name),
                Ed25519PrivateKey.from_private_bytes(bytes.fromhex(body.signing)),
                X25519PrivateKey.from_private_bytes(bytes.fromhex(body.agreement)),
            )
        except ValueError as error:
            raise FormatError(f"this identity is damaged: {error}") from None
