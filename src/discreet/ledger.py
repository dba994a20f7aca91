"""What has been spent on one table: a file beside the data that no training can overdraw.

A training is charged before any noise is drawn. A charge is on the disk, whole, before
:meth:`Ledger.charge` returns, and is never taken back: a training that fails or is killed
afterwards has been paid for, because nobody can know what it had already shown. Processes take
turns through a lock on a file beside the ledger.

Amounts are the decimal numbers that people write: ten times 0.1 is 1.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path

from discreet.documents import Body, dump, load, read_text, write_atomic
from discreet.errors import FormatError, PrivacyError

__all__ = ["Entry", "Ledger", "Spending"]

VERSION = 1


class Entry(Body):
    """One training that was paid for."""

    when: str
    what: str
    epsilon: float
    delta: float = 0.0


class _LedgerBody(Body):
    epsilon: float
    delta: float = 0.0
    entries: list[Entry] = []


@dataclass(frozen=True)
class Spending:
    """The state of a ledger: totals, and what was spent."""

    epsilon: float
    delta: float
    entries: tuple[Entry, ...] = ()

    @property
    def left(self) -> tuple[Fraction, Fraction]:
        """Epsilon and delta that may still be spent."""
        return (
            _decimal(self.epsilon) - sum((_decimal(e.epsilon) for e in self.entries), Fraction(0)),
            _decimal(self.delta) - sum((_decimal(e.delta) for e in self.entries), Fraction(0)),
        )


class Ledger:
    """A budget file.

    Parameters
    ----------
    path : path
        A JSON file; ``PATH.lock`` beside it is the lock.

    Examples
    --------
    >>> import tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> ledger = Ledger.create(folder.name + "/budget.json", epsilon=1.0)
    >>> float(ledger.charge("first training", 0.75).left[0])
    0.25
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path).resolve()

    @classmethod
    def create(cls, path: str | Path, epsilon: float, delta: float = 0.0) -> Ledger:
        """Make a ledger with a total; one that exists must state the same total."""
        ledger = cls(path)
        _check(epsilon, delta)
        with ledger._locked():
            if ledger.path.exists():
                found = ledger.read()
                if (found.epsilon, found.delta) != (epsilon, delta):
                    raise PrivacyError(
                        f"{path}: states a total of epsilon {found.epsilon:g} and delta "
                        f"{found.delta:g}, not {epsilon:g} and {delta:g}; a total is not changed "
                        "after the fact"
                    )
            else:
                ledger._write(Spending(epsilon, delta))
        return ledger

    def read(self) -> Spending:
        """The state on the disk; a damaged file is refused, never repaired."""
        if not self.path.exists():
            raise FormatError(
                f"{self.path}: there is no such ledger; state a total first, with "
                "--budget-total or Ledger.create"
            )
        body = load(read_text(self.path), "budget", VERSION, _LedgerBody)
        return Spending(body.epsilon, body.delta, tuple(body.entries))

    def charge(self, what: str, epsilon: float, delta: float = 0.0) -> Spending:
        """Pay for a training, or refuse it; gives the state afterwards.

        Parameters
        ----------
        what : str
            What the training is, for whoever reads the ledger.
        epsilon, delta : float
        """
        _check(epsilon, delta)
        with self._locked():
            before = self.read()
            left = before.left
            if _decimal(epsilon) > left[0] or _decimal(delta) > left[1]:
                raise PrivacyError(
                    f"{self.path.name}: epsilon {epsilon:g} and delta {delta:g} were asked, "
                    f"{float(left[0]):g} and {float(left[1]):g} of {before.epsilon:g} and "
                    f"{before.delta:g} are left; nothing was trained"
                )
            when = datetime.now(UTC).isoformat(timespec="seconds")
            entry = Entry(when=when, what=what, epsilon=epsilon, delta=delta)
            after = Spending(before.epsilon, before.delta, (*before.entries, entry))
            self._write(after)
            return after

    @contextmanager
    def _locked(self) -> Iterator[None]:
        try:
            import fcntl
        except ImportError:  # pragma: no cover - Windows
            raise PrivacyError("a ledger needs a system with file locks (fcntl)") from None
        try:
            lock = open(f"{self.path}.lock", "a")  # noqa: SIM115 - closed below
        except OSError as error:
            raise FormatError(f"{self.path}.lock: cannot be opened: {error.strerror}") from None
        with lock:
            fcntl.flock(lock, fcntl.LOCK_EX)  # given back when the file is closed, also by a kill
            yield

    def _write(self, spending: Spending) -> None:
        body = {
            "epsilon": spending.epsilon,
            "delta": spending.delta,
            "entries": [entry.model_dump() for entry in spending.entries],
        }
        write_atomic(self.path, dump("budget", VERSION, body), private=True)


def _decimal(number: float) -> Fraction:
    return Fraction(repr(float(number)))


def _check(epsilon: float, delta: float) -> None:
    if not 0 < epsilon < math.inf:
        raise PrivacyError(f"epsilon is {epsilon!r}; a ledger holds positive, finite numbers")
    if not 0 <= delta < 1:
        raise PrivacyError(f"delta is {delta!r}; it must lie in [0, 1)")
