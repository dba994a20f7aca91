"""What ``discreet local`` and ``discreet survey`` share beyond a device: shuffle, tally, train.

Each function makes the command for one kind of collection; the groups give it its name.
"""

from __future__ import annotations

import glob
import os
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from inspect import cleandoc
from itertools import chain, islice
from typing import TYPE_CHECKING, Any

import click

from discreet.cli.collection import (
    CollectionWording,
    make_guarantee_body,
    read_collection,
    read_tally,
)
from discreet.cli.files import OUTPUT, make_output, open_replacement, write_file
from discreet.cli.output import (
    format_example,
    json_option,
    make_console,
    print_guarantee,
    print_json,
    print_note,
    print_warning,
    show_progress,
)
from discreet.errors import EstimationError, FormatError, error_context
from discreet.schema.schema import format_value

if TYPE_CHECKING:
    from discreet.collection.tally import Tally

__all__ = ["make_shuffle_command", "make_tally_command", "make_train_command"]

TEXT_SUFFIXES = (".jsonl", ".ndjson", ".json", ".csv")
REPORTS_PER_PIECE = 10_000
"""Reports from text files that are held in memory at once."""


def make_shuffle_command(wording: CollectionWording) -> click.Command:
    """Make ``local shuffle`` or ``survey shuffle``: the step of an anonymiser."""
    command_line = f"discreet {wording.command_group} shuffle {wording.document_file}"

    @click.command(
        "shuffle",
        epilog=format_example(
            f"{command_line} received.jsonl -o shuffled.jsonl",
            f"{command_line} 'received/*.jsonl' -o shuffled.parquet",
            f"{command_line} --close",
        ),
    )
    @click.argument("path", metavar=wording.metavar)
    @click.argument("files", nargs=-1, metavar=f"[{wording.noun.upper()}S]...")
    @click.option("-o", "--output", type=OUTPUT, help=".jsonl or .parquet to write.")
    @click.option(
        "--memory",
        metavar="FILE",
        help=f"Private file that remembers which {wording.noun}s were passed on; "
        f"{wording.metavar}.memory if left out.",
    )
    @click.option(
        "--close", is_flag=True, help="Erase that memory: the last shuffle of this collection."
    )
    @click.option(
        "--few", is_flag=True, help="Pass on fewer than the promise of the shuffle needs."
    )
    @json_option
    def command(
        path: str,
        files: tuple[str, ...],
        output: str | None,
        memory: str | None,
        close: bool,
        few: bool,
        as_json: bool,
    ) -> None:
        from discreet.collection.parquet_reports import ReportFile, read_reports
        from discreet.collection.report import ALREADY_SHUFFLED
        from discreet.collection.shuffle import shuffle_reports
        from discreet.collection.shuffle_memory import ShuffleMemory
        from discreet.randomness import as_random

        collection = read_collection(wording, path)
        # of the file itself, so that a link to it has no memory of its own
        shuffle_memory = ShuffleMemory(memory or f"{os.path.realpath(path)}.memory", collection)
        if close and not files and output is None:
            shuffle_memory.close()
            if as_json:
                print_json({"memory": str(shuffle_memory.path), "closed": True})
            else:
                print_note(
                    f"{shuffle_memory.path}: erased; this {wording.kind} is not shuffled any more"
                )
            return
        if not files or output is None:
            raise click.UsageError(f"Name the {wording.noun}s of one shuffle, and -o.")
        if not output.lower().endswith((".jsonl", ".parquet")):
            raise FormatError(f"{output}: write the shuffled {wording.noun}s as .jsonl or .parquet")
        text_files = [text_file for source in files for text_file in _find_text_files(source)]
        table_files = [source for source in files if not source.lower().endswith(TEXT_SUFFIXES)]
        received_reports = chain(
            (report or "" for report in _iter_reports(collection, text_files)),
            chain.from_iterable(read_reports(table_file) for table_file in table_files),
        )
        with show_progress("shuffling", f"{wording.noun}s") as report_progress:
            watched_reports = (
                report_progress(reports_done) or report
                for reports_done, report in enumerate(received_reports, 1)
            )
            shuffled_reports, shuffled_tally = shuffle_reports(
                collection, watched_reports, as_random(None), allow_fewer=few
            )
        with (
            open_replacement(output) as draft,
            shuffle_memory.check_and_remember(shuffled_tally.seen),
        ):
            if output.lower().endswith(".jsonl"):
                draft.write_bytes("".join(report.to_json() for report in shuffled_reports).encode())
            else:
                with ReportFile(draft, collection) as report_file:
                    report_file.add_reports(shuffled_reports)
        if close:
            shuffle_memory.close()
        if as_json:
            print_json(
                {
                    "output": output,
                    "passed_on": len(shuffled_reports),
                    **_make_summary(shuffled_tally),
                }
            )
            return
        click.echo(
            f"passed on  {wording.format_count(len(shuffled_reports))} under new ids, in random "
            "order"
        )
        shuffled_before = shuffled_tally.rejected[ALREADY_SHUFFLED]
        invalid_count = shuffled_tally.rejected.total() - shuffled_before
        click.echo(
            f"left out   {shuffled_tally.repeated:,} repeated, {invalid_count:,} invalid, "
            f"{shuffled_before:,} shuffled before"
        )

    command.help = cleandoc(f"""
    Strip ids and order from all {wording.noun}s of one shuffle: the step of an anonymiser.

    Each {wording.noun} gets the mark of this batch, by which a tally knows how many were shuffled
    together; what has a mark already is left out, because its sender would count twice.
    Repetitions and what nobody could have sent are left out, too, because afterwards nobody can
    recognise them. Delete what was received, and keep no record of who sent what or when.

    A {wording.noun} goes into one shuffle only. If a folder grows and is shuffled twice, the
    difference of the two outputs is what the people who came late answered. So ids that were used
    are remembered, as keyed hashes in a file that only you can read, and a shuffle that has one of
    them again is refused; --close erases the file when the collection ends. If the
    {wording.metavar} is a shuffled one and there are too few {wording.noun}s to hide in, none is
    written.
    """)
    return command


