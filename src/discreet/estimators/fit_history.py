"""Recognises rows that an earlier fit in this process used, and adds up what these fits cost.

It serves a warning and nothing else. Whether rows were recognised depends on the data, so it
enters no guarantee, no statistics and no model: what is pickled, saved or shown is the same
whether rows were recognised or not.

Rows are recognised by their values: the same features, in whatever order of rows, container, split
or bootstrap, with whatever labels. Fits that share a row form one group, and their costs add up.
That is at least what any single person has spent: somebody who was in four folds of five has spent
less, nobody more. Different people whose records are equal are taken for the same.

No record is stored: of each distinct row 64 bits under a key of this process. Beyond
:data:`MAX_ROWS` of them those are dropped whose last bits are not zero, so that large overlaps are
still found.
"""

from __future__ import annotations

import hashlib
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

__all__ = ["FitHistory", "PrivacySpend", "current_history", "hash_rows", "hash_source"]

Hashes = NDArray[np.uint64]

MAX_ROWS = 1 << 21  # row hashes of all fits together: 16 MB
CHUNK_ROWS = 1 << 13  # rows hashed at once, few enough for the processor's cache
_KEY = secrets.token_bytes(16)
_FACTORS = np.frombuffer(secrets.token_bytes(16), np.uint64) | np.uint64(1)


@dataclass(frozen=True)
class PrivacySpend:
    """What fits of the same people cost together.

    Parameters
    ----------
    fits : int
    least, most : float
        The smallest and the largest epsilon of a single fit.
    epsilon, delta : Fraction
        Of all of them.
    """

    fits: int
    least: float
    most: float
    epsilon: Fraction
    delta: Fraction

    @classmethod
    def for_fit(cls, cost: Guarantee) -> PrivacySpend:
        """The cost of a single fit."""
        amounts = Fraction(repr(cost.epsilon)), Fraction(repr(cost.delta))
        return cls(1, cost.epsilon, cost.epsilon, *amounts)

    def __add__(self, other: PrivacySpend) -> PrivacySpend:
        return PrivacySpend(
            self.fits + other.fits,
            min(self.least, other.least),
            max(self.most, other.most),
            self.epsilon + other.epsilon,
            self.delta + other.delta,
        )


class FitHistory:
    """Groups of fits that share rows, and what each group cost.

    Parameters
    ----------
    max_rows : int
        Row hashes that are stored.
    """

    def __init__(self, max_rows: int = MAX_ROWS) -> None:
        self.max_rows = max_rows
        self.lock = threading.Lock()
        self.groups: list[tuple[Hashes, PrivacySpend]] = []

    def add(self, rows: Hashes, cost: Guarantee) -> PrivacySpend:
        """Record a fit; gives what all fits of its group cost together.

        Parameters
        ----------
        rows : array of uint64
            From :func:`hash_rows` or :func:`hash_source`.
        cost : Guarantee
        """
        spend = PrivacySpend.for_fit(cost)
        with self.lock:
            groups = []
            fitted = rows
            for group_rows, group_spend in self.groups:
                if _contains(fitted, group_rows).any():
                    earlier = group_rows[~_contains(rows, group_rows)]
                    rows = np.sort(np.concatenate([rows, earlier]), kind="stable")
                    spend = spend + group_spend
                else:
                    groups.append((group_rows, group_spend))
            groups.append((rows, spend))
            mask = np.uint64(0)
            while sum(len(group_rows) for group_rows, _ in groups) > self.max_rows:
                mask = (mask << np.uint64(1)) | np.uint64(1)
                groups = [(hashes[(hashes & mask) == 0], total) for hashes, total in groups]
            self.groups = groups
        return spend


def _contains(hashes: Hashes, wanted: Hashes) -> NDArray[np.bool_]:
    """Which of the wanted hashes are among the others; both are sorted."""
    if not len(hashes):
        return np.zeros(len(wanted), dtype=bool)
    places = np.minimum(np.searchsorted(hashes, wanted), len(hashes) - 1)
    return np.asarray(hashes[places] == wanted)


