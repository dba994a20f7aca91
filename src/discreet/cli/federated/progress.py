"""Progress output of federated commands: at least one line every two seconds.

Every command runs inside :func:`start_progress_reporter`. A thread watches the clock, so a command
may block anywhere: if nothing was printed for two seconds, the thread prints the current step.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import click

from discreet.cli.output import is_quiet, make_console

__all__ = ["ProgressReporter", "get_progress_reporter", "start_progress_reporter"]

SILENCE_SECONDS = 2.0
"""Seconds without output after which the current step is printed."""
MAX_SILENCE_SECONDS = 60.0
"""Most seconds between two repetitions of the same step: they double from 2 seconds on."""
TICK_SECONDS = 0.1


class ProgressReporter:
    """Prints lines, and between them the current step.

    The step is shown as a bar with the elapsed seconds at a terminal, as repeated lines elsewhere.

    Parameters
    ----------
    step : str
        The first step.
    clock : callable
        Returns seconds.
    """

    def __init__(self, step: str = "starting", clock: Callable[[], float] = time.monotonic) -> None:
        self.clock, self.lock, self.is_paused = clock, threading.RLock(), False
        self.last_output_time = clock()
        self.is_quiet = is_quiet()  # here, because contexts belong to a thread
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
            if not self.is_quiet:
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
                self.is_quiet
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
            from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
            from rich.table import Column

            # the text is cut at a narrow terminal; parts come from the collector, so no markup
            text_layout = Column(ratio=1, no_wrap=True)
            text_column = TextColumn("{task.description}", markup=False, table_column=text_layout)
            bar_columns = (TimeElapsedColumn(), BarColumn(12), text_column)
            stderr_console = make_console(stderr=True)
            self._bar = Progress(*bar_columns, console=stderr_console, transient=True, expand=True)
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
def start_progress_reporter() -> Iterator[ProgressReporter]:
    """Report progress while the block runs; remove the bar at the end."""
    reporter, stop_event = ProgressReporter(), threading.Event()

    def watch_clock() -> None:
        while not stop_event.wait(TICK_SECONDS):
            reporter.tick()

    threading.Thread(target=watch_clock, daemon=True).start()
    try:
        yield reporter
    finally:
        stop_event.set()
        reporter.close()


def get_progress_reporter() -> ProgressReporter:
    """Return the progress reporter of the running command."""
    context = click.get_current_context(silent=True)
    reporter = None if context is None else context.find_object(ProgressReporter)
    return reporter or ProgressReporter()
