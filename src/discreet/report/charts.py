"""Charts as HTML and SVG, for the demo, the report and the desk.

A chart is text without scripts and without inline styles, so that it works under the policy
``style-src 'self'``: looks come from ``charts.css`` (``drawing.stylesheet``), and without it shapes
and dashes still tell the series apart. Horizontal places are percentages of the width, so letters
keep their size on every screen. Labels are ordinary HTML that wraps: none can cover another. The
numbers are next to every picture, for screen readers and for copying.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from discreet.report.drawing import (
    Axis,
    Picture,
    Words,
    at,
    interval,
    mark,
    place_of,
    points_text,
    span_of,
    ticks_between,
)

__all__ = [
    "Dot",
    "Line",
    "dots",
    "hundred",
    "lines",
]

SERIES = 6
"""Number of colours and shapes; further series repeat them."""


@dataclass(frozen=True)
class Dot:
    """One row of :func:`render_estimates`: estimate, interval, and reach of false answers."""

    label: str
    value: float
    low: float
    high: float
    note: str = ""
    faint: tuple[float, float] | None = None


@dataclass(frozen=True)
class Line:
    """One series of :func:`render_series`; without low and high it is drawn without a band."""

    label: str
    x: Sequence[float]
    y: Sequence[float]
    low: Sequence[float] = ()
    high: Sequence[float] = ()
    reference: bool = False  # a thin dashed line without points: a baseline, a diagonal


def dots(
    rows: Sequence[Dot],
    *,
    title: str,
    axis: Axis | None = None,
    reference: tuple[str, float] | None = None,
    words: Words | None = None,
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
    words : Words, optional

    Examples
    --------
    >>> picture = dots([Dot("yes", 0.31, 0.28, 0.34)], title="Missed a payment")
    >>> "31.0 %" in picture.html and "28.0 % to 34.0 %" in picture.html
    True
    """
    words, axis = words or Words(), axis or Axis(number=(words or Words()).number)
    ends = [v for row in rows for v in (row.value, row.low, row.high, *(row.faint or ()))]
    span = span_of([*ends, *([reference[1]] if reference else [])], axis)
    ticks = list(axis.ticks) or ticks_between(*span)
    grid = "".join(
        f'<line class="grid" x1="{p}%" x2="{p}%" y1="0" y2="100%" stroke="currentColor"/>'
        for p in (at(place_of(tick, span)) for tick in ticks)
    )
    if reference:
        place = at(place_of(reference[1], span))
        grid += (
            f'<line class="reference" x1="{place}%" x2="{place}%" y1="0" y2="100%" '
            'stroke="currentColor" stroke-dasharray="3 3"/>'
        )
    body = "".join(_dot_row(row, grid, span, words) for row in rows)
    heads = "".join(
        f'<th scope="col">{escape(word)}</th>'
        for word in (words.label, words.estimate, words.interval)
    ).replace('<th scope="col"></th>', "<td></td>")
    key = ""
    if reference:
        key = (
            f'<p class="key">{_swatch(0)} {escape(reference[0])}: '
            f"{escape(words.number(reference[1]))}</p>"
        )
    return Picture(
        f'<div class="chart"><table class="dots"><caption>{escape(title)}</caption>'
        f'<thead><tr>{heads}<td class="strip"></td></tr></thead><tbody>{body}</tbody>'
        f'<tfoot><tr aria-hidden="true"><td></td><td></td><td></td><td class="strip">'
        f"{_scale(ticks, span, axis)}</td></tr></tfoot></table>{key}</div>"
    )


