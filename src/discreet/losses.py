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
    "as_written",
    "epsilon_of_channel",
    "epsilon_of_rho",
    "exp_above",
    "exp_below",
    "log",
    "log_above",
    "total_above",
]

PRECISE = decimal.Context(prec=80, Emin=-(10**6), Emax=10**6)


def exp_below(exponent: Fraction) -> Fraction:
    """Return a rational just below exp(exponent), correct to 60 digits.

    Parameters
    ----------
    exponent : Fraction
    """
    number = PRECISE.divide(
        decimal.Decimal(exponent.numerator), decimal.Decimal(exponent.denominator)
    )
    # decimal rounds division and exp correctly to 80 digits, and |exponent| is at most 64
    return Fraction(PRECISE.exp(number)) * (1 - Fraction(1, 10**60))


def exp_above(exponent: Fraction) -> Fraction:
    """Return a rational just above exp(exponent), correct to 60 digits.

    Parameters
    ----------
    exponent : Fraction
    """
    return 1 / exp_below(-exponent)


def log(ratio: Fraction) -> float:
    """Return the float nearest to ln(ratio).

    Parameters
    ----------
    ratio : Fraction
        Above 0.
    """
    parts = decimal.Decimal(ratio.numerator), decimal.Decimal(ratio.denominator)
    return float(PRECISE.ln(PRECISE.divide(*parts)))


def log_above(ratio: Fraction) -> float:
    """Return the least float that is not below ln(ratio).

    Parameters
    ----------
    ratio : Fraction
        Above 0.
    """
    if ratio == 1:
        return 0.0
    found = log(ratio)
    while exp_below(Fraction(found)) < ratio:
        found = math.nextafter(found, math.inf)
    return found


def epsilon_of_rho(rho: float, delta: float) -> float:
    """Convert rho-zCDP to epsilon: rho + 2 sqrt(rho ln(1/delta)); Bun, Steinke 2016, prop. 1.3.

    Parameters
    ----------
    rho : float
    delta : float
        Above 0.
    """
    return rho + 2 * math.sqrt(rho * math.log(1 / delta))


def epsilon_of_channel(channel: Iterable[Sequence[Any]]) -> float:
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
    rows = [list(row) for row in channel]
    if not rows or any(len(row) != len(rows[0]) for row in rows):
        raise PrivacyError("a channel needs one row per input, all of the same length")
    if any(sum(row) != sum(rows[0]) and abs(sum(row) - sum(rows[0])) > 1e-9 for row in rows):
        raise PrivacyError("the rows of a channel must have the same sum")
    worst = Fraction(1)
    for column in zip(*rows, strict=True):
        if min(column) < 0:
            raise PrivacyError("a channel has a negative probability")
        if max(column) == 0:
            continue
        if min(column) == 0:
            return math.inf
        worst = max(worst, _fraction(max(column)) / _fraction(min(column)))
    return log_above(worst)


def _fraction(number: Any) -> Fraction:
    return Fraction(number if isinstance(number, Rational) else float(number))


def as_written(number: Any) -> Any:
    """Convert a real number to the float as it was written: NumPy's float32(0.1) becomes 0.1.

    Parameters
    ----------
    number : object

    Examples
    --------
    >>> import numpy as np
    >>> as_written(np.float32(0.1)), as_written(np.int64(2)), as_written("2")
    (0.1, 2.0, '2')
    """
    if not isinstance(number, Real) or isinstance(number, bool):
        return number
    exact = isinstance(number, float) or not hasattr(number, "dtype")
    try:
        return float(number) if exact else float(str(number))
    except OverflowError:  # 10**400 is beyond floats, and not infinity either
        return number


def total_above(losses: Iterable[float]) -> float:
    """Return the least float that is not below the sum of the losses.

    Parameters
    ----------
    losses : iterable of float

    Examples
    --------
    >>> total_above([0.1, 0.2]), total_above([1.0, math.inf])
    (0.30000000000000004, inf)
    """
    given = list(losses)
    found = math.fsum(given)
    if math.isfinite(found) and Fraction(found) < sum(map(Fraction, given)):
        return math.nextafter(found, math.inf)
    return found
