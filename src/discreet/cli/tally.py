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

from discreet.cli.collection import PLAN, Wording, promise_body, read_collection, read_tally
from discreet.cli.files import OUTPUT, output_of, replacing, write
from discreet.cli.output import (
    console,
    example,
    json_option,
    note,
    print_json,
    print_promise,
    progress,
    warn,
)
from discreet.errors import EstimationError, FormatError, about
from discreet.schema import text_of

if TYPE_CHECKING:
    from discreet.collection.tally import Tally

__all__ = ["shuffling", "tallying", "training"]

TEXTS = (".jsonl", ".ndjson", ".json", ".csv")
PIECE = 10_000
"""Reports from text files that are held in memory at once."""


def shuffling(kind: Wording) -> click.Command:
    """Make ``local shuffle`` or ``survey shuffle``: the step of an anonymiser."""
    line = f"discreet {kind.group} shuffle {kind.file}"

    @click.command(
        "shuffle",
        epilog=example(
            f"{line} received.jsonl -o shuffled.jsonl",
            f"{line} 'received/*.jsonl' -o shuffled.parquet",
            f"{line} --close",
        ),
    )
    @click.argument("path", metavar=kind.metavar)
    @click.argument("files", nargs=-1, metavar=f"[{kind.noun.upper()}S]...")
    @click.option("-o", "--output", type=OUTPUT, help=".jsonl or .parquet to write.")
    @click.option(
        "--memory",
        metavar="FILE",
        help=f"Private file that remembers which {kind.noun}s were passed on; "
        f"{kind.metavar}.memory if left out.",
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
        from discreet.collection.files import ReportFile, read_reports
        from discreet.collection.report import ALREADY_SHUFFLED
        from discreet.collection.shuffle import shuffled
        from discreet.collection.shuffle_memory import ShuffleMemory
        from discreet.randomness import as_random

        collection = read_collection(kind, path)
        # of the file itself, so that a link to it has no memory of its own
        remembered = ShuffleMemory(memory or f"{os.path.realpath(path)}.memory", collection)
        if close and not files and output is None:
            remembered.close()
            if as_json:
                print_json({"memory": str(remembered.path), "closed": True})
            else:
                note(f"{remembered.path}: erased; this {kind.kind} is not shuffled any more")
            return
        if not files or output is None:
            raise click.UsageError(f"Name the {kind.noun}s of one shuffle, and -o.")
        if not output.lower().endswith((".jsonl", ".parquet")):
            raise FormatError(f"{output}: write the shuffled {kind.noun}s as .jsonl or .parquet")
        texts = [file for source in files for file in _texts(source)]
        tables = [source for source in files if not source.lower().endswith(TEXTS)]
        found = chain(
            (one or "" for one in _reports(collection, texts)),
            chain.from_iterable(read_reports(one) for one in tables),
        )
        with progress("shuffling", f"{kind.noun}s") as advance:
            seen = (advance(done) or one for done, one in enumerate(found, 1))
            reports, counted = shuffled(collection, seen, as_random(None), few=few)
        with replacing(output) as draft, remembered.passing_on(counted.seen):
            if output.lower().endswith(".jsonl"):
                draft.write_bytes("".join(one.to_json() for one in reports).encode())
            else:
                with ReportFile(draft, collection) as file:
                    file.add(reports)
        if close:
            remembered.close()
        if as_json:
            print_json({"output": output, "passed_on": len(reports), **_facts(counted)})
            return
        click.echo(f"passed on  {kind.counted(len(reports))} under new ids, in random order")
        shuffled_before = counted.rejected[ALREADY_SHUFFLED]
        invalid = counted.rejected.total() - shuffled_before
        click.echo(
            f"left out   {counted.repeated:,} repeated, {invalid:,} invalid, "
            f"{shuffled_before:,} shuffled before"
        )

    command.help = cleandoc(f"""
    Strip ids and order from all {kind.noun}s of one shuffle: the step of an anonymiser.

    Each {kind.noun} gets the mark of this batch, by which a tally knows how many were shuffled
    together; what has a mark already is left out, because its sender would count twice.
    Repetitions and what nobody could have sent are left out, too, because afterwards nobody can
    recognise them. Delete what was received, and keep no record of who sent what or when.

    A {kind.noun} goes into one shuffle only. If a folder grows and is shuffled twice, the
    difference of the two outputs is what the people who came late answered. So ids that were used
    are remembered, as keyed hashes in a file that only you can read, and a shuffle that has one of
    them again is refused; --close erases the file when the collection ends. If the
    {kind.metavar} is a shuffled one and there are too few {kind.noun}s to hide in, none is written.
    """)
    return command


def tallying(kind: Wording) -> click.Command:
    """Make ``local tally`` or ``survey tally``: add up reports."""
    line = f"discreet {kind.group} tally {kind.file}"

    @click.command(
        "tally",
        epilog=example(
            f"{line} {kind.noun}s.parquet -o tally.json",
            f"{line} 'monday/*.jsonl' tuesday.jsonl -o tally.json",
            f"{line} east.parquet --merge west-tally.json -o tally.json",
        ),
    )
    @click.argument("path", metavar=kind.metavar)
    @click.argument("files", nargs=-1, metavar=f"[{kind.noun.upper()}S]...")
    @click.option(
        "-o", "--output", type=output_of("tally"), required=True, help="The tally file to write."
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
        collection = read_collection(kind, path)
        if not files and not merge:
            raise click.UsageError(
                f"Name at least one file of {kind.noun}s, or a tally with --merge."
            )
        counted = _counted(collection, files)
        blind = counted.reports > len(counted.seen)
        for other in merge:
            with about(other):
                more = read_tally(kind, other)
                blind |= more.reports > len(more.seen)
                counted = counted + more
        _refuse_nothing(kind, path, counted)
        write(output, counted.to_json())
        if as_json:
            print_json({"output": output, **_facts(counted)})
        else:
            _print_tally(kind, counted, output)
        if merge and blind:
            warn(
                "tallies of Parquet files keep a sample of their ids, so only many "
                f"{kind.noun}s in two of them would have been noticed"
            )
        for doubt in _doubts(kind, counted, expected):
            warn(doubt)

    command.help = cleandoc(f"""
    Add up {kind.noun}s that answer a {kind.metavar}: Parquet or text files.

    Text files hold one {kind.noun} per line{", or are .csv files of sheets" * (kind is not PLAN)}.
    All files and patterns count as one delivery: what is in two of them counts once. A bad
    {kind.noun} is counted by its fault, and nothing else is lost. Tallies that are merged must not
    share {kind.noun}s, and the same tally is never added twice.
    """)
    return command


WEAK = 0.1
"""Standard error of the class shares above which a tally is mostly noise; gives a warning."""


def _refuse_nothing(kind: Wording, path: str, tally: Tally[Any]) -> None:
    """Refuse a tally in which no report could be counted: the files belong to another document."""
    rejected = tally.rejected.total()
    if tally.reports or not rejected:
        return
    faults = ", ".join(f"{number:,} {fault}" for fault, number in sorted(tally.rejected.items()))
    raise FormatError(
        f"{path}: none of {rejected:,} {kind.noun}s can be counted ({faults}); give the "
        f"{kind.kind} they were made with, and files of {kind.noun}s"
    )


def _doubts(kind: Wording, tally: Tally[Any], expected: int | None) -> Iterator[str]:
    """Yield warnings about a tally with far fewer reports than planned."""
    collection, people = tally.collection, tally.people
    if not people:
        yield f"there are no {kind.noun}s in these files; nothing can be estimated from this tally"
        return
    shuffle = collection.shuffled
    planned = expected or (0 if shuffle is None else shuffle.respondents)
    if 2 * people < planned:
        yield (
            f"{people:,} people sent a {kind.noun}, {planned:,} were planned for; wait for more, "
            "or expect wide intervals"
        )
    error = _class_error(kind, collection, people)
    if error > WEAK:
        are = "is" if people == 1 else "are"
        yield (
            f"{kind.counted(people)} {are} few: shares of the classes have a standard error of up "
            f"to {100 * error:.0f} percentage points; 'discreet {kind.group} size' says how many "
            "people it takes"
        )


def _class_error(kind: Wording, collection: Any, people: int) -> float:
    """Compute the standard error of the class shares; 0 if they are not estimated."""
    target = collection.schema.target
    if kind is PLAN:
        from discreet.local.inversion import precision_of

        known = {one.feature: one.standard_error for one in precision_of(collection, people)}
        return known.get(target, 0.0)
    from discreet.survey.inversion import precision_of as precision_of_survey

    labels = collection.cells[target].labels
    text = f'"{target}" = "{labels[0]}"'
    if any('"' in word for word in (target, labels[0])):
        return 0.0
    return precision_of_survey(collection, people, [text])[0].standard_error


def _counted(collection: Any, files: Sequence[str]) -> Tally[Any]:
    """Count text files line by line, keeping ids; with Parquet files, count all in the engine."""
    from discreet.collection.bulk import tally_parquet
    from discreet.collection.tally import Tally

    texts = [file for source in files for file in _texts(source)]
    tables = [source for source in files if not source.lower().endswith(TEXTS)]
    if not tables:
        counted, done, reports = Tally(collection), 0, _reports(collection, texts)
        with progress("tallying", f"{collection.noun}s") as advance:
            while some := list(islice(reports, PIECE)):
                good = [report for report in some if report is not None]
                counted.add_all(good)
                if len(good) < len(some):
                    counted.rejected["misshapen"] += len(some) - len(good)
                done += len(some)
                advance(done)
        return counted
    with ExitStack() as stack:
        misshapen = 0
        if texts:
            folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="discreet-"))
            tables.append(os.path.join(folder, "lines.parquet"))
            misshapen = _converted(collection, texts, tables[-1])
        advance = stack.enter_context(progress("tallying", f"{collection.noun}s"))
        source: Any = tables if len(tables) > 1 else tables[0]
        counted = tally_parquet(collection, source, progress=advance)
    if misshapen:
        counted.rejected["misshapen"] += misshapen
    return counted


