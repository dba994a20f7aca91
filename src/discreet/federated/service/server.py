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
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException

from discreet.body_limit import BodyLimit
from discreet.errors import FormatError
from discreet.federated import horizontal, vertical
from discreet.federated.agreement.identity import Identity
from discreet.federated.agreement.manifest import Manifest
from discreet.federated.messages import CHUNK, HEADER, MESSAGE, RAW, Message
from discreet.federated.refusals import ProtocolError
from discreet.federated.service.relay import Carrier
from discreet.federated.service.routes import routes
from discreet.serving import body_of

if TYPE_CHECKING:
    from discreet.federated.crypto.paillier import PrivateKey

__all__ = ["Round", "application"]

SIGNED = 256
"""Characters of a signature at most."""
CODES = {"oversized": 413, "slow": 408, "unknown-path": 404, "late": 410, "abandoned": 410}
LOOK = 0.05
"""Seconds between two checks for news while a request is held."""
AT_ONCE = 1 << 20
"""Rows times counters up to which a correction is made without a thread of its own."""
HELD = 10.0
"""Seconds that a request for news is held at most."""


class Round(Carrier[Manifest]):
    """One round at the collector, over its folder.

    Parameters
    ----------
    own : Identity
    manifest : Manifest
    folder : path
    key : PrivateKey, optional
        Of the collector, in mode ``probabilities`` of a horizontal round with Paillier.
    show : callable
        Told how far the collector's own work is.
    """

    def __init__(
        self,
        own: Identity,
        manifest: Manifest,
        folder: str | Path,
        key: PrivateKey | None = None,
        show: Callable[[str, int, int], None] = lambda what, done, whole: None,
    ) -> None:
        manifest.require_part(own.card, "collector")
        manifest.require_key(own.card, key)
        self.key, self.show = key, show
        self.machine: horizontal.Collector | vertical.Collector | None = None
        self.result: Message | None = None
        self.correction: Message | None = None
        receiver = manifest.receiver.name
        super().__init__(own, manifest, folder, routes(manifest), [receiver])

    def _begin(self) -> None:
        if self.machine is None and not self.manifest.unsigned:
            if self.manifest.partition == "vertical":
                self.machine = vertical.Collector(self.own, self.manifest)
                self.machine.way.advance = self.show
                if self.machine.way.deals:
                    self._deal(self.machine)
            else:
                self.machine = horizontal.Collector(self.own, self.manifest, self.key)

    def _deal(self, machine: vertical.Collector) -> None:
        """Make the correction; with many rows in a thread of its own, so that nobody waits."""

        def deal() -> None:
            while self.correction is None:
                try:
                    made = self.folder.once("correction", machine.correction)
                except FormatError as error:  # a full disk may have room again
                    self.trouble = str(error)
                    time.sleep(1)
                    continue
                with self.lock:
                    self.correction, self.trouble = made, ""
                    self.changes += 1

        if machine.way.rows * self.manifest.layout.size < AT_ONCE:
            deal()
        else:
            threading.Thread(target=deal, daemon=True).start()

    def _take(self, message: Message) -> None:
        assert self.machine is not None
        self.machine.receive(message)

    def _advance(self) -> None:
        if self.machine is not None and not self.machine.missing and self.result is None:
            self.result = self.folder.once("result", self.machine.result)

    def _made(self, recipient: str) -> list[Message]:
        if self.result is not None and recipient == self.result.recipient:
            return [self.result]
        if self.correction is not None and recipient == self.correction.recipient:
            return [self.correction]
        return []

    @property
    def done(self) -> bool:
        """Whether there is a result."""
        return self.result is not None

    @property
    def finished(self) -> bool:
        """Whether the receiver has said that it has the result."""
        return (self.manifest.receiver.name, "received") in self.inboxes[self.own.name].accepted

    @property
    def actors(self) -> int:
        """Providers, and the label provider."""
        return len(self.manifest.parties) - 2

    def _late(self) -> tuple[str, ...]:
        late: set[str] = set()
        for inbox in self.inboxes.values():
            late |= {s for s, kind in inbox.expected if (s, kind) not in inbox.accepted}
        late.discard(self.manifest.receiver.name)
        label = self.manifest.label
        if label is not None and late - {label.name}:
            sent = any((label.name, "labels") in inbox.accepted for inbox in self.inboxes.values())
            late = late - {label.name} if sent else {label.name}
        return tuple(name for name in self.manifest.parties if name in late)

    def _after(self) -> str:
        if self.finished:
            return "finished: the receiver has the result"
        return "all messages are here; waiting for the receiver to take the result"


