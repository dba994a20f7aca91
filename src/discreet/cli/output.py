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
    "console",
    "example",
    "json_option",
    "note",
    "print_facts",
    "print_json",
    "print_promise",
    "progress",
    "quiet",
    "quiet_option",
    "table",
    "warn",
]

PATIENCE = 2.0
"""Seconds of silence before a progress bar appears."""

QUIET = "discreet.quiet"


def _hush(context: click.Context, _: click.Parameter, value: bool) -> None:
    if value:
        context.find_root().meta[QUIET] = True


quiet_option = click.Option(
    ["--quiet"],
    is_flag=True,
    expose_value=False,
    callback=_hush,
    help="Print errors, warnings about privacy and the result; nothing else.",
)

json_option = click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")


def example(*lines: str) -> str:
    """Format example lines for the end of a command's help."""
    return "\n".join(["\b", "Example:", *(f"  {line}" for line in lines)])


def console(*, stderr: bool = False) -> Console:
    """Make a console that prints text unchanged; colours only at a terminal."""
    from rich.console import Console

    return Console(stderr=stderr, markup=False, highlight=False, emoji=False)


def quiet() -> bool:
    """Return whether ``--quiet`` was given, before or after the name of the command."""
    context = click.get_current_context(silent=True)
    return context is not None and bool(context.find_root().meta.get(QUIET))


def note(line: str) -> None:
    """Print a line on standard error, unless ``--quiet`` was given."""
    if not quiet():
        click.echo(line, err=True)


def warn(sentence: str) -> None:
    """Print a warning on standard error; the command continues."""
    note(f"discreet: {sentence}")


def print_promise(promise: Any, printer: Console | None = None) -> None:
    """Print a guarantee in words, on standard output unless a console is given.

    At a terminal, lines are wrapped; in a file or pipe they are not.
    """
    from discreet.report.terminal import Hanging

    printer = printer or console()
    if printer.is_terminal:
        printer.print(Hanging(str(promise)))
    else:
        printer.print(str(promise), soft_wrap=True)


def table(title: str, *columns: str) -> Any:
    """Make an empty table; see :func:`discreet.report.terminal.table`."""
    from discreet.report.terminal import table as made

    return made(title, *columns)


def _plain(value: Any) -> Any:
    """Convert a value for JSON: infinity becomes "inf", NaN becomes null."""
    if isinstance(value, float):
        if math.isnan(value):
            return None
        return value if math.isfinite(value) else ("inf" if value > 0 else "-inf")
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    return value


def print_json(body: Mapping[str, Any]) -> None:
    """Print one JSON object on standard output."""
    click.echo(json.dumps(_plain(body), indent=1, ensure_ascii=False, allow_nan=False))


def print_facts(facts: Mapping[str, Any], as_json: bool) -> None:
    """Print named values: one JSON object, or one line per value."""
    if as_json:
        print_json(facts)
        return
    for name, value in facts.items():
        click.echo(f"{name:<10} {', '.join(value) if isinstance(value, list) else value}")


@contextmanager
def progress(title: str, unit: str = "rows", hidden: bool = False) -> Iterator[Callable[..., None]]:
    """Yield a function ``(done, total=None)`` that draws a progress bar if the work takes long.

    Parameters
    ----------
    title : str
    unit : str
        Unit of the progress, as a plural noun.
    hidden : bool
        Draw nothing, for instance because the output itself fills the terminal.
    """
    if hidden or quiet() or not sys.stderr.isatty():
        yield lambda done, total=None: None
        return
    begun = time.monotonic()
    bar: Any = None
    task: Any = None

    def advance(done: int, total: int | None = None) -> None:
        nonlocal bar, task
        if time.monotonic() - begun <= PATIENCE:
            return
        if bar is None:
            bar = _bar(unit)
            task = bar.add_task(title, total=total)
        bar.update(task, completed=done, total=total)

    try:
        yield advance
    finally:
        if bar is not None:
            bar.stop()


def _bar(unit: str) -> Any:
    """A rich progress bar on standard error, started."""
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    bar = Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn(f"{{task.completed:,}} {unit}"),
        TimeElapsedColumn(),
        console=console(stderr=True),
        transient=True,
    )
    bar.start()
    return bar
