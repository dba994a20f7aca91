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
from discreet.collection.report import LARGEST, Report
from discreet.errors import DiscreetError, FormatError

__all__ = ["SheetCsv", "lines_of", "reports_in"]

ID, SIMULATED, DOCUMENT = "sheet_id", "simulated_id", "questionnaire"
ANSWER = re.compile(r"(\d{1,9})(?:: (.*))?", re.ASCII)


def lines_of(path: str | Path) -> Iterator[bytes]:
    """Read the non-empty lines of a file; lines too long for a report are truncated."""
    try:
        with Path(path).open("rb") as stream:
            while line := stream.readline(LARGEST + 1):
                rest = line
                while len(rest) > LARGEST and not rest.endswith(b"\n"):
                    rest = stream.readline(LARGEST + 1)
                if line.strip():
                    yield line
    except OSError as error:
        raise FormatError(f"{path}: cannot be read: {error.strerror}") from None


def reports_in(collection: Collection, path: str | Path) -> Iterator[Report | None]:
    """Read the reports of a JSON or CSV file (by name); None for a line that is not a report."""
    if Path(path).suffix.lower() == ".csv":
        yield from _sheets(collection, path)
        return
    for line in lines_of(path):
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
        channel = _channel(collection)
        self.digest, self.labels = collection.digest, channel.labels
        self._file = Path(path).open("w", encoding="utf-8", newline="")  # noqa: SIM115 - closed in exit
        self._writer = csv.writer(self._file, lineterminator="\n")
        self._writer.writerow([SIMULATED if simulated else ID, DOCUMENT, *channel.names])

    def write(self, question: int, ids: Bytes, values: Integers) -> None:
        """Append randomized sheets, one row per person, with 16 random bytes each."""
        for identity, row in zip(ids, values.tolist(), strict=True):
            words = [_word(labels, cell) for labels, cell in zip(self.labels, row, strict=True)]
            self._writer.writerow([identity.tobytes().hex(), self.digest, *words])

    def __enter__(self) -> SheetCsv:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()


def _word(labels: Sequence[str], cell: int) -> str:
    label = labels[cell]
    # one sheet is one line, so that no row can swallow the next ones
    return str(cell) if len(label.splitlines()) != 1 else f"{cell}: {label}"


def _channel(collection: Collection) -> Any:
    channel = collection.questions[0]
    if channel.size is not None:
        raise FormatError(f"the reports of a {collection.kind} are not written as CSV; use Parquet")
    return channel


def _sheets(collection: Collection, path: str | Path) -> Iterator[Report | None]:
    channel, lines = _channel(collection), lines_of(path)
    header = _fields(next(lines, b"")) or []
    lacking = [name for name in (DOCUMENT, *channel.names) if name not in header]
    if lacking or len(set(header)) < len(header) or not {ID, SIMULATED} & set(header):
        what = f"the column {lacking[0]}" if lacking else f"the column {ID}, or has one twice"
        raise FormatError(
            f"{path}: lacks {what}; a file of sheets has {ID}, {DOCUMENT} and one column for each "
            "question, as discreet survey randomize writes it"
        )
    identity = ID if ID in header else SIMULATED
    for line in lines:
        fields = _fields(line)
        if fields is None or len(fields) != len(header):
            yield None
            continue
        row = dict(zip(header, fields, strict=True))
        pairs = zip(channel.names, channel.labels, strict=True)
        cells = [_cell(labels, row[name]) for name, labels in pairs]
        try:
            whole = tuple(cell for cell in cells if cell is not None)
            made = Report(row[DOCUMENT], row[identity], 0, whole, identity == SIMULATED)
            yield made if None not in cells else None
        except DiscreetError:
            yield None


def _fields(line: bytes) -> list[str] | None:
    text = line.decode("utf-8-sig", errors="replace").rstrip("\r\n")
    try:
        return next(csv.reader([text], strict=True), None)
    except csv.Error:  # a field beyond its limit, or a quote that does not end
        return None


def _cell(labels: Sequence[str], text: str) -> int | None:
    """Parse the number of an answer; None if its label is not that of the questionnaire.

    A number beyond the answers is kept: the tally refuses it, and says why.
    """
    found = ANSWER.fullmatch(text)
    if found is None:
        return None
    cell, label = int(found[1]), found[2]
    if label is not None and cell < len(labels) and label != labels[cell]:
        return None
    return cell
