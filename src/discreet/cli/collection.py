"""What ``discreet local`` and ``discreet survey`` share on the side of the people who answer.

Each function makes the command for one kind of collection; the groups give it its name. What the
collector does with the answers is in :mod:`discreet.cli.tally`.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from inspect import cleandoc
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from discreet.cli.files import OUTPUT, replacing
from discreet.cli.output import console, example, json_option, note, print_json, progress
from discreet.errors import FormatError, PrivacyError, about

if TYPE_CHECKING:
    from discreet.collection.tally import Tally

__all__ = [
    "PLAN",
    "QUESTIONNAIRE",
    "Wording",
    "answering",
    "json_object",
    "promise_body",
    "read_collection",
    "read_tally",
    "simulating",
]


@dataclass(frozen=True)
class Wording:
    """Names of one kind of collection on the command line: nouns, commands and files."""

    kind: str
    group: str
    noun: str
    answer: str
    simulate: str
    formats: tuple[str, ...]
    file: str

    def counted(self, number: int) -> str:
        """Format a number of reports or sheets."""
        return f"{number:,} {self.noun}{'s' * (number != 1)}"

    @property
    def metavar(self) -> str:
        """Name of the document in usage lines."""
        return self.kind.upper()


PLAN = Wording("plan", "local", "report", "report", "perturb", (".parquet",), "plan.json")
QUESTIONNAIRE = Wording(
    "questionnaire",
    "survey",
    "sheet",
    "answer",
    "randomize",
    (".csv", ".parquet"),
    "questionnaire.yaml",
)


def promise_body(guarantee: Any) -> dict[str, Any]:
    """Make the JSON values of a guarantee, with its text."""
    return {**guarantee.to_body(), "text": str(guarantee)}


def read_collection(kind: Wording, path: str) -> Any:
    """Read a plan or questionnaire file."""
    with about(path):
        if kind is PLAN:
            from discreet.local.plan import Plan

            return Plan.read(path)
        from discreet.survey.questionnaire import Questionnaire

        return Questionnaire.read(path)


def read_tally(kind: Wording, path: str) -> Tally[Any]:
    """Read the tally of one kind of collection."""
    from discreet.collection.tally import Tally

    with about(path):
        tally = Tally.read(path)
        if tally.collection.kind != kind.kind:
            raise FormatError(
                f"this is the tally of a {tally.collection.kind}, not of a {kind.kind}; use the "
                f"commands of discreet {'survey' if kind is PLAN else 'local'}"
            )
        return tally


def json_object(path: str) -> dict[str, Any]:
    """Read the record of one person; errors do not quote its content."""
    from discreet.documents import RepeatedKeyError, parse_json

    try:
        text = sys.stdin.read() if path == "-" else Path(path).read_text(encoding="utf-8")
    except FileNotFoundError:
        raise FormatError(f"{path}: there is no such file") from None
    except (OSError, UnicodeDecodeError) as error:
        raise FormatError(f"{path}: cannot be read as text: {type(error).__name__}") from None
    try:
        found = parse_json(text)
    except RepeatedKeyError:
        raise FormatError(f"{path}: this record has a key twice; remove one of them") from None
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise FormatError(f'{path}: a record is one JSON object: {{"feature": value, …}}')
    return found


def answering(kind: Wording) -> click.Command:
    """Make ``local report`` or ``survey answer``, which run on one person's device."""
    line = f"discreet {kind.group} {kind.answer} {kind.file} me.json --store kept"

    @click.command(kind.answer, epilog=example(f"{line} > {kind.noun}.json", f"{line} --allow 3"))
    @click.argument("path", metavar=kind.metavar)
    @click.argument("record")
    @click.option(
        "--store", required=True, help=f"The folder of this person; the {kind.noun} is kept there."
    )
    @click.option(
        "--allow",
        type=float,
        metavar="EPSILON",
        help="What all answers from this folder may cost together; kept for later answers. "
        "Without it: what the first collection costs.",
    )
    @click.option(
        "--unprotected", is_flag=True, help="Answer although no epsilon is promised: the truth."
    )
    @json_option
    def command(
        path: str,
        record: str,
        store: str,
        allow: float | None,
        unprotected: bool,
        as_json: bool,
        again: bool = False,
        personal: str | None = None,
        **chosen: Any,
    ) -> None:
        from discreet.collection.respondent import FolderStore, Respondent

        kept = FolderStore(store)
        collection = read_collection(kind, path)
        person = Respondent(collection, kept, unprotected=unprotected, **chosen)
        own = None if personal is None else json_object(personal)
        given = json_object(record)
        if allow is not None:
            kept.allow(allow)
        made = person.report(given, own, again=again)
        if as_json:
            print_json({kind.noun: made.to_body(), "guarantee": promise_body(person.guarantee)})
        else:
            click.echo(made.to_json(), nl=False)

    command.help = cleandoc(f"""
    Print the one randomized {kind.noun} of the person whose RECORD this is.

    RECORD is a JSON object, or - for standard input. The {kind.noun} is drawn once and kept in the
    folder before it is printed. Running the command again prints the same {kind.noun}, whatever
    the record says then: a second draw would give away more than the {kind.metavar} promises. What
    was answered from one folder is added up, and refused beyond what its owner allowed.
    """)
    if kind is PLAN:
        command = click.option(
            "--group", type=click.IntRange(min=0), help="The question you were assigned."
        )(command)
        return click.option(
            "--again", is_flag=True, help="A further report, where the plan allows several."
        )(command)
    command = click.option(
        "--personal", help="JSON: own answers to the personal questions, where asked for."
    )(command)
    return click.option(
        "--by-hand", is_flag=True, help="RECORD is what was ticked after a draw by hand."
    )(command)


