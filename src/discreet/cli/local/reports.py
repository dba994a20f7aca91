"""``discreet local perturb`` and ``tally``: reports of many, made up from raw data or added up."""

from __future__ import annotations

import glob
import os
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from discreet.cli.files import about, batches, replacing, write
from discreet.cli.local.plan import promise_of, read_plan
from discreet.cli.local.train import read_tally
from discreet.cli.output import console, example, json_option, print_json, progress
from discreet.errors import DiscreetError, FormatError, PrivacyError

if TYPE_CHECKING:
    from discreet.local.plan import Plan
    from discreet.local.tally import Tally

__all__ = ["perturb", "tally"]

LINES = (".jsonl", ".ndjson", ".json")
PIECE = 10_000
"""Reports from text that are held before they go to a Parquet file."""


@click.command(
    epilog=example(
        "discreet local perturb plan.json people.csv -o reports.parquet",
    )
)
@click.argument("path", metavar="PLAN")
@click.argument("data")
@click.option("-o", "--output", required=True, help="The .parquet file of reports to write.")
@click.option(
    "--seed", type=click.IntRange(min=0), help="Repeatable noise: an experiment, no promise."
)
@json_option
def perturb(path: str, data: str, output: str, seed: int | None, as_json: bool) -> None:
    """Simulate one device for each row of DATA (CSV or Parquet): one report a row.

    This command READS RAW DATA. In a real collection nobody holds such a table: every person runs
    "discreet local report" on a device of their own.
    """
    from discreet.encoding import class_codes, columns_of
    from discreet.local.bulk import ReportFile
    from discreet.local.simulation import answers, encoded
    from discreet.randomness import as_random

    plan, random, done = read_plan(path), as_random(seed), 0
    if plan.reports > 1:
        raise PrivacyError(
            f"{path}: lets a person send {plan.reports} reports, this command makes one a row; "
            "plan with --reports 1"
        )
    names = [*plan.schema.names, plan.schema.target]
    console(stderr=True).print(
        f"PrivacyWarning: {data} is raw data, and this command reads it. That is a simulation: in "
        "a collection each person randomizes on their own device.",
        style="yellow",
    )
    with (
        replacing(output) as beside,
        ReportFile(beside, plan, random.simulated) as file,
        progress("perturbing") as advance,
        about(data),
    ):
        for batch in batches(data, names):
            columns = columns_of(batch, names)
            classes = class_codes(plan.schema, columns[plan.schema.target])
            for question, rows, values in answers(plan, classes, encoded(plan, columns), random):
                file.write(question, random.raw(16 * len(rows)).reshape(-1, 16), values)
            done += batch.num_rows
            advance(done)
    promise = plan.guarantee.under(simulated=random.simulated)
    if as_json:
        print_json({"output": output, "reports": done, "guarantee": promise_of(promise)})
        return
    click.echo(f"{output}: {done:,} reports", err=True)
    click.echo(str(promise), err=True)


@click.command(
    epilog=example(
        "discreet local tally plan.json reports.parquet -o tally.json",
        "discreet local tally plan.json 'monday/*.jsonl' tuesday.jsonl -o tally.json",
        "discreet local tally plan.json east.parquet --merge west-tally.json -o tally.json",
    )
)
@click.argument("path", metavar="PLAN")
@click.argument("reports", nargs=-1)
@click.option("-o", "--output", required=True, help="The tally file to write.")
@click.option("--merge", multiple=True, metavar="TALLY", help="Also add this tally file.")
@json_option
def tally(
    path: str, reports: tuple[str, ...], output: str, merge: tuple[str, ...], as_json: bool
) -> None:
    """Add up REPORTS that answer a PLAN: Parquet files, or text files with one report a line.

    Several files and patterns count as one delivery: what is in two of them counts once. A bad
    report is counted by its fault, and nothing else is lost. Tallies that are merged must not
    share reports; this is checked where both keep their ids, which those of Parquet files do not.
    """
    plan = read_plan(path)
    if not reports and not merge:
        raise click.UsageError("Name at least one file of reports, or a tally with --merge.")
    counted = _counted(plan, reports)
    blind = bool(counted.people) and not counted.seen
    for other in merge:
        with about(other):
            more = read_tally(other)
            blind |= bool(more.people) and not more.seen
            counted = counted + more
    write(output, counted.to_json())
    if as_json:
        print_json({"output": output, **_body(counted)})
    else:
        _print(counted, output)
    if merge and blind:
        click.echo(
            "discreet: tallies of Parquet files keep no ids, so it was not checked that no report "
            "is in two of them",
            err=True,
        )


