"""Public distributions of the answers that replace private ones, as exact integer weights."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import TypeAlias

import numpy as np

from discreet.arrays import Floats
from discreet.errors import PrivacyError, SchemaError

__all__ = ["Law", "Theta", "expectation", "joint_law", "rational"]

Theta: TypeAlias = int | float | str | Fraction

WRITTEN = re.compile(r"[-+]?[0-9]{0,400}\.?[0-9]{0,400}(e[-+]?[0-9]{1,3})?(/[0-9]{1,400})?", re.I)
"""Numbers that people write; 1e99999999 would take all memory."""
LARGEST_NUMBER = 10**300
LARGEST_TOTAL = 1 << 53  # of the weights of a law: exact in JavaScript


def rational(name: str, value: Theta) -> Fraction:
    """Parse a number as it was written: 0.7 is 7/10, not the nearest double."""
    try:
        text = str(value) if isinstance(value, float | str) else None
        if text is not None and not WRITTEN.fullmatch(text):
            raise ValueError(text)
        number = Fraction(value if text is None else text)
    except (TypeError, ValueError, OverflowError, ZeroDivisionError):
        number = None
    if number is None or isinstance(value, bool) or abs(number) > LARGEST_NUMBER:
        large = isinstance(value, int) and abs(value) > LARGEST_NUMBER
        shown = "beyond 10^300" if large else repr(value)[:60]
        raise PrivacyError(f"{name} is {shown}; write a number such as 0.7 or 7/10")
    return number


@dataclass(frozen=True)
class Law:
    """Public distribution of some answers of a group, as whole-number weights.

    Parameters
    ----------
    places : tuple of int
        Which answers it is about, by their place in the group.
    weights : tuple of int
        One per combination of answers, the last place varying fastest.
    """

    places: tuple[int, ...]
    weights: tuple[int, ...]

    def __post_init__(self) -> None:
        whole = all(isinstance(w, int) and not isinstance(w, bool) and w >= 0 for w in self.weights)
        if not whole or not 0 < sum(self.weights) < LARGEST_TOTAL:
            raise SchemaError("the weights of a law are whole numbers, not all zero, below 2^53")
        if len(set(self.places)) < len(self.places) or not self.places:
            raise SchemaError("a law is about one or more different answers")

    @property
    def total(self) -> int:
        """Sum of the weights."""
        return sum(self.weights)

    @cached_property
    def least(self) -> Fraction:
        """The smallest probability of any combination."""
        return Fraction(min(self.weights), self.total)

    def onto(self, places: Mapping[int, int], sizes: Sequence[int]) -> Law | None:
        """The law of those of its answers that ``places`` renames; None if there are none."""
        kept = [k for k, place in enumerate(self.places) if place in places]
        if not kept:
            return None
        array = np.array(self.weights, dtype=object).reshape([sizes[p] for p in self.places])
        lost = tuple(k for k in range(len(self.places)) if k not in kept)
        summed = array.sum(axis=lost) if lost else array
        return Law(
            tuple(places[self.places[k]] for k in kept), tuple(map(int, np.ravel(summed).tolist()))
        )


def joint_law(laws: Sequence[Law], sizes: Sequence[int], places: Sequence[int]) -> Floats:
    """P(personal answers at ``places``) as an array with one axis per place."""
    whole = np.ones([sizes[place] for place in places])
    axis = {place: k for k, place in enumerate(places)}
    for law in laws:
        part = law.onto(axis, sizes)
        if part is None:
            continue
        inner = np.array(part.weights, dtype=float).reshape([whole.shape[a] for a in part.places])
        order = np.argsort(part.places)
        shape = [whole.shape[k] if k in part.places else 1 for k in range(whole.ndim)]
        whole = whole * (inner.transpose(order) / part.total).reshape(shape)
    return whole


def expectation(function: Floats, law: Floats, axes: Sequence[int]) -> Floats:
    """Average a function over some of its axes; they are kept with length one."""
    order = np.argsort(axes)
    shape = [function.shape[k] if k in axes else 1 for k in range(function.ndim)]
    weights = law.transpose(order).reshape(shape)
    return np.asarray((function * weights).sum(axis=tuple(axes), keepdims=True))
