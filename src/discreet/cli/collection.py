"""What ``discreet local`` and ``discreet survey`` share on the side of the people who answer.

Each function makes the command for one kind of collection; the groups give it its name. What the
collector does with the answers is in :mod:`discreet.cli.tally`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from inspect import cleandoc
from typing import Any

import click

from discreet.cli.files import OUTPUT, open_replacement
from discreet.cli.output import (
    format_example,
    json_option,
    make_console,
    print_json,
    print_note,
    show_progress,
)
from discreet.errors import FormatError, PrivacyError
from discreet.files.atomic_writing import error_context

__all__ = [
    "PLAN",
    "QUESTIONNAIRE",
    "CollectionWording",
    "make_answer_command",
    "make_guarantee_body",
    "make_simulate_command",
    "read_collection",
]


@dataclass(frozen=True)
class CollectionWording:
    """Names of one kind of collection on the command line: nouns, commands and files."""

    kind: str
    command_group: str
    noun: str
    answer_command: str
    simulate_command: str
    file_suffixes: tuple[str, ...]
    document_file: str

    def format_count(self, count: int) -> str:
        """Format a number of reports or sheets."""
        return f"{count:,} {self.noun}{'s' * (count != 1)}"

    @property
    def metavar(self) -> str:
        """Name of the document in usage lines."""
        return self.kind.upper()


PLAN = CollectionWording("plan", "local", "report", "report", "perturb", (".parquet",), "plan.json")
QUESTIONNAIRE = CollectionWording(
    "questionnaire",
    "survey",
    "sheet",
    "answer",
    "randomize",
    (".csv", ".parquet"),
    "questionnaire.yaml",
)


def make_guarantee_body(guarantee: Any) -> dict[str, Any]:
    """Make the JSON values of a guarantee, with its text."""
    return {**guarantee.to_body(), "text": str(guarantee)}


def read_collection(wording: CollectionWording, path: str) -> Any:
    """Read a plan or questionnaire file."""
    from discreet.collection.protocol import load_document_class

    with error_context(path):
        return load_document_class(wording.kind).read(path)


def make_answer_command(
    wording: CollectionWording, *options: Callable[[click.Command], click.Command]
) -> click.Command:
    """Make ``local report`` or ``survey answer``, which run on one person's device."""
    command_line = (
        f"discreet {wording.command_group} {wording.answer_command} {wording.document_file} "
        "me.json --store kept"
    )

    @click.command(
        wording.answer_command,
        epilog=format_example(f"{command_line} > {wording.noun}.json", f"{command_line} --allow 3"),
    )
    @click.argument("path", metavar=wording.metavar)
    @click.argument("record")
    @click.option(
        "--store",
        required=True,
        help=f"Folder of this person, where the {wording.noun} is kept.",
    )
    @click.option(
        "--allow",
        type=float,
        metavar="EPSILON",
        help="Total epsilon that all answers from this folder may cost; kept for later answers. "
        "Without it: what the first collection costs.",
    )
    @click.option(
        "--unprotected",
        is_flag=True,
        help="Answer even if no epsilon is promised, so that the truth may be sent.",
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
        from discreet.collection.respondent import FolderStore, Respondent, read_record

        collection = read_collection(wording, path)
        folder_store = FolderStore(store)
        respondent = Respondent(collection, folder_store, unprotected=unprotected, **chosen)
        personal_answers = None if personal is None else read_record(personal)
        true_answers = read_record(record)
        if allow is not None:
            folder_store.set_allowance(allow)
        report = respondent.report(true_answers, personal_answers, again=again)
        if as_json:
            print_json(
                {
                    wording.noun: report.to_body(),
                    "guarantee": make_guarantee_body(respondent.guarantee),
                }
            )
        else:
            click.echo(report.to_json(), nl=False)

    command.help = cleandoc(f"""
    Print the one randomized {wording.noun} of the person whose RECORD this is.

    RECORD is a JSON object, or - for standard input. The {wording.noun} is drawn once and kept in
    the folder before it is printed. Running the command again prints the same {wording.noun},
    whatever the record says then: a second draw would give away more than the {wording.metavar}
    promises. The epsilons of all answers from one folder are added up; an answer that would exceed
    what its owner allowed is refused.
    """)
    for option in options:
        command = option(command)
    return command


def make_simulate_command(wording: CollectionWording) -> click.Command:
    """Make ``local perturb`` or ``survey randomize``, which simulate many devices on raw data."""
    command_line = (
        f"discreet {wording.command_group} {wording.simulate_command} {wording.document_file} "
        f"people.csv -o {wording.noun}s"
    )
    suffix_names = " or ".join(wording.file_suffixes)

    @click.command(
        wording.simulate_command,
        epilog=format_example(*(f"{command_line}{suffix}" for suffix in wording.file_suffixes)),
    )
    @click.argument("path", metavar=wording.metavar)
    @click.argument("data")
    @click.option(
        "-o", "--output", type=OUTPUT, required=True, help=f"The {suffix_names} file to write."
    )
    @click.option(
        "--seed",
        type=click.IntRange(min=0),
        help="Seed for repeatable noise: an experiment, which protects nobody.",
    )
    @json_option
    def command(path: str, data: str, output: str, seed: int | None, as_json: bool) -> None:
        from discreet.collection.parquet_reports import ReportFile
        from discreet.collection.simulation import write_simulated_reports
        from discreet.collection.text_reports import SheetCsv
        from discreet.randomness import as_random

        collection, random = read_collection(wording, path), as_random(seed)
        _require_simulable(wording, collection, path, output)
        file_class: Any = SheetCsv if output.lower().endswith(".csv") else ReportFile
        make_console(stderr=True).print(
            f"PrivacyWarning: {data} is raw data, and this command reads it. That is a simulation: "
            "in a collection each person randomizes on their own device.",
            style="yellow",
        )
        with (
            open_replacement(output) as draft,
            file_class(draft, collection, random.simulated) as report_file,
            show_progress("randomizing") as report_progress,
            error_context(data),
        ):
            report_count = write_simulated_reports(
                collection, data, report_file, random, progress=report_progress
            )
        guarantee = collection.guarantee.void_if(simulated=random.simulated)
        if as_json:
            summary = {"output": output, f"{wording.noun}s": report_count}
            print_json({**summary, "guarantee": make_guarantee_body(guarantee)})
            return
        print_note(f"{output}: {wording.format_count(report_count)}")
        print_note(str(guarantee))

    command.help = cleandoc(f"""
    Simulate one device for each row of DATA (CSV or Parquet): a {wording.noun} per row.

    This command READS RAW DATA. In a real collection nobody holds such a table: every person runs
    "discreet {wording.command_group} {wording.answer_command}" on a device of their own.
    """)
    return command


def _require_simulable(wording: CollectionWording, collection: Any, path: str, output: str) -> None:
    if collection.reports > 1:
        raise PrivacyError(
            f"{path}: lets a person send {collection.reports} reports, this command makes one per "
            "row; plan with --reports 1"
        )
    if collection.personal == "own":
        raise FormatError(
            f"{path}: asks for people's own personal answers, which a table of private answers "
            "does not hold; write personal: device to simulate"
        )
    if not output.lower().endswith(wording.file_suffixes):
        raise FormatError(
            f"{output}: {wording.noun}s are written as {' or '.join(wording.file_suffixes)}; "
            "choose such a name"
        )
