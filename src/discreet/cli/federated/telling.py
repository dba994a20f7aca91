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

from discreet.cli.output import console, quiet

__all__ = ["Telling", "aloud", "current"]

SILENCE = 2.0
"""Seconds without output after which the current step is printed."""
LONGEST = 60.0
"""Most seconds between two repetitions of the same step: they double from 2 seconds on."""
TICK = 0.1


class Telling:
    """Prints lines, and between them the current step.

    The step is shown as a bar with the elapsed seconds at a terminal, as repeated lines elsewhere.

    Parameters
    ----------
    what : str
        The first step.
    clock : callable
        Returns seconds.
    """

    def __init__(self, what: str = "starting", clock: Callable[[], float] = time.monotonic) -> None:
        self.clock, self.lock, self.asking = clock, threading.RLock(), False
        self.heard, self.hushed = clock(), quiet()  # here, because contexts belong to a thread
        self.patience = SILENCE
        self.said_last = ""
        self._bar: Any = None
        self._task: Any = None
        self._begin(what)

    def _begin(self, what: str) -> None:
        self.what, self.since, self.done, self.whole = what, self.clock(), 0, 0

    def say(self, line: str) -> None:
        """Print a line, which becomes the current step."""
        with self.lock:
            self.close()
            if not self.hushed:
                print(line, file=sys.stderr, flush=True)
            self.heard, self.patience = self.clock(), SILENCE
            # drop the remaining seconds: they change before the line is repeated
            self._begin(line.rpartition(", ")[0] if line.endswith(" s left") else line)

    def show(self, what: str, done: int = 0, whole: int = 0) -> None:
        """Set the current step and its progress; a total of 0 means unknown."""
        with self.lock:
            if what != self.what:
                self.close()
                self._begin(what)
                self.patience = SILENCE
            if whole and done >= whole:
                self.close()
                self._begin(f"{what}: done, going on")
            else:
                self.done, self.whole = done, whole

    def tick(self) -> None:
        """Print the current step if there was no output for too long."""
        with self.lock:
            if self.hushed or self.asking or self.clock() - self.heard < self.patience:
                return
            if sys.stderr.isatty():
                self._draw()
                return
            far = f": {100 * self.done // self.whole} %" if self.whole else " …"
            news = f"{self.what}{far}" != self.said_last
            self.said_last = f"{self.what}{far}"
            self.heard = self.clock()
            self.patience = SILENCE if news and self.whole else min(2 * self.patience, LONGEST)
            spent = "" if self.whole else f", {self.heard - self.since:.0f} s"
            print(f"{self.said_last}{spent}", file=sys.stderr, flush=True)

    def _draw(self) -> None:
        if self._bar is None:
            from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
            from rich.table import Column

            # the text is cut at a narrow terminal; parts come from the collector, so no markup
            wide = Column(ratio=1, no_wrap=True)
            what = TextColumn("{task.description}", markup=False, table_column=wide)
            columns, where = (TimeElapsedColumn(), BarColumn(12), what), console(stderr=True)
            self._bar = Progress(*columns, console=where, transient=True, expand=True)
            self._bar.start()
            self._task = self._bar.add_task(self.what, total=None)
        self._bar.update(self._task, completed=self.done, total=self.whole or None)

    def close(self) -> None:
        """Remove the progress bar."""
        with self.lock:
            if self._bar is not None:
                self._bar.stop()
            self._bar = None

    @contextmanager
    def asked(self) -> Iterator[None]:
        """Suppress progress inside the block, for a question or a view that refreshes itself."""
        with self.lock:
            self.close()
            self.asking = True
        try:
            yield
        finally:
            with self.lock:
                self.heard, self.asking = self.clock(), False


@contextmanager
def aloud() -> Iterator[Telling]:
    """Report progress while the block runs; remove the bar at the end."""
    made, over = Telling(), threading.Event()

    def watch() -> None:
        while not over.wait(TICK):
            made.tick()

    threading.Thread(target=watch, daemon=True).start()
    try:
        yield made
    finally:
        over.set()
        made.close()


def current() -> Telling:
    """Return the progress reporter of the running command."""
    context = click.get_current_context(silent=True)
    found = None if context is None else context.find_object(Telling)
    return found or Telling()
