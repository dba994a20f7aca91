"""Figures 3 and 4 of Yilmaz, Al-Rubaie and Chang: numeric features, raw or projected."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from discreet.papers.local_nb_experiments import (
    BINS_BY_TABLE,
    PROJECTION_SOURCES,
    PROJECTION_WAYS,
    PROJECTIONS,
)
from discreet.papers.paper_figures import Figure, Panel, make_flat_line
from discreet.papers.results import (
    Finding,
    PairedDifference,
    PaperResults,
    StatementCheck,
    check_all_hold,
    format_verdict,
)

__all__ = ["NUMERIC_STATEMENTS", "make_numeric_figures"]

NUMERIC_FIGURES: dict[str, tuple[str, tuple[Any, ...], str]] = {
    "3": ("oracle", ("de", "oue"), "buckets"),
    "4": ("approach", (1, 2, 3), "normal densities"),
}
"""Figure to what is compared in it."""
PROJECTION_PAIRS = 12
"""Intervals of the statements on projections: 2 tables, 2 oracles, 3 pairs."""
APPROACH_PAIRS = 12
"""Intervals of the statement on approaches: 2 tables, 3 projections, 2 pairs."""


def make_numeric_figures(results: PaperResults) -> Iterator[Figure]:
    """Accuracy by epsilon with buckets (figure 3) and with normal densities (figure 4)."""
    for figure, (parameter_name, compared_values, figure_kind) in NUMERIC_FIGURES.items():
        panels = [
            _make_numeric_panel(results, figure, table, parameter_name, compared_value)
            for table in results.list_parameter_values(figure, "table")
            for compared_value in compared_values
        ]
        if panels:
            caption = f"Numeric features, {figure_kind}."
            yield Figure(f"figure {figure}", caption, panels, len(compared_values))


def _make_numeric_panel(
    results: PaperResults, figure: str, table: str, parameter_name: str, compared_value: Any
) -> Panel:
    """Accuracy by epsilon on a table, a line for each projection."""
    epsilons = results.list_parameter_values(figure, "epsilon")
    plot_lines = [
        results.make_line(
            projection_way if source == "none" else f"{projection_way}, {source}",
            figure,
            "epsilon",
            epsilons,
            **{
                "table": table,
                "projection": projection_way,
                "source": source,
                parameter_name: compared_value,
            },
        )
        for projection_way, source in PROJECTION_WAYS
    ]
    exact_accuracy = results.compute_mean(figure, table=table, **{parameter_name: "none"})
    plot_lines.append(make_flat_line("raw, no privacy", epsilons, exact_accuracy))
    name = str(compared_value).upper() if figure == "3" else f"approach {compared_value}"
    return Panel(f"{table}, {name}", plot_lines, "epsilon, total per person", "accuracy")


def _average_over_epsilons(
    results: PaperResults,
    figure: str,
    table: str,
    projection_way: str,
    source: str,
    compared_value: Any,
) -> list[float]:
    """Mean over epsilon of every repetition."""
    parameters = {
        "table": table,
        "projection": projection_way,
        "source": "none" if projection_way == "raw" else source,
        NUMERIC_FIGURES[figure][0]: compared_value,
    }
    epsilons = results.list_parameter_values(figure, "epsilon")
    return results.average_over(figure, "epsilon", epsilons, **parameters)


def _format_means(accuracy_lists: list[list[float]]) -> str:
    return "/".join(f"{100 * np.mean(accuracies):.1f}" for accuracies in accuracy_lists)


def _check_projection(results: PaperResults, source: str) -> Finding:
    measured_texts, dca_is_best, pca_beats_raw = [], {}, {}
    for table, oracle in itertools.product(BINS_BY_TABLE, ("de", "oue")):
        accuracy_lists = [
            _average_over_epsilons(results, "3", table, projection_way, source, oracle)
            for projection_way in ("DCA", "PCA", "raw")
        ]
        dca_accuracies, pca_accuracies, raw_accuracies = accuracy_lists
        case = f"{table} {oracle.upper()}"
        dca_is_best[case] = check_all_hold(
            PairedDifference.from_pairs(dca_accuracies, accuracies, PROJECTION_PAIRS).is_above()
            for accuracies in (pca_accuracies, raw_accuracies)
        )
        pca_beats_raw[case] = PairedDifference.from_pairs(
            pca_accuracies, raw_accuracies, PROJECTION_PAIRS
        ).is_above()
        measured_texts.append(
            f"{case} {_format_means(accuracy_lists)} (PCA minus raw "
            f"{PairedDifference.from_pairs(pca_accuracies, raw_accuracies)})"
        )
    measured = "mean over epsilon, DCA/PCA/raw: " + ", ".join(measured_texts)
    if check_all_hold([*dca_is_best.values(), *pca_beats_raw.values()]):
        return Finding(measured, "holds")
    return Finding(
        measured,
        "holds only for DCA being best"
        if check_all_hold(dca_is_best.values())
        else format_verdict(dca_is_best),
        "PCA looks for spread, not for what tells the classes apart",
    )


def _check_discretisation(results: PaperResults) -> Finding:
    measured_texts, held_by_case = [], {}
    for table, projection_way in itertools.product(BINS_BY_TABLE, ("DCA", "raw")):
        best_accuracies = [
            max(
                (
                    _average_over_epsilons(
                        results, figure, table, projection_way, "not private", compared_value
                    )
                    for compared_value in NUMERIC_FIGURES[figure][1]
                ),
                key=lambda accuracies: float(np.mean(accuracies)),
            )
            for figure in ("3", "4")
        ]
        difference = PairedDifference.from_pairs(best_accuracies[0], best_accuracies[1], 24)
        case = f"{table} {projection_way}"
        held_by_case[case] = difference.is_above()
        measured_texts.append(f"{case} {_format_means(best_accuracies)} ({difference})")
    return Finding.from_cases(
        "mean over epsilon, best oracle of buckets/best approach of densities, and the difference: "
        + ", ".join(measured_texts),
        held_by_case,
    )


def _check_approaches(results: PaperResults) -> Finding:
    measured_texts, held_by_case = [], {}
    for table, projection_way in itertools.product(BINS_BY_TABLE, PROJECTIONS):
        approach_accuracies = [
            _average_over_epsilons(results, "4", table, projection_way, "not private", approach)
            for approach in (1, 2, 3)
        ]
        case = f"{table} {projection_way}"
        held_by_case[case] = check_all_hold(
            PairedDifference.from_pairs(
                accuracies, approach_accuracies[0], APPROACH_PAIRS
            ).is_above()
            for accuracies in approach_accuracies[1:]
        )
        measured_texts.append(f"{case} {_format_means(approach_accuracies)}")
    finding = Finding.from_cases(
        "mean over epsilon, approaches 1/2/3: " + ", ".join(measured_texts),
        held_by_case,
        "with one dimension approaches 1 and 3 are the same mechanism",
    )
    raw_answers, projected_answers = (
        [answer for case, answer in held_by_case.items() if case.endswith("raw") is is_raw]
        for is_raw in (True, False)
    )
    if all(raw_answers) and not any(projected_answers):
        return replace(finding, verdict="holds only without projection")
    return finding


NUMERIC_STATEMENTS: dict[str, StatementCheck] = {
    **{
        f"DCA best, then PCA, then raw (buckets, projection {source})": partial(
            _check_projection, source=source
        )
        for source in PROJECTION_SOURCES
    },
    "Discretisation is better than Gaussian Naive Bayes": _check_discretisation,
    "Approach 1 is worst": _check_approaches,
}
"""What the paper states of numeric features, and how it is judged."""
