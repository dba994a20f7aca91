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

from discreet.federated.agreement.identity import Identity
from discreet.federated.agreement.signed import Agreement
from discreet.federated.crypto.sealing import compute_content_length, compute_sealed_length
from discreet.federated.payload import Payload
from discreet.federated.refusals import ProtocolError
from discreet.files.documents import Body, encode_canonical, parse_json
from discreet.files.fault_places import describe_message, describe_place

__all__ = [
    "CHUNK_BYTES",
    "MAX_HEADER_BYTES",
    "MESSAGE_HEADER",
    "SIGNATURE_HEADER",
    "BodyLengths",
    "ExpectedMessages",
    "Inbox",
    "Message",
]
__all__ += ["RAW_MEDIA_TYPE", "encode_request"]

MESSAGE_VERSION = 2
MAX_HEADER_BYTES = 4096
"""Bytes of a header at most."""
CHUNK_BYTES = 1 << 20
"""Bytes of a body that travel in one request at most; also what many proxies let through."""
SIGNATURE_HEADER = "discreet-signature"
"""The HTTP header in which a party signs its requests."""
MESSAGE_HEADER = "discreet-message"
"""The HTTP header that holds the header of the message whose bytes are carried."""
RAW_MEDIA_TYPE = "application/octet-stream"
"""Media type of message bodies."""


@dataclass(frozen=True)
class BodyLengths:
    """How many bytes a body may have.

    Parameters
    ----------
    content_sizes : range
        Possible numbers of bytes before sealing.
    is_sealed : bool, default False
        Whether the whole body is sealed.
    """

    content_sizes: range
    is_sealed: bool = False

    @classmethod
    def from_size(cls, size: int) -> BodyLengths:
        """One length and no other."""
        return cls(range(size, size + 1))

    def __contains__(self, size: int) -> bool:
        return (compute_content_length(size) if self.is_sealed else size) in self.content_sizes


