"""``discreet local report``: what runs on one person's device."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import click

from discreet.cli.local.plan import promise_of, read_plan
from discreet.cli.output import example, json_option, print_json
from discreet.errors import FormatError

__all__ = ["report"]


@click.command(
    epilog=example(
        "discreet local report plan.json me.json --store kept > report.json",
        """echo '{"age": 40, "sick": "no"}' | discreet local report plan.json - --store kept""",
    )
)
@click.argument("plan")
@click.argument("record")
@click.option("--store", required=True, help="The folder of this person; the report is kept there.")
@click.option("--group", type=click.IntRange(min=0), help="The question you were assigned.")
@click.option("--again", is_flag=True, help="A further report, where the plan allows several.")
@json_option
def report(
    plan: str, record: str, store: str, group: int | None, again: bool, as_json: bool
) -> None:
    """Print the one report of the person whose RECORD (a JSON object) this is.

    The report is drawn once and kept in the folder before it is printed. Running the command
    again prints the same report, whatever the record says then: a second draw would give away
    more than the PLAN promises. RECORD may be - for standard input.
    """
    from discreet.local.respondent import FolderStore, Respondent

    respondent = Respondent(read_plan(plan), FolderStore(store), group)
    made = respondent.report(_record(record), again=again)
    if as_json:
        promise = promise_of(respondent.guarantee)
        print_json({"report": made.to_body(), "guarantee": promise})
    else:
        click.echo(made.to_json(), nl=False)


def _record(path: str) -> dict[str, Any]:
    """Read a record; the message of an error repeats nothing of it."""
    try:
        text = sys.stdin.read() if path == "-" else Path(path).read_text(encoding="utf-8")
    except FileNotFoundError:
        raise FormatError(f"{path}: there is no such file") from None
    except (OSError, UnicodeDecodeError) as error:
        raise FormatError(f"{path}: cannot be read as text: {type(error).__name__}") from None
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise FormatError(f'{path}: a record is one JSON object: {{"feature": value, …}}')
    return found
