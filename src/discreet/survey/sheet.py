"""What leaves a respondent: one randomized answer to every question, and nothing more."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Any

from pydantic import ConfigDict

from discreet.documents import Body, dump, load
from discreet.errors import FormatError
from discreet.local.report import IDENTITY, LARGEST

__all__ = ["Sheet"]

VERSION = 1


@dataclass(frozen=True)
class Sheet:
    """One person's randomized answers.

    Parameters
    ----------
    questionnaire : str
        Digest of the questionnaire it answers.
    id : str
        128 random bits in hexadecimal; makes a repeated delivery count once.
    answers : tuple of int
        The number of the answer to each question, in the questionnaire's order.
    simulated : bool
        Whether a seeded source drew it: then it protects nobody, and says so.
    """

    questionnaire: str
    id: str
    answers: tuple[int, ...]
    simulated: bool = False

    def __post_init__(self) -> None:
        if not IDENTITY.fullmatch(self.id):
            raise FormatError("a sheet's id is 32 hexadecimal digits")

    def to_body(self) -> dict[str, Any]:
        """Plain values for a JSON document."""
        body = {**vars(self), "answers": list(self.answers)}
        if not self.simulated:
            del body["simulated"]
        return body

    def to_json(self) -> str:
        """Write the sheet on one line."""
        return dump("sheet", VERSION, self.to_body(), indent=None)

    @classmethod
    def from_json(cls, text: str | bytes) -> Sheet:
        """Read a sheet; what is damaged, too long or misshapen is refused."""
        if len(text) > LARGEST:
            raise FormatError(f"a sheet of {len(text)} characters; at most {LARGEST}")
        try:
            body = load(text, "sheet", VERSION, _SheetBody)
        except (RecursionError, UnicodeError):  # nested too deeply, or half of a character
            raise FormatError("this is not a sheet, and cannot even be written down") from None
        return cls(body.questionnaire, body.id, tuple(body.answers), body.simulated)

    @property
    def fingerprint(self) -> str:
        """Short hash of the content, to tell a repeated delivery from a forged one."""
        content = f"{self.questionnaire}|{self.answers}"
        return hashlib.sha256(content.encode()).hexdigest()[:32]


class _SheetBody(Body):
    model_config = ConfigDict(strict=True)  # 1, not "1", 1.0 or true

    questionnaire: str
    id: str
    answers: list[int]
    simulated: bool = False