ExpectedMessages = Mapping[tuple[str, str], BodyLengths]
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
        identity: Identity,
        agreement: Agreement,
        kind: str,
        recipient: str,
        payload: bytes | Payload,
    ) -> Message:
        """Create and sign a message of one's own."""
        body = payload if isinstance(payload, Payload) else Payload(payload)
        header_fields = (
            kind,
            identity.name,
            recipient,
            agreement.hash.hex(),
            agreement.round,
            agreement.schema_digest,
        )
        unsigned_message = cls(*header_fields, body.size, body.digest)
        return cls(
            *header_fields,
            unsigned_message.size,
            unsigned_message.digest,
            identity.sign(unsigned_message._signed_bytes),
            body,
        )

    def _to_fields(self) -> dict[str, Any]:
        return {
            "format": "discreet/message",
            "version": MESSAGE_VERSION,
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
    def _signed_bytes(self) -> bytes:
        """What the signature is made over: all fields, the digest of the body among them."""
        return b"discreet/message\0" + encode_canonical(self._to_fields())

    @property
    def header(self) -> bytes:
        """Everything but the body, in one line of JSON."""
        return json.dumps({**self._to_fields(), "signature": self.signature.hex()}).encode()

    def to_bytes(self) -> bytes:
        """Header and body, with a line break between them."""
        return self.header + b"\n" + self.body.read()

    @classmethod
    def from_header(cls, data: bytes, body: Payload | None = None) -> Message:
        """Parse a header; the signature is not checked yet.

        Parameters
        ----------
        data : bytes
        body : Payload, optional
            What is to be read as its body.
        """
        if len(data) > MAX_HEADER_BYTES:
            raise ProtocolError(
                "oversized", f"a header of {len(data)} bytes; it may have {MAX_HEADER_BYTES}"
            )
        try:
            document = parse_json(data)
        except (ValueError, RecursionError):
            raise ProtocolError("truncated", "this message is incomplete; send it again") from None
        try:
            header = _HeaderBody.model_validate(document)
            signature = bytes.fromhex(header.signature)
        except ValidationError as error:
            first_error = error.errors()[0]
            error_place = describe_place(first_error, document)
            reason = describe_message(first_error["msg"])
            raise ProtocolError("malformed", f"at {error_place}: {reason}") from None
        except ValueError:
            raise ProtocolError("malformed", "the signature is not hexadecimal") from None
        if (header.format, header.version) != ("discreet/message", MESSAGE_VERSION):
            raise ProtocolError(
                "malformed",
                f"this is {header.format} {header.version}, and {MESSAGE_VERSION} is needed here; "
                "all parties need the same version of discreet",
            )
        party_fields = (header.kind, header.sender, header.recipient, header.manifest)
        content_fields = (header.round, header.public, header.size, header.digest)
        return cls(*party_fields, *content_fields, signature, body or Payload(b""))

    @classmethod
    def from_bytes(cls, data: bytes, max_body_size: int) -> Message:
        """Parse header and body; refuse a body longer than the limit."""
        if len(data) > MAX_HEADER_BYTES + max_body_size:
            raise ProtocolError(
                "oversized",
                f"{len(data)} bytes; this one may have {MAX_HEADER_BYTES + max_body_size}",
            )
        header_line, _, body_bytes = data.partition(b"\n")
        return cls.from_header(header_line, Payload(body_bytes))

    def with_body(self, body: Payload) -> Message:
        """The same header with another body."""
        return replace(self, body=body)

    def check_header(
        self, agreement: Agreement, own_name: str, expected_kinds: Collection[str]
    ) -> None:
        """Refuse a header that is not for this party and round, or not signed by its sender."""
        if self.round != agreement.round:
            raise ProtocolError(
                "wrong-round", f"the message is of round {self.round}, this is {agreement.round}"
            )
        if self.schema != agreement.schema_digest:
            raise ProtocolError("wrong-schema", "the message follows another schema")
        if self.manifest != agreement.hash.hex():
            raise ProtocolError("wrong-manifest", "the message belongs to another agreement")
        card = agreement.parties.get(self.sender)
        if card is None:
            raise ProtocolError("unknown-sender", f"{self.sender!r} takes no part in this round")
        if not card.verify_signature(self.signature, self._signed_bytes):
            raise ProtocolError("wrong-signature", f"{self.sender} has not signed this message")
        if self.recipient != own_name:
            raise ProtocolError("wrong-recipient", f"the message is for {self.recipient}")
        if self.kind not in expected_kinds:
            raise ProtocolError("wrong-kind", f"{self.kind!r} is not expected from {self.sender}")

    def check_body(self) -> None:
        """Refuse a body that is not the one that was signed."""
        body_size = self.body.size
        if body_size != self.size:
            raise ProtocolError(
                "truncated", f"{body_size} of {self.size} bytes of a {self.kind}; send it again"
            )
        if self.body.digest != self.digest:
            raise ProtocolError(
                "damaged", f"the {self.kind} of {self.sender} was changed on its way; send it again"
            )


class Inbox:
    """What one party has accepted: one message of each expected sender and kind.

    Parameters
    ----------
    agreement : Agreement
    own_name : str
        The party's name.
    expected : mapping of (sender, kind) to BodyLengths
        What may come; it follows from the manifest.
    """

    def __init__(self, agreement: Agreement, own_name: str, expected: ExpectedMessages) -> None:
        self.agreement, self.own_name, self.expected = agreement, own_name, expected
        self.accepted: dict[tuple[str, str], Message] = {}
        self._max_body_size = 0
        for lengths in expected.values():
            body_size = lengths.content_sizes[-1]
            if lengths.is_sealed:
                body_size = compute_sealed_length(body_size)
            self._max_body_size = max(self._max_body_size, body_size)

    def check_expected(self, message: Message) -> None:
        """Refuse, by its header alone, a message that is not new or not expected."""
        message.check_header(self.agreement, self.own_name, {kind for _, kind in self.expected})
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

    def read_message(self, data: bytes | Message) -> Message:
        """Parse and check a new, expected message; it is not accepted yet."""
        message = (
            data if isinstance(data, Message) else Message.from_bytes(data, self._max_body_size)
        )
        self.check_expected(message)
        message.check_body()
        return message

    def accept_message(self, message: Message) -> None:
        """Accept what :meth:`read_message` gave."""
        self.accepted[message.sender, message.kind] = message

    def get_body(self, sender: str, kind: str) -> Payload:
        """What one sender sent."""
        return self.accepted[sender, kind].body

    @property
    def missing_senders(self) -> tuple[str, ...]:
        """Senders of expected messages that have not arrived, in the order of the manifest."""
        missing_names = {
            sender for sender, kind in self.expected if (sender, kind) not in self.accepted
        }
        return tuple(name for name in self.agreement.parties if name in missing_names)

    def require_all_messages(self) -> None:
        """Refuse to go on while someone is missing."""
        if self.missing_senders:
            sender_count = len({sender for sender, _ in self.expected})
            missing_names = ", ".join(self.missing_senders)
            raise ProtocolError(
                "out-of-order",
                f"waiting for {len(self.missing_senders)} of {sender_count}: {missing_names}",
            )


def encode_request(agreement: Agreement, method: str, target: str, moment: str) -> bytes:
    """Encode the bytes that a party signs for an HTTP request.

    Parameters
    ----------
    agreement : Agreement
    method, target : str
        Such as GET and /messages/hospital-a?kind=labels.
    moment : str
        Seconds since 1970.
    """
    return b"discreet/request\0" + agreement.hash + f"\0{method} {target} {moment}".encode()
