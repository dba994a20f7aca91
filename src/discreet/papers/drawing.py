"""Plots in the arrangement of a paper: panels of lines with standard errors, one legend."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Line:
    """A line of a plot, with standard errors if it has any."""

    label: str
    x: Sequence[float]
    y: Sequence[float]
    error: Sequence[float] = ()
    style: str = "-"


@dataclass(frozen=True)
class Panel:
    """One pair of axes."""

    title: str
    lines: Sequence[Line]
    x: str
    y: str
    log_x: bool = False
    log_y: bool = False


@dataclass(frozen=True)
class Figure:
    """A figure of the paper in its own arrangement."""

    name: str
    caption: str
    panels: Sequence[Panel]
    columns: int = 2


def flat(label: str, at: Sequence[float], value: float, style: str = ":") -> Line:
    """A horizontal line from the first to the last x value.

    Parameters
    ----------
    label : str
    at : sequence of float
    value : float
    style : str
    """
    return Line(label, [at[0], at[-1]], [value, value], style=style)


COLOURS = ("#0b5cad", "#b34a00", "#00735a", "#a03c78", "#6b5500", "#1a1a1a", "#8a5fd0", "#c2185b")
MARKS = "os^Dvx*P"


def draw(figure: Figure, stem: Path) -> bool:
    """Write ``stem.svg`` and ``stem.png``; False where matplotlib is not installed.

    Parameters
    ----------
    figure : Figure
    stem : Path
    """
    try:
        import matplotlib
    except ImportError:
        return False
    matplotlib.use("Agg")
    from matplotlib import pyplot

    columns = min(figure.columns, len(figure.panels))
    rows = math.ceil(len(figure.panels) / columns)
    names = dict.fromkeys(line.label for panel in figure.panels for line in panel.lines)
    looks = {name: k for k, name in enumerate(names)}
    width = 4.6 * columns if columns > 1 else 7.0
    with pyplot.rc_context({"svg.hashsalt": "discreet", "svg.fonttype": "none", "font.size": 9}):
        made, axes = pyplot.subplots(
            rows, columns, figsize=(width, 3.4 * rows + 0.4), squeeze=False, layout="constrained"
        )
        for place, panel in zip(axes.flat, figure.panels, strict=False):
            _panel(place, panel, looks)
        for place in list(axes.flat)[len(figure.panels) :]:
            place.set_visible(False)
        handles: dict[str, Any] = {}
        for place in axes.flat:
            for handle, label in zip(*place.get_legend_handles_labels(), strict=True):
                handles.setdefault(label, handle)
        longest = max(len(name) for name in looks)
        across = max(1, min(len(looks), int(width * 72 / (5.0 * longest + 45))))
        made.legend(
            [handles[name] for name in looks], list(looks), loc="outside lower center", ncols=across
        )
        made.savefig(f"{stem}.svg", metadata={"Date": None})
        made.savefig(f"{stem}.png", dpi=110)
        pyplot.close(made)
    return True


def _panel(place: Any, panel: Panel, looks: Mapping[str, int]) -> None:
    for line in panel.lines:
        k = looks[line.label]
        look: dict[str, Any] = {"color": COLOURS[k % 8], "linestyle": line.style, "linewidth": 1.4}
        if len(line.x) > 1 and line.style == "-":
            look |= {"marker": MARKS[k % 8], "markersize": 4}
        if len(line.error):
            look.pop("linestyle")
            place.errorbar(line.x, line.y, line.error, label=line.label, capsize=2, **look)
        else:
            place.plot(line.x, line.y, label=line.label, **look)
    place.set_title(panel.title, fontsize=10)
    place.set_xlabel(panel.x)
    place.set_ylabel(panel.y)
    if panel.log_x:
        _log_scale(place.xaxis, place.set_xscale, sorted({x for one in panel.lines for x in one.x}))
    if panel.log_y:
        _log_scale(place.yaxis, place.set_yscale)
    place.grid(alpha=0.3)


def _log_scale(axis: Any, scale: Callable[[str], None], at: Sequence[float] = ()) -> None:
    """Set a log scale with plain numbers as ticks: the points' own values, or a few per decade."""
    from matplotlib.ticker import FixedLocator, FuncFormatter, LogLocator, NullLocator

    scale("log")
    low, high = axis.get_view_interval()
    wide = high / max(low, 1e-300)
    if at:
        kept: list[float] = []
        for one in at:
            if not kept or math.log(one / kept[-1]) > 0.1 * math.log(wide):
                kept.append(one)
        axis.set_major_locator(FixedLocator(kept))
    else:
        subs = (1.0, 1.5, 2.0, 3.0, 5.0, 7.0) if wide < 10 else (1.0, 2.0, 5.0)
        axis.set_major_locator(LogLocator(subs=subs if wide < 1e3 else (1.0,)))
    plain = FuncFormatter(lambda value, _: f"{value:,.0f}" if value == int(value) else f"{value:g}")
    axis.set_major_formatter(plain)
    axis.set_minor_locator(NullLocator())
