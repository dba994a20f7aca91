"""Headers on every answer, errors and HEAD included.

A route that needs more, such as a page with an import map, sets its own ``Content-Security-Policy``
with :func:`make_content_policy`; what a route has set is left as it is.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, MutableMapping, Sequence
from typing import Any

__all__ = ["SecurityHeaders", "make_content_policy"]

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]


def make_content_policy(scripts: Sequence[str] = ()) -> str:
    """The content security policy; ``scripts`` are hashes such as ``sha256-…`` of inline ones."""
    hash_sources = "".join(f" '{script_hash}'" for script_hash in scripts)
    return (
        f"default-src 'none'; script-src 'self'{hash_sources}; style-src 'self'; "
        "connect-src 'self'; img-src 'self'; form-action 'self'; base-uri 'none'; "
        "frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"
    )


DEFAULT_HEADERS = {
    "content-security-policy": make_content_policy(),
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
CROSS_ORIGIN_HEADERS = {
    "access-control-allow-origin": "*",
    "cross-origin-resource-policy": "cross-origin",
}
"""For paths that pages of other hosts may use: what respondents need, never with credentials."""
PREFLIGHT_HEADERS = {
    "access-control-allow-methods": "GET, POST, DELETE",
    "access-control-allow-headers": "content-type, invitation",
    "access-control-max-age": "86400",
}


class SecurityHeaders:
    """ASGI middleware that adds the security headers to every answer.

    Parameters
    ----------
    app : ASGI application
    secure : bool
        Whether the server is reached by https; browsers are then told to require it (HSTS).
    is_cross_origin : callable
        Whether a page from another host may use a path.
    """

    def __init__(self, app: Any, secure: bool, is_cross_origin: Callable[[str], bool]) -> None:
        self.app, self.is_cross_origin = app, is_cross_origin
        default_headers = dict(DEFAULT_HEADERS)
        if secure:
            default_headers["strict-transport-security"] = "max-age=31536000"
        self.default_headers = _encode_headers(default_headers)
        self.cross_origin_headers = _encode_headers(default_headers | CROSS_ORIGIN_HEADERS)
        self.preflight_headers = _encode_headers(
            default_headers | CROSS_ORIGIN_HEADERS | PREFLIGHT_HEADERS
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        is_foreign = self.is_cross_origin(scope["path"])
        added_headers = self.cross_origin_headers if is_foreign else self.default_headers
        if is_foreign and scope["method"] == "OPTIONS":
            await send(
                {"type": "http.response.start", "status": 204, "headers": self.preflight_headers}
            )
            await send({"type": "http.response.body", "body": b""})
            return

        if scope["method"] == "HEAD":  # answered as GET; the web server sends no body
            scope = {**scope, "method": "GET"}
        has_started = False

        async def send_with_headers(message: MutableMapping[str, Any]) -> None:
            nonlocal has_started
            if message["type"] == "http.response.start":
                has_started = True
                route_headers = message["headers"]
                header_names = {header_name.lower() for header_name, _ in route_headers}
                message["headers"] = [
                    *route_headers,
                    *(header for header in added_headers if header[0] not in header_names),
                ]
            await send(message)

        try:
            await self.app(scope, receive, send_with_headers)
        except Exception:
            if not has_started:
                raise
            # answered as a problem, printed in one line: a traceback might contain what was sent


def _encode_headers(headers: dict[str, str]) -> list[tuple[bytes, bytes]]:
    return [(name.encode(), value.encode()) for name, value in headers.items()]
