"""Privacy ledger: a budget file per group of people that no training or collection can overdraw.

Every trust model charges its promise here before any noise is drawn or anyone is asked. A charge
is on the disk, whole, before :meth:`Ledger.charge` returns, and is never taken back: a training
that fails or is killed afterwards has been paid for, because nobody can know what it had already
shown. Processes take turns through a lock file next to the ledger.

A promise that is void (an inferred schema, a seed, a published but unsound method) has no price,
so a ledger refuses it. It can be recorded on request; the ledger is then marked as broken for good:
its total no longer limits what was released.

Amounts are exact decimal numbers: ten times 0.1 is 1. A ledger adds epsilons and deltas, or, if it
was created so, rhos: then the conversion of their sum at the whole delta may not exceed the total,
which is a sound rule also for amounts that are chosen as one goes (a filter: Feldman, Zrnic 2021).
Which rule it is cannot be left open until one of them is needed (docs/maths.md).

Passwords are not stored: of a database address only the server and the database are.
"""

from __future__ import annotations

import atexit
import math
import os
import re
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path
from typing import Any, ClassVar, Literal, get_args

from discreet.errors import FormatError, PrivacyError
from discreet.files.atomic_writing import (
    error_context,
    make_private_folder,
    read_text,
    remove_drafts,
    write_atomic,
)
from discreet.files.documents import Body, dump_document, load_document
from discreet.files.locks import hold_lock
from discreet.privacy.guarantee import Account, Guarantee, format_rounded_up
from discreet.privacy.rounding import (
    convert_rho_to_epsilon,
    convert_to_rho,
    sum_rounded_up,
    to_shortest_float,
)

__all__ = [
    "DeviceState",
    "Ledger",
    "LedgerEntry",
    "LedgerState",
    "MemoryLedger",
    "remove_credentials",
]

DOCUMENT_KIND = "ledger"
VERSION = 2

Composition = Literal["addition", "concentrated"]
"""What a ledger adds up: epsilons and deltas, or rhos."""


UNCONCENTRATED_REASON = (
    "this ledger adds up rhos, and the promise does not hold as rho-zCDP; use a method or a noise "
    "for which it does, or another ledger"
)


class LedgerEntry(Body):
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
    rho : float or None
        Where the promise holds as rho-zCDP as well.
    void : list of str
        Why the promise was not kept, if it was not; empty otherwise.
    """

    when: str
    what: str
    who: str = ""
    epsilon: float
    delta: float = 0.0
    rho: float | None = None
    void: list[str] = []

    def to_guarantee(self) -> Guarantee:
        """The promise that was charged, as far as it is kept here."""
        return Guarantee(self.epsilon, self.delta, rho=self.rho)


class LedgerBody(Body):
    epsilon: float
    delta: float = 0.0
    composition: Composition = "addition"
    entries: list[LedgerEntry] = []


@dataclass(frozen=True)
class LedgerState:
    """The state of a ledger: totals, and what was spent.

    Parameters
    ----------
    epsilon, delta : float
        What may be spent in total.
    entries : tuple of LedgerEntry
    composition : {"addition", "concentrated"}
        Whether epsilons and deltas are added up, or rhos.
    """

    epsilon: float
    delta: float
    entries: tuple[LedgerEntry, ...] = ()
    composition: Composition = "addition"
    kind: ClassVar[str] = "ledger"
    """Whose account this is: of a ledger, or of a device."""

    @property
    def remaining(self) -> tuple[Fraction, Fraction]:
        """Epsilon and delta that may still be spent; nothing after an infinite epsilon."""
        spent = [self._sum_amounts(name) for name in ("epsilon", "delta")]
        if math.isinf(spent[0]) or math.isinf(self.spent[0]):
            return Fraction(0), Fraction(0)
        total_epsilon, total_delta = map(_to_decimal_fraction, (self.epsilon, self.delta))
        if self.composition == "concentrated":
            spent = [_to_decimal_fraction(amount) for amount in self.spent]
        return total_epsilon - Fraction(spent[0]), total_delta - Fraction(spent[1])

    @property
    def spent(self) -> tuple[float, float]:
        """Epsilon and delta of all entries."""
        if self.composition == "concentrated" and self.entries:
            return convert_rho_to_epsilon(self._spent_rho, self.delta), self.delta
        return float(self._sum_amounts("epsilon")), float(self._sum_amounts("delta"))

    @property
    def added_up(self) -> tuple[float, float]:
        """Epsilon and delta of all entries by addition, whatever the ledger's own rule."""
        return float(self._sum_amounts("epsilon")), float(self._sum_amounts("delta"))

    @property
    def _spent_rho(self) -> float:
        rhos = [entry.to_guarantee().compute_rho() for entry in self.entries]
        return sum_rounded_up(math.inf if rho is None else rho for rho in rhos)

    def can_afford(self, guarantee: Guarantee) -> bool:
        """Whether a guarantee can be paid for.

        Parameters
        ----------
        guarantee : Guarantee
        """
        if self.composition == "addition":
            return _is_affordable(guarantee, self.remaining)
        if (rho := guarantee.compute_rho()) is None:
            return False
        affordable_rho = convert_to_rho(self.epsilon, self.delta)
        return sum_rounded_up([self._spent_rho, rho]) <= affordable_rho

    def _sum_amounts(self, name: str) -> Fraction | float:
        """Exact sum over all entries, or infinity."""
        amounts = [getattr(entry, name) for entry in self.entries]
        if any(map(math.isinf, amounts)):
            return math.inf
        return sum(map(_to_decimal_fraction, amounts), Fraction(0))

    def make_account(self, ledger_name: str) -> Account:
        """The state in a line, for a promise that was just paid for."""
        return Account(ledger_name, len(self.entries), *self.spent, (self.epsilon, self.delta))

    @property
    def void_reasons(self) -> tuple[str, ...]:
        """Why the total no longer limits what was released; empty if the ledger is intact."""
        return tuple(dict.fromkeys(reason for entry in self.entries for reason in entry.void))

    def explain_refusal(self, guarantee: Guarantee) -> str:
        """Return why a guarantee cannot be paid for; empty if it can.

        Parameters
        ----------
        guarantee : Guarantee
        """
        if guarantee.void_reasons:
            return f"its promise is not kept ({'; '.join(guarantee.void_reasons)})"
        if self.composition == "concentrated" and guarantee.compute_rho() is None:
            return UNCONCENTRATED_REASON
        return "" if self.can_afford(guarantee) else f"{float(self.remaining[0]):g} is left"


