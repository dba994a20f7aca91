"""Plots with matplotlib (the extra ``[plot]``): a model, statistics, reliability, a comparison.

Each takes the axes to draw on, or makes new ones, and returns them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from discreet.errors import EstimationError, MissingDependencyError

if TYPE_CHECKING:
    from discreet.model import NaiveBayesModel
    from discreet.model.evaluation import Scores
    from discreet.report.comparison import Comparison
    from discreet.statistics import Statistics

__all__ = ["plot_accuracy", "plot_model", "plot_reliability", "plot_statistics"]

COLOURS = ("#0b5cad", "#b34a00", "#00735a", "#a03c78", "#6b5500", "#1a1a1a")
"""Okabe and Ito's set, darkened, as in charts.css."""


def _axes(ax: Any) -> Any:
    if ax is not None:
        return ax
    try:
        from matplotlib import pyplot
    except ImportError:
        raise MissingDependencyError("matplotlib", "plot") from None
    return pyplot.subplots(layout="constrained")[1]


def plot_model(model: NaiveBayesModel, strongest: int = 12, ax: Any = None) -> Any:
    """The strongest evidence as bars of log-odds.

    Parameters
    ----------
    model : NaiveBayesModel
    strongest : int, default 12
    ax : matplotlib axes, optional
    """
    from discreet.model.explanation import strongest_evidence
    from discreet.schema import text_of

    ax = _axes(ax)
    evidence = strongest_evidence(model, strongest)[::-1]
    classes = [text_of(value) for value in model.schema.classes]
    for place, (_, _, label, odds) in enumerate(evidence):
        ax.barh(place, odds, color=COLOURS[classes.index(label) % len(COLOURS)])
    labels = [f"{feature} = {value} → {label}" for feature, value, label, _ in evidence]
    ax.set_yticks(range(len(evidence)), labels)
    ax.set_xlabel("log-odds for the named class")
    ax.set_title(f"what speaks for {model.schema.target}")
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
    from discreet.schema import text_of

    if feature not in statistics.tables:
        known = ", ".join(statistics.tables) or "none"
        raise EstimationError(f"{feature!r} has no table of counts; there are tables of {known}")
    ax, table = _axes(ax), statistics.tables[feature]
    totals = np.maximum(np.asarray(statistics.totals, float), 1.0)
    share = np.asarray(table.counts, float) / totals[:, None]
    half = 1.96 * np.sqrt(np.asarray(table.variances, float)) / totals[:, None]
    for c, label in enumerate(statistics.schema.classes):
        shift = 0.25 * (c / max(1, len(totals) - 1) - 0.5)
        ax.errorbar(
            np.arange(table.cells.size) + shift,
            share[c],
            half[c],
            fmt="osD^v"[c % 5],
            color=COLOURS[c % len(COLOURS)],
            capsize=3,
            label=text_of(label),
        )
    ax.axhline(0, color="#777", linewidth=0.8)
    ax.set_xticks(range(table.cells.size), table.cells.labels, rotation=30, ha="right")
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
    ax = _axes(ax)
    groups = scores.to_body()["reliability"]
    sure = np.array([one["confidence"] for one in groups])
    hits = np.array([one["hits"] for one in groups])
    ends = np.array([one["interval"] for one in groups])
    ax.plot([0, 1], [0, 1], ":", color="#777", label="perfectly calibrated")
    ax.errorbar(sure, hits, np.abs(ends.T - hits), fmt="o", color=COLOURS[0], capsize=3,
                label="predictions, 95 % intervals")  # fmt: skip
    low = min(0.5, *sure, *ends[:, 0])
    ax.set(xlabel="stated confidence", ylabel="share that was right", xlim=(low, 1), ylim=(low, 1))
    ax.legend()
    return ax


def plot_accuracy(comparison: Comparison, ax: Any = None) -> Any:
    """Accuracy against epsilon: the best method of each trust model, with 95 % intervals.

    Parameters
    ----------
    comparison : Comparison
    ax : matplotlib axes, optional
    """
    ax, epsilons = _axes(ax), comparison.settings.epsilons
    for k, trust in enumerate(comparison.trusts):
        best = [comparison.best(trust, e) for e in epsilons]
        low, high = np.array([cell.interval for cell in best]).T
        colour = COLOURS[k % len(COLOURS)]
        ax.plot(epsilons, [c.accuracy for c in best], marker="osD^"[k], color=colour, label=trust)
        ax.fill_between(epsilons, low, high, color=colour, alpha=0.14, linewidth=0)
    ax.axhline(comparison.exact.accuracy, linestyle=":", color="#555", label="no privacy")
    label, share = comparison.majority
    ax.axhline(share, linestyle="--", color="#555", label=f"always “{label}”")
    ax.set_xscale("log")
    ax.set_xticks(epsilons, [f"{e:g}" for e in epsilons])
    ax.minorticks_off()
    ax.set(xlabel="epsilon, total per person", ylabel="accuracy")
    ax.legend()
    return ax
