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

__all__ = ["FORCE", "FREE", "force_option", "refuse_replacement"]

FORCE = "discreet.force"

FREE = "free"
"""Kind of a file that, as the caller knows, may replace any file but a ledger."""

REPORT_MARK = '<meta name="generator" content="discreet compare">'
"""Mark that :mod:`discreet.report.page`, which is slow to import, writes into every report."""

HEAD_BYTES = 1 << 16
"""Bytes at the beginning of a file in which its kind is looked for."""


def _remember_force(context: click.Context, _: click.Parameter, value: bool) -> None:
    if value:
        context.find_root().meta[FORCE] = True


force_option = click.Option(
    ["--force"],
    is_flag=True,
    expose_value=False,
    callback=_remember_force,
    help="Replace files that exist, also what was paid for; never a ledger.",
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
            "command replaces, also not with --force; choose another name"
        )
    context = click.get_current_context(silent=True)
    forced = context is not None and bool(context.find_root().meta.get(FORCE))
    same = draft is not None and filecmp.cmp(draft, path, shallow=False)
    free = bool(kind) and FREE_TO_REPLACE[kind](Path(path))
    less = free and kind == "tally" and draft is not None and not _counts_all(draft, path)
    if forced or same or (free and not less):
        return
    if less:
        raise FormatError(
            f"{path}: exists already, and may count reports that the new tally does not; choose "
            "another name, or replace it with --force"
        )
    paid = "" if not (epsilon := _paid_epsilon(path)) else f" and was paid for (epsilon {epsilon})"
    raise FormatError(
        f"{path}: exists already{paid}; choose another name, or replace it with --force"
    )


def _is_ledger(path: str | Path) -> bool:
    """Return whether a file is a ledger, also a damaged one; the whole file is searched."""
    mark, overlap = re.compile(rb'"format"\s*:\s*"discreet/ledger"'), b""
    try:
        with open(path, "rb") as file:
            while part := file.read(1 << 20):
                if mark.search(overlap + part):
                    return True
                overlap = part[-64:]
    except OSError:
        return False
    return _reads_as_ledger(path)


def _reads_as_ledger(path: str | Path) -> bool:
    """Return whether a file parses as a ledger: another program may escape characters."""
    from discreet.documents import LARGEST, parse_json

    if not _head(path).lstrip().startswith("{") or os.path.getsize(path) > LARGEST:
        return False
    try:
        return bool(parse_json(Path(path).read_bytes()).get("format") == "discreet/ledger")
    except (OSError, ValueError, RecursionError):
        return False


def _head(path: str | Path) -> str:
    with open(path, "rb") as file:
        return file.read(HEAD_BYTES).decode("utf-8", errors="replace")


def _format_of(path: str | Path) -> str:
    """Read the format that a document states, such as ``"tally"``; empty if it states none."""
    stated = re.match(r'\s*\{\s*"format"\s*:\s*"discreet/([a-z-]+)"', _head(path))
    return "" if stated is None else stated.group(1)


def _stated_epsilon(path: str | Path) -> float:
    """Read the epsilon that a model or statistics file states; NaN if it cannot be read."""
    from discreet.documents import parse_json

    try:
        epsilon = parse_json(Path(path).read_bytes())["guarantee"]["epsilon"]
        return float(epsilon)
    except (OSError, ValueError, LookupError, TypeError, RecursionError):
        return math.nan


def _paid_epsilon(path: str | Path) -> str:
    from discreet.privacy import rounded_up

    if _format_of(path) not in ("model", "statistics"):
        return ""
    epsilon = _stated_epsilon(path)
    return rounded_up(epsilon) if math.isfinite(epsilon) else ""


def _is_unpaid(document: str) -> Callable[[Path], bool]:
    def check(path: Path) -> bool:
        return _format_of(path) == document and _stated_epsilon(path) == math.inf

    return check


def _is_tally(path: Path) -> bool:
    return _format_of(path) == "tally"


def _counts_all(new: Path, old: str | Path) -> bool:
    """Return whether a tally counts all reports of another, judged by the ids in both files."""
    from discreet.documents import parse_json

    try:
        tally, earlier = (parse_json(Path(path).read_bytes()) for path in (new, old))
        if any(tally[name] != earlier[name] for name in ("version", "collection")):
            return False
        if all(tally[name] == earlier[name] for name in ("counted", "sums", "seen", "sample")):
            return True
        known = {*tally["seen"], *tally["sample"]}
        wanted = {*earlier["seen"], *earlier["sample"]}
        if sum(tally["counted"]) > len(known):  # only the smallest ids are kept
            wanted = {report_id for report_id in wanted if report_id <= max(known, default="")}
        questions = zip(tally["counted"], earlier["counted"], strict=True)
        fewer = any(count < before for count, before in questions)
        marks = earlier["seen"].items()
        altered = any(tally["seen"].get(report_id, mark) != mark for report_id, mark in marks)
        return bool(wanted) and wanted <= known and not fewer and not altered
    except (OSError, ValueError, LookupError, TypeError, AttributeError, RecursionError):
        return False


def _is_report(path: Path) -> bool:
    return REPORT_MARK in _head(path)


def _is_predictions(path: Path) -> bool:
    """Return whether all columns of a file are those of predictions."""
    names = _column_names(path)
    return names[:1] == ["prediction"] and all(
        name == "steady" or re.fullmatch(r"P\(.*\)", name) for name in names[1:]
    )


def _column_names(path: Path) -> list[str]:
    head = _head(path)
    if not head.startswith("PAR1"):
        return next(csv.reader(head.splitlines()), [])
    return list(_parquet_schema(path).names)


def _parquet_schema(path: Path) -> Any:
    import pyarrow as pa
    import pyarrow.parquet

    try:
        return pyarrow.parquet.read_schema(path)
    except (pa.ArrowException, OSError):
        return pa.schema([])


def _is_synthetic(path: Path) -> bool:
    """Return whether a Parquet file is marked as synthetic; CSV has no mark, may be real data."""
    if not _head(path).startswith("PAR1"):
        return False
    return b"discreet.promise" in (_parquet_schema(path).metadata or {})


FREE_TO_REPLACE: dict[str, Callable[[Path], bool]] = {
    "model": _is_unpaid("model"),
    "statistics": _is_unpaid("statistics"),
    "tally": _is_tally,
    "predictions": _is_predictions,
    "synthetic": _is_synthetic,
    "report": _is_report,
    FREE: lambda path: True,
}
"""By kind of the new file, whether an existing file may be replaced without ``--force``."""
