"""Parts of charts: texts and number formats, axes, positions on them, marks.

Horizontal places are percentages of the width. Words and number formats are passed in
(:class:`ChartTexts`), so that pages in any language can use them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

__all__ = [
    "Axis",
    "Picture",
    "Words",
    "percent",
    "plain",
    "stylesheet",
    "whole_percent",
]


def percent(value: float) -> str:
    """A share in percent, one decimal.

    >>> percent(0.714)
    '71.4 %'
    """
    return f"{100 * value:.1f} %".replace("-", "\u2212")


def whole_percent(value: float) -> str:
    """A share in whole percent, for tick marks."""
    return f"{100 * value:.3g} %".replace("-", "\u2212")


def plain(value: float) -> str:
    """A number with three significant digits."""
    return f"{value:.3g}".replace("-", "\u2212")


@dataclass(frozen=True)
class Words:
    """Texts of a chart besides its data, and its number format."""

    label: str = ""
    estimate: str = "estimate"
    interval: str = "95 % interval"
    to: str = "to"
    numbers: str = "The numbers as a table"
    number: Callable[[float], str] = percent


@dataclass(frozen=True)
class Picture:
    """A finished chart; templates that know ``__html__`` do not escape it a second time."""

    html: str

    def __str__(self) -> str:
        return self.html

    def __html__(self) -> str:
        """The chart itself, for templates."""
        return self.html

    def _repr_html_(self) -> str:
        return f"<style>{stylesheet()}</style>{self.html}"


@dataclass(frozen=True)
class Axis:
    """Title and limits of an axis; None takes the limit from the data."""

    title: str = ""
    low: float | None = None
    high: float | None = None
    log: bool = False
    number: Callable[[float], str] = plain
    ticks: Sequence[float] = field(default=())


def stylesheet() -> str:
    """The style sheet of all charts, light, dark and printed."""
    return Path(__file__).with_name("charts.css").read_text("utf-8")


def ticks_between(low: float, high: float, about: int = 4) -> list[float]:
    """Round numbers from low to high.

    >>> ticks_between(0.62, 0.81)
    [0.65, 0.7, 0.75, 0.8]
    """
    rough = (high - low) / max(1, about)
    unit = 10.0 ** math.floor(math.log10(rough))
    step = next(unit * k for k in (1, 2, 2.5, 5, 10) if unit * k >= rough * 0.999)
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [round(k * step, 12) for k in range(first, last + 1)]


def span_of(values: Iterable[float], axis: Axis) -> tuple[float, float]:
    """The limits of an axis: those given, or the data with a little room."""
    known = [v for v in values if math.isfinite(v)]
    low, high = min(known, default=0.0), max(known, default=1.0)
    room = 0.04 * (high - low) or 0.5 * abs(high) or 0.5
    if axis.log:
        room = 0.0 if high > low else high / 2
    low = low - room if axis.low is None else axis.low
    high = high + room if axis.high is None else axis.high
    return (low, high) if high > low else (low, low + 1.0)


def place_of(value: float, span: tuple[float, float], log: bool = False) -> float:
    """Position of a value between the limits in percent, clipped to 0 to 100."""
    low, high = span
    if log:
        low, high, value = math.log(low), math.log(high), math.log(max(value, 1e-300))
    return min(100.0, max(0.0, 100 * (value - low) / (high - low)))


def at(place: float) -> str:
    return f"{place:.2f}".rstrip("0").rstrip(".")


def interval(low: float, high: float, words: Words) -> str:
    return f"{words.number(low)} {words.to} {words.number(high)}"


def points_text(points: Iterable[tuple[float, float]]) -> str:
    return " ".join(f"{at(a)},{at(b)}" for a, b in points)


def mark(kind: int, x: float = 0, y: float = 0, r: float = 4.5) -> str:
    """SVG mark whose shape identifies the series without colour."""
    name = f'class="series-{kind}"'
    full, hollow = 'fill="currentColor"', 'fill="none" stroke="currentColor" stroke-width="2"'
    if kind in (1, 5):
        centre = f'cx="{at(x)}" cy="{at(y)}" r="{r:g}"'
        return f"<circle {name} {centre} {full if kind == 1 else hollow}/>"
    if kind in (2, 6):
        corner = f'x="{at(x - r)}" y="{at(y - r)}" width="{2 * r:g}" height="{2 * r:g}"'
        return f"<rect {name} {corner} {full if kind == 2 else hollow}/>"
    corners = [(0, -r - 1), (r + 1, r), (-r - 1, r)]
    if kind == 4:
        corners = [(0, -r - 1), (r + 1, 0), (0, r + 1), (-r - 1, 0)]
    points = points_text((x + a, y + b) for a, b in corners)
    return f'<polygon {name} points="{points}" {full}/>'
