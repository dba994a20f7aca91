"""Client of the collector: signs requests, retries until the deadline, transfers in chunks.

A collector that does not answer is asked again until the deadline; it may be restarting. Bodies go
in chunks, each sent again until it is answered: a line that breaks costs a chunk, not a message.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import partial
from types import TracebackType
from typing import Any, Generic, Protocol, Self, TypeVar, cast

import httpx
from pydantic import BaseModel

from discreet.errors import SchemaError
from discreet.federated.agreement import signed
from discreet.federated.agreement.identity import Card, Identity
from discreet.federated.agreement.manifest import Manifest
from discreet.federated.agreement.signed import Agreement, seconds_left
from discreet.federated.messages import CHUNK, HEADER, MESSAGE, RAW, Message, request_bytes
from discreet.federated.refusals import ProtocolError, printable
from discreet.federated.service import answers
from discreet.federated.service.folder import Folder, Growing
from discreet.serving import trusting

__all__ = ["Connection", "Line", "SignedRequests"]

A = TypeVar("A", bound=Agreement)
B = TypeVar("B", bound=BaseModel)

PAUSE = 0.1
PATIENCE = 30.0
JSON = "application/json"
FIRST = 1 << 16
"""Bytes of the first chunk; on a quick line they get longer."""
SHORTEST = 1 << 14
"""Bytes of a chunk on a line that keeps breaking."""
MOMENT = 1.0
"""Seconds that a chunk should not take much longer than."""
TRIES = 3
"""How often a damaged body is sent or fetched at most."""
STUCK = 10
"""Chunks in a row that a collector may answer without having more than before."""
ON = "going on"
"""Progress text between two named steps."""
Again = Callable[[], dict[str, Any]]


class Listener(Protocol):
    """Receives status lines and progress of a party."""

    def say(self, line: str, /) -> None:
        """Report what is being waited for, whenever that changes."""

    def show(self, what: str, done: int, whole: int, /) -> None:
        """Report progress of the current step; the total is 0 if unknown."""


class Nobody:
    """Discards status lines and progress."""

    def say(self, line: str, /) -> None:
        """Nothing."""

    def show(self, what: str, done: int, whole: int, /) -> None:
        """Nothing."""


LARGEST_ANSWER = 4 << 20
"""Bytes of an answer at most: a chunk, or a manifest with its signatures."""
FAREWELL = 5.0
"""Seconds that a leaving party waits for the collector to acknowledge."""
FAREWELL_TRIES = 5
"""How often a leaving party notifies the collector at most."""
LONELY = 60.0
"""Seconds without an answer after which a party that has made all its messages leaves."""


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
        target, moment = request.url.raw_path.decode(), str(int(signed.now().timestamp()))
        signature = self.own.sign(request_bytes(self.manifest, request.method, target, moment))
        request.headers[HEADER] = f"{self.own.name} {moment} {signature.hex()}"
        yield request


class Line(Generic[A]):
    """Client of one collector under one agreement.

    Parameters
    ----------
    url : str
        Such as ``https://collector.example:8443``.
    own : Identity
    manifest : Manifest or Invitation
        As one has read and approved it.
    authority : str, optional
        A file with the certificate that the collector's must be signed by.
    tell : Listener, optional
        Told what is being waited for, and how far a transfer is.
    """

    def __init__(
        self,
        url: str,
        own: Identity,
        manifest: A,
        *,
        authority: str | None = None,
        tell: Listener | None = None,
    ) -> None:
        if not url.startswith(("http://", "https://")) or not _host(url):
            raise SchemaError(f"invalid address {url!r}; write https://collector.example:8443")
        verify: Any = True if authority is None else trusting(authority)
        self.url = url.rstrip("/")
        tell = tell or Nobody()
        self.own, self.manifest, self.say, self.said = own, manifest, tell.say, ""
        self.show, self.chunk = tell.show, FIRST
        self.alone: float | None = None
        self.http = httpx.Client(
            base_url=url,
            auth=SignedRequests(own, manifest),
            timeout=PATIENCE,
            verify=verify,
            trust_env=False,
            headers={"accept-encoding": "identity"},
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

    @contextmanager
    def busy(self, what: str) -> Iterator[None]:
        """Report a step as progress while the block runs."""
        self.show(what, 0, 0)
        yield
        self.show(ON, 0, 0)

    def _tell(self, line: str) -> None:
        head = line.rpartition(", ")[0] or line  # the seconds alone are no news
        if head != self.said:
            self.said = head
            self.say(line)
        else:
            self.show(head, 0, 0)

    def _paced(self, method: str, path: str, again: Again) -> httpx.Response:
        """Transfer a chunk and adapt the size of the next to the speed of the connection."""
        began = time.monotonic()
        answer = self._request(method, path, again)
        if answer.status_code == 204:
            return answer
        if time.monotonic() - began < MOMENT:
            self.chunk = min(CHUNK, 2 * self.chunk)
        else:
            self.chunk = max(SHORTEST, self.chunk // 2)
        return answer

    def _request(self, method: str, path: str, again: Again = dict, **how: Any) -> httpx.Response:
        """Ask until there is an answer; a refusal is raised.

        Parameters
        ----------
        method, path : str
        again : callable
            Gives what is different at every try: chunks get shorter when a line breaks.
        """
        began: float | None = None
        while True:
            try:
                answer = self._once(method, path, **again(), **how)
            except httpx.TransportError as error:
                answers.refuse_transport(self.url, error)
                began = time.monotonic() if began is None else began
                self._waiting_since(began, f"does not answer ({type(error).__name__})")
                continue
            kind = answer.headers.get("content-type", "nothing").partition(";")[0]
            if answer.status_code == 204 or (answer.status_code < 300 and kind in (JSON, RAW)):
                return answer
            refusal = answers.refusal(self.url, answer, path, kind)
            if refusal.reason != "storage":
                raise refusal
            self._tell(f"waiting: {refusal.sentence}")
            self._give_up_if_over(refusal.sentence)
            time.sleep(10 * PAUSE)

    def _once(self, method: str, path: str, **how: Any) -> httpx.Response:
        """Send one request; refuse an answer that is too long, to limit memory."""
        with self.http.stream(method, path, **how) as answer:
            data = bytearray()
            for piece in answer.iter_raw():  # as it came: nothing unpacks to more than was sent
                data += piece
                if len(data) > LARGEST_ANSWER:
                    raise answers.no_collector(self.url, f"answered {path} with too many bytes")
            told = {name: answer.headers.get(name, "") for name in ("content-type", MESSAGE)}
            return httpx.Response(answer.status_code, headers=told, content=bytes(data))

    def _waiting_since(self, began: float, what: str) -> None:
        self._give_up_if_over(f"the collector {what}")
        if self.alone is not None and time.monotonic() - began > self.alone:
            raise ProtocolError("lonely", f"the collector at {self.url} is gone") from None
        self.chunk = max(SHORTEST, self.chunk // 2)
        self._tell(f"waiting for the collector at {self.url}, which does not answer")
        time.sleep(PAUSE)

    def _give_up_if_over(self, line: str) -> None:
        left = seconds_left(self.manifest)
        if left is not None and left < -2 * PAUSE:  # the collector speaks first
            raise ProtocolError("abandoned", f"the deadline has passed, the round is over; {line}")

    def _until(self, ready: Callable[[str], Any]) -> Any:
        """Poll the status until the callback returns a value; report who is missing meanwhile."""
        changes = -1  # the first answer comes at once
        while True:
            answer = self._request("GET", "/status", params={"changes": changes})
            status = self._read(answer, answers.Status, "gives no status of a round")
            changes, line = status.changes, printable(status.line)
            found = ready(status.state)
            if found is not None:
                self.show(ON, 0, 0)  # what was waited for is here
                return found
            if status.state == "abandoned":
                raise ProtocolError("abandoned", line)
            self._tell(line)
            if status.state != "done":
                self._give_up_if_over(line)

    def _read(self, answer: httpx.Response, shape: type[B], what: str) -> B:
        return answers.answered(self.url, answer.content, shape, what)

    def agreed(self, known: tuple[Card, ...] = ()) -> A:
        """Sign the agreement, wait for everyone's signature, and check them all."""
        self.manifest.require_known(self.own.card, known)
        signature = self.manifest.signed_by(self.own).signatures[self.own.name]
        self._request("POST", f"/signatures/{self.own.name}", content=signature)

        def whole(state: str) -> A | None:
            if state not in ("collecting", "done"):
                return None
            # everything but the signatures is taken from one's own copy
            kind, answer = self.manifest.KIND, self._request("GET", "/manifest")
            told = self._read(answer, answers.Signatures, f"has no signatures of a {kind}")
            found: A = replace(cast(Any, self.manifest), signatures=told.signatures)
            return None if found.unsigned else found

        manifest: A = self._until(whole)
        manifest.require_agreed()
        return manifest

    def send(self, message: Message) -> None:
        """Send a message; one that was accepted before counts as sent."""
        try:
            for tries in range(TRIES):
                try:
                    return self._send(message)
                except ProtocolError as error:
                    if error.reason not in ("damaged", "truncated") or tries == TRIES - 1:
                        raise
        except ProtocolError as error:
            if error.reason != "replayed":
                raise

    def _send(self, message: Message) -> None:
        what = f"sending {message.kind} for {message.recipient}"
        far, stuck = answers.Told(accepted=False, have=0), 0
        self.show(what, far.have, message.size)
        if message.size > FIRST:  # some of it may be there already
            header = {MESSAGE: message.header.decode()}
            far = self._told(message, self._request("POST", "/messages", headers=header))
        while not far.accepted:
            before, part = far.have, partial(self._part, message, far.have)
            far = self._told(message, self._paced("POST", "/messages", part))
            stuck = 0 if far.have > before else stuck + 1
            if stuck > STUCK:
                raise ProtocolError(
                    "truncated",
                    f"the collector at {self.url} accepts no more bytes of the {message.kind}",
                )
            self.show(what, far.have, message.size)

    def _part(self, message: Message, start: int) -> dict[str, Any]:
        """A request with the next chunk of a body."""
        return {
            "params": {"offset": start},
            "headers": {MESSAGE: message.header.decode()},
            "content": message.body.part(start, start + self.chunk).read(),
        }

    def _told(self, message: Message, answer: httpx.Response) -> answers.Told:
        """How far a message has come."""
        found = self._read(answer, answers.Told, "does not say how much of a message it has")
        if found.have > message.size:
            raise answers.no_collector(self.url, "has more of a message than there is")
        return found

    def take(self, kind: str, sender: str, kept: Folder) -> Message:
        """Wait for a message; its body is put into a folder, and checked.

        Parameters
        ----------
        kind, sender : str
        kept : Folder
            What is there of the body already is not fetched again.
        """
        for tries in range(TRIES):
            message, data = self._until(lambda state: self._chunk(kind, sender, 0))
            body = kept.growing(f"{sender} {kind}", message)
            try:
                body.add(0, data)
                return self._fetched(message, body)
            except ProtocolError as error:
                if error.reason not in ("damaged", "truncated") or tries == TRIES - 1:
                    raise
        raise AssertionError("unreachable")

    def _fetched(self, message: Message, body: Growing) -> Message:
        """The rest of a body, a chunk at a time."""
        what = f"fetching {message.kind} of {message.sender}"
        while body.size < message.size:
            found = self._chunk(message.kind, message.sender, body.size)
            if found is None or found[0] != message or not found[1]:
                raise ProtocolError("truncated", f"the {message.kind} changed on its way")
            body.add(body.size, found[1])
            self.show(what, body.size, message.size)
        return body.whole()

    def _chunk(self, kind: str, sender: str, offset: int) -> tuple[Message, bytes] | None:
        """The header of a message, and a chunk of its body, once it is there."""
        path, asked = f"/messages/{self.own.name}", {"kind": kind, "sender": sender}

        def again() -> dict[str, Any]:
            return {"params": {**asked, "offset": offset, "limit": self.chunk}}

        answer = self._paced("GET", path, again)
        if answer.status_code == 204:
            return None
        return Message.from_header(answer.headers.get(MESSAGE, "").encode()), answer.content

    def leave_if_alone(self) -> None:
        """From now on leave if the collector does not answer for long: nothing depends on it."""
        self.alone = LONELY

    def confirm(self) -> None:
        """Acknowledge the result; if the collector is gone, continue."""
        self.leave_if_alone()
        collector = self.manifest.collector.name
        try:
            self.send(Message.create(self.own, self.manifest, "received", collector, b""))
        except ProtocolError as error:
            if error.reason not in ("lonely", "abandoned"):
                raise
            self.say(
                "the result is kept, but the collector is gone; it is not known whether it "
                "received the acknowledgement"
            )
            return
        self._leave()

    def finish(self) -> None:
        """Wait until the collector has everything, or has given up, or has long been gone."""
        self.leave_if_alone()
        try:
            self._until(lambda state: True if state == "done" else None)
        except ProtocolError as error:
            if error.reason != "lonely":
                raise
            self.say(
                "everything was sent and accepted, but the collector is gone; it is not known "
                "whether the round has ended"
            )
            return
        self._leave()

    def _leave(self) -> None:
        """Notify the collector that this party leaves: it need not wait any longer.

        What is lost on its way is said again a few times; nobody waits for a collector that left.
        """
        until = time.monotonic() + FAREWELL
        for _ in range(FAREWELL_TRIES):
            left = max(PAUSE, until - time.monotonic())
            with suppress(httpx.TransportError, ProtocolError):
                self._once("GET", "/status", params={"changes": -1, "heard": 1}, timeout=left)
                return
            if time.monotonic() > until:
                return
            time.sleep(PAUSE)


class Connection(Line[Manifest]):
    """Client of the collector of a round."""


def _host(url: str) -> str:
    try:
        return httpx.URL(url).host
    except httpx.InvalidURL:
        return ""
