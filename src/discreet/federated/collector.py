"""The collector as a server: takes signatures and messages, keeps them on disk, passes them on.

    GET  /manifest              the manifest with the signatures so far
    POST /signatures/{name}     a party's signature
    POST /messages              a message, for the collector or to be carried to another party
    GET  /messages/{recipient}  what has come for a party: encrypted or uniform to everyone else
    GET  /status                who is missing, and how long there is

A refusal is a JSON object with a reason and a sentence. Nothing is answered with success before
it is on the disk, so the process may be killed and started again at any point.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fastapi import FastAPI, Request, Response
from fastapi.responses import JSONResponse
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException

from discreet.federated import horizontal, vertical
from discreet.federated.identity import Identity
from discreet.federated.manifest import Manifest
from discreet.federated.messages import ROOM, Inbox, Message
from discreet.federated.refusals import ProtocolError
from discreet.federated.routes import routes, seconds_left
from discreet.federated.state import Folder

if TYPE_CHECKING:
    from discreet.federated.paillier import PrivateKey

__all__ = ["Round", "application"]

PATIENCE = 30.0
"""Seconds in which a request must have arrived."""
CODES = {"oversized": 413, "slow": 408, "unknown-path": 404, "late": 410, "abandoned": 410}


class Round:
    """One round at the collector, over its folder.

    Parameters
    ----------
    own : Identity
    manifest : Manifest
    folder : path
    key : PrivateKey, optional
        Of the collector, in mode ``probabilities`` of a horizontal round with Paillier.
    """

    def __init__(
        self,
        own: Identity,
        manifest: Manifest,
        folder: str | Path,
        key: PrivateKey | None = None,
    ) -> None:
        self.own, self.key, self.folder = own, key, Folder(folder, manifest)
        self.lock = threading.RLock()
        self.routes = routes(manifest)
        self.largest = max(r.stop for expected in self.routes.values() for r in expected.values())
        self.inboxes = {n: Inbox(manifest, n, e) for n, e in self.routes.items()}
        self.manifest = manifest.signed_by(own)
        for data in self.folder.files(".signature"):
            name, _, signature = data.decode().partition(" ")
            self._signed(name, signature)
        self.machine: horizontal.Collector | vertical.Collector | None = None
        self.result: Message | None = None
        self._begin()
        for data in self.folder.files(".message"):
            self._accept(data, stored=True)

    def _signed(self, name: str, signature: str) -> bool:
        """Take a signature over if it is right."""
        if not self.manifest.accepts(name, signature):
            return False
        signatures = {**self.manifest.signatures, name: signature}
        self.manifest = replace(self.manifest, signatures=signatures)
        return True

    def _begin(self) -> None:
        """Start the machine when everyone has signed."""
        if self.machine is None and not self.manifest.unsigned:
            if self.manifest.partition == "vertical":
                self.machine = vertical.Collector(self.own, self.manifest)
            else:
                self.machine = horizontal.Collector(self.own, self.manifest, self.key)

    def sign(self, name: str, signature: str) -> None:
        """Keep a party's signature of the manifest."""
        with self.lock:
            self._refuse_if_over()
            if name not in self.manifest.parties:
                raise ProtocolError("unknown-sender", f"{name!r} takes no part in this round")
            if len(signature) != 128 or not self._signed(name, signature):
                raise ProtocolError("wrong-signature", f"{name} has not signed this manifest")
            self.folder.write(f"{name}.signature", f"{name} {signature}".encode())
            self._begin()

    def post(self, data: bytes) -> None:
        """Keep a message, or refuse it with a reason."""
        with self.lock:
            self._refuse_if_over()
            if self.machine is None:
                names = ", ".join(self.manifest.unsigned)
                raise ProtocolError("not-agreed", f"the manifest lacks signatures: {names}")
            self._accept(data)

    def _accept(self, data: bytes, stored: bool = False) -> None:
        recipient = Message.from_json(data, self.largest).recipient
        if recipient not in self.inboxes:
            raise ProtocolError("wrong-recipient", f"nothing is sent to {recipient!r} here")
        inbox = self.inboxes[recipient]
        message = inbox.read(data)
        if recipient == self.own.name and message.kind != "received":
            assert self.machine is not None
            self.machine.receive(message)
        if not stored:
            name = f"{message.recipient} {message.sender} {message.kind}.message"
            self.folder.write(name, message.to_json())
        inbox.keep(message)
        if self.machine is not None and not self.machine.missing and self.result is None:
            self.result = self.folder.once("result", self.machine.result)

    def messages(self, recipient: str) -> list[Message]:
        """What has come for a party."""
        with self.lock:
            if self.result is not None and recipient == self.result.recipient:
                return [self.result]
            inbox = self.inboxes.get(recipient)
            return [] if inbox is None else list(inbox.accepted.values())

    @property
    def finished(self) -> bool:
        """Whether the receiver has said that it has the result."""
        return (self.manifest.receiver.name, "received") in self.inboxes[self.own.name].accepted

    @property
    def over(self) -> bool:
        """Whether the deadline has passed without a result."""
        left = seconds_left(self.manifest)
        return self.result is None and left is not None and left <= 0

    def _refuse_if_over(self) -> None:
        if self.over:
            raise ProtocolError("abandoned", self.waiting())

    def missing(self) -> tuple[str, ...]:
        """Who is to act next."""
        if self.machine is None:
            return self.manifest.unsigned
        late: set[str] = set()
        for inbox in self.inboxes.values():
            late |= {s for s, kind in inbox.expected if (s, kind) not in inbox.accepted}
        late.discard(self.manifest.receiver.name)
        label = self.manifest.label
        if label is not None and late - {label.name}:
            sent = any((label.name, "labels") in inbox.accepted for inbox in self.inboxes.values())
            late = late - {label.name} if sent else {label.name}
        return tuple(name for name in self.manifest.parties if name in late)

    def waiting(self) -> str:
        """The state in one line."""
        with self.lock:
            names, left = self.missing(), seconds_left(self.manifest)
            if self.finished:
                return "finished: the receiver has the result"
            if self.result is not None:
                return "all messages are here; waiting for the receiver to take the result"
            whole = len(self.manifest.parties) - (0 if self.machine is None else 2)
            line = f"waiting for {len(names)} of {whole}: {', '.join(names)}"
            line += " to sign" if self.machine is None else ""
            if left is None:
                return line
            if left <= 0:
                return f"the deadline has passed, the round is abandoned; {line}"
            return f"{line}, {left:.0f} s left"

    def status(self) -> dict[str, Any]:
        """The state for programs."""
        with self.lock:
            stage = "collecting" if self.machine is not None else "signing"
            stage = "done" if self.result is not None else "abandoned" if self.over else stage
            return {"state": stage, "missing": list(self.missing()), "line": self.waiting()}