def _counted(plan: Plan, reports: Sequence[str]) -> Tally:
    """Text alone is added line by line and keeps its ids; with Parquet, all goes to the engine."""
    from discreet.local.bulk import tally_parquet
    from discreet.local.tally import Tally

    texts = [file for source in reports for file in _texts(source)]
    tables = [source for source in reports if not _is_text(source)]
    if not tables:
        counted = Tally(plan)
        with progress("tallying", "reports") as advance:
            for line in _lines(texts):
                counted.add(line)
                advance(counted.people + counted.repeated + counted.rejected.total())
        return counted
    with ExitStack() as stack:
        misshapen = 0
        if texts:
            folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="discreet-"))
            tables.append(os.path.join(folder, "lines.parquet"))
            misshapen = _converted(plan, texts, tables[-1])
        advance = stack.enter_context(progress("tallying", "reports"))
        counted = tally_parquet(plan, tables if len(tables) > 1 else tables[0], progress=advance)
    if misshapen:
        counted.rejected["misshapen"] += misshapen
    return counted


def _is_text(source: str) -> bool:
    return source.lower().endswith(LINES)


def _texts(source: str) -> list[str]:
    if not _is_text(source):
        return []
    found = [source] if os.path.isfile(source) else sorted(glob.glob(source, recursive=True))
    if not found:
        raise FormatError(f"{source}: there is no such file")
    return found


def _lines(files: Sequence[str]) -> Iterator[bytes]:
    """Reports in text files, one a line; a line that is far too long is cut, and so refused."""
    from discreet.local.report import LARGEST

    for file in files:
        try:
            with Path(file).open("rb") as stream:
                while line := stream.readline(LARGEST + 1):
                    rest = line
                    while len(rest) > LARGEST and not rest.endswith(b"\n"):
                        rest = stream.readline(LARGEST + 1)
                    if line.strip():
                        yield line
        except OSError as error:
            raise FormatError(f"{file}: cannot be read: {error.strerror}") from None


def _converted(plan: Plan, files: Sequence[str], output: str) -> int:
    """Write reports in text to a Parquet file; how many were none."""
    from discreet.local.bulk import ReportFile
    from discreet.local.report import Report

    misshapen, lines = 0, _lines(files)
    with ReportFile(output, plan) as file:
        while some := list(islice(lines, PIECE)):
            parsed = []
            for line in some:
                try:
                    parsed.append(Report.from_json(line))
                except DiscreetError:
                    misshapen += 1
            file.add(parsed)
    return misshapen


def _body(tally: Tally) -> dict[str, Any]:
    return {
        "plan": tally.plan.digest,
        "counted": tally.people,
        "repeated": tally.repeated,
        "rejected": dict(tally.rejected),
        "by_question": tally.respondents.tolist(),
        "simulated": tally.simulated,
    }


def _print(tally: Tally, output: str) -> None:
    click.echo(f"counted    {tally.people:,}")
    click.echo(f"repeated   {tally.repeated:,}")
    click.echo(f"rejected   {tally.rejected.total():,}")
    for fault, number in sorted(tally.rejected.items()):
        click.echo(f"  {fault}: {number:,}")
    if tally.simulated:
        click.echo("simulated  some reports came from a seed; they promise nothing")
    click.echo(f"{output}: a tally of {len(tally.plan.questions)} questions", err=True)
