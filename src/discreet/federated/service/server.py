"""The collector as a server: takes signatures and messages, keeps them on disk, passes them on.

    GET  /manifest              the manifest with the signatures so far
    POST /signatures/{name}     a party's signature
    POST /messages              a message, for the collector or to be carried to another party
    GET  /messages/{recipient}  what has come for a party, for this party alone
    GET  /status                who is missing, and how long there is

Requests are signed by the party that makes them, before a body is read. A refusal is a JSON object
with a reason and a sentence. No signature or message is answered with success before it is on the
disk, so the process may be killed and started again at any point.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fastapi import FastAPI, Request, Response
from fastapi.responses import JSONResponse
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException

from discreet.federated import horizontal, vertical
from discreet.federated.agreement.identity import Identity
from discreet.federated.agreement.manifest import Manifest
from discreet.federated.messages import HEADER, ROOM, Message
from discreet.federated.refusals import ProtocolError
from discreet.federated.service.relay import Carrier
from discreet.federated.service.routes import routes
from discreet.serving import body_of

if TYPE_CHECKING:
    from discreet.federated.crypto.paillier import PrivateKey

__all__ = ["Round", "application", "largest_body"]

SIGNED = 256
"""Characters of a signature at most."""
CODES = {"oversized": 413, "slow": 408, "unknown-path": 404, "late": 410, "abandoned": 410}


class Round(Carrier[Manifest]):
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
        manifest.require_part(own.card, "collector")
        manifest.require_key(own.card, key)
        self.key = key
        self.machine: horizontal.Collector | vertical.Collector | None = None
        self.result: Message | None = None
        super().__init__(own, manifest, folder, routes(manifest))

    def _begin(self) -> None:
        if self.machine is None and not self.manifest.unsigned:
            if self.manifest.partition == "vertical":
                self.machine = vertical.Collector(self.own, self.manifest)
            else:
                self.machine = horizontal.Collector(self.own, self.manifest, self.key)

    def _take(self, message: Message) -> None:
        assert self.machine is not None
        self.machine.receive(message)

    def _advance(self) -> None:
        if self.machine is not None and not self.machine.missing and self.result is None:
            self.result = self.folder.once("result", self.machine.result)

    def _made(self, recipient: str) -> list[Message]:
        if self.result is not None and recipient == self.result.recipient:
            return [self.result]
        label = self.manifest.label
        if isinstance(self.machine, vertical.Collector) and label and label.name == recipient:
            machine = self.machine
            if machine.way.deals:
                return [self.folder.once("correction", machine.correction)]
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


def largest_body(running: Carrier[Any]) -> int:
    """Bytes of the longest message, in its envelope."""
    return ROOM + 4 * -(-running.largest // 3)


def application(running: Carrier[Any]) -> FastAPI:
    """The server of one round, or of one alignment."""
    app = FastAPI(title="discreet collector", docs_url=None, redoc_url=None, openapi_url=None)
    most = largest_body(running)

    @app.exception_handler(ProtocolError)
    async def refused(request: Request, error: ProtocolError) -> JSONResponse:
        body = {"reason": error.reason, "sentence": error.sentence}
        return JSONResponse(body, CODES.get(error.reason, 409))

    @app.exception_handler(HTTPException)
    async def unknown(request: Request, error: HTTPException) -> JSONResponse:
        sentence = f"there is no {request.method} {request.url.path} here"
        return JSONResponse({"reason": "unknown-path", "sentence": sentence}, error.status_code)

    def asked_by(request: Request) -> str:
        target = request.url.path + (f"?{request.url.query}" if request.url.query else "")
        line = request.headers.get(HEADER, "")
        return running.authenticated(line, request.method, target)

    @app.get("/manifest")
    def manifest(request: Request) -> Response:
        asked_by(request)
        return Response(running.manifest.to_json(), media_type="application/json")

    @app.get("/status")
    def status(request: Request) -> dict[str, Any]:
        return running.status(asked_by(request))

    @app.post("/signatures/{name}")
    async def sign(name: str, request: Request) -> dict[str, Any]:
        text = (await body_of(request, SIGNED, ProtocolError)).decode("ascii", "replace")
        return await _done(running.sign, name, text)

    @app.post("/messages")
    async def post(request: Request) -> dict[str, Any]:
        asked_by(request)  # before a body of any size is read
        running.manifest.require_agreed()
        return await _done(running.post, await body_of(request, most, ProtocolError))

    @app.get("/messages/{recipient}")
    def messages(request: Request, recipient: str, sender: str = "", kind: str = "") -> Response:
        if asked_by(request) != recipient:
            raise ProtocolError("wrong-recipient", f"only {recipient} may fetch its messages")
        for one in running.messages(recipient):
            if one.kind == kind and sender in ("", one.sender):
                return Response(one.to_json(), media_type="application/json")
        return Response(status_code=204)

    return app


async def _done(act: Callable[..., None], *arguments: Any) -> dict[str, Any]:
    await run_in_threadpool(act, *arguments)
    return {"accepted": True}
