"""ASGI middleware that limits how many bytes of a request body reach a route.

:class:`BodyLimit` stands between the web server and the framework and hands on 64 KiB, the longest
report of a browser, unless the route itself, having seen who asks, allows more
(:func:`~discreet.serving.body_of`). What is longer is refused while it comes, so memory stays as it
is.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any, Literal

__all__ = ["ANONYMOUS_BODY", "BodyLimit", "allow_body"]

ANONYMOUS_BODY = 1 << 16
"""Limit for unauthenticated requests, in bytes; the longest report of a browser fits."""
BODY_STATE = "discreet.body"
"""Key of the ASGI scope under which the limited body is stored."""

Reason = Literal["oversized", "slow"]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]


def allow_body(request: Any, limit: int) -> int:
    """Set how many bytes of its body a route may read; longer ones the route refuses itself.

    Parameters
    ----------
    request : Request
        Of Starlette. Without a :class:`BodyLimit` this has no effect.
    limit : int

    Returns
    -------
    int
        The announced length in bytes (Content-Length); 0 if there is none.
    """
    state: _LimitedBody | None = getattr(request, "scope", {}).get(BODY_STATE)
    if state is None:
        return 0
    state.limit, state.judged_by_route = limit, True
    return state.declared


class BodyLimit:
    """ASGI middleware: routes receive at most as many body bytes as they allow.

    A longer body is refused here, and the route sees a disconnect. Clients that disconnect
    themselves are not logged: log lines would reveal when people took part.

    Parameters
    ----------
    app : ASGI application
    refuse : callable
        Given a reason (``"oversized"``) and a sentence, returns the response, an ASGI app.
    limit : int, default 2^16
        Bytes for routes that do not use :func:`allow_body`.
    """

    def __init__(
        self, app: Any, refuse: Callable[[Reason, str], Any], limit: int = ANONYMOUS_BODY
    ) -> None:
        self.app, self.refuse, self.limit = app, refuse, limit

    async def __call__(self, scope: MutableMapping[str, Any], receive: Receive, send: Send) -> None:
        """Answer a request."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        from starlette.requests import ClientDisconnect

        body = scope[BODY_STATE] = _LimitedBody(self, scope, receive, send)
        try:
            await self.app(scope, body.receive, body.send)
        except ClientDisconnect:
            return


class _LimitedBody:
    """The body of one request, counted while it arrives and refused beyond the limit."""

    def __init__(
        self, app: BodyLimit, scope: MutableMapping[str, Any], receive: Receive, send: Send
    ) -> None:
        self.limit, self._refuse = app.limit, app.refuse
        self._scope, self._receive, self._send = scope, receive, send
        lengths = [value for name, value in scope["headers"] if name == b"content-length"]
        self.declared = int(lengths[0]) if lengths and lengths[0].isdigit() else 0
        self.judged_by_route = False
        self._received, self._answered, self._refused = 0, False, False

    async def receive(self) -> Message:
        """Receive the next chunk; refuse the body if it exceeds the limit."""
        if not self._refused and max(self.declared, self._received) <= self.limit:
            message = await self._receive()
            self._received += len(message.get("body", b""))
            if self._received <= self.limit or self.judged_by_route:
                return message  # a route that checks the limit itself sees the excess chunk
        if not self._answered and not self._refused:
            answer = self._refuse("oversized", f"a body may have {self.limit} bytes here")
            await answer(self._scope, self._receive, self._send)
        self._refused = True
        return {"type": "http.disconnect"}

    async def send(self, message: Message) -> None:
        """Forward the response, unless the body was refused."""
        self._answered = True
        if not self._refused:
            await self._send(message)
