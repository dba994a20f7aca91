"""How long a connection may keep the collector waiting: nobody holds one by dribbling bytes.

The web server itself limits neither the time for the headers of a request, nor that for a body
which nobody reads. Here each has a limit from its first moment on; then the connection is closed.
"""

from __future__ import annotations

import asyncio
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from discreet.federated.service.server import PATIENCE

__all__ = ["PatientProtocol"]

GRACE = 5.0
"""Seconds beyond the limit of a body, in which a reader of it says so itself."""


class PatientProtocol(H11Protocol):
    """HTTP/1.1 that closes a connection whose request does not arrive in time."""

    patience = PATIENCE

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self._stage: Any = None
        self._timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin to wait for the first request."""
        super().connection_made(transport)
        self._wait()

    def data_received(self, data: bytes) -> None:
        """Take bytes; go on waiting unless the request is whole."""
        super().data_received(data)
        self._wait()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop waiting."""
        super().connection_lost(exc)
        if self._timer is not None:
            self._timer.cancel()

    def _wait(self) -> None:
        """Wait for headers (idle) or a body; between requests there is the keep-alive limit."""
        stage = self.conn.their_state
        if stage is self._stage:
            return
        if self._timer is not None:
            self._timer.cancel()
        self._stage, self._timer = stage, None
        if stage in (h11.IDLE, h11.SEND_BODY):
            limit = self.patience + (GRACE if stage is h11.SEND_BODY else 0)
            self._timer = self.loop.call_later(limit, self.transport.close)
