"""What a party reports while it works and waits."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

__all__ = ["NullListener", "ProgressListener", "StatusReporter"]

BETWEEN_STEPS = "going on"
"""Progress text between two named steps."""


class ProgressListener(Protocol):
    """Receives status lines and progress of a party."""

    def say(self, line: str, /) -> None:
        """Report what is being waited for, whenever that changes."""

    def show(self, step: str, done: int, total: int, /) -> None:
        """Report progress of the current step; the total is 0 if unknown."""


class NullListener:
    """Discards status lines and progress."""

    def say(self, line: str, /) -> None:
        """Nothing."""

    def show(self, step: str, done: int, total: int, /) -> None:
        """Nothing."""


class StatusReporter:
    """Passes status lines and progress to a listener; a status is said when it changes.

    Parameters
    ----------
    listener : ProgressListener
    """

    def __init__(self, listener: ProgressListener) -> None:
        self.say, self.show = listener.say, listener.show
        self.last_status = ""

    @contextmanager
    def show_busy(self, step_name: str) -> Iterator[None]:
        """Report a step as progress while the block runs."""
        self.show(step_name, 0, 0)
        yield
        self.show_going_on()

    def show_going_on(self) -> None:
        """Report that a step has ended, and the next has no name yet."""
        self.show(BETWEEN_STEPS, 0, 0)

    def report_waiting(self, status_line: str) -> None:
        """Say what is being waited for; if only the seconds changed, show it as progress."""
        status_text = status_line.rpartition(", ")[0] or status_line
        if status_text != self.last_status:
            self.last_status = status_text
            self.say(status_line)
        else:
            self.show(status_text, 0, 0)
