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
from discreet.federated.agreement.signed import Agreement, compute_seconds_left
from discreet.federated.messages import (
    BodyLengths,
    ExpectedMessages,
    Inbox,
    Message,
    encode_request,
)
from discreet.federated.refusals import ProtocolError
from discreet.federated.service.state_folder import StateFolder

__all__ = ["CollectorSession"]

MAX_CLOCK_SKEW_SECONDS = 600
"""Seconds by which the clocks of two parties may differ."""

AgreementT = TypeVar("AgreementT", bound=Agreement)


class CollectorSession(ABC, Generic[AgreementT]):
    """The collector under one agreement, over its folder.

    Subclasses decide what to do with messages addressed to the collector.

    Parameters
    ----------
    identity : Identity
    agreement : Manifest or Invitation
    folder : path
    routes : mapping of recipient to what is expected
        What the collector itself makes for others is not taken from anyone.
    confirming_parties : collection of str
        Who says ``received`` at the end.
    """

    def __init__(
        self,
        identity: Identity,
        agreement: AgreementT,
        folder: str | Path,
        routes: dict[str, ExpectedMessages],
        confirming_parties: Collection[str],
    ) -> None:
        self.identity, self.folder = identity, StateFolder(folder, agreement)
        self.lock = threading.RLock()
        self.change_count = 0
        """Number of changes so far; clients that wait for news compare it."""
        self.own_problem = ""
        """What keeps the collector itself from going on, such as a full disk."""
        confirmations = {
            (name, "received"): BodyLengths.from_size(0) for name in confirming_parties
        }
        self.inboxes = {}
        for name, expected in routes.items():
            expected_from_others = {
                sender_and_kind: body_lengths
                for sender_and_kind, body_lengths in expected.items()
                if sender_and_kind[0] != identity.name
            }
            if name == identity.name:
                expected_from_others |= confirmations
            self.inboxes[name] = Inbox(agreement, name, expected_from_others)
        self.folder.join_round(identity)
        self.abandoned = self.folder.read("abandoned") is not None
        """Whether someone was told that the deadline had passed."""
        self.agreement = agreement.with_signatures(identity)
        self.departed_parties: set[str] = set()
        """Parties that know of the result and have left."""
        for name in agreement.parties:
            stored_signature = self.folder.read(f"{name}.signature") or b""
            self._apply_signature(name, stored_signature.decode().partition(" ")[2])
        self._start_machine()
        for message in self.folder.iter_messages(".message"):
            try:
                self._accept_message(message, is_stored=True)
            except ProtocolError:  # kept, but killed before it was refused
                continue

    # abstract: subclasses implement these

    @abstractmethod
    def _start_machine(self) -> None:
        """Start the machine, if everyone has signed and it has not been started."""

    @abstractmethod
    def _take_message(self, message: Message) -> None:
        """Give the machine a message for the collector."""

    @abstractmethod
    def _make_result_if_complete(self) -> None:
        """After each message: make the result if nothing is missing."""

    @abstractmethod
    def _list_own_messages(self, recipient: str) -> list[Message]:
        """What the collector itself has for a party."""

    @property
    @abstractmethod
    def has_result(self) -> bool:
        """Whether there is a result."""

    @property
    @abstractmethod
    def is_result_confirmed(self) -> bool:
        """Whether everyone has said that they have the result."""

    @abstractmethod
    def _list_late_parties(self) -> tuple[str, ...]:
        """Who is to act next, after all have signed."""

    @abstractmethod
    def _describe_result(self) -> str:
        """One line about a result that is there."""

    # common to all sessions

    def _apply_signature(self, name: str, signature: str) -> bool:
        """Take a signature over if it is right."""
        if not self.agreement.verify_signature(name, signature):
            return False
        all_signatures = {**self.agreement.signatures, name: signature}
        self.agreement = replace(cast(Any, self.agreement), signatures=all_signatures)
        return True

    def accept_signature(self, name: str, signature: str) -> None:
        """Keep a party's signature."""
        with self.lock:
            self._refuse_if_over()
            if name not in self.agreement.parties:
                raise ProtocolError(
                    "unknown-sender", f"{name!r} takes no part in {self._agreement_reference}"
                )
            agreement_kind = self.agreement.KIND
            earlier_signature = self.agreement.signatures.get(name)
            if not self.agreement.verify_signature(name, signature):
                raise ProtocolError(
                    "wrong-signature", f"{name} has not signed {self._agreement_reference}"
                )
            if earlier_signature not in (None, "", signature):
                raise ProtocolError(
                    "duplicate",
                    f"{name} has signed this {agreement_kind} before, with another key for the "
                    "round; start it with the state folder that it was begun with, or agree on a "
                    "new round",
                )
            self.folder.write(f"{name}.signature", f"{name} {signature}".encode())
            self._apply_signature(name, signature)
            self.change_count += 1
            self._start_machine()

    @property
    def _agreement_reference(self) -> str:
        kind = self.agreement.KIND
        return (
            f"the {kind} {self.agreement.hash.hex()} that the collector runs; compare it with the "
            f"digest that `discreet federated show` prints of yours, and take the same {kind}"
        )

    def _get_inbox(self, message: Message) -> Inbox:
        if message.recipient not in self.inboxes:
            raise ProtocolError("wrong-recipient", f"nothing is sent to {message.recipient!r} here")
        return self.inboxes[message.recipient]

    def check_header(self, message: Message) -> int:
        """Judge a message by its header alone; gives how many bytes of its body are here."""
        with self.lock:
            self._refuse_if_over()
            self.agreement.require_all_signatures()
            self._get_inbox(message).check_expected(message)
            self._refuse_if_early(message)
            return self.folder.open_partial_body(_make_file_name(message), message).size

    def add_chunk(self, message: Message, offset: int, data: bytes) -> int | None:
        """Take a chunk of a body; gives how many bytes are here, and None once it is accepted."""
        self.check_header(message)
        partial_body = self.folder.open_partial_body(_make_file_name(message), message)
        if partial_body.add_chunk(offset, data) < message.size:
            return partial_body.size
        complete_message = partial_body.read_complete_message()
        with self.lock:
            self._get_inbox(message).check_expected(message)  # the same may have come twice at once
            self._accept_message(complete_message)
        return None

    def store_message(self, message: Message) -> None:
        """Keep a message that is here whole, or refuse it with a reason."""
        self.check_header(message)
        message.check_body()
        with self.lock:
            self._accept_message(message)

    def _refuse_if_early(self, message: Message) -> None:
        if message.kind == "received" and not self.has_result:
            raise ProtocolError("out-of-order", f"{message.sender} cannot have the result yet")

    def _accept_message(self, message: Message, is_stored: bool = False) -> None:
        """Write to disk before updating state, so that a failed write can be retried."""
        inbox, file_name = self._get_inbox(message), _make_file_name(message)
        if is_stored:
            inbox.read_message(message)
        else:
            message = self.folder.keep_message(file_name, ".message", message)
        try:
            if message.recipient == self.identity.name and message.kind != "received":
                self._take_message(message)
        except ProtocolError:
            self.folder.drop(file_name, ".message")
            raise
        inbox.accept_message(message)
        self.change_count += 1
        self._make_result_if_complete()

    def authenticate_request(self, header_line: str, method: str, target: str) -> str:
        """Return the party that signed a request; refuse requests of strangers."""
        name, timestamp_text, signature_text = (*header_line.split(" "), "", "", "")[:3]
        card = self.agreement.parties.get(name)
        # at most twelve digits: a number of thousands could not be compared with a clock
        claimed_time = (
            int(timestamp_text)
            if timestamp_text.isascii() and timestamp_text.isdigit() and len(timestamp_text) <= 12
            else 0
        )
        is_outdated = (
            abs(signed.get_current_time().timestamp() - claimed_time) > MAX_CLOCK_SKEW_SECONDS
        )
        try:
            signature_bytes = bytes.fromhex(signature_text)
        except ValueError:
            signature_bytes = b""
        signed_bytes = encode_request(self.agreement, method, target, timestamp_text)
        if card is None or not card.verify_signature(signature_bytes, signed_bytes):
            raise ProtocolError(
                "wrong-signature",
                f"this request is not signed by a party of {self._agreement_reference}",
            )
        if is_outdated:
            raise ProtocolError(
                "wrong-signature", f"the clock of {name} and the collector's differ too much"
            )
        return name

    @property
    def is_known_to_all(self) -> bool:
        """Whether all other parties have said that they know of the result.

        That they were told does not suffice: the answer may be lost on its way.
        """
        return self.departed_parties >= self.agreement.parties.keys() - {self.identity.name}

    def list_messages(self, recipient: str) -> list[Message]:
        """What has come for a party."""
        with self.lock:
            inbox = self.inboxes.get(recipient)
            accepted_messages = [] if inbox is None else list(inbox.accepted.values())
            return accepted_messages + self._list_own_messages(recipient)

    def get_change_marker(self) -> tuple[int, str]:
        """Changes whenever a party might have something to do."""
        return self.change_count, self._stage

    @property
    def _stage(self) -> str:
        stage = "signing" if self.agreement.unsigned_parties else "collecting"
        return "done" if self.has_result else "abandoned" if self.is_over else stage

    @property
    def is_over(self) -> bool:
        """Whether the deadline has passed without a result."""
        return not self.has_result and (self.abandoned or self._is_past_deadline)

    def _abandon_round(self) -> None:
        """Abandon the round for good: parties that were told have deleted their keys."""
        if not self.abandoned:
            self.abandoned = True
            with suppress(FormatError):  # a full disk; said again after the next start
                self.folder.write("abandoned", b"")

    @property
    def is_overdue(self) -> bool:
        """Whether the deadline has passed with a result that was not taken."""
        return self.has_result and not self.is_result_confirmed and self._is_past_deadline

    @property
    def _is_past_deadline(self) -> bool:
        remaining_seconds = compute_seconds_left(self.agreement)
        return remaining_seconds is not None and remaining_seconds <= 0

    def _refuse_if_over(self) -> None:
        if self.is_over:
            self._abandon_round()
            raise ProtocolError("abandoned", self.format_status_line())

    def list_missing_parties(self) -> tuple[str, ...]:
        """Who is to act next."""
        return self.agreement.unsigned_parties or self._list_late_parties()

    def format_status_line(self) -> str:
        """The state in one line."""
        with self.lock:
            if self.is_overdue:
                return (
                    f"the deadline has passed; {self._describe_result()}. Started again with the "
                    "same state folder, the collector still serves it"
                )
            if self.has_result:
                return self._describe_result()
            missing_names = self.list_missing_parties()
            remaining_seconds = compute_seconds_left(self.agreement)
            is_signing = bool(self.agreement.unsigned_parties)
            party_count = len(self.agreement.parties) if is_signing else self.sender_count
            status_line = (
                f"waiting for {len(missing_names)} of {party_count}: {', '.join(missing_names)}"
            )
            status_line += " to sign" if is_signing else ""
            status_line += f" (the collector: {self.own_problem})" if self.own_problem else ""
            if self.is_over:
                return f"the deadline has passed, the round is abandoned; {status_line}"
            return (
                status_line
                if remaining_seconds is None
                else f"{status_line}, {remaining_seconds:.0f} s left"
            )

    @property
    @abstractmethod
    def sender_count(self) -> int:
        """How many parties send something before there is a result."""

    def get_status(self, party_name: str = "", has_heard: bool = False) -> dict[str, Any]:
        """The state for programs.

        Parameters
        ----------
        party_name : str
            A party.
        has_heard : bool
            Whether this party says that it knows of the result, and leaves.
        """
        with self.lock:
            if self.has_result and has_heard:
                self.departed_parties.add(party_name)
            elif self.is_over:
                self._abandon_round()
            return {
                "state": self._stage,
                "missing": list(self.list_missing_parties()),
                "line": self.format_status_line(),
                "changes": self.change_count,
            }


def _make_file_name(message: Message) -> str:
    return f"{message.recipient} {message.sender} {message.kind}"
