"""``discreet survey answer``, ``randomize`` and ``tally``: sheets of one, of many, added up."""

from __future__ import annotations

import csv
import glob
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from discreet.cli.files import about, batches, replacing, write
from discreet.cli.local.device import _record
from discreet.cli.output import console, example, json_option, print_json, progress
from discreet.cli.survey.design import promise_body, read_questionnaire
from discreet.cli.survey.train import read_sheet_tally
from discreet.errors import DiscreetError, FormatError

if TYPE_CHECKING:
    from discreet.survey.questionnaire import Questionnaire
    from discreet.survey.sheet import Sheet
    from discreet.survey.tally import Tally

__all__ = ["answer", "randomize", "tally"]

LINES = (".jsonl", ".ndjson", ".json")
ID, SIMULATED = "sheet_id", "simulated_id"
"""The first column of sheets in words; the second name where a seeded source drew them."""


@click.command(
    epilog=example(
        "discreet survey answer questionnaire.yaml me.json --store kept > sheet.json",
        "discreet survey answer questionnaire.yaml ticked.json --store kept --by-hand",
    )
)
@click.argument("path", metavar="QUESTIONNAIRE")
@click.argument("record", metavar="ANSWERS")
@click.option("--store", required=True, help="The folder of this person; the sheet is kept there.")
@click.option("--personal", help="JSON: own answers to the personal questions, where asked for.")
@click.option("--by-hand", is_flag=True, help="ANSWERS are what was ticked after a draw by hand.")
@json_option
def answer(
    path: str, record: str, store: str, personal: str | None, by_hand: bool, as_json: bool
) -> None:
    """Print the one randomized sheet of the person whose ANSWERS (a JSON object) these are.

    The sheet is drawn once and kept in the folder before it is printed. Running the command again
    prints the same sheet, whatever the answers say then. ANSWERS may be - for standard input.
    """
    from discreet.survey.respondent import FolderStore, Respondent

    respondent = Respondent(read_questionnaire(path), FolderStore(store), by_hand)
    own = None if personal is None else _record(personal)
    made = respondent.sheet(_record(record), own)
    if as_json:
        print_json({"sheet": made.to_body(), "guarantee": promise_body(respondent.guarantee)})
    else:
        click.echo(made.to_json(), nl=False)


@click.command(
    epilog=example(
        "discreet survey randomize questionnaire.yaml true.csv -o sheets.csv",
        "discreet survey randomize questionnaire.yaml true.parquet -o sheets.parquet --seed 1",
    )
)
@click.argument("path", metavar="QUESTIONNAIRE")
@click.argument("data")
@click.option("-o", "--output", required=True, help="The .csv or .parquet file of sheets to write.")
@click.option(
    "--seed", type=click.IntRange(min=0), help="Repeatable draws: an experiment, no promise."
)
@json_option
def randomize(path: str, data: str, output: str, seed: int | None, as_json: bool) -> None:
    """Simulate one device for each row of DATA (CSV or Parquet): one randomized sheet a row.

    This command READS TRUE ANSWERS. In a real survey nobody holds such a table: every person runs
    "discreet survey answer" on a device of their own.
    """
    from discreet.encoding import columns_of
    from discreet.randomness import as_random
    from discreet.survey.respondent import randomized
    from discreet.survey.simulation import encoded

    survey, random, done = read_questionnaire(path), as_random(seed), 0
    if survey.personal == "own":
        raise FormatError(
            f"{path}: asks for people's own personal answers, which a table of private ones does "
            "not hold; write personal: device to simulate"
        )
    if not output.lower().endswith((".csv", ".parquet")):
        raise FormatError(f"{output}: sheets are written as .csv or .parquet; name it so")
    console(stderr=True).print(
        f"PrivacyWarning: {data} holds true answers, and this command reads them. That is a "
        "simulation: in a survey each person's own device randomizes.",
        style="yellow",
    )
    with (
        replacing(output) as beside,
        _opened(survey, output, beside, random.simulated) as file,
        progress("randomizing") as advance,
        about(data),
    ):
        for batch in batches(data, survey.names):
            true = encoded(survey, columns_of(batch, survey.names))
            sent = randomized(survey, true, random)
            file.write_answers(random.raw(16 * len(sent)).reshape(-1, 16), sent)
            done += batch.num_rows
            advance(done)
    promise = survey.guarantee.under(simulated=random.simulated)
    if as_json:
        print_json({"output": output, "sheets": done, "guarantee": promise_body(promise)})
        return
    click.echo(f"{output}: {done:,} sheets", err=True)
    click.echo(str(promise), err=True)


class _Words:
    """A CSV file of sheets in words: an id, then an answer a question."""

    def __init__(self, survey: Questionnaire, path: Path, simulated: bool) -> None:
        self.labels = [survey.cells[name].labels for name in survey.names]
        self.file = path.open("w", encoding="utf-8", newline="")
        self.writer = csv.writer(self.file, lineterminator="\n")
        self.writer.writerow([SIMULATED if simulated else ID, *survey.names])

    def write_answers(self, ids: Any, answers: Any) -> None:
        for identity, row in zip(ids, answers.tolist(), strict=True):
            words = (labels[cell] for labels, cell in zip(self.labels, row, strict=True))
            self.writer.writerow([identity.tobytes().hex(), *words])

    def __enter__(self) -> _Words:
        return self

    def __exit__(self, *_: object) -> None:
        self.file.close()


