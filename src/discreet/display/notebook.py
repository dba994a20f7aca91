"""HTML tables that a notebook shows for a schema, a guarantee, statistics and a model."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from discreet.model import NaiveBayesModel
    from discreet.privacy.guarantee import Guarantee
    from discreet.schema.schema import Schema
    from discreet.statistics.statistics import Statistics

__all__ = [
    "render_guarantee",
    "render_model",
    "render_promise_line",
    "render_schema",
    "render_statistics",
    "render_value",
]

MAX_TABLE_ROWS = 30
"""Largest number of rows that a table shows."""
MAX_OPEN_ROWS = 10
"""Longer tables are folded: as many rows as the strongest evidence has."""


def _render_table(caption: str, column_heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Render a table of text, folded if it is long; columns whose heading starts with > are right.

    What is folded is one line that opens with a click or a key.
    """
    listed_rows = list(rows)
    table_rows = "".join(
        "<tr>"
        + "".join(
            f'<td align="{"right" if head.startswith(">") else "left"}">{escape(cell)}</td>'
            for head, cell in zip(column_heads, row, strict=True)
        )
        + "</tr>"
        for row in listed_rows[:MAX_TABLE_ROWS]
    )
    hidden_note = (
        f"<p>and {len(listed_rows) - MAX_TABLE_ROWS:,} more</p>"
        if len(listed_rows) > MAX_TABLE_ROWS
        else ""
    )
    header_cells = "".join(
        f'<th scope="col">{escape(head.lstrip(">"))}</th>' for head in column_heads
    )
    table_body = f"<thead><tr>{header_cells}</tr></thead><tbody>{table_rows}</tbody>"
    if len(listed_rows) <= MAX_OPEN_ROWS:
        return f"<table><caption>{escape(caption)}</caption>{table_body}</table>"
    return (
        f"<details><summary>{escape(caption)}: {len(listed_rows):,} rows</summary>"
        f"<table>{table_body}</table>{hidden_note}</details>"
    )


def render_schema(schema: Schema) -> str:
    """The features, the target and its classes.

    Parameters
    ----------
    schema : Schema
    """
    from discreet.schema.dates import Date, DatePart
    from discreet.schema.schema import Categorical, format_value

    rows = []
    for feature in schema.features:
        if isinstance(feature, Categorical):
            values = [format_value(value) for value in feature.values]
            values_text = ", ".join(values[:8]) + (
                f", … ({len(values)})" if len(values) > 8 else ""
            )
            kind_text = "categorical"
        else:
            kind_text = "whole number" if feature.integer else "number"
            values_text = (
                f"{feature.format_bound(feature.lower)} to {feature.format_bound(feature.upper)}"
            )
        if isinstance(feature, (Date, DatePart)):
            kind_text = f"date by {feature.by}"
        rows.append(
            (feature.name, kind_text, values_text, "may be missing" if feature.optional else "")
        )
    classes_text = ", ".join(format_value(value) for value in schema.classes)
    inferred_note = "; taken from data, so nothing is promised" if schema.inferred else ""
    caption = f"{schema.target}: {classes_text}{inferred_note}"
    return _render_table(caption, ("feature", "kind", "values", ""), rows)


def render_guarantee(guarantee: Guarantee) -> str:
    """The guarantee in words, and its charges.

    Parameters
    ----------
    guarantee : Guarantee
    """
    from discreet.privacy.guarantee import format_rounded_up

    paragraphs = "".join(f"<p>{escape(line)}</p>" for line in str(guarantee).splitlines())
    if not guarantee.charges:
        return paragraphs
    rows = [(charge.name, format_rounded_up(charge.epsilon)) for charge in guarantee.charges]
    return paragraphs + _render_table("spent", ("for", ">epsilon"), rows)


def render_promise_line(guarantee: Guarantee) -> str:
    """The guarantee in one line, which opens to all of it.

    Parameters
    ----------
    guarantee : Guarantee
    """
    headline, *details = str(guarantee).splitlines()
    paragraphs = "".join(f"<p>{escape(line)}</p>" for line in details)
    return f"<details><summary>{escape(headline.rstrip(':'))}</summary>{paragraphs}</details>"