def _dot_row(row: Dot, grid: str, span: tuple[float, float], words: Words) -> str:
    low, high, middle = (at(place_of(v, span)) for v in (row.low, row.high, row.value))
    faint = ""
    if row.faint is not None:
        one, two = (place_of(v, span) for v in row.faint)
        faint = (
            f'<rect class="faint" x="{at(one)}%" width="{at(two - one)}%" y="7" height="14" '
            'fill="currentColor" fill-opacity="0.15"/>'
        )
    beyond = "".join(  # an interval that leaves the scale ends in an arrow head
        f'<text class="beyond" x="{x}" y="18" text-anchor="{anchor}" fill="currentColor">{sign}'
        "</text>"
        for outside, x, anchor, sign in (
            (row.low < span[0], "0%", "start", "◂"),
            (row.high > span[1], "100%", "end", "▸"),
        )
        if outside
    )
    note = f' <span class="note">{escape(row.note)}</span>' if row.note else ""
    return (
        f'<tr><th scope="row">{escape(row.label)}{note}</th>'
        f'<td class="number">{escape(words.number(row.value))}</td>'
        f'<td class="number range">{escape(interval(row.low, row.high, words))}</td>'
        '<td class="strip"><svg width="100%" height="28" direction="ltr" aria-hidden="true" '
        f'focusable="false">{grid}{faint}'
        f'<line class="range" x1="{low}%" x2="{high}%" y1="14" y2="14" stroke="currentColor" '
        'stroke-width="3"/>'
        f'<circle class="dot" cx="{middle}%" cy="14" r="5" fill="currentColor"/>{beyond}'
        "</svg></td></tr>"
    )


def _scale(ticks: Sequence[float], span: tuple[float, float], axis: Axis) -> str:
    texts = []
    for tick in ticks:
        place = place_of(tick, span)
        anchor = "start" if place < 8 else "end" if place > 92 else "middle"
        texts.append(
            f'<text class="tick" x="{at(place)}%" y="13" text-anchor="{anchor}" font-size="12" '
            f'fill="currentColor">{escape(axis.number(tick))}</text>'
        )
    title = f'<span class="axis">{escape(axis.title)}</span>' if axis.title else ""
    return (
        '<svg width="100%" height="18" direction="ltr" aria-hidden="true" focusable="false">'
        f"{''.join(texts)}</svg>{title}"
    )


# ---------------------------------------------------------------- lines with bands


def lines(
    series: Sequence[Line],
    *,
    title: str,
    x: Axis,
    y: Axis | None = None,
    words: Words | None = None,
) -> Picture:
    """Series over a common axis, each with its band: accuracy against epsilon, reliability.

    Parameters
    ----------
    series : sequence of ChartSeries
    title : str
        Says what is seen; it is the picture's name for a screen reader.
    x, y : Axis
    words : Words, optional

    Examples
    --------
    >>> picture = lines(
    ...     [Line("central", [0.5, 1, 2], [0.7, 0.75, 0.78])],
    ...     title="Accuracy by epsilon", x=Axis("epsilon", log=True),
    ... )
    >>> picture.html.count("<polyline")
    1
    """
    words = words or Words()
    y = y or Axis(number=words.number)
    wide = span_of((v for one in series for v in one.x), x)
    tall = span_of((v for one in series for part in (one.y, one.low, one.high) for v in part), y)
    places = list(x.ticks) or sorted({v for one in series for v in one.x if not one.reference})
    if not x.log and not x.ticks:
        places = ticks_between(*wide, about=5)
    kept = _apart([(tick, place_of(tick, wide, x.log)) for tick in places])
    drawn, count = [], [0, 0]  # references have kinds 0, -1, ...; series 1, 2, ...
    for one in series:
        count[one.reference] += 1
        drawn.append((1 - count[1] if one.reference else (count[0] - 1) % SERIES + 1, one))
    floor = [(tick, 100 - place_of(tick, tall)) for tick in list(y.ticks) or ticks_between(*tall)]
    across = "".join(
        f'<line class="grid" x1="0" x2="100%" y1="{at(p)}%" y2="{at(p)}%" stroke="currentColor"/>'
        for _, p in floor
    )
    heights = "".join(
        f'<text class="tick" x="0" y="{at(3 + 0.86 * p)}%" dy="-3" font-size="12" '
        f'fill="currentColor">{escape(y.number(tick))}</text>'
        for tick, p in floor
    )
    below = "".join(
        f'<text class="tick" x="{at(14 + 0.83 * p)}%" y="96%" text-anchor="middle" '
        f'font-size="12" fill="currentColor">{escape(x.number(tick))}</text>'
        for tick, p in kept
    )
    inner = "".join(_band(kind, one, wide, tall, x.log) for kind, one in drawn)
    marks = "".join(_marks(kind, one, wide, tall, x.log) for kind, one in drawn if kind > 0)
    legend = "".join(f"<li>{_swatch(kind)} {escape(one.label)}</li>" for kind, one in drawn)
    picture = (
        '<svg class="plot" width="100%" height="320" direction="ltr" role="img">'
        f"<title>{escape(title)}</title><desc>{escape(_described(series, x, words))}</desc>"
        f'<svg y="3%" height="86%" width="100%">{across}</svg>{heights}'
        '<svg x="14%" width="83%" y="3%" height="86%" viewBox="0 0 100 100" '
        f'preserveAspectRatio="none" overflow="visible">{inner}</svg>'
        f'<svg x="14%" width="83%" y="3%" height="86%" overflow="visible">{marks}</svg>'
        f"{below}</svg>"
    )
    up, beneath = (
        f'<p class="axis {side}">{escape(axis.title)}</p>' if axis.title else ""
        for side, axis in (("up", y), ("across", x))
    )
    return Picture(
        f'<figure class="chart"><figcaption>{escape(title)}</figcaption>'
        f'<ul class="legend">{legend}</ul>{up}{picture}{beneath}'
        f"<details><summary>{escape(words.numbers)}</summary>{_numbers(series, x, words)}</details>"
        "</figure>"
    )


