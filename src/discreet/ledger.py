"""Privacy ledger: a budget file per group of people that no training or collection can overdraw.

Every trust model charges its promise here before any noise is drawn or anyone is asked. A charge
is on the disk, whole, before :meth:`Ledger.charge` returns, and is never taken back: a training
that fails or is killed afterwards has been paid for, because nobody can know what it had already
shown. Processes take turns through a lock file next to the ledger.

A promise that is void (an inferred schema, a seed, a published but unsound method) has no price,
so a ledger refuses it. It can be recorded on request; the ledger is then marked as broken for good:
its total no longer limits what was released.

Amounts are exact decimal numbers: ten times 0.1 is 1. Passwords are not stored: of a database
address only the server and the database are.
"""

from __future__ import annotations

import atexit
import math
import os
import re
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path
from typing import Any

from discreet.documents import (
    Body,
    dump,
    load,
    private_folder,
    read_text,
    remove_drafts,
    write_atomic,
)
from discreet.errors import FormatError, PrivacyError, about
from discreet.locks import locked
from discreet.losses import as_written
from discreet.privacy import Account, Guarantee, rounded_up

__all__ = ["Entry", "Ledger", "MemoryLedger", "Spending", "without_credentials"]

KIND, VERSION = "ledger", 1


class Entry(Body):
    """One training, round or collection that was charged.

    Parameters
    ----------
    when : str
        Time of the payment, ISO 8601.
    what : str
        What was paid for.
    who : str
        On whose data, without credentials.
    epsilon : float
    delta : float
    void : list of str
        Why the promise was not kept, if it was not; empty otherwise.
    """

    when: str
    what: str
    who: str = ""
    epsilon: float
    delta: float = 0.0
    void: list[str] = []


class LedgerBody(Body):
    epsilon: float
    delta: float = 0.0
    entries: list[Entry] = []


@dataclass(frozen=True)
class Spending:
    """The state of a ledger: totals, and what was spent.

    Parameters
    ----------
    epsilon, delta : float
        What may be spent in total.
    entries : tuple of Entry
    """

    epsilon: float
    delta: float
    entries: tuple[Entry, ...] = ()

    @property
    def left(self) -> tuple[Fraction, Fraction]:
        """Epsilon and delta that may still be spent; nothing after an infinite epsilon."""
        if any(math.isinf(entry.epsilon) for entry in self.entries):
            return Fraction(0), Fraction(0)
        return (
            _decimal(self.epsilon) - sum((_decimal(e.epsilon) for e in self.entries), Fraction(0)),
            _decimal(self.delta) - sum((_decimal(e.delta) for e in self.entries), Fraction(0)),
        )

    @property
    def spent(self) -> tuple[float, float]:
        """Epsilon and delta of all entries."""
        delta = sum((_decimal(one.delta) for one in self.entries), Fraction(0))
        if any(math.isinf(one.epsilon) for one in self.entries):
            return math.inf, float(delta)
        return float(sum((_decimal(e.epsilon) for e in self.entries), Fraction(0))), float(delta)

    def account(self, where: str) -> Account:
        """The state in a line, for a promise that was just paid for."""
        return Account(where, len(self.entries), *self.spent, (self.epsilon, self.delta))

    @property
    def broken(self) -> tuple[str, ...]:
        """Why the total no longer limits what was released; empty if the ledger is intact."""
        return tuple(dict.fromkeys(reason for entry in self.entries for reason in entry.void))


