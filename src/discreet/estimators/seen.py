"""Whether the people of a fit were fitted before in this process, and what that cost together.

Rows are recognised by their values: the same features, in whatever order of rows, container, split
or bootstrap, with whatever labels. Every fit that shares a row with an earlier one belongs to the
same people, and so do all fits that those shared rows with; the costs of all of them add up. That
is at least what any single person has spent: somebody who was in four folds of five has spent
less, nobody more. Different people whose records are equal are taken for the same.

No record is kept: of each distinct row 64 bits under a key of this process, and a number. Beyond
:data:`MOST` of them every second is forgotten, by its own bits, so that large overlaps are still
found. Other columns of the same people, or columns that were changed in between, are other rows.

Whether rows were recognised depends on the data, so it is told to whoever fits, and written into
no file.
"""

from __future__ import annotations

import hashlib
import math
import os
import secrets
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.encoding import _flat, is_missing
from discreet.privacy import Guarantee
from discreet.schema import text_of

__all__ = ["SEEN", "Seen", "Spent", "apart", "rows_seen", "seen_now", "source_seen"]

Hashes = NDArray[np.uint64]

MOST = 1 << 24
"""Rows that are remembered: 200 MB."""

CHUNK = 1 << 13
_KEY = secrets.token_bytes(16)
_FACTORS = np.frombuffer(secrets.token_bytes(16), np.uint64) | np.uint64(1)


@dataclass(frozen=True)
class Spent:
    """What fits of the same people cost together.

    Parameters
    ----------
    fits : int
    least, most : float
        The smallest and the largest epsilon of one of them.
    epsilon, delta : Fraction
        Of all of them.
    """

    fits: int = 0
    least: float = math.inf
    most: float = 0.0
    epsilon: Fraction = Fraction(0)
    delta: Fraction = Fraction(0)

    @classmethod
    def once(cls, cost: Guarantee) -> Spent:
        """One fit."""
        amounts = Fraction(repr(cost.epsilon)), Fraction(repr(cost.delta))
        return cls(1, cost.epsilon, cost.epsilon, *amounts)

    def __add__(self, other: Spent) -> Spent:
        return Spent(
            self.fits + other.fits,
            min(self.least, other.least),
            max(self.most, other.most),
            self.epsilon + other.epsilon,
            self.delta + other.delta,
        )


class Seen:
    """Rows that were fitted, the people they belong to, and what was spent on these.

    Parameters
    ----------
    most : int
        Rows that are remembered.
    """

    def __init__(self, most: int = MOST) -> None:
        self.most = most
        self._lock = threading.Lock()
        self.forget()

    def forget(self) -> None:
        """Begin anew."""
        self._rows: Hashes = np.empty(0, np.uint64)
        self._people: NDArray[np.int32] = np.empty(0, np.int32)
        self._same: list[int] = []
        self._spent: list[Spent] = []
        self._mask = np.uint64(0)

    def fit(self, rows: Hashes, cost: Guarantee) -> Spent:
        """Note a fit that releases something; gives what all fits of its people cost together.

        Parameters
        ----------
        rows : array of uint64
            From :func:`rows_seen` or :func:`source_seen`.
        cost : Guarantee
        """
        with self._lock:
            rows = rows[(rows & self._mask) == 0]
            places = np.searchsorted(self._rows, rows)
            known = places < len(self._rows)
            known[known] = self._rows[places[known]] == rows[known]
            met = {self._root(one) for one in np.unique(self._people[places[known]]).tolist()}
            spent = sum((self._spent[one] for one in met), Spent.once(cost))
            number = len(self._same)
            self._same.append(number)
            self._spent.append(spent)
            for one in met:
                self._same[one], self._spent[one] = number, Spent()
            fresh, where = rows[~known], places[~known]
            if fresh.size:
                self._rows = np.insert(self._rows, where, fresh)
                self._people = np.insert(self._people, where, np.int32(number))
            while len(self._rows) > self.most:
                self._mask = (self._mask << np.uint64(1)) | np.uint64(1)
                kept = (self._rows & self._mask) == 0
                self._rows, self._people = self._rows[kept], self._people[kept]
            return spent

    def _root(self, people: int) -> int:
        while self._same[people] != people:
            people = self._same[people]
        return people


def rows_seen(columns: Mapping[str, Any], count: int) -> Hashes:
    """The distinct rows of a table, 64 bits each.

    Parameters
    ----------
    columns : mapping of name to column
        Names do not matter, their order does.
    count : int
        Rows.
    """
    known = [_known(column) for column in columns.values()]
    found = np.zeros(count, np.uint64)
    for start in range(0, count, CHUNK):  # small enough to stay near the processor
        part = found[start : start + CHUNK]
        for one in known:
            part ^= _bits(one[start : start + CHUNK])
            part *= _FACTORS[0]
            part ^= part >> np.uint64(32)
        part *= _FACTORS[1]
        part ^= part >> np.uint64(29)
    found.sort()
    return found[np.concatenate(([True], found[1:] != found[:-1]))] if count else found


def source_seen(name: str) -> Hashes:
    """A table that is not in memory, which is recognised by its name alone.

    Parameters
    ----------
    name : str
    """
    return np.array([_hash(f"source {name}")], np.uint64)


def _known(column: Any) -> NDArray[Any]:
    """The numbers of a column as they are; of anything else 64 bits for every value."""
    values: NDArray[Any] = _flat(column)
    if values.dtype == np.uint64:  # numbers that would look like bits
        return values.astype(np.float64)
    if values.dtype.kind in "iuf":
        return values
    import pandas as pd

    codes, distinct = pd.factorize(values.astype(object), use_na_sentinel=False)
    known = np.array([_of(value) for value in distinct], np.uint64)
    return np.asarray(known[codes], np.uint64)


def _bits(part: NDArray[Any]) -> Hashes:
    """64 bits for every value, the same for 1, 1.0 and "1"."""
    if part.dtype == np.uint64:
        return part
    numbers = part.astype(np.float64)
    numbers += 0.0  # of minus zero, too
    numbers[np.isnan(numbers)] = np.nan
    bits: Hashes = numbers.view(np.uint64)
    return bits


def _of(value: Any) -> int:
    if is_missing(value):
        return int(np.array(np.nan).view(np.uint64))
    text = text_of(value)
    try:
        return int(np.array(float(text) + 0.0).view(np.uint64))
    except ValueError:
        return _hash(text)


def _hash(text: str) -> int:
    keyed = hashlib.blake2b(text.encode(errors="replace"), digest_size=8, key=_KEY)
    return int.from_bytes(keyed.digest(), "little")


SEEN = Seen()
"""Of this process."""

_current: ContextVar[Seen] = ContextVar("seen", default=SEEN)


def seen_now() -> Seen:
    """What remembers fits here: the process, but for what is done apart."""
    return _current.get()


@contextmanager
def apart() -> Iterator[None]:
    """Let fits inside be unknown outside: for experiments on tables that are nobody's."""
    token = _current.set(Seen())
    try:
        yield
    finally:
        _current.reset(token)


if hasattr(os, "register_at_fork"):  # a lock that another thread holds would never be released
    os.register_at_fork(after_in_child=lambda: setattr(SEEN, "_lock", threading.Lock()))
