"""Laws of noise as arrays of probabilities, computed by direct convolution."""

from __future__ import annotations

import math

import numpy as np
from scipy import stats

TAIL = 1 << 12


def share_law(scale, needed):
    """P(share = k), k = -TAIL … TAIL: a Polya draw minus another, by direct convolution."""
    one = stats.nbinom.pmf(np.arange(TAIL + 1), 1 / needed, -math.expm1(-1 / scale))
    return np.convolve(one, one[::-1])


def sum_law(scale, needed, shares):
    """The law of several shares together, by direct convolution of their laws."""
    law = total = share_law(scale, needed)
    for _ in range(shares - 1):
        total = np.convolve(total, law)[TAIL:-TAIL]
    return total


def laplace_law(scale):
    k = np.abs(np.arange(-TAIL, TAIL + 1))
    return math.tanh(1 / (2 * scale)) * np.exp(-k / scale)


def worst_ratio(law):
    """The largest log-ratio of neighbouring outcomes where floating point can see them."""
    seen = law[TAIL - 60 : TAIL + 61]
    return float(np.abs(np.diff(np.log(seen))).max())
