"""Shared by all servers: size limits of bodies, deadlines by progress, limits of connections.

A request may keep a server waiting for a moment, and as long as it makes progress: its headers
must be there within ``base_seconds``, and a body of which n bytes have come within
``base_seconds + n / min_bytes_per_second``. So 37 MB over a slow line get through, and nobody holds
a connection by dribbling bytes.

The web server itself limits neither the time for headers nor that for a body which nobody reads,
nor how long headers are, nor how many connections wait for nothing, nor how many requests are sent
ahead of their answers: :func:`make_timed_protocol` does.
Beyond a number of open connections one is closed for every new one: the one that has waited longest
for a request, or else the one whose body would be late first. So thousands of idle or dribbling
ones keep nobody out. :func:`read_request_body` reads a body for an application and says what is
wrong with it in the application's own words.
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, Protocol

from discreet.errors import FormatError
from discreet.hosting.body_limit import RefusalReason, set_body_limit

__all__ = [
    "RequestLimits",
    "create_trusting_context",
    "make_timed_protocol",
    "make_tls_options",
    "make_web_server",
    "open_listening_socket",
    "raise_file_limit",
    "read_request_body",
]

MAX_HEAD_BYTES = 1 << 16
"""Bytes of an address with all headers at most, and of what may follow a body."""

MAX_PIPELINED_REQUESTS = 16
"""Requests of one connection that may wait for the answers to earlier ones."""

RequestStage = Literal["headers", "body", "whole"]


@dataclass(frozen=True)
class RequestLimits:
    """How long a request may take to arrive.

    Parameters
    ----------
    base_seconds : float, default 30
        Seconds for the headers; and for a body before it must make progress.
    min_bytes_per_second : float, default 16384
        Bytes per second that a body must reach after that: 128 kbit/s.
    max_counted_bytes : int, default 2^26
        Bytes of a body that count as progress; more bytes do not extend the deadline.
    grace_seconds : float, default 5
        Seconds beyond the deadline of a body, in which an application that reads it can say so
        itself; then the connection is closed.
    max_connections : int, default 512
        Open connections beyond which an idle or slow one is closed for each new one.

    Examples
    --------
    >>> RequestLimits().compute_allowed_seconds(37_000_000) > 37_000_000 / 1_000_000  # at 8 Mbit/s
    True
    >>> round(RequestLimits().compute_allowed_seconds(100))  # a dribble
    30
    """

    base_seconds: float = 30.0
    min_bytes_per_second: float = 16_384.0
    max_counted_bytes: int = 1 << 26
    grace_seconds: float = 5.0
    max_connections: int = 512

    def compute_allowed_seconds(self, received: int) -> float:
        """Compute the seconds allowed for a body of which this many bytes were received."""
        return self.base_seconds + min(received, self.max_counted_bytes) / self.min_bytes_per_second


class StreamedRequest(Protocol):
    """A request whose body is streamed, such as Starlette's."""

    def stream(self) -> AsyncIterator[bytes]:
        """The pieces."""


async def read_request_body(
    request: StreamedRequest,
    max_bytes: int,
    make_error: Callable[[RefusalReason, str], Exception],
    request_limits: RequestLimits | None = None,
) -> bytes:
    """Read the complete body of a request. Authenticate first if more than 64 KiB are allowed.

    Parameters
    ----------
    request : StreamedRequest
    max_bytes : int
        Largest body in bytes; also set as the limit of
        :class:`~discreet.hosting.body_limit.BodyLimit`.
    make_error : callable
        Makes the error to raise of a reason, ``"oversized"`` or ``"slow"``, and a sentence.
    request_limits : RequestLimits, optional
    """
    request_limits = request_limits or RequestLimits()
    size_message = f"a body may have {max_bytes} bytes here"
    if set_body_limit(request, max_bytes) > max_bytes:
        raise make_error("oversized", size_message)
    event_loop, received = asyncio.get_running_loop(), bytearray()
    start_time, body_pieces = event_loop.time(), aiter(request.stream())
    while True:
        seconds_left = (
            start_time + request_limits.compute_allowed_seconds(len(received)) - event_loop.time()
        )
        try:
            received += await asyncio.wait_for(anext(body_pieces), seconds_left)
        except StopAsyncIteration:
            return bytes(received)
        except TimeoutError:
            elapsed = event_loop.time() - start_time
            raise make_error(
                "slow",
                f"of the body {len(received)} bytes came within {elapsed:.0f} s; send it faster",
            ) from None
        if len(received) > max_bytes:
            raise make_error("oversized", size_message)


