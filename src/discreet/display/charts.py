"""Charts as HTML and SVG, for the demo, the report and the desk.

A chart is text without scripts and without inline styles, so that it works under the policy
``style-src 'self'``: looks come from ``charts.css`` (``drawing.read_stylesheet``), and without it
shapes and dashes still tell the series apart. Horizontal places are percentages of the width, so
letters keep their size on every screen. Labels are ordinary HTML that wraps: none can cover
another. The numbers are next to every picture, for screen readers and for copying.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from discreet.display.chart_parts import (
    Axis,
    ChartTexts,
    Picture,
    compute_place,
    compute_span,
    compute_ticks,
    format_coordinate,
    format_interval,
    format_points,
    render_mark,
)

__all__ = ["ChartSeries", "EstimateRow", "render_estimates", "render_hundred", "render_series"]

SERIES_STYLES = 6
"""Number of colours and shapes, as in charts.css; further series repeat them."""
PLOT_LEFT = 14
"""Left edge of the plot area in percent of the picture's width."""
PLOT_WIDTH = 83
"""Width of the plot area in percent of the picture's width."""
PLOT_TOP = 3
"""Upper edge of the plot area in percent of the picture's height."""
PLOT_HEIGHT = 86
"""Height of the plot area in percent of the picture's height."""
MIN_TICK_GAP = 9.0
"""Smallest distance of two tick labels in percent of the plot's width."""


@dataclass(frozen=True)
class EstimateRow:
    """One row of :func:`render_estimates`: estimate, interval, and reach of false answers."""

    label: str
    value: float
    low: float
    high: float
    note: str = ""
    manipulable_range: tuple[float, float] | None = None


@dataclass(frozen=True)
class ChartSeries:
    """One series of :func:`render_series`; without low and high it is drawn without a band."""

    label: str
    x: Sequence[float]
    y: Sequence[float]
    low: Sequence[float] = ()
    high: Sequence[float] = ()
    is_reference: bool = False  # a thin dashed line without points: a baseline, a diagonal


def render_estimates(
    rows: Sequence[EstimateRow],
    *,
    title: str,
    axis: Axis | None = None,
    reference: tuple[str, float] | None = None,
    texts: ChartTexts | None = None,
) -> Picture:
    """Estimates as dots with intervals on one common scale; the table is the chart.

    Parameters
    ----------
    rows : sequence of EstimateRow
    title : str
        The table's caption.
    axis : Axis, optional
        Limits and tick marks of the common scale.
    reference : (str, float), optional
        A dashed line through all rows, with its meaning: the majority class, no privacy.
    texts : ChartTexts, optional

    Examples
    --------
    >>> picture = render_estimates([EstimateRow("yes", 0.31, 0.28, 0.34)], title="Missed a payment")
    >>> "31.0 %" in picture.html and "28.0 % to 34.0 %" in picture.html
    True
    """
    texts = texts or ChartTexts()
    axis = axis or Axis(format_tick=texts.format_value)
    end_values = [
        value
        for row in rows
        for value in (row.value, row.low, row.high, *(row.manipulable_range or ()))
    ]
    value_span = compute_span([*end_values, *([reference[1]] if reference else [])], axis)
    tick_values = list(axis.ticks) or compute_ticks(*value_span)
    grid_lines = "".join(
        f'<line class="grid" x1="{tick_place}%" x2="{tick_place}%" y1="0" y2="100%" '
        'stroke="currentColor"/>'
        for tick_place in (
            format_coordinate(compute_place(tick, value_span)) for tick in tick_values
        )
    )
    if reference:
        reference_place = format_coordinate(compute_place(reference[1], value_span))
        grid_lines += (
            f'<line class="reference" x1="{reference_place}%" x2="{reference_place}%" y1="0" '
            'y2="100%" stroke="currentColor" stroke-dasharray="3 3"/>'
        )
    table_rows = "".join(_render_estimate_row(row, grid_lines, value_span, texts) for row in rows)
    header_cells = "".join(
        f'<th scope="col">{escape(heading)}</th>'
        for heading in (texts.label_heading, texts.estimate_heading, texts.interval_heading)
    ).replace('<th scope="col"></th>', "<td></td>")
    reference_key = ""
    if reference:
        reference_key = (
            f'<p class="key">{_render_swatch(0)} {escape(reference[0])}: '
            f"{escape(texts.format_value(reference[1]))}</p>"
        )
    return Picture(
        f'<div class="chart"><table class="dots"><caption>{escape(title)}</caption><thead><tr>'
        f'{header_cells}<td class="strip"></td></tr></thead><tbody>{table_rows}</tbody><tfoot><tr '
        'aria-hidden="true"><td></td><td></td><td></td><td class="strip">'
        f"{_render_scale(tick_values, value_span, axis)}</td></tr></tfoot></table>"
        f"{reference_key}</div>"
    )


