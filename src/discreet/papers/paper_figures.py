"""Plots in the arrangement of a paper: panels of lines with standard errors, one legend."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from discreet.display.plots import get_series_style, import_pyplot
from discreet.errors import MissingDependencyError


@dataclass(frozen=True)
class PlotLine:
    """A line of a plot, with standard errors if it has any."""

    label: str
    x: Sequence[float]
    y: Sequence[float]
    standard_errors: Sequence[float] = ()
    style: str = "-"


@dataclass(frozen=True)
class Panel:
    """One pair of axes."""

    title: str
    lines: Sequence[PlotLine]
    x_label: str
    y_label: str
    log_x: bool = False
    log_y: bool = False


@dataclass(frozen=True)
class Figure:
    """A figure of the paper in its own arrangement."""

    name: str
    caption: str
    panels: Sequence[Panel]
    columns: int = 2


def make_flat_line(
    label: str, x_values: Sequence[float], y_value: float, style: str = ":"
) -> PlotLine:
    """A horizontal line from the first to the last x value.

    Parameters
    ----------
    label : str
    x_values : sequence of float
    y_value : float
    style : str
    """
    return PlotLine(label, [x_values[0], x_values[-1]], [y_value, y_value], style=style)


def draw_figure(figure: Figure, stem: Path) -> bool:
    """Write ``stem.svg`` and ``stem.png``; False where matplotlib is not installed.

    Parameters
    ----------
    figure : Figure
    stem : Path
    """
    try:
        pyplot = import_pyplot()
    except MissingDependencyError:
        return False
    column_count = min(figure.columns, len(figure.panels))
    row_count = math.ceil(len(figure.panels) / column_count)
    line_labels = dict.fromkeys(line.label for panel in figure.panels for line in panel.lines)
    style_indices = {line_label: style_index for style_index, line_label in enumerate(line_labels)}
    figure_width = 4.6 * column_count if column_count > 1 else 7.0
    with pyplot.rc_context({"svg.hashsalt": "discreet", "svg.fonttype": "none", "font.size": 9}):
        canvas = pyplot.Figure(figsize=(figure_width, 3.4 * row_count + 0.4), layout="constrained")
        axes = canvas.subplots(row_count, column_count, squeeze=False)
        for panel_axes, panel in zip(axes.flat, figure.panels, strict=False):
            _draw_panel(panel_axes, panel, style_indices)
        for panel_axes in list(axes.flat)[len(figure.panels) :]:
            panel_axes.set_visible(False)
        handles: dict[str, Any] = {}
        for panel_axes in axes.flat:
            for handle, label in zip(*panel_axes.get_legend_handles_labels(), strict=True):
                handles.setdefault(label, handle)
        column_width = 5.0 * max(map(len, style_indices)) + 45  # of the legend, in points
        canvas.legend(
            [handles[line_label] for line_label in style_indices],
            list(style_indices),
            loc="outside lower center",
            ncols=max(1, min(len(style_indices), int(figure_width * 72 / column_width))),
        )
        canvas.savefig(f"{stem}.svg", metadata={"Date": None})
        canvas.savefig(f"{stem}.png", dpi=110)
    return True


def _draw_panel(panel_axes: Any, panel: Panel, style_indices: Mapping[str, int]) -> None:
    for line in panel.lines:
        line_style: dict[str, Any] = {
            **get_series_style(style_indices[line.label]),
            "linestyle": line.style,
            "linewidth": 1.4,
            "markersize": 4,
            "label": line.label,
        }
        if len(line.x) == 1 or line.style != "-":
            line_style.pop("marker")
        if len(line.standard_errors):
            line_style.pop("linestyle")
            panel_axes.errorbar(line.x, line.y, line.standard_errors, capsize=2, **line_style)
        else:
            panel_axes.plot(line.x, line.y, **line_style)
    panel_axes.set_title(panel.title, fontsize=10)
    panel_axes.set_xlabel(panel.x_label)
    panel_axes.set_ylabel(panel.y_label)
    if panel.log_x:
        _set_log_scale(
            panel_axes.xaxis,
            panel_axes.set_xscale,
            sorted({x for plot_line in panel.lines for x in plot_line.x}),
        )
    if panel.log_y:
        _set_log_scale(panel_axes.yaxis, panel_axes.set_yscale)
    panel_axes.grid(alpha=0.3)


def _set_log_scale(
    axis: Any, set_scale: Callable[[str], None], x_values: Sequence[float] = ()
) -> None:
    """Set a log scale with plain numbers as ticks: the points' own values, or a few per decade."""
    from matplotlib.ticker import FixedLocator, FuncFormatter, LogLocator, NullLocator

    set_scale("log")
    low, high = axis.get_view_interval()
    value_ratio = high / max(low, 1e-300)
    if x_values:
        tick_values: list[float] = []
        for x_value in x_values:
            if not tick_values or math.log(x_value / tick_values[-1]) > 0.1 * math.log(value_ratio):
                tick_values.append(x_value)
        axis.set_major_locator(FixedLocator(tick_values))
    else:
        decade_ticks = (1.0, 1.5, 2.0, 3.0, 5.0, 7.0) if value_ratio < 10 else (1.0, 2.0, 5.0)
        axis.set_major_locator(LogLocator(subs=decade_ticks if value_ratio < 1e3 else (1.0,)))
    tick_formatter = FuncFormatter(
        lambda value, _: f"{value:,.0f}" if value == int(value) else f"{value:g}"
    )
    axis.set_major_formatter(tick_formatter)
    axis.set_minor_locator(NullLocator())
