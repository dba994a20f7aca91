"""When a command may replace a file that exists: the rule of all commands that write.

A file is replaced with ``--force``; without it, only where the new one is of the same kind and the
old one costs nothing to make again; of tallies, whose reports may be gone, where the new one counts
all that the old one does, which is known when it was made. What a finite epsilon was paid for needs
``--force``. A ledger is never replaced.
"""

from __future__ import annotations

import csv
import filecmp
import math
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from discreet.errors import FormatError

__all__ = ["FORCE_KEY", "FREE", "force_option", "refuse_replacement"]

FORCE_KEY = "discreet.force"
"""Key of ``--force`` in the settings that all commands of a run share."""

FREE = "free"
"""Kind of a file that, as the caller knows, may replace any file but a ledger."""

REPORT_MARK = '<meta name="generator" content="discreet compare">'
"""Mark that :mod:`discreet.compare.page`, which is slow to import, writes into every report."""
CERTIFICATE_MARK = '<meta name="generator" content="discreet certificate">'
"""Mark of every certificate, which costs nothing to write again."""

HEAD_BYTES = 1 << 16
"""Bytes at the beginning of a file in which its kind is looked for."""


force_option = click.Option(
    ["--force"],
    is_flag=True,
    help="Replace existing files, even results that cost privacy budget; never a ledger.",
)


def refuse_replacement(path: str | Path, kind: str = "", draft: Path | None = None) -> None:
    """Refuse to replace a file, unless the rule allows it.

    Parameters
    ----------
    path : path
        The file to write.
    kind : str
        Kind of the new file: a key of ``FREE_TO_REPLACE``, or empty for other files.
    draft : path, optional
        The new file, where it exists already: the same content is always accepted.
    """
    if not os.path.isfile(path):
        return
    if _is_ledger(path) or (str(path).endswith(".lock") and _is_ledger(str(path)[:-5])):
        raise FormatError(
            f"{path}: is a ledger of what was spent on people, or the lock of one, which no "
            "command replaces, not even with --force; choose another name"
        )
    context = click.get_current_context(silent=True)
    is_forced = context is not None and bool(context.meta.get(FORCE_KEY))
    is_same_content = draft is not None and filecmp.cmp(draft, path, shallow=False)
    is_free = bool(kind) and FREE_TO_REPLACE[kind](Path(path))
    loses_reports = (
        is_free and kind == "tally" and draft is not None and not _has_all_reports(draft, path)
    )
    if is_forced or is_same_content or (is_free and not loses_reports):
        return
    if loses_reports:
        raise FormatError(
            f"{path}: exists already, and may count reports that the new tally does not; choose "
            "another name, or replace it with --force"
        )
    paid_note = (
        ""
        if not (paid_epsilon := _format_paid_epsilon(path))
        else f" and cost privacy budget (epsilon {paid_epsilon})"
    )
    raise FormatError(
        f"{path}: exists already{paid_note}; choose another name, or replace it with --force"
    )


def _is_ledger(path: str | Path) -> bool:
    """Return whether a file is a ledger, also a damaged one; the whole file is searched."""
    ledger_pattern, overlap = re.compile(rb'"format"\s*:\s*"discreet/ledger"'), b""
    try:
        with open(path, "rb") as file:
            while chunk := file.read(1 << 20):
                if ledger_pattern.search(overlap + chunk):
                    return True
                overlap = chunk[-64:]
    except OSError:
        return False
    return _is_json_ledger(path)


def _is_json_ledger(path: str | Path) -> bool:
    """Return whether a file parses as a ledger: another program may escape characters."""
    from discreet.files.documents import MAX_DOCUMENT_CHARS, parse_json

    if not _read_head(path).lstrip().startswith("{") or os.path.getsize(path) > MAX_DOCUMENT_CHARS:
        return False
    try:
        return bool(parse_json(Path(path).read_bytes()).get("format") == "discreet/ledger")
    except (OSError, ValueError, RecursionError):
        return False


def _read_head(path: str | Path) -> str:
    with open(path, "rb") as file:
        return file.read(HEAD_BYTES).decode("utf-8", errors="replace")


