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
    "ChartTexts",
    "Picture",
    "format_percent",
    "format_significant",
    "format_whole_percent",
    "read_stylesheet",
]


def format_percent(value: float) -> str:
    """A share in percent, one decimal.

    >>> format_percent(0.714)
    '71.4 %'
    """
    return f"{100 * value:.1f} %".replace("-", "\u2212")


def format_whole_percent(value: float) -> str:
    """A share in whole percent, for tick marks."""
    return f"{100 * value:.3g} %".replace("-", "\u2212")


def format_significant(value: float) -> str:
    """A number with three significant digits."""
    return f"{value:.3g}".replace("-", "\u2212")


@dataclass(frozen=True)
class ChartTexts:
    """Texts of a chart besides its data, and its number format."""

    label_heading: str = ""
    estimate_heading: str = "estimate"
    interval_heading: str = "95 % interval"
    range_word: str = "to"
    table_title: str = "The numbers as a table"
    format_value: Callable[[float], str] = format_percent


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
        return f"<style>{read_stylesheet()}</style>{self.html}"


@dataclass(frozen=True)
class Axis:
    """Title and limits of an axis; None takes the limit from the data."""

    title: str = ""
    low: float | None = None
    high: float | None = None
    is_log: bool = False
    format_tick: Callable[[float], str] = format_significant
    ticks: Sequence[float] = field(default=())


def read_stylesheet() -> str:
    """The style sheet of all charts, light, dark and printed."""
    return Path(__file__).with_name("charts.css").read_text("utf-8")


def compute_ticks(low: float, high: float, target_count: int = 4) -> list[float]:
    """Round numbers from low to high.

    >>> compute_ticks(0.62, 0.81)
    [0.65, 0.7, 0.75, 0.8]
    """
    rough_step = (high - low) / max(1, target_count)
    power_of_ten = 10.0 ** math.floor(math.log10(rough_step))
    step = next(
        power_of_ten * k for k in (1, 2, 2.5, 5, 10) if power_of_ten * k >= rough_step * 0.999
    )
    first_index, last_index = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [round(k * step, 12) for k in range(first_index, last_index + 1)]


def compute_span(values: Iterable[float], axis: Axis) -> tuple[float, float]:
    """The limits of an axis: those given, or the data with a little room."""
    finite_values = [v for v in values if math.isfinite(v)]
    low, high = min(finite_values, default=0.0), max(finite_values, default=1.0)
    margin = 0.04 * (high - low) or 0.5 * abs(high) or 0.5
    if axis.is_log:
        margin = 0.0 if high > low else high / 2
    low = low - margin if axis.low is None else axis.low
    high = high + margin if axis.high is None else axis.high
    return (low, high) if high > low else (low, low + 1.0)


def compute_place(value: float, axis_span: tuple[float, float], is_log: bool = False) -> float:
    """Position of a value between the limits in percent, clipped to 0 to 100."""
    low, high = axis_span
    if is_log:
        low, high, value = math.log(low), math.log(high), math.log(max(value, 1e-300))
    return min(100.0, max(0.0, 100 * (value - low) / (high - low)))


def format_coordinate(place: float) -> str:
    return f"{place:.2f}".rstrip("0").rstrip(".")


def format_interval(low: float, high: float, texts: ChartTexts) -> str:
    return f"{texts.format_value(low)} {texts.range_word} {texts.format_value(high)}"


def format_points(points: Iterable[tuple[float, float]]) -> str:
    return " ".join(f"{format_coordinate(a)},{format_coordinate(b)}" for a, b in points)


def render_mark(style_index: int, x: float = 0, y: float = 0, r: float = 4.5) -> str:
    """SVG mark whose shape identifies the series without colour."""
    class_attribute = f'class="series-{style_index}"'
    filled_style = 'fill="currentColor"'
    hollow_style = 'fill="none" stroke="currentColor" stroke-width="2"'
    if style_index in (1, 5):
        centre_attributes = f'cx="{format_coordinate(x)}" cy="{format_coordinate(y)}" r="{r:g}"'
        style = filled_style if style_index == 1 else hollow_style
        return f"<circle {class_attribute} {centre_attributes} {style}/>"
    if style_index in (2, 6):
        corner_attributes = f'x="{format_coordinate(x - r)}" y="{format_coordinate(y - r)}"'
        size_attributes = f'width="{2 * r:g}" height="{2 * r:g}"'
        style = filled_style if style_index == 2 else hollow_style
        return f"<rect {class_attribute} {corner_attributes} {size_attributes} {style}/>"
    corners = [(0, -r - 1), (r + 1, r), (-r - 1, r)]
    if style_index == 4:
        corners = [(0, -r - 1), (r + 1, 0), (0, r + 1), (-r - 1, 0)]
    corner_points = format_points((x + a, y + b) for a, b in corners)
    return f'<polygon {class_attribute} points="{corner_points}" {filled_style}/>'
