"""HTML tables that a notebook shows for a schema, a guarantee, statistics and a model."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from discreet.model import NaiveBayesModel
    from discreet.privacy import Guarantee
    from discreet.schema import Schema
    from discreet.statistics import Statistics

__all__ = ["guarantee_html", "model_html", "schema_html", "statistics_html"]

MOST = 30
"""Largest number of rows that a table shows."""


def _table(caption: str, heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Render a table of text; columns whose heading starts with > are aligned right."""
    listed = list(rows)
    body = "".join(
        "<tr>"
        + "".join(
            f'<td align="{"right" if head.startswith(">") else "left"}">{escape(cell)}</td>'
            for head, cell in zip(heads, row, strict=True)
        )
        + "</tr>"
        for row in listed[:MOST]
    )
    more = f"<p>and {len(listed) - MOST:,} more</p>" if len(listed) > MOST else ""
    top = "".join(f'<th scope="col">{escape(head.lstrip(">"))}</th>' for head in heads)
    return (
        f"<table><caption>{escape(caption)}</caption><thead><tr>{top}</tr></thead>"
        f"<tbody>{body}</tbody></table>{more}"
    )


def schema_html(schema: Schema) -> str:
    """The features, the target and its classes.

    Parameters
    ----------
    schema : Schema
    """
    from discreet.schema import Categorical, text_of

    rows = []
    for feature in schema.features:
        if isinstance(feature, Categorical):
            values = [text_of(value) for value in feature.values]
            shown = ", ".join(values[:8]) + (f", … ({len(values)})" if len(values) > 8 else "")
            kind = "categorical"
        else:
            kind = "whole number" if feature.integer else "number"
            shown = f"{feature.lower:g} to {feature.upper:g}"
        rows.append((feature.name, kind, shown, "may be missing" if feature.optional else ""))
    classes = ", ".join(text_of(value) for value in schema.classes)
    inferred = "; taken from data, so nothing is promised" if schema.inferred else ""
    caption = f"{schema.target}: {classes}{inferred}"
    return _table(caption, ("feature", "kind", "values", ""), rows)


def guarantee_html(guarantee: Guarantee) -> str:
    """The guarantee in words, and its charges.

    Parameters
    ----------
    guarantee : Guarantee
    """
    from discreet.privacy import rounded_up

    words = "".join(f"<p>{escape(line)}</p>" for line in str(guarantee).splitlines())
    if not guarantee.charges:
        return words
    rows = [(charge.name, rounded_up(charge.epsilon)) for charge in guarantee.charges]
    return words + _table("spent", ("for", ">epsilon"), rows)


def statistics_html(statistics: Statistics) -> str:
    """Class totals with their standard errors, and how noisy each feature is.

    Parameters
    ----------
    statistics : Statistics
    """
    from discreet.schema import text_of

    errors = np.sqrt(np.asarray(statistics.variances, float))
    rows = [
        (text_of(label), f"{total:,.1f}", f"{error:,.1f}")
        for label, total, error in zip(
            statistics.schema.classes, statistics.totals, errors, strict=True
        )
    ]
    made = _table("people by class", ("class", ">estimate", ">standard error"), rows)
    known: list[tuple[str, str, str]] = []
    for name, table in statistics.tables.items():
        noise = math.sqrt(float(np.mean(table.variances)))
        known.append((name, f"{table.cells.size} cells", f"{noise:,.1f}"))
    for name, moments in statistics.moments.items():
        counts = np.maximum(np.asarray(moments.counts, float), 1.0)
        noise = float(np.max(moments.step * np.sqrt(moments.variances[1]) / counts))
        known.append((name, "mean and variance", f"{noise:,.3g} of the mean"))
    made += _table("features", ("feature", "comes as", ">standard error"), known)
    return made + guarantee_html(statistics.guarantee)


def model_html(model: NaiveBayesModel, strongest: int = 10) -> str:
    """The priors, the strongest evidence and the promise.

    Parameters
    ----------
    model : NaiveBayesModel
    strongest : int, default 10
    """
    from discreet.model import GaussianFactor
    from discreet.model.explanation import strongest_evidence
    from discreet.schema import text_of

    classes = [text_of(value) for value in model.schema.classes]
    prior = [(c, f"{p:.3f}") for c, p in zip(classes, np.exp(model.log_prior), strict=True)]
    made = _table(f"{model.schema.target}: prior", ("class", ">probability"), prior)
    evidence: list[Any] = [
        (feature, value, label, f"{odds:+.2f}")
        for feature, value, label, odds in strongest_evidence(model, strongest)
    ]
    if evidence:
        heads = ("feature", "value", "speaks for", ">log-odds")
        made += _table("strongest evidence", heads, evidence)
    normal = []
    for one in model.factors:
        if isinstance(one, GaussianFactor):
            pairs = zip(one.mean, np.sqrt(one.variance), strict=True)
            normal.append((one.name, *(f"{mean:.4g} ± {sd:.3g}" for mean, sd in pairs)))
    if normal:
        made += _table("mean ± deviation", ("feature", *(f">{c}" for c in classes)), normal)
    return made + guarantee_html(model.guarantee)