def application(running: Round) -> FastAPI:
    """The server of one round."""
    app = FastAPI(title="discreet collector", docs_url=None, redoc_url=None, openapi_url=None)
    most = ROOM + 4 * -(-running.largest // 3)

    @app.exception_handler(ProtocolError)
    async def refused(request: Request, error: ProtocolError) -> JSONResponse:
        body = {"reason": error.reason, "sentence": error.sentence}
        return JSONResponse(body, CODES.get(error.reason, 409))

    @app.exception_handler(HTTPException)
    async def unknown(request: Request, error: HTTPException) -> JSONResponse:
        sentence = f"there is no {request.method} {request.url.path} here"
        return JSONResponse({"reason": "unknown-path", "sentence": sentence}, error.status_code)

    async def body_of(request: Request, limit: int) -> bytes:
        async def read() -> bytes:
            data = bytearray()
            async for piece in request.stream():
                data += piece
                if len(data) > limit:
                    raise ProtocolError("oversized", f"a body may have {limit} bytes here")
            return bytes(data)

        try:
            return await asyncio.wait_for(read(), PATIENCE)
        except TimeoutError:
            raise ProtocolError("slow", f"nothing whole came within {PATIENCE:g} s") from None

    @app.get("/manifest")
    def manifest() -> Response:
        return Response(running.manifest.to_json(), media_type="application/json")

    @app.get("/status")
    def status() -> dict[str, Any]:
        return running.status()

    @app.post("/signatures/{name}")
    async def sign(name: str, request: Request) -> dict[str, Any]:
        text = (await body_of(request, 256)).decode("ascii", "replace")
        return await _done(running.sign, name, text)

    @app.post("/messages")
    async def post(request: Request) -> dict[str, Any]:
        return await _done(running.post, await body_of(request, most))

    @app.get("/messages/{recipient}")
    def messages(recipient: str, sender: str = "", kind: str = "") -> Response:
        for one in running.messages(recipient):
            if one.kind == kind and sender in ("", one.sender):
                return Response(one.to_json(), media_type="application/json")
        return Response(status_code=204)

    return app


async def _done(act: Callable[..., None], *arguments: Any) -> dict[str, Any]:
    await run_in_threadpool(act, *arguments)
    return {"accepted": True}