def _opened(survey: Questionnaire, output: str, beside: Path, simulated: bool) -> Any:
    from discreet.survey.bulk import SheetFile

    if output.lower().endswith(".csv"):
        return _Words(survey, beside, simulated)
    return SheetFile(beside, survey, simulated)


@click.command(
    epilog=example(
        "discreet survey tally questionnaire.yaml sheets.parquet -o tally.json",
        "discreet survey tally questionnaire.yaml 'monday/*.jsonl' tuesday.csv -o tally.json",
        "discreet survey tally questionnaire.yaml --merge east.json --merge west.json -o all.json",
    )
)
@click.argument("path", metavar="QUESTIONNAIRE")
@click.argument("sheets", nargs=-1)
@click.option("-o", "--output", required=True, help="The tally file to write.")
@click.option("--merge", multiple=True, metavar="TALLY", help="Also add this tally file.")
@json_option
def tally(
    path: str, sheets: tuple[str, ...], output: str, merge: tuple[str, ...], as_json: bool
) -> None:
    """Add up SHEETS that answer a QUESTIONNAIRE: .jsonl (one a line), .csv in words, or .parquet.

    A bad sheet is counted by its fault, and nothing else is lost. Text and Parquet are tallied
    apart and then added; tallies that are added must not share sheets.
    """
    from discreet.survey.bulk import tally_parquet
    from discreet.survey.tally import Tally

    survey = read_questionnaire(path)
    if not sheets and not merge:
        raise click.UsageError("Name at least one file of sheets, or a tally with --merge.")
    tables = [source for source in sheets if not source.lower().endswith((*LINES, ".csv"))]
    counted = Tally(survey)
    with progress("tallying", "sheets") as advance:
        for one in _sheets(counted, [source for source in sheets if source not in tables]):
            counted.add(one)
            advance(len(counted.seen) + counted.repeated + counted.rejected.total())
        if tables:
            source: Any = tables if len(tables) > 1 else tables[0]
            counted = counted + tally_parquet(survey, source, progress=advance)
    for other in merge:
        with about(other):
            counted = counted + read_sheet_tally(other)
    write(output, counted.to_json())
    facts = {
        "counted": counted.people,
        "different": len(counted.distinct()[0]),
        "repeated": counted.repeated,
        "rejected": dict(counted.rejected),
    }
    if as_json:
        print_json({"output": output, **facts, "simulated": counted.simulated})
        return
    printer = console()
    printer.print(f"{counted.people:,} sheets counted, {facts['different']:,} different")
    printer.print(f"{counted.repeated:,} repeated, {counted.rejected.total():,} rejected")
    for reason, number in sorted(counted.rejected.items()):
        printer.print(f"  {number:,} {reason}")
    printer.print(f"{output}: {survey.digest}", soft_wrap=True)


def _sheets(tally: Tally, sources: Sequence[str]) -> Iterator[Sheet | str]:
    for source in sources:
        found = [source] if os.path.isfile(source) else sorted(glob.glob(source, recursive=True))
        if not found:
            raise FormatError(f"{source}: there is no such file")
        for name in found:
            yield from _rows(tally, name) if name.lower().endswith(".csv") else _lines(name)


def _lines(name: str) -> Iterator[str]:
    try:
        with open(name, encoding="utf-8", errors="replace") as file:
            yield from (line for line in file if line.strip())
    except OSError as error:
        raise FormatError(f"{name}: cannot be read: {error.strerror}") from None


def _rows(tally: Tally, name: str) -> Iterator[Sheet | str]:
    """Sheets of a CSV file in words; a row that makes no sense goes on as text, to be rejected."""
    from discreet.survey.sheet import Sheet

    survey = tally.questionnaire
    places = [{a: k for k, a in enumerate(survey.cells[n].labels)} for n in survey.names]
    try:
        with open(name, encoding="utf-8", newline="") as file:
            reader = csv.DictReader(file)
            found = set(reader.fieldnames or ())
            tally.simulated |= SIMULATED in found
            identity = SIMULATED if SIMULATED in found else ID
            lacking = {identity, *survey.names} - found
            if lacking:
                raise FormatError(f"{name}: lacks the column {min(lacking)}; is it a sheet file?")
            for row in reader:
                try:
                    cells = [p[str(row[n])] for n, p in zip(survey.names, places, strict=True)]
                    yield Sheet(survey.digest, str(row[identity]), tuple(cells))
                except (KeyError, DiscreetError):
                    yield "no sheet"
    except (OSError, UnicodeDecodeError) as error:
        raise FormatError(f"{name}: cannot be read: {error}") from None
