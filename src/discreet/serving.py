"""Shared by all servers: size limits of bodies, deadlines by progress, limits of connections.

A request may keep a server waiting for a moment, and as long as it makes progress: its headers
must be there within ``start`` seconds, and a body of which n bytes have come within ``start + n /
rate``. So 37 MB over a slow line get through, and nobody holds a connection by dribbling bytes.

The web server itself limits neither the time for headers nor that for a body which nobody reads,
nor how long headers are, nor how many connections wait for nothing, nor how many requests are sent
ahead of their answers: :func:`patient_protocol` does.
Beyond a number of open connections one is closed for every new one: the one that has waited longest
for a request, or else the one whose body would be late first. So thousands of idle or dribbling
ones keep nobody out. :func:`body_of` reads a body for an application and says what is wrong with it
in the application's own words.
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, Protocol

from discreet.body_limit import Reason, allow_body
from discreet.errors import FormatError

__all__ = ["Patience", "body_of", "patient_protocol", "raise_file_limit", "tls_options"]
__all__ += ["trusting", "web_server"]

HEAD = 1 << 16
"""Bytes of an address with all headers at most, and of what may follow a body."""

AHEAD = 16
"""Requests of one connection that may wait for the answers to earlier ones."""

Stage = Literal["headers", "body", "whole"]


@dataclass(frozen=True)
class Patience:
    """How long a request may take to arrive.

    Parameters
    ----------
    start : float, default 30
        Seconds for the headers; and for a body before it must make progress.
    rate : float, default 16384
        Bytes per second that a body must reach after that: 128 kbit/s.
    largest : int, default 2^26
        Bytes of a body that count as progress; more bytes do not extend the deadline.
    grace : float, default 5
        Seconds beyond the deadline of a body, in which an application that reads it can say so
        itself; then the connection is closed.
    connections : int, default 512
        Open connections beyond which an idle or slow one is closed for each new one.

    Examples
    --------
    >>> Patience().seconds(37_000_000) > 37_000_000 / 1_000_000  # at 8 Mbit/s
    True
    >>> round(Patience().seconds(100))  # a dribble
    30
    """

    start: float = 30.0
    rate: float = 16_384.0
    largest: int = 1 << 26
    grace: float = 5.0
    connections: int = 512

    def seconds(self, received: int) -> float:
        """Compute the seconds allowed for a body of which this many bytes were received."""
        return self.start + min(received, self.largest) / self.rate


class Streamed(Protocol):
    """A request whose body is streamed, such as Starlette's."""

    def stream(self) -> AsyncIterator[bytes]:
        """The pieces."""


async def body_of(
    request: Streamed,
    limit: int,
    refuse: Callable[[Reason, str], Exception],
    patience: Patience | None = None,
) -> bytes:
    """Read the complete body of a request. Authenticate first if more than 64 KiB are allowed.

    Parameters
    ----------
    request : Streamed
    limit : int
        Largest body in bytes; also set as the limit of :class:`~discreet.body_limit.BodyLimit`.
    refuse : callable
        Makes the error to raise of a reason, ``"oversized"`` or ``"slow"``, and a sentence.
    patience : Patience, optional
    """
    patience = patience or Patience()
    oversized = f"a body may have {limit} bytes here"
    if allow_body(request, limit) > limit:
        raise refuse("oversized", oversized)
    loop, data = asyncio.get_running_loop(), bytearray()
    began, pieces = loop.time(), aiter(request.stream())
    while True:
        left = began + patience.seconds(len(data)) - loop.time()
        try:
            data += await asyncio.wait_for(anext(pieces), left)
        except StopAsyncIteration:
            return bytes(data)
        except TimeoutError:
            took = loop.time() - began
            raise refuse(
                "slow", f"of the body {len(data)} bytes came within {took:.0f} s; send it faster"
            ) from None
        if len(data) > limit:
            raise refuse("oversized", oversized)


class _Patient(asyncio.Protocol, ABC):
    """Mixin for uvicorn's protocols: close a connection whose request does not arrive in time."""

    patience: ClassVar[Patience]
    open: ClassVar[dict[_Patient, None]]
    """All open connections of a server, in the order in which they were opened."""
    loop: asyncio.AbstractEventLoop
    transport: asyncio.Transport

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self._stage: Stage = "whole"
        self._since = 0.0
        self._received = 0
        self._timer: asyncio.TimerHandle | None = None

    @abstractmethod
    def stage(self) -> Stage:
        """What is being waited for; "whole" while a request is answered."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin to wait for the first request."""
        super().connection_made(transport)
        self.open[self] = None
        self._follow()
        if len(self.open) > self.patience.connections:
            idle = next((one for one in self.open if one.waits and one is not self), None)
            coming = [one for one in self.open if one._stage == "body"]
            last = idle or min(coming, key=lambda one: one._left, default=None)
            if last is not None:
                last.transport.abort()

    @property
    def waits(self) -> bool:
        """Whether the connection is idle: no request arrived, or the last one is answered."""
        return self._stage == "headers" or not self.busy()

    @abstractmethod
    def busy(self) -> bool:
        """Whether a request is being answered."""

    def data_received(self, data: bytes) -> None:
        """Receive bytes and update the deadline."""
        super().data_received(data)
        self._received += len(data)
        self._follow()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop waiting."""
        super().connection_lost(exc)
        self.open.pop(self, None)
        self._stop()

    def _follow(self) -> None:
        """Start the timer of a new stage; between requests uvicorn's keep-alive timeout applies."""
        stage = self.stage()
        if stage == self._stage:
            return
        self._stop()
        self._stage, self._since, self._received = stage, self.loop.time(), 0
        if stage != "whole":
            self._look()

    def _look(self) -> None:
        """Close the connection if it is late; otherwise check again at the deadline."""
        if (left := self._left) > 0:
            self._timer = self.loop.call_later(left, self._look)
        else:
            self.transport.close()

    @property
    def _left(self) -> float:
        """Seconds until what is being waited for is late."""
        limit = self.patience.start
        if self._stage == "body":
            limit = self.patience.seconds(self._received) + self.patience.grace
        return self._since + limit - self.loop.time()

    def _stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


