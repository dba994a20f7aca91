"""What leaves a respondent's device: small, strict, versioned, and nothing more."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from typing import Any

from pydantic import ConfigDict

from discreet.documents import Body, dump, load
from discreet.errors import FormatError

__all__ = ["Report"]

VERSION = 1

LARGEST = 1 << 24
"""Characters in a report; longer ones are refused unread."""

IDENTITY = re.compile(r"[0-9a-f]{32}")


@dataclass(frozen=True)
class Report:
    """One randomized answer.

    Parameters
    ----------
    plan : str
        Digest of the plan it answers.
    id : str
        128 random bits in hexadecimal; makes a repeated delivery count once.
    question : int
        Number of the question in the plan; drawn without looking at the record.
    value : tuple of int
        What the mechanism gave out.
    simulated : bool
        Whether a seeded source drew it: then it protects nobody, and says so.
    """

    plan: str
    id: str
    question: int
    value: tuple[int, ...]
    simulated: bool = False

    def __post_init__(self) -> None:
        if not IDENTITY.fullmatch(self.id):
            raise FormatError("a report's id is 32 hexadecimal digits")

    def to_body(self) -> dict[str, Any]:
        """Plain values for a JSON document."""
        body = {**vars(self), "value": list(self.value)}
        if not self.simulated:
            del body["simulated"]
        return body

    def to_json(self) -> str:
        """Write the report on one line."""
        return dump("report", VERSION, self.to_body(), indent=None)

    @classmethod
    def from_json(cls, text: str | bytes) -> Report:
        """Read a report; what is damaged, too long or misshapen is refused."""
        if len(text) > LARGEST:
            raise FormatError(f"a report of {len(text)} characters; at most {LARGEST}")
        try:
            body = load(text, "report", VERSION, _ReportBody)
        except (RecursionError, UnicodeError):  # nested too deeply, or half of a character
            raise FormatError("this is not a report, and cannot even be written down") from None
        return cls(body.plan, body.id, body.question, tuple(body.value), body.simulated)

    @property
    def fingerprint(self) -> str:
        """Short hash of the content, to tell a repeated delivery from a forged one."""
        content = f"{self.plan}|{self.question}|{self.value}"
        return hashlib.sha256(content.encode()).hexdigest()[:32]


class _ReportBody(Body):
    model_config = ConfigDict(strict=True)  # 1, not "1", 1.0 or true

    plan: str
    id: str
    question: int
    value: list[int]
    simulated: bool = False
