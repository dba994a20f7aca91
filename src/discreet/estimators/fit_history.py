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
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.privacy.guarantee import Guarantee
from discreet.schema.cells import _to_flat_array, is_missing
from discreet.schema.schema import format_value

__all__ = ["FitHistory", "PrivacySpend", "current_history", "hash_rows"]

Hashes = NDArray[np.uint64]

MAX_ROW_HASHES = 1 << 21
"""Largest number of row hashes kept of all fits together: 16 MB at 8 bytes each."""
UNIFORM_TYPES = ("string", "boolean", "integer", "floating", "mixed-integer-float")
"""Pandas' names of types whose equal values have the same text: True equals 1, but is not it."""
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
            From :func:`hash_rows`.
        guarantee : Guarantee
        """
        epsilon, delta = guarantee.epsilon, guarantee.delta
        spend = PrivacySpend(1, epsilon, epsilon, Fraction(repr(epsilon)), Fraction(repr(delta)))
        fitted_hashes = row_hashes
        with self.lock:
            groups = []
            for group_hashes, group_spend in self.groups:
                if np.intersect1d(fitted_hashes, group_hashes, assume_unique=True).size:
                    other_hashes = np.setdiff1d(group_hashes, row_hashes, assume_unique=True)
                    row_hashes = np.concatenate([row_hashes, other_hashes])
                    spend += group_spend
                else:
                    groups.append((group_hashes, group_spend))
            groups.append((row_hashes, spend))
            bit_mask = 0
            while sum(len(group_hashes) for group_hashes, _ in groups) > self.max_rows:
                bit_mask = 2 * bit_mask + 1
                groups = [
                    (group_hashes[(group_hashes & np.uint64(bit_mask)) == 0], group_spend)
                    for group_hashes, group_spend in groups
                ]
            self.groups = groups
        return spend


def hash_rows(columns: Mapping[str, Any], row_count: int) -> Hashes:
    """Hash the distinct rows of a table, 64 bits each, in sorted order.

    Parameters
    ----------
    columns : mapping of name to column
        Names do not matter, their order does. The values 1, 1.0 and "1" are the same.
    row_count : int
        Rows.
    """
    hashes = np.zeros(row_count, np.uint64)
    for column in columns.values():
        values: NDArray[Any] = _to_flat_array(column)
        if values.dtype.kind in "iuf":
            numbers = values.astype(np.float64)
            numbers += 0.0  # minus zero becomes zero
            numbers[np.isnan(numbers)] = np.nan
            hashes ^= numbers.view(np.uint64)
        else:
            import pandas as pd

            objects, codes = values.astype(object), slice(None)
            if pd.api.types.infer_dtype(objects) in UNIFORM_TYPES:
                codes, objects = pd.factorize(objects, use_na_sentinel=False)
            hashes ^= np.array([_hash_value(value) for value in objects], np.uint64)[codes]
        hashes *= _HASH_FACTORS[0]
        hashes ^= hashes >> np.uint64(32)
    hashes *= _HASH_FACTORS[1]
    hashes ^= hashes >> np.uint64(29)
    hashes.sort()
    return np.asarray(hashes[np.diff(hashes, prepend=~hashes[:1]) != 0])


def _hash_value(value: Any) -> int:
    """The bits of a value as a number or, if it is none, a keyed hash of its text."""
    if is_missing(value):
        return int(np.array(np.nan).view(np.uint64))
    try:
        text = format_value(value)
    except (ValueError, TypeError, ArithmeticError):
        # Python writes whole numbers of thousands of digits in other bases only
        text = f"{value:#x}" if isinstance(value, int) else f"some {type(value).__name__}"
    with suppress(ValueError):
        return int(np.array(float(text) + 0.0).view(np.uint64))
    keyed_hash = hashlib.blake2b(text.encode(errors="replace"), digest_size=8, key=_HASH_KEY)
    return int.from_bytes(keyed_hash.digest(), "little")


PROCESS_HISTORY = FitHistory()
"""The fits of this process."""

current_history: ContextVar[FitHistory] = ContextVar("fit history", default=PROCESS_HISTORY)
"""Where fits are recorded here: in the process, unless they are isolated."""


@contextmanager
def isolated_fit_history() -> Iterator[None]:
    """Record no fits made inside this block; for experiments on invented data."""
    token = current_history.set(FitHistory())
    try:
        yield
    finally:
        current_history.reset(token)


if hasattr(os, "register_at_fork"):  # a lock that another thread holds would never be released
    os.register_at_fork(after_in_child=lambda: setattr(PROCESS_HISTORY, "lock", threading.Lock()))
