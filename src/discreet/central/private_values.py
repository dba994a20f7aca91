"""Categories and classes whose noisy count is above a threshold.

Which values a column has is unknown, so that no noise can be added to the ones that nobody has: a
person could be the only one with a value, and its appearance would prove that they took part. A
value is released if its count with noise reaches a threshold that a person alone reaches with a
chance of at most delta (stability-based selection: Korolova et al. 2009; Bun, Nissim, Stemmer
2016). Counts are not released.
"""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from typing import Any

import numpy as np

from discreet.arrays import Integers
from discreet.central.budget import IntegerNoise
from discreet.central.noise_thresholds import find_noise_threshold
from discreet.randomness import Random
from discreet.schema.schema import Value, format_value

__all__ = ["compute_value_threshold", "select_values"]

MAX_VALUES = 1000
"""Most values of a column: those with the largest noisy counts. The others become "other"."""


def compute_value_threshold(noise: IntegerNoise, delta: Fraction, rows_per_person: int = 1) -> int:
    """Compute the threshold that values of one person alone reach with chance delta at most.

    A person with k rows has at most k values that nobody else has, each at most k times: the least
    T with k P(k + noise >= T) <= delta.

    Parameters
    ----------
    noise : IntegerNoise
    delta : Fraction
    rows_per_person : int, default 1
        k.

    Examples
    --------
    >>> compute_value_threshold(IntegerNoise(Fraction(10)), Fraction(1, 10**6))
    133
    """
    return rows_per_person + find_noise_threshold(noise, delta / rows_per_person)


def select_values(
    value_counts: Iterable[tuple[list[Any], Integers]],
    noise: IntegerNoise,
    threshold: int,
    random: Random,
) -> tuple[Value, ...]:
    """Select the values whose noisy count reaches the threshold, in alphabetical order.

    Parameters
    ----------
    value_counts : iterable of (values, counts)
        Of all values that occur, some at a time.
    noise : IntegerNoise
    threshold : int
    random : Random
    """
    noisy_by_text: dict[str, tuple[int, Value]] = {}
    for values, counts in value_counts:
        if not values:
            continue
        noisy_counts = noise.add(counts, random)
        for position in np.flatnonzero(noisy_counts >= threshold):
            value = values[int(position)]
            noisy_by_text[format_value(value)] = int(noisy_counts[position]), value
        if len(noisy_by_text) > 2 * MAX_VALUES:
            noisy_by_text = _keep_largest(noisy_by_text)
    selected_values = _keep_largest(noisy_by_text).values()
    return _sort_values([value for _, value in selected_values])


def _keep_largest(
    noisy_by_text: dict[str, tuple[int, Value]],
) -> dict[str, tuple[int, Value]]:
    """The values with the largest noisy counts, which follow from nothing but noisy counts."""
    largest = sorted(noisy_by_text.items(), key=lambda entry: (-entry[1][0], entry[0]))
    return dict(largest[:MAX_VALUES])


def _sort_values(values: list[Value]) -> tuple[Value, ...]:
    """Whole numbers by size where all are, and written as such; else by spelling."""
    texts = sorted(map(format_value, values))
    try:
        whole_numbers = sorted(int(text) for text in texts)
    except ValueError:
        return tuple(sorted(values, key=format_value))
    is_usual = sorted(map(str, whole_numbers)) == texts
    return tuple(whole_numbers) if is_usual else tuple(sorted(values, key=format_value))
