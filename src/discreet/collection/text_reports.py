"""Text files of reports: JSON, one per line, and readable CSV files of sheets.

A CSV file of sheets has the columns ``sheet_id`` (``simulated_id`` where a seed drew them),
``questionnaire`` (its digest), and one per question. An answer is written as its number and its
label, ``"2: south"``; the number decides, because labels need not differ, and a label that does
not belong to the number makes the row invalid.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from discreet.arrays import Bytes, Integers
from discreet.collection.protocol import Collection
from discreet.collection.report import MAX_REPORT_CHARACTERS, Report
from discreet.errors import DiscreetError, FormatError

__all__ = ["SheetCsv", "read_lines", "read_text_reports"]

ID_COLUMN = "sheet_id"
"""The column of ids (docs/formats.md)."""
SIMULATED_ID_COLUMN = "simulated_id"
"""The same column where the sheets were simulated."""
QUESTIONNAIRE_COLUMN = "questionnaire"
"""The column of the questionnaire's digest."""
ANSWER_PATTERN = re.compile(r"(\d{1,9})(?:: (.*))?", re.ASCII)


def read_lines(path: str | Path) -> Iterator[bytes]:
    """Read the non-empty lines of a file; lines too long for a report are truncated."""
    try:
        with Path(path).open("rb") as stream:
            while line := stream.readline(MAX_REPORT_CHARACTERS + 1):
                line_piece = line
                while len(line_piece) > MAX_REPORT_CHARACTERS and not line_piece.endswith(b"\n"):
                    line_piece = stream.readline(MAX_REPORT_CHARACTERS + 1)
                if line.strip():
                    yield line
    except OSError as error:
        raise FormatError(f"{path}: cannot be read: {error.strerror}") from None


def read_text_reports(collection: Collection, path: str | Path) -> Iterator[Report | None]:
    """Read the reports of a JSON or CSV file (by name); None for a line that is not a report."""
    if Path(path).suffix.lower() == ".csv":
        yield from _read_sheets(collection, path)
        return
    for line in read_lines(path):
        try:
            yield Report.from_json(line)
        except DiscreetError:
            yield None


class SheetCsv:
    """A CSV file that sheets are appended to; a context manager.

    Parameters
    ----------
    path : path
    collection : Questionnaire
    simulated : bool, default False
    """

    def __init__(self, path: str | Path, collection: Collection, simulated: bool = False) -> None:
        channel = _get_sheet_channel(collection)
        self.digest, self.labels = collection.digest, channel.labels
        self._file = Path(path).open("w", encoding="utf-8", newline="")  # noqa: SIM115 - closed in exit
        self._writer = csv.writer(self._file, lineterminator="\n")
        self._writer.writerow(
            [SIMULATED_ID_COLUMN if simulated else ID_COLUMN, QUESTIONNAIRE_COLUMN, *channel.names]
        )

    def write(self, question: int, ids: Bytes, values: Integers) -> None:
        """Append randomized sheets, one row per person, with 16 random bytes each."""
        for id_bytes, sheet_row in zip(ids, values.tolist(), strict=True):
            answer_texts = [
                _format_answer(labels, answer_number)
                for labels, answer_number in zip(self.labels, sheet_row, strict=True)
            ]
            self._writer.writerow([id_bytes.tobytes().hex(), self.digest, *answer_texts])

    def __enter__(self) -> SheetCsv:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()


def _format_answer(labels: Sequence[str], answer_number: int) -> str:
    label = labels[answer_number]
    # one sheet is one line, so that no row can swallow the next ones
    return str(answer_number) if len(label.splitlines()) != 1 else f"{answer_number}: {label}"


def _get_sheet_channel(collection: Collection) -> Any:
    channel = collection.questions[0]
    if channel.size is not None:
        raise FormatError(f"the reports of a {collection.kind} are not written as CSV; use Parquet")
    return channel


def _read_sheets(collection: Collection, path: str | Path) -> Iterator[Report | None]:
    channel, lines = _get_sheet_channel(collection), read_lines(path)
    header = _parse_fields(next(lines, b"")) or []
    missing_columns = [
        name for name in (QUESTIONNAIRE_COLUMN, *channel.names) if name not in header
    ]
    if (
        missing_columns
        or len(set(header)) < len(header)
        or not {ID_COLUMN, SIMULATED_ID_COLUMN} & set(header)
    ):
        missing_text = (
            f"the column {missing_columns[0]}"
            if missing_columns
            else f"the column {ID_COLUMN}, or has one twice"
        )
        raise FormatError(
            f"{path}: lacks {missing_text}; a file of sheets has {ID_COLUMN}, "
            f"{QUESTIONNAIRE_COLUMN} and one column for each "
            "question, as discreet survey randomize writes it"
        )
    id_column = ID_COLUMN if ID_COLUMN in header else SIMULATED_ID_COLUMN
    for line in lines:
        fields = _parse_fields(line)
        if fields is None or len(fields) != len(header):
            yield None
            continue
        text_by_column = dict(zip(header, fields, strict=True))
        named_labels = zip(channel.names, channel.labels, strict=True)
        answer_numbers = [
            _parse_answer(labels, text_by_column[name]) for name, labels in named_labels
        ]
        try:
            valid_answers = tuple(
                answer_number for answer_number in answer_numbers if answer_number is not None
            )
            report = Report(
                text_by_column[QUESTIONNAIRE_COLUMN],
                text_by_column[id_column],
                0,
                valid_answers,
                id_column == SIMULATED_ID_COLUMN,
            )
            yield report if None not in answer_numbers else None
        except DiscreetError:
            yield None


def _parse_fields(line: bytes) -> list[str] | None:
    line_text = line.decode("utf-8-sig", errors="replace").rstrip("\r\n")
    try:
        return next(csv.reader([line_text], strict=True), None)
    except csv.Error:  # a field beyond its limit, or a quote that does not end
        return None


def _parse_answer(labels: Sequence[str], text: str) -> int | None:
    """Parse the number of an answer; None if its label is not that of the questionnaire.

    A number beyond the answers is kept: the tally refuses it, and says why.
    """
    answer_match = ANSWER_PATTERN.fullmatch(text)
    if answer_match is None:
        return None
    answer_number, label = int(answer_match[1]), answer_match[2]
    if label is not None and answer_number < len(labels) and label != labels[answer_number]:
        return None
    return answer_number