def make_tally_command(wording: CollectionWording) -> click.Command:
    """Make ``local tally`` or ``survey tally``: add up reports."""
    command_line = f"discreet {wording.command_group} tally {wording.document_file}"

    @click.command(
        "tally",
        epilog=format_example(
            f"{command_line} {wording.noun}s.parquet -o tally.json",
            f"{command_line} 'monday/*.jsonl' tuesday.jsonl -o tally.json",
            f"{command_line} east.parquet --merge west-tally.json -o tally.json",
        ),
    )
    @click.argument("path", metavar=wording.metavar)
    @click.argument("files", nargs=-1, metavar=f"[{wording.noun.upper()}S]...")
    @click.option(
        "-o", "--output", type=make_output("tally"), required=True, help="The tally file to write."
    )
    @click.option("--merge", multiple=True, metavar="TALLY", help="Also add this tally file.")
    @click.option(
        "--expected",
        type=click.IntRange(min=1),
        help="How many people were planned for; far fewer give a warning.",
    )
    @json_option
    def command(
        path: str,
        files: tuple[str, ...],
        output: str,
        merge: tuple[str, ...],
        expected: int | None,
        as_json: bool,
    ) -> None:
        collection = read_collection(wording, path)
        if not files and not merge:
            raise click.UsageError(
                f"Name at least one file of {wording.noun}s, or a tally with --merge."
            )
        total_tally = _count_reports(collection, files)
        ids_are_sampled = total_tally.reports > len(total_tally.seen)
        for merged_path in merge:
            with error_context(merged_path):
                merged_tally = read_tally(wording, merged_path)
                ids_are_sampled |= merged_tally.reports > len(merged_tally.seen)
                total_tally = total_tally + merged_tally
        _require_counted_reports(wording, path, total_tally)
        write_file(output, total_tally.to_json())
        if as_json:
            print_json({"output": output, **_make_summary(total_tally)})
        else:
            _print_tally(wording, total_tally, output)
        if merge and ids_are_sampled:
            print_warning(
                "tallies of Parquet files keep a sample of their ids, so only many "
                f"{wording.noun}s in two of them would have been noticed"
            )
        for warning in _iter_warnings(wording, total_tally, expected):
            print_warning(warning)

    csv_note = f", or are .csv files of {wording.noun}s" * (".csv" in wording.file_suffixes)
    command.help = cleandoc(f"""
    Add up {wording.noun}s that answer a {wording.metavar}: Parquet or text files.

    Text files hold one {wording.noun} per line{csv_note}.
    All files and patterns count as one delivery: what is in two of them counts once. A bad
    {wording.noun} is counted by its fault, and nothing else is lost. Tallies that are merged must
    not share {wording.noun}s, and the same tally is never added twice.
    """)
    return command


NOISY_CLASS_ERROR = 0.1
"""Standard error of the class shares above which a tally is mostly noise; gives a warning."""


def _require_counted_reports(wording: CollectionWording, path: str, tally: Tally[Any]) -> None:
    """Refuse a tally in which no report could be counted: the files belong to another document."""
    rejected_count = tally.rejected.total()
    if tally.reports or not rejected_count:
        return
    fault_list = ", ".join(
        f"{fault_count:,} {fault}" for fault, fault_count in sorted(tally.rejected.items())
    )
    raise FormatError(
        f"{path}: none of {rejected_count:,} {wording.noun}s can be counted ({fault_list}); give "
        f"the {wording.kind} they were made with, and files of {wording.noun}s"
    )


