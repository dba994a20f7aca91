"""Output of all commands: text, tables, JSON and progress."""

from __future__ import annotations

import json
import math
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from rich.console import Console

__all__ = [
    "QUIET_KEY",
    "ProgressReporter",
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
    "watch_clock",
]

SILENCE_SECONDS = 2.0
"""Seconds without output after which the current step is shown."""
TICK_SECONDS = 0.1
"""Seconds between two looks at the clock."""
MAX_SILENCE_SECONDS = 60.0
"""Most seconds between two repetitions of the same step: they double from 2 seconds on."""

QUIET_KEY = "discreet.quiet"
"""Key of ``--quiet`` in the settings that all commands of a run share."""

quiet_option = click.Option(
    ["--quiet"],
    is_flag=True,
    help="Print only the result, errors and warnings about privacy.",
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


class ProgressReporter:
    """Prints lines, and between them the current step.

    The step is shown as a bar with the elapsed seconds at a terminal, as repeated lines elsewhere.

    Parameters
    ----------
    step : str
        The first step.
    clock : callable
        Returns seconds.
    unit : str
        Unit of the progress, as a plural noun, if the bar shows it.
    """

    def __init__(
        self,
        step: str = "starting",
        clock: Callable[[], float] = time.monotonic,
        unit: str = "",
    ) -> None:
        self.unit = unit
        self.clock, self.lock, self.is_paused = clock, threading.RLock(), False
        self.last_output_time = clock()
        context = click.get_current_context(silent=True)  # here: contexts belong to a thread
        self._run_settings = {} if context is None else context.meta
        self.repeat_after = SILENCE_SECONDS
        self.last_line = ""
        self._bar: Any = None
        self._task_id: Any = None
        self._begin_step(step)

    def _begin_step(self, step: str) -> None:
        self.step, self.step_start, self.done, self.total = step, self.clock(), 0, 0

    def say(self, line: str) -> None:
        """Print a line, which becomes the current step."""
        with self.lock:
            self.close()
            if not self._run_settings.get(QUIET_KEY):
                print(line, file=sys.stderr, flush=True)
            self.last_output_time, self.repeat_after = self.clock(), SILENCE_SECONDS
            # drop the remaining seconds: they change before the line is repeated
            self._begin_step(line.rpartition(", ")[0] if line.endswith(" s left") else line)

    def show(self, step: str, done: int = 0, total: int = 0) -> None:
        """Set the current step and its progress; a total of 0 means unknown."""
        with self.lock:
            if step != self.step:
                self.close()
                self._begin_step(step)
                self.repeat_after = SILENCE_SECONDS
            if total and done >= total:
                self.close()
                self._begin_step(f"{step}: done, going on")
            else:
                self.done, self.total = done, total

    def tick(self) -> None:
        """Print the current step if there was no output for too long."""
        with self.lock:
            if (
                self._run_settings.get(QUIET_KEY)
                or self.is_paused
                or self.clock() - self.last_output_time < self.repeat_after
            ):
                return
            if sys.stderr.isatty():
                self._draw_bar()
                return
            progress_text = f": {100 * self.done // self.total} %" if self.total else " …"
            has_news = f"{self.step}{progress_text}" != self.last_line
            self.last_line = f"{self.step}{progress_text}"
            self.last_output_time = self.clock()
            self.repeat_after = (
                SILENCE_SECONDS
                if has_news and self.total
                else min(2 * self.repeat_after, MAX_SILENCE_SECONDS)
            )
            elapsed_text = (
                "" if self.total else f", {self.last_output_time - self.step_start:.0f} s"
            )
            print(f"{self.last_line}{elapsed_text}", file=sys.stderr, flush=True)

    def _draw_bar(self) -> None:
        if self._bar is None:
            from rich.progress import BarColumn, Progress, ProgressColumn, TextColumn
            from rich.progress import TimeElapsedColumn as ElapsedColumn
            from rich.table import Column

            # the text is cut at a narrow terminal; parts come from the collector, so no markup
            text_layout = None if self.unit else Column(ratio=1, no_wrap=True)
            text = TextColumn("{task.description}", markup=False, table_column=text_layout)
            columns: list[ProgressColumn] = [ElapsedColumn(), BarColumn(12), text]
            if self.unit:
                amount = TextColumn(f"{{task.completed:,}} {self.unit}")
                columns = [text, BarColumn(), amount, ElapsedColumn()]
            console, expand = make_console(stderr=True), not self.unit
            self._bar = Progress(*columns, console=console, transient=True, expand=expand)
            self._bar.start()
            self._task_id = self._bar.add_task(self.step, total=None)
        self._bar.update(self._task_id, completed=self.done, total=self.total or None)

    def close(self) -> None:
        """Remove the progress bar."""
        with self.lock:
            if self._bar is not None:
                self._bar.stop()
            self._bar = None

    @contextmanager
    def pause_output(self) -> Iterator[None]:
        """Suppress progress inside the block, for a question or a view that refreshes itself."""
        with self.lock:
            self.close()
            self.is_paused = True
        try:
            yield
        finally:
            with self.lock:
                self.last_output_time, self.is_paused = self.clock(), False


@contextmanager
def watch_clock(reporter: ProgressReporter) -> Iterator[None]:
    """Let a thread look at the clock while the block runs, which may be blocked in one call."""
    stop_event = threading.Event()

    def look_regularly() -> None:
        while not stop_event.wait(TICK_SECONDS):
            reporter.tick()

    clock_thread = threading.Thread(target=look_regularly, daemon=True)
    clock_thread.start()
    try:
        yield
    finally:
        stop_event.set()
        clock_thread.join()
        reporter.close()


@contextmanager
def show_progress(
    title: str, unit: str = "rows", hidden: bool = False
) -> Iterator[Callable[..., None]]:
    """Yield a function ``(done, total=None)``, and draw a progress bar if the work takes long.

    The bar appears whether or not the function is called.

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
    reporter = ProgressReporter(title, unit=unit)

    def report_progress(done: int, total: int | None = None) -> None:
        reporter.show(title, done, total or 0)
        reporter.tick()

    with watch_clock(reporter):
        yield report_progress
