"""Recognises rows that an earlier fit in this process used, and adds up what these fits cost.

It serves a warning and nothing else. Whether rows were recognised depends on the data, so it
enters no guarantee, no statistics and no model: what is pickled, saved or shown is the same
whether rows were recognised or not.

Rows are recognised by their values: the same features, in whatever order of rows, container, split
or bootstrap, with whatever labels. Fits that share a row form one group, and their costs add up.
That is at least what any single person has spent: somebody who was in four folds of five has spent
less, nobody more. Different people whose records are equal are taken for the same.

No record is stored: of each distinct row 64 bits under a key of this process. Beyond
:data:`MAX_ROW_HASHES` of them those are dropped whose last bits are not zero, so that large
overlaps are still found.
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

from discreet.privacy.guarantee import Guarantee
from discreet.schema.cells import _to_flat_array, is_missing
from discreet.schema.schema import format_value

__all__ = ["FitHistory", "PrivacySpend", "current_history", "hash_rows", "hash_source"]

Hashes = NDArray[np.uint64]

MAX_ROW_HASHES = 1 << 21
"""Largest number of row hashes kept of all fits together: 16 MB at 8 bytes each."""
CHUNK_ROWS = 1 << 13
"""Rows hashed in one pass, few enough for the processor's cache."""
_HASH_KEY = secrets.token_bytes(16)
"""Key of this process for the hashes of text."""
_HASH_FACTORS = np.frombuffer(secrets.token_bytes(16), np.uint64) | np.uint64(1)
"""Two odd factors of this process that mix 64-bit values."""


