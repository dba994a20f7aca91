"""Requests that are sent until they are answered, and the waiting for a state of the round.

A collector that does not answer is asked again until the deadline; it may be restarting.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, TypeVar

import httpx
from pydantic import BaseModel

from discreet.federated.messages import RAW_MEDIA_TYPE
from discreet.federated.refusals import ProtocolError, escape_unprintable
from discreet.federated.service import collector_answers as answers
from discreet.federated.service.patience import Patience
from discreet.federated.service.status_reporter import StatusReporter
from discreet.federated.service.transport import CollectorTransport

__all__ = ["RetryingTransport"]

AnswerT = TypeVar("AnswerT", bound=BaseModel)
ResultT = TypeVar("ResultT")

JSON_MEDIA_TYPE = "application/json"
MakeRequestArguments = Callable[[], dict[str, Any]]


class RetryingTransport:
    """Sends requests again until there is an answer, or patience ends.

    Parameters
    ----------
    transport : CollectorTransport
    patience : Patience
    reporter : StatusReporter
    """

    def __init__(
        self, transport: CollectorTransport, patience: Patience, reporter: StatusReporter
    ) -> None:
        self.transport, self.patience, self.reporter = transport, patience, reporter
        self.url = transport.url
        self.chunk_bytes = patience.policy.first_chunk_bytes

    def transfer_chunk(
        self, method: str, path: str, make_arguments: MakeRequestArguments
    ) -> httpx.Response:
        """Transfer a chunk and adapt the size of the next to the speed of the connection."""
        start_time = time.monotonic()
        response = self.send(method, path, make_arguments)
        if response.status_code != 204:
            self._adapt_chunks(time.monotonic() - start_time)
        return response

    def send(
        self,
        method: str,
        path: str,
        make_arguments: MakeRequestArguments = dict,
        **fixed_arguments: Any,
    ) -> httpx.Response:
        """Ask until there is an answer; a refusal is raised.

        Parameters
        ----------
        method, path : str
        make_arguments : callable
            Gives what is different at every try: chunks get shorter when a line breaks.
        """
        first_failure: float | None = None
        while True:
            try:
                response = self.transport.send(method, path, **make_arguments(), **fixed_arguments)
            except httpx.TransportError as error:
                answers.refuse_permanent_failure(self.url, error)
                first_failure = time.monotonic() if first_failure is None else first_failure
                self.patience.refuse_past_deadline(
                    f"the collector does not answer ({type(error).__name__})"
                )
                self.patience.refuse_long_silence(self.url, first_failure)
                self._adapt_chunks(float("inf"))
                self.reporter.report_waiting(
                    f"waiting for the collector at {self.url}, which does not answer"
                )
                time.sleep(self.patience.policy.retry_seconds)
                continue
            media_type = response.headers.get("content-type", "nothing").partition(";")[0]
            if response.status_code == 204 or (
                response.status_code < 300 and media_type in (JSON_MEDIA_TYPE, RAW_MEDIA_TYPE)
            ):
                return response
            refusal = answers.parse_refusal(self.url, response, path, media_type)
            if refusal.reason != "storage":
                raise refusal
            self.reporter.report_waiting(f"waiting: {refusal.sentence}")
            self.patience.refuse_past_deadline(refusal.sentence)
            time.sleep(self.patience.policy.storage_retry_seconds)

    def _adapt_chunks(self, seconds: float) -> None:
        self.chunk_bytes = self.patience.policy.adapt_chunk_bytes(self.chunk_bytes, seconds)

    def parse_answer(
        self, response: httpx.Response, answer_type: type[AnswerT], complaint: str
    ) -> AnswerT:
        """Parse an answer strictly; the complaint says what a wrong server does not do."""
        return answers.parse_answer(self.url, response.content, answer_type, complaint)

    def wait_until_ready(self, take_if_ready: Callable[[str], ResultT | None]) -> ResultT:
        """Poll the status until the callback returns a value; report who is missing meanwhile."""
        last_change = -1  # the first answer comes at once
        while True:
            response = self.send("GET", "/status", params={"changes": last_change})
            status = self.parse_answer(response, answers.RoundStatus, "gives no status of a round")
            last_change, status_line = status.changes, escape_unprintable(status.line)
            result = take_if_ready(status.state)
            if result is not None:
                self.reporter.show_going_on()  # what was waited for is here
                return result
            if status.state == "abandoned":
                raise ProtocolError("abandoned", status_line)
            self.reporter.report_waiting(status_line)
            if status.state != "done":
                self.patience.refuse_past_deadline(status_line)
