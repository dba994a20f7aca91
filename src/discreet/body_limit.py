"""No route of a server is handed more of a body than it has reason to read.

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
"""Bytes of a body from somebody who has not shown who they are."""
BODY_STATE = "discreet.body"
"""Where the scope of a request holds how much of its body may be read."""

Reason = Literal["oversized", "slow"]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]


def allow_body(request: Any, limit: int) -> int:
    """Let a route read so many bytes of its body, and refuse more in its own words.

    Parameters
    ----------
    request : Request
        Of Starlette; of a server without a :class:`BodyLimit` nothing is changed.
    limit : int

    Returns
    -------
    int
        How many bytes are announced; 0 where that is not said.
    """
    state: _LimitedBody | None = getattr(request, "scope", {}).get(BODY_STATE)
    if state is None:
        return 0
    state.limit, state.judged_by_route = limit, True
    return state.declared


class BodyLimit:
    """An ASGI application whose routes get no more of a body than they ask for.

    A longer body is answered here, and the route is told that its client has left. Clients that
    do leave are nobody's mistake and no line in a log: lines would say when people came.

    Parameters
    ----------
    app : ASGI application
    refuse : callable
        Makes the answer, an ASGI application, of a reason, ``"oversized"``, and a sentence.
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
    """The body of one request: counted, and refused where it is longer than may be read."""

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
        """The next piece, unless it is too much."""
        if not self._refused and max(self.declared, self._received) <= self.limit:
            message = await self._receive()
            self._received += len(message.get("body", b""))
            if self._received <= self.limit or self.judged_by_route:
                return message  # a route that judges for itself sees one piece too much
        if not self._answered and not self._refused:
            answer = self._refuse("oversized", f"a body may have {self.limit} bytes here")
            await answer(self._scope, self._receive, self._send)
        self._refused = True
        return {"type": "http.disconnect"}

    async def send(self, message: Message) -> None:
        """Pass an answer on, unless the body was refused."""
        self._answered = True
        if not self._refused:
            await self._send(message)