def _apart(placed: Sequence[tuple[float, float]], gap: float = 9.0) -> list[tuple[float, float]]:
    """Drop tick labels that are too close to the next one; the last one stays."""
    kept: list[tuple[float, float]] = []
    for tick, place in sorted(placed, key=lambda pair: -pair[1]):
        if not kept or kept[-1][1] - place >= gap:
            kept.append((tick, place))
    return kept[::-1]


def _points(
    one: Line, values: Sequence[float], wide: tuple[float, float], tall: tuple[float, float],
    log: bool,
) -> list[tuple[float, float]]:  # fmt: skip
    return [
        (place_of(a, wide, log), 100 - place_of(b, tall))
        for a, b in zip(one.x, values, strict=True)
        if math.isfinite(b)
    ]


DASHES = {1: "", 2: "7 3", 3: "2 2", 4: "9 3 2 3", 5: "5 2", 6: "1 2", 0: "3 3", -1: "10 4"}
"""Dash pattern by style index: series 1 to 6, reference lines 0 and -1."""


def _drawn(kind: int) -> str:
    """SVG attributes of the line of a series or a reference."""
    dashes = DASHES.get(kind, "3 3")
    return (
        f'class="{_name(kind)}" fill="none" stroke="currentColor" '
        f'stroke-width="{2 if kind > 0 else 1.5}"'
        + (f' stroke-dasharray="{dashes}"' if dashes else "")
    )


def _name(kind: int) -> str:
    return f"series-{kind}" if kind > 0 else "reference"


def _band(
    kind: int, one: Line, wide: tuple[float, float], tall: tuple[float, float], log: bool
) -> str:
    made = ""
    if len(one.low) and len(one.high):
        edge = _points(one, one.high, wide, tall, log)
        edge += _points(one, one.low, wide, tall, log)[::-1]
        made = (
            f'<polygon class="{_name(kind)} band" points="{points_text(edge)}" fill="currentColor" '
            'fill-opacity="0.14"/>'
        )
    points = points_text(_points(one, one.y, wide, tall, log))
    return f'{made}<polyline points="{points}" {_drawn(kind)} vector-effect="non-scaling-stroke"/>'


