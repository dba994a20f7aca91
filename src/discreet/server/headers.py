"""Headers on every answer, errors and HEAD included.

A route that needs more, such as a page with an import map, sets its own ``Content-Security-Policy``
with :func:`content_policy`; what a route has set is left as it is.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, MutableMapping, Sequence
from typing import Any

__all__ = ["Headers", "content_policy"]

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]


def content_policy(scripts: Sequence[str] = ()) -> str:
    """The content security policy; ``scripts`` are hashes such as ``sha256-…`` of inline ones."""
    hashes = "".join(f" '{one}'" for one in scripts)
    return (
        f"default-src 'none'; script-src 'self'{hashes}; style-src 'self'; connect-src 'self'; "
        "img-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'; "
        "require-trusted-types-for 'script'; trusted-types 'none'"
    )


ALWAYS = {
    "content-security-policy": content_policy(),
    "integrity-policy": "blocked-destinations=(script)",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": (
        "camera=(), display-capture=(), fullscreen=(), geolocation=(), microphone=(), "
        "payment=(), usb=(), browsing-topics=()"
    ),
    "cache-control": "no-store",
}
FOREIGN = {
    "access-control-allow-origin": "*",
    "cross-origin-resource-policy": "cross-origin",
}
"""For paths that pages of other hosts may use: what respondents need, never with credentials."""
PREFLIGHT = {
    "access-control-allow-methods": "GET, POST, DELETE",
    "access-control-allow-headers": "content-type, invitation",
    "access-control-max-age": "86400",
}


class Headers:
    """ASGI middleware that adds the security headers to every answer.

    Parameters
    ----------
    app : ASGI application
    secure : bool
        Whether the server is reached by https; browsers are then told to require it (HSTS).
    foreign : callable
        Whether a page from another host may use a path.
    """

    def __init__(self, app: Any, secure: bool, foreign: Callable[[str], bool]) -> None:
        self.app, self.foreign = app, foreign
        always = dict(ALWAYS)
        if secure:
            always["strict-transport-security"] = "max-age=31536000"
        self.always = _encoded(always)
        self.abroad = _encoded(always | FOREIGN)
        self.preflight = _encoded(always | FOREIGN | PREFLIGHT)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        foreign = self.foreign(scope["path"])
        added = self.abroad if foreign else self.always
        if foreign and scope["method"] == "OPTIONS":
            await send({"type": "http.response.start", "status": 204, "headers": self.preflight})
            await send({"type": "http.response.body", "body": b""})
            return

        if scope["method"] == "HEAD":  # answered as GET; the web server sends no body
            scope = {**scope, "method": "GET"}
        started = False

        async def with_headers(message: MutableMapping[str, Any]) -> None:
            nonlocal started
            if message["type"] == "http.response.start":
                started = True
                own = message["headers"]
                names = {name.lower() for name, _ in own}
                message["headers"] = [*own, *(one for one in added if one[0] not in names)]
            await send(message)

        try:
            await self.app(scope, receive, with_headers)
        except Exception:
            if not started:
                raise
            # answered as a problem, printed in one line: a traceback might contain what was sent


def _encoded(headers: dict[str, str]) -> list[tuple[bytes, bytes]]:
    return [(name.encode(), value.encode()) for name, value in headers.items()]