def _render_estimate_row(
    row: EstimateRow, grid_lines: str, value_span: tuple[float, float], texts: ChartTexts
) -> str:
    low_place, high_place, value_place = (
        format_coordinate(compute_place(value, value_span))
        for value in (row.low, row.high, row.value)
    )
    range_rect = ""
    if row.manipulable_range is not None:
        range_start, range_end = (
            compute_place(value, value_span) for value in row.manipulable_range
        )
        range_rect = (
            f'<rect class="faint" x="{format_coordinate(range_start)}%" '
            f'width="{format_coordinate(range_end - range_start)}%" y="7" height="14" '
            'fill="currentColor" fill-opacity="0.15"/>'
        )
    arrow_heads = "".join(  # an interval that leaves the scale ends in an arrow head
        f'<text class="beyond" x="{arrow_place}" y="18" text-anchor="{anchor}" '
        f'fill="currentColor">{arrow_sign}</text>'
        for is_outside, arrow_place, anchor, arrow_sign in (
            (row.low < value_span[0], "0%", "start", "◂"),
            (row.high > value_span[1], "100%", "end", "▸"),
        )
        if is_outside
    )
    note_html = f' <span class="note">{escape(row.note)}</span>' if row.note else ""
    return (
        f'<tr><th scope="row">{escape(row.label)}{note_html}</th><td '
        f'class="number">{escape(texts.format_value(row.value))}</td><td class="number '
        f'range">{escape(format_interval(row.low, row.high, texts))}</td><td class="strip"><svg '
        'width="100%" height="28" direction="ltr" aria-hidden="true" '
        f'focusable="false">{grid_lines}{range_rect}<line class="range" x1="{low_place}%" '
        f'x2="{high_place}%" y1="14" y2="14" stroke="currentColor" stroke-width="3"/><circle '
        f'class="dot" cx="{value_place}%" cy="14" r="5" '
        f'fill="currentColor"/>{arrow_heads}</svg></td></tr>'
    )


def _render_scale(tick_values: Sequence[float], value_span: tuple[float, float], axis: Axis) -> str:
    tick_labels = []
    for tick in tick_values:
        tick_place = compute_place(tick, value_span)
        anchor = "start" if tick_place < 8 else "end" if tick_place > 92 else "middle"
        tick_labels.append(
            f'<text class="tick" x="{format_coordinate(tick_place)}%" y="13" '
            f'text-anchor="{anchor}" font-size="12" '
            f'fill="currentColor">{escape(axis.format_tick(tick))}</text>'
        )
    title_html = f'<span class="axis">{escape(axis.title)}</span>' if axis.title else ""
    return (
        '<svg width="100%" height="18" direction="ltr" aria-hidden="true" focusable="false">'
        f"{''.join(tick_labels)}</svg>{title_html}"
    )


# ---------------------------------------------------------------- lines with bands


