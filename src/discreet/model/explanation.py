"""Readable explanations of a model and of single predictions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from discreet.arrays import Floats

if TYPE_CHECKING:
    from discreet.model import NaiveBayesModel

__all__ = ["Evidence", "Explanation", "show_model", "strongest_evidence"]


@dataclass(frozen=True)
class Evidence:
    """What one feature adds to the log-odds of the predicted class."""

    feature: str
    value: str
    log_odds: float


@dataclass(frozen=True)
class Explanation:
    """Why one row was classified as it was; the evidence and the prior add up to the log-odds.

    Attributes
    ----------
    predicted, against : str
        The predicted class and the one it is compared with.
    probability : float
        Of the predicted class.
    prior : float
        Log-odds before any feature was seen.
    evidence : tuple of Evidence
        Largest first.
    """

    predicted: str
    against: str
    probability: float
    prior: float
    evidence: tuple[Evidence, ...]

    @property
    def log_odds(self) -> float:
        """Log-odds of the predicted class against the other."""
        return self.prior + sum(one.log_odds for one in self.evidence)

    def __str__(self) -> str:
        width = max([5, *(len(one.feature) + len(one.value) + 3 for one in self.evidence)])
        lines = [
            f"{self.predicted} rather than {self.against} (probability {self.probability:.3f})"
        ]
        lines += [
            f"  {one.feature + ' = ' + one.value:<{width}}  {one.log_odds:+8.3f}"
            for one in self.evidence
        ]
        lines.append(f"  {'prior':<{width}}  {self.prior:+8.3f}")
        lines.append(f"  {'log-odds':<{width}}  {self.log_odds:+8.3f}")
        return "\n".join(lines)

    def to_body(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {
            "predicted": self.predicted,
            "against": self.against,
            "probability": self.probability,
            "prior": self.prior,
            "log_odds": self.log_odds,
            "evidence": [vars(one) for one in self.evidence],
        }


def strongest_evidence(model: NaiveBayesModel, count: int) -> list[tuple[str, str, str, float]]:
    """(feature, value, class, log-odds against the other classes together), strongest first.

    Only cells have a log-odds of their own; a density is shown by its class means instead.
    """
    from discreet.model import CellFactor

    prior = np.exp(model.log_prior)
    found: list[tuple[str, str, str, float]] = []
    told: list[tuple[str, Sequence[str], Floats]] = []
    for factor in model.factors:
        if not isinstance(factor, CellFactor):
            continue
        told.append((factor.name, factor.cells.labels, factor.log_probability))
    told += [(" & ".join(pair.names), pair.labels(), pair.scores) for pair in model.pairs]
    for name, labels, table in told:
        likelihood = np.exp(table)
        for c, label in enumerate(model.schema.classes):
            others = np.delete(prior, c)
            rest = others @ np.delete(likelihood, c, axis=0) / max(others.sum(), 1e-300)
            with np.errstate(divide="ignore", invalid="ignore"):
                odds = table[c] - np.log(rest)
            found += [
                (name, labels[v], str(label), float(value))
                for v, value in enumerate(odds)
                if math.isfinite(value) and value > 0
            ]
    return sorted(found, key=lambda one: -one[3])[:count]


def show_model(model: NaiveBayesModel, strongest: int = 10) -> None:
    """Print a model: its promise, its priors, its strongest evidence."""
    from rich.console import Console

    from discreet.model import GaussianFactor
    from discreet.report.terminal import Hanging, table

    console = Console(markup=False, highlight=False, emoji=False)
    console.print(Hanging(str(model.guarantee)), style="bold")
    priors = table(f"{model.schema.target}: prior", "class", ">probability")
    for label, value in zip(model.schema.classes, np.exp(model.log_prior), strict=True):
        priors.add_row(str(label), f"{value:.3f}")
    console.print(priors)
    evidence = strongest_evidence(model, strongest)
    if evidence:
        shown = table("strongest evidence", "feature", "value", "speaks for", ">log-odds")
        for feature, value, label, odds in evidence:
            shown.add_row(feature, value, label, f"{odds:+.2f}")
        console.print(shown)
    normal = [factor for factor in model.factors if isinstance(factor, GaussianFactor)]
    if normal:
        classes = [f">{label}" for label in model.schema.classes]
        shown = table("numeric features: mean ± deviation", "feature", *classes)
        for factor in normal[: max(strongest, 10)]:
            pairs = zip(factor.mean, np.sqrt(factor.variance), strict=True)
            shown.add_row(factor.name, *(f"{mean:.4g} ± {sd:.3g}" for mean, sd in pairs))
        console.print(shown)
