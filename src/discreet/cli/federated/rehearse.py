"""``discreet federated rehearse``: a complete round on one machine, one process per party."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from discreet.cli.federated.progress import ProgressReporter, get_progress_reporter
from discreet.cli.federated.setup import add_terms_options
from discreet.cli.files import make_output, write_file
from discreet.cli.output import format_example, make_console, make_table
from discreet.cli.person_options import person_column_options
from discreet.errors import MissingDependencyError, SchemaError

if TYPE_CHECKING:
    from discreet.federated.agreement.manifest import Manifest
    from discreet.federated.rehearsal import PartyProgress, RehearsalRequest

__all__ = ["rehearse"]


@click.command(
    epilog=format_example(
        "discreet federated rehearse schema.json --provider a=a.csv --provider b=b.csv \\",
        "    --epsilon 1 -o model.json",
        "discreet federated rehearse schema.json --provider a=a.csv --provider b=b.csv \\",
        "    --label l=labels.csv --id patient --epsilon 1 -o model.json",
    )
)
@click.argument("schema")
@click.option(
    "--provider",
    "providers",
    multiple=True,
    required=True,
    help="A provider and its table, as NAME=TABLE; once for each provider.",
)
@click.option(
    "--label", help="The label provider and its table, as NAME=TABLE; makes the round vertical."
)
@click.option(
    "--columns",
    multiple=True,
    help="Who counts which features, as NAME=feature,feature; needed if tables share features.",
)
@click.option("--id", "id_column", help="Column by which rows are aligned; for vertical rounds.")
@person_column_options
@add_terms_options
@click.option(
    "--judge/--no-judge",
    default=True,
    show_default=True,
    help="Judge candidate models in a second round, for 5 % of epsilon, where that pays.",
)
@click.option(
    "--paillier", is_flag=True, help="Hide counts by Paillier encryption instead of masks."
)
@click.option(
    "--deadline",
    type=click.FloatRange(1),
    default=600,
    show_default=True,
    help="Seconds for the whole round.",
)
@click.option("-o", "--output", type=make_output("model"), help="The model file to write.")
def rehearse(
    schema: str,
    providers: tuple[str, ...],
    label: str | None,
    deadline: float,
    output: str | None,
    **how: Any,
) -> None:
    """Run a whole round on this machine, with keys that are thrown away.

    Every party is a process, as it would be on its own machine. This machine sees every table, so
    nobody is protected: use it to try out a schema, tables and settings.
    """
    try:
        from discreet.federated.rehearsal import (
            RehearsalRequest,
            write_agreement,
            write_judging_agreement,
        )
    except ModuleNotFoundError as error:
        raise MissingDependencyError(str(error.name), "federated") from None
    from discreet.model import NaiveBayesModel
    from discreet.schema.schema import Schema

    reporter = get_progress_reporter()
    named_tables = [_parse_named_table(provider_text) for provider_text in providers]
    if len(dict(named_tables)) < len(named_tables):
        raise SchemaError("two providers have the same name; every party needs its own")
    request = RehearsalRequest(
        Schema.read(schema),
        dict(named_tables),
        None if label is None else _parse_named_table(label),
        deadline=deadline,
        **how,
    )
    with tempfile.TemporaryDirectory(prefix="discreet-rehearsal-") as temporary_folder:
        folder = Path(temporary_folder)
        manifest, key_holder = write_agreement(request, folder, reporter.say)
        _run_round(request, folder, manifest, key_holder, reporter)
        if request.is_judged:
            reporter.say("the same parties judge candidate models")
            first_folder, folder = folder, folder / "judging"
            manifest = write_judging_agreement(request, first_folder, manifest, folder)
            _run_round(request, folder, manifest, key_holder, reporter)
        model = NaiveBayesModel.read(folder / "model.json")
    model = replace(model, guarantee=model.guarantee.void_if(rehearsed=True))
    if output is not None:
        write_file(output, model.to_json())
    reporter.say(str(model.guarantee))


def _run_round(
    request: RehearsalRequest,
    folder: Path,
    manifest: Manifest,
    key_holder: str | None,
    reporter: ProgressReporter,
) -> None:
    from discreet.federated.rehearsal import Rehearsal

    with Rehearsal(folder, manifest) as rehearsal:
        rehearsal.start_parties(request, key_holder)
        with _open_view(reporter) as update_view:
            rehearsal.watch(update_view)


def _parse_named_table(text: str) -> tuple[str, str]:
    party_name, separator, table_path = text.partition("=")
    if not separator or not table_path:
        raise SchemaError(f"{text!r} is not NAME=TABLE; write hospital-a=people.csv")
    return party_name, table_path


@contextmanager
def _open_view(reporter: ProgressReporter) -> Iterator[Any]:
    """Yield a function that updates a table at a terminal, or prints news as lines elsewhere."""
    if sys.stderr.isatty():
        from rich.live import Live

        with (
            reporter.pause_output(),
            Live(console=make_console(stderr=True), refresh_per_second=5) as live_display,
        ):
            yield lambda parties: live_display.update(_make_progress_table(parties))
        return
    yield _NewsPrinter(reporter).print_news


def _make_progress_table(parties: list[PartyProgress]) -> Any:
    progress_table = make_table("Rehearsal", "party", "part", "signed", "sent", "now")
    for party in parties:
        sent_text = f"{len(party.sent_messages)} of {party.due_count}" if party.due_count else ""
        progress_table.add_row(
            party.name, party.role, "yes" if party.has_signed else "no", sent_text, party.last_line
        )
    return progress_table


class _NewsPrinter:
    """Prints what has changed as lines of text."""

    def __init__(self, reporter: ProgressReporter) -> None:
        self.reporter = reporter
        self.printed_lines: set[str] = set()

    def print_news(self, parties: list[PartyProgress]) -> None:
        news_lines = [f"{party.name} has signed" for party in parties if party.has_signed]
        for party in parties:
            for message_name in party.sent_messages:
                recipient, _, message_kind = message_name.split(" ")
                news_lines.append(f"{party.name} has sent its {message_kind} for {recipient}")
            if party.last_line == "ended":
                news_lines.append(f"{party.name} has ended")
        for news_line in news_lines:
            if news_line not in self.printed_lines:
                self.printed_lines.add(news_line)
                self.reporter.say(news_line)
        waiting_texts = [
            f"{party.name}: {party.last_line}" for party in parties if party.last_line != "ended"
        ]
        self.reporter.show("; ".join(waiting_texts) or "going on")
