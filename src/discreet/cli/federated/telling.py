"""How a federated command tells people what it does: nothing lasts two seconds unheard.

Every command runs inside :func:`aloud`. A thread looks at the clock, so that it does not matter
where a command is held up: if nothing was printed for two seconds, people hear what is going on.
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
"""Seconds without a word after which one hears what is going on."""
LONGEST = 60.0
"""Seconds between two repetitions of the same, at most: they come at 2, 4, 8, … seconds."""
TICK = 0.1


class Telling:
    """Says lines, and what is going on meanwhile.

    At a terminal that is a bar with the seconds so far, elsewhere a line now and then.

    Parameters
    ----------
    what : str
        What is going on at first.
    clock : callable
        Seconds.
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
        """Print a line: what is going on from now on."""
        with self.lock:
            self.close()
            if not self.hushed:
                print(line, file=sys.stderr, flush=True)
            self.heard, self.patience = self.clock(), SILENCE
            # the seconds that are left are others by the time this is repeated
            self._begin(line.rpartition(", ")[0] if line.endswith(" s left") else line)

    def show(self, what: str, done: int = 0, whole: int = 0) -> None:
        """Note what is going on and how far it is; without a whole nobody knows how far."""
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
        """Speak, if there was silence for too long."""
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

            # words are cut where the terminal is narrow; some are a collector's, so no markup
            wide = Column(ratio=1, no_wrap=True)
            what = TextColumn("{task.description}", markup=False, table_column=wide)
            columns, where = (TimeElapsedColumn(), BarColumn(12), what), console(stderr=True)
            self._bar = Progress(*columns, console=where, transient=True, expand=True)
            self._bar.start()
            self._task = self._bar.add_task(self.what, total=None)
        self._bar.update(self._task, completed=self.done, total=self.whole or None)

    def close(self) -> None:
        """Take the bar away."""
        with self.lock:
            if self._bar is not None:
                self._bar.stop()
            self._bar = None

    @contextmanager
    def asked(self) -> Iterator[None]:
        """Be quiet: people are asked something, or see a view that is drawn anew by itself."""
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
    """Tell people, and leave a clean terminal."""
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
    """Whoever tells people about the command that is running."""
    context = click.get_current_context(silent=True)
    found = None if context is None else context.find_object(Telling)
    return found or Telling()
