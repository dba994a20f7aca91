"""Strict parsing of a collector's answers; the server at the address is untrusted.

Also explains connection failures that a retry cannot mend.
"""

from __future__ import annotations

from typing import Literal, TypeVar

import httpx
from pydantic import BaseModel, Field

from discreet.federated.refusals import ProtocolError, Reason, escape_unprintable
from discreet.files.documents import parse_json

__all__ = [
    "CollectedSignatures",
    "RoundStatus",
    "UploadProgress",
    "make_wrong_server_error",
    "parse_answer",
    "parse_refusal",
    "refuse_permanent_failure",
]

NOT_TLS_ERRORS = (
    "WRONG_VERSION_NUMBER",
    "RECORD_LAYER_FAILURE",
    "HTTP_REQUEST",
    "UNEXPECTED_MESSAGE",
)
"""What OpenSSL says to an answer that is not TLS."""

AnswerT = TypeVar("AnswerT", bound=BaseModel)


class RoundStatus(BaseModel, strict=True):
    """State of a round."""

    state: Literal["signing", "collecting", "done", "abandoned"]
    line: str
    changes: int = Field(ge=0, lt=1 << 53)


class UploadProgress(BaseModel, strict=True):
    """How many bytes of a message the collector has."""

    accepted: bool
    have: int = Field(ge=0, lt=1 << 53)


class CollectedSignatures(BaseModel, strict=True):
    """The signatures in a collector's copy of an agreement; nothing else is used."""

    signatures: dict[str, str]


class _RefusalBody(BaseModel, strict=True):
    reason: Reason
    sentence: str


def parse_answer(url: str, content: bytes, answer_type: type[AnswerT], complaint: str) -> AnswerT:
    """Parse an answer strictly.

    Parameters
    ----------
    url : str
        The collector's address.
    content : bytes
    answer_type : type
    complaint : str
        What it does not do if it answers otherwise, such as "tells no status of a round".
    """
    try:
        return answer_type.model_validate(parse_json(content))
    except (ValueError, RecursionError):
        raise make_wrong_server_error(url, complaint) from None


def parse_refusal(url: str, response: httpx.Response, path: str, media_type: str) -> ProtocolError:
    """Parse a refusal; the text is untrusted, so control characters are escaped."""
    refusal_body = parse_answer(
        url,
        response.content,
        _RefusalBody,
        f"answered {path} with {response.status_code} ({media_type})",
    )
    return ProtocolError(refusal_body.reason, escape_unprintable(refusal_body.sentence))


def make_wrong_server_error(url: str, complaint: str) -> ProtocolError:
    """Make the error for an address where no discreet collector answers."""
    return ProtocolError(
        "malformed",
        f"{url} {escape_unprintable(complaint)}: this is not a discreet collector; it may be a "
        "proxy or another server; check the address and the port with the operator of the "
        "collector",
    )


def refuse_permanent_failure(url: str, error: httpx.TransportError) -> None:
    """Raise errors that a retry cannot mend: TLS on one side only, or a wrong certificate.

    Parameters
    ----------
    url : str
        The collector's address.
    error : TransportError
        What came of asking it; an error that may pass is left alone.
    """
    error_text, host = str(error), httpx.URL(url).host
    if "CERTIFICATE_VERIFY_FAILED" in error_text:
        if "mismatch" in error_text:
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
    if isinstance(error, httpx.ConnectError) and any(
        error_code in error_text for error_code in NOT_TLS_ERRORS
    ):
        raise ProtocolError(
            "malformed",
            f"the collector at {url} does not use TLS; start it with --certificate and "
            "--certificate-key, or on one machine write http://",
        )
    was_closed = isinstance(error, (httpx.RemoteProtocolError, httpx.ReadError))
    if was_closed and url.startswith("http://") and _has_tls_server(url):
        raise ProtocolError(
            "malformed",
            f"the collector at {url} uses TLS; write https:// instead of http://, and "
            "name the certificate's authority with --authority",
        )


def _has_tls_server(url: str) -> bool:
    """Whether a TLS handshake succeeds at an address; sends nothing, trusts no certificate."""
    import socket
    import ssl

    address = httpx.URL(url)
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    try:
        with (
            socket.create_connection((address.host, address.port or 80), 5) as connection,
            context.wrap_socket(connection, server_hostname=address.host),
        ):
            return True
    except (OSError, ValueError):
        return False