class DeviceState(LedgerState):
    """The account of a device: what its owner allows, and what each collection was answered for."""

    kind = "device"

    @classmethod
    def from_charges(cls, allowance: float, charges_by_digest: Mapping[str, float]) -> DeviceState:
        """Return the account of a device with these charges.

        Parameters
        ----------
        allowance : float
            Epsilon that the owner allows in total.
        charges_by_digest : mapping of str to float
            Epsilon by the digest of the collection; infinite if it was answered unprotected.
        """
        entries = tuple(
            LedgerEntry(when="", what=f"collection {digest[7:19]}", epsilon=epsilon)
            for digest, epsilon in charges_by_digest.items()
        )
        return cls(allowance, 0.0, entries)

    @property
    def remaining(self) -> tuple[Fraction, Fraction]:
        """Epsilon and delta that may still be spent; what was unprotected is not counted."""
        finite_epsilons = [entry.epsilon for entry in self.entries if math.isfinite(entry.epsilon)]
        spent_epsilon = sum(map(_to_decimal_fraction, finite_epsilons), Fraction(0))
        return max(_to_decimal_fraction(self.epsilon) - spent_epsilon, Fraction(0)), Fraction(0)

    @property
    def void_reasons(self) -> tuple[str, ...]:
        """Which collections were answered without protection."""
        return tuple(
            f"{entry.what} was answered without protection"
            for entry in self.entries
            if math.isinf(entry.epsilon)
        )


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
    >>> state = ledger.charge(Guarantee(0.75), "first training", data_source="clinic.csv")
    >>> float(state.remaining[0])
    0.25
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path).resolve()

    def __repr__(self) -> str:
        return f"Ledger({str(self.path)!r})"

    @classmethod
    def create(
        cls,
        path: str | Path,
        epsilon: float,
        delta: float = 0.0,
        composition: Composition | None = None,
    ) -> Ledger:
        """Create a ledger with a total; an existing one must have the same total.

        Parameters
        ----------
        path : path
            Missing folders are made, for their owner alone.
        epsilon, delta : float
            What may be spent in total.
        composition : {"addition", "concentrated"}, optional
            Add up epsilons and deltas, which is the default of a new ledger, or rhos, which needs
            a delta and pays for more trainings that hold as rho-zCDP with a small rho.
        """
        ledger = Ledger(path)
        epsilon, delta = to_shortest_float(epsilon), to_shortest_float(delta)
        if fault := _find_amount_fault(epsilon, delta) or _find_rule_fault(
            composition or "addition", delta
        ):
            raise PrivacyError(f"the total of a ledger: {fault}")
        make_private_folder(ledger.path.parent)
        with ledger._hold_lock():
            if ledger.path.exists():
                stated = ledger.read()
                if composition not in (None, stated.composition):
                    raise PrivacyError(
                        f"{path}: its composition is {stated.composition!r}, not {composition!r}; "
                        "the rule of a ledger cannot be changed: leave it out"
                    )
                if (stated.epsilon, stated.delta) != (epsilon, delta):
                    raise PrivacyError(
                        f"{path}: states a total of epsilon {stated.epsilon!r} and delta "
                        f"{stated.delta!r}, not {epsilon!r} and {delta!r}; the total of a ledger "
                        "cannot be changed: leave it out, or write what the ledger states"
                    )
            else:
                ledger._write_state(LedgerState(epsilon, delta, (), composition or "addition"))
        return ledger

    @classmethod
    def coerce(cls, value: Any) -> Ledger:
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

    def read(self) -> LedgerState:
        """Read the state on disk; a damaged file is refused, never repaired."""
        if not self.path.exists():
            raise FormatError(
                f"{self.path}: there is no such ledger; state a total first, with "
                "--budget-total or Ledger.create"
            )
        with error_context(str(self.path)):
            body = load_document(read_text(self.path), DOCUMENT_KIND, VERSION, LedgerBody)
        state = LedgerState(body.epsilon, body.delta, tuple(body.entries), body.composition)
        faults = [_find_amount_fault(body.epsilon, body.delta)]
        faults.append(_find_rule_fault(body.composition, body.delta))
        faults += [
            _find_amount_fault(entry.epsilon, entry.delta, allow_infinite=bool(entry.void))
            for entry in body.entries
        ]
        if not any(faults) and min(state.remaining) < 0:
            faults.append("more was spent than the total")
        for fault in filter(None, faults):
            raise FormatError(f"{self.path}: this ledger was tampered with: {fault}")
        return state

    def charge(
        self,
        guarantee: Guarantee,
        purpose: str,
        *,
        data_source: str = "",
        void: bool = False,
        once: bool = False,
    ) -> LedgerState:
        """Charge a guarantee, or refuse it; returns the new state.

        Parameters
        ----------
        guarantee : Guarantee
            What is about to be promised. Its epsilon and delta are charged.
        purpose : str
            What is charged, for readers of the ledger.
        data_source : str, optional
            Whose data: a file, a table, a collection. Credentials in an address are left out.
        void : bool, default False
            Record even a void guarantee, and mark the ledger as broken.
        once : bool, default False
            Whether ``purpose`` names something unique, such as a round: a retry is not paid again.

        Raises
        ------
        PrivacyError
            If the promise is void, or costs more than is left.
        """
        with self._hold_lock():
            state_before = self.read()
            if self._is_already_paid(guarantee, purpose, state_before, void=void, once=once):
                return state_before
            entry = LedgerEntry(
                when=datetime.now(UTC).isoformat(timespec="seconds"),
                what=purpose,
                who=remove_credentials(data_source),
                epsilon=guarantee.epsilon,
                delta=guarantee.delta,
                rho=guarantee.rho,
                void=list(guarantee.void_reasons),
            )
            state_after = replace(state_before, entries=(*state_before.entries, entry))
            self._write_state(state_after)
            return state_after

    def require_affordable(self, guarantee: Guarantee, purpose: str) -> None:
        """Raise if :meth:`charge` would refuse this guarantee, without charging it.

        Parameters
        ----------
        guarantee : Guarantee
            What is to be promised later.
        purpose : str
            What it is for; what is paid already needs nothing more.
        """
        self._is_already_paid(guarantee, purpose, self.read(), void=False, once=True)

    def _is_already_paid(
        self,
        guarantee: Guarantee,
        purpose: str,
        state_before: LedgerState,
        *,
        void: bool,
        once: bool,
    ) -> bool:
        """True if this was already charged; raises if the budget does not suffice."""
        if guarantee.void_reasons and not void:
            raise PrivacyError(
                f"{self.path.name}: a void guarantee cannot be charged "
                f"({'; '.join(guarantee.void_reasons)}); nothing was paid or drawn. Mend that, or "
                "record it as void (discreet train --void, or void=True), which breaks the ledger"
            )
        if fault := _find_amount_fault(guarantee.epsilon, guarantee.delta, allow_infinite=void):
            raise PrivacyError(f"{self.path.name}: {fault}")
        if once and any(entry.what == purpose for entry in state_before.entries):
            return True
        remaining = state_before.remaining
        adds_rhos = state_before.composition == "concentrated"
        has_no_price = adds_rhos and guarantee.compute_rho() is None
        if has_no_price and not void:
            raise PrivacyError(f"{self.path.name}: {UNCONCENTRATED_REASON}; nothing was paid")
        is_affordable = (
            remaining[0] > 0
            if math.isinf(guarantee.epsilon) or (void and has_no_price)
            else state_before.can_afford(guarantee)
        )
        if not is_affordable:
            asked_text = (
                f"epsilon {format_rounded_up(guarantee.epsilon)} and delta {guarantee.delta:g}"
            )
            total_text = f"{format_rounded_up(state_before.epsilon)} and {state_before.delta:g}"
            raise PrivacyError(
                f"{self.path.name}: {asked_text} were asked for, {float(remaining[0]):g} and "
                f"{float(remaining[1]):g} of {total_text} are left; nothing was paid or drawn"
            )
        return False

    @contextmanager
    def _hold_lock(self) -> Iterator[None]:
        with hold_lock(f"{self.path}.lock"):
            remove_drafts(self.path)  # only the lock holder writes: drafts are of killed writers
            yield

    def _write_state(self, state: LedgerState) -> None:
        body = {
            "epsilon": state.epsilon,
            "delta": state.delta,
            "composition": state.composition,
            "entries": [entry.model_dump() for entry in state.entries],
        }
        write_atomic(self.path, dump_document(DOCUMENT_KIND, VERSION, body), private=True)