def patient_protocol(
    library: Literal["h11", "httptools"] = "h11", patience: Patience | None = None
) -> type[asyncio.Protocol]:
    """Make an HTTP/1.1 protocol for ``uvicorn.Config(http=...)`` that enforces the deadlines.

    Parameters
    ----------
    library : {"h11", "httptools"}
        What reads the bytes; httptools is faster and compiled.
    patience : Patience, optional
    """
    base = _on_h11() if library == "h11" else _on_httptools()
    return type("PatientProtocol", (base,), {"patience": patience or Patience(), "open": {}})


def web_server(app: Any, patience: Patience | None = None, **options: Any) -> Any:
    """Make an ``uvicorn.Server`` with deadlines that logs nothing about clients or times.

    Its warnings (of broken requests, of upgrades that are not offered) come one per request, so
    they are left out: with the times that a system adds to them they would be a list of visits.

    Parameters
    ----------
    app : ASGI application
    patience : Patience, optional
    **options
        Of ``uvicorn.Config``, such as host, port and certificates.
    """
    import uvicorn

    given: dict[str, Any] = {
        "log_level": "error",
        "access_log": False,
        "server_header": False,
        "date_header": False,
        "timeout_keep_alive": 5,
        "timeout_graceful_shutdown": 15,
        "proxy_headers": False,
        "http": patient_protocol("httptools", patience),
    }
    return uvicorn.Server(uvicorn.Config(app, **(given | options)))


def _on_h11() -> type[_Patient]:
    import h11
    from uvicorn.protocols.http.h11_impl import H11Protocol

    stages: dict[Any, Stage] = {h11.IDLE: "headers", h11.SEND_BODY: "body"}

    class OnH11(_Patient, H11Protocol):
        def stage(self) -> Stage:
            return stages.get(self.conn.their_state, "whole")

        def busy(self) -> bool:
            return self.cycle is not None and not self.cycle.response_complete

    return OnH11


def _on_httptools() -> type[_Patient]:
    from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

    class OnHttptools(_Patient, HttpToolsProtocol):
        _now: Stage = "headers"
        _loose = 0  # bytes since a body or the end of a request: the parser would keep them all

        def data_received(self, data: bytes) -> None:
            self._loose += len(data)
            super().data_received(data)
            if self._loose > HEAD:  # h11 has such a limit of its own
                self.transport.abort()

        def on_body(self, body: bytes) -> None:
            self._loose = 0
            super().on_body(body)

        def stage(self) -> Stage:
            return self._now

        def busy(self) -> bool:
            return self.cycle is not None and not self.cycle.response_complete

        def on_message_begin(self) -> None:
            if len(self.pipeline) >= AHEAD:  # a client that reads no answers would fill the memory
                raise ValueError("too many requests at once")  # which closes the connection
            self._now = "headers"
            super().on_message_begin()

        def on_headers_complete(self) -> None:
            self._now = "body"
            super().on_headers_complete()

        def on_message_complete(self) -> None:
            self._now, self._loose = "whole", 0
            super().on_message_complete()

    return OnHttptools


def tls_options(certificate: str | None, key: str | None) -> dict[str, str | None]:
    """The options of :func:`web_server` for TLS; files that do not serve are refused by name.

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
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(certificate, key, password="")
        except ssl.SSLError as error:
            said = error.reason or str(error)
            raise FormatError(
                f"--certificate {certificate} and --certificate-key {key} cannot be used for TLS "
                f"({said}); give a certificate and its own key in PEM form, without a password"
            ) from None
    return {"ssl_certfile": certificate, "ssl_keyfile": key}


def trusting(authority: str) -> Any:
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


def raise_file_limit(wanted: int = 4096) -> int:
    """Raise this process's limit of open files and connections, if the system allows it.

    Parameters
    ----------
    wanted : int, default 4096
        Open files; a limit that is higher already stays.

    Returns
    -------
    int
        How many files and connections may be open now.
    """
    try:
        import resource
    except ImportError:  # a system without such limits
        return wanted
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY:
        return wanted
    most = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
    if soft < most:
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
    return max(soft, most)
