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
"""Kind of what the caller knows to cost nothing, whatever is there."""

REPORT_MARK = '<meta name="generator" content="discreet compare">'
"""What :mod:`discreet.report.page`, which is heavy to import, writes into every report."""

HEAD_BYTES = 1 << 16
"""At the begin of a file, where its kind is looked for."""


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
        Where something is to be written.
    kind : str
        What is to be written: a key of ``FREE_TO_REPLACE``, or empty for everything else.
    draft : path, optional
        What is to be written, where it is known: the same content replaces nothing.
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
    """Whether a file is a ledger, also a damaged one; looked for in all of it."""
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
    """Whether JSON says so in other characters: another program may escape some."""
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
    """``"tally"`` of a document that says so; empty of everything else."""
    stated = re.match(r'\s*\{\s*"format"\s*:\s*"discreet/([a-z-]+)"', _head(path))
    return "" if stated is None else stated.group(1)


def _stated_epsilon(path: str | Path) -> float:
    """The epsilon that a model or statistics state; NaN where that cannot be read."""
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
    """Whether a tally counts all reports of another, as far as the ids in both files say."""
    from discreet.documents import parse_json

    try:
        tally, earlier = (parse_json(Path(path).read_bytes()) for path in (new, old))
        if any(tally[name] != earlier[name] for name in ("version", "collection")):
            return False
        if all(tally[name] == earlier[name] for name in ("counted", "sums", "seen", "sample")):
            return True
        known = {*tally["seen"], *tally["sample"]}
        wanted = {*earlier["seen"], *earlier["sample"]}
        if sum(tally["counted"]) > len(known):  # of the ids, the smallest alone are known
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
    """Whether all columns are those of predictions."""
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
    """Whether records say that they were drawn: a CSV file cannot, and may be somebody's table."""
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
"""What may be replaced by one of its kind, and how an existing one is known."""
