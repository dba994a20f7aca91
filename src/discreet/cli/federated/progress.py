"""Progress output of federated commands: at least one line every two seconds.

Every command runs inside :func:`start_progress_reporter`. A thread watches the clock, so a command
may block anywhere: if nothing was printed for two seconds, the thread prints the current step.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import click

from discreet.cli.output import ProgressReporter, watch_clock

__all__ = ["ProgressReporter", "get_progress_reporter", "start_progress_reporter"]


@contextmanager
def start_progress_reporter() -> Iterator[ProgressReporter]:
    """Report progress while the block runs; remove the bar at the end."""
    reporter = ProgressReporter()
    with watch_clock(reporter):
        yield reporter


def get_progress_reporter() -> ProgressReporter:
    """Return the progress reporter of the running command."""
    context = click.get_current_context(silent=True)
    reporter = None if context is None else context.find_object(ProgressReporter)
    return reporter or ProgressReporter()