class MemoryLedger(Ledger):
    """A ledger for the lifetime of this process, in a temporary folder that is removed at its end.

    Clones, threads and worker processes of this machine share the account, because what is copied
    is the name of the file. In another process, later or elsewhere, the file is not there, and
    charges are refused.

    Parameters
    ----------
    epsilon, delta : float
        What may be spent in total.
    composition : {"addition", "concentrated"}, default "addition"
        Add up epsilons and deltas, or rhos.

    Examples
    --------
    >>> import copy
    >>> budget = MemoryLedger(epsilon=1.0)
    >>> _ = copy.deepcopy(budget).charge(Guarantee(0.75), "first training")
    >>> budget
    MemoryLedger(epsilon 0.25 of 1 left)
    """

    def __init__(
        self, epsilon: float, delta: float = 0.0, composition: Composition = "addition"
    ) -> None:
        folder = tempfile.mkdtemp(prefix="discreet-")  # 0700
        atexit.register(_remove_folder, folder, os.getpid())
        super().__init__(Path(folder) / "MemoryLedger")
        Ledger.create(self.path, epsilon, delta, composition)

    def __deepcopy__(self, memo: object) -> MemoryLedger:
        return self

    def __repr__(self) -> str:
        try:
            state = self.read()
        except FormatError:
            return "MemoryLedger(of a process that has ended)"
        amounts_left = [float(amount) for amount in state.remaining]
        delta_text = f", delta {amounts_left[1]:g} of {state.delta:g}" if state.delta else ""
        total_text = format_rounded_up(state.epsilon)
        return f"MemoryLedger(epsilon {amounts_left[0]:g} of {total_text}{delta_text} left)"