def simulating(kind: Wording) -> click.Command:
    """Make ``local perturb`` or ``survey randomize``, which simulate many devices on raw data."""
    line = f"discreet {kind.group} {kind.simulate} {kind.file} people.csv -o {kind.noun}s"
    named = " or ".join(kind.formats)

    @click.command(kind.simulate, epilog=example(*(f"{line}{end}" for end in kind.formats)))
    @click.argument("path", metavar=kind.metavar)
    @click.argument("data")
    @click.option("-o", "--output", type=OUTPUT, required=True, help=f"The {named} file to write.")
    @click.option(
        "--seed", type=click.IntRange(min=0), help="Repeatable noise: an experiment, no promise."
    )
    @json_option
    def command(path: str, data: str, output: str, seed: int | None, as_json: bool) -> None:
        from discreet.collection.simulation import answers
        from discreet.encoding import columns_of
        from discreet.randomness import as_random
        from discreet.tables.engines import ordered_batches

        collection, random, done = read_collection(kind, path), as_random(seed), 0
        _check_simulable(kind, collection, path, output)
        console(stderr=True).print(
            f"PrivacyWarning: {data} is raw data, and this command reads it. That is a simulation: "
            "in a collection each person randomizes on their own device.",
            style="yellow",
        )
        with (
            replacing(output) as draft,
            _opened(collection, output, draft, random.simulated) as file,
            progress("randomizing") as advance,
            about(data),
        ):
            for batch in ordered_batches(data, collection.names):
                codes = collection.encoded(columns_of(batch, collection.names))
                for question, rows, values in answers(collection, codes, random):
                    file.write(question, random.raw(16 * len(rows)).reshape(-1, 16), values)
                done += batch.num_rows
                advance(done)
        promise = collection.guarantee.under(simulated=random.simulated)
        if as_json:
            facts = {"output": output, f"{kind.noun}s": done}
            print_json({**facts, "guarantee": promise_body(promise)})
            return
        note(f"{output}: {kind.counted(done)}")
        note(str(promise))

    command.help = cleandoc(f"""
    Simulate one device for each row of DATA (CSV or Parquet): a {kind.noun} per row.

    This command READS RAW DATA. In a real collection nobody holds such a table: every person runs
    "discreet {kind.group} {kind.answer}" on a device of their own.
    """)
    return command


def _check_simulable(kind: Wording, collection: Any, path: str, output: str) -> None:
    if collection.reports > 1:
        raise PrivacyError(
            f"{path}: lets a person send {collection.reports} reports, this command makes one per "
            "row; plan with --reports 1"
        )
    if getattr(collection, "personal", "device") == "own":
        raise FormatError(
            f"{path}: asks for people's own personal answers, which a table of private ones does "
            "not hold; write personal: device to simulate"
        )
    if not output.lower().endswith(kind.formats):
        raise FormatError(
            f"{output}: {kind.noun}s are written as {' or '.join(kind.formats)}; name it so"
        )


def _opened(collection: Any, output: str, draft: Path, simulated: bool) -> Any:
    from discreet.collection.files import ReportFile
    from discreet.collection.texts import SheetCsv

    opened = SheetCsv if output.lower().endswith(".csv") else ReportFile
    return opened(draft, collection, simulated)
