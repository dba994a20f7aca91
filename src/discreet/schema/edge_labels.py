"""Edges of bins as a person would write them, for display only.

Every edge is rounded to the fewest digits that keep it near: its two bins change by a small part of
their width, so neighbours keep different labels, and an edge has the same text on both sides.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

__all__ = ["format_bin_labels", "format_edge"]

MAX_SHIFT_PART = 0.05
"""An edge moves by at most this part of the narrower of its two bins."""
MAX_DIGITS = 17
"""Significant digits that tell any two doubles apart."""
MIN_ROUNDED_WIDTH = 100.0
"""Bins of whole numbers narrower than this keep their exact edges, and end before the next."""
MIN_FIXED_EXPONENT = -5
"""Numbers below ten to this power are written with an exponent."""
MAX_FIXED_EXPONENT = 12
"""Numbers from ten to this power on are written with an exponent."""


def format_edge(edge: float, max_shift: float) -> str:
    """Format an edge with the fewest significant digits that move it by at most ``max_shift``.

    Parameters
    ----------
    edge : float
    max_shift : float
        How far the written number may be from the edge.

    Examples
    --------
    >>> format_edge(0.2792727, 0.005), format_edge(0.3819, 0.005), format_edge(40938, 500)
    ('0.28', '0.38', '41000')
    """
    if not math.isfinite(edge):
        return f"{edge:g}"
    rounded_edge = edge
    for digits in range(1, MAX_DIGITS + 1):
        rounded_edge = float(f"{edge:.{digits - 1}e}")
        if abs(rounded_edge - edge) <= max_shift:
            break
    if rounded_edge == 0:
        return "0"
    if 10**MIN_FIXED_EXPONENT <= abs(rounded_edge) < 10**MAX_FIXED_EXPONENT:
        fixed_text = f"{rounded_edge:.{max(0, digits - 1 - _get_exponent(rounded_edge))}f}"
        return fixed_text.rstrip("0").rstrip(".") if "." in fixed_text else fixed_text
    return f"{rounded_edge:.{digits}g}"


def _get_exponent(number: float) -> int:
    return int(f"{number:.{MAX_DIGITS - 1}e}".partition("e")[2])


def format_bin_labels(edges: Sequence[float], is_integer: bool = False) -> list[str]:
    """Format the label of each bin between neighbouring edges.

    Narrow bins of whole numbers end before the next one begins; wide ones share a rounded edge.

    Parameters
    ----------
    edges : sequence of float
        Increasing; the last one of whole numbers is the one after the upper bound.
    is_integer : bool, default False
        Whether the feature holds whole numbers.

    Examples
    --------
    >>> format_bin_labels([0.2792727, 0.3819, 0.4845])
    ['0.28 to 0.38', '0.38 to 0.48']
    >>> format_bin_labels([0.0, 10.0, 11.0, 21.0], is_integer=True)
    ['0 to 9', '10', '11 to 20']
    >>> format_bin_labels([10000.0, 40938.0, 71876.0], is_integer=True)
    ['10000 to 40000', '40000 to 72000']
    """
    widths = [high - low for low, high in pairwise(edges)]
    narrower_widths = map(min, [*widths[:1], *widths], [*widths, *widths[-1:]])
    edge_texts = [
        format_edge(
            edge, 0.0 if is_integer and width < MIN_ROUNDED_WIDTH else MAX_SHIFT_PART * width
        )
        for edge, width in zip(edges, narrower_widths, strict=True)
    ]
    bin_labels = []
    for (low, high), (low_text, high_text) in zip(
        pairwise(edges), pairwise(edge_texts), strict=True
    ):
        if is_integer and low == high - 1:
            bin_labels.append(f"{low:.0f}")
        elif is_integer and high - low < MIN_ROUNDED_WIDTH:
            bin_labels.append(f"{low_text} to {high - 1:.0f}")
        else:
            bin_labels.append(f"{low_text} to {high_text}")
    return bin_labels
