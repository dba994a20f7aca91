"""Client of the collector: signs the agreement, exchanges messages, and ends the round.

Below it are, each in a module of its own: one request (``transport``), the tries until there is an
answer (``retrying_transport``), when a party gives up (``patience``), messages in chunks
(``message_transfer``), and what a party reports meanwhile (``status_reporter``).
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from types import TracebackType
from typing import Any, Generic, Self, TypeVar, cast

import httpx

from discreet.federated.agreement.identity import Card, Identity
from discreet.federated.agreement.manifest import Manifest
from discreet.federated.agreement.signed import Agreement
from discreet.federated.messages import Message
from discreet.federated.refusals import ProtocolError, Reason
from discreet.federated.service.collector_answers import CollectedSignatures
from discreet.federated.service.message_transfer import MessageTransfer
from discreet.federated.service.patience import Patience, RetryPolicy
from discreet.federated.service.retrying_transport import RetryingTransport
from discreet.federated.service.state_folder import StateFolder
from discreet.federated.service.status_reporter import (
    NullListener,
    ProgressListener,
    StatusReporter,
)
from discreet.federated.service.transport import CollectorTransport

__all__ = ["CollectorClient", "RoundClient"]

AgreementT = TypeVar("AgreementT", bound=Agreement)

DEFAULT_POLICY = RetryPolicy()
"""Pauses and tries of every client."""


class CollectorClient(Generic[AgreementT]):
    """Client of one collector under one agreement.

    Parameters
    ----------
    url : str
        Such as ``https://collector.example:8443``.
    identity : Identity
    agreement : Manifest or Invitation
        As one has read and approved it.
    authority : str, optional
        A file with the certificate that the collector's must be signed by.
    listener : ProgressListener, optional
        Told what is being waited for, and how far a transfer is.
    """

    def __init__(
        self,
        url: str,
        identity: Identity,
        agreement: AgreementT,
        *,
        authority: str | None = None,
        listener: ProgressListener | None = None,
    ) -> None:
        self.identity, self.agreement = identity, agreement
        self.transport = CollectorTransport(url, identity, agreement, authority)
        self.reporter = StatusReporter(listener or NullListener())
        self.show, self.show_busy = self.reporter.show, self.reporter.show_busy
        self.patience = Patience(agreement, DEFAULT_POLICY)
        self.connection = RetryingTransport(self.transport, self.patience, self.reporter)
        self.transfer = MessageTransfer(self.connection, identity.name)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.transport.http.close()

    def sign_agreement(self, known_cards: tuple[Card, ...] = ()) -> AgreementT:
        """Sign the agreement, wait for everyone's signature, and check them all."""
        self.agreement.require_known_parties(self.identity.card, known_cards)
        signature = self.agreement.with_signatures(self.identity).signatures[self.identity.name]
        self.connection.send("POST", f"/signatures/{self.identity.name}", content=signature)

        def load_if_signed(state: str) -> AgreementT | None:
            if state not in ("collecting", "done"):
                return None
            # everything but the signatures is taken from one's own copy
            collected = self.connection.parse_answer(
                self.connection.send("GET", "/manifest"),
                CollectedSignatures,
                f"has no signatures of a {self.agreement.KIND}",
            )
            agreement: AgreementT = replace(
                cast(Any, self.agreement), signatures=collected.signatures
            )
            return None if agreement.unsigned_parties else agreement

        signed_agreement = self.connection.wait_until_ready(load_if_signed)
        signed_agreement.require_all_signatures()
        return signed_agreement

    def send_message(self, message: Message) -> None:
        """Send a message; one that was accepted before counts as sent."""
        self.transfer.send_message(message)

    def fetch_message(self, kind: str, sender: str, state_folder: StateFolder) -> Message:
        """Wait for a message; what the folder has of its body is not fetched again."""
        return self.transfer.fetch_message(kind, sender, state_folder)

    def allow_leaving(self) -> None:
        """From now on leave if the collector does not answer for long: nothing depends on it."""
        self.patience.may_leave = True

    def confirm_result(self) -> None:
        """Acknowledge the result; if the collector is gone, continue."""
        received = Message.create(
            self.identity, self.agreement, "received", self.agreement.collector.name, b""
        )
        self._take_last_step(
            lambda: self.send_message(received),
            ("lonely", "abandoned"),
            "the result is kept, but the collector is gone; it is not known whether it "
            "received the acknowledgement",
        )

    def wait_for_end(self) -> None:
        """Wait until the collector has everything, or has given up, or has long been gone."""
        self._take_last_step(
            lambda: self.connection.wait_until_ready(lambda state: state == "done" or None),
            ("lonely",),
            "everything was sent and accepted, but the collector is gone; it is not known "
            "whether the round has ended",
        )

    def _take_last_step(
        self,
        take_last_step: Callable[[], object],
        tolerated_reasons: tuple[Reason, ...],
        gone_line: str,
    ) -> None:
        """Take the last step and leave; a collector that is gone is reported, not an error."""
        self.allow_leaving()
        try:
            take_last_step()
        except ProtocolError as error:
            if error.reason not in tolerated_reasons:
                raise
            self.reporter.say(gone_line)
            return
        self._send_farewell()

    def _send_farewell(self) -> None:
        """Notify the collector that this party leaves: it need not wait any longer.

        What is lost on its way is said again a few times; nobody waits for a collector that left.
        """
        policy = self.patience.policy
        farewell_end = time.monotonic() + policy.farewell_seconds
        for _ in range(policy.max_farewell_tries):
            timeout_seconds = max(policy.retry_seconds, farewell_end - time.monotonic())
            with suppress(httpx.TransportError, ProtocolError):
                self.transport.send(
                    "GET", "/status", params={"changes": -1, "heard": 1}, timeout=timeout_seconds
                )
                return
            if time.monotonic() > farewell_end:
                return
            time.sleep(policy.retry_seconds)


class RoundClient(CollectorClient[Manifest]):
    """Client of the collector of a round."""