class _TimedProtocol(asyncio.Protocol, ABC):
    """Mixin for uvicorn's protocols: close a connection whose request does not arrive in time."""

    request_limits: ClassVar[RequestLimits]
    open_connections: ClassVar[dict[_TimedProtocol, None]]
    """All open connections of a server, in the order in which they were opened."""
    loop: asyncio.AbstractEventLoop
    transport: asyncio.Transport

    def __init__(self, *arguments: Any, **keywords: Any) -> None:
        super().__init__(*arguments, **keywords)
        self._stage: RequestStage = "whole"
        self._stage_start = 0.0
        self._received_bytes = 0
        self._timer: asyncio.TimerHandle | None = None

    @abstractmethod
    def get_stage(self) -> RequestStage:
        """What is being waited for; "whole" while a request is answered."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin to wait for the first request."""
        super().connection_made(transport)
        self.open_connections[self] = None
        self._update_stage()
        if len(self.open_connections) > self.request_limits.max_connections:
            idle_connection = next(
                (
                    connection
                    for connection in self.open_connections
                    if connection.is_waiting and connection is not self
                ),
                None,
            )
            body_connections = [
                connection for connection in self.open_connections if connection._stage == "body"
            ]
            closed_connection = idle_connection or min(
                body_connections, key=lambda connection: connection._seconds_left, default=None
            )
            if closed_connection is not None:
                closed_connection.transport.abort()

    @property
    def is_waiting(self) -> bool:
        """Whether the connection is idle: no request arrived, or the last one is answered."""
        return self._stage == "headers" or not self.is_busy()

    @abstractmethod
    def is_busy(self) -> bool:
        """Whether a request is being answered."""

    def data_received(self, data: bytes) -> None:
        """Receive bytes and update the deadline."""
        super().data_received(data)
        self._received_bytes += len(data)
        self._update_stage()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop waiting."""
        super().connection_lost(exc)
        self.open_connections.pop(self, None)
        self._stop_timer()

    def _update_stage(self) -> None:
        """Start the timer of a new stage; between requests uvicorn's keep-alive timeout applies."""
        new_stage = self.get_stage()
        if new_stage == self._stage:
            return
        self._stop_timer()
        self._stage, self._stage_start, self._received_bytes = new_stage, self.loop.time(), 0
        if new_stage != "whole":
            self._check_deadline()

    def _check_deadline(self) -> None:
        """Close the connection if it is late; otherwise check again at the deadline."""
        if (seconds_left := self._seconds_left) > 0:
            self._timer = self.loop.call_later(seconds_left, self._check_deadline)
        else:
            self.transport.close()

    @property
    def _seconds_left(self) -> float:
        """Seconds until what is being waited for is late."""
        allowed_seconds = self.request_limits.base_seconds
        if self._stage == "body":
            allowed_seconds = (
                self.request_limits.compute_allowed_seconds(self._received_bytes)
                + self.request_limits.grace_seconds
            )
        return self._stage_start + allowed_seconds - self.loop.time()

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


def make_timed_protocol(
    library: Literal["h11", "httptools"] = "h11", request_limits: RequestLimits | None = None
) -> type[asyncio.Protocol]:
    """Make an HTTP/1.1 protocol for ``uvicorn.Config(http=...)`` that enforces the deadlines.

    Parameters
    ----------
    library : {"h11", "httptools"}
        What reads the bytes; httptools is faster and compiled.
    request_limits : RequestLimits, optional
    """
    base_class = _make_h11_protocol() if library == "h11" else _make_httptools_protocol()
    return type(
        "TimedProtocol",
        (base_class,),
        {"request_limits": request_limits or RequestLimits(), "open_connections": {}},
    )


def make_web_server(app: Any, request_limits: RequestLimits | None = None, **options: Any) -> Any:
    """Make an ``uvicorn.Server`` with deadlines that logs nothing about clients or times.

    Its warnings (of broken requests, of upgrades that are not offered) come one per request, so
    they are left out: with the times that a system adds to them they would be a list of visits.

    Parameters
    ----------
    app : ASGI application
    request_limits : RequestLimits, optional
    **options
        Of ``uvicorn.Config``, such as host, port and certificates.
    """
    import uvicorn

    default_options: dict[str, Any] = {
        "log_level": "error",
        "access_log": False,
        "server_header": False,
        "date_header": False,
        "timeout_keep_alive": 5,
        "timeout_graceful_shutdown": 15,
        "proxy_headers": False,
        "http": make_timed_protocol("httptools", request_limits),
    }
    return uvicorn.Server(uvicorn.Config(app, **(default_options | options)))


def open_listening_socket(host: str, port: int) -> Any:
    """Open a listening socket, so that a link works as soon as it is printed.

    Parameters
    ----------
    host : str
    port : int
        0 for any that is free.
    """
    import socket

    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        listening_socket = socket.create_server((host, port), family=family, backlog=2048)
    except OSError as error:
        raise FormatError(
            f"{host} port {port}: cannot be served: {error.strerror}; choose another --port"
        ) from None
    listening_socket.set_inheritable(True)
    return listening_socket