@dataclass(frozen=True)
class PrivacySpend:
    """What fits of the same people cost together.

    Parameters
    ----------
    fit_count : int
    min_epsilon, max_epsilon : float
        The smallest and the largest epsilon of a single fit.
    epsilon, delta : Fraction
        Of all of them.
    """

    fit_count: int
    min_epsilon: float
    max_epsilon: float
    epsilon: Fraction
    delta: Fraction

    @classmethod
    def for_fit(cls, guarantee: Guarantee) -> PrivacySpend:
        """The cost of a single fit."""
        amounts = Fraction(repr(guarantee.epsilon)), Fraction(repr(guarantee.delta))
        return cls(1, guarantee.epsilon, guarantee.epsilon, *amounts)

    def __add__(self, other: PrivacySpend) -> PrivacySpend:
        return PrivacySpend(
            self.fit_count + other.fit_count,
            min(self.min_epsilon, other.min_epsilon),
            max(self.max_epsilon, other.max_epsilon),
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

    def __init__(self, max_rows: int = MAX_ROW_HASHES) -> None:
        self.max_rows = max_rows
        self.lock = threading.Lock()
        self.groups: list[tuple[Hashes, PrivacySpend]] = []

    def add(self, row_hashes: Hashes, guarantee: Guarantee) -> PrivacySpend:
        """Record a fit; gives what all fits of its group cost together.

        Parameters
        ----------
        row_hashes : array of uint64
            From :func:`hash_rows` or :func:`hash_source`.
        guarantee : Guarantee
        """
        total_spend = PrivacySpend.for_fit(guarantee)
        with self.lock:
            groups = []
            fitted_hashes = row_hashes
            for group_rows, group_spend in self.groups:
                if _find_contained(fitted_hashes, group_rows).any():
                    earlier_hashes = group_rows[~_find_contained(row_hashes, group_rows)]
                    row_hashes = np.sort(
                        np.concatenate([row_hashes, earlier_hashes]), kind="stable"
                    )
                    total_spend = total_spend + group_spend
                else:
                    groups.append((group_rows, group_spend))
            groups.append((row_hashes, total_spend))
            bit_mask = np.uint64(0)
            while sum(len(group_rows) for group_rows, _ in groups) > self.max_rows:
                bit_mask = (bit_mask << np.uint64(1)) | np.uint64(1)
                groups = [
                    (group_rows[(group_rows & bit_mask) == 0], group_spend)
                    for group_rows, group_spend in groups
                ]
            self.groups = groups
        return total_spend


def _find_contained(hashes: Hashes, wanted_hashes: Hashes) -> NDArray[np.bool_]:
    """Which of the wanted hashes are among the others; both are sorted."""
    if not len(hashes):
        return np.zeros(len(wanted_hashes), dtype=bool)
    positions = np.minimum(np.searchsorted(hashes, wanted_hashes), len(hashes) - 1)
    return np.asarray(hashes[positions] == wanted_hashes)


def hash_rows(columns: Mapping[str, Any], row_count: int) -> Hashes:
    """Hash the distinct rows of a table, 64 bits each.

    Parameters
    ----------
    columns : mapping of name to column
        Names do not matter, their order does.
    row_count : int
        Rows.
    """
    column_values = [_as_numbers(column) for column in columns.values()]
    hashes = np.zeros(row_count, np.uint64)
    for start in range(0, row_count, CHUNK_ROWS):
        chunk = hashes[start : start + CHUNK_ROWS]
        for column in column_values:
            chunk ^= _to_value_bits(column[start : start + CHUNK_ROWS])
            chunk *= _HASH_FACTORS[0]
            chunk ^= chunk >> np.uint64(32)
        chunk *= _HASH_FACTORS[1]
        chunk ^= chunk >> np.uint64(29)
    hashes.sort()
    return hashes[np.concatenate(([True], hashes[1:] != hashes[:-1]))] if row_count else hashes


def hash_source(name: str) -> Hashes:
    """Hash the name of a table that is not in memory, which is recognised by it alone.

    Parameters
    ----------
    name : str
    """
    return np.array([_hash_text(f"source {name}")], np.uint64)


def _as_numbers(column: Any) -> NDArray[Any]:
    """The numbers of a column as they are; of anything else 64 bits for every value."""
    values: NDArray[Any] = _to_flat_array(column)
    if values.dtype == np.uint64:  # numbers that would look like bits
        return values.astype(np.float64)
    if values.dtype.kind in "iuf":
        return values
    import pandas as pd

    objects = values.astype(object)
    if pd.api.types.infer_dtype(objects) != "string":
        value_types = set(map(type, objects)) - {str, np.str_, type(None)}
        if not (value_types <= {int, float} or value_types == {bool}):
            return _hash_mixed_values(objects)
    distinct_indices, distinct_values = pd.factorize(objects, use_na_sentinel=False)
    distinct_bits = np.array([_hash_value(value) for value in distinct_values], np.uint64)
    return np.asarray(distinct_bits[distinct_indices], np.uint64)


def _hash_mixed_values(values: NDArray[Any]) -> Hashes:
    """Hash values of mixed types one by one: True equals 1, but must hash differently."""
    bits_by_spelling: dict[tuple[type, str], int] = {}
    row_bits = np.empty(len(values), np.uint64)
    for row, value in enumerate(values):
        spelling = type(value), _format_value(value)
        if (value_bits := bits_by_spelling.get(spelling)) is None:
            value_bits = bits_by_spelling[spelling] = _hash_value(value)
        row_bits[row] = value_bits
    return row_bits


def _to_value_bits(values: NDArray[Any]) -> Hashes:
    """64 bits for every value, the same for 1, 1.0 and "1"."""
    if values.dtype == np.uint64:
        return values
    numbers = values.astype(np.float64)
    numbers += 0.0  # minus zero becomes zero
    numbers[np.isnan(numbers)] = np.nan
    value_bits: Hashes = numbers.view(np.uint64)
    return value_bits


def _hash_value(value: Any) -> int:
    if is_missing(value):
        return int(np.array(np.nan).view(np.uint64))
    text = _format_value(value)
    try:
        return int(np.array(float(text) + 0.0).view(np.uint64))
    except ValueError:
        return _hash_text(text)


def _format_value(value: Any) -> str:
    """The text form of any value; a value without one is represented by its type."""
    try:
        return format_value(value)
    except (ValueError, TypeError, ArithmeticError):
        # Python writes whole numbers of thousands of digits in other bases only
        return f"{value:#x}" if isinstance(value, int) else f"some {type(value).__name__}"


def _hash_text(text: str) -> int:
    keyed_hash = hashlib.blake2b(text.encode(errors="replace"), digest_size=8, key=_HASH_KEY)
    return int.from_bytes(keyed_hash.digest(), "little")


PROCESS_HISTORY = FitHistory()
"""The fits of this process."""

_current_history: ContextVar[FitHistory] = ContextVar("fit history", default=PROCESS_HISTORY)


def current_history() -> FitHistory:
    """Where fits are recorded here: in the process, unless they are isolated."""
    return _current_history.get()


@contextmanager
def isolated_fit_history() -> Iterator[None]:
    """Record no fits made inside this block; for experiments on invented data."""
    token = _current_history.set(FitHistory())
    try:
        yield
    finally:
        _current_history.reset(token)


if hasattr(os, "register_at_fork"):  # a lock that another thread holds would never be released
    os.register_at_fork(after_in_child=lambda: setattr(PROCESS_HISTORY, "lock", threading.Lock()))
