"""Why a collector cannot be reached, where trying again is no use."""

from __future__ import annotations

import httpx

from discreet.federated.refusals import ProtocolError

__all__ = ["refuse_transport"]

NO_TLS = ("WRONG_VERSION_NUMBER", "RECORD_LAYER_FAILURE", "HTTP_REQUEST", "UNEXPECTED_MESSAGE")
"""What OpenSSL says to an answer that is not TLS."""


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
