"""What any collector does: takes signatures and messages, keeps them on disk, passes them on.

Nothing counts as accepted before it is on the disk, so a collector may be killed and started
again at any point.
"""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from dataclasses import replace
from pathlib import Path
from typing import Any, Generic, TypeVar, cast

from discreet.federated.agreement.identity import Identity
from discreet.federated.agreement.signed import Agreement, seconds_left
from discreet.federated.messages import Expected, Inbox, Message
from discreet.federated.refusals import ProtocolError
from discreet.federated.service.folder import Folder

__all__ = ["Carrier"]

A = TypeVar("A", bound=Agreement)


class Carrier(ABC, Generic[A]):
    """The collector under one agreement, over its folder.

    What it makes of the messages for itself is the business of those who inherit.

    Parameters
    ----------
    own : Identity
    manifest : Manifest or Invitation
    folder : path
    routes : mapping of recipient to what is expected
    """

    def __init__(
        self, own: Identity, manifest: A, folder: str | Path, routes: dict[str, Expected]
    ) -> None:
        self.own, self.folder = own, Folder(folder, manifest)
        self.lock = threading.RLock()
        self.routes = routes
        self.largest = max(r.stop for expected in routes.values() for r in expected.values())
        self.inboxes = {n: Inbox(manifest, n, e) for n, e in routes.items()}
        self.manifest = manifest.signed_by(own)
        for data in self.folder.files(".signature"):
            name, _, signature = data.decode().partition(" ")
            self._signed(name, signature)
        self._begin()
        for data in self.folder.files(".message"):
            self._accept(data, stored=True)

    # what those who inherit fill in

    @abstractmethod
    def _begin(self) -> None:
        """Start the machine, if everyone has signed and it has not been started."""

    @abstractmethod
    def _take(self, message: Message) -> None:
        """Give the machine a message for the collector."""

    @abstractmethod
    def _advance(self) -> None:
        """After each message: make the result if nothing is missing."""

    @abstractmethod
    def _made(self, recipient: str) -> list[Message]:
        """What the collector itself has for a party."""

    @property
    @abstractmethod
    def done(self) -> bool:
        """Whether there is a result."""

    @property
    @abstractmethod
    def finished(self) -> bool:
        """Whether everyone has said that they have the result."""

    @abstractmethod
    def _late(self) -> tuple[str, ...]:
        """Who is to act next, after all have signed."""

    @abstractmethod
    def _after(self) -> str:
        """One line about a result that is there."""

    # the rest is the same for all

    def _signed(self, name: str, signature: str) -> bool:
        """Take a signature over if it is right."""
        if not self.manifest.accepts(name, signature):
            return False
        signatures = {**self.manifest.signatures, name: signature}
        self.manifest = replace(cast(Any, self.manifest), signatures=signatures)
        return True

    def sign(self, name: str, signature: str) -> None:
        """Keep a party's signature."""
        with self.lock:
            self._refuse_if_over()
            if name not in self.manifest.parties:
                raise ProtocolError("unknown-sender", f"{name!r} takes no part in this round")
            if len(signature) != 128 or not self._signed(name, signature):
                kind = self.manifest.KIND
                raise ProtocolError("wrong-signature", f"{name} has not signed this {kind}")
            self.folder.write(f"{name}.signature", f"{name} {signature}".encode())
            self._begin()

    def post(self, data: bytes) -> None:
        """Keep a message, or refuse it with a reason."""
        with self.lock:
            self._refuse_if_over()
            self.manifest.require_agreed()
            self._accept(data)

    def _accept(self, data: bytes, stored: bool = False) -> None:
        recipient = Message.from_json(data, self.largest).recipient
        if recipient not in self.inboxes:
            raise ProtocolError("wrong-recipient", f"nothing is sent to {recipient!r} here")
        inbox = self.inboxes[recipient]
        message = inbox.read(data)
        if recipient == self.own.name and message.kind != "received":
            self._take(message)
        if not stored:
            name = f"{message.recipient} {message.sender} {message.kind}.message"
            self.folder.write(name, message.to_json())
        inbox.keep(message)
        self._advance()

    def messages(self, recipient: str) -> list[Message]:
        """What has come for a party."""
        with self.lock:
            inbox = self.inboxes.get(recipient)
            came = [] if inbox is None else list(inbox.accepted.values())
            return came + self._made(recipient)

    @property
    def over(self) -> bool:
        """Whether the deadline has passed without a result."""
        left = seconds_left(self.manifest)
        return not self.done and left is not None and left <= 0

    def _refuse_if_over(self) -> None:
        if self.over:
            raise ProtocolError("abandoned", self.waiting())

    def missing(self) -> tuple[str, ...]:
        """Who is to act next."""
        return self.manifest.unsigned or self._late()

    def waiting(self) -> str:
        """The state in one line."""
        with self.lock:
            if self.done:
                return self._after()
            names, left = self.missing(), seconds_left(self.manifest)
            signing = bool(self.manifest.unsigned)
            whole = len(self.manifest.parties) if signing else self.actors
            line = f"waiting for {len(names)} of {whole}: {', '.join(names)}"
            line += " to sign" if signing else ""
            if left is None:
                return line
            if left <= 0:
                return f"the deadline has passed, the round is abandoned; {line}"
            return f"{line}, {left:.0f} s left"

    @property
    @abstractmethod
    def actors(self) -> int:
        """How many parties send something before there is a result."""

    def status(self) -> dict[str, Any]:
        """The state for programs."""
        with self.lock:
            stage = "signing" if self.manifest.unsigned else "collecting"
            stage = "done" if self.done else "abandoned" if self.over else stage
            return {"state": stage, "missing": list(self.missing()), "line": self.waiting()}