def render_series(
    series: Sequence[ChartSeries],
    *,
    title: str,
    x: Axis,
    y: Axis | None = None,
    texts: ChartTexts | None = None,
) -> Picture:
    """Series over a common axis, each with its band: accuracy against epsilon, reliability.

    Parameters
    ----------
    series : sequence of ChartSeries
    title : str
        Says what is seen; it is the picture's name for a screen reader.
    x, y : Axis
    texts : ChartTexts, optional

    Examples
    --------
    >>> picture = render_series(
    ...     [ChartSeries("central", [0.5, 1, 2], [0.7, 0.75, 0.78])],
    ...     title="Accuracy by epsilon", x=Axis("epsilon", is_log=True),
    ... )
    >>> picture.html.count("<polyline")
    1
    """
    texts = texts or ChartTexts()
    y = y or Axis(format_tick=texts.format_value)
    plot_area = _PlotArea.from_series(series, x, y)
    styled_series, style_counts = [], [0, 0]  # references have kinds 0, -1, ...; series 1, 2, ...
    for line in series:
        style_counts[line.is_reference] += 1
        style_index = (style_counts[0] - 1) % SERIES_STYLES + 1
        styled_series.append((1 - style_counts[1] if line.is_reference else style_index, line))
    band_shapes = "".join(_render_band(*styled_line, plot_area) for styled_line in styled_series)
    point_marks = "".join(
        _render_marks(style_index, line, plot_area)
        for style_index, line in styled_series
        if style_index > 0
    )
    legend_items = "".join(
        f"<li>{_render_swatch(style_index)} {escape(line.label)}</li>"
        for style_index, line in styled_series
    )
    grid_lines, y_labels, x_labels = _render_ticks(series, x, y, plot_area)
    x_extent = f'x="{PLOT_LEFT}%" width="{PLOT_WIDTH}%"'
    y_extent = f'y="{PLOT_TOP}%" height="{PLOT_HEIGHT}%"'
    plot_svg = (
        '<svg class="plot" width="100%" height="320" direction="ltr" role="img">'
        f"<title>{escape(title)}</title><desc>{escape(_describe_series(series, x, texts))}</desc>"
        f'<svg {y_extent} width="100%">{grid_lines}</svg>{y_labels}'
        f'<svg {x_extent} {y_extent} viewBox="0 0 100 100" '
        f'preserveAspectRatio="none" overflow="visible">{band_shapes}</svg>'
        f'<svg {x_extent} {y_extent} overflow="visible">{point_marks}</svg>'
        f"{x_labels}</svg>"
    )
    y_title, x_title = (
        f'<p class="axis {side}">{escape(axis.title)}</p>' if axis.title else ""
        for side, axis in (("up", y), ("across", x))
    )
    return Picture(
        f'<figure class="chart"><figcaption>{escape(title)}</figcaption><ul class="legend">'
        f"{legend_items}</ul>{y_title}{plot_svg}{x_title}<details><summary>"
        f"{escape(texts.table_title)}</summary>{_render_numbers(series, x, texts)}</details>"
        "</figure>"
    )


@dataclass(frozen=True)
class _PlotArea:
    """Limits of both axes, and positions between them in percent."""

    x_span: tuple[float, float]
    y_span: tuple[float, float]
    is_log: bool

    @classmethod
    def from_series(cls, series: Sequence[ChartSeries], x: Axis, y: Axis) -> _PlotArea:
        x_values = (value for line in series for value in line.x)
        y_values = (
            value for line in series for side in (line.y, line.low, line.high) for value in side
        )
        return cls(compute_span(x_values, x), compute_span(y_values, y), x.is_log)

    def place_x(self, value: float) -> float:
        return compute_place(value, self.x_span, self.is_log)

    def place_y(self, value: float) -> float:
        return 100 - compute_place(value, self.y_span)

    def place_points(self, line: ChartSeries, values: Sequence[float]) -> list[tuple[float, float]]:
        return [
            (self.place_x(x_value), self.place_y(y_value))
            for x_value, y_value in zip(line.x, values, strict=True)
            if math.isfinite(y_value)
        ]


