"""Identities: a long-term Ed25519 signing key, and a fresh X25519 key for each round.

An identity stays with its owner. What others get is its card: a name and a public key. Cards are
exchanged out of band, by people who can check each other's fingerprints.

Secrets between two parties come from keys that are made for one round, signed by the identities,
and deleted when it ends: an identity alone, stolen later, opens nothing that was sent before. A
disk or a backup may still hold deleted keys.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from discreet.errors import FormatError
from discreet.federated.crypto.key_proof import parse_proof, prove_modulus, verify_modulus
from discreet.federated.refusals import ProtocolError
from discreet.files.documents import Body, dump_document, load_document

if TYPE_CHECKING:
    from discreet.federated.crypto.paillier import PrivateKey

__all__ = ["Card", "CardBody", "Identity"]

IDENTITY_VERSION = 2
CARD_VERSION = 4
PUBLIC_KEY_BYTES = 32
"""Bytes of a public key."""
_NAME_PATTERN = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


def check_name(name: str) -> str:
    """Return a valid party name; refuse any other with the rule for names."""
    if not isinstance(name, str) or not _NAME_PATTERN.fullmatch(name):
        raise FormatError(
            f"{name!r} is not a valid name; use up to 64 letters, digits, dots, dashes and "
            "underscores, such as hospital-b"
        )
    return name


class _IdentityBody(Body):
    name: str
    signing: str


class CardBody(Body):
    """Shape of a card, alone in a file or inside a manifest."""

    name: str
    signing: str
    paillier: str | None
    proof: str | None
    statement: str | None

    def to_card(self) -> Card:
        """Convert the parsed JSON to a card."""
        try:
            signing_key = bytes.fromhex(self.signing)
            statement = bytes.fromhex(self.statement or "")
        except ValueError:
            raise FormatError(f"the key of {self.name!r} is not hexadecimal") from None
        return Card(self.name, signing_key, self.paillier, parse_proof(self.proof or ""), statement)


@dataclass(frozen=True)
class Card:
    """A party's public name and keys; cards with the same name and signing key are equal.

    Parameters
    ----------
    name : str
    signing : bytes
        An Ed25519 public key of 32 bytes.
    paillier : str, optional
        The fingerprint of the party's Paillier key, if it has one.
    proof : bytes
        Proof that this key is well-formed; see :mod:`~discreet.federated.crypto.key_proof`.
    statement : bytes
        The party's signature over fingerprint and proof: comparing the card's fingerprint
        therefore authenticates the Paillier key too, even one that was made later.
    """

    name: str
    signing: bytes
    paillier: str | None = field(default=None, compare=False)
    proof: bytes = field(default=b"", compare=False, repr=False)
    statement: bytes = field(default=b"", compare=False)

    def __post_init__(self) -> None:
        check_name(self.name)
        if len(self.signing) != PUBLIC_KEY_BYTES:
            raise FormatError(f"{self.name}: a public key has {PUBLIC_KEY_BYTES} bytes")
        key_fingerprint = "" if self.paillier is None else self.paillier
        if (key_fingerprint or self.proof or self.statement) and not self.verify_signature(
            self.statement, _encode_key_statement(key_fingerprint, self.proof)
        ):
            raise FormatError(
                f"the Paillier key on the card of {self.name} is not signed by {self.name}; ask "
                "for the card again"
            )

    @property
    def fingerprint(self) -> str:
        """SHA-256 of the key, for people to compare."""
        return hashlib.sha256(self.signing).hexdigest()

    def verify_signature(self, signature: bytes, message: bytes) -> bool:
        """Whether the signature over the message is this party's."""
        try:
            Ed25519PublicKey.from_public_bytes(self.signing).verify(signature, message)
        except (InvalidSignature, ValueError):
            return False
        return True

    @property
    def proof_subject(self) -> bytes:
        """Name and signing key, which the proof of the Paillier key is bound to."""
        return f"{self.name} ".encode() + self.signing

    def verify_modulus(self, n: int) -> None:
        """Refuse a Paillier modulus that the proof on this card does not show to be proper.

        Parameters
        ----------
        n : int
            The modulus whose fingerprint the card states.
        """
        verify_modulus(n, self.proof_subject, self.proof, self.name)

    def to_body(self) -> dict[str, str | None]:
        """Plain values for a JSON document."""
        return {
            "name": self.name,
            "signing": self.signing.hex(),
            "paillier": self.paillier,
            "proof": None if self.paillier is None else self.proof.hex(),
            "statement": None if self.paillier is None else self.statement.hex(),
        }

    def to_json(self) -> str:
        """Write the card as a file to hand out."""
        return dump_document("party", CARD_VERSION, self.to_body())

    @classmethod
    def from_json(cls, text: str | bytes) -> Card:
        """Read what :meth:`to_json` wrote."""
        return load_document(text, "party", CARD_VERSION, CardBody).to_card()


def _encode_key_statement(key_fingerprint: str, proof: bytes) -> bytes:
    """Encode the statement that a party signs about its Paillier key."""
    return b"discreet/paillier/2\0" + key_fingerprint.encode() + b"\0" + proof


