"""Why a message is not accepted: every refusal has a short reason and a sentence."""

from __future__ import annotations

from typing import Literal

from discreet.errors import DiscreetError

__all__ = ["ProtocolError", "Reason"]

Reason = Literal[
    "malformed",
    "truncated",
    "damaged",
    "oversized",
    "unknown-sender",
    "wrong-signature",
    "wrong-manifest",
    "wrong-round",
    "wrong-schema",
    "wrong-recipient",
    "wrong-kind",
    "wrong-length",
    "wrong-rows",
    "replayed",
    "duplicate",
    "out-of-order",
    "out-of-range",
    "not-invertible",
    "not-agreed",
    "late",
    "abandoned",
    "lonely",
    "unknown-path",
    "slow",
    "storage",
]


class ProtocolError(DiscreetError, ValueError):
    """A message or a step that a round does not allow; nothing that was accepted is lost.

    Parameters
    ----------
    reason : str
        One short word for programs and logs.
    sentence : str
        What is wrong, for people.
    """

    def __init__(self, reason: Reason, sentence: str) -> None:
        super().__init__(f"{reason}: {sentence}")
        self.reason: Reason = reason
        self.sentence = sentence