def _iter_warnings(
    wording: CollectionWording, tally: Tally[Any], expected: int | None
) -> Iterator[str]:
    """Yield warnings about a tally with far fewer reports than planned."""
    from discreet.collection.inversion import load_inversion

    collection, people = tally.collection, tally.people
    if not people:
        yield (
            f"there are no {wording.noun}s in these files; nothing can be estimated from this tally"
        )
        return
    shuffle = collection.shuffled
    planned_people = expected or (0 if shuffle is None else shuffle.respondents)
    if 2 * people < planned_people:
        yield (
            f"{people:,} people sent a {wording.noun}, {planned_people:,} were planned for; wait "
            "for more, or expect wide intervals"
        )
    class_error = load_inversion(collection).compute_class_error(collection, people)
    if class_error > NOISY_CLASS_ERROR:
        verb = "is" if people == 1 else "are"
        yield (
            f"{wording.format_count(people)} {verb} few: shares of the classes have a standard "
            f"error of up to {100 * class_error:.0f} percentage points; 'discreet "
            f"{wording.command_group} size' says how many people it takes"
        )


def _count_reports(collection: Any, files: Sequence[str]) -> Tally[Any]:
    """Count text files line by line, keeping ids; with Parquet files, count all in the engine."""
    from discreet.collection.parquet_tally import tally_parquet
    from discreet.collection.tally import Tally

    text_files = [text_file for source in files for text_file in _find_text_files(source)]
    table_files = [source for source in files if not source.lower().endswith(TEXT_SUFFIXES)]
    if not table_files:
        tally, reports_done, reports = Tally(collection), 0, _iter_reports(collection, text_files)
        with show_progress("tallying", f"{collection.noun}s") as report_progress:
            while piece := list(islice(reports, REPORTS_PER_PIECE)):
                valid_reports = [report for report in piece if report is not None]
                tally.add_all(valid_reports)
                if len(valid_reports) < len(piece):
                    tally.rejected["misshapen"] += len(piece) - len(valid_reports)
                reports_done += len(piece)
                report_progress(reports_done)
        return tally
    with ExitStack() as stack:
        misshapen_count = 0
        if text_files:
            temporary_folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="discreet-"))
            table_files.append(os.path.join(temporary_folder, "lines.parquet"))
            misshapen_count = _convert_to_parquet(collection, text_files, table_files[-1])
        report_progress = stack.enter_context(show_progress("tallying", f"{collection.noun}s"))
        parquet_source: Any = table_files if len(table_files) > 1 else table_files[0]
        tally = tally_parquet(collection, parquet_source, progress=report_progress)
    if misshapen_count:
        tally.rejected["misshapen"] += misshapen_count
    return tally


def _find_text_files(source: str) -> list[str]:
    if not source.lower().endswith(TEXT_SUFFIXES):
        return []
    text_files = [source] if os.path.isfile(source) else sorted(glob.glob(source, recursive=True))
    if not text_files:
        raise FormatError(f"{source}: there is no such file")
    return text_files


def _iter_reports(collection: Any, files: Sequence[str]) -> Iterator[Any]:
    from discreet.collection.text_reports import read_text_reports

    return chain.from_iterable(read_text_reports(collection, text_file) for text_file in files)


def _convert_to_parquet(collection: Any, files: Sequence[str], output: str) -> int:
    """Write reports in text files to a Parquet file; return how many were malformed."""
    from discreet.collection.parquet_reports import ReportFile

    misshapen_count, reports = 0, _iter_reports(collection, files)
    with ReportFile(output, collection) as report_file:
        while piece := list(islice(reports, REPORTS_PER_PIECE)):
            valid_reports = [report for report in piece if report is not None]
            misshapen_count += len(piece) - len(valid_reports)
            report_file.add_reports(valid_reports)
    return misshapen_count


def _make_summary(tally: Tally[Any]) -> dict[str, Any]:
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


def _format_batches(tally: Tally[Any]) -> str:
    batch_count = len(tally.batches)
    return (
        f"{batch_count:,}, the smallest with {tally.smallest_shuffle_size:,} "
        f"{tally.collection.noun}s"
    )


