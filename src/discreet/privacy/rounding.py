"""Rounding of privacy losses: exponentials, logarithms and sums with a known direction of error.

A stated loss is never below the true one: it is rounded up, by one float at most.
"""

from __future__ import annotations

import decimal
import math
from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction
from numbers import Rational, Real
from typing import Any

from discreet.errors import PrivacyError

__all__ = [
    "compute_channel_epsilon",
    "convert_rho_to_epsilon",
    "convert_to_rho",
    "exp_rounded_down",
    "exp_rounded_up",
    "log_rounded_up",
    "log_to_nearest",
    "sum_rounded_up",
    "to_shortest_float",
]

CONVERSION_MARGIN = 1e-12
"""Relative margin of conversions in floats, whose error is some thousand times smaller."""
ORDER_SEARCH_SPAN = 12.0
"""Width, to each side, of the search for the best order: in ln t."""
ORDER_SEARCH_STEPS = 60
"""Steps of that search, each by a third; what is left of its width does not matter."""
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
    """Convert rho-zCDP to the epsilon that it implies at a delta, rounded up.

    epsilon = min over t > 0 of (1+t) rho + (ln(1/delta) - ln(1+t)) / t - ln(1 + 1/t), of order
    1 + t: Canonne, Kamath, Steinke 2020, proposition 12. Each t is a bound by itself.

    Parameters
    ----------
    rho : float
    delta : float
        Above 0.
    """
    if not 0 < rho < math.inf:
        return rho
    epsilon = _minimise_over_orders(
        lambda t: (1 + t) * rho - _compute_order_gain(t, delta), math.sqrt(-math.log(delta) / rho)
    )
    return max(epsilon + (epsilon + rho) * CONVERSION_MARGIN, 0.0)


def convert_to_rho(epsilon: float, delta: float) -> Fraction:
    """Return the largest rho whose rho-zCDP implies (epsilon, delta), rounded down.

    It is `convert_rho_to_epsilon` solved for rho: each order gives a rho, the largest counts.

    Parameters
    ----------
    epsilon : float
    delta : float
        Above 0.

    Examples
    --------
    >>> float(convert_to_rho(1.0, 1e-6))
    0.024...
    """
    negative_rho = _minimise_over_orders(
        lambda t: -(epsilon + _compute_order_gain(t, delta)) / (1 + t),
        -2 * math.log(delta) / epsilon,
    )
    return Fraction(max(-negative_rho * (1 - 16 * CONVERSION_MARGIN), 0.0))


def _compute_order_gain(t: float, delta: float) -> float:
    """What an order of 1 + t takes off the Rényi divergence: a sum of three terms."""
    return math.log1p(1 / t) + (math.log1p(t) + math.log(delta)) / t


def _minimise_over_orders(bound: Callable[[float], float], start: float) -> float:
    """Smallest value of a bound over t > 0, by bisection of ln t about a start."""
    low, high = math.log(start) - ORDER_SEARCH_SPAN, math.log(start) + ORDER_SEARCH_SPAN
    for _ in range(ORDER_SEARCH_STEPS):
        third = (high - low) / 3
        if bound(math.exp(low + third)) < bound(math.exp(high - third)):
            high -= third
        else:
            low += third
    return bound(math.exp((low + high) / 2))


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
