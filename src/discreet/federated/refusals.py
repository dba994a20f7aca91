"""Refusals of messages and steps: a reason for programs and a sentence for people."""

from __future__ import annotations

from typing import Literal

from discreet.errors import DiscreetError

__all__ = ["ProtocolError", "Reason", "escape_unprintable"]

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


def escape_unprintable(text: str, max_characters: int = 2000) -> str:
    r"""Escape untrusted text for one line of a terminal: control and bidi characters are spelt out.

    Parameters
    ----------
    text : str
    max_characters : int
        Characters that are kept.

    Examples
    --------
    >>> escape_unprintable("age\x1b[2J\nDigest: 12")
    'age\\x1b[2J\\nDigest: 12'
    """
    visible_text = text if len(text) <= max_characters else f"{text[:max_characters]} …"
    return "".join(
        character if character.isprintable() else character.encode("unicode_escape").decode()
        for character in visible_text
    )


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
