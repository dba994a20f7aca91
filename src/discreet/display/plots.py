"""Plots with matplotlib (the extra ``[plot]``): a model, statistics, reliability, a comparison.

Each takes the axes to draw on, or makes new ones, and returns them. All plots of the package take
their colours and marks from here.
"""

from __future__ import annotations

from textwrap import fill
from typing import TYPE_CHECKING, Any

import numpy as np

from discreet.errors import EstimationError, MissingDependencyError
from discreet.privacy.guarantee import format_rounded_up

if TYPE_CHECKING:
    from discreet.compare.results import Comparison
    from discreet.model import NaiveBayesModel
    from discreet.model.evaluation import Scores
    from discreet.statistics.statistics import Statistics

__all__ = [
    "get_series_style",
    "import_pyplot",
    "plot_accuracy",
    "plot_model",
    "plot_reliability",
    "plot_statistics",
]

SERIES_COLOURS = (
    "#0b5cad",
    "#b34a00",
    "#00735a",
    "#a03c78",
    "#6b5500",
    "#1a1a1a",
    "#8a5fd0",
    "#c2185b",
)
"""Okabe and Ito's set, darkened: six as in charts.css, and two more."""
SERIES_MARKERS = "os^Dvx*P"
"""Matplotlib's marker of each colour: disc, square, triangle, diamond as in charts, and four."""
REFERENCE_COLOUR = "#555"
"""Of lines that are no series: a baseline, a diagonal."""


def get_series_style(index: int) -> dict[str, str]:
    """Colour and marker of a series by its place; further ones repeat them.

    Parameters
    ----------
    index : int
    """
    place = index % len(SERIES_COLOURS)
    return {"color": SERIES_COLOURS[place], "marker": SERIES_MARKERS[place]}


def import_pyplot() -> Any:
    """Matplotlib's pyplot; its absence names the extra that installs it."""
    try:
        from matplotlib import pyplot
    except ImportError:
        raise MissingDependencyError("matplotlib", "plot") from None
    return pyplot


def _make_axes(ax: Any) -> Any:
    return import_pyplot().subplots(layout="constrained")[1] if ax is None else ax


def plot_model(model: NaiveBayesModel, strongest: int = 12, ax: Any = None) -> Any:
    """The strongest evidence as bars of log-odds, first what does most for people.

    Parameters
    ----------
    model : NaiveBayesModel
    strongest : int, default 12
    ax : matplotlib axes, optional
    """
    from discreet.model.strongest_evidence import NO_EVIDENCE, find_strongest_evidence
    from discreet.schema.schema import format_value

    ax = _make_axes(ax)
    evidence = find_strongest_evidence(model, strongest)[::-1]
    class_names = [format_value(class_label) for class_label in model.schema.classes]
    for bar_position, line in enumerate(evidence):
        colour = get_series_style(class_names.index(line.label))["color"]
        ax.barh(bar_position, line.log_odds, color=colour)
        ax.annotate(
            line.share_text,
            (line.log_odds, bar_position),
            xytext=(3, 0),
            textcoords="offset points",
            va="center",
            fontsize="x-small",
        )
    bar_labels = [f"{line.feature} = {line.value} → {line.label}" for line in evidence]
    if not evidence:
        ax.text(0.5, 0.5, fill(NO_EVIDENCE, 40), ha="center", transform=ax.transAxes)
    ax.margins(x=0.2)  # for the shares at the ends of the bars
    ax.set_yticks(range(len(evidence)), bar_labels)
    ax.set_xlabel("log-odds for the named class, and the share of people")
    # from the right: beside long labels the axes are narrower than the title
    ax.set_title(f"what speaks for {model.schema.target}", loc="right")
    return ax


def plot_statistics(statistics: Statistics, feature: str, ax: Any = None) -> Any:
    """The estimated share of each cell within each class, with 95 % intervals.

    Parameters
    ----------
    statistics : Statistics
    feature : str
        One that comes as a table.
    ax : matplotlib axes, optional
    """
    from discreet.schema.schema import format_value

    if feature not in statistics.tables:
        table_names = ", ".join(statistics.tables) or "none"
        raise EstimationError(
            f"{feature!r} has no table of counts; there are tables of {table_names}"
        )
    ax, table = _make_axes(ax), statistics.tables[feature]
    class_totals = np.maximum(np.asarray(statistics.totals, float), 1.0)
    class_shares = np.asarray(table.counts, float) / class_totals[:, None]
    half_widths = 1.96 * np.sqrt(np.asarray(table.variances, float)) / class_totals[:, None]
    for class_index, label in enumerate(statistics.schema.classes):
        marker_shift = 0.25 * (class_index / max(1, len(class_totals) - 1) - 0.5)
        ax.errorbar(
            np.arange(table.cells.size) + marker_shift,
            class_shares[class_index],
            half_widths[class_index],
            linestyle="",
            capsize=3,
            **get_series_style(class_index),
            label=format_value(label),
        )
    ax.axhline(0, color=REFERENCE_COLOUR, linewidth=0.8)
    ax.set_xticks(range(table.cells.size), table.cells.rounded_labels, rotation=30, ha="right")
    ax.set_ylabel("share of the class, 95 % intervals of the noise")
    ax.set_title(feature)
    ax.legend(title=statistics.schema.target)
    return ax


def plot_reliability(scores: Scores, ax: Any = None) -> Any:
    """How often predictions were right, by how sure the model was.

    Parameters
    ----------
    scores : Scores
    ax : matplotlib axes, optional
    """
    ax = _make_axes(ax)
    groups = scores.to_body()["reliability"]
    confidences = np.array([group["confidence"] for group in groups])
    hit_shares = np.array([group["hits"] for group in groups])
    interval_ends = np.array([group["interval"] for group in groups])
    ax.plot([0, 1], [0, 1], ":", color=REFERENCE_COLOUR, label="perfectly calibrated")
    ax.errorbar(
        confidences,
        hit_shares,
        np.abs(interval_ends.T - hit_shares),
        linestyle="",
        capsize=3,
        **get_series_style(0),
        label="predictions, 95 % intervals",
    )
    axis_low = min(0.5, *confidences, *interval_ends[:, 0])
    ax.set(
        xlabel="stated confidence",
        ylabel="share that was right",
        xlim=(axis_low, 1),
        ylim=(axis_low, 1),
    )
    ax.legend()
    return ax


def plot_accuracy(comparison: Comparison, ax: Any = None) -> Any:
    """Accuracy against epsilon: the best method of each trust model, with 95 % intervals.

    Parameters
    ----------
    comparison : Comparison
    ax : matplotlib axes, optional
    """
    ax, epsilons = _make_axes(ax), comparison.settings.epsilons
    *series, non_private, plain, majority = comparison.make_accuracy_series()
    for index, line in enumerate(series):
        style = get_series_style(index)
        ax.plot(line.x, line.y, label=line.label, **style)
        ax.fill_between(line.x, line.low, line.high, color=style["color"], alpha=0.14, linewidth=0)
    for line, dashes in ((non_private, ":"), (plain, "-."), (majority, "--")):
        ax.axhline(line.y[0], linestyle=dashes, color=REFERENCE_COLOUR, label=line.label)
    ax.set_xscale("log")
    ax.set_xticks(epsilons, [format_rounded_up(epsilon) for epsilon in epsilons])
    ax.minorticks_off()
    ax.set(xlabel="epsilon, total per person", ylabel="accuracy")
    ax.legend()
    return ax