def _print_tally(wording: CollectionWording, tally: Tally[Any], output: str) -> None:
    summary = _make_summary(tally)
    click.echo(f"counted    {wording.format_count(tally.reports)}")
    if tally.people != tally.reports:
        click.echo(f"people     {tally.people:,}, if each sent {tally.collection.reports} reports")
    if "different" in summary:
        click.echo(f"different  {summary['different']:,}")
    click.echo(f"repeated   {tally.repeated:,}")
    click.echo(f"rejected   {tally.rejected.total():,}")
    for fault, fault_count in sorted(tally.rejected.items()):
        click.echo(f"  {fault}: {fault_count:,}")
    if tally.collection.shuffled is not None:
        unmarked_note = "some came without a batch mark: the local promise only"
        click.echo(
            f"batches    {_format_batches(tally) if tally.smallest_shuffle_size else unmarked_note}"
        )
    if tally.simulated:
        click.echo(f"simulated  some {tally.collection.noun}s came from a seed; no promise holds")
    print_note(f"{output}: the tally of {tally.collection.digest}")


def make_train_command(wording: CollectionWording) -> click.Command:
    """Make ``local train`` or ``survey train``: estimate a model from a tally."""

    @click.command(
        "train",
        epilog=format_example(
            f"discreet {wording.command_group} train tally.json -o model.json",
            "discreet evaluate model.json people.csv",
        ),
    )
    @click.argument("tallies", metavar="TALLY...", nargs=-1, required=True)
    @click.option(
        "-o", "--output", type=make_output("model"), required=True, help="The model file to write."
    )
    @click.option(
        "--postprocess",
        type=click.Choice(["none", "paper", "norm-sub", "norm-cut", "bayes"]),
        help="How noisy counts become probabilities; 'bayes' unless nothing is noisy.",
    )
    @click.option(
        "--statistics",
        type=make_output("statistics"),
        help="Also write the estimates, for predict --uncertainty.",
    )
    @json_option
    def command(
        tallies: tuple[str, ...],
        output: str,
        postprocess: Any,
        statistics: str | None,
        as_json: bool,
    ) -> None:
        """Estimate a model from a TALLY file, or from the tallies of several waves.

        Waves are collections of different people by plans of their own, about the same schema and
        bins.
        """
        from dataclasses import replace

        import numpy as np

        from discreet.estimation import estimate
        from discreet.statistics.scoring import Scoring

        wave_tallies = [read_tally(wording, tally_path) for tally_path in tallies]
        with error_context(", ".join(tallies)):
            wave_statistics = _estimate_statistics(wording, wave_tallies)
            if postprocess is not None:
                wave_statistics = replace(wave_statistics, scoring=Scoring(postprocess))
            trained_model = estimate(wave_statistics)
        report_count = sum(wave_tally.reports for wave_tally in wave_tallies)
        people = sum(wave_tally.people for wave_tally in wave_tallies)
        write_file(output, trained_model.to_json())
        if statistics is not None:
            write_file(statistics, wave_statistics.to_json())
        class_names = [format_value(value) for value in trained_model.schema.classes]
        class_prior = dict(zip(class_names, np.exp(trained_model.log_prior).tolist(), strict=True))
        if as_json:
            summary = {"output": output, f"{wording.noun}s": report_count, "people": people}
            print_json(
                {
                    **summary,
                    "prior": class_prior,
                    "guarantee": make_guarantee_body(trained_model.guarantee),
                }
            )
            return
        printer = make_console()
        print_guarantee(trained_model.guarantee)
        printer.print(f"\n{wording.noun + 's':<10} {report_count:,} counted")
        printer.print(
            f"features   {len(trained_model.factors)} of {len(trained_model.schema.features)}"
        )
        prior_text = ", ".join(
            f"{class_name} {share:.3f}" for class_name, share in class_prior.items()
        )
        printer.print(f"prior      {prior_text}")
        printer.print(
            f"{output}: {trained_model.schema.target} from {', '.join(trained_model.schema.names)}"
        )

    return command


def _estimate_statistics(wording: CollectionWording, wave_tallies: Sequence[Tally[Any]]) -> Any:
    from discreet.collection.inversion import load_inversion

    if len(wave_tallies) > 1 and not wording.has_waves:
        raise EstimationError(
            f"give one tally; add several with 'discreet {wording.command_group} tally'"
        )
    inversion = load_inversion(wave_tallies[0].collection)
    if len(wave_tallies) == 1:
        return inversion.estimate_statistics(wave_tallies[0])
    from discreet.local.waves import combine_waves

    if len({wave_tally.collection.digest for wave_tally in wave_tallies}) < len(wave_tallies):
        raise EstimationError(
            "two tallies answer the same plan; add them with 'discreet local tally'"
        )
    wave_statistics = [inversion.estimate_statistics(wave_tally) for wave_tally in wave_tallies]
    return combine_waves(wave_statistics, [wave_tally.people for wave_tally in wave_tallies])
