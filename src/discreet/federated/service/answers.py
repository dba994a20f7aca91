"""Strict parsing of a collector's answers; the server at the address is untrusted.

Also explains connection failures that a retry cannot mend.
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
    """State of a round."""

    state: Literal["signing", "collecting", "done", "abandoned"]
    line: str
    changes: int = Field(ge=0, lt=1 << 53)


class Told(BaseModel, strict=True):
    """How many bytes of a message the collector has."""

    accepted: bool
    have: int = Field(ge=0, lt=1 << 53)


class Signatures(BaseModel, strict=True):
    """The signatures in a collector's copy of an agreement; nothing else is used."""

    signatures: dict[str, str]


class _Refused(BaseModel, strict=True):
    reason: Reason
    sentence: str


def answered(url: str, content: bytes, shape: type[B], what: str) -> B:
    """Parse an answer strictly.

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
    """Parse a refusal; the text is untrusted, so control characters are escaped."""
    found = answered(
        url, answer.content, _Refused, f"answered {path} with {answer.status_code} ({kind})"
    )
    return ProtocolError(found.reason, printable(found.sentence))


def no_collector(url: str, what: str) -> ProtocolError:
    """Make the error for an address where no discreet collector answers."""
    return ProtocolError(
        "malformed",
        f"{url} {printable(what)}: this is not a discreet collector; it may be a proxy or "
        "another server; check the address and the port with the operator of the collector",
    )


def refuse_transport(url: str, error: httpx.TransportError) -> None:
    """Raise errors that a retry cannot mend: TLS on one side only, or a wrong certificate.

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
            f"the collector at {url} does not use TLS; start it with --certificate and "
            "--certificate-key, or on one machine write http://",
        )
    closed = isinstance(error, (httpx.RemoteProtocolError, httpx.ReadError))
    if closed and url.startswith("http://") and _speaks_tls(url):
        raise ProtocolError(
            "malformed",
            f"the collector at {url} uses TLS; write https:// instead of http://, and "
            "name the certificate's authority with --authority",
        )


def _speaks_tls(url: str) -> bool:
    """Whether a TLS handshake succeeds at an address; sends nothing, trusts no certificate."""
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
