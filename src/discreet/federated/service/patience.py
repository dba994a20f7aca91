"""How long a party tries: pauses, tries and sizes of chunks, and when it gives up.

Two things end the waiting for a collector: the deadline of the agreement, and, once nothing that
the party has to do depends on the collector, a long silence.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

from discreet.federated.agreement.signed import Agreement, compute_seconds_left
from discreet.federated.messages import CHUNK_BYTES
from discreet.federated.refusals import ProtocolError

__all__ = ["Patience", "RetryPolicy"]


@dataclass(frozen=True)
class RetryPolicy:
    """Pauses, numbers of tries and sizes of chunks of a party's requests.

    Parameters
    ----------
    retry_seconds : float
        Pause after a request without an answer.
    storage_retry_seconds : float
        Pause after a collector has said that its disk is full.
    first_chunk_bytes : int
        Bytes of the first chunk; on a quick line they get longer.
    min_chunk_bytes : int
        Bytes of a chunk on a line that keeps breaking.
    target_chunk_seconds : float
        Seconds that a chunk should not take much longer than.
    max_transfer_tries : int
        How often a damaged body is sent or fetched at most.
    max_stalled_chunks : int
        Chunks in a row that a collector may answer without having more than before.
    farewell_seconds : float
        Seconds that a leaving party waits for the collector to acknowledge.
    max_farewell_tries : int
        How often a leaving party notifies the collector at most.
    max_silence_seconds : float
        Seconds without an answer after which a party leaves that has made all its messages.
    """

    retry_seconds: float = 0.1
    storage_retry_seconds: float = 1.0
    first_chunk_bytes: int = 1 << 16
    min_chunk_bytes: int = 1 << 14
    target_chunk_seconds: float = 1.0
    max_transfer_tries: int = 3
    max_stalled_chunks: int = 10
    farewell_seconds: float = 5.0
    max_farewell_tries: int = 5
    max_silence_seconds: float = 60.0

    def adapt_chunk_bytes(self, chunk_bytes: int, seconds: float) -> int:
        """Return the size of the next chunk after one that took this long."""
        if seconds < self.target_chunk_seconds:
            return min(CHUNK_BYTES, 2 * chunk_bytes)
        return max(self.min_chunk_bytes, chunk_bytes // 2)


class Patience:
    """Decides when a party gives up.

    Parameters
    ----------
    agreement : Agreement
        Whose deadline counts.
    policy : RetryPolicy
    """

    def __init__(self, agreement: Agreement, policy: RetryPolicy) -> None:
        self.agreement, self.policy = agreement, policy
        self.may_leave = False

    def refuse_past_deadline(self, status_line: str) -> None:
        """Give up after the deadline; two pauses later, so that the collector speaks first."""
        remaining_seconds = compute_seconds_left(self.agreement)
        if remaining_seconds is not None and remaining_seconds < -2 * self.policy.retry_seconds:
            raise ProtocolError(
                "abandoned", f"the deadline has passed, the round is over; {status_line}"
            )

    def refuse_long_silence(self, url: str, first_failure: float) -> None:
        """Give up a collector that has been silent for long, if nothing depends on it.

        Parameters
        ----------
        url : str
            The collector's address.
        first_failure : float
            When it first did not answer, on the monotonic clock.
        """
        silent_seconds = time.monotonic() - first_failure
        if self.may_leave and silent_seconds > self.policy.max_silence_seconds:
            raise ProtocolError("lonely", f"the collector at {url} is gone") from None
