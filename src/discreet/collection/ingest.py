"""Take in what people sent: find files of reports, count them into a tally, and describe it."""

from __future__ import annotations

import glob
import os
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from itertools import chain, islice
from typing import Any

from discreet.collection.inversion import load_inversion
from discreet.collection.protocol import Collection
from discreet.collection.report import Report
from discreet.collection.tally import Tally
from discreet.collection.text_reports import read_text_reports
from discreet.errors import FormatError
from discreet.files.atomic_writing import error_context

__all__ = ["count_deliveries", "list_warnings", "read_deliveries", "read_tally", "summarize_tally"]

TEXT_SUFFIXES = (".jsonl", ".ndjson", ".json", ".csv")
REPORTS_PER_PIECE = 10_000
"""Reports from text files that are held in memory at once."""
NOISY_CLASS_ERROR = 0.1
"""Standard error of the class shares above which a tally is mostly noise; gives a warning."""


def read_deliveries(collection: Collection, sources: Iterable[str]) -> Iterator[Report | str]:
    """Read the reports of files one by one; an empty text for a line that is not a report."""
    from discreet.collection.parquet_reports import read_reports

    text_files, table_files = _find_files(sources)
    for text_file in text_files:
        for report in read_text_reports(collection, text_file):
            yield report or ""
    for table_file in table_files:
        yield from read_reports(table_file)


def count_deliveries(
    collection: Any,
    sources: Iterable[str],
    merged_paths: Iterable[str] = (),
    *,
    collection_path: str,
    progress: Callable[..., None],
) -> Tally[Any]:
    """Count the reports of files, and add the tallies of others.

    Text files are counted line by line, and all ids are kept; if there is a Parquet file among
    them, an engine counts them all.

    Parameters
    ----------
    collection : Plan or Questionnaire
    sources : iterable of str
        Text files or patterns of them, and Parquet files.
    merged_paths : iterable of str
        Tally files to add.
    collection_path : str
        The file of the collection, for errors.
    progress : callable
        Called as ``progress(reports done)`` or ``progress(reports done, reports in all)``.

    Raises
    ------
    FormatError
        If no report can be counted: the files belong to another collection.
    """
    text_files, table_files = _find_files(sources)
    if table_files:
        tally = _count_in_engine(collection, text_files, table_files, progress)
    else:
        tally, reports_done = Tally(collection), 0
        for valid_reports, misshapen_count in _iter_pieces(collection, text_files):
            tally.add_all(valid_reports)
            if misshapen_count:
                tally.rejected["misshapen"] += misshapen_count
            reports_done += len(valid_reports) + misshapen_count
            progress(reports_done)
    for merged_path in merged_paths:
        with error_context(merged_path):
            tally = tally + read_tally(collection.kind, merged_path)
    rejected_count = tally.rejected.total()
    if rejected_count and not tally.reports:
        fault_list = ", ".join(
            f"{fault_count:,} {fault.replace('misshapen', 'invalid (misshapen)')}"
            for fault, fault_count in sorted(tally.rejected.items())
        )
        noun = collection.noun
        raise FormatError(
            f"{collection_path}: none of {rejected_count:,} {noun}s can be counted ({fault_list}); "
            f"give the {collection.kind} they were made with, and files of {noun}s"
        )
    return tally


def _find_files(sources: Iterable[str]) -> tuple[list[str], list[str]]:
    """Find the text files of sources, and list the other sources: Parquet files."""
    text_files, table_files = list[str](), list[str]()
    for source in sources:
        if not source.lower().endswith(TEXT_SUFFIXES):
            table_files.append(source)
            continue
        matching_files = [source] if os.path.isfile(source) else glob.glob(source, recursive=True)
        if not matching_files:
            raise FormatError(f"{source}: there is no such file")
        text_files += sorted(matching_files)
    return text_files, table_files


