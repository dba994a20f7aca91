"""The report that a respondent's device sends: a small, strict, versioned document."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from typing import Any

from pydantic import ConfigDict

from discreet.errors import FormatError
from discreet.files.documents import (
    Body,
    compute_digest,
    dump_document,
    load_document,
    parse_document,
    parse_json,
)

__all__ = ["ALREADY_SHUFFLED", "Report", "derive_report_id"]

VERSION = 2
SHUFFLED_VERSION = 3
"""Version of a report with a batch mark; programs that do not support batches refuse it."""

ALREADY_SHUFFLED = "already shuffled"
"""The fault of a report with a batch mark, where respondents send reports themselves."""

MAX_REPORT_CHARACTERS = 1 << 24
"""Characters in a report; longer ones are refused unread."""

ID_PATTERN = re.compile(r"[0-9a-f]{32}")
DIGEST_PATTERN = re.compile(r"sha256:[0-9a-f]{64}")


@dataclass(frozen=True)
class Report:
    """One randomized answer; to a questionnaire it is a person's whole sheet.

    Parameters
    ----------
    collection : str
        Digest of the plan or questionnaire it answers.
    id : str
        128 bits in hexadecimal; a repeated delivery counts once. The id is the hash of a key that
        stays on the device (:func:`derive_report_id`): its holder may withdraw the report.
    question : int
        Number of the question; drawn without looking at the record. 0 in a questionnaire.
    value : tuple of int
        Output of the mechanism; in a questionnaire the number of the answer to each question.
    simulated : bool, default False
        Whether a seeded source made it: then it is not protected.
    batch : str, optional
        The batch mark, 32 hexadecimal digits: random, the same for all reports of one shuffle. A
        report without one was not shuffled.

    Examples
    --------
    >>> report = Report("sha256:0", derive_report_id(bytes(16)), 0, (3,))
    >>> Report.from_json(report.to_json()) == report
    True
    """

    collection: str
    id: str
    question: int
    value: tuple[int, ...]
    simulated: bool = False
    batch: str | None = None

    def __post_init__(self) -> None:
        if not ID_PATTERN.fullmatch(self.id):
            raise FormatError("the id of a report is 32 hexadecimal digits")
        if self.batch is not None and not ID_PATTERN.fullmatch(self.batch):
            raise FormatError("the batch mark of a report is 32 hexadecimal digits")

    def to_body(self) -> dict[str, Any]:
        """Plain values for a JSON document."""
        body = {**vars(self), "value": list(self.value)}
        if not self.simulated:
            del body["simulated"]
        if self.batch is None:
            del body["batch"]
        return body

    def to_json(self) -> str:
        """Write the report on one line: version 3 with a batch mark, version 2 without."""
        version = VERSION if self.batch is None else SHUFFLED_VERSION
        return dump_document("report", version, self.to_body(), indent=None)

    @classmethod
    def from_json(cls, text: str | bytes) -> Report:
        """Read a report; raises if it is damaged, too long or malformed."""
        if len(text) > MAX_REPORT_CHARACTERS:
            raise FormatError(
                f"a report of {len(text)} characters; at most {MAX_REPORT_CHARACTERS}"
            )
        if (canonical_report := _parse_canonical(text)) is not None:
            return canonical_report
        try:
            if parse_document(text, "report").get("version") == SHUFFLED_VERSION:
                shuffled_body = load_document(text, "report", SHUFFLED_VERSION, ShuffledReportBody)
                body = ReportBody(**shuffled_body.model_dump(exclude={"batch"}))
                batch_mark = shuffled_body.batch
            else:
                body, batch_mark = load_document(text, "report", VERSION, ReportBody), None
        except (RecursionError, UnicodeError):  # nested too deeply, or half of a character
            raise FormatError("this is not a report: nested too deeply, or not Unicode") from None
        integers = tuple(body.value)
        return cls(body.collection, body.id, body.question, integers, body.simulated, batch_mark)

    @property
    def fingerprint(self) -> str:
        """Short hash of the content, to tell a repeated delivery from a forged one."""
        content = f"{self.collection}|{self.question}|{self.value}"
        if self.batch is not None:
            content += f"|{self.batch}"
        return hashlib.sha256(content.encode()).hexdigest()[:32]


def derive_report_id(report_key: bytes) -> str:
    """Derive the id that commits to a key: the first 16 bytes of SHA-256("discreet/id" + key).

    Parameters
    ----------
    report_key : bytes
        16 random bytes that stay with the person; their holder can withdraw the report.
    """
    if len(report_key) != 16:
        raise FormatError(f"the key of a report has 16 bytes, this one {len(report_key)}")
    return hashlib.sha256(b"discreet/id" + report_key).hexdigest()[:32]


def _parse_canonical(text: str | bytes) -> Report | None:
    """Parse a report in canonical form without validation models; None if it is not canonical.

    The result is that of :func:`~discreet.files.documents.load_document`, which also raises all
    errors.
    """
    try:
        document = parse_json(text)
        fields = [document[name] for name in ("collection", "id", "question", "value")]
        seal_fields = (
            document["format"],
            document["version"],
            type(document["version"]),
            document["digest"],
        )
    except (ValueError, RecursionError, TypeError, KeyError):
        return None
    collection, report_id, question, value = fields
    field_types = (type(collection), type(report_id), type(question), type(value))
    if field_types != (str, str, int, list) or set(map(type, value)) - {int}:
        return None
    batch_mark, version, mark_text = document.get("batch"), VERSION, ""
    if batch_mark is not None:
        if type(batch_mark) is not str or not ID_PATTERN.fullmatch(batch_mark):
            return None
        version, mark_text = SHUFFLED_VERSION, f'"batch":"{batch_mark}",'
    if len(document) != (7 if batch_mark is None else 8):
        return None
    if not (DIGEST_PATTERN.fullmatch(collection) and ID_PATTERN.fullmatch(report_id)):
        return None
    integers_text = ",".join(map(str, value))
    sealed_text = (
        f'{{{mark_text}"collection":"{collection}","format":"discreet/report","id":"{report_id}",'
        f'"question":{question},"value":[{integers_text}],"version":{version}}}'
    )
    if seal_fields != ("discreet/report", version, int, compute_digest(sealed_text.encode())):
        return None
    return Report(collection, report_id, question, tuple(value), batch=batch_mark)


class ReportBody(Body):
    model_config = ConfigDict(strict=True)  # 1, not "1", 1.0 or true

    collection: str
    id: str
    question: int
    value: list[int]
    simulated: bool = False


class ShuffledReportBody(ReportBody):
    batch: str
