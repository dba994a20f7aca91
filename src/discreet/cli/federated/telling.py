"""How a party's process tells people what it does: lines for news, a bar or percents for work."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from discreet.cli.output import console

__all__ = ["Telling", "telling"]

SILENCE = 2.0
"""Seconds after which work that goes on is spoken of."""


class Telling:
    """Says lines, and shows how far longer work is.

    At a terminal that is a bar, elsewhere a line every two seconds.
    """

    def __init__(self) -> None:
        self.what, self.since = "", 0.0
        self._bar: Any = None
        self._task: Any = None

    def say(self, line: str) -> None:
        """Print a line."""
        self.close()
        print(line, file=sys.stderr, flush=True)

    def show(self, what: str, done: int, whole: int) -> None:
        """Tell how far something is, if it takes longer than a moment."""
        now = time.monotonic()
        if what != self.what:
            self.close()
            self.what, self.since = what, now
        if done >= whole:
            self.close()
        elif now - self.since >= SILENCE:
            self._draw(what, done, whole)

    def _draw(self, what: str, done: int, whole: int) -> None:
        if not sys.stderr.isatty():
            self.since = time.monotonic()
            print(f"{what}: {100 * done // max(1, whole)} %", file=sys.stderr, flush=True)
            return
        if self._bar is None:
            from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

            columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
            self._bar = Progress(*columns, console=console(stderr=True), transient=True)
            self._bar.start()
            self._task = self._bar.add_task(what, total=whole)
        self._bar.update(self._task, completed=done, total=whole)

    def close(self) -> None:
        """Take the bar away."""
        if self._bar is not None:
            self._bar.stop()
        self._bar, self.what = None, ""


@contextmanager
def telling() -> Iterator[Telling]:
    """Tell people, and leave a clean terminal."""
    made = Telling()
    try:
        yield made
    finally:
        made.close()
