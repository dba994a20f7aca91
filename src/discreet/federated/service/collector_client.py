"""Client of the collector: signs requests, retries until the deadline, transfers in chunks.

A collector that does not answer is asked again until the deadline; it may be restarting. Bodies go
in chunks, each sent again until it is answered: a line that breaks costs a chunk, not a message.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import partial
from types import TracebackType
from typing import Any, Generic, Protocol, Self, TypeVar, cast

import httpx
from pydantic import BaseModel

from discreet.errors import SchemaError
from discreet.federated.agreement import signed
from discreet.federated.agreement.identity import Card, Identity
from discreet.federated.agreement.manifest import Manifest
from discreet.federated.agreement.signed import Agreement, compute_seconds_left
from discreet.federated.messages import (
    CHUNK_BYTES,
    MESSAGE_HEADER,
    RAW_MEDIA_TYPE,
    SIGNATURE_HEADER,
    Message,
    encode_request,
)
from discreet.federated.refusals import ProtocolError, escape_unprintable
from discreet.federated.service import collector_answers as answers
from discreet.federated.service.state_folder import PartialBody, StateFolder
from discreet.hosting.serving import create_trusting_context

__all__ = ["CollectorClient", "RoundClient", "SignedRequests"]

AgreementT = TypeVar("AgreementT", bound=Agreement)
AnswerT = TypeVar("AnswerT", bound=BaseModel)

RETRY_SECONDS = 0.1
REQUEST_TIMEOUT = 30.0
JSON_MEDIA_TYPE = "application/json"
FIRST_CHUNK_BYTES = 1 << 16
"""Bytes of the first chunk; on a quick line they get longer."""
MIN_CHUNK_BYTES = 1 << 14
"""Bytes of a chunk on a line that keeps breaking."""
TARGET_CHUNK_SECONDS = 1.0
"""Seconds that a chunk should not take much longer than."""
MAX_TRANSFER_TRIES = 3
"""How often a damaged body is sent or fetched at most."""
MAX_STALLED_CHUNKS = 10
"""Chunks in a row that a collector may answer without having more than before."""
BETWEEN_STEPS = "going on"
"""Progress text between two named steps."""
MakeRequestArguments = Callable[[], dict[str, Any]]


class ProgressListener(Protocol):
    """Receives status lines and progress of a party."""

    def say(self, line: str, /) -> None:
        """Report what is being waited for, whenever that changes."""

    def show(self, step: str, done: int, total: int, /) -> None:
        """Report progress of the current step; the total is 0 if unknown."""


class NullListener:
    """Discards status lines and progress."""

    def say(self, line: str, /) -> None:
        """Nothing."""

    def show(self, step: str, done: int, total: int, /) -> None:
        """Nothing."""


MAX_ANSWER_BYTES = 4 << 20
"""Bytes of an answer at most: a chunk, or a manifest with its signatures."""
FAREWELL_SECONDS = 5.0
"""Seconds that a leaving party waits for the collector to acknowledge."""
MAX_FAREWELL_TRIES = 5
"""How often a leaving party notifies the collector at most."""
MAX_SILENCE_SECONDS = 60.0
"""Seconds without an answer after which a party that has made all its messages leaves."""


class SignedRequests(httpx.Auth):
    """Signs each request, so that the collector answers parties only.

    Parameters
    ----------
    identity : Identity
    agreement : Agreement
    """

    def __init__(self, identity: Identity, agreement: Agreement) -> None:
        self.identity, self.agreement = identity, agreement

    def auth_flow(self, request: httpx.Request) -> Generator[httpx.Request, httpx.Response, None]:
        """Add the header with name, time and signature."""
        target = request.url.raw_path.decode()
        timestamp = str(int(signed.get_current_time().timestamp()))
        signature = self.identity.sign(
            encode_request(self.agreement, request.method, target, timestamp)
        )
        request.headers[SIGNATURE_HEADER] = f"{self.identity.name} {timestamp} {signature.hex()}"
        yield request


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
        if not url.startswith(("http://", "https://")) or not _parse_host(url):
            raise SchemaError(f"invalid address {url!r}; write https://collector.example:8443")
        tls_verification: Any = True if authority is None else create_trusting_context(authority)
        self.url = url.rstrip("/")
        listener = listener or NullListener()
        self.identity = identity
        self.agreement = agreement
        self.say = listener.say
        self.last_status = ""
        self.show, self.chunk_bytes = listener.show, FIRST_CHUNK_BYTES
        self.max_silence_seconds: float | None = None
        self.http = httpx.Client(
            base_url=url,
            auth=SignedRequests(identity, agreement),
            timeout=REQUEST_TIMEOUT,
            verify=tls_verification,
            trust_env=False,
            headers={"accept-encoding": "identity"},
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.http.close()

    @contextmanager
    def show_busy(self, step_name: str) -> Iterator[None]:
        """Report a step as progress while the block runs."""
        self.show(step_name, 0, 0)
        yield
        self.show(BETWEEN_STEPS, 0, 0)

    def _report_waiting(self, status_line: str) -> None:
        status_text = (
            status_line.rpartition(", ")[0] or status_line
        )  # the seconds alone are no news
        if status_text != self.last_status:
            self.last_status = status_text
            self.say(status_line)
        else:
            self.show(status_text, 0, 0)

    def _request_paced(
        self, method: str, path: str, make_arguments: MakeRequestArguments
    ) -> httpx.Response:
        """Transfer a chunk and adapt the size of the next to the speed of the connection."""
        start_time = time.monotonic()
        response = self._request(method, path, make_arguments)
        if response.status_code == 204:
            return response
        if time.monotonic() - start_time < TARGET_CHUNK_SECONDS:
            self.chunk_bytes = min(CHUNK_BYTES, 2 * self.chunk_bytes)
        else:
            self.chunk_bytes = max(MIN_CHUNK_BYTES, self.chunk_bytes // 2)
        return response

    def _request(
        self,
        method: str,
        path: str,
        make_arguments: MakeRequestArguments = dict,
        **fixed_arguments: Any,
    ) -> httpx.Response:
        """Ask until there is an answer; a refusal is raised.

        Parameters
        ----------
        method, path : str
        make_arguments : callable
            Gives what is different at every try: chunks get shorter when a line breaks.
        """
        first_failure: float | None = None
        while True:
            try:
                response = self._request_once(method, path, **make_arguments(), **fixed_arguments)
            except httpx.TransportError as error:
                answers.refuse_permanent_failure(self.url, error)
                first_failure = time.monotonic() if first_failure is None else first_failure
                self._wait_for_collector(first_failure, f"does not answer ({type(error).__name__})")
                continue
            media_type = response.headers.get("content-type", "nothing").partition(";")[0]
            if response.status_code == 204 or (
                response.status_code < 300 and media_type in (JSON_MEDIA_TYPE, RAW_MEDIA_TYPE)
            ):
                return response
            refusal = answers.parse_refusal(self.url, response, path, media_type)
            if refusal.reason != "storage":
                raise refusal
            self._report_waiting(f"waiting: {refusal.sentence}")
            self._refuse_past_deadline(refusal.sentence)
            time.sleep(10 * RETRY_SECONDS)

    def _request_once(self, method: str, path: str, **arguments: Any) -> httpx.Response:
        """Send one request; refuse an answer that is too long, to limit memory."""
        with self.http.stream(method, path, **arguments) as stream:
            body_bytes = bytearray()
            for piece in stream.iter_raw():  # as it came: nothing unpacks to more than was sent
                body_bytes += piece
                if len(body_bytes) > MAX_ANSWER_BYTES:
                    raise answers.make_wrong_server_error(
                        self.url, f"answered {path} with too many bytes"
                    )
            kept_headers = {
                header_name: stream.headers.get(header_name, "")
                for header_name in ("content-type", MESSAGE_HEADER)
            }
            return httpx.Response(
                stream.status_code, headers=kept_headers, content=bytes(body_bytes)
            )

    def _wait_for_collector(self, first_failure: float, failure_text: str) -> None:
        self._refuse_past_deadline(f"the collector {failure_text}")
        if (
            self.max_silence_seconds is not None
            and time.monotonic() - first_failure > self.max_silence_seconds
        ):
            raise ProtocolError("lonely", f"the collector at {self.url} is gone") from None
        self.chunk_bytes = max(MIN_CHUNK_BYTES, self.chunk_bytes // 2)
        self._report_waiting(f"waiting for the collector at {self.url}, which does not answer")
        time.sleep(RETRY_SECONDS)

    def _refuse_past_deadline(self, status_line: str) -> None:
        remaining_seconds = compute_seconds_left(self.agreement)
        if (
            remaining_seconds is not None and remaining_seconds < -2 * RETRY_SECONDS
        ):  # the collector speaks first
            raise ProtocolError(
                "abandoned", f"the deadline has passed, the round is over; {status_line}"
            )

    def _wait_until_ready(self, take_if_ready: Callable[[str], Any]) -> Any:
        """Poll the status until the callback returns a value; report who is missing meanwhile."""
        last_change = -1  # the first answer comes at once
        while True:
            response = self._request("GET", "/status", params={"changes": last_change})
            status = self._parse_answer(response, answers.RoundStatus, "gives no status of a round")
            last_change, status_line = status.changes, escape_unprintable(status.line)
            result = take_if_ready(status.state)
            if result is not None:
                self.show(BETWEEN_STEPS, 0, 0)  # what was waited for is here
                return result
            if status.state == "abandoned":
                raise ProtocolError("abandoned", status_line)
            self._report_waiting(status_line)
            if status.state != "done":
                self._refuse_past_deadline(status_line)

    def _parse_answer(
        self, response: httpx.Response, answer_type: type[AnswerT], complaint: str
    ) -> AnswerT:
        return answers.parse_answer(self.url, response.content, answer_type, complaint)

    def sign_agreement(self, known_cards: tuple[Card, ...] = ()) -> AgreementT:
        """Sign the agreement, wait for everyone's signature, and check them all."""
        self.agreement.require_known_parties(self.identity.card, known_cards)
        signature = self.agreement.with_signatures(self.identity).signatures[self.identity.name]
        self._request("POST", f"/signatures/{self.identity.name}", content=signature)

        def load_if_signed(state: str) -> AgreementT | None:
            if state not in ("collecting", "done"):
                return None
            # everything but the signatures is taken from one's own copy
            agreement_kind, response = self.agreement.KIND, self._request("GET", "/manifest")
            collected = self._parse_answer(
                response, answers.CollectedSignatures, f"has no signatures of a {agreement_kind}"
            )
            agreement: AgreementT = replace(
                cast(Any, self.agreement), signatures=collected.signatures
            )
            return None if agreement.unsigned_parties else agreement

        signed_agreement: AgreementT = self._wait_until_ready(load_if_signed)
        signed_agreement.require_all_signatures()
        return signed_agreement

    def send_message(self, message: Message) -> None:
        """Send a message; one that was accepted before counts as sent."""
        try:
            for attempt in range(MAX_TRANSFER_TRIES):
                try:
                    return self._send_chunks(message)
                except ProtocolError as error:
                    if (
                        error.reason not in ("damaged", "truncated")
                        or attempt == MAX_TRANSFER_TRIES - 1
                    ):
                        raise
        except ProtocolError as error:
            if error.reason != "replayed":
                raise

    def _send_chunks(self, message: Message) -> None:
        step_name = f"sending {message.kind} for {message.recipient}"
        upload_progress, stalled_chunks = answers.UploadProgress(accepted=False, have=0), 0
        self.show(step_name, upload_progress.have, message.size)
        if message.size > FIRST_CHUNK_BYTES:  # some of it may be there already
            headers = {MESSAGE_HEADER: message.header.decode()}
            upload_progress = self._parse_upload_progress(
                message, self._request("POST", "/messages", headers=headers)
            )
        while not upload_progress.accepted:
            previous_size = upload_progress.have
            make_arguments = partial(self._make_chunk_request, message, upload_progress.have)
            upload_progress = self._parse_upload_progress(
                message, self._request_paced("POST", "/messages", make_arguments)
            )
            stalled_chunks = 0 if upload_progress.have > previous_size else stalled_chunks + 1
            if stalled_chunks > MAX_STALLED_CHUNKS:
                raise ProtocolError(
                    "truncated",
                    f"the collector at {self.url} accepts no more bytes of the {message.kind}",
                )
            self.show(step_name, upload_progress.have, message.size)

    def _make_chunk_request(self, message: Message, offset: int) -> dict[str, Any]:
        """A request with the next chunk of a body."""
        return {
            "params": {"offset": offset},
            "headers": {MESSAGE_HEADER: message.header.decode()},
            "content": message.body.get_slice(offset, offset + self.chunk_bytes).read(),
        }

    def _parse_upload_progress(
        self, message: Message, response: httpx.Response
    ) -> answers.UploadProgress:
        """How far a message has come."""
        upload_progress = self._parse_answer(
            response, answers.UploadProgress, "does not say how much of a message it has"
        )
        if upload_progress.have > message.size:
            raise answers.make_wrong_server_error(self.url, "has more of a message than there is")
        return upload_progress

    def fetch_message(self, kind: str, sender: str, state_folder: StateFolder) -> Message:
        """Wait for a message; its body is put into a folder, and checked.

        Parameters
        ----------
        kind, sender : str
        state_folder : StateFolder
            What is there of the body already is not fetched again.
        """
        for attempt in range(MAX_TRANSFER_TRIES):
            message, chunk = self._wait_until_ready(
                lambda state: self._fetch_chunk(kind, sender, 0)
            )
            partial_body = state_folder.open_partial_body(f"{sender} {kind}", message)
            try:
                partial_body.add_chunk(0, chunk)
                return self._fetch_remainder(message, partial_body)
            except ProtocolError as error:
                if (
                    error.reason not in ("damaged", "truncated")
                    or attempt == MAX_TRANSFER_TRIES - 1
                ):
                    raise
        raise AssertionError("unreachable")

    def _fetch_remainder(self, message: Message, partial_body: PartialBody) -> Message:
        """The rest of a body, a chunk at a time."""
        step_name = f"fetching {message.kind} of {message.sender}"
        while partial_body.size < message.size:
            fetched_chunk = self._fetch_chunk(message.kind, message.sender, partial_body.size)
            if fetched_chunk is None or fetched_chunk[0] != message or not fetched_chunk[1]:
                raise ProtocolError("truncated", f"the {message.kind} changed on its way")
            partial_body.add_chunk(partial_body.size, fetched_chunk[1])
            self.show(step_name, partial_body.size, message.size)
        return partial_body.read_complete_message()

    def _fetch_chunk(self, kind: str, sender: str, offset: int) -> tuple[Message, bytes] | None:
        """The header of a message, and a chunk of its body, once it is there."""
        path, query = f"/messages/{self.identity.name}", {"kind": kind, "sender": sender}

        def make_arguments() -> dict[str, Any]:
            return {"params": {**query, "offset": offset, "limit": self.chunk_bytes}}

        response = self._request_paced("GET", path, make_arguments)
        if response.status_code == 204:
            return None
        return Message.from_header(
            response.headers.get(MESSAGE_HEADER, "").encode()
        ), response.content

    def leave_if_alone(self) -> None:
        """From now on leave if the collector does not answer for long: nothing depends on it."""
        self.max_silence_seconds = MAX_SILENCE_SECONDS

    def confirm_result(self) -> None:
        """Acknowledge the result; if the collector is gone, continue."""
        self.leave_if_alone()
        collector = self.agreement.collector.name
        try:
            self.send_message(
                Message.create(self.identity, self.agreement, "received", collector, b"")
            )
        except ProtocolError as error:
            if error.reason not in ("lonely", "abandoned"):
                raise
            self.say(
                "the result is kept, but the collector is gone; it is not known whether it "
                "received the acknowledgement"
            )
            return
        self._send_farewell()

    def wait_for_end(self) -> None:
        """Wait until the collector has everything, or has given up, or has long been gone."""
        self.leave_if_alone()
        try:
            self._wait_until_ready(lambda state: True if state == "done" else None)
        except ProtocolError as error:
            if error.reason != "lonely":
                raise
            self.say(
                "everything was sent and accepted, but the collector is gone; it is not known "
                "whether the round has ended"
            )
            return
        self._send_farewell()

    def _send_farewell(self) -> None:
        """Notify the collector that this party leaves: it need not wait any longer.

        What is lost on its way is said again a few times; nobody waits for a collector that left.
        """
        farewell_end = time.monotonic() + FAREWELL_SECONDS
        for _ in range(MAX_FAREWELL_TRIES):
            timeout_seconds = max(RETRY_SECONDS, farewell_end - time.monotonic())
            with suppress(httpx.TransportError, ProtocolError):
                self._request_once(
                    "GET", "/status", params={"changes": -1, "heard": 1}, timeout=timeout_seconds
                )
                return
            if time.monotonic() > farewell_end:
                return
            time.sleep(RETRY_SECONDS)


class RoundClient(CollectorClient[Manifest]):
    """Client of the collector of a round."""


def _parse_host(url: str) -> str:
    try:
        return httpx.URL(url).host
    except httpx.InvalidURL:
        return ""