def _texts(source: str) -> list[str]:
    if not source.lower().endswith(TEXTS):
        return []
    found = [source] if os.path.isfile(source) else sorted(glob.glob(source, recursive=True))
    if not found:
        raise FormatError(f"{source}: there is no such file")
    return found


def _reports(collection: Any, files: Sequence[str]) -> Iterator[Any]:
    from discreet.collection.texts import reports_in

    return chain.from_iterable(reports_in(collection, file) for file in files)


def _converted(collection: Any, files: Sequence[str], output: str) -> int:
    """Write reports in text files to a Parquet file; return how many were malformed."""
    from discreet.collection.files import ReportFile

    misshapen, reports = 0, _reports(collection, files)
    with ReportFile(output, collection) as file:
        while some := list(islice(reports, PIECE)):
            good = [report for report in some if report is not None]
            misshapen += len(some) - len(good)
            file.add(good)
    return misshapen


def _facts(tally: Tally[Any]) -> dict[str, Any]:
    whole = {}
    if tally.collection.questions[0].size is None:
        whole = {"different": len(tally.distinct()[0])}
    return {
        tally.collection.kind: tally.collection.digest,
        "counted": tally.reports,
        "people": tally.people,
        **whole,
        "repeated": tally.repeated,
        "rejected": dict(tally.rejected),
        "by_question": tally.counted.tolist(),
        "smallest_batch": tally.together,
        "simulated": tally.simulated,
    }