def _remove_folder(folder: str, owner_pid: int) -> None:
    if os.getpid() == owner_pid:  # not at the end of a process that was forked
        shutil.rmtree(folder, ignore_errors=True)


def remove_credentials(source: str) -> str:
    """Remove user, password and parameters from the address of a data source.

    Parameters
    ----------
    source : str
        A path or an address.

    Examples
    --------
    >>> remove_credentials("postgres://ann:p@ss/word@host:5432/db?password=x#people")
    'postgres://host:5432/db'
    >>> remove_credentials("data/people.csv")
    'data/people.csv'
    """
    scheme, separator, address_rest = source.partition("://")
    if not separator:
        return re.sub(r"(?i)\b(password|token|secret)\s*=\s*\S+", r"\1=…", source)
    server_address = address_rest.rpartition("@")[2]  # a password may hold any other sign
    return f"{scheme}://{re.split('[?#;]', server_address)[0]}"


def _is_affordable(guarantee: Guarantee, remaining: tuple[Fraction, Fraction]) -> bool:
    asked = [_to_decimal_fraction(cost) for cost in (guarantee.epsilon, guarantee.delta)]
    return asked[0] <= remaining[0] and asked[1] <= remaining[1]


def _find_rule_fault(composition: str, delta: float) -> str:
    """Describe what is wrong with the rule of a ledger; empty if nothing is."""
    if composition not in get_args(Composition):
        return f"composition is {composition!r}; write one of {', '.join(get_args(Composition))}"
    if composition == "concentrated" and not delta:
        return "composition 'concentrated' adds up rhos, which needs a delta above 0, such as 1e-6"
    return ""


def _to_decimal_fraction(number: float) -> Fraction:
    return Fraction(repr(float(number)))


def _find_amount_fault(epsilon: float, delta: float, *, allow_infinite: bool = False) -> str:
    """Describe what is wrong with an amount; empty if nothing is."""
    if not (0 < epsilon < math.inf or (allow_infinite and epsilon == math.inf)):
        return f"epsilon is {epsilon!r}; a ledger holds positive, finite numbers"
    if not 0 <= delta < 1:
        return f"delta is {delta!r}; it must be at least 0 and below 1"
    return ""
