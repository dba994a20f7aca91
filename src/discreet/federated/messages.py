"""Signed messages of a round: header and body, checked on receipt.

A message is a header and a body of raw bytes. The header names the body's length and digest and
is signed, so that it can be judged before a single byte of the body is there. The signature also
covers the hash of the manifest, so a message means nothing in any other round; round and schema
are named as well, only so that a refusal can say what is wrong.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from pydantic import Field, ValidationError

from discreet.documents import Body, canonical, parse_json
from discreet.federated.agreement.identity import Identity
from discreet.federated.agreement.signed import Agreement
from discreet.federated.crypto.sealing import content_length, sealed_length
from discreet.federated.payload import Payload
from discreet.federated.refusals import ProtocolError

__all__ = ["CHUNK", "HEADER", "MESSAGE", "ROOM", "Expected", "Inbox", "Lengths", "Message"]
__all__ += ["RAW", "request_bytes"]

VERSION = 2
ROOM = 4096
"""Bytes of a header at most."""
CHUNK = 1 << 20
"""Bytes of a body that travel in one request at most; also what many proxies let through."""
HEADER = "discreet-signature"
"""The HTTP header in which a party signs its requests."""
MESSAGE = "discreet-message"
"""The HTTP header that holds the header of the message whose bytes are carried."""
RAW = "application/octet-stream"
"""Media type of message bodies."""


@dataclass(frozen=True)
class Lengths:
    """How many bytes a body may have.

    Parameters
    ----------
    contents : range
        Possible numbers of bytes before sealing.
    sealed : bool, default False
        Whether the whole body is sealed.
    """

    contents: range
    sealed: bool = False

    @classmethod
    def exactly(cls, size: int) -> Lengths:
        """One length and no other."""
        return cls(range(size, size + 1))

    def __contains__(self, size: int) -> bool:
        return (content_length(size) if self.sealed else size) in self.contents

    @property
    def largest(self) -> int:
        """The longest body."""
        return sealed_length(self.contents[-1]) if self.sealed else self.contents[-1]


Expected = Mapping[tuple[str, str], Lengths]
"""Who sends what, and how long it may be."""


class _HeaderBody(Body):
    format: str
    version: int
    kind: str = Field(max_length=64)
    sender: str = Field(max_length=64)
    recipient: str = Field(max_length=64)
    manifest: str = Field(max_length=64)
    round: int
    public: str = Field(alias="schema", max_length=80)
    size: int = Field(ge=0, lt=1 << 50)
    digest: str = Field(pattern="^[0-9a-f]{64}$")
    signature: str = Field(max_length=128)


@dataclass(frozen=True)
class Message:
    """One signed message of a round."""

    kind: str
    sender: str
    recipient: str
    manifest: str
    round: int
    schema: str
    size: int
    digest: str
    signature: bytes = field(repr=False, default=b"")
    body: Payload = field(repr=False, default=Payload(b""), compare=False)

    @classmethod
    def create(
        cls,
        own: Identity,
        manifest: Agreement,
        kind: str,
        recipient: str,
        payload: bytes | Payload,
    ) -> Message:
        """Create and sign a message of one's own."""
        body = payload if isinstance(payload, Payload) else Payload(payload)
        names = (kind, own.name, recipient, manifest.hash.hex(), manifest.round, manifest.about)
        bare = cls(*names, body.size, body.digest)
        return cls(*names, bare.size, bare.digest, own.sign(bare._signed), body)

    def _fields(self) -> dict[str, Any]:
        return {
            "format": "discreet/message",
            "version": VERSION,
            "kind": self.kind,
            "sender": self.sender,
            "recipient": self.recipient,
            "manifest": self.manifest,
            "round": self.round,
            "schema": self.schema,
            "size": self.size,
            "digest": self.digest,
        }

    @property
    def _signed(self) -> bytes:
        """What the signature is made over: all fields, the digest of the body among them."""
        return b"discreet/message\0" + canonical(self._fields())

    @property
    def payload(self) -> bytes:
        """The body, read at once."""
        return self.body.read()

    @property
    def header(self) -> bytes:
        """Everything but the body, in one line of JSON."""
        return json.dumps({**self._fields(), "signature": self.signature.hex()}).encode()

    def to_bytes(self) -> bytes:
        """Header and body, with a line break between them."""
        return self.header + b"\n" + self.payload

    @classmethod
    def from_header(cls, data: bytes, body: Payload | None = None) -> Message:
        """Parse a header; the signature is not checked yet.

        Parameters
        ----------
        data : bytes
        body : Payload, optional
            What is to be read as its body.
        """
        if len(data) > ROOM:
            raise ProtocolError("oversized", f"a header of {len(data)} bytes; it may have {ROOM}")
        try:
            whole = parse_json(data)
        except (ValueError, RecursionError):
            raise ProtocolError("truncated", "this is not a whole message; send it again") from None
        try:
            found = _HeaderBody.model_validate(whole)
            signature = bytes.fromhex(found.signature)
        except ValidationError as error:
            first = error.errors()[0]
            where = ".".join(str(part) for part in first["loc"]) or "the top"
            raise ProtocolError("malformed", f"at {where}: {first['msg']}") from None
        except ValueError:
            raise ProtocolError("malformed", "the signature is not hexadecimal") from None
        if (found.format, found.version) != ("discreet/message", VERSION):
            raise ProtocolError(
                "malformed",
                f"this is {found.format} {found.version}, and {VERSION} is needed here; all "
                "parties need the same version of discreet",
            )
        names = (found.kind, found.sender, found.recipient, found.manifest)
        which = (found.round, found.public, found.size, found.digest)
        return cls(*names, *which, signature, body or Payload(b""))

    @classmethod
    def from_bytes(cls, data: bytes, largest: int) -> Message:
        """Parse header and body; refuse a body longer than the limit."""
        if len(data) > ROOM + largest:
            raise ProtocolError(
                "oversized", f"{len(data)} bytes; this one may have {ROOM + largest}"
            )
        head, _, body = data.partition(b"\n")
        return cls.from_header(head, Payload(body))

    def with_body(self, body: Payload) -> Message:
        """The same header with another body."""
        return replace(self, body=body)

    def check(self, manifest: Agreement, own: str, kinds: Collection[str]) -> None:
        """Refuse a header that is not for this party and round, or not signed by its sender."""
        if self.round != manifest.round:
            raise ProtocolError(
                "wrong-round", f"the message is of round {self.round}, this is {manifest.round}"
            )
        if self.schema != manifest.about:
            raise ProtocolError("wrong-schema", "the message follows another schema")
        if self.manifest != manifest.hash.hex():
            raise ProtocolError("wrong-manifest", "the message belongs to another agreement")
        card = manifest.parties.get(self.sender)
        if card is None:
            raise ProtocolError("unknown-sender", f"{self.sender!r} takes no part in this round")
        if not card.verify(self.signature, self._signed):
            raise ProtocolError("wrong-signature", f"{self.sender} has not signed this message")
        if self.recipient != own:
            raise ProtocolError("wrong-recipient", f"the message is for {self.recipient}")
        if self.kind not in kinds:
            raise ProtocolError("wrong-kind", f"{self.kind!r} is not expected from {self.sender}")

    def check_body(self) -> None:
        """Refuse a body that is not the one that was signed."""
        size = self.body.size
        if size != self.size:
            raise ProtocolError(
                "truncated", f"{size} of {self.size} bytes of a {self.kind}; send it again"
            )
        if self.body.digest != self.digest:
            raise ProtocolError(
                "damaged", f"the {self.kind} of {self.sender} was changed on its way; send it again"
            )


