"""Output of all commands: text, tables, JSON and progress."""

from __future__ import annotations

import json
import math
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from rich.console import Console

__all__ = [
    "QUIET_KEY",
    "format_example",
    "is_quiet",
    "json_option",
    "make_console",
    "make_table",
    "print_facts",
    "print_guarantee",
    "print_json",
    "print_note",
    "print_warning",
    "quiet_option",
    "show_progress",
]

BAR_DELAY_SECONDS = 2.0
"""Seconds of silence before a progress bar appears."""

QUIET_KEY = "discreet.quiet"
"""Key of ``--quiet`` in the settings that all commands of a run share."""

quiet_option = click.Option(
    ["--quiet"],
    is_flag=True,
    help="Print errors, warnings about privacy and the result; nothing else.",
)

json_option = click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")


def format_example(*lines: str) -> str:
    """Format example lines for the end of a command's help."""
    return "\n".join(["\b", "Example:", *(f"  {line}" for line in lines)])


def make_console(*, stderr: bool = False) -> Console:
    """Make a console that prints text unchanged; colours only at a terminal."""
    from rich.console import Console

    return Console(stderr=stderr, markup=False, highlight=False, emoji=False)


def is_quiet() -> bool:
    """Return whether ``--quiet`` was given, before or after the name of the command."""
    context = click.get_current_context(silent=True)
    return context is not None and bool(context.meta.get(QUIET_KEY))


def print_note(line: str) -> None:
    """Print a line on standard error, unless ``--quiet`` was given."""
    if not is_quiet():
        click.echo(line, err=True)


def print_warning(sentence: str) -> None:
    """Print a warning on standard error; the command continues."""
    print_note(f"discreet: {sentence}")


def print_guarantee(guarantee: Any, printer: Console | None = None) -> None:
    """Print a guarantee in words, on standard output unless a console is given.

    At a terminal, lines are wrapped; in a file or pipe they are not.
    """
    from discreet.display.terminal import HangingText

    printer = printer or make_console()
    if printer.is_terminal:
        printer.print(HangingText(str(guarantee)))
    else:
        printer.print(str(guarantee), soft_wrap=True)


def make_table(title: str, *columns: str) -> Any:
    """Make an empty table; see :func:`discreet.display.terminal.make_table`."""
    from discreet.display.terminal import make_table as make_terminal_table

    return make_terminal_table(title, *columns)


def _to_json_value(value: Any) -> Any:
    """Convert a value for JSON: infinity becomes "inf", NaN becomes null."""
    if isinstance(value, float):
        if math.isnan(value):
            return None
        return value if math.isfinite(value) else ("inf" if value > 0 else "-inf")
    if isinstance(value, Mapping):
        return {str(key): _to_json_value(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_to_json_value(item) for item in value]
    return value


def print_json(body: Mapping[str, Any]) -> None:
    """Print one JSON object on standard output."""
    click.echo(json.dumps(_to_json_value(body), indent=1, ensure_ascii=False, allow_nan=False))


def print_facts(facts: Mapping[str, Any], as_json: bool) -> None:
    """Print named values: one JSON object, or one line per value."""
    if as_json:
        print_json(facts)
        return
    for name, value in facts.items():
        click.echo(f"{name:<10} {', '.join(value) if isinstance(value, list) else value}")


@contextmanager
def show_progress(
    title: str, unit: str = "rows", hidden: bool = False
) -> Iterator[Callable[..., None]]:
    """Yield a function ``(done, total=None)`` that draws a progress bar if the work takes long.

    Parameters
    ----------
    title : str
    unit : str
        Unit of the progress, as a plural noun.
    hidden : bool
        Draw nothing, for instance because the output itself fills the terminal.
    """
    if hidden or is_quiet() or not sys.stderr.isatty():
        yield lambda done, total=None: None
        return
    start_time = time.monotonic()
    progress_bar: Any = None
    task_id: Any = None

    def report_progress(done: int, total: int | None = None) -> None:
        nonlocal progress_bar, task_id
        if time.monotonic() - start_time <= BAR_DELAY_SECONDS:
            return
        if progress_bar is None:
            progress_bar = _start_bar(unit)
            task_id = progress_bar.add_task(title, total=total)
        progress_bar.update(task_id, completed=done, total=total)

    try:
        yield report_progress
    finally:
        if progress_bar is not None:
            progress_bar.stop()


def _start_bar(unit: str) -> Any:
    """A rich progress bar on standard error, started."""
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    progress_bar = Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn(f"{{task.completed:,}} {unit}"),
        TimeElapsedColumn(),
        console=make_console(stderr=True),
        transient=True,
    )
    progress_bar.start()
    return progress_bar