def _render_ticks(
    series: Sequence[ChartSeries], x: Axis, y: Axis, plot_area: _PlotArea
) -> tuple[str, str, str]:
    """Grid lines, and the tick labels of y and of x."""
    x_ticks = list(x.ticks) or sorted(
        {value for line in series for value in line.x if not line.is_reference}
    )
    if not x.is_log and not x.ticks:
        x_ticks = compute_ticks(*plot_area.x_span, target_count=5)
    y_ticks = [
        (tick, plot_area.place_y(tick))
        for tick in list(y.ticks) or compute_ticks(*plot_area.y_span)
    ]
    grid_lines = "".join(
        f'<line class="grid" x1="0" x2="100%" y1="{place}%" y2="{place}%" stroke="currentColor"/>'
        for place in (format_coordinate(tick_place) for _, tick_place in y_ticks)
    )
    y_labels = "".join(
        f'<text class="tick" x="0" '
        f'y="{format_coordinate(PLOT_TOP + PLOT_HEIGHT / 100 * tick_place)}%" dy="-3" '
        f'font-size="12" fill="currentColor">{escape(y.format_tick(tick))}</text>'
        for tick, tick_place in y_ticks
    )
    x_labels = "".join(
        f'<text class="tick" '
        f'x="{format_coordinate(PLOT_LEFT + PLOT_WIDTH / 100 * tick_place)}%" y="96%" '
        'text-anchor="middle" font-size="12" '
        f'fill="currentColor">{escape(x.format_tick(tick))}</text>'
        for tick, tick_place in _space_ticks([(tick, plot_area.place_x(tick)) for tick in x_ticks])
    )
    return grid_lines, y_labels, x_labels


def _space_ticks(
    placed_ticks: Sequence[tuple[float, float]], min_gap: float = MIN_TICK_GAP
) -> list[tuple[float, float]]:
    """Drop tick labels that are too close to the next one; the last one stays."""
    spaced_ticks: list[tuple[float, float]] = []
    for tick, place in sorted(placed_ticks, key=lambda pair: -pair[1]):
        if not spaced_ticks or spaced_ticks[-1][1] - place >= min_gap:
            spaced_ticks.append((tick, place))
    return spaced_ticks[::-1]


SERIES_DASHES = {1: "", 2: "7 3", 3: "2 2", 4: "9 3 2 3", 5: "5 2", 6: "1 2"} | {
    0: "3 3", -1: "10 4", -2: "10 3 3 3"
}  # fmt: skip
"""Dash pattern by style index: series 1 to 6, reference lines 0, -1 and -2."""


def _format_line_style(style_index: int) -> str:
    """SVG attributes of the line of a series or a reference."""
    dash_pattern = SERIES_DASHES.get(style_index, "3 3")
    return (
        f'class="{_get_css_class(style_index)}" fill="none" stroke="currentColor" '
        f'stroke-width="{2 if style_index > 0 else 1.5}"'
        + (f' stroke-dasharray="{dash_pattern}"' if dash_pattern else "")
    )


def _get_css_class(style_index: int) -> str:
    return f"series-{style_index}" if style_index > 0 else "reference"


def _render_band(style_index: int, line: ChartSeries, plot_area: _PlotArea) -> str:
    band_polygon = ""
    if len(line.low) and len(line.high):
        band_edge = plot_area.place_points(line, line.high)
        band_edge += plot_area.place_points(line, line.low)[::-1]
        band_polygon = (
            f'<polygon class="{_get_css_class(style_index)} band" '
            f'points="{format_points(band_edge)}" fill="currentColor" fill-opacity="0.14"/>'
        )
    line_points = format_points(plot_area.place_points(line, line.y))
    return (
        f'{band_polygon}<polyline points="{line_points}" {_format_line_style(style_index)} '
        'vector-effect="non-scaling-stroke"/>'
    )


def _render_marks(style_index: int, line: ChartSeries, plot_area: _PlotArea) -> str:
    return "".join(
        f'<svg x="{format_coordinate(x_place)}%" y="{format_coordinate(y_place)}%" '
        f'overflow="visible">{render_mark(style_index)}</svg>'
        for x_place, y_place in plot_area.place_points(line, line.y)
    )