def _make_h11_protocol() -> type[_TimedProtocol]:
    import h11
    from uvicorn.protocols.http.h11_impl import H11Protocol

    stage_by_state: dict[Any, RequestStage] = {h11.IDLE: "headers", h11.SEND_BODY: "body"}

    class OnH11(_TimedProtocol, H11Protocol):
        def get_stage(self) -> RequestStage:
            return stage_by_state.get(self.conn.their_state, "whole")

        def is_busy(self) -> bool:
            return self.cycle is not None and not self.cycle.response_complete

    return OnH11


def _make_httptools_protocol() -> type[_TimedProtocol]:
    from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

    class OnHttptools(_TimedProtocol, HttpToolsProtocol):
        _current_stage: RequestStage = "headers"
        # bytes since a body or the end of a request: the parser would keep them all
        _unparsed_bytes = 0

        def data_received(self, data: bytes) -> None:
            self._unparsed_bytes += len(data)
            super().data_received(data)
            if self._unparsed_bytes > MAX_HEAD_BYTES:  # h11 has such a limit of its own
                self.transport.abort()

        def on_body(self, body: bytes) -> None:
            self._unparsed_bytes = 0
            super().on_body(body)

        def get_stage(self) -> RequestStage:
            return self._current_stage

        def is_busy(self) -> bool:
            return self.cycle is not None and not self.cycle.response_complete

        def on_message_begin(self) -> None:
            # a client that reads no answers would fill the memory
            if len(self.pipeline) >= MAX_PIPELINED_REQUESTS:
                raise ValueError("too many requests at once")  # which closes the connection
            self._current_stage = "headers"
            super().on_message_begin()

        def on_headers_complete(self) -> None:
            self._current_stage = "body"
            super().on_headers_complete()

        def on_message_complete(self) -> None:
            self._current_stage, self._unparsed_bytes = "whole", 0
            super().on_message_complete()

    return OnHttptools


def make_tls_options(certificate: str | None, key: str | None) -> dict[str, str | None]:
    """The options of :func:`make_web_server` for TLS; files that do not serve are refused by name.

    Parameters
    ----------
    certificate, key : str, optional
        Files in PEM form: both, or neither for no TLS.
    """
    if (certificate is None) != (key is None):
        raise FormatError("TLS needs both: --certificate and --certificate-key")
    if certificate is not None and key is not None:
        import ssl

        for option, path in (("--certificate", certificate), ("--certificate-key", key)):
            _require_readable(option, path)
        try:
            # without a password a key that needs one is refused instead of asking at the terminal
            tls_context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            tls_context.load_cert_chain(certificate, key, password="")
        except ssl.SSLError as error:
            reason = error.reason or str(error)
            raise FormatError(
                f"--certificate {certificate} and --certificate-key {key} cannot be used for TLS "
                f"({reason}); give a certificate and its own key in PEM form, without a password"
            ) from None
    return {"ssl_certfile": certificate, "ssl_keyfile": key}


def create_trusting_context(authority: str) -> Any:
    """Create a TLS context that trusts one certificate authority.

    Parameters
    ----------
    authority : str
        A file with a certificate in PEM form.
    """
    import ssl

    _require_readable("--authority", authority)
    try:
        return ssl.create_default_context(cafile=authority)
    except ssl.SSLError as error:
        raise FormatError(
            f"--authority {authority} holds no certificate ({error.reason or error}); give the "
            "CA certificate that signed the collector's TLS certificate, in PEM form"
        ) from None


def _require_readable(option: str, path: str) -> None:
    try:
        with open(path, "rb"):
            pass
    except OSError as error:
        raise FormatError(f"{option} {path}: {error.strerror}; name a file in PEM form") from None


def raise_file_limit(wanted_files: int = 4096) -> int:
    """Raise this process's limit of open files and connections, if the system allows it.

    Parameters
    ----------
    wanted_files : int, default 4096
        Open files; a limit that is higher already stays.

    Returns
    -------
    int
        How many files and connections may be open now.
    """
    try:
        import resource
    except ImportError:  # a system without such limits
        return wanted_files
    soft_limit, hard_limit = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft_limit == resource.RLIM_INFINITY:
        return wanted_files
    new_limit = (
        wanted_files if hard_limit == resource.RLIM_INFINITY else min(wanted_files, hard_limit)
    )
    if soft_limit < new_limit:
        resource.setrlimit(resource.RLIMIT_NOFILE, (new_limit, hard_limit))
    return max(soft_limit, new_limit)
