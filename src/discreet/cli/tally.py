"""What ``discreet local`` and ``discreet survey`` share beyond a device: shuffle, tally, train.

Each function makes the command for one kind of collection; the groups give it its name.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from inspect import cleandoc
from typing import TYPE_CHECKING, Any

import click

from discreet.cli.collection import CollectionWording, make_guarantee_body, read_collection
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
from discreet.errors import EstimationError, FormatError
from discreet.files.atomic_writing import error_context
from discreet.schema.schema import format_value

if TYPE_CHECKING:
    from discreet.collection.tally import Tally

__all__ = ["make_shuffle_command", "make_tally_command", "make_train_command"]


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
    @click.option("-o", "--output", type=OUTPUT, help="The .jsonl or .parquet file to write.")
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
        "--few",
        is_flag=True,
        help=f"Pass on {wording.noun}s even if they are too few for the guarantee of the shuffle.",
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
        from discreet.collection.ingest import read_deliveries, summarize_tally
        from discreet.collection.parquet_reports import ReportFile
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
                    f"{shuffle_memory.path}: erased; nothing more is shuffled for this "
                    f"{wording.kind}"
                )
            return
        if not files or output is None:
            raise click.UsageError(f"Name the {wording.noun}s of one shuffle, and -o.")
        if not output.lower().endswith((".jsonl", ".parquet")):
            raise FormatError(f"{output}: write the shuffled {wording.noun}s as .jsonl or .parquet")
        with show_progress("shuffling", f"{wording.noun}s") as report_progress:
            watched_reports = (
                report_progress(reports_done) or report
                for reports_done, report in enumerate(read_deliveries(collection, files), 1)
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
                    **summarize_tally(shuffled_tally),
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
    together; {wording.noun}s that have a mark already are left out, because their senders would
    count twice. Repeated and impossible {wording.noun}s are left out, too, because nobody could
    recognise them afterwards. Delete what was received, and keep no record of who sent what or
    when.

    A {wording.noun} goes into one shuffle only. If a folder grows and is shuffled twice, the
    difference of the two outputs is what the people who came late answered. The ids used are
    therefore remembered, as keyed hashes in a file that only you can read, and a shuffle that has
    one of them again is refused; --close erases the file when the collection ends. If the
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
        help="Number of people planned for; far fewer give a warning.",
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
        from discreet.collection.ingest import count_deliveries, list_warnings, summarize_tally

        collection = read_collection(wording, path)
        if not files and not merge:
            raise click.UsageError(
                f"Name at least one file of {wording.noun}s, or a tally with --merge."
            )
        with show_progress("tallying", f"{wording.noun}s") as report_progress:
            tally = count_deliveries(
                collection, files, merge, collection_path=path, progress=report_progress
            )
        write_file(output, tally.to_json())
        summary = summarize_tally(tally)
        warnings = list_warnings(tally, expected, merged=bool(merge))
        if as_json:
            print_json({"output": output, **summary})
        else:
            _print_tally(wording, tally, summary)
            print_note(f"{output}: the tally of {tally.collection.digest}")
        for warning in warnings:
            print_warning(warning)

    csv_note = f", or are .csv files of {wording.noun}s" * (".csv" in wording.file_suffixes)
    command.help = cleandoc(f"""
    Add up {wording.noun}s that answer a {wording.metavar}: Parquet or text files.

    Text files hold one {wording.noun} per line{csv_note}. All files and patterns count as one
    delivery: a {wording.noun} that is in two of them counts once. Bad {wording.noun}s are left out
    and counted by their fault; all others are added up. Tallies that are merged must not share
    {wording.noun}s, and the same tally is never added twice.
    """)
    return command


def _print_tally(wording: CollectionWording, tally: Tally[Any], summary: dict[str, Any]) -> None:
    click.echo(f"counted    {wording.format_count(tally.reports)}")
    if tally.people != tally.reports:
        click.echo(f"people     {tally.people:,}, if each sent {tally.collection.reports} reports")
    if "different" in summary:
        click.echo(f"different  {summary['different']:,}")
    click.echo(f"repeated   {tally.repeated:,}")
    click.echo(f"rejected   {tally.rejected.total():,}")
    for fault, fault_count in sorted(tally.rejected.items()):
        click.echo(f"  {fault.replace('misshapen', 'invalid (misshapen)')}: {fault_count:,}")
    if tally.collection.shuffled is not None:
        batch_text = "some came without a batch mark: the local promise only"
        if smallest_size := tally.smallest_shuffle_size:
            batch_text = (
                f"{len(tally.batches):,}, the smallest with {smallest_size:,} {wording.noun}s"
            )
        click.echo(f"batches    {batch_text}")
    if tally.simulated:
        click.echo(f"simulated  some {wording.noun}s came from a seed; no promise holds")


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

        Waves are collections from different people. Each has a plan of its own; schema and bins are
        the same. The tally of a wave that judged models comes last, and chooses among them.
        """
        from dataclasses import replace

        import numpy as np

        from discreet.collection.ingest import read_tally
        from discreet.collection.inversion import load_inversion
        from discreet.estimation import estimate
        from discreet.statistics.scoring import Scoring

        wave_tallies = [read_tally(wording.kind, tally_path) for tally_path in tallies]
        report_count = sum(tally.reports for tally in wave_tallies)
        people = [tally.people for tally in wave_tallies]
        with error_context(", ".join(tallies)):
            if len(wave_tallies) > 1:
                _require_different_plans(wording, wave_tallies)
            inversion = load_inversion(wave_tallies[0].collection)
            answering_tallies = wave_tallies
            if len(wave_tallies) > 1 and wave_tallies[-1].collection.judges_models:
                answering_tallies = wave_tallies[:-1]
            wave_statistics = [inversion.estimate_statistics(tally) for tally in answering_tallies]
            joint_statistics = wave_statistics[0]
            if len(wave_statistics) > 1:
                from discreet.local.waves import combine_waves

                joint_statistics = combine_waves(
                    wave_statistics, [tally.people for tally in answering_tallies]
                )
            if postprocess is not None:
                joint_statistics = replace(joint_statistics, scoring=Scoring(postprocess))
            if len(answering_tallies) < len(wave_tallies):
                from discreet.local.judging import apply_verdicts

                joint_statistics = apply_verdicts(joint_statistics, wave_tallies[-1])
            trained_model = estimate(joint_statistics)
        write_file(output, trained_model.to_json())
        if statistics is not None:
            write_file(statistics, joint_statistics.to_json())
        class_names = [format_value(value) for value in trained_model.schema.classes]
        class_prior = dict(zip(class_names, np.exp(trained_model.log_prior).tolist(), strict=True))
        if as_json:
            summary = {"output": output, f"{wording.noun}s": report_count, "people": sum(people)}
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


def _require_different_plans(wording: CollectionWording, tallies: Sequence[Tally[Any]]) -> None:
    """Refuse several tallies unless each is the wave of a plan of its own."""
    if not tallies[0].collection.has_waves:
        raise EstimationError(
            f"give one tally; add several with 'discreet {wording.command_group} tally'"
        )
    if len({tally.collection.digest for tally in tallies}) < len(tallies):
        raise EstimationError(
            "two tallies answer the same plan; add them with 'discreet local tally'"
        )