def _render_swatch(style_index: int) -> str:
    mark_shape = render_mark(style_index, 16, 8) if style_index > 0 else ""
    return (
        '<svg class="swatch" width="32" height="16" aria-hidden="true" focusable="false">'
        f'<line x1="0" x2="32" y1="8" y2="8" {_format_line_style(style_index)}/>{mark_shape}</svg>'
    )


def _describe_series(series: Sequence[ChartSeries], x: Axis, texts: ChartTexts) -> str:
    descriptions = []
    for line in series:
        if line.is_reference:
            continue
        first_point, last_point = (
            f"{texts.format_value(line.y[end])} ({x.title} {x.format_tick(line.x[end])})"
            for end in (0, -1)
        )
        descriptions.append(f"{line.label}: {first_point} {texts.range_word} {last_point}.")
    return " ".join(descriptions)


def _render_numbers(series: Sequence[ChartSeries], x: Axis, texts: ChartTexts) -> str:
    """All points of all series, one line for each place on the x axis."""
    shown_series = [line for line in series if not line.is_reference]
    x_values = sorted({value for line in shown_series for value in line.x})
    header_cells = "".join(f'<th scope="col">{escape(line.label)}</th>' for line in shown_series)
    table_rows = ""
    for x_value in x_values:
        row_cells = ""
        for line in shown_series:
            cell_text = "–"
            if x_value in line.x:
                point_index = list(line.x).index(x_value)
                cell_text = texts.format_value(line.y[point_index])
                if len(line.low):
                    low, high = line.low[point_index], line.high[point_index]
                    cell_text += f" ({format_interval(low, high, texts)})"
            row_cells += f'<td class="number">{escape(cell_text)}</td>'
        table_rows += f'<tr><th scope="row">{escape(x.format_tick(x_value))}</th>{row_cells}</tr>'
    return (
        f'<div class="scroll" tabindex="0" role="region" aria-label="{escape(texts.table_title)}">'
        f'<table class="numbers"><thead><tr><th scope="col">{escape(x.title)}</th>'
        f"{header_cells}</tr></thead><tbody>{table_rows}</tbody></table></div>"
    )


# ---------------------------------------------------------------- a hundred people


def render_hundred(groups: Sequence[tuple[int, str]], *, title: str) -> Picture:
    """A hundred people as a hundred marks: each kind has its own shape and colour.

    Parameters
    ----------
    groups : sequence of (int, str)
        How many of the hundred, and what of them; at most four kinds that add up to 100.
    title : str
        The sentence that the picture shows.

    Examples
    --------
    >>> text = "Of 100 people who answer as you did, 62 send their true answer."
    >>> picture = render_hundred([(62, "true answer"), (38, "made up")], title=text)
    >>> picture.html.count("<circle") - 1  # one more in the legend
    62
    """
    if len(groups) > 4 or sum(count for count, _ in groups) != 100:
        raise ValueError("a hundred marks of at most four kinds")
    mark_styles = (1, 4, 2, 3)  # disc, diamond, square, triangle: far apart in shape
    person_styles = [
        mark_styles[group_index]
        for group_index, (count, _) in enumerate(groups)
        for _ in range(count)
    ]
    person_marks = "".join(
        render_mark(style_index, 10 + 20 * (position % 10), 10 + 20 * (position // 10), 6)
        for position, style_index in enumerate(person_styles)
    )
    legend_items = "".join(
        '<li><svg class="swatch" width="16" height="16" aria-hidden="true" focusable="false">'
        f"{render_mark(mark_styles[group_index], 8, 8, 5.5)}</svg> {count} {escape(text)}</li>"
        for group_index, (count, text) in enumerate(groups)
    )
    summary = ", ".join(f"{count} {text}" for count, text in groups)
    return Picture(
        f'<figure class="chart hundred"><svg class="crowd" viewBox="0 0 200 200" role="img">'
        f"<title>{escape(title)}</title><desc>{escape(summary)}</desc>{person_marks}</svg>"
        f'<figcaption>{escape(title)}</figcaption><ul class="legend">{legend_items}</ul></figure>'
    )
