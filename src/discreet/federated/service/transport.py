"""One request to a collector: signed, over TLS, with limits of time and of the answer's size."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

import httpx

from discreet.errors import SchemaError
from discreet.federated.agreement import signed
from discreet.federated.agreement.identity import Identity
from discreet.federated.agreement.signed import Agreement
from discreet.federated.messages import MESSAGE_HEADER, SIGNATURE_HEADER, encode_request
from discreet.federated.service.collector_answers import make_wrong_server_error
from discreet.hosting.serving import create_trusting_context

__all__ = ["CollectorTransport", "SignedRequests"]

REQUEST_TIMEOUT = 30.0
"""Seconds until a request without an answer has failed."""
MAX_ANSWER_BYTES = 4 << 20
"""Bytes of an answer at most: a chunk, or a manifest with its signatures."""


class SignedRequests(httpx.Auth):
    """Signs each request, so that the collector answers parties only.

    Parameters
    ----------
    identity : Identity
    agreement : Agreement
    """

    def __init__(self, identity: Identity, agreement: Agreement) -> None:
        self.identity, self.agreement = identity, agreement

    def auth_flow(self, request: httpx.Request) -> Generator[httpx.Request, httpx.Response, None]:
        """Add the header with name, time and signature."""
        target = request.url.raw_path.decode()
        timestamp = str(int(signed.get_current_time().timestamp()))
        signature = self.identity.sign(
            encode_request(self.agreement, request.method, target, timestamp)
        )
        request.headers[SIGNATURE_HEADER] = f"{self.identity.name} {timestamp} {signature.hex()}"
        yield request


class CollectorTransport:
    """Sends single requests to one collector; proxies of the environment are not used.

    Parameters
    ----------
    url : str
        Such as ``https://collector.example:8443``.
    identity : Identity
    agreement : Agreement
        Every request is signed for it.
    authority : str, optional
        A file with the certificate that the collector's must be signed by.
    """

    def __init__(
        self, url: str, identity: Identity, agreement: Agreement, authority: str | None = None
    ) -> None:
        if not url.startswith(("http://", "https://")) or not _parse_host(url):
            raise SchemaError(f"invalid address {url!r}; write https://collector.example:8443")
        tls_verification: Any = True if authority is None else create_trusting_context(authority)
        self.url = url.rstrip("/")
        self.http = httpx.Client(
            base_url=url,
            auth=SignedRequests(identity, agreement),
            timeout=REQUEST_TIMEOUT,
            verify=tls_verification,
            trust_env=False,
            headers={"accept-encoding": "identity"},
        )

    def send(self, method: str, path: str, **arguments: Any) -> httpx.Response:
        """Send one request; refuse an answer that is too long, to limit memory."""
        with self.http.stream(method, path, **arguments) as stream:
            body_bytes = bytearray()
            for piece in stream.iter_raw():  # as it came: nothing unpacks to more than was sent
                body_bytes += piece
                if len(body_bytes) > MAX_ANSWER_BYTES:
                    raise make_wrong_server_error(self.url, f"answered {path} with too many bytes")
            kept_headers = {
                header_name: stream.headers.get(header_name, "")
                for header_name in ("content-type", MESSAGE_HEADER)
            }
            return httpx.Response(
                stream.status_code, headers=kept_headers, content=bytes(body_bytes)
            )


def _parse_host(url: str) -> str:
    try:
        return httpx.URL(url).host
    except httpx.InvalidURL:
        return ""