def _marks(
    kind: int, one: Line, wide: tuple[float, float], tall: tuple[float, float], log: bool
) -> str:
    return "".join(
        f'<svg x="{at(a)}%" y="{at(b)}%" overflow="visible">{mark(kind)}</svg>'
        for a, b in _points(one, one.y, wide, tall, log)
    )


def _swatch(kind: int) -> str:
    shape = mark(kind, 16, 8) if kind > 0 else ""
    return (
        '<svg class="swatch" width="32" height="16" aria-hidden="true" focusable="false">'
        f'<line x1="0" x2="32" y1="8" y2="8" {_drawn(kind)}/>{shape}</svg>'
    )


def _described(series: Sequence[Line], x: Axis, words: Words) -> str:
    parts = []
    for one in series:
        if one.reference:
            continue
        ends = f"{words.number(one.y[0])} ({x.title} {x.number(one.x[0])}) {words.to} "
        ends += f"{words.number(one.y[-1])} ({x.title} {x.number(one.x[-1])})"
        parts.append(f"{one.label}: {ends}.")
    return " ".join(parts)


def _numbers(series: Sequence[Line], x: Axis, words: Words) -> str:
    """All points of all series, one line for each place on the x axis."""
    shown = [one for one in series if not one.reference]
    places = sorted({v for one in shown for v in one.x})
    heads = "".join(f'<th scope="col">{escape(one.label)}</th>' for one in shown)
    body = ""
    for place in places:
        cells = ""
        for one in shown:
            text = "–"
            if place in one.x:
                k = list(one.x).index(place)
                text = words.number(one.y[k])
                if len(one.low):
                    text += f" ({interval(one.low[k], one.high[k], words)})"
            cells += f'<td class="number">{escape(text)}</td>'
        body += f'<tr><th scope="row">{escape(x.number(place))}</th>{cells}</tr>'
    return (
        f'<div class="scroll" tabindex="0" role="region" aria-label="{escape(words.numbers)}">'
        f'<table class="numbers"><thead><tr><th scope="col">{escape(x.title)}</th>{heads}</tr>'
        f"</thead><tbody>{body}</tbody></table></div>"
    )


# ---------------------------------------------------------------- a hundred people


def hundred(kinds: Sequence[tuple[int, str]], *, title: str) -> Picture:
    """A hundred people as a hundred marks: each kind has its own shape and colour.

    Parameters
    ----------
    kinds : sequence of (int, str)
        How many of the hundred, and what of them; at most four kinds that add up to 100.
    title : str
        The sentence that the picture shows.

    Examples
    --------
    >>> text = "Of 100 people who answer as you did, 62 send their true answer."
    >>> picture = hundred([(62, "true answer"), (38, "made up")], title=text)
    >>> picture.html.count("<circle") - 1  # one more in the legend
    62
    """
    if len(kinds) > 4 or sum(count for count, _ in kinds) != 100:
        raise ValueError("a hundred marks of at most four kinds")
    order = (1, 4, 2, 3)  # disc, diamond, square, triangle: far apart in shape
    marks = [order[k] for k, (count, _) in enumerate(kinds) for _ in range(count)]
    drawn = "".join(
        mark(kind, 10 + 20 * (k % 10), 10 + 20 * (k // 10), 6) for k, kind in enumerate(marks)
    )
    legend = "".join(
        '<li><svg class="swatch" width="16" height="16" aria-hidden="true" focusable="false">'
        f"{mark(order[k], 8, 8, 5.5)}</svg> {count} {escape(text)}</li>"
        for k, (count, text) in enumerate(kinds)
    )
    summary = ", ".join(f"{count} {text}" for count, text in kinds)
    return Picture(
        f'<figure class="chart hundred"><svg class="crowd" viewBox="0 0 200 200" role="img">'
        f"<title>{escape(title)}</title><desc>{escape(summary)}</desc>{drawn}</svg>"
        f'<figcaption>{escape(title)}</figcaption><ul class="legend">{legend}</ul></figure>'
    )
