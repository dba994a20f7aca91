"""ASGI middleware that limits how many bytes of a request body reach a route.

:class:`BodyLimit` stands between the web server and the framework and hands on 64 KiB, the longest
report of a browser, unless the route itself, having seen who asks, allows more
(:func:`~discreet.hosting.serving.read_request_body`). What is longer is refused while it comes, so
memory stays as it is.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any, Literal

__all__ = ["ANONYMOUS_BODY_BYTES", "BodyLimit", "set_body_limit"]

ANONYMOUS_BODY_BYTES = 1 << 16
"""Limit for unauthenticated requests, in bytes; the longest report of a browser fits."""
BODY_SCOPE_KEY = "discreet.body"
"""Key of the ASGI scope under which the limited body is stored."""

RefusalReason = Literal["oversized", "slow"]
AsgiMessage = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[AsgiMessage]]
Send = Callable[[AsgiMessage], Awaitable[None]]


def set_body_limit(request: Any, max_bytes: int) -> int:
    """Set how many bytes of its body a route may read; longer ones the route refuses itself.

    Parameters
    ----------
    request : Request
        Of Starlette. Without a :class:`BodyLimit` this has no effect.
    max_bytes : int

    Returns
    -------
    int
        The announced length in bytes (Content-Length); 0 if there is none.
    """
    limited_body: _LimitedBody | None = getattr(request, "scope", {}).get(BODY_SCOPE_KEY)
    if limited_body is None:
        return 0
    limited_body.max_bytes, limited_body.judged_by_route = max_bytes, True
    return limited_body.declared_bytes


class BodyLimit:
    """ASGI middleware: routes receive at most as many body bytes as they allow.

    A longer body is refused here, and the route sees a disconnect. Clients that disconnect
    themselves are not logged: log lines would reveal when people took part.

    Parameters
    ----------
    app : ASGI application
    make_refusal : callable
        Given a reason (``"oversized"``) and a sentence, returns the response, an ASGI app.
    max_bytes : int, default 2^16
        Bytes for routes that do not use :func:`set_body_limit`.
    """

    def __init__(
        self,
        app: Any,
        make_refusal: Callable[[RefusalReason, str], Any],
        max_bytes: int = ANONYMOUS_BODY_BYTES,
    ) -> None:
        self.app, self.make_refusal, self.max_bytes = app, make_refusal, max_bytes

    async def __call__(self, scope: MutableMapping[str, Any], receive: Receive, send: Send) -> None:
        """Answer a request."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        from starlette.requests import ClientDisconnect

        limited_body = scope[BODY_SCOPE_KEY] = _LimitedBody(self, scope, receive, send)
        try:
            await self.app(scope, limited_body.receive, limited_body.send)
        except ClientDisconnect:
            return


class _LimitedBody:
    """The body of one request, counted while it arrives and refused beyond the limit."""

    def __init__(
        self, app: BodyLimit, scope: MutableMapping[str, Any], receive: Receive, send: Send
    ) -> None:
        self.max_bytes, self._make_refusal = app.max_bytes, app.make_refusal
        self._scope, self._receive, self._send = scope, receive, send
        content_lengths = [
            header_value
            for header_name, header_value in scope["headers"]
            if header_name == b"content-length"
        ]
        self.declared_bytes = (
            int(content_lengths[0]) if content_lengths and content_lengths[0].isdigit() else 0
        )
        self.judged_by_route = False
        self._received_bytes, self._is_answered, self._is_refused = 0, False, False

    async def receive(self) -> AsgiMessage:
        """Receive the next chunk; refuse the body if it exceeds the limit."""
        if (
            not self._is_refused
            and max(self.declared_bytes, self._received_bytes) <= self.max_bytes
        ):
            message = await self._receive()
            self._received_bytes += len(message.get("body", b""))
            if self._received_bytes <= self.max_bytes or self.judged_by_route:
                return message  # a route that checks the limit itself sees the excess chunk
        if not self._is_answered and not self._is_refused:
            refusal_app = self._make_refusal(
                "oversized", f"a body may have {self.max_bytes} bytes here"
            )
            await refusal_app(self._scope, self._receive, self._send)
        self._is_refused = True
        return {"type": "http.disconnect"}

    async def send(self, message: AsgiMessage) -> None:
        """Forward the response, unless the body was refused."""
        self._is_answered = True
        if not self._is_refused:
            await self._send(message)
