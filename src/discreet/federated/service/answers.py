"""What a collector answers, read strictly: whoever listens there may be anyone.

Also why one cannot be reached, where trying again is no use.
"""

from __future__ import annotations

from typing import Literal, TypeVar

import httpx
from pydantic import BaseModel, Field

from discreet.documents import parse_json
from discreet.federated.refusals import ProtocolError, Reason, printable

__all__ = [
    "Signatures",
    "Status",
    "Told",
    "answered",
    "no_collector",
    "refusal",
    "refuse_transport",
]

NO_TLS = ("WRONG_VERSION_NUMBER", "RECORD_LAYER_FAILURE", "HTTP_REQUEST", "UNEXPECTED_MESSAGE")
"""What OpenSSL says to an answer that is not TLS."""

B = TypeVar("B", bound=BaseModel)


class Status(BaseModel, strict=True):
    """How far a round is."""

    state: Literal["signing", "collecting", "done", "abandoned"]
    line: str
    changes: int = Field(ge=0, lt=1 << 53)


class Told(BaseModel, strict=True):
    """How far a message has come."""

    accepted: bool
    have: int = Field(ge=0, lt=1 << 53)


class Signatures(BaseModel, strict=True):
    """What is taken of a collector's copy of an agreement."""

    signatures: dict[str, str]


class _Refused(BaseModel, strict=True):
    reason: Reason
    sentence: str


def answered(url: str, content: bytes, shape: type[B], what: str) -> B:
    """An answer in the shape that it must have.

    Parameters
    ----------
    url : str
        The collector's address.
    content : bytes
    shape : type
    what : str
        What it does not do if it answers otherwise, such as "tells no status of a round".
    """
    try:
        return shape.model_validate(parse_json(content))
    except (ValueError, RecursionError):
        raise no_collector(url, what) from None


def refusal(url: str, answer: httpx.Response, path: str, kind: str) -> ProtocolError:
    """The refusal that an answer is; its words are a stranger's, so they cannot move a cursor."""
    found = answered(
        url, answer.content, _Refused, f"answered {path} with {answer.status_code} ({kind})"
    )
    return ProtocolError(found.reason, printable(found.sentence))


def no_collector(url: str, what: str) -> ProtocolError:
    """What is said of an address where something else listens."""
    return ProtocolError(
        "malformed",
        f"{url} {printable(what)}: no collector of ours is there, but perhaps a proxy or another "
        "server; check the address and the port with whoever runs the collector",
    )


def refuse_transport(url: str, error: httpx.TransportError) -> None:
    """Say what waiting will not mend: TLS on one side only, or a certificate of another.

    Parameters
    ----------
    url : str
        The collector's address.
    error : TransportError
        What came of asking it; an error that may pass is left alone.
    """
    said, host = str(error), httpx.URL(url).host
    if "CERTIFICATE_VERIFY_FAILED" in said:
        if "mismatch" in said:
            raise ProtocolError(
                "wrong-signature",
                f"the certificate of the collector at {url} is not for {host}; use the "
                "host name that it is for, or let the collector get one for this name",
            )
        raise ProtocolError(
            "wrong-signature",
            f"the certificate of the collector at {url} is not under the authority; name "
            "the one that signed it with --authority",
        )
    if isinstance(error, httpx.ConnectError) and any(one in said for one in NO_TLS):
        raise ProtocolError(
            "malformed",
            f"the collector at {url} speaks no TLS; start it with --certificate and "
            "--certificate-key, or on one machine write http://",
        )
    closed = isinstance(error, (httpx.RemoteProtocolError, httpx.ReadError))
    if closed and url.startswith("http://") and _speaks_tls(url):
        raise ProtocolError(
            "malformed",
            f"the collector at {url} speaks TLS; write https:// instead of http://, and "
            "name the certificate's authority with --authority",
        )


def _speaks_tls(url: str) -> bool:
    """Whether a TLS handshake succeeds at an address; nothing is sent, nobody is trusted."""
    import socket
    import ssl

    address = httpx.URL(url)
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    try:
        with (
            socket.create_connection((address.host, address.port or 80), 5) as line,
            context.wrap_socket(line, server_hostname=address.host),
        ):
            return True
    except (OSError, ValueError):
        return False