def application(running: Carrier[Any]) -> FastAPI:
    """The server of one round, or of one alignment."""
    app = FastAPI(
        title="discreet collector",
        docs_url=None,
        redoc_url=None,
        openapi_url=None,
        redirect_slashes=False,
    )
    app.add_middleware(BodyLimit, refuse=_refuse_body)  # also silent about clients that leave

    @app.exception_handler(ProtocolError)
    async def refused(request: Request, error: ProtocolError) -> JSONResponse:
        body = {"reason": error.reason, "sentence": error.sentence}
        return JSONResponse(body, CODES.get(error.reason, 409))

    @app.exception_handler(FormatError)
    @app.exception_handler(OSError)
    async def unwritten(request: Request, error: Exception) -> JSONResponse:
        body = {"reason": "storage", "sentence": f"the collector cannot keep this ({error})"}
        return JSONResponse(body, 507)

    @app.exception_handler(HTTPException)
    async def unknown(request: Request, error: HTTPException) -> JSONResponse:
        sentence = f"there is no {request.method} {request.url.path} here"
        return JSONResponse({"reason": "unknown-path", "sentence": sentence}, error.status_code)

    @app.exception_handler(RequestValidationError)
    async def misspelt(request: Request, error: RequestValidationError) -> JSONResponse:
        sentence = f"the query of {request.method} {request.url.path} is not understood here"
        return JSONResponse({"reason": "malformed", "sentence": sentence}, 422)

    def asked_by(request: Request) -> str:
        target = request.url.path + (f"?{request.url.query}" if request.url.query else "")
        line = request.headers.get(HEADER, "")
        return running.authenticated(line, request.method, target)

    @app.get("/manifest")
    def manifest(request: Request) -> Response:
        asked_by(request)
        return Response(running.manifest.to_json(), media_type="application/json")

    @app.get("/status")
    async def status(request: Request, changes: int = -1, heard: int = 0) -> dict[str, Any]:
        name, stage, until = asked_by(request), running.news()[1], _now() + HELD
        while running.news() == (changes, stage) and _now() < until:
            await asyncio.sleep(LOOK)
        return await run_in_threadpool(running.status, name, heard == 1)

    @app.post("/signatures/{name}")
    async def sign(name: str, request: Request) -> dict[str, Any]:
        if asked_by(request) != name:  # before a body is read
            raise ProtocolError("unknown-sender", f"only {name} may sign as {name}")
        text = (await body_of(request, SIGNED, ProtocolError)).decode("ascii", "replace")
        await run_in_threadpool(running.sign, name, text)
        return {"accepted": True}

    @app.post("/messages")
    async def post(request: Request, offset: int = -1) -> dict[str, Any]:
        name = asked_by(request)  # before a body of any size is read
        running.manifest.require_agreed()
        message = Message.from_header(request.headers.get(MESSAGE, "").encode())
        if message.sender != name:
            raise ProtocolError("unknown-sender", f"{name} sends a message of {message.sender}")
        have: int | None = await run_in_threadpool(running.offer, message)
        if offset >= 0:
            data = await body_of(request, CHUNK, ProtocolError)
            have = await run_in_threadpool(running.add, message, offset, data)
        return {"accepted": have is None, "have": message.size if have is None else have}

    @app.get("/messages/{recipient}")
    def messages(
        request: Request,
        recipient: str,
        sender: str = "",
        kind: str = "",
        offset: int = 0,
        limit: int = CHUNK,
    ) -> Response:
        if asked_by(request) != recipient:
            raise ProtocolError("wrong-recipient", f"only {recipient} may fetch its messages")
        for one in running.messages(recipient):
            if one.kind == kind and sender in ("", one.sender):
                start = min(max(0, offset), one.size)
                data = one.body.part(start, start + min(max(0, limit), CHUNK)).read()
                return Response(data, media_type=RAW, headers={MESSAGE: one.header.decode()})
        return Response(status_code=204)

    return app


def _refuse_body(reason: str, sentence: str) -> JSONResponse:
    return JSONResponse({"reason": reason, "sentence": sentence}, CODES[reason])


def _now() -> float:
    return asyncio.get_running_loop().time()