class Ledger:
    """A budget file, readable by its owner alone.

    Parameters
    ----------
    path : path
        A JSON file; ``PATH.lock`` next to it is the lock.

    Examples
    --------
    >>> import tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> ledger = Ledger.create(folder.name + "/ledger.json", epsilon=1.0)
    >>> float(ledger.charge(Guarantee(0.75), "first training", who="clinic.csv").left[0])
    0.25
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path).resolve()

    def __repr__(self) -> str:
        return f"Ledger({str(self.path)!r})"

    @classmethod
    def create(cls, path: str | Path, epsilon: float, delta: float = 0.0) -> Ledger:
        """Create a ledger with a total; an existing one must have the same total.

        Parameters
        ----------
        path : path
            Missing folders are made, for their owner alone.
        epsilon, delta : float
            What may be spent in total.
        """
        ledger = Ledger(path)
        epsilon, delta = as_written(epsilon), as_written(delta)
        if fault := _fault(epsilon, delta):
            raise PrivacyError(f"the total of a ledger: {fault}")
        private_folder(ledger.path.parent)
        with ledger._locked():
            if ledger.path.exists():
                found = ledger.read()
                if (found.epsilon, found.delta) != (epsilon, delta):
                    raise PrivacyError(
                        f"{path}: states a total of epsilon {found.epsilon!r} and delta "
                        f"{found.delta!r}, not {epsilon!r} and {delta!r}; the total of a ledger "
                        "cannot be changed: leave it out, or write what the ledger states"
                    )
            else:
                ledger._write(Spending(epsilon, delta))
        return ledger

    @classmethod
    def of(cls, value: Any) -> Ledger:
        """Return a ledger from a ledger or its path.

        Parameters
        ----------
        value : Ledger, str or path

        Raises
        ------
        TypeError
            If it is something else.
        """
        if isinstance(value, Ledger):
            return value
        if isinstance(value, (str, Path)) and str(value):
            return Ledger(value)
        raise TypeError(f"a ledger or the path of one is needed, not {type(value).__name__}")

    def read(self) -> Spending:
        """Read the state on disk; a damaged file is refused, never repaired."""
        if not self.path.exists():
            raise FormatError(
                f"{self.path}: there is no such ledger; state a total first, with "
                "--budget-total or Ledger.create"
            )
        with about(str(self.path)):
            body = load(read_text(self.path), KIND, VERSION, LedgerBody)
        found = Spending(body.epsilon, body.delta, tuple(body.entries))
        faults = [_fault(body.epsilon, body.delta)]
        faults += [_fault(e.epsilon, e.delta, endless=bool(e.void)) for e in body.entries]
        if not any(faults) and min(found.left) < 0:
            faults.append("more was spent than the total")
        for fault in filter(None, faults):
            raise FormatError(f"{self.path}: this ledger was tampered with: {fault}")
        return found

    def charge(
        self,
        promise: Guarantee,
        what: str,
        *,
        who: str = "",
        void: bool = False,
        once: bool = False,
    ) -> Spending:
        """Charge a guarantee, or refuse it; returns the new state.

        Parameters
        ----------
        promise : Guarantee
            What is about to be promised. Its epsilon and delta are charged.
        what : str
            What is charged, for readers of the ledger.
        who : str, optional
            Whose data: a file, a table, a collection. Credentials in an address are left out.
        void : bool, default False
            Record even a void guarantee, and mark the ledger as broken.
        once : bool, default False
            Whether ``what`` names something unique, such as a round: a retry is not paid again.

        Raises
        ------
        PrivacyError
            If the promise is void, or costs more than is left.
        """
        with self._locked():
            before = self.read()
            if self._paid(promise, what, before, void=void, once=once):
                return before
            entry = Entry(
                when=datetime.now(UTC).isoformat(timespec="seconds"),
                what=what,
                who=without_credentials(who),
                epsilon=promise.epsilon,
                delta=promise.delta,
                void=list(promise.broken),
            )
            after = Spending(before.epsilon, before.delta, (*before.entries, entry))
            self._write(after)
            return after

    def require(self, promise: Guarantee, what: str) -> None:
        """Raise if :meth:`charge` would refuse this guarantee, without charging it.

        Parameters
        ----------
        promise : Guarantee
            What is to be promised later.
        what : str
            What it is for; what is paid already needs nothing more.
        """
        self._paid(promise, what, self.read(), void=False, once=True)

    def _paid(
        self, promise: Guarantee, what: str, before: Spending, *, void: bool, once: bool
    ) -> bool:
        """True if this was already charged; raises if the budget does not suffice."""
        if promise.broken and not void:
            raise PrivacyError(
                f"{self.path.name}: a void guarantee cannot be charged "
                f"({'; '.join(promise.broken)}); nothing was paid or drawn. Mend that, or record "
                "it as void (discreet train --void, or void=True), which breaks the ledger"
            )
        if fault := _fault(promise.epsilon, promise.delta, endless=void):
            raise PrivacyError(f"{self.path.name}: {fault}")
        if once and any(entry.what == what for entry in before.entries):
            return True
        left = before.left
        enough = left[0] > 0 if math.isinf(promise.epsilon) else _within(promise, left)
        if not enough:
            asked = f"epsilon {rounded_up(promise.epsilon)} and delta {promise.delta:g}"
            total = f"{rounded_up(before.epsilon)} and {before.delta:g}"
            raise PrivacyError(
                f"{self.path.name}: {asked} were asked for, {float(left[0]):g} and "
                f"{float(left[1]):g} of {total} are left; nothing was paid or drawn"
            )
        return False

    @contextmanager
    def _locked(self) -> Iterator[None]:
        with locked(f"{self.path}.lock"):
            remove_drafts(self.path)  # only the lock holder writes: drafts are of killed writers
            yield

    def _write(self, spending: Spending) -> None:
        body = {
            "epsilon": spending.epsilon,
            "delta": spending.delta,
            "entries": [entry.model_dump() for entry in spending.entries],
        }
        write_atomic(self.path, dump(KIND, VERSION, body), private=True)


class MemoryLedger(Ledger):
    """A ledger for the lifetime of this process, in a temporary folder that is removed at its end.

    Clones, threads and worker processes of this machine share the account, because what is copied
    is the name of the file. In another process, later or elsewhere, the file is not there, and
    charges are refused.

    Parameters
    ----------
    epsilon, delta : float
        What may be spent in total.

    Examples
    --------
    >>> import copy
    >>> budget = MemoryLedger(epsilon=1.0)
    >>> _ = copy.deepcopy(budget).charge(Guarantee(0.75), "first training")
    >>> budget
    MemoryLedger(epsilon 0.25 of 1 left)
    """

    def __init__(self, epsilon: float, delta: float = 0.0) -> None:
        folder = tempfile.mkdtemp(prefix="discreet-")  # 0700
        atexit.register(_removed, folder, os.getpid())
        super().__init__(Path(folder) / "MemoryLedger")
        Ledger.create(self.path, epsilon, delta)

    def __deepcopy__(self, memo: object) -> MemoryLedger:
        return self

    def __repr__(self) -> str:
        try:
            return f"MemoryLedger({_left(self.read())})"
        except FormatError:
            return "MemoryLedger(of a process that has ended)"


def _removed(folder: str, owner: int) -> None:
    if os.getpid() == owner:  # not at the end of a process that was forked
        shutil.rmtree(folder, ignore_errors=True)


def _left(spending: Spending) -> str:
    left, total = float(spending.left[0]), rounded_up(spending.epsilon)
    delta = f", delta {float(spending.left[1]):g} of {spending.delta:g}" if spending.delta else ""
    return f"epsilon {left:g} of {total}{delta} left"


def without_credentials(source: str) -> str:
    """Remove user, password and parameters from the address of a data source.

    Parameters
    ----------
    source : str
        A path or an address.

    Examples
    --------
    >>> without_credentials("postgres://ann:p@ss/word@host:5432/db?password=x#people")
    'postgres://host:5432/db'
    >>> without_credentials("data/people.csv")
    'data/people.csv'
    """
    scheme, found, rest = source.partition("://")
    if not found:
        return re.sub(r"(?i)\b(password|token|secret)\s*=\s*\S+", r"\1=…", source)
    place = rest.rpartition("@")[2]  # a password may hold any other sign
    return f"{scheme}://{re.split('[?#;]', place)[0]}"


def _within(promise: Guarantee, left: tuple[Fraction, Fraction]) -> bool:
    return _decimal(promise.epsilon) <= left[0] and _decimal(promise.delta) <= left[1]


def _decimal(number: float) -> Fraction:
    return Fraction(repr(float(number)))


def _fault(epsilon: float, delta: float, *, endless: bool = False) -> str:
    """Describe what is wrong with an amount; empty if nothing is."""
    if not (0 < epsilon < math.inf or (endless and epsilon == math.inf)):
        return f"epsilon is {epsilon!r}; a ledger holds positive, finite numbers"
    if not 0 <= delta < 1:
        return f"delta is {delta!r}; it must be at least 0 and below 1"
    return ""
