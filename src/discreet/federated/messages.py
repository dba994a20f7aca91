"""Messages: who says what to whom in which round, signed, and refused with a reason.

The signature covers the hash of the manifest, so a message means nothing in any other round.
Round and schema are named as well, only so that a refusal can say what is wrong.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Any

from pydantic import Field, ValidationError

from discreet.documents import Body, canonical
from discreet.federated.agreement.identity import Identity
from discreet.federated.agreement.signed import Agreement
from discreet.federated.refusals import ProtocolError

__all__ = ["HEADER", "ROOM", "Inbox", "Message", "request_bytes"]

Expected = dict[tuple[str, str], range]
VERSION = 1
ROOM = 4096
"""Bytes of a message beside its payload."""
HEADER = "discreet-signature"
"""The header in which a party signs its requests."""


class _MessageBody(Body):
    format: str
    version: int
    kind: str = Field(max_length=64)
    sender: str = Field(max_length=64)
    recipient: str = Field(max_length=64)
    manifest: str = Field(max_length=64)
    round: int
    public: str = Field(alias="schema", max_length=80)
    payload: str
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
    payload: bytes = field(repr=False)
    signature: bytes = field(repr=False, default=b"")

    @classmethod
    def create(
        cls, own: Identity, manifest: Agreement, kind: str, recipient: str, payload: bytes
    ) -> Message:
        """A message of one's own."""
        header = (manifest.hash.hex(), manifest.round, manifest.about)
        bare = cls(kind, own.name, recipient, *header, payload)
        return cls(kind, own.name, recipient, *header, payload, own.sign(bare._signed))

    def _header(self) -> dict[str, Any]:
        return {
            "format": "discreet/message",
            "version": VERSION,
            "kind": self.kind,
            "sender": self.sender,
            "recipient": self.recipient,
            "manifest": self.manifest,
            "round": self.round,
            "schema": self.schema,
        }

    @property
    def _signed(self) -> bytes:
        """What the signature is made over: the header, and the hash of the payload."""
        header = {**self._header(), "payload": hashlib.sha256(self.payload).hexdigest()}
        return b"discreet/message\0" + canonical(header)

    def to_json(self) -> bytes:
        """Write the message for the wire."""
        payload = base64.b64encode(self.payload).decode()
        whole = {**self._header(), "payload": payload, "signature": self.signature.hex()}
        return json.dumps(whole).encode()

    @classmethod
    def from_json(cls, data: bytes, largest: int) -> Message:
        """Read a message of at most so many bytes of payload; nothing is believed yet."""
        most = ROOM + 4 * -(-largest // 3)
        if len(data) > most:
            raise ProtocolError("oversized", f"{len(data)} bytes; this one may have {most}")
        try:
            whole = json.loads(data)
        except (ValueError, RecursionError):
            raise ProtocolError("truncated", "this is not a whole message; send it again") from None
        try:
            body = _MessageBody.model_validate(whole)
            payload = base64.b64decode(body.payload, validate=True)
            signature = bytes.fromhex(body.signature)
        except ValidationError as error:
            first = error.errors()[0]
            where = ".".join(str(part) for part in first["loc"]) or "the top"
            raise ProtocolError("malformed", f"at {where}: {first['msg']}") from None
        except (binascii.Error, ValueError):
            raise ProtocolError("malformed", "the payload or signature is not encoded") from None
        if (body.format, body.version) != ("discreet/message", VERSION):
            raise ProtocolError("malformed", f"this is {body.format} {body.version}")
        names = (body.kind, body.sender, body.recipient, body.manifest, body.round, body.public)
        return cls(*names, payload, signature)

    def check(self, manifest: Agreement, own: str, kinds: Collection[str]) -> None:
        """Refuse what is not meant for this party in this round, or not signed by its sender."""
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


class Inbox:
    """What one party has accepted: one message of each expected sender and kind.

    Parameters
    ----------
    manifest : Agreement
    own : str
        The party's name.
    expected : mapping of (sender, kind) to range
        Possible lengths of the payload; they follow from the manifest.
    """

    def __init__(
        self, manifest: Agreement, own: str, expected: dict[tuple[str, str], range]
    ) -> None:
        self.manifest, self.own, self.expected = manifest, own, expected
        self.accepted: dict[tuple[str, str], Message] = {}
        self._largest = max(lengths.stop for lengths in expected.values()) - 1

    def read(self, data: bytes | Message) -> Message:
        """A checked message that is new, of an expected kind and length; it is not kept yet."""
        if isinstance(data, Message):
            data = data.to_json()
        message = Message.from_json(data, self._largest)
        message.check(self.manifest, self.own, {kind for _, kind in self.expected})
        key = (message.sender, message.kind)
        if key not in self.expected:
            raise ProtocolError("wrong-kind", f"{message.sender} has no {message.kind} to send")
        if key in self.accepted:
            if self.accepted[key] == message:
                raise ProtocolError("replayed", f"this {message.kind} has already been accepted")
            raise ProtocolError("duplicate", f"{message.sender} sent another {message.kind} before")
        if len(message.payload) not in self.expected[key]:
            raise ProtocolError(
                "wrong-length",
                f"a {message.kind} of {len(message.payload)} bytes is not what was agreed",
            )
        return message

    def keep(self, message: Message) -> None:
        """Accept what :meth:`read` gave."""
        self.accepted[message.sender, message.kind] = message

    def payload(self, sender: str, kind: str) -> bytes:
        """What one sender sent."""
        return self.accepted[sender, kind].payload

    @property
    def missing(self) -> tuple[str, ...]:
        """Who has not sent what is expected, in the order of the manifest."""
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
    """What a party signs when it asks for something.

    Parameters
    ----------
    manifest : Agreement
    method, target : str
        Such as GET and /messages/hospital-a?kind=labels.
    moment : str
        Seconds since 1970.
    """
    return b"discreet/request\0" + manifest.hash + f"\0{method} {target} {moment}".encode()