def _batches(tally: Tally[Any]) -> str:
    number = len(tally.batches)
    return f"{number:,}, the smallest with {tally.together:,} {tally.collection.noun}s"


def _print_tally(kind: Wording, tally: Tally[Any], output: str) -> None:
    facts = _facts(tally)
    click.echo(f"counted    {kind.counted(tally.reports)}")
    if tally.people != tally.reports:
        click.echo(f"people     {tally.people:,}, if each sent {tally.collection.reports} reports")
    if "different" in facts:
        click.echo(f"different  {facts['different']:,}")
    click.echo(f"repeated   {tally.repeated:,}")
    click.echo(f"rejected   {tally.rejected.total():,}")
    for fault, number in sorted(tally.rejected.items()):
        click.echo(f"  {fault}: {number:,}")
    if tally.collection.shuffled is not None:
        some = "some came without a batch mark: the local promise only"
        click.echo(f"batches    {_batches(tally) if tally.together else some}")
    if tally.simulated:
        click.echo(f"simulated  some {tally.collection.noun}s came from a seed; no promise holds")
    note(f"{output}: the tally of {tally.collection.digest}")


def training(kind: Wording) -> click.Command:
    """Make ``local train`` or ``survey train``: estimate a model from a tally."""

    @click.command(
        "train",
        epilog=example(
            f"discreet {kind.group} train tally.json -o model.json",
            "discreet evaluate model.json people.csv",
        ),
    )
    @click.argument("tallies", metavar="TALLY...", nargs=-1, required=True)
    @click.option(
        "-o", "--output", type=output_of("model"), required=True, help="The model file to write."
    )
    @click.option(
        "--postprocess",
        type=click.Choice(["none", "paper", "norm-sub", "norm-cut", "bayes"]),
        help="How noisy counts become probabilities; 'bayes' unless nothing is noisy.",
    )
    @click.option(
        "--statistics",
        type=output_of("statistics"),
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
        from discreet.scoring import Scoring

        waves = [read_tally(kind, tally) for tally in tallies]
        with about(", ".join(tallies)):
            found = _statistics(kind, waves)
            if postprocess is not None:
                found = replace(found, scoring=Scoring(postprocess))
            model = estimate(found)
        reports, people = sum(one.reports for one in waves), sum(one.people for one in waves)
        write(output, model.to_json())
        if statistics is not None:
            write(statistics, found.to_json())
        classes = [text_of(value) for value in model.schema.classes]
        prior = dict(zip(classes, np.exp(model.log_prior).tolist(), strict=True))
        if as_json:
            facts = {"output": output, f"{kind.noun}s": reports, "people": people}
            print_json({**facts, "prior": prior, "guarantee": promise_body(model.guarantee)})
            return
        printer = console()
        print_promise(model.guarantee)
        printer.print(f"\n{kind.noun + 's':<10} {reports:,} counted")
        printer.print(f"features   {len(model.factors)} of {len(model.schema.features)}")
        shares = ", ".join(f"{name} {share:.3f}" for name, share in prior.items())
        printer.print(f"prior      {shares}")
        printer.print(f"{output}: {model.schema.target} from {', '.join(model.schema.names)}")

    return command


def _statistics(kind: Wording, waves: Sequence[Tally[Any]]) -> Any:
    if kind is PLAN:
        from discreet.local.inversion import statistics_of
        from discreet.local.waves import combined

        if len(waves) == 1:
            return statistics_of(waves[0])
        if len({one.collection.digest for one in waves}) < len(waves):
            raise EstimationError(
                "two tallies answer the same plan; add them with 'discreet local tally'"
            )
        found = [statistics_of(one) for one in waves]
        return combined(found, [one.people for one in waves])
    if len(waves) > 1:
        raise EstimationError("give one tally; add several with 'discreet survey tally'")
    (tally,) = waves
    from discreet.survey.inversion import statistics_of as statistics_of_sheets

    return statistics_of_sheets(tally)
