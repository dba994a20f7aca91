"""HTTP server of the collector: routes, authentication and long polling.

    GET  /manifest              the manifest with the signatures so far
    POST /signatures/{name}     a party's signature
    POST /messages?offset=N     a chunk of a message's body, from byte N on; without an offset, how
                                much of it is here
    GET  /messages/{recipient}  a chunk of what has come for a party, for this party alone
    GET  /status?changes=N      who is missing, and how long there is; answered when there is news;
                                with heard=1 a party says that it knows of the end, and leaves

Requests are signed by the party that makes them, before a body is read. The header of a message
travels in an HTTP header: it is judged, length, sender and signature, before a byte of the body
is taken. Chunks have at most a mebibyte and can be sent again; the whole body is checked against
its digest. A refusal is a JSON object with a reason and a sentence. No signature or message is
answered with success before it is on the disk, so the process may be killed and started again at
any point; a chunk that was only half there is asked for again.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException

from discreet.errors import FormatError
from discreet.federated import horizontal, vertical
from discreet.federated.agreement.identity import Identity
from discreet.federated.agreement.manifest import Manifest
from discreet.federated.messages import (
    CHUNK_BYTES,
    MESSAGE_HEADER,
    RAW_MEDIA_TYPE,
    SIGNATURE_HEADER,
    Message,
)
from discreet.federated.refusals import ProtocolError
from discreet.federated.service.collector_session import CollectorSession
from discreet.federated.service.routes import list_routes
from discreet.hosting.body_limit import BodyLimit
from discreet.hosting.serving import read_request_body

if TYPE_CHECKING:
    from discreet.federated.crypto.paillier import PrivateKey

__all__ = ["RoundSession", "create_application"]

MAX_SIGNATURE_CHARACTERS = 256
"""Characters of a signature at most."""
STATUS_CODES = {"oversized": 413, "slow": 408, "unknown-path": 404, "late": 410, "abandoned": 410}
POLL_SECONDS = 0.05
"""Seconds between two checks for news while a request is held."""
MAX_INLINE_CORRECTION_SIZE = 1 << 20
"""Rows times counters up to which a correction is made without a thread of its own."""
MAX_HOLD_SECONDS = 10.0
"""Seconds that a request for news is held at most."""


class RoundSession(CollectorSession[Manifest]):
    """One round at the collector, over its folder.

    Parameters
    ----------
    identity : Identity
    manifest : Manifest
    folder : path
    private_key : PrivateKey, optional
        Of the collector, in mode ``probabilities`` of a horizontal round with Paillier.
    report_progress : callable
        Told how far the collector's own work is.
    """

    def __init__(
        self,
        identity: Identity,
        manifest: Manifest,
        folder: str | Path,
        private_key: PrivateKey | None = None,
        report_progress: Callable[[str, int, int], None] = lambda step, done, total: None,
    ) -> None:
        manifest.require_role(identity.card, "collector")
        manifest.require_key(identity.card, private_key)
        self.private_key, self.report_progress = private_key, report_progress
        self.machine: horizontal.HorizontalCollector | vertical.VerticalCollector | None = None
        self.result: Message | None = None
        self.correction: Message | None = None
        receiver_name = manifest.receiver.name
        super().__init__(identity, manifest, folder, list_routes(manifest), [receiver_name])

    def _start_machine(self) -> None:
        if self.machine is None and not self.agreement.unsigned_parties:
            if self.agreement.partition == "vertical":
                self.machine = vertical.VerticalCollector(self.identity, self.agreement)
                self.machine.protocol.report_progress = self.report_progress
                if self.machine.protocol.needs_correction:
                    self._start_correction(self.machine)
            else:
                self.machine = horizontal.HorizontalCollector(
                    self.identity, self.agreement, self.private_key
                )

    def _start_correction(self, machine: vertical.VerticalCollector) -> None:
        """Make the correction; with many rows in a thread of its own, so that nobody waits."""

        def make_correction() -> None:
            while self.correction is None:
                try:
                    correction = self.folder.load_or_create("correction", machine.make_correction)
                except FormatError as error:  # a full disk may have room again
                    self.own_problem = str(error)
                    time.sleep(1)
                    continue
                with self.lock:
                    self.correction, self.own_problem = correction, ""
                    self.change_count += 1

        if machine.protocol.row_count * self.agreement.layout.size < MAX_INLINE_CORRECTION_SIZE:
            make_correction()
        else:
            threading.Thread(target=make_correction, daemon=True).start()

    def _take_message(self, message: Message) -> None:
        assert self.machine is not None
        self.machine.receive(message)

    def _make_result_if_complete(self) -> None:
        if self.machine is not None and not self.machine.missing_senders and self.result is None:
            self.result = self.folder.load_or_create("result", self.machine.make_result)

    def _list_own_messages(self, recipient: str) -> list[Message]:
        if self.result is not None and recipient == self.result.recipient:
            return [self.result]
        if self.correction is not None and recipient == self.correction.recipient:
            return [self.correction]
        return []

    @property
    def has_result(self) -> bool:
        """Whether there is a result."""
        return self.result is not None

    @property
    def is_result_confirmed(self) -> bool:
        """Whether the receiver has said that it has the result."""
        return (self.agreement.receiver.name, "received") in self.inboxes[
            self.identity.name
        ].accepted

    @property
    def sender_count(self) -> int:
        """Providers, and the label provider."""
        return len(self.agreement.parties) - 2

    def _list_late_parties(self) -> tuple[str, ...]:
        late_names: set[str] = set()
        for inbox in self.inboxes.values():
            late_names |= {
                sender for sender, kind in inbox.expected if (sender, kind) not in inbox.accepted
            }
        late_names.discard(self.agreement.receiver.name)
        label_card = self.agreement.label
        if label_card is not None and late_names - {label_card.name}:
            has_sent_labels = any(
                (label_card.name, "labels") in inbox.accepted for inbox in self.inboxes.values()
            )
            late_names = late_names - {label_card.name} if has_sent_labels else {label_card.name}
        return tuple(name for name in self.agreement.parties if name in late_names)

    def _describe_result(self) -> str:
        if self.is_result_confirmed:
            return "finished: the receiver has the result"
        return "all messages are here; waiting for the receiver to take the result"


@dataclass(frozen=True)
class SessionEndpoints:
    """What a party may ask of a session; every request is authenticated first.

    Parameters
    ----------
    session : CollectorSession
        A round, or an alignment.
    """

    session: CollectorSession[Any]

    def authenticate(self, request: Request) -> str:
        """Return the name of the party that signed a request."""
        target = request.url.path + (f"?{request.url.query}" if request.url.query else "")
        header_line = request.headers.get(SIGNATURE_HEADER, "")
        return self.session.authenticate_request(header_line, request.method, target)

    def get_manifest(self, request: Request) -> Response:
        """Return the manifest with the signatures so far."""
        self.authenticate(request)
        return Response(self.session.agreement.to_json(), media_type="application/json")

    async def get_status(
        self, request: Request, changes: int = -1, heard: int = 0
    ) -> dict[str, Any]:
        """Report who is missing; held until there is news, or for MAX_HOLD_SECONDS."""
        party_name = self.authenticate(request)
        stage = self.session.get_change_marker()[1]
        hold_end = _get_loop_time() + MAX_HOLD_SECONDS
        while self.session.get_change_marker() == (changes, stage) and _get_loop_time() < hold_end:
            await asyncio.sleep(POLL_SECONDS)
        return await run_in_threadpool(self.session.get_status, party_name, heard == 1)

    async def post_signature(self, name: str, request: Request) -> dict[str, Any]:
        """Accept the signature of the party that sends it."""
        if self.authenticate(request) != name:  # before a body is read
            raise ProtocolError("unknown-sender", f"only {name} may sign as {name}")
        signature_text = (
            await read_request_body(request, MAX_SIGNATURE_CHARACTERS, ProtocolError)
        ).decode("ascii", "replace")
        await run_in_threadpool(self.session.accept_signature, name, signature_text)
        return {"accepted": True}

    async def post_message(self, request: Request, offset: int = -1) -> dict[str, Any]:
        """Take a chunk of a message, or report how much of it is here."""
        sender_name = self.authenticate(request)  # before a body of any size is read
        self.session.agreement.require_all_signatures()
        message = Message.from_header(request.headers.get(MESSAGE_HEADER, "").encode())
        if message.sender != sender_name:
            raise ProtocolError(
                "unknown-sender", f"{sender_name} sends a message of {message.sender}"
            )
        stored_bytes: int | None = await run_in_threadpool(self.session.check_header, message)
        if offset >= 0:
            data = await read_request_body(request, CHUNK_BYTES, ProtocolError)
            stored_bytes = await run_in_threadpool(self.session.add_chunk, message, offset, data)
        return {
            "accepted": stored_bytes is None,
            "have": message.size if stored_bytes is None else stored_bytes,
        }

    def get_messages(
        self,
        request: Request,
        recipient: str,
        sender: str = "",
        kind: str = "",
        offset: int = 0,
        limit: int = CHUNK_BYTES,
    ) -> Response:
        """Return a chunk of a message to the party that it is for."""
        if self.authenticate(request) != recipient:
            raise ProtocolError("wrong-recipient", f"only {recipient} may fetch its messages")
        for message in self.session.list_messages(recipient):
            if message.kind == kind and sender in ("", message.sender):
                start = min(max(0, offset), message.size)
                data = message.body.get_slice(start, start + min(max(0, limit), CHUNK_BYTES)).read()
                return Response(
                    data,
                    media_type=RAW_MEDIA_TYPE,
                    headers={MESSAGE_HEADER: message.header.decode()},
                )
        return Response(status_code=204)


def create_application(session: CollectorSession[Any]) -> FastAPI:
    """Create the server of one round, or of one alignment.

    Parameters
    ----------
    session : CollectorSession
    """
    app = FastAPI(
        title="discreet collector",
        docs_url=None,
        redoc_url=None,
        openapi_url=None,
        redirect_slashes=False,
    )
    app.add_middleware(BodyLimit, make_refusal=_refuse_body)  # also silent about clients that leave
    _add_error_handlers(app)
    endpoints = SessionEndpoints(session)
    app.get("/manifest")(endpoints.get_manifest)
    app.get("/status")(endpoints.get_status)
    app.post("/signatures/{name}")(endpoints.post_signature)
    app.post("/messages")(endpoints.post_message)
    app.get("/messages/{recipient}")(endpoints.get_messages)
    return app


def _add_error_handlers(app: FastAPI) -> None:
    """Answer errors with a JSON object that holds a reason and a sentence."""

    @app.exception_handler(ProtocolError)
    async def handle_protocol_error(request: Request, error: ProtocolError) -> JSONResponse:
        body = {"reason": error.reason, "sentence": error.sentence}
        return JSONResponse(body, STATUS_CODES.get(error.reason, 409))

    @app.exception_handler(FormatError)
    @app.exception_handler(OSError)
    async def handle_storage_error(request: Request, error: Exception) -> JSONResponse:
        body = {"reason": "storage", "sentence": f"the collector cannot keep this ({error})"}
        return JSONResponse(body, 507)

    @app.exception_handler(HTTPException)
    async def handle_unknown_path(request: Request, error: HTTPException) -> JSONResponse:
        sentence = f"there is no {request.method} {request.url.path} here"
        return JSONResponse({"reason": "unknown-path", "sentence": sentence}, error.status_code)

    @app.exception_handler(RequestValidationError)
    async def handle_invalid_query(request: Request, error: RequestValidationError) -> JSONResponse:
        sentence = f"the query of {request.method} {request.url.path} is not understood here"
        return JSONResponse({"reason": "malformed", "sentence": sentence}, 422)


def _refuse_body(reason: str, sentence: str) -> JSONResponse:
    return JSONResponse({"reason": reason, "sentence": sentence}, STATUS_CODES[reason])


def _get_loop_time() -> float:
    return asyncio.get_running_loop().time()
