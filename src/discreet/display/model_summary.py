"""A model on a terminal: its guarantee, its priors, its strongest evidence."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from discreet.display.terminal import HangingText, make_table
from discreet.model.factors import GaussianFactor
from discreet.model.strongest_evidence import NO_EVIDENCE, count_cells, find_strongest_evidence
from discreet.schema.schema import format_value

if TYPE_CHECKING:
    from discreet.model import NaiveBayesModel

__all__ = ["show_model"]


def show_model(model: NaiveBayesModel, strongest: int = 10) -> None:
    """Print a model: its promise, its priors, its strongest evidence."""
    from rich.console import Console

    console = Console(markup=False, highlight=False, emoji=False)
    console.print(HangingText(str(model.guarantee)), style="bold")
    prior_table = make_table(f"{model.schema.target}: prior", "class", ">probability")
    for class_label, class_share in zip(model.schema.classes, np.exp(model.log_prior), strict=True):
        prior_table.add_row(format_value(class_label), f"{class_share:.3f}")
    console.print(prior_table)
    evidence_lines = find_strongest_evidence(model, strongest)
    if strongest and count_cells(model) and not evidence_lines:
        console.print(NO_EVIDENCE)
    if evidence_lines:
        evidence_table = make_table(
            "strongest evidence", "feature", "value", "speaks for", ">log-odds", ">of people"
        )
        for line in evidence_lines:
            evidence_table.add_row(
                line.feature, line.value, line.label, f"{line.log_odds:+.2f}", line.share_text
            )
        console.print(evidence_table)
    gaussian_factors = [factor for factor in model.factors if isinstance(factor, GaussianFactor)]
    if gaussian_factors:
        class_columns = [f">{class_label}" for class_label in model.schema.classes]
        density_table = make_table("numeric features: mean ± deviation", "feature", *class_columns)
        for factor in gaussian_factors[: max(strongest, 10)]:
            mean_sd_pairs = zip(factor.mean, np.sqrt(factor.variance), strict=True)
            density_table.add_row(
                factor.name, *(f"{mean:.4g} ± {sd:.3g}" for mean, sd in mean_sd_pairs)
            )
        console.print(density_table)