class Inbox:
    """What one party has accepted: one message of each expected sender and kind.

    Parameters
    ----------
    manifest : Agreement
    own : str
        The party's name.
    expected : mapping of (sender, kind) to Lengths
        What may come; it follows from the manifest.
    """

    def __init__(self, manifest: Agreement, own: str, expected: Expected) -> None:
        self.manifest, self.own, self.expected = manifest, own, expected
        self.accepted: dict[tuple[str, str], Message] = {}
        self._largest = max((lengths.largest for lengths in expected.values()), default=0)

    def expect(self, message: Message) -> None:
        """Refuse, by its header alone, a message that is not new or not expected."""
        message.check(self.manifest, self.own, {kind for _, kind in self.expected})
        key = (message.sender, message.kind)
        if key not in self.expected:
            raise ProtocolError("wrong-kind", f"{message.sender} has no {message.kind} to send")
        if key in self.accepted:
            if self.accepted[key] == message:
                raise ProtocolError("replayed", f"this {message.kind} has already been accepted")
            raise ProtocolError("duplicate", f"{message.sender} sent another {message.kind} before")
        if message.size not in self.expected[key]:
            raise ProtocolError(
                "wrong-length", f"a {message.kind} of {message.size} bytes is not what was agreed"
            )

    def read(self, data: bytes | Message) -> Message:
        """Parse and check a new, expected message; it is not accepted yet."""
        message = data if isinstance(data, Message) else Message.from_bytes(data, self._largest)
        self.expect(message)
        message.check_body()
        return message

    def keep(self, message: Message) -> None:
        """Accept what :meth:`read` gave."""
        self.accepted[message.sender, message.kind] = message

    def body(self, sender: str, kind: str) -> Payload:
        """What one sender sent."""
        return self.accepted[sender, kind].body

    @property
    def missing(self) -> tuple[str, ...]:
        """Senders of expected messages that have not arrived, in the order of the manifest."""
        late = {sender for sender, kind in self.expected if (sender, kind) not in self.accepted}
        return tuple(name for name in self.manifest.parties if name in late)

    def require_all(self) -> None:
        """Refuse to go on while someone is missing."""
        if self.missing:
            senders = len({sender for sender, _ in self.expected})
            names = ", ".join(self.missing)
            raise ProtocolError(
                "out-of-order", f"waiting for {len(self.missing)} of {senders}: {names}"
            )


def request_bytes(manifest: Agreement, method: str, target: str, moment: str) -> bytes:
    """Encode the bytes that a party signs for an HTTP request.

    Parameters
    ----------
    manifest : Agreement
    method, target : str
        Such as GET and /messages/hospital-a?kind=labels.
    moment : str
        Seconds since 1970.
    """
    return b"discreet/request\0" + manifest.hash + f"\0{method} {target} {moment}".encode()