def render_statistics(statistics: Statistics) -> str:
    """Class totals with their standard errors, and how noisy each feature is.

    Parameters
    ----------
    statistics : Statistics
    """
    from discreet.schema.schema import format_value

    standard_errors = np.sqrt(np.asarray(statistics.variances, float))
    rows = [
        (format_value(class_label), f"{class_total:,.1f}", f"{class_error:,.1f}")
        for class_label, class_total, class_error in zip(
            statistics.schema.classes, statistics.totals, standard_errors, strict=True
        )
    ]
    html_text = _render_table("people by class", ("class", ">estimate", ">standard error"), rows)
    feature_rows: list[tuple[str, str, str]] = []
    for feature_name, table in statistics.tables.items():
        standard_error = math.sqrt(float(np.mean(table.variances)))
        feature_rows.append((feature_name, f"{table.cells.size} cells", f"{standard_error:,.1f}"))
    for feature_name, moments in statistics.moments.items():
        counts = np.maximum(np.asarray(moments.counts, float), 1.0)
        standard_error = float(np.max(moments.step * np.sqrt(moments.variances[1]) / counts))
        feature_rows.append(
            (feature_name, "mean and variance", f"{standard_error:,.3g} of the mean")
        )
    html_text += _render_table("features", ("feature", "comes as", ">standard error"), feature_rows)
    return html_text + render_guarantee(statistics.guarantee)


def render_model(model: NaiveBayesModel, strongest: int = 10) -> str:
    """The priors, the strongest evidence and the promise.

    Parameters
    ----------
    model : NaiveBayesModel
    strongest : int, default 10
    """
    from discreet.model import GaussianFactor
    from discreet.model.strongest_evidence import (
        NO_EVIDENCE,
        count_cells,
        find_strongest_evidence,
    )
    from discreet.schema.schema import format_value

    class_names = [format_value(value) for value in model.schema.classes]
    prior_rows = [
        (class_name, f"{probability:.3f}")
        for class_name, probability in zip(class_names, np.exp(model.log_prior), strict=True)
    ]
    html_text = _render_table(
        f"{model.schema.target}: prior", ("class", ">probability"), prior_rows
    )
    evidence_rows = [
        (line.feature, line.value, line.label, f"{line.log_odds:+.2f}", line.share_text)
        for line in find_strongest_evidence(model, strongest)
    ]
    if strongest and count_cells(model) and not evidence_rows:
        html_text += f"<p>{escape(NO_EVIDENCE)}</p>"
    if evidence_rows:
        heads = ("feature", "value", "speaks for", ">log-odds", ">of people")
        html_text += _render_table("strongest evidence", heads, evidence_rows)
    normal_rows = []
    for factor in model.factors:
        if isinstance(factor, GaussianFactor):
            class_moments = zip(factor.mean, np.sqrt(factor.variance), strict=True)
            normal_rows.append(
                (
                    factor.name,
                    *(f"{mean:.4g} ± {deviation:.3g}" for mean, deviation in class_moments),
                )
            )
    if normal_rows:
        html_text += _render_table(
            "mean ± deviation",
            ("feature", *(f">{class_name}" for class_name in class_names)),
            normal_rows,
        )
    return html_text + render_promise_line(model.guarantee)


def render_value(value: Schema | Guarantee | Statistics | NaiveBayesModel) -> str:
    """Render a value of any of these kinds.

    Parameters
    ----------
    value : Schema, Guarantee, Statistics or NaiveBayesModel
    """
    renderers: dict[str, Any] = {
        "Schema": render_schema,
        "Guarantee": render_guarantee,
        "Statistics": render_statistics,
        "NaiveBayesModel": render_model,
    }
    kind = next(base.__name__ for base in type(value).__mro__ if base.__name__ in renderers)
    return str(renderers[kind](value))
