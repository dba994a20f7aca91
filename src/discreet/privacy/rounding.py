"""Rounding of privacy losses: exponentials, logarithms and sums with a known direction of error.

A stated loss is never below the true one: it is rounded up, by one float at most.
"""

from __future__ import annotations

import decimal
import math
from collections.abc import Iterable, Sequence
from fractions import Fraction
from numbers import Rational, Real
from typing import Any

from discreet.errors import PrivacyError

__all__ = [
    "compute_channel_epsilon",
    "convert_rho_to_epsilon",
    "exp_rounded_down",
    "exp_rounded_up",
    "log_rounded_up",
    "log_to_nearest",
    "sum_rounded_up",
    "to_shortest_float",
]

PRECISE_CONTEXT = decimal.Context(prec=80, Emin=-(10**6), Emax=10**6)


def exp_rounded_down(exponent: Fraction) -> Fraction:
    """Return a rational just below exp(exponent), correct to 60 digits.

    Parameters
    ----------
    exponent : Fraction
    """
    decimal_exponent = PRECISE_CONTEXT.divide(
        decimal.Decimal(exponent.numerator), decimal.Decimal(exponent.denominator)
    )
    # decimal rounds division and exp correctly to 80 digits, and |exponent| is at most 64
    return Fraction(PRECISE_CONTEXT.exp(decimal_exponent)) * (1 - Fraction(1, 10**60))


def exp_rounded_up(exponent: Fraction) -> Fraction:
    """Return a rational just above exp(exponent), correct to 60 digits.

    Parameters
    ----------
    exponent : Fraction
    """
    return 1 / exp_rounded_down(-exponent)


def log_to_nearest(ratio: Fraction) -> float:
    """Return the float nearest to ln(ratio).

    Parameters
    ----------
    ratio : Fraction
        Above 0.
    """
    decimal_parts = decimal.Decimal(ratio.numerator), decimal.Decimal(ratio.denominator)
    return float(PRECISE_CONTEXT.ln(PRECISE_CONTEXT.divide(*decimal_parts)))


def log_rounded_up(ratio: Fraction) -> float:
    """Return the least float that is not below ln(ratio).

    Parameters
    ----------
    ratio : Fraction
        Above 0.
    """
    if ratio == 1:
        return 0.0
    rounded_log = log_to_nearest(ratio)
    while exp_rounded_down(Fraction(rounded_log)) < ratio:
        rounded_log = math.nextafter(rounded_log, math.inf)
    return rounded_log


def convert_rho_to_epsilon(rho: float, delta: float) -> float:
    """Convert rho-zCDP to epsilon: rho + 2 sqrt(rho ln(1/delta)); Bun, Steinke 2016, prop. 1.3.

    Parameters
    ----------
    rho : float
    delta : float
        Above 0.
    """
    return rho + 2 * math.sqrt(rho * math.log(1 / delta))


def compute_channel_epsilon(channel: Iterable[Sequence[Any]]) -> float:
    """Compute the exact local epsilon of a finite channel: the largest log-ratio per output.

    Parameters
    ----------
    channel : iterable of sequences
        Row x holds P(output | input x), as fractions, integers over a common denominator or floats.

    Returns
    -------
    float
        ``math.inf`` when some output is possible for one input and impossible for another. Else the
        least float that is not below the logarithm.
    """
    channel_rows = [list(row) for row in channel]
    if not channel_rows or any(len(row) != len(channel_rows[0]) for row in channel_rows):
        raise PrivacyError("a channel needs one row per input, all of the same length")
    if any(
        sum(row) != sum(channel_rows[0]) and abs(sum(row) - sum(channel_rows[0])) > 1e-9
        for row in channel_rows
    ):
        raise PrivacyError("the rows of a channel must have the same sum")
    largest_ratio = Fraction(1)
    for output_column in zip(*channel_rows, strict=True):
        lowest, highest = min(output_column), max(output_column)
        if lowest < 0:
            raise PrivacyError("a channel has a negative probability")
        if highest == 0:
            continue
        if lowest == 0:
            return math.inf
        exact_highest, exact_lowest = (
            Fraction(number if isinstance(number, Rational) else float(number))
            for number in (highest, lowest)
        )
        largest_ratio = max(largest_ratio, exact_highest / exact_lowest)
    return log_rounded_up(largest_ratio)


def to_shortest_float(number: Any) -> Any:
    """Convert a real number to the float as it was written: NumPy's float32(0.1) becomes 0.1.

    Parameters
    ----------
    number : object

    Examples
    --------
    >>> import numpy as np
    >>> to_shortest_float(np.float32(0.1)), to_shortest_float(np.int64(2)), to_shortest_float("2")
    (0.1, 2.0, '2')
    """
    if not isinstance(number, Real) or isinstance(number, bool):
        return number
    is_exact = isinstance(number, float) or not hasattr(number, "dtype")
    try:
        return float(number) if is_exact else float(str(number))
    except OverflowError:  # 10**400 is beyond floats, and not infinity either
        return number


def sum_rounded_up(losses: Iterable[float]) -> float:
    """Return the least float that is not below the sum of the losses.

    Parameters
    ----------
    losses : iterable of float

    Examples
    --------
    >>> sum_rounded_up([0.1, 0.2]), sum_rounded_up([1.0, math.inf])
    (0.30000000000000004, inf)
    """
    listed_losses = list(losses)
    rounded_sum = math.fsum(listed_losses)
    if math.isfinite(rounded_sum) and Fraction(rounded_sum) < sum(map(Fraction, listed_losses)):
        return math.nextafter(rounded_sum, math.inf)
    return rounded_sum
