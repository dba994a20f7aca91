"""Public distributions of the answers that replace private ones, as exact integer weights."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import TypeAlias

import numpy as np

from discreet.arrays import Floats
from discreet.errors import PrivacyError, SchemaError

__all__ = [
    "AnswerLaw",
    "Theta",
    "average_over_laws",
    "compute_joint_law",
    "parse_rational",
    "reduce_weights",
]

Theta: TypeAlias = int | float | str | Fraction

NUMBER_PATTERN = re.compile(
    r"[-+]?[0-9]{0,400}\.?[0-9]{0,400}(e[-+]?[0-9]{1,3})?(/[0-9]{1,400})?", re.I
)
"""Numbers that people write; 1e99999999 would take all memory."""
MAX_NUMBER = 10**300
MAX_WEIGHT_TOTAL = 1 << 53  # of the weights of a law: exact in JavaScript


def parse_rational(name: str, value: Theta) -> Fraction:
    """Parse a number as it was written: 0.7 is 7/10, not the nearest double."""
    try:
        number_text = str(value) if isinstance(value, float | str) else None
        if number_text is not None and not NUMBER_PATTERN.fullmatch(number_text):
            raise ValueError(number_text)
        number = Fraction(value if number_text is None else number_text)
    except (TypeError, ValueError, OverflowError, ZeroDivisionError):
        number = None
    if number is None or isinstance(value, bool) or abs(number) > MAX_NUMBER:
        is_large = isinstance(value, int) and abs(value) > MAX_NUMBER
        shown_value = "beyond 10^300" if is_large else repr(value)[:60]
        raise PrivacyError(f"{name} is {shown_value}; write a number such as 0.7 or 7/10")
    return number


def reduce_weights(title: str, law: Sequence[Theta]) -> tuple[int, ...]:
    """Weights or probabilities as whole numbers without a common divisor.

    Parameters
    ----------
    title : str
        What the law is about, for errors.
    law : sequence of int, float, str or Fraction
    """
    exact_weights = [
        parse_rational(f"{title}: a weight of its personal law", weight) for weight in law
    ]
    if not exact_weights or min(exact_weights) < 0 or sum(exact_weights) == 0:
        raise SchemaError(f"{title}: its personal law needs weights of 0 or more, not all zero")
    is_fractional = any(number.denominator > 1 for number in exact_weights)
    if is_fractional and sum(exact_weights) != 1:
        raise SchemaError(
            f"{title}: the probabilities of its personal law add up to "
            f"{float(sum(exact_weights)):g}, not 1; correct them, or write whole-number weights "
            "such as [1, 2]"
        )
    common_denominator = math.lcm(*(number.denominator for number in exact_weights))
    integer_weights = [int(number * common_denominator) for number in exact_weights]
    common_divisor = math.gcd(*integer_weights)
    if sum(integer_weights) // common_divisor >= MAX_WEIGHT_TOTAL:
        raise SchemaError(f"{title}: its personal law needs weights beyond 2^53; round them")
    return tuple(number // common_divisor for number in integer_weights)


@dataclass(frozen=True)
class AnswerLaw:
    """Public distribution of some answers of a group, as whole-number weights.

    Parameters
    ----------
    places : tuple of int
        Which answers it is about, by their place in the group.
    weights : tuple of int
        One per combination of answers, the last place varying fastest.

    Attributes
    ----------
    total : int
        Sum of the weights.
    """

    places: tuple[int, ...]
    weights: tuple[int, ...]
    total: int = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        has_valid_weights = all(
            isinstance(weight, int) and not isinstance(weight, bool) and weight >= 0
            for weight in self.weights
        )
        if not has_valid_weights or not 0 < sum(self.weights) < MAX_WEIGHT_TOTAL:
            raise SchemaError("the weights of a law are whole numbers, not all zero, below 2^53")
        object.__setattr__(self, "total", sum(self.weights))
        if len(set(self.places)) < len(self.places) or not self.places:
            raise SchemaError("a law is about one or more different answers")

    @cached_property
    def min_probability(self) -> Fraction:
        """The smallest probability of any combination."""
        return Fraction(min(self.weights), self.total)

    def project_onto(self, places: Mapping[int, int], sizes: Sequence[int]) -> AnswerLaw | None:
        """The law of those of its answers that ``places`` renames; None if there are none."""
        kept_axes = [axis for axis, place in enumerate(self.places) if place in places]
        if not kept_axes:
            return None
        weight_array = np.array(self.weights, dtype=object).reshape(
            [sizes[place] for place in self.places]
        )
        summed_axes = tuple(axis for axis in range(len(self.places)) if axis not in kept_axes)
        summed_weights = weight_array.sum(axis=summed_axes) if summed_axes else weight_array
        return AnswerLaw(
            tuple(places[self.places[axis]] for axis in kept_axes),
            tuple(map(int, np.ravel(summed_weights).tolist())),
        )


def compute_joint_law(
    laws: Sequence[AnswerLaw], sizes: Sequence[int], places: Sequence[int]
) -> Floats:
    """P(personal answers at ``places``) as an array with one axis per place."""
    joint_array = np.ones([sizes[place] for place in places])
    axis_by_place = {place: axis for axis, place in enumerate(places)}
    for law in laws:
        projected_law = law.project_onto(axis_by_place, sizes)
        if projected_law is None:
            continue
        law_array = np.array(projected_law.weights, dtype=float).reshape(
            [joint_array.shape[axis] for axis in projected_law.places]
        )
        axis_order = np.argsort(projected_law.places)
        broadcast_shape = [
            joint_array.shape[axis] if axis in projected_law.places else 1
            for axis in range(joint_array.ndim)
        ]
        joint_array = joint_array * (law_array.transpose(axis_order) / projected_law.total).reshape(
            broadcast_shape
        )
    return joint_array


def average_over_laws(
    function: Floats, laws: Sequence[AnswerLaw], sizes: Sequence[int], axes: Mapping[int, int]
) -> Floats:
    """Average a function over personal answers, E_Y g; their axes are kept with length one.

    Parameters
    ----------
    function : array
    laws : sequence of AnswerLaw
    sizes : sequence of int
        How many answers there are at each place.
    axes : mapping of int to int
        Place to axis of the function, for the answers that are averaged over.
    """
    law_axes = tuple(axes.values())
    broadcast_shape = [
        function.shape[axis] if axis in law_axes else 1 for axis in range(function.ndim)
    ]
    joint_law = compute_joint_law(laws, sizes, list(axes)).transpose(np.argsort(law_axes))
    return np.asarray(
        (function * joint_law.reshape(broadcast_shape)).sum(axis=law_axes, keepdims=True)
    )
