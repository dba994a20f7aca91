"""A comparison as one HTML file: no request to anywhere, no script, readable on paper."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from html import escape
from pathlib import Path

from discreet import __version__
from discreet.privacy import rounded_up
from discreet.report.charts import Dot, Line, dots, lines
from discreet.report.comparison import Cell, Comparison
from discreet.report.drawing import Axis, percent, stylesheet, whole_percent
from discreet.report.methods import METHODS, TRUST

__all__ = ["page_of"]

RAW = (
    "Computed from raw data. Nothing on this page is protected: keep it as confidential as the "
    "table itself, and do not publish it."
)
INVENTED = "The people are invented: this page may be shown to anyone."


def page_of(comparison: Comparison, *, command: str, invented: bool = False) -> str:
    """Write the report of a comparison.

    Parameters
    ----------
    comparison : Comparison
    command : str
        The command line, so that a reader can repeat it.
    invented : bool, default False
        Whether the rows are of invented people, so that there is nothing to protect.
    """
    title = f"What trust costs: {comparison.name}"
    style = stylesheet() + Path(__file__).with_name("report.css").read_text("utf-8")
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    policy = f"default-src 'none'; style-src 'sha256-{digest}'"
    parts = [
        f'<header><h1>{escape(title)}</h1><p class="answer">{escape(comparison.answer)}</p>',
        f'<p class="warning">{escape(INVENTED if invented else RAW)}</p></header>',
        _curve(comparison),
        _focus(comparison),
        _respondents(comparison),
        _methods(comparison),
        _reading(comparison),
        _footer(comparison, command),
    ]
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="generator" content="discreet compare">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">'
        f"<title>{escape(title)}</title><style>{style}</style></head>\n<body>"
        + "\n".join(parts)
        + "</body></html>\n"
    )


def _curve(comparison: Comparison) -> str:
    epsilons = comparison.settings.epsilons
    label, share = comparison.majority
    ends = [epsilons[0], epsilons[-1]]
    exact = comparison.exact.accuracy
    series = []
    for trust in comparison.trusts:
        best = [comparison.best(trust, e) for e in epsilons]
        low, high = zip(*(cell.interval for cell in best), strict=True)
        series.append(Line(trust, epsilons, [cell.accuracy for cell in best], low, high))
    series += [
        Line(f"no privacy ({percent(exact)})", ends, [exact, exact], reference=True),
        Line(f"always “{label}” ({percent(share)})", ends, [share, share], reference=True),
    ]
    if len(epsilons) == 1:
        return ""
    centre = [value for one in series for value in one.y]
    low_end = max(0.0, min(centre) - 0.25 * (max(centre) - min(centre)) - 0.01)
    picture = lines(
        series,
        title="Accuracy against epsilon, by whom people have to trust",
        x=Axis("epsilon, total per person (smaller is more private)", log=True, ticks=epsilons),
        y=Axis(
            "share of people predicted correctly",
            low=low_end,
            high=min(1.0, max(centre) + 0.03),
            number=whole_percent,
        ),
    )
    folds, repeats = comparison.settings.folds, comparison.settings.repeats
    return (
        f"<section><h2>What each degree of trust gives</h2>{picture}"
        f'<p class="lead">Each line is the most accurate method of its trust model. Bands are 95 % '
        f"intervals over {folds * repeats} training runs ({folds} folds, {_times(repeats)}); where "
        "two bands overlap, the table does not tell which is better.</p>"
        + "".join(f'<p class="lead">{escape(one)}</p>' for one in comparison.remarks)
        + "</section>"
    )


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count} times"


def _focus(comparison: Comparison) -> str:
    focus = comparison.settings.focus
    rows = []
    for trust in comparison.trusts:
        cell = comparison.best(trust, focus)
        rows.append(Dot(trust, cell.accuracy, *cell.interval, note=TRUST[trust].trusted))
    exact = comparison.exact
    rows.append(Dot("no privacy", exact.accuracy, *exact.interval, note="the trainer is trusted"))
    label, share = comparison.majority
    picture = dots(
        rows,
        title=f"Share of people predicted correctly at epsilon {focus:g}",
        axis=Axis(number=whole_percent),
        reference=(f"always saying “{label}”", share),
    )
    return f"<section><h2>At epsilon {focus:g}</h2>{picture}</section>"


def _respondents(comparison: Comparison) -> str:
    needed = comparison.needed
    if needed is None:
        return ""
    rows = "".join(
        f'<tr><td class="number">{people:,}</td><td class="number">{_range(found, one)}</td></tr>'
        for people, found, one in needed.tried
    )
    return (
        f'<section><h2>Respondents instead of trust</h2><p class="lead">{escape(needed.sentence)}'
        f' At epsilon {rounded_up(needed.epsilon)} each.</p><div class="wide">'
        '<table class="plain"><thead>'
        '<tr><th scope="col" class="number">respondents</th><th scope="col" class="number">'
        "accuracy of a local collection (95 % interval)</th></tr></thead>"
        f"<tbody>{rows}</tbody></table></div>"
        '<p class="lead">Further respondents are drawn again from the rows that are there, so '
        "this assumes that others are like them.</p></section>"
    )


def _methods(comparison: Comparison) -> str:
    best = {
        (trust, e): comparison.best(trust, e).method
        for trust in comparison.trusts
        for e in comparison.settings.epsilons
    }
    body = ""
    several = len(comparison.settings.methods) > len(comparison.trusts)
    for trust in comparison.trusts:
        for cell in sorted(
            (c for c in comparison.cells if c.trust == trust), key=lambda c: (c.epsilon, c.method)
        ):
            top = several and best[trust, cell.epsilon] == cell.method
            body += _row(cell, f"{cell.method}\u00a0★" if top else cell.method)
    body += _row(comparison.exact, "non-private")
    heads = (
        "trust",
        "method",
        ">epsilon",
        ">accuracy",
        ">log loss",
        ">calibration error",
        ">time to train (s)",
        ">sent per person (bytes)",
    )
    named = {name: METHODS[name].words for name in comparison.settings.methods}
    meaning = "".join(f"<dt>{k}</dt><dd>{escape(v)}</dd>" for k, v in named.items())
    skipped = "".join(
        f'<p class="lead">{escape(name)} was left out: {escape(why)}.</p>'
        for name, why in comparison.skipped.items()
    )
    star = (
        '<p class="lead">★ marks the most accurate method of a trust model at an epsilon, chosen '
        "with these rows: its figure is a little too good.</p>"
    )
    return (
        '<section><h2>Every method</h2><p class="lead">In parentheses 95 % intervals.</p>'
        f"{star if several else ''}"
        f"{_table(heads, body)}{skipped}<h2>Methods</h2><dl>{meaning}</dl></section>"
    )


def _table(heads: Sequence[str], body: str) -> str:
    cells = "".join(
        f'<th scope="col" class="{"number" if head.startswith(">") else "text"}">'
        f"{escape(head.lstrip('>'))}</th>"
        for head in heads
    )
    return (
        '<div class="wide" tabindex="0" role="region" aria-label="Every method">'
        f'<table class="plain"><thead><tr>{cells}</tr></thead><tbody>{body}</tbody></table></div>'
    )


def _range(share: float, interval: tuple[float, float]) -> str:
    low, high = interval
    return f"{percent(share)} ({100 * low:.1f} to {100 * min(high, 1):.1f})"


def _row(cell: Cell, name: str) -> str:
    loss, (low, high) = cell.log_loss, cell.log_loss_interval
    numbers = (
        "∞" if cell.epsilon == float("inf") else rounded_up(cell.epsilon),
        _range(cell.accuracy, cell.interval),
        f"{loss:.3f} ({low:.3f} to {high:.3f})",
        _range(cell.calibration_error, cell.calibration_interval),
        f"{cell.seconds:.2f}",
        f"{cell.bytes_per_person:,.{1 if cell.bytes_per_person < 10 else 0}f}",
    )
    shown = "".join(f'<td class="number">{escape(text)}</td>' for text in numbers)
    return f"<tr><td>{escape(cell.trust)}</td><td>{escape(name)}</td>{shown}</tr>"


def _reading(comparison: Comparison) -> str:
    trusts = "".join(
        f"<dt>{one}</dt><dd>{escape(TRUST[one].trusted.capitalize())}. A person sends "
        f"{escape(TRUST[one].sends)}.</dd>"
        for one in comparison.trusts
    )
    return (
        f"<section><h2>How to read this</h2><dl>{trusts}"
        "<dt>epsilon</dt><dd>How much one person's data can change what is seen, per person and in "
        "total: whoever sees it can change their odds on anything about a person by at most a "
        "factor of e<sup>epsilon</sup>: 2.7 at 1, 148 at 5.</dd>"
        "<dt>calibration error</dt><dd>Mean distance between the model's stated confidence and how "
        "often it is right.</dd>"
        "<dt>log loss</dt><dd>Mean surprise at the true class; smaller is better.</dd>"
        "<dt>sent per person</dt><dd>Central: the record in clear. Survey and local: the report "
        "itself. Federated: the organisations' hidden counters, shared by all their people."
        "</dd></dl></section>"
    )


def _footer(comparison: Comparison, command: str) -> str:
    one = comparison.settings
    return (
        f"<footer><p>{comparison.rows:,} rows, {len(comparison.schema.features)} features, "
        f"{len(comparison.schema.classes)} classes; {one.folds} folds, {_times(one.repeats)}, seed "
        f"{one.seed}; schema {escape(comparison.schema.digest[:23])}…; discreet {__version__}. "
        "Randomness was seeded: a simulation, which promises nothing to anyone.</p>"
        f"<p>Repeat it: <code>{escape(command)}</code></p></footer>"
    )
