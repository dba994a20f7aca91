"""A party's line to the collector: signs, sends, waits, and gives up at the deadline.

A collector that does not answer is asked again until the deadline; it may be restarting.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Generator
from dataclasses import replace
from types import TracebackType
from typing import Any, Generic, Self, TypeVar, cast

import httpx

from discreet.errors import SchemaError
from discreet.federated.agreement.identity import Card, Identity
from discreet.federated.agreement.manifest import Manifest
from discreet.federated.agreement.signed import Agreement, seconds_left
from discreet.federated.messages import HEADER, Message, request_bytes
from discreet.federated.refusals import ProtocolError
from discreet.federated.service.diagnosis import refuse_transport

__all__ = ["Connection", "Line", "SignedRequests"]

A = TypeVar("A", bound=Agreement)

PAUSE = 0.1
LONGEST_PAUSE = 1.0
PATIENCE = 30.0
JSON = "application/json"
LONELY = 60.0
"""Seconds without an answer after which a party that has sent everything leaves."""


class SignedRequests(httpx.Auth):
    """Signs each request, so that the collector answers parties only.

    Parameters
    ----------
    own : Identity
    manifest : Agreement
    """

    def __init__(self, own: Identity, manifest: Agreement) -> None:
        self.own, self.manifest = own, manifest

    def auth_flow(self, request: httpx.Request) -> Generator[httpx.Request, httpx.Response, None]:
        """Add the header with name, time and signature."""
        target, moment = request.url.raw_path.decode(), str(int(time.time()))
        signature = self.own.sign(request_bytes(self.manifest, request.method, target, moment))
        request.headers[HEADER] = f"{self.own.name} {moment} {signature.hex()}"
        yield request


class Line(Generic[A]):
    """The way to one collector, under whatever agreement.

    Parameters
    ----------
    url : str
        Such as ``https://collector.example:8443``.
    own : Identity
    manifest : Manifest or Invitation
        As one has read and approved it.
    authority : str, optional
        A file with the certificate that the collector's must be signed by.
    say : callable
        Told what is being waited for, whenever that changes.
    transport : optional
        How requests are sent, for tests.
    """

    def __init__(
        self,
        url: str,
        own: Identity,
        manifest: A,
        *,
        authority: str | None = None,
        say: Callable[[str], None] = lambda line: None,
        transport: httpx.BaseTransport | None = None,
    ) -> None:
        import ssl

        if not url.startswith(("http://", "https://")) or not _host(url):
            raise SchemaError(f"{url!r} is no address; write https://collector.example:8443")
        verify: Any = True if authority is None else ssl.create_default_context(cafile=authority)
        self.url = url.rstrip("/")
        self.own, self.manifest, self.say, self.said = own, manifest, say, ""
        self.alone: float | None = None
        self.http = httpx.Client(
            base_url=url,
            auth=SignedRequests(own, manifest),
            timeout=PATIENCE,
            verify=verify,
            transport=transport,
            trust_env=False,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.http.close()

    def _tell(self, line: str) -> None:
        head = line.rpartition(", ")[0] or line  # the seconds alone are no news
        if head != self.said:
            self.said = head
            self.say(line)

    def _request(self, method: str, path: str, **how: Any) -> httpx.Response:
        began: float | None = None
        while True:
            try:
                answer = self.http.request(method, path, **how)
                break
            except httpx.TransportError as error:
                refuse_transport(self.url, error)
                self._give_up_if_over(f"the collector does not answer ({type(error).__name__})")
                began = time.monotonic() if began is None else began
                if self.alone is not None and time.monotonic() - began > self.alone:
                    raise ProtocolError(
                        "abandoned",
                        "everything was sent and accepted, but the collector is gone; whether the "
                        "round has ended is not known here",
                    ) from None
                self._tell("waiting for the collector, which does not answer")
                time.sleep(PAUSE)
        kind = answer.headers.get("content-type", "nothing").partition(";")[0]
        if answer.status_code == 204 or (answer.status_code < 300 and kind == JSON):
            return answer
        try:
            body = answer.json()
            raise ProtocolError(body["reason"], body["sentence"])
        except (ValueError, KeyError, TypeError) as error:
            if isinstance(error, ProtocolError):
                raise
            raise self._no_collector(
                f"answered {path} with {answer.status_code} ({kind})"
            ) from None

    def _no_collector(self, what: str) -> ProtocolError:
        return ProtocolError(
            "malformed",
            f"{self.url} {what}: no collector of ours is there, but perhaps a proxy or another "
            "server; check the address and the port with whoever runs the collector",
        )

    def _give_up_if_over(self, line: str) -> None:
        left = seconds_left(self.manifest)
        if left is not None and left < -2 * PAUSE:  # the collector speaks first
            raise ProtocolError("abandoned", f"the deadline has passed, the round is over; {line}")

    def _until(self, ready: Callable[[str], Any]) -> Any:
        """Ask until there is something; the collector says who is missing meanwhile."""
        pause = PAUSE
        while True:
            status = self._request("GET", "/status").json()
            if not isinstance(status, dict) or not {"state", "line"} <= status.keys():
                raise self._no_collector("tells no status of a round")
            found = ready(status["state"])
            if found is not None:
                return found
            if status["state"] == "abandoned":
                raise ProtocolError("abandoned", status["line"])
            self._tell(status["line"])
            if status["state"] != "done":
                self._give_up_if_over(status["line"])
            time.sleep(pause)
            pause = min(1.2 * pause, LONGEST_PAUSE)

    def agreed(self, known: tuple[Card, ...] = ()) -> A:
        """Sign what is to be agreed, wait for everyone's signature, and check them all."""
        self.manifest.require_known(self.own.card, known)
        signature = self.manifest.signed_by(self.own).signatures[self.own.name]
        self._request("POST", f"/signatures/{self.own.name}", content=signature)

        def whole(state: str) -> A | None:
            if state not in ("collecting", "done"):
                return None
            # everything but the signatures is taken from one's own copy
            text = self._request("GET", "/manifest").json()
            found = _signed(self.manifest, text.get("signatures"))
            return None if found.unsigned else found

        manifest: A = self._until(whole)
        manifest.require_agreed()
        return manifest

    def send(self, message: Message) -> None:
        """Send a message; one that was accepted before counts as sent."""
        try:
            self._request("POST", "/messages", content=message.to_json())
        except ProtocolError as error:
            if error.reason != "replayed":
                raise

    def take(self, kind: str, sender: str = "") -> bytes:
        """Wait for a message."""

        def there(state: str) -> bytes | None:
            path = f"/messages/{self.own.name}"
            answer = self._request("GET", path, params={"kind": kind, "sender": sender})
            return answer.content if answer.status_code == 200 else None

        found: bytes = self._until(there)
        return found

    def finish(self) -> None:
        """Wait until the collector has everything, or has given up, or has long been gone."""
        self.alone = LONELY
        self._until(lambda state: True if state == "done" else None)


class Connection(Line[Manifest]):
    """The way to the collector of a round."""


def _signed(manifest: A, signatures: Any) -> A:
    if not isinstance(signatures, dict):
        return manifest
    given = {str(k): str(v) for k, v in signatures.items()}
    made: A = replace(cast(Any, manifest), signatures=given)
    return made


def _host(url: str) -> str:
    try:
        return httpx.URL(url).host
    except httpx.InvalidURL:
        return ""
