"""Base of the collector's sessions: stores signatures and messages and passes them on.

Nothing counts as accepted before it is on the disk, so a collector may be killed and started
again at any point. A message is judged by its header before a byte of its body is taken; bodies
come and go in chunks and stay on the disk, so that memory does not depend on their length.
"""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Collection
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, Generic, TypeVar, cast

from discreet.errors import FormatError
from discreet.federated.agreement import signed
from discreet.federated.agreement.identity import Identity
from discreet.federated.agreement.signed import Agreement, seconds_left
from discreet.federated.messages import Expected, Inbox, Lengths, Message, request_bytes
from discreet.federated.refusals import ProtocolError
from discreet.federated.service.folder import Folder

__all__ = ["Carrier"]

CLOCKS = 600
"""Seconds by which the clocks of two parties may differ."""

A = TypeVar("A", bound=Agreement)


class Carrier(ABC, Generic[A]):
    """The collector under one agreement, over its folder.

    Subclasses decide what to do with messages addressed to the collector.

    Parameters
    ----------
    own : Identity
    manifest : Manifest or Invitation
    folder : path
    routes : mapping of recipient to what is expected
        What the collector itself makes for others is not taken from anyone.
    confirming : collection of str
        Who says ``received`` at the end.
    """

    def __init__(
        self,
        own: Identity,
        manifest: A,
        folder: str | Path,
        routes: dict[str, Expected],
        confirming: Collection[str],
    ) -> None:
        self.own, self.folder = own, Folder(folder, manifest)
        self.lock = threading.RLock()
        self.changes = 0
        """Number of changes so far; clients that wait for news compare it."""
        self.trouble = ""
        """What keeps the collector itself from going on, such as a full disk."""
        said = {(name, "received"): Lengths.exactly(0) for name in confirming}
        self.inboxes = {}
        for name, expected in routes.items():
            foreign = {key: value for key, value in expected.items() if key[0] != own.name}
            if name == own.name:
                foreign |= said
            self.inboxes[name] = Inbox(manifest, name, foreign)
        self.folder.join(own)
        self.abandoned = self.folder.read("abandoned") is not None
        """Whether someone was told that the deadline had passed."""
        self.manifest = manifest.signed_by(own)
        self.seen: set[str] = set()
        """Parties that know of the result and have left."""
        for name in manifest.parties:
            data = self.folder.read(f"{name}.signature") or b""
            self._signed(name, data.decode().partition(" ")[2])
        self._begin()
        for message in self.folder.messages(".message"):
            try:
                self._accept(message, stored=True)
            except ProtocolError:  # kept, but killed before it was refused
                continue

    # abstract: subclasses implement these

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

    # common to all sessions

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
                raise ProtocolError("unknown-sender", f"{name!r} takes no part in {self._running}")
            kind, before = self.manifest.KIND, self.manifest.signatures.get(name)
            if not self.manifest.accepts(name, signature):
                raise ProtocolError("wrong-signature", f"{name} has not signed {self._running}")
            if before not in (None, "", signature):
                raise ProtocolError(
                    "duplicate",
                    f"{name} has signed this {kind} before, with another key for the round; start "
                    "it with the state folder that it was begun with, or agree on a new round",
                )
            self.folder.write(f"{name}.signature", f"{name} {signature}".encode())
            self._signed(name, signature)
            self.changes += 1
            self._begin()

    @property
    def _running(self) -> str:
        kind = self.manifest.KIND
        return (
            f"the {kind} {self.manifest.hash.hex()} that the collector runs; compare it with the "
            f"digest that `discreet federated show` prints of yours, and take the same {kind}"
        )

    def _inbox(self, message: Message) -> Inbox:
        if message.recipient not in self.inboxes:
            raise ProtocolError("wrong-recipient", f"nothing is sent to {message.recipient!r} here")
        return self.inboxes[message.recipient]

    def offer(self, message: Message) -> int:
        """Judge a message by its header alone; gives how many bytes of its body are here."""
        with self.lock:
            self._refuse_if_over()
            self.manifest.require_agreed()
            self._inbox(message).expect(message)
            self._refuse_if_early(message)
            return self.folder.growing(_name(message), message).size

    def add(self, message: Message, offset: int, data: bytes) -> int | None:
        """Take a chunk of a body; gives how many bytes are here, and None once it is accepted."""
        self.offer(message)
        body = self.folder.growing(_name(message), message)
        if body.add(offset, data) < message.size:
            return body.size
        whole = body.whole()
        with self.lock:
            self._inbox(message).expect(message)  # the same may have come twice at once
            self._accept(whole)
        return None

    def post(self, message: Message) -> None:
        """Keep a message that is here whole, or refuse it with a reason."""
        self.offer(message)
        message.check_body()
        with self.lock:
            self._accept(message)

    def _refuse_if_early(self, message: Message) -> None:
        if message.kind == "received" and not self.done:
            raise ProtocolError("out-of-order", f"{message.sender} cannot have the result yet")

    def _accept(self, message: Message, stored: bool = False) -> None:
        """Write to disk before updating state, so that a failed write can be retried."""
        inbox, name = self._inbox(message), _name(message)
        if stored:
            inbox.read(message)
        else:
            message = self.folder.keep(name, ".message", message)
        try:
            if message.recipient == self.own.name and message.kind != "received":
                self._take(message)
        except ProtocolError:
            self.folder.drop(name, ".message")
            raise
        inbox.keep(message)
        self.changes += 1
        self._advance()

    def authenticated(self, line: str, method: str, target: str) -> str:
        """Return the party that signed a request; refuse requests of strangers."""
        name, moment, signature = (*line.split(" "), "", "", "")[:3]
        card = self.manifest.parties.get(name)
        # at most twelve digits: a number of thousands could not be compared with a clock
        told = int(moment) if moment.isascii() and moment.isdigit() and len(moment) <= 12 else 0
        late = abs(signed.now().timestamp() - told) > CLOCKS
        try:
            given = bytes.fromhex(signature)
        except ValueError:
            given = b""
        content = request_bytes(self.manifest, method, target, moment)
        if card is None or not card.verify(given, content):
            raise ProtocolError(
                "wrong-signature", f"this request is not signed by a party of {self._running}"
            )
        if late:
            raise ProtocolError(
                "wrong-signature", f"the clock of {name} and the collector's differ too much"
            )
        return name

    @property
    def everyone_knows(self) -> bool:
        """Whether all other parties have said that they know of the result.

        That they were told does not suffice: the answer may be lost on its way.
        """
        return self.seen >= self.manifest.parties.keys() - {self.own.name}

    def messages(self, recipient: str) -> list[Message]:
        """What has come for a party."""
        with self.lock:
            inbox = self.inboxes.get(recipient)
            came = [] if inbox is None else list(inbox.accepted.values())
            return came + self._made(recipient)

    def news(self) -> tuple[int, str]:
        """Changes whenever a party might have something to do."""
        return self.changes, self._stage

    @property
    def _stage(self) -> str:
        stage = "signing" if self.manifest.unsigned else "collecting"
        return "done" if self.done else "abandoned" if self.over else stage

    @property
    def over(self) -> bool:
        """Whether the deadline has passed without a result."""
        return not self.done and (self.abandoned or self._late_by_now)

    def _abandon(self) -> None:
        """Abandon the round for good: parties that were told have deleted their keys."""
        if not self.abandoned:
            self.abandoned = True
            with suppress(FormatError):  # a full disk; said again after the next start
                self.folder.write("abandoned", b"")

    @property
    def overdue(self) -> bool:
        """Whether the deadline has passed with a result that was not taken."""
        return self.done and not self.finished and self._late_by_now

    @property
    def _late_by_now(self) -> bool:
        left = seconds_left(self.manifest)
        return left is not None and left <= 0

    def _refuse_if_over(self) -> None:
        if self.over:
            self._abandon()
            raise ProtocolError("abandoned", self.waiting())

    def missing(self) -> tuple[str, ...]:
        """Who is to act next."""
        return self.manifest.unsigned or self._late()

    def waiting(self) -> str:
        """The state in one line."""
        with self.lock:
            if self.overdue:
                return (
                    f"the deadline has passed; {self._after()}. Started again with the same "
                    "state folder, the collector serves it still"
                )
            if self.done:
                return self._after()
            names, left = self.missing(), seconds_left(self.manifest)
            signing = bool(self.manifest.unsigned)
            whole = len(self.manifest.parties) if signing else self.actors
            line = f"waiting for {len(names)} of {whole}: {', '.join(names)}"
            line += " to sign" if signing else ""
            line += f" (the collector: {self.trouble})" if self.trouble else ""
            if self.over:
                return f"the deadline has passed, the round is abandoned; {line}"
            return line if left is None else f"{line}, {left:.0f} s left"

    @property
    @abstractmethod
    def actors(self) -> int:
        """How many parties send something before there is a result."""

    def status(self, asked_by: str = "", heard: bool = False) -> dict[str, Any]:
        """The state for programs.

        Parameters
        ----------
        asked_by : str
            A party.
        heard : bool
            Whether this party says that it knows of the result, and leaves.
        """
        with self.lock:
            if self.done and heard:
                self.seen.add(asked_by)
            elif self.over:
                self._abandon()
            return {
                "state": self._stage,
                "missing": list(self.missing()),
                "line": self.waiting(),
                "changes": self.changes,
            }


def _name(message: Message) -> str:
    return f"{message.recipient} {message.sender} {message.kind}"