def _iter_pieces(
    collection: Collection, text_files: Iterable[str]
) -> Iterator[tuple[list[Report], int]]:
    """Iterate over text files in pieces: reports, and how many lines between them were none."""
    lines = chain.from_iterable(
        read_text_reports(collection, text_file) for text_file in text_files
    )
    while piece := list(islice(lines, REPORTS_PER_PIECE)):
        valid_reports = [report for report in piece if report is not None]
        yield valid_reports, len(piece) - len(valid_reports)


def _count_in_engine(
    collection: Any, text_files: list[str], table_files: list[str], progress: Callable[..., None]
) -> Tally[Any]:
    """Count Parquet files, and text files after conversion, as one delivery."""
    from discreet.collection.parquet_reports import ReportFile
    from discreet.collection.parquet_tally import tally_parquet

    misshapen_total = 0
    with ExitStack() as stack:
        if text_files:
            folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="discreet-"))
            table_files = [*table_files, os.path.join(folder, "lines.parquet")]
            with ReportFile(table_files[-1], collection) as report_file:
                for valid_reports, misshapen_count in _iter_pieces(collection, text_files):
                    report_file.add_reports(valid_reports)
                    misshapen_total += misshapen_count
        parquet_source: Any = table_files if len(table_files) > 1 else table_files[0]
        tally: Tally[Any] = tally_parquet(collection, parquet_source, progress=progress)
    if misshapen_total:
        tally.rejected["misshapen"] += misshapen_total
    return tally


def read_tally(kind: str, path: str) -> Tally[Any]:
    """Read the tally of a plan or of a questionnaire, as the kind says."""
    with error_context(path):
        tally = Tally.read(path)
        if tally.collection.kind != kind:
            raise FormatError(
                f"this is the tally of a {tally.collection.kind}, not of a {kind}; use the "
                f"commands of discreet {tally.collection.command_group}"
            )
        return tally


def summarize_tally(tally: Tally[Any]) -> dict[str, Any]:
    """Summarize a tally: what was counted, refused and shuffled together."""
    distinct_counts = {}
    if tally.collection.questions[0].size is None:
        distinct_counts = {"different": len(tally.get_distinct_answers()[0])}
    return {
        tally.collection.kind: tally.collection.digest,
        "counted": tally.reports,
        "people": tally.people,
        **distinct_counts,
        "repeated": tally.repeated,
        "rejected": dict(tally.rejected),
        "by_question": tally.counted.tolist(),
        "smallest_batch": tally.smallest_shuffle_size,
        "simulated": tally.simulated,
    }


def list_warnings(
    tally: Tally[Any], expected_people: int | None = None, *, merged: bool = False
) -> list[str]:
    """List what the owner of a tally should know before they estimate from it.

    Parameters
    ----------
    tally : Tally
    expected_people : int, optional
        How many people were planned for.
    merged : bool, default False
        Whether other tallies were added to it.
    """
    collection, people, warnings = tally.collection, tally.people, list[str]()
    noun, shuffle = collection.noun, collection.shuffled
    if merged and tally.reports > len(tally.seen):
        warnings.append(
            f"tallies of Parquet files keep a sample of their ids, so only many {noun}s in two of "
            "them would have been noticed"
        )
    if not people:
        warnings.append(
            f"there are no {noun}s in these files; nothing can be estimated from this tally"
        )
        return warnings
    planned_people = expected_people or (0 if shuffle is None else shuffle.respondents)
    if 2 * people < planned_people:
        warnings.append(
            f"{people:,} people sent a {noun}, {planned_people:,} were planned for; wait for more, "
            "or expect wide intervals"
        )
    class_error = load_inversion(collection).compute_class_error(collection, people)
    if class_error > NOISY_CLASS_ERROR:
        people_text = f"is only 1 {noun}" if people == 1 else f"are only {people:,} {noun}s"
        warnings.append(
            f"there {people_text}: shares of the classes have a standard error of up to "
            f"{100 * class_error:.0f} percentage points; 'discreet {collection.command_group} "
            "size' says how many people it takes"
        )
    return warnings