@dataclass
class _Session:
    """The private key of one round, and the public keys that all parties signed for it."""

    private_key: X25519PrivateKey
    public_keys: dict[str, bytes] = field(default_factory=dict)


@dataclass(frozen=True, eq=False, repr=False)
class Identity:
    """A party's own secret key, and in memory the keys of the rounds it takes part in.

    Parameters
    ----------
    name : str
    signing : Ed25519PrivateKey
    """

    name: str
    signing: Ed25519PrivateKey
    _sessions: dict[bytes, _Session] = field(default_factory=dict, init=False)

    @classmethod
    def generate(cls, name: str) -> Identity:
        """A fresh key from the operating system's randomness."""
        return cls(check_name(name), Ed25519PrivateKey.generate())

    def __repr__(self) -> str:
        return f"Identity({self.name!r}, {self.card.fingerprint[:16]})"

    @cached_property
    def card(self) -> Card:
        """The public card, without a Paillier key."""
        return Card(self.name, self.signing.public_key().public_bytes_raw())

    def make_card_with_key(self, private_key: PrivateKey) -> Card:
        """Make a card with this party's Paillier key and the proof that the key is well-formed."""
        key_fingerprint = private_key.public.fingerprint
        proof = prove_modulus(private_key, self.card.proof_subject)
        statement = self.sign(_encode_key_statement(key_fingerprint, proof))
        return replace(self.card, paillier=key_fingerprint, proof=proof, statement=statement)

    def sign(self, message: bytes) -> bytes:
        """Sign a message with Ed25519; returns 64 bytes."""
        return self.signing.sign(message)

    def derive_storage_key(self, agreement_hash: bytes, file_name: str) -> bytes:
        """Derive the key under which a secret of one round is kept in a file.

        Parameters
        ----------
        agreement_hash : bytes
            The hash of what is agreed.
        file_name : str
            Of the file, so that no secret can be taken for another.
        """
        derivation_info = b"discreet/folder/1\0" + file_name.encode()
        key_derivation = HKDF(
            algorithm=SHA256(), length=32, salt=agreement_hash, info=derivation_info
        )
        return key_derivation.derive(self.signing.private_bytes_raw())

    # the key of one round

    def get_session_public_key(self, agreement_hash: bytes) -> bytes:
        """Return this party's public key of a round; it is generated at the first call.

        Parameters
        ----------
        agreement_hash : bytes
            The hash of what is agreed.
        """
        if agreement_hash not in self._sessions:
            self._sessions[agreement_hash] = _Session(X25519PrivateKey.generate())
        return self._sessions[agreement_hash].private_key.public_key().public_bytes_raw()

    def get_session_private_key(self, agreement_hash: bytes) -> bytes:
        """Return the private key of a round, to be stored for a restart and deleted at the end."""
        self.get_session_public_key(agreement_hash)
        return self._sessions[agreement_hash].private_key.private_bytes_raw()

    def resume_session(self, agreement_hash: bytes, session_key: bytes) -> None:
        """Go on with the key that :meth:`get_session_private_key` gave before a restart."""
        try:
            self._sessions[agreement_hash] = _Session(
                X25519PrivateKey.from_private_bytes(session_key)
            )
        except ValueError:
            raise FormatError("the kept key of this round is damaged") from None

    def delete_session(self, agreement_hash: bytes) -> None:
        """Drop the key of a round; Python does not overwrite the memory that it was in."""
        self._sessions.pop(agreement_hash, None)

    def store_session_public_keys(
        self, agreement_hash: bytes, public_keys: Mapping[str, bytes]
    ) -> None:
        """Store the public keys that all parties have signed for a round."""
        if self.get_session_public_key(agreement_hash) != public_keys.get(self.name):
            raise ProtocolError(
                "not-agreed",
                f"{self.name} signed with another key for this round, which is lost; start a new "
                "round, or use the state folder that it was begun with",
            )
        self._sessions[agreement_hash].public_keys = dict(public_keys)

    def compute_shared_secret(self, peer: Card, agreement_hash: bytes) -> bytes:
        """Compute the X25519 secret of two parties; possible only while the round runs."""
        session = self._sessions.get(agreement_hash)
        if session is None or peer.name not in session.public_keys:
            raise ProtocolError("not-agreed", f"there is no key with {peer.name} for this round")
        try:
            peer_key = X25519PublicKey.from_public_bytes(session.public_keys[peer.name])
            return session.private_key.exchange(peer_key)
        except ValueError:
            raise ProtocolError(
                "malformed", f"the key of {peer.name} for this round is not a valid X25519 key"
            ) from None

    def to_json(self) -> str:
        """Write the secret key; guard such a file."""
        body = {"name": self.name, "signing": self.signing.private_bytes_raw().hex()}
        return dump_document("identity", IDENTITY_VERSION, body)

    @classmethod
    def from_json(cls, text: str | bytes) -> Identity:
        """Read what :meth:`to_json` wrote."""
        body = load_document(text, "identity", IDENTITY_VERSION, _IdentityBody)
        try:
            signing_key = Ed25519PrivateKey.from_private_bytes(bytes.fromhex(body.signing))
        except ValueError as error:
            raise FormatError(f"this identity is damaged: {error}") from None
        return cls(check_name(body.name), signing_key)