def hash_rows(columns: Mapping[str, Any], count: int) -> Hashes:
    """Hash the distinct rows of a table, 64 bits each.

    Parameters
    ----------
    columns : mapping of name to column
        Names do not matter, their order does.
    count : int
        Rows.
    """
    values = [_as_numbers(column) for column in columns.values()]
    hashes = np.zeros(count, np.uint64)
    for start in range(0, count, CHUNK_ROWS):
        chunk = hashes[start : start + CHUNK_ROWS]
        for column in values:
            chunk ^= _value_bits(column[start : start + CHUNK_ROWS])
            chunk *= _FACTORS[0]
            chunk ^= chunk >> np.uint64(32)
        chunk *= _FACTORS[1]
        chunk ^= chunk >> np.uint64(29)
    hashes.sort()
    return hashes[np.concatenate(([True], hashes[1:] != hashes[:-1]))] if count else hashes


def hash_source(name: str) -> Hashes:
    """Hash the name of a table that is not in memory, which is recognised by it alone.

    Parameters
    ----------
    name : str
    """
    return np.array([_hash_text(f"source {name}")], np.uint64)


def _as_numbers(column: Any) -> NDArray[Any]:
    """The numbers of a column as they are; of anything else 64 bits for every value."""
    values: NDArray[Any] = _flat(column)
    if values.dtype == np.uint64:  # numbers that would look like bits
        return values.astype(np.float64)
    if values.dtype.kind in "iuf":
        return values
    import pandas as pd

    objects = values.astype(object)
    if pd.api.types.infer_dtype(objects) != "string":
        kinds = set(map(type, objects)) - {str, np.str_, type(None)}
        if not (kinds <= {int, float} or kinds == {bool}):
            return _hash_each(objects)
    codes, distinct = pd.factorize(objects, use_na_sentinel=False)
    bits = np.array([_hash_value(value) for value in distinct], np.uint64)
    return np.asarray(bits[codes], np.uint64)


def _hash_each(values: NDArray[Any]) -> Hashes:
    """Hash values of mixed types one by one: True equals 1, but must hash differently."""
    known: dict[tuple[type, str], int] = {}
    bits = np.empty(len(values), np.uint64)
    for row, value in enumerate(values):
        spelling = type(value), _spell(value)
        if (found := known.get(spelling)) is None:
            found = known[spelling] = _hash_value(value)
        bits[row] = found
    return bits


def _value_bits(values: NDArray[Any]) -> Hashes:
    """64 bits for every value, the same for 1, 1.0 and "1"."""
    if values.dtype == np.uint64:
        return values
    numbers = values.astype(np.float64)
    numbers += 0.0  # minus zero becomes zero
    numbers[np.isnan(numbers)] = np.nan
    bits: Hashes = numbers.view(np.uint64)
    return bits


def _hash_value(value: Any) -> int:
    if is_missing(value):
        return int(np.array(np.nan).view(np.uint64))
    text = _spell(value)
    try:
        return int(np.array(float(text) + 0.0).view(np.uint64))
    except ValueError:
        return _hash_text(text)


def _spell(value: Any) -> str:
    """The text form of any value; a value without one is represented by its type."""
    try:
        return text_of(value)
    except (ValueError, TypeError, ArithmeticError):
        # Python writes whole numbers of thousands of digits in other bases only
        return f"{value:#x}" if isinstance(value, int) else f"some {type(value).__name__}"


def _hash_text(text: str) -> int:
    keyed = hashlib.blake2b(text.encode(errors="replace"), digest_size=8, key=_KEY)
    return int.from_bytes(keyed.digest(), "little")


PROCESS_HISTORY = FitHistory()
"""The fits of this process."""

_current: ContextVar[FitHistory] = ContextVar("fit history", default=PROCESS_HISTORY)


def current_history() -> FitHistory:
    """Where fits are recorded here: in the process, unless they are isolated."""
    return _current.get()


@contextmanager
def isolated_fit_history() -> Iterator[None]:
    """Record no fits made inside this block; for experiments on invented data."""
    token = _current.set(FitHistory())
    try:
        yield
    finally:
        _current.reset(token)


if hasattr(os, "register_at_fork"):  # a lock that another thread holds would never be released
    os.register_at_fork(after_in_child=lambda: setattr(PROCESS_HISTORY, "lock", threading.Lock()))
