"""Messages in chunks: each is sent again until it is answered, a damaged body from its beginning.

A line that breaks costs a chunk, not a message.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import httpx

from discreet.federated.messages import MESSAGE_HEADER, Message
from discreet.federated.refusals import ProtocolError
from discreet.federated.service import collector_answers as answers
from discreet.federated.service.retrying_transport import RetryingTransport
from discreet.federated.service.state_folder import PartialBody, StateFolder

__all__ = ["MessageTransfer"]


class MessageTransfer:
    """Sends and fetches the messages of one party.

    Parameters
    ----------
    connection : RetryingTransport
    own_name : str
        The party's, whose messages are fetched.
    """

    def __init__(self, connection: RetryingTransport, own_name: str) -> None:
        self.connection, self.own_name = connection, own_name
        self.policy, self.show = connection.patience.policy, connection.reporter.show

    def send_message(self, message: Message) -> None:
        """Send a message; one that was accepted before counts as sent."""
        try:
            for attempt in range(self.policy.max_transfer_tries):
                try:
                    return self._send_chunks(message)
                except ProtocolError as error:
                    if not self._may_repeat(error, attempt):
                        raise
        except ProtocolError as error:
            if error.reason != "replayed":
                raise

    def _may_repeat(self, error: ProtocolError, attempt: int) -> bool:
        """Whether a body may be transferred again: it was damaged, and not too often."""
        return (
            error.reason in ("damaged", "truncated")
            and attempt < self.policy.max_transfer_tries - 1
        )

    def _send_chunks(self, message: Message) -> None:
        step_name = f"sending {message.kind} for {message.recipient}"
        upload_progress, stalled_chunks = answers.UploadProgress(accepted=False, have=0), 0
        self.show(step_name, upload_progress.have, message.size)
        if message.size > self.policy.first_chunk_bytes:  # some of it may be there already
            headers = {MESSAGE_HEADER: message.header.decode()}
            upload_progress = self._parse_upload_progress(
                message, self.connection.send("POST", "/messages", headers=headers)
            )
        while not upload_progress.accepted:
            previous_size = upload_progress.have
            make_arguments = partial(self._make_chunk_request, message, upload_progress.have)
            upload_progress = self._parse_upload_progress(
                message, self.connection.transfer_chunk("POST", "/messages", make_arguments)
            )
            stalled_chunks = 0 if upload_progress.have > previous_size else stalled_chunks + 1
            if stalled_chunks > self.policy.max_stalled_chunks:
                raise ProtocolError(
                    "truncated",
                    f"the collector at {self.connection.url} accepts no more bytes of the "
                    f"{message.kind}",
                )
            self.show(step_name, upload_progress.have, message.size)

    def _make_chunk_request(self, message: Message, offset: int) -> dict[str, Any]:
        """A request with the next chunk of a body."""
        chunk = message.body.get_slice(offset, offset + self.connection.chunk_bytes)
        return {
            "params": {"offset": offset},
            "headers": {MESSAGE_HEADER: message.header.decode()},
            "content": chunk.read(),
        }

    def _parse_upload_progress(
        self, message: Message, response: httpx.Response
    ) -> answers.UploadProgress:
        """How far a message has come."""
        upload_progress = self.connection.parse_answer(
            response, answers.UploadProgress, "does not say how much of a message it has"
        )
        if upload_progress.have > message.size:
            raise answers.make_wrong_server_error(
                self.connection.url, "has more of a message than there is"
            )
        return upload_progress

    def fetch_message(self, kind: str, sender: str, state_folder: StateFolder) -> Message:
        """Wait for a message; its body is put into a folder, and checked.

        Parameters
        ----------
        kind, sender : str
        state_folder : StateFolder
            What is there of the body already is not fetched again.
        """
        for attempt in range(self.policy.max_transfer_tries):
            message, chunk = self.connection.wait_until_ready(
                lambda state: self._fetch_chunk(kind, sender, 0)
            )
            partial_body = state_folder.open_partial_body(f"{sender} {kind}", message)
            try:
                partial_body.add_chunk(0, chunk)
                return self._fetch_remainder(message, partial_body)
            except ProtocolError as error:
                if not self._may_repeat(error, attempt):
                    raise
        raise AssertionError("unreachable")

    def _fetch_remainder(self, message: Message, partial_body: PartialBody) -> Message:
        """The rest of a body, a chunk at a time."""
        step_name = f"fetching {message.kind} of {message.sender}"
        while partial_body.size < message.size:
            fetched_chunk = self._fetch_chunk(message.kind, message.sender, partial_body.size)
            if fetched_chunk is None or fetched_chunk[0] != message or not fetched_chunk[1]:
                raise ProtocolError("truncated", f"the {message.kind} changed on its way")
            partial_body.add_chunk(partial_body.size, fetched_chunk[1])
            self.show(step_name, partial_body.size, message.size)
        return partial_body.read_complete_message()

    def _fetch_chunk(self, kind: str, sender: str, offset: int) -> tuple[Message, bytes] | None:
        """The header of a message, and a chunk of its body, once it is there."""

        def make_arguments() -> dict[str, Any]:
            limit = self.connection.chunk_bytes
            return {"params": {"kind": kind, "sender": sender, "offset": offset, "limit": limit}}

        response = self.connection.transfer_chunk(
            "GET", f"/messages/{self.own_name}", make_arguments
        )
        if response.status_code == 204:
            return None
        header = response.headers.get(MESSAGE_HEADER, "").encode()
        return Message.from_header(header), response.content