def _read_format(path: str | Path) -> str:
    """Read the format that a document states, such as ``"tally"``; empty if it states none."""
    format_match = re.match(r'\s*\{\s*"format"\s*:\s*"discreet/([a-z-]+)"', _read_head(path))
    return "" if format_match is None else format_match.group(1)


def _read_stated_epsilon(path: str | Path) -> float:
    """Read the epsilon that a model or statistics file states; NaN if it cannot be read."""
    from discreet.files.documents import parse_json

    try:
        epsilon = parse_json(Path(path).read_bytes())["guarantee"]["epsilon"]
        return float(epsilon)
    except (OSError, ValueError, LookupError, TypeError, RecursionError):
        return math.nan


def _format_paid_epsilon(path: str | Path) -> str:
    from discreet.privacy.guarantee import format_rounded_up

    if _read_format(path) not in ("model", "statistics"):
        return ""
    stated_epsilon = _read_stated_epsilon(path)
    return format_rounded_up(stated_epsilon) if math.isfinite(stated_epsilon) else ""


def _make_unpaid_check(document_format: str) -> Callable[[Path], bool]:
    def is_unpaid(path: Path) -> bool:
        return _read_format(path) == document_format and _read_stated_epsilon(path) == math.inf

    return is_unpaid


def _has_all_reports(new_path: Path, old_path: str | Path) -> bool:
    """Return whether a tally counts all reports of another, judged by the ids in both files."""
    from discreet.files.documents import parse_json

    try:
        new_tally, old_tally = (
            parse_json(Path(path).read_bytes()) for path in (new_path, old_path)
        )
        if any(
            new_tally[field_name] != old_tally[field_name]
            for field_name in ("version", "collection")
        ):
            return False
        if all(
            new_tally[field_name] == old_tally[field_name]
            for field_name in ("counted", "sums", "seen", "sample")
        ):
            return True
        new_ids = {*new_tally["seen"], *new_tally["sample"]}
        old_ids = {*old_tally["seen"], *old_tally["sample"]}
        if sum(new_tally["counted"]) > len(new_ids):  # only the smallest ids are kept
            old_ids = {report_id for report_id in old_ids if report_id <= max(new_ids, default="")}
        question_counts = zip(new_tally["counted"], old_tally["counted"], strict=True)
        has_fewer = any(new_count < old_count for new_count, old_count in question_counts)
        old_marks = old_tally["seen"].items()
        has_altered = any(
            new_tally["seen"].get(report_id, mark) != mark for report_id, mark in old_marks
        )
        return bool(old_ids) and old_ids <= new_ids and not has_fewer and not has_altered
    except (OSError, ValueError, LookupError, TypeError, AttributeError, RecursionError):
        return False


def _is_predictions(path: Path) -> bool:
    """Return whether all columns of a file are those of predictions."""
    file_head = _read_head(path)
    if file_head.startswith("PAR1"):
        column_names = list(_read_parquet_schema(path).names)
    else:
        column_names = next(csv.reader(file_head.splitlines()), [])
    return column_names[:1] == ["prediction"] and all(
        column_name == "steady" or re.fullmatch(r"P\(.*\)", column_name)
        for column_name in column_names[1:]
    )


def _read_parquet_schema(path: Path) -> Any:
    import pyarrow as pa
    import pyarrow.parquet

    try:
        return pyarrow.parquet.read_schema(path)
    except (pa.ArrowException, OSError):
        return pa.schema([])


def _is_synthetic(path: Path) -> bool:
    """Return whether a Parquet file is marked as synthetic; CSV has no mark, may be real data."""
    if not _read_head(path).startswith("PAR1"):
        return False
    return b"discreet.promise" in (_read_parquet_schema(path).metadata or {})


FREE_TO_REPLACE: dict[str, Callable[[Path], bool]] = {
    "model": _make_unpaid_check("model"),
    "statistics": _make_unpaid_check("statistics"),
    "tally": lambda path: _read_format(path) == "tally",
    "predictions": _is_predictions,
    "synthetic": _is_synthetic,
    "report": lambda path: REPORT_MARK in _read_head(path),
    "certificate": lambda path: CERTIFICATE_MARK in _read_head(path),
    FREE: lambda path: True,
}
"""By kind of the new file, whether an existing file may be replaced without ``--force``."""
