"""Readable explanations of a model and of single predictions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from discreet.arrays import Floats
from discreet.schema.schema import format_value

if TYPE_CHECKING:
    from discreet.model import NaiveBayesModel

__all__ = ["Evidence", "Explanation", "find_strongest_evidence"]


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
        return self.prior + sum(item.log_odds for item in self.evidence)

    def __str__(self) -> str:
        width = max([5, *(len(item.feature) + len(item.value) + 3 for item in self.evidence)])
        lines = [
            f"{self.predicted} rather than {self.against} (probability {self.probability:.3f})"
        ]
        lines += [
            f"  {item.feature + ' = ' + item.value:<{width}}  {item.log_odds:+8.3f}"
            for item in self.evidence
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
            "evidence": [vars(item) for item in self.evidence],
        }


def find_strongest_evidence(
    model: NaiveBayesModel, count: int
) -> list[tuple[str, str, str, float]]:
    """(feature, value, class, log-odds against the other classes together), strongest first.

    Only cells have a log-odds of their own; a density is shown by its class means instead.
    """
    from discreet.model import CellFactor

    prior = np.exp(model.log_prior)
    evidence_rows: list[tuple[str, str, str, float]] = []
    log_tables: list[tuple[str, Sequence[str], Floats]] = []
    for factor in model.factors:
        if not isinstance(factor, CellFactor):
            continue
        log_tables.append((factor.name, factor.cells.labels, factor.log_probability))
    log_tables += [
        (" & ".join(pair.names), pair.describe_groups(), pair.scores) for pair in model.pairs
    ]
    for name, cell_labels, log_table in log_tables:
        likelihood = np.exp(log_table)
        for c, class_label in enumerate(model.schema.classes):
            other_priors = np.delete(prior, c)
            other_likelihood = (
                other_priors @ np.delete(likelihood, c, axis=0) / max(other_priors.sum(), 1e-300)
            )
            with np.errstate(divide="ignore", invalid="ignore"):
                log_odds = model.temperature * (log_table[c] - np.log(other_likelihood))
            evidence_rows += [
                (name, cell_labels[cell_index], format_value(class_label), float(cell_odds))
                for cell_index, cell_odds in enumerate(log_odds)
                if math.isfinite(cell_odds) and cell_odds > 0
            ]
    return sorted(evidence_rows, key=lambda evidence_row: -evidence_row[3])[:count]
